//! Letters as slots, and renamed: nothing is lost, nothing true becomes false, and names do not matter.

use candle_core::Device;
use iliad::family::Family;
use iliad::protocol::{Decoding, Split, World};
use iliad::registry::Registry;
use iliad::rng::{Stream, stream};
use iliad::task::regex::agent::RegexAgent;
use iliad::task::regex::family::RegexFamily;
use iliad::task::regex::letters::{Letters, Renaming, Slots, form, symbols};
use iliad::task::regex::program::execute;
use iliad::task::regex::settings::{ModelSettings, presets};
use iliad::task::regex::tokenise::tokenise;
use iliad::task::regex::world::RegexWorld;
use rand::RngExt;

fn tokens(text: &str) -> Vec<String> {
    tokenise(text, &|word| word.chars().count() > 2)
}

fn spell(symbols: &[String], slots: &Slots) -> Option<String> {
    slots.spell(symbols.iter().map(String::as_str))
}

/// Any characters that expressions are made of, well formed or not.
fn any_expression(stream: &mut Stream) -> String {
    let parts: Vec<char> = "()^$.@\\\\2CVaeiouybcdfgnxzéß".chars().collect();
    (0..stream.random_range(0..20)).map(|_| parts[stream.random_range(0..parts.len())]).collect()
}

fn any_request(stream: &mut Stream) -> Vec<String> {
    let letters: Vec<char> = "aeiouybcdfgnxzé".chars().collect();
    let words = ["replace", "a", "every", "vowel", "with", "s", "the", "letter"];
    let mut tokens: Vec<String> = Vec::new();
    for _ in 0..stream.random_range(0..12) {
        if stream.random_bool(0.4) {
            tokens.push("[".into());
            for _ in 0..stream.random_range(1..=4) {
                tokens.push(letters[stream.random_range(0..letters.len())].into());
            }
            tokens.push("]".into());
        } else {
            tokens.push(words[stream.random_range(0..words.len())].into());
        }
    }
    tokens
}

fn alphabet() -> Vec<char> {
    ('a'..='z').collect()
}

#[test]
fn reading_and_writing_loses_nothing() {
    for i in 0..20_000 {
        let mut draws = stream(1, "letters test", i);
        let request = any_request(&mut draws);
        let slots = Slots::of(&request);
        let expression = any_expression(&mut draws);
        assert_eq!(spell(&slots.expression(&expression), &slots).as_deref(), Some(expression.as_str()), "{request:?}");
        assert_eq!(spell(&slots.word("embolden"), &slots).as_deref(), Some("embolden"));
        let read = slots.request(&request);
        let back: Vec<String> = read.iter().map(|t| slots.spell([t.as_str()]).unwrap()).collect();
        assert_eq!(back, request);
        assert_eq!(Slots::default().request(&request), request);
    }
}

#[test]
fn what_a_person_typed_gives_slots_in_the_order_of_mention() {
    let read = |text: &str| {
        let tokens = tokens(text);
        Slots::of(&tokens).request(&tokens).join(" ")
    };
    assert_eq!(read("replace every \"n\" with \"c\""), "replace every [ <c1> ] with [ <c2> ]");
    assert_eq!(read("Change a to e, then n to a."), "change [ <v1> ] to [ <v2> ] , then [ <c1> ] to [ <v1> ]");
    assert_eq!(read("put [ a n ] before every y"), "put [ <v1> <c1> ] before every [ <c2> ]");
    assert_eq!(read("double the letter e: [ e e ]"), "double the letter [ <v1> ] : [ <v1> <v1> ]");
    assert_eq!(read("put a k in front of a vowel"), "put a [ <c1> ] in front of a vowel", "articles stay");
    assert_eq!(read("two e's become one"), "two [ <v1> ] s become one");
    // Whatever is typed, it cannot name a slot.
    for text in ["<c1>", "replace <v1> with < c1 >", "[ <c1> ]"] {
        assert!(!tokens(text).iter().any(|t| symbols().any(|s| s == *t)), "{text}");
    }
    // More consonants than there are slots stay letters, and y is a consonant.
    assert_eq!(read("[ b c d f ] or [ g h y ]"), "[ <c1> <c2> <c3> <c4> ] or [ <c5> h y ]");
}

#[test]
fn a_slot_that_the_request_does_not_define_spells_nothing() {
    let slots = Slots::of(&tokens("replace [ n ] with [ e ]"));
    assert_eq!(slots.spell(["(", ")", "(", "<c1>", ")", "@", "<v1>"]).as_deref(), Some("()(n)@e"));
    assert_eq!(slots.spell(["<c2>"]), None);
    assert_eq!(slots.spell(["<v2>"]), None);
    assert_eq!(slots.spell(["\\", "<c1>"]), None, "that would be an escape, whose meaning hangs on the letter");
    assert_eq!(slots.spell(["\\", "\\", "<c1>"]).as_deref(), Some("\\\\n"));
    assert_eq!(slots.expression("(\\n)@n").concat(), "(\\n)@<c1>");
}

#[test]
fn renamed_expressions_do_to_renamed_words_what_they_did_before() {
    let world = RegexWorld::builtin(1);
    let mut changed = 0;
    for i in 0..4000u64 {
        let mut draws = stream(2, "letters test", i);
        let task = world.sample_task(Split::Train, &mut draws);
        let expression = if i % 2 == 0 {
            world.gold(Split::Train, task.index).expression
        } else {
            world.sample_marginal(&task.start, &mut draws).expression
        };
        let renaming = Renaming::draw(&alphabet(), &mut draws);
        let other = renaming.expression(&expression);
        changed += usize::from(other != expression);
        for word in &task.start.words {
            let output = execute(&expression, word).unwrap();
            assert_eq!(execute(&other, &renaming.word(word)), Some(renaming.word(&output)), "{expression} {other}");
        }
        assert_eq!(form(&other), form(&expression));
    }
    assert!(changed > 2500, "{changed}");
}

#[test]
fn with_slots_a_renamed_example_is_the_same_example() {
    let world = RegexWorld::builtin(1);
    for i in 0..4000u64 {
        let mut draws = stream(3, "letters test", i);
        let task = world.sample_task(Split::Train, &mut draws);
        let expression = world.gold(Split::Train, task.index).expression;
        let request: Vec<String> = task.request.split(' ').map(str::to_owned).collect();
        assert_eq!(tokenise(&task.request, &|_| true), request, "requests are tokens already");
        let renaming = Renaming::draw(&alphabet(), &mut draws);
        let renamed = renaming.request(&request);
        let (slots, others) = (Slots::of(&request), Slots::of(&renamed));
        assert_eq!(slots.request(&request), others.request(&renamed));
        let other = renaming.expression(&expression);
        assert_eq!(slots.expression(&expression), others.expression(&other), "{expression} {request:?}");
        assert!(!slots.expression(&expression).iter().any(|s| s.chars().all(char::is_lowercase)), "{expression}");
        // Of a word, the letters that the request names.
        let named = |word: Vec<String>| -> Vec<Option<String>> {
            word.into_iter().map(|s| Some(s).filter(|s| s.starts_with('<'))).collect()
        };
        for word in &task.start.words {
            assert_eq!(named(slots.word(word)), named(others.word(&renaming.word(word))), "{word} {request:?}");
        }
    }
}

#[test]
fn vocabularies_have_the_slots_only_where_they_are_used_and_old_blueprints_are_plain() {
    let world = RegexWorld::tiny(1);
    let model = |letters| {
        let model: ModelSettings = serde_json::from_value(presets()[1].config.model.clone()).unwrap();
        ModelSettings { letters, ..model }
    };
    let plain = RegexAgent::plan(&world, &model(Letters::Plain)).unwrap();
    let slots = RegexAgent::plan(&world, &model(Letters::Slots)).unwrap();
    assert_eq!(plain.characters.rows() + symbols().count(), slots.characters.rows());
    assert_eq!(plain.requests.rows() + symbols().count(), slots.requests.rows());
    assert_eq!(plain.expressions.rows() + symbols().count(), slots.expressions.rows());
    let renamed = RegexAgent::plan(&world, &model(Letters::Renamed)).unwrap();
    assert!(plain.fits(&plain) && plain.fits(&renamed) && slots.fits(&slots));
    assert!(!plain.fits(&slots) && !slots.fits(&renamed));
    let mut json = serde_json::to_value(&plain).unwrap();
    assert_eq!(json.as_object_mut().unwrap().remove("letters"), Some("plain".into()));
    let old: iliad::task::regex::agent::Blueprint = serde_json::from_value(json).unwrap();
    assert_eq!(old, plain);
}

/// The shipped policy of the tiny world acts with and without a vote: a vote depends on nothing but the task, gives an edit that is valid
/// wherever the plain letters gave one, and changes some.
#[test]
fn a_vote_over_renamed_letters_depends_on_the_task_alone_and_loses_no_valid_edit() {
    let act = |votes: &str, draws: u64| {
        let set = ["teacher.models=none", votes].map(String::from);
        let config = Registry::builtin().configure("tiny", 1, &set).unwrap();
        let world = RegexFamily.world(&config, &|_, _| {}).unwrap();
        let agent = RegexFamily.agent(&config, &world, &Device::Cpu).unwrap().agent;
        let tasks: Vec<_> = (0..60).map(|index| world.task(Split::Train, index)).collect();
        let asked: Vec<_> = tasks.iter().map(|task| (&task.start, task.request.as_str())).collect();
        agent.act(&asked, Decoding::Greedy, &mut stream(draws, "vote test", 0)).unwrap()
    };
    let (plain, voted) = (act("model.votes=0", 1), act("model.votes=4", 1));
    assert_eq!(voted, act("model.votes=4", 2));
    assert_ne!(plain, voted);
    for (plain, voted) in plain.iter().zip(&voted) {
        assert!(plain.outputs.is_none() || voted.outputs.is_some(), "{plain:?} {voted:?}");
    }
}
