//! The page on which researchers choose what of the data set they download, and in what form.

use crate::export::filters::FilterWords;
use crate::export::forms;
use crate::family::dataset::TrainingForm;
use crate::registry::Registry;
use crate::run::Source;
use crate::store::{Filter, Run, Study};
use crate::web::error::Result;
use crate::web::extractors::access::Steering;
use crate::web::extractors::input::Query;
use crate::web::format;
use crate::web::handlers::export::{Wanted, filter_of, form_ending};
use crate::web::page::{self, Page};
use crate::web::state::AppState;
use askama::Template;
use axum::extract::State;
use axum::response::Response;

/// A part of the data set that is downloaded with one click.
struct Part {
    name: &'static str,
    about: &'static str,
    rows: u64,
    query: String,
}

#[derive(Template)]
#[template(path = "export.html")]
struct ExportPage {
    page: Page,
    words: FilterWords,
    wanted: Wanted,
    /// Rows that the filter leaves, or a sentence that says what to change in it.
    rows: Result<u64, String>,
    parts: Vec<Part>,
    runs: Vec<Run>,
    studies: Vec<Study>,
    forms: Vec<TrainingForm>,
}

impl ExportPage {
    fn file_of(&self, form: &TrainingForm) -> String {
        format!("{}.{}", form.name, form_ending(form))
    }

    fn run(&self) -> Option<&Run> {
        self.runs.iter().find(|run| run.id == self.words.run.as_str())
    }

    fn study(&self) -> Option<&Study> {
        self.studies.iter().find(|study| study.id == self.words.study.as_str())
    }

    fn count(&self) -> String {
        match &self.rows {
            Ok(rows) => format::counted(rows, "row"),
            Err(_) => "–".to_owned(),
        }
    }
}

/// `GET /export`.
pub(crate) async fn page(
    _: Steering,
    page: Page,
    State(state): State<AppState>,
    Query(wanted): Query<Wanted>,
) -> Result<Response> {
    let words = wanted.filter.clone();
    let named = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let whole = Filter {
        run: named(&words.run).map(Into::into),
        study: named(&words.study).map(Into::into),
        ..Filter::default()
    };
    let of = format!("run={}&study={}", format::encode(&words.run), format::encode(&words.study));
    let people = Filter { source: Some(Source::Human), ..whole.clone() };
    let valid = Filter { valid: Some(true), ..people.clone() };
    let mut parts = Vec::new();
    for (name, about, filter, query) in [
        ("All", "people's and simulated ones, corrected and skipped ones, too", &whole, of.clone()),
        ("By people", "all that people answered", &people, format!("{of}&source=human")),
        ("By people, valid", "descriptions that stand", &valid, format!("{of}&source=human&valid=1")),
    ] {
        parts.push(Part { name, about, rows: state.store.export_extent(filter).await?.rows, query });
    }
    let rows = match filter_of(&words) {
        Ok(filter) => Ok(state.store.export_extent(&filter).await?.rows),
        Err(error) => Err(error.problem().detail),
    };
    let (runs, studies) = (state.store.runs().await?, state.store.studies().await?);
    let forms = forms::all(Registry::new(state.families));
    Ok(page::html(&ExportPage { page, words, wanted, rows, parts, runs, studies, forms }))
}
