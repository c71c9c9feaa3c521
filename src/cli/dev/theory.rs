//! `iliad dev theory` computes the paper's analysis.

use crate::command_line::{CliError, CliResult, Exit, numbers};
use crate::experiment::theory::bandit::Sizes;
use crate::experiment::theory::{Study, StudySettings, picture, study};
use crate::output::{file, json, note, out, print};
use std::path::PathBuf;

const AFTER: &str = "\
Examples:
  iliad dev theory                                          a small world: does the paper's bound hold?
  iliad dev theory --actions 8 --descriptions 12 --seed 7   another one
  iliad dev theory --inconsistent 0.1,0.3,0.6               teachers that say something wrong so often
  iliad dev theory --plot theory.svg                        the curves as a picture
  iliad dev theory --json                                   every epoch as one line of JSON

docs/theory.md says what is computed and how to read it. Ends with code 1 if a bound did not hold.";

/// Flags of `iliad dev theory`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER)]
pub(in crate::cli) struct Args {
    /// Actions of the world, |A|
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=200))]
    pub actions: u64,
    /// Descriptions of the world; with fewer than actions the theorem says nothing
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=200))]
    pub descriptions: u64,
    /// Start states of the world
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub starts: u64,
    /// Epochs T
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub epochs: u64,
    /// Seed of the random world and of drawn batches
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = numbers::seed)]
    pub seed: u64,
    /// Tasks per epoch of the sampled version (the paper's M); 0 leaves it out
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub samples: u64,
    /// Shares of wrong descriptions of inconsistent teachers, from 0 to 1, with commas between them
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_value = "0.1,0.3", value_parser = share)]
    pub inconsistent: Vec<f64>,
    /// Write the curves to this SVG file
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Write everything as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Epochs of starts that are kept at most: some gigabytes of memory.
const MOST_ROWS: u64 = 10_000_000;

/// Carries out `iliad dev theory`.
pub(in crate::cli) fn run(args: &Args) -> CliResult {
    let settings = StudySettings {
        sizes: Sizes {
            actions: args.actions as usize,
            descriptions: args.descriptions as usize,
            starts: args.starts as usize,
        },
        epochs: args.epochs,
        seed: args.seed,
        samples: args.samples,
        inconsistent: args.inconsistent.clone(),
    };
    if args.epochs * args.starts > MOST_ROWS {
        return Err(CliError::Usage(format!(
            "--epochs times --starts is {}; every epoch of every start is kept, and {MOST_ROWS} are the most",
            args.epochs * args.starts
        )));
    }
    // Before the work: nobody waits for a picture that cannot be written.
    if let Some(path) = &args.plot {
        file::check(path)?;
    }
    let found = study(&settings);
    if let Some(path) = &args.plot {
        file::write(path, picture(&found).svg().as_bytes())?;
        note!("plot in {}", path.display());
    }
    if args.json {
        out!("{}", json::line(&found)?)?;
    } else {
        print(format_args!("{}", text(&found)))?;
    }
    let held = found.bound_held && found.potential_held && found.policy_bound_held;
    Ok(if held { Exit::Done } else { Exit::Failed })
}

/// The tables and sentences.
fn text(study: &Study) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    let s = &study.settings;
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "World of seed {}: {} starts, {} actions, {} descriptions. Consistent teacher, exact epochs.\n",
        s.seed, s.sizes.starts, s.sizes.actions, s.sizes.descriptions
    );
    let _ = writeln!(out, "{:>5} {:>8} {:>10} {:>12}", "start", "P*(s)", "sigma_min", "KL(P*||P1)");
    for (i, start) in study.starts.iter().enumerate() {
        let _ =
            writeln!(out, "{:>5} {:>8.3} {:>10.4} {:>12.4}", i + 1, start.probability, start.sigma_min, start.first_kl);
    }
    let sampled = if s.samples > 0 { format!(" {:>12}", format!("M={}", s.samples)) } else { String::new() };
    let _ = writeln!(
        out,
        "\n{:>7} {:>5} {:>11} {:>11} {:>8} {:>13} {:>13}{sampled}",
        "t", "start", "distance", "bound", "ratio", "policy error", "policy bound"
    );
    for row in study.chosen() {
        let sampled = row.sampled_distance.map(|d| format!(" {d:>12.6}")).unwrap_or_default();
        let _ = writeln!(
            out,
            "{:>7} {:>5} {:>11.6} {:>11.4} {:>8.5} {:>13.6} {:>13.4}{sampled}",
            row.t, row.start, row.distance, row.bound, row.ratio, row.policy_error, row.policy_bound
        );
    }
    let _ = writeln!(out, "\n{}", verdict(study));
    if !study.wrong.is_empty() {
        let _ = writeln!(out, "\nInconsistent teachers, after {} exact epochs:", s.epochs);
        let _ = writeln!(
            out,
            "{:<8} {:>6} {:>14} {:>9} {:>11} {:>13} {:>18}",
            "fault", "share", "inconsistency", "distance", "last epoch", "policy error", "with true marginal"
        );
        for w in &study.wrong {
            let _ = writeln!(
                out,
                "{:<8} {:>6} {:>14.4} {:>9.4} {:>11.4} {:>13.4} {:>18.4}",
                w.fault.name(),
                format!("{:.0}%", 100.0 * w.strength),
                w.inconsistency,
                w.distance,
                w.last_distance,
                w.policy_error,
                w.true_marginal_error
            );
        }
    }
    out
}

/// The sentences that say whether the bounds of the theorems held.
fn verdict(study: &Study) -> String {
    let how = format!("at every t from 1 to {} in every start ({} checks)", study.settings.epochs, study.checked);
    let bound = match (study.applies, study.bound_held) {
        (true, true) => format!("The bound held {how}."),
        (true, false) => "The bound did NOT hold: see the ratios above 1.".into(),
        (false, _) => "sigma_min is 0 in at least one start: the bound is infinite there and says nothing.".into(),
    };
    let held = |held: bool, what: &str| if held { format!("{what}: held.") } else { format!("{what}: did NOT hold.") };
    format!(
        "{bound}\n{}\n{}\n{}\nWith the true marginal (the paper's first algorithm) the policy is off by {} at once.",
        held(study.sharp_bound_held, "The same bound with KL(P*||P1) in place of ln|A|"),
        held(study.potential_held, "The fall of the potential that the lemma promises in each epoch"),
        held(study.policy_bound_held, "The policy's error within K_s/2 times the marginal's (smoothness of W)"),
        if study.true_marginal_error < 1e-12 { "nothing".into() } else { format!("{:.1e}", study.true_marginal_error) }
    )
}

/// A share between 0 and 1.
fn share(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write shares between 0 and 1, such as 0.1,0.3".into()),
    }
}
