//! The REGEX agent: words and requests in symbols for the student, symbols back into executed expressions.

use super::tokenise::tokenise;
use super::world::RegexWorld;
use super::{Edit, Words};
use crate::agent::{Act, Agent, Example, Lesson};
use crate::model::decoder::wrap;
use crate::model::regex_student::{Batch, Fed, RegexStudent, StudentSizes};
use crate::nn::adam::Adam;
use crate::nn::params::Params;
use crate::nn::tokens::{END, PAD, START, UNKNOWN};
use crate::rng::Stream;
use crate::vocab::Vocabulary;
use candle_core::{Device, Result, Tensor};
use serde::{Deserialize, Serialize};

/// Longest request in tokens; what people type beyond it is not read.
pub const LONGEST_REQUEST: usize = 64;

/// Longest word in characters; the rest is not read (but executed on).
pub const LONGEST_WORD: usize = 80;

/// What rebuilds an agent, beside the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blueprint {
    /// Sizes of the student.
    pub sizes: StudentSizes,
    /// Characters of words.
    pub characters: Vocabulary,
    /// Words of requests, growing.
    pub requests: Vocabulary,
    /// Characters of expressions.
    pub expressions: Vocabulary,
    /// Longest expression.
    pub horizon: usize,
    /// Whether encoders run over padding.
    pub reference_padding: bool,
}

/// The agent.
pub struct RegexAgent {
    student: RegexStudent,
    blueprint: Blueprint,
}

/// Ids of a word's characters, wrapped.
pub fn word_ids(word: &str, characters: &Vocabulary) -> Vec<u32> {
    let mut buffer = [0u8; 4];
    let ids: Vec<u32> = word.chars().take(LONGEST_WORD).map(|c| characters.id(c.encode_utf8(&mut buffer))).collect();
    wrap(&ids)
}

/// Ids of a request or description as the model reads it, wrapped.
pub fn request_ids(text: &str, requests: &Vocabulary) -> Vec<u32> {
    let tokens = tokenise(text, &|t| requests.get(t).is_some());
    let mut ids: Vec<u32> = tokens.iter().take(LONGEST_REQUEST).map(|t| requests.id(t)).collect();
    if ids.is_empty() {
        ids.push(UNKNOWN);
    }
    wrap(&ids)
}

impl RegexAgent {
    /// An agent with fresh weights.
    pub fn new(blueprint: Blueprint, stream: &mut Stream, device: &Device) -> Result<Self> {
        let student = RegexStudent::new(blueprint.sizes, blueprint.reference_padding, stream, device)?;
        Ok(Self { student, blueprint })
    }

    /// The blueprint for a world and model settings.
    pub fn plan(world: &RegexWorld, model: &super::settings::ModelSettings) -> std::result::Result<Blueprint, String> {
        let characters = Vocabulary::new(world.char_vocab(), 0)?;
        let requests = Vocabulary::new(world.request_vocab(), model.reserve)?;
        let expressions = Vocabulary::new(world.expression_vocab(), 0)?;
        Ok(Blueprint {
            sizes: StudentSizes {
                characters: characters.rows(),
                request_words: requests.rows(),
                outputs: expressions.rows(),
                hidden: model.hidden,
                character_embedding: model.character_embedding,
                word_embedding: model.word_embedding,
            },
            characters,
            requests,
            expressions,
            horizon: model.horizon,
            reference_padding: model.reference_padding,
        })
    }

    fn expression_ids(&self, expression: &str) -> Vec<u32> {
        word_ids(expression, &self.blueprint.expressions)
    }

    /// Word and request of each task as the policy reads them when it acts.
    fn read(&self, tasks: &[(&Words, &str)], batch: &mut Batch) {
        let b = &self.blueprint;
        for (start, request) in tasks {
            batch.words.push(word_ids(start.words.first().map_or("", String::as_str), &b.characters));
            batch.requests.push(request_ids(request, &b.requests));
        }
    }

    /// The symbols that the policy wrote, from the text that they spell, with the END that came unless the horizon cut
    /// it off. Padding, unknown and start symbols have names in angle brackets, which no expression holds otherwise.
    fn actions(&self, expression: &str) -> Vec<u32> {
        let b = &self.blueprint;
        let mut left = expression;
        let mut ids = Vec::new();
        while let Some(c) = left.chars().next().filter(|_| ids.len() < b.horizon) {
            let special = [PAD, UNKNOWN, START, END].into_iter().find(|id| left.starts_with(b.expressions.symbol(*id)));
            let (id, length) = match special {
                Some(id) => (id, b.expressions.symbol(id).len()),
                None => (b.expressions.id(&left[..c.len_utf8()]), c.len_utf8()),
            };
            ids.push(id);
            left = &left[length..];
        }
        if ids.len() < b.horizon {
            ids.push(END);
        }
        ids
    }

    /// Rows (word_j, words) → expression of groups of examples, and how many outputs each group has. Groups that differ in
    /// their expressions alone share one reading.
    fn batch(&self, groups: &[(&[Example<RegexWorld>], f32)]) -> (Batch, Vec<(usize, f32)>) {
        let same = |a: &[Example<RegexWorld>], b: &[Example<RegexWorld>]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.words == b.words && a.start == b.start)
        };
        let shared = groups.windows(2).all(|pair| same(pair[0].0, pair[1].0));
        let mut batch = Batch::default();
        let mut shares = Vec::with_capacity(groups.len());
        for (number, (examples, share)) in groups.iter().enumerate() {
            let before = batch.outputs.len();
            for example in *examples {
                let output = self.expression_ids(&example.execution.expression);
                batch.outputs.extend(std::iter::repeat_n(output, example.start.words.len()));
                if number > 0 && shared {
                    continue;
                }
                let request = request_ids(&example.words, &self.blueprint.requests);
                for word in &example.start.words {
                    batch.words.push(word_ids(word, &self.blueprint.characters));
                    batch.requests.push(request.clone());
                }
            }
            shares.push((batch.outputs.len() - before, *share));
        }
        (batch, shares)
    }
}

impl RegexAgent {
    /// What the decoder is fed in lessons that are no examples.
    fn fed(&self, lesson: &Lesson<RegexWorld>) -> (Batch, Fed) {
        let mut batch = Batch::default();
        let fed = match lesson {
            Lesson::Likelihood(_) => Fed::default(),
            Lesson::Imitation { tasks, rolled, shown } => {
                self.read(tasks, &mut batch);
                batch.outputs = shown.iter().map(|e| self.expression_ids(&e.expression)).collect();
                let fed: Vec<_> =
                    rolled.iter().map(|e| [&[START], self.actions(&e.expression).as_slice()].concat()).collect();
                self.student.imitation(&batch, &fed)
            }
            Lesson::Reward { tasks, executions, advantages, entropy } => {
                self.read(tasks, &mut batch);
                let actions: Vec<_> = executions.iter().map(|e| self.actions(&e.expression)).collect();
                self.student.reward(&actions, advantages, *entropy)
            }
        };
        (batch, fed)
    }
}

impl Agent<RegexWorld> for RegexAgent {
    fn act(&self, tasks: &[(&Words, &str)], how: Act, stream: &mut Stream) -> Result<Vec<Edit>> {
        let b = &self.blueprint;
        let words: Vec<_> = tasks
            .iter()
            .map(|(start, _)| word_ids(start.words.first().map_or("", String::as_str), &b.characters))
            .collect();
        let requests: Vec<_> = tasks.iter().map(|(_, request)| request_ids(request, &b.requests)).collect();
        let outputs = self.student.roll_out(&words, &requests, b.horizon, how == Act::Sample, stream)?;
        Ok(outputs
            .into_iter()
            .zip(tasks)
            .map(|(rolled, (start, _))| {
                let expression: String = rolled.symbols.iter().map(|id| b.expressions.symbol(*id)).collect();
                // What never came to an end is no expression, nor is one with a symbol that no character spells.
                if rolled.ended && rolled.symbols.iter().all(|id| *id > END) {
                    Edit::of(&expression, start)
                } else {
                    Edit { expression, outputs: None }
                }
            })
            .collect())
    }

    fn loss(&self, lesson: &Lesson<RegexWorld>) -> Result<Tensor> {
        match lesson {
            Lesson::Likelihood(groups) => {
                let (batch, shares) = self.batch(groups);
                self.student.loss(&batch, &shares)
            }
            other => {
                let (batch, fed) = self.fed(other);
                self.student.loss_fed(&batch, &fed)
            }
        }
    }

    fn step(&mut self, adam: &mut Adam, lesson: &Lesson<RegexWorld>) -> Result<Tensor> {
        match lesson {
            Lesson::Likelihood(groups) => {
                let (batch, shares) = self.batch(groups);
                self.student.step(&batch, &shares, adam)
            }
            other => {
                let (batch, fed) = self.fed(other);
                self.student.step_fed(&batch, &fed, adam)
            }
        }
    }

    fn learn_words(&mut self, texts: &[&str]) -> usize {
        let mut learnt = 0;
        for text in texts {
            let requests = &self.blueprint.requests;
            let tokens = tokenise(text, &|t| requests.get(t).is_some());
            for token in tokens.iter().take(LONGEST_REQUEST) {
                learnt += usize::from(self.blueprint.requests.learn(token));
            }
        }
        learnt
    }

    fn params(&self) -> &Params {
        &self.student.params
    }

    fn blueprint(&self) -> serde_json::Value {
        serde_json::to_value(&self.blueprint).unwrap_or_default()
    }

    fn duplicate_on(&self, device: &Device) -> Result<Box<dyn Agent<RegexWorld>>> {
        let mut unused = crate::rng::stream(0, "duplicate", 0);
        let copy = Self::new(self.blueprint.clone(), &mut unused, device)?;
        copy.student.params.copy_from(&self.student.params)?;
        Ok(Box::new(copy))
    }

    fn restore_blueprint(&mut self, blueprint: &serde_json::Value) -> std::result::Result<(), String> {
        let wanted: Blueprint = serde_json::from_value(blueprint.clone()).map_err(|e| e.to_string())?;
        if wanted.sizes != self.blueprint.sizes {
            return Err("the checkpoint's agent has other sizes".into());
        }
        self.blueprint = wanted;
        Ok(())
    }
}
