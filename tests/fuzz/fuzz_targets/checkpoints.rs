#![no_main]

#[path = "../../support/mod.rs"]
mod support;
#[path = "../targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::files::checkpoints(data));
