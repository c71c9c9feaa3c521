//! The flags that say with which settings a run, a training or a measurement works.

use super::family_of;
use crate::command_line::{CliError, numbers};
use crate::config::run::RunConfig;
use crate::registry::Registry;

/// Changes of single settings.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Overrides {
    /// Change a setting of the preset; may be given many times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub set: Vec<String>,
}

/// A preset, a seed and changes of single settings.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct RunSettings {
    /// Named configuration to start from
    #[arg(long, value_name = "NAME", default_value = "tiny")]
    pub preset: String,
    /// Seed of every random stream
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = numbers::seed)]
    pub seed: u64,
    #[command(flatten)]
    pub overrides: Overrides,
}

impl RunSettings {
    /// The configuration that the flags stand for, checked by its task family.
    pub(super) fn configuration(&self, registry: Registry) -> Result<RunConfig, CliError> {
        configure(registry, &self.preset, self.seed, &self.overrides.set)
    }

    /// As [`RunSettings::configuration`], with the simulated teacher unless `--set` names another: people teach through
    /// the pages, so commands train presets for people without them.
    pub(super) fn simulated_configuration(&self, registry: Registry) -> Result<RunConfig, CliError> {
        configure(registry, &self.preset, self.seed, &simulated(&self.overrides.set))
    }
}

/// A configuration from a preset, a seed and changed settings, checked by its task family.
pub(super) fn configure(registry: Registry, preset: &str, seed: u64, set: &[String]) -> Result<RunConfig, CliError> {
    let config = registry.configure(preset, seed, set).map_err(|e| CliError::Usage(e.to_string()))?;
    family_of(registry, &config)?.check(&config).map_err(|e| CliError::Usage(format!("{e:#}")))?;
    Ok(config)
}

/// The changed settings after one that chooses the simulated teacher.
pub(super) fn simulated(set: &[String]) -> Vec<String> {
    let mode = r#"teacher.mode={"mode":"simulated"}"#.to_owned();
    std::iter::once(mode).chain(set.iter().cloned()).collect()
}

/// Reads the value of `--set`: a key, `=` and a value. The configuration checks whether it has that key.
fn key_and_value(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, _)) if !key.trim().is_empty() => Ok(text.to_owned()),
        _ => Err("write it as key=value, such as algorithm.replay=2".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_need_a_key() {
        assert!(key_and_value("a.b=c=d").is_ok() && key_and_value("a=").is_ok());
        assert!(key_and_value("a").is_err() && key_and_value("=1").is_err());
    }
}
