//! The fixtures of the NAV models. Their actions are arbitrary vectors, not views of the place: they become further
//! rows of the view table, and directions are given whole.

use crate::nn::layers::Grad;
use crate::nn::loss;
use crate::nn::reference_fixtures::{Differences, Fixture, FixtureFile, Names};
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
fn student_names() -> Names {
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
fn describer_names() -> Names {
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

/// Compares the student.
fn student(fixture: Fixture, heads: usize, device: &Device) -> Result<Differences> {
    let (views, actions) = (fixture.floats("views")?, fixture.floats("actions")?);
    let sizes = fixture.sizes(heads, &actions, &views)?;
    let reading = Reading { reference_padding: true, positions: false };
    let model = NavStudent::new(sizes, reading, &mut stream(0, "parity", 0), device)?;
    fixture.load(&model.params)?;

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
    let sizes = fixture.sizes(heads, &actions, &views)?;
    let model = NavDescriber::new(sizes, true, &mut stream(0, "parity", 0), device)?;
    fixture.load(&model.params)?;
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
        }
    }
}
