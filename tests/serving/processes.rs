//! One database, a process that trains and two that serve pages. Without a PostgreSQL server (`tests/with-postgres`) only the refusal is
//! tested.

use crate::checkpoints::{QUICK, first_run, manifest, update, wait_for_copy};
use crate::postgres::Database;
use crate::teacher::{TAUGHT_BY_PEOPLE, Teacher, body};
use crate::{Server, ask, iliad, wait_for};
use serde_json::{Value, json};
use sqlx::Connection;
use std::collections::BTreeSet;
use std::time::Duration;

fn database() -> Option<Database> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(Database::new());
    if database.is_none() {
        eprintln!("skipped: no PostgreSQL server is named in ILIAD_TEST_POSTGRES");
    }
    database
}

fn post(server: &Server, path: &str, what: &Value) -> (u16, Value) {
    let head = [("content-type", "application/json")];
    let (status, told) = ask(&server.address, "POST", path, &head, &what.to_string());
    (status, body(&told))
}

fn run(server: &Server, id: &str) -> Value {
    body(&ask(&server.address, "GET", &format!("/api/runs/{id}"), &[], "").1)
}

#[test]
fn pages_without_training_need_a_database_that_others_share() {
    let folder = tempfile::tempdir().unwrap();
    let refused = iliad(folder.path(), "").args(["serve", "--port", "0", "--trains", "false"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("ILIAD_DATABASE"), "{refused:?}");
}

#[test]
fn people_teach_one_run_through_processes_that_only_serve_pages() {
    let Some(database) = database() else { return };
    let address = database.address();
    let environment = [("ILIAD_DATABASE", address.as_str())];
    let data = tempfile::tempdir().unwrap();
    let folder = ["--data-dir", data.path().to_str().unwrap()];
    let training = || Server::start("", &[&TAUGHT_BY_PEOPLE[..], &folder].concat(), &environment);
    let trainer = training();
    let [first, second] = [(); 2].map(|()| Server::start("", &["--trains", "false"], &environment));

    // Two people at two processes are never at the same execution, and the run learns from both.
    let (ada, bob) = (Teacher::of(&first), Teacher::of(&second));
    let id = ada.run.clone();
    let mut seen = BTreeSet::new();
    let mut given = 0;
    wait_for("an update", || {
        for person in [&ada, &bob] {
            let leased = person.lease();
            assert!(seen.insert(leased["execution"].as_i64().unwrap()), "everybody gets another execution");
            assert_eq!(person.answer(&leased, "it writes an x in front").0, 201);
            given += 1;
        }
        [&first, &second, &trainer].iter().all(|server| run(server, &id)["status"]["update"].as_u64() >= Some(1))
    });
    wait_for("every description to be learned from", || {
        let learned = |server: &Server| run(server, &id)["status"]["descriptions_human"].as_u64().unwrap_or(0);
        // The last ones may wait for a whole batch.
        [&first, &second, &trainer].iter().all(|server| learned(server) > 0 && learned(server) <= given)
    });

    // Commands with replies, and without.
    let view = json!({ "words": ["word", "other", "third"] });
    let (status, tried) =
        post(&second, &format!("/api/runs/{id}/try"), &json!({ "request": "add an x", "start": view }));
    assert_eq!(status, 200, "{tried}");
    assert!(tried["update"].as_u64() >= Some(1), "{tried}");
    assert_eq!(post(&first, &format!("/api/runs/{id}/checkpoints"), &Value::Null).0, 201);
    assert!(post(&first, &format!("/api/runs/{id}/pause"), &Value::Null).0 < 300);
    for server in [&trainer, &second] {
        wait_for("the pause", || run(server, &id)["status"]["state"] == "paused");
    }
    assert!(post(&second, &format!("/api/runs/{id}/resume"), &Value::Null).0 < 300);
    wait_for("the resumption", || run(&first, &id)["status"]["state"] == "running");

    // How an evaluation goes is told elsewhere, too: this one fails, because its checkpoint was damaged.
    let (_, kept) = post(&first, &format!("/api/runs/{id}/checkpoints"), &Value::Null);
    let name = kept["name"].as_str().unwrap_or_else(|| panic!("{kept}")).to_owned();
    let path = data.path().join("runs").join(&id).join(&name);
    wait_for("the checkpoint", || path.is_file());
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 100]).unwrap();
    let asked = json!({ "checkpoint": name, "split": "validation" });
    let (status, told) = post(&first, &format!("/api/runs/{id}/evaluations"), &asked);
    assert_eq!(status, 202, "{told}");
    wait_for("the failure to be heard of", || {
        let (_, told) = ask(&second.address, "GET", &format!("/api/runs/{id}/evaluations"), &[], "");
        body(&told)["pending"].as_array().unwrap().iter().any(|one| one["failed"].is_string())
    });
    std::fs::write(&path, &whole).unwrap();

    // A run is started from a page of a process that cannot train it.
    let (status, made) = post(&first, "/api/runs", &json!({ "preset": "tiny", "seed": 2 }));
    assert_eq!(status, 201, "{made}");
    let made = made["id"].as_str().unwrap().to_owned();
    wait_for("the new run", || run(&second, &made)["status"]["state"] == "running");
    let (_, wrong) = post(&first, "/api/runs", &json!({ "preset": "tiny", "set": ["algorithm.batch=0"] }));
    assert!(wrong.to_string().contains("batch"), "the trainer's reason comes back: {wrong}");
    assert!(post(&second, &format!("/api/runs/{made}/stop"), &Value::Null).0 < 300);
    wait_for("its end", || run(&first, &made)["status"]["state"] == "stopped");

    // The process that trains is killed: people go on, and it learns from their words when it is back.
    let waiting = ada.lease();
    drop(trainer);
    assert_eq!(ada.answer(&waiting, "said while nobody trained").0, 201);
    wait_for("the silence to be noticed", || run(&second, &id)["live"] == false);
    let trainer = training();
    wait_for("the run to be back", || run(&first, &id)["status"]["state"] == "running");
    let (_, rows) = ask(&trainer.address, "GET", &format!("/runs/{id}/export.jsonl"), &[], "");
    assert_eq!(rows.matches("it writes an x in front").count() as u64, given);
    assert_eq!(rows.matches("said while nobody trained").count(), 1);
}

#[test]
fn signing_out_ends_the_streams_of_every_process() {
    let Some(database) = database() else { return };
    let address = database.address();
    let environment = [("ILIAD_DATABASE", address.as_str()), ("ILIAD_ACCESS_TOKEN", "a-token-that-nobody-guesses")];
    let trainer = Server::start("", &TAUGHT_BY_PEOPLE, &environment);
    let pages = Server::start("", &["--trains", "false"], &environment);
    let form = |path: &str, cookie: &str, body: &str| {
        let kind = ("content-type", "application/x-www-form-urlencoded");
        ask(&trainer.address, "POST", path, &[kind, ("sec-fetch-site", "same-origin"), ("cookie", cookie)], body)
    };
    // The link of the process that started last is the one that counts.
    let said = pages.said.join("\n");
    let link = said.split("/welcome/").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    const PASSWORD: &str = "four-words-in-a-row";
    let joined = form("/invite", "", &format!("token={link}&name=ada&password={PASSWORD}&again={PASSWORD}"));
    assert_eq!(joined.0, 303, "{}", joined.1);
    let signed_in = form("/sign-in", "", &format!("name=ada&password={PASSWORD}")).1;
    let session = signed_in.split("iliad_session=").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
    let session = format!("iliad_session={session}");

    let (status, runs) = ask(&pages.address, "GET", "/api/v1/runs", &[("cookie", &session)], "");
    assert_eq!(status, 200, "{runs}");
    let run = runs.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    wait_for("the run to be known", || {
        ask(&pages.address, "GET", &format!("/api/v1/runs/{run}"), &[("cookie", &session)], "")
            .1
            .contains("\"live\":true")
    });
    // A stream ends when its reader may no longer read it: the connection is closed after the response.
    let (at, path, head) = (pages.address.clone(), format!("/api/v1/runs/{run}/events"), session.clone());
    let stream = std::thread::spawn(move || ask(&at, "GET", &path, &[("cookie", &head)], ""));
    std::thread::sleep(Duration::from_secs(1));
    assert!(!stream.is_finished());
    assert_eq!(form("/sign-out", &session, "").0, 303);
    let (status, told) = stream.join().unwrap();
    assert!(status == 200 && told.contains("event: status"), "{told}");
    // By itself the other process would ask after half a minute; it was told at once.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let messages: i64 = runtime.block_on(async {
        let mut connection = sqlx::PgConnection::connect(&address).await.unwrap();
        let count = sqlx::query_scalar("SELECT count(*) FROM process_messages WHERE topic = 'accounts'");
        count.fetch_one(&mut connection).await.unwrap()
    });
    assert!(messages > 0);
}

#[test]
fn a_run_goes_on_at_another_machine_from_the_copies_of_its_checkpoints() {
    let Some(database) = database() else { return };
    let (address, copies) = (database.address(), tempfile::tempdir().unwrap());
    let checkpoints = format!("file://{}", copies.path().display());
    let environment = [("ILIAD_DATABASE", address.as_str()), ("ILIAD_CHECKPOINTS", &checkpoints)];
    let pages = Server::start("", &["--trains", "false"], &environment);
    let first = Server::start("", &QUICK, &environment);
    let run = first_run(&first);
    let copied = wait_for_copy(|| manifest(copies.path(), &run), 0);

    // Another machine leaves a run alone that is being trained.
    let second = Server::with_log("debug", &QUICK, &environment);
    wait_for("the log", || second.log().contains("belongs to another process"));
    wait_for("the first to be heard of", || update(&second, &run) > copied);
    let copied = wait_for_copy(|| manifest(copies.path(), &run), copied);
    let at_first = update(&first, &run);
    drop(first);

    // The machine is lost: the other one, which was up all the while, takes the run up, and both pages tell so.
    wait_for("the run to be taken up", || second.log().contains("from the copy of its checkpoint"));
    let copied = wait_for_copy(|| manifest(copies.path(), &run), copied.max(at_first));
    wait_for("the run to go on", || update(&pages, &run) > copied);
    assert_eq!(self::run(&pages, &run)["status"]["state"], "running");
    drop(second);

    // Nobody trains: a process that serves pages alone gives the checkpoint.
    wait_for("the silence to be noticed", || self::run(&pages, &run)["live"] == false);
    let manifest = manifest(copies.path(), &run);
    let file =
        manifest["files"].as_array().unwrap().iter().find(|file| file["name"].as_str().unwrap().starts_with("update-"));
    let (name, bytes) = (file.unwrap()["name"].as_str().unwrap(), file.unwrap()["bytes"].as_u64().unwrap());
    let (status, told) = ask(&pages.address, "GET", &format!("/api/v1/runs/{run}/checkpoints/{name}"), &[], "");
    let head = told.split("\r\n\r\n").next().unwrap().to_ascii_lowercase();
    assert!(status == 200 && head.contains(&format!("content-length: {bytes}")), "{status} {head}");
    let (_, listed) = ask(&pages.address, "GET", &format!("/api/runs/{run}/checkpoints"), &[], "");
    assert!(body(&listed).as_array().unwrap().iter().any(|row| row["name"] == name && row["kept"] == true), "{listed}");

    // One that is started then takes it up at once.
    let third = Server::with_log("debug", &QUICK, &environment);
    wait_for("the run to go on", || update(&third, &run) > copied);
    assert!(third.log().contains("from the copy of its checkpoint"), "{}", third.log());
    assert_eq!(self::run(&pages, &run)["status"]["state"], "running");
}
