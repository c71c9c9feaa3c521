//! The comparison of a study's conditions, from rows of the store to the page, the JSON and the tables.

use crate::{Server, support};
use axum::http::StatusCode;
use iliad::config::run::TeacherMode;
use iliad::ids::{StudyId, TeacherId};
use iliad::protocol::evaluation::rate;
use iliad::run::Point;
use iliad::store::{Joining, StudyArm};
use iliad::study::{StudySettings, StudyState};
use iliad::web::WebSettings;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};

/// An answer: its run, teacher, kind, the update that used it, and its milliseconds.
type Given<'a> = (&'a str, TeacherId, &'a str, Option<i64>, Option<i64>);

/// Writes answers in their order behind the store's back, with their executions left out.
async fn write(server: &Server, answers: &[Given<'_>]) {
    let options = SqliteConnectOptions::new().filename(server._folder.path().join("iliad.sqlite")).foreign_keys(false);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    for (number, (run, teacher, kind, update, active)) in (0_i64..).zip(answers) {
        let statement = "INSERT INTO answers (run, episode, source, execution, teacher, client_key, kind, text, request_shown,
                 policy_update, created_at, active_ms, used_in_update, used_position)
             VALUES (?1, ?2, 'human', 90000 + ?2, ?3, 'key' || ?2, ?4, 't', 0, 0, ?2, ?5, ?6, iif(?6 IS NULL, NULL, ?2))";
        let query =
            sqlx::query(statement).bind(*run).bind(number).bind(*teacher).bind(*kind).bind(*active).bind(*update);
        query.execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
}

/// A study whose runs have these names, open, with two teachers; and a third person, who takes no part.
async fn study(server: &Server, runs: [(&str, &str); 3]) -> [TeacherId; 3] {
    let id = StudyId::from("media");
    for (run, _) in runs {
        server.state.store.create_run(&support::run_row(run, TeacherMode::Human)).await.unwrap();
    }
    let settings = StudySettings { title: "Three media".into(), ..StudySettings::default() };
    let arms = runs.map(|(run, name)| StudyArm { run: run.into(), name: name.into() });
    server.state.store.create_study(&id, &settings, &arms, "secret", "a test").await.unwrap();
    server.state.store.set_study_state(&id, StudyState::Open, "a test").await.unwrap();
    let mut teachers = [TeacherId(0); 3];
    for (teacher, token) in teachers.iter_mut().zip(["a", "b", "c"]) {
        *teacher = server.state.store.teacher(token).await.unwrap().id;
    }
    for teacher in &teachers[..2] {
        server.state.store.join_study(&id, *teacher, &Joining::default()).await.unwrap();
    }
    teachers
}

async fn evaluated(server: &Server, run: &str, evaluations: &[(u64, u64)]) {
    let points = evaluations.iter().map(|&(update, right)| Point {
        update,
        validation: Some(rate(right, 200)),
        ..Point::default()
    });
    server.state.store.record_points(&run.into(), &points.collect::<Vec<_>>()).await.unwrap();
}

#[tokio::test]
async fn gain_is_set_against_the_effort_of_the_studys_teachers() {
    let server = Server::in_a_file(WebSettings::default(), TeacherMode::Human).await;
    let [anna, ben, other] = study(&server, [("one", "words"), ("two", "words"), ("three", "ratings")]).await;
    assert!(!server.page("/studies/media", "").await.text.contains("What was learned"), "nothing was given yet");
    evaluated(&server, "one", &[(0, 20), (5, 60), (10, 120)]).await;
    evaluated(&server, "two", &[(0, 40), (4, 100)]).await;
    evaluated(&server, "three", &[(0, 40)]).await;
    let answers = [
        ("one", other, "described", Some(3), Some(70_000)), // before the study, by a researcher
        ("one", anna, "described", Some(6), Some(30_000)),
        ("one", anna, "skipped", None, Some(15_000)), // belongs to update 9
        ("one", other, "described", Some(8), Some(99_000)),
        ("one", ben, "described", Some(9), Some(45_000)),
        ("one", ben, "described", None, Some(5_000)), // waits
        ("two", anna, "described", Some(1), Some(60_000)),
        ("two", ben, "nothing_changed", Some(2), None),
    ];
    write(&server, &answers).await;
    let found = server.get("/api/studies/media/comparison", "").await.json();
    let [words, ratings] = [0, 1].map(|i| found["conditions"][i].clone());
    assert_eq!((&words["name"], &ratings["name"]), (&"words".into(), &"ratings".into()));
    let [one, two] = [0, 1].map(|i| words["runs"][i]["outcome"].clone());
    assert_eq!((&one["responses"], &one["given"], &one["active_minutes"]), (&2.into(), &3.into(), &1.5.into()));
    let near = |value: &serde_json::Value, wanted: f64| {
        assert!((value.as_f64().unwrap() - wanted).abs() < 1e-9, "{value} is not {wanted}");
    };
    near(&one["gain"]["value"], 0.3);
    near(&one["gain_per_minute"]["value"], 0.2);
    near(&one["gain_per_ten_responses"]["value"], 1.5);
    assert_eq!((&two["responses"], &two["untimed"], &two["teachers"]), (&2.into(), &1.into(), &2.into()));
    near(&two["gain"]["value"], 0.3);
    // Of both runs: two teachers, and the mean of the two gains, which are alike.
    assert_eq!((&words["outcome"]["teachers"], &words["outcome"]["responses"]), (&2.into(), &4.into()));
    near(&words["outcome"]["gain"]["low"], 0.3);
    assert_eq!(words["curves"]["responses"][0]["x"], 0.0);
    assert_eq!((&ratings["outcome"]["gain"], &ratings["outcome"]["given"]), (&serde_json::Value::Null, &0.into()));
    let page = server.page("/studies/media/comparison", "").await.text;
    assert!(page.contains("mean of 2 runs") && page.contains("+30.0"), "{page}");
    assert!(page.contains("The time of 1 response was not measured"), "{page}");
    assert!(server.page("/studies/media", "").await.text.contains("What was learned"));
    // The tables: a line for each condition and for each run, and one for each evaluation since the study began.
    let table = server.get("/studies/media/comparison.csv", "").await;
    assert!(table.header("content-disposition").contains("media-comparison.csv"));
    let mut reader = csv::Reader::from_reader(table.text.as_bytes());
    let columns = reader.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let cell = |row: usize, name: &str| rows[row].get(columns.iter().position(|c| c == name).unwrap()).unwrap();
    let levels: Vec<_> = (0..rows.len()).map(|row| (cell(row, "level"), cell(row, "run"))).collect();
    assert_eq!(levels, [("condition", ""), ("run", "one"), ("run", "two"), ("condition", ""), ("run", "three")]);
    assert_eq!((cell(1, "active_minutes"), cell(1, "before"), cell(1, "now_n")), ("1.5", "0.3", "200"));
    assert_eq!(cell(3, "gain"), "");
    let curves = server.get("/studies/media/comparison-curves.csv", "").await.text;
    assert!(curves.contains("words,one,10,5,2,1.5,0.6,200,"), "{curves}");
    assert_eq!(curves.lines().count(), 1 + 2 + 2 + 1);
}

#[tokio::test]
async fn a_comparison_is_for_those_who_steer() {
    let settings = WebSettings { access_token: Some("secret".into()), ..WebSettings::default() };
    let server = Server::with(settings, TeacherMode::Human).await;
    study(&server, [("one", "words"), ("two", "words"), ("three", "ratings")]).await;
    for path in
        ["/api/studies/media/comparison", "/studies/media/comparison.csv", "/studies/media/comparison-curves.csv"]
    {
        assert_eq!(server.get(path, "").await.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    let open = Server::new().await;
    assert_eq!(open.get("/api/studies/none/comparison", "").await.status, StatusCode::NOT_FOUND);
}
