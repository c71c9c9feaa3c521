//! Reviews: the execution policy carries out a few descriptions of one person, as it does now. Their choice draws from a stream
//! of its own, so that reviews change nothing of what is learnt.

use super::Trainer;
use crate::family::Family;
use crate::protocol::{Decoding, Episode, Medium, World};
use crate::rng;
use crate::run::{Attempt, OwnDescription, Reviewed};
use rand::seq::SliceRandom;
use std::collections::HashSet;

/// Descriptions that a review carries out.
const REVIEWED: usize = 3;

impl<K: Family> Trainer<'_, K> {
    /// Carries out a few descriptions, drawn at random: first of kinds that differ, then others in other words.
    pub(super) fn review(&self, described: Vec<OwnDescription>, number: u64) -> Result<Vec<Reviewed>, String> {
        // Words of another medium are no requests.
        if self.run.config.algorithm.name.medium() != Some(Medium::Description) {
            return Ok(Vec::new());
        }
        let world = &*self.run.world;
        let mut stream = rng::stream(self.run.config.seed, "review", number);
        let mut known = episodes_of::<K::World>(described)?;
        // An earlier version showed executions that are passed over now.
        known.retain(|(_, Episode { task, execution, .. })| world.worth_showing(&task.start, execution));
        known.shuffle(&mut stream);
        let (mut kinds, mut words) = (HashSet::new(), HashSet::new());
        let (mut chosen, mut others) = (Vec::new(), Vec::new());
        for one in known {
            let (text, episode) = &one;
            let is_new = words.insert(text.trim().to_lowercase());
            let kind = world.kind(&episode.task.start, &episode.execution);
            match (is_new, is_new && kinds.insert(kind)) {
                (_, true) => chosen.push(one),
                (true, false) => others.push(one),
                (false, false) => {}
            }
        }
        chosen.append(&mut others);
        chosen.truncate(REVIEWED);
        let asked: Vec<_> = chosen
            .into_iter()
            .map(|(text, Episode { task, execution, .. })| {
                let another = world.another_start(&task.start, &execution, &mut stream);
                let elsewhere = another.is_some();
                let (start, wanted) = another.unwrap_or((task.start, execution));
                (text, elsewhere, start, wanted)
            })
            .collect();
        let cases: Vec<_> = asked.iter().map(|(text, _, start, wanted)| (text.as_str(), start, wanted)).collect();
        let attempts = self.attempts_at(&cases)?;
        let world = &*self.run.world;
        let reviewed = asked.iter().zip(attempts).map(|((text, elsewhere, start, wanted), attempt)| Reviewed {
            text: text.clone(),
            elsewhere: *elsewhere,
            attempt,
            wanted: world.view(start, wanted),
            update: self.progress.counters.update,
        });
        Ok(reviewed.collect())
    }

    /// Carries out descriptions, each from the start of the execution that it describes.
    pub(super) fn carry_out(&self, described: Vec<OwnDescription>) -> Result<Vec<Attempt>, String> {
        let known = episodes_of::<K::World>(described)?;
        let cases: Vec<_> =
            known.iter().map(|(text, episode)| (text.as_str(), &episode.task.start, &episode.execution)).collect();
        self.attempts_at(&cases)
    }

    /// The agent's attempts at requests, each from a start and compared with the execution that would be right there.
    pub(super) fn attempts_at(&self, cases: &[Case<'_, K::World>]) -> Result<Vec<Attempt>, String> {
        let world = &*self.run.world;
        let requests: Vec<_> = cases.iter().map(|(text, start, _)| (*start, *text)).collect();
        let policy = self.algorithm.policy();
        let done = policy
            .act(&requests, Decoding::Greedy, &mut rng::stream(0, "review", 0))
            .map_err(|e| format!("The agent could not try: {e}"))?;
        let tau = self.run.config.teacher.pragmatics.tau;
        let attempts = cases.iter().zip(&done).map(|((_, start, wanted), execution)| Attempt {
            view: world.view(start, execution),
            summary: world.summary(execution),
            understood: world.understood(start, execution, wanted, tau),
        });
        Ok(attempts.collect())
    }
}

/// A request, the start, and the execution that would be right.
type Case<'a, W> = (&'a str, &'a <W as World>::Start, &'a <W as World>::Execution);

/// Descriptions with their executions, read from the traces.
fn episodes_of<W: World>(described: Vec<OwnDescription>) -> Result<Vec<(String, Episode<W>)>, String> {
    described
        .into_iter()
        .map(|OwnDescription { text, trace }| {
            let episode =
                serde_json::from_value(trace).map_err(|e| format!("A stored execution cannot be read: {e}"))?;
            Ok((text, episode))
        })
        .collect()
}
