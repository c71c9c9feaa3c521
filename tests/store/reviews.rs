//! Overlap, reviews, adjudications, and answers that their teachers withdraw from the data set.

use crate::support::{Bench, RUN, TTL, answer, execution};
use iliad::export::{Format, Snapshot, write};
use iliad::ids::{AnswerId, ExecutionId, StudyId, TeacherId};
use iliad::registry::Registry;
use iliad::store::{Chosen, ExportRow, Filter, Joining, NewAnswer, StoreError, StudyArm, UpdateRecord};
use iliad::study::quality::Flag;
use iliad::study::{ParticipantState, ReviewState, StudySettings, StudyState};
use serde_json::{Value, json};

fn study() -> StudyId {
    "words".into()
}

/// An open study of the run.
async fn bench(change: impl FnOnce(&mut StudySettings)) -> Bench {
    let bench = Bench::new().await;
    let mut settings = StudySettings { title: "Words".into(), overlap: 2, ..StudySettings::default() };
    change(&mut settings);
    let arms = [StudyArm { run: RUN.clone(), name: "words".into() }];
    bench.store.create_study(&study(), &settings, &arms, "secret", "a test").await.unwrap();
    bench.store.set_study_state(&study(), StudyState::Open, "a test").await.unwrap();
    bench
}

async fn participant(bench: &Bench, name: &str) -> TeacherId {
    let teacher = bench.teacher(name).await;
    bench.store.join_study(&study(), teacher, &Joining::default()).await.unwrap();
    teacher
}

async fn learn(bench: &Bench, update: u64, answers: &[AnswerId]) -> iliad::store::Result<()> {
    let record = UpdateRecord { update, data: json!({}), answers: answers.to_vec() };
    bench.store.record_update(&RUN, &record).await
}

async fn to_learn(bench: &Bench) -> Vec<AnswerId> {
    let keys = |answers: Vec<iliad::store::TrainerAnswer>| answers.iter().map(|a| a.answer).collect::<Vec<_>>();
    let found = keys(bench.store.answers_to_learn_from(&RUN, 99).await.unwrap());
    assert_eq!(found, keys(bench.store.unused_answers(&RUN, 99).await.unwrap()));
    found
}

async fn rows(bench: &Bench, standing: bool) -> Vec<Value> {
    let mut bytes = Vec::new();
    let filter = Filter { standing, ..Filter::of_run(&RUN) };
    let snapshot = Snapshot::take(&bench.store, Registry::builtin(), filter).await.unwrap();
    write(snapshot, Format::Jsonl, &mut bytes, |_| {}).await.unwrap();
    String::from_utf8(bytes).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn row(bench: &Bench, answer: AnswerId) -> ExportRow {
    let page = bench.store.export_page(Some(&RUN), AnswerId(answer.0 - 1), 1).await.unwrap();
    page.into_iter().next().unwrap()
}

async fn reject(bench: &Bench, answer: AnswerId) {
    bench.store.review(&study(), answer, Some((ReviewState::Rejected, "says nothing")), "eva").await.unwrap();
}

#[tokio::test]
async fn a_study_asks_two_teachers_about_an_execution_and_both_teach() {
    let bench = bench(|_| {}).await;
    bench.offer([(1, 0), (2, 0)]).await;
    let (ada, eve, ida) =
        (participant(&bench, "ada").await, participant(&bench, "eve").await, participant(&bench, "ida").await);
    let first = bench.lease(ada).await.unwrap().execution;
    let a = bench.store.answer(&answer(first, ada, "one")).await.unwrap().answer;
    // Fresh executions of a newer policy do not keep the second teacher from it.
    bench.offer([(3, 5)]).await;
    assert_eq!(bench.lease(eve).await.unwrap().execution, first);
    let e = bench.store.answer(&answer(first, eve, "two")).await.unwrap().answer;
    assert_ne!(bench.lease(ida).await.unwrap().execution, first, "two were wanted");
    assert_eq!(to_learn(&bench).await, [a, e]);
    learn(&bench, 1, &[a, e]).await.unwrap();
    assert!(to_learn(&bench).await.is_empty());
    assert_eq!(bench.store.newly_answered(1, &[a, e]).await.unwrap(), 1, "it is one episode");
}

#[tokio::test]
async fn executions_that_wait_when_a_study_opens_or_changes_want_as_many_answers() {
    let bench = bench(|settings| settings.overlap = 1).await;
    bench.offer([(1, 0)]).await;
    let (ada, eve) = (participant(&bench, "ada").await, participant(&bench, "eve").await);
    let first = bench.lease(ada).await.unwrap().execution;
    assert!(bench.lease(eve).await.is_none(), "one was wanted, and ada has it");
    let settings = StudySettings { title: "Words".into(), overlap: 2, ..StudySettings::default() };
    let arms = [StudyArm { run: RUN.clone(), name: "words".into() }];
    bench
        .store
        .change_study(&study(), "a test", |_| Ok::<_, iliad::store::StoreError>((settings.clone(), arms.to_vec())))
        .await
        .unwrap();
    assert_eq!(bench.lease(eve).await.unwrap().execution, first);
    // Without an open study, a run asks one.
    bench.store.set_study_state(&study(), StudyState::Paused, "a test").await.unwrap();
    bench.offer([(2, 9)]).await;
    let second = bench.store.lease(&RUN, ada, &[first], TTL).await.unwrap().unwrap().execution;
    assert!(bench.store.lease(&RUN, eve, &[first, second], TTL).await.unwrap().is_none());
    bench.store.set_study_state(&study(), StudyState::Open, "a test").await.unwrap();
    assert_eq!(bench.store.lease(&RUN, eve, &[first], TTL).await.unwrap().unwrap().execution, second);
}

#[tokio::test]
async fn a_rejected_answer_teaches_no_more_unless_it_has_already() {
    let bench = bench(|settings| settings.overlap = 1).await;
    bench.offer([(1, 0), (2, 0)]).await;
    let (ada, eve) = (participant(&bench, "ada").await, participant(&bench, "eve").await);
    let (kept, poor) = (bench.describe(ada, "good").await, bench.describe(ada, "poor").await);
    reject(&bench, poor).await;
    assert_eq!(to_learn(&bench).await, [kept]);
    // The trainer had read it when it was rejected: nothing is recorded.
    assert!(matches!(learn(&bench, 1, &[kept, poor]).await, Err(StoreError::Superseded)));
    // Its place is free: somebody else is asked.
    let execution = bench.store.answers(&[poor]).await.unwrap()[0].episode;
    let again = bench.lease(eve).await.unwrap();
    assert_eq!(again.episode, execution);
    bench.store.release(again.execution, eve).await.unwrap();
    // Accepted after all, it teaches.
    bench.store.review(&study(), poor, Some((ReviewState::Accepted, "")), "eva").await.unwrap();
    assert_eq!(to_learn(&bench).await, [kept, poor]);
    learn(&bench, 1, &[kept, poor]).await.unwrap();
    reject(&bench, poor).await;
    assert_eq!(bench.store.used_answers(&RUN, 1).await.unwrap().len(), 2, "what was learned stays");
    learn(&bench, 1, &[kept, poor]).await.unwrap();
    assert_eq!(row(&bench, poor).await.review_state, Some(ReviewState::Rejected));
    assert_eq!(row(&bench, poor).await.text, "poor", "nothing alters an answer");
    bench.store.review(&study(), poor, None, "eva").await.unwrap();
    assert_eq!(row(&bench, poor).await.review_state, None);
    // Every decision is in the trail.
    let trail = bench.store.audit(&study(), 99).await.unwrap();
    let decisions: Vec<&str> = trail
        .iter()
        .filter(|e| e.action == "answer_reviewed")
        .map(|e| e.detail["to"].as_str().unwrap_or("-"))
        .collect();
    assert_eq!(decisions, ["-", "rejected", "accepted", "rejected"]);
    let unknown = bench.store.review(&"other".into(), poor, None, "eva").await;
    assert!(matches!(unknown, Err(StoreError::NotFound(_))));
}

#[tokio::test]
async fn a_study_can_learn_from_rejected_answers() {
    let bench = bench(|settings| settings.learn_rejected = true).await;
    bench.offer([(1, 0)]).await;
    let poor = bench.describe(participant(&bench, "ada").await, "poor").await;
    reject(&bench, poor).await;
    assert_eq!(to_learn(&bench).await, [poor]);
}

#[tokio::test]
async fn a_retracted_answer_stays_in_what_was_learned_and_leaves_every_export() {
    let bench = bench(|settings| settings.overlap = 1).await;
    bench.offer([(1, 0), (2, 0)]).await;
    let (ada, eve) = (participant(&bench, "ada").await, participant(&bench, "eve").await);
    let first = bench.lease(ada).await.unwrap().execution;
    let previewed = NewAnswer { first_text: Some("secret before".into()), ..answer(first, ada, "secret first") };
    let old = bench.store.answer(&previewed).await.unwrap().answer;
    let learnt = bench.store.correct(old, &answer(first, ada, "secret words")).await.unwrap().answer;
    learn(&bench, 1, &[learnt]).await.unwrap();
    assert!(matches!(bench.store.retract(learnt, eve).await, Err(StoreError::NotFound(_))));
    assert_eq!(bench.store.retract(learnt, ada).await.unwrap().learnt_in, Some(1));
    bench.clock.turn(time::Duration::seconds(5));
    assert_eq!(bench.store.retract(learnt, ada).await.unwrap().learnt_in, Some(1));
    // A run that resumes learns from the words as it did.
    assert_eq!(bench.store.used_answers(&RUN, 1).await.unwrap()[0].text, "secret words");
    assert_eq!(bench.store.updates_after(&RUN, 0).await.unwrap()[0].answers, [learnt]);
    learn(&bench, 1, &[learnt]).await.unwrap();
    // No export has them, nor the earlier version, nor what a preview was shown of.
    let text = rows(&bench, false).await;
    assert!(!json!(text).to_string().contains("secret"), "{text:?}");
    assert_eq!(
        (&text[1]["retracted"], &text[1]["description"], &text[1]["withdrawn_at"]),
        (&json!(true), &json!(""), &Value::Null)
    );
    assert!(bench.store.recent_episodes(&RUN, 9).await.unwrap().iter().all(|row| row.description.is_empty()));
    assert!(bench.store.own_answers(&RUN, ada, 9).await.unwrap().is_empty());
    let own = bench.store.own_answers_in_study(&study(), ada, 0, 9).await.unwrap();
    assert_eq!((own.total, own.answers[0].own.text.as_str()), (1, ""));
    assert!(own.answers[0].retracted_at.is_some_and(|at| at < bench.clock.now()));
    // One that no update has used is never learned from; its execution goes to somebody else, and not to ada.
    let fresh = bench.describe(ada, "hasty").await;
    assert_eq!(bench.store.retract(fresh, ada).await.unwrap().learnt_in, None);
    assert!(to_learn(&bench).await.is_empty());
    assert!(matches!(learn(&bench, 2, &[fresh]).await, Err(StoreError::Superseded)));
    bench.store.review(&study(), fresh, Some((ReviewState::Accepted, "")), "eva").await.unwrap();
    assert!(to_learn(&bench).await.is_empty(), "no reviewer brings it back");
    assert!(bench.lease(ada).await.is_none());
    assert!(bench.lease(eve).await.is_some());
    bench.store.check().await.unwrap();
}

#[tokio::test]
async fn an_adjudicated_description_stands_in_all_rows_of_its_execution() {
    let bench = bench(|_| {}).await;
    bench.offer([(1, 0), (2, 0)]).await;
    let (ada, eve) = (participant(&bench, "ada").await, participant(&bench, "eve").await);
    let a = bench.describe(ada, "doubles").await;
    let e = bench.describe(eve, "doubles the last letter").await;
    let other = bench.describe(ada, "something else").await;
    let first: ExecutionId = bench.store.study_answers(&study()).await.unwrap()[0].execution;
    let decide = async |chosen| bench.store.adjudicate(&study(), first, &chosen, "eva").await;
    assert!(matches!(decide(Chosen::Answer(other)).await, Err(StoreError::NotFound(_))), "another execution");
    decide(Chosen::Answer(e)).await.unwrap();
    let adjudicated = async |key| row(&bench, key).await.adjudicated;
    let text = Some("doubles the last letter".to_owned());
    assert_eq!((adjudicated(a).await, adjudicated(e).await, adjudicated(other).await), (text.clone(), text, None));
    bench.store.retract(e, eve).await.unwrap();
    assert_eq!(adjudicated(a).await, None, "the words are eve's");
    decide(Chosen::Words("It doubled the last letter.".into())).await.unwrap();
    assert_eq!(adjudicated(a).await.as_deref(), Some("It doubled the last letter."));
    assert_eq!(row(&bench, a).await.text, "doubles");
    assert!(matches!(decide(Chosen::Answer(e)).await, Err(StoreError::NotFound(_))), "it was retracted");
    decide(Chosen::Nothing).await.unwrap();
    assert_eq!(adjudicated(a).await, None);
    assert!(bench.store.adjudications(&study()).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_export_of_what_stands_counts_what_it_has() {
    let bench = bench(|settings| settings.overlap = 1).await;
    bench.offer((1..=6).map(|episode| (episode, 0))).await;
    let ada = participant(&bench, "ada").await;
    let keys = [
        bench.describe(ada, "corrected").await,
        bench.describe(ada, "taken back").await,
        bench.describe(ada, "withdrawn").await,
        bench.describe(ada, "rejected").await,
        bench.describe(ada, "stands").await,
    ];
    let first = bench.store.study_answers(&study()).await.unwrap()[0].execution;
    bench.store.correct(keys[0], &answer(first, ada, "the correction")).await.unwrap();
    bench.store.undo(&RUN, keys[1], ada, TTL).await.unwrap();
    bench.store.retract(keys[2], ada).await.unwrap();
    reject(&bench, keys[3]).await;
    let standing = rows(&bench, true).await;
    let texts: Vec<&str> = standing.iter().map(|row| row["description"].as_str().unwrap()).collect();
    assert_eq!(texts, ["stands", "the correction"]);
    for run in [Some(RUN.clone()), None] {
        let filter = Filter { run, standing: true, ..Filter::default() };
        assert_eq!(bench.store.export_extent(&filter).await.unwrap().rows, 2);
    }
    assert_eq!(rows(&bench, false).await.len(), 6);
}

#[tokio::test]
async fn exports_have_quality_flags() {
    let bench = bench(|settings| settings.overlap = 1).await;
    let offered: Vec<_> = (1..=5).map(|episode| execution(episode, 0)).collect();
    bench.store.offer(&RUN, &offered).await.unwrap();
    let ada = participant(&bench, "ada").await;
    for text in
        ["It changed the words.", "it changed the words", "it changed the words", "x", "doubled the last letter"]
    {
        bench.describe(ada, text).await;
    }
    let who = bench.store.participant(&study(), ada).await.unwrap().unwrap();
    // Checks are asked of those who teach.
    bench.store.set_participant_state(&who, ParticipantState::Teaching, None, "a test").await.unwrap();
    bench.store.answer_attention_check(who.id, 0, false).await.unwrap();
    let flags: Vec<Vec<Flag>> = rows(&bench, false)
        .await
        .into_iter()
        .map(|row| serde_json::from_value(row["quality_flags"].clone()).unwrap())
        .collect();
    let same = vec![Flag::SameText, Flag::MissedChecks];
    let short = vec![Flag::VeryShort, Flag::MissedChecks];
    assert_eq!(flags, [same.clone(), same.clone(), same, short, vec![Flag::MissedChecks]]);
}
