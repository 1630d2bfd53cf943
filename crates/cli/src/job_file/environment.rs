//! What the translation of a job file depends on besides its text: the command line, the machine
//! and its files.

use std::path::{Path, PathBuf};

/// The flags and operands of the command line that change the translation.
#[derive(Debug, Clone, Copy, Default)]
pub struct CliOverrides<'a> {
    /// The sections to run; all of them when empty.
    pub sections: &'a [String],
    /// Targets that replace those of the file.
    pub targets: &'a [PathBuf],
    /// Size of the scratch file in bytes.
    pub size: Option<u64>,
    /// Whether only the options are read: no file matters then, and the plan stays empty.
    pub only_options: bool,
    /// How close to fio the jobs run.
    pub closeness: Closeness,
    /// The directory of the output, where it goes to a file.
    pub output: Option<&'a Path>,
}

/// How close to fio jobs run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Closeness {
    /// As a measurement of the disk: what the page cache answers does not count.
    #[default]
    Disk,
    /// As in fio: through the page cache unless the job has `direct=1`, and with figures for each
    /// copy unless it has `group_reporting`.
    Fio,
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing.
    Nothing,
    /// A directory.
    Directory,
    /// A regular file of this many bytes.
    File(u64),
    /// A block device of this many bytes.
    Device(u64),
    /// Something that cannot be measured, and why.
    Other(String),
}

/// fio's keywords, with their values.
pub type Keywords = [(&'static str, u64); 3];

/// The machine and its files, as far as a job file refers to them. Read-only.
pub trait Environment {
    /// An environment variable.
    fn variable(&self, name: &str) -> Option<String>;
    /// fio's keywords on this machine.
    fn keywords(&self) -> Keywords;
    /// Text of an included file, or why it cannot be read.
    fn text(&self, path: &Path) -> Result<String, String>;
    /// What a path leads to.
    fn found(&self, path: &Path) -> PathKind;
    /// Whether a path names a file that diskproof made, and that nothing has changed since.
    fn is_own(&self, path: &Path) -> bool;
    /// The I/O scheduler of the disk below a path, where the kernel names one.
    fn scheduler(&self, path: &Path) -> Option<String>;
    /// The path from the root.
    fn absolute(&self, path: &Path) -> PathBuf;
}
