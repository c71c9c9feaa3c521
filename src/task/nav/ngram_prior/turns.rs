//! Changes of direction as parts of a walk, and the features that no words have a part in.

use crate::nn::log_linear::Feature;
use crate::task::nav::action::wrapped;
use crate::task::nav::scene::turn_in_words;

/// A change of direction, as the page tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Turn(&'static str);

/// All of them, each beside its mirror image.
const TURNS: [[&str; 2]; 4] =
    [["straight on", "straight on"], ["around", "around"], ["right", "left"], ["slightly right", "slightly left"]];

/// Letters of a word that says something of a turn, at least.
const LEAST_LETTERS: usize = 3;

impl Turn {
    /// The turn by an angle.
    pub fn of(by: f64) -> Self {
        Self(turn_in_words(wrapped(by)))
    }

    /// The turn in the mirror.
    #[must_use]
    pub fn mirrored(self) -> Self {
        let other = TURNS.iter().find_map(|[a, b]| (*a == self.0).then_some(*b).or((*b == self.0).then_some(*a)));
        Self(other.unwrap_or(self.0))
    }

    fn side(self) -> &'static str {
        self.0.rsplit(' ').next().unwrap_or_default()
    }

    /// Its parts, which words are tied to.
    pub fn parts(self, first: bool) -> Vec<Feature> {
        let mut parts = vec![Feature::of(&format!("turn {}", self.0)), Feature::of(&format!("side {}", self.side()))];
        if first {
            parts.push(Feature::of(&format!("first {}", self.side())));
        }
        parts
    }

    /// The feature of a token that is a word for some turn, and whether it is one for this.
    pub fn word_feature(self, token: &str) -> Option<(Feature, bool)> {
        if token.len() < LEAST_LETTERS {
            return None;
        }
        let of = |turn: &str| turn.split(' ').any(|word| word == token);
        if of(self.0) {
            Some((Feature::of("match turn"), true))
        } else {
            TURNS.iter().flatten().any(|turn| of(turn)).then(|| (Feature::of("other turn"), false))
        }
    }
}

/// The feature of a name that is nowhere near a move.
pub fn absent() -> Feature {
    Feature::of("absent")
}

/// The feature of a name that is not where a walk stops.
pub fn absent_at_stop() -> Feature {
    Feature::of("absent at stop")
}

/// Features of a move whatever is said.
pub fn unspoken(turn: Turn, first: bool) -> [Feature; 2] {
    let told = Feature::of("unspoken").and(Feature::of(turn.0));
    [told, told.and(Feature::of(if first { "first" } else { "later" }))]
}

/// Features of a move that nothing is said of.
pub fn empty(turn: Turn) -> [Feature; 2] {
    [Feature::of("empty"), Feature::of("empty").and(Feature::of(turn.0))]
}

/// The feature of a stop that nothing is said of.
pub fn empty_stop() -> Feature {
    Feature::of("empty stop")
}

/// How much longer a walk is than the shortest way to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detour {
    /// It is the shortest way.
    None,
    /// By less than [`SMALL`].
    Small,
    /// By more.
    Large,
}

/// A small detour is shorter than this, in metres.
const SMALL: f64 = 1.5;

impl Detour {
    /// The class of a detour of so many metres.
    pub fn of(metres: f64) -> Self {
        match metres {
            metres if metres < 0.01 => Self::None,
            metres if metres < SMALL => Self::Small,
            _ => Self::Large,
        }
    }
}

/// Features of a walk as a whole: its moves, also beside the parts that the sentence seems to have, and its detour.
pub fn whole(moves: usize, likely_parts: usize, detour: Detour) -> [Feature; 3] {
    let more = (moves as i64 - likely_parts as i64).clamp(-4, 4);
    [format!("{moves} moves"), format!("{more} moves more than parts"), format!("{detour:?} detour")]
        .map(|text| Feature::of(&text))
}
