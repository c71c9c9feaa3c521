//! The teacher's page, whole without a script: one execution, one sentence, next.

use crate::ids::{AnswerId, ExecutionId, RunId};
use crate::protocol::Medium;
use crate::store::{AnswerKind, StoreError};
use crate::web::error::{Error, Problem, Result};
use crate::web::extractors::input::{Form, Path, Query};
use crate::web::extractors::visitor::{Guest, Returned, Visitor};
use crate::web::format;
use crate::web::page::guide;
use crate::web::page::panel::Panel;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page};
use crate::web::services::media;
use crate::web::services::participation::{self, Gate, Progress};
use crate::web::services::preview;
use crate::web::services::teaching::{self, Given, Shown};
use crate::web::services::undo;
use crate::web::settings::TEXT_LIMIT;
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use serde_json::json;

/// Reasons for skipping that the menu offers; own words are possible beside them.
const SKIP_REASONS: [&str; 3] =
    ["I do not understand what happened", "Too much happened at once", "Something looks broken"];

#[derive(Template)]
#[template(path = "teach.html")]
struct TeachPage {
    page: Page,
    view: RunView,
    shown: Option<Shown>,
    panel: Panel,
    /// Whether the request is shown beside it.
    asked: bool,
    /// Why there is nothing to describe.
    idle: String,
    /// Text that was sent and not stored.
    text: String,
    problem: Option<String>,
    /// The kind of answer of which the person is asked whether they mean it.
    doubt: Option<AnswerKind>,
    /// Whether the person is asked if the execution did what was asked.
    fulfilling: bool,
    /// How far the teacher is, and what the agent can do.
    progress: String,
    thanks: Option<String>,
    /// The answer that may be taken back with one press: the one that was just stored.
    undo: Option<AnswerId>,
    reasons: &'static [&'static str],
    /// How the teacher stands in a study.
    study: Option<Progress>,
    /// The start fields of the box in which the agent is tried.
    try_fields: String,
    /// Whether previews are shown to this teacher.
    previews: bool,
    /// Data for the script, as JSON.
    data: String,
}

/// Query of the page: what was just stored, or taken back, after a plain form was sent.
#[derive(Deserialize)]
pub(crate) struct Said {
    said: Option<AnswerKind>,
    undone: Option<AnswerId>,
}

/// `GET /teach/{run}`.
pub(crate) async fn page(
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(Said { said, undone }): Query<Said>,
    page: Page,
    Guest(visitor): Guest,
) -> Result<Response> {
    let view = RunView::load(&state, &run).await?;
    let study = match participation::gate(&state, &run, visitor.as_ref()).await? {
        Gate::Open => None,
        Gate::Teaching(progress) => Some(progress),
        Gate::Elsewhere(path) => return Ok(Redirect::to(&page.url(&path)).into_response()),
    };
    if study.is_none() && !visitor.as_ref().is_some_and(|visitor| visitor.teacher.seen_guide) && !view.ended() {
        return guide::show(page, view, true);
    }
    let Some(visitor) = visitor else { return Ok(page::html(&teach_page(&state, page, view, None, None))) };
    let counts = state.store.teacher_counts(&run, visitor.teacher.id).await?;
    let progress = teaching::progress(counts, &view);
    let previews = preview::arm(&state, &view, visitor.teacher.id).await? == Some(true);
    if let Some(answer) = undone
        && let Some(back) = undo::undone(&state, &view, &visitor, answer).await?
    {
        let words = back.kind == AnswerKind::Described && view.medium() == Medium::Description;
        let text = if words { back.said } else { String::new() };
        let again = teach_page(&state, page, view, Some(back.shown), Some(back.notice)).of(study, progress, previews);
        return Ok(page::html(&TeachPage { text, ..again }));
    }
    let shown = teaching::lease(&state, &view, &visitor, &[]).await?;
    let Some(kind) = said else {
        return Ok(page::html(&teach_page(&state, page, view, shown, None).of(study, progress, previews)));
    };
    let thanks = teaching::sentence(kind, counts, &view);
    let undo = state.store.own_answers(&run, visitor.teacher.id, 1).await?.first().map(|own| own.answer);
    let next = teach_page(&state, page, view, shown, Some(thanks)).of(study, progress, previews);
    Ok(page::html(&TeachPage { undo, ..next }))
}

impl TeachPage {
    /// With what concerns one teacher: how they stand in a study, how far they are, and whether previews are shown to them.
    fn of(mut self, study: Option<Progress>, progress: String, previews: bool) -> TeachPage {
        self.study = study;
        self.progress = progress;
        self.previews = previews;
        self
    }

    /// An example of a description for the empty box.
    fn placeholder(&self) -> &'static str {
        self.shown
            .as_ref()
            .map_or_else(|| teaching::placeholder(self.view.family, ExecutionId(0)), |shown| shown.placeholder)
    }

    /// The question above the buttons of a person who says that it did what was asked.
    fn request(&self) -> &str {
        self.shown.as_ref().and_then(|shown| shown.request.as_deref()).unwrap_or_default()
    }

    /// The label of the button that says once more what the server asks about.
    fn sure(&self) -> String {
        match self.doubt {
            Some(AnswerKind::Described) => "Yes, it did that".to_owned(),
            _ => format!("{}, I am sure", self.view.family.nothing_changed()),
        }
    }
}

fn teach_page(state: &AppState, page: Page, view: RunView, shown: Option<Shown>, thanks: Option<String>) -> TeachPage {
    let panel = Panel::of(&view);
    let data = json!({
        "panel": panel.data(),
        "run": view.run.id,
        "api": page.url(&format!("/api/v1/runs/{}", view.run.id)),
        "limit": TEXT_LIMIT,
        // The word for one answer, in the script's own sentences.
        "noun": if view.medium() == Medium::Description { "sentence" } else { view.medium().word() },
        "lease_seconds": shown.as_ref().map_or(state.settings.lease_ttl.as_secs().min(60), |shown| shown.lease_seconds),
        "ended": view.ended(),
        "nothing": view.family.nothing_changed(),
        "sure": format!("{}, I am sure", view.family.nothing_changed()),
        "shown": shown.as_ref().map(|shown| json!({
            "execution": shown.execution,
            "client_key": shown.client_key,
            "shown_at": format::exact(&shown.shown_at),
            "text": shown.text,
            "spoken": shown.spoken,
            "doubt": shown.doubt,
            "placeholder": shown.placeholder,
            "draft": shown.draft,
        })),
    });
    TeachPage {
        panel,
        idle: view.nothing_to_describe(),
        text: String::new(),
        problem: None,
        doubt: None,
        fulfilling: false,
        progress: String::new(),
        previews: false,
        undo: None,
        reasons: &SKIP_REASONS,
        study: None,
        try_fields: view.family.render_try_fields().unwrap_or_else(|error| {
            tracing::warn!(%error, "the start fields of the try box cannot be drawn");
            String::new()
        }),
        data: data.to_string(),
        asked: shown.as_ref().is_some_and(|shown| shown.request.is_some()),
        page,
        view,
        shown,
        thanks,
    }
}

/// Body that the plain form sends.
pub(crate) struct Sent {
    execution: ExecutionId,
    client_key: String,
    kind: AnswerKind,
    text: String,
    /// Sent by the button that asks for the request.
    look: Option<String>,
    /// Sent by the button that says that the request was fulfilled.
    fulfilled: Option<String>,
    /// A reason chosen from the menu.
    reason: Option<String>,
    /// Sent once the person was asked whether they mean it.
    confirmed: Option<String>,
    shown_at: String,
    /// All fields: which of them a demonstration has is its family's affair.
    fields: Vec<(String, String)>,
}

impl Sent {
    /// Reads the fields of the form. Without a kind it is an answer in the run's medium.
    fn read(fields: Vec<(String, String)>) -> Result<Sent> {
        let field = |name: &str| fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone());
        let missing = |name: &str| Error::Unreadable(format!("the form has no field {name}, or not a fitting one"));
        let kind = field("kind").unwrap_or_else(|| "described".to_owned());
        Ok(Sent {
            execution: field("execution")
                .and_then(|key| serde_json::from_str(&key).ok())
                .ok_or_else(|| missing("execution"))?,
            client_key: field("client_key").ok_or_else(|| missing("client_key"))?,
            kind: serde_json::from_value(kind.into()).map_err(|_| missing("kind"))?,
            text: field("text").unwrap_or_default(),
            look: field("look"),
            fulfilled: field("fulfilled"),
            reason: field("reason"),
            confirmed: field("confirmed"),
            shown_at: field("shown_at").unwrap_or_default(),
            fields,
        })
    }

    /// The text or the reason that the person gave. Browsers send line ends as CRLF; a person typed one line end.
    fn words(&self) -> String {
        let text = self.text.replace("\r\n", "\n");
        match &self.reason {
            Some(reason) if self.kind == AnswerKind::Skipped && text.trim().is_empty() => reason.clone(),
            _ => text,
        }
    }

    /// The fields of a demonstration or a rating.
    fn shown(&self) -> Vec<(&str, &str)> {
        let given = self.fields.iter().filter(|(name, _)| name == "rating" || name.starts_with("show-"));
        given.map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// The kind as it is written in forms and addresses.
    fn kind_word(&self) -> String {
        serde_json::to_value(self.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// The page of last resort: the store does not answer at all, and the words are still there to be sent again.
#[derive(Template)]
#[template(path = "unsent.html")]
struct UnsentPage {
    page: Page,
    problem: Problem,
    /// Whether sending it again says once more that it is meant.
    doubt: bool,
    action: String,
    sent: Sent,
    kind: String,
    text: String,
}

/// `POST /teach/{run}`: the plain form. Whatever goes wrong, a page comes back with the text in the box.
pub(crate) async fn send(
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    page: Page,
    visitor: Result<Returned>,
    Form(fields): Form<Vec<(String, String)>>,
) -> Response {
    let sent = match Sent::read(fields) {
        Ok(sent) => sent,
        Err(error) => return error.into_response(),
    };
    let text = sent.words();
    let action = page.url(&format!("/teach/{}", format::encode(&run)));
    // Who has no row has had nothing, and an answer that is refused makes none.
    let visitor = visitor.and_then(|Returned(visitor)| visitor.ok_or(StoreError::NeverYours.into()));
    let (visitor, error) = match visitor {
        Ok(visitor) if sent.look.is_some() => match look(&state, &run, &visitor, &sent).await {
            Ok((view, shown)) => {
                let again = teach_page(&state, page, view, Some(shown), None);
                return page::html(&TeachPage { text, fulfilling: true, ..again });
            }
            Err(error) => (Some(visitor), error),
        },
        Ok(visitor) => match attempt(&state, &run, &visitor, &sent, &text).await {
            Ok(()) => return Redirect::to(&format!("{action}?said={}", sent.kind_word())).into_response(),
            Err(error) => (Some(visitor), error),
        },
        Err(error) => (None, error),
    };
    let doubt = matches!(error, Error::Unconfirmed(_));
    let problem = error.problem();
    if problem.status >= 500 {
        tracing::error!(%error, "an answer could not be stored");
    }
    let status = problem.status();
    let again = match &visitor {
        Some(visitor) => show_again(&state, &run, visitor, &sent).await,
        None => None,
    };
    let html = match again {
        Some((view, shown)) => {
            let mut again = teach_page(&state, page, view, Some(shown), None);
            again.doubt = doubt.then_some(sent.kind);
            (again.text, again.problem) = (text, Some(problem.detail));
            page::html(&again)
        }
        None => {
            let kind = sent.kind_word();
            page::html(&UnsentPage { page, problem, doubt, action, sent, kind, text })
        }
    };
    (status, html).into_response()
}

async fn attempt(state: &AppState, run: &RunId, visitor: &Visitor, sent: &Sent, text: &str) -> Result<()> {
    let view = RunView::load(state, run).await?;
    let (demonstration, rating) = media::of_form(&view, &sent.fields);
    let given = |client_key: String| Given {
        client_key,
        execution: sent.execution,
        kind: sent.kind,
        text: text.to_owned(),
        shown_at: Some(sent.shown_at.clone()),
        active_ms: None,
        idle_ms: None,
        confirmed: sent.confirmed.is_some(),
        fulfilled: sent.fulfilled.is_some(),
        first_text: None,
        demonstration: demonstration.clone(),
        rating,
    };
    match teaching::answer(state, &view, visitor, given(sent.client_key.clone())).await {
        // The browser's back button, other words, sent again: the last text is the one that the person means.
        Err(Error::Store(StoreError::KeyReused { .. })) => {
            let key = teaching::key_of_words(&sent.client_key, &format!("{text}{demonstration}{rating:?}"));
            teaching::answer(state, &view, visitor, given(key)).await
        }
        other => other,
    }
    .map(|_| ())
}

/// Reveals the request of the execution, and leases it again to show it with the request.
async fn look(state: &AppState, run: &RunId, visitor: &Visitor, sent: &Sent) -> Result<(RunView, Shown)> {
    state.store.execution_in(run, sent.execution).await?;
    state.store.reveal(sent.execution, visitor.teacher.id).await?;
    show_again(state, run, visitor, sent).await.ok_or(StoreError::LeaseLost.into())
}

/// Leases the execution again, to show it above the text that could not be stored. `None` when it is not available.
async fn show_again(state: &AppState, run: &RunId, visitor: &Visitor, sent: &Sent) -> Option<(RunView, Shown)> {
    let view = RunView::load(state, run).await.ok()?;
    let mut shown = teaching::lease(state, &view, visitor, &[]).await.ok()??;
    let (given, _) = media::of_form(&view, &sent.fields);
    if !given.is_null() {
        let executed = state.store.view(shown.execution).await.ok()?;
        (shown.html, shown.text) = media::draw(&view, &executed, &given).ok()?;
    }
    (shown.execution == sent.execution).then_some((view, shown))
}
