//! REVERIE's object boxes: from rectangles in the 36 images of a viewpoint to directions, and from the directions of
//! several viewpoints to places.
//!
//! A folder of files `<scan>_<viewpoint>.json`, each `{viewpoint: {number: {name, visible_pos, bbox2d}}}`: for every view in
//! `visible_pos` a box `[x, y, width, height]` in pixels of a 640 × 480 image.

use super::super::action::{VIEWS, bearing, elevation, view_direction, wrapped};
use super::super::graph::distance_between;
use super::super::objects::{Object, ObjectName, Objects, Sighting, Sightings};
use super::{SourceHouse, rounded};
use crate::datafile::{DataError, read_json};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::f64::consts::TAU;
use std::path::Path;

/// Size of an image, and its focal length, in pixels.
const IMAGE: (f64, f64) = (640.0, 480.0);
const FOCAL: f64 = 415.69;

/// An object that only one viewpoint sees is put so far along the line of sight.
const ASSUMED: f64 = 1.5;

/// Lines of sight that meet farther away than this do not tell a place.
const FARTHEST: f64 = 8.0;

/// Inferred objects are within this distance, and no more than so many.
const INFERRED: (f64, usize) = (8.0, 24);

#[derive(Deserialize)]
struct Boxes {
    name: String,
    visible_pos: Vec<u8>,
    bbox2d: Vec<[f64; 4]>,
}

/// An object as one viewpoint sees it.
struct Seen {
    viewpoint: usize,
    number: u64,
    name: String,
    heading: f64,
    elevation: f64,
    width: f64,
    height: f64,
    whole: bool,
    views: Vec<(u8, u16)>,
}

/// Result of [`read_boxes`]: objects by house, and their names, most sightings first.
type Found = (BTreeMap<String, Objects>, Vec<ObjectName>);

/// Reads all boxes of the houses.
pub(in super::super) fn read_boxes(
    folder: &Path,
    houses: &BTreeMap<String, SourceHouse>,
    told: &dyn Fn(u64, u64),
) -> Result<Found, DataError> {
    let mut seen: BTreeMap<&str, Vec<Seen>> = BTreeMap::new();
    let mut spellings: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(DataError::read(folder))? {
        paths.push(entry.map_err(DataError::read(folder))?.path());
    }
    paths.sort();
    paths.retain(|path| path.extension().is_some_and(|e| e == "json"));
    for (path, done) in paths.iter().zip(1..) {
        told(done, paths.len() as u64);
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let Some((scan, house)) = stem.rsplit_once('_').and_then(|(scan, _)| houses.get_key_value(scan)) else {
            return Err(DataError::content(
                path,
                "its name is not <scan>_<viewpoint>.json of a house that has a graph",
            ));
        };
        let file: BTreeMap<String, BTreeMap<String, Boxes>> = read_json(path)?;
        for (id, objects) in file {
            let wrong = |what: String| DataError::content(path, format!("viewpoint {id}: {what}"));
            let Some(viewpoint) = house.stored.viewpoints.iter().position(|v| v.id == id) else {
                return Err(wrong("the graph of the house does not have it".into()));
            };
            if !house.stored.viewpoints[viewpoint].included {
                continue;
            }
            for (number, boxes) in objects {
                let number = number.parse().map_err(|_| wrong(format!("{number:?} is no number of an object")))?;
                let views = boxes.visible_pos.iter().all(|view| usize::from(*view) < VIEWS);
                if boxes.visible_pos.len() != boxes.bbox2d.len() || boxes.bbox2d.is_empty() || !views {
                    return Err(wrong(format!("object {number}: `visible_pos` and `bbox2d` do not fit together")));
                }
                spellings.entry(normalised(&boxes.name)).or_default().insert(boxes.name.clone());
                seen.entry(scan).or_default().push(direction(viewpoint, number, &boxes));
            }
        }
    }
    // Plain plurals are the same as their singulars, where these exist.
    let singular = |name: &str| {
        let shorter = name.strip_suffix('s').filter(|short| spellings.contains_key(*short));
        shorter.unwrap_or(name).to_owned()
    };
    let mut names: BTreeMap<String, ObjectName> = BTreeMap::new();
    for (name, variants) in &spellings {
        let entry = names.entry(singular(name)).or_insert_with_key(|name| ObjectName {
            name: name.clone(),
            objects: 0,
            sightings: 0,
            variants: Vec::new(),
        });
        entry.variants.extend(variants.iter().cloned());
        entry.variants.sort();
    }
    let mut found = BTreeMap::new();
    for (scan, house) in houses {
        let mut seen = seen.remove(scan.as_str()).unwrap_or_default();
        seen.iter_mut().for_each(|s| s.name = singular(&s.name));
        let objects = place(house, seen);
        for object in &objects.objects {
            if let Some(name) = names.get_mut(&object.name) {
                name.objects += 1;
                name.sightings += object.sightings;
            }
        }
        found.insert(scan.clone(), objects);
    }
    let mut names: Vec<ObjectName> = names.into_values().collect();
    names.sort_by(|a, b| b.sightings.cmp(&a.sightings).then_with(|| a.name.cmp(&b.name)));
    Ok((found, names))
}

/// Lower case, `#` to space, cut at a slash, backslash or parenthesis, other marks and closing digits dropped.
fn normalised(name: &str) -> String {
    let name = name.to_lowercase().replace('#', " ");
    let name = name.split(['/', '\\', '(']).next().unwrap_or_default();
    let letters: String = name.chars().filter(|c| c.is_alphanumeric() || *c == ' ').collect();
    let words: Vec<&str> = letters.split_whitespace().collect();
    let name = words.join(" ");
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
    if name.is_empty() { "object".into() } else { name.to_owned() }
}

/// Heading and elevation of a pixel of a view.
fn ray(view: u8, x: f64, y: f64) -> (f64, f64) {
    let (heading, level) = view_direction(view);
    let (right, up) = ((x - IMAGE.0 / 2.0) / FOCAL, (IMAGE.1 / 2.0 - y) / FOCAL);
    let ahead = level.cos() - up * level.sin();
    let rise = level.sin() + up * level.cos();
    (heading + right.atan2(ahead), rise.atan2(right.hypot(ahead)))
}

/// The direction and angular size of an object: from the view in which its box is whole and most central; if there is none,
/// from what all boxes cover together.
fn direction(viewpoint: usize, number: u64, boxes: &Boxes) -> Seen {
    let pairs = || boxes.visible_pos.iter().copied().zip(&boxes.bbox2d);
    let whole = |[x, y, w, h]: &[f64; 4]| *x > 0.0 && *y > 0.0 && x + w < IMAGE.0 - 1.0 && y + h < IMAGE.1 - 1.0;
    let off = |[x, y, w, h]: &[f64; 4]| (x + w / 2.0 - IMAGE.0 / 2.0).hypot(y + h / 2.0 - IMAGE.1 / 2.0);
    let best = pairs().filter(|(_, b)| whole(b)).min_by(|a, b| off(a.1).total_cmp(&off(b.1)));
    let used: Vec<(u8, &[f64; 4])> = match best {
        Some(best) => vec![best],
        None => pairs().collect(),
    };
    // Angles around the first box, so that nothing breaks at 0.
    let (middle, _) = ray(used[0].0, used[0].1[0] + used[0].1[2] / 2.0, used[0].1[1] + used[0].1[3] / 2.0);
    let (mut left, mut right, mut low, mut high) = (f64::MAX, f64::MIN, f64::MAX, f64::MIN);
    for (view, [x, y, w, h]) in &used {
        for (px, py) in [(*x, y + h / 2.0), (x + w, y + h / 2.0), (x + w / 2.0, *y), (x + w / 2.0, y + h)] {
            let (heading, up) = ray(*view, px, py);
            let aside = wrapped(heading - middle);
            (left, right) = (left.min(aside), right.max(aside));
            (low, high) = (low.min(up), high.max(up));
        }
    }
    let share = |[_, _, w, h]: &[f64; 4]| ((w * h / (IMAGE.0 * IMAGE.1) * 1000.0).round() as u16).clamp(1, 1000);
    let mut views: Vec<(u8, u16)> = pairs().map(|(view, b)| (view, share(b))).collect();
    views.sort_unstable();
    Seen {
        viewpoint,
        number,
        name: normalised(&boxes.name),
        heading: (middle + (left + right) / 2.0).rem_euclid(TAU),
        elevation: (low + high) / 2.0,
        width: right - left,
        height: high - low,
        whole: best.is_some(),
        views,
    }
}

/// Objects with their places, and what is seen from each included viewpoint.
fn place(house: &SourceHouse, seen: Vec<Seen>) -> Objects {
    let mut by_number: BTreeMap<u64, Vec<Seen>> = BTreeMap::new();
    seen.into_iter().for_each(|s| by_number.entry(s.number).or_default().push(s));
    let mut objects = Vec::new();
    let mut sightings: Vec<Sightings> = house.stored.viewpoints.iter().map(|_| Sightings::default()).collect();
    for (index, (number, seen)) in by_number.into_iter().enumerate() {
        let lines: Vec<([f64; 3], [f64; 3])> = seen.iter().map(|s| (house.places[s.viewpoint], unit(s))).collect();
        let met = meet(&lines);
        let centre = met.unwrap_or_else(|| {
            let points = lines.iter().map(|(from, along)| [0, 1, 2].map(|k| from[k] + ASSUMED * along[k]));
            points.fold([0.0; 3], |sum, point| [0, 1, 2].map(|k| sum[k] + point[k] / lines.len() as f64))
        });
        let n = seen.len() as f64;
        let away = |s: &Seen| distance_between(&house.places[s.viewpoint], &centre);
        let size = |angle: fn(&Seen) -> f64| {
            seen.iter().map(|s| 2.0 * away(s) * (angle(s).min(2.8) / 2.0).tan()).sum::<f64>() / n
        };
        let miss = met.map(|_| lines.iter().map(|(from, along)| off_line(from, along, &centre)).sum::<f64>() / n);
        objects.push(Object {
            number,
            name: seen[0].name.clone(),
            x: rounded(centre[0]),
            y: rounded(centre[1]),
            z: rounded(centre[2]),
            width: (size(|s| s.width) * 100.0).round() / 100.0,
            height: (size(|s| s.height) * 100.0).round() / 100.0,
            sightings: seen.len() as u64,
            position: if met.is_some() { "triangulated".into() } else { "assumed".into() },
            miss: miss.map(rounded),
        });
        for s in seen {
            let distance = met.map(|_| rounded(distance_between(&house.places[s.viewpoint], &centre)));
            sightings[s.viewpoint].seen.push(Sighting {
                object: index,
                name: s.name,
                heading: rounded(s.heading),
                elevation: rounded(s.elevation),
                width: rounded(s.width),
                height: rounded(s.height),
                distance,
                whole: s.whole,
                views: s.views,
            });
        }
    }
    let boxed: Vec<Vec<usize>> = sightings.iter().map(|s| s.seen.iter().map(|s| s.object).collect()).collect();
    let included = |v: usize| house.stored.viewpoints[v].included;
    for here in (0..sightings.len()).filter(|v| included(*v)) {
        let from = house.places[here];
        let sees = |there: &usize| included(*there) && (house.visible[here][*there] || house.visible[*there][here]);
        let around: BTreeSet<usize> =
            (0..boxed.len()).filter(sees).flat_map(|there| boxed[there].iter().copied()).collect();
        let mut inferred: Vec<(f64, usize)> = around
            .into_iter()
            .filter(|object| !boxed[here].contains(object))
            .map(|object| (distance_between(&from, &centre_of(&objects[object])), object))
            .filter(|(distance, _)| *distance <= INFERRED.0)
            .collect();
        inferred.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        sightings[here].inferred = inferred.into_iter().take(INFERRED.1).map(|(_, object)| object).collect();
        sightings[here].seen.sort_by(|a, b| a.heading.total_cmp(&b.heading));
    }
    let viewpoints: HashMap<String, Sightings> = sightings
        .into_iter()
        .enumerate()
        .filter(|(v, _)| included(*v))
        .map(|(v, s)| (house.stored.viewpoints[v].id.clone(), s))
        .collect();
    Objects { objects, viewpoints }
}

fn centre_of(object: &Object) -> [f64; 3] {
    [object.x, object.y, object.z]
}

fn unit(seen: &Seen) -> [f64; 3] {
    let flat = seen.elevation.cos();
    [flat * seen.heading.sin(), flat * seen.heading.cos(), seen.elevation.sin()]
}

/// The angle by which a line of sight misses a point.
fn off_line(from: &[f64; 3], along: &[f64; 3], point: &[f64; 3]) -> f64 {
    let (heading, up) = (bearing(from, point), elevation(from, point));
    let toward = [up.cos() * heading.sin(), up.cos() * heading.cos(), up.sin()];
    (0..3).map(|k| along[k] * toward[k]).sum::<f64>().clamp(-1.0, 1.0).acos()
}

/// The point nearest to all lines (least squares); `None` when they are too few, hardly cross, or it lies behind or far away.
fn meet(lines: &[([f64; 3], [f64; 3])]) -> Option<[f64; 3]> {
    if lines.len() < 2 {
        return None;
    }
    // Sum of the projections across each line, and of these applied to its origin: a 3 × 3 system.
    let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
    for (from, along) in lines {
        for i in 0..3 {
            for j in 0..3 {
                let across = f64::from(u8::from(i == j)) - along[i] * along[j];
                matrix[i][j] += across;
                right[i] += across * from[j];
            }
        }
    }
    let det = |m: &[[f64; 3]; 3]| {
        m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
            + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    };
    let whole = det(&matrix);
    // Parallel lines give 0; at 6° and two lines it is some 0.02.
    if whole < 0.02 {
        return None;
    }
    let point = [0, 1, 2].map(|k| {
        let mut replaced = matrix;
        (0..3).for_each(|i| replaced[i][k] = right[i]);
        det(&replaced) / whole
    });
    let ahead = lines.iter().all(|(from, along)| {
        let out: f64 = (0..3).map(|k| (point[k] - from[k]) * along[k]).sum();
        (0.1..FARTHEST).contains(&out)
    });
    ahead.then_some(point)
}
