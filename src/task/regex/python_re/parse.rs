//! The grammar of patterns: text to syntax tree, accepting and refusing what Python 3.11 does.

use super::{NESTING_LIMIT, ReError, unicode};
use std::collections::HashMap;

/// "No upper limit" of a repeat, and the first number a repeat may not name.
pub(super) const MAX_REPEAT: u32 = u32::MAX;

/// Flags of a pattern or of a group, as bits.
pub(super) mod flag {
    pub const IGNORE_CASE: u8 = 1;
    pub const LOCALE: u8 = 2;
    pub const MULTILINE: u8 = 4;
    pub const DOT_ALL: u8 = 8;
    pub const VERBOSE: u8 = 16;
    pub const ASCII: u8 = 32;
    pub const UNICODE: u8 = 64;
    pub const TEMPLATE: u8 = 128;
    /// The kinds of text, of which one holds.
    pub const TYPES: u8 = ASCII | LOCALE | UNICODE;
}

/// A place between characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Start,
    End,
    TextStart,
    TextEnd,
    Boundary,
    NoBoundary,
}

/// `\d`, `\s`, `\w`, or one of them negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Category {
    pub class: unicode::Class,
    pub negated: bool,
}

/// One member of a character set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    One(u32),
    Range(u32, u32),
    Category(Category),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greed {
    Max,
    Min,
    Possessive,
}

/// The syntax tree.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Literal(u32),
    NotLiteral(u32),
    Any,
    Set { negated: bool, members: Vec<Member> },
    At(At),
    Branch(Vec<Vec<Node>>),
    Group { capture: Option<usize>, add: u8, del: u8, body: Vec<Node> },
    Atomic(Vec<Node>),
    Repeat { greed: Greed, min: u32, max: u32, body: Vec<Node> },
    Look { ahead: bool, negated: bool, body: Vec<Node> },
    Reference(usize),
    Conditional { group: usize, yes: Vec<Node>, no: Option<Vec<Node>> },
}

impl Node {
    /// Whether two alternatives begin with "the same" node, so that Python takes it out of the branch. Nodes that hold
    /// others never count as the same.
    fn same_leaf(&self, other: &Node) -> bool {
        match (self, other) {
            (Node::Literal(a), Node::Literal(b)) | (Node::NotLiteral(a), Node::NotLiteral(b)) => a == b,
            (Node::Any, Node::Any) => true,
            (Node::Set { negated: a, members: x }, Node::Set { negated: b, members: y }) => a == b && x == y,
            (Node::At(a), Node::At(b)) => a == b,
            (Node::Reference(a), Node::Reference(b)) => a == b,
            _ => false,
        }
    }
}

/// Least and greatest number of characters, clamped as Python clamps them.
pub(super) type Width = (u64, u64);

pub(super) struct Parsed {
    pub body: Vec<Node>,
    pub flags: u8,
    /// Width of each group; index 0 is unused.
    pub widths: Vec<Option<Width>>,
    pub names: HashMap<String, usize>,
}

/// Width of a sequence, given the widths of the groups that are closed.
pub(super) fn width(nodes: &[Node], groups: &[Option<Width>]) -> Width {
    let (mut low, mut high) = (0u128, 0u128);
    for node in nodes {
        let (l, h): (u128, u128) = match node {
            Node::Branch(items) => {
                let mut least = u64::from(MAX_REPEAT - 1);
                let mut most = 0;
                for item in items {
                    let (l, h) = width(item, groups);
                    least = least.min(l);
                    most = most.max(h);
                }
                (least.into(), most.into())
            }
            Node::Atomic(body) => wide(width(body, groups)),
            Node::Group { capture, body, .. } => match capture.and_then(|group| groups[group]) {
                Some(known) => wide(known),
                None => wide(width(body, groups)),
            },
            Node::Repeat { min, max, body, .. } => {
                let (l, h) = wide(width(body, groups));
                (l * u128::from(*min), h * u128::from(*max))
            }
            Node::Literal(_) | Node::NotLiteral(_) | Node::Any | Node::Set { .. } => (1, 1),
            Node::Reference(group) => wide(groups[*group].unwrap_or((0, 0))),
            Node::Conditional { yes, no, .. } => {
                let (l, h) = width(yes, groups);
                match no {
                    Some(no) => {
                        let (l2, h2) = width(no, groups);
                        (l.min(l2).into(), h.max(h2).into())
                    }
                    None => (0, h.into()),
                }
            }
            Node::At(_) | Node::Look { .. } => (0, 0),
        };
        low += l;
        high += h;
    }
    let most = u128::from(MAX_REPEAT);
    (low.min(most - 1) as u64, high.min(most) as u64)
}

fn wide((low, high): Width) -> (u128, u128) {
    (low.into(), high.into())
}

/// One token: a character, or a backslash with the character after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token {
    escaped: bool,
    char: char,
}

impl Token {
    fn is(self, c: char) -> bool {
        !self.escaped && self.char == c
    }
}

struct Parser {
    source: Vec<char>,
    at: usize,
    flags: u8,
    widths: Vec<Option<Width>>,
    names: HashMap<String, usize>,
    /// Number of groups when the outermost lookbehind began.
    lookbehind: Option<usize>,
    /// Groups that conditionals name by number; they may be defined later.
    conditional_groups: Vec<usize>,
    depth: usize,
}

type Result<T> = std::result::Result<T, ReError>;

fn fail<T>(reason: &'static str) -> Result<T> {
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

    fn next(&mut self) -> Option<Token> {
        let token = self.peek()?;
        self.at += 1 + usize::from(token.escaped);
        Some(token)
    }

    fn peek_is(&self, c: char) -> bool {
        self.peek().is_some_and(|t| t.is(c))
    }

    fn peek_in(&self, test: fn(char) -> bool) -> bool {
        self.peek().is_some_and(|t| !t.escaped && test(t.char))
    }

    fn accept(&mut self, c: char) -> bool {
        let found = self.peek_is(c);
        if found {
            self.at += 1;
        }
        found
    }

    /// Up to `most` characters that pass the test.
    fn take(&mut self, most: usize, test: fn(char) -> bool) -> String {
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

    fn group_is_closed(&self, group: usize) -> bool {
        self.widths.get(group).is_some_and(Option::is_some)
    }

    fn check_lookbehind_group(&self, group: usize) -> Result<()> {
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

    /// What follows `(`. `None` for comments and flags that stand alone.
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

    /// `[…]`, after the opening bracket.
    fn set(&mut self) -> Result<Node> {
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
    fn escape(&mut self, c: char) -> Result<Node> {
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

/// Takes a prefix that all alternatives share out of the branch, and makes a set of single characters, as Python does:
/// the result matches the same, but a set repeats as one character does, which shows in what groups hold.
fn factor(mut items: Vec<Vec<Node>>) -> Vec<Node> {
    let mut nodes = Vec::new();
    while let Some(prefix) = items[0].first() {
        if !items[1..].iter().all(|item| item.first().is_some_and(|n| n.same_leaf(prefix))) {
            break;
        }
        nodes.push(prefix.clone());
        for item in &mut items {
            item.remove(0);
        }
    }
    let mut members = Vec::new();
    let all_characters = items.iter().all(|item| match &item[..] {
        [Node::Literal(c)] => {
            members.push(Member::One(*c));
            true
        }
        [Node::Set { negated: false, members: set }] => {
            members.extend(set.iter().copied());
            true
        }
        _ => false,
    });
    if all_characters {
        drop_repeated(&mut members);
        nodes.push(Node::Set { negated: false, members });
    } else {
        nodes.push(Node::Branch(items));
    }
    nodes
}

/// Replaces groups that neither capture nor change flags by what they hold.
fn unpack(nodes: Vec<Node>) -> Vec<Node> {
    let plain = |n: &Node| matches!(n, Node::Group { capture: None, add: 0, del: 0, .. });
    if !nodes.iter().any(plain) {
        return nodes;
    }
    let mut flat = Vec::with_capacity(nodes.len());
    for node in nodes {
        match node {
            Node::Group { capture: None, add: 0, del: 0, body } => flat.extend(body),
            other => flat.push(other),
        }
    }
    flat
}

fn drop_repeated(members: &mut Vec<Member>) {
    let mut kept = 0;
    for i in 0..members.len() {
        if !members[..kept].contains(&members[i]) {
            members[kept] = members[i];
            kept += 1;
        }
    }
    members.truncate(kept);
}

fn repeat_number(digits: &str) -> Result<u32> {
    match digits.parse::<u32>() {
        Ok(n) if n < MAX_REPEAT => Ok(n),
        _ => fail("the repetition number is too large"),
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
