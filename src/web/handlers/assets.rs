//! Static files.

use crate::web::error::Error;
use crate::web::extractors::input::Path;
use crate::web::page::assets::{find, version};
use axum::body::Body;
use axum::http::header::{self, HeaderMap};
use axum::http::{Response, StatusCode};
use sha2::{Digest, Sha256};

/// `GET /static/{path}` and `GET /static/{version}/{path}`. Without the current version the file is revalidated each
/// time, so that a page from before an upgrade goes on working.
pub(crate) async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Result<Response<Body>, Error> {
    let (asked, rest) = path.split_once('/').unwrap_or(("", &path));
    let versioned = asked.len() == version().len() && asked.bytes().all(|b| b.is_ascii_hexdigit());
    let (content, kind) = find(if versioned { rest } else { &path }).ok_or(Error::NotFound("the file"))?;
    let cache = if asked == version() { "public, max-age=31536000, immutable" } else { "public, no-cache" };
    let tag = format!("\"{}\"", hex::encode(&Sha256::digest(&content)[..12]));
    let known = headers.get_all(header::IF_NONE_MATCH).iter().any(|v| v.to_str().is_ok_and(|v| v.contains(&tag)));
    let response = Response::builder().header(header::ETAG, &tag).header(header::CACHE_CONTROL, cache);
    let response = if known {
        response.status(StatusCode::NOT_MODIFIED).body(Body::empty())
    } else {
        response.header(header::CONTENT_TYPE, kind).body(Body::from(content))
    };
    response.map_err(|error| Error::Panic(error.to_string()))
}
