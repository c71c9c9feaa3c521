//! The flags of settings that concern listening. Those that every command understands are in `command_line`.

/// Flags of settings that concern listening.
#[derive(clap::Args, Clone, Debug, Default)]
pub(super) struct Listen {
    /// Address to listen on; 127.0.0.1 is this machine alone [env: ILIAD_ADDRESS] [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", help_heading = "Settings")]
    address: Option<String>,
    /// Port to listen on; 0 takes any free one and prints it [env: ILIAD_PORT] [default: 8642]
    #[arg(long, value_name = "PORT", help_heading = "Settings")]
    port: Option<String>,
    /// Train runs here; false serves pages alone, for processes that train on the same PostgreSQL database [env: ILIAD_TRAINS]
    /// [default: true]
    #[arg(long, value_name = "BOOL", help_heading = "Settings")]
    trains: Option<String>,
    /// Copy checkpoints to file:///FOLDER or s3://BUCKET/PREFIX, and take up runs from there; keys and endpoint of S3 come from the
    /// AWS_... variables [env: ILIAD_CHECKPOINTS] [default: none]
    #[arg(long, value_name = "ADDRESS", help_heading = "Settings")]
    checkpoints: Option<String>,
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
    /// Who may read the figures at /metrics: researchers, everyone or nobody [env: ILIAD_METRICS] [default: researchers]
    #[arg(long, value_name = "WHO", help_heading = "Settings")]
    metrics: Option<String>,
}

impl Listen {
    /// The flags that were given, by key of the setting.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'static str, String)> {
        let flags = [
            ("address", &self.address),
            ("port", &self.port),
            ("trains", &self.trains),
            ("checkpoints", &self.checkpoints),
            ("access_token", &self.access_token),
            ("base_path", &self.base_path),
            ("trust_proxy", &self.trust_proxy),
            ("nav_panoramas", &self.nav_panoramas),
            ("max_connections", &self.max_connections),
            ("max_connections_per_address", &self.max_connections_per_address),
            ("rate_limits", &self.rate_limits),
            ("metrics", &self.metrics),
        ];
        flags.into_iter().filter_map(|(key, value)| Some((key, value.clone()?)))
    }
}
