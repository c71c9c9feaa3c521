//! `kill -9` at random moments, of servers that people teach and of trainings. The command that does it many times does it here
//! a few times.

use crate::iliad;
use serde_json::Value;
use std::process::Output;

#[test]
fn kills_at_random_moments_lose_and_double_nothing_and_change_no_weight() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = iliad(folder.path(), "");
    command.args(["dev", "kills", "--kills", "6", "--longest", "2", "--teachers", "3", "--seed", "7", "--json"]);
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (said, told) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert_eq!(status.code(), Some(0), "{said}{told}");
    let found: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&found["teaching"]["kills"], &found["training"]["kills"]), (&6.into(), &6.into()), "{said}");
    assert_eq!(found["teaching"]["faults"], serde_json::json!([]), "{said}");
    assert!(found["teaching"]["acknowledged"].as_u64().unwrap() > 3, "{said}");
    assert!(found["training"]["trainings"].as_u64().unwrap() >= 1, "{said}");
    assert!(!told.contains("panicked"), "{told}");
}
