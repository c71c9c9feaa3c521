//! How a sender stands with a quota: as data, as the headers of a response, and as a sentence for people.

use axum::http::header::HeaderName;
use axum::http::{HeaderMap, HeaderValue};
use std::time::Duration;

/// How many at once, and how long it takes to get one back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Name in the headers.
    pub name: &'static str,
    /// How many at once.
    pub burst: u32,
    /// Until one comes back.
    pub each: Duration,
}

/// How a key stands with its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whose quota.
    pub quota: Quota,
    /// Whether there was one left.
    pub allowed: bool,
    /// How many are left.
    pub left: u32,
    /// Until there is one, if there is none.
    pub wait: Duration,
    /// Until all are there again.
    pub full: Duration,
}

/// The headers of draft-ietf-httpapi-ratelimit-headers.
pub(crate) fn write_headers(headers: &mut HeaderMap, standings: &[Standing]) {
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

/// The sentence for a person who is over the limit.
pub(crate) fn sentence(standing: &Standing) -> String {
    let wait = match seconds(standing.wait).max(1) {
        1 => "a second".to_owned(),
        seconds => format!("{seconds} seconds"),
    };
    match standing.quota.name {
        "access-tokens" => format!(
            "Too many wrong access tokens came from your address, so none is looked at for now. Wait {wait} and enter the right one."
        ),
        "passwords" | "passwords-of-one-name" => {
            format!("Too many passwords or links were tried, so none is looked at for now. Wait {wait} and try again.")
        }
        "new-teachers" => format!(
            "Very many people have just begun to teach from your network. Copy what you typed, wait {wait} and open the page again."
        ),
        "new-runs" => format!("Many runs were started just now; this one was not. Wait {wait} and start it again."),
        "leases" | "answers" | "teaching" | "teaching-from-one-address" => {
            format!("This request was not carried out. Wait {wait} and send it again.")
        }
        _ => format!("This request was not carried out. Wait {wait} and try again."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_how_a_sender_stands() {
        let quota = Quota { name: "answers", burst: 200, each: Duration::from_millis(200) };
        let standing = Standing {
            quota,
            allowed: false,
            left: 0,
            wait: Duration::from_millis(1200),
            full: Duration::from_millis(39_001),
        };
        let mut headers = HeaderMap::new();
        write_headers(&mut headers, &[standing]);
        assert_eq!(headers["ratelimit-policy"], "\"answers\";q=200;w=40");
        assert_eq!(headers["ratelimit"], "\"answers\";r=0;t=40");
        assert!(sentence(&standing).contains("Wait 2 seconds"));
    }
}
