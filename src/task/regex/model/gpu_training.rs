//! A training step of the REGEX models on a GPU, written once on the tape (`crate::nn::cuda::tape`): the same numbers as the
//! layers of [`crate::nn`] give by automatic differentiation (the device agreement compares them), in a third of the kernels.

use crate::nn::cuda::DeviceSlice;
use crate::nn::cuda::operands::Var;
use crate::nn::cuda::tape::{InputGradient, Recurrence, Tape};
use crate::nn::decoder::names::*;
use crate::nn::tokens::Tokens;
use crate::task::regex::model::gpu::Targets;
use crate::task::regex::model::names::*;
use candle_core::{Result, Tensor};

/// The memory that the decoder attends over: the name of the attention, what an encoder read, and the real steps of each row.
struct Memory<'a> {
    attention: &'static str,
    read: Recurrence<'a>,
    tokens: &'a Tokens,
}

/// The bridge: the last state with its h through a layer with tanh.
fn bridge<'a>(tape: &Tape<'a>, name: &str, read: &Recurrence<'a>) -> Result<(Var<'a>, Var<'a>)> {
    let (h, c) = read.last;
    Ok((tape.dense(name, &[h], true, InputGradient::Write)?, c))
}

/// The decoder with its loss from a state of `items` rows, each of which continues in as many rows of targets as there are
/// to it.
fn decode<'a>(
    tape: &Tape<'a>,
    (h, c): (Var<'a>, Var<'a>),
    memories: &[Memory<'a>],
    targets: &'a Targets,
    loss: &'a Tensor,
) -> Result<()> {
    let (items, inputs) = (h.rows, &targets.inputs);
    let copies = inputs.rows / items;
    let state = if copies == 1 { (h, c) } else { (tape.copies(h, copies)?, tape.copies(c, copies)?) };
    let decoded = tape.lstm(DECODER, OUTPUT_EMBEDDING, inputs, Some(state), false)?.outputs;
    let mut parts = vec![decoded];
    for memory in memories {
        let (name, outputs) = (memory.attention, memory.read.outputs);
        let queries = tape.dense(&format!("{name}.query"), &[decoded], false, InputGradient::Add)?;
        let keys = tape.dense(&format!("{name}.key"), &[outputs], false, InputGradient::Add)?;
        let real = DeviceSlice::of(memory.tokens.real.on_device()?)?;
        parts.push(tape.dot_attention(queries, keys, outputs, items, real)?);
    }
    let inner = tape.dense(PREDICTOR_HIDDEN, &parts, true, InputGradient::Write)?;
    let logits = tape.dense(PREDICTOR_OUTPUT, &[inner], false, InputGradient::Write)?;
    let bonus = targets.entropy.as_ref().map(DeviceSlice::of_bits).transpose()?;
    let (targets, weights) = (DeviceSlice::of(&targets.targets)?, DeviceSlice::of_bits(&targets.weights)?);
    tape.loss(logits, targets, weights, bonus, DeviceSlice::of(loss)?)
}

/// The gradients of the student's loss, and the loss at `loss`.
pub(crate) fn student<'a>(
    tape: &Tape<'a>,
    words: &'a Tokens,
    requests: &'a Tokens,
    targets: &'a Targets,
    loss: &'a Tensor,
) -> Result<()> {
    let word = tape.lstm(WORD_ENCODER, WORD_EMBEDDING, words, None, true)?;
    let state = bridge(tape, WORD_BRIDGE, &word)?;
    let request = tape.lstm(REQUEST_ENCODER, REQUEST_EMBEDDING, requests, Some(state), true)?;
    let state = bridge(tape, REQUEST_BRIDGE, &request)?;
    let memories = [
        Memory { attention: REQUEST_ATTENTION, read: request, tokens: requests },
        Memory { attention: WORD_ATTENTION, read: word, tokens: words },
    ];
    decode(tape, state, &memories, targets, loss)?;
    tape.backward()
}

/// The gradients of the describer's loss, and the loss at `loss`.
pub(crate) fn describer<'a>(tape: &Tape<'a>, pairs: &'a Tokens, targets: &'a Targets, loss: &'a Tensor) -> Result<()> {
    let read = tape.lstm(ENCODER, PAIR_EMBEDDING, pairs, None, true)?;
    let state = bridge(tape, BRIDGE, &read)?;
    decode(tape, state, &[Memory { attention: ATTENTION, read, tokens: pairs }], targets, loss)?;
    tape.backward()
}
