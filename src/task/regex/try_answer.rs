//! The answer of the box in which the agent is tried: all words in one sentence.

use crate::family::TryAnswer;

/// "a, b and c".
fn joined(parts: &[String]) -> String {
    match parts {
        [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        parts => parts.concat(),
    }
}

/// Parts that are named where there are more than three: the rest stands in the list below the sentence, and is only counted.
const NAMED: usize = 2;

/// The parts as a sentence names them.
fn some(mut parts: Vec<String>) -> Vec<String> {
    if parts.len() > NAMED + 1 {
        let more = parts.split_off(NAMED).len();
        parts.push(format!("{more} more words"));
    }
    parts
}

/// The sentence about words, each with what would become of it.
pub(super) fn answer<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> TryAnswer {
    let (mut changed, mut kept) = (Vec::new(), Vec::new());
    for (before, after) in pairs {
        match after {
            _ if before == after => kept.push(format!("“{before}”")),
            "" => changed.push(format!("“{before}” to nothing at all")),
            _ => changed.push(format!("“{before}” to “{after}”")),
        }
    }
    let as_is = if kept.len() == 1 { "as it is" } else { "as they are" };
    let (changed, kept) = (some(changed), some(kept));
    let sentence = match (changed.as_slice(), kept.as_slice()) {
        ([], kept) => format!("It would leave {} {as_is}.", joined(kept)),
        (changed, []) => format!("It would change {}.", joined(changed)),
        (changed, kept) => format!("It would change {}, and leave {} {as_is}.", joined(changed), joined(kept)),
    };
    TryAnswer { sentence, steps: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_with_what_would_become_of_them() {
        let told = |pairs: &[(&'static str, &'static str)]| answer(pairs.iter().copied()).sentence;
        assert_eq!(
            told(&[("castle", "wastle"), ("cat", ""), ("sun", "sun")]),
            "It would change “castle” to “wastle” and “cat” to nothing at all, and leave “sun” as it is."
        );
        assert_eq!(told(&[("a", "b")]), "It would change “a” to “b”.");
        let five = [("a", "x"), ("b", "y"), ("c", "z"), ("d", "w"), ("e", "v")];
        assert_eq!(told(&five), "It would change “a” to “x”, “b” to “y” and 3 more words.");
        assert_eq!(told(&five[..3]), "It would change “a” to “x”, “b” to “y” and “c” to “z”.");
        assert_eq!(told(&[("a", "a"), ("b", "b")]), "It would leave “a” and “b” as they are.");
    }
}
