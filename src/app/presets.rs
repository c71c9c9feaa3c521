//! Presets as they are offered, and the configurations that requests for new runs ask for.

use crate::config::run::documented::{self, plain_value};
use crate::config::run::{ConfigError, Feedback, RunConfig, TeacherMode};
use crate::launch::{LaunchError, NewRun, PresetInfo, PresetSettings, SettingProblem};
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

/// The settings of a preset, with their documents.
pub(super) fn settings(registry: Registry, preset: &str) -> Result<PresetSettings, LaunchError> {
    let (family, found) = registry.preset(preset).map_err(refused)?;
    let mut groups = documented::groups::<RunConfig>("");
    // The family's own settings stand first: the task, then the model.
    groups.splice(1..1, family.setting_groups());
    for group in &mut groups {
        group.settings.retain(|setting| !APART.contains(&setting.key.as_str()));
    }
    groups.retain(|group| !group.settings.is_empty());
    let values = found.config.settings().into_iter().map(|(key, value)| (key, plain_value(&value))).collect();
    Ok(PresetSettings {
        preset: format!("{}/{}", family.name(), found.name),
        title: family.title().to_owned(),
        about: found.about.to_owned(),
        teacher: found.config.teacher.mode,
        groups,
        values,
    })
}

/// Settings that a form asks for in a way of its own.
const APART: [&str; 4] = ["family", "preset", "seed", "teacher.mode"];

/// Every reason why a run cannot begin as somebody wishes.
pub(super) fn problems(registry: Registry, wish: &NewRun) -> Vec<SettingProblem> {
    let preset = match registry.preset(&wish.preset) {
        Ok((_, preset)) => preset,
        Err(error) => return vec![SettingProblem { keys: Vec::new(), sentence: sentence(error) }],
    };
    let keys: Vec<String> = preset.config.settings().into_iter().map(|(key, _)| key).collect();
    let mentioned = |sentence: &str| keys.iter().filter(|key| mentions(sentence, key)).cloned().collect::<Vec<_>>();
    let told = match configuration(registry, wish) {
        Ok(_) => return Vec::new(),
        Err(error) => error.to_string(),
    };
    // Each alone, so that every field that is wrong is marked and not the first one only.
    let mut problems = Vec::new();
    for item in &wish.set {
        if let Err(error) = preset.config.with_overrides(std::slice::from_ref(item)) {
            let key = item.split_once('=').map_or(item.as_str(), |(key, _)| key).trim().to_owned();
            problems.push(SettingProblem { keys: vec![key], sentence: sentence(error) });
        }
    }
    if problems.is_empty() {
        problems.push(SettingProblem { keys: mentioned(&told), sentence: told });
    }
    problems
}

/// Whether a sentence names a setting, and no longer one that begins with its name.
fn mentions(sentence: &str, key: &str) -> bool {
    sentence.match_indices(key).any(|(at, _)| {
        let of_key = |c: char| c.is_alphanumeric() || c == '_';
        let before = sentence[..at].chars().next_back();
        let mut after = sentence[at + key.len()..].chars();
        let (next, second) = (after.next(), after.next());
        let ends = !next.is_some_and(of_key) && !(next == Some('.') && second.is_some_and(of_key));
        ends && !before.is_some_and(|c| of_key(c) || c == '.')
    })
}

/// The family of a configuration.
pub(super) fn family_of(registry: Registry, config: &RunConfig) -> Result<&'static dyn AnyFamily, LaunchError> {
    let none = || LaunchError::State(format!("This version of Iliad does not know the task family {}.", config.family));
    registry.family(&config.family).ok_or_else(none)
}

/// Says why a run of this configuration cannot begin on this machine, in sentences that say what to do.
pub(super) fn missing(family: &dyn AnyFamily, config: &RunConfig) -> Option<String> {
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
    fn every_setting_is_in_the_form_once() {
        for info in presets(Registry::builtin()) {
            let form = settings(Registry::builtin(), &info.name).unwrap();
            let mut shown: Vec<&str> =
                form.groups.iter().flat_map(|group| &group.settings).map(|s| s.key.as_str()).collect();
            shown.sort_unstable();
            let wanted: Vec<&str> = form.values.keys().map(String::as_str).filter(|key| !APART.contains(key)).collect();
            assert_eq!(shown, wanted, "{}", info.name);
        }
    }

    #[test]
    fn every_wrong_field_is_named_and_so_is_what_is_missing() {
        let wish = |preset: &str, set: &[&str]| NewRun {
            preset: preset.into(),
            seed: 1,
            teacher: None,
            set: set.iter().map(|item| (*item).to_owned()).collect(),
        };
        let found = |wish: &NewRun| problems(Registry::builtin(), wish);
        assert!(found(&wish("regex/tiny", &["algorithm.batch=8"])).is_empty());
        let two = found(&wish("regex/tiny", &["algorithm.batch=0", "pool.size=x", "schedule.keep=2"]));
        assert_eq!(two.iter().map(|p| p.keys[0].as_str()).collect::<Vec<_>>(), ["algorithm.batch", "pool.size"]);
        let folder = found(&wish("nav/paper", &["task.path=nowhere"]));
        assert!(folder[0].keys.contains(&"task.path".to_owned()), "{folder:?}");
        assert!(mentions("algorithm.batch and x", "algorithm.batch") && mentions("see task.path.", "task.path"));
        assert!(!mentions("algorithm.batch_size", "algorithm.batch") && !mentions("a.b.c is", "a.b"));
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
