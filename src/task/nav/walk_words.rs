//! Walks in plain English: a sentence for each move, and one sentence for the whole. They stand for the pictures where these
//! cannot be seen, and tell no more than the pictures show.

use super::action::{bearing, wrapped};
use super::graph::distance_between;
use super::house::rooms::Arrival;
use super::metric::path_length;
use super::phrasing::MINOR;
use super::scene::{Landmark, Scene, turn_in_words};

/// Things named for each move, and beside the one that a walk stopped at.
const NAMED: usize = 2;

/// Things named for each line of an outline.
const OUTLINED: usize = 3;

/// A walk stops at things that are no further away, in metres.
const AT_HAND: f64 = 3.0;

/// It looks at things that are no further away.
const IN_SIGHT: f64 = 6.0;

/// A thing within this angle of the heading is in front of the walker.
const IN_FRONT: f64 = 0.7;

/// A walk that is told: its house, its viewpoints, and the heading that it begins with.
pub(super) struct Telling<'a> {
    scene: &'a Scene,
    path: &'a [usize],
    heading: f64,
    arrivals: Vec<Arrival>,
}

/// A direction to look in.
pub(super) struct Look {
    pub heading: f64,
    pub pitch: f64,
}

impl<'a> Telling<'a> {
    /// Prepares a walk, whose path may not be empty.
    pub(super) fn new(scene: &'a Scene, path: &'a [usize], heading: f64) -> Telling<'a> {
        let arrivals = scene.house().map_or_else(Vec::new, |house| house.rooms_along(heading, path));
        Telling { scene, path, heading, arrivals }
    }

    /// The rooms of the walk at each viewpoint; empty where rooms are not known.
    pub(super) fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// The kind of a room.
    pub(super) fn kind(&self, room: usize) -> &'a str {
        self.scene.house().map_or("", |house| house.rooms[room].kind.as_str())
    }

    fn end(&self) -> usize {
        self.path[self.path.len() - 1]
    }

    /// The heading on arrival at the end.
    fn last_heading(&self) -> f64 {
        let moved = |pair: &&[usize]| {
            let (from, to) = (self.scene.graph.position(pair[0]), self.scene.graph.position(pair[1]));
            (to[0] - from[0]).hypot(to[1] - from[1]) > 0.01
        };
        let last = self.path.windows(2).rev().find(moved);
        last.map_or(self.heading, |pair| {
            bearing(&self.scene.graph.position(pair[0]), &self.scene.graph.position(pair[1]))
        })
    }

    /// The things around the end that one would name first, the most telling one first: near, ahead, and no trifle.
    fn around_end(&self, reach: f64) -> Vec<Landmark> {
        let (facing, eye) = (self.last_heading(), self.scene.graph.position(self.end())[2]);
        let cost = |thing: &Landmark| {
            let small = MINOR.iter().any(|name| thing.name == *name || without_colour(&thing.name) == *name);
            let flat = without_colour(&thing.name) == "rug";
            let elsewhere = !self.in_last_room(thing);
            thing.distance
                + 0.6 * wrapped(thing.bearing - facing).abs()
                + if small { 1.5 } else { 0.0 }
                + if flat || elsewhere { 2.0 } else { 0.0 }
        };
        let within = |thing: &Landmark| thing.distance <= reach && thing.position[2] <= eye + 0.7;
        let mut things: Vec<Landmark> = self.scene.landmarks(self.end()).into_iter().filter(within).collect();
        things.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
        things
    }

    /// Whether a thing is in the room in which the walk ended, or in its walls; true of everything where rooms are not known.
    fn in_last_room(&self, thing: &Landmark) -> bool {
        let room = self.arrivals.last().and_then(|arrival| Some(&self.scene.house()?.rooms[arrival.room]));
        room.is_none_or(|room| room.rect.grown(0.2).holds([thing.position[0], thing.position[1]]))
    }

    /// Where the last picture looks: at the thing that the walk stopped at, else into the room.
    pub(super) fn last_look(&self) -> Option<Look> {
        let here = self.scene.graph.position(self.end());
        let near = self.around_end(AT_HAND).into_iter().next();
        if let Some(thing) = near.or_else(|| self.around_end(IN_SIGHT).into_iter().next()) {
            return Some(Look { heading: thing.bearing, pitch: thing.elevation.clamp(-0.45, 0.25) });
        }
        let house = self.scene.house()?;
        let [x, y] = house.rooms[self.arrivals.last()?.room].rect.centre();
        let middle = [x, y, here[2]];
        (distance_between(&here, &middle) > 0.4).then(|| Look { heading: bearing(&here, &middle), pitch: 0.0 })
    }

    /// "beside a brown table in the bedroom".
    fn stop(&self) -> String {
        let mut parts = Vec::new();
        if let Some(thing) = self.around_end(AT_HAND).first() {
            let ahead = wrapped(thing.bearing - self.last_heading()).abs() < IN_FRONT;
            let place = match (ahead, thing.distance < 2.0) {
                (true, _) => "in front of",
                (false, true) => "beside",
                (false, false) => "near",
            };
            parts.push(format!("{place} {}", self.one(&thing.name)));
        }
        if let Some(Arrival { room, .. }) = self.arrivals.last() {
            let first = self.arrivals[0].room;
            parts.push(match self.kind(*room) {
                "stairs" => "on the stairs".to_owned(),
                kind if *room == first && self.arrivals.iter().any(|a| a.room != first) => {
                    format!("back in the {kind}")
                }
                kind if *room != first && kind == self.kind(first) => format!("in another {kind}"),
                kind => format!("in the {kind}"),
            });
        }
        if parts.is_empty() { "there".to_owned() } else { parts.join(" ") }
    }

    /// A thing's name with its article.
    fn one(&self, name: &str) -> String {
        match name.strip_prefix("light ") {
            Some(rest) if self.scene.house().is_some() => with_article(&format!("light-coloured {rest}")),
            _ => with_article(name),
        }
    }

    /// A sentence for the start, one for each move, and one for the end.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![match self.arrivals.first().map(|arrival| self.kind(arrival.room)) {
            Some("stairs") => "It started on the stairs.".to_owned(),
            Some(room) => format!("It started in the {room}."),
            None => "It started here.".to_owned(),
        }];
        let mut facing = self.heading;
        // A thing that is passed on two moves in a row is named once.
        let mut named = Vec::new();
        for i in 1..self.path.len() {
            lines.push(self.line(i, &mut facing, &mut named));
        }
        let stop = self.stop();
        let around = self.around_end(AT_HAND);
        let mut others: Vec<String> = Vec::new();
        for thing in around.iter().skip(1).filter(|thing| self.in_last_room(thing)) {
            if thing.name != around[0].name && !others.contains(&thing.name) {
                others.push(thing.name.clone());
            }
        }
        others.truncate(NAMED);
        let others: Vec<String> = others.iter().map(|name| self.one(name)).collect();
        lines.push(match others.is_empty() {
            true => format!("It stopped {stop}."),
            false => format!("It stopped {stop}, with {} nearby.", joined(&others)),
        });
        lines
    }

    /// The walk as an outline: a terse line for the start, for each move and for the end. Programs read it, so its form stays.
    pub(super) fn outline(&self) -> Vec<String> {
        let kind = |i: usize| match self.arrivals.get(i) {
            Some(arrival) => Some(self.kind(arrival.room)),
            None => self.scene.room(self.path[i]),
        };
        let mut lines = vec![match kind(0) {
            Some("stairs") => "Starts on the stairs.".to_owned(),
            Some(room) => format!("Starts in the {room}."),
            None => "Starts.".to_owned(),
        }];
        let mut facing = self.heading;
        for (i, pair) in self.path.windows(2).enumerate() {
            let (from, to) = (self.scene.graph.position(pair[0]), self.scene.graph.position(pair[1]));
            let ahead = bearing(&from, &to);
            let turn = match turn_in_words(ahead - facing) {
                "straight on" => "Goes straight on".to_owned(),
                turn => format!("Turns {turn} and walks"),
            };
            facing = ahead;
            let mut line = format!("{turn} {:.1} m", self.scene.graph.edge_length(pair[0], pair[1]));
            let rise = to[2] - from[2];
            if rise.abs() > 0.3 {
                line.push_str(if rise > 0.0 { " up the stairs" } else { " down the stairs" });
            }
            if let Some(opening) = self.scene.opening_between(pair[0], pair[1]) {
                line.push_str(&format!(" through the {}", opening.name()));
            }
            match (kind(i), kind(i + 1)) {
                (Some(before), Some(room)) if before != room && room != "stairs" => {
                    line.push_str(&format!(" into the {room}"));
                }
                _ => {}
            }
            let side = |right: bool| if right { "right" } else { "left" };
            let passed = self.scene.passed(pair[0], pair[1]).into_iter().take(OUTLINED);
            let passed: Vec<String> = passed.map(|(name, right)| format!("{name} on the {}", side(right))).collect();
            if !passed.is_empty() {
                line.push_str(&format!("; passes {}", passed.join(", ")));
            }
            line.push('.');
            lines.push(line);
        }
        let mut near = near(self.scene, self.end());
        near.truncate(OUTLINED);
        lines.push(if near.is_empty() { "Stops.".into() } else { format!("Stops near {}.", near.join(", ")) });
        lines
    }

    /// The sentence of the move to the stop `i`.
    fn line(&self, i: usize, facing: &mut f64, named: &mut Vec<(String, bool)>) -> String {
        let (a, b) = (self.path[i - 1], self.path[i]);
        let (from, to) = (self.scene.graph.position(a), self.scene.graph.position(b));
        let ahead = bearing(&from, &to);
        let mut line = match turn_in_words(ahead - *facing) {
            "straight on" => "It went straight ahead for".to_owned(),
            turn => format!("It turned {turn} and walked"),
        };
        *facing = ahead;
        line.push_str(&format!(" {:.1} metres", self.scene.graph.edge_length(a, b)));
        let rise = to[2] - from[2];
        if rise.abs() > 0.3 {
            line.push_str(if rise > 0.0 { " up the stairs" } else { " down the stairs" });
        }
        if let (Some(before), Some(now)) = (self.arrivals.get(i - 1), self.arrivals.get(i))
            && before.room != now.room
        {
            // A doorway lies on two moves where one of them ends in it, and belongs to the one that leads into the next room.
            if let Some(opening) = self.scene.opening_between(a, b) {
                line.push_str(&format!(" through {}", with_article(opening.name())));
            }
            match (self.kind(before.room), self.kind(now.room)) {
                ("stairs", "stairs") => {}
                (_, "stairs") if rise.abs() > 0.3 => {}
                (_, "stairs") => line.push_str(" to the stairs"),
                (before, now) if before == now => line.push_str(&format!(" into another {now}")),
                (_, now) => line.push_str(&format!(" into the {now}")),
            }
        }
        let mut passed = self.scene.passed(a, b);
        passed.retain(|thing| !named.contains(thing));
        passed.truncate(NAMED);
        let sides: Vec<String> = passed
            .chunk_by(|a, b| a.1 == b.1)
            .map(|things| {
                let names: Vec<String> = things.iter().map(|(name, _)| self.one(name)).collect();
                format!("{} on its {}", joined(&names), if things[0].1 { "right" } else { "left" })
            })
            .collect();
        if !sides.is_empty() {
            line.push_str(&format!(", passing {}", joined(&sides)));
        }
        *named = passed;
        line.push('.');
        line
    }

    /// The whole walk in one sentence.
    pub(super) fn sentence(&self) -> String {
        let stop = self.stop();
        let moved = self.path.windows(2).any(|pair| pair[0] != pair[1]);
        let length = path_length(&self.scene.graph, self.path);
        let mut rooms: Vec<usize> = self
            .arrivals
            .iter()
            .flat_map(|arrival| arrival.way.iter().map(|(_, room)| *room).chain([arrival.room]))
            .collect();
        // Stairs belong to two storeys, and are one place to whoever climbs them.
        rooms.dedup_by(|a, b| a == b || (self.kind(*a) == "stairs" && self.kind(*b) == "stairs"));
        match rooms.as_slice() {
            _ if !moved => match rooms.first().map(|room| self.kind(*room)) {
                Some("stairs") => "It stayed where it was, on the stairs.".to_owned(),
                Some(room) => format!("It stayed where it was, in the {room}."),
                None => "It stayed where it was.".to_owned(),
            },
            [] | [_] => format!("It walked {length:.1} metres and stopped {stop}."),
            [first, between @ .., _] => {
                let left = format!("It left the {}", self.kind(*first));
                match self.between(between) {
                    way if way.is_empty() => format!("{left} and stopped {stop}."),
                    way if way.contains(" and ") => format!("{left}, went {way}, and stopped {stop}."),
                    way => format!("{left}, went {way} and stopped {stop}."),
                }
            }
        }
    }

    /// "through the hallway and up the stairs".
    fn between(&self, rooms: &[usize]) -> String {
        let (first, last) = (self.scene.graph.position(self.path[0]), self.scene.graph.position(self.end()));
        let rise = last[2] - first[2];
        let mut parts: Vec<String> = Vec::new();
        for group in rooms.chunk_by(|a, b| self.kind(*a) != "stairs" && self.kind(*b) != "stairs") {
            parts.push(match self.kind(group[0]) {
                "stairs" if rise > 0.3 => "up the stairs".to_owned(),
                "stairs" if rise < -0.3 => "down the stairs".to_owned(),
                "stairs" => "over the stairs".to_owned(),
                _ => {
                    let names: Vec<String> = group.iter().map(|room| format!("the {}", self.kind(*room))).collect();
                    format!("through {}", joined(&names))
                }
            });
        }
        joined(&parts)
    }
}

/// Names of the things within 3 m, nearest first, each once.
pub(super) fn near(scene: &Scene, viewpoint: usize) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let eye = scene.graph.position(viewpoint)[2];
    for thing in scene.landmarks(viewpoint) {
        let overhead = thing.position[2] > eye + 0.7;
        if thing.distance <= AT_HAND && !overhead && !names.contains(&thing.name) {
            names.push(thing.name);
        }
    }
    names
}

fn without_colour(name: &str) -> &str {
    name.split_once(' ').map_or(name, |(_, rest)| rest)
}

/// "a, b and c".
fn joined(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// A name with its article: "a table", "an orange chair", "some books".
pub(super) fn with_article(name: &str) -> String {
    let plural = name.ends_with('s') && !["ss", "us", "is"].iter().any(|end| name.ends_with(end));
    let spoken_as_consonant = ["uni", "use", "usu", "ute", "one"].iter().any(|begin| name.starts_with(begin));
    let vowel = name.starts_with(['a', 'e', 'i', 'o', 'u']) && !spoken_as_consonant;
    match (plural, vowel) {
        (true, _) => format!("some {name}"),
        (false, true) => format!("an {name}"),
        (false, false) => format!("a {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_the_article_that_people_say() {
        let named = ["table", "orange chair", "island", "books", "glass", "umbrella stand", "unit", "white drums"]
            .map(with_article);
        let expected = [
            "a table",
            "an orange chair",
            "an island",
            "some books",
            "a glass",
            "an umbrella stand",
            "a unit",
            "some white drums",
        ];
        assert_eq!(named, expected);
    }

    #[test]
    fn lists_end_with_and() {
        let list = |parts: &[&str]| joined(&parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            [list(&[]), list(&["a"]), list(&["a", "b"]), list(&["a", "b", "c"])],
            ["", "a", "a and b", "a, b and c"]
        );
    }
}
