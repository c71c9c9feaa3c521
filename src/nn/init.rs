//! Initial weights, drawn as PyTorch draws them (Linear ±1/√in, LSTM ±1/√H, embeddings N(0, 1) with a zero padding
//! row), from own streams: Candle's CPU generator cannot be seeded.

use crate::rng::Stream;
use candle_core::{Device, Result, Tensor};
use rand::RngExt;

/// Uniform in ±`bound`.
pub fn uniform(shape: &[usize], bound: f32, stream: &mut Stream) -> Result<Tensor> {
    let n: usize = shape.iter().product();
    let values: Vec<f32> = (0..n).map(|_| (stream.random::<f32>() * 2.0 - 1.0) * bound).collect();
    Tensor::from_vec(values, shape, &Device::Cpu)
}

/// Standard normal (Box–Muller), with row `pad` of a `[rows, size]` table set to zero.
pub fn embedding(rows: usize, size: usize, pad: usize, stream: &mut Stream) -> Result<Tensor> {
    let mut values = Vec::with_capacity(rows * size + 1);
    while values.len() < rows * size {
        // 1 − u lies in (0, 1], so the logarithm is finite.
        let radius = (-2.0 * (1.0 - stream.random::<f64>()).ln()).sqrt();
        let angle = std::f64::consts::TAU * stream.random::<f64>();
        values.push((radius * angle.cos()) as f32);
        values.push((radius * angle.sin()) as f32);
    }
    values.truncate(rows * size);
    values[pad * size..(pad + 1) * size].fill(0.0);
    Tensor::from_vec(values, (rows, size), &Device::Cpu)
}

#[cfg(test)]
mod tests {
    use crate::rng::stream;

    #[test]
    fn embeddings_are_standard_normal_with_a_zero_padding_row() {
        let t = super::embedding(400, 50, 3, &mut stream(1, "init", 0)).unwrap();
        let rows = t.to_vec2::<f32>().unwrap();
        assert!(rows[3].iter().all(|x| *x == 0.0));
        let all: Vec<f32> = rows.iter().enumerate().filter(|(i, _)| *i != 3).flat_map(|(_, r)| r.clone()).collect();
        let mean = all.iter().sum::<f32>() / all.len() as f32;
        let var = all.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / all.len() as f32;
        assert!(mean.abs() < 0.03 && (var - 1.0).abs() < 0.05, "{mean} {var}");
    }

    #[test]
    fn uniform_fills_its_range() {
        let v = super::uniform(&[1000], 0.25, &mut stream(1, "init", 0)).unwrap().to_vec1::<f32>().unwrap();
        let (low, high) = v.iter().fold((0f32, 0f32), |(l, h), x| (l.min(*x), h.max(*x)));
        assert!(low >= -0.25 && high <= 0.25 && low < -0.24 && high > 0.24);
    }
}
