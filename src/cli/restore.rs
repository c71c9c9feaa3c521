//! `iliad restore`: a backup becomes a data folder again.

use super::{progress, runtime};
use crate::backup;
use crate::command_line::settings::Common;
use crate::command_line::{CliResult, Exit};
use crate::output::out;
use std::path::PathBuf;

const AFTER: &str = "\
Every file is checked against the backup's list. The data folder must be new or empty: nothing is ever overwritten.

Examples:
  iliad restore /mnt/backups/monday --data-dir /srv/iliad-restored    then start the server with the same --data-dir
  iliad restore iliad-backup-20261129-080000                          into iliad-data, if that is new or empty";

/// Flags of `iliad restore`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// Folder that `iliad backup` made
    #[arg(value_name = "BACKUP")]
    pub backup: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad restore`.
pub(super) fn run(args: &Args) -> CliResult {
    let settings = args.common.load()?;
    let folder = settings.data_dir.display();
    let bar = progress::bytes();
    let found = runtime()?.block_on(backup::restore(&args.backup, &settings.data_dir, &progress::shown(&bar)))?;
    bar.finish_and_clear();
    out!(
        "{folder} is as it was on {}: the database and {} run{}. To go on from there: iliad --data-dir {folder}",
        found.made_at,
        found.runs(),
        if found.runs() == 1 { "" } else { "s" },
    )?;
    Ok(Exit::Done)
}
