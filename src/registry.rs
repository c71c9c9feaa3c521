//! The task families that a program knows. A new family is added to [`Registry::builtin`], or to a registry of one's own that is
//! passed to [`crate::cli::main_with`], and nowhere else.

mod erased;
mod outside;

pub use erased::{AgentFile, AnyFamily, SavedAgent, UnknownActing, UnknownGrouping};
pub use outside::{ELSEWHERE, OUTSIDE, outside};

pub use crate::task::nav::elsewhere::{HousesElsewhere, WalkElsewhere, said};

use crate::config::run::{ConfigError, LARGEST_SEED, Preset, RunConfig};
use crate::suggest::did_you_mean;
use crate::task::nav::family::NAV;
use crate::task::regex::family::RegexFamily;

/// The families, in the order people see them.
#[derive(Clone, Copy)]
pub struct Registry(&'static [&'static dyn AnyFamily]);

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|family| family.name())).finish()
    }
}

impl Registry {
    /// A registry of families. Their names must differ.
    pub const fn new(families: &'static [&'static dyn AnyFamily]) -> Self {
        Self(families)
    }

    /// The families that come with the program.
    pub const fn builtin() -> Self {
        static FAMILIES: [&dyn AnyFamily; 2] = [&RegexFamily, &NAV];
        Self::new(&FAMILIES)
    }

    /// All families.
    pub fn families(self) -> &'static [&'static dyn AnyFamily] {
        self.0
    }

    /// The family called `name`.
    pub fn family(self, name: &str) -> Option<&'static dyn AnyFamily> {
        self.0.iter().copied().find(|family| family.name() == name)
    }

    /// A preset by name: `small`, or `regex/small` where two families have one of that name.
    ///
    /// # Errors
    /// When there is none; the sentence lists what there is.
    pub fn preset(self, name: &str) -> Result<(&'static dyn AnyFamily, Preset), ConfigError> {
        let mut names = Vec::new();
        for family in self.0 {
            for preset in family.presets() {
                let long = name.strip_prefix(family.name()).and_then(|rest| rest.strip_prefix('/'));
                if preset.name == name || long == Some(preset.name) {
                    return Ok((*family, preset));
                }
                names.push(format!("{}/{}", family.name(), preset.name));
            }
        }
        let meant = did_you_mean(name, names.iter().map(String::as_str));
        Err(ConfigError(format!("there is no preset `{name}`{meant}; there are {}", names.join(", "))))
    }

    /// The configuration of a preset with changes; `seed` holds unless a change names another one.
    ///
    /// # Errors
    /// A plain sentence saying what to change.
    pub fn configure(self, preset: &str, seed: u64, set: &[String]) -> Result<RunConfig, ConfigError> {
        let (_, preset) = self.preset(preset)?;
        let mut config = preset.config.with_overrides(set)?;
        if !set.iter().any(|s| s.starts_with("seed=")) {
            config.seed = seed;
        }
        if config.seed > LARGEST_SEED {
            return Err(ConfigError(format!("the seed is a whole number from 0 to {LARGEST_SEED}")));
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::Registry;

    #[test]
    fn presets_are_found_by_short_and_long_name_and_are_sound() {
        let registry = Registry::builtin();
        assert_eq!(registry.preset("regex/tiny").unwrap().1.name, registry.preset("tiny").unwrap().1.name);
        assert!(registry.preset("huge").err().unwrap().0.contains("regex/small"));
        let told = registry.preset("nav/tinny").err().unwrap().0;
        assert!(told.contains("did you mean `nav/tiny`?"), "{told}");
        for family in registry.families() {
            for preset in family.presets() {
                preset.config.check().unwrap();
                assert_eq!(preset.config.family, family.name());
                assert_eq!(preset.config.preset, preset.name);
            }
        }
    }
}
