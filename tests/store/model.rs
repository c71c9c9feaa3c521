//! Any interleaving of people, trainer, researchers, clocks and restarts: the store does what a model in plain vectors does, and
//! keeps what it has acknowledged.

mod plain;

use crate::postgres::Database;
use crate::support::{self, execution, open_with_clocks};
use iliad::ids::{AnswerId, ExecutionId, RunId, StudyId, TeacherId};
use iliad::store::{
    AnswerKind, Joining, LabelChange, NewAnswer, NewExecution, Store, StoreError, StudyArm, TeacherCounts, UpdateRecord,
};
use iliad::study::{ReviewState, StudySettings, StudyState};
use plain::{Answer, Model, Outcome, Recorded, Run, Undone};
use proptest::prelude::*;
use std::collections::BTreeMap;
use time::{Duration, OffsetDateTime};

/// People who come by at a time. Who is erased comes again as somebody else.
const SEATS: usize = 4;

/// The first run is an arm of a study, so its rows stay when it is removed for good. The second is not.
const RUNS: usize = 2;

const TTL: Duration = Duration::seconds(30);

/// One thing that happens. Executions and answers are picked by number, modulo how many there are.
#[derive(Clone, Debug)]
enum Step {
    Offer { run: usize, episode: u64, update: u64, wanted: u32 },
    Retire { run: usize, oldest: u64 },
    RetireSkipped { run: usize, keep: usize },
    Lease { run: usize, seat: usize, ahead: bool, ttl: i64 },
    Renew { seat: usize, execution: usize },
    Release { seat: usize, execution: usize },
    Answer { seat: usize, execution: usize, kind: AnswerKind, text: u8, key: u8 },
    Correct { seat: usize, answer: usize, kind: AnswerKind, text: u8, key: u8 },
    Undo { seat: usize, answer: usize },
    Retract { seat: usize, answer: usize },
    Review { answer: usize, decision: Option<ReviewState> },
    Read { run: usize, most: usize },
    Update { run: usize },
    RecordAgain { run: usize, update: usize },
    Archive { run: usize, archived: bool },
    Trash { run: usize },
    Restore { run: usize },
    Remove { run: usize },
    Erase { seat: usize },
    Pass { seconds: i64 },
    SetClock { seconds: i64 },
    Restart,
}

fn kinds() -> impl Strategy<Value = AnswerKind> + Clone {
    prop_oneof![
        4 => Just(AnswerKind::Described),
        1 => Just(AnswerKind::NothingChanged),
        1 => Just(AnswerKind::CannotDescribe),
        2 => Just(AnswerKind::Skipped),
    ]
}

fn people(seat: std::ops::Range<usize>, pick: std::ops::Range<usize>) -> impl Strategy<Value = Step> {
    let run = prop_oneof![3 => Just(0usize), 1 => Just(1usize)];
    let said = (seat.clone(), pick.clone(), kinds(), 0u8..4, 0u8..24);
    prop_oneof![
        6 => (run, seat.clone(), any::<bool>(), 1i64..100)
            .prop_map(|(run, seat, ahead, ttl)| Step::Lease { run, seat, ahead, ttl }),
        2 => (seat.clone(), pick.clone()).prop_map(|(seat, execution)| Step::Renew { seat, execution }),
        1 => (seat.clone(), pick.clone()).prop_map(|(seat, execution)| Step::Release { seat, execution }),
        5 => said.clone()
            .prop_map(|(seat, execution, kind, text, key)| Step::Answer { seat, execution, kind, text, key }),
        2 => said.prop_map(|(seat, answer, kind, text, key)| Step::Correct { seat, answer, kind, text, key }),
        2 => (seat.clone(), pick.clone()).prop_map(|(seat, answer)| Step::Undo { seat, answer }),
        1 => (seat, pick).prop_map(|(seat, answer)| Step::Retract { seat, answer }),
    ]
}

fn trainer(run: std::ops::Range<usize>) -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (run.clone(), 0u64..24, 0u64..4, 1u32..3)
            .prop_map(|(run, episode, update, wanted)| Step::Offer { run, episode, update, wanted }),
        1 => (run.clone(), 0u64..5).prop_map(|(run, oldest)| Step::Retire { run, oldest }),
        1 => (run.clone(), 0usize..3).prop_map(|(run, keep)| Step::RetireSkipped { run, keep }),
        2 => (run.clone(), 1usize..5).prop_map(|(run, most)| Step::Read { run, most }),
        2 => run.clone().prop_map(|run| Step::Update { run }),
        1 => (run, 0usize..1000).prop_map(|(run, update)| Step::RecordAgain { run, update }),
    ]
}

fn researchers(run: std::ops::Range<usize>) -> impl Strategy<Value = Step> {
    let decision = prop_oneof![Just(None), Just(Some(ReviewState::Accepted)), Just(Some(ReviewState::Rejected))];
    prop_oneof![
        3 => (0usize..1000, decision).prop_map(|(answer, decision)| Step::Review { answer, decision }),
        1 => (run.clone(), any::<bool>()).prop_map(|(run, archived)| Step::Archive { run, archived }),
        2 => run.clone().prop_map(|run| Step::Trash { run }),
        1 => run.clone().prop_map(|run| Step::Restore { run }),
        1 => run.prop_map(|run| Step::Remove { run }),
        1 => (0..SEATS).prop_map(|seat| Step::Erase { seat }),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        18 => people(0..SEATS, 0..1000),
        10 => trainer(0..RUNS),
        4 => researchers(0..RUNS),
        3 => (1i64..80).prop_map(|seconds| Step::Pass { seconds }),
        1 => (-4_000i64..4_000).prop_map(|seconds| Step::SetClock { seconds }),
        1 => Just(Step::Restart),
    ]
}

/// The runs' names.
fn id(run: usize) -> RunId {
    ["run-1", "other"][run].into()
}

fn study() -> StudyId {
    "study".into()
}

/// A store with two clocks, beside its model.
struct Bench {
    store: Store,
    folder: tempfile::TempDir,
    database: Option<Database>,
    /// The time of day, and the clock of leases, which nobody sets back while the store is open.
    day: support::Clock,
    leases: support::Clock,
    model: Model,
    /// By seat, who sits there: their key in the store and their place in the model.
    seats: Vec<(TeacherId, usize)>,
    /// The answers that the trainer of a run has read and not recorded.
    read: [Vec<AnswerId>; RUNS],
    /// Acknowledged answers: the run and the words.
    acknowledged: BTreeMap<AnswerId, (usize, String)>,
}

impl Bench {
    async fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let (day, leases) = (support::Clock::default(), support::Clock::default());
        let database = Database::new().await;
        let store = open_with_clocks(folder.path(), database.as_ref(), &day, &leases).await;
        for run in 0..RUNS {
            store.create_run(&support::run(&id(run))).await.unwrap();
        }
        let arms = [StudyArm { run: id(0), name: "words".into() }];
        let settings = StudySettings { title: "Words".into(), ..StudySettings::default() };
        store.create_study(&study(), &settings, &arms, "secret", "a test").await.unwrap();
        store.set_study_state(&study(), StudyState::Open, "a test").await.unwrap();
        let model = Model { runs: vec![Run::default(), Run::default()], ..Model::default() };
        let (seats, read, acknowledged) = (Vec::new(), Default::default(), BTreeMap::new());
        let mut bench = Bench { store, folder, database, day, leases, model, seats, read, acknowledged };
        for seat in 0..SEATS {
            bench.seats.push((TeacherId::default(), 0));
            bench.sit(seat).await;
        }
        bench
    }

    /// Somebody with the cookie of a seat comes by.
    async fn sit(&mut self, seat: usize) {
        let teacher = self.store.teacher(&format!("cookie {seat}")).await.unwrap().id;
        assert!(self.seats.iter().all(|(other, _)| *other != teacher), "a person who was erased comes as another one");
        self.seats[seat] = (teacher, self.model.answered.len());
        self.model.answered.push(false);
    }

    fn now(&self) -> OffsetDateTime {
        self.leases.now()
    }

    /// An execution that a page could know: mostly one that the person at the seat has had.
    fn execution(&self, seat: usize, pick: usize) -> Option<(usize, ExecutionId)> {
        let (person, any) = (self.seats[seat].1, pick.is_multiple_of(4));
        let had = |id: ExecutionId| self.model.leases.iter().any(|l| l.execution == id && l.teacher == person);
        let known = self.model.executions.iter().filter(|e| e.shown && (any || had(e.id)));
        let known: Vec<_> = known.map(|e| (e.run, e.id)).collect();
        known.get(pick / 4 % known.len().max(1)).copied()
    }

    /// An answer: mostly one of the person at the seat.
    fn answer(&self, seat: Option<usize>, pick: usize) -> Option<Answer> {
        let person = seat.filter(|_| !pick.is_multiple_of(4)).map(|seat| self.seats[seat].1);
        let known = self.model.answers.iter().filter(|a| person.is_none_or(|person| a.teacher == person));
        let known: Vec<_> = known.collect();
        known.get(pick / 4 % known.len().max(1)).map(|answer| (*answer).clone())
    }

    /// A new answer for the store, and the same for the model.
    fn said(
        &self,
        (run, execution): (usize, ExecutionId),
        seat: usize,
        kind: AnswerKind,
        (text, key): (u8, u8),
    ) -> (NewAnswer, Answer) {
        let (teacher, person) = self.seats[seat];
        let (key, text) = (format!("key {key}"), format!("text {text}"));
        let new =
            NewAnswer { client_key: key.clone(), execution, teacher, kind, text: text.clone(), ..Default::default() };
        let same = Answer {
            id: AnswerId(0),
            run,
            execution,
            teacher: person,
            kind,
            text,
            key,
            superseded: false,
            undone: false,
            retracted: false,
            rejected: false,
            passed_over: false,
            used: None,
            late: 0,
        };
        (new, same)
    }

    /// Compares an outcome with the model's, and remembers what was acknowledged.
    fn took(
        &mut self,
        result: Result<iliad::store::Stored, StoreError>,
        expected: Outcome,
        (run, text): (usize, String),
    ) {
        let outcome = match result {
            Ok(stored) => Outcome::Stored { answer: stored.answer, again: stored.again },
            Err(StoreError::KeyReused { answer }) => Outcome::KeyReused(answer),
            Err(StoreError::Superseded) => Outcome::Superseded,
            Err(StoreError::NotFound("the answer")) => Outcome::NotMine,
            Err(StoreError::Invalid(_)) => Outcome::OtherExecution,
            Err(StoreError::NeverYours) => Outcome::NeverYours,
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(outcome, expected);
        if let Outcome::Stored { answer, again } = outcome {
            let before = self.acknowledged.insert(answer, (run, text.clone()));
            assert_eq!(before, again.then_some((run, text)), "an answer is acknowledged anew once");
        }
    }

    async fn take(&mut self, step: &Step) {
        let (now, day) = (self.now(), self.day.now());
        match *step {
            Step::Offer { run, episode, update, wanted } => {
                self.store.offer(&id(run), &[NewExecution { wanted, ..execution(episode, update) }]).await.unwrap();
                self.model.offer(run, (episode, update, wanted));
            }
            Step::Retire { run, oldest } => {
                let retired = self.store.retire_stale(&id(run), oldest).await.unwrap();
                assert_eq!(retired, self.model.retire_stale(run, oldest, now));
            }
            Step::RetireSkipped { run, keep } => {
                let retired = self.store.retire_skipped(&id(run), keep as u64).await.unwrap();
                assert_eq!(retired, self.model.retire_skipped(run, keep, now));
            }
            Step::Lease { run, seat, ahead, ttl } => {
                let (teacher, person) = self.seats[seat];
                let except = if ahead { self.model.hand(run, person, now) } else { Vec::new() };
                let ttl = Duration::seconds(ttl);
                let leased = self.store.lease(&id(run), teacher, &except, ttl).await.unwrap();
                if let Some(leased) = &leased {
                    assert_eq!(leased.expires_at, day + self.model.length(person, ttl));
                }
                let expected = self.model.lease((run, person), &except, now, ttl);
                assert_eq!(leased.map(|l| l.execution), expected);
            }
            Step::Renew { seat, execution } => {
                let Some((_, execution)) = self.execution(seat, execution) else { return };
                let (teacher, person) = self.seats[seat];
                let renewed = self.store.renew(execution, teacher, TTL).await;
                assert_eq!(renewed.is_ok(), self.model.renew(person, execution, now, TTL), "{renewed:?}");
            }
            Step::Release { seat, execution } => {
                let Some((_, execution)) = self.execution(seat, execution) else { return };
                let (teacher, person) = self.seats[seat];
                self.store.release(execution, teacher).await.unwrap();
                self.model.release(execution, person);
            }
            Step::Answer { seat, execution, kind, text, key } => {
                let Some((run, execution)) = self.execution(seat, execution) else { return };
                let (new, same) = self.said((run, execution), seat, kind, (text, key));
                let (told, expected) = (self.store.answer(&new).await, self.model.answer(same, now));
                self.took(told, expected, (run, new.text));
            }
            Step::Correct { seat, answer, kind, text, key } => {
                let Some(old) = self.answer(Some(seat), answer) else { return };
                let (new, same) = self.said((old.run, old.execution), seat, kind, (text, key));
                let (told, expected) = (self.store.correct(old.id, &new).await, self.model.correct(old.id, same, now));
                self.took(told, expected, (old.run, new.text));
            }
            Step::Undo { seat, answer } => {
                let Some(old) = self.answer(Some(seat), answer) else { return };
                let (teacher, person) = self.seats[seat];
                let told = self.store.undo(&id(old.run), old.id, teacher, TTL).await;
                match self.model.undo(old.id, person, now, TTL) {
                    Undone::NotMine => assert!(matches!(told, Err(StoreError::NotFound(_))), "{told:?}"),
                    Undone::Superseded => assert!(matches!(told, Err(StoreError::Superseded)), "{told:?}"),
                    Undone::Learnt(update) => assert_eq!(told.unwrap().learnt_in, Some(update)),
                    Undone::Before => assert_eq!(told.unwrap().learnt_in, None),
                    Undone::Back(lease) => {
                        let told = told.unwrap();
                        assert_eq!((told.learnt_in, told.text), (None, old.text));
                        assert_eq!(told.expires_at, lease.map_or(day, |lease| day + lease));
                    }
                }
            }
            Step::Retract { seat, answer } => {
                let Some(old) = self.answer(Some(seat), answer) else { return };
                let (teacher, person) = self.seats[seat];
                let told = self.store.retract(old.id, teacher).await;
                match self.model.retract(old.id, person) {
                    Ok(learnt) => assert_eq!(told.unwrap().learnt_in, learnt),
                    Err(()) => assert!(matches!(told, Err(StoreError::NotFound(_))), "{told:?}"),
                }
            }
            Step::Review { answer, decision } => {
                let Some(old) = self.answer(None, answer) else { return };
                let told = self.store.review(&study(), old.id, decision.map(|state| (state, "why")), "eva").await;
                if old.run == 0 {
                    told.unwrap();
                    self.model.review(old.id, decision == Some(ReviewState::Rejected));
                } else {
                    assert!(matches!(told, Err(StoreError::NotFound(_))), "the study has no such answer: {told:?}");
                }
            }
            Step::Read { run, most } => {
                let read = self.store.unused_answers(&id(run), most as u32).await.unwrap();
                self.read[run] = read.into_iter().map(|answer| answer.answer).collect();
                assert_eq!(self.read[run], self.model.unused(run).into_iter().take(most).collect::<Vec<_>>());
            }
            Step::Update { run } => {
                let answers = std::mem::take(&mut self.read[run]);
                let update = self.model.runs[run].updates.len() as u64 + 1;
                let record = UpdateRecord { update, data: "a step".into(), answers };
                let told = self.store.record_update(&id(run), &record).await;
                match self.model.record(run, &record) {
                    Recorded::Done => told.unwrap(),
                    Recorded::Superseded => assert!(matches!(told, Err(StoreError::Superseded)), "{told:?}"),
                    Recorded::Conflict => assert!(matches!(told, Err(StoreError::Conflict(_))), "{told:?}"),
                }
            }
            Step::RecordAgain { run, update } => {
                let updates = &self.model.runs[run].updates;
                let Some(record) = updates.get(update % updates.len().max(1)) else { return };
                self.store.record_update(&id(run), record).await.unwrap();
                if !record.answers.is_empty() {
                    let stolen = UpdateRecord { update: 9_999, ..record.clone() };
                    // Some of them may have been taken back since, or rejected, which says more.
                    let told = self.store.record_update(&id(run), &stolen).await;
                    assert!(matches!(told, Err(StoreError::Conflict(_) | StoreError::Superseded)), "{told:?}");
                }
            }
            _ => self.keep(step).await,
        }
    }

    /// The deeds of researchers, clocks and the machine.
    async fn keep(&mut self, step: &Step) {
        match *step {
            Step::Archive { run, archived } => {
                let change = LabelChange { archived: Some(archived), ..LabelChange::default() };
                self.store.label_run(&id(run), &change).await.unwrap();
                self.model.runs[run].archived = archived;
            }
            Step::Trash { run } => {
                self.store.trash_run(&id(run)).await.unwrap();
                self.model.runs[run].trashed = true;
            }
            Step::Restore { run } => {
                let told = self.store.restore_run(&id(run)).await;
                let known = &mut self.model.runs[run];
                assert_eq!(told.is_ok(), known.trashed && !known.purged, "{told:?}");
                known.trashed = known.trashed && told.is_err();
            }
            Step::Remove { run } => {
                let told = self.store.purge_run(&id(run), false).await;
                assert_eq!(told.is_ok(), self.model.runs[run].trashed, "{told:?}");
                match (told.is_ok(), run) {
                    (false, _) => {}
                    // The study needs what people said.
                    (true, 0) => self.model.runs[run].purged = true,
                    (true, _) => {
                        self.model.remove(run);
                        self.acknowledged.retain(|_, (of, _)| *of != run);
                        self.read[run].clear();
                        assert!(self.store.run(&id(run)).await.is_err());
                        self.store.create_run(&support::run(&id(run))).await.unwrap();
                    }
                }
            }
            Step::Erase { seat } => {
                let (teacher, _) = self.seats[seat];
                let part = self.store.join_study(&study(), teacher, &Joining::default()).await.unwrap();
                self.store.erase_person(part.id, "a test").await.unwrap();
                self.sit(seat).await;
            }
            Step::Pass { seconds } => {
                self.leases.turn(Duration::seconds(seconds));
                self.day.turn(Duration::seconds(seconds));
            }
            Step::SetClock { seconds } => self.day.turn(Duration::seconds(seconds)),
            Step::Restart => {
                self.store.close().await;
                // The clock of leases begins at the time of day, and nobody has been seen yet.
                self.leases.turn(self.day.now() - self.leases.now());
                self.store =
                    open_with_clocks(self.folder.path(), self.database.as_ref(), &self.day, &self.leases).await;
                self.model.seen.clear();
            }
            _ => unreachable!("{step:?}"),
        }
    }

    /// Compares what can be seen at every step.
    async fn compare(&mut self, step: &Step) {
        let now = self.now();
        for run in 0..RUNS {
            assert_eq!(self.store.pool(&id(run)).await.unwrap(), self.model.pool(run, now), "{run} after {step:?}");
            let said = self.acknowledged.values().filter(|(of, _)| *of == run).count() as u64;
            assert_eq!(self.store.export_count(Some(&id(run))).await.unwrap(), said, "{run} after {step:?}");
        }
        self.model.forget(now);
        self.model.check(now);
    }

    /// Compares all there is to see.
    async fn compare_all(&self) {
        for run in 0..RUNS {
            let (id, known) = (id(run), &self.model.runs[run]);
            let of_run = || self.model.answers.iter().filter(|a| a.run == run);
            let keys = |answers: Vec<iliad::store::TrainerAnswer>| answers.iter().map(|a| a.answer).collect::<Vec<_>>();
            assert_eq!(keys(self.store.unused_answers(&id, 9999).await.unwrap()), self.model.unused(run));
            assert_eq!(self.store.updates_after(&id, 0).await.unwrap(), known.updates);
            let used: Vec<AnswerId> = known.updates.iter().flat_map(|u| u.answers.clone()).collect();
            assert_eq!(keys(self.store.used_answers(&id, 9999).await.unwrap()), used);

            // Everything that was acknowledged is there once, in the words in which it came, and nothing else.
            let rows = self.store.export_page(Some(&id), AnswerId::default(), 9999).await.unwrap();
            let there: BTreeMap<AnswerId, _> = rows.iter().map(|row| (row.answer, row)).collect();
            assert_eq!(there.len(), rows.len());
            let acknowledged = self.acknowledged.iter().filter(|(_, (of, _))| *of == run);
            assert_eq!(there.keys().collect::<Vec<_>>(), acknowledged.clone().map(|(key, _)| key).collect::<Vec<_>>());
            for ((key, (_, text)), answer) in acknowledged.zip(of_run()) {
                let row = there[key];
                assert_eq!(*text, answer.text);
                let text = if answer.retracted { "" } else { text };
                assert_eq!((row.answer, row.text.as_str(), row.kind), (answer.id, text, answer.kind));
                assert_eq!((row.superseded_by.is_some(), row.used_in_update), (answer.superseded, answer.used));
                assert_eq!((row.withdrawn_at.is_some(), row.retracted), (answer.undone, answer.retracted));
            }
            let listed = self.store.descriptions(&id, AnswerId::default(), 9999).await.unwrap();
            let listed: Vec<_> = listed.iter().map(|one| (one.id, one.state)).collect();
            let said = of_run().filter(|a| a.kind != AnswerKind::Skipped);
            assert_eq!(listed, said.map(|a| (a.id, a.stand())).collect::<Vec<_>>());

            let described = |a: &&Answer| a.kind == AnswerKind::Described;
            let learnt = of_run().filter(described).filter(|a| a.used.is_some()).count() as u64;
            assert_eq!(self.store.standing(&id).await.unwrap().people, learnt);
            let losses = self.store.run_losses(&id).await.unwrap();
            let standing = of_run().filter(described).filter(|a| !a.superseded).count() as u64;
            assert_eq!((losses.descriptions_by_people, losses.answers), (standing, rows.len() as u64));
            for (teacher, person) in &self.seats {
                let mine = || of_run().filter(|a| a.teacher == *person && !a.superseded);
                let own = self.store.own_answers(&id, *teacher, 9999).await.unwrap();
                assert_eq!(own.len(), mine().filter(|a| !a.retracted).count());
                let described = || mine().filter(|a| a.kind == AnswerKind::Described);
                let used = described().filter(|a| a.used.is_some()).count() as u64;
                let counts = TeacherCounts { described: described().count() as u64, used };
                assert_eq!(self.store.teacher_counts(&id, *teacher).await.unwrap(), counts);
            }
            let label = self.store.run_label(&id).await.unwrap();
            let flags = (label.trashed_at.is_some(), label.purged_at.is_some(), label.archived_at.is_some());
            assert_eq!(flags, (known.trashed, known.purged, known.archived));
        }
        self.store.check().await.unwrap();
    }
}

/// Does every step to the store and to the model, and compares all there is to see.
async fn compare(steps: &[Step]) {
    let mut bench = Bench::new().await;
    for step in steps {
        bench.take(step).await;
        bench.compare(step).await;
    }
    bench.compare_all().await;
    bench.store.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_does_what_the_model_does(steps in prop::collection::vec(steps(), 1..240)) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(compare(&steps));
    }
}
