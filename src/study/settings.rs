//! The settings of a study. As JSON they are stored and exported, as TOML they can be uploaded; both have these names.

use crate::config::run::Preview;
use crate::ids::{RunId, StudyId};
use serde::{Deserialize, Serialize};
use sha2::Digest;

/// Everything that a researcher decides about a study, except its arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StudySettings {
    /// Title that teachers see.
    pub title: String,
    /// The summary for the page on which people join (Markdown).
    pub summary: String,
    /// The text that people agree to before they join (Markdown). Empty: they are asked for nothing.
    pub consent: String,
    /// Instructions that stand after the family's own example (Markdown).
    pub guidelines: String,
    /// Further good descriptions of the family's example.
    pub good: Vec<WordedExample>,
    /// Further poor descriptions of it.
    pub poor: Vec<WordedExample>,
    /// How people come in.
    pub entry: Entry,
    /// Whether an arm is drawn for each teacher or for each execution.
    pub assignment: Assignment,
    /// Answers that are asked of each teacher; 0: as many as they like.
    pub goal: u32,
    /// Most teachers; 0: no limit.
    pub places: u32,
    /// Minutes that the joining page names; 0: worked out from the goal.
    pub minutes: u32,
    /// Pay for an hour.
    pub pay_per_hour: f64,
    /// Its currency, as three letters.
    pub currency: String,
    /// Executions that are described before the teaching begins.
    pub qualification: Qualification,
    /// Questions that show whether somebody reads.
    pub attention: AttentionChecks,
    /// Teachers who are asked about the same execution; 0 or 1: one.
    pub overlap: u32,
    /// Percent of the executions of which so many are asked.
    pub overlap_share: u32,
    /// Whether the agent learns from answers that a reviewer has rejected before it came to them.
    pub learn_rejected: bool,
    /// Whether people see, before a sentence is sent, what the agent would do if it were asked in these words.
    pub preview: Preview,
    /// The end.
    pub completion: Completion,
    /// Address that is told of what happens in the study (POST, signed). Empty: none.
    pub webhook: String,
}

impl Default for StudySettings {
    fn default() -> StudySettings {
        StudySettings {
            title: String::new(),
            summary: String::new(),
            consent: String::new(),
            guidelines: String::new(),
            good: Vec::new(),
            poor: Vec::new(),
            entry: Entry::Link,
            assignment: Assignment::Teacher,
            goal: 30,
            places: 20,
            minutes: 0,
            pay_per_hour: 0.0,
            currency: "EUR".to_owned(),
            qualification: Qualification::default(),
            attention: AttentionChecks::default(),
            overlap: 1,
            overlap_share: 100,
            learn_rejected: false,
            preview: Preview::Off,
            completion: Completion::default(),
            webhook: String::new(),
        }
    }
}

/// A description of the guide's example, with the reason why it is good or poor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WordedExample {
    /// The description.
    pub text: String,
    /// The reason.
    #[serde(default)]
    pub why: String,
}

super::words! {
    /// How people come into a study.
    Entry {
        /// Anybody who has the link.
        Link = "link",
        /// By a personal invitation.
        Invitation = "invitation",
        /// From Prolific, which adds `PROLIFIC_PID`, `STUDY_ID` and `SESSION_ID` to the link.
        Prolific = "prolific",
        /// From Mechanical Turk, whose link carries `workerId`, `hitId` and `assignmentId`.
        Mturk = "mturk",
    }
}

super::words! {
    /// For what an arm is drawn.
    Assignment {
        /// Each teacher keeps one arm.
        Teacher = "teacher",
        /// Each execution comes from an arm drawn anew.
        Episode = "episode",
    }
}

super::words! {
    /// Who decides whether a qualification was passed.
    Judge {
        /// A researcher reads the descriptions.
        Researcher = "researcher",
        /// An agent carries them out; a description passes when it does the same as was shown.
        Executor = "executor",
    }
}

/// Executions that everybody describes before they teach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Qualification {
    /// How many; 0: there is no qualification.
    pub executions: u32,
    /// How many of them must pass.
    pub right: u32,
    /// Who decides.
    pub judge: Judge,
    /// The run whose agent decides, where an agent does. `None`: the agent of the first arm.
    pub executor: Option<RunId>,
}

impl Default for Qualification {
    fn default() -> Qualification {
        Qualification { executions: 0, right: 0, judge: Judge::Researcher, executor: None }
    }
}

/// Questions with a known answer, between executions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AttentionChecks {
    /// One after so many answers; 0: none.
    pub every: u32,
    /// More wrong answers than this end the participation.
    pub misses: u32,
}

/// How a study ends for a teacher.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Completion {
    /// The platform's code for who has finished. Empty: each teacher gets a code of their own.
    pub code: String,
    /// The platform's code for who was screened out. Empty: none is shown.
    pub screened_out_code: String,
    /// Address to return to; `{code}` stands for the code. Empty: there is no link.
    pub return_url: String,
    /// The text that people read at the end (Markdown).
    pub thanks: String,
}

/// Why settings cannot be used: the field, and a sentence that says what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct SettingsError {
    /// Name of the field.
    pub field: &'static str,
    /// The sentence.
    pub sentence: String,
}

/// Most characters of a longer text.
pub const LONGEST_TEXT: usize = 20_000;

impl StudySettings {
    /// Every reason why these settings cannot be used.
    pub fn problems(&self) -> Vec<SettingsError> {
        let mut problems = Vec::new();
        let mut refuse = |field, sentence: String| problems.push(SettingsError { field, sentence });
        if self.title.trim().is_empty() {
            refuse("title", "Give the study a title: teachers see it first.".to_owned());
        }
        if self.title.chars().any(char::is_control) {
            refuse("title", "The title has a character in it that cannot be shown; leave it out.".to_owned());
        }
        for (field, examples) in [("good", &self.good), ("poor", &self.poor)] {
            if examples.iter().any(|e| e.text.chars().count() > 500 || e.why.chars().count() > 500) {
                refuse(field, "An example, and the reason for it, may have 500 characters each.".to_owned());
            }
        }
        if self.title.chars().count() > 120 {
            refuse("title", "A title may have 120 characters.".to_owned());
        }
        for (field, name, text) in [
            ("summary", "The summary", &self.summary),
            ("consent", "The consent text", &self.consent),
            ("guidelines", "The guidelines", &self.guidelines),
            ("thanks", "The text at the end", &self.completion.thanks),
        ] {
            if text.chars().count() > LONGEST_TEXT {
                refuse(field, format!("{name} may have {LONGEST_TEXT} characters."));
            }
        }
        if self.good.len() > 20 || self.poor.len() > 20 {
            refuse("good", "Twenty examples of each kind are enough.".to_owned());
        }
        if self.goal > 100_000 {
            refuse("goal", "Nobody gives more than 100,000 answers.".to_owned());
        }
        if self.places > 1_000_000 {
            refuse("places", "A study may have a million teachers.".to_owned());
        }
        if !(self.pay_per_hour.is_finite() && (0.0..=10_000.0).contains(&self.pay_per_hour)) {
            refuse("pay_per_hour", "The pay for an hour must lie between 0 and 10,000.".to_owned());
        }
        if self.currency.len() != 3 || !self.currency.bytes().all(|b| b.is_ascii_uppercase()) {
            refuse("currency", "Write the currency as three capital letters, for example EUR.".to_owned());
        }
        if self.qualification.executions > 20 {
            refuse("qualification", "A qualification may have 20 executions.".to_owned());
        }
        if self.qualification.right > self.qualification.executions {
            refuse(
                "qualification_right",
                "No more descriptions can pass than there are executions in the qualification.".to_owned(),
            );
        }
        if self.overlap > 100 {
            refuse("overlap", "At most 100 teachers can be asked about the same execution.".to_owned());
        }
        if self.overlap_share > 100 {
            refuse("overlap_share", "The share of executions is a percentage from 0 to 100.".to_owned());
        }
        if self.attention.every > 0 && self.goal == 0 && self.attention.every > 1000 {
            refuse("attention", "Ask an attention check at least after every 1,000 answers.".to_owned());
        }
        for (field, name, url) in [
            ("return_url", "The return address", &self.completion.return_url),
            ("webhook", "The webhook", &self.webhook),
        ] {
            if !url.is_empty() && !is_web_address(url) {
                refuse(field, format!("{name} must begin with https:// (or http:// for this machine)."));
            }
        }
        for (field, code) in
            [("code", &self.completion.code), ("screened_out_code", &self.completion.screened_out_code)]
        {
            if code.chars().count() > 64 || code.chars().any(|c| c.is_whitespace() || c.is_control()) {
                refuse(field, "A completion code may have 64 characters and no blanks.".to_owned());
            }
        }
        if self.entry == Entry::Prolific && self.completion.return_url.is_empty() && self.completion.code.is_empty() {
            refuse("code", "Prolific gives the study a completion code; enter it here.".to_owned());
        }
        problems
    }

    /// How many teachers are asked about the execution of an episode. It follows from the study's name and the episode alone, so
    /// that the arms of a study share the episodes that overlap.
    pub fn teachers_asked(&self, study: &StudyId, episode: u64) -> u32 {
        let overlaps = super::draw(&[study, "overlap", &episode.to_string()], 100) < self.overlap_share as usize;
        if overlaps { self.overlap.max(1) } else { 1 }
    }

    /// A short digest, by which a form tells whether somebody else has changed the settings since.
    pub fn digest(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        hex::encode(&sha2::Sha256::digest(text)[..8])
    }

    /// Where a teacher with `code` returns to; `None` where there is no such address.
    pub fn return_address(&self, code: &str) -> Option<String> {
        let code: String = percent_encoding::utf8_percent_encode(code, percent_encoding::NON_ALPHANUMERIC).to_string();
        match (self.completion.return_url.as_str(), self.entry) {
            ("", Entry::Prolific) => Some(format!("https://app.prolific.com/submissions/complete?cc={code}")),
            ("", _) => None,
            (url, _) => Some(url.replace("{code}", &code)),
        }
    }
}

/// Whether a text is an address of the web; without encryption only on this machine.
fn is_web_address(url: &str) -> bool {
    let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
    let begins =
        |start: &str| url.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']));
    let safe = url.strip_prefix("https://").is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
    (safe || local.into_iter().any(begins)) && !url.chars().any(|c| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> StudySettings {
        StudySettings { title: "Words".to_owned(), ..StudySettings::default() }
    }

    #[test]
    fn settings_survive_json_and_toml_and_unknown_names_are_refused() {
        let settings = StudySettings {
            good: vec![WordedExample { text: "It doubled the last letter.".into(), why: "complete".into() }],
            qualification: Qualification {
                executions: 5,
                right: 4,
                judge: Judge::Executor,
                executor: Some("regex-1".into()),
            },
            ..good()
        };
        let json = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<StudySettings>(&json).unwrap(), settings);
        assert_eq!(toml::from_str::<StudySettings>(&toml::to_string(&settings).unwrap()).unwrap(), settings);
        assert!(serde_json::from_str::<StudySettings>(r#"{"tittle":"x"}"#).is_err());
    }

    #[test]
    fn problems_name_the_field_and_say_what_to_change() {
        assert_eq!(good().problems(), []);
        let fields = |settings: StudySettings| settings.problems().into_iter().map(|p| p.field).collect::<Vec<_>>();
        assert_eq!(fields(StudySettings::default()), ["title"]);
        assert_eq!(fields(StudySettings { pay_per_hour: f64::NAN, ..good() }), ["pay_per_hour"]);
        assert_eq!(fields(StudySettings { currency: "euro".into(), ..good() }), ["currency"]);
        assert_eq!(fields(StudySettings { webhook: "ftp://x".into(), ..good() }), ["webhook"]);
        assert_eq!(fields(StudySettings { webhook: "http://example.org".into(), ..good() }), ["webhook"]);
        assert_eq!(fields(StudySettings { webhook: "http://localhost.example.org/".into(), ..good() }), ["webhook"]);
        assert_eq!(fields(StudySettings { webhook: "http://127.0.0.1:9/x".into(), ..good() }), [""; 0]);
        assert_eq!(fields(StudySettings { entry: Entry::Prolific, ..good() }), ["code"]);
        assert_eq!(fields(StudySettings { overlap: 101, overlap_share: 101, ..good() }), ["overlap", "overlap_share"]);
        let mut settings = good();
        settings.qualification.right = 1;
        assert_eq!(fields(settings), ["qualification_right"]);
    }

    #[test]
    fn a_share_of_the_episodes_is_asked_of_several_teachers_and_always_the_same_ones() {
        let settings = StudySettings { overlap: 3, overlap_share: 30, ..good() };
        let asked = |settings: &StudySettings| -> Vec<u32> {
            (0..1_000).map(|episode| settings.teachers_asked(&"words".into(), episode)).collect()
        };
        let first = asked(&settings);
        assert_eq!(first, asked(&settings));
        let several = first.iter().filter(|asked| **asked == 3).count();
        assert!((240..360).contains(&several) && first.iter().all(|asked| [1, 3].contains(asked)), "{several}");
        assert_eq!(asked(&good()), [1; 1_000]);
        assert_eq!(asked(&StudySettings { overlap: 2, ..good() }), [2; 1_000]);
        assert_eq!(asked(&StudySettings { overlap_share: 0, ..settings }), [1; 1_000]);
    }

    #[test]
    fn codes_are_encoded_in_return_addresses() {
        let mut settings = StudySettings { entry: Entry::Prolific, ..good() };
        assert_eq!(settings.return_address("A&B").unwrap(), "https://app.prolific.com/submissions/complete?cc=A%26B");
        settings.completion.return_url = "https://example.org/done?c={code}".into();
        assert_eq!(settings.return_address("AB").unwrap(), "https://example.org/done?c=AB");
        assert_eq!(good().return_address("AB"), None);
    }
}
