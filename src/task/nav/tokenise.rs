//! What a person typed about a walk, as the tokens that the models read.

/// The tokens of a text: lower case; a token is a maximal run of letters, digits and `_`, a run of full stops, or one
/// other mark. White space separates.
pub fn tokenise(text: &str) -> Vec<String> {
    #[derive(PartialEq, Eq, Clone, Copy)]
    enum Kind {
        Word,
        Stops,
        Mark,
    }
    let mut tokens: Vec<String> = Vec::new();
    let mut open: Option<Kind> = None;
    for c in text.chars().flat_map(char::to_lowercase) {
        let kind = match c {
            _ if c.is_whitespace() => {
                open = None;
                continue;
            }
            '.' => Kind::Stops,
            _ if c.is_alphanumeric() || c == '_' => Kind::Word,
            _ => Kind::Mark,
        };
        match tokens.last_mut() {
            Some(token) if kind != Kind::Mark && open == Some(kind) => token.push(c),
            _ => tokens.push(c.to_string()),
        }
        open = Some(kind);
    }
    tokens
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
