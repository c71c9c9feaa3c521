//! Small file systems that fill up, for tests that may mount them: root on Linux. Elsewhere they skip and say so.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small file system in memory, taken away when dropped.
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// `None` where it may not be mounted; that is said.
    pub fn of(kib: u64) -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = run("mount", &["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs"], folder.path());
        if !mounted {
            println!("skipped: a small file system can only be mounted by root on Linux");
        }
        mounted.then_some(SmallDisk(folder))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    /// Takes all the room there is, to the last byte.
    pub fn fill(&self) {
        let Ok(mut file) = std::fs::File::options().create(true).append(true).open(self.ballast()) else { return };
        let mut size = 1 << 20;
        while size > 0 {
            if file.write_all(&vec![1; size]).is_err() {
                size /= 2;
            }
        }
    }

    /// Gives the room back.
    pub fn free(&self) {
        let _ = std::fs::remove_file(self.ballast());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        run("umount", &["-l"], self.path());
    }
}

/// Runs a command on a path; whether it went well.
pub fn run(program: &str, arguments: &[&str], path: &Path) -> bool {
    Command::new(program).args(arguments).arg(path).output().is_ok_and(|done| done.status.success())
}
