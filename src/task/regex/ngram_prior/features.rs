//! The features of candidates, computed once for all that share them: an n-gram of the description with a pattern, and one with a
//! replacement, are the same for every candidate that has this part and these letters. So scores and gradients are sums of few
//! shared ones, where there are hundreds of candidates.

use super::{Candidate, Effect, Grid, Reading, Token};
use crate::nn::log_linear::{Feature, LogLinear};
use std::collections::HashMap;

/// Letters of a word's beginning, which is a feature of longer words.
const BEGINNING: usize = 4;

/// Longest n-grams that are joined with a pattern's anchors and symbols, too.
const SHORT: usize = 2;

/// Features of the grid's parts: of each pattern itself, its anchors, its symbols, and of each replacement.
pub(super) struct Parts {
    patterns: Vec<[Feature; 3]>,
    replacements: Vec<Feature>,
}

impl Parts {
    pub(super) fn of(grid: &Grid) -> Self {
        let split = |pattern: &String| {
            // "(^)(V)()": what stands before, what is matched, what stands behind.
            let mut groups = pattern.trim_matches(['(', ')']).split(")(");
            let (before, symbols, behind) =
                (groups.next().unwrap_or(""), groups.next().unwrap_or(""), groups.next().unwrap_or(""));
            [
                Feature::of(&format!("pattern {pattern}")),
                Feature::of(&format!("anchors {before} {behind}")),
                Feature::of(&format!("symbols {symbols}")),
            ]
        };
        Self {
            patterns: grid.patterns().iter().map(split).collect(),
            replacements: grid.replacements().iter().map(|r| Feature::of(&format!("replacement {r}"))).collect(),
        }
    }

    /// Columns: one for each pattern, and behind them one for each replacement.
    fn columns(&self) -> usize {
        self.patterns.len() + self.replacements.len()
    }

    /// The features that an n-gram makes with the part of a column.
    fn joined(&self, (length, gram): (usize, Feature), column: usize) -> impl Iterator<Item = Feature> {
        let (one, more) = match self.patterns.get(column) {
            Some([pattern, anchors, symbols]) => {
                (gram.and(*pattern), (length <= SHORT).then(|| [gram.and(*anchors), gram.and(*symbols)]))
            }
            None => (gram.and(self.replacements[column - self.patterns.len()]), None),
        };
        std::iter::once(one).chain(more.into_iter().flatten())
    }

    /// The features of a candidate that no n-gram is in.
    fn without_words(&self, candidate: &Candidate, effect: Effect, letters: Feature) -> [Feature; 5] {
        let [pattern, ..] = self.patterns[candidate.pattern];
        let replacement = self.replacements[candidate.replacement];
        let effect = match effect {
            Effect::Nothing => Feature::of("changes nothing"),
            Effect::SomeWords => Feature::of("changes some words"),
            Effect::AllWords => Feature::of("changes all words"),
            Effect::Invalid => Feature::of("is invalid"),
        };
        [pattern, replacement, pattern.and(replacement), letters.and(replacement), effect]
    }
}

/// The n-grams of a description as the candidates' letters mark them.
pub(super) struct SharedFeatures {
    /// The distinct n-grams, each with its length.
    grams: Vec<(usize, Feature)>,
    /// The n-grams and letters that candidates share, one group for each choice of letters.
    groups: Vec<Group>,
    /// The group of each candidate.
    group_of: Vec<usize>,
}

/// The candidates with the same letters.
struct Group {
    /// Their n-grams, as places among the distinct ones.
    grams: Vec<usize>,
    letters: Feature,
}

impl SharedFeatures {
    pub(super) fn of(reading: &Reading, candidates: &[Candidate]) -> Self {
        let (mut grams, mut groups, mut group_of) = (Vec::new(), Vec::new(), Vec::with_capacity(candidates.len()));
        let mut known_grams = HashMap::new();
        let mut known_groups: HashMap<(&str, &str), usize> = HashMap::new();
        for candidate in candidates {
            let group = *known_groups.entry((&candidate.x, &candidate.y)).or_insert_with(|| {
                let marked = Marked::of(reading, &candidate.x, &candidate.y);
                let place = |gram: (usize, Feature)| {
                    *known_grams.entry(gram).or_insert_with(|| {
                        grams.push(gram);
                        grams.len() - 1
                    })
                };
                groups.push(Group { grams: marked.grams.into_iter().map(place).collect(), letters: marked.letters });
                groups.len() - 1
            });
            group_of.push(group);
        }
        Self { grams, groups, group_of }
    }

    /// w · f of each candidate.
    pub(super) fn scores(
        &self,
        parts: &Parts,
        model: &LogLinear,
        candidates: &[Candidate],
        effects: &[Effect],
    ) -> Vec<f32> {
        let columns = parts.columns();
        let of_gram = |gram: &(usize, Feature)| {
            let weight = |column| parts.joined(*gram, column).map(|feature| model.weight(feature)).sum::<f32>();
            (0..columns).map(weight).collect::<Vec<f32>>()
        };
        let by_gram: Vec<Vec<f32>> = self.grams.iter().map(of_gram).collect();
        let of_group = |group: &Group| {
            let mut sums = vec![0.0_f32; columns];
            for gram in &group.grams {
                sums.iter_mut().zip(&by_gram[*gram]).for_each(|(sum, weight)| *sum += weight);
            }
            sums
        };
        let by_group: Vec<Vec<f32>> = self.groups.iter().map(of_group).collect();
        let score = |((candidate, effect), group): ((&Candidate, &Effect), &usize)| {
            let own = parts.without_words(candidate, *effect, self.groups[*group].letters);
            let sums = &by_group[*group];
            model.score(&own) + sums[candidate.pattern] + sums[parts.patterns.len() + candidate.replacement]
        };
        candidates.iter().zip(effects).zip(&self.group_of).map(score).collect()
    }

    /// The gradient with respect to the weights, in parts, from that with respect to the candidates' scores.
    pub(super) fn spread(
        &self,
        parts: &Parts,
        candidates: &[Candidate],
        effects: &[Effect],
        gradient: &[f32],
    ) -> Vec<(Feature, f32)> {
        let columns = parts.columns();
        let mut all = Vec::new();
        let mut by_group = vec![vec![0.0_f32; columns]; self.groups.len()];
        for (((candidate, effect), group), part) in candidates.iter().zip(effects).zip(&self.group_of).zip(gradient) {
            if *part != 0.0 {
                let own = parts.without_words(candidate, *effect, self.groups[*group].letters);
                all.extend(own.map(|feature| (feature, *part)));
                by_group[*group][candidate.pattern] += part;
                by_group[*group][parts.patterns.len() + candidate.replacement] += part;
            }
        }
        let mut by_gram = vec![vec![0.0_f32; columns]; self.grams.len()];
        for (group, sums) in self.groups.iter().zip(&by_group) {
            for gram in &group.grams {
                by_gram[*gram].iter_mut().zip(sums).for_each(|(sum, part)| *sum += part);
            }
        }
        for (gram, sums) in self.grams.iter().zip(&by_gram) {
            for (column, part) in sums.iter().enumerate().filter(|(_, part)| **part != 0.0) {
                all.extend(parts.joined(*gram, column).map(|feature| (feature, *part)));
            }
        }
        all
    }
}

/// The n-grams of a description in which the letters of a candidate are marked, each with its length.
struct Marked {
    grams: Vec<(usize, Feature)>,
    /// Whether the letters of the candidate are named, and how many others are.
    letters: Feature,
}

impl Marked {
    fn of(reading: &Reading, x: &str, y: &str) -> Self {
        let (mut x_named, mut y_named, mut others) = (false, false, 0);
        let mut tokens = vec!["^"];
        for token in &reading.0 {
            let (Token::Letters(text) | Token::Word(text)) = token;
            let is_x = !x.is_empty() && text == x && !(x_named && text == y);
            tokens.push(if is_x {
                x_named = true;
                "{x}"
            } else if !y.is_empty() && text == y {
                y_named = true;
                "{y}"
            } else if matches!(token, Token::Letters(_)) {
                others += 1;
                "{letters}"
            } else {
                text
            });
        }
        tokens.push("$");
        let mut grams = Vec::new();
        for n in 1..=3 {
            for window in tokens.windows(n).filter(|w| !matches!(w, ["^" | "$"])) {
                grams.push((n, Feature::of(&window.join(" "))));
            }
        }
        // Beginnings of words, so that other forms of a word and misspelt ones are not wholly unknown.
        for token in &reading.0 {
            if let Token::Word(word) = token
                && let Some((at, _)) = word.char_indices().nth(BEGINNING)
            {
                grams.push((1, Feature::of(&format!("{}…", &word[..at]))));
            }
        }
        let named = |letters: &str, named: bool| match (letters.is_empty(), named) {
            (true, _) => "none",
            (false, true) => "named",
            (false, false) => "unnamed",
        };
        let letters = format!("letters {} {} others {}", named(x, x_named), named(y, y_named), others.min(2));
        Self { grams, letters: Feature::of(&letters) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{grid, tokens};
    use super::super::{LogLinear, NgramPrior};
    use super::*;
    use crate::nn::log_linear;

    /// The features of each candidate, one by one.
    fn features(parts: &Parts, reading: &Reading, candidates: &[Candidate], effects: &[Effect]) -> Vec<Vec<Feature>> {
        let of_one = |(candidate, effect): (&Candidate, &Effect)| {
            let marked = Marked::of(reading, &candidate.x, &candidate.y);
            let mut all = parts.without_words(candidate, *effect, marked.letters).to_vec();
            for gram in marked.grams {
                all.extend(parts.joined(gram, candidate.pattern));
                all.extend(parts.joined(gram, parts.patterns.len() + candidate.replacement));
            }
            all
        };
        candidates.iter().zip(effects).map(of_one).collect()
    }

    #[test]
    fn what_is_shared_adds_up_to_the_features_of_each_candidate() {
        let mut prior = NgramPrior::new(grid());
        let (mut shared_model, mut plain_model) = (NgramPrior::model(&grid()), NgramPrior::model(&grid()));
        let words = ["banana".to_owned(), "kit".to_owned()];
        for text in ["put 'k' before every 't'", "double each vowel", "put 'k' before the first letter", "drop the 'n'"]
        {
            let reading = Reading::of(&tokens(text));
            let candidates = prior.grid.candidates(&reading);
            let known = super::super::known(&mut prior.executor, &candidates, &words, &[]);
            let effects: Vec<Effect> = known.into_iter().map(|(effect, _)| effect).collect();
            let shared = SharedFeatures::of(&reading, &candidates);
            let plain = features(&prior.parts, &reading, &candidates, &effects);
            let scores = shared.scores(&prior.parts, &shared_model, &candidates, &effects);
            for (score, features) in scores.iter().zip(&plain) {
                let expected = plain_model.score(features);
                assert!((score - expected).abs() < 1e-4 * (1.0 + expected.abs()), "{text}: {score} {expected}");
            }
            let right: Vec<bool> = (0..candidates.len()).map(|i| i % 7 == 3).collect();
            let (before, gradient) = log_linear::gradient(&scores, &right).unwrap();
            shared_model.ascend(shared.spread(&prior.parts, &candidates, &effects, &gradient));
            assert!((plain_model.step(&plain, &right) - before).abs() < 1e-5);
            let after = |model: &LogLinear| plain.iter().map(|features| model.score(features)).collect::<Vec<f32>>();
            for (a, b) in after(&shared_model).iter().zip(after(&plain_model)) {
                assert!((a - b).abs() < 1e-3 * (1.0 + b.abs()), "{text}: {a} {b}");
            }
        }
    }
}
