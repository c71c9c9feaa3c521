//! A world as the models meet it: what is seen and can be done at each pose, walks as actions, and walkers that are led by
//! a policy. Views of all places lie on the device, in one table.

use super::action::{Action, Pose, actions, after, poses};
use super::ngram_prior::told::WorldFacts;
use super::observation::store::Vectors;
use super::observation::{GEOMETRY, SCALE};
use super::world::NavWorld;
use super::{Start, Walk};
use crate::task::nav::model::rollout::Environment;
use crate::task::nav::model::transition_table::{HEADINGS, Transition, TransitionTable};
use crate::task::nav::model::views::ViewTable;
use crate::task::nav::model::walk::{Candidate, Observation, Walk as Taken};
use candle_core::{DType, Device, Result, bail};
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

/// The world with its views on a device.
#[derive(Clone, Debug)]
pub struct Around {
    world: Arc<NavWorld>,
    /// Feature vectors of all views.
    pub views: ViewTable,
    /// The moves that are possible at each pose of its places.
    ways: TransitionTable,
    /// Index of each house's first viewpoint in the table.
    first: Vec<u32>,
    /// Where the vectors come from: `semantic`, or a file.
    source: String,
    /// The facts that can be told of its houses, for agents with a prior that reads it.
    pub facts: Arc<WorldFacts>,
}

/// Those that are in use. An agent, its copies and its teacher look at the same table.
static IN_USE: Mutex<Vec<Weak<Around>>> = Mutex::new(Vec::new());

/// Someone somewhere in a house: the house, where they came from, and how they stand.
#[derive(Clone, Debug)]
struct Walker {
    house: usize,
    path: Vec<usize>,
    pose: u32,
}

impl Around {
    /// The world's surroundings on a device, shared with all that use them. `source` is `semantic` (vectors are made of what
    /// is seen) or a file of vectors.
    ///
    /// # Errors
    /// When the file cannot be used or lacks a viewpoint, or the device has no room.
    pub fn of(world: &Arc<NavWorld>, source: &str, device: &Device) -> anyhow::Result<Arc<Self>> {
        let mut in_use = IN_USE.lock().unwrap_or_else(|e| e.into_inner());
        in_use.retain(|weak| weak.strong_count() > 0);
        let fits =
            |a: &Arc<Self>| Arc::ptr_eq(&a.world, world) && a.source == source && a.views.device().same_device(device);
        if let Some(found) = in_use.iter().filter_map(Weak::upgrade).find(fits) {
            return Ok(found);
        }
        let file = if source == "semantic" { None } else { Some(Vectors::open(Path::new(source))?) };
        let made = Arc::new(Self::new(world, file.as_ref(), source, device)?);
        in_use.push(Arc::downgrade(&made));
        Ok(made)
    }

    fn new(world: &Arc<NavWorld>, file: Option<&Vectors>, source: &str, device: &Device) -> anyhow::Result<Self> {
        let mut first = Vec::with_capacity(world.scenes().len());
        let mut of = Vec::new();
        for (house, scene) in world.scenes().iter().enumerate() {
            first.push(of.len() as u32);
            of.extend((0..scene.graph.len()).map(|viewpoint| (house, viewpoint)));
        }
        let semantic = world.semantic(semantic_size(world), SCALE).map_err(anyhow::Error::msg)?;
        let features = file.map_or(semantic.dim(), Vectors::dim);
        let kind = if device.is_cpu() { DType::F32 } else { DType::F16 };
        let fill = |place: usize, views: &mut [f32]| {
            let (house, viewpoint) = of[place];
            let scene = &world.scenes()[house];
            let vectors = match file {
                None => scene.vectors(&semantic, viewpoint),
                Some(file) => match file.find(&scene.name, scene.graph.id(viewpoint)) {
                    Some(row) => file.row(row),
                    None => bail!("the views' file lacks {} of {}", scene.graph.id(viewpoint), scene.name),
                },
            };
            views.copy_from_slice(&vectors);
            Ok(())
        };
        let views = ViewTable::filled(of.len(), features, kind, device, fill)?;
        let moves = of.iter().flat_map(|&(house, viewpoint)| {
            let (graph, first) = (&world.scenes()[house].graph, first[house]);
            (0..HEADINGS as u8).map(move |heading| {
                let way = |a: &Action| Transition {
                    seen: Candidate {
                        view: u32::from(a.view),
                        heading: a.rel_heading as f32,
                        elevation: a.rel_elevation as f32,
                    },
                    next: pose_number(first, after(a)),
                };
                actions(graph, Pose { viewpoint, heading }).iter().map(way).collect::<Vec<_>>()
            })
        });
        let ways = TransitionTable::new(&moves.collect::<Vec<_>>())?;
        // The CPU is told of moves by observations, and needs no second table.
        let views = if device.is_cpu() { views } else { views.with_transitions(&ways)? };
        let facts = Arc::new(WorldFacts::new(world));
        Ok(Self { world: world.clone(), views, ways, first, source: source.to_owned(), facts })
    }

    /// A copy of the environment on another device, or on another handle of its own.
    ///
    /// # Errors
    /// When it has no room.
    pub fn on(&self, device: &Device) -> Result<Self> {
        let views = self.views.on(device)?;
        let views = if device.is_cpu() || views.transitions().is_some() {
            views
        } else {
            views.with_transitions(&self.ways)?
        };
        Ok(Self { views, ..self.clone() })
    }

    /// Features of a view that stand for names of things, the first ones of each vector. Nothing is known of those of a file: all
    /// of them count.
    pub fn named_features(&self) -> usize {
        if self.source == "semantic" { self.world.names().len() } else { self.views.features() }
    }

    /// The world.
    pub fn world(&self) -> &NavWorld {
        &self.world
    }

    /// Poses of its places.
    pub fn poses(&self) -> u32 {
        self.ways.poses() as u32
    }

    fn number(&self, house: usize, pose: Pose) -> u32 {
        pose_number(self.first[house], pose)
    }

    /// The action that leads from a pose to an adjacent viewpoint of the house; 0 where none does.
    fn towards(&self, house: usize, pose: u32, viewpoint: usize) -> u32 {
        let place = self.first[house] + viewpoint as u32;
        let found = self.ways.of(pose).iter().position(|way| way.next / HEADINGS as u32 == place);
        found.map_or(0, |at| at as u32 + 1)
    }

    fn observation(&self, pose: u32) -> Observation {
        let moves = self.ways.of(pose).iter().map(|way| way.seen).collect();
        Observation { place: pose / HEADINGS as u32, pose: Some(pose), moves }
    }

    fn begin(&self, start: &Start) -> Result<Walker> {
        match self.world.place(&start.viewpoint) {
            Some((house, viewpoint)) if self.world.scenes()[house].name == start.scan => {
                let pose = self.number(house, Pose { viewpoint, heading: start.heading });
                Ok(Walker { house, path: vec![viewpoint], pose })
            }
            _ => {
                let one = self.world.scenes().first().map_or("", |scene| &scene.name);
                bail!(
                    "there is no viewpoint {} in a house {} here; a house of this run is {one}",
                    start.viewpoint,
                    start.scan
                )
            }
        }
    }

    /// A walk as observations and actions, the last of which is to stop. What goes beyond `horizon` decisions is cut off.
    ///
    /// # Errors
    /// When it does not go along the ways of its house.
    pub fn taken(&self, start: &Start, walk: &Walk, horizon: usize) -> Result<Taken> {
        let Some((scene, mut path)) = self.world.path(start, walk) else {
            bail!("a walk from {} that does not go along the ways of {}", start.viewpoint, start.scan)
        };
        path.truncate(horizon.max(1));
        let house = self.begin(start)?.house;
        let mut taken = Taken::default();
        for (i, pose) in poses(&scene.graph, start.heading, &path).into_iter().enumerate() {
            let pose = self.number(house, pose);
            taken.actions.push(path.get(i + 1).map_or(0, |next| self.towards(house, pose, *next)));
            taken.seen.push(self.observation(pose));
        }
        Ok(taken)
    }

    /// For each decision of a walk, the action that leads on along a shortest path to the end of `shown`; there, to stop.
    ///
    /// # Errors
    /// When either does not go along the ways of its house.
    pub fn way(&self, start: &Start, walk: &Walk, shown: &Walk, horizon: usize) -> Result<Vec<u32>> {
        let (Some((scene, mut path)), Some((_, gold))) = (self.world.path(start, walk), self.world.path(start, shown))
        else {
            bail!("a walk from {} that does not go along the ways of {}", start.viewpoint, start.scan)
        };
        path.truncate(horizon.max(1));
        let (house, goal) = (self.begin(start)?.house, gold[gold.len() - 1]);
        let action = |pose: Pose| {
            let next = scene.graph.step_toward(pose.viewpoint, goal);
            next.map_or(0, |next| self.towards(house, self.number(house, pose), next))
        };
        Ok(poses(&scene.graph, start.heading, &path).into_iter().map(action).collect())
    }

    /// Walkers at the starts.
    ///
    /// # Errors
    /// When a start is nowhere.
    pub fn walkers(&self, starts: &[&Start]) -> Result<Walkers<'_>> {
        let all = starts.iter().map(|start| self.begin(start)).collect::<Result<Vec<_>>>()?;
        Ok(Walkers { around: self, all })
    }
}

/// Numbers of a semantic vector of this world: as many as are needed, filled up to a multiple of eight.
pub fn semantic_size(world: &NavWorld) -> usize {
    (world.names().len() + GEOMETRY).next_multiple_of(8)
}

/// A batch of walkers.
pub struct Walkers<'a> {
    around: &'a Around,
    all: Vec<Walker>,
}

impl Walkers<'_> {
    /// Where they have been.
    pub fn walks(&self) -> Vec<Walk> {
        let id = |walker: &Walker, viewpoint: &usize| {
            self.around.world.scenes()[walker.house].graph.id(*viewpoint).to_owned()
        };
        self.all.iter().map(|w| Walk { viewpoints: w.path.iter().map(|v| id(w, v)).collect() }).collect()
    }
}

impl Environment for Walkers<'_> {
    fn observe(&mut self) -> Result<Vec<Observation>> {
        Ok(self.all.iter().map(|w| self.around.observation(w.pose)).collect())
    }

    fn act(&mut self, actions: &[u32]) -> Result<()> {
        for (walker, &action) in self.all.iter_mut().zip(actions) {
            if action > 0 {
                let moves = self.around.ways.of(walker.pose);
                let Some(made) = moves.get(action as usize - 1) else { bail!("action {action} of {}", moves.len()) };
                walker.pose = made.next;
                walker.path.push((made.next / HEADINGS as u32 - self.around.first[walker.house]) as usize);
            }
        }
        Ok(())
    }

    fn poses(&self) -> Option<Vec<u32>> {
        Some(self.all.iter().map(|w| w.pose).collect())
    }
}

/// The number of a pose of a house whose first viewpoint is number `first`.
fn pose_number(first: u32, pose: Pose) -> u32 {
    (first + pose.viewpoint as u32) * HEADINGS as u32 + u32::from(pose.heading)
}
