//! `re.sub`: match after match, left to right, with Python's rules for empty ones.

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
    let s = scratch;
    s.text.clear();
    s.text.extend(text.chars().map(u32::from));
    s.marks.clear();
    s.marks.resize(2 * program.groups, NONE);
    s.steps = 0;
    let length = s.text.len();
    let mut out = String::with_capacity(text.len() + 16);
    let (mut from, mut copied, mut must_advance) = (0, 0, false);
    while from <= length {
        let Some((start, end)) = search(program, s, from, must_advance)? else { break };
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
        must_advance = end == start;
        from = end;
    }
    push_text(&mut out, &s.text[copied..]);
    Ok(out)
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
