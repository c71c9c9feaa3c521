//! Answers in other media than descriptions: how they are checked, and how their executions are drawn.

use crate::config::run::RatingScale;
use crate::family::{Audience, Fields};
use crate::protocol::Medium;
use crate::store::{AnswerKind, Response};
use crate::web::error::{Error, Result};
use crate::web::page::run_view::RunView;
use crate::web::services::teaching::{self, Given};
use crate::web::state::AppState;
use serde_json::Value;

/// Bytes that are kept of a demonstration which could not be finished.
const UNFINISHED: usize = 4096;

/// An execution as the page of the run's medium shows it, with what was given before: HTML and text. Who demonstrates sees where it
/// begins, and not what the agent did.
pub(crate) fn draw(view: &RunView, shown: &Value, given: &Value) -> Result<(String, String)> {
    if view.medium() != Medium::Demonstration {
        return Ok((view.family.render(shown, Audience::Teacher)?, view.family.render_text(shown)?));
    }
    Ok((view.family.render_demonstration(shown, given)?, String::new()))
}

/// The execution in sentences, for those who listen; nothing where people demonstrate, since it would say what the agent did.
pub(crate) fn spoken(view: &RunView, shown: &Value) -> Result<String> {
    match view.medium() {
        Medium::Demonstration => Ok(String::new()),
        _ => Ok(view.family.render_spoken(shown)?),
    }
}

/// The question to whoever says of an execution that nothing changed, although something did. Only who describes can say so.
pub(crate) fn doubt(view: &RunView, shown: &Value) -> Option<String> {
    (view.medium() == Medium::Description).then(|| teaching::question(view.family, shown)).flatten()
}

/// The fields of a demonstration in a form of another name than the page's own, with what was given before; nothing where they
/// cannot be drawn. Their ids stay apart from those of other forms.
pub(crate) fn fields_for(view: &RunView, shown: &Value, response: &Response, form: &str) -> String {
    let html = view.family.render_demonstration(shown, &given_before(response)).unwrap_or_else(|error| {
        tracing::warn!(%error, "the fields of a demonstration cannot be drawn");
        String::new()
    });
    let html = html.replace("form=\"describe\"", &format!("form=\"{form}\""));
    html.replace("id=\"show-", &format!("id=\"{form}-show-")).replace("for=\"show-", &format!("for=\"{form}-show-"))
}

/// The values of a stored response, for fields that show them again.
pub(crate) fn given_before(response: &Response) -> Value {
    response.demonstration().cloned().unwrap_or_default()
}

/// The demonstration and the rating that the fields of a plain form say.
pub(crate) fn of_form(view: &RunView, fields: &[(String, String)]) -> (Value, Option<f64>) {
    let rating = fields.iter().find(|(name, _)| name == "rating").and_then(|(_, value)| value.parse().ok());
    if view.medium() != Medium::Demonstration {
        return (Value::Null, rating);
    }
    let shown: Fields = fields
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix("show-")?.to_owned(), value.clone())))
        .collect();
    (view.family.demonstration_of(&shown), rating)
}

/// Checks what was given in the run's medium. The response, and the text that says the same where it is no description.
pub(crate) async fn check(state: &AppState, view: &RunView, given: &Given) -> Result<(Response, Option<String>)> {
    let answers = given.kind == AnswerKind::Described;
    match view.medium() {
        Medium::Description => Ok((Response::Text, None)),
        Medium::Rating if !answers => Ok((Response::Text, None)),
        Medium::Rating => {
            let scale = view.rating_scale();
            match given.rating.filter(|rating| scale.has(*rating)) {
                Some(rating) => Ok((Response::Rating(rating), Some(scale.words(rating)))),
                None if scale == RatingScale::Stars => Err(Error::change("empty", "Choose one to five stars first.")),
                None => Err(Error::change("empty", "Choose \u{201c}Yes\u{201d} or \u{201c}No\u{201d} first.")),
            }
        }
        Medium::Demonstration if given.demonstration.is_null() && !answers => Ok((Response::Text, None)),
        Medium::Demonstration if given.demonstration.is_null() => Err(Error::change(
            "empty",
            "Show first how it is done. If you can\u{2019}t, choose \u{201c}I can\u{2019}t show this\u{201d}.",
        )),
        Medium::Demonstration => {
            let (family, demonstration) = (view.family, given.demonstration.clone());
            let shown = state.store.view(given.execution).await?;
            // Looking for an edit that does what was shown takes some hundredths of a second.
            let checked = tokio::task::spawn_blocking(move || family.check_demonstration(&shown, &demonstration))
                .await
                .map_err(|error| Error::Panic(error.to_string()))?;
            match checked {
                Ok(checked) => Ok((Response::Demonstration(checked.data), Some(checked.text))),
                Err(sentence) if answers => Err(Error::change("demonstration", sentence)),
                // Who cannot show it may have begun to.
                Err(_) if given.demonstration.to_string().len() <= UNFINISHED => {
                    Ok((Response::Demonstration(given.demonstration.clone()), None))
                }
                Err(_) => Ok((Response::Text, None)),
            }
        }
    }
}
