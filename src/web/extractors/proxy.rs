//! How a request reached us: its host, its scheme and its sender, with a proxy's word where the settings trust it.

use crate::web::settings::WebSettings;
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, Uri};
use std::net::{IpAddr, SocketAddr};

/// Host and port the client believes it talks to. A proxy's word counts only when the settings trust it.
pub(crate) fn host<'a>(headers: &'a HeaderMap, uri: &'a Uri, trust_proxy: bool) -> Option<&'a str> {
    let read = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let forwarded = if trust_proxy { read(HeaderName::from_static("x-forwarded-host")) } else { None };
    forwarded
        .and_then(|list| list.split(',').next())
        .map(str::trim)
        .or_else(|| read(header::HOST))
        .or_else(|| uri.authority().map(|authority| authority.as_str()))
}

/// Whether the visitor's browser speaks https to us, as far as we may know.
pub(crate) fn is_https(settings: &WebSettings, headers: &HeaderMap) -> bool {
    settings.trust_proxy && headers.get("x-forwarded-proto").is_some_and(|proto| proto.as_bytes().starts_with(b"https"))
}

/// The address in the last `X-Forwarded-For` field: the one that the proxy in front of us added.
pub(crate) fn forwarded_for(headers: &HeaderMap) -> Option<IpAddr> {
    let last = headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
    let last = last.rsplit(',').next()?.trim();
    let bare = last.strip_prefix('[').and_then(|rest| rest.split(']').next()).unwrap_or(last);
    bare.parse().ok().or_else(|| last.parse::<SocketAddr>().ok().map(|address| address.ip()))
}
