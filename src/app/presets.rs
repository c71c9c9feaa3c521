//! Presets as they are offered, and the configurations that requests for new runs ask for.

use crate::config::run::{ConfigError, Feedback, RunConfig, TeacherMode};
use crate::launch::{LaunchError, NewRun, PresetInfo};
use crate::registry::{AnyFamily, Registry};

/// Presets in the order in which they are offered.
pub fn presets(registry: Registry) -> Vec<PresetInfo> {
    let mut all = Vec::new();
    for family in registry.families() {
        all.extend(family.presets().into_iter().map(|preset| PresetInfo {
            name: format!("{}/{}", family.name(), preset.name),
            title: family.title().to_owned(),
            about: preset.about.to_owned(),
            teacher: preset.config.teacher.mode,
            missing: missing(*family, &preset.config),
        }));
    }
    all
}

/// The configuration that a request for a new run asks for.
pub(super) fn configuration(registry: Registry, request: &NewRun) -> Result<RunConfig, LaunchError> {
    let unfit = |error: ConfigError| LaunchError::Wish(sentence(error));
    let mut config = registry.configure(&request.preset, request.seed, &request.set).map_err(unfit)?;
    if let Some(mode) = request.teacher {
        config.teacher.mode = mode;
    }
    config.check().map_err(unfit)?;
    match missing(family_of(registry, &config)?, &config) {
        Some(sentence) => Err(LaunchError::Wish(sentence)),
        None => Ok(config),
    }
}

/// The family of a configuration.
pub(super) fn family_of(registry: Registry, config: &RunConfig) -> Result<&'static dyn AnyFamily, LaunchError> {
    let none = || LaunchError::State(format!("This version of Iliad does not know the task family {}.", config.family));
    registry.family(&config.family).ok_or_else(none)
}

/// Says why a run of this configuration cannot begin on this machine, in sentences that say what to do.
fn missing(family: &dyn AnyFamily, config: &RunConfig) -> Option<String> {
    let mut sentences: Vec<String> =
        family.check(config).err().map(|error| sentence(format!("{error:#}"))).into_iter().collect();
    if let Some(medium) = config.algorithm.name.medium()
        && config.teacher.mode != TeacherMode::Simulated
        && !family.media().contains(&medium)
    {
        sentences.push(format!("{} cannot be taught by {} of people.", family.title(), medium.words()));
    }
    let described = config.algorithm.name.feedback() == Feedback::Descriptions;
    if described && config.teacher.mode != TeacherMode::Human && !family.has_teacher(config) {
        sentences.push(format!(
            "It has no simulated teacher: train one with `iliad teacher train --preset {}/{} -o teacher.safetensors` and \
             set teacher.models=teacher.safetensors, or let people teach.",
            config.family, config.preset
        ));
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// An error as a sentence with a capital letter and a full stop. The name of a setting stays as it is typed.
pub(super) fn sentence(error: impl std::fmt::Display) -> String {
    let text = error.to_string();
    if text.split_whitespace().next().is_some_and(|word| word.contains(['.', '_', '`'])) {
        return format!("{}.", text.trim_end_matches('.'));
    }
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

/// The error of a launch that failed for no fault of the person who asked for it.
pub(super) fn failed(error: anyhow::Error) -> LaunchError {
    LaunchError::Failed(format!("{error:#}"))
}

/// The error that says what a person has to change before a run can begin.
pub(super) fn refused(error: impl Into<anyhow::Error>) -> LaunchError {
    LaunchError::Wish(sentence(format!("{:#}", error.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_runs_become_configurations() {
        let all = presets(Registry::builtin());
        assert!(all.iter().any(|preset| preset.name == "regex/tiny" && !preset.about.is_empty()));
        let teacher = Some(TeacherMode::Mixed { share: 0.25 });
        let config =
            configuration(Registry::builtin(), &NewRun { preset: "regex/tiny".into(), seed: 9, teacher, set: vec![] })
                .unwrap();
        assert_eq!((config.seed, config.teacher.mode), (9, TeacherMode::Mixed { share: 0.25 }));
        let plain =
            configuration(Registry::builtin(), &NewRun { preset: "tiny".into(), seed: 1, teacher: None, set: vec![] })
                .unwrap();
        let preset = all.iter().find(|preset| preset.name == "regex/tiny").unwrap();
        assert_eq!(plain.teacher.mode, preset.teacher);
    }

    #[test]
    fn a_request_that_cannot_be_met_is_answered_by_a_sentence() {
        let error =
            configuration(Registry::builtin(), &NewRun { preset: "huge".into(), seed: 1, teacher: None, set: vec![] })
                .unwrap_err();
        let LaunchError::Wish(text) = error else { panic!("{error:?}") };
        assert!(text.starts_with("There is no preset `huge`") && text.ends_with('.'), "{text}");
    }
}
