//! Picking the next symbol of every row from its logits, on the device, with randomness drawn beforehand.

use crate::nn::cpu::cpu_slice;
use crate::rng::Stream;
use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};
use rand::RngExt;

/// The value of `u` that asks for the most likely symbol instead of a sample.
pub const GREEDY: f32 = -1.0;

/// Next symbols `[N]` (u32) from logits `[N, V]`: by inversion of the cumulative softmax at `u` in 0..1, or the first
/// largest logit where `u` is [`GREEDY`].
pub fn pick(logits: &Tensor, u: &Tensor) -> Result<Tensor> {
    logits.contiguous()?.apply_op2_no_bwd(&u.contiguous()?, &Pick)
}

/// `n` numbers to choose by, of which those that `greedy` names ask for the likeliest. One is drawn for each of them, so that
/// what a row draws depends on its place alone: not on who is greedy, when others end, or which device chooses.
pub fn draws(n: usize, greedy: impl Fn(usize) -> bool, stream: &mut Stream) -> Vec<f32> {
    (0..n)
        .map(|i| {
            let u = stream.random::<f32>();
            if greedy(i) { GREEDY } else { u }
        })
        .collect()
}

struct Pick;

fn pick_row(logits: &[f32], u: f32) -> u32 {
    let mut best = 0;
    for (i, x) in logits.iter().enumerate() {
        if *x > logits[best] {
            best = i;
        }
    }
    if u < 0.0 {
        return best as u32;
    }
    let top = logits[best];
    let total: f32 = logits.iter().map(|x| (x - top).exp()).sum();
    let mut left = u * total;
    for (i, x) in logits.iter().enumerate() {
        left -= (x - top).exp();
        if left < 0.0 {
            return i as u32;
        }
    }
    // Rounding may leave a sliver beyond the last symbol.
    best as u32
}

impl CustomOp2 for Pick {
    fn name(&self) -> &'static str {
        "pick"
    }

    fn cpu_fwd(&self, logits: &CpuStorage, ll: &Layout, u: &CpuStorage, lu: &Layout) -> Result<(CpuStorage, Shape)> {
        let (n, v) = ll.shape().dims2()?;
        let (logits, u) = (cpu_slice(logits, ll)?, cpu_slice(u, lu)?);
        if u.len() != n {
            bail!("pick: {} numbers for {n} rows", u.len())
        }
        let ids: Vec<u32> = logits.chunks(v).zip(u).map(|(row, u)| pick_row(row, *u)).collect();
        Ok((CpuStorage::U32(ids), n.into()))
    }

    fn cuda_fwd(
        &self,
        logits: &candle_core::CudaStorage,
        ll: &Layout,
        u: &candle_core::CudaStorage,
        lu: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        let (n, v) = ll.shape().dims2()?;
        Ok((crate::nn::cuda::decode::pick(logits, ll, u, lu, n, v)?, n.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;

    #[test]
    fn greedy_takes_the_first_largest_and_samples_follow_the_softmax() {
        let logits = Tensor::new(&[[0f32, 2.0, 2.0, -1.0]], &Device::Cpu).unwrap();
        let at =
            |u: f32| pick(&logits, &Tensor::new(&[u], &Device::Cpu).unwrap()).unwrap().to_vec1::<u32>().unwrap()[0];
        assert_eq!(at(GREEDY), 1);
        let mut counts = [0usize; 4];
        for i in 0..10_000 {
            counts[at(i as f32 / 10_000.0) as usize] += 1;
        }
        let z: f64 = [0f64, 2., 2., -1.].iter().map(|x| x.exp()).sum();
        for (c, x) in counts.iter().zip([0f64, 2., 2., -1.]) {
            assert!((*c as f64 / 1e4 - x.exp() / z).abs() < 2e-4);
        }
        assert!(at(0.999_999_9) < 4);
    }
}
