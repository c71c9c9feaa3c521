//! View vectors: semantic ones worked out by hand, the file they are kept in, and the public table of image features.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use iliad::task::nav::action::{VIEWS, view_toward};
use iliad::task::nav::corpus::NavData;
use iliad::task::nav::graph::{Graph, Viewpoint};
use iliad::task::nav::objects::{Object, Objects, Sighting, Sightings};
use iliad::task::nav::observation::store::{Vectors, Writer};
use iliad::task::nav::observation::tsv;
use iliad::task::nav::observation::{GEOMETRY, NAMES, SCALE, Semantic, glimpses, shares};
use std::collections::HashMap;
use std::path::PathBuf;

fn graph() -> Graph {
    let at = |id: &str, position| Viewpoint { id: id.into(), position };
    // b lies 2 m along +y (view 12), d 3 m along +y as well; c 2 m along +x and as much up (view 27).
    let viewpoints =
        vec![at("a", [0.0, 0.0, 1.5]), at("b", [0.0, 2.0, 1.5]), at("c", [2.0, 0.0, 3.5]), at("d", [0.1, 3.0, 1.5])];
    Graph::new(viewpoints, &[(0, 1), (0, 2), (0, 3), (1, 3)]).unwrap()
}

fn objects() -> Objects {
    let object = |name: &str, x: f64, y: f64, z: f64| Object {
        number: 1,
        name: name.into(),
        x,
        y,
        z,
        width: 1.0,
        height: 0.5,
        sightings: 1,
        position: "triangulated".into(),
        miss: None,
    };
    let sighting = Sighting {
        object: 0,
        name: "chair".into(),
        heading: 0.0,
        elevation: 0.0,
        width: 0.5,
        height: 0.5,
        distance: Some(2.0),
        whole: true,
        views: vec![(12, 99), (13, 9)],
    };
    Objects {
        objects: vec![object("chair", 0.0, 2.0, 1.5), object("lamp", 4.0, 0.0, 1.5)],
        viewpoints: HashMap::from([("a".into(), Sightings { seen: vec![sighting], inferred: vec![1] })]),
    }
}

#[test]
fn semantic_vectors_by_hand() {
    let (graph, objects) = (graph(), objects());
    let semantic = Semantic::new(["chair", "lamp"], 8, 2.0).unwrap();
    let vectors = semantic.encode(&graph, 0, glimpses(&graph, &objects, 0));
    let view = |v: usize| &vectors[v * 8..][..8];
    let number = |thousandths: f32| 2.0 * (1.0 + thousandths).ln() / 1001f32.ln();
    assert!((view(12)[0] - number(99.0)).abs() < 1e-6 && (view(13)[0] - number(9.0)).abs() < 1e-6);
    // The lamp, 0.5 m² at 4 m: 1/32 sr of the view's 1.374, in every view whose frame holds it: 2, 3 and 4 columns
    // along +x would be 60°, 90° and 120°; 30° off is inside the 37.6°.
    let lamp = number(1000.0 / 32.0 / (4.0 * 0.6562 * std::f32::consts::FRAC_PI_6));
    let with_lamp: Vec<usize> = (0..VIEWS).filter(|v| view(*v)[1] > 0.0).collect();
    // Level with the eye, it is on the very edge of the frames above and below.
    assert!([14, 15, 16].iter().all(|v| with_lamp.contains(v)), "{with_lamp:?}");
    assert!(with_lamp.iter().all(|v| (2..=4).contains(&(v % 12))));
    assert!((view(15)[1] - lamp).abs() < 1e-4, "{} {lamp}", view(15)[1]);
    // Geometry: two neighbours ahead, 2 m and 3.0017 m; the nearer has two neighbours.
    let wanted = [1.0, 0.4, 0.600_33, 0.0, 0.4].map(|x| 2.0 * x);
    assert!(view(12)[2..7].iter().zip(wanted).all(|(x, y)| (x - y).abs() < 1e-4), "{:?}", view(12));
    assert!((view(27)[5] - 2.0 * std::f32::consts::FRAC_1_SQRT_2).abs() < 1e-6, "45° up: {:?}", view(27));
    assert!(vectors.chunks(8).all(|v| v[7] == 0.0), "what is over is zero");
    assert!(Semantic::new(["chair", "chair"], 8, 1.0).unwrap_err().contains("twice"));
    assert!(Semantic::new(["a", "b", "c", "d"], 8, 1.0).unwrap_err().contains("do not fit"));
}

#[test]
fn a_thing_covers_of_each_view_what_lies_in_its_frame() {
    let shown: HashMap<u8, f64> = shares(0.0, 0.0, 0.2, 0.2).collect();
    let view = 4.0 * 0.6562 * std::f64::consts::FRAC_PI_6;
    assert!((shown[&12] - 0.04 / view).abs() < 1e-9, "all of it");
    assert!((shown[&13] - 0.04 / view).abs() < 1e-9, "30° off it is still inside");
    assert!((shown[&24] - 0.02 / view).abs() < 1e-9, "half of it is above the lower edge of the upper view");
    assert!(!shown.contains_key(&14) && !shown.contains_key(&18));
    let wall: HashMap<u8, f64> = shares(0.0, 0.0, 6.0, 3.0).collect();
    assert!((wall[&12] - 1.0).abs() < 1e-9);
    assert_eq!(view_toward(0.0, 0.0), 12);
}

#[test]
fn vectors_survive_the_disk_and_damage_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("views.bin");
    let row = |k: usize| (0..VIEWS * 3).map(|i| (i * k) as f32 / 4.0).collect::<Vec<_>>();
    let mut writer = Writer::create(&path, 3).unwrap();
    writer.push("h", "a", &row(1)).unwrap();
    writer.push("h", "b", &row(2)).unwrap();
    assert!(!path.exists(), "not before it is whole");
    assert_eq!(writer.finish().unwrap(), 2);
    let vectors = Vectors::open(&path).unwrap();
    assert_eq!((vectors.dim(), vectors.places().len(), vectors.find("h", "b")), (3, 2, Some(1)));
    assert_eq!(vectors.find("g", "b"), None);
    assert_eq!((vectors.row(0), vectors.row(1)), (row(1), row(2)));
    assert_eq!(vectors.bytes(1).len(), VIEWS * 3 * 2);
    drop(vectors);

    let good = std::fs::read(&path).unwrap();
    let said = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let error = Vectors::open(&path).unwrap_err().to_string();
        assert!(error.contains("views.bin"), "{error}");
        error
    };
    assert!(said(&good[..good.len() - 1]).contains("cut off"));
    assert!(said(&good[..50]).contains("no file of view vectors"));
    assert!(said(b"").contains("views.bin"));
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    assert!(said(&with(0, b'x')).contains("no file of view vectors"));
    assert!(said(&with(8, 9)).contains("version 9"));
    assert!(said(&with(12, 200)).contains("cut off or damaged"));
    assert!(said(&with(16, 255)).contains("cut off or damaged"));
    for at in [64, 100, good.len() - 60, good.len() - 1] {
        assert!(said(&with(at, good[at] ^ 1)).contains("damaged"), "byte {at}");
    }

    let other = folder.path().join("other.bin");
    let mut writer = Writer::create(&other, 3).unwrap();
    assert!(
        writer.push("h", "a", &row(1)[1..]).unwrap_err().to_string().contains("107 numbers instead of 36 views of 3")
    );
    assert!(writer.push("h", "a", &[f32::NAN; VIEWS * 3]).unwrap_err().to_string().contains("16 bits"));
    writer.push("h", "a", &row(1)).unwrap();
    writer.push("h", "a", &row(1)).unwrap();
    assert!(writer.finish().unwrap_err().to_string().contains("viewpoint a: it comes twice"));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing half done is left: {left:?}");
}

#[test]
fn the_public_table_of_features_is_read_and_converted() {
    let folder = tempfile::tempdir().unwrap();
    let (table, output) = (folder.path().join("features.tsv"), folder.path().join("views.bin"));
    let vectors = |k: usize| (0..VIEWS * 2).map(|i| (i + k) as f32).collect::<Vec<f32>>();
    let line = |id: &str, vectors: &[f32]| {
        let bytes: Vec<u8> = vectors.iter().flat_map(|x| x.to_le_bytes()).collect();
        format!("scan\t{id}\t640\t480\t60\t{}", STANDARD.encode(bytes))
    };
    std::fs::write(&table, format!("{}\r\n\n{}", line("a", &vectors(0)), line("b", &vectors(9)))).unwrap();
    let heard = std::cell::Cell::new(0);
    assert_eq!(tsv::convert(&table, &output, &|bytes| heard.set(bytes)).unwrap(), 2);
    let empty_line = 1;
    assert_eq!(heard.get() + empty_line, std::fs::metadata(&table).unwrap().len(), "the share comes to an end");
    let read = Vectors::open(&output).unwrap();
    assert_eq!(read.row(read.find("scan", "b").unwrap()), vectors(9));
    for (text, part) in [
        (String::new(), "no line"),
        ("a\tb".into(), "line 1: 2 fields instead of 6"),
        (format!("{}\nscan\tb\t1\t1\t1\t???", line("a", &vectors(0))), "line 2: the features are not base64"),
        (line("a", &vectors(0)[1..]), "284 bytes of features are not 36 vectors"),
        (format!("{}\n{}", line("a", &vectors(0)), line("b", &[0.0; VIEWS])), "36 numbers instead of 36 views of 2"),
        (format!("{}\n{}", line("a", &vectors(0)), line("a", &vectors(0))), "viewpoint a: it comes twice"),
    ] {
        std::fs::write(&table, text).unwrap();
        let fresh = folder.path().join("fresh.bin");
        let error = tsv::convert(&table, &fresh, &|_| {}).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(!fresh.exists());
    }
}

#[test]
fn vectors_of_the_real_houses() {
    let folder =
        std::env::var_os("ILIAD_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from).join("nav");
    if !folder.exists() {
        println!("skipped: no NAV data at {}", folder.display());
        return;
    }
    let data = NavData::load(&folder).expect("the data is intact");
    let names = data.names.iter().take(NAMES).map(|name| name.name.as_str());
    let semantic = Semantic::new(names, NAMES + GEOMETRY, SCALE).unwrap();
    let (mut lengths, mut filled, mut views) = (0.0, 0, 0);
    for (scan, graph) in data.graphs.iter().step_by(6) {
        for viewpoint in (0..graph.len()).step_by(5) {
            let vectors = semantic.encode(graph, viewpoint, glimpses(graph, &data.objects[scan], viewpoint));
            for view in vectors.chunks(semantic.dim()) {
                assert!(view.iter().all(|x| x.is_finite() && (-SCALE..=3.0 * SCALE).contains(x)), "{scan} {viewpoint}");
                let length = view.iter().map(|x| x * x).sum::<f32>().sqrt();
                lengths += f64::from(length);
                filled += usize::from(length > 0.0);
                views += 1;
            }
        }
    }
    let mean = lengths / filled as f64;
    println!("{views} views, {filled} not empty, mean length of these {mean:.2}");
    assert!(filled * 10 > views * 5 && (5.0..30.0).contains(&mean));
}
