//! JSON on one line, whatever a reader takes for the end of a line.
//!
//! JSON lets U+2028, U+2029 and U+0085 stand in a string as they are. Python's `str.splitlines`, readers of server-sent
//! events built on it, and some editors take them for ends of lines, and so would cut a line of a JSON-lines file in two.
//! They are written as `\u2028` and so on, which is the same string to whoever parses it. The other characters that such
//! readers split at (vertical tab, form feed, U+001C to U+001E) are control characters, which JSON escapes anyway.

use serde::Serialize;
use serde_json::ser::Formatter;
use std::io::{self, Write};

/// The byte-order mark that some editors put before a UTF-8 text, and that no JSON parser takes.
pub const MARK: &[u8] = b"\xef\xbb\xbf";

/// A text without a byte-order mark before it.
pub fn unmarked(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MARK).unwrap_or(bytes)
}

/// JSON without blanks, in which no string has a character that anybody takes for the end of a line.
#[derive(Clone, Copy, Debug, Default)]
struct OneLine;

impl Formatter for OneLine {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(['\u{85}', '\u{2028}', '\u{2029}']) {
            let (before, from) = rest.split_at(at);
            out.write_all(before.as_bytes())?;
            let separator = from.chars().next().unwrap_or_default();
            write!(out, "\\u{:04x}", u32::from(separator))?;
            rest = &from[separator.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

/// Writes a value as JSON on one line, without the line's end.
///
/// # Errors
/// When it cannot be written, or is not JSON (a key that is no string).
pub fn write<T: Serialize + ?Sized>(out: impl Write, value: &T) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(out, OneLine))
}

/// A value as JSON on one line.
///
/// # Errors
/// When it is not JSON (a key that is no string).
pub fn line<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    let mut bytes = Vec::with_capacity(128);
    write(&mut bytes, value)?;
    // Only whole characters were written.
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The characters at which Python's `str.splitlines` cuts.
    const CUTS: [char; 10] =
        ['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];

    #[test]
    fn nothing_that_cuts_a_line_stands_in_it() {
        let text: String = CUTS.iter().flat_map(|cut| ['a', *cut]).collect();
        let value = serde_json::json!({ text.clone(): [text.clone(), "\u{2028}"] });
        let line = line(&value).unwrap();
        assert!(!line.contains(CUTS), "{line:?}");
        assert!(line.contains("\\u2028") && line.contains("\\u0085"), "{line}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
    }

    #[test]
    fn everything_else_is_as_serde_json_writes_it() {
        let value = serde_json::json!({"text": "ü \"q\" \u{1F600} \u{7f}", "n": [1, 2.5, null, true]});
        assert_eq!(line(&value).unwrap(), value.to_string());
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in ".*") {
            let line = line(&text).unwrap();
            prop_assert!(!line.contains(CUTS));
            prop_assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
        }
    }
}
