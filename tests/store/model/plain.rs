//! The store in plain vectors: what people, trainer and researchers do to it, and what must be true of it at any time.

use iliad::ids::{AnswerId, ExecutionId};
use iliad::store::{AnswerKind, PoolCounts, Stand, UpdateRecord};
use std::collections::{HashMap, HashSet};
use time::{Duration, OffsetDateTime};

/// How many executions of a run a teacher may hold.
pub const HELD: usize = 2;

/// Longest lease of somebody who has never answered, and how long a newcomer may look before giving way.
const NEWCOMERS_LEASE: Duration = Duration::seconds(60);
const NEWCOMERS_LOOK: Duration = Duration::seconds(30);

/// How long somebody counts as present.
const PRESENT: Duration = Duration::seconds(120);

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum State {
    Live,
    Retired,
    Gone,
}

#[derive(Debug)]
pub struct Execution {
    pub id: ExecutionId,
    pub run: usize,
    pub episode: u64,
    pub update: u64,
    pub wanted: u32,
    pub state: State,
    pub shown: bool,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub id: AnswerId,
    pub run: usize,
    pub execution: ExecutionId,
    pub teacher: usize,
    pub kind: AnswerKind,
    pub text: String,
    pub key: String,
    pub superseded: bool,
    pub undone: bool,
    pub retracted: bool,
    pub rejected: bool,
    /// Whether updates leave it out.
    pub passed_over: bool,
    pub used: Option<u64>,
    pub late: u8,
}

impl Answer {
    fn stands(&self) -> bool {
        !self.superseded && self.kind != AnswerKind::Skipped
    }

    fn takes_a_place(&self) -> bool {
        self.stands() && self.late == 0 && !self.passed_over
    }

    /// Its name in lists for programs.
    pub fn stand(&self) -> Stand {
        match self {
            Answer { retracted: true, .. } => Stand::Withdrawn,
            Answer { undone: true, .. } => Stand::Undone,
            Answer { superseded: true, .. } => Stand::Superseded,
            Answer { rejected: true, .. } => Stand::Rejected,
            _ => Stand::Standing,
        }
    }
}

/// Rows stay: who has had an execution may answer it.
#[derive(Debug)]
pub struct Lease {
    pub run: usize,
    pub execution: ExecutionId,
    pub teacher: usize,
    taken: OffsetDateTime,
    renewed: OffsetDateTime,
    /// `None`: given back or answered.
    end: Option<OffsetDateTime>,
}

impl Lease {
    fn live(&self, now: OffsetDateTime) -> bool {
        self.renewed <= now && self.end.is_some_and(|end| end > now)
    }
}

/// A run's figures beside its rows.
#[derive(Default, Debug)]
pub struct Run {
    pub updates: Vec<UpdateRecord>,
    pub trashed: bool,
    /// Its files are gone, its rows stay with a study.
    pub purged: bool,
    pub archived: bool,
}

#[derive(Default, Debug)]
pub struct Model {
    pub runs: Vec<Run>,
    pub executions: Vec<Execution>,
    pub answers: Vec<Answer>,
    pub leases: Vec<Lease>,
    /// Of each person, whether they have ever answered.
    pub answered: Vec<bool>,
    /// When somebody was at a run last.
    pub seen: HashMap<(usize, usize), OffsetDateTime>,
    pub last_answer: i64,
    pub last_execution: i64,
}

#[derive(PartialEq, Debug)]
pub enum Outcome {
    Stored { answer: AnswerId, again: bool },
    KeyReused(AnswerId),
    Superseded,
    NotMine,
    OtherExecution,
    NeverYours,
}

/// The fate of an answer that its teacher wants back.
#[derive(PartialEq, Debug)]
pub enum Undone {
    NotMine,
    Superseded,
    Learnt(u64),
    /// It is taken back, and its execution is the teacher's for so long.
    Back(Option<Duration>),
    Before,
}

/// The fate of the record of an update.
#[derive(PartialEq, Debug)]
pub enum Recorded {
    Done,
    Superseded,
    Conflict,
}

impl Model {
    fn execution(&self, id: ExecutionId) -> &Execution {
        self.executions.iter().find(|e| e.id == id).unwrap()
    }

    fn execution_mut(&mut self, id: ExecutionId) -> &mut Execution {
        self.executions.iter_mut().find(|e| e.id == id).unwrap()
    }

    fn at(&self, id: AnswerId) -> usize {
        self.answers.iter().position(|a| a.id == id).unwrap()
    }

    /// Answers that count towards what the execution wants.
    fn given(&self, id: ExecutionId) -> usize {
        self.answers.iter().filter(|a| a.execution == id && a.takes_a_place()).count()
    }

    fn touched(&self, id: ExecutionId) -> bool {
        self.answers.iter().any(|a| a.execution == id)
    }

    fn is_open(&self, e: &Execution) -> bool {
        e.state == State::Live && self.given(e.id) < e.wanted as usize
    }

    /// How many others are at it.
    fn others(&self, id: ExecutionId, teacher: usize, now: OffsetDateTime) -> usize {
        self.leases.iter().filter(|l| l.execution == id && l.teacher != teacher && l.live(now)).count()
    }

    fn has_place(&self, id: ExecutionId, teacher: usize, now: OffsetDateTime) -> bool {
        self.given(id) + self.others(id, teacher, now) < self.execution(id).wanted as usize
    }

    fn held(&self, id: ExecutionId, now: OffsetDateTime) -> bool {
        self.leases.iter().any(|l| l.execution == id && l.live(now))
    }

    pub fn offer(&mut self, run: usize, (episode, update, wanted): (u64, u64, u32)) {
        if self.executions.iter().any(|e| e.run == run && e.episode == episode && e.state != State::Gone) {
            return;
        }
        self.last_execution += 1;
        let id = ExecutionId(self.last_execution);
        self.executions.push(Execution { id, run, episode, update, wanted, state: State::Live, shown: false });
    }

    fn retire(&mut self, hit: Vec<ExecutionId>) -> u64 {
        for &id in &hit {
            let e = self.execution_mut(id);
            e.state = if e.shown { State::Retired } else { State::Gone };
        }
        hit.len() as u64
    }

    pub fn retire_stale(&mut self, run: usize, oldest: u64, now: OffsetDateTime) -> u64 {
        let stale = |e: &&Execution| e.run == run && self.is_open(e) && e.update < oldest && !self.held(e.id, now);
        self.retire(self.executions.iter().filter(stale).map(|e| e.id).collect())
    }

    pub fn retire_skipped(&mut self, run: usize, keep: usize, now: OffsetDateTime) -> u64 {
        let waiting = self.executions.iter().filter(|e| e.run == run && self.is_open(e) && self.touched(e.id));
        let waiting: Vec<ExecutionId> = waiting.map(|e| e.id).collect();
        let beyond = waiting.into_iter().rev().skip(keep);
        self.retire(beyond.filter(|id| self.given(*id) == 0 && !self.held(*id, now)).collect())
    }

    /// The open executions of a run that the teacher holds, the one taken first first.
    pub fn hand(&self, run: usize, teacher: usize, now: OffsetDateTime) -> Vec<ExecutionId> {
        let mine = |l: &&Lease| {
            l.run == run && l.teacher == teacher && l.live(now) && self.is_open(self.execution(l.execution))
        };
        let mut hand: Vec<_> = self.leases.iter().filter(mine).map(|l| (l.taken, l.execution)).collect();
        hand.sort();
        hand.into_iter().map(|(_, id)| id).collect()
    }

    pub fn length(&self, teacher: usize, ttl: Duration) -> Duration {
        if self.answered[teacher] { ttl } else { ttl.min(NEWCOMERS_LEASE) }
    }

    /// Whether the teacher could have it, if `besides` gave it back.
    fn fits(
        &self,
        e: &Execution,
        teacher: usize,
        except: &[ExecutionId],
        besides: Option<usize>,
        now: OffsetDateTime,
    ) -> bool {
        let others = self
            .leases
            .iter()
            .filter(|l| l.execution == e.id && l.teacher != teacher && Some(l.teacher) != besides && l.live(now));
        self.is_open(e)
            && !except.contains(&e.id)
            && !self.answers.iter().any(|a| a.execution == e.id && a.teacher == teacher && !a.undone)
            && self.given(e.id) + others.count() < e.wanted as usize
    }

    /// The newcomer whose lease ends for the asking teacher. (A crowd of newcomers does not come up with so few.)
    fn yielding(
        &self,
        run: usize,
        teacher: usize,
        except: &[ExecutionId],
        now: OffsetDateTime,
    ) -> Option<(ExecutionId, usize)> {
        let (mut ahead, mut looked_at) = (Vec::new(), Vec::new());
        for holder in (0..self.answered.len()).filter(|&holder| holder != teacher && !self.answered[holder]) {
            for (n, &id) in self.hand(run, holder, now).iter().enumerate() {
                let taken = self.leases.iter().find(|l| l.execution == id && l.teacher == holder).unwrap().taken;
                if !self.fits(self.execution(id), teacher, except, Some(holder), now) {
                    continue;
                }
                if n > 0 {
                    ahead.push((taken, id, holder));
                } else if self.answered[teacher] && now - taken >= NEWCOMERS_LOOK {
                    looked_at.push((taken, id, holder));
                }
            }
        }
        let first = ahead.into_iter().min().or(looked_at.into_iter().min())?;
        Some((first.1, first.2))
    }

    pub fn lease(
        &mut self,
        (run, teacher): (usize, usize),
        except: &[ExecutionId],
        now: OffsetDateTime,
        ttl: Duration,
    ) -> Option<ExecutionId> {
        self.seen.insert((run, teacher), now);
        let hand = self.hand(run, teacher, now);
        let mut found = hand.iter().copied().find(|id| !except.contains(id)).or_else(|| {
            self.executions
                .iter()
                .filter(|e| e.run == run && self.fits(e, teacher, except, None, now))
                .min_by_key(|e| match self.given(e.id) {
                    0 => (true, std::cmp::Reverse(e.update), e.id),
                    _ => (false, std::cmp::Reverse(0), e.id),
                })
                .map(|e| e.id)
        });
        if found.is_none() && hand.is_empty() {
            let (id, holder) = self.yielding(run, teacher, except, now)?;
            let lease = self.leases.iter_mut().find(|l| l.execution == id && l.teacher == holder).unwrap();
            lease.end = Some(lease.renewed);
            found = Some(id);
        }
        let found = found?;
        if !hand.contains(&found) && hand.len() >= HELD {
            // Undoing may have given a third back for a moment, so more than one may go.
            for &first in hand.iter().take(hand.len() + 1 - HELD) {
                self.release(first, teacher);
            }
        }
        self.execution_mut(found).shown = true;
        let end = Some(now + self.length(teacher, ttl));
        match self.leases.iter_mut().find(|l| l.execution == found && l.teacher == teacher) {
            Some(lease) => {
                lease.taken = if lease.live(now) { lease.taken } else { now };
                (lease.renewed, lease.end) = (now, end);
            }
            None => self.leases.push(Lease { run, execution: found, teacher, taken: now, renewed: now, end }),
        }
        Some(found)
    }

    pub fn renew(&mut self, teacher: usize, id: ExecutionId, now: OffsetDateTime, ttl: Duration) -> bool {
        let e = self.execution(id);
        let done = e.state == State::Live && self.given(id) >= e.wanted as usize;
        let room = self.has_place(id, teacher, now);
        let hands = self.hand(e.run, teacher, now).into_iter().filter(|&other| other != id).count();
        let end = Some(now + self.length(teacher, ttl));
        match self.leases.iter_mut().find(|l| l.execution == id && l.teacher == teacher) {
            Some(lease) if !done && (lease.live(now) || (room && lease.end.is_some() && hands < HELD)) => {
                lease.taken = if lease.live(now) { lease.taken } else { now };
                (lease.renewed, lease.end) = (now, end);
                true
            }
            _ => false,
        }
    }

    pub fn release(&mut self, id: ExecutionId, teacher: usize) {
        for lease in self.leases.iter_mut().filter(|l| l.execution == id && l.teacher == teacher) {
            lease.end = None;
        }
    }

    fn before(&self, new: &Answer) -> Option<Outcome> {
        let i = self.answers.iter().position(|a| a.teacher == new.teacher && a.key == new.key)?;
        Some(self.compare(i, new).unwrap_or(Outcome::KeyReused(self.answers[i].id)))
    }

    fn compare(&self, i: usize, new: &Answer) -> Option<Outcome> {
        let a = &self.answers[i];
        let same = a.execution == new.execution && a.kind == new.kind && a.text == new.text;
        (same && !a.undone && !a.retracted).then_some(Outcome::Stored { answer: a.id, again: true })
    }

    /// Whether the answer takes a place (0), is late (1), or too late to be learnt from (2).
    fn lateness(&self, new: &Answer, standing: Option<usize>, now: OffsetDateTime) -> u8 {
        if new.kind == AnswerKind::Skipped {
            return 0;
        }
        if let Some(old) = standing.map(|i| &self.answers[i]).filter(|old| old.kind != AnswerKind::Skipped) {
            return old.late;
        }
        let wanted = self.execution(new.execution).wanted as usize;
        let late = self.answers.iter().filter(|a| a.execution == new.execution && !a.superseded && a.late == 1).count();
        match () {
            () if self.has_place(new.execution, new.teacher, now) => 0,
            () if late < wanted => 1,
            () => 2,
        }
    }

    fn push(&mut self, mut new: Answer) -> Outcome {
        let (id, teacher) = (new.execution, new.teacher);
        self.last_answer += 1;
        new.id = AnswerId(self.last_answer);
        let stored = Outcome::Stored { answer: new.id, again: false };
        self.answered[teacher] |= new.kind != AnswerKind::Skipped;
        self.answers.push(new);
        self.execution_mut(id).shown = true;
        let e = self.execution(id);
        let done = e.state == State::Live && self.given(id) >= e.wanted as usize;
        for lease in self.leases.iter_mut().filter(|l| l.execution == id && (l.teacher == teacher || done)) {
            lease.end = None;
        }
        stored
    }

    pub fn answer(&mut self, mut new: Answer, now: OffsetDateTime) -> Outcome {
        if let Some(outcome) = self.before(&new) {
            return outcome;
        }
        if !self.leases.iter().any(|l| l.execution == new.execution && l.teacher == new.teacher) {
            return Outcome::NeverYours;
        }
        self.seen.insert((new.run, new.teacher), now);
        let mine = |a: &Answer| a.execution == new.execution && a.teacher == new.teacher;
        let all: Vec<usize> = (0..self.answers.len()).filter(|&i| mine(&self.answers[i])).collect();
        // The store compares with the newest of them.
        if let Some(outcome) = all.iter().rev().take(20).find_map(|&i| self.compare(i, &new)) {
            return outcome;
        }
        let standing = all.iter().copied().find(|&i| !self.answers[i].superseded);
        new.late = self.lateness(&new, standing, now);
        if let Some(standing) = standing {
            if new.kind == AnswerKind::Skipped && self.answers[standing].kind != AnswerKind::Skipped {
                new.superseded = true;
            } else {
                self.answers[standing].superseded = true;
            }
        }
        self.push(new)
    }

    pub fn correct(&mut self, old: AnswerId, mut new: Answer, now: OffsetDateTime) -> Outcome {
        if let Some(outcome) = self.before(&new) {
            return outcome;
        }
        let at = self.at(old);
        let old = &self.answers[at];
        if old.teacher != new.teacher {
            return Outcome::NotMine;
        }
        if old.superseded {
            return Outcome::Superseded;
        }
        if old.execution != new.execution {
            return Outcome::OtherExecution;
        }
        if let Some(outcome) = self.compare(at, &new) {
            return outcome;
        }
        self.seen.insert((new.run, new.teacher), now);
        new.late = self.lateness(&new, Some(at), now);
        self.answers[at].superseded = true;
        self.push(new)
    }

    pub fn undo(&mut self, answer: AnswerId, teacher: usize, now: OffsetDateTime, ttl: Duration) -> Undone {
        let at = self.at(answer);
        let a = &mut self.answers[at];
        match a {
            _ if a.teacher != teacher => return Undone::NotMine,
            _ if a.undone => return Undone::Before,
            _ if a.superseded => return Undone::Superseded,
            Answer { kind: AnswerKind::Described, used: Some(update), .. } => return Undone::Learnt(*update),
            _ => (a.superseded, a.undone) = (true, true),
        }
        let (run, id) = (a.run, a.execution);
        let place = self.has_place(id, teacher, now);
        let ttl = self.length(teacher, ttl);
        let end = Some(if place { now + ttl } else { now });
        let first = self.hand(run, teacher, now).first().copied();
        let first = self.leases.iter().find(|l| Some(l.execution) == first && l.teacher == teacher);
        let taken = first.map_or(now, |first| first.taken - Duration::nanoseconds(1));
        match self.leases.iter_mut().find(|l| l.execution == id && l.teacher == teacher) {
            Some(lease) => (lease.taken, lease.renewed, lease.end) = (taken, now, end),
            None => self.leases.push(Lease { run, execution: id, teacher, taken, renewed: now, end }),
        }
        for beyond in self.hand(run, teacher, now).into_iter().skip(HELD) {
            self.release(beyond, teacher);
        }
        Undone::Back(place.then_some(ttl))
    }

    /// The update that learnt from it; `Err` where it is not this teacher's.
    pub fn retract(&mut self, answer: AnswerId, teacher: usize) -> Result<Option<u64>, ()> {
        let a = self.answers[self.at(answer)].clone();
        if a.teacher != teacher {
            return Err(());
        }
        for all in self.answers.iter_mut().filter(|all| all.execution == a.execution && all.teacher == teacher) {
            all.retracted = true;
            all.passed_over |= all.used.is_none();
        }
        Ok(a.used.filter(|_| a.kind == AnswerKind::Described))
    }

    pub fn review(&mut self, answer: AnswerId, rejected: bool) {
        let at = self.at(answer);
        let a = &mut self.answers[at];
        a.rejected = rejected;
        if a.used.is_none() {
            a.passed_over = rejected || a.retracted;
        }
    }

    pub fn unused(&self, run: usize) -> Vec<AnswerId> {
        let usable = |a: &&Answer| a.run == run && a.stands() && a.used.is_none() && a.late < 2 && !a.passed_over;
        self.answers.iter().filter(usable).map(|a| a.id).collect()
    }

    /// Records the next update of a run, which is to learn from answers that were read earlier.
    pub fn record(&mut self, run: usize, record: &UpdateRecord) -> Recorded {
        for answer in &record.answers {
            let a = &self.answers[self.at(*answer)];
            match a {
                _ if a.undone || a.passed_over => return Recorded::Superseded,
                _ if a.used.is_some() => return Recorded::Conflict,
                _ => {}
            }
        }
        for answer in &record.answers {
            let at = self.at(*answer);
            self.answers[at].used = Some(record.update);
        }
        self.runs[run].updates.push(record.clone());
        Recorded::Done
    }

    /// Removes a run with all of its rows, and begins it anew.
    pub fn remove(&mut self, run: usize) {
        self.runs[run] = Run::default();
        self.executions.retain(|e| e.run != run);
        self.answers.retain(|a| a.run != run);
        self.leases.retain(|l| l.run != run);
    }

    pub fn pool(&self, run: usize, now: OffsetDateTime) -> PoolCounts {
        let mut counts = PoolCounts::default();
        for e in self.executions.iter().filter(|e| e.run == run && self.is_open(e)) {
            if self.held(e.id, now) {
                counts.leased += 1;
            } else if !self.touched(e.id) {
                counts.open += 1;
            }
        }
        let lately = |at: &OffsetDateTime| *at <= now && now - *at < PRESENT;
        let there = |t: &usize| self.seen.get(&(run, *t)).is_some_and(lately) || !self.hand(run, *t, now).is_empty();
        counts.people = (0..self.answered.len()).filter(there).count() as u64;
        counts
    }

    /// Forgets who is not there now: a clock that went back and comes again brings nobody back.
    pub fn forget(&mut self, now: OffsetDateTime) {
        self.seen.retain(|_, at| *at <= now && now - *at < PRESENT);
    }

    /// Checks the invariants, which hold at any time.
    pub fn check(&self, now: OffsetDateTime) {
        for e in &self.executions {
            let live = self.leases.iter().filter(|l| l.execution == e.id && l.live(now)).count();
            assert!(live <= e.wanted as usize, "{live} are at an execution for {}: {e:?}", e.wanted);
            let mut standing = HashSet::new();
            for a in self.answers.iter().filter(|a| a.execution == e.id && !a.superseded) {
                assert!(standing.insert(a.teacher), "two answers of one person stand: {a:?}");
            }
        }
        for (run, teacher) in (0..self.runs.len()).flat_map(|run| (0..self.answered.len()).map(move |t| (run, t))) {
            assert!(self.hand(run, teacher, now).len() <= HELD, "{teacher} holds too much of the run {run}");
        }
        let mut used = HashSet::new();
        for (number, update) in self.runs.iter().flat_map(|run| (1..).zip(&run.updates)) {
            assert_eq!(update.update, number);
            for answer in &update.answers {
                assert!(used.insert(*answer), "{answer} was used twice");
                let a = &self.answers[self.at(*answer)];
                assert_eq!(a.used, Some(number));
                assert!(!a.undone || a.kind != AnswerKind::Described, "what was learnt from was taken back: {a:?}");
            }
        }
    }
}
