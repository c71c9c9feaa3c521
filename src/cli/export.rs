//! `iliad export`: the collected descriptions as a file.

use super::runtime;
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit};
use crate::export::schema;
use crate::export::{ExportError, Format, Progress, Rows, chunks};
use crate::ids::RunId;
use crate::output::file::{self, Draft};
use crate::output::note;
use crate::store::{Store, StoreError};
use crate::suggest::nearest;
use futures::{StreamExt, pin_mut};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;
use std::path::{Path, PathBuf};

const AFTER: &str = "\
Every answer is one row, exactly as typed: people's and the simulated teacher's, corrected and skipped ones, too. \
docs/export.md explains the columns. A server may be running on the same data folder.

Examples:
  iliad export > descriptions.jsonl             all runs as JSON lines
  iliad export --format csv -o all.csv          as CSV
  iliad export --run regex-tiny-1 -o one.jsonl  one run
  iliad export --standing -o standing.jsonl     without what was corrected, taken back, withdrawn or rejected
  iliad export --schema -o schema.json          the types of the columns, for programs that would guess";

/// Flags of `iliad export`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// Format of the file [default: by the ending of --output, else jsonl]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Only this run's descriptions [default: all runs']
    #[arg(long, value_name = "ID")]
    pub run: Option<RunId>,
    /// Leave out answers that were corrected, taken back, withdrawn by their teacher, or rejected by a reviewer
    #[arg(long)]
    pub standing: bool,
    /// Write what the columns are instead (a Table Schema, with pandas' and datasets' types); needs no database
    #[arg(long, conflicts_with_all = ["format", "run", "standing"])]
    pub schema: bool,
    /// File to write; it takes its name only when it is whole. `-` is the standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad export`.
pub(super) fn run(args: &Args) -> CliResult {
    let settings = args.common.load()?;
    if args.schema {
        file::write(&args.output, schema::text().as_bytes())?;
        return Ok(Exit::Done);
    }
    let database = settings.database();
    match std::fs::metadata(&database) {
        Ok(found) if found.is_file() => {}
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(CliError::Usage(format!("{} cannot be read: {e}", database.display())));
        }
        _ => {
            return Err(CliError::Usage(format!(
                "there is no database in {}; name the server's data folder with --data-dir",
                settings.data_dir.display()
            )));
        }
    }
    let format = args.format.unwrap_or_else(|| by_ending(&args.output));
    runtime()?.block_on(Store::reading(&database, async |store| export(&store, args, format).await))?
}

fn by_ending(output: &Path) -> Format {
    match output.extension() {
        Some(ending) if ending.eq_ignore_ascii_case("csv") => Format::Csv,
        _ => Format::Jsonl,
    }
}

async fn export(store: &Store, args: &Args, format: Format) -> CliResult {
    let standard = args.output == Path::new("-");
    let mut file = Draft::begin(&args.output)?;
    let bar = if standard { ProgressBar::hidden() } else { bar() };
    let rows = if args.standing { Rows::Standing } else { Rows::All };
    let chunks = chunks(store.clone(), args.run.clone(), format, rows);
    pin_mut!(chunks);
    let mut written = 0;
    while let Some(chunk) = chunks.next().await {
        let (bytes, Progress { done, rows }) = match chunk {
            Ok(chunk) => chunk,
            Err(error) => {
                bar.finish_and_clear();
                return Err(in_words(store, args, error).await);
            }
        };
        file.write_all(&bytes).map_err(|e| file.failed(e))?;
        bar.set_length(rows);
        bar.set_position(done);
        written = done;
    }
    file.finish()?;
    bar.finish_and_clear();
    if !standard {
        note!("{written} rows in {}", args.output.display());
    }
    Ok(Exit::Done)
}

/// Progress for people; nothing where nobody looks.
fn bar() -> ProgressBar {
    if !crate::output::notes_are_watched() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} rows, {eta} left");
    ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// An unknown run is the person's slip: say which runs there are.
async fn in_words(store: &Store, args: &Args, error: ExportError) -> CliError {
    if let (ExportError::Store(StoreError::NotFound(_)), Some(run)) = (&error, &args.run) {
        let known: Vec<RunId> = store.runs().await.unwrap_or_default().into_iter().map(|run| run.id).collect();
        return CliError::Usage(format!("there is no run {run:?}; {}", told(run, &known)));
    }
    CliError::Failed(error.into())
}

/// Runs shown in a message at most.
const SHOWN: usize = 10;

/// The sentence that lists the runs, the likeliest first.
fn told(run: &str, known: &[RunId]) -> String {
    let near = nearest(run, known.iter().map(RunId::as_str));
    let meant = near.map(|name| format!("did you mean {name}? ")).unwrap_or_default();
    let names = known.iter().take(SHOWN).map(RunId::as_str).collect::<Vec<_>>().join(", ");
    match known.len() {
        0 => "there is none yet".into(),
        n if n > SHOWN => format!("{meant}there are {n}, the newest of them {names}; the page Runs lists all"),
        _ => format!("{meant}there is {names}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_runs_do_not_drown_the_sentence() {
        let known: Vec<RunId> = (0..300).map(|i| format!("regex-tiny-{i:03}").into()).collect();
        let sentence = told("regex-tiny-O42", &known);
        assert!(sentence.starts_with("did you mean regex-tiny-0") && sentence.len() < 300, "{sentence}");
        assert_eq!(told("x", &known[..1]), "there is regex-tiny-000");
    }

    #[test]
    fn the_ending_says_the_format() {
        assert_eq!(by_ending(Path::new("a.CSV")), Format::Csv);
        assert_eq!(by_ending(Path::new("a.jsonl")), Format::Jsonl);
        assert_eq!(by_ending(Path::new("-")), Format::Jsonl);
    }
}
