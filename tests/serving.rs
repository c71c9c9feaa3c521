//! The program as it is deployed: proxies in front of it, starts that cannot be, its end, its log, and the files for those who run it;
//! and what the machine can do to it: kills, full and failing disks, few descriptors, little memory.

#[path = "serving/checkpoints.rs"]
mod checkpoints;
#[path = "serving/deployment.rs"]
mod deployment;
#[cfg(target_os = "linux")]
#[path = "serving/descriptors.rs"]
mod descriptors;
#[path = "serving/disks.rs"]
mod disks;
#[path = "serving/ending.rs"]
mod ending;
#[path = "serving/kills.rs"]
mod kills;
#[path = "serving/memory.rs"]
mod memory;
#[path = "support/postgres.rs"]
mod postgres;
#[path = "serving/processes.rs"]
mod processes;
#[path = "serving/proxies.rs"]
mod proxies;
#[path = "serving/secrets.rs"]
mod secrets;
#[path = "support/small_disk.rs"]
mod small_disk;
#[path = "serving/start.rs"]
mod start;
#[path = "serving/teacher.rs"]
mod teacher;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Generous on a busy machine; nothing waits for it when all is well.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The program in a folder of its own, untouched by the settings of whoever runs the tests. `before` is what a shell does
/// first, such as setting a limit.
pub fn iliad(folder: &Path, before: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{before} exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_iliad")]);
    for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("ILIAD_")) {
        command.env_remove(variable);
    }
    command.current_dir(folder);
    command
}

/// A server that is up; it ends with the value.
pub struct Server {
    child: Child,
    /// `127.0.0.1:PORT`.
    pub address: String,
    /// The lines that it printed at its start.
    pub said: Vec<String>,
    folder: tempfile::TempDir,
}

impl Server {
    pub fn start(before: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let command = iliad(folder.path(), before);
        Server::spawn(folder, command, "warn", arguments, environment)
    }

    /// A server whose log is kept, to be read by [`Server::log`].
    pub fn with_log(level: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let mut command = iliad(folder.path(), "");
        command.stderr(std::fs::File::create(folder.path().join("log")).unwrap());
        Server::spawn(folder, command, level, arguments, environment)
    }

    fn spawn(
        folder: tempfile::TempDir,
        mut command: Command,
        level: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Server {
        command.args(["--port", "0", "--preset", "tiny", "--device", "cpu", "--log-level", level]).args(arguments);
        command.envs(environment.iter().copied()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = Vec::new();
        while said.last().is_none_or(|line: &String| !line.contains("Ctrl+C")) {
            said.push(lines.next().expect("the server says where it is").unwrap());
        }
        let url = said[0].split("http://").nth(1).expect("it prints its address");
        let address = url.split('/').next().unwrap().to_owned();
        Server { child, address, said, folder }
    }

    /// The log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Waits for its end, and gives its exit status.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request and gives status and the whole response. `head` is what follows the request line.
pub fn ask(address: &str, method: &str, path: &str, head: &[(&str, &str)], body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    if !head.iter().any(|(name, _)| *name == "host") {
        text += &format!("host: {address}\r\n");
    }
    for (name, value) in head {
        text += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{text}\r\n{body}").as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, answer)
}

/// Waits until something holds.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < DEADLINE, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
