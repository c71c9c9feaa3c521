//! Vectors of views on disk, read through a memory map.
//!
//! A file has, all numbers little-endian:
//! - 64 bytes: `ILIADVEC`, version (u32, now 1), numbers of a vector (u32), rows (u64), zeros;
//! - the rows, one for each viewpoint: 36 vectors of 16-bit floats;
//! - the index: a JSON list of `[house, viewpoint]`, in the order of the rows;
//! - length of the index (u64), and SHA-256 of everything before.

use super::super::action::VIEWS;
use crate::datafile::DataError;
use half::f16;
use memmap2::Mmap;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"ILIADVEC";
const VERSION: u32 = 1;
const HEADER: usize = 64;
const TRAILER: usize = 8 + 32;

/// Numbers of a vector at most: more is a damaged header.
const MOST_NUMBERS: usize = 1 << 16;

/// Vectors of all views of a set of viewpoints.
#[derive(Debug)]
pub struct Vectors {
    map: Mmap,
    dim: usize,
    places: Vec<(String, String)>,
    index: HashMap<(String, String), usize>,
}

impl Vectors {
    /// Opens a file and checks all of it against its checksum.
    ///
    /// # Errors
    /// When it cannot be read, is of another kind or version, cut off or damaged; says which.
    pub fn open(path: &Path) -> Result<Vectors, DataError> {
        let file = File::open(path).map_err(DataError::read(path))?;
        // SAFETY: the map is only read. A file that somebody changes underneath gives wrong numbers; files are written
        // under another name and moved here, never changed.
        let map = unsafe { Mmap::map(&file) }.map_err(DataError::read(path))?;
        let wrong = |what: String| DataError::content(path, what);
        if map.len() < HEADER + TRAILER || &map[..8] != MAGIC {
            return Err(wrong("this is no file of view vectors (it does not begin with ILIADVEC)".into()));
        }
        let version = u32_at(&map, 8);
        if version != VERSION {
            return Err(wrong(format!("its format has version {version}; this program reads version {VERSION}")));
        }
        let (dim, rows, length) = (u32_at(&map, 12) as usize, u64_at(&map, 16), u64_at(&map, map.len() - TRAILER));
        let data = rows.checked_mul((VIEWS * dim * 2) as u64).filter(|_| (1..=MOST_NUMBERS).contains(&dim));
        let whole = data.and_then(|data| data.checked_add(length)?.checked_add((HEADER + TRAILER) as u64));
        if whole != Some(map.len() as u64) {
            let sizes = format!("{rows} viewpoints of {dim} numbers a view");
            return Err(wrong(format!(
                "it is cut off or damaged: it has {} bytes, which do not fit {sizes}",
                map.len()
            )));
        }
        let end = map.len() - 32;
        if Sha256::digest(&map[..end]).as_slice() != &map[end..] {
            return Err(wrong("it is damaged: its checksum does not fit".into()));
        }
        let index = &map[map.len() - TRAILER - length as usize..map.len() - TRAILER];
        let places: Vec<(String, String)> =
            serde_json::from_slice(index).map_err(|error| wrong(format!("its index is damaged: {error}")))?;
        if places.len() as u64 != rows {
            return Err(wrong(format!("its index has {} viewpoints instead of {rows}", places.len())));
        }
        let index = places.iter().cloned().zip(0..).collect();
        Ok(Vectors { map, dim, places, index })
    }

    /// Numbers of a vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// House and viewpoint of every row.
    pub fn places(&self) -> &[(String, String)] {
        &self.places
    }

    /// Row of a viewpoint.
    pub fn find(&self, scan: &str, viewpoint: &str) -> Option<usize> {
        self.index.get(&(scan.to_owned(), viewpoint.to_owned())).copied()
    }

    /// The bytes of a row: `36 * dim` little-endian 16-bit floats, as a device wants them. Panics past the last row.
    pub fn bytes(&self, row: usize) -> &[u8] {
        assert!(row < self.places.len(), "row {row} of {}", self.places.len());
        let size = VIEWS * self.dim * 2;
        &self.map[HEADER + row * size..][..size]
    }

    /// The numbers of a row: 36 vectors. Panics past the last row.
    pub fn row(&self, row: usize) -> Vec<f32> {
        self.bytes(row).chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()).collect()
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

/// Writes a file of vectors row by row. It appears under its name once it is whole.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    draft: PathBuf,
    out: BufWriter<File>,
    dim: usize,
    places: Vec<(String, String)>,
    row: Vec<u8>,
}

impl Writer {
    /// Begins a file of vectors of `dim` numbers.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path, dim: usize) -> Result<Writer, DataError> {
        if !(1..=MOST_NUMBERS).contains(&dim) {
            return Err(DataError::content(path, format!("a vector of {dim} numbers is not possible")));
        }
        let mut draft = path.as_os_str().to_owned();
        draft.push(".draft");
        let draft = PathBuf::from(draft);
        // Read again at the end, for the checksum.
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&draft);
        let mut out = BufWriter::with_capacity(1 << 20, file.map_err(DataError::write(&draft))?);
        out.write_all(&[0; HEADER]).map_err(DataError::write(&draft))?;
        Ok(Writer { path: path.to_path_buf(), draft, out, dim, places: Vec::new(), row: Vec::new() })
    }

    /// Appends the vectors of a viewpoint: 36 of `dim` numbers.
    ///
    /// # Errors
    /// When there are more or fewer numbers, or one is too large for 16 bits or not finite; or the disk is full.
    pub fn push(&mut self, scan: &str, viewpoint: &str, vectors: &[f32]) -> Result<(), DataError> {
        let wrong =
            |what: String| DataError::content(&self.path, format!("house {scan}, viewpoint {viewpoint}: {what}"));
        if vectors.len() != VIEWS * self.dim {
            let wanted = format!("{VIEWS} views of {}", self.dim);
            return Err(wrong(format!("{} numbers instead of {wanted}", vectors.len())));
        }
        self.row.clear();
        for x in vectors {
            let short = f16::from_f32(*x);
            if !short.is_finite() {
                return Err(wrong(format!("{x} cannot be stored in 16 bits")));
            }
            self.row.extend(short.to_le_bytes());
        }
        self.out.write_all(&self.row).map_err(DataError::write(&self.draft))?;
        self.places.push((scan.to_owned(), viewpoint.to_owned()));
        Ok(())
    }

    /// Ends the file; how many viewpoints it has.
    ///
    /// # Errors
    /// When a viewpoint was pushed twice, or the disk is full.
    pub fn finish(mut self) -> Result<usize, DataError> {
        let mut sorted: Vec<_> = self.places.iter().collect();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let (scan, viewpoint) = twice[0];
            return Err(DataError::content(&self.path, format!("house {scan}, viewpoint {viewpoint}: it comes twice")));
        }
        self.end().map_err(DataError::write(&self.draft))?;
        std::fs::rename(&self.draft, &self.path).map_err(DataError::write(&self.path))?;
        Ok(self.places.len())
    }

    fn end(&mut self) -> std::io::Result<()> {
        let index = serde_json::to_vec(&self.places)?;
        self.out.write_all(&index)?;
        self.out.write_all(&(index.len() as u64).to_le_bytes())?;
        let mut header = Vec::with_capacity(24);
        header.extend(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend((self.dim as u32).to_le_bytes());
        header.extend((self.places.len() as u64).to_le_bytes());
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&header)?;
        self.out.flush()?;
        let file = self.out.get_mut();
        file.seek(SeekFrom::Start(0))?;
        let (mut hash, mut reader, mut buffer) = (Sha256::new(), BufReader::new(&*file), vec![0; 1 << 20]);
        loop {
            let n = reader.read(&mut buffer)?;
            if n == 0 {
                break;
            }
            hash.update(&buffer[..n]);
        }
        file.seek(SeekFrom::End(0))?;
        file.write_all(hash.finalize().as_slice())?;
        file.sync_all()
    }
}

impl Drop for Writer {
    /// An unfinished file is removed.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.draft);
    }
}
