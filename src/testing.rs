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

/// Puts `absurd` in the place of the `n`-th number of a JSON value; `false` when there are fewer.
fn spoil(value: &mut serde_json::Value, n: &mut usize, absurd: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Number(_) if *n == 0 => {
            *value = absurd.clone();
            true
        }
        serde_json::Value::Number(_) => {
            *n -= 1;
            false
        }
        serde_json::Value::Array(all) => all.iter_mut().any(|value| spoil(value, n, absurd)),
        serde_json::Value::Object(all) => all.values_mut().any(|value| spoil(value, n, absurd)),
        _ => false,
    }
}

/// Checks that a blueprint is refused whichever of its numbers is absurd.
pub fn refuses_absurd_numbers(blueprint: &serde_json::Value, refused: impl Fn(&serde_json::Value) -> bool) {
    let absurd = ["0", "-1", "1000000000000000", "18446744073709551615", "1e300", "null"];
    let absurd = absurd.map(|text| serde_json::from_str::<serde_json::Value>(text).unwrap());
    let numbers = (0..).take_while(|n| spoil(&mut blueprint.clone(), &mut n.clone(), &absurd[0])).count();
    assert!(numbers >= 5, "the blueprint has numbers: {blueprint}");
    for n in 0..numbers {
        for absurd in &absurd {
            let mut bad = blueprint.clone();
            spoil(&mut bad, &mut n.clone(), absurd);
            assert!(refused(&bad), "number {n} may be {absurd}: {bad}");
        }
    }
}

/// Checks that every row of a family's tables is a configuration, and that the names of rows can be folders.
pub fn rows_are_configurations(tables: &crate::family::tables::Tables, preset: impl Fn(&str) -> &'static str) {
    for table in tables.all() {
        for row in &table.rows {
            configure(preset(&table.name), 1, &row.settings).unwrap();
            assert!(row.name.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c)), "{}", row.name);
        }
    }
}
