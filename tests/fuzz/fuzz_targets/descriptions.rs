#![no_main]
#![allow(dead_code)] // Every program uses its own part.

#[path = "../targets/files.rs"]
mod files;

libfuzzer_sys::fuzz_target!(|data: &[u8]| files::descriptions(data));
