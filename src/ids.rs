//! Keys of runs, studies, executions, answers, teachers, participants and accounts. Each is a type of its own, so that the
//! compiler refuses one where another is meant. As JSON, in addresses, in exports and in the database they are plain text and
//! plain integers.

use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::convert::Infallible;
use std::fmt;
use std::num::ParseIntError;
use std::ops::Deref;
use std::str::FromStr;

/// A key that is a text.
macro_rules! named_key {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        #[derive(
            Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type, utoipa::ToSchema,
        )]
        #[serde(transparent)]
        #[sqlx(transparent)]
        pub struct $name(String);

        impl $name {
            /// The key as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        /// In quotation marks, as messages show a name that may hold anything.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = Infallible;

            fn from_str(text: &str) -> Result<$name, Infallible> {
                Ok(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> $name {
                $name(text)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> $name {
                $name(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(key: $name) -> String {
                key.0
            }
        }

        /// Functions that only read the text of a key take it as such.
        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        /// Maps with keys of this type can be asked by text.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, text: &str) -> bool {
                self.0 == text
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, text: &&str) -> bool {
                self.0 == *text
            }
        }
    };
}

named_key! {
    /// Key of a run: its name, which is also the name of its folder.
    RunId
}
named_key! {
    /// Key of a study: its name in addresses.
    StudyId
}

/// A key that the database numbers. `default()` is 0, which comes before all keys.
macro_rules! numbered_key {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type,
            utoipa::ToSchema,
        )]
        #[serde(transparent)]
        #[sqlx(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<$name, ParseIntError> {
                text.parse().map($name)
            }
        }
    };
}

numbered_key! {
    /// Key of an execution in the pool.
    ExecutionId
}
numbered_key! {
    /// Key of an answer. Answers that come later have larger keys.
    AnswerId
}
numbered_key! {
    /// Key of a teacher in a study.
    ParticipantId
}
numbered_key! {
    /// Key of a teacher. It is a pseudonym: nothing about the person follows from it.
    TeacherId
}
numbered_key! {
    /// Key of an account: somebody who signs in.
    AccountId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_plain_text_and_integers() {
        let keys = (RunId::from("regex-1"), ExecutionId(7), AnswerId(8), Some(TeacherId(9)));
        let text = r#"["regex-1",7,8,9]"#;
        assert_eq!(serde_json::to_string(&keys).unwrap(), text);
        assert_eq!(serde_json::from_str::<(RunId, ExecutionId, AnswerId, Option<TeacherId>)>(text).unwrap(), keys);
        assert_eq!((format!("{}/{}", keys.0, keys.1), "12".parse()), ("regex-1/7".to_owned(), Ok(AnswerId(12))));
        assert!("twelve".parse::<AnswerId>().is_err());
    }
}
