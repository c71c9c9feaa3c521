//! Whether the files that a configuration names are there.

use crate::config::run::RunConfig;
use std::path::Path;

/// Whether a folder of data that `task.path` names has its files.
///
/// # Errors
/// A sentence that names what is missing, and the command that makes it.
pub fn data_folder(path: &str, files: &[&str], made_with: &str) -> anyhow::Result<()> {
    let how = format!(
        "make it with `{made_with} -o {path}` in the folder where Iliad was started, or name another folder in task.path"
    );
    if !Path::new(path).is_dir() {
        anyhow::bail!("task.path names the folder `{path}`, and there is no such folder; {how}")
    }
    match files.iter().find(|file| !Path::new(path).join(file).is_file()) {
        Some(file) => anyhow::bail!("task.path names the folder `{path}`, and it has no file {file}; {how}"),
        None => Ok(()),
    }
}

/// Whether the file of a teacher's models is there.
///
/// # Errors
/// A sentence that says how it is made.
pub fn teacher_file(config: &RunConfig) -> anyhow::Result<()> {
    let file = &config.teacher.models;
    if ["shipped", "none"].contains(&file.as_str()) || Path::new(file).is_file() {
        return Ok(());
    }
    anyhow::bail!(
        "teacher.models is `shipped`, `none` or a file, and there is no file `{file}`; make it with `iliad teacher train \
         --preset {}/{} -o {file}`",
        config.family,
        config.preset
    )
}
