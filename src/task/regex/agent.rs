//! The REGEX agent: words and requests in symbols for the student, symbols back into executed expressions.

use super::letters::{self, Letters, Renaming, Slots};
use super::ngram_prior::{Grid, NgramPrior};
use super::tokenise::tokenise;
use super::world::RegexWorld;
use super::{Edit, Words};
use crate::config::run::PriorKind;
use crate::nn::adam::{Adam, begun, begun_mut, renew_rows};
use crate::nn::decoder::{Rolled, wrap};
use crate::nn::device::beside;
use crate::nn::log_linear::ParamsWithPrior;
use crate::nn::tokens::{END, START, UNKNOWN};
use crate::protocol::{Agent, Augmentation, Decoding, Example, Lesson, Prior};
use crate::protocol::{LearnedWords, ReserveRows, Utterance};
use crate::protocol::{Optimizer, Parameters};
use crate::rng::Stream;
use crate::task::regex::model::student::{Batch, Fed, RegexStudent, StudentSizes};
use crate::vocab::Vocabulary;
use candle_core::{Device, Result, Tensor};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

/// Longest request in tokens; what people type beyond it is not read.
pub const LONGEST_REQUEST: usize = 64;

/// Longest expression that an agent may be made for, in symbols.
pub const LONGEST_EXPRESSION: usize = 200;

/// Longest word in characters; the rest is not read (but executed on).
pub const LONGEST_WORD: usize = 80;

/// Edits that the prior proposes to be ranked, and the log probability below which the best of them is not trusted.
const PROPOSED: usize = 8;
const LEAST_CERTAIN: f32 = -2.5;

/// The parameter that has a row for each word of requests. Its name is part of checkpoints.
const REQUEST_EMBEDDING: &str = "request_embedding.weight";

/// The sizes and vocabularies that rebuild an agent, beside its weights.
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
    /// The edits that the prior considers, where there is a prior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<Grid>,
    /// Weight of the network's log likelihood where the prior's proposals are ranked; 0: the prior alone ranks them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub network_weight: f64,
    /// Renamings of letters under which a request is carried out beside the plain letters when the agent acts greedily.
    #[serde(default, skip_serializing_if = "none_renamed")]
    pub votes: usize,
}

fn none_renamed(votes: &usize) -> bool {
    *votes == 0
}

fn is_zero(weight: &f64) -> bool {
    *weight == 0.0
}

impl Blueprint {
    /// Refuses what no agent of this program has, before anything is made of it.
    ///
    /// # Errors
    /// A plain sentence.
    pub fn check(&self) -> std::result::Result<(), String> {
        if !(1..=LONGEST_EXPRESSION).contains(&self.horizon) {
            return Err(format!("an agent's horizon lies between 1 and {LONGEST_EXPRESSION}, not at {}", self.horizon));
        }
        let s = &self.sizes;
        let rows = [self.characters.rows(), self.requests.rows(), self.expressions.rows()];
        if [s.characters, s.request_words, s.outputs] != rows {
            return Err("the agent's sizes do not fit its vocabularies".into());
        }
        Ok(())
    }

    /// Whether weights of this blueprint can be used with another: what is renamed while learning is read as plain letters
    /// are, a prior stands beside the network, and votes are taken of what the network writes.
    pub fn fits(&self, other: &Blueprint) -> bool {
        let slots = |b: &Blueprint| b.letters == Letters::Slots;
        let (letters, prior) = (self.letters, self.prior.clone());
        let (network_weight, votes) = (self.network_weight, self.votes);
        slots(self) == slots(other) && *self == Blueprint { letters, prior, network_weight, votes, ..other.clone() }
    }
}

/// The agent.
pub struct RegexAgent {
    pub(super) student: RegexStudent,
    /// The optimizer, once the agent learns.
    adam: Option<Adam>,
    pub(super) blueprint: Blueprint,
    /// Letters that renaming permutes.
    pub(super) alphabet: Vec<char>,
    /// The prior beside the network, and both models' parameters as one.
    prior: Option<(Mutex<NgramPrior>, ParamsWithPrior)>,
}

/// Ids of a word's characters, wrapped.
pub fn word_ids(word: &str, characters: &Vocabulary) -> Vec<u32> {
    let ids: Vec<u32> = word.chars().take(LONGEST_WORD).map(|c| characters.id_of(c)).collect();
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
        blueprint.check().map_err(candle_core::Error::msg)?;
        let student = RegexStudent::new(blueprint.sizes, blueprint.reference_padding, stream, device)?;
        let alphabet = Renaming::letters(&[&blueprint.characters, &blueprint.requests, &blueprint.expressions]);
        let prior = blueprint.prior.clone().map(|grid| prior_beside(&student, grid));
        Ok(Self { student, adam: None, blueprint, alphabet, prior })
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
            network_weight: model.network_weight,
            votes: model.votes,
            prior: (model.prior == PriorKind::Ngrams).then(|| Grid::of(world.marginal())),
        })
    }

    /// The slots of a tokenised request: none unless letters are read as slots.
    fn slots(&self, tokens: &[String]) -> Slots {
        if self.blueprint.letters == Letters::Slots { Slots::of(tokens) } else { Slots::default() }
    }

    /// Word and request of each task as the policy reads them when it acts, and the slots of each request.
    fn read(&self, tasks: &[(&Words, &str)], batch: &mut Batch) -> Vec<Slots> {
        self.read_renamed(tasks, &Renaming::default(), batch)
    }

    /// As [`RegexAgent::read`], with other letters in the word and in the request.
    pub(super) fn read_renamed(&self, tasks: &[(&Words, &str)], renaming: &Renaming, batch: &mut Batch) -> Vec<Slots> {
        let b = &self.blueprint;
        let mut all = Vec::with_capacity(tasks.len());
        for (start, request) in tasks {
            let tokens = renaming.request(&request_tokens(request, &b.requests));
            let slots = self.slots(&tokens);
            let word = renaming.word(start.words.first().map_or("", String::as_str));
            batch.words.push(symbol_ids(&slots.word(&word), &b.characters));
            batch.requests.push(token_ids(&slots.request(&tokens), &b.requests));
            all.push(slots);
        }
        all
    }

    /// The symbols that the policy wrote, from the text that they spell, with the END that came unless the horizon cut
    /// it off. Padding, unknown, start and slot symbols have names in angle brackets, which no expression holds otherwise.
    fn actions(&self, expression: &str, slots: &Slots) -> Vec<u32> {
        let b = &self.blueprint;
        let mut ids = Vec::new();
        let mut left = expression;
        while !left.is_empty() {
            // The next symbol that has a name, and the text before it.
            let named = b.expressions.symbols().iter().filter(|s| s.len() > 1);
            let next = named.filter_map(|s| Some((left.find(s.as_str())?, s))).min_by_key(|(at, _)| *at);
            let (text, rest) = left.split_at(next.map_or(left.len(), |(at, _)| at));
            ids.extend(slots.expression(text).iter().map(|s| b.expressions.id(s)));
            left = rest;
            if let Some((_, symbol)) = next {
                ids.push(b.expressions.id(symbol));
                left = &left[symbol.len()..];
            }
        }
        ids.truncate(b.horizon);
        if ids.len() < b.horizon {
            ids.push(END);
        }
        ids
    }

    /// Rows (word_j, words) → expression of groups of examples, and how many outputs each group has. Groups that differ in
    /// their expressions alone share one reading, varied the same way.
    fn batch(
        &self,
        groups: &[(&[Example<RegexWorld>], f32)],
        noise: Option<Augmentation>,
    ) -> (Batch, Vec<(usize, f32)>) {
        let b = &self.blueprint;
        let same = |a: &[Example<RegexWorld>], b: &[Example<RegexWorld>]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.words == b.words && a.start == b.start)
        };
        let shared = groups.windows(2).all(|pair| same(pair[0].0, pair[1].0));
        let dropout = noise.map_or(0.0, |n| n.word_dropout);
        let mut stream = noise.map(|n| n.stream());
        let mut batch = Batch::default();
        // How the letters of each row were renamed.
        let mut renamed: Vec<Option<Renaming>> = Vec::new();
        let mut shares = Vec::with_capacity(groups.len());
        for (number, (examples, share)) in groups.iter().enumerate() {
            let before = batch.outputs.len();
            let first = if shared { 0 } else { renamed.len() };
            let mut row = first;
            for example in *examples {
                let tokens = request_tokens(&example.words, &b.requests);
                let slots = self.slots(&tokens);
                let request = slots.request(&tokens);
                let expression = &example.execution.expression;
                let output = symbol_ids(&slots.expression(expression), &b.expressions);
                for word in &example.start.words {
                    if number == 0 || !shared {
                        let (renaming, heard) = match &mut stream {
                            Some(stream) if b.letters == Letters::Renamed => {
                                let renaming = Renaming::draw(&self.alphabet, stream);
                                let heard = self.heard(&renaming.request(&request), dropout, stream);
                                (Some(renaming), heard)
                            }
                            Some(stream) => (None, self.heard(&request, dropout, stream)),
                            None => (None, token_ids(&request, &b.requests)),
                        };
                        batch.words.push(match &renaming {
                            Some(renaming) => word_ids(&renaming.word(word), &b.characters),
                            None => symbol_ids(&slots.word(word), &b.characters),
                        });
                        batch.requests.push(heard);
                        renamed.push(renaming);
                    }
                    batch.outputs.push(match &renamed[row] {
                        Some(renaming) => word_ids(&renaming.expression(expression), &b.expressions),
                        None => output.clone(),
                    });
                    row += 1;
                }
            }
            shares.push((batch.outputs.len() - before, *share));
        }
        (batch, shares)
    }

    /// A lesson as the student takes it.
    fn batch_of(&self, lesson: &Lesson<RegexWorld>) -> (Batch, Asked) {
        let mut batch = Batch::default();
        let fed = match lesson {
            Lesson::Likelihood(groups) => {
                let (batch, shares) = self.batch(groups, None);
                return (batch, Asked::Shares(shares));
            }
            Lesson::Varied(groups, noise) => {
                let (batch, shares) = self.batch(groups, Some(*noise));
                return (batch, Asked::Shares(shares));
            }
            Lesson::Imitation { tasks, rolled, shown, augmentation } => {
                let fed = self.imitated(tasks, rolled, shown, *augmentation, &mut batch);
                self.student.imitation(&batch, &fed)
            }
            Lesson::Reward { tasks, executions, advantages, entropy } => {
                let slots = self.read(tasks, &mut batch);
                let actions: Vec<_> =
                    executions.iter().zip(&slots).map(|(e, slots)| self.actions(&e.expression, slots)).collect();
                self.student.reward(&actions, advantages, *entropy)
            }
        };
        (batch, Asked::Fed(fed))
    }

    /// Fills a batch with tasks and the expressions that were shown, augmented, and gives the symbols of the roll-outs that are
    /// fed, in the same letters.
    fn imitated(
        &self,
        tasks: &[(&Words, &str)],
        rolled: &[Edit],
        shown: &[Edit],
        augmentation: Augmentation,
        batch: &mut Batch,
    ) -> Vec<Vec<u32>> {
        let b = &self.blueprint;
        let mut stream = augmentation.stream();
        let mut fed = Vec::with_capacity(tasks.len());
        for (((start, request), rolled), shown) in tasks.iter().zip(rolled).zip(shown) {
            let tokens = request_tokens(request, &b.requests);
            let slots = self.slots(&tokens);
            // A renaming without letters leaves everything as it is.
            let renaming = match b.letters {
                Letters::Renamed => Renaming::draw(&self.alphabet, &mut stream),
                Letters::Plain | Letters::Slots => Renaming::default(),
            };
            let word = renaming.word(start.words.first().map_or("", String::as_str));
            batch.words.push(symbol_ids(&slots.word(&word), &b.characters));
            let request = renaming.request(&slots.request(&tokens));
            batch.requests.push(self.heard(&request, augmentation.word_dropout, &mut stream));
            let shown = renaming.expression(&shown.expression);
            batch.outputs.push(symbol_ids(&slots.expression(&shown), &b.expressions));
            let rolled = renaming.expression(&rolled.expression);
            fed.push([&[START], self.actions(&rolled, &slots).as_slice()].concat());
        }
        fed
    }

    /// Ids of a request of which some words were not understood. Letters always are: nothing else says which they were.
    fn heard(&self, tokens: &[String], dropout: f64, stream: &mut Stream) -> Vec<u32> {
        let mut ids = token_ids(tokens, &self.blueprint.requests);
        if dropout > 0.0 {
            // The first id is the start symbol.
            for (id, letter) in ids[1..].iter_mut().zip(letters::in_brackets(tokens)) {
                if !letter && stream.random_bool(dropout) {
                    *id = UNKNOWN;
                }
            }
        }
        ids
    }

    /// The execution of these output symbols.
    fn execution(&self, rolled: &Rolled, slots: &Slots, start: &Words) -> Edit {
        let symbols = || rolled.symbols.iter().map(|id| self.blueprint.expressions.symbol(*id));
        // A sequence without an end is no expression, nor is one with a symbol that no character spells.
        let whole = rolled.ended && rolled.symbols.iter().all(|id| *id > END);
        match slots.spell(symbols()).filter(|_| whole) {
            Some(expression) => Edit::of(&expression, start),
            None => Edit { expression: symbols().collect(), outputs: None },
        }
    }
}

/// The prior beside the network.
impl RegexAgent {
    /// For each task the edits that the prior proposes, with their log probabilities; none where it trusts none of them.
    fn proposed(
        &self,
        tasks: &[(&Words, &str)],
        prior: &Mutex<NgramPrior>,
        params: &ParamsWithPrior,
    ) -> Vec<Vec<(String, f32)>> {
        // Learning takes the locks in this order, too.
        let (mut prior, model) = (prior.lock().unwrap_or_else(|e| e.into_inner()), params.prior());
        let requests = &self.blueprint.requests;
        let read = tasks.iter().map(|(start, request)| (request_tokens(request, requests), *start)).collect();
        let mut proposed = prior.best(&model, read, PROPOSED);
        for best in &mut proposed {
            if best.first().is_none_or(|(_, most)| *most < LEAST_CERTAIN) {
                best.clear();
            }
        }
        proposed
    }

    /// For each task the best of the edits that the prior proposed, or the network's own where there are none.
    fn reranked(
        &self,
        own: Vec<Edit>,
        tasks: &[(&Words, &str)],
        mut proposed: Vec<Vec<(String, f32)>>,
    ) -> Result<Vec<Edit>> {
        // With votes their share is what the network says.
        let by_likelihood = self.blueprint.network_weight > 0.0 && self.blueprint.votes == 0;
        if by_likelihood && self.student.params.device().is_cpu() {
            self.weigh(tasks, &mut proposed)?;
        }
        let chosen = own.into_iter().zip(tasks).zip(proposed);
        Ok(chosen
            .map(|((own, (start, _)), proposed)| {
                // The first of equals: the one that the prior puts first.
                let best = proposed.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best });
                best.map_or(own, |(expression, _)| Edit::of(&expression, start))
            })
            .collect())
    }

    /// Adds the network's weighted log likelihood of each proposed edit to that of the prior.
    fn weigh(&self, tasks: &[(&Words, &str)], proposed: &mut [Vec<(String, f32)>]) -> Result<()> {
        let mut batch = Batch::default();
        for (task, proposed) in tasks.iter().zip(&*proposed) {
            for (expression, _) in proposed {
                let slots = self.read(&[*task], &mut batch);
                batch.outputs.push(symbol_ids(&slots[0].expression(expression), &self.blueprint.expressions));
            }
        }
        if batch.outputs.is_empty() {
            return Ok(());
        }
        let log_likelihoods = self.student.log_likelihoods(&batch)?;
        let weight = self.blueprint.network_weight as f32;
        for ((_, score), log) in proposed.iter_mut().flatten().zip(log_likelihoods) {
            *score += weight * log;
        }
        Ok(())
    }
}

impl Prior<RegexWorld> for RegexAgent {
    fn learn(&mut self, examples: &[Example<RegexWorld>]) -> Result<()> {
        let Some((prior, params)) = &self.prior else { return Ok(()) };
        let (mut prior, mut model) = (prior.lock().unwrap_or_else(|e| e.into_inner()), params.prior());
        let read = |e: &Example<RegexWorld>| request_tokens(&e.words, &self.blueprint.requests);
        let shown: Vec<_> = examples.iter().map(|e| (read(e), &e.start, &e.execution)).collect();
        prior.learn(&mut model, &shown);
        Ok(())
    }
}

/// A prior over a grid's edits, untaught, and its parameters as one set with those of a student.
fn prior_beside(student: &RegexStudent, grid: Grid) -> (Mutex<NgramPrior>, ParamsWithPrior) {
    let params = ParamsWithPrior::new(student.params.clone(), NgramPrior::model(&grid));
    (Mutex::new(NgramPrior::new(grid)), params)
}

/// The form in which a lesson asks the student.
enum Asked {
    /// Its batch's outputs, in groups of rows with their shares.
    Shares(Vec<(usize, f32)>),
    /// Something else.
    Fed(Fed),
}

impl Agent<RegexWorld> for RegexAgent {
    fn act(&self, tasks: &[(&Words, &str)], how: Decoding, stream: &mut Stream) -> Result<Vec<Edit>> {
        let mut batch = Batch::default();
        let slots = self.read(tasks, &mut batch);
        let outputs = self.student.roll_out(
            &batch.words,
            &batch.requests,
            self.blueprint.horizon,
            how == Decoding::Sample,
            stream,
        )?;
        let executions = outputs.iter().zip(tasks).zip(&slots);
        let executions = executions.map(|((rolled, (start, _)), slots)| self.execution(rolled, slots, start)).collect();
        match (&self.prior, how) {
            (Some((prior, params)), Decoding::Greedy | Decoding::RollIn) if !params.prior().is_untaught() => {
                let proposed = self.proposed(tasks, prior, params);
                match how {
                    Decoding::Greedy if self.blueprint.votes > 0 => {
                        self.voted_with_prior(executions, tasks, proposed, stream)
                    }
                    _ => self.reranked(executions, tasks, proposed),
                }
            }
            (_, Decoding::Greedy) if self.blueprint.votes > 0 => self.voted(executions, tasks, stream),
            _ => Ok(executions),
        }
    }

    fn loss(&self, lesson: &Lesson<RegexWorld>) -> Result<Tensor> {
        match self.batch_of(lesson) {
            (batch, Asked::Shares(shares)) => self.student.loss(&batch, &shares),
            (batch, Asked::Fed(fed)) => self.student.loss_fed(&batch, &fed),
        }
    }

    fn begin_learning(&mut self, learning_rate: f64) -> Result<()> {
        self.adam = Some(Adam::new(&self.student.params, learning_rate)?);
        Ok(())
    }

    fn optimizer(&self) -> Result<&dyn Optimizer> {
        Ok(begun(self.adam.as_ref())?)
    }

    fn optimizer_mut(&mut self) -> Result<&mut dyn Optimizer> {
        Ok(begun_mut(self.adam.as_mut())?)
    }

    fn step(&mut self, lesson: &Lesson<RegexWorld>) -> Result<Tensor> {
        let asked = self.batch_of(lesson);
        let adam = begun_mut(self.adam.as_mut())?;
        match asked {
            (batch, Asked::Shares(shares)) => self.student.step(&batch, &shares, adam),
            (batch, Asked::Fed(fed)) => self.student.step_fed(&batch, &fed, adam),
        }
    }

    fn learn_words(&mut self, utterances: &[Utterance]) -> Result<usize> {
        let mut learned = LearnedWords::default();
        for utterance in utterances {
            let tokens = request_tokens(utterance.text, &self.blueprint.requests);
            let read = self.slots(&tokens).request(&tokens);
            learned.add(self.blueprint.requests.read(*utterance, &read));
        }
        renew_rows(&self.student.params, self.adam.as_mut(), REQUEST_EMBEDDING, &learned.given_over)?;
        Ok(learned.words)
    }

    fn unknown_words(&self, request: &str) -> Vec<String> {
        self.blueprint.requests.unknown(request_tokens(request, &self.blueprint.requests))
    }

    fn spare_words(&self) -> ReserveRows {
        self.blueprint.requests.spare()
    }

    fn prior(&mut self) -> Option<&mut dyn Prior<RegexWorld>> {
        if self.prior.is_some() { Some(self) } else { None }
    }

    fn params(&self) -> &dyn Parameters {
        match &self.prior {
            Some((_, both)) => both,
            None => &self.student.params,
        }
    }

    fn blueprint(&self) -> serde_json::Value {
        serde_json::to_value(&self.blueprint).unwrap_or_default()
    }

    fn duplicate_on(&self, device: &Device) -> Result<Box<dyn Agent<RegexWorld>>> {
        let mut unused = crate::rng::stream(0, "duplicate", 0);
        let copy = Self::new(self.blueprint.clone(), &mut unused, device)?;
        copy.params().copy_from(self.params())?;
        Ok(Box::new(copy))
    }

    fn duplicate_concurrent(&self) -> Result<Box<dyn Agent<RegexWorld>>> {
        self.duplicate_on(&beside(self.student.params.device())?)
    }

    fn restore_blueprint(&mut self, blueprint: &serde_json::Value) -> std::result::Result<(), String> {
        let mut wanted: Blueprint = serde_json::from_value(blueprint.clone()).map_err(|e| e.to_string())?;
        wanted.requests.settle(self.blueprint.requests.spare().rows as usize);
        wanted.check()?;
        if wanted.sizes != self.blueprint.sizes {
            return Err("the checkpoint's agent has other sizes".into());
        }
        match (&wanted.prior, &self.blueprint.prior) {
            (None, None) => {}
            (Some(grid), Some(own)) if grid == own => {}
            // An earlier program had one size of table for all grids.
            (Some(grid), Some(own)) if grid.has_the_edits_of(own) => {
                self.prior = Some(prior_beside(&self.student, grid.clone()));
            }
            _ => return Err("the checkpoint's agent has another prior".into()),
        }
        self.blueprint = wanted;
        Ok(())
    }
}
