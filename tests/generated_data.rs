//! Digests of everything that the program generates from its built-in data: houses, requests, tasks, experiment tables. A
//! run's tasks follow from its seed, so a change of these digests makes stored runs and checkpoints train on other data.

use iliad::protocol::Split;
use iliad::registry::Registry;
use iliad::rng::stream;
use iliad::task::nav::generated::{Generated, Size};
use iliad::task::nav::house::House;
use iliad::task::nav::phrasing::requests;
use iliad::task::nav::phrasing::trace::Tracer;
use iliad::task::nav::scene::{Content, Scene, generated_names};
use iliad::task::regex::grammar::Grammar;
use sha2::{Digest, Sha256};

/// The digest of values as JSON lines.
fn digest<T: serde::Serialize>(values: impl IntoIterator<Item = T>) -> String {
    let mut hash = Sha256::new();
    for value in values {
        hash.update(serde_json::to_vec(&value).expect("JSON"));
        hash.update(b"\n");
    }
    hex::encode(&hash.finalize()[..8])
}

#[test]
fn houses_are_those_of_their_seeds() {
    assert_eq!(digest((0..21).map(House::generate)), "1daa583f70c40ffc");
}

#[test]
fn names_of_views_keep_their_order() {
    assert_eq!(digest([generated_names()]), "93a9b7980ea70390");
}

/// Requests for many short and long walks, so that rare phrasings occur as well.
#[test]
fn requests_are_those_of_their_seeds() {
    let mut texts = Vec::new();
    for seed in 0..6 {
        let scene = Scene::generated(House::generate(seed)).expect("sound");
        let Content::Generated { house, sights, .. } = &scene.content else { unreachable!() };
        let tracer = Tracer::new(house, &scene.graph, sights);
        for goal in (1..scene.graph.len()).step_by(3) {
            let start = (goal * 7) % scene.graph.len();
            let path = scene.graph.shortest_path(start, goal).expect("connected");
            if path.len() < 2 {
                continue;
            }
            let mut chance = stream(seed, "digest", goal as u64);
            texts.extend(requests(&tracer, (goal % 12) as u8, &path, &mut chance).into_iter().map(|r| r.text));
        }
    }
    assert!(texts.len() > 500, "{}", texts.len());
    assert_eq!(digest(texts), "f0c8083ad30b4017");
}

#[test]
fn the_built_in_nav_corpora_are_those_of_their_seeds() {
    let corpora = [1, 2].map(|seed| {
        let Generated { corpus, words, .. } = Generated::new(seed, &Size::tiny(), &|_, _| {});
        digest([&corpus.train, &corpus.validation, &corpus.test]) + " " + &digest([&words])
    });
    assert_eq!(corpora, ["0f21b93fad7778cd f820e81265a5cd2d", "9790b424fcca0081 f076846ff26616f4"]);
}

#[test]
fn the_built_in_regex_corpora_are_those_of_their_seeds() {
    let corpora = [Grammar::full(), Grammar::tiny()].map(|grammar| {
        [1, 2].map(|seed| {
            let corpus = grammar.corpus(seed);
            let splits = [&corpus.train, &corpus.validation, &corpus.test].into_iter().map(|items| {
                items.iter().map(|item| (&item.expression, &item.requests, &item.examples)).collect::<Vec<_>>()
            });
            [digest(splits), digest([&corpus.vocabularies]), digest([&corpus.words])].join(" ")
        })
    });
    let full =
        ["7b1202f4a0f4ada4", "437b76ff55dd8504"].map(|splits| format!("{splits} 864af19fc211614c fa518db97dd0a2f9"));
    let tiny =
        ["83a35190d98f792c", "f74bb01b5fd19f1e"].map(|splits| format!("{splits} ca260eb33e72bd62 6a159b2da67e2967"));
    assert_eq!(corpora, [full, tiny]);
}

#[test]
fn phrasings_are_dealt_out_to_the_splits_as_ever() {
    let phrasings = [Grammar::full(), Grammar::tiny()].map(|grammar| {
        digest(grammar.kinds().iter().map(|kind| {
            let splits = [Split::Train, Split::Validation, Split::Test].map(|split| kind.phrasings(split).to_vec());
            (kind.name.clone(), splits)
        }))
    });
    assert_eq!(phrasings, ["fef8061f26d0b9e3", "d54a3e2affbb1294"]);
}

#[test]
fn experiment_tables_keep_their_rows() {
    let mut rows = Vec::new();
    for family in Registry::builtin().families() {
        let tables = ["main", "mixing", "anneal", "efficient"].map(|name| family.tables().table(name).cloned());
        for table in tables.into_iter().flatten().chain(family.tables().figure("curves")) {
            rows.push(format!("{} {} {}", family.name(), table.name, table.title));
            for row in table.rows {
                rows.push(format!("{} {} {:?} {:?}", row.name, row.title, row.settings, row.paper));
            }
        }
    }
    assert_eq!(digest(rows), "00a2174f51afca08");
}
