use super::bucket::Quota;
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
    let trusting = Limits::new(&WebSettings { trust_proxy: true, ..WebSettings::default() });
    let plain = Limits::new(&WebSettings::default());
    let peer = "127.0.0.1:4000";
    let of = |limits: &Limits, headers: &[(&str, &str)]| limits.client(&request(headers, peer)).0.to_string();
    let forged = [("x-forwarded-for", "1.1.1.1, 10.0.0.9")];
    assert_eq!(of(&plain, &forged), "127.0.0.1");
    assert_eq!(of(&trusting, &forged), "10.0.0.9", "the proxy adds at the end; what stands before may be made up");
    assert_eq!(of(&trusting, &[("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "10.0.0.8:99")]), "10.0.0.8");
    assert_eq!(of(&trusting, &[("x-forwarded-for", "[2001:db8::7]:99")]), "2001:db8::");
    assert_eq!(of(&trusting, &[("x-forwarded-for", "unknown")]), "127.0.0.1");
}

/// A class behind one address: everybody has a page, then a lease and an answer every three seconds for an hour.
#[test]
fn a_class_of_two_hundred_behind_one_address_is_never_limited() {
    let limits = Limits::new(&WebSettings::default());
    let class = Client("192.0.2.1".parse().unwrap());
    let begin = Instant::now();
    for person in 0..200 {
        assert!(limits.charge(Kind::Lease, class, None, begin).iter().all(|s| s.allowed), "person {person}");
    }
    for second in (0..3600).step_by(3) {
        let now = begin + Duration::from_secs(second);
        for person in 0..200 {
            let cookie = format!("cookie of {person}");
            for kind in [Kind::Lease, Kind::Call, Kind::Words] {
                assert!(
                    limits.charge(kind, class, Some(&cookie), now).iter().all(|s| s.allowed),
                    "{second} s: {person}"
                );
            }
        }
    }
}

/// Scripted people on this machine: 200 at once, each an answer every 0.3 s.
#[test]
fn scripted_people_are_not_limited() {
    let limits = Limits::new(&WebSettings::default());
    let here = Client("127.0.0.1".parse().unwrap());
    let begin = Instant::now();
    for turn in 0..100_u32 {
        let now = begin + Duration::from_millis(300) * turn;
        for person in 0..200 {
            let cookie = format!("cookie of {person}");
            for kind in [Kind::Lease, Kind::Words] {
                let standings = limits.charge(kind, here, Some(&cookie), now);
                assert!(standings.iter().all(|s| s.allowed), "{turn}: {standings:?}");
            }
        }
    }
}

#[test]
fn made_up_cookies_count_for_their_address() {
    let limits = Limits::new(&WebSettings::default());
    let client = Client("192.0.2.1".parse().unwrap());
    let now = Instant::now();
    let allowed = |cookie: Option<&str>| limits.charge(Kind::Lease, client, cookie, now).iter().all(|s| s.allowed);
    let taken = (0..2000).filter(|n| allowed(Some(&format!("made up {n}")))).count();
    assert_eq!(taken, 600);
    assert!(!allowed(None) && !allowed(Some("one more")));
    assert!(allowed(Some("made up 5")), "those who were here before go on");
}

#[test]
fn addresses_are_counted_by_what_they_cost() {
    for (method, path, kind) in [
        (Method::POST, "/iliad/api/runs/{run}/lease", Some(Kind::Lease)),
        (Method::GET, "/teach/{run}", Some(Kind::Lease)),
        (Method::POST, "/teach/{run}", Some(Kind::Words)),
        (Method::POST, "/api/runs/{run}/answers", Some(Kind::Words)),
        (Method::GET, "/api/runs/{run}/answers", Some(Kind::Call)),
        (Method::POST, "/api/runs/{run}/answers/{answer}/correct", Some(Kind::Words)),
        (Method::POST, "/teach/{run}/answers/{answer}/undo", Some(Kind::Words)),
        (Method::POST, "/iliad/api/runs/{run}/answers/{answer}/undo", Some(Kind::Words)),
        (Method::POST, "/api/runs/{run}/executions/{execution}/renew", Some(Kind::Call)),
        (Method::POST, "/api/runs/{run}/try", Some(Kind::Try)),
        (Method::POST, "/api/runs", Some(Kind::Run)),
        (Method::GET, "/api/runs", None),
        (Method::GET, "/", None),
    ] {
        assert_eq!(Kind::of(&method, path, "/iliad"), kind, "{method} {path}");
    }
}

/// Read from the source, so that an address that is added without a kind is noticed.
#[test]
fn everything_that_can_be_sent_is_counted() {
    // Wrong tokens have a count of their own, and the rest is for who steers.
    const NOT_COUNTED: [&str; 7] = [
        "/access",
        "/access/leave",
        "/api/runs/{run}/checkpoints",
        "/api/runs/{run}/pause",
        "/api/runs/{run}/resume",
        "/api/runs/{run}/stop",
        "/api/runs/{run}/teacher",
    ];
    let source = include_str!("../../web.rs");
    let routes = source.split("\nfn routes()").nth(1).unwrap().split("\n}\n").next().unwrap();
    let sent = routes.split(".route(").skip(1).filter(|route| route.contains("post("));
    let sent: Vec<&str> = sent.map(|route| route.split('"').nth(1).unwrap()).collect();
    for known in ["/teach/{run}", "/teach/{run}/answers/{answer}/undo", "/api/runs/{run}/answers/{answer}/undo"] {
        assert!(sent.contains(&known), "{known} is not among {sent:?}");
    }
    for path in sent {
        let counted = Kind::of(&Method::POST, path, "").is_some();
        assert_eq!(counted, !NOT_COUNTED.contains(&path), "POST {path}");
    }
}

#[test]
fn headers_say_how_a_sender_stands() {
    let quota = Quota { name: "answers", burst: 200, each: per_second(5) };
    let standing = Standing {
        quota,
        allowed: false,
        left: 0,
        wait: Duration::from_millis(1200),
        full: Duration::from_millis(39_001),
    };
    let mut headers = HeaderMap::new();
    tell(&mut headers, &[standing]);
    assert_eq!(headers["ratelimit-policy"], "\"answers\";q=200;w=40");
    assert_eq!(headers["ratelimit"], "\"answers\";r=0;t=40");
    assert!(sentence(&standing).contains("Wait 2 seconds"));
}
