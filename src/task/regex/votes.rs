//! Votes: a request is carried out under several renamings of its letters, and the outputs that most of them lead to are given.
//! Which letters a request names should not matter to how it is read; where it does, the network is unsure.

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
        Ok(ballots.into_iter().map(most_votes).collect())
    }
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
    fn of_equals_the_plain_letters_count_and_the_invalid_never() {
        assert_eq!(most_votes(vec![edit("a", Some("x")), edit("b", Some("y"))]).expression, "a");
        assert_eq!(most_votes(vec![edit("a", None), edit("b", None), edit("c", Some("y"))]).expression, "c");
        assert_eq!(most_votes(vec![edit("a", None), edit("b", None)]).expression, "a");
    }
}
