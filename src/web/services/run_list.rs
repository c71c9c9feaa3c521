//! The list of runs: what is searched for, what is left out, and in which order the rest is shown.

use crate::run::RunState;
use crate::web::page::run_view::RunView;
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The filters and the order of the list, as the address says them.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Wanted {
    /// Words that must all occur in title, id, notes or tags.
    #[serde(default)]
    pub(crate) q: String,
    /// `learning`, `paused`, `ended` or `failed`; empty: any.
    #[serde(default)]
    pub(crate) state: String,
    /// Name of a family; empty: any.
    #[serde(default)]
    pub(crate) family: String,
    /// A tag; empty: any.
    #[serde(default)]
    pub(crate) tag: String,
    /// `newest`, `oldest`, `name`, `episodes`, `people` or `success`.
    #[serde(default)]
    pub(crate) sort: String,
    /// `yes`: archived runs, too.
    #[serde(default)]
    pub(crate) archived: String,
}

/// The states by which a list is filtered, with the words for them.
pub(crate) const STATES: [(&str, &str); 4] =
    [("learning", "Learning"), ("paused", "Paused"), ("ended", "Ended"), ("failed", "Stopped by an error")];

/// The orders of a list, with the words for them.
pub(crate) const ORDERS: [(&str, &str); 6] = [
    ("newest", "Newest first"),
    ("oldest", "Oldest first"),
    ("name", "By title"),
    ("episodes", "Most episodes first"),
    ("people", "Most descriptions by people first"),
    ("success", "Best validation success first"),
];

/// The state of a run as the list filters by it.
fn state(view: &RunView) -> &'static str {
    match &view.status.state {
        RunState::Failed { .. } => "failed",
        _ if view.ended() => "ended",
        RunState::Paused => "paused",
        _ => "learning",
    }
}

impl Wanted {
    /// Whether anything is asked for but the plain list.
    pub(crate) fn filters(&self) -> bool {
        [&self.q, &self.state, &self.family, &self.tag].into_iter().any(|field| !field.trim().is_empty())
    }

    /// Whether archived runs are shown, too.
    pub(crate) fn with_archived(&self) -> bool {
        self.archived == "yes"
    }

    fn takes(&self, view: &RunView) -> bool {
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        let label = &view.label;
        if label.archived_at.is_some() && !self.with_archived() {
            return false;
        }
        if !is(&self.state, state(view)) || !is(&self.family, &view.run.family) {
            return false;
        }
        if !self.tag.is_empty() && !label.tags.contains(&self.tag) {
            return false;
        }
        let text =
            format!("{} {} {} {} {}", view.title(), view.run.id, view.run.preset, label.notes, label.tags.join(" "));
        let text = text.to_lowercase();
        self.q.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }

    /// The runs that are asked for, in the order that is asked for. They come newest first.
    pub(crate) fn of(&self, mut views: Vec<RunView>) -> Vec<RunView> {
        views.retain(|view| self.takes(view));
        let success = |view: &RunView| view.status.best_validation.map_or(-1.0, |rate| rate.value);
        match self.sort.as_str() {
            "oldest" => views.reverse(),
            "name" => views.sort_by_cached_key(|view| view.title().to_lowercase()),
            "episodes" => views.sort_by_key(|view| Reverse(view.status.episodes)),
            "people" => views.sort_by_key(|view| Reverse(view.status.descriptions_human)),
            "success" => views.sort_by(|one, other| success(other).total_cmp(&success(one))),
            _ => {}
        }
        views
    }
}

/// The tags of runs, each once.
pub(crate) fn tags(views: &[RunView]) -> Vec<String> {
    views.iter().flat_map(|view| view.label.tags.iter().cloned()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The families of runs with their titles, each once.
pub(crate) fn families(views: &[RunView]) -> Vec<(&'static str, &'static str)> {
    let families = views.iter().map(|view| (view.family.name(), view.family.title()));
    families.collect::<BTreeSet<_>>().into_iter().collect()
}
