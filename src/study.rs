//! Studies: what a researcher decides about teachers before they come. A study asks people to join by a link, to agree to
//! something, to read guidelines, perhaps to show that they can describe, and to give a number of answers to one or more
//! runs (its arms). Who is where in it stands in the store; here are the settings and the words for states.

pub mod agreement;
pub mod comparison;
mod estimate;
mod file;
mod intervals;
pub mod quality;
mod settings;

pub use comparison::{Comparison, compare};
pub use estimate::Estimate;
pub use file::{FileError, StudyFile};
pub use intervals::Interval;
pub use settings::{
    Assignment, AttentionChecks, Completion, Entry, Judge, Qualification, SettingsError, StudySettings, WordedExample,
};

use crate::ids::RunId;
use serde::{Deserialize, Serialize};

/// A run of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyArm {
    /// The run.
    pub run: RunId,
    /// Its name in the study: "descriptions".
    pub name: String,
}

/// A named set of values that is stored, exported and read as one word.
macro_rules! words {
    ($(#[$documentation:meta])* $name:ident { $($(#[$meaning:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$meaning])* $variant),+ }

        impl $name {
            /// The value as it is stored and exported.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }

            /// The value that is stored as `word`.
            pub fn parse(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }
        }
    };
}
pub(crate) use words;

words! {
    /// Whether a study takes teachers.
    StudyState {
        /// It is being written; nobody can join.
        Draft = "draft",
        /// Teachers join and teach.
        Open = "open",
        /// Nobody joins; who is in it waits.
        Paused = "paused",
        /// It is over. Codes and returns still work.
        Closed = "closed",
    }
}

impl StudyState {
    /// One word for pages.
    pub fn word(self) -> &'static str {
        match self {
            StudyState::Draft => "Draft",
            StudyState::Open => "Open",
            StudyState::Paused => "Paused",
            StudyState::Closed => "Closed",
        }
    }

    /// Whether a study may go from this state to another.
    pub fn may_become(self, next: StudyState) -> bool {
        use StudyState::{Closed, Draft, Open, Paused};
        matches!((self, next), (Draft, Open) | (Open, Paused | Closed) | (Paused, Open | Closed) | (Closed, Open))
    }
}

words! {
    /// Where a participant is in a study.
    ParticipantState {
        /// They have joined and read the guidelines.
        Guidelines = "guidelines",
        /// They describe the executions of the qualification.
        Qualifying = "qualifying",
        /// A researcher has to look at their qualification.
        Waiting = "waiting",
        /// They teach.
        Teaching = "teaching",
        /// They gave what was asked of them.
        Finished = "finished",
        /// They did not pass the qualification or the attention checks.
        ScreenedOut = "screened_out",
        /// They left before the end.
        Left = "left",
    }
}

impl ParticipantState {
    /// A few words for pages of researchers.
    pub fn word(self) -> &'static str {
        match self {
            ParticipantState::Guidelines => "reads the guidelines",
            ParticipantState::Qualifying => "qualifies",
            ParticipantState::Waiting => "waits for you",
            ParticipantState::Teaching => "teaches",
            ParticipantState::Finished => "finished",
            ParticipantState::ScreenedOut => "screened out",
            ParticipantState::Left => "left early",
        }
    }
}

words! {
    /// The researcher's decision about a participant's work.
    Approval {
        /// Nothing yet.
        Pending = "pending",
        /// It is to be paid.
        Approved = "approved",
        /// It is not.
        Rejected = "rejected",
    }
}

words! {
    /// A reviewer's decision about an answer.
    ReviewState {
        /// It is good.
        Accepted = "accepted",
        /// It is not, and is left out of what stands.
        Rejected = "rejected",
    }
}

/// A title as a name in addresses.
pub fn slug(title: &str) -> String {
    let mut name = String::new();
    for letter in title.to_lowercase().chars() {
        match letter {
            letter if letter.is_ascii_alphanumeric() => name.push(letter),
            _ if !name.ends_with('-') && !name.is_empty() => name.push('-'),
            _ => {}
        }
    }
    let name: String = name.chars().take(40).collect();
    match name.trim_matches('-') {
        "" => "study".to_owned(),
        name => name.to_owned(),
    }
}

/// A number in 0..n that follows from texts alone: which arm a participant gets, whether they see previews. It is even enough for
/// assignment, and can be made again by anybody who has the texts.
pub fn draw(parts: &[&str], n: usize) -> usize {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(parts.join("\u{1f}"));
    let number = u64::from_be_bytes(digest[..8].try_into().expect("a digest has 32 bytes"));
    (number % (n.max(1) as u64)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_they_are_written() {
        for state in [StudyState::Draft, StudyState::Open, StudyState::Paused, StudyState::Closed] {
            assert_eq!(StudyState::parse(state.as_str()), Some(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        assert_eq!(ParticipantState::parse("screened_out"), Some(ParticipantState::ScreenedOut));
        assert_eq!(serde_json::to_value(ParticipantState::ScreenedOut).unwrap(), "screened_out");
        assert_eq!(Approval::parse("nobody"), None);
    }

    #[test]
    fn a_closed_study_can_be_opened_again_and_a_draft_cannot_be_closed() {
        assert!(StudyState::Closed.may_become(StudyState::Open));
        assert!(!StudyState::Draft.may_become(StudyState::Closed));
        assert!(!StudyState::Open.may_become(StudyState::Draft), "teachers have agreed to what it says");
    }

    #[test]
    fn draws_are_even_and_repeat() {
        let mut counts = [0; 3];
        for person in 0..3000 {
            let person = person.to_string();
            counts[draw(&["study", &person], 3)] += 1;
            assert_eq!(draw(&["study", &person], 3), draw(&["study", &person], 3));
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
        assert_ne!((0..50).map(|n| draw(&["a", &n.to_string()], 9)).collect::<Vec<_>>(), vec![0; 50]);
    }
}
