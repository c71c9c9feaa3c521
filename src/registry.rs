//! The registered task families. A new family is added to [`trainers`] and nowhere else.

use crate::config::run::{ConfigError, Preset};
use crate::family::Family;
use crate::family::kit::FamilyTrainer;
use crate::suggest::did_you_mean;
use crate::task::nav::family::NavFamily;
use crate::task::regex::family::RegexFamily;
use std::sync::OnceLock;

/// All families with their training sides, in the order people see them.
pub fn trainers() -> &'static [&'static dyn FamilyTrainer] {
    &[&RegexFamily, &NavFamily]
}

/// All families as the pages see them.
pub fn families() -> &'static [&'static dyn Family] {
    static FAMILIES: OnceLock<Vec<&'static dyn Family>> = OnceLock::new();
    FAMILIES.get_or_init(|| trainers().iter().map(|t| t.family()).collect())
}

/// The training side of the family called `name`.
pub fn trainer(name: &str) -> Option<&'static dyn FamilyTrainer> {
    trainers().iter().copied().find(|t| t.family().name() == name)
}

/// A preset by name: `small`, or `regex/small` where two families have one of that name.
///
/// # Errors
/// When there is none; the sentence lists what there is.
pub fn preset(name: &str) -> Result<(&'static dyn FamilyTrainer, Preset), ConfigError> {
    let mut names = Vec::new();
    for trainer in trainers() {
        let family = trainer.family().name();
        for preset in trainer.presets() {
            if preset.name == name || name.strip_prefix(family).and_then(|r| r.strip_prefix('/')) == Some(preset.name) {
                return Ok((*trainer, preset));
            }
            names.push(format!("{family}/{}", preset.name));
        }
    }
    let meant = did_you_mean(name, names.iter().map(String::as_str));
    Err(ConfigError(format!("there is no preset `{name}`{meant}; there are {}", names.join(", "))))
}

#[cfg(test)]
mod tests {
    #[test]
    fn presets_are_found_by_short_and_long_name_and_are_sound() {
        assert_eq!(super::preset("regex/tiny").unwrap().1.name, super::preset("tiny").unwrap().1.name);
        assert!(super::preset("huge").err().unwrap().0.contains("regex/small"));
        let told = super::preset("nav/tinny").err().unwrap().0;
        assert!(told.contains("did you mean `nav/tiny`?"), "{told}");
        for trainer in super::trainers() {
            for preset in trainer.presets() {
                preset.config.check().unwrap();
                assert_eq!(preset.config.family, trainer.family().name());
                assert_eq!(preset.config.preset, preset.name);
            }
        }
    }
}
