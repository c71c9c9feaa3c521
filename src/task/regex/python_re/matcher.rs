//! The backtracking matcher.
//!
//! It keeps its own stack instead of recursing, so that no input can exhaust the thread's, and counts its steps. What
//! it saves and restores in the groups, and when, follows Python's matcher: that decides what a group holds after an
//! alternative or a repetition was tried in vain.

use super::compile::{Op, Program, unlimited};
use super::syntax::{At, Greed};
use super::{DEPTH_LIMIT, ReError, STEP_LIMIT, unicode};

/// "No position" and "no repeat".
pub(super) const NONE: usize = usize::MAX;

/// Reusable memory of the matcher.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(super) text: Vec<u32>,
    pub(super) marks: Vec<usize>,
    /// Highest mark set so far, as a length: marks from here on are stale.
    marked: usize,
    stack: Vec<Frame>,
    saved: Vec<usize>,
    repeats: Vec<Repeat>,
    /// The innermost repeat being matched.
    repeat: usize,
    /// Where the last successful attempt ended.
    end: usize,
    pub(super) steps: u64,
}

/// A repeat in progress.
#[derive(Clone, Copy, Debug)]
struct Repeat {
    /// Position of its [`Op::Repeat`].
    op: usize,
    count: i64,
    /// Where the last iteration began, to stop at empty ones.
    last: usize,
    outer: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Branch,
    One,
    OneLazy,
    Repeat,
    MaxNeeded,
    MaxMore,
    MaxTail,
    MinNeeded,
    MinTail,
    MinMore,
    PossessiveNeeded,
    PossessiveMore,
    Atomic,
    Look,
    LookNot,
}

/// An attempt under way: what to do when what was begun ends.
#[derive(Clone, Copy, Debug)]
struct Frame {
    kind: Kind,
    /// Whether reaching the end here ends the whole match.
    top: bool,
    /// Whether the groups were saved for it.
    saved: bool,
    op: usize,
    at: usize,
    /// Iterations, or the number of the alternative.
    count: i64,
    marked: usize,
    repeat: usize,
    last: usize,
}

/// The step after a finished frame.
enum After {
    /// Go on at this instruction and position.
    Run { op: usize, at: usize, top: bool },
    /// The attempt as a whole has succeeded or failed.
    Done(bool),
}

impl Scratch {
    pub(super) fn group(&self, group: usize) -> Option<(usize, usize)> {
        let end = 2 * group - 1;
        if end >= self.marked {
            return None;
        }
        let (a, b) = (self.marks[end - 1], self.marks[end]);
        (a != NONE && b != NONE && a <= b).then_some((a, b))
    }

    fn mark(&mut self, mark: usize, at: usize) {
        if mark >= self.marked {
            self.marks[self.marked..mark].fill(NONE);
            self.marked = mark + 1;
        }
        self.marks[mark] = at;
    }

    fn save(&mut self) {
        self.saved.extend_from_slice(&self.marks[..self.marked]);
    }

    /// Restores what was saved when `marked` marks were set, and keeps it saved.
    fn restore(&mut self, frame: &Frame) {
        if frame.saved {
            let from = self.saved.len() - frame.marked;
            self.marks[..frame.marked].copy_from_slice(&self.saved[from..]);
        }
        self.marked = frame.marked;
    }

    fn discard(&mut self, frame: &Frame) {
        if frame.saved {
            self.saved.truncate(self.saved.len() - frame.marked);
        }
    }

    fn push(&mut self, frame: Frame) -> Result<(), ReError> {
        if self.stack.len() >= DEPTH_LIMIT || self.saved.len() >= 4 * DEPTH_LIMIT {
            return Err(ReError::Bound);
        }
        self.stack.push(frame);
        Ok(())
    }

    fn count_steps(&mut self, steps: usize) -> Result<(), ReError> {
        self.steps += steps as u64;
        if self.steps > STEP_LIMIT { Err(ReError::Bound) } else { Ok(()) }
    }

    /// Tries to match at `start`; gives the end of the match. With `must_advance` an empty match does not count.
    pub(super) fn attempt(
        &mut self,
        program: &Program,
        start: usize,
        must_advance: bool,
    ) -> Result<Option<usize>, ReError> {
        self.stack.clear();
        self.saved.clear();
        self.repeats.clear();
        self.repeat = NONE;
        self.marked = 0;
        let (mut op, mut at, mut top) = (0, start, true);
        loop {
            let mut done = self.run(program, op, at, top, must_advance.then_some(start))?;
            if let Some(begun) = done.begun {
                (op, at, top) = begun;
                continue;
            }
            loop {
                let Some(frame) = self.stack.pop() else { return Ok(done.success.then_some(self.end)) };
                match self.resume(program, frame, done.success)? {
                    After::Run { op: next, at: position, top: whole } => {
                        (op, at, top) = (next, position, whole);
                        break;
                    }
                    After::Done(success) => done.success = success,
                }
            }
        }
    }

    /// Runs instructions until one begins an attempt of its own (`begun` says where to go on), or until the current
    /// attempt succeeds or fails.
    fn run(
        &mut self,
        program: &Program,
        mut op: usize,
        mut at: usize,
        top: bool,
        forbidden_end: Option<usize>,
    ) -> Result<Ended, ReError> {
        loop {
            self.count_steps(1)?;
            let (marked, repeat) = (self.marked, self.repeat);
            let frame = move |kind| Frame { kind, top, saved: false, op, at, count: 0, marked, repeat, last: NONE };
            match program.ops[op] {
                Op::Success => {
                    if top && forbidden_end == Some(at) {
                        return Ok(Ended::FAILED);
                    }
                    self.end = at;
                    return Ok(Ended::SUCCEEDED);
                }
                Op::Fail => return Ok(Ended::FAILED),
                Op::Mark(mark) => {
                    self.mark(mark as usize, at);
                    op += 1;
                }
                Op::Jump(to) => op = to as usize,
                Op::At { at: place, multiline, ascii } => {
                    if !is_at(&self.text, at, place, multiline, ascii) {
                        return Ok(Ended::FAILED);
                    }
                    op += 1;
                }
                Op::Branch { .. } => {
                    let frame = Frame { saved: self.repeat != NONE, count: -1, ..frame(Kind::Branch) };
                    if frame.saved {
                        self.save();
                    }
                    return self.next_alternative(program, frame).map(Ended::from);
                }
                Op::RepeatOne { greed, min, max, tail } => {
                    let (min, max) = (min as usize, max as usize);
                    if self.text.len() - at < min {
                        return Ok(Ended::FAILED);
                    }
                    let most = if greed == Greed::Min { min } else { max };
                    let single = program.ops[op + 1];
                    let found =
                        self.text[at..].iter().take(most).take_while(|c| matches_one(program, single, **c)).count();
                    self.count_steps(found)?;
                    if found < min {
                        return Ok(Ended::FAILED);
                    }
                    at += found;
                    op = tail as usize;
                    let kind = match greed {
                        Greed::Possessive => continue,
                        Greed::Max => Kind::One,
                        Greed::Min => Kind::OneLazy,
                    };
                    let frame = Frame { at, count: found as i64, saved: self.repeat != NONE, ..frame(kind) };
                    if frame.saved {
                        self.save();
                    }
                    self.push(frame)?;
                }
                Op::Repeat { until, .. } => {
                    self.repeats.push(Repeat { op, count: -1, last: NONE, outer: self.repeat });
                    self.repeat = self.repeats.len() - 1;
                    self.push(Frame { repeat: self.repeat, ..frame(Kind::Repeat) })?;
                    op = until as usize;
                }
                Op::MaxUntil | Op::MinUntil => {
                    let count = self.repeats[self.repeat].count + 1;
                    let lazy = matches!(program.ops[op], Op::MinUntil);
                    let frame = Frame { count, ..frame(if lazy { Kind::MinNeeded } else { Kind::MaxNeeded }) };
                    let (body, min, _) = self.repeat_of(program, frame.repeat);
                    if count < i64::from(min) {
                        self.repeats[frame.repeat].count = count;
                        self.push(frame)?;
                        op = body;
                    } else {
                        let begun = if lazy { self.lazy_tail(frame)? } else { self.one_more(program, frame)? };
                        return Ok(begun.into());
                    }
                }
                Op::Possessive { .. } => {
                    self.end = at;
                    return self.possessive(program, frame(Kind::PossessiveNeeded)).map(Ended::from);
                }
                Op::Atomic { .. } => {
                    self.push(frame(Kind::Atomic))?;
                    return Ok(After::Run { op: op + 1, at, top: false }.into());
                }
                Op::Look { negated, back, tail } => {
                    let back = back as usize;
                    if at < back {
                        if !negated {
                            return Ok(Ended::FAILED);
                        }
                        op = tail as usize;
                        continue;
                    }
                    let kind = if negated { Kind::LookNot } else { Kind::Look };
                    let frame = Frame { saved: negated && self.repeat != NONE, ..frame(kind) };
                    if frame.saved {
                        self.save();
                    }
                    self.push(frame)?;
                    return Ok(After::Run { op: op + 1, at: at - back, top: false }.into());
                }
                Op::Reference { group, ignore, ascii } => {
                    let Some((a, b)) = self.group(group as usize) else { return Ok(Ended::FAILED) };
                    let length = b - a;
                    self.count_steps(length)?;
                    if self.text.len() - at < length {
                        return Ok(Ended::FAILED);
                    }
                    let same =
                        |x: u32, y: u32| x == y || (ignore && unicode::lower(x, ascii) == unicode::lower(y, ascii));
                    if !(0..length).all(|i| same(self.text[a + i], self.text[at + i])) {
                        return Ok(Ended::FAILED);
                    }
                    at += length;
                    op += 1;
                }
                Op::Conditional { group, no } => {
                    op = if self.group(group as usize).is_some() { op + 1 } else { no as usize };
                }
                single => {
                    if !self.text.get(at).is_some_and(|c| matches_one(program, single, *c)) {
                        return Ok(Ended::FAILED);
                    }
                    at += 1;
                    op += 1;
                }
            }
        }
    }

    /// Body, least and greatest count of a repeat in progress.
    fn repeat_of(&self, program: &Program, repeat: usize) -> (usize, u32, u32) {
        let op = self.repeats[repeat].op;
        match program.ops[op] {
            Op::Repeat { min, max, .. } => (op + 1, min, max),
            _ => unreachable!("a repeat in progress points at the instruction that began it"),
        }
    }

    /// Begins the next alternative of a branch that is not certain to fail at once.
    fn next_alternative(&mut self, program: &Program, mut frame: Frame) -> Result<After, ReError> {
        let Op::Branch { first, len } = program.ops[frame.op] else { unreachable!("only branches have alternatives") };
        loop {
            frame.count += 1;
            if frame.count == i64::from(len) {
                self.discard(&frame);
                return Ok(After::Done(false));
            }
            self.count_steps(1)?;
            let op = program.branches[first as usize + frame.count as usize] as usize;
            let hopeless = match program.ops[op] {
                single @ (Op::Literal(_) | Op::Set(_)) => {
                    !self.text.get(frame.at).is_some_and(|c| matches_one(program, single, *c))
                }
                _ => false,
            };
            if !hopeless {
                self.push(frame)?;
                return Ok(After::Run { op, at: frame.at, top: frame.top });
            }
        }
    }

    /// A greedy repeat that has what it needs: one more iteration if it may, the tail otherwise.
    fn one_more(&mut self, program: &Program, frame: Frame) -> Result<After, ReError> {
        let (body, _, max) = self.repeat_of(program, frame.repeat);
        let repeat = self.repeats[frame.repeat];
        if (unlimited(max) || frame.count < i64::from(max)) && frame.at != repeat.last {
            self.save();
            self.repeats[frame.repeat].count = frame.count;
            self.repeats[frame.repeat].last = frame.at;
            self.push(Frame { kind: Kind::MaxMore, saved: true, last: repeat.last, ..frame })?;
            return Ok(After::Run { op: body, at: frame.at, top: frame.top });
        }
        self.greedy_tail(frame)
    }

    fn greedy_tail(&mut self, frame: Frame) -> Result<After, ReError> {
        self.repeat = self.repeats[frame.repeat].outer;
        self.push(Frame { kind: Kind::MaxTail, saved: false, ..frame })?;
        Ok(After::Run { op: frame.op + 1, at: frame.at, top: frame.top })
    }

    fn lazy_tail(&mut self, frame: Frame) -> Result<After, ReError> {
        self.repeat = self.repeats[frame.repeat].outer;
        let frame = Frame { kind: Kind::MinTail, saved: self.repeat != NONE, ..frame };
        if frame.saved {
            self.save();
        }
        self.push(frame)?;
        Ok(After::Run { op: frame.op + 1, at: frame.at, top: frame.top })
    }

    /// One more iteration of a possessive repeat, from where the last one ended, or its tail.
    fn possessive(&mut self, program: &Program, mut frame: Frame) -> Result<After, ReError> {
        let Op::Possessive { min, max, tail } = program.ops[frame.op] else {
            unreachable!("only possessive repeats come here")
        };
        let at = self.end;
        if frame.count < i64::from(min) {
            self.push(frame)?;
            return Ok(After::Run { op: frame.op + 1, at, top: false });
        }
        // The position of the last iteration; there is none before the first that is not needed.
        let last = if frame.kind == Kind::PossessiveMore { frame.at } else { NONE };
        if (unlimited(max) || frame.count < i64::from(max)) && at != last {
            frame = Frame { kind: Kind::PossessiveMore, at, marked: self.marked, saved: true, ..frame };
            self.save();
            self.push(frame)?;
            return Ok(After::Run { op: frame.op + 1, at, top: false });
        }
        Ok(After::Run { op: tail as usize, at, top: frame.top })
    }

    /// Continues a frame after the part that it had begun has succeeded or failed.
    fn resume(&mut self, program: &Program, frame: Frame, success: bool) -> Result<After, ReError> {
        self.count_steps(1)?;
        match frame.kind {
            Kind::Branch | Kind::One | Kind::OneLazy if success => {
                self.discard(&frame);
                Ok(After::Done(true))
            }
            Kind::Branch => {
                self.restore(&frame);
                self.next_alternative(program, frame)
            }
            Kind::One => {
                self.restore(&frame);
                let Op::RepeatOne { min, tail, .. } = program.ops[frame.op] else {
                    unreachable!("the frame of a repeat points at it")
                };
                if frame.count <= i64::from(min) {
                    self.discard(&frame);
                    return Ok(After::Done(false));
                }
                let frame = Frame { at: frame.at - 1, count: frame.count - 1, ..frame };
                self.push(frame)?;
                Ok(After::Run { op: tail as usize, at: frame.at, top: frame.top })
            }
            Kind::OneLazy => {
                self.restore(&frame);
                let Op::RepeatOne { max, tail, .. } = program.ops[frame.op] else {
                    unreachable!("the frame of a repeat points at it")
                };
                let single = program.ops[frame.op + 1];
                let may = unlimited(max) || frame.count < i64::from(max);
                if !may || !self.text.get(frame.at).is_some_and(|c| matches_one(program, single, *c)) {
                    self.discard(&frame);
                    return Ok(After::Done(false));
                }
                let frame = Frame { at: frame.at + 1, count: frame.count + 1, ..frame };
                self.push(frame)?;
                Ok(After::Run { op: tail as usize, at: frame.at, top: frame.top })
            }
            Kind::Repeat => {
                self.repeat = self.repeats[frame.repeat].outer;
                self.repeats.pop();
                Ok(After::Done(success))
            }
            Kind::MaxNeeded | Kind::MinNeeded => {
                if !success {
                    self.repeats[frame.repeat].count = frame.count - 1;
                }
                Ok(After::Done(success))
            }
            Kind::MaxMore => {
                self.repeats[frame.repeat].last = frame.last;
                if !success {
                    self.restore(&frame);
                }
                self.discard(&frame);
                if success {
                    return Ok(After::Done(true));
                }
                self.repeats[frame.repeat].count = frame.count - 1;
                self.greedy_tail(frame)
            }
            Kind::MaxTail => {
                self.repeat = frame.repeat;
                Ok(After::Done(success))
            }
            Kind::MinTail => {
                self.repeat = frame.repeat;
                if !success {
                    self.restore(&frame);
                }
                self.discard(&frame);
                if success {
                    return Ok(After::Done(true));
                }
                let (body, _, max) = self.repeat_of(program, frame.repeat);
                let repeat = self.repeats[frame.repeat];
                if (frame.count >= i64::from(max) && !unlimited(max)) || frame.at == repeat.last {
                    return Ok(After::Done(false));
                }
                self.repeats[frame.repeat].count = frame.count;
                self.repeats[frame.repeat].last = frame.at;
                self.push(Frame { kind: Kind::MinMore, saved: false, last: repeat.last, ..frame })?;
                Ok(After::Run { op: body, at: frame.at, top: frame.top })
            }
            Kind::MinMore => {
                self.repeats[frame.repeat].last = frame.last;
                if !success {
                    self.repeats[frame.repeat].count = frame.count - 1;
                }
                Ok(After::Done(success))
            }
            Kind::PossessiveNeeded => {
                if !success {
                    return Ok(After::Done(false));
                }
                self.possessive(program, Frame { count: frame.count + 1, ..frame })
            }
            Kind::PossessiveMore => {
                if !success {
                    self.restore(&frame);
                    self.discard(&frame);
                    let Op::Possessive { tail, .. } = program.ops[frame.op] else {
                        unreachable!("the frame of a repeat points at it")
                    };
                    return Ok(After::Run { op: tail as usize, at: frame.at, top: frame.top });
                }
                self.discard(&frame);
                self.possessive(program, Frame { count: frame.count + 1, ..frame })
            }
            Kind::Atomic => {
                let Op::Atomic { tail } = program.ops[frame.op] else {
                    unreachable!("the frame of an atomic group points at it")
                };
                if !success {
                    return Ok(After::Done(false));
                }
                Ok(After::Run { op: tail as usize, at: self.end, top: frame.top })
            }
            Kind::Look | Kind::LookNot => {
                let Op::Look { tail, .. } = program.ops[frame.op] else {
                    unreachable!("the frame of a look-around points at it")
                };
                let negated = frame.kind == Kind::LookNot;
                if negated {
                    if !success {
                        self.restore(&frame);
                    }
                    self.discard(&frame);
                }
                if success == negated {
                    return Ok(After::Done(false));
                }
                Ok(After::Run { op: tail as usize, at: frame.at, top: frame.top })
            }
        }
    }
}

/// The end of a run of instructions.
struct Ended {
    begun: Option<(usize, usize, bool)>,
    success: bool,
}

impl Ended {
    const FAILED: Ended = Ended { begun: None, success: false };
    const SUCCEEDED: Ended = Ended { begun: None, success: true };
}

impl From<After> for Ended {
    fn from(after: After) -> Ended {
        match after {
            After::Run { op, at, top } => Ended { begun: Some((op, at, top)), success: false },
            After::Done(success) => Ended { begun: None, success },
        }
    }
}

/// Whether a single-character instruction accepts `c`.
pub(super) fn matches_one(program: &Program, op: Op, c: u32) -> bool {
    match op {
        Op::Literal(literal) => c == literal,
        Op::NotLiteral(literal) => c != literal,
        Op::LiteralIgnore { lower, ascii, negated } => (unicode::lower(c, ascii) == lower) != negated,
        Op::Any => c != u32::from('\n'),
        Op::AnyAll => true,
        Op::Set(set) => program.sets[set as usize].accepts(c),
        _ => false,
    }
}

fn is_at(text: &[u32], at: usize, place: At, multiline: bool, ascii: bool) -> bool {
    let newline = u32::from('\n');
    let word = |at: Option<usize>| {
        at.and_then(|at| text.get(at)).is_some_and(|c| unicode::in_class(unicode::Class::Word, *c, ascii))
    };
    match place {
        At::Start if multiline => at == 0 || text[at - 1] == newline,
        At::Start | At::TextStart => at == 0,
        At::End if multiline => at == text.len() || text[at] == newline,
        At::End => at == text.len() || (at + 1 == text.len() && text[at] == newline),
        At::TextEnd => at == text.len(),
        // In an empty text there is neither a boundary nor the lack of one.
        At::Boundary => !text.is_empty() && word(at.checked_sub(1)) != word(Some(at)),
        At::NoBoundary => !text.is_empty() && word(at.checked_sub(1)) == word(Some(at)),
    }
}
