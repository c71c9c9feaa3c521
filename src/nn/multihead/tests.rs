//! The CPU's nodes against plain operations.

use super::*;
use crate::nn::init::uniform;
use crate::rng::stream;
use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Var};

const HEADS: usize = 2;
const SIZE: usize = 6;

fn var(shape: &[usize], s: &mut Stream) -> Var {
    Var::from_tensor(&uniform(shape, 1.0, s).unwrap()).unwrap()
}

fn furthest(a: &Tensor, b: &Tensor) -> f32 {
    (a - b).unwrap().abs().unwrap().max_all().unwrap().to_scalar().unwrap()
}

/// Three steps in a chain over a source of two rows, with two copies; the same from plain operations.
#[test]
fn a_source_gives_what_plain_operations_give_and_so_do_its_gradients() {
    let s = &mut stream(1, "source", 0);
    let (entries, first) = (var(&[2, 4, 2 * SIZE], s), var(&[4, SIZE], s));
    let lengths = [4, 2];
    let bias = mask(&lengths, 4, &Device::Cpu).unwrap();
    let run = |plain: bool| {
        let mut source = Source::new(entries.as_tensor().clone(), &lengths, HEADS).unwrap();
        let mut q = first.as_tensor().clone();
        let mut seen = Vec::new();
        for _ in 0..3 {
            q = if plain {
                attend_plainly(&q, &entries, Some(&bias), HEADS).unwrap()
            } else {
                source.attend(&q).unwrap()
            };
            q = (q * 1.7).unwrap();
            seen.push(q.clone());
        }
        Tensor::stack(&seen, 0).unwrap()
    };
    let (node, plain) = (run(false), run(true));
    assert!(furthest(&node, &plain) < 1e-6);
    let (a, b) = (node.sqr().unwrap().backward().unwrap(), plain.sqr().unwrap().sum_all().unwrap().backward().unwrap());
    for v in [&entries, &first] {
        assert!(furthest(a.get(v).unwrap(), b.get(v).unwrap()) < 1e-5);
    }
    // Entries beyond the second row's length have no part.
    let d = a.get(&entries).unwrap().to_vec3::<f32>().unwrap();
    assert!(d[1][2..].iter().flatten().all(|x| *x == 0.0) && d[1][1].iter().any(|x| *x != 0.0));
}

/// Gradients of a chain of `steps` steps over its own growing memory, from first queries and a projection to entries.
fn grown(first: &Tensor, project: &Tensor, steps: u8, plain: bool) -> GradStore {
    let mut memory = Growing::new(HEADS, steps.into());
    let (mut entries, mut x) = (Vec::new(), first.clone());
    for t in 0..steps {
        let entry = x.matmul(project).unwrap();
        let q = (&x * (1.0 + f64::from(t))).unwrap();
        x = if plain {
            entries.push(entry);
            attend_plainly(&q, &Tensor::stack(&entries, 1).unwrap(), None, HEADS).unwrap()
        } else {
            memory.attend(&q, &entry).unwrap()
        };
    }
    assert!(plain || memory.attend(&x, &x).is_err(), "it is full");
    let loss = x.sqr().unwrap().sum_all().unwrap();
    // A second pass over the same graph starts anew.
    loss.backward().unwrap();
    loss.backward().unwrap()
}

#[test]
fn gradients_of_a_growing_memory_are_those_of_plain_operations_in_double_precision() {
    for seed in 0..20 {
        let s = &mut stream(seed, "growing", 0);
        let (first, project) = (uniform(&[3, SIZE], 1.0, s).unwrap(), uniform(&[SIZE, 2 * SIZE], 0.3, s).unwrap());
        let single = [&first, &project].map(|t| Var::from_tensor(t).unwrap());
        let double = single.each_ref().map(|v| Var::from_tensor(&v.to_dtype(DType::F64).unwrap()).unwrap());
        for steps in 1..=4 {
            let node = grown(&single[0], &single[1], steps, false);
            let truth = grown(&double[0], &double[1], steps, true);
            for (v, w) in single.iter().zip(&double) {
                let (found, truth) = (node.get(v).unwrap().to_dtype(DType::F64).unwrap(), truth.get(w).unwrap());
                let most = |t: &Tensor| t.abs().unwrap().max_all().unwrap().to_scalar::<f64>().unwrap();
                let error = most(&(&found - truth).unwrap()) / most(truth);
                assert!(error < 1e-6, "seed {seed}, {steps} steps: {error:e}");
            }
        }
    }
}

#[test]
fn weights_near_one_keep_the_digits_of_their_gradient() {
    // One weight takes almost all, and all gradients share a large part, which must cancel.
    for seed in 0..20 {
        let s = &mut stream(seed, "saturated", 0);
        let draw = |bound, s: &mut Stream| uniform(&[9], bound, s).unwrap().to_vec1::<f32>().unwrap();
        let mut p = draw(2.0, s);
        p[4] = 12.0;
        softmax(&mut p);
        let mut d: Vec<f32> = draw(1.0, s).iter().map(|x| x + 500.0).collect();
        let total: f64 = p.iter().map(|p| f64::from(*p)).sum();
        let exact: Vec<f64> = (0..9)
            .map(|i| {
                // p_i · Σ_j p_j (d_i − d_j) / Σ p: the common part is gone before anything is rounded.
                let difference = |j: usize| f64::from(p[j]) * (f64::from(d[i]) - f64::from(d[j]));
                f64::from(p[i]) * (0..9).map(difference).sum::<f64>() / total
            })
            .collect();
        softmax_backward(&p, &mut d);
        for (found, exact) in d.iter().zip(&exact) {
            assert!((f64::from(*found) - exact).abs() <= 1e-6 * exact.abs() + 1e-12, "{seed}: {found} {exact}");
        }
    }
}
