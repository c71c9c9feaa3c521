//! How often a visitor may do things that cost the server or other people something.
//!
//! A teacher is known by a cookie and has buckets of their own, so that a class behind one address is never limited by
//! its size. Requests without a cookie of ours, or with one that was not seen before, count for their address. The layers in
//! `middleware::rate_limits` charge requests to these buckets.

mod bucket;
mod guesses;
pub(crate) mod standing;

pub(crate) use guesses::{TELL_EVERY, Verdict};

use crate::web::settings::WebSettings;
use axum::http::request::Parts;
use bucket::Buckets;
use guesses::{Guesses, PasswordGuesses};
use standing::{Quota, Standing};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most teachers' cookies that are remembered as seen.
const SEEN: usize = 100_000;

/// Who sent a request, as far as limits are concerned: the holder of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client(pub(crate) IpAddr);

/// The kinds of requests that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A teacher's page or lease.
    Lease,
    /// Words: answers, corrections, and taking an answer back.
    Words,
    /// Other requests of teachers' pages.
    Call,
    /// The agent is tried.
    Try,
    /// A run is started.
    Run,
    /// Any other request of a program.
    Program,
}

/// The buckets of a server.
pub(crate) struct Limits {
    on: bool,
    visitors: Buckets<IpAddr>,
    crowd: Buckets<IpAddr>,
    leases: Buckets<u64>,
    words: Buckets<u64>,
    calls: Buckets<u64>,
    tries: Buckets<IpAddr>,
    runs: Buckets<IpAddr>,
    programs: Buckets<u64>,
    /// Work that a family does for a request, by family.
    family_work: BTreeMap<&'static str, Buckets<IpAddr>>,
    /// Wrong access tokens.
    pub(crate) guesses: Guesses,
    /// Wrong passwords.
    pub(crate) passwords: PasswordGuesses,
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
    /// The buckets of a server. `family_work` has the quota of each family whose pages do work that is counted.
    pub(crate) fn new(
        settings: &WebSettings,
        family_work: impl IntoIterator<Item = (&'static str, Quota)>,
    ) -> Arc<Limits> {
        let family_work = family_work.into_iter();
        Arc::new(Limits {
            on: settings.rate_limits,
            visitors: Buckets::new("new-teachers", 600, per_second(5)),
            crowd: Buckets::new("teaching-from-one-address", 20_000, per_second(2000)),
            leases: Buckets::new("leases", 240, per_second(8)),
            words: Buckets::new("answers", 200, per_second(5)),
            calls: Buckets::new("teaching", 600, per_second(20)),
            tries: Buckets::new("tries", 300, per_second(10)),
            runs: Buckets::new("new-runs", 30, Duration::from_secs(5)),
            programs: Buckets::new("api", 1_200, per_second(40)),
            family_work: family_work
                .map(|(family, Quota { name, burst, each })| (family, Buckets::new(name, burst, each)))
                .collect(),
            guesses: Guesses::default(),
            passwords: PasswordGuesses::default(),
            seen: Mutex::default(),
            hasher: RandomState::new(),
        })
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
    pub(crate) fn charge(&self, kind: Kind, client: Client, cookie: Option<&str>, now: Instant) -> Vec<Standing> {
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
            Kind::Program => {
                let key = cookie.map_or_else(|| self.hasher.hash_one(client.0), |name| self.hasher.hash_one(name));
                standings.push(self.programs.take(key, now));
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

    /// Charges a piece of a family's work to the client. The standing when the client is over the limit.
    pub(crate) fn charge_family_work(&self, family: &str, client: Client) -> Result<(), Standing> {
        let Some(buckets) = self.family_work.get(family).filter(|_| self.on) else { return Ok(()) };
        let standing = buckets.take(client.0, Instant::now());
        if standing.allowed { Ok(()) } else { Err(standing) }
    }

    /// Whether requests are counted at all.
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }
}

/// Who is asking, and the buckets; `None` where no layer has introduced them.
pub(crate) fn of(parts: &Parts) -> Option<(Client, Arc<Limits>)> {
    Some((*parts.extensions.get::<Client>()?, parts.extensions.get::<Arc<Limits>>()?.clone()))
}

#[cfg(test)]
mod tests;
