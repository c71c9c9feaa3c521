//! The loop: commands are carried out between two updates, until something ends the run.

use super::FinalReport;
use super::checkpoint;
use super::commands::CommandQueue;
use super::curve::Curve;
use super::description_log::DescriptionLog;
use super::event_sink::EventSink;
use super::practice::PracticeProgress;
use super::progress::Progress;
use super::query_selector::QuerySelector;
use super::replay_buffer::ReplayBuffer;
use super::rollouts::{RolloutContext, Rollouts};
use super::store_writer::StoreWriter;
use super::supply::Supply;
use super::validation::ValidationTracker;
use crate::algorithm::Algorithm;
use crate::config::run::{Feedback, RunConfig, TeacherMode, not_by_people};
use crate::family::Family;
use crate::ids::RunId;
use crate::protocol::{Decoding, Split, Teacher, World, evaluation};
use crate::rng;
use crate::run::{Command, RunState, Status, Tried};
use anyhow::Context;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long the loop waits for a command when it has nothing to do.
const IDLE_WAIT: Duration = Duration::from_millis(500);

/// The parts of a run that do not change.
pub(super) struct RunContext<K: Family> {
    pub(super) family: &'static K,
    pub(super) id: RunId,
    pub(super) config: RunConfig,
    pub(super) folder: PathBuf,
    pub(super) world: Arc<K::World>,
}

/// The loop of a run, with the objects that it directs.
pub(super) struct Trainer<'a, K: Family> {
    pub(super) run: RunContext<K>,
    pub(super) algorithm: Box<dyn Algorithm<K::World>>,
    pub(super) teacher: Option<Box<dyn Teacher<K::World>>>,
    pub(super) mode: TeacherMode,
    pub(super) progress: Progress,
    pub(super) description_log: DescriptionLog<K::World>,
    pub(super) replay_buffer: ReplayBuffer<K::World>,
    pub(super) store: Option<StoreWriter>,
    pub(super) selector: QuerySelector,
    pub(super) supply: Supply<K::World>,
    pub(super) commands: CommandQueue<'a>,
    pub(super) validation: ValidationTracker,
    pub(super) events: &'a mut EventSink,
    pub(super) curve: Curve,
    /// Whether practice between answers still helps.
    pub(super) practice: PracticeProgress,
    /// True while lost updates are made again: nothing is recorded twice.
    pub(super) recovering: bool,
    /// Number of requests that somebody has tried.
    pub(super) tries: u64,
}

/// Whether a turn of the loop learnt something.
#[derive(PartialEq, Eq)]
enum Turn {
    /// It made an update or a practice step.
    Updated,
    /// There is nothing to do until somebody answers or commands.
    Idle,
}

/// Why the loop ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Budget,
    Stopped,
    Shutdown,
    Concluded,
}

impl End {
    /// The command that ends a run in this way when it has to be ended once more.
    pub(super) fn command(self) -> Command {
        match self {
            // A run whose budget is used up ends by itself.
            End::Budget => Command::Resume,
            End::Stopped => Command::Stop,
            End::Shutdown => Command::Shutdown,
            End::Concluded => Command::Conclude,
        }
    }
}

impl<K: Family> Trainer<'_, K> {
    /// Makes lost updates again and then trains until something ends the run.
    pub(super) fn train(&mut self) -> anyhow::Result<End> {
        self.recover_updates()?;
        self.leave_out_passed_over()?;
        self.start_rollouts()?;
        self.publish_state(RunState::Running);
        let mut paused = false;
        let mut idle = false;
        loop {
            // Commands first; when there is nothing to do, wait for one.
            let waits = paused || idle;
            if waits {
                self.rest();
            }
            let wait = if waits { IDLE_WAIT } else { Duration::ZERO };
            let Ok(mut next) = self.commands.next_within(wait) else { return Ok(End::Shutdown) };
            if waits {
                // Waiting is not training.
                self.progress.clock.skip();
            }
            while let Some(command) = next {
                match command {
                    Command::Stop => return Ok(End::Stopped),
                    Command::Shutdown => return Ok(End::Shutdown),
                    Command::Conclude => return Ok(End::Concluded),
                    Command::Pause => {
                        paused = true;
                        self.progress.speed.reset();
                        self.publish_state(RunState::Paused);
                    }
                    Command::Resume => {
                        paused = false;
                        self.progress.speed.reset();
                        self.publish_state(RunState::Running);
                    }
                    Command::SetTeacher(mode) => self.set_mode(mode)?,
                    Command::Checkpoint(reply) => {
                        let row = self.checkpoint().map_err(|e| format!("The checkpoint was not written: {e:#}"));
                        let _ = reply.send(row);
                    }
                    Command::Try { request, start, reply } => {
                        let _ = reply.send(self.execute_request(&request, &start));
                    }
                    Command::Review { described, number, reply } => {
                        let _ = reply.send(self.review(described, number));
                    }
                    Command::CarryOut { described, reply } => {
                        let _ = reply.send(self.carry_out(described));
                    }
                    Command::DescriptionArrived => self.supply.wake(),
                }
                next = self.commands.try_next();
            }
            if paused {
                // People can continue to describe.
                self.synchronise_rollouts()?;
                if self.count_waiting()? {
                    self.publish_status();
                }
                continue;
            }
            let budget = self.run.config.schedule.episodes;
            if budget > 0 && self.progress.counters.episodes >= budget {
                return Ok(End::Budget);
            }
            idle = self.turn()? == Turn::Idle;
            self.synchronise_rollouts()?;
        }
    }

    /// Time that passes from here on is not training time.
    fn rest(&mut self) {
        self.progress.clock.record();
        // An update that was made too soon after the last status for one of its own is published now.
        let shown = |status: &Status| (status.update, status.practice);
        let counters = self.progress.counters;
        let unpublished = shown(&self.events.status()) != (counters.update, counters.practice);
        if self.progress.speed.per_second() > 0.0 || unpublished {
            self.progress.speed.reset();
            self.publish_status();
        }
    }

    /// Whether the run can continue without people.
    pub(super) fn simulated_available(&self) -> bool {
        self.teacher.is_some() || self.run.config.algorithm.name.feedback() != Feedback::Descriptions
    }

    fn set_mode(&mut self, mode: TeacherMode) -> anyhow::Result<()> {
        let name = self.run.config.algorithm.name;
        if !name.taught_by_people() && mode != TeacherMode::Simulated {
            self.events.log(format!("The simulated teacher goes on: {}.", not_by_people(name)));
            self.events.publish_status();
            return Ok(());
        }
        if !self.simulated_available() && mode != TeacherMode::Human {
            self.events.log("There is no simulated teacher for this run; people go on teaching.");
            self.events.publish_status();
            return Ok(());
        }
        if self.store.is_none() && mode != TeacherMode::Simulated {
            self.events.log("This run has no pages for people; the simulated teacher goes on.");
            return Ok(());
        }
        self.mode = mode;
        self.progress.speed.reset();
        self.publish_status();
        if let Some(store) = &self.store {
            store.wait(store.store().set_teacher_mode(&self.run.id, mode))?;
        }
        self.synchronise_rollouts()
    }

    /// One turn of the loop: people's answers first, then a simulated iteration.
    fn turn(&mut self) -> anyhow::Result<Turn> {
        let mut turn = Turn::Idle;
        if self.practice_comes_first() {
            self.practise()?;
            return Ok(Turn::Updated);
        }
        // Answers that somebody typed before the mode changed are learnt from all the same.
        if self.human_update()? {
            turn = Turn::Updated;
        }
        match self.mode {
            TeacherMode::Human => {
                if turn == Turn::Idle && self.practice_helps() {
                    self.practise()?;
                    turn = Turn::Updated;
                }
            }
            TeacherMode::Simulated => {
                self.simulated_update(0.0, 0)?;
                turn = Turn::Updated;
            }
            TeacherMode::Mixed { share } => {
                let room = match &self.store {
                    Some(store) => store.free_places(self.run.config.pool.size)?,
                    None => 0,
                };
                self.simulated_update(share, room)?;
                turn = Turn::Updated;
            }
        }
        if let Some(store) = &mut self.store {
            store.flush_if_due()?;
        }
        Ok(turn)
    }

    /// Starts the roll-out thread where people may teach.
    fn start_rollouts(&mut self) -> anyhow::Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let medium = self.run.config.algorithm.name.medium();
        if medium.is_none_or(|medium| !self.run.family.media().contains(&medium)) {
            return Ok(());
        }
        let context = RolloutContext {
            run: self.run.id.clone(),
            config: self.run.config.clone(),
            world: self.run.world.clone(),
            store: store.store().clone(),
            runtime: store.runtime().clone(),
            numbers: self.supply.numbers.clone(),
        };
        self.supply.attach(Rollouts::start(context, self.mode, self.progress.counters.update)?);
        self.synchronise_rollouts()
    }

    /// Tells the roll-out thread where the run is, and counts its executions.
    fn synchronise_rollouts(&mut self) -> anyhow::Result<()> {
        let (position, seed) = ((self.mode, self.progress.counters.update), self.run.config.seed);
        let counts = self.supply.synchronise(position, (&*self.algorithm, seed), &self.selector)?;
        self.progress.meters.executions(counts.executions, counts.valid, counts.successes);
        Ok(())
    }

    /// Executes a request that somebody typed by greedy π_θ.
    fn execute_request(&mut self, request: &str, form: &serde_json::Value) -> Result<Tried, String> {
        if request.trim().is_empty() {
            return Err("Type what the agent should do.".into());
        }
        // The parts of the start that the form leaves open differ from try to try.
        let tries = self.tries;
        self.tries += 1;
        let RunContext { family, world, config, .. } = &self.run;
        let start = family.start_from_form(world, form, &mut rng::stream(config.seed, "try form", tries))?;
        let executions = self
            .algorithm
            .policy()
            .act(&[(&start, request)], Decoding::Greedy, &mut rng::stream(0, "try", 0))
            .map_err(|e| format!("The agent could not try: {e}"))?;
        let execution = &executions[0];
        Ok(Tried {
            view: world.view(&start, execution),
            summary: world.summary(execution),
            valid: world.valid(&start, execution),
            update: self.progress.counters.update,
            unknown: self.algorithm.policy().unknown_words(request),
        })
    }

    /// Ends in the midst of an update, without a checkpoint: the run is resumed from its last one.
    pub(super) fn interrupt(&mut self) -> anyhow::Result<FinalReport> {
        self.supply.stop();
        if let Some(store) = &mut self.store {
            store.flush()?;
        }
        self.progress.clock.record();
        Ok(self.report(false))
    }

    fn report(&self, complete: bool) -> FinalReport {
        let (name, counters) = (self.run.config.algorithm.name, self.progress.counters);
        FinalReport {
            run: self.run.id.clone(),
            algorithm: name,
            feedback: name.feedback(),
            validation_smoothed: self.validation.milestones.best(),
            reached: self.validation.milestones.reached.clone(),
            validation: self.validation.latest.unwrap_or(evaluation::rate(0, 0)),
            test: evaluation::rate(0, 0),
            best_update: self.validation.best.map_or(0, |(_, update)| update),
            updates: counters.update,
            episodes: counters.episodes,
            descriptions: counters.human + counters.simulated,
            seconds: self.progress.clock.recorded(),
            complete,
        }
    }

    /// Ends the run in an orderly way: a last evaluation, a checkpoint, and, where the run is complete, its test success.
    pub(super) fn finish(&mut self, end: End) -> anyhow::Result<FinalReport> {
        self.supply.stop();
        self.progress.clock.record();
        // Once an update, so that no reading counts twice in the smoothed curve.
        if end != End::Shutdown && self.validation.milestones.at() != Some(self.progress.counters.update) {
            self.validate()?;
        }
        self.checkpoint()?;
        if let Some(store) = &self.store
            && end != End::Shutdown
        {
            store.wait(store.store().set_active(&self.run.id, false))?;
        }
        let mut report = self.report(end == End::Budget);
        if end == End::Budget || end == End::Concluded {
            // The reported policy is the one that did best on validation; test tasks are touched here only.
            let (header, tensors) = checkpoint::load(&self.run.folder.join(checkpoint::BEST)).context(
                "the policy that did best cannot be tested; the run itself is whole. Put best.safetensors of this run's folder \
                 back from a backup and resume the run",
            )?;
            self.algorithm.restore(&tensors, &header.algorithm_state())?;
            self.events.log("The policy that did best is tested on all validation tasks and all test tasks.");
            let validation = self.evaluate(Split::Validation, 0)?;
            let test = self.evaluate(Split::Test, 0)?;
            match (validation, test) {
                (Some(validation), Some(test)) => (report.validation, report.test) = (validation.success, test.success),
                // The program ends: the run is evaluated when it is started again.
                _ => report.complete = false,
            }
        }
        if end != End::Shutdown {
            self.publish_state(RunState::Stopped);
        }
        Ok(report)
    }
}
