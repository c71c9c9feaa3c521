#![no_main]
#![allow(dead_code)] // Every program uses its own part.

#[path = "../targets/api.rs"]
mod api;
#[path = "../../support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| api::bodies(data));
