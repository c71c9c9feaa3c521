//! The loss of every model: for each decoding step the mean cross-entropy over that step's real targets, summed over
//! steps.

use crate::nn::tokens::PAD;
use candle_core::{D, Result, Tensor};

/// Weight of each target of a time-major batch `[T, B]` so that the weighted sum of negative log-likelihoods is the
/// loss: `share / (real targets of the step)` within each group of rows, 0 at padding. `groups` are (rows, share): the
/// losses of several batches, each with its own means, in one pass.
pub fn target_weights(targets: &[u32], rows: usize, groups: &[(usize, f32)]) -> Vec<f32> {
    let mut weights = vec![0f32; targets.len()];
    for (step, ids) in targets.chunks(rows).enumerate() {
        let mut from = 0;
        for &(size, share) in groups {
            let group = &ids[from..from + size];
            let real = group.iter().filter(|id| **id != PAD).count();
            for (i, id) in group.iter().enumerate() {
                if *id != PAD {
                    weights[step * rows + from + i] = share / real as f32;
                }
            }
            from += size;
        }
    }
    weights
}

/// Σ weight · −log p(target) for logits `[T · B, V]`; a scalar.
pub fn weighted_nll(logits: &Tensor, targets: &[u32], weights: &[f32]) -> Result<Tensor> {
    let device = logits.device();
    let (index, weights) = (Tensor::new(targets, device)?, Tensor::new(weights, device)?);
    #[cfg(feature = "cuda")]
    if device.is_cuda() {
        return crate::nn::cuda::loss::weighted_nll(logits, &index, &weights);
    }
    let log_p = candle_nn::ops::log_softmax(logits, D::Minus1)?;
    (log_p.gather(&index.unsqueeze(1)?, 1)?.squeeze(1)? * weights)?.sum_all()?.neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;

    #[test]
    fn each_step_is_a_mean_over_its_real_targets_within_its_group() {
        let w = target_weights(&[5, 5, 5, 5, 0, 0], 3, &[(2, 1.0), (1, 0.5)]);
        assert_eq!(w, [0.5, 0.5, 0.5, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn uniform_logits_cost_the_logarithm_of_the_vocabulary() {
        let logits = Tensor::zeros((4, 7), candle_core::DType::F32, &Device::Cpu).unwrap();
        let w = target_weights(&[1, 2, 3, 0], 2, &[(2, 1.0)]);
        let loss = weighted_nll(&logits, &[1, 2, 3, 0], &w).unwrap().to_scalar::<f32>().unwrap();
        assert!((loss - 2.0 * 7f32.ln()).abs() < 1e-6);
    }
}
