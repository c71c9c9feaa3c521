//! The error policy, and the one error type of the web application.
//!
//! 1. *Three readers.* A person gets a page with a plain sentence: what happened, what was kept, what to do. A program
//!    gets the same as `application/problem+json` (RFC 9457). The log gets the cause, once, with the request's number.
//!    Causes (SQL, paths, backtraces) never leave the log.
//! 2. *Nothing typed is lost.* A handler that takes text from a form answers an error by showing the form again with the
//!    text in it; the page's script keeps the text until the server has said "stored". Only then does anything clear it.
//! 3. *Whose move it is decides the status.* 4xx: the person can change something, and the sentence says what. 5xx: they
//!    cannot, and the sentence says that trying again is safe (answers carry a key and are stored once).
//! 4. *Errors are values.* Handlers return [`Error`]; `?` works on everything below them. A panic is a bug: it is caught,
//!    logged and shown as a 500, and the server goes on.
//! 5. *One place renders.* [`Error`] becomes a response that carries a [`Problem`]; the outermost layer (`middleware::errors`)
//!    turns that into a page or problem+json, by who asked. The same layer gives axum's own 404, 405, 408 and 413 their
//!    words, so no address answers with an empty body.

use crate::credentials::CredentialsError;
use crate::family::RenderError;
use crate::family::pages::PageError;
use crate::store::{Role, Scope, StoreError};
use crate::web::format;
use crate::web::limits::standing::{self, Standing};
use axum::extract::rejection::{BytesRejection, FormRejection, JsonRejection, PathRejection, QueryRejection};
use axum::http::header::HeaderValue;
use axum::http::{StatusCode, Version, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::ErrorKind;

/// Result of a web handler.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong while a request is answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The thing asked for is not there (404); the text names it with its article: `"the run"`.
    #[error("{0} does not exist")]
    NotFound(&'static str),
    /// The request could not be read: malformed JSON, a missing field (400). For programs; our own pages never cause it.
    #[error("the request could not be read: {0}")]
    Unreadable(String),
    /// A person must change what they sent (422).
    #[error("{message}")]
    Change {
        /// Stable word for programs.
        code: &'static str,
        /// Plain sentence: what to change.
        message: String,
    },
    /// Rows of a file cannot come in (422).
    #[error("{message}")]
    Rows {
        /// Plain sentence.
        message: String,
        /// The rows, as further members of the problem document.
        members: Map<String, Value>,
    },
    /// A person's answer contradicts what the server knows, so they are asked before it is stored (409). The text is the
    /// whole question.
    #[error("{0}")]
    Unconfirmed(String),
    /// The request is fine but meets a state that does not allow it (409).
    #[error("{message}")]
    Conflict {
        /// Stable word for programs.
        code: &'static str,
        /// Plain sentence.
        message: String,
        /// Further members of the problem document.
        members: Map<String, Value>,
    },
    /// The page steers a run or shows its data, and the access token was not given (401).
    #[error("this needs the access token")]
    NoAccess,
    /// The server was started without an access token but is asked from elsewhere (403).
    #[error("steering from another machine is off")]
    SteeringOff,
    /// The page is for somebody who is signed in (401).
    #[error("this needs an account")]
    NotSignedIn,
    /// The role of the account that is signed in does not allow this (403).
    #[error("the role {0} does not allow this")]
    NotPermitted(Role),
    /// The token of the program lacks the scope (403).
    #[error("the token lacks the scope {0}")]
    MissingScope(Scope),
    /// The store could not say whose session a cookie is (503).
    #[error("a session could not be looked up")]
    Unrecognised,
    /// A page of another site sent this (403).
    #[error("another site sent this request")]
    CrossSite,
    /// The browser sends no cookie, so that nobody knows whose answer this is (403).
    #[error("the browser sent no cookie")]
    NoCookie,
    /// The body is larger than anything our pages send (413).
    #[error("the request is too large")]
    TooLarge,
    /// The body came too slowly (408).
    #[error("the body came too slowly")]
    SlowBody,
    /// Over a limit (429).
    #[error("more than {} of {} at once", .0.quota.burst, .0.quota.name)]
    TooMany(Box<Standing>),
    /// A part of the server cannot do its work (503), as words by part.
    #[error("the server is not ready")]
    NotReady(Map<String, Value>),
    /// The trainer does not answer now (503).
    #[error("{0}")]
    Busy(String),
    /// A run could not be started; the text is the cause, for the log.
    #[error("a run could not be started: {0}")]
    NotStarted(String),
    /// The store failed, or refused for a reason of its own.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stored execution cannot be drawn.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A page of a family failed for a reason that the family did not foresee.
    #[error("{0}")]
    FamilyPage(PageError),
    /// A template could not be filled.
    #[error("a page could not be made")]
    Template(#[from] askama::Error),
    /// A bug: something panicked.
    #[error("panic: {0}")]
    Panic(String),
}

/// An error in words for people and programs; it travels with the response until it is rendered.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// HTTP status.
    pub status: u16,
    /// Stable word for programs, e.g. `lease-lost`.
    pub code: &'static str,
    /// The event in a few words.
    pub title: String,
    /// A plain sentence or two: what was kept, what to do.
    pub detail: String,
    /// Further members.
    #[serde(flatten)]
    #[schema(ignore)]
    pub members: Map<String, Value>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, title: &str, detail: impl Into<String>) -> Problem {
        Problem { status: status.as_u16(), code, title: title.to_owned(), detail: detail.into(), members: Map::new() }
    }

    /// The status as axum's type.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The words for a status that no handler put into words (axum's own answers, a timeout).
    pub fn of_status(status: StatusCode) -> Problem {
        let (code, title, detail) = match status {
            StatusCode::NOT_FOUND => (
                "not-found",
                "There is no such page",
                "The address may have a typo, or what it named is gone. The start page lists what there is.",
            ),
            StatusCode::METHOD_NOT_ALLOWED => (
                "method-not-allowed",
                "This address does not take that kind of request",
                "Open the page from the start page and try again.",
            ),
            StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => (
                "timeout",
                "That took too long",
                "The server stopped waiting; what you asked for may have been done anyway. An answer can be sent again without harm: it is stored once. Before you start a run or write a checkpoint again, check whether it is there.",
            ),
            StatusCode::PAYLOAD_TOO_LARGE => (
                "too-large",
                "That is too much at once",
                "A request may have 64 KiB and a description 5,000 characters. Shorten the text and send it again.",
            ),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => (
                "unsupported-media-type",
                "The request has the wrong content type",
                "Send JSON with the header content-type: application/json.",
            ),
            s if s.is_client_error() => {
                ("refused", "The server could not use that request", "Open the page from the start page and try again.")
            }
            _ => (
                "failed",
                "Something broke on our side",
                "The server\u{2019}s log says what happened. Try again in a moment: an answer that is sent twice is stored once.",
            ),
        };
        Problem::new(status, code, title, detail)
    }
}

impl Error {
    /// A file could not be kept: in words of its own where the disk is full or can only be read. `what` is the file with its article.
    pub(crate) fn unkept(what: &str, error: &std::io::Error) -> Error {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::DiskFull.into(),
            ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly.into(),
            _ => Error::Panic(format!("{what} could not be kept: {error}")),
        }
    }

    /// A [`Error::Change`].
    pub fn change(code: &'static str, message: impl Into<String>) -> Error {
        Error::Change { code, message: message.into() }
    }

    /// A [`Error::Conflict`] without further members.
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Error {
        Error::Conflict { code, message: message.into(), members: Map::new() }
    }

    /// This error in words for people and programs.
    pub fn problem(&self) -> Problem {
        use StatusCode as S;
        match self {
            Error::NotFound(what) => Problem::new(
                S::NOT_FOUND,
                "not-found",
                &format!("{} does not exist", format::upper(what)),
                "The address may have a typo, or what it named is gone. The start page lists what there is.",
            ),
            Error::Unreadable(why) => {
                Problem::new(S::BAD_REQUEST, "unreadable", "The request could not be read", format!("{why}."))
            }
            Error::Change { code, message } => {
                Problem::new(S::UNPROCESSABLE_ENTITY, code, "Something has to be changed first", message)
            }
            Error::Rows { message, members } => Problem {
                members: members.clone(),
                ..Problem::new(
                    S::UNPROCESSABLE_ENTITY,
                    "bad-rows",
                    "Rows of the file have to be changed first",
                    message,
                )
            },
            Error::Unconfirmed(question) => {
                Problem::new(S::CONFLICT, "unconfirmed", "Is that what you mean?", question)
            }
            Error::Conflict { code, message, members } => Problem {
                members: members.clone(),
                ..Problem::new(S::CONFLICT, code, "This cannot be done now", message)
            },
            Error::NoAccess => Problem::new(
                S::UNAUTHORIZED,
                "no-access",
                "This page needs the access token",
                "The people who run this server know the token: it was printed at its start, or they set it themselves. Enter it on the access page, or send it as a Bearer token. If you have an account here, sign in with it instead.",
            ),
            Error::SteeringOff => Problem::new(
                S::FORBIDDEN,
                "steering-off",
                "Runs can be steered from this server's own machine only",
                "Start the server with an access token to steer runs from elsewhere. Teaching is open as before.",
            ),
            Error::NotSignedIn => Problem::new(
                S::UNAUTHORIZED,
                "not-signed-in",
                "This page is for people who are signed in",
                "Sign in with your account first. An owner of this server can send you a link that makes one.",
            ),
            Error::NotPermitted(role) => Problem::new(
                S::FORBIDDEN,
                "not-permitted",
                "Your account does not allow this",
                format!(
                    "You are signed in as {} {role}, who {}. An owner of this server can give you another role.",
                    article(*role),
                    role.rights()
                ),
            ),
            Error::MissingScope(scope) => Problem::new(
                S::FORBIDDEN,
                "missing-scope",
                "The token does not allow this",
                format!(
                    "This needs a token with the scope {scope}, which {}. An owner of this server can make one.",
                    scope.rights()
                ),
            ),
            Error::Unrecognised => Problem::new(
                S::SERVICE_UNAVAILABLE,
                "not-recognised",
                "The server could not look up who you are",
                "Its database did not answer; its log says why. You are not signed out. Try again in a moment.",
            ),
            Error::CrossSite => Problem::new(
                S::FORBIDDEN,
                "cross-site",
                "This came from another site's page",
                "To protect you it was not carried out. Open this site directly and do it there. If the server stands behind a proxy, start it with its proxy setting.",
            ),
            Error::NoCookie => Problem::new(
                S::FORBIDDEN,
                "no-cookie",
                "Your browser sent no cookie",
                "A cookie keeps your descriptions apart from other people's. Your browser did not send it back: it is blocked, or it was deleted. What you sent was not stored. Allow cookies for this site, copy what you typed, and open the teaching page again.",
            ),
            Error::TooLarge => Problem::of_status(S::PAYLOAD_TOO_LARGE),
            Error::SlowBody => Problem::new(
                S::REQUEST_TIMEOUT,
                "timeout",
                "That came too slowly",
                "The connection was too slow for what you sent, and it was not stored. Send it again when the connection is better.",
            ),
            Error::TooMany(standing) => Problem::new(
                S::TOO_MANY_REQUESTS,
                "too-many",
                "That was too much at once",
                standing::sentence(standing),
            ),
            Error::NotReady(members) => Problem {
                members: members.clone(),
                ..Problem::new(
                    S::SERVICE_UNAVAILABLE,
                    "not-ready",
                    "The server is not ready",
                    "A part of it cannot do its work now; its log says more.",
                )
            },
            Error::Busy(sentence) => {
                Problem::new(S::SERVICE_UNAVAILABLE, "busy", "The agent cannot answer right now", sentence)
            }
            Error::NotStarted(_) => Problem::new(
                S::INTERNAL_SERVER_ERROR,
                "not-started",
                "The run could not be started",
                "This was not foreseen, and its cause is in the server\u{2019}s log only. Tell the people who run this server, and try again when it is put right.",
            ),
            Error::Store(StoreError::NotFound(what)) => Error::NotFound(what).problem(),
            Error::Store(StoreError::LeaseLost) => Problem::new(
                S::CONFLICT,
                "lease-lost",
                "This one is no longer yours",
                "Its time ran out and somebody else may have it now, or it was answered already. What you typed can still be sent.",
            ),
            Error::Store(StoreError::NeverYours) => Problem::new(
                S::FORBIDDEN,
                "never-yours",
                "This one was never shown to you",
                "You can only answer what was shown to you. If your browser\u{2019}s cookies were deleted in the meantime, the server takes you for somebody else. What you sent was not stored; copy what you typed if you want to keep it.",
            ),
            Error::Store(StoreError::Superseded) => Problem::new(
                S::CONFLICT,
                "superseded",
                "This answer can no longer be changed",
                "It was corrected already, perhaps in another tab. Copy what you typed, reload the page and correct the newer answer.",
            ),
            Error::Store(StoreError::KeyReused { answer }) => Problem {
                members: Map::from_iter([("answer".to_owned(), answer.0.into())]),
                ..Problem::new(
                    S::CONFLICT,
                    "key-reused",
                    "This key was used for other words",
                    "The earlier words stand. Send these with a new client_key; they then replace the earlier ones.",
                )
            },
            Error::Store(StoreError::Conflict(sentence)) => Problem::new(
                S::CONFLICT,
                "conflict",
                "This cannot be done now",
                format!("{}.", format::upper(sentence)),
            ),
            Error::Store(StoreError::Busy) => Problem::new(
                S::SERVICE_UNAVAILABLE,
                "store-busy",
                "The database is busy",
                "Another program holds it for the moment. Try again soon: an answer that is sent twice is stored once.",
            ),
            Error::Store(StoreError::Invalid(_)) => Problem::new(
                S::UNPROCESSABLE_ENTITY,
                "unusable",
                "The store cannot take that",
                "A key, number or name in the request is not one that can be stored.",
            ),
            Error::Store(StoreError::Transient { .. }) => Problem::new(
                S::SERVICE_UNAVAILABLE,
                "store-refused",
                "The database cannot be reached just now",
                "The server\u{2019}s system refused something that it gives at other times; its log says what. Try again soon: an answer that is sent twice is stored once.",
            ),
            Error::Store(StoreError::ReadOnly) => Problem::new(
                S::SERVICE_UNAVAILABLE,
                "read-only",
                "The server cannot write its database",
                "The file or its disk can only be read, so this was not stored. Tell the people who run this server; it can be sent again when that is put right.",
            ),
            Error::Store(StoreError::DiskFull) => Problem::new(
                S::INSUFFICIENT_STORAGE,
                "disk-full",
                "The server's disk is full",
                "There is no room for this, so it was not stored. Tell the people who run this server; it can be sent again when there is room.",
            ),
            Error::Store(StoreError::Unusable(sentence)) => Problem::new(
                S::INTERNAL_SERVER_ERROR,
                "failed",
                "The database cannot be used",
                format!("{}. Tell the people who run this server.", format::upper(sentence)),
            ),
            Error::Store(_) | Error::Render(_) | Error::FamilyPage(_) | Error::Template(_) | Error::Panic(_) => {
                Problem::of_status(S::INTERNAL_SERVER_ERROR)
            }
        }
    }
}

impl Error {
    /// The response to a request whose body was not read to its end. Over HTTP/1 nothing can follow the body on this
    /// connection, so it closes, and the peer has to know that before it sends its next request there. HTTP/2 goes on, and
    /// forbids the header.
    pub(crate) fn into_response_without_reading(self, version: Version) -> Response {
        let mut response = self.into_response();
        if version < Version::HTTP_2 {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// The article before a role.
fn article(role: Role) -> &'static str {
    if role == Role::Owner { "an" } else { "a" }
}

/// The cause of a failure of passwords and tokens is for the log.
impl From<CredentialsError> for Error {
    fn from(error: CredentialsError) -> Error {
        Error::Panic(error.to_string())
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let problem = self.problem();
        let status = problem.status();
        if status.is_server_error() {
            tracing::error!(error = %self, cause = ?std::error::Error::source(&self).map(|c| c.to_string()), "request failed");
        } else {
            tracing::debug!(error = %self, status = problem.status, "request refused");
        }
        let mut response = status.into_response();
        if let Error::TooMany(standing) = &self {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, standing::seconds(standing.wait).max(1).into());
            standing::write_headers(headers, std::slice::from_ref(standing));
        }
        response.extensions_mut().insert(problem);
        response
    }
}

/// Extractor rejections say in English what is wrong with the request; a body over the limit is its own case.
macro_rules! from_rejection {
    ($($rejection:ty),*) => {$(
        impl From<$rejection> for Error {
            fn from(rejection: $rejection) -> Error {
                if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
                    Error::TooLarge
                } else {
                    Error::Unreadable(rejection.body_text())
                }
            }
        }
    )*};
}
from_rejection!(BytesRejection, JsonRejection, FormRejection, QueryRejection);

impl From<PathRejection> for Error {
    fn from(_: PathRejection) -> Error {
        Error::NotFound("the page")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_stay_in_the_log() {
        let error = Error::Store(StoreError::Database(sqlx::Error::Protocol("secret table".into())));
        let told = serde_json::to_string(&error.problem()).unwrap();
        assert_eq!(error.problem().status, 500);
        assert!(!told.contains("secret"), "{told}");
    }

    #[test]
    fn every_problem_says_what_to_do() {
        let errors = [
            Error::NotFound("the run"),
            Error::change("empty", "Write a sentence first."),
            Error::conflict("ended", "The run has ended."),
            Error::NoAccess,
            Error::SteeringOff,
            Error::NotSignedIn,
            Error::NotPermitted(Role::Reviewer),
            Error::MissingScope(Scope::Steer),
            Error::Unrecognised,
            Error::CrossSite,
            Error::NoCookie,
            Error::TooLarge,
            Error::SlowBody,
            Error::Busy("It is warming up; try again in a minute.".into()),
            StoreError::LeaseLost.into(),
            StoreError::NeverYours.into(),
            StoreError::Superseded.into(),
            StoreError::DiskFull.into(),
            StoreError::ReadOnly.into(),
            StoreError::from(sqlx::Error::WorkerCrashed).into(),
            Error::Panic("index out of bounds".into()),
        ];
        for error in errors {
            let problem = error.problem();
            assert!(problem.status >= 400 && !problem.title.is_empty() && problem.detail.ends_with('.'), "{problem:?}");
            assert!(!problem.detail.to_lowercase().contains("invalid"), "{problem:?}");
        }
    }

    #[test]
    fn a_file_that_finds_no_room_is_told_as_such() {
        let status = |kind: ErrorKind| Error::unkept("a file", &kind.into()).problem().status;
        assert_eq!(
            [ErrorKind::StorageFull, ErrorKind::ReadOnlyFilesystem, ErrorKind::Other].map(status),
            [507, 503, 500]
        );
    }

    /// A sentence is shown whatever led to it, so it must be true of everything that can.
    #[test]
    fn no_problem_claims_what_the_program_cannot_know() {
        let sentences = [
            Error::NotFound("the run"),
            Error::NoAccess,
            Error::SteeringOff,
            Error::CrossSite,
            Error::NoCookie,
            Error::TooLarge,
            Error::NotStarted("cause".into()),
            Error::Panic("cause".into()),
            StoreError::LeaseLost.into(),
            StoreError::Superseded.into(),
            StoreError::KeyReused { answer: crate::ids::AnswerId(1) }.into(),
            StoreError::Busy.into(),
            StoreError::Invalid("cause".into()).into(),
            StoreError::DiskFull.into(),
            StoreError::ReadOnly.into(),
            StoreError::from(sqlx::Error::WorkerCrashed).into(),
            StoreError::Unusable("its file is damaged".into()).into(),
        ]
        .map(|error| error.problem())
        .into_iter()
        .chain((400..600).filter_map(|code| Some(Problem::of_status(StatusCode::from_u16(code).ok()?))));
        for Problem { title, detail, .. } in sentences {
            let told = format!("{title}. {detail}").to_lowercase();
            for claim in [
                "is safe",
                "are safe",
                "is kept",
                "nothing was",
                "nothing is lost",
                "still there",
                "still in",
                "your page",
            ] {
                assert!(!told.contains(claim), "{claim:?} in {told:?}");
            }
            assert!(!told.contains("cause."), "{told}");
        }
    }

    #[test]
    fn further_members_lie_beside_the_standard_ones() {
        let mut members = Map::new();
        members.insert("answer".into(), 7.into());
        let error = Error::Conflict { code: "answered-differently", message: "Twice.".into(), members };
        let value = serde_json::to_value(error.problem()).unwrap();
        assert_eq!((value["status"].as_u64(), value["answer"].as_i64()), (Some(409), Some(7)));
    }
}
