//! The views of all viewpoints, on the device once: what a step looks at is named by indices, and no feature vector
//! crosses the bus or is copied on the way.

use crate::nn::cpu::{add_scaled, cpu_slice, dot, for_rows, softmax, softmax_backward, with};
use crate::task::nav::model::VIEWS;
use crate::task::nav::model::transition_table::TransitionTable;
use candle_core::{CpuStorage, CustomOp2, D, DType, Device, Layout, Result, Shape, Storage, Tensor, bail};
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;
use std::sync::Mutex;

/// Feature vectors of the 36 views of each place, as float32, float16 or bfloat16.
///
/// Row `place · 36 + view` is a view; one more row of zeros at the end is what stopping "looks at". Cloning is cheap.
#[derive(Clone, Debug)]
pub struct ViewTable {
    rows: Tensor,
    places: usize,
    features: usize,
    transitions: Option<TransitionTable>,
    /// The factor of each feature wherever it is read, `[F]`; `None`: all are read as they are stored.
    factors: Option<Tensor>,
}

impl ViewTable {
    /// A table of places whose views are in `values`, 36 of `features` numbers for each place, stored as `kind` on
    /// `device`.
    ///
    /// # Errors
    /// As [`ViewTable::filled`], and when the numbers do not fill the places.
    pub fn new(values: &[f32], features: usize, kind: DType, device: &Device) -> Result<Self> {
        let size = VIEWS * features;
        if size == 0 || !values.len().is_multiple_of(size) {
            bail!("{} numbers are not views of {features} numbers, {VIEWS} of each place", values.len())
        }
        Self::filled(values.len() / size, features, kind, device, |place, views| {
            views.copy_from_slice(&values[place * size..][..size]);
            Ok(())
        })
    }

    /// A table whose places are filled in one by one: `fill(place, views)` writes the 36 · F numbers of a place. They
    /// are converted to `kind` at once, so that no more than the table itself is in memory.
    ///
    /// # Errors
    /// When there is no place or no feature, `kind` is no type that a table can have, `fill` fails, or the device has
    /// no room.
    pub fn filled(
        places: usize,
        features: usize,
        kind: DType,
        device: &Device,
        fill: impl Fn(usize, &mut [f32]) -> Result<()> + Sync,
    ) -> Result<Self> {
        if places == 0 || features == 0 {
            bail!("{places} places with views of {features} numbers")
        }
        let rows = match kind {
            DType::F32 => stored(places, features, fill, |x| x),
            DType::F16 => stored(places, features, fill, half::f16::from_f32),
            DType::BF16 => stored(places, features, fill, half::bf16::from_f32),
            other => bail!("views are kept as float32, float16 or bfloat16, not {other:?}"),
        };
        Ok(Self { rows: rows?.to_device(device)?, places, features, transitions: None, factors: None })
    }

    /// The table whose features are multiplied by `factors` wherever it is read: 0 hides a feature. The stored rows are shared and
    /// stay as they are.
    ///
    /// # Errors
    /// When there is not one factor for each feature, or the device has no room.
    pub fn with_factors(&self, factors: &[f32]) -> Result<Self> {
        if factors.len() != self.features {
            bail!("{} factors for views of {} numbers", factors.len(), self.features)
        }
        Ok(Self { factors: Some(Tensor::new(factors, self.device())?), ..self.clone() })
    }

    /// The factors of the features, where they have some.
    pub(crate) fn factors(&self) -> Option<&Tensor> {
        self.factors.as_ref()
    }

    /// Numbers of features (in the last dimension) times their factors.
    fn scaled(&self, numbers: &Tensor) -> Result<Tensor> {
        match &self.factors {
            Some(factors) => numbers.broadcast_mul(factors),
            None => Ok(numbers.clone()),
        }
    }

    /// The table on another device.
    ///
    /// # Errors
    /// When it has no room.
    pub fn on(&self, device: &Device) -> Result<Self> {
        let transitions = self.transitions.as_ref().map(|transitions| transitions.on(device)).transpose()?;
        let factors = self.factors.as_ref().map(|factors| factors.to_device(device)).transpose()?;
        Ok(Self { rows: self.rows.to_device(device)?, transitions, factors, ..self.clone() })
    }

    /// The table with the transitions from the poses of its places. A GPU then walks by itself.
    ///
    /// # Errors
    /// When the poses are not those of the places, or the device has no room.
    pub fn with_transitions(self, transitions: &TransitionTable) -> Result<Self> {
        if transitions.poses() != self.places * crate::task::nav::model::transition_table::HEADINGS {
            bail!("{} poses for {} places", transitions.poses(), self.places)
        }
        Ok(Self { transitions: Some(transitions.on(self.device())?), ..self })
    }

    /// The transitions from each pose, where they are known.
    pub fn transitions(&self) -> Option<&TransitionTable> {
        self.transitions.as_ref()
    }

    /// The rows as they are stored.
    pub(crate) fn rows(&self) -> &Tensor {
        &self.rows
    }

    /// Number of places.
    pub fn places(&self) -> usize {
        self.places
    }

    /// Numbers of a feature vector.
    pub fn features(&self) -> usize {
        self.features
    }

    /// The row of a view.
    pub fn row(&self, place: u32, view: u32) -> u32 {
        place * VIEWS as u32 + view
    }

    /// The row of zeros.
    pub fn nothing(&self) -> u32 {
        (self.places * VIEWS) as u32
    }

    /// The device it is on.
    pub fn device(&self) -> &Device {
        self.rows.device()
    }

    /// Feature vectors `[N, F]` (float32) of `rows` `[N]`.
    pub fn gather(&self, rows: &Tensor) -> Result<Tensor> {
        self.scaled(&self.rows.index_select(rows, 0)?.to_dtype(DType::F32)?)
    }

    /// For queries `[N, F]` at `places` `[N]` (u32): the views of the place, weighted by softmax(query · view), `[N,
    /// F]`.
    pub fn look(&self, queries: &Tensor, places: &Tensor) -> Result<Tensor> {
        if !self.device().is_cpu() {
            return self.look_plainly(queries, places);
        }
        // Factors of the views are as well factors of the queries and of what is seen, and no row has to be copied.
        let queries = self.scaled(queries)?;
        let node = Look { table: self.clone(), keep: queries.track_op(), weights: Mutex::default() };
        self.scaled(&queries.contiguous()?.apply_op2(&places.contiguous()?, node)?)
    }

    /// [`ViewTable::look`] from plain operations.
    pub fn look_plainly(&self, queries: &Tensor, places: &Tensor) -> Result<Tensor> {
        let by_place = self.rows.narrow(0, 0, self.places * VIEWS)?.reshape((self.places, VIEWS * self.features))?;
        let views = by_place.index_select(places, 0)?.to_dtype(DType::F32)?;
        let views = self.scaled(&views.reshape((places.dim(0)?, VIEWS, self.features))?)?;
        let scores = views.matmul(&queries.unsqueeze(2)?.contiguous()?)?.squeeze(2)?;
        let weights = candle_nn::ops::softmax(&scores, D::Minus1)?;
        weights.unsqueeze(1)?.matmul(&views)?.squeeze(1)
    }

    /// Inner products `[N, A]` of queries `[N, F]` with the views in `rows` `[N, A]` (u32).
    pub fn score(&self, queries: &Tensor, rows: &Tensor) -> Result<Tensor> {
        if !self.device().is_cpu() {
            return self.score_plainly(queries, rows);
        }
        self.scaled(queries)?.contiguous()?.apply_op2(&rows.contiguous()?, Score { table: self.clone() })
    }

    /// [`ViewTable::score`] from plain operations.
    pub fn score_plainly(&self, queries: &Tensor, rows: &Tensor) -> Result<Tensor> {
        let (n, actions) = rows.dims2()?;
        let views = self.gather(&rows.flatten_all()?)?.reshape((n, actions, self.features))?;
        views.matmul(&queries.unsqueeze(2)?.contiguous()?)?.squeeze(2)
    }

    /// Lends the rows, on the CPU.
    fn lend<R>(&self, f: impl FnOnce(&Rows<'_>) -> Result<R>) -> Result<R> {
        let (guard, _) = self.rows.storage_and_layout();
        let values = match &*guard {
            Storage::Cpu(CpuStorage::F32(v)) => Values::F32(v),
            Storage::Cpu(CpuStorage::F16(v)) => Values::F16(v),
            Storage::Cpu(CpuStorage::BF16(v)) => Values::BF16(v),
            _ => bail!("the views are not on the CPU"),
        };
        f(&Rows { values, size: self.features })
    }
}

/// All rows and the one of zeros.
/// Places whose views are made at once.
const AT_ONCE: usize = 64;

fn stored<T: candle_core::WithDType>(
    places: usize,
    features: usize,
    fill: impl Fn(usize, &mut [f32]) -> Result<()> + Sync,
    convert: impl Fn(f32) -> T,
) -> Result<Tensor> {
    let rows = places * VIEWS + 1;
    let mut all = Vec::with_capacity(rows * features);
    // Looking around takes a while, and places know nothing of each other. As many are held at once as keep all cores busy.
    for first in (0..places).step_by(AT_ONCE) {
        let looked = (first..places.min(first + AT_ONCE)).into_par_iter().map(|place| {
            let mut views = vec![0f32; VIEWS * features];
            fill(place, &mut views).map(|()| views)
        });
        for views in looked.collect::<Result<Vec<_>>>()? {
            all.extend(views.iter().map(|x| convert(*x)));
        }
    }
    all.resize(rows * features, convert(0.0));
    Tensor::from_vec(all, (rows, features), &Device::Cpu)
}

enum Values<'a> {
    F32(&'a [f32]),
    F16(&'a [half::f16]),
    BF16(&'a [half::bf16]),
}

struct Rows<'a> {
    values: Values<'a>,
    size: usize,
}

impl Rows<'_> {
    /// Row `i` as float32; `space` is used where it has to be converted.
    fn get<'s>(&'s self, i: usize, space: &'s mut Vec<f32>) -> &'s [f32] {
        let at = i * self.size..(i + 1) * self.size;
        match &self.values {
            Values::F32(v) => return &v[at],
            Values::F16(v) => {
                space.resize(self.size, 0.0);
                v[at].convert_to_f32_slice(space);
            }
            Values::BF16(v) => {
                space.resize(self.size, 0.0);
                v[at].convert_to_f32_slice(space);
            }
        }
        space
    }
}

fn indices<'a>(storage: &'a CpuStorage, layout: &Layout, below: usize) -> Result<&'a [u32]> {
    let Some((from, to)) = layout.contiguous_offsets() else { bail!("indices are not contiguous") };
    let found = &storage.as_slice::<u32>()?[from..to];
    match found.iter().find(|i| **i as usize >= below) {
        Some(i) => bail!("index {i} where there are {below}"),
        None => Ok(found),
    }
}

/// Lends the indices of a u32 tensor on the CPU.
fn with_indices<R>(t: &Tensor, below: usize, f: impl FnOnce(&[u32]) -> Result<R>) -> Result<R> {
    let (guard, layout) = t.storage_and_layout();
    match &*guard {
        Storage::Cpu(storage) => f(indices(storage, layout, below)?),
        _ => bail!("expected indices on the CPU"),
    }
}

/// The node (queries, places) -> weighted views.
struct Look {
    table: ViewTable,
    keep: bool,
    weights: Mutex<Vec<f32>>,
}

impl CustomOp2 for Look {
    fn name(&self) -> &'static str {
        "look at views"
    }

    fn cpu_fwd(&self, q: &CpuStorage, lq: &Layout, places: &CpuStorage, lp: &Layout) -> Result<(CpuStorage, Shape)> {
        let (q, size) = (cpu_slice(q, lq)?, self.table.features);
        let places = indices(places, lp, self.table.places)?;
        if lq.dims() != [places.len(), size] {
            bail!("queries {:?} for {} places with views of {size} numbers", lq.dims(), places.len())
        }
        let mut seen = vec![0f32; q.len()];
        let mut weights = vec![0f32; places.len() * VIEWS];
        self.table.lend(|rows| {
            for_rows(&mut seen, &mut weights, [size, VIEWS], q.len() * VIEWS, |i, seen, weights| {
                let (from, q, space) = (places[i] as usize * VIEWS, &q[i * size..][..size], &mut Vec::new());
                for (v, w) in weights.iter_mut().enumerate() {
                    *w = dot(q, rows.get(from + v, space));
                }
                softmax(weights);
                for (v, w) in weights.iter().enumerate() {
                    add_scaled(seen, *w, rows.get(from + v, space));
                }
            });
            Ok(())
        })?;
        if self.keep {
            *self.weights.lock().unwrap() = weights;
        }
        Ok((CpuStorage::F32(seen), lq.shape().clone()))
    }

    fn bwd(
        &self,
        q: &Tensor,
        places: &Tensor,
        _seen: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let size = self.table.features;
        let weights = self.weights.lock().unwrap();
        let mut dq = vec![0f32; q.elem_count()];
        with_indices(places, self.table.places, |places| {
            with(grad, |grad| {
                self.table.lend(|rows| {
                    let (n, work) = (places.len(), grad.len() * VIEWS);
                    for_rows(&mut dq, &mut vec![0.0; n * VIEWS], [size, VIEWS], work, |i, dq, d| {
                        let (from, space) = (places[i] as usize * VIEWS, &mut Vec::new());
                        for (v, d) in d.iter_mut().enumerate() {
                            *d = dot(&grad[i * size..][..size], rows.get(from + v, space));
                        }
                        softmax_backward(&weights[i * VIEWS..][..VIEWS], d);
                        for (v, d) in d.iter().enumerate() {
                            add_scaled(dq, *d, rows.get(from + v, space));
                        }
                    });
                    Ok(())
                })
            })
        })?;
        Ok((Some(Tensor::from_vec(dq, q.shape(), q.device())?), None))
    }
}

/// The node (queries, rows) -> inner products.
struct Score {
    table: ViewTable,
}

impl CustomOp2 for Score {
    fn name(&self) -> &'static str {
        "score views"
    }

    fn cpu_fwd(&self, q: &CpuStorage, lq: &Layout, at: &CpuStorage, la: &Layout) -> Result<(CpuStorage, Shape)> {
        let (n, actions) = la.shape().dims2()?;
        let (q, size) = (cpu_slice(q, lq)?, self.table.features);
        let at = indices(at, la, self.table.places * VIEWS + 1)?;
        if lq.dims() != [n, size] {
            bail!("queries {:?} for {n} rows of actions with views of {size} numbers", lq.dims())
        }
        let mut scores = vec![0f32; n * actions];
        self.table.lend(|rows| {
            for_rows(&mut scores, &mut vec![0.0; n], [actions, 1], q.len() * actions, |i, scores, _| {
                let space = &mut Vec::new();
                for (score, row) in scores.iter_mut().zip(&at[i * actions..]) {
                    *score = dot(&q[i * size..][..size], rows.get(*row as usize, space));
                }
            });
            Ok(())
        })?;
        Ok((CpuStorage::F32(scores), (n, actions).into()))
    }

    fn bwd(
        &self,
        q: &Tensor,
        at: &Tensor,
        _scores: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (size, actions) = (self.table.features, at.dim(1)?);
        let mut dq = vec![0f32; q.elem_count()];
        with_indices(at, self.table.places * VIEWS + 1, |at| {
            with(grad, |grad| {
                self.table.lend(|rows| {
                    let (n, work) = (q.dim(0)?, q.elem_count() * actions);
                    for_rows(&mut dq, &mut vec![0.0; n], [size, 1], work, |i, dq, _| {
                        let space = &mut Vec::new();
                        for (grad, row) in grad[i * actions..][..actions].iter().zip(&at[i * actions..]) {
                            add_scaled(dq, *grad, rows.get(*row as usize, space));
                        }
                    });
                    Ok(())
                })
            })
        })?;
        Ok((Some(Tensor::from_vec(dq, q.shape(), q.device())?), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::init::uniform;
    use crate::rng::stream;
    use candle_core::Var;

    fn table(kind: DType) -> ViewTable {
        let values = uniform(&[3 * VIEWS * 5], 1.0, &mut stream(1, "views", 0)).unwrap().to_vec1::<f32>().unwrap();
        ViewTable::new(&values, 5, kind, &Device::Cpu).unwrap()
    }

    fn furthest(a: &Tensor, b: &Tensor) -> f32 {
        (a - b).unwrap().abs().unwrap().max_all().unwrap().to_scalar().unwrap()
    }

    #[test]
    fn looking_and_scoring_are_what_plain_operations_say_with_their_gradients_in_every_storage() {
        for (kind, hidden) in
            [DType::F32, DType::F16, DType::BF16].into_iter().flat_map(|kind| [(kind, false), (kind, true)])
        {
            let table = table(kind);
            let table = if hidden { table.with_factors(&[0.0, 1.25, 1.0, 0.0, 1.25]).unwrap() } else { table };
            let s = &mut stream(2, "views", 0);
            let q = Var::from_tensor(&uniform(&[4, 5], 1.0, s).unwrap()).unwrap();
            let places = Tensor::new(&[2u32, 0, 1, 2], &Device::Cpu).unwrap();
            let rows = Tensor::new(&[[0u32, 40], [107, 108], [3, 3], [108, 108]], &Device::Cpu).unwrap();
            for (node, plain) in [
                (table.look(&q, &places).unwrap(), table.look_plainly(&q, &places).unwrap()),
                (table.score(&q, &rows).unwrap(), table.score_plainly(&q, &rows).unwrap()),
            ] {
                assert!(furthest(&node, &plain) < 1e-6);
                let gradient = |t: &Tensor| {
                    let weigh = uniform(t.dims(), 1.0, &mut stream(3, "views", 0)).unwrap();
                    (t * weigh).unwrap().sum_all().unwrap().backward().unwrap().get(&q).unwrap().clone()
                };
                assert!(furthest(&gradient(&node), &gradient(&plain)) < 1e-6);
            }
            if hidden {
                let seen = table.look(&q, &places).unwrap().to_vec2::<f32>().unwrap();
                assert!(seen.iter().all(|seen| seen[0] == 0.0 && seen[3] == 0.0 && seen[1] != 0.0));
            }
            // The row of zeros scores nothing.
            assert_eq!(table.nothing(), 108);
            assert_eq!(table.score(&q, &rows).unwrap().to_vec2::<f32>().unwrap()[3], [0.0, 0.0]);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(ViewTable::new(&[0.0; 36 * 5 + 1], 5, DType::F32, &Device::Cpu).is_err());
        assert!(ViewTable::new(&[0.0; 36 * 5], 5, DType::U32, &Device::Cpu).is_err());
        assert!(ViewTable::new(&[], 5, DType::F32, &Device::Cpu).is_err());
        let fill = |_: usize, _: &mut [f32]| bail!("cannot be read");
        let error = ViewTable::filled(1, 5, DType::F16, &Device::Cpu, fill).unwrap_err();
        assert!(error.to_string().contains("cannot be read"));
        let table = table(DType::F32);
        assert!(table.with_factors(&[1.0; 4]).is_err());
        let q = Tensor::zeros((1, 5), DType::F32, &Device::Cpu).unwrap();
        assert!(table.look(&q, &Tensor::new(&[3u32], &Device::Cpu).unwrap()).is_err());
        assert!(table.score(&q, &Tensor::new(&[[109u32]], &Device::Cpu).unwrap()).is_err());
    }
}
