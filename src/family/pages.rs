//! The pages and resources that a family brings to the web application, beyond drawings of its executions.
//!
//! A family returns routers; the web application serves them below the family's name, checks access, charges work to the
//! client's limit, surrounds pages with the frame that all pages have, and puts errors into words. So a family needs to know
//! nothing of the web application.

use axum::Router;
use axum::extract::FromRequestParts;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use std::convert::Infallible;
use std::fmt;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

/// The addresses of a family, without the family's name in front.
pub struct FamilyPages {
    /// Addresses of the parts of pages that teachers see: for visitors whose cookie comes back, programs that teach, and those who
    /// review.
    pub viewers: Router<PageContext>,
    /// Addresses for researchers only.
    pub researchers: Router<PageContext>,
    /// How often a client may ask for work that [`Work::begin`] counts; `None` where none is counted.
    pub work_limit: Option<WorkLimit>,
}

/// How many pieces of work a client may ask for.
#[derive(Clone, Copy, Debug)]
pub struct WorkLimit {
    /// Name of the limit in the headers of a response.
    pub name: &'static str,
    /// How many at once.
    pub burst: u32,
    /// How long it takes until one more is allowed.
    pub each: Duration,
}

/// The state of a family's handlers: where the application lives.
#[derive(Clone, Debug)]
pub struct PageContext {
    /// Address of the family: the base path of the application and the family's name.
    pub address: Arc<str>,
    /// Folder of pictures that the server was started with.
    pub pictures: Option<Arc<FilePath>>,
}

impl PageContext {
    /// An address of the family from its own path, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }
}

/// A page without its frame.
#[derive(Clone, Debug)]
pub struct FamilyPage {
    /// Title of the page.
    pub title: String,
    /// HTML of the page's content, made by the family's own template (escaped).
    pub html: String,
}

/// The page waits in the response's extensions for its frame.
impl IntoResponse for FamilyPage {
    fn into_response(self) -> Response {
        let mut response = StatusCode::OK.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// An error of a family's handler.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PageError {
    /// The thing asked for does not exist; the text names it with its article: `"the house"`.
    #[error("{0} does not exist")]
    NotFound(&'static str),
    /// The address could not be read; the text says why.
    #[error("the request could not be read: {0}")]
    Unreadable(String),
    /// The client is over its limit; the response says how long to wait.
    #[error("too much work at once")]
    TooMuchWork,
    /// An unforeseen failure; the cause is for the log.
    #[error("{0}")]
    Failed(String),
}

/// The error waits in the response's extensions for its words.
impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let status = match &self {
            PageError::NotFound(_) => StatusCode::NOT_FOUND,
            PageError::Unreadable(_) => StatusCode::BAD_REQUEST,
            PageError::TooMuchWork => StatusCode::TOO_MANY_REQUESTS,
            PageError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<super::RenderError> for PageError {
    fn from(error: super::RenderError) -> PageError {
        PageError::Failed(error.to_string())
    }
}

impl From<askama::Error> for PageError {
    fn from(error: askama::Error) -> PageError {
        PageError::Failed(error.to_string())
    }
}

/// Parts of the path.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(PageError))]
pub struct Path<T>(pub T);

/// The query string.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(PageError))]
pub struct Query<T>(pub T);

impl From<PathRejection> for PageError {
    fn from(_: PathRejection) -> PageError {
        PageError::NotFound("the page")
    }
}

impl From<QueryRejection> for PageError {
    fn from(rejection: QueryRejection) -> PageError {
        PageError::Unreadable(rejection.body_text())
    }
}

/// Counts work that a handler does for its client. Nothing is counted where the application has left no counter.
#[derive(Clone, Default)]
pub struct Work(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Work {
    /// Work that `allow` counts; it returns false when the client is over its limit.
    pub fn counted(allow: impl Fn() -> bool + Send + Sync + 'static) -> Work {
        Work(Some(Arc::new(allow)))
    }

    /// Counts one piece of work. Fails when the client is over its limit.
    pub fn begin(&self) -> Result<(), PageError> {
        match &self.0 {
            Some(allow) if !allow() => Err(PageError::TooMuchWork),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("counted", &self.0.is_some()).finish()
    }
}

impl<S: Sync> FromRequestParts<S> for Work {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}
