//! Objects of a house, and which of them are seen from where.

use super::action::VIEWS;
use super::graph::{Graph, Graphs};
use crate::datafile::{DataError, Faults, read_json};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// An object of a house.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// Its number in the source.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// Centre in metres.
    pub x: f64,
    /// Centre in metres.
    pub y: f64,
    /// Centre in metres, up.
    pub z: f64,
    /// Rough width in metres.
    pub width: f64,
    /// Rough height in metres.
    pub height: f64,
    /// Viewpoints that see it.
    pub sightings: u64,
    /// The source of its centre: `triangulated` or `assumed`.
    pub position: String,
    /// Mean angle by which the lines of sight miss the centre.
    pub miss: Option<f64>,
}

/// An object as it is seen from a viewpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sighting {
    /// Index of the object.
    pub object: usize,
    /// Its name.
    pub name: String,
    /// Direction of its centre.
    pub heading: f64,
    /// Direction of its centre.
    pub elevation: f64,
    /// Angular width.
    pub width: f64,
    /// Angular height.
    pub height: f64,
    /// Distance in metres, where its position is known.
    pub distance: Option<f64>,
    /// False where an image edge cuts it off in every view.
    pub whole: bool,
    /// Views that show it, each with the share of the view that it covers, in thousandths.
    pub views: Vec<(u8, u16)>,
}

/// The objects that are seen from a viewpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sightings {
    /// Objects that were seen from here.
    pub seen: Vec<Sighting>,
    /// Further objects, by index, that are probably visible: seen from viewpoints in this one's line of sight.
    pub inferred: Vec<usize>,
}

/// The objects of one house.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Objects {
    /// The objects.
    pub objects: Vec<Object>,
    /// The objects that are seen from each viewpoint, by its name.
    pub viewpoints: HashMap<String, Sightings>,
}

/// A name of objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectName {
    /// The name.
    pub name: String,
    /// Objects that have it.
    pub objects: u64,
    /// Number of times that they are seen.
    pub sightings: u64,
    /// Spellings that became this name.
    pub variants: Vec<String>,
}

/// Reads `objects.json.gz` of a data folder. Houses without a graph and graphs without objects are fine.
///
/// # Errors
/// Names the file, house and viewpoint, and says what is wrong.
pub(super) fn load_objects(
    folder: &Path,
    graphs: &Graphs,
    faults: &mut Faults<'_>,
) -> Result<BTreeMap<String, Objects>, DataError> {
    let path = folder.join("objects.json.gz");
    let houses: BTreeMap<String, Objects> = read_json(&path)?;
    for (scan, house) in &houses {
        let Some(graph) = graphs.get(scan) else { continue };
        for (id, sightings) in &house.viewpoints {
            if let Err(what) = check(house, graph, id, sightings) {
                faults.note(DataError::content(&path, format!("house {scan}, viewpoint {id}: {what}")))?;
            }
        }
    }
    Ok(houses)
}

fn check(house: &Objects, graph: &Graph, id: &str, sightings: &Sightings) -> Result<(), String> {
    if graph.find(id).is_none() {
        return Err("the graph of the house does not have it".into());
    }
    let mut mentioned = sightings.seen.iter().map(|s| s.object).chain(sightings.inferred.iter().copied());
    if let Some(object) = mentioned.find(|object| *object >= house.objects.len()) {
        return Err(format!("object {object} is not there; the house has {}", house.objects.len()));
    }
    let mut views = sightings.seen.iter().flat_map(|s| &s.views);
    match views.find(|(view, _)| usize::from(*view) >= VIEWS) {
        Some((view, _)) => Err(format!("there is no view {view}; they count from 0 to 35")),
        None => Ok(()),
    }
}

/// Reads `object_names.json` of a data folder.
///
/// # Errors
/// When it cannot be read or is malformed.
pub(super) fn load_names(folder: &Path) -> Result<Vec<ObjectName>, DataError> {
    read_json(&folder.join("object_names.json"))
}
