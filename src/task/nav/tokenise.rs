//! Tokens of descriptions of walks, as the models read them.

use crate::vocab::reading;

/// The tokens of a text as it is read ([`reading`]): lower case; a token is a maximal run of letters with the marks on them, digits
/// and `_`, a run of full stops, or one other mark. White space separates. Runs of scripts that are written without blanks are
/// cut further.
pub fn tokenise(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    each_token(text, |token| tokens.push(token.to_owned()));
    tokens
}

/// [`tokenise`] without a string for each token: a simulated teacher's words are read by the million.
pub fn each_token(text: &str, mut token: impl FnMut(&str)) {
    #[derive(PartialEq, Eq, Clone, Copy)]
    enum Kind {
        Space,
        Word,
        Stops,
        Mark,
    }
    let ascii = text.is_ascii();
    let lower = match ascii {
        true => text.to_ascii_lowercase(),
        false => reading::as_read(text).chars().flat_map(char::to_lowercase).collect(),
    };
    let mut tell = |kind: Kind, found: &str| match kind {
        Kind::Space => {}
        Kind::Word if !ascii => reading::words(found).for_each(&mut token),
        _ => token(found),
    };
    let (mut from, mut open) = (0, Kind::Space);
    for (at, c) in lower.char_indices() {
        let kind = match c {
            'a'..='z' | '0'..='9' | '_' => Kind::Word,
            ' ' => Kind::Space,
            '.' => Kind::Stops,
            _ if c.is_whitespace() => Kind::Space,
            _ if c.is_alphanumeric() => Kind::Word,
            _ if open == Kind::Word && reading::is_combining(c) => Kind::Word,
            _ => Kind::Mark,
        };
        if kind != open || kind == Kind::Mark {
            tell(open, &lower[from..at]);
            (from, open) = (at, kind);
        }
    }
    tell(open, &lower[from..]);
}

#[cfg(test)]
mod tests {
    use super::tokenise;

    #[test]
    fn words_stops_and_marks() {
        for (text, tokens) in [
            ("Walk up the stairs.", "walk up the stairs ."),
            ("Go left,then stop...  OK?!", "go left , then stop ... ok ? !"),
            ("the 2nd door_way (don't)", "the 2nd door_way ( don ' t )"),
            ("a..b .", "a .. b ."),
            ("Café\u{a0}\tÄ", "café ä"),
            ("  \n ", ""),
            ("Cafe\u{301}", "café"),
            ("स्थान पर रुकें।", "स्थान पर रुकें ।"),
            ("走到厨房，停下", "走 到 厨 房 , 停 下"),
            ("เดินไปที่ครัว", "เ ดิ น ไ ป ที่ ค รั ว"),
        ] {
            assert_eq!(tokenise(text).join(" "), tokens);
        }
    }
}
