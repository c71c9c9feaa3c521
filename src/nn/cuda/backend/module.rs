//! The module of compiled kernels: one image in the binary, loaded once for each card. Kernels are compiled while the
//! program is built, because compiling them at each start took longer than everything else that a start does.

use candle_core::cuda_backend::cudarc::driver::{CudaContext, CudaFunction, CudaModule};
use candle_core::cuda_backend::cudarc::nvrtc::Ptx;
use candle_core::cuda_backend::{CudaDevice, WrapErr};
use candle_core::{Result, bail};
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

/// Machine code for the generations of cards that the build was made for, and PTX for newer ones.
static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.fatbin"));

/// The module of one card, and its kernels that were launched before.
struct Loaded {
    module: Arc<CudaModule>,
    kernels: FxHashMap<&'static str, CudaFunction>,
}

/// Modules by the card's number. All device handles of a card share its primary context, and so its module.
static CARDS: RwLock<Option<FxHashMap<usize, Loaded>>> = RwLock::new(None);

/// The kernel called `name` of the `.cu` files in this folder.
///
/// # Errors
/// When the card is older than the build was made for, or the kernel does not exist.
pub(super) fn kernel(device: &CudaDevice, name: &'static str) -> Result<CudaFunction> {
    let context = device.cuda_stream().context().clone();
    let card = context.ordinal();
    {
        let cards = CARDS.read().unwrap_or_else(PoisonError::into_inner);
        let known = cards.as_ref().and_then(|cards| cards.get(&card)).and_then(|loaded| loaded.kernels.get(name));
        if let Some(kernel) = known {
            return Ok(kernel.clone());
        }
    }
    let mut cards = CARDS.write().unwrap_or_else(PoisonError::into_inner);
    let cards = cards.get_or_insert_default();
    if !cards.contains_key(&card) {
        cards.insert(card, Loaded { module: load(&context)?, kernels: FxHashMap::default() });
    }
    let Some(loaded) = cards.get_mut(&card) else { bail!("the module of card {card} is missing") };
    let kernel = loaded.module.load_function(name).w()?;
    loaded.kernels.insert(name, kernel.clone());
    Ok(kernel)
}

fn load(context: &Arc<CudaContext>) -> Result<Arc<CudaModule>> {
    match context.load_module(Ptx::from_binary(IMAGE.to_vec())) {
        Ok(module) => Ok(module),
        Err(error) => {
            let (major, minor) = context.compute_capability().w()?;
            bail!(
                "this build has no kernels for a card of compute capability {major}.{minor} ({error}); \
                 build it with CUDA_COMPUTE_CAP={major}{minor}"
            )
        }
    }
}

/// Lets the driver keep what it compiles (Candle's own kernels are PTX) in a folder that outlives the home folder of a
/// container, unless `CUDA_CACHE_PATH` names another. The driver itself keeps entries of other drivers and cards apart.
///
/// Must be called before anything else runs in the process: it changes the environment.
pub(super) fn keep_compiled_kernels(folder: &Path) {
    if std::env::var_os("CUDA_CACHE_PATH").is_none() && std::fs::create_dir_all(folder).is_ok() {
        // SAFETY: the caller has started no thread yet, so nobody reads the environment meanwhile.
        unsafe { std::env::set_var("CUDA_CACHE_PATH", folder) };
    }
}
