//! The data set as a folder that Hugging Face's `datasets` opens as it is: a card, Parquet files, and a manifest.
//!
//! Files come one after the other with their sizes, for a folder or for a tar archive. Each is written into a temporary file first,
//! since an archive has the size of a file before it.

use super::manifest::{Description, FileEntry, Manifest};
use super::parquet_file::ParquetFile;
use super::schema::SCHEMA_VERSION;
use super::walk::{Place, Snapshot, Table};
use super::{ExportError, Progress, card};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Seek, Write};
use tokio::sync::mpsc;

/// Rows of a Parquet file at most.
const FILE_ROWS: u64 = 50_000;

/// Bytes of a piece.
const PIECE: usize = 1 << 18;

/// A part of the folder.
#[derive(Debug)]
pub enum Piece {
    /// A file begins. Its bytes follow.
    File {
        /// Its path in the folder.
        path: String,
        /// Its size.
        bytes: u64,
    },
    /// Bytes of the file.
    Bytes(Vec<u8>),
    /// How far it has come, of the descriptions.
    Progress(Progress),
}

/// The names of what the folder holds.
pub const PARTS: [&str; 3] = ["README.md", "data", "manifest.json"];

/// The path of a Parquet file.
fn path(table: Table, number: usize) -> String {
    match table {
        Table::Descriptions => format!("data/train-{number:05}.parquet"),
        other => format!("data/{}/train-{number:05}.parquet", other.name()),
    }
}

/// Where the pieces go.
type Pieces = mpsc::Sender<Result<Piece, ExportError>>;

/// The receiver has gone: nobody wants the rest.
struct Gone;

async fn send(pieces: &Pieces, piece: Piece) -> Result<(), Gone> {
    pieces.send(Ok(piece)).await.map_err(|_| Gone)
}

/// Why writing the folder ended early.
enum Ended {
    Gone,
    Failed(ExportError),
}

impl From<Gone> for Ended {
    fn from(_: Gone) -> Ended {
        Ended::Gone
    }
}

impl<E: Into<ExportError>> From<E> for Ended {
    fn from(error: E) -> Ended {
        Ended::Failed(error.into())
    }
}

/// Makes the folder of a snapshot, piece by piece, until it is whole or nobody takes the pieces.
pub fn pieces(snapshot: Snapshot, about: Description) -> mpsc::Receiver<Result<Piece, ExportError>> {
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        if let Err(Ended::Failed(error)) = write(snapshot, about, &sender).await {
            let _ = sender.send(Err(error)).await;
        }
    });
    receiver
}

async fn write(mut snapshot: Snapshot, about: Description, pieces: &Pieces) -> Result<(), Ended> {
    let mut files = Vec::new();
    for table in Table::ALL {
        write_table(&mut snapshot, table, pieces, &mut files).await?;
    }
    snapshot.end().await;
    let mut manifest = Manifest::new(&snapshot, about, files);
    let text = card::text(&manifest);
    manifest.add("README.md", text.as_bytes());
    whole(pieces, "README.md", text.into_bytes()).await?;
    whole(pieces, "manifest.json", manifest.text().into_bytes()).await?;
    Ok(())
}

async fn whole(pieces: &Pieces, path: &str, bytes: Vec<u8>) -> Result<(), Gone> {
    send(pieces, Piece::File { path: path.to_owned(), bytes: bytes.len() as u64 }).await?;
    send(pieces, Piece::Bytes(bytes)).await
}

/// A file that is being written into a temporary one.
struct Spool {
    file: File,
    parquet: ParquetFile,
    hash: Sha256,
    bytes: u64,
    rows: u64,
}

impl Spool {
    fn begin(table: Table) -> Result<Spool, ExportError> {
        let parquet = ParquetFile::begin(table.columns(), table.name(), SCHEMA_VERSION)?;
        Ok(Spool { file: tempfile::tempfile()?, parquet, hash: Sha256::new(), bytes: 0, rows: 0 })
    }

    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    async fn finish(mut self, path: String, table: Table, pieces: &Pieces) -> Result<FileEntry, Ended> {
        let rest = self.parquet.finish()?;
        self.hash.update(&rest);
        self.file.write_all(&rest)?;
        let bytes = self.bytes + rest.len() as u64;
        self.file.rewind()?;
        send(pieces, Piece::File { path: path.clone(), bytes }).await?;
        loop {
            let mut piece = Vec::with_capacity(PIECE);
            (&self.file).take(PIECE as u64).read_to_end(&mut piece)?;
            if piece.is_empty() {
                break;
            }
            send(pieces, Piece::Bytes(piece)).await?;
        }
        let sha256 = hex::encode(self.hash.finalize());
        Ok(FileEntry { path, table: Some(table.name().to_owned()), rows: Some(self.rows), bytes, sha256 })
    }
}

async fn write_table(
    snapshot: &mut Snapshot,
    table: Table,
    pieces: &Pieces,
    files: &mut Vec<FileEntry>,
) -> Result<(), Ended> {
    let (mut place, mut number, mut done) = (Place::begin(table), 0, 0);
    let mut spool = Spool::begin(table)?;
    while let Some(rows) = snapshot.next(&mut place).await? {
        if spool.rows >= FILE_ROWS {
            let full = std::mem::replace(&mut spool, Spool::begin(table)?);
            files.push(full.finish(path(table, number), table, pieces).await?);
            number += 1;
        }
        spool.rows += rows.len() as u64;
        done += rows.len() as u64;
        let bytes = spool.parquet.add(rows)?;
        spool.put(&bytes)?;
        if table == Table::Descriptions {
            send(pieces, Piece::Progress(Progress { done, rows: snapshot.descriptions() })).await?;
        }
    }
    // A table without rows is a file that says so: whoever opens the folder finds every configuration.
    files.push(spool.finish(path(table, number), table, pieces).await?);
    Ok(())
}
