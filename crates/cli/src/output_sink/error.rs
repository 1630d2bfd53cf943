//! Gives the reasons why an output file cannot be written, as ends of sentences.

use super::name::{NAME_BYTES_MAX, directory_of};
use crate::input_files::InputRole;
use diskproof_device::PathError;
use diskproof_model::shell::quoted;
use rustix::io::Errno;
use std::io;
use std::path::Path;

/// The error where a file is not the one that was found before.
pub(super) const REPLACED: &str = "another process is replacing it; try again";

/// The reason why a file cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutputError {
    /// The end of a sentence that names the file.
    pub why: String,
    /// The kernel's error; `None` where a rule of ours refuses the file.
    pub errno: Option<Errno>,
}

impl OutputError {
    /// A rule of ours refuses the file.
    pub(super) fn refused(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            errno: None,
        }
    }

    /// The error of an output that is the same file as another of the command.
    pub(crate) fn same_as(other: &Path) -> Self {
        Self::refused(format!(
            "this is the same file as {}; name each file once",
            other.display()
        ))
    }

    /// The error of the kernel, explained by `why`.
    pub(super) fn kernel(errno: Errno, why: String) -> Self {
        Self {
            why,
            errno: Some(errno),
        }
    }

    pub(super) fn is_directory() -> Self {
        Self::kernel(Errno::ISDIR, "is a directory; name a file".to_owned())
    }
}

impl From<OutputError> for io::Error {
    fn from(error: OutputError) -> Self {
        Self::other(error.why)
    }
}

pub(super) fn input_error(role: InputRole) -> OutputError {
    OutputError::refused(format!("{}; name another file", role.refusal()))
}

pub(super) fn cannot_open(errno: Errno) -> OutputError {
    if errno == Errno::NAMETOOLONG {
        return name_too_long(NAME_BYTES_MAX);
    }
    let error = io::Error::from(errno);
    let why = format!("cannot open the file: {error}; name a file that this user may write");
    OutputError::kernel(errno, why)
}

pub(super) fn cannot_walk(path: &Path, error: &PathError) -> OutputError {
    match error.errno() {
        None => OutputError::refused(error.to_string()),
        Some(errno @ Errno::NAMETOOLONG) => cannot_open(errno),
        Some(errno) => cannot_create(directory_of(path), &io::Error::from(errno)),
    }
}

pub(super) fn cannot_create(folder: &Path, error: &io::Error) -> OutputError {
    let shown = folder.display();
    let errno = Errno::from_io_error(error);
    let why = match errno {
        Some(Errno::NOENT) => format!(
            "the directory {shown} does not exist (ENOENT); create it with: mkdir -p {}",
            quoted(&folder.to_string_lossy())
        ),
        Some(Errno::NOTDIR) => format!("{shown} is not a directory (ENOTDIR); name one that is"),
        Some(Errno::NOSPC | Errno::DQUOT) => format!(
            "cannot create a file in {shown}: {error}; free some space, or name a directory on \
             another filesystem"
        ),
        _ => format!("cannot create a file in {shown}: {error}; name a writable directory"),
    };
    OutputError { why, errno }
}

pub(super) fn name_too_long(bytes_max: usize) -> OutputError {
    let why = format!("the name is longer than {bytes_max} bytes; use a shorter one");
    OutputError::kernel(Errno::NAMETOOLONG, why)
}
