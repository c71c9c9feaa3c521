//! The tape's operations for words and time: embeddings, encodings of time, choosing words, and the loss.

use super::*;

impl<'a> Tape<'a> {
    /// Embeddings of `ids`, times `scale`, with positional encodings `[of, H]` that begin again every `of` rows, where there are any.
    pub fn embed(
        &self,
        name: &str,
        ids: DeviceSlice<'a, u32>,
        scale: f32,
        (positions, of): (Option<DeviceSlice<'a, f32>>, usize),
        x: Var<'a>,
    ) -> Result<()> {
        let name = format!("{name}.weight");
        let (vocabulary, size) = self.params.get(&name)?.dims2()?;
        let (n, h) = (x.rows, x.cols);
        x.shaped(n, size, "embeddings")?.side_by_side("embeddings")?;
        ids.holding(n, "the symbols of embeddings")?;
        let positions = positions.map(|all| all.holding(of * h, "the encodings of positions")).transpose()?;
        let args = [p(self.w(&name)?), p(ids), Arg::Float(scale), p(positions), i(of), p(x.v), i(n), i(h)];
        self.launch("embed_fwd", each(n * h), &args)?;
        let to = self.g(&name)?;
        self.on_backward(move |t| {
            let grid = ((vocabulary.div_ceil(8) as u32, 1), 256, 0);
            let args = [p(x.gradient()?), p(ids), Arg::Float(scale), p(to), i(n), i(h), i(vocabulary)];
            t.launch("embed_bwd", grid, &args)
        });
        Ok(())
    }

    /// Input of one step of words: `x = table[ids] + time`.
    pub fn word_input(&self, table: Var<'a>, ids: DeviceSlice<'a, u32>, time: Var<'a>, x: Var<'a>) -> Result<()> {
        ids.holding(x.rows, "the words of a step")?;
        table.shaped(table.rows, x.cols, "the inputs of words")?.side_by_side("the inputs of words")?;
        time.shaped(1, x.cols, "the encoding of a step")?;
        x.side_by_side("the input of a step")?;
        let args = [p(table.v), p(ids), p(time.v), p(x.v), i(x.rows), i(x.cols)];
        self.launch("word_in", each(x.rows * x.cols), &args)
    }

    /// The next words, from logits with a bias: to `out` and `again`. The input of the step after: `x = table[word] + time`.
    pub fn pick(
        &self,
        logits: Var<'a>,
        bias: DeviceSlice<'a, f32>,
        draws: DeviceSlice<'a, f32>,
        (out, again): (DeviceSlice<'a, u32>, DeviceSlice<'a, u32>),
        (table, time, x): (Var<'a>, Var<'a>, Var<'a>),
    ) -> Result<()> {
        let n = logits.rows;
        bias.holding(logits.cols, "the bias of words")?;
        draws.holding(n, "the draws of words")?;
        out.holding(n, "the words of a step")?;
        again.holding(n, "the words of a step")?;
        table.shaped(logits.cols, x.cols, "the inputs of words")?.side_by_side("the inputs of words")?;
        time.shaped(1, x.cols, "the encoding of a step")?;
        x.shaped(n, x.cols, "the input of a step")?.side_by_side("the input of a step")?;
        let sizes = [logits.cols, logits.ld, x.cols].map(|n| n as i32);
        let places = [
            address(logits.v),
            address(bias),
            address(draws),
            address(out),
            address(again),
            address(table.v),
            address(time.v),
            address(x.v),
        ];
        if self.gather(n, Kind::Pick, &sizes, &places, None)? {
            return Ok(());
        }
        let args = [p(logits.v), i(logits.ld), p(bias), p(draws), p(out), p(again), i(logits.cols)];
        let more = [p(table.v), p(time.v), p(x.v), i(x.cols)];
        self.launch("pick_word", ((n as u32, 1), 256, 0), &[&args[..], &more].concat())
    }

    /// The encodings of `steps` steps of time, by the parameters `name.linear` and `name.norm`.
    pub fn time(&self, name: &str, steps: usize, h: usize) -> Result<Var<'a>> {
        let [w, b, nw, nb] =
            ["linear.weight", "linear.bias", "norm.weight", "norm.bias"].map(|x| format!("{name}.{x}"));
        let (out, lin) = (self.var(steps, h)?, self.constant(steps, h)?);
        let stats = self.room(2 * steps)?;
        let one = |bytes: usize| ((1, 1), 1024, bytes as u32);
        let (w_at, nw_at) = (self.w(&w)?.holding(h * h, &w)?, self.w(&nw)?.holding(h, &nw)?);
        let (b_at, nb_at) = (self.w(&b)?.holding(h, &b)?, self.w(&nb)?.holding(h, &nb)?);
        let sizes = [i(steps), i(h)];
        let args = [p(w_at), p(b_at), p(nw_at), p(nb_at), p(out.v), p(lin.v), p(stats)];
        // By a cluster of blocks, where the card has such.
        let cluster =
            [64, 128, 256, 512].into_iter().position(|n| n == h && major(self.device()).is_ok_and(|m| m >= 9));
        let together = |names: [&'static str; 4]| cluster.map(|k| (names[k], (((h / 32) as u32, 1), h as u32, 0)));
        match together(["time_fwd_2", "time_fwd_4", "time_fwd_8", "time_fwd_16"]) {
            Some((name, grid)) => self.launch(name, grid, &[&args[..], &sizes[..1]].concat())?,
            None => self.launch("time_fwd", one(8 * h), &[&args[..], &sizes].concat())?,
        }
        let back = together(["time_bwd_2", "time_bwd_4", "time_bwd_8", "time_bwd_16"]);
        if let (Some(dw), Some(db)) = (self.g(&w)?, self.g(&b)?) {
            let d_lin = self.constant(steps, h)?;
            let norm = [p(self.g(&nw)?), p(self.g(&nb)?)];
            self.on_backward(move |t| {
                let args = [p(w_at), p(nw_at), p(out.v), p(lin.v), p(stats), p(out.d), p(d_lin.v)];
                match back {
                    Some((name, grid)) => t.launch(name, grid, &[&args[..], &norm, &sizes[..1]].concat())?,
                    None => t.launch("time_bwd", one(4 * h), &[&args[..], &norm, &sizes].concat())?,
                }
                // Row t of d_lin is of what was made from row t − 1.
                t.column_sum(d_lin, None, db)?;
                if steps == 1 {
                    return zero(t.device(), dw.part(0, h * h));
                }
                let a = d_lin.rows(1, steps - 1).mat().t();
                product(t.device(), (h, h, steps - 1), a, out.mat(), 0.0, Mat::new(dw, h), 1)
            });
        }
        Ok(out)
    }

    /// The weighted negative log-likelihood of targets: to `loss`, with the gradient of the logits.
    pub fn loss(
        &self,
        logits: Var<'a>,
        targets: DeviceSlice<'a, u32>,
        weights: DeviceSlice<'a, f32>,
        bonus: Option<DeviceSlice<'a, f32>>,
        loss: DeviceSlice<'a, f32>,
    ) -> Result<()> {
        let (n, v) = (logits.rows, logits.cols);
        logits.side_by_side("logits")?;
        self.flush()?;
        let (lse, entropy) = (self.room(n)?, Some(self.room(n)?));
        let places = super::loss::Places { logits: logits.v, targets, weights, bonus, lse, entropy };
        super::loss::forward(self.device(), (n, v), &places, self.room(n)?, loss)?;
        // Written, not added: nothing else uses logits.
        self.on_backward(move |t| super::loss::backward(t.device(), (n, v), &places, None, logits.gradient()?));
        Ok(())
    }
}
