//! The policy: the mean of a request's word embeddings and the place where the agent stands, through one hidden layer.

use crate::world::{HORIZON, LineWorld, PLACES, Place, Walk};
use candle_core::{Device, Result, Tensor};
use iliad::nn::adam::{Adam, begun, begun_mut, renew_rows};
use iliad::nn::layers::{Embedding, Grad, Linear};
use iliad::nn::params::Params;
use iliad::nn::tokens::{PAD, UNKNOWN};
use iliad::nn::{loss, sample};
use iliad::protocol::{
    Agent, Augmentation, Decoding, Example, LearnedWords, Lesson, Optimizer, Parameters, Prior, ReserveRows, Utterance,
};
use iliad::rng::{self, Stream};
use iliad::vocab::Vocabulary;
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Actions: a step to the left, a step to the right, or the end of the walk.
const ACTIONS: [char; 3] = ['l', 'r', '.'];

/// The action that ends a walk.
const STOP: u32 = 2;

/// Longest request in words; the rest is not read.
const LONGEST_REQUEST: usize = 32;

/// Numbers that say where the agent is: its offset from the start, and its place.
const SITUATION: usize = 2 * HORIZON + 1 + PLACES as usize;

/// Everything but the weights that rebuilds an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blueprint {
    /// Size of the word embeddings.
    pub embedding: usize,
    /// Size of the hidden layer.
    pub hidden: usize,
    /// Words of requests, with rows to spare for those that people bring.
    pub words: Vocabulary,
}

/// The agent.
pub struct LineAgent {
    params: Params,
    /// The optimizer, once the agent learns.
    adam: Option<Adam>,
    blueprint: Blueprint,
}

/// A batch of decisions: in each row the agent has heard a request, stands somewhere, and takes an action.
#[derive(Default)]
struct Decisions {
    requests: Vec<Vec<u32>>,
    situations: Vec<f32>,
    actions: Vec<u32>,
}

impl Decisions {
    /// Adds a row: `walked` is what the agent has done since the start.
    fn push(&mut self, request: &[u32], start: &Place, walked: &str, action: u32) {
        let mut situation = [0f32; SITUATION];
        if let Some(at) = (Walk { steps: walked.to_owned() }).end(start) {
            situation[usize::from(at) + HORIZON - usize::from(start.at)] = 1.0;
            situation[2 * HORIZON + 1 + usize::from(at)] = 1.0;
        }
        self.requests.push(request.to_vec());
        self.situations.extend(situation);
        self.actions.push(action);
    }
}

/// All actions of a walk, with the one that ended it unless the horizon cut it off.
fn actions(walk: &Walk) -> Vec<u32> {
    let steps = walk.steps.chars().map(|step| if step == 'l' { 0 } else { 1 });
    steps.chain([STOP]).take(HORIZON).collect()
}

/// The first steps of a walk, or all where it has fewer.
fn first(walk: &Walk, steps: usize) -> &str {
    &walk.steps[..steps.min(walk.steps.len())]
}

impl LineAgent {
    /// An agent with fresh weights.
    pub fn new(blueprint: Blueprint, stream: &mut Stream, device: &Device) -> Result<Self> {
        let Blueprint { embedding, hidden, words } = &blueprint;
        let mut params = Params::new(device);
        Embedding::init(&mut params, "request_embedding", words.rows(), *embedding, stream)?;
        Linear::init(&mut params, "hidden", embedding + SITUATION, *hidden, stream)?;
        Linear::init(&mut params, "action", *hidden, ACTIONS.len(), stream)?;
        Ok(Self { params, adam: None, blueprint })
    }

    /// Ids of a request's words.
    fn read(&self, request: &str) -> Vec<u32> {
        let words = tokens(request).take(LONGEST_REQUEST);
        let ids: Vec<u32> = words.map(|word| self.blueprint.words.id(&word)).collect();
        if ids.is_empty() { vec![UNKNOWN] } else { ids }
    }

    /// Logits `[rows, actions]`.
    fn logits(&self, decisions: &Decisions, grad: Grad) -> Result<Tensor> {
        let device = self.params.device();
        let rows = decisions.requests.len();
        let longest = decisions.requests.iter().map(Vec::len).max().unwrap_or(1);
        let padded =
            |ids: &Vec<u32>| ids.iter().copied().chain(std::iter::repeat(PAD)).take(longest).collect::<Vec<_>>();
        let ids: Vec<u32> = decisions.requests.iter().flat_map(padded).collect();
        let lengths: Vec<f32> = decisions.requests.iter().map(|ids| ids.len() as f32).collect();
        let words = Embedding::new(&self.params, "request_embedding", grad)?.rows(&Tensor::new(ids, device)?)?;
        let sum = words.reshape((rows, longest, self.blueprint.embedding))?.sum(1)?;
        let request = sum.broadcast_div(&Tensor::from_vec(lengths, (rows, 1), device)?)?;
        let situation = Tensor::from_slice(&decisions.situations, (rows, SITUATION), device)?;
        let seen = Tensor::cat(&[&request, &situation], 1)?;
        let hidden = Linear::new(&self.params, "hidden", grad)?.forward_tanh(&seen)?;
        Linear::new(&self.params, "action", grad)?.forward(&hidden)
    }

    /// Decisions of walks, step by step, with the weight of each: the share of its row divided by the rows that are
    /// alive at the step. `fed` walks lead to the situations in which the actions of `shown` are taken.
    fn decisions(
        tasks: &[(&Place, Vec<u32>)],
        fed: &[&Walk],
        shown: &[&Walk],
        shares: &[f32],
        all: &mut Decisions,
    ) -> Vec<f32> {
        let taken: Vec<Vec<u32>> = shown.iter().map(|walk| actions(walk)).collect();
        let lengths: Vec<usize> = taken.iter().map(Vec::len).collect();
        for step in 0..HORIZON {
            for (((start, request), fed), taken) in tasks.iter().zip(fed).zip(&taken) {
                if let Some(action) = taken.get(step) {
                    all.push(request, start, first(fed, step), *action);
                }
            }
        }
        // The weights of rows that have ended are not needed.
        let weights = loss::alive_weights(&lengths, shares, HORIZON);
        let alive = (0..HORIZON).flat_map(|step| lengths.iter().map(move |length| step < *length));
        weights.into_iter().zip(alive).filter_map(|(weight, alive)| alive.then_some(weight)).collect()
    }

    /// −log π of examples, in groups with their shares.
    fn likelihood(&self, groups: &[(&[Example<LineWorld>], f32)], varied: Option<Augmentation>) -> Result<Tensor> {
        let (mut all, mut weights) = (Decisions::default(), Vec::new());
        let mut stream = varied.map(|varied| varied.stream());
        for (examples, share) in groups {
            let mut tasks = Vec::with_capacity(examples.len());
            for example in *examples {
                let mut request = self.read(&example.words);
                if let (Some(stream), Some(varied)) = (&mut stream, varied) {
                    let ids = request.iter_mut();
                    ids.filter(|_| stream.random_bool(varied.word_dropout)).for_each(|id| *id = UNKNOWN);
                }
                tasks.push((&example.start, request));
            }
            let walks: Vec<&Walk> = examples.iter().map(|example| &example.execution).collect();
            weights.extend(Self::decisions(&tasks, &walks, &walks, &vec![*share; walks.len()], &mut all));
        }
        loss::weighted_nll(&self.logits(&all, Grad::On)?, &all.actions, &weights)
    }
}

/// Words of a request.
fn tokens(request: &str) -> impl Iterator<Item = String> {
    request.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

impl Agent<LineWorld> for LineAgent {
    fn act(&self, tasks: &[(&Place, &str)], how: Decoding, stream: &mut Stream) -> Result<Vec<Walk>> {
        let requests: Vec<Vec<u32>> = tasks.iter().map(|(_, request)| self.read(request)).collect();
        let mut walks = vec![Walk::default(); tasks.len()];
        let mut walking = vec![true; tasks.len()];
        for _ in 0..HORIZON {
            let mut now = Decisions::default();
            for (((start, _), request), walk) in tasks.iter().zip(&requests).zip(&walks) {
                now.push(request, start, &walk.steps, STOP);
            }
            let draws = sample::draws(tasks.len(), |_| how != Decoding::Sample, stream);
            let draws = Tensor::new(draws, self.params.device())?;
            let chosen = sample::pick(&self.logits(&now, Grad::Off)?, &draws)?.to_vec1::<u32>()?;
            for ((walk, walking), action) in walks.iter_mut().zip(&mut walking).zip(chosen) {
                *walking &= action != STOP;
                if *walking {
                    walk.steps.push(ACTIONS[action as usize]);
                }
            }
        }
        Ok(walks)
    }

    fn loss(&self, lesson: &Lesson<LineWorld>) -> Result<Tensor> {
        let read = |tasks: &[(&'_ Place, &str)]| -> Vec<Vec<u32>> {
            tasks.iter().map(|(_, request)| self.read(request)).collect()
        };
        let mut all = Decisions::default();
        match lesson {
            Lesson::Likelihood(groups) => self.likelihood(groups, None),
            Lesson::Varied(groups, varied) => self.likelihood(groups, Some(*varied)),
            Lesson::Imitation { tasks, rolled, shown, .. } => {
                let heard: Vec<_> = tasks.iter().zip(read(tasks)).map(|((start, _), ids)| (*start, ids)).collect();
                let (rolled, shown): (Vec<_>, Vec<_>) = rolled.iter().zip(*shown).unzip();
                let weights = Self::decisions(&heard, &rolled, &shown, &vec![1.0; shown.len()], &mut all);
                loss::weighted_nll(&self.logits(&all, Grad::On)?, &all.actions, &weights)
            }
            Lesson::Reward { tasks, executions, advantages, entropy } => {
                let heard: Vec<_> = tasks.iter().zip(read(tasks)).map(|((start, _), ids)| (*start, ids)).collect();
                let walks: Vec<&Walk> = executions.iter().collect();
                let weights = Self::decisions(&heard, &walks, &walks, advantages, &mut all);
                let bonus =
                    Self::decisions(&heard, &walks, &walks, &vec![*entropy; walks.len()], &mut Decisions::default());
                let logits = self.logits(&all, Grad::On)?;
                loss::weighted_nll(&logits, &all.actions, &weights)? - loss::weighted_entropy(&logits, &bonus)?
            }
        }
    }

    fn begin_learning(&mut self, learning_rate: f64) -> Result<()> {
        self.adam = Some(Adam::new(&self.params, learning_rate)?);
        Ok(())
    }

    fn step(&mut self, lesson: &Lesson<LineWorld>) -> Result<Tensor> {
        let loss = self.loss(lesson)?;
        begun_mut(self.adam.as_mut())?.step(&loss.backward()?)?;
        Ok(loss.detach())
    }

    fn optimizer(&self) -> Result<&dyn Optimizer> {
        Ok(begun(self.adam.as_ref())?)
    }

    fn optimizer_mut(&mut self) -> Result<&mut dyn Optimizer> {
        Ok(begun_mut(self.adam.as_mut())?)
    }

    fn learn_words(&mut self, utterances: &[Utterance]) -> Result<usize> {
        let mut learned = LearnedWords::default();
        for utterance in utterances {
            let words: Vec<String> = tokens(utterance.text).take(LONGEST_REQUEST).collect();
            learned.add(self.blueprint.words.read(*utterance, &words));
        }
        renew_rows(&self.params, self.adam.as_mut(), "request_embedding.weight", &learned.given_over)?;
        Ok(learned.words)
    }

    fn spare_words(&self) -> ReserveRows {
        self.blueprint.words.spare()
    }

    fn prior(&mut self) -> Option<&mut dyn Prior<LineWorld>> {
        None
    }

    fn params(&self) -> &dyn Parameters {
        &self.params
    }

    fn blueprint(&self) -> serde_json::Value {
        serde_json::to_value(&self.blueprint).unwrap_or_default()
    }

    fn duplicate_on(&self, device: &Device) -> Result<Box<dyn Agent<LineWorld>>> {
        let copy = Self::new(self.blueprint.clone(), &mut rng::stream(0, "duplicate", 0), device)?;
        copy.params().copy_from(self.params())?;
        Ok(Box::new(copy))
    }

    fn restore_blueprint(&mut self, blueprint: &serde_json::Value) -> std::result::Result<(), String> {
        let wanted: Blueprint = serde_json::from_value(blueprint.clone()).map_err(|e| e.to_string())?;
        let sizes = |b: &Blueprint| (b.embedding, b.hidden, b.words.rows());
        if sizes(&wanted) != sizes(&self.blueprint) {
            return Err("the checkpoint's agent has other sizes".into());
        }
        self.blueprint = wanted;
        Ok(())
    }
}
