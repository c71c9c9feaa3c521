//! Runs are named, tagged, found, archived, deleted and put back.

use crate::Server;
use axum::body::Body;
use axum::http::{Method, StatusCode};
use iliad::config::run::TeacherMode;
use iliad::store::StudyArm;
use iliad::study::StudySettings;
use serde_json::{Value, json};

async fn patch(server: &Server, run: &str, body: &Value) -> crate::Reply {
    let headers = [("content-type", "application/json"), ("sec-fetch-site", "same-origin")];
    server.call(Method::PATCH, &format!("/api/runs/{run}"), &headers, body.to_string()).await
}

async fn delete(server: &Server, path: &str) -> crate::Reply {
    server.call(Method::DELETE, path, &[("sec-fetch-site", "same-origin")], Body::empty()).await
}

/// Ids of the runs in the list, in its order.
async fn listed(server: &Server, query: &str) -> Vec<String> {
    let page = server.page(&format!("/runs{query}"), "").await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    let rows = page.text.split("<tr>").skip(2);
    rows.map(|row| {
        let at = row.find("/runs/").unwrap() + 6;
        row[at..at + row[at..].find('"').unwrap()].to_owned()
    })
    .collect()
}

/// Three ended runs beside the one that goes on.
async fn with_ended() -> Server {
    let server = Server::new().await;
    for (id, algorithm) in [("one", "adel"), ("two", "dagger"), ("three", "adel")] {
        let mut row = crate::support::run_row(id, TeacherMode::Human);
        row.config = json!({"algorithm": {"name": algorithm}});
        crate::support::ended_run(&server.state.store, row).await;
    }
    server
}

#[tokio::test]
async fn titles_tell_runs_apart_and_names_are_given_by_patch_and_form() {
    let server = with_ended().await;
    let page = server.page("/runs", "").await.text;
    assert!(
        page.contains("Word pairs: tiny, adel, seed 7, ")
            && page.contains("Word pairs: tiny, dagger (demonstrations), seed 7, "),
        "{page}"
    );
    let named =
        patch(&server, "one", &json!({"name": "<First> pilot", "tags": ["Pilot", "B"], "notes": "A note"})).await;
    assert_eq!(
        (named.status, &named.json()["called"], &named.json()["label"]["tags"]),
        (StatusCode::OK, &json!("<First> pilot"), &json!(["b", "pilot"]))
    );
    let page = server.page("/runs/one", "").await.text;
    assert!(page.contains("&#60;First&#62; pilot") && page.contains("A note") && page.contains("?tag=pilot"), "{page}");
    assert_eq!(server.get("/api/runs/one", "").await.json()["called"], "<First> pilot");
    for (body, code) in [
        (json!({"name": "x".repeat(81)}), "name"),
        (json!({"tags": ["a,b"]}), "tags"),
        (json!({"notes": "x".repeat(10_001)}), "notes"),
    ] {
        let refused = patch(&server, "one", &body).await;
        assert_eq!((refused.status.as_u16(), refused.json()["code"].as_str()), (422, Some(code)));
        assert!(refused.json()["detail"].as_str().unwrap().ends_with('.'));
    }
    assert_eq!(patch(&server, "one", &json!({"title": "x"})).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(patch(&server, "none", &json!({"name": "x"})).await.status, StatusCode::NOT_FOUND);
    let form = server.form("/runs/one/label", "", "name=Other&tags=c%2C+d&back=list").await;
    assert_eq!((form.status, form.header("location")), (StatusCode::SEE_OTHER, "/runs"));
    let label = server.get("/api/runs/one", "").await.json()["label"].clone();
    assert_eq!(
        (&label["name"], &label["tags"], &label["notes"]),
        (&json!("Other"), &json!(["c", "d"]), &json!("A note"))
    );
    // The editor of studies uses the same titles.
    patch(&server, "study", &json!({"name": "The one that learns"})).await;
    assert!(server.page("/studies/new", "").await.text.contains("The one that learns"));
}

#[tokio::test]
async fn the_list_is_searched_sorted_filtered_and_archived() {
    let server = with_ended().await;
    assert_eq!(listed(&server, "").await, ["three", "two", "one", "study"]);
    patch(&server, "one", &json!({"name": "Alpha", "tags": ["pilot"]})).await;
    patch(&server, "two", &json!({"notes": "the quiet one"})).await;
    for (query, ids) in [
        ("?q=alpha", vec!["one"]),
        ("?q=QUIET+one", vec!["two"]),
        ("?q=dagger", vec!["two"]),
        ("?tag=pilot", vec!["one"]),
        ("?state=ended&sort=oldest", vec!["one", "two", "three"]),
        ("?state=learning", vec!["study"]),
        ("?sort=name&state=ended", vec!["one", "three", "two"]),
        ("?sort=success&state=ended", vec!["three", "two", "one"]),
        ("?family=regex", vec![]),
        ("?q=nothing+like+it", vec![]),
    ] {
        assert_eq!(listed(&server, query).await, ids, "{query}");
    }
    assert!(server.page("/runs?q=nothing", "").await.text.contains("No run fits."));
    patch(&server, "three", &json!({"archived": true})).await;
    assert_eq!(listed(&server, "").await, ["two", "one", "study"]);
    assert_eq!(listed(&server, "?archived=yes").await, ["three", "two", "one", "study"]);
    let back = server.form("/runs/three/label", "", "archived=no&back=list").await;
    assert_eq!(back.status, StatusCode::SEE_OTHER);
    assert_eq!(listed(&server, "").await, ["three", "two", "one", "study"]);
}

#[tokio::test]
async fn deleting_says_what_is_lost_and_can_be_taken_back() {
    let server = with_ended().await;
    let going = delete(&server, "/api/runs/study").await;
    assert_eq!((going.status, going.json()["code"].as_str()), (StatusCode::CONFLICT, Some("going")));
    assert!(server.page("/runs/study/delete", "").await.text.contains("Stop it"));
    let losses = server.get("/api/runs/one/losses", "").await.json();
    assert_eq!(
        (&losses["points"], &losses["descriptions_by_people"], &losses["checkpoints"]),
        (&json!(60), &json!(0), &json!(0))
    );
    let page = server.page("/runs/one/delete", "").await.text;
    assert!(page.contains("60 points") && page.contains("0 checkpoints") && page.contains("30 days"), "{page}");
    let gone = server.form("/runs/one/delete", "", "").await;
    assert_eq!((gone.status, gone.header("location")), (StatusCode::SEE_OTHER, "/runs/trash"));
    assert_eq!(listed(&server, "").await, ["three", "two", "study"]);
    let trash = server.page("/runs/trash", "").await.text;
    assert!(trash.contains("Put back") && trash.contains("in 30 days"), "{trash}");
    assert!(server.page("/runs/one", "").await.text.contains("This run is in the trash."));
    assert!(server.get("/api/runs", "").await.json().as_array().unwrap().iter().all(|run| run["id"] != "one"));
    let back = server.post("/api/runs/one/restore", "", &json!({})).await;
    assert_eq!(back.status, StatusCode::NO_CONTENT);
    assert_eq!(server.post("/api/runs/one/restore", "", &json!({})).await.status, StatusCode::NOT_FOUND);
    assert_eq!(listed(&server, "").await, ["three", "two", "one", "study"]);
    assert!(server.page("/runs/trash", "").await.text.contains("The trash is empty."));
    let again = delete(&server, "/api/runs/one").await;
    assert_eq!(again.status, StatusCode::OK);
    assert!(again.json()["purged_at"].as_str().unwrap().contains('T'));
}

#[tokio::test]
async fn a_run_of_a_study_is_deleted_only_by_who_names_the_study() {
    let server = with_ended().await;
    let arms = [StudyArm { run: "two".into(), name: "words".into() }];
    let settings = StudySettings { title: "t".into(), ..StudySettings::default() };
    server.state.store.create_study(&"words".into(), &settings, &arms, "secret", "me").await.unwrap();
    let refused = delete(&server, "/api/runs/two").await;
    assert_eq!((refused.status, refused.json()["code"].as_str()), (StatusCode::CONFLICT, Some("in-study")));
    assert!(refused.json()["detail"].as_str().unwrap().contains("study words"));
    let form = server.form("/runs/two/delete", "", "").await;
    assert!(form.status == StatusCode::CONFLICT && form.text.contains("value=\"words\""), "{}", form.text);
    assert_eq!(delete(&server, "/api/runs/two?study=words").await.status, StatusCode::OK);
    assert_eq!(listed(&server, "").await, ["three", "one", "study"]);
}

#[tokio::test]
async fn teaching_is_offered_only_where_people_are_asked() {
    let server = Server::new().await;
    let hidden = |page: &str| {
        let link = &page[page.find("id=\"teach-link\"").unwrap()..];
        link[..link.find('>').unwrap()].ends_with(" hidden")
    };
    assert!(server.page("/", "").await.text.contains("href=\"/teach/study\""));
    assert!(!hidden(&server.page("/runs/study", "").await.text));
    server.post("/api/runs/study/teacher", "", &json!({"mode": "simulated"})).await;
    let mut status = server.run.status.clone();
    status.wait_for(|status| status.teacher == TeacherMode::Simulated).await.unwrap();
    let home = server.page("/", "").await.text;
    assert!(!home.contains("href=\"/teach/study\"") && home.contains("without people at the moment"), "{home}");
    assert!(hidden(&server.page("/runs/study", "").await.text));
}

#[tokio::test]
async fn the_trash_is_emptied_after_it_has_said_what_is_lost() {
    let server = crate::v1::server_with(iliad::web::WebSettings::default()).await;
    for id in ["one", "two", "three"] {
        crate::support::ended_run(&server.state.store, crate::support::run_row(id, TeacherMode::Human)).await;
    }
    for id in ["one", "two"] {
        assert_eq!(delete(&server, &format!("/api/runs/{id}")).await.status, StatusCode::OK);
    }
    let page = server.page("/runs/trash", "").await.text;
    assert!(page.contains("Empty the trash now…") && page.contains("/runs/trash/empty?run=one"), "{page}");
    // One run alone.
    let asked = server.page("/runs/trash/empty?run=one", "").await.text;
    assert!(asked.contains("Remove this run for good?") && asked.contains("1 run would be removed"), "{asked}");
    assert!(asked.contains("1 checkpoint") && asked.contains(">one</textarea>"), "{asked}");
    let both = server.page("/runs/trash/empty", "").await.text;
    assert!(both.contains("Empty the trash now?") && both.contains("2 runs would be removed"), "{both}");
    assert_eq!(server.page("/runs/trash/empty?run=three", "").await.status, StatusCode::NOT_FOUND);
    // Nothing goes without the tick, and nothing that was not said.
    let unsure = server.form("/runs/trash/empty", "", "runs=one%0Atwo").await;
    assert!(unsure.status.as_u16() == 422 && unsure.text.contains("Nothing has been removed"), "{}", unsure.text);
    let emptied = server.form("/runs/trash/empty?ticket=gone", "", "runs=one%0D%0Athree&sure=yes").await;
    assert_eq!((emptied.status, emptied.header("location")), (StatusCode::SEE_OTHER, "/runs/trash?removed=1"));
    let at = server.get("/progress?ticket=gone", "").await.json();
    assert_eq!(
        (&at["stage"], &at["step"], &at["done"]),
        (&"whole".into(), &"Removing the rows".into(), &at["all"]),
        "{at}"
    );
    let ids = server.state.store.trashed_runs().await.unwrap();
    assert_eq!(ids.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["two"]);
    assert_eq!(server.page("/runs/one", "").await.status, StatusCode::NOT_FOUND);
    assert_eq!(server.page("/runs/three", "").await.status, StatusCode::OK);
    let page = server.page("/runs/trash?removed=1", "").await.text;
    assert!(page.contains("1 run was removed for good."), "{page}");
}
