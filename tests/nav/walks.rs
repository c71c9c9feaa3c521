//! A little world in which the NAV student learns to walk: a grid of places, each with a landmark of its own, which is
//! seen from afar in its direction. A request names the landmark to stop at.

use candle_core::{DType, Device};
use iliad::nn::adam::Adam;
use iliad::nn::layers::Grad;
use iliad::rng::{Stream, stream};
use iliad::task::nav::model::rollout::{Environment, RollOut, Rolled};
use iliad::task::nav::model::student::{Batch, Lesson, NavStudent, Reading, as_read};
use iliad::task::nav::model::views::ViewTable;
use iliad::task::nav::model::walk::{Candidate, Observation, Walk};
use iliad::task::nav::model::{NavSizes, VIEWS};
use rand::RngExt;

const SIDE: u32 = 3;
const PLACES: u32 = SIDE * SIDE;
/// The directions in which one can go: (column of views, step to the right, step up).
const WAYS: [(u32, i32, i32); 4] = [(0, 0, 1), (3, 1, 0), (6, 0, -1), (9, -1, 0)];
const HORIZON: usize = 6;

fn neighbour(place: u32, (_, right, up): (u32, i32, i32)) -> Option<u32> {
    let (x, y) = ((place % SIDE) as i32 + right, (place / SIDE) as i32 + up);
    let inside = |v: i32| (0..SIDE as i32).contains(&v);
    (inside(x) && inside(y)).then_some((y * SIDE as i32 + x) as u32)
}

fn distance(a: u32, b: u32) -> u32 {
    (a % SIDE).abs_diff(b % SIDE) + (a / SIDE).abs_diff(b / SIDE)
}

/// Features: landmarks seen in the direction of a view, then the landmark of the place itself.
fn views() -> ViewTable {
    let features = 2 * PLACES as usize;
    let mut values = vec![0f32; PLACES as usize * VIEWS * features];
    for place in 0..PLACES {
        for way in WAYS {
            let Some(next) = neighbour(place, way) else { continue };
            for other in (0..PLACES).filter(|o| distance(next, *o) < distance(place, *o)) {
                let view = place as usize * VIEWS + 12 + way.0 as usize;
                values[view * features + other as usize] = 3.0 / distance(place, other) as f32;
            }
        }
        for view in 0..VIEWS {
            values[(place as usize * VIEWS + view) * features + (PLACES + place) as usize] = 2.0;
        }
    }
    ViewTable::new(&values, features, DType::F32, &Device::Cpu).unwrap()
}

/// Walkers in the grid, each facing the way it last went.
#[derive(Clone)]
struct Grid {
    places: Vec<u32>,
    facing: Vec<u32>,
}

impl Grid {
    fn at(places: &[u32]) -> Self {
        Self { places: places.to_vec(), facing: vec![0; places.len()] }
    }

    fn ways(place: u32) -> Vec<(u32, u32)> {
        WAYS.iter().filter_map(|way| Some((way.0, neighbour(place, *way)?))).collect()
    }

    fn look(place: u32, facing: u32) -> Observation {
        let turned = |column: u32| (column as f32 - facing as f32).to_radians() * 30.0;
        let moves = Self::ways(place).into_iter().map(|(column, _)| Candidate {
            view: 12 + column,
            heading: turned(column),
            elevation: 0.0,
        });
        Observation { place, pose: None, moves: moves.collect() }
    }
}

impl Environment for Grid {
    fn observe(&mut self) -> candle_core::Result<Vec<Observation>> {
        Ok(self.places.iter().zip(&self.facing).map(|(&p, &f)| Self::look(p, f)).collect())
    }

    fn act(&mut self, actions: &[u32]) -> candle_core::Result<()> {
        for ((place, facing), action) in self.places.iter_mut().zip(&mut self.facing).zip(actions) {
            if *action > 0 {
                (*facing, *place) = Self::ways(*place)[*action as usize - 1];
            }
        }
        Ok(())
    }
}

/// The action of a shortest path.
fn towards(place: u32, goal: u32) -> u32 {
    let closer = |&(_, next): &(u32, u32)| distance(next, goal) < distance(place, goal);
    Grid::ways(place).iter().position(closer).map_or(0, |i| i as u32 + 1)
}

/// A shortest path, as a walk.
fn path(from: u32, goal: u32) -> Walk {
    let (mut grid, mut walk) = (Grid::at(&[from]), Walk::default());
    loop {
        let action = towards(grid.places[0], goal);
        walk.seen.push(grid.observe().unwrap().remove(0));
        walk.actions.push(action);
        if action == 0 {
            return walk;
        }
        grid.act(&[action]).unwrap();
    }
}

fn end(walk: &Walk) -> u32 {
    walk.seen.last().unwrap().place
}

fn request(goal: u32) -> Vec<u32> {
    as_read(&[4 + goal])
}

struct Learner {
    student: NavStudent,
    adam: Adam,
    views: ViewTable,
}

impl Learner {
    fn new(rate: f64) -> Self {
        let sizes =
            NavSizes { words: 4 + PLACES as usize, hidden: 32, heads: 4, features: 2 * PLACES as usize, direction: 8 };
        let student = NavStudent::new(sizes, Reading::default(), &mut stream(1, "grid", 0), &Device::Cpu).unwrap();
        Self { adam: Adam::new(&student.params, rate).unwrap(), student, views: views() }
    }

    fn roll(&self, tasks: &[(u32, u32)], sample: bool, grad: Grad, draws: &mut Stream) -> Rolled {
        let starts: Vec<u32> = tasks.iter().map(|t| t.0).collect();
        let requests: Vec<_> = tasks.iter().map(|t| request(t.1)).collect();
        let how = RollOut { horizon: HORIZON, sample, grad };
        self.student.roll_out(&requests, &mut Grid::at(&starts), &self.views, how, draws).unwrap()
    }

    /// The share of all tasks at whose goal greedy walks stop by themselves.
    fn success(&self) -> f32 {
        let tasks: Vec<_> = (0..PLACES).flat_map(|s| (0..PLACES).map(move |g| (s, g))).collect();
        let rolled = self.roll(&tasks, false, Grad::Off, &mut stream(1, "greedy", 0));
        let there = rolled.walks.iter().zip(&rolled.stopped).zip(&tasks);
        there.filter(|((w, stopped), t)| **stopped && end(w) == t.1).count() as f32 / tasks.len() as f32
    }
}

fn tasks(n: usize, draws: &mut Stream) -> Vec<(u32, u32)> {
    (0..n).map(|_| (draws.random_range(0..PLACES), draws.random_range(0..PLACES))).collect()
}

#[test]
fn told_the_way_at_every_step_of_its_own_walks_it_finds_every_goal() {
    let mut l = Learner::new(3e-3);
    let before = l.success();
    for step in 0..250 {
        let draws = &mut stream(2, "tasks", step);
        let tasks = tasks(24, draws);
        let rolled = l.roll(&tasks, true, Grad::On, draws);
        let way = |(w, t): (&Walk, &(u32, u32))| w.seen.iter().map(|o| towards(o.place, t.1)).collect::<Vec<_>>();
        let targets: Vec<_> = rolled.walks.iter().zip(&tasks).map(way).collect();
        let loss = rolled.loss(&Lesson::likelihood(&targets, &[(24, 1.0)])).unwrap();
        l.adam.step(&loss.backward().unwrap()).unwrap();
    }
    let after = l.success();
    assert!(before < 0.35 && after > 0.95, "{before} before, {after} after");
}

#[test]
fn told_only_what_it_did_it_learns_to_do_what_it_is_told() {
    // ADEL with a teacher who describes perfectly: whatever the walk, its description names the place where it ended.
    // The marginal walks are shortest paths from the same start to anywhere.
    let mut l = Learner::new(3e-3);
    let before = l.success();
    for step in 0..500 {
        let draws = &mut stream(3, "tasks", step);
        let tasks = tasks(24, draws);
        let rolled = l.roll(&tasks, true, Grad::Off, draws);
        let requests = rolled.walks.iter().map(|w| request(end(w))).collect();
        let mut walks = rolled.walks;
        walks.extend(tasks.iter().map(|t| path(t.0, draws.random_range(0..PLACES))));
        let actions: Vec<_> = walks.iter().map(|w| w.actions.clone()).collect();
        // L(θ) + (1 − λ)·… on the walk, λ·… on the marginal one, λ falling.
        let mixing = 0.5 * 0.5f32.powi(step as i32 / 100);
        let lesson = Lesson::likelihood(&actions, &[(24, 2.0 - mixing), (24, mixing)]);
        l.student.step(&Batch { requests, walks }, &lesson, &l.views, &mut l.adam).unwrap();
    }
    let after = l.success();
    assert!(before < 0.35 && after > 0.85, "{before} before, {after} after");
}
