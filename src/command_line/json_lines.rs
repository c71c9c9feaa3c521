//! JSON lines in, JSON lines out: what the commands that answer questions have in common.
//!
//! Every line is answered in order. A line that cannot be answered does not stop the rest: in its place stands
//! `{"error": "…"}`, the standard error stream names its number, and the command ends with code 2. Empty lines are
//! passed over. Lines are answered as they come, so another program can ask and wait.

use super::{CliError, CliResult, Exit};
use crate::output::{Notes, OutputError, Stdout, json};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Read, Write};

/// Lines answered at once at most: enough to keep all cores busy, little enough to stay small.
const BATCH: usize = 8192;

/// Bytes of a line that are read at most.
const LINE_LIMIT: u64 = 1 << 20;

/// Bad lines that are named on the standard error stream; more are only counted.
const NAMED: u64 = 20;

/// Answers to a batch of questions, in order; an error says in a plain sentence what is wrong with the question.
pub type Answers<A> = Vec<Result<A, String>>;

#[derive(Serialize)]
struct Problem<'a> {
    error: &'a str,
}

/// Answers the lines of the standard input on the standard output. `wanted` shows what a line has to look like.
pub fn answer_input<Q: DeserializeOwned, A: Serialize>(
    wanted: &str,
    answer: &mut dyn FnMut(&[Q]) -> Answers<A>,
) -> CliResult {
    match answer_lines(io::stdin().lock(), Stdout::lock(), Notes, wanted, answer) {
        Ok(0) => Ok(Exit::Done),
        Ok(_) => Ok(Exit::Usage),
        Err(Broken::Input(e)) => Err(CliError::Usage(format!("cannot read the standard input: {e}"))),
        Err(Broken::Output(e)) => Err(OutputError::stdout(e).into()),
    }
}

/// The failure that ended the answering.
#[derive(Debug)]
enum Broken {
    Input(io::Error),
    Output(io::Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Broken::Output(error)
    }
}

impl From<serde_json::Error> for Broken {
    fn from(error: serde_json::Error) -> Self {
        Broken::Output(error.into())
    }
}

/// Answers every line of `input` in `output`; how many could not be answered.
fn answer_lines<Q: DeserializeOwned, A: Serialize>(
    input: impl Read,
    mut output: impl Write,
    mut problems: impl Write,
    wanted: &str,
    answer: &mut dyn FnMut(&[Q]) -> Answers<A>,
) -> Result<u64, Broken> {
    let mut input = BufReader::with_capacity(1 << 20, input);
    let (mut number, mut bad) = (0, 0);
    loop {
        // The questions of a batch, and for each line its number and what is wrong with it, if anything is.
        let mut questions = Vec::new();
        let mut lines: Vec<(u64, Option<String>)> = Vec::new();
        let mut ended = false;
        while lines.len() < BATCH {
            let Some(line) = read_line(&mut input, number == 0).map_err(Broken::Input)? else {
                ended = true;
                break;
            };
            number += 1;
            match line.and_then(|line| parse(&line, wanted)) {
                Ok(None) => {}
                Ok(Some(question)) => {
                    questions.push(question);
                    lines.push((number, None));
                }
                Err(problem) => lines.push((number, Some(problem))),
            }
            // Somebody who waits for an answer has sent no more: do not wait for a full batch.
            if !input.buffer().contains(&b'\n') {
                break;
            }
        }
        let mut answers = answer(&questions).into_iter();
        for (number, problem) in lines {
            let answered = match problem {
                None => answers.next().unwrap_or_else(|| Err("it got no answer".into())),
                Some(problem) => Err(problem),
            };
            match answered {
                Ok(answer) => json::write(&mut output, &answer)?,
                Err(problem) => {
                    bad += 1;
                    if bad <= NAMED {
                        writeln!(problems, "line {number}: {problem}")?;
                    }
                    json::write(&mut output, &Problem { error: &problem })?;
                }
            }
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

/// The next line with its end; `None` when there is none. The inner error is for a line that cannot be text. The byte-order
/// mark that some editors put before the `first` line is passed over.
fn read_line(input: &mut impl BufRead, first: bool) -> io::Result<Option<Result<String, String>>> {
    let mut bytes = Vec::new();
    if input.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.last() != Some(&b'\n') && bytes.len() as u64 == LINE_LIMIT {
        input.skip_until(b'\n')?;
        return Ok(Some(Err("it is longer than a mebibyte".into())));
    }
    if first && bytes.starts_with(crate::output::json::MARK) {
        bytes.drain(..crate::output::json::MARK.len());
    }
    Ok(Some(String::from_utf8(bytes).map_err(|_| "it is not UTF-8".into())))
}

/// The question in a line; `None` for an empty line.
fn parse<Q: DeserializeOwned>(line: &str, wanted: &str) -> Result<Option<Q>, String> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    serde_json::from_str(line).map(Some).map_err(|e| format!("expected {wanted}, but {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    const WANTED: &str = "{\"expression\": …, \"word\": …}";

    #[derive(Deserialize)]
    struct Question {
        expression: String,
        word: String,
    }

    #[derive(Serialize)]
    struct Answer {
        output: Option<String>,
    }

    /// Answers by joining expression and word; `bad` gives null, `unknown` cannot be answered.
    fn join(questions: &[Question]) -> Answers<Answer> {
        let answer = |q: &Question| match q.expression.as_str() {
            "unknown" => Err("there is no such expression".to_owned()),
            "bad" => Ok(Answer { output: None }),
            expression => Ok(Answer { output: Some(format!("{expression}{}", q.word)) }),
        };
        questions.iter().map(answer).collect()
    }

    fn answered(input: &[u8]) -> (Vec<String>, String, u64) {
        let (mut output, mut problems) = (Vec::new(), Vec::new());
        let bad = answer_lines(input, &mut output, &mut problems, WANTED, &mut join).unwrap();
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
            {\"word\":\"b\"}\n\xff\xfe\n{\"expression\":\"unknown\",\"word\":\"b\"}\n{\"expression\":\"\xc3\xbc\",\"word\":\"\\n\",\"more\":1}";
        let (output, problems, bad) = answered(input);
        assert_eq!(bad, 4);
        assert_eq!((output[0].as_str(), output[2].as_str()), ("{\"output\":\"ab\"}", "{\"output\":null}"));
        assert_eq!(output[6], "{\"output\":\"ü\\n\"}", "the last line needs no end");
        assert!([1, 3, 4, 5].iter().all(|&i| output[i].starts_with("{\"error\":\"")), "{output:?}");
        let named: Vec<&str> = problems.lines().map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!(named, ["line 3", "line 5", "line 6", "line 7"]);
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
        answer_lines(partner, Count(&answered), Vec::new(), WANTED, &mut join).unwrap();
        assert_eq!(answered.get(), 3);
    }
}
