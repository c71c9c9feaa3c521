//! The questions of a study: the executions that everybody describes before they teach, and attention checks between.

use crate::family::{Audience, RenderError};
use crate::ids::StudyId;
use crate::protocol::Medium;
use crate::registry::AnyFamily;
use crate::store::{Choice, Participant, Study};
use crate::study::{ParticipantState, StudyState};
use crate::web::error::{Error, Result};
use crate::web::extractors::input::{Form, Path};
use crate::web::extractors::visitor::{Guest, Returned};
use crate::web::handlers::study::{onwards, participant};
use crate::web::page::{self, Page};
use crate::web::services::participation::{self, Next};
use crate::web::services::qualification;
use crate::web::settings::TEXT_LIMIT;
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

#[derive(Template)]
#[template(path = "study/qualify.html")]
struct QualifyPage {
    page: Page,
    study: Study,
    family: &'static dyn AnyFamily,
    html: String,
    position: u64,
    of: u64,
    text: String,
    problem: Option<String>,
}

#[derive(Template)]
#[template(path = "study/check.html")]
struct CheckPage {
    page: Page,
    study: Study,
    family: &'static dyn AnyFamily,
    medium: Medium,
    text: String,
    choices: Vec<(i64, Drawn)>,
    at: u64,
    problem: Option<String>,
}

/// A choice of an attention check as it is shown: an execution as markup of its family, or a demonstration in words.
struct Drawn {
    html: String,
    words: Option<String>,
}

/// The page on which an execution of the qualification is described.
pub(crate) fn qualify(
    state: &AppState,
    page: Page,
    study: Study,
    item: qualification::Item,
    text: String,
    problem: Option<String>,
) -> Result<Response> {
    let family = state.family(&item.family).ok_or(Error::NotFound("the task family"))?;
    let html = family.render(&item.view, Audience::Teacher)?;
    Ok(page::html(&QualifyPage { page, study, family, html, position: item.position, of: item.of, text, problem }))
}

/// Body of the qualification's form.
#[derive(Deserialize)]
pub(crate) struct Qualified {
    position: u64,
    #[serde(default)]
    text: String,
}

/// `POST /study/{study}/qualify`.
pub(crate) async fn qualify_answer(
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
    Returned(visitor): Returned,
    Form(sent): Form<Qualified>,
) -> Result<Response> {
    let (study, who) = participant(&state, &id, visitor).await?;
    if who.state != ParticipantState::Qualifying {
        return Ok(onwards(&page, &id));
    }
    let Some(item) = qualification::next_item(&state, &study, &who).await? else { return Ok(onwards(&page, &id)) };
    if item.position != sent.position {
        return Ok(onwards(&page, &id)); // Sent twice, or from another tab: what was said first stands.
    }
    let text = sent.text.replace("\r\n", "\n");
    let problem = match text.chars().count() {
        _ if text.trim().is_empty() => Some("Write a sentence first.".to_owned()),
        n if n > TEXT_LIMIT => Some(format!("Your text has {n} characters and {TEXT_LIMIT} fit.")),
        _ => None,
    };
    if problem.is_some() {
        let again = qualify(&state, page, study, item, text, problem)?;
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, again).into_response());
    }
    qualification::answer(&state, &study, &who, &item, &text).await?;
    Ok(onwards(&page, &id))
}

/// `GET /study/{study}/check`: an attention check.
pub(crate) async fn check(
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
    Guest(visitor): Guest,
) -> Result<Response> {
    let (study, who) = participant(&state, &id, visitor).await?;
    show_check(&state, page, study, &who, None).await
}

/// Whether an attention check comes next for a participant.
async fn is_check_due(state: &AppState, study: &Study, who: &Participant) -> Result<bool> {
    if who.state != ParticipantState::Teaching || study.state != StudyState::Open {
        return Ok(false);
    }
    let given = state.store.answers_in_study(&study.id, who.teacher).await?;
    Ok(matches!(participation::next(state, study, who, given).await?, Next::Check))
}

async fn show_check(
    state: &AppState,
    page: Page,
    study: Study,
    who: &Participant,
    problem: Option<String>,
) -> Result<Response> {
    let due = is_check_due(state, &study, who).await?;
    let at = who.attention_passed + who.attention_missed;
    let item = match due {
        true => state.store.attention_item(&study.id, (who.id, who.teacher), at).await?,
        false => None,
    };
    let Some(item) = item else { return Ok(onwards(&page, &study.id)) };
    let family = state.family(&item.family).ok_or(Error::NotFound("the task family"))?;
    let drawn = |choice| match choice {
        Choice::View(view) => {
            Ok::<_, RenderError>(Drawn { html: family.render(&view, Audience::Beside)?, words: None })
        }
        Choice::Demonstration(words) => Ok(Drawn { html: String::new(), words: Some(words) }),
    };
    let choices =
        item.choices.into_iter().map(|(execution, choice)| Ok((execution.0, drawn(choice)?))).collect::<Result<_>>()?;
    Ok(page::html(&CheckPage { page, study, family, medium: item.medium, text: item.text, choices, at, problem }))
}

/// Body of the attention check's form.
#[derive(Deserialize)]
pub(crate) struct Checked {
    at: u64,
    choice: Option<i64>,
}

/// `POST /study/{study}/check`.
pub(crate) async fn check_answer(
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    page: Page,
    Returned(visitor): Returned,
    Form(sent): Form<Checked>,
) -> Result<Response> {
    let (study, who) = participant(&state, &id, visitor).await?;
    let at = who.attention_passed + who.attention_missed;
    // Only a check that is due is answered, and only once.
    if sent.at != at || !is_check_due(&state, &study, &who).await? {
        return Ok(onwards(&page, &id));
    }
    let Some(choice) = sent.choice else {
        let problem = Some("Choose one of them first.".to_owned());
        let again = show_check(&state, page, study, &who, problem).await?;
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, again).into_response());
    };
    let item = state.store.attention_item(&id, (who.id, who.teacher), at).await?;
    if let Some(item) = item {
        let who = state.store.answer_attention_check(who.id, at, item.right.0 == choice).await?;
        let limit = u64::from(study.settings.attention.misses);
        if who.attention_missed > limit && who.state == ParticipantState::Teaching {
            participation::end(&state, &study, &who, ParticipantState::ScreenedOut).await?;
        }
    }
    Ok(onwards(&page, &id))
}
