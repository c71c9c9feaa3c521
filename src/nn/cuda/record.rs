//! Recording what the GPU does for one shape of input, and replaying it with one call: a step of many small kernels
//! then costs the host nothing.

use super::*;
use candle_core::Device;
use candle_core::cuda_backend::cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Recordings that one recorder keeps; what comes after is carried out as it is.
const MOST: usize = 400;

/// Whether anything is recorded (for comparisons).
static ON: AtomicBool = AtomicBool::new(true);

/// Switches recording off and on, for all recorders.
pub fn set_recording(on: bool) {
    ON.store(on, Ordering::Relaxed);
}

enum Entry {
    /// Carried out so many times: the first times load kernels and fill caches.
    Seen(u32),
    Ready(Recording),
}

struct Recording(CudaGraph);

// Safety: a graph is launched by whoever holds the recorder's lock; the driver binds the context to the thread.
unsafe impl Send for Recording {}

/// Recordings by name.
#[derive(Default)]
pub struct Recorder {
    entries: Mutex<HashMap<String, Entry>>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recorder")
    }
}

impl Recorder {
    /// Carries out `body` on the device's stream. From the third time with the same name on, what was recorded is
    /// replayed: `body` must read its inputs from tensors that are overwritten in place ([`overwrite`], [`upload`]), leave
    /// its results in such, and never ask for a value.
    pub fn run(&self, device: &Device, name: &str, body: impl FnOnce() -> Result<()>) -> Result<()> {
        // Candle sends the shapes of strided tensors along with its kernels; cached, they stay where a replay looks for them.
        let _cache = device.as_cuda_device()?.enable_cuda_graph_htod_cache();
        let mut entries = self.entries.lock().unwrap();
        if !ON.load(Ordering::Relaxed) || (entries.len() >= MOST && !entries.contains_key(name)) {
            return body();
        }
        let entry = entries.entry(name.to_owned()).or_insert(Entry::Seen(0));
        match entry {
            Entry::Ready(recording) => return recording.0.launch().w(),
            Entry::Seen(times) if *times < 2 => {
                *times += 1;
                return body();
            }
            Entry::Seen(_) => {}
        }
        let stream = device.as_cuda_device()?.cuda_stream();
        stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).w()?;
        let done = body();
        let ended = stream.end_capture(CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH).w();
        done?;
        let Some(graph) = ended? else { bail!("the GPU recorded nothing for {name}") };
        graph.launch().w()?;
        *entry = Entry::Ready(Recording(graph));
        Ok(())
    }
}
