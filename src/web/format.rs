//! How numbers, times and addresses are written.

use crate::protocol::Rate;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The characters that stay as they are in [`encode`]: those that mean nothing in a query string.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// Percent-encodes everything that means something in a query string.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// A count with thousands separated: `12,345`.
pub(crate) fn count(number: &u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 description`, `2 descriptions`.
pub(crate) fn counted(number: &u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if *number == 1 { "" } else { "s" })
}

/// A text whose first letter stands within a sentence.
pub(crate) fn lower(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// A text with a capital first letter.
pub(crate) fn upper(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A rate as people read it, with the number of cases it rests on: `87.5% of 200`.
pub(crate) fn rate(rate: &Rate) -> String {
    format!("{:.1}% of {}", rate.value * 100.0, count(&rate.n))
}

/// Exact time for machines and for hovering.
pub(crate) fn exact(at: &OffsetDateTime) -> String {
    at.format(&Rfc3339).unwrap_or_default()
}

/// Time as people say it, seen from `now`.
pub(crate) fn ago_from(at: OffsetDateTime, now: OffsetDateTime) -> String {
    let seconds = (now - at).whole_seconds();
    let (number, unit) = match seconds {
        i64::MIN..60 => return "just now".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{number} {unit}{} ago", if number == 1 { "" } else { "s" })
}

/// Time as people say it.
pub(crate) fn ago(at: &OffsetDateTime) -> String {
    ago_from(*at, OffsetDateTime::now_utc())
}

/// Whether a time is over.
pub(crate) fn is_past(at: &OffsetDateTime) -> bool {
    *at <= OffsetDateTime::now_utc()
}

/// A day: "2031-05-02".
pub(crate) fn day(at: &OffsetDateTime) -> String {
    at.date().to_string()
}

/// A moment to the minute, in coordinated universal time: "2 May 2031 14:05".
pub(crate) fn moment(at: &OffsetDateTime) -> String {
    let layout = time::macros::format_description!("[day padding:none] [month repr:short] [year] [hour]:[minute]");
    at.to_offset(time::UtcOffset::UTC).format(&layout).unwrap_or_default()
}

/// A size in bytes for people, in steps of a thousand: "1.2 MB".
pub(crate) fn bytes(size: &u64) -> String {
    if *size < 1000 {
        return format!("{size} B");
    }
    let mut size = *size as f64;
    for unit in ["kB", "MB", "GB"] {
        size /= 1000.0;
        if size < 1000.0 || unit == "GB" {
            return if size < 10.0 { format!("{size:.1} {unit}") } else { format!("{size:.0} {unit}") };
        }
    }
    String::new()
}

/// A time in minutes for people: "12 minutes", "1 minute", "2 hours 5 minutes".
pub(crate) fn minutes(minutes: &f64) -> String {
    let all = minutes.round().max(1.0) as u64;
    match (all / 60, all % 60) {
        (0, rest) => counted(&rest, "minute"),
        (hours, 0) => counted(&hours, "hour"),
        (hours, rest) => format!("{} {}", counted(&hours, "hour"), counted(&rest, "minute")),
    }
}

/// An amount of money: "3.50 EUR".
pub(crate) fn money(amount: &f64, currency: &str) -> String {
    format!("{amount:.2} {currency}")
}

/// Time until `at` as people say it, seen from `now`.
pub(crate) fn ahead_from(at: OffsetDateTime, now: OffsetDateTime) -> String {
    let seconds = (at - now).whole_seconds();
    // Rounded up: what is made for seven days is not good for six a moment later.
    let (number, unit) = match seconds {
        i64::MIN..3_600 => ((seconds.max(0) as u64).div_ceil(60), "minute"),
        3_600..86_400 => ((seconds as u64).div_ceil(3_600), "hour"),
        _ => ((seconds as u64).div_ceil(86_400), "day"),
    };
    counted(&number, unit)
}

/// Time until `at` as people say it.
pub(crate) fn ahead(at: &OffsetDateTime) -> String {
    ahead_from(*at, OffsetDateTime::now_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        let written: Vec<String> = [0, 999, 1000, 1_234_567].iter().map(count).collect();
        assert_eq!(written, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(&1, "description"), "1 description");
    }

    #[test]
    fn times_are_relative() {
        let now = OffsetDateTime::from_unix_timestamp(1_000_000).unwrap();
        let said = |seconds| ago_from(now - time::Duration::seconds(seconds), now);
        assert_eq!(
            [said(-5), said(59), said(60), said(7_200), said(200_000)],
            ["just now", "just now", "1 minute ago", "2 hours ago", "2 days ago"]
        );
    }

    #[test]
    fn times_ahead_are_rounded_up() {
        let now = OffsetDateTime::from_unix_timestamp(1_000_000).unwrap();
        let said = |seconds| ahead_from(now + time::Duration::seconds(seconds), now);
        assert_eq!(
            [said(-5), said(1), said(3_600), said(7 * 86_400 - 3)],
            ["0 minutes", "1 minute", "1 hour", "7 days"]
        );
    }

    #[test]
    fn encoding_leaves_nothing_to_interpret() {
        assert_eq!(encode("/runs/a?x=1&y=é"), "/runs/a%3Fx%3D1%26y%3D%C3%A9");
    }
}
