//! Trainings with the simulated teacher, killed and resumed again and again, beside the same ones that nobody killed.

use super::Moments;
use crate::trainer::{checkpoint, description_log};
use anyhow::Context;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Settings with every part that draws or remembers something.
const SETTINGS: [&str; 9] = [
    "schedule.episodes=960",
    "schedule.checkpoint_every=2",
    "schedule.evaluate_every=10",
    "algorithm.replay=1",
    "algorithm.word_dropout=0.1",
    "algorithm.ask.candidates=2",
    "algorithm.ask.samples=1",
    "model.letters=renamed",
    "task.more_words=1",
];

/// The outcome of this part.
#[derive(Debug, Serialize)]
pub(super) struct Trained {
    /// Kills.
    pub(super) kills: u64,
    /// Trainings that were killed at least once.
    pub(super) trainings: u64,
    /// The faults, a sentence each.
    pub(super) faults: Vec<String>,
}

/// Kills trainings as often as asked, each until its end, and compares them.
pub(super) fn carry_out(folder: &Path, moments: &Moments) -> anyhow::Result<Trained> {
    let mut trained = Trained { kills: 0, trainings: 0, faults: Vec::new() };
    while trained.kills < moments.kills {
        let seed = moments.seed + trained.trainings;
        let at = |name: &str| folder.join(format!("training-{seed}-{name}"));
        let (whole, broken) = (at("whole"), at("killed"));
        let begun = Instant::now();
        let status = start(&whole, seed).status()?;
        anyhow::ensure!(status.success(), "a training failed ({status}); it says why above");
        // Moments lie within the time that the whole one took, so that a training gets on between two of them.
        let longest = moments.longest.min(begun.elapsed().as_secs_f64());
        let drawn = Moments { longest, ..*moments };
        let before = trained.kills;
        kill_until_done(&broken, seed, &drawn, &mut trained.kills)?;
        if trained.kills > before {
            trained.trainings += 1;
            compare(&whole, &broken, seed, &mut trained.faults)?;
        }
    }
    Ok(trained)
}

/// A training from its beginning, or from its last checkpoint.
fn start(folder: &Path, seed: u64) -> Command {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("iliad"));
    let mut command = Command::new(program);
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("ILIAD_") {
            command.env_remove(variable);
        }
    }
    command.args(["train", "--device", "cpu", "--log-level", "error", "--json", "--run-dir"]).arg(folder);
    if checkpoint::list(folder).is_empty() {
        command.args(["--preset", "regex/tiny", "--seed", &seed.to_string()]);
        command.args(SETTINGS.map(|setting| ["--set", setting]).concat());
    } else {
        command.arg("--resume");
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Kills in a row that brought no further checkpoint, after which the next one waits for one: on a slow machine a training would
/// never get on.
const IN_VAIN: u32 = 2;

/// Kills a training at random moments until there were enough kills or it has ended, and lets it end.
fn kill_until_done(folder: &Path, seed: u64, moments: &Moments, kills: &mut u64) -> anyhow::Result<()> {
    let newest = || checkpoint::list(folder).pop();
    let mut in_vain = 0;
    loop {
        let before = newest();
        let mut child = start(folder, seed).spawn()?;
        let last = *kills >= moments.kills;
        let mut since = Instant::now();
        let moment = moments.of("kill of a training", *kills);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if in_vain >= IN_VAIN && newest() == before {
                since = Instant::now();
            } else if !last && since.elapsed() >= moment {
                break None;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        };
        match status {
            Some(status) => {
                anyhow::ensure!(
                    status.success(),
                    "a training failed ({status}) after {kills} kills; it says why above"
                );
                return Ok(());
            }
            None => {
                child.kill()?;
                child.wait()?;
                *kills += 1;
                in_vain = if newest() == before { in_vain + 1 } else { 0 };
            }
        }
    }
}

/// Compares the weights, bit for bit, and what was learnt from.
fn compare(whole: &Path, broken: &Path, seed: u64, faults: &mut Vec<String>) -> anyhow::Result<()> {
    if weights(whole)? != weights(broken)? {
        faults.push(format!("the training with seed {seed} ended with other weights"));
    }
    let log = |folder: &Path| std::fs::read(folder.join(description_log::FILE_NAME));
    if log(whole)? != log(broken)? {
        faults.push(format!("the training with seed {seed} learnt from something else"));
    }
    Ok(())
}

/// Every tensor of the newest checkpoint, as bits.
fn weights(folder: &Path) -> anyhow::Result<Vec<(String, Vec<u32>)>> {
    let (found, complaints) = checkpoint::newest(folder)?;
    anyhow::ensure!(complaints.is_empty(), "{}", complaints.join("; "));
    let (_, tensors) = found.with_context(|| format!("{} has no checkpoint", folder.display()))?;
    let bits = |tensor: candle_core::Tensor| -> anyhow::Result<Vec<u32>> {
        Ok(tensor.flatten_all()?.to_vec1::<f32>()?.into_iter().map(f32::to_bits).collect())
    };
    tensors.into_iter().map(|(name, tensor)| Ok((name, bits(tensor)?))).collect()
}
