//! A request and its response as the register sees them: whose move it is.

use super::register::{Connection, Step};
use axum::body::{Body, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A request that is being answered. It ends when the last holder lets go: handler, or the response's body.
pub(crate) struct Exchange {
    connection: Arc<Connection>,
    number: u64,
}

impl Exchange {
    pub(super) fn begin(connection: &Arc<Connection>, multiplexed: bool) -> Exchange {
        Exchange { number: connection.begin(multiplexed), connection: connection.clone() }
    }

    /// From here on the peer's body is waited for.
    pub(crate) fn wait_for_body(&self) {
        self.connection.step(self.number, Step::Body(std::time::Instant::now()));
    }

    /// From here on it is the server's move.
    pub(crate) fn work(&self) {
        self.connection.step(self.number, Step::Working);
    }

    fn wait_for_reader(&self) {
        self.connection.step(self.number, Step::Sending(std::time::Instant::now()));
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.connection.finish(self.number);
    }
}

/// A response's body. Between handing over a piece and being asked for the next one, the peer is waited for; that also
/// sees a peer of HTTP/2 that grants no room, to which nothing is written at all.
pub(super) struct Watched {
    body: Body,
    exchange: Arc<Exchange>,
}

impl Watched {
    pub(super) fn new(body: Body, exchange: Arc<Exchange>) -> Watched {
        exchange.wait_for_reader();
        Watched { body, exchange }
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match polled {
            Poll::Pending => self.exchange.work(),
            Poll::Ready(_) => self.exchange.wait_for_reader(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
