//! `iliad model`: models from weights that another program wrote.

use super::run_settings::RunSettings;
use super::{dev, device, family_of};
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit};
use crate::family::imported::{ModelImport, ModelKind};
use crate::nn::artifact::{self, Precision};
use crate::nn::weights_file::{Wanted, WeightsError, WeightsFile};
use crate::output::{file, note, out};
use crate::registry::Registry;
use crate::trainer::{checkpoint, imported};
use candle_core::Tensor;
use clap::ValueEnum;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Commands of `iliad model`.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum Command {
    /// Make a model of weights that another program wrote as safetensors
    Import(ImportArgs),
    /// The earlier name of `iliad dev fixture`
    #[command(hide = true)]
    Check(dev::fixture::Args),
}

/// The files that weights can become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum As {
    /// A policy for model.pretrained (REGEX)
    Policy,
    /// The executor and describer of a simulated teacher, for teacher.models
    Teacher,
    /// The first checkpoint of a run, in a folder of its own
    Checkpoint,
}

const AFTER: &str = "\
The tensors have the names and shapes that docs/models.md lists, or those of the program of the paper's authors; a checkpoint's \
prefixes may be there or not. The vocabularies are those of the preset's world, so rows of embeddings mean its words. With --like they are \
those of another model or checkpoint, words that people brought included. Every tensor that is missing, unknown or misshapen is told, and \
nothing is written then.

A checkpoint is written as update-00000000.safetensors into a new folder. `iliad train --run-dir FOLDER --resume` goes on from it, and a server \
lists the run whose folder lies in DATA/runs, where it can be continued.

Examples:
  iliad model import policy.safetensors --preset tiny --as policy -o p.safetensors
  iliad train --preset tiny --set model.pretrained=p.safetensors                        a run that begins with it
  iliad model import teacher.safetensors --preset small --as teacher -o t.safetensors   for teacher.models
  iliad model import policy.safetensors --preset nav/small --as checkpoint -o iliad-data/runs/from-pytorch
  iliad model import tuned.safetensors --like best.safetensors -o iliad-data/runs/tuned";

/// Flags of `iliad model import`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct ImportArgs {
    /// Safetensors file with the weights
    #[arg(value_name = "WEIGHTS")]
    pub weights: PathBuf,
    /// The file that the weights become
    #[arg(long = "as", value_name = "KIND", required_unless_present = "like", conflicts_with = "like")]
    pub kind: Option<As>,
    /// A model or checkpoint whose settings, sizes and vocabularies the new one has
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    pub like: Option<PathBuf>,
    /// Pass over this tensor of the file; may be given many times
    #[arg(long, value_name = "NAME")]
    pub ignore: Vec<String>,
    /// Store float16: half the size (not of checkpoints)
    #[arg(long)]
    pub half: bool,
    #[command(flatten)]
    pub run: RunSettings,
    /// File to write the model to, or folder of the run that a checkpoint begins
    #[arg(long, short, value_name = "PATH")]
    pub output: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad model …`.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    match &args.command {
        Command::Import(args) => import(args, registry),
        Command::Check(args) => dev::fixture::run(args, registry),
    }
}

/// Carries out `iliad model import`.
fn import(args: &ImportArgs, registry: Registry) -> CliResult {
    let settings = args.common.load()?;
    let weights = WeightsFile::read(&args.weights).map_err(|e| CliError::Usage(e.to_string()))?;
    let name = args.weights.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let made = json!({"imported": name, "preset": args.run.preset});
    let given = (&weights, args.ignore.as_slice());
    let written = match (&args.like, args.kind) {
        (Some(like), _) => {
            let of_run = imported::is_checkpoint(like).map_err(|e| CliError::Usage(e.to_string()))?;
            if of_run {
                new_run_folder(&args.output)?;
                imported::lay_down_like(like, given, &args.output).map(|row| args.output.join(row.name))
            } else {
                file::prepare(&args.output)?;
                model_like(like, given, args).map(|()| args.output.clone())
            }
        }
        (None, Some(As::Checkpoint)) => {
            let config = args.run.configuration(registry)?;
            new_run_folder(&args.output)?;
            let family = family_of(registry, &config)?;
            let laid_down = family.import_checkpoint(&config, given, &args.output, &device(&settings)?);
            laid_down.map(|row| args.output.join(row.name))
        }
        (None, kind) => {
            let config = args.run.configuration(registry)?;
            file::prepare(&args.output)?;
            let import = ModelImport {
                config: &config,
                kind: if kind == Some(As::Teacher) { ModelKind::Teacher } else { ModelKind::Policy },
                weights: &weights,
                ignored: &args.ignore,
                made: &made,
                output: &args.output,
                precision: precision(args),
            };
            family_of(registry, &config)?.import_model(&import).map(|()| args.output.clone())
        }
    };
    let written = match written {
        Ok(written) => written,
        Err(error) => return refused(args, error),
    };
    match file::is_stream(&written) {
        true => note!("The weights are in {}.", written.display()),
        false => out!("The weights are in {}.", written.display())?,
    }
    Ok(Exit::Done)
}

fn precision(args: &ImportArgs) -> Precision {
    if args.half { Precision::Half } else { Precision::Full }
}

/// Lists every tensor that does not fit.
fn refused(args: &ImportArgs, error: anyhow::Error) -> CliResult {
    let Some(WeightsError::Misfits(faults)) = error.downcast_ref() else {
        return Err(if error.is::<WeightsError>() {
            CliError::Usage(error.to_string())
        } else {
            CliError::Failed(error)
        });
    };
    for fault in faults {
        out!("{}: {fault}", args.weights.display())?;
    }
    note!("{} tensors do not fit the model; nothing was written", faults.len());
    Ok(Exit::Usage)
}

/// Refuses a folder that holds a run.
fn new_run_folder(folder: &Path) -> Result<(), CliError> {
    match checkpoint::files(folder).is_empty() && !folder.is_file() {
        true => Ok(()),
        false => Err(CliError::Usage(format!("{} holds a run already; name a new folder", folder.display()))),
    }
}

/// Writes a file of models with the header of another one.
fn model_like(like: &Path, (weights, ignored): (&WeightsFile, &[String]), args: &ImportArgs) -> anyhow::Result<()> {
    let (mut header, tensors): (Value, BTreeMap<String, Tensor>) = artifact::load(like)?;
    let fitting = weights.fit(&Wanted::default().with("", &tensors, &Vec::new()), ignored)?;
    let like = like.file_name().unwrap_or_default().to_string_lossy().into_owned();
    header["made"] = json!({"imported": args.weights.file_name().map(|name| name.to_string_lossy()), "like": like});
    Ok(artifact::save(&args.output, &header, &fitting, precision(args))?)
}
