//! The program. Everything is in the library: see `src/cli.rs`.

/// Training asks for the same large blocks at every step. The system's own allocator gives them back in between, and a sixth of a step's
/// time on a CPU went into having them mapped and cleared anew.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay`, for which the bindings have no name: milliseconds until free memory goes back to the system.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Longer than a step; a server that rests becomes small again.
const MILLISECONDS: std::ffi::c_long = 6_000;

fn main() -> std::process::ExitCode {
    // Safety: sets an option of the allocator above, before any other thread is there.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, MILLISECONDS) };
    for (name, value) in iliad::nn::sharing::environment() {
        if std::env::var_os(name).is_none() {
            // Safety: no other thread is there that could read the environment meanwhile.
            unsafe { std::env::set_var(name, value) };
        }
    }
    iliad::cli::main()
}
