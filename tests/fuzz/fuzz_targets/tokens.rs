#![no_main]
#![allow(dead_code)] // Every program uses its own part.

#[path = "../targets/texts.rs"]
mod texts;

libfuzzer_sys::fuzz_target!(|data: &[u8]| texts::tokens(data));
