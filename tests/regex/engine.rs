//! The REGEX engine on anything at all: no panic, no hang, no overflow of the stack.

use iliad::task::regex::program::execute;
use iliad::task::regex::python_re::{NESTING_LIMIT, ReError, Regex, sub};
use proptest::prelude::*;
use std::time::{Duration, Instant};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_text_is_an_expression_or_none(expression in any::<String>(), word in any::<String>()) {
        let _ = execute(&expression, &word);
    }

    #[test]
    fn pieces_of_syntax(
        pattern in r"([()|*+?{}\[\]^$.\\,:=!<>#PimsxauLt1-9abé-]|\(\?|\\[1-9bBAZwWdDsS]){0,20}",
        replacement in r"([\\g<>0-9ab]|\\[1-9]|\\g<[0-3a]>){0,6}",
        word in "[abAB1 é\n]{0,10}",
    ) {
        let _ = sub(&pattern, &replacement, &word);
        let _ = execute(&format!("({pattern})()()@{replacement}"), &word);
    }

    #[test]
    fn the_models_own_alphabet(expression in r"[a-zCV()@.^$\\0-9]{0,40}", word in "[a-z]{0,15}") {
        let begun = Instant::now();
        let _ = execute(&expression, &word);
        prop_assert!(begun.elapsed() < Duration::from_millis(500), "nothing in this alphabet repeats");
    }

    #[test]
    fn an_edit_that_matches_nothing_leaves_the_word(word in any::<String>()) {
        prop_assume!(!word.contains('\u{e000}'));
        prop_assert_eq!(execute("()(\u{e000})()@x", &word), Some(word));
    }

    #[test]
    fn keeping_what_was_matched_leaves_the_word(word in any::<String>()) {
        prop_assert_eq!(execute(r"()((?s:.))()@\2", &word), Some(word.clone()));
        prop_assert_eq!(execute(r"()((?s:.*))()@\2", &word), Some(word));
    }
}

#[test]
fn deep_nesting_is_refused_before_the_stack_ends() {
    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Regex::new(&nested(NESTING_LIMIT - 1)).is_ok());
    assert!(matches!(Regex::new(&nested(NESTING_LIMIT + 1)), Err(ReError::Syntax(_))));
    assert!(Regex::new(&nested(100_000)).is_err());
    let look = |depth: usize| format!("{}a{}", "(?=".repeat(depth), ")".repeat(depth));
    assert_eq!(sub(&look(NESTING_LIMIT - 1), "x", "ba"), Ok("bxa".into()));
    assert!(Regex::new(&"(?(1)".repeat(100_000)).is_err());
    assert!(Regex::new(&"(?:".repeat(100_000)).is_err());
}

#[test]
fn long_words_and_long_expressions_end() {
    let long = "ab".repeat(50_000);
    assert_eq!(execute("()(b)()@", &long), Some("a".repeat(50_000)));
    assert_eq!(execute("()((?:ab)*)()@x", &long).as_deref(), Some("xx"), "the empty match at the end counts too");
    assert_eq!(execute(&format!("()({})()@x", "a".repeat(20_000)), &long), Some(long.clone()));
    let alternatives = vec!["ab"; 20_000].join("|");
    assert!(execute(&format!("()((?:{alternatives}|c)d)()@x"), "abab").is_some());
    // Groups 1 and 3 exist; the text holds no two letters a in a row.
    assert_eq!(execute(&format!("{}@x", "(a)".repeat(2_000)), &long), Some(long));
}

#[test]
fn what_exceeds_the_bounds_says_so() {
    let bound = |pattern: &str, word: &str| {
        let begun = Instant::now();
        let result = sub(pattern, "x", word);
        assert!(begun.elapsed() < Duration::from_secs(10), "{pattern} took {:?}", begun.elapsed());
        result
    };
    assert_eq!(bound("(a*)*b", &"a".repeat(100)), Err(ReError::Bound));
    assert_eq!(bound("(?:a?){2000}b", &"a".repeat(1000)), Err(ReError::Bound));
    assert_eq!(bound("(?:){4000000000}", "a"), Err(ReError::Bound));
    assert_eq!(bound("((((((a*)*)*)*)*)*)*b", &"a".repeat(100)), Err(ReError::Bound));
}

#[test]
fn what_is_written_is_bounded() {
    let long = "a".repeat(100_000);
    let begun = Instant::now();
    assert_eq!(execute(&format!("()(a)()@{}", "bcdef".repeat(20_000)), &long), None, "much for each letter");
    assert_eq!(sub("(a+)", &"\\1".repeat(100_000), &long), Err(ReError::Bound), "a long group many times");
    assert_eq!(execute("()(a)()@bc", &long).map(|out| out.len()), Some(200_000));
    assert!(begun.elapsed() < Duration::from_secs(5));
}
