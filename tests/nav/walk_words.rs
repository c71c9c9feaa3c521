//! Walks as people are told of them: rooms, sentences, the last look, and which walks are worth showing.

use iliad::family::{Family, TryAnswer};
use iliad::protocol::World;
use iliad::rng::stream;
use iliad::task::nav::family::NAV;
use iliad::task::nav::house::rooms::Arrival;
use iliad::task::nav::house::{House, OpeningKind};
use iliad::task::nav::scene::Scene;
use iliad::task::nav::world::NavWorld;
use iliad::task::nav::{Start, Walk};
use rand::RngExt;
use serde_json::Value;

/// Generated walks of several houses.
fn each_walk(mut check: impl FnMut(&NavWorld, &Start, &Walk)) {
    for seed in 1..=8 {
        let world = NavWorld::of_house(Scene::generated(House::generate(seed)).unwrap());
        let scene = &world.scenes()[0];
        for trial in 0..40 {
            let mut chance = stream(seed, "words test", trial);
            let viewpoint = scene.graph.id(chance.random_range(0..scene.graph.len())).to_owned();
            let start = Start { scan: scene.name.clone(), viewpoint, heading: chance.random_range(0..12) };
            let walk = world.sample_marginal(&start, &mut chance);
            check(&world, &start, &walk);
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn in_a_doorway_somebody_is_in_the_room_ahead() {
    let house = House::generate(3);
    for opening in house.openings.iter().filter(|opening| opening.kind == OpeningKind::Door) {
        let wall = &house.walls[opening.wall];
        let z = wall.storey as f64 * 2.9 + 1.5;
        let [near, far] = wall.rooms;
        let (forth, back) = if wall.along_x() { (0.0f64, 180.0f64) } else { (90.0, 270.0) };
        for (heading, room) in [(forth, far), (forth + 60.0, far), (back, near), (back - 60.0, near)] {
            assert_eq!(house.room_at([opening.at[0], opening.at[1], z], heading.to_radians()), room, "{opening:?}");
        }
    }
}

#[test]
fn words_and_pictures_name_the_same_rooms() {
    let (mut walks, mut doorways) = (0, 0);
    each_walk(|world, start, walk| {
        let view = world.view(start, walk);
        let path = view["path"].as_array().unwrap();
        let words: Vec<&str> = view["words"].as_array().unwrap().iter().map(text).collect();
        assert_eq!(words.len(), path.len() + 1, "{words:?}");
        let scene = &world.scenes()[0];
        let house = scene.house().unwrap();
        let stands: Vec<usize> = walk.viewpoints.iter().map(|id| scene.graph.find(id).unwrap()).collect();
        let arrivals = house.rooms_along(f64::from(start.heading).to_radians() * 30.0, &stands);
        let kind = |room: usize| house.rooms[room].kind.as_str();
        for (i, stop) in path.iter().enumerate() {
            let Arrival { room, way } = &arrivals[i];
            assert_eq!(text(&stop["room"]), kind(*room));
            doorways += usize::from(kind(house.stands[stands[i]].room) != kind(*room));
            // The label's last room on the way is the room of the stop.
            let last = way.last().map_or_else(|| arrivals[i.saturating_sub(1)].room, |(_, room)| *room);
            assert_eq!(kind(last), kind(*room), "{words:?}");
            assert_eq!(stop["way"].as_array().unwrap().len(), way.len());
            assert!(way.windows(2).all(|pair| pair[0].0 <= pair[1].0) && way.iter().all(|(share, _)| *share <= 1.0));
            // A sentence names the room that it leads into, and none where the room stays the same.
            let into = words[i].split(" into ").nth(1);
            if i > 0 && *room != arrivals[i - 1].room && kind(*room) != "stairs" {
                let rest = into.unwrap_or_else(|| panic!("no room in {}", words[i]));
                assert!(
                    rest.trim_start_matches("the ").trim_start_matches("another ").starts_with(kind(*room)),
                    "{rest}"
                );
            } else {
                assert_eq!(into, None, "{words:?}");
            }
        }
        let (first, last) = (text(&path[0]["room"]), text(&path[path.len() - 1]["room"]));
        assert!(words[0].ends_with(&format!(" the {first}.")), "{words:?}");
        let end = words[words.len() - 1].split(", with ").next().unwrap().trim_end_matches('.');
        assert!(end.ends_with(last), "{last}: {words:?}");
        walks += 1;
    });
    assert!(walks == 320 && doorways > 10, "{doorways} stops in doorways");
}

#[test]
fn walks_are_told_in_sentences_that_people_would_say() {
    let mut shown = 0;
    each_walk(|world, start, walk| {
        let view = world.view(start, walk);
        let sentence = text(&view["sentence"]).to_owned();
        let lines = view["words"].as_array().unwrap().iter().map(text).chain([sentence.as_str()]);
        for line in lines {
            assert!(line.starts_with("It ") && line.ends_with('.') && !line.contains("  "), "{line}");
            for before in [" beside ", " in front of ", " near ", " passing ", " with "] {
                for rest in line.split(before).skip(1) {
                    let article = ["a ", "an ", "some "].iter().any(|article| rest.starts_with(article));
                    assert!(article, "{line}");
                }
            }
            for wrong in [" a a", " a e", " a i", " a o", " an b", " an w", " the the", "stairs stairs"] {
                assert!(!line.contains(wrong), "{line}");
            }
        }
        let summary = world.summary(walk);
        assert!(summary.ends_with(" m)") && summary.starts_with("It "), "{summary}");
        if shown < 12 && walk.viewpoints.len() > 2 {
            shown += 1;
            println!("{sentence}\n   {}", world.in_words(start, walk).join("\n   "));
        }
    });
    let world = NavWorld::of_house(Scene::generated(House::generate(1)).unwrap());
    let scene = &world.scenes()[0];
    let start = Start { scan: scene.name.clone(), viewpoint: scene.graph.id(0).to_owned(), heading: 0 };
    let stay = Walk { viewpoints: vec![start.viewpoint.clone()] };
    assert!(text(&world.view(&start, &stay)["sentence"]).starts_with("It stayed where it was, "));
}

#[test]
fn the_last_look_is_at_what_the_walk_stopped_at() {
    let (mut walks, mut looking, mut named) = (0, 0, 0);
    each_walk(|world, start, walk| {
        let view = world.view(start, walk);
        walks += 1;
        let Some(look) = view["look"].as_array() else { return };
        looking += 1;
        let path = view["path"].as_array().unwrap();
        let end = path[path.len() - 1]["things"].as_array().unwrap();
        let heading = look[0].as_f64().unwrap();
        let seen = end.iter().filter(|thing| (thing["bearing"].as_f64().unwrap() - heading).abs() < 0.01);
        let words = text(&view["words"][path.len()]);
        named += usize::from(seen.into_iter().any(|thing| {
            let name = text(&thing["name"]).trim_start_matches("light ");
            words.contains(name)
        }));
    });
    assert!(looking * 100 >= walks * 98, "{looking} of {walks} look at something");
    assert!(named * 100 >= walks * 85, "{named} of {walks} look at what the words name");
}

/// The box in which the agent is tried says what a walk would be in one sentence, and its moves one by one.
#[test]
fn what_the_agent_would_do_is_said_in_words_that_people_use() {
    let (mut turns, mut longest) = (0, 0);
    each_walk(|world, start, walk| {
        let view = world.view(start, walk);
        let TryAnswer { sentence, steps } = Family::try_answer(&NAV, &view).unwrap();
        let path = view["path"].as_array().unwrap();
        assert_eq!(steps.len(), path.len() + 1);
        for step in &steps {
            let past = [" started", " went", " turned", " walked", " stopped"].iter().any(|verb| step.contains(verb));
            assert!(step.starts_with("It ") && step.ends_with('.') && !past, "{step}");
        }
        let begins = ["It would leave the ", "It would turn ", "It would walk ", "It would stay "];
        assert!(begins.iter().any(|begin| sentence.starts_with(begin)) && sentence.ends_with('.'), "{sentence}");
        for wrong in ["  ", " the the", ", and", "and and", "stairs stairs", "It stop", " in the .", " there there"] {
            assert!(!sentence.contains(wrong), "{sentence}");
        }
        let (first, last) = (text(&path[0]["room"]), text(&path[path.len() - 1]["room"]));
        if first != last {
            assert!(sentence.contains(&format!("leave the {first}")) && sentence.contains(last), "{sentence}");
            assert!(sentence.contains(" and stop "), "{sentence}");
        }
        turns += usize::from(sentence.contains("turn left into") || sentence.contains("turn right into"));
        longest = longest.max(sentence.len());
    });
    assert!(turns > 50 && longest < 400, "{turns} sentences turn into rooms, the longest has {longest} bytes");
}

#[test]
fn walks_of_less_than_a_metre_are_not_worth_showing() {
    let (mut short, mut long) = (0, 0);
    for seed in 1..=8 {
        let world = NavWorld::of_house(Scene::generated(House::generate(seed)).unwrap());
        let scene = &world.scenes()[0];
        for (a, b) in scene.graph.edge_list() {
            let start = Start { scan: scene.name.clone(), viewpoint: scene.graph.id(a).to_owned(), heading: 0 };
            let walk =
                |stops: &[usize]| Walk { viewpoints: stops.iter().map(|i| scene.graph.id(*i).to_owned()).collect() };
            let enough = scene.graph.edge_length(a, b) >= 1.0;
            assert_eq!(world.worth_showing(&start, &walk(&[a, b])), enough);
            assert!(world.describable(&start, &walk(&[a, b])), "it can be described all the same");
            assert!(!world.worth_showing(&start, &walk(&[a, b, a])), "it is where it was");
            *(if enough { &mut long } else { &mut short }) += 1;
        }
    }
    assert!(short > 20 && long > 100, "{short} short, {long} long");
    let world = NavWorld::of_house(Scene::generated(House::generate(1)).unwrap()).with_unmoved(true);
    let scene = &world.scenes()[0];
    let start = Start { scan: scene.name.clone(), viewpoint: scene.graph.id(0).to_owned(), heading: 0 };
    let stay = Walk { viewpoints: vec![start.viewpoint.clone()] };
    assert!(world.worth_showing(&start, &stay), "the settings have it described");
}

#[test]
fn the_kind_by_which_walks_are_counted_is_the_one_of_before() {
    let world = NavWorld::of_house(Scene::generated(House::generate(2)).unwrap());
    let scene = &world.scenes()[0];
    let (a, b) = scene.graph.edge_list()[0];
    let start = Start { scan: scene.name.clone(), viewpoint: scene.graph.id(a).to_owned(), heading: 0 };
    let walk = Walk { viewpoints: vec![start.viewpoint.clone(), scene.graph.id(b).to_owned()] };
    let kind = world.kind(&start, &walk);
    assert!(kind.starts_with("house-2, 1 move, ") && kind.contains(" m: "), "{kind}");
}
