//! The tape's attentions, over memories and over views, and the similarity memory.

use super::*;

/// Views of a place; as in `walks.cu`.
const VIEWS: usize = 36;

/// Numbers of shared memory that a look at F numbers a view has; as in `walks.cu`.
fn view_attention_room(f: usize) -> usize {
    let all = 20 * f + 40 + 256 + 256 * 8;
    if f.is_multiple_of(8) && all <= ROOM { all } else { 40 }
}

impl<'a> Tape<'a> {
    /// An attention whose memories have one query each (`own`: the gradient of their entries is added at once), or several
    /// (it is added by [`Tape::learn_memory`]).
    pub fn attend(&self, a: Attention<'a>, own: bool) -> Result<()> {
        a.check()?;
        let scores = 4 * WARPS * a.heads.ldw as u32;
        let grid = move |bytes: u32| ((a.items().div_ceil(WARPS as usize) as u32, 1), 32 * WARPS, bytes);
        let args = [p(a.q.v), i(a.q.ld), p(a.memory.v), p(a.lengths)];
        let more = [p(a.seen.v), i(a.seen.ld), p(a.kept.0), Arg::Heads(a.heads)];
        // In a program a row is known by its number alone.
        // Its warps have room for the weights of so many entries.
        let rows = if a.heads.from_memory == 1 && 16 * a.heads.ldw as usize <= ROOM { a.q.rows } else { 0 };
        let sizes = a.sizes(own);
        let (q, memory, lengths, weights) =
            (address(a.q.v), address(a.memory.v), address(a.lengths), address(a.kept.0));
        let places = [q, memory, lengths, address(a.seen.v), weights];
        if !self.gather(rows, Kind::Attend, &sizes, &places, None)? {
            self.launch("attend_fwd", grid(scores), &[&args[..], &more].concat())?;
        }
        self.on_backward(move |t| {
            let gradients = [address(a.kept.1), address(a.q.d), address(a.memory.d)];
            let places = [&[q, memory, lengths, address(a.seen.d), weights][..], &gradients].concat();
            if t.gather(rows, Kind::AttendBack, &sizes, &places, None)? {
                return Ok(());
            }
            let more = [p(a.seen.d), i(a.seen.ld), p(a.kept.0), p(a.kept.1), p(a.q.d), p(a.memory.d)];
            t.launch(
                "attend_bwd",
                grid(2 * scores),
                &[&args[..], &more, &[i(own.into()), Arg::Heads(a.heads)]].concat(),
            )
        });
        Ok(())
    }

    /// The gradient of memories that several queries look at; to be called before the attention itself, with all queries
    /// of all steps.
    pub fn learn_memory(&self, a: Attention<'a>) {
        self.on_backward(move |t| {
            let items = (a.heads.memories * a.heads.entries * a.heads.heads) as usize;
            let grid = ((items.div_ceil(WARPS as usize) as u32, 1), 32 * WARPS, 0);
            let args = [p(a.q.v), i(a.q.ld), p(a.lengths), p(a.seen.d), i(a.seen.ld), p(a.kept.0), p(a.kept.1)];
            t.launch("attend_memory_bwd", grid, &[&args[..], &[p(a.memory.d), Arg::Heads(a.heads)]].concat())
        });
    }

    /// Attends with queries `[N, F]` over the views at `poses` `[N]`; room for 36 weights a row.
    pub fn attend_views(
        &self,
        q: Var<'a>,
        transitions: Transitions<'a>,
        poses: DeviceSlice<'a, u32>,
        seen: Var<'a>,
        weights: DeviceSlice<'a, f32>,
    ) -> Result<()> {
        let (n, f) = (q.rows, transitions.features);
        q.shaped(n, f, "the queries of an attention over views")?;
        seen.shaped(n, f, "the result of an attention over views")?;
        poses.holding(n, "the poses of an attention over views")?;
        weights.holding(VIEWS * n, "the weights of an attention over views")?;
        let room = view_attention_room(f);
        let grid = ((n as u32, 1), 256, 4 * room as u32);
        let (table, places) = (p(transitions.table), i(transitions.poses));
        let sizes = [q.ld as i32, seen.ld as i32];
        let operands = [address(q.v), address(poses), address(seen.v), address(weights)];
        if !self.gather(n, Kind::ViewAttention, &sizes, &operands, Some(transitions))? {
            let args = [p(q.v), i(q.ld), table, p(poses), p(seen.v), i(seen.ld), p(weights), i(f), places, i(room)];
            self.launch("view_attention_fwd", grid, &args)?;
        }
        self.on_backward(move |t| {
            let operands = [address(poses), address(weights), address(seen.d), address(q.d)];
            if t.gather(n, Kind::ViewAttentionBack, &[], &operands, Some(transitions))? {
                return Ok(());
            }
            let args = [table, p(poses), p(weights), p(seen.d), p(q.d), i(f), places, i(room)];
            t.launch("view_attention_bwd", grid, &args)
        });
        Ok(())
    }

    /// Reads the similarity memory: what inputs recall of the first `t + 1` outputs; `outputs` begins with the first.
    pub fn similarity_memory(&self, x: Var<'a>, outputs: Var<'a>, t: usize, out: Var<'a>) -> Result<()> {
        let (r, h) = (x.rows, x.cols);
        outputs
            .rows(0, (t + 1) * r)
            .shaped((t + 1) * r, h, "a similarity memory")?
            .side_by_side("a similarity memory")?;
        out.shaped(r, h, "what a similarity memory recalls")?;
        let grid = move |numbers: usize| ((r as u32, 1), 256, 4 * (numbers * (t + 1)) as u32);
        let args = [p(x.v), i(x.ld), p(outputs.v), i(t)];
        let sizes = [x.ld, t, out.ld, r, h].map(|x| x as i32);
        let (input, memory) = (address(x.v), address(outputs.v));
        if !self.gather(r, Kind::SimilarityMemory, &sizes, &[input, memory, address(out.v)], None)? {
            self.launch("similarity_fwd", grid(1), &[&args[..], &[p(out.v), i(out.ld), i(r), i(h)]].concat())?;
        }
        self.on_backward(move |tape| {
            let places = [input, memory, address(out.d), address(x.d), address(outputs.d)];
            if tape.gather(r, Kind::SimilarityMemoryBack, &sizes, &places, None)? {
                return Ok(());
            }
            let more = [p(out.d), i(out.ld), p(x.d), p(outputs.d), i(r), i(h)];
            tape.launch("similarity_bwd", grid(4), &[&args[..], &more].concat())
        });
        Ok(())
    }
}
