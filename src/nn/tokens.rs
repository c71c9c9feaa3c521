//! Batches of token sequences on their way to the device: padded, time-major, with lengths.

use crate::nn::lstm::Lengths;
use candle_core::{Device, Result, Tensor, bail};

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
    /// `[T · B · width]` u32, time-major.
    pub ids: Tensor,
    /// Steps T (the longest sequence).
    pub steps: usize,
    /// Rows B.
    pub rows: usize,
    /// Symbols of a position, which are averaged (describer: one of each pair; else 1).
    pub width: usize,
    /// Whether padding counts in that average.
    pub count_padding: bool,
    /// Steps of each row that the encoders run over.
    pub lengths: Lengths,
    /// Real steps of each row, which attention sees.
    pub real: Lengths,
    /// `[B, 1, T]`: 0 at real symbols, −1e9 at padding; added to attention scores on the CPU.
    pub bias: Option<Tensor>,
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
        let mut lengths = Vec::with_capacity(rows);
        let mut real = Vec::with_capacity(rows);
        for (b, sequence) in sequences.iter().enumerate() {
            let sequence = sequence.as_ref();
            check(sequence, vocabulary)?;
            for (t, &id) in sequence.iter().enumerate() {
                host[t * rows + b] = id;
            }
            let n = real_steps(sequence) as u32;
            real.push(n);
            lengths.push(if reference_padding { steps as u32 } else { n.max(1) });
        }
        let bias = if device.is_cpu() { Some(mask(&real, steps, device)?) } else { None };
        Ok(Self {
            ids: Tensor::from_vec(host, steps * rows, device)?,
            steps,
            rows,
            width: 1,
            count_padding: true,
            lengths: Lengths::new(lengths, device)?,
            real: Lengths::new(real, device)?,
            bias,
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

/// Refuses ids beyond the vocabulary.
pub(crate) fn check(sequence: &[u32], vocabulary: usize) -> Result<()> {
    match sequence.iter().find(|&&id| id as usize >= vocabulary) {
        Some(id) => bail!("token {id} in a vocabulary of {vocabulary}"),
        None => Ok(()),
    }
}

/// Steps up to the last real symbol (fixtures carry padding inside the given sequence).
pub(crate) fn real_steps(sequence: &[u32]) -> usize {
    sequence.iter().rposition(|&id| id != PAD).map_or(0, |p| p + 1)
}

/// `[B, 1, T]` to add to attention scores: −1e9 from each row's real length on.
pub(crate) fn mask(real: &[u32], steps: usize, device: &Device) -> Result<Tensor> {
    let bias: Vec<f32> =
        real.iter().flat_map(|&n| (0..steps).map(move |t| if t < n as usize { 0.0 } else { -1e9 })).collect();
    Tensor::from_vec(bias, (real.len(), 1, steps), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_at_the_end_and_masked() {
        let t = Tokens::new(&[vec![2, 5, 3], vec![2, 3]], 6, false, &Device::Cpu).unwrap();
        assert_eq!(t.ids.to_vec1::<u32>().unwrap(), [2, 2, 5, 3, 3, 0]);
        assert_eq!(*t.lengths.host, [3, 2]);
        assert_eq!(
            t.bias.as_ref().unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap(),
            [0., 0., 0., 0., 0., -1e9]
        );
    }

    #[test]
    fn ids_beyond_the_vocabulary_and_empty_batches_are_refused() {
        assert!(Tokens::new(&[vec![6]], 6, false, &Device::Cpu).is_err());
        assert!(Tokens::new::<Vec<u32>>(&[], 6, false, &Device::Cpu).is_err());
    }
}
