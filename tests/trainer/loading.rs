//! A run says while it is loaded how far it is: steps, shares, and the time that is left.

use crate::support::set;
use candle_core::Device;
use iliad::registry::Registry;
use iliad::run::{Event, RunState};
use iliad::trainer::Launch;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Loads a run of NAV, and ends it after its first update; what it said.
fn load(folder: &Path) -> Vec<(String, Option<f64>, Option<f64>)> {
    let config = Registry::builtin().configure(
        "nav/tiny",
        1,
        &set(&[r#"teacher.mode={"mode":"simulated"}"#, "schedule.episodes=1"]),
    );
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = said.clone();
    let launch = Launch {
        id: "test".into(),
        config: config.unwrap(),
        folder: folder.to_owned(),
        device: Device::Cpu,
        store: None,
        teacher: None,
        listener: Some(Box::new(move |event| {
            if let Event::Status(status) = &**event
                && let RunState::Starting { what, done, seconds_left } = &status.state
            {
                heard.lock().unwrap().push((what.clone(), *done, *seconds_left));
            }
        })),
    };
    let (_handle, thread) = Registry::builtin().family("nav").unwrap().spawn(launch).unwrap();
    thread.join().unwrap().unwrap();
    said.lock().unwrap().clone()
}

#[test]
fn a_run_says_how_far_its_loading_is_and_the_next_one_how_long_it_takes() {
    let home = tempfile::tempdir().unwrap();
    let first = load(&home.path().join("first"));
    let steps: Vec<&str> = first.iter().map(|(what, _, _)| what.as_str()).collect();
    assert!(steps.starts_with(&["Loading the task"]) && steps.contains(&"Loading the agent"), "{steps:?}");
    assert!(first.iter().filter_map(|(_, done, _)| *done).all(|share| (0.0..=1.0).contains(&share)), "{first:?}");
    assert_eq!(first[0].2, None, "nothing is known of how long it takes");
    let noted = std::fs::read_to_string(home.path().join("first/loading.json")).unwrap();
    assert!(noted.contains("Loading the agent"), "{noted}");
    // Another run of the same settings knows from its first word on.
    let second = load(&home.path().join("second"));
    assert_eq!(second[0].0, "Loading the task");
    assert!(second[0].2.is_some_and(|left| left > 0.0), "{second:?}");
}
