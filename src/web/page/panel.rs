//! The parts of teachers' pages that depend on the medium in which people teach the run.

use crate::config::run::RatingScale;
use crate::protocol::Medium;
use crate::web::page::run_view::RunView;
use serde_json::{Value, json};

/// Examples, each with the reason why it is good or poor.
type Reasoned = Vec<(String, String)>;

/// The words and numbers of a page that depend on the run's medium.
pub(crate) struct Panel {
    /// The medium.
    pub(crate) medium: Medium,
    /// The scale on which people rate.
    pub(crate) scale: RatingScale,
}

impl Panel {
    /// The panel of a run.
    pub(crate) fn of(view: &RunView) -> Panel {
        Panel { medium: view.medium(), scale: view.rating_scale() }
    }

    /// Whether people write sentences.
    pub(crate) fn describes(&self) -> bool {
        self.medium == Medium::Description
    }

    /// Whether people show how it is done.
    pub(crate) fn demonstrates(&self) -> bool {
        self.medium == Medium::Demonstration
    }

    /// Whether people rate.
    pub(crate) fn rates(&self) -> bool {
        self.medium == Medium::Rating
    }

    /// The page's heading.
    pub(crate) fn title(&self) -> &'static str {
        match self.medium {
            Medium::Description => "Describe what the agent did",
            Medium::Demonstration => "Show what the agent should have done",
            Medium::Rating => "Rate what the agent did",
        }
    }

    /// The button of who cannot answer.
    pub(crate) fn cannot(&self) -> &'static str {
        match self.medium {
            Medium::Description => "I can\u{2019}t describe this",
            Medium::Demonstration => "I can\u{2019}t show this",
            Medium::Rating => "I can\u{2019}t tell",
        }
    }

    /// Whether they do so with stars.
    pub(crate) fn stars(&self) -> bool {
        self.scale == RatingScale::Stars
    }

    /// Each rating with what its button says: the number of stars, or yes and no.
    pub(crate) fn ratings(&self) -> Vec<(f64, String)> {
        let steps = self.scale.steps().iter();
        if self.stars() {
            return steps.enumerate().map(|(i, step)| (*step, (i + 1).to_string())).collect();
        }
        steps.rev().map(|step| (*step, if *step > 0.0 { "Yes".to_owned() } else { "No".to_owned() })).collect()
    }

    /// Data for the page's script.
    pub(crate) fn data(&self) -> Value {
        json!({ "medium": self.medium, "stars": self.stars() })
    }

    /// The headings of the guide and what is said of the example: title, lead, the heading of the example.
    pub(crate) fn guide(&self) -> (&'static str, &'static str, &'static str) {
        match self.medium {
            Medium::Description => (
                "Say what the agent did",
                "You will see what the agent just did. Describe it in one sentence, so that somebody who reads only your sentence could do the same.",
                "An example: the agent did this",
            ),
            Medium::Demonstration => (
                "Show how it is done",
                "You will see what the agent is asked to do, and where it starts. Show what it should do; the agent learns to do the same.",
                "An example of what the agent should do when it is asked that",
            ),
            Medium::Rating => (
                "Say how well the agent did",
                "You will see what the agent was asked to do, and what it did. Say whether that is what was asked.",
                "An example: the agent did this, which is just what was asked",
            ),
        }
    }

    /// Advice for teachers in a medium without sentences: each with its reason.
    pub(crate) fn advice(&self) -> (Reasoned, Reasoned) {
        let of = |list: &[(&str, &str)]| {
            list.iter().map(|(what, why)| ((*what).to_owned(), (*why).to_owned())).collect::<Vec<_>>()
        };
        match self.medium {
            Medium::Description => (Vec::new(), Vec::new()),
            Medium::Demonstration => (
                of(&[
                    ("Show all of it", "The agent learns from the whole, and what you leave as it is counts as right."),
                    (
                        "Do what the request says, also if it is odd",
                        "The agent has to learn what people mean by such words.",
                    ),
                ]),
                of(&[(
                    "Guessing what is meant",
                    "A wrong example does harm for a long time. Say that you can\u{2019}t show it, or skip it.",
                )]),
            ),
            Medium::Rating => (
                of(&[
                    ("Look at everything that was done", "One detail decides whether it is what was asked."),
                    if self.stars() {
                        ("Give stars in between for what is partly right", "The agent then knows which way to go.")
                    } else {
                        (
                            "Say no to what is only partly right",
                            "Yes means that nothing is missing and nothing is wrong.",
                        )
                    },
                ]),
                of(&[("Rating the effort", "Only what came out counts, however hard the request is.")]),
            ),
        }
    }
}
