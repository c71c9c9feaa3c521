//! Back: a person's last answers, to be read again and corrected.

use crate::family::Audience;
use crate::ids::{AnswerId, ExecutionId, RunId};
use crate::protocol::Medium;
use crate::store::{AnswerKind, OwnAnswer, StoreError};
use crate::web::error::{Error, Result};
use crate::web::extractors::cookie::new_token;
use crate::web::extractors::input::{Form, Path, Query};
use crate::web::extractors::visitor::{Guest, Returned, Visitor};
use crate::web::format;
use crate::web::page::panel::Panel;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page};
use crate::web::services::media;
use crate::web::services::teaching::{self, Given, OWN_ANSWERS};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

struct Item {
    own: OwnAnswer,
    html: String,
    /// Fields in which a demonstration is corrected.
    fields: String,
    /// Text in the box of the form.
    text: String,
    key: String,
    problem: Option<String>,
    /// Whether the person is asked if they mean it.
    doubt: bool,
}

impl Item {
    /// Who said what; `nothing` are the family's words for an execution that did nothing.
    fn said(&self, nothing: &str, medium: &Medium) -> String {
        match self.own.kind {
            AnswerKind::Described if self.own.fulfilled => "You said that it did what was asked".to_owned(),
            AnswerKind::Described => match medium {
                Medium::Description => "You wrote".to_owned(),
                Medium::Demonstration => "You showed".to_owned(),
                Medium::Rating => "You rated".to_owned(),
            },
            AnswerKind::NothingChanged => format!("You said that {}", format::lower(nothing)),
            AnswerKind::CannotDescribe => match medium {
                Medium::Description => "You said that it cannot be described".to_owned(),
                Medium::Demonstration => "You said that it cannot be shown".to_owned(),
                Medium::Rating => "You said that it cannot be rated".to_owned(),
            },
            AnswerKind::Skipped => "You skipped this".to_owned(),
        }
    }

    /// Whether the agent has learned from it. An update takes in other kinds than descriptions, but learns nothing from them.
    fn learnt(&self) -> bool {
        self.own.kind == AnswerKind::Described && self.own.used_in_update.is_some()
    }

    /// Says whether the agent has learned from the answer.
    fn fate(&self) -> String {
        match (self.own.kind, self.own.used_in_update) {
            (AnswerKind::Described, Some(update)) => {
                format!("the agent has learned from it (update {})", format::count(&update))
            }
            (AnswerKind::Described, None) => "the agent has not learned from it yet".to_owned(),
            _ => "nothing is learned from this".to_owned(),
        }
    }
}

#[derive(Template)]
#[template(path = "answers.html")]
struct AnswersPage {
    page: Page,
    panel: Panel,
    view: RunView,
    items: Vec<Item>,
    /// The answer that took the place of another just now.
    corrected: Option<AnswerId>,
    /// The answer that could not be taken back.
    learnt: Option<AnswerId>,
    /// Whether an answer was withdrawn from the data set just now.
    withdrawn: bool,
    /// Text whose answer is no longer in the list, with the reason why it was not stored.
    homeless: Option<(String, String)>,
}

/// Query of the page: the answer that was just corrected, could not be taken back, or was withdrawn.
#[derive(Deserialize)]
pub(crate) struct Corrected {
    corrected: Option<AnswerId>,
    learnt: Option<AnswerId>,
    withdrawn: Option<AnswerId>,
}

async fn items(state: &AppState, view: &RunView, visitor: &Visitor) -> Result<Vec<Item>> {
    let own = state.store.own_answers(&view.run.id, visitor.teacher.id, OWN_ANSWERS).await?;
    let mut items = Vec::new();
    for own in own {
        let (describes, demonstrates) = (view.medium() == Medium::Description, view.medium() == Medium::Demonstration);
        let text = if describes && own.kind == AnswerKind::Described && !own.fulfilled {
            own.text.clone()
        } else {
            String::new()
        };
        let html = view.family.render(&own.view, Audience::Teacher).unwrap_or_else(|error| {
            tracing::warn!(%error, answer = %own.answer, "an own answer cannot be drawn");
            String::new()
        });
        let fields = match demonstrates {
            true => media::fields_for(view, &own.view, &own.response, &format!("correct-{}", own.answer)),
            false => String::new(),
        };
        let key = new_token()?;
        items.push(Item { own, html, fields, text, key, problem: None, doubt: false });
    }
    Ok(items)
}

/// `GET /teach/{run}/answers`.
pub(crate) async fn page(
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    Query(Corrected { corrected, learnt, withdrawn }): Query<Corrected>,
    page: Page,
    Guest(visitor): Guest,
) -> Result<Response> {
    let view = RunView::load(&state, &run).await?;
    let items = match &visitor {
        Some(visitor) => items(&state, &view, visitor).await?,
        None => Vec::new(),
    };
    let (panel, withdrawn) = (Panel::of(&view), withdrawn.is_some());
    Ok(page::html(&AnswersPage { page, panel, view, items, corrected, learnt, withdrawn, homeless: None }))
}

/// Body that the form of one answer sends.
struct Sent {
    execution: ExecutionId,
    client_key: String,
    text: String,
    /// Sent once the person was asked whether they mean it.
    confirmed: Option<String>,
}

impl Sent {
    fn read(fields: &[(String, String)]) -> Result<Sent> {
        let field = |name: &str| fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone());
        let missing = |name: &str| Error::Unreadable(format!("the form has no field {name}, or not a fitting one"));
        Ok(Sent {
            execution: field("execution")
                .and_then(|key| serde_json::from_str(&key).ok())
                .ok_or_else(|| missing("execution"))?,
            client_key: field("client_key").ok_or_else(|| missing("client_key"))?,
            text: field("text").unwrap_or_default(),
            confirmed: field("confirmed"),
        })
    }
}

/// `POST /teach/{run}/answers/{answer}`: the plain form. An error shows the list again with the text in its box.
pub(crate) async fn correct(
    State(state): State<AppState>,
    Path((run, answer)): Path<(RunId, AnswerId)>,
    page: Page,
    visitor: Result<Returned>,
    Form(fields): Form<Vec<(String, String)>>,
) -> Result<Response> {
    let view = RunView::load(&state, &run).await?;
    let sent = Sent::read(&fields)?;
    let (demonstration, rating) = media::of_form(&view, &fields);
    let text = sent.text.replace("\r\n", "\n");
    let visitor = match visitor.and_then(|Returned(visitor)| visitor.ok_or(Error::NotFound("the answer"))) {
        Ok(visitor) => visitor,
        // Nobody knows whose list this is, but the words must come back.
        Err(error) => {
            let problem = error.problem();
            let status = problem.status();
            let homeless = Some((text, problem.detail));
            let again = AnswersPage {
                page,
                panel: Panel::of(&view),
                view,
                items: Vec::new(),
                corrected: None,
                learnt: None,
                withdrawn: false,
                homeless,
            };
            return Ok((status, page::html(&again)).into_response());
        }
    };
    let given = |client_key: String| Given {
        client_key,
        execution: sent.execution,
        kind: AnswerKind::Described,
        text: text.clone(),
        shown_at: None,
        active_ms: None,
        idle_ms: None,
        confirmed: sent.confirmed.is_some(),
        fulfilled: false,
        first_text: None,
        demonstration: demonstration.clone(),
        rating,
    };
    let stored = match teaching::correct(&state, &view, &visitor, answer, given(sent.client_key.clone())).await {
        Err(Error::Store(StoreError::KeyReused { .. })) => {
            // A correction that arrived before, and other words since: an answer to the same execution replaces it.
            let key = teaching::key_of_words(&sent.client_key, &format!("{text}{demonstration}{rating:?}"));
            teaching::answer(&state, &view, &visitor, given(key)).await
        }
        other => other,
    };
    let error = match stored {
        Ok(thanks) => {
            let to = page.url(&format!("/teach/{run}/answers?corrected={}", thanks.answer));
            return Ok(Redirect::to(&to).into_response());
        }
        Err(error) => error,
    };
    let doubt = matches!(error, Error::Unconfirmed(_));
    let problem = error.problem();
    let status = problem.status();
    let mut items = items(&state, &view, &visitor).await?;
    let mut homeless = None;
    match items.iter_mut().find(|item| item.own.answer == answer) {
        Some(item) => {
            item.text = text;
            (item.problem, item.doubt) = (Some(problem.detail), doubt);
        }
        // Corrected elsewhere meanwhile: the list holds the newest version, and these words have no box there.
        None => homeless = Some((text, problem.detail)),
    }
    Ok((
        status,
        page::html(&AnswersPage {
            page,
            panel: Panel::of(&view),
            view,
            items,
            corrected: None,
            learnt: None,
            withdrawn: false,
            homeless,
        }),
    )
        .into_response())
}
