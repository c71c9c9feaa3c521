//! Studies: teachers join by a link, qualify, teach up to the goal, and get a code; researchers write and steer them.

use crate::{Server, attribute};
use axum::http::StatusCode;
use iliad::config::run::Preview;
use iliad::ids::StudyId;
use iliad::store::StudyArm;
use iliad::study::{Entry, Judge, ParticipantState, StudySettings, StudyState};
use serde_json::json;

/// A study of the run `study` with these settings, open.
async fn open(server: &Server, change: impl FnOnce(&mut StudySettings)) -> StudyId {
    let id = StudyId::from("words");
    let mut settings = StudySettings { title: "Words of people".into(), goal: 2, ..StudySettings::default() };
    change(&mut settings);
    let arms = [StudyArm { run: "study".into(), name: "descriptions".into() }];
    server.state.store.create_study(&id, &settings, &arms, "secret", "a test").await.unwrap();
    server.state.store.set_study_state(&id, StudyState::Open, "a test").await.unwrap();
    id
}

/// A browser that has opened the page of the study: the cookie.
async fn arrive(server: &Server, query: &str) -> String {
    let page = server.page(&format!("/study/words{query}"), "").await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    page.cookie("iliad_teacher").expect("a new visitor gets a cookie")
}

/// Somebody who has joined and read the guidelines.
async fn teacher(server: &Server) -> String {
    let cookie = arrive(server, "").await;
    assert_eq!(server.form("/study/words/join", &cookie, "").await.header("location"), "/study/words");
    assert_eq!(server.form("/study/words/begin", &cookie, "").await.header("location"), "/study/words");
    cookie
}

async fn describe(server: &Server, cookie: &str, text: &str) -> serde_json::Value {
    let leased = server.lease(cookie, &[]).await;
    assert!(leased["execution"].is_i64(), "{leased}");
    let body = json!({
        "client_key": leased["client_key"], "execution": leased["execution"], "kind": "described", "text": text,
        "active_ms": 4000,
    });
    let reply = server.post("/api/runs/study/answers", cookie, &body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text);
    reply.json()
}

#[tokio::test]
async fn a_teacher_joins_agrees_teaches_to_the_goal_and_gets_a_code_that_stays() {
    let server = Server::new().await;
    open(&server, |s| s.consent = "We **keep** what you write. <script>alert(1)</script>".into()).await;
    // Whoever opens the teaching page is led to the study first, and its API says so.
    let cookie = arrive(&server, "").await;
    assert_eq!(server.page("/teach/study", &cookie).await.header("location"), "/study/words");
    let refused = server.post("/api/runs/study/lease", &cookie, &json!({})).await;
    assert_eq!((refused.status, refused.json()["code"].as_str()), (StatusCode::CONFLICT, Some("join-first")));
    let page = server.page("/study/words", &cookie).await.text;
    assert!(page.contains("We <strong>keep</strong>") && !page.contains("<script>alert"), "{page}");
    // Without agreeing nobody joins, and the page says what to do.
    let refused = server.form("/study/words/join", &cookie, "").await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert!(refused.text.contains("you have to agree first"), "{}", refused.text);
    assert_eq!(server.form("/study/words/join", &cookie, "agree=yes").await.status, StatusCode::SEE_OTHER);
    assert!(server.page("/study/words", &cookie).await.text.contains("Start teaching"));
    server.form("/study/words/begin", &cookie, "").await;
    assert_eq!(server.page("/study/words", &cookie).await.header("location"), "/teach/study");
    let page = server.page("/teach/study", &cookie).await.text;
    assert!(page.contains("0</span> of 2 answers"), "{page}");
    let first = describe(&server, &cookie, "one").await;
    assert_eq!((&first["study"]["given"], &first["study"]["next"]), (&json!(1), &json!(null)));
    let second = describe(&server, &cookie, "two").await;
    assert_eq!(second["study"]["next"], "/study/words");
    // From here on there is nothing to describe, and the end is the same at every reload.
    let offer = server.post("/api/runs/study/lease", &cookie, &json!({})).await.json();
    assert_eq!((&offer["execution"], &offer["study"]["next"]), (&json!(null), &json!("/study/words")));
    let end = server.page("/study/words", &cookie).await.text;
    let again = server.page("/study/words", &cookie).await.text;
    assert!(end.contains("Thank you, that was all") && end.contains("You gave 2 answers"), "{end}");
    let code = |page: &str| page.split("id=\"code\">").nth(1).unwrap()[..8].to_owned();
    assert_eq!(code(&end), code(&again));
    // It stays when the study is closed.
    server.state.store.set_study_state(&"words".into(), StudyState::Closed, "a test").await.unwrap();
    assert_eq!(code(&server.page("/study/words", &cookie).await.text), code(&end));
    let late = arrive(&server, "").await;
    assert!(server.page("/study/words", &late).await.text.contains("This study has ended"));
}

#[tokio::test]
async fn platforms_name_their_people_and_another_browser_goes_on() {
    let server = Server::new().await;
    let id = open(&server, |s| {
        s.entry = Entry::Prolific;
        s.completion.code = "C0DE".into();
        s.completion.screened_out_code = "N0".into();
        s.goal = 1;
    })
    .await;
    assert!(server.page("/study/words", "").await.text.contains("Open it by the link that the platform shows you"));
    let query = "?PROLIFIC_PID=anna&STUDY_ID=s1&SESSION_ID=x1";
    let fields = "PROLIFIC_PID=anna&STUDY_ID=s1&SESSION_ID=x1";
    let cookie = arrive(&server, query).await;
    assert_eq!(
        attribute(&server.page(&format!("/study/words{query}"), &cookie).await.text, "\"PROLIFIC_PID\"", "value"),
        "anna"
    );
    // The names leave the address when the form is sent.
    assert_eq!(server.form("/study/words/join", &cookie, fields).await.header("location"), "/study/words");
    // A participation in another browser is one teacher's; a person who comes with another participation is refused.
    let phone = arrive(&server, query).await;
    assert_eq!(server.form("/study/words/join", &phone, fields).await.status, StatusCode::SEE_OTHER);
    let other = arrive(&server, query).await;
    let refused = server.form("/study/words/join", &other, "PROLIFIC_PID=anna&SESSION_ID=x2").await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    server.form("/study/words/begin", &phone, "").await;
    describe(&server, &phone, "from the phone").await;
    let end = server.page("/study/words", &cookie).await.text;
    assert!(end.contains("https://app.prolific.com/submissions/complete?cc=C0DE"), "{end}");
    // The list for the platform names people; the export does not.
    let list = server.get("/studies/words/approvals.csv", "").await.text;
    assert!(list.contains("P001,anna,x1,finished,1,0.1,0,0,C0DE,pending"), "{list}");
    let export = server.get("/runs/study/export.jsonl", "").await.text;
    assert!(export.contains("from the phone") && !export.contains("anna"), "{export}");
    // Erased: nothing names the person, their answers stay, and their browsers are strangers.
    assert_eq!(server.form("/studies/words/participants/1/erase", "", "").await.status, StatusCode::SEE_OTHER);
    assert!(!server.get("/studies/words/approvals.csv", "").await.text.contains("anna"));
    assert!(server.get("/runs/study/export.jsonl", "").await.text.contains("from the phone"));
    assert!(server.state.store.participant(&id, iliad::ids::TeacherId(1)).await.unwrap().unwrap().erased_at.is_some());
    assert!(server.page(&format!("/study/words{query}"), &phone).await.text.contains("Take part"));
}

#[tokio::test]
async fn invitations_work_once_and_can_be_withdrawn() {
    let server = Server::new().await;
    open(&server, |s| s.entry = Entry::Invitation).await;
    let made = server.form("/studies/words/invitations", "", "labels=Anna%0ABen&days=7").await;
    let links: Vec<&str> = made.text.split("?invitation=").skip(1).map(|rest| &rest[..32]).collect();
    assert_eq!(links.len(), 2, "{}", made.text);
    assert!(!server.page("/studies/words", "").await.text.contains(links[0]), "links are shown once");
    let anna = arrive(&server, &format!("?invitation={}", links[0])).await;
    let joined = server.form("/study/words/join", &anna, &format!("invitation={}", links[0])).await;
    assert_eq!(joined.status, StatusCode::SEE_OTHER);
    // The link opens her place in another browser, too; a made-up one opens nothing.
    let phone = arrive(&server, "").await;
    let again = server.form("/study/words/join", &phone, &format!("invitation={}", links[0])).await;
    assert_eq!(again.status, StatusCode::SEE_OTHER);
    assert_eq!(server.state.store.participants(&"words".into()).await.unwrap().len(), 1);
    let forged = server
        .form("/study/words/join", &arrive(&server, "").await, "invitation=00000000000000000000000000000000")
        .await;
    assert_eq!(forged.status, StatusCode::NOT_FOUND);
    let key = server
        .state
        .store
        .invitations(&"words".into())
        .await
        .unwrap()
        .into_iter()
        .find(|i| i.label == "Ben")
        .unwrap()
        .key;
    assert_eq!(
        server.form(&format!("/studies/words/invitations/{key}/revoke"), "", "").await.status,
        StatusCode::SEE_OTHER
    );
    let ben = server.form("/study/words/join", &arrive(&server, "").await, &format!("invitation={}", links[1])).await;
    assert!(ben.status == StatusCode::CONFLICT && ben.text.contains("was withdrawn"), "{}", ben.text);
}

#[tokio::test]
async fn an_agent_judges_the_qualification() {
    let server = Server::new().await;
    let judge = |s: &mut StudySettings| {
        (s.qualification.executions, s.qualification.right, s.qualification.judge) = (2, 1, Judge::Executor);
        s.completion.screened_out_code = "N0".into();
    };
    open(&server, judge).await;
    let qualify = async |texts: [&str; 2]| {
        let cookie = teacher(&server).await;
        for (position, text) in texts.iter().enumerate() {
            let page = server.page("/study/words", &cookie).await.text;
            assert!(page.contains(&format!("{} of 2", position + 1)), "{page}");
            let empty = server.form("/study/words/qualify", &cookie, &format!("position={position}&text=+")).await;
            assert_eq!(empty.status, StatusCode::UNPROCESSABLE_ENTITY);
            server.form("/study/words/qualify", &cookie, &format!("position={position}&text={text}")).await;
            // Sent twice: what was said first stands.
            server.form("/study/words/qualify", &cookie, &format!("position={position}&text=again")).await;
        }
        server.page("/study/words", &cookie).await
    };
    // The second of two wrong sentences went into the place of a repetition, so it is sent for its own place only.
    assert_eq!(qualify(["wrong", "right"]).await.header("location"), "/teach/study");
    let out = qualify(["wrong", "wrong+too"]).await.text;
    assert!(out.contains("Thank you for trying") && out.contains("N0"), "{out}");
}

#[tokio::test]
async fn a_researcher_judges_the_qualification() {
    let server = Server::new().await;
    open(&server, |s| (s.qualification.executions, s.qualification.right) = (1, 1)).await;
    let cookie = teacher(&server).await;
    server.form("/study/words/qualify", &cookie, "position=0&text=it+was+turned").await;
    assert!(server.page("/study/words", &cookie).await.text.contains("Somebody reads what you wrote"));
    assert!(server.page("/studies/words/participants/1", "").await.text.contains("it was turned"));
    server.form("/studies/words/participants/1/judge", "", "position=0&passed=1").await;
    assert_eq!(server.page("/study/words", &cookie).await.header("location"), "/teach/study");
    let audit = server.state.store.audit(&"words".into(), 50).await.unwrap();
    assert!(audit.iter().any(|entry| entry.action == "qualification_judged" && entry.actor == "this machine"));
}

#[tokio::test]
async fn attention_checks_come_at_their_time_and_misses_end_it() {
    let server = Server::new().await;
    let id = open(&server, |s| (s.goal, s.attention.every, s.attention.misses) = (9, 2, 0)).await;
    let cookie = teacher(&server).await;
    describe(&server, &cookie, "the first").await;
    let second = describe(&server, &cookie, "the second").await;
    assert_eq!(second["study"]["next"], "/study/words/check");
    assert_eq!(server.page("/teach/study", &cookie).await.header("location"), "/study/words/check");
    let page = server.page("/study/words/check", &cookie).await.text;
    assert_eq!(page, server.page("/study/words/check", &cookie).await.text, "a reload asks the same");
    let who = server.state.store.participants(&id).await.unwrap().remove(0);
    let item = server.state.store.attention_item(&id, (who.id, who.teacher), 0).await.unwrap().unwrap();
    assert!(page.contains(&item.text) && item.choices.len() >= 2, "{page}");
    let none = server.form("/study/words/check", &cookie, "at=0").await;
    assert!(none.status == StatusCode::UNPROCESSABLE_ENTITY && none.text.contains("Choose one of them"));
    server.form("/study/words/check", &cookie, &format!("at=0&choice={}", item.right)).await;
    assert_eq!(server.page("/study/words", &cookie).await.header("location"), "/teach/study");
    // Sent once more, it is not counted again.
    server.form("/study/words/check", &cookie, "at=0&choice=0").await;
    describe(&server, &cookie, "the third").await;
    describe(&server, &cookie, "the fourth").await;
    server.form("/study/words/check", &cookie, "at=1&choice=0").await;
    let who = server.state.store.participants(&id).await.unwrap().remove(0);
    assert_eq!((who.attention_passed, who.attention_missed, who.state), (1, 1, ParticipantState::ScreenedOut));
    assert!(server.page("/study/words", &cookie).await.text.contains("Thank you for trying"));
}

#[tokio::test]
async fn leaving_and_coming_back_lose_nothing() {
    let server = Server::new().await;
    open(&server, |s| (s.goal, s.preview) = (3, Preview::On)).await;
    let cookie = teacher(&server).await;
    describe(&server, &cookie, "one").await;
    server.form("/study/words/leave", &cookie, "").await;
    let left = server.page("/study/words", &cookie).await.text;
    assert!(left.contains("You have left the study") && left.contains("Go on after all"), "{left}");
    assert_eq!(server.page("/teach/study", &cookie).await.header("location"), "/study/words");
    server.form("/study/words/back", &cookie, "").await;
    assert_eq!(server.page("/study/words", &cookie).await.header("location"), "/teach/study");
    assert!(server.page("/teach/study", &cookie).await.text.contains("data-previews"));
    assert_eq!(describe(&server, &cookie, "two").await["study"]["given"], 2);
}

#[tokio::test]
async fn places_are_counted_and_a_pause_holds_everybody_up() {
    let server = Server::new().await;
    open(&server, |s| s.places = 1).await;
    let cookie = teacher(&server).await;
    let full = server.form("/study/words/join", &arrive(&server, "").await, "").await;
    assert!(full.text.contains("All places in this study are taken"), "{}", full.text);
    server.form("/studies/words/state", "", "state=paused").await;
    assert!(server.page("/study/words", &cookie).await.text.contains("takes a break"));
    assert_eq!(server.page("/teach/study", &cookie).await.header("location"), "/study/words");
    // Extended and opened again, the next one fits.
    let study = server.state.store.study(&"words".into()).await.unwrap();
    let settings = StudySettings { places: 2, ..study.settings };
    server
        .state
        .store
        .change_study(&"words".into(), "a test", |_| {
            Ok::<_, iliad::store::StoreError>((settings.clone(), study.arms.to_vec()))
        })
        .await
        .unwrap();
    server.form("/studies/words/state", "", "state=open").await;
    assert_eq!(server.form("/study/words/join", &arrive(&server, "").await, "").await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_study_is_written_in_a_form_that_keeps_what_was_typed() {
    let server = Server::new().await;
    assert!(server.page("/studies", "").await.text.contains("There is no study yet"));
    let wrong = server.form("/studies", "", "title=&goal=lots&consent=Please+agree").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.text.contains("Please agree") && wrong.text.contains("value=\"lots\""), "{}", wrong.text);
    assert!(wrong.text.contains("Give the study a title") && wrong.text.contains("must be a whole number"));
    let body = "title=My+first+study&goal=5&use.study=yes&arm.study=words&entry=link&guidelines=Be+*exact*.";
    let made = server.form("/studies", "", body).await;
    assert_eq!(made.header("location"), "/studies/my-first-study");
    // A draft is nobody's business, and the run is taught as before.
    assert!(server.page("/teach/study", "").await.text.contains("Say what the agent did"));
    let page = server.page("/studies/my-first-study", "").await.text;
    assert!(page.contains("Open the study") && page.contains("/study/my-first-study"), "{page}");
    let twice = server.form("/studies", "", body).await;
    assert!(
        twice.text.contains("there is a study called my-first-study already")
            || twice.text.contains("There is a study called"),
        "{}",
        twice.text
    );
    server.form("/studies/my-first-study/state", "", "state=open").await;
    let preview =
        server.form("/studies/preview", "", "title=T&guidelines=Be+*exact*.&goal=60&pay_per_hour=12&places=10").await;
    assert!(preview.text.contains("<em>exact</em>") && preview.text.contains("EUR in all"), "{}", preview.text);
    // The runs of a study that was opened stay; everything else can be changed, and the trail says by whom.
    let changed = server.form("/studies/my-first-study/edit", "", "title=Longer&goal=9&arm.study=better").await;
    assert_eq!(changed.status, StatusCode::SEE_OTHER, "{}", changed.text);
    let study = server.state.store.study(&"my-first-study".into()).await.unwrap();
    assert_eq!((study.settings.goal, study.arms[0].name.as_str()), (9, "better"));
    let trail = server.state.store.audit(&study.id, 9).await.unwrap();
    let actions: Vec<_> = trail.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["settings_changed", "state_changed", "created"]);
    assert_eq!(trail[0].detail["changed"]["goal"], json!({ "from": 5, "to": 9 }));
}

#[tokio::test]
async fn only_who_steers_sees_studies() {
    let settings =
        iliad::web::WebSettings { access_token: Some("secret".into()), ..iliad::web::WebSettings::default() };
    let server = Server::with(settings, iliad::config::run::TeacherMode::Human).await;
    open(&server, |_| {}).await;
    for path in [
        "/studies",
        "/studies/new",
        "/studies/words",
        "/studies/words/edit",
        "/studies/words/approvals.csv",
        "/studies/words/participants/1",
        "/studies/words/settings.toml",
        "/api/studies",
        "/api/studies/words",
        "/api/studies/words/participants",
    ] {
        assert_eq!(server.get(path, "").await.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    for path in [
        "/studies",
        "/studies/preview",
        "/studies/words/edit",
        "/studies/words/state",
        "/studies/words/invitations",
        "/studies/words/participants/1/judge",
        "/studies/words/participants/1/approval",
        "/studies/words/participants/1/erase",
        "/studies/settings",
        "/studies/words/webhooks/test",
        "/studies/words/webhooks/1/retry",
        "/studies/words/webhooks/secret",
    ] {
        assert_eq!(server.form(path, "", "title=x").await.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    assert_eq!(server.page("/study/words", "").await.status, StatusCode::OK);
    assert_eq!(server.page("/study/none", "").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn settings_are_a_file_that_fills_the_editor_again() {
    let server = Server::new().await;
    let id = open(&server, |s| (s.guidelines, s.goal) = ("Be *exact*.\n\nPlease.".into(), 7)).await;
    let file = server.get("/studies/words/settings.toml", "").await;
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"words.toml\"");
    assert!(file.text.contains("id = \"words\"") && file.text.contains("[[arms]]\nrun = \"study\""), "{}", file.text);
    let read = iliad::study::StudyFile::read(&file.text).unwrap();
    assert_eq!(read.settings, server.state.store.study(&id).await.unwrap().settings);
    let body = format!("settings={}", percent(&file.text));
    let filled = server.form("/studies/settings", "", &body).await;
    assert_eq!(filled.status, StatusCode::OK);
    assert!(filled.text.contains("Be *exact*.\n\nPlease.") && filled.text.contains("value=\"7\""), "{}", filled.text);
    assert!(filled.text.contains("name=\"id\" type=\"text\" value=\"words\""), "{}", filled.text);
    let longer = file.text.replace("goal = 7", "goal = 8");
    let edited = format!("study=words&settings={}", percent(&longer));
    let edited = server.form("/studies/settings", "", &edited).await.text;
    assert!(edited.contains("action=\"/studies/words/edit\"") && edited.contains("value=\"8\""), "{edited}");
    let wrong = server.form("/studies/settings", "", "settings=tittle+%3D+%27x%27").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.text.contains("tittle"), "{}", wrong.text);
    // A copy of the study is made without its runs and its name.
    let again = server.page("/studies/new?from=words", "").await.text;
    assert!(again.contains("Be *exact*.") && again.contains("name=\"id\" type=\"text\" value=\"\""), "{again}");
    assert_eq!(server.page("/studies/new?from=none", "").await.status, StatusCode::NOT_FOUND);
    let taken = server.form("/studies", "", "title=x&id=new").await;
    assert!(taken.text.contains("A study cannot be called new: a page has that name."), "{}", taken.text);
    let named = server.form("/studies", "", "title=x&id=My+Study").await;
    assert!(named.text.contains("name has 1 to 64 small letters"), "{}", named.text);
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

#[tokio::test]
async fn programs_read_studies_and_change_their_settings() {
    let server = Server::new().await;
    open(&server, |s| (s.entry, s.completion.code) = (Entry::Prolific, "C0DE".into())).await;
    let cookie = arrive(&server, "?PROLIFIC_PID=anna&STUDY_ID=s1&SESSION_ID=x1").await;
    let joined = server.form("/study/words/join", &cookie, "PROLIFIC_PID=anna&STUDY_ID=s1&SESSION_ID=x1").await;
    assert_eq!(joined.status, StatusCode::SEE_OTHER);
    server.form("/study/words/begin", &cookie, "").await;
    describe(&server, &cookie, "one").await;
    let studies = server.get("/api/studies", "").await.json();
    let one = server.get("/api/studies/words", "").await.json();
    assert_eq!(studies[0]["id"], one["id"]);
    assert_eq!((&one["state"], &one["teachers"], &one["answers"]), (&json!("open"), &json!(1), &json!(1)));
    assert_eq!((&one["settings"]["goal"], &one["arms"][0]["run"]), (&json!(2), &json!("study")));
    let people = server.get("/api/studies/words/participants", "").await;
    assert!(!people.text.contains("anna") && !people.text.contains("x1"), "{}", people.text);
    assert_eq!(people.json()[0]["pseudonym"], "P001");
    assert_eq!(people.json()[0]["figures"]["described"], 1);
    let patch = async |body: serde_json::Value| {
        let headers = [("content-type", "application/json")];
        server.call(axum::http::Method::PATCH, "/api/studies/words", &headers, body.to_string()).await
    };
    let changed = patch(json!({ "goal": 40, "completion": { "thanks": "Thank *you*." } })).await.json();
    assert_eq!(changed["settings"]["goal"], 40);
    assert_eq!(changed["settings"]["completion"]["code"], "C0DE");
    let back = patch(json!({ "goal": null })).await.json();
    assert_eq!(back["settings"]["goal"], StudySettings::default().goal);
    let unknown = patch(json!({ "tittle": "x" })).await;
    assert_eq!(unknown.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", unknown.text);
    let refused = patch(json!({ "completion": { "code": "" } })).await;
    assert_eq!((refused.status, refused.json()["code"].as_str()), (StatusCode::UNPROCESSABLE_ENTITY, Some("code")));
    assert_eq!(patch(json!([1])).await.status, StatusCode::UNPROCESSABLE_ENTITY);
    let trail = server.state.store.audit(&"words".into(), 9).await.unwrap();
    assert_eq!(trail.iter().filter(|entry| entry.action == "settings_changed").count(), 2);
}

#[tokio::test]
async fn leaving_skips_neither_the_judgement_nor_a_check() {
    let server = Server::new().await;
    let id = open(&server, |s| (s.goal, s.attention.every, s.qualification.executions) = (9, 1, 1)).await;
    let cookie = teacher(&server).await;
    server.form("/study/words/qualify", &cookie, "position=0&text=rubbish").await;
    assert!(server.page("/study/words", &cookie).await.text.contains("Somebody reads what you wrote"));
    server.form("/study/words/leave", &cookie, "").await;
    server.form("/study/words/back", &cookie, "").await;
    assert!(server.page("/study/words", &cookie).await.text.contains("Somebody reads what you wrote"));
    server.form("/studies/words/participants/1/judge", "", "position=0&passed=1").await;
    // A check that is not due is not answered.
    for at in 0..3 {
        server.form("/study/words/check", &cookie, &format!("at={at}&choice=1")).await;
    }
    let who = server.state.store.participants(&id).await.unwrap().remove(0);
    assert_eq!((who.state, who.attention_passed, who.attention_missed), (ParticipantState::Teaching, 0, 0));
}

#[tokio::test]
async fn only_what_was_given_in_the_study_counts_for_its_goal() {
    let server = Server::new().await;
    let cookie = server.teacher().await;
    for text in ["before", "the study"] {
        describe(&server, &cookie, text).await;
    }
    open(&server, |_| {}).await;
    server.form("/study/words/join", &cookie, "").await;
    server.form("/study/words/begin", &cookie, "").await;
    assert_eq!(server.page("/study/words", &cookie).await.header("location"), "/teach/study");
    assert_eq!(describe(&server, &cookie, "within").await["study"]["given"], 1);
}

#[tokio::test]
async fn erasing_reaches_every_study_of_the_person() {
    let server = Server::new().await;
    let prolific = |s: &mut StudySettings| (s.entry, s.completion.code) = (Entry::Prolific, "C".into());
    open(&server, prolific).await;
    let mut settings = StudySettings { title: "Another".into(), ..StudySettings::default() };
    prolific(&mut settings);
    server.state.store.create_study(&"another".into(), &settings, &[], "secret", "a test").await.unwrap();
    server.state.store.set_study_state(&"another".into(), StudyState::Open, "a test").await.unwrap();
    let cookie = arrive(&server, "").await;
    for (study, session) in [("words", "s1"), ("another", "s2")] {
        let fields = format!("PROLIFIC_PID=anna&SESSION_ID={session}");
        assert_eq!(server.form(&format!("/study/{study}/join"), &cookie, &fields).await.status, StatusCode::SEE_OTHER);
    }
    server.form("/studies/words/participants/1/erase", "", "").await;
    for study in ["words", "another"] {
        let list = server.get(&format!("/studies/{study}/approvals.csv"), "").await.text;
        assert!(list.contains("P001,,,left") && !list.contains("anna"), "{list}");
        let trail = server.state.store.audit(&study.into(), 1).await.unwrap();
        assert_eq!(trail[0].action, "person_erased");
    }
    // The platform's names lead a newcomer to no answers of before.
    let newcomer = arrive(&server, "").await;
    server.form("/study/another/join", &newcomer, "PROLIFIC_PID=anna&SESSION_ID=s2").await;
    assert_eq!(server.state.store.participants(&"another".into()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn forms_of_a_study_keep_what_was_typed_and_overwrite_nobody() {
    let server = Server::new().await;
    open(&server, |s| s.entry = Entry::Invitation).await;
    let editor = server.page("/studies/words/edit", "").await.text;
    let seen = attribute(&editor, "name=\"seen\"", "value");
    let changed = server.form("/studies/words/edit", "", &format!("title=Mine&entry=invitation&seen={seen}")).await;
    assert_eq!(changed.status, StatusCode::SEE_OTHER, "{}", changed.text);
    let stale = server.form("/studies/words/edit", "", &format!("title=Yours&entry=invitation&seen={seen}")).await;
    assert_eq!(stale.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(stale.text.contains("omebody changed the study meanwhile") && stale.text.contains("value=\"Yours\""));
    let again = attribute(&stale.text, "name=\"seen\"", "value");
    let replaced = server.form("/studies/words/edit", "", &format!("title=Yours&entry=invitation&seen={again}")).await;
    assert_eq!(replaced.status, StatusCode::SEE_OTHER, "{}", replaced.text);
    let refused = server.form("/studies/words/invitations", "", "labels=Anna%0ABen&days=0").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("Anna\nBen</textarea>"), "{}", refused.text);
}

#[tokio::test]
async fn who_left_comes_back_only_while_there_is_a_place() {
    let server = Server::new().await;
    let id = open(&server, |s| s.places = 1).await;
    let first = teacher(&server).await;
    server.form("/study/words/leave", &first, "").await;
    let second = teacher(&server).await;
    let full = server.form("/study/words/back", &first, "").await;
    assert!(
        full.status == StatusCode::CONFLICT && full.text.contains("places in this study are taken"),
        "{}",
        full.text
    );
    server.form("/study/words/leave", &second, "").await;
    assert_eq!(server.form("/study/words/back", &first, "").await.status, StatusCode::SEE_OTHER);
    let states: Vec<_> = server.state.store.participants(&id).await.unwrap().iter().map(|who| who.state).collect();
    assert_eq!(states, [ParticipantState::Teaching, ParticipantState::Left]);
}

#[tokio::test]
async fn an_agent_that_is_not_there_cannot_decide() {
    let server = Server::new().await;
    let mut settings = StudySettings { title: "Words".into(), ..StudySettings::default() };
    settings.qualification.executor = Some("nope".into());
    let refused = server.state.store.create_study(&"words".into(), &settings, &[], "secret", "a test").await;
    assert!(refused.unwrap_err().to_string().contains("no run called nope"));
}
