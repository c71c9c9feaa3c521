//! Walks and descriptions as they are made on a GPU, step by step, where nothing is learnt. Linear layers that follow each other
//! are one beforehand, layers of the same input stand side by side (`Leading`, `Encoding`, `Wording`: made of weights alone), and
//! what only its own step needs has room for one step.

use crate::nn::cuda::DeviceSlice;
use crate::nn::cuda::operands::{Attention, Heads, Var, Weight};
use crate::nn::cuda::tape::After;
use crate::nn::cuda::weight_folding::FoldedProduct;
use crate::task::nav::model::gpu_training::{Pass, Paths, Requests};
use crate::task::nav::model::names::*;
use candle_core::Result;

/// Walkers: poses `[S + 1, R]`, of which the first are given; numbers to choose by `[S, R]`; whether each has stopped `[R]`;
/// and where the actions `[S, R]` are written.
pub(crate) struct Walkers<'a> {
    pub poses: DeviceSlice<'a, u32>,
    pub draws: DeviceSlice<'a, f32>,
    pub done: DeviceSlice<'a, u32>,
    pub actions: DeviceSlice<'a, u32>,
}

/// The buffers of a sublayer: its result before the norm, the norm's two numbers a row.
#[derive(Clone, Copy)]
struct Room<'a> {
    y: Var<'a>,
    stats: DeviceSlice<'a, f32>,
}

/// Layers side by side: `[out, in]` and their biases.
#[derive(Clone, Copy)]
struct Layers<'a> {
    weight: Weight<'a>,
    bias: DeviceSlice<'a, f32>,
}

impl Layers<'_> {
    /// The layers of the `m` outputs from `from` on.
    fn part(self, from: usize, m: usize) -> Self {
        Self { weight: self.weight.outputs(from, m), bias: self.bias.part(from, m) }
    }

    fn resident(self) -> Layers<'static> {
        Layers { weight: self.weight.resident(), bias: self.bias.resident() }
    }
}

/// The folded weights of a roll-out of some steps.
#[derive(Clone, Copy)]
pub(crate) struct Leading<'a> {
    /// Maps an output to a query to the views, scores of actions (to a multiple of four numbers), key and value.
    of_output: Layers<'a>,
    /// Maps what is seen and was done to the text decoder's input, and its query. Biases of each step.
    of_seen: Weight<'a>,
    seen_bias: Var<'a>,
    /// Maps a text to a query to the views, the state decoder's input and its query, key and value. Biases of each step.
    of_text: Layers<'a>,
    text_bias: Var<'a>,
    /// Maps what is seen then; the result is added to the state decoder's input and query.
    of_next: Weight<'a>,
}

impl Leading<'_> {
    /// The weights for a value that is kept beside their memory ([`DeviceSlice::resident`]).
    pub fn resident(self) -> Leading<'static> {
        Leading {
            of_output: self.of_output.resident(),
            of_seen: self.of_seen.resident(),
            seen_bias: self.seen_bias.resident(),
            of_text: self.of_text.resident(),
            text_bias: self.text_bias.resident(),
            of_next: self.of_next.resident(),
        }
    }
}

/// The folded weights of the path encoder for walks of some steps.
#[derive(Clone, Copy)]
struct Encoding<'a> {
    /// Maps an output to a query to the views, key and value.
    of_output: Layers<'a>,
    /// Inputs and their queries, of what was done and of what is seen; biases of each step.
    of_made: Weight<'a>,
    of_seen: Weight<'a>,
    bias: Var<'a>,
}

/// The folded weights that describe walks of some steps by some words.
#[derive(Clone, Copy)]
pub(crate) struct Wording<'a> {
    encoding: Encoding<'a>,
    /// Maps an output to logits (to a multiple of four numbers), key and value.
    of_output: Layers<'a>,
    /// The predictor's bias, and what keeps words from being written.
    bias: Var<'a>,
    /// Inputs with their queries, of each word and of each step.
    table: Var<'a>,
    time: Var<'a>,
}

impl Wording<'_> {
    /// The weights for a value that is kept beside their memory ([`DeviceSlice::resident`]).
    pub fn resident(self) -> Wording<'static> {
        let Encoding { of_output, of_made, of_seen, bias } = self.encoding;
        let (of_output, of_made) = (of_output.resident(), of_made.resident());
        Wording {
            encoding: Encoding { of_output, of_made, of_seen: of_seen.resident(), bias: bias.resident() },
            of_output: self.of_output.resident(),
            bias: self.bias.resident(),
            table: self.table.resident(),
            time: self.time.resident(),
        }
    }
}

/// Descriptions on their way.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    /// Descriptions.
    pub rows: usize,
    /// The first step reads these words; later ones from [`crate::nn::cuda::tape::Tape::pick`].
    pub previous: DeviceSlice<'a, u32>,
    wording: Wording<'a>,
    /// Words that there are.
    vocabulary: usize,
    /// Input of the step under way, with its query.
    input: Var<'a>,
    /// After each step.
    outputs: Var<'a>,
    /// Keys and values of the outputs.
    entries: Var<'a>,
    logits: Var<'a>,
    own: Attention<'a>,
    path: Attention<'a>,
    room: Room<'a>,
    after_own: Var<'a>,
    after_path: Var<'a>,
    inner: Var<'a>,
}

impl Words<'_> {
    /// The descriptions for a value that is kept beside their memory ([`DeviceSlice::resident`]).
    pub fn resident(self) -> Words<'static> {
        Words {
            rows: self.rows,
            previous: self.previous.resident(),
            wording: self.wording.resident(),
            vocabulary: self.vocabulary,
            input: self.input.resident(),
            outputs: self.outputs.resident(),
            entries: self.entries.resident(),
            logits: self.logits.resident(),
            own: self.own.resident(),
            path: self.path.resident(),
            room: Room { y: self.room.y.resident(), stats: self.room.stats.resident() },
            after_own: self.after_own.resident(),
            after_path: self.after_path.resident(),
            inner: self.inner.resident(),
        }
    }
}

impl<'a> Pass<'a, '_> {
    fn layer(&self, name: &str) -> Result<Layers<'a>> {
        Ok(Layers { weight: self.tape.weight(name)?, bias: self.tape.bias_of(name)? })
    }

    /// Room for layers side by side.
    fn side_by_side(&self, m: usize, k: usize) -> Result<(Var<'a>, Var<'a>)> {
        Ok((self.tape.constant(m, k)?, self.tape.constant(1, m)?))
    }

    fn layers((w, bias): (Var<'a>, Var<'a>)) -> Layers<'a> {
        Layers { weight: Self::as_weight(w), bias: bias.v }
    }

    fn as_weight(w: Var<'a>) -> Weight<'a> {
        Weight { at: w.v, ld: w.ld, m: w.rows, k: w.cols, transposed: false }
    }

    /// Copies layers with as many inputs to the rows from `from` on.
    fn put(&self, (w, bias): (Var<'a>, Var<'a>), from: usize, names: &[String]) -> Result<()> {
        let mut from = from;
        for name in names {
            let layer = self.layer(name)?;
            let m = layer.weight.m;
            self.tape.copy(layer.weight.at, layer.weight.ld, w.rows(from, m))?;
            self.tape.copy(layer.bias, m, bias.cols(from, m))?;
            from += m;
        }
        Ok(())
    }

    /// The queries of an attention over views, in the views' space, as one layer in the rows from `from` on: `keyᵀ·query`.
    fn view_query(
        &self,
        all: &mut Vec<FoldedProduct<'a>>,
        name: &str,
        (w, bias): (Var<'a>, Var<'a>),
        from: usize,
    ) -> Result<()> {
        let query = self.layer(&part(name, QUERY))?;
        let (f, h) = (self.sizes.features, self.sizes.hidden);
        let key = self.tape.weight_of(&part(name, KEY))?;
        let of_query = (query.weight.at, query.weight.ld, 1);
        all.push(FoldedProduct::new((key, 1, f), of_query, (f, h, h), w.rows(from, f))?);
        all.push(FoldedProduct::new((query.bias, 0, 1), (key, f, 1), (1, f, h), bias.cols(from, f))?);
        Ok(())
    }

    /// To rows `to` of a layer: the query of an attention block, of what a weight `[H, k]` makes.
    fn query_of(
        &self,
        name: &str,
        made: (DeviceSlice<'a, f32>, usize),
        k: usize,
        to: Var<'a>,
    ) -> Result<FoldedProduct<'a>> {
        let query = self.tape.weight(&part(name, QUERY))?;
        let h = self.sizes.hidden;
        FoldedProduct::new((query.at, query.ld, 1), (made.0, made.1, 1), (h, k, h), to)
    }

    /// To `to`: the queries of rows of inputs; with the query's bias or without.
    fn queries_of(&self, name: &str, x: Var<'a>, biased: bool, to: Var<'a>) -> Result<FoldedProduct<'a>> {
        let query = self.layer(&part(name, QUERY))?;
        let sizes = (x.rows, to.cols, x.cols);
        let one = FoldedProduct::new((x.v, x.ld, 1), (query.weight.at, 1, query.weight.ld), sizes, to)?;
        if biased { one.plus(query.bias) } else { Ok(one) }
    }

    fn room(&self, rows: usize) -> Result<Room<'a>> {
        Ok(Room { y: self.tape.constant(rows, self.sizes.hidden)?, stats: self.tape.room(2 * rows)? })
    }

    /// The attention of one step: queries `q` over their own earlier entries, R rows an entry; `most` entries in the end.
    fn over_own(&self, q: Var<'a>, memory: Var<'a>, most: usize) -> Result<Attention<'a>> {
        self.over(q, memory, self.own_heads(memory, q.rows, most), None)
    }

    /// The attention of one step: queries `q` over memories that are there, `places` entries each, stored `[memories, places]`, or
    /// (`by_step`) `[places, memories]`.
    fn over_source(
        &self,
        q: Var<'a>,
        memory: Var<'a>,
        lengths: DeviceSlice<'a, u32>,
        places: usize,
        by_step: bool,
    ) -> Result<Attention<'a>> {
        let queries = q.rows / (memory.rows / places);
        self.over(q, memory, self.source_heads(memory, places, queries, by_step), Some(lengths))
    }

    fn over(
        &self,
        q: Var<'a>,
        memory: Var<'a>,
        heads: Heads,
        lengths: Option<DeviceSlice<'a, u32>>,
    ) -> Result<Attention<'a>> {
        let kept = self.tape.room(q.rows * (heads.heads * heads.ldw) as usize)?;
        let seen = self.tape.constant(q.rows, self.sizes.hidden)?;
        Ok(Attention { heads, q, memory, lengths, seen, kept: (kept, None) })
    }

    fn apply(&self, x: Var<'a>, layers: Layers<'a>, to: (Var<'a>, Option<Var<'a>>), after: After<'a>) -> Result<()> {
        self.tape.apply(x, layers.weight, Some(layers.bias), to, after)
    }

    /// The rest of an attention block after its query: LayerNorm(x + the projection of what is seen) to `out`.
    fn attended(&self, name: &str, a: Attention<'a>, x: Var<'a>, room: Room<'a>, out: Var<'a>) -> Result<()> {
        self.tape.attend(a, false)?;
        self.apply(a.seen, self.layer(&part(name, OUTPUT))?, (room.y, None), After::Nothing)?;
        self.normalised(name, x, room, out)
    }

    fn normalised(&self, name: &str, x: Var<'a>, room: Room<'a>, out: Var<'a>) -> Result<()> {
        let norm = part(name, NORM);
        self.tape.norm(x, room.y, (self.tape.weight_of(&norm)?, self.tape.bias_of(&norm)?), out, room.stats)
    }

    fn fed_forward(&self, name: &str, x: Var<'a>, inner: Var<'a>, room: Room<'a>, out: Var<'a>) -> Result<()> {
        self.apply(x, self.layer(&part(name, INNER))?, (inner, None), After::Relu)?;
        self.apply(inner, self.layer(&part(name, OUTER))?, (room.y, None), After::Nothing)?;
        self.normalised(name, x, room, out)
    }

    /// Makes ready for leading walkers S steps.
    pub fn leading(&self, steps: usize) -> Result<Leading<'a>> {
        let (h, f, d) = (self.sizes.hidden, self.sizes.features, self.sizes.direction);
        let (tape, parts) = (self.tape, |name: &str| [KEY, VALUE].map(|own| part(name, own)));
        let time = tape.time(TIME, steps, h)?;
        let mut all = Vec::new();

        let scored = self.scored();
        let of_output = self.side_by_side(f + scored + 2 * h, h)?;
        self.put(of_output, f + scored, &parts(STATE_MEMORY))?;
        self.view_query(&mut all, CURRENT_VIEW, of_output, 0)?;
        tape.bias_init(of_output.0.rows(f, scored), None, None)?;
        tape.bias_init(of_output.1.cols(f, scored), None, None)?;
        let predictor = self.layer(PREDICTOR_STATE)?;
        let scale = tape.weight_of(PREDICTOR_OUTPUT)?;
        let z = tape.fold_directions_scaled(PREDICTOR_ACTION, true, h, (f, d), f + d, Some(scale))?;
        let (of_state, m) = ((predictor.weight.at, predictor.weight.ld, 1), f + 5);
        all.push(FoldedProduct::new((z.v, 1, m), of_state, (m, h, h), of_output.0.rows(f, m))?);
        all.push(FoldedProduct::new((predictor.bias, 0, 1), (z.v, m, 1), (1, m, h), of_output.1.cols(f, m))?);

        let input = tape.weight(TEXT_INPUT)?;
        let current = input.at.rest(f + d);
        let previous = tape.fold_directions(TEXT_INPUT, false, h, (f, d), input.ld)?;
        let of_seen = tape.constant(2 * h, 2 * f + 4)?;
        tape.copy(current, input.ld, of_seen.rows(0, h).cols(0, f))?;
        tape.copy(previous.v, f + 4, of_seen.rows(0, h).cols(f, f + 4))?;
        let to = of_seen.rows(h, h);
        all.push(self.query_of(TEXT_MEMORY, (current, input.ld), f, to.cols(0, f))?);
        all.push(self.query_of(TEXT_MEMORY, (previous.v, f + 4), f + 4, to.cols(f, f + 4))?);
        let seen_bias = tape.constant(steps, 2 * h)?;
        tape.bias_init(seen_bias.cols(0, h), tape.bias_of(TEXT_INPUT)?, Some((time, 1)))?;

        let of_text = self.side_by_side(f + 4 * h, h)?;
        let state = tape.weight(STATE_INPUT)?;
        self.view_query(&mut all, NEXT_VIEW, of_text, 0)?;
        tape.copy(state.at, state.ld, of_text.0.rows(f, h))?;
        all.push(self.query_of(STATE_MEMORY, (state.at, state.ld), h, of_text.0.rows(f + h, h))?);
        self.put(of_text, f + 2 * h, &parts(TEXT_MEMORY))?;
        let text_bias = tape.constant(steps, f + 4 * h)?;
        tape.bias_init(text_bias.cols(f, h), tape.bias_of(STATE_INPUT)?, Some((time, 1)))?;
        let next = state.at.rest(h);
        let of_next = tape.constant(2 * h, f)?;
        tape.copy(next, state.ld, of_next.rows(0, h))?;
        all.push(self.query_of(STATE_MEMORY, (next, state.ld), f, of_next.rows(h, h))?);
        tape.fold_weights(&all)?;

        tape.fold_weights(&[
            self.queries_of(TEXT_MEMORY, seen_bias.cols(0, h), true, seen_bias.cols(h, h))?,
            self.queries_of(STATE_MEMORY, text_bias.cols(f, h), true, text_bias.cols(f + h, h))?,
        ])?;
        for (from, n) in [(0, f), (f + 2 * h, 2 * h)] {
            tape.bias_init(text_bias.cols(from, n), of_text.1.cols(from, n).v, None)?;
        }
        Ok(Leading {
            of_output: Self::layers(of_output),
            of_seen: Self::as_weight(of_seen),
            seen_bias,
            of_text: Self::layers(of_text),
            text_bias,
            of_next: Self::as_weight(of_next),
        })
    }

    /// Numbers of the scores' inputs.
    fn scored(&self) -> usize {
        (self.sizes.features + 5).next_multiple_of(4)
    }

    /// The student leads walkers, a walk for each request, S steps.
    pub fn lead(
        &self,
        leading: &Leading<'a>,
        requests: &Requests<'a>,
        encodings: Option<DeviceSlice<'a, f32>>,
        walkers: &Walkers<'a>,
        steps: usize,
    ) -> Result<()> {
        let (h, f, scored) = (self.sizes.hidden, self.sizes.features, self.scored());
        let (tape, transitions, r) = (self.tape, self.transitions, requests.rows);
        let (context, summary) = self.read(requests, encodings)?;
        let initial = self.bridge(summary)?;
        let memory = self.entries(TEXT_REQUEST, context)?;
        let outputs = tape.constant((steps + 1) * r, h)?;
        tape.repeat(initial, outputs.rows(0, r))?;
        let (text_entries, state_entries) = (tape.constant((steps + 1) * r, 2 * h)?, tape.constant(steps * r, 2 * h)?);
        let asked = tape.constant(r, f + scored)?;
        let (query, scores) = (asked.cols(0, f), asked.cols(f, f + 5));
        let seen = tape.constant(r, 2 * f + 4)?;
        tape.bias_init(seen, None, None)?;
        let (seen_next, weights) = (tape.constant(r, f)?, tape.room(36 * r)?);
        let text_x = tape.constant(r, 2 * h)?;
        let own = self.over_own(text_x.cols(h, h), text_entries, steps)?;
        let source_query = self.layer(&part(TEXT_REQUEST, QUERY))?;
        let source_q = tape.constant(r, h)?;
        let source = self.over_source(source_q, memory, requests.lengths, requests.length, false)?;
        let room = self.room(r)?;
        let (after_own, after_source, text) = (tape.constant(r, h)?, tape.constant(r, h)?, tape.constant(r, h)?);
        let inner = tape.constant(r, 4 * h)?;
        let from_text = tape.constant(r, f + 2 * h)?;
        let (state_x, state_q) = (from_text.cols(f, h), from_text.cols(f + h, h));
        let over_state = self.over_own(state_q, state_entries, steps)?;
        let (after_state, gated, gate) = (tape.constant(r, h)?, tape.constant(r, 2 * h)?, tape.constant(r, h)?);
        let (out_bias, gate_layer) = (tape.bias_of(PREDICTOR_OUTPUT)?, self.layer(STATE_GATE)?);

        let first = leading.of_text.part(f + 2 * h, 2 * h);
        self.apply(initial, first, (text_entries.rows(0, r), None), After::Nothing)?;
        tape.begin_steps(r)?;
        for t in 0..=steps {
            let (output, places) = (outputs.rows(t * r, r), walkers.poses.part(t * r, r));
            if t < steps {
                self.apply(output, leading.of_output, (asked, Some(state_entries.rows(t * r, r))), After::Nothing)?;
            } else {
                self.apply(output, leading.of_output.part(f, scored), (asked.cols(f, scored), None), After::Nothing)?;
            }
            if t > 0 {
                let at = (t - 1) * r;
                let (before, made) = (walkers.poses.part(at, 2 * r), seen.cols(f, f + 4));
                let (draws, actions) = (walkers.draws.part(at, r), walkers.actions.part(at, r));
                tape.environment_step(
                    scores,
                    transitions,
                    out_bias,
                    before,
                    draws,
                    walkers.done,
                    actions,
                    made,
                    t == steps,
                )?;
            }
            if t == steps {
                break;
            }
            tape.attend_views(query, transitions, places, seen.cols(0, f), weights)?;
            let seen_bias = leading.seen_bias.rows(t, 1).v;
            tape.apply(seen, leading.of_seen, Some(seen_bias), (text_x, None), After::Nothing)?;
            let entries = t as i32 + 1;
            self.attended(TEXT_MEMORY, own.of(entries), text_x.cols(0, h), room, after_own)?;
            self.apply(after_own, source_query, (source_q, None), After::Nothing)?;
            self.attended(TEXT_REQUEST, source, after_own, room, after_source)?;
            self.fed_forward(TEXT_FORWARD, after_source, inner, room, text)?;

            let of_text = Layers { bias: leading.text_bias.rows(t, 1).v, ..leading.of_text };
            let entry = text_entries.rows((t + 1) * r, r);
            self.apply(text, of_text, (from_text, Some(entry)), After::Nothing)?;
            tape.attend_views(from_text.cols(0, f), transitions, places, seen_next, weights)?;
            tape.apply(seen_next, leading.of_next, None, (from_text.cols(f, 2 * h), None), After::Nothing)?;
            tape.similarity_memory(state_x, outputs, t, gated.cols(h, h))?;
            tape.independent();
            self.attended(STATE_MEMORY, over_state.of(entries), state_x, room, after_state)?;
            self.fed_forward(STATE_FORWARD, after_state, inner, room, gated.cols(0, h))?;
            self.apply(gated, gate_layer, (outputs.rows((t + 1) * r, r), None), After::Gate(gate))?;
        }
        tape.end_steps(r)
    }

    fn encoding(&self, steps: usize) -> Result<Encoding<'a>> {
        let (h, f, d) = (self.sizes.hidden, self.sizes.features, self.sizes.direction);
        let tape = self.tape;
        let time = tape.time(PATH_TIME, steps, h)?;
        let mut all = Vec::new();
        let of_output = self.side_by_side(f + 2 * h, h)?;
        self.view_query(&mut all, PATH_VIEW, of_output, 0)?;
        self.put(of_output, f, &[part(PATH_MEMORY, KEY), part(PATH_MEMORY, VALUE)])?;
        let input = tape.weight(PATH_INPUT)?;
        let brought = tape.fold_directions(PATH_INPUT, false, h, (f, d), input.ld)?;
        let current = input.at.rest(f + d);
        let (of_made, of_seen) = (tape.constant(2 * h, f + 4)?, tape.constant(2 * h, f)?);
        tape.copy(brought.v, f + 4, of_made.rows(0, h))?;
        tape.copy(current, input.ld, of_seen.rows(0, h))?;
        all.push(self.query_of(PATH_MEMORY, (brought.v, f + 4), f + 4, of_made.rows(h, h))?);
        all.push(self.query_of(PATH_MEMORY, (current, input.ld), f, of_seen.rows(h, h))?);
        tape.fold_weights(&all)?;
        let bias = tape.constant(steps, 2 * h)?;
        tape.bias_init(bias.cols(0, h), tape.bias_of(PATH_INPUT)?, Some((time, 1)))?;
        tape.fold_weights(&[self.queries_of(PATH_MEMORY, bias.cols(0, h), true, bias.cols(h, h))?])?;
        let (of_made, of_seen) = (Self::as_weight(of_made), Self::as_weight(of_seen));
        Ok(Encoding { of_output: Self::layers(of_output), of_made, of_seen, bias })
    }

    /// The path encoder on B known walks of S steps: contexts `[S · B, H]`.
    fn encode(&self, ready: &Encoding<'a>, paths: &Paths<'a>) -> Result<Var<'a>> {
        let (h, f) = (self.sizes.hidden, self.sizes.features);
        let (tape, transitions, b, steps) = (self.tape, self.transitions, paths.rows, paths.steps);
        let n = b * steps;
        let outputs = tape.constant(n + b, h)?;
        tape.bias_init(outputs.rows(0, b), None, None)?;
        let inputs = tape.constant(n, 2 * h)?;
        tape.bias_init(inputs, None, Some((ready.bias, b)))?;
        let made = tape.constant(n, f + 4)?;
        tape.action_embeddings(transitions, paths.poses, paths.actions, made)?;
        tape.linear(made, ready.of_made, inputs, false)?;
        let entries = tape.constant(n, 2 * h)?;
        let (query, seen, weights) = (tape.constant(b, f)?, tape.constant(b, f)?, tape.room(36 * b)?);
        let own = self.over_own(inputs.rows(0, b).cols(h, h), entries, steps)?;
        let (room, after_own, inner) = (self.room(b)?, tape.constant(b, h)?, tape.constant(b, 4 * h)?);
        tape.begin_steps(b)?;
        for t in 0..steps {
            let now = |x: Var<'a>| x.rows(t * b, b);
            self.apply(now(outputs), ready.of_output, (query, Some(now(entries))), After::Nothing)?;
            tape.attend_views(query, transitions, paths.poses.part(t * b, b), seen, weights)?;
            tape.apply(seen, ready.of_seen, None, (now(inputs), None), After::Nothing)?;
            let a = Attention { q: now(inputs).cols(h, h), ..own };
            self.attended(PATH_MEMORY, a.of(t as i32 + 1), now(inputs).cols(0, h), room, after_own)?;
            self.fed_forward(PATH_FORWARD, after_own, inner, room, outputs.rows((t + 1) * b, b))?;
        }
        tape.end_steps(b)?;
        Ok(outputs.rows(b, n))
    }

    /// Makes ready for descriptions of `words` words of walks of S steps. `never`: what is added to the predictor's bias `[V]`.
    pub fn wording(&self, steps: usize, words: usize, never: Var<'a>) -> Result<Wording<'a>> {
        let (h, v, tape) = (self.sizes.hidden, self.sizes.words, self.tape);
        let encoding = self.encoding(steps)?;
        let written = v.next_multiple_of(4);
        let of_output = self.side_by_side(written + 2 * h, h)?;
        tape.bias_init(of_output.0.rows(v, written - v), None, None)?;
        tape.bias_init(of_output.1.cols(0, written), None, None)?;
        tape.copy(tape.weight_of(PREDICTOR)?, h, of_output.0.rows(0, v))?;
        self.put(of_output, written, &[part(WORD_MEMORY, KEY), part(WORD_MEMORY, VALUE)])?;
        let bias = tape.constant(1, v)?;
        tape.bias_init(bias, tape.bias_of(PREDICTOR)?, Some((never, 1)))?;
        let table = tape.constant(v, 2 * h)?;
        let embedding = Var::dense(tape.weight_of(WORD_EMBEDDING)?, v, h)?;
        tape.bias_init(table.cols(0, h), tape.bias_of(WORD_INPUT)?, None)?;
        tape.linear(embedding, tape.weight(WORD_INPUT)?, table.cols(0, h), false)?;
        let time = tape.constant(words + 1, 2 * h)?;
        let encodings = tape.time(WORD_TIME, words + 1, h)?;
        tape.copy(encodings.v, h, time.cols(0, h))?;
        tape.fold_weights(&[
            self.queries_of(WORD_MEMORY, table.cols(0, h), true, table.cols(h, h))?,
            self.queries_of(WORD_MEMORY, encodings, false, time.cols(h, h))?,
        ])?;
        Ok(Wording { encoding, of_output: Self::layers(of_output), bias, table, time })
    }

    /// Reads walks, to write `copies` descriptions of each, of `words` words. `previous`: what the first step is given `[R]`.
    pub fn words(
        &self,
        wording: &Wording<'a>,
        paths: &Paths<'a>,
        copies: usize,
        words: usize,
        previous: DeviceSlice<'a, u32>,
    ) -> Result<Words<'a>> {
        let (h, v, tape) = (self.sizes.hidden, self.sizes.words, self.tape);
        let (b, s) = (paths.rows, paths.steps);
        let (r, written) = (b * copies, v.next_multiple_of(4));
        let context = self.encode(&wording.encoding, paths)?;
        let last = tape.constant(b, h)?;
        tape.take(context, paths.last, last)?;
        let initial = self.bridge(last)?;
        let outputs = tape.constant((words + 1) * r, h)?;
        tape.repeat(initial, outputs.rows(0, r))?;
        let memory = self.entries(WORD_PATH, context)?;
        let entries = tape.constant((words + 1) * r, 2 * h)?;
        let first = wording.of_output.part(written, 2 * h);
        self.apply(outputs.rows(0, r), first, (entries.rows(0, r), None), After::Nothing)?;
        let input = tape.constant(r, 2 * h)?;
        tape.word_input(wording.table, previous, wording.time.rows(0, 1), input)?;
        let (own, path_q) = (self.over_own(input.cols(h, h), entries, words)?, tape.constant(r, h)?);
        Ok(Words {
            rows: r,
            previous,
            wording: *wording,
            vocabulary: v,
            input,
            outputs,
            entries,
            logits: tape.constant(r, written)?,
            own,
            path: self.over_source(path_q, memory, paths.lengths, s, true)?,
            room: self.room(r)?,
            after_own: tape.constant(r, h)?,
            after_path: tape.constant(r, h)?,
            inner: tape.constant(r, 4 * h)?,
        })
    }

    /// Step `t` of descriptions: chosen by `draws` `[R]`, written to `out` `[R]`.
    pub fn word(&self, w: &Words<'a>, t: usize, draws: DeviceSlice<'a, f32>, out: DeviceSlice<'a, u32>) -> Result<()> {
        let (tape, h, r) = (self.tape, self.sizes.hidden, w.rows);
        self.attended(WORD_MEMORY, w.own.of(t as i32 + 1), w.input.cols(0, h), w.room, w.after_own)?;
        self.apply(w.after_own, self.layer(&part(WORD_PATH, QUERY))?, (w.path.q, None), After::Nothing)?;
        self.attended(WORD_PATH, w.path, w.after_own, w.room, w.after_path)?;
        let output = w.outputs.rows((t + 1) * r, r);
        self.fed_forward(WORD_FORWARD, w.after_path, w.inner, w.room, output)?;
        let to = (w.logits, Some(w.entries.rows((t + 1) * r, r)));
        self.apply(output, w.wording.of_output, to, After::Nothing)?;
        let next = (w.wording.table, w.wording.time.rows(t + 1, 1), w.input);
        tape.pick(w.logits.cols(0, w.vocabulary), w.wording.bias.v, draws, (out, w.previous), next)
    }
}
