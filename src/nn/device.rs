//! Choosing the device that a run trains on.

use candle_core::{Device, Result, bail};

/// Opens the device named `auto`, `cpu`, `cuda` or `cuda:N`. `auto` takes the first GPU where there is one.
///
/// # Errors
/// When a GPU is asked for by name and there is none (or this build has no GPU support), or the name is unknown.
pub fn open(name: &str) -> Result<Device> {
    match name {
        "cpu" => Ok(Device::Cpu),
        "auto" => Ok(open_cuda(0).unwrap_or(Device::Cpu)),
        "cuda" => open_cuda(0),
        other => match other.strip_prefix("cuda:").and_then(|n| n.parse().ok()) {
            Some(n) => open_cuda(n),
            None => bail!("the device is one of auto, cpu, cuda, cuda:N; not `{other}`"),
        },
    }
}

/// Lets the GPU's driver keep its compiled code below the data folder, so that only the first start on a new machine or
/// container waits for it. To be called before the program starts any thread.
pub fn keep_compiled(data_dir: &std::path::Path) {
    #[cfg(feature = "cuda")]
    crate::nn::cuda::module::keep_compiled(&data_dir.join("cache").join("cuda"));
    let _ = data_dir;
}

/// What to call a device on a page: `cpu`, `cuda:0`.
pub fn label(device: &Device) -> String {
    match device.location() {
        candle_core::DeviceLocation::Cpu => "cpu".into(),
        candle_core::DeviceLocation::Cuda { gpu_id } => format!("cuda:{gpu_id}"),
        candle_core::DeviceLocation::Metal { gpu_id } => format!("metal:{gpu_id}"),
    }
}

/// A second way to the same device, with its own stream: what goes there runs beside what goes to the first. The CPU has
/// one only.
///
/// # Errors
/// When the device cannot be opened again.
pub fn beside(device: &Device) -> Result<Device> {
    match device.location() {
        candle_core::DeviceLocation::Cuda { gpu_id } => open_cuda(gpu_id),
        _ => Ok(device.clone()),
    }
}

/// Lets matrix products on a GPU round their factors to 10 bits of mantissa (TF32), for the whole program. Opening a GPU
/// switches it on; `docs/gpu.md` has what it changes.
pub fn set_fast_products(on: bool) {
    #[cfg(feature = "cuda")]
    candle_core::cuda::set_gemm_reduced_precision_f32(on);
    let _ = on;
}

/// Whether what a GPU does is recorded and replayed, for the whole program. On at first.
pub fn set_recording(on: bool) {
    #[cfg(feature = "cuda")]
    crate::nn::cuda::record::set_recording(on);
    let _ = on;
}

/// Whether a GPU carries out all steps of a recurrence in one launch where it can, and products of few rows by this
/// program's own kernel, for the whole program. On at first.
pub fn set_whole_recurrences(on: bool) {
    #[cfg(feature = "cuda")]
    {
        crate::nn::cuda::lstm::set_whole(on);
        crate::nn::cuda::set_small_products(on);
    }
    let _ = on;
}

/// Whether a GPU gathers the operations of a transformer's steps and launches many at once where it can, for the whole program.
/// On at first; the results are the same to the bit.
pub fn set_programs(on: bool) {
    #[cfg(feature = "cuda")]
    crate::nn::cuda::steps::set_programs(on);
    let _ = on;
}

/// What the device is, for figures: the card's name, or the processor's with the threads that products use.
pub fn describe(device: &Device) -> String {
    #[cfg(feature = "cuda")]
    if let Ok(cuda) = device.as_cuda_device()
        && let Ok(name) = cuda.cuda_stream().context().name()
    {
        return name;
    }
    let _ = device;
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name =
        info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':').map(|(_, n)| n.trim().to_owned()));
    format!("{}, {} threads", name.unwrap_or_else(|| "CPU".into()), crate::nn::sharing::threads())
}

// An explicit stream, not the per-thread default: work stays ordered when a tensor is read from another thread.
#[cfg(feature = "cuda")]
fn open_cuda(ordinal: usize) -> Result<Device> {
    let device = Device::new_cuda_with_stream(ordinal)?;
    // Safety: no buffer is ever used on another stream than its own device's.
    unsafe { device.as_cuda_device()?.cuda_stream().context().disable_event_tracking() };
    set_fast_products(true);
    Ok(device)
}

#[cfg(not(feature = "cuda"))]
fn open_cuda(_ordinal: usize) -> Result<Device> {
    bail!("this build has no GPU support (it was built without the `cuda` feature)")
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_parsed_and_unknown_ones_refused() {
        assert!(super::open("cpu").unwrap().is_cpu());
        assert!(super::open("tpu").is_err());
        assert!(super::open("cuda:x").is_err());
        assert_eq!(super::label(&super::open("cpu").unwrap()), "cpu");
    }
}
