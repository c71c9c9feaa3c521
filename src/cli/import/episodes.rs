//! `iliad import --episodes`.

use super::{Args, LISTED};
use crate::app::outside;
use crate::cli::{progress, runtime};
use crate::command_line::{CliError, CliResult, Exit};
use crate::config::server::ServerConfig;
use crate::ids::RunId;
use crate::import::Reading;
use crate::import::episodes::{self, Counts, Episodes};
use crate::output::{note, out};
use crate::store::{Store, StoreError};
use std::fs::File;
use std::io::BufReader;

fn failed(error: StoreError) -> CliError {
    CliError::Failed(error.into())
}

/// Reads the file, compares it with what came in before, and offers its rows to people unless it is a dry run.
pub(super) fn run(args: &Args, settings: &ServerConfig) -> CliResult {
    let unreadable = |e: std::io::Error| CliError::Usage(format!("{}: {e}", args.path.display()));
    let bar = progress::file();
    let read = File::open(&args.path).and_then(|file| {
        let of = file.metadata()?.len();
        let told = |rows, bytes| progress::reading(&bar, Reading { rows, bytes, of });
        episodes::read_telling(BufReader::new(file), told)
    });
    bar.finish_and_clear();
    let mut read = read.map_err(unreadable)?;
    let database = settings.database();
    if args.run.is_some() && !database.exists() {
        return Err(CliError::Usage(format!("there is no run yet in {}", settings.data_dir.display())));
    }
    if (args.run.is_none() && args.dry_run) || read.is_empty() {
        return told(args, &read, 0);
    }
    runtime()?.block_on(async {
        std::fs::create_dir_all(&settings.data_dir).map_err(|e| CliError::Failed(e.into()))?;
        let store = Store::open_at(&database).await.map_err(failed)?;
        let result = offer(args, &store, &mut read).await;
        store.close().await;
        result
    })
}

async fn offer(args: &Args, store: &Store, read: &mut Episodes) -> CliResult {
    let mut known = 0;
    if let Some(run) = &args.run {
        let refusal = episodes::refusal(store, run).await.map_err(|error| match error {
            StoreError::NotFound(_) => CliError::Usage(format!("there is no run {run}")),
            other => failed(other),
        })?;
        if let Some(sentence) = refusal {
            return Err(CliError::Usage(format!("{run}: {sentence}")));
        }
        known = read.compare(store, run).await.map_err(failed)?;
    }
    if args.dry_run || !read.bad.is_empty() {
        return told(args, read, known);
    }
    let run = match &args.run {
        Some(run) => run.clone(),
        None => new_run(store, args.show_request).await.map_err(failed)?,
    };
    let Counts { stored, known, left } = std::mem::take(read).store(store, &run).await.map_err(failed)?;
    out!("{run}")?;
    note!("{stored} episodes came in, {known} were there already");
    if left > 0 {
        note!("{left} have no room until people have described others; bring the same file in again then");
    }
    Ok(Exit::Done)
}

/// Lists the bad rows, and says how many could come in.
fn told(args: &Args, read: &Episodes, known: u64) -> CliResult {
    let shown = if args.dry_run { read.bad.len() } else { LISTED };
    for bad in read.bad.iter().take(shown) {
        out!("{}: line {}: {}", args.path.display(), bad.line, bad.reason)?;
    }
    let new = (read.len() as u64).saturating_sub(known);
    match read.bad.len() {
        0 if read.is_empty() => {
            note!("there is no row in {}", args.path.display());
            Ok(Exit::Usage)
        }
        0 => {
            note!("{new} episodes could come in, {known} are there already; nothing was stored");
            Ok(Exit::Done)
        }
        bad => {
            note!("{bad} of {} rows are bad; nothing was stored", read.len() + bad);
            Ok(Exit::Usage)
        }
    }
}

/// Makes an outside run, which a server on the same data folder takes up soon.
async fn new_run(store: &Store, show_request: bool) -> Result<RunId, StoreError> {
    let wanted = outside::new_id();
    let mut id = wanted.clone();
    for n in 2.. {
        match store.run(&id).await {
            Err(StoreError::NotFound(_)) => break,
            Err(other) => return Err(other),
            Ok(_) => id = format!("{wanted}-{n}").into(),
        }
    }
    store.create_run(&outside::row(id.clone(), show_request)).await?;
    Ok(id)
}
