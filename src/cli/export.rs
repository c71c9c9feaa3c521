//! `iliad export`: the collected descriptions as a file.

use super::settings::Common;
use super::{CliError, CliResult, Exit, runtime};
use crate::export::{ExportError, Format, Progress, write};
use crate::store::{Store, StoreError};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncWriteExt, BufWriter};

const AFTER: &str = "\
Every answer is one row, exactly as typed: people's and the simulated teacher's, corrected and skipped ones, too. \
docs/export.md explains the columns. A server may be running on the same data folder.

Examples:
  iliad export > descriptions.jsonl             all runs as JSON lines
  iliad export --format csv -o all.csv          as CSV
  iliad export --run regex-tiny-1 -o one.jsonl  one run";

/// Flags of `iliad export`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// Format of the file [default: by the ending of --output, else jsonl]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Only this run's descriptions [default: all runs']
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// File to write; it takes its name only when it is whole. `-` is the standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad export`.
pub(super) fn run(args: &Args) -> CliResult {
    let settings = args.common.load()?;
    let database = settings.database();
    if !database.is_file() {
        let folder = settings.data_dir.display();
        return Err(CliError::Usage(format!(
            "there is no database in {folder}; name the server's data folder with --data-dir"
        )));
    }
    let format = args.format.unwrap_or_else(|| by_ending(&args.output));
    runtime()?.block_on(async {
        let store = Store::open(&database).await.with_context(|| format!("cannot open {}", database.display()))?;
        let written = export(&store, args, format).await;
        store.close().await;
        written
    })
}

fn by_ending(output: &Path) -> Format {
    match output.extension() {
        Some(ending) if ending.eq_ignore_ascii_case("csv") => Format::Csv,
        _ => Format::Jsonl,
    }
}

async fn export(store: &Store, args: &Args, format: Format) -> CliResult {
    let run = args.run.as_deref();
    if args.output == Path::new("-") {
        let mut sink = BufWriter::new(tokio::io::stdout());
        return match write(store, run, format, &mut sink, |_| {}).await {
            Ok(_) => Ok(Exit::Done),
            // Whoever read the output has seen enough (`| head`).
            Err(ExportError::Io(e)) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(Exit::Done),
            Err(e) => Err(in_words(store, args, e).await),
        };
    }
    // Written under another name first: a file of that name is always whole.
    let mut part = args.output.clone().into_os_string();
    part.push(".part");
    let part = PathBuf::from(part);
    let file = tokio::fs::File::create(&part).await.with_context(|| format!("cannot write {}", part.display()))?;
    let mut sink = BufWriter::new(file);
    let bar = bar();
    let written = write(store, run, format, &mut sink, |Progress { done, rows }| {
        bar.set_length(rows);
        bar.set_position(done);
    })
    .await;
    bar.finish_and_clear();
    let rows = match written {
        Ok(rows) => rows,
        Err(e) => {
            drop(sink);
            let _ = tokio::fs::remove_file(&part).await;
            return Err(in_words(store, args, e).await);
        }
    };
    let finish = async {
        sink.shutdown().await?;
        sink.get_ref().sync_all().await?;
        tokio::fs::rename(&part, &args.output).await
    };
    finish.await.with_context(|| format!("cannot write {}", args.output.display()))?;
    eprintln!("{rows} rows in {}", args.output.display());
    Ok(Exit::Done)
}

/// Progress for people; nothing where nobody looks.
fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} rows, {eta} left");
    ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// An unknown run is the person's slip: say which runs there are.
async fn in_words(store: &Store, args: &Args, error: ExportError) -> CliError {
    if let (ExportError::Store(StoreError::NotFound(_)), Some(run)) = (&error, &args.run) {
        let known: Vec<String> = store.runs().await.unwrap_or_default().into_iter().map(|run| run.id).collect();
        let known =
            if known.is_empty() { "there is none yet".into() } else { format!("there is {}", known.join(", ")) };
        return CliError::Usage(format!("there is no run {run:?}; {known}"));
    }
    CliError::Failed(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_says_the_format() {
        assert_eq!(by_ending(Path::new("a.CSV")), Format::Csv);
        assert_eq!(by_ending(Path::new("a.jsonl")), Format::Jsonl);
        assert_eq!(by_ending(Path::new("-")), Format::Jsonl);
    }
}
