//! The kinds of things that houses are furnished with, and the rooms that they stand in: the contents of `catalogue.toml`.

use crate::datafile::built_in;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Where a piece goes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spot {
    /// On the floor, its back to a wall.
    Wall,
    /// On the floor in a corner, its back to a wall.
    Corner,
    /// On the floor, away from the walls.
    Middle,
    /// Around a piece of this kind, facing it.
    Around(String),
    /// In front of a piece of this kind.
    Before(String),
    /// At the side of a piece of this kind, its back to the same wall.
    Beside(String),
    /// On top of a piece of one of these kinds.
    On(Vec<String>),
    /// Flat on the floor; one walks over it.
    Floor,
    /// On a wall, its lower edge so high.
    Hung(f64),
    /// Under the ceiling, in the middle.
    Ceiling,
}

/// A kind of thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The everyday name.
    pub kind: String,
    /// Width, depth, height in metres.
    pub size: [f64; 3],
    /// Where it goes.
    pub spot: Spot,
    /// Its colours.
    pub colours: Vec<String>,
    /// Its materials.
    pub materials: Vec<String>,
}

/// A piece that a kind of room gets.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "(String, usize, f64)")]
pub struct Furnishing {
    /// The piece's name.
    pub kind: String,
    /// The largest number of them.
    pub most: usize,
    /// The chance of each.
    pub chance: f64,
}

impl From<(String, usize, f64)> for Furnishing {
    fn from((kind, most, chance): (String, usize, f64)) -> Furnishing {
        Furnishing { kind, most, chance }
    }
}

/// `catalogue.toml` as it is written; the file describes its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    palettes: BTreeMap<String, Vec<String>>,
    pieces: Vec<StoredPiece>,
    rooms: Vec<StoredRoom>,
    otherwise: Vec<Furnishing>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPiece {
    kind: String,
    size: [f64; 3],
    place: Spot,
    colours: Choice,
    materials: Choice,
}

/// A list of words, or the name of a palette.
#[derive(Deserialize)]
#[serde(untagged)]
enum Choice {
    List(Vec<String>),
    Palette(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRoom {
    kinds: Vec<String>,
    pieces: Vec<Furnishing>,
}

struct Catalogue {
    pieces: Vec<Piece>,
    rooms: Vec<StoredRoom>,
    otherwise: Vec<Furnishing>,
}

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let stored: Stored = built_in("catalogue.toml", include_str!("catalogue.toml"));
    // A palette that is not there leaves an empty list, which the test below finds.
    let words = |choice: Choice| match choice {
        Choice::List(words) => words,
        Choice::Palette(name) => stored.palettes.get(&name).cloned().unwrap_or_default(),
    };
    let piece = |StoredPiece { kind, size, place, colours, materials }| Piece {
        kind,
        size,
        spot: place,
        colours: words(colours),
        materials: words(materials),
    };
    Catalogue {
        pieces: stored.pieces.into_iter().map(piece).collect(),
        rooms: stored.rooms,
        otherwise: stored.otherwise,
    }
});

/// All kinds of things.
pub fn pieces() -> &'static [Piece] {
    &CATALOGUE.pieces
}

/// The piece of a name.
pub fn find(kind: &str) -> Option<&'static Piece> {
    pieces().iter().find(|piece| piece.kind == kind)
}

/// The pieces that a room of a kind gets, the most important first.
pub fn furnishings(room: &str) -> &'static [Furnishing] {
    let known = CATALOGUE.rooms.iter().find(|known| known.kinds.iter().any(|kind| kind == room));
    known.map_or(&CATALOGUE.otherwise, |known| &known.pieces)
}

#[cfg(test)]
mod tests {
    use super::super::layout::KINDS;
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_file_is_whole_and_refers_to_what_it_has() {
        let names: HashSet<&str> = pieces().iter().map(|piece| piece.kind.as_str()).collect();
        assert_eq!(names.len(), pieces().len(), "a name occurs twice");
        for piece in pieces() {
            assert!(!piece.colours.is_empty() && !piece.materials.is_empty(), "{piece:?}");
            assert!(piece.size.iter().all(|x| (0.01..3.0).contains(x)), "{piece:?}");
            let others: Vec<&String> = match &piece.spot {
                Spot::Around(kind) | Spot::Before(kind) | Spot::Beside(kind) => vec![kind],
                Spot::On(kinds) => kinds.iter().collect(),
                _ => Vec::new(),
            };
            assert!(others.iter().all(|other| names.contains(other.as_str())), "{piece:?}");
        }
        for room in &CATALOGUE.rooms {
            assert!(room.kinds.iter().all(|kind| KINDS.contains(&kind.as_str())), "{:?}", room.kinds);
        }
        for furnishing in CATALOGUE.rooms.iter().flat_map(|room| &room.pieces).chain(&CATALOGUE.otherwise) {
            assert!(names.contains(furnishing.kind.as_str()), "{furnishing:?}");
            assert!(furnishing.most > 0 && (0.0..=1.0).contains(&furnishing.chance), "{furnishing:?}");
        }
        let furnished: HashSet<&str> =
            CATALOGUE.rooms.iter().flat_map(|room| &room.pieces).map(|f| f.kind.as_str()).collect();
        assert_eq!(furnished, names, "every piece stands in some room");
    }
}
