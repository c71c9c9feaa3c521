//! Who may ask for what: every address and method of the router, asked for by everybody, held against a table of rules.
//!
//! The addresses are read from the router itself, so that one without a rule fails. Whoever is refused is refused whether or
//! not the thing exists, and nothing changes then; a GET changes nothing whoever asks.

use crate::authorisation_fixture::{Fixture, Template, Who};
use crate::authorisation_rules::{Rule, rule_of};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use std::collections::{BTreeMap, BTreeSet};
use tower::ServiceExt;

/// Every address with its methods, as the router has them. The router shows them to developers alone, as text.
pub fn routes(router: &Router) -> BTreeSet<(String, String)> {
    let shown = format!("{router:?}");
    let shown = shown.split("fallback_router").next().unwrap();
    let (mut methods, mut paths) = (BTreeMap::new(), BTreeMap::new());
    for part in shown.split("RouteId(").skip(1) {
        let (number, rest) = part.split_once("): ").unwrap();
        if let Some(path) = rest.strip_prefix('"') {
            paths.insert(number.to_owned(), path.split('"').next().unwrap().to_owned());
        } else {
            let allowed = rest.split("allow_header: ").nth(1).unwrap_or_else(|| panic!("no methods in {rest}"));
            let allowed = allowed.split('"').nth(1).unwrap_or_else(|| panic!("no methods in {allowed}"));
            methods.insert(number.to_owned(), allowed.to_owned());
        }
    }
    assert_eq!(methods.len(), paths.len(), "every route has a path");
    let all = methods.iter().flat_map(|(number, allowed)| {
        let path = &paths[number];
        allowed.split(',').filter(|method| *method != "HEAD").map(|method| (path.clone(), method.to_owned()))
    });
    all.collect()
}

/// The end of a request.
#[derive(Debug)]
pub struct Outcome {
    pub status: StatusCode,
    pub code: String,
}

impl Outcome {
    /// Whether the asker was let in, whatever came of it.
    fn let_in(&self) -> bool {
        !matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
    }
}

/// Asks, and reads no more of the response than who is let in: streams never end.
pub async fn ask(
    fixture: &Fixture,
    template: &Template,
    who: Who,
    method: &Method,
    route: &str,
    address: &str,
) -> Outcome {
    let (kind, body) = template.body(method, route);
    let mut request = Request::builder().method(method).uri(address);
    request = request.header("host", "iliad.example.org").header("content-type", kind);
    if let Some((name, value)) = template.header(who) {
        request = request.header(name, value);
        if name == "cookie" {
            request = request.header("sec-fetch-site", "same-origin");
        }
    }
    let response = fixture.server.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let mut code = String::new();
    if parts.status.is_client_error() || parts.status.is_server_error() {
        let bytes = to_bytes(body, 1 << 20).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
        code = problem["code"].as_str().unwrap_or_default().to_owned();
    }
    Outcome { status: parts.status, code }
}

#[tokio::test]
async fn every_address_has_one_rule() {
    let template = Template::new().await;
    let fixture = template.fixture().await;
    let routes = routes(&fixture.server.router);
    assert!(routes.len() > 190, "{} routes were found", routes.len());
    for known in [("/teach/{run}", "POST"), ("/api/v1/runs/{run}", "DELETE"), ("/nav/panoramas/{house}", "GET")] {
        assert!(routes.contains(&(known.0.to_owned(), known.1.to_owned())), "{known:?} is not among the routes");
    }
    let without: Vec<_> = routes.iter().filter(|(path, method)| rule_of(path, method).is_none()).collect();
    assert!(without.is_empty(), "no rule in tests/web/authorisation_rules.rs says who may ask for {without:#?}");
}

/// Asks for every address as everybody of a part of all, and compares with the rules.
async fn compare(everybody: &[Who]) {
    let template = Template::new().await;
    let mut fixture = template.fixture().await;
    let mut wrong = Vec::new();
    for (route, name) in routes(&fixture.server.router) {
        let Some(rule) = rule_of(&route, &name) else { continue };
        let method: Method = name.parse().unwrap();
        for who in everybody {
            let expected = rule.lets_in(*who, &route);
            let address = template.address(&route, |_| false);
            let found = ask(&fixture, &template, *who, &method, &route, &address).await;
            let changed = fixture.changed().await;
            let mut blame = |why: &str| {
                wrong.push(format!("{name} {route} as {who:?}: {why} ({} {} {changed:?})", found.status, found.code));
            };
            let tried = matches!(rule, Rule::Entering) && found.code.is_empty();
            if (tried || found.let_in()) != expected && !rule.is_somebody_elses(*who, &route) {
                blame(if expected { "refused" } else { "let in" });
            }
            let others = rule.is_somebody_elses(*who, &route);
            if others && found.status.is_success() && found.status != StatusCode::NO_CONTENT {
                blame("somebody else's thing was given or changed");
            }
            let may_change = expected && !others && method != Method::GET;
            if !may_change && changed.iter().any(|table| !rule.may_change(&route, table)) {
                blame("the database has changed");
            }
            if found.status.is_server_error() && found.code != "busy" {
                blame("it failed");
            }
            // Who is refused learns nothing of what there is.
            if !expected && route.contains('{') && !rule.is_somebody_elses(*who, &route) {
                let known = |name: &str| rule.is_of_teachers() && ["run", "study"].contains(&name);
                let address = template.address(&route, |name| !known(name));
                let missing = ask(&fixture, &template, *who, &method, &route, &address).await;
                if missing.status != found.status || missing.code != found.code {
                    blame(&format!("of a missing thing it is told {} {}", missing.status, missing.code));
                }
            }
            if !changed.is_empty() {
                fixture = template.fixture().await;
            }
        }
    }
    assert!(wrong.is_empty(), "{} outcomes are not as the rules say:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn visitors_get_what_the_rules_say() {
    compare(&[Who::Nobody, Who::Visitor, Who::OtherVisitor]).await;
}

#[tokio::test]
async fn accounts_get_what_the_rules_say() {
    let everybody: Vec<Who> = Who::all().into_iter().filter(|who| matches!(who, Who::Account(_))).collect();
    compare(&everybody).await;
}

#[tokio::test]
async fn programs_get_what_the_rules_say() {
    let program = |who: &Who| matches!(who, Who::AccessToken | Who::Revoked | Who::Token(_));
    let everybody: Vec<Who> = Who::all().into_iter().filter(program).collect();
    compare(&everybody).await;
}

/// Executions and answers of one run are not reached by the addresses of another, and nobody sees another's answer.
#[tokio::test]
async fn things_are_reached_by_their_own_runs_addresses_and_by_their_own_teacher() {
    let template = Template::new().await;
    let mut fixture = template.fixture().await;
    let of_runs = routes(&fixture.server.router)
        .into_iter()
        .filter(|(route, method)| matches!(rule_of(route, method), Some(Rule::Own)) && route.contains("{run}"));
    for (route, name) in of_runs {
        let elsewhere = route.replace("{run}", "second");
        let method: Method = name.parse().unwrap();
        let (kind, body) = template.body(&method, &route);
        let (header, cookie) = template.header(Who::Visitor).unwrap();
        let headers = [("content-type", kind), (header, cookie), ("sec-fetch-site", "same-origin")];
        let address = template.address(&elsewhere, |_| false);
        let reply = fixture.server.call(method, &address, &headers, body).await;
        let changed = fixture.changed().await;
        // The other run shows no previews, and says so before anything else.
        let wanted = if route.ends_with("/preview") { StatusCode::CONFLICT } else { StatusCode::NOT_FOUND };
        assert_eq!(reply.status, wanted, "{name} {address}: {}", reply.text);
        assert!(changed.iter().all(|table| Rule::Own.may_change(&route, table)), "{name} {address}: {changed:?}");
    }
    // Nobody sees another's answer by naming it in the address of their own page.
    let undone = format!("/teach/study?undone={}", template.key("answer"));
    let (_, cookie) = template.header(Who::OtherVisitor).unwrap();
    let page = fixture.server.page(&undone, cookie).await;
    assert!(page.status == StatusCode::OK && !page.text.contains("add an e"), "{}", page.text);
}

#[tokio::test]
async fn bodies_are_bounded_at_every_address() {
    let template = Template::new().await;
    let fixture = template.fixture().await;
    let (header, bearer) = template.header(Who::AccessToken).unwrap();
    // These take files; how large they may be has tests of its own.
    const UPLOADS: [&str; 4] = ["/corpora", "/import/episodes", "/import/descriptions", "/api/v1/import/descriptions"];
    let bounded = |(route, method): &(String, String)| method != "GET" && !UPLOADS.contains(&route.as_str());
    for (route, name) in routes(&fixture.server.router).into_iter().filter(bounded) {
        let too_much = vec![b'a'; iliad::web::BODY_LIMIT + 1];
        let headers = [("content-type", "application/json"), (header, bearer)];
        let address = template.address(&route, |_| false);
        let reply = fixture.server.call(name.parse().unwrap(), &address, &headers, too_much).await;
        assert_eq!(reply.status, StatusCode::PAYLOAD_TOO_LARGE, "{name} {address}");
    }
}
