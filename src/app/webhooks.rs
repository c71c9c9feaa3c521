//! Delivers the messages that are queued for programs of researchers, until the other side has taken them or they are given up.
//!
//! A message may come twice (the server ended before it could note that it was taken), with the id of before. Each study has
//! one delivery under way at a time, so that messages come in order and a slow program holds up nobody else's. The address is
//! resolved here and the connection goes to what was checked, so that no name leads into the server's own networks.

use crate::ids::StudyId;
use crate::store::{Result, Store, WebhookMessage};
use axum::http::{Request, StatusCode, Uri, header};
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use sha2::Sha256;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Pauses between the tries of a message, in seconds: ten tries within a day.
const PAUSES: [u64; 9] = [10, 60, 300, 900, 1800, 3600, 7200, 21_600, 50_400];

/// How long deliveries that are under way may take when the server ends.
const ENDING: Duration = Duration::from_secs(2);

/// Pause after the store could not note what became of a message.
const STORE_PAUSE: Duration = Duration::from_secs(30);

/// Studies to which deliveries are under way at once.
const AT_ONCE: usize = 64;

/// Longest reason that is kept.
const LONGEST_REASON: usize = 300;

/// How messages are delivered.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Whether programs on this machine and in its networks are told, too.
    pub private: bool,
    /// How long a delivery may take, from the name to the answer.
    pub timeout: Duration,
    /// The pauses after the first try, the second, and so on. A message that fails after the last one is given up.
    pub pauses: Vec<Duration>,
    /// How often the store is asked for messages whose time has come.
    pub every: Duration,
}

impl Default for Delivery {
    fn default() -> Delivery {
        Delivery {
            private: false,
            timeout: Duration::from_secs(10),
            pauses: PAUSES.into_iter().map(Duration::from_secs).collect(),
            every: Duration::from_secs(1),
        }
    }
}

/// Delivers messages until `stop`.
pub async fn deliver(store: Store, delivery: Delivery, stop: CancellationToken) {
    let tls = match tls() {
        Ok(tls) => tls,
        Err(error) => return tracing::error!(%error, "no webhook is delivered: TLS cannot be set up"),
    };
    let sender = Arc::new(Sender { store, delivery, tls });
    let mut deliveries = JoinSet::new();
    let mut under_way: HashMap<tokio::task::Id, StudyId> = HashMap::new();
    while !stop.is_cancelled() {
        while under_way.len() < AT_ONCE {
            let busy: Vec<StudyId> = under_way.values().cloned().collect();
            let messages = match sender.store.due_webhooks(&busy, AT_ONCE as u32).await {
                Ok(messages) if messages.is_empty() => break,
                Ok(messages) => messages,
                Err(error) => {
                    tracing::warn!(%error, "the queue of webhook messages could not be read");
                    break;
                }
            };
            for message in messages {
                if under_way.len() < AT_ONCE && under_way.values().all(|study| *study != message.study) {
                    let study = message.study.clone();
                    let task = deliveries.spawn(Arc::clone(&sender).send(message));
                    under_way.insert(task.id(), study);
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            Some(ended) = deliveries.join_next_with_id() => {
                under_way.remove(&ended.map_or_else(|error| error.id(), |(id, ())| id));
            }
            () = tokio::time::sleep(sender.delivery.every) => {}
        }
    }
    let rest = async { while deliveries.join_next().await.is_some() {} };
    if tokio::time::timeout(ENDING, rest).await.is_err() {
        tracing::info!("webhook messages that are under way are sent again at the next start");
    }
}

/// Settings of encrypted connections: the certificate authorities that browsers trust.
fn tls() -> Result<TlsConnector, tokio_rustls::rustls::Error> {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

struct Sender {
    store: Store,
    delivery: Delivery,
    tls: TlsConnector,
}

impl Sender {
    /// Tries a message once and notes what became of it.
    async fn send(self: Arc<Self>, message: WebhookMessage) {
        let tried = tokio::time::timeout(self.delivery.timeout, self.post(&message)).await;
        let seconds = self.delivery.timeout.as_secs();
        let tried = tried.unwrap_or_else(|_| Err(format!("it did not answer within {seconds} seconds")));
        let noted = match tried {
            Ok(()) => self.store.webhook_delivered(message.id).await,
            Err(reason) => {
                let reason: String = reason.chars().take(LONGEST_REASON).collect();
                let pause = self.delivery.pauses.get(usize::try_from(message.attempts).unwrap_or(usize::MAX));
                let next = pause.map(|pause| OffsetDateTime::now_utc() + *pause);
                tracing::info!(study = %message.study, message = message.id, reason, "a webhook message was not taken");
                self.store.webhook_failed(message.id, &reason, next).await
            }
        };
        if let Err(error) = noted {
            tracing::warn!(%error, message = message.id, "it could not be noted whether a webhook message was taken");
            tokio::time::sleep(STORE_PAUSE).await;
        }
    }

    async fn post(&self, message: &WebhookMessage) -> Result<(), String> {
        if message.url.is_empty() {
            return Err("the study has no address for messages any more".to_owned());
        }
        let uri: Uri = message.url.parse().map_err(|error| format!("the address cannot be read: {error}"))?;
        let encrypted = uri.scheme_str() == Some("https");
        let host = uri.host().ok_or("the address names no host")?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        let stream = self.connect(&host, port).await?;
        let request = request(&uri, message, OffsetDateTime::now_utc().unix_timestamp())?;
        let status = if encrypted {
            let name = ServerName::try_from(host).map_err(|error| format!("the address names no host: {error}"))?;
            let secured = self.tls.connect(name, stream).await;
            exchange(secured.map_err(|error| format!("no encrypted connection: {error}"))?, request).await?
        } else {
            exchange(stream, request).await?
        };
        match status {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => {
                Err(format!("it answered with a redirect ({}), which is not followed", status.as_u16()))
            }
            status => Err(format!("it answered {status}")),
        }
    }

    /// A connection to one of the host's addresses that may be told.
    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, String> {
        let found = tokio::net::lookup_host((host, port)).await;
        let found: Vec<SocketAddr> = found.map_err(|error| format!("{host} was not found: {error}"))?.collect();
        let mut reason = format!("{host} was not found");
        for address in found {
            if !self.delivery.private && !is_public(address.ip()) {
                reason = format!(
                    "{host} is {}, an address of a private network; such programs are told only by a server for its own \
                     machine alone",
                    address.ip()
                );
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => reason = format!("no connection to {address}: {error}"),
            }
        }
        Err(reason)
    }
}

/// The message as a request. What is signed is the time, a dot and the body.
fn request(uri: &Uri, message: &WebhookMessage, timestamp: i64) -> Result<Request<Full<Bytes>>, String> {
    let signature = signature(&message.secret, timestamp, &message.body)?;
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    // A name and password in the address would be sent to whoever logs the header.
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    Request::post(target)
        .header(header::HOST, host)
        .header(header::USER_AGENT, concat!("iliad/", env!("CARGO_PKG_VERSION")))
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONNECTION, "close")
        .header("Iliad-Event", &message.event)
        .header("Iliad-Delivery", message.id)
        .header("Iliad-Timestamp", timestamp)
        .header("Iliad-Signature", format!("sha256={signature}"))
        .body(Full::new(Bytes::from(message.body.clone())))
        .map_err(|error| format!("the address cannot be used: {error}"))
}

fn signature(secret: &str, timestamp: i64, body: &str) -> Result<String, String> {
    let mut signer = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map_err(|error| error.to_string())?;
    signer.update(format!("{timestamp}.{body}").as_bytes());
    Ok(hex::encode(signer.finalize().into_bytes()))
}

/// Sends a request over a connection of its own; the answer's body is not read.
async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<StatusCode, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken = |error: hyper::Error| format!("the connection broke off: {error}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    Ok(sender.send_request(request).await.map_err(broken)?.status())
}

/// Whether an address is one of the open internet, and none of this machine, its networks or the machines' own services.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || a == 0
        || a == 100 && (64..128).contains(&b) // shared by customers of a provider
        || a == 192 && b == 0 && c == 0 // of protocols
        || a == 198 && (18..20).contains(&b) // of benchmarks
        || a >= 224; // multicast and reserved
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, ..] = address.segments();
    // Forms that stand for an IPv4 address: mapped, of translation, and of tunnels.
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    let last = Ipv4Addr::from_bits(address.to_bits() as u32);
    match (a, b) {
        (0x64, 0xff9b) => is_public_v4(last),
        (0x2002, _) => is_public_v4(Ipv4Addr::from_bits(u32::from(b) << 16 | u32::from(c))),
        (0x2001, 0 | 0xdb8) => false,
        _ => a & 0xe000 == 0x2000, // what is given out to networks of the internet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_private_networks_are_told_from_public_ones() {
        for public in ["93.184.216.34", "8.8.8.8", "100.128.0.1", "2606:2800:220:1::1", "::ffff:8.8.8.8"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "127.0.0.1",
            "127.8.8.8",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::1",
            "2001:db8::1",
            "ff02::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }

    /// The value comes from another program: `printf '1.{}' | openssl dgst -sha256 -hmac key`.
    #[test]
    fn the_time_and_the_body_are_signed() {
        let signed = signature("key", 1, "{}").unwrap();
        assert_eq!(signed, "1ba6b8171186efc613e8bcc0cbdab2748f24984d7c5a84faa2637afa0e40d224");
        assert_ne!(signed, signature("key", 2, "{}").unwrap());
    }

    #[test]
    fn ten_tries_are_made_within_a_day() {
        let pauses = Delivery::default().pauses;
        assert_eq!(pauses.len() + 1, 10);
        assert!(pauses.windows(2).all(|pair| pair[0] < pair[1]));
        let hours = pauses.iter().sum::<Duration>().as_secs() / 3600;
        assert!((20..=25).contains(&hours), "{hours}");
        tls().unwrap();
    }
}
