//! The driver's process sharing (MPS): with it the work of several processes runs on a card at once, without it they take turns.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program that starts and ends it.
pub(super) const PROGRAM: &str = "nvidia-cuda-mps-control";

/// Variables that tell processes where it is, and where it writes its log.
const PIPES: &str = "CUDA_MPS_PIPE_DIRECTORY";
const LOGS: &str = "CUDA_MPS_LOG_DIRECTORY";

/// Process sharing that this process has started, and ends.
pub(super) struct ProcessSharing {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl ProcessSharing {
    /// Starts it, for the processes that [`Self::share`] is said to.
    ///
    /// # Errors
    /// A plain sentence where the program is missing or may not be started.
    pub(super) fn start(program: &Path) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("iliad-sharing-").tempdir().map_err(|e| e.to_string())?;
        let sharing = Self { program: program.to_owned(), folder };
        // The daemon that it leaves behind keeps its outputs open, so that reading a pipe would never end.
        let said = sharing.folder.path().join("said");
        let file = std::fs::File::create(&said).map_err(|e| e.to_string())?;
        let mut control = sharing.control(&["-d"]);
        // It serves all cards, so that this variable means the same to those that share as to everybody.
        control.env_remove("CUDA_VISIBLE_DEVICES");
        let status = control.stdout(Stdio::null()).stderr(file).status();
        let status = status.map_err(|e| format!("{} cannot be started: {e}", program.display()))?;
        if !status.success() {
            let said = std::fs::read_to_string(&said).unwrap_or_default();
            let line = said.lines().next().unwrap_or_default();
            return Err(format!("{} ended with {status}: {line}", program.display()));
        }
        Ok(sharing)
    }

    /// Lets a process take part.
    pub(super) fn share<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.env(PIPES, self.folder.path()).env(LOGS, self.folder.path())
    }

    fn control(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        self.share(&mut command).args(arguments).stdin(Stdio::null());
        command
    }
}

impl Drop for ProcessSharing {
    fn drop(&mut self) {
        let ended = self.control(&[]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        if let Ok(mut child) = ended {
            if let Some(mut input) = child.stdin.take() {
                let _ = input.write_all(b"quit\n");
            }
            let _ = child.wait();
        }
    }
}

/// Tells whether somebody has started it for this process already. Processes that this one starts inherit it.
pub(super) fn is_on() -> bool {
    std::env::var_os(PIPES).is_some_and(|folder| Path::new(&folder).join("control").exists())
        || Path::new("/tmp/nvidia-mps/control").exists()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A program that writes down how it was called, and ends with `code`.
    fn program(folder: &Path, code: u8) -> PathBuf {
        let path = folder.join("control");
        let script = format!(
            "#!/bin/sh\nread line\necho \"$* ${{{PIPES}:+with a folder}} $line\" >> {}/calls\necho 'not on this card' >&2\nexit {code}\n",
            folder.display()
        );
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn it_is_started_shared_and_ended() {
        let folder = tempfile::tempdir().unwrap();
        let sharing = ProcessSharing::start(&program(folder.path(), 0)).unwrap();
        let mut other = Command::new("sh");
        let said = sharing.share(&mut other).args(["-c", &format!("echo ${PIPES}")]).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap().trim(), sharing.folder.path().to_str().unwrap());
        let own = sharing.folder.path().to_owned();
        drop(sharing);
        assert!(!own.exists());
        let calls = std::fs::read_to_string(folder.path().join("calls")).unwrap();
        assert_eq!(calls.lines().map(str::trim).collect::<Vec<_>>(), ["-d with a folder", "with a folder quit"]);
    }

    #[test]
    fn where_it_cannot_be_started_the_reason_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let refused = ProcessSharing::start(&program(folder.path(), 1)).err().unwrap();
        assert!(refused.contains("ended with") && refused.ends_with("not on this card"), "{refused}");
        let missing = ProcessSharing::start(&folder.path().join("nothing")).err().unwrap();
        assert!(missing.contains("cannot be started"), "{missing}");
    }
}
