//! How a server ends: at once, whatever its peers do, and with its database whole in one file.

use crate::iliad;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

/// SIGTERM as soon as the address can be read, and a peer that never sends the rest of its body.
#[cfg(unix)]
#[test]
fn the_first_moment_is_soon_enough_to_end_and_nobody_holds_it_up() {
    for half_body in [false, true, false] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = iliad(folder.path(), "");
        command.args([
            "--port",
            "0",
            "--preset",
            "tiny",
            "--device",
            "cpu",
            "--data-dir",
            "data",
            "--log-level",
            "warn",
        ]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut first).unwrap();
        let address = first.split("http://").nth(1).expect("it prints its address").split('/').next().unwrap();
        let held = half_body.then(|| {
            let mut stream = TcpStream::connect(address).unwrap();
            let head = format!("POST /api/runs/x/lease HTTP/1.1\r\nhost: {address}\r\ncontent-length: 100\r\n\r\n{{");
            stream.write_all(head.as_bytes()).unwrap();
            stream
        });
        let terminated = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(terminated.success());
        assert_eq!(child.wait().unwrap().code(), Some(0), "it ends in an orderly way");
        drop(held);
        let left: Vec<_> =
            std::fs::read_dir(folder.path().join("data")).unwrap().flatten().map(|e| e.file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().ends_with("-wal")), "{left:?}");
    }
}
