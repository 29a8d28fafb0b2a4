//! Exit codes: one for each kind of failure, so that a script can tell them apart.

use std::process::ExitCode;

use trunkline_transfer::{Class, Report};

/// How the command ended. The numbers are a promise (docs/promises/exit-codes.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything asked for was done.
    Success,
    /// Failures of several kinds.
    Mixed,
    /// The command line or an input file makes no sense.
    Usage,
    /// No connection, or it broke for good.
    Network,
    /// TLS: certificates, keys, handshakes.
    Tls,
    /// A server answered with an error status.
    Status,
    /// A server or proxy wants other credentials.
    Authentication,
    /// The bytes are not what was asked for; nothing was kept.
    Integrity,
    /// A local file could not be read or written.
    File,
    /// The time ran out.
    Timeout,
    /// The exit code of a command that was run.
    Child(u8),
    /// Stopped by a signal (128 + its number, as shells have it).
    Signal(u8),
}

impl Exit {
    /// The exit code of a plan.
    pub(crate) fn of(report: &Report) -> Self {
        let mut classes = report.classes.keys();
        match (classes.next(), classes.next()) {
            (None, _) => Self::Success,
            (Some(class), None) => Self::from(*class),
            (Some(_), Some(_)) => Self::Mixed,
        }
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Mixed => 1,
            Self::Usage => 2,
            Self::Network => 3,
            Self::Tls => 4,
            Self::Status => 5,
            Self::Authentication => 6,
            Self::Integrity => 7,
            Self::File => 8,
            Self::Timeout => 9,
            Self::Child(code) => code,
            Self::Signal(number) => 128 + number,
        }
    }
}

impl From<Class> for Exit {
    fn from(class: Class) -> Self {
        match class {
            Class::Usage => Self::Usage,
            Class::Network => Self::Network,
            Class::Tls => Self::Tls,
            Class::Status => Self::Status,
            Class::Authentication => Self::Authentication,
            Class::Integrity => Self::Integrity,
            Class::File => Self::File,
            Class::Timeout => Self::Timeout,
            Class::Cancelled => Self::Mixed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
