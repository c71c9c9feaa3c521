//! How a server ends: at once, whatever its peers do, and with its database whole in one file.

use crate::{DEADLINE, Server, ask, iliad};
use std::io::{BufRead, BufReader, Read, Write};
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

/// SIGTERM while fifty pages listen: every stream ends as a whole response, and the program ends in an orderly way.
#[cfg(unix)]
#[test]
fn open_streams_end_with_the_server() {
    let mut server = Server::start("", &[], &[]);
    let (_, runs) = ask(&server.address, "GET", "/api/runs", &[], "");
    let run = runs.split("\"id\":\"").nth(1).unwrap_or_else(|| panic!("{runs}")).split('"').next().unwrap();
    let streams: Vec<_> = (0..50)
        .map(|number| {
            let path = if number % 2 == 0 { format!("/runs/{run}/events") } else { format!("/events?runs={run}") };
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream.set_read_timeout(Some(DEADLINE)).unwrap();
            let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
            stream.write_all(head.as_bytes()).unwrap();
            let mut received = Vec::new();
            let mut piece = [0; 4096];
            while !String::from_utf8_lossy(&received).contains("event:") {
                let count = stream.read(&mut piece).expect("events come");
                assert!(count > 0, "{}", String::from_utf8_lossy(&received));
                received.extend_from_slice(&piece[..count]);
            }
            stream
        })
        .collect();
    let terminated = Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
    assert!(terminated.success());
    for mut stream in streams {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("the stream ends, it is not cut off");
        assert!(rest.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&rest));
    }
    assert_eq!(server.wait().code(), Some(0), "it ends in an orderly way");
}
