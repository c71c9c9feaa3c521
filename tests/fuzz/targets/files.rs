//! Files that come in: descriptions, episodes, corpora, checkpoints and weights. The first byte says what an input is.

use iliad::corpora::Corpora;
use iliad::import::{self, episodes};
use iliad::nn::artifact::{self, Precision};
use iliad::nn::weights_file::WeightsFile;
use iliad::registry::Registry;
use iliad::store::{Store, StoreError};
use iliad::task::{nav, regex};
use iliad::trainer::checkpoint::{self, Header};
use std::collections::BTreeMap;
use std::path::Path;
use tokio::runtime::Runtime;

/// Pieces of rows, headers and archives.
pub const COLUMNS: &[&str] = &[
    "run_id",
    "task",
    "regex",
    "nav",
    "episode_id",
    "view",
    "pairs",
    "in",
    "out",
    "description",
    "description_id",
    "teacher_id",
    "superseded_by",
    "supersedes",
    "schema_version",
    "kind",
    "skipped",
    "described",
    "source",
    "human",
    "simulated",
    "rating",
    "medium",
    "demonstration",
    "retracted",
    "withdrawn_at",
    "created_at",
    "2026-01-31T12:00:00Z",
    "9999-12-31T23:59:59Z",
    "used_in_updates",
    "seed",
    "id",
    "request",
    "text",
    "people",
    "update",
    "success",
    "null",
    "true",
    "-1",
    "0",
    "1e999",
    "18446744073709551615",
    "9223372036854775807",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\n",
    "\r\n",
    "\u{feff}",
    "\\ud800",
    "PK\u{3}\u{4}",
    "ustar",
    "../",
    "/",
    "words.txt.gz",
    "corpus.json.gz",
    "__metadata__",
    "dtype",
    "F32",
    "shape",
    "data_offsets",
    "format",
    "config",
    "counters",
    "blueprint",
];

/// A file of descriptions: JSON lines, CSV or Parquet. What passes the check can be stored.
pub fn descriptions(data: &[u8]) {
    let Some((first, data)) = data.split_first() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(["rows.jsonl", "rows.csv", "rows.parquet"][usize::from(first % 3)]);
    std::fs::write(&path, data).unwrap();
    let Ok(checked) = import::check(&path, Registry::builtin(), None) else { return };
    assert!(checked.bad.iter().all(|bad| !bad.reason.is_empty() && bad.number > 0));
    if !checked.bad.is_empty() || checked.rows() == 0 {
        return;
    }
    Runtime::new().unwrap().block_on(async {
        let store = Store::open(&folder.path().join("new.sqlite")).await.unwrap();
        match checked.store(&store, Registry::builtin()).await {
            Ok(imported) => {
                assert_eq!(imported.answers, checked.rows());
                assert_eq!(store.export_count(None).await.unwrap(), checked.rows());
            }
            Err(StoreError::Invalid(_) | StoreError::Conflict(_)) => {}
            Err(other) => panic!("what was checked cannot be stored: {other:?}"),
        }
        store.check().await.unwrap();
        store.close().await;
    });
}

/// A file of episodes of an agent elsewhere.
pub fn episodes(data: &[u8]) {
    let read = episodes::read(data).unwrap();
    let lines = data.split(|byte| *byte == b'\n').count();
    assert!(read.len() + read.bad.len() <= lines.max(1));
    assert!(read.bad.iter().all(|bad| bad.reason.ends_with('.')), "{:?}", read.bad);
}

/// A file or an archive of a corpus, under any of the names that decide how it is read.
pub fn corpora(data: &[u8]) {
    const NAMES: [&str; 10] = [
        "x.zip",
        "x.tar",
        "x.tar.gz",
        "corpus.json",
        "corpus.json.gz",
        "words.txt",
        "graphs.json",
        "vocab.json",
        "object_names.json",
        "../../x",
    ];
    let Some((first, data)) = data.split_first() else { return };
    let folder = tempfile::tempdir().unwrap();
    let sent = folder.path().join("sent");
    std::fs::write(&sent, data).unwrap();
    let kept = folder.path().join("corpora");
    let name = NAMES[usize::from(*first) % NAMES.len()];
    let task = ["regex", "nav"][usize::from(*first) / NAMES.len() % 2];
    let format = Registry::builtin().family(task).unwrap().corpus().unwrap();
    let added = Corpora::new(&kept).add("kept", task, &format, &[(name, &sent)], &|_| {});
    let there = |path: &Path| std::fs::read_dir(path).map_or(0, |entries| entries.count());
    assert_eq!(there(folder.path()), 2, "nothing comes beside the folder");
    assert_eq!(there(&kept), usize::from(added.is_ok()), "a corpus is kept whole or not at all");
}

/// A checkpoint as it is, the header of one that is otherwise whole, and weights of another program.
pub fn checkpoints(data: &[u8]) {
    let Some((first, data)) = data.split_first() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    match first % 3 {
        0 => {
            let _ = artifact::load_bytes::<Header>(&path, data);
        }
        1 => {
            let Ok(header) = serde_json::from_slice::<serde_json::Value>(data) else { return };
            let tensor = candle_core::Tensor::new(&[1f32, 2.0], &candle_core::Device::Cpu).unwrap();
            artifact::save(&path, &header, &BTreeMap::from([("a".to_owned(), tensor)]), Precision::Full).unwrap();
            let Ok((header, _)) = checkpoint::load(&path) else { return };
            if let Ok(blueprint) = serde_json::from_value::<regex::agent::Blueprint>(header.blueprint.clone()) {
                let _ = blueprint.check();
            }
            let _ = serde_json::from_value::<nav::agent::Blueprint>(header.blueprint);
        }
        _ => {
            std::fs::write(&path, data).unwrap();
            let _ = WeightsFile::read(&path);
        }
    }
}
