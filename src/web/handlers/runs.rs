//! All runs, and a form that starts another.

use crate::config::run::LARGEST_SEED;
use crate::config::run::TeacherMode;
use crate::ids::RunId;
use crate::launch::{NewRun, PresetInfo};
use crate::run::RunState;
use crate::web::error::{Error, Problem, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Form, Path, Query};
use crate::web::format;
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page};
use crate::web::services::launching;
use crate::web::services::run_list::{self, ORDERS, STATES, Wanted};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

/// Fields of the form that starts a run.
#[derive(Deserialize)]
pub(crate) struct Wish {
    #[serde(default)]
    preset: String,
    #[serde(default)]
    seed: String,
    #[serde(default)]
    mode: String,
    #[serde(default)]
    share: String,
    #[serde(default)]
    settings: String,
}

impl RunsPage {
    /// The states by which the list is filtered.
    fn states(&self) -> [(&'static str, &'static str); 4] {
        STATES
    }

    /// The orders of the list.
    fn orders(&self) -> [(&'static str, &'static str); 6] {
        ORDERS
    }
}

impl Wish {
    fn read(&self) -> Result<NewRun> {
        let seed = self.seed.trim().parse().map_err(|_| {
            Error::change(
                "seed",
                "The seed must be a whole number, for example 1. Another seed makes another run of the same kind.",
            )
        })?;
        let percent = || self.share.trim().parse::<f64>().ok().filter(|share| (0.0..=100.0).contains(share));
        let teacher = match self.mode.as_str() {
            "human" => Some(TeacherMode::Human),
            "simulated" => Some(TeacherMode::Simulated),
            "mixed" => {
                let share = percent().ok_or_else(|| {
                    Error::change("share", "The share that goes to people must lie between 0 and 100 percent.")
                })?;
                Some(TeacherMode::Mixed { share: share / 100.0 })
            }
            _ => None,
        };
        let set = self.settings.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        Ok(NewRun { preset: self.preset.clone(), seed, teacher, set })
    }
}

/// A preset as the form offers it.
struct Choice {
    info: PresetInfo,
    chosen: bool,
}

impl Choice {
    /// The preset's own name, without the family's.
    fn name(&self) -> &str {
        self.info.name.split_once('/').map_or(&self.info.name, |(_, name)| name)
    }

    /// Its sentence without the marks of code, which only a terminal shows as such.
    fn about(&self) -> String {
        plain(&self.info.about)
    }

    /// Whether a corpus is what is missing.
    fn needs_corpus(&self) -> bool {
        self.info.missing.as_deref().is_some_and(|sentence| sentence.contains("task.path"))
    }

    /// Why it cannot be started as it is.
    fn missing(&self) -> Option<String> {
        self.info.missing.as_deref().map(plain)
    }

    fn mode(&self) -> &'static str {
        mode(self.info.teacher)
    }
}

/// A sentence without the marks of code.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

fn mode(teacher: TeacherMode) -> &'static str {
    match teacher {
        TeacherMode::Human => "human",
        TeacherMode::Simulated => "simulated",
        TeacherMode::Mixed { .. } => "mixed",
    }
}

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    page: Page,
    runs: Vec<RunView>,
    /// How many runs there are, those that are left out included.
    all: u64,
    /// How many are shown.
    shown: u64,
    /// How many of all are archived.
    archived: u64,
    tags: Vec<String>,
    families: Vec<(&'static str, &'static str)>,
    wanted: Wanted,
    presets: Vec<Choice>,
    wish: Wish,
    problem: Option<String>,
    /// Runs that learn right now and share this machine.
    learning: u64,
}

async fn show(
    state: &AppState,
    page: Page,
    wanted: Wanted,
    wish: Option<Wish>,
    problem: Option<String>,
) -> Result<Response> {
    let runs = RunView::all(state).await?;
    let presets = state.launcher.as_ref().map(|launcher| launcher.presets()).unwrap_or_default();
    let wish = wish.unwrap_or_else(|| {
        // A seed that was not used yet: the same seed would make the same run again.
        let seed = runs.iter().map(|view| view.run.seed).max().map_or(1, |seed| seed.saturating_add(1));
        let first = presets.first();
        Wish {
            preset: first.map(|preset| preset.name.clone()).unwrap_or_default(),
            seed: seed.min(LARGEST_SEED).to_string(),
            mode: first.map(|preset| mode(preset.teacher)).unwrap_or_default().to_owned(),
            share: "30".to_owned(),
            settings: String::new(),
        }
    });
    let presets = presets.into_iter().map(|info| Choice { chosen: info.name == wish.preset, info }).collect();
    let at_work = |view: &&RunView| matches!(view.status.state, RunState::Starting { .. } | RunState::Running);
    let learning = runs.iter().filter(|view| !view.ended()).filter(at_work).count() as u64;
    let (all, archived) =
        (runs.len() as u64, runs.iter().filter(|view| view.label.archived_at.is_some()).count() as u64);
    let (tags, families) = (run_list::tags(&runs), run_list::families(&runs));
    let runs = wanted.of(runs);
    Ok(page::html(&RunsPage {
        page,
        shown: runs.len() as u64,
        runs,
        all,
        archived,
        tags,
        families,
        wanted,
        presets,
        wish,
        problem,
        learning,
    }))
}

/// `GET /runs`: the runs that are asked for, which are all but the archived ones where nothing else is said.
pub(crate) async fn page(
    _: Steering,
    State(state): State<AppState>,
    page: Page,
    Query(wanted): Query<Wanted>,
) -> Result<Response> {
    show(&state, page, wanted, None, None).await
}

/// Leads to the page of a run that was started, or gives the problem for the form, which then keeps its values.
pub(crate) fn begun(page: &Page, started: Result<RunId>) -> std::result::Result<Response, Problem> {
    match started {
        Ok(id) => Ok(Redirect::to(&page.url(&format!("/runs/{}", format::encode(&id)))).into_response()),
        Err(error) => {
            let problem = error.problem();
            if problem.status >= 500 {
                tracing::error!(%error, "a run could not be started");
            }
            Err(problem)
        }
    }
}

/// `POST /runs`: the form. What cannot be used comes back with the form as it was.
pub(crate) async fn create(
    _: Steering,
    State(state): State<AppState>,
    page: Page,
    Form(wish): Form<Wish>,
) -> Result<Response> {
    let started = match wish.read() {
        Ok(new) => launching::start(&state, new).await,
        Err(error) => Err(error),
    };
    let problem = match begun(&page, started) {
        Ok(reply) => return Ok(reply),
        Err(problem) => problem,
    };
    let status = problem.status();
    Ok((status, show(&state, page, Wanted::default(), Some(wish), Some(plain(&problem.detail))).await?).into_response())
}

/// `POST /runs/{run}/resume` and, by its older name, `…/go-on`: the button without a script, for a run that has ended.
pub(crate) async fn resume(
    _: Steering,
    State(state): State<AppState>,
    Path(run): Path<RunId>,
    page: Page,
) -> Result<Response> {
    launching::resume_ended(&state, &run).await?;
    Ok(Redirect::to(&page.url(&format!("/runs/{}", format::encode(&run)))).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(seed: &str, mode: &str, share: &str) -> Result<NewRun> {
        let (seed, mode, share) = (seed.into(), mode.into(), share.into());
        Wish { preset: "regex/tiny".into(), seed, mode, share, settings: " a=1 \r\n\r\nb=x=y".into() }.read()
    }

    #[test]
    fn forms_are_read() {
        assert_eq!(wish(" 7 ", "mixed", "25").unwrap().teacher, Some(TeacherMode::Mixed { share: 0.25 }));
        assert_eq!(
            wish("0", "human", "").unwrap(),
            NewRun {
                preset: "regex/tiny".into(),
                seed: 0,
                teacher: Some(TeacherMode::Human),
                set: vec!["a=1".into(), "b=x=y".into()]
            }
        );
        assert_eq!(wish("1", "", "").unwrap().teacher, None);
    }

    #[test]
    fn what_cannot_be_used_says_what_to_change() {
        for (seed, mode, share, code) in [
            ("-1", "human", "", "seed"),
            ("x", "", "", "seed"),
            ("1", "mixed", "101", "share"),
            ("1", "mixed", "NaN", "share"),
        ] {
            let problem = wish(seed, mode, share).unwrap_err().problem();
            assert_eq!((problem.code, problem.status), (code, 422), "{seed} {mode} {share}");
        }
    }
}
