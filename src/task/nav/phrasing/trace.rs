//! Facts of a walk through a generated house, step by step: turns, rooms, doors, stairs, things passed, and where it
//! ends. A request is a list of such facts in words; it is true of a walk that has its facts in this order.

use super::super::action::{VIEW_STEP, bearing, wrapped};
use super::super::graph::Graph;
use super::super::house::sight::{Eyes, Seen, Sight};
use super::super::house::walk::opening_crossed;
use super::super::house::{House, Rect};
use std::collections::HashMap;

/// A side of the walker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Left.
    Left,
    /// Right.
    Right,
}

/// A change of direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turn {
    /// To a side by 50° or more.
    To(Side),
    /// To a side by 20° to 60°.
    Slightly(Side),
    /// By 125° or more.
    Around,
    /// By 30° or less.
    Straight,
}

/// Something that a walk passes or ends at; without a colour, of any colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thing<'a> {
    /// The everyday name.
    pub kind: &'a str,
    /// Its colour.
    pub colour: Option<&'a str>,
}

/// A fact about a step of a walk, or about its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fact<'a> {
    /// The walker turns.
    Turn(Turn),
    /// A room is left.
    Leave(&'a str),
    /// A room is entered.
    Enter(&'a str),
    /// The walk leads through an opening of this name.
    Through(&'a str),
    /// Up the stairs.
    Up,
    /// Down the stairs.
    Down,
    /// Past a thing; without a side, on either.
    Pass(Thing<'a>, Option<Side>),
    /// Over a rug.
    Over(Thing<'a>),
    /// Towards a thing ahead.
    Toward(Thing<'a>),
    /// It ends beside a thing.
    Beside(Thing<'a>),
    /// It ends with a thing ahead, near.
    Before(Thing<'a>),
    /// It ends in a room, inside.
    Inside(&'a str),
    /// It ends in a door or archway of a room.
    AtDoor(&'a str),
    /// It ends where stairs that it came up end.
    Top,
    /// It ends where stairs that it came down end.
    Bottom,
    /// It ends on the stairs.
    OnStairs,
}

impl<'a> Fact<'a> {
    /// Whether it is about the end of a walk.
    pub fn ends(&self) -> bool {
        use Fact::{AtDoor, Before, Beside, Bottom, Inside, OnStairs, Top};
        matches!(self, Beside(_) | Before(_) | Inside(_) | AtDoor(_) | Top | Bottom | OnStairs)
    }

    /// Whether a walk of which `full` is true has this fact, which may leave out colour or side.
    fn follows_from(&self, full: &Fact) -> bool {
        let thing = |a: &Thing, b: &Thing| a.kind == b.kind && (a.colour.is_none() || a.colour == b.colour);
        match (self, full) {
            (Fact::Pass(a, side), Fact::Pass(b, other)) => thing(a, b) && (side.is_none() || side == other),
            (Fact::Over(a), Fact::Over(b)) | (Fact::Toward(a), Fact::Toward(b)) => thing(a, b),
            (Fact::Beside(a), Fact::Beside(b)) | (Fact::Before(a), Fact::Before(b)) => thing(a, b),
            _ => self == full,
        }
    }
}

/// The facts of a walk: for each viewpoint the turn there, for each move what happens on it, alternately; last the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace<'a> {
    /// Slots of facts, in order.
    pub slots: Vec<Vec<Fact<'a>>>,
}

impl Trace<'_> {
    /// Whether facts are true in this order. Facts about the end must be true there.
    pub fn has(&self, facts: &[Fact]) -> bool {
        let Some((end, way)) = self.slots.split_last() else { return false };
        let mut at = 0;
        let mut turned = false;
        facts.iter().all(|fact| {
            if fact.ends() {
                return end.iter().any(|full| fact.follows_from(full));
            }
            let turns = matches!(fact, Fact::Turn(_));
            // Two turns are two: the second is at a later viewpoint.
            let from = at + usize::from(turns && turned);
            let here = |slot: &Vec<Fact>| slot.iter().any(|full| fact.follows_from(full));
            match way.get(from..).and_then(|way| way.iter().position(here)) {
                Some(further) => {
                    turned = turns || (turned && further == 0);
                    at = from + further;
                    true
                }
                None => false,
            }
        })
    }
}

/// Things that nobody tells the way by.
pub const MINOR: [&str; 13] = [
    "pillow",
    "books",
    "toaster",
    "bowl",
    "towel",
    "teddy bear",
    "boxes",
    "clock",
    "computer",
    "bath mat",
    "vase",
    "railing",
    "trash can",
];

/// A thing that one tells the way by, as seen from a viewpoint.
#[derive(Debug)]
struct Mark<'a> {
    rect: Rect,
    thing: Thing<'a>,
    bearing: f64,
    distance: f64,
}

/// A generated house with all that is needed to say what is true of walks in it.
#[derive(Debug)]
pub struct Tracer<'a> {
    house: &'a House,
    graph: &'a Graph,
    /// Landmarks by viewpoint, nearest first.
    marks: Vec<Vec<Mark<'a>>>,
    /// Facts of each move about the things around it.
    moves: HashMap<(usize, usize), Vec<Fact<'a>>>,
    /// Rooms on both sides of the opening in which a viewpoint stands.
    doors: Vec<Option<[usize; 2]>>,
}

impl<'a> Tracer<'a> {
    /// Prepares a house; `sights` of every viewpoint as [`Eyes::sights`] gives them.
    pub fn new(house: &'a House, graph: &'a Graph, sights: &[Vec<Sight>]) -> Tracer<'a> {
        let door_of = |stand: usize| {
            let [x, y, _] = house.stands[stand].position;
            let storey = house.rooms[house.stands[stand].room].storey;
            house.openings.iter().find_map(|o| {
                let here = (o.at[0] - x).abs() < 0.3 && (o.at[1] - y).abs() < 0.3;
                let wall = &house.walls[o.wall];
                (here && o.kind.passable() && wall.storey == storey).then_some(wall.rooms)
            })
        };
        let doors = (0..house.stands.len()).map(|stand| door_of(stand).and_then(|[a, b]| Some([a?, b?]))).collect();
        let clear = |sight: &&Sight| sight.distance < 7.0 && sight.part > 0.3;
        let mark = |sight: &Sight| landmark(house, sight);
        let marks = sights.iter().map(|sights| sights.iter().filter(clear).filter_map(mark).collect()).collect();
        let mut tracer = Tracer { house, graph, marks, moves: HashMap::new(), doors };
        let moves = (0..graph.len()).flat_map(|a| graph.neighbours(a).iter().map(move |b| (a, *b as usize)));
        tracer.moves = moves.map(|(a, b)| ((a, b), tracer.passed(a, b))).collect();
        tracer
    }

    /// Prepares a house and looks around at every viewpoint.
    pub fn look(house: &'a House, graph: &'a Graph) -> Tracer<'a> {
        let eyes = Eyes::new(house);
        let sights: Vec<Vec<Sight>> = (0..house.stands.len()).map(|stand| eyes.sights(stand)).collect();
        Tracer::new(house, graph, &sights)
    }

    /// The navigation graph.
    pub fn graph(&self) -> &Graph {
        self.graph
    }

    fn room_kind(&self, stand: usize) -> &'a str {
        &self.house.rooms[self.house.stands[stand].room].kind
    }

    /// The facts of a walk that begins with the agent facing heading index `heading`. The path may not be empty.
    pub fn trace(&self, heading: u8, path: &[usize]) -> Trace<'a> {
        let mut facing = f64::from(heading) * VIEW_STEP;
        let mut slots = Vec::with_capacity(2 * path.len());
        let known = |stand: usize| if self.doors[stand].is_some() { None } else { Some(self.house.stands[stand].room) };
        let mut room = known(path[0]);
        let mut climbed = None;
        for pair in path.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let (from, to) = (self.graph.position(a), self.graph.position(b));
            let ahead = bearing(&from, &to);
            slots.push(turns(wrapped(ahead - facing)).into_iter().map(Fact::Turn).collect());
            facing = ahead;
            let mut facts = Vec::new();
            self.add_rooms(&mut facts, &mut room, known(b), a, b);
            climbed = if to[2] - from[2] > 0.3 {
                facts.push(Fact::Up);
                Some(true)
            } else if from[2] - to[2] > 0.3 {
                facts.push(Fact::Down);
                Some(false)
            } else {
                None
            };
            facts.extend(self.moves.get(&(a, b)).into_iter().flatten());
            slots.push(facts);
        }
        slots.push(self.end(path[path.len() - 1], facing, climbed));
        Trace { slots }
    }

    fn add_rooms(&self, facts: &mut Vec<Fact<'a>>, room: &mut Option<usize>, next: Option<usize>, a: usize, b: usize) {
        let house: &'a House = self.house;
        let kind = |room: usize| -> &'a str { &house.rooms[room].kind };
        let (from, to) = (self.graph.position(a), self.graph.position(b));
        let through = opening_crossed(house, house.stands[a].room, [from[0], from[1]], [to[0], to[1]]);
        if let Some(opening) = through {
            facts.push(Fact::Through(opening.kind.name()));
        }
        if let Some(next) = next {
            if let Some(before) = *room
                && before != next
            {
                if kind(before) != "stairs" {
                    facts.push(Fact::Leave(kind(before)));
                }
                if kind(next) != "stairs" {
                    facts.push(Fact::Enter(kind(next)));
                }
            } else if room.is_none() && kind(next) != "stairs" {
                // From the door in which the walk began.
                facts.push(Fact::Enter(kind(next)));
            }
            *room = Some(next);
        }
    }

    /// Things passed or headed for on a move.
    fn passed(&self, a: usize, b: usize) -> Vec<Fact<'a>> {
        let (from, to) = (self.graph.position(a), self.graph.position(b));
        let ahead = bearing(&from, &to);
        let (dx, dy) = (to[0] - from[0], to[1] - from[1]);
        let length = dx.hypot(dy).max(0.01);
        let mut facts = Vec::new();
        for Mark { rect, thing, bearing, .. } in &self.marks[a] {
            if thing.kind == "rug" {
                if rect.crossed([from[0], from[1]], [to[0], to[1]]) {
                    facts.push(Fact::Over(*thing));
                }
                continue;
            }
            let [x, y] = rect.centre();
            let along = ((x - from[0]) * dx + (y - from[1]) * dy) / length;
            // To the right of the way is positive.
            let aside = ((x - from[0]) * dy - (y - from[1]) * dx) / length;
            let reach = rect.width().min(rect.depth()) / 2.0;
            if along > 0.15 && along < length + 0.2 && aside.abs() > 0.25 && aside.abs() - reach < 1.5 {
                let side = if aside > 0.0 { Side::Right } else { Side::Left };
                facts.push(Fact::Pass(*thing, Some(side)));
            }
            if wrapped(bearing - ahead).abs() < 0.3 && along > length {
                facts.push(Fact::Toward(*thing));
            }
        }
        facts
    }

    fn end(&self, stand: usize, facing: f64, climbed: Option<bool>) -> Vec<Fact<'a>> {
        let house: &'a House = self.house;
        let [x, y, _] = self.graph.position(stand);
        let mut facts = Vec::new();
        match self.doors[stand] {
            Some(rooms) => facts.extend(rooms.map(|room| Fact::AtDoor(house.rooms[room].kind.as_str()))),
            None if self.room_kind(stand) == "stairs" => facts.push(Fact::OnStairs),
            None => facts.push(Fact::Inside(self.room_kind(stand))),
        }
        if self.room_kind(stand) != "stairs" {
            match climbed {
                Some(true) => facts.push(Fact::Top),
                Some(false) => facts.push(Fact::Bottom),
                None => {}
            }
        }
        for Mark { rect, thing, bearing, .. } in self.marks[stand].iter().filter(|mark| mark.distance < 4.5) {
            let away = (rect.x0 - x).max(x - rect.x1).max(0.0).hypot((rect.y0 - y).max(y - rect.y1).max(0.0));
            if away < 1.3 {
                facts.push(Fact::Beside(*thing));
            }
            if away < 2.2 && wrapped(bearing - facing).abs() < 0.5 {
                facts.push(Fact::Before(*thing));
            }
        }
        facts
    }
}

/// The landmark of a sight, if one tells the way by it.
fn landmark<'a>(house: &'a House, sight: &Sight) -> Option<Mark<'a>> {
    let (rect, thing) = match sight.what {
        Seen::Item(i) => {
            let item = &house.items[i];
            let told = !MINOR.contains(&item.kind.as_str()) && item.bottom < 2.0;
            told.then(|| (item.rect(), Thing { kind: &item.kind, colour: Some(&item.finish.colour) }))?
        }
        Seen::Opening(i) => {
            let opening = &house.openings[i];
            let told = !opening.kind.passable();
            told.then(|| (house.opening_rect(opening), Thing { kind: opening.kind.name(), colour: None }))?
        }
    };
    Some(Mark { rect, thing, bearing: sight.bearing, distance: sight.distance })
}

/// The names that a change of direction may be given.
fn turns(by: f64) -> Vec<Turn> {
    let degrees = by.to_degrees();
    let side = if degrees > 0.0 { Side::Right } else { Side::Left };
    let size = degrees.abs();
    let mut turns = Vec::new();
    if size <= 30.0 {
        turns.push(Turn::Straight);
    }
    if (20.0..=60.0).contains(&size) {
        turns.push(Turn::Slightly(side));
    }
    if (50.0..=150.0).contains(&size) {
        turns.push(Turn::To(side));
    }
    if size >= 125.0 {
        turns.push(Turn::Around);
    }
    turns
}
