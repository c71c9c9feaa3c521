//! Few descriptors, and starts that cannot be.

use crate::{Server, ask, iliad, wait_for};
use std::io::Write;
use std::net::TcpStream;
use std::process::Output;

/// With 256 descriptors and no way to more, 400 half requests neither lock anybody out nor keep the run from its files.
#[cfg(target_os = "linux")]
#[test]
fn half_requests_leave_descriptors_for_pages_and_files() {
    let server = Server::start("ulimit -n 256;", &[], &[]);
    let mut held = Vec::new();
    for n in 0..400 {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.write_all(b"GET /heal").unwrap();
        held.push(stream);
        if n % 50 == 49 {
            assert_eq!(ask(&server.address, "GET", "/healthz", &[], "").0, 200, "with {n} sockets held");
        }
    }
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().count();
    assert!(open < 230, "{open} descriptors are open");
    // A checkpoint that is written now finds descriptors.
    let run = run_id(&server);
    wait_for("the run", || ask(&server.address, "GET", &format!("/api/runs/{run}"), &[], "").1.contains("\"running\""));
    let (status, told) = ask(&server.address, "POST", &format!("/api/runs/{run}/checkpoints"), &[], "");
    assert_eq!(status, 201, "{told}");
}

fn run_id(server: &Server) -> String {
    let (_, runs) = ask(&server.address, "GET", "/api/runs", &[], "");
    runs.split("\"id\":\"").nth(1).unwrap_or_else(|| panic!("{runs}")).split('"').next().unwrap().to_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn the_soft_limit_of_descriptors_is_raised_to_the_hard_one() {
    let server = Server::start("ulimit -S -n 200;", &[], &[]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = line.split_whitespace().filter(|word| word.bytes().all(|b| b.is_ascii_digit())).collect();
    assert_eq!(numbers[0], numbers[1], "{line}");
}

#[test]
fn what_is_printed_can_be_opened_and_a_given_token_is_not_printed() {
    let token = [("ILIAD_ACCESS_TOKEN", "a-secret-of-mine")];
    let server = Server::start("", &["--address", "0.0.0.0"], &token);
    let said = server.said.join("\n");
    assert!(!said.contains("0.0.0.0") && !said.contains("a-secret-of-mine"), "{said}");
    assert!(said.contains("set by ILIAD_ACCESS_TOKEN") && said.contains("on this machine too"), "{said}");
    assert_eq!(ask(&server.address, "GET", "/healthz", &[], "").0, 200);
    assert_eq!(
        ask(&server.address, "GET", "/api/runs", &[], "").0,
        401,
        "a token is set, so this machine needs it, too"
    );
    let bearer = [("authorization", "Bearer a-secret-of-mine")];
    assert_eq!(ask(&server.address, "GET", "/api/runs", &bearer, "").0, 200);
}

#[test]
fn starts_that_cannot_be_are_told_with_advice() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("file"), "x").unwrap();
    std::fs::create_dir(home.path().join("broken")).unwrap();
    std::fs::write(home.path().join("broken/iliad.sqlite"), "this is no database, and long enough to be looked at")
        .unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let cases: [(&[&str], &[&str]); 4] = [
        (&["--data-dir", "file"], &["file is a file, not a folder", "--data-dir"]),
        (&["--port", &port, "--data-dir", "a"], &["taken by another program", &port, "another --port"]),
        (&["--address", "192.0.2.77", "--data-dir", "b"], &["192.0.2.77 is no address of this machine", "127.0.0.1"]),
        (&["--data-dir", "broken", "--port", "0"], &["broken/iliad.sqlite", "keep a copy"]),
    ];
    for (arguments, wanted) in cases {
        let Output { status, stderr, .. } =
            iliad(home.path(), "").args(["--preset", "tiny", "--device", "cpu"]).args(arguments).output().unwrap();
        let told = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(1), "{arguments:?}: {told}");
        for words in wanted {
            assert!(told.contains(words), "{arguments:?}: {told}");
        }
        let mut doctor = iliad(home.path(), "");
        let Output { stdout, .. } = doctor.arg("doctor").args(arguments).output().unwrap();
        let found = String::from_utf8(stdout).unwrap();
        assert!(found.contains("PROBLEM") && found.contains(wanted[0]), "{found}");
    }
}

/// A folder that belongs to somebody else; needs the right to become another user.
#[cfg(target_os = "linux")]
#[test]
fn somebody_elses_folder_is_told_with_its_owner() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let home = tempfile::tempdir().unwrap();
    if home.path().metadata().unwrap().uid() != 0 {
        println!("skipped: only root can start a program as another user");
        return;
    }
    std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let output = iliad(home.path(), "").args(["--port", "0", "--device", "cpu"]).uid(65534).output();
    let Ok(Output { status, stderr, .. }) = output else {
        println!("skipped: the program cannot be started as another user");
        return;
    };
    let told = String::from_utf8(stderr).unwrap();
    if told.contains("iliad: Permission denied") || status.code() == Some(126) {
        println!("skipped: another user cannot reach the program");
        return;
    }
    assert!(told.contains("it belongs to root") && told.contains("--data-dir"), "{told}");
}
