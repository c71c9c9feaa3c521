//! Requests to a bucket, over the HTTP and TLS that the program has already. `object_store` brings a client of its own only with a further
//! library for each.

use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// How long a connection may take until it can be used.
const CONNECTING: Duration = Duration::from_secs(5);

/// How long a request may take until its reply begins. A part of a large file has to be sent within it.
const REPLYING: Duration = Duration::from_secs(60);

/// How long nothing may come while a reply is read.
const SILENCE: Duration = Duration::from_secs(30);

/// Makes clients for `object_store`.
pub(super) struct Connector {
    tls: TlsConnector,
}

impl Connector {
    /// Trusts the certificate authorities that browsers trust.
    pub(super) fn new() -> Result<Connector, tokio_rustls::rustls::Error> {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Connector { tls: TlsConnector::from(Arc::new(config)) })
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let plain = options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        Ok(HttpClient::new(Client { tls: self.tls.clone(), plain }))
    }
}

/// Sends each request over a connection of its own: a copy has a few large ones.
struct Client {
    tls: TlsConnector,
    /// Whether requests may go unencrypted.
    plain: bool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

impl HttpService for Client {
    fn call<'client, 'call>(
        &'client self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'call>>
    where
        'client: 'call,
        Self: 'call,
    {
        Box::pin(self.exchange(request))
    }
}

impl Client {
    async fn exchange(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let uri = request.uri().clone();
        let encrypted = uri.scheme_str() == Some("https");
        if !encrypted && !self.plain {
            return Err(other("unencrypted requests are not allowed (AWS_ALLOW_HTTP)"));
        }
        let authority = uri.authority().ok_or_else(|| other("the address names no host"))?;
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        if !request.headers().contains_key(HOST) {
            let value =
                HeaderValue::from_str(authority.as_str()).map_err(|e| HttpError::new(HttpErrorKind::Unknown, e))?;
            request.headers_mut().insert(HOST, value);
        }
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        *request.uri_mut() = target.parse().map_err(|e| HttpError::new(HttpErrorKind::Unknown, e))?;
        let unreachable = |error: io::Error| HttpError::new(HttpErrorKind::Connect, error);
        let connecting = async {
            let stream = TcpStream::connect((host.as_str(), port)).await.map_err(unreachable)?;
            // A small request does not wait for the acknowledgement of the one before.
            let _ = stream.set_nodelay(true);
            if !encrypted {
                return Ok::<_, HttpError>(Box::new(stream) as Box<dyn Stream>);
            }
            let name = ServerName::try_from(host.clone()).map_err(|e| HttpError::new(HttpErrorKind::Unknown, e))?;
            Ok(Box::new(self.tls.connect(name, stream).await.map_err(unreachable)?) as Box<dyn Stream>)
        };
        let late = |_| HttpError::new(HttpErrorKind::Connect, io::Error::from(io::ErrorKind::TimedOut));
        let stream = timeout(CONNECTING, connecting).await.map_err(late)??;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // It ends with the reply, or when nobody waits for that any more.
        tokio::spawn(connection);
        let late = |_| HttpError::new(HttpErrorKind::Timeout, io::Error::from(io::ErrorKind::TimedOut));
        let reply = timeout(REPLYING, sender.send_request(request)).await.map_err(late)?.map_err(broken)?;
        let silence = Box::pin(tokio::time::sleep(SILENCE));
        Ok(reply.map(|incoming| HttpResponseBody::new(Reply { incoming, silence })))
    }
}

/// A connection, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The body of a reply; it is an error when nothing comes for long.
struct Reply {
    incoming: Incoming,
    silence: Pin<Box<Sleep>>,
}

impl Body for Reply {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) {
            self.silence.as_mut().reset(Instant::now() + SILENCE);
            return Poll::Ready(frame.map(|frame| frame.map_err(broken)));
        }
        ready!(self.silence.as_mut().poll(cx));
        let late = io::Error::from(io::ErrorKind::TimedOut);
        Poll::Ready(Some(Err(HttpError::new(HttpErrorKind::Timeout, late))))
    }
}

/// The error for a connection that broke off.
fn broken(error: hyper::Error) -> HttpError {
    HttpError::new(HttpErrorKind::Interrupted, error)
}

/// An error that does not pass by itself.
fn other(sentence: &'static str) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, io::Error::other(sentence))
}
