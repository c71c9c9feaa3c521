//! Generated houses: everything that makes a house one can live in, walk through and look around in.

use iliad::task::nav::graph::Graph;
use iliad::task::nav::house::sight::{Eyes, Seen};
use iliad::task::nav::house::walk::opening_crossed;
use iliad::task::nav::house::{
    EYE, FEWEST, House, Item, MOST, OpeningKind, Rect, STOREY_HEIGHT, catalogue, layout, plan,
};
use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

static HOUSES: LazyLock<Vec<(House, Graph)>> = LazyLock::new(|| {
    let house = |seed| {
        let house = House::generate(seed);
        let graph = house.graph().expect("sound edges");
        (house, graph)
    };
    (0..40).map(house).collect()
});

fn storey(house: &House, item: &Item) -> usize {
    house.rooms[item.room].storey
}

#[test]
fn a_seed_gives_one_house_and_another_seed_another() {
    let again = House::generate(7);
    assert_eq!(again, HOUSES[7].0);
    let different: HashSet<String> = HOUSES.iter().map(|(house, _)| format!("{:?}", house.rooms)).collect();
    assert_eq!(different.len(), HOUSES.len());
    let json = serde_json::to_string(&again).expect("JSON");
    assert_eq!(serde_json::from_str::<House>(&json).expect("JSON"), again);
    assert!(json.len() < 120_000, "{} bytes are too many for a page", json.len());
}

#[test]
fn sizes_are_as_of_real_houses() {
    let counts: Vec<usize> = HOUSES.iter().map(|(_, graph)| graph.len()).collect();
    let mean = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
    let edges: Vec<f64> = HOUSES.iter().flat_map(|(h, g)| h.edges.iter().map(|(a, b)| g.edge_length(*a, *b))).collect();
    let degree = 2.0 * edges.len() as f64 / counts.iter().sum::<usize>() as f64;
    let length = edges.iter().sum::<f64>() / edges.len() as f64;
    println!("viewpoints {mean:.1}, neighbours {degree:.2}, edges of {length:.2} m");
    assert!(counts.iter().all(|n| (FEWEST..=MOST).contains(n)), "{counts:?}");
    assert!((105.0..130.0).contains(&mean), "real houses have 117: {mean}");
    assert!((3.4..4.6).contains(&degree), "real viewpoints have 4.07 neighbours: {degree}");
    assert!((1.8..2.6).contains(&length), "real edges have 2.27 m: {length}");
    assert!(edges.iter().all(|length| *length <= 5.0));
    let storeys: HashSet<usize> = HOUSES.iter().map(|(house, _)| house.storeys).collect();
    assert_eq!(storeys, HashSet::from([1, 2, 3]));
}

#[test]
fn every_viewpoint_can_be_reached() {
    for (house, graph) in HOUSES.iter() {
        assert!((0..graph.len()).all(|v| graph.distance(0, v).is_finite()), "{}", house.name);
    }
}

#[test]
fn rooms_do_not_overlap_and_each_has_a_way_in() {
    for (house, _) in HOUSES.iter() {
        for (i, a) in house.rooms.iter().enumerate() {
            assert!(layout::KINDS.contains(&a.kind.as_str()), "{}", a.kind);
            assert!(a.rect.width() > 0.7 && a.rect.depth() > 0.7, "{}: {a:?}", house.name);
            assert!(
                house.rooms[i + 1..].iter().all(|b| b.storey != a.storey || !a.rect.meets(&b.rect)),
                "{}",
                house.name
            );
            let ways = house.openings.iter().filter(|o| o.kind.passable() && house.sides(o).contains(&Some(i)));
            assert!(ways.count() > 0, "{}: no way into the {}", house.name, a.kind);
            assert!(house.stands.iter().any(|s| s.room == i) || a.kind == "stairs" || a.rect.area() < 9.0);
        }
        let kinds: Vec<&str> = house.rooms.iter().map(|room| room.kind.as_str()).collect();
        for kind in ["kitchen", "hallway", "bathroom", "bedroom"] {
            assert!(kinds.contains(&kind), "{} has no {kind}: {kinds:?}", house.name);
        }
        assert_eq!(house.openings.iter().filter(|o| o.kind == OpeningKind::FrontDoor).count(), 1, "{}", house.name);
        assert_eq!(house.stairs.len(), house.storeys - 1);
    }
}

#[test]
fn openings_lie_within_their_walls_and_apart() {
    for (house, _) in HOUSES.iter() {
        for (i, opening) in house.openings.iter().enumerate() {
            let wall = &house.walls[opening.wall];
            let rect = house.opening_rect(opening);
            let (from, to) = wall.span();
            assert!(wall.stretch(from, to).grown(0.02).covers(&rect), "{}: {opening:?}", house.name);
            let outside = wall.rooms.contains(&None);
            assert_eq!(outside, !opening.kind.passable(), "{}: {opening:?}", house.name);
            let apart =
                house.openings[i + 1..].iter().all(|o| o.wall != opening.wall || !house.opening_rect(o).meets(&rect));
            assert!(apart, "{}: {opening:?}", house.name);
        }
    }
}

#[test]
fn things_lie_in_their_rooms_and_not_in_each_other() {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for (house, _) in HOUSES.iter() {
        for (i, item) in house.items.iter().enumerate() {
            *kinds.entry(&item.kind).or_default() += 1;
            if item.kind == "railing" {
                continue;
            }
            let piece = catalogue::find(&item.kind).expect("of the catalogue");
            assert!(piece.colours.contains(&item.finish.colour));
            assert!(piece.materials.contains(&item.finish.material));
            let room = &house.rooms[item.room];
            let fits = catalogue::furnishings(&room.kind).iter().any(|f| f.kind == item.kind);
            assert!(fits, "a {} in a {}", item.kind, room.kind);
            assert!(room.rect.covers(&item.rect()), "{}: {item:?} in {room:?}", house.name);
            if !item.blocks() {
                continue;
            }
            for other in house.items[i + 1..].iter().filter(|o| o.blocks() && o.room == item.room) {
                // Chairs stand half under their table.
                let pair = [item.kind.as_str(), other.kind.as_str()];
                let seated = pair.contains(&"chair") && pair.contains(&"table");
                assert!(seated || !item.rect().grown(-0.001).meets(&other.rect()), "{}: {pair:?}", house.name);
            }
        }
    }
    println!("{kinds:?}");
    let missing: Vec<&str> =
        catalogue::pieces().iter().map(|p| p.kind.as_str()).filter(|k| !kinds.contains_key(k)).collect();
    assert!(missing.len() < 8, "40 houses lack {missing:?}");
}

#[test]
fn no_door_is_blocked() {
    for (house, _) in HOUSES.iter() {
        for opening in house.openings.iter().filter(|o| o.kind.passable() || o.kind == OpeningKind::FrontDoor) {
            let wall = &house.walls[opening.wall];
            let (w, d) = if wall.along_x() { (opening.width, 1.6) } else { (1.6, opening.width) };
            let zone = Rect::around(opening.at[0], opening.at[1], w, d);
            let blocking = house.items.iter().filter(|i| storey(house, i) == wall.storey && i.blocks());
            let stood: Vec<&str> =
                blocking.filter(|i| i.kind != "railing" && i.rect().meets(&zone)).map(|i| i.kind.as_str()).collect();
            assert!(stood.is_empty(), "{}: {stood:?} before {opening:?}", house.name);
        }
    }
}

/// Edges are checked against the geometry itself, apart from the program's own way of finding them.
#[test]
fn edges_are_unobstructed_lines() {
    for (house, graph) in HOUSES.iter() {
        for &(a, b) in &house.edges {
            let (p, q) = (graph.position(a), graph.position(b));
            let on_stairs = [a, b].iter().any(|v| house.rooms[house.stands[*v].room].kind == "stairs");
            if on_stairs {
                assert!((p[2] - q[2]).abs() < 2.0, "{}", house.name);
                continue;
            }
            assert_eq!(p[2], q[2], "{}: an edge off the stairs is level", house.name);
            let level = house.rooms[house.stands[a].room].storey;
            for k in 0..=40 {
                let t = f64::from(k) / 40.0;
                let at = [p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])];
                for item in house.items.iter().filter(|i| i.blocks() && storey(house, i) == level) {
                    assert!(!item.rect().holds(at), "{}: through a {}", house.name, item.kind);
                }
                for wall in house.walls.iter().filter(|w| w.storey == level) {
                    let (from, to) = wall.span();
                    let inside = wall.stretch(from, to).holds(at);
                    let open = house.openings.iter().any(|o| {
                        o.kind.passable()
                            && house.walls[o.wall] == *wall
                            && house.opening_rect(o).grown(0.001).holds(at)
                    });
                    assert!(!inside || open, "{}: through a wall", house.name);
                }
            }
        }
        for stand in &house.stands {
            let room = &house.rooms[stand.room];
            let [x, y, z] = stand.position;
            assert!(room.rect.grown(0.011).holds([x, y]), "{}", house.name);
            if room.kind != "stairs" {
                assert!((z - room.storey as f64 * STOREY_HEIGHT - EYE).abs() < 0.011);
            }
        }
    }
}

#[test]
fn storeys_are_joined_by_stairs_alone() {
    for (house, graph) in HOUSES.iter().filter(|(house, _)| house.storeys > 1) {
        let up = (0..graph.len()).find(|v| house.rooms[house.stands[*v].room].storey == house.storeys - 1).unwrap();
        let path = graph.shortest_path(0, up).unwrap();
        assert!(path.iter().any(|v| house.rooms[house.stands[*v].room].kind == "stairs"));
        for stairs in &house.stairs {
            let rises: Vec<f64> = stairs.treads.windows(2).map(|t| t[1].top - t[0].top).collect();
            assert!(rises.iter().all(|rise| (0.1..0.25).contains(rise)), "steps one can climb: {rises:?}");
            assert!(stairs.treads.iter().all(|tread| stairs.rect.covers(&tread.rect)), "{stairs:?}");
        }
    }
}

#[test]
fn walls_hide_and_doors_show() {
    let (mut hidden, mut shown) = (0, 0);
    for (house, graph) in HOUSES.iter().take(8) {
        let eyes = Eyes::new(house);
        for &(a, b) in &house.edges {
            let level = graph.position(a)[2] == graph.position(b)[2];
            let tall = house.items.iter().any(|i| i.size[2] >= 1.0 && i.rect().crossed(flat(graph, a), flat(graph, b)));
            assert!(!level || tall || eyes.between(a, b), "{}: whoever can walk can see", house.name);
        }
        for stand in (0..graph.len()).step_by(7) {
            let room = house.stands[stand].room;
            for sight in eyes.sights(stand) {
                assert!(
                    sight.part > 0.0 && sight.width > 0.0 && sight.height > 0.0 && sight.distance > 0.0,
                    "{sight:?}"
                );
                let Seen::Item(i) = sight.what else { continue };
                let item = &house.items[i];
                if item.room == room {
                    shown += 1;
                    continue;
                }
                // Into another room one sees through an opening only.
                let from = flat(graph, stand);
                let rect = item.rect();
                let corners = [[rect.x0, rect.y0], [rect.x1, rect.y1], [rect.x0, rect.y1], [rect.x1, rect.y0], item.at];
                let neighbours = storey(house, item) != house.rooms[room].storey
                    || house.rooms[room].kind == "stairs"
                    || corners.iter().any(|corner| {
                        let near = house.openings.iter().filter(|o| o.kind.transparent());
                        near.clone().any(|o| house.opening_rect(o).grown(0.3).crossed(from, *corner))
                    });
                assert!(neighbours, "{}: a {} through a wall", house.name, item.kind);
            }
            let seen: HashSet<Seen> = eyes.sights(stand).iter().map(|s| s.what).collect();
            let elsewhere =
                house.items.iter().enumerate().filter(|(i, item)| item.room != room && !seen.contains(&Seen::Item(*i)));
            hidden += elsewhere.count();
        }
    }
    assert!(shown > 500 && hidden > 5 * shown, "{shown} shown, {hidden} hidden");
}

fn flat(graph: &Graph, v: usize) -> [f64; 2] {
    let [x, y, _] = graph.position(v);
    [x, y]
}

#[test]
fn surfaces_fill_the_views_of_their_rooms() {
    let (house, graph) = &HOUSES[3];
    let eyes = Eyes::new(house);
    for stand in (0..graph.len()).step_by(5) {
        let room = &house.rooms[house.stands[stand].room];
        let surfaces = eyes.surfaces(stand);
        assert!(surfaces.iter().all(|s| s.share > 0.0 && s.share <= 1.0 + 1e-9 && s.view < 36));
        let floor = surfaces.iter().filter(|s| s.view < 12 && s.name.ends_with(" floor")).map(|s| s.share).sum::<f64>();
        assert!(floor > 1.0, "looking down one sees floor: {floor}");
        if room.kind != "stairs" {
            assert!(surfaces.iter().any(|s| s.name == room.kind), "{}", room.kind);
        }
    }
}

#[test]
fn doors_are_found_on_the_way() {
    let mut through = 0;
    for (house, graph) in HOUSES.iter().take(10) {
        for &(a, b) in &house.edges {
            let (rooms, stairs) =
                ([house.stands[a].room, house.stands[b].room], |r: usize| house.rooms[r].kind == "stairs");
            let crossed = opening_crossed(house, rooms[0], flat(graph, a), flat(graph, b));
            if crossed.is_some() {
                through += 1;
            } else if rooms[0] != rooms[1] && !rooms.into_iter().any(stairs) {
                // Only somebody who stands in the door itself crosses none.
                let in_door = |v| {
                    house
                        .openings
                        .iter()
                        .any(|o| o.kind.passable() && house.opening_rect(o).grown(0.3).holds(flat(graph, v)))
                };
                assert!(in_door(a) || in_door(b), "{}: rooms are left through doors", house.name);
            }
        }
    }
    assert!(through > 100);
}

#[test]
fn plans_are_pictures() {
    for (house, _) in HOUSES.iter().take(5) {
        let bare = plan::svg(house, false);
        assert!(bare.starts_with("<svg") && bare.ends_with("</svg>\n") && !bare.contains("NaN"));
        assert!(house.rooms.iter().all(|room| bare.contains(&format!(">{}<", room.kind))));
        let full = plan::svg(house, true);
        let dots = full.matches("<circle").count();
        assert_eq!((bare.matches("<circle").count(), dots), (0, house.stands.len()));
    }
}
