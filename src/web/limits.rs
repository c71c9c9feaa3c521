//! How often a visitor may do things that cost the server or other people something.
//!
//! A teacher is known by a cookie and has buckets of their own, so that a class behind one address is never limited by
//! its size. What comes without a cookie of ours, or with one that was not seen before, counts for its address. Every
//! response to something that is counted says how its sender stands (`RateLimit-Policy`, `RateLimit`); who is over a limit
//! gets 429 with `Retry-After`.

mod bucket;
mod guesses;

pub use bucket::Standing;
pub(super) use guesses::{TELL_EVERY, Verdict};

use super::listener::holder;
use super::visitor::Counted;
use super::{WebSettings, intake};
use crate::error::Error;
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::header::HeaderName;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bucket::Buckets;
use guesses::Guesses;
use http_body::Body as _;
use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most teachers' cookies that are remembered as seen.
const SEEN: usize = 100_000;

/// Who sent a request, as far as limits are concerned: the holder of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client(pub(super) IpAddr);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A teacher's page or lease.
    Lease,
    /// Words: answers, corrections, and taking an answer back.
    Words,
    /// What else teachers' pages send.
    Call,
    /// The agent is tried.
    Try,
    /// A run is started.
    Run,
}

impl Kind {
    fn of(method: &Method, path: &str, base: &str) -> Option<Kind> {
        let path = path.strip_prefix(base).unwrap_or(path);
        let post = *method == Method::POST;
        Some(match path {
            "/teach/{run}" | "/teach/{run}/answers/{answer}" | "/teach/{run}/answers/{answer}/undo" if post => {
                Kind::Words
            }
            "/api/runs/{run}/answers"
            | "/api/runs/{run}/answers/{answer}/correct"
            | "/api/runs/{run}/answers/{answer}/undo"
                if post =>
            {
                Kind::Words
            }
            "/api/runs/{run}/lease" | "/teach/{run}" => Kind::Lease,
            "/api/runs/{run}/answers" | "/teach/{run}/answers" | "/teach/{run}/guide" => Kind::Call,
            path if path.starts_with("/api/runs/{run}/executions/") => Kind::Call,
            "/api/runs/{run}/try" => Kind::Try,
            "/api/runs" | "/runs" | "/api/runs/{run}/go-on" | "/runs/{run}/go-on" if post => Kind::Run,
            _ => return None,
        })
    }
}

/// The buckets of a server.
pub(super) struct Limits {
    on: bool,
    base: String,
    trust_proxy: bool,
    visitors: Buckets<IpAddr>,
    crowd: Buckets<IpAddr>,
    leases: Buckets<u64>,
    words: Buckets<u64>,
    calls: Buckets<u64>,
    tries: Buckets<IpAddr>,
    runs: Buckets<IpAddr>,
    houses: Buckets<IpAddr>,
    /// Wrong access tokens.
    pub(super) guesses: Guesses,
    seen: Mutex<Seen>,
    hasher: RandomState,
}

#[derive(Default)]
struct Seen {
    cookies: HashSet<u64>,
    order: VecDeque<u64>,
}

fn per_second(times: u32) -> Duration {
    Duration::from_secs(1) / times
}

impl Limits {
    pub(super) fn new(settings: &WebSettings) -> Arc<Limits> {
        Arc::new(Limits {
            on: settings.rate_limits,
            base: settings.base_path.clone(),
            trust_proxy: settings.trust_proxy,
            visitors: Buckets::new("new-teachers", 600, per_second(5)),
            crowd: Buckets::new("teaching-from-one-address", 20_000, per_second(2000)),
            leases: Buckets::new("leases", 240, per_second(8)),
            words: Buckets::new("answers", 200, per_second(5)),
            calls: Buckets::new("teaching", 600, per_second(20)),
            tries: Buckets::new("tries", 300, per_second(10)),
            runs: Buckets::new("new-runs", 30, Duration::from_secs(5)),
            houses: Buckets::new("houses", 120, per_second(10)),
            guesses: Guesses::default(),
            seen: Mutex::default(),
            hasher: RandomState::new(),
        })
    }

    /// Whose request this is: the peer's, or with a trusted proxy that of the address it named last.
    fn client(&self, request: &Request) -> Client {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
        let named = if self.trust_proxy { forwarded_for(request.headers()) } else { None };
        Client(holder(named.or(peer).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))))
    }

    /// Whether this cookie was seen before; it is from now on, if `allow` says so.
    fn is_new(&self, cookie: u64, allow: impl FnOnce() -> bool) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.cookies.contains(&cookie) {
            return false;
        }
        if allow() {
            seen.cookies.insert(cookie);
            seen.order.push_back(cookie);
            if seen.order.len() > SEEN
                && let Some(oldest) = seen.order.pop_front()
            {
                seen.cookies.remove(&oldest);
            }
        }
        true
    }

    /// Counts a request: how its sender stands with every bucket it is charged to. `cookie` is what the teacher is known
    /// by, not the text that was sent: whoever wrote that could have a bucket for every request.
    fn charge(&self, kind: Kind, client: Client, cookie: Option<&str>, now: Instant) -> Vec<Standing> {
        let mut standings = Vec::new();
        let buckets = match kind {
            Kind::Try => {
                standings.push(self.tries.take(client.0, now));
                return standings;
            }
            Kind::Run => {
                standings.push(self.runs.take(client.0, now));
                return standings;
            }
            Kind::Lease => &self.leases,
            Kind::Words => &self.words,
            Kind::Call => &self.calls,
        };
        standings.push(self.crowd.take(client.0, now));
        let teacher = cookie.map(|cookie| self.hasher.hash_one(cookie));
        let mut newcomer = || {
            let standing = self.visitors.take(client.0, now);
            standings.push(standing);
            standing.allowed
        };
        match teacher {
            Some(teacher) => {
                self.is_new(teacher, newcomer);
                standings.push(buckets.take(teacher, now));
            }
            None => {
                newcomer();
            }
        }
        standings
    }

    /// One house more is to be made for this client.
    pub(super) fn house(&self, client: Client) -> Result<(), Error> {
        let standing = self.houses.take(client.0, Instant::now());
        if self.on && !standing.allowed { Err(Error::TooMany(Box::new(standing))) } else { Ok(()) }
    }

    /// Whether wrong tokens are counted against this client.
    pub(super) fn is_on(&self) -> bool {
        self.on
    }
}

/// The address in the last `X-Forwarded-For` field: the one that the proxy in front of us added.
fn forwarded_for(headers: &HeaderMap) -> Option<IpAddr> {
    let last = headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
    let last = last.rsplit(',').next()?.trim();
    let bare = last.strip_prefix('[').and_then(|rest| rest.split(']').next()).unwrap_or(last);
    bare.parse().ok().or_else(|| last.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

/// Who is asking, for everything further in. Outermost of this file's layers.
pub(super) async fn introduce(State(limits): State<Arc<Limits>>, mut request: Request, next: Next) -> Response {
    let client = limits.client(&request);
    request.extensions_mut().insert(client);
    request.extensions_mut().insert(limits);
    next.run(request).await
}

/// Who is asking, and the buckets; `None` where no layer has introduced them.
pub(super) fn of(parts: &Parts) -> Option<(Client, Arc<Limits>)> {
    Some((*parts.extensions.get::<Client>()?, parts.extensions.get::<Arc<Limits>>()?.clone()))
}

/// Counts what is counted, and refuses what is over a limit before anything is read or done for it.
pub(super) async fn count(State(limits): State<Arc<Limits>>, request: Request, next: Next) -> Response {
    let kind = request.extensions().get::<MatchedPath>();
    let kind = kind.and_then(|path| Kind::of(request.method(), path.as_str(), &limits.base)).filter(|_| limits.on);
    let (Some(kind), Some(client)) = (kind, request.extensions().get::<Client>().copied()) else {
        return next.run(request).await;
    };
    let teacher = request.extensions().get::<Counted>().map(|Counted(teacher)| teacher.as_str());
    let standings = limits.charge(kind, client, teacher, Instant::now());
    let mut response = match standings.iter().filter(|standing| !standing.allowed).max_by_key(|s| s.wait) {
        Some(refused) => {
            let error = Error::TooMany(Box::new(*refused));
            let whole = request.body().is_end_stream();
            if whole { error.into_response() } else { intake::unread(request.version(), error) }
        }
        None => next.run(request).await,
    };
    tell(response.headers_mut(), &standings);
    response
}

/// The headers of draft-ietf-httpapi-ratelimit-headers.
pub(crate) fn tell(headers: &mut HeaderMap, standings: &[Standing]) {
    let list = |line: &dyn Fn(&Standing) -> String| standings.iter().map(line).collect::<Vec<_>>().join(", ");
    let policy = list(&|s| {
        let window = (s.quota.each * s.quota.burst).as_secs().max(1);
        format!("\"{}\";q={};w={window}", s.quota.name, s.quota.burst)
    });
    let left = list(&|s| format!("\"{}\";r={};t={}", s.quota.name, s.left, seconds(s.full)));
    for (name, value) in [("ratelimit-policy", policy), ("ratelimit", left)] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}

/// Whole seconds, rounded up.
pub(crate) fn seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(1000) as u64
}

/// What a person is told who is over a limit.
pub(crate) fn sentence(standing: &Standing) -> String {
    let wait = match seconds(standing.wait).max(1) {
        1 => "a second".to_owned(),
        seconds => format!("{seconds} seconds"),
    };
    match standing.quota.name {
        "access-tokens" => format!(
            "Too many wrong access tokens came from your address, so none is looked at for now. Wait {wait} and enter the right one."
        ),
        "new-teachers" => format!(
            "Very many people have just begun to teach from your network. Copy what you typed, wait {wait} and open the page again."
        ),
        "new-runs" => format!("Many runs were started just now; this one was not. Wait {wait} and start it again."),
        "tries" | "houses" => format!("This request was not carried out. Wait {wait} and try again."),
        _ => format!("This request was not carried out. Wait {wait} and send it again."),
    }
}

#[cfg(test)]
mod tests;
