//! The tokens that the agent reads of the text that people type.

use iliad::task::regex::tokenise::tokenise;
use proptest::prelude::*;

/// Words a vocabulary of the task has.
const KNOWN: &str = "the with a letter replace word consonant vowel if is of two first to letters an and replaced last add \
    in it by before after change every are beginning consonants all that followed place each begins vowels starts any \
    then at second them ends end added there front for words remove when start put insert double turn into becomes \
    instead i think changed it s follows you see cat was now only not everywhere use ends";

fn known(word: &str) -> bool {
    KNOWN.split_whitespace().any(|w| w == word)
}

fn joined(text: &str) -> String {
    tokenise(text, &known).join(" ")
}

#[test]
fn sentences_by_hand() {
    let cases = [
        ("Replace all n with c", "replace all [ n ] with [ c ]"),
        ("replace all 'n' with 'c'.", "replace all [ n ] with [ c ]"),
        ("replace all \"n\" with \"c\"", "replace all [ n ] with [ c ]"),
        ("replace all “n” with ‘c’", "replace all [ n ] with [ c ]"),
        ("replace all `n` with *c*", "replace all [ n ] with [ c ]"),
        ("replace all [n] with [ c ]", "replace all [ n ] with [ c ]"),
        ("replace all (n) with _c_", "replace all [ n ] with [ c ]"),
        ("REPLACE ALL N WITH C", "replace all [ n ] with [ c ]"),
        ("Replace every N with C", "replace every [ n ] with [ c ]"),
        ("replace a with e", "replace [ a ] with [ e ]"),
        ("change e to a", "change [ e ] to [ a ]"),
        ("change every a to e", "change every [ a ] to [ e ]"),
        ("add a k at the end", "add a [ k ] at the end"),
        ("Add a 'k' at the end", "add a [ k ] at the end"),
        ("add an a at the end", "add an [ a ] at the end"),
        ("add an e after every a", "add an [ e ] after every [ a ]"),
        ("put the letter a before each vowel", "put the letter [ a ] before each vowel"),
        ("replace a vowel with a", "replace a vowel with [ a ]"),
        ("replace a consonant with a k", "replace a consonant with a [ k ]"),
        ("A k is added to the front", "a [ k ] is added to the front"),
        ("A is replaced by e", "[ a ] is replaced by [ e ]"),
        ("Put A before the word", "put [ a ] before the word"),
        ("if a word starts with a, remove it", "if a word starts with [ a ] , remove it"),
        ("if a word starts with a vowel, add a w", "if a word starts with a vowel , add a [ w ]"),
        ("a and e are replaced", "[ a ] and [ e ] are replaced"),
        ("a becomes o", "[ a ] becomes [ o ]"),
        ("a -> o", "[ a ] -> [ o ]"),
        ("a → o", "[ a ] -> [ o ]"),
        ("e => i", "[ e ] -> [ i ]"),
        ("n=c", "[ n ] = [ c ]"),
        ("turn e's into o's", "turn [ e ] s into [ o ] s"),
        ("double the 'e's", "double the [ e ] s"),
        ("all the es are now os", "all the [ e ] s are now [ o s ]"),
        ("replace the first two letters with ch", "replace the first two letters with [ c h ]"),
        ("replace the first two letters with c h", "replace the first two letters with [ c h ]"),
        ("replace it with NS", "replace it with [ n s ]"),
        ("replace it with 'ns'", "replace it with [ n s ]"),
        ("if it ends in ing, remove it", "if it ends in [ i n g ] , remove it"),
        ("it's replaced", "it s replaced"),
        ("It’s replaced with an 'a'", "it s replaced with an [ a ]"),
        ("I think every e becomes an i", "i think every [ e ] becomes an [ i ]"),
        ("i becomes e", "[ i ] becomes [ e ]"),
        ("put i before every e", "put [ i ] before every [ e ]"),
        ("add s at the end", "add [ s ] at the end"),
        ("e, s and t are replaced", "[ e ] , [ s ] and [ t ] are replaced"),
        ("replace 'the' with x", "replace the with [ x ]"),
        ("the word 'cat' becomes...", "the word cat becomes"),
        ("replace the 2nd letter", "replace the 2nd letter"),
        ("consonant/vowel pair", "consonant / vowel pair"),
        ("two-letter pair", "two - letter pair"),
        ("first letter = x", "first letter = [ x ]"),
        ("  spaces\t\nand   lines ", "spaces and lines"),
        ("", ""),
        ("...", ""),
        ("<PAD> <UNK> < >", "pad unk"),
        ("ersetze jedes ä durch ö", "ersetze jedes [ ä ] durch [ ö ]"),
        ("ЗАМЕНИТЕ каждую букву", "замените каждую букву"),
        ("replace “é” with e", "replace [ é ] with [ e ]"),
        ("把每个字母换成 x", "把 每 个 字 母 换 成 [ x ]"),
        ("把所有的a替换成e，再加ing", "把 所 有 的 [ a ] 替 换 成 [ e ] , 再 加 [ i n g ]"),
        ("“a”を「bc」に", "[ a ] を [ b c ] に"),
        ("замените е на о", "замените е на о"),
        ("replace 'е' with 'ν'", "replace [ е ] with [ ν ]"),
        ("हर अक्षर के बाद।", "हर अक्षर के बाद"),
        ("[ x y ] is added", "[ x y ] is added"),
        ("[something else]", "something else"),
    ];
    assert!(cases.len() >= 40);
    let wrong: Vec<String> = cases
        .iter()
        .filter(|(typed, tokens)| joined(typed) != *tokens)
        .map(|(typed, tokens)| format!("{typed:?}: {:?} instead of {tokens:?}", joined(typed)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn anything_can_be_typed(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn even_nests_of_marks(text in "[aeisx AB'\"\\[\\]()*_`<>.,=\\-’“”→]{0,24}") {
        check(&text)?;
    }

    #[test]
    fn tokens_typed_again_are_the_same_tokens(letters in "[b-hj-z]", other in "[b-hj-z]") {
        let text = format!("replace every [ {letters} ] with [ {other} ]");
        prop_assert_eq!(joined(&text), text.clone());
        let typed = format!("replace every {letters} with {other}");
        prop_assert_eq!(joined(&typed), text);
    }
}

/// No blanks, no symbols of the vocabularies' own, slots opened and closed.
fn check(text: &str) -> Result<(), TestCaseError> {
    let tokens = tokenise(text, &known);
    let mut open = false;
    for token in &tokens {
        prop_assert!(!token.is_empty() && !token.contains(char::is_whitespace), "{token:?} in {tokens:?}");
        prop_assert!(!["<", ">", "<PAD>", "<UNK>"].contains(&token.as_str()), "{tokens:?}");
        match token.as_str() {
            "[" => {
                prop_assert!(!open, "{tokens:?}");
                open = true;
            }
            "]" => {
                prop_assert!(open, "{tokens:?}");
                open = false;
            }
            letter if open => prop_assert!(letter.chars().count() == 1, "{tokens:?}"),
            _ => {}
        }
    }
    prop_assert!(!open, "{tokens:?}");
    Ok(())
}
