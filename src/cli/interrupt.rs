//! Ctrl+C and SIGTERM for commands that train: the first one saves and ends, the second one ends at once.

use crate::app::Interrupts;
use crate::command_line::Exit;

/// Calls `stop` at the first signal. At the second one it calls `abort` and ends the process with the code of a failure.
///
/// A thread of its own waits for the signals until the process ends.
pub(super) fn on_interrupt(stop: impl FnOnce() + Send + 'static, abort: impl FnOnce() + Send + 'static) {
    std::thread::spawn(move || {
        let Ok(runtime) = super::runtime() else { return };
        runtime.block_on(async {
            let Ok(mut interrupts) = Interrupts::listen() else { return };
            interrupts.next().await;
            stop();
            interrupts.next().await;
            abort();
            std::process::exit(Exit::Failed as i32);
        });
    });
}
