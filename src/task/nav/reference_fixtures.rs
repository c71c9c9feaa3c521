//! The fixtures of the NAV models. Their actions are arbitrary vectors, not views of the place: they become further
//! rows of the view table, and directions are given whole.

use crate::nn::layers::Grad;
use crate::nn::loss;
use crate::nn::reference_fixtures::{Differences, Fixture, FixtureFile, Names, RowsAlone, of_row, without_padding};
use crate::rng::stream;
use crate::task::nav::model::describer::NavDescriber;
use crate::task::nav::model::names::*;
use crate::task::nav::model::student::{Lesson, NavStudent, Reading};
use crate::task::nav::model::views::ViewTable;
use crate::task::nav::model::walk::{NO_ACTION, Scene, Walks};
use crate::task::nav::model::{NavSizes, VIEWS};
use candle_core::{DType, Device, Result, Tensor, bail};

fn attention(names: &mut Names, mine: &str, theirs: &str) {
    for (own, other) in
        [("query", "linear_query"), ("key", "linear_key"), ("value", "linear_value"), ("output", "final_linear")]
    {
        names.push((format!("{mine}.{own}"), format!("{theirs}.module.{other}"), false));
    }
    names.push((format!("{mine}.norm"), format!("{theirs}.layer_norm"), false));
}

fn forward(names: &mut Names, mine: &str, theirs: &str) {
    names.push((format!("{mine}.inner"), format!("{theirs}.module.0"), false));
    names.push((format!("{mine}.outer"), format!("{theirs}.module.2"), false));
    names.push((format!("{mine}.norm"), format!("{theirs}.layer_norm"), false));
}

fn time(names: &mut Names, mine: &str, theirs: &str) {
    names.push((format!("{mine}.linear"), format!("{theirs}.increment_op.module.0"), false));
    names.push((format!("{mine}.norm"), format!("{theirs}.increment_op.layer_norm"), false));
}

fn view(names: &mut Names, mine: &str, theirs: &str) {
    names.push((format!("{mine}.query"), format!("{theirs}.linear_in_h"), false));
    names.push((format!("{mine}.key"), format!("{theirs}.linear_in_v"), false));
}

/// Our names of the student's parameters and the fixture's.
pub(super) fn student_names() -> Names {
    let mut names = crate::nn::reference_fixtures::names(&[
        (REQUEST_EMBEDDING, "instr_embedding", true),
        (BRIDGE, "enc2dec.0", false),
        (TEXT_INPUT, "text_decoder.input_projection", false),
        (STATE_INPUT, "state_decoder.input_projection", false),
        (STATE_GATE, "state_decoder.layers.0.gate.0", false),
        (PREDICTOR_STATE, "predictor.linear_in_h", false),
        (PREDICTOR_ACTION, "predictor.linear_in_a", false),
        (PREDICTOR_OUTPUT, "predictor.linear_out", false),
    ]);
    let n = &mut names;
    attention(n, ENCODER_ATTENTION, "encoder.layers.0.self_attention");
    forward(n, ENCODER_FORWARD, "encoder.layers.0.feed_forward");
    time(n, TIME, "dec_time_encoding");
    view(n, CURRENT_VIEW, "curr_visual_attention");
    view(n, NEXT_VIEW, "next_visual_attention");
    attention(n, TEXT_MEMORY, "text_decoder.layers.0.self_attention");
    attention(n, TEXT_REQUEST, "text_decoder.layers.0.enc_attention");
    forward(n, TEXT_FORWARD, "text_decoder.layers.0.feed_forward");
    attention(n, STATE_MEMORY, "state_decoder.layers.0.self_attention");
    forward(n, STATE_FORWARD, "state_decoder.layers.0.feed_forward");
    names
}

/// Our names of the describer's parameters and the fixture's.
pub(super) fn describer_names() -> Names {
    let mut names = crate::nn::reference_fixtures::names(&[
        (PATH_INPUT, "encoder.encoder.input_projection", false),
        (BRIDGE, "enc2dec.0", false),
        (WORD_EMBEDDING, "instr_embedding", true),
        (WORD_INPUT, "decoder.input_projection", false),
        (PREDICTOR, PREDICTOR, true),
    ]);
    let n = &mut names;
    view(n, PATH_VIEW, "encoder.curr_view_attention");
    time(n, PATH_TIME, "encoder.time_encoding");
    attention(n, PATH_MEMORY, "encoder.encoder.layers.0.self_attention");
    forward(n, PATH_FORWARD, "encoder.encoder.layers.0.feed_forward");
    time(n, WORD_TIME, "dec_time_encoding");
    attention(n, WORD_MEMORY, "decoder.layers.0.self_attention");
    attention(n, WORD_PATH, "decoder.layers.0.enc_attention");
    forward(n, WORD_FORWARD, "decoder.layers.0.feed_forward");
    names
}

/// A table whose places are the moments of `views` `[S, B, 36, F]`, and the moments with `actions` `[S, B, A, F + D]`.
fn scene(views: &Tensor, actions: &Tensor, bias: Vec<f32>, device: &Device) -> Result<(ViewTable, Scene)> {
    let (steps, rows, _, features) = views.dims4()?;
    let (n, count, width) = (steps * rows, actions.dim(2)?, actions.dim(3)? - features);
    let mut values = views.flatten_all()?.to_vec1::<f32>()?;
    values.extend(actions.narrow(3, 0, features)?.flatten_all()?.to_vec1::<f32>()?);
    values.resize(values.len().next_multiple_of(VIEWS * features), 0.0);
    let first = (n * VIEWS) as u32;
    let scene = Scene {
        places: Tensor::arange(0, n as u32, device)?,
        rows: Tensor::arange(first, first + (n * count) as u32, device)?.reshape((n, count))?,
        directions: actions.narrow(3, features, width)?.reshape((n, count, width))?.to_device(device)?,
        bias: Tensor::from_vec(bias, (n, count), device)?,
    };
    Ok((ViewTable::new(&values, features, DType::F32, device)?, scene))
}

impl Fixture {
    fn floats(&self, name: &str) -> Result<Tensor> {
        self.get(name)?.to_dtype(DType::F32)?.contiguous()
    }

    fn sizes(&self, heads: usize, action: &Tensor, views: &Tensor) -> Result<NavSizes> {
        let (words, hidden) = self.rows("instr_embedding.weight")?;
        let (_, _, places, features) = views.dims4()?;
        let with_direction = action.dims().last().copied().unwrap_or(0);
        if places != VIEWS || with_direction <= features {
            bail!("{places} views of {features} numbers, actions of {with_direction}")
        }
        Ok(NavSizes { words, hidden, heads, features, direction: with_direction - features })
    }
}

/// Compares a NAV model with the file's; `None` where the file is of another family's model.
///
/// # Errors
/// When a shape does not fit.
pub fn check(file: &FixtureFile, device: &Device) -> Option<Result<Differences>> {
    if file.has("weight.text_decoder.input_projection.weight") {
        return Some(file.heads().and_then(|heads| student(file.with_names(student_names()), heads, device)));
    }
    if file.has("weight.encoder.curr_view_attention.linear_in_h.weight") {
        return Some(file.heads().and_then(|heads| describer(file.with_names(describer_names()), heads, device)));
    }
    None
}

/// Compares a NAV model that passes over padding with the rows of the file, each computed alone by the model that [`check`] is about;
/// `None` where the file is of another family's model.
///
/// # Errors
/// When a shape does not fit.
pub fn check_without_padding(file: &FixtureFile, device: &Device) -> Option<Result<Differences>> {
    if file.has("weight.text_decoder.input_projection.weight") {
        let fixture = file.with_names(student_names());
        return Some(file.heads().and_then(|heads| student_without_padding(&fixture, heads, device)));
    }
    if file.has("weight.encoder.curr_view_attention.linear_in_h.weight") {
        let fixture = file.with_names(describer_names());
        return Some(file.heads().and_then(|heads| describer_without_padding(&fixture, heads, device)));
    }
    None
}

fn student_of(fixture: &Fixture, heads: usize, reference_padding: bool, device: &Device) -> Result<NavStudent> {
    let sizes = fixture.sizes(heads, &fixture.floats("actions")?, &fixture.floats("views")?)?;
    let reading = Reading { reference_padding, positions: false };
    let model = NavStudent::new(sizes, reading, &mut stream(0, "parity", 0), device)?;
    fixture.load(&model.params)?;
    Ok(model)
}

fn describer_of(fixture: &Fixture, heads: usize, reference_padding: bool, device: &Device) -> Result<NavDescriber> {
    let actions = fixture.floats("path_actions")?.unsqueeze(2)?;
    let sizes = fixture.sizes(heads, &actions, &fixture.floats("path_views")?)?;
    let model = NavDescriber::new(sizes, reference_padding, &mut stream(0, "parity", 0), device)?;
    fixture.load(&model.params)?;
    Ok(model)
}

fn student_without_padding(fixture: &Fixture, heads: usize, device: &Device) -> Result<Differences> {
    let model = student_of(fixture, heads, false, device)?;
    let reference = student_of(fixture, heads, true, device)?;
    let (views, actions) = (fixture.floats("views")?, fixture.floats("actions")?);
    let masked = fixture.get("action_mask")?.to_vec3::<u8>()?;
    let gold = fixture.get("gold_actions")?.to_vec2::<i64>()?;
    let requests: Vec<Vec<u32>> = fixture.sequences("request")?.iter().map(|r| without_padding(r)).collect();
    let rows = requests.len();
    let made: Vec<u32> = gold.iter().flatten().map(|g| u32::try_from(*g).unwrap_or(0)).collect();
    let weights: Vec<f32> = gold.iter().flat_map(|step| step.iter().map(|g| f32::from(*g >= 0))).collect();
    let bias = |kept: &dyn Fn(usize) -> bool| -> Vec<f32> {
        let of_kept = masked.iter().flat_map(|step| step.iter().enumerate().filter(|(row, _)| kept(*row)));
        of_kept.flat_map(|(_, row)| row.iter().map(|m| if *m == 0 { 0.0 } else { NO_ACTION })).collect()
    };
    // The rows of a batch from one on: their logits and the loss.
    let of_rows = |model: &NavStudent, from: usize, count: usize| -> Result<(Tensor, Tensor)> {
        let kept = |row: usize| (from..from + count).contains(&row);
        let (views, actions) = (views.narrow(1, from, count)?, actions.narrow(1, from, count)?);
        let (table, scene) = scene(&views.contiguous()?, &actions.contiguous()?, bias(&kept), device)?;
        let (made, weights): (Vec<u32>, Vec<f32>) = match count {
            1 => (of_row(&made, rows, from), of_row(&weights, rows, from)),
            _ => (made.clone(), weights.clone()),
        };
        let walks = Walks { scene, actions: made.clone(), lengths: vec![gold.len(); count] };
        let logits = model.logits_of(&requests[from..from + count], &walks, &table, Grad::On)?;
        let loss = Lesson { targets: made, weights, entropy: Vec::new() }.loss(&logits)?;
        Ok((logits, loss))
    };
    let (logits, loss) = of_rows(&model, 0, rows)?;
    let alone = (0..rows).map(|row| of_rows(&reference, row, 1)).collect::<Result<Vec<_>>>()?;
    let (alone, losses): (Vec<Tensor>, Vec<Tensor>) = alone.into_iter().unzip();
    let alone = RowsAlone { params: &reference.params, logits: alone, loss: Tensor::stack(&losses, 0)?.sum_all()? };
    alone.compare("nav student / executor", &model.params, &logits, &loss)
}

fn describer_without_padding(fixture: &Fixture, heads: usize, device: &Device) -> Result<Differences> {
    let model = describer_of(fixture, heads, false, device)?;
    let reference = describer_of(fixture, heads, true, device)?;
    let (views, actions) = (fixture.floats("path_views")?, fixture.floats("path_actions")?.unsqueeze(2)?);
    let masked = fixture.get("path_mask")?.to_vec2::<u8>()?;
    let lengths: Vec<usize> = masked.iter().map(|row| row.iter().filter(|m| **m == 0).count()).collect();
    let (rows, target) = (lengths.len(), fixture.sequences("target")?);
    let walks = |views: &Tensor, actions: &Tensor, lengths: Vec<usize>| -> Result<(ViewTable, Walks)> {
        let n = views.dim(0)? * views.dim(1)?;
        let (table, scene) = scene(&views.contiguous()?, &actions.contiguous()?, vec![0.0; n], device)?;
        Ok((table, Walks { scene, actions: vec![0; n], lengths }))
    };
    let (table, all) = walks(&views, &actions, lengths.clone())?;
    let (logits, targets) = model.logits(&all, &target, &table, Grad::On)?;
    let weights = loss::target_weights(&targets, rows, &[(rows, 1.0)]);
    let (mut alone, mut losses) = (Vec::new(), Vec::new());
    for (row, &length) in lengths.iter().enumerate() {
        let cut = |t: &Tensor| t.narrow(0, 0, length)?.narrow(1, row, 1);
        let (table, walk) = walks(&cut(&views)?, &cut(&actions)?, vec![length])?;
        let (logits, targets) = reference.logits(&walk, &target[row..=row], &table, Grad::On)?;
        losses.push(loss::weighted_nll(&logits, &targets, &of_row(&weights, rows, row))?);
        alone.push(logits);
    }
    let loss = loss::weighted_nll(&logits, &targets, &weights)?;
    let alone = RowsAlone { params: &reference.params, logits: alone, loss: Tensor::stack(&losses, 0)?.sum_all()? };
    alone.compare("nav describer", &model.params, &logits, &loss)
}

/// Compares the student.
fn student(fixture: Fixture, heads: usize, device: &Device) -> Result<Differences> {
    let (views, actions) = (fixture.floats("views")?, fixture.floats("actions")?);
    let model = student_of(&fixture, heads, true, device)?;

    let masked = fixture.get("action_mask")?.flatten_all()?.to_vec1::<u8>()?;
    let bias = masked.iter().map(|m| if *m == 0 { 0.0 } else { NO_ACTION }).collect();
    let (table, scene) = scene(&views, &actions, bias, device)?;
    let gold = fixture.get("gold_actions")?.to_vec2::<i64>()?;
    let rows = gold.first().map_or(0, Vec::len);
    // −1: the episode is over; it goes on with the action 0, without loss.
    let made: Vec<u32> = gold.iter().flatten().map(|g| u32::try_from(*g).unwrap_or(0)).collect();
    let weights = gold.iter().flat_map(|step| {
        let alive = step.iter().filter(|g| **g >= 0).count() as f32;
        step.iter().map(move |g| if *g >= 0 { 1.0 / alive } else { 0.0 })
    });
    let lesson = Lesson { targets: made.clone(), weights: weights.collect(), entropy: Vec::new() };
    let walks = Walks { scene, actions: made, lengths: vec![gold.len(); rows] };
    let logits = model.logits_of(&fixture.sequences("request")?, &walks, &table, Grad::On)?;
    let loss = lesson.loss(&logits)?;
    fixture.compare_with("nav student / executor", &model.params, &logits, &loss, &fixture.floats("logits")?)
}

/// Compares the describer.
fn describer(fixture: Fixture, heads: usize, device: &Device) -> Result<Differences> {
    let (views, actions) = (fixture.floats("path_views")?, fixture.floats("path_actions")?.unsqueeze(2)?);
    let model = describer_of(&fixture, heads, true, device)?;
    let n = views.dim(0)? * views.dim(1)?;
    let (table, scene) = scene(&views, &actions, vec![0.0; n], device)?;
    let masked = fixture.get("path_mask")?.to_vec2::<u8>()?;
    let lengths = masked.iter().map(|row| row.iter().filter(|m| **m == 0).count()).collect();
    let walks = Walks { scene, actions: vec![0; n], lengths };
    let target = fixture.sequences("target")?;
    let (logits, targets) = model.logits(&walks, &target, &table, Grad::On)?;
    let weights = loss::target_weights(&targets, target.len(), &[(target.len(), 1.0)]);
    let loss = loss::weighted_nll(&logits, &targets, &weights)?;
    fixture.compare("nav describer", &model.params, &logits, &loss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_agree_with_pytorch() {
        let Some(root) = crate::testing::shared("parity") else { return };
        for file in ["nav_executor", "nav_describer"] {
            let file = FixtureFile::read(&root.join(format!("{file}.safetensors"))).unwrap();
            let d = check(&file, &Device::Cpu).unwrap().unwrap();
            assert!(d.worst() < 1e-5, "{d:?}");
            let d = check_without_padding(&file, &Device::Cpu).unwrap().unwrap();
            assert!(d.worst() < 1e-5, "{d:?}");
        }
    }
}
