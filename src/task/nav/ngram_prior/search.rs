//! Candidate walks for a sentence, and how the sentence is cut into parts along them: one part for each move, in order, and a
//! last one for where the walk stops. A part may be empty. Of all cuts the best by the model's own weights is taken.

use super::facts::{HouseFacts, Move, Named};
use super::sentence::Sentence;
use super::turns::{self, Detour, Turn};
use crate::nn::log_linear::{Feature, LogLinear};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::{Deref, Range};
use std::rc::Rc;

/// Walks of so many moves that are followed further, the most promising ones.
const WIDTH: usize = 150;

/// Score of a part that begins where one is likely to, or where none is, before anything is learnt.
const LIKELY: f32 = 1.0;

/// Score of a part without a word, before anything is learnt.
const EMPTY: f32 = -2.0;

/// Score of a word that is a name here, before anything is learnt.
const MATCHED: f32 = 0.5;

const NEVER: f32 = f32::NEG_INFINITY;

/// A walk that may be meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its viewpoints, the start first.
    pub path: Vec<usize>,
    /// Its score.
    pub score: f32,
}

/// A walk with a sentence that is cut along it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    /// The features of the walk.
    pub features: Vec<Feature>,
    /// The score that it has without the model.
    pub given: f32,
    /// The tokens of each move, and of the stop.
    pub parts: Vec<Range<usize>>,
}

/// The question that a search answers.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The model.
    pub model: &'a LogLinear,
    /// The sentence.
    pub sentence: &'a Sentence,
    /// The house.
    pub house: &'a HouseFacts,
    /// Words of all names of the world.
    pub names: &'a FxHashSet<String>,
    /// The viewpoint to start from.
    pub start: usize,
    /// The heading at the start in radians.
    pub heading: f64,
    /// Whether left and right are exchanged in the house.
    pub mirrored: bool,
    /// Moves at most.
    pub most_moves: usize,
    /// Lengths of the shortest ways from the start.
    pub distances: &'a [f64],
}

/// A question with the scores that were worked out for it.
pub struct Search<'a> {
    question: Question<'a>,
    joints: Vec<f32>,
    tables: Tables,
}

impl<'a> Deref for Search<'a> {
    type Target = Question<'a>;

    fn deref(&self) -> &Question<'a> {
        &self.question
    }
}

/// Sums of scores over the tokens before each token.
type Sums = Rc<Vec<f32>>;

/// Scores of parts of the sentence, worked out when they are first asked for.
#[derive(Default)]
struct Tables {
    /// For each token whether it is a word of a name.
    names: Vec<bool>,
    parts: FxHashMap<Feature, Sums>,
    turns: FxHashMap<(Turn, bool), Rc<TurnScores>>,
    moves: FxHashMap<(usize, usize), Sums>,
    stops: FxHashMap<usize, Sums>,
    wholes: FxHashMap<(usize, Detour), f32>,
}

/// Scores of a turn: of words that are tied to it, and without any.
struct TurnScores {
    sums: Sums,
    unspoken: f32,
    empty: f32,
}

struct Node {
    before: usize,
    at: usize,
    moves: usize,
    facing: f64,
    length: f64,
    /// Score of features that no words have a part in.
    unspoken: f32,
    /// For each number of tokens, the best score of cuts that give so many to the moves so far.
    best: Vec<f32>,
}

impl<'a> Question<'a> {
    fn tokens(&self) -> usize {
        self.sentence.tokens().len()
    }

    fn turn(&self, facing: f64, bearing: f64) -> Turn {
        let turn = Turn::of(bearing - facing);
        if self.mirrored { turn.mirrored() } else { turn }
    }

    /// The feature of a token that is a word of a name, among the names that are here.
    fn name_feature(&self, token: usize, named: &[Named], absent: Feature) -> (Feature, bool) {
        let word = &self.sentence.tokens()[token];
        named.iter().find(|known| known.word == *word).map_or((absent, false), |known| (known.matched, true))
    }

    /// Score of a feature that says whether a word is true of what is here.
    fn match_score(&self, (feature, here): (Feature, bool)) -> f32 {
        self.model.score(&[feature]) + if here { MATCHED } else { -MATCHED }
    }

    fn named_sums(&self, tables: &Tables, named: &[Named], absent: Feature) -> Vec<f32> {
        self.sums(|token| match tables.names[token] {
            true => self.match_score(self.name_feature(token, named, absent)),
            false => 0.0,
        })
    }

    fn sums(&self, score: impl Fn(usize) -> f32) -> Vec<f32> {
        let mut sums = Vec::with_capacity(self.tokens() + 1);
        let mut sum = 0.0;
        sums.push(sum);
        for token in 0..self.tokens() {
            sum += score(token);
            sums.push(sum);
        }
        sums
    }

    fn part_sums(&self, tables: &mut Tables, part: Feature) -> Sums {
        let made = || {
            Rc::new(self.sums(|token| {
                self.sentence.ngrams(token).iter().map(|ngram| self.model.score(&[ngram.and(part)])).sum()
            }))
        };
        tables.parts.entry(part).or_insert_with(made).clone()
    }

    fn with_parts(&self, tables: &mut Tables, mut sums: Vec<f32>, parts: &[Feature]) -> Sums {
        for part in parts {
            let of_part = self.part_sums(tables, *part);
            sums.iter_mut().zip(of_part.iter()).for_each(|(sum, more)| *sum += more);
        }
        Rc::new(sums)
    }

    fn turn_scores(&self, tables: &mut Tables, turn: Turn, first: bool) -> Rc<TurnScores> {
        if let Some(found) = tables.turns.get(&(turn, first)) {
            return found.clone();
        }
        let of_token = |token: usize| turn.word_feature(&self.sentence.tokens()[token]);
        let matches = self.sums(|token| of_token(token).map_or(0.0, |feature| self.match_score(feature)));
        let made = Rc::new(TurnScores {
            sums: self.with_parts(tables, matches, &turn.parts(first)),
            unspoken: self.model.score(&turns::unspoken(turn, first)),
            empty: EMPTY + self.model.score(&turns::empty(turn)),
        });
        tables.turns.insert((turn, first), made.clone());
        made
    }

    fn move_sums(&self, tables: &mut Tables, at: usize, number: usize) -> Sums {
        if let Some(found) = tables.moves.get(&(at, number)) {
            return found.clone();
        }
        let one = &self.house.places[at].moves[number];
        let matches = self.named_sums(tables, &one.named, turns::absent());
        let made = self.with_parts(tables, matches, &one.parts[usize::from(self.mirrored)]);
        tables.moves.insert((at, number), made.clone());
        made
    }

    fn stop_sums(&self, tables: &mut Tables, at: usize) -> Sums {
        if let Some(found) = tables.stops.get(&at) {
            return found.clone();
        }
        let place = &self.house.places[at];
        let matches = self.named_sums(tables, &place.named, turns::absent_at_stop());
        let made = self.with_parts(tables, matches, &place.parts);
        tables.stops.insert(at, made.clone());
        made
    }

    fn joint(&self, token: usize) -> f32 {
        let (features, likely) = self.sentence.joint(token);
        self.model.score(features) + if likely { LIKELY } else { -LIKELY }
    }

    fn joints(&self) -> Vec<f32> {
        (0..self.tokens()).map(|token| self.joint(token)).collect()
    }

    /// Scores of the cuts of `best` with a further part for a move; its words score `sums` and `more`.
    fn extend(&self, best: &[f32], joints: &[f32], sums: &[f32], more: &[f32], empty: f32) -> Vec<f32> {
        let mut extended = Vec::with_capacity(best.len());
        let mut from = NEVER;
        for (end, so_far) in best.iter().enumerate() {
            let sum = sums[end] + more[end];
            extended.push((so_far + empty).max(from + sum));
            if end < joints.len() && *so_far > NEVER {
                let joint = if end == 0 { 0.0 } else { joints[end] };
                from = from.max(so_far + joint - sum);
            }
        }
        extended
    }

    /// Score of the best of these cuts when the stop gets the rest of the sentence.
    fn ended(&self, best: &[f32], joints: &[f32], sums: &[f32]) -> f32 {
        let whole = sums[self.tokens()];
        let with_words = (0..self.tokens()).filter(|at| best[*at] > NEVER).map(|at| {
            let joint = if at == 0 { 0.0 } else { joints[at] };
            best[at] + joint + whole - sums[at]
        });
        with_words.fold(best[self.tokens()] + self.empty_stop(), f32::max)
    }

    fn empty_stop(&self) -> f32 {
        EMPTY + self.model.score(&[turns::empty_stop()])
    }

    fn whole(&self, moves: usize, detour: Detour) -> [Feature; 3] {
        turns::whole(moves, self.sentence.likely_parts(), detour)
    }

    fn detour(&self, length: f64, at: usize) -> Detour {
        Detour::of(length - self.distances[at])
    }
}

impl<'a> Search<'a> {
    /// Begins a search.
    pub fn new(question: Question<'a>) -> Self {
        let joints = question.joints();
        let names = question.sentence.tokens().iter().map(|token| question.names.contains(token)).collect();
        Self { question, joints, tables: Tables { names, ..Tables::default() } }
    }

    /// The candidates, best first: all walks that visit no viewpoint twice, of which the most promising are followed further
    /// where there are many. The walk `also` is followed in any case.
    pub fn candidates(&mut self, also: Option<&[usize]>) -> Vec<Candidate> {
        let mut begin = vec![NEVER; self.tokens() + 1];
        begin[0] = 0.0;
        let mut nodes = vec![Node {
            before: usize::MAX,
            at: self.start,
            moves: 0,
            facing: self.heading,
            length: 0.0,
            unspoken: 0.0,
            best: begin,
        }];
        let mut level = vec![0];
        for _ in 0..self.most_moves {
            let mut next: Vec<usize> = Vec::new();
            for &number in &level {
                for k in 0..self.house.places[nodes[number].at].moves.len() {
                    let to = self.house.places[nodes[number].at].moves[k].to;
                    if !self.visited(&nodes, number, to) {
                        let node = self.step(&nodes, number, k);
                        next.push(nodes.len());
                        nodes.push(node);
                    }
                }
            }
            if next.len() > WIDTH {
                self.keep_promising(&nodes, &mut next, also);
            }
            level = next;
            if level.is_empty() {
                break;
            }
        }
        let mut found: Vec<(usize, f32)> = Vec::with_capacity(nodes.len());
        let question = self.question;
        for (number, node) in nodes.iter().enumerate() {
            let sums = question.stop_sums(&mut self.tables, node.at);
            let detour = question.detour(node.length, node.at);
            let whole = || question.model.score(&question.whole(node.moves, detour));
            let whole = *self.tables.wholes.entry((node.moves, detour)).or_insert_with(whole);
            found.push((number, question.ended(&node.best, &self.joints, &sums) + node.unspoken + whole));
        }
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.into_iter().map(|(number, score)| Candidate { path: self.path(&nodes, number), score }).collect()
    }

    /// Keeps the nodes with the best prospects, and those on the way of `also`.
    fn keep_promising(&self, nodes: &[Node], level: &mut Vec<usize>, also: Option<&[usize]>) {
        // The best score of any cut so far; what it leaves of the sentence is for later moves.
        let prospect = |number: &usize| {
            let best = &nodes[*number].best;
            let most = best.iter().copied().fold(NEVER, f32::max);
            most + nodes[*number].unspoken
        };
        let on_the_way = |number: &usize| also.is_some_and(|path| path.starts_with(&self.path(nodes, *number)));
        let mut ranked: Vec<(bool, f32, usize)> = level.iter().map(|n| (on_the_way(n), prospect(n), *n)).collect();
        ranked.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2)));
        ranked.truncate(WIDTH);
        *level = ranked.into_iter().map(|(_, _, number)| number).collect();
        level.sort_unstable();
    }

    fn visited(&self, nodes: &[Node], mut number: usize, viewpoint: usize) -> bool {
        loop {
            if nodes[number].at == viewpoint {
                return true;
            }
            if nodes[number].moves == 0 {
                return false;
            }
            number = nodes[number].before;
        }
    }

    fn path(&self, nodes: &[Node], mut number: usize) -> Vec<usize> {
        let mut path = vec![nodes[number].at];
        while nodes[number].moves > 0 {
            number = nodes[number].before;
            path.push(nodes[number].at);
        }
        path.reverse();
        path
    }

    fn step(&mut self, nodes: &[Node], number: usize, k: usize) -> Node {
        let node = &nodes[number];
        let one = &self.house.places[node.at].moves[k];
        let turn = self.turn(node.facing, one.bearing);
        let first = node.moves == 0;
        let of_turn = self.question.turn_scores(&mut self.tables, turn, first);
        let of_move = self.question.move_sums(&mut self.tables, node.at, k);
        let best = self.extend(&node.best, &self.joints, &of_move, &of_turn.sums, of_turn.empty);
        Node {
            before: number,
            at: one.to,
            moves: node.moves + 1,
            facing: one.bearing,
            length: node.length + one.length,
            unspoken: node.unspoken + of_turn.unspoken,
            best,
        }
    }

    /// A walk with the best cut of the sentence along it; `None` where it does not go along the moves of the house.
    pub fn cut(&mut self, path: &[usize]) -> Option<Cut> {
        let (legs, best) = self.legs(path)?;
        let (mut features, mut given) = (Vec::new(), 0.0);
        let mut parts = Vec::with_capacity(legs.len() + 1);
        let mut end = self.tokens();
        // Backwards: which part ends at `end`, and where it begins.
        for number in (0..=legs.len()).rev() {
            let before = &best[number];
            let leg = legs.get(number);
            let score_of = |from: usize| {
                let joint = if from == 0 { 0.0 } else { self.joints[from] };
                let sums = leg.map_or(&best[legs.len() + 1], |leg| &leg.sums);
                before[from] + joint + sums[end] - sums[from]
            };
            let empty = match leg {
                Some(leg) => before[end] + leg.empty,
                None => before[end] + self.empty_stop(),
            };
            let mut from = end;
            let mut most = empty;
            for (at, so_far) in before.iter().enumerate().take(end) {
                if *so_far > NEVER && score_of(at) > most {
                    (from, most) = (at, score_of(at));
                }
            }
            given += self.add_part(path, leg, number == 0, from..end, &mut features);
            parts.push(from..end);
            end = from;
        }
        parts.reverse();
        let length = legs.iter().map(|leg| leg.one.length).sum();
        features.extend(self.whole(legs.len(), self.detour(length, path[path.len() - 1])));
        Some(Cut { features, given, parts })
    }

    /// The moves of a walk with their scores; and the best scores before each move, before the stop, and the stop's own sums.
    fn legs(&mut self, path: &[usize]) -> Option<(Vec<Leg<'a>>, Vec<Vec<f32>>)> {
        let mut begin = vec![NEVER; self.tokens() + 1];
        begin[0] = 0.0;
        let mut best = vec![begin];
        let (mut legs, mut facing) = (Vec::<Leg>::new(), self.heading);
        for pair in path.windows(2) {
            let number = self.house.places[pair[0]].moves.iter().position(|one| one.to == pair[1])?;
            let one = &self.house.places[pair[0]].moves[number];
            let turn = self.turn(facing, one.bearing);
            let of_turn = self.question.turn_scores(&mut self.tables, turn, legs.is_empty());
            let of_move = self.question.move_sums(&mut self.tables, pair[0], number);
            let extended = self.extend(best.last()?, &self.joints, &of_move, &of_turn.sums, of_turn.empty);
            best.push(extended);
            let sums = of_move.iter().zip(of_turn.sums.iter()).map(|(a, b)| a + b).collect();
            legs.push(Leg { one, turn, empty: of_turn.empty, sums });
            facing = one.bearing;
        }
        best.push(self.question.stop_sums(&mut self.tables, *path.last()?).to_vec());
        Some((legs, best))
    }

    /// Adds the features of a part of the sentence; returns its score without the model.
    fn add_part(
        &self,
        path: &[usize],
        leg: Option<&Leg>,
        first: bool,
        tokens: Range<usize>,
        features: &mut Vec<Feature>,
    ) -> f32 {
        let mut given = 0.0;
        let place = &self.house.places[path[path.len() - 1]];
        let (mut parts, named, absent) = match leg {
            Some(leg) => (leg.one.parts[usize::from(self.mirrored)].clone(), &leg.one.named, turns::absent()),
            None => (place.parts.clone(), &place.named, turns::absent_at_stop()),
        };
        if let Some(leg) = leg {
            features.extend(turns::unspoken(leg.turn, first));
            parts.extend(leg.turn.parts(first));
        }
        if tokens.is_empty() {
            match leg {
                Some(leg) => features.extend(turns::empty(leg.turn)),
                None => features.push(turns::empty_stop()),
            }
            return EMPTY;
        }
        if tokens.start > 0 {
            let (joint, likely) = self.sentence.joint(tokens.start);
            features.extend(joint);
            given += if likely { LIKELY } else { -LIKELY };
        }
        for token in tokens {
            for ngram in self.sentence.ngrams(token) {
                features.extend(parts.iter().map(|part| ngram.and(*part)));
            }
            let turned = leg.and_then(|leg| leg.turn.word_feature(&self.sentence.tokens()[token]));
            let name = self.tables.names[token].then(|| self.name_feature(token, named, absent));
            for (feature, here) in name.into_iter().chain(turned) {
                features.push(feature);
                given += if here { MATCHED } else { -MATCHED };
            }
        }
        given
    }
}

struct Leg<'a> {
    one: &'a Move,
    turn: Turn,
    empty: f32,
    sums: Vec<f32>,
}
