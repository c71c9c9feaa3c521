//! Whether a description repeats the request. Under an execution that did something else, that is probably no description of
//! it, so the person is asked.

/// Words that say nothing of what is done. The article "a" is not among them: in a request it may be a letter.
const LITTLE: [&str; 12] = ["an", "and", "from", "in", "it", "of", "please", "so", "that", "the", "this", "with"];

/// The words of a text in lower case.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Whether `text` has the words of `request`, but for little ones, in any order. A single other word may make another
/// description: `c` for `d`, "left" for "right".
pub(crate) fn repeats(text: &str, request: &str) -> bool {
    let (text, request) = (words(text), words(request));
    if text.is_empty() || request.is_empty() {
        return false;
    }
    let telling = |words: &[String]| {
        let mut telling: Vec<String> = words.iter().filter(|word| !LITTLE.contains(&word.as_str())).cloned().collect();
        telling.sort_unstable();
        telling
    };
    let (said, asked) = (telling(&text), telling(&request));
    if asked.is_empty() { text == request } else { said == asked }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_request_is_told_from_another_description() {
        let request = "Replace every n with the letter 'c'.";
        for copy in [
            request,
            "replace every n with the letter c",
            " replace EVERY n, with letter c",
            "please replace every n with the letter c",
        ] {
            assert!(repeats(copy, request), "{copy}");
        }
        for other in [
            "replace every n with the letter d",
            "replace n with the letter c",
            "",
            "it did nothing",
            "\u{5d4}\u{5d7}\u{5dc}\u{5e3}",
        ] {
            assert!(!repeats(other, request), "{other}");
        }
        assert!(!repeats("turn left and stop at the sofa", "turn right and stop at the sofa"));
        assert!(
            repeats("\u{645}\u{631}\u{62d}\u{628}\u{627}!", "\u{645}\u{631}\u{62d}\u{628}\u{627}"),
            "in any language"
        );
        assert!(!repeats("of the", "in it"));
    }
}
