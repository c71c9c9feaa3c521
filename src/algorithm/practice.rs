//! The parts of examples that learning steps take: elsewhere, and in excerpts, as the world has them.

use super::StepContext;
use crate::protocol::{DescribedEpisode, Example, World};
use crate::rng::Stream;
use std::borrow::Cow;

/// The examples of new teaching, each with further starts where the world gives some.
pub(super) fn relocated<W: World>(
    world: &W,
    described: &[DescribedEpisode<W>],
    stream: &mut Stream,
) -> Vec<Example<W>> {
    let mut relocate = |e: &Example<W>| match world.elsewhere(&e.start, &e.execution, stream) {
        Some((start, execution)) => Example { start, execution, words: e.words.clone() },
        None => e.clone(),
    };
    described.iter().map(|d| relocate(&d.example)).collect()
}

/// The part of each example that a practice step learns from.
pub(super) fn excerpts<W: World>(world: &W, described: &[DescribedEpisode<W>], stream: &mut Stream) -> Vec<Example<W>> {
    let excerpt = |d: &DescribedEpisode<W>| {
        let Example { start, words, execution } = &d.example;
        let moved = world.elsewhere(start, execution, stream);
        let (start, execution) = moved.as_ref().map_or((start, execution), |(start, execution)| (start, execution));
        let (start, execution) = world.excerpt(start, execution, stream);
        Example { start, execution, words: words.clone() }
    };
    described.iter().map(excerpt).collect()
}

/// The prior takes in one replay of so many: it needs fewer passes than the network.
const PRIOR_REPLAY: u64 = 4;

/// The examples that the prior learns from where the network learns from `own`: none in most replays, and otherwise those that were
/// described, since what a prior finds out about an example can then be remembered.
pub(super) fn for_prior<'a, W: World>(
    own: &'a [Example<W>],
    described: &[DescribedEpisode<W>],
    step: StepContext,
) -> Cow<'a, [Example<W>]> {
    if step.fresh {
        return Cow::Borrowed(own);
    }
    let taken = step.counter.is_multiple_of(PRIOR_REPLAY);
    Cow::Owned(described.iter().filter(|_| taken).map(|d| d.example.clone()).collect())
}
