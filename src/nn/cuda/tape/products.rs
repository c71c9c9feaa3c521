//! The tape's linear layers: products of rows with weights, what they are added to, and what becomes of them.

use super::*;
use crate::nn::cuda::persistent_kernel::Product;

/// The function that is applied to a product.
#[derive(Clone, Copy)]
pub(crate) enum After {
    /// Nothing.
    Nothing,
    /// It goes through ReLU.
    Relu,
    /// It is the gate of what it was made from: `u − σ(product)·r` for `[u, r]`; with room for the product.
    Gate(Var),
}

impl<'a> Tape<'a> {
    /// `y += x·Wᵀ`, or what `y` says it is added to (`fresh`: `y = …`). The weight's own gradient: [`Tape::learn`].
    pub fn linear(&self, x: Var, w: Weight, y: Var, fresh: bool) -> Result<()> {
        self.affine(x, w, y, fresh, false)
    }

    /// `y = ReLU(y + x·Wᵀ)`. Contiguous.
    pub fn linear_relu(&self, x: Var, w: Weight, y: Var) -> Result<()> {
        self.affine(x, w, y, false, true)
    }

    fn affine(&self, x: Var, w: Weight, y: Var, fresh: bool, relu: bool) -> Result<()> {
        let b = Mat { t: !w.transposed, ..Mat::new(w.at, w.ld) };
        let onto = if fresh { Onto::Nothing } else { Onto::of(y.bias) };
        self.multiply((y.rows, w.m, w.k), x.mat(), b, onto, y.mat(), relu)?;
        if x.d != 0 && y.d != 0 {
            self.on_backward(move |t| {
                let n = y.rows * y.cols;
                if relu && !t.gather(y.rows, Kind::ReluBack, &[y.cols as i32], &[y.d, y.v], None)? {
                    t.launch("act_bwd", each(n), &[p(y.d), p(y.v), i(n), i(0)])?;
                }
                let b = Mat { t: w.transposed, ..Mat::new(w.at, w.ld) };
                t.multiply((y.rows, w.k, w.m), Mat::new(y.d, y.ld), b, Onto::Itself, Mat::new(x.d, x.ld), false)
            });
        }
        Ok(())
    }

    /// [`small_gemm`], gathered where it can be.
    fn multiply(&self, sizes: (usize, usize, usize), a: Mat, b: Mat, onto: Onto, c: Mat, relu: bool) -> Result<()> {
        let product = Product {
            sizes,
            a: (a.at, a.ld),
            w: (b.at, b.ld),
            c: (c.at, c.ld),
            transposed: !b.t,
            onto,
            after: relu.into(),
            split: 0,
            other: (0, 0),
        };
        if self.gather_product(&product)? {
            return Ok(());
        }
        let mut onto = onto;
        if let Onto::Row(bias) = onto
            && !some(options(self.device()), sizes.0, b)
        {
            // The row of the bias may be waiting to be written itself, and rows that wait together are written in any order.
            self.flush()?;
            let y = Var { v: c.at, d: 0, rows: sizes.0, cols: sizes.1, ld: c.ld, bias: 0 };
            self.write(y, bias, (0, 0, 1))?;
            onto = Onto::Itself;
        }
        self.flush()?;
        small_gemm(self.device(), sizes, a, b, onto, c, relu)
    }

    fn gather_product(&self, product: &Product) -> Result<bool> {
        let backwards = matches!(&*self.steps.borrow(), Some(steps) if steps.backwards);
        let (sizes, places) = product.parts(backwards);
        self.gather(product.sizes.0, Kind::Product, &sizes, &places, None)
    }

    /// `y = x·Wᵀ + bias` (0: what is there), nothing of which is learnt; columns from those of `y` on go to `other`.
    pub fn apply(&self, x: Var, w: Weight, bias: u64, (y, other): (Var, Option<Var>), after: After) -> Result<()> {
        let (rows, split) = (x.rows, other.map_or(0, |_| y.cols));
        let product = Product {
            sizes: (rows, w.m, w.k),
            a: (x.v, x.ld),
            w: (w.at, w.ld),
            c: (y.v, y.ld),
            transposed: w.transposed,
            onto: Onto::of(bias),
            after: match after {
                After::Nothing => 0,
                After::Relu => 1,
                After::Gate(_) => 2,
            },
            split,
            other: other.map_or((0, 0), |o| (o.v, o.ld)),
        };
        if product.is_one() && self.gather_product(&product)? {
            return Ok(());
        }
        // Else piece by piece.
        if let Some(other) = other {
            let skip = 4 * split as u64;
            let rest = Weight { at: w.at + skip * w.ld as u64, m: w.m - split, ..w };
            self.apply(x, Weight { m: split, ..w }, bias, (y, None), after)?;
            return self.apply(x, rest, if bias == 0 { 0 } else { bias + skip }, (other, None), after);
        }
        let to = if let After::Gate(room) = after { room } else { y };
        let b = Mat { t: !w.transposed, ..Mat::new(w.at, w.ld) };
        self.multiply((rows, w.m, w.k), x.mat(), b, Onto::of(bias), to.mat(), matches!(after, After::Relu))?;
        if matches!(after, After::Gate(_)) { self.gate(x, to, y) } else { Ok(()) }
    }

    /// The next operation does not need the last one.
    pub fn independent(&self) {
        if let Some(steps) = &mut *self.steps.borrow_mut() {
            steps.apart();
        }
    }

    /// At the end: the gradient `[out, in]` (`transposed`: `[in, out]`) of a weight that made all rows of `y` from those of
    /// `x`, to `to` with rows `ld` apart; and that of a bias (0: none).
    pub fn learn(&self, x: Var, y: Var, (to, ld): (u64, usize), transposed: bool, bias: u64) {
        self.at_end(move |t| {
            let (x, dy) = (x, Var { v: y.d, ..y });
            let (a, b) = if transposed { (x, dy) } else { (dy, x) };
            product(t.device(), (a.cols, b.cols, x.rows), a.mat().t(), b.mat(), 0.0, Mat::new(to, ld), 1)?;
            if bias != 0 { t.column_sum(dy, None, bias) } else { Ok(()) }
        });
    }

    /// [`Tape::learn`] of a linear layer with its own weight and bias.
    pub fn learn_layer(&self, name: &str, x: Var, y: Var) -> Result<()> {
        let (w, bias) = (self.g(&format!("{name}.weight"))?, self.g(&format!("{name}.bias"))?);
        self.learn(x, y, (w, x.cols), false, bias);
        Ok(())
    }
}
