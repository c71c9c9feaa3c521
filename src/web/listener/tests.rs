use super::*;
use axum::routing::get;
use bytes_of_nothing::Endless;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Generous on a busy machine; nothing waits for it when all is well.
const DEADLINE: Duration = Duration::from_secs(30);

/// How many endless responses are being sent.
static SENDING: AtomicUsize = AtomicUsize::new(0);

/// A response that never ends.
mod bytes_of_nothing {
    use super::*;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    pub(super) struct Endless(());

    impl Endless {
        pub(super) fn new() -> Endless {
            SENDING.fetch_add(1, Ordering::SeqCst);
            Endless(())
        }
    }

    impl Drop for Endless {
        fn drop(&mut self) {
            SENDING.fetch_sub(1, Ordering::SeqCst);
        }
    }

    impl futures::Stream for Endless {
        type Item = Result<axum::body::Bytes, Infallible>;

        fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            Poll::Ready(Some(Ok(axum::body::Bytes::from_static(&[0; 16 * 1024]))))
        }
    }
}

struct Served {
    address: SocketAddr,
    stop: CancellationToken,
    done: tokio::task::JoinHandle<io::Result<()>>,
}

async fn served(limits: ConnectionLimits) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let peer = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() };
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/peer", get(peer))
        .route("/endless", get(|| async { Body::from_stream(Endless::new()) }))
        .route("/slow", get(|| async { tokio::time::sleep(Duration::from_millis(700)).await }));
    let stop = CancellationToken::new();
    let done = tokio::spawn(serve(listener, router, limits, stop.clone()));
    Served { address, stop, done }
}

fn small() -> ConnectionLimits {
    let long = Duration::from_secs(600);
    ConnectionLimits { in_all: 8, per_address: 8, head: long, body: long, idle: long, stall: long }
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("{what} took too long"))
}

async fn ask(address: SocketAddr, path: &str) -> String {
    within(path, async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n");
        // Who is turned away may see the end of the connection while it is still sending.
        let _ = stream.write_all(head.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    })
    .await
}

/// Waits until the peer has ended the connection.
async fn ended(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let _ = within("the end of a connection", stream.read_to_end(&mut rest)).await;
}

#[tokio::test]
async fn idle_sockets_do_not_lock_anybody_out() {
    let server = served(small()).await;
    let mut held = Vec::new();
    for n in 0..100 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // Some say nothing, some half a line, some are between two requests.
        match n % 3 {
            0 => {}
            1 => stream.write_all(b"GET /heal").await.unwrap(),
            _ => stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n").await.unwrap(),
        }
        held.push(stream);
        if n % 10 == 9 {
            assert!(ask(server.address, "/healthz").await.ends_with("ok"), "with {n} sockets held");
        }
    }
    for mut stream in held.drain(..60) {
        ended(&mut stream).await;
    }
}

#[tokio::test]
async fn requests_at_work_are_not_ended_for_newcomers() {
    let server = served(ConnectionLimits { in_all: 2, per_address: 2, ..small() }).await;
    let working: Vec<_> = (0..2).map(|_| tokio::spawn(ask(server.address, "/slow"))).collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let newcomer = tokio::spawn(ask(server.address, "/healthz"));
    for one in working {
        assert!(one.await.unwrap().starts_with("HTTP/1.1 200"));
    }
    let told = newcomer.await.unwrap();
    assert!(told.starts_with("HTTP/1.1 503") && told.contains("retry-after") || told.ends_with("ok"), "{told}");
    assert!(ask(server.address, "/healthz").await.ends_with("ok"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn one_address_cannot_take_the_places_of_others() {
    let server = served(ConnectionLimits { in_all: 8, per_address: 3, ..small() }).await;
    let from = async |address: &str| {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
        socket.connect(server.address).await.unwrap()
    };
    let mut other = from("127.0.0.3").await;
    let mut many = Vec::new();
    for _ in 0..20 {
        many.push(from("127.0.0.2").await);
    }
    for stream in &mut many[..17] {
        ended(stream).await;
    }
    other.write_all(b"GET /peer HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    within("the other's answer", other.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.contains("127.0.0.3:"), "{answer}");
}

/// Kept connections of one address fill the server. Who has just come and takes a moment before it sends its request is
/// answered, although others come meanwhile: from an address of its own, and as one of many behind the same proxy.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn kept_connections_do_not_lock_out_a_newcomer_that_pauses() {
    for (address, others) in [("127.0.0.3", 30), ("127.0.0.2", 3)] {
        let server = served(ConnectionLimits { in_all: 12, per_address: 100, ..small() }).await;
        let from = async |address: &str| {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
            socket.connect(server.address).await.unwrap()
        };
        let mut held = Vec::new();
        for _ in 0..12 {
            let mut stream = from("127.0.0.2").await;
            stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n").await.unwrap();
            let mut answer: Vec<u8> = Vec::new();
            while !answer.ends_with(b"ok") {
                let read = within("a kept connection's answer", stream.read_buf(&mut answer)).await.unwrap();
                assert!(read > 0, "a kept connection ended");
            }
            held.push(stream);
        }
        let mut newcomer = from(address).await;
        for _ in 0..others {
            held.push(from("127.0.0.2").await);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        newcomer.write_all(b"GET /peer HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        within("the newcomer's answer", newcomer.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.contains(&format!("{address}:")), "{answer}");
    }
}

#[tokio::test]
async fn heads_that_trickle_and_idle_connections_end() {
    let limit = Duration::from_millis(300);
    let server = served(ConnectionLimits { head: limit, ..small() }).await;
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    let trickle = async {
        loop {
            if slow.write_all(b"G").await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within("a head that trickles", trickle).await;

    let server = served(ConnectionLimits { idle: limit, ..small() }).await;
    ended(&mut TcpStream::connect(server.address).await.unwrap()).await;
    let mut kept = TcpStream::connect(server.address).await.unwrap();
    kept.write_all(b"GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    within("a kept connection", kept.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.ends_with("ok"), "{answer}");
}

/// Both ways not to read: a socket that is left alone, and a peer of HTTP/2 that grants no room.
#[tokio::test]
async fn readers_that_do_not_read_are_dropped() {
    let server = served(ConnectionLimits { stall: Duration::from_millis(400), ..small() }).await;
    let mut left_alone = TcpStream::connect(server.address).await.unwrap();
    left_alone.write_all(b"GET /endless HTTP/1.1\r\nhost: here\r\n\r\n").await.unwrap();
    let socket = TcpStream::connect(server.address).await.unwrap();
    let (mut client, connection) =
        h2::client::Builder::new().initial_window_size(0).handshake::<_, axum::body::Bytes>(socket).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("http://here/endless").body(()).unwrap();
    let (response, _) = client.send_request(request, true).unwrap();
    let body = within("a response's head", response).await.unwrap().into_body();
    within("both", async {
        while SENDING.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        while SENDING.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    drop((body, left_alone));
    assert!(ask(server.address, "/healthz").await.ends_with("ok"));
}

#[tokio::test]
async fn http2_is_spoken_in_clear_text_and_the_peer_is_known() {
    let server = served(small()).await;
    let socket = TcpStream::connect(server.address).await.unwrap();
    let own = socket.local_addr().unwrap().to_string();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    let ask = async |path: &str| {
        let request = Request::get(format!("http://here{path}")).body(()).unwrap();
        let (response, _) = client.clone().send_request(request, true).unwrap();
        let mut body = within(path, response).await.unwrap().into_body();
        let mut text = Vec::new();
        while let Some(piece) = body.data().await {
            text.extend_from_slice(&piece.unwrap());
        }
        String::from_utf8(text).unwrap()
    };
    // Many at once over one connection.
    let (slow, peer, fine) = tokio::join!(ask("/slow"), ask("/peer"), ask("/healthz"));
    assert_eq!((slow.as_str(), peer, fine.as_str()), ("", own, "ok"));
}

#[tokio::test]
async fn the_end_waits_for_requests_and_not_for_idle_sockets() {
    let server = served(small()).await;
    let mut half = TcpStream::connect(server.address).await.unwrap();
    half.write_all(b"GET /heal").await.unwrap();
    let silent = TcpStream::connect(server.address).await.unwrap();
    let working = tokio::spawn(ask(server.address, "/slow"));
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.stop.cancel();
    assert!(working.await.unwrap().starts_with("HTTP/1.1 200"));
    within("the end", server.done).await.unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
    drop((half, silent));
}
