//! Failures of the device that a run computes on: a card that was lost, that hangs, or whose memory is full. The weights of the
//! update under way are lost with it; the run goes on from its last checkpoint, on whatever device there is then.

use super::checkpoint;
use candle_core::Error as Candle;
use std::error::Error;
use std::path::Path;

/// The device's own words, if an error came from it.
fn words(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| cause.downcast_ref::<Candle>().and_then(of_candle))
}

/// Candle's errors do not name what they wrap as their source.
fn of_candle(error: &Candle) -> Option<String> {
    match error {
        Candle::Cuda(cause) => Some(cause.to_string()),
        Candle::Metal(cause) => Some(cause.to_string()),
        Candle::Context { inner, .. } | Candle::WithPath { inner, .. } | Candle::WithBacktrace { inner, .. } => {
            of_candle(inner)
        }
        Candle::WrappedContext { wrapped, .. } => {
            let mut cause: Option<&(dyn Error + 'static)> = Some(&**wrapped);
            while let Some(error) = cause {
                if let Some(found) = error.downcast_ref::<Candle>().and_then(of_candle) {
                    return Some(found);
                }
                cause = error.source();
            }
            None
        }
        _ => None,
    }
}

/// An error with a sentence that says what to do where the device failed; any other error as it is. `device` is its name,
/// `folder` the run's.
pub(super) fn explained(error: anyhow::Error, device: &str, folder: &Path) -> anyhow::Error {
    let Some(said) = words(&error) else { return error };
    let full = said.to_lowercase().replace('_', " ").contains("out of memory");
    let why = if full {
        "its memory is full, so end other programs there, or give the run smaller batches"
    } else {
        "it may have been lost"
    };
    let kept = match checkpoint::newest(folder) {
        Ok((Some((header, _)), _)) => {
            format!("The checkpoint of update {} is whole, and nothing before it is lost", header.counters.update)
        }
        _ => "The run has no checkpoint yet".to_owned(),
    };
    // A backtrace may hang on to it, which is for the log.
    tracing::debug!("the device failed: {error:#}");
    anyhow::anyhow!(
        "the device {device} failed ({said}); {why}. {kept}. Start the program again to go on from there; with --device cpu it goes \
         on without that device"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    fn lost() -> Candle {
        Candle::Cuda("DriverError(CUDA_ERROR_LAUNCH_FAILED, \"unspecified launch failure\")".into())
    }

    #[test]
    fn a_failed_device_is_found_however_deep_and_other_errors_stay() {
        let folder = tempfile::tempdir().unwrap();
        let deep: anyhow::Result<()> = Err(lost().bt().context("in the decoder").with_path("x")).context("an update");
        for error in [lost().into(), deep.unwrap_err()] {
            let told = format!("{:#}", explained(error, "cuda:0", folder.path()));
            assert!(told.starts_with("the device cuda:0 failed (DriverError(CUDA_ERROR_LAUNCH_FAILED"), "{told}");
            assert!(told.contains("it may have been lost.") && told.contains("--device cpu"), "{told}");
        }
        let full = Candle::Cuda("DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")".into());
        let told = format!("{:#}", explained(full.into(), "cuda:1", folder.path()));
        assert!(told.contains("its memory is full") && !told.contains("been lost"), "{told}");
        let other = explained(anyhow::anyhow!("the loss is NaN"), "cuda:0", folder.path());
        assert_eq!(format!("{other:#}"), "the loss is NaN");
    }
}
