//! The models and their fused operations against plain arithmetic: gradients by finite differences, the fused
//! recurrence against one composed of plain operations, padding that changes nothing, decoding against teacher forcing.

use candle_core::{D, Device, Tensor, Var};
use iliad::nn::adam::Adam;
use iliad::nn::decoder::wrap;
use iliad::nn::init::uniform;
use iliad::nn::layers::Grad;
use iliad::nn::lstm::{Lengths, lstm};
use iliad::nn::params::Params;
use iliad::rng::stream;
use iliad::task::regex::model::describer::{DescriberSizes, RegexDescriber};
use iliad::task::regex::model::student::{Batch, RegexStudent, StudentSizes};
use rand::RngExt;

const STUDENT: StudentSizes =
    StudentSizes { characters: 9, request_words: 11, outputs: 8, hidden: 6, character_embedding: 5, word_embedding: 7 };

fn student(seed: u64, reference: bool) -> RegexStudent {
    RegexStudent::new(STUDENT, reference, &mut stream(seed, "numerics", 0), &Device::Cpu).unwrap()
}

fn describer(seed: u64, reference: bool) -> RegexDescriber {
    let sizes = DescriberSizes { characters: 9, words: 11, hidden: 6, character_embedding: 5, word_embedding: 7 };
    RegexDescriber::new(sizes, reference, &mut stream(seed, "numerics", 0), &Device::Cpu).unwrap()
}

/// Sequences of ids from 4 up, with START and END.
fn sequences(n: usize, vocabulary: u32, longest: usize, seed: u64) -> Vec<Vec<u32>> {
    let mut s = stream(seed, "sequences", u64::from(vocabulary));
    (0..n)
        .map(|_| {
            let length = s.random_range(1..=longest);
            wrap(&(0..length).map(|_| s.random_range(4..vocabulary)).collect::<Vec<_>>())
        })
        .collect()
}

fn batch(n: usize, seed: u64) -> Batch {
    Batch {
        words: sequences(n, 9, 6, seed),
        requests: sequences(n, 11, 8, seed + 1),
        outputs: sequences(n, 8, 5, seed + 2),
    }
}

fn pairs(n: usize, seed: u64) -> Vec<Vec<Vec<u32>>> {
    sequences(5 * n, 9, 7, seed).chunks(5).map(<[_]>::to_vec).collect()
}

/// Compares the gradient of `loss` with central differences at a few entries of every parameter.
fn check_gradients(params: &Params, loss: impl Fn() -> Tensor) {
    let grads = loss().backward().unwrap();
    let mut pick = stream(5, "entries", 0);
    for (name, var) in params.iter() {
        let grad = grads.get(var).unwrap_or_else(|| panic!("no gradient reaches {name}"));
        let grad = grad.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert!(grad.iter().any(|g| *g != 0.0), "the gradient of {name} is zero everywhere");
        let values = var.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        for _ in 0..6 {
            let i = pick.random_range(0..values.len());
            let at = |value: f32| {
                let mut moved = values.clone();
                moved[i] = value;
                var.set(&Tensor::from_vec(moved, var.dims(), &Device::Cpu).unwrap()).unwrap();
                f64::from(loss().to_scalar::<f32>().unwrap())
            };
            let step = 1e-2f32;
            // Fourth-order central difference: large steps keep float32's rounding small.
            let numeric = (8.0 * (at(values[i] + step) - at(values[i] - step))
                - (at(values[i] + 2.0 * step) - at(values[i] - 2.0 * step)))
                / (12.0 * f64::from(step));
            at(values[i]);
            let exact = f64::from(grad[i]);
            assert!((numeric - exact).abs() < 2e-3 * (1.0 + exact.abs()), "{name}[{i}]: {exact} against {numeric}");
        }
    }
}

#[test]
fn gradients_of_the_student_agree_with_finite_differences() {
    let model = student(1, false);
    let b = batch(4, 10);
    check_gradients(&model.params, || model.loss(&b, &[(3, 0.7), (1, 0.3)]).unwrap());
}

#[test]
fn gradients_of_the_describer_agree_with_finite_differences() {
    let model = describer(1, false);
    let (items, texts) = (pairs(4, 20), sequences(4, 11, 6, 21));
    check_gradients(&model.params, || model.loss(&items, &texts).unwrap());
}

/// The recurrence step by step from plain operations.
fn plain_lstm(gx: &Tensor, w: &Tensor, state: &Tensor, lengths: &[u32]) -> (Tensor, Tensor) {
    let (t, b, g) = gx.dims3().unwrap();
    let h_size = g / 4;
    let (mut h, mut c) = (state.get(0).unwrap(), state.get(1).unwrap());
    let mut all = Vec::new();
    for s in 0..t {
        let gates = (gx.get(s).unwrap() + h.matmul(&w.t().unwrap()).unwrap()).unwrap();
        let part = |i: usize| gates.narrow(1, i * h_size, h_size).unwrap();
        let sigmoid = |x: Tensor| candle_nn::ops::sigmoid(&x).unwrap();
        let (i, f, g, o) = (sigmoid(part(0)), sigmoid(part(1)), part(2).tanh().unwrap(), sigmoid(part(3)));
        let next_c = ((f * &c).unwrap() + (i * g).unwrap()).unwrap();
        let next_h = (o * next_c.tanh().unwrap()).unwrap();
        let live: Vec<f32> = lengths.iter().map(|l| if s < *l as usize { 1.0 } else { 0.0 }).collect();
        let live = Tensor::from_vec(live, (b, 1), gx.device()).unwrap();
        let mix = |new: &Tensor, old: &Tensor| {
            (new.broadcast_mul(&live).unwrap() + old.broadcast_mul(&(1.0 - &live).unwrap()).unwrap()).unwrap()
        };
        (h, c) = (mix(&next_h, &h), mix(&next_c, &c));
        all.push(h.clone());
    }
    (Tensor::stack(&all, 0).unwrap(), Tensor::stack(&[&h, &c], 0).unwrap())
}

#[test]
fn the_fused_recurrence_equals_the_plain_one_with_all_gradients() {
    for (t, b, h, lengths) in
        [(1, 1, 1, vec![1]), (5, 3, 4, vec![5, 1, 3]), (7, 40, 33, (0..40).map(|i| 1 + i % 7).collect())]
    {
        let mut s = stream(3, "fused", t as u64);
        let var = |shape: &[usize], s: &mut _| Var::from_tensor(&uniform(shape, 0.9, s).unwrap()).unwrap();
        let (gx, w, state) = (var(&[t, b, 4 * h], &mut s), var(&[4 * h, h], &mut s), var(&[2, b, h], &mut s));
        let (weigh_out, weigh_state) =
            (uniform(&[t, b, h], 1.0, &mut s).unwrap(), uniform(&[2, b, h], 1.0, &mut s).unwrap());
        let fused = lstm(&gx, &w, &state, &Lengths::new(lengths.clone(), &Device::Cpu).unwrap()).unwrap();
        let plain = plain_lstm(&gx, &w, &state, &lengths);
        let loss = |(out, last): &(Tensor, Tensor)| {
            ((out * &weigh_out).unwrap().sum_all().unwrap() + (last * &weigh_state).unwrap().sum_all().unwrap())
                .unwrap()
        };
        let (a, b) = (loss(&fused), loss(&plain));
        assert!((a.to_scalar::<f32>().unwrap() - b.to_scalar::<f32>().unwrap()).abs() < 1e-3);
        let (ga, gb) = (a.backward().unwrap(), b.backward().unwrap());
        for v in [&gx, &w, &state] {
            let d = (ga.get(v).unwrap() - gb.get(v).unwrap()).unwrap().abs().unwrap().max_all().unwrap();
            assert!(d.to_scalar::<f32>().unwrap() < 2e-5, "{d}");
        }
        let d = (&fused.0 - &plain.0).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(d < 1e-5, "{d}");
    }
}

fn row_logits(model: &RegexStudent, b: &Batch, row: usize) -> Vec<f32> {
    let (logits, _) = model.logits(b, Grad::Off).unwrap();
    let n = b.words.len();
    let steps = b.outputs[row].len() - 1;
    let all = logits.to_vec2::<f32>().unwrap();
    (0..steps).flat_map(|t| all[t * n + row].clone()).collect()
}

#[test]
fn company_in_a_batch_changes_nothing() {
    let (aware, reference) = (student(2, false), student(2, true));
    let b = batch(6, 30);
    let mut reference_differs = false;
    for row in 0..6 {
        let alone = Batch {
            words: vec![b.words[row].clone()],
            requests: vec![b.requests[row].clone()],
            outputs: vec![b.outputs[row].clone()],
        };
        let difference = |m: &RegexStudent| {
            let (x, y) = (row_logits(m, &b, row), row_logits(m, &alone, 0));
            x.iter().zip(&y).map(|(x, y)| (x - y).abs()).fold(0f32, f32::max)
        };
        assert!(difference(&aware) < 1e-5, "row {row}");
        reference_differs |= difference(&reference) > 1e-4;
    }
    assert!(reference_differs, "with the authors' padding company does matter, so this test can tell");
}

#[test]
fn company_changes_no_description_either() {
    let model = describer(4, false);
    let items = pairs(5, 40);
    let greedy = |items: &[Vec<Vec<u32>>]| {
        let all = model.propose(items, 0, 12, &mut stream(1, "propose", 0)).unwrap();
        all.into_iter().map(|mut c| c.remove(0)).collect::<Vec<_>>()
    };
    let together = greedy(&items);
    for (i, item) in items.iter().enumerate() {
        assert_eq!(greedy(std::slice::from_ref(item))[0], together[i], "item {i}");
    }
}

#[test]
fn a_row_reproduces_exactly_what_it_decodes_greedily() {
    let mut checked = 0;
    for seed in 0..40 {
        let model = student(seed, false);
        let mut b = batch(8, 50 + seed);
        let decoded = model.act(&b.words, &b.requests, 12, false, &mut stream(1, "act", 0)).unwrap();
        // Half of the rows get what was decoded, the others keep a random output.
        for (row, ids) in decoded.iter().enumerate().filter(|(i, _)| i % 2 == 0) {
            if let Some(ids) = ids {
                b.outputs[row] = wrap(ids);
                checked += 1;
            }
        }
        let same = model.reproduces(&b).unwrap();
        for row in 0..8 {
            let is = decoded[row].as_ref().is_some_and(|ids| wrap(ids) == b.outputs[row]);
            assert_eq!(same[row], is, "seed {seed} row {row}");
        }
    }
    assert!(checked > 20, "too few rows came to an end: {checked}");
}

#[test]
fn samples_follow_the_policy() {
    // The first symbol of many samples against the softmax of the first logits.
    let model = student(7, false);
    let b = batch(1, 70);
    let n = 4000;
    let many = |v: &Vec<Vec<u32>>| vec![v[0].clone(); n];
    let drawn = model.act(&many(&b.words), &many(&b.requests), 30, true, &mut stream(9, "act", 0)).unwrap();
    let (logits, _) = model.logits(&b, Grad::Off).unwrap();
    let p = candle_nn::ops::softmax(&logits.get(0).unwrap(), D::Minus1).unwrap().to_vec1::<f32>().unwrap();
    let ended: Vec<_> = drawn.into_iter().flatten().collect();
    assert!(ended.len() > n * 9 / 10);
    for symbol in 4..8u32 {
        let share = ended.iter().filter(|s| s.first() == Some(&symbol)).count() as f32 / ended.len() as f32;
        assert!((share - p[symbol as usize]).abs() < 0.03, "symbol {symbol}: {share} against {}", p[symbol as usize]);
    }
    let again = model.act(&many(&b.words), &many(&b.requests), 30, true, &mut stream(9, "act", 0)).unwrap();
    assert_eq!(again.into_iter().flatten().collect::<Vec<_>>(), ended, "the same stream draws the same");
}

#[test]
fn gradients_of_imitation_and_reward_agree_with_finite_differences() {
    let model = student(11, false);
    let b = batch(4, 80);
    // Roll-outs shorter and longer than what is shown, and one that holds every kind of symbol.
    let rolled = vec![vec![2, 5, 3], vec![2, 4, 6, 7, 5, 4, 4, 3], vec![2, 3], vec![2, 1, 0, 7, 2]];
    check_gradients(&model.params, || model.loss_fed(&b, &model.imitation(&b, &rolled)).unwrap());

    let actions = vec![vec![5, 3], vec![4, 6, 7, 5, 4], vec![3], vec![0, 1, 2, 7, 3]];
    let advantages = [0.7, -0.4, 0.1, -1.3];
    check_gradients(&model.params, || model.loss_fed(&b, &model.reward(&actions, &advantages, 0.1)).unwrap());
}

#[test]
fn imitation_of_ones_own_roll_out_is_likelihood_and_so_is_a_reward_of_one() {
    let model = student(12, false);
    let b = batch(5, 90);
    let value = |t: Tensor| t.to_scalar::<f32>().unwrap();
    let likelihood = value(model.loss(&b, &[(5, 1.0)]).unwrap());
    let imitation = value(model.loss_fed(&b, &model.imitation(&b, &b.outputs)).unwrap());
    let actions: Vec<Vec<u32>> = b.outputs.iter().map(|o| o[1..].to_vec()).collect();
    let reward = value(model.loss_fed(&b, &model.reward(&actions, &[1.0; 5], 0.0)).unwrap());
    assert!((likelihood - imitation).abs() < 1e-5, "{likelihood} {imitation}");
    assert!((likelihood - reward).abs() < 1e-5, "{likelihood} {reward}");
    // With no advantage the loss is the entropy alone: at most the logarithm of eight symbols a step.
    let entropy = -value(model.loss_fed(&b, &model.reward(&actions, &[0.0; 5], 1.0)).unwrap());
    let steps = actions.iter().map(Vec::len).max().unwrap() as f32;
    assert!(entropy > 0.0 && entropy <= steps * 8f32.ln(), "{entropy}");
}

#[test]
fn a_roll_out_that_does_not_end_has_as_many_symbols_as_the_horizon() {
    let (mut ended, mut cut) = (0, 0);
    for seed in 0..10 {
        let model = student(seed, false);
        let b = batch(20, 100 + seed);
        let stream = |n| stream(n, "roll", seed);
        let rolled = model.roll_out(&b.words, &b.requests, 6, true, &mut stream(1)).unwrap();
        let decoded = model.act(&b.words, &b.requests, 6, true, &mut stream(1)).unwrap();
        for (r, d) in rolled.into_iter().zip(decoded) {
            (ended, cut) = (ended + usize::from(r.ended), cut + usize::from(!r.ended));
            assert_eq!(r.symbols.len() == 6, !r.ended);
            assert_eq!(r.ended.then_some(r.symbols), d);
        }
    }
    assert!(ended > 10 && cut > 10, "{ended} ended, {cut} did not");
}

#[test]
fn rewarded_symbols_become_likely() {
    // A world of one step: reward 1 for one symbol, 0 for the others.
    let model = student(13, false);
    let b = batch(32, 110);
    let mut adam = Adam::new(&model.params, 0.02).unwrap();
    let mut share = Vec::new();
    let mut seen = (0f32, 0f32);
    for step in 0..80 {
        let rolled = model.roll_out(&b.words, &b.requests, 1, true, &mut stream(1, "reward", step)).unwrap();
        let actions: Vec<Vec<u32>> = rolled.into_iter().map(|r| if r.ended { vec![3] } else { r.symbols }).collect();
        let rewards: Vec<f32> = actions.iter().map(|a| f32::from(u8::from(a[0] == 5))).collect();
        seen = (seen.0 + rewards.iter().sum::<f32>(), seen.1 + 32.0);
        let advantages: Vec<f32> = rewards.iter().map(|r| r - seen.0 / seen.1).collect();
        share.push(rewards.iter().sum::<f32>() / 32.0);
        let loss = model.loss_fed(&b, &model.reward(&actions, &advantages, 0.01)).unwrap();
        adam.step(&loss.backward().unwrap()).unwrap();
    }
    let mean = |s: &[f32]| s.iter().sum::<f32>() / s.len() as f32;
    assert!(mean(&share[..3]) < 0.5 && mean(&share[70..]) > 0.9, "{share:?}");
}
