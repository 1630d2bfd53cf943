//! Defines the job that a verb hands over to be measured: its plan, its targets, the changes that
//! the user has agreed to, and the form of its results.

use super::sides::ComparedSides;
use crate::flags::MeasuringFlags;
use crate::plan_file::KeptFile;
use crate::tool_lines::SharedPrinter;
use diskproof_compat::JobCommand;
use diskproof_device::WriteCacheSwitch;
use diskproof_model::plan::Plan;
use diskproof_model::target::TargetIdentity;
use diskproof_postgres::Programs;
use std::path::PathBuf;

/// A plan and what it needs to run.
pub(crate) struct MeasuringJob<'a> {
    /// The plan of the run.
    pub plan: Plan,
    /// The targets, in the order of the plan.
    pub identities: Vec<TargetIdentity>,
    /// The shared flags.
    pub flags: &'a MeasuringFlags,
    /// The user's remark.
    pub note: Option<String>,
    /// Changes besides those of the targets.
    pub agreed: AgreedChanges,
    /// The sides that get records of their own; `None` where the run has one record until its end.
    pub sides: Option<ComparedSides>,
    /// The text for stdout at the end.
    pub shown: StdoutForm,
    /// The progress on a terminal.
    pub view: ProgressView,
    /// It goes on with what an earlier run began. The caller has said what is left, so that the
    /// budget of the whole is not announced.
    pub goes_on: bool,
}

/// How a terminal shows the progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressView {
    /// On one line that is redrawn in place.
    Line,
    /// On the whole terminal, where there is one.
    Screen,
}

impl<'a> MeasuringJob<'a> {
    /// A job with the remark of the flags, which changes nothing but its targets, and prints a
    /// page.
    pub(crate) fn new(
        plan: Plan,
        identities: Vec<TargetIdentity>,
        flags: &'a MeasuringFlags,
    ) -> Self {
        Self {
            plan,
            identities,
            flags,
            note: flags.note.clone(),
            agreed: AgreedChanges::NothingElse,
            sides: None,
            shown: StdoutForm::Page,
            view: ProgressView::Line,
            goes_on: false,
        }
    }
}

/// Changes that a run makes besides those of its targets. The user has agreed to them.
pub(crate) enum AgreedChanges {
    /// It changes its targets only.
    NothingElse,
    /// A temporary PostgreSQL server of these programs runs in the target.
    Server(Programs),
    /// The write cache of the disks is switched, and restored at the end.
    WriteCache(WriteCacheSwitch),
    /// Commands change a setting of the target.
    Commands(SettingCommands),
    /// The jobs of a tool run these commands before and after their requests.
    JobCommands(Vec<JobCommand>),
}

impl AgreedChanges {
    /// A server of these programs, or this switch of the write cache. No plan needs both.
    pub(crate) fn server_or_cache(
        programs: Option<Programs>,
        switch: Option<WriteCacheSwitch>,
    ) -> Self {
        if let Some(programs) = programs {
            Self::Server(programs)
        } else if let Some(switch) = switch {
            Self::WriteCache(switch)
        } else {
            Self::NothingElse
        }
    }

    /// The command that restores a setting, however the run ended.
    pub(super) fn cleanup(&self) -> Option<String> {
        match self {
            Self::Commands(commands) => commands.cleanup.clone(),
            Self::NothingElse | Self::Server(_) | Self::WriteCache(_) | Self::JobCommands(_) => {
                None
            }
        }
    }
}

/// Commands that change a setting of the target, as the user gave them: with passwords, which the
/// plan hides. Empty where the plan compares no settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingCommands {
    /// The command before each cell of a side.
    pub prepare: Vec<String>,
    /// The command after the last cell, however the run ended: it restores a setting.
    pub cleanup: Option<String>,
    /// True if the target is closed before each command, and opened again afterwards.
    pub reopens: bool,
    /// The target as the user names it: a command may lead the path elsewhere.
    pub path: PathBuf,
    /// True if the health of a disk is read that only a command brings.
    pub reads_health: bool,
}

/// The form of the result on stdout at the end of a run, unless `--json` selects the record.
#[derive(Clone)]
pub(crate) enum StdoutForm {
    /// The page of this program.
    Page,
    /// The text of the other tool whose command line is carried out.
    Tool(SharedPrinter),
    /// Nothing: the caller prints the result.
    Nothing,
}

impl StdoutForm {
    /// The tool whose command line is carried out, if one is.
    pub(super) fn tool(&self) -> Option<&SharedPrinter> {
        match self {
            Self::Tool(tool) => Some(tool),
            Self::Page | Self::Nothing => None,
        }
    }

    /// The scratch files that keep their names, by target; empty without a tool that leaves any.
    pub(super) fn kept_files(&self) -> &[Option<KeptFile>] {
        match self.tool() {
            Some(tool) => &tool.kept_files,
            None => &[],
        }
    }
}
