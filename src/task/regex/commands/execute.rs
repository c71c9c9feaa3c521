//! `iliad execute` executes the expressions that an agent writes.

use crate::command_line::CliResult;
use crate::command_line::json_lines::{Answers, answer_input};
use crate::family::commands::Commands;
use crate::task::regex::program::Executor;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Commands of `iliad execute` that execute expressions.
#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum Execute {
    /// Execute regular expressions on words: JSON lines in, JSON lines out
    Regex(RegexArgs),
}

const AFTER: &str = "\
Reads lines such as {\"expression\": \"()(n)()@c\", \"word\": \"embolden\"} from the standard input and writes one line \
for each, in order: {\"output\": \"emboldec\"}, or {\"output\": null} for an invalid execution.

A line that cannot be read does not stop the rest: in its place stands {\"error\": \"…\"}, the standard error stream \
names its number, and the command ends with code 2. Empty lines are passed over. Lines are answered as they come, so \
another program can ask and wait.

Examples:
  iliad execute regex < executions.jsonl > outputs.jsonl
  echo '{\"expression\":\"()(n)()@c\",\"word\":\"embolden\"}' | iliad execute regex";

/// Flags of `iliad execute regex` (none).
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(super) struct RegexArgs {}

impl Commands for Execute {
    fn run(&self) -> CliResult {
        let Execute::Regex(RegexArgs {}) = self;
        execute_input()
    }
}

/// Carries out `iliad execute regex`.
fn execute_input() -> CliResult {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut executors: Vec<Executor> = (0..threads).map(|_| Executor::default()).collect();
    let mut execute = |questions: &[Question]| {
        let share = questions.len().div_ceil(executors.len()).max(1);
        let parts: Vec<Answers<Answer>> = questions
            .par_chunks(share)
            .zip(executors.par_iter_mut())
            .map(|(part, executor)| {
                part.iter().map(|q| Ok(Answer { output: executor.execute(&q.expression, &q.word) })).collect()
            })
            .collect();
        parts.into_iter().flatten().collect()
    };
    answer_input("{\"expression\": …, \"word\": …}", &mut execute)
}

#[derive(Deserialize)]
struct Question {
    expression: String,
    word: String,
}

#[derive(Serialize)]
struct Answer {
    output: Option<String>,
}
