//! The tape's operations for walkers: actions as the network sees them, their scores, and steps of the environment.

use super::*;

impl<'a> Tape<'a> {
    /// The embeddings `[N, F + 4]` of actions made.
    pub fn action_embeddings(
        &self,
        transitions: Transitions<'a>,
        poses: DeviceSlice<'a, u32>,
        actions: DeviceSlice<'a, u32>,
        out: Var<'a>,
    ) -> Result<()> {
        let n = out.rows;
        out.shaped(n, transitions.features + 4, "the embeddings of actions")?
            .side_by_side("the embeddings of actions")?;
        poses.holding(n, "the poses of actions")?;
        actions.holding(n, "actions")?;
        let args = [Arg::Transitions(transitions.args()?), p(poses), p(actions), p(out.v), i(n)];
        self.launch("action_embeddings", each(n * out.cols), &args)
    }

    /// Logits `[N, A]` from `z` `[N, F + 5]` and the bias of all.
    pub fn action_scores(
        &self,
        z: Var<'a>,
        transitions: Transitions<'a>,
        poses: DeviceSlice<'a, u32>,
        bias: DeviceSlice<'a, f32>,
        logits: Var<'a>,
    ) -> Result<()> {
        let n = z.rows;
        z.shaped(n, transitions.features + 5, "the input of scores")?.side_by_side("the input of scores")?;
        logits.shaped(n, transitions.actions, "the scores of actions")?.side_by_side("the scores of actions")?;
        poses.holding(n, "the poses of scores")?;
        bias.holding(1, "the bias of scores")?;
        let (grid, table) = (((n as u32, 1), 128, 0), Arg::Transitions(transitions.args()?));
        self.launch("score_fwd", grid, &[table, p(z.v), p(poses), p(bias), p(logits.v)])?;
        self.on_backward(move |t| {
            t.launch("score_bwd", grid, &[table, p(poses), p(logits.gradient()?), p(z.gradient()?)])
        });
        Ok(())
    }

    /// A step of walkers: `poses` are those now and after them those of the next step.
    #[allow(clippy::too_many_arguments)]
    pub fn environment_step(
        &self,
        z: Var<'a>,
        transitions: Transitions<'a>,
        bias: DeviceSlice<'a, f32>,
        poses: DeviceSlice<'a, u32>,
        draws: DeviceSlice<'a, f32>,
        done: DeviceSlice<'a, u32>,
        actions: DeviceSlice<'a, u32>,
        embedding: Var<'a>,
        last: bool,
    ) -> Result<()> {
        let n = z.rows;
        z.shaped(n, transitions.features + 5, "the input of scores")?;
        embedding.shaped(n, transitions.features + 4, "the embeddings of actions")?;
        bias.holding(1, "the bias of scores")?;
        draws.holding(n, "the draws of walkers")?;
        done.holding(n, "whether walkers stopped")?;
        actions.holding(n, "the actions of walkers")?;
        let (now, after) = (poses.part(0, n), poses.part(n, n));
        let places = [
            address(z.v),
            address(bias),
            address(now),
            address(after),
            address(draws),
            address(done),
            address(actions),
            address(embedding.v),
        ];
        let sizes = [last.into(), z.ld as i32, embedding.ld as i32];
        if self.gather(n, Kind::EnvironmentStep, &sizes, &places, Some(transitions))? {
            return Ok(());
        }
        let walkers = [p(bias), p(now), p(after), p(draws), p(done), p(actions)];
        let more = [p(embedding.v), i(embedding.ld), i(last.into())];
        let args = [&[Arg::Transitions(transitions.args()?), p(z.v), i(z.ld)][..], &walkers, &more].concat();
        self.launch("environment_step", ((n as u32, 1), 256, 0), &args)
    }

    /// A parameter `[n, F + D]` that meets action embeddings, with its last D columns summed to 4, and one more column of
    /// a bias where there is one: `[n, F + 4 (+ 1)]`. Its gradient is unfolded at the end.
    pub fn fold_directions(
        &self,
        layer: &str,
        biased: bool,
        rows: usize,
        (f, d): (usize, usize),
        ld: usize,
    ) -> Result<Var<'a>> {
        let out = self.fold_directions_scaled(layer, biased, rows, (f, d), ld, None)?;
        let width = out.cols;
        let dw = self.weight_gradient(layer)?;
        let db = if biased { self.bias_gradient(layer)? } else { None };
        if self.learns() {
            // After the gradient of what was folded has been made, which is at the end.
            self.last.borrow_mut().push(Box::new(move |t| {
                let args = [p(out.d), i(width), p(dw), i(ld), p(db), i(rows), i(f), i(d)];
                t.launch("unfold_directions", each(rows * (f + d)), &args)
            }));
        }
        Ok(out)
    }

    /// [`Tape::fold_directions`] with row m times `scale[m]`, a parameter (`None`: as it is), which is not learnt.
    pub fn fold_directions_scaled(
        &self,
        layer: &str,
        biased: bool,
        rows: usize,
        (f, d): (usize, usize),
        ld: usize,
        scale: Option<DeviceSlice<'a, f32>>,
    ) -> Result<Var<'a>> {
        let width = f + 4 + usize::from(biased);
        let out = self.var(rows, width)?;
        let w = self.weight_of(layer)?.holding_strided(&[(rows, ld), (f + d, 1)], "a weight of actions")?;
        let b = if biased { Some(self.bias_of(layer)?.holding(rows, "a bias of actions")?) } else { None };
        let scale = scale.map(|scale| scale.holding(rows, "the scale of a weight of actions")).transpose()?;
        let args = [p(w), i(ld), p(b), p(scale), p(out.v), i(width), i(rows), i(f), i(d)];
        self.launch("fold_directions", each(rows * width), &args)?;
        Ok(out)
    }
}
