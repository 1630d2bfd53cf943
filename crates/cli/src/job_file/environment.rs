//! Answers questions about the machine and its files, as far as a job file refers to them.
//! Read-only.

use crate::input_files::{InputRole, register};
use crate::plan_file::PLAN_FILE_BYTES_MAX;
use diskproof_device::{
    ProbeError, SmallFile, SmallFileError, host_facts, is_own_file, probe, read_small_file,
};
use diskproof_model::target::TargetKind;
use diskproof_model::units::format_bytes;
use std::path::{Path, PathBuf};

/// The kind of thing that a path leads to, after symlinks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathKind {
    /// The path does not exist.
    Nothing,
    /// A directory, in which scratch files can be made.
    Directory,
    /// A regular file of this many bytes.
    File(u64),
    /// A block device of this many bytes.
    Device(u64),
    /// Something that cannot be measured; the reason, as a sentence.
    Other(String),
}

/// fio's keywords, which begin with `$`, with their values.
pub type Keywords = [(&'static str, u64); 3];

/// The machine and its files, as far as a job file refers to them. Read-only.
pub trait Environment {
    /// The value of an environment variable; `None` where it is unset or not UTF-8.
    fn variable(&self, name: &str) -> Option<String>;
    /// fio's keywords with their values on this machine.
    fn keywords(&self) -> Keywords;
    /// The text of an included file. The error says why it cannot be read.
    fn text(&self, path: &Path) -> Result<String, String>;
    /// The kind of thing that a path leads to.
    fn path_kind(&self, path: &Path) -> PathKind;
    /// The regular files in a directory and in those below it. The error says why it cannot be
    /// read.
    fn files_below(&self, directory: &Path) -> Result<Vec<PathBuf>, String>;
    /// True if a path names a file that diskproof made, and that nothing has changed since.
    fn is_made_by_us(&self, path: &Path) -> bool;
    /// The I/O scheduler of the disk below a path, where the kernel names one.
    fn scheduler(&self, path: &Path) -> Option<String>;
    /// The list of the processors of a NUMA node, such as `0-3`; `None` where it does not exist.
    fn node_cpus(&self, node: u16) -> Option<String>;
    /// The path from the root. Symlinks and `..` stay as they are.
    fn absolute(&self, path: &Path) -> PathBuf;
}

/// The machine that runs the program.
#[derive(Debug, Clone, Copy)]
pub struct System;

impl Environment for System {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn keywords(&self) -> Keywords {
        let cpus = match std::thread::available_parallelism() {
            Ok(cpus) => cpus.get() as u64,
            Err(_) => 1,
        };
        [
            ("$pagesize", rustix::param::page_size() as u64),
            ("$mb_memory", host_facts().memory_bytes >> 20),
            ("$ncpus", cpus),
        ]
    }

    fn text(&self, path: &Path) -> Result<String, String> {
        read_text(path)
    }

    fn path_kind(&self, path: &Path) -> PathKind {
        let identity = match probe(path) {
            Ok(identity) => identity,
            Err(ProbeError::Missing { .. }) => return PathKind::Nothing,
            Err(error) => return PathKind::Other(error.to_string()),
        };
        let is_devtmpfs = match &identity.filesystem {
            Some(filesystem) => filesystem.kind == "devtmpfs",
            None => false,
        };
        match identity.kind {
            // A file in /dev would be made of memory.
            TargetKind::Directory if is_devtmpfs => PathKind::Other(format!(
                "{} contains device nodes, but none of this name; name an existing device",
                path.display()
            )),
            TargetKind::Directory => PathKind::Directory,
            TargetKind::File => PathKind::File(identity.size_bytes),
            TargetKind::BlockDevice => PathKind::Device(identity.size_bytes),
        }
    }

    fn files_below(&self, directory: &Path) -> Result<Vec<PathBuf>, String> {
        let mut files = Vec::new();
        add_files_below(directory, &mut files)
            .map_err(|error| format!("cannot read {}: {error}", directory.display()))?;
        Ok(files)
    }

    fn is_made_by_us(&self, path: &Path) -> bool {
        is_own_file(path)
    }

    fn scheduler(&self, path: &Path) -> Option<String> {
        for layer in probe(path).ok()?.layers {
            if layer.scheduler.is_some() {
                return layer.scheduler;
            }
        }
        None
    }

    fn node_cpus(&self, node: u16) -> Option<String> {
        let path = format!("/sys/devices/system/node/node{node}/cpulist");
        Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        // Without the components that are "." only.
        let path: PathBuf = path.components().collect();
        if path.as_path() == Path::new(".") {
            std::env::current_dir().unwrap_or(path)
        } else {
            std::path::absolute(&path).unwrap_or(path)
        }
    }
}

/// The most files of a directory that become files of a job. Chosen, not measured.
const FOUND_FILES_MAX: usize = 1024;

/// Adds the regular files of a directory, in its order, and those of the directories in it.
/// Symlinks are no files.
fn add_files_below(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            add_files_below(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
        if files.len() > FOUND_FILES_MAX {
            let why = format!("it has more than {FOUND_FILES_MAX} files");
            return Err(std::io::Error::other(why));
        }
    }
    Ok(())
}

/// The text of a plan, profile or job file, which no output replaces from here on. The error says
/// why it cannot be read.
pub fn read_text(path: &Path) -> Result<String, String> {
    register(path, InputRole::Document);
    read_small_file(path, PLAN_FILE_BYTES_MAX)
        .and_then(SmallFile::into_text)
        .map_err(|error| unreadable(&error))
}

/// Why a plan, profile or job file cannot be read.
fn unreadable(error: &SmallFileError) -> String {
    match error {
        SmallFileError::TooLarge(bytes_max) => format!(
            "the file is larger, but a plan has at most {}; is this the right file?",
            format_bytes(*bytes_max)
        ),
        SmallFileError::NotRegular(_) => {
            "not a regular file; write the workloads to one".to_owned()
        }
        SmallFileError::NotText => "not UTF-8 text; save it as UTF-8".to_owned(),
        SmallFileError::Io(_) | SmallFileError::NoAnswer => error.to_string(),
    }
}
