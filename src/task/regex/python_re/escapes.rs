//! Escapes and character sets.

use super::parse::{Parser, Result, Token, fail};
use super::syntax::{At, Category, Member, Node, drop_repeated};
use super::unicode;

impl Parser {
    /// `[…]`, after the opening bracket.
    pub fn set(&mut self) -> Result<Node> {
        let negated = self.accept('^');
        let mut members: Vec<Member> = Vec::new();
        loop {
            let Some(token) = self.next() else { return fail("unterminated character set") };
            if token.is(']') && !members.is_empty() {
                break;
            }
            let member = self.set_member(token)?;
            if !self.accept('-') {
                members.push(member);
                continue;
            }
            let Some(end) = self.next() else { return fail("unterminated character set") };
            if end.is(']') {
                members.push(member);
                members.push(Member::One('-'.into()));
                break;
            }
            match (member, self.set_member(end)?) {
                (Member::One(low), Member::One(high)) if low <= high => members.push(Member::Range(low, high)),
                _ => return fail("bad character range"),
            }
        }
        drop_repeated(&mut members);
        Ok(match members[..] {
            [Member::One(c)] if negated => Node::NotLiteral(c),
            [Member::One(c)] => Node::Literal(c),
            _ => Node::Set { negated, members },
        })
    }

    fn set_member(&mut self, token: Token) -> Result<Member> {
        if !token.escaped {
            return Ok(Member::One(token.char.into()));
        }
        let c = token.char;
        if c == 'b' {
            return Ok(Member::One(8));
        }
        if let Some(code) = control_escape(c) {
            return Ok(Member::One(code));
        }
        if let Some(category) = category(c) {
            return Ok(Member::Category(category));
        }
        if let Some(code) = self.code_point(c)? {
            return Ok(Member::One(code));
        }
        if is_octal(c) {
            return self.octal(c, 2).map(Member::One);
        }
        if c.is_ascii_alphanumeric() {
            return fail("bad escape");
        }
        Ok(Member::One(c.into()))
    }

    /// An escape outside a set.
    pub fn escape(&mut self, c: char) -> Result<Node> {
        let at = match c {
            'A' => Some(At::TextStart),
            'Z' => Some(At::TextEnd),
            'b' => Some(At::Boundary),
            'B' => Some(At::NoBoundary),
            _ => None,
        };
        if let Some(at) = at {
            return Ok(Node::At(at));
        }
        if let Some(category) = category(c) {
            return Ok(Node::Set { negated: false, members: vec![Member::Category(category)] });
        }
        if let Some(code) = control_escape(c) {
            return Ok(Node::Literal(code));
        }
        if let Some(code) = self.code_point(c)? {
            return Ok(Node::Literal(code));
        }
        if c == '0' {
            return self.octal(c, 2).map(Node::Literal);
        }
        if c.is_ascii_digit() {
            let mut group = c as usize - '0' as usize;
            if self.peek_in(|c| c.is_ascii_digit()) {
                let second = self.source[self.at];
                self.at += 1;
                if is_octal(c) && is_octal(second) && self.peek_in(is_octal) {
                    let code = octal_value(&[c, second, self.source[self.at]]);
                    self.at += 1;
                    return if code > 0o377 {
                        fail("octal escape value out of range")
                    } else {
                        Ok(Node::Literal(code))
                    };
                }
                group = group * 10 + (second as usize - '0' as usize);
            }
            if group >= self.widths.len() {
                return fail("invalid group reference");
            }
            if !self.group_is_closed(group) {
                return fail("cannot refer to an open group");
            }
            self.check_lookbehind_group(group)?;
            return Ok(Node::Reference(group));
        }
        if c.is_ascii_alphabetic() {
            return fail("bad escape");
        }
        Ok(Node::Literal(c.into()))
    }

    fn octal(&mut self, first: char, more: usize) -> Result<u32> {
        let rest = self.take(more, is_octal);
        let code = rest.chars().fold(octal_value(&[first]), |n, c| n * 8 + octal_value(&[c]));
        if code > 0o377 { fail("octal escape value out of range") } else { Ok(code) }
    }

    /// `\x..`, `\u....`, `\U........`.
    fn code_point(&mut self, c: char) -> Result<Option<u32>> {
        let digits = match c {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            'N' => return fail("named characters are not supported"),
            _ => return Ok(None),
        };
        let text = self.take(digits, |c| c.is_ascii_hexdigit());
        if text.len() != digits {
            return fail("incomplete escape");
        }
        match u32::from_str_radix(&text, 16) {
            Ok(code) if code <= 0x10_ffff => Ok(Some(code)),
            _ => fail("bad escape"),
        }
    }
}

fn is_octal(c: char) -> bool {
    ('0'..='7').contains(&c)
}

fn octal_value(digits: &[char]) -> u32 {
    digits.iter().fold(0, |n, c| n * 8 + (*c as u32 - '0' as u32))
}

fn control_escape(c: char) -> Option<u32> {
    Some(match c {
        'a' => 7,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'v' => 11,
        '\\' => 92,
        _ => return None,
    })
}

fn category(c: char) -> Option<Category> {
    let class = match c.to_ascii_lowercase() {
        'd' => unicode::Class::Digit,
        's' => unicode::Class::Space,
        'w' => unicode::Class::Word,
        _ => return None,
    };
    Some(Category { class, negated: c.is_ascii_uppercase() })
}
