//! Replacement templates: `\1`, `\g<1>`, `\g<name>`, octal and control escapes.

use super::{ReError, compile::Program, parse::is_identifier, unicode};

/// A parsed replacement template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    pub(super) pieces: Vec<Piece>,
}

/// A stretch of text or a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Group(usize),
}

impl Template {
    fn text(&mut self, text: &str) {
        if let Some(Piece::Text(last)) = self.pieces.last_mut() {
            last.push_str(text);
        } else {
            self.pieces.push(Piece::Text(text.to_owned()));
        }
    }

    fn char(&mut self, c: char) {
        self.text(c.encode_utf8(&mut [0; 4]));
    }
}

pub(super) fn parse(replacement: &str, program: &Program) -> Result<Template, ReError> {
    let fail = |reason| Err(ReError::Syntax(reason));
    let mut template = Template::default();
    let mut rest = replacement;
    loop {
        let Some(at) = rest.find('\\') else {
            if !rest.is_empty() {
                template.text(rest);
            }
            return Ok(template);
        };
        if at > 0 {
            template.text(&rest[..at]);
        }
        let mut chars = rest[at + 1..].chars();
        let Some(c) = chars.next() else { return fail("bad escape (end of pattern)") };
        rest = chars.as_str();
        let mut group = None;
        match c {
            'g' => {
                let Some(after) = rest.strip_prefix('<') else { return fail("missing <") };
                let end = end_of_name(after)?;
                let name = &after[..end];
                rest = &after[end + 1..];
                group = Some(if is_identifier(name) {
                    match program.names.get(name) {
                        Some(group) => *group,
                        None => return fail("unknown group name"),
                    }
                } else {
                    match unicode::python_int(name) {
                        None => return fail("bad character in group name"),
                        Some(number) => usize::try_from(number).unwrap_or(usize::MAX),
                    }
                });
            }
            '0' => {
                let digits = rest.bytes().take(2).take_while(|b| is_octal(*b)).count();
                let code = octal(&rest.as_bytes()[..digits]);
                rest = &rest[digits..];
                template.char(latin1(code));
            }
            '1'..='9' => {
                let first = c as u8;
                let bytes = rest.as_bytes();
                match bytes.first().copied().filter(u8::is_ascii_digit) {
                    None => group = Some((first - b'0').into()),
                    Some(second) => {
                        let third = bytes.get(1).copied();
                        if is_octal(first) && is_octal(second) && third.is_some_and(is_octal) {
                            let code = octal(&[first, second, third.unwrap_or(b'0')]);
                            if code > 0o377 {
                                return fail("octal escape value out of range");
                            }
                            template.char(latin1(code));
                            rest = &rest[2..];
                        } else {
                            group = Some(usize::from(first - b'0') * 10 + usize::from(second - b'0'));
                            rest = &rest[1..];
                        }
                    }
                }
            }
            'a' => template.char('\x07'),
            'b' => template.char('\x08'),
            'f' => template.char('\x0c'),
            'n' => template.char('\n'),
            'r' => template.char('\r'),
            't' => template.char('\t'),
            'v' => template.char('\x0b'),
            '\\' => template.char('\\'),
            c if c.is_ascii_alphabetic() => return fail("bad escape"),
            c => {
                template.char('\\');
                template.char(c);
            }
        }
        if let Some(group) = group {
            if group > program.groups {
                return fail("invalid group reference");
            }
            template.pieces.push(Piece::Group(group));
        }
    }
}

/// Byte position of the `>` that ends a group name. A backslash takes the character after it along.
fn end_of_name(text: &str) -> Result<usize, ReError> {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '>' if at == 0 => return Err(ReError::Syntax("missing group name")),
            '>' => return Ok(at),
            '\\' => {
                chars.next();
            }
            _ => {}
        }
    }
    Err(ReError::Syntax("missing >, unterminated name"))
}

fn is_octal(b: u8) -> bool {
    (b'0'..=b'7').contains(&b)
}

fn octal(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |n, b| n * 8 + u32::from(b - b'0'))
}

fn latin1(code: u32) -> char {
    char::from((code & 0xff) as u8)
}
