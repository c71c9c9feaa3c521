//! Parsers of numbers in arguments, with the sentences that refuse others.

use crate::config::run::LARGEST_SEED;

/// Most examples of an update, as in the configuration of runs.
const LARGEST_BATCH: u64 = 4096;

/// More of anything that is counted is a slip.
const LARGEST_COUNT: u64 = 1_000_000_000;

/// A seed.
pub fn seed(text: &str) -> Result<u64, String> {
    between(text, 0, LARGEST_SEED)
}

/// A count that fits into memory.
pub fn count(text: &str) -> Result<usize, String> {
    Ok(between(text, 0, LARGEST_COUNT)? as usize)
}

/// A count of updates or episodes.
pub fn whole(text: &str) -> Result<u64, String> {
    between(text, 0, LARGEST_COUNT)
}

/// Examples of an update.
pub fn batch(text: &str) -> Result<usize, String> {
    Ok(between(text, 1, LARGEST_BATCH)? as usize)
}

/// Seconds; 0 stands for no limit.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(seconds),
        _ => Err("write a number of seconds from 0 to 1000000000".into()),
    }
}

fn between(text: &str, least: u64, most: u64) -> Result<u64, String> {
    match text.trim().parse::<u64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("write a whole number from {least} to {most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_numbers_are_told_what_is_taken() {
        assert_eq!(seed(" 7 "), Ok(7));
        assert_eq!(seed("9007199254740991"), Ok(LARGEST_SEED));
        for bad in ["-1", "1.5", "1e3", "", "x", "9007199254740992", "99999999999999999999999"] {
            assert_eq!(seed(bad), Err("write a whole number from 0 to 9007199254740991".into()), "{bad}");
        }
        assert!(count("1000000001").is_err() && batch("0").is_err() && batch("4097").is_err());
        for bad in ["-1", "nan", "inf", "1e300", "soon"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
        assert_eq!(seconds("0.5"), Ok(0.5));
    }
}
