//! Studies as researchers write and steer them: the list, the editor, and what a study has come to.

use crate::ids::StudyId;
use crate::store::{AuditEntry, Invitation, Participant, ParticipantFigures, StoreError, Study, WebhookRecord};
use crate::study::{Assignment, Entry, Estimate, ParticipantState, SettingsError, StudyState};
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::actor::Actor;
use crate::web::extractors::cookie::new_token;
use crate::web::extractors::input::{Form, Path};
use crate::web::extractors::proxy;
use crate::web::format;
use crate::web::handlers::comparison;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page, markdown};
use crate::web::services::participation;
use crate::web::services::review::Known;
use crate::web::services::study_form::StudyForm;
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;

/// A study in the list.
struct Listed {
    study: Study,
    teachers: u64,
    finished: u64,
    answers: u64,
}

#[derive(Template)]
#[template(path = "study/list.html")]
struct ListPage {
    page: Page,
    studies: Vec<Listed>,
}

/// `GET /studies`.
pub(crate) async fn list(_: Steering, State(state): State<AppState>, page: Page) -> Result<Response> {
    let mut studies = Vec::new();
    for study in state.store.studies().await? {
        let people = state.store.participants(&study.id).await?;
        let answers = state.store.participant_figures(&study.id).await?.values().map(|f| f.answers).sum();
        let finished = people.iter().filter(|p| p.state == ParticipantState::Finished).count() as u64;
        studies.push(Listed { study, teachers: people.len() as u64, finished, answers });
    }
    Ok(page::html(&ListPage { page, studies }))
}

#[derive(Template)]
#[template(path = "study/edit.html")]
struct EditPage {
    page: Page,
    /// The study; `None` while a new one is written.
    study: Option<Study>,
    form: StudyForm,
    runs: Vec<RunView>,
    /// Whether the arms can still be chosen.
    arms_open: bool,
    problems: Vec<SettingsError>,
    preview: String,
}

impl EditPage {
    fn problem(&self, field: &str) -> Option<&str> {
        self.problems.iter().find(|problem| problem.field == field).map(|problem| problem.sentence.as_str())
    }
}

/// The page on which a study is written.
pub(crate) async fn editor(
    state: &AppState,
    page: Page,
    study: Option<Study>,
    form: StudyForm,
    problems: Vec<SettingsError>,
) -> Result<Response> {
    let own = study.as_ref().map(|study| study.id.clone());
    let mut runs = Vec::new();
    for view in RunView::all(state).await? {
        let of = state.store.study_of_run(&view.run.id).await?;
        // A run of another study cannot be chosen, and one that has ended teaches nobody.
        if of.is_none() && !view.ended() || of.is_some() && of == own {
            runs.push(view);
        }
    }
    let arms_open = study.as_ref().is_none_or(|study| study.opened_at.is_none());
    let preview = preview_of(&form)?;
    Ok(page::html(&EditPage { page, study, form, runs, arms_open, problems, preview }))
}

/// `GET /studies/{study}/edit`.
pub(crate) async fn edit(
    _: Steering,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
) -> Result<Response> {
    let study = state.store.study(&id).await?;
    let form = StudyForm::of_study(&study);
    editor(&state, page, Some(study), form, Vec::new()).await
}

/// Why the store does not take a study; that belongs to no single field but the name.
fn general(error: StoreError) -> SettingsError {
    let sentence = match error {
        StoreError::Invalid(sentence) => format!("{}.", format::upper(&sentence)),
        error => Error::from(error).problem().detail,
    };
    SettingsError { field: "id", sentence }
}

/// `POST /studies`: a new study, as a draft.
pub(crate) async fn create(
    actor: Actor,
    State(state): State<AppState>,
    page: Page,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response> {
    let form = StudyForm::sent(pairs);
    let (settings, mut problems) = form.read();
    if problems.is_empty() {
        let id = StudyId::from(form.id());
        match state.store.create_study(&id, &settings, &form.arms(), &new_token()?, &actor.name).await {
            Ok(()) => return Ok(Redirect::to(&page.url(&admin_path(&id))).into_response()),
            Err(error) => problems.push(general(error)),
        }
    }
    let again = editor(&state, page, None, form, problems).await?;
    Ok((StatusCode::UNPROCESSABLE_ENTITY, again).into_response())
}

/// `POST /studies/{study}/edit`.
pub(crate) async fn change(
    actor: Actor,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response> {
    let form = StudyForm::sent(pairs);
    let (settings, mut problems) = form.read();
    if problems.is_empty() {
        let change = |study: &Study| {
            if !form.text("seen").is_empty() && form.text("seen") != study.settings.digest() {
                return Err(StoreError::Conflict(
                    "somebody changed the study meanwhile: look at who changed what, and save again to replace it"
                        .to_owned(),
                ));
            }
            Ok((settings, form.arms_for(study)))
        };
        match state.store.change_study(&id, &actor.name, change).await {
            Ok(()) => return Ok(Redirect::to(&page.url(&admin_path(&id))).into_response()),
            Err(error) => problems.push(general(error)),
        }
    }
    let study = state.store.study(&id).await?;
    let again = editor(&state, page, Some(study), form, problems).await?;
    Ok((StatusCode::UNPROCESSABLE_ENTITY, again).into_response())
}

#[derive(Template)]
#[template(path = "study/preview.html")]
struct PreviewPart {
    settings: crate::study::StudySettings,
    summary: String,
    consent: String,
    guidelines: String,
    thanks: String,
    estimate: Estimate,
    goal: u64,
    problems: Vec<SettingsError>,
}

/// The part of the editor that shows the pages of teachers.
fn preview_of(form: &StudyForm) -> Result<String> {
    let (settings, problems) = form.read();
    let part = PreviewPart {
        summary: markdown::html(&settings.summary),
        consent: markdown::html(&settings.consent),
        guidelines: markdown::html(&settings.guidelines),
        thanks: markdown::html(&settings.completion.thanks),
        estimate: Estimate::of(&settings, None),
        goal: u64::from(settings.goal),
        settings,
        problems,
    };
    Ok(part.render()?)
}

/// `POST /studies/preview`: what teachers would read of a form that is not saved. It changes nothing.
pub(crate) async fn preview(_: Steering, Form(pairs): Form<Vec<(String, String)>>) -> Result<Response> {
    Ok(Html(preview_of(&StudyForm::sent(pairs))?).into_response())
}

/// Own path of a study's page for researchers.
pub(crate) fn admin_path(id: &StudyId) -> String {
    format!("/studies/{}", format::encode(id))
}

/// A participant in the table.
struct Row {
    pub(crate) who: Participant,
    pub(crate) figures: Option<ParticipantFigures>,
    /// Answers with quality flags, and flags of the teacher.
    pub(crate) flags: usize,
}

impl Row {
    fn answers(&self) -> String {
        format::count(&self.figures.map_or(0, |figures| figures.answers))
    }

    /// Mean active seconds of an answer.
    fn seconds(&self) -> Option<String> {
        let figures = self.figures.filter(|figures| figures.timed > 0)?;
        Some(format!("{:.0} s", figures.active_ms as f64 / 1000.0 / figures.timed as f64))
    }

    /// Share of descriptions that the agent understood before it had learned from them.
    fn understood(&self) -> Option<String> {
        let figures = self.figures.filter(|figures| figures.read > 0)?;
        Some(format!("{} of {}", figures.understood, figures.read))
    }
}

/// A run of the study, alive or not.
struct Arm {
    name: String,
    view: RunView,
    teachers: u64,
}

#[derive(Template)]
#[template(path = "study/overview.html")]
struct OverviewPage {
    page: Page,
    study: Study,
    /// The link for teachers, whole.
    link: String,
    /// Time and money as teachers are told when they join.
    promised: Estimate,
    /// Time and money from the time that they have needed.
    estimate: Estimate,
    /// Mean active seconds of an answer so far.
    seconds: Option<f64>,
    rows: Vec<Row>,
    arms: Vec<Arm>,
    invitations: Vec<Invitation>,
    /// Links of invitations that were just made; they are shown once.
    fresh: Vec<(String, String)>,
    /// Labels of invitations that were typed and not made.
    labels: String,
    /// The key of the messages' signatures, for who asked to see it.
    secret: Option<String>,
    audit: Vec<AuditEntry>,
    webhooks: Vec<WebhookRecord>,
    problem: Option<String>,
    /// The outcomes of the conditions; empty until somebody has taught.
    compared: Vec<comparison::Row>,
}

impl OverviewPage {
    /// The first participant who waits to be judged.
    fn first_waiting(&self) -> Option<u64> {
        self.rows.iter().find(|row| row.who.state == ParticipantState::Waiting).map(|row| row.who.number)
    }

    fn count(&self, state: &str) -> usize {
        self.rows.iter().filter(|row| row.who.state.as_str() == state).count()
    }

    fn answers(&self) -> String {
        format::count(&self.rows.iter().filter_map(|row| row.figures).map(|figures| figures.answers).sum())
    }

    fn platform(&self) -> bool {
        matches!(self.study.settings.entry, Entry::Prolific | Entry::Mturk)
    }

    /// Why the study cannot be opened as it is.
    fn obstacle(&self) -> Option<&'static str> {
        if self.arms.is_empty() {
            return Some("It has no run yet: choose at least one in the editor.");
        }
        self.arms
            .iter()
            .all(|arm| arm.view.ended())
            .then_some("All its runs have ended: resume one, or make another study.")
    }
}

/// Address of this server as the researcher's browser knows it.
pub(crate) fn origin(state: &AppState, headers: &HeaderMap, uri: &Uri) -> String {
    let scheme = if proxy::is_https(&state.settings, headers) { "https" } else { "http" };
    let host = proxy::host(headers, uri, state.settings.trust_proxy).unwrap_or("localhost");
    format!("{scheme}://{host}")
}

/// The link that teachers get, with the places that a platform fills in.
pub(crate) fn link(origin: &str, page: &Page, study: &Study) -> String {
    let address = format!("{origin}{}", page.url(&participation::path(&study.id)));
    match study.settings.entry {
        Entry::Link => address,
        Entry::Invitation => address,
        Entry::Prolific => format!(
            "{address}?PROLIFIC_PID={{{{%PROLIFIC_PID%}}}}&STUDY_ID={{{{%STUDY_ID%}}}}&SESSION_ID={{{{%SESSION_ID%}}}}"
        ),
        Entry::Mturk => format!("{address}?workerId=${{workerId}}&hitId=${{hitId}}&assignmentId=${{assignmentId}}"),
    }
}

/// Messages that the overview shows once.
#[derive(Default)]
pub(crate) struct Said {
    /// Labels and links of invitations that were just made.
    pub(crate) fresh: Vec<(String, String)>,
    /// The key of the messages' signatures.
    pub(crate) secret: Option<String>,
    /// Labels of invitations that were typed and not made.
    pub(crate) labels: String,
    /// Why something was not done.
    pub(crate) problem: Option<String>,
}

/// The overview as a response.
pub(crate) async fn overview(state: &AppState, page: Page, id: &StudyId, origin: &str, said: Said) -> Result<Response> {
    let Said { fresh, secret, labels, problem } = said;
    let study = state.store.study(id).await?;
    let figures = state.store.participant_figures(id).await?;
    let people = state.store.participants(id).await?;
    let known = Known::load(state, id).await?;
    let row = |who: Participant| Row {
        figures: figures.get(&who.teacher).copied(),
        flags: known.flag_count(who.teacher),
        who,
    };
    let rows: Vec<Row> = people.into_iter().map(row).collect();
    let (timed, active) = figures.values().fold((0, 0), |(timed, active), f| (timed + f.timed, active + f.active_ms));
    let seconds = (timed > 0).then(|| active as f64 / 1000.0 / timed as f64);
    let mut arms = Vec::new();
    for (position, arm) in study.arms.iter().enumerate() {
        let view = RunView::load(state, &arm.run).await?;
        let teachers = rows.iter().filter(|row| row.who.arm == Some(position as u64)).count() as u64;
        arms.push(Arm { name: arm.name.clone(), view, teachers });
    }
    let compared = comparison::rows(&comparison::load(state, &study).await?, true);
    Ok(page::html(&OverviewPage {
        compared,
        link: link(origin, &page, &study),
        promised: Estimate::of(&study.settings, None),
        estimate: Estimate::of(&study.settings, seconds),
        seconds,
        invitations: state.store.invitations(id).await?,
        audit: state.store.audit(id, 50).await?,
        webhooks: state.store.webhooks(id, 20).await?,
        page,
        study,
        rows,
        arms,
        fresh,
        labels,
        secret,
        problem,
    }))
}

/// `GET /studies/{study}`.
pub(crate) async fn page(
    _: Steering,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response> {
    let origin = origin(&state, &headers, &uri);
    overview(&state, page, &id, &origin, Said::default()).await
}

/// Body of the buttons that open, pause and close.
#[derive(Deserialize)]
pub(crate) struct Wanted {
    state: StudyState,
}

/// `POST /studies/{study}/state`.
pub(crate) async fn set_state(
    actor: Actor,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
    Form(wanted): Form<Wanted>,
) -> Result<Response> {
    let study = state.store.study(&id).await?;
    if wanted.state == StudyState::Open {
        if study.arms.is_empty() {
            return Err(Error::change("no-arm", "Choose at least one run for the study first; then it can be opened."));
        }
        if let Some(problem) = study.settings.problems().into_iter().next() {
            return Err(Error::change(problem.field, problem.sentence));
        }
    }
    state.store.set_study_state(&id, wanted.state, &actor.name).await?;
    Ok(Redirect::to(&page.url(&admin_path(&id))).into_response())
}
