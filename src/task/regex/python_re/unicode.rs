//! Letters, digits, blanks and letter case as Python 3.11 sees them.

use super::unicode_tables::{ALIKE, CASED, DIGIT, LOWER, SPACE, UPPER, WORD};

/// The classes behind `\d`, `\s` and `\w`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Digit,
    Space,
    Word,
}

/// Whether a class holds a character; `ascii` is the `(?a)` flag.
pub(super) fn in_class(class: Class, c: u32, ascii: bool) -> bool {
    if c < 128 {
        let byte = c as u8;
        return match class {
            Class::Digit => byte.is_ascii_digit(),
            // Beyond tab, line feed and so on, the four separators 0x1c to 0x1f are blanks, but not under (?a).
            Class::Space => matches!(byte, 9..=13 | 32) || (!ascii && (0x1c..=0x1f).contains(&byte)),
            Class::Word => byte.is_ascii_alphanumeric() || byte == b'_',
        };
    }
    !ascii
        && match class {
            Class::Digit => in_ranges(&DIGIT, c).is_some(),
            Class::Space => in_ranges(&SPACE, c).is_some(),
            Class::Word => in_ranges(&WORD, c).is_some(),
        }
}

/// The first of the run that holds `c`.
fn in_ranges(ranges: &[(u32, u32)], c: u32) -> Option<u32> {
    let at = ranges.partition_point(|(_, last)| *last < c);
    ranges.get(at).filter(|(first, _)| *first <= c).map(|(first, _)| *first)
}

/// Simple lower case of one character.
pub(super) fn lower(c: u32, ascii: bool) -> u32 {
    if c < 128 || ascii {
        return if (65..=90).contains(&c) { c + 32 } else { c };
    }
    shifted(&LOWER, c)
}

/// First character of the upper case of one character.
pub(super) fn upper(c: u32) -> u32 {
    shifted(&UPPER, c)
}

fn shifted(runs: &[(u32, u32, u32, i32)], c: u32) -> u32 {
    let at = runs.partition_point(|run| run.1 < c);
    match runs.get(at) {
        Some((first, _, step, add)) if *first <= c && (c - first).is_multiple_of(*step) => c.wrapping_add_signed(*add),
        _ => c,
    }
}

/// Whether a character has another case.
pub(super) fn is_cased(c: u32, ascii: bool) -> bool {
    if c < 128 || ascii {
        return c < 128 && (c as u8).is_ascii_alphabetic();
    }
    in_ranges(&CASED, c).is_some()
}

/// Other lower-case characters that match a lower-case character when case is ignored.
pub(super) fn alike(c: u32) -> impl Iterator<Item = u32> {
    let from = ALIKE.partition_point(|(a, _)| *a < c);
    ALIKE[from..].iter().take_while(move |(a, _)| *a == c).map(|(_, b)| *b)
}

/// All characters whose lower case is `c`, without `c` itself.
pub(super) fn upper_of(c: u32, ascii: bool) -> impl Iterator<Item = u32> {
    LOWER.iter().filter_map(move |(first, last, step, add)| {
        let upper = c.checked_add_signed(-*add)?;
        let fits =
            *first <= upper && upper <= *last && (upper - first).is_multiple_of(*step) && (!ascii || upper < 128);
        fits.then_some(upper)
    })
}

/// The value of a text by Python's `int()`, if it is not negative; numbers too large for `u64` become its maximum.
pub(super) fn python_int(text: &str) -> Option<u64> {
    let text = text.trim_matches(|c: char| in_class(Class::Space, c.into(), false));
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mut value, mut after_digit) = (0u64, false);
    for c in digits.chars() {
        if c == '_' {
            if !after_digit {
                return None;
            }
            after_digit = false;
            continue;
        }
        let digit = (u32::from(c) - in_ranges(&DIGIT, c.into())?) % 10;
        value = value.saturating_mul(10).saturating_add(digit.into());
        after_digit = true;
    }
    (after_digit && (!negative || value == 0)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_reach_beyond_ascii_unless_told_otherwise() {
        for (c, class) in [('é', Class::Word), ('٣', Class::Digit), ('\u{2003}', Class::Space)] {
            assert!(in_class(class, c.into(), false), "{c}");
            assert!(!in_class(class, c.into(), true), "{c}");
        }
        assert!(!in_class(Class::Word, '\u{345}'.into(), false), "a combining mark is no letter to Python");
    }

    #[test]
    fn case_goes_both_ways() {
        assert_eq!(lower(0xc9, false), 0xe9, "É");
        assert_eq!(lower(0xc9, true), 0xc9, "É is no ASCII letter");
        assert_eq!(lower(75, true), 107, "K");
        assert!(upper_of('k'.into(), false).any(|c| c == 0x212a), "the Kelvin sign lower-cases to k");
        assert!(alike('s'.into()).any(|c| c == 0x17f), "long s is alike to s");
    }

    #[test]
    fn numbers_are_read_as_python_reads_them() {
        for (text, value) in [
            ("12", Some(12)),
            (" +1_0 ", Some(10)),
            ("-0", Some(0)),
            ("-1", None),
            ("1__0", None),
            ("_1", None),
            ("1_", None),
            ("", None),
            ("٣", Some(3)),
        ] {
            assert_eq!(python_int(text), value, "{text:?}");
        }
    }
}
