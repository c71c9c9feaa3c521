//! Disks that are full, and disks that can only be read: from the beginning, and from the middle on.

use crate::small_disk::{SmallDisk, run};
use crate::teacher::{TAUGHT_BY_PEOPLE, Teacher, body};
use crate::{Server, ask, iliad, wait_for};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A server on a data folder whose run people teach.
fn serve(data: &Path) -> Server {
    serve_with(data, &[])
}

fn serve_with(data: &Path, arguments: &[&str]) -> Server {
    let data = ["--data-dir", data.to_str().unwrap()];
    Server::with_log("warn", &[&data, &TAUGHT_BY_PEOPLE, arguments].concat(), &[])
}

/// Ends a server as a supervisor does.
fn end(mut server: Server) -> Option<i32> {
    assert!(Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap().success());
    server.wait().code()
}

/// The texts of all answers in a data folder, sorted.
fn stored(data: &Path) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    let mut command = iliad(home.path(), "");
    let Output { status, stdout, stderr } = command.arg("export").arg("--data-dir").arg(data).output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let rows = String::from_utf8(stdout).unwrap();
    let text =
        |row: &str| serde_json::from_str::<serde_json::Value>(row).unwrap()["description"].as_str().unwrap().to_owned();
    let mut texts: Vec<String> = rows.lines().map(text).collect();
    texts.sort();
    texts
}

/// The parts of `/readyz`.
fn ready(server: &Server) -> (u16, serde_json::Value) {
    let (status, told) = ask(&server.address, "GET", "/readyz", &[], "");
    (status, body(&told))
}

/// The log of a trouble that lasts has a bounded number of lines, and no panic.
fn log_is_calm(server: &Server) {
    let log = server.log();
    assert!(log.lines().count() < 200 && !log.contains("panicked"), "{log}");
}

#[test]
fn a_full_disk_refuses_answers_in_plain_words_and_takes_them_once_there_is_room() {
    let Some(disk) = SmallDisk::of(96 << 10) else { return };
    let server = serve(disk.path());
    let teacher = Teacher::of(&server);
    let mut given = Vec::new();
    assert_eq!(teacher.answer(&teacher.lease(), "given with room").0, 201);
    given.push("given with room".to_owned());
    wait_for("readiness", || ready(&server).0 == 200);
    // There may be room left in files that are there already, for some answers but not for many.
    let mut leased = teacher.lease();
    disk.fill();
    let (text, refusal) = loop {
        let text = format!("given without room {}", given.len());
        let (status, told) = teacher.answer(&leased, &text);
        if status != 201 {
            break (text, (status, told));
        }
        given.push(text);
        assert!(given.len() < 200, "the disk is full, and answers are taken");
        disk.free();
        leased = teacher.lease();
        disk.fill();
    };
    let (status, told) = refusal;
    assert_eq!((status, told["code"].as_str()), (507, Some("disk-full")), "{told}");
    assert!(told["detail"].as_str().unwrap().contains("sent again when there is room"), "{told}");
    assert_eq!(ask(&server.address, "GET", "/healthz", &[], "").0, 200);
    assert_eq!(ask(&server.address, "GET", "/", &[("accept", "text/html")], "").0, 200, "pages are shown");
    let (status, parts) = ready(&server);
    assert_eq!((status, parts["disk"].as_str()), (503, Some("full")), "{parts}");
    disk.free();
    // As the page does, which keeps the words.
    wait_for("the answer to be taken", || [200, 201].contains(&teacher.answer(&leased, &text).0));
    given.push(text);
    wait_for("readiness", || ready(&server).0 == 200);
    wait_for("the run to learn it", || teacher.status()["descriptions_human"] == given.len());
    log_is_calm(&server);
    assert_eq!(end(server), Some(0));
    given.sort();
    assert_eq!(stored(disk.path()), given);
}

/// A file system on a file, which can be made to fail as a real one does.
struct LoopDisk {
    place: tempfile::TempDir,
    image: PathBuf,
    _folder: tempfile::TempDir,
}

impl LoopDisk {
    /// `None` where it may not be made; that is said.
    fn of(mib: u64) -> Option<LoopDisk> {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(mib << 20).unwrap();
        let disk = LoopDisk { place: tempfile::tempdir().unwrap(), image, _folder: folder };
        if !(run("mkfs.ext4", &["-q"], &disk.image) && disk.mount()) {
            println!("skipped: a file system on a file can only be made by root on Linux, with mkfs.ext4");
            return None;
        }
        Some(disk)
    }

    fn mount(&self) -> bool {
        run("mount", &["-o", "loop,errors=remount-ro", self.image.to_str().unwrap()], self.place.path())
    }

    /// The system finds an error in the file system, and lets nobody write any more.
    fn fail(&self) {
        assert!(run("mount", &["-o", "remount,abort"], self.place.path()));
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        run("umount", &["-l"], self.place.path());
    }
}

#[test]
fn a_disk_that_fails_in_the_middle_is_said_and_what_was_acknowledged_is_there_after_the_repair() {
    let Some(disk) = LoopDisk::of(192) else { return };
    let data = disk.place.path().join("data");
    let server = serve(&data);
    let teacher = Teacher::of(&server);
    assert_eq!(teacher.answer(&teacher.lease(), "given before").0, 201);
    let leased = teacher.lease();
    disk.fail();
    for _ in 0..20 {
        let (status, told) = teacher.answer(&leased, "typed meanwhile");
        assert!([503, 507].contains(&status), "{status} {told}");
        let code = told["code"].as_str().unwrap();
        assert!(["store-refused", "read-only"].contains(&code), "{told}");
        assert!(told["detail"].as_str().unwrap().contains(" again"), "{told}");
    }
    assert_eq!(ask(&server.address, "GET", "/healthz", &[], "").0, 200);
    assert_eq!(ask(&server.address, "GET", "/", &[("accept", "text/html")], "").0, 200, "pages are shown");
    let (status, told) = ask(&server.address, "POST", &format!("/api/runs/{}/checkpoints", teacher.run), &[], "");
    assert!(status >= 400 && told.contains("written"), "{status} {told}");
    log_is_calm(&server);
    assert!(end(server).is_some(), "it ends by itself");
    assert!(run("umount", &[], disk.place.path()));
    run("e2fsck", &["-fy"], &disk.image);
    assert!(disk.mount(), "the file system is repaired");
    let server = serve(&data);
    let teacher = teacher.moved_to(&server);
    wait_for("the run to go on", || teacher.status()["state"] == "running");
    // That the teacher had it may be lost with the last moments before the error, as in a power cut.
    assert_eq!(teacher.answer(&teacher.lease(), "typed meanwhile").0, 201);
    wait_for("the run to learn it", || teacher.status()["descriptions_human"] == 2);
    assert_eq!(end(server), Some(0));
    assert_eq!(stored(&data), ["given before", "typed meanwhile"]);
}

#[test]
fn a_run_whose_folder_can_only_be_read_waits_and_goes_on_by_itself() {
    let Some(disk) = SmallDisk::of(96 << 10) else { return };
    let data = disk.path().join("data");
    let server = serve_with(&data, &["--set", "schedule.checkpoint_every=1"]);
    let teacher = Teacher::of(&server);
    // Over the folder lies the same one, which cannot be written: what the server has open already can.
    assert!(run("mount", &["--bind", data.to_str().unwrap()], &data));
    assert!(run("mount", &["-o", "remount,bind,ro"], &data));
    let (status, parts) = ready(&server);
    assert_eq!((status, parts["disk"].as_str()), (503, Some("read-only")), "{parts}");
    let text = "typed while nothing new could be written";
    assert_eq!(teacher.answer(&teacher.lease(), text).0, 201, "the database was open");
    let waits = |what: &str| what.contains("a disk that can be written");
    wait_for("the run to wait", || waits(teacher.status()["what"].as_str().unwrap_or_default()));
    log_is_calm(&server);
    assert!(run("umount", &[], &data));
    wait_for("the run to go on", || {
        let status = teacher.status();
        status["state"] == "running" && status["descriptions_human"] == 1
    });
    wait_for("readiness", || ready(&server).0 == 200);
    assert_eq!(end(server), Some(0));
    assert_eq!(stored(&data), [text]);
}

#[test]
fn a_data_folder_that_can_only_be_read_is_refused_at_the_start_and_stays_as_it_is() {
    let Some(disk) = SmallDisk::of(96 << 10) else { return };
    let data = disk.path().join("data");
    let server = serve(&data);
    Teacher::of(&server);
    assert_eq!(end(server), Some(0));
    assert!(run("mount", &["-o", "remount,ro"], disk.path()));
    let home = tempfile::tempdir().unwrap();
    for command in [&["serve", "--port", "0", "--device", "cpu"][..], &["doctor", "--port", "0", "--device", "cpu"]] {
        let Output { status, stdout, stderr } =
            iliad(home.path(), "").args(command).arg("--data-dir").arg(&data).output().unwrap();
        let told = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(1), "{told}");
        assert!(told.contains("can only be read") && told.contains("--data-dir"), "{told}");
    }
    assert!(run("mount", &["-o", "remount,rw"], disk.path()));
    let server = serve(&data);
    Teacher::of(&server);
}
