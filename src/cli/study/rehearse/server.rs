//! The server of a rehearsal: this program, as a process of its own on a free port, with settings of its own.

use super::client::Address;
use anyhow::Context;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A server that ends with the value.
pub(super) struct Server {
    child: Child,
    pub(super) address: Address,
}

impl Server {
    /// Starts a server of this program on a data folder, and waits until it says where it is.
    ///
    /// # Errors
    /// When it cannot be started, or ends before it serves; it says why itself.
    pub(super) async fn start(data: &Path) -> anyhow::Result<Server> {
        let program = std::env::current_exe().context("this program cannot find itself")?;
        let mut command = Command::new(program);
        // Everybody comes from one address, and settings of this machine's own server are none of the rehearsal's.
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("ILIAD_") {
                command.env_remove(variable);
            }
        }
        command
            .args(["serve", "--port", "0", "--log-level", "error", "--device", "cpu", "--rate-limits", "false"])
            .arg("--data-dir")
            .arg(data)
            .current_dir(data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().context("the server cannot be started")?;
        let mut lines = BufReader::new(child.stdout.take().context("the server has no output")?).lines();
        while let Some(line) = lines.next_line().await? {
            if let Some(found) = line.split_whitespace().find_map(|word| Address::read(word).ok()) {
                // Its later output is read, so that it never waits for a reader.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return Ok(Server { child, address: found });
            }
        }
        anyhow::bail!("the server ended before it served ({})", child.wait().await?)
    }

    /// Ends it.
    pub(super) async fn end(mut self) {
        // Its folder goes, or is read by another server, which makes good what is lost by a sudden end.
        let _ = self.child.kill().await;
    }
}
