//! `iliad presets` lists the presets that a run can start from, and the settings of each.

use super::{CliError, CliResult, Exit};
use crate::config::run::RunConfig;
use crate::output::{json, out};
use crate::registry::Registry;
use serde_json::Value;

const AFTER: &str = "\
Examples:
  iliad presets                      all presets, and what each is for
  iliad presets regex/tiny           its settings, as --set takes them
  iliad presets nav/small --json     the same as one line of JSON

src/config/run.rs and src/task/*/settings.rs say what each setting means.";

/// Flags of `iliad presets`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// Preset whose settings are listed [default: list the presets]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Write one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Carries out `iliad presets`.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    if let Some(name) = &args.name {
        let (_, preset) = registry.preset(name).map_err(|e| CliError::Usage(e.to_string()))?;
        return settings(&preset.config, args.json);
    }
    let all = crate::app::presets(registry);
    if args.json {
        out!("{}", json::line(&all)?)?;
        return Ok(Exit::Done);
    }
    let width = all.iter().map(|preset| preset.name.len()).max().unwrap_or(0);
    for preset in &all {
        out!("{:<width$}  {}", preset.name, preset.about)?;
    }
    Ok(Exit::Done)
}

/// Every setting of a configuration.
fn settings(config: &RunConfig, as_json: bool) -> CliResult {
    let settings = config.settings().into_iter().filter(|(key, _)| !["family", "preset"].contains(&key.as_str()));
    if as_json {
        out!("{}", json::line(&settings.collect::<serde_json::Map<_, _>>())?)?;
        return Ok(Exit::Done);
    }
    for (key, value) in settings {
        out!("{key}={}", plain(&value))?;
    }
    Ok(Exit::Done)
}

/// A value as `--set` takes it: JSON, and a text without its quotes unless it would be read as something else.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if serde_json::from_str::<Value>(text).is_err() => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_can_be_set() {
        for family in crate::registry::Registry::builtin().families() {
            for preset in family.presets() {
                let settings = preset.config.settings().into_iter().filter(|(key, _)| key != "family");
                let set: Vec<String> = settings.map(|(key, value)| format!("{key}={}", plain(&value))).collect();
                assert_eq!(preset.config.with_overrides(&set).unwrap(), preset.config);
            }
        }
    }
}
