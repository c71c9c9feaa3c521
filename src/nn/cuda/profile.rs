//! Where the GPU's time goes: while a profile is taken, every kernel and product is between two events.

use super::*;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The cost of one kind of launch.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Line {
    /// Launches.
    pub launches: u64,
    /// Milliseconds on the device.
    pub milliseconds: f64,
    /// Floating-point operations of products.
    pub flops: f64,
}

struct Span {
    name: String,
    flops: f64,
    begin: Event,
    end: Event,
}

thread_local! {
    /// The name of the next kernel, and its floating-point operations.
    static NEXT: RefCell<Option<(String, f64)>> = const { RefCell::new(None) };
    static SPANS: RefCell<Option<Vec<Span>>> = const { RefCell::new(None) };
}

/// Takes a profile of what `work` launches on this thread. Graph capture must be off, since nothing is seen of a replay.
///
/// # Errors
/// When `work` fails, or the device does.
pub fn profile(work: impl FnOnce() -> Result<()>) -> Result<BTreeMap<String, Line>> {
    SPANS.with(|s| *s.borrow_mut() = Some(Vec::new()));
    let done = work();
    let spans = SPANS.with(|s| s.borrow_mut().take()).unwrap_or_default();
    done?;
    let mut lines: BTreeMap<String, Line> = BTreeMap::new();
    for span in spans {
        let line = lines.entry(span.name).or_default();
        line.launches += 1;
        line.milliseconds += f64::from(span.begin.milliseconds_to(&span.end)?);
        line.flops += span.flops;
    }
    Ok(lines)
}

/// Runs `work`, which launches one kernel; a profile calls it so.
pub(super) fn named<T>(name: impl FnOnce() -> String, flops: f64, work: impl FnOnce() -> Result<T>) -> Result<T> {
    if SPANS.with(|s| s.borrow().is_some()) {
        NEXT.with(|n| *n.borrow_mut() = Some((name(), flops)));
    }
    work()
}

/// Runs `work`, between two events if a profile is taken.
pub(super) fn span<T>(
    device: &CudaDevice,
    name: impl FnOnce() -> String,
    flops: f64,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    if !SPANS.with(|s| s.borrow().is_some()) {
        return work();
    }
    let begin = backend::event(device, true)?;
    let result = work()?;
    let end = backend::event(device, true)?;
    SPANS.with(|s| {
        if let Some(spans) = &mut *s.borrow_mut() {
            let (name, flops) = NEXT.with(|n| n.borrow_mut().take()).unwrap_or_else(|| (name(), flops));
            spans.push(Span { name, flops, begin, end });
        }
    });
    Ok(result)
}
