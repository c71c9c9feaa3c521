//! The teacher's page as JSON addresses. Its script uses these; so may other programs.

use crate::family::{Audience, Fields};
use crate::ids::{AnswerId, ExecutionId, RunId};
use crate::store::{AnswerKind, Response, StoreError, TeacherCounts};
use crate::web::error::{Error, Result};
use crate::web::extractors::input::{Json, Path};
use crate::web::extractors::visitor::{KnownVisitor, Returned, Visitor};
use crate::web::page::run_view::RunView;
use crate::web::services::participation::{self, Gate, Progress};
use crate::web::services::teaching::{self, EXCEPT, Given, OWN_ANSWERS, Shown, Thanks};
use crate::web::state::AppState;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Body of `POST …/lease`.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = LeaseRequest)]
pub(crate) struct Ask {
    /// Executions the page has already.
    #[serde(default)]
    except: Vec<ExecutionId>,
}

/// Answer of `POST …/lease`: an execution, or the reason why there is none.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct Offer {
    /// The execution; absent when there is none.
    #[serde(flatten)]
    #[schema(value_type = MaybeShown)]
    shown: Option<Shown>,
    /// State of the run: `starting`, `running`, `paused`, `stopped`, `failed`.
    state: &'static str,
    /// Whether the run can give no more executions.
    ended: bool,
    /// Plain sentence about why there is none, or what to know about the run.
    message: Option<String>,
    /// The teacher's own figures.
    counts: TeacherCounts,
    /// The counts in words, with the agent's latest test.
    progress: String,
    /// How the teacher stands in the study that the run belongs to; with `next`, something else than an execution comes now.
    #[serde(skip_serializing_if = "Option::is_none")]
    study: Option<Progress>,
}

/// The members of an execution that is shown, none of which is there when there is none.
struct MaybeShown;

impl PartialSchema for MaybeShown {
    fn schema() -> RefOr<Schema> {
        let mut schema = Shown::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.required.clear();
        }
        schema
    }
}

impl ToSchema for MaybeShown {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Shown::schemas(schemas);
    }
}

/// `POST /api/runs/{run}/lease`.
#[utoipa::path(post, path = "/runs/{run}/lease", operation_id = "lease_execution", tag = "teaching",
    summary = "Takes an execution to describe", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    request_body = Ask,
    responses((status = 200, body = Offer, description = "An execution, or the reason why there is none")))]
pub(crate) async fn lease(
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    KnownVisitor(visitor): KnownVisitor,
    Json(ask): Json<Ask>,
) -> Result<axum::Json<Offer>> {
    if ask.except.len() > EXCEPT {
        return Err(Error::Unreadable(format!("except may name at most {EXCEPT} executions")));
    }
    let view = RunView::load(&state, &run).await?;
    let study = match participation::gate(&state, &run, Some(&visitor)).await? {
        Gate::Open => None,
        Gate::Teaching(progress) => Some(progress),
        Gate::Elsewhere(next) => match participation::progress(&state, &run, &visitor).await? {
            Some(progress) => Some(Progress { next: Some(next), ..progress }),
            None => return Err(Error::conflict("join-first", "This run belongs to a study. Join the study first.")),
        },
    };
    let elsewhere = study.as_ref().is_some_and(|study| study.next.is_some());
    let shown = if elsewhere { None } else { teaching::lease(&state, &view, &visitor, &ask.except).await? };
    let message = match &shown {
        Some(_) => view.remark().map(str::to_owned),
        None if elsewhere => None,
        None => Some(view.nothing_to_describe()),
    };
    let counts = state.store.teacher_counts(&run, visitor.teacher.id).await?;
    let progress = teaching::progress(counts, &view);
    Ok(axum::Json(Offer { shown, state: view.class(), ended: view.ended(), message, counts, progress, study }))
}

/// Answer of `POST …/renew`.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct Renewed {
    /// When the lease now ends.
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
}

/// `POST /api/runs/{run}/executions/{execution}/renew`.
#[utoipa::path(post, path = "/runs/{run}/executions/{execution}/renew", operation_id = "renew_lease", tag = "teaching",
    summary = "Keeps an execution", description = "",
    params(("run" = String, Path, description = "Key of the run"), ("execution" = i64, Path, description = "Key of the execution")),
    responses((status = 200, body = Renewed, description = "The lease was renewed")))]
pub(crate) async fn renew(
    State(state): State<AppState>,
    Path((run, execution)): Path<(RunId, ExecutionId)>,
    Returned(visitor): Returned,
) -> Result<axum::Json<Renewed>> {
    state.store.execution_in(&run, execution).await?;
    let visitor = visitor.ok_or(StoreError::LeaseLost)?;
    let expires_at = state.store.renew(execution, visitor.teacher.id, teaching::ttl(&state)).await?;
    Ok(axum::Json(Renewed { expires_at }))
}

/// `POST /api/runs/{run}/executions/{execution}/release`. The body is not read: the page sends it while it closes.
#[utoipa::path(post, path = "/runs/{run}/executions/{execution}/release", operation_id = "release_execution", tag = "teaching",
    summary = "Gives an execution back", description = "",
    params(("run" = String, Path, description = "Key of the run"), ("execution" = i64, Path, description = "Key of the execution")),
    responses((status = 204, description = "It was given back")))]
pub(crate) async fn release(
    State(state): State<AppState>,
    Path((run, execution)): Path<(RunId, ExecutionId)>,
    Returned(visitor): Returned,
) -> Result<StatusCode> {
    state.store.execution_in(&run, execution).await?;
    if let Some(visitor) = visitor {
        state.store.release(execution, visitor.teacher.id).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Body of `POST …/answers` and `POST …/answers/{answer}/correct`.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = NewAnswer)]
pub(crate) struct AnswerBody {
    client_key: String,
    execution: ExecutionId,
    kind: AnswerKind,
    #[serde(default)]
    text: String,
    shown_at: Option<String>,
    active_ms: Option<u64>,
    idle_ms: Option<u64>,
    #[serde(default)]
    confirmed: bool,
    #[serde(default)]
    fulfilled: bool,
    first_text: Option<String>,
    #[serde(default)]
    demonstration: Value,
    /// The demonstration by the fields of a page, without the `show-` of their names.
    #[serde(default)]
    #[schema(value_type = Object)]
    show: Fields,
    rating: Option<f64>,
}

impl AnswerBody {
    fn given(self, view: &RunView) -> Given {
        let AnswerBody {
            client_key,
            execution,
            kind,
            text,
            shown_at,
            active_ms,
            idle_ms,
            confirmed,
            fulfilled,
            first_text,
            demonstration,
            show,
            rating,
        } = self;
        let fields = demonstration.is_null() && !show.is_empty();
        let demonstration = if fields { view.family.demonstration_of(&show) } else { demonstration };
        Given {
            client_key,
            execution,
            kind,
            text,
            shown_at,
            active_ms,
            idle_ms,
            confirmed,
            fulfilled,
            first_text,
            demonstration,
            rating,
        }
    }
}

fn status_of(thanks: &Thanks) -> StatusCode {
    if thanks.again { StatusCode::OK } else { StatusCode::CREATED }
}

/// `POST /api/runs/{run}/answers`: 201 when stored, 200 when it had been stored before.
#[utoipa::path(post, path = "/runs/{run}/answers", operation_id = "answer_execution", tag = "teaching",
    summary = "Answers an execution", description = "",
    params(("run" = String, Path, description = "Key of the run")),
    request_body = AnswerBody,
    responses((status = 201, body = Thanks, description = "The answer is stored"), (status = 200, body = Thanks, description = "It had been stored before")))]
pub(crate) async fn answer(
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Returned(visitor): Returned,
    Json(body): Json<AnswerBody>,
) -> Result<(StatusCode, axum::Json<Thanks>)> {
    let view = RunView::load(&state, &run).await?;
    // Who has no row has had nothing, and an answer that is refused makes none.
    let visitor = visitor.ok_or(StoreError::NeverYours)?;
    let thanks = teaching::answer(&state, &view, &visitor, body.given(&view)).await?;
    Ok((status_of(&thanks), axum::Json(thanks)))
}

/// `POST /api/runs/{run}/answers/{answer}/correct`.
#[utoipa::path(post, path = "/runs/{run}/answers/{answer}/correct", operation_id = "correct_answer", tag = "teaching",
    summary = "Corrects an answer", description = "",
    params(("run" = String, Path, description = "Key of the run"), ("answer" = i64, Path, description = "Key of the answer")),
    request_body = AnswerBody,
    responses((status = 201, body = Thanks, description = "The correction is stored"), (status = 200, body = Thanks, description = "It had been stored before")))]
pub(crate) async fn correct(
    State(state): State<AppState>,
    Path((run, answer)): Path<(RunId, AnswerId)>,
    Returned(visitor): Returned,
    Json(body): Json<AnswerBody>,
) -> Result<(StatusCode, axum::Json<Thanks>)> {
    let view = RunView::load(&state, &run).await?;
    let visitor = visitor.ok_or(StoreError::NotFound("the answer"))?;
    let thanks = teaching::correct(&state, &view, &visitor, answer, body.given(&view)).await?;
    Ok((status_of(&thanks), axum::Json(thanks)))
}

/// One of the person's own answers.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = OwnAnswer)]
pub(crate) struct Own {
    /// Key; a cursor names it.
    pub(crate) answer: AnswerId,
    execution: ExecutionId,
    kind: AnswerKind,
    text: String,
    /// Whether it says that the execution did what was asked.
    fulfilled: bool,
    response: Response,
    html: String,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    used_in_update: Option<u64>,
}

/// `GET /api/runs/{run}/answers`: the visitor's latest answers that may still be corrected, newest first.
pub(crate) async fn own(
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Returned(visitor): Returned,
) -> Result<axum::Json<Vec<Own>>> {
    Ok(axum::Json(own_answers(&state, &run, visitor).await?))
}

/// The latest answers of a visitor that may still be corrected, newest first.
pub(crate) async fn own_answers(state: &AppState, run: &RunId, visitor: Option<Visitor>) -> Result<Vec<Own>> {
    let view = RunView::load(state, run).await?;
    let Some(visitor) = visitor else { return Ok(Vec::new()) };
    let answers = state.store.own_answers(run, visitor.teacher.id, OWN_ANSWERS).await?;
    let own = answers.into_iter().map(|own| {
        Ok(Own {
            html: view.family.render(&own.view, Audience::Researcher).map_err(Error::Render)?,
            answer: own.answer,
            execution: own.execution,
            kind: own.kind,
            text: own.text,
            fulfilled: own.fulfilled,
            response: own.response,
            created_at: own.created_at,
            used_in_update: own.used_in_update,
        })
    });
    own.collect()
}
