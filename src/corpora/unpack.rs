//! Unpacking files and archives of a corpus. The names in an archive choose among the files of the family's format and name nothing else,
//! so that no path leads out of the folder; links and devices are refused; sizes are bounded while they are unpacked.

use crate::family::corpus::{CorpusFile, CorpusFormat};
use flate2::bufread::{DeflateDecoder, GzDecoder};
use flate2::{Compression, Crc, GzBuilder};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use zip::{CompressionMethod, ZipArchive};

/// Most bytes of all files of a corpus, unpacked.
pub const MOST_BYTES: u64 = 512 << 20;

/// Most entries of an archive.
const MOST_ENTRIES: usize = 10_000;

/// Names of files that are passed over, and that are told.
const MOST_NAMED: usize = 20;

/// The result of unpacking.
#[derive(Debug, Default)]
pub struct Unpacked {
    /// The faults of the files: sentences without their full stops.
    pub faults: Vec<String>,
    /// Files that are no part of such a corpus.
    pub passed_over: Vec<String>,
}

/// Unpacks files as they were sent into a folder. Each is a file of the corpus, or an archive (zip, tar, tar.gz) of such files. `told` hears
/// how many bytes of how many are read.
///
/// # Errors
/// When the disk refuses. What is wrong with the files is in the result.
pub fn unpack(
    files: &[(&str, &Path)],
    format: &CorpusFormat,
    into: &Path,
    told: &dyn Fn(u64, u64),
) -> io::Result<Unpacked> {
    let mut of = 0;
    for (_, path) in files {
        of += std::fs::metadata(path)?.len();
    }
    let taken = Cell::new(0);
    let told = |bytes: usize| {
        taken.set(taken.get() + bytes as u64);
        // An archive's list is read again at times.
        told(taken.get().min(of), of);
    };
    let mut unpacking = Unpacking {
        format,
        into,
        room: MOST_BYTES,
        entries: 0,
        there: BTreeSet::new(),
        found: Unpacked::default(),
        told: &told,
    };
    for (name, path) in files {
        match unpacking.source(name, path) {
            Ok(()) => {}
            Err(Stop::Fault(fault)) => unpacking.found.faults.push(fault),
            Err(Stop::Disk(error)) => return Err(error),
        }
    }
    Ok(unpacking.found)
}

/// Why a file is not unpacked any further.
enum Stop {
    /// Something is wrong with it.
    Fault(String),
    /// The disk refused.
    Disk(io::Error),
}

struct Unpacking<'a> {
    format: &'a CorpusFormat,
    into: &'a Path,
    /// Bytes that may still come, unpacked.
    room: u64,
    entries: usize,
    there: BTreeSet<&'static str>,
    found: Unpacked,
    /// Hears of every piece that is read of what was sent.
    told: &'a dyn Fn(usize),
}

/// A file that tells of every piece that is read of it.
struct Told<'a> {
    file: File,
    told: &'a dyn Fn(usize),
}

impl Read for Told<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        (self.told)(read);
        Ok(read)
    }
}

impl Seek for Told<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Unpacking<'_> {
    fn source(&mut self, name: &str, path: &Path) -> Result<(), Stop> {
        let mut start = [0; 264];
        let mut file = File::open(path).map_err(Stop::Disk)?;
        let mut length = 0;
        while length < start.len() {
            match file.read(&mut start[length..]).map_err(Stop::Disk)? {
                0 => break,
                n => length += n,
            }
        }
        let told = self.told;
        let again = || {
            let file = File::open(path).map_err(Stop::Disk)?;
            Ok(BufReader::new(Told { file, told }))
        };
        let lower = name.to_ascii_lowercase();
        if start.starts_with(b"PK") {
            return self.zip(name, path);
        }
        if start.starts_with(&[0x1f, 0x8b]) && (lower.ends_with(".tar.gz") || lower.ends_with(".tgz")) {
            return self.tar(name, GzDecoder::new(again()?));
        }
        if start[257..].starts_with(b"ustar") || lower.ends_with(".tar") {
            return self.tar(name, again()?);
        }
        self.entry(name, name, again()?)
    }

    fn tar(&mut self, archive: &str, bytes: impl Read) -> Result<(), Stop> {
        let damaged = |e: io::Error| Stop::Fault(format!("{archive} is no whole tar archive ({e})"));
        // Names and lists of an archive are unpacked as well.
        let bounded = bytes.take(self.room.saturating_add(64 << 20));
        let mut tar = tar::Archive::new(bounded);
        for entry in tar.entries().map_err(damaged)? {
            let entry = entry.map_err(damaged)?;
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            self.count(archive)?;
            match entry.header().entry_type() {
                // Headers about the whole archive have no file.
                tar::EntryType::Directory | tar::EntryType::XGlobalHeader => {}
                tar::EntryType::Regular | tar::EntryType::Continuous => {
                    self.entry(archive, &name, BufReader::new(entry))?;
                }
                _ => self.found.faults.push(format!("{archive}: {} is a link or a device, not a file", shown(&name))),
            }
        }
        Ok(())
    }

    fn zip(&mut self, archive: &str, path: &Path) -> Result<(), Stop> {
        let damaged = |e: zip::result::ZipError| Stop::Fault(format!("{archive} is no whole zip archive ({e})"));
        let file = File::open(path).map_err(Stop::Disk)?;
        let mut zip = ZipArchive::new(BufReader::new(Told { file, told: self.told })).map_err(damaged)?;
        for number in 0..zip.len() {
            self.count(archive)?;
            let entry = zip.by_index_raw(number).map_err(damaged)?;
            let name = entry.name().map_err(damaged)?.into_owned();
            if entry.is_dir() {
                continue;
            }
            if entry.is_symlink() {
                self.found.faults.push(format!("{archive}: {} is a link, not a file", shown(&name)));
                continue;
            }
            if entry.encrypted() {
                self.found.faults.push(format!("{archive}: {} is encrypted", shown(&name)));
                continue;
            }
            let (method, crc) = (entry.compression(), entry.crc32());
            let packed = BufReader::new(entry);
            if method == CompressionMethod::Stored {
                self.entry(archive, &name, Checked { inner: packed, crc: Crc::new(), wanted: crc })?;
            } else if method == CompressionMethod::DEFLATE {
                let inner = BufReader::new(DeflateDecoder::new(packed));
                self.entry(archive, &name, Checked { inner, crc: Crc::new(), wanted: crc })?;
            } else {
                let name = shown(&name);
                self.found.faults.push(format!("{archive}: {name} is packed by {method}; pack it with deflate"));
            }
        }
        Ok(())
    }

    fn count(&mut self, archive: &str) -> Result<(), Stop> {
        self.entries += 1;
        match self.entries > MOST_ENTRIES {
            true => Err(Stop::Fault(format!("{archive} has more than {MOST_ENTRIES} entries"))),
            false => Ok(()),
        }
    }

    /// Writes a file of the corpus, if it is one.
    fn entry(&mut self, source: &str, name: &str, bytes: impl Read) -> Result<(), Stop> {
        let base = name.rsplit(['/', '\\']).next().unwrap_or_default();
        let is = |file: &&CorpusFile| file.name == base || file.name.strip_suffix(".gz") == Some(base);
        let Some(file) = self.format.files.iter().find(is) else {
            if self.found.passed_over.len() < MOST_NAMED {
                self.found.passed_over.push(shown(base));
            }
            return Ok(());
        };
        if !self.there.insert(file.name) {
            return Err(Stop::Fault(format!("the file {} is there twice", file.name)));
        }
        let target = self.into.join(file.name);
        let mut out = BufWriter::new(File::create(&target).map_err(Stop::Disk)?);
        let told = if source == name { shown(base) } else { format!("{source}: {}", shown(base)) };
        let pack = file.name != base;
        let room = self.room;
        let copied = match pack {
            false => copy(bytes, &mut out, room, &told),
            true => {
                let mut packer = GzBuilder::new().mtime(0).write(&mut out, Compression::default());
                copy(bytes, &mut packer, room, &told)
                    .and_then(|copied| packer.finish().map(|_| copied).map_err(Stop::Disk))
            }
        };
        let mut unpacked = copied?;
        out.flush().map_err(Stop::Disk)?;
        if file.name.ends_with(".gz") && !pack {
            let packed = GzDecoder::new(BufReader::new(File::open(&target).map_err(Stop::Disk)?));
            unpacked = unpacked.max(copy(packed, &mut io::sink(), room, &told)?);
        }
        self.room -= unpacked;
        Ok(())
    }
}

/// Copies at most `room` bytes; how many they were.
fn copy(mut from: impl Read, to: &mut impl Write, room: u64, told: &str) -> Result<u64, Stop> {
    let (mut all, mut buffer) = (0, vec![0; 64 * 1024]);
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => return Ok(all),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(Stop::Fault(format!("{told} cannot be unpacked: it is damaged or cut off ({e})"))),
        };
        all += n as u64;
        if all > room {
            let most = MOST_BYTES >> 20;
            return Err(Stop::Fault(format!("{told} is too large: a corpus has at most {most} MiB, unpacked")));
        }
        to.write_all(&buffer[..n]).map_err(Stop::Disk)?;
    }
}

/// A file's bytes, which must have a checksum at their end.
struct Checked<R> {
    inner: R,
    crc: Crc,
    wanted: u32,
}

impl<R: BufRead> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.crc.update(&buffer[..n]);
        if n == 0 && !buffer.is_empty() && self.crc.sum() != self.wanted {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum does not fit"));
        }
        Ok(n)
    }
}

/// A name as messages show it.
fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::corpus::CorpusReport;

    const FORMAT: CorpusFormat = CorpusFormat {
        of: "letters",
        files: &[CorpusFile { name: "a.txt.gz", about: "" }, CorpusFile { name: "b.json", about: "" }],
        made_with: "",
        check: |_, _| CorpusReport::default(),
    };

    fn gz(bytes: &[u8]) -> Vec<u8> {
        let mut packer = GzBuilder::new().write(Vec::new(), Compression::best());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    fn tar(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
        let mut made = tar::Builder::new(Vec::new());
        for (name, kind, bytes) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_size(bytes.len() as u64);
            header.set_mode(0o755);
            // Names that the library refuses to write are written all the same.
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            if *kind == tar::EntryType::Symlink {
                header.set_link_name("/etc/passwd").unwrap();
            }
            header.set_cksum();
            made.append(&header, *bytes).unwrap();
        }
        made.into_inner().unwrap()
    }

    /// The files in the folder after these were unpacked, and the result.
    fn unpacked(files: &[(&str, Vec<u8>)]) -> (Vec<(String, Vec<u8>)>, Unpacked) {
        let folder = tempfile::tempdir().unwrap();
        let (from, into) = (folder.path().join("from"), folder.path().join("into"));
        std::fs::create_dir(&from).unwrap();
        std::fs::create_dir(&into).unwrap();
        let mut sent = Vec::new();
        for (at, (name, bytes)) in files.iter().enumerate() {
            let path = from.join(at.to_string());
            std::fs::write(&path, bytes).unwrap();
            sent.push((*name, path));
        }
        let sent: Vec<(&str, &Path)> = sent.iter().map(|(name, path)| (*name, path.as_path())).collect();
        let found = unpack(&sent, &FORMAT, &into, &|_, _| {}).unwrap();
        let mut there: Vec<_> = std::fs::read_dir(&into)
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let bytes = std::fs::read(&path).unwrap();
                (path.file_name().unwrap().to_string_lossy().into_owned(), bytes)
            })
            .collect();
        there.sort();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing came beside the folder");
        (there, found)
    }

    /// A zip archive by hand: its name, unpacked bytes, method and the rights of the file.
    fn zip(entries: &[(&str, &[u8], u16, u32)]) -> Vec<u8> {
        let (mut out, mut list) = (Vec::new(), Vec::new());
        for (name, bytes, method, mode) in entries {
            let packed = match method {
                8 => {
                    let mut packer = flate2::write::DeflateEncoder::new(Vec::new(), Compression::best());
                    packer.write_all(bytes).unwrap();
                    packer.finish().unwrap()
                }
                _ => bytes.to_vec(),
            };
            let mut crc = Crc::new();
            crc.update(bytes);
            let mut common = Vec::new();
            for two in [20u16, 0, *method, 0, 33] {
                common.extend(two.to_le_bytes());
            }
            for four in [crc.sum(), packed.len() as u32, bytes.len() as u32] {
                common.extend(four.to_le_bytes());
            }
            common.extend((name.len() as u16).to_le_bytes());
            common.extend(0u16.to_le_bytes());
            let offset = out.len() as u32;
            out.extend(b"PK\x03\x04");
            out.extend(&common);
            out.extend(name.as_bytes());
            out.extend(&packed);
            list.extend(b"PK\x01\x02\x14\x03");
            list.extend(&common);
            list.extend([0; 6]);
            list.extend((mode << 16).to_le_bytes());
            list.extend(offset.to_le_bytes());
            list.extend(name.as_bytes());
        }
        let begin = out.len() as u32;
        out.extend(&list);
        out.extend(b"PK\x05\x06\0\0\0\0");
        for _ in 0..2 {
            out.extend((entries.len() as u16).to_le_bytes());
        }
        out.extend((list.len() as u32).to_le_bytes());
        out.extend(begin.to_le_bytes());
        out.extend([0, 0]);
        out
    }

    #[test]
    fn archives_and_plain_files_give_the_same_files() {
        let (a, b) = (gz(b"x\ny\n"), b"{}".to_vec());
        let file = tar::EntryType::Regular;
        let tarred =
            tar(&[("corpus/", tar::EntryType::Directory, b""), ("corpus/a.txt.gz", file, &a), ("./b.json", file, &b)]);
        let zipped = zip(&[("corpus/a.txt.gz", &a, 0, 0o100644), ("deep/er/b.json", &b, 8, 0o100644)]);
        for files in [
            vec![("a.txt.gz", a.clone()), ("b.json", b.clone())],
            vec![("x.tar", tarred.clone())],
            vec![("x.tar.gz", gz(&tarred))],
            vec![("x.zip", zipped)],
        ] {
            let (there, found) = unpacked(&files);
            assert!(found.faults.is_empty() && found.passed_over.is_empty(), "{found:?}");
            assert_eq!(there, [("a.txt.gz".to_owned(), a.clone()), ("b.json".to_owned(), b.clone())]);
        }
        let (there, _) = unpacked(&[("a.txt", b"x\ny\n".to_vec())]);
        let mut text = String::new();
        GzDecoder::new(there[0].1.as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!((there[0].0.as_str(), text.as_str()), ("a.txt.gz", "x\ny\n"));
    }

    #[test]
    fn no_name_leads_out_of_the_folder_and_links_are_refused() {
        let file = tar::EntryType::Regular;
        let (there, found) = unpacked(&[(
            "x.tar",
            tar(&[
                ("../../b.json", file, b"[1]"),
                ("/etc/cron.d/job", file, b"* * * * *"),
                ("..\\evil.exe", file, b"MZ"),
                ("a.txt.gz", tar::EntryType::Symlink, b""),
            ]),
        )]);
        assert_eq!(there, [("b.json".to_owned(), b"[1]".to_vec())]);
        assert_eq!(found.passed_over, ["job", "evil.exe"]);
        assert!(found.faults.len() == 1 && found.faults[0].contains("a.txt.gz is a link"), "{:?}", found.faults);
        let (there, found) =
            unpacked(&[("x.zip", zip(&[("../b.json", b"[1]", 8, 0o100644), ("a.txt.gz", b"/etc", 0, 0o120777)]))]);
        assert_eq!(there.len(), 1);
        assert!(found.faults[0].contains("is a link"), "{:?}", found.faults);
    }

    #[test]
    fn what_is_damaged_twice_or_too_large_is_told() {
        let told = |files: &[(&str, Vec<u8>)]| unpacked(files).1.faults.join("; ");
        assert!(told(&[("a.txt.gz", b"no gzip".to_vec())]).contains("a.txt.gz cannot be unpacked"));
        let mut cut = gz(&[7; 100_000]);
        cut.truncate(40);
        assert!(told(&[("a.txt.gz", cut)]).contains("cannot be unpacked"));
        assert!(told(&[("b.json", b"1".to_vec()), ("b.json", b"2".to_vec())]).contains("twice"));
        assert!(
            told(&[("x.tar", b"nonsense".to_vec())]).contains("no whole tar"),
            "{}",
            told(&[("x.tar", vec![1; 600])])
        );
        assert!(told(&[("x.zip", b"PK\x03\x04 and so on".to_vec())]).contains("no whole zip"));
        let mut wrong = zip(&[("b.json", b"[1]", 0, 0o100644)]);
        let at = wrong.windows(3).position(|three| three == b"[1]").unwrap();
        wrong[at + 1] = b'2';
        assert!(told(&[("x.zip", wrong)]).contains("checksum"));
        // A small file that unpacks to more than there is room for is not unpacked to its end.
        let zeros = vec![0; 1 << 20];
        let mut packer = GzBuilder::new().write(Vec::new(), Compression::fast());
        for _ in 0..=MOST_BYTES >> 20 {
            packer.write_all(&zeros).unwrap();
        }
        let (there, found) = unpacked(&[("a.txt.gz", packer.finish().unwrap())]);
        assert!(found.faults[0].contains("too large"), "{:?}", found.faults);
        assert!(there[0].1.len() < 16 << 20);
    }
}
