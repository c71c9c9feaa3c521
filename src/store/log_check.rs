//! The write-ahead log of a database that is about to be opened. SQLite takes the log up to the first page that does not fit its
//! checksum, takes the rest for what a crash left unfinished, and overwrites it. Where whole transactions come after such a page
//! the log was damaged, so a copy is kept before anything is opened, and it is said.

use super::error::{Result, StoreError};
use super::opening::{LOG, beside};
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of the log's own header, and of that of each page in it (<https://www.sqlite.org/fileformat2.html#walformat>).
const HEADER: usize = 32;
const PAGE_HEADER: usize = 24;

/// The log's mark; its last bit says that checksums are of big-endian words.
const MARK: u32 = 0x377f_0682;

/// How often a log with a damage is looked at, and how long apart: one that is being written looks damaged for a moment.
const LOOKS: (u32, Duration) = (3, Duration::from_millis(100));

/// A log of which a part cannot be read.
#[derive(Debug, PartialEq, Eq)]
struct Damage {
    /// Transactions that can be read.
    whole: u64,
    /// Transactions behind the damage.
    behind: u64,
}

/// Looks at the log beside a database. Where it is damaged a copy is kept; the sentence that says so.
///
/// # Errors
/// When a damaged log cannot be copied: opening the database would overwrite it.
pub(super) async fn keep_damaged(database: &Path) -> Result<Option<String>> {
    let log = beside(database, LOG);
    let mut seen = None;
    for look in 0..LOOKS.0 {
        if look > 0 {
            tokio::time::sleep(LOOKS.1).await;
        }
        // A log that cannot be read is told by whoever opens the database.
        let found = damage(&log).unwrap_or_default();
        if found.is_none() || (look > 0 && found != seen) {
            return Ok(None);
        }
        seen = found;
    }
    let Some(Damage { whole, behind }) = seen else { return Ok(None) };
    let copy = free_name(database);
    std::fs::copy(&log, &copy).map_err(|error| {
        StoreError::Unusable(format!(
            "its log {} is damaged, and no copy of it can be kept in {} ({error}), so nothing was opened; make room, or copy the \
             data folder away and restore a backup (`iliad restore`)",
            log.display(),
            copy.display()
        ))
    })?;
    Ok(Some(format!(
        "the database's log {} is damaged: {whole} of its transactions can be read, {behind} or more behind the damage cannot, so what was \
         stored last may be missing. The damaged log is kept as {}. If answers are missing, stop Iliad and restore a backup \
         (`iliad restore`)",
        log.display(),
        copy.display()
    )))
}

/// A name for the copy that no file has.
fn free_name(database: &Path) -> PathBuf {
    let name = |number: u32| beside(database, &format!("{LOG}.damaged-{number}"));
    (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0))
}

/// The damage of a log, if it has one.
fn damage(log: &Path) -> std::io::Result<Option<Damage>> {
    let mut file = BufReader::with_capacity(1 << 20, std::fs::File::open(log)?);
    let mut header = [0; HEADER];
    if !fill(&mut file, &mut header)? {
        return Ok(None);
    }
    let word = |bytes: &[u8], at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (mark, size) = (word(&header, 0), word(&header, 8) as usize);
    let big_endian = mark & 1 == 1;
    let mut sum = checksum((0, 0), &header[..24], big_endian);
    if mark & !1 != MARK || sum != (word(&header, 24), word(&header, 28)) || !(512..=65536).contains(&size) {
        // Nothing of it can be read. A log that was never begun is empty or all zeros.
        let used = header.iter().any(|byte| *byte != 0) && fill(&mut file, &mut [0; PAGE_HEADER])?;
        return Ok(used.then_some(Damage { whole: 0, behind: 1 }));
    }
    let salt = &header[16..24];
    let mut page = vec![0; PAGE_HEADER + size];
    let (mut whole, mut behind, mut broken) = (0, 0, false);
    while fill(&mut file, &mut page)? {
        // Pages of an earlier round of the log have another salt. They end it as a damaged page does, and none of this round follows.
        let own = page[8..16] == *salt;
        let ends_transaction = own && word(&page, 4) != 0;
        if broken {
            behind += u64::from(ends_transaction);
            continue;
        }
        sum = checksum(checksum(sum, &page[..8], big_endian), &page[PAGE_HEADER..], big_endian);
        broken = !own || sum != (word(&page, 16), word(&page, 20));
        whole += u64::from(ends_transaction && !broken);
    }
    Ok((behind > 0).then_some(Damage { whole, behind }))
}

/// Reads as many bytes as there is room for; false at the end of the file.
fn fill(file: &mut impl Read, bytes: &mut [u8]) -> std::io::Result<bool> {
    match file.read_exact(bytes) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

/// SQLite's checksum of 8-byte pieces, going on from another.
fn checksum((mut a, mut b): (u32, u32), bytes: &[u8], big_endian: bool) -> (u32, u32) {
    for pair in bytes.chunks_exact(8) {
        let word = |at: usize| {
            let four = [pair[at], pair[at + 1], pair[at + 2], pair[at + 3]];
            if big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
        };
        a = a.wrapping_add(word(0)).wrapping_add(b);
        b = b.wrapping_add(word(4)).wrapping_add(a);
    }
    (a, b)
}
