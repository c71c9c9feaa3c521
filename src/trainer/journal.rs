//! The run's record of descriptions: an append-only file of every example in the order of its use, which is also the
//! replay memory, and the notes for the store (simulated episodes, updates), written in batches.

use crate::ids::RunId;
use crate::protocol::DescribedEpisode;
use crate::protocol::World;
use crate::rng::Stream;
use crate::run::EpisodeRow;
use crate::store::{Store, UpdateRecord};
use anyhow::Context;
use rand::RngExt;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

/// File name of the record within the run's folder: one JSON example a line.
pub const RECORD: &str = "descriptions.jsonl";

/// The record, and the memory that replay draws from.
pub struct Record<W: World> {
    path: PathBuf,
    file: BufWriter<File>,
    lines: u64,
    memory: VecDeque<DescribedEpisode<W>>,
    capacity: usize,
}

impl<W: World> Record<W> {
    /// Opens the record of a run and cuts it back to `lines` (what the checkpoint knew); a half-written last line goes
    /// with the rest. Keeps the newest `capacity` examples in memory.
    ///
    /// # Errors
    /// When the file cannot be used, or has fewer whole lines than the checkpoint says.
    pub fn open(folder: &Path, lines: u64, capacity: usize) -> anyhow::Result<Self> {
        let path = folder.join(RECORD);
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        let mut memory = VecDeque::new();
        let mut reader = BufReader::new(&mut file);
        let (mut end, mut seen, mut line) = (0, 0, String::new());
        while seen < lines {
            line.clear();
            let n = reader.read_line(&mut line).with_context(|| format!("cannot read {}", path.display()))?;
            if n == 0 || !line.ends_with('\n') {
                anyhow::bail!("{} has {seen} examples where the checkpoint has used {lines}", path.display())
            }
            if capacity > 0 {
                let example = serde_json::from_str(&line)
                    .with_context(|| format!("{} line {} is damaged", path.display(), seen + 1))?;
                memory.push_back(example);
                if memory.len() > capacity {
                    memory.pop_front();
                }
            }
            end += n as u64;
            seen += 1;
        }
        drop(reader);
        file.set_len(end)?;
        file.seek(std::io::SeekFrom::Start(end))?;
        Ok(Self { path, file: BufWriter::new(file), lines, memory, capacity })
    }

    /// Appends examples in order.
    pub fn append(&mut self, examples: &[DescribedEpisode<W>]) -> anyhow::Result<()> {
        for example in examples {
            crate::output::json::write(&mut self.file, example)
                .map_err(anyhow::Error::from)
                .and_then(|()| Ok(self.file.write_all(b"\n")?))
                .with_context(|| format!("cannot write {}", self.path.display()))?;
            self.lines += 1;
            if self.capacity > 0 {
                self.memory.push_back(example.clone());
                if self.memory.len() > self.capacity {
                    self.memory.pop_front();
                }
            }
        }
        Ok(())
    }

    /// Puts everything on disk; before a checkpoint that counts these lines.
    pub fn sync(&mut self) -> anyhow::Result<u64> {
        self.file.flush().with_context(|| format!("cannot write {}", self.path.display()))?;
        self.file.get_ref().sync_data()?;
        Ok(self.lines)
    }

    /// The newest `n` examples, oldest first (fewer when memory holds fewer).
    pub fn last(&self, n: usize) -> Vec<DescribedEpisode<W>> {
        self.memory.iter().skip(self.memory.len().saturating_sub(n)).cloned().collect()
    }

    /// Keeps at most the newest `capacity` examples in memory from now on.
    pub fn limit(&mut self, capacity: usize) {
        self.capacity = capacity;
        while self.memory.len() > capacity {
            self.memory.pop_front();
        }
    }

    /// `n` examples drawn uniformly from memory, with replacement; none when it is empty.
    pub fn draw(&self, n: usize, stream: &mut Stream) -> Vec<DescribedEpisode<W>> {
        if self.memory.is_empty() {
            return Vec::new();
        }
        (0..n).map(|_| self.memory[stream.random_range(0..self.memory.len())].clone()).collect()
    }
}

/// Notes for the store, gathered and written together.
pub struct Notes {
    store: Store,
    runtime: tokio::runtime::Handle,
    run: RunId,
    episodes: Vec<EpisodeRow>,
    updates: Vec<UpdateRecord>,
    last: std::time::Instant,
}

impl Notes {
    /// Notes of `run`.
    pub fn new(store: Store, runtime: tokio::runtime::Handle, run: RunId) -> Self {
        Self { store, runtime, run, episodes: Vec::new(), updates: Vec::new(), last: std::time::Instant::now() }
    }

    /// The store behind.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The runtime that store calls run on.
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        &self.runtime
    }

    /// Waits for a store call from the trainer's thread.
    pub fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }

    /// Notes a simulated episode.
    pub fn episode(&mut self, row: EpisodeRow) {
        self.episodes.push(row);
    }

    /// Notes an update that used nobody's typed answer.
    pub fn update(&mut self, record: UpdateRecord) {
        self.updates.push(record);
    }

    /// Writes what was noted if a second has passed or `now`.
    pub fn flush(&mut self, now: bool) -> anyhow::Result<()> {
        if !now && self.last.elapsed().as_millis() < 1000 {
            return Ok(());
        }
        self.last = std::time::Instant::now();
        if !self.episodes.is_empty() {
            self.wait(self.store.record_simulated(&self.run, &self.episodes))?;
            self.episodes.clear();
        }
        if !self.updates.is_empty() {
            self.wait(self.store.record_updates(&self.run, &self.updates))?;
            self.updates.clear();
        }
        Ok(())
    }

    /// Records an update that used typed answers, durably, after everything noted before it.
    pub fn human_update(&mut self, record: &UpdateRecord) -> anyhow::Result<()> {
        self.flush(true)?;
        Ok(self.wait(self.store.record_update(&self.run, record))?)
    }
}
