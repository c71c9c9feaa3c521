//! The progress of work that a page waits for: a download, whose whole length a browser does not know, and the reading and storing of what
//! was sent.

use crate::run;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Pieces of work that are remembered at most; the oldest goes first.
const MOST: usize = 200;

/// Characters of a ticket at most.
const TICKET_LIMIT: usize = 64;

/// Time after which a step has a pace to judge by.
const JUDGED_AFTER: Duration = Duration::from_millis(200);

/// The stage of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    /// It goes on.
    Going,
    /// All of it is done.
    Whole,
    /// It broke off, or nobody waited for it.
    Broken,
}

/// The things that a step counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    /// Rows of a table.
    Rows,
    /// Bytes of files.
    Bytes,
}

/// A step of some work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Step {
    /// The step in words that a page shows: "Reading the file".
    pub(crate) step: &'static str,
    /// The things that are counted.
    pub(crate) unit: Unit,
    /// How many of them there are; 0 where nobody knows.
    pub(crate) all: u64,
}

/// A piece of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// The step that is under way, or was the last.
    pub(crate) step: Step,
    /// How much of the step is done.
    pub(crate) done: u64,
    /// Its stage.
    pub(crate) stage: Stage,
    asked: Instant,
    began: Instant,
}

impl Work {
    /// Seconds until the step ends, at its pace so far; none before there is a pace.
    pub(crate) fn seconds_left(&self) -> Option<f64> {
        let spent = self.began.elapsed();
        let known = self.step.all > 0 && spent >= JUDGED_AFTER;
        known.then(|| run::seconds_left(spent, self.done, self.step.all)).flatten()
    }
}

/// The work that pages of this server wait for, by tickets that the pages draw.
#[derive(Clone, Default)]
pub struct Works(Arc<Mutex<BTreeMap<String, Work>>>);

impl Works {
    /// Begins to follow a piece of work with its first step. Without a ticket nobody asks, and nothing is kept.
    pub(crate) fn follow(&self, ticket: &str, step: Step) -> Following {
        let kept = !ticket.is_empty() && ticket.len() <= TICKET_LIMIT;
        if kept {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() >= MOST {
                let oldest = all.iter().min_by_key(|(_, one)| one.asked).map(|(ticket, _)| ticket.clone());
                oldest.map(|ticket| all.remove(&ticket));
            }
            let now = Instant::now();
            all.insert(ticket.to_owned(), Work { step, done: 0, stage: Stage::Going, asked: now, began: now });
        }
        Following { works: self.clone(), ticket: kept.then(|| ticket.to_owned()), whole: AtomicBool::new(false) }
    }

    /// The work of a ticket.
    pub(crate) fn get(&self, ticket: &str) -> Option<Work> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(ticket).copied()
    }
}

/// A piece of work that is being followed. Who drops it before it is whole has broken it off.
pub(crate) struct Following {
    works: Works,
    ticket: Option<String>,
    whole: AtomicBool,
}

impl Following {
    fn change(&self, change: impl FnOnce(&mut Work)) {
        let Some(ticket) = &self.ticket else { return };
        if let Some(one) = self.works.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(ticket) {
            change(one);
        }
    }

    /// Another step begins.
    pub(crate) fn step(&self, step: Step) {
        self.change(|one| *one = Work { step, done: 0, began: Instant::now(), ..*one });
    }

    /// So much of the step is done.
    pub(crate) fn done(&self, done: u64) {
        self.change(|one| one.done = done);
    }

    /// So much of all is done, where a step learns on its way how much there is.
    pub(crate) fn done_of(&self, done: u64, all: u64) {
        self.change(|one| (one.done, one.step.all) = (done, all));
    }

    /// All of it is done.
    pub(crate) fn whole(&self) {
        self.whole.store(true, Ordering::Relaxed);
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let stage = if self.whole.load(Ordering::Relaxed) { Stage::Whole } else { Stage::Broken };
        self.change(|one| one.stage = stage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: Step = Step { step: "Storing the rows", unit: Unit::Rows, all: 4 };

    #[test]
    fn work_that_is_dropped_has_broken_off() {
        let works = Works::default();
        works.follow("", ROWS).done(1);
        assert!(works.get("").is_none() && works.get("one").is_none());
        let one = works.follow("one", ROWS);
        assert_eq!(works.get("one").unwrap().seconds_left(), None);
        one.done(3);
        one.change(|work| work.began -= Duration::from_secs(6));
        let seen = works.get("one").unwrap();
        assert_eq!((seen.done, seen.stage), (3, Stage::Going));
        assert!((1.9..2.5).contains(&seen.seconds_left().unwrap()), "{seen:?}");
        // The next step has a pace of its own.
        one.step(Step { step: "Reading the file", unit: Unit::Bytes, all: 0 });
        one.done(8);
        assert_eq!(works.get("one").unwrap().seconds_left(), None);
        one.done_of(8, 9);
        let seen = works.get("one").unwrap();
        assert_eq!((seen.step.step, seen.done, seen.step.all), ("Reading the file", 8, 9));
        drop(one);
        assert_eq!(works.get("one").unwrap().stage, Stage::Broken);
        works.follow("two", ROWS).whole();
        assert_eq!(works.get("two").unwrap().stage, Stage::Whole);
        for n in 0..MOST {
            works.follow(&format!("{n:03}"), ROWS);
        }
        assert!(works.get("one").is_none(), "old ones are forgotten");
    }
}
