#![no_main]
#![allow(dead_code)] // Every program uses its own part.

#[path = "../targets/files.rs"]
mod files;

// The Parquet reader panics at some damaged files, which the import catches and calls damaged. libFuzzer's panic hook would abort
// before that; a panic that nothing catches still ends the program.
libfuzzer_sys::fuzz_target!(init: std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))), |data: &[u8]| {
    files::descriptions(data)
});
