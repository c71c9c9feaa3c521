//! Agreement: whether descriptions of the same execution by different teachers say the same.
//!
//! Two measures stand beside each other. Descriptions are *executed alike* when an agent that is asked in the words of either
//! does the same. And their *texts* are compared by chrF, which needs no agent. Means are over pairs of descriptions; their
//! intervals come from drawing executions again, since pairs of one execution are not independent of each other.

use super::intervals::bootstrap;
use crate::ids::{AnswerId, TeacherId};
use serde::Serialize;
use std::collections::HashMap;

/// A description of an execution that others have described, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The answer.
    pub answer: AnswerId,
    /// Who gave it.
    pub teacher: TeacherId,
    /// The text, as typed.
    pub text: String,
    /// The execution of an agent that was asked in these words; `None` where none was asked.
    pub attempt: Option<Outcome>,
}

/// The execution of an agent that was asked in somebody's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// A digest of what it did: equal digests are equal executions.
    pub digest: Vec<u8>,
    /// Whether it did what had been described.
    pub understood: bool,
}

/// A mean with its 95% interval, and what it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// The mean, from 0 to 1.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// Pairs of descriptions, or single descriptions, that it is a mean of.
    pub n: u64,
    /// Executions that they are about.
    pub executions: u64,
}

/// How far teachers agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Agreement {
    /// Share of pairs that are executed alike.
    pub alike: Option<Mean>,
    /// Mean likeness of the texts of a pair.
    pub text: Option<Mean>,
    /// Share of descriptions by which the agent did what had been described.
    pub understood: Option<Mean>,
}

/// Longest run of characters that chrF compares.
const LONGEST: usize = 6;

/// How alike two texts are, from 0 to 1: chrF (Popović, 2015) with runs of 1 to 6 characters. Capitals and blanks do not count,
/// and precision weighs as much as recall, so that the order of the two texts does not matter.
///
/// Runs of a length that neither text has are left out. Two empty texts are alike.
pub fn chrf(one: &str, other: &str) -> f64 {
    let letters = |text: &str| text.to_lowercase().chars().filter(|c| !c.is_whitespace()).collect::<Vec<_>>();
    let (one, other) = (letters(one), letters(other));
    if one == other {
        return 1.0;
    }
    let (mut precision, mut recall, mut lengths) = (0.0, 0.0, 0.0);
    for length in 1..=LONGEST.min(one.len().max(other.len())) {
        let mut counts: HashMap<&[char], (u32, u32)> = HashMap::new();
        one.windows(length).for_each(|run| counts.entry(run).or_default().0 += 1);
        other.windows(length).for_each(|run| counts.entry(run).or_default().1 += 1);
        let shared: u32 = counts.values().map(|(a, b)| a.min(b)).sum();
        let share = |n: usize| if n < length { 0.0 } else { f64::from(shared) / (n - length + 1) as f64 };
        precision += share(one.len());
        recall += share(other.len());
        lengths += 1.0;
    }
    let (precision, recall) = (precision / lengths, recall / lengths);
    if precision + recall == 0.0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) }
}

/// A sum over the pairs of an execution, and how many there are.
type Part = (f64, u64);

/// The mean over parts, one for each execution, with an interval by drawing executions again. One execution alone says nothing about
/// others: its interval is everything.
fn mean(parts: &[Part]) -> Option<Mean> {
    let parts: Vec<Part> = parts.iter().copied().filter(|(_, n)| *n > 0).collect();
    let total = |chosen: &mut dyn Iterator<Item = usize>| {
        let (sum, n) = chosen.fold((0.0, 0), |(sum, all), at| (sum + parts[at].0, all + parts[at].1));
        (sum / n as f64, n)
    };
    if parts.is_empty() {
        return None;
    }
    let (value, n) = total(&mut (0..parts.len()));
    let drawn = bootstrap(parts.len(), |chosen| Some(total(&mut chosen.iter().copied()).0));
    let (low, high) = drawn.unwrap_or((0.0, 1.0));
    Some(Mean { value, low, high, n, executions: parts.len() as u64 })
}

/// The pairs of descriptions of one execution.
fn pairs(described: &[Described]) -> impl Iterator<Item = (&Described, &Described)> {
    (0..described.len()).flat_map(move |at| described[at + 1..].iter().map(move |other| (&described[at], other)))
}

/// Whether two descriptions are executed alike; `None` where no agent has carried both out.
pub fn alike(one: &Described, other: &Described) -> Option<bool> {
    Some(one.attempt.as_ref()?.digest == other.attempt.as_ref()?.digest)
}

/// How far the teachers agree on executions, each with its descriptions.
pub fn agreement(executions: &[Vec<Described>]) -> Agreement {
    agreement_of(executions, |_| true)
}

/// How far a teacher agrees with the others, and is understood, on executions that both described.
pub fn with_others(executions: &[Vec<Described>], teacher: TeacherId) -> Agreement {
    agreement_of(executions, |one| one.teacher == teacher)
}

/// The agreement over the pairs of which one description counts.
fn agreement_of(executions: &[Vec<Described>], counts: impl Fn(&Described) -> bool) -> Agreement {
    let (mut likes, mut texts, mut understood) = (Vec::new(), Vec::new(), Vec::new());
    for described in executions.iter().filter(|described| described.len() > 1) {
        let (mut like, mut text, mut clear): (Part, Part, Part) = Default::default();
        let add = |part: &mut Part, value: f64| *part = (part.0 + value, part.1 + 1);
        for (one, other) in pairs(described).filter(|(one, other)| counts(one) || counts(other)) {
            add(&mut text, chrf(&one.text, &other.text));
            if let Some(alike) = alike(one, other) {
                add(&mut like, f64::from(u8::from(alike)));
            }
        }
        for outcome in described.iter().filter(|one| counts(one)).filter_map(|one| one.attempt.as_ref()) {
            add(&mut clear, f64::from(u8::from(outcome.understood)));
        }
        likes.push(like);
        texts.push(text);
        understood.push(clear);
    }
    Agreement { alike: mean(&likes), text: mean(&texts), understood: mean(&understood) }
}

/// Likeness below which two texts probably say different things.
const UNLIKE: f64 = 0.35;

/// Whether descriptions of an execution disagree: an agent does different things by them or, where none was asked, the texts of
/// some two of them are unlike each other.
pub fn disagree(described: &[Described]) -> bool {
    pairs(described).any(|(one, other)| match alike(one, other) {
        Some(alike) => !alike,
        None => chrf(&one.text, &other.text) < UNLIKE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    fn said(key: i64, text: &str, outcome: Option<(u8, bool)>) -> Described {
        let attempt = outcome.map(|(digest, understood)| Outcome { digest: vec![digest], understood });
        Described { answer: AnswerId(key), teacher: TeacherId(key), text: text.into(), attempt }
    }

    #[test]
    fn chrf_of_hand_counted_texts() {
        close(chrf("", ""), 1.0);
        close(chrf("abc", ""), 0.0);
        close(chrf("Double it", "double  IT"), 1.0);
        close(chrf("abc", "xyz"), 0.0);
        // Runs of one: a and b of three; of two: ab of two; of three: none. Precision and recall are the same.
        close(chrf("abc", "abd"), (2.0 / 3.0 + 1.0 / 2.0) / 3.0);
        // "ab" in "abab": of one, 2 of 2 and 2 of 4; of two, 1 of 1 and 1 of 3; of three and four, none.
        let (precision, recall) = ((1.0 + 1.0) / 4.0, (1.0 / 2.0 + 1.0 / 3.0) / 4.0);
        close(chrf("ab", "abab"), 2.0 * precision * recall / (precision + recall));
        close(chrf("abab", "ab"), chrf("ab", "abab"));
        assert!(chrf("double the last letter", "the last letter is doubled") > 0.6);
        assert!(chrf("double the last letter", "go into the kitchen") < UNLIKE);
    }

    #[test]
    fn means_are_over_pairs_and_intervals_over_executions() {
        let three =
            vec![said(1, "aaa", Some((1, true))), said(2, "aaa", Some((1, true))), said(3, "aaa", Some((2, false)))];
        let two = vec![said(1, "bbb", Some((7, true))), said(2, "ccc", Some((7, false)))];
        let alone = vec![said(1, "only one", None)];
        let found = agreement(&[three.clone(), two.clone(), alone]);
        let alike = found.alike.unwrap();
        // Pairs: alike, not, not; and alike.
        close(alike.value, 2.0 / 4.0);
        assert_eq!((alike.n, alike.executions), (4, 2));
        assert!(alike.low <= alike.value && alike.value <= alike.high);
        close(alike.low, 1.0 / 3.0);
        close(alike.high, 1.0);
        close(found.text.unwrap().value, 3.0 / 4.0);
        let understood = found.understood.unwrap();
        close(understood.value, 3.0 / 5.0);
        assert_eq!(understood.n, 5);
        assert_eq!(agreement(&[three.clone(), two.clone()]), agreement(&[three.clone(), two.clone()]));
        // One teacher: the pairs that they are in.
        let third = with_others(&[three.clone(), two.clone()], TeacherId(3));
        assert_eq!(third.alike.unwrap(), Mean { value: 0.0, low: 0.0, high: 1.0, n: 2, executions: 1 });
        assert!(disagree(&three) && !disagree(&two));
    }

    #[test]
    fn without_an_agent_only_texts_are_compared() {
        let unlike = vec![said(1, "aaaa", None), said(2, "bbbb", None)];
        let found = agreement(std::slice::from_ref(&unlike));
        assert!(found.alike.is_none() && found.understood.is_none());
        close(found.text.unwrap().value, 0.0);
        assert!(disagree(&unlike));
        assert!(!disagree(&[said(1, "double the last letter", None), said(2, "doubles the last letter", None)]));
        assert_eq!(agreement(&[]), Agreement::default());
    }
}
