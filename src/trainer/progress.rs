//! What is due after an update: points of the curve, evaluations, checkpoints, the status.

use super::Trainer;
use super::checkpoint::{self, Header};
use crate::evaluation::evaluate;
use crate::experiment::results::Moment;
use crate::run::{Event, Status, TeacherMode};
use crate::task::Split;
use crate::task::kit::TaskKit;
use anyhow::Context;

/// The curve's file, cut back to points up to `update`.
pub(super) fn open_curve(folder: &std::path::Path, update: u64) -> anyhow::Result<std::fs::File> {
    let path = folder.join("curve.jsonl");
    let old = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(e).with_context(|| format!("cannot read {}", path.display())),
    };
    let kept: String = String::from_utf8_lossy(&old)
        .lines()
        .filter(|l| serde_json::from_str::<crate::run::Point>(l).is_ok_and(|p| p.update <= update))
        .map(|l| format!("{l}\n"))
        .collect();
    // Not in place: a kill in between would leave a curve cut short.
    crate::output::file::write(&path, kept.as_bytes())?;
    Ok(std::fs::File::options().append(true).open(&path)?)
}

impl<K: TaskKit> Trainer<'_, K> {
    /// What is due after an update: a point, an evaluation, a checkpoint, the status.
    pub(super) fn after_update(&mut self) -> anyhow::Result<()> {
        let update = self.counters.update;
        let s = self.config.schedule.clone();
        self.speed.note(self.counters.episodes);
        if update.is_multiple_of(s.evaluate_every) {
            self.evaluate_and_tell()?;
        } else if update.is_multiple_of(s.point_every) {
            self.read_losses()?;
            let point = self.meters.take(&self.counters, self.elapsed(), self.algorithm.lambda(update));
            self.tell_point(point)?;
        }
        if self.mode == TeacherMode::Simulated && update.is_multiple_of(s.point_every) {
            // Nobody fills the pool now, but people may still look at it.
            self.retire()?;
        }
        if update.is_multiple_of(s.checkpoint_every) {
            self.checkpoint()?;
        }
        if self.out.told.elapsed().as_millis() >= 250 {
            self.status(|_| {});
            self.out.tell_status();
        }
        Ok(())
    }

    pub(super) fn tell_point(&mut self, point: crate::run::Point) -> anyhow::Result<()> {
        use std::io::Write;
        writeln!(self.curve, "{}", crate::output::json::line(&point)?).context("cannot write the curve")?;
        self.out.send(Event::Point(point));
        Ok(())
    }

    pub(super) fn evaluate_and_tell(&mut self) -> anyhow::Result<()> {
        self.read_losses()?;
        let limit = self.config.schedule.evaluate_tasks;
        let found = evaluate(&*self.world, self.algorithm.policy(), Split::Validation, limit)?;
        let update = self.counters.update;
        self.validation = Some(found.success);
        let c = self.counters;
        let moment = Moment { update, episodes: c.episodes, descriptions: c.human + c.simulated };
        let read = self.milestones.note(found.success.value, self.config.schedule.smooth, moment);
        let mut point = self.meters.take(&self.counters, self.elapsed(), self.algorithm.lambda(update));
        point.validation = Some(found.success);
        point.validation_smoothed = Some(read.smoothed);
        self.tell_point(point)?;
        if read.best {
            self.best = Some((found.success, update));
            let header = self.header()?;
            let row = checkpoint::save_best(&self.folder, &header, &self.algorithm.tensors()?)?;
            self.out.send(Event::Checkpoint(row));
        }
        self.status(|_| {});
        self.out.tell_status();
        Ok(())
    }

    pub(super) fn status(&mut self, change: impl FnOnce(&mut Status)) {
        let (c, mode, lambda) = (self.counters, self.mode, self.algorithm.lambda(self.counters.update));
        let (rate, seconds) = (self.speed.per_second(), self.elapsed());
        let (validation, best, available) = (self.validation, self.best.map(|(r, _)| r), self.simulated_available());
        self.out.change(|s| {
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
            change(s);
        });
    }

    /// Reads what was lost since the last time; this is where the trainer waits for a GPU.
    pub(super) fn read_losses(&mut self) -> anyhow::Result<()> {
        let (sum, count) = self.algorithm.take_loss()?;
        if !sum.is_finite() {
            anyhow::bail!("the loss is {sum}; the learning rate may be too high")
        }
        self.meters.losses(sum, count);
        Ok(())
    }

    pub(super) fn header(&self) -> anyhow::Result<Header> {
        let saved = self.algorithm.saved();
        Ok(Header {
            format: checkpoint::FORMAT,
            program: env!("CARGO_PKG_VERSION").into(),
            config: self.config.clone(),
            counters: self.counters,
            steps: saved.steps,
            lambda: self.algorithm.lambda(self.counters.update),
            blueprint: saved.blueprint,
            teacher: self.mode,
            validation: self.validation,
            best: self.best,
            seconds: self.elapsed(),
            meters: self.meters.clone(),
            tallies: self.tallies.clone(),
            written_at: time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339)?,
            state: saved.state,
            milestones: self.milestones.clone(),
        })
    }

    pub(super) fn checkpoint(&mut self) -> anyhow::Result<crate::run::CheckpointRow> {
        self.read_losses()?;
        // What the checkpoint counts on must be on disk before it.
        self.record.sync()?;
        if let Some(notes) = &mut self.notes {
            notes.flush(true)?;
        }
        let row =
            checkpoint::save(&self.folder, &self.header()?, &self.algorithm.tensors()?, self.config.schedule.keep)?;
        self.out.send(Event::Checkpoint(row.clone()));
        Ok(row)
    }
}
