//! Noise in what simulated people say, and how long they take. Everything is drawn from the stream that is passed in.

use crate::config::run::{PeopleModel, RatingScale};
use crate::rng::Stream;
use rand::RngExt;
use rand::seq::IndexedRandom;

/// Words that people confuse: saying one for the other makes the description a wrong one.
const CONFUSED: [(&str, &str); 12] = [
    ("left", "right"),
    ("first", "last"),
    ("before", "after"),
    ("start", "end"),
    ("beginning", "end"),
    ("front", "back"),
    ("up", "down"),
    ("vowel", "consonant"),
    ("vowels", "consonants"),
    ("starts", "ends"),
    ("behind", "ahead"),
    ("every", "first"),
];

/// Words that are easily left out.
const SMALL: [&str; 14] =
    ["the", "a", "an", "of", "to", "in", "it", "is", "with", "and", "all", "every", "any", "each"];

/// Words with which people begin.
const OPENINGS: [&str; 4] = ["please ", "you should ", "now ", "just "];

/// A standard normal number (Box and Muller).
pub(super) fn normal(stream: &mut Stream) -> f64 {
    let u: f64 = 1.0 - stream.random::<f64>();
    let v: f64 = stream.random();
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Seconds that an answer takes: log-normal around a median.
pub(super) fn seconds(median: f64, spread: f64, stream: &mut Stream) -> f64 {
    (median * (spread * normal(stream)).exp()).clamp(0.3, 3600.0)
}

/// A sentence as a person types it who means `text`, and whether it says something else than was meant.
pub(super) fn sentence(text: &str, model: &PeopleModel, stream: &mut Stream) -> (String, bool) {
    let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let mut wrong = false;
    if stream.random_bool(model.wrong_attribute) {
        wrong = confuse(&mut words, stream);
    }
    let letters: Vec<bool> = are_letters(&words);
    let mut typed: Vec<String> = Vec::with_capacity(words.len());
    for (word, letter) in words.iter().zip(letters) {
        if !letter && SMALL.contains(&word.as_str()) && stream.random_bool(model.omission) {
            continue;
        }
        // Letters that are meant as letters, and short words, are typed with care.
        let slips = !letter && word.chars().count() > 3 && stream.random_bool(model.typo);
        typed.push(if slips { misspelt(word, stream) } else { word.clone() });
    }
    if typed.is_empty() {
        typed = words;
    }
    let mut sentence = typed.join(" ");
    if stream.random_bool(model.phrasing) {
        match stream.random_range(0..3) {
            0 => sentence = format!("{}{sentence}", OPENINGS.choose(stream).unwrap_or(&"")),
            1 => sentence.push('.'),
            _ => {
                let mut letters = sentence.chars();
                let first = letters.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
                sentence = format!("{first}{}", letters.as_str());
            }
        }
    }
    (sentence, wrong)
}

/// Whether each word is a bracket, stands within brackets, or is a single letter: these name letters.
fn are_letters(words: &[String]) -> Vec<bool> {
    let mut inside = false;
    words
        .iter()
        .map(|word| match word.as_str() {
            "[" => {
                inside = true;
                true
            }
            "]" => std::mem::take(&mut inside),
            word => inside || (word.chars().count() == 1 && word != "a"),
        })
        .collect()
}

/// Says one attribute wrongly; whether there was one.
fn confuse(words: &mut [String], stream: &mut Stream) -> bool {
    let other = |word: &str| {
        CONFUSED.iter().find_map(|(a, b)| match word {
            word if word == *a => Some(*b),
            word if word == *b => Some(*a),
            _ => None,
        })
    };
    let places: Vec<usize> = (0..words.len()).filter(|i| other(&words[*i]).is_some()).collect();
    let Some(&place) = places.choose(stream) else { return false };
    words[place] = other(&words[place]).unwrap_or_default().to_owned();
    true
}

/// A word with one slip of the fingers: two letters exchanged, one left out, or one typed twice.
fn misspelt(word: &str, stream: &mut Stream) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let at = stream.random_range(1..letters.len() - 1);
    match stream.random_range(0..3) {
        0 => letters.swap(at, at + 1),
        1 => {
            letters.remove(at);
        }
        _ => letters.insert(at, letters[at]),
    }
    letters.into_iter().collect()
}

/// A rating by somebody who finds that an execution is worth `quality`, from 0 to 1. `bias` is how many stars this person gives too
/// many. The second is whether it is another rating than the nearest one.
pub(super) fn rating(
    quality: f64,
    scale: RatingScale,
    bias: f64,
    model: &PeopleModel,
    stream: &mut Stream,
) -> (f64, bool) {
    let right = scale.nearest(quality);
    let given = match scale {
        RatingScale::Binary if stream.random_bool(model.flip) => 1.0 - right,
        RatingScale::Binary => right,
        RatingScale::Stars => scale.nearest(quality + (bias + model.drift * normal(stream)) / 4.0),
    };
    (given, given != right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;

    #[test]
    fn a_person_without_noise_says_what_is_meant() {
        let careful = PeopleModel::careful();
        let mut draws = stream(1, "people test", 0);
        for text in ["replace [ n ] with [ c ]", "turn left at the couch"] {
            assert_eq!(sentence(text, &careful, &mut draws), (text.to_owned(), false));
        }
        assert_eq!(rating(0.7, RatingScale::Stars, 0.0, &careful, &mut draws), (0.75, false));
    }

    #[test]
    fn noise_is_as_frequent_as_it_is_set_and_spares_letters() {
        let model =
            PeopleModel { typo: 0.5, omission: 0.0, phrasing: 0.0, wrong_attribute: 0.25, ..PeopleModel::careful() };
        let mut draws = stream(2, "people test", 0);
        let said: Vec<(String, bool)> =
            (0..1000).map(|_| sentence("replace [ n ] before the last vowel", &model, &mut draws)).collect();
        let wrong = said.iter().filter(|(_, wrong)| *wrong).count();
        assert!((200..300).contains(&wrong), "{wrong}");
        assert!(said.iter().all(|(text, _)| text.contains("[ n ]")));
        let slips = said.iter().filter(|(text, _)| !text.contains("replace")).count();
        assert!((430..570).contains(&slips), "{slips}");
    }

    #[test]
    fn seconds_are_log_normal() {
        let mut draws = stream(3, "people test", 0);
        let mut all: Vec<f64> = (0..2001).map(|_| seconds(20.0, 0.6, &mut draws)).collect();
        all.sort_by(f64::total_cmp);
        assert!((18.0..22.0).contains(&all[1000]), "median {}", all[1000]);
        // One standard deviation of the logarithm above and below.
        assert!((0.5..0.7).contains(&(all[1683] / 20.0).ln()) && (0.5..0.7).contains(&(20.0 / all[317]).ln()));
    }

    #[test]
    fn flips_and_drift_are_as_they_are_set() {
        let model = PeopleModel { flip: 0.2, drift: 1.0, ..PeopleModel::careful() };
        let mut draws = stream(4, "people test", 0);
        let wrong = (0..1000).filter(|_| rating(1.0, RatingScale::Binary, 0.0, &model, &mut draws).1).count();
        assert!((160..240).contains(&wrong), "{wrong}");
        let stars: f64 =
            (0..1000).map(|_| rating(0.5, RatingScale::Stars, 1.0, &model, &mut draws).0).sum::<f64>() / 1000.0;
        assert!((0.68..0.80).contains(&stars), "one star too many on average: {stars}");
    }
}
