//! `iliad data`: bringing corpora in, and looking at them.

mod walks;

use super::settings::Common;
use super::{CliError, CliResult, Exit};
use crate::output::folder::Existing;
use crate::output::{json, out};
use crate::protocol::{Split, World};
use crate::task::nav::import as nav_import;
use crate::task::nav::import::Sources;
use crate::task::regex::import;
use crate::task::regex::world::RegexWorld;
use std::path::PathBuf;

/// Commands of `iliad data`.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum Command {
    /// Turn the public L3 regular-expression data into Iliad's corpus format
    ImportL3(ImportArgs),
    /// Turn the public Room-to-Room files into Iliad's layout of NAV data
    ImportR2r(ImportR2rArgs),
    /// Say what a corpus, or the built-in world, holds
    Describe(DescribeArgs),
}

const AFTER_IMPORT: &str = "\
Examples:
  iliad data import-l3 l3-data -o corpora/regex    read the files of the folder l3-data, write a corpus
  iliad data describe corpora/regex                see what came of it";

/// Flags of `iliad data import-l3`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_IMPORT)]
pub(super) struct ImportArgs {
    /// Folder with the L3 data set's own files
    #[arg(value_name = "FOLDER")]
    pub source: PathBuf,
    /// Folder to write the corpus to; it appears when it is whole
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// Replace the corpus that is there
    #[arg(long)]
    pub force: bool,
    /// Write what was imported as one line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

const AFTER_IMPORT_R2R: &str = "\
Examples:
  iliad data import-r2r R2R/data --connectivity connectivity -o nav
  iliad data import-r2r R2R/data --connectivity connectivity --boxes REVERIE/data/BBox \
--features ResNet-152-imagenet.tsv -o nav

The splits are made as the paper's sizes tell: all unseen houses are the test split; validation has the val_seen paths and \
360 of the training paths, those with the smallest SHA-256 of nav-val-<path_id>.";

/// Flags of `iliad data import-r2r`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_IMPORT_R2R)]
pub(super) struct ImportR2rArgs {
    /// Folder with R2R_train.json, R2R_val_seen.json and R2R_val_unseen.json
    #[arg(value_name = "FOLDER")]
    pub source: PathBuf,
    /// Folder with the files <scan>_connectivity.json [default: connectivity in FOLDER]
    #[arg(long, value_name = "DIR")]
    pub connectivity: Option<PathBuf>,
    /// Folder with REVERIE's object boxes, <scan>_<viewpoint>.json [default: no objects]
    #[arg(long, value_name = "DIR")]
    pub boxes: Option<PathBuf>,
    /// Table of image features, 36 vectors a viewpoint [default: none]
    #[arg(long, value_name = "FILE")]
    pub features: Option<PathBuf>,
    /// Folder to write the data to; it appears when it is whole
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// Replace the data that are there
    #[arg(long)]
    pub force: bool,
    /// Write what was imported as one line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

const AFTER_DESCRIBE: &str = "\
Examples:
  iliad data describe                     the built-in word edits
  iliad data describe --family nav        the built-in houses
  iliad data describe corpora/houses      houses, walks and requests of a corpus
  iliad data describe corpora/regex       tasks, requests and words of a corpus
  iliad data describe corpora/regex --json";

/// Flags of `iliad data describe`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_DESCRIBE)]
pub(super) struct DescribeArgs {
    /// Folder of a corpus, of words or of walks [default: the built-in world]
    #[arg(value_name = "FOLDER")]
    pub corpus: Option<PathBuf>,
    /// Whose built-in world
    #[arg(long, value_name = "NAME", value_parser = ["regex", "nav"], default_value = "regex", conflicts_with = "corpus")]
    pub family: String,
    /// Write the figures as one line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad data …`.
pub(super) fn run(args: &Args) -> CliResult {
    match &args.command {
        Command::ImportL3(args) => import_l3(args),
        Command::ImportR2r(args) => import_r2r(args),
        Command::Describe(args) => describe(args),
    }
}

/// The policy for a folder that is in the way.
fn existing(force: bool) -> Existing {
    if force { Existing::Replace } else { Existing::Keep }
}

/// Carries out `iliad data import-r2r`.
fn import_r2r(args: &ImportR2rArgs) -> CliResult {
    args.common.load()?;
    let sources = Sources {
        r2r: args.source.clone(),
        connectivity: args.connectivity.clone().unwrap_or_else(|| args.source.join("connectivity")),
        boxes: args.boxes.clone(),
        features: args.features.clone(),
    };
    let report = nav_import::import_r2r_into(&sources, &args.output, existing(args.force))
        .map_err(|e| CliError::Usage(e.to_string()))?;
    if args.json {
        out!("{}", json::line(&report)?)?;
        return Ok(Exit::Done);
    }
    out!("houses: {}, with {} viewpoints and {} objects", report.houses, report.viewpoints, report.objects)?;
    out!("tasks: {} simulation, {} validation, {} test", report.train, report.validation, report.test)?;
    out!("left out: {} paths with fewer than three requests; words: {}", report.left_out, report.words)?;
    if args.features.is_some() {
        out!("image features: {} viewpoints", report.features)?;
    }
    out!("The data is in {}", args.output.display())?;
    Ok(Exit::Done)
}

/// Carries out `iliad data import-l3`.
fn import_l3(args: &ImportArgs) -> CliResult {
    args.common.load()?;
    let report = import::import_l3_into(&args.source, &args.output, existing(args.force))
        .map_err(|e| CliError::Usage(e.to_string()))?;
    if args.json {
        out!("{}", json::line(&report)?)?;
        return Ok(Exit::Done);
    }
    out!("tasks: {} train, {} validation, {} test", report.train, report.validation, report.test)?;
    out!("left out: {}; words: {}; unlabelled expressions: {}", report.left_out, report.words, report.unlabeled)?;
    for note in &report.notes {
        out!("{note}")?;
    }
    out!("The corpus is in {}; use it with --preset paper --set task.path={0}", args.output.display())?;
    Ok(Exit::Done)
}

/// Carries out `iliad data describe`.
fn describe(args: &DescribeArgs) -> CliResult {
    args.common.load()?;
    if args.corpus.as_deref().map_or(args.family == "nav", walks::is_corpus) {
        return walks::describe(args.corpus.as_deref(), args.json);
    }
    let world = match &args.corpus {
        Some(folder) => RegexWorld::load(folder).map_err(|e| CliError::Usage(e.to_string()))?,
        None => RegexWorld::builtin(1),
    };
    let splits = [("train", Split::Train), ("validation", Split::Validation), ("test", Split::Test)];
    let counts: Vec<(&str, usize, usize)> = splits
        .into_iter()
        .map(|(name, split)| {
            (name, world.len(split), (0..world.len(split)).map(|i| world.requests(split, i).len()).sum())
        })
        .collect();
    if args.json {
        let splits: serde_json::Map<String, serde_json::Value> = counts
            .iter()
            .map(|(name, tasks, requests)| ((*name).into(), serde_json::json!({"tasks": tasks, "requests": requests})))
            .collect();
        let vocabularies = serde_json::json!({
            "characters": world.char_vocab().len(),
            "request_words": world.request_vocab().len(),
            "expressions": world.expression_vocab().len(),
        });
        out!(
            "{}",
            serde_json::json!({
                "splits": splits, "words": world.words().len(), "vocabularies": vocabularies,
            })
        )?;
        return Ok(Exit::Done);
    }
    for (name, tasks, requests) in counts {
        out!("{name:<11} {tasks:>7} tasks {requests:>7} requests")?;
    }
    out!("dictionary  {:>7} words", world.words().len())?;
    out!(
        "vocabulary  {:>7} request words, {} characters, {} characters of expressions",
        world.request_vocab().len(),
        world.char_vocab().len(),
        world.expression_vocab().len()
    )?;
    if world.len(Split::Train) > 0 {
        let task = world.task(Split::Train, 0);
        out!("\nfor example: {}", task.request)?;
        let edit = world.gold(Split::Train, 0);
        for (word, output) in task.start.words.iter().zip(edit.outputs.iter().flatten()) {
            out!("  {word} → {output}")?;
        }
    }
    Ok(Exit::Done)
}
