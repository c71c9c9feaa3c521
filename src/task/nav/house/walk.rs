//! Where one can stand and walk: the viewpoints and edges of a house.

use super::furnish::BODY;
use super::{EYE, House, Item, Opening, OpeningKind, Rect, STOREY_HEIGHT, Stand, Wall, centimetres};
use crate::rng::Stream;
use rand::RngExt;
use rand::seq::SliceRandom;
use std::collections::VecDeque;

/// Side of a cell of the search grid.
const CELL: f64 = 0.15;

/// Edges are no longer.
const LONGEST: f64 = 5.0;

/// Neighbours a viewpoint has on average; of the possible edges the shortest are taken.
const NEIGHBOURS: f64 = 4.2;

/// Parts of a storey that are joined at most, one after the other.
const MOST_GAPS: usize = 40;

/// Viewpoints and edges.
type StandsAndEdges = (Vec<Stand>, Vec<(usize, usize)>);

/// Obstacles on a storey, grown by half a body.
pub(super) struct Obstacles {
    rects: Vec<Rect>,
}

impl Obstacles {
    /// Walls with their doors left open, things that stand on the floor, and where stairs are, those.
    pub(super) fn of(house: &House, storey: usize) -> Obstacles {
        let walls = solid_stretches(house, storey, OpeningKind::passable).map(|(wall, a, b)| wall.stretch(a, b));
        let here = |item: &&Item| house.rooms[item.room].storey == storey && item.blocks();
        let things = house.items.iter().filter(here).map(Item::rect);
        let mut rects: Vec<Rect> = walls.chain(things).map(|rect| rect.grown(BODY)).collect();
        // A stairwell is walked by its own viewpoints only.
        rects.extend(house.rooms.iter().filter(|r| r.storey == storey && r.kind == "stairs").map(|r| r.rect));
        Obstacles { rects }
    }

    /// Whether one can stand at a point.
    pub(super) fn free(&self, at: [f64; 2]) -> bool {
        !self.rects.iter().any(|rect| rect.holds(at))
    }

    /// Whether one can walk straight from one point to another.
    pub(super) fn passable(&self, from: [f64; 2], to: [f64; 2]) -> bool {
        passable(&self.rects, from, to)
    }

    /// Those that a straight walk of no more than [`LONGEST`] from a point can meet.
    fn around(&self, [x, y]: [f64; 2]) -> Vec<Rect> {
        let reach = LONGEST + 0.01;
        let near = Rect { x0: x - reach, y0: y - reach, x1: x + reach, y1: y + reach };
        self.rects.iter().copied().filter(|rect| rect.meets(&near)).collect()
    }
}

/// Whether a straight walk crosses none of some obstacles. Most lie beside the box around the walk, and need no closer look.
fn passable(rects: &[Rect], from: [f64; 2], to: [f64; 2]) -> bool {
    let [(x0, x1), (y0, y1)] = [0, 1].map(|k| (from[k].min(to[k]), from[k].max(to[k])));
    let beside = |rect: &Rect| rect.x0 >= x1 || rect.x1 <= x0 || rect.y0 >= y1 || rect.y1 <= y0;
    !rects.iter().any(|rect| !beside(rect) && rect.crossed(from, to))
}

/// Stretches of a storey's walls without the openings of some kinds.
pub(super) fn solid_stretches(
    house: &House,
    storey: usize,
    left_out: impl Fn(OpeningKind) -> bool + Copy,
) -> impl Iterator<Item = (&Wall, f64, f64)> {
    let walls = house.walls.iter().enumerate().filter(move |(_, wall)| wall.storey == storey);
    walls.flat_map(move |(index, wall)| {
        let (from, to) = wall.span();
        let along = |at: [f64; 2]| if wall.along_x() { at[0] } else { at[1] };
        let mut gaps: Vec<(f64, f64)> = house
            .openings
            .iter()
            .filter(|o| o.wall == index && left_out(o.kind))
            .map(|o| (along(o.at) - o.width / 2.0, along(o.at) + o.width / 2.0))
            .collect();
        gaps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut stretches = Vec::new();
        let mut at = from;
        for (a, b) in gaps {
            stretches.push((wall, at, a));
            at = b;
        }
        stretches.push((wall, at, to));
        stretches.into_iter().filter(|(_, a, b)| b - a > 0.001)
    })
}

/// The door or archway that a straight walk leads through, from a room; the open side of a stairwell is none.
pub fn opening_crossed(house: &House, room: usize, from: [f64; 2], to: [f64; 2]) -> Option<&Opening> {
    let storey = house.rooms[room].storey;
    house.openings.iter().filter(|o| o.kind.passable()).find(|o| {
        let wall = &house.walls[o.wall];
        let well = wall.rooms.iter().flatten().any(|room| house.rooms[*room].kind == "stairs");
        wall.storey == storey && !well && house.opening_rect(o).crossed(from, to)
    })
}

/// Finds viewpoints and edges. `None` when a part of the house cannot be reached.
pub(super) fn find_edges(house: &House, chance: &mut Stream) -> Option<StandsAndEdges> {
    let spacing = chance.random_range(1.25..1.6);
    let obstacles: Vec<Obstacles> = (0..house.storeys).map(|storey| Obstacles::of(house, storey)).collect();
    let mut finder = Finder { house, stands: Vec::new(), obstacles, edges: Vec::new() };
    for storey in 0..house.storeys {
        let first = finder.stands.len();
        finder.spread(storey, spacing, chance)?;
        finder.join(storey, first)?;
    }
    finder.climb()?;
    let Finder { stands, mut edges, .. } = finder;
    edges.sort_unstable();
    edges.dedup();
    Some((stands, edges))
}

struct Finder<'a> {
    house: &'a House,
    stands: Vec<Stand>,
    obstacles: Vec<Obstacles>,
    edges: Vec<(usize, usize)>,
}

/// Where the eye is of somebody who stands at a point of a storey.
fn eye([x, y]: [f64; 2], storey: usize) -> [f64; 3] {
    [x, y, centimetres(storey as f64 * STOREY_HEIGHT + EYE)]
}

fn apart(a: &Stand, b: &Stand) -> f64 {
    (a.position[0] - b.position[0]).hypot(a.position[1] - b.position[1])
}

fn flat(stand: &Stand) -> [f64; 2] {
    [stand.position[0], stand.position[1]]
}

impl Finder<'_> {
    fn stand(&self, storey: usize, at: [f64; 2]) -> Option<Stand> {
        let [x, y] = at.map(centimetres);
        let room = self.house.rooms.iter().position(|room| {
            let r = room.rect;
            room.storey == storey && r.x0 <= x && x <= r.x1 && r.y0 <= y && y <= r.y1
        })?;
        Some(Stand { position: eye([x, y], storey), room })
    }

    /// Viewpoints of a storey: before the stairs, in doors, and elsewhere at random, no two too close to each other.
    /// `None` when somebody in the hallway cannot reach every room.
    fn spread(&mut self, storey: usize, spacing: f64, chance: &mut Stream) -> Option<()> {
        let first = self.stands.len();
        let anchor = self.anchor(storey);
        if let Some(anchor) = anchor {
            self.stands.push(self.stand(storey, anchor)?);
        }
        let mut doors: Vec<[f64; 2]> = self
            .house
            .openings
            .iter()
            .filter(|o| o.kind.passable() && o.width < 1.6 && self.house.walls[o.wall].storey == storey)
            .map(|o| o.at)
            .collect();
        doors.shuffle(chance);
        for at in doors {
            let new = self.stand(storey, at)?;
            let fits = self.obstacles[storey].free(at) && self.stands[first..].iter().all(|s| apart(s, &new) > 0.8);
            if fits {
                self.stands.push(new);
            }
        }
        let indoors = self.stands.len();
        let grid = Grid::new(self.house, &self.obstacles[storey], storey);
        let hall = self.house.rooms.iter().find(|room| room.storey == storey && room.kind == "hallway")?.rect;
        let begin = anchor.or_else(|| grid.free_in(&hall))?;
        let reached = grid.reached(grid.cell(begin)?);
        let mut spots = Vec::new();
        for (index, room) in self.house.rooms.iter().enumerate() {
            if room.storey != storey || room.kind == "stairs" {
                continue;
            }
            let before = spots.len();
            let inside = grid.inside(room.rect.grown(-0.3)).filter(|cell| reached[*cell]);
            spots.extend(inside.map(|cell| (index, grid.point(cell).map(centimetres))));
            if spots.len() == before {
                return None;
            }
        }
        spots.shuffle(chance);
        for (room, at) in spots {
            let beside = |(dx, dy): &(f64, f64)| self.obstacles[storey].free([at[0] + dx, at[1] + dy]);
            let roomy = || [(-0.1, 0.0), (0.1, 0.0), (0.0, -0.1), (0.0, 0.1)].iter().all(beside);
            let new = Stand { position: eye(at, storey), room };
            // People place cameras closer to each other when a wall is between them.
            let near = |(index, other): (usize, &Stand)| {
                let least = if index < indoors - first { 0.75 * spacing } else { spacing };
                let far = [0, 1].iter().any(|k| (other.position[*k] - new.position[*k]).abs() > spacing);
                !far && apart(other, &new) < if other.room == room { least } else { 0.6 * spacing }
            };
            if !self.stands[first..].iter().enumerate().any(near) && roomy() {
                self.stands.push(new);
            }
        }
        Some(())
    }

    /// The point in the hallway before the stairwell, if a storey has one.
    fn anchor(&self, storey: usize) -> Option<[f64; 2]> {
        let rooms = || self.house.rooms.iter().filter(|room| room.storey == storey);
        let well = rooms().find(|room| room.kind == "stairs")?;
        let hall = rooms().find(|room| room.kind == "hallway")?;
        Some([well.rect.centre()[0], hall.rect.centre()[1]].map(centimetres))
    }

    /// Edges of a storey, and viewpoints on the way between parts that no edge joins yet.
    fn join(&mut self, storey: usize, first: usize) -> Option<()> {
        for _ in 0..MOST_GAPS {
            let possible = self.possible(storey, first);
            let n = self.stands.len() - first;
            let mut parts = Parts::new(n);
            possible.iter().for_each(|(_, a, b)| parts.unite(*a - first, *b - first));
            if (0..n).all(|i| parts.same(0, i)) {
                self.take(possible, first);
                return Some(());
            }
            let between = self.way_between(storey, first, &mut parts)?;
            for at in between {
                let stand = self.stand(storey, at)?;
                self.stands.push(stand);
            }
        }
        None
    }

    /// All pairs of viewpoints of a storey that one can walk between, shortest first.
    fn possible(&self, storey: usize, first: usize) -> Vec<(f64, usize, usize)> {
        let mut possible = Vec::new();
        for a in first..self.stands.len() {
            let from = flat(&self.stands[a]);
            let around = self.obstacles[storey].around(from);
            for b in a + 1..self.stands.len() {
                let to = flat(&self.stands[b]);
                let far = [0, 1].iter().any(|k| (from[*k] - to[*k]).abs() > LONGEST);
                let length = if far { f64::INFINITY } else { apart(&self.stands[a], &self.stands[b]) };
                if length <= LONGEST && passable(&around, from, to) {
                    possible.push((length, a, b));
                }
            }
        }
        possible.sort_by(|a, b| a.0.total_cmp(&b.0));
        possible
    }

    /// Takes the edges that hold the storey together, then the shortest up to the wanted number of neighbours; none that
    /// leads past a viewpoint on its way.
    fn take(&mut self, possible: Vec<(f64, usize, usize)>, first: usize) {
        let n = self.stands.len() - first;
        let mut parts = Parts::new(n);
        let mut taken = Vec::new();
        let mut rest = Vec::new();
        for (length, a, b) in possible {
            if parts.same(a - first, b - first) {
                rest.push((length, a, b));
            } else {
                parts.unite(a - first, b - first);
                taken.push((a, b));
            }
        }
        let wanted = (NEIGHBOURS * n as f64 / 2.0) as usize;
        for (length, a, b) in rest {
            if taken.len() >= wanted {
                break;
            }
            let past = (first..self.stands.len()).any(|c| {
                let (ac, cb) = (apart(&self.stands[a], &self.stands[c]), apart(&self.stands[c], &self.stands[b]));
                c != a && c != b && ac + cb < 1.004 * length
            });
            if !past {
                taken.push((a, b));
            }
        }
        self.edges.extend(taken);
    }

    /// Points on a walk from the first part to any other part: as few as one can walk straight between.
    fn way_between(&self, storey: usize, first: usize, parts: &mut Parts) -> Option<Vec<[f64; 2]>> {
        let grid = Grid::new(self.house, &self.obstacles[storey], storey);
        let mut goal: Vec<Option<usize>> = vec![None; grid.free.len()];
        let mut from = vec![usize::MAX; grid.free.len()];
        let mut open = VecDeque::new();
        for (i, stand) in self.stands[first..].iter().enumerate() {
            let cell = grid.cell(flat(stand))?;
            if parts.same(0, i) {
                from[cell] = cell;
                open.push_back(cell);
            } else {
                goal[cell] = Some(i);
            }
        }
        while let Some(at) = open.pop_front() {
            if let Some(i) = goal[at] {
                let mut points = vec![flat(&self.stands[first + i]), grid.point(at)];
                let mut back = at;
                while from[back] != back {
                    back = from[back];
                    points.push(grid.point(back));
                }
                return Some(self.straightened(storey, points));
            }
            for next in grid.beside(at) {
                if from[next] == usize::MAX && grid.free[next] {
                    from[next] = at;
                    open.push_back(next);
                }
            }
        }
        None
    }

    /// The inner corners of a walk that goes from cell to cell.
    fn straightened(&self, storey: usize, points: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
        let mut corners = Vec::new();
        let mut at = 0;
        while at + 1 < points.len() {
            let near = |p: &[f64; 2]| (p[0] - points[at][0]).hypot(p[1] - points[at][1]) <= 2.2;
            let reached = |k: &usize| near(&points[*k]) && self.obstacles[storey].passable(points[at], points[*k]);
            at = (at + 1..points.len()).rev().find(reached).unwrap_or(at + 1);
            corners.push(points[at]);
        }
        if corners.len() > 1 {
            corners.pop();
        }
        corners
    }

    /// Viewpoints and edges of the stairs.
    fn climb(&mut self) -> Option<()> {
        for stairs in &self.house.stairs {
            let (below, above) = (self.anchor(stairs.storey)?, self.anchor(stairs.storey + 1)?);
            let at = |at: [f64; 2], storey: usize| self.stands.iter().position(|s| s.position == eye(at, storey));
            let (below, above) = (at(below, stairs.storey)?, at(above, stairs.storey + 1)?);
            let first = self.stands.len();
            for (k, [x, y, z]) in stairs.stands.into_iter().enumerate() {
                let storey = if k < 2 { stairs.storey } else { stairs.storey + 1 };
                let well = |room: &super::Room| room.storey == storey && room.rect == stairs.rect;
                let room = self.house.rooms.iter().position(well)?;
                self.stands.push(Stand { position: [x, y, centimetres(z + EYE)], room });
            }
            self.edges.extend([(below, first), (first, first + 1), (first + 1, first + 2), (above, first + 2)]);
        }
        Some(())
    }
}

/// The cells of a storey, from its south-west corner, and whether one can stand in their middle.
struct Grid {
    columns: usize,
    rows: usize,
    free: Vec<bool>,
}

impl Grid {
    fn new(house: &House, obstacles: &Obstacles, storey: usize) -> Grid {
        let rooms = || house.rooms.iter().filter(|room| room.storey == storey);
        let (east, north) = rooms().fold((0.0f64, 0.0f64), |(x, y), room| (x.max(room.rect.x1), y.max(room.rect.y1)));
        let (columns, rows) = ((east / CELL) as usize + 1, (north / CELL) as usize + 1);
        let mut grid = Grid { columns, rows, free: vec![false; columns * rows] };
        for room in rooms() {
            grid.inside(room.rect.grown(0.01)).for_each(|cell| grid.free[cell] = true);
        }
        for rect in &obstacles.rects {
            grid.inside(*rect).for_each(|cell| grid.free[cell] = false);
        }
        grid
    }

    /// The cells whose middles a rectangle holds, in their order.
    fn inside(&self, rect: Rect) -> impl Iterator<Item = usize> + use<> {
        let Grid { columns, rows, .. } = *self;
        // The cells about its edges are looked at as well.
        let about = |low: f64, high: f64, cells: usize| {
            ((low / CELL) as usize).saturating_sub(1)..((high / CELL) as usize + 2).min(cells)
        };
        let (across, along) = (about(rect.x0, rect.x1, columns), about(rect.y0, rect.y1, rows));
        let cells = across.flat_map(move |i| along.clone().map(move |j| i * rows + j));
        cells.filter(move |cell| rect.holds(middle(*cell, rows)))
    }

    fn point(&self, cell: usize) -> [f64; 2] {
        middle(cell, self.rows)
    }

    /// A free cell at a point or, where furniture is near, right beside it.
    fn cell(&self, [x, y]: [f64; 2]) -> Option<usize> {
        let (i, j) = ((x / CELL).round() as usize, (y / CELL).round() as usize);
        let around = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (-1, -1), (1, -1), (-1, 1)];
        around.iter().find_map(|(di, dj)| {
            let (i, j) = (i.checked_add_signed(*di)?, j.checked_add_signed(*dj)?);
            let cell = i * self.rows + j;
            (i < self.columns && j < self.rows && self.free[cell]).then_some(cell)
        })
    }

    /// A point of a rectangle where one can stand.
    fn free_in(&self, rect: &Rect) -> Option<[f64; 2]> {
        (0..self.free.len()).find(|cell| self.free[*cell] && rect.holds(self.point(*cell))).map(|cell| self.point(cell))
    }

    /// The cells to the west, east, south and north.
    fn beside(&self, cell: usize) -> impl Iterator<Item = usize> + use<> {
        let (columns, rows) = (self.columns, self.rows);
        let (i, j) = (cell / rows, cell % rows);
        [(i.wrapping_sub(1), j), (i + 1, j), (i, j.wrapping_sub(1)), (i, j + 1)]
            .into_iter()
            .filter(move |(i, j)| *i < columns && *j < rows)
            .map(move |(i, j)| i * rows + j)
    }

    /// The cells that one can walk to from a cell.
    fn reached(&self, from: usize) -> Vec<bool> {
        let mut reached = vec![false; self.free.len()];
        let mut open = vec![from];
        reached[from] = true;
        while let Some(at) = open.pop() {
            for next in self.beside(at) {
                if self.free[next] && !std::mem::replace(&mut reached[next], true) {
                    open.push(next);
                }
            }
        }
        reached
    }
}

/// The middle of a cell in a grid of so many rows.
fn middle(cell: usize, rows: usize) -> [f64; 2] {
    [(cell / rows) as f64 * CELL, (cell % rows) as f64 * CELL]
}

/// Disjoint sets.
struct Parts {
    parent: Vec<usize>,
}

impl Parts {
    fn new(n: usize) -> Parts {
        Parts { parent: (0..n).collect() }
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.parent[at] != at {
            self.parent[at] = self.parent[self.parent[at]];
            at = self.parent[at];
        }
        at
    }

    fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a] = b;
    }

    fn same(&mut self, a: usize, b: usize) -> bool {
        self.root(a) == self.root(b)
    }
}
