//! Import of the public files of Room-to-Room into the project's own layout ([`super::corpus`]).
//!
//! It reads
//! - `R2R_train.json`, `R2R_val_seen.json`, `R2R_val_unseen.json`: lists of paths with their instructions;
//! - `<scan>_connectivity.json`: viewpoints of a house with poses, and which see and reach each other;
//! - optionally REVERIE's object boxes ([`boxes`]) and the table of image features ([`super::observation::tsv`]).
//!
//! Splits are made as the data's README tells: the unseen houses are the test split; validation has all `val_seen` paths
//! and those [`MOVED`] training paths whose numbers have the smallest hashes; three requests a path are used.

pub mod boxes;

use super::corpus::{Corpus, Item, MIN_COUNT, NavData, Words};
use super::generated::single;
use super::graph::{Graphs, StoredGraph, StoredViewpoint};
use super::observation::tsv;
use super::tokenise::tokenise;
use crate::command_line::progress::{Step, Told};
use crate::datafile::{DataError, read_json, write_json};
use crate::output::folder::{self, Draft, Existing};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Training paths that validation gets; of small files a tenth.
pub const MOVED: usize = 360;

/// Requests of a path that are used.
const REQUESTS: usize = 3;

/// Name of the file with image features.
pub const FEATURES: &str = "features.bin";

/// Where the public files are.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Folder with `R2R_train.json` and its companions.
    pub r2r: PathBuf,
    /// Folder with the connectivity files.
    pub connectivity: PathBuf,
    /// Folder with REVERIE's boxes.
    pub boxes: Option<PathBuf>,
    /// The table of image features.
    pub features: Option<PathBuf>,
}

/// Counts of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// Houses.
    pub houses: usize,
    /// Viewpoints that are part of the environment.
    pub viewpoints: usize,
    /// Items of the simulation split.
    pub train: usize,
    /// Items of the validation split.
    pub validation: usize,
    /// Items of the test split.
    pub test: usize,
    /// Paths left out because they have fewer than three requests.
    pub left_out: usize,
    /// Words of the vocabulary.
    pub words: usize,
    /// Objects.
    pub objects: usize,
    /// Viewpoints with image features.
    pub features: usize,
}

#[derive(Deserialize)]
struct SourcePath {
    path_id: u64,
    scan: String,
    heading: f64,
    distance: f64,
    path: Vec<String>,
    instructions: Vec<String>,
}

#[derive(Deserialize)]
struct SourceViewpoint {
    image_id: String,
    /// Four by four, row by row; the last column is the position.
    pose: Vec<f64>,
    included: bool,
    visible: Vec<bool>,
    unobstructed: Vec<bool>,
}

/// A house as the connectivity files tell it.
pub(super) struct SourceHouse {
    stored: StoredGraph,
    /// Unrounded positions, and which viewpoints see each other, by index into the file.
    places: Vec<[f64; 3]>,
    visible: Vec<Vec<bool>>,
}

/// Names of the files that an import writes.
const FILES: [&str; 6] =
    ["graphs.json.gz", "r2r.json.gz", "vocab.json", "objects.json.gz", "object_names.json", FEATURES];

/// Imports the public files and writes the project's layout into `output`, in the place of older data.
///
/// # Errors
/// As [`import_r2r_into`].
pub fn import_r2r(sources: &Sources, output: &Path) -> Result<ImportReport, DataError> {
    import_r2r_into(sources, output, Existing::Replace, &|_| {})
}

/// Imports as [`import_r2r`] does; `existing` decides about older data, and `told` hears how far it is.
///
/// # Errors
/// Names the file and says what is wrong with it. `output` is then as it was: the data take its place once they are whole
/// and could be read again.
pub fn import_r2r_into(
    sources: &Sources,
    output: &Path,
    existing: Existing,
    told: Told<'_>,
) -> Result<ImportReport, DataError> {
    let step = |what| told(Step { what, done: 0, of: 0 });
    folder::check(output, existing, &FILES)?;
    step("Reading the houses");
    let houses = read_houses(&sources.connectivity)?;
    let graphs: Graphs = houses
        .iter()
        .map(|(scan, house)| match house.stored.graph() {
            Ok(graph) => Ok((scan.clone(), graph)),
            Err(what) => Err(DataError::content(&sources.connectivity, format!("house {scan}: {what}"))),
        })
        .collect::<Result<_, _>>()?;
    let mut report = ImportReport { houses: houses.len(), ..ImportReport::default() };
    report.viewpoints = graphs.values().map(|graph| graph.len()).sum();
    step("Reading the walks");
    let corpus = read_corpus(&sources.r2r, &mut report)?;
    let (objects, names) = match &sources.boxes {
        Some(folder) => {
            let told = |done, of| told(Step { what: "Reading the objects", done, of });
            boxes::read_boxes(folder, &houses, &told)?
        }
        None => (BTreeMap::new(), Vec::new()),
    };
    let words = Words::count(&corpus.train, MIN_COUNT);
    (report.train, report.validation, report.test) = (corpus.train.len(), corpus.validation.len(), corpus.test.len());
    report.words = words.words.len();
    report.objects = objects.values().map(|house| house.objects.len()).sum();

    let stored: BTreeMap<&String, &StoredGraph> = houses.iter().map(|(scan, house)| (scan, &house.stored)).collect();
    let draft = Draft::begin(output, existing, &FILES)?;
    let at = draft.path();
    step("Writing the data and reading them again");
    let write = || -> Result<usize, DataError> {
        write_json(&at.join("graphs.json.gz"), &stored)?;
        corpus.save(at)?;
        write_json(&at.join("vocab.json"), &words)?;
        write_json(&at.join("objects.json.gz"), &objects)?;
        write_json(&at.join("object_names.json"), &names)?;
        // The written data must be usable: paths along edges, requests that say something.
        NavData::load(at)?;
        let Some(table) = &sources.features else { return Ok(0) };
        let of = std::fs::metadata(table).map_err(DataError::read(table))?.len();
        let told = |done| told(Step { what: "Converting the image features", done, of });
        tsv::convert(table, &at.join(FEATURES), &told)
    };
    report.features = write().map_err(|e| e.renamed(|path| draft.named(path)))?;
    draft.finish()?;
    Ok(report)
}

/// Three decimals.
fn rounded(x: f64) -> f64 {
    (x * 1000.0).round() / 1000.0
}

fn read_houses(folder: &Path) -> Result<BTreeMap<String, SourceHouse>, DataError> {
    let mut houses = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(DataError::read(folder))? {
        let path = entry.map_err(DataError::read(folder))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(scan) = name.strip_suffix("_connectivity.json") {
            let house =
                read_json(&path).and_then(|list| house(list).map_err(|what| DataError::content(&path, what)))?;
            houses.insert(scan.to_owned(), house);
        }
    }
    if houses.is_empty() {
        return Err(DataError::content(folder, "there is no file <scan>_connectivity.json in it"));
    }
    Ok(houses)
}

fn house(list: Vec<SourceViewpoint>) -> Result<SourceHouse, String> {
    let n = list.len();
    for viewpoint in &list {
        let id = &viewpoint.image_id;
        if viewpoint.pose.len() != 16 {
            return Err(format!("viewpoint {id}: `pose` has {} numbers instead of 16", viewpoint.pose.len()));
        }
        if viewpoint.unobstructed.len() != n || viewpoint.visible.len() != n {
            return Err(format!("viewpoint {id}: `unobstructed` and `visible` must have {n} entries each"));
        }
    }
    let places: Vec<[f64; 3]> = list.iter().map(|v| [v.pose[3], v.pose[7], v.pose[11]]).collect();
    let joined = |a: usize, b: usize| {
        list[a].included && list[b].included && (list[a].unobstructed[b] || list[b].unobstructed[a])
    };
    let edges = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).filter(|(a, b)| joined(*a, *b)).collect();
    let viewpoints = list
        .iter()
        .zip(&places)
        .map(|(v, [x, y, z])| StoredViewpoint {
            id: v.image_id.clone(),
            x: rounded(*x),
            y: rounded(*y),
            z: rounded(*z),
            included: v.included,
        })
        .collect();
    let visible = list.into_iter().map(|v| v.visible).collect();
    Ok(SourceHouse { stored: StoredGraph { viewpoints, edges }, places, visible })
}

fn read_corpus(folder: &Path, report: &mut ImportReport) -> Result<Corpus, DataError> {
    let mut read = |origin: &str| -> Result<Vec<Item>, DataError> {
        let paths: Vec<SourcePath> = read_json(&folder.join(format!("R2R_{origin}.json")))?;
        let (full, short): (Vec<_>, Vec<_>) = paths.into_iter().partition(|p| p.instructions.len() >= REQUESTS);
        report.left_out += short.len();
        Ok(full.into_iter().map(|path| item(path, origin)).collect())
    };
    let (train, seen, unseen) = (read("train")?, read("val_seen")?, read("val_unseen")?);
    let mut by_hash: Vec<([u8; 32], u64)> =
        train.iter().map(|i| (Sha256::digest(format!("nav-val-{}", i.path_id)).into(), i.path_id)).collect();
    by_hash.sort_unstable();
    by_hash.truncate(MOVED.min(train.len() / 10));
    let moved: std::collections::HashSet<u64> = by_hash.into_iter().map(|(_, path_id)| path_id).collect();
    let (moved, train): (Vec<Item>, Vec<Item>) = train.into_iter().partition(|item| moved.contains(&item.path_id));
    let mut validation: Vec<Item> = seen.into_iter().chain(moved).flat_map(single).collect();
    let mut test: Vec<Item> = unseen.into_iter().flat_map(single).collect();
    for items in [&mut validation, &mut test] {
        items.sort_by(|a, b| a.path_id.cmp(&b.path_id).then_with(|| a.id.cmp(&b.id)));
    }
    Ok(Corpus { train, validation, test })
}

fn item(path: SourcePath, origin: &str) -> Item {
    let tidy = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let requests: Vec<String> = path.instructions.iter().take(REQUESTS).map(tidy).collect();
    Item {
        id: path.path_id.to_string(),
        path_id: path.path_id,
        origin: origin.to_owned(),
        scan: path.scan,
        heading: rounded(path.heading),
        distance: path.distance,
        path: path.path,
        tokens: requests.iter().map(|text| tokenise(text).join(" ")).collect(),
        requests,
    }
}
