//! Whether work on the CPU is shared among threads. A part of a step takes microseconds; on a calm machine a helper takes
//! it up at once, but on a busy one it waits for the system to let the helper run, and the step waits with it. So one
//! thread does everything itself while other programs use the processors.
//!
//! The results are the same to the bit either way: what is shared are rows and blocks, never the order within a sum.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};
use std::time::Duration;

/// Between two looks at the machine.
const LOOK: Duration = Duration::from_millis(250);

/// How far the processors that this process can have may lie below its threads, before sharing ends and before it begins again.
const ENDS: f64 = 0.6;
const BEGINS: f64 = 0.4;

static SHARES: AtomicBool = AtomicBool::new(true);

/// Threads that work on the CPU may use (`RAYON_NUM_THREADS`, else the number of cores).
pub fn threads() -> usize {
    // Asking reads the system's description of every processor, which takes longer than a small product of matrices.
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(candle_core::utils::get_num_threads)
}

/// Threads to use now.
pub(crate) fn now() -> usize {
    if SHARES.load(Ordering::Relaxed) { threads() } else { 1 }
}

/// Fewest parts of a parallel loop that one thread takes at once: all of them while nothing is shared.
pub(crate) fn fewest() -> usize {
    if SHARES.load(Ordering::Relaxed) { 1 } else { usize::MAX }
}

/// Variables for Candle, to be set at the start of the program unless they are set: the number of threads, which it would
/// look up at every product, and none for loops over elements, whose helpers spin while they wait.
pub fn environment() -> [(&'static str, String); 2] {
    [("RAYON_NUM_THREADS", threads().to_string()), ("CANDLE_NUM_THREADS", "1".to_owned())]
}

/// Begins to watch how busy the machine is, once in the process.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(first) = Reading::take() else { return };
        let shared = gemm::get_threading_threshold();
        // Without it, work is shared as if the machine were calm.
        let _ = std::thread::Builder::new().name("machine watch".into()).spawn(move || {
            let mut last = first;
            loop {
                std::thread::sleep(LOOK);
                let Some(reading) = Reading::take() else { continue };
                if let Some(available) = reading.available_since(&last) {
                    let shares = decide(available, threads(), SHARES.load(Ordering::Relaxed));
                    SHARES.store(shares, Ordering::Relaxed);
                    // Candle's own products go by this.
                    gemm::set_threading_threshold(if shares { shared } else { usize::MAX });
                }
                last = reading;
            }
        });
    });
}

/// Whether to share from now on, with so many processors for this process.
fn decide(available: f64, threads: usize, shares: bool) -> bool {
    available >= threads as f64 - if shares { ENDS } else { BEGINS }
}

/// Ticks of the system's clock since its start.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    /// Time of all processors together.
    all: u64,
    /// The idle part of it.
    idle: u64,
    /// Processors.
    cores: u64,
    /// Time of all threads of this process.
    own: u64,
}

impl Reading {
    /// `None` where the system does not tell (it is told on Linux).
    fn take() -> Option<Reading> {
        let machine = std::fs::read_to_string("/proc/stat").ok()?;
        Reading::read(&machine, &std::fs::read_to_string("/proc/self/stat").ok()?)
    }

    fn read(machine: &str, own: &str) -> Option<Reading> {
        let mut lines = machine.lines();
        // user, nice, system, idle, waiting for disks, interrupts, soft ones, taken by the machine's host
        let numbers: Vec<u64> =
            lines.next()?.strip_prefix("cpu ")?.split_whitespace().flat_map(str::parse).take(8).collect();
        let cores = lines.take_while(|line| line.starts_with("cpu")).count() as u64;
        // The program's name may hold blanks and brackets; what follows it is fixed.
        let fields: Vec<&str> = own.rsplit_once(')')?.1.split_whitespace().collect();
        let own = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        let idle = numbers.get(3)? + numbers.get(4)?;
        (cores > 0).then_some(Reading { all: numbers.iter().sum(), idle, cores, own })
    }

    /// Processors that this process had or could have had since an earlier reading.
    fn available_since(&self, earlier: &Reading) -> Option<f64> {
        let elapsed = self.all.checked_sub(earlier.all)? as f64 / self.cores as f64;
        let had = self.idle.checked_sub(earlier.idle)? + self.own.checked_sub(earlier.own)?;
        (elapsed >= 1.0).then(|| had as f64 / elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(user: u64, idle: u64, own: u64) -> Reading {
        let machine = format!("cpu  {user} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 1\ncpu1 1 1\nintr 5\n");
        let own = format!("7 (a (name) of) S 1 2 3 4 5 6 7 8 9 10 {own} 0 0 0 20");
        Reading::read(&machine, &own).unwrap()
    }

    #[test]
    fn what_the_system_tells_is_read() {
        assert_eq!(reading(60, 40, 25), Reading { all: 100, idle: 40, cores: 2, own: 25 });
        assert_eq!(Reading::read("", ""), None);
        assert_eq!(Reading::read("cpu  1 2 3\n", "7 (x) S"), None);
    }

    #[test]
    fn others_end_the_sharing_and_their_end_brings_it_back() {
        let start = reading(0, 0, 0);
        // Alone on two processors, with work for one and a half.
        let alone = reading(150, 50, 150).available_since(&start).unwrap();
        assert!((alone - 2.0).abs() < 1e-9 && decide(alone, 2, true) && decide(alone, 2, false));
        // Beside two programs that compute all the time.
        let beside = reading(200, 0, 80).available_since(&start).unwrap();
        assert!((beside - 0.8).abs() < 1e-9 && !decide(beside, 2, true));
        // Many processors with a few busy ones.
        assert!(decide(15.5, 16, true) && !decide(12.0, 16, true));
        // Neither at every breath.
        assert!(decide(1.5, 2, true) && !decide(1.5, 2, false));
        assert!(start.available_since(&start).is_none(), "no time has passed");
    }
}
