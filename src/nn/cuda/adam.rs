//! Adam of all parameters in one launch; the step count lives on the device, so that a captured step can be replayed.

use super::*;

/// Parameters that one launch takes.
const MOST: usize = 48;

/// Addresses and sizes, as the kernel has them.
#[repr(C)]
struct Table {
    p: [Address; MOST],
    m: [Address; MOST],
    v: [Address; MOST],
    g: [Address; MOST],
    n: [i32; MOST],
}

const _: () = assert!(size_of::<Table>() == MOST * (4 * 8 + 4));

impl Default for Table {
    fn default() -> Self {
        let none = [Address::default(); MOST];
        Self { p: none, m: none, v: none, g: none, n: [0; MOST] }
    }
}

// SAFETY: plain numbers in C layout, the same as the kernel's struct.
unsafe impl DeviceRepr for Table {}

fn clock_of(clock: &Tensor) -> Result<Arg> {
    Ok(DeviceSlice::<f32>::of(clock)?.holding(3, "the clock of Adam")?.into())
}

/// The address of a tensor of `n` numbers.
fn address_of(t: &Tensor, n: usize) -> Result<Address> {
    Ok(DeviceSlice::<f32>::of(t)?.holding(n, "a parameter of Adam")?.into())
}

/// Counts a step: `clock` is `[steps, 1/(1−β1^t), 1/(1−β2^t)]`.
pub fn tick(clock: &Tensor, beta1: f64, beta2: f64) -> Result<()> {
    let args = [clock_of(clock)?, Arg::Double(beta1), Arg::Double(beta2)];
    launch(&device_of(clock)?, "adam_tick", ((1, 1), 1, 0), &args)
}

/// One step of parameters: (weights, first moment, second moment, gradient), all contiguous.
/// `settings` = [rate, β1, β2, ε].
pub fn step(parts: &[(&Tensor, &Tensor, &Tensor, &Tensor)], clock: &Tensor, settings: [f32; 4]) -> Result<()> {
    let device = device_of(clock)?;
    let [rate, beta1, beta2, epsilon] = settings.map(Arg::Float);
    let args = [clock_of(clock)?, rate, beta1, beta2, epsilon];
    for some in parts.chunks(MOST) {
        let mut table = Table::default();
        for (i, (p, m, v, g)) in some.iter().enumerate() {
            let n = p.elem_count();
            (table.p[i], table.m[i]) = (address_of(p, n)?, address_of(m, n)?);
            (table.v[i], table.g[i]) = (address_of(v, n)?, address_of(g, n)?);
            table.n[i] = n as i32;
        }
        backend::launch(&device, "adam_all", ((64, some.len() as u32), 256, 0), Some(&table), &args)?;
    }
    Ok(())
}

/// Averages move towards values: `average = decay·average + (1 − decay)·value` for each pair (average, value).
pub fn average(pairs: &[(&Tensor, &Tensor)], decay: f32) -> Result<()> {
    let Some((first, _)) = pairs.first() else { return Ok(()) };
    let device = device_of(first)?;
    for some in pairs.chunks(MOST) {
        let mut table = Table::default();
        for (i, (average, value)) in some.iter().enumerate() {
            let n = average.elem_count();
            (table.p[i], table.g[i], table.n[i]) = (address_of(average, n)?, address_of(value, n)?, n as i32);
        }
        let grid = ((64, some.len() as u32), 256, 0);
        backend::launch(&device, "average_all", grid, Some(&table), &[Arg::Float(decay)])?;
    }
    Ok(())
}
