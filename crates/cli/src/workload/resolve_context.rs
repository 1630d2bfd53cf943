//! What a workload depends on besides its flags, and the error when the flags contradict it or each
//! other.

use diskproof_device::{host_facts, memory_free_bytes};
use diskproof_model::plan::EngineChoice;

/// The targets and the machine of a run.
#[derive(Debug, Clone)]
pub(crate) struct ResolveContext {
    /// Bytes of each target.
    pub target_bytes: Vec<u64>,
    /// Memory for buffers.
    pub memory: Memory,
    /// Content of the targets when the workload begins.
    pub content: Content,
    /// The I/O engine of the whole run, if one is set.
    pub engine: Option<EngineChoice>,
}

/// Memory in bytes; `None` where it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Memory {
    /// The machine's memory.
    pub installed_bytes: Option<u64>,
    /// Free memory, within the limits of control groups.
    pub free_bytes: Option<u64>,
}

impl Memory {
    /// That of this machine.
    pub(crate) fn of_host() -> Self {
        Self {
            installed_bytes: Some(host_facts().memory_bytes).filter(|bytes| *bytes > 0),
            free_bytes: memory_free_bytes(),
        }
    }
}

/// Content of the targets when a workload begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// None: all targets are new scratch files.
    Nothing,
    /// Data.
    Data,
}

/// Whether the user wrote flags or keys; errors name them in the same form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wording {
    /// `--depth`
    Flags,
    /// `depth`
    Keys,
}

impl Wording {
    /// A key as the user writes it.
    pub(crate) fn name(self, key: &str) -> String {
        match self {
            Self::Flags => format!("--{key}"),
            Self::Keys => key.to_owned(),
        }
    }
}

/// Flags or keys that contradict each other or the target, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Contradiction(pub String);

/// A resolved value.
pub(super) type Resolved<T> = Result<T, Contradiction>;

/// The error with this text.
pub(super) fn contradiction<T>(text: String) -> Resolved<T> {
    Err(Contradiction(text))
}
