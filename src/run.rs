//! Input and output of a run: commands, events, status. The trainer owns the models; everybody
//! else holds a [`RunHandle`]. These types are the whole contract between trainer, store recorder and web.

use crate::config::run::TeacherMode;
use crate::ids::{AnswerId, RunId, TeacherId};
use crate::protocol::{Rate, ReserveRows, Split};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, oneshot, watch};

/// Where a description came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Typed by a person.
    Human,
    /// Made by the simulated teacher.
    Simulated,
}

impl Source {
    /// Both of them.
    pub const ALL: [Source; 2] = [Source::Human, Source::Simulated];

    /// Its name in files and addresses.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Human => "human",
            Source::Simulated => "simulated",
        }
    }

    /// The source of a name.
    pub fn named(name: &str) -> Option<Source> {
        Self::ALL.into_iter().find(|source| source.as_str() == name)
    }
}

/// The activity of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum RunState {
    /// Loading, or warming up (pretraining on P_ω); `what` says which, in plain words; `done` in 0..=1 when known.
    Starting {
        /// The present step.
        what: String,
        /// Share done.
        done: Option<f64>,
        /// Seconds until the run is ready, by the pace of this step and by how long such a run took to load before; until the step ends
        /// where none was. `None` where nothing tells.
        #[serde(default)]
        seconds_left: Option<f64>,
    },
    /// Updates are made as descriptions come.
    Running,
    /// No updates until resumed; people can go on describing.
    Paused,
    /// Ended by command or because its budget of episodes is used; a final checkpoint exists.
    Stopped,
    /// Ended by an error.
    Failed {
        /// Plain sentence for people.
        message: String,
    },
}

/// The state of a run at one moment; always small, always current.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = RunStatus)]
pub struct Status {
    /// Run id (the folder name and the key in the store).
    pub run: RunId,
    /// The run's activity.
    #[serde(flatten)]
    pub state: RunState,
    /// Who teaches.
    pub teacher: TeacherMode,
    /// False when no simulated teacher is available for this run's task.
    pub simulated_available: bool,
    /// `cpu` or `cuda:0`.
    pub device: String,
    /// Updates made so far: iterations, whether or not anything was described (replayed steps not counted).
    pub update: u64,
    /// Episodes so far.
    pub episodes: u64,
    /// Descriptions used so far that people typed.
    pub descriptions_human: u64,
    /// Descriptions used so far that the simulated teacher made.
    pub descriptions_simulated: u64,
    /// Mixing weight λ now.
    pub lambda: f64,
    /// Episodes per second over the last few seconds.
    pub episodes_per_second: f64,
    /// Latest validation success.
    pub validation: Option<Rate>,
    /// Best validation success so far.
    pub best_validation: Option<Rate>,
    /// Seconds this run has been training (pauses not counted).
    pub seconds: f64,
    /// How full the rows for words of people are; `None` where nobody knows.
    #[serde(default)]
    pub spare_words: Option<ReserveRows>,
    /// Descriptions, demonstrations or ratings of people that no update has taken in yet; 10,000 are
    /// counted at most.
    #[serde(default)]
    pub waiting: u64,
    /// Practice steps since the last update: the run learns from stored descriptions while people think.
    #[serde(default)]
    pub practice: u64,
}

/// One point of the learning curves. Fields are `None` where the point has no such reading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Point {
    /// Update after which the point was read.
    pub update: u64,
    /// Episodes by then.
    pub episodes: u64,
    /// Descriptions used by then, all sources.
    pub descriptions: u64,
    /// Training seconds by then.
    pub seconds: f64,
    /// Loss of π_θ on new descriptions, mean since the last point (nats per sequence).
    pub loss: Option<f64>,
    /// Share of sampled executions that were successful, since the last point.
    pub training_success: Option<f64>,
    /// Share of sampled executions that were valid, since the last point.
    pub valid_share: Option<f64>,
    /// Share of simulated descriptions that were human requests (perf ≥ τ), since the last point.
    pub gold_share: Option<f64>,
    /// Validation success (greedy π_θ).
    pub validation: Option<Rate>,
    /// Mixing weight λ.
    pub lambda: Option<f64>,
    /// Share of all sampled executions of the run so far that were successful (cumulative).
    #[serde(default)]
    pub training_success_total: Option<f64>,
    /// Trailing mean of validation success over the last `schedule.smooth` evaluations.
    #[serde(default)]
    pub validation_smoothed: Option<f64>,
}

/// The execution that would have been right for a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// One plain line of it ([`crate::protocol::World::summary`]).
    pub summary: String,
    /// The execution itself, as its family writes it.
    pub execution: serde_json::Value,
}

/// One finished episode as a researcher sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EpisodeRow {
    /// Running number of the episode.
    pub episode: u64,
    /// Update that used its description, if any did.
    pub update: Option<u64>,
    /// The request d*.
    pub request: String,
    /// Family's view of the execution ([`crate::protocol::World::view`]).
    pub view: serde_json::Value,
    /// One plain line of the execution ([`crate::protocol::World::summary`]).
    pub summary: String,
    /// Who described it; `None` when the teacher was not asked.
    pub source: Option<Source>,
    /// The description d̂; empty when the teacher had none.
    pub description: String,
    /// Candidates the simulated teacher considered, with whether each qualified.
    pub candidates: Vec<(String, bool)>,
    /// Whether the execution performs as well as the gold one.
    pub success: bool,
    /// The gold execution, for the data set; pages do not get it.
    #[serde(skip)]
    pub reference: Option<Reference>,
}

/// A checkpoint as listed on the dashboard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CheckpointRow {
    /// File name within the run's folder.
    pub name: String,
    /// Update after which it was written.
    pub update: u64,
    /// Episodes by then.
    pub episodes: u64,
    /// Descriptions by then.
    pub descriptions: u64,
    /// Validation success at that update, when it was evaluated.
    pub validation: Option<Rate>,
    /// Bytes on disk.
    pub bytes: u64,
    /// RFC 3339 time.
    pub written_at: String,
    /// Whether it is the best on validation so far.
    pub best: bool,
}

/// An execution of the agent that was asked in a person's own words, from the start of the execution that they describe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = AgentAttempt)]
pub struct Attempt {
    /// Family's view of it ([`crate::protocol::World::view`]).
    pub view: serde_json::Value,
    /// One plain line of it.
    pub summary: String,
    /// Whether it does what the person described ([`crate::protocol::World::understood`]).
    pub understood: bool,
}

/// How the agent took a person's description: before an update learned from it, and after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comprehension {
    /// The answer.
    pub answer: AnswerId,
    /// Who gave it.
    pub teacher: TeacherId,
    /// Update that learns from it.
    pub update: u64,
    /// Episodes by then.
    pub episodes: u64,
    /// Descriptions that the agent had learned from before, all sources.
    pub descriptions: u64,
    /// Training seconds by then.
    pub seconds: f64,
    /// The agent's attempt before the update.
    pub before: Attempt,
    /// Its attempt after the update; `None` until then.
    pub after: Option<Attempt>,
}

/// The trainer's messages to the world. Siblings (recorder, event stream, progress bar) only listen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "lowercase")]
pub enum Event {
    /// The status changed.
    Status(Status),
    /// A new point on the curves.
    Point(Point),
    /// An episode ended (at most a few a second are told).
    Episode(EpisodeRow),
    /// A checkpoint was written.
    Checkpoint(CheckpointRow),
    /// People's descriptions were carried out: those of one update, before it learns from them (`after` is `None`) and
    /// once more after it.
    Comprehension(Vec<Comprehension>),
    /// The agent is being tested: told before each part of the tasks. Nothing else happens in the run meanwhile.
    Evaluating {
        /// The tasks on which it is tested.
        split: Split,
        /// Tasks that are done.
        done: u64,
        /// Tasks in all.
        of: u64,
        /// Seconds until it is done, at the pace so far; `None` before there is a pace.
        seconds_left: Option<f64>,
    },
    /// A plain sentence for the run's log.
    Log {
        /// The sentence.
        message: String,
    },
}

/// Seconds that the rest of some work takes where `done` of `all` took `spent`; none before a part is done.
pub fn seconds_left(spent: Duration, done: u64, all: u64) -> Option<f64> {
    (done > 0).then(|| spent.as_secs_f64() * all.saturating_sub(done) as f64 / done as f64)
}

/// ", about 12 s left": the time that something still takes, in words that claim no more than two digits, as the pages say it
/// (static/js/estimate.js); nothing where nobody knows, and nothing at the end.
pub fn remaining(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.5) else { return String::new() };
    let unit = 10f64.powf(seconds.log10().floor() - 1.0).max(1.0);
    let s = ((seconds / unit).round() * unit) as u64;
    let words = match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {:02} s", s / 60, s % 60),
        _ => format!("{} h {:02} min", s / 3600, s % 3600 / 60),
    };
    format!(", about {words} left")
}

/// The answer to "what would the agent do now?".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// Family's view of the greedy execution.
    pub view: serde_json::Value,
    /// One plain line of it.
    pub summary: String,
    /// Whether it was a valid execution.
    pub valid: bool,
    /// Update the agent was at.
    pub update: u64,
    /// Words of the request that its vocabulary does not have.
    pub unknown: Vec<String>,
}

/// A description that a person gave, with the trainer's own trace of the execution that it describes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnDescription {
    /// The description, exactly as typed.
    pub text: String,
    /// Trace of the execution.
    pub trace: serde_json::Value,
}

/// A person's description as the agent carries it out now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reviewed {
    /// The description.
    pub text: String,
    /// Whether the start is another than that of the described execution.
    pub elsewhere: bool,
    /// The agent's attempt.
    pub attempt: Attempt,
    /// View of what would have been right, from the same start.
    pub wanted: serde_json::Value,
    /// Update the agent was at.
    pub update: u64,
}

/// The requests that the trainer takes, between two updates.
#[derive(Debug)]
pub enum Command {
    /// Switch who teaches.
    SetTeacher(TeacherMode),
    /// No more updates until `Resume`.
    Pause,
    /// Go on.
    Resume,
    /// Write a checkpoint and end the run.
    Stop,
    /// Write a checkpoint now.
    Checkpoint(oneshot::Sender<Result<CheckpointRow, String>>),
    /// Let greedy π_θ carry out `request` from the start described by `start` (the family's own form data).
    Try {
        /// The request in plain words.
        request: String,
        /// Family-specific start, as its form sends it (REGEX: `{"words": ["…", …]}`).
        start: serde_json::Value,
        /// The answer, or a plain sentence.
        reply: oneshot::Sender<Result<Tried, String>>,
    },
    /// Let greedy π_θ carry out a few of a person's own descriptions: of different kinds where possible, and from other starts
    /// where the world can say what would be right there.
    Review {
        /// The person's descriptions.
        described: Vec<OwnDescription>,
        /// Number of the review, which keys the choice.
        number: u64,
        /// Receives the requests carried out, or a plain sentence that says why they were not.
        reply: oneshot::Sender<Result<Vec<Reviewed>, String>>,
    },
    /// Let greedy π_θ carry out descriptions, each from the start of the execution that it describes.
    CarryOut {
        /// The descriptions with their executions.
        described: Vec<OwnDescription>,
        /// Receives an attempt for each, in order, or a plain sentence that says why there are none.
        reply: oneshot::Sender<Result<Vec<Attempt>, String>>,
    },
    /// A person answered; look into the store.
    DescriptionArrived,
    /// The program ends: write a checkpoint and let go; the run goes on at the next start.
    Shutdown,
    /// No time is left: report the test success of the best policy so far. The run is not complete and can go on later.
    Conclude,
}

/// How everybody but the trainer holds a run. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RunHandle {
    /// Run id.
    pub id: RunId,
    /// Name of the task family, e.g. `regex`.
    pub family: &'static str,
    /// Commands to the trainer thread.
    pub commands: std::sync::mpsc::Sender<Command>,
    /// Events from it; a slow listener loses the oldest, never the trainer's time.
    pub events: broadcast::Sender<Arc<Event>>,
    /// The current status.
    pub status: watch::Receiver<Status>,
}

/// When one run's validation success first reached a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reached {
    /// The level in percent.
    pub level: f64,
    /// First raw reading at or above it; `None` until then.
    pub raw: Option<Moment>,
    /// First smoothed one.
    pub smoothed: Option<Moment>,
}

/// A moment of a run, in what it had cost by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Update.
    pub update: u64,
    /// Episodes.
    pub episodes: u64,
    /// Pieces of teaching.
    pub descriptions: u64,
}

#[cfg(test)]
mod tests {
    use super::remaining;

    /// The cases are those of tests/browser/estimate.test.js.
    #[test]
    fn an_estimate_claims_no_more_than_two_digits() {
        for (seconds, words) in [
            (None, ""),
            (Some(f64::INFINITY), ""),
            (Some(0.2), ""),
            (Some(0.7), ", about 1 s left"),
            (Some(11.7), ", about 12 s left"),
            (Some(127.0), ", about 2 min 10 s left"),
            (Some(7214.0), ", about 2 h 00 min left"),
        ] {
            assert_eq!(remaining(seconds), words);
        }
    }
}
