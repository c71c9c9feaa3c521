//! The grammar of patterns: text to syntax tree, accepting and refusing what Python 3.11 does.

use super::syntax::{At, Greed, MAX_REPEAT, Node, Parsed, Width, factor, flag, unpack, width};
use super::{NESTING_LIMIT, ReError, unicode};
use std::collections::HashMap;

/// One token: a character, or a backslash with the character after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub escaped: bool,
    pub char: char,
}

impl Token {
    pub fn is(self, c: char) -> bool {
        !self.escaped && self.char == c
    }
}

pub(super) struct Parser {
    pub source: Vec<char>,
    pub at: usize,
    flags: u8,
    pub widths: Vec<Option<Width>>,
    names: HashMap<String, usize>,
    /// Number of groups when the outermost lookbehind began.
    lookbehind: Option<usize>,
    /// Groups that conditionals name by number; they may be defined later.
    conditional_groups: Vec<usize>,
    depth: usize,
}

pub(super) type Result<T> = std::result::Result<T, ReError>;

pub(super) fn fail<T>(reason: &'static str) -> Result<T> {
    Err(ReError::Syntax(reason))
}

/// Parses a whole pattern.
pub(super) fn parse(pattern: &str) -> Result<Parsed> {
    let source: Vec<char> = pattern.chars().collect();
    if source.iter().rev().take_while(|c| **c == '\\').count() % 2 == 1 {
        return fail("bad escape (end of pattern)");
    }
    let mut parser = Parser {
        source,
        at: 0,
        flags: 0,
        widths: vec![None],
        names: HashMap::new(),
        lookbehind: None,
        conditional_groups: Vec::new(),
        depth: 0,
    };
    let body = parser.alternatives(false, true)?;
    if parser.flags & flag::ASCII != 0 && parser.flags & flag::UNICODE != 0 {
        return fail("ASCII and UNICODE flags are incompatible");
    }
    if parser.flags & flag::ASCII == 0 {
        parser.flags |= flag::UNICODE;
    }
    if parser.peek().is_some() {
        return fail("unbalanced parenthesis");
    }
    if parser.conditional_groups.iter().any(|g| *g >= parser.widths.len()) {
        return fail("invalid group reference");
    }
    Ok(Parsed { body, flags: parser.flags, widths: parser.widths, names: parser.names })
}

impl Parser {
    fn peek(&self) -> Option<Token> {
        let char = *self.source.get(self.at)?;
        if char == '\\' {
            Some(Token { escaped: true, char: *self.source.get(self.at + 1)? })
        } else {
            Some(Token { escaped: false, char })
        }
    }

    pub fn next(&mut self) -> Option<Token> {
        let token = self.peek()?;
        self.at += 1 + usize::from(token.escaped);
        Some(token)
    }

    fn peek_is(&self, c: char) -> bool {
        self.peek().is_some_and(|t| t.is(c))
    }

    pub fn peek_in(&self, test: fn(char) -> bool) -> bool {
        self.peek().is_some_and(|t| !t.escaped && test(t.char))
    }

    pub fn accept(&mut self, c: char) -> bool {
        let found = self.peek_is(c);
        if found {
            self.at += 1;
        }
        found
    }

    /// Up to `most` characters that pass the test.
    pub fn take(&mut self, most: usize, test: fn(char) -> bool) -> String {
        let mut taken = String::new();
        while taken.len() < most && self.peek_in(test) {
            taken.push(self.source[self.at]);
            self.at += 1;
        }
        taken
    }

    /// Text up to a closing character, which is consumed. A backslash hides the character after it.
    fn until(&mut self, end: char) -> Result<String> {
        let mut text = String::new();
        loop {
            match self.next() {
                None if text.is_empty() => return fail("missing group name"),
                None => return fail("missing end of group name"),
                Some(t) if t.is(end) => {
                    return if text.is_empty() { fail("missing group name") } else { Ok(text) };
                }
                Some(t) => {
                    if t.escaped {
                        text.push('\\');
                    }
                    text.push(t.char);
                }
            }
        }
    }

    pub fn group_is_closed(&self, group: usize) -> bool {
        self.widths.get(group).is_some_and(Option::is_some)
    }

    pub fn check_lookbehind_group(&self, group: usize) -> Result<()> {
        if let Some(known) = self.lookbehind {
            if !self.group_is_closed(group) {
                return fail("cannot refer to an open group");
            }
            if group >= known {
                return fail("cannot refer to group defined in the same lookbehind subpattern");
            }
        }
        Ok(())
    }

    /// `a|b|c`.
    fn alternatives(&mut self, mut verbose: bool, outermost: bool) -> Result<Vec<Node>> {
        self.depth += 1;
        if self.depth > NESTING_LIMIT {
            return fail("too many nested groups");
        }
        let first = self.sequence(verbose, outermost)?;
        if !self.peek_is('|') {
            self.depth -= 1;
            return Ok(first);
        }
        let mut items = vec![first];
        while self.accept('|') {
            if outermost {
                verbose = self.flags & flag::VERBOSE != 0;
            }
            items.push(self.sequence(verbose, false)?);
        }
        self.depth -= 1;
        Ok(factor(items))
    }

    /// Everything up to `|`, `)` or the end.
    fn sequence(&mut self, mut verbose: bool, first: bool) -> Result<Vec<Node>> {
        let mut nodes: Vec<Node> = Vec::new();
        while let Some(token) = self.peek() {
            if token.is('|') || token.is(')') {
                break;
            }
            self.next();
            if verbose && !token.escaped {
                if matches!(token.char, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c') {
                    continue;
                }
                if token.char == '#' {
                    while self.next().is_some_and(|t| !t.is('\n')) {}
                    continue;
                }
            }
            if token.escaped {
                let node = self.escape(token.char)?;
                nodes.push(node);
                continue;
            }
            match token.char {
                '[' => {
                    let node = self.set()?;
                    nodes.push(node);
                }
                '*' | '+' | '?' | '{' => self.repeat(token.char, &mut nodes)?,
                '.' => nodes.push(Node::Any),
                '(' => {
                    if let Some(node) = self.group(&mut verbose, first && nodes.is_empty())? {
                        nodes.push(node);
                    }
                }
                '^' => nodes.push(Node::At(At::Start)),
                '$' => nodes.push(Node::At(At::End)),
                c => nodes.push(Node::Literal(c.into())),
            }
        }
        Ok(unpack(nodes))
    }

    fn repeat(&mut self, sign: char, nodes: &mut Vec<Node>) -> Result<()> {
        let (min, max) = match sign {
            '?' => (0, 1),
            '*' => (0, MAX_REPEAT),
            '+' => (1, MAX_REPEAT),
            _ => {
                if self.peek_is('}') {
                    nodes.push(Node::Literal('{'.into()));
                    return Ok(());
                }
                let here = self.at;
                let low = self.take(usize::MAX, |c| c.is_ascii_digit());
                let high = if self.accept(',') { self.take(usize::MAX, |c| c.is_ascii_digit()) } else { low.clone() };
                if !self.accept('}') {
                    nodes.push(Node::Literal('{'.into()));
                    self.at = here;
                    return Ok(());
                }
                let min = if low.is_empty() { 0 } else { repeat_number(&low)? };
                let max = if high.is_empty() { MAX_REPEAT } else { repeat_number(&high)? };
                if max < min {
                    return fail("min repeat greater than max repeat");
                }
                (min, max)
            }
        };
        let item = match nodes.last() {
            None | Some(Node::At(_)) => return fail("nothing to repeat"),
            Some(Node::Repeat { .. }) => return fail("multiple repeat"),
            Some(_) => nodes.pop().into_iter(),
        };
        let mut body: Vec<Node> = item.collect();
        if let Some(Node::Group { capture: None, add: 0, del: 0, body: inner }) = body.first_mut() {
            body = std::mem::take(inner);
        }
        let greed = if self.accept('?') {
            Greed::Min
        } else if self.accept('+') {
            Greed::Possessive
        } else {
            Greed::Max
        };
        nodes.push(Node::Repeat { greed, min, max, body });
        Ok(())
    }

    /// Parses the part after `(`. `None` for comments and flags that stand alone.
    fn group(&mut self, verbose: &mut bool, may_set_flags: bool) -> Result<Option<Node>> {
        let (mut capture, mut atomic, mut name, mut add, mut del) = (true, false, None, 0, 0);
        if self.accept('?') {
            let Some(token) = self.next() else { return fail("unexpected end of pattern") };
            if token.escaped {
                return fail("unknown extension");
            }
            match token.char {
                'P' => {
                    if self.accept('<') {
                        let text = self.until('>')?;
                        check_name(&text)?;
                        name = Some(text);
                    } else if self.accept('=') {
                        let text = self.until(')')?;
                        check_name(&text)?;
                        let Some(group) = self.names.get(&text).copied() else { return fail("unknown group name") };
                        if !self.group_is_closed(group) {
                            return fail("cannot refer to an open group");
                        }
                        self.check_lookbehind_group(group)?;
                        return Ok(Some(Node::Reference(group)));
                    } else {
                        return fail("unknown extension");
                    }
                }
                ':' => capture = false,
                '#' => loop {
                    match self.next() {
                        None => return fail("missing ), unterminated comment"),
                        Some(t) if t.is(')') => return Ok(None),
                        Some(_) => {}
                    }
                },
                '=' | '!' => return self.look(true, token.char == '!', *verbose).map(Some),
                '<' => {
                    return match self.next() {
                        None => fail("unexpected end of pattern"),
                        Some(t) if t.is('=') || t.is('!') => self.look(false, t.char == '!', *verbose).map(Some),
                        Some(_) => fail("unknown extension"),
                    };
                }
                '(' => return self.conditional(*verbose).map(Some),
                '>' => {
                    capture = false;
                    atomic = true;
                }
                c if c == '-' || flag_of(c).is_some() => match self.group_flags(c)? {
                    None => {
                        if !may_set_flags {
                            return fail("global flags not at the start of the expression");
                        }
                        *verbose = self.flags & flag::VERBOSE != 0;
                        return Ok(None);
                    }
                    Some((on, off)) => {
                        (add, del) = (on, off);
                        capture = false;
                    }
                },
                _ => return fail("unknown extension"),
            }
        }
        let group = if capture {
            let group = self.widths.len();
            self.widths.push(None);
            if let Some(name) = name
                && self.names.insert(name, group).is_some()
            {
                return fail("redefinition of group name");
            }
            Some(group)
        } else {
            None
        };
        let inner_verbose = (*verbose || add & flag::VERBOSE != 0) && del & flag::VERBOSE == 0;
        let body = self.alternatives(inner_verbose, false)?;
        if !self.accept(')') {
            return fail("missing ), unterminated subpattern");
        }
        if let Some(group) = group {
            self.widths[group] = Some(width(&body, &self.widths));
        }
        Ok(Some(if atomic { Node::Atomic(body) } else { Node::Group { capture: group, add, del, body } }))
    }

    fn look(&mut self, ahead: bool, negated: bool, verbose: bool) -> Result<Node> {
        let outer = self.lookbehind;
        if !ahead && outer.is_none() {
            self.lookbehind = Some(self.widths.len());
        }
        let body = self.alternatives(verbose, false)?;
        if !ahead {
            self.lookbehind = outer;
        }
        if !self.accept(')') {
            return fail("missing ), unterminated subpattern");
        }
        Ok(Node::Look { ahead, negated, body })
    }

    fn conditional(&mut self, verbose: bool) -> Result<Node> {
        let name = self.until(')')?;
        let group = if is_identifier(&name) {
            match self.names.get(&name) {
                Some(group) => *group,
                None => return fail("unknown group name"),
            }
        } else {
            let group = match unicode::python_int(&name) {
                None => return fail("bad character in group name"),
                Some(0) => return fail("bad group number"),
                // A number that large cannot name a group of this pattern.
                Some(number) => usize::try_from(number).unwrap_or(usize::MAX),
            };
            self.conditional_groups.push(group);
            group
        };
        self.check_lookbehind_group(group)?;
        self.depth += 1;
        if self.depth > NESTING_LIMIT {
            return fail("too many nested groups");
        }
        let yes = self.sequence(verbose, false)?;
        let no = if self.accept('|') {
            let no = self.sequence(verbose, false)?;
            if self.peek_is('|') {
                return fail("conditional backref with more than two branches");
            }
            Some(no)
        } else {
            None
        };
        self.depth -= 1;
        if !self.accept(')') {
            return fail("missing ), unterminated subpattern");
        }
        Ok(Node::Conditional { group, yes, no })
    }

    /// `(?aims-x:` (on, off) or `(?aims)`, which sets the pattern's flags (`None`).
    fn group_flags(&mut self, first: char) -> Result<Option<(u8, u8)>> {
        let (mut add, mut del) = (0u8, 0u8);
        let mut sign = first;
        if first != '-' {
            loop {
                let Some(bit) = flag_of(sign) else { return fail("unknown flag") };
                if bit == flag::LOCALE {
                    return fail("bad inline flags: cannot use 'L' flag with a str pattern");
                }
                add |= bit;
                if bit & flag::TYPES != 0 && add & flag::TYPES != bit {
                    return fail("bad inline flags: flags 'a', 'u' and 'L' are incompatible");
                }
                match self.next() {
                    Some(t) if !t.escaped => sign = t.char,
                    _ => return fail("missing -, : or )"),
                }
                if matches!(sign, ')' | '-' | ':') {
                    break;
                }
            }
        }
        if sign == ')' {
            self.flags |= add;
            return Ok(None);
        }
        if add & flag::TEMPLATE != 0 {
            return fail("bad inline flags: cannot turn on global flag");
        }
        if sign == '-' {
            match self.next() {
                Some(t) if !t.escaped && flag_of(t.char).is_some() => sign = t.char,
                _ => return fail("missing flag"),
            }
            loop {
                let Some(bit) = flag_of(sign) else { return fail("unknown flag") };
                if bit & flag::TYPES != 0 {
                    return fail("bad inline flags: cannot turn off flags 'a', 'u' and 'L'");
                }
                del |= bit;
                match self.next() {
                    Some(t) if !t.escaped => sign = t.char,
                    _ => return fail("missing :"),
                }
                if sign == ':' {
                    break;
                }
            }
        }
        if del & flag::TEMPLATE != 0 {
            return fail("bad inline flags: cannot turn off global flag");
        }
        if add & del != 0 {
            return fail("bad inline flags: flag turned on and off");
        }
        Ok(Some((add, del)))
    }
}

fn repeat_number(digits: &str) -> Result<u32> {
    match digits.parse::<u32>() {
        Ok(n) if n < MAX_REPEAT => Ok(n),
        _ => fail("the repetition number is too large"),
    }
}

fn flag_of(c: char) -> Option<u8> {
    Some(match c {
        'i' => flag::IGNORE_CASE,
        'L' => flag::LOCALE,
        'm' => flag::MULTILINE,
        's' => flag::DOT_ALL,
        'x' => flag::VERBOSE,
        'a' => flag::ASCII,
        't' => flag::TEMPLATE,
        'u' => flag::UNICODE,
        _ => return None,
    })
}

pub(super) fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c == '_' || c.is_alphabetic()) && chars.all(|c| c == '_' || c.is_alphanumeric())
}

fn check_name(name: &str) -> Result<()> {
    if is_identifier(name) { Ok(()) } else { fail("bad character in group name") }
}
