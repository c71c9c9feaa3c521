//! The kinds of edits that success is counted by: what an expression does with its match, and at which place.

use crate::protocol::Grouping;

/// The text that replaces a match, and the place of the match.
pub(super) const GROUPINGS: &[Grouping] = &[
    Grouping { name: "operation", groups: &["insert", "delete", "replace", "double"] },
    Grouping { name: "place", groups: &["beginning", "end", "beside a context", "anywhere"] },
];

/// The position of an expression's group among [`GROUPINGS`]' of that name.
pub(super) fn group(grouping: &str, expression: &str) -> Option<usize> {
    let found = match grouping {
        "operation" => operation(expression),
        "place" => place(expression),
        _ => return None,
    };
    GROUPINGS.iter().find(|g| g.name == grouping)?.groups.iter().position(|name| *name == found)
}

/// An empty replacement deletes; one that keeps the match (`\2`) doubles it or inserts letters beside it, as does any replacement
/// of an empty match; every other one replaces.
fn operation(expression: &str) -> &'static str {
    let replacement = expression.split_once('@').map_or("", |(_, replacement)| replacement);
    let [_, matched, _] = parts(expression);
    if replacement.is_empty() {
        "delete"
    } else if replacement.replace("\\2", "").is_empty() {
        "double"
    } else if replacement.contains("\\2") || matched.is_empty() {
        "insert"
    } else {
        "replace"
    }
}

/// The anchors say whether an edit is of the beginning or the end; further text in groups 1 and 3 is a context.
fn place(expression: &str) -> &'static str {
    let [before, matched, after] = parts(expression);
    if before.starts_with('^') || (before.is_empty() && matched.starts_with('^')) {
        "beginning"
    } else if after.ends_with('$') || (after.is_empty() && matched.ends_with('$')) {
        "end"
    } else if before.is_empty() && after.is_empty() {
        "anywhere"
    } else {
        "beside a context"
    }
}

/// The three groups of a pattern.
fn parts(expression: &str) -> [&str; 3] {
    let pattern = expression.split_once('@').map_or(expression, |(pattern, _)| pattern);
    let inside = pattern.strip_prefix('(').and_then(|p| p.strip_suffix(')')).unwrap_or(pattern);
    let mut groups = inside.splitn(3, ")(");
    [groups.next().unwrap_or(""), groups.next().unwrap_or(""), groups.next().unwrap_or("")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_and_places_by_hand() {
        for (expression, operation_name, place_name) in [
            ("()(n)()@c", "replace", "anywhere"),
            ("()(n)()@", "delete", "anywhere"),
            ("()(n)()@c\\2", "insert", "anywhere"),
            ("()(.)($)@\\2c", "insert", "end"),
            ("()(V)()@\\2\\2", "double", "anywhere"),
            ("(^)(.)()@", "delete", "beginning"),
            ("(^)()()@ab", "insert", "beginning"),
            ("(e)(m)(b)@x", "replace", "beside a context"),
            ("(e)(.)($)@x", "replace", "end"),
        ] {
            assert_eq!((operation(expression), place(expression)), (operation_name, place_name), "{expression}");
            assert_eq!(group("operation", expression).map(|at| GROUPINGS[0].groups[at]), Some(operation_name));
            assert_eq!(group("place", expression).map(|at| GROUPINGS[1].groups[at]), Some(place_name));
        }
        assert_eq!(group("colour", "()(n)()@c"), None);
    }
}
