//! The functions that are fuzzed. Each takes any bytes, and panics where the program would do something that it must not.
//! `tests/fuzz/fuzz_targets/` hands them what libFuzzer makes up, `tests/fuzz_targets.rs` the inputs that are kept and a number of
//! made-up ones at every run of the tests.

#[path = "targets/api.rs"]
pub mod api;
#[path = "targets/files.rs"]
pub mod files;
#[path = "targets/texts.rs"]
pub mod texts;

/// A target: its name, and what is done with an input.
pub struct Target {
    /// Name of its folder of inputs and of its program.
    pub name: &'static str,
    /// The work on one input.
    pub run: fn(&[u8]),
    /// Made-up inputs at every run of the tests.
    pub inputs: u64,
    /// Pieces of what it reads, of which inputs are made up.
    pub words: &'static [&'static str],
}

/// All targets.
pub const ALL: [Target; 8] = [
    Target { name: "expressions", run: texts::expressions, inputs: 4_000, words: texts::SYNTAX },
    Target { name: "tokens", run: texts::tokens, inputs: 4_000, words: texts::WORDS },
    Target { name: "reading", run: texts::reading, inputs: 4_000, words: texts::WORDS },
    Target { name: "descriptions", run: files::descriptions, inputs: 400, words: files::COLUMNS },
    Target { name: "episodes", run: files::episodes, inputs: 2_000, words: files::COLUMNS },
    Target { name: "corpora", run: files::corpora, inputs: 200, words: files::COLUMNS },
    Target { name: "checkpoints", run: files::checkpoints, inputs: 400, words: files::COLUMNS },
    Target { name: "api", run: api::bodies, inputs: 400, words: api::MEMBERS },
];
