//! The program. Everything is in the library: see `src/cli.rs`.

fn main() -> std::process::ExitCode {
    iliad::cli::main()
}
