//! Figures for Prometheus.

use crate::config::server::MetricsReaders;
use crate::run::RunState;
use crate::web::error::{Error, Result};
use crate::web::extractors::access;
use crate::web::metrics::{Exposition, Metrics, machine};
use crate::web::state::AppState;
use axum::Extension;
use axum::extract::{FromRequestParts, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Whoever may read the figures, by the setting.
pub(crate) struct Reader;

impl FromRequestParts<AppState> for Reader {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        match state.settings.metrics {
            MetricsReaders::Nobody => Err(Error::NotFound("the page")),
            MetricsReaders::Everyone => Ok(Reader),
            MetricsReaders::Researchers => access::check(state, parts).map(|_| Reader),
        }
    }
}

/// `GET /metrics`.
pub(crate) async fn show(
    _: Reader,
    State(state): State<AppState>,
    Extension(metrics): Extension<Arc<Metrics>>,
) -> Result<Response> {
    let mut page = Exposition::default();
    page.family("iliad_build_info", "gauge", "The version that runs.");
    page.sample("iliad_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    metrics.write(&mut page);
    let on_gpu = write_runs(&state, &mut page).await?;
    write_store(&state, &mut page).await?;
    write_copies(&state, &mut page);
    machine::write(&mut page, on_gpu).await;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], page.into_text()).into_response())
}

/// Writes the figures of the runs that are alive. Whether one of them is on a GPU.
async fn write_runs(state: &AppState, page: &mut Exposition) -> Result<bool> {
    let handles: Vec<_> = state.runs.ids().iter().filter_map(|id| state.runs.get(id)).collect();
    let statuses: Vec<_> = handles.iter().map(|handle| handle.status.borrow().clone()).collect();
    let class = |run: &RunState| match run {
        RunState::Starting { .. } => "starting",
        RunState::Running => "running",
        RunState::Paused => "paused",
        RunState::Stopped => "stopped",
        RunState::Failed { .. } => "failed",
    };
    page.family("iliad_runs", "gauge", "Runs of this process, by state.");
    for state in ["starting", "running", "paused", "stopped", "failed"] {
        let count = statuses.iter().filter(|status| class(&status.state) == state).count();
        page.sample("iliad_runs", &[("state", state)], count as f64);
    }
    type Figure = fn(&crate::run::Status) -> Option<f64>;
    let figures: [(&str, &str, &str, Figure); 6] = [
        ("iliad_run_updates_total", "counter", "Iterations of the trainer.", |s| Some(s.update as f64)),
        ("iliad_run_practice_steps", "gauge", "Practice steps since the last update.", |s| Some(s.practice as f64)),
        ("iliad_run_episodes_total", "counter", "Episodes.", |s| Some(s.episodes as f64)),
        ("iliad_run_episodes_per_second", "gauge", "Episodes a second, of late.", |s| Some(s.episodes_per_second)),
        ("iliad_run_training_seconds_total", "counter", "Time of training, without pauses.", |s| Some(s.seconds)),
        ("iliad_run_validation_success", "gauge", "The latest success on validation tasks.", |s| {
            s.validation.map(|rate| rate.value)
        }),
    ];
    for (name, kind, help, figure) in figures {
        page.family(name, kind, help);
        for status in &statuses {
            if let Some(value) = figure(status) {
                page.sample(name, &[("run", status.run.as_str())], value);
            }
        }
    }
    const USED: &str = "iliad_run_descriptions_total";
    page.family(USED, "counter", "Descriptions that the run has learnt from, by source.");
    for status in &statuses {
        let sources = [("human", status.descriptions_human), ("simulated", status.descriptions_simulated)];
        for (source, count) in sources {
            page.sample(USED, &[("run", status.run.as_str()), ("source", source)], count as f64);
        }
    }
    const QUEUE: &str = "iliad_run_queue_executions";
    let mut people = Vec::new();
    page.family(QUEUE, "gauge", "Executions for people: fresh ones, and those that somebody is at.");
    for status in &statuses {
        let pool = state.store.pool(&status.run).await?;
        for (place, count) in [("open", pool.open), ("leased", pool.leased)] {
            page.sample(QUEUE, &[("run", status.run.as_str()), ("state", place)], count as f64);
        }
        people.push(pool.people);
    }
    page.family("iliad_run_people", "gauge", "People who are there.");
    for (status, people) in statuses.iter().zip(people) {
        page.sample("iliad_run_people", &[("run", status.run.as_str())], people as f64);
    }
    page.family("iliad_run_device", "gauge", "The device of the run.");
    for status in &statuses {
        page.sample("iliad_run_device", &[("run", status.run.as_str()), ("device", &status.device)], 1.0);
    }
    Ok(statuses.iter().any(|status| status.device.starts_with("cuda")))
}

/// Writes how far the copies of checkpoints are, where any are made.
fn write_copies(state: &AppState, page: &mut Exposition) {
    let Some(figures) = state.launcher.as_ref().and_then(|launcher| launcher.copy_figures()) else { return };
    let waiting = Some(figures.waiting as f64);
    page.single(
        "iliad_checkpoint_copies_waiting",
        "gauge",
        "Runs whose newest checkpoint is not in the object store yet.",
        waiting,
    );
    let failures = Some(figures.failures as f64);
    page.single("iliad_checkpoint_copy_failures_total", "counter", "Copies of checkpoints that failed.", failures);
}

/// Writes how much is stored, and the room that is left.
async fn write_store(state: &AppState, page: &mut Exposition) -> Result<()> {
    let stored = state.store.export_count(None).await?;
    page.single("iliad_answers_total", "counter", "Stored answers, simulated ones included.", Some(stored as f64));
    let file = state.store.file();
    let bytes = file.as_ref().and_then(|file| std::fs::metadata(file).ok()).map(|found| found.len() as f64);
    page.single("iliad_database_bytes", "gauge", "Size of the database file.", bytes);
    let free = state.data_folder().and_then(|folder| fs4::available_space(folder).ok()).map(|free| free as f64);
    page.single("iliad_data_free_bytes", "gauge", "Room on the disk of the data folder.", free);
    Ok(())
}
