//! The room that somebody in a generated house is in: the one rule by which words, labels and pictures of walks name rooms.

use super::super::action::bearing;
use super::{EYE, House, STOREY_HEIGHT};

/// Somebody so near the line of a door or archway, in metres, stands in it.
const DOORWAY: f64 = 0.2;

/// The way between two viewpoints is looked at every so many metres.
const STEP: f64 = 0.05;

/// A heading that leads across a doorway by less than this share of a step runs along it.
const ALONG: f64 = 0.05;

/// The rooms of a walk up to one of its viewpoints.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// The room that the walker is in on arrival.
    pub room: usize,
    /// The rooms that the walker comes into on the way from the viewpoint before, each with the share of the way by then.
    pub way: Vec<(f64, usize)>,
}

impl House {
    /// The room of an eye that looks along a heading: in a doorway the room ahead, elsewhere the room around it. `None` outside.
    pub fn room_at(&self, [x, y, z]: [f64; 3], heading: f64) -> Option<usize> {
        let storey = ((z - EYE) / STOREY_HEIGHT).round().clamp(0.0, (self.storeys - 1) as f64) as usize;
        let doorway = self.openings.iter().filter(|opening| opening.kind.passable()).find_map(|opening| {
            let wall = &self.walls[opening.wall];
            let [near, far] = wall.rooms;
            let (along, across, ahead) = if wall.along_x() {
                (x - opening.at[0], y - opening.at[1], heading.cos())
            } else {
                (y - opening.at[1], x - opening.at[0], heading.sin())
            };
            let inside = wall.storey == storey && along.abs() <= opening.width / 2.0 && across.abs() <= DOORWAY;
            let beyond = if ahead.abs() < ALONG { across > 0.0 } else { ahead > 0.0 };
            if inside { if beyond { far } else { near } } else { None }
        });
        doorway
            .or_else(|| self.rooms.iter().position(|room| room.storey == storey && room.rect.grown(1e-9).holds([x, y])))
    }

    /// The rooms of a walk along viewpoints that begins with a heading.
    pub fn rooms_along(&self, heading: f64, path: &[usize]) -> Vec<Arrival> {
        let mut arrivals: Vec<Arrival> = Vec::with_capacity(path.len());
        let mut facing = heading;
        for (i, &stand) in path.iter().enumerate() {
            let here = &self.stands[stand];
            let known = |at: [f64; 3], facing: f64| self.room_at(at, facing).unwrap_or(here.room);
            let Some(before) = arrivals.last() else {
                arrivals.push(Arrival { room: known(here.position, facing), way: Vec::new() });
                continue;
            };
            let (from, to) = (self.stands[path[i - 1]].position, here.position);
            let length = (to[0] - from[0]).hypot(to[1] - from[1]);
            if length > 0.01 {
                facing = bearing(&from, &to);
            }
            let steps = (length / STEP).ceil().max(1.0);
            let (mut room, mut way) = (before.room, Vec::new());
            for step in 0..=steps as usize {
                let share = step as f64 / steps;
                let at = [0, 1, 2].map(|k| from[k] + (to[k] - from[k]) * share);
                let now = known(at, facing);
                if now != room {
                    way.push((share, now));
                    room = now;
                }
            }
            arrivals.push(Arrival { room, way });
        }
        arrivals
    }
}
