//! The tape's linear layers: products of rows with weights, what they are added to, and what becomes of them.

use super::*;
use crate::nn::cuda::persistent_kernel::Product;

/// The function that is applied to a product.
#[derive(Clone, Copy)]
pub(crate) enum After<'a> {
    /// Nothing.
    Nothing,
    /// It goes through ReLU.
    Relu,
    /// It is the gate of what it was made from: `u − σ(product)·r` for `[u, r]`; with room for the product.
    Gate(Var<'a>),
}

impl<'a> Tape<'a> {
    /// `y += x·Wᵀ`, or what `y` says it is added to (`fresh`: `y = …`). The weight's own gradient: [`Tape::learn`].
    pub fn linear(&self, x: Var<'a>, w: Weight<'a>, y: Var<'a>, fresh: bool) -> Result<()> {
        self.affine(x, w, y, fresh, false)
    }

    /// `y = ReLU(y + x·Wᵀ)`. Contiguous.
    pub fn linear_relu(&self, x: Var<'a>, w: Weight<'a>, y: Var<'a>) -> Result<()> {
        self.affine(x, w, y, false, true)
    }

    fn affine(&self, x: Var<'a>, w: Weight<'a>, y: Var<'a>, fresh: bool, relu: bool) -> Result<()> {
        x.shaped(y.rows, w.k, "the input of a linear layer")?;
        y.shaped(y.rows, w.m, "the result of a linear layer")?;
        let onto = if fresh { Onto::Nothing } else { Onto::of(y.bias) };
        self.multiply((y.rows, w.m, w.k), x.mat(), w.mat().t(), onto, y.mat(), relu)?;
        if let (Some(dx), Some(dy)) = (x.d, y.d) {
            self.on_backward(move |t| {
                let n = y.rows * y.cols;
                let places = [address(dy), address(y.v)];
                if relu && !t.gather(y.rows, Kind::ReluBack, &[y.cols as i32], &places, None)? {
                    t.launch("act_bwd", each(n), &[p(dy), p(y.v), i(n), i(0)])?;
                }
                let sizes = (y.rows, w.k, w.m);
                t.multiply(sizes, Mat::new(dy, y.ld), w.mat(), Onto::Itself, Mat::new(dx, x.ld), false)
            });
        }
        Ok(())
    }

    /// [`small_gemm`], gathered where it can be.
    fn multiply(
        &self,
        sizes: (usize, usize, usize),
        a: Mat<'a>,
        b: Mat<'a>,
        onto: Onto<'a>,
        c: Mat<'a>,
        relu: bool,
    ) -> Result<()> {
        check_product(sizes, a, b, onto, c, 1)?;
        let product = Product {
            sizes,
            a: (a.at.into(), a.ld),
            w: (b.at.into(), b.ld),
            c: (c.at.into(), c.ld),
            transposed: !b.t,
            add: onto == Onto::Itself,
            bias: onto.row().into(),
            after: relu.into(),
            split: 0,
            other: (Address::default(), 0),
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
            let y = Var { v: c.at, d: None, rows: sizes.0, cols: sizes.1, ld: c.ld, bias: None };
            self.write(y, Some(bias), None)?;
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

    /// `y = x·Wᵀ + bias` (`None`: what is there), nothing of which is learnt; columns from those of `y` on go to `other`.
    pub fn apply(
        &self,
        x: Var<'a>,
        w: Weight<'a>,
        bias: Option<DeviceSlice<'a, f32>>,
        (y, other): (Var<'a>, Option<Var<'a>>),
        after: After<'a>,
    ) -> Result<()> {
        let (rows, split) = (x.rows, other.map_or(0, |_| y.cols));
        x.shaped(rows, w.k, "the input of a linear layer")?;
        let made = y.cols + other.map_or(0, |other| other.cols);
        if y.rows != rows || other.is_some_and(|other| other.rows != rows) || made != w.m {
            bail!("a linear layer of {} outputs is asked for {made}", w.m)
        }
        w.at.holding_strided(&w.stored(), "a weight")?;
        let bias = bias.map(|bias| bias.holding(w.m, "a bias")).transpose()?;
        let product = Product {
            sizes: (rows, w.m, w.k),
            a: (x.v.into(), x.ld),
            w: (w.at.into(), w.ld),
            c: (y.v.into(), y.ld),
            transposed: w.transposed,
            add: bias.is_none(),
            bias: bias.into(),
            after: match after {
                After::Nothing => 0,
                After::Relu => 1,
                After::Gate(_) => 2,
            },
            split,
            other: other.map_or((Address::default(), 0), |o| (o.v.into(), o.ld)),
        };
        if product.is_one() && self.gather_product(&product)? {
            return Ok(());
        }
        // Else piece by piece.
        if let Some(other) = other {
            let rest = bias.map(|bias| bias.rest(split));
            self.apply(x, w.outputs(0, split), bias, (y, None), after)?;
            return self.apply(x, w.outputs(split, w.m - split), rest, (other, None), after);
        }
        let to = if let After::Gate(room) = after { room } else { y };
        let relu = matches!(after, After::Relu);
        self.multiply((rows, w.m, w.k), x.mat(), w.mat().t(), Onto::of(bias), to.mat(), relu)?;
        if matches!(after, After::Gate(_)) { self.gate(x, to, y) } else { Ok(()) }
    }

    /// The next operation does not need the last one.
    pub fn independent(&self) {
        if let Some(steps) = &mut *self.steps.borrow_mut() {
            steps.apart();
        }
    }

    /// At the end: the gradient `[out, in]` (`transposed`: `[in, out]`) of a weight that made all rows of `y` from those of
    /// `x`, to `to` with rows `ld` apart; and that of a bias, where there is one. `to` is `None` where nothing is learnt.
    pub fn learn(
        &self,
        x: Var<'a>,
        y: Var<'a>,
        (to, ld): (Option<DeviceSlice<'a, f32>>, usize),
        transposed: bool,
        bias: Option<DeviceSlice<'a, f32>>,
    ) {
        let Some(to) = to else { return };
        self.at_end(move |t| {
            let (x, dy) = (x, Var { v: y.gradient()?, ..y });
            let (a, b) = if transposed { (x, dy) } else { (dy, x) };
            product(t.device(), (a.cols, b.cols, x.rows), a.mat().t(), b.mat(), 0.0, Mat::new(to, ld), 1)?;
            bias.map_or(Ok(()), |bias| t.column_sum(dy, None, bias))
        });
    }

    /// [`Tape::learn`] of a linear layer with its own weight and bias.
    pub fn learn_layer(&self, name: &str, x: Var<'a>, y: Var<'a>) -> Result<()> {
        let (w, bias) = (self.weight_gradient(name)?, self.bias_gradient(name)?);
        self.learn(x, y, (w, x.cols), false, bias);
        Ok(())
    }
}
