//! What is due after an update: points of the curve, evaluations, checkpoints, the status.

use super::Trainer;
use super::checkpoint::{self, Counters, Header};
use crate::config::run::TeacherMode;
use crate::family::Family;
use crate::protocol::Evaluation;
use crate::protocol::Split;
use crate::protocol::evaluation::evaluate_while;
use crate::run::Moment;
use crate::run::{Command, Event, Status};
use anyhow::Context;

/// File name of the curve within the run's folder: one JSON point a line.
pub(super) const CURVE: &str = "curve.jsonl";

/// The curve's file.
pub(super) struct Curve {
    pub(super) file: std::fs::File,
    /// False when points were lost: the file was not there, or a line within it cannot be read.
    pub(super) whole: bool,
}

/// The curve's file, cut back to points up to `update`. It is cut in place, which needs no room on a full disk; only one with
/// damaged lines in its midst is written anew, beside the old one.
pub(super) fn open_curve(folder: &std::path::Path, update: u64) -> anyhow::Result<Curve> {
    use std::io::Seek;
    let path = folder.join(CURVE);
    let told = || format!("cannot use {}", path.display());
    let old = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(e).with_context(told),
    };
    let (mut kept, mut damaged) = (Vec::new(), false);
    for line in old.split_inclusive(|byte| *byte == b'\n') {
        // A half-written last line is what a kill leaves.
        let Some(text) = line.strip_suffix(b"\n") else { break };
        match serde_json::from_slice::<crate::run::Point>(text) {
            Ok(point) if point.update <= update => kept.extend_from_slice(line),
            Ok(_) => {}
            Err(_) => damaged = true,
        }
    }
    if !old.starts_with(&kept) {
        crate::output::file::write(&path, &kept)?;
    }
    let mut file = std::fs::File::options().create(true).truncate(false).write(true).open(&path).with_context(told)?;
    file.set_len(kept.len() as u64).with_context(told)?;
    file.seek(std::io::SeekFrom::End(0)).with_context(told)?;
    Ok(Curve { file, whole: !damaged && (!kept.is_empty() || update == 0) })
}

impl<K: Family> Trainer<'_, K> {
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

    /// Evaluates the policy; `None` when the program ends meanwhile.
    pub(super) fn evaluate(&mut self, split: Split, limit: usize) -> anyhow::Result<Option<Evaluation>> {
        let world = self.world.clone();
        let (early, inbox) = (&mut self.early, self.inbox);
        let go_on = || {
            early.extend(inbox.try_iter());
            !early.iter().any(|command| matches!(command, Command::Shutdown))
        };
        Ok(evaluate_while(&*world, self.algorithm.policy(), split, limit, go_on)?)
    }

    pub(super) fn evaluate_and_tell(&mut self) -> anyhow::Result<()> {
        self.read_losses()?;
        let limit = self.config.schedule.evaluate_tasks;
        // Broken off, it is made when the run goes on, before anything else is learnt.
        self.owed = true;
        let Some(found) = self.evaluate(Split::Validation, limit)? else { return Ok(()) };
        self.owed = false;
        let update = self.counters.update;
        self.validation = Some(found.success);
        self.validated = Some(update);
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
        let spare = self.algorithm.policy().spare_words();
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
            s.spare_words = Some(spare);
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
            counters: Counters { next: Some(self.numbers.next()), ..self.counters },
            owed: self.owed,
            steps: saved.steps,
            lambda: self.algorithm.lambda(self.counters.update),
            blueprint: saved.blueprint,
            teacher: self.mode,
            validation: self.validation,
            validated: self.validated,
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
