//! The people of a study, for its researchers: invitations, qualifications, decisions about pay, erasure.

use crate::family::Audience;
use crate::ids::StudyId;
use crate::output::spreadsheet;
use crate::store::{Participant, QualificationAnswer, Study};
use crate::study::agreement::{Agreement, Mean};
use crate::study::quality::Flagged;
use crate::study::{Approval, Judge, ParticipantState};
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::actor::Actor;
use crate::web::extractors::cookie::new_token;
use crate::web::extractors::input::{Form, Path};
use crate::web::format;
use crate::web::handlers::review;
use crate::web::handlers::studies::{self, Said};
use crate::web::page::{self, Page};
use crate::web::services::review::Known;
use crate::web::services::teacher_statistics::TeacherStatistics;
use crate::web::services::{participation, qualification};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use time::OffsetDateTime;

/// Most invitations that are made at once.
const AT_ONCE: usize = 200;

/// Body of the form that makes invitations.
#[derive(Deserialize)]
pub(crate) struct Inviting {
    /// One label a line: a name, an address, a number.
    #[serde(default)]
    labels: String,
    days: u32,
}

/// `POST /studies/{study}/invitations`: makes them and shows their links, once.
pub(crate) async fn invite(
    actor: Actor,
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
    headers: HeaderMap,
    uri: Uri,
    Form(inviting): Form<Inviting>,
) -> Result<Response> {
    let labels: Vec<String> = inviting
        .labels
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| line.chars().take(120).collect())
        .collect();
    let origin = studies::origin(&state, &headers, &uri);
    let refuse = |sentence: &str| Some(sentence.to_owned());
    let problem = match labels.len() {
        0 => refuse("Write a label for each invitation, one a line: a name, an address, or just a number."),
        n if n > AT_ONCE => refuse("Make at most 200 invitations at once."),
        _ if !(1..=365).contains(&inviting.days) => refuse("An invitation lasts between 1 and 365 days."),
        _ => None,
    };
    if problem.is_some() {
        let again =
            studies::overview(&state, page, &id, &origin, Said { problem, labels: inviting.labels, ..Said::default() })
                .await?;
        return Ok((axum::http::StatusCode::UNPROCESSABLE_ENTITY, again).into_response());
    }
    let mut made = Vec::new();
    for label in labels {
        made.push((new_token()?, label));
    }
    let expires = OffsetDateTime::now_utc() + time::Duration::days(inviting.days.into());
    state.store.invite_to_study(&id, &made, expires, &actor.name).await?;
    let address = format!("{origin}{}", page.url(&participation::path(&id)));
    let fresh = made.into_iter().map(|(token, label)| (label, format!("{address}?invitation={token}"))).collect();
    studies::overview(&state, page, &id, &origin, Said { fresh, ..Said::default() }).await
}

/// `POST /studies/{study}/invitations/{key}/revoke`.
pub(crate) async fn revoke(
    actor: Actor,
    State(state): State<AppState>,
    Path((id, key)): Path<(StudyId, String)>,
    page: Page,
) -> Result<Response> {
    state.store.revoke_invitation(&id, &key, &actor.name).await?;
    Ok(back(&page, &id))
}

fn back(page: &Page, id: &StudyId) -> Response {
    Redirect::to(&page.url(&studies::admin_path(id))).into_response()
}

/// A description of the qualification, with its execution drawn.
struct Judged {
    position: u64,
    html: String,
    answer: QualificationAnswer,
}

#[derive(Template)]
#[template(path = "study/participant.html")]
struct ParticipantPage {
    page: Page,
    study: Study,
    who: Participant,
    judged: Vec<Judged>,
    script: Option<&'static str>,
    answers: u64,
    statistics: TeacherStatistics,
    agreement: Agreement,
    flags: Vec<Flagged>,
    /// Answers that have a flag.
    flagged: usize,
}

impl ParticipantPage {
    /// How the qualification stands, and what happens next.
    fn qualified(&self) -> String {
        let asked = &self.study.settings.qualification;
        let count = |wanted| self.judged.iter().filter(|one| one.answer.passed == wanted).count();
        let (passed, open) = (count(Some(true)), count(None));
        let needed = format!("{} of {} have to pass, and {passed} did.", asked.right, asked.executions);
        match (open, self.who.state) {
            (0, _) => needed,
            (_, ParticipantState::Waiting) if asked.judge == Judge::Researcher => {
                let them = if open == 1 { "it is" } else { "all are" };
                format!(
                    "{needed} {open} {} not judged yet; {} goes on once {them}.",
                    if open == 1 { "is" } else { "are" },
                    self.who.pseudonym()
                )
            }
            _ => format!("{needed} {open} not judged yet."),
        }
    }

    /// A mean with what it rests on.
    fn mean(&self, mean: &Option<Mean>, what: &str) -> String {
        match mean {
            Some(mean) => format!(
                "{:.0}% ({:.0} to {:.0}%) of {}",
                mean.value * 100.0,
                mean.low * 100.0,
                mean.high * 100.0,
                format::counted(&mean.n, what)
            ),
            None => "–".to_owned(),
        }
    }
}

/// `GET /studies/{study}/participants/{number}`: one participant, with their qualification.
pub(crate) async fn participant(
    _: Steering,
    State(state): State<AppState>,
    Path((id, number)): Path<(StudyId, u64)>,
    page: Page,
) -> Result<Response> {
    let study = state.store.study(&id).await?;
    let who = state.store.participant_numbered(&id, number).await?;
    let items = state.store.qualification_items(&id).await?;
    let (mut judged, mut script) = (Vec::new(), None);
    for answer in state.store.qualification_answers(who.id).await? {
        let Some(item) = items.iter().find(|item| item.position == answer.position) else { continue };
        let family =
            state.family(&state.store.run(&item.run).await?.family).ok_or(Error::NotFound("the task family"))?;
        script = family.script();
        let html = family.render(&item.view, Audience::Beside)?;
        judged.push(Judged { position: answer.position, html, answer });
    }
    let answers = state.store.answers_in_study(&id, who.teacher).await?;
    let known = Known::load(&state, &id).await?;
    let own: Vec<_> = known.answers.iter().filter(|answer| answer.teacher == who.teacher).collect();
    Ok(page::html(&ParticipantPage {
        statistics: TeacherStatistics::of(&own),
        agreement: review::agreement_with_others(&known, who.teacher),
        flags: known.teacher_flags.get(&who.teacher).cloned().unwrap_or_default(),
        flagged: own.iter().filter(|answer| known.flags.contains_key(&answer.answer)).count(),
        page,
        study,
        who,
        judged,
        script,
        answers,
    }))
}

/// Body of the judgement of one description.
#[derive(Deserialize)]
pub(crate) struct Judgement {
    position: u64,
    passed: u8,
}

/// `POST /studies/{study}/participants/{number}/judge`: once all of a participant's descriptions are judged, they go on.
pub(crate) async fn judge(
    actor: Actor,
    State(state): State<AppState>,
    Path((id, number)): Path<(StudyId, u64)>,
    page: Page,
    Form(judgement): Form<Judgement>,
) -> Result<Response> {
    let study = state.store.study(&id).await?;
    let who = state.store.participant_numbered(&id, number).await?;
    state.store.judge_qualification(&id, who.id, judgement.position, judgement.passed != 0, &actor.name).await?;
    let answers = state.store.qualification_answers(who.id).await?;
    let open = matches!(who.state, ParticipantState::Waiting | ParticipantState::ScreenedOut);
    if open
        && who.attention_missed <= u64::from(study.settings.attention.misses)
        && answers.iter().all(|answer| answer.passed.is_some())
    {
        qualification::decide(&state, &study, &who).await?;
    }
    Ok(Redirect::to(&page.url(&format!("{}/participants/{number}", studies::admin_path(&id)))).into_response())
}

/// Body of the decision about pay.
#[derive(Deserialize)]
pub(crate) struct Decision {
    approval: Approval,
}

/// `POST /studies/{study}/participants/{number}/approval`.
pub(crate) async fn approve(
    actor: Actor,
    State(state): State<AppState>,
    Path((id, number)): Path<(StudyId, u64)>,
    page: Page,
    Form(decision): Form<Decision>,
) -> Result<Response> {
    let who = state.store.participant_numbered(&id, number).await?;
    state.store.set_approval(who.id, decision.approval, &actor.name).await?;
    Ok(back(&page, &id))
}

/// `POST /studies/{study}/participants/{number}/erase`: forgets who the person is.
pub(crate) async fn erase(
    actor: Actor,
    State(state): State<AppState>,
    Path((id, number)): Path<(StudyId, u64)>,
    page: Page,
) -> Result<Response> {
    let who = state.store.participant_numbered(&id, number).await?;
    state.store.erase_person(who.id, &actor.name).await?;
    Ok(back(&page, &id))
}

/// `GET /studies/{study}/approvals.csv`: who is to be paid, for the platform. It names people; it is no part of the data set.
pub(crate) async fn approvals(_: Steering, State(state): State<AppState>, Path(id): Path<StudyId>) -> Result<Response> {
    let study = state.store.study(&id).await?;
    let figures = state.store.participant_figures(&id).await?;
    let columns = [
        "participant",
        "platform_person",
        "platform_session",
        "state",
        "answers",
        "active_minutes",
        "attention_passed",
        "attention_missed",
        "completion_code",
        "approval",
    ];
    let mut lines = vec![columns.map(str::to_owned).to_vec()];
    for who in state.store.participants(&study.id).await? {
        let figures = figures.get(&who.teacher);
        let minutes = figures.map_or(0.0, |figures| figures.active_ms as f64 / 60_000.0);
        let cells = [
            who.pseudonym(),
            who.person.platform_person.clone().unwrap_or_default(),
            who.person.platform_session.clone().unwrap_or_default(),
            who.state.as_str().to_owned(),
            figures.map_or(0, |figures| figures.answers).to_string(),
            format!("{minutes:.1}"),
            who.attention_passed.to_string(),
            who.attention_missed.to_string(),
            who.completion_code.clone().unwrap_or_default(),
            who.approval.as_str().to_owned(),
        ];
        lines.push(cells.iter().map(|cell| spreadsheet::cell(cell).into_owned()).collect());
    }
    page::csv_file(&format!("{id}-approvals"), lines)
}
