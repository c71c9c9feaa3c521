//! The CPU's nodes against plain operations.

use super::*;
use crate::nn::init::uniform;
use crate::rng::stream;
use candle_core::{Device, Var};

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
    // What lies beyond the second row's length has no part.
    let d = a.get(&entries).unwrap().to_vec3::<f32>().unwrap();
    assert!(d[1][2..].iter().flatten().all(|x| *x == 0.0) && d[1][1].iter().any(|x| *x != 0.0));
}

#[test]
fn a_growing_memory_gives_what_plain_operations_give_and_so_do_its_gradients() {
    let s = &mut stream(2, "growing", 0);
    let (first, project) = (var(&[3, SIZE], s), var(&[SIZE, 2 * SIZE], s));
    let run = |plain: bool| {
        let mut memory = Growing::new(HEADS, 4);
        let mut entries = Vec::new();
        let mut x = first.as_tensor().clone();
        for t in 0..4 {
            let entry = x.matmul(&project).unwrap();
            let q = (&x * (1.0 + f64::from(t))).unwrap();
            x = if plain {
                entries.push(entry);
                attend_plainly(&q, &Tensor::stack(&entries, 1).unwrap(), None, HEADS).unwrap()
            } else {
                memory.attend(&q, &entry).unwrap()
            };
        }
        assert!(plain || memory.attend(&x, &x).is_err(), "it is full");
        x
    };
    let (node, plain) = (run(false), run(true));
    assert!(furthest(&node, &plain) < 1e-6);
    // Twice: a second pass over the same graph starts anew.
    for _ in 0..2 {
        let loss = |t: &Tensor| t.sqr().unwrap().sum_all().unwrap();
        let (a, b) = (loss(&node).backward().unwrap(), loss(&plain).backward().unwrap());
        for v in [&first, &project] {
            assert!(furthest(a.get(v).unwrap(), b.get(v).unwrap()) < 1e-5);
        }
    }
}
