//! The columns of the dataset for programs: a Frictionless Table Schema.
//!
//! A reader that guesses types from the first rows guesses wrong: where the first ten megabytes are simulated, `teacher` is
//! empty throughout and gets another type than later, and whole numbers beside empty fields become floating-point ones.
//! The schema says the types beforehand. Beside the standard's own members every field has what pandas (`pandas`) and
//! Hugging Face's `datasets` (`datasets`) call its type; `docs/export.md` shows their use.

use serde_json::{Value, json};

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number of 64 bits.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A time (RFC 3339, UTC, up to nanoseconds).
    Time,
    /// An object of JSON whose members depend on the family.
    Object,
    /// A list of words.
    Words,
}

/// A column of the dataset.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name, also of the JSON member.
    pub name: &'static str,
    /// Type of its values.
    pub kind: Kind,
    /// Whether it may be empty (`null` in JSON).
    pub optional: bool,
    /// Its meaning.
    pub about: &'static str,
}

const fn column(name: &'static str, kind: Kind, about: &'static str) -> Column {
    Column { name, kind, optional: false, about }
}

const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Column {
    Column { name, kind, optional: true, about }
}

/// All columns, in the order of the file.
pub const COLUMNS: [Column; 34] = [
    column("run", Kind::Text, "run id"),
    column("family", Kind::Text, "task family"),
    column("answer", Kind::Integer, "key of the row, unique in the database, growing with time"),
    column("episode", Kind::Integer, "number of the episode within the run"),
    column("source", Kind::Word(&["human", "simulated"]), "who said it"),
    optional("teacher", Kind::Integer, "pseudonymous number of the person within this database; empty for simulated"),
    column("request", Kind::Text, "the request d* that the agent was given"),
    column("execution", Kind::Text, "what the agent did, as one line"),
    column("view", Kind::Object, "what the teacher was shown"),
    column(
        "kind",
        Kind::Word(&["described", "nothing_changed", "cannot_describe", "skipped"]),
        "what kind of answer it is",
    ),
    column("text", Kind::Text, "what was typed, exactly; for a skip the reason"),
    column(
        "medium",
        Kind::Word(&["description", "demonstration", "rating"]),
        "medium in which people teach the run; `described` is an answer in it",
    ),
    optional("demonstration", Kind::Object, "what was demonstrated"),
    optional("rating", Kind::Number, "how well the agent did what was asked, from 0 to 1"),
    column("request_shown", Kind::Boolean, "whether the person could see the request while describing"),
    column("policy_update", Kind::Integer, "update of the policy that made the execution"),
    optional("used_in_update", Kind::Integer, "update that took the answer in; only `described` is learnt from"),
    optional("supersedes", Kind::Integer, "key of the answer that this one corrects"),
    optional(
        "superseded_by",
        Kind::Integer,
        "key of the answer that corrects this one; its own when it was taken back",
    ),
    optional("shown_at", Kind::Time, "when the execution was first shown to this person"),
    optional("active_ms", Kind::Integer, "milliseconds of activity on it, pauses left out, as the page measured"),
    optional("idle_ms", Kind::Integer, "milliseconds in which the page saw no sign of the person"),
    column("created_at", Kind::Time, "when the answer was stored"),
    optional("withdrawn_at", Kind::Time, "when the person took the answer back"),
    optional(
        "understood_before",
        Kind::Boolean,
        "whether the agent, asked in these words, did what they describe before it learnt from them",
    ),
    optional("understood_after", Kind::Boolean, "whether it did so right after it had learnt from them"),
    column(
        "fulfilled",
        Kind::Boolean,
        "whether the person said that it did what was asked; `text` is then the request",
    ),
    optional(
        "preview_arm",
        Kind::Boolean,
        "whether the person is one of those to whom previews are shown; empty where nobody is",
    ),
    column(
        "preview_shown",
        Kind::Boolean,
        "whether the person saw what the agent would do in their words before sending",
    ),
    optional("first_text", Kind::Text, "the words of which the preview was shown"),
    column("retracted", Kind::Boolean, "whether the person withdrew it from the dataset; its texts are empty then"),
    optional("review_state", Kind::Word(&["accepted", "rejected"]), "what a reviewer decided about it"),
    optional("adjudicated", Kind::Text, "the description of the execution that a reviewer decided on"),
    column("quality_flags", Kind::Words, "signs that the person did not take care"),
];

impl Kind {
    /// Types of the standard, of pandas, and of `datasets` (as its `Features.from_dict` takes them).
    fn types(self) -> (&'static str, &'static str, Value) {
        let value = |dtype: &str| json!({"_type": "Value", "dtype": dtype});
        match self {
            Kind::Text | Kind::Word(_) => ("string", "string", value("string")),
            // Pandas' own `int64` has no empty fields.
            Kind::Integer => ("integer", "Int64", value("int64")),
            Kind::Number => ("number", "Float64", value("float64")),
            Kind::Boolean => ("boolean", "boolean", value("bool")),
            Kind::Time => ("datetime", "datetime64[ns, UTC]", value("timestamp[ns, tz=UTC]")),
            Kind::Object => ("object", "object", json!({"_type": "Json"})),
            Kind::Words => ("array", "object", json!({"_type": "List", "feature": value("string")})),
        }
    }
}

/// The schema, indented for people.
pub fn text() -> String {
    let fields: Vec<Value> = COLUMNS
        .iter()
        .map(|column| {
            let (kind, pandas, datasets) = column.kind.types();
            let mut constraints = json!({"required": !column.optional});
            if let Kind::Word(words) = column.kind {
                constraints["enum"] = json!(words);
            }
            json!({
                "name": column.name, "type": kind, "description": column.about, "constraints": constraints,
                "pandas": pandas, "datasets": datasets,
            })
        })
        .collect();
    let schema = json!({
        "$schema": "https://datapackage.org/profiles/2.0/tableschema.json",
        "title": "Descriptions collected with Iliad",
        "primaryKey": ["answer"],
        "missingValues": [""],
        "fields": fields,
    });
    format!("{schema:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::ExportRow;

    /// A row with everything there, or with everything optional missing.
    fn row(full: bool) -> Value {
        let mut row = json!({
            "run": "r", "family": "regex", "answer": 1, "episode": 2, "source": "human", "teacher": 3, "request": "q",
            "execution": "e", "view": {"pairs": []}, "kind": "described", "text": "t", "medium": "rating",
            "demonstration": {"outputs": []}, "rating": 0.25, "request_shown": false,
            "policy_update": 4, "used_in_update": 5, "supersedes": 6, "superseded_by": 7,
            "shown_at": "2026-01-02T03:04:05Z", "active_ms": 8, "created_at": "2026-01-02T03:04:05.5Z",
            "withdrawn_at": "2026-01-02T03:04:06Z", "understood_before": false, "understood_after": true, "idle_ms": 9, "fulfilled": false,
            "preview_arm": true, "preview_shown": true, "first_text": "f",
            "retracted": false, "review_state": "rejected", "adjudicated": "a", "quality_flags": ["too_fast"],
        });
        for column in COLUMNS.iter().filter(|column| column.optional && !full) {
            row[column.name] = Value::Null;
        }
        // Through the type of the rows, so that a new member of it must be a column here.
        serde_json::to_value(serde_json::from_value::<ExportRow>(row).unwrap()).unwrap()
    }

    #[test]
    fn every_member_of_a_row_is_a_column_of_its_type() {
        for full in [true, false] {
            let row = row(full);
            let row = row.as_object().unwrap();
            assert_eq!(row.len(), COLUMNS.len());
            for column in COLUMNS {
                let value = &row[column.name];
                let fits = match column.kind {
                    Kind::Text | Kind::Time => value.is_string(),
                    Kind::Word(words) => words.contains(&value.as_str().unwrap_or_default()),
                    Kind::Integer => value.is_u64(),
                    Kind::Number => value.is_f64(),
                    Kind::Boolean => value.is_boolean(),
                    Kind::Object => value.is_object(),
                    Kind::Words => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
                };
                assert!(fits || (column.optional && !full && value.is_null()), "{}: {value}", column.name);
            }
        }
        for kind in ["described", "nothing_changed", "cannot_describe", "skipped"] {
            serde_json::from_value::<crate::store::AnswerKind>(kind.into()).unwrap();
        }
    }
}
