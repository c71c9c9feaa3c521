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
pub(crate) struct Recurrence<'a> {
    /// Outputs `[T · B, H]`.
    pub outputs: Var<'a>,
    /// The last h and c, `[B, H]` each, with gradients of their own.
    pub last: (Var<'a>, Var<'a>),
}

impl<'a> Tape<'a> {
    /// A matrix that nobody has written yet, whose gradient is written before it is read or added to.
    pub fn result(&self, rows: usize, cols: usize) -> Result<Var<'a>> {
        let d = self.learning_room(rows * cols)?;
        Ok(Var { d, ..self.constant(rows, cols)? })
    }

    /// An LSTM layer over symbols from a state (`None`: zeros), whose gradient is written. `continued`: the last state is read,
    /// so it has a gradient.
    pub fn lstm(
        &self,
        name: &str,
        embedding: &str,
        tokens: &'a Tokens,
        state: Option<(Var<'a>, Var<'a>)>,
        continued: bool,
    ) -> Result<Recurrence<'a>> {
        let (vocabulary, size) = self.params.get(&format!("{embedding}.weight"))?.dims2()?;
        let part = |part: &str| format!("{name}.{part}");
        let h = self.params.get(&part(Lstm::WEIGHT_HH))?.dim(1)?;
        let run = lstm::Run::of(tokens, h)?;
        let d = self.device();
        self.flush()?;
        let [b_ih, b_hh] = [self.w(&part(Lstm::BIAS_IH))?, self.w(&part(Lstm::BIAS_HH))?];
        b_ih.holding(4 * h, "the bias of a recurrence")?;
        b_hh.holding(4 * h, "the bias of a recurrence")?;
        let bias = self.room(4 * h)?;
        launch(d, "add2", each(4 * h), &[p(b_ih), p(b_hh), p(bias), i(4 * h)])?;
        let table = self.room(vocabulary * 4 * h)?;
        let symbols = Mat::new(self.weight_of(embedding)?, size);
        let w_ih = Mat::new(self.w(&part(Lstm::WEIGHT_IH))?, size);
        linear::forward(d, (vocabulary, 4 * h, size), &[(symbols, w_ih)], bias, Mat::new(table, 4 * h), false)?;
        let outputs = self.result(run.t * run.b, h)?;
        let state = match state {
            Some((h0, c0)) => Some((
                h0.shaped(run.b, h, "the first state of a recurrence")?
                    .side_by_side("the first state of a recurrence")?,
                c0.shaped(run.b, h, "the first state of a recurrence")?
                    .side_by_side("the first state of a recurrence")?,
            )),
            None => None,
        };
        let (h0, c0) = (state.map(|(h, _)| h.v), state.map(|(_, c)| c.v));
        let n = run.b * h;
        let last_c = self.result(run.b, h)?;
        let last_h = Var {
            d: if continued { self.learning_room(n)? } else { None },
            ..outputs.rows(run.b * (run.t - 1), run.b)
        };
        let cells = self.room(run.t * run.padded())?;
        let gates = self.room(run.t * 4 * run.padded())?;
        let places = lstm::Forward {
            table,
            w: self.w(&part(Lstm::WEIGHT_HH))?,
            h0,
            c0,
            hs: outputs.v,
            last: Some(last_c.v),
            cells,
            gates: Some(gates),
            gh: self.room(4 * n)?,
        };
        lstm::forward(d, &run, &places)?;
        if let Some(d_w) = self.g(&part(Lstm::WEIGHT_HH))? {
            let (d_h0, d_c0) = match state {
                Some((h, c)) => (h.gradient()?, c.gradient()?),
                None => (self.room(n)?, self.room(n)?),
            };
            let back = lstm::Backward {
                w: places.w,
                h0,
                c0,
                hs: outputs.v,
                cells,
                gates,
                grad: outputs.gradient()?,
                dh_last: last_h.d,
                dc_last: if continued { last_c.d } else { None },
                d_gates: self.room(run.t * 4 * n)?,
                dh: d_h0,
                dc: d_c0,
                d_w,
            };
            let (bags, d_table) = (self.room(run.t * run.b * vocabulary)?, self.room(vocabulary * 4 * h)?);
            let d_symbols = self.learnt(&format!("{embedding}.weight"))?;
            let d_w_ih = Mat::new(self.learnt(&part(Lstm::WEIGHT_IH))?, size);
            let (d_b_ih, d_b_hh) = (self.learnt(&part(Lstm::BIAS_IH))?, self.learnt(&part(Lstm::BIAS_HH))?);
            self.on_backward(move |t| {
                let (d, sizes) = (t.device(), (vocabulary, 4 * h, size));
                lstm::backward(d, &run, &back)?;
                lstm::table_gradient(d, &run, vocabulary, back.d_gates, bags, d_table)?;
                linear::input_gradient(d, sizes, d_table, w_ih, 0.0, Mat::new(d_symbols, size))?;
                // The padding row stays zero.
                zero(d, d_symbols.part(0, size))?;
                linear::weight_gradient(d, sizes, d_table, symbols, d_w_ih)?;
                t.bias_sums((vocabulary, 4 * h), d_table, d_b_ih)?;
                copy(d, d_b_ih, d_b_hh)
            });
        }
        Ok(Recurrence { outputs, last: (last_h, last_c) })
    }

    /// The gradient of a parameter of a pass that learns.
    fn learnt(&self, name: &str) -> Result<DeviceSlice<'a, f32>> {
        match self.g(name)? {
            Some(gradient) => Ok(gradient),
            None => bail!("`{name}` is not learnt"),
        }
    }

    /// The gradient of a bias: the sums of the columns of `g` `[n, m]`.
    fn bias_sums(&self, (n, m): (usize, usize), g: DeviceSlice<'a, f32>, to: DeviceSlice<'a, f32>) -> Result<()> {
        let sums = self.room(linear::parts(n) * m)?;
        linear::bias_gradient(self.device(), (n, m), g, sums, to)
    }

    /// A dense layer over `inputs` side by side, through tanh or not; each input is dense itself.
    pub fn dense(&self, name: &str, inputs: &[Var<'a>], tanh: bool, gradient: InputGradient) -> Result<Var<'a>> {
        self.flush()?;
        let (m, width) = self.params.get(&format!("{name}.weight"))?.dims2()?;
        let (n, k) = (inputs[0].rows, inputs[0].cols);
        if k * inputs.len() != width {
            bail!("`{name}` takes {width} numbers, not {} times {k}", inputs.len())
        }
        let y = self.result(n, m)?;
        let block = move |base: DeviceSlice<'a, f32>, i: usize| Mat::new(base.rest(i * k), width);
        let (w, bias) = (self.weight_of(name)?, self.bias_of(name)?);
        let parts: Vec<_> = inputs.iter().enumerate().map(|(i, x)| (x.mat(), block(w, i))).collect();
        linear::forward(self.device(), (n, m, k), &parts, bias, y.mat(), tanh)?;
        if let (Some(dw), Some(db)) = (self.weight_gradient(name)?, self.bias_gradient(name)?) {
            let dy = y.gradient()?;
            let inputs = inputs.to_vec();
            self.on_backward(move |t| {
                let (d, sizes) = (t.device(), (n, m, k));
                if tanh {
                    linear::through_tanh(d, dy, y.v, dy, n * m)?;
                }
                for (i, x) in inputs.iter().enumerate() {
                    if gradient != InputGradient::None {
                        let beta = if gradient == InputGradient::Add { 1.0 } else { 0.0 };
                        linear::input_gradient(d, sizes, dy, block(w, i), beta, Mat::new(x.gradient()?, x.ld))?;
                    }
                    linear::weight_gradient(d, sizes, dy, x.mat(), block(dw, i))?;
                }
                t.bias_sums((n, m), dy, db)
            });
        }
        Ok(y)
    }

    /// Attends with `queries` `[Q · B, D]` over `values` `[S · B, H]` by their `keys` `[S · B, D]`: `[Q · B, H]`. Row b has `real[b]`
    /// steps. The gradients of all three are written.
    pub fn dot_attention(
        &self,
        queries: Var<'a>,
        keys: Var<'a>,
        values: Var<'a>,
        rows: usize,
        real: DeviceSlice<'a, u32>,
    ) -> Result<Var<'a>> {
        self.flush()?;
        let sizes = attention::Sizes::new(queries.rows / rows, rows, keys.rows / rows, queries.cols, values.cols);
        keys.shaped(keys.rows, queries.cols, "the keys of an attention")?;
        values.shaped(keys.rows, values.cols, "the values of an attention")?;
        let weights = self.room(rows * sizes.q * sizes.ld)?;
        let places = attention::Places { queries: queries.v, keys: keys.v, values: values.v, weights };
        let out = self.result(queries.rows, values.cols)?;
        attention::forward(self.device(), &sizes, &places, real, out.v)?;
        if self.learns() {
            let d_scores = self.room(rows * sizes.q * sizes.ld)?;
            let gradients = (queries.gradient()?, keys.gradient()?, values.gradient()?);
            let grad = out.gradient()?;
            self.on_backward(move |t| attention::backward(t.device(), &sizes, &places, grad, d_scores, gradients));
        }
        Ok(out)
    }
}
