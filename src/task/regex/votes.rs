//! Votes: a request is carried out under several renamings of its letters, and the outputs that most of them lead to are given.
//! Which letters a request names should not matter to how it is read; where it does, the network is unsure. Beside a prior the
//! share of the votes is what the network says, and is added to the prior's probability.

use super::agent::RegexAgent;
use super::letters::Renaming;
use super::{Edit, Words};
use crate::nn::tokens::END;
use crate::rng::Stream;
use crate::task::regex::model::student::Batch;
use candle_core::Result;

impl RegexAgent {
    /// For each task the edit whose outputs most of the renamings of its letters lead to, the plain letters among them. Of equals
    /// the first counts, and the plain letters are the first.
    pub(super) fn voted(&self, own: Vec<Edit>, tasks: &[(&Words, &str)], stream: &mut Stream) -> Result<Vec<Edit>> {
        Ok(self.ballots(own, tasks, stream)?.into_iter().map(most_votes).collect())
    }

    /// For each task what the network writes under each of the renamings, its own letters first. What breaks off has no vote.
    fn ballots(&self, own: Vec<Edit>, tasks: &[(&Words, &str)], stream: &mut Stream) -> Result<Vec<Vec<Edit>>> {
        let b = &self.blueprint;
        let mut ballots: Vec<Vec<Edit>> = own.into_iter().map(|edit| vec![edit]).collect();
        for number in 0..b.votes {
            // A stream of its own: the same request is always read under the same renamings.
            let renaming = Renaming::draw(&self.alphabet, &mut crate::rng::stream(0, "votes", number as u64));
            let inverse = renaming.inverse();
            let mut batch = Batch::default();
            self.read_renamed(tasks, &renaming, &mut batch);
            let outputs = self.student.roll_out(&batch.words, &batch.requests, b.horizon, false, stream)?;
            for ((rolled, (start, _)), ballot) in outputs.iter().zip(tasks).zip(&mut ballots) {
                let symbols = rolled.symbols.iter().map(|id| b.expressions.symbol(*id));
                if rolled.ended && rolled.symbols.iter().all(|id| *id > END) {
                    ballot.push(Edit::of(&inverse.expression(&symbols.collect::<String>()), start));
                }
            }
        }
        Ok(ballots)
    }

    /// For each task the edit whose outputs have most of the votes and of the prior's probability together: the share of the votes
    /// counts `network_weight` times.
    pub(super) fn voted_with_prior(
        &self,
        own: Vec<Edit>,
        tasks: &[(&Words, &str)],
        proposed: Vec<Vec<(String, f32)>>,
        stream: &mut Stream,
    ) -> Result<Vec<Edit>> {
        let weight = self.blueprint.network_weight as f32;
        let ballots = self.ballots(own, tasks, stream)?;
        let chosen = ballots.into_iter().zip(tasks).zip(proposed);
        Ok(chosen.map(|((ballot, (start, _)), proposed)| best_together(ballot, start, &proposed, weight)).collect())
    }
}

/// The edit whose outputs have the most of the votes, which count `weight` together, and of the probabilities of proposed expressions.
/// Of equals the first counts, and the votes stand before the proposals. An invalid edit is given only when there is no other.
fn best_together(ballot: Vec<Edit>, start: &Words, proposed: &[(String, f32)], weight: f32) -> Edit {
    if proposed.is_empty() {
        return most_votes(ballot);
    }
    let of_one = weight / (ballot.len().max(1) as f32);
    let votes = ballot.into_iter().map(|edit| (edit, of_one));
    let proposals = proposed.iter().map(|(expression, log)| (Edit::of(expression, start), log.exp()));
    let all: Vec<(Edit, f32)> = votes.chain(proposals).collect();
    let together = |edit: &Edit| match &edit.outputs {
        Some(_) => all.iter().filter(|(other, _)| other.outputs == edit.outputs).map(|(_, share)| share).sum(),
        None => -1.0_f32,
    };
    let best = all
        .iter()
        .map(|(edit, _)| (edit, together(edit)))
        .reduce(|best, next| if next.1 > best.1 { next } else { best });
    best.map_or_else(|| Edit { expression: String::new(), outputs: None }, |(edit, _)| edit.clone())
}

/// The first edit among those with the outputs that most edits have. Invalid edits have no vote; one is given only when all are. A ballot is
/// never empty: the edit of the plain letters is in it.
fn most_votes(mut ballot: Vec<Edit>) -> Edit {
    let votes = |edit: &Edit| match &edit.outputs {
        Some(_) => ballot.iter().filter(|other| other.outputs == edit.outputs).count(),
        None => 0,
    };
    let best =
        (1..ballot.len()).fold(0, |best, next| if votes(&ballot[next]) > votes(&ballot[best]) { next } else { best });
    ballot.swap_remove(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(expression: &str, output: Option<&str>) -> Edit {
        Edit { expression: expression.into(), outputs: output.map(|output| vec![output.to_owned()]) }
    }

    #[test]
    fn the_outputs_of_most_are_given_in_the_words_of_the_first() {
        let ballot = vec![edit("a", Some("x")), edit("b", Some("y")), edit("c", Some("y"))];
        assert_eq!(most_votes(ballot).expression, "b");
    }

    #[test]
    fn votes_and_the_prior_decide_together() {
        let start = Words { words: vec!["kit".into()] };
        let of = |expression: &str| Edit::of(expression, &start);
        let (dropped, doubled) = ("()(k)()@", "()(k)()@\\2\\2");
        let ballot = || vec![of(dropped), of(dropped), of(doubled)];
        let proposed = |p: f32| [(doubled.to_owned(), p.ln()), (dropped.to_owned(), (0.1_f32).ln())];
        // 2/3 + 0.1 against 1/3 + p.
        assert_eq!(best_together(ballot(), &start, &proposed(0.4), 1.0).expression, dropped);
        assert_eq!(best_together(ballot(), &start, &proposed(0.5), 1.0).expression, doubled);
        assert_eq!(best_together(ballot(), &start, &proposed(0.2), 0.1).expression, doubled);
        // Without proposals the votes decide, and without valid votes the prior does.
        assert_eq!(best_together(ballot(), &start, &[], 1.0).expression, dropped);
        let others = vec![of(doubled), of(dropped), of(dropped)];
        assert_eq!(best_together(others, &start, &[], 0.0).expression, dropped);
        assert_eq!(best_together(vec![edit("(", None)], &start, &proposed(0.01), 3.0).expression, dropped);
        assert_eq!(best_together(vec![edit("(", None)], &start, &[], 3.0).expression, "(");
    }

    #[test]
    fn of_equals_the_plain_letters_count_and_the_invalid_never() {
        assert_eq!(most_votes(vec![edit("a", Some("x")), edit("b", Some("y"))]).expression, "a");
        assert_eq!(most_votes(vec![edit("a", None), edit("b", None), edit("c", Some("y"))]).expression, "c");
        assert_eq!(most_votes(vec![edit("a", None), edit("b", None)]).expression, "a");
    }
}
