//! The load that a command line asks for: its targets, its plan, its output.

use crate::error::DropInError;
use crate::printer::ToolPrinter;
use diskproof_model::plan::Plan;
use diskproof_model::target::TargetIdentity;
use std::path::{Path, PathBuf};

/// A target as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadTarget {
    /// A directory, file or device that exists.
    Existing(PathBuf),
    /// A file that is created where it does not exist, and stays.
    Output(PathBuf),
}

impl LoadTarget {
    /// The directory in which a tool would make this file.
    pub(crate) fn directory_of(file: &Path) -> Self {
        let parent = file.parent().filter(|path| !path.as_os_str().is_empty());
        Self::Existing(parent.unwrap_or(Path::new(".")).to_owned())
    }

    /// The path as given.
    pub fn path(&self) -> &PathBuf {
        match self {
            Self::Existing(path) | Self::Output(path) => path,
        }
    }
}

/// What a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct PlanContext<'a> {
    /// The target, identified. For an output that does not exist yet, its directory.
    pub target: &'a TargetIdentity,
    /// Seed of every random choice.
    pub seed: u64,
    /// The whole command line as given.
    pub argv: &'a [String],
}

impl PlanContext<'_> {
    /// With the seed of the command line, where it has one.
    pub(crate) fn seeded(self, seed: Option<u64>) -> Self {
        Self {
            seed: seed.unwrap_or(self.seed),
            ..self
        }
    }
}

/// A load that follows another one as a separate run.
pub struct NextLoad {
    /// What is measured.
    pub load: Box<dyn DropInLoad>,
    /// Who prints it.
    pub printer: NextPrinter,
}

impl NextLoad {
    pub(crate) fn new(load: impl DropInLoad + 'static, printer: NextPrinter) -> Self {
        let load = Box::new(load);
        Self { load, printer }
    }
}

/// Who prints a load that follows another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextPrinter {
    /// Its own printer.
    OwnPrinter,
    /// The printer of the previous load, whose text includes both.
    SamePrinter,
}

/// A load.
pub trait DropInLoad {
    /// What is measured.
    fn target(&self) -> LoadTarget;

    /// What is measured at the same time, by the same workloads.
    fn further_targets(&self) -> &[PathBuf] {
        &[]
    }

    /// The plan for the target; the others are added to it.
    fn plan(&self, context: &PlanContext<'_>) -> Result<Plan, DropInError>;

    /// Whether the whole scratch file is written before the first workload, instead of what each
    /// workload uses.
    fn fills_scratch_file(&self) -> bool {
        false
    }

    /// Where the figures or the load differ from the tool's on this command line, a sentence each.
    fn notes(&self) -> Vec<String>;

    /// The flag that the gate needs, and does not get on this command line, for a load that
    /// writes.
    fn writes(&self) -> bool {
        false
    }

    /// What is measured afterwards.
    fn next(&self) -> Option<NextLoad> {
        None
    }

    /// The output of a run of this plan.
    fn printer(&self, plan: &Plan, target: &TargetIdentity) -> Box<dyn ToolPrinter>;
}
