//! The settings of a run as a TOML file: to keep, and to begin another run with.

use super::{ConfigError, RunConfig};
use serde_json::Value;

/// The settings of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFile {
    /// Family and preset: `regex/small`.
    pub preset: String,
    /// The seed, where the file has one.
    pub seed: Option<u64>,
    /// Settings as `key=value`.
    pub set: Vec<String>,
}

impl RunFile {
    /// Reads a file. Settings that it leaves out are the preset's.
    ///
    /// # Errors
    /// When it is no TOML, or does not name family and preset.
    pub fn read(text: &str) -> Result<RunFile, ConfigError> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(0, |span| text[..span.start.min(text.len())].lines().count().max(1));
            ConfigError(format!("line {line} is not TOML: {}", error.message()))
        })?;
        let json = serde_json::to_value(table).map_err(|error| ConfigError(error.to_string()))?;
        let word = |key: &str| json[key].as_str().map(str::to_owned);
        let (Some(family), Some(preset)) = (word("family"), word("preset")) else {
            return Err(ConfigError(
                "the file must name its family and preset in its first lines: family = \"regex\" and preset = \"small\""
                    .into(),
            ));
        };
        let mut set = Vec::new();
        flatten("", &json, &mut set);
        set.retain(|(key, _)| !["family", "preset", "seed"].contains(&key.as_str()));
        Ok(RunFile {
            preset: format!("{family}/{preset}"),
            seed: json["seed"].as_u64(),
            set: set.into_iter().map(|(key, value)| format!("{key}={value}")).collect(),
        })
    }
}

fn flatten(prefix: &str, value: &Value, out: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(members) if prefix != "teacher.mode" => {
            for (key, value) in members {
                let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&path, value, out);
            }
        }
        value => out.push((prefix.to_owned(), value.clone())),
    }
}

impl RunConfig {
    /// The settings as a TOML file that [`RunFile::read`] reads.
    ///
    /// # Errors
    /// When a number has no form in TOML.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        let table = toml::Value::try_from(self).map_err(|error| ConfigError(error.to_string()))?;
        toml::to_string_pretty(&table).map_err(|error| ConfigError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn a_file_gives_the_settings_that_it_was_made_of() {
        for family in Registry::builtin().families() {
            for preset in family.presets() {
                let mut config = preset.config.clone();
                (config.seed, config.algorithm.batch) = (7, 9);
                let file = RunFile::read(&config.to_toml().unwrap()).unwrap();
                assert_eq!(
                    (file.preset.as_str(), file.seed),
                    (format!("{}/{}", family.name(), preset.name).as_str(), Some(7))
                );
                let again = Registry::builtin().configure(&file.preset, 7, &file.set).unwrap();
                assert_eq!(again, config);
            }
        }
    }

    #[test]
    fn what_is_no_such_file_says_why() {
        assert!(RunFile::read("a = \n").unwrap_err().0.starts_with("line 1 is not TOML"));
        assert!(RunFile::read("seed = 1\n").unwrap_err().0.contains("family = \"regex\""));
        let file = RunFile::read("family = \"regex\"\npreset = \"tiny\"\n[algorithm]\nbatch = 8\n").unwrap();
        assert_eq!((file.seed, file.set), (None, vec!["algorithm.batch=8".to_owned()]));
    }
}
