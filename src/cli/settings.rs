//! The flags of the server's settings, shared by all commands that need some of them.

use super::CliError;
use crate::config::server::{Flags, ServerConfig, check_variables};
use crate::telemetry;
use std::path::PathBuf;

/// Flags of settings that every command understands.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct Common {
    /// Read settings from this TOML file [env: ILIAD_CONFIG] [default: ./iliad.toml if there is one]
    #[arg(long, value_name = "FILE", help_heading = "Settings")]
    config: Option<PathBuf>,
    /// Folder that holds everything Iliad writes [env: ILIAD_DATA_DIR] [default: iliad-data]
    #[arg(long, value_name = "DIR", help_heading = "Settings")]
    data_dir: Option<String>,
    /// Device that models run on: auto, cpu, cuda or cuda:N [env: ILIAD_DEVICE] [default: auto]
    #[arg(long, value_name = "DEVICE", help_heading = "Settings")]
    device: Option<String>,
    /// Logged messages: off, error, warn, info, debug, trace, or a filter [env: ILIAD_LOG_LEVEL] [default: info]
    #[arg(long, value_name = "LEVEL", help_heading = "Settings")]
    log_level: Option<String>,
    /// Format of log lines: text or json [env: ILIAD_LOG_FORMAT] [default: text]
    #[arg(long, value_name = "FORMAT", help_heading = "Settings")]
    log_format: Option<String>,
}

/// Flags of settings that concern listening.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct Listen {
    /// Address to listen on; 127.0.0.1 is this machine alone [env: ILIAD_ADDRESS] [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", help_heading = "Settings")]
    address: Option<String>,
    /// Port to listen on; 0 takes any free one and prints it [env: ILIAD_PORT] [default: 8642]
    #[arg(long, value_name = "PORT", help_heading = "Settings")]
    port: Option<String>,
    /// Token that lets people on other machines steer runs; better set by the variable, since others on this machine
    /// can read command lines [env: ILIAD_ACCESS_TOKEN] [default: made at start where others may come]
    #[arg(long, value_name = "TOKEN", help_heading = "Settings")]
    access_token: Option<String>,
    /// Path in front of every address, for a proxy that serves Iliad under a sub-path [env: ILIAD_BASE_PATH]
    /// [default: none]
    #[arg(long, value_name = "PATH", help_heading = "Settings")]
    base_path: Option<String>,
    /// Believe the X-Forwarded headers of a proxy in front [env: ILIAD_TRUST_PROXY] [default: false]
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        help_heading = "Settings"
    )]
    trust_proxy: Option<String>,
    /// Folder with photographs of real houses, {house}/{viewpoint}.jpg, for pages that show walks
    /// [env: ILIAD_NAV_PANORAMAS] [default: none]
    #[arg(long, value_name = "DIR", help_heading = "Settings")]
    nav_panoramas: Option<String>,
    /// Most connections at once; 0 takes what the limit of open files leaves room for [env: ILIAD_MAX_CONNECTIONS]
    /// [default: 0]
    #[arg(long, value_name = "N", help_heading = "Settings")]
    max_connections: Option<String>,
    /// Most connections at once of one address; 0 is half of all, or all of them with --trust-proxy
    /// [env: ILIAD_MAX_CONNECTIONS_PER_ADDRESS] [default: 0]
    #[arg(long, value_name = "N", help_heading = "Settings")]
    max_connections_per_address: Option<String>,
    /// Keep visitors from doing things too often [env: ILIAD_RATE_LIMITS] [default: true]
    #[arg(long, value_name = "BOOL", help_heading = "Settings")]
    rate_limits: Option<String>,
}

impl Common {
    /// Settings from all sources, and logging started by them.
    pub(super) fn load(&self) -> Result<ServerConfig, CliError> {
        self.load_with(&Listen::default())
    }

    /// As [`Common::load`], with the flags about listening.
    pub(super) fn load_with(&self, listen: &Listen) -> Result<ServerConfig, CliError> {
        let settings = self.read(listen)?;
        telemetry::init(&settings.log_level, settings.log_format);
        for name in check_variables(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))
            .map_err(|e| CliError::Usage(e.to_string()))?
        {
            tracing::warn!(
                "the environment variable {name} is no setting and changes nothing; docs/configuration.md lists them"
            );
        }
        Ok(settings)
    }

    /// Settings from all sources.
    pub(super) fn read(&self, listen: &Listen) -> Result<ServerConfig, CliError> {
        let flags = [
            ("address", &listen.address),
            ("port", &listen.port),
            ("data_dir", &self.data_dir),
            ("device", &self.device),
            ("log_level", &self.log_level),
            ("log_format", &self.log_format),
            ("access_token", &listen.access_token),
            ("base_path", &listen.base_path),
            ("trust_proxy", &listen.trust_proxy),
            ("nav_panoramas", &listen.nav_panoramas),
            ("max_connections", &listen.max_connections),
            ("max_connections_per_address", &listen.max_connections_per_address),
            ("rate_limits", &listen.rate_limits),
        ];
        let given = flags.into_iter().filter_map(|(key, value)| Some((key, value.clone()?))).collect();
        let flags = Flags { file: self.config.clone(), given };
        ServerConfig::load(&flags).map_err(|e| CliError::Usage(e.to_string()))
    }
}
