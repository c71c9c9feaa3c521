//! A study as a TOML file: its settings by their names, its arms as `[[arms]]`, and perhaps its name in addresses as `id`.

use super::{StudyArm, StudySettings};
use crate::ids::StudyId;
use serde::{Deserialize, Serialize};

/// A study as it stands in a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StudyFile {
    /// Name in addresses; `None`: made of the title.
    pub id: Option<StudyId>,
    /// The settings.
    pub settings: StudySettings,
    /// The runs.
    pub arms: Vec<StudyArm>,
}

/// Why a file cannot be read, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileError(String);

#[derive(Default, Serialize, Deserialize)]
struct Arms {
    arms: Vec<StudyArm>,
}

impl StudyFile {
    /// Reads a file. Names that no setting has are refused.
    pub fn read(text: &str) -> Result<StudyFile, FileError> {
        let unreadable = |error: toml::de::Error| FileError(format!("The settings are no TOML: {error}"));
        let mut table: toml::Table = toml::from_str(text).map_err(unreadable)?;
        let id = match table.remove("id") {
            None => None,
            Some(toml::Value::String(id)) => Some(StudyId::from(id)),
            Some(other) => return Err(FileError(format!("`id` must be a text, and is {other}."))),
        };
        let wrong = |what: &str, error: toml::de::Error| FileError(format!("{what}: {}", error.message()));
        let arms = match table.remove("arms") {
            None => Vec::new(),
            Some(arms) => {
                let arms = toml::Table::from_iter([("arms".to_owned(), arms)]).try_into::<Arms>();
                arms.map_err(|error| wrong("The arms cannot be read; each has a run and a name", error))?.arms
            }
        };
        let settings = table.try_into().map_err(|error| wrong("The settings cannot be read", error))?;
        Ok(StudyFile { id, settings, arms })
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let written = |text: Result<String, toml::ser::Error>| text.unwrap_or_else(|error| format!("# {error}\n"));
        let id = self.id.as_ref().map(|id| format!("id = {}\n", toml::Value::from(id.to_string()))).unwrap_or_default();
        let arms = match self.arms.is_empty() {
            true => String::new(),
            false => format!("\n{}", written(toml::to_string_pretty(&Arms { arms: self.arms.clone() }))),
        };
        format!("{id}{}{arms}", written(toml::to_string_pretty(&self.settings)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Entry, WordedExample};

    #[test]
    fn what_is_written_is_read_again() {
        let file = StudyFile {
            id: Some("words".into()),
            settings: StudySettings {
                title: "Words \"of\" people".into(),
                consent: "We keep\n\n- what you write\n- nothing else".into(),
                good: vec![WordedExample { text: "It doubled the e.".into(), why: "complete".into() }],
                entry: Entry::Prolific,
                ..StudySettings::default()
            },
            arms: vec![StudyArm { run: "regex-1".into(), name: "descriptions".into() }],
        };
        assert_eq!(StudyFile::read(&file.text()), Ok(file.clone()), "{}", file.text());
        let plain = StudyFile { id: None, arms: Vec::new(), ..file };
        assert_eq!(StudyFile::read(&plain.text()), Ok(plain));
        assert_eq!(StudyFile::read("").unwrap(), StudyFile::default());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let says = |text: &str| StudyFile::read(text).unwrap_err().to_string();
        assert!(says("title = ").contains("no TOML"), "{}", says("title = "));
        assert!(says("tittle = 'x'").contains("tittle"), "{}", says("tittle = 'x'"));
        assert!(says("goal = 'many'").contains("many"), "{}", says("goal = 'many'"));
        assert!(says("[[arms]]\nname = 'x'").contains("run"), "{}", says("[[arms]]\nname = 'x'"));
        assert!(says("id = 3").contains("`id` must be a text"));
    }
}
