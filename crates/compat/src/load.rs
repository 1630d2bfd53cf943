//! The load that a command line requests: of disks, with its targets, its plan and its output, or
//! of processors.

use crate::printer::{DropInError, PrimePrinter, ToolPrinter};
use diskproof_model::plan::Plan;
use diskproof_model::primes::PrimeLoad;
use diskproof_model::target::TargetIdentity;
use std::path::{Display, PathBuf};

/// A target as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadTarget {
    /// A directory, file or device that exists.
    Existing(PathBuf),
    /// A file that is created where it does not exist, and stays.
    Output(PathBuf),
    /// A file that the tool makes for its test. It is neither created nor written here: a scratch
    /// file without a name lies in its directory.
    Nameless(PathBuf),
}

impl LoadTarget {
    /// The path as given.
    pub fn path(&self) -> &PathBuf {
        match self {
            Self::Existing(path) | Self::Output(path) | Self::Nameless(path) => path,
        }
    }
}

/// The facts of this machine and target that a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct PlanContext<'a> {
    /// The target, identified. For an output that does not exist yet, and for a file without a
    /// name, its directory.
    pub target: &'a TargetIdentity,
    /// Seed of every random choice.
    pub seed: u64,
    /// The whole command line as given.
    pub argv: &'a [String],
}

impl PlanContext<'_> {
    /// The same context with the seed of the command line, where it has one.
    pub(crate) fn seeded(self, seed: Option<u64>) -> Self {
        Self {
            seed: seed.unwrap_or(self.seed),
            ..self
        }
    }
}

/// A load that follows another one as a separate run.
pub struct NextLoad {
    /// The load that is measured next.
    pub load: Box<dyn DropInLoad>,
    /// The printer of its output.
    pub printer: NextPrinter,
}

impl NextLoad {
    pub(crate) fn new(load: impl DropInLoad + 'static, printer: NextPrinter) -> Self {
        let load = Box::new(load);
        Self { load, printer }
    }
}

/// The printer of a load that follows another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextPrinter {
    /// The printer of that load itself.
    OwnPrinter,
    /// The printer of the previous load, whose text includes both.
    SamePrinter,
}

/// The facts of a load that are known before its target is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadHead {
    /// The target of the measurement.
    pub target: LoadTarget,
    /// Targets that the same workloads measure at the same time.
    pub further_targets: Vec<PathBuf>,
    /// True if it writes to the target that the command line names, and not to a scratch file. One
    /// that exists needs a flag that this command line lacks.
    pub writes_target: bool,
    /// True if the whole scratch file is written before the first workload, instead of what each
    /// workload uses.
    pub fills_scratch_file: bool,
    /// Differences of the figures or the load from the tool's on this command line, a sentence
    /// each.
    pub notes: Vec<String>,
}

impl LoadHead {
    /// The head of a load that only reads one target, or writes to a file of its own.
    pub(crate) fn new(target: LoadTarget, notes: Vec<String>) -> Self {
        Self {
            target,
            further_targets: Vec::new(),
            writes_target: false,
            fills_scratch_file: false,
            notes,
        }
    }

    /// The path of the target as given.
    pub(crate) fn path(&self) -> Display<'_> {
        self.target.path().display()
    }

    /// The head of the same load of another target, which exists. It has no notes, since they were
    /// printed with the first target.
    pub(crate) fn again_on(&self, path: &str) -> Self {
        Self {
            target: LoadTarget::Existing(path.into()),
            notes: Vec::new(),
            ..self.clone()
        }
    }
}

/// A load of a drop-in, from its command line to its next load.
pub trait DropInLoad {
    /// The facts that are known before its target is.
    fn head(&self) -> &LoadHead;

    /// The plan for the target; the others are added to it.
    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError>;

    /// The text that the tool has printed when it fails to open its target.
    fn text_before_opening(&self) -> &str {
        ""
    }

    /// The length of the new file, where the plan has nothing to do with its content.
    fn empty_file_bytes(&self) -> u64 {
        0
    }

    /// The exit code of a run on this target that measured all of its plan.
    fn end_code(&self, _target: &TargetIdentity) -> u8 {
        0
    }

    /// The load that is measured afterwards; `None` after the last.
    fn next(&self) -> Option<NextLoad> {
        None
    }

    /// The output of a run of this plan.
    fn printer(&self, plan: &Plan, target: &TargetIdentity) -> Box<dyn ToolPrinter>;
}

/// A command line that loads processors, and touches no disk.
pub struct PrimeRequest {
    /// The computation.
    pub load: PrimeLoad,
    /// Prints its output.
    pub printer: Box<dyn PrimePrinter>,
    /// Differences of the load from the tool's, a sentence each.
    pub notes: Vec<String>,
}
