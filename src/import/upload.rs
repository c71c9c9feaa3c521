//! Files of descriptions as a page or a program sends them: laid out in a folder as the command line finds them, within bounds.
//!
//! Names of files that were sent say of what kind a file is, and name nothing on the disk; of an archive only the files of a data set
//! are unpacked.

use super::read::open_parquet;
use parquet::file::reader::FileReader;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// Most rows that come in at once by a page or by a program.
pub const MOST_ROWS: u64 = 100_000;

/// Most bytes of what is packed, unpacked.
const MOST_UNPACKED: u64 = 512 << 20;

/// Most entries of an archive.
const MOST_ENTRIES: usize = 1_000;

/// Name of the manifest in a data set, and the end of the name of one that lies beside a file.
const MANIFEST: &str = "manifest.json";

/// The forms in which descriptions are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentForm {
    /// A JSON object a line.
    Jsonl,
    /// CSV with a header.
    Csv,
    /// Parquet.
    Parquet,
    /// The folder of a data set as a tar archive.
    Tar,
}

impl SentForm {
    /// The form of an ending such as `csv`.
    pub fn named(ending: &str) -> Option<SentForm> {
        Some(match ending.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" | "json" => SentForm::Jsonl,
            "csv" => SentForm::Csv,
            "parquet" => SentForm::Parquet,
            "tar" => SentForm::Tar,
            _ => return None,
        })
    }

    fn ending(self) -> &'static str {
        match self {
            SentForm::Jsonl => "jsonl",
            SentForm::Csv => "csv",
            SentForm::Parquet => "parquet",
            SentForm::Tar => "tar",
        }
    }
}

/// Lays files out that were sent: one with descriptions, and the manifest of its export where there is one. Each is named by its sender and
/// moved to a place in `folder`. The path that [`super::check`] takes, or a sentence that says what to change.
///
/// # Errors
/// When the disk refuses.
pub fn lay_out(folder: &Path, files: &[(&str, &Path)]) -> io::Result<Result<PathBuf, String>> {
    let (manifests, data): (Vec<_>, Vec<_>) = files.iter().partition(|(name, _)| name.ends_with(MANIFEST));
    let ([(name, sent)], [] | [_]) = (data.as_slice(), manifests.as_slice()) else {
        let sentence = "Choose one file of descriptions, and beside it at most the manifest that came with its export.";
        return Ok(Err(sentence.to_owned()));
    };
    let Some(form) = name.rsplit_once('.').and_then(|(_, ending)| SentForm::named(ending)) else {
        return Ok(Err("Choose a file that ends in .jsonl, .csv, .parquet or .tar.".to_owned()));
    };
    if form == SentForm::Tar {
        let into = folder.join("data-set");
        return Ok(unpack(sent, &into)?.map(|()| into));
    }
    let place = folder.join(format!("descriptions.{}", form.ending()));
    std::fs::rename(sent, &place)?;
    if let [(_, manifest)] = manifests.as_slice() {
        std::fs::rename(manifest, folder.join(format!("descriptions.{}.{MANIFEST}", form.ending())))?;
    }
    Ok(within_bounds(&place, form).map(|()| place))
}

/// Refuses a Parquet file that would unpack to more than there is room for.
fn within_bounds(file: &Path, form: SentForm) -> Result<(), String> {
    if form != SentForm::Parquet {
        return Ok(());
    }
    // A file that cannot be read is told of when it is read.
    let Some(reader) = File::open(file).ok().and_then(|file| open_parquet(file).ok()) else {
        return Ok(());
    };
    let groups = reader.metadata().row_groups().iter();
    let bytes: u64 = groups.map(|group| u64::try_from(group.total_byte_size()).unwrap_or(0)).sum();
    if bytes > MOST_UNPACKED { Err(too_much()) } else { Ok(()) }
}

fn too_much() -> String {
    format!("The file unpacks to more than {} MiB. Send fewer rows at once.", MOST_UNPACKED >> 20)
}

/// Unpacks the data and the manifest of a data set; everything else in the archive is passed over.
fn unpack(archive: &Path, into: &Path) -> io::Result<Result<(), String>> {
    let data = into.join("data");
    std::fs::create_dir_all(&data)?;
    let mut room = MOST_UNPACKED;
    let mut archive = tar::Archive::new(BufReader::new(File::open(archive)?).take(MOST_UNPACKED));
    let damaged = |e: io::Error| Ok(Err(format!("The file is no whole tar archive ({e}).")));
    let entries = match archive.entries() {
        Ok(entries) => entries,
        Err(e) => return damaged(e),
    };
    for (number, entry) in entries.enumerate() {
        let entry = match entry {
            Ok(entry) if number < MOST_ENTRIES => entry,
            Ok(_) => return Ok(Err(format!("The archive has more than {MOST_ENTRIES} files."))),
            Err(e) => return damaged(e),
        };
        if entry.header().entry_type() != tar::EntryType::Regular {
            continue;
        }
        let Some(place) = place_of(&String::from_utf8_lossy(&entry.path_bytes()), into) else { continue };
        let mut file = File::create(&place)?;
        let size = entry.size();
        let written = match io::copy(&mut entry.take(room), &mut file) {
            Ok(written) => written,
            Err(e) => return damaged(e),
        };
        if written < size {
            return Ok(Err(if written == room { too_much() } else { "The tar archive breaks off.".to_owned() }));
        }
        room -= written;
        if place.starts_with(&data)
            && let Err(sentence) = within_bounds(&place, SentForm::Parquet)
        {
            return Ok(Err(sentence));
        }
    }
    Ok(Ok(()))
}

/// The place of a file of a data set by its name in the archive, with or without a folder around the whole.
fn place_of(name: &str, into: &Path) -> Option<PathBuf> {
    let mut parts = name.rsplit('/');
    let (last, before) = (parts.next()?, parts.next());
    if last == MANIFEST && before != Some("data") {
        return Some(into.join(MANIFEST));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let fits = last.starts_with("train-") && last.ends_with(".parquet") && last.chars().all(plain) && last.len() < 100;
    (fits && before == Some("data")).then(|| into.join("data").join(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(folder: &Path, names: &[&str]) -> Result<PathBuf, String> {
        let place = |(number, _): (usize, &&str)| {
            let path = folder.join(format!("file-{number}"));
            std::fs::write(&path, "x").unwrap();
            path
        };
        let places: Vec<PathBuf> = names.iter().enumerate().map(place).collect();
        let files: Vec<(&str, &Path)> = names.iter().copied().zip(places.iter().map(PathBuf::as_path)).collect();
        lay_out(folder, &files).unwrap()
    }

    #[test]
    fn a_file_lies_where_the_command_line_would_find_it_with_its_manifest_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = sent(folder.path(), &["mine-1.csv.manifest.json", "../../mine-1.CSV"]).unwrap();
        assert_eq!(place, folder.path().join("descriptions.csv"));
        assert!(folder.path().join("descriptions.csv.manifest.json").is_file());
        for names in [vec![], vec!["a.csv", "b.csv"], vec!["manifest.json"], vec!["a.xlsx"], vec!["csv"]] {
            let folder = tempfile::tempdir().unwrap();
            let refused = sent(folder.path(), &names).unwrap_err();
            assert!(refused.starts_with("Choose") && refused.ends_with('.'), "{names:?}: {refused}");
        }
    }

    #[test]
    fn of_an_archive_the_files_of_a_data_set_are_taken_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = tar::Builder::new(Vec::new());
        for name in ["set/data/train-00000.parquet", "set/manifest.json", "set/README.md", "set/data/train-x y.parquet"]
        {
            let mut header = tar::Header::new_gnu();
            header.set_size(1);
            archive.append_data(&mut header, name, "x".as_bytes()).unwrap();
        }
        let file = folder.path().join("file-0");
        let mut bytes = archive.into_inner().unwrap();
        std::fs::write(&file, &bytes).unwrap();
        let place = lay_out(folder.path(), &[("set.tar", &file)]).unwrap().unwrap();
        let names = |folder: &Path| {
            let mut names: Vec<_> =
                std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&place), ["data", "manifest.json"]);
        assert_eq!(names(&place.join("data")), ["train-00000.parquet"]);
        bytes.truncate(600);
        std::fs::write(&file, &bytes).unwrap();
        assert!(lay_out(folder.path(), &[("set.tar", &file)]).unwrap().is_err());
        std::fs::write(&file, "nonsense").unwrap();
        assert!(lay_out(folder.path(), &[("set.tar", &file)]).unwrap().is_err());
        for name in ["data/../../train-1.parquet", "/etc/passwd", "manifest.json/x", "train-1.parquet"] {
            assert_eq!(place_of(name, folder.path()), None, "{name}");
        }
    }
}
