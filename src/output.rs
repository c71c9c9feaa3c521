//! The standard streams, files that appear whole or not at all, JSON on one line, locks on folders.
//!
//! `println!` and `eprintln!` panic when nobody reads any more or the device is full, so the crate's lints refuse them;
//! `out!` and `note!` take their place:
//!
//! - **Results** go to the standard output (`out!`, [`Stdout`]). When its reader has gone (`| head`), the rest is
//!   dropped and the command ends as it would have; it is nobody's error. Any other failure, such as a full device, is an
//!   [`OutputError`] that names the standard output.
//! - **Everything else** goes to the standard error stream (`note!`, [`Notes`]). When that cannot be written, there is
//!   nobody left to tell, and the work goes on.

// The one place where the standard streams are opened.
#![allow(clippy::disallowed_methods)]

pub mod file;
pub mod folder;
pub mod json;
pub mod lock;
pub mod spreadsheet;

use std::fmt::Arguments;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once the reader of the standard output has gone.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// A failed write; the message names the target and the system's reason.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {what}: {cause}")]
pub struct OutputError {
    what: String,
    /// Not a `source`: the message holds it already, and `{:#}` would repeat it.
    cause: io::Error,
}

impl OutputError {
    /// The error of writing to `what`: a file's name, or `to the standard output`.
    pub fn new(what: impl Into<String>, cause: io::Error) -> OutputError {
        OutputError { what: what.into(), cause }
    }

    /// The error of writing to the standard output.
    pub fn stdout(source: io::Error) -> OutputError {
        OutputError::new("to the standard output", source)
    }

    /// The error of the operating system.
    pub fn into_source(self) -> io::Error {
        self.cause
    }

    /// Whether the reader has closed the pipe; the command then ends quietly.
    pub fn is_closed(&self) -> bool {
        self.cause.kind() == io::ErrorKind::BrokenPipe
    }
}

/// Puts a line on the standard output, as `println!` does: `out!("{} rows", n)?`.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::print(::std::format_args!("{}\n", ::std::format_args!($($text)*))) };
}

/// Puts a line on the standard error stream, as `eprintln!` does. It cannot fail.
macro_rules! note {
    ($($text:tt)*) => { $crate::output::tell(::std::format_args!("{}\n", ::std::format_args!($($text)*))) };
}

pub(crate) use {note, out};

/// Puts text on the standard output and through to its reader. Nothing happens once the reader has gone.
///
/// # Errors
/// When the standard output cannot be written for another reason.
pub fn print(text: Arguments<'_>) -> Result<(), OutputError> {
    if CLOSED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    match out.write_all(text.to_string().as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            CLOSED.store(true, Ordering::Relaxed);
            Ok(())
        }
        done => done.map_err(OutputError::stdout),
    }
}

/// Puts text on the standard error stream, in one piece. Errors are dropped.
pub fn tell(text: Arguments<'_>) {
    let _ = io::stderr().lock().write_all(text.to_string().as_bytes());
}

/// The standard output for commands that write much, which end when a write fails: [`OutputError::is_closed`] tells
/// whether quietly.
pub struct Stdout(io::BufWriter<io::StdoutLock<'static>>);

impl Stdout {
    /// Locks the standard output.
    pub fn lock() -> Stdout {
        Stdout(io::BufWriter::with_capacity(1 << 16, io::stdout().lock()))
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The standard error stream as a writer that never fails.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notes;

impl Write for Notes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = io::stderr().lock().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a person looks at the standard error stream.
pub fn notes_are_watched() -> bool {
    io::IsTerminal::is_terminal(&io::stderr())
}

/// Flushes the standard output, which other libraries may have written to.
///
/// # Errors
/// When it cannot be written.
pub fn flush() -> io::Result<()> {
    io::stdout().lock().flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands show an error with its causes (`{:#}`).
    #[test]
    fn an_error_says_its_cause_once() {
        let error = OutputError::new("x.csv", io::Error::from(io::ErrorKind::StorageFull));
        let alone = error.to_string();
        assert!(alone.starts_with("cannot write x.csv: ") && !error.is_closed(), "{alone}");
        assert_eq!(format!("{:#}", anyhow::Error::from(error)), alone);
        assert!(OutputError::stdout(io::ErrorKind::BrokenPipe.into()).is_closed());
    }
}
