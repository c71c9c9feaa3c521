//! "Did you mean …": the nearest known name to a mistyped one.

/// Least likeness of a name that is suggested.
const NEAR: f64 = 0.6;

/// Weight of the last part of a name (`lambda` of `algorithm.mixing.lambda`).
const PART: f64 = 0.85;

/// The name that somebody most likely meant by `word`; `None` when none is near.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = plain(word);
    let rated = names.into_iter().map(|name| (likeness(&word, &plain(name)), name));
    // Among equally near names the first one counts.
    let best = rated.fold(None, |best: Option<(f64, &str)>, one| match best {
        Some(best) if best.0 >= one.0 => Some(best),
        _ => Some(one),
    });
    best.filter(|(near, _)| *near >= NEAR).map(|(_, name)| name)
}

/// ` (did you mean `name`?)`, or nothing: for the middle of a sentence.
pub fn did_you_mean<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, names).map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

/// The suggestion for a message of serde about an unknown name, which lists the known ones: ``unknown field `hiden`,
/// expected one of `hidden`, `horizon` ``.
pub fn in_message(message: &str) -> String {
    let Some((_, rest)) = message.split_once("unknown ") else { return String::new() };
    let mut names = rest.split('`').skip(1).step_by(2);
    let Some(word) = names.next() else { return String::new() };
    did_you_mean(word, names)
}

/// A name without the differences that people mix up: case, hyphens and underscores.
fn plain(name: &str) -> String {
    name.to_lowercase().replace(['-', ' '], "_")
}

/// The likeness of a word to a name, from 0 to 1. Where names have parts (`regex/tiny`, `algorithm.mixing.lambda`), the last part tells
/// them apart, and what they share before it says little; somebody may leave it out or err there.
fn likeness(word: &str, name: &str) -> f64 {
    let near = strsim::normalized_damerau_levenshtein;
    let last = |text: &str| text.rsplit(['.', '/']).next().unwrap_or_default().to_owned();
    let (word_ends, name_ends) = (last(word), last(name));
    let whole = near(word, name);
    match (word_ends == word, name_ends == name) {
        (true, true) => whole,
        (false, false) => PART * near(&word_ends, &name_ends) + (1.0 - PART) * whole,
        // The parts may also be joined by another sign, as in `algorithm_batch`.
        _ => whole.max(PART * near(&word_ends, &name_ends)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_what_was_meant_and_other_words_nothing() {
        let names = ["regex/small", "regex/tiny", "regex/paper", "nav/small", "nav/tiny"];
        for (slip, meant) in [
            ("tinny", Some("regex/tiny")),
            ("regex/tinny", Some("regex/tiny")),
            ("nav/tinny", Some("nav/tiny")),
            ("Papre", Some("regex/paper")),
            ("huge", None),
            ("", None),
        ] {
            assert_eq!(nearest(slip, names), meant, "{slip}");
        }
        let keys = ["algorithm.batch", "algorithm.mixing.lambda", "teacher.models", "schedule.episodes"];
        for (slip, meant) in [
            ("algorithm.lambda", Some("algorithm.mixing.lambda")),
            ("episodes", Some("schedule.episodes")),
            ("algorithm.bach", Some("algorithm.batch")),
            ("teacher-models", Some("teacher.models")),
            ("colour", None),
        ] {
            assert_eq!(nearest(slip, keys), meant, "{slip}");
        }
    }

    #[test]
    fn messages_about_unknown_names_are_read() {
        let message = "unknown variant `dager`, expected one of `adel`, `dagger`, `reinforce-binary`";
        assert_eq!(in_message(message), " (did you mean `dagger`?)");
        assert_eq!(in_message("unknown field `hiden`, expected `hidden`"), " (did you mean `hidden`?)");
        assert_eq!(in_message("invalid type: string \"lots\", expected usize"), "");
        assert_eq!(in_message("unknown variant `xyz`, expected one of `adel`, `dagger`"), "");
    }
}
