//! Cells of files that people open with a spreadsheet.

use std::borrow::Cow;

/// A cell that no spreadsheet executes: what would be a formula gets an apostrophe, which spreadsheets take for "this is text".
pub fn cell(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_text_and_text_stays() {
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(cell(formula), format!("'{formula}"));
        }
        assert_eq!(cell("it doubled = twice"), "it doubled = twice");
    }
}
