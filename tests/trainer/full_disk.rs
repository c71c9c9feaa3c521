//! A full disk is waited for.

use crate::small_disk::SmallDisk;
use crate::support::{go_live, wait_for_work};
use iliad::run::{Command, RunState};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_waited_for_again_and_again() {
    let Some(disk) = SmallDisk::of(24 << 10) else { return };
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(disk.path(), dir.path().join("run")).unwrap();
    let often = ["schedule.checkpoint_every=2", "schedule.evaluate_every=1000", "schedule.point_every=1"];
    let live = go_live(dir.path(), &often).await;
    let teacher = live.store.teacher("somebody").await.unwrap().id;
    wait_for_work(&live).await;
    let mut used = 0;
    for round in 0..6u64 {
        // No byte is left: whatever the trainer writes next fails, each time something else.
        disk.fill();
        let waits = |s: &iliad::run::Status| matches!(&s.state, RunState::Starting { what, .. } if what.contains("room on the disk"));
        let mut answers = 0;
        while !waits(&live.handle.status.borrow()) {
            wait_for_work(&live).await;
            answers += u64::from(live.answer(teacher, &format!("{round} {answers}"), "remove every [ e ]").await);
            live.until("the answer to be used, or the run to wait", |s| {
                waits(s) || s.descriptions_human == used + answers
            })
            .await;
            assert!(answers < 100, "round {round}: the disk is full, and the run goes on");
        }
        used += answers;
        disk.free();
        live.until("the run to go on", |s| s.state == RunState::Running && s.descriptions_human == used).await;
    }
    live.end(Command::Shutdown).await;
    let record = std::fs::read_to_string(disk.path().join("descriptions.jsonl")).unwrap();
    assert_eq!(record.lines().count() as u64, used);
    for line in record.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}
