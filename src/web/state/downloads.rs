//! The progress of downloads, for the page that asked for them: a browser shows the bytes of a stream, and not how many are to come.

use crate::run;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Downloads that are remembered at most; the oldest goes first.
const MOST: usize = 200;

/// Characters of a ticket at most.
const TICKET_LIMIT: usize = 64;

/// The stage of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    /// It goes on.
    Going,
    /// All of it was handed over.
    Whole,
    /// It broke off, or nobody read on.
    Broken,
}

/// A download.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Download {
    /// Rows that are written.
    pub(crate) done: u64,
    /// Rows in all.
    pub(crate) rows: u64,
    /// Its stage.
    pub(crate) stage: Stage,
    began: Instant,
}

impl Download {
    /// Seconds until it is whole, at the pace so far; none before there is a pace.
    pub(crate) fn seconds_left(&self) -> Option<f64> {
        run::seconds_left(self.began.elapsed(), self.done, self.rows)
    }
}

/// The downloads of the pages of this server, by tickets that the pages draw.
#[derive(Clone, Default)]
pub struct Downloads(Arc<Mutex<BTreeMap<String, Download>>>);

impl Downloads {
    /// Begins to follow a download; nothing is followed without a ticket.
    pub(crate) fn follow(&self, ticket: &str, rows: u64) -> Option<Following> {
        if ticket.is_empty() || ticket.len() > TICKET_LIMIT {
            return None;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            let oldest = all.iter().min_by_key(|(_, one)| one.began).map(|(ticket, _)| ticket.clone());
            oldest.map(|ticket| all.remove(&ticket));
        }
        let begun = Download { done: 0, rows, stage: Stage::Going, began: Instant::now() };
        all.insert(ticket.to_owned(), begun);
        Some(Following { downloads: self.clone(), ticket: ticket.to_owned(), whole: false })
    }

    /// The download of a ticket.
    pub(crate) fn get(&self, ticket: &str) -> Option<Download> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(ticket).copied()
    }

    fn change(&self, ticket: &str, change: impl FnOnce(&mut Download)) {
        if let Some(one) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(ticket) {
            change(one);
        }
    }
}

/// A download that is being followed. Who drops it before it is whole has broken it off.
pub(crate) struct Following {
    downloads: Downloads,
    ticket: String,
    whole: bool,
}

impl Following {
    /// So many rows are written.
    pub(crate) fn done(&self, done: u64) {
        self.downloads.change(&self.ticket, |one| one.done = done);
    }

    /// All of it was handed over.
    pub(crate) fn whole(mut self) {
        self.whole = true;
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let stage = if self.whole { Stage::Whole } else { Stage::Broken };
        self.downloads.change(&self.ticket, |one| one.stage = stage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_that_is_dropped_has_broken_off() {
        let downloads = Downloads::default();
        assert!(downloads.follow("", 4).is_none() && downloads.get("one").is_none());
        let one = downloads.follow("one", 4).unwrap();
        assert_eq!(downloads.get("one").unwrap().seconds_left(), None);
        one.done(4);
        let seen = downloads.get("one").unwrap();
        assert_eq!((seen.done, seen.stage, seen.seconds_left()), (4, Stage::Going, Some(0.0)));
        drop(one);
        assert_eq!(downloads.get("one").unwrap().stage, Stage::Broken);
        downloads.follow("two", 1).unwrap().whole();
        assert_eq!(downloads.get("two").unwrap().stage, Stage::Whole);
        for n in 0..MOST {
            downloads.follow(&format!("{n:03}"), 1);
        }
        assert!(downloads.get("one").is_none(), "old ones are forgotten");
    }
}
