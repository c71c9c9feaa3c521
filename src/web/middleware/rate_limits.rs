//! Charges requests to the buckets of their senders, and refuses those that are over a limit.
//!
//! Every response to a counted request says how its sender stands (`RateLimit-Policy`, `RateLimit`); a request over a limit
//! gets 429 with `Retry-After`.

use crate::web::error::Error;
use crate::web::extractors::program::{self, V1};
use crate::web::extractors::proxy;
use crate::web::extractors::visitor::Counted;
use crate::web::limits::{Client, Kind, Limits, standing};
use crate::web::listener::holder;
use crate::web::state::AppState;
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body::Body as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

/// The kind of a request; `None` for requests that are not counted.
fn kind(method: &Method, path: &str, base: &str) -> Option<Kind> {
    let path = path.strip_prefix(base).unwrap_or(path);
    match path.strip_prefix(V1) {
        // Under both prefixes an address costs as much; what is counted under neither is counted as a program's.
        Some(rest) => Some(kind_of(method, &format!("/api{rest}")).unwrap_or(Kind::Program)),
        None => kind_of(method, path),
    }
}

fn kind_of(method: &Method, path: &str) -> Option<Kind> {
    let post = *method == Method::POST;
    Some(match path {
        "/teach/{run}"
        | "/teach/{run}/answers/{answer}"
        | "/teach/{run}/answers/{answer}/undo"
        | "/teach/{run}/answers/{answer}/withdraw"
            if post =>
        {
            Kind::Words
        }
        "/api/runs/{run}/answers"
        | "/api/runs/{run}/answers/{answer}/correct"
        | "/api/runs/{run}/answers/{answer}/undo"
            if post =>
        {
            Kind::Words
        }
        "/study/{study}/qualify" => Kind::Words,
        "/study/{study}" => Kind::Lease,
        path if path.starts_with("/study/{study}/") => Kind::Call,
        "/api/runs/{run}/lease" | "/teach/{run}" => Kind::Lease,
        "/api/runs/{run}/answers" | "/teach/{run}/answers" | "/teach/{run}/guide" => Kind::Call,
        "/api/runs/{run}/executions/{execution}/preview" => Kind::Try,
        "/api/runs/{run}/drafts" => Kind::Call,
        path if path.starts_with("/api/runs/{run}/executions/") => Kind::Call,
        "/api/outside-runs" => Kind::Run,
        "/api/runs/{run}/comprehension" | "/api/runs/{run}/comprehension/events" => Kind::Call,
        "/api/runs/{run}/try" | "/api/runs/{run}/review" => Kind::Try,
        "/api/runs" | "/runs" | "/runs/new" if post => Kind::Run,
        "/corpora"
        | "/corpora/{name}/delete"
        | "/runs/trash/empty"
        | "/import/episodes"
        | "/import/descriptions"
        | "/import/descriptions/bring"
        | "/api/import/descriptions"
            if post =>
        {
            Kind::Run
        }
        "/api/runs/{run}/episodes"
        | "/api/runs/{run}/continue"
        | "/api/runs/{run}/evaluations"
        | "/runs/{run}/episodes"
            if post =>
        {
            Kind::Run
        }
        "/api/runs/{run}/resume" | "/api/runs/{run}/go-on" | "/runs/{run}/resume" | "/runs/{run}/go-on" => Kind::Run,
        _ => return None,
    })
}

/// The client behind a request: its peer, or with a trusted proxy the address that the proxy named.
fn client(request: &Request, trust_proxy: bool) -> Client {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
    let named = if trust_proxy { proxy::forwarded_for(request.headers()) } else { None };
    Client(holder(named.or(peer).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))))
}

/// The state of this file's layers.
pub(crate) type RateLimits = (AppState, Arc<Limits>);

/// Leaves the client and the buckets with the request, for everything further in. It is the outer one of the two layers.
pub(crate) async fn introduce(State((state, limits)): State<RateLimits>, mut request: Request, next: Next) -> Response {
    let client = client(&request, state.settings.trust_proxy);
    request.extensions_mut().insert(client);
    request.extensions_mut().insert(limits);
    next.run(request).await
}

/// Counts a request, and refuses it when it is over a limit before anything is read or done for it.
pub(crate) async fn count(State((state, limits)): State<RateLimits>, request: Request, next: Next) -> Response {
    let base = &state.settings.base_path;
    let matched = request.extensions().get::<MatchedPath>().filter(|_| limits.is_on());
    let kind = matched.and_then(|path| kind(request.method(), path.as_str(), base));
    let (Some(kind), Some(client)) = (kind, request.extensions().get::<Client>().copied()) else {
        return next.run(request).await;
    };
    let (parts, body) = request.into_parts();
    let teacher = match parts.extensions.get::<Counted>() {
        Some(Counted(name)) => Some(name.clone()),
        None => program::teacher(&state, &parts).and_then(Result::ok),
    };
    let request = Request::from_parts(parts, body);
    let standings = limits.charge(kind, client, teacher.as_deref(), Instant::now());
    let mut response = match standings.iter().filter(|standing| !standing.allowed).max_by_key(|s| s.wait) {
        Some(refused) => {
            let error = Error::TooMany(Box::new(*refused));
            let whole = request.body().is_end_stream();
            if whole { error.into_response() } else { error.into_response_without_reading(request.version()) }
        }
        None => next.run(request).await,
    };
    standing::write_headers(response.headers_mut(), &standings);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&str, &str)], peer: &str) -> Request {
        let mut request = axum::http::Request::get("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(axum::body::Body::empty()).unwrap();
        request.extensions_mut().insert(ConnectInfo::<SocketAddr>(peer.parse().unwrap()));
        request
    }

    #[test]
    fn a_client_is_the_peer_unless_a_trusted_proxy_names_another() {
        let (trusting, plain) = (true, false);
        let peer = "127.0.0.1:4000";
        let of = |trust_proxy, headers: &[(&str, &str)]| client(&request(headers, peer), trust_proxy).0.to_string();
        let forged = [("x-forwarded-for", "1.1.1.1, 10.0.0.9")];
        assert_eq!(of(plain, &forged), "127.0.0.1");
        assert_eq!(of(trusting, &forged), "10.0.0.9", "the proxy adds at the end; what stands before may be made up");
        assert_eq!(of(trusting, &[("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "10.0.0.8:99")]), "10.0.0.8");
        assert_eq!(of(trusting, &[("x-forwarded-for", "[2001:db8::7]:99")]), "2001:db8::");
        assert_eq!(of(trusting, &[("x-forwarded-for", "unknown")]), "127.0.0.1");
    }

    #[test]
    fn addresses_are_counted_by_what_they_cost() {
        for (method, path, expected) in [
            (Method::POST, "/iliad/api/runs/{run}/lease", Some(Kind::Lease)),
            (Method::GET, "/teach/{run}", Some(Kind::Lease)),
            (Method::POST, "/teach/{run}", Some(Kind::Words)),
            (Method::POST, "/api/runs/{run}/answers", Some(Kind::Words)),
            (Method::GET, "/api/runs/{run}/answers", Some(Kind::Call)),
            (Method::POST, "/api/runs/{run}/answers/{answer}/correct", Some(Kind::Words)),
            (Method::POST, "/teach/{run}/answers/{answer}/undo", Some(Kind::Words)),
            (Method::POST, "/iliad/api/runs/{run}/answers/{answer}/undo", Some(Kind::Words)),
            (Method::POST, "/api/runs/{run}/executions/{execution}/renew", Some(Kind::Call)),
            (Method::PUT, "/api/runs/{run}/executions/{execution}/draft", Some(Kind::Call)),
            (Method::POST, "/api/runs/{run}/executions/{execution}/preview", Some(Kind::Try)),
            (Method::POST, "/api/runs/{run}/try", Some(Kind::Try)),
            (Method::POST, "/api/runs/{run}/review", Some(Kind::Try)),
            (Method::GET, "/iliad/api/runs/{run}/comprehension/events", Some(Kind::Call)),
            (Method::POST, "/api/runs", Some(Kind::Run)),
            (Method::POST, "/iliad/corpora", Some(Kind::Run)),
            (Method::POST, "/iliad/import/descriptions/bring", Some(Kind::Run)),
            (Method::POST, "/api/v1/import/descriptions", Some(Kind::Run)),
            (Method::GET, "/corpora", None),
            (Method::GET, "/api/runs", None),
            (Method::GET, "/iliad/api/v1/runs", Some(Kind::Program)),
            (Method::POST, "/api/v1/runs/{run}/lease", Some(Kind::Lease)),
            (Method::GET, "/", None),
        ] {
            assert_eq!(kind(&method, path, "/iliad"), expected, "{method} {path}");
        }
    }

    /// Requests of people who sign in are charged by the handlers: passwords and links as guesses; the rest is for those who
    /// are signed in.
    #[test]
    fn what_people_who_sign_in_can_send_is_known() {
        const GUESSES: [&str; 3] = ["/sign-in", "/account/password", "/invite"];
        const SIGNED_IN: [&str; 8] = [
            "/sign-out",
            "/account/sessions/end-others",
            "/account/sessions/{session}/end",
            "/people/invites",
            "/people/invites/{invite}/revoke",
            "/people/{account}/role",
            "/people/{account}/disable",
            "/people/{account}/enable",
        ];
        let source = include_str!("../router.rs");
        let routes = source.split("\nfn account_routes(").nth(1).unwrap().split("\n}\n").next().unwrap();
        let sent = routes.split(".route(").skip(1).filter(|route| route.contains("post("));
        let sent: Vec<&str> = sent.map(|route| route.split('"').nth(1).unwrap()).collect();
        assert_eq!(sent.len(), GUESSES.len() + SIGNED_IN.len(), "{sent:?}");
        assert!(sent.iter().all(|path| GUESSES.contains(path) || SIGNED_IN.contains(path)), "{sent:?}");
    }

    /// Read from the source, so that an address that is added without a kind is noticed.
    #[test]
    fn everything_that_can_be_sent_is_counted() {
        // Wrong tokens have a count of their own, and the rest is for who steers.
        const NOT_COUNTED: [&str; 11] = [
            "/access",
            "/access/leave",
            "/studies",
            "/studies/preview",
            "/studies/{study}/edit",
            "/studies/{study}/state",
            "/studies/{study}/invitations",
            "/studies/{study}/invitations/{key}/revoke",
            "/studies/{study}/participants/{number}/judge",
            "/studies/{study}/participants/{number}/approval",
            "/studies/{study}/participants/{number}/erase",
        ];
        let source = include_str!("../router.rs");
        let routes = source.split("\nfn routes(").nth(1).unwrap().split("\n}\n").next().unwrap();
        let sent = routes.split(".route(").skip(1).filter(|route| route.contains("post("));
        let sent: Vec<&str> = sent.map(|route| route.split('"').nth(1).unwrap()).collect();
        for known in ["/teach/{run}", "/teach/{run}/answers/{answer}/undo"] {
            assert!(sent.contains(&known), "{known} is not among {sent:?}");
        }
        for path in sent {
            let counted = kind(&Method::POST, path, "").is_some();
            assert_eq!(counted, !NOT_COUNTED.contains(&path), "POST {path}");
        }
    }

    /// The requests that programs can send, from their document. All are counted; those that cost people something have buckets of their own.
    #[test]
    fn everything_that_programs_can_send_is_counted() {
        const AS_PROGRAM: [&str; 7] = ["checkpoints", "pause", "restore", "stop", "teacher", "executions", "updates"];
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
        let document: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let paths = document["paths"].as_object().unwrap().iter();
        let sent: Vec<&String> = paths.filter(|(_, item)| item["post"].is_object()).map(|(path, _)| path).collect();
        assert!(sent.len() > 15, "{sent:?}");
        for path in sent {
            let plain = AS_PROGRAM.iter().any(|end| **path == format!("/api/v1/runs/{{run}}/{end}"));
            assert_eq!(kind(&Method::POST, path, "") == Some(Kind::Program), plain, "POST {path}");
        }
    }
}
