//! The REGEX agent: words and requests in symbols for the student, symbols back into executed expressions.

use super::letters::{self, Letters, Renaming, Slots};
use super::tokenise::tokenise;
use super::world::RegexWorld;
use super::{Edit, Words};
use crate::agent::{Act, Agent, Example, Noise};
use crate::model::decoder::wrap;
use crate::model::regex_student::{Batch, RegexStudent, StudentSizes};
use crate::nn::params::Params;
use crate::nn::tokens::{END, UNKNOWN};
use crate::rng::Stream;
use crate::vocab::Vocabulary;
use candle_core::{Device, Result, Tensor};
use rand::RngExt;
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
    /// How letters are read and written.
    #[serde(default)]
    pub letters: Letters,
}

impl Blueprint {
    /// Whether weights of this blueprint can be used with another: what is renamed while learning is read as plain letters
    /// are.
    pub fn fits(&self, other: &Blueprint) -> bool {
        let slots = |b: &Blueprint| b.letters == Letters::Slots;
        slots(self) == slots(other) && *self == Blueprint { letters: self.letters, ..other.clone() }
    }
}

/// The agent.
pub struct RegexAgent {
    student: RegexStudent,
    blueprint: Blueprint,
    /// Letters that renaming permutes.
    alphabet: Vec<char>,
}

/// Ids of a word's characters, wrapped.
pub fn word_ids(word: &str, characters: &Vocabulary) -> Vec<u32> {
    let mut buffer = [0u8; 4];
    let ids: Vec<u32> = word.chars().take(LONGEST_WORD).map(|c| characters.id(c.encode_utf8(&mut buffer))).collect();
    wrap(&ids)
}

/// Ids of a request or description as the model reads it, wrapped.
pub fn request_ids(text: &str, requests: &Vocabulary) -> Vec<u32> {
    token_ids(&request_tokens(text, requests), requests)
}

/// As much of a request as the model reads, in tokens.
fn request_tokens(text: &str, requests: &Vocabulary) -> Vec<String> {
    let mut tokens = tokenise(text, &|t| requests.get(t).is_some());
    tokens.truncate(LONGEST_REQUEST);
    tokens
}

fn token_ids(tokens: &[String], requests: &Vocabulary) -> Vec<u32> {
    let mut ids: Vec<u32> = tokens.iter().map(|t| requests.id(t)).collect();
    if ids.is_empty() {
        ids.push(UNKNOWN);
    }
    wrap(&ids)
}

fn symbol_ids(symbols: &[String], vocabulary: &Vocabulary) -> Vec<u32> {
    let ids: Vec<u32> = symbols.iter().take(LONGEST_WORD).map(|s| vocabulary.id(s)).collect();
    wrap(&ids)
}

impl RegexAgent {
    /// An agent with fresh weights.
    pub fn new(blueprint: Blueprint, stream: &mut Stream, device: &Device) -> Result<Self> {
        let student = RegexStudent::new(blueprint.sizes, blueprint.reference_padding, stream, device)?;
        let alphabet = Renaming::letters(&[&blueprint.characters, &blueprint.requests, &blueprint.expressions]);
        Ok(Self { student, blueprint, alphabet })
    }

    /// The blueprint for a world and model settings.
    pub fn plan(world: &RegexWorld, model: &super::settings::ModelSettings) -> std::result::Result<Blueprint, String> {
        let with_slots = |mut symbols: Vec<String>| {
            if model.letters == Letters::Slots {
                symbols.extend(letters::symbols());
            }
            symbols
        };
        let characters = Vocabulary::new(with_slots(world.char_vocab()), 0)?;
        let requests = Vocabulary::new(with_slots(world.request_vocab()), model.reserve)?;
        let expressions = Vocabulary::new(with_slots(world.expression_vocab()), 0)?;
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
            letters: model.letters,
        })
    }

    /// The slots of a tokenised request: none unless letters are read as slots.
    fn slots(&self, tokens: &[String]) -> Slots {
        if self.blueprint.letters == Letters::Slots { Slots::of(tokens) } else { Slots::default() }
    }

    /// The J rows that an example gives: (word_j, words) → expression.
    fn rows(&self, examples: &[Example<RegexWorld>], mut noise: Option<&mut Noise>, batch: &mut Batch) -> usize {
        let b = &self.blueprint;
        let before = batch.words.len();
        for example in examples {
            let tokens = request_tokens(&example.words, &b.requests);
            let slots = self.slots(&tokens);
            let request = slots.request(&tokens);
            let ids = token_ids(&request, &b.requests);
            let output = symbol_ids(&slots.expression(&example.execution.expression), &b.expressions);
            for word in &example.start.words {
                match noise.as_deref_mut() {
                    Some(noise) if b.letters == Letters::Renamed => {
                        let renaming = Renaming::draw(&self.alphabet, &mut noise.stream);
                        batch.words.push(word_ids(&renaming.word(word), &b.characters));
                        batch.requests.push(self.heard(&renaming.request(&request), noise));
                        let expression = renaming.expression(&example.execution.expression);
                        batch.outputs.push(word_ids(&expression, &b.expressions));
                        continue;
                    }
                    Some(noise) if noise.word_dropout > 0.0 => batch.requests.push(self.heard(&request, noise)),
                    _ => batch.requests.push(ids.clone()),
                }
                batch.words.push(symbol_ids(&slots.word(word), &b.characters));
                batch.outputs.push(output.clone());
            }
        }
        batch.words.len() - before
    }

    /// Ids of a request of which some words were not understood. Letters always are: nothing else says which they were.
    fn heard(&self, tokens: &[String], noise: &mut Noise) -> Vec<u32> {
        let mut ids = token_ids(tokens, &self.blueprint.requests);
        if noise.word_dropout > 0.0 {
            // The first id is the start symbol.
            for (id, letter) in ids[1..].iter_mut().zip(letters::in_brackets(tokens)) {
                if !letter && noise.stream.random_bool(noise.word_dropout) {
                    *id = UNKNOWN;
                }
            }
        }
        ids
    }

    /// What an execution with these output symbols does.
    fn execution(&self, symbols: Option<&[u32]>, slots: &Slots, start: &Words) -> Edit {
        // It never came to an end: no expression.
        let Some(ids) = symbols else { return Edit { expression: String::new(), outputs: None } };
        let symbols = || ids.iter().map(|id| self.blueprint.expressions.symbol(*id));
        // A symbol that no character spells makes no expression.
        match slots.spell(symbols()).filter(|_| ids.iter().all(|id| *id > END)) {
            Some(expression) => Edit::of(&expression, start),
            None => Edit { expression: symbols().collect(), outputs: None },
        }
    }
}

impl Agent<RegexWorld> for RegexAgent {
    fn act(&self, tasks: &[(&Words, &str)], how: Act, stream: &mut Stream) -> Result<Vec<Edit>> {
        let b = &self.blueprint;
        let (mut words, mut requests, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        for (start, request) in tasks {
            let tokens = request_tokens(request, &b.requests);
            let named = self.slots(&tokens);
            let word = start.words.first().map_or("", String::as_str);
            words.push(symbol_ids(&named.word(word), &b.characters));
            requests.push(token_ids(&named.request(&tokens), &b.requests));
            slots.push(named);
        }
        let outputs = self.student.act(&words, &requests, b.horizon, how == Act::Sample, stream)?;
        let executions = outputs.iter().zip(tasks).zip(&slots);
        Ok(executions.map(|((ids, (start, _)), slots)| self.execution(ids.as_deref(), slots, start)).collect())
    }

    fn loss(&self, groups: &[(&[Example<RegexWorld>], f32)], mut noise: Option<&mut Noise>) -> Result<Tensor> {
        let mut batch = Batch::default();
        let shares: Vec<(usize, f32)> = groups
            .iter()
            .map(|(examples, share)| (self.rows(examples, noise.as_deref_mut(), &mut batch), *share))
            .collect();
        self.student.loss(&batch, &shares)
    }

    fn learn_words(&mut self, texts: &[&str]) -> usize {
        let mut learnt = 0;
        for text in texts {
            let tokens = request_tokens(text, &self.blueprint.requests);
            for token in self.slots(&tokens).request(&tokens) {
                learnt += usize::from(self.blueprint.requests.learn(&token));
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
