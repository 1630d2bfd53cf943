//! Commands that jobs run in a shell (`exec_prerun`, `exec_postrun`).

use std::path::PathBuf;

/// When a job runs a command of its author.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandTime {
    /// Before its first request.
    BeforeJob,
    /// After its last one.
    AfterJob,
}

/// A command that each copy of a job runs in a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCommand {
    /// The name of the job.
    pub job: String,
    /// The option that sets the command.
    pub option: &'static str,
    /// When it runs.
    pub time: CommandTime,
    /// The text for the shell.
    pub command: String,
    /// How often it runs: once for each copy.
    pub copies: u64,
    /// Names of the workloads that carry out the job.
    pub workloads: Vec<String>,
    /// The file that takes what the command prints. Copies replace it one after another.
    pub output: PathBuf,
}
