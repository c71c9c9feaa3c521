//! A sentence as the prior reads it: tokens with their n-grams, and the joints between tokens at which one part of it may end
//! and the next begin.

use crate::nn::log_linear::Feature;

/// Tokens of an n-gram at most.
pub const LONGEST: usize = 3;

/// Tokens that are read at most; the rest of a longer text is left out.
pub const MOST_TOKENS: usize = 120;

/// Words after which a new part of a sentence is likely to begin.
const JOINING: [&str; 2] = ["then", "and"];

/// A sentence.
#[derive(Clone, Debug)]
pub struct Sentence {
    tokens: Vec<String>,
    /// For each token the n-grams that end with it, shortest first; a mark has none, and no n-gram spans one.
    ngrams: Vec<Vec<Feature>>,
    /// For each token the features of a part that begins with it, and whether one is likely to.
    joints: Vec<(Vec<Feature>, bool)>,
}

fn is_mark(token: &str) -> bool {
    !token.chars().any(char::is_alphanumeric)
}

impl Sentence {
    /// Reads tokens.
    pub fn new(mut tokens: Vec<String>) -> Self {
        tokens.truncate(MOST_TOKENS);
        let mut ngrams = Vec::with_capacity(tokens.len());
        for end in 0..tokens.len() {
            let unmarked = tokens[..=end].iter().rev().take_while(|token| !is_mark(token)).count();
            let of = |n: usize| Feature::of(&tokens[end + 1 - n..=end].join(" "));
            ngrams.push((1..=unmarked.min(LONGEST)).map(of).collect());
        }
        let joint = |at: usize| {
            let joins = |token: &str| is_mark(token) || JOINING.contains(&token);
            let before = at.checked_sub(1).map_or("", |before| &tokens[before]);
            let here = &tokens[at];
            // Of a run of joining tokens, the part begins with the first that is a word, or with the token after them.
            let likely = (is_mark(before) && !is_mark(here)) || (JOINING.contains(&here.as_str()) && !joins(before));
            let texts = [
                "joint".into(),
                format!("joint after {before}"),
                format!("joint before {here}"),
                format!("joint {before} {here}"),
            ];
            (texts.iter().map(|text| Feature::of(text)).collect(), likely && at > 0)
        };
        let joints = (0..tokens.len()).map(joint).collect();
        Self { tokens, ngrams, joints }
    }

    /// Its tokens.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// The n-grams that end with a token.
    pub fn ngrams(&self, token: usize) -> &[Feature] {
        &self.ngrams[token]
    }

    /// The features of a part that begins with a token, and whether one is likely to.
    pub fn joint(&self, token: usize) -> (&[Feature], bool) {
        (&self.joints[token].0, self.joints[token].1)
    }

    /// Tokens at which a part is likely to begin, the first included.
    pub fn likely_parts(&self) -> usize {
        1 + self.joints.iter().filter(|(_, likely)| *likely).count()
    }
}
