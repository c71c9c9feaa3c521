//! `re.sub`: match after match, left to right, with Python's rules for empty ones; and the places that it replaces.

use super::compile::Program;
use super::matcher::{NONE, Scratch, matches_one};
use super::template::{Piece, Template};
use super::{OUTPUT_LIMIT, ReError};

/// Replaces every match.
pub(super) fn sub(
    program: &Program,
    template: &Template,
    text: &str,
    scratch: &mut Scratch,
) -> Result<String, ReError> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut copied = 0;
    each_match(program, text, scratch, |s, start, end| {
        push_text(&mut out, &s.text[copied..start]);
        for piece in &template.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Group(0) => push_text(&mut out, &s.text[start..end]),
                Piece::Group(group) => {
                    if let Some((a, b)) = s.group(*group) {
                        push_text(&mut out, &s.text[a..b]);
                    }
                }
            }
            // Within one match, too: each of many references to a long group writes all of it.
            if out.len() > OUTPUT_LIMIT {
                return Err(ReError::Bound);
            }
        }
        copied = end;
        Ok(())
    })?;
    push_text(&mut out, &scratch.text[copied..]);
    Ok(out)
}

/// The matches that [`sub`] replaces: first character, and the one after the last.
pub(super) fn matches(program: &Program, text: &str, scratch: &mut Scratch) -> Result<Vec<(usize, usize)>, ReError> {
    let mut found = Vec::new();
    each_match(program, text, scratch, |_, start, end| {
        found.push((start, end));
        Ok(())
    })?;
    Ok(found)
}

/// The places that [`sub`] writes anew: first character, the one after the last, and what stands there afterwards. What the
/// template takes over from a group, in the order of the text, stays where it was and lies between two places.
pub(super) fn replaced(
    program: &Program,
    template: &Template,
    text: &str,
    scratch: &mut Scratch,
) -> Result<Vec<(usize, usize, String)>, ReError> {
    let mut places = Vec::new();
    let mut written = 0;
    each_match(program, text, scratch, |s, start, end| {
        let (mut place, mut new) = (start, String::new());
        for piece in &template.pieces {
            let span = match piece {
                Piece::Text(text) => {
                    new.push_str(text);
                    continue;
                }
                Piece::Group(0) => Some((start, end)),
                Piece::Group(group) => s.group(*group),
            };
            let Some((a, b)) = span.filter(|(a, b)| a < b) else { continue };
            if place <= a && b <= end {
                if place < a || !new.is_empty() {
                    places.push((place, a, std::mem::take(&mut new)));
                }
                place = b;
            } else {
                push_text(&mut new, &s.text[a..b]);
            }
            written += b - a;
            if written > OUTPUT_LIMIT {
                return Err(ReError::Bound);
            }
        }
        if place < end || !new.is_empty() {
            places.push((place, end, new));
        }
        Ok(())
    })?;
    Ok(places)
}

/// Gives every match to `take`, with the groups in the scratch space.
fn each_match(
    program: &Program,
    text: &str,
    s: &mut Scratch,
    mut take: impl FnMut(&Scratch, usize, usize) -> Result<(), ReError>,
) -> Result<(), ReError> {
    s.text.clear();
    s.text.extend(text.chars().map(u32::from));
    s.marks.clear();
    s.marks.resize(2 * program.groups, NONE);
    s.steps = 0;
    let length = s.text.len();
    let (mut from, mut must_advance) = (0, false);
    while from <= length {
        let Some((start, end)) = search(program, s, from, must_advance)? else { break };
        take(s, start, end)?;
        must_advance = end == start;
        from = end;
    }
    Ok(())
}

fn push_text(out: &mut String, text: &[u32]) {
    // The characters came from a string, so that each of them is one.
    out.extend(text.iter().filter_map(|c| char::from_u32(*c)));
}

/// The first match from `from` on.
fn search(
    program: &Program,
    s: &mut Scratch,
    from: usize,
    mut must_advance: bool,
) -> Result<Option<(usize, usize)>, ReError> {
    for start in from..=s.text.len() {
        if program.anchored && start > 0 {
            return Ok(None);
        }
        let hopeless = program.first.is_some_and(|op| !s.text.get(start).is_some_and(|c| matches_one(program, op, *c)));
        if hopeless {
            must_advance = false;
            continue;
        }
        if let Some(end) = s.attempt(program, start, must_advance)? {
            return Ok(Some((start, end)));
        }
        must_advance = false;
    }
    Ok(None)
}
