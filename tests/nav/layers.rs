//! The layers that the NAV models brought with them, against plain operations and finite differences.

use candle_core::{Device, Tensor, Var};
use iliad::nn::init::uniform;
use iliad::nn::layers::{Grad, Linear};
use iliad::nn::norm::LayerNorm;
use iliad::nn::params::Params;
use iliad::nn::steps::{Sequence, StepLinear};
use iliad::rng::{Stream, stream};

fn var(shape: &[usize], s: &mut Stream) -> Var {
    Var::from_tensor(&uniform(shape, 1.0, s).unwrap()).unwrap()
}

fn furthest(a: &Tensor, b: &Tensor) -> f32 {
    (a - b).unwrap().abs().unwrap().max_all().unwrap().to_scalar().unwrap()
}

fn weighed(t: &Tensor) -> Tensor {
    let weights = uniform(t.dims(), 1.0, &mut stream(9, "weigh", 0)).unwrap();
    (t * weights).unwrap().sum_all().unwrap()
}

#[test]
fn layer_norm_by_hand() {
    let mut p = Params::new(&Device::Cpu);
    LayerNorm::init(&mut p, "n", 4).unwrap();
    p.get("n.weight").unwrap().set(&Tensor::new(&[1f32, 2.0, 1.0, 1.0], &Device::Cpu).unwrap()).unwrap();
    p.get("n.bias").unwrap().set(&Tensor::new(&[0f32, 0.0, 10.0, 0.0], &Device::Cpu).unwrap()).unwrap();
    let x = Tensor::new(&[[1f32, 3.0, 5.0, 7.0], [2.0, 2.0, 2.0, 2.0]], &Device::Cpu).unwrap();
    let y = LayerNorm::new(&p, "n", Grad::Off).unwrap().forward(&x).unwrap().to_vec2::<f32>().unwrap();
    // Mean 4, variance (9 + 1 + 1 + 9) / 4 = 5. A constant row is all mean.
    let s = 5f32.sqrt();
    for (found, expected) in y[0].iter().zip([-3.0 / s, -2.0 / s, 1.0 / s + 10.0, 3.0 / s]) {
        assert!((found - expected).abs() < 1e-5, "{y:?}");
    }
    assert_eq!(y[1], [0.0, 0.0, 10.0, 0.0]);
}

#[test]
fn layer_norm_equals_plain_operations_with_all_gradients() {
    let mut p = Params::new(&Device::Cpu);
    LayerNorm::init(&mut p, "n", 7).unwrap();
    let s = &mut stream(1, "norm", 0);
    for name in ["n.weight", "n.bias"] {
        p.get(name).unwrap().set(&uniform(&[7], 1.0, s).unwrap()).unwrap();
    }
    let x = var(&[3, 5, 7], s);
    let norm = LayerNorm::new(&p, "n", Grad::On).unwrap();
    let (a, b) = (norm.forward(&x).unwrap(), norm.plain(&x).unwrap());
    assert!(furthest(&a, &b) < 1e-5);
    let (ga, gb) = (weighed(&a).backward().unwrap(), weighed(&b).backward().unwrap());
    for v in [&x, p.get("n.weight").unwrap(), p.get("n.bias").unwrap()] {
        assert!(furthest(ga.get(v).unwrap(), gb.get(v).unwrap()) < 2e-5);
    }
}

/// A chain x ← tanh(W·x + b) + given_t, whose weights and inputs are those of the nodes or of plain operations.
fn chain(x: &Tensor, weight: &Tensor, bias: &Tensor, given: &Tensor, own: bool) -> Vec<Tensor> {
    let layer = Linear::of(weight.clone(), bias.clone());
    let (step, mut sequence) = (StepLinear::new(layer.clone()), Sequence::new(given).unwrap());
    let (mut x, mut all) = (x.clone(), Vec::<Tensor>::new());
    for t in 0..given.dim(0).unwrap() {
        let y = if own { step.forward(&x) } else { layer.forward(&x) }.unwrap();
        let given = if own { sequence.take() } else { given.get(t) }.unwrap();
        x = (y.tanh().unwrap() + given).unwrap();
        all.push(x.clone());
    }
    all
}

#[test]
fn a_chain_of_steps_has_the_gradients_of_plain_operations() {
    let s = &mut stream(2, "steps", 0);
    let (x, weight, bias, given) = (var(&[3, 4], s), var(&[4, 4], s), var(&[4], s), var(&[5, 3, 4], s));
    let (own, plain) = (chain(&x, &weight, &bias, &given, true), chain(&x, &weight, &bias, &given, false));
    // A loss over all steps, one that stops before the end, and the first again: nothing is left over from a pass.
    for to in [5, 3, 5] {
        let loss = |all: &[Tensor]| weighed(&Tensor::stack(&all[..to], 0).unwrap());
        let (a, b) = (loss(&own), loss(&plain));
        assert!(furthest(&a, &b) < 1e-5);
        let (a, b) = (a.backward().unwrap(), b.backward().unwrap());
        for v in [&x, &weight, &bias, &given] {
            let d = furthest(a.get(v).unwrap(), b.get(v).unwrap());
            assert!(d < 1e-5, "{to} steps: {d}");
        }
    }
}

#[test]
fn a_relu_behind_a_step_is_a_relu() {
    let s = &mut stream(4, "steps", 0);
    let (x, weight, bias) = (var(&[3, 4], s), var(&[20, 4], s), var(&[20], s));
    let layer = Linear::of(weight.as_tensor().clone(), bias.as_tensor().clone());
    let step = StepLinear::with_relu(layer.clone());
    let run = |own: bool| {
        let y = |x: &Tensor| if own { step.forward(x) } else { layer.forward(x).unwrap().relu() }.unwrap();
        let first = y(&x);
        (weighed(&first) + weighed(&y(&first.narrow(1, 3, 4).unwrap()))).unwrap()
    };
    let (a, b) = (run(true), run(false));
    assert!(furthest(&a, &b) < 1e-5);
    let (a, b) = (a.backward().unwrap(), b.backward().unwrap());
    for v in [&x, &weight, &bias] {
        assert!(furthest(a.get(v).unwrap(), b.get(v).unwrap()) < 1e-5);
    }
}

#[test]
fn steps_need_not_be_a_chain() {
    // Whatever order a backward pass would like to take: steps that know nothing of each other, in both orders of
    // summing, and one of which the loss sees nothing.
    let s = &mut stream(3, "steps", 0);
    let (weight, bias, given) = (var(&[4, 4], s), var(&[4], s), var(&[3, 2, 4], s));
    let layer = Linear::of(weight.as_tensor().clone(), bias.as_tensor().clone());
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 0], [2, 2, 2]] {
        let (step, mut sequence) = (StepLinear::new(layer.clone()), Sequence::new(&given).unwrap());
        let own: Vec<_> = (0..3).map(|_| step.forward(&sequence.take().unwrap()).unwrap()).collect();
        let plain: Vec<_> = (0..3).map(|t| layer.forward(&given.get(t).unwrap()).unwrap()).collect();
        let loss = |all: &[Tensor]| {
            let terms = order.map(|t| weighed(&all[t].sqr().unwrap()));
            ((&terms[0] + &terms[1]).unwrap() + &terms[2]).unwrap().backward().unwrap()
        };
        let (a, b) = (loss(&own), loss(&plain));
        for v in [&weight, &bias, &given] {
            assert!(furthest(a.get(v).unwrap(), b.get(v).unwrap()) < 1e-5, "{order:?}");
        }
    }
}
