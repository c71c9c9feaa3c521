//! `iliad serve`: the web application.

use super::run_settings::RunSettings;
use super::runtime;
use super::settings::Listen;
use crate::app::FirstRun;
use crate::command_line::settings::Common;
use crate::command_line::{CliResult, Exit};
use crate::config::server::ServerConfig;
use crate::registry::Registry;

const AFTER: &str = "\
Examples:
  iliad serve                                     on http://127.0.0.1:8642, for this machine alone
  iliad serve --port 0                            on any free port; the address is printed
  iliad serve --address 0.0.0.0                   for other machines, too; prints the access token to steer runs
  iliad serve --base-path /iliad --trust-proxy    behind a proxy that serves it under /iliad
  iliad serve --print-config                      all settings and where each came from

Ctrl+C ends it in an orderly way: runs write a checkpoint and go on at the next start.";

/// Flags of `iliad serve` and of plain `iliad`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER, mut_arg("preset", |preset| preset.default_value("small")))]
pub(super) struct Args {
    /// Show all settings and where each came from, then end
    #[arg(long)]
    pub print_config: bool,
    #[command(flatten, next_help_heading = "Run that is started in an empty data folder")]
    pub first: RunSettings,
    #[command(flatten)]
    pub listen: Listen,
    #[command(flatten)]
    pub common: Common,
}

/// Carries out `iliad serve`.
pub(super) fn run(args: &Args, registry: Registry) -> CliResult {
    if args.print_config {
        crate::output::print(format_args!("{}", table(&args.common.read(args.listen.given())?)))?;
        return Ok(Exit::Done);
    }
    let settings = args.common.load_with(args.listen.given())?;
    args.first.configuration(registry)?;
    let RunSettings { preset, seed, overrides } = args.first.clone();
    let first = FirstRun { preset, seed, set: overrides.set };
    crate::nn::device::keep_compiled(&settings.data_dir);
    runtime()?.block_on(crate::app::serve(&settings, first, registry))?;
    Ok(Exit::Done)
}

/// The settings as aligned TOML, each with its source as a comment: what is shown can be copied into `iliad.toml`.
fn table(settings: &ServerConfig) -> String {
    let rows: Vec<(String, String)> = settings
        .rows()
        .into_iter()
        .map(|(key, value, origin)| {
            let line = match key {
                // Secrets are not shown, so that these lines set nothing.
                "access_token" | "database" => format!("# {key} = {value}"),
                "checkpoints" if settings.checkpoints.is_none() => format!("# {key} = {value}"),
                "port"
                | "trains"
                | "trust_proxy"
                | "max_connections"
                | "max_connections_per_address"
                | "rate_limits" => {
                    format!("{key} = {value}")
                }
                _ => format!("{key} = {}", toml::Value::String(value)),
            };
            (line, format!("# {origin}"))
        })
        .collect();
    let width = rows.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    let lines: String = rows.iter().map(|(line, origin)| format!("{line:<width$}  {origin}\n")).collect();
    format!("{lines}# steering: {}\n", settings.steering())
}

#[cfg(test)]
mod tests {
    use super::table;
    use crate::config::server::{Flags, ServerConfig};

    #[test]
    fn the_printed_settings_are_a_file_that_gives_the_same_settings() {
        let given = vec![
            ("address", "0.0.0.0".to_string()),
            ("port", "0".into()),
            ("data_dir", "a \"quoted\" folder".into()),
            ("base_path", "/iliad".into()),
            ("access_token", "a-secret-of-mine".into()),
        ];
        let flags = Flags { file: None, given };
        let folder = tempfile::tempdir().unwrap();
        let first = ServerConfig::resolve(&flags, |_| None, folder.path()).unwrap();
        let printed = table(&first);
        assert!(!printed.contains("a-secret-of-mine"), "{printed}");
        assert!(printed.contains("# --port\n") && printed.contains("# default\n"), "{printed}");
        std::fs::write(folder.path().join("iliad.toml"), &printed).unwrap();
        let second = ServerConfig::resolve(&Flags::default(), |_| None, folder.path()).unwrap();
        let values = |c: &ServerConfig| c.rows().into_iter().map(|row| (row.0, row.1)).collect::<Vec<_>>();
        assert_eq!(values(&second), values(&first));
    }
}
