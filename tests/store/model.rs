//! Any interleaving of people, trainer, time and restarts: the store does what a model in plain vectors does.

use crate::support::{Bench, RUN, execution};
use iliad::ids::{AnswerId, ExecutionId};
use iliad::store::{AnswerKind, NewAnswer, NewExecution, PoolCounts, StoreError, TeacherCounts, UpdateRecord};
use proptest::prelude::*;
use std::collections::HashMap;
use time::{Duration, OffsetDateTime};

const TEACHERS: usize = 4;

/// How many executions a teacher may hold.
const HELD: usize = 2;

/// One thing that happens. Executions and answers are picked by number, modulo how many there are.
#[derive(Clone, Debug)]
enum Step {
    Offer { episode: u64, update: u64, wanted: u32 },
    Retire { oldest: u64 },
    Lease { teacher: usize, ahead: bool, ttl: i64 },
    Renew { teacher: usize, execution: usize },
    Release { teacher: usize, execution: usize },
    Answer { teacher: usize, execution: usize, kind: AnswerKind, text: u8, key: u8 },
    Correct { teacher: usize, answer: usize, kind: AnswerKind, text: u8, key: u8 },
    Update { take: usize },
    RecordAgain { update: usize },
    Time { seconds: i64 },
}

fn kinds() -> impl Strategy<Value = AnswerKind> {
    prop_oneof![
        4 => Just(AnswerKind::Described),
        1 => Just(AnswerKind::NothingChanged),
        1 => Just(AnswerKind::CannotDescribe),
        2 => Just(AnswerKind::Skipped),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    let (teacher, pick) = (0..TEACHERS, 0usize..1000);
    prop_oneof![
        4 => (0u64..12, 0u64..4, 1u32..3)
            .prop_map(|(episode, update, wanted)| Step::Offer { episode, update, wanted }),
        1 => (0u64..5).prop_map(|oldest| Step::Retire { oldest }),
        6 => (teacher.clone(), any::<bool>(), 1i64..100)
            .prop_map(|(teacher, ahead, ttl)| Step::Lease { teacher, ahead, ttl }),
        2 => (teacher.clone(), pick.clone()).prop_map(|(teacher, execution)| Step::Renew { teacher, execution }),
        1 => (teacher.clone(), pick.clone()).prop_map(|(teacher, execution)| Step::Release { teacher, execution }),
        5 => (teacher.clone(), pick.clone(), kinds(), 0u8..4, 0u8..20).prop_map(|(teacher, execution, kind, text, key)| {
            Step::Answer { teacher, execution, kind, text, key }
        }),
        2 => (teacher, pick.clone(), kinds(), 0u8..4, 0u8..20).prop_map(|(teacher, answer, kind, text, key)| {
            Step::Correct { teacher, answer, kind, text, key }
        }),
        2 => (1usize..5).prop_map(|take| Step::Update { take }),
        1 => pick.prop_map(|update| Step::RecordAgain { update }),
        3 => prop_oneof![4 => 1i64..80, 1 => -4_000i64..0].prop_map(|seconds| Step::Time { seconds }),
    ]
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Live,
    Retired,
    Gone,
}

struct Execution {
    id: ExecutionId,
    episode: u64,
    update: u64,
    wanted: u32,
    state: State,
    shown: bool,
}

struct Answer {
    execution: ExecutionId,
    teacher: usize,
    kind: AnswerKind,
    text: String,
    key: String,
    superseded: bool,
    used: Option<u64>,
    late: u8,
}

impl Answer {
    fn stands(&self) -> bool {
        !self.superseded && self.kind != AnswerKind::Skipped
    }

    fn takes_a_place(&self) -> bool {
        self.stands() && self.late == 0
    }
}

/// Rows stay: who has had an execution may answer it.
struct Lease {
    execution: ExecutionId,
    teacher: usize,
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

#[derive(Default)]
struct Model {
    executions: Vec<Execution>,
    answers: Vec<Answer>, // the key of answer i is i + 1
    leases: Vec<Lease>,
    updates: Vec<UpdateRecord>,
    answered: [bool; TEACHERS],
    seen: [Option<OffsetDateTime>; TEACHERS],
}

#[derive(PartialEq, Debug)]
enum Outcome {
    Stored { answer: AnswerId, again: bool },
    KeyReused(AnswerId),
    Superseded,
    NotMine,
    OtherExecution,
    NeverYours,
}

impl Model {
    fn execution(&mut self, id: ExecutionId) -> &mut Execution {
        self.executions.iter_mut().find(|e| e.id == id).unwrap()
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

    fn held(&self, id: ExecutionId, now: OffsetDateTime) -> bool {
        self.leases.iter().any(|l| l.execution == id && l.live(now))
    }

    fn offer(&mut self, step: (u64, u64, u32), next: i64) -> bool {
        let (episode, update, wanted) = step;
        if self.executions.iter().any(|e| e.episode == episode && e.state != State::Gone) {
            return false;
        }
        self.executions.push(Execution {
            id: ExecutionId(next),
            episode,
            update,
            wanted,
            state: State::Live,
            shown: false,
        });
        true
    }

    fn retire(&mut self, oldest: u64, now: OffsetDateTime) -> u64 {
        let hit: Vec<ExecutionId> = self
            .executions
            .iter()
            .filter(|e| self.is_open(e) && e.update < oldest && !self.held(e.id, now))
            .map(|e| e.id)
            .collect();
        for &id in &hit {
            let e = self.execution(id);
            e.state = if e.shown { State::Retired } else { State::Gone };
        }
        hit.len() as u64
    }

    /// The open executions that the teacher holds, the one taken first first.
    fn hand(&self, teacher: usize, now: OffsetDateTime) -> Vec<ExecutionId> {
        let open = |id: ExecutionId| self.executions.iter().any(|e| e.id == id && self.is_open(e));
        let mine = |l: &&Lease| l.teacher == teacher && l.live(now) && open(l.execution);
        let mut hand: Vec<_> = self.leases.iter().filter(mine).map(|l| (l.taken, l.execution)).collect();
        hand.sort();
        hand.into_iter().map(|(_, id)| id).collect()
    }

    fn length(&self, teacher: usize, ttl: Duration) -> Duration {
        if self.answered[teacher] { ttl } else { ttl.min(Duration::seconds(60)) }
    }

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
            && !self.answers.iter().any(|a| a.execution == e.id && a.teacher == teacher)
            && self.given(e.id) + others.count() < e.wanted as usize
    }

    /// The newcomer whose lease ends for the asking teacher. (A crowd of newcomers does not come up with so few.)
    fn yielding(&self, teacher: usize, except: &[ExecutionId], now: OffsetDateTime) -> Option<(ExecutionId, usize)> {
        let (mut ahead, mut looked_at) = (Vec::new(), Vec::new());
        for holder in (0..TEACHERS).filter(|&holder| holder != teacher && !self.answered[holder]) {
            for (n, &id) in self.hand(holder, now).iter().enumerate() {
                let taken = self.leases.iter().find(|l| l.execution == id && l.teacher == holder).unwrap().taken;
                let e = self.executions.iter().find(|e| e.id == id).unwrap();
                if !self.fits(e, teacher, except, Some(holder), now) {
                    continue;
                }
                if n > 0 {
                    ahead.push((taken, id, holder));
                } else if self.answered[teacher] && now - taken >= Duration::seconds(30) {
                    looked_at.push((taken, id, holder));
                }
            }
        }
        let first = ahead.into_iter().min().or(looked_at.into_iter().min())?;
        Some((first.1, first.2))
    }

    fn lease(
        &mut self,
        teacher: usize,
        except: &[ExecutionId],
        now: OffsetDateTime,
        ttl: Duration,
    ) -> Option<ExecutionId> {
        self.seen[teacher] = Some(now);
        let hand = self.hand(teacher, now);
        let mut found = hand.iter().copied().find(|id| !except.contains(id)).or_else(|| {
            self.executions
                .iter()
                .filter(|e| self.fits(e, teacher, except, None, now))
                .min_by_key(|e| match self.given(e.id) {
                    0 => (true, std::cmp::Reverse(e.update), e.id),
                    _ => (false, std::cmp::Reverse(0), e.id),
                })
                .map(|e| e.id)
        });
        if found.is_none() && hand.is_empty() {
            let (id, holder) = self.yielding(teacher, except, now)?;
            let lease = self.leases.iter_mut().find(|l| l.execution == id && l.teacher == holder).unwrap();
            lease.end = Some(lease.renewed);
            found = Some(id);
        }
        let found = found?;
        if !hand.contains(&found) && hand.len() >= HELD {
            self.leases.iter_mut().find(|l| l.execution == hand[0] && l.teacher == teacher).unwrap().end = None;
        }
        self.execution(found).shown = true;
        let end = Some(now + self.length(teacher, ttl));
        match self.leases.iter_mut().find(|l| l.execution == found && l.teacher == teacher) {
            Some(lease) => {
                lease.taken = if lease.live(now) { lease.taken } else { now };
                (lease.renewed, lease.end) = (now, end);
            }
            None => self.leases.push(Lease { execution: found, teacher, taken: now, renewed: now, end }),
        }
        Some(found)
    }

    fn renew(&mut self, teacher: usize, id: ExecutionId, now: OffsetDateTime, ttl: Duration) -> bool {
        let e = self.executions.iter().find(|e| e.id == id).unwrap();
        let room = self.given(id) + self.others(id, teacher, now) < e.wanted as usize;
        let done = e.state == State::Live && self.given(id) >= e.wanted as usize;
        let hands = self.hand(teacher, now).into_iter().filter(|&other| other != id).count();
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

    fn before(&self, new: &Answer) -> Option<Outcome> {
        let i = self.answers.iter().position(|a| a.teacher == new.teacher && a.key == new.key)?;
        Some(self.compare(i, new).unwrap_or(Outcome::KeyReused(AnswerId(i as i64 + 1))))
    }

    fn compare(&self, i: usize, new: &Answer) -> Option<Outcome> {
        let a = &self.answers[i];
        let same = a.execution == new.execution && a.kind == new.kind && a.text == new.text;
        same.then_some(Outcome::Stored { answer: AnswerId(i as i64 + 1), again: true })
    }

    /// Whether the answer takes a place (0), is late (1), or too late to be learnt from (2).
    fn lateness(&self, new: &Answer, standing: Option<usize>, now: OffsetDateTime) -> u8 {
        if new.kind == AnswerKind::Skipped {
            return 0;
        }
        if let Some(old) = standing.map(|i| &self.answers[i]).filter(|old| old.kind != AnswerKind::Skipped) {
            return old.late;
        }
        let wanted = self.executions.iter().find(|e| e.id == new.execution).unwrap().wanted as usize;
        let late = self.answers.iter().filter(|a| a.execution == new.execution && !a.superseded && a.late == 1).count();
        match () {
            () if self.given(new.execution) + self.others(new.execution, new.teacher, now) < wanted => 0,
            () if late < wanted => 1,
            () => 2,
        }
    }

    fn push(&mut self, new: Answer) -> Outcome {
        let (id, teacher) = (new.execution, new.teacher);
        self.answered[teacher] |= new.kind != AnswerKind::Skipped;
        self.answers.push(new);
        self.execution(id).shown = true;
        let e = self.executions.iter().find(|e| e.id == id).unwrap();
        let done = e.state == State::Live && self.given(id) >= e.wanted as usize;
        for lease in self.leases.iter_mut().filter(|l| l.execution == id && (l.teacher == teacher || done)) {
            lease.end = None;
        }
        Outcome::Stored { answer: AnswerId(self.answers.len() as i64), again: false }
    }

    fn answer(&mut self, mut new: Answer, now: OffsetDateTime) -> Outcome {
        if let Some(outcome) = self.before(&new) {
            return outcome;
        }
        if !self.leases.iter().any(|l| l.execution == new.execution && l.teacher == new.teacher) {
            return Outcome::NeverYours;
        }
        self.seen[new.teacher] = Some(now);
        let mine = |a: &Answer| a.execution == new.execution && a.teacher == new.teacher;
        let all: Vec<usize> = (0..self.answers.len()).filter(|&i| mine(&self.answers[i])).collect();
        if let Some(outcome) = all.iter().rev().find_map(|&i| self.compare(i, &new)) {
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

    fn correct(&mut self, old: usize, mut new: Answer, now: OffsetDateTime) -> Outcome {
        if let Some(outcome) = self.before(&new) {
            return outcome;
        }
        if self.answers[old].teacher != new.teacher {
            return Outcome::NotMine;
        }
        if self.answers[old].superseded {
            return Outcome::Superseded;
        }
        if self.answers[old].execution != new.execution {
            return Outcome::OtherExecution;
        }
        if let Some(outcome) = self.compare(old, &new) {
            return outcome;
        }
        self.seen[new.teacher] = Some(now);
        new.late = self.lateness(&new, Some(old), now);
        self.answers[old].superseded = true;
        self.push(new)
    }

    fn unused(&self) -> Vec<AnswerId> {
        let usable = |a: &Answer| a.stands() && a.used.is_none() && a.late < 2;
        (0..self.answers.len()).filter(|&i| usable(&self.answers[i])).map(|i| AnswerId(i as i64 + 1)).collect()
    }

    fn pool(&self, now: OffsetDateTime) -> PoolCounts {
        let mut counts = PoolCounts::default();
        for e in self.executions.iter().filter(|e| self.is_open(e)) {
            if self.held(e.id, now) {
                counts.leased += 1;
            } else if !self.touched(e.id) {
                counts.open += 1;
            }
        }
        let lately = |at: &OffsetDateTime| *at <= now && now - *at < Duration::seconds(120);
        let there = |t: &usize| self.seen[*t].as_ref().is_some_and(lately) || !self.hand(*t, now).is_empty();
        counts.people = (0..TEACHERS).filter(there).count() as u64;
        counts
    }
}

fn outcome(result: Result<iliad::store::Stored, StoreError>) -> Outcome {
    match result {
        Ok(stored) => Outcome::Stored { answer: stored.answer, again: stored.again },
        Err(StoreError::KeyReused { answer }) => Outcome::KeyReused(answer),
        Err(StoreError::Superseded) => Outcome::Superseded,
        Err(StoreError::NotFound("the answer")) => Outcome::NotMine,
        Err(StoreError::Invalid(_)) => Outcome::OtherExecution,
        Err(StoreError::NeverYours) => Outcome::NeverYours,
        Err(other) => panic!("{other:?}"),
    }
}

/// Does every step to the store and to the model, and compares all there is to see.
async fn compare(steps: &[Step]) {
    let bench = Bench::new().await;
    let store = &bench.store;
    let mut model = Model::default();
    let mut teachers = Vec::new();
    for n in 0..TEACHERS {
        teachers.push(bench.teacher(&format!("teacher {n}")).await);
    }
    let mut next = 1; // the key of the next execution: AUTOINCREMENT counts on even past deleted rows
    let ttl = Duration::seconds(30);
    for step in steps {
        let now = bench.clock.now();
        // Executions that a page could know: shown ones.
        let shown: Vec<ExecutionId> = model.executions.iter().filter(|e| e.shown).map(|e| e.id).collect();
        let pick = |n: usize| shown.get(n % shown.len().max(1)).copied();
        match *step {
            Step::Offer { episode, update, wanted } => {
                store.offer(&RUN, &[NewExecution { wanted, ..execution(episode, update) }]).await.unwrap();
                next += i64::from(model.offer((episode, update, wanted), next));
            }
            Step::Retire { oldest } => {
                assert_eq!(store.retire_stale(&RUN, oldest).await.unwrap(), model.retire(oldest, now));
            }
            Step::Lease { teacher, ahead, ttl } => {
                let mut except = Vec::new();
                if ahead {
                    except.extend(model.hand(teacher, now));
                }
                let ttl = Duration::seconds(ttl);
                let leased = store.lease(&RUN, teachers[teacher], &except, ttl).await.unwrap();
                if let Some(leased) = &leased {
                    assert_eq!(leased.expires_at, now + model.length(teacher, ttl));
                }
                assert_eq!(leased.map(|l| l.execution), model.lease(teacher, &except, now, ttl));
            }
            Step::Renew { teacher, execution } => {
                let Some(id) = pick(execution) else { continue };
                let renewed = store.renew(id, teachers[teacher], ttl).await;
                assert_eq!(renewed.is_ok(), model.renew(teacher, id, now, ttl), "{renewed:?}");
            }
            Step::Release { teacher, execution } => {
                let Some(id) = pick(execution) else { continue };
                store.release(id, teachers[teacher]).await.unwrap();
                for lease in model.leases.iter_mut().filter(|l| l.execution == id && l.teacher == teacher) {
                    lease.end = None;
                }
            }
            Step::Answer { teacher, execution, kind, text, key } => {
                let Some(execution) = pick(execution) else { continue };
                let (key, text) = (format!("key {key}"), format!("text {text}"));
                let new = NewAnswer {
                    client_key: key.clone(),
                    execution,
                    teacher: teachers[teacher],
                    kind,
                    text: text.clone(),
                    response: iliad::store::Response::Text,
                    shown_at: None,
                    active_ms: None,
                    ..NewAnswer::default()
                };
                let expected = Answer { execution, teacher, kind, text, key, superseded: false, used: None, late: 0 };
                assert_eq!(outcome(store.answer(&new).await), model.answer(expected, now));
            }
            Step::Correct { teacher, answer, kind, text, key } => {
                if model.answers.is_empty() {
                    continue;
                }
                let old = answer % model.answers.len();
                let execution = model.answers[old].execution;
                let (key, text) = (format!("key {key}"), format!("text {text}"));
                let new = NewAnswer {
                    client_key: key.clone(),
                    execution,
                    teacher: teachers[teacher],
                    kind,
                    text: text.clone(),
                    response: iliad::store::Response::Text,
                    shown_at: None,
                    active_ms: None,
                    ..NewAnswer::default()
                };
                let expected = Answer { execution, teacher, kind, text, key, superseded: false, used: None, late: 0 };
                assert_eq!(
                    outcome(store.correct(AnswerId(old as i64 + 1), &new).await),
                    model.correct(old, expected, now)
                );
            }
            Step::Update { take } => {
                let answers: Vec<AnswerId> = model.unused().into_iter().take(take).collect();
                let update = model.updates.len() as u64 + 1;
                let record = UpdateRecord { update, data: take.into(), answers: answers.clone() };
                store.record_update(&RUN, &record).await.unwrap();
                model.updates.push(record);
                for answer in answers {
                    model.answers[answer.0 as usize - 1].used = Some(update);
                }
            }
            Step::RecordAgain { update } => {
                if model.updates.is_empty() {
                    continue;
                }
                let record = &model.updates[update % model.updates.len()];
                store.record_update(&RUN, record).await.unwrap();
                if !record.answers.is_empty() {
                    let stolen = UpdateRecord { update: 9_999, ..record.clone() };
                    assert!(matches!(store.record_update(&RUN, &stolen).await, Err(StoreError::Conflict(_))));
                }
            }
            Step::Time { seconds } => bench.clock.turn(Duration::seconds(seconds)),
        }
        assert_eq!(store.pool(&RUN).await.unwrap(), model.pool(bench.clock.now()), "after {step:?}");
        // Who is not there now is forgotten: a clock that went back and comes again brings nobody back.
        let now = bench.clock.now();
        for seen in &mut model.seen {
            *seen = seen.filter(|at| *at <= now && now - *at < Duration::seconds(120));
        }
    }

    let unused: Vec<AnswerId> = store.unused_answers(&RUN, 9999).await.unwrap().iter().map(|a| a.answer).collect();
    assert_eq!(unused, model.unused());
    assert_eq!(store.updates_after(&RUN, 0).await.unwrap(), model.updates);
    let memory: Vec<AnswerId> = store.used_answers(&RUN, 9999).await.unwrap().iter().map(|a| a.answer).collect();
    assert_eq!(memory, model.updates.iter().flat_map(|u| u.answers.clone()).collect::<Vec<_>>());
    let rows = store.export_page(None, AnswerId::default(), 9999).await.unwrap();
    assert_eq!(rows.len(), model.answers.len());
    let by_key: HashMap<AnswerId, _> = rows.iter().map(|row| (row.answer, row)).collect();
    for (i, answer) in model.answers.iter().enumerate() {
        let row = by_key[&AnswerId(i as i64 + 1)];
        assert_eq!((&row.text, row.kind), (&answer.text, answer.kind));
        assert_eq!((row.superseded_by.is_some(), row.used_in_update), (answer.superseded, answer.used));
    }
    for (n, &teacher) in teachers.iter().enumerate() {
        let mine = || model.answers.iter().filter(|a| a.teacher == n && !a.superseded);
        let described = || mine().filter(|a| a.kind == AnswerKind::Described);
        assert_eq!(store.own_answers(&RUN, teacher, 9999).await.unwrap().len(), mine().count());
        let counts = store.teacher_counts(&RUN, teacher).await.unwrap();
        let used = described().filter(|a| a.used.is_some()).count() as u64;
        assert_eq!(counts, TeacherCounts { described: described().count() as u64, used });
    }
    store.check().await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_does_what_the_model_does(steps in prop::collection::vec(steps(), 1..120)) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(compare(&steps));
    }
}
