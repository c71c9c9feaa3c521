//! The family of runs whose agent lives in another program. It draws what the program posts: word pairs as REGEX does, walks as NAV does,
//! or plain text.
//! It trains nothing and is not listed among the families; [`outside`] finds it by the name that such runs have.

use super::{AgentFile, AnyFamily};
use crate::config::run::{Preset, RunConfig};
use crate::family::benchmark::{Benchmark, Profile, Timing};
use crate::family::commands::FamilyCommands;
use crate::family::dataset::{ExecutionParts, TaughtExample, TrainingForm};
use crate::family::pages::FamilyPages;
use crate::family::tables::Tables;
use crate::family::{
    Audience, Change, Demonstration, Fields, Guide, Progress, RenderError, ReportExample, TeacherReport,
    TeacherTraining, TryAnswer,
};
use crate::nn::device_agreement::Apart;
use crate::nn::reference_fixtures::{Differences, FixtureFile};
use crate::protocol::evaluation::TasksDone;
use crate::protocol::{Evaluation, GroupSuccess, Medium, Split};
use crate::run::RunHandle;
use crate::task::nav::family::NAV;
use crate::task::regex::family::RegexFamily;
use crate::teacher::people::AnswersAsPeople;
use crate::trainer::{FinalReport, Launch};
use candle_core::Device;
use serde_json::{Value, json};
use std::path::Path;
use std::thread::JoinHandle;

/// Name of the family of runs whose agent lives in another program.
pub const OUTSIDE: &str = "outside";

/// The sentence for whatever the agent of such a run would have to do here.
pub const ELSEWHERE: &str = "The agent of this run lives in another program.";

struct Outside;

/// The family called `name`, if it is that of outside runs.
pub fn outside(name: &str) -> Option<&'static dyn AnyFamily> {
    (name == OUTSIDE).then_some(&Outside as &dyn AnyFamily)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The text of a view that has no word pairs.
fn text(view: &Value) -> Result<&str, RenderError> {
    let missing = || RenderError { family: OUTSIDE, reason: "it has neither pairs nor a text".to_owned() };
    view["text"].as_str().ok_or_else(missing)
}

/// The family that draws a view; none where the view is a text.
fn drawn_by(view: &Value) -> Option<&'static dyn AnyFamily> {
    if view["pairs"].is_array() {
        Some(&RegexFamily)
    } else if view["path"].is_array() {
        Some(&NAV)
    } else {
        None
    }
}

fn elsewhere<T>() -> anyhow::Result<T> {
    anyhow::bail!(ELSEWHERE)
}

impl AnyFamily for Outside {
    fn name(&self) -> &'static str {
        OUTSIDE
    }
    fn title(&self) -> &'static str {
        "An agent elsewhere"
    }
    fn teacher_prompt(&self) -> &'static str {
        "What did the agent do? Write the request that would have led to this."
    }
    fn placeholders(&self) -> &'static [&'static str] {
        &["put the red cup into the sink", "replace every n with c", "walk to the kitchen and stop at the table"]
    }
    fn guide(&self) -> Guide {
        let view = json!({"text": "The agent went into the kitchen.\nIt took the red cup from the table.\nIt put the cup into the sink."});
        Guide {
            view,
            good: vec![
                ("put the red cup from the kitchen table into the sink".into(), "Says what, and where.".into()),
                ("go to the kitchen and put the cup in the sink".into(), "The same in other words.".into()),
            ],
            poor: vec![
                ("it did the dishes".into(), "Says more than what happened.".into()),
                ("it moved something".into(), "True of almost everything.".into()),
            ],
        }
    }
    fn render(&self, view: &Value, audience: Audience) -> Result<String, RenderError> {
        if let Some(family) = drawn_by(view) {
            return family.render(view, audience);
        }
        let lines = text(view)?.lines().map(escaped);
        Ok(match audience {
            Audience::Researcher => format!("<span>{}</span>", lines.collect::<Vec<_>>().join(" · ")),
            Audience::Teacher | Audience::Beside => {
                format!("<div>{}</div>", lines.map(|line| format!("<p>{line}</p>")).collect::<String>())
            }
        })
    }
    fn render_text(&self, view: &Value) -> Result<String, RenderError> {
        drawn_by(view).map_or_else(|| text(view).map(str::to_owned), |family| family.render_text(view))
    }
    fn try_answer(&self, _: &Value) -> Result<TryAnswer, RenderError> {
        Ok(TryAnswer::default())
    }
    fn render_spoken(&self, view: &Value) -> Result<String, RenderError> {
        drawn_by(view).map_or_else(|| text(view).map(str::to_owned), |family| family.render_spoken(view))
    }
    fn change(&self, view: &Value) -> Change {
        drawn_by(view).map_or(Change::Unknown, |family| family.change(view))
    }
    fn nothing_changed(&self) -> &'static str {
        "It did nothing"
    }
    fn media(&self) -> &'static [Medium] {
        &[Medium::Description]
    }
    fn demonstration_prompt(&self) -> &'static str {
        ""
    }
    fn render_demonstration(&self, _: &Value, _: &Value) -> Result<String, RenderError> {
        Err(RenderError { family: OUTSIDE, reason: "it takes no demonstrations".to_owned() })
    }
    fn demonstration_of(&self, _: &Fields) -> Value {
        Value::Null
    }
    fn check_demonstration(&self, _: &Value, _: &Value) -> Result<Demonstration, String> {
        Err("This run takes descriptions, not demonstrations.".to_owned())
    }
    fn demonstration_text(&self, _: &Value) -> String {
        String::new()
    }
    fn render_try_fields(&self) -> Result<String, RenderError> {
        Ok(String::new())
    }
    fn start_fields(&self, _: &Value) -> Value {
        Value::Null
    }
    fn parts(&self, view: &Value) -> ExecutionParts {
        drawn_by(view).map_or_else(ExecutionParts::default, |family| family.parts(view))
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
    /// Any of its executions may be a walk. The script loads what it draws with when it meets one.
    fn script(&self) -> Option<&'static str> {
        AnyFamily::script(&NAV)
    }
    fn modules(&self) -> &'static [&'static str] {
        &[]
    }
    fn report_example(&self, _: &Value, _: &Value) -> Option<ReportExample> {
        None
    }
    fn levels(&self) -> [f64; 3] {
        [50.0, 75.0, 90.0]
    }
    fn tables(&self) -> &Tables {
        Tables::none()
    }
    fn teacher_updates(&self, _: &Benchmark<'_>) -> anyhow::Result<Vec<Timing>> {
        elsewhere()
    }
    fn profile(&self, _: &Benchmark<'_>) -> anyhow::Result<Vec<Profile>> {
        elsewhere()
    }
    fn device_agreement(&self, _: &Device, _: usize, _: u64) -> anyhow::Result<Vec<Apart>> {
        elsewhere()
    }
    fn program_agreement(&self, _: &Device, _: usize, _: u64) -> anyhow::Result<Vec<Apart>> {
        elsewhere()
    }
    fn pages(&self) -> Option<FamilyPages> {
        None
    }
    fn commands(&self) -> FamilyCommands {
        FamilyCommands::default()
    }
    fn check_fixture(&self, _: &FixtureFile, _: &Device) -> Option<candle_core::Result<Differences>> {
        None
    }
    fn check_fixture_without_padding(&self, _: &FixtureFile, _: &Device) -> Option<candle_core::Result<Differences>> {
        None
    }
    fn presets(&self) -> Vec<Preset> {
        Vec::new()
    }
    fn check(&self, _: &RunConfig) -> anyhow::Result<()> {
        elsewhere()
    }
    fn at_hand(&self, _: &RunConfig) -> anyhow::Result<()> {
        elsewhere()
    }
    fn has_teacher(&self, _: &RunConfig) -> bool {
        false
    }
    fn spawn(&'static self, _: Launch) -> anyhow::Result<(RunHandle, JoinHandle<anyhow::Result<FinalReport>>)> {
        elsewhere()
    }
    fn evaluate(
        &self,
        _: &AgentFile<'_>,
        _: Split,
        _: usize,
        _: &Device,
        _: &TasksDone<'_>,
    ) -> anyhow::Result<Evaluation> {
        elsewhere()
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
        elsewhere()
    }
    fn people(&'static self, _: &RunConfig) -> anyhow::Result<Box<dyn AnswersAsPeople>> {
        elsewhere()
    }
    fn train_teacher(&self, _: &TeacherTraining<'_>) -> anyhow::Result<TeacherReport> {
        elsewhere()
    }
    fn pretrain(&self, _: &RunConfig, _: &Path, _: &Device, _: &Progress<'_>) -> anyhow::Result<()> {
        elsewhere()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{HousesElsewhere, WalkElsewhere};

    #[test]
    fn texts_are_escaped_and_pairs_are_drawn_as_word_edits() {
        let family = outside(OUTSIDE).unwrap();
        let view = json!({"text": "It said <b>.\nIt left."});
        let html = family.render(&view, Audience::Teacher).unwrap();
        assert_eq!(html, "<div><p>It said &lt;b&gt;.</p><p>It left.</p></div>");
        assert_eq!(family.render_text(&view).unwrap(), "It said <b>.\nIt left.");
        let pairs = json!({"pairs": [{"in": "castle", "out": "wastle"}]});
        assert_eq!(family.render_text(&pairs).unwrap().trim(), "castle becomes wastle");
        assert!(family.render(&pairs, Audience::Teacher).unwrap().contains("edit-pair"));
        assert!(family.render(&json!({}), Audience::Teacher).is_err());
        assert!(family.render(&family.guide().view, Audience::Teacher).is_ok());
        assert!(outside("regex").is_none());
        let house = "house-3";
        let walk = serde_json::from_value::<WalkElsewhere>(
            json!({"house": house, "heading": 0, "viewpoint": "0", "actions": [1]}),
        );
        let walk = walk.unwrap().checked(&mut HousesElsewhere::default()).unwrap();
        assert!(family.render(&walk.view, Audience::Teacher).unwrap().contains("data-walk"));
        assert!(family.render(&walk.view, Audience::Researcher).unwrap().contains("<svg"));
        assert!(family.render_spoken(&walk.view).unwrap().starts_with("It started "));
        assert_eq!(family.parts(&walk.view).outputs.as_array().map(Vec::len), Some(2));
        assert!(matches!(family.change(&walk.view), Change::Something(_)));
    }
}
