//! The pages of NAV: the geometry of houses for the pages that show walks, photographs of real houses, and a page of each
//! house for researchers.

use super::action::HEADINGS;
use super::family::render;
use super::houses::Houses;
use super::scene::Scene;
use super::world::NavWorld;
use super::{Start, Walk};
use crate::family::Audience;
use crate::family::pages::{FamilyPage, FamilyPages, PageContext, PageError, Path, Query, Work, WorkLimit};
use crate::protocol::World;
use crate::rng::stream;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use quick_cache::sync::Cache;
use rand::RngExt;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

type Result<T> = std::result::Result<T, PageError>;

/// NAV's addresses, which show these houses.
pub(super) fn pages(houses: Arc<Houses>) -> FamilyPages {
    let houses = Extension(houses);
    FamilyPages {
        viewers: Router::new()
            .route("/houses/{name}/house.json", get(geometry))
            .route("/panoramas/{house}", get(panoramas))
            .route("/panoramas/{house}/{viewpoint}", get(panorama))
            .layer(houses.clone()),
        researchers: Router::new().route("/houses/{name}", get(page)).layer(houses),
        work_limit: Some(WorkLimit { name: "houses", burst: 120, each: Duration::from_millis(100) }),
    }
}

/// File types of photographs.
const PICTURES: [(&str, &str); 4] =
    [("jpg", "image/jpeg"), ("jpeg", "image/jpeg"), ("png", "image/png"), ("webp", "image/webp")];

/// How many houses are made, and folders listed, at once for everybody: the runs need the processor, too.
static ASIDE: Semaphore = Semaphore::const_new(2);

/// Runs what takes some hundredths of a second off the server's own threads.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let place = ASIDE.acquire().await.map_err(|error| PageError::Failed(error.to_string()))?;
    let work = move || {
        // It is given back when the work is done, also when nobody waits for it any more.
        let _place = place;
        work()
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| PageError::Failed(error.to_string()))
}

/// Query of a house's geometry: the version that a walk was made in.
#[derive(Deserialize)]
struct Version {
    v: Option<String>,
}

/// `GET /nav/houses/{name}/house.json`: what it is made of. With the right `v` it may be kept for ever.
async fn geometry(
    Extension(houses): Extension<Arc<Houses>>,
    Path(name): Path<String>,
    Query(Version { v }): Query<Version>,
    work: Work,
    headers: HeaderMap,
) -> Result<Response> {
    let sheet = match houses.kept(&name) {
        Some(sheet) => sheet,
        None => {
            // Only houses that have to be generated are counted.
            work.begin()?;
            aside(move || houses.sheet(&name)).await?.ok_or(PageError::NotFound("the house"))?
        }
    };
    let cache = match v {
        Some(version) if version != sheet.version => return Err(PageError::NotFound("the house as it was")),
        Some(_) => "private, max-age=31536000, immutable",
        None => "private, no-cache",
    };
    let tag = format!("\"{}\"", sheet.version);
    let known = headers.get_all(header::IF_NONE_MATCH).iter().any(|v| v.to_str().is_ok_and(|v| v.contains(&tag)));
    let fixed: [(HeaderName, String); 2] = [(header::CACHE_CONTROL, cache.to_owned()), (header::ETAG, tag)];
    Ok(if known {
        (StatusCode::NOT_MODIFIED, fixed).into_response()
    } else {
        (fixed, [(header::CONTENT_TYPE, "application/json")], sheet.body.clone()).into_response()
    })
}

/// A part of a path below the folder of photographs: nothing that could lead out of it.
fn plain(name: &str) -> bool {
    !name.is_empty() && name.len() <= 80 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
}

/// The folder with the photographs of a house, if there is one.
fn album(context: &PageContext, house: &str) -> Option<PathBuf> {
    let folder = context.pictures.as_ref()?;
    plain(house).then(|| folder.join(house)).filter(|folder| folder.is_dir())
}

/// Lists of photographs that were made a moment ago, by folder.
static LISTED: LazyLock<Cache<PathBuf, Listing>> = LazyLock::new(|| Cache::new(256));

/// When a folder was listed, and what was there.
type Listing = (Instant, Vec<String>);

/// How long such a list is kept: photographs that are added are seen soon.
const LISTED_FOR: Duration = Duration::from_secs(10);

/// `GET /nav/panoramas/{house}`: viewpoints of which there is a photograph, as a list of names.
async fn panoramas(State(context): State<PageContext>, Path(house): Path<String>) -> Result<Json<Vec<String>>> {
    let Some(folder) = album(&context, &house) else { return Ok(Json(Vec::new())) };
    if let Some((_, names)) = LISTED.get(&folder).filter(|(listed, _)| listed.elapsed() < LISTED_FOR) {
        return Ok(Json(names));
    }
    let list = move || {
        let files = std::fs::read_dir(&folder).ok();
        let mut names: Vec<String> = files
            .into_iter()
            .flatten()
            .filter_map(|file| {
                let path = file.ok()?.path();
                let kind = path.extension()?.to_str()?;
                let name = path.file_stem()?.to_str()?;
                (plain(name) && PICTURES.iter().any(|(end, _)| *end == kind)).then(|| name.to_owned())
            })
            .collect();
        names.sort();
        LISTED.insert(folder, (Instant::now(), names.clone()));
        names
    };
    Ok(Json(aside(list).await?))
}

/// `GET /nav/panoramas/{house}/{viewpoint}`: the photograph, an equirectangular picture whose middle looks north.
async fn panorama(
    State(context): State<PageContext>,
    Path((house, viewpoint)): Path<(String, String)>,
) -> Result<Response> {
    let folder = album(&context, &house).filter(|_| plain(&viewpoint)).ok_or(PageError::NotFound("the photograph"))?;
    for (end, kind) in PICTURES {
        if let Ok(picture) = tokio::fs::read(folder.join(format!("{viewpoint}.{end}"))).await {
            let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "private, max-age=86400")];
            return Ok((headers, picture).into_response());
        }
    }
    Err(PageError::NotFound("the photograph"))
}

#[derive(Template)]
#[template(path = "nav/house.html")]
struct HousePage {
    /// Address of the houses.
    houses: String,
    name: String,
    walk: String,
    map: String,
    facts: Vec<(&'static str, String)>,
    number: u64,
    from: String,
    /// Name of the next house, where houses are numbered.
    next: Option<String>,
}

/// Query of the page: which random walk, and from which viewpoint if not a random one.
#[derive(Deserialize)]
struct Wish {
    #[serde(default)]
    walk: u64,
    from: Option<String>,
}

/// `GET /nav/houses/{name}`: the house, with a random walk in it.
async fn page(
    State(context): State<PageContext>,
    Extension(houses): Extension<Arc<Houses>>,
    Path(name): Path<String>,
    Query(wish): Query<Wish>,
) -> Result<FamilyPage> {
    aside(move || {
        let page = HousePage::make(&context, &houses, name, &wish)?;
        Ok(FamilyPage { html: page.render()?, title: page.name })
    })
    .await?
}

impl HousePage {
    fn make(context: &PageContext, houses: &Houses, name: String, wish: &Wish) -> Result<HousePage> {
        let world = houses.world(&name).ok_or(PageError::NotFound("the house"))?;
        let scene = world.scene(&name).ok_or(PageError::NotFound("the house"))?;
        let (start, walk) = draw(&world, scene, wish)?;
        let view = world.view(&start, &walk);
        // In this order: the first has the house made, which the map then shows, too.
        let large = render(houses, &view, Audience::Teacher)?;
        let small = render(houses, &view, Audience::Researcher)?;
        let seed = scene.house().filter(|house| name == format!("house-{}", house.seed)).map(|house| house.seed);
        Ok(HousePage {
            houses: context.url("/houses"),
            walk: large,
            map: small,
            facts: facts(scene),
            number: wish.walk,
            from: wish.from.clone().unwrap_or_default(),
            next: seed.and_then(|seed| seed.checked_add(1)).map(|seed| format!("house-{seed}")),
            name,
        })
    }
}

/// The random walk of a wish: from the viewpoint it names, or from one that is drawn.
fn draw(world: &NavWorld, scene: &Scene, wish: &Wish) -> Result<(Start, Walk)> {
    let mut chance = stream(wish.walk, "nav house page", 0);
    let at = match wish.from.as_deref().filter(|from| !from.is_empty()) {
        Some(from) => scene.graph.find(from).ok_or(PageError::NotFound("the viewpoint"))?,
        None => chance.random_range(0..scene.graph.len()),
    };
    let heading = chance.random_range(0..HEADINGS) as u8;
    let start = Start { scan: scene.name.clone(), viewpoint: scene.graph.id(at).to_owned(), heading };
    let walk = world.sample_marginal(&start, &mut chance);
    Ok((start, walk))
}

/// The house in figures.
fn facts(scene: &Scene) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Viewpoints", scene.graph.len().to_string()),
        ("Ways between them", scene.graph.edge_list().len().to_string()),
    ];
    if let Some(house) = scene.house() {
        let area: f64 = house.rooms.iter().map(|room| room.rect.area()).sum();
        facts.extend([
            ("Storeys", house.storeys.to_string()),
            ("Rooms", house.rooms.len().to_string()),
            ("Floor", format!("{area:.0} m²")),
            ("Things", house.items.len().to_string()),
        ]);
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_lead_out_of_the_folder() {
        for bad in ["", "..", ".", "a/b", "a\\b", "a.jpg", "a\0", "ä", "~", "a b", &"x".repeat(81)] {
            assert!(!plain(bad), "{bad:?}");
        }
        assert!(plain("8194nk5LbLH") && plain("c9e8-1_2"));
    }
}
