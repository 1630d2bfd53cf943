//! Gives each error its message and its exit code.

use diskproof_device::{OpenError, PathError, ProbeError, TargetFailure, WriteCacheError};
use diskproof_engine::RunError;
use diskproof_history::HistoryError;
use diskproof_model::target::Refusal;
use diskproof_postgres::PostgresError;
use std::process::ExitCode;

/// The end of the program. Scripts depend on the exit codes, so a code never changes its meaning
/// (docs and `--help` list them).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Without an error.
    Done,
    /// A threshold was missed.
    ThresholdMissed,
    /// The command line makes no sense.
    Usage,
    /// Refused for safety; nothing was touched.
    Refused,
    /// The run failed, or the target returned errors.
    Failed,
    /// A condition that the measurement could neither confirm nor reject.
    Undecided,
    /// A signal ended the run; what was measured was printed and saved.
    Signal(u8),
    /// The exit code of another tool.
    Tool(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::ThresholdMissed => 1,
            Exit::Usage => 2,
            Exit::Refused => 3,
            Exit::Failed => 4,
            Exit::Undecided => 5,
            // As a shell reports a process that died of the signal.
            Exit::Signal(number) => 128 + number,
            Exit::Tool(code) => code,
        })
    }
}

/// Errors with their own exit code; every other error is [`Exit::Failed`].
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line contradicts itself or the target.
    #[error("{0}")]
    Usage(String),
    /// The path cannot be identified, or is nothing to measure.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A symlink of another user leads there, or nothing is there.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The gate refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The target cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The engine failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The history cannot be used.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The write cache of a disk cannot be switched.
    #[error(transparent)]
    WriteCache(#[from] WriteCacheError),
    /// The user did not agree.
    #[error("{0}")]
    Unconfirmed(String),
    /// What was measured decides nothing, so nothing was written.
    #[error("{0}")]
    Undecided(String),
    /// The temporary PostgreSQL server cannot be used.
    #[error(transparent)]
    Postgres(#[from] PostgresError),
}

impl Failure {
    /// Refuses a `--time` below a second.
    pub(crate) fn check_time(time_ns: u64) -> Result<(), Self> {
        const SECOND_NS: u64 = 1_000_000_000;
        if time_ns >= SECOND_NS {
            return Ok(());
        }
        Err(Self::Usage(format!(
            "--time {}: too short to measure anything; use at least 1s",
            diskproof_model::units::format_duration(time_ns)
        )))
    }

    /// The error of `--size` for a target that needs no scratch file. `instead` says what to do.
    pub(crate) fn no_scratch_file(path: &str, instead: &str) -> Self {
        Self::Usage(format!(
            "--size is the size of a scratch file, but {path} needs none; {instead}"
        ))
    }

    /// The failure of the target that this one is; `None` of any other.
    pub(crate) fn of_target(&self) -> Option<TargetFailure> {
        match self {
            Self::Open(error) | Self::Postgres(PostgresError::Open(error)) => error.of_target(),
            Self::Run(error) => error.of_target(),
            Self::Usage(_)
            | Self::Probe(_)
            | Self::Path(_)
            | Self::Refused(_)
            | Self::History(_)
            | Self::WriteCache(_)
            | Self::Unconfirmed(_)
            | Self::Undecided(_)
            | Self::Postgres(_) => None,
        }
    }

    /// The exit code of this failure.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) | Self::Probe(_) | Self::Postgres(PostgresError::NoServer { .. }) => {
                Exit::Usage
            }
            Self::Path(PathError::Kernel { .. }) => Exit::Usage,
            Self::Undecided(_) => Exit::Undecided,
            Self::History(error) if error.is_refusal() => Exit::Refused,
            Self::Refused(_)
            | Self::Path(PathError::ForeignLink(_))
            | Self::Unconfirmed(_)
            | Self::WriteCache(
                WriteCacheError::NoSwitch { .. } | WriteCacheError::UnknownState { .. },
            ) => Exit::Refused,
            Self::Open(error) | Self::Postgres(PostgresError::Open(error)) => {
                exit_of_opening(error)
            }
            Self::Run(_) | Self::History(_) | Self::WriteCache(_) | Self::Postgres(_) => {
                Exit::Failed
            }
        }
    }
}

fn exit_of_opening(error: &OpenError) -> Exit {
    match error {
        OpenError::Refused(_)
        | OpenError::InUse { .. }
        | OpenError::NotOurs { .. }
        | OpenError::Stays { .. } => Exit::Refused,
        _ => Exit::Failed,
    }
}

/// The error of opening a target, if it is one, whether or not the error was made a [`Failure`] on
/// its way.
pub(crate) fn open_error(error: &anyhow::Error) -> Option<&OpenError> {
    match error.downcast_ref::<Failure>() {
        Some(Failure::Open(error)) => Some(error),
        Some(_) => None,
        None => error.downcast_ref::<OpenError>(),
    }
}

/// True if the gate refused, before or after it opened the target.
pub(crate) fn is_refused(error: &anyhow::Error) -> bool {
    let is_refusal = matches!(error.downcast_ref(), Some(Failure::Refused(_)));
    is_refusal || error.is::<Refusal>() || matches!(open_error(error), Some(OpenError::Refused(_)))
}

/// The exit code of an error, whether or not it was made a [`Failure`] on its way.
pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.exit();
    }
    if is_refused(error) {
        return Exit::Refused;
    }
    match open_error(error) {
        Some(error) => exit_of_opening(error),
        None => Exit::Failed,
    }
}

/// Prints an error, and returns the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if crate::stdio::is_closed_stdout(error) {
        // The reader, such as `head`, has what it wanted.
        return Exit::Done.into();
    }
    let failure = error.downcast_ref::<Failure>();
    let exit = exit_of(error);
    let mut text = format!("error: {}", with_causes(error));
    // The path in a message of one sentence may hold a newline.
    let is_sentence = matches!(failure, Some(Failure::Probe(_))) || open_error(error).is_some();
    if is_sentence && exit != Exit::Refused {
        text = text.replace('\n', "\\n");
    }
    crate::stdio::eprint_line(&text);
    exit.into()
}

/// An error and its causes; most of ours name the cause in their own message.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;
    use std::io;

    fn refusal() -> Refusal {
        Refusal {
            asked: "overwrite /x".to_owned(),
            reasons: vec!["it is open".to_owned()],
            remedy: "Nothing was written.".to_owned(),
        }
    }

    #[test]
    fn refusal_exits_with_its_code_wrapped_or_not() {
        for error in [
            anyhow::Error::from(OpenError::Refused(refusal())),
            Failure::Open(OpenError::Refused(refusal())).into(),
            Failure::Refused(refusal()).into(),
            refusal().into(),
        ] {
            assert!(
                is_refused(&error) && exit_of(&error) == Exit::Refused,
                "{error:?}"
            );
        }
        let path = "/x".to_owned();
        let error = anyhow::Error::from(OpenError::InUse { path });
        assert!(!is_refused(&error) && exit_of(&error) == Exit::Refused);
        assert_eq!(exit_of(&anyhow::anyhow!("x")), Exit::Failed);
    }

    #[test]
    fn error_message_names_each_cause_once() {
        let source = io::Error::from_raw_os_error(12);
        let worker = RunError::Worker {
            path: "disk".to_owned(),
            workload: "load".to_owned(),
            source,
        };
        let text = with_causes(&Failure::Run(worker).into());
        assert_eq!(text.matches("os error 12").count(), 1, "{text}");
        let deep: anyhow::Error = Err::<(), _>(io::Error::other("no handler"))
            .context("cannot catch signals")
            .unwrap_err();
        assert_eq!(with_causes(&deep), "cannot catch signals: no handler");
    }
}
