//! Reading settings from their sources: flags, environment variables, the TOML file.

use super::{ConfigError, Origin, SETTINGS, Setting};
use crate::output::json::unmarked;
use std::path::{Path, PathBuf};

/// The sources in their precedence.
pub(super) struct Sources<'a> {
    pub flags: &'a [(&'static str, String)],
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    pub file: Vec<(String, String)>,
    pub path: PathBuf,
}

impl Sources<'_> {
    /// The text of a setting and where it came from.
    fn text(&self, setting: &'static Setting) -> Option<(String, Origin)> {
        if let Some((_, text)) = self.flags.iter().find(|(key, _)| *key == setting.key) {
            return Some((text.clone(), Origin::Flag(setting.flag)));
        }
        if let Some(text) = (self.environment)(setting.variable) {
            return Some((text, Origin::Environment(setting.variable)));
        }
        let (_, text) = self.file.iter().find(|(key, _)| key == setting.key)?;
        Some((text.clone(), Origin::File(self.path.clone())))
    }

    /// The value of a setting, as the first source that names it has it, and where it came from.
    pub fn value<T>(
        &self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
        default: T,
    ) -> Result<(T, Origin), ConfigError> {
        let setting = SETTINGS.iter().find(|setting| setting.key == key).expect("only keys of SETTINGS are asked for");
        let Some((text, origin)) = self.text(setting) else { return Ok((default, Origin::Default)) };
        match parse(text.trim()) {
            Ok(value) => Ok((value, origin)),
            Err(problem) => Err(ConfigError::Value { setting: key, origin, problem }),
        }
    }
}

/// Keys and values of the TOML file as texts.
pub(super) fn read_file(path: &Path) -> Result<Vec<(String, String)>, ConfigError> {
    let unreadable = |cause: String| ConfigError::File { path: path.to_owned(), cause };
    let bytes = std::fs::read(path).map_err(|e| unreadable(e.to_string()))?;
    let text = std::str::from_utf8(unmarked(&bytes)).map_err(|_| unreadable("it is not UTF-8".into()))?;
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| unreadable(e.to_string()))?;
    table
        .into_iter()
        .map(|(key, value)| {
            let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) else {
                return Err(ConfigError::UnknownKey { path: path.to_owned(), key });
            };
            match value {
                toml::Value::String(text) => Ok((key, text)),
                toml::Value::Integer(number) => Ok((key, number.to_string())),
                toml::Value::Boolean(switch) => Ok((key, switch.to_string())),
                other => Err(ConfigError::Value {
                    setting: setting.key,
                    origin: Origin::File(path.to_owned()),
                    problem: format!("a text or a number is expected, not a TOML {}", other.type_str()),
                }),
            }
        })
        .collect()
}
