//! The REGEX simulated teacher's models, executor and describer: how they read and write, their file, their training.

use super::agent::{request_ids, word_ids};
use super::reference_fixtures::{describer_names, student_names};
use super::settings::ModelSettings;
use super::world::RegexWorld;
use super::{Edit, PAIRS, Words};
use crate::family::imported::ModelImport;
use crate::family::{TeacherReport, TeacherTraining};
use crate::nn::adam::Adam;
use crate::nn::artifact::{self, Precision};
use crate::nn::params::Params;
use crate::nn::weights_file::Wanted;
use crate::protocol::Teacher;
use crate::protocol::{Split, Task, World};
use crate::rng::{self, Stream};
use crate::task::regex::model::describer::{DescriberSizes, RegexDescriber};
use crate::task::regex::model::student::{Batch, RegexStudent, StudentSizes};
use crate::teacher::training::{Length, Qualifying, keep_best, qualifying};
use crate::vocab::Vocabulary;
use candle_core::{Device, Result, Tensor};
use rand::RngExt;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::RwLock;
use std::time::Instant;

/// Rows of one pass of the executor. On the CPU short passes of rows of one length spare the most padding; a GPU wants
/// long ones.
fn rows_of_a_pass(device: &Device) -> usize {
    if device.is_cpu() { 192 } else { 4096 }
}

/// Longest description that a teacher may be made for, in words.
const LONGEST_DESCRIPTION: usize = 1000;

/// Header of a teacher file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// `teacher`.
    pub kind: String,
    /// `regex`.
    pub family: String,
    /// Sizes of the executor.
    pub executor: StudentSizes,
    /// Sizes of the describer.
    pub describer: DescriberSizes,
    /// Characters of words and pairs.
    pub characters: Vocabulary,
    /// Words of descriptions.
    pub words: Vocabulary,
    /// Whether encoders run over padding.
    pub reference_padding: bool,
    /// Longest description.
    pub horizon: usize,
    /// How it was made: the command's settings and what it reached.
    pub made: serde_json::Value,
}

/// The models.
pub struct RegexTeacher {
    executor: RegexStudent,
    describer: RegexDescriber,
    header: Header,
    memo: RwLock<HashMap<String, Vec<u32>>>,
}

/// Texts whose ids are remembered.
const MEMO: usize = 200_000;

/// One character sequence `<in@out>` a pair.
fn pair_ids(word: &str, output: &str, characters: &Vocabulary) -> Vec<u32> {
    word_ids(&format!("{word}@{output}"), characters)
}

impl RegexTeacher {
    /// Untrained models for a world.
    pub fn new(
        world: &RegexWorld,
        model: &ModelSettings,
        stream: &mut Stream,
        device: &Device,
    ) -> anyhow::Result<Self> {
        let characters = Vocabulary::new(world.char_vocab(), 0).map_err(anyhow::Error::msg)?;
        let words = Vocabulary::new(world.request_vocab(), 0).map_err(anyhow::Error::msg)?;
        let header = Header {
            kind: "teacher".into(),
            family: "regex".into(),
            executor: StudentSizes {
                characters: characters.rows(),
                request_words: words.rows(),
                outputs: characters.rows(),
                hidden: model.hidden,
                character_embedding: model.character_embedding,
                word_embedding: model.word_embedding,
            },
            describer: DescriberSizes {
                characters: characters.rows(),
                words: words.rows(),
                hidden: model.hidden,
                character_embedding: model.character_embedding,
                word_embedding: model.word_embedding,
            },
            characters,
            words,
            reference_padding: model.reference_padding,
            horizon: model.horizon.max(40),
            made: serde_json::Value::Null,
        };
        Ok(Self::from_header(header, stream, device)?)
    }

    fn from_header(header: Header, stream: &mut Stream, device: &Device) -> Result<Self> {
        let executor = RegexStudent::new(header.executor, header.reference_padding, stream, device)?;
        let describer = RegexDescriber::new(header.describer, header.reference_padding, stream, device)?;
        Ok(Self { executor, describer, header, memo: RwLock::default() })
    }

    /// The models in a teacher file (`path` names it in errors).
    pub fn load(path: &Path, bytes: &[u8], device: &Device) -> anyhow::Result<Self> {
        let (header, tensors): (Header, BTreeMap<String, Tensor>) = artifact::load_bytes(path, bytes)?;
        if header.kind != "teacher" || header.family != "regex" {
            anyhow::bail!("{} is not a teacher of the REGEX task", path.display())
        }
        let (executor, describer) = (&header.executor, &header.describer);
        let (characters, words) = (header.characters.rows(), header.words.rows());
        let fits = [executor.characters, executor.outputs, describer.characters] == [characters; 3]
            && [executor.request_words, describer.words] == [words; 2];
        if !fits || !(1..=LONGEST_DESCRIPTION).contains(&header.horizon) {
            anyhow::bail!("{} is damaged: its sizes do not fit its vocabularies", path.display())
        }
        let teacher = Self::from_header(header, &mut rng::stream(0, "load", 0), device)?;
        for (name, params) in teacher.parts() {
            let prefix = format!("{name}.");
            let part =
                tensors.iter().filter_map(|(k, t)| Some((k.strip_prefix(&prefix)?.to_owned(), t.clone()))).collect();
            params.load(&part)?;
        }
        Ok(teacher)
    }

    /// Writes a teacher file from weights that another program wrote.
    ///
    /// # Errors
    /// When they do not fit these models, or the file cannot be written.
    pub(super) fn import(mut self, import: &ModelImport<'_>) -> anyhow::Result<()> {
        let mut wanted = Wanted::default();
        for ((name, params), names) in self.parts().into_iter().zip([student_names(), describer_names()]) {
            wanted = wanted.with(&format!("{name}."), &params.snapshot()?, &names);
        }
        self.header.made = import.made.clone();
        let tensors = import.weights.fit(&wanted, import.ignored)?;
        Ok(artifact::save(import.output, &self.header, &tensors, import.precision)?)
    }

    fn parts(&self) -> [(&'static str, &Params); 2] {
        [("executor", &self.executor.params), ("describer", &self.describer.params)]
    }

    /// Writes a teacher file.
    pub fn save(&self, path: &Path, precision: Precision) -> anyhow::Result<()> {
        let mut tensors = BTreeMap::new();
        for (name, params) in self.parts() {
            for (key, t) in params.snapshot()? {
                tensors.insert(format!("{name}.{key}"), t);
            }
        }
        Ok(artifact::save(path, &self.header, &tensors, precision)?)
    }

    fn pairs(&self, start: &Words, execution: &Edit) -> Vec<Vec<u32>> {
        let outputs = execution.outputs.as_deref().unwrap_or(&start.words);
        start.words.iter().zip(outputs).map(|(w, o)| pair_ids(w, o, &self.header.characters)).collect()
    }

    /// For each (word, description, output): whether the executor writes exactly the output.
    fn reproduces(&self, rows: &[(&str, &str, &str)]) -> Result<Vec<bool>> {
        let h = &self.header;
        // Long rows make a whole pass long; sorted by length, short ones do not wait for them.
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|&i| (rows[i].1.len(), rows[i].2.len()));
        let mut same = vec![false; rows.len()];
        for part in order.chunks(rows_of_a_pass(self.executor.params.device())) {
            let read = |&i: &usize| {
                let (word, description, output) = rows[i];
                (word_ids(word, &h.characters), self.read(description), word_ids(output, &h.characters))
            };
            let batch = Batch::of(part.par_iter().map(read).collect());
            for (&i, ok) in part.iter().zip(self.executor.reproduces(&batch)?) {
                same[i] = ok;
            }
        }
        Ok(same)
    }
}

impl Teacher<RegexWorld> for RegexTeacher {
    fn propose(&self, executions: &[(&Words, &Edit)], samples: usize, stream: &mut Stream) -> Result<Vec<Vec<String>>> {
        let items: Vec<_> = executions.iter().map(|(s, e)| self.pairs(s, e)).collect();
        let proposed = self.describer.propose(&items, samples, self.header.horizon, stream)?;
        let text = |ids: Vec<u32>| ids.iter().map(|id| self.header.words.symbol(*id)).collect::<Vec<_>>().join(" ");
        Ok(proposed.into_iter().map(|c| c.into_iter().map(|ids| ids.map(text).unwrap_or_default()).collect()).collect())
    }

    /// The executor must give the same output for at least the share τ of the words. Most candidates fail at the first
    /// word, so the others are only read for those that can still qualify.
    fn qualifies(&self, items: &[(&Words, &Edit, &str)], tau: f64) -> Result<Vec<bool>> {
        let outputs = |i: usize| items[i].1.outputs.as_deref().unwrap_or(&items[i].0.words);
        let row = |i: usize, j: usize| (items[i].0.words[j].as_str(), items[i].2, outputs(i)[j].as_str());
        let needed = |i: usize| (tau.min(1.0) * items[i].0.words.len() as f64).ceil() as usize;
        let mut hits = vec![0usize; items.len()];
        let mut open: Vec<usize> =
            (0..items.len()).filter(|&i| !items[i].2.is_empty() && !items[i].0.words.is_empty()).collect();
        for stage in [0..1, 1..usize::MAX] {
            let asked: Vec<(usize, usize)> = open
                .iter()
                .flat_map(|&i| (stage.start..stage.end.min(items[i].0.words.len())).map(move |j| (i, j)))
                .collect();
            if asked.is_empty() {
                break;
            }
            let rows: Vec<_> = asked.iter().map(|&(i, j)| row(i, j)).collect();
            for (&(i, _), ok) in asked.iter().zip(self.reproduces(&rows)?) {
                hits[i] += usize::from(ok);
            }
            open.retain(|&i| hits[i] + items[i].0.words.len().saturating_sub(stage.end) >= needed(i));
        }
        Ok((0..items.len()).map(|i| hits[i] > 0 && hits[i] >= needed(i)).collect())
    }
}

/// Batches that are drawn together; the longest items go to the first of them, so that the others are short.
const SHARED: u64 = 8;

/// Tasks of the simulation split, update by update. Those of eight consecutive updates are drawn together; those
/// with the longest requests and words go to the first of them, the others stay as they were drawn.
pub struct Draws<'a> {
    world: &'a RegexWorld,
    seed: u64,
    what: &'static str,
    fresh_words: bool,
    drawn: Option<(u64, Vec<Task<Words>>)>,
}

impl<'a> Draws<'a> {
    /// The draws for `what` (`executor` or `describer`).
    pub fn new(world: &'a RegexWorld, seed: u64, what: &'static str, fresh_words: bool) -> Self {
        Self { world, seed, what, fresh_words, drawn: None }
    }

    fn tasks(&mut self, update: u64, n: usize) -> &[Task<Words>] {
        let (number, part) = (update / SHARED, (update % SHARED) as usize);
        let together = n * SHARED as usize;
        if self.drawn.as_ref().is_none_or(|(at, tasks)| *at != number || tasks.len() != together) {
            let mut stream = rng::stream(self.seed, self.what, number);
            let drawn = (0..together).map(|_| self.world.sample_task(Split::Train, &mut stream));
            let drawn: Vec<_> = drawn.collect();
            let length = |t: &Task<Words>| {
                let examples = &self.world.item(t.split, t.index).examples;
                let pair = examples.iter().map(|(w, o)| w.len() + o.len()).max().unwrap_or(0);
                // A request of 20 tokens is as rare as a pair of 32 letters.
                (words_in(&t.request) * 8).max(pair * 5)
            };
            let mut lengths: Vec<usize> = drawn.iter().map(length).collect();
            lengths.sort_unstable_by(|a, b| b.cmp(a));
            let bound = lengths[n - 1];
            let mut room = n - lengths.iter().filter(|l| **l > bound).count();
            let (mut first, rest): (Vec<_>, Vec<_>) = drawn.into_iter().partition(|t| {
                let l = length(t);
                let takes = l > bound || (l == bound && room > 0);
                room -= usize::from(l == bound && takes);
                takes
            });
            first.extend(rest);
            self.drawn = Some((number, first));
        }
        self.drawn.as_ref().map_or(&[], |(_, tasks)| &tasks[part * n..(part + 1) * n])
    }
}

/// Words and outputs of a task: new ones, or those that it has in the corpus.
fn examples(world: &RegexWorld, task: &Task<Words>, fresh: bool, stream: &mut Stream) -> [(String, String); PAIRS] {
    let item = world.item(task.split, task.index);
    let drawn = if fresh { world.fresh_examples(&item.expression, stream) } else { None };
    drawn.unwrap_or_else(|| item.examples.clone())
}

/// Symbols of a request with its ends, roughly: requests of a corpus are tokens between blanks.
fn words_in(request: &str) -> usize {
    request.split(' ').count() + 2
}

impl RegexTeacher {
    /// The examples of one update of the executor: one of a task's words, the request, and its output.
    pub fn executor_batch(&self, draws: &mut Draws<'_>, update: u64, n: usize) -> Batch {
        let (world, seed, fresh) = (draws.world, draws.seed, draws.fresh_words);
        let rows: Vec<_> = draws
            .tasks(update, n)
            .par_iter()
            .enumerate()
            .map(|(i, task)| {
                let mut stream = rng::stream(seed, "executor-words", update * n as u64 + i as u64);
                let examples = examples(world, task, fresh, &mut stream);
                let (word, output) = &examples[stream.random_range(0..examples.len())];
                let characters = &self.header.characters;
                (word_ids(word, characters), self.read(&task.request), word_ids(output, characters))
            })
            .collect();
        Batch::of(rows)
    }

    /// The examples of one update of the describer: all pairs of a task, and the request.
    pub fn describer_batch(&self, draws: &mut Draws<'_>, update: u64, n: usize) -> (Vec<Vec<Vec<u32>>>, Vec<Vec<u32>>) {
        let (world, seed, fresh) = (draws.world, draws.seed, draws.fresh_words);
        let rows = draws.tasks(update, n).par_iter().enumerate().map(|(i, task)| {
            let mut stream = rng::stream(seed, "describer-words", update * n as u64 + i as u64);
            let examples = examples(world, task, fresh, &mut stream);
            let pairs = examples.iter().map(|(w, o)| pair_ids(w, o, &self.header.characters)).collect();
            (pairs, self.read(&task.request))
        });
        rows.collect::<Vec<_>>().into_iter().unzip()
    }

    /// Ids of a description as the models read it, wrapped. What was read before is remembered.
    fn read(&self, text: &str) -> Vec<u32> {
        if let Some(ids) = self.memo.read().unwrap().get(text) {
            return ids.clone();
        }
        let ids = request_ids(text, &self.header.words);
        let mut memo = self.memo.write().unwrap();
        if memo.len() >= MEMO {
            memo.clear();
        }
        memo.insert(text.to_owned(), ids.clone());
        ids
    }

    /// One step of the executor's optimiser; the loss.
    pub fn train_executor(&self, batch: &Batch, adam: &mut Adam) -> Result<Tensor> {
        self.executor.step(batch, &[(batch.words.len(), 1.0)], adam)
    }

    /// One step of the describer's optimiser; the loss.
    pub fn train_describer(&self, items: &[Vec<Vec<u32>>], texts: &[Vec<u32>], adam: &mut Adam) -> Result<Tensor> {
        self.describer.step(items, texts, adam)
    }

    /// Optimisers of executor and describer.
    pub fn optimisers(&self, rate: f64) -> Result<(Adam, Adam)> {
        Ok((Adam::new(&self.executor.params, rate)?, Adam::new(&self.describer.params, rate)?))
    }
}

/// Trains executor and describer on the simulation split (`docs/models.md`); the best on validation are kept.
pub fn train(
    world: &RegexWorld,
    model: &ModelSettings,
    request: &TeacherTraining<'_>,
) -> anyhow::Result<TeacherReport> {
    let begun = Instant::now();
    let seed = request.config.seed;
    let mut teacher = RegexTeacher::new(world, model, &mut rng::stream(seed, "teacher-init", 0), request.device)?;
    let (mut adam, mut adam_describer) = teacher.optimisers(request.config.algorithm.learning_rate)?;
    let fresh = request.config.teacher.training.fresh_words;

    let mut draws = Draws::new(world, seed, "executor", fresh);
    let executor = keep_best(
        request,
        &Length { updates: request.executor_updates, begun, share: 0.5 },
        &teacher.executor.params,
        |update| teacher.train_executor(&teacher.executor_batch(&mut draws, update, request.batch), &mut adam),
        || executor_success(world, &teacher),
        |n, loss, score| {
            format!("executor: update {n}, loss {loss:.3}, {:.1}% of validation words right", 100.0 * score)
        },
    )?;
    let mut draws = Draws::new(world, seed, "describer", fresh);
    let describer = keep_best(
        request,
        &Length { updates: request.describer_updates, begun, share: 1.0 },
        &teacher.describer.params,
        |update| {
            let (items, texts) = teacher.describer_batch(&mut draws, update, request.batch);
            teacher.train_describer(&items, &texts, &mut adam_describer)
        },
        || pragmatic_score(world, &teacher, request.config.teacher.pragmatics.samples, seed),
        |n, loss, score| score.told(n, loss),
    )?;
    let Qualifying { some, greedy } = describer.unwrap_or_default();
    let report = TeacherReport {
        executor_success: executor.unwrap_or_default(),
        greedy_qualifies: greedy,
        some_qualifies: some,
        n: items_for_scores(world).len(),
        seconds: begun.elapsed().as_secs_f64(),
    };
    teacher.header.made = serde_json::json!({
        "preset": request.config.preset,
        "seed": seed,
        "executor_updates": request.executor_updates,
        "describer_updates": request.describer_updates,
        "batch": request.batch,
        "fresh_words": fresh,
        "device": crate::nn::device::label(request.device),
        "reached": report,
    });
    teacher.save(request.output, if request.half { Precision::Half } else { Precision::Full })?;
    Ok(report)
}

/// Validation tasks that scores are over: at most 500, spread evenly.
fn items_for_scores(world: &RegexWorld) -> Vec<usize> {
    let n = world.len(Split::Validation);
    let k = n.min(500);
    (0..k).map(|i| i * n / k).collect()
}

/// Share of validation words whose output the executor writes exactly, told the request.
fn executor_success(world: &RegexWorld, teacher: &RegexTeacher) -> Result<f64> {
    let items: Vec<_> = items_for_scores(world)
        .into_iter()
        .map(|i| (world.task(Split::Validation, i), world.gold(Split::Validation, i)))
        .collect();
    let mut rows = Vec::new();
    for (task, gold) in &items {
        let outputs = gold.outputs.as_deref().unwrap_or(&task.start.words);
        rows.extend(task.start.words.iter().zip(outputs).map(|(w, o)| (w.as_str(), task.request.as_str(), o.as_str())));
    }
    let same = teacher.reproduces(&rows)?;
    Ok(same.iter().filter(|s| **s).count() as f64 / same.len().max(1) as f64)
}

/// How many validation items' gold executions the describer's candidates qualify for.
fn pragmatic_score(world: &RegexWorld, teacher: &RegexTeacher, samples: usize, seed: u64) -> Result<Qualifying> {
    let item = |i| (world.task(Split::Validation, i).start, world.gold(Split::Validation, i));
    let items: Vec<_> = items_for_scores(world).into_iter().map(item).collect();
    let executions: Vec<_> = items.iter().map(|(start, gold)| (start, gold)).collect();
    qualifying::<RegexWorld>(teacher, &executions, samples, 1.0, seed)
}
