//! The researcher's page of a run: everything about it on one screen, live.

use crate::config::run::AlgorithmConfig;
use crate::ids::RunId;
use crate::store::MadeBy;
use crate::web::error::Result;
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::Path;
use crate::web::format;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

/// One line of the configuration.
#[derive(Debug, PartialEq)]
struct Setting {
    name: String,
    value: String,
    /// Whether it differs from the preset.
    differs: bool,
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    page: Page,
    view: RunView,
    settings: Vec<Setting>,
    try_fields: String,
    /// Whether this server can resume a run that has ended.
    can_start: bool,
    in_trash: bool,
    /// Whether it belongs to a table of `iliad reproduce`.
    /// Whether this server can go on with the run.
    goes_on_here: bool,
    of_reproduce: bool,
    /// Data for the script, as JSON.
    data: String,
}

impl RunPage {
    /// The number of episodes that is proposed to a run that has ended: twice what it had.
    fn more_episodes(&self) -> u64 {
        let spent = self.view.status.episodes.max(1);
        if self.view.spent() { self.view.budget().max(spent).saturating_mul(2) } else { self.view.budget() }
    }
}

/// Key of a configuration that lists what differs from the preset.
const DIFFERENCES: &str = "differences";

/// Flattens a configuration into `a.b = value` lines; what differs from the preset comes first.
fn settings(config: &Value) -> Vec<Setting> {
    fn flatten(prefix: &str, value: &Value, out: &mut Vec<(String, String)>) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (key, value) in map {
                    let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                    flatten(&name, value, out);
                }
            }
            Value::Object(_) => {}
            Value::String(text) if text.is_empty() => out.push((prefix.to_owned(), "(empty)".to_owned())),
            Value::String(text) => out.push((prefix.to_owned(), text.clone())),
            other => out.push((prefix.to_owned(), other.to_string())),
        }
    }
    let (mut all, mut changed) = (Vec::new(), Vec::new());
    if let Value::Object(map) = config {
        for (key, value) in map {
            flatten(
                if key == DIFFERENCES { "" } else { key },
                value,
                if key == DIFFERENCES { &mut changed } else { &mut all },
            );
        }
    }
    let differs = |name: &str| {
        changed.iter().any(|(changed, _)| {
            changed == name || changed.starts_with(&format!("{name}.")) || name.starts_with(&format!("{changed}."))
        })
    };
    let mut lines: Vec<Setting> =
        all.into_iter().map(|(name, value)| Setting { differs: differs(&name), name, value }).collect();
    let missing: Vec<Setting> = changed
        .iter()
        .filter(|(name, _)| {
            !lines.iter().any(|line| line.name == *name || name.starts_with(&format!("{}.", line.name)))
        })
        .map(|(name, value)| Setting { name: name.clone(), value: value.clone(), differs: true })
        .collect();
    lines.extend(missing);
    lines.sort_by_key(|line| !line.differs);
    lines
}

/// How the run learns, from its settings; the wording of the page depends on it.
fn learns(view: &RunView) -> Value {
    let algorithm: AlgorithmConfig = serde_json::from_value(view.run.config["algorithm"].clone()).unwrap_or_default();
    json!({
        "algorithm": algorithm.name.typed(),
        "feedback": algorithm.name.feedback().words(),
        "people": algorithm.name.taught_by_people(),
        "asks": algorithm.ask.candidates,
        "shuffled": algorithm.shuffle_descriptions,
    })
}

/// `GET /runs/{run}`.
pub(crate) async fn page(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    page: Page,
) -> Result<Response> {
    let view = RunView::load(&state, &run).await?;
    let data = json!({
        "run": view.run.id,
        "api": page.url(&format!("/api/v1/runs/{}", view.run.id)),
        "runs": page.url("/api/v1/runs"),
        "learned": page.url(&format!("/runs/{}/learned", view.run.id)),
        "events": page.url("/api/v1/events"),
        "worker": page.asset("js/stream-worker.js"),
        "budget": view.budget(),
        "page": page.url(&format!("/runs/{}", format::encode(&view.run.id))),
        "new": page.url("/runs/new"),
        "learns": learns(&view),
        "live": view.live,
        "can_start": state.launcher.is_some() && view.label.trashed_at.is_none(),
        "resumes": view.label.trashed_at.is_none() && view.label.made_by.goes_on_here(),
    });
    Ok(page::html(&RunPage {
        settings: settings(&view.run.config),
        try_fields: view.family.render_try_fields()?,
        data: data.to_string(),
        can_start: state.launcher.is_some(),
        in_trash: view.label.trashed_at.is_some(),
        goes_on_here: view.label.made_by.goes_on_here(),
        of_reproduce: view.label.made_by == MadeBy::Reproduce,
        page,
        view,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_from_the_preset_come_first() {
        let config = json!({"adel": {"lambda": 0.5, "beta": 1.0}, "seed": 3, "differences": {"adel.lambda": 0.5}});
        let lines = settings(&config);
        assert_eq!((lines[0].name.as_str(), lines[0].value.as_str(), lines[0].differs), ("adel.lambda", "0.5", true));
        assert_eq!(lines.iter().filter(|line| line.differs).count(), 1);
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn a_nested_list_of_differences_is_understood_too() {
        let config =
            json!({"adel": {"lambda": 0.5}, "differences": {"adel": {"lambda": {"preset": 0.1, "value": 0.5}}}});
        let lines = settings(&config);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].differs);
    }

    #[test]
    fn no_differences_are_no_line() {
        let lines = settings(&json!({"a": "", "differences": {}}));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!((lines[0].value.as_str(), lines[0].differs), ("(empty)", false));
    }

    #[test]
    fn a_configuration_without_differences_is_listed_whole() {
        assert_eq!(settings(&json!({"a": 1, "b": {"c": "x"}})).len(), 2);
        assert!(settings(&Value::Null).is_empty());
    }
}
