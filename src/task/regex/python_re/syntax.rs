//! The syntax tree of patterns, its widths, and the rearrangements that Python makes while it parses.

use super::unicode;
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

/// A parsed pattern.
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

/// Takes a prefix that all alternatives share out of the branch, and makes a set of single characters, as Python does:
/// the result matches the same, but a set repeats as one character does, which shows in what groups hold.
pub(super) fn factor(mut items: Vec<Vec<Node>>) -> Vec<Node> {
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
pub(super) fn unpack(nodes: Vec<Node>) -> Vec<Node> {
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

pub(super) fn drop_repeated(members: &mut Vec<Member>) {
    let mut kept = 0;
    for i in 0..members.len() {
        if !members[..kept].contains(&members[i]) {
            members[kept] = members[i];
            kept += 1;
        }
    }
    members.truncate(kept);
}
