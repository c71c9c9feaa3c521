//! `iliad execute`: what an agent writes, executed.

use super::{CliResult, Exit};
use crate::task::regex::program::Executor;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

/// Commands of `iliad execute`.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum Command {
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

/// Carries out `iliad execute …`.
pub(super) fn run(args: &Args) -> CliResult {
    let Command::Regex(RegexArgs {}) = args.command;
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut executors: Vec<Executor> = (0..threads).map(|_| Executor::default()).collect();
    let mut execute = |questions: &[Question]| {
        let share = questions.len().div_ceil(executors.len()).max(1);
        let parts: Vec<Vec<Option<String>>> = questions
            .par_chunks(share)
            .zip(executors.par_iter_mut())
            .map(|(part, executor)| part.iter().map(|q| executor.execute(&q.expression, &q.word)).collect())
            .collect();
        parts.into_iter().flatten().collect()
    };
    let stdout = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match answer_lines(io::stdin().lock(), stdout, io::stderr(), &mut execute) {
        Ok(0) => Ok(Exit::Done),
        Ok(_) => Ok(Exit::Usage),
        // Whoever read the output has seen enough (`| head`).
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        Err(e) => Err(e.into()),
    }
}

/// Lines executed at once at most: enough to keep all cores busy, little enough to stay small.
const BATCH: usize = 8192;

/// Bytes of a line that are read at most.
const LINE_LIMIT: u64 = 1 << 20;

/// Bad lines that are named on the standard error stream; more are only counted.
const NAMED: u64 = 20;

#[derive(Deserialize)]
struct Question {
    expression: String,
    word: String,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Answer<'a> {
    Output(Option<&'a str>),
    Error(&'a str),
}

/// Answers every line of `input` in `output`; how many could not be read. `execute` gets batches and answers in order.
fn answer_lines(
    input: impl Read,
    mut output: impl Write,
    mut problems: impl Write,
    execute: &mut dyn FnMut(&[Question]) -> Vec<Option<String>>,
) -> io::Result<u64> {
    let mut input = BufReader::with_capacity(1 << 20, input);
    let (mut number, mut bad) = (0, 0);
    loop {
        // What stands for each line of the batch: a question, by position, or what is wrong with the line.
        let mut questions = Vec::new();
        let mut lines: Vec<Result<(), String>> = Vec::new();
        let mut ended = false;
        while lines.len() < BATCH {
            match read_line(&mut input)? {
                None => {
                    ended = true;
                    break;
                }
                Some(line) => {
                    number += 1;
                    match line.and_then(|line| parse(&line)) {
                        Ok(None) => {}
                        Ok(Some(question)) => {
                            questions.push(question);
                            lines.push(Ok(()));
                        }
                        Err(problem) => {
                            bad += 1;
                            if bad <= NAMED {
                                writeln!(problems, "line {number}: {problem}")?;
                            }
                            lines.push(Err(problem));
                        }
                    }
                }
            }
            // Somebody who waits for an answer has sent no more: do not wait for a full batch.
            if !input.buffer().contains(&b'\n') {
                break;
            }
        }
        let mut outputs = execute(&questions).into_iter();
        for line in &lines {
            let executed = line.as_ref().map(|()| outputs.next().flatten());
            let answer = match &executed {
                Ok(output) => Answer::Output(output.as_deref()),
                Err(problem) => Answer::Error(problem),
            };
            serde_json::to_writer(&mut output, &answer)?;
            output.write_all(b"\n")?;
        }
        output.flush()?;
        if ended {
            if bad > NAMED {
                writeln!(problems, "and {} more lines like these", bad - NAMED)?;
            }
            return Ok(bad);
        }
    }
}

/// The next line without its end; `None` when there is none. The inner error is for a line that cannot be text.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<Result<String, String>>> {
    let mut bytes = Vec::new();
    if input.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.last() != Some(&b'\n') && bytes.len() as u64 == LINE_LIMIT {
        input.skip_until(b'\n')?;
        return Ok(Some(Err("it is longer than a mebibyte".into())));
    }
    Ok(Some(String::from_utf8(bytes).map_err(|_| "it is not UTF-8".into())))
}

/// The question in a line; `None` for an empty line.
fn parse(line: &str) -> Result<Option<Question>, String> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    let wanted = "expected {\"expression\": …, \"word\": …}";
    serde_json::from_str(line).map(Some).map_err(|e| format!("{wanted}, but {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Executes" by joining expression and word; an expression `bad` is invalid.
    fn join(questions: &[Question]) -> Vec<Option<String>> {
        questions.iter().map(|q| (q.expression != "bad").then(|| format!("{}{}", q.expression, q.word))).collect()
    }

    fn answered(input: &[u8]) -> (Vec<String>, String, u64) {
        let (mut output, mut problems) = (Vec::new(), Vec::new());
        let bad = answer_lines(input, &mut output, &mut problems, &mut join).unwrap();
        let output = String::from_utf8(output).unwrap();
        (output.lines().map(str::to_owned).collect(), String::from_utf8(problems).unwrap(), bad)
    }

    #[test]
    fn every_line_is_answered_in_order() {
        let n = 3 * BATCH + 17;
        let input: String = (0..n).map(|i| format!("{{\"expression\":\"e\",\"word\":\"{i}\"}}\n")).collect();
        let (output, problems, bad) = answered(input.as_bytes());
        assert_eq!((output.len(), bad, problems.as_str()), (n, 0, ""));
        assert!(output.iter().enumerate().all(|(i, line)| *line == format!("{{\"output\":\"e{i}\"}}")));
    }

    #[test]
    fn bad_lines_are_named_and_the_rest_goes_on() {
        let input = b"{\"expression\":\"a\",\"word\":\"b\"}\n\nnonsense\n{\"expression\":\"bad\",\"word\":\"b\"}\n\
            {\"word\":\"b\"}\n\xff\xfe\n{\"expression\":\"\xc3\xbc\",\"word\":\"\\n\",\"more\":1}";
        let (output, problems, bad) = answered(input);
        assert_eq!(bad, 3);
        assert_eq!((output[0].as_str(), output[2].as_str()), ("{\"output\":\"ab\"}", "{\"output\":null}"));
        assert_eq!(output[5], "{\"output\":\"ü\\n\"}", "the last line needs no end");
        assert!([1, 3, 4].iter().all(|&i| output[i].starts_with("{\"error\":\"")), "{output:?}");
        let named: Vec<&str> = problems.lines().map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!(named, ["line 3", "line 5", "line 6"]);
        assert!(problems.contains("missing field `expression`"), "{problems}");
    }

    #[test]
    fn endless_lines_and_floods_of_bad_ones_stay_small() {
        let mut input = vec![b'x'; 3 << 20];
        input.extend(b"\n{\"expression\":\"a\",\"word\":\"b\"}\n");
        input.extend("?\n".repeat(100).bytes());
        let (output, problems, bad) = answered(&input);
        assert_eq!((output.len(), bad), (102, 101));
        assert!(output[0].contains("longer than a mebibyte") && output[1] == "{\"output\":\"ab\"}");
        assert_eq!(problems.lines().count() as u64, NAMED + 1);
        assert!(problems.ends_with("and 81 more lines like these\n"));
    }

    /// Gives one line per read, and says when a line was asked for before the answer to the one before was there.
    struct Partner<'a> {
        lines: Vec<&'static str>,
        answered: &'a std::cell::Cell<usize>,
        asked: usize,
    }

    impl Read for Partner<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            assert_eq!(self.answered.get(), self.asked, "the earlier question was answered first");
            if self.asked == self.lines.len() {
                return Ok(0);
            }
            let line = self.lines[self.asked].as_bytes();
            self.asked += 1;
            into[..line.len()].copy_from_slice(line);
            Ok(line.len())
        }
    }

    struct Count<'a>(&'a std::cell::Cell<usize>);

    impl Write for Count<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.set(self.0.get() + bytes.iter().filter(|&&b| b == b'\n').count());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_partner_that_waits_for_each_answer_gets_it() {
        let answered = std::cell::Cell::new(0);
        let line = "{\"expression\":\"a\",\"word\":\"b\"}\n";
        let partner = Partner { lines: vec![line, line, line], answered: &answered, asked: 0 };
        answer_lines(partner, Count(&answered), Vec::new(), &mut join).unwrap();
        assert_eq!(answered.get(), 3);
    }
}
