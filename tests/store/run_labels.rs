//! Names, notes and tags of runs; the trash, and what is left after it.

use crate::support::{Bench, RUN, execution, run, simulated};
use iliad::ids::{AnswerId, RunId};
use iliad::run::{CheckpointRow, Point};
use iliad::store::{
    Inherited, LabelChange, MadeBy, RunLabel, RunOrigin, RunParent, StoreError, StudyArm, TRASH_KEEPS, UpdateRecord,
};
use iliad::study::StudySettings;
use std::time::Duration;

#[tokio::test]
async fn labels_are_kept_and_changed_one_by_one() {
    let bench = Bench::new().await;
    let store = &bench.store;
    assert_eq!(store.run_label(&RUN).await.unwrap(), RunLabel::default());
    let all = LabelChange {
        name: Some(" The  first ".into()),
        notes: Some("with\na second line \u{1f600}".into()),
        tags: Some(vec!["Pilot".into(), "a".into(), "pilot".into()]),
        archived: Some(true),
    };
    let label = store.label_run(&RUN, &all).await.unwrap();
    assert_eq!(
        (label.name.as_str(), label.tags.as_slice()),
        ("The first", ["a".to_owned(), "pilot".to_owned()].as_slice())
    );
    assert_eq!((label.notes.as_str(), label.archived_at.is_some()), ("with\na second line \u{1f600}", true));
    let one = LabelChange { archived: Some(false), ..LabelChange::default() };
    let label = store.label_run(&RUN, &one).await.unwrap();
    assert_eq!((label.name.as_str(), label.archived_at), ("The first", None));
    let long = LabelChange { name: Some("x".repeat(81)), ..LabelChange::default() };
    assert!(matches!(store.label_run(&RUN, &long).await, Err(StoreError::Conflict(_))));
    assert!(matches!(store.label_run(&"none".into(), &one).await, Err(StoreError::NotFound(_))));
    let labels = store.run_labels(&[RUN.to_owned(), "none".into()]).await.unwrap();
    assert_eq!(labels.keys().collect::<Vec<_>>(), [&*RUN]);
}

#[tokio::test]
async fn a_run_that_continues_another_may_know_more_than_the_store() {
    let bench = Bench::new().await;
    let store = &bench.store;
    assert!(store.checkpoint_mismatch(&RUN, 5, 3).await.unwrap().is_some(), "the database is older");
    let origin = RunOrigin {
        made_by: MadeBy::Server,
        folder: None,
        parent: Some(RunParent { run: "other".into(), checkpoint: "best.safetensors".into() }),
        inherited: Inherited { update: 5, people: 3 },
    };
    store.set_run_origin(&RUN, &origin).await.unwrap();
    assert_eq!(store.run_label(&RUN).await.unwrap().inherited, origin.inherited);
    assert_eq!(store.checkpoint_mismatch(&RUN, 5, 3).await.unwrap(), None);
    assert!(store.checkpoint_mismatch(&RUN, 6, 4).await.unwrap().is_some());
}

/// A run with a row of every kind.
async fn filled(bench: &Bench) {
    let store = &bench.store;
    bench.offer((0..4).map(|episode| (episode, 0))).await;
    let teacher = bench.teacher("a").await;
    let first = bench.describe(teacher, "one").await;
    bench.describe(teacher, "two").await;
    let own = store.own_answers(&RUN, teacher, 1).await.unwrap();
    store.correct(own[0].answer, &crate::support::answer(own[0].execution, teacher, "better")).await.unwrap();
    store.record_update(&RUN, &UpdateRecord { update: 1, data: ().into(), answers: vec![first] }).await.unwrap();
    store.record_simulated(&RUN, &[simulated(100, Some(1), "sim")]).await.unwrap();
    store.record_points(&RUN, &[Point::default(), Point { update: 1, ..Point::default() }]).await.unwrap();
    let row = CheckpointRow {
        name: "best.safetensors".into(),
        update: 1,
        episodes: 1,
        descriptions: 1,
        validation: None,
        bytes: 9,
        written_at: String::new(),
        best: true,
    };
    store.record_checkpoint(&RUN, &row).await.unwrap();
}

#[tokio::test]
async fn the_trash_says_what_is_lost_keeps_it_and_removes_it_without_a_trace() {
    let bench = Bench::new().await;
    let store = &bench.store;
    filled(&bench).await;
    // Another run stays as it is.
    store.create_run(&run("run-2")).await.unwrap();
    store.offer(&"run-2".into(), &[execution(0, 0)]).await.unwrap();
    let losses = store.run_losses(&RUN).await.unwrap();
    assert_eq!((losses.descriptions_by_people, losses.answers, losses.points), (2, 4, 2));
    assert!(losses.studies.is_empty());
    assert!(matches!(store.purge_run(&RUN, false).await, Err(StoreError::Conflict(_))), "not in the trash");
    store.trash_run(&RUN).await.unwrap();
    assert!(!store.run(&RUN).await.unwrap().active, "it is not resumed");
    assert_eq!(store.trashed_runs().await.unwrap(), [RUN.to_owned()]);
    store.restore_run(&RUN).await.unwrap();
    assert!(store.trashed_runs().await.unwrap().is_empty());
    assert!(matches!(store.restore_run(&RUN).await, Err(StoreError::NotFound(_))));
    store.trash_run(&RUN).await.unwrap();
    let before = |bench: &Bench| bench.clock.now() - TRASH_KEEPS;
    assert!(store.trashed_before(before(&bench)).await.unwrap().is_empty());
    bench.clock.turn((TRASH_KEEPS + Duration::from_secs(1)).try_into().unwrap());
    assert_eq!(store.trashed_before(before(&bench)).await.unwrap(), [RUN.to_owned()]);
    let told = std::sync::Mutex::new(Vec::new());
    store.purge_run_telling(&RUN, false, &|done, all| told.lock().unwrap().push((done, all))).await.unwrap();
    let told = told.into_inner().unwrap();
    let (first, last) = (told[0], told[told.len() - 1]);
    assert!(first.0 == 0 && first.1 > 4 && last == (first.1, first.1), "every row is told of: {told:?}");
    assert!(matches!(store.run(&RUN).await, Err(StoreError::NotFound(_))));
    assert!(store.export_page(None, AnswerId::default(), 99).await.unwrap().is_empty());
    assert_eq!(store.pool(&"run-2".into()).await.unwrap().open, 1);
    // The name is free again.
    store.create_run(&run(&RUN)).await.unwrap();
    assert_eq!(store.standing(&RUN).await.unwrap().people, 0);
    store.check().await.unwrap();
}

#[tokio::test]
async fn what_was_said_in_a_study_stays_with_the_study() {
    let bench = Bench::new().await;
    let store = &bench.store;
    filled(&bench).await;
    let arms = [StudyArm { run: RUN.to_owned(), name: "words".into() }];
    let settings = StudySettings { title: "t".into(), ..StudySettings::default() };
    store.create_study(&"words".into(), &settings, &arms, "secret", "me").await.unwrap();
    assert_eq!(store.run_losses(&RUN).await.unwrap().studies, ["words"]);
    store.trash_run(&RUN).await.unwrap();
    store.purge_run(&RUN, false).await.unwrap();
    let known: Vec<RunId> = store.runs().await.unwrap().into_iter().map(|run| run.id).collect();
    assert_eq!(known, [RUN.to_owned()]);
    assert_eq!(store.export_page(Some(&RUN), AnswerId::default(), 99).await.unwrap().len(), 4);
    assert!(store.checkpoints(&RUN).await.unwrap().is_empty());
    assert!(store.trashed_runs().await.unwrap().is_empty(), "it can no longer be put back");
    assert!(matches!(store.restore_run(&RUN).await, Err(StoreError::NotFound(_))));
}
