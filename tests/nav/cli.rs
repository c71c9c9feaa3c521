//! `iliad nav` as it is typed: answers line by line, and what is said about bad lines and missing data.

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(folder: &Path, arguments: &[&str], input: &str) -> (i32, Vec<Value>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iliad"));
    command.args(arguments).current_dir(folder);
    for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("ILIAD_")) {
        command.env_remove(variable);
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that ended before reading everything is judged by its exit, not by the broken pipe.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let lines = String::from_utf8(stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (status.code().unwrap(), lines, String::from_utf8(stderr).unwrap())
}

fn write_graphs(folder: &Path, graphs: &Value) {
    let file = std::fs::File::create(folder.join("graphs.json.gz")).unwrap();
    let mut out = GzEncoder::new(file, Compression::fast());
    out.write_all(graphs.to_string().as_bytes()).unwrap();
    out.finish().unwrap();
}

/// House `h`: a, b, c on a line along +x, 2 m apart; x is not included, z lies apart.
fn house() -> Value {
    let v = |id: &str, x: f64, included: bool| json!({"id": id, "x": x, "y": 0.0, "z": 1.5, "included": included});
    json!({"h": {
        "viewpoints": [v("a", 0.0, true), v("x", 1.0, false), v("b", 2.0, true), v("c", 4.0, true), v("z", 50.0, true)],
        "edges": [[0, 2], [2, 3]],
    }})
}

#[test]
fn walks_are_scored_and_bad_lines_named() {
    let folder = tempfile::tempdir().unwrap();
    write_graphs(folder.path(), &house());
    let lines = [
        r#"{"scan":"h","path":["a","b","c"],"reference":["a","b","c"]}"#,
        "",
        r#"{"scan":"h","path":["a","b"],"reference":["a","b","c"],"more":1}"#,
        r#"{"scan":"nowhere","path":["a"],"reference":["a"]}"#,
        r#"{"scan":"h","path":["a","x"],"reference":["a"]}"#,
        r#"{"scan":"h","path":[],"reference":["a"]}"#,
        r#"{"scan":"h","path":["a"]}"#,
        "nonsense",
        r#"{"scan":"h","path":["z"],"reference":["z"]}"#,
    ];
    let (code, out, err) = run(folder.path(), &["nav", "score", "--nav-data", "."], &lines.join("\n"));
    assert_eq!(code, 2, "{err}");
    assert_eq!(out[0], json!({"success": true, "distance": 0.0, "spl": 1.0, "ndtw": 1.0, "sdtw": 1.0}));
    assert_eq!((&out[1]["success"], &out[1]["distance"], &out[1]["spl"]), (&json!(true), &json!(2.0), &json!(1.0)));
    let ndtw = out[1]["ndtw"].as_f64().unwrap();
    assert!((ndtw - (-2.0f64 / 9.0).exp()).abs() < 1e-12 && out[1]["sdtw"].as_f64() == Some(ndtw));
    assert_eq!(out[7], json!({"success": true, "distance": 0.0, "spl": 1.0, "ndtw": 1.0, "sdtw": 1.0}));
    assert!(out.len() == 8 && (2..7).all(|i| out[i]["error"].is_string()), "{out:?}");
    let told: Vec<&str> = err.lines().collect();
    for (line, parts) in told.iter().zip([
        ["line 4:", "nowhere"],
        ["line 5:", "no viewpoint \"x\""],
        ["line 6:", "`path` is empty"],
        ["line 7:", "missing field `reference`"],
        ["line 8:", "expected"],
    ]) {
        assert!(parts.iter().all(|part| line.contains(part)), "{line} lacks {parts:?}");
    }
    assert_eq!(told.len(), 5, "{err}");
    let (code, out, err) = run(folder.path(), &["nav", "score", "--nav-data", "."], lines[0]);
    assert_eq!((code, out.len(), err.as_str()), (0, 1, ""));
}

/// Houses `h` as above, and `r`: corners 0, 1, 2, 3 of a square of 4 m with all sides but the one from 3 to 0, and far, 5 m
/// past 0. The way from 0 to 3 has 12 m.
fn square() -> Value {
    let v = |id: &str, x: f64, y: f64| json!({"id": id, "x": x, "y": y, "z": 0.0, "included": true});
    let mut houses = house();
    houses["r"] = json!({
        "viewpoints": [v("0", 0.0, 0.0), v("1", 4.0, 0.0), v("2", 4.0, 4.0), v("3", 0.0, 4.0), v("far", -5.0, 0.0), v("alone", 90.0, 0.0)],
        "edges": [[0, 1], [1, 2], [2, 3], [0, 4]],
    });
    houses
}

/// SPL, success and distance against small cases worked out by hand.
#[test]
fn scores_are_those_worked_out_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    write_graphs(folder.path(), &square());
    let walk =
        |path: &[&str], reference: &[&str]| json!({"scan": "r", "path": path, "reference": reference}).to_string();
    let rows = [
        // Path, reference, success, distance, SPL.
        (walk(&["0", "1"], &["0", "1"]), true, 0.0, 1.0),
        // There and back again before: 12 m where 4 m do.
        (walk(&["0", "1", "0", "1"], &["0", "1"]), true, 0.0, 4.0 / 12.0),
        // A detour of 10 m by far.
        (walk(&["0", "far", "0", "1"], &["0", "1"]), true, 0.0, 4.0 / 14.0),
        // The reference itself goes the detour: the shortest way counts, not the reference's length.
        (walk(&["0", "far", "0", "1"], &["0", "far", "0", "1"]), true, 0.0, 4.0 / 14.0),
        (walk(&["0", "1"], &["0", "far", "0", "1"]), true, 0.0, 1.0),
        // Stopped 4 m before.
        (walk(&["0", "1"], &["0", "1", "2"]), false, 4.0, 0.0),
        // Viewpoints without an edge count with the shortest way between them: 12 m.
        (walk(&["0", "3"], &["0", "1", "2", "3"]), true, 0.0, 1.0),
        // Standing still is no step.
        (walk(&["0", "0", "1", "1"], &["0", "1"]), true, 0.0, 1.0),
        // The goal is where it began: any way is longer than none.
        (walk(&["0"], &["0"]), true, 0.0, 1.0),
        (walk(&["0", "1", "0"], &["0"]), true, 0.0, 0.0),
    ];
    let input: String = rows.iter().map(|row| format!("{}\n", row.0)).collect();
    let (code, out, err) = run(folder.path(), &["nav", "score", "--nav-data", "."], &input);
    assert_eq!((code, out.len(), err.as_str()), (0, rows.len(), ""));
    for ((line, success, distance, spl), found) in rows.iter().zip(&out) {
        assert_eq!((&found["success"], &found["distance"]), (&json!(success), &json!(distance)), "{line}");
        assert!((found["spl"].as_f64().unwrap() - spl).abs() < 1e-12, "{line}: {found}");
    }
}

#[test]
fn walks_without_an_honest_score_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_graphs(folder.path(), &square());
    let rows = [
        // No way from a to b: nothing was reached however short the path.
        (
            r#"{"scan":"r","path":["0","alone"],"reference":["0","alone"]}"#,
            "no way leads from \"0\" to \"alone\" of `path`",
        ),
        (r#"{"scan":"r","path":["0"],"reference":["0","alone"]}"#, "of `reference`"),
        (
            r#"{"scan":"r","path":["1","2"],"reference":["0","1","2"]}"#,
            "`path` begins at \"1\" and `reference` at \"0\"",
        ),
        (r#"{"scan":"r","path":["alone"],"reference":["0"]}"#, "begins at"),
        (r#"{"scan":"r","path":["0","9"],"reference":["0"]}"#, "no viewpoint \"9\""),
        (r#"{"scan":"r","path":["0"],"reference":["0","a"]}"#, "no viewpoint \"a\""),
        (r#"{"scan":"r","path":["0"],"reference":[]}"#, "`reference` is empty"),
        (r#"{"scan":"R","path":["0"],"reference":["0"]}"#, "did you mean `r`?"),
        (r#"{"scan":"r","path":"0","reference":["0"]}"#, "expected"),
        (r#"{"scan":"r","path":["0"],"path":["1"],"reference":["0"]}"#, "duplicate field `path`"),
    ];
    let input: Vec<&str> = rows.iter().map(|row| row.0).collect();
    let (code, out, err) = run(folder.path(), &["nav", "score", "--nav-data", "."], &input.join("\n"));
    assert_eq!((code, out.len()), (2, rows.len()));
    for (at, ((line, part), told)) in rows.iter().zip(err.lines()).enumerate() {
        assert!(told.starts_with(&format!("line {}: ", at + 1)) && told.contains(part), "{line}: {told}");
        assert!(out[at]["error"].as_str().unwrap().contains(part) && out[at]["spl"].is_null(), "{line}");
    }
}

#[test]
fn moves_are_listed_straightest_first() {
    let folder = tempfile::tempdir().unwrap();
    write_graphs(folder.path(), &house());
    let lines = [
        r#"{"scan":"h","viewpoint":"b","heading_index":4}"#,
        r#"{"scan":"h","viewpoint":"b","heading_index":12}"#,
        r#"{"scan":"h","viewpoint":"b","heading_index":1.5}"#,
        r#"{"scan":"h","viewpoint":"z","heading_index":0}"#,
    ];
    let (code, out, err) = run(folder.path(), &["nav", "actions", "--nav-data", "."], &lines.join("\n"));
    assert_eq!(code, 2);
    let moves = out[0]["actions"].as_array().unwrap();
    let told: Vec<(&str, u64)> =
        moves.iter().map(|m| (m["viewpoint"].as_str().unwrap(), m["view"].as_u64().unwrap())).collect();
    assert_eq!(told, [("c", 15), ("a", 21)]);
    let sixth = std::f64::consts::FRAC_PI_6;
    assert!((moves[0]["rel_heading"].as_f64().unwrap() + sixth).abs() < 1e-12);
    assert!((moves[1]["rel_heading"].as_f64().unwrap() - 5.0 * sixth).abs() < 1e-12);
    assert_eq!(moves[0]["rel_elevation"], 0.0);
    assert_eq!(out[3], json!({"actions": []}));
    assert!(err.contains("line 2: `heading_index` is 12") && err.contains("line 3:"), "{err}");
}

#[test]
fn data_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let said = |folder: &Path| {
        let (code, out, err) = run(folder, &["nav", "score", "--nav-data", "."], "{}\n");
        assert_eq!((code, out.len()), (2, 0), "{err}");
        err
    };
    assert!(said(folder.path()).contains("graphs.json.gz cannot be read"));
    std::fs::write(folder.path().join("graphs.json.gz"), "not gzip").unwrap();
    assert!(said(folder.path()).contains("graphs.json.gz cannot be read"));
    write_graphs(folder.path(), &json!({}));
    assert!(said(folder.path()).contains("no house"));
    write_graphs(folder.path(), &json!({"h": {"viewpoints": []}}));
    assert!(said(folder.path()).contains("missing field `edges`"));
    let mut broken = house();
    broken["h"]["edges"] = json!([[0, 1]]);
    write_graphs(folder.path(), &broken);
    let err = said(folder.path());
    assert!(err.contains("house h") && err.contains("x, which is not included"), "{err}");
    broken["h"]["edges"] = json!([[0, 9]]);
    write_graphs(folder.path(), &broken);
    assert!(said(folder.path()).contains("viewpoint number 9; there are 5"));
}

#[test]
fn the_generated_houses_are_described_in_figures() {
    let folder = tempfile::tempdir().unwrap();
    let (code, lines, told) = run(folder.path(), &["data", "describe", "--family", "nav", "--json"], "");
    assert_eq!((code, lines.len()), (0, 1), "{told}");
    let said = &lines[0];
    assert_eq!(said["houses"], 72);
    assert_eq!(said["splits"]["test"]["houses"], said["splits"]["test"]["unseen_houses"]);
    assert_eq!(said["splits"]["train"]["requests"], 3 * said["splits"]["train"]["tasks"].as_u64().unwrap());
    let moves = said["splits"]["validation"]["moves"].as_f64().unwrap();
    assert!((2.0..=9.0).contains(&moves), "{moves}");
}
