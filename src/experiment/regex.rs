//! The REGEX experiments of the paper, with the figures it reports.

use super::grid::{Row, Table};
use super::results::Paper;

fn paper(validation: f64, test: Option<f64>, to_85: Option<f64>) -> Paper {
    Paper { validation: Some(validation), test, level: to_85.map(|_| 85.0), to_level: to_85 }
}

fn row(name: &'static str, title: &'static str, settings: &[&str], paper: Paper) -> Row {
    Row { name, title, settings: settings.iter().map(|s| (*s).to_owned()).collect(), paper }
}

/// The tables by name: `main`, `mixing`, `anneal`, `efficient`; `None` for another name.
pub fn table(name: &str) -> Option<Table> {
    let (title, rows) = match name {
        "main" => ("Learning algorithms on REGEX", main()),
        "mixing" => ("Weight λ of the approximate marginal in ADEL's exploration policy", mixing()),
        "anneal" => ("Annealing λ every L updates", anneal()),
        "efficient" => ("What each part of the preset `efficient` brings", efficient()),
        _ => return None,
    };
    Some(Table { family: "regex", name: name.to_owned(), title, rows })
}

/// The figures by name: `curves` shows the runs of `main` over episodes; `None` for another name.
pub fn figure(name: &str) -> Option<Table> {
    (name == "curves").then(|| Table {
        family: "regex",
        name: "curves".into(),
        title: "Validation and cumulative training success on REGEX over episodes",
        rows: main(),
    })
}

fn main() -> Vec<Row> {
    let failed = |test| paper(0.0, Some(test), None);
    vec![
        row("adel", "ADEL", &["algorithm.name=adel"], paper(88.1, Some(89.0), Some(573e3))),
        row("dagger", "DAgger", &["algorithm.name=dagger"], paper(92.5, Some(93.0), Some(118e3))),
        row("reinforce-binary", "REINFORCE, binary reward", &["algorithm.name=reinforce-binary"], failed(0.0)),
        row(
            "reinforce-continuous",
            "REINFORCE, continuous reward",
            &["algorithm.name=reinforce-continuous"],
            failed(0.0),
        ),
    ]
}

fn mixing() -> Vec<Row> {
    let weight = |name, title, lambda, paper| row(name, title, &["algorithm.name=adel", lambda], paper);
    vec![
        weight("lambda-0", "λ = 0 (no marginal)", "algorithm.mixing.lambda=0", paper(0.2, None, None)),
        weight("lambda-0.5", "λ = 0.5", "algorithm.mixing.lambda=0.5", paper(88.0, None, Some(608e3))),
        weight("lambda-1", "λ = 1 (marginal only)", "algorithm.mixing.lambda=1", paper(55.7, None, None)),
    ]
}

fn anneal() -> Vec<Row> {
    let every = |name, title, every, to_85, validation| {
        row(name, title, &["algorithm.name=adel", every], paper(validation, None, Some(to_85)))
    };
    vec![
        every("anneal-2000", "L = 2000", "algorithm.mixing.anneal_every=2000", 368e3, 87.7),
        every("anneal-5000", "L = 5000", "algorithm.mixing.anneal_every=5000", 448e3, 86.4),
        every("anneal-none", "no annealing", "algorithm.mixing.anneal_every=0", 608e3, 88.0),
    ]
}

/// The preset `efficient`; and another base, with letter slots and word dropout, whole and with each part taken away
/// (`--preset efficient`).
fn efficient() -> Vec<Row> {
    const BASE: [&str; 2] = ["model.letters=slots", "algorithm.word_dropout=0.1"];
    // What comes later counts.
    let part = |name, title, settings: &[&str]| row(name, title, &[&BASE, settings].concat(), Paper::default());
    vec![
        row(
            "renamed-no-dropout",
            "the preset: letters renamed at random, no word dropout",
            &["model.letters=renamed", "algorithm.word_dropout=0"],
            Paper::default(),
        ),
        part("all", "letter slots, word dropout; below, one change each", &["algorithm.name=adel"]),
        part("plain-letters", "letters as they are", &["model.letters=plain"]),
        part("renamed-letters", "letters renamed at random", &["model.letters=renamed"]),
        part("no-more-words", "no further words of a description", &["task.more_words=0"]),
        part("no-replay", "no replay", &["algorithm.replay=0"]),
        part("steady-replay", "as much replay with many descriptions", &["algorithm.replay_fade=0"]),
        part("no-anneal", "no annealing of λ", &["algorithm.mixing.anneal_every=0"]),
        part("no-dropout", "no word dropout", &["algorithm.word_dropout=0"]),
        part("no-average", "no averaged weights", &["algorithm.average=0"]),
        part("no-warm-start", "no pretraining on P_ω", &["algorithm.pretrain_updates=0"]),
        part(
            "asking",
            "asking about doubtful and new kinds of executions",
            &["algorithm.ask.candidates=4", "algorithm.ask.samples=3"],
        ),
        part("hidden-512", "512 hidden units", &["model.hidden=512"]),
        part("supervised", "no teacher: the true expressions instead", &["algorithm.name=supervised"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::configure;

    #[test]
    fn every_row_is_a_configuration_and_names_are_folders() {
        for name in ["main", "mixing", "anneal", "efficient"] {
            let preset = if name == "efficient" { name } else { "paper" };
            for row in table(name).unwrap().rows {
                configure(preset, 1, &row.settings).unwrap();
                assert!(row.name.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c)), "{}", row.name);
            }
        }
        assert!(table("other").is_none() && figure("other").is_none() && figure("curves").is_some());
    }
}
