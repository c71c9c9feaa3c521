//! Holds that every `iliad …` line of README and docs is a command that this program takes: flags, presets and settings.

use super::run_settings::RunSettings;
use super::{Cli, Command, Request, dev, parse};
use crate::registry::Registry;
use std::path::Path;

/// Lines of the code blocks of a Markdown file, fenced or indented, with their numbers.
fn code(text: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            match lines.last_mut() {
                // A command that goes on in the next line.
                Some((_, before)) if before.ends_with('\\') => {
                    before.pop();
                    before.push_str(line.trim());
                }
                _ => lines.push((at + 1, line.trim().to_owned())),
            }
        }
    }
    lines
}

/// The command in a line of code, without what the shell does with it and without the remark beside it. `None` when it is
/// another program's.
fn command(line: &str) -> Option<Vec<String>> {
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let words = words(line);
    // Settings for the one command stand before it.
    let begin = words.iter().position(|word| !word.contains('='))?;
    (words[begin] == "iliad").then(|| words[begin..].to_vec())
}

/// Words as a shell takes them, up to a pipe, a redirection, a comment, or the remark that two blanks set apart.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut begun, mut quote) = (Vec::new(), String::new(), false, None);
    let mut blanks = 0;
    for c in line.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            (c, Some(_)) => word.push(c),
            (' ', None) => {
                blanks += 1;
                if begun {
                    words.push(std::mem::take(&mut word));
                    begun = false;
                }
                if blanks > 1 {
                    break;
                }
            }
            ('|' | '>' | '<' | '#' | ';' | '&', None) => break,
            ('\'' | '"', None) => (quote, begun, blanks) = (Some(c), true, 0),
            // `[--boxes DIR]`: may be left out, and is taken.
            ('[' | ']', None) => blanks = 0,
            (c, None) => {
                word.push(c);
                (begun, blanks) = (true, 0);
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// The words with a number in place of each `N`.
fn filled(words: Vec<String>) -> Vec<String> {
    words.into_iter().map(|word| if word == "N" { "1".to_owned() } else { word }).collect()
}

/// Preset of a command that has one, and the settings that the command changes.
fn configuration(cli: &Cli) -> Option<(&str, Vec<String>)> {
    let simulated = |run: &RunSettings| super::run_settings::simulated(&run.overrides.set);
    let (run, set) = match &cli.command {
        None => (&cli.serve.first, cli.serve.first.overrides.set.clone()),
        Some(Command::Serve(a)) => (&a.first, a.first.overrides.set.clone()),
        Some(Command::Train(a)) if !a.resume => (&a.run, simulated(&a.run)),
        Some(Command::Pretrain(a)) => (&a.run, a.run.overrides.set.clone()),
        Some(Command::Teacher(super::teacher::Args { command: super::teacher::Command::Train(a) })) => {
            (&a.run, a.run.overrides.set.clone())
        }
        Some(Command::Bench(a) | Command::Dev(dev::Args { command: dev::Command::Bench(a) })) => {
            return Some((&a.preset, a.overrides.set.clone()));
        }
        _ => return None,
    };
    Some((&run.preset, set))
}

#[test]
fn documented_commands_are_commands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let files = docs.chain(["README.md", "BENCHMARKS.md"].map(|name| root.join(name)));
    let mut seen = 0;
    for file in files.filter(|path| path.extension().is_some_and(|ending| ending == "md")) {
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, line) in code(&text) {
            let Some(words) = command(&line) else { continue };
            let place = format!("{}:{number}: {line}", file.file_name().unwrap().to_string_lossy());
            let request = parse(filled(words), Registry::builtin()).unwrap_or_else(|e| panic!("{place}\n{e}"));
            if let Request::Program(cli) = &request
                && let Some((preset, set)) = configuration(cli)
            {
                crate::testing::configure(preset, 1, &set).unwrap_or_else(|e| panic!("{place}\n{e}"));
            }
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen} commands were found");
}

#[test]
fn lines_are_read_as_a_shell_reads_them() {
    let read = |line: &str| command(line).map(|words| words.join("|"));
    assert_eq!(read("iliad export > all.jsonl").as_deref(), Some("iliad|export"));
    assert_eq!(read("iliad presets regex/tiny      its settings").as_deref(), Some("iliad|presets|regex/tiny"));
    assert_eq!(read("ILIAD_PORT=1 iliad --set 'a={\"b\": 1}' # c").as_deref(), Some("iliad|--set|a={\"b\": 1}"));
    assert_eq!(read("iliad x [--boxes DIR] -o DIR").as_deref(), Some("iliad|x|--boxes|DIR|-o|DIR"));
    assert_eq!(read("cargo run --release"), None);
}
