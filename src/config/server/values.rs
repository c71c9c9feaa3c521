//! The types of the settings' values, and how they are read from texts.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::str::FromStr;

/// Where models run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first NVIDIA GPU when this build can use one and there is one, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// An NVIDIA GPU, by number; an error when it cannot be used.
    Cuda(usize),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        match lower.as_str() {
            "auto" => return Ok(DeviceChoice::Auto),
            "cpu" => return Ok(DeviceChoice::Cpu),
            "cuda" => return Ok(DeviceChoice::Cuda(0)),
            _ => {}
        }
        let number = lower.strip_prefix("cuda:").and_then(|number| number.parse().ok());
        number.map(DeviceChoice::Cuda).ok_or_else(|| format!("{text:?} is no device; use auto, cpu, cuda or cuda:N"))
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Auto => f.write_str("auto"),
            DeviceChoice::Cpu => f.write_str("cpu"),
            DeviceChoice::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

/// Who may read the figures for Prometheus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricsReaders {
    /// Whoever may steer, and programs with a token that reads.
    #[default]
    Researchers,
    /// Everybody who reaches the server.
    Everyone,
    /// Nobody: the address does not exist.
    Nobody,
}

impl FromStr for MetricsReaders {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "researchers" => Ok(MetricsReaders::Researchers),
            "everyone" => Ok(MetricsReaders::Everyone),
            "nobody" => Ok(MetricsReaders::Nobody),
            _ => Err(format!("{text:?} is none of researchers, everyone and nobody")),
        }
    }
}

impl fmt::Display for MetricsReaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MetricsReaders::Researchers => "researchers",
            MetricsReaders::Everyone => "everyone",
            MetricsReaders::Nobody => "nobody",
        })
    }
}

/// The log's filter: a level, or the syntax of `tracing-subscriber` (`warn,iliad=debug`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLevel(String);

impl LogLevel {
    /// The filter. A bare level is Iliad's own; its libraries log one level less.
    pub fn filter(&self) -> String {
        let libraries = match self.0.as_str() {
            "off" => return "off".into(),
            "error" | "warn" => "error",
            "info" => "warn",
            "debug" => "info",
            "trace" => "debug",
            filter => return filter.into(),
        };
        format!("{libraries},iliad={}", self.0)
    }
}

impl Default for LogLevel {
    fn default() -> Self {
        LogLevel("info".into())
    }
}

impl FromStr for LogLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        if ["off", "error", "warn", "info", "debug", "trace"].contains(&lower.as_str()) {
            return Ok(LogLevel(lower));
        }
        let allowed = "use off, error, warn, info, debug, trace, or a filter such as warn,iliad=debug";
        // The filter syntax takes any word for the name of a module; one without a level is more likely a slip.
        if !text.contains('=') {
            return Err(format!("{text:?} is no log level; {allowed}"));
        }
        match tracing_subscriber::EnvFilter::builder().parse(text) {
            Ok(_) => Ok(LogLevel(text.into())),
            Err(e) => Err(format!("{text:?} is no log filter ({e}); {allowed}")),
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err(format!("{text:?} is no log format; use text or json")),
        }
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        })
    }
}

/// The token that lets people steer runs. It shows itself only when asked ([`AccessToken::reveal`]).
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken(String);

impl AccessToken {
    /// Fewest characters of a token that somebody chooses.
    pub const SHORTEST: usize = 12;

    /// A new token of 128 bits from the operating system. Secrets are the one thing that must not come from a seeded
    /// stream ([`crate::rng`]).
    pub fn generate() -> AccessToken {
        use rand::TryRng;
        let mut bytes = [0; 16];
        rand::rngs::SysRng.try_fill_bytes(&mut bytes).expect("the operating system gives random numbers");
        AccessToken(hex::encode(bytes))
    }

    /// The token itself, for the line with the address and for comparing.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken(…)")
    }
}

impl FromStr for AccessToken {
    type Err = String;

    /// The text is not repeated in the message: messages end up in logs.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.chars().count() < AccessToken::SHORTEST {
            return Err(format!("the access token needs at least {} characters", AccessToken::SHORTEST));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the access token may hold letters, digits and signs of ASCII, and no blanks".into());
        }
        Ok(AccessToken(text.into()))
    }
}

/// Address of a PostgreSQL database, which may hold a password. It shows itself only when asked ([`PostgresAddress::reveal`]).
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresAddress(String);

impl PostgresAddress {
    /// The address itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostgresAddress(…)")
    }
}

impl FromStr for PostgresAddress {
    type Err = String;

    /// The text is not repeated in the message: messages end up in logs.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once("://") {
            Some(("postgres" | "postgresql", _)) => Ok(PostgresAddress(text.into())),
            _ => Err("the database is named as postgres://user@host/database; without this setting the rows are in a file in \
                      the data folder"
                .into()),
        }
    }
}

/// A path in front of every address: empty, or `/one` or `/one/two` without a slash at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BasePath(String);

impl BasePath {
    /// The path as it is put in front of addresses.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BasePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let inner = text.trim_matches('/');
        if inner.is_empty() {
            return Ok(BasePath::default());
        }
        let good = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~".contains(&b))
                && !part.trim_matches('.').is_empty()
        };
        if inner.split('/').all(good) {
            return Ok(BasePath(format!("/{inner}")));
        }
        Err(format!("{text:?} is no path; use one like /iliad, of letters, digits and - _ . ~"))
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "/" } else { &self.0 })
    }
}

/// An IP address, with brackets or without, or `localhost`.
pub(super) fn parse_address(text: &str) -> Result<IpAddr, String> {
    if text.eq_ignore_ascii_case("localhost") {
        return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    bare.parse().map_err(|_| {
        format!("{text:?} is no IP address; use 127.0.0.1 for this machine alone, 0.0.0.0 for all networks")
    })
}

/// A port.
pub(super) fn parse_port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("{text:?} is no port; use a number from 0 (any free port) to 65535"))
}

/// A number of connections.
pub(super) fn parse_count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{text:?} is no number of connections; 0 leaves it to the program"))
}

/// A folder that is there; an empty text is none.
pub(super) fn parse_folder(text: &str) -> Result<Option<PathBuf>, String> {
    let folder = Some(PathBuf::from(text)).filter(|_| !text.is_empty());
    match &folder {
        Some(path) if !path.is_dir() => Err(format!("there is no folder {text}")),
        _ => Ok(folder),
    }
}

/// A switch in one of the usual words.
pub(super) fn parse_switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}
