//! Where the program listens, what it writes to, and how it logs: parsed once, from four sources.
//!
//! A flag wins over an environment variable, that over the TOML file, that over the default. The file is the one named
//! by `--config` or `ILIAD_CONFIG`, else `iliad.toml` in the current folder if there is one. An unknown key in it, or a
//! value that cannot be used, is an error that names the key, the source and what is allowed. An empty environment
//! variable counts as unset. `iliad --print-config` shows the result and where each value came from.

use crate::output::json::unmarked;
use crate::suggest::{did_you_mean, nearest};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The file that is read when none is named.
pub const DEFAULT_FILE: &str = "iliad.toml";

/// Name of the database within the data folder.
pub const DATABASE: &str = "iliad.sqlite";

/// Everything the server is told before it starts.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Address to listen on; loopback unless told otherwise.
    pub address: IpAddr,
    /// Port to listen on; 0 takes any free one (the address printed at start says which).
    pub port: u16,
    /// Folder that holds everything the server writes.
    pub data_dir: PathBuf,
    /// Where models run.
    pub device: DeviceChoice,
    /// The log's filter.
    pub log_level: LogLevel,
    /// How it is written.
    pub log_format: LogFormat,
    /// Token that lets people steer runs. Made at start when others may come here ([`ServerConfig::steering`]) and none is
    /// given; `None`: only this machine steers.
    pub access_token: Option<AccessToken>,
    /// Path in front of every page's address, for proxies.
    pub base_path: BasePath,
    /// Whether a proxy in front is believed when it says where a request came from (`X-Forwarded-…`).
    pub trust_proxy: bool,
    /// Folder with photographs of real houses for NAV's pages; `None`: they show graph and objects.
    pub nav_panoramas: Option<PathBuf>,
    /// Most connections at once; 0: as many as the system's limit of open files leaves room for.
    pub max_connections: usize,
    /// Most connections at once of one address; 0: half of all, or all of them where a proxy may be the peer.
    pub max_connections_per_address: usize,
    /// Whether visitors are kept from doing things too often.
    pub rate_limits: bool,
    /// Where each value came from, in the order of [`SETTINGS`].
    origins: Vec<Origin>,
}

/// One setting's names and help.
pub struct Setting {
    /// Key in the TOML file.
    pub key: &'static str,
    /// Environment variable.
    pub variable: &'static str,
    /// Flag.
    pub flag: &'static str,
}

macro_rules! settings {
    ($($key:literal, $variable:literal, $flag:literal;)*) => {
        /// All settings, in the order they are shown.
        pub const SETTINGS: &[Setting] = &[$(Setting { key: $key, variable: $variable, flag: $flag }),*];
    };
}

settings! {
    "address", "ILIAD_ADDRESS", "--address";
    "port", "ILIAD_PORT", "--port";
    "data_dir", "ILIAD_DATA_DIR", "--data-dir";
    "device", "ILIAD_DEVICE", "--device";
    "log_level", "ILIAD_LOG_LEVEL", "--log-level";
    "log_format", "ILIAD_LOG_FORMAT", "--log-format";
    "access_token", "ILIAD_ACCESS_TOKEN", "--access-token";
    "base_path", "ILIAD_BASE_PATH", "--base-path";
    "trust_proxy", "ILIAD_TRUST_PROXY", "--trust-proxy";
    "nav_panoramas", "ILIAD_NAV_PANORAMAS", "--nav-panoramas";
    "max_connections", "ILIAD_MAX_CONNECTIONS", "--max-connections";
    "max_connections_per_address", "ILIAD_MAX_CONNECTIONS_PER_ADDRESS", "--max-connections-per-address";
    "rate_limits", "ILIAD_RATE_LIMITS", "--rate-limits";
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The TOML file.
    File(PathBuf),
    /// An environment variable.
    Environment(&'static str),
    /// A flag on the command line.
    Flag(&'static str),
    /// Made when the program started.
    Generated,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Environment(variable) => f.write_str(variable),
            Origin::Flag(flag) => f.write_str(flag),
            Origin::Generated => f.write_str("made at start"),
        }
    }
}

/// A setting that cannot be used, in plain words.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration file {path} cannot be read: {cause}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// A key that does not exist.
    #[error("{path} has an unknown key `{key}`{}; the keys are {}", did_you_mean(key, keys()), keys().collect::<Vec<_>>().join(", "))]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
    },
    /// An environment variable that is no setting, but nearly one.
    #[error("the environment variable {name} is no setting; did you mean {meant}? docs/configuration.md lists them")]
    UnknownVariable {
        /// The variable.
        name: String,
        /// The one that was meant.
        meant: &'static str,
    },
    /// A value that is not allowed.
    #[error("{setting} (from {origin}): {problem}")]
    Value {
        /// Key of the setting.
        setting: &'static str,
        /// Where the value came from.
        origin: Origin,
        /// The fault, and the values that are allowed.
        problem: String,
    },
}

fn keys() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|setting| setting.key)
}

/// The prefix of all variables of settings.
const PREFIX: &str = "ILIAD_";

/// The variable that names the configuration file.
const FILE_VARIABLE: &str = "ILIAD_CONFIG";

/// Looks for slips among the names of environment variables: a misspelt `ILIAD_ACCESS_TOKEN` must not leave a server
/// without the token that somebody gave it.
///
/// # Errors
/// Names the first variable that is no setting but nearly one.
pub fn check_variables(names: impl IntoIterator<Item = String>) -> Result<Vec<String>, ConfigError> {
    let known = || SETTINGS.iter().map(|setting| setting.variable).chain([FILE_VARIABLE]);
    let mut others = Vec::new();
    for name in names {
        let Some(own) = name.strip_prefix(PREFIX) else { continue };
        // Kubernetes gives every container variables of this form for a service called `iliad`.
        let service = own.starts_with("SERVICE_") || own.starts_with("PORT_");
        if service || known().any(|variable| variable == name) {
            continue;
        }
        match nearest(own, known().filter_map(|variable| variable.strip_prefix(PREFIX))) {
            Some(near) => {
                let meant =
                    known().find(|variable| variable.strip_prefix(PREFIX) == Some(near)).unwrap_or(FILE_VARIABLE);
                return Err(ConfigError::UnknownVariable { name, meant });
            }
            None => others.push(name),
        }
    }
    others.sort();
    Ok(others)
}

/// The command line's values: a text per setting, in the order of [`SETTINGS`], and the file.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--config`.
    pub file: Option<PathBuf>,
    /// Values of the flags that were given, by key of the setting.
    pub given: Vec<(&'static str, String)>,
}

impl ServerConfig {
    /// Reads all sources: the flags given, this process's environment, the file, the defaults.
    ///
    /// # Errors
    /// Names the setting, its source and what is allowed.
    pub fn load(flags: &Flags) -> Result<ServerConfig, ConfigError> {
        check_variables(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))?;
        ServerConfig::resolve(flags, |variable| std::env::var(variable).ok(), Path::new("."))
    }

    /// As [`ServerConfig::load`], with the environment and the current folder given.
    pub fn resolve(
        flags: &Flags,
        environment: impl Fn(&str) -> Option<String>,
        folder: &Path,
    ) -> Result<ServerConfig, ConfigError> {
        let environment = |variable: &str| environment(variable).filter(|value| !value.is_empty());
        let file = match flags.file.clone().or_else(|| environment(FILE_VARIABLE).map(PathBuf::from)) {
            Some(path) => Some(path),
            None => Some(folder.join(DEFAULT_FILE)).filter(|path| path.is_file()),
        };
        let sources = Sources {
            flags: &flags.given,
            environment: &environment,
            file: file.as_deref().map(read_file).transpose()?.unwrap_or_default(),
            path: file.unwrap_or_default(),
        };
        let (address, address_from) = sources.value("address", parse_address, IpAddr::V4(Ipv4Addr::LOCALHOST))?;
        let (port, port_from) = sources.value("port", parse_port, 8642)?;
        let (data_dir, data_dir_from) = sources.value("data_dir", |t| Ok(PathBuf::from(t)), "iliad-data".into())?;
        let (device, device_from) = sources.value("device", str::parse, DeviceChoice::Auto)?;
        let (log_level, level_from) = sources.value("log_level", str::parse, LogLevel::default())?;
        let (log_format, format_from) = sources.value("log_format", str::parse, LogFormat::Text)?;
        let (given, mut token_from) = sources.value("access_token", |t| t.parse().map(Some), None)?;
        let (base_path, base_from) = sources.value("base_path", str::parse, BasePath::default())?;
        let (trust_proxy, trust_from) = sources.value("trust_proxy", parse_switch, false)?;
        let (nav_panoramas, panoramas_from) = sources.value("nav_panoramas", parse_folder, None)?;
        let (max_connections, connections_from) = sources.value("max_connections", parse_count, 0)?;
        let (max_connections_per_address, per_address_from) =
            sources.value("max_connections_per_address", parse_count, 0)?;
        let (rate_limits, rates_from) = sources.value("rate_limits", parse_switch, true)?;
        let access_token = match given {
            None if !address.is_loopback() || trust_proxy || base_path != BasePath::default() => {
                token_from = Origin::Generated;
                Some(AccessToken::generate())
            }
            given => given,
        };
        let origins = vec![
            address_from,
            port_from,
            data_dir_from,
            device_from,
            level_from,
            format_from,
            token_from,
            base_from,
            trust_from,
            panoramas_from,
            connections_from,
            per_address_from,
            rates_from,
        ];
        Ok(ServerConfig {
            address,
            port,
            data_dir,
            device,
            log_level,
            log_format,
            access_token,
            base_path,
            trust_proxy,
            nav_panoramas,
            max_connections,
            max_connections_per_address,
            rate_limits,
            origins,
        })
    }

    /// Who may steer, and why. The exception for this machine holds only where nothing says that others come here, too.
    pub fn steering(&self) -> Steering {
        let reasons = [
            (!self.address.is_loopback(), "the address is one that other machines reach"),
            (self.trust_proxy, "a proxy is trusted"),
            (self.base_path != BasePath::default(), "a base path is set"),
            (self.access_token.is_some(), "an access token is set"),
        ];
        match reasons.into_iter().find(|(holds, _)| *holds) {
            Some((_, because)) => Steering::Token { because },
            None => Steering::ThisMachine,
        }
    }

    /// Where the access token came from.
    pub fn token_origin(&self) -> &Origin {
        let at = SETTINGS.iter().position(|setting| setting.key == "access_token");
        at.and_then(|at| self.origins.get(at)).unwrap_or(&Origin::Default)
    }

    /// The database file.
    pub fn database(&self) -> PathBuf {
        self.data_dir.join(DATABASE)
    }

    /// Key, value as text, and where it came from, of every setting. The access token itself is not shown.
    pub fn rows(&self) -> Vec<(&'static str, String, Origin)> {
        let token = match &self.access_token {
            Some(_) => "(set; not shown)",
            None => "(none)",
        };
        let values = [
            self.address.to_string(),
            self.port.to_string(),
            self.data_dir.display().to_string(),
            self.device.to_string(),
            self.log_level.to_string(),
            self.log_format.to_string(),
            token.to_string(),
            self.base_path.to_string(),
            self.trust_proxy.to_string(),
            self.nav_panoramas.as_ref().map(|folder| folder.display().to_string()).unwrap_or_default(),
            self.max_connections.to_string(),
            self.max_connections_per_address.to_string(),
            self.rate_limits.to_string(),
        ];
        let keys = SETTINGS.iter().map(|setting| setting.key);
        keys.zip(values).zip(&self.origins).map(|((key, value), origin)| (key, value, origin.clone())).collect()
    }
}

/// Who may steer runs and read their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steering {
    /// Browsers and programs on this machine, without a token.
    ThisMachine,
    /// Who has the access token, on this machine as elsewhere.
    Token {
        /// Why this machine is no exception.
        because: &'static str,
    },
}

impl fmt::Display for Steering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Steering::ThisMachine => f.write_str("browsers and programs on this machine steer runs, nobody else does"),
            Steering::Token { because } => {
                write!(f, "whoever has the access token steers runs, on this machine too, because {because}")
            }
        }
    }
}

/// The sources in their precedence.
struct Sources<'a> {
    flags: &'a [(&'static str, String)],
    environment: &'a dyn Fn(&str) -> Option<String>,
    file: Vec<(String, String)>,
    path: PathBuf,
}

impl Sources<'_> {
    /// The text of a setting and where it came from.
    fn text(&self, setting: &'static Setting) -> Option<(String, Origin)> {
        if let Some((_, text)) = self.flags.iter().find(|(key, _)| *key == setting.key) {
            return Some((text.clone(), Origin::Flag(setting.flag)));
        }
        if let Some(text) = (self.environment)(setting.variable) {
            return Some((text, Origin::Environment(setting.variable)));
        }
        let (_, text) = self.file.iter().find(|(key, _)| key == setting.key)?;
        Some((text.clone(), Origin::File(self.path.clone())))
    }

    fn value<T>(
        &self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
        default: T,
    ) -> Result<(T, Origin), ConfigError> {
        let setting = SETTINGS.iter().find(|setting| setting.key == key).expect("only keys of SETTINGS are asked for");
        let Some((text, origin)) = self.text(setting) else { return Ok((default, Origin::Default)) };
        match parse(text.trim()) {
            Ok(value) => Ok((value, origin)),
            Err(problem) => Err(ConfigError::Value { setting: key, origin, problem }),
        }
    }
}

/// Keys and values of the TOML file as texts.
fn read_file(path: &Path) -> Result<Vec<(String, String)>, ConfigError> {
    let unreadable = |cause: String| ConfigError::File { path: path.to_owned(), cause };
    let bytes = std::fs::read(path).map_err(|e| unreadable(e.to_string()))?;
    let text = std::str::from_utf8(unmarked(&bytes)).map_err(|_| unreadable("it is not UTF-8".into()))?;
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| unreadable(e.to_string()))?;
    table
        .into_iter()
        .map(|(key, value)| {
            let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) else {
                return Err(ConfigError::UnknownKey { path: path.to_owned(), key });
            };
            match value {
                toml::Value::String(text) => Ok((key, text)),
                toml::Value::Integer(number) => Ok((key, number.to_string())),
                toml::Value::Boolean(switch) => Ok((key, switch.to_string())),
                other => Err(ConfigError::Value {
                    setting: setting.key,
                    origin: Origin::File(path.to_owned()),
                    problem: format!("a text or a number is expected, not a TOML {}", other.type_str()),
                }),
            }
        })
        .collect()
}

fn parse_address(text: &str) -> Result<IpAddr, String> {
    if text.eq_ignore_ascii_case("localhost") {
        return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    bare.parse().map_err(|_| {
        format!("{text:?} is no IP address; use 127.0.0.1 for this machine alone, 0.0.0.0 for all networks")
    })
}

fn parse_port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("{text:?} is no port; use a number from 0 (any free port) to 65535"))
}

fn parse_count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{text:?} is no number of connections; 0 leaves it to the program"))
}

/// A folder that is there; an empty text is none.
fn parse_folder(text: &str) -> Result<Option<PathBuf>, String> {
    let folder = Some(PathBuf::from(text)).filter(|_| !text.is_empty());
    match &folder {
        Some(path) if !path.is_dir() => Err(format!("there is no folder {text}")),
        _ => Ok(folder),
    }
}

fn parse_switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}

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

#[cfg(test)]
mod tests;
