//! The import of Room-to-Room's public files, on small files of the same form, and on the real data put back into that form.

use iliad::datafile::{read_json, write_json};
use iliad::protocol::Split;
use iliad::task::nav::corpus::{Item, NavData};
use iliad::task::nav::import::{FEATURES, Sources, import_r2r};
use iliad::task::nav::observation::store::Vectors;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Four viewpoints on a line along +y, 2 m apart; the last is not included.
fn connectivity() -> Value {
    let viewpoint = |i: usize| {
        let pose = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 2.0 * i as f64, 0.0, 0.0, 1.0, 1.50049, 0.0, 0.0, 0.0, 1.0];
        let near: Vec<bool> = (0..4).map(|j: usize| i.abs_diff(j) == 1).collect();
        let seen: Vec<bool> = (0..4).map(|j| i != j).collect();
        json!({"image_id": format!("v{i}"), "pose": pose, "included": i < 3, "visible": seen, "unobstructed": near, "height": 1.5})
    };
    json!((0..4).map(viewpoint).collect::<Vec<_>>())
}

fn path(number: u64, requests: usize) -> Value {
    let texts: Vec<String> = (0..requests).map(|k| format!("  Go  on,\nplease ({number}). {k}")).collect();
    json!({"path_id": number, "scan": "h", "heading": 1.23456, "distance": 4.0, "path": ["v0", "v1", "v2"], "instructions": texts})
}

fn write_sources(folder: &Path) -> Sources {
    let r2r = folder.join("data");
    let connectivity_folder = folder.join("connectivity");
    std::fs::create_dir_all(&r2r).unwrap();
    std::fs::create_dir_all(&connectivity_folder).unwrap();
    let train: Vec<Value> = (0..20).map(|n| path(n, 3)).chain([path(20, 2)]).collect();
    write_json(&r2r.join("R2R_train.json"), &train).unwrap();
    write_json(&r2r.join("R2R_val_seen.json"), &json!([path(30, 4)])).unwrap();
    write_json(&r2r.join("R2R_val_unseen.json"), &json!([path(40, 3)])).unwrap();
    write_json(&connectivity_folder.join("h_connectivity.json"), &connectivity()).unwrap();
    std::fs::write(connectivity_folder.join("scans.txt"), "h\n").unwrap();
    Sources { r2r, connectivity: connectivity_folder, boxes: None, features: None }
}

#[test]
fn small_files_become_data_with_the_readmes_splits() {
    let (folder, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let sources = write_sources(folder.path());
    let report = import_r2r(&sources, output.path()).expect("imported");
    assert_eq!((report.houses, report.viewpoints, report.left_out, report.objects), (1, 3, 1, 0));
    assert_eq!((report.train, report.validation, report.test), (18, 3 + 2 * 3, 3));
    let data = NavData::load(output.path()).expect("what was written can be read");
    // A tenth of the 20 full paths moves: those with the smallest hashes.
    let mut numbers: Vec<u64> = (0..20).collect();
    numbers.sort_by_key(|n| Sha256::digest(format!("nav-val-{n}")).to_vec());
    let moved: Vec<u64> = data.corpus.validation.iter().map(|i| i.path_id).filter(|n| *n < 20).collect();
    assert!(moved.len() == 6 && moved.iter().all(|n| numbers[..2].contains(n)), "{moved:?}");
    let item = &data.corpus.train[0];
    assert_eq!(item.requests[0], format!("Go on, please ({}). 0", item.path_id));
    assert_eq!(item.tokens[0], format!("go on , please ( {} ) . 0", item.path_id));
    assert_eq!((item.heading, item.origin.as_str(), item.requests.len()), (1.235, "train", 3));
    assert_eq!(data.corpus.test.iter().map(|i| i.id.as_str()).collect::<Vec<_>>(), ["40_0", "40_1", "40_2"]);
    let graph = &data.graphs["h"];
    assert_eq!((graph.edge_list(), graph.position(1)), (vec![(0, 1), (1, 2)], [0.0, 2.0, 1.5]));
}

/// Box of a cube of half a metre at a point, in the image of a view that looks along +y or +x.
fn cube(from: [f64; 3], at: [f64; 3], along_x: bool) -> [f64; 4] {
    let (ahead, right) = if along_x { (at[0] - from[0], from[1] - at[1]) } else { (at[1] - from[1], at[0] - from[0]) };
    let (u, v) = (320.0 + 415.69 * right / ahead, 240.0 - 415.69 * (at[2] - from[2]) / ahead);
    let half = 415.69 * 0.25 / ahead;
    [u - half, v - half, 2.0 * half, 2.0 * half]
}

#[test]
fn boxes_become_objects_where_they_are() {
    let (folder, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let boxes = folder.path().join("BBox");
    std::fs::create_dir_all(&boxes).unwrap();
    // A chair beside v1, seen ahead from v0 (view 12) and to the right from v1 (view 15).
    let chair = [1.2, 2.0, 1.2];
    let (v0, v1) = ([0.0, 0.0, 1.50049], [0.0, 2.0, 1.50049]);
    let first = json!({"v0": {
        "7": {"name": "Chair#/w#books", "visible_pos": [12, 13], "bbox2d": [cube(v0, chair, false), [0.0, 9.0, 90.0, 90.0]]},
        "8": {"name": "lamps2", "visible_pos": [18], "bbox2d": [[300.0, 220.0, 40.0, 40.0]]},
    }});
    let second = json!({"v1": {
        "7": {"name": "chairs", "visible_pos": [15], "bbox2d": [cube(v1, chair, true)]},
        "9": {"name": "lamp", "visible_pos": [0], "bbox2d": [[0.0, 0.0, 640.0, 480.0]]},
    }});
    write_json(&boxes.join("h_v0.json"), &first).unwrap();
    write_json(&boxes.join("h_v1.json"), &second).unwrap();
    let mut sources = write_sources(folder.path());
    sources.boxes = Some(boxes.clone());
    let report = import_r2r(&sources, output.path()).expect("imported");
    assert_eq!(report.objects, 3);
    let data = NavData::load(output.path()).expect("what was written can be read");
    let names: Vec<(&str, u64, u64)> = data.names.iter().map(|n| (n.name.as_str(), n.objects, n.sightings)).collect();
    assert_eq!(names, [("chair", 1, 2), ("lamp", 2, 2)]);
    assert_eq!(data.names[0].variants, ["Chair#/w#books", "chairs"]);
    let house = &data.objects["h"];
    let found = &house.objects[0];
    assert_eq!((found.number, found.name.as_str(), found.position.as_str()), (7, "chair", "triangulated"));
    let miss = (found.x - chair[0]).hypot(found.y - chair[1]).hypot(found.z - chair[2]);
    assert!(miss < 0.03, "{found:?}");
    assert!((found.width - 0.5).abs() < 0.1 && (found.height - 0.5).abs() < 0.1, "{found:?}");
    let seen = &house.viewpoints["v1"].seen;
    let chair_seen = seen.iter().find(|s| s.object == 0).unwrap();
    assert!((chair_seen.heading - std::f64::consts::FRAC_PI_2).abs() < 0.01 && chair_seen.whole);
    assert!(chair_seen.elevation < -0.2 && (chair_seen.distance.unwrap() - 1.237).abs() < 0.03, "{chair_seen:?}");
    let cut = seen.iter().find(|s| s.object == 2).unwrap();
    assert_eq!((cut.whole, cut.distance, &cut.views[..]), (false, None, &[(0, 1000)][..]));
    // A lamp that one viewpoint sees straight behind it is put 1.5 m along the line.
    let lamp = &house.objects[1];
    assert!(lamp.position == "assumed" && (lamp.y + 1.5).abs() < 0.01 && lamp.x.abs() < 0.01, "{lamp:?}");
    // v2 boxes nothing: it infers what those that it sees box, nearest first.
    assert_eq!(house.viewpoints["v2"].seen.len(), 0);
    assert_eq!(house.viewpoints["v2"].inferred, [2, 0, 1]);
    assert!(!house.viewpoints.contains_key("v3"));

    for (name, text, part) in [
        ("q_v0.json", first.clone(), "q_v0.json: its name"),
        ("h_q.json", json!({"q": {}}), "viewpoint q: the graph"),
        (
            "h_v2.json",
            json!({"v2": {"x": {"name": "a", "visible_pos": [1], "bbox2d": [[1, 1, 1, 1]]}}}),
            "\"x\" is no number",
        ),
        (
            "h_v2.json",
            json!({"v2": {"1": {"name": "a", "visible_pos": [1, 2], "bbox2d": [[1, 1, 1, 1]]}}}),
            "do not fit together",
        ),
        (
            "h_v2.json",
            json!({"v2": {"1": {"name": "a", "visible_pos": [36], "bbox2d": [[1, 1, 1, 1]]}}}),
            "do not fit together",
        ),
    ] {
        write_json(&boxes.join(name), &text).unwrap();
        let error = import_r2r(&sources, output.path()).expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
        std::fs::remove_file(boxes.join(name)).unwrap();
    }
}

#[test]
fn what_cannot_be_imported_is_told_plainly_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out");
    let cases: [(&str, Value, &str); 6] = [
        ("data/R2R_train.json", json!([{"path_id": 1}]), "missing field"),
        ("data/R2R_val_seen.json", json!({}), "R2R_val_seen.json"),
        ("connectivity/h_connectivity.json", json!([{"image_id": "a"}]), "missing field"),
        (
            "connectivity/h_connectivity.json",
            json!([{"image_id": "a", "pose": [1.0], "included": true, "visible": [true], "unobstructed": [false]}]),
            "viewpoint a: `pose` has 1 numbers instead of 16",
        ),
        (
            "connectivity/h_connectivity.json",
            json!([{"image_id": "a", "pose": vec![0.0; 16], "included": true, "visible": [], "unobstructed": [false]}]),
            "must have 1 entries",
        ),
        ("data/R2R_val_unseen.json", json!(7), "R2R_val_unseen.json"),
    ];
    for (name, text, part) in cases {
        let sources = write_sources(folder.path());
        write_json(&folder.path().join(name), &text).unwrap();
        let error = import_r2r(&sources, &output).expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
        assert!(!output.exists());
    }
    let mut sources = write_sources(folder.path());
    sources.connectivity = folder.path().join("data");
    assert!(import_r2r(&sources, &output).unwrap_err().to_string().contains("_connectivity.json"));
    sources.connectivity = folder.path().join("nowhere");
    assert!(import_r2r(&sources, &output).unwrap_err().to_string().contains("nowhere cannot be read"));
}

#[test]
fn image_features_come_along() {
    use base64::Engine;
    let (folder, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut sources = write_sources(folder.path());
    let bytes: Vec<u8> = (0..36 * 4).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let table = folder.path().join("features.tsv");
    let line = format!("h\tv0\t640\t480\t60\t{}\n", base64::engine::general_purpose::STANDARD.encode(bytes));
    std::fs::write(&table, line).unwrap();
    sources.features = Some(table);
    assert_eq!(import_r2r(&sources, output.path()).expect("imported").features, 1);
    let vectors = Vectors::open(&output.path().join(FEATURES)).unwrap();
    assert_eq!((vectors.dim(), vectors.row(0)[5]), (4, 5.0));
}

/// The real data, put back into the form of the public files, must come out with the same splits, requests and words.
#[test]
fn the_real_data_survives_the_way_back() {
    let data =
        std::env::var_os("ILIAD_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from).join("nav");
    if !data.exists() {
        println!("skipped: no NAV data at {}", data.display());
        return;
    }
    let (folder, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let stored: BTreeMap<String, Vec<Value>> = read_json(&data.join("r2r.json.gz")).unwrap();
    let mut paths: BTreeMap<String, BTreeMap<u64, Value>> = BTreeMap::new();
    for item in stored.values().flatten() {
        let by_number = paths.entry(item["origin"].as_str().unwrap().to_owned()).or_default();
        let path = by_number.entry(item["path_id"].as_u64().unwrap()).or_insert_with(|| {
            let mut path = item.clone();
            path["instructions"] = json!([]);
            path
        });
        let texts = path["instructions"].as_array_mut().unwrap();
        texts.extend(item["requests"].as_array().unwrap().iter().cloned());
    }
    for (origin, by_number) in &paths {
        let list: Vec<&Value> = by_number.values().collect();
        write_json(&folder.path().join(format!("R2R_{origin}.json")), &list).unwrap();
    }
    let graphs: Map<String, Value> = read_json(&data.join("graphs.json.gz")).unwrap();
    for (scan, graph) in &graphs {
        let viewpoints = graph["viewpoints"].as_array().unwrap();
        let n = viewpoints.len();
        let mut near = vec![vec![false; n]; n];
        for edge in graph["edges"].as_array().unwrap() {
            near[edge[0].as_u64().unwrap() as usize][edge[1].as_u64().unwrap() as usize] = true;
        }
        let list: Vec<Value> = viewpoints
            .iter()
            .zip(near)
            .map(|(v, near)| {
                let pose = json!([1, 0, 0, v["x"], 0, 1, 0, v["y"], 0, 0, 1, v["z"], 0, 0, 0, 1]);
                json!({"image_id": v["id"], "pose": pose, "included": v["included"], "visible": vec![false; n], "unobstructed": near})
            })
            .collect();
        write_json(&folder.path().join(format!("{scan}_connectivity.json")), &list).unwrap();
    }
    let at = folder.path().to_path_buf();
    let sources = Sources { r2r: at.clone(), connectivity: at, boxes: None, features: None };
    let report = import_r2r(&sources, output.path()).expect("imported");
    assert_eq!((report.train, report.validation, report.test, report.words), (4315, 2100, 2349, 892));
    let (before, after) = (NavData::load(&data).unwrap(), NavData::load(output.path()).unwrap());
    for (scan, graph) in &before.graphs {
        assert_eq!(graph.viewpoints(), after.graphs[scan].viewpoints());
        assert_eq!(graph.edge_list(), after.graphs[scan].edge_list());
    }
    let sorted = |items: &[Item]| {
        let mut items = items.to_vec();
        items.sort_by(|a, b| a.id.cmp(&b.id));
        items
    };
    for split in [Split::Train, Split::Validation, Split::Test] {
        assert!(sorted(before.corpus.split(split)) == sorted(after.corpus.split(split)), "{split:?} differs");
    }
    assert_eq!(before.words, after.words);
}
