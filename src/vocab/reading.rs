//! The reading of texts in any script, before a family cuts them into tokens. What is stored and exported stays as it was typed.
//!
//! ASCII is read as it stands. Of everything else:
//!
//! - a letter counts the same however it was put together: `é` and `e` with an accent behind it, a syllable of Hangul and its
//!   letters, half and full width (NFC, and NFKC for forms of another width);
//! - characters that nobody sees (joiners, marks of direction, variation selectors) separate nothing and are left out. The space
//!   without a width is a space: scripts that are written without blanks use it between words;
//! - scripts that are written without blanks are cut at the word bounds of UAX 29: into characters, or syllables for Tibetan. No
//!   dictionary finds their words, since its next edition would change what a resumed run reads.

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup, LineBreak, Script};
use icu_properties::{CodePointMapData, CodePointSetData};
use std::borrow::Cow;
use unicode_segmentation::UnicodeSegmentation;

/// The space without a width.
const ZERO_WIDTH_SPACE: char = '\u{200b}';

/// A text as it is read.
pub fn as_read(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let changes = |c: char| ignorable.contains(c) || is_other_width(c);
    let compose = ComposingNormalizerBorrowed::new_nfc();
    if !text.contains(changes) {
        return compose.normalize(text);
    }
    let widths = ComposingNormalizerBorrowed::new_nfkc();
    let mut read = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ZERO_WIDTH_SPACE => read.push(' '),
            c if ignorable.contains(c) => {}
            c if is_other_width(c) => read.push_str(&widths.normalize(c.encode_utf8(&mut [0; 4]))),
            c => read.push(c),
        }
    }
    Cow::Owned(compose.normalize(&read).into_owned())
}

/// Whether a character is a form of another one in full or half width.
fn is_other_width(c: char) -> bool {
    matches!(c, '\u{ff01}'..='\u{ffee}')
}

/// Whether a character belongs to a script that is written without blanks between words.
pub fn is_unspaced(c: char) -> bool {
    // Nothing before Thai is.
    if c < '\u{e00}' {
        return false;
    }
    let script = CodePointMapData::<Script>::new().get(c);
    [Script::Han, Script::Hiragana, Script::Katakana, Script::Bopomofo, Script::Tibetan, Script::Yi].contains(&script)
        // Thai, Lao, Khmer, Burmese and other scripts of South-East Asia.
        || CodePointMapData::<LineBreak>::new().get(c) == LineBreak::ComplexContext
        // The mark of long vowels and the one that repeats a character.
        || matches!(c, 'ー' | '々')
}

/// Whether a character is a mark on the one before it: an accent, a vowel sign, a tone.
pub fn is_combining(c: char) -> bool {
    !c.is_ascii() && GeneralCategoryGroup::Mark.contains(CodePointMapData::<GeneralCategory>::new().get(c))
}

/// Whether a character beyond ASCII separates words. The marks of Hebrew abbreviations stand within words.
pub fn is_punctuation(c: char) -> bool {
    !c.is_ascii()
        && !matches!(c, '\u{5f3}' | '\u{5f4}')
        && GeneralCategoryGroup::Punctuation.contains(CodePointMapData::<GeneralCategory>::new().get(c))
}

/// Whether all letters are of the Latin alphabet.
pub fn is_latin(text: &str) -> bool {
    text.is_ascii() || text.chars().all(|c| c.is_ascii() || CodePointMapData::<Script>::new().get(c) == Script::Latin)
}

/// The words of a run of letters: the run itself, or its parts where it has letters of a script that is written without blanks.
pub fn words(run: &str) -> impl Iterator<Item = &str> {
    let unspaced = run.contains(is_unspaced);
    let whole = (!unspaced).then_some(run);
    let parts = unspaced.then(|| run.split_word_bounds()).into_iter().flatten();
    whole.into_iter().chain(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_letter_counts_the_same_however_it_was_put_together() {
        for (typed, read) in [
            ("cafe\u{301}", "café"),
            ("\u{1112}\u{1161}\u{11ab}", "한"),
            ("ｶﾞｯｺｳ", "ガッコウ"),
            ("ｎ，ｃ！", "n,c!"),
            ("a\u{200d}b\u{202e}c\u{2069}\u{feff}\u{ad}d\u{fe0f}\u{e0041}", "abcd"),
            ("ไป\u{200b}กิน", "ไป กิน"),
            ("plain", "plain"),
            ("ﬁ ① ²", "ﬁ ① ²"),
        ] {
            assert_eq!(as_read(typed), read, "{typed:?}");
        }
        assert!(matches!(as_read("schön"), Cow::Borrowed("schön")), "nothing is copied that stays");
    }

    #[test]
    fn runs_are_cut_where_no_blanks_are_written() {
        let cut = |run: &'static str| words(run).collect::<Vec<_>>().join(" ");
        for (run, parts) in [
            ("把每个n换成c", "把 每 个 n 换 成 c"),
            ("カタカナをひらがな", "カタカナ を ひ ら が な"),
            ("ที่นี่", "ที่ นี่"),
            ("バター", "バター"),
            ("замените", "замените"),
            ("हिन्दी", "हिन्दी"),
            ("don", "don"),
            ("", ""),
        ] {
            assert_eq!(cut(run), parts, "{run}");
        }
    }

    proptest! {
        #[test]
        fn reading_twice_is_reading_once(text in any::<String>()) {
            let once = as_read(&text).into_owned();
            prop_assert_eq!(as_read(&once).into_owned(), once.clone());
            prop_assert_eq!(words(&once).collect::<String>(), once);
        }
    }
}
