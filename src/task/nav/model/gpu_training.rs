//! Both NAV models on a GPU, step by step from the operations of [`crate::nn::cuda::tape`]: what [`crate::task::nav::model::student`]
//! and [`crate::task::nav::model::describer`] say in Candle's operations, which they are compared with (`model::agreement`). Biases
//! and encodings of time lie in the results before products are added to them; what all steps have in common is one product.

use crate::nn::cuda::DeviceSlice;
use crate::nn::cuda::operands::{Attention, Heads, Transitions, Var, Weight};
use crate::nn::cuda::tape::Tape;
use crate::task::nav::model::NavSizes;
use crate::task::nav::model::names::*;
use candle_core::Result;

/// Requests on the device: B of L ids each.
pub(crate) struct Requests<'a> {
    pub rows: usize,
    pub length: usize,
    /// Ids `[B, L]`, real lengths `[B]`, and how many positions the summary counts `[B]`.
    pub ids: DeviceSlice<'a, u32>,
    pub lengths: DeviceSlice<'a, u32>,
    pub counted: DeviceSlice<'a, u32>,
}

/// A sublayer's result, the norm that follows, and what that keeps.
struct Normed<'a> {
    name: String,
    y: Var<'a>,
    stats: DeviceSlice<'a, f32>,
}

/// A pass over one of the models.
pub(crate) struct Pass<'a, 'b> {
    pub tape: &'b Tape<'a>,
    pub sizes: NavSizes,
    pub transitions: Transitions<'a>,
}

impl<'a> Pass<'a, '_> {
    fn heads(&self) -> Heads {
        let NavSizes { hidden, heads, .. } = self.sizes;
        Heads {
            memories: 0,
            from_memory: 1,
            queries: 1,
            from_query: 0,
            memory: 0,
            entry: 0,
            value: hidden as i32,
            heads: heads as i32,
            size: (hidden / heads) as i32,
            ldw: 0,
            entries: 0,
            scale: 1.0 / ((hidden / heads) as f32).sqrt(),
        }
    }

    /// The sizes of the attentions of R decoders over their own outputs, entries R rows apart in `memory`; `most` in the end.
    pub(super) fn own_heads(&self, memory: Var<'a>, rows: usize, most: usize) -> Heads {
        Heads {
            memories: rows as i32,
            memory: memory.ld as i32,
            entry: (rows * memory.ld) as i32,
            ldw: most as i32,
            ..self.heads()
        }
    }

    /// The sizes of attentions of `queries` of each memory over memories that are there, of `places` entries each: `[memories, places]`, or
    /// (`by_step`) `[places, memories]`.
    pub(super) fn source_heads(&self, memory: Var<'a>, places: usize, queries: usize, by_step: bool) -> Heads {
        let b = memory.rows / places;
        let (of, entry) = if by_step { (1, b) } else { (places, 1) };
        Heads {
            memories: b as i32,
            queries: queries as i32,
            from_query: b as i32,
            memory: (of * memory.ld) as i32,
            entry: (entry * memory.ld) as i32,
            ldw: places as i32,
            entries: places as i32,
            ..self.heads()
        }
    }

    /// Result of a linear layer, which is added to its bias.
    fn result(&self, name: &str, rows: usize) -> Result<Var<'a>> {
        let y = self.tape.var(rows, self.tape.weight(name)?.m)?;
        Ok(Var { bias: Some(self.tape.bias_of(name)?), ..y })
    }

    /// Result of layers side by side, which is added to their biases.
    fn results(&self, parts: &[String], rows: usize) -> Result<Var<'a>> {
        let m = parts.len() * self.sizes.hidden;
        let bias = self.tape.constant(1, m)?;
        self.biases(parts, bias)?;
        Ok(Var { bias: Some(bias.v), ..self.tape.var(rows, m)? })
    }

    /// A linear layer over all rows at once.
    fn linear(&self, name: &str, x: Var<'a>) -> Result<Var<'a>> {
        let y = self.result(name, x.rows)?;
        self.tape.linear(x, self.tape.weight(name)?, y, false)?;
        self.tape.learn_layer(name, x, y)?;
        Ok(y)
    }

    fn normed(&self, name: &str, y: Var<'a>) -> Result<Normed<'a>> {
        Ok(Normed { name: part(name, NORM), y, stats: self.tape.room(2 * y.rows)? })
    }

    /// `out` = LayerNorm(a + y), rows from `from` on.
    fn norm(&self, a: Var<'a>, n: &Normed<'a>, from: usize, out: Var<'a>) -> Result<()> {
        let at = (self.tape.weight_of(&n.name)?, self.tape.bias_of(&n.name)?);
        self.tape.norm(a, n.y.rows(from, out.rows), at, out, n.stats.part(2 * from, 2 * out.rows))
    }

    fn learn_norm(&self, a: Var<'a>, n: &Normed<'a>, out: Var<'a>) -> Result<()> {
        let at = (self.tape.weight_gradient(&n.name)?, self.tape.bias_gradient(&n.name)?);
        self.tape.learn_norm(a, n.y, out, n.stats, at);
        Ok(())
    }

    /// Several layers over the same input as one weight, side by side: those of `parts` with the first `inputs` columns.
    fn joined(&self, parts: &[String], inputs: usize) -> Result<Weight<'a>> {
        let weights = parts.iter().map(|name| self.tape.weight(name)).collect::<Result<Vec<_>>>()?;
        let m = weights.iter().map(|w| w.m).sum();
        let all = self.tape.constant(m, inputs)?;
        let mut from = 0;
        for w in weights {
            self.tape.copy(w.at, w.ld, all.rows(from, w.m))?;
            from += w.m;
        }
        Ok(Weight { at: all.v, ld: inputs, m, k: inputs, transposed: false })
    }

    /// The biases of layers side by side, in `y`.
    fn biases(&self, parts: &[String], y: Var<'a>) -> Result<()> {
        let h = self.sizes.hidden;
        for (i, name) in parts.iter().enumerate() {
            self.tape.bias_init(y.cols(i * h, h), self.tape.bias_of(name)?, None)?;
        }
        Ok(())
    }

    /// The attention over a memory that is there, of `places` entries each: `[memories, places]`, or (`by_step`) `[places,
    /// memories]`. All of `steps` steps with `copies` queries of each memory.
    fn source(
        &self,
        name: &str,
        memory: Var<'a>,
        lengths: DeviceSlice<'a, u32>,
        places: usize,
        (steps, copies): (usize, usize),
        by_step: bool,
    ) -> Result<Attention<'a>> {
        let h = self.sizes.hidden;
        let b = memory.rows / places;
        let n = steps * copies * b;
        let heads = self.source_heads(memory, places, steps * copies, by_step);
        let q = self.result(&part(name, QUERY), n)?;
        let all = Attention {
            heads,
            q,
            memory,
            lengths: Some(lengths),
            seen: self.tape.var(n, h)?,
            kept: self.tape.kept(n * heads.heads as usize * places)?,
        };
        self.tape.learn_memory(all);
        Ok(all)
    }

    /// The attention over a decoder's own outputs: entries in `memory`, R rows a step. All steps.
    fn growing(&self, name: &str, memory: Var<'a>, rows: usize, steps: usize) -> Result<Attention<'a>> {
        let h = self.sizes.hidden;
        let n = steps * rows;
        let heads = self.own_heads(memory, rows, steps);
        Ok(Attention {
            heads,
            q: self.result(&part(name, QUERY), n)?,
            memory,
            lengths: None,
            seen: self.tape.var(n, h)?,
            kept: self.tape.kept(n * heads.heads as usize * steps)?,
        })
    }

    /// One step of an attention block: the query of `x`, what is seen, and LayerNorm(x + its projection) to `out`.
    #[allow(clippy::too_many_arguments)]
    fn attend(
        &self,
        name: &str,
        all: &Attention<'a>,
        (t, rows, copies): (usize, usize, usize),
        asked: bool,
        x: Var<'a>,
        n: &Normed<'a>,
        out: Var<'a>,
    ) -> Result<()> {
        let from = t * rows;
        let mut a = all.step(from, rows);
        let own = all.lengths.is_none();
        a.heads.queries = if own { 1 } else { copies as i32 };
        if own {
            a.heads.entries = t as i32 + 1;
        }
        if !asked {
            self.tape.linear(x, self.tape.weight(&part(name, QUERY))?, a.q, false)?;
        }
        self.tape.attend(a, own)?;
        let y = n.y.rows(from, rows);
        self.tape.linear(a.seen, self.tape.weight(&part(name, OUTPUT))?, y, false)?;
        self.norm(x, n, from, out)
    }

    /// The weights of an attention block from all its steps: inputs `x`, outputs `out`.
    fn learn_attention(&self, name: &str, all: &Attention<'a>, x: Var<'a>, n: &Normed<'a>, out: Var<'a>) -> Result<()> {
        self.tape.learn_layer(&part(name, QUERY), x, all.q)?;
        self.tape.learn_layer(&part(name, OUTPUT), all.seen, n.y)?;
        self.learn_norm(x, n, out)
    }

    /// One step of a feed-forward block.
    fn forward(&self, name: &str, from: usize, x: Var<'a>, inner: Var<'a>, n: &Normed<'a>, out: Var<'a>) -> Result<()> {
        let inner = inner.rows(from, x.rows);
        self.tape.linear_relu(x, self.tape.weight(&part(name, INNER))?, inner)?;
        self.tape.linear(inner, self.tape.weight(&part(name, OUTER))?, n.y.rows(from, x.rows), false)?;
        self.norm(x, n, from, out)
    }

    fn learn_forward(&self, name: &str, x: Var<'a>, inner: Var<'a>, n: &Normed<'a>, out: Var<'a>) -> Result<()> {
        self.tape.learn_layer(&part(name, INNER), x, inner)?;
        self.tape.learn_layer(&part(name, OUTER), inner, n.y)?;
        self.learn_norm(x, n, out)
    }

    /// The key of an attention over views, which maps queries into their space.
    fn key(&self, name: &str) -> Result<Weight<'a>> {
        let NavSizes { hidden: h, features: f, .. } = self.sizes;
        let at = self.tape.weight_of(&part(name, KEY))?;
        Ok(Weight { at, ld: f, m: f, k: h, transposed: true })
    }

    /// Gradients of layers that were joined, without the biases of keys, which have none.
    fn learn_joined(&self, parts: &[String], x: Var<'a>, y: Var<'a>) -> Result<()> {
        let h = self.sizes.hidden;
        for (i, name) in parts.iter().enumerate() {
            let bias = if name.ends_with(".key") { None } else { self.tape.bias_gradient(name)? };
            let w = self.tape.weight(name)?;
            self.tape.learn(x, y.cols(i * h, h), (self.tape.weight_gradient(name)?, w.ld), false, bias);
        }
        Ok(())
    }

    /// Layers over all rows of something read, side by side.
    fn of_read(&self, parts: &[String], x: Var<'a>) -> Result<Var<'a>> {
        let y = self.results(parts, x.rows)?;
        self.tape.linear(x, self.joined(parts, x.cols)?, y, false)?;
        self.learn_joined(parts, x, y)?;
        Ok(y)
    }

    /// Keys and values of something read.
    pub(super) fn entries(&self, name: &str, x: Var<'a>) -> Result<Var<'a>> {
        self.of_read(&[part(name, KEY), part(name, VALUE)], x)
    }

    /// The request encoder: contexts `[B · L, H]` and summaries `[B, H]`.
    pub(super) fn read(
        &self,
        requests: &Requests<'a>,
        encodings: Option<DeviceSlice<'a, f32>>,
    ) -> Result<(Var<'a>, Var<'a>)> {
        let (h, tape) = (self.sizes.hidden, self.tape);
        let (b, l) = (requests.rows, requests.length);
        let x = tape.var(b * l, h)?;
        tape.embed(REQUEST_EMBEDDING, requests.ids, (h as f32).sqrt(), (encodings, l), x)?;
        let name = ENCODER_ATTENTION;
        let parts = [QUERY, KEY, VALUE].map(|own| part(name, own));
        let all = self.of_read(&parts, x)?;
        let (q, memory) = (all.cols(0, h), all.cols(h, 2 * h));
        let heads = Heads {
            memories: b as i32,
            from_memory: l as i32,
            queries: l as i32,
            from_query: 1,
            memory: (l * memory.ld) as i32,
            entry: memory.ld as i32,
            ldw: l as i32,
            entries: l as i32,
            ..self.heads()
        };
        let kept = tape.kept(b * l * l * self.sizes.heads)?;
        let all = Attention { heads, q, memory, lengths: Some(requests.lengths), seen: tape.var(b * l, h)?, kept };
        tape.learn_memory(all);
        tape.attend(all, false)?;
        let n = self.normed(name, self.linear(&part(name, OUTPUT), all.seen)?)?;
        let attended = tape.var(b * l, h)?;
        self.norm(x, &n, 0, attended)?;
        self.learn_norm(x, &n, attended)?;
        let name = ENCODER_FORWARD;
        let inner = self.result(&part(name, INNER), b * l)?;
        tape.linear_relu(attended, tape.weight(&part(name, INNER))?, inner)?;
        tape.learn_layer(&part(name, INNER), attended, inner)?;
        let n = self.normed(name, self.linear(&part(name, OUTER), inner)?)?;
        let context = tape.var(b * l, h)?;
        self.norm(attended, &n, 0, context)?;
        self.learn_norm(attended, &n, context)?;
        let summary = tape.var(b, h)?;
        tape.mean(context, requests.counted, summary)?;
        Ok((context, summary))
    }

    /// tanh of the bridge.
    pub(super) fn bridge(&self, x: Var<'a>) -> Result<Var<'a>> {
        let y = self.linear(BRIDGE, x)?;
        self.tape.tanh(y)?;
        Ok(y)
    }

    /// The student on `copies` known walks of each request, S steps: scores' inputs `[S · R, F + 5]`. Poses and actions `[S, R]`.
    /// `encodings`: of positions, where there are any.
    pub fn student(
        &self,
        requests: &Requests<'a>,
        encodings: Option<DeviceSlice<'a, f32>>,
        (poses, actions): (DeviceSlice<'a, u32>, DeviceSlice<'a, u32>),
        steps: usize,
        copies: usize,
    ) -> Result<Var<'a>> {
        let NavSizes { hidden: h, features: f, direction: d, .. } = self.sizes;
        let (tape, transitions) = (self.tape, self.transitions);
        let r = requests.rows * copies;
        let n = steps * r;
        let (context, summary) = self.read(requests, encodings)?;
        let initial = self.bridge(summary)?;
        // Outputs of both decoders; the first are the initial state.
        let (outputs, texts) = (tape.var(n + r, h)?, tape.var(n + r, h)?);
        tape.repeat(initial, outputs.rows(0, r))?;
        tape.repeat(initial, texts.rows(0, r))?;
        let memory = self.entries(TEXT_REQUEST, context)?;
        let time = tape.time(TIME, steps, h)?;

        let from_output = [part(CURRENT_VIEW, QUERY), part(STATE_MEMORY, KEY), part(STATE_MEMORY, VALUE)];
        let w_output = self.joined(&from_output, h)?;
        let from_outputs = self.results(&from_output, n)?;
        let from_text =
            [part(NEXT_VIEW, QUERY), STATE_INPUT.to_owned(), part(TEXT_MEMORY, KEY), part(TEXT_MEMORY, VALUE)];
        let w_text = self.joined(&from_text, h)?;
        let from_texts = tape.var(n + r, 4 * h)?;
        self.biases(&from_text, from_texts)?;
        let state_bias = tape.bias_of(STATE_INPUT)?;
        tape.flush()?; // these rows are filled twice
        tape.bias_init(from_texts.cols(h, h).rows(r, n), state_bias, Some((time, r)))?;

        let text_input = tape.weight(TEXT_INPUT)?;
        let previous = tape.fold_directions(TEXT_INPUT, false, h, (f, d), text_input.ld)?;
        let w_previous = Weight { at: previous.v, ld: f + 4, m: h, k: f + 4, transposed: false };
        let w_current = text_input.inputs(f + d, f);
        let state_input = tape.weight(STATE_INPUT)?;
        let w_next = state_input.inputs(h, f);
        let (current, next) = (self.key(CURRENT_VIEW)?, self.key(NEXT_VIEW)?);
        let inputs = tape.var(n, h)?;
        tape.bias_init(inputs, tape.bias_of(TEXT_INPUT)?, Some((time, r)))?;
        let made = tape.constant(n, f + 4)?;
        tape.action_embeddings(transitions, poses, actions, made)?;
        if steps > 1 {
            tape.linear(made.rows(0, n - r), w_previous, inputs.rows(r, n - r), false)?;
        }

        let (query1, query2) = (tape.var(n, f)?, tape.var(n, f)?);
        let (seen1, seen2) = (tape.var(n, f)?, tape.var(n, f)?);
        let (kept1, kept2) = (tape.room(36 * n)?, tape.room(36 * n)?);
        let own = self.growing(TEXT_MEMORY, from_texts.cols(2 * h, 2 * h), r, steps)?;
        let own_n = self.normed(TEXT_MEMORY, self.result(&part(TEXT_MEMORY, OUTPUT), n)?)?;
        let source = self.source(TEXT_REQUEST, memory, requests.lengths, requests.length, (steps, copies), false)?;
        let source_n = self.normed(TEXT_REQUEST, self.result(&part(TEXT_REQUEST, OUTPUT), n)?)?;
        let (after_own, after_source) = (tape.var(n, h)?, tape.var(n, h)?);
        let text_inner = self.result(&part(TEXT_FORWARD, INNER), n)?;
        let text_n = self.normed(TEXT_FORWARD, self.result(&part(TEXT_FORWARD, OUTER), n)?)?;
        let state = self.growing(STATE_MEMORY, from_outputs.cols(h, 2 * h), r, steps)?;
        let state_n = self.normed(STATE_MEMORY, self.result(&part(STATE_MEMORY, OUTPUT), n)?)?;
        let after_state = tape.var(n, h)?;
        let state_inner = self.result(&part(STATE_FORWARD, INNER), n)?;
        let forward_n = self.normed(STATE_FORWARD, self.result(&part(STATE_FORWARD, OUTER), n)?)?;
        let gated = tape.var(n, 2 * h)?;
        let gate = self.result(STATE_GATE, n)?;

        let score_w = tape.fold_directions(PREDICTOR_ACTION, true, h, (f, d), f + d)?;
        let w_score = Weight { at: score_w.v, ld: f + 5, m: f + 5, k: h, transposed: true };
        let out_w = tape.weight_of(PREDICTOR_OUTPUT)?;
        let projected = self.result(PREDICTOR_STATE, n)?;
        let (asked, scores) = (tape.var(n, h)?, tape.var(n, f + 5)?);
        let first = texts.rows(0, r);
        tape.linear(first, w_text, from_texts.rows(0, r), false)?;
        let gate_w = tape.weight(STATE_GATE)?;
        tape.begin_steps(r)?;
        for t in 0..steps {
            let (at, places) = (t * r, poses.part(t * r, r));
            let now = |x: Var<'a>| x.rows(at, r);
            let output = now(outputs);
            tape.linear(output, w_output, now(from_outputs), false)?;
            tape.linear(now(from_outputs).cols(0, h), current, now(query1), true)?;
            tape.attend_views(now(query1), transitions, places, now(seen1), kept1.part(36 * at, 36 * r))?;
            let x = now(inputs);
            tape.linear(now(seen1), w_current, x, false)?;
            self.attend(TEXT_MEMORY, &own, (t, r, copies), false, x, &own_n, now(after_own))?;
            self.attend(TEXT_REQUEST, &source, (t, r, copies), false, now(after_own), &source_n, now(after_source))?;
            let text = texts.rows(at + r, r);
            self.forward(TEXT_FORWARD, at, now(after_source), text_inner, &text_n, text)?;

            let from_text = from_texts.rows(at + r, r);
            tape.linear(text, w_text, from_text, false)?;
            tape.linear(from_text.cols(0, h), next, now(query2), true)?;
            tape.attend_views(now(query2), transitions, places, now(seen2), kept2.part(36 * at, 36 * r))?;
            let x = from_text.cols(h, h);
            tape.linear(now(seen2), w_next, x, false)?;
            self.attend(STATE_MEMORY, &state, (t, r, copies), false, x, &state_n, now(after_state))?;
            let (u, recalled) = (now(gated).cols(0, h), now(gated).cols(h, h));
            self.forward(STATE_FORWARD, at, now(after_state), state_inner, &forward_n, u)?;
            tape.similarity_memory(x, outputs.rows(0, at + r), t, recalled)?;
            tape.linear(now(gated), gate_w, now(gate), false)?;
            tape.gate(now(gated), now(gate), outputs.rows(at + r, r))?;
        }
        tape.end_steps(r)?;
        tape.linear(outputs.rows(r, n), tape.weight(PREDICTOR_STATE)?, projected, false)?;
        tape.scale(projected, out_w, asked, tape.weight_gradient(PREDICTOR_OUTPUT)?)?;
        tape.linear(asked, w_score, scores, true)?;
        self.learn_joined(&from_output, outputs.rows(0, n), from_outputs)?;
        self.learn_joined(&from_text, texts, from_texts)?;
        for (name, query, of) in [(CURRENT_VIEW, query1, from_outputs), (NEXT_VIEW, query2, from_texts.rows(r, n))] {
            tape.learn(of.cols(0, h), query, (tape.weight_gradient(&part(name, KEY))?, f), true, None);
        }
        let text_g = tape.weight_gradient(TEXT_INPUT)?.map(|all| all.rest(f + d));
        if steps > 1 {
            tape.learn(made.rows(0, n - r), inputs.rows(r, n - r), (previous.d, f + 4), false, None);
        }
        tape.learn(seen1, inputs, (text_g, text_input.ld), false, tape.bias_gradient(TEXT_INPUT)?);
        let state_g = tape.weight_gradient(STATE_INPUT)?.map(|all| all.rest(h));
        tape.learn(seen2, from_texts.cols(h, h).rows(r, n), (state_g, state_input.ld), false, None);
        self.learn_attention(TEXT_MEMORY, &own, inputs, &own_n, after_own)?;
        self.learn_attention(TEXT_REQUEST, &source, after_own, &source_n, after_source)?;
        self.learn_forward(TEXT_FORWARD, after_source, text_inner, &text_n, texts.rows(r, n))?;
        self.learn_attention(STATE_MEMORY, &state, from_texts.cols(h, h).rows(r, n), &state_n, after_state)?;
        self.learn_forward(STATE_FORWARD, after_state, state_inner, &forward_n, gated.cols(0, h))?;
        tape.learn_layer(STATE_GATE, gated, gate)?;
        tape.learn_layer(PREDICTOR_STATE, outputs.rows(r, n), projected)?;
        tape.learn(asked, scores, (score_w.d, f + 5), true, None);
        Ok(scores)
    }

    /// The path encoder on B known walks of S steps: contexts `[S · B, H]`.
    fn path(&self, course: (DeviceSlice<'a, u32>, DeviceSlice<'a, u32>), b: usize, steps: usize) -> Result<Var<'a>> {
        let NavSizes { hidden: h, features: f, direction: d, .. } = self.sizes;
        let (tape, transitions, n) = (self.tape, self.transitions, steps * b);
        let (poses, actions) = course;
        let outputs = tape.var(n + b, h)?;
        tape.bias_init(outputs.rows(0, b), None, None)?;
        let time = tape.time(PATH_TIME, steps, h)?;
        let from_output = [part(PATH_VIEW, QUERY), part(PATH_MEMORY, KEY), part(PATH_MEMORY, VALUE)];
        let w_output = self.joined(&from_output, h)?;
        let from_outputs = self.results(&from_output, n)?;
        let input = tape.weight(PATH_INPUT)?;
        let brought = tape.fold_directions(PATH_INPUT, false, h, (f, d), input.ld)?;
        let w_brought = Weight { at: brought.v, ld: f + 4, m: h, k: f + 4, transposed: false };
        let w_current = input.inputs(f + d, f);
        let inputs = tape.var(n, h)?;
        tape.bias_init(inputs, tape.bias_of(PATH_INPUT)?, Some((time, b)))?;
        let made = tape.constant(n, f + 4)?;
        tape.action_embeddings(transitions, poses, actions, made)?;
        tape.linear(made, w_brought, inputs, false)?;
        let key = self.key(PATH_VIEW)?;
        let (query, seen, kept) = (tape.var(n, f)?, tape.var(n, f)?, tape.room(36 * n)?);
        let own = self.growing(PATH_MEMORY, from_outputs.cols(h, 2 * h), b, steps)?;
        let own_n = self.normed(PATH_MEMORY, self.result(&part(PATH_MEMORY, OUTPUT), n)?)?;
        let after_own = tape.var(n, h)?;
        let inner = self.result(&part(PATH_FORWARD, INNER), n)?;
        let forward_n = self.normed(PATH_FORWARD, self.result(&part(PATH_FORWARD, OUTER), n)?)?;
        tape.begin_steps(b)?;
        for t in 0..steps {
            let at = t * b;
            let now = |x: Var<'a>| x.rows(at, b);
            tape.linear(now(outputs), w_output, now(from_outputs), false)?;
            tape.linear(now(from_outputs).cols(0, h), key, now(query), true)?;
            tape.attend_views(now(query), transitions, poses.part(at, b), now(seen), kept.part(36 * at, 36 * b))?;
            tape.linear(now(seen), w_current, now(inputs), false)?;
            self.attend(PATH_MEMORY, &own, (t, b, 1), false, now(inputs), &own_n, now(after_own))?;
            self.forward(PATH_FORWARD, at, now(after_own), inner, &forward_n, outputs.rows(at + b, b))?;
        }
        tape.end_steps(b)?;
        self.learn_joined(&from_output, outputs.rows(0, n), from_outputs)?;
        tape.learn(from_outputs.cols(0, h), query, (tape.weight_gradient(&part(PATH_VIEW, KEY))?, f), true, None);
        tape.learn(made, inputs, (brought.d, f + 4), false, None);
        let w = tape.weight_gradient(PATH_INPUT)?.map(|all| all.rest(f + d));
        tape.learn(seen, inputs, (w, input.ld), false, tape.bias_gradient(PATH_INPUT)?);
        self.learn_attention(PATH_MEMORY, &own, inputs, &own_n, after_own)?;
        self.learn_forward(PATH_FORWARD, after_own, inner, &forward_n, outputs.rows(b, n))?;
        Ok(outputs.rows(b, n))
    }

    /// Logits `[T · B, V]` of known descriptions `ids` `[T, B]` of walks.
    pub fn describer(&self, paths: &Paths<'a>, ids: DeviceSlice<'a, u32>, words: usize) -> Result<Var<'a>> {
        let (h, tape) = (self.sizes.hidden, self.tape);
        let (b, s) = (paths.rows, paths.steps);
        let n = words * b;
        let context = self.path((paths.poses, paths.actions), b, s)?;
        let last = tape.var(b, h)?;
        tape.take(context, paths.last, last)?;
        let initial = self.bridge(last)?;
        let outputs = tape.var(n + b, h)?;
        tape.repeat(initial, outputs.rows(0, b))?;
        let time = tape.time(WORD_TIME, words, h)?;
        let memory = self.entries(WORD_PATH, context)?;
        let parts = [part(WORD_MEMORY, KEY), part(WORD_MEMORY, VALUE)];
        let entries = self.results(&parts, n)?;
        let w_entries = self.joined(&parts, h)?;
        let own = self.growing(WORD_MEMORY, entries, b, words)?;
        let own_n = self.normed(WORD_MEMORY, self.result(&part(WORD_MEMORY, OUTPUT), n)?)?;
        let path = self.source(WORD_PATH, memory, paths.lengths, s, (words, 1), true)?;
        let path_n = self.normed(WORD_PATH, self.result(&part(WORD_PATH, OUTPUT), n)?)?;
        let (after_own, after_path) = (tape.var(n, h)?, tape.var(n, h)?);
        let inner = self.result(&part(WORD_FORWARD, INNER), n)?;
        let forward_n = self.normed(WORD_FORWARD, self.result(&part(WORD_FORWARD, OUTER), n)?)?;
        let (embedded, inputs) = (tape.var(n, h)?, tape.var(n, h)?);
        tape.embed(WORD_EMBEDDING, ids, 1.0, (None, 1), embedded)?;
        tape.bias_init(inputs, tape.bias_of(WORD_INPUT)?, Some((time, b)))?;
        tape.linear(embedded, tape.weight(WORD_INPUT)?, inputs, false)?;
        tape.learn_layer(WORD_INPUT, embedded, inputs)?;
        tape.linear(inputs, tape.weight(&part(WORD_MEMORY, QUERY))?, own.q, false)?;
        tape.begin_steps(b)?;
        for t in 0..words {
            let (at, place) = (t * b, (t, b, 1));
            let now = |x: Var<'a>| x.rows(at, b);
            tape.linear(now(outputs), w_entries, now(entries), false)?;
            self.attend(WORD_MEMORY, &own, place, true, now(inputs), &own_n, now(after_own))?;
            self.attend(WORD_PATH, &path, place, false, now(after_own), &path_n, now(after_path))?;
            self.forward(WORD_FORWARD, at, now(after_path), inner, &forward_n, outputs.rows(at + b, b))?;
        }
        tape.end_steps(b)?;
        self.learn_joined(&parts, outputs.rows(0, n), entries)?;
        self.learn_attention(WORD_MEMORY, &own, inputs, &own_n, after_own)?;
        self.learn_attention(WORD_PATH, &path, after_own, &path_n, after_path)?;
        self.learn_forward(WORD_FORWARD, after_path, inner, &forward_n, outputs.rows(b, n))?;
        self.linear(PREDICTOR, outputs.rows(b, n))
    }
}

/// Known walks on the device: B of S steps.
#[derive(Clone, Copy)]
pub(crate) struct Paths<'a> {
    pub rows: usize,
    pub steps: usize,
    /// Poses and actions `[S, B]`, lengths `[B]`, and the row (of `[S, B]`) that descriptions begin from `[B]`.
    pub poses: DeviceSlice<'a, u32>,
    pub actions: DeviceSlice<'a, u32>,
    pub lengths: DeviceSlice<'a, u32>,
    pub last: DeviceSlice<'a, u32>,
}
