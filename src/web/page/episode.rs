//! An episode as pages and JSON addresses show it.

use crate::family::Audience;
use crate::registry::AnyFamily;
use crate::run::EpisodeRow;
use serde::Serialize;

/// An episode with its drawing.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Episode)]
pub(crate) struct EpisodeJson {
    #[serde(flatten)]
    row: EpisodeRow,
    html: String,
}

impl EpisodeJson {
    /// Draws the episode; one that cannot be drawn keeps its plain line.
    pub(crate) fn of(family: &dyn AnyFamily, row: EpisodeRow) -> EpisodeJson {
        let html = family.render(&row.view, Audience::Researcher).unwrap_or_else(|error| {
            tracing::debug!(%error, episode = row.episode, "an episode cannot be drawn");
            String::new()
        });
        EpisodeJson { row, html }
    }
}
