//! The tape's operations for recurrent networks: LSTM layers over symbols, dense layers with tanh, and dot attention. A gradient
//! is written by the operation that meets it first on the way back and added to by the others, so none of them needs zeros.

use super::*;
use crate::nn::cuda::{attention, linear, lstm};
use crate::nn::layers::Lstm;
use crate::nn::tokens::Tokens;

/// How an operation treats the gradient of its input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputGradient {
    /// Nothing: the input is no result of the pass.
    None,
    /// Writes it: the operation is the last that reads the input.
    Write,
    /// Adds to it.
    Add,
}

/// An LSTM layer's results.
#[derive(Clone, Copy)]
pub(crate) struct Recurrence {
    /// Outputs `[T · B, H]`.
    pub outputs: Var,
    /// The last h and c, `[B, H]` each, with gradients of their own.
    pub last: (Var, Var),
}

impl<'a> Tape<'a> {
    /// A matrix that nobody has written yet, whose gradient is written before it is read or added to.
    pub fn result(&self, rows: usize, cols: usize) -> Result<Var> {
        let d = if self.learns() { self.room(rows * cols)? } else { 0 };
        Ok(Var { d, ..self.constant(rows, cols)? })
    }

    /// An LSTM layer over symbols from a state (`None`: zeros), whose gradient is written. `continued`: the last state is read,
    /// so it has a gradient.
    pub fn lstm(
        &self,
        name: &str,
        embedding: &str,
        tokens: &Tokens,
        state: Option<(Var, Var)>,
        continued: bool,
    ) -> Result<Recurrence> {
        let (vocabulary, size) = self.params.get(&format!("{embedding}.weight"))?.dims2()?;
        let part = |part: &str| format!("{name}.{part}");
        let h = self.params.get(&part(Lstm::WEIGHT_HH))?.dim(1)?;
        let run = lstm::Run::of(tokens, h)?;
        let d = self.device();
        self.flush()?;
        let [b_ih, b_hh] = [self.w(&part(Lstm::BIAS_IH))?, self.w(&part(Lstm::BIAS_HH))?];
        let bias = self.room(4 * h)?;
        launch(d, "add2", each(4 * h), &[p(b_ih), p(b_hh), p(bias), i(4 * h)])?;
        let table = self.room(vocabulary * 4 * h)?;
        let symbols = Mat::new(self.weight_of(embedding)?, size);
        let w_ih = Mat::new(self.w(&part(Lstm::WEIGHT_IH))?, size);
        linear::forward(d, (vocabulary, 4 * h, size), &[(symbols, w_ih)], bias, Mat::new(table, 4 * h), false)?;
        let outputs = self.result(run.t * run.b, h)?;
        let (h0, c0) = state.map_or((0, 0), |(h, c)| (h.v, c.v));
        let n = run.b * h;
        let last_c = self.result(run.b, h)?;
        let last_h = Var {
            d: if continued && self.learns() { self.room(n)? } else { 0 },
            ..outputs.rows(n / h * (run.t - 1), run.b)
        };
        let places = lstm::Forward {
            table,
            w: self.w(&part(Lstm::WEIGHT_HH))?,
            h0,
            c0,
            hs: outputs.v,
            last: last_c.v,
            cells: self.room(run.t * run.padded())?,
            gates: self.room(run.t * 4 * run.padded())?,
            gh: self.room(4 * n)?,
        };
        lstm::forward(d, &run, &places)?;
        if self.learns() {
            let (d_h0, d_c0) = match state {
                Some((h, c)) => (h.d, c.d),
                None => (self.room(n)?, self.room(n)?),
            };
            let back = lstm::Backward {
                w: places.w,
                h0,
                c0,
                hs: outputs.v,
                cells: places.cells,
                gates: places.gates,
                grad: outputs.d,
                dh_last: last_h.d,
                dc_last: if continued { last_c.d } else { 0 },
                d_gates: self.room(run.t * 4 * n)?,
                dh: d_h0,
                dc: d_c0,
                d_w: self.g(&part(Lstm::WEIGHT_HH))?,
            };
            let (bags, d_table) = (self.room(run.t * run.b * vocabulary)?, self.room(vocabulary * 4 * h)?);
            let d_symbols = self.weight_gradient(embedding)?;
            let d_w_ih = Mat::new(self.g(&part(Lstm::WEIGHT_IH))?, size);
            let (d_b_ih, d_b_hh) = (self.g(&part(Lstm::BIAS_IH))?, self.g(&part(Lstm::BIAS_HH))?);
            self.on_backward(move |t| {
                let (d, sizes) = (t.device(), (vocabulary, 4 * h, size));
                lstm::backward(d, &run, &back)?;
                lstm::table_gradient(d, &run, vocabulary, back.d_gates, bags, d_table)?;
                linear::input_gradient(d, sizes, d_table, w_ih, 0.0, Mat::new(d_symbols, size))?;
                // The padding row stays zero.
                zero(d, d_symbols, size)?;
                linear::weight_gradient(d, sizes, d_table, symbols, d_w_ih)?;
                t.bias_sums((vocabulary, 4 * h), d_table, d_b_ih)?;
                copy(d, d_b_ih, d_b_hh, 4 * h)
            });
        }
        Ok(Recurrence { outputs, last: (last_h, last_c) })
    }

    /// The gradient of a bias: the sums of the columns of `g` `[n, m]`.
    fn bias_sums(&self, (n, m): (usize, usize), g: u64, to: u64) -> Result<()> {
        let sums = self.room(linear::parts(n) * m)?;
        linear::bias_gradient(self.device(), (n, m), g, sums, to)
    }

    /// A dense layer over `inputs` side by side, through tanh or not; each input is dense itself.
    pub fn dense(&self, name: &str, inputs: &[Var], tanh: bool, gradient: InputGradient) -> Result<Var> {
        self.flush()?;
        let (m, width) = self.params.get(&format!("{name}.weight"))?.dims2()?;
        let (n, k) = (inputs[0].rows, inputs[0].cols);
        if k * inputs.len() != width {
            bail!("`{name}` takes {width} numbers, not {} times {k}", inputs.len())
        }
        let y = self.result(n, m)?;
        let block = move |base: u64, i: usize| Mat::new(base + (4 * i * k) as u64, width);
        let (w, bias) = (self.weight_of(name)?, self.bias_of(name)?);
        let parts: Vec<_> = inputs.iter().enumerate().map(|(i, x)| (x.mat(), block(w, i))).collect();
        linear::forward(self.device(), (n, m, k), &parts, bias, y.mat(), tanh)?;
        if self.learns() {
            let (dw, db) = (self.weight_gradient(name)?, self.bias_gradient(name)?);
            let inputs = inputs.to_vec();
            self.on_backward(move |t| {
                let (d, sizes) = (t.device(), (n, m, k));
                if tanh {
                    linear::through_tanh(d, y.d, y.v, y.d, n * m)?;
                }
                for (i, x) in inputs.iter().enumerate() {
                    if gradient != InputGradient::None {
                        let beta = if gradient == InputGradient::Add { 1.0 } else { 0.0 };
                        linear::input_gradient(d, sizes, y.d, block(w, i), beta, Mat::new(x.d, x.ld))?;
                    }
                    linear::weight_gradient(d, sizes, y.d, x.mat(), block(dw, i))?;
                }
                t.bias_sums((n, m), y.d, db)
            });
        }
        Ok(y)
    }

    /// Attends with `queries` `[Q · B, D]` over `values` `[S · B, H]` by their `keys` `[S · B, D]`: `[Q · B, H]`. Row b has `real[b]`
    /// steps. The gradients of all three are written.
    pub fn dot_attention(&self, queries: Var, keys: Var, values: Var, rows: usize, real: u64) -> Result<Var> {
        self.flush()?;
        let sizes = attention::Sizes::new(queries.rows / rows, rows, keys.rows / rows, queries.cols, values.cols);
        let weights = self.room(rows * sizes.q * sizes.ld)?;
        let places = attention::Places { queries: queries.v, keys: keys.v, values: values.v, weights };
        let out = self.result(queries.rows, values.cols)?;
        attention::forward(self.device(), &sizes, &places, real, out.v)?;
        if self.learns() {
            let d_scores = self.room(rows * sizes.q * sizes.ld)?;
            let gradients = (queries.d, keys.d, values.d);
            self.on_backward(move |t| attention::backward(t.device(), &sizes, &places, out.d, d_scores, gradients));
        }
        Ok(out)
    }
}
