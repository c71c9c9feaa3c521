//! Adam of all parameters in one launch; the step count lives on the device, so that a recorded step can be replayed.

use super::*;

/// Parameters that one launch takes.
const MOST: usize = 48;

/// Addresses and sizes, as the kernel has them.
#[repr(C)]
#[derive(Clone, Copy)]
struct Table {
    p: [u64; MOST],
    m: [u64; MOST],
    v: [u64; MOST],
    g: [u64; MOST],
    n: [i32; MOST],
}

// Safety: plain numbers in C layout, the same as the kernel's struct.
unsafe impl DeviceRepr for Table {}

/// Counts a step: `clock` is `[steps, 1/(1−β1^t), 1/(1−β2^t)]`.
pub fn tick(clock: &Tensor, beta1: f64, beta2: f64) -> Result<()> {
    let args = [Arg::P(at(clock)?), Arg::D(beta1), Arg::D(beta2)];
    launch(&device_of(clock)?, "adam_tick", ((1, 1), 1, 0), &args)
}

/// One step of parameters: (weights, first moment, second moment, gradient), all contiguous.
/// `settings` = [rate, β1, β2, ε].
pub fn step(parts: &[(&Tensor, &Tensor, &Tensor, &Tensor)], clock: &Tensor, settings: [f32; 4]) -> Result<()> {
    let device = device_of(clock)?;
    let f = kernel(&device, "adam_all")?;
    let stream = device.cuda_stream();
    let clock = at(clock)?;
    for some in parts.chunks(MOST) {
        let mut table = Table { p: [0; MOST], m: [0; MOST], v: [0; MOST], g: [0; MOST], n: [0; MOST] };
        for (i, (p, m, v, g)) in some.iter().enumerate() {
            table.p[i] = at(p)?;
            table.m[i] = at(m)?;
            table.v[i] = at(v)?;
            table.g[i] = at(g)?;
            table.n[i] = p.elem_count() as i32;
        }
        let mut l = stream.launch_builder(&f);
        l.arg(&table).arg(&clock);
        for x in &settings {
            l.arg(x);
        }
        let config = LaunchConfig { grid_dim: (64, some.len() as u32, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
        // Safety: every buffer holds n numbers; the stream orders this after the backward pass.
        unsafe { l.launch(config) }.w()?;
    }
    Ok(())
}

/// Averages move towards values: `average = decay·average + (1 − decay)·value` for each pair (average, value).
pub fn average(pairs: &[(&Tensor, &Tensor)], decay: f32) -> Result<()> {
    let Some((first, _)) = pairs.first() else { return Ok(()) };
    let device = device_of(first)?;
    let f = kernel(&device, "average_all")?;
    let stream = device.cuda_stream();
    for some in pairs.chunks(MOST) {
        let mut table = Table { p: [0; MOST], m: [0; MOST], v: [0; MOST], g: [0; MOST], n: [0; MOST] };
        for (i, (average, value)) in some.iter().enumerate() {
            (table.p[i], table.g[i], table.n[i]) = (at(average)?, at(value)?, average.elem_count() as i32);
        }
        let mut l = stream.launch_builder(&f);
        l.arg(&table).arg(&decay);
        let config = LaunchConfig { grid_dim: (64, some.len() as u32, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
        // Safety: both of a pair hold n numbers.
        unsafe { l.launch(config) }.w()?;
    }
    Ok(())
}
