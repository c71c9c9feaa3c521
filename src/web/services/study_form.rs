//! The form in which a study is written: one text for each field, as it was typed, and what it says.

use crate::config::run::Preview;
use crate::ids::{RunId, StudyId};
use crate::store::{Study, StudyArm};
use crate::study::{
    Assignment, AttentionChecks, Completion, Entry, Judge, Qualification, SettingsError, StudySettings, WordedExample,
    slug,
};
use std::collections::BTreeMap;

/// The typed texts, by the names of the fields. An arm's field is named `arm.RUN`, and holds the arm's name.
#[derive(Clone, Debug, Default)]
pub(crate) struct StudyForm(BTreeMap<String, String>);

/// Prefix of the fields of arms.
const ARM: &str = "arm.";
/// Prefix of the boxes by which a run becomes an arm.
const USE: &str = "use.";

impl StudyForm {
    /// A form that was sent.
    pub(crate) fn sent(pairs: Vec<(String, String)>) -> StudyForm {
        StudyForm(pairs.into_iter().map(|(name, value)| (name, value.replace("\r\n", "\n"))).collect())
    }

    /// The form that says what a study says.
    pub(crate) fn of(settings: &StudySettings, arms: &[StudyArm]) -> StudyForm {
        let lines = |examples: &[WordedExample]| {
            let line = |e: &WordedExample| match e.why.as_str() {
                "" => e.text.clone(),
                why => format!("{} | {why}", e.text),
            };
            examples.iter().map(line).collect::<Vec<_>>().join("\n")
        };
        let number = |n: u32| if n == 0 { String::new() } else { n.to_string() };
        let mut fields: BTreeMap<String, String> = [
            ("title", settings.title.clone()),
            ("summary", settings.summary.clone()),
            ("consent", settings.consent.clone()),
            ("guidelines", settings.guidelines.clone()),
            ("good", lines(&settings.good)),
            ("poor", lines(&settings.poor)),
            ("entry", settings.entry.as_str().to_owned()),
            ("assignment", settings.assignment.as_str().to_owned()),
            ("goal", number(settings.goal)),
            ("places", number(settings.places)),
            ("minutes", number(settings.minutes)),
            (
                "pay_per_hour",
                if settings.pay_per_hour == 0.0 { String::new() } else { settings.pay_per_hour.to_string() },
            ),
            ("currency", settings.currency.clone()),
            ("qualification", number(settings.qualification.executions)),
            ("qualification_right", number(settings.qualification.right)),
            ("judge", settings.qualification.judge.as_str().to_owned()),
            ("executor", settings.qualification.executor.as_deref().unwrap_or_default().to_owned()),
            ("attention", number(settings.attention.every)),
            ("misses", number(settings.attention.misses)),
            ("overlap", number(settings.overlap)),
            ("overlap_share", settings.overlap_share.to_string()),
            ("learn_rejected", if settings.learn_rejected { "yes" } else { "no" }.to_owned()),
            ("preview", settings.preview.as_str().to_owned()),
            ("code", settings.completion.code.clone()),
            ("screened_out_code", settings.completion.screened_out_code.clone()),
            ("return_url", settings.completion.return_url.clone()),
            ("thanks", settings.completion.thanks.clone()),
            ("webhook", settings.webhook.clone()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        for arm in arms {
            fields.insert(format!("{USE}{}", arm.run), "yes".to_owned());
            fields.insert(format!("{ARM}{}", arm.run), arm.name.clone());
        }
        StudyForm(fields)
    }

    /// The form of a stored study.
    pub(crate) fn of_study(study: &Study) -> StudyForm {
        let mut form = StudyForm::of(&study.settings, &study.arms);
        form.name(&study.id);
        form
    }

    /// Types the name of the study in addresses.
    pub(crate) fn name(&mut self, id: &StudyId) {
        self.0.insert("id".to_owned(), id.to_string());
    }

    /// The text of a field.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Whether a run is an arm.
    pub(crate) fn uses(&self, run: &RunId) -> bool {
        self.0.contains_key(&format!("{USE}{run}"))
    }

    /// The name of a run as an arm.
    pub(crate) fn arm_name(&self, run: &RunId) -> &str {
        self.text(&format!("{ARM}{run}"))
    }

    /// The arms, in the order of their runs' names.
    pub(crate) fn arms(&self) -> Vec<StudyArm> {
        let runs = self.0.keys().filter_map(|name| name.strip_prefix(USE));
        runs.map(|run| {
            let run = RunId::from(run);
            let name = self.arm_name(&run).trim();
            let name = if name.is_empty() { run.as_str() } else { name };
            StudyArm { name: name.chars().take(60).collect(), run: run.clone() }
        })
        .collect()
    }

    /// The arms of a study as the form says: once it was open its runs stay, and only their names change.
    pub(crate) fn arms_for(&self, study: &Study) -> Vec<StudyArm> {
        if study.opened_at.is_none() {
            return self.arms();
        }
        let renamed = |arm: &StudyArm| match self.arm_name(&arm.run).trim() {
            "" => arm.clone(),
            name => StudyArm { run: arm.run.clone(), name: name.chars().take(60).collect() },
        };
        study.arms.iter().map(renamed).collect()
    }

    /// The settings that the form says, with every reason why they cannot be used.
    pub(crate) fn read(&self) -> (StudySettings, Vec<SettingsError>) {
        let mut problems = Vec::new();
        let mut refuse = |field: &'static str, sentence: &str| {
            problems.push(SettingsError { field, sentence: sentence.to_owned() });
        };
        let mut count = |field: &'static str, what: &str| match self.text(field).trim() {
            "" => 0,
            text => text.replace([',', ' '], "").parse::<u32>().unwrap_or_else(|_| {
                refuse(field, &format!("{what} must be a whole number, such as 30. Leave it empty for none."));
                0
            }),
        };
        let goal = count("goal", "The answers asked of each teacher");
        let places = count("places", "The number of teachers");
        let minutes = count("minutes", "The minutes");
        let executions = count("qualification", "The executions of the qualification");
        let right = count("qualification_right", "The descriptions that must pass");
        let every = count("attention", "The answers between attention checks");
        let misses = count("misses", "The attention checks that may be missed");
        let overlap = count("overlap", "The teachers of an execution").max(1);
        let overlap_share = match self.text("overlap_share").trim() {
            "" => 100,
            _ => count("overlap_share", "The share of executions"),
        };
        let pay_per_hour = match self.text("pay_per_hour").trim() {
            "" => 0.0,
            text => text.replace(',', ".").parse().unwrap_or_else(|_| {
                refuse("pay_per_hour", "The pay for an hour must be a number, such as 12.50.");
                0.0
            }),
        };
        let settings = StudySettings {
            title: self.text("title").trim().to_owned(),
            summary: self.text("summary").trim().to_owned(),
            consent: self.text("consent").trim().to_owned(),
            guidelines: self.text("guidelines").trim().to_owned(),
            good: examples(self.text("good")),
            poor: examples(self.text("poor")),
            entry: Entry::parse(self.text("entry")).unwrap_or(Entry::Link),
            assignment: Assignment::parse(self.text("assignment")).unwrap_or(Assignment::Teacher),
            goal,
            places,
            minutes,
            pay_per_hour,
            currency: match self.text("currency").trim() {
                "" => "EUR".to_owned(),
                text => text.to_uppercase(),
            },
            qualification: Qualification {
                executions,
                right,
                judge: Judge::parse(self.text("judge")).unwrap_or(Judge::Researcher),
                executor: Some(self.text("executor").trim()).filter(|run| !run.is_empty()).map(RunId::from),
            },
            attention: AttentionChecks { every, misses },
            overlap,
            overlap_share,
            learn_rejected: self.text("learn_rejected") == "yes",
            preview: Preview::parse(self.text("preview")).unwrap_or(Preview::Off),
            completion: Completion {
                code: self.text("code").trim().to_owned(),
                screened_out_code: self.text("screened_out_code").trim().to_owned(),
                return_url: self.text("return_url").trim().to_owned(),
                thanks: self.text("thanks").trim().to_owned(),
            },
            webhook: self.text("webhook").trim().to_owned(),
        };
        for problem in settings.problems() {
            if problems.iter().all(|known| known.field != problem.field) {
                problems.push(problem);
            }
        }
        (settings, problems)
    }

    /// The name of the study in addresses: the one that was typed, else made of the title.
    pub(crate) fn id(&self) -> String {
        match self.text("id").trim() {
            "" => slug(self.text("title")),
            typed => typed.to_owned(),
        }
    }
}

/// Examples, one a line; what follows a bar is the reason.
fn examples(text: &str) -> Vec<WordedExample> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (text, why) = line.split_once('|').unwrap_or((line, ""));
            WordedExample { text: text.trim().to_owned(), why: why.trim().to_owned() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_says_what_the_settings_say() {
        let settings = StudySettings {
            title: "Words".into(),
            good: vec![WordedExample { text: "It doubled the e".into(), why: "complete".into() }],
            poor: vec![WordedExample { text: "changed".into(), why: String::new() }],
            entry: Entry::Prolific,
            pay_per_hour: 9.5,
            completion: Completion { code: "C1".into(), ..Completion::default() },
            ..StudySettings::default()
        };
        let arms = vec![StudyArm { run: "regex-1".into(), name: "descriptions".into() }];
        let form = StudyForm::of(&settings, &arms);
        assert_eq!(form.read(), (settings, vec![]));
        assert_eq!(form.arms(), arms);
        assert!(form.uses(&"regex-1".into()) && !form.uses(&"regex-2".into()));
    }

    #[test]
    fn what_cannot_be_read_is_said_field_by_field_and_stays_typed() {
        let form = StudyForm::sent(vec![
            ("title".into(), "x".into()),
            ("goal".into(), "many".into()),
            ("pay_per_hour".into(), "12,50".into()),
            ("attention".into(), "-1".into()),
        ]);
        let (settings, problems) = form.read();
        assert_eq!(problems.iter().map(|p| p.field).collect::<Vec<_>>(), ["goal", "attention"]);
        assert_eq!((settings.pay_per_hour, form.text("goal")), (12.5, "many"));
    }

    #[test]
    fn names_are_made_of_titles() {
        let named = |title: &str| StudyForm::sent(vec![("title".into(), title.into())]).id();
        assert_eq!(named("Words, for  everybody!"), "words-for-everybody");
        assert_eq!(named("Études 2"), "tudes-2");
        assert_eq!(named("学习"), "study");
    }
}
