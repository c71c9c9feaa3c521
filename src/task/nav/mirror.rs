//! A house seen in a mirror is a house: with left and right exchanged in what is said, a description of a walk is as true of the
//! mirrored walk. Each description becomes two examples.
//!
//! Views have no order, and what is seen in one says nothing of left and right; so all that the mirror changes in a walk is
//! the sign of its moves' headings.

use crate::task::nav::model::walk::Walk;

/// Words that a mirror exchanges.
const EXCHANGED: [[&str; 2]; 8] = [
    ["left", "right"],
    ["leftmost", "rightmost"],
    ["lefthand", "righthand"],
    ["leftward", "rightward"],
    ["leftwards", "rightwards"],
    ["lefts", "rights"],
    ["clockwise", "counterclockwise"],
    ["clockwise", "anticlockwise"],
];

/// The token as the mirror says it; `right` in `right away` and the like is not told apart.
pub fn word(token: &str) -> &str {
    for [a, b] in EXCHANGED {
        if token == a {
            return b;
        }
        if token == b {
            return a;
        }
    }
    token
}

/// The walk in a mirrored house of a world of `poses` poses.
pub fn walk(walk: &Walk, poses: u32) -> Walk {
    let mut mirrored = walk.clone();
    for seen in &mut mirrored.seen {
        seen.pose = seen.pose.map(|pose| if pose < poses { pose + poses } else { pose - poses });
        seen.moves.iter_mut().for_each(|m| m.heading = -m.heading);
    }
    mirrored
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::nav::model::walk::{Candidate, Observation};

    #[test]
    fn sides_are_exchanged_in_words_and_moves_and_twice_is_as_before() {
        let said = |text: &str| text.split(' ').map(word).collect::<Vec<_>>().join(" ");
        assert_eq!(said("turn left then right at the leftmost door"), "turn right then left at the rightmost door");
        assert_eq!(said(&said("left of the brightly lit hall")), "left of the brightly lit hall");
        let moves = vec![Candidate { view: 4, heading: 0.5, elevation: 0.1 }];
        let one = Walk { seen: vec![Observation { place: 2, pose: Some(30), moves }], actions: vec![1] };
        let other = walk(&one, 480);
        assert_eq!(other.seen[0].pose, Some(510));
        assert_eq!(other.seen[0].moves[0], Candidate { view: 4, heading: -0.5, elevation: 0.1 });
        assert_eq!((other.seen[0].place, &other.actions), (2, &one.actions));
        assert_eq!(walk(&other, 480), one);
    }
}
