//! People who sign in: what each role opens, how accounts and sessions begin and end, and what guessing gets.

use crate::{Reply, Server, attribute};
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use iliad::config::run::TeacherMode;
use iliad::ids::AccountId;
use iliad::store::{Joined, Role};
use iliad::web::WebSettings;
use std::sync::OnceLock;
use std::time::Duration;
use tower::ServiceExt;

const TOKEN: &str = "correct horse battery staple";
const PASSWORD: &str = "four words in a row";
const FORM: &str = "four+words+in+a+row";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn server() -> Server {
    server_with(WebSettings { access_token: Some(TOKEN.to_owned()), ..WebSettings::default() }).await
}

async fn server_with(settings: WebSettings) -> Server {
    Server::with(WebSettings { loopback: false, ..settings }, TeacherMode::Human).await
}

/// The hash of the password, made once.
async fn hash() -> &'static str {
    static HASH: OnceLock<String> = OnceLock::new();
    if HASH.get().is_none() {
        let _ = HASH.set(iliad::credentials::hash(PASSWORD.to_owned()).await.unwrap());
    }
    HASH.get().unwrap()
}

/// An account of a role, without going through the pages.
async fn account(server: &Server, name: &str, role: Role) -> AccountId {
    let token = format!("link of {name}");
    let store = &server.state.store;
    if store.has_accounts().await.unwrap() || role == Role::Owner {
        store.invite(&token, role, None, DAY).await.unwrap();
    } else {
        // Only an owner can be the first.
        store.invite_first_owner(&token).await.unwrap();
        store.join(&token, "the first", hash().await).await.unwrap();
        store.invite(&token.clone().repeat(2), role, None, DAY).await.unwrap();
        let Joined::Account(id) = store.join(&token.repeat(2), name, hash().await).await.unwrap() else { panic!() };
        return id;
    }
    let Joined::Account(id) = store.join(&token, name, hash().await).await.unwrap() else { panic!() };
    id
}

/// A browser of an account: its cookie.
async fn browser(server: &Server, account: AccountId) -> String {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let token = format!("{:032x}", NEXT.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
    server.state.store.open_session(account, &token, "Firefox on Linux").await.unwrap();
    format!("iliad_session={token}")
}

async fn signed_in(server: &Server, name: &str, role: Role) -> String {
    browser(server, account(server, name, role).await).await
}

async fn sign_in(server: &Server, name: &str, password: &str) -> Reply {
    server.form("/sign-in", "", &format!("name={name}&password={password}&next=/runs")).await
}

/// The status of a request whose body may never end.
async fn status(server: &Server, method: Method, path: &str, cookie: &str) -> StatusCode {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "127.0.0.1:8080")
        .header("cookie", cookie)
        .header("content-type", "application/json")
        .header("sec-fetch-site", "same-origin")
        .body(Body::from("{}"))
        .unwrap();
    server.router.clone().oneshot(request).await.unwrap().status()
}

#[tokio::test]
async fn every_role_opens_what_is_its_own() {
    let server = server().await;
    let mut browsers = Vec::new();
    for role in Role::ALL {
        browsers.push(signed_in(&server, role.as_str(), role).await);
    }
    browsers.push(String::new());
    browsers.push("iliad_session=0123456789abcdef0123456789abcdef".to_owned());
    let get = |path| (Method::GET, path);
    let post = |path| (Method::POST, path);
    // Owner, researcher, reviewer, teacher, nobody, somebody with a cookie that was never given out.
    let steering = [200, 200, 403, 403, 401, 401];
    let commands = [202, 202, 403, 403, 401, 401];
    // 0: let in, whatever the answer to an empty request is then.
    let let_in = [0, 0, 403, 403, 401, 401];
    let table = [
        (get("/events?runs=study"), steering),
        (get("/runs"), steering),
        (get("/runs/study"), steering),
        (get("/runs/study/events"), steering),
        (get("/runs/study/export.jsonl"), steering),
        (get("/runs/study/export.csv"), steering),
        (get("/api/runs"), steering),
        (get("/api/runs/study"), steering),
        (get("/api/runs/study/points"), steering),
        (get("/api/runs/study/readings"), steering),
        (get("/api/runs/study/episodes"), steering),
        (get("/api/presets"), let_in),
        (get("/studies"), let_in),
        (post("/studies"), let_in),
        (post("/studies/999/state"), let_in),
        (post("/studies/999/participants/1/erase"), let_in),
        (post("/api/runs/study/pause"), commands),
        (post("/api/runs/study/resume"), commands),
        (post("/api/runs/study/checkpoints"), [201, 201, 403, 403, 401, 401]),
        (get("/people"), [200, 403, 403, 403, 401, 401]),
        (post("/people/999/disable"), [404, 403, 403, 403, 401, 401]),
        (post("/people/invites/999/revoke"), [404, 403, 403, 403, 401, 401]),
        (get("/account"), [200, 200, 200, 200, 401, 401]),
        (get("/"), [200; 6]),
        (get("/teach/study"), [200; 6]),
        (get("/docs"), [200; 6]),
    ];
    for ((method, path), expected) in table {
        for (browser, expected) in browsers.iter().zip(expected) {
            let got = status(&server, method.clone(), path, browser).await.as_u16();
            let fits = got == expected || (expected == 0 && !matches!(got, 401 | 403));
            assert!(fits, "{method} {path} as {browser}: {got}, not {expected}");
        }
    }
    let refused = server.get("/api/runs", &browsers[2]).await.json();
    assert_eq!(refused["code"], "not-permitted");
    assert!(refused["detail"].as_str().unwrap().contains("as a reviewer, who reviews"), "{refused}");
    // The token opens the same as before, whoever else is signed in.
    for cookie in ["", &browsers[3]] {
        let headers = [("authorization", "Bearer correct horse battery staple"), ("cookie", cookie)];
        assert_eq!(server.call(Method::GET, "/api/runs", &headers, Body::empty()).await.status, StatusCode::OK);
        let people = server.call(Method::GET, "/people", &headers, Body::empty()).await;
        assert!(!people.status.is_success(), "the token manages no accounts");
    }
}

#[tokio::test]
async fn without_an_account_everything_is_as_it_was() {
    let settings = WebSettings { access_token: Some(TOKEN.to_owned()), ..WebSettings::default() };
    let server = server_with(settings).await;
    let page = server.page("/runs", "").await;
    assert_eq!(page.header("location"), "/access?next=/runs");
    let access = server.page("/access?next=/runs", "").await.text;
    assert!(!access.contains("/sign-in"), "{access}");
    assert!(server.page("/sign-in", "").await.text.contains("There is no account on this server yet"));
    account(&server, "ada", Role::Owner).await;
    assert_eq!(server.page("/runs", "").await.header("location"), "/sign-in?next=/runs");
    assert!(server.page("/access?next=/runs", "").await.text.contains("href=\"/sign-in?next=/runs\""));
    assert!(server.page("/sign-in?next=/runs", "").await.text.contains("href=\"/access?next=/runs\""));
    assert!(server.page("/docs/export", "").await.text.contains("href=\"/sign-in?next=/docs/export\""));
    // Where there is no token, accounts open what nothing else would.
    let server = server_with(WebSettings::default()).await;
    assert_eq!(server.get("/api/runs", "").await.status, StatusCode::FORBIDDEN);
    let ada = signed_in(&server, "ada", Role::Owner).await;
    assert_eq!(server.get("/api/runs", "").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(server.get("/api/runs", &ada).await.status, StatusCode::OK);
    assert_eq!(server.page("/access?next=/runs", "").await.header("location"), "/sign-in?next=/runs");
    // The machine itself steers as ever, and can make the first account.
    let server = Server::new().await;
    assert_eq!(server.get("/api/runs", "").await.status, StatusCode::OK);
    assert!(server.page("/people", "").await.text.contains("There is no account yet"));
    assert!(!server.page("/", "").await.text.contains("/people"));
}

#[tokio::test]
async fn the_first_owner_comes_by_the_link_of_the_start() {
    let server = server().await;
    let store = &server.state.store;
    assert!(store.invite_first_owner("of the start before").await.unwrap());
    assert!(store.invite_first_owner("0123").await.unwrap());
    assert_eq!(server.page("/welcome/of%20the%20start%20before", "").await.status, StatusCode::GONE);
    let page = server.page("/welcome/0123", "").await;
    assert!(page.text.contains("Make the first account") && page.text.contains("action=\"/invite\""), "{}", page.text);
    assert_eq!(page.header("cache-control"), "no-store");
    assert!(!page.text.contains("next=/welcome"), "the link is in no other address");
    let weak = server.form("/invite", "", "token=0123&name=Ada&password=short&again=short").await;
    assert_eq!(weak.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(weak.text.contains("12 characters") && attribute(&weak.text, "id=\"name\"", "value") == "Ada");
    let differ = server.form("/invite", "", &format!("token=0123&name=Ada&password={FORM}&again=another+secret")).await;
    assert!(differ.text.contains("passwords differ") && !differ.text.contains("another"), "{}", differ.text);
    let made = server.form("/invite", "", &format!("token=0123&name=+Ada+&password={FORM}&again={FORM}")).await;
    assert_eq!((made.status, made.header("location")), (StatusCode::SEE_OTHER, "/people"));
    let cookie = made.cookie("iliad_session").unwrap();
    let people = server.page("/people", &cookie).await;
    assert!(people.text.contains("Ada") && people.text.contains(">you<"), "{}", people.text);
    for path in ["/welcome/0123", "/invite/0123", "/welcome", "/invite"] {
        assert_eq!(server.page(path, "").await.status, StatusCode::GONE, "{path}");
    }
    assert!(!store.invite_first_owner("another").await.unwrap(), "there is an owner");
}

#[tokio::test]
async fn an_invitation_makes_one_account_of_its_role() {
    let server = server().await;
    let ada = signed_in(&server, "Ada", Role::Owner).await;
    let made = server.form("/people/invites", &ada, "role=reviewer&days=3").await;
    assert_eq!(made.status, StatusCode::CREATED);
    let link = attribute(&made.text, "id=\"link\"", "value");
    let path = link.strip_prefix("http://127.0.0.1:8080").expect("the address under which it was asked for").to_owned();
    let token = path.strip_prefix("/invite/").unwrap().to_owned();
    assert!(!server.page("/people", &ada).await.text.contains(&token), "it is shown once");
    assert!(server.page(&path, "").await.text.contains("a <b>reviewer</b>"));
    let taken = server.form("/invite", "", &format!("token={token}&name=ADA&password={FORM}&again={FORM}")).await;
    assert_eq!(taken.status, StatusCode::CONFLICT);
    assert!(taken.text.contains("has this name already") && attribute(&taken.text, "id=\"name\"", "value") == "ADA");
    let joined = server.form("/invite", "", &format!("token={token}&name=Grace&password={FORM}&again={FORM}")).await;
    assert_eq!((joined.status, joined.header("location")), (StatusCode::SEE_OTHER, "/"));
    let grace = joined.cookie("iliad_session").unwrap();
    assert!(server.page("/account", &grace).await.text.contains("a <b>reviewer</b>"));
    assert_eq!(server.page(&path, "").await.status, StatusCode::GONE);
    let again = server.form("/invite", "", &format!("token={token}&name=Eve&password={FORM}&again={FORM}")).await;
    assert_eq!(again.status, StatusCode::GONE);
    // One that has run out, and one that was taken back.
    server.state.store.invite("expired", Role::Owner, None, Duration::ZERO).await.unwrap();
    let id = server.state.store.invite("revoked", Role::Owner, None, DAY).await.unwrap();
    let revoked = server.form(&format!("/people/invites/{id}/revoke"), &ada, "").await;
    assert_eq!(revoked.header("location"), "/people?done=revoked");
    for token in ["expired", "revoked", "never made"] {
        let reply = server.form("/invite", "", &format!("token={token}&name=Eve&password={FORM}&again={FORM}")).await;
        assert_eq!(reply.status, StatusCode::GONE, "{token}");
    }
    let odd = server.form("/people/invites", &ada, "role=king&days=3").await;
    assert_eq!(odd.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(
        server.form("/people/invites", &ada, "role=owner&days=9999").await.status,
        StatusCode::UNPROCESSABLE_ENTITY
    );
}

#[tokio::test]
async fn signing_in_goes_where_one_was_going_and_nowhere_else() {
    let server = server().await;
    account(&server, "Ada", Role::Owner).await;
    let there = sign_in(&server, "+ada+", FORM).await;
    assert_eq!((there.status, there.header("location")), (StatusCode::SEE_OTHER, "/runs"));
    let set = there.header("set-cookie");
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax") && set.contains("Path=/"), "{set}");
    let cookie = there.cookie("iliad_session").unwrap();
    assert_eq!(server.page("/sign-in?next=/runs", &cookie).await.header("location"), "/runs");
    for away in ["//evil.example", "https://evil.example", "/\\evil.example", "%2F%2Fevil.example", "/%0Aevil", "evil"]
    {
        let reply = server.form("/sign-in", "", &format!("name=ada&password={FORM}&next={away}")).await;
        assert_eq!((reply.status, reply.header("location")), (StatusCode::SEE_OTHER, "/"), "{away}");
        let again = server.page(&format!("/sign-in?next={away}"), &cookie).await;
        assert_eq!(again.header("location"), "/", "{away}");
    }
    // Who is signed in, and the way out.
    for path in ["/", "/runs", "/runs/study", "/teach/study", "/people", "/account"] {
        let page = server.page(path, &cookie).await.text;
        assert!(page.contains("Sign out") && page.contains("Signed in as"), "{path}");
        assert!(!page.contains("Researchers sign in"), "{path}");
    }
    let foreign = [("sec-fetch-site", "cross-site"), ("cookie", cookie.as_str())];
    for path in ["/sign-out", "/sign-in", "/invite", "/people/invites", "/account/password"] {
        assert_eq!(
            server.call(Method::POST, path, &foreign, Body::empty()).await.status,
            StatusCode::FORBIDDEN,
            "{path}"
        );
    }
    let left = server.form("/sign-out", &cookie, "").await;
    assert_eq!((left.status, left.header("location")), (StatusCode::SEE_OTHER, "/"));
    assert!(left.header("set-cookie").starts_with("iliad_session=;"), "{}", left.header("set-cookie"));
    assert_eq!(server.get("/api/runs", &cookie).await.status, StatusCode::UNAUTHORIZED, "the old cookie opens nothing");
    // Who signs in anew on a browser leaves no session behind.
    let first = sign_in(&server, "ada", FORM).await.cookie("iliad_session").unwrap();
    server.form("/sign-in", &first, &format!("name=ada&password={FORM}")).await;
    assert_eq!(server.get("/api/runs", &first).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn over_https_the_cookie_is_this_hosts_alone() {
    let settings = WebSettings { trust_proxy: true, base_path: "/iliad".to_owned(), ..WebSettings::default() };
    let server = server_with(settings).await;
    account(&server, "Ada", Role::Owner).await;
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("accept", "text/html"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "iliad.example"),
    ];
    let body = format!("name=ada&password={FORM}");
    let reply = server.call(Method::POST, "/iliad/sign-in", &headers, body).await;
    let set = reply.header("set-cookie");
    assert!(set.starts_with("__Host-iliad_session=") && set.contains("Secure"), "{set}");
    assert!(set.contains("Path=/;") && !set.contains("Domain"), "{set}");
    let cookie = reply.cookie("__Host-iliad_session").unwrap();
    let with = |cookie: String| {
        let server = &server;
        async move {
            let headers = [("x-forwarded-proto", "https"), ("cookie", cookie.as_str())];
            server.call(Method::GET, "/iliad/api/runs", &headers, Body::empty()).await.status
        }
    };
    assert_eq!(with(cookie.clone()).await, StatusCode::OK);
    assert_eq!(with(cookie.replace("__Host-", "")).await, StatusCode::UNAUTHORIZED, "that one could be planted");
}

#[tokio::test]
async fn an_ended_session_opens_nothing_from_then_on() {
    let server = server().await;
    let ada = account(&server, "Ada", Role::Owner).await;
    let (here, there, third) = (browser(&server, ada).await, browser(&server, ada).await, browser(&server, ada).await);
    let open = async |cookie: &str| server.get("/api/runs", cookie).await.status == StatusCode::OK;
    let sessions = server.state.store.sessions_of(ada).await.unwrap();
    assert_eq!(sessions.len(), 3);
    let page = server.page("/account", &here).await.text;
    assert_eq!(page.matches("Firefox on Linux").count(), 3 + 2, "three, and two that can be ended by name");
    assert_eq!(page.matches("this browser").count(), 1);
    // The newest is listed first, so this is the third.
    let ended = server.form(&format!("/account/sessions/{}/end", sessions[0].id), &here, "").await;
    assert_eq!(ended.header("location"), "/account?done=session");
    assert!(!open(&third).await && open(&there).await && open(&here).await);
    let eve = signed_in(&server, "Eve", Role::Researcher).await;
    let foreign = server.form(&format!("/account/sessions/{}/end", sessions[1].id), &eve, "").await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND, "nobody ends somebody else's");
    assert!(open(&there).await);
    server.form("/account/sessions/end-others", &here, "").await;
    assert!(!open(&there).await && open(&here).await);
    // Another password, another role, and a disabled account.
    let there = browser(&server, ada).await;
    let change = |current: &str, new: &str| format!("current={current}&password={new}&again={new}");
    let wrong = server.form("/account/password", &here, &change("not+this+one", "a+better+password")).await;
    assert!(wrong.status == StatusCode::UNPROCESSABLE_ENTITY && wrong.text.contains("not your current password"));
    assert!(!wrong.text.contains("better"), "passwords are not sent back");
    let changed = server.form("/account/password", &here, &change(FORM, "a+better+password")).await;
    assert_eq!(changed.header("location"), "/account?done=password");
    assert!(!open(&there).await && open(&here).await);
    assert_eq!(sign_in(&server, "ada", FORM).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&server, "ada", "a+better+password").await.status, StatusCode::SEE_OTHER);
    let id = server.state.store.account_called("eve").await.unwrap().unwrap().id;
    assert!(open(&eve).await);
    server.form(&format!("/people/{id}/role"), &here, "role=teacher").await;
    assert!(!open(&eve).await && server.page("/account", &eve).await.status == StatusCode::OK);
    server.form(&format!("/people/{id}/role"), &here, "role=researcher").await;
    assert!(open(&eve).await);
    server.form(&format!("/people/{id}/disable"), &here, "").await;
    assert_eq!(server.get("/account", &eve).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&server, "eve", FORM).await.status, StatusCode::UNAUTHORIZED);
    server.form(&format!("/people/{id}/enable"), &here, "").await;
    assert_eq!(sign_in(&server, "eve", FORM).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn an_open_stream_ends_with_the_session() {
    let server = server().await;
    let ada = account(&server, "Ada", Role::Owner).await;
    for path in ["/events?runs=study", "/runs/study/events"] {
        let cookie = browser(&server, ada).await;
        let request = Request::get(path).header("host", "127.0.0.1:8080").header("cookie", &cookie);
        let response = server.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let whole = tokio::spawn(to_bytes(response.into_body(), 32 << 20));
        server.form("/sign-out", &cookie, "").await;
        whole.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_last_owner_stays_one() {
    let server = server().await;
    let ada = account(&server, "Ada", Role::Owner).await;
    let cookie = browser(&server, ada).await;
    for (path, body) in [("role", "role=researcher"), ("disable", "")] {
        let refused = server.form(&format!("/people/{ada}/{path}"), &cookie, body).await;
        assert_eq!(refused.status, StatusCode::CONFLICT);
        assert!(refused.text.contains("the last owner who can sign in"), "{}", refused.text);
    }
    let grace = account(&server, "Grace", Role::Owner).await;
    server.state.store.set_disabled(grace, true).await.unwrap();
    assert_eq!(
        server.form(&format!("/people/{ada}/disable"), &cookie, "").await.status,
        StatusCode::CONFLICT,
        "an owner who cannot sign in is none"
    );
    server.state.store.set_disabled(grace, false).await.unwrap();
    let left = server.form(&format!("/people/{ada}/role"), &cookie, "role=researcher").await;
    assert_eq!(left.header("location"), "/account");
    assert_eq!(server.get("/people", &cookie).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_unknown_name_and_a_wrong_password_are_told_alike() {
    let server = server().await;
    account(&server, "Ada", Role::Owner).await;
    let eve = account(&server, "Eve", Role::Researcher).await;
    server.state.store.set_disabled(eve, true).await.unwrap();
    let mut told = Vec::new();
    for (name, password) in [("ada", "wrong"), ("eve", FORM), ("eve", "wrong"), ("nobody", "wrong"), ("", "")] {
        let reply = sign_in(&server, name, password).await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{name}");
        assert_eq!(attribute(&reply.text, "id=\"name\"", "value"), name, "the name is kept");
        assert!(reply.headers.get("set-cookie").is_none());
        told.push(reply.text.replace(&format!("value=\"{name}\""), "").replace(" autofocus", ""));
    }
    assert!(told[0].contains("Name and password do not belong together"));
    assert!(told.iter().all(|text| *text == told[0]), "{told:#?}");
}

#[tokio::test]
async fn guessing_runs_out_by_address_and_by_name() {
    let settings = WebSettings { trust_proxy: true, ..WebSettings::default() };
    let server = server_with(settings).await;
    account(&server, "Ada", Role::Owner).await;
    let send = async |address: &str, path: &str, body: &str| {
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("accept", "text/html"),
            ("x-forwarded-for", address),
        ];
        server.call(Method::POST, path, &headers, body.to_owned()).await
    };
    let right = format!("name=ada&password={FORM}");
    let wrong = send("10.0.0.1", "/sign-in", "name=somebody&password=guess").await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    // Wrong links count like wrong passwords, and take no time to compare: nothing comes back meanwhile.
    let mut link = wrong.status;
    for _ in 0..100 {
        link = send("10.0.0.1", "/invite", "token=guess").await.status;
        if link == StatusCode::TOO_MANY_REQUESTS {
            break;
        }
    }
    assert_eq!(link, StatusCode::TOO_MANY_REQUESTS);
    let refused = send("10.0.0.1", "/sign-in", &right).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "the right one is not looked at either");
    assert!(!refused.header("retry-after").is_empty() && refused.text.contains("Too many passwords"));
    assert_eq!(attribute(&refused.text, "id=\"name\"", "value"), "ada");
    assert_eq!(send("10.0.0.2", "/sign-in", &right).await.status, StatusCode::SEE_OTHER);
    // From many addresses at one name; other names are not concerned.
    account(&server, "Grace", Role::Reviewer).await;
    let mut last = StatusCode::OK;
    for n in 0..200 {
        last = send(&format!("10.0.1.{n}"), "/sign-in", "name=Ada&password=guess").await.status;
        if last == StatusCode::TOO_MANY_REQUESTS {
            break;
        }
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
    let grace = send("10.0.2.1", "/sign-in", &format!("name=grace&password={FORM}")).await;
    assert_eq!(grace.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn reviewers_change_no_study() {
    let server = server().await;
    let settings = iliad::study::StudySettings { title: "Words".into(), ..Default::default() };
    server.state.store.create_study(&"words".into(), &settings, &[], "key", "a test").await.unwrap();
    let reviewer = signed_in(&server, "Rita", Role::Reviewer).await;
    for path in ["state", "edit", "invitations", "webhooks/test", "webhooks/secret", "participants/1/approval"] {
        let refused = server.form(&format!("/studies/words/{path}"), &reviewer, "state=open&title=x&days=1").await;
        assert!(matches!(refused.status.as_u16(), 401 | 403), "{path}: {}", refused.status);
    }
    let researcher = signed_in(&server, "Eve", Role::Researcher).await;
    let changed = server.form("/studies/words/edit", &researcher, "title=Longer").await;
    assert_eq!(changed.status, StatusCode::SEE_OTHER, "{}", changed.text);
    assert_eq!(server.state.store.audit(&"words".into(), 1).await.unwrap()[0].actor, "Eve");
}

/// A run that one researcher deleted is for the others to find: owners alone remove runs before their time.
#[tokio::test]
async fn owners_empty_the_trash_and_researchers_do_not() {
    let mut server = server().await;
    let folder = tempfile::tempdir().unwrap();
    let (store, runs) = (server.state.store.clone(), server.state.runs.clone());
    server.launch_with(std::sync::Arc::new(crate::v1::MadeUp { store, runs, folder }));
    for id in ["old", "older"] {
        crate::support::ended_run(&server.state.store, crate::support::run_row(id, TeacherMode::Human)).await;
        server.state.store.trash_run(&id.into()).await.unwrap();
    }
    let owner = signed_in(&server, "Ada", Role::Owner).await;
    let researcher = signed_in(&server, "Eve", Role::Researcher).await;
    let reviewer = signed_in(&server, "Rob", Role::Reviewer).await;
    let remove = async |cookie: &str| {
        let headers = [("cookie", cookie), ("sec-fetch-site", "same-origin")];
        server.call(Method::DELETE, "/api/v1/trash/older", &headers, Body::empty()).await.status
    };
    let page = server.page("/runs/trash", &researcher).await;
    assert!(page.status == StatusCode::OK && page.text.contains("Put back"), "{}", page.text);
    assert!(!page.text.contains("/runs/trash/empty") && page.text.contains("an owner of this server can empty"));
    for cookie in [&researcher, &reviewer] {
        assert_eq!(server.page("/runs/trash/empty", cookie).await.status, StatusCode::FORBIDDEN);
        let sent = server.form("/runs/trash/empty", cookie, "runs=old&sure=yes").await;
        assert!(sent.status == StatusCode::FORBIDDEN && sent.text.contains("does not allow this"), "{}", sent.text);
        assert_eq!(remove(cookie).await, StatusCode::FORBIDDEN);
    }
    assert_eq!(server.state.store.trashed_runs().await.unwrap().len(), 2);
    assert!(server.page("/runs/trash", &owner).await.text.contains("/runs/trash/empty"));
    assert!(server.page("/runs/trash/empty", &owner).await.text.contains("2 runs would be removed"));
    assert_eq!(server.form("/runs/trash/empty", &owner, "runs=old&sure=yes").await.status, StatusCode::SEE_OTHER);
    assert_eq!(remove(&owner).await, StatusCode::NO_CONTENT);
    assert!(server.state.store.trashed_runs().await.unwrap().is_empty());
}
