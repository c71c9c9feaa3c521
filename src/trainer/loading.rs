//! How far the loading of a run is: the step that is under way, the share done of it, and the time that is left.
//!
//! The rest of a step is estimated by its pace, and the steps after it by how long they took when such a run was loaded before.
//! Each run's folder remembers that, and a new run asks the folders beside its own.

use super::event_sink::EventSink;
use crate::config::run::RunConfig;
use crate::output::file;
use crate::run::{RunState, remaining, seconds_left};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Name of the file in a run's folder.
pub(super) const FILE: &str = "loading.json";

/// Folders of other runs that are looked into at most.
const MOST_BESIDE: usize = 200;

/// A pace is judged by from this share and this time on.
const JUDGED_FROM: f64 = 0.05;
const JUDGED_AFTER: Duration = Duration::from_millis(200);

/// Time between two publications within a step.
const INTERVAL: Duration = Duration::from_millis(200);

/// Parts in which a share is counted.
const PARTS: u64 = 1_000_000;

/// How long the steps of a loading took, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Record {
    /// Says what was loaded: a run of the same world and model on the same device.
    key: String,
    steps: Vec<(String, f64)>,
}

impl Record {
    fn read(path: &Path, key: &str) -> Option<Record> {
        let record: Record = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        let sound = record.steps.iter().all(|(_, seconds)| seconds.is_finite() && *seconds >= 0.0);
        (record.key == key && sound).then_some(record)
    }

    /// The record of this folder, or the newest one among the folders beside it.
    fn find(folder: &Path, key: &str) -> Option<Record> {
        if let Some(own) = Record::read(&folder.join(FILE), key) {
            return Some(own);
        }
        let beside = std::fs::read_dir(folder.parent()?).ok()?.take(MOST_BESIDE).flatten();
        let mut found: Vec<(SystemTime, PathBuf)> = beside
            .filter_map(|entry| {
                let path = entry.path().join(FILE);
                Some((std::fs::metadata(&path).ok()?.modified().ok()?, path))
            })
            .collect();
        found.sort();
        found.iter().rev().find_map(|(_, path)| Record::read(path, key))
    }

    fn seconds(&self, step: &str) -> Option<f64> {
        self.steps.iter().find(|(name, _)| name == step).map(|(_, seconds)| *seconds)
    }

    /// Seconds of the steps after one.
    fn after(&self, step: &str) -> f64 {
        let mut steps = self.steps.iter();
        steps.by_ref().find(|(name, _)| name == step);
        steps.map(|(_, seconds)| seconds).sum()
    }
}

/// The loading of a run.
pub(super) struct Loading {
    path: PathBuf,
    before: Option<Record>,
    now: Record,
    step: String,
    begun: Instant,
    published: Instant,
}

impl Loading {
    /// Begins. `resumed`: from a checkpoint, which needs other steps than a new run.
    pub(super) fn begin(folder: &Path, config: &RunConfig, device: &str, resumed: bool) -> Loading {
        let made_of = serde_json::json!([
            env!("CARGO_PKG_VERSION"),
            config.family,
            config.task,
            config.model,
            config.teacher.models,
            config.algorithm.name,
            config.algorithm.pretrain_updates,
            config.algorithm.prior_examples,
            device,
            resumed,
        ]);
        let key = hex::encode(&Sha256::digest(made_of.to_string())[..8]);
        let before = Record::find(folder, &key);
        let (now, begun) = (Record { key, steps: Vec::new() }, Instant::now());
        Loading { path: folder.join(FILE), before, now, step: String::new(), begun, published: begun }
    }

    /// A step begins, and the one before it has ended.
    pub(super) fn step(&mut self, what: &str, events: &mut EventSink) {
        self.end_step();
        what.clone_into(&mut self.step);
        self.publish(None, events);
        tracing::info!("{what}{}", remaining(self.left(None)));
    }

    fn end_step(&mut self) {
        if !self.step.is_empty() {
            self.now.steps.push((std::mem::take(&mut self.step), self.begun.elapsed().as_secs_f64()));
        }
        self.begun = Instant::now();
    }

    /// So much of the step is done, from 0 to 1.
    pub(super) fn tell(&mut self, share: f64, events: &mut EventSink) {
        if self.published.elapsed() >= INTERVAL {
            self.publish(Some(share), events);
        }
    }

    /// Hears from any thread how many parts of the step there are.
    pub(super) fn telling<'a>(&'a mut self, events: &'a mut EventSink) -> impl Fn(u64, u64) + Sync + use<'a> {
        let both = Mutex::new((self, events));
        move |done, all| {
            let (loading, events) = &mut *both.lock().unwrap_or_else(PoisonError::into_inner);
            loading.tell(done as f64 / all.max(1) as f64, events);
        }
    }

    fn publish(&mut self, done: Option<f64>, events: &mut EventSink) {
        self.published = Instant::now();
        let seconds_left = self.left(done);
        events.publish_state(RunState::Starting { what: self.step.clone(), done, seconds_left });
    }

    /// Seconds until the run is loaded where such a run was loaded before, and else until the step ends; none where nothing tells.
    fn left(&self, share: Option<f64>) -> Option<f64> {
        let spent = self.begun.elapsed();
        let known = self.before.as_ref().and_then(|before| before.seconds(&self.step));
        let step = match share {
            Some(share) if share >= JUDGED_FROM && spent >= JUDGED_AFTER => {
                seconds_left(spent, (share * PARTS as f64) as u64, PARTS)
            }
            // A step that takes longer than before ends nobody knows when.
            _ => known.map(|known| known - spent.as_secs_f64()).filter(|left| *left >= 0.0),
        }?;
        let later = self.before.as_ref().filter(|_| known.is_some()).map_or(0.0, |before| before.after(&self.step));
        Some(step + later)
    }

    /// The run is loaded; its folder remembers how long that took.
    pub(super) fn finish(mut self) {
        self.end_step();
        // Nothing but an estimate is lost where it cannot be written.
        let bytes = serde_json::to_vec(&self.now).unwrap_or_default();
        if let Err(error) = file::write(&self.path, &bytes) {
            tracing::debug!(%error, "it was not noted how long loading took");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Status;
    use tokio::sync::{broadcast, watch};

    fn sink() -> (EventSink, watch::Receiver<Status>) {
        let status = serde_json::json!({
            "run": "a", "state": "running", "teacher": {"mode": "human"}, "simulated_available": false, "device": "cpu",
            "update": 0, "episodes": 0, "descriptions_human": 0, "descriptions_simulated": 0, "lambda": 0.0,
            "episodes_per_second": 0.0, "validation": null, "best_validation": null, "seconds": 0.0,
        });
        let (sender, status) = watch::channel(serde_json::from_value(status).unwrap());
        (EventSink::new(broadcast::channel(16).0, sender, None), status)
    }

    fn state(status: &watch::Receiver<Status>) -> (String, Option<f64>, Option<f64>) {
        match &status.borrow().state {
            RunState::Starting { what, done, seconds_left } => (what.clone(), *done, *seconds_left),
            other => panic!("{other:?}"),
        }
    }

    fn config() -> RunConfig {
        crate::testing::configure("regex/tiny", 1, &[]).unwrap()
    }

    #[test]
    fn a_first_loading_knows_its_pace_alone_and_the_next_one_what_comes_after() {
        let home = tempfile::tempdir().unwrap();
        let (mut events, status) = sink();
        let [first, second] = ["a", "b"].map(|name| home.path().join(name));
        for folder in [&first, &second] {
            std::fs::create_dir(folder).unwrap();
        }
        let mut loading = Loading::begin(&first, &config(), "cpu", false);
        loading.step("Loading the task", &mut events);
        assert_eq!(state(&status), ("Loading the task".to_owned(), None, None));
        loading.begun -= Duration::from_secs(8);
        loading.published -= Duration::from_secs(1);
        loading.telling(&mut events)(4, 5);
        let (_, done, left) = state(&status);
        assert!(done == Some(0.8) && (1.9..2.5).contains(&left.unwrap()), "{left:?}");
        loading.step("Loading the agent", &mut events);
        loading.begun -= Duration::from_secs(3);
        loading.finish();

        // Another run of the same kind, in the folder beside it.
        let mut loading = Loading::begin(&second, &config(), "cpu", false);
        loading.step("Loading the task", &mut events);
        let (_, _, left) = state(&status);
        assert!((10.5..11.5).contains(&left.unwrap()), "{left:?}");
        loading.begun -= Duration::from_secs(5);
        loading.published -= Duration::from_secs(1);
        loading.tell(0.5, &mut events);
        let (_, _, left) = state(&status);
        assert!((7.5..9.0).contains(&left.unwrap()), "5 s by its pace and 3 s for the agent: {left:?}");
        // A step that takes longer than it did is not promised to end at once.
        loading.begun -= Duration::from_secs(10);
        assert_eq!(loading.left(None), None);
        // Another kind of run, device or beginning is another matter.
        assert_eq!(Loading::begin(&second, &config(), "cuda:0", false).before, None);
        assert_eq!(Loading::begin(&second, &config(), "cpu", true).before, None);
        std::fs::write(first.join(FILE), "nonsense").unwrap();
        assert_eq!(Loading::begin(&second, &config(), "cpu", false).before, None);
    }
}
