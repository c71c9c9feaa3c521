//! Conducting a run: commands between two updates, turns of the loop, and the end.

use super::checkpoint;
use super::{FinalReport, Trainer};
use crate::config::run::Feedback;
use crate::config::run::TeacherMode;
use crate::config::run::only_described;
use crate::family::Family;
use crate::protocol::Decoding;
use crate::protocol::evaluation;
use crate::protocol::{Split, World};
use crate::rng;
use crate::run::{Command, RunState, Tried};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// What a turn of the loop did.
#[derive(PartialEq, Eq)]
pub(super) enum Turn {
    /// An update was made.
    Worked,
    /// Nothing to do until somebody answers or commands.
    Idle,
}

/// Why the loop ended.
#[derive(PartialEq, Eq)]
pub(super) enum End {
    Budget,
    Stopped,
    Shutdown,
    Concluded,
}

impl End {
    /// The command that ends a run like this when it has to be ended once more.
    pub(super) fn command(&self) -> Command {
        match self {
            // A run without anything left of its budget ends by itself.
            End::Budget => Command::Resume,
            End::Stopped => Command::Stop,
            End::Shutdown => Command::Shutdown,
            End::Concluded => Command::Conclude,
        }
    }
}

impl<K: Family> Trainer<'_, K> {
    /// Carries on until something ends the run.
    pub(super) fn run(&mut self) -> anyhow::Result<End> {
        let mut paused = false;
        let mut idle = false;
        loop {
            // Commands first; when there is nothing to do, wait for one.
            let wait = if paused || idle { Duration::from_millis(500) } else { Duration::ZERO };
            if paused || idle {
                self.rest();
            }
            let mut next = self.early.pop_front();
            if next.is_none() {
                next = match self.inbox.recv_timeout(wait) {
                    Ok(command) => Some(command),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return Ok(End::Shutdown),
                };
            }
            if paused || idle {
                // Waiting is not training.
                self.since = Instant::now();
            }
            while let Some(command) = next {
                match command {
                    Command::Stop => return Ok(End::Stopped),
                    Command::Shutdown => return Ok(End::Shutdown),
                    Command::Conclude => return Ok(End::Concluded),
                    Command::Pause => {
                        paused = true;
                        self.speed.reset();
                        self.status(|s| s.state = RunState::Paused);
                        self.out.tell_status();
                    }
                    Command::Resume => {
                        paused = false;
                        self.speed.reset();
                        self.status(|s| s.state = RunState::Running);
                        self.out.tell_status();
                    }
                    Command::SetTeacher(mode) => self.set_mode(mode)?,
                    Command::Checkpoint(reply) => {
                        let row = self.checkpoint().map_err(|e| format!("The checkpoint was not written: {e:#}"));
                        let _ = reply.send(row);
                    }
                    Command::Try { request, start, reply } => {
                        let _ = reply.send(self.attempt(&request, &start));
                    }
                    Command::DescriptionArrived => {
                        if let Some(rollouts) = &self.rollouts {
                            rollouts.ring();
                        }
                    }
                }
                next = self.early.pop_front().or_else(|| self.inbox.try_recv().ok());
            }
            if paused {
                // People can go on describing.
                self.meet_rollouts()?;
                continue;
            }
            let budget = self.config.schedule.episodes;
            if budget > 0 && self.counters.episodes >= budget {
                return Ok(End::Budget);
            }
            idle = self.turn()? == Turn::Idle;
            self.meet_rollouts()?;
        }
    }

    /// Time that passes from here on is not training time.
    fn rest(&mut self) {
        self.seconds += self.since.elapsed().as_secs_f64();
        self.since = Instant::now();
        if self.speed.per_second() > 0.0 {
            self.speed.reset();
            self.status(|_| {});
            self.out.tell_status();
        }
    }

    /// Whether the run can go on without people.
    pub(super) fn simulated_available(&self) -> bool {
        self.teacher.is_some() || self.config.algorithm.name.feedback() != Feedback::Descriptions
    }

    pub(super) fn elapsed(&self) -> f64 {
        self.seconds + self.since.elapsed().as_secs_f64()
    }

    fn set_mode(&mut self, mode: TeacherMode) -> anyhow::Result<()> {
        let name = self.config.algorithm.name;
        if !name.taught_by_people() && mode != TeacherMode::Simulated {
            self.out.log(format!("The simulated teacher goes on: {}.", only_described(name)));
            self.out.tell_status();
            return Ok(());
        }
        if !self.simulated_available() && mode != TeacherMode::Human {
            self.out.log("There is no simulated teacher for this run; people go on teaching.");
            self.out.tell_status();
            return Ok(());
        }
        if self.notes.is_none() && mode != TeacherMode::Simulated {
            self.out.log("This run has no pages for people; the simulated teacher goes on.");
            return Ok(());
        }
        self.mode = mode;
        self.speed.reset();
        self.status(|_| {});
        self.out.tell_status();
        if let Some(notes) = &self.notes {
            notes.wait(notes.store().set_teacher_mode(&self.id, mode))?;
        }
        self.meet_rollouts()
    }

    /// Whether the program ends. Takes commands out of the inbox, for later; asked between the parts of long work.
    pub(super) fn leaving(&mut self) -> bool {
        self.early.extend(self.inbox.try_iter());
        self.early.iter().any(|command| matches!(command, Command::Shutdown))
    }

    /// One turn of the loop: people's answers first, then a simulated iteration.
    fn turn(&mut self) -> anyhow::Result<Turn> {
        let mut turn = Turn::Idle;
        // Whoever teaches now: what somebody typed before the switch is learnt from all the same.
        if self.human_update()? {
            turn = Turn::Worked;
        }
        match self.mode {
            TeacherMode::Human => {}
            TeacherMode::Simulated => {
                self.simulated_update(0.0, 0)?;
                turn = Turn::Worked;
            }
            TeacherMode::Mixed { share } => {
                let room = self.room()?;
                self.simulated_update(share, room)?;
                turn = Turn::Worked;
            }
        }
        if let Some(notes) = &mut self.notes {
            notes.flush(false)?;
        }
        Ok(turn)
    }

    /// Lets greedy π_θ carry out a request.
    fn attempt(&self, request: &str, form: &serde_json::Value) -> Result<Tried, String> {
        if request.trim().is_empty() {
            return Err("Type what the agent should do.".into());
        }
        // What is left open is another at each try.
        let tries = self.tries.get();
        self.tries.set(tries + 1);
        let start =
            self.kit.start_from_form(&self.world, form, &mut rng::stream(self.config.seed, "try form", tries))?;
        let executions = self
            .algorithm
            .policy()
            .act(&[(&start, request)], Decoding::Greedy, &mut rng::stream(0, "try", 0))
            .map_err(|e| format!("The agent could not try: {e}"))?;
        let execution = &executions[0];
        Ok(Tried {
            view: self.world.view(&start, execution),
            summary: self.world.summary(execution),
            valid: self.world.valid(&start, execution),
            update: self.counters.update,
        })
    }

    /// Makes lost updates again and then carries on until something ends the run.
    pub(super) fn carry_on(&mut self) -> anyhow::Result<End> {
        self.catch_up()?;
        self.start_rollouts()?;
        self.status(|s| s.state = RunState::Running);
        self.out.tell_status();
        self.run()
    }

    /// Lets go in the midst of an update, without a checkpoint: the run goes on from its last one.
    pub(super) fn break_off(&mut self) -> anyhow::Result<FinalReport> {
        self.rollouts = None;
        if let Some(notes) = &mut self.notes {
            notes.flush(true)?;
        }
        self.seconds = self.elapsed();
        Ok(self.report(false))
    }

    fn report(&self, complete: bool) -> FinalReport {
        FinalReport {
            run: self.id.clone(),
            algorithm: self.config.algorithm.name,
            feedback: self.config.algorithm.name.feedback(),
            validation_smoothed: self.milestones.best(),
            reached: self.milestones.reached.clone(),
            validation: self.validation.unwrap_or(evaluation::rate(0, 0)),
            test: evaluation::rate(0, 0),
            best_update: self.best.map_or(0, |(_, u)| u),
            updates: self.counters.update,
            episodes: self.counters.episodes,
            descriptions: self.counters.human + self.counters.simulated,
            seconds: self.seconds,
            complete,
        }
    }

    pub(super) fn finish(&mut self, end: End) -> anyhow::Result<FinalReport> {
        self.rollouts = None;
        self.seconds = self.elapsed();
        self.since = Instant::now();
        // Once an update, so that no reading counts twice in the smoothed curve.
        if end != End::Shutdown && self.milestones.at() != Some(self.counters.update) {
            self.evaluate_and_tell()?;
        }
        self.checkpoint()?;
        if let Some(notes) = &self.notes
            && end != End::Shutdown
        {
            notes.wait(notes.store().set_active(&self.id, false))?;
        }
        let mut report = self.report(end == End::Budget);
        if end == End::Budget || end == End::Concluded {
            // The reported policy is the one that did best on validation; test tasks are touched here only.
            let (header, tensors) = checkpoint::load(&self.folder.join(checkpoint::BEST))?;
            self.algorithm.restore(&tensors, &header.saved())?;
            let validation = self.evaluate(Split::Validation, 0)?;
            let test = self.evaluate(Split::Test, 0)?;
            match (validation, test) {
                (Some(validation), Some(test)) => (report.validation, report.test) = (validation.success, test.success),
                // The program ends: what is to be reported is read another time.
                _ => report.complete = false,
            }
        }
        if end != End::Shutdown {
            self.status(|s| s.state = RunState::Stopped);
            self.out.tell_status();
        }
        Ok(report)
    }
}
