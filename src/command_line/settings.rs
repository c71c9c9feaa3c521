//! The flags of the settings that every command understands.

use super::CliError;
use crate::config::server::{Flags, ServerConfig, check_variables};
use crate::telemetry;
use std::path::PathBuf;

/// Flags of settings that every command understands.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Common {
    /// Read settings from this TOML file [env: ILIAD_CONFIG] [default: ./iliad.toml if there is one]
    #[arg(long, value_name = "FILE", help_heading = "Settings")]
    config: Option<PathBuf>,
    /// Folder that holds everything Iliad writes [env: ILIAD_DATA_DIR] [default: iliad-data]
    #[arg(long, value_name = "DIR", help_heading = "Settings")]
    data_dir: Option<String>,
    /// PostgreSQL database in the place of the file, postgres://user@host/name; better set by the variable, since it may hold a
    /// password [env: ILIAD_DATABASE] [default: a file in the data folder]
    #[arg(long, value_name = "ADDRESS", help_heading = "Settings")]
    database: Option<String>,
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

impl Common {
    /// Settings from all sources, and logging started by them.
    ///
    /// # Errors
    /// When a setting cannot be read, in a sentence that says what to change.
    pub fn load(&self) -> Result<ServerConfig, CliError> {
        self.load_with([])
    }

    /// As [`Common::load`], with the values of further flags by key of the setting.
    ///
    /// # Errors
    /// As [`Common::load`].
    pub fn load_with(
        &self,
        further: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<ServerConfig, CliError> {
        let settings = self.read(further)?;
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

    /// As [`Common::load_with`], without logging.
    ///
    /// # Errors
    /// As [`Common::load`].
    pub fn read(&self, further: impl IntoIterator<Item = (&'static str, String)>) -> Result<ServerConfig, CliError> {
        let flags = [
            ("data_dir", &self.data_dir),
            ("database", &self.database),
            ("device", &self.device),
            ("log_level", &self.log_level),
            ("log_format", &self.log_format),
        ];
        let given = flags.into_iter().filter_map(|(key, value)| Some((key, value.clone()?))).chain(further).collect();
        let flags = Flags { file: self.config.clone(), given };
        ServerConfig::load(&flags).map_err(|e| CliError::Usage(e.to_string()))
    }
}
