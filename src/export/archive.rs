//! A folder as a tar archive (the format of POSIX.1-1988), in pieces of bytes.

use super::dataset::Piece;
use super::{ExportError, Progress};
use futures::{Stream, stream};
use time::OffsetDateTime;
use tokio::sync::mpsc::Receiver;

/// Bytes of a block.
const BLOCK: usize = 512;

/// The header of a file.
fn header(path: &str, bytes: u64, seconds: i64) -> Result<[u8; BLOCK], ExportError> {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    // Paths are those of data sets: short, and without characters beyond ASCII.
    if path.len() >= 100 || bytes >= 1 << 33 {
        return Err(ExportError::Encoding(format!("{path} does not fit into an archive")));
    }
    put(0, path.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{bytes:011o}\0").as_bytes());
    put(136, format!("{:011o}\0", seconds.max(0)).as_bytes());
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// The archive of a folder called `folder`, whose pieces come from a data set, with how many of its `rows` descriptions are in it so far.
pub fn tar(
    pieces: Receiver<Result<Piece, ExportError>>,
    folder: String,
    rows: u64,
) -> impl Stream<Item = Result<(Vec<u8>, Progress), ExportError>> + Send {
    /// `padding`: bytes that the present file still lacks to whole blocks.
    struct Walk {
        pieces: Receiver<Result<Piece, ExportError>>,
        folder: String,
        seconds: i64,
        padding: usize,
        progress: Progress,
        ended: bool,
    }
    let seconds = OffsetDateTime::now_utc().unix_timestamp();
    let start = Walk { pieces, folder, seconds, padding: 0, progress: Progress { done: 0, rows }, ended: false };
    stream::try_unfold(start, |mut walk| async move {
        if walk.ended {
            return Ok(None);
        }
        let bytes = match walk.pieces.recv().await.transpose()? {
            Some(Piece::File { path, bytes }) => {
                let mut block = vec![0; walk.padding];
                block.extend(header(&format!("{}/{path}", walk.folder), bytes, walk.seconds)?);
                walk.padding = (BLOCK - (bytes % BLOCK as u64) as usize) % BLOCK;
                block
            }
            Some(Piece::Bytes(bytes)) => bytes,
            Some(Piece::Progress(progress)) => {
                // The first file is written before its size is known: a piece without bytes tells how far it is.
                walk.progress = progress;
                Vec::new()
            }
            None => {
                walk.ended = true;
                vec![0; walk.padding + 2 * BLOCK]
            }
        };
        Ok(Some(((bytes, walk.progress), walk)))
    })
}
