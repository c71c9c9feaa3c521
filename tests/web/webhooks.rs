//! Messages to programs of researchers, with programs of this machine that listen as told: signed, tried again, given up, and
//! never held up by a slow one.

use crate::Server;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use iliad::app::webhooks::{Delivery, deliver};
use iliad::ids::StudyId;
use iliad::store::WebhookRecord;
use iliad::study::StudySettings;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A message as it arrived.
struct Heard {
    headers: HeaderMap,
    body: String,
}

impl Heard {
    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

/// A program that takes messages: its address, what it hears, and the answers that it gives before it takes everything.
struct Program {
    address: String,
    heard: mpsc::UnboundedReceiver<Heard>,
}

#[derive(Clone)]
struct Shared {
    heard: mpsc::UnboundedSender<Heard>,
    answers: Arc<Mutex<VecDeque<StatusCode>>>,
}

async fn take(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> (StatusCode, HeaderMap) {
    let answer = shared.answers.lock().unwrap().pop_front().unwrap_or(StatusCode::NO_CONTENT);
    let _ = shared.heard.send(Heard { headers, body: String::from_utf8(body.to_vec()).unwrap() });
    let mut headers = HeaderMap::new();
    headers.insert("location", "/elsewhere".parse().unwrap());
    (answer, headers)
}

async fn program(answers: &[u16]) -> Program {
    let (tell, heard) = mpsc::unbounded_channel();
    let answers = answers.iter().map(|code| StatusCode::from_u16(*code).unwrap()).collect();
    let shared = Shared { heard: tell, answers: Arc::new(Mutex::new(answers)) };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/hook?of=mine", listener.local_addr().unwrap());
    let routes = Router::new().fallback(post(take)).with_state(shared);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Program { address, heard }
}

async fn study(server: &Server, id: &str, webhook: &str) -> StudyId {
    let id = StudyId::from(id);
    let settings = StudySettings { title: "Words".into(), webhook: webhook.into(), ..StudySettings::default() };
    server.state.store.create_study(&id, &settings, &[], "the key", "a test").await.unwrap();
    id
}

/// Quick deliveries to this machine.
fn quick() -> Delivery {
    Delivery {
        private: true,
        pauses: vec![Duration::from_millis(1); 3],
        every: Duration::from_millis(5),
        ..Delivery::default()
    }
}

/// Delivers in the background until the token is cancelled.
fn delivering(server: &Server, delivery: Delivery) -> (CancellationToken, tokio::task::JoinHandle<()>) {
    let stop = CancellationToken::new();
    (stop.clone(), tokio::spawn(deliver(server.state.store.clone(), delivery, stop)))
}

/// The messages of a study, newest first, once they are as wanted.
async fn once(server: &Server, id: &StudyId, wanted: impl Fn(&[WebhookRecord]) -> bool) -> Vec<WebhookRecord> {
    loop {
        let messages = server.state.store.webhooks(id, 20).await.unwrap();
        if wanted(&messages) {
            return messages;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn hmac(key: &str, text: &str) -> String {
    use hmac::{Hmac, KeyInit, Mac};
    let mut signer = Hmac::<sha2::Sha256>::new_from_slice(key.as_bytes()).unwrap();
    signer.update(text.as_bytes());
    hex::encode(signer.finalize().into_bytes())
}

#[tokio::test]
async fn messages_are_signed_and_tried_again_with_the_id_of_before() {
    let server = Server::new().await;
    let mut program = program(&[500, 302]).await;
    let id = study(&server, "words", &program.address).await;
    let sent = server.form("/studies/words/webhooks/test", "", "").await;
    assert_eq!(sent.header("location"), "/studies/words#webhooks");
    let (stop, task) = delivering(&server, quick());
    let mut ids = Vec::new();
    for _ in 0..3 {
        let heard = program.heard.recv().await.unwrap();
        assert_eq!((heard.header("iliad-event"), heard.header("content-type")), ("test", "application/json"));
        let wanted = hmac("the key", &format!("{}.{}", heard.header("iliad-timestamp"), heard.body));
        assert_eq!(heard.header("iliad-signature"), format!("sha256={wanted}"));
        let body: serde_json::Value = serde_json::from_str(&heard.body).unwrap();
        assert_eq!((body["event"].as_str(), body["study"].as_str()), (Some("test"), Some("words")));
        ids.push(heard.header("iliad-delivery").to_owned());
    }
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let messages = once(&server, &id, |messages| messages[0].delivered_at.is_some()).await;
    assert_eq!((messages[0].attempts, messages[0].last_error.as_deref()), (3, None));
    stop.cancel();
    task.await.unwrap();
    // A delivered message does not come again after a restart; an event that happened meanwhile does.
    server.state.store.queue_webhook_test(&id, "a test").await.unwrap();
    let (stop, task) = delivering(&server, quick());
    let next = program.heard.recv().await.unwrap();
    assert_ne!(next.header("iliad-delivery"), ids[0]);
    once(&server, &id, |messages| messages.iter().all(|message| message.delivered_at.is_some())).await;
    stop.cancel();
    task.await.unwrap();
    assert!(program.heard.try_recv().is_err());
    let page = server.page("/studies/words", "").await.text;
    assert!(page.contains("delivered") && !page.contains("the key</code>"), "{page}");
}

#[tokio::test]
async fn a_message_is_given_up_and_can_be_tried_again() {
    let server = Server::new().await;
    let mut program = program(&[500, 503, 404, 302]).await;
    let id = study(&server, "words", &program.address).await;
    server.state.store.queue_webhook_test(&id, "a test").await.unwrap();
    let (stop, task) = delivering(&server, quick());
    let messages = once(&server, &id, |messages| messages[0].given_up_at.is_some()).await;
    assert_eq!(messages[0].attempts, 4, "one try and one after each pause");
    assert!(messages[0].last_error.as_deref().unwrap().contains("a redirect (302), which is not followed"));
    let page = server.page("/studies/words", "").await.text;
    assert!(page.contains("given up after 4 attempts") && page.contains("Try it again"), "{page}");
    let path = format!("/studies/words/webhooks/{}/retry", messages[0].id);
    assert_eq!(server.form(&path, "", "").await.status, StatusCode::SEE_OTHER);
    once(&server, &id, |messages| messages[0].delivered_at.is_some()).await;
    assert_eq!(server.form(&path, "", "").await.status, StatusCode::NOT_FOUND);
    for _ in 0..5 {
        assert_eq!(program.heard.recv().await.unwrap().header("iliad-delivery"), messages[0].id.to_string());
    }
    stop.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn a_slow_program_holds_up_nobody_elses_messages() {
    let server = Server::new().await;
    // It takes connections and never answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let slow = study(&server, "slow", &format!("http://{}/", silent.local_addr().unwrap())).await;
    let mut program = program(&[]).await;
    let quick_one = study(&server, "quick", &program.address).await;
    for _ in 0..3 {
        server.state.store.queue_webhook_test(&slow, "a test").await.unwrap();
    }
    // Nothing ends within this timeout but by an answer.
    let (stop, task) = delivering(&server, Delivery { timeout: Duration::from_secs(3600), ..quick() });
    let _held = silent.accept().await.unwrap();
    server.state.store.queue_webhook_test(&quick_one, "a test").await.unwrap();
    program.heard.recv().await.unwrap();
    once(&server, &quick_one, |messages| messages[0].delivered_at.is_some()).await;
    let waiting = server.state.store.webhooks(&slow, 20).await.unwrap();
    assert!(waiting.iter().all(|message| message.attempts == 0), "{waiting:?}");
    // The server ends although a delivery is under way, and the message waits for the next start.
    stop.cancel();
    task.await.unwrap();
    let waiting = server.state.store.webhooks(&slow, 20).await.unwrap();
    assert!(waiting.iter().all(|message| message.delivered_at.is_none() && message.given_up_at.is_none()));
    let (stop, task) = delivering(&server, Delivery { timeout: Duration::from_millis(1), ..quick() });
    let waiting = once(&server, &slow, |messages| messages.iter().all(|m| m.last_error.is_some())).await;
    assert!(waiting[0].last_error.as_deref().unwrap().contains("it did not answer within"), "{waiting:?}");
    stop.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn a_server_for_others_tells_no_program_in_its_own_networks() {
    let server = Server::new().await;
    let mut program = program(&[]).await;
    let port = program.address.rsplit(':').next().unwrap().to_owned();
    for (id, host) in [("number", "127.0.0.1"), ("name", "localhost")] {
        let id = study(&server, id, &format!("http://{host}:{port}")).await;
        server.state.store.queue_webhook_test(&id, "a test").await.unwrap();
    }
    let (stop, task) = delivering(&server, Delivery { private: false, ..quick() });
    for id in ["number", "name"] {
        let messages = once(&server, &id.into(), |messages| messages[0].given_up_at.is_some()).await;
        let reason = messages[0].last_error.as_deref().unwrap();
        assert!(reason.contains("an address of a private network"), "{reason}");
    }
    assert!(program.heard.try_recv().is_err());
    stop.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn the_key_is_shown_on_demand_and_can_be_made_anew() {
    let server = Server::new().await;
    let id = study(&server, "words", "https://example.org/hook").await;
    let shown = server.form("/studies/words/webhooks/secret", "", "").await.text;
    assert!(shown.contains("the key</code>"), "{shown}");
    let renewed = server.form("/studies/words/webhooks/secret", "", "renew=yes").await.text;
    assert!(renewed.contains("id=\"webhook-secret\"") && !renewed.contains("the key</code>"), "{renewed}");
    assert!(!server.page("/studies/words", "").await.text.contains("webhook-secret"));
    let trail = server.state.store.audit(&id, 9).await.unwrap();
    let actions: Vec<_> = trail.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions[..3], ["webhook_secret_shown", "webhook_secret_renewed", "webhook_secret_shown"]);
    let silent = StudySettings { title: "Words".into(), ..StudySettings::default() };
    server
        .state
        .store
        .change_study(&id, "a test", |_| Ok::<_, iliad::store::StoreError>((silent.clone(), Vec::new())))
        .await
        .unwrap();
    assert_eq!(server.form("/studies/words/webhooks/test", "", "").await.status, StatusCode::CONFLICT);
}

/// The example of docs/studies.md, run by Python with a message that was really sent.
#[tokio::test]
async fn the_documented_verification_takes_what_is_sent_and_refuses_the_rest() {
    let Ok(python) = std::process::Command::new("python3").arg("--version").output() else {
        println!("skipped: there is no python3");
        return;
    };
    assert!(python.status.success());
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/studies.md")).unwrap();
    let example = text.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let server = Server::new().await;
    let mut program = program(&[]).await;
    let id = study(&server, "words", &program.address).await;
    server.state.store.queue_webhook_test(&id, "ä test").await.unwrap();
    let (stop, task) = delivering(&server, quick());
    let heard = program.heard.recv().await.unwrap();
    stop.cancel();
    task.await.unwrap();
    // The program defines `is_genuine` and serves when it is started as a program; here it is imported.
    let script = format!(
        "{example}\nimport json, sys\nfor secret, timestamp, signature, body in json.load(sys.stdin):\n    \
         print(is_genuine(secret, timestamp, signature, body.encode()))\n"
    )
    .replace("__name__ == \"__main__\"", "False");
    let (timestamp, signature) = (heard.header("iliad-timestamp"), heard.header("iliad-signature"));
    let cases = serde_json::json!([
        ["the key", timestamp, signature, heard.body],
        ["another key", timestamp, signature, heard.body],
        ["the key", timestamp, signature, format!("{} ", heard.body)],
        [
            "the key",
            "1000000000",
            format!("sha256={}", hmac("the key", &format!("1000000000.{}", heard.body))),
            heard.body
        ],
    ]);
    let folder = tempfile::tempdir().unwrap();
    let cases_file = folder.path().join("cases.json");
    std::fs::write(&cases_file, cases.to_string()).unwrap();
    let ran = std::process::Command::new("python3")
        .args(["-c", &script])
        .stdin(std::fs::File::open(&cases_file).unwrap())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(printed.split_whitespace().collect::<Vec<_>>(), ["True", "False", "False", "False"], "{told}");
}
