//! Figures of the server for Prometheus: requests as they are counted here, and what the machine says of the process.

pub(crate) mod machine;

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Upper ends of the classes of latencies, in seconds.
const CLASSES: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Requests to one address with one method.
#[derive(Clone, Debug, Default)]
struct Latencies {
    by_status: BTreeMap<u16, u64>,
    /// Requests of each class, and last those that took longer.
    by_class: [u64; CLASSES.len() + 1],
    seconds: f64,
}

/// The requests of a server so far.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// By address as it is routed, and method.
    requests: Mutex<BTreeMap<(String, &'static str), Latencies>>,
    in_flight: AtomicU64,
}

/// A request that is being answered; it counts as such until the value is dropped.
pub(crate) struct InFlight(Arc<Metrics>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// A request has come.
    pub(crate) fn begin(self: &Arc<Metrics>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self.clone())
    }

    /// A request was answered. `route` is the address as it is routed, so that there are no more of them than the router has.
    pub(crate) fn answered(&self, route: &str, method: &'static str, status: u16, took: Duration) {
        let seconds = took.as_secs_f64();
        let class = CLASSES.iter().position(|end| seconds <= *end).unwrap_or(CLASSES.len());
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let latencies = requests.entry((route.to_owned(), method)).or_default();
        *latencies.by_status.entry(status).or_default() += 1;
        latencies.by_class[class] += 1;
        latencies.seconds += seconds;
    }

    /// Writes all of it.
    pub(crate) fn write(&self, page: &mut Exposition) {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        page.family("iliad_http_requests_total", "counter", "Requests that were answered.");
        for ((route, method), latencies) in &requests {
            for (status, count) in &latencies.by_status {
                let status = status.to_string();
                let labels = [("method", *method), ("route", route.as_str()), ("status", status.as_str())];
                page.sample("iliad_http_requests_total", &labels, *count as f64);
            }
        }
        const LATENCY: &str = "iliad_http_request_duration_seconds";
        page.family(LATENCY, "histogram", "Time until the head of the response was ready.");
        for ((route, method), latencies) in &requests {
            let mut so_far = 0;
            for (at, count) in latencies.by_class.iter().enumerate() {
                so_far += count;
                let end = CLASSES.get(at).map_or("+Inf".to_owned(), f64::to_string);
                let labels = [("method", *method), ("route", route.as_str()), ("le", end.as_str())];
                page.sample(&format!("{LATENCY}_bucket"), &labels, so_far as f64);
            }
            let labels = [("method", *method), ("route", route.as_str())];
            page.sample(&format!("{LATENCY}_sum"), &labels, latencies.seconds);
            page.sample(&format!("{LATENCY}_count"), &labels, so_far as f64);
        }
        page.family("iliad_http_requests_in_flight", "gauge", "Requests whose response is not ready yet.");
        page.sample("iliad_http_requests_in_flight", &[], self.in_flight.load(Ordering::Relaxed) as f64);
    }
}

/// A text in Prometheus's exposition format (version 0.0.4).
#[derive(Debug, Default)]
pub(crate) struct Exposition(String);

impl Exposition {
    /// Begins the samples of a metric.
    pub(crate) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    /// Adds a sample.
    pub(crate) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let escape = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
        match labels.is_empty() {
            true => self.line(format_args!("{name} {value}")),
            false => self.line(format_args!("{name}{{{}}} {value}", labels.join(","))),
        }
    }

    /// A metric of one sample without labels; nothing where the figure is not known.
    pub(crate) fn single(&mut self, name: &str, kind: &str, help: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.family(name, kind, help);
            self.sample(name, &[], value);
        }
    }

    /// The whole text.
    pub(crate) fn into_text(self) -> String {
        self.0
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        // A String takes everything.
        let _ = writeln!(self.0, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_address_status_and_time() {
        let metrics = Arc::new(Metrics::default());
        let held = metrics.begin();
        for (status, milliseconds) in [(200, 1), (200, 60), (404, 20_000)] {
            metrics.answered("/runs/{run}", "GET", status, Duration::from_millis(milliseconds));
        }
        let mut page = Exposition::default();
        metrics.write(&mut page);
        let text = page.into_text();
        for line in [
            r#"iliad_http_requests_total{method="GET",route="/runs/{run}",status="200"} 2"#,
            r#"iliad_http_requests_total{method="GET",route="/runs/{run}",status="404"} 1"#,
            r#"iliad_http_request_duration_seconds_bucket{method="GET",route="/runs/{run}",le="0.005"} 1"#,
            r#"iliad_http_request_duration_seconds_bucket{method="GET",route="/runs/{run}",le="0.1"} 2"#,
            r#"iliad_http_request_duration_seconds_bucket{method="GET",route="/runs/{run}",le="10"} 2"#,
            r#"iliad_http_request_duration_seconds_bucket{method="GET",route="/runs/{run}",le="+Inf"} 3"#,
            r#"iliad_http_request_duration_seconds_count{method="GET",route="/runs/{run}"} 3"#,
            "iliad_http_requests_in_flight 1",
        ] {
            assert!(text.lines().any(|there| there == line), "{line} is not in\n{text}");
        }
        drop(held);
        assert_eq!(metrics.in_flight.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn values_of_labels_are_escaped() {
        let mut page = Exposition::default();
        page.sample("a", &[("run", "x\"y\\z\n")], 1.5);
        assert_eq!(page.into_text(), "a{run=\"x\\\"y\\\\z\\n\"} 1.5\n");
    }
}
