//! How the web application is set up, and the sizes that it accepts.

use crate::config::server::MetricsReaders;
use crate::web::listener::ConnectionLimits;
use std::path::PathBuf;
use std::time::Duration;

/// Largest body a request may have. A description of 5,000 characters in any script fits with room to spare.
pub const BODY_LIMIT: usize = 64 * 1024;

/// Largest form in which a teacher's words come: so large that a text which is too long comes back on the page that says so.
pub const WORDS_LIMIT: usize = 1024 * 1024;

/// Largest file of episodes with its form.
pub const EPISODES_LIMIT: u64 = 16_000_000;

/// Largest file of descriptions.
pub const DESCRIPTIONS_LIMIT: u64 = 64_000_000;

/// Largest corpus as it is sent, with its form.
pub const CORPUS_LIMIT: u64 = 128_000_000;

/// Most characters (Unicode scalar values) an answer may have.
pub const TEXT_LIMIT: usize = 5_000;

/// How the web application is set up; does not change while the server runs.
#[derive(Clone, Debug)]
pub struct WebSettings {
    /// Path in front of every address, without a slash at its end: `""` or `"/iliad"`. A proxy may strip it or pass it on.
    pub base_path: String,
    /// Token that opens the researchers' pages to people who are not on this machine. `None`: nobody else may steer.
    pub access_token: Option<String>,
    /// Whether a browser on this machine may steer without the token: the listener is bound to a loopback address and no
    /// proxy is configured. Never so where a token is set or a proxy is trusted.
    pub loopback: bool,
    /// Whether a proxy stands in front whose `X-Forwarded-Host` and `X-Forwarded-Proto` are to be believed.
    pub trust_proxy: bool,
    /// How long an execution is a teacher's unless the page renews it.
    pub lease_ttl: Duration,
    /// Folder of the runs, where the disk must have room; `None`: that of the database file.
    pub data_dir: Option<PathBuf>,
    /// Folder of pictures that pages of families may show.
    pub pictures: Option<PathBuf>,
    /// Folder of the corpora that researchers upload; `None`: none can be.
    pub corpora: Option<PathBuf>,
    /// How many connections there may be, and how long they may take.
    pub connections: ConnectionLimits,
    /// Whether visitors are kept from doing things too often.
    pub rate_limits: bool,
    /// Who may read the figures for Prometheus.
    pub metrics: MetricsReaders,
}

impl Default for WebSettings {
    fn default() -> Self {
        WebSettings {
            base_path: String::new(),
            access_token: None,
            loopback: true,
            trust_proxy: false,
            lease_ttl: Duration::from_secs(180),
            data_dir: None,
            pictures: None,
            corpora: None,
            connections: ConnectionLimits::default(),
            rate_limits: true,
            metrics: MetricsReaders::default(),
        }
    }
}
