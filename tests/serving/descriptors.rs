//! No file descriptor is left: new connections wait or are refused, nobody spins, the log stays short, and everything goes on.

use crate::teacher::{TAUGHT_BY_PEOPLE, Teacher};
use crate::{DEADLINE, Server, ask, wait_for};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

/// Descriptors that a process has open.
fn open(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}

/// Sets how many descriptors a process may have.
fn limit(process: u32, descriptors: usize) -> bool {
    let (process, limit) = (process.to_string(), format!("--nofile={descriptors}:4096"));
    Command::new("prlimit").args(["--pid", &process, &limit]).status().is_ok_and(|status| status.success())
}

/// Clock ticks of the processor that a process has had.
fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn without_a_free_descriptor_the_server_waits_and_then_goes_on() {
    let server = Server::with_log("warn", &TAUGHT_BY_PEOPLE, &[]);
    let teacher = Teacher::of(&server);
    let leased = teacher.lease();
    assert_eq!(teacher.answer(&leased, "given before").0, 201);
    let leased = teacher.lease();
    wait_for("the run to learn it", || teacher.status()["descriptions_human"] == 1);
    // A page that listens all the while.
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    write!(stream, "GET /runs/{}/events HTTP/1.1\r\nhost: {}\r\n\r\n", teacher.run, server.address).unwrap();
    assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
    if !limit(server.id(), open(server.id())) {
        println!("skipped: prlimit is not installed, or this user may not set limits");
        return;
    }
    let before = ticks(server.id());
    // The system takes these connections; the program cannot.
    let mut waiting: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    for newcomer in &mut waiting {
        // One that was ended to make room is no news here.
        let _ = write!(newcomer, "GET /healthz HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", server.address);
    }
    std::thread::sleep(Duration::from_secs(3));
    let spent = ticks(server.id()) - before;
    // A hundred ticks are a second of one processor.
    assert!(spent < 150, "the server spins: {spent} ticks within three seconds");
    let log = server.log();
    assert!(log.lines().count() < 20 && !log.contains("panicked"), "{log}");
    assert!(limit(server.id(), 4096));
    for mut newcomer in waiting {
        newcomer.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut told = String::new();
        let _ = newcomer.read_to_string(&mut told);
        assert!(told.is_empty() || told.starts_with("HTTP/1.1 200") || told.starts_with("HTTP/1.1 503"), "{told}");
    }
    assert_eq!(ask(&server.address, "GET", "/healthz", &[], "").0, 200);
    assert_eq!(teacher.answer(&leased, "typed meanwhile").0, 201, "who had it has it still");
    wait_for("the run to learn it", || teacher.status()["descriptions_human"] == 2);
}
