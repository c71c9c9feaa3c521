//! Opening the file, and reading it where nothing can be written. Every refusal names the file and says what to do.

use super::clock::{Clock, monotonic};
use super::connection::{Store, connect, reading};
use super::error::{Result, StoreError};
use super::log_check;
use super::schema::{inspect, is_current};
use sqlx::sqlite::SqliteConnectOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// How long a writer waits for another *process* (an export, a second `iliad`) before it says busy.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(15);

/// SQLite's smallest page: a file below it holds no database, and SQLite would silently begin a new one in it.
const SMALLEST: u64 = 512;

/// Room on the disk with which SQLite cannot make the files beside the database.
const LITTLE_ROOM: u64 = 1 << 17;

/// The ending that SQLite gives to the file's name for the write-ahead log.
pub(super) const LOG: &str = "-wal";

impl Store {
    /// Opens (creates, migrates) the database file. The folder is made when it is missing.
    ///
    /// # Errors
    /// [`StoreError::File`] with a plain sentence for a file that is damaged, no database, another program's, from a
    /// newer version, or that may not be used; also for one that is missing or empty beside runs that have learnt
    /// something, or where there is no room.
    pub async fn open(path: &Path) -> Result<Store> {
        Store::open_with_clocks(path, OffsetDateTime::now_utc, monotonic()).await
    }

    /// Opens the file like [`Store::open`], with one clock that leases and time stamps go by (tests turn it by hand).
    pub async fn open_with_clock(
        path: &Path,
        clock: impl Fn() -> OffsetDateTime + Send + Sync + 'static,
    ) -> Result<Store> {
        let clock = Arc::new(clock);
        let same = clock.clone();
        Store::open_with_clocks(path, move || clock(), move || same()).await
    }

    /// Opens the file like [`Store::open`], with the time of day that time stamps go by, and the clock that leases go by, which nobody
    /// sets back while the process lives.
    pub async fn open_with_clocks(
        path: &Path,
        clock: impl Fn() -> OffsetDateTime + Send + Sync + 'static,
        monotonic: impl Fn() -> OffsetDateTime + Send + Sync + 'static,
    ) -> Result<Store> {
        let (clock, monotonic): (Clock, Clock) = (Arc::new(clock), Arc::new(monotonic));
        keep_damaged_log(path).await?;
        let begin = Instant::now();
        loop {
            match open_once(path, clock.clone(), monotonic.clone()).await {
                // SQLite does not wait by itself while another process makes a new file a WAL file.
                Err(StoreError::Busy) if begin.elapsed() < BUSY_TIMEOUT => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                opened => return opened.map_err(|error| named(path, error)),
            }
        }
    }

    /// Opens an existing file to read from it. Where the file or its folder cannot be written (a read-only file
    /// system, a backup on a mounted disk), nothing is written there: what is needed beside the file lies in a
    /// temporary folder for as long as the store is open. Calls that write fail with [`StoreError::ReadOnly`], or are
    /// lost with that folder.
    ///
    /// # Errors
    /// When [`Store::open`] would fail, and when there is no such file.
    pub async fn open_to_read(path: &Path) -> Result<Store> {
        if !path.is_file() {
            return Err(refused(path, "there is no database here; name the server's data folder with --data-dir"));
        }
        if writable(path) {
            return Store::open(path).await;
        }
        let opened = async {
            let log = beside(path, LOG);
            let log_is_empty = std::fs::metadata(&log).map_or(0, |found| found.len()) == 0;
            if log_is_empty {
                // All there is stands in the file itself, and nobody can change it: no side files are needed.
                let options = SqliteConnectOptions::new().filename(path).read_only(true).immutable(true);
                inspect(&options, std::fs::metadata(path).map_or(0, |found| found.len())).await?;
                if is_current(&options).await? {
                    return reading(options).await;
                }
            }
            // The log has to be played into the file, or an older file has to be brought up to date: in a copy.
            let folder = tempfile::Builder::new().prefix("iliad-").tempdir().map_err(sqlx::Error::Io)?;
            let copy = folder.path().join(path.file_name().unwrap_or_default());
            std::fs::copy(path, &copy).map_err(sqlx::Error::Io)?;
            if !log_is_empty {
                std::fs::copy(&log, beside(&copy, LOG)).map_err(sqlx::Error::Io)?;
            }
            permit(&copy).map_err(sqlx::Error::Io)?;
            let store = open_once(&copy, Arc::new(OffsetDateTime::now_utc), Arc::new(monotonic())).await?;
            Ok(store.with_copy(folder))
        };
        opened.await.map_err(|error| named(path, error))
    }

    /// Writes everything committed in the database at `path` into a new file at `to`. The file at `path` may be in use
    /// by a server, of another version, too: nothing is changed in it.
    ///
    /// # Errors
    /// When [`Store::open_to_read`] would fail.
    pub async fn snapshot(path: &Path, to: &Path) -> Result<()> {
        if !writable(path) {
            return Store::reading(path, async |store| store.copy_to(to).await).await?;
        }
        keep_damaged_log(path).await?;
        let options = SqliteConnectOptions::new().filename(path).busy_timeout(BUSY_TIMEOUT);
        let copied = async {
            inspect(&options, prepare(path)?).await?;
            let store = reading(options).await?;
            store.closed_after(async |store: Store| store.copy_to(to).await).await
        };
        copied.await.map_err(|error| named(path, error))
    }

    /// Writes everything committed so far into a new file at `to`, as one database without side files. Writers go on
    /// meanwhile.
    pub async fn copy_to(&self, to: &Path) -> Result<()> {
        // VACUUM locks only the reading side of the file, and that lock never waits.
        sqlx::query("VACUUM INTO ?").bind(to.to_string_lossy().into_owned()).execute(self.sqlite()?).await?;
        Ok(())
    }

    /// Reads from a file that nobody else uses, without making files beside it.
    pub(crate) async fn reading_immutable<T>(path: &Path, work: impl AsyncFnOnce(Store) -> T) -> Result<T> {
        let options = SqliteConnectOptions::new().filename(path).read_only(true).immutable(true);
        let store = reading(options).await.map_err(|error| named(path, error))?;
        Ok(store.closed_after(work).await)
    }

    pub(super) async fn closed_after<T>(self, work: impl AsyncFnOnce(Store) -> T) -> T {
        use futures::FutureExt;
        let done = std::panic::AssertUnwindSafe(work(self.clone())).catch_unwind().await;
        self.close().await;
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Keeps a copy of a damaged log, before SQLite overwrites it, and says so.
async fn keep_damaged_log(path: &Path) -> Result<()> {
    if let Some(damaged) = log_check::keep_damaged(path).await.map_err(|error| named(path, error))? {
        tracing::error!("{damaged}");
    }
    Ok(())
}

async fn open_once(path: &Path, clock: Clock, monotonic: Clock) -> Result<Store> {
    let bytes = prepare(path)?;
    let options = SqliteConnectOptions::new().filename(path).busy_timeout(BUSY_TIMEOUT).foreign_keys(true);
    if bytes > 0 {
        inspect(&options, bytes).await?;
    }
    connect(options, clock, monotonic).await
}

/// Makes the folder and says how large the file is (0: new).
fn prepare(path: &Path) -> Result<u64> {
    if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .map_err(|e| StoreError::Unusable(format!("its folder {} cannot be made ({e})", folder.display())))?;
    }
    let bytes = match std::fs::metadata(path) {
        Ok(found) if found.is_file() => {
            // SQLite says "unable to open", and not why.
            std::fs::File::open(path).map_err(|e| may_not(&e, "read"))?;
            found.len()
        }
        Ok(_) => return Err(StoreError::Unusable("this is a folder, not a file".into())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => 0,
        Err(e) => return Err(may_not(&e, "read")),
    };
    if bytes < SMALLEST {
        refuse_to_begin_anew(path)?;
    }
    if (1..SMALLEST).contains(&bytes) {
        return Err(StoreError::Unusable(format!(
            "it has {bytes} bytes and is no database; restore a backup (`iliad restore`), or move it away to begin anew"
        )));
    }
    Ok(bytes)
}

/// A new database beside what runs have learnt would hide them, and what people said would seem to be gone.
fn refuse_to_begin_anew(path: &Path) -> Result<()> {
    let is_log_full = std::fs::metadata(beside(path, LOG)).is_ok_and(|found| found.len() > 0);
    let runs = path.parent().map(|folder| folder.join("runs")).unwrap_or_default();
    let learnt = std::fs::read_dir(&runs).into_iter().flatten().flatten().filter(|run| has_learnt(&run.path())).count();
    if learnt == 0 && !is_log_full {
        return Ok(());
    }
    let state = if path.exists() { "the file is empty" } else { "the file is missing" };
    let there = match learnt {
        0 => "its log is still there".to_owned(),
        1 => format!("{} holds a run that has learnt", runs.display()),
        n => format!("{} holds {n} runs that have learnt", runs.display()),
    };
    Err(StoreError::Unusable(format!(
        "{state}, although {there}. Nothing was changed. Restore a backup (`iliad restore`), or, to begin anew, move \
         what is in the data folder away or choose another with --data-dir"
    )))
}

/// Whether a run's folder holds a checkpoint.
fn has_learnt(run: &Path) -> bool {
    let mut files = std::fs::read_dir(run).into_iter().flatten().flatten();
    files.any(|file| file.file_name().to_string_lossy().ends_with(".safetensors"))
}

/// Whether the file and the folder around it can be written.
fn writable(path: &Path) -> bool {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::options().write(true).open(path).is_ok() && tempfile::tempfile_in(folder).is_ok()
}

/// Makes a copied file writable, which its original was not.
fn permit(copy: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        for file in [copy.to_owned(), beside(copy, LOG)].iter().filter(|file| file.exists()) {
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(())
}

/// The file of this name with an ending behind it.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn may_not(error: &std::io::Error, what: &str) -> StoreError {
    StoreError::Unusable(format!("it cannot be {what} ({error}); give this user the right to read and write it"))
}

fn refused(path: &Path, why: impl Into<String>) -> StoreError {
    StoreError::File { file: path.to_owned(), why: why.into() }
}

fn no_room(path: &Path, folder: &Path) -> StoreError {
    refused(path, format!("the disk is full; make room in {}", folder.display()))
}

/// An error of opening the file, with the file's name and advice.
fn named(path: &Path, error: StoreError) -> StoreError {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // SQLite's code is often that of any failed write.
    let full = || fs4::available_space(folder).is_ok_and(|free| free < LITTLE_ROOM);
    match error {
        StoreError::Unusable(why) => refused(path, why),
        StoreError::ReadOnly => refused(
            path,
            format!(
                "it can only be read, or files beside it cannot be made; give this user the right to write in {}",
                folder.display()
            ),
        ),
        StoreError::DiskFull => no_room(path, folder),
        StoreError::Transient { .. } if full() => no_room(path, folder),
        // Without descriptors opening fails just the same, and that passes.
        StoreError::Transient { what, cause } => match std::fs::File::open(path) {
            Err(e) if matches!(e.raw_os_error(), Some(23 | 24)) => StoreError::Transient { what, cause },
            _ => refused(
                path,
                format!("it cannot be opened ({cause}); check that you may read and write it and its folder"),
            ),
        },
        StoreError::Database(cause) => refused(path, format!("SQLite cannot use it ({cause})")),
        StoreError::Busy => refused(path, "another program holds it; end that program, or try again in a moment"),
        other => other,
    }
}
