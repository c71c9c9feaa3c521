//! The tape's operations on single numbers and rows: activations, norms, gates, means, copies.

use super::*;

impl<'a> Tape<'a> {
    /// Through tanh, in place. Contiguous.
    pub fn tanh(&self, x: Var<'a>) -> Result<()> {
        let n = x.rows * x.cols;
        x.side_by_side("the input of tanh")?;
        self.launch("act_fwd", each(n), &[p(x.v), i(n), i(1)])?;
        self.on_backward(move |t| t.launch("act_bwd", each(n), &[p(x.gradient()?), p(x.v), i(n), i(1)]));
        Ok(())
    }

    /// `y = x` with column m times `s[m]`, a parameter; at the end the gradient of `s`.
    pub fn scale(
        &self,
        x: Var<'a>,
        s: DeviceSlice<'a, f32>,
        y: Var<'a>,
        ds: Option<DeviceSlice<'a, f32>>,
    ) -> Result<()> {
        let n = x.rows * x.cols;
        x.side_by_side("what is scaled")?;
        y.shaped(x.rows, x.cols, "what was scaled")?.side_by_side("what was scaled")?;
        s.holding(x.cols, "the scale of columns")?;
        self.launch("scale_fwd", each(n), &[p(x.v), p(s), p(y.v), i(x.rows), i(x.cols)])?;
        self.on_backward(move |t| {
            let dy = Var { v: y.gradient()?, ..y };
            t.launch("scale_bwd", each(n), &[p(dy.v), p(s), p(x.gradient()?), i(x.rows), i(x.cols)])?;
            ds.map_or(Ok(()), |ds| t.column_sum(dy, Some(x), ds))
        });
        Ok(())
    }

    /// LayerNorm(a + y) with parameters (weight, bias) and room for two numbers a row.
    pub fn norm(
        &self,
        a: Var<'a>,
        y: Var<'a>,
        (w, b): (DeviceSlice<'a, f32>, DeviceSlice<'a, f32>),
        out: Var<'a>,
        stats: DeviceSlice<'a, f32>,
    ) -> Result<()> {
        let (n, m) = (out.rows, out.cols);
        a.shaped(n, m, "the input of a norm")?;
        y.shaped(n, m, "the input of a norm")?;
        w.holding(m, "the weight of a norm")?;
        b.holding(m, "the bias of a norm")?;
        stats.holding(2 * n, "the statistics of a norm")?;
        let grid = ((n.div_ceil(WARPS as usize) as u32, 1), 32 * WARPS, 0);
        let parts = [p(a.v), i(a.ld), p(y.v), i(y.ld), p(w)];
        let more = [p(b), p(out.v), i(out.ld), p(stats), i(n), i(m)];
        let sizes = [a.ld, y.ld, out.ld, m].map(|x| x as i32);
        let inputs = [address(a.v), address(y.v), address(w)];
        let places = [&inputs[..], &[address(b), address(out.v), address(stats)]].concat();
        if !self.gather(n, Kind::Norm, &sizes, &places, None)? {
            self.launch("norm_fwd", grid, &[&parts[..], &more].concat())?;
        }
        self.on_backward(move |t| {
            let gradients = [address(stats), address(out.d), address(a.d), address(y.d)];
            if t.gather(n, Kind::NormBack, &sizes, &[&inputs[..], &gradients].concat(), None)? {
                return Ok(());
            }
            let more = [p(stats), p(out.d), i(out.ld), p(a.d), p(y.d), i(n), i(m)];
            t.launch("norm_bwd", grid, &[&parts[..], &more].concat())
        });
        Ok(())
    }

    /// At the end: the gradients of a norm's weight and bias from all rows.
    pub fn learn_norm(
        &self,
        a: Var<'a>,
        y: Var<'a>,
        out: Var<'a>,
        stats: DeviceSlice<'a, f32>,
        (dw, db): (Option<DeviceSlice<'a, f32>>, Option<DeviceSlice<'a, f32>>),
    ) {
        self.at_end(move |t| {
            let (n, m) = (out.rows, out.cols);
            a.shaped(n, m, "the input of a norm")?;
            y.shaped(n, m, "the input of a norm")?;
            stats.holding(2 * n, "the statistics of a norm")?;
            let grid = ((m.div_ceil(32) as u32, 1), 1024, 0);
            let args = [p(a.v), i(a.ld), p(y.v), i(y.ld), p(stats), p(out.d), i(out.ld), p(dw), p(db)];
            t.launch("norm_params", grid, &[&args[..], &[i(n), i(m)]].concat())
        });
    }

    /// `out = u − σ(g)·r` for `ug` = `[u, r]`.
    pub fn gate(&self, ug: Var<'a>, g: Var<'a>, out: Var<'a>) -> Result<()> {
        let (n, h) = (out.rows, out.cols);
        ug.shaped(n, 2 * h, "the input of a gate")?.side_by_side("the input of a gate")?;
        g.shaped(n, h, "a gate")?.side_by_side("a gate")?;
        out.side_by_side("the result of a gate")?;
        let sizes = [h as i32];
        let (input, gate) = (address(ug.v), address(g.v));
        if !self.gather(n, Kind::Gate, &sizes, &[input, gate, address(out.v)], None)? {
            self.launch("gate_fwd", each(n * h), &[p(ug.v), p(g.v), p(out.v), i(n), i(h)])?;
        }
        self.on_backward(move |t| {
            let places = [input, gate, address(out.d), address(ug.d), address(g.d)];
            if t.gather(n, Kind::GateBack, &sizes, &places, None)? {
                return Ok(());
            }
            t.launch("gate_bwd", each(n * h), &[p(ug.v), p(g.v), p(out.d), p(ug.d), p(g.d), i(n), i(h)])
        });
        Ok(())
    }

    /// The means of the first rows of each of `out.rows` groups; `counts` says of how many.
    pub fn mean(&self, x: Var<'a>, counts: DeviceSlice<'a, u32>, out: Var<'a>) -> Result<()> {
        let (b, h) = (out.rows, out.cols);
        let l = x.rows / b;
        x.shaped(b * l, h, "what means are of")?.side_by_side("what means are of")?;
        out.side_by_side("means")?;
        counts.holding(b, "the numbers of rows of means")?;
        self.launch("mean_fwd", each(b * h), &[p(x.v), p(counts), p(out.v), i(b), i(l), i(h)])?;
        self.on_backward(move |t| {
            t.launch("mean_bwd", each(b * l * h), &[p(out.d), p(counts), p(x.d), i(b), i(l), i(h)])
        });
        Ok(())
    }

    /// `x` as many times as `out` has room for.
    pub fn repeat(&self, x: Var<'a>, out: Var<'a>) -> Result<()> {
        let (n, copies) = (x.rows * x.cols, out.rows / x.rows);
        x.side_by_side("what is repeated")?;
        out.shaped(copies * x.rows, x.cols, "copies")?.side_by_side("copies")?;
        self.launch("repeat_fwd", each(n * copies), &[p(x.v), p(out.v), i(n), i(copies)])?;
        self.on_backward(move |t| t.launch("repeat_bwd", each(n), &[p(out.d), p(x.d), i(n), i(copies)]));
        Ok(())
    }

    /// `copies` times `x`, whose gradient is written.
    pub fn copies(&self, x: Var<'a>, copies: usize) -> Result<Var<'a>> {
        let out = self.result(copies * x.rows, x.cols)?;
        let n = x.rows * x.cols;
        x.side_by_side("what is repeated")?;
        self.launch("repeat_fwd", each(n * copies), &[p(x.v), p(out.v), i(n), i(copies)])?;
        self.on_backward(move |t| {
            zero(t.device(), x.gradient()?.part(0, n))?;
            t.launch("repeat_bwd", each(n), &[p(out.d), p(x.d), i(n), i(copies)])
        });
        Ok(out)
    }

    /// The rows of `x` that `rows` names, all different.
    pub fn take(&self, x: Var<'a>, rows: DeviceSlice<'a, u32>, out: Var<'a>) -> Result<()> {
        let (b, h) = (out.rows, out.cols);
        x.shaped(x.rows, h, "what rows are taken of")?.side_by_side("what rows are taken of")?;
        out.side_by_side("rows that were taken")?;
        rows.holding(b, "the numbers of rows")?;
        self.launch("take_fwd", each(b * h), &[p(x.v), p(rows), p(out.v), i(b), i(h)])?;
        self.on_backward(move |t| t.launch("take_bwd", each(b * h), &[p(out.d), p(rows), p(x.d), i(b), i(h)]));
        Ok(())
    }
}
