//! `iliad export`: the collected descriptions as a file, or as a folder.

use super::{progress, runtime};
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit};
use crate::export::dataset::{self, Piece};
use crate::export::filters::FilterWords;
use crate::export::manifest::Description;
use crate::export::{DescriptionsFile, ExportError, Format, Progress, Snapshot, forms, schema};
use crate::family::dataset::TrainingForm;
use crate::ids::RunId;
use crate::output::file::{self, Draft};
use crate::output::folder::{self, Existing};
use crate::output::note;
use crate::registry::Registry;
use crate::run::Source;
use crate::store::{AnswerKind, Filter, ReviewFilter, Store, StoreError};
use crate::suggest::{did_you_mean, nearest};
use indicatif::ProgressBar;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

const AFTER: &str = "\
Every answer is one row, exactly as typed: people's and the simulated teacher's, corrected and skipped ones, too, unless a \
filter leaves them out. docs/export.md explains the columns. A server may be running on the same data folder. Beside a file that \
-o names comes FILE.manifest.json, with the number of rows, the SHA-256 and the filters.

Examples:
  iliad export > descriptions.jsonl              all runs as JSON lines
  iliad export --format csv -o all.csv           as CSV
  iliad export -o all.parquet                    as Parquet
  iliad export --format dataset -o my-data       a folder that datasets.load_dataset opens
  iliad export --run regex-tiny-1 -o one.jsonl   one run
  iliad export --source human --valid -o p.csv   what people said and what stands
  iliad export --form pairs -o pairs.jsonl       pairs of request and description, for language models
  iliad export --schema -o schema.json           the types of the columns, for programs that would guess";

/// Formats on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Wanted {
    /// One JSON object a line
    Jsonl,
    /// A table with a header (RFC 4180)
    Csv,
    /// Parquet, typed and compressed with zstd
    Parquet,
    /// A folder with a card, Parquet files of descriptions, episodes and events, and a manifest
    Dataset,
}

impl Wanted {
    fn file(self) -> Option<Format> {
        match self {
            Wanted::Jsonl => Some(Format::Jsonl),
            Wanted::Csv => Some(Format::Csv),
            Wanted::Parquet => Some(Format::Parquet),
            Wanted::Dataset => None,
        }
    }
}

/// Flags of `iliad export`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// Format of the file [default: by the ending of --output, else jsonl]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Wanted>,
    /// A form to train on at once: `r2r` (walks with instructions), `regex` (word, request, expression) or `pairs`
    /// (request and description)
    #[arg(long, value_name = "FORM", conflicts_with = "format")]
    pub form: Option<String>,
    /// Only this run's descriptions [default: all runs']
    #[arg(long, value_name = "ID")]
    pub run: Option<RunId>,
    /// Only those of the runs of this study
    #[arg(long, value_name = "ID")]
    pub study: Option<String>,
    /// Only those of people, or of the simulated teacher
    #[arg(long, value_name = "SOURCE", value_parser = Source::ALL.map(Source::as_str))]
    pub source: Option<String>,
    /// Only answers of this kind
    #[arg(long, value_name = "KIND", value_parser = AnswerKind::ALL.map(AnswerKind::as_str))]
    pub kind: Option<String>,
    /// Leave out answers that were corrected, taken back, withdrawn by their teacher, or rejected by a reviewer
    #[arg(long)]
    pub standing: bool,
    /// Only answers stored on this day or later (2026-01-31, or a moment with its time)
    #[arg(long, value_name = "DAY")]
    pub from: Option<String>,
    /// Only answers stored on this day or before
    #[arg(long, value_name = "DAY")]
    pub to: Option<String>,
    /// Only valid answers: descriptions (demonstrations, ratings) that stand; `--valid=false`: only the others
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub valid: Option<bool>,
    /// Only answers that reviewers decided on in this way
    #[arg(long, value_name = "STATE", value_parser = ReviewFilter::ALL.map(ReviewFilter::as_str))]
    pub review: Option<String>,
    /// Name of the data set, in card and manifest
    #[arg(long, value_name = "NAME", default_value = "iliad-descriptions")]
    pub name: String,
    /// Version of the data set, in card and manifest
    #[arg(long, value_name = "VERSION", default_value = "1")]
    pub dataset_version: String,
    /// Licence of the data set, in card and manifest: an SPDX identifier (CC-BY-4.0), or words
    #[arg(long, value_name = "LICENCE")]
    pub licence: Option<String>,
    /// Write what the columns are instead (a Table Schema, with pandas' and datasets' types); needs no database
    #[arg(long, conflicts_with_all = ["format", "form", "run", "study", "standing"])]
    pub schema: bool,
    /// Replace a folder of an earlier export
    #[arg(long)]
    pub force: bool,
    /// File or folder to write; it takes its name only when it is whole. `-` is the standard output
    #[arg(long, short, value_name = "PATH", default_value = "-")]
    pub output: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

impl Args {
    fn filter(&self) -> Result<Filter, String> {
        let words = |text: &Option<String>| text.clone().unwrap_or_default();
        let filter = FilterWords {
            run: self.run.clone().map(String::from).unwrap_or_default(),
            study: words(&self.study),
            source: words(&self.source),
            kind: words(&self.kind),
            standing: self.standing.to_string(),
            from: words(&self.from),
            to: words(&self.to),
            valid: self.valid.map(|valid| valid.to_string()).unwrap_or_default(),
            review: words(&self.review),
        };
        filter.read()
    }

    fn about(&self) -> Result<Description, String> {
        let about = Description {
            name: self.name.clone(),
            version: self.dataset_version.clone(),
            licence: self.licence.clone(),
        };
        about.check()
    }
}

/// Carries out `iliad export`.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    let settings = args.common.load()?;
    if args.schema {
        file::write(&args.output, schema::text().as_bytes())?;
        return Ok(Exit::Done);
    }
    let filter = args.filter().map_err(CliError::Usage)?;
    let about = args.about().map_err(CliError::Usage)?;
    let form = match &args.form {
        None => None,
        Some(name) => Some(forms::named(registry, name).ok_or_else(|| {
            let known: Vec<&str> = forms::all(registry).iter().map(|form| form.name).collect();
            let meant = did_you_mean(name, known.iter().copied());
            CliError::Usage(format!("there is no form `{name}`{meant}; there are {}", known.join(", ")))
        })?),
    };
    let wanted = args.format.unwrap_or_else(|| by_ending(&args.output));
    let to_folder = form.is_none() && wanted == Wanted::Dataset;
    if to_folder {
        if file::is_stream(&args.output) {
            return Err(CliError::Usage("a data set is a folder; name it with -o".into()));
        }
        folder::check(&args.output, Existing::forced(args.force), &dataset::PARTS)
            .map_err(|e| CliError::Usage(e.to_string()))?;
    }
    let database = settings.database();
    match database.file().map(std::fs::metadata).transpose() {
        Ok(None) => {}
        Ok(Some(found)) if found.is_file() => {}
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(CliError::Usage(format!("{database} cannot be read: {e}")));
        }
        _ => {
            return Err(CliError::Usage(format!(
                "there is no database in {}; name the server's data folder with --data-dir",
                settings.data_dir.display()
            )));
        }
    }
    runtime()?.block_on(Store::reading(&database, async |store| {
        let bar = if file::is_stream(&args.output) { ProgressBar::hidden() } else { progress::rows() };
        let written = async {
            let snapshot = Snapshot::take(&store, registry, filter.clone()).await?;
            match (form, wanted.file()) {
                (Some(form), _) => export_form(snapshot, form, args, about.clone(), &bar).await,
                (None, Some(format)) => export_file(snapshot, format, args, about.clone(), &bar).await,
                (None, None) => export_folder(snapshot, args, about.clone(), &bar).await,
            }
        };
        let written = written.await;
        bar.finish_and_clear();
        match written {
            Ok(()) => Ok(Exit::Done),
            Err(Broken::Export(error)) => Err(in_words(&store, args, error).await),
            Err(Broken::Output(error)) => Err(CliError::Failed(error)),
        }
    }))?
}

/// Why an export ended early.
enum Broken {
    Export(ExportError),
    Output(anyhow::Error),
}

impl From<ExportError> for Broken {
    fn from(error: ExportError) -> Broken {
        Broken::Export(error)
    }
}

impl From<crate::output::OutputError> for Broken {
    fn from(error: crate::output::OutputError) -> Broken {
        Broken::Output(error.into())
    }
}

impl From<folder::FolderError> for Broken {
    fn from(error: folder::FolderError) -> Broken {
        Broken::Output(error.into())
    }
}

fn by_ending(output: &Path) -> Wanted {
    match output.extension() {
        Some(ending) if ending.eq_ignore_ascii_case("csv") => Wanted::Csv,
        Some(ending) if ending.eq_ignore_ascii_case("parquet") => Wanted::Parquet,
        _ => Wanted::Jsonl,
    }
}

/// The name of the manifest beside a file.
fn manifest_of(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".manifest.json");
    name.into()
}

async fn export_file(
    snapshot: Snapshot,
    format: Format,
    args: &Args,
    about: Description,
    bar: &ProgressBar,
) -> Result<(), Broken> {
    let mut file = Draft::begin(&args.output)?;
    let mut made = DescriptionsFile::new(snapshot, format)?;
    let (mut hash, mut size, mut written) = (Sha256::new(), 0, 0);
    while let Some((bytes, Progress { done, rows })) = made.next().await? {
        file.write_all(&bytes).map_err(|e| file.failed(e))?;
        hash.update(&bytes);
        size += bytes.len() as u64;
        bar.set_length(rows);
        bar.set_position(done);
        written = done;
    }
    file.finish()?;
    if !file::is_stream(&args.output) {
        let name = args.output.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let manifest = made.manifest(about, name, size, hex::encode(hash.finalize()));
        file::write(&manifest_of(&args.output), manifest.text().as_bytes())?;
        note!("{written} rows in {}", args.output.display());
    }
    Ok(())
}

async fn export_form(
    snapshot: Snapshot,
    form: TrainingForm,
    args: &Args,
    about: Description,
    bar: &ProgressBar,
) -> Result<(), Broken> {
    let mut file = Draft::begin(&args.output)?;
    let mut made = forms::ExamplesFile::new(snapshot, form);
    let (mut hash, mut size) = (Sha256::new(), 0);
    while let Some((bytes, Progress { done, rows })) = made.next().await? {
        file.write_all(&bytes).map_err(|e| file.failed(e))?;
        hash.update(&bytes);
        size += bytes.len() as u64;
        bar.set_length(rows);
        bar.set_position(done);
    }
    file.finish()?;
    if !file::is_stream(&args.output) {
        let name = args.output.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let manifest = made.manifest(about, name, size, hex::encode(hash.finalize()));
        file::write(&manifest_of(&args.output), manifest.text().as_bytes())?;
        let examples: u64 = manifest.counts.values().sum();
        note!("{examples} examples in {}", args.output.display());
    }
    Ok(())
}

async fn export_folder(snapshot: Snapshot, args: &Args, about: Description, bar: &ProgressBar) -> Result<(), Broken> {
    let draft = folder::Draft::begin(&args.output, Existing::forced(args.force), &dataset::PARTS)?;
    let rows = snapshot.descriptions();
    let mut pieces = dataset::pieces(snapshot, about);
    let mut open: Option<BufWriter<File>> = None;
    let mut path = draft.path().to_owned();
    let failed = |path: &Path, source: std::io::Error| {
        Broken::Output(anyhow::anyhow!("{} cannot be written: {source}", draft.named(path).display()))
    };
    let close = |open: Option<BufWriter<File>>| match open {
        Some(file) => file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all(),
        None => Ok(()),
    };
    while let Some(piece) = pieces.recv().await.transpose()? {
        match piece {
            Piece::File { path: name, .. } => {
                close(open.take()).map_err(|e| failed(&path, e))?;
                path = draft.path().join(name);
                let begin = || {
                    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
                    File::create(&path)
                };
                open = Some(BufWriter::new(begin().map_err(|e| failed(&path, e))?));
            }
            Piece::Bytes(bytes) => {
                if let Some(file) = &mut open {
                    file.write_all(&bytes).map_err(|e| failed(&path, e))?;
                }
            }
            Piece::Progress(Progress { done, rows }) => {
                bar.set_length(rows);
                bar.set_position(done);
            }
        }
    }
    close(open).map_err(|e| failed(&path, e))?;
    draft.finish()?;
    note!("{rows} descriptions in {}", args.output.display());
    Ok(())
}

/// An unknown run is the person's slip: say which runs there are.
async fn in_words(store: &Store, args: &Args, error: ExportError) -> CliError {
    if let (ExportError::Store(StoreError::NotFound("the study")), Some(study)) = (&error, &args.study) {
        return CliError::Usage(format!("there is no study {study:?}; `iliad study list` lists them"));
    }
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
        assert_eq!(by_ending(Path::new("a.CSV")), Wanted::Csv);
        assert_eq!(by_ending(Path::new("a.parquet")), Wanted::Parquet);
        assert_eq!(by_ending(Path::new("a.jsonl")), Wanted::Jsonl);
        assert_eq!(by_ending(Path::new("-")), Wanted::Jsonl);
        assert_eq!(manifest_of(Path::new("a/b.csv")), Path::new("a/b.csv.manifest.json"));
    }
}
