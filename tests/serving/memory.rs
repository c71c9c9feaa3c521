//! A training whose memory ends: the process ends, its last checkpoint is whole, and it goes on from there.

use crate::iliad;
use std::path::Path;
use std::process::{Command, Output};

/// A training of a few updates in `home`, under a limit of its address space in KiB.
fn train(home: &Path, limit: Option<u64>, arguments: &[&str]) -> Output {
    let before = limit.map_or(String::new(), |kib| format!("ulimit -v {kib};"));
    let mut command: Command = iliad(home, &before);
    command.args(["train", "--device", "cpu", "--log-level", "error"]).args(arguments);
    // Each thread takes address space of its own.
    command.env("RAYON_NUM_THREADS", "2").output().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_training_that_gets_no_memory_ends_with_a_word_and_goes_on_from_its_last_checkpoint() {
    let home = tempfile::tempdir().unwrap();
    let settings = ["--preset", "regex/tiny", "--set", "schedule.episodes=128", "--set", "schedule.checkpoint_every=1"];
    let whole = train(home.path(), None, &[&["--run-dir", "whole"], &settings[..]].concat());
    assert!(whole.status.success(), "{whole:?}");
    // The least room in which it ends well lies between the two; below, memory ends at some moment of the run.
    let (mut enough, mut little) = (2u64 << 20, 64u64 << 10);
    let mut broken_off = 0;
    for attempt in 0..6 {
        let limit = (enough + little) / 2;
        let folder = format!("broken-{attempt}");
        let ended = train(home.path(), Some(limit), &[&["--run-dir", &folder], &settings[..]].concat());
        if ended.status.success() {
            enough = limit;
            continue;
        }
        little = limit;
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!told.trim().is_empty(), "it ends without a word at {limit} KiB: {:?}", ended.status);
        if !home.path().join(&folder).join("update-00000000.safetensors").exists() {
            continue;
        }
        broken_off += 1;
        let again = train(home.path(), None, &["--run-dir", &folder, "--resume"]);
        assert!(again.status.success(), "at {limit} KiB: {told}\n{again:?}");
        let newest = |folder: &str| weights(&home.path().join(folder));
        assert_eq!(newest(&folder), newest("whole"), "at {limit} KiB: {told}");
    }
    println!("{broken_off} trainings were broken off after their first checkpoint");
}

/// Every tensor of the newest checkpoint, as bits.
fn weights(folder: &Path) -> Vec<(String, Vec<u32>)> {
    let (found, complaints) = iliad::trainer::checkpoint::newest(folder).unwrap();
    assert!(complaints.is_empty(), "{complaints:?}");
    let bits = |tensor: candle_core::Tensor| {
        tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
    };
    found.unwrap().1.into_iter().map(|(name, tensor)| (name, bits(tensor))).collect()
}
