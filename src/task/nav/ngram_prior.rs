//! A prior over walks that reads n-grams: a log-linear model over the walks that begin at a start. A sentence is cut into parts,
//! one for each move of a walk in order and a last one for where it stops; features join the n-grams of a part with the parts of its
//! move (turn, opening, room, stairs, things passed), and say whether a word is the name of something there. Features of the
//! second kind are shared by all names, so that a thing is known by its name from the first description on.

mod facts;
mod search;
mod sentence;
pub mod told;
mod turns;

#[cfg(test)]
mod tests;

use super::action::VIEW_STEP;
use super::mirror;
use super::tokenise::tokenise;
use super::world::NavWorld;
use super::{Start, Walk};
use crate::nn::log_linear::{Feature, LogLinear, softmax};
use candle_core::{Result, bail};
use facts::HouseFacts;
use search::{Candidate, Question, Search};
use sentence::Sentence;
use told::WorldFacts;

/// Moves of a candidate at most.
const MOST_MOVES: usize = 8;

/// Candidates that a step of learning tells apart; further right ones that are told apart from them.
const COMPARED: usize = 30;
const FURTHER_RIGHT: usize = 10;

/// Candidates whose probabilities count when one is chosen, and those that may be chosen.
const WEIGHED: usize = 300;
const PROPOSED: usize = 8;

/// Walks that end so near each other, in metres, and on one storey do the same.
const SAME_END: f64 = super::metric::SUCCESS_RADIUS;
const SAME_STOREY: f64 = 1.5;

/// The model, untaught.
pub fn model() -> LogLinear {
    LogLinear::new(0.05, 0.001).damped(1.0)
}

/// A world with its facts.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The world.
    pub world: &'a NavWorld,
    /// Its facts.
    pub facts: &'a WorldFacts,
    /// Moves at most, as far as the agent's horizon allows.
    pub moves: usize,
}

/// A start in the house where it is.
struct Place<'a> {
    house: &'a HouseFacts,
    viewpoint: usize,
    heading: f64,
    distances: Vec<f64>,
}

impl<'a> Setting<'a> {
    fn place(&self, start: &Start) -> Result<(usize, Place<'a>)> {
        let Some((number, viewpoint)) = self.world.place(&start.viewpoint) else {
            bail!("there is no viewpoint {}", start.viewpoint)
        };
        let graph = &self.world.scenes()[number].graph;
        let distances = (0..graph.len()).map(|to| graph.distance(viewpoint, to)).collect();
        let heading = f64::from(start.heading) * VIEW_STEP;
        Ok((number, Place { house: self.facts.house(self.world, number), viewpoint, heading, distances }))
    }

    fn question<'b>(
        &self,
        model: &'b LogLinear,
        sentence: &'b Sentence,
        place: &'b Place<'a>,
        mirrored: bool,
    ) -> Question<'b>
    where
        'a: 'b,
    {
        Question {
            model,
            sentence,
            house: place.house,
            names: self.facts.names(),
            start: place.viewpoint,
            heading: place.heading,
            mirrored,
            most_moves: self.moves.min(MOST_MOVES),
            distances: &place.distances,
        }
    }

    /// Learns that words describe a walk, and in the mirror that they describe it with left and right exchanged. Where the walk is
    /// none of the candidates, those that end where it does are right.
    ///
    /// # Errors
    /// When the walk does not go along the ways of its house.
    pub fn learn(&self, model: &mut LogLinear, start: &Start, words: &str, walk: &Walk) -> Result<()> {
        let Some((_, path)) = self.world.path(start, walk) else {
            bail!("a walk from {} that does not go along the ways of {}", start.viewpoint, start.scan)
        };
        let (_, place) = self.place(start)?;
        let tokens = tokenise(words);
        let exchanged = tokens.iter().map(|token| mirror::word(token).to_owned()).collect();
        for (mirrored, tokens) in [(false, tokens), (true, exchanged)] {
            let sentence = Sentence::new(tokens);
            let (features, given, right) = self.compared(model, &sentence, &place, mirrored, &path);
            model.step_given(&features, &given, &right);
        }
        Ok(())
    }

    /// The candidates that a step tells apart: features, given scores, and whether each is right.
    fn compared(
        &self,
        model: &LogLinear,
        sentence: &Sentence,
        place: &Place<'a>,
        mirrored: bool,
        path: &[usize],
    ) -> (Vec<Vec<Feature>>, Vec<f32>, Vec<bool>) {
        let mut search = Search::new(self.question(model, sentence, place, mirrored));
        let candidates = search.candidates(Some(path));
        let exact = candidates.iter().any(|candidate| candidate.path == path);
        let right = |candidate: &Candidate| match exact {
            true => candidate.path == path,
            false => candidate.path.last() == path.last(),
        };
        let (first, rest) = candidates.split_at(candidates.len().min(COMPARED));
        let further = rest.iter().filter(|candidate| right(candidate)).take(FURTHER_RIGHT);
        let compared = first.iter().chain(further);
        let (mut features, mut given, mut are_right) = (Vec::new(), Vec::new(), Vec::new());
        for candidate in compared {
            if let Some(cut) = search.cut(&candidate.path) {
                features.push(cut.features);
                given.push(cut.given);
                are_right.push(right(candidate));
            }
        }
        (features, given, are_right)
    }

    /// The walk that a request most probably means: among the best candidates, the one near whose end most of the probability
    /// ends.
    ///
    /// # Errors
    /// When the start is nowhere.
    pub fn choose(&self, model: &LogLinear, start: &Start, words: &str) -> Result<Walk> {
        let (number, place) = self.place(start)?;
        let sentence = Sentence::new(tokenise(words));
        let mut candidates = Search::new(self.question(model, &sentence, &place, false)).candidates(None);
        candidates.truncate(WEIGHED);
        let scores: Vec<f32> = candidates.iter().map(|candidate| candidate.score).collect();
        let probabilities = softmax(&scores);
        let end = |candidate: &Candidate| candidate.path[candidate.path.len() - 1];
        let near = |a: usize, b: usize| {
            let [a, b] = [a, b].map(|viewpoint| place.house.places[viewpoint].position);
            (a[0] - b[0]).hypot(a[1] - b[1]) <= SAME_END && (a[2] - b[2]).abs() < SAME_STOREY
        };
        let mass = |chosen: &Candidate| -> f32 {
            let same = candidates.iter().zip(&probabilities).filter(|(other, _)| near(end(other), end(chosen)));
            same.map(|(_, p)| *p).sum()
        };
        let mut best: Option<(f32, &Candidate)> = None;
        for candidate in candidates.iter().take(PROPOSED) {
            let mass = mass(candidate);
            if best.is_none_or(|(most, _)| mass > most) {
                best = Some((mass, candidate));
            }
        }
        let path = best.map_or_else(|| vec![place.viewpoint], |(_, candidate)| candidate.path.clone());
        let graph = &self.world.scenes()[number].graph;
        Ok(Walk { viewpoints: path.into_iter().map(|viewpoint| graph.id(viewpoint).to_owned()).collect() })
    }
}
