//! Quality flags: signs that somebody did not take care. A flag says what to look at and decides nothing; each comes with a
//! sentence that says why it was raised. Everything here is a function of what one teacher gave.

use crate::ids::AnswerId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};

super::words! {
    /// A sign that somebody did not take care.
    Flag {
        /// A description with less activity than it takes to see what the agent did.
        TooFast = "too_fast",
        /// Longer than anybody types in the time: it was pasted.
        Pasted = "pasted",
        /// One text was given for executions that did different things.
        SameText = "same_text",
        /// Hardly a word.
        VeryShort = "very_short",
        /// The request, which the teacher could see, in the place of a description.
        CopiedRequest = "copied_request",
        /// Mostly signs and digits.
        NotLetters = "not_letters",
        /// The teacher skips most executions, or says that they cannot be described.
        MostlySkips = "mostly_skips",
        /// The teacher answered attention checks wrongly.
        MissedChecks = "missed_checks",
    }
}

impl Flag {
    /// All flags, in the order in which pages list them.
    pub const ALL: [Flag; 8] = [
        Flag::TooFast,
        Flag::Pasted,
        Flag::SameText,
        Flag::VeryShort,
        Flag::CopiedRequest,
        Flag::NotLetters,
        Flag::MostlySkips,
        Flag::MissedChecks,
    ];

    /// A few words for pages.
    pub fn word(self) -> &'static str {
        match self {
            Flag::TooFast => "too fast",
            Flag::Pasted => "pasted",
            Flag::SameText => "same text",
            Flag::VeryShort => "very short",
            Flag::CopiedRequest => "copied request",
            Flag::NotLetters => "few letters",
            Flag::MostlySkips => "mostly skips",
            Flag::MissedChecks => "missed checks",
        }
    }
}

/// A flag with the reason for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flagged {
    /// The flag.
    pub flag: Flag,
    /// One sentence that says why it was raised.
    pub why: String,
}

/// An answer that stands, as far as its quality can be judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The answer.
    pub answer: AnswerId,
    /// Whether it is a description.
    pub described: bool,
    /// Whether the teacher skipped the execution or said that they cannot describe it.
    pub passed_by: bool,
    /// Whether it says that the execution did what was asked: its text is then the request, and nobody typed it.
    pub fulfilled: bool,
    /// The text, as typed.
    pub text: String,
    /// The request of the execution, where the teacher could see it.
    pub request: Option<String>,
    /// One line that says what the execution did.
    pub summary: String,
    /// Milliseconds of activity, where they were measured.
    pub active_ms: Option<u64>,
}

/// Activity below which nobody has seen what the agent did and described it.
pub const TOO_FAST_MS: u64 = 2_000;
/// Characters a second beyond which nobody types.
pub const TYPED_PER_SECOND: u64 = 20;
/// Texts shorter than this may come from a habit or a dictated word.
const PASTED_FROM: usize = 40;
/// Letters and digits that a description has at least.
const SHORTEST: usize = 5;
/// Executions that did different things, from which on the same text is a sign.
const SAME_FOR: usize = 3;
/// Answers from which on shares mean something.
const ENOUGH: usize = 5;

/// A text without what does not tell texts apart: capitals, signs, and how many blanks there are.
fn plain(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// The flags of the answers of one teacher; answers without flags are left out.
pub fn of_answers(facts: &[Facts]) -> BTreeMap<AnswerId, Vec<Flagged>> {
    let typed = |one: &&Facts| one.described && !one.fulfilled && !one.text.trim().is_empty();
    let mut same: HashMap<String, HashSet<&str>> = HashMap::new();
    for one in facts.iter().filter(typed) {
        same.entry(plain(&one.text)).or_default().insert(&one.summary);
    }
    let mut flags = BTreeMap::new();
    for one in facts.iter().filter(typed) {
        let different = same.get(&plain(&one.text)).map_or(0, HashSet::len);
        let raised = of_description(one, different);
        if !raised.is_empty() {
            flags.insert(one.answer, raised);
        }
    }
    flags
}

/// The flags of a description whose text its teacher gave for so many executions that did different things.
fn of_description(one: &Facts, different: usize) -> Vec<Flagged> {
    let mut raised = Vec::new();
    let mut raise = |flag, why: String| raised.push(Flagged { flag, why });
    let characters = one.text.trim().chars().count();
    let letters = one.text.chars().filter(|c| c.is_alphabetic()).count();
    let visible = one.text.chars().filter(|c| !c.is_whitespace()).count();
    let telling = one.text.chars().filter(|c| c.is_alphanumeric()).count();
    if let Some(ms) = one.active_ms {
        let seconds = ms as f64 / 1000.0;
        if ms < TOO_FAST_MS {
            raise(Flag::TooFast, format!("It took {seconds:.1} s of activity to look and to describe."));
        }
        if characters >= PASTED_FROM && characters as u64 * 1000 > ms * TYPED_PER_SECOND {
            raise(
                Flag::Pasted,
                format!("{characters} characters in {seconds:.1} s of activity: nobody types as fast as that."),
            );
        }
    }
    if different >= SAME_FOR {
        raise(
            Flag::SameText,
            format!("The teacher gave this text for {different} executions that did different things."),
        );
    }
    if telling < SHORTEST {
        let plural = if telling == 1 { "" } else { "s" };
        raise(Flag::VeryShort, format!("The text has {telling} letter{plural} or digit{plural}."));
    } else if letters * 2 < visible {
        raise(Flag::NotLetters, format!("{letters} of {visible} characters are letters."));
    }
    if one.request.as_ref().is_some_and(|request| plain(request) == plain(&one.text)) {
        raise(Flag::CopiedRequest, "The text is the request that the teacher could see.".to_owned());
    }
    raised
}

/// The flags of a teacher, from their answers and from attention checks answered rightly and wrongly.
pub fn of_teacher(facts: &[Facts], (right, wrong): (u64, u64)) -> Vec<Flagged> {
    let mut raised = Vec::new();
    let passed_by = facts.iter().filter(|one| one.passed_by).count();
    if facts.len() >= ENOUGH && passed_by * 2 > facts.len() {
        let why = format!("{passed_by} of {} executions were skipped or called impossible to describe.", facts.len());
        raised.push(Flagged { flag: Flag::MostlySkips, why });
    }
    if wrong > 0 {
        let why = format!("{wrong} of {} attention checks were answered wrongly.", right + wrong);
        raised.push(Flagged { flag: Flag::MissedChecks, why });
    }
    raised
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(key: i64, text: &str) -> Facts {
        Facts {
            answer: AnswerId(key),
            described: true,
            text: text.into(),
            summary: format!("rule {key}"),
            active_ms: Some(9_000),
            ..Facts::default()
        }
    }

    fn flags(facts: &[Facts]) -> Vec<Flag> {
        of_answers(facts).into_values().flatten().map(|flagged| flagged.flag).collect()
    }

    #[test]
    fn a_careful_description_has_no_flag() {
        for text in [
            "It doubled the last letter of every word.",
            "replace every 'a' with 'b'",
            "go to the kitchen, 2 m past the sofa",
            "删除每个词的最后一个字母",
            "الحرف الأخير مكرر",
        ] {
            assert_eq!(flags(&[facts(1, text)]), [], "{text}");
        }
    }

    #[test]
    fn speed_is_told_from_typing() {
        let at = |text: &str, ms| flags(&[Facts { active_ms: ms, ..facts(1, text) }]);
        assert_eq!(at("double the last letter", Some(1_999)), [Flag::TooFast]);
        assert_eq!(at("double the last letter", Some(2_000)), []);
        assert_eq!(at("double the last letter", None), [], "nobody measured it");
        let long = "every word has its last letter twice and nothing else in it changed";
        assert_eq!(at(long, Some(2_500)), [Flag::Pasted]);
        assert_eq!(at(long, Some(500)), [Flag::TooFast, Flag::Pasted]);
        assert_eq!(at(long, Some(12_000)), []);
        let why = of_answers(&[Facts { active_ms: Some(500), ..facts(1, long) }]).remove(&AnswerId(1)).unwrap();
        assert_eq!(why[0].why, "It took 0.5 s of activity to look and to describe.");
    }

    #[test]
    fn the_same_text_counts_only_where_executions_differ() {
        let same = |summaries: [&str; 3]| {
            let all: Vec<Facts> = summaries
                .iter()
                .zip(["It changed the words.", "it changed  the words", "It changed the words!"])
                .zip(1..)
                .map(|((summary, text), key)| Facts { summary: (*summary).into(), ..facts(key, text) })
                .collect();
            flags(&all)
        };
        assert_eq!(same(["a", "b", "c"]), [Flag::SameText; 3]);
        assert_eq!(same(["a", "a", "b"]), [], "twice may be a coincidence");
    }

    #[test]
    fn short_and_strange_texts_are_flagged() {
        assert_eq!(flags(&[facts(1, "no")]), [Flag::VeryShort]);
        assert_eq!(flags(&[facts(1, "....")]), [Flag::VeryShort]);
        assert_eq!(flags(&[facts(1, "12345 67890 ###")]), [Flag::NotLetters]);
        assert_eq!(flags(&[facts(1, "reversed")]), []);
    }

    #[test]
    fn a_copied_request_is_flagged_where_it_was_shown() {
        let request = "Double the last letter.";
        let copied = Facts { request: Some(request.into()), ..facts(1, "double the last letter") };
        assert_eq!(flags(std::slice::from_ref(&copied)), [Flag::CopiedRequest]);
        assert_eq!(flags(&[Facts { request: None, ..copied.clone() }]), []);
        // Saying that it did what was asked is no copy.
        assert_eq!(flags(&[Facts { fulfilled: true, ..copied }]), []);
    }

    #[test]
    fn teachers_are_flagged_for_skips_and_missed_checks() {
        let mut given: Vec<Facts> = (0..4).map(|key| facts(key, "double the last letter")).collect();
        let skip = |key| Facts { described: false, passed_by: true, text: String::new(), ..facts(key, "") };
        given.extend((4..8).map(skip));
        assert_eq!(of_teacher(&given, (3, 0)), []);
        given.push(skip(8));
        let flagged = of_teacher(&given, (2, 1));
        assert_eq!(flagged.iter().map(|f| f.flag).collect::<Vec<_>>(), [Flag::MostlySkips, Flag::MissedChecks]);
        assert_eq!(flagged[0].why, "5 of 9 executions were skipped or called impossible to describe.");
        assert_eq!(flagged[1].why, "1 of 3 attention checks were answered wrongly.");
        assert_eq!(of_teacher(&given[5..], (0, 0)), [], "four answers are too few");
        assert_eq!(flags(&given[4..]), [], "a skip is no description");
    }

    #[test]
    fn every_flag_has_its_own_words() {
        let words: HashSet<&str> = Flag::ALL.iter().map(|flag| flag.word()).collect();
        assert_eq!(words.len(), Flag::ALL.len());
        assert!(Flag::ALL.iter().all(|flag| Flag::parse(flag.as_str()) == Some(*flag)));
    }
}
