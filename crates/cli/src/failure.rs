//! Exit codes, and which error has which.

use diskproof_device::{OpenError, ProbeError};
use diskproof_engine::RunError;
use diskproof_history::HistoryError;
use diskproof_model::target::Refusal;
use std::process::ExitCode;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// As asked.
    Done,
    /// A threshold was missed.
    ThresholdMissed,
    /// The command line makes no sense.
    Usage,
    /// Refused for safety; nothing was touched.
    Refused,
    /// The run failed, or the target gave errors.
    Failed,
    /// A signal ended it; what was measured was printed and saved.
    Signal(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::ThresholdMissed => 1,
            Exit::Usage => 2,
            Exit::Refused => 3,
            Exit::Failed => 4,
            // As a shell reports a process that died of the signal.
            Exit::Signal(number) => 128 + number,
        })
    }
}

/// Errors that have an exit code of their own; every other one is [`Exit::Failed`].
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line is at odds with itself or with the target.
    #[error("{0}")]
    Usage(String),
    /// What the path names cannot be told, or is nothing to measure.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The gate said no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The target could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The engine gave up.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The history was asked for and cannot be used.
    #[error(transparent)]
    History(#[from] HistoryError),
}

impl Failure {
    /// Its exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) | Self::Probe(_) => Exit::Usage,
            Self::Refused(_) | Self::Open(OpenError::Refused(_)) => Exit::Refused,
            Self::Open(_) | Self::Run(_) | Self::History(_) => Exit::Failed,
        }
    }
}
