//! The form of all settings of a run: one text for each setting, as it was typed, and what it says.

use crate::config::run::documented::{DocumentedSetting, SettingKind};
use crate::config::run::{RunFile, TeacherMode};
use crate::launch::{NewRun, PresetSettings, SettingProblem};
use crate::web::error::{Error, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// Prefix of the fields of settings.
const SETTING: &str = "s.";

/// The typed texts by the names of the fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunForm(BTreeMap<String, String>);

/// Who teaches, as the form's fields say it: the mode and the share in percent.
fn teacher_fields(mode: TeacherMode) -> (&'static str, String) {
    match mode {
        TeacherMode::Human => ("human", "30".to_owned()),
        TeacherMode::Simulated => ("simulated", "30".to_owned()),
        TeacherMode::Mixed { share } => ("mixed", (share * 100.0).round().to_string()),
    }
}

/// Whether two texts say the same value.
fn same(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    let (one, other) = (read(one.trim()), read(other.trim()));
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

impl RunForm {
    /// A form that was sent. Of fields with one name the last counts, so that a box that is not ticked can say so.
    pub(crate) fn sent(pairs: Vec<(String, String)>) -> RunForm {
        RunForm(pairs.into_iter().collect())
    }

    /// The form that says what a preset says, with some of its values changed.
    pub(crate) fn of(
        settings: &PresetSettings,
        seed: u64,
        teacher: TeacherMode,
        changed: &BTreeMap<String, String>,
    ) -> RunForm {
        let (mode, share) = teacher_fields(teacher);
        let mut fields = BTreeMap::from([
            ("preset".to_owned(), settings.preset.clone()),
            ("seed".to_owned(), seed.to_string()),
            ("mode".to_owned(), mode.to_owned()),
            ("share".to_owned(), share),
        ]);
        for (key, value) in settings.values.iter().chain(changed) {
            fields.insert(format!("{SETTING}{key}"), value.clone());
        }
        RunForm(fields)
    }

    /// The text of a field.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Types a text into a field.
    pub(crate) fn type_in(&mut self, name: &str, text: String) {
        self.0.insert(name.to_owned(), text);
    }

    /// Types a text into the field of a setting.
    pub(crate) fn type_in_setting(&mut self, key: &str, text: String) {
        self.type_in(&format!("{SETTING}{key}"), text);
    }

    /// The typed value of a setting; the preset's where the form does not have it.
    pub(crate) fn value<'a>(&'a self, settings: &'a PresetSettings, key: &str) -> &'a str {
        let typed = self.0.get(&format!("{SETTING}{key}")).map(String::as_str);
        typed.or(settings.values.get(key).map(String::as_str)).unwrap_or_default()
    }

    /// Whether a setting differs from `base`.
    pub(crate) fn differs(&self, settings: &PresetSettings, base: &BTreeMap<String, String>, key: &str) -> bool {
        !same(self.value(settings, key), base.get(key).map_or("", String::as_str))
    }

    /// The settings that differ from `base`, as `key=value`.
    pub(crate) fn changes(&self, settings: &PresetSettings, base: &BTreeMap<String, String>) -> Vec<String> {
        let all = settings.groups.iter().flat_map(|group| &group.settings);
        let changed = all.filter(|setting| self.differs(settings, base, &setting.key));
        changed.map(|setting| self.assignment(settings, setting)).collect()
    }

    fn assignment(&self, settings: &PresetSettings, setting: &DocumentedSetting) -> String {
        let typed = self.value(settings, &setting.key).trim();
        match setting.kind {
            // A file may be called 7.
            SettingKind::Text | SettingKind::Choice(_) => format!("{}={}", setting.key, Value::from(typed)),
            _ => format!("{}={typed}", setting.key),
        }
    }

    /// Who teaches.
    pub(crate) fn teacher(&self) -> Result<Option<TeacherMode>> {
        Ok(match self.text("mode") {
            "human" => Some(TeacherMode::Human),
            "simulated" => Some(TeacherMode::Simulated),
            "mixed" => {
                let share = self.text("share").trim().parse::<f64>().ok().filter(|share| (0.0..=100.0).contains(share));
                let share = share.ok_or_else(|| {
                    Error::change("share", "The share that goes to people must lie between 0 and 100 percent.")
                })?;
                Some(TeacherMode::Mixed { share: share / 100.0 })
            }
            _ => None,
        })
    }

    /// The seed.
    pub(crate) fn seed(&self) -> Result<u64> {
        self.text("seed").trim().parse().map_err(|_| {
            Error::change(
                "seed",
                "The seed must be a whole number, for example 1. Another seed makes another run of the same kind.",
            )
        })
    }

    /// The wish for a new run.
    pub(crate) fn wish(&self, settings: &PresetSettings) -> Result<NewRun> {
        Ok(NewRun {
            preset: settings.preset.clone(),
            seed: self.seed()?,
            teacher: self.teacher()?,
            set: self.changes(settings, &settings.values),
        })
    }

    /// The form that a file of settings fills.
    pub(crate) fn of_file(settings: &PresetSettings, file: &RunFile, seed: u64) -> RunForm {
        let mut teacher = settings.teacher;
        let mut changed = BTreeMap::new();
        for item in &file.set {
            let Some((key, value)) = item.split_once('=') else { continue };
            let parsed = serde_json::from_str::<Value>(value);
            if key == "teacher.mode" {
                teacher = parsed.ok().and_then(|mode| serde_json::from_value(mode).ok()).unwrap_or(teacher);
                continue;
            }
            let text =
                parsed.map_or_else(|_| value.to_owned(), |value| crate::config::run::documented::plain_value(&value));
            changed.insert(key.to_owned(), text);
        }
        RunForm::of(settings, file.seed.unwrap_or(seed), teacher, &changed)
    }
}

/// The sentences about a setting.
pub(crate) fn about<'a>(problems: &'a [SettingProblem], key: &str) -> Vec<&'a str> {
    problems.iter().filter(|problem| problem.keys.iter().any(|of| of == key)).map(|p| p.sentence.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::run::documented::SettingGroup;

    fn settings() -> PresetSettings {
        let setting = |key: &str, kind| DocumentedSetting {
            key: key.into(),
            about: "About it.".into(),
            unit: None,
            paper: None,
            kind,
        };
        let group = SettingGroup {
            key: "a".into(),
            about: String::new(),
            settings: vec![
                setting("a.rate", SettingKind::Number),
                setting("a.file", SettingKind::Text),
                setting("a.on", SettingKind::Flag),
            ],
        };
        let values = [("a.rate", "0.5"), ("a.file", "shipped"), ("a.on", "false")];
        PresetSettings {
            preset: "x/y".into(),
            title: "X".into(),
            about: String::new(),
            teacher: TeacherMode::Human,
            groups: vec![group],
            values: values.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        }
    }

    #[test]
    fn a_form_says_what_differs_from_the_preset() {
        let settings = settings();
        let form = RunForm::of(&settings, 4, TeacherMode::Mixed { share: 0.25 }, &BTreeMap::new());
        let wish = form.wish(&settings).unwrap();
        assert_eq!((wish.seed, wish.teacher, wish.set), (4, Some(TeacherMode::Mixed { share: 0.25 }), vec![]));
        let mut sent: Vec<(String, String)> = form.0.clone().into_iter().collect();
        for (name, text) in [("s.a.rate", " 0.50"), ("s.a.on", "false"), ("s.a.on", "true"), ("s.a.file", "7")] {
            sent.push((name.to_owned(), text.to_owned()));
        }
        let wish = RunForm::sent(sent).wish(&settings).unwrap();
        assert_eq!(wish.set, ["a.file=\"7\"", "a.on=true"]);
    }

    #[test]
    fn a_file_fills_the_form() {
        let settings = settings();
        let file = RunFile {
            preset: "x/y".into(),
            seed: None,
            set: vec!["a.file=\"b c\"".into(), "teacher.mode={\"mode\":\"simulated\"}".into()],
        };
        let form = RunForm::of_file(&settings, &file, 9);
        assert_eq!((form.text("seed"), form.text("mode"), form.value(&settings, "a.file")), ("9", "simulated", "b c"));
    }
}
