//! The corpus of real houses and P_ω: small files written here, what is said about damaged ones, and the real data
//! where it is at hand.

use iliad::datafile::write_json;
use iliad::protocol::Split;
use iliad::rng::stream;
use iliad::task::nav::corpus::{Corpus, Item, NavData, Words};
use iliad::task::nav::graph::{Graph, Viewpoint, load_graphs};
use iliad::task::nav::marginal::Marginal;
use iliad::task::nav::tokenise::tokenise;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

fn item() -> Value {
    json!({"id": "7_0", "path_id": 7, "origin": "train", "scan": "h", "heading": 6.2, "distance": 4.0,
        "path": ["a", "b", "c"], "requests": ["Go on."], "tokens": ["go on ."]})
}

fn write_folder(folder: &Path, item: &Value) {
    let v = |id: &str, x: f64| json!({"id": id, "x": x, "y": 0.0, "z": 1.5, "included": true});
    let house = json!({"viewpoints": [v("a", 0.0), v("b", 2.0), v("c", 4.0)], "edges": [[0, 1], [1, 2]]});
    let object = json!({"number": 3, "name": "chair", "x": 1.0, "y": 1.0, "z": 0.5, "width": 0.6, "height": 0.9,
        "sightings": 1, "position": "triangulated", "miss": 0.01});
    let seen = json!({"object": 0, "name": "chair", "heading": 0.8, "elevation": -0.6, "width": 0.4, "height": 0.5,
        "distance": 1.7, "whole": true, "views": [[2, 60], [14, 7]]});
    let objects = json!({"objects": [object], "viewpoints": {
        "a": {"seen": [seen], "inferred": []}, "b": {"seen": [], "inferred": [0]}, "c": {"seen": [], "inferred": []}}});
    write_json(&folder.join("graphs.json.gz"), &json!({"h": house})).unwrap();
    write_json(&folder.join("objects.json.gz"), &json!({"h": objects})).unwrap();
    write_json(&folder.join("r2r.json.gz"), &json!({"simulation": [item], "val": [], "test": []})).unwrap();
    write_json(&folder.join("vocab.json"), &json!({"min_count": 6, "words": [["go", 9], [".", 8], ["<", 7]]})).unwrap();
    let names = json!([{"name": "chair", "objects": 1, "sightings": 1, "variants": ["chair", "chairs"]}]);
    write_json(&folder.join("object_names.json"), &names).unwrap();
}

#[test]
fn a_folder_is_read_and_written_back() {
    let folder = tempfile::tempdir().unwrap();
    write_folder(folder.path(), &item());
    let data = NavData::load(folder.path()).expect("sound");
    let first = &data.corpus.split(Split::Train)[0];
    assert_eq!((first.start().viewpoint.as_str(), first.start().heading), ("a", 0), "6.2 rad is nearest to heading 0");
    assert_eq!(first.gold().viewpoints, ["a", "b", "c"]);
    let vocabulary = data.words.vocabulary(2).expect("distinct words");
    assert_eq!((vocabulary.symbols().len(), vocabulary.rows()), (6, 8), "`<` is a special symbol already");
    assert_eq!(data.objects["h"].viewpoints["a"].seen[0].views, [(2, 60), (14, 7)]);
    let (again, once_more) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    data.corpus.save(again.path()).expect("written");
    data.corpus.save(once_more.path()).expect("written");
    let bytes = |folder: &Path| std::fs::read(folder.join("r2r.json.gz")).unwrap();
    assert_eq!(bytes(again.path()), bytes(once_more.path()), "the same corpus gives the same bytes");
    assert_eq!(Corpus::load(again.path(), &data.graphs).expect("sound"), data.corpus);
}

#[test]
fn damage_is_named_with_file_and_item() {
    let change = |field: &str, value: Value| {
        let mut changed = item();
        changed[field] = value;
        changed
    };
    for (item, part) in [
        (change("scan", json!("q")), "no house \"q\""),
        (change("path", json!(["a", "q"])), "no viewpoint \"q\""),
        (change("path", json!(["a", "c"])), "no edge joins a and c"),
        (change("path", json!([])), "`path` is empty"),
        (change("requests", json!([])), "0 `requests` and 1 `tokens`"),
        (change("requests", json!([" "])), "is empty"),
        (change("heading", json!("north")), "invalid type"),
        (json!({"id": "1"}), "missing field"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write_folder(folder.path(), &item);
        let error = NavData::load(folder.path()).expect_err(part).to_string();
        assert!(error.contains(part) && error.contains("r2r.json.gz: simulation item 1:"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    for (file, text, parts) in [
        ("r2r.json.gz", json!({"simulation": [], "val": []}), ["r2r.json.gz", "`test` is missing"]),
        ("vocab.json", json!({"min_count": 1, "words": [["a", 2], ["a", 1]]}), ["vocab.json", "`a` twice"]),
        ("object_names.json", json!({}), ["object_names.json", "expected a sequence"]),
        (
            "objects.json.gz",
            json!({"h": {"objects": [], "viewpoints": {"a": {"seen": [], "inferred": [4]}}}}),
            ["house h, viewpoint a", "object 4 is not there"],
        ),
        (
            "objects.json.gz",
            json!({"h": {"objects": [], "viewpoints": {"q": {"seen": [], "inferred": []}}}}),
            ["house h, viewpoint q", "does not have it"],
        ),
    ] {
        write_folder(folder.path(), &item());
        write_json(&folder.path().join(file), &text).unwrap();
        let error = NavData::load(folder.path()).expect_err(file).to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        std::fs::remove_file(folder.path().join(file)).unwrap();
        assert!(NavData::load(folder.path()).expect_err(file).to_string().contains("cannot be read"));
    }
}

#[test]
fn words_are_counted_most_frequent_first() {
    let with = |tokens: &str| Item { tokens: vec![tokens.into()], ..serde_json::from_value(item()).unwrap() };
    let words = Words::count(&[with("b a b ."), with("c b a .")], 2);
    assert_eq!(words.words, [("b".to_owned(), 3), (".".to_owned(), 2), ("a".to_owned(), 2)]);
}

/// A line of nine viewpoints, one apart, with a far one that no edge leads to.
fn line() -> Graph {
    let at = |i: usize| Viewpoint { id: i.to_string(), position: [i as f64, 0.0, 0.0] };
    Graph::new((0..10).map(at).collect(), &(0..8).map(|i| (i, i + 1)).collect::<Vec<_>>()).unwrap()
}

#[test]
fn the_marginal_is_uniform_over_paths_of_two_to_six_edges() {
    let graph = line();
    let mut chance = stream(1, "marginal test", 0);
    let mut ends: BTreeMap<usize, usize> = BTreeMap::new();
    for _ in 0..5000 {
        let path = Marginal::ShortestPaths.sample(&graph, 0, &mut chance);
        assert!(path.iter().copied().eq(0..path.len()), "{path:?}");
        *ends.entry(path.len() - 1).or_default() += 1;
    }
    assert_eq!(ends.keys().copied().collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
    // 1000 each; the standard deviation is 28.
    assert!(ends.values().all(|n| n.abs_diff(1000) < 150), "{ends:?}");
}

#[test]
fn the_authors_marginal_cuts_paths_to_any_viewpoint() {
    let graph = line();
    let mut chance = stream(1, "marginal test", 1);
    let lengths: HashSet<usize> = (0..2000).map(|_| Marginal::Prefixes.sample(&graph, 0, &mut chance).len()).collect();
    assert_eq!(lengths, HashSet::from([2, 3, 4, 5, 6, 7]), "a neighbour as goal gives two viewpoints");
}

#[test]
fn small_and_lonely_places_have_what_there_is() {
    let mut chance = stream(1, "marginal test", 2);
    for marginal in [Marginal::ShortestPaths, Marginal::Prefixes] {
        assert_eq!(marginal.sample(&line(), 9, &mut chance), [9]);
        let pair = |id: &str, x| Viewpoint { id: id.into(), position: [x, 0.0, 0.0] };
        let two = Graph::new(vec![pair("a", 0.0), pair("b", 1.0)], &[(0, 1)]).unwrap();
        assert_eq!(marginal.sample(&two, 0, &mut chance), [0, 1]);
    }
}

#[test]
fn the_real_data_is_what_its_readme_says() {
    let folder =
        std::env::var_os("ILIAD_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from).join("nav");
    if !folder.exists() {
        println!("skipped: no NAV data at {}", folder.display());
        return;
    }
    let begun = std::time::Instant::now();
    let data = NavData::load(&folder).expect("the data is intact");
    println!("loaded in {:?}", begun.elapsed());
    let splits = [Split::Train, Split::Validation, Split::Test].map(|split| data.corpus.split(split));
    assert_eq!(splits.map(<[Item]>::len), [4315, 2100, 2349]);
    let mut shortest = 0;
    for (split, items) in splits.iter().enumerate() {
        for item in *items {
            assert_eq!(item.requests.len(), if split == 0 { 3 } else { 1 });
            for (request, tokens) in item.requests.iter().zip(&item.tokens) {
                assert_eq!(tokenise(request).join(" "), *tokens);
            }
            let graph = &data.graphs[&item.scan];
            let path: Vec<usize> = item.path.iter().map(|id| graph.find(id).unwrap()).collect();
            let length: f64 = path.windows(2).map(|pair| graph.edge_length(pair[0], pair[1])).sum();
            // Positions are rounded to a millimetre.
            shortest += usize::from(length < graph.distance(path[0], path[path.len() - 1]) + 2e-3);
        }
    }
    assert_eq!(shortest, 8740);
    let houses = |items: &[Item]| items.iter().map(|item| item.scan.clone()).collect::<HashSet<_>>();
    assert!(houses(splits[2]).is_disjoint(&houses(splits[0])) && houses(splits[2]).is_disjoint(&houses(splits[1])));
    assert_eq!(data.words.vocabulary(0).unwrap().rows(), 4 + 892);
    assert_eq!(Words::count(splits[0], 6), data.words, "the words are those of the simulation split");
    assert_eq!(data.objects.values().map(|house| house.objects.len()).sum::<usize>(), 17_289);
    let graphs = load_graphs(&folder).unwrap();
    let mut chance = stream(1, "marginal test", 3);
    for graph in graphs.values() {
        for start in (0..graph.len()).step_by(10) {
            let path = Marginal::ShortestPaths.sample(graph, start, &mut chance);
            assert_eq!(graph.shortest_path(start, path[path.len() - 1]), Some(path));
        }
    }
}
