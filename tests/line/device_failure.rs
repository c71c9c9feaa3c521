//! A device that fails in the midst of an update: the run says so and keeps its last checkpoint, and goes on from there on another
//! device with the weights of a run whose device never failed.

use crate::family::LineFamily;
use crate::world::{LineWorld, Place, Walk};
use crate::{launch, weights};
use candle_core::{Device, Error, Result, Tensor};
use iliad::config::run::{Preset, RunConfig};
use iliad::family::{Audience, Family, Guide, Loaded, NewAgent, RenderError};
use iliad::protocol::{Agent, Decoding, Lesson, Optimizer, Parameters, Prior, ReserveRows, Teacher, Utterance};
use iliad::registry::Registry;
use iliad::rng::Stream;
use iliad::run::RunState;
use iliad::trainer::{Launch, checkpoint};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Gradient steps until the device fails; below zero it has failed, and fails again at each.
static STEPS_LEFT: AtomicI64 = AtomicI64::new(i64::MAX);

/// LINE with agents whose device can fail.
struct Failing;

static FAILING: Registry = Registry::new(&[&Failing]);

struct FailingAgent(Box<dyn Agent<LineWorld>>);

impl Agent<LineWorld> for FailingAgent {
    fn act(&self, tasks: &[(&Place, &str)], how: Decoding, stream: &mut Stream) -> Result<Vec<Walk>> {
        self.0.act(tasks, how, stream)
    }

    fn loss(&self, lesson: &Lesson<LineWorld>) -> Result<Tensor> {
        self.0.loss(lesson)
    }

    fn begin_learning(&mut self, learning_rate: f64) -> Result<()> {
        self.0.begin_learning(learning_rate)
    }

    fn step(&mut self, lesson: &Lesson<LineWorld>) -> Result<Tensor> {
        // As a card that is lost while it computes: part of the work is done by then.
        let loss = self.0.step(lesson)?;
        match STEPS_LEFT.fetch_sub(1, Ordering::SeqCst) {
            left if left > 0 => Ok(loss),
            _ => Err(Error::Cuda("DriverError(CUDA_ERROR_LAUNCH_FAILED, \"unspecified launch failure\")".into()).bt()),
        }
    }

    fn optimizer(&self) -> Result<&dyn Optimizer> {
        self.0.optimizer()
    }

    fn optimizer_mut(&mut self) -> Result<&mut dyn Optimizer> {
        self.0.optimizer_mut()
    }

    fn learn_words(&mut self, utterances: &[Utterance]) -> Result<usize> {
        self.0.learn_words(utterances)
    }

    fn spare_words(&self) -> ReserveRows {
        self.0.spare_words()
    }

    fn prior(&mut self) -> Option<&mut dyn Prior<LineWorld>> {
        self.0.prior()
    }

    fn params(&self) -> &dyn Parameters {
        self.0.params()
    }

    fn blueprint(&self) -> Value {
        self.0.blueprint()
    }

    fn duplicate_on(&self, device: &Device) -> Result<Box<dyn Agent<LineWorld>>> {
        Ok(Box::new(FailingAgent(self.0.duplicate_on(device)?)))
    }

    fn restore_blueprint(&mut self, blueprint: &Value) -> std::result::Result<(), String> {
        self.0.restore_blueprint(blueprint)
    }
}

impl Family for Failing {
    type World = LineWorld;

    fn name(&self) -> &'static str {
        LineFamily.name()
    }

    fn title(&self) -> &'static str {
        LineFamily.title()
    }

    fn teacher_prompt(&self) -> &'static str {
        LineFamily.teacher_prompt()
    }

    fn placeholders(&self) -> &'static [&'static str] {
        LineFamily.placeholders()
    }

    fn guide(&self) -> Guide {
        LineFamily.guide()
    }

    fn render(&self, view: &Value, audience: Audience) -> std::result::Result<String, RenderError> {
        Family::render(&LineFamily, view, audience)
    }

    fn render_text(&self, view: &Value) -> std::result::Result<String, RenderError> {
        Family::render_text(&LineFamily, view)
    }

    fn render_try_fields(&self) -> std::result::Result<String, RenderError> {
        Family::render_try_fields(&LineFamily)
    }

    fn levels(&self) -> [f64; 3] {
        LineFamily.levels()
    }

    fn presets(&self) -> Vec<Preset> {
        Family::presets(&LineFamily)
    }

    fn check(&self, config: &RunConfig) -> anyhow::Result<()> {
        Family::check(&LineFamily, config)
    }

    fn world(&self, config: &RunConfig, told: &Loaded<'_>) -> anyhow::Result<Arc<LineWorld>> {
        Family::world(&LineFamily, config, told)
    }

    fn agent(
        &self,
        config: &RunConfig,
        world: &Arc<LineWorld>,
        device: &Device,
    ) -> anyhow::Result<NewAgent<LineWorld>> {
        let NewAgent { agent, pretrained } = Family::agent(&LineFamily, config, world, device)?;
        Ok(NewAgent { agent: Box::new(FailingAgent(agent)), pretrained })
    }

    fn agent_from(
        &self,
        config: &RunConfig,
        world: &Arc<LineWorld>,
        blueprint: &Value,
        device: &Device,
    ) -> anyhow::Result<Box<dyn Agent<LineWorld>>> {
        Ok(Box::new(FailingAgent(Family::agent_from(&LineFamily, config, world, blueprint, device)?)))
    }

    fn teacher(
        &self,
        config: &RunConfig,
        world: &Arc<LineWorld>,
        device: &Device,
    ) -> anyhow::Result<Option<Box<dyn Teacher<LineWorld>>>> {
        Family::teacher(&LineFamily, config, world, device)
    }

    fn start_from_form(
        &self,
        world: &LineWorld,
        form: &Value,
        chance: &mut Stream,
    ) -> std::result::Result<Place, String> {
        Family::start_from_form(&LineFamily, world, form, chance)
    }
}

const SETTINGS: [&str; 2] = ["schedule.episodes=960", "schedule.checkpoint_every=7"];

/// A training whose device fails after so many gradient steps, pretraining included: how it ended, and its last state.
fn train(folder: &Path, steps: i64) -> (anyhow::Result<bool>, RunState) {
    STEPS_LEFT.store(steps, Ordering::SeqCst);
    let launch: Launch = launch(folder, "line/simulated", &SETTINGS);
    let (handle, thread) = FAILING.family("line").unwrap().spawn(launch).unwrap();
    let ended = thread.join().unwrap().map(|report| report.complete);
    (ended, handle.status.borrow().state.clone())
}

#[test]
fn a_device_that_fails_within_an_update_leaves_a_whole_checkpoint_to_go_on_from_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, broken) = (dir.path().join("whole"), dir.path().join("broken"));
    assert!(train(&whole, i64::MAX).0.unwrap());
    let expected = weights(&whole);

    // Within the pretraining there is nothing yet to go on from.
    let told = format!("{:#}", train(&broken, 20).0.unwrap_err());
    assert!(told.contains("failed") && told.contains("The run has no checkpoint yet"), "{told}");
    let mut before = None;
    // Pretraining takes 100 steps, an update some more.
    for steps in [203, 151] {
        let (ended, state) = train(&broken, steps);
        let told = format!("{:#}", ended.unwrap_err());
        let (found, complaints) = checkpoint::newest(&broken).unwrap();
        let update = found.unwrap().0.counters.update;
        assert!(
            complaints.is_empty() && update > 0 && update % 7 == 0 && before < Some(update),
            "{update} {complaints:?}"
        );
        for words in [
            "the device cpu failed",
            "LAUNCH_FAILED",
            &format!("checkpoint of update {update} is whole"),
            "--device cpu",
        ] {
            assert!(told.contains(words), "{words}: {told}");
        }
        assert!(!told.contains("backtrace") && told.lines().count() == 1, "{told}");
        let RunState::Failed { message } = state else { panic!("{state:?}") };
        assert!(message.contains("the device cpu failed"), "{message}");
        before = Some(update);
    }
    assert!(train(&broken, i64::MAX).0.unwrap(), "another device takes it to its end");
    assert_eq!(weights(&broken), expected);
}
