//! The REGEX agent: words and requests in symbols for the student, symbols back into executed expressions.

use super::tokenise::tokenise;
use super::world::RegexWorld;
use super::{Edit, Words};
use crate::agent::{Act, Agent, Example};
use crate::model::decoder::wrap;
use crate::model::regex_student::{Batch, RegexStudent, StudentSizes};
use crate::nn::params::Params;
use crate::nn::tokens::{END, UNKNOWN};
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

impl Agent<RegexWorld> for RegexAgent {
    fn act(&self, tasks: &[(&Words, &str)], how: Act, stream: &mut Stream) -> Result<Vec<Edit>> {
        let b = &self.blueprint;
        let words: Vec<_> = tasks
            .iter()
            .map(|(start, _)| word_ids(start.words.first().map_or("", String::as_str), &b.characters))
            .collect();
        let requests: Vec<_> = tasks.iter().map(|(_, request)| request_ids(request, &b.requests)).collect();
        let outputs = self.student.act(&words, &requests, b.horizon, how == Act::Sample, stream)?;
        Ok(outputs
            .into_iter()
            .zip(tasks)
            .map(|(ids, (start, _))| match ids {
                // A symbol that no character spells makes no expression.
                Some(ids) if ids.iter().all(|id| *id > END) => {
                    Edit::of(&ids.iter().map(|id| b.expressions.symbol(*id)).collect::<String>(), start)
                }
                Some(ids) => {
                    Edit { expression: ids.iter().map(|id| b.expressions.symbol(*id)).collect(), outputs: None }
                }
                // It never came to an end: no expression.
                None => Edit { expression: String::new(), outputs: None },
            })
            .collect())
    }

    fn loss(&self, groups: &[(&[Example<RegexWorld>], f32)]) -> Result<Tensor> {
        let (batch, shares) = self.batch(groups);
        self.student.loss(&batch, &shares)
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

    fn duplicate(&self) -> Result<Box<dyn Agent<RegexWorld>>> {
        let mut unused = crate::rng::stream(0, "duplicate", 0);
        let copy = Self::new(self.blueprint.clone(), &mut unused, self.student.params.device())?;
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
