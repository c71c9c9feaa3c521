//! The REGEX experiments of the paper, with the figures that it reports: the contents of `tables.toml`.

use crate::family::tables::Tables;
use std::sync::LazyLock;

/// The family's tables and figures.
pub static TABLES: LazyLock<Tables> =
    LazyLock::new(|| Tables::built_in("regex/tables.toml", include_str!("tables.toml")));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::configure;

    #[test]
    fn every_row_is_a_configuration_and_names_are_folders() {
        for table in TABLES.all() {
            let preset = if table.name == "efficient" { "efficient" } else { "regex/paper" };
            for row in &table.rows {
                configure(preset, 1, &row.settings).unwrap();
                assert!(row.name.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c)), "{}", row.name);
            }
        }
        let known = |name: &str| TABLES.table(name).is_some();
        assert!(["main", "mixing", "anneal", "efficient"].into_iter().all(known) && !known("other"));
        assert_eq!(TABLES.figure("curves").unwrap().rows, TABLES.table("main").unwrap().rows);
        assert!(TABLES.figure("other").is_none());
    }
}
