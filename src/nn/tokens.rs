//! Batches of token sequences on their way to the device: padded, time-major, with lengths.

use crate::nn::lstm::Lengths;
use candle_core::{DType, Device, Result, Tensor, bail};

/// Index of the padding symbol in every vocabulary.
pub const PAD: u32 = 0;
/// Index of the unknown symbol.
pub const UNKNOWN: u32 = 1;
/// Index of the start symbol `<`.
pub const START: u32 = 2;
/// Index of the end symbol `>`.
pub const END: u32 = 3;

/// A batch of sequences as the models read them.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// `[T · B]` u32, time-major.
    pub ids: Tensor,
    /// The same ids on the host.
    pub host: Vec<u32>,
    /// Steps T (the longest sequence).
    pub steps: usize,
    /// Rows B.
    pub rows: usize,
    /// Steps of each row that the encoders run over.
    pub lengths: Lengths,
    /// `[B, 1, T]`: 0 at real symbols, −1e9 at padding; added to attention scores.
    pub bias: Tensor,
    /// Rows of one on `[T · B, V]` where the device prefers products to look-ups (see [`crate::nn::layers::lookup`]).
    pub one_hot: Option<Tensor>,
}

impl Tokens {
    /// Puts sequences on a device. `vocabulary` bounds the ids. With `reference_padding` the encoders run over the
    /// padding as well, as the authors' program does.
    pub fn new<S: AsRef<[u32]>>(
        sequences: &[S],
        vocabulary: usize,
        reference_padding: bool,
        device: &Device,
    ) -> Result<Self> {
        let rows = sequences.len();
        let steps = sequences.iter().map(|s| s.as_ref().len()).max().unwrap_or(0);
        if rows == 0 || steps == 0 {
            bail!("an empty batch of sequences")
        }
        let mut host = vec![PAD; steps * rows];
        let mut bias = vec![0f32; rows * steps];
        let mut lengths = Vec::with_capacity(rows);
        for (b, sequence) in sequences.iter().enumerate() {
            let sequence = sequence.as_ref();
            for (t, &id) in sequence.iter().enumerate() {
                if id as usize >= vocabulary {
                    bail!("token {id} in a vocabulary of {vocabulary}")
                }
                host[t * rows + b] = id;
            }
            // Padding inside the given sequence (fixtures carry it) counts as padding too.
            let real = sequence.iter().rposition(|&id| id != PAD).map_or(0, |p| p + 1);
            for (t, x) in bias[b * steps..(b + 1) * steps].iter_mut().enumerate() {
                if t >= real {
                    *x = -1e9;
                }
            }
            lengths.push(if reference_padding { steps } else { real.max(1) } as u32);
        }
        let ids = Tensor::new(host.as_slice(), device)?;
        let one_hot = if device.is_cpu() { None } else { Some(one_hot(&host, vocabulary, device)?) };
        Ok(Self {
            ids,
            host,
            steps,
            rows,
            lengths: Lengths::new(lengths, device)?,
            bias: Tensor::from_vec(bias, (rows, 1, steps), device)?,
            one_hot,
        })
    }

    /// Inputs and targets of teacher forcing: all symbols but the last, and all but the first.
    pub fn shifted<S: AsRef<[u32]>>(sequences: &[S], vocabulary: usize, device: &Device) -> Result<(Tokens, Vec<u32>)> {
        let steps = sequences.iter().map(|s| s.as_ref().len()).max().unwrap_or(0).saturating_sub(1);
        let rows = sequences.len();
        let inputs: Vec<&[u32]> = sequences.iter().map(|s| &s.as_ref()[..s.as_ref().len() - 1]).collect();
        let mut targets = vec![PAD; steps * rows];
        for (b, s) in sequences.iter().enumerate() {
            for (t, &id) in s.as_ref().iter().skip(1).enumerate() {
                targets[t * rows + b] = id;
            }
        }
        // The decoder may run over its padding: nothing reads what it gives there.
        Ok((Tokens::new(&inputs, vocabulary, true, device)?, targets))
    }
}

/// `[n, vocabulary]` rows with a single one, made on the device: only the ids travel.
pub fn one_hot(ids: &[u32], vocabulary: usize, device: &Device) -> Result<Tensor> {
    let ids = Tensor::new(ids, device)?.unsqueeze(1)?;
    let all = Tensor::arange(0u32, vocabulary as u32, device)?.unsqueeze(0)?;
    ids.broadcast_eq(&all)?.to_dtype(DType::F32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_at_the_end_and_masked() {
        let t = Tokens::new(&[vec![2, 5, 3], vec![2, 3]], 6, false, &Device::Cpu).unwrap();
        assert_eq!(t.host, [2, 2, 5, 3, 3, 0]);
        assert_eq!(*t.lengths.host, [3, 2]);
        assert_eq!(t.bias.flatten_all().unwrap().to_vec1::<f32>().unwrap(), [0., 0., 0., 0., 0., -1e9]);
    }

    #[test]
    fn ids_beyond_the_vocabulary_and_empty_batches_are_refused() {
        assert!(Tokens::new(&[vec![6]], 6, false, &Device::Cpu).is_err());
        assert!(Tokens::new::<Vec<u32>>(&[], 6, false, &Device::Cpu).is_err());
    }
}
