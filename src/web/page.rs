//! What every page needs to know, and how numbers and times are written on pages.

use super::{AppState, access, assets};
use crate::error::Error;
use crate::protocol::Rate;
use askama::Template;
use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::request::Parts;
use axum::response::{Html, IntoResponse, Response};
use std::convert::Infallible;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The frame of a page: where addresses begin and whether the visitor may steer runs.
#[derive(Clone, Debug)]
pub(super) struct Page {
    base: String,
    /// Whether the researchers' pages are open to this visitor right now.
    pub(super) steering: bool,
    /// Whether the visitor could open them with the access token.
    pub(super) can_sign_in: bool,
    /// Whether it is the token, given on the access page, that opens them.
    pub(super) signed_in: bool,
    /// Own path of this page with its query, to come back to; the start page's for what cannot be fetched again.
    here: String,
}

impl Page {
    /// The frame for a request.
    pub(super) fn of(state: &AppState, parts: &Parts) -> Page {
        let base = state.settings.base_path.clone();
        let steering = access::check(state, parts).is_ok();
        let address = parts.uri.path_and_query().map_or("/", |address| address.as_str());
        let here = match parts.method {
            Method::GET => address.strip_prefix(base.as_str()).unwrap_or(address),
            _ => "/",
        };
        Page {
            can_sign_in: !steering && state.settings.access_token.is_some(),
            signed_in: steering && access::by_cookie(state, &parts.headers),
            here: here.to_owned(),
            steering,
            base,
        }
    }

    /// The frame of a page at the start of a server under `base`.
    #[cfg(test)]
    pub(super) fn for_tests(base: &str) -> Page {
        Page { base: base.to_owned(), steering: false, can_sign_in: false, signed_in: false, here: "/".to_owned() }
    }

    /// Where researchers sign in, and come back from to this page.
    pub(super) fn sign_in(&self) -> String {
        if self.here.starts_with("/access") {
            return self.url(&self.here);
        }
        self.url(&format!("/access?next={}", encode(&self.here)))
    }

    /// The program's version.
    pub(super) fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// An address of this application from its own path.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The address of a static file; it changes when any static file changes, so that it may be cached for ever.
    pub(super) fn asset(&self, path: &str) -> String {
        format!("{}/static/{}/{path}", self.base, assets::version())
    }
}

impl FromRequestParts<AppState> for Page {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Infallible> {
        Ok(Page::of(state, parts))
    }
}

/// Fills a template into a response.
pub(super) fn html(template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => Html(text).into_response(),
        Err(error) => Error::Template(error).into_response(),
    }
}

/// Percent-encodes everything that means something in a query string.
pub(super) fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => (byte as char).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// A count with thousands separated: `12,345`.
pub(super) fn count(number: &u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 description`, `2 descriptions`.
pub(super) fn counted(number: &u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if *number == 1 { "" } else { "s" })
}

/// A text whose first letter stands within a sentence.
pub(super) fn lower(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// A rate as people read it, with the number of cases it rests on: `87.5% of 200`.
pub(super) fn rate(rate: &Rate) -> String {
    format!("{:.1}% of {}", rate.value * 100.0, count(&rate.n))
}

/// Exact time for machines and for hovering.
pub(super) fn exact(at: &OffsetDateTime) -> String {
    at.format(&Rfc3339).unwrap_or_default()
}

/// Time as people say it, seen from `now`.
pub(super) fn ago_from(at: OffsetDateTime, now: OffsetDateTime) -> String {
    let seconds = (now - at).whole_seconds();
    let (number, unit) = match seconds {
        i64::MIN..60 => return "just now".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{} ago", if number == 1 { "" } else { "s" })
}

/// Time as people say it.
pub(super) fn ago(at: &OffsetDateTime) -> String {
    ago_from(*at, OffsetDateTime::now_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        let written: Vec<String> = [0, 999, 1000, 1_234_567].iter().map(count).collect();
        assert_eq!(written, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(&1, "description"), "1 description");
    }

    #[test]
    fn times_are_relative() {
        let now = OffsetDateTime::from_unix_timestamp(1_000_000).unwrap();
        let said = |seconds| ago_from(now - time::Duration::seconds(seconds), now);
        assert_eq!(
            [said(-5), said(59), said(60), said(7_200), said(200_000)],
            ["just now", "just now", "1 minute ago", "2 hours ago", "2 days ago"]
        );
    }

    #[test]
    fn encoding_leaves_nothing_to_interpret() {
        assert_eq!(encode("/runs/a?x=1&y=é"), "/runs/a%3Fx%3D1%26y%3D%C3%A9");
    }
}
