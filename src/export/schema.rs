//! The columns of the data set, and the same for programs: a Frictionless Table Schema.
//!
//! A reader that guesses types from the first rows guesses wrong: where the first ten megabytes are simulated, `teacher_id` is
//! empty throughout and gets another type than later, and whole numbers beside empty fields become floating-point ones.
//! The schema says the types beforehand. Beside the standard's own members every field has what pandas (`pandas`) and
//! Hugging Face's `datasets` (`datasets`) call its type; `docs/export.md` shows their use.

use super::table::{Column, Kind};
use serde_json::{Value, json};

/// Version of the columns. It changes when a column is renamed, goes, or means another thing.
pub const SCHEMA_VERSION: i64 = 2;

const fn column(name: &'static str, kind: Kind, about: &'static str) -> Column {
    Column { name, kind, optional: false, about }
}

const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Column {
    Column { name, kind, optional: true, about }
}

/// Names of sources.
const SOURCES: Kind = Kind::Word(&["human", "simulated"]);
/// Names of kinds of answers.
const KINDS: Kind = Kind::Word(&["described", "nothing_changed", "cannot_describe", "skipped"]);

/// Columns that descriptions and episodes have in common.
const EPISODE_ID: Column = column("episode_id", Kind::Integer, "number of the episode within the run");
const RUN_ID: Column = column("run_id", Kind::Text, "name of the run");
const TASK: Column = column("task", Kind::Text, "task family");
const REQUEST: Column = column("request", Kind::Text, "the request d* that the agent was given");
const START_STATE: Column = optional("start_state", Kind::Json, "the state in which the agent began");
const EXECUTION: Column = column("execution", Kind::Text, "what the agent did, as one line");
const OUTPUTS: Column = optional("outputs", Kind::Json, "what came of it");
const REFERENCE_EXECUTION: Column =
    optional("reference_execution", Kind::Text, "what would have been right, as one line");
const REFERENCE_OUTPUTS: Column = optional("reference_outputs", Kind::Json, "what would have come of that");
const SUCCESS: Column =
    column("success", Kind::Boolean, "whether the execution did what was asked, as the task itself judges it");

/// Columns of descriptions, in the order of the file.
pub const DESCRIPTIONS: [Column; 50] = [
    column("description_id", Kind::Integer, "key of the row, unique in the database, growing with time"),
    EPISODE_ID,
    RUN_ID,
    TASK,
    REQUEST,
    START_STATE,
    EXECUTION,
    OUTPUTS,
    REFERENCE_EXECUTION,
    REFERENCE_OUTPUTS,
    SUCCESS,
    optional("description", Kind::Text, "the words, exactly as typed; empty for a skip"),
    column("kind", KINDS, "what kind of answer it is"),
    optional("skip_reason", Kind::Text, "the reason of a skip"),
    column("is_valid", Kind::Boolean, "whether the kind is `described`, and the answer stands"),
    column(
        "medium",
        Kind::Word(&["description", "demonstration", "rating"]),
        "medium in which people teach the run; `described` is an answer in it",
    ),
    column("source", SOURCES, "who said it"),
    optional(
        "teacher_id",
        Kind::Integer,
        "pseudonymous number of the person within this database; empty for simulated",
    ),
    column("lang", Kind::Text, "language that teachers are asked in (BCP 47)"),
    column("created_at", Kind::Time, "when the answer was stored"),
    optional("active_ms", Kind::Integer, "milliseconds of activity on it, pauses left out, as the page measured"),
    optional("idle_ms", Kind::Integer, "milliseconds in which the page saw no sign of the person"),
    column("revision", Kind::Integer, "number of the answer among those of the person about the execution, from 1"),
    optional(
        "superseded_by",
        Kind::Integer,
        "key of the answer that corrects this one; its own when it was taken back",
    ),
    column(
        "preview_shown",
        Kind::Boolean,
        "whether the person saw what the agent would do in their words before sending",
    ),
    column("policy_version", Kind::Integer, "update of the policy that made the execution"),
    column("used_in_updates", Kind::Integers, "updates that took the answer in; only `described` is learned from"),
    column("quality_flags", Kind::Words, "signs that the person did not take care"),
    column("split", Kind::Text, "split of the task"),
    column("preset", Kind::Text, "preset of the run"),
    column("config_hash", Kind::Text, "SHA-256 of the run's configuration"),
    column("schema_version", Kind::Integer, "version of these columns"),
    optional("study_id", Kind::Text, "study that the run belongs to"),
    optional("view", Kind::Json, "what the teacher was shown"),
    optional("demonstration", Kind::Json, "what was demonstrated"),
    optional("rating", Kind::Number, "how well the agent did what was asked, from 0 to 1"),
    column("request_shown", Kind::Boolean, "whether the person could see the request while describing"),
    optional("supersedes", Kind::Integer, "key of the answer that this one corrects"),
    optional("shown_at", Kind::Time, "when the execution was first shown to this person"),
    optional("withdrawn_at", Kind::Time, "when the person took the answer back"),
    optional(
        "understood_before",
        Kind::Boolean,
        "whether the agent, asked in these words, did what they describe before it learned from them",
    ),
    optional("understood_after", Kind::Boolean, "whether it did so right after it had learned from them"),
    column(
        "fulfilled",
        Kind::Boolean,
        "whether the person said that it did what was asked; `description` is then the request",
    ),
    optional(
        "preview_arm",
        Kind::Boolean,
        "whether the person is one of those to whom previews are shown; empty where nobody is",
    ),
    optional("first_text", Kind::Text, "the words of which the preview was shown"),
    column("retracted", Kind::Boolean, "whether the person withdrew it from the data set; its texts are empty then"),
    optional("review_state", Kind::Word(&["accepted", "rejected"]), "what a reviewer decided about it"),
    optional("adjudicated", Kind::Text, "the description of the execution that a reviewer decided on"),
    optional("reference", Kind::Json, "what would have been right, as its family writes executions"),
    column("seed", Kind::Text, "seed of the run, a whole number without sign"),
];

/// Columns of episodes.
pub const EPISODES: [Column; 21] = [
    EPISODE_ID,
    RUN_ID,
    TASK,
    REQUEST,
    START_STATE,
    EXECUTION,
    OUTPUTS,
    REFERENCE_EXECUTION,
    REFERENCE_OUTPUTS,
    SUCCESS,
    column("source", SOURCES, "whether people or the simulated teacher were asked about it"),
    column("descriptions", Kind::Integer, "answers about it"),
    optional(
        "candidates",
        Kind::Json,
        "descriptions that the simulated teacher considered, with whether each qualified",
    ),
    column("recorded_at", Kind::Time, "when it was offered to people, or recorded"),
    optional("policy_version", Kind::Integer, "update of the policy that made it, where it is known"),
    column("used_in_updates", Kind::Integers, "updates that learned from answers about it"),
    column("split", Kind::Text, "split of the task"),
    column("preset", Kind::Text, "preset of the run"),
    column("config_hash", Kind::Text, "SHA-256 of the run's configuration"),
    column("schema_version", Kind::Integer, "version of these columns"),
    optional("view", Kind::Json, "what is shown of it"),
];

/// Columns of events.
pub const EVENTS: [Column; 9] = [
    RUN_ID,
    column("event", Kind::Word(&["point", "update"]), "a point of the curves, or the record of an update"),
    column("update", Kind::Integer, "number of the update"),
    optional("at", Kind::Time, "when it was recorded; a point has the training time alone"),
    optional("episodes", Kind::Integer, "episodes by then"),
    optional("descriptions", Kind::Integer, "descriptions by then that were learned from"),
    optional("seconds", Kind::Number, "training time by then"),
    column("data", Kind::Json, "its readings"),
    column("schema_version", Kind::Integer, "version of these columns"),
];

impl Kind {
    /// Types of the standard, of pandas, and of `datasets` (as its `Features.from_dict` takes them).
    fn types(self) -> (&'static str, &'static str, Value) {
        let value = |dtype: &str| json!({"_type": "Value", "dtype": dtype});
        let list = |dtype: &str| json!({"_type": "List", "feature": value(dtype)});
        match self {
            Kind::Text | Kind::Word(_) => ("string", "string", value("string")),
            // Pandas' own `int64` has no empty fields.
            Kind::Integer => ("integer", "Int64", value("int64")),
            Kind::Number => ("number", "Float64", value("float64")),
            Kind::Boolean => ("boolean", "boolean", value("bool")),
            Kind::Time => ("datetime", "datetime64[ns, UTC]", value("timestamp[ns, tz=UTC]")),
            Kind::Json => ("any", "object", json!({"_type": "Json"})),
            Kind::Words => ("array", "object", list("string")),
            Kind::Integers => ("array", "object", list("int64")),
        }
    }
}

/// The schema of descriptions, indented for people.
pub fn text() -> String {
    let fields: Vec<Value> = DESCRIPTIONS
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
        "version": SCHEMA_VERSION.to_string(),
        "primaryKey": ["description_id"],
        "missingValues": [""],
        "fields": fields,
    });
    format!("{schema:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_column_is_there_twice_and_the_words_are_those_of_the_store() {
        for columns in [&DESCRIPTIONS[..], &EPISODES, &EVENTS] {
            let names: HashSet<&str> = columns.iter().map(|column| column.name).collect();
            assert_eq!(names.len(), columns.len());
        }
        let words = |kind| if let Kind::Word(words) = kind { words.to_vec() } else { Vec::new() };
        assert_eq!(words(KINDS), crate::store::AnswerKind::ALL.map(crate::store::AnswerKind::as_str));
        assert_eq!(words(SOURCES), crate::run::Source::ALL.map(crate::run::Source::as_str));
    }
}
