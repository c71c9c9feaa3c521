//! Comparisons on a GPU, which ordinary test runs leave out:
//!
//!     cargo test --features cuda --test device -- --ignored --test-threads 1
//!
//! `ILIAD_DEVICE` names another device than `cuda`. `ILIAD_REFERENCE_FIXTURES` names a folder with reference fixtures
//! (`*.safetensors`), which the repository does not hold; without it that comparison says that it was left out.

use candle_core::Device;
use iliad::nn::device::{LaunchOptions, open, with_options};
use iliad::nn::device_agreement::Apart;
use iliad::nn::reference_fixtures::FixtureFile;
use iliad::task::{nav, regex};

const REASON: &str = "the device can be used";

fn device(options: LaunchOptions) -> Device {
    let name = std::env::var("ILIAD_DEVICE").unwrap_or_else(|_| "cuda".into());
    with_options(&open(&name).expect(REASON), options).expect(REASON)
}

/// Hidden sizes at which every kernel of the recurrence has another shape: few units and many.
const HIDDEN: [(usize, u64); 2] = [(64, 8), (512, 4)];

/// The first loss is that of the same weights, so devices differ by rounding alone. Later ones also differ by what Adam makes of
/// rounding, and REINFORCE's are near zero. Sampled sequences part where two symbols are about as likely as a draw allows.
fn agrees(apart: &Apart, first: f64, losses: f64, share: f64) {
    let text = format!("{apart:?}");
    assert!(apart.first <= first && apart.losses <= losses, "{text}");
    for (all, differ) in [apart.written, apart.checked] {
        assert!(differ as f64 <= share * all as f64, "{text}");
    }
}

/// The recurrent models stay close; their products have factors of few bits in TF32.
fn regex_agrees(device: &Device, hidden: usize, steps: u64) {
    for apart in regex::device_agreement::agreement(device, hidden, steps).unwrap() {
        agrees(&apart, 1e-4, 1e-3, 0.02);
    }
}

/// A similarity memory has a threshold, so the walkers' later losses may part further.
fn nav_agrees(device: &Device, hidden: usize, steps: u64) {
    for apart in nav::device_agreement::agreement(device, hidden, steps).unwrap() {
        agrees(&apart, 5e-5, 1.0, 0.6);
    }
}

#[test]
#[ignore = "needs a GPU"]
fn the_regex_models_do_the_same_as_on_the_cpu() {
    for tf32 in [false, true] {
        let device = device(LaunchOptions { tf32, ..LaunchOptions::default() });
        HIDDEN.iter().for_each(|(hidden, steps)| regex_agrees(&device, *hidden, *steps));
    }
}

#[test]
#[ignore = "needs a GPU"]
fn the_nav_models_do_the_same_as_on_the_cpu() {
    for tf32 in [false, true] {
        let device = device(LaunchOptions { tf32, ..LaunchOptions::default() });
        HIDDEN.iter().for_each(|(hidden, steps)| nav_agrees(&device, *hidden, *steps));
    }
}

#[test]
#[ignore = "needs a GPU"]
fn the_models_do_the_same_without_captured_graphs_and_special_kernels() {
    let without =
        LaunchOptions { tf32: true, graphs: false, whole_recurrences: false, small_gemm: false, programs: false };
    let device = device(without);
    regex_agrees(&device, 64, 4);
    nav_agrees(&device, 64, 4);
}

#[test]
#[ignore = "needs a GPU"]
fn programs_of_operations_give_the_same_bits_as_single_launches() {
    let device = device(LaunchOptions::default());
    for hidden in [64, 256, 512] {
        for apart in nav::device_agreement::programs(&device, hidden, 8).unwrap() {
            let text = format!("{apart:?}");
            assert_eq!((apart.losses, apart.weights, apart.written.1), (0.0, 0.0, 0), "{text}");
        }
    }
}

#[test]
#[ignore = "needs a GPU"]
fn the_models_give_the_numbers_of_the_reference_fixtures() {
    let Some(folder) = std::env::var_os("ILIAD_REFERENCE_FIXTURES") else {
        println!("ILIAD_REFERENCE_FIXTURES names no folder: no fixture was compared");
        return;
    };
    let device = device(LaunchOptions { tf32: false, ..LaunchOptions::default() });
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.extension().is_none_or(|extension| extension != "safetensors") {
            continue;
        }
        let file = FixtureFile::read(&path).expect("the fixture can be read");
        let found = regex::reference_fixtures::check(&file, &device)
            .or_else(|| nav::reference_fixtures::check(&file, &device))
            .expect("the fixture is of a known model")
            .unwrap();
        assert!(found.worst() <= 1e-5, "{}: {found:?}", path.display());
        compared += 1;
    }
    assert!(compared > 0, "the folder holds no fixture");
}
