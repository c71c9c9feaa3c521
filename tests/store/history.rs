//! Runs, teachers, episodes, curves and checkpoints.

use crate::support::{Bench, RUN, run, simulated};
use iliad::config::run::TeacherMode;
use iliad::ids::{AnswerId, TeacherId};
use iliad::protocol::Rate;
use iliad::run::{CheckpointRow, EpisodeRow, Point, Source};
use iliad::store::{AnswerKind, StoreError, UpdateRecord};
use time::Duration;

#[tokio::test]
async fn runs_come_back_as_they_were_stored_newest_first() {
    let bench = Bench::new().await;
    let mut later = run("later");
    later.created_at += Duration::nanoseconds(1);
    later.teacher = TeacherMode::Mixed { share: 0.3 };
    later.active = false;
    bench.store.create_run(&later).await.unwrap();
    let runs = bench.store.runs().await.unwrap();
    assert_eq!(runs.iter().map(|r| r.id.as_str()).collect::<Vec<_>>(), ["later", &RUN]);
    let back = bench.store.run(&"later".into()).await.unwrap();
    assert_eq!(format!("{back:?}"), format!("{later:?}"));
    assert_eq!(back.seed, u64::MAX - 1);
    assert!(matches!(bench.store.create_run(&later).await, Err(StoreError::Conflict(_))));
    assert!(matches!(bench.store.run(&"none".into()).await, Err(StoreError::NotFound("the run"))));
}

#[tokio::test]
async fn teacher_mode_and_activity_are_remembered() {
    let bench = Bench::new().await;
    let mode = TeacherMode::Mixed { share: 0.25 };
    bench.store.set_teacher_mode(&RUN, mode).await.unwrap();
    bench.store.set_active(&RUN, false).await.unwrap();
    let back = bench.store.run(&RUN).await.unwrap();
    assert_eq!((back.teacher, back.active), (mode, false));
    for share in [f64::NAN, -0.1, 1.1] {
        let refused = bench.store.set_teacher_mode(&RUN, TeacherMode::Mixed { share }).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))));
    }
    assert!(matches!(bench.store.set_active(&"none".into(), true).await, Err(StoreError::NotFound(_))));
    assert!(matches!(bench.store.set_teacher_mode(&"none".into(), mode).await, Err(StoreError::NotFound(_))));
}

#[tokio::test]
async fn a_teacher_is_found_by_the_token_which_the_file_does_not_hold() {
    let bench = Bench::in_a_file().await;
    let token = "a-very-secret-cookie-token";
    let new = bench.store.teacher(token).await.unwrap();
    assert!(!new.seen_guide);
    bench.store.set_seen_guide(new.id).await.unwrap();
    let known = bench.store.teacher(token).await.unwrap();
    assert_eq!((known.id, known.seen_guide, known.created_at), (new.id, true, bench.clock.now()));
    assert_ne!(bench.store.teacher("another").await.unwrap().id, new.id);
    assert!(matches!(bench.store.set_seen_guide(TeacherId(4711)).await, Err(StoreError::NotFound("the teacher"))));
    bench.store.close().await;
    let bytes = std::fs::read(bench.file()).unwrap();
    assert!(!bytes.windows(token.len()).any(|window| window == token.as_bytes()));
}

#[tokio::test]
async fn simulated_episodes_are_recorded_once_and_exported_with_people_s() {
    let bench = Bench::new().await;
    let silent = EpisodeRow { source: None, description: String::new(), candidates: vec![], ..simulated(1, None, "") };
    let empty = simulated(2, None, "");
    let human = EpisodeRow { source: Some(Source::Human), ..simulated(3, Some(8), "typed") };
    let rows = [simulated(0, Some(8), "replace a with b"), silent.clone(), empty.clone(), human];
    bench.store.record_simulated(&RUN, &rows).await.unwrap();
    bench.store.record_simulated(&RUN, &[simulated(0, Some(9), "another")]).await.unwrap();
    let recent = bench.store.recent_episodes(&RUN, 9).await.unwrap();
    assert_eq!(recent, [empty, silent, rows[0].clone()]);
    let exported = bench.store.export_page(Some(&RUN), AnswerId::default(), 9).await.unwrap();
    assert_eq!(
        exported.iter().map(|r| (r.episode, r.kind, r.source, r.policy_update, r.used_in_update)).collect::<Vec<_>>(),
        [
            (0, AnswerKind::Described, Source::Simulated, 7, Some(8)),
            (2, AnswerKind::CannotDescribe, Source::Simulated, 7, None)
        ]
    );
    assert_eq!((exported[0].request.as_str(), exported[0].execution.as_str()), ("request 0", "()(a)()@b"));
    assert!(exported.iter().all(|r| r.teacher.is_none()));
    assert!(
        bench.store.unused_answers(&RUN, 9).await.unwrap().is_empty(),
        "simulated ones are no work for the trainer"
    );
    assert!(matches!(bench.store.record_simulated(&"none".into(), &rows).await, Err(StoreError::NotFound("the run"))));
}

#[tokio::test]
async fn the_latest_episodes_are_in_order_of_use_whoever_described_them() {
    let bench = Bench::new().await;
    bench.offer([(0, 1), (1, 1)]).await;
    let teacher = bench.teacher("a").await;
    let keys = [bench.describe(teacher, "zero").await, bench.describe(teacher, "one").await];
    assert!(bench.store.recent_episodes(&RUN, 9).await.unwrap().is_empty(), "people's appear once used");
    for (update, key) in [(1, keys[1]), (2, keys[0])] {
        bench.store.record_simulated(&RUN, &[simulated(10 + update, Some(update), "sim")]).await.unwrap();
        bench.clock.turn(Duration::SECOND);
        let record = UpdateRecord { update, data: ().into(), answers: vec![key] };
        bench.store.record_update(&RUN, &record).await.unwrap();
        bench.clock.turn(Duration::SECOND);
    }
    let recent = bench.store.recent_episodes(&RUN, 9).await.unwrap();
    let seen: Vec<_> = recent.iter().map(|r| (r.episode, r.update, r.source, r.description.as_str())).collect();
    assert_eq!(
        seen,
        [
            (0, Some(2), Some(Source::Human), "zero"),
            (12, Some(2), Some(Source::Simulated), "sim"),
            (1, Some(1), Some(Source::Human), "one"),
            (11, Some(1), Some(Source::Simulated), "sim"),
        ]
    );
    assert_eq!(recent.iter().map(|r| r.success).collect::<Vec<_>>(), [true, true, false, true]);
    assert_eq!(bench.store.recent_episodes(&RUN, 2).await.unwrap(), recent[..2]);
}

#[tokio::test]
async fn points_are_replaced_by_update_and_come_back_to_the_last_bit() {
    let bench = Bench::new().await;
    let rate = Rate { value: 1.0 / 3.0, n: 300, low: 0.1 + 0.2, high: 0.39 };
    let full = Point {
        update: 2,
        episodes: 64,
        descriptions: 60,
        seconds: 1.1,
        loss: Some(f64::MIN_POSITIVE),
        training_success: Some(0.7),
        valid_share: Some(0.9),
        gold_share: Some(0.0),
        validation: Some(rate),
        lambda: Some(0.5),
        training_success_total: Some(0.1 + 0.7),
        validation_smoothed: Some(2.0 / 3.0),
    };
    let empty = Point { update: 1, ..Point::default() };
    bench.store.record_points(&RUN, &[Point { loss: Some(9.0), ..full.clone() }]).await.unwrap();
    bench.store.record_points(&RUN, &[full.clone(), empty.clone()]).await.unwrap();
    assert_eq!(bench.store.points(&RUN, 100).await.unwrap(), [empty, full]);
    bench
        .store
        .record_points(&RUN, &[Point { update: 3, seconds: f64::NAN, loss: Some(f64::NAN), ..Point::default() }])
        .await
        .unwrap();
    assert_eq!(bench.store.points(&RUN, 100).await.unwrap()[2], Point { update: 3, ..Point::default() });
    assert!(matches!(
        bench.store.record_points(&"none".into(), &[Point::default()]).await,
        Err(StoreError::NotFound("the run"))
    ));
}

#[tokio::test]
async fn long_curves_are_thinned_with_their_validation_readings_kept() {
    let bench = Bench::new().await;
    let rate = Rate { value: 0.5, n: 10, low: 0.2, high: 0.8 };
    let points: Vec<Point> = (0..5_000)
        .map(|update| Point { update, validation: (update % 500 == 250).then_some(rate), ..Point::default() })
        .collect();
    bench.store.record_points(&RUN, &points).await.unwrap();
    let thinned = bench.store.points(&RUN, 100).await.unwrap();
    assert_eq!(thinned.len(), 100);
    assert_eq!(thinned.iter().filter(|p| p.validation.is_some()).count(), 10);
    assert_eq!((thinned[0].update, thinned[99].update), (0, 4_999));
}

#[tokio::test]
async fn checkpoints_are_replaced_by_name_and_one_is_the_best() {
    let bench = Bench::new().await;
    let row = |name: &str, update: u64, best: bool| CheckpointRow {
        name: name.into(),
        update,
        episodes: update * 32,
        descriptions: update * 30,
        validation: best.then_some(Rate { value: 0.9, n: 100, low: 0.8, high: 0.95 }),
        bytes: 1 << 20,
        written_at: format!("2025-01-01T00:00:{update:02}Z"),
        best,
    };
    let store = &bench.store;
    for new in [row("a", 1, true), row("b", 2, true), row("c", 3, false), row("c", 4, false)] {
        store.record_checkpoint(&RUN, &new).await.unwrap();
    }
    let listed = store.checkpoints(&RUN).await.unwrap();
    let mut first = row("a", 1, true);
    first.best = false;
    assert_eq!(listed, [row("c", 4, false), row("b", 2, true), first]);
    assert!(matches!(
        store.record_checkpoint(&"none".into(), &row("a", 1, true)).await,
        Err(StoreError::NotFound("the run"))
    ));
}
