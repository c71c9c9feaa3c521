//! Tokens of typed descriptions, as the agent reads them.
//!
//! Requests are lower case; punctuation is split off; quotes and full stops are dropped; a letter that is meant as a
//! letter is a slot: `[ x ]`, or `[ x y ]` for several, one token each. People write letters in many ways, and the hard
//! one is "a", which is mostly an article. What is taken as a letter:
//!
//! - anything of up to four letters in square brackets; one or two letters (or a longer string that is no known word) in
//!   quotes of any kind, asterisks or underscores; one letter in parentheses;
//! - a single letter standing alone, except "a" and "i", and except an "s" after an apostrophe or a slot ("two e's");
//! - "a" after "letter", "letters", "vowel", "an", "each", "every", "all", "any", "no" or an arithmetic sign; in upper
//!   case within a sentence that is not all upper case; or when what follows cannot follow an article (nothing,
//!   punctuation, "with", "to", "is", "becomes" and the like: "replace a with e", "add an e after every a"). Before
//!   another letter it is an article ("add a k"), unless capitals tell otherwise;
//! - "i" unless it begins a clause in the first person ("i think");
//! - a short string that is no known word: two letters, or three where a letter is expected ("ends in ing"). After
//!   "all", "every" and the like a second letter s is the plural ("all the es");
//! - single letters in a row are one slot ("with c h").
//!
//! All of this is about the Latin alphabet. In other scripts words of one to three letters are words, and only what is marked as
//! letters is a slot; a Latin letter in the midst of a script that is written without blanks is one, too ("把每个n换成c"). How
//! such scripts are read, and what counts as the same letter, is said by [`crate::vocab::reading`].
//!
//! The result never contains the vocabularies' own symbols (`<`, `>`, `<PAD>`, `<UNK>`), whatever was typed.

use crate::vocab::reading;

/// Words that can follow the letter "a" but not the article "a".
const AFTER_LETTER: &str = "with to into by for from in at on of and or is are was were be becomes become became turns turn turned changes \
    changed gets get goes go comes appears appear occurs shows follows followed precedes preceded replaces \
    replaced stands instead before after behind between everywhere wherever whenever when where if then as twice \
    again also too there that has should must will can means but unless only just it up next until s";

/// Words after which "a" is a letter whatever follows.
const BEFORE_LETTER: &str = "letter letters vowel vowels an each every all any no + = -> character";

/// Words after which a string ending in s is a plural ("all the es").
const BEFORE_PLURAL: &str = "all the every any each these those two both of";

/// Verbs that people use of themselves: "i" before one of these is a pronoun.
const AFTER_PRONOUN: &str = "think thought would believe guess see saw am m ve d ll have had just mean want can cannot could will do don \
    did was see noticed notice say suppose assume need like know";

/// Words after which a bare "s" was joined by an apostrophe: "it s", "the word s first letter".
const CONTRACTED: &str = "it that there here what where who he she let word";

/// Words that "t" is a contracted "not" after.
const NEGATED: &str = "don doesn didn isn aren wasn weren won can couldn shouldn";

/// Words after which a short unknown string is letters.
const BEFORE_LETTERS: &str = "with to into by add adds added insert put letters in append ending ends starts after before of for replace \
    change remove delete write becomes prefix suffix every each all any an a -> = +";

/// Short English words that are words even when the vocabulary lacks them.
const SHORT_WORDS: &str = "am an as at be by do go he if in is it me my no of oh ok on or so to up us vs we ie eg hi id pm re ll ve nd rd \
    st th nt all and any are but can cut did end few for get got had has her him his how its let lot may new nor \
    not now odd off old one our out own put ran run say see set she six ten the too top try two use was way who \
    why yes yet you teh adn etc wit mid per via";

/// Quotation marks, and what people use like them.
const QUOTES: &[char] = &['\'', '"', '`', '´', '‘', '’', '‚', '“', '”', '„', '«', '»', '‹', '›', '*', '_'];

fn is_one_of(word: &str, list: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

/// A stretch of what was typed.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    /// A word in lower case; whether it was all upper case; whether an apostrophe joins it to the one before; whether it was cut
    /// out of a script that is written without blanks.
    Word { text: String, upper: bool, joined: bool, cut: bool },
    /// Letters marked as such by brackets or quotes.
    Slot(String),
    /// Punctuation that is kept.
    Mark(String),
}

/// Splits what a person typed into request tokens; `known` says whether the vocabulary has a word.
pub fn tokenise(text: &str, known: &dyn Fn(&str) -> bool) -> Vec<String> {
    let chars: Vec<char> = reading::as_read(text).chars().collect();
    let pieces = scan(&chars, known);
    let shouting = is_shouting(&pieces);
    let slots: Vec<Option<String>> = (0..pieces.len()).map(|at| letters_at(&pieces, at, shouting, known)).collect();
    let mut tokens: Vec<String> = Vec::with_capacity(pieces.len() + 8);
    let mut at = 0;
    while at < pieces.len() {
        let Some(letters) = &slots[at] else {
            match &pieces[at] {
                Piece::Word { text, .. } | Piece::Mark(text) | Piece::Slot(text) => tokens.push(text.clone()),
            }
            at += 1;
            continue;
        };
        let mut letters = letters.clone();
        let plural = letters.ends_with('\0');
        if plural {
            letters.pop();
        }
        let bare = |at: usize| matches!(&pieces[at], Piece::Word { text, .. } if text.chars().count() == 1);
        while !plural && bare(at) && at + 1 < pieces.len() && bare(at + 1) {
            let Some(more) = &slots[at + 1] else { break };
            letters.push_str(more);
            at += 1;
        }
        tokens.push("[".into());
        tokens.extend(letters.chars().map(String::from));
        tokens.push("]".into());
        if plural {
            tokens.push("s".into());
        }
        at += 1;
    }
    tokens
}

/// Whether everything was typed in capitals, so that capitals mean nothing.
fn is_shouting(pieces: &[Piece]) -> bool {
    let mut words = pieces.iter().filter_map(|piece| match piece {
        Piece::Word { text, upper, .. } if text.chars().count() > 1 && text.chars().any(char::is_alphabetic) => {
            Some(*upper)
        }
        _ => None,
    });
    words.next().is_some_and(|first| first && words.all(|upper| upper))
}

/// The letters that a piece stands for, if it is a slot. A `\0` at the end says that a plural s follows it.
fn letters_at(pieces: &[Piece], at: usize, shouting: bool, known: &dyn Fn(&str) -> bool) -> Option<String> {
    let (text, upper, joined, cut) = match &pieces[at] {
        Piece::Slot(letters) => return Some(letters.clone()),
        Piece::Mark(_) => return None,
        Piece::Word { text, upper, joined, cut } => (text.as_str(), *upper && !shouting, *joined, *cut),
    };
    let length = text.chars().count();
    if length > 3 || !text.chars().all(char::is_alphabetic) || !reading::is_latin(text) {
        return None;
    }
    if cut {
        return (length == 1 || !(known(text) || is_one_of(text, SHORT_WORDS))).then(|| text.to_owned());
    }
    let previous = at.checked_sub(1).map(|at| &pieces[at]);
    let before = previous.map_or("", as_text);
    let next = pieces.get(at + 1);
    let after = next.map_or("", as_text);
    let after_slot = matches!(previous, Some(Piece::Slot(_)))
        || matches!(previous, Some(Piece::Word { text, .. }) if text.chars().count() == 1 && text != "a");
    let in_sentence = at > 0;
    match (text, length) {
        ("s", 1) if joined || (after_slot && !upper) => None,
        // "it s" and "don t", where the apostrophe was not typed or is gone already.
        ("s", 1) if !upper && is_one_of(before, CONTRACTED) => None,
        ("t", 1) if !upper && before.ends_with('n') && is_one_of(before, NEGATED) => None,
        (_, 1) if joined => None,
        ("a", 1) => {
            let next_is_letter = match next {
                Some(Piece::Slot(_)) => true,
                Some(Piece::Word { text, joined: false, .. }) => text.chars().count() == 1,
                _ => false,
            };
            // No article of English stands beside a script that is written without blanks.
            let beside_cut = [previous, next].into_iter().flatten().any(|p| matches!(p, Piece::Word { cut: true, .. }));
            let article = if (upper && in_sentence) || beside_cut {
                false
            } else if next_is_letter {
                true
            } else if is_one_of(before, BEFORE_LETTER) {
                false
            } else {
                matches!(next, Some(Piece::Word { .. })) && !is_one_of(after, AFTER_LETTER)
            };
            (!article).then(|| text.to_owned())
        }
        ("i", 1) => {
            let starts_clause =
                matches!(before, "" | "," | ";" | ":" | "(" | "-" | "and" | "but" | "as" | "what" | "that");
            (!(starts_clause && is_one_of(after, AFTER_PRONOUN))).then(|| text.to_owned())
        }
        (_, 1) => Some(text.to_owned()),
        (_, 2) if known(text) || is_one_of(text, SHORT_WORDS) || joined => None,
        (_, 2) if !upper && text.ends_with('s') && is_one_of(before, BEFORE_PLURAL) => {
            Some(text.chars().take(1).chain(std::iter::once('\0')).collect())
        }
        (_, 2) => Some(text.to_owned()),
        _ => {
            let expected = upper || is_one_of(before, BEFORE_LETTERS);
            let ends = next.is_none() || matches!(next, Some(Piece::Mark(_))) || is_one_of(after, AFTER_LETTER);
            (expected && ends && !joined && !known(text) && !is_one_of(text, SHORT_WORDS)).then(|| text.to_owned())
        }
    }
}

fn as_text(piece: &Piece) -> &str {
    match piece {
        Piece::Word { text, .. } | Piece::Mark(text) | Piece::Slot(text) => text,
    }
}

fn scan(chars: &[char], known: &dyn Fn(&str) -> bool) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    let mut joined = false;
    while at < chars.len() {
        let c = chars[at];
        if is_word(c) {
            let end = at + chars[at..].iter().take_while(|c| is_word(**c)).count();
            let typed: String = chars[at..end].iter().collect();
            let cut = typed.contains(reading::is_unspaced);
            for word in reading::words(&typed) {
                let upper = word.contains(char::is_uppercase) && !word.contains(char::is_lowercase);
                pieces.push(Piece::Word { text: word.to_lowercase(), upper, joined, cut });
                joined = false;
            }
            at = end;
            continue;
        }
        if matches!(c, '[' | '(' | '「' | '『') || QUOTES.contains(&c) {
            let apostrophe = at > 0 && is_word(chars[at - 1]) && chars.get(at + 1).is_some_and(|c| is_word(*c));
            if apostrophe && matches!(c, '\'' | '’' | '´' | '`') {
                joined = true;
                at += 1;
                continue;
            }
            if let Some((letters, end)) = slot(chars, at, known) {
                pieces.push(Piece::Slot(letters));
                joined = chars.get(end).is_some_and(|c| matches!(c, '\'' | '’'));
                at = end;
                continue;
            }
        }
        joined = false;
        if let Some(length) = arrow(&chars[at..]) {
            pieces.push(Piece::Mark("->".into()));
            at += length;
            continue;
        }
        if matches!(c, '–' | '—' | '−') {
            pieces.push(Piece::Mark("-".into()));
        } else if is_kept_mark(c) {
            pieces.push(Piece::Mark(c.into()));
        }
        at += 1;
    }
    pieces
}

/// Letters in brackets or quotes beginning at `at`, and the position after them.
fn slot(chars: &[char], at: usize, known: &dyn Fn(&str) -> bool) -> Option<(String, usize)> {
    let open = chars[at];
    let closes = |c: char| match open {
        '[' => c == ']',
        '(' => c == ')',
        '「' => c == '」',
        '『' => c == '』',
        '*' | '_' | '`' => c == open || (open == '`' && c == '\''),
        _ => QUOTES.contains(&c),
    };
    let inner = &chars[at + 1..(at + 16).min(chars.len())];
    let length = inner.iter().position(|c| closes(*c))?;
    let mut letters = String::new();
    let mut separated = false;
    for c in &inner[..length] {
        if c.is_alphabetic() {
            letters.extend(c.to_lowercase().filter(|c| c.is_alphabetic()));
        } else if matches!(c, ' ' | ',' | '.') {
            separated = true;
        } else if !(open == '[' && QUOTES.contains(c)) {
            return None;
        }
    }
    let count = letters.chars().count();
    let after = at + 1 + length + 1;
    let fits = match open {
        '[' | '「' | '『' => (1..=4).contains(&count),
        '(' => count == 1,
        // A quote that closes right before a word was an apostrophe or opens something else.
        _ if chars.get(after).is_some_and(|c| is_word(*c) && *c != 's') => false,
        _ if separated => count == 1 || (count == 2 && !known(&letters)),
        _ => matches!(count, 1 | 2) || (matches!(count, 3 | 4) && !known(&letters)),
    };
    fits.then_some((letters, after))
}

/// Length of an arrow at the beginning.
fn arrow(chars: &[char]) -> Option<usize> {
    match chars {
        ['→' | '⇒' | '➔' | '⟶' | '⟹' | '➡', ..] => Some(1),
        ['-' | '=' | '–' | '—', rest @ ..] => {
            let more = rest.iter().take_while(|c| matches!(c, '-' | '=')).count();
            (rest.get(more) == Some(&'>')).then_some(more + 2)
        }
        _ => None,
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || (!c.is_ascii() && !c.is_whitespace() && !c.is_control() && !is_mark_beyond_ascii(c))
}

/// Punctuation and invisible characters beyond ASCII; symbols and combining marks count as parts of words.
fn is_mark_beyond_ascii(c: char) -> bool {
    reading::is_punctuation(c) || is_symbol_between_words(c)
}

fn is_symbol_between_words(c: char) -> bool {
    matches!(c,
        '\u{a0}'..='\u{bf}' | '×' | '÷' | '\u{2000}'..='\u{206f}' | '\u{2190}'..='\u{21ff}' | '\u{2794}' | '\u{27a1}'
        | '\u{27f6}' | '\u{27f9}' | '−' | '\u{2e00}'..='\u{2e7f}' | '\u{3000}'..='\u{303f}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ff00}'..='\u{ff0f}' | '\u{fff0}'..='\u{ffff}')
        && !c.is_alphanumeric()
}

fn is_kept_mark(c: char) -> bool {
    match c {
        '<' | '>' | '.' | '\\' | '[' | ']' | '|' | '^' | '~' | '{' | '}' => false,
        c if QUOTES.contains(&c) => false,
        c if c.is_ascii() => c.is_ascii_punctuation(),
        c => matches!(c, '…' | '¿' | '¡' | '×' | '÷' | '、' | '。'),
    }
}
