//! `iliad study rehearse`: simulated people take part in a whole study over its pages.

use super::{iliad, run};
use serde_json::Value;

#[test]
fn three_people_of_each_medium_finish_and_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let study = "title = \"Three media\"\nconsent = \"I agree.\"\ngoal = 3\npay_per_hour = 12.0\n\
        [qualification]\nexecutions = 1\nright = 0\njudge = \"researcher\"\n[attention]\nevery = 2\nmisses = 9\n";
    let arm = |name: &str, algorithm: &str| {
        format!(
            "[[arms]]\nname = \"{name}\"\npreset = \"regex/tiny\"\nset = [\"algorithm.name={algorithm}\", \"schedule.episodes=0\", \
             \"schedule.evaluate_every=1\", \"schedule.evaluate_tasks=8\", \"algorithm.batch=2\", \"algorithm.pretrain_updates=0\"]\n"
        )
    };
    let arms = [("words", "adel"), ("edits", "dagger"), ("ratings", "reinforce-binary")].map(|(name, a)| arm(name, a));
    std::fs::write(folder.path().join("study.toml"), study.to_owned() + &arms.concat()).unwrap();
    let mut command = iliad(folder.path());
    command.args(["study", "rehearse", "--file", "study.toml", "--teachers", "9", "--speed", "100000", "--drops", "0"]);
    let (code, printed, told) = run(command.args(["--out", "results", "--json"]));
    assert_eq!(code, 0, "{printed}{told}");
    let found: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        (&found["states"]["finished"], &found["errors"]),
        (&9.into(), &serde_json::json!({})),
        "{printed}{told}"
    );
    for (arm, medium) in found["arms"].as_array().unwrap().iter().zip(["description", "demonstration", "rating"]) {
        assert_eq!((&arm["medium"], &arm["finished"]), (&medium.into(), &3.into()), "{printed}");
    }
    for name in ["words", "edits", "ratings"] {
        let outcome = &found["comparison"][name];
        assert_eq!((&outcome["teachers"], &outcome["given"]), (&3.into(), &9.into()), "{name}: {printed}");
        assert!(outcome["active_minutes"].as_f64().unwrap() > 0.0 && outcome["now"]["n"] == 8, "{name}: {printed}");
    }
    assert_eq!(found["milliseconds"]["answer"]["n"], 27, "{printed}");
    assert!(found["pay"].as_f64().unwrap() > 0.0);
    let kept: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("results/comparison.json")).unwrap()).unwrap();
    assert_eq!(kept["conditions"][2]["name"], "ratings");
}

#[test]
fn some_leave_reload_and_lose_their_connection_and_nothing_goes_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = iliad(folder.path());
    command.args([
        "study",
        "rehearse",
        "--preset",
        "regex/tiny",
        "--teachers",
        "6",
        "--goal",
        "4",
        "--speed",
        "100000",
    ]);
    let (code, printed, told) = run(command.args(["--drops", "0.5", "--seed", "2", "--json", "--keep", "kept"]));
    assert_eq!(code, 0, "{printed}{told}");
    let found: Value = serde_json::from_str(&printed).unwrap();
    let happened = |what: &str| found["happenings"][what].as_u64().unwrap_or(0);
    assert!(happened("lost connections") > 0 && happened("reloaded pages") > 0, "{printed}");
    assert!(happened("left early") + happened("went away without a word") > 0, "{printed}");
    assert!(folder.path().join("kept/iliad.sqlite").is_file() && told.contains("serve --data-dir"), "{told}");
    let (code, _, told) = run(iliad(folder.path()).args(["study", "rehearse", "--keep", "kept"]));
    assert!(code == 2 && told.contains("is there already"), "{told}");
}
