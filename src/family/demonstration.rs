//! Demonstrations as families check them.

use std::collections::BTreeMap;

/// The fields of a form in which somebody demonstrates, by their names without the `show-` that these begin with.
pub type Fields = BTreeMap<String, String>;

/// A demonstration that its family has checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Demonstration {
    /// The stored value, with all that is needed to make the execution again.
    pub data: serde_json::Value,
    /// The demonstration in plain text, for lists, exports and screen readers.
    pub text: String,
}
