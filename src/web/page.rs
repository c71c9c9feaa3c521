//! The parts that pages share: the frame that surrounds every page, the static files, and views of runs and episodes.

pub(crate) mod assets;
pub(crate) mod episode;
pub(crate) mod guide;
pub(crate) mod markdown;
pub(crate) mod panel;
pub(crate) mod run_view;

use crate::store::SignedIn;
use crate::web::error::Error;
use crate::web::extractors::session::Known;
use crate::web::extractors::{access, account};
use crate::web::format;
use crate::web::state::AppState;
use askama::Template;
use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{Html, IntoResponse, Response};
use std::convert::Infallible;
use std::sync::Arc;

/// The frame of a page: where addresses begin and whether the visitor may steer runs.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    base: String,
    /// Whether the researchers' pages are open to this visitor right now.
    pub(crate) steering: bool,
    /// Whether the visitor may review what teachers said.
    pub(crate) reviews: bool,
    /// Whether the visitor could open them with the access token.
    pub(crate) can_sign_in: bool,
    /// Whether it is the token, given on the access page, that opens them.
    pub(crate) signed_in: bool,
    /// Whether there are accounts with which people sign in.
    pub(crate) accounts: bool,
    /// Who is signed in with an account.
    pub(crate) account: Option<Arc<SignedIn>>,
    /// Whether the visitor may manage accounts, and there are any.
    pub(crate) manages_people: bool,
    /// Own path of this page with its query, to come back to; the start page's for what cannot be fetched again.
    here: String,
}

impl Page {
    /// The frame for a request.
    pub(crate) fn of(state: &AppState, parts: &Parts) -> Page {
        let base = state.settings.base_path.clone();
        let steering = access::check(state, parts).is_ok();
        let address = parts.uri.path_and_query().map_or("/", |address| address.as_str());
        let here = match parts.method {
            Method::GET => address.strip_prefix(base.as_str()).unwrap_or(address),
            _ => "/",
        };
        // A link that makes an account stands in no other page.
        let here = if here.starts_with("/invite") || here.starts_with("/welcome") { "/" } else { here };
        let known = Known::of(parts);
        Page {
            can_sign_in: !steering
                && known.signed.is_none()
                && (known.accounts || state.settings.access_token.is_some()),
            signed_in: steering && known.signed.is_none() && access::by_cookie(state, &parts.headers),
            manages_people: known.accounts && account::check_owner(state, parts).is_ok(),
            reviews: account::check_reviewer(state, parts).is_ok(),
            accounts: known.accounts,
            account: known.signed,
            here: here.to_owned(),
            steering,
            base,
        }
    }

    /// The frame of a page at the start of a server under `base`.
    #[cfg(test)]
    pub(crate) fn for_tests(base: &str) -> Page {
        Page {
            base: base.to_owned(),
            steering: false,
            reviews: false,
            can_sign_in: false,
            signed_in: false,
            accounts: false,
            account: None,
            manages_people: false,
            here: "/".to_owned(),
        }
    }

    /// Where researchers sign in, and come back from to this page.
    pub(crate) fn sign_in(&self) -> String {
        let form = if self.accounts { "/sign-in" } else { "/access" };
        if self.here.starts_with(form) {
            return self.url(&self.here);
        }
        self.url(&format!("{form}?next={}", format::encode(&self.here)))
    }

    /// The program's version.
    pub(crate) fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// An address of this application from its own path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The address of a static file; it changes when any static file changes, so that it may be cached for ever.
    pub(crate) fn asset(&self, path: &str) -> String {
        format!("{}/static/{}/{path}", self.base, assets::version())
    }
}

impl FromRequestParts<AppState> for Page {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Infallible> {
        Ok(Page::of(state, parts))
    }
}

/// Lines as a CSV file to be saved under a name.
pub(crate) fn csv_file<L, C>(name: &str, lines: impl IntoIterator<Item = L>) -> Result<Response, Error>
where
    L: IntoIterator<Item = C>,
    C: AsRef<[u8]>,
{
    let failed = |error: &dyn std::fmt::Display| Error::Panic(format!("a table cannot be written: {error}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer.write_record(line).map_err(|error| failed(&error))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(&error))?;
    let name = format!("attachment; filename=\"{name}.csv\"");
    let headers = [(header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, bytes).into_response())
}

/// Fills a template into a response.
pub(crate) fn html(template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => Html(text).into_response(),
        Err(error) => Error::Template(error).into_response(),
    }
}
