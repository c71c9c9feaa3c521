//! The pages on which data come in: files of episodes, and corpora.

use crate::v1::server_with;
use crate::{Reply, Server};
use axum::http::{Method, StatusCode};
use iliad::config::run::TeacherMode;
use iliad::ids::RunId;
use iliad::registry::Registry;
use iliad::store::Run;
use iliad::web::{WebSettings, router};
use serde_json::json;
use std::io::Write;
use time::OffsetDateTime;

/// A part of a form: its name, the name of its file where it has one, and its bytes.
pub type Part<'a> = (&'a str, Option<&'a str>, &'a [u8]);

/// A form with files.
fn body(parts: &[Part]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file, bytes) in parts {
        let file = file.map(|file| format!("; filename=\"{file}\"")).unwrap_or_default();
        write!(body, "--edge\r\ncontent-disposition: form-data; name=\"{name}\"{file}\r\n\r\n").unwrap();
        body.extend(*bytes);
        body.extend(b"\r\n");
    }
    body.extend(b"--edge--\r\n");
    body
}

pub async fn send(server: &Server, path: &str, parts: &[Part<'_>]) -> Reply {
    let headers = [
        ("content-type", "multipart/form-data; boundary=edge"),
        ("accept", "text/html"),
        ("sec-fetch-site", "same-origin"),
    ];
    server.call(Method::POST, path, &headers, body(parts)).await
}

const ROWS: &str = r#"{"id": "a", "request": "go to the kitchen", "text": "It went to the kitchen.\nIt stopped."}
{"request": "replace c with w", "pairs": [{"in": "castle", "out": "wastle"}], "people": 2}
"#;

#[tokio::test]
async fn a_file_of_episodes_is_checked_comes_in_once_and_is_described() {
    let server = server_with(WebSettings::default()).await;
    let page = server.page("/import", "").await;
    assert!(
        page.text.contains("a new run") && page.text.contains("aria-current=\"page\">Bring in episodes"),
        "{}",
        page.text
    );
    let (file, nothing): (Part, Part) = (("file", Some("C:\\rows.jsonl"), ROWS.as_bytes()), ("file", Some(""), b""));
    let checked =
        send(&server, "/import/episodes?ticket=rows", &[("run", None, b""), file, ("do", None, b"check")]).await;
    assert_eq!(checked.status, StatusCode::OK, "{}", checked.text);
    let at = server.get("/progress?ticket=rows", "").await.json();
    assert_eq!((&at["stage"], &at["done"], &at["all"]), (&json!("whole"), &json!(ROWS.len()), &json!(ROWS.len())));
    assert!(
        checked.text.contains("rows.jsonl</bdi>: 2 rows could come in") && !checked.text.contains("C:\\"),
        "{}",
        checked.text
    );
    assert_eq!(server.state.store.run_count().await.unwrap(), 1, "checking starts no run");

    let bad = b"{\"request\": \"r\"}\nnonsense\n";
    let refused = send(&server, "/import/episodes", &[("file", Some("bad.jsonl"), bad), ("do", None, b"bring")]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    for part in ["2 bad rows", "either a text or pairs", "no JSON"] {
        assert!(refused.text.contains(part), "{part}: {}", refused.text);
    }
    assert_eq!(send(&server, "/import/episodes", &[nothing]).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(server.state.store.run_count().await.unwrap(), 1);

    let came = send(&server, "/import/episodes", &[file, ("do", None, b"bring")]).await;
    assert_eq!(
        (came.status, came.header("location")),
        (StatusCode::SEE_OTHER, "/import?run=elsewhere&came=2&known=0&left=0")
    );
    let page = server.page(came.header("location"), "").await.text;
    assert!(page.contains("2 episodes came in") && page.contains("/teach/elsewhere"), "{page}");
    let again = send(&server, "/import/episodes", &[("run", None, b"elsewhere"), file, ("do", None, b"bring")]).await;
    assert!(again.header("location").ends_with("came=0&known=2&left=0"), "{}", again.header("location"));
    let other = ROWS.replace("kitchen", "garden");
    let parts: [Part; 3] =
        [("run", None, b"elsewhere"), ("file", Some("rows.jsonl"), other.as_bytes()), ("do", None, b"check")];
    let told = send(&server, "/import/episodes", &parts).await;
    assert!(told.text.contains("said something else") && told.text.contains("1 came in before"), "{}", told.text);
    let here = send(&server, "/import/episodes", &[("run", None, b"study"), file]).await;
    assert!(here.status == StatusCode::CONFLICT && here.text.contains("lives in this server"), "{}", here.text);

    // People describe them, and the descriptions come out.
    let cookie = server.page("/teach/elsewhere", "").await.cookie("iliad_teacher").unwrap();
    let mut told = 0;
    loop {
        let leased = server.post("/api/v1/runs/elsewhere/lease", &cookie, &json!({})).await.json();
        let Some(execution) = leased["execution"].as_i64() else { break };
        let answer = json!({"client_key": leased["client_key"], "execution": execution, "kind": "described", "text": format!("so {told}")});
        assert_eq!(server.post("/api/v1/runs/elsewhere/answers", &cookie, &answer).await.status, StatusCode::CREATED);
        told += 1;
    }
    assert_eq!(told, 2);
    let export = server.get("/export/descriptions.jsonl?run=elsewhere", "").await.text;
    assert!(
        export.lines().count() == 2 && export.contains("go to the kitchen") && export.contains("wastle"),
        "{export}"
    );
}

/// Walks of agents elsewhere are checked, drawn, described, and come out.
#[tokio::test]
async fn walks_come_in_from_files_and_from_programs() {
    let server = server_with(WebSettings::default()).await;
    let walk =
        |more: &str| format!(r#"{{"request": "go ahead", "walk": {{"house": "house-3", "heading": 2, {more}}}}}"#);
    let bad = [walk(r#""path": ["0", "9999"]"#), walk(r#""path": []"#), walk(r#""viewpoint": "0", "actions": [99]"#)]
        .join("\n");
    let told = send(&server, "/import/episodes", &[("file", Some("bad.jsonl"), bad.as_bytes())]).await;
    for part in ["3 bad rows", "has no viewpoint 9999", "has no viewpoint; the one", "Action 1 is 99"] {
        assert!(told.text.contains(part), "{part}: {}", told.text);
    }
    let good = walk(r#""viewpoint": "5", "actions": [1, 1, 0]"#);
    let file: Part = ("file", Some("walks.jsonl"), good.as_bytes());
    let came = send(&server, "/import/episodes", &[file, ("do", None, b"bring")]).await;
    assert!(came.header("location").ends_with("came=1&known=0&left=0"), "{}", came.text);
    let again = send(&server, "/import/episodes", &[("run", None, b"elsewhere"), file, ("do", None, b"bring")]).await;
    assert!(again.header("location").ends_with("came=0&known=1&left=0"), "{}", again.header("location"));
    let posted = |row: &str| json!({"executions": [serde_json::from_str::<serde_json::Value>(row).unwrap()]});
    let path = "/api/v1/runs/elsewhere/executions";
    let refused = server.post(path, "", &posted(&walk(r#""path": ["0", "9999"]"#))).await;
    assert!(refused.status == StatusCode::UNPROCESSABLE_ENTITY && refused.text.contains("9999"), "{}", refused.text);
    assert_eq!(server.post(path, "", &posted(&good)).await.status, StatusCode::CREATED);

    let page = server.page("/teach/elsewhere", "").await;
    assert!(page.text.contains("js/walk.js"), "{}", page.text);
    let cookie = page.cookie("iliad_teacher").unwrap();
    let leased = server.post("/api/v1/runs/elsewhere/lease", &cookie, &json!({})).await.json();
    assert!(
        leased["html"].as_str().unwrap().contains("data-walk=")
            && leased["text"].as_str().unwrap().starts_with("Starts")
    );
    let answer = json!({"client_key": leased["client_key"], "execution": leased["execution"], "kind": "described", "text": "two steps"});
    assert_eq!(server.post("/api/v1/runs/elsewhere/answers", &cookie, &answer).await.status, StatusCode::CREATED);
    let said = server.get("/api/v1/runs/elsewhere/descriptions", "").await.json();
    assert_eq!(
        (&said["items"][0]["text"], &said["items"][0]["execution"]),
        (&json!("two steps"), &leased["execution"])
    );
    let export = server.get("/export/descriptions.jsonl?run=elsewhere", "").await.json();
    assert_eq!(
        (&export["start_state"]["house"], export["outputs"].as_array().map(Vec::len)),
        (&json!("house-3"), Some(3))
    );
}

#[tokio::test]
async fn what_is_no_form_or_too_large_or_from_elsewhere_is_refused() {
    let server = server_with(WebSettings::default()).await;
    let plain = server.form("/import/episodes", "", "run=x").await;
    assert_eq!(plain.status, StatusCode::BAD_REQUEST, "{}", plain.text);
    let large = vec![b' '; (16 << 20) + 1];
    let refused = send(&server, "/import/episodes", &[("file", Some("x.jsonl"), &large)]).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE, "{}", refused.text);
    let long = vec![b'x'; 70 * 1024];
    assert_eq!(send(&server, "/import/episodes", &[("run", None, &long)]).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let many: Vec<Part> = (0..60).map(|_| ("file", Some("x"), b"x".as_slice())).collect();
    assert_eq!(send(&server, "/import/episodes", &many).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    let closed = server_with(WebSettings { loopback: false, ..WebSettings::default() }).await;
    for path in ["/import/episodes", "/corpora"] {
        let refused = send(&closed, path, &[("file", Some("x.jsonl"), ROWS.as_bytes())]).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}: {}", refused.text);
    }
    let headers = [("content-type", "multipart/form-data; boundary=edge"), ("sec-fetch-site", "cross-site")];
    let strange = server.call(Method::POST, "/corpora", &headers, body(&[])).await;
    assert_eq!(strange.status, StatusCode::FORBIDDEN);
}

fn packed(text: &str) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

#[tokio::test]
async fn a_corpus_is_uploaded_offered_to_new_runs_and_deleted_when_no_run_uses_it() {
    let folder = tempfile::tempdir().unwrap();
    let corpora = folder.path().join("corpora");
    let settings = WebSettings { corpora: Some(corpora.clone()), ..WebSettings::default() };
    let mut server = Server::with(settings, TeacherMode::Human).await;
    server.state.families = Registry::builtin().families();
    server.router = router(server.state.clone());
    let page = server.page("/corpora", "").await;
    assert!(page.text.contains("words.txt.gz") && page.text.contains("graphs.json.gz"), "{}", page.text);

    let pairs = r#"[["moon","mooc"],["sun","suc"],["a","a"],["b","b"],["c","c"]]"#;
    let item = format!(r#"{{"re": "()(n)()@c", "instructions": [["n", "is", "c"]], "examples": {pairs}}}"#);
    let corpus = format!(r#"{{"train": [{item}, {item}], "val": [{item}], "test": [{item}]}}"#);
    let vocabulary = r#"{"word": ["<PAD>","<UNK>","<",">","n"], "char": ["<PAD>","<UNK>","<",">","a"], "regex": ["<PAD>","<UNK>","<",">","("]}"#;
    let (corpus, unlabelled) = (packed(&corpus), packed("()(n)()@c\n"));
    let files: [Part; 4] = [
        ("files", Some("corpus.json.gz"), &corpus),
        ("files", Some("vocab.json"), vocabulary.as_bytes()),
        ("files", Some("unlabeled_regexes.txt.gz"), &unlabelled),
        ("files", Some("words.txt"), b"moon\nsun\n"),
    ];
    fn with<'a>(name: &'a str, files: &[Part<'a>]) -> Vec<Part<'a>> {
        let fields: [Part; 2] = [("name", None, name.as_bytes()), ("kind", None, b"regex")];
        fields.into_iter().chain(files.iter().copied()).collect()
    }

    let lacking = send(&server, "/corpora", &with("my-words", &files[1..])).await;
    assert_eq!(lacking.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        lacking.text.contains("the file corpus.json.gz is missing") && lacking.text.contains("value=\"my-words\""),
        "{}",
        lacking.text
    );
    let mut wrong = files;
    wrong[3].2 = b"moon\n\nsun\n\n";
    let wrong = send(&server, "/corpora", &with("my-words", &wrong)).await;
    assert!(wrong.text.contains("2 faults") && wrong.text.contains("words.txt.gz: line 4 is empty"), "{}", wrong.text);
    let named = send(&server, "/corpora", &with("../x", &files)).await;
    assert!(named.status == StatusCode::UNPROCESSABLE_ENTITY && named.text.contains("small letters"), "{}", named.text);
    assert_eq!(std::fs::read_dir(&corpora).unwrap().count(), 0, "nothing is left of what was refused");

    let mut sent = files.to_vec();
    sent.push(("files", Some("notes.sh"), b"rm -rf /"));
    let added = send(&server, "/corpora?ticket=corpus", &with("my-words", &sent)).await;
    assert_eq!(
        (added.status, added.header("location")),
        (StatusCode::SEE_OTHER, "/corpora?added=my-words&left=notes.sh")
    );
    let at = server.get("/progress?ticket=corpus", "").await.json();
    assert_eq!((&at["stage"], &at["step"]), (&json!("whole"), &json!("Checking the files")), "{at}");
    assert!(at["done"] == at["all"] && at["all"].as_u64() > Some(0), "{at}");
    let page = server.page(added.header("location"), "").await.text;
    for part in ["2 tasks to learn from", "notes.sh", "corpus=my-words"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let kept: std::collections::BTreeSet<String> = std::fs::read_dir(corpora.join("my-words"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(
        kept.into_iter().collect::<Vec<_>>(),
        ["about.json", "corpus.json.gz", "unlabeled_regexes.txt.gz", "vocab.json.gz", "words.txt.gz"]
    );
    let twice = send(&server, "/corpora", &with("my-words", &files)).await;
    assert!(twice.text.contains("There is a corpus named my-words already"), "{}", twice.text);

    let run = Run {
        id: RunId::from("reader"),
        family: "regex".into(),
        preset: "paper".into(),
        config: json!({"task": {"world": "corpus", "path": corpora.join("my-words")}}),
        seed: 1,
        teacher: TeacherMode::Simulated,
        active: false,
        created_at: OffsetDateTime::now_utc(),
    };
    server.state.store.create_run(&run).await.unwrap();
    let refused = server.form("/corpora/my-words/delete", "", "").await;
    assert!(refused.status == StatusCode::CONFLICT && refused.text.contains("reader"), "{}", refused.text);
    assert!(corpora.join("my-words").is_dir());
    assert!(server.page("/corpora", "").await.text.contains("In use"));
    server.state.store.trash_run(&run.id).await.unwrap();
    assert_eq!(
        server.form("/corpora/my-words/delete", "", "").await.status,
        StatusCode::CONFLICT,
        "it can be put back"
    );
    server.state.store.purge_run(&run.id, false).await.unwrap();
    let removed = server.form("/corpora/my-words/delete", "", "").await;
    assert_eq!((removed.status, removed.header("location")), (StatusCode::SEE_OTHER, "/corpora?removed=my-words"));
    assert!(!corpora.join("my-words").exists());
    for name in ["my-words", "..", "%2e%2e"] {
        assert_eq!(
            server.form(&format!("/corpora/{name}/delete"), "", "").await.status,
            StatusCode::NOT_FOUND,
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_server_without_a_folder_keeps_no_uploads() {
    let server = Server::new().await;
    assert!(server.page("/corpora", "").await.text.contains("keeps no uploads"));
    let sent =
        send(&server, "/corpora", &[("name", None, b"a"), ("kind", None, b"regex"), ("files", Some("x"), b"x")]).await;
    assert!(sent.status == StatusCode::UNPROCESSABLE_ENTITY && sent.text.contains("keeps no uploads"), "{}", sent.text);
}
