//! The runs of a grid as jobs of a scheduler: a file with one command a line, and the script that hands them to Slurm, to Ray, or to
//! `xargs`. Each command is an ordinary one of this program, which passes over a run that is complete and goes on with one that was
//! broken off, so a job may be started as often as the scheduler likes.

use crate::output::file;
use std::path::{Path, PathBuf};

/// A program that carries jobs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scheduler {
    /// A job array of Slurm
    Slurm,
    /// Tasks of Ray
    Ray,
    /// A shell script for one machine, or for GNU parallel
    Shell,
}

/// Jobs that belong together.
pub struct JobArray<'a> {
    /// Name, of letters, digits, `-` and `.`.
    pub name: &'a str,
    /// This program.
    pub program: &'a Path,
    /// The folder in which the commands are carried out: settings may name files in it.
    pub working: &'a Path,
    /// The arguments of each job.
    pub jobs: &'a [Vec<String>],
    /// The arguments of the command that collects the results.
    pub collect: &'a [String],
    /// Jobs at once; 1 leaves it to Slurm and to Ray.
    pub at_once: usize,
}

/// Names of the files.
const JOBS: &str = "jobs.txt";
const COLLECT: &str = "collect.sh";
const LOGS: &str = "logs";

/// The files that were written, and what to do with them.
pub struct Written {
    /// One command a line.
    pub jobs: PathBuf,
    /// The command line that starts all of them.
    pub start: String,
    /// The command line that collects the results.
    pub collect: String,
}

impl JobArray<'_> {
    /// Writes the files into a folder, which is made.
    ///
    /// # Errors
    /// When a file cannot be written, or a path cannot be said in a script.
    pub fn write(&self, folder: &Path, scheduler: Scheduler) -> anyhow::Result<Written> {
        let folder = std::path::absolute(folder)?;
        std::fs::create_dir_all(folder.join(LOGS))?;
        let lines = self.jobs.iter().map(|arguments| self.command(arguments)).collect::<anyhow::Result<Vec<_>>>()?;
        file::write(&folder.join(JOBS), (lines.join("\n") + "\n").as_bytes())?;
        let working = quoted(text(self.working)?);
        let collect = format!(
            "#!/bin/sh\n# Tabulates what the runs have reached.\ncd {working} && exec {}\n",
            self.command(self.collect)?
        );
        let collect_script = script(&folder.join(COLLECT), &collect)?;
        let (name, template, starter) = match scheduler {
            Scheduler::Slurm => ("run.sbatch", include_str!("job_array/run.sbatch"), "sbatch"),
            Scheduler::Ray => ("run.py", include_str!("job_array/run.py"), "python3"),
            Scheduler::Shell => ("run.sh", include_str!("job_array/run.sh"), "sh"),
        };
        let throttle = if self.at_once > 1 { format!("%{}", self.at_once) } else { String::new() };
        let filled = template
            .replace("@NAME@", self.name)
            .replace("@LAST@", &(self.jobs.len().saturating_sub(1)).to_string())
            .replace("@THROTTLE@", &throttle)
            .replace("@AT_ONCE@", &self.at_once.to_string())
            .replace("@FOLDER@", text(&folder)?)
            .replace("@FOLDER_JSON@", &serde_json::to_string(text(&folder)?)?)
            .replace("@WORKING_JSON@", &serde_json::to_string(text(self.working)?)?)
            .replace("@FOLDER_QUOTED@", &quoted(text(&folder)?))
            .replace("@WORKING_QUOTED@", &working);
        let start = script(&folder.join(name), &filled)?;
        let say = |program: &str, path: &Path| anyhow::Ok(format!("{program} {}", quoted(text(path)?)));
        Ok(Written { jobs: folder.join(JOBS), start: say(starter, &start)?, collect: say("sh", &collect_script)? })
    }

    /// A command line of this program.
    fn command(&self, arguments: &[String]) -> anyhow::Result<String> {
        let words = std::iter::once(text(self.program)?).chain(arguments.iter().map(String::as_str));
        let words: Vec<String> = words.map(quoted).collect();
        anyhow::ensure!(words.iter().all(|word| !word.contains('\n')), "a setting with a line break fits into no job");
        Ok(words.join(" "))
    }
}

/// Writes a script that can be started by its name.
fn script(path: &Path, text: &str) -> anyhow::Result<PathBuf> {
    file::write(path, text.as_bytes())?;
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(path.to_owned())
}

fn text(path: &Path) -> anyhow::Result<&str> {
    let text = path.to_str().filter(|text| !text.contains('\n'));
    text.ok_or_else(|| anyhow::anyhow!("{} cannot be named in a script; choose another folder", path.display()))
}

/// A word as a shell takes it for itself.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,@%+-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_program_as_they_are() {
        for word in
            ["plain/path-1.0", "", "two words", "it's", r#"teacher.mode={"mode":"mixed"}"#, "$HOME `ls` \\ * ünïcödé"]
        {
            let line = format!("printf %s {}", quoted(word));
            let said = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), word);
        }
        assert_eq!(quoted("a=b"), "a=b");
    }

    #[test]
    fn no_mark_is_left_in_a_script() {
        let folder = tempfile::tempdir().unwrap();
        let jobs = [vec!["train".to_owned()], vec!["it's".to_owned()]];
        let program = Path::new("/opt/iliad");
        let collect = ["collect".to_owned()];
        let working = folder.path();
        for at_once in [1, 3] {
            let array = JobArray { name: "regex-main", program, working, jobs: &jobs, collect: &collect, at_once };
            for scheduler in [Scheduler::Slurm, Scheduler::Ray, Scheduler::Shell] {
                let to = folder.path().join("a folder");
                let written = array.write(&to, scheduler).unwrap();
                assert_eq!(
                    std::fs::read_to_string(&written.jobs).unwrap(),
                    "/opt/iliad train\n/opt/iliad 'it'\\''s'\n"
                );
                for entry in std::fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().path()).filter(|p| p.is_file())
                {
                    let text = std::fs::read_to_string(&entry).unwrap();
                    let marks = ["@NAME", "@LAST", "@THROTTLE", "@AT_ONCE", "@FOLDER", "@WORKING"];
                    assert!(marks.iter().all(|mark| !text.contains(mark)), "{}: {text}", entry.display());
                }
                assert!(written.start.contains("'") && written.collect.contains("collect.sh"), "{}", written.start);
            }
        }
        let slurm = std::fs::read_to_string(folder.path().join("a folder/run.sbatch")).unwrap();
        assert!(
            slurm.contains("#SBATCH --array=0-1%3\n") && slurm.contains("#SBATCH --job-name=regex-main\n"),
            "{slurm}"
        );
    }
}
