//! Filters in words, as addresses, forms and commands have them.

use crate::run::Source;
use crate::store::{AnswerKind, Filter, ReviewFilter};
use serde::Deserialize;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{Date, Duration, OffsetDateTime};

/// A filter before it is read. What is missing or empty leaves nothing out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, utoipa::IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct FilterWords {
    /// Name of a run.
    pub run: String,
    /// Name of a study.
    pub study: String,
    /// `human` or `simulated`.
    pub source: String,
    /// `described`, `nothing_changed`, `cannot_describe` or `skipped`.
    pub kind: String,
    /// `1`: only answers that stand.
    pub standing: String,
    /// First day, or moment.
    pub from: String,
    /// Last day, or the moment after the last.
    pub to: String,
    /// `1` or `0`: only valid ones, or only others.
    pub valid: String,
    /// `accepted`, `rejected` or `open`.
    pub review: String,
}

/// A moment: of a day its beginning, or its end where `end` is set.
fn moment(text: &str, end: bool) -> Result<OffsetDateTime, String> {
    if let Ok(day) = Date::parse(text, format_description!("[year]-[month]-[day]")) {
        let begin = day.midnight().assume_utc();
        return Ok(if end { begin.saturating_add(Duration::DAY) } else { begin });
    }
    OffsetDateTime::parse(text, &Rfc3339)
        .map_err(|_| format!("“{text}” is no day; write it as 2026-01-31, or a moment as 2026-01-31T12:00:00Z."))
}

fn one_of<T: Copy>(what: &str, text: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Result<Option<T>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    match all.iter().find(|one| name(**one) == text) {
        Some(one) => Ok(Some(*one)),
        None => {
            let names: Vec<&str> = all.iter().map(|one| name(*one)).collect();
            Err(format!("The {what} is one of {}, not “{text}”.", names.join(", ")))
        }
    }
}

fn yes_or_no(what: &str, text: &str) -> Result<Option<bool>, String> {
    match text {
        "" => Ok(None),
        "1" | "true" | "on" | "yes" => Ok(Some(true)),
        "0" | "false" | "no" => Ok(Some(false)),
        other => Err(format!("“{what}” is 1 or 0, not “{other}”.")),
    }
}

impl FilterWords {
    /// The filter.
    ///
    /// # Errors
    /// A sentence that says what to change.
    pub fn read(&self) -> Result<Filter, String> {
        let named = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        Ok(Filter {
            run: named(&self.run).map(Into::into),
            study: named(&self.study).map(Into::into),
            source: one_of("source", &self.source, &Source::ALL, Source::as_str)?,
            kind: one_of("kind", &self.kind, &AnswerKind::ALL, AnswerKind::as_str)?,
            standing: yes_or_no("standing", &self.standing)?.unwrap_or_default(),
            from: named(&self.from).map(|text| moment(&text, false)).transpose()?,
            before: named(&self.to).map(|text| moment(&text, true)).transpose()?,
            valid: yes_or_no("valid", &self.valid)?,
            review: one_of("review state", &self.review, &ReviewFilter::ALL, ReviewFilter::as_str)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_a_filter_or_a_sentence() {
        assert_eq!(FilterWords::default().read(), Ok(Filter::default()));
        let day = FilterWords { from: "2026-01-31".into(), to: "2026-01-31".into(), ..FilterWords::default() };
        let filter = day.read().unwrap();
        assert_eq!(filter.before.unwrap() - filter.from.unwrap(), Duration::DAY);
        for (words, part) in [
            (FilterWords { source: "both".into(), ..FilterWords::default() }, "one of human, simulated"),
            (FilterWords { from: "yesterday".into(), ..FilterWords::default() }, "as 2026-01-31"),
            (FilterWords { valid: "perhaps".into(), ..FilterWords::default() }, "is 1 or 0"),
        ] {
            let told = words.read().unwrap_err();
            assert!(told.contains(part), "{told}");
        }
    }
}
