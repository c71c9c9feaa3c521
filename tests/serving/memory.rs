//! A training whose memory ends: the process ends with a word, its last checkpoint is whole, and it goes on from there.

use crate::{iliad, wait_for};
use std::path::Path;
use std::process::{Command, Stdio};

/// A training of one update, whose batch takes about a gigabyte more than what comes before it.
const LARGE: [&str; 6] =
    ["--preset=regex/tiny", "--set", "schedule.episodes=512", "--set", "algorithm.batch=512", "--run-dir"];

fn train(home: &Path, arguments: &[&str]) -> Command {
    let mut command = iliad(home, "");
    command.args(["train", "--device", "cpu", "--log-level", "error"]).args(arguments);
    // Each thread takes address space of its own.
    command.env("RAYON_NUM_THREADS", "2").stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

#[cfg(target_os = "linux")]
#[test]
fn a_training_that_gets_no_memory_ends_with_a_word_and_goes_on_from_its_last_checkpoint() {
    let home = tempfile::tempdir().unwrap();
    let whole = train(home.path(), &[&LARGE[..], &["whole"]].concat()).output().unwrap();
    assert!(whole.status.success(), "{whole:?}");
    let child = train(home.path(), &[&LARGE[..], &["broken"]].concat()).spawn().unwrap();
    let first = home.path().join("broken/update-00000000.safetensors");
    wait_for("the first checkpoint", || first.exists());
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap().trim().trim_end_matches(" kB");
    let limit = format!("--as={}", (size.parse::<u64>().unwrap() << 10) + (128 << 20));
    let limited = Command::new("prlimit").args(["--pid", &child.id().to_string(), &limit]).status();
    let ended = child.wait_with_output().unwrap();
    if !limited.is_ok_and(|status| status.success()) {
        println!("skipped: prlimit is not installed, or this user may not set limits");
        return;
    }
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(!ended.status.success() && told.contains("memory allocation of"), "{:?} {told}", ended.status);
    let again = train(home.path(), &["--run-dir", "broken", "--resume"]).output().unwrap();
    assert!(again.status.success(), "{again:?}");
    assert_eq!(weights(&home.path().join("broken")), weights(&home.path().join("whole")));
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
