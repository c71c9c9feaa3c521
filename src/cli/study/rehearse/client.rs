//! A browser without a screen: one connection, cookies, pages and JSON addresses.

use anyhow::Context;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, LOCATION, SET_COOKIE};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Where the server is: `http://HOST:PORT/BASE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Address {
    /// `HOST:PORT`.
    pub(in crate::cli) authority: String,
    /// Path in front of every address, without a slash at its end.
    pub(in crate::cli) base: String,
}

impl Address {
    /// Reads an address without encryption.
    ///
    /// # Errors
    /// The sentence that says what an address looks like.
    pub(in crate::cli) fn read(text: &str) -> Result<Address, String> {
        let wrong = || "write the server's address as http://HOST:PORT, without encryption".to_owned();
        let rest = text.strip_prefix("http://").ok_or_else(wrong)?;
        let (host, base) = rest.split_once('/').unwrap_or((rest, ""));
        let base = base.trim_end_matches('/');
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(wrong());
        }
        let authority = if host.rsplit(']').next().is_some_and(|end| end.contains(':')) {
            host.to_owned()
        } else {
            format!("{host}:80")
        };
        let base = if base.is_empty() { String::new() } else { format!("/{base}") };
        Ok(Address { authority, base })
    }
}

/// A response of the server.
#[derive(Debug)]
pub(in crate::cli) struct Reply {
    pub(in crate::cli) status: u16,
    /// Own path that it leads to, without the base.
    pub(in crate::cli) location: Option<String>,
    pub(in crate::cli) text: String,
}

impl Reply {
    /// The body as JSON; null where it is none.
    pub(in crate::cli) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// Somebody's browser.
pub(in crate::cli) struct Client {
    address: Address,
    token: Option<String>,
    cookies: BTreeMap<String, String>,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    /// A browser that has been nowhere. `token`: the access token of a researcher.
    pub(in crate::cli) fn new(address: Address, token: Option<String>) -> Client {
        Client { address, token, cookies: BTreeMap::new(), connection: None }
    }

    /// The value of a cookie.
    pub(in crate::cli) fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies.get(name).map(String::as_str)
    }

    /// Loads a page. Where it leads elsewhere, that is not followed.
    pub(in crate::cli) async fn page(&mut self, path: &str) -> anyhow::Result<Reply> {
        self.send(Method::GET, path, "text/html", "", String::new()).await
    }

    /// Sends a form.
    pub(in crate::cli) async fn form(&mut self, path: &str, fields: &[(&str, &str)]) -> anyhow::Result<Reply> {
        let encode =
            |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
        let pairs: Vec<String> =
            fields.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        let kind = "application/x-www-form-urlencoded";
        self.send(Method::POST, path, "text/html", kind, pairs.join("&")).await
    }

    /// Sends JSON.
    pub(in crate::cli) async fn post(&mut self, path: &str, body: &Value) -> anyhow::Result<Reply> {
        self.send(Method::POST, path, "application/json", "application/json", body.to_string()).await
    }

    /// Begins to send JSON over a connection of its own, which breaks: `share` of the body arrives.
    pub(in crate::cli) async fn break_off(&mut self, path: &str, body: &Value, share: f64) -> anyhow::Result<()> {
        let body = body.to_string();
        let sent = ((body.len() as f64 * share) as usize).min(body.len());
        let head = format!(
            "POST {}{path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncookie: {}\r\n\
             sec-fetch-site: same-origin\r\ncontent-length: {}\r\n\r\n",
            self.address.base,
            self.address.authority,
            self.cookies(),
            body.len()
        );
        let mut stream = TcpStream::connect(&self.address.authority).await?;
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body.as_bytes()[..sent]).await?;
        stream.flush().await?;
        self.connection = None;
        Ok(())
    }

    fn cookies(&self) -> String {
        let pairs: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("; ")
    }

    async fn connection(&mut self) -> anyhow::Result<&mut SendRequest<Full<Bytes>>> {
        let closed = match &mut self.connection {
            Some(open) => open.ready().await.is_err(),
            None => true,
        };
        if closed {
            let stream = TcpStream::connect(&self.address.authority).await.context("cannot reach the server")?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            tokio::spawn(async move {
                // Its end is told to whoever waits for the reply.
                let _ = connection.await;
            });
            self.connection = Some(sender);
        }
        self.connection.as_mut().context("there is no connection")
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        accept: &str,
        kind: &str,
        body: String,
    ) -> anyhow::Result<Reply> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.address.base))
            .header(HOST, &self.address.authority)
            .header(ACCEPT, accept)
            .header("sec-fetch-site", "same-origin");
        if !kind.is_empty() {
            request = request.header(CONTENT_TYPE, kind);
        }
        if !self.cookies.is_empty() {
            request = request.header(COOKIE, self.cookies());
        }
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Full::new(Bytes::from(body)))?;
        let sent = self.connection().await?.send_request(request).await;
        let response = match sent {
            Ok(response) => response,
            Err(error) => {
                self.connection = None;
                return Err(error.into());
            }
        };
        let (parts, body) = response.into_parts();
        for set in parts.headers.get_all(SET_COOKIE) {
            let pair = set.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        let location = parts.headers.get(LOCATION).and_then(|to| to.to_str().ok());
        let own = |to: &str| to.strip_prefix(&self.address.base).unwrap_or(to).to_owned();
        let bytes = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                self.connection = None;
                return Err(error.into());
            }
        };
        Ok(Reply {
            status: parts.status.as_u16(),
            location: location.map(own),
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn addresses_have_a_port_and_perhaps_a_base() {
        let of = |text| Address::read(text).map(|address| (address.authority, address.base));
        assert_eq!(of("http://127.0.0.1:8642/"), Ok(("127.0.0.1:8642".into(), String::new())));
        assert_eq!(of("http://lab.example/iliad/"), Ok(("lab.example:80".into(), "/iliad".into())));
        assert_eq!(of("http://[::1]:8642"), Ok(("[::1]:8642".into(), String::new())));
        assert_eq!(of("http://[::1]/x"), Ok(("[::1]:80".into(), "/x".into())));
        assert!(of("https://lab.example").is_err() && of("lab:80").is_err() && of("http:///x").is_err());
    }
}
