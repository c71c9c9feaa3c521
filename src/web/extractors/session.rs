//! The cookie of somebody who is signed in, and what is known of them while a request is answered.

use crate::credentials::random_token;
use crate::ids::AccountId;
use crate::store::{Role, SignedIn};
use crate::web::error::Error;
use crate::web::extractors::cookie::Names;
use crate::web::extractors::program::{self, Program};
use crate::web::extractors::{cookie, proxy};
use crate::web::settings::WebSettings;
use crate::web::state::AppState;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use axum_extra::extract::CookieJar;
use std::sync::Arc;
use std::time::Duration;

/// Names of the cookie.
pub(crate) const COOKIE: Names = Names { secure: "__Host-iliad_session", plain: "iliad_session" };

/// How long browsers keep the cookie: as long as a session lasts at most. The store ends it earlier.
const KEPT: time::Duration = time::Duration::days(180);

/// How long looking up a session may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The account behind a request. A layer finds it out once for each request and leaves it here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Whether there are accounts at all.
    pub(crate) accounts: bool,
    /// Who is signed in.
    pub(crate) signed: Option<Arc<SignedIn>>,
    /// Whether the store could not say who it is.
    pub(crate) failed: bool,
    /// The token of a program.
    pub(crate) program: Program,
}

impl Known {
    /// The account behind a request; nothing where no layer has looked.
    pub(crate) fn of(parts: &Parts) -> Known {
        parts.extensions.get::<Known>().cloned().unwrap_or_default()
    }

    /// Looks up who is behind a request: by the token of a program, or by that of a cookie.
    pub(crate) async fn look_up(state: &AppState, headers: &HeaderMap) -> Known {
        let token = token_of(&state.settings, headers);
        let accounts = state.store.has_accounts().await.unwrap_or_else(|error| {
            tracing::debug!(%error, "it is not known whether there are accounts");
            false
        });
        if let Some(given) = program::token_of(headers) {
            return match state.store.api_token(given).await {
                Ok(Some(token)) => Known { accounts, program: Program::Known(Arc::new(token)), ..Known::default() },
                Ok(None) => Known { accounts, program: Program::Unknown(given.to_owned()), ..Known::default() },
                Err(error) => {
                    tracing::error!(%error, "a token could not be looked up");
                    Known { accounts, failed: true, ..Known::default() }
                }
            };
        }
        let Some(token) = token else { return Known { accounts, ..Known::default() } };
        let looked = tokio::time::timeout(PATIENCE, state.store.session(&token));
        let Ok(found) = looked.await else {
            tracing::error!("a session could not be looked up in time");
            return Known { accounts, failed: true, ..Known::default() };
        };
        match found {
            Ok(signed) => Known { accounts, signed: signed.map(Arc::new), ..Known::default() },
            Err(error) => {
                tracing::error!(%error, "a session could not be looked up");
                Known { accounts, failed: true, ..Known::default() }
            }
        }
    }

    /// The account that is signed in, if it has a role that is asked for.
    pub(crate) fn with(&self, allowed: impl Fn(Role) -> bool) -> Option<&Arc<SignedIn>> {
        self.signed.as_ref().filter(|signed| allowed(signed.role))
    }

    /// Why an account, or its lack, opens nothing; `None` where accounts play no part.
    pub(crate) fn refusal(&self) -> Option<Error> {
        match &self.signed {
            Some(signed) => Some(Error::NotPermitted(signed.role)),
            None if self.failed => Some(Error::Unrecognised),
            None => self.accounts.then_some(Error::NoAccess),
        }
    }
}

/// The token in a request's cookie. Over https only the cookie that came over https counts: anybody on the network could
/// have set the other one.
pub(crate) fn token_of(settings: &WebSettings, headers: &HeaderMap) -> Option<String> {
    let jar = CookieJar::from_headers(headers);
    let value = jar.get(COOKIE.of(proxy::is_https(settings, headers)))?.value();
    (value.len() == 32 && value.bytes().all(|b| b.is_ascii_hexdigit())).then(|| value.to_owned())
}

/// Signs an account in on the browser that sent `headers`.
pub(crate) async fn open(
    state: &AppState,
    headers: &HeaderMap,
    account: AccountId,
    response: &mut Response,
) -> Result<(), Error> {
    let token = random_token()?;
    state.store.open_session(account, &token, &device(headers)).await?;
    let secure = proxy::is_https(&state.settings, headers);
    cookie::add_cookie(&state.settings, response, (COOKIE, &token), KEPT, secure);
    Ok(())
}

/// Has the browser forget its session.
pub(crate) fn forget(settings: &WebSettings, headers: &HeaderMap, response: &mut Response) {
    let secure = proxy::is_https(settings, headers);
    cookie::drop_cookie(settings, response, COOKIE, secure);
}

/// Browser and system of a request in a few words, such as "Firefox on Linux".
fn device(headers: &HeaderMap) -> String {
    // Browsers name those that came before them, so the order matters.
    const BROWSERS: [(&str, &str); 9] = [
        ("Edg", "Edge"),
        ("OPR/", "Opera"),
        ("SamsungBrowser/", "Samsung Internet"),
        ("FxiOS/", "Firefox"),
        ("Firefox/", "Firefox"),
        ("CriOS/", "Chrome"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
        ("curl/", "curl"),
    ];
    const SYSTEMS: [(&str, &str); 7] = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("CrOS", "ChromeOS"),
        ("Windows", "Windows"),
        ("Mac OS X", "Mac"),
        ("Linux", "Linux"),
    ];
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let find =
        |names: &[(&str, &'static str)]| names.iter().find(|(mark, _)| agent.contains(mark)).map(|(_, name)| *name);
    match (find(&BROWSERS), find(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => "An unknown browser".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn devices_have_short_names() {
        for (agent, expected) in [
            ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/141.0 Safari/537.36 Edg/141.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Safari/604.1",
                "Safari on iPhone",
            ),
            (
                "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/141.0 Mobile Safari/537.36",
                "Chrome on Android",
            ),
            ("curl/8.9", "curl"),
            ("", "An unknown browser"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
            assert_eq!(device(&headers), expected);
        }
    }

    #[test]
    fn over_https_only_the_cookie_of_https_counts() {
        let settings = WebSettings { trust_proxy: true, ..WebSettings::default() };
        let (mine, planted) = ("a".repeat(32), "b".repeat(32));
        let mut headers = HeaderMap::new();
        let Names { secure, plain } = COOKIE;
        let cookies = format!("{plain}={planted}; {secure}={mine}");
        headers.insert(header::COOKIE, HeaderValue::from_str(&cookies).unwrap());
        assert_eq!(token_of(&settings, &headers), Some(planted.clone()));
        headers.insert("x-forwarded-proto", HeaderValue::from_static("https"));
        assert_eq!(token_of(&settings, &headers), Some(mine));
        headers.insert(header::COOKIE, HeaderValue::from_str(&format!("{plain}={planted}")).unwrap());
        assert_eq!(token_of(&settings, &headers), None);
    }
}
