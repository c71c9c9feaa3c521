//! The facts of a house that sentences about walks can name: what each move passes and leads through, and what is near each
//! viewpoint. They are the facts that the page tells in words, and they are worked out once a house.

use crate::nn::log_linear::Feature;

/// A word of a name, and how a move or a place comes by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The word.
    pub word: String,
    /// The feature of a token that is this word here.
    pub matched: Feature,
}

/// A move from one viewpoint to an adjacent one.
#[derive(Clone, Debug)]
pub struct Move {
    /// The viewpoint it leads to.
    pub to: usize,
    /// Its bearing in radians.
    pub bearing: f64,
    /// Its length in metres.
    pub length: f64,
    /// Its parts, and those that it has in the mirror.
    pub parts: [Vec<Feature>; 2],
    /// Words of what it passes and leads through.
    pub named: Vec<Named>,
}

/// A viewpoint as a place to stop at.
#[derive(Clone, Debug)]
pub struct Place {
    /// Position of the eye.
    pub position: [f64; 3],
    /// The moves from here, in the order of the viewpoints that they lead to.
    pub moves: Vec<Move>,
    /// Parts of stopping here.
    pub parts: Vec<Feature>,
    /// Words of what is near and of the room.
    pub named: Vec<Named>,
}

/// A house.
#[derive(Clone, Debug, Default)]
pub struct HouseFacts {
    /// Its viewpoints.
    pub places: Vec<Place>,
}

/// The facts that are told of a move.
#[derive(Clone, Debug, Default)]
pub struct MoveTold {
    /// The viewpoint it leads to.
    pub to: usize,
    /// Name of the opening that it leads through.
    pub opening: Option<String>,
    /// Name of the room that it leaves for another.
    pub leaves: Option<String>,
    /// Name of the room that it enters.
    pub enters: Option<String>,
    /// Things beside it, in order: the name, and whether it is on the right.
    pub passed: Vec<(String, bool)>,
}

/// The facts that are told of a viewpoint.
#[derive(Clone, Debug, Default)]
pub struct PlaceTold {
    /// Position of the eye.
    pub position: [f64; 3],
    /// Name of its room.
    pub room: Option<String>,
    /// Names of the things near it, nearest first.
    pub near: Vec<String>,
    /// The moves from here.
    pub moves: Vec<MoveTold>,
}

/// Things of a move or a place that the page names.
const TOLD: usize = 3;

/// Rise of a move that is one of stairs, in metres.
const RISE: f64 = 0.3;

/// The words of a name.
fn words(name: &str) -> impl Iterator<Item = String> {
    name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Adds the words of a name, each once; the first way to come by a word counts.
fn name_words(named: &mut Vec<Named>, name: &str, how: &str) {
    for word in words(name) {
        if named.iter().all(|known| known.word != word) {
            named.push(Named { word, matched: Feature::of("match").and(Feature::of(how)) });
        }
    }
}

impl HouseFacts {
    /// The facts of what is told of each viewpoint.
    pub fn new(told: &[PlaceTold]) -> Self {
        let place = |place: &PlaceTold| Place {
            position: place.position,
            moves: place.moves.iter().map(|one| Move::new(place, one, &told[one.to])).collect(),
            parts: stop_parts(place),
            named: stop_named(place),
        };
        Self { places: told.iter().map(place).collect() }
    }
}

fn stop_parts(place: &PlaceTold) -> Vec<Feature> {
    let mut parts = vec![Feature::of("stop")];
    if let Some(room) = &place.room {
        parts.push(Feature::of(&format!("stop in {room}")));
    }
    let near: Vec<&String> = place.near.iter().take(TOLD).collect();
    if near.is_empty() {
        parts.push(Feature::of("stop near nothing"));
    }
    for (rank, name) in near.into_iter().enumerate() {
        for word in words(name) {
            parts.push(Feature::of(&format!("near {word}")));
            if rank == 0 {
                parts.push(Feature::of(&format!("nearest {word}")));
            }
        }
    }
    parts
}

fn stop_named(place: &PlaceTold) -> Vec<Named> {
    let mut named = Vec::new();
    for (rank, name) in place.near.iter().enumerate() {
        let how = match rank {
            0 => "stop nearest",
            rank if rank < TOLD => "stop near",
            _ => "stop about",
        };
        name_words(&mut named, name, how);
    }
    if let Some(room) = &place.room {
        name_words(&mut named, room, "stop room");
    }
    named
}

impl Move {
    fn new(from: &PlaceTold, told: &MoveTold, to: &PlaceTold) -> Self {
        let (a, b) = (from.position, to.position);
        let length = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        let rise = b[2] - a[2];
        let mut parts = vec![Feature::of("move")];
        let mut named = Vec::new();
        let mut part = |text: String| parts.push(Feature::of(&text));
        part(format!(
            "length {}",
            if length < 1.5 {
                "short"
            } else if length < 3.0 {
                "middle"
            } else {
                "long"
            }
        ));
        if rise.abs() > RISE {
            let way = if rise > 0.0 { "up" } else { "down" };
            part(format!("climbs {way}"));
            name_words(&mut named, way, "climbs");
            name_words(&mut named, "stairs", "climbs");
        }
        match &told.opening {
            Some(opening) => {
                part(format!("through {opening}"));
                part("through".into());
                name_words(&mut named, opening, "through");
            }
            None => part("no opening".into()),
        }
        if let Some(room) = &told.enters {
            part(format!("enters {room}"));
            part("enters".into());
            name_words(&mut named, room, "enters");
        } else {
            part("no room".into());
        }
        for (rank, (name, _)) in told.passed.iter().enumerate() {
            if rank < TOLD {
                words(name).for_each(|word| part(format!("passes {word}")));
            }
            name_words(&mut named, name, if rank < TOLD { "passes" } else { "passes late" });
        }
        if let Some(room) = &told.leaves {
            part(format!("leaves {room}"));
            name_words(&mut named, room, "leaves");
        }
        for name in to.near.iter().take(TOLD) {
            name_words(&mut named, name, "reaches");
        }
        if let Some(room) = &to.room {
            name_words(&mut named, room, "in room");
        }
        let sides = |mirrored: bool| {
            let side =
                |right: bool| Feature::of(if right != mirrored { "passes on the right" } else { "passes on the left" });
            let mut sides: Vec<Feature> = told.passed.iter().take(TOLD).map(|(_, right)| side(*right)).collect();
            sides.dedup();
            sides
        };
        let with = |sides: Vec<Feature>| parts.iter().copied().chain(sides).collect();
        let bearing = (b[0] - a[0]).atan2(b[1] - a[1]);
        Self { to: told.to, bearing, length, parts: [with(sides(false)), with(sides(true))], named }
    }
}
