//! A task family and a run made up for tests: the web application must work with any of either.

#![allow(dead_code)] // Every test binary uses its own part.

use candle_core::Device;
use iliad::config::run::TeacherMode;
use iliad::config::run::{Preset, RunConfig};
use iliad::family::benchmark::{Benchmark, Profile, Timing};
use iliad::family::commands::FamilyCommands;
use iliad::family::dataset::{ExecutionParts, TaughtExample, TrainingForm};
use iliad::family::tables::Tables;
use iliad::family::{Audience, Change, Demonstration, Fields, Guide, RenderError, ReportExample};
use iliad::family::{Progress, TeacherReport, TeacherTraining, TryAnswer};
use iliad::nn::device_agreement::Apart;
use iliad::nn::reference_fixtures::{Differences, FixtureFile};
use iliad::protocol::evaluation::TasksDone;
use iliad::protocol::{Evaluation, GroupSuccess, Split};
use iliad::protocol::{Medium, Rate};
use iliad::registry::{AgentFile, AnyFamily};
use iliad::rng;
use iliad::run::{Attempt, CheckpointRow, Command, Comprehension, EpisodeRow, Event, OwnDescription, Point};
use iliad::run::{Reviewed, RunHandle, RunState, Source, Status, Tried};
use iliad::store::{AnswerKind, NewExecution, Run, Store, TrainerAnswer, UpdateRecord};
use iliad::trainer::{FinalReport, Launch};
use iliad::web::{AppState, Runs, WebSettings};
use rand::RngExt;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use tokio::runtime::Handle;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

/// Words before and after; a view is `{"pairs": [{"in": "before", "out": "after"}, …]}`, as REGEX has it.
pub struct Pairs {
    /// Whether it has a bug: it panics when a page asks for its title.
    pub broken: bool,
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Pairs {
    fn read(view: &Value) -> Result<Vec<(String, String)>, RenderError> {
        let word = |pair: &Value, key: &str| pair[key].as_str().map(str::to_owned);
        let pairs = view["pairs"].as_array().into_iter().flatten();
        let read: Option<Vec<_>> = pairs.map(|pair| Some((word(pair, "in")?, word(pair, "out")?))).collect();
        let missing = || RenderError { family: "pairs", reason: "a pair is missing".to_owned() };
        read.filter(|pairs| !pairs.is_empty()).ok_or_else(missing)
    }
}

impl AnyFamily for Pairs {
    fn name(&self) -> &'static str {
        "pairs"
    }
    fn title(&self) -> &'static str {
        assert!(!self.broken, "a bug in a family");
        "Word pairs"
    }
    fn teacher_prompt(&self) -> &'static str {
        "How do the words on the left become those on the right?"
    }
    fn placeholders(&self) -> &'static [&'static str] {
        &["put an e at the end of every word"]
    }
    fn guide(&self) -> Guide {
        Guide {
            view: pairs_view(&["garden", "stone", "river"].map(|word| (word.to_owned(), format!("{word}e")))),
            good: vec![
                ("add an e to the end".into(), "Says what and where.".into()),
                ("every word gets another e after its last letter".into(), "Longer, and just as clear.".into()),
                ("append e".into(), "Short is fine.".into()),
            ],
            poor: vec![
                ("garden becomes gardene".into(), "Only repeats one pair; the rule stays in the dark.".into()),
                ("it changed the words".into(), "True of almost everything.".into()),
            ],
        }
    }
    fn render(&self, view: &Value, audience: Audience) -> Result<String, RenderError> {
        let class = if audience == Audience::Teacher { "pairs large" } else { "pairs small" };
        let row = |(before, after): &(String, String)| {
            format!(
                "<li><code>{}</code> <span aria-label=\"becomes\">→</span> <code>{}</code></li>",
                escaped(before),
                escaped(after)
            )
        };
        Ok(format!("<ol class=\"{class}\">{}</ol>", Self::read(view)?.iter().map(row).collect::<String>()))
    }
    fn render_text(&self, view: &Value) -> Result<String, RenderError> {
        let line = |(before, after): &(String, String)| format!("{before} becomes {after}");
        Ok(Self::read(view)?.iter().map(line).collect::<Vec<_>>().join("; "))
    }

    fn render_spoken(&self, view: &Value) -> Result<String, RenderError> {
        AnyFamily::render_text(self, view)
    }
    fn try_answer(&self, view: &Value) -> Result<TryAnswer, RenderError> {
        let (sentence, steps) = (format!("It would do this: {}.", AnyFamily::render_text(self, view)?), Vec::new());
        Ok(TryAnswer { sentence, steps })
    }
    fn change(&self, view: &Value) -> Change {
        match Self::read(view) {
            Ok(pairs) if pairs.iter().all(|(before, after)| before == after) => Change::Nothing,
            Ok(_) => Change::Something("Some of the words changed.".to_owned()),
            Err(_) => Change::Unknown,
        }
    }
    fn commands(&self) -> FamilyCommands {
        FamilyCommands::default()
    }
    fn render_try_fields(&self) -> Result<String, RenderError> {
        let field = |(i, word): (usize, &&str)| {
            format!("<input type=\"text\" name=\"words\" value=\"{word}\" aria-label=\"Word {}\">", i + 1)
        };
        Ok(["garden", "stone", "river"].iter().enumerate().map(field).collect())
    }
    fn nothing_changed(&self) -> &'static str {
        "Nothing changed"
    }
    fn media(&self) -> &'static [Medium] {
        &Medium::ALL
    }
    fn demonstration_prompt(&self) -> &'static str {
        "Write what the first word should become."
    }
    // A demonstration is one wanted word, and words with a blank are refused.
    fn render_demonstration(&self, view: &Value, given: &Value) -> Result<String, RenderError> {
        let (first, _) = Self::read(view)?.remove(0);
        let word = escaped(given["word"].as_str().unwrap_or(&first));
        Ok(format!("<input name=\"show-word\" value=\"{word}\" aria-label=\"What {first} should become\">"))
    }
    fn demonstration_of(&self, fields: &Fields) -> Value {
        json!({ "word": fields.get("word") })
    }
    fn check_demonstration(&self, _: &Value, given: &Value) -> Result<Demonstration, String> {
        let word = given["word"].as_str().unwrap_or_default();
        if word.is_empty() || word.contains(' ') {
            return Err("Write one word.".into());
        }
        Ok(Demonstration { data: json!({ "word": word }), text: word.to_owned() })
    }
    fn demonstration_text(&self, demonstration: &Value) -> String {
        demonstration["word"].as_str().unwrap_or_default().to_owned()
    }
    fn start_fields(&self, view: &Value) -> Value {
        let words: Vec<String> = Self::read(view).unwrap_or_default().into_iter().map(|(before, _)| before).collect();
        json!({ "words": words })
    }
    fn parts(&self, view: &Value) -> ExecutionParts {
        ExecutionParts { start: self.start_fields(view), outputs: Value::Null }
    }
    fn outputs(&self, _: &Value) -> Value {
        Value::Null
    }
    fn training_form(&self) -> Option<TrainingForm> {
        None
    }
    fn training_examples(&self, _: TaughtExample<'_>) -> Vec<Value> {
        Vec::new()
    }
    fn report_example(&self, _: &Value, _: &Value) -> Option<ReportExample> {
        None
    }
    fn levels(&self) -> [f64; 3] {
        [60.0, 75.0, 85.0]
    }
    fn tables(&self) -> &Tables {
        Tables::none()
    }
    fn teacher_updates(&self, _: &Benchmark<'_>) -> anyhow::Result<Vec<Timing>> {
        Ok(Vec::new())
    }
    fn profile(&self, _: &Benchmark<'_>) -> anyhow::Result<Vec<Profile>> {
        Ok(Vec::new())
    }
    fn device_agreement(&self, _: &Device, _: usize, _: u64) -> anyhow::Result<Vec<Apart>> {
        Ok(Vec::new())
    }
    fn program_agreement(&self, _: &Device, _: usize, _: u64) -> anyhow::Result<Vec<Apart>> {
        Ok(Vec::new())
    }
    fn check_fixture(&self, _: &FixtureFile, _: &Device) -> Option<candle_core::Result<Differences>> {
        None
    }
    fn check_fixture_without_padding(&self, _: &FixtureFile, _: &Device) -> Option<candle_core::Result<Differences>> {
        None
    }
    fn script(&self) -> Option<&'static str> {
        None
    }
    fn modules(&self) -> &'static [&'static str] {
        &[]
    }
    fn pages(&self) -> Option<iliad::family::pages::FamilyPages> {
        None
    }
    // Pages are all that these tests need of it: runs of it are made up.
    fn presets(&self) -> Vec<Preset> {
        Vec::new()
    }
    fn check(&self, _: &RunConfig) -> anyhow::Result<()> {
        anyhow::bail!("no run of this family can be trained")
    }
    fn at_hand(&self, config: &RunConfig) -> anyhow::Result<()> {
        self.check(config)
    }
    fn has_teacher(&self, _: &RunConfig) -> bool {
        false
    }
    fn spawn(&'static self, launch: Launch) -> anyhow::Result<(RunHandle, JoinHandle<anyhow::Result<FinalReport>>)> {
        self.check(&launch.config).map(|()| unreachable!())
    }
    fn evaluate(
        &self,
        _: &AgentFile<'_>,
        _: Split,
        _: usize,
        _: &Device,
        _: &TasksDone<'_>,
    ) -> anyhow::Result<Evaluation> {
        anyhow::bail!("no run of this family can be evaluated")
    }
    fn evaluate_by(
        &self,
        _: &AgentFile<'_>,
        _: Split,
        _: usize,
        _: &Device,
        _: &str,
        _: &TasksDone<'_>,
    ) -> anyhow::Result<(Evaluation, Vec<GroupSuccess>)> {
        anyhow::bail!("no run of this family can be evaluated")
    }
    fn people(&'static self, config: &RunConfig) -> anyhow::Result<Box<dyn iliad::teacher::people::AnswersAsPeople>> {
        self.check(config).map(|()| unreachable!())
    }
    fn train_teacher(&self, request: &TeacherTraining<'_>) -> anyhow::Result<TeacherReport> {
        self.check(request.config).map(|()| unreachable!())
    }
    fn pretrain(&self, config: &RunConfig, _: &Path, _: &Device, _: &Progress<'_>) -> anyhow::Result<()> {
        self.check(config)
    }
}

/// The view of some pairs.
pub fn pairs_view(pairs: &[(String, String)]) -> Value {
    json!({ "pairs": pairs.iter().map(|(before, after)| json!({"in": before, "out": after})).collect::<Vec<_>>() })
}

/// The registry of the tests.
pub fn families() -> &'static [&'static dyn AnyFamily] {
    &[&Pairs { broken: false }]
}

const WORDS: [&str; 24] = [
    "garden", "stone", "river", "cloud", "path", "winter", "lantern", "copper", "meadow", "button", "harbour",
    "violin", "pepper", "marble", "saddle", "timber", "velvet", "anchor", "basket", "candle", "feather", "hammer",
    "island", "jacket",
];

/// An edit that the made-up agent can make: its expression, a request for it, and the function.
type Edit = (&'static str, &'static str, fn(&str) -> String);
const EDITS: [Edit; 5] = [
    ("$@e", "add an e at the end", |word| format!("{word}e")),
    ("^.@", "drop the first letter", |word| word[1..].to_owned()),
    ("[aeiou]@o", "turn every vowel into o", |word| word.replace(['a', 'e', 'i', 'u'], "o")),
    ("^@un", "put un in front", |word| format!("un{word}")),
    ("(.)$@\\1\\1", "double the last letter", |word| format!("{word}{}", &word[word.len() - 1..])),
];

/// Executions kept ready for people.
const POOL: u64 = 6;

/// A new execution of the made-up agent.
pub fn execution(seed: u64, episode: u64, update: u64) -> NewExecution {
    let mut stream = rng::stream(seed, "fake", episode);
    let (expression, request, edit) = EDITS[stream.random_range(0..EDITS.len())];
    let first = stream.random_range(0..WORDS.len());
    let words = (0..5).map(|i| WORDS[(first + 5 * i) % WORDS.len()]);
    let pairs: Vec<(String, String)> = words.map(|word| (word.to_owned(), edit(word))).collect();
    NewExecution {
        episode,
        update,
        request: request.to_owned(),
        trace: json!({ "expression": expression }),
        view: pairs_view(&pairs),
        summary: expression.to_owned(),
        success: stream.random_bool(0.4),
        wanted: 1,
        reference: None,
    }
}

/// A stored run.
pub fn run_row(id: &str, teacher: TeacherMode) -> Run {
    Run {
        id: id.into(),
        family: "pairs".to_owned(),
        preset: "tiny".to_owned(),
        config: json!({"adel": {"lambda": 0.5, "anneal": true}, "batch": 8, "differences": {"batch": 8}}),
        seed: 7,
        teacher,
        active: true,
        created_at: OffsetDateTime::now_utc(),
    }
}

/// 95% interval of a share, roughly.
fn rate(value: f64, n: u64) -> Rate {
    let half = 1.96 * (value * (1.0 - value) / n as f64).sqrt();
    Rate { value, n, low: (value - half).max(0.0), high: (value + half).min(1.0) }
}

struct Fake {
    store: Store,
    runtime: Handle,
    status: Status,
    tell: watch::Sender<Status>,
    events: broadcast::Sender<Arc<Event>>,
    started: Instant,
    next_episode: u64,
}

/// Starts a made-up run on a thread of its own. It ends when it is stopped or its handle's senders are gone.
pub async fn start(store: &Store, id: &str, teacher: TeacherMode) -> RunHandle {
    start_run(store, run_row(id, teacher)).await
}

/// The status of a made-up run that has just begun.
pub fn status(id: &str, teacher: TeacherMode) -> Status {
    Status {
        run: id.into(),
        state: RunState::Running,
        teacher,
        simulated_available: true,
        device: "cpu".to_owned(),
        update: 0,
        episodes: 0,
        descriptions_human: 0,
        descriptions_simulated: 0,
        lambda: 0.5,
        episodes_per_second: 0.0,
        validation: None,
        best_validation: None,
        seconds: 0.0,
        spare_words: None,
        waiting: 0,
        practice: 0,
    }
}

/// Starts a made-up run from its row. A run that is stored already (the test server was started again) goes on.
pub async fn start_run(store: &Store, row: Run) -> RunHandle {
    if store.run(&row.id).await.is_err() {
        store.create_run(&row).await.expect("the run is new");
    }
    let (id, teacher) = (row.id.as_str(), row.teacher);
    let status = status(id, teacher);
    let (commands, received) = channel();
    let (tell, watched) = watch::channel(status.clone());
    let (events, _) = broadcast::channel(256);
    let handle = RunHandle {
        id: id.into(),
        family: if row.family == "regex" { "regex" } else { "pairs" },
        commands,
        events: events.clone(),
        status: watched,
    };
    let fake = Fake {
        store: store.clone(),
        runtime: Handle::current(),
        status,
        tell,
        events,
        started: Instant::now(),
        next_episode: 1,
    };
    // The pool is there when this returns, so that a test's first page has something on it.
    let fake = tokio::task::spawn_blocking(move || {
        let mut fake = fake;
        fake.fill_pool();
        fake
    });
    let fake = fake.await.expect("the pool is filled");
    std::thread::spawn(move || fake.work(received));
    handle
}

impl Fake {
    fn work(mut self, commands: Receiver<Command>) {
        self.log("The run has begun.");
        loop {
            match commands.recv_timeout(Duration::from_millis(250)) {
                Ok(Command::SetTeacher(mode)) => {
                    self.status.teacher = mode;
                    self.log("Another teacher has taken over.");
                }
                Ok(Command::Pause) => self.status.state = RunState::Paused,
                Ok(Command::Resume) => self.status.state = RunState::Running,
                Ok(Command::Stop) => {
                    self.status.state = RunState::Stopped;
                    self.publish();
                    return;
                }
                Ok(Command::Checkpoint(reply)) => {
                    let row = self.checkpoint();
                    let _ = reply.send(Ok(row));
                }
                Ok(Command::Try { request, start, reply }) => {
                    let _ = reply.send(self.attempt(&request, &start));
                }
                Ok(Command::Review { described, reply, .. }) => {
                    let _ = reply.send(Ok(self.review(described)));
                }
                Ok(Command::CarryOut { described, reply }) => {
                    let understands = |one: &OwnDescription| !one.text.contains("wrong");
                    let view = execution(7, 0, 0).view;
                    let attempts = described.iter().map(|one| made_up_attempt(&view, understands(one))).collect();
                    let _ = reply.send(Ok(attempts));
                }
                Ok(Command::DescriptionArrived) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Command::Shutdown | Command::Conclude) | Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.status.state == RunState::Running {
                self.learn();
            }
            self.publish();
        }
    }

    fn publish(&mut self) {
        self.status.seconds = self.started.elapsed().as_secs_f64();
        self.tell.send_replace(self.status.clone());
        let _ = self.events.send(Arc::new(Event::Status(self.status.clone())));
    }

    fn log(&self, message: &str) {
        let _ = self.events.send(Arc::new(Event::Log { message: message.to_owned() }));
    }

    fn fill_pool(&mut self) {
        let run = self.status.run.clone();
        let pool = self.runtime.block_on(self.store.pool(&run)).unwrap_or_default();
        if self.status.teacher == TeacherMode::Simulated || pool.open >= POOL {
            return;
        }
        let new: Vec<NewExecution> =
            (0..POOL - pool.open).map(|i| execution(7, self.next_episode + i, self.status.update)).collect();
        self.next_episode += new.len() as u64;
        self.runtime.block_on(self.store.offer(&run, &new)).expect("executions are offered");
    }

    fn learn(&mut self) {
        let run = self.status.run.clone();
        self.fill_pool();
        let answers = self.runtime.block_on(self.store.unused_answers(&run, 50)).unwrap_or_default();
        let simulated = self.status.teacher != TeacherMode::Human;
        if answers.is_empty() && !simulated {
            return;
        }
        self.status.update += 1;
        let update = self.status.update;
        let record = UpdateRecord { update, data: json!({}), answers: answers.iter().map(|a| a.answer).collect() };
        self.runtime.block_on(self.store.record_update(&run, &record)).expect("the update is recorded");
        self.tell_comprehension(&answers);
        for answer in answers {
            self.status.episodes += 1;
            self.status.descriptions_human += u64::from(answer.kind == AnswerKind::Described);
            self.episode(EpisodeRow {
                episode: answer.episode,
                update: Some(update),
                request: answer.request,
                view: answer.view,
                summary: answer.summary,
                source: Some(Source::Human),
                description: if answer.kind == AnswerKind::Described { answer.text } else { String::new() },
                candidates: vec![],
                success: false,
                reference: None,
            });
        }
        if simulated {
            let new = execution(7, self.next_episode, update);
            self.next_episode += 1;
            self.status.episodes += 1;
            self.status.descriptions_simulated += 1;
            let candidates = vec![(new.request.clone(), true), ("change the words".to_owned(), false)];
            let row = EpisodeRow {
                episode: new.episode,
                update: Some(update),
                description: new.request.clone(),
                request: new.request,
                view: new.view,
                summary: new.summary,
                source: Some(Source::Simulated),
                candidates,
                success: new.success,
                reference: None,
            };
            self.runtime.block_on(self.store.record_simulated(&run, std::slice::from_ref(&row))).expect("recorded");
            self.episode(row);
        }
        self.status.episodes_per_second = 4.0;
        self.point();
    }

    /// The made-up agent understands every second description before it is told, and all of them afterwards.
    fn tell_comprehension(&self, answers: &[TrainerAnswer]) {
        let described = answers.iter().filter(|answer| answer.kind == AnswerKind::Described);
        let rows = |told: bool| -> Vec<Comprehension> {
            let row = |answer: &TrainerAnswer| Comprehension {
                answer: answer.answer,
                teacher: answer.teacher.unwrap_or_default(),
                update: self.status.update,
                episodes: self.status.episodes,
                descriptions: self.status.descriptions_human + self.status.descriptions_simulated,
                seconds: self.status.seconds,
                before: made_up_attempt(&answer.view, answer.answer.0 % 2 == 0),
                after: told.then(|| made_up_attempt(&answer.view, true)),
            };
            described.clone().map(row).collect()
        };
        for told in [false, true] {
            let rows = rows(told);
            if rows.is_empty() {
                return;
            }
            self.runtime.block_on(self.store.record_comprehension(&self.status.run, &rows)).expect("recorded");
            let _ = self.events.send(Arc::new(Event::Comprehension(rows)));
        }
    }

    fn review(&self, described: Vec<OwnDescription>) -> Vec<Reviewed> {
        let view = |at: u64| execution(7, at, 0).view;
        let done = |(at, one): (u64, OwnDescription)| Reviewed {
            text: one.text,
            elsewhere: at > 0,
            attempt: made_up_attempt(&view(at), at != 1),
            wanted: view(at),
            update: self.status.update,
        };
        (0..).zip(described).take(3).map(done).collect()
    }

    fn episode(&self, row: EpisodeRow) {
        let _ = self.events.send(Arc::new(Event::Episode(row)));
    }

    fn point(&mut self) {
        let Status { update, episodes, descriptions_human, descriptions_simulated, .. } = self.status;
        let mut noise = rng::stream(7, "fake-curve", update);
        let learned = 1.0 - (-(update as f64) / 60.0).exp();
        let mut near = |middle: f64, spread: f64| (middle + (noise.random::<f64>() - 0.5) * spread).clamp(0.0, 1.0);
        let validation = (update % 5 == 1).then(|| rate(near(0.82 * learned + 0.05, 0.06), 200));
        let point = Point {
            update,
            episodes,
            descriptions: descriptions_human + descriptions_simulated,
            seconds: self.started.elapsed().as_secs_f64(),
            loss: Some(2.4 * (1.0 - 0.8 * learned) + near(0.1, 0.2)),
            training_success: Some(near(0.7 * learned + 0.08, 0.14)),
            valid_share: Some(near(0.6 + 0.35 * learned, 0.08)),
            gold_share: Some(near(0.5 * learned, 0.1)),
            validation,
            lambda: Some(0.5),
            ..Point::default()
        };
        if let Some(read) = validation {
            self.status.validation = Some(read);
            if self.status.best_validation.is_none_or(|best| read.value > best.value) {
                self.status.best_validation = Some(read);
            }
        }
        self.runtime
            .block_on(self.store.record_points(&self.status.run, std::slice::from_ref(&point)))
            .expect("the point is recorded");
        let _ = self.events.send(Arc::new(Event::Point(point)));
    }

    fn checkpoint(&mut self) -> CheckpointRow {
        let row = CheckpointRow {
            name: format!("update-{:06}", self.status.update),
            update: self.status.update,
            episodes: self.status.episodes,
            descriptions: self.status.descriptions_human + self.status.descriptions_simulated,
            validation: self.status.validation,
            bytes: 2_345_678,
            written_at: OffsetDateTime::now_utc()
                .format(&time::format_description::well_known::Rfc3339)
                .unwrap_or_default(),
            best: true,
        };
        self.runtime.block_on(self.store.record_checkpoint(&self.status.run, &row)).expect("recorded");
        let _ = self.events.send(Arc::new(Event::Checkpoint(row.clone())));
        self.log("A checkpoint was written.");
        row
    }

    fn attempt(&self, request: &str, start: &Value) -> Result<Tried, String> {
        // One list, or REGEX's fields `words-0` to `words-4`.
        let listed: Vec<String> = serde_json::from_value(start["words"].clone()).unwrap_or_default();
        let single = (0..5).filter_map(|i| start[format!("words-{i}")].as_str().map(str::to_owned));
        let words: Vec<String> = listed.into_iter().chain(single).filter(|word| !word.is_empty()).collect();
        if words.is_empty() {
            return Err("Give the agent some words to work on.".to_owned());
        }
        let (summary, _, edit) = *EDITS.iter().find(|(_, known, _)| *known == request).unwrap_or(&EDITS[0]);
        let pairs: Vec<(String, String)> = words.iter().map(|word| (word.clone(), edit(word))).collect();
        let unknown = request.split(' ').filter(|word| *word == "frobnicate").map(str::to_owned).collect();
        let update = self.status.update;
        Ok(Tried { view: pairs_view(&pairs), summary: summary.to_owned(), valid: true, update, unknown })
    }
}

/// The execution that the person was shown, or the words as they were where it was not understood.
fn made_up_attempt(view: &Value, understood: bool) -> Attempt {
    let pairs = Pairs::read(view).unwrap_or_default().into_iter();
    let pairs: Vec<_> = pairs.map(|(word, output)| (word.clone(), if understood { output } else { word })).collect();
    Attempt { view: pairs_view(&pairs), summary: "made up".to_owned(), understood }
}

/// Stores an ended run with a curve, to be compared with.
pub async fn ended_run(store: &Store, mut row: Run) {
    row.active = false;
    if store.run(&row.id).await.is_ok() {
        return;
    }
    store.create_run(&row).await.expect("the run is new");
    let point = |update: u64| Point {
        update,
        episodes: update * 2,
        descriptions: update,
        seconds: update as f64,
        training_success: Some(update as f64 / 120.0),
        validation: update.is_multiple_of(5).then(|| rate(update as f64 / 100.0, 200)),
        ..Point::default()
    };
    store.record_points(&row.id, &(1..=60).map(point).collect::<Vec<_>>()).await.expect("points are stored");
}

/// The application around a store, with no run yet.
pub fn app_state(store: Store, settings: WebSettings) -> AppState {
    AppState {
        store,
        families: families(),
        runs: Runs::default(),
        works: Default::default(),
        uploads: Default::default(),
        launcher: None,
        settings: Arc::new(settings),
        shutdown: CancellationToken::new(),
    }
}
