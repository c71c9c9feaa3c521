//! The description log of a run: an append-only file of every described, demonstrated or rated episode, in the order in which they
//! were used.

use crate::protocol::{DescribedEpisode, World};
use anyhow::Context;
use serde::Serialize;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Seek, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// Name of the log within the run's folder: one described episode a line, in JSON.
pub const FILE_NAME: &str = "descriptions.jsonl";

/// The log, open for appending.
pub(super) struct DescriptionLog<W: World> {
    path: PathBuf,
    file: BufWriter<File>,
    lines: u64,
    world: PhantomData<fn(W)>,
}

impl<W: World> DescriptionLog<W> {
    /// Opens the log of a run and truncates it to `lines`, the number that the checkpoint has counted; a half-written last
    /// line is cut off with the rest. Returns the newest `keep` episodes with it, oldest first.
    ///
    /// # Errors
    /// When the file cannot be used, or has fewer whole lines than the checkpoint counts.
    pub(super) fn open(
        folder: &Path,
        lines: u64,
        keep: usize,
    ) -> anyhow::Result<(Self, VecDeque<DescribedEpisode<W>>)> {
        let path = folder.join(FILE_NAME);
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        let mut newest = VecDeque::new();
        let mut reader = BufReader::new(&mut file);
        let (mut end, mut seen, mut line) = (0, 0, String::new());
        while seen < lines {
            line.clear();
            let n = reader.read_line(&mut line).with_context(|| format!("cannot read {}", path.display()))?;
            if n == 0 || !line.ends_with('\n') {
                anyhow::bail!("{} has {seen} examples where the checkpoint has used {lines}", path.display())
            }
            if keep > 0 {
                let episode = serde_json::from_str(&line)
                    .with_context(|| format!("{} line {} is damaged", path.display(), seen + 1))?;
                newest.push_back(episode);
                if newest.len() > keep {
                    newest.pop_front();
                }
            }
            end += n as u64;
            seen += 1;
        }
        drop(reader);
        file.set_len(end)?;
        file.seek(std::io::SeekFrom::Start(end))?;
        Ok((Self { path, file: BufWriter::new(file), lines, world: PhantomData }, newest))
    }

    /// Appends described, demonstrated or rated episodes in order.
    pub(super) fn append(&mut self, described: &[impl Serialize]) -> anyhow::Result<()> {
        for episode in described {
            crate::output::json::write(&mut self.file, episode)
                .map_err(anyhow::Error::from)
                .and_then(|()| Ok(self.file.write_all(b"\n")?))
                .with_context(|| format!("cannot write {}", self.path.display()))?;
            self.lines += 1;
        }
        Ok(())
    }

    /// Writes everything to the disk, which must happen before a checkpoint that counts these lines. Returns their number.
    pub(super) fn sync(&mut self) -> anyhow::Result<u64> {
        self.file.flush().with_context(|| format!("cannot write {}", self.path.display()))?;
        self.file.get_ref().sync_data()?;
        Ok(self.lines)
    }
}
