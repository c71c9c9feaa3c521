//! Transient errors: a full disk or one that may only be read, no file descriptor left, no memory, a busy database. A run waits
//! until they are over, however deep in a chain of errors they are wrapped.

use crate::store::StoreError;
use candle_core::Error as Candle;
use safetensors::SafeTensorError;
use std::error::Error;
use std::io::ErrorKind;

/// The cause of a transient error, which goes away by itself or when somebody helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transient {
    /// No room on the disk, or no more of it for this user.
    DiskSpace,
    /// The file system may only be read, until somebody mounts it for writing again.
    ReadOnly,
    /// No file descriptor is left, in this process or on the machine.
    Descriptors,
    /// No memory is left.
    Memory,
    /// The operating system refused a resource that it grants at other times.
    System,
    /// Somebody else holds what is needed, or the call was interrupted.
    Busy,
}

/// `EMFILE` and `ENFILE`, which the standard library has no stable kind for; the numbers are those of Linux, macOS and the BSDs.
const NO_DESCRIPTOR: [i32; 2] = [24, 23];

impl Transient {
    /// The cause of an error, if it is a transient one.
    pub(super) fn of(error: &anyhow::Error) -> Option<Self> {
        error.chain().find_map(Self::of_cause)
    }

    fn of_cause(cause: &(dyn Error + 'static)) -> Option<Self> {
        if let Some(error) = cause.downcast_ref::<StoreError>() {
            if matches!(error, StoreError::ReadOnly) {
                return Some(Self::ReadOnly);
            }
            return error.is_transient().then(|| match error {
                StoreError::DiskFull => Self::DiskSpace,
                StoreError::Transient { what, .. } if what.contains("memory") => Self::Memory,
                StoreError::Transient { .. } => Self::System,
                _ => Self::Busy,
            });
        }
        if let Some(error) = cause.downcast_ref::<std::io::Error>() {
            return Self::of_io(error);
        }
        // A JSON writer keeps what the file said to itself, but for its kind.
        if let Some(kind) = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind) {
            return Self::of_kind(kind);
        }
        if let Some(SafeTensorError::IoError(error)) = cause.downcast_ref() {
            return Self::of_io(error);
        }
        cause.downcast_ref::<Candle>().and_then(Self::of_candle)
    }

    fn of_io(error: &std::io::Error) -> Option<Self> {
        if error.raw_os_error().is_some_and(|number| NO_DESCRIPTOR.contains(&number)) {
            return Some(Self::Descriptors);
        }
        // An error that somebody wrapped in another one of the same type.
        let within = || error.get_ref().and_then(|inner| Self::of_cause(inner as &(dyn Error + 'static)));
        Self::of_kind(error.kind()).or_else(within)
    }

    fn of_kind(kind: ErrorKind) -> Option<Self> {
        match kind {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some(Self::DiskSpace),
            ErrorKind::ReadOnlyFilesystem => Some(Self::ReadOnly),
            ErrorKind::OutOfMemory => Some(Self::Memory),
            ErrorKind::ResourceBusy
            | ErrorKind::ExecutableFileBusy
            | ErrorKind::Interrupted
            | ErrorKind::WouldBlock
            | ErrorKind::TimedOut => Some(Self::Busy),
            _ => None,
        }
    }

    /// Candle's errors do not name what they wrap as their source.
    fn of_candle(error: &Candle) -> Option<Self> {
        match error {
            Candle::Io(error) => Self::of_io(error),
            Candle::SafeTensor(SafeTensorError::IoError(error)) => Self::of_io(error),
            Candle::Context { inner, .. } | Candle::WithPath { inner, .. } | Candle::WithBacktrace { inner, .. } => {
                Self::of_candle(inner)
            }
            Candle::WrappedContext { wrapped, .. } => {
                let mut cause: Option<&(dyn Error + 'static)> = Some(&**wrapped);
                while let Some(error) = cause {
                    if let Some(found) = Self::of_cause(error) {
                        return Some(found);
                    }
                    cause = error.source();
                }
                None
            }
            _ => None,
        }
    }

    /// A few words that name what a run waits for: "room on the disk".
    pub(super) fn awaited(self) -> &'static str {
        match self {
            Self::DiskSpace => "room on the disk",
            Self::ReadOnly => "a disk that can be written (it can only be read now)",
            Self::Descriptors => "a free file descriptor (too many files and connections are open)",
            Self::Memory => "free memory",
            Self::System => "what the machine refuses at the moment",
            Self::Busy => "a file or the database that is in use elsewhere",
        }
    }

    /// Seconds to wait before the next attempt, after so many that failed.
    pub(super) fn pause(self, failed: u32) -> std::time::Duration {
        // Descriptors and locks come back in moments; somebody has to make room on a disk.
        let (first, longest) = match self {
            Self::DiskSpace | Self::ReadOnly => (2000, 10_000),
            Self::Descriptors | Self::Memory | Self::System | Self::Busy => (500, 5000),
        };
        std::time::Duration::from_millis((first << failed.min(4)).min(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::artifact::ArtifactError;
    use anyhow::Context;
    use std::io;

    fn full() -> io::Error {
        ErrorKind::StorageFull.into()
    }

    fn no_descriptor() -> io::Error {
        io::Error::from_raw_os_error(24)
    }

    /// A file that takes so many bytes and is then out of room, as a disk is.
    struct SmallFile(usize);

    impl io::Write for SmallFile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            if taken == 0 { Err(io::Error::from_raw_os_error(28)) } else { Ok(taken) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn transient_errors_are_found_however_deep_they_are_wrapped() {
        use Transient::{Busy, Descriptors, DiskSpace, Memory, ReadOnly};
        let json = serde_json::to_writer(SmallFile(3), &vec!["a long text"]).unwrap_err();
        let bare: anyhow::Result<()> = Err(full()).context("cannot write the record");
        let all: Vec<(&str, anyhow::Error, Transient)> = vec![
            ("a context", bare.unwrap_err(), DiskSpace),
            ("a JSON writer", anyhow::Error::from(json).context("cannot write the record"), DiskSpace),
            ("an artifact", ArtifactError::Io { path: "update-1".into(), source: full() }.into(), DiskSpace),
            ("the store", anyhow::Error::from(StoreError::DiskFull).context("cannot record the update"), DiskSpace),
            ("a busy store", StoreError::Busy.into(), Busy),
            ("a quota", io::Error::from(ErrorKind::QuotaExceeded).into(), DiskSpace),
            ("a descriptor", no_descriptor().into(), Descriptors),
            ("the machine's descriptors", io::Error::from_raw_os_error(23).into(), Descriptors),
            ("memory", io::Error::from_raw_os_error(12).into(), Memory),
            ("again", io::Error::from_raw_os_error(11).into(), Busy),
            ("interrupted", io::Error::from_raw_os_error(4).into(), Busy),
            ("busy", io::Error::from_raw_os_error(16).into(), Busy),
            ("io in io", io::Error::other(full()).into(), DiskSpace),
            ("candle", Candle::Io(no_descriptor()).into(), Descriptors),
            ("read-only", io::Error::from(ErrorKind::ReadOnlyFilesystem).into(), ReadOnly),
            ("a read-only database", StoreError::ReadOnly.into(), ReadOnly),
            ("candle with a path", Candle::Io(full()).with_path("x").bt().into(), DiskSpace),
            ("candle with words", Candle::Io(full()).context("while saving").into(), DiskSpace),
            ("safetensors", SafeTensorError::IoError(full()).into(), DiskSpace),
            ("safetensors in candle", Candle::SafeTensor(SafeTensorError::IoError(full())).bt().into(), DiskSpace),
        ];
        for (name, error, expected) in all {
            assert_eq!(Transient::of(&error), Some(expected), "{name}: {error:#}");
        }
    }

    #[test]
    fn other_errors_are_not_waited_for() {
        assert_eq!(Transient::of(&StoreError::Superseded.into()), None);
        assert_eq!(Transient::of(&io::Error::from(ErrorKind::PermissionDenied).into()), None);
        assert_eq!(Transient::of(&io::Error::from(ErrorKind::NotFound).into()), None);
        assert_eq!(Transient::of(&anyhow::anyhow!("the loss is NaN")), None);
        assert_eq!(Transient::of(&serde_json::from_str::<u8>("x").unwrap_err().into()), None);
    }
}
