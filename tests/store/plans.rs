//! Every statement that the store runs finds its rows by an index.
//!
//! The statements are caught as sqlx reports them while every method is called, so that a new one cannot be forgotten.

use crate::support::{Bench, RUN, TTL, answer, execution, run, simulated};
use iliad::config::run::TeacherMode;
use iliad::ids::{AnswerId, StudyId};
use iliad::protocol::Evaluation;
use iliad::run::{Attempt, CheckpointRow, Comprehension, Point, Source};
use iliad::store::{
    AgreementAttempt, Chosen, Draft, Filter, ImportedEpisode, Joining, KeptReply, OutsideExecution, Scope, StudyArm,
    UpdateRecord,
};
use iliad::store::{LabelChange, RunEvaluation, RunOrigin, RunParent};
use iliad::study::agreement::Outcome;
use iliad::study::{Approval, Entry, ParticipantState, ReviewState, StudySettings, StudyState};
use sqlx::{Connection, Row, SqliteConnection};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, SubscriberExt};

#[derive(Clone, Default)]
struct Caught(Arc<Mutex<BTreeSet<String>>>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Caught {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        /// A short statement stands whole in `summary`, a long one in `db.statement`.
        #[derive(Default)]
        struct Sql(String, String);
        impl Visit for Sql {
            fn record_str(&mut self, field: &Field, value: &str) {
                match field.name() {
                    "summary" => self.0 = value.into(),
                    "db.statement" => self.1 = value.into(),
                    _ => {}
                }
            }
            fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
        }
        if event.metadata().target() == "sqlx::query" {
            let mut sql = Sql::default();
            event.record(&mut sql);
            let whole = if sql.1.is_empty() { sql.0 } else { sql.1 };
            self.0.lock().unwrap().insert(whole.trim().to_owned());
        }
    }
}

async fn call_everything(bench: &Bench) {
    let store = &bench.store;
    bench.offer((0..40).map(|e| (e, e / 8))).await;
    let teacher = bench.teacher("a").await;
    store.set_seen_guide(teacher).await.unwrap();
    store.set_teacher_mode(&RUN, TeacherMode::Simulated).await.unwrap();
    store.set_active(&RUN, true).await.unwrap();
    store.run(&RUN).await.unwrap();
    store.waiting_answers(&RUN).await.unwrap();
    store.runs().await.unwrap();
    let mut keys = Vec::new();
    for n in 0..10 {
        keys.push(bench.describe(teacher, &n.to_string()).await);
    }
    let leased = bench.lease(teacher).await.unwrap().execution;
    store.renew(leased, teacher, TTL).await.unwrap();
    store.release(leased, teacher).await.unwrap();
    store.held(leased, teacher).await.unwrap();
    store.reveal(leased, teacher).await.unwrap();
    store.asked(leased, teacher).await.unwrap();
    for text in ["a draft", ""] {
        let draft = Draft { execution: leased, teacher, client_key: "k".into(), version: 1, text: text.into() };
        store.save_draft(&draft).await.unwrap();
    }
    store.draft(leased, teacher).await.unwrap();
    store.drafts(&RUN, teacher, 9).await.unwrap();
    let own = store.own_answers(&RUN, teacher, 3).await.unwrap();
    store.correct(own[0].answer, &answer(own[0].execution, teacher, "better")).await.unwrap();
    store.pool(&RUN).await.unwrap();
    store.execution_in(&RUN, leased).await.unwrap();
    store.answer_in(&RUN, own[0].answer, teacher).await.unwrap();
    store.visitor_key().await.unwrap();
    // A newcomer holds everything there is; somebody who has answered gets it.
    let newcomer = bench.teacher("newcomer").await;
    store.create_run(&run("run-2")).await.unwrap();
    store.offer(&"run-2".into(), &[execution(0, 1)]).await.unwrap();
    let theirs = store.lease(&"run-2".into(), newcomer, &[], TTL).await.unwrap().unwrap().execution;
    bench.clock.turn(TTL / 2);
    assert_eq!(store.lease(&"run-2".into(), teacher, &[], TTL).await.unwrap().unwrap().execution, theirs);
    store.teacher_counts(&RUN, teacher).await.unwrap();
    store.unused_answers(&RUN, 32).await.unwrap();
    store.answers(&keys).await.unwrap();
    let record = UpdateRecord { update: 1, data: ().into(), answers: keys[..3].to_vec() };
    store.record_update(&RUN, &record).await.unwrap();
    store.record_update(&RUN, &record).await.unwrap();
    store.record_update(&RUN, &UpdateRecord { update: 2, ..record }).await.unwrap_err();
    let attempt = Attempt { view: ().into(), summary: "s".into(), understood: true };
    let carried_out = Comprehension {
        answer: keys[0],
        teacher,
        update: 1,
        episodes: 1,
        descriptions: 0,
        seconds: 1.0,
        before: attempt.clone(),
        after: Some(attempt),
    };
    store.record_comprehension(&RUN, &[carried_out]).await.unwrap();
    store.readings(&RUN, teacher, 9).await.unwrap();
    store.executions_of_readings(&RUN).await.unwrap();
    store.leave_out_of_readings(&keys[..1]).await.unwrap();
    store.readings_of_all(&RUN, 9).await.unwrap();
    store.latest_comprehension(&RUN, teacher).await.unwrap();
    store.newest_description(&RUN, teacher).await.unwrap();
    store.learnt_descriptions(&RUN, teacher, 9).await.unwrap();
    store.next_episode(&RUN).await.unwrap();
    store.updates_after(&RUN, 0).await.unwrap();
    store.used_answers(&RUN, 9).await.unwrap();
    store.record_simulated(&RUN, &[simulated(100, Some(1), "sim")]).await.unwrap();
    store.recent_episodes(&RUN, 9).await.unwrap();
    store.record_points(&RUN, &[Point::default()]).await.unwrap();
    for update in 1..9 {
        store.record_points(&RUN, &[Point { update, ..Point::default() }]).await.unwrap();
    }
    store.points(&RUN, 100).await.unwrap();
    store.points(&RUN, 3).await.unwrap();
    store.standing(&RUN).await.unwrap();
    store.run_count().await.unwrap();
    store.runs_of(&[RUN.to_owned()]).await.unwrap();
    store.last_update(&RUN).await.unwrap();
    store.checkpoint_mismatch(&RUN, 1, 1).await.unwrap();
    let checkpoint = CheckpointRow {
        name: "c".into(),
        update: 1,
        episodes: 1,
        descriptions: 1,
        validation: None,
        bytes: 1,
        written_at: String::new(),
        best: true,
    };
    store.record_checkpoint(&RUN, &checkpoint).await.unwrap();
    store.checkpoints(&RUN).await.unwrap();
    for run in [None, Some(&*RUN)] {
        store.export_page(run, AnswerId::default(), 9).await.unwrap();
        store.export_count(run).await.unwrap();
        let filter = Filter { run: run.cloned(), study: Some("s".into()), standing: true, ..Filter::default() };
        for source in Source::ALL {
            store.export_episodes(&filter, source, 0, 9).await.unwrap();
        }
        store.export_points(&filter, ("", None), 9).await.unwrap();
        store.export_updates(&filter, ("", None), 9).await.unwrap();
    }
    call_everything_of_programs(bench).await;
    call_everything_of_studies(bench).await;
    store.retire_stale(&RUN, 2).await.unwrap();
    store.offer(&RUN, &[execution(20, 9)]).await.unwrap();
    call_everything_of_labels(store).await;
}

async fn call_everything_of_labels(store: &iliad::store::Store) {
    let run = "run-2".into();
    let change = LabelChange { name: Some("a".into()), archived: Some(true), ..LabelChange::default() };
    store.label_run(&run, &change).await.unwrap();
    store.run_labels(std::slice::from_ref(&run)).await.unwrap();
    let parent = Some(RunParent { run: RUN.to_owned(), checkpoint: "c".into() });
    store.set_run_origin(&run, &RunOrigin { parent, ..RunOrigin::default() }).await.unwrap();
    store.set_run_config(&run, &serde_json::json!({})).await.unwrap();
    let nothing = iliad::protocol::evaluation::rate(0, 0);
    let evaluation = RunEvaluation {
        checkpoint: "c".into(),
        update: 1,
        episodes: 1,
        split: iliad::protocol::Split::Test,
        evaluation: Evaluation { success: nothing, valid: nothing, figures: BTreeMap::new() },
        evaluated_at: time::OffsetDateTime::UNIX_EPOCH,
    };
    store.record_evaluation(&run, &evaluation).await.unwrap();
    store.evaluations(&run).await.unwrap();
    for run in [&run, &RUN] {
        store.run_losses(run).await.unwrap();
        store.trash_run(run).await.unwrap();
        store.restore_run(run).await.unwrap();
        store.trash_run(run).await.unwrap();
    }
    store.trashed_runs().await.unwrap();
    store.trashed_before(time::OffsetDateTime::now_utc()).await.unwrap();
    store.purge_run(&RUN, true).await.unwrap();
    store.purge_run(&run, false).await.unwrap();
}

async fn call_everything_of_programs(bench: &Bench) {
    let store = &bench.store;
    store.descriptions(&RUN, AnswerId::default(), 9).await.unwrap();
    store.points_after(&RUN, Some(3), 9).await.unwrap();
    store.episodes_before(&RUN, Some((90, AnswerId(9))), 9).await.unwrap();
    store.create_run(&run("run-3")).await.unwrap();
    let outside = OutsideExecution {
        request: "r".into(),
        view: ().into(),
        summary: "s".into(),
        update: 0,
        success: false,
        wanted: 1,
    };
    store.offer_outside(&"run-3".into(), &[outside.clone(), outside.clone()]).await.unwrap();
    let row = ImportedEpisode { key: "id:1".into(), digest: vec![1], execution: outside.clone() };
    let imported = store.import_episodes(&"run-3".into(), std::slice::from_ref(&row)).await.unwrap();
    assert_eq!((imported.stored, store.imported_episodes(&"run-3".into(), &["id:1"]).await.unwrap().len()), (1, 1));
    assert_eq!(store.import_episodes(&"run-3".into(), &[row]).await.unwrap().known, 1);
    assert_eq!(store.execution_count(&"run-3".into()).await.unwrap(), 3);
    let reply = KeptReply { request: vec![1; 32], status: 201, content_type: "t".into(), body: vec![1] };
    store.keep_reply(&[2; 32], &reply).await.unwrap();
    assert_eq!(store.kept_reply(&[2; 32]).await.unwrap(), Some(reply));
    let id = store.create_api_token("secret", "n", &[Scope::Read], "me", None).await.unwrap();
    assert_eq!(store.api_token("secret").await.unwrap().unwrap().id, id);
    assert!(store.api_token_stands(id).await.unwrap());
    store.revoke_api_token(id).await.unwrap();
    assert_eq!(store.api_token("secret").await.unwrap(), None);
}

async fn call_everything_of_studies(bench: &Bench) {
    let (store, id) = (&bench.store, StudyId::from("words"));
    let arms = [StudyArm { run: RUN.to_owned(), name: "words".into() }];
    let webhook = "https://example.org/hook".to_owned();
    let settings = StudySettings { title: "t".into(), webhook, entry: Entry::Invitation, ..StudySettings::default() };
    store.create_study(&id, &settings, &arms, "secret", "me").await.unwrap();
    store
        .change_study(&id, "me", |_| Ok::<_, iliad::store::StoreError>((settings.clone(), arms.to_vec())))
        .await
        .unwrap();
    store.set_study_state(&id, StudyState::Open, "me").await.unwrap();
    store.study(&id).await.unwrap();
    store.study_of_run(&RUN).await.unwrap();
    let in_a_day = bench.store.audit(&id, 9).await.unwrap()[0].at + time::Duration::DAY;
    let tokens = [("one".to_owned(), "Anna".to_owned()), ("two".to_owned(), "Ben".to_owned())];
    store.invite_to_study(&id, &tokens, in_a_day, "me").await.unwrap();
    let ben = store.invitations(&id).await.unwrap().into_iter().find(|invitation| invitation.label == "Ben").unwrap();
    store.revoke_invitation(&id, &ben.key, "me").await.unwrap();
    let teacher = bench.teacher("a").await;
    let joining = Joining { invitation: Some("one".into()), ..Joining::default() };
    let who = store.join_study(&id, teacher, &joining).await.unwrap();
    store.returning(&id, Some("one"), None).await.unwrap();
    store.returning(&id, None, Some(("person", "session"))).await.unwrap();
    store.add_browser(teacher, "another").await.unwrap();
    store.participant_numbered(&id, who.number).await.unwrap();
    store.answers_in_study(&id, teacher).await.unwrap();
    store.learned(&RUN, (1, 9), 9).await.unwrap();
    store.attention_item(&id, (who.id, teacher), 0).await.unwrap();
    store.answer_attention_check(who.id, 0, true).await.unwrap();
    assert_eq!(store.choose_qualification(&id, &RUN, 2).await.unwrap(), 2);
    store.qualification_items(&id).await.unwrap();
    store.answer_qualification(who.id, 0, "t", None, None).await.unwrap();
    store.judge_qualification(&id, who.id, 0, true, "me").await.unwrap();
    store.qualification_answers(who.id).await.unwrap();
    store.set_participant_state(&who, ParticipantState::Teaching, None, "me").await.unwrap();
    store.set_approval(who.id, Approval::Approved, "me").await.unwrap();
    store.queue_webhook_test(&id, "me").await.unwrap();
    for message in store.due_webhooks(&[], 9).await.unwrap() {
        store.webhook_failed(message.id, "no", None).await.unwrap();
        store.retry_webhook(&id, message.id).await.unwrap();
        store.webhook_failed(message.id, "no", Some(in_a_day)).await.unwrap();
        store.webhook_delivered(message.id).await.unwrap();
    }
    store.renew_webhook_secret(&id, "another", "me").await.unwrap();
    store.show_webhook_secret(&id, "me").await.unwrap();
    store.webhooks(&id, 9).await.unwrap();
    call_everything_of_reviews(bench).await;
    store.rejoin_study(who.id, ParticipantState::Teaching, 9).await.unwrap();
    store.erase_person(who.id, "me").await.unwrap();
}

async fn call_everything_of_reviews(bench: &Bench) {
    let (store, id, teacher) = (&bench.store, StudyId::from("words"), bench.teacher("a").await);
    let settings = StudySettings { title: "t".into(), overlap: 2, ..StudySettings::default() };
    let arms = [StudyArm { run: RUN.to_owned(), name: "words".into() }];
    store
        .change_study(&id, "me", |_| Ok::<_, iliad::store::StoreError>((settings.clone(), arms.to_vec())))
        .await
        .unwrap();
    let answers = store.study_answers(&id).await.unwrap();
    let (answer, execution) = (answers[0].answer, answers[0].execution);
    store.views(&[execution]).await.unwrap();
    store.review(&id, answer, Some((ReviewState::Rejected, "why")), "me").await.unwrap();
    store.review(&id, answer, None, "me").await.unwrap();
    for chosen in [Chosen::Answer(answer), Chosen::Words("w".into()), Chosen::Nothing] {
        store.adjudicate(&id, execution, &chosen, "me").await.unwrap();
    }
    store.adjudications(&id).await.unwrap();
    let outcome = Outcome { digest: vec![0; 32], understood: true };
    store.record_agreement(&id, &RUN, &[AgreementAttempt { answer, outcome }], "me").await.unwrap();
    assert_eq!(store.agreement_attempts(&id).await.unwrap().unwrap().2.len(), 1);
    store.quality_facts(&RUN, teacher).await.unwrap();
    store.attention_of(&RUN, teacher).await.unwrap();
    for run in [None, Some(&*RUN)] {
        let filter = Filter { run: run.cloned(), study: Some(id.clone()), standing: true, ..Filter::default() };
        store.export_extent(&filter).await.unwrap();
    }
    assert!(store.own_answers_in_study(&id, teacher, 0, 9).await.unwrap().total > 0);
    store.answer_in_study(&id, answer, teacher).await.unwrap();
    store.retract(answer, teacher).await.unwrap();
}

#[tokio::test]
async fn every_statement_finds_its_rows_by_an_index() {
    let caught = Caught::default();
    // The statements are reported by sqlx's own threads: the subscriber must be everybody's.
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(caught.clone())).unwrap();
    let bench = Bench::in_a_file().await;
    call_everything(&bench).await;

    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(bench.file());
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    let statements: Vec<String> = caught.0.lock().unwrap().iter().cloned().collect();
    let ours = |sql: &&String| {
        let first = sql.split_whitespace().next().unwrap_or_default();
        ["SELECT", "INSERT", "UPDATE", "DELETE"].contains(&first)
            && !sql.contains("sqlite_schema")
            && !sql.contains("_sqlx_migrations")
            && !sql.contains("bookmarks")
    };
    let statements: Vec<&String> = statements.iter().filter(ours).collect();
    assert!(statements.len() >= 45, "only {} statements were caught", statements.len());

    // Whole walks that are meant: the list of all runs and their number, and an export of all runs with its count, which
    // is a sum over runs.
    // Sorted by hand: the few leases that one teacher holds at the moment.
    // A run leaves the trash for good once a day at most: an index of all executions for that alone would slow every other statement.
    let empties_the_trash = |sql: &str| {
        sql.starts_with("DELETE")
            && (sql.contains("FROM executions WHERE run = ?") || sql.contains("FROM runs WHERE id = ?"))
    };
    let meant = |sql: &str| {
        sql.contains("FROM runs ORDER BY rowid")
            || sql.ends_with("FROM run_counts")
            || sql.ends_with("FROM runs")
            || empties_the_trash(sql)
    };
    // So are the few runs that are alive.
    let may_sort = |sql: &str| {
        (sql.contains("FROM leases") && sql.contains("ORDER BY leases.taken_at"))
            // Two executions a person are held at most.
            || sql.contains("SELECT DISTINCT executions.id, executions.touched")
            || sql.contains("FROM runs WHERE id IN")
            // And the few runs in the trash, and the few studies of one run.
            || (sql.contains("FROM run_labels") && sql.contains("trashed_at > 0"))
            || sql.contains("UNION SELECT study FROM agreement_attempts")
    };
    let mut bad = Vec::new();
    for sql in statements {
        let explained = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
        let plan = sqlx::query(explained).fetch_all(&mut connection).await.unwrap_or_else(|e| panic!("{e}: {sql}"));
        for line in plan.iter().map(|row| row.get::<String, _>("detail")) {
            let walks = line.starts_with("SCAN") && !line.contains("json_each") && !line.contains("CONSTANT ROW");
            // A query within the query is looked through as it comes; its own rows are found by its own line.
            let name = line.split_whitespace().nth(1).unwrap_or_default();
            let subquery = line.starts_with("SCAN (") || sql.contains(&format!(") AS {name}"));
            let sorts = line.contains("TEMP B-TREE") && !may_sort(sql);
            if ((walks && !subquery) || sorts) && !meant(sql) {
                bad.push(format!("{line}\n    {sql}"));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n\n"));
}
