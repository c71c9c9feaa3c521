//! Estimates how many runs a card's memory holds, by the memory that the first of them takes.

use std::process::Command;

/// Share of the memory that is left alone.
const RESERVE: f64 = 0.1;

/// Megabytes of a card that are in use, and that it has; `None` where its tool is missing.
pub(super) fn read(device: &str) -> Option<(u64, u64)> {
    let number = device.strip_prefix("cuda:").unwrap_or("0");
    let output = Command::new("nvidia-smi")
        .args(["--query-gpu=memory.used,memory.total", "--format=csv,noheader,nounits", "-i", number])
        .output()
        .ok()?;
    parse(&String::from_utf8(output.stdout).ok()?)
}

fn parse(said: &str) -> Option<(u64, u64)> {
    let (used, total) = said.lines().next()?.split_once(',')?;
    Some((used.trim().parse().ok()?, total.trim().parse().ok()?))
}

/// Runs that fit, where one of them and everything else on the card use `used` of `total`.
pub(super) fn runs(used: u64, total: u64) -> usize {
    let free = (1.0 - RESERVE) * total as f64 - used as f64;
    1 + (free / used.max(1) as f64).max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_as_many_as_the_memory_holds() {
        assert_eq!(parse("1830, 143771\n"), Some((1830, 143_771)));
        assert_eq!((parse("[N/A], [N/A]\n"), parse("")), (None, None));
        assert_eq!(runs(2_000, 24_000), 10);
        assert_eq!((runs(20_000, 24_000), runs(23_000, 24_000)), (1, 1));
    }
}
