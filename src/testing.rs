//! Helpers of the crate's own tests.

use std::path::PathBuf;

/// A folder of the development data that travels beside the checkout, or in `ILIAD_SHARED`. Tests that need it pass
/// without it and say what they skipped.
pub fn shared(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("ILIAD_SHARED")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared")));
    let path = root.join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: the development data `{name}` is not here");
    None
}

/// The configuration of a built-in preset with changes.
pub fn configure(
    preset: &str,
    seed: u64,
    set: &[String],
) -> Result<crate::config::run::RunConfig, crate::config::run::ConfigError> {
    crate::registry::Registry::builtin().configure(preset, seed, set)
}
