//! Text in pictures: made safe for XML, and measured without a font.

/// Text for inside an element or an attribute: markup is escaped, characters that XML forbids are left out.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {}
            c => out.push(c),
        }
    }
    out
}

/// About how wide a text is in a system font of `size` CSS pixels; rather too much than too little.
pub(super) fn width_of(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' => 0.3,
            'f' | 't' | 'r' | ' ' | '(' | ')' | '-' => 0.4,
            'm' | 'w' | 'M' | 'W' | '%' => 0.92,
            'A'..='Z' => 0.7,
            '\u{1100}'.. if !('\u{2000}'..='\u{22ff}').contains(&c) => 1.05,
            _ => 0.6,
        })
        .sum();
    // Bold letters and unusual fonts are wider than the common ones.
    1.08 * em * size
}

/// Lines of words no wider than `room`; a word wider than that has a line of its own.
pub(super) fn wrap(text: &str, room: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width_of(line, size) + width_of(word, size) + 0.4 * size <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
