//! `iliad backup`: everything in the data folder, consistent, while the server runs.

use super::{progress, runtime};
use crate::backup;
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit};
use crate::output::{note, out};
use std::path::PathBuf;

const AFTER: &str = "\
A backup is a folder: the database in one file, the runs' checkpoints and records, and a list with checksums. The \
server may be running, and goes on meanwhile. `iliad restore` puts it back.

Examples:
  iliad backup                                        into a new folder here, named after the time
  iliad backup -o /mnt/backups/monday                 into that folder, which must be new or empty
  iliad backup --data-dir /srv/iliad -o /mnt/monday   of that server's data folder";

/// Flags of `iliad backup`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// Folder to make; it takes its name only when it is whole [default: iliad-backup-DATE-TIME]
    #[arg(long, short, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad backup`.
pub(super) fn run(args: &Args) -> CliResult {
    let settings = args.common.load()?;
    if settings.postgres.is_some() {
        return Err(CliError::Usage(
            "the rows are in PostgreSQL: back them up with pg_dump, and the data folder's runs with a copy of it"
                .into(),
        ));
    }
    if !settings.database().exists() {
        let folder = settings.data_dir.display();
        return Err(CliError::Usage(format!(
            "there is no database in {folder}; name the server's data folder with --data-dir"
        )));
    }
    let to = match &args.output {
        Some(to) => to.clone(),
        None => {
            let format = time::macros::format_description!("[year][month][day]-[hour][minute][second]");
            PathBuf::from(format!("iliad-backup-{}", time::OffsetDateTime::now_utc().format(&format)?))
        }
    };
    let bar = progress::bytes();
    let tell = |said: String| bar.suspend(|| note!("iliad: {said}"));
    let made = runtime()?.block_on(backup::make(&settings.data_dir, &to, tell, &progress::shown(&bar)))?;
    bar.finish_and_clear();
    out!(
        "{} has the database and {} run{}, {:.1} MB in all. To put it back: iliad restore {} --data-dir NEW_FOLDER",
        to.display(),
        made.runs(),
        if made.runs() == 1 { "" } else { "s" },
        made.bytes() as f64 / 1e6,
        to.display()
    )?;
    Ok(Exit::Done)
}
