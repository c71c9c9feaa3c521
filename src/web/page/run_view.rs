//! A run as pages see it: alive in this process, or what the store remembers of it.

use crate::config::run::TeacherMode;
use crate::config::run::{AlgorithmName, Feedback, RatingScale};
use crate::ids::RunId;
use crate::protocol::Medium;
use crate::registry::{AnyFamily, OUTSIDE};
use crate::run::{self, RunState, Status};
use crate::store::{MadeBy, Run, RunLabel};
use crate::web::error::{Error, Result};
use crate::web::format;
use crate::web::state::AppState;

/// A run with its status.
pub(crate) struct RunView {
    /// The stored row.
    pub(crate) run: Run,
    /// The task family.
    pub(crate) family: &'static dyn AnyFamily,
    /// Current status; for a run that is not alive, put together from the store.
    pub(crate) status: Status,
    /// Whether the run's trainer is alive in this process.
    pub(crate) live: bool,
    /// Its label: name, notes, tags, and where it came from.
    pub(crate) label: RunLabel,
    /// Whether the store has a description that a person typed, used or not.
    taught: bool,
}

impl RunView {
    /// The run called `id`.
    pub(crate) async fn load(state: &AppState, id: &RunId) -> Result<RunView> {
        let run = state.store.run(id).await?;
        RunView::of(state, run).await
    }

    /// All runs that can be shown, newest first. Runs in the trash are left out, and those of a family that this build does not
    /// know.
    pub(crate) async fn all(state: &AppState) -> Result<Vec<RunView>> {
        let runs = state.store.runs().await?;
        let views = RunView::of_many(state, runs).await?;
        Ok(views.into_iter().filter(|view| view.label.trashed_at.is_none()).collect())
    }

    /// The views of stored runs of families that this build knows.
    pub(crate) async fn of_many(state: &AppState, runs: Vec<Run>) -> Result<Vec<RunView>> {
        let ids: Vec<RunId> = runs.iter().map(|run| run.id.clone()).collect();
        let mut labels = state.store.run_labels(&ids).await?;
        let mut views = Vec::new();
        for run in runs {
            if state.family(&run.family).is_some() {
                let label = labels.remove(&run.id).unwrap_or_default();
                views.push(RunView::labelled(state, run, label).await?);
            }
        }
        Ok(views)
    }

    /// The view of a stored run.
    pub(crate) async fn of(state: &AppState, run: Run) -> Result<RunView> {
        let label = state.store.run_label(&run.id).await?;
        RunView::labelled(state, run, label).await
    }

    async fn labelled(state: &AppState, run: Run, label: RunLabel) -> Result<RunView> {
        let family = state.family(&run.family).ok_or(Error::NotFound("the task family"))?;
        let handle = state.runs.get(&run.id);
        let live = handle.is_some();
        let status = match handle.map(|handle| handle.status.borrow().clone()) {
            // A trainer that has not read its checkpoint yet, or never could, has counted nothing; the store has.
            Some(Status { state: now, teacher, simulated_available, device, update: 0, episodes: 0, .. })
                if now != RunState::Running && now != RunState::Paused =>
            {
                Status { state: now, teacher, simulated_available, device, ..remembered(state, &run, &label).await? }
            }
            Some(status) => status,
            None => {
                let status = remembered(state, &run, &label).await?;
                let refusal = state.runs.refusal(&run.id).map(|message| RunState::Failed { message });
                Status { state: refusal.unwrap_or(status.state), ..status }
            }
        };
        let taught = status.descriptions_human > 0 || state.store.has_descriptions(&run.id).await?;
        Ok(RunView { run, family, status, live, label, taught })
    }

    /// The title by which people tell runs apart: the name that somebody gave it, else what it is made of.
    pub(crate) fn title(&self) -> String {
        if !self.label.name.is_empty() {
            return self.label.name.clone();
        }
        let taught = match self.medium() {
            Medium::Description => String::new(),
            medium => format!(" ({})", medium.words()),
        };
        format!(
            "{}: {}, {}{taught}, seed {}, {}",
            self.family.title(),
            self.run.preset,
            self.algorithm().typed(),
            self.run.seed,
            format::moment(&self.run.created_at)
        )
    }

    /// The command that made the run, where it was not the server.
    pub(crate) fn command(&self) -> Option<&'static str> {
        match self.label.made_by {
            MadeBy::Server => None,
            MadeBy::Train => Some("iliad train"),
            MadeBy::Reproduce => Some("iliad reproduce"),
            MadeBy::Import => Some("iliad import"),
        }
    }

    /// One word for the state.
    pub(crate) fn word(&self) -> &'static str {
        match &self.status.state {
            RunState::Starting { .. } => "Getting ready",
            RunState::Running => "Learning",
            RunState::Paused => "Paused",
            RunState::Stopped => "Ended",
            RunState::Failed { .. } => "Stopped by an error",
        }
    }

    /// The state as a class name.
    pub(crate) fn class(&self) -> &'static str {
        match &self.status.state {
            RunState::Starting { .. } => "starting",
            RunState::Running => "running",
            RunState::Paused => "paused",
            RunState::Stopped => "stopped",
            RunState::Failed { .. } => "failed",
        }
    }

    /// Whether the agent lives in another program.
    pub(crate) fn outside(&self) -> bool {
        self.run.family == OUTSIDE
    }

    /// Whether the run can still learn.
    pub(crate) fn ended(&self) -> bool {
        !self.live || matches!(self.status.state, RunState::Stopped | RunState::Failed { .. })
    }

    /// The run's algorithm; ADEL where an earlier version stored none.
    pub(crate) fn algorithm(&self) -> AlgorithmName {
        serde_json::from_value(self.run.config["algorithm"]["name"].clone()).unwrap_or_default()
    }

    /// The kind of teaching that the run's algorithm learns from, which its counters count.
    pub(crate) fn feedback(&self) -> Feedback {
        self.algorithm().feedback()
    }

    /// The medium in which people teach the run.
    pub(crate) fn medium(&self) -> Medium {
        self.algorithm().medium().unwrap_or_default()
    }

    /// The heading of the count of people's answers: `Descriptions by people`.
    pub(crate) fn by_people(&self) -> String {
        format!("{} by people", format::upper(self.medium().words()))
    }

    /// Whether people can teach the run.
    pub(crate) fn taught_by_people(&self) -> bool {
        self.algorithm().medium().is_some()
    }

    /// The scale on which people rate, in a run that learns from ratings.
    pub(crate) fn rating_scale(&self) -> RatingScale {
        serde_json::from_value(self.run.config["people"]["rating"].clone()).unwrap_or_default()
    }

    /// Why the run stopped, where an error stopped it.
    pub(crate) fn trouble(&self) -> Option<&str> {
        match &self.status.state {
            RunState::Failed { message } => Some(message),
            _ => None,
        }
    }

    /// Whether the run has used all the episodes it may have, so that it cannot be resumed.
    pub(crate) fn spent(&self) -> bool {
        let budget = self.budget();
        budget > 0 && self.status.episodes >= budget
    }

    /// The episodes after which it ends; 0: it goes on until it is stopped.
    pub(crate) fn budget(&self) -> u64 {
        self.run.config["schedule"]["episodes"].as_u64().unwrap_or(0)
    }

    /// A sentence or two for newcomers: how well the agent does and from whom it learned.
    pub(crate) fn standing(&self) -> String {
        let Status { descriptions_human: people, descriptions_simulated: simulated, best_validation, .. } =
            &self.status;
        let medium = self.medium();
        let from_people = format::counted(people, medium.word());
        let from = match (people, simulated, self.feedback()) {
            (0, 0, Feedback::Descriptions) if self.taught => {
                "People have described what it did. It has not learned from their descriptions yet".to_owned()
            }
            (0, 0, _) if self.taught => format!("It has not learned from people\u{2019}s {} yet", medium.words()),
            (0, 0, _) if self.asks_people() => {
                return format!("It has learned nothing yet: the first {medium} can be yours.");
            }
            (0, 0, _) => "It has learned nothing yet".to_owned(),
            (_, 0, _) => format!("It has learned from {from_people} by people"),
            (0, _, Feedback::Descriptions) => {
                format!("It has learned from {} by a simulated teacher", format::counted(simulated, "description"))
            }
            (_, _, Feedback::Descriptions) => format!(
                "It has learned from {from_people} by people and {} by a simulated teacher",
                format::count(simulated)
            ),
            (0, _, other) => format!("It has learned from {}", format::counted(simulated, other.word())),
            (_, _, other) => format!(
                "It has learned from {from_people} by people and {} of the task itself",
                format::counted(simulated, other.word())
            ),
        };
        match best_validation {
            Some(rate) if rate.value > 0.0 => {
                let right = (rate.value * rate.n as f64).round() as u64;
                let (right, n) = (format::count(&right), format::count(&rate.n));
                format!("{from}. In its best test it did {right} of {n} new requests right.")
            }
            Some(rate) => format!("{from}. In its tests it did none of {} new requests right.", format::count(&rate.n)),
            None => format!("{from}. It has not been tested yet."),
        }
    }

    /// Whether people are asked to teach it: it goes on, and its mode leaves something to them.
    pub(crate) fn asks_people(&self) -> bool {
        !self.ended() && self.status.teacher != TeacherMode::Simulated && self.algorithm().taught_by_people()
    }

    /// Validation success in words, when there is a reading.
    pub(crate) fn success(&self) -> Option<String> {
        self.status.best_validation.as_ref().map(format::rate)
    }

    /// The text for a teacher when there is nothing to describe: the reason, and the next step.
    pub(crate) fn nothing_to_describe(&self) -> String {
        if self.ended() {
            return match &self.status.state {
                RunState::Failed { .. } => {
                    "The agent stopped because of an error. The people who run this study can see on its page what happened; there is nothing you need to do.".to_owned()
                }
                _ => "This run has ended. Thank you for teaching. The start page shows whether another agent wants to learn.".to_owned(),
            };
        }
        match (&self.status.state, self.status.teacher) {
            (RunState::Starting { what, done, seconds_left }, _) => format!(
                "The agent is getting ready ({what}{}{}). Leave this page open: the first thing to {} will appear here by itself.",
                done.map(|share| format!(", {:.0}%", 100.0 * share)).unwrap_or_default(),
                run::remaining(*seconds_left),
                self.medium().verb()
            ),
            (_, TeacherMode::Simulated) => {
                "At the moment a simulated teacher describes what the agent does, so nothing waits for you. If you run this study, switch the teacher to people on the run's page; this page then continues by itself.".to_owned()
            }
            (RunState::Paused, _) => {
                "The agent is paused and has nothing more ready for you. Leave this page open: it continues by itself when the agent does.".to_owned()
            }
            _ if self.medium() != Medium::Description => format!(
                "There is nothing for you to {} just now: you have seen everything that the agent has ready, or others are at it. The next ones appear here by themselves.",
                self.medium().verb()
            ),
            _ => "There is nothing for you to describe just now: you have seen everything that the agent has ready, or others are describing it. The next ones appear here by themselves.".to_owned(),
        }
    }

    /// A remark for a teacher who has something to describe.
    pub(crate) fn remark(&self) -> Option<&'static str> {
        (!self.ended() && self.status.state == RunState::Paused).then_some(match self.medium() {
            Medium::Description => {
                "The agent is paused. You can keep describing: it will learn from your descriptions when it resumes."
            }
            Medium::Demonstration => {
                "The agent is paused. You can keep showing: it will learn from your demonstrations when it resumes."
            }
            Medium::Rating => {
                "The agent is paused. You can keep rating: it will learn from your ratings when it resumes."
            }
        })
    }
}

/// The status of a run that is not alive, from a few rows of the store, so that it costs little to ask for an old run.
async fn remembered(state: &AppState, run: &Run, label: &RunLabel) -> Result<Status> {
    let standing = state.store.standing(&run.id).await?;
    let last = standing.last.unwrap_or_default();
    let people = standing.people + label.inherited.people;
    Ok(Status {
        run: run.id.clone(),
        state: RunState::Stopped,
        teacher: run.teacher,
        simulated_available: false,
        device: "not running".to_owned(),
        update: last.update,
        episodes: last.episodes,
        descriptions_human: people,
        // Demonstrations and rewards are in the points only.
        descriptions_simulated: standing.simulated.max(last.descriptions.saturating_sub(people)),
        lambda: last.lambda.unwrap_or_default(),
        episodes_per_second: 0.0,
        validation: standing.validation,
        best_validation: standing.best,
        seconds: last.seconds,
        spare_words: None,
        practice: 0,
    })
}
