//! Houses by name, for pages: walks that people look at name their house, and the page fetches it once.
//!
//! A generated house is made again from its name. Real houses are those of the worlds that runs hold
//! ([`Houses::remember`]); when the last run in them has ended, pages show the walk alone.

use super::house::House;
use super::scene::{Content, Scene};
use super::world::NavWorld;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The house of the guide. It is kept as a file, so that what the guide says of it stays true when the generator changes.
pub const EXAMPLE: &str = "example-house";

/// Sheets kept ready, about, and the bytes they may take together.
const KEPT: usize = 256;
const KEPT_BYTES: u64 = 64 << 20;

/// A house as pages draw it.
#[derive(Debug)]
pub struct Sheet {
    /// JSON: a generated house as [`House`] is written, under `house`; a real one as `viewpoints`, `edges`, `objects`.
    pub body: String,
    /// Digest of [`Sheet::body`]; a walk that was stored before the generator changed asks for another one.
    pub version: String,
    /// Its geometry, if it is a generated one.
    pub house: Option<House>,
}

/// Weighs sheets by the bytes that they take.
#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<String, Arc<Sheet>> for Bytes {
    fn weight(&self, name: &String, sheet: &Arc<Sheet>) -> u64 {
        // The geometry beside the text takes about as much again.
        (name.len() + 2 * sheet.body.len()) as u64
    }
}

/// The houses that pages can show: those of worlds that are in use, and generated ones.
#[derive(Debug)]
pub struct Houses {
    /// Sheets that were asked for. Those who ask for the same house while it is being made wait for the one who makes it.
    sheets: Cache<String, Arc<Sheet>, Bytes>,
    worlds: Mutex<Vec<Weak<NavWorld>>>,
}

impl Default for Houses {
    fn default() -> Self {
        Houses { sheets: Cache::with_weighter(KEPT, KEPT_BYTES, Bytes), worlds: Mutex::default() }
    }
}

impl Houses {
    fn worlds(&self) -> MutexGuard<'_, Vec<Weak<NavWorld>>> {
        self.worlds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets pages show the houses of a world for as long as somebody holds it.
    pub fn remember(&self, world: &Arc<NavWorld>) {
        let mut worlds = self.worlds();
        worlds.retain(|known| known.strong_count() > 0);
        worlds.push(Arc::downgrade(world));
    }

    /// A world in which the house of a name is: one that was remembered, or one of this house alone.
    pub fn world(&self, name: &str) -> Option<Arc<NavWorld>> {
        let in_use = self.world_in_use(name);
        in_use.or_else(|| Some(Arc::new(NavWorld::of_house(Scene::generated(generated(name)?).ok()?))))
    }

    fn world_in_use(&self, name: &str) -> Option<Arc<NavWorld>> {
        self.worlds().iter().filter_map(Weak::upgrade).find(|world| world.scene(name).is_some())
    }

    /// Houses of the worlds that are in use, and the kinds of rooms in them, each sorted; at most 200 houses.
    pub fn known(&self) -> (Vec<String>, Vec<String>) {
        let worlds: Vec<_> = self.worlds().iter().filter_map(Weak::upgrade).collect();
        let (mut names, mut rooms) = (BTreeSet::new(), BTreeSet::new());
        for scene in worlds.iter().flat_map(|world| world.scenes()).take(200) {
            names.insert(scene.name.clone());
            rooms.extend((0..scene.graph.len()).filter_map(|i| scene.room(i).map(str::to_owned)));
        }
        (names.into_iter().collect(), rooms.into_iter().collect())
    }

    /// The house of a name as pages draw it. Making one takes some hundredths of a second; those in use are kept.
    pub fn sheet(&self, name: &str) -> Option<Arc<Sheet>> {
        self.sheets
            .get_or_insert_with(name, || {
                let sheet = match self.world_in_use(name) {
                    Some(world) => Sheet::of(world.scene(name).ok_or(())?),
                    None => Sheet::of_house(generated(name).ok_or(())?),
                };
                Ok::<_, ()>(Arc::new(sheet))
            })
            .ok()
    }

    /// The sheet of a house if it is ready.
    pub fn kept(&self, name: &str) -> Option<Arc<Sheet>> {
        self.sheets.get(name)
    }
}

/// The generated house of a name: `house-7` is that of the seed 7.
fn generated(name: &str) -> Option<House> {
    if name == EXAMPLE {
        return serde_json::from_str(include_str!("example_house.json")).ok();
    }
    let seed: u64 = name.strip_prefix("house-")?.parse().ok()?;
    let house = House::generate(seed);
    // `house-007` is not the name of `house-7`.
    (house.name == name).then_some(house)
}

impl Sheet {
    fn of(scene: &Scene) -> Sheet {
        match &scene.content {
            Content::Generated { house, .. } => Sheet::of_house(House::clone(house)),
            Content::Real(objects) => {
                let places =
                    scene.graph.viewpoints().iter().map(|v| (&v.id, v.position[0], v.position[1], v.position[2]));
                let things = objects.objects.iter().map(|o| (&o.name, o.x, o.y, o.z, o.width, o.height));
                let body = json!({
                    "name": scene.name,
                    "viewpoints": places.collect::<Vec<_>>(),
                    "edges": scene.graph.edge_list(),
                    "objects": things.collect::<Vec<_>>(),
                });
                Sheet::new(body.to_string(), None)
            }
        }
    }

    fn of_house(house: House) -> Sheet {
        Sheet::new(json!({ "house": house }).to_string(), Some(house))
    }

    fn new(body: String, house: Option<House>) -> Sheet {
        let version = hex::encode(&Sha256::digest(&body)[..8]);
        Sheet { body, version, house }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_house_is_found_by_its_own_name_alone() {
        let houses = Houses::default();
        let sheet = houses.sheet("house-7").expect("there is one");
        assert_eq!(sheet.house.as_ref().map(|house| house.seed), Some(7));
        assert!(Arc::ptr_eq(&sheet, &houses.kept("house-7").expect("it is kept")));
        for other in ["house-007", "house-", "house--1", "house-7.json", "../house-7", "castle-7", ""] {
            assert!(houses.sheet(other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_house_asked_for_by_many_at_once_is_made_once() {
        let houses = Houses::default();
        let sheets: Vec<_> = std::thread::scope(|scope| {
            let asking: Vec<_> =
                (0..8).map(|_| scope.spawn(|| houses.sheet("house-4711").expect("there is one"))).collect();
            asking.into_iter().map(|one| one.join().expect("it is found")).collect()
        });
        assert!(sheets.iter().all(|sheet| Arc::ptr_eq(sheet, &sheets[0])));
    }

    #[test]
    fn houses_that_are_kept_take_bounded_room() {
        let houses = Houses::default();
        let sheet = houses.sheet("house-1").expect("there is one");
        for n in 0..20_000 {
            houses.sheets.insert(format!("another name {n}"), sheet.clone());
        }
        assert!(houses.sheets.weight() <= KEPT_BYTES);
    }

    #[test]
    fn the_version_is_that_of_the_geometry() {
        let houses = Houses::default();
        let [a, b] = ["house-1", "house-2"].map(|name| houses.sheet(name).expect("there is one").version.clone());
        assert_eq!(a.len(), 16);
        assert_ne!(a, b);
        assert_eq!(Sheet::of_house(House::generate(1)).version, a);
    }

    #[test]
    fn the_house_of_the_guide_is_there_and_can_be_walked() {
        let world = Houses::default().world(EXAMPLE).expect("the file is sound");
        assert!(world.scene(EXAMPLE).is_some_and(|scene| scene.graph.len() >= 40));
    }

    #[test]
    fn houses_of_a_world_go_with_it() {
        let mut house = House::generate(3);
        house.name = "somewhere".into();
        let world = Arc::new(NavWorld::of_house(Scene::generated(house).expect("sound")));
        let houses = Houses::default();
        assert!(houses.world("somewhere").is_none());
        houses.remember(&world);
        assert!(houses.world("somewhere").is_some());
        drop(world);
        assert!(houses.world("somewhere").is_none());
    }
}
