//! Errors of the store, in plain words. The databases' codes end here.

use crate::ids::AnswerId;
use sqlx::postgres::PgDatabaseError;
use sqlx::sqlite::SqliteError;

/// Result of a store call.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why the store could not do what was asked. sqlx is hidden behind it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such row; the text names it with its article: "the run".
    #[error("{0} does not exist")]
    NotFound(&'static str),
    /// The lease is gone: it ran out and somebody else has the execution, or it was answered already.
    #[error("this execution is no longer yours")]
    LeaseLost,
    /// The teacher has never had the execution.
    #[error("this execution was never yours")]
    NeverYours,
    /// The answer was corrected elsewhere, or is too old to correct.
    #[error("this answer can no longer be changed")]
    Superseded,
    /// The `client_key` was stored before with other words; nothing was written. To replace those words, send a
    /// correction of `answer` under a new key.
    #[error("this was sent before with other words")]
    KeyReused {
        /// The answer stored under the key.
        answer: AnswerId,
    },
    /// It contradicts what is stored: a run of this name exists, an answer was used in another update.
    #[error("{0}")]
    Conflict(String),
    /// The data itself cannot be stored; the text says which part and what is allowed.
    #[error("{0}")]
    Invalid(String),
    /// Another program held the database for longer than the store waits. Trying again is harmless.
    #[error("the database is busy; try again")]
    Busy,
    /// The disk has no room left. Nothing of the call was kept; it can be made again when there is room.
    #[error("the disk is full")]
    DiskFull,
    /// The file or its file system may only be read; it does not become writable by waiting.
    #[error("the database can only be read, not written")]
    ReadOnly,
    /// The machine refused something that it gives at other times: a file descriptor, memory, a write. The text says
    /// which, as far as SQLite tells. Nothing of the call was kept; it can be made again.
    #[error("{what}")]
    Transient {
        /// A sentence that says which request was refused, without its full stop.
        what: &'static str,
        /// The cause, for the log.
        #[source]
        cause: sqlx::Error,
    },
    /// The file cannot be opened as it is; the text names the file and says what to do.
    #[error("{}: {why}", file.display())]
    File {
        /// The file.
        file: std::path::PathBuf,
        /// A sentence that says why, and how to mend it.
        why: String,
    },
    /// The database file is damaged, not a database, or from a newer version.
    #[error("the database cannot be used: {0}")]
    Unusable(String),
    /// Anything else; the cause is for the log.
    #[error("the database failed")]
    Database(#[source] sqlx::Error),
}

impl StoreError {
    /// Whether the same call can succeed later without anybody changing what is asked for: the disk gets room again,
    /// another program lets go of the database, the machine has descriptors and memory again. Who can wait, waits.
    pub fn is_transient(&self) -> bool {
        matches!(self, StoreError::DiskFull | StoreError::Busy | StoreError::Transient { .. })
    }
}

/// SQLite's primary result codes that people can do something about (<https://www.sqlite.org/rescode.html>).
mod code {
    pub const BUSY: i32 = 5;
    pub const LOCKED: i32 = 6;
    pub const NOMEM: i32 = 7;
    pub const READONLY: i32 = 8;
    pub const IOERR: i32 = 10;
    pub const CORRUPT: i32 = 11;
    pub const FULL: i32 = 13;
    pub const CANTOPEN: i32 = 14;
    pub const PROTOCOL: i32 = 15;
    pub const CONSTRAINT: i32 = 19;
    pub const NOTADB: i32 = 26;

    /// Extended codes: fewer bytes came than the file should have, or the file system found its own data damaged.
    pub const IOERR_DAMAGE: [i32; 3] = [IOERR | (2 << 8), IOERR | (32 << 8), IOERR | (33 << 8)];
    pub const IOERR_NOMEM: i32 = IOERR | (12 << 8);
    pub const READONLY_RECOVERY: i32 = READONLY | (1 << 8);
    pub const CHECK: i32 = CONSTRAINT | (1 << 8);
    pub const FOREIGN_KEY: i32 = CONSTRAINT | (3 << 8);
}

/// SQLite's extended result code of an error, when SQLite is where it came from.
fn sqlite_code(error: &sqlx::Error) -> Option<i32> {
    let error = error.as_database_error()?;
    error.try_downcast_ref::<SqliteError>()?;
    error.code()?.parse().ok()
}

/// PostgreSQL's error, when it is where it came from.
fn postgres_error(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error.as_database_error()?.try_downcast_ref()
}

/// Translates an error of PostgreSQL by its code (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).
fn from_postgres(error: sqlx::Error) -> StoreError {
    let code = postgres_error(&error).map(|error| error.code().to_owned()).unwrap_or_default();
    let transient = |what, cause| StoreError::Transient { what, cause };
    match code.as_str() {
        "53100" => StoreError::DiskFull,
        "53200" => transient("there is not enough memory for the database", error),
        // Too many connections, a lock that another holds, a transaction that has to be made again.
        "53300" | "40001" | "40P01" | "55P03" => StoreError::Busy,
        "25006" => StoreError::ReadOnly,
        "57P01" | "57P02" | "57P03" => transient("the database is restarting", error),
        "58030" => transient("the disk refused a read or a write of the database", error),
        "XX001" | "XX002" => StoreError::Unusable("PostgreSQL found damage in it; restore a backup".into()),
        "23514" => StoreError::Invalid(check_in_words(&error)),
        code if code.starts_with("08") => transient("a connection to the database broke", error),
        _ => StoreError::Database(error),
    }
}

/// The advice for a file whose pages do not fit together.
pub(super) const DAMAGED: &str = "stop Iliad, keep a copy of the file, and restore a backup (`iliad restore`)";

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let transient = |what, cause| StoreError::Transient { what, cause };
        match &error {
            sqlx::Error::PoolTimedOut => return StoreError::Busy,
            // A connection has a thread of its own, which the system may refuse, or which ended.
            sqlx::Error::WorkerCrashed => return transient("a connection to the database broke", error),
            sqlx::Error::Io(cause) => {
                return match cause.kind() {
                    std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => StoreError::DiskFull,
                    _ => transient("the system refused a connection to the database", error),
                };
            }
            _ => {}
        }
        if postgres_error(&error).is_some() {
            return from_postgres(error);
        }
        let Some(extended) = sqlite_code(&error) else { return StoreError::Database(error) };
        match extended & 0xff {
            code::FULL => StoreError::DiskFull,
            // The other side files are being made by a writer at this moment.
            code::READONLY if extended == code::READONLY_RECOVERY => StoreError::Busy,
            code::READONLY => StoreError::ReadOnly,
            code::NOMEM => transient("there is not enough memory for the database", error),
            code::IOERR if extended == code::IOERR_NOMEM => {
                transient("there is not enough memory for the database", error)
            }
            code::IOERR if code::IOERR_DAMAGE.contains(&extended) => {
                StoreError::Unusable("the disk does not give back what was written".into())
            }
            // SQLite does not say whether it was room, a quota, the network or the device.
            code::IOERR => transient("the disk refused a read or a write of the database", error),
            code::BUSY | code::LOCKED | code::PROTOCOL => StoreError::Busy,
            code::CORRUPT => StoreError::Unusable(format!("its file is damaged; {DAMAGED}")),
            code::NOTADB => StoreError::Unusable("the file is not an SQLite database".into()),
            // The file was opened before: it is the next opening that the system refuses.
            code::CANTOPEN => transient("the database's files could not be opened just now", error),
            code::CONSTRAINT if extended == code::CHECK => StoreError::Invalid(check_in_words(&error)),
            _ => StoreError::Database(error),
        }
    }
}

impl From<sqlx::migrate::MigrateError> for StoreError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        use sqlx::migrate::MigrateError as M;
        match error {
            M::Execute(e) | M::ExecuteMigration(e, _) => e.into(),
            M::VersionMissing(version) | M::VersionTooNew(version, _) => StoreError::Unusable(format!(
                "a newer version of Iliad made it (migration {version}); use that version"
            )),
            M::VersionMismatch(version) => StoreError::Unusable(format!(
                "another build of Iliad made it (its migration {version} differs); use that build"
            )),
            other => StoreError::Unusable(other.to_string()),
        }
    }
}

/// "CHECK constraint failed: client_key_has_1_to_64_characters" as a sentence: the names in `migrations/` are chosen
/// so that they can be read aloud.
fn check_in_words(error: &sqlx::Error) -> String {
    let message = error.as_database_error().map(|e| e.message().to_owned()).unwrap_or_default();
    let constraint = postgres_error(error).and_then(PgDatabaseError::constraint);
    let name = constraint.unwrap_or_else(|| message.rsplit(": ").next().unwrap_or_default());
    format!("this cannot be stored, because the rule \"{}\" is broken", name.replace('_', " "))
}

/// Names what a broken foreign key referred to.
pub(super) trait Missing<T> {
    /// A broken foreign key means that `what` does not exist.
    fn or_missing(self, what: &'static str) -> Result<T>;
}

impl<T> Missing<T> for Result<T, sqlx::Error> {
    fn or_missing(self, what: &'static str) -> Result<T> {
        self.map_err(|e| match sqlite_code(&e) {
            Some(code::FOREIGN_KEY) => StoreError::NotFound(what),
            None if postgres_error(&e).is_some_and(|error| error.code() == "23503") => StoreError::NotFound(what),
            _ => e.into(),
        })
    }
}

/// A stored value that this version cannot read back.
pub(super) fn unreadable(what: &str, cause: impl std::fmt::Display) -> StoreError {
    StoreError::Unusable(format!("{what} in it cannot be read ({cause})"))
}
