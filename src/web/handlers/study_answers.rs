//! A teacher's own answers in a study: all of them, page by page, each of which can be withdrawn from the data set.

use crate::family::Audience;
use crate::ids::{AnswerId, StudyId};
use crate::store::{AnswerKind, Study, StudyOwnAnswer};
use crate::web::error::Result;
use crate::web::extractors::input::{Path, Query};
use crate::web::extractors::visitor::{Guest, Returned};
use crate::web::format;
use crate::web::handlers::study::participant;
use crate::web::page::{self, Page};
use crate::web::services::participation;
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

/// Answers on a page.
const LENGTH: usize = 20;

struct Item {
    answer: StudyOwnAnswer,
    html: String,
    /// Sentence in front of the text.
    said: String,
}

impl Item {
    /// Whether the agent has learned from it.
    fn learnt(&self) -> bool {
        self.answer.own.kind == AnswerKind::Described && self.answer.own.used_in_update.is_some()
    }

    /// Its fate.
    fn fate(&self) -> &'static str {
        match (self.answer.own.kind, self.learnt()) {
            (AnswerKind::Described, true) => "the agent has learned from it",
            (AnswerKind::Described, false) if self.answer.retracted_at.is_some() => "the agent does not learn from it",
            (AnswerKind::Described, false) => "the agent has not learned from it yet",
            _ => "nothing is learned from this",
        }
    }
}

#[derive(Template)]
#[template(path = "study/answers.html")]
struct AnswersPage {
    page: Page,
    study: Study,
    pseudonym: String,
    items: Vec<Item>,
    total: u64,
    /// This page, from 0, and how many there are.
    at: u64,
    pages: u64,
    /// The answer that was withdrawn just now, and whether the agent had learned from it.
    withdrawn: Option<(AnswerId, bool)>,
    scripts: Vec<&'static str>,
}

/// Query of the page.
#[derive(Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    page: u64,
    withdrawn: Option<AnswerId>,
    #[serde(default)]
    learnt: u8,
}

/// `GET /study/{study}/answers`.
pub(crate) async fn page(
    State(state): State<AppState>,
    Path(id): Path<StudyId>,
    Query(wanted): Query<Wanted>,
    page: Page,
    Guest(visitor): Guest,
) -> Result<Response> {
    let (study, who) = participant(&state, &id, visitor).await?;
    let own = state.store.own_answers_in_study(&id, who.teacher, wanted.page, LENGTH).await?;
    let (mut items, mut scripts) = (Vec::new(), Vec::new());
    for answer in own.answers {
        let family = state.family(&answer.family);
        let html = family.map(|family| family.render(&answer.own.view, Audience::Beside));
        let html = html.and_then(std::result::Result::ok).unwrap_or_default();
        if let Some(script) = family.and_then(|family| family.script()).filter(|script| !scripts.contains(script)) {
            scripts.push(script);
        }
        let nothing = family.map_or("Nothing changed", |family| family.nothing_changed());
        let said = match answer.own.kind {
            AnswerKind::Described if answer.own.fulfilled => "You said that it did what was asked".to_owned(),
            AnswerKind::Described if answer.own.response.demonstration().is_some() => {
                "You showed how it is done".to_owned()
            }
            AnswerKind::Described => match answer.own.response.rating() {
                Some(rating) => format!("You rated it {:.0}%", rating * 100.0),
                None => "You wrote".to_owned(),
            },
            AnswerKind::NothingChanged => format!("You said that {}", format::lower(nothing)),
            AnswerKind::CannotDescribe => "You said that it cannot be described".to_owned(),
            AnswerKind::Skipped => "You skipped this".to_owned(),
        };
        items.push(Item { answer, html, said });
    }
    let withdrawn = wanted.withdrawn.map(|answer| (answer, wanted.learnt != 0));
    Ok(page::html(&AnswersPage {
        page,
        study,
        pseudonym: who.pseudonym(),
        items,
        total: own.total,
        at: wanted.page,
        pages: own.total.div_ceil(LENGTH as u64),
        withdrawn,
        scripts,
    }))
}

/// Query of the button: the page that it stands on.
#[derive(Deserialize)]
pub(crate) struct From {
    #[serde(default)]
    page: u64,
}

/// `POST /study/{study}/answers/{answer}/withdraw`: it leaves the data set. Doing it twice does it once.
pub(crate) async fn withdraw(
    State(state): State<AppState>,
    Path((id, answer)): Path<(StudyId, AnswerId)>,
    Query(from): Query<From>,
    page: Page,
    Returned(visitor): Returned,
) -> Result<Response> {
    let (_, who) = participant(&state, &id, visitor).await?;
    state.store.answer_in_study(&id, answer, who.teacher).await?;
    let retracted = state.store.retract(answer, who.teacher).await?;
    let learnt = u8::from(retracted.learnt_in.is_some());
    let path = participation::path(&id);
    let to = format!("{path}/answers?page={}&withdrawn={answer}&learnt={learnt}#answer-{answer}", from.page);
    Ok(Redirect::to(&page.url(&to)).into_response())
}
