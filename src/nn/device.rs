//! Choosing the device that a run trains on.

use crate::nn::cuda;
use candle_core::{Device, Result, bail};

/// How work is launched on a GPU. Everything is on by default; the switches are for comparisons. They belong to a device
/// handle: models on it, and handles made of it by [`beside`], follow them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchOptions {
    /// Matrix products round their factors to 10 bits of mantissa (TF32); `docs/gpu.md` has what it changes.
    pub tf32: bool,
    /// The work for a shape of input is captured as a CUDA graph and replayed.
    pub graphs: bool,
    /// All steps of a recurrence are one launch where the card can do it.
    pub whole_recurrences: bool,
    /// Products of few rows are made by the program's own kernel, not by cuBLAS.
    pub small_gemm: bool,
    /// The operations of a transformer's steps are gathered into programs of the persistent kernel where the card can run
    /// it; the results are the same to the bit.
    pub programs: bool,
}

impl Default for LaunchOptions {
    fn default() -> Self {
        Self { tf32: true, graphs: true, whole_recurrences: true, small_gemm: true, programs: true }
    }
}

/// Whether this build can use GPUs at all.
pub const GPU_SUPPORT: bool = cuda::backend::AVAILABLE;

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

/// Whether [`open`] gives a GPU for this name. It opens nothing.
pub fn is_gpu(name: &str) -> bool {
    match name {
        "cpu" => false,
        "auto" => GPU_SUPPORT && cuda::backend::device_count() > 0,
        _ => GPU_SUPPORT,
    }
}

/// Lets the GPU's driver keep its compiled code below the data folder, so that only the first start on a new machine or
/// container waits for it. To be called before the program starts any thread.
pub fn keep_compiled(data_dir: &std::path::Path) {
    cuda::backend::keep_compiled(&data_dir.join("cache").join("cuda"));
}

/// The name of a device on a page: `cpu`, `cuda:0`.
pub fn label(device: &Device) -> String {
    match device.location() {
        candle_core::DeviceLocation::Cpu => "cpu".into(),
        candle_core::DeviceLocation::Cuda { gpu_id } => format!("cuda:{gpu_id}"),
        candle_core::DeviceLocation::Metal { gpu_id } => format!("metal:{gpu_id}"),
    }
}

/// A second handle of the same device, with a stream of its own: its work runs beside that of the first. The CPU has one
/// only.
///
/// # Errors
/// When the device cannot be opened again.
pub fn beside(device: &Device) -> Result<Device> {
    with_options(device, options(device))
}

/// How work is launched on a device.
pub fn options(device: &Device) -> LaunchOptions {
    device.as_cuda_device().map(cuda::options).unwrap_or_default()
}

/// A second handle of the same device that launches as `options` say. The CPU has no options.
///
/// # Errors
/// When the device cannot be opened again.
pub fn with_options(device: &Device, options: LaunchOptions) -> Result<Device> {
    match device.location() {
        candle_core::DeviceLocation::Cuda { gpu_id } => cuda::open(gpu_id, options),
        _ => Ok(device.clone()),
    }
}

/// The description of a device in figures: the card's name, or the processor's with the threads that products use.
pub fn describe(device: &Device) -> String {
    if let Ok(name) = device.as_cuda_device().and_then(cuda::backend::device_name) {
        return name;
    }
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name =
        info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':').map(|(_, n)| n.trim().to_owned()));
    format!("{}, {} threads", name.unwrap_or_else(|| "CPU".into()), crate::nn::sharing::threads())
}

fn open_cuda(ordinal: usize) -> Result<Device> {
    cuda::open(ordinal, LaunchOptions::default())
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
