//! The log span of a request.

use axum::extract::Request;

/// The log span of a request: method and path without the query (which may hold an address to return to), and its number.
pub(crate) fn span(request: &Request) -> tracing::Span {
    let number = request.headers().get("x-request-id").and_then(|id| id.to_str().ok()).unwrap_or("");
    let path = without_token(request.uri().path());
    tracing::info_span!("request", method = %request.method(), path, id = number)
}

/// A path as it may be logged: whoever reads a log must not be able to use a link that makes an account.
fn without_token(path: &str) -> &str {
    let ends = ["/invite/", "/welcome/"].into_iter().filter_map(|link| path.find(link).map(|at| at + link.len()));
    ends.min().map_or(path, |end| &path[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_make_accounts_are_not_logged() {
        for (path, logged) in [
            ("/invite/0123", "/invite/"),
            ("/iliad/welcome/0123/x", "/iliad/welcome/"),
            ("/runs/a", "/runs/a"),
            ("/invite", "/invite"),
        ] {
            assert_eq!(without_token(path), logged);
        }
    }
}
