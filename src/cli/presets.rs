//! `iliad presets` lists the presets that a run can start from, and the settings of each.

use crate::command_line::{CliError, CliResult, Exit};
use crate::config::run::RunConfig;
use crate::config::run::documented::plain_value;
use crate::output::{json, out};
use crate::registry::{AnyFamily, Registry};

/// Flags of `iliad presets`.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Preset whose settings are listed [default: list the presets]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Write one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The command with presets of the registry as examples in its help.
pub(super) fn with_families(command: clap::Command, registry: Registry) -> clap::Command {
    let families = registry.families();
    // The first family's second preset, and the last family's first.
    let named = |family: Option<&&dyn AnyFamily>, at: usize| {
        let (family, presets) = (family?, family?.presets());
        Some(format!("{}/{}", family.name(), presets.get(at).or(presets.first())?.name))
    };
    let (of_first, of_last) = (named(families.first(), 1), named(families.last(), 0));
    let mut after = String::from("Examples:\n");
    let mut example = |arguments: &str, about: &str| {
        let command = format!("iliad presets {arguments}");
        after += &format!("  {command:<33}  {about}\n");
    };
    example("", "all presets, and what each is for");
    if let (Some(first), Some(last)) = (of_first, of_last) {
        example(&first, "its settings, as --set takes them");
        example(&format!("{last} --json"), "the same as one line of JSON");
    }
    command.after_help(after + "\nsrc/config/run.rs and src/task/*/settings.rs say what each setting means.")
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
        out!("{key}={}", plain_value(&value))?;
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_can_be_set() {
        for family in crate::registry::Registry::builtin().families() {
            for preset in family.presets() {
                let settings = preset.config.settings().into_iter().filter(|(key, _)| key != "family");
                let set: Vec<String> = settings.map(|(key, value)| format!("{key}={}", plain_value(&value))).collect();
                assert_eq!(preset.config.with_overrides(&set).unwrap(), preset.config);
            }
        }
    }
}
