//! The runs of a grid beside each other: as threads or as processes, a given number of them or as many as pay.

use super::growth::{Gain, Growth, Progress, Window};
use super::process_sharing::{self, ProcessSharing};
use super::{Cell, Isolation, Jobs, Listener, News, Plan, card_memory, complete, one_run, worker};
use crate::run::{Event, RunState};
use crate::trainer::FinalReport;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Makes the command of the process that carries a run out.
pub type Worker<'a> = dyn Fn(&Cell) -> anyhow::Result<Command> + Sync + 'a;

/// How a grid ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Whether all runs are complete.
    pub complete: bool,
    /// The pace of the runs beside each other against that of one alone, where it was measured.
    pub gain: Option<Gain>,
    /// How they were kept apart, in words.
    pub kept_apart: &'static str,
}

/// How runs are kept apart on this machine.
enum Apart<'a> {
    Threads,
    Processes { worker: &'a Worker<'a>, sharing: Option<ProcessSharing>, threads: Option<usize> },
}

impl Apart<'_> {
    fn words(&self) -> &'static str {
        match self {
            Apart::Threads => "threads of one process",
            Apart::Processes { sharing: Some(_), .. } => "processes that share the card (MPS)",
            Apart::Processes { .. } if process_sharing::is_on() => "processes that share the card (MPS)",
            Apart::Processes { .. } => "processes",
        }
    }
}

/// Carries the runs out beside each other until all are complete, `stop` is set or the time is up.
///
/// # Errors
/// When a run failed (after all others have ended), or a folder holds a run with other settings.
pub fn carry_out(
    cells: &[Cell],
    plan: &Plan,
    worker: &Worker<'_>,
    stop: &AtomicBool,
    listener: Arc<Listener>,
) -> anyhow::Result<Outcome> {
    let begun = Instant::now();
    let over = || stop.load(Ordering::Relaxed) || (plan.seconds > 0.0 && begun.elapsed().as_secs_f64() >= plan.seconds);
    // Before anything is trained, so that a slip is noticed at once.
    let mut open = Vec::new();
    for cell in cells {
        if complete(cell)? {
            listener(cell, News::Already);
        } else {
            open.push(cell);
        }
    }
    let on_gpu = crate::nn::device::is_gpu(&plan.device);
    let most = match plan.jobs {
        Jobs::Fixed(jobs) => jobs,
        Jobs::AsManyAsPay if on_gpu => std::thread::available_parallelism().map_or(1, usize::from),
        // The threads of one run have all processors in use.
        Jobs::AsManyAsPay => 1,
    };
    let most = most.clamp(1, open.len().max(1));
    let apart = keep_apart(plan, worker, on_gpu, most, &listener, &open);
    let kept_apart = apart.words();
    let state = Arc::new(State::default());
    let grid = Grid { plan, open, apart, listener: watched(listener, state.clone()), over: &over, state };
    let growth = match plan.jobs {
        Jobs::Fixed(_) => None,
        Jobs::AsManyAsPay => Some(Growth::new(most)),
    };
    let gain = grid.carry_out(most, growth);
    let failures = grid.state.failures.lock().unwrap_or_else(PoisonError::into_inner);
    if !failures.is_empty() {
        anyhow::bail!("{} of {} runs failed: {}", failures.len(), cells.len(), failures.join("; "))
    }
    Ok(Outcome { complete: !grid.state.stopped.load(Ordering::Relaxed), gain, kept_apart })
}

/// A listener that also notes how far each run is.
fn watched(listener: Arc<Listener>, state: Arc<State>) -> Arc<Listener> {
    Arc::new(move |cell, news| {
        if let News::Event(Event::Status(status)) = &news
            && matches!(status.state, RunState::Running)
        {
            state.note(cell, |seen| {
                seen.since.get_or_insert(status.episodes);
                seen.episodes = status.episodes;
            });
        }
        listener(cell, news);
    })
}

/// Decides between threads and processes, and starts what processes need.
fn keep_apart<'a>(
    plan: &Plan,
    worker: &'a Worker<'a>,
    on_gpu: bool,
    most: usize,
    listener: &Arc<Listener>,
    open: &[&Cell],
) -> Apart<'a> {
    let processes = |sharing| {
        // Those of all processes together are as many as the machine has processors.
        let threads = std::thread::available_parallelism().map_or(1, |n| (n.get() / most).max(1));
        let threads = std::env::var_os("RAYON_NUM_THREADS").is_none().then_some(threads);
        Apart::Processes { worker, sharing, threads }
    };
    let (Some(first), true) = (open.first(), most > 1 && plan.isolation != Isolation::Threads) else {
        return match plan.isolation {
            Isolation::Processes => processes(None),
            Isolation::Auto | Isolation::Threads => Apart::Threads,
        };
    };
    if !on_gpu {
        return if plan.isolation == Isolation::Processes { processes(None) } else { Apart::Threads };
    }
    if process_sharing::is_on() {
        return processes(None);
    }
    match ProcessSharing::start(Path::new(process_sharing::PROGRAM)) {
        Ok(sharing) => processes(Some(sharing)),
        Err(why) => {
            let without =
                if plan.isolation == Isolation::Processes { "processes take turns" } else { "runs are threads" };
            let message = format!("The driver's process sharing cannot be started, so {without} ({why})");
            listener(first, News::Event(&Event::Log { message }));
            if plan.isolation == Isolation::Processes { processes(None) } else { Apart::Threads }
        }
    }
}

/// The state that the threads which see to runs share.
#[derive(Default)]
struct State {
    next: AtomicUsize,
    wanted: AtomicUsize,
    alive: AtomicUsize,
    stopped: AtomicBool,
    failures: Mutex<Vec<String>>,
    /// The progress of the runs, by name. Runs that have ended stay, with their episodes.
    seen: Mutex<HashMap<String, Seen>>,
}

/// The progress of a run.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Its episodes when it began to train here.
    since: Option<u64>,
    episodes: u64,
    ended: bool,
}

impl State {
    fn progress(&self) -> Progress {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let made = |s: &Seen| s.since.map_or(0, |before| s.episodes.saturating_sub(before));
        Progress {
            episodes: seen.values().map(made).sum(),
            training: seen.values().filter(|s| !s.ended && s.since.is_some()).count(),
            ended: seen.values().filter(|s| s.ended).count(),
        }
    }

    fn note(&self, cell: &Cell, change: impl FnOnce(&mut Seen)) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        change(seen.entry(cell.name.clone()).or_default());
    }
}

struct Grid<'a> {
    plan: &'a Plan,
    open: Vec<&'a Cell>,
    apart: Apart<'a>,
    listener: Arc<Listener>,
    over: &'a (dyn Fn() -> bool + Sync),
    state: Arc<State>,
}

impl Grid<'_> {
    fn carry_out(&self, most: usize, mut growth: Option<Growth>) -> Option<Gain> {
        let state = &self.state;
        state.wanted.store(growth.as_ref().map_or(most, Growth::wanted), Ordering::Relaxed);
        std::thread::scope(|scope| {
            let start = |wanted: usize| {
                while state.alive.load(Ordering::Relaxed) < wanted {
                    state.alive.fetch_add(1, Ordering::Relaxed);
                    scope.spawn(|| self.one_after_the_other());
                }
            };
            start(state.wanted.load(Ordering::Relaxed));
            let mut window = Window::new();
            let mut memory_is_known = false;
            while let Some(growth) = growth.as_mut().filter(|growth| !growth.is_over())
                && state.alive.load(Ordering::Relaxed) > 0
            {
                std::thread::sleep(Duration::from_millis(250));
                // Towards the end there may be fewer runs than are wanted.
                let runs = growth.wanted().min(state.alive.load(Ordering::Relaxed)).max(1);
                let progress = state.progress();
                let reading = window.note(Instant::now(), progress, runs);
                // The first run takes more memory the longer it trains, but may be through before its count is.
                let begins = !memory_is_known && progress.training > 0;
                if growth.wanted() == 1 && (begins || reading.is_some()) {
                    memory_is_known = true;
                    if let Some((used, total)) = card_memory::read(&self.plan.device) {
                        growth.limit(card_memory::runs(used, total));
                    }
                }
                if let Some((runs, per_second)) = reading {
                    growth.read(runs, per_second);
                    state.wanted.store(growth.wanted(), Ordering::Relaxed);
                    if self.next_is_there() {
                        start(growth.wanted());
                    }
                }
            }
        });
        growth.as_ref().and_then(Growth::gain)
    }

    fn next_is_there(&self) -> bool {
        self.state.next.load(Ordering::Relaxed) < self.open.len() && !(self.over)()
    }

    /// Carries runs out until there are none, or more of them are under way than are wanted.
    fn one_after_the_other(&self) {
        let state = &self.state;
        loop {
            let wanted = state.wanted.load(Ordering::Relaxed);
            let one_less = |alive: usize| (alive > wanted).then(|| alive - 1);
            if state.alive.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
                return;
            }
            let Some(cell) = self.open.get(state.next.fetch_add(1, Ordering::Relaxed)) else { break };
            if (self.over)() {
                state.stopped.store(true, Ordering::Relaxed);
                break;
            }
            (self.listener)(cell, News::Begins);
            let ended = self.one(cell);
            state.note(cell, |seen| seen.ended = true);
            match ended {
                Ok(Some(report)) => (self.listener)(cell, News::Complete(&report)),
                Ok(None) => {
                    state.stopped.store(true, Ordering::Relaxed);
                    (self.listener)(cell, News::Stopped);
                }
                Err(error) => {
                    (self.listener)(cell, News::Failed(&error));
                    let mut failures = state.failures.lock().unwrap_or_else(PoisonError::into_inner);
                    failures.push(format!("{}: {error:#}", cell.name));
                }
            }
        }
        state.alive.fetch_sub(1, Ordering::Relaxed);
    }

    fn one(&self, cell: &Cell) -> anyhow::Result<Option<FinalReport>> {
        match &self.apart {
            Apart::Threads => one_run::carry_out(cell, self.plan, self.over, &self.listener),
            Apart::Processes { worker, sharing, threads } => {
                let mut command = worker(cell)?;
                command.envs(threads.map(|n| ("RAYON_NUM_THREADS", n.to_string())));
                if let Some(sharing) = sharing {
                    sharing.share(&mut command);
                }
                worker::carry_out(cell, command, self.over, &*self.listener)
            }
        }
    }
}
