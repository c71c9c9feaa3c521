//! Where the rows are: in a file, or in a database of PostgreSQL.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a store's rows are.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseAddress {
    /// A file of SQLite, in the data folder unless somebody moved it.
    File(PathBuf),
    /// A database of PostgreSQL: `postgres://user:password@host/database`. It is never shown whole.
    Postgres(String),
}

impl DatabaseAddress {
    /// Whether something was stored there before; of PostgreSQL's that is left to find out.
    pub fn exists(&self) -> bool {
        match self {
            DatabaseAddress::File(path) => path.is_file(),
            DatabaseAddress::Postgres(_) => true,
        }
    }

    /// The file, where it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            DatabaseAddress::File(path) => Some(path),
            DatabaseAddress::Postgres(_) => None,
        }
    }
}

/// The path of a file, and of a PostgreSQL address what is no secret: host and database.
impl fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatabaseAddress::File(path) => write!(f, "{}", path.display()),
            DatabaseAddress::Postgres(address) => {
                let rest = address.split_once("://").map_or(address.as_str(), |(_, rest)| rest);
                let rest = rest.split('?').next().unwrap_or_default();
                write!(f, "postgres://{}", rest.rsplit('@').next().unwrap_or_default())
            }
        }
    }
}

impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<&DatabaseAddress> for DatabaseAddress {
    fn from(address: &DatabaseAddress) -> Self {
        address.clone()
    }
}

impl From<&Path> for DatabaseAddress {
    fn from(path: &Path) -> Self {
        DatabaseAddress::File(path.to_owned())
    }
}

impl From<&PathBuf> for DatabaseAddress {
    fn from(path: &PathBuf) -> Self {
        DatabaseAddress::File(path.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::DatabaseAddress;

    #[test]
    fn secrets_are_not_shown() {
        let shown = |address: &str| DatabaseAddress::Postgres(address.to_owned()).to_string();
        assert_eq!(
            shown("postgres://ada:p@ss@db.example:5433/iliad?sslmode=require"),
            "postgres://db.example:5433/iliad"
        );
        assert_eq!(shown("postgresql:///iliad?password=secret"), "postgres:///iliad");
        assert_eq!(format!("{:?}", DatabaseAddress::Postgres("postgres://a:b@c/d".to_owned())), "postgres://c/d");
    }
}
