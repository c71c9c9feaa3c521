//! The word-editing task as people meet it: words, examples and how executions look.

use super::diff::Cell;
use super::marks::{self, Mark};
use super::settings::{ModelSettings, TaskSettings};
use super::tables::TABLES;
use super::world::{self, RegexWorld};
use super::{Edit, PAIRS, Words, setup};
use super::{benchmark, demonstration, device_agreement, try_answer};
use crate::config::run::documented::{self, SettingGroup};
use crate::config::run::{Preset, RunConfig};
use crate::family::benchmark::{Benchmark, Profile, Timing};
use crate::family::commands::FamilyCommands;
use crate::family::corpus::CorpusFormat;
use crate::family::dataset::{ExecutionParts, TaughtExample, TrainingForm};
use crate::family::imported::ModelImport;
use crate::family::tables::Tables;
use crate::family::{
    Audience, Change, Demonstration, Family, Fields, Guide, Loaded, NewAgent, Progress, RenderError, ReportExample,
    TeacherReport, TeacherTraining, TryAnswer,
};
use crate::nn::device_agreement::Apart;
use crate::nn::reference_fixtures::{Differences, FixtureFile, Names};
use crate::protocol::{Agent, Medium, Teacher};
use crate::rng::Stream;
use askama::Template;
use candle_core::Device;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// REGEX's entry in the registry of task families.
#[derive(Clone, Copy, Debug, Default)]
pub struct RegexFamily;

/// A view as [`super::world::RegexWorld`] makes it.
#[derive(Deserialize)]
struct View {
    pairs: Vec<Pair>,
}

#[derive(Deserialize)]
struct Pair {
    #[serde(rename = "in")]
    before: String,
    #[serde(rename = "out")]
    after: String,
    /// Views of earlier versions have none.
    marks: Option<Vec<Mark>>,
}

impl Pair {
    fn cells(&self) -> Vec<Cell> {
        marks::shown(&self.before, &self.after, self.marks.as_deref())
    }

    fn changed(&self) -> bool {
        self.before != self.after
    }

    /// The pair in words.
    fn spoken(&self) -> String {
        if !self.changed() {
            format!("{} stays as it is", self.before)
        } else if self.after.is_empty() {
            format!("{} becomes nothing: all letters are removed", self.before)
        } else {
            format!("{} becomes {}", self.before, self.after)
        }
    }
}

#[derive(Template)]
#[template(path = "regex/execution.html")]
struct ExecutionPage<'a> {
    pairs: &'a [Pair],
}

#[derive(Template)]
#[template(path = "regex/execution_small.html")]
struct ExecutionRow<'a> {
    pairs: &'a [Pair],
}

/// Fields for what each word should become: number, word, and what was given before.
#[derive(Template)]
#[template(path = "regex/demonstration.html")]
struct DemonstrationFields<'a> {
    rows: Vec<(usize, &'a str, String)>,
    expression: &'a str,
}

#[derive(Template)]
#[template(path = "regex/try.html")]
struct TryFields {
    fields: Vec<TryField>,
}

struct TryField {
    name: String,
    label: String,
    word: &'static str,
    first: bool,
}

/// Words that the try-the-agent box begins with.
const TRY_WORDS: [&str; PAIRS] = ["embolden", "banana", "orange", "strength", "queue"];

/// Hints of the empty box, each of another kind of edit.
const PLACEHOLDERS: [&str; 8] = [
    "replace every n with c",
    "remove the last two letters",
    "put an s at the end of the word",
    "if the word starts with a vowel, add h in front of it",
    "replace all vowels with o",
    "delete every letter t",
    "if the word ends in a consonant, add a y after it",
    "insert an x after every e",
];

fn failed(reason: impl ToString) -> RenderError {
    RenderError { family: "regex", reason: reason.to_string() }
}

fn read(view: &Value) -> Result<Vec<Pair>, RenderError> {
    let view = View::deserialize(view).map_err(failed)?;
    if view.pairs.is_empty() { Err(failed("the view has no pairs")) } else { Ok(view.pairs) }
}

impl Family for RegexFamily {
    type World = RegexWorld;

    fn name(&self) -> &'static str {
        "regex"
    }

    fn title(&self) -> &'static str {
        "Word editing"
    }

    fn teacher_prompt(&self) -> &'static str {
        "What did the agent do to these words? Write it as an instruction that anyone could follow with other words."
    }

    fn setting_groups(&self) -> Vec<SettingGroup> {
        [documented::groups::<TaskSettings>("task"), documented::groups::<ModelSettings>("model")].concat()
    }

    fn placeholders(&self) -> &'static [&'static str] {
        &PLACEHOLDERS
    }

    fn guide(&self) -> Guide {
        let start = Words { words: ["castle", "orange", "pencil", "apple", "garden"].map(str::to_owned).to_vec() };
        let edit = Edit::of("(^)(C)()@w", &start);
        let with_reasons = |list: &[(&str, &str)]| {
            list.iter().map(|(text, reason)| ((*text).to_owned(), (*reason).to_owned())).collect()
        };
        Guide {
            view: world::view(&edit.expression, &start.words, edit.outputs.as_deref()),
            good: with_reasons(&[
                (
                    "if the word starts with a consonant, replace it with w",
                    "It says when something happens and what happens. It explains why orange and apple stay as they are.",
                ),
                ("first letter becomes w unless it is a vowel", "Other words, the same rule. Short is fine."),
                (
                    "change a consonant at the beginning to 'w'",
                    "Where, which letters, and what they turn into. Letters may be in quotes, but need not be.",
                ),
            ]),
            poor: with_reasons(&[
                ("castle becomes wastle", "One pair is not a rule: nobody could tell what to do with another word."),
                (
                    "the beginning of some words was changed",
                    "True, but it does not say in which words, or what the beginning was changed to.",
                ),
            ]),
        }
    }

    fn render(&self, view: &Value, audience: Audience) -> Result<String, RenderError> {
        let pairs = read(view)?;
        match audience {
            Audience::Teacher | Audience::Beside => ExecutionPage { pairs: &pairs }.render(),
            Audience::Researcher => ExecutionRow { pairs: &pairs }.render(),
        }
        .map_err(failed)
    }

    fn render_text(&self, view: &Value) -> Result<String, RenderError> {
        Ok(read(view)?.iter().map(Pair::spoken).collect::<Vec<_>>().join("\n"))
    }

    fn try_answer(&self, view: &Value) -> Result<TryAnswer, RenderError> {
        let pairs = read(view)?;
        Ok(try_answer::answer(pairs.iter().map(|pair| (pair.before.as_str(), pair.after.as_str()))))
    }

    fn change(&self, view: &Value) -> Change {
        let Ok(pairs) = read(view) else { return Change::Unknown };
        match (pairs.iter().filter(|pair| pair.changed()).count(), pairs.len()) {
            (0, _) => Change::Nothing,
            (1, 1) => Change::Something("The word changed.".to_owned()),
            (1, all) => Change::Something(format!("One of the {all} words changed.")),
            (changed, all) if changed == all => Change::Something(format!("All {all} words changed.")),
            (changed, all) => Change::Something(format!("{changed} of the {all} words changed.")),
        }
    }

    fn media(&self) -> &'static [Medium] {
        &Medium::ALL
    }

    fn demonstration_prompt(&self) -> &'static str {
        "Write what each of these words should become."
    }

    fn render_demonstration(&self, view: &Value, given: &Value) -> Result<String, RenderError> {
        let pairs = read(view)?;
        let words: Vec<&str> = pairs.iter().map(|pair| pair.before.as_str()).collect();
        let outputs = demonstration::outputs_of(given, &words);
        let rows = words.iter().zip(outputs).enumerate().map(|(i, (word, output))| (i, *word, output)).collect();
        let expression = match given["typed"].as_str() {
            Some("outputs") => "",
            _ => given["expression"].as_str().unwrap_or_default(),
        };
        DemonstrationFields { rows, expression }.render().map_err(failed)
    }

    fn demonstration_of(&self, fields: &Fields) -> Value {
        demonstration::of_fields(fields)
    }

    fn check_demonstration(&self, view: &Value, given: &Value) -> Result<Demonstration, String> {
        let pairs = read(view).map_err(|_| "These words cannot be shown any more.".to_owned())?;
        demonstration::check(pairs.into_iter().map(|pair| pair.before).collect(), given)
    }

    /// The outputs, or the expression where no rule is found that makes them.
    fn demonstration_from(&self, _world: &RegexWorld, start: &Words, execution: &Edit) -> Value {
        match &execution.outputs {
            Some(outputs) if demonstration::search(&start.words, outputs).is_some() => json!({ "outputs": outputs }),
            Some(_) => json!({ "expression": execution.expression }),
            None => Value::Null,
        }
    }

    fn demonstration_text(&self, demonstration: &Value) -> String {
        demonstration::text(demonstration)
    }

    fn demonstrated(&self, _world: &RegexWorld, start: &Words, demonstration: &Value) -> Result<Edit, String> {
        demonstration::execution(start, demonstration)
    }

    fn render_try_fields(&self) -> Result<String, RenderError> {
        let fields = TRY_WORDS.iter().enumerate().map(|(at, word)| TryField {
            name: format!("words-{at}"),
            label: if at == 0 { "Word 1, which the agent sees".into() } else { format!("Word {}", at + 1) },
            word,
            first: at == 0,
        });
        TryFields { fields: fields.collect() }.render().map_err(failed)
    }

    fn report_example(&self, start: &Value, execution: &Value) -> Option<ReportExample> {
        let texts = |list: &Value| -> Option<Vec<String>> {
            list.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let words = texts(&start["words"]).unwrap_or_default();
        let outputs = texts(&execution["outputs"]);
        let expression = execution["expression"].as_str().unwrap_or_default().to_owned();
        Some(ReportExample { view: world::view(&expression, &words, outputs.as_deref()), execution: expression })
    }

    fn commands(&self) -> FamilyCommands {
        super::commands::commands()
    }

    fn acting_settings(&self) -> &'static [(&'static str, &'static str)] {
        &[("model.votes", "votes"), ("model.network_weight", "network_weight")]
    }

    fn levels(&self) -> [f64; 3] {
        [60.0, 75.0, 85.0]
    }

    fn tables(&self) -> &Tables {
        &TABLES
    }

    fn teacher_updates(&self, request: &Benchmark<'_>) -> anyhow::Result<Vec<Timing>> {
        benchmark::teacher_updates(request)
    }

    fn profile(&self, request: &Benchmark<'_>) -> anyhow::Result<Vec<Profile>> {
        benchmark::profile(request)
    }

    fn device_agreement(&self, device: &Device, hidden: usize, steps: u64) -> anyhow::Result<Vec<Apart>> {
        Ok(device_agreement::agreement(device, hidden, steps)?)
    }

    fn check_fixture(&self, file: &FixtureFile, device: &Device) -> Option<candle_core::Result<Differences>> {
        super::reference_fixtures::check(file, device)
    }

    fn check_fixture_without_padding(
        &self,
        file: &FixtureFile,
        device: &Device,
    ) -> Option<candle_core::Result<Differences>> {
        super::reference_fixtures::check_without_padding(file, device)
    }

    fn corpus(&self) -> Option<CorpusFormat> {
        Some(super::corpus_format::FORMAT)
    }

    fn presets(&self) -> Vec<Preset> {
        setup::presets()
    }

    fn check(&self, config: &RunConfig) -> anyhow::Result<()> {
        setup::check(config)
    }

    fn at_hand(&self, config: &RunConfig) -> anyhow::Result<()> {
        setup::at_hand(config)
    }

    fn has_teacher(&self, config: &RunConfig) -> bool {
        setup::has_teacher(config)
    }

    fn world(&self, config: &RunConfig, _told: &Loaded<'_>) -> anyhow::Result<Arc<RegexWorld>> {
        setup::world(config)
    }

    fn agent(
        &self,
        config: &RunConfig,
        world: &Arc<RegexWorld>,
        device: &Device,
    ) -> anyhow::Result<NewAgent<RegexWorld>> {
        setup::agent(config, world, device)
    }

    fn agent_from(
        &self,
        config: &RunConfig,
        world: &Arc<RegexWorld>,
        blueprint: &serde_json::Value,
        device: &Device,
    ) -> anyhow::Result<Box<dyn Agent<RegexWorld>>> {
        setup::agent_from(config, world, blueprint, device)
    }

    fn teacher(
        &self,
        config: &RunConfig,
        world: &Arc<RegexWorld>,
        device: &Device,
    ) -> anyhow::Result<Option<Box<dyn Teacher<RegexWorld>>>> {
        setup::teacher(config, world, device)
    }

    fn start_fields(&self, view: &Value) -> Value {
        let words = view["pairs"].as_array().into_iter().flatten().filter_map(|pair| pair["in"].as_str());
        let fields = words.enumerate().map(|(i, word)| (format!("words-{i}"), Value::from(word)));
        Value::Object(fields.collect())
    }

    fn parts(&self, view: &Value) -> ExecutionParts {
        let side = |name: &str| -> Value {
            view["pairs"].as_array().map_or(Value::Null, |pairs| pairs.iter().map(|pair| pair[name].clone()).collect())
        };
        ExecutionParts { start: json!({ "words": side("in") }), outputs: side("out") }
    }

    fn outputs(&self, execution: &Value) -> Value {
        execution["outputs"].clone()
    }

    fn training_form(&self) -> Option<TrainingForm> {
        Some(TrainingForm {
            name: "regex",
            about: "A word, the request in words, the expression that does it, and the result.",
            list: false,
        })
    }

    /// One for each word.
    fn training_examples(&self, example: TaughtExample<'_>) -> Vec<Value> {
        let expression = match example.demonstration {
            None => example.execution,
            Some(shown) => shown["expression"].as_str().unwrap_or_default(),
        };
        let Some(pairs) = example.view["pairs"].as_array().filter(|_| !expression.is_empty()) else {
            return Vec::new();
        };
        let output = |at: usize, pair: &Value| match example.demonstration {
            None => pair["out"].clone(),
            Some(shown) => shown["outputs"][at].clone(),
        };
        let rows = pairs.iter().enumerate().map(|(at, pair)| {
            json!({
                "word": pair["in"], "request": example.words, "expression": expression, "output": output(at, pair),
                "description_id": example.key,
            })
        });
        rows.collect()
    }

    fn start_from_form(
        &self,
        world: &RegexWorld,
        form: &serde_json::Value,
        chance: &mut Stream,
    ) -> Result<Words, String> {
        setup::start_from_form(world, form, chance)
    }

    fn train_teacher(&self, request: &TeacherTraining<'_>) -> anyhow::Result<TeacherReport> {
        setup::train_teacher(request)
    }

    fn pretrain(
        &self,
        config: &RunConfig,
        output: &Path,
        device: &Device,
        progress: &Progress<'_>,
    ) -> anyhow::Result<()> {
        setup::pretrain(config, output, device, progress)
    }

    fn policy_names(&self) -> Names {
        super::reference_fixtures::student_names()
    }

    fn import_model(&self, import: &ModelImport<'_>) -> anyhow::Result<()> {
        setup::import_model(import)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn view(pairs: &[(&str, &str)]) -> Value {
        let pairs: Vec<Value> = pairs.iter().map(|(before, after)| json!({"in": before, "out": after})).collect();
        json!({ "pairs": pairs })
    }

    #[test]
    fn a_teacher_sees_each_letter_and_hears_each_pair() {
        let html =
            RegexFamily.render(&view(&[("banana", "bonono"), ("sky", "sky")]), Audience::Teacher).expect("renders");
        assert_eq!(html.matches("<del").count(), 3);
        assert_eq!(html.matches("<ins").count(), 3);
        assert_eq!(html.matches("<li").count(), 2);
        assert!(html.contains("banana becomes bonono") && html.contains("sky stays as it is"), "{html}");
    }

    #[test]
    fn a_view_fills_the_fields_that_its_start_is_read_from() {
        let world = RegexWorld::tiny(1);
        let fields = RegexFamily.start_fields(&view(&[("banana", "bonono"), ("sky", "sky")]));
        let start =
            RegexFamily.start_from_form(&world, &fields, &mut crate::rng::stream(1, "form", 0)).expect("a start");
        assert_eq!(start.words, ["banana", "sky"]);
        assert_eq!(RegexFamily.start_fields(&Value::Null), json!({}));
    }

    #[test]
    fn hints_are_in_words_of_the_tasks() {
        let grammar = [
            include_str!("grammar/insert.txt"),
            include_str!("grammar/delete.txt"),
            include_str!("grammar/replace.txt"),
        ];
        for hint in PLACEHOLDERS {
            for word in hint.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() > 1) {
                assert!(grammar.iter().any(|text| text.contains(word)), "{word} of {hint}");
            }
        }
    }

    #[test]
    fn rows_of_one_rule_are_struck_alike() {
        let words = ["suspense", "garden"].map(str::to_owned);
        let edit = Edit::of("(^)(..)()@", &Words { words: words.to_vec() });
        let view = world::view(&edit.expression, &words, edit.outputs.as_deref());
        let html = RegexFamily.render(&view, Audience::Teacher).expect("renders");
        let struck: Vec<&str> = html.split("edit-removed\">").skip(1).map(|rest| &rest[..1]).collect();
        assert_eq!(struck, ["s", "u", "g", "a"]);
    }

    #[test]
    fn nothing_typed_becomes_markup() {
        let hostile = view(&[("<b>", "<script>alert(1)</script>"), ("\"", "'&")]);
        for audience in [Audience::Teacher, Audience::Researcher] {
            let html = RegexFamily.render(&hostile, audience).expect("renders");
            assert!(!html.contains("<b>") && !html.contains("<script"), "{html}");
        }
    }

    #[test]
    fn the_text_says_the_same() {
        let text = RegexFamily.render_text(&view(&[("banana", "bonono"), ("a", ""), ("sky", "sky")])).expect("text");
        assert_eq!(text, "banana becomes bonono\na becomes nothing: all letters are removed\nsky stays as it is");
    }

    #[test]
    fn it_tells_whether_a_word_changed() {
        let change = |pairs: &[(&str, &str)]| RegexFamily.change(&view(pairs));
        assert_eq!(change(&[("sky", "sky"), ("a", "a")]), Change::Nothing);
        assert_eq!(change(&[("sky", "sky"), ("a", "b")]), Change::Something("One of the 2 words changed.".to_owned()));
        assert_eq!(change(&[("a", ""), ("b", "c")]), Change::Something("All 2 words changed.".to_owned()));
        assert_eq!(RegexFamily.change(&json!({"pairs": [1]})), Change::Unknown, "a damaged view says nothing");
    }

    #[test]
    fn damaged_views_are_errors() {
        for damaged in [json!(null), json!({}), json!({"pairs": []}), json!({"pairs": [{"in": "a"}]}), json!([1])] {
            assert!(RegexFamily.render(&damaged, Audience::Teacher).is_err(), "{damaged}");
            assert!(RegexFamily.render_text(&damaged).is_err(), "{damaged}");
        }
    }

    #[test]
    fn the_guide_shows_a_real_execution_with_good_and_poor_descriptions() {
        let guide = RegexFamily.guide();
        assert_eq!((guide.good.len(), guide.poor.len()), (3, 2));
        let text = RegexFamily.render_text(&guide.view).expect("text");
        assert!(text.contains("castle becomes wastle") && text.contains("orange stays as it is"), "{text}");
    }

    #[test]
    fn the_try_box_has_a_labelled_field_for_each_word() {
        let html = RegexFamily.render_try_fields().expect("renders");
        for at in 0..PAIRS {
            assert!(html.contains(&format!("name=\"words-{at}\"")), "{html}");
            assert!(
                html.contains(&format!("for=\"try-words-{at}\"")) && html.contains(&format!("id=\"try-words-{at}\""))
            );
        }
    }
}
