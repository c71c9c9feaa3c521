//! The NAV models against plain arithmetic and against themselves: gradients by finite differences, company in a batch
//! that changes nothing, roll-outs against teacher forcing, descriptions against their likelihood.

use candle_core::{D, DType, Device, Tensor};
use iliad::nn::adam::Adam;
use iliad::nn::decoder::wrap;
use iliad::nn::init::uniform;
use iliad::nn::layers::Grad;
use iliad::nn::params::Params;
use iliad::rng::{Stream, stream};
use iliad::task::nav::model::describer::NavDescriber;
use iliad::task::nav::model::rollout::{Environment, RollOut};
use iliad::task::nav::model::student::{Batch, Lesson, NavStudent, Reading, as_read};
use iliad::task::nav::model::views::ViewTable;
use iliad::task::nav::model::walk::{Candidate, Observation, Walk, Walks};
use iliad::task::nav::model::{NavSizes, VIEWS};
use rand::RngExt;

const SIZES: NavSizes = NavSizes { words: 13, hidden: 8, heads: 2, features: 6, direction: 8 };
const PLACES: usize = 5;

fn views(kind: DType) -> ViewTable {
    let values = uniform(&[PLACES * VIEWS * SIZES.features], 1.0, &mut stream(1, "views", 0)).unwrap();
    ViewTable::new(&values.to_vec1::<f32>().unwrap(), SIZES.features, kind, &Device::Cpu).unwrap()
}

fn student(seed: u64, reading: Reading) -> NavStudent {
    NavStudent::new(SIZES, reading, &mut stream(seed, "nav", 0), &Device::Cpu).unwrap()
}

/// The student with biases that make its first input similar to its initial state, so that it recalls something.
fn remembering(model: NavStudent) -> NavStudent {
    let pattern: Vec<f32> = (0..SIZES.hidden).map(|i| if i % 3 == 0 { 3.0 } else { -3.0 }).collect();
    for name in ["bridge.bias", "state.input.bias"] {
        model.params.get(name).unwrap().set(&Tensor::new(pattern.as_slice(), &Device::Cpu).unwrap()).unwrap();
    }
    model
}

fn describer(seed: u64, reference: bool) -> NavDescriber {
    NavDescriber::new(SIZES, reference, &mut stream(seed, "nav", 1), &Device::Cpu).unwrap()
}

fn observation(s: &mut Stream) -> Observation {
    let moves = (0..s.random_range(1..5)).map(|_| Candidate {
        view: s.random_range(0..36),
        heading: s.random_range(-3.0..3.0),
        elevation: s.random_range(-0.5..0.5),
    });
    let moves = moves.collect();
    Observation { place: s.random_range(0..PLACES as u32), pose: None, moves }
}

fn walk(s: &mut Stream, longest: usize) -> Walk {
    let length = s.random_range(1..=longest);
    long_walk(s, length)
}

fn long_walk(s: &mut Stream, length: usize) -> Walk {
    let seen: Vec<_> = (0..length).map(|_| observation(s)).collect();
    let last = seen.len() - 1;
    let act = |(t, o): (usize, &Observation)| if t == last { 0 } else { s.random_range(1..=o.moves.len() as u32) };
    let actions = seen.iter().enumerate().map(act).collect();
    Walk { seen, actions }
}

fn words(s: &mut Stream, longest: usize) -> Vec<u32> {
    (0..s.random_range(1..=longest)).map(|_| s.random_range(4..SIZES.words as u32)).collect()
}

fn batch(n: usize, seed: u64) -> Batch {
    let s = &mut stream(seed, "batch", 0);
    Batch { requests: (0..n).map(|_| as_read(&words(s, 7))).collect(), walks: (0..n).map(|_| walk(s, 4)).collect() }
}

fn actions(walks: &[Walk]) -> Vec<Vec<u32>> {
    walks.iter().map(|w| w.actions.clone()).collect()
}

fn flat(t: &Tensor) -> Vec<f32> {
    t.flatten_all().unwrap().to_vec1().unwrap()
}

fn furthest(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Parameters that add the same to all that a softmax compares: their gradient is zero but for rounding.
fn only_shifts(name: &str) -> bool {
    name.ends_with(".key.bias") || name == "predictor.action.bias" || name == "predictor.output.bias"
}

/// Compares the gradient of `loss` with central differences at the largest entry of every parameter and some others.
/// Where differences of two widths disagree, the loss has an edge nearby (of a ReLU) and tells nothing; there must be
/// few such places.
fn check_gradients(params: &Params, others: usize, loss: impl Fn() -> Tensor) {
    let grads = loss().backward().unwrap();
    let mut pick = stream(5, "entries", 0);
    let (mut compared, mut edges) = (0, 0);
    for (name, var) in params.iter() {
        let grad = grads.get(var).unwrap_or_else(|| panic!("no gradient reaches {name}"));
        let grad = grad.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let largest = grad.iter().fold(0f32, |m, g| m.max(g.abs()));
        assert!(only_shifts(name) == (largest < 1e-6), "the largest gradient of {name} is {largest}");
        let values = var.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let top = grad.iter().position(|g| g.abs() == largest).unwrap();
        for k in 0..=others {
            let i = if k == 0 { top } else { pick.random_range(0..values.len()) };
            let at = |value: f32| {
                let mut moved = values.clone();
                moved[i] = value;
                var.set(&Tensor::from_vec(moved, var.dims(), &Device::Cpu).unwrap()).unwrap();
                f64::from(loss().to_scalar::<f32>().unwrap())
            };
            let slope = |h: f32| (at(values[i] + h) - at(values[i] - h)) / (2.0 * f64::from(h));
            let (wide, narrow) = (slope(2e-3), slope(1e-3));
            at(values[i]);
            let exact = f64::from(grad[i]);
            let bound = 2e-3 * (1.0 + exact.abs());
            if (wide - narrow).abs() > bound {
                edges += 1;
                continue;
            }
            compared += 1;
            assert!((narrow - exact).abs() < 2.0 * bound, "{name}[{i}]: {exact} against {narrow}");
        }
    }
    assert!(edges * 20 < compared, "{compared} entries compared, {edges} edges");
}

#[test]
fn gradients_of_the_student_agree_with_finite_differences() {
    for (seed, reading) in [(1, Reading::default()), (2, Reading { reference_padding: true, positions: true })] {
        let (model, table, b) = (remembering(student(seed, reading)), views(DType::F32), batch(4, 10));
        let likelihood = Lesson::likelihood(&actions(&b.walks), &[(3, 0.7), (1, 0.3)]);
        check_gradients(&model.params, 2, || model.loss(&b, &likelihood, &table).unwrap());
    }
    let (model, table, b) = (remembering(student(3, Reading::default())), views(DType::F32), batch(4, 11));
    let reward = Lesson::reward(&actions(&b.walks), &[0.7, -0.4, 0.1, -1.3], 0.1);
    check_gradients(&model.params, 0, || model.loss(&b, &reward, &table).unwrap());
}

#[test]
fn gradients_of_the_describer_agree_with_finite_differences() {
    for reference in [false, true] {
        let (model, table, b) = (describer(1, reference), views(DType::F32), batch(4, 20));
        let s = &mut stream(3, "texts", 0);
        let texts: Vec<_> = (0..4).map(|_| wrap(&words(s, 5))).collect();
        check_gradients(&model.params, 2, || model.loss(&b.walks, &texts, &table).unwrap());
    }
}

/// Logits of the real actions of one walk, step by step.
fn row(model: &NavStudent, b: &Batch, walk: usize) -> Vec<f32> {
    let logits = model.logits(b, &views(DType::F32), Grad::Off).unwrap().to_vec2::<f32>().unwrap();
    let n = b.walks.len();
    let seen = b.walks[walk].seen.iter().enumerate();
    seen.flat_map(|(t, o)| logits[t * n + walk][..=o.moves.len()].to_vec()).collect()
}

#[test]
fn company_in_a_batch_changes_nothing() {
    let (aware, reference) =
        (student(2, Reading::default()), student(2, Reading { reference_padding: true, positions: false }));
    let b = batch(6, 30);
    let mut reference_differs = false;
    for i in 0..6 {
        let alone = Batch { requests: vec![b.requests[i].clone()], walks: vec![b.walks[i].clone()] };
        let difference = |m: &NavStudent| furthest(&row(m, &b, i), &row(m, &alone, 0));
        assert!(difference(&aware) < 1e-5, "walk {i}");
        reference_differs |= difference(&reference) > 1e-4;
    }
    assert!(reference_differs, "with the authors' padding company does matter, so this test can tell");
}

#[test]
fn company_changes_no_description_either() {
    let (table, b) = (views(DType::F32), batch(6, 40));
    let text = wrap(&[5, 9, 4]);
    let likelihoods = |model: &NavDescriber, walks: &[Walk]| {
        let texts = vec![text.clone(); walks.len()];
        let (logits, _) = model.logits(&Walks::new(walks, &table).unwrap(), &texts, &table, Grad::Off).unwrap();
        let steps = text.len() - 1;
        let all = logits.reshape((steps, walks.len(), SIZES.words)).unwrap().transpose(0, 1).unwrap();
        all.flatten(1, 2).unwrap().to_vec2::<f32>().unwrap()
    };
    let mut reference_differs = false;
    let (aware, reference) = (describer(4, false), describer(4, true));
    let together = (likelihoods(&aware, &b.walks), likelihoods(&reference, &b.walks));
    let proposed = aware.propose(&b.walks, &table, 0, 12, &mut stream(1, "propose", 0)).unwrap();
    for (i, walk) in b.walks.iter().enumerate() {
        let walk = std::slice::from_ref(walk);
        assert!(furthest(&likelihoods(&aware, walk)[0], &together.0[i]) < 1e-5, "walk {i}");
        reference_differs |= furthest(&likelihoods(&reference, walk)[0], &together.1[i]) > 1e-4;
        let alone = aware.propose(walk, &table, 0, 12, &mut stream(1, "propose", 0)).unwrap();
        assert_eq!(alone[0], proposed[i]);
    }
    assert!(reference_differs, "with the authors' padding company does matter, so this test can tell");
}

#[test]
fn the_order_of_words_matters_with_positions_only() {
    let b = batch(3, 50);
    let mut reversed = b.clone();
    reversed.requests.iter_mut().for_each(|r| r.reverse());
    for positions in [false, true] {
        let model = student(5, Reading { reference_padding: false, positions });
        let difference = (0..3).map(|i| furthest(&row(&model, &b, i), &row(&model, &reversed, i))).fold(0.0, f32::max);
        assert_eq!(difference > 1e-3, positions, "{difference}");
    }
}

#[test]
fn requests_are_read_from_their_end_and_no_further_than_eighty_words() {
    assert_eq!(as_read(&[7, 8, 9]), [3, 9, 8, 7]);
    let long: Vec<u32> = (0..100).collect();
    let read = as_read(&long);
    assert_eq!((read.len(), read[0], read[1], read[80]), (81, 3, 79, 0));
}

/// Walkers who go round: move i leads (i + 1) places further.
struct Round {
    at: Vec<u32>,
}

impl Round {
    fn look(place: u32) -> Observation {
        let moves = (0..1 + place % 3).map(|i| Candidate { view: 7 * i + place, heading: i as f32, elevation: 0.1 });
        Observation { place, pose: None, moves: moves.collect() }
    }
}

impl Environment for Round {
    fn observe(&mut self) -> candle_core::Result<Vec<Observation>> {
        Ok(self.at.iter().map(|&p| Self::look(p)).collect())
    }

    fn act(&mut self, actions: &[u32]) -> candle_core::Result<()> {
        for (at, action) in self.at.iter_mut().zip(actions) {
            assert!(*action <= 1 + *at % 3, "an action that was offered");
            *at = if *action == 0 { *at } else { (*at + action) % PLACES as u32 };
        }
        Ok(())
    }
}

fn round(n: usize) -> Round {
    Round { at: (0..n as u32).map(|i| i % PLACES as u32).collect() }
}

#[test]
fn a_roll_out_scores_what_teacher_forcing_scores_and_learns_the_same_from_it() {
    let (model, table) = (student(6, Reading::default()), views(DType::F32));
    let requests = batch(7, 60).requests;
    let how = RollOut { horizon: 5, sample: true, grad: Grad::On };
    let rolled = model.roll_out(&requests, &mut round(7), &table, how, &mut stream(1, "roll", 0)).unwrap();
    let again = model.roll_out(&requests, &mut round(7), &table, how, &mut stream(1, "roll", 0)).unwrap();
    assert_eq!(rolled.walks, again.walks, "the same stream draws the same");
    let lengths: Vec<_> = rolled.walks.iter().map(Walk::len).collect();
    assert!(lengths.iter().any(|n| *n < 5) && lengths.contains(&5), "{lengths:?}");
    for (walk, stopped) in rolled.walks.iter().zip(&rolled.stopped) {
        assert_eq!(walk.actions.iter().position(|a| *a == 0), Some(walk.len() - 1), "it ends with the only stop");
        assert!(*stopped || walk.len() == 5);
        let places: Vec<_> = walk.seen.iter().map(|o| o.place).collect();
        for (t, action) in walk.actions[..walk.len() - 1].iter().enumerate() {
            assert_eq!(places[t + 1], (places[t] + action) % PLACES as u32);
        }
    }
    let b = Batch { requests, walks: rolled.walks.clone() };
    let lesson = Lesson::likelihood(&actions(&b.walks), &[(7, 1.0)]);
    let (a, b) = (rolled.loss(&lesson).unwrap(), model.loss(&b, &lesson, &table).unwrap());
    assert!((a.to_scalar::<f32>().unwrap() - b.to_scalar::<f32>().unwrap()).abs() < 1e-5);
    let (a, b) = (a.backward().unwrap(), b.backward().unwrap());
    for (name, var) in model.params.iter() {
        assert!(furthest(&flat(a.get(var).unwrap()), &flat(b.get(var).unwrap())) < 1e-5, "{name}");
    }
}

#[test]
fn greedy_walks_take_the_best_action_and_samples_follow_the_policy() {
    let (model, table) = (student(7, Reading::default()), views(DType::F32));
    let b = batch(1, 70);
    let n = 3000;
    let requests = vec![b.requests[0].clone(); n];
    let start = || Round { at: vec![2; n] };
    let how = |sample| RollOut { horizon: 3, sample, grad: Grad::Off };
    let greedy = model.roll_out(&requests, &mut start(), &table, how(false), &mut stream(1, "roll", 0)).unwrap();
    let first = greedy.logits[0].get(0).unwrap();
    let best = first.argmax(0).unwrap().to_scalar::<u32>().unwrap();
    assert!(greedy.walks.iter().all(|w| w.actions[0] == best));
    let sampled = model.roll_out(&requests, &mut start(), &table, how(true), &mut stream(2, "roll", 0)).unwrap();
    let p = candle_nn::ops::softmax(&first, D::Minus1).unwrap().to_vec1::<f32>().unwrap();
    assert_eq!(p.len(), 4);
    for (action, p) in p.iter().enumerate() {
        let share = sampled.walks.iter().filter(|w| w.actions[0] as usize == action).count() as f32 / n as f32;
        assert!((share - p).abs() < 0.03, "action {action}: {share} against {p}");
    }
}

#[test]
fn likelihoods_are_sums_of_logarithms_of_softmaxes() {
    let (model, table, b) = (student(8, Reading::default()), views(DType::F32), batch(5, 80));
    let found = model.log_likelihood(&b, &table).unwrap();
    for (i, walk) in b.walks.iter().enumerate() {
        let mut logits = row(&model, &b, i).into_iter().map(f64::from);
        let sum: f64 = (walk.seen.iter().zip(&walk.actions))
            .map(|(seen, action)| {
                let step: Vec<f64> = logits.by_ref().take(seen.moves.len() + 1).collect();
                step[*action as usize] - step.iter().map(|x| x.exp()).sum::<f64>().ln()
            })
            .sum();
        assert!((f64::from(found[i]) - sum).abs() < 1e-4, "walk {i}: {} against {sum}", found[i]);
    }
}

#[test]
fn copies_of_a_batch_share_its_requests() {
    let (model, table) = (remembering(student(10, Reading::default())), views(DType::F32));
    let (mut b, other) = (batch(4, 90), batch(4, 91));
    let apart = Batch { requests: b.requests.clone(), walks: other.walks.clone() };
    let lone = [model.log_likelihood(&b, &table).unwrap(), model.log_likelihood(&apart, &table).unwrap()].concat();
    let loss = |b: &Batch, shares: &[(usize, f32)]| {
        model.loss(b, &Lesson::likelihood(&actions(&b.walks), shares), &table).unwrap()
    };
    let expected = (loss(&b, &[(4, 1.5)]) + loss(&apart, &[(4, 0.5)])).unwrap();
    b.walks.extend(other.walks);
    assert!(furthest(&model.log_likelihood(&b, &table).unwrap(), &lone) < 1e-4);
    let together = loss(&b, &[(4, 1.5), (4, 0.5)]);
    assert!((together.to_scalar::<f32>().unwrap() - expected.to_scalar::<f32>().unwrap()).abs() < 1e-4);
    // The request's reader learns from both copies.
    let (a, b) = (together.backward().unwrap(), expected.backward().unwrap());
    for (name, var) in model.params.iter() {
        assert!(furthest(&flat(a.get(var).unwrap()), &flat(b.get(var).unwrap())) < 1e-4, "{name}");
    }
}

#[test]
fn views_in_half_precision_change_little() {
    let (model, b) = (student(10, Reading::default()), batch(6, 100));
    let full = model.log_likelihood(&b, &views(DType::F32)).unwrap();
    for (kind, bound) in [(DType::F16, 2e-3), (DType::BF16, 2e-2)] {
        let difference = furthest(&model.log_likelihood(&b, &views(kind)).unwrap(), &full);
        assert!(difference > 0.0 && difference < bound, "{kind:?}: {difference}");
    }
}

#[test]
fn a_batch_is_learnt_by_heart() {
    let (model, table, b) = (student(11, Reading::default()), views(DType::F32), batch(6, 110));
    let lesson = Lesson::likelihood(&actions(&b.walks), &[(6, 1.0)]);
    let mut adam = Adam::new(&model.params, 1e-2).unwrap();
    let losses: Vec<f32> =
        (0..80).map(|_| model.step(&b, &lesson, &table, &mut adam).unwrap().to_scalar().unwrap()).collect();
    assert!(losses[79] < 0.05 * losses[0], "{losses:?}");
    assert!(model.log_likelihood(&b, &table).unwrap().iter().all(|l| *l > -0.5));
}

#[test]
fn descriptions_are_learnt_by_heart_and_then_written() {
    let (model, table) = (describer(12, false), views(DType::F32));
    let s = &mut stream(4, "texts", 0);
    let walks: Vec<_> = (0..5).map(|i| long_walk(s, 2 + i % 3)).collect();
    let texts: Vec<_> = (0..5).map(|_| wrap(&words(s, 9))).collect();
    let mut adam = Adam::new(&model.params, 1e-2).unwrap();
    let losses: Vec<f32> =
        (0..200).map(|_| model.step(&walks, &texts, &table, &mut adam).unwrap().to_scalar().unwrap()).collect();
    assert!(losses[199] < 0.02 * losses[0], "{} to {}", losses[0], losses[199]);
    let proposed = model.propose(&walks, &table, 2, 20, &mut stream(1, "propose", 0)).unwrap();
    for (candidates, text) in proposed.iter().zip(&texts) {
        assert_eq!(candidates.len(), 3);
        assert!(candidates[0].ended);
        assert_eq!(wrap(&candidates[0].symbols), *text);
    }
}

#[test]
fn what_is_written_greedily_is_likeliest_word_by_word_and_samples_follow_the_model() {
    let (model, table) = (describer(13, false), views(DType::F32));
    let b = batch(8, 130);
    let mut checked = 0;
    let proposed = model.propose(&b.walks, &table, 0, 9, &mut stream(1, "propose", 0)).unwrap();
    for (walk, written) in b.walks.iter().zip(&proposed) {
        let written = &written[0];
        assert!(written.ended || written.symbols.len() == 9);
        let text = [&[2], written.symbols.as_slice(), &[3]].concat();
        let walks = Walks::new(std::slice::from_ref(walk), &table).unwrap();
        let (logits, _) = model.logits(&walks, std::slice::from_ref(&text), &table, Grad::Off).unwrap();
        for (t, row) in logits.to_vec2::<f32>().unwrap().iter().enumerate().take(written.symbols.len()) {
            // Padding and START are never written.
            let allowed = |id: &usize| *id != 0 && *id != 2;
            let best = (0..row.len()).filter(allowed).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
            assert_eq!(best as u32, text[t + 1]);
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");

    let n = 4000;
    let samples = model.propose(&b.walks[..1], &table, n, 1, &mut stream(2, "propose", 0)).unwrap().remove(0);
    let walks = Walks::new(&b.walks[..1], &table).unwrap();
    let (logits, _) = model.logits(&walks, &[vec![2, 3]], &table, Grad::Off).unwrap();
    let p: Vec<f32> = logits.get(0).unwrap().to_vec1::<f32>().unwrap().iter().map(|x| x.exp()).collect();
    let total = p.iter().sum::<f32>() - p[0] - p[2];
    for word in 4..SIZES.words as u32 {
        let share = samples[1..].iter().filter(|r| r.symbols.first() == Some(&word)).count() as f32 / n as f32;
        let expected = p[word as usize] / total;
        assert!((share - expected).abs() < 0.03, "word {word}: {share} against {expected}");
    }
    assert!(samples.iter().all(|r| !r.symbols.contains(&0) && !r.symbols.contains(&2)));
}

#[test]
fn a_walk_that_only_stops_and_a_word_alone_are_batches_too() {
    let (model, table) = (student(14, Reading::default()), views(DType::F32));
    let walk = Walk { seen: vec![Round::look(1)], actions: vec![0] };
    let b = Batch { requests: vec![as_read(&[5])], walks: vec![walk.clone()] };
    let mut adam = Adam::new(&model.params, 1e-3).unwrap();
    model.step(&b, &Lesson::likelihood(&[vec![0]], &[(1, 1.0)]), &table, &mut adam).unwrap();
    let describer = describer(14, false);
    let mut adam = Adam::new(&describer.params, 1e-3).unwrap();
    describer.step(&[walk], &[vec![2, 3]], &table, &mut adam).unwrap();
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let (model, table, b) = (student(15, Reading::default()), views(DType::F32), batch(2, 150));
    let refused = |b: &Batch| model.logits(b, &table, Grad::Off).unwrap_err().to_string();
    assert!(refused(&Batch { requests: vec![vec![99], vec![4]], ..b.clone() }).contains("token 99"));
    assert!(refused(&Batch { requests: vec![vec![], vec![4]], ..b.clone() }).contains("without a word"));
    assert!(refused(&Batch { requests: vec![vec![4]; 3], ..b.clone() }).contains("2 walks for 3 requests"));
    assert!(refused(&Batch { walks: Vec::new(), ..b.clone() }).contains("without walks"));
    for sizes in [NavSizes { heads: 3, ..SIZES }, NavSizes { direction: 6, ..SIZES }, NavSizes { hidden: 0, ..SIZES }] {
        let made = NavStudent::new(sizes, Reading::default(), &mut stream(1, "nav", 0), &Device::Cpu);
        assert!(made.is_err(), "{sizes:?}");
    }
}
