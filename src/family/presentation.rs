//! How a family shows executions to people: names, wording and HTML.

use super::pages::FamilyPages;
use serde::{Deserialize, Serialize};

/// For whom an execution is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Large and calm: the execution alone.
    Teacher,
    /// Small, for a table row or the try-the-agent box.
    Researcher,
}

/// Whether an execution changed anything, as far as its family can tell from the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The family cannot tell.
    Unknown,
    /// Nothing is other than it was.
    Nothing,
    /// Something changed; the sentence says what, for a person who said that nothing did.
    Something(String),
}

/// What the first visit shows: one execution with good and poor descriptions of it, and why.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Guide {
    /// A view as [`World::view`] makes it.
    pub view: serde_json::Value,
    /// Good descriptions, each with the reason.
    pub good: Vec<(String, String)>,
    /// Poor descriptions, each with the reason.
    pub poor: Vec<(String, String)>,
}

/// A task family as the registry, the web pages and the command line see it (object safe).
pub trait Family: Send + Sync {
    /// Stable name used in configurations, addresses and exports: `regex`, `nav`.
    fn name(&self) -> &'static str;

    /// What people call it: "Word editing".
    fn title(&self) -> &'static str;

    /// One sentence above the box: what to write.
    fn teacher_prompt(&self) -> &'static str;

    /// An example of a description, shown as the empty box's hint.
    fn placeholder(&self) -> &'static str;

    /// The first-visit example.
    fn guide(&self) -> Guide;

    /// HTML of an execution from its view, made by the family's own template (escaped).
    fn render(&self, view: &serde_json::Value, audience: Audience) -> Result<String, RenderError>;

    /// The same execution as plain text, for exports, screen readers and tests.
    fn render_text(&self, view: &serde_json::Value) -> Result<String, RenderError>;

    /// Whether the execution in the view changed anything. A person who says "nothing changed" of one that did is asked
    /// before it is stored.
    fn change(&self, _view: &serde_json::Value) -> Change {
        Change::Unknown
    }

    /// What the button says with which a person answers that the execution did nothing.
    fn nothing_changed(&self) -> &'static str {
        "Nothing changed"
    }

    /// HTML of the start fields of the try-the-agent box. Every field's `name` becomes a key of the JSON object that
    /// [`crate::run::Command::Try`] carries as `start`.
    fn render_try_fields(&self) -> Result<String, RenderError>;

    /// Address under `/static/` of a JavaScript module that the pages load for this family, if it has one.
    fn script(&self) -> Option<&'static str> {
        None
    }

    /// Addresses of the modules that [`Family::script`] will ask for to draw an execution, so that pages which show one at once can
    /// have them fetched together with it.
    fn modules(&self) -> &'static [&'static str] {
        &[]
    }

    /// Pages and resources of the family's own, which the web application serves below the family's name.
    fn pages(&self) -> Option<FamilyPages> {
        None
    }
}

/// A view that the family's template cannot show (stored by another version, or damaged).
#[derive(Debug, thiserror::Error)]
#[error("this {family} execution cannot be shown: {reason}")]
pub struct RenderError {
    /// Family name.
    pub family: &'static str,
    /// Cause, for the log.
    pub reason: String,
}
