//! Taking connections: HTTP/1.1 and HTTP/2 (also in clear text, for proxies that speak it), with limits on how long a
//! peer may take for each step and on how many connections there are.
//!
//! A connection costs a file descriptor, and the runs need descriptors for their checkpoints, so the number of
//! connections stays below the process's limit by a reserve ([`ConnectionLimits::of_process`]). When the server is full
//! it does not turn the newcomer away but ends a connection that waits for its peer, from the address that holds the
//! most; a flood of sockets that say nothing thus ends its own sockets.

mod exchange;
mod limits;
mod register;
mod stream;

pub use limits::{ConnectionLimits, raise_descriptors};

pub(crate) use exchange::Exchange;
pub(crate) use limits::holder;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Version};
use exchange::Watched;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use register::{Connection, Register};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stream::Stream;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tower::ServiceExt;

/// Most bytes a request's head may have over HTTP/1.1; also the size of a connection's buffers.
const HEAD_BYTES: usize = 64 * 1024;

/// Most requests at once over one HTTP/2 connection. A proxy may bundle everybody into one.
const STREAMS: u32 = 256;

/// How long HTTP/2 waits for a sign of life before it asks for one, and for the reply.
const PING: Duration = Duration::from_secs(20);

/// How long a newcomer waits for the descriptor of the connection that was ended for it.
const ROOM: Duration = Duration::from_secs(2);

/// Pause after the system refused a new connection (no descriptors, no memory), so that the loop does not spin.
const PAUSE: Duration = Duration::from_millis(50);

/// How often crowding is told in the log at most.
const TELL_EVERY: Duration = Duration::from_secs(30);

/// Sent to a newcomer when the server is full and every connection is at work.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\ncontent-type: text/plain\r\ncontent-length: 49\r\n\
    connection: close\r\n\r\nThe server is full just now; try again in a bit.\n";

/// Serves until `shutdown` is cancelled; returns when every connection has ended.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let server = Arc::new(Server {
        router,
        register: Register::new(limits),
        permits: Arc::new(Semaphore::new(limits.in_all)),
        tasks: TaskTracker::new(),
        shutdown: shutdown.clone(),
    });
    let _watchman = AbortOnDropHandle::new(tokio::spawn(watch(server.clone())));
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = accept(&server, &listener) => {}
    }
    drop(listener);
    server.tasks.close();
    server.tasks.wait().await;
    Ok(())
}

struct Server {
    router: Router,
    register: Register,
    permits: Arc<Semaphore>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

/// Crowding, told in the log now and then instead of once a connection.
#[derive(Default)]
struct Crowding {
    ended: u64,
    refused: u64,
    failures: u64,
    last: Option<Instant>,
}

impl Crowding {
    fn tell(&mut self, server: &Server) {
        if self.last.is_some_and(|last| last.elapsed() < TELL_EVERY) {
            return;
        }
        let limit = server.register.limits().in_all;
        tracing::warn!(
            ended = self.ended,
            refused = self.refused,
            failures = self.failures,
            limit,
            "connections are crowded: waiting ones were ended to make room for new ones"
        );
        *self = Crowding { last: Some(Instant::now()), ..Crowding::default() };
    }
}

async fn accept(server: &Arc<Server>, listener: &TcpListener) {
    let mut crowding = Crowding::default();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => admit(server, stream, peer, &mut crowding).await,
            // The peer was gone before it was taken.
            Err(error) if is_the_peers(&error) => {}
            Err(error) => {
                tracing::debug!("cannot take a connection: {error}");
                crowding.failures += 1;
                crowding.ended += u64::from(server.register.shed(None));
                crowding.tell(server);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Finds a place for a new connection, or tells it that there is none.
async fn admit(server: &Arc<Server>, stream: TcpStream, peer: SocketAddr, crowding: &mut Crowding) {
    let register = &server.register;
    if register.is_crowded(peer.ip()) {
        if !register.shed(Some(peer.ip())) {
            refuse(server, &stream, crowding);
            return;
        }
        crowding.ended += 1;
        crowding.tell(server);
    }
    let permit = match server.permits.clone().try_acquire_owned() {
        Ok(permit) => permit,
        Err(_) => {
            let shed = register.shed(None);
            crowding.ended += u64::from(shed);
            let place = tokio::time::timeout(ROOM, server.permits.clone().acquire_owned());
            // Someone may be leaving of their own accord, but a newcomer waits only for a place that is certain.
            let place = if shed { place.await.ok().and_then(Result::ok) } else { None };
            let Some(permit) = place else {
                refuse(server, &stream, crowding);
                return;
            };
            crowding.tell(server);
            permit
        }
    };
    let connection = register.enter(peer.ip());
    let server_of_task = server.clone();
    server.tasks.spawn(async move { converse(server_of_task, stream, peer, connection, permit).await });
}

fn refuse(server: &Server, stream: &TcpStream, crowding: &mut Crowding) {
    let _ = stream.try_write(FULL);
    crowding.refused += 1;
    crowding.tell(server);
}

/// One connection from its first byte to its end.
async fn converse(
    server: Arc<Server>,
    stream: TcpStream,
    peer: SocketAddr,
    connection: Arc<Connection>,
    _permit: OwnedSemaphorePermit,
) {
    // Small events and answers go out at once.
    let _ = stream.set_nodelay(true);
    let _leaving = register::Leave(&server.register, &connection);
    let service = {
        let (router, connection) = (server.router.clone(), connection.clone());
        hyper::service::service_fn(move |mut request: Request<Incoming>| {
            let exchange = Arc::new(Exchange::begin(&connection, request.version() == Version::HTTP_2));
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(exchange.clone());
            let router = router.clone();
            async move {
                let Ok(response) = router.oneshot(request.map(Body::new)).await;
                Ok::<_, Infallible>(response.map(|body| Watched::new(body, exchange)))
            }
        })
    };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // The register keeps the time of heads itself, together with everything else that can make a peer wait.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD_BYTES as u32)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    let io = TokioIo::new(Stream::new(stream, connection.clone()));
    let mut serving = std::pin::pin!(builder.serve_connection(io, service));
    let mut asked = false;
    loop {
        tokio::select! {
            biased;
            () = connection.end.cancelled() => break,
            ended = serving.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%peer, "a connection broke: {error}");
                }
                break;
            }
            () = async { tokio::select! { () = connection.leave.cancelled() => {}, () = server.shutdown.cancelled() => {} } }, if !asked => {
                asked = true;
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Looks at every connection now and then and ends those that took too long.
async fn watch(server: Arc<Server>) {
    let mut tick = tokio::time::interval(server.register.limits().tick());
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        server.register.end_the_late(Instant::now(), server.shutdown.is_cancelled());
    }
}

#[cfg(test)]
mod tests;
