//! The agent's observations: a vector for each of the 36 views at a viewpoint.
//!
//! Vectors are either read ([`tsv`]: the public ResNet-152 features) or *semantic*, made of the names of what a view shows.
//! A semantic vector has one number for each name, log(1 + 1000 · share) / log 1001 of the share of the view that things
//! of this name cover, and [`GEOMETRY`] numbers about the neighbour that lies in this view. All are multiplied by one
//! scale, so that a vector is about as long as those that the paper's models are made for. [`store`] keeps vectors on disk.

pub mod store;
pub mod tsv;

use super::action::{HEADINGS, VIEW_STEP, VIEWS, bearing, elevation, view_direction, view_toward, wrapped};
use super::graph::{Graph, distance_between};
use super::objects::Objects;
use rustc_hash::FxHashMap;

/// Numbers of geometry in a semantic vector: there is a neighbour in this view, distance of the nearest and of the
/// farthest such neighbour in fifths of 5 m, sine of the nearest's elevation, fifths of its own neighbours' number.
pub const GEOMETRY: usize = 5;

/// Half the angle that a view covers sideways: 75.2° in all, of 640 × 480 pixels with a vertical field of 60°.
pub const HALF_WIDTH: f64 = 0.6562;

/// Half the angle that a view covers up and down: 60° in all.
pub const HALF_HEIGHT: f64 = std::f64::consts::PI / 6.0;

/// The part of the sphere that a view covers, about, in steradians.
const VIEW_AREA: f64 = 4.0 * HALF_WIDTH * HALF_HEIGHT;

/// Inferred objects nearer than this are taken to be this far away.
const NEAREST: f64 = 0.5;

/// Something in a view: its name, the view, and the share of the view that it covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Glimpse<'a> {
    /// The everyday name.
    pub name: &'a str,
    /// View, 0 to 35.
    pub view: u8,
    /// Share of the view, 0 to 1.
    pub share: f64,
}

/// The glimpses of a viewpoint of a real house: seen objects with the area of their boxes; inferred ones, whose size and
/// direction are estimated from where they are, in every view whose frame holds their centre.
pub fn glimpses<'a>(graph: &Graph, objects: &'a Objects, viewpoint: usize) -> Vec<Glimpse<'a>> {
    let Some(sightings) = objects.viewpoints.get(graph.id(viewpoint)) else { return Vec::new() };
    let seen = sightings.seen.iter().flat_map(|sighting| {
        let glimpse =
            |&(view, share): &(u8, u16)| Glimpse { name: &sighting.name, view, share: f64::from(share) / 1e3 };
        sighting.views.iter().map(glimpse)
    });
    let here = graph.position(viewpoint);
    let inferred = sightings.inferred.iter().flat_map(|object| {
        let object = &objects.objects[*object];
        let centre = [object.x, object.y, object.z];
        let distance = distance_between(&here, &centre).max(NEAREST);
        let share = (object.width * object.height / (distance * distance) / VIEW_AREA).min(1.0);
        let (bearing, elevation) = (bearing(&here, &centre), elevation(&here, &centre));
        let nearest = view_toward(bearing, elevation);
        let shows = move |view: &u8| {
            let (heading, level) = view_direction(*view);
            let inside = wrapped(bearing - heading).abs() <= HALF_WIDTH && (elevation - level).abs() <= HALF_HEIGHT;
            *view == nearest || inside
        };
        (0..VIEWS as u8).filter(shows).map(move |view| Glimpse { name: &object.name, view, share })
    });
    seen.chain(inferred).collect()
}

/// Makes semantic vectors.
#[derive(Clone, Debug)]
pub struct Semantic {
    place: FxHashMap<String, usize>,
    names: usize,
    dim: usize,
    scale: f32,
}

/// Names that semantic vectors have a number for, by default the most frequent ones.
pub const NAMES: usize = 300;

/// Scale of semantic vectors. Views of real houses then have a mean length of some 10, the order of ResNet-152 features'
/// (about 20 to 30, as far as is known without the photographs); empty views stay at 0.
pub const SCALE: f32 = 10.0;

impl Semantic {
    /// Vectors of `dim` numbers: one for each of the names, the geometry, and zeros up to `dim`.
    ///
    /// # Errors
    /// When a name comes twice or the numbers do not fit into `dim`.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>, dim: usize, scale: f32) -> Result<Semantic, String> {
        let mut place = FxHashMap::default();
        for name in names {
            let at = place.len();
            if place.insert(name.to_owned(), at).is_some() {
                return Err(format!("the name {name:?} comes twice"));
            }
        }
        let names = place.len();
        if names + GEOMETRY > dim {
            return Err(format!("{names} names and {GEOMETRY} numbers of geometry do not fit into {dim} numbers"));
        }
        Ok(Semantic { place, names, dim, scale })
    }

    /// Numbers of a vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The vectors of all views at a viewpoint, one after the other: `36 * dim` numbers.
    pub fn encode<'a>(
        &self,
        graph: &Graph,
        viewpoint: usize,
        glimpses: impl IntoIterator<Item = Glimpse<'a>>,
    ) -> Vec<f32> {
        let mut vectors = vec![0.0; VIEWS * self.dim];
        for glimpse in glimpses {
            if let Some(place) = self.place.get(glimpse.name) {
                vectors[usize::from(glimpse.view) * self.dim + place] += glimpse.share as f32;
            }
        }
        // Most are zero, and stay so.
        for share in vectors.iter_mut().filter(|share| **share != 0.0) {
            *share = (1000.0 * *share).ln_1p() / 1001f32.ln();
        }
        self.add_geometry(graph, viewpoint, &mut vectors);
        vectors.iter_mut().for_each(|x| *x *= self.scale);
        vectors
    }

    fn add_geometry(&self, graph: &Graph, viewpoint: usize, vectors: &mut [f32]) {
        let here = graph.position(viewpoint);
        let mut neighbours: Vec<(f64, usize)> = graph
            .neighbours(viewpoint)
            .iter()
            .map(|&n| (graph.edge_length(viewpoint, n as usize), n as usize))
            .collect();
        // The nearest is written last.
        neighbours.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        for (length, neighbour) in neighbours {
            let there = graph.position(neighbour);
            let up = elevation(&here, &there);
            let at = usize::from(view_toward(bearing(&here, &there), up)) * self.dim + self.names;
            let numbers = &mut vectors[at..at + GEOMETRY];
            let fifth = (length / 5.0) as f32;
            numbers[0] = 1.0;
            numbers[1] = fifth;
            numbers[2] = numbers[2].max(fifth);
            numbers[3] = up.sin() as f32;
            numbers[4] = graph.neighbours(neighbour).len() as f32 / 5.0;
        }
    }
}

/// Views that show a thing whose centre lies in a direction and that is so wide and high (angles), with the share that
/// it covers of each: the part of its box that lies in the view's frame.
pub fn shares(bearing: f64, elevation: f64, width: f64, height: f64) -> impl Iterator<Item = (u8, f64)> {
    let overlap =
        |off: f64, size: f64, half: f64| ((off + size / 2.0).min(half) - (off - size / 2.0).max(-half)).max(0.0);
    (0..VIEWS as u8).filter_map(move |view| {
        let (heading, level) = view_direction(view);
        let wide = overlap(wrapped(bearing - heading), width.min(HEADINGS as f64 * VIEW_STEP), HALF_WIDTH);
        let high = overlap(elevation - level, height, HALF_HEIGHT);
        let share = wide * high / VIEW_AREA;
        (share > 0.0).then_some((view, share.min(1.0)))
    })
}
