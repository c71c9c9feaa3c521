//! The work that is due after an update: points of the curve, evaluations, checkpoints, the status.

use super::Trainer;
use super::checkpoint::{self, Counters, Header};
use crate::config::run::TeacherMode;
use crate::family::Family;
use crate::protocol::evaluation::evaluate_while;
use crate::protocol::{Evaluation, Split};
use crate::run::{CheckpointRow, Event, Moment, Point, Status, seconds_left};
use std::time::Instant;

impl<K: Family> Trainer<'_, K> {
    /// Does what is due after an update: a point, an evaluation, a checkpoint, the status.
    pub(super) fn after_update(&mut self) -> anyhow::Result<()> {
        let update = self.progress.counters.update;
        let schedule = self.run.config.schedule.clone();
        self.progress.speed.note(self.progress.counters.episodes);
        if update.is_multiple_of(schedule.evaluate_every) {
            self.validate()?;
        } else if update.is_multiple_of(schedule.point_every) {
            self.read_losses()?;
            let point = self.progress.point(self.lambda());
            self.publish_point(point)?;
        }
        if self.mode == TeacherMode::Simulated
            && update.is_multiple_of(schedule.point_every)
            && let Some(store) = &self.store
        {
            // Nobody fills the pool now, but people may still look at it.
            store.retire_stale(update.saturating_sub(self.run.config.pool.max_age))?;
        }
        if update.is_multiple_of(schedule.checkpoint_every) {
            self.checkpoint()?;
        }
        if self.events.status_due() {
            self.publish_status();
        }
        Ok(())
    }

    fn publish_point(&mut self, point: Point) -> anyhow::Result<()> {
        self.curve.append(&point)?;
        self.events.send(Event::Point(point));
        Ok(())
    }

    /// Mixing weight λ at the present update; 0 for algorithms without one.
    fn lambda(&self) -> f64 {
        self.algorithm.mixing().map_or(0.0, |mixing| mixing.at(self.progress.counters.update))
    }

    /// Evaluates the policy; `None` when the program ends meanwhile.
    pub(super) fn evaluate(&mut self, split: Split, limit: usize) -> anyhow::Result<Option<Evaluation>> {
        let (commands, events) = (&mut self.commands, &self.events);
        let begun = Instant::now();
        let go_on = |done, of| {
            let seconds_left = seconds_left(begun.elapsed(), done, of);
            events.send(Event::Evaluating { split, done, of, seconds_left });
            !commands.shutdown_requested()
        };
        Ok(evaluate_while(&*self.run.world, self.algorithm.policy(), split, limit, go_on)?)
    }

    /// Evaluates the policy on the validation split, and saves it where it is the best so far.
    pub(super) fn validate(&mut self) -> anyhow::Result<()> {
        self.read_losses()?;
        let schedule = self.run.config.schedule.clone();
        // An evaluation that is broken off is made when the run is resumed, before anything else is learnt.
        self.validation.due = true;
        let Some(found) = self.evaluate(Split::Validation, schedule.evaluate_tasks)? else { return Ok(()) };
        let c = self.progress.counters;
        let moment = Moment { update: c.update, episodes: c.episodes, descriptions: c.human + c.simulated };
        let read = self.validation.record(found.success, schedule.smooth, moment);
        let mut point = self.progress.point(self.lambda());
        point.validation = Some(found.success);
        point.validation_smoothed = Some(read.smoothed);
        self.publish_point(point)?;
        if read.best {
            let row = checkpoint::save_best(&self.run.folder, &self.header()?, &self.algorithm.tensors()?)?;
            self.events.send(Event::Checkpoint(row));
        }
        self.publish_status();
        Ok(())
    }

    /// Publishes the status with another state of the run.
    pub(super) fn publish_state(&mut self, state: crate::run::RunState) {
        self.change_status(|s| s.state = state);
        self.events.publish_status();
    }

    /// Publishes the status.
    pub(super) fn publish_status(&mut self) {
        self.change_status(|_| {});
        self.events.publish_status();
    }

    fn change_status(&mut self, change: impl FnOnce(&mut Status)) {
        let (c, mode, lambda) = (self.progress.counters, self.mode, self.lambda());
        let (rate, seconds) = (self.progress.speed.per_second(), self.progress.clock.elapsed());
        let spare = self.algorithm.policy().spare_words();
        let (validation, best) = (self.validation.latest, self.validation.best_success());
        let available = self.simulated_available();
        let waiting = self.progress.waiting;
        self.events.change_status(|s| {
            s.teacher = mode;
            s.simulated_available = available;
            s.update = c.update;
            s.episodes = c.episodes;
            s.descriptions_human = c.human;
            s.descriptions_simulated = c.simulated;
            s.lambda = lambda;
            s.episodes_per_second = rate;
            s.validation = validation;
            s.best_validation = best;
            s.seconds = seconds;
            s.spare_words = Some(spare);
            s.waiting = waiting;
            s.practice = c.practice;
            change(s);
        });
    }

    /// Reads the losses since the last time; here the trainer waits for a GPU.
    fn read_losses(&mut self) -> anyhow::Result<()> {
        let (sum, count) = self.algorithm.take_loss()?;
        if !sum.is_finite() {
            anyhow::bail!("the loss is {sum}; the learning rate may be too high")
        }
        self.progress.meters.losses(sum, count);
        Ok(())
    }

    fn header(&self) -> anyhow::Result<Header> {
        let algorithm = self.algorithm.state();
        Ok(Header {
            format: checkpoint::FORMAT,
            program: env!("CARGO_PKG_VERSION").into(),
            config: self.run.config.clone(),
            counters: Counters { next: Some(self.supply.numbers.next()), ..self.progress.counters },
            evaluation_due: self.validation.due,
            steps: algorithm.steps,
            lambda: self.lambda(),
            blueprint: algorithm.blueprint,
            teacher: self.mode,
            validation: self.validation.latest,
            validated: self.validation.evaluated_update,
            best: self.validation.best,
            seconds: self.progress.clock.elapsed(),
            meters: self.progress.meters.clone(),
            kind_counts: self.selector.counts().clone(),
            told: self.selector.told().clone(),
            written_at: time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339)?,
            state: algorithm.state,
            milestones: self.validation.milestones.clone(),
        })
    }

    /// Writes a checkpoint.
    pub(super) fn checkpoint(&mut self) -> anyhow::Result<CheckpointRow> {
        self.read_losses()?;
        // Everything that the checkpoint counts must be on the disk before it.
        self.description_log.sync()?;
        if let Some(store) = &mut self.store {
            store.flush()?;
        }
        let keep = self.run.config.schedule.keep;
        let row = checkpoint::save(&self.run.folder, &self.header()?, &self.algorithm.tensors()?, keep)?;
        self.events.send(Event::Checkpoint(row.clone()));
        Ok(row)
    }
}
