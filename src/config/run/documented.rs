//! The settings of runs as documents: key, meaning, unit, the paper's value and what a value looks like. They are derived from the types that hold
//! the settings and from their documentation, so that there is no second list.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::Value;

/// The type of a setting's value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", content = "choices", rename_all = "lowercase")]
pub enum SettingKind {
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Whole,
    /// Any number.
    Number,
    /// A text, such as the name of a file.
    Text,
    /// One of these words.
    Choice(Vec<SettingChoice>),
    /// Several forms (`teacher.mode`).
    Form,
}

/// A word that a setting can have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingChoice {
    /// The word.
    pub word: String,
    /// Its meaning.
    pub about: String,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DocumentedSetting {
    /// Dotted key, as `--set` takes it.
    pub key: String,
    /// Its meaning in a sentence or two.
    pub about: String,
    /// The unit of its number.
    pub unit: Option<String>,
    /// The paper's value, where the document has it.
    pub paper: Option<String>,
    /// The type of its value.
    #[serde(flatten)]
    pub kind: SettingKind,
}

/// A group of settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingGroup {
    /// The dotted key that their keys begin with.
    pub key: String,
    /// The subject that they have in common.
    pub about: String,
    /// The settings.
    pub settings: Vec<DocumentedSetting>,
}

/// The groups of the settings that a type holds, whose keys begin with `prefix`.
pub fn groups<T: JsonSchema>(prefix: &str) -> Vec<SettingGroup> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema: Schema = settings.into_generator().into_root_schema_for::<T>();
    let mut groups = Vec::new();
    walk(prefix, schema.as_value(), &mut groups);
    groups
}

/// Adds the group of an object and those of the objects in it.
fn walk(key: &str, schema: &Value, groups: &mut Vec<SettingGroup>) {
    let (about, _) = tidy(schema["description"].as_str().unwrap_or_default());
    let mut group = SettingGroup { key: key.to_owned(), about, settings: Vec::new() };
    let mut inner = Vec::new();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
        if member["properties"].is_object() {
            walk(&key, member, &mut inner);
        } else if member != &Value::Bool(true) && kind(member).is_some() {
            group.settings.extend(setting(key, member));
        }
    }
    if !group.settings.is_empty() {
        groups.push(group);
    }
    groups.append(&mut inner);
}

fn setting(key: String, schema: &Value) -> Option<DocumentedSetting> {
    let (about, paper) = tidy(schema["description"].as_str().unwrap_or_default());
    let unit = schema["unit"].as_str().map(str::to_owned);
    Some(DocumentedSetting { key, about, unit, paper, kind: kind(schema)? })
}

/// The type of the values that a schema describes.
fn kind(schema: &Value) -> Option<SettingKind> {
    let choices = schema["oneOf"].as_array().map(Vec::as_slice).unwrap_or_default();
    let word = |choice: &Value| {
        Some(SettingChoice {
            word: choice["const"].as_str()?.to_owned(),
            about: tidy(choice["description"].as_str().unwrap_or_default()).0,
        })
    };
    Some(match schema["type"].as_str() {
        _ if !choices.is_empty() => match choices.iter().map(word).collect() {
            Some(words) => SettingKind::Choice(words),
            None => SettingKind::Form,
        },
        Some("boolean") => SettingKind::Flag,
        Some("integer") => SettingKind::Whole,
        Some("number") => SettingKind::Number,
        Some("string") => SettingKind::Text,
        _ => return None,
    })
}

/// A document without line breaks and references to the program's code, and the paper's value that it mentions.
fn tidy(text: &str) -> (String, Option<String>) {
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // ([`crate::protocol::World`]) says nothing to whoever reads a page; [`MIN_EDGES`] is a name.
    while let Some((begin, end)) = between(&text, "([`", "`])") {
        text.replace_range(begin..end, "");
    }
    while let Some((begin, end)) = between(&text, "[`", "`]") {
        let name = text[begin + 2..end - 2].rsplit("::").next().unwrap_or_default().to_owned();
        text.replace_range(begin..end, &name);
    }
    let mut paper = None;
    if let Some((begin, end)) = between(&text, "(paper", ")")
        && let Some((scope, value)) = text[begin + 1..end - 1].split_once(':')
    {
        let scope = scope.trim_start_matches("paper").trim_matches([',', ' ']);
        let value = value.trim();
        paper = Some(if scope.is_empty() { value.to_owned() } else { format!("{value} ({scope})") });
        text.replace_range(begin..end, "");
    }
    let text =
        text.replace(" .", ".").replace(" ,", ",").replace(" ;", ";").split_whitespace().collect::<Vec<_>>().join(" ");
    (text, paper)
}

/// Where a piece of a text that begins and ends so is, its ends included.
fn between(text: &str, begin: &str, end: &str) -> Option<(usize, usize)> {
    let from = text.find(begin)?;
    let to = text[from..].find(end)? + from + end.len();
    Some((from, to))
}

/// A value as `--set` takes it and forms show it: JSON, and a text without its quotes unless it would be read as something
/// else.
pub fn plain_value(value: &Value) -> String {
    match value {
        Value::String(text) if serde_json::from_str::<Value>(text).is_err() => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::run::RunConfig;

    #[test]
    fn documents_lose_references_and_give_the_papers_value() {
        let said = |text: &str| tidy(text);
        assert_eq!(said("Hidden size H (paper: 512)."), ("Hidden size H.".into(), Some("512".into())));
        assert_eq!(
            said("Adam's learning rate (paper, REGEX: 1e-3).\nREINFORCE has its own."),
            ("Adam's learning rate. REINFORCE has its own.".into(), Some("1e-3 (REGEX)".into()))
        );
        assert_eq!(
            said("Chosen by kind ([`crate::World::kind`]); 1: no. Of [`super::MIN`] edges."),
            ("Chosen by kind; 1: no. Of MIN edges.".into(), None)
        );
        assert_eq!(said("0: never (the paper)."), ("0: never (the paper).".into(), None));
    }

    #[test]
    fn every_setting_of_every_preset_is_documented() {
        for family in crate::registry::Registry::builtin().families() {
            let groups: Vec<SettingGroup> =
                groups::<RunConfig>("").into_iter().chain(family.setting_groups()).collect();
            let all: Vec<&DocumentedSetting> = groups.iter().flat_map(|group| &group.settings).collect();
            for preset in family.presets() {
                for (key, value) in preset.config.settings() {
                    let found = all.iter().find(|setting| setting.key == key);
                    let Some(found) = found else { panic!("{}: {key} is not documented", family.name()) };
                    assert!(found.about.ends_with('.') && found.about.len() > 10, "{key}: {}", found.about);
                    assert!(!found.about.contains("[`"), "{key}: {}", found.about);
                    let fits = match &found.kind {
                        SettingKind::Flag => value.is_boolean(),
                        SettingKind::Whole => value.is_u64(),
                        SettingKind::Number => value.is_number(),
                        SettingKind::Text => value.is_string(),
                        SettingKind::Choice(choices) => choices.iter().any(|choice| value == choice.word.as_str()),
                        SettingKind::Form => value.is_object(),
                    };
                    assert!(fits, "{key}: {value} is no {:?}", found.kind);
                }
            }
            let lambda = all.iter().find(|setting| setting.key == "algorithm.mixing.lambda").unwrap();
            assert_eq!(lambda.paper.as_deref(), Some("0.5"));
        }
    }
}
