//! A walk as a small map: rooms where they are known, the path in order, its start and its end.

use super::family::Stop;
use super::house::{EYE, House, Rect, STOREY_HEIGHT};

/// A map shows at least so many metres each way.
const LEAST: f64 = 7.0;

/// Metres around the path.
const MARGIN: f64 = 1.6;

/// Width of a letter of a room's name.
const NAME_WIDTH: f64 = 0.36;

/// The map that the template draws. Lengths are metres, y to the south as pictures have it.
pub(super) struct Map {
    /// West, north, width and height of what is shown.
    pub frame: [f64; 4],
    /// Rooms that the frame meets: x, y, width, height, and whether the walk comes through.
    pub rooms: Vec<([f64; 4], bool)>,
    /// Doors and archways: x, y, width, height.
    pub doors: Vec<[f64; 4]>,
    /// Names of rooms the walk comes through, with their middles.
    pub names: Vec<(f64, f64, String)>,
    /// The path as SVG points.
    pub line: String,
    /// Stops: x and y.
    pub stops: Vec<(f64, f64)>,
}

fn cm(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}

fn box_of(rect: &Rect) -> [f64; 4] {
    [cm(rect.x0), cm(-rect.y1), cm(rect.width()), cm(rect.depth())]
}

impl Map {
    /// The map of a path. Of a generated house it shows the storey where the walk begins.
    pub(super) fn of(path: &[Stop], house: Option<&House>) -> Map {
        let stops: Vec<(f64, f64)> = path.iter().map(|s| (cm(s.position[0]), cm(-s.position[1]))).collect();
        let span = |pick: fn(&(f64, f64)) -> f64| {
            let (low, high) = stops.iter().map(pick).fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(x), h.max(x)));
            let grow = MARGIN.max((LEAST - (high - low)) / 2.0);
            (low - grow, high - low + 2.0 * grow)
        };
        let ((x, width), (y, height)) = (span(|p| p.0), span(|p| p.1));
        let shown = Rect { x0: x, y0: -y - height, x1: x + width, y1: -y };
        let mut map = Map {
            frame: [x, y, width, height].map(cm),
            rooms: Vec::new(),
            doors: Vec::new(),
            names: Vec::new(),
            line: stops.iter().map(|(x, y)| format!("{x},{y}")).collect::<Vec<_>>().join(" "),
            stops,
        };
        if let Some(house) = house {
            map.add_rooms(house, path, &shown);
        }
        map
    }

    fn add_rooms(&mut self, house: &House, path: &[Stop], shown: &Rect) {
        let storey = ((path[0].position[2] - EYE + 0.3) / STOREY_HEIGHT).floor().max(0.0) as usize;
        for room in house.rooms.iter().filter(|room| room.storey == storey && room.rect.meets(shown)) {
            let here = |stop: &Stop| room.rect.grown(0.01).holds([stop.position[0], stop.position[1]]);
            let through = path.iter().any(here);
            self.rooms.push((box_of(&room.rect), through));
            if through {
                // In the middle of what is shown of the room.
                let (r, s) = (room.rect, shown);
                let part = Rect { x0: r.x0.max(s.x0), y0: r.y0.max(s.y0), x1: r.x1.min(s.x1), y1: r.y1.min(s.y1) };
                let [x, y] = part.centre();
                let half = (NAME_WIDTH * room.kind.len() as f64 / 2.0).min(shown.width() / 2.0);
                let x = x.max(shown.x0 + half).min(shown.x1 - half);
                self.names.push((cm(x), cm(-y), room.kind.clone()));
            }
        }
        let passable = |o: &&super::house::Opening| house.walls[o.wall].storey == storey && o.kind.passable();
        self.doors =
            house.openings.iter().filter(passable).map(|o| box_of(&house.opening_rect(o).grown(0.02))).collect();
    }

    /// Where the walk ends.
    pub(super) fn end(&self) -> (f64, f64) {
        self.stops.last().copied().unwrap_or_default()
    }
}
