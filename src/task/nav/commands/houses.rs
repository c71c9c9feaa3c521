//! `iliad nav`: walking through houses.

use crate::command_line::json_lines::{Answers, answer_input};
use crate::command_line::{CliError, CliResult, Exit, numbers};
use crate::family::commands::Commands;
use crate::output::{file, json, out};
use crate::suggest::did_you_mean;
use crate::task::nav::action::{HEADINGS, Pose, actions};
use crate::task::nav::graph::{Graph, Graphs, load_graphs};
use crate::task::nav::house::{House, plan};
use crate::task::nav::metric;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Commands of `iliad nav`.
#[derive(clap::Subcommand, Clone, Debug)]
pub(super) enum Houses {
    /// Score walked paths against reference paths: JSON lines in, JSON lines out
    Score(ScoreArgs),
    /// List the moves from a viewpoint: JSON lines in, JSON lines out
    Actions(ActionsArgs),
    /// Write a generated house as JSON, and its floor plans as a picture
    House(HouseArgs),
}

const AFTER_SCORE: &str = "\
Reads lines such as {\"scan\": \"8194nk5LbLH\", \"path\": [\"c9e8…\", …], \"reference\": [\"c9e8…\", …]} from the standard \
input: a house and two lists of viewpoints. Writes one line for each, in order:

  success   whether the path ends within 3 m of the reference's end
  distance  from the path's end to the reference's end, in metres
  spl       success weighted by path length; the length that it is measured by is that of the shortest way from the
            start to the reference's end, also where the reference goes a longer one
  ndtw      normalised dynamic time warping (threshold 3 m)
  sdtw      success weighted by ndtw

All distances are along the house's navigation graph. Viewpoints that follow each other without an edge count with the \
length of the shortest way between them. A line is refused when there is no such way, when path and reference do not \
begin at the same viewpoint, when one of them is empty, or when a house or viewpoint is not in the data.

A line that cannot be scored does not stop the rest: in its place stands {\"error\": \"…\"}, the standard error stream \
names its number, and the command ends with code 2. Lines are answered as they come.

Example:
  iliad nav score --nav-data data/nav < walks.jsonl > scores.jsonl";

/// Flags of `iliad nav score`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_SCORE)]
pub(super) struct ScoreArgs {
    #[command(flatten)]
    pub data: Data,
}

const AFTER_ACTIONS: &str = "\
Reads lines such as {\"scan\": \"8194nk5LbLH\", \"viewpoint\": \"c9e8…\", \"heading_index\": 3} from the standard input: where \
the agent stands, and that it faces 30° times 3 to the right of the +y direction. Writes one line for each, in order: \
{\"actions\": [{\"viewpoint\": …, \"rel_heading\": …, \"rel_elevation\": …, \"view\": …}, …]}, the move most straight ahead \
first. Angles are in radians; `view` (0 to 35) is the view in which the viewpoint lies. Stop is left out.

A line that cannot be answered does not stop the rest: in its place stands {\"error\": \"…\"}, the standard error stream \
names its number, and the command ends with code 2. Lines are answered as they come.

Example:
  iliad nav actions --nav-data data/nav < poses.jsonl > moves.jsonl";

/// Flags of `iliad nav actions`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_ACTIONS)]
pub(super) struct ActionsArgs {
    #[command(flatten)]
    pub data: Data,
}

const AFTER_HOUSE: &str = "\
Examples:
  iliad nav house --seed 7 > house.json               rooms, walls, doors, stairs, things and viewpoints
  iliad nav house --seed 7 --plan house.svg --graph   also its floor plans, with the navigation graph";

/// Flags of `iliad nav house`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_HOUSE)]
pub(super) struct HouseArgs {
    /// Seed of the house; the same number gives the same house
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = numbers::seed)]
    pub seed: u64,
    /// File to write the floor plans to (SVG)
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Draw viewpoints and edges into the floor plans
    #[arg(long, requires = "plan")]
    pub graph: bool,
}

/// The location of the houses.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Data {
    /// Folder of the NAV data, with graphs.json.gz in it
    #[arg(long, value_name = "DIR")]
    pub nav_data: PathBuf,
}

impl Commands for Houses {
    fn run(&self) -> CliResult {
        match self {
            Houses::Score(args) => score(&args.data),
            Houses::Actions(args) => list_actions(&args.data),
            Houses::House(args) => write_house(args),
        }
    }
}

/// Carries out `iliad nav house`.
fn write_house(args: &HouseArgs) -> CliResult {
    let house = House::generate(args.seed);
    if let Some(path) = &args.plan {
        file::write(path, plan::svg(&house, args.graph).as_bytes())?;
    }
    out!("{}", json::line(&house)?)?;
    Ok(Exit::Done)
}

fn graphs(folder: &Path) -> Result<Graphs, CliError> {
    load_graphs(folder).map_err(|error| CliError::Usage(error.to_string()))
}

fn house<'a>(graphs: &'a Graphs, scan: &str) -> Result<&'a Graph, String> {
    graphs.get(scan).ok_or_else(|| {
        let meant = did_you_mean(scan, graphs.keys().map(String::as_str));
        format!("there is no house (scan) {scan:?} in the data{meant}")
    })
}

fn viewpoint(graph: &Graph, scan: &str, id: &str) -> Result<usize, String> {
    graph.find(id).ok_or_else(|| format!("house {scan} has no viewpoint {id:?}"))
}

#[derive(Deserialize)]
struct Walk {
    scan: String,
    path: Vec<String>,
    reference: Vec<String>,
}

#[derive(Serialize)]
struct Figures {
    success: bool,
    distance: f64,
    spl: f64,
    ndtw: f64,
    sdtw: f64,
}

/// Carries out `iliad nav score`.
fn score(data: &Data) -> CliResult {
    let graphs = graphs(&data.nav_data)?;
    let answer = |walk: &Walk| {
        let graph = house(&graphs, &walk.scan)?;
        let read = |name: &str, ids: &[String]| {
            if ids.is_empty() {
                return Err(format!("`{name}` is empty; it needs at least the viewpoint of the start"));
            }
            ids.iter().map(|id| viewpoint(graph, &walk.scan, id)).collect::<Result<Vec<_>, _>>()
        };
        let (path, reference) = (read("path", &walk.path)?, read("reference", &walk.reference)?);
        if path[0] != reference[0] {
            return Err(format!(
                "`path` begins at {:?} and `reference` at {:?}; both begin where the walk began",
                walk.path[0], walk.reference[0]
            ));
        }
        for (name, ids, viewpoints) in [("path", &walk.path, &path), ("reference", &walk.reference, &reference)] {
            let cut = viewpoints.windows(2).position(|pair| !graph.distance(pair[0], pair[1]).is_finite());
            if let Some(at) = cut {
                let (from, to) = (&ids[at], &ids[at + 1]);
                return Err(format!("no way leads from {from:?} to {to:?} of `{name}` in house {}", walk.scan));
            }
        }
        let score = metric::score(graph, &path, &reference);
        let metric::PathScore { success, distance, spl, ndtw, sdtw, .. } = score;
        Ok(Figures { success, distance, spl, ndtw, sdtw })
    };
    let mut answers = |walks: &[Walk]| -> Answers<Figures> { walks.par_iter().map(answer).collect() };
    answer_input("{\"scan\": …, \"path\": […], \"reference\": […]}", &mut answers)
}

#[derive(Deserialize)]
struct Stand {
    scan: String,
    viewpoint: String,
    heading_index: i64,
}

#[derive(Serialize)]
struct Moves<'a> {
    actions: Vec<Move<'a>>,
}

#[derive(Serialize)]
struct Move<'a> {
    viewpoint: &'a str,
    rel_heading: f64,
    rel_elevation: f64,
    view: u8,
}

/// Carries out `iliad nav actions`.
fn list_actions(data: &Data) -> CliResult {
    let graphs = graphs(&data.nav_data)?;
    let answer = |stand: &Stand| {
        let graph = house(&graphs, &stand.scan)?;
        let heading = u8::try_from(stand.heading_index).ok().filter(|h| usize::from(*h) < HEADINGS);
        let heading = heading.ok_or_else(|| {
            format!("`heading_index` is {}; it counts steps of 30°, from 0 to 11", stand.heading_index)
        })?;
        let pose = Pose { viewpoint: viewpoint(graph, &stand.scan, &stand.viewpoint)?, heading };
        let moves = actions(graph, pose).into_iter().map(|action| Move {
            viewpoint: graph.id(action.viewpoint),
            rel_heading: action.rel_heading,
            rel_elevation: action.rel_elevation,
            view: action.view,
        });
        Ok(Moves { actions: moves.collect() })
    };
    let mut answers = |stands: &[Stand]| -> Answers<Moves> { stands.par_iter().map(answer).collect() };
    answer_input("{\"scan\": …, \"viewpoint\": …, \"heading_index\": …}", &mut answers)
}
