//! Sentences in many scripts on their whole way: from the form of the page into the store, to the tokens of the learner, into the
//! files of an export, and to programs.

use crate::texts::{SCRIPTS, escaped};
use crate::{Server, attribute, support};
use axum::body::{Body, to_bytes};
use axum::http::{Method, StatusCode};
use iliad::config::run::TeacherMode;
use iliad::ids::AnswerId;
use iliad::output::spreadsheet;
use iliad::task::{nav, regex};
use iliad::vocab::reading::as_read;
use iliad::web::WebSettings;
use parquet::file::reader::{FileReader, SerializedFileReader};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tower::ServiceExt;

/// A server whose run has enough executions for so many answers, and that takes them as fast as they come.
pub async fn roomy(answers: usize) -> Server {
    let server = Server::with(WebSettings { rate_limits: false, ..WebSettings::default() }, TeacherMode::Human).await;
    let offered: Vec<_> = (0..answers as u64).map(|n| support::execution(7, 10_000 + n, 0)).collect();
    server.state.store.offer(&"study".into(), &offered).await.unwrap();
    server
}

/// Sends a text with the form of the page that is shown; the reply.
pub async fn send_by_page(server: &Server, cookie: &str, text: &str) -> crate::Reply {
    let page = server.page("/teach/study", cookie).await.text;
    let execution = attribute(&page, "name=\"execution\"", "value");
    let key = attribute(&page, "name=\"client_key\"", "value");
    let text = utf8_percent_encode(text, NON_ALPHANUMERIC);
    let body = format!("execution={execution}&client_key={key}&kind=described&text={text}");
    server.form("/teach/study", cookie, &body).await
}

async fn bytes(server: &Server, path: &str) -> Vec<u8> {
    let request = axum::http::Request::get(path).header("host", "127.0.0.1:8080").body(Body::empty()).unwrap();
    let response = server.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    to_bytes(response.into_body(), 64 << 20).await.unwrap().to_vec()
}

/// The descriptions in the files of an export, each format's in the order of its rows.
pub async fn exported(server: &Server) -> [Vec<String>; 3] {
    let path = |ending: &str| format!("/export/descriptions.{ending}?run=study");
    let lines = String::from_utf8(bytes(server, &path("jsonl")).await).unwrap();
    let of_line = |line: &str| serde_json::from_str::<Value>(line).unwrap()["description"].as_str().unwrap().to_owned();
    let lines = lines.split_terminator('\n').map(of_line).collect();

    let table = bytes(server, &path("csv")).await;
    let mut table = csv::Reader::from_reader(table.as_slice());
    let at = table.headers().unwrap().iter().position(|name| name == "description").unwrap();
    let records = table.records().map(|record| spreadsheet::text(&record.unwrap()[at]).to_owned()).collect();

    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &bytes(server, &path("parquet")).await).unwrap();
    let file = SerializedFileReader::new(file).unwrap();
    let of_row = |row: parquet::record::Row| {
        let mut columns = row.get_column_iter();
        let (_, field) = columns.find(|(name, _)| *name == "description").unwrap();
        if let parquet::record::Field::Str(text) = field { text.clone() } else { panic!("{field:?}") }
    };
    let rows = file.get_row_iter(None).unwrap().map(|row| of_row(row.unwrap())).collect();
    [lines, records, rows]
}

/// The letters and digits of a text in lower case. Those that the tokens of a text lack were lost.
fn letters(text: &str) -> String {
    as_read(text).chars().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric()).collect()
}

#[tokio::test]
async fn words_of_every_script_arrive_everywhere_as_they_were_typed() {
    assert!(SCRIPTS.len() >= 40);
    let server = roomy(SCRIPTS.len()).await;
    let cookie = server.teacher().await;
    for written in SCRIPTS {
        let sent = send_by_page(&server, &cookie, written.text).await;
        assert_eq!(sent.status, StatusCode::SEE_OTHER, "{}: {}", written.script, sent.text);
        let own = server.page("/teach/study/answers", &cookie).await.text;
        let (shown, text) = ("<q lang=\"\" translate=\"no\" dir=\"auto\">", escaped(written.text));
        assert!(own.contains(&format!("{shown}{text}</q>")), "{} is shown in its own direction", written.script);
        assert!(own.contains(&format!("dir=\"auto\" translate=\"no\" spellcheck=\"true\">\n{text}</textarea>")));
    }
    let typed: Vec<&str> = SCRIPTS.iter().map(|written| written.text).collect();
    let stored = server.state.store.export_page(Some(&"study".into()), AnswerId::default(), 1000).await.unwrap();
    assert_eq!(stored.iter().map(|row| row.text.as_str()).collect::<Vec<_>>(), typed);
    for texts in exported(&server).await {
        assert_eq!(texts, typed);
    }
    let told = server.get("/api/v1/runs/study/descriptions?limit=500", "").await.json();
    let told: Vec<&str> = told["items"].as_array().unwrap().iter().map(|item| item["text"].as_str().unwrap()).collect();
    assert_eq!(told, typed);
    let mut status = server.run.status.clone();
    status.wait_for(|status| status.descriptions_human >= SCRIPTS.len() as u64).await.unwrap();
    let learned = server.page("/runs/study/learned", "").await.text;
    let shown = "<q translate=\"no\" dir=\"auto\">";
    assert!(typed.iter().any(|text| learned.contains(&format!("{shown}{}</q>", escaped(text)))), "{learned}");
}

#[test]
fn the_learner_reads_words_of_every_script() {
    let known = |word: &str| ["replace", "with", "word", "moves"].contains(&word);
    let mut wrong = Vec::new();
    for written in SCRIPTS {
        let tokens = regex::tokenise::tokenise(written.text, &known);
        let walked = nav::tokenise::tokenise(written.text);
        let expected = as_read(written.tokens).into_owned();
        if tokens.join(" ") != expected {
            wrong.push(format!("{}: {:?} instead of {expected:?}", written.script, tokens.join(" ")));
        }
        for tokens in [tokens, walked] {
            if letters(&tokens.concat()) != letters(written.text) || tokens.is_empty() {
                wrong.push(format!("{}: letters are lost in {tokens:?}", written.script));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Half a pair of surrogates is no letter, and neither are bytes in another encoding: reading them as something else would store other
/// words than were sent.
#[tokio::test]
async fn what_is_no_text_is_refused_with_a_sentence() {
    let server = roomy(1).await;
    let cookie = server.teacher().await;
    let leased = server.lease(&cookie, &[]).await;
    let (key, execution) = (leased["client_key"].as_str().unwrap(), &leased["execution"]);
    let headers = [("cookie", &*cookie), ("sec-fetch-site", "same-origin")];
    let json = |text: &[u8]| -> Vec<u8> {
        let head = format!("{{\"client_key\":\"{key}\",\"execution\":{execution},\"kind\":\"described\",\"text\":\"");
        [head.as_bytes(), text, b"\"}"].concat()
    };
    let form = |text: &str| format!("execution={execution}&client_key={key}&kind=described&text={text}").into_bytes();
    let (api, page) = ("/api/v1/runs/study/answers", "/teach/study");
    for (path, kind, body) in [
        (api, "application/json", json(br"a \ud800 b")),
        (api, "application/json", json(br"a \udc00\ud800 b")),
        (api, "application/json", json(b"caf\xe9")),
        (api, "application/json", json(b"a\0b")),
        (page, "application/x-www-form-urlencoded", form("caf%E9")),
        (page, "application/x-www-form-urlencoded", form("%ED%A0%80")),
    ] {
        let mut headers = headers.to_vec();
        headers.push(("content-type", kind));
        let shown = String::from_utf8_lossy(&body).into_owned();
        let refused = server.call(Method::POST, path, &headers, body).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{shown}");
        assert!(refused.json()["detail"].as_str().unwrap().ends_with('.'), "{shown}: {}", refused.text);
    }
    assert_eq!(server.state.store.export_count(None).await.unwrap(), 0);
    // A whole pair is a letter.
    let mut headers = headers.to_vec();
    headers.push(("content-type", "application/json"));
    let stored = server.call(Method::POST, api, &headers, json(br"\ud801\udc14\u0000")).await;
    assert_eq!(stored.status, StatusCode::CREATED, "{}", stored.text);
    let own = server.get("/api/v1/runs/study/answers", &cookie).await.json();
    assert_eq!(own["items"][0]["text"], json!("𐐔\0"));
}
