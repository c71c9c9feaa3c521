//! Requests for paths in generated houses, in the project's own words.
//!
//! A request is chosen before it is worded: the facts ([`trace`]) that a speaker would tell, in one of three habits
//! (by landmarks, by turns, by rooms). Facts are added until the request is true of hardly any other path that
//! the walker could take as far as this one: the goal is clear by construction, and [`Ambiguity`] says how clear.
//! [`words`] puts the facts into sentences.

mod phrases;
pub mod trace;
pub mod words;

use crate::rng::Stream;
use rand::RngExt;
pub(super) use trace::MINOR;
use trace::{Fact, Thing, Trace, Tracer, Turn};

/// A speaker's habit of telling the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// By things along the way.
    Landmarks,
    /// By turns.
    Turns,
    /// By rooms and doors.
    Rooms,
}

/// All habits; every path is told in each.
pub const HABITS: [Habit; 3] = [Habit::Landmarks, Habit::Turns, Habit::Rooms];

/// The number of other paths that a request is also true of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ambiguity {
    /// Shortest paths from the same start with as many edges and another goal.
    pub others: usize,
    /// Of these, the ones that the request is true of as well.
    pub alike: usize,
    /// Of these, the ones that end more than 3 m from the goal, so that following them fails.
    pub astray: usize,
}

/// A request with what it says.
#[derive(Clone, Debug, PartialEq)]
pub struct Request<'a> {
    /// The words.
    pub text: String,
    /// The facts that they tell, in order.
    pub facts: Vec<Fact<'a>>,
    /// Its ambiguity.
    pub ambiguity: Ambiguity,
}

/// Facts that are added at most to make a request clearer.
const MORE: usize = 4;

/// Tells a path in every habit; the path begins with the agent facing heading index `heading` and has two viewpoints or
/// more.
pub fn requests<'a>(tracer: &Tracer<'a>, heading: u8, path: &[usize], chance: &mut Stream) -> Vec<Request<'a>> {
    let trace = tracer.trace(heading, path);
    let others = others(tracer, heading, path);
    HABITS
        .iter()
        .map(|habit| {
            let mut plan = first_plan(&trace, *habit, chance);
            clarify(&trace, &mut plan, &others, chance);
            let facts: Vec<Fact> = plan.iter().map(|(_, fact)| *fact).collect();
            let ambiguity = ambiguity(&facts, &others);
            Request { text: words::say(&plan, chance), facts, ambiguity }
        })
        .collect()
}

/// The other paths that a listener may take: shortest paths with as many edges, and whether each ends astray.
fn others<'a>(tracer: &Tracer<'a>, heading: u8, path: &[usize]) -> Vec<(Trace<'a>, bool)> {
    let graph = tracer.graph();
    let (start, goal, edges) = (path[0], path[path.len() - 1], path.len() - 1);
    (0..graph.len())
        .filter(|other| *other != goal && graph.edges(start, *other) == Some(edges))
        .filter_map(|other| graph.shortest_path(start, other))
        .map(|other| {
            let end = other[other.len() - 1];
            (tracer.trace(heading, &other), graph.distance(end, goal) > super::metric::SUCCESS_RADIUS)
        })
        .collect()
}

fn ambiguity(facts: &[Fact], others: &[(Trace, bool)]) -> Ambiguity {
    let alike = others.iter().filter(|(trace, _)| trace.has(facts));
    let (mut count, mut astray) = (0, 0);
    alike.for_each(|(_, far)| {
        count += 1;
        astray += usize::from(*far);
    });
    Ambiguity { others: others.len(), alike: count, astray }
}

/// The ambiguity of given facts for a path, for checks from outside.
pub fn ambiguity_of(tracer: &Tracer, heading: u8, path: &[usize], facts: &[Fact]) -> Ambiguity {
    ambiguity(facts, &others(tracer, heading, path))
}

/// Facts with the slots that they are true in, in order.
pub(super) type Plan<'a> = Vec<(usize, Fact<'a>)>;

/// The facts that a speaker of a habit would tell.
fn first_plan<'a>(trace: &Trace<'a>, habit: Habit, chance: &mut Stream) -> Plan<'a> {
    let mut plan: Plan = Vec::new();
    let last = trace.slots.len() - 1;
    let (turns, rooms, things) = match habit {
        Habit::Landmarks => (0.4, 0.3, 0.75),
        Habit::Turns => (0.9, 0.3, 0.2),
        Habit::Rooms => (0.4, 0.8, 0.2),
    };
    let mut stairs = None;
    for (slot, facts) in trace.slots[..last].iter().enumerate() {
        let of = |wanted: fn(&Fact) -> bool| facts.iter().copied().find(wanted);
        if slot.is_multiple_of(2) {
            let turn = of(|f| matches!(f, Fact::Turn(Turn::Around)))
                .or(of(|f| matches!(f, Fact::Turn(Turn::To(_)))))
                .or(of(|f| matches!(f, Fact::Turn(Turn::Slightly(_)))));
            // Which way to begin matters most; slight turns are rarely told.
            let weight = match turn {
                Some(Fact::Turn(Turn::Slightly(_))) => turns * 0.25,
                _ if slot == 0 => 0.4 + turns * 0.6,
                _ => turns,
            };
            let straight = of(|f| matches!(f, Fact::Turn(Turn::Straight))).filter(|_| turn.is_none());
            if let Some(turn) = turn
                && chance.random_bool(weight)
            {
                plan.push((slot, turn));
            } else if let Some(straight) = straight
                && chance.random_bool(turns * 0.3)
            {
                plan.push((slot, straight));
            }
            continue;
        }
        let climb = of(|f| matches!(f, Fact::Up | Fact::Down));
        if climb.is_some() && climb != stairs {
            plan.extend(climb.map(|fact| (slot, fact)));
        }
        stairs = climb;
        if let Some(leave) = of(|f| matches!(f, Fact::Leave(_)))
            && chance.random_bool(rooms * 0.5)
        {
            plan.push((slot, leave));
        }
        if let Some(through) = of(|f| matches!(f, Fact::Through(_)))
            && chance.random_bool(rooms * 0.35)
        {
            plan.push((slot, through));
        }
        if let Some(enter) = of(|f| matches!(f, Fact::Enter(_)))
            && chance.random_bool(rooms)
        {
            plan.push((slot, enter));
        }
        let passed: Vec<Fact> =
            facts.iter().copied().filter(|f| matches!(f, Fact::Pass(..) | Fact::Over(_) | Fact::Toward(_))).collect();
        if !passed.is_empty() && chance.random_bool(things * 0.5) {
            let fact = passed[chance.random_range(0..passed.len())];
            let told = |f: &Fact<'a>| thing_of(f).map(|t| t.kind);
            if !plan.iter().any(|(_, f)| told(f) == told(&fact)) {
                plan.push((slot, loosened(fact, chance)));
            }
        }
    }
    plan.extend(ending(&trace.slots[last], last, chance));
    plan
}

fn thing_of<'a>(fact: &Fact<'a>) -> Option<Thing<'a>> {
    match fact {
        Fact::Pass(thing, _) | Fact::Over(thing) | Fact::Toward(thing) => Some(*thing),
        Fact::Beside(thing) | Fact::Before(thing) => Some(*thing),
        _ => None,
    }
}

/// A fact without its colour or side, as often as people leave them out.
fn loosened<'a>(fact: Fact<'a>, chance: &mut Stream) -> Fact<'a> {
    let thing = |thing: Thing<'a>, chance: &mut Stream| Thing {
        colour: thing.colour.filter(|_| chance.random_bool(0.35)),
        ..thing
    };
    match fact {
        Fact::Pass(t, side) => {
            let side = side.filter(|_| chance.random_bool(0.35));
            Fact::Pass(thing(t, chance), side)
        }
        Fact::Over(t) => Fact::Over(thing(t, chance)),
        Fact::Toward(t) => Fact::Toward(thing(t, chance)),
        Fact::Beside(t) => Fact::Beside(thing(t, chance)),
        Fact::Before(t) => Fact::Before(thing(t, chance)),
        other => other,
    }
}

/// Where the walk ends: a thing there or a door, and mostly the room.
fn ending<'a>(end: &[Fact<'a>], slot: usize, chance: &mut Stream) -> Plan<'a> {
    let things: Vec<Fact> = end.iter().copied().filter(|f| thing_of(f).is_some()).collect();
    let places: Vec<Fact> = end.iter().copied().filter(|f| thing_of(f).is_none()).collect();
    let mut plan = Vec::new();
    let place = places.iter().copied().rev().find(|f| !matches!(f, Fact::Inside(_))).or(places.first().copied());
    let stairs = matches!(place, Some(Fact::Top | Fact::Bottom | Fact::OnStairs | Fact::AtDoor(_)));
    if let Some(place) = place
        && (stairs || things.is_empty() || chance.random_bool(0.5))
    {
        plan.push((slot, place));
    }
    if !things.is_empty() && (!stairs || chance.random_bool(0.3)) {
        // Mostly one of the nearest.
        let fact = things[chance.random_range(0..things.len().min(4))];
        plan.push((slot, loosened(fact, chance)));
    }
    plan
}

/// Adds to a plan, one by one, the facts that rule out most of the paths it is also true of.
fn clarify<'a>(trace: &Trace<'a>, plan: &mut Plan<'a>, others: &[(Trace<'a>, bool)], chance: &mut Stream) {
    for _ in 0..MORE {
        let facts: Vec<Fact> = plan.iter().map(|(_, fact)| *fact).collect();
        let alike: Vec<&(Trace, bool)> = others.iter().filter(|(trace, _)| trace.has(&facts)).collect();
        if alike.is_empty() {
            return;
        }
        let mut best: Option<(f64, Plan)> = None;
        for (slot, facts) in trace.slots.iter().enumerate() {
            for fact in facts {
                // A sharper form of what is told already takes its place.
                let same = |f: &Fact| {
                    std::mem::discriminant(f) == std::mem::discriminant(fact)
                        && thing_of(f).map(|t| t.kind) == thing_of(fact).map(|t| t.kind)
                };
                let at = plan.iter().position(|(s, f)| *s == slot && same(f));
                if at.is_some_and(|at| plan[at].1 == *fact) || (thing_of(fact).is_none() && at.is_some()) {
                    continue;
                }
                let mut changed = plan.clone();
                match at {
                    Some(at) => changed[at].1 = *fact,
                    None => {
                        let place = changed.iter().position(|(s, _)| *s > slot).unwrap_or(changed.len());
                        changed.insert(place, (slot, *fact));
                    }
                }
                let told: Vec<Fact> = changed.iter().map(|(_, fact)| *fact).collect();
                // Those that lead astray count most. The draw decides between equals.
                let weight = |(_, astray): &(Trace, bool)| if *astray { 1.0 } else { 0.25 };
                let left: f64 = alike.iter().filter(|(t, _)| t.has(&told)).map(|other| weight(other)).sum();
                let left = left + chance.random_range(0.0..0.2);
                if trace.has(&told) && best.as_ref().is_none_or(|(least, _)| left < *least) {
                    best = Some((left, changed));
                }
            }
        }
        match best {
            Some((_, changed)) => *plan = changed,
            None => return,
        }
    }
}
