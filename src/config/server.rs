//! Where the program listens, what it writes to, and how it logs: parsed once, from four sources.
//!
//! A flag wins over an environment variable, that over the TOML file, that over the default. The file is the one named
//! by `--config` or `ILIAD_CONFIG`, else `iliad.toml` in the current folder if there is one. An unknown key in it, or a
//! value that cannot be used, is an error that names the key, the source and what is allowed. An empty environment
//! variable counts as unset. `iliad --print-config` shows the result and where each value came from.

use crate::suggest::{did_you_mean, nearest};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

mod checkpoints;
mod database;
mod sources;
mod values;

pub use checkpoints::CheckpointAddress;
pub use database::DatabaseAddress;
use sources::{Sources, read_file};
pub use values::{AccessToken, BasePath, DeviceChoice, LogFormat, LogLevel, MetricsReaders, PostgresAddress};
use values::{parse_address, parse_count, parse_folder, parse_port, parse_switch};

/// The file that is read when none is named.
pub const DEFAULT_FILE: &str = "iliad.toml";

/// Name of the database within the data folder.
pub const DATABASE: &str = "iliad.sqlite";

/// Folder of the uploaded corpora within the data folder.
pub const CORPORA: &str = "corpora";

/// Everything the server is told before it starts.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Address to listen on; loopback unless told otherwise.
    pub address: IpAddr,
    /// Port to listen on; 0 takes any free one (the address printed at start says which).
    pub port: u16,
    /// Folder that holds everything the server writes.
    pub data_dir: PathBuf,
    /// Address of a PostgreSQL database; `None`: the rows are in a file in the data folder.
    pub postgres: Option<PostgresAddress>,
    /// Whether this process trains; one that does not serves pages for those that do, over one database of PostgreSQL.
    pub trains: bool,
    /// The object store to which checkpoints are copied; `None`: they stay in the data folder.
    pub checkpoints: Option<CheckpointAddress>,
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
    /// Who may read the figures for Prometheus.
    pub metrics: MetricsReaders,
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
    "database", "ILIAD_DATABASE", "--database";
    "trains", "ILIAD_TRAINS", "--trains";
    "checkpoints", "ILIAD_CHECKPOINTS", "--checkpoints";
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
    "metrics", "ILIAD_METRICS", "--metrics";
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
        let (postgres, database_from) = sources.value("database", |t| t.parse().map(Some), None)?;
        let (trains, trains_from) = sources.value("trains", parse_switch, true)?;
        if !trains && postgres.is_none() {
            let problem = "a process without training serves the runs of others: name the database that they share, with \
                           --database or ILIAD_DATABASE";
            return Err(ConfigError::Value { setting: "trains", origin: trains_from, problem: problem.into() });
        }
        let (checkpoints, checkpoints_from) = sources.value("checkpoints", |t| t.parse().map(Some), None)?;
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
        let (metrics, metrics_from) = sources.value("metrics", str::parse, MetricsReaders::default())?;
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
            database_from,
            trains_from,
            checkpoints_from,
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
            metrics_from,
        ];
        Ok(ServerConfig {
            address,
            port,
            data_dir,
            postgres,
            trains,
            checkpoints,
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
            metrics,
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

    /// The database: that of PostgreSQL, or the file in the data folder.
    pub fn database(&self) -> DatabaseAddress {
        match &self.postgres {
            Some(address) => DatabaseAddress::Postgres(address.reveal().to_owned()),
            None => DatabaseAddress::File(self.data_dir.join(DATABASE)),
        }
    }

    /// Key, value as text, and where it came from, of every setting. The access token and the database's password are not shown.
    pub fn rows(&self) -> Vec<(&'static str, String, Origin)> {
        let token = match &self.access_token {
            Some(_) => "(set; not shown)",
            None => "(none)",
        };
        let values = [
            self.address.to_string(),
            self.port.to_string(),
            self.data_dir.display().to_string(),
            self.postgres
                .as_ref()
                .map_or_else(|| "(a file in the data folder)".to_owned(), |_| self.database().to_string()),
            self.trains.to_string(),
            self.checkpoints.as_ref().map_or_else(|| "(none)".to_owned(), ToString::to_string),
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
            self.metrics.to_string(),
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
    /// Who has the access token or a fitting account, on this machine as elsewhere.
    Token {
        /// Why this machine is no exception.
        because: &'static str,
    },
}

impl fmt::Display for Steering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Steering::ThisMachine => f.write_str(
                "browsers and programs on this machine steer runs, and from elsewhere who is signed in and may",
            ),
            Steering::Token { because } => {
                write!(
                    f,
                    "who is signed in and may, or has the access token, steers runs, on this machine too, because {because}"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
