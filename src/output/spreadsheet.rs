//! Cells of files that people open with a spreadsheet.

use std::borrow::Cow;

/// Whether a spreadsheet might execute the text, or this is such a text after apostrophes: those get one more, so that taking one
/// away always gives the text back.
fn is_guarded(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])
}

/// A cell that no spreadsheet executes: what would be a formula gets an apostrophe, which spreadsheets take for "this is text".
pub fn cell(text: &str) -> Cow<'_, str> {
    if is_guarded(text) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

/// The text of a [`cell`].
pub fn text(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(text) if is_guarded(cell) => text,
        _ => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn formulas_become_text_and_text_stays() {
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "'=1"] {
            assert_eq!(cell(formula), format!("'{formula}"));
        }
        for plain in ["it doubled = twice", "", "'", "'quoted'"] {
            assert_eq!((cell(plain).as_ref(), text(plain)), (plain, plain));
        }
    }

    proptest! {
        #[test]
        fn every_text_comes_back(typed in "['=+@a\t-]{0,5}") {
            let written = cell(&typed).into_owned();
            prop_assert_eq!(text(&written), typed.as_str());
        }
    }
}
