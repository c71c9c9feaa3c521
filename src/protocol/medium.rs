//! The medium in which people teach. It is a property of a run, decided by its algorithm.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The medium of people's answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Medium {
    /// A sentence that says what the agent did (ADEL and its relatives).
    #[default]
    Description,
    /// An execution that does what was asked (DAgger).
    Demonstration,
    /// How well the agent did what was asked, from 0 to 1 (REINFORCE).
    Rating,
}

impl Medium {
    /// Every medium.
    pub const ALL: [Medium; 3] = [Medium::Description, Medium::Demonstration, Medium::Rating];

    /// The word for one answer in this medium, which is also its name in files: `description`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Description => "description",
            Self::Demonstration => "demonstration",
            Self::Rating => "rating",
        }
    }

    /// The word for several of them.
    pub fn words(self) -> &'static str {
        match self {
            Self::Description => "descriptions",
            Self::Demonstration => "demonstrations",
            Self::Rating => "ratings",
        }
    }

    /// The verb of teaching in it.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Description => "describe",
            Self::Demonstration => "show",
            Self::Rating => "rate",
        }
    }

    /// The medium of a name.
    pub fn named(name: &str) -> Option<Medium> {
        Self::ALL.into_iter().find(|medium| medium.word() == name)
    }

    /// Whether people have to see the request: who demonstrates or rates must know what was asked for, while the paper's
    /// describer is to say what happened and nothing else.
    pub fn shows_request(self) -> bool {
        self != Self::Description
    }
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::Medium;

    #[test]
    fn media_have_one_name_in_files_and_on_pages() {
        for medium in Medium::ALL {
            assert_eq!(serde_json::to_value(medium).unwrap(), medium.word());
            assert_eq!(Medium::named(medium.word()), Some(medium));
            assert_eq!(medium.words(), format!("{medium}s"));
        }
        assert_eq!(Medium::named("song"), None);
    }
}
