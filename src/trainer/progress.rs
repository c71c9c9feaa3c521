//! What is due after an update: points of the curve, evaluations, checkpoints, the status.

use super::Trainer;
use super::checkpoint::{self, Header};
use crate::evaluation::evaluate;
use crate::run::{Event, Status, TeacherMode};
use crate::task::Split;
use crate::task::kit::TaskKit;
use anyhow::Context;

/// The curve's file, cut back to points up to `update`.
pub(super) fn open_curve(folder: &std::path::Path, update: u64) -> anyhow::Result<std::fs::File> {
    let path = folder.join("curve.jsonl");
    let kept: String = std::fs::read_to_string(&path)
        .unwrap_or_default()
        .lines()
        .filter(|l| serde_json::from_str::<crate::run::Point>(l).is_ok_and(|p| p.update <= update))
        .map(|l| format!("{l}\n"))
        .collect();
    std::fs::write(&path, kept).with_context(|| format!("cannot write {}", path.display()))?;
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
            let point = self.meters.take(&self.counters, self.elapsed(), self.adel.lambda(update));
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
        writeln!(self.curve, "{}", serde_json::to_string(&point)?).context("cannot write the curve")?;
        self.out.send(Event::Point(point));
        Ok(())
    }

    pub(super) fn evaluate_and_tell(&mut self) -> anyhow::Result<()> {
        let limit = self.config.schedule.evaluate_tasks;
        let found = evaluate(&*self.world, self.adel.policy(), Split::Validation, limit)?;
        let update = self.counters.update;
        self.validation = Some(found.success);
        let mut point = self.meters.take(&self.counters, self.elapsed(), self.adel.lambda(update));
        point.validation = Some(found.success);
        self.tell_point(point)?;
        if self.best.is_none_or(|(best, _)| found.success.value > best.value) {
            self.best = Some((found.success, update));
            let header = self.header()?;
            let row = checkpoint::save_best(&self.folder, &header, &self.adel.tensors()?)?;
            self.out.send(Event::Checkpoint(row));
        }
        self.status(|_| {});
        self.out.tell_status();
        Ok(())
    }

    pub(super) fn status(&mut self, change: impl FnOnce(&mut Status)) {
        let (c, mode, lambda) = (self.counters, self.mode, self.adel.lambda(self.counters.update));
        let (rate, seconds) = (self.speed.per_second(), self.elapsed());
        let (validation, best, available) = (self.validation, self.best.map(|(r, _)| r), self.teacher.is_some());
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

    pub(super) fn header(&self) -> anyhow::Result<Header> {
        Ok(Header {
            format: checkpoint::FORMAT,
            program: env!("CARGO_PKG_VERSION").into(),
            config: self.config.clone(),
            counters: self.counters,
            steps: self.adel.steps(),
            lambda: self.adel.lambda(self.counters.update),
            blueprint: self.adel.blueprint(),
            teacher: self.mode,
            validation: self.validation,
            best: self.best,
            seconds: self.elapsed(),
            meters: self.meters.clone(),
            tallies: self.tallies.clone(),
            written_at: time::OffsetDateTime::now_utc().format(&time::format_description::well_known::Rfc3339)?,
        })
    }

    pub(super) fn checkpoint(&mut self) -> anyhow::Result<crate::run::CheckpointRow> {
        // What the checkpoint counts on must be on disk before it.
        self.record.sync()?;
        if let Some(notes) = &mut self.notes {
            notes.flush(true)?;
        }
        let row = checkpoint::save(&self.folder, &self.header()?, &self.adel.tensors()?, self.config.schedule.keep)?;
        self.out.send(Event::Checkpoint(row.clone()));
        Ok(row)
    }
}
