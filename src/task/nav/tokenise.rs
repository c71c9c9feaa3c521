//! Tokens of descriptions of walks, as the models read them.

/// The tokens of a text: lower case; a token is a maximal run of letters, digits and `_`, a run of full stops, or one
/// other mark. White space separates.
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
    let lower =
        if text.is_ascii() { text.to_ascii_lowercase() } else { text.chars().flat_map(char::to_lowercase).collect() };
    let (mut from, mut open) = (0, Kind::Space);
    for (at, c) in lower.char_indices() {
        let kind = match c {
            'a'..='z' | '0'..='9' | '_' => Kind::Word,
            ' ' => Kind::Space,
            '.' => Kind::Stops,
            _ if c.is_whitespace() => Kind::Space,
            _ if c.is_alphanumeric() => Kind::Word,
            _ => Kind::Mark,
        };
        if kind != open || kind == Kind::Mark {
            if open != Kind::Space {
                token(&lower[from..at]);
            }
            (from, open) = (at, kind);
        }
    }
    if open != Kind::Space {
        token(&lower[from..]);
    }
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
        ] {
            assert_eq!(tokenise(text).join(" "), tokens);
        }
    }
}
