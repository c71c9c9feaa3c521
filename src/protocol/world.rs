//! The environment of a task family: tasks q = (d*, s1), executions ê, scoring, and the approximate marginal P_ω.

use crate::rng::Stream;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fmt::Debug;

/// Which part of a world a task comes from. Requests of different splits are disjoint in wording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Tasks the agent practises on (also the simulation split of simulated teachers).
    Train,
    /// Tasks that checkpoints are chosen by.
    Validation,
    /// Tasks that are reported.
    Test,
}

/// One task q = (d*, s1): where it comes from, the request, and the start.
/// The gold execution is not in it: only [`World::gold`] tells, and only teachers, baselines and evaluation may ask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task<S> {
    /// Split the task belongs to.
    pub split: Split,
    /// Position within its split, below [`World::len`].
    pub index: usize,
    /// The request d*, as a person would type it (tokens separated by single blanks).
    pub request: String,
    /// The start state s1 (and everything the execution will be shown on).
    pub start: S,
}

/// The verdict of evaluation on one execution. Success is the paper's success rate; further figures are named
/// (NAV: `spl`, `ndtw`, `sdtw`; REGEX: `similarity`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Whether the task's own success criterion holds.
    pub success: bool,
    /// Named figures, each in 0..=1 unless its name says otherwise.
    pub figures: Vec<(String, f64)>,
}

/// A way of grouping tasks, by which success is counted: its name, and those of its groups in the order of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// Name on the command line: `operation`.
    pub name: &'static str,
    /// Names of the groups.
    pub groups: &'static [&'static str],
}

/// The environment of one task family: tasks, executions, scoring and the approximate marginal P_ω.
/// Everything is a pure function of its arguments and the given stream.
pub trait World: Send + Sync + 'static {
    /// The start state s1.
    type Start: Clone + Debug + PartialEq + Send + Sync + Serialize + DeserializeOwned + 'static;
    /// An execution ê: the actions, and what came of them.
    type Execution: Clone + Debug + PartialEq + Send + Sync + Serialize + DeserializeOwned + 'static;

    /// Number of tasks in a split.
    fn len(&self, split: Split) -> usize;

    /// True when a split has no task.
    fn is_empty(&self, split: Split) -> bool {
        self.len(split) == 0
    }

    /// The task at `index` of `split`, with the first of its requests. Panics when `index >= len(split)`.
    fn task(&self, split: Split, index: usize) -> Task<Self::Start>;

    /// All requests known for the task (the human requests from which the simulated teacher draws when the
    /// execution already performs as well as the gold one). Never empty; the first is [`Task::request`].
    fn requests(&self, split: Split, index: usize) -> Vec<String>;

    /// The gold execution e* of a task.
    fn gold(&self, split: Split, index: usize) -> Self::Execution;

    /// Draws a task q ~ P*(q) of the split, with one of its requests drawn uniformly.
    fn sample_task(&self, split: Split, stream: &mut Stream) -> Task<Self::Start>;

    /// Draws ẽ ~ P_ω(e | s1), the approximate marginal.
    fn sample_marginal(&self, start: &Self::Start, stream: &mut Stream) -> Self::Execution;

    /// The part of a start that the policy itself sees, for pretraining on P_ω: REGEX keeps the first word.
    fn solo(&self, start: &Self::Start) -> Self::Start {
        start.clone()
    }

    /// Whether the teacher is asked about this execution (REGEX: it is valid and changes a word).
    fn describable(&self, start: &Self::Start, execution: &Self::Execution) -> bool;

    /// Whether a describable execution is one to show a person. Those that are not are passed over, and the simulated teacher
    /// gets them where there is one (NAV: walks of less than a metre).
    fn worth_showing(&self, _start: &Self::Start, _execution: &Self::Execution) -> bool {
        true
    }

    /// The execution that is described, and learnt from (NAV: the walk without its loops).
    fn to_describe(&self, _start: &Self::Start, execution: Self::Execution) -> Self::Execution {
        execution
    }

    /// Whether the execution is valid at all (the dashboard's share of valid executions).
    fn valid(&self, start: &Self::Start, execution: &Self::Execution) -> bool;

    /// perf(ê, e) ≥ τ: whether `execution` does what `reference` does, from `start`.
    fn performs(&self, start: &Self::Start, execution: &Self::Execution, reference: &Self::Execution, tau: f64)
    -> bool;

    /// Whether an agent that was asked in the words of a description has understood them: `execution` does what was described,
    /// on the whole of the start that the person was shown (REGEX: every word becomes what it became there).
    fn understood(
        &self,
        start: &Self::Start,
        execution: &Self::Execution,
        described: &Self::Execution,
        tau: f64,
    ) -> bool {
        self.valid(start, execution) && self.performs(start, execution, described, tau)
    }

    /// The kind of an execution, for query selection: executions of one kind teach much the same
    /// (REGEX: the expression whatever its letters).
    fn kind(&self, _start: &Self::Start, execution: &Self::Execution) -> String {
        self.summary(execution)
    }

    /// An example for practice, made of a described one by executing the same elsewhere; `None`: only the example itself
    /// (REGEX: further words of the dictionary, if the settings ask for them).
    fn elsewhere(
        &self,
        _start: &Self::Start,
        _execution: &Self::Execution,
        _stream: &mut Stream,
    ) -> Option<(Self::Start, Self::Execution)> {
        None
    }

    /// A part of an example that a cheap learning step takes: a few of several words, say. The whole of it where it has no parts.
    fn excerpt(
        &self,
        start: &Self::Start,
        execution: &Self::Execution,
        _stream: &mut Stream,
    ) -> (Self::Start, Self::Execution) {
        (start.clone(), execution.clone())
    }

    /// The kind of task that an execution would be right for, by which it is decided what people are asked about: a teacher
    /// should tell about every kind soon. `None` where no task asks for such an execution.
    fn task_kind(&self, start: &Self::Start, execution: &Self::Execution) -> Option<String> {
        Some(self.kind(start, execution))
    }

    /// Another start, with the execution that does there what was done here; `None` where the world cannot tell (REGEX: the
    /// same edit of other words of the dictionary).
    fn another_start(
        &self,
        _start: &Self::Start,
        _execution: &Self::Execution,
        _stream: &mut Stream,
    ) -> Option<(Self::Start, Self::Execution)> {
        None
    }

    /// A wrong execution that a person could make by a slip where the right one was meant; `None` where the world names none (NAV: a
    /// wrong turn). It is for simulated people.
    fn slip(&self, _start: &Self::Start, _right: &Self::Execution, _stream: &mut Stream) -> Option<Self::Execution> {
        None
    }

    /// The ways in which tasks can be grouped, for success by group (REGEX: by the operation that is asked for).
    fn groupings(&self) -> &'static [Grouping] {
        &[]
    }

    /// The position of a task's group among those of one of the [`World::groupings`]; `None` where the task is in none of them.
    fn group(&self, _grouping: &str, _split: Split, _index: usize) -> Option<usize> {
        None
    }

    /// Scores a (greedy) execution of a task against its gold execution.
    fn score(&self, task: &Task<Self::Start>, execution: &Self::Execution) -> Score;

    /// The paper's continuous reward of an execution, which need not lie in 0..=1: the figure `similarity`, unclipped
    /// (REGEX). A family without this figure gives 1 for success and 0 otherwise.
    fn continuous_reward(&self, task: &Task<Self::Start>, execution: &Self::Execution) -> f64 {
        let score = self.score(task, execution);
        let figure = score.figures.iter().find(|(name, _)| name == "similarity").map(|(_, value)| *value);
        figure.unwrap_or(f64::from(u8::from(score.success)))
    }

    /// The view that a person is shown: data for the family's template and script. It never holds the request or the gold
    /// execution. REGEX: the word pairs; nothing of the regular expression.
    fn view(&self, start: &Self::Start, execution: &Self::Execution) -> serde_json::Value;

    /// The execution that was shown as `view` and `summary`; `None` where these do not tell. Records of simulated episodes
    /// are made again by it.
    fn execution_of(&self, _start: &Self::Start, _view: &serde_json::Value, _summary: &str) -> Option<Self::Execution> {
        None
    }

    /// The execution in one line of plain text for researchers (REGEX: the regular expression).
    fn summary(&self, execution: &Self::Execution) -> String;
}
