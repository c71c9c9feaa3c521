//! `iliad dev fixture`: compares models with reference fixtures.

use crate::cli::device;
use crate::command_line::settings::Common;
use crate::command_line::{CliError, CliResult, Exit};
use crate::nn::device::{LaunchOptions, with_options};
use crate::nn::reference_fixtures::{Differences, FixtureFile};
use crate::output::{json, out};
use crate::registry::Registry;
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  iliad dev fixture fixture.safetensors                  prints the largest differences; code 1 when one exceeds 1e-5
  iliad dev fixture fixture.safetensors --device cuda    the same on a GPU";

/// Flags of `iliad dev fixture`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(in crate::cli) struct Args {
    /// Fixture with weights, inputs, logits, loss and gradients
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Write the differences as one line of JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Largest difference that passes.
const TOLERANCE: f64 = 1e-5;

/// Carries out `iliad dev fixture`.
pub(in crate::cli) fn run(args: &Args, registry: Registry) -> CliResult {
    let settings = args.common.load()?;
    let device = device(&settings)?;
    let device = with_options(&device, LaunchOptions { tf32: false, ..LaunchOptions::default() })?;
    let wrong = |e: String| CliError::Usage(format!("{} cannot be checked: {e}", args.file.display()));
    let file = FixtureFile::read(&args.file).map_err(|e| wrong(e.to_string()))?;
    let found = registry.families().iter().find_map(|family| family.check_fixture(&file, &device));
    let found = found
        .ok_or_else(|| wrong("it is not a fixture of a model this program knows".into()))?
        .map_err(|e| wrong(e.to_string()))?;
    let unpadded = registry.families().iter().find_map(|family| family.check_fixture_without_padding(&file, &device));
    let unpadded = unpadded.transpose().map_err(|e| wrong(e.to_string()))?;
    let worst = unpadded.iter().map(Differences::worst).fold(found.worst(), f64::max);
    let passes = worst <= TOLERANCE;
    if args.json {
        let mut differences = serde_json::to_value(&found)?;
        differences["without_padding"] = serde_json::to_value(&unpadded)?;
        differences["worst"] = worst.into();
        differences["tolerance"] = TOLERANCE.into();
        differences["passes"] = passes.into();
        out!("{}", json::line(&differences)?)?;
    } else {
        for found in std::iter::once(&found).chain(&unpadded) {
            out!("{}", found.model)?;
            out!("{:<32} {:.2e}", "logits", found.logits)?;
            out!("{:<32} {:.2e}", "loss", found.loss)?;
            for (name, difference) in &found.gradients {
                out!("{:<32} {difference:.2e}", format!("gradient of {name}"))?;
            }
        }
        out!("{:<32} {worst:.2e} ({} {TOLERANCE:e})", "largest", if passes { "within" } else { "above" })?;
    }
    Ok(if passes { Exit::Done } else { Exit::Failed })
}
