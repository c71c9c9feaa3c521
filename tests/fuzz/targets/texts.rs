//! Texts: expressions of the word-editing family, tokens, and the reading and writing of descriptions.

use iliad::output::{json, spreadsheet};
use iliad::protocol::Utterance;
use iliad::task::regex::program::{Expression, execute};
use iliad::task::regex::python_re::{OUTPUT_LIMIT, Regex, Scratch};
use iliad::task::{nav, regex};
use iliad::vocab::{SPECIAL, Vocabulary, reading};

/// Pieces of patterns and replacements.
pub const SYNTAX: &[&str] = &[
    "(",
    ")",
    "(?:",
    "(?=",
    "(?!",
    "(?<=",
    "(?<!",
    "(?P<a>",
    "(?P=a)",
    "(?(1)",
    "(?i)",
    "(?i:",
    "(?-s:",
    "(?#",
    "|",
    "*",
    "+",
    "?",
    "*?",
    "++",
    "{2}",
    "{,3}",
    "{1,}",
    "{4000000000}",
    "[",
    "]",
    "[^",
    "-",
    "^",
    "$",
    ".",
    "\\",
    "\\b",
    "\\B",
    "\\A",
    "\\Z",
    "\\w",
    "\\D",
    "\\1",
    "\\2",
    "\\3",
    "\\99",
    "\\g<1>",
    "\\g<a>",
    "\\x41",
    "\\u0130",
    "\\N{DIGIT}",
    "\\0",
    "@",
    "C",
    "V",
    "a",
    "b",
    "İ",
    "ß",
    "\0",
    "()(n)()@c",
    "()((a*)*)()@\\2",
];

/// Pieces of descriptions.
pub const WORDS: &[&str] = &[
    "replace",
    "a",
    "i",
    "s",
    "ch",
    "ing",
    "N",
    "WITH",
    "it's",
    "[",
    "]",
    "(",
    ")",
    "'",
    "\"",
    "‘",
    "’",
    "“",
    "”",
    "「",
    "」",
    "*",
    "_",
    "`",
    "->",
    "→",
    "…",
    "。",
    "\u{200d}",
    "\u{200b}",
    "\u{202e}",
    "\u{301}",
    "\u{1161}",
    "\u{11ab}",
    "字",
    "ไ",
    "ក្",
    "ｎ",
    "ﾞ",
    "İ",
    "👩\u{200d}🚀",
    "\u{e0100}",
    "<PAD>",
    "\0",
    "\u{2028}",
    "=1+1",
    "'",
    "\t",
    ",",
    "\\",
];

fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}

/// A pattern, a replacement and a word with zero bytes between them: compiled and executed as the agent's expressions are.
pub fn expressions(data: &[u8]) {
    let data = &data[..data.len().min(600)];
    let text = text(data);
    let mut parts = text.splitn(3, '\0');
    let (pattern, replacement) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let word: String = parts.next().unwrap_or_default().chars().take(80).collect();
    let mut scratch = Scratch::default();
    if let Ok(regex) = Regex::new(pattern) {
        let length = word.chars().count();
        if let Ok(matches) = regex.matches(&word, &mut scratch) {
            let mut last = 0;
            for (from, to) in matches {
                assert!(last <= from && from <= to && to <= length, "matches lie in the word, one after the other");
                last = to;
            }
        }
        if let Ok(template) = regex.template(replacement)
            && let Ok(written) = regex.sub(&template, &word, &mut scratch)
        {
            assert!(written.len() <= OUTPUT_LIMIT + word.len());
            let again = regex.sub(&template, &word, &mut Scratch::default());
            assert_eq!(again.as_deref(), Ok(&*written), "what is kept between calls changes nothing");
        }
    }
    let expression = format!("{pattern}@{replacement}");
    let written = execute(&expression, &word);
    if let Some(compiled) = Expression::new(&expression)
        && let Some(places) = compiled.replaced(&word, &mut scratch)
    {
        let chars: Vec<char> = word.chars().collect();
        let (mut rebuilt, mut at) = (String::new(), 0);
        for (from, to, new) in places {
            assert!(at <= from && from <= to && to <= chars.len());
            rebuilt.extend(&chars[at..from]);
            rebuilt.push_str(&new);
            at = to;
        }
        rebuilt.extend(&chars[at..]);
        assert!(written.is_none_or(|written| written == rebuilt), "the places that are written anew are all there is");
    }
}

/// The tokens of both families, and the learning of words.
pub fn tokens(data: &[u8]) {
    let text = text(&data[..data.len().min(4_000)]);
    let known = |word: &str| word.len() % 3 == 1;
    let read = regex::tokenise::tokenise(&text, &known);
    let mut open = false;
    for token in &read {
        assert!(!token.is_empty() && !token.contains(char::is_whitespace), "{token:?} in {read:?}");
        assert!(!SPECIAL.contains(&token.as_str()), "{read:?}");
        match token.as_str() {
            "[" => assert!(!std::mem::replace(&mut open, true), "{read:?}"),
            "]" => assert!(std::mem::replace(&mut open, false), "{read:?}"),
            letter => assert!(!open || letter.chars().count() == 1, "{read:?}"),
        }
    }
    assert!(!open, "{read:?}");
    let walked = nav::tokenise::tokenise(&text);
    assert!(walked.iter().all(|token| !token.is_empty() && !token.contains(char::is_whitespace)), "{walked:?}");
    for tokens in [read, walked] {
        let mut words = Vocabulary::new(SPECIAL.map(str::to_owned).to_vec(), 4).unwrap();
        for episode in 0..3 {
            words.read(Utterance { text: &text, episode, teacher: 1 }, &tokens);
            assert!(words.symbols().len() <= words.rows());
        }
        let kept = serde_json::to_string(&words).unwrap();
        assert_eq!(serde_json::from_str::<Vocabulary>(&kept).unwrap(), words);
    }
}

/// A text as the learner reads it, and as files of exports hold it.
pub fn reading(data: &[u8]) {
    let text = text(data);
    let read = reading::as_read(&text);
    assert_eq!(reading::as_read(&read), read, "reading twice is reading once");
    assert_eq!(reading::words(&read).collect::<String>(), read, "nothing is lost where it is cut");
    assert!(!text.is_ascii() || read == text, "ASCII stays");
    assert_eq!(spreadsheet::text(&spreadsheet::cell(&text)), text);
    let line = json::line(&text).unwrap();
    assert!(!line.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']), "{line:?}");
    assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
}
