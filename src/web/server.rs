//! Serving the router until the server is to end.

use crate::web::extractors::upload;
use crate::web::limits::TELL_EVERY;
use crate::web::listener;
use crate::web::router::{limits_of, router_within};
use crate::web::state::AppState;
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;

/// How long open connections may take to end after shutdown was asked for.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(8);

/// Serves until [`AppState::shutdown`] is cancelled, then ends event streams, lets ordinary requests finish and returns.
/// A client that will not let go is left behind after some seconds.
pub async fn serve(state: AppState, listener: tokio::net::TcpListener) -> std::io::Result<()> {
    let shutdown = state.shutdown.clone();
    if let Some(corpora) = &state.settings.corpora {
        upload::clear(corpora);
    }
    let connections = state.settings.connections;
    let limits = limits_of(&state);
    let told = limits.clone();
    let _teller = AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            tokio::time::sleep(TELL_EVERY).await;
            told.guesses.tell();
            told.passwords.tell();
        }
    }));
    let served = listener::serve(listener, router_within(state, limits.clone()), connections, shutdown.clone());
    let ended = tokio::select! {
        ended = served => ended,
        () = async { shutdown.cancelled().await; tokio::time::sleep(SHUTDOWN_GRACE).await } => Ok(()),
    };
    limits.guesses.tell();
    limits.passwords.tell();
    ended
}
