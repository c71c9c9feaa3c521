//! Syntax tree to program.
//!
//! The program has the shape of Python's own: what is tried in which order, and what a failed attempt leaves behind in
//! the groups, follows from it.

use super::ReError;
use super::syntax::{At, Category, Greed, MAX_REPEAT, Member, Node, Parsed, Width, flag, width};
use super::unicode;
use std::collections::HashMap;

/// An instruction. Jump targets are positions in [`Program::ops`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Success,
    Fail,
    /// Notes the position: `2 * (group - 1)` its start, one more its end.
    Mark(u32),
    Literal(u32),
    NotLiteral(u32),
    /// A literal whatever its case; the operand is in lower case.
    LiteralIgnore {
        lower: u32,
        ascii: bool,
        negated: bool,
    },
    Any,
    AnyAll,
    /// Index into [`Program::sets`].
    Set(u32),
    At {
        at: At,
        multiline: bool,
        ascii: bool,
    },
    Jump(u32),
    /// Alternatives: `len` entries of [`Program::branches`] from `first`.
    Branch {
        first: u32,
        len: u32,
    },
    /// Repeats the single-character instruction that follows.
    RepeatOne {
        greed: Greed,
        min: u32,
        max: u32,
        tail: u32,
    },
    /// Begins a repeat whose body follows and ends with `MaxUntil` or `MinUntil` at `until`.
    Repeat {
        min: u32,
        max: u32,
        until: u32,
    },
    MaxUntil,
    MinUntil,
    /// A possessive repeat; body and `Success` follow.
    Possessive {
        min: u32,
        max: u32,
        tail: u32,
    },
    /// An atomic group; body and `Success` follow.
    Atomic {
        tail: u32,
    },
    /// A look-around; body and `Success` follow. `back` is how far to step back.
    Look {
        negated: bool,
        back: u32,
        tail: u32,
    },
    Reference {
        group: u32,
        ignore: bool,
        ascii: bool,
    },
    /// Goes on when the group holds something, to `no` otherwise.
    Conditional {
        group: u32,
        no: u32,
    },
}

/// A set of characters.
#[derive(Clone, Debug, Default)]
pub(super) struct Set {
    /// Characters below 128, one bit each (categories included).
    low: u128,
    /// Members from 128 up.
    high: Vec<(u32, u32)>,
    /// Members that stand for themselves only although case is ignored.
    exact: Vec<u32>,
    /// Ranges that reach beyond the basic plane while case is ignored: Python looks at the upper case as well.
    wide: Vec<(u32, u32)>,
    categories: Vec<Category>,
    ascii: bool,
    negated: bool,
    /// Whether characters are lower-cased before they are looked up.
    fold: bool,
}

impl Set {
    /// Whether the set accepts `c`.
    pub(super) fn accepts(&self, c: u32) -> bool {
        let held = if self.fold {
            let c = unicode::lower(c, self.ascii);
            self.holds(c)
                || unicode::upper_of(c, self.ascii).any(|c| self.holds_member(c))
                || (!self.ascii
                    && unicode::alike(c)
                        .any(|c| self.holds_member(c) || unicode::upper_of(c, false).any(|c| self.holds_member(c))))
        } else {
            self.holds(c)
        };
        held != self.negated
    }

    fn holds(&self, c: u32) -> bool {
        self.holds_member(c)
            || self.exact.contains(&c)
            || self.wide.iter().any(|(a, b)| (*a..=*b).contains(&c) || (*a..=*b).contains(&unicode::upper(c)))
            || self.categories.iter().any(|k| unicode::in_class(k.class, c, self.ascii) != k.negated)
    }

    fn holds_member(&self, c: u32) -> bool {
        if c < 128 { self.low >> c & 1 == 1 } else { self.high.iter().any(|(a, b)| (*a..=*b).contains(&c)) }
    }
}

/// A compiled pattern.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    pub ops: Vec<Op>,
    pub sets: Vec<Set>,
    pub branches: Vec<u32>,
    /// Number of capturing groups.
    pub groups: usize,
    pub names: HashMap<String, usize>,
    /// Whether a match can only begin at the start of the text.
    pub anchored: bool,
    /// The instruction that the first character of a match must satisfy, where one is certain.
    pub first: Option<Op>,
}

pub(super) fn compile(parsed: Parsed) -> Result<Program, ReError> {
    let mut compiler = Compiler { program: Program::default(), widths: &parsed.widths };
    compiler.nodes(&parsed.body, parsed.flags)?;
    compiler.emit(Op::Success);
    let mut program = compiler.program;
    program.groups = parsed.widths.len() - 1;
    program.names = parsed.names;
    match program.ops.iter().find(|op| !matches!(op, Op::Mark(_))) {
        Some(Op::At { at: At::Start | At::TextStart, multiline: false, .. }) => program.anchored = true,
        Some(op) if is_single_op(*op) => program.first = Some(*op),
        _ => {}
    }
    Ok(program)
}

struct Compiler<'a> {
    program: Program,
    widths: &'a [Option<Width>],
}

impl Compiler<'_> {
    fn emit(&mut self, op: Op) -> usize {
        self.program.ops.push(op);
        self.program.ops.len() - 1
    }

    fn here(&self) -> u32 {
        self.program.ops.len() as u32
    }

    fn nodes(&mut self, nodes: &[Node], flags: u8) -> Result<(), ReError> {
        nodes.iter().try_for_each(|node| self.node(node, flags))
    }

    fn node(&mut self, node: &Node, flags: u8) -> Result<(), ReError> {
        let ignore = flags & flag::IGNORE_CASE != 0;
        let ascii = flags & flag::UNICODE == 0;
        match node {
            Node::Literal(c) => self.literal(*c, false, ignore, ascii),
            Node::NotLiteral(c) => self.literal(*c, true, ignore, ascii),
            Node::Any => {
                self.emit(if flags & flag::DOT_ALL != 0 { Op::AnyAll } else { Op::Any });
            }
            Node::Set { negated, members } => self.set(members, *negated, ignore, ascii),
            Node::At(at) => {
                self.emit(Op::At { at: *at, multiline: flags & flag::MULTILINE != 0, ascii });
            }
            Node::Branch(items) => self.branch(items, flags)?,
            Node::Group { capture, add, del, body } => {
                let mut inner = flags;
                if add & flag::TYPES != 0 {
                    inner &= !flag::TYPES;
                }
                inner = (inner | add) & !del;
                let mark = capture.map(|group| 2 * (group as u32 - 1));
                if let Some(mark) = mark {
                    self.emit(Op::Mark(mark));
                }
                self.nodes(body, inner)?;
                if let Some(mark) = mark {
                    self.emit(Op::Mark(mark + 1));
                }
            }
            Node::Atomic(body) => {
                let at = self.emit(Op::Atomic { tail: 0 });
                self.nodes(body, flags)?;
                self.emit(Op::Success);
                self.program.ops[at] = Op::Atomic { tail: self.here() };
            }
            Node::Repeat { greed, min, max, body } => self.repeat(*greed, *min, *max, body, flags)?,
            Node::Look { ahead, negated, body } => {
                let back = if *ahead {
                    0
                } else {
                    let (low, high) = width(body, self.widths);
                    if low != high {
                        return Err(ReError::Syntax("look-behind requires fixed-width pattern"));
                    }
                    low as u32
                };
                let at = self.emit(Op::Fail);
                self.nodes(body, flags)?;
                self.emit(Op::Success);
                self.program.ops[at] = Op::Look { negated: *negated, back, tail: self.here() };
            }
            Node::Reference(group) => {
                self.emit(Op::Reference { group: *group as u32, ignore, ascii });
            }
            Node::Conditional { group, yes, no } => {
                let at = self.emit(Op::Fail);
                self.nodes(yes, flags)?;
                let otherwise = match no.as_deref() {
                    None | Some([]) => self.here(),
                    Some(no) => {
                        let jump = self.emit(Op::Fail);
                        let otherwise = self.here();
                        self.nodes(no, flags)?;
                        self.program.ops[jump] = Op::Jump(self.here());
                        otherwise
                    }
                };
                self.program.ops[at] = Op::Conditional { group: *group as u32, no: otherwise };
            }
        }
        Ok(())
    }

    fn literal(&mut self, c: u32, negated: bool, ignore: bool, ascii: bool) {
        if !ignore || !unicode::is_cased(c, ascii) {
            self.emit(if negated { Op::NotLiteral(c) } else { Op::Literal(c) });
            return;
        }
        let lower = unicode::lower(c, ascii);
        if !ascii && unicode::alike(lower).next().is_some() {
            self.set(&[Member::One(c)], negated, true, false);
        } else {
            self.emit(Op::LiteralIgnore { lower, ascii, negated });
        }
    }

    fn set(&mut self, members: &[Member], negated: bool, ignore: bool, ascii: bool) {
        let mut set = Set { negated, ascii, ..Set::default() };
        for member in members {
            match *member {
                Member::One(c) => set.add(c, c),
                Member::Range(a, b) => set.add(a, b),
                Member::Category(category) => {
                    for c in 0..128 {
                        if unicode::in_class(category.class, c, ascii) != category.negated {
                            set.low |= 1 << c;
                        }
                    }
                    set.categories.push(category);
                }
            }
            if ignore && !set.fold {
                set.fold = match *member {
                    Member::One(c) => unicode::is_cased(c, ascii) || c > 0xffff,
                    Member::Range(a, b) => b > 0xffff || (a..=b).any(|c| unicode::is_cased(c, ascii)),
                    Member::Category(_) => false,
                };
            }
        }
        if set.fold {
            // A category is asked about the lower-cased character only, so its bits must not be found by other cases.
            let mut folded = Set { negated, ascii, fold: true, categories: set.categories, ..Set::default() };
            for member in members {
                match *member {
                    // Python forgets to lower-case single members beyond the basic plane.
                    Member::One(c) if unicode::lower(c, ascii) > 0xffff => folded.exact.push(c),
                    Member::One(c) => folded.add(c, c),
                    Member::Range(a, b) => {
                        folded.add(a, b.min(0xffff));
                        if b > 0xffff {
                            folded.wide.push((a, b));
                        }
                    }
                    Member::Category(_) => {}
                }
            }
            set = folded;
        }
        self.program.sets.push(set);
        let index = self.program.sets.len() - 1;
        self.emit(Op::Set(index as u32));
    }

    fn branch(&mut self, items: &[Vec<Node>], flags: u8) -> Result<(), ReError> {
        let at = self.emit(Op::Fail);
        let mut starts = Vec::with_capacity(items.len());
        let mut jumps = Vec::with_capacity(items.len());
        for item in items {
            starts.push(self.here());
            self.nodes(item, flags)?;
            jumps.push(self.emit(Op::Fail));
        }
        let end = self.here();
        for jump in jumps {
            self.program.ops[jump] = Op::Jump(end);
        }
        let first = self.program.branches.len() as u32;
        self.program.ops[at] = Op::Branch { first, len: starts.len() as u32 };
        self.program.branches.append(&mut starts);
        Ok(())
    }

    fn repeat(&mut self, greed: Greed, min: u32, max: u32, body: &[Node], flags: u8) -> Result<(), ReError> {
        if flags & flag::TEMPLATE != 0 {
            return Err(ReError::Syntax("repeats are not allowed under the template flag"));
        }
        let at = self.emit(Op::Fail);
        self.nodes(body, flags)?;
        if is_single(body) {
            self.program.ops[at] = Op::RepeatOne { greed, min, max, tail: self.here() };
            return Ok(());
        }
        match greed {
            Greed::Possessive => {
                self.emit(Op::Success);
                self.program.ops[at] = Op::Possessive { min, max, tail: self.here() };
            }
            Greed::Max | Greed::Min => {
                let until = self.here();
                self.emit(if greed == Greed::Max { Op::MaxUntil } else { Op::MinUntil });
                self.program.ops[at] = Op::Repeat { min, max, until };
            }
        }
        Ok(())
    }
}

impl Set {
    fn add(&mut self, a: u32, b: u32) {
        for c in a..=b.min(127) {
            self.low |= 1 << c;
        }
        if b >= a.max(128) {
            self.high.push((a.max(128), b));
        }
    }
}

/// Whether a repeat's body is one character wide and captures nothing, so that it needs no stack.
fn is_single(body: &[Node]) -> bool {
    match body {
        [Node::Group { capture: None, body, .. }] => is_single(body),
        [Node::Literal(_) | Node::NotLiteral(_) | Node::Any | Node::Set { .. }] => true,
        _ => false,
    }
}

/// Whether an instruction takes exactly one character.
fn is_single_op(op: Op) -> bool {
    use Op::{Any, AnyAll, Literal, LiteralIgnore, NotLiteral, Set};
    matches!(op, Literal(_) | NotLiteral(_) | LiteralIgnore { .. } | Any | AnyAll | Set(_))
}

/// Whether a repeat has no upper limit.
pub(super) fn unlimited(max: u32) -> bool {
    max == MAX_REPEAT
}
