//! The NAV experiments of the paper, with the figures it reports.

use super::grid::{Row, Table};
use super::results::Paper;

/// A row; `to_30` is the paper's number of episodes to 30% on validation.
fn row(
    name: &'static str,
    title: &'static str,
    settings: &[&str],
    (validation, test, to_30): (f64, Option<f64>, Option<f64>),
) -> Row {
    let paper = Paper { validation: Some(validation), test, level: to_30.map(|_| 30.0), to_level: to_30 };
    Row { name, title, settings: settings.iter().map(|s| (*s).to_owned()).collect(), paper }
}

/// The tables by name: `main`, `mixing`, `anneal`, `efficient`; `None` for another name.
pub fn table(name: &str) -> Option<Table> {
    let (title, rows) = match name {
        "main" => ("Learning algorithms on NAV", main()),
        "mixing" => ("Weight λ of the approximate marginal in ADEL's exploration policy, NAV", mixing()),
        "anneal" => ("Annealing λ every L updates, NAV", anneal()),
        "efficient" => ("What each part of the preset `nav/efficient` brings", efficient()),
        _ => return None,
    };
    Some(Table { family: "nav", name: name.to_owned(), title, rows })
}

/// The figures by name: `curves` shows the runs of `main` over episodes; `None` for another name.
pub fn figure(name: &str) -> Option<Table> {
    (name == "curves").then(|| Table {
        family: "nav",
        name: "curves".into(),
        title: "Validation and cumulative training success on NAV over episodes",
        rows: main(),
    })
}

fn main() -> Vec<Row> {
    vec![
        row("adel", "ADEL", &["algorithm.name=adel"], (32.2, Some(31.9), Some(406e3))),
        row("dagger", "DAgger", &["algorithm.name=dagger"], (35.6, Some(32.0), Some(45e3))),
        row(
            "reinforce-binary",
            "REINFORCE, binary reward",
            &["algorithm.name=reinforce-binary"],
            (22.4, Some(20.5), None),
        ),
        row(
            "reinforce-continuous",
            "REINFORCE, continuous reward",
            &["algorithm.name=reinforce-continuous"],
            (11.1, Some(11.3), None),
        ),
    ]
}

fn mixing() -> Vec<Row> {
    let weight = |name, title, lambda, validation, to_30| {
        row(name, title, &["algorithm.name=adel", lambda], (validation, None, to_30))
    };
    vec![
        weight("lambda-0", "λ = 0 (no marginal)", "algorithm.mixing.lambda=0", 0.0, None),
        row(
            "lambda-0-unmoved",
            "λ = 0, walks that stay where they are described, too",
            &["algorithm.name=adel", "algorithm.mixing.lambda=0", "task.unmoved=true"],
            (0.0, None, None),
        ),
        row(
            "lambda-0.5-unmoved",
            "λ = 0.5, likewise",
            &["algorithm.name=adel", "algorithm.mixing.lambda=0.5", "task.unmoved=true"],
            (32.0, None, Some(384e3)),
        ),
        weight("lambda-0.5", "λ = 0.5", "algorithm.mixing.lambda=0.5", 32.0, Some(384e3)),
        weight("lambda-1", "λ = 1 (marginal only)", "algorithm.mixing.lambda=1", 29.4, None),
    ]
}

fn anneal() -> Vec<Row> {
    let every = |name, title, every, validation, to_30| {
        row(name, title, &["algorithm.name=adel", every], (validation, None, Some(to_30)))
    };
    vec![
        every("anneal-2000", "L = 2000", "algorithm.mixing.anneal_every=2000", 31.4, 304e3),
        every("anneal-5000", "L = 5000", "algorithm.mixing.anneal_every=5000", 32.5, 384e3),
        every("anneal-none", "no annealing", "algorithm.mixing.anneal_every=0", 32.0, 384e3),
    ]
}

/// The preset `nav/efficient` whole, and with each part taken away (`--preset efficient`).
fn efficient() -> Vec<Row> {
    let part = |name: &'static str, title: &'static str, settings: &[&str]| Row {
        name,
        title,
        settings: settings.iter().map(|s| (*s).to_owned()).collect(),
        paper: Paper::default(),
    };
    vec![
        part("all", "all parts", &["algorithm.name=adel"]),
        part("no-mirror", "no mirrored houses", &["model.mirror=false"]),
        part("no-replay", "no replay", &["algorithm.replay=0"]),
        part("no-anneal", "no annealing of λ", &["algorithm.mixing.anneal_every=0"]),
        part("no-average", "no averaged weights", &["algorithm.average=0"]),
        part("no-dropout", "no word dropout", &["algorithm.word_dropout=0"]),
        part("no-positions", "requests as bags of words", &["model.positions=false"]),
        part("asking", "asking about doubtful walks", &["algorithm.ask.candidates=4", "algorithm.ask.samples=3"]),
        part("supervised", "no teacher: the true paths instead", &["algorithm.name=supervised"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::configure;

    #[test]
    fn every_row_is_a_configuration_and_names_are_folders() {
        for name in ["main", "mixing", "anneal", "efficient"] {
            let preset = if name == "efficient" { "nav/efficient" } else { "nav/paper" };
            for row in table(name).unwrap().rows {
                configure(preset, 1, &row.settings).unwrap();
                assert!(row.name.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c)), "{}", row.name);
            }
        }
        assert!(table("other").is_none() && figure("other").is_none() && figure("curves").is_some());
    }
}
