//! The answer of the box in which the agent is tried: the whole walk in one sentence, and its moves one by one.
//!
//! Both are made of a stored view alone, so that walks of all kinds of houses have them.

use super::family::{Stop, View};
use super::graph::distance_between;
use super::scene::turn_in_words;
use crate::family::TryAnswer;

/// Metres by which a floor is higher than another.
const STOREY: f64 = 0.3;

/// A room that the walk came into.
struct Entered<'a> {
    name: &'a str,
    /// The direction in which it came into it.
    heading: f64,
    /// The stop that its way led to.
    stop: usize,
}

/// A part of the sentence that leads into a room.
struct Clause {
    verb: String,
    /// Rooms that it only crosses.
    through: Vec<String>,
    /// The room, with the words before it.
    into: String,
    /// Whether another room can follow straight on within the same part.
    goes_on: bool,
}

impl Clause {
    fn text(&self) -> String {
        match self.through.as_slice() {
            [] => format!("{} {}", self.verb, self.into),
            [most @ .., last] if !most.is_empty() => {
                format!("{} through {} and {last} {}", self.verb, most.join(", "), self.into)
            }
            [one, ..] => format!("{} through {one} {}", self.verb, self.into),
        }
    }
}

/// The turn between two headings, as an order; none where somebody would say that it goes straight on.
fn turn(from: f64, to: f64) -> Option<&'static str> {
    match turn_in_words(to - from) {
        "left" => Some("turn left"),
        "right" => Some("turn right"),
        "around" => Some("turn around"),
        _ => None,
    }
}

/// The rooms of a walk in their order, the one that it starts in first. Stairs belong to two storeys, and are one place.
fn rooms(path: &[Stop]) -> Vec<Entered<'_>> {
    let mut rooms: Vec<Entered> = Vec::new();
    for (at, stop) in path.iter().enumerate() {
        let mut enter = |name| {
            let climbing = name == "stairs" && rooms.last().is_some_and(|room| room.name == "stairs");
            if !climbing {
                rooms.push(Entered { name, heading: stop.heading, stop: at });
            }
        };
        match stop.room.as_deref() {
            Some(room) if at == 0 => enter(room),
            _ => stop.way.iter().for_each(|(_, room)| enter(room)),
        }
    }
    rooms
}

/// How high the walk climbs on the stairs that it came to as its `k`th room.
fn rise(path: &[Stop], rooms: &[Entered], k: usize) -> f64 {
    let before = rooms[k].stop.saturating_sub(1);
    let after = rooms.get(k + 1).map_or(path.len() - 1, |next| next.stop);
    path[after].position[2] - path[before].position[2]
}

/// The part of the sentence that leads into the `k`th room.
fn clause(path: &[Stop], rooms: &[Entered], k: usize, back: bool) -> Clause {
    let turned = turn(rooms[k - 1].heading, rooms[k].heading);
    let around = turned == Some("turn around");
    let verb = match turned {
        // At the start somebody turns around where they stand, and then goes.
        _ if around && (k == 1 || back) => "go",
        // Nobody turns around through a room.
        _ if around => "turn around, go",
        Some(turn) => turn,
        None if k == 1 => "go",
        None => "go on",
    };
    let verb = verb.to_owned();
    let name = rooms[k].name;
    let into = match name {
        "stairs" if rise(path, rooms, k) > STOREY => "up the stairs".to_owned(),
        "stairs" if rise(path, rooms, k) < -STOREY => "down the stairs".to_owned(),
        "stairs" => "to the stairs".to_owned(),
        _ if back => format!("back into the {name}"),
        _ if name == rooms[k - 1].name => format!("into another {name}"),
        _ => format!("into the {name}"),
    };
    Clause { verb, through: Vec::new(), goes_on: name != "stairs" && !back, into }
}

/// Where the walk stops, of its last line: "beside a sofa in the bedroom".
fn stop(words: &[String]) -> &str {
    let last = words.last().map_or("", String::as_str);
    let stop = last.strip_prefix("It stopped ").or_else(|| last.strip_prefix("Stops ")).unwrap_or("there");
    stop.split(", with ").next().unwrap_or(stop).trim_end_matches('.')
}

/// The place at which it stops, without the room that was just named.
fn stop_without(stop: &str, room: &str) -> String {
    let named = [format!("back in the {room}"), format!("in another {room}"), format!("in the {room}")];
    let named = named.iter().map(String::as_str).chain((room == "stairs").then_some("on the stairs"));
    let place = named.filter_map(|end| stop.strip_suffix(end)).next().unwrap_or(stop).trim();
    if place.is_empty() { "there".to_owned() } else { place.to_owned() }
}

/// The sentence.
fn sentence(view: &View) -> String {
    let (path, rooms, stop) = (view.path.as_slice(), rooms(&view.path), stop(&view.words));
    let home = match rooms.first().map(|room| room.name) {
        Some("stairs") => ", on the stairs".to_owned(),
        Some(room) => format!(", in the {room}"),
        None => String::new(),
    };
    if path.iter().all(|stop| stop.viewpoint == path[0].viewpoint) {
        return format!("It would stay where it is{home}.");
    }
    let moved = |pair: &&[Stop]| pair[0].viewpoint != pair[1].viewpoint;
    let first = path.windows(2).find(moved).map_or(path[0].heading, |pair| pair[1].heading);
    let mut parts = Vec::new();
    if rooms.len() < 2 {
        parts.extend(turn(path[0].heading, first).map(str::to_owned));
        let metres: f64 = path.windows(2).map(|pair| distance_between(&pair[0].position, &pair[1].position)).sum();
        parts.push(format!("walk {metres:.1} metres"));
        parts.push(format!("stop {stop}"));
        return joined(&parts);
    }
    if turn(rooms[0].heading, rooms[1].heading) == Some("turn around") {
        parts.push("turn around".to_owned());
    }
    parts.push(format!("leave the {}", rooms[0].name));
    let last = rooms.len() - 1;
    let mut clauses: Vec<Clause> = Vec::new();
    for k in 1..=last {
        let back = k == last && k > 1 && stop.ends_with(&format!("back in the {}", rooms[k].name));
        let next = clause(path, &rooms, k, back);
        match clauses.last_mut() {
            Some(before) if next.verb == "go on" && next.goes_on && before.goes_on => {
                let crossed = before.into.trim_start_matches("into ").to_owned();
                before.through.push(crossed);
                before.into = next.into;
            }
            _ => clauses.push(next),
        }
    }
    parts.extend(clauses.iter().map(Clause::text));
    parts.push(format!("stop {}", stop_without(stop, rooms[last].name)));
    joined(&parts)
}

/// "It would a, b and c."
fn joined(parts: &[String]) -> String {
    match parts {
        [most @ .., last] if !most.is_empty() => format!("It would {} and {last}.", most.join(", ")),
        parts => format!("It would {}.", parts.concat()),
    }
}

/// A line about a walk that was made, as one about a walk that would be.
fn in_present(line: &str) -> String {
    let verbs = [
        ("It started ", "It starts "),
        ("It went ", "It goes "),
        ("It turned ", "It turns "),
        ("It stopped ", "It stops "),
    ];
    for (past, present) in verbs {
        if let Some(rest) = line.strip_prefix(past) {
            return format!("{present}{}", rest.replacen(" and walked ", " and walks ", 1));
        }
    }
    line.to_owned()
}

/// The sentence about a walk, and its moves.
pub(super) fn answer(view: &View) -> TryAnswer {
    TryAnswer { sentence: sentence(view), steps: view.words.iter().map(|line| in_present(line)).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::family::NAV;
    use crate::family::Family;
    use serde_json::{Value, json};
    use std::f64::consts::PI;

    fn stop(n: usize, heading: f64, room: &str, way: Value, z: f64) -> Value {
        json!({"viewpoint": format!("v{n}"), "position": [n as f64, 0.0, z], "heading": heading, "room": room, "way": way})
    }

    fn told(path: &[Value], last: &str) -> String {
        let words = ["It started in the bedroom.", "It turned left and walked 2.0 metres.", last];
        let view = json!({"house": "h", "path": path, "words": words});
        let answer = NAV.try_answer(&view).unwrap();
        assert_eq!(answer.steps[..2], ["It starts in the bedroom.", "It turns left and walks 2.0 metres."]);
        answer.sentence
    }

    #[test]
    fn a_walk_is_told_as_somebody_would_say_it() {
        let home = stop(0, 0.0, "bedroom", json!([]), 0.0);
        let hallway = |n, heading| stop(n, heading, "hallway", json!([[0.5, "hallway"]]), 0.0);
        let left =
            told(&[home.clone(), hallway(1, -PI / 2.0)], "It stopped beside a sofa in the hallway, with a rug nearby.");
        assert_eq!(left, "It would leave the bedroom, turn left into the hallway and stop beside a sofa.");
        let kitchen = |heading| stop(2, heading, "kitchen", json!([[0.5, "kitchen"]]), 0.0);
        let on = told(&[home.clone(), hallway(1, 0.0), kitchen(0.1)], "It stopped in the kitchen.");
        assert_eq!(on, "It would leave the bedroom, go through the hallway into the kitchen and stop there.");
        let around =
            told(&[home.clone(), hallway(1, PI), kitchen(-PI / 2.0)], "It stopped near a fridge in the kitchen.");
        assert_eq!(
            around,
            "It would turn around, leave the bedroom, go into the hallway, turn right into the kitchen and stop near a fridge."
        );
        let within = told(&[home.clone(), hallway(1, 0.0), kitchen(PI)], "It stopped in the kitchen.");
        assert_eq!(
            within,
            "It would leave the bedroom, go into the hallway, turn around, go into the kitchen and stop there."
        );
        let back = stop(2, PI, "bedroom", json!([[0.5, "bedroom"]]), 0.0);
        let back = told(&[home.clone(), hallway(1, 0.0), back], "It stopped in front of a bed back in the bedroom.");
        assert_eq!(
            back,
            "It would leave the bedroom, go into the hallway, go back into the bedroom and stop in front of a bed."
        );
        let stairs = stop(1, 0.0, "stairs", json!([[0.5, "stairs"]]), 1.4);
        let up = told(
            &[home.clone(), stairs, stop(2, 0.0, "hallway", json!([[0.5, "stairs"], [0.9, "hallway"]]), 2.9)],
            "It stopped in the hallway.",
        );
        assert_eq!(up, "It would leave the bedroom, go up the stairs, go on into the hallway and stop there.");
        let here = told(std::slice::from_ref(&home), "It stopped in the bedroom.");
        assert_eq!(here, "It would stay where it is, in the bedroom.");
        let near =
            told(&[home, stop(1, PI / 2.0, "bedroom", json!([]), 0.0)], "It stopped beside a bed in the bedroom.");
        assert_eq!(near, "It would turn right, walk 1.0 metres and stop beside a bed in the bedroom.");
    }
}
