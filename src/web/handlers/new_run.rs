//! The page on which a run is started with all its settings: from a preset, from a file, again from a run, or from a checkpoint.

use crate::config::run::documented::{DocumentedSetting, SettingKind, plain_value};
use crate::config::run::{LARGEST_SEED, RunConfig, RunFile};
use crate::corpora::UploadedCorpus;
use crate::ids::RunId;
use crate::launch::{Continuation, PresetInfo, PresetSettings, SettingProblem};
use crate::store::Run;
use crate::web::error::{Error, Result};
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::{Form, Path, Query};
use crate::web::handlers::{corpora, runs};
use crate::web::page::run_view::RunView;
use crate::web::page::{self, Page};
use crate::web::services::launching;
use crate::web::services::run_form::{RunForm, about};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The run that a form begins with, and its checkpoint where the new run continues it.
struct Source {
    run: RunId,
    title: String,
    checkpoint: Option<String>,
    config: RunConfig,
}

impl Source {
    /// The run's settings by key, as they are typed.
    fn values(&self) -> BTreeMap<String, String> {
        self.config.settings().into_iter().map(|(key, value)| (key, plain_value(&value))).collect()
    }
}

/// The setting that names a corpus, and the one that says that the tasks come from it.
const PATH: &str = "task.path";
const WORLD: &str = "task.world";

/// A setting as the form shows it.
struct Field<'a> {
    setting: &'a DocumentedSetting,
    value: &'a str,
    preset: &'a str,
    differs: bool,
    problems: Vec<&'a str>,
}

impl Field<'_> {
    fn is_flag(&self) -> bool {
        self.setting.kind == SettingKind::Flag
    }

    fn choices(&self) -> &[crate::config::run::documented::SettingChoice] {
        match &self.setting.kind {
            SettingKind::Choice(choices) => choices,
            _ => &[],
        }
    }

    /// How a number's field steps; empty for texts.
    fn step(&self) -> &'static str {
        match self.setting.kind {
            SettingKind::Whole => "1",
            SettingKind::Number => "any",
            _ => "",
        }
    }

    /// Its document without the marks of code.
    fn about(&self) -> String {
        self.setting.about.replace('`', "")
    }
}

/// A group of settings as the form shows it.
struct Group<'a> {
    key: &'a str,
    about: String,
    fields: Vec<Field<'a>>,
    /// Whether something in it is wrong or differs, so that it is open.
    open: bool,
}

#[derive(Template)]
#[template(path = "new_run.html")]
struct NewRunPage {
    page: Page,
    presets: Vec<PresetInfo>,
    settings: PresetSettings,
    form: RunForm,
    source: Option<Source>,
    /// The uploaded corpora that the preset's family reads.
    corpora: Vec<UploadedCorpus>,
    problems: Vec<SettingProblem>,
    /// A problem that is about no setting.
    problem: Option<String>,
}

impl NewRunPage {
    /// Whether a setting may be changed: those that decide what a checkpoint's weights mean may not.
    fn shown(&self, setting: &DocumentedSetting) -> bool {
        let continues = self.source.as_ref().is_some_and(|source| source.checkpoint.is_some());
        let key = setting.key.as_str();
        !continues || !(key.starts_with("task.") || key.starts_with("model.") || key == "algorithm.name")
    }

    fn groups(&self) -> Vec<Group<'_>> {
        let mut groups = Vec::new();
        for of in &self.settings.groups {
            let shown = of.settings.iter().filter(|setting| self.shown(setting));
            let fields: Vec<Field<'_>> = shown.map(|setting| self.field(setting)).collect();
            if fields.is_empty() {
                continue;
            }
            let open = fields.iter().any(|field| field.differs || !field.problems.is_empty());
            groups.push(Group { key: &of.key, about: of.about.replace('`', ""), fields, open });
        }
        groups
    }

    fn field<'a>(&'a self, setting: &'a DocumentedSetting) -> Field<'a> {
        Field {
            value: self.form.value(&self.settings, &setting.key),
            preset: self.settings.values.get(&setting.key).map_or("", String::as_str),
            differs: self.form.differs(&self.settings, &self.settings.values, &setting.key),
            problems: about(&self.problems, &setting.key),
            setting,
        }
    }

    /// Whether a setting names a corpus that could be uploaded.
    fn names_corpus(&self, setting: &DocumentedSetting) -> bool {
        setting.key == PATH && self.page.steering
    }

    /// The sentences that are about no setting of the form.
    fn general(&self) -> Vec<String> {
        let of_settings = self.problems.iter().filter(|problem| problem.keys.is_empty());
        self.problem.iter().cloned().chain(of_settings.map(|problem| problem.sentence.replace('`', ""))).collect()
    }

    /// The preset's own name, without the family's.
    fn preset_name(&self) -> &str {
        self.settings.preset.split_once('/').map_or(&self.settings.preset, |(_, name)| name)
    }

    fn about_preset(&self) -> String {
        self.settings.about.replace('`', "")
    }

    /// How a checkpoint is called.
    fn checkpoint(&self) -> Option<&str> {
        let name = self.source.as_ref()?.checkpoint.as_deref()?;
        Some(if name == "best.safetensors" { "★ best" } else { name.trim_end_matches(".safetensors") })
    }
}

/// The configuration of a stored run.
fn config_of(run: &Run) -> Result<RunConfig> {
    let mut json = run.config.clone();
    if let Some(members) = json.as_object_mut() {
        members.remove("differences");
    }
    serde_json::from_value(json).map_err(|error| {
        Error::conflict(
            "cannot-start",
            format!("This version of Iliad cannot read the run\u{2019}s settings ({error})."),
        )
    })
}

/// The run that a form begins with.
async fn source(state: &AppState, run: &str, checkpoint: &str) -> Result<Option<Source>> {
    if run.is_empty() {
        return Ok(None);
    }
    let view = RunView::load(state, &run.into()).await?;
    Ok(Some(Source {
        title: view.title(),
        config: config_of(&view.run)?,
        run: view.run.id,
        checkpoint: Some(checkpoint.to_owned()).filter(|name| !name.is_empty()),
    }))
}

/// A seed that no run has: the same seed would make the same run again.
async fn fresh_seed(state: &AppState) -> Result<u64> {
    let seeds = state.store.runs().await?.into_iter().map(|run| run.seed);
    Ok(seeds.max().map_or(1, |seed| seed.saturating_add(1)).min(LARGEST_SEED))
}

/// The problems that the launcher finds in the form.
fn problems(state: &AppState, settings: &PresetSettings, form: &RunForm) -> Vec<SettingProblem> {
    let Some(launcher) = &state.launcher else { return Vec::new() };
    form.wish(settings).map(|wish| launcher.problems(&wish)).unwrap_or_default()
}

/// Query of `GET /runs/new`.
#[derive(Deserialize)]
pub(crate) struct Beginning {
    /// The preset; the server's default without it.
    #[serde(default)]
    preset: String,
    /// A run whose settings it begins with.
    #[serde(default)]
    from: String,
    /// A checkpoint of that run, which the new run continues.
    #[serde(default)]
    checkpoint: String,
    /// The name of an uploaded corpus, from which the tasks come.
    #[serde(default)]
    corpus: String,
}

/// `GET /runs/new`.
pub(crate) async fn page(
    _: Steering,
    State(state): State<AppState>,
    page: Page,
    Query(beginning): Query<Beginning>,
) -> Result<Response> {
    let launcher = launching::launcher(&state)?;
    let presets = launcher.presets();
    let source = source(&state, &beginning.from, &beginning.checkpoint).await?;
    let wanted = match &source {
        Some(source) => format!("{}/{}", source.config.family, source.config.preset),
        None if beginning.preset.is_empty() => presets.first().map(|preset| preset.name.clone()).unwrap_or_default(),
        None => beginning.preset,
    };
    let settings = launcher.settings(&wanted).map_err(launching::refused)?;
    let mut form = match &source {
        Some(source) => {
            let seed = if source.checkpoint.is_some() { source.config.seed } else { fresh_seed(&state).await? };
            RunForm::of(&settings, seed, source.config.teacher.mode, &source.values())
        }
        None => RunForm::of(&settings, fresh_seed(&state).await?, settings.teacher, &BTreeMap::new()),
    };
    let corpora = corpora::of_preset(&state, &settings.preset);
    if let Some(corpus) = corpora.iter().find(|corpus| corpus.name == beginning.corpus) {
        form.type_in_setting(PATH, corpus.path.display().to_string());
        form.type_in_setting(WORLD, "corpus".to_owned());
    }
    form.type_in("from", beginning.from);
    form.type_in("checkpoint", beginning.checkpoint);
    // The page says at once what is missing for the preset, beside the settings that can name it.
    let problems = problems(&state, &settings, &form);
    Ok(page::html(&NewRunPage { page, presets, settings, form, source, corpora, problems, problem: None }))
}

/// `POST /runs/new`: starts the run. What cannot be used comes back with the form as it was.
pub(crate) async fn create(
    _: Steering,
    State(state): State<AppState>,
    page: Page,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response> {
    let form = RunForm::sent(pairs);
    let launcher = launching::launcher(&state)?;
    let settings = launcher.settings(form.text("preset")).map_err(launching::refused)?;
    let source = source(&state, form.text("from"), form.text("checkpoint")).await?;
    let started = match &source {
        Some(Source { run, checkpoint: Some(checkpoint), .. }) => {
            let base = source.as_ref().map(Source::values).unwrap_or_default();
            match (form.teacher(), form.seed()) {
                (Ok(teacher), Ok(seed)) => {
                    let mut set = form.changes(&settings, &base);
                    set.push(format!("seed={seed}"));
                    let continuation = Continuation { checkpoint: checkpoint.clone(), teacher, set };
                    launching::continue_from(&state, run, continuation).await
                }
                (Err(error), _) | (_, Err(error)) => Err(error),
            }
        }
        _ => match form.wish(&settings) {
            Ok(wish) => launching::start(&state, wish).await,
            Err(error) => Err(error),
        },
    };
    let problem = match runs::begun(&page, started) {
        Ok(reply) => return Ok(reply),
        Err(problem) => problem,
    };
    let (status, presets) = (problem.status(), launcher.presets());
    let problems = problems(&state, &settings, &form);
    let problem = Some(problem.detail.replace('`', ""));
    let corpora = corpora::of_preset(&state, &settings.preset);
    let again = NewRunPage { page, presets, settings, form, source, corpora, problems, problem };
    Ok((status, page::html(&again)).into_response())
}

/// Answer of `POST /runs/new/check`.
#[derive(Serialize)]
pub(crate) struct Checked {
    problems: Vec<SettingProblem>,
}

/// `POST /runs/new/check`: what is wrong with a form so far. Nothing is stored.
pub(crate) async fn check(
    _: Steering,
    State(state): State<AppState>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<axum::Json<Checked>> {
    let form = RunForm::sent(pairs);
    let launcher = launching::launcher(&state)?;
    let settings = launcher.settings(form.text("preset")).map_err(launching::refused)?;
    let problems = match form.wish(&settings) {
        Ok(wish) => launcher.problems(&wish),
        Err(Error::Change { code, message }) => vec![SettingProblem { keys: vec![code.to_owned()], sentence: message }],
        Err(error) => return Err(error),
    };
    Ok(axum::Json(Checked { problems }))
}

/// Body of the form that reads a file.
#[derive(Deserialize)]
pub(crate) struct Given {
    #[serde(default)]
    settings: String,
}

/// `POST /runs/new/file`: the form, filled with what a file says. Nothing is stored.
pub(crate) async fn read_file(
    _: Steering,
    State(state): State<AppState>,
    page: Page,
    Form(given): Form<Given>,
) -> Result<Response> {
    let launcher = launching::launcher(&state)?;
    let presets = launcher.presets();
    let seed = fresh_seed(&state).await?;
    let read = RunFile::read(&given.settings.replace("\r\n", "\n")).map_err(|error| error.to_string());
    let read = read.and_then(|file| {
        let settings = launcher.settings(&file.preset).map_err(|error| error.to_string())?;
        let unknown = file.set.iter().filter_map(|item| item.split_once('=')).map(|(key, _)| key);
        match unknown.filter(|key| !settings.values.contains_key(*key)).collect::<Vec<_>>().as_slice() {
            [] => Ok((settings, file)),
            keys => Err(format!("There is no setting {}.", keys.join(", "))),
        }
    });
    match read {
        Ok((settings, file)) => {
            let form = RunForm::of_file(&settings, &file, seed);
            let problems = problems(&state, &settings, &form);
            let corpora = corpora::of_preset(&state, &settings.preset);
            let filled = NewRunPage { page, presets, settings, form, source: None, corpora, problems, problem: None };
            Ok(page::html(&filled))
        }
        Err(sentence) => {
            let first = presets.first().map(|preset| preset.name.clone()).unwrap_or_default();
            let settings = launcher.settings(&first).map_err(launching::refused)?;
            let form = RunForm::of(&settings, seed, settings.teacher, &BTreeMap::new());
            let problem = Some(format!("The file could not be read: {}", sentence.replace('`', "")));
            let (corpora, problems) = (corpora::of_preset(&state, &settings.preset), Vec::new());
            let again = NewRunPage { page, presets, settings, form, source: None, corpora, problems, problem };
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page::html(&again)).into_response())
        }
    }
}

/// `GET /runs/{run}/settings.toml`: the settings of a run as a file.
pub(crate) async fn download(_: Steering, State(state): State<AppState>, Path(run): Path<RunId>) -> Result<Response> {
    let run = state.store.run(&run).await?;
    let text = config_of(&run)?.to_toml().map_err(|error| Error::conflict("cannot-start", error.to_string()))?;
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = run.id.chars().map(plain).collect();
    let headers = [
        (header::CONTENT_TYPE, "application/toml".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}.toml\"")),
    ];
    Ok((headers, text).into_response())
}
