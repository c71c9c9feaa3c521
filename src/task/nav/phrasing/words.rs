//! Facts of a walk, put into sentences.
//!
//! Facts that happen together become one clause ("turn left into the kitchen"); clauses become sentences of one to three.
//! Every choice of words is drawn.

use super::Plan;
use super::trace::{Fact, Side, Thing, Turn};
use crate::rng::Stream;
use rand::RngExt;
use rand::seq::IndexedRandom;

/// Names that people also use, after the name itself; it comes more often than each of the others.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("couch", &["sofa", "couch"]),
    ("tv", &["television", "tv screen"]),
    ("tv stand", &["tv console", "media cabinet"]),
    ("refrigerator", &["fridge", "refrigerator"]),
    ("plant", &["potted plant", "house plant"]),
    ("picture", &["framed picture", "photograph", "picture frame"]),
    ("painting", &["large painting", "piece of art"]),
    ("bathtub", &["tub", "bath"]),
    ("nightstand", &["bedside table", "night table"]),
    ("bookshelf", &["bookcase", "book shelf"]),
    ("stove", &["oven", "range"]),
    ("armchair", &["arm chair", "easy chair"]),
    ("dresser", &["chest of drawers", "dresser"]),
    ("wardrobe", &["closet", "armoire"]),
    ("trunk", &["chest", "trunk at the foot of the bed"]),
    ("island", &["kitchen island", "center island"]),
    ("counter", &["countertop", "counter"]),
    ("vanity", &["bathroom vanity", "bathroom cabinet"]),
    ("washing machine", &["washer", "laundry machine"]),
    ("floor lamp", &["standing lamp", "tall lamp"]),
    ("rug", &["carpet", "area rug"]),
    ("desk", &["writing desk", "work desk"]),
    ("office chair", &["desk chair", "swivel chair"]),
    ("front door", &["entrance door", "main door"]),
    ("glass door", &["sliding door", "patio door", "sliding glass door"]),
    ("statue", &["sculpture", "statue"]),
    ("bench", &["bench seat", "bench"]),
    ("piano", &["upright piano", "piano"]),
    ("pool table", &["billiard table", "pool table"]),
    ("hallway", &["hall", "corridor", "hallway"]),
    ("entry", &["entryway", "foyer", "entrance", "entry hall"]),
    ("living room", &["lounge", "living area", "sitting room"]),
    ("family room", &["den", "family room"]),
    ("dining room", &["dining area", "dining room"]),
    ("kitchen", &["kitchen area", "kitchen"]),
    ("bathroom", &["restroom", "washroom", "bathroom"]),
    ("closet", &["walk in closet", "closet"]),
    ("office", &["study", "home office"]),
    ("laundry room", &["utility room", "laundry"]),
    ("gym", &["exercise room", "workout room"]),
    ("library", &["reading room", "library"]),
    ("storage room", &["storage area", "storage room"]),
    ("playroom", &["kids room", "play area"]),
    ("archway", &["arch", "opening", "wide opening"]),
    ("door", &["doorway", "open door", "door"]),
];

/// Things whose material people name rather than a colour, or that have none to name.
const PLAIN: &[&str] = &["plant", "window", "front door", "glass door", "shower", "toilet", "bathtub", "mirror"];

/// Puts a plan into sentences.
pub(super) fn say(plan: &Plan, chance: &mut Stream) -> String {
    let clauses = Speaker { chance }.clauses(plan);
    sentences(&clauses, chance)
}

/// Joins clauses: one to three a sentence.
fn sentences(clauses: &[String], chance: &mut Stream) -> String {
    let mut text = String::new();
    let mut at = 0;
    while at < clauses.len() {
        let count = [1, 2, 2, 2, 3].choose(chance).copied().unwrap_or(2).min(clauses.len() - at);
        let mut sentence = clauses[at].clone();
        for (k, clause) in clauses[at + 1..at + count].iter().enumerate() {
            let joint = if k + 2 == count {
                [" and ", " and ", ", then ", " and then ", ", and "].choose(chance)
            } else {
                [", ", ", ", ", then "].choose(chance)
            };
            sentence.push_str(joint.copied().unwrap_or(", "));
            sentence.push_str(clause);
        }
        if !text.is_empty() {
            text.push(' ');
            if chance.random_bool(0.12) {
                sentence = format!("then {sentence}");
            } else if at + count == clauses.len() && chance.random_bool(0.08) {
                sentence = format!("finally, {sentence}");
            }
        }
        let mut letters = sentence.chars();
        text.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        text.push_str(letters.as_str());
        text.push('.');
        at += count;
    }
    text
}

struct Speaker<'s> {
    chance: &'s mut Stream,
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Left => "left",
        Side::Right => "right",
    }
}

impl Speaker<'_> {
    fn pick<'t>(&mut self, choices: &[&'t str]) -> &'t str {
        choices.choose(self.chance).copied().unwrap_or("go")
    }

    fn verb(&mut self, first: bool) -> &'static str {
        let verbs = ["walk", "walk", "go", "go", "head", "move", "proceed"];
        let further = ["walk", "go", "continue", "head", "keep going", "move", "proceed", "carry on"];
        if first { self.pick(&verbs) } else { self.pick(&further) }
    }

    /// The name, or another that people use for it.
    fn name(&mut self, name: &str) -> String {
        let other = SYNONYMS.iter().find(|(known, _)| *known == name).map(|(_, others)| *others);
        match other {
            Some(others) if self.chance.random_bool(0.4) => self.pick(others).to_owned(),
            _ => name.to_owned(),
        }
    }

    fn thing(&mut self, thing: &Thing) -> String {
        let name = self.name(thing.kind);
        match thing.colour {
            Some("dark") => format!("the dark {name}"),
            Some("light") => format!("the light colored {name}"),
            Some(colour) if !PLAIN.contains(&thing.kind) => format!("the {colour} {name}"),
            _ => format!("the {name}"),
        }
    }

    fn room(&mut self, room: &str) -> String {
        format!("the {}", self.name(room))
    }

    fn clauses(&mut self, plan: &Plan) -> Vec<String> {
        let mut clauses = Vec::new();
        let mut at = 0;
        while at < plan.len() {
            let first = at == 0;
            let (slot, fact) = plan[at];
            if fact.ends() {
                let end: Vec<Fact> = plan[at..].iter().map(|(_, fact)| *fact).collect();
                clauses.push(self.end(&end));
                return clauses;
            }
            let next = plan.get(at + 1).filter(|(s, f)| !f.ends() && (*s == slot || *s == slot + 1)).map(|(_, f)| *f);
            let joined = next.and_then(|next| self.pair(&fact, &next, first));
            match joined {
                Some(clause) => {
                    clauses.push(clause);
                    at += 2;
                }
                None => {
                    clauses.push(self.clause(&fact, first));
                    at += 1;
                }
            }
        }
        clauses.push(self.pick(&["stop there", "stop", "wait there"]).to_owned());
        clauses
    }

    /// Two facts that happen together, as one clause.
    fn pair(&mut self, a: &Fact, b: &Fact, first: bool) -> Option<String> {
        if self.chance.random_bool(0.15) {
            return None;
        }
        Some(match (a, b) {
            (Fact::Leave(from), Fact::Enter(to)) => {
                let (from, to) = (self.room(from), self.room(to));
                match self.chance.random_range(0..5) {
                    0 => format!("leave {from} and enter {to}"),
                    1 => format!("exit {from} into {to}"),
                    2 => format!("{} out of {from} and into {to}", self.verb(first)),
                    3 => format!("{} from {from} into {to}", self.verb(first)),
                    _ => format!("step out of {from} into {to}"),
                }
            }
            (Fact::Leave(from), Fact::Through(way)) => {
                let (from, way) = (self.room(from), self.name(way));
                match self.chance.random_range(0..3) {
                    0 => format!("exit {from} through the {way}"),
                    1 => format!("leave {from} by the {way}"),
                    _ => format!("{} out of {from} through the {way}", self.verb(first)),
                }
            }
            (Fact::Through(way), Fact::Enter(to)) => {
                let (way, to) = (self.name(way), self.room(to));
                match self.chance.random_range(0..3) {
                    0 => format!("enter {to} through the {way}"),
                    1 => format!("pass through the {way} into {to}"),
                    _ => format!("{} through the {way} into {to}", self.verb(first)),
                }
            }
            (Fact::Turn(Turn::To(to)), Fact::Enter(room)) => {
                let (turn, room) = (self.turn(*to), self.room(room));
                match self.chance.random_range(0..4) {
                    0 => format!("enter {room} on your {}", side(*to)),
                    1 => format!("{turn} and enter {room}"),
                    _ => format!("{turn} into {room}"),
                }
            }
            (Fact::Turn(Turn::To(to)), Fact::Through(way)) => {
                let (turn, way) = (self.turn(*to), self.name(way));
                match self.chance.random_range(0..3) {
                    0 => format!("{} through the {way} on the {}", self.verb(first), side(*to)),
                    1 => format!("{turn} and go through the {way}"),
                    _ => format!("{turn} through the {way}"),
                }
            }
            (Fact::Enter(room), Fact::Turn(Turn::To(to))) => {
                let (room, turn) = (self.room(room), self.turn(*to));
                match self.chance.random_range(0..6) {
                    0 => format!("when you get to {room}, {turn}"),
                    1 => format!("once in {room}, {turn}"),
                    2 => format!("once you are inside {room}, {turn}"),
                    3 => format!("{turn} after entering {room}"),
                    4 => format!("{turn} when you reach {room}"),
                    _ => format!("{} into {room} and {turn}", self.verb(first)),
                }
            }
            (Fact::Pass(thing, None), Fact::Turn(Turn::To(to))) => {
                let (thing, turn) = (self.thing(thing), self.turn(*to));
                match self.chance.random_range(0..5) {
                    0 => format!("after you pass {thing}, {turn}"),
                    1 => format!("{turn} after {thing}"),
                    2 => format!("{turn} once you have passed {thing}"),
                    3 => format!("{turn} just past {thing}"),
                    _ => format!("{} past {thing} and {turn}", self.verb(first)),
                }
            }
            (Fact::Toward(thing), Fact::Turn(Turn::To(to))) => {
                let (thing, turn) = (self.thing(thing), self.turn(*to));
                match self.chance.random_range(0..3) {
                    0 => format!("{turn} before you reach {thing}"),
                    1 => format!("with {thing} ahead of you, {turn}"),
                    _ => format!("{} toward {thing}, but then {turn}", self.verb(first)),
                }
            }
            (Fact::Through(way), Fact::Turn(Turn::To(to))) => {
                let (way, turn) = (self.name(way), self.turn(*to));
                match self.chance.random_range(0..3) {
                    0 => format!("after the {way}, {turn}"),
                    1 => format!("{turn} right after the {way}"),
                    _ => format!("{} through the {way} and {turn}", self.verb(first)),
                }
            }
            (Fact::Up, Fact::Turn(Turn::To(to))) => {
                let turn = self.turn(*to);
                format!("{} and {turn}", self.pick(&["go up the stairs", "climb the steps", "walk upstairs"]))
            }
            (Fact::Turn(Turn::To(to)), Fact::Leave(room)) => format!("{} out of {}", self.turn(*to), self.room(room)),
            (Fact::Turn(Turn::To(to)), Fact::Up | Fact::Down) => {
                let up = if matches!(b, Fact::Up) { "up" } else { "down" };
                let turn = self.turn(*to);
                let joint = self.pick(&["and go", "and walk", "and head"]);
                format!("{turn} {joint} {up} the {}", self.pick(&["stairs", "steps", "staircase"]))
            }
            (Fact::Turn(Turn::To(to)), Fact::Toward(thing)) => {
                let (turn, thing) = (self.turn(*to), self.thing(thing));
                format!("{turn} {} {thing}", self.pick(&["toward", "towards", "facing"]))
            }
            (Fact::Turn(Turn::To(to)), Fact::Pass(thing, None)) => {
                let (turn, thing) = (self.turn(*to), self.thing(thing));
                format!("{turn} {} {thing}", self.pick(&["and walk past", "at", "and pass", "and go by"]))
            }
            _ => return None,
        })
    }

    fn turn(&mut self, to: Side) -> String {
        let to = side(to);
        match self.chance.random_range(0..8) {
            0 => format!("make a {to}"),
            1 => format!("take a {to}"),
            2 => format!("go {to}"),
            3 => format!("make a {to} turn"),
            4 => format!("turn to the {to}"),
            5 => format!("take a {to} turn"),
            _ => format!("turn {to}"),
        }
    }

    fn clause(&mut self, fact: &Fact, first: bool) -> String {
        match fact {
            Fact::Turn(Turn::To(to)) => self.turn(*to),
            Fact::Turn(Turn::Slightly(to)) => {
                let to = side(*to);
                match self.chance.random_range(0..4) {
                    0 => format!("veer {to}"),
                    1 => format!("bear {to}"),
                    2 => format!("turn slightly {to}"),
                    _ => format!("make a slight {to}"),
                }
            }
            Fact::Turn(Turn::Around) => {
                let choices = ["turn around", "turn around", "turn all the way around", "make a u-turn", "turn back"];
                self.pick(&choices).to_owned()
            }
            Fact::Turn(Turn::Straight) => {
                let choices =
                    ["go straight", "walk straight ahead", "walk forward", "go straight ahead", "keep straight"];
                let further = ["continue straight", "continue forward", "keep going straight", "walk straight"];
                if first { self.pick(&choices) } else { self.pick(&further) }.to_owned()
            }
            Fact::Leave(room) => {
                let room = self.room(room);
                match self.chance.random_range(0..4) {
                    0 => format!("leave {room}"),
                    1 => format!("exit {room}"),
                    2 => format!("walk out of {room}"),
                    _ => format!("{} out of {room}", self.verb(first)),
                }
            }
            Fact::Enter(room) => {
                let room = self.room(room);
                match self.chance.random_range(0..5) {
                    0 => format!("enter {room}"),
                    1 => format!("step into {room}"),
                    2 => format!("{} to {room}", self.verb(first)),
                    _ => format!("{} into {room}", self.verb(first)),
                }
            }
            Fact::Through(way) => {
                let way = self.name(way);
                match self.chance.random_range(0..3) {
                    0 => format!("pass through the {way}"),
                    _ => format!("{} through the {way}", self.verb(first)),
                }
            }
            Fact::Up => {
                let choices =
                    ["go up the stairs", "walk up the stairs", "head up the steps", "climb the stairs", "go upstairs"];
                self.pick(&choices).to_owned()
            }
            Fact::Down => {
                let choices = [
                    "go down the stairs",
                    "walk down the stairs",
                    "head down the steps",
                    "go downstairs",
                    "take the stairs down",
                ];
                self.pick(&choices).to_owned()
            }
            Fact::Pass(thing, on) => self.pass(thing, *on, first),
            Fact::Over(thing) => {
                let thing = self.thing(thing);
                let way = self.pick(&["across", "over"]);
                format!("{} {way} {thing}", self.verb(first))
            }
            Fact::Toward(thing) => {
                let thing = self.thing(thing);
                let way = self.pick(&["toward", "towards", "in the direction of"]);
                format!("{} {way} {thing}", self.verb(first))
            }
            end => self.end(&[*end]),
        }
    }

    fn pass(&mut self, thing: &Thing, on: Option<Side>, first: bool) -> String {
        let thing = self.thing(thing);
        match (on, self.chance.random_range(0..4)) {
            (Some(on), 0) => format!("pass {thing} on your {}", side(on)),
            (Some(on), 1) => format!("{} past {thing} on the {}", self.verb(first), side(on)),
            (Some(on), 2) => format!("keep {thing} on your {}", side(on)),
            (Some(on), _) => format!("{} by {thing} on your {} side", self.verb(first), side(on)),
            (None, 0) => format!("pass {thing}"),
            (None, 1) => format!("{} by {thing}", self.verb(first)),
            (None, _) => format!("{} past {thing}", self.verb(first)),
        }
    }

    /// Where to stop.
    fn end(&mut self, facts: &[Fact]) -> String {
        let stop = self.pick(&["stop", "stop", "stop", "wait", "wait", "come to a stop", "stand"]);
        let mut text = stop.to_owned();
        for (k, fact) in facts.iter().enumerate() {
            let place = match fact {
                Fact::Inside(room) => {
                    let room = self.room(room);
                    format!("{} {room}", self.pick(&["in", "in", "inside"]))
                }
                Fact::AtDoor(room) => {
                    let room = self.room(room);
                    match self.chance.random_range(0..4) {
                        0 => format!("at the door of {room}"),
                        1 => format!("at the entrance to {room}"),
                        2 => format!("in the doorway to {room}"),
                        _ => format!("in the doorway of {room}"),
                    }
                }
                Fact::Top => self.pick(&["at the top of the stairs", "at the top of the steps"]).to_owned(),
                Fact::Bottom => self.pick(&["at the bottom of the stairs", "at the foot of the stairs"]).to_owned(),
                Fact::OnStairs => self.pick(&["on the stairs", "on the steps", "on the staircase"]).to_owned(),
                Fact::Beside(thing) => {
                    let thing = self.thing(thing);
                    format!("{} {thing}", self.pick(&["next to", "next to", "by", "beside", "near", "close to"]))
                }
                Fact::Before(thing) => {
                    let thing = self.thing(thing);
                    format!("{} {thing}", self.pick(&["in front of", "in front of", "facing", "before"]))
                }
                _ => continue,
            };
            let joint = if k >= 2 { " and " } else { " " };
            text.push_str(joint);
            text.push_str(&place);
        }
        text
    }
}
