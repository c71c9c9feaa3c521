//! A whole training step of the REGEX models on a GPU, forwards and backwards by hand: the same numbers as the layers of
//! [`crate::nn`] give by automatic differentiation (`model::agreement` compares them), in a third of the kernels. Gradients
//! are added where they are used, nothing is copied to be joined, and no memory is asked for.

use crate::nn::cuda::arena::Arena;
use crate::nn::cuda::workspace::Training;
use crate::nn::cuda::{self, Arg, Mat, attention, launch, linear, loss, lstm};
use crate::nn::params::Params;
use crate::nn::tokens::Tokens;
use crate::task::regex::model::gpu::Targets;
use candle_core::{CudaDevice, Result, Tensor};
use std::collections::HashMap;

/// A model in a step: weights, where their gradients go, and memory.
pub struct Step<'a> {
    /// Parameters.
    pub params: &'a Params,
    /// Gradients by the parameters' names.
    pub grads: &'a HashMap<String, Tensor>,
    /// Memory.
    pub arena: &'a Arena,
}

/// A layer's inputs and results that the way back needs.
struct Encoded {
    name: &'static str,
    embedding: &'static str,
    run: lstm::Run,
    vocabulary: usize,
    size: usize,
    h0: u64,
    c0: u64,
    hs: u64,
    last: u64,
    cells: u64,
    gates: u64,
}

impl Encoded {
    /// The last h `[B, H]`.
    fn last_h(&self) -> u64 {
        self.hs + (self.run.t as u64 - 1) * self.run.bytes()
    }
}

/// What is attended over: which attention, its outputs `[S, B, H]`, steps and real steps; later their gradient.
struct Memory {
    attention: &'static str,
    hs: u64,
    steps: usize,
    real: u64,
}

impl<'a> Step<'a> {
    /// A step from the beginning of the memory.
    pub fn new(params: &'a Params, training: &'a Training) -> Self {
        training.arena.reset();
        Self { params, grads: &training.grads, arena: &training.arena }
    }

    fn device(&self) -> &CudaDevice {
        self.arena.device()
    }

    fn w(&self, name: &str) -> Result<u64> {
        cuda::at(self.params.get(name)?.as_tensor())
    }

    fn g(&self, name: &str) -> Result<u64> {
        match self.grads.get(name) {
            Some(t) => cuda::at(t),
            None => candle_core::bail!("no room for the gradient of `{name}`"),
        }
    }

    /// An LSTM layer over symbols from a state (0: zero).
    fn encode(
        &self,
        name: &'static str,
        embedding: &'static str,
        tokens: &Tokens,
        h0: u64,
        c0: u64,
    ) -> Result<Encoded> {
        let (vocabulary, size) = self.params.get(&format!("{embedding}.weight"))?.dims2()?;
        let h = self.params.get(&format!("{name}.weight_hh"))?.dim(1)?;
        let run = lstm::Run::of(tokens, h)?;
        let d = self.device();
        let bias = self.arena.take(4 * h)?;
        let biases = [self.w(&format!("{name}.bias_ih"))?, self.w(&format!("{name}.bias_hh"))?, bias].map(Arg::Address);
        launch(d, "add2", cuda::each(4 * h), &[&biases[..], &[Arg::Int(4 * h as i32)]].concat())?;
        let table = self.arena.take(vocabulary * 4 * h)?;
        let symbols = Mat::new(self.w(&format!("{embedding}.weight"))?, size);
        let w_ih = Mat::new(self.w(&format!("{name}.weight_ih"))?, size);
        let to = Mat::new(table, 4 * h);
        linear::forward(d, (vocabulary, 4 * h, size), &[(symbols, w_ih)], bias, to, false)?;
        let n = run.b * h;
        let places = lstm::Forward {
            table,
            w: self.w(&format!("{name}.weight_hh"))?,
            h0,
            c0,
            hs: self.arena.take(run.t * n)?,
            last: self.arena.take(n)?,
            cells: self.arena.take(run.t * run.padded())?,
            gates: self.arena.take(run.t * 4 * run.padded())?,
            gh: self.arena.take(4 * n)?,
        };
        lstm::forward(d, &run, &places)?;
        let lstm::Forward { hs, last, cells, gates, .. } = places;
        Ok(Encoded { name, embedding, run, vocabulary, size, h0, c0, hs, last, cells, gates })
    }

    /// The layer backwards, from the gradient of its outputs and (0: none) of its final state; gives that of the initial
    /// state.
    fn encode_back(&self, e: &Encoded, grad: u64, dh_last: u64, dc_last: u64) -> Result<(u64, u64)> {
        let (d, h, n) = (self.device(), e.run.h, e.run.b * e.run.h);
        let (name, embedding) = (e.name, e.embedding);
        let places = lstm::Backward {
            w: self.w(&format!("{name}.weight_hh"))?,
            h0: e.h0,
            c0: e.c0,
            hs: e.hs,
            cells: e.cells,
            gates: e.gates,
            grad,
            dh_last,
            dc_last,
            d_gates: self.arena.take(e.run.t * 4 * n)?,
            dh: self.arena.take(n)?,
            dc: self.arena.take(n)?,
            d_w: self.g(&format!("{name}.weight_hh"))?,
        };
        lstm::backward(d, &e.run, &places)?;
        let (v, size) = (e.vocabulary, e.size);
        let bags = self.arena.take(e.run.t * e.run.b * v)?;
        let table = self.arena.take(v * 4 * h)?;
        lstm::table_gradient(d, &e.run, v, places.d_gates, bags, table)?;
        let sizes = (v, 4 * h, size);
        let symbols = self.g(&format!("{embedding}.weight"))?;
        let w_ih = Mat::new(self.w(&format!("{name}.weight_ih"))?, size);
        linear::input_gradient(d, sizes, table, w_ih, 0.0, Mat::new(symbols, size))?;
        // The padding row stays zero.
        cuda::zero(d, symbols, size)?;
        let x = Mat::new(self.w(&format!("{embedding}.weight"))?, size);
        linear::weight_gradient(d, sizes, table, x, Mat::new(self.g(&format!("{name}.weight_ih"))?, size))?;
        let (b_ih, b_hh) = (self.g(&format!("{name}.bias_ih"))?, self.g(&format!("{name}.bias_hh"))?);
        self.bias_back((v, 4 * h), table, b_ih)?;
        cuda::copy(d, b_ih, b_hh, 4 * h)?;
        Ok((places.dh, places.dc))
    }

    fn bias_back(&self, (n, m): (usize, usize), g: u64, db: u64) -> Result<()> {
        let sums = self.arena.take(linear::parts(n) * m)?;
        linear::bias_gradient(self.device(), (n, m), g, sums, db)
    }

    /// A linear layer `[n, k] -> [n, m]`.
    fn linear(&self, name: &str, x: u64, n: usize, tanh: bool) -> Result<u64> {
        let (m, k) = self.params.get(&format!("{name}.weight"))?.dims2()?;
        let y = self.arena.take(n * m)?;
        let w = Mat::new(self.w(&format!("{name}.weight"))?, k);
        let bias = self.w(&format!("{name}.bias"))?;
        linear::forward(self.device(), (n, m, k), &[(Mat::new(x, k), w)], bias, Mat::new(y, m), tanh)?;
        Ok(y)
    }

    /// The layer backwards from the gradient `g` before tanh: that of x is written to `dx`, or added to it.
    fn linear_back(&self, name: &str, x: u64, n: usize, g: u64, dx: u64, add: bool) -> Result<()> {
        let (d, (m, k)) = (self.device(), self.params.get(&format!("{name}.weight"))?.dims2()?);
        let w = Mat::new(self.w(&format!("{name}.weight"))?, k);
        linear::input_gradient(d, (n, m, k), g, w, if add { 1.0 } else { 0.0 }, Mat::new(dx, k))?;
        let dw = Mat::new(self.g(&format!("{name}.weight"))?, k);
        linear::weight_gradient(d, (n, m, k), g, Mat::new(x, k), dw)?;
        self.bias_back((n, m), g, self.g(&format!("{name}.bias"))?)
    }

    /// The bridge backwards: the gradient of an encoder's last h from that of tanh(W·h + b), `y`.
    fn bridge_back(&self, name: &str, h: u64, y: u64, rows: usize, width: usize, g: u64) -> Result<u64> {
        let through = self.arena.take(rows * width)?;
        linear::through_tanh(self.device(), g, y, through, rows * width)?;
        let dh = self.arena.take(rows * width)?;
        self.linear_back(name, h, rows, through, dh, false)?;
        Ok(dh)
    }

    /// The decoder with its loss, forwards and backwards, from a state of `items` rows of which each goes on in
    /// as many rows of what is asked as there are to it. Gives the gradients of that state, and of each memory.
    fn decode(
        &self,
        (h0, c0): (u64, u64),
        items: usize,
        memories: &[Memory],
        asked: &Targets,
        loss_at: u64,
    ) -> Result<((u64, u64), Vec<u64>)> {
        let d = self.device();
        let h = self.params.get("decoder.weight_hh")?.dim(1)?;
        let inputs = &asked.inputs;
        let copies = inputs.rows / items;
        let (mut h_in, mut c_in) = (h0, c0);
        if copies > 1 {
            let one = items * h;
            (h_in, c_in) = (self.arena.take(copies * one)?, self.arena.take(copies * one)?);
            for i in 0..copies {
                cuda::copy(d, h0, h_in + (4 * i * one) as u64, one)?;
                cuda::copy(d, c0, c_in + (4 * i * one) as u64, one)?;
            }
        }
        let e = self.encode("decoder", "output_embedding", inputs, h_in, c_in)?;
        let (n, width) = (inputs.steps * inputs.rows, (1 + memories.len()) * h);
        // What the predictor reads, side by side in meaning but not in memory: h, then what each attention gave.
        let mut parts = vec![e.hs];
        let mut attended = Vec::with_capacity(memories.len());
        for memory in memories {
            let dot = self.params.get(&format!("{}.query.weight", memory.attention))?.dim(0)?;
            let sizes = attention::Sizes::new(inputs.steps * copies, items, memory.steps, dot, h);
            let places = attention::Places {
                queries: self.linear(&format!("{}.query", memory.attention), e.hs, n, false)?,
                keys: self.linear(&format!("{}.key", memory.attention), memory.hs, memory.steps * items, false)?,
                values: memory.hs,
                weights: self.arena.take(items * sizes.q * sizes.ld)?,
            };
            let out = self.arena.take(n * h)?;
            attention::forward(d, &sizes, &places, memory.real, out)?;
            parts.push(out);
            attended.push((sizes, places));
        }
        let w1 = self.w("predictor.hidden.weight")?;
        let block = |base: u64, i: usize| Mat::new(base + (4 * i * h) as u64, width);
        let inner = self.arena.take(n * h)?;
        let products: Vec<_> = parts.iter().enumerate().map(|(i, x)| (Mat::new(*x, h), block(w1, i))).collect();
        let bias = self.w("predictor.hidden.bias")?;
        linear::forward(d, (n, h, h), &products, bias, Mat::new(inner, h), true)?;
        let v = self.params.get("predictor.output.weight")?.dim(0)?;
        let logits = self.linear("predictor.output", inner, n, false)?;
        let places = loss::Places {
            logits,
            targets: cuda::at(&asked.targets)?,
            weights: cuda::at(&asked.weights)?,
            bonus: asked.entropy.as_ref().map(cuda::at).transpose()?.unwrap_or(0),
            lse: self.arena.take(n)?,
            entropy: self.arena.take(n)?,
        };
        loss::forward(d, (n, v), &places, self.arena.take(n)?, loss_at)?;

        let d_logits = self.arena.take(n * v)?;
        loss::backward(d, (n, v), &places, 0, d_logits)?;
        let d_inner = self.arena.take(n * h)?;
        self.linear_back("predictor.output", inner, n, d_logits, d_inner, false)?;
        linear::through_tanh(d, d_inner, inner, d_inner, n * h)?;
        let d_w1 = self.g("predictor.hidden.weight")?;
        let mut d_parts = Vec::with_capacity(parts.len());
        for (i, x) in parts.iter().enumerate() {
            let dx = self.arena.take(n * h)?;
            linear::input_gradient(d, (n, h, h), d_inner, block(w1, i), 0.0, Mat::new(dx, h))?;
            linear::weight_gradient(d, (n, h, h), d_inner, Mat::new(*x, h), block(d_w1, i))?;
            d_parts.push(dx);
        }
        self.bias_back((n, h), d_inner, self.g("predictor.hidden.bias")?)?;
        let d_hs = d_parts[0];
        let mut d_memories = Vec::with_capacity(memories.len());
        for ((memory, (sizes, places)), d_out) in memories.iter().zip(&attended).zip(&d_parts[1..]) {
            let rows = memory.steps * items;
            let d_scores = self.arena.take(items * sizes.q * sizes.ld)?;
            let d_queries = self.arena.take(n * sizes.d)?;
            let (d_keys, d_values) = (self.arena.take(rows * sizes.d)?, self.arena.take(rows * h)?);
            attention::backward(d, sizes, places, *d_out, d_scores, (d_queries, d_keys, d_values))?;
            self.linear_back(&format!("{}.query", memory.attention), e.hs, n, d_queries, d_hs, true)?;
            self.linear_back(&format!("{}.key", memory.attention), memory.hs, rows, d_keys, d_values, true)?;
            d_memories.push(d_values);
        }
        let (dh, dc) = self.encode_back(&e, d_hs, 0, 0)?;
        let one = items * h;
        for i in 1..copies {
            for x in [dh, dc] {
                let sum =
                    [Arg::Address(x), Arg::Address(x + (4 * i * one) as u64), Arg::Address(x), Arg::Int(one as i32)];
                launch(d, "add2", cuda::each(one), &sum)?;
            }
        }
        Ok(((dh, dc), d_memories))
    }

    /// Gradients of the student's loss, and the loss at `loss`.
    pub fn student(&self, words: &Tokens, requests: &Tokens, targets: &Targets, loss: &Tensor) -> Result<()> {
        let b = words.rows;
        let w = self.encode("word_encoder", "word_embedding", words, 0, 0)?;
        let h = w.run.h;
        let h1 = self.linear("word_bridge", w.last_h(), b, true)?;
        let r = self.encode("request_encoder", "request_embedding", requests, h1, w.last)?;
        let h2 = self.linear("request_bridge", r.last_h(), b, true)?;
        let memory = |attention, e: &Encoded, tokens: &Tokens| -> Result<Memory> {
            Ok(Memory { attention, hs: e.hs, steps: e.run.t, real: cuda::at(tokens.real.on_device()?)? })
        };
        let memories = [memory("request_attention", &r, requests)?, memory("word_attention", &w, words)?];
        let ((dh2, dc2), d) = self.decode((h2, r.last), b, &memories, targets, cuda::at(loss)?)?;
        let dh_r = self.bridge_back("request_bridge", r.last_h(), h2, b, h, dh2)?;
        let (dh1, dc1) = self.encode_back(&r, d[0], dh_r, dc2)?;
        let dh_w = self.bridge_back("word_bridge", w.last_h(), h1, b, h, dh1)?;
        self.encode_back(&w, d[1], dh_w, dc1)?;
        Ok(())
    }

    /// Gradients of the describer's loss, and the loss at `loss`.
    pub fn describer(&self, pairs: &Tokens, targets: &Targets, loss: &Tensor) -> Result<()> {
        let b = pairs.rows;
        let e = self.encode("encoder", "pair_embedding", pairs, 0, 0)?;
        let h = e.run.h;
        let h1 = self.linear("bridge", e.last_h(), b, true)?;
        let real = cuda::at(pairs.real.on_device()?)?;
        let memories = [Memory { attention: "attention", hs: e.hs, steps: e.run.t, real }];
        let ((dh1, dc1), d) = self.decode((h1, e.last), b, &memories, targets, cuda::at(loss)?)?;
        let dh = self.bridge_back("bridge", e.last_h(), h1, b, h, dh1)?;
        self.encode_back(&e, d[0], dh, dc1)?;
        Ok(())
    }
}
