//! Facts of a walk, put into sentences.
//!
//! Facts that happen together become one clause ("turn left into the kitchen"); clauses become sentences of one to three.
//! Every choice of words is drawn from the lists in `phrases`.

use super::Plan;
use super::phrases::{PHRASES, words};
use super::trace::{Fact, Side, Thing, Turn};
use crate::rng::Stream;
use rand::RngExt;
use rand::seq::IndexedRandom;

/// Puts a plan into sentences.
pub(super) fn say(plan: &Plan, chance: &mut Stream) -> String {
    let clauses = Speaker { chance }.clauses(plan);
    sentences(&clauses, chance)
}

/// Draws one of several phrases; a single one is taken without a draw.
fn pick<'t>(choices: &'t [String], chance: &mut Stream) -> &'t str {
    match choices {
        [one] => one,
        several => several.choose(chance).map_or("", String::as_str),
    }
}

/// Joins clauses: one to three a sentence.
fn sentences(clauses: &[String], chance: &mut Stream) -> String {
    let mut text = String::new();
    let mut at = 0;
    while at < clauses.len() {
        let count = [1, 2, 2, 2, 3].choose(chance).copied().unwrap_or(2).min(clauses.len() - at);
        let mut sentence = clauses[at].clone();
        for (k, clause) in clauses[at + 1..at + count].iter().enumerate() {
            sentence.push_str(pick(words(if k + 2 == count { "last_joint" } else { "joint" }), chance));
            sentence.push_str(clause);
        }
        if !text.is_empty() {
            text.push(' ');
            if chance.random_bool(0.12) {
                sentence = format!("then {sentence}");
            } else if at + count == clauses.len() && chance.random_bool(0.08) {
                sentence = format!("finally, {sentence}");
            }
        }
        let mut letters = sentence.chars();
        text.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        text.push_str(letters.as_str());
        text.push('.');
        at += count;
    }
    text
}

struct Speaker<'s> {
    chance: &'s mut Stream,
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Left => "left",
        Side::Right => "right",
    }
}

impl Speaker<'_> {
    fn pick<'t>(&mut self, choices: &'t [String]) -> &'t str {
        pick(choices, self.chance)
    }

    /// Draws a phrase and fills its slots, from left to right: with the values given for them, the others with drawn words.
    /// `first` says whether the phrase begins the request.
    fn fill(&mut self, choices: &[String], first: bool, values: &[(&str, &str)]) -> String {
        let mut rest = self.pick(choices);
        let mut text = String::new();
        while let Some((before, after)) = rest.split_once('{') {
            let (slot, after) = after.split_once('}').unwrap_or((after, ""));
            text.push_str(before);
            text.push_str(match (values.iter().find(|(name, _)| *name == slot), slot) {
                (Some((_, value)), _) => value,
                (None, "verb") => self.pick(words(if first { "verb_first" } else { "verb_further" })),
                (None, list) => self.pick(words(list)),
            });
            rest = after;
        }
        text.push_str(rest);
        text
    }

    /// The name, or another that people use for it.
    fn name(&mut self, name: &str) -> String {
        match PHRASES.synonyms.get(name) {
            Some(others) if self.chance.random_bool(0.4) => self.pick(others).to_owned(),
            _ => name.to_owned(),
        }
    }

    fn thing(&mut self, thing: &Thing) -> String {
        let name = self.name(thing.kind);
        match thing.colour {
            Some("dark") => format!("the dark {name}"),
            Some("light") => format!("the light colored {name}"),
            Some(colour) if !PHRASES.colourless.iter().any(|kind| kind == thing.kind) => format!("the {colour} {name}"),
            _ => format!("the {name}"),
        }
    }

    fn room(&mut self, room: &str) -> String {
        format!("the {}", self.name(room))
    }

    fn clauses(&mut self, plan: &Plan) -> Vec<String> {
        let mut clauses = Vec::new();
        let mut at = 0;
        while at < plan.len() {
            let first = at == 0;
            let (slot, fact) = plan[at];
            if fact.ends() {
                let end: Vec<Fact> = plan[at..].iter().map(|(_, fact)| *fact).collect();
                clauses.push(self.end(&end));
                return clauses;
            }
            let next = plan.get(at + 1).filter(|(s, f)| !f.ends() && (*s == slot || *s == slot + 1)).map(|(_, f)| *f);
            let joined = next.and_then(|next| self.pair(&fact, &next, first));
            match joined {
                Some(clause) => {
                    clauses.push(clause);
                    at += 2;
                }
                None => {
                    clauses.push(self.clause(&fact, first));
                    at += 1;
                }
            }
        }
        clauses.push(self.pick(words("stop_there")).to_owned());
        clauses
    }

    /// Two facts that happen together, as one clause.
    fn pair(&mut self, a: &Fact, b: &Fact, first: bool) -> Option<String> {
        if self.chance.random_bool(0.15) {
            return None;
        }
        let phrases = &PHRASES.pairs;
        // The names are drawn before the phrase, in the order of this match.
        Some(match (a, b) {
            (Fact::Leave(from), Fact::Enter(to)) => {
                let (from, to) = (self.room(from), self.room(to));
                self.fill(&phrases.leave_enter, first, &[("from", &from), ("to", &to)])
            }
            (Fact::Leave(from), Fact::Through(way)) => {
                let (from, way) = (self.room(from), self.name(way));
                self.fill(&phrases.leave_through, first, &[("from", &from), ("way", &way)])
            }
            (Fact::Through(way), Fact::Enter(to)) => {
                let (way, to) = (self.name(way), self.room(to));
                self.fill(&phrases.through_enter, first, &[("way", &way), ("to", &to)])
            }
            (Fact::Turn(Turn::To(to)), Fact::Enter(room)) => {
                let (turn, room) = (self.turn(*to), self.room(room));
                self.fill(&phrases.turn_enter, first, &[("turn", &turn), ("room", &room), ("side", side(*to))])
            }
            (Fact::Turn(Turn::To(to)), Fact::Through(way)) => {
                let (turn, way) = (self.turn(*to), self.name(way));
                self.fill(&phrases.turn_through, first, &[("turn", &turn), ("way", &way), ("side", side(*to))])
            }
            (Fact::Enter(room), Fact::Turn(Turn::To(to))) => {
                let (room, turn) = (self.room(room), self.turn(*to));
                self.fill(&phrases.enter_turn, first, &[("room", &room), ("turn", &turn)])
            }
            (Fact::Pass(thing, None), Fact::Turn(Turn::To(to))) => {
                let (thing, turn) = (self.thing(thing), self.turn(*to));
                self.fill(&phrases.pass_turn, first, &[("thing", &thing), ("turn", &turn)])
            }
            (Fact::Toward(thing), Fact::Turn(Turn::To(to))) => {
                let (thing, turn) = (self.thing(thing), self.turn(*to));
                self.fill(&phrases.toward_turn, first, &[("thing", &thing), ("turn", &turn)])
            }
            (Fact::Through(way), Fact::Turn(Turn::To(to))) => {
                let (way, turn) = (self.name(way), self.turn(*to));
                self.fill(&phrases.through_turn, first, &[("way", &way), ("turn", &turn)])
            }
            (Fact::Up, Fact::Turn(Turn::To(to))) => {
                let turn = self.turn(*to);
                self.fill(&phrases.up_turn, first, &[("turn", &turn)])
            }
            (Fact::Turn(Turn::To(to)), Fact::Leave(room)) => {
                let (turn, room) = (self.turn(*to), self.room(room));
                self.fill(&phrases.turn_leave, first, &[("turn", &turn), ("room", &room)])
            }
            (Fact::Turn(Turn::To(to)), Fact::Up | Fact::Down) => {
                let climb = if matches!(b, Fact::Up) { "up" } else { "down" };
                let turn = self.turn(*to);
                self.fill(&phrases.turn_climb, first, &[("turn", &turn), ("climb", climb)])
            }
            (Fact::Turn(Turn::To(to)), Fact::Toward(thing)) => {
                let (turn, thing) = (self.turn(*to), self.thing(thing));
                self.fill(&phrases.turn_toward, first, &[("turn", &turn), ("thing", &thing)])
            }
            (Fact::Turn(Turn::To(to)), Fact::Pass(thing, None)) => {
                let (turn, thing) = (self.turn(*to), self.thing(thing));
                self.fill(&phrases.turn_pass, first, &[("turn", &turn), ("thing", &thing)])
            }
            _ => return None,
        })
    }

    fn turn(&mut self, to: Side) -> String {
        self.fill(&PHRASES.clauses.turn, false, &[("side", side(to))])
    }

    fn clause(&mut self, fact: &Fact, first: bool) -> String {
        let phrases = &PHRASES.clauses;
        match fact {
            Fact::Turn(Turn::To(to)) => self.turn(*to),
            Fact::Turn(Turn::Slightly(to)) => self.fill(&phrases.turn_slightly, first, &[("side", side(*to))]),
            Fact::Turn(Turn::Around) => self.fill(&phrases.turn_around, first, &[]),
            Fact::Turn(Turn::Straight) if first => self.fill(&phrases.straight_first, first, &[]),
            Fact::Turn(Turn::Straight) => self.fill(&phrases.straight_further, first, &[]),
            Fact::Leave(room) => {
                let room = self.room(room);
                self.fill(&phrases.leave, first, &[("room", &room)])
            }
            Fact::Enter(room) => {
                let room = self.room(room);
                self.fill(&phrases.enter, first, &[("room", &room)])
            }
            Fact::Through(way) => {
                let way = self.name(way);
                self.fill(&phrases.through, first, &[("way", &way)])
            }
            Fact::Up => self.fill(&phrases.up, first, &[]),
            Fact::Down => self.fill(&phrases.down, first, &[]),
            Fact::Pass(thing, on) => {
                let thing = self.thing(thing);
                match on {
                    Some(on) => self.fill(&phrases.pass_on_side, first, &[("thing", &thing), ("side", side(*on))]),
                    None => self.fill(&phrases.pass, first, &[("thing", &thing)]),
                }
            }
            Fact::Over(thing) => {
                let thing = self.thing(thing);
                let way = self.pick(words("across"));
                self.fill(&phrases.over, first, &[("way", way), ("thing", &thing)])
            }
            Fact::Toward(thing) => {
                let thing = self.thing(thing);
                let way = self.pick(words("toward"));
                self.fill(&phrases.toward, first, &[("way", way), ("thing", &thing)])
            }
            end => self.end(&[*end]),
        }
    }

    /// The end of the walk: where to stop.
    fn end(&mut self, facts: &[Fact]) -> String {
        let phrases = &PHRASES.ends;
        let mut text = self.pick(words("stop")).to_owned();
        for (k, fact) in facts.iter().enumerate() {
            let place = match fact {
                Fact::Inside(room) => {
                    let room = self.room(room);
                    self.fill(&phrases.inside, false, &[("room", &room)])
                }
                Fact::AtDoor(room) => {
                    let room = self.room(room);
                    self.fill(&phrases.at_door, false, &[("room", &room)])
                }
                Fact::Top => self.fill(&phrases.top, false, &[]),
                Fact::Bottom => self.fill(&phrases.bottom, false, &[]),
                Fact::OnStairs => self.fill(&phrases.on_stairs, false, &[]),
                Fact::Beside(thing) => {
                    let thing = self.thing(thing);
                    self.fill(&phrases.beside, false, &[("thing", &thing)])
                }
                Fact::Before(thing) => {
                    let thing = self.thing(thing);
                    self.fill(&phrases.before, false, &[("thing", &thing)])
                }
                _ => continue,
            };
            text.push_str(if k >= 2 { " and " } else { " " });
            text.push_str(&place);
        }
        text
    }
}
