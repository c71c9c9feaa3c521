//! How far an output word is from the wanted one.

/// Levenshtein distance between two words, in characters.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The paper's continuous reward: (|gold| − edit distance) / |gold|, at most 1, unclipped below. The paper's formula is
/// not defined for an empty gold word, which counts as one letter long here.
pub fn similarity(output: &str, gold: &str) -> f64 {
    let length = gold.chars().count().max(1) as f64;
    (length - edit_distance(output, gold) as f64) / length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_distances() {
        for (a, b, distance) in
            [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("same", "same", 0), ("été", "ete", 2)]
        {
            assert_eq!(edit_distance(a, b), distance, "{a} {b}");
        }
    }

    #[test]
    fn similarity_is_one_at_the_goal_and_may_be_negative() {
        assert_eq!(similarity("emboldec", "emboldec"), 1.0);
        assert_eq!(similarity("emboldec", "embolden"), 0.875);
        assert_eq!(similarity("abcdef", "x"), -5.0);
        assert_eq!(similarity("", ""), 1.0);
    }

    proptest! {
        #[test]
        fn distance_is_a_metric(a in "[ab]{0,6}", b in "[ab]{0,6}", c in "[ab]{0,6}") {
            prop_assert_eq!(edit_distance(&a, &b), edit_distance(&b, &a));
            prop_assert_eq!(edit_distance(&a, &b) == 0, a == b);
            prop_assert!(edit_distance(&a, &c) <= edit_distance(&a, &b) + edit_distance(&b, &c));
        }
    }
}
