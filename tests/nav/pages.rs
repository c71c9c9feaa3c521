//! Houses on pages: their addresses, what is kept for ever and what is not, photographs, and that the script can draw
//! whatever the generator makes.

#[path = "../support/mod.rs"]
mod support;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use iliad::store::Store;
use iliad::task::nav::family::NAV;
use iliad::task::nav::house::House;
use iliad::task::nav::house::catalogue::pieces;
use iliad::task::nav::houses::EXAMPLE;
use iliad::web::{WebSettings, router};
use std::collections::BTreeSet;
use std::path::Path;
use tower::ServiceExt;

struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Reply {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

async fn asked(settings: WebSettings, path: &str, headers: &[(&str, &str)]) -> Reply {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("iliad.sqlite")).await.unwrap();
    let mut state = support::app_state(store, settings);
    state.families = iliad::registry::Registry::builtin().families();
    let router = router(state);
    let mut request = Request::builder().uri(path);
    for (name, value) in [("host", "127.0.0.1:8080")].iter().chain(headers) {
        request = request.header(*name, *value);
    }
    let response = router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, 32 << 20).await.unwrap().to_vec();
    Reply { status: parts.status, headers: parts.headers, body }
}

async fn get(path: &str) -> Reply {
    asked(WebSettings::default(), path, &[]).await
}

#[tokio::test]
async fn a_house_is_kept_for_ever_under_its_version_only() {
    let plain = get("/nav/houses/house-3/house.json").await;
    assert_eq!((plain.status, plain.header("content-type")), (StatusCode::OK, "application/json"));
    assert_eq!(plain.header("cache-control"), "private, no-cache");
    let sent: serde_json::Value = serde_json::from_slice(&plain.body).unwrap();
    let house: House = serde_json::from_value(sent["house"].clone()).unwrap();
    assert_eq!(house, House::generate(3));

    let tag = plain.header("etag").to_owned();
    let version = tag.trim_matches('"');
    let kept = get(&format!("/nav/houses/house-3/house.json?v={version}")).await;
    assert!(kept.header("cache-control").contains("immutable"), "{}", kept.header("cache-control"));
    let again = asked(WebSettings::default(), "/nav/houses/house-3/house.json", &[("if-none-match", &tag)]).await;
    assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0));
    // A walk from before the generator changed must not be drawn through other walls.
    assert_eq!(get("/nav/houses/house-3/house.json?v=0123456789abcdef").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn there_are_no_other_houses() {
    for name in ["house-x", "house-03", "castle", "..%2Fhouse-3", "8194nk5LbLH"] {
        assert_eq!(get(&format!("/nav/houses/{name}/house.json")).await.status, StatusCode::NOT_FOUND, "{name}");
        assert_eq!(get(&format!("/nav/houses/{name}")).await.status, StatusCode::NOT_FOUND, "{name}");
    }
    assert_eq!(get("/nav/houses/house-3?from=house-4-0").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_page_of_a_house_shows_a_walk_that_its_seed_decides() {
    let [a, b, c] = [
        get("/nav/houses/house-3?walk=1").await.text(),
        get("/nav/houses/house-3?walk=1").await.text(),
        get("/nav/houses/house-3?walk=2").await.text(),
    ];
    let walk = |html: &str| {
        let at = html.find("data-walk=\"").expect("there is a walk");
        html[at..at + html[at..].find("\">").unwrap()].to_owned()
    };
    assert_eq!(walk(&a), walk(&b));
    assert_ne!(walk(&a), walk(&c));
    let from = get("/nav/houses/house-3?from=house-3-5&walk=9").await.text();
    assert!(walk(&from).contains("&#34;path&#34;:[{&#34;viewpoint&#34;:&#34;house-3-5&#34;"), "{}", walk(&from));
    assert!(a.contains("<svg class=\"map\"") && a.contains("map-room"), "the small map has the house in it");
}

#[tokio::test]
async fn geometry_is_for_teachers_and_the_page_for_researchers() {
    let remote =
        || WebSettings { loopback: false, access_token: Some("sesame-sesame".into()), ..WebSettings::default() };
    let geometry = asked(remote(), "/nav/houses/house-3/house.json", &[]).await;
    assert_eq!(geometry.status, StatusCode::FORBIDDEN, "nobody has shown this browser a walk");
    assert_eq!(asked(remote(), "/nav/houses/house-3", &[]).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn photographs_come_out_of_their_folder_and_nothing_else_does() {
    let folder = tempfile::tempdir().unwrap();
    let album = folder.path().join("album");
    std::fs::create_dir_all(album.join("houseA")).unwrap();
    std::fs::write(album.join("houseA/one.jpg"), b"jpeg").unwrap();
    std::fs::write(album.join("houseA/two.png"), b"png").unwrap();
    std::fs::write(album.join("houseA/notes.txt"), b"text").unwrap();
    std::fs::write(album.join("outside.jpg"), b"secret").unwrap();
    let settings = || WebSettings { pictures: Some(album.clone()), ..WebSettings::default() };

    let list = asked(settings(), "/nav/panoramas/houseA", &[]).await;
    assert_eq!(list.text(), r#"["one","two"]"#);
    let one = asked(settings(), "/nav/panoramas/houseA/one", &[]).await;
    assert_eq!(
        (one.status, one.header("content-type"), one.body.as_slice()),
        (StatusCode::OK, "image/jpeg", &b"jpeg"[..])
    );
    for path in [
        "houseA/three",
        "houseA/notes",
        "houseA/one.jpg",
        "houseA/..%2Foutside",
        "..%2Falbum/outside",
        ".%2FhouseA/one",
    ] {
        assert_eq!(
            asked(settings(), &format!("/nav/panoramas/{path}"), &[]).await.status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
    assert_eq!(asked(settings(), "/nav/panoramas/houseB", &[]).await.text(), "[]");
    assert_eq!(asked(WebSettings::default(), "/nav/panoramas/houseA", &[]).await.text(), "[]");
    assert_eq!(asked(WebSettings::default(), "/nav/panoramas/houseA/one", &[]).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_guides_house_can_be_fetched() {
    let sheet = NAV.houses().sheet(EXAMPLE).unwrap();
    let reply = get(&format!("/nav/houses/{EXAMPLE}/house.json?v={}", sheet.version)).await;
    assert_eq!(reply.status, StatusCode::OK);
}

fn script(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("static/js/walk").join(name)).unwrap()
}

/// Whether a table of a script, written as an object, has a key.
fn has_key(script: &str, key: &str) -> bool {
    [
        format!("\n  {key}:"),
        format!("\n  {key}("),
        format!("\n  {key},"),
        format!("\n  \"{key}\":"),
        format!("\n  \"{key}\"("),
    ]
    .iter()
    .any(|written| script.contains(written))
}

#[test]
fn every_thing_of_the_catalogue_has_a_shape() {
    let shapes = [script("furniture.js"), script("fixtures.js")].concat();
    let kinds = pieces().iter().map(|piece| piece.kind.as_str()).chain(["railing"]);
    let missing: Vec<&str> = kinds.filter(|kind| !has_key(&shapes, kind)).collect();
    assert!(missing.is_empty(), "no shape for {missing:?}");
    assert!(!has_key(&shapes, "flying carpet"));
}

#[test]
fn every_colour_is_known_in_3d_and_on_the_plan() {
    let (brush, css) = (script("brush.js"), script("../../css/walk.css"));
    let things = pieces().iter().flat_map(|piece| piece.colours.iter().cloned());
    let of_houses = (0..20).map(House::generate).flat_map(|house| {
        let doors = house.openings.into_iter().map(|opening| opening.finish.colour);
        doors.chain(house.stairs.into_iter().map(|stairs| stairs.finish.colour)).collect::<Vec<_>>()
    });
    for colour in things.chain(of_houses).collect::<BTreeSet<String>>() {
        assert!(brush.contains(&format!("{colour}: 0x")), "brush.js lacks {colour}");
        assert!(css.contains(&format!(".tint-{colour} ")), "walk.css lacks {colour}");
    }
}

#[test]
fn floors_and_walls_of_houses_are_known() {
    let shell = script("shell.js");
    for house in (0..30).map(House::generate) {
        for room in &house.rooms {
            let floors = shell.split(&format!("  {}: {{", room.floor.material)).nth(1).expect("the material is known");
            let floors = &floors[..floors.find('}').unwrap()];
            assert!(
                floors.contains(&format!("{}: 0x", room.floor.colour)),
                "{} {}",
                room.floor.colour,
                room.floor.material
            );
            let walls = shell.split("const WALLS = {").nth(1).unwrap();
            assert!(
                walls[..walls.find('}').unwrap()].contains(&format!("{}: 0x", room.walls.colour)),
                "{}",
                room.walls.colour
            );
        }
    }
}
