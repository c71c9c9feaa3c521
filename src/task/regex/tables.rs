//! The REGEX experiments of the paper, with the figures that it reports: the contents of `tables.toml`.

use crate::family::tables::Tables;
use std::sync::LazyLock;

/// The family's tables and figures.
pub static TABLES: LazyLock<Tables> =
    LazyLock::new(|| Tables::built_in("regex/tables.toml", include_str!("tables.toml")));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rows_are_configurations;

    #[test]
    fn every_row_is_a_configuration_and_names_are_folders() {
        rows_are_configurations(&TABLES, |table| match table {
            "efficient" => "efficient",
            "small" => "small",
            "tiny" => "tiny",
            _ => "regex/paper",
        });
        let known = |name: &str| TABLES.table(name).is_some();
        assert!(["main", "mixing", "anneal", "efficient", "small", "tiny"].into_iter().all(known) && !known("other"));
        assert_eq!(TABLES.figure("curves").unwrap().rows, TABLES.table("main").unwrap().rows);
        assert!(TABLES.figure("other").is_none());
    }
}
