//! The plan of a rehearsal: the study of a file, or one of three media, with fresh runs of the same settings as its arms.

use crate::cli::run_settings;
use crate::command_line::CliError;
use crate::config::run::{RunConfig, TeacherMode};
use crate::config::server::DatabaseAddress;
use crate::ids::{RunId, StudyId};
use crate::registry::Registry;
use crate::store::{Run, Store, StudyArm};
use crate::study::{Entry, StudySettings};
use serde::Deserialize;
use std::path::Path;

/// An arm in a file: a run whose settings are taken over, or a preset.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PlannedArm {
    name: String,
    run: Option<RunId>,
    preset: Option<String>,
    seed: Option<u64>,
    set: Vec<String>,
}

/// A study that can be rehearsed: each arm has a name, a run's id and its configuration.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) id: StudyId,
    pub(super) settings: StudySettings,
    pub(super) arms: Vec<(StudyArm, RunConfig)>,
}

/// The names, algorithms and settings of the arms where no file says others.
const MEDIA: [(&str, &str); 3] =
    [("descriptions", "adel"), ("demonstrations", "dagger"), ("ratings", "reinforce-binary")];

fn usage(error: impl std::fmt::Display) -> CliError {
    CliError::Usage(error.to_string())
}

/// Settings of a study of three media.
fn three_media() -> StudySettings {
    let mut settings = StudySettings {
        title: "Three ways to teach".to_owned(),
        summary: "People teach an agent that edits words.".to_owned(),
        consent: "I take part of my own free will. What I write is kept without my name.".to_owned(),
        guidelines: "Take the time that you need. There are no wrong answers.".to_owned(),
        goal: 20,
        places: 0,
        pay_per_hour: 12.0,
        ..StudySettings::default()
    };
    (settings.attention.every, settings.attention.misses) = (10, 1);
    settings
}

/// Reads the file of a study: its settings, its id and its arms.
fn read(text: &str) -> Result<(StudySettings, Option<StudyId>, Vec<PlannedArm>), CliError> {
    let mut table: toml::Table = text.parse().map_err(usage)?;
    let arms: Vec<PlannedArm> = match table.remove("arms") {
        Some(arms) => arms.try_into().map_err(usage)?,
        None => Vec::new(),
    };
    let id = table.remove("id").and_then(|id| id.as_str().map(StudyId::from));
    let settings: StudySettings = toml::Value::Table(table).try_into().map_err(usage)?;
    Ok((settings, id, arms))
}

/// The configuration of a stored run.
fn stored(run: &Run) -> Result<RunConfig, CliError> {
    let mut config = run.config.clone();
    if let Some(members) = config.as_object_mut() {
        members.remove("differences");
    }
    serde_json::from_value(config).map_err(|error| usage(format!("the settings of {} cannot be read: {error}", run.id)))
}

/// Makes the plan. Runs that the file names are looked up in `database`.
pub(super) async fn plan(
    registry: Registry,
    file: Option<&Path>,
    database: &DatabaseAddress,
    (preset, seed): (&str, u64),
    goal: Option<u32>,
) -> Result<Plan, CliError> {
    let (mut settings, id, mut planned) = match file {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| usage(format!("{} cannot be read: {error}", path.display())))?;
            read(&text)?
        }
        None => (three_media(), None, Vec::new()),
    };
    if planned.is_empty() {
        planned = MEDIA
            .map(|(name, algorithm)| PlannedArm {
                name: name.to_owned(),
                set: vec![
                    format!("algorithm.name={algorithm}"),
                    "schedule.evaluate_every=5".to_owned(),
                    "schedule.episodes=0".to_owned(),
                ],
                ..PlannedArm::default()
            })
            .to_vec();
    }
    if let Some(goal) = goal {
        settings.goal = goal;
    }
    // Nobody sends invitations to people who are simulated, and none of their messages goes to anybody.
    if settings.entry == Entry::Invitation {
        settings.entry = Entry::Link;
    }
    settings.webhook.clear();
    settings.qualification.executor = None;
    if let Some(problem) = settings.problems().into_iter().next() {
        return Err(usage(problem));
    }
    let mut arms = Vec::new();
    for (place, arm) in planned.into_iter().enumerate() {
        let mut config = match &arm.run {
            Some(run) if database.exists() => {
                let row = Store::reading(database, async |store| store.run(run).await).await.map_err(usage)?;
                stored(&row.map_err(|_| {
                    usage(format!("there is no run {run} in the data folder; name it with --data-dir"))
                })?)?
            }
            Some(run) => {
                return Err(usage(format!(
                    "the file names the run {run}; name the data folder that has it with --data-dir"
                )));
            }
            None => {
                let preset = arm.preset.as_deref().unwrap_or(preset);
                run_settings::configure(registry, preset, arm.seed.unwrap_or(seed), &arm.set)?
            }
        };
        config.teacher.mode = TeacherMode::Human;
        config.check().map_err(usage)?;
        let name = if arm.name.is_empty() { format!("arm {}", place + 1) } else { arm.name };
        arms.push((StudyArm { run: format!("rehearsal-{}", place + 1).into(), name }, config));
    }
    let id = id.unwrap_or_else(|| "rehearsal".into());
    Ok(Plan { id, settings, arms })
}

impl Plan {
    /// Writes runs and study into an empty store, and opens the study.
    pub(super) async fn set_up(&self, store: &Store) -> anyhow::Result<()> {
        for (arm, config) in &self.arms {
            let run = Run {
                id: arm.run.clone(),
                family: config.family.clone(),
                preset: config.preset.clone(),
                config: serde_json::to_value(config)?,
                seed: config.seed,
                teacher: config.teacher.mode,
                active: true,
                created_at: time::OffsetDateTime::now_utc(),
            };
            store.create_run(&run).await?;
        }
        let arms: Vec<StudyArm> = self.arms.iter().map(|(arm, _)| arm.clone()).collect();
        let secret = crate::credentials::random_token()?;
        store.create_study(&self.id, &self.settings, &arms, &secret, "rehearsal").await?;
        store.set_study_state(&self.id, crate::study::StudyState::Open, "rehearsal").await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_settings_and_arms() {
        let text = "id = \"words\"\ntitle = \"Words\"\ngoal = 3\n[[arms]]\nname = \"a\"\nrun = \"regex-1\"\n\
                    [[arms]]\nname = \"b\"\npreset = \"regex/tiny\"\nset = [\"algorithm.batch=4\"]\n";
        let (settings, id, arms) = read(text).unwrap();
        assert_eq!((settings.title.as_str(), settings.goal, id), ("Words", 3, Some("words".into())));
        assert_eq!(
            (arms[0].run.as_deref(), arms[1].preset.as_deref(), arms[1].set.len()),
            (Some("regex-1"), Some("regex/tiny"), 1)
        );
        assert!(read("tittle = \"Words\"").is_err() && read("[[arms]]\nseeds = 3").is_err());
    }

    #[tokio::test]
    async fn without_a_file_three_media_are_planned() {
        let nowhere = Path::new("no such database");
        let plan = plan(Registry::builtin(), None, &nowhere.into(), ("regex/tiny", 7), Some(2)).await.unwrap();
        let names: Vec<&str> = plan.arms.iter().map(|(arm, _)| arm.name.as_str()).collect();
        assert_eq!((names, plan.settings.goal), (vec!["descriptions", "demonstrations", "ratings"], 2));
        assert!(plan.arms.iter().all(|(_, config)| config.teacher.mode == TeacherMode::Human && config.seed == 7));
    }
}
