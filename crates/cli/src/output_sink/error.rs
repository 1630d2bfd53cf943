//! Gives the reasons why an output file cannot be written, as ends of sentences.

use super::name::{NAME_BYTES_MAX, directory_of};
use crate::input_files::InputRole;
use diskproof_device::{ForeignData, PathError};
use diskproof_model::shell::quoted;
use rustix::io::Errno;
use std::io;
use std::path::Path;

/// The error where a file is not the one that was found before.
pub(super) const REPLACED_TEXT: &str = "another process is replacing it; try again";

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
    pub(crate) fn same_file(other: &Path) -> Self {
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

    /// The error of an output that is a directory.
    pub(super) fn is_directory() -> Self {
        Self::kernel(Errno::ISDIR, "is a directory; name a file".to_owned())
    }
}

/// Drops the number of the error: whoever gets this one prints its text.
impl From<OutputError> for io::Error {
    fn from(error: OutputError) -> Self {
        Self::other(error.why)
    }
}

/// The error of an output that is a file which this command line reads.
pub(super) fn input_error(role: InputRole) -> OutputError {
    OutputError::refused(format!("{}; name another file", role.refusal()))
}

/// The error of an output that belongs to another program.
pub(super) fn foreign_error(foreign: &ForeignData) -> OutputError {
    OutputError::refused(format!("{foreign}; name another file"))
}

/// The error of an output that cannot be opened.
pub(super) fn open_error(errno: Errno) -> OutputError {
    if errno == Errno::NAMETOOLONG {
        return name_length_error(NAME_BYTES_MAX);
    }
    let error = io::Error::from(errno);
    let why = format!("cannot open the file: {error}; name a file that this user may write");
    OutputError::kernel(errno, why)
}

/// The error of a path to an output that leads nowhere, or that must not be followed.
pub(super) fn walk_error(path: &Path, error: &PathError) -> OutputError {
    match error.errno() {
        None => OutputError::refused(error.to_string()),
        Some(errno @ Errno::NAMETOOLONG) => open_error(errno),
        Some(errno) => create_error(directory_of(path), &io::Error::from(errno)),
    }
}

/// The error of a directory in which no file can be created.
pub(super) fn create_error(directory: &Path, error: &io::Error) -> OutputError {
    let directory_text = directory.display();
    let errno = Errno::from_io_error(error);
    let why = match errno {
        Some(Errno::NOENT) => format!(
            "the directory {directory_text} does not exist (ENOENT); create it with: mkdir -p {}",
            quoted(&directory.to_string_lossy())
        ),
        Some(Errno::NOTDIR) => {
            format!("{directory_text} is not a directory (ENOTDIR); name one that is")
        }
        Some(Errno::NOSPC | Errno::DQUOT) => format!(
            "cannot create a file in {directory_text}: {error}; free some space, or name a \
             directory on another filesystem"
        ),
        _ => {
            format!("cannot create a file in {directory_text}: {error}; name a writable directory")
        }
    };
    OutputError { why, errno }
}

/// The error of a name that no filesystem takes.
pub(super) fn name_length_error(bytes_max: usize) -> OutputError {
    let why = format!("the name is longer than {bytes_max} bytes; use a shorter one");
    OutputError::kernel(Errno::NAMETOOLONG, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of the kernel where a file is created in a directory.
    fn created(errno: Errno) -> OutputError {
        create_error(Path::new("/data/out"), &io::Error::from(errno))
    }

    #[test]
    fn errors_of_outputs_keep_their_number_and_name_a_remedy() {
        for (errno, remedy) in [
            (Errno::NOENT, "mkdir -p /data/out"),
            (Errno::NOTDIR, "ENOTDIR"),
            (Errno::NOSPC, "free some space"),
            (Errno::DQUOT, "free some space"),
            (Errno::ACCESS, "writable directory"),
        ] {
            let error = created(errno);
            assert_eq!(error.errno, Some(errno));
            assert!(error.why.contains(remedy), "{}", error.why);
        }
    }

    #[test]
    fn long_name_is_no_directory_without_permission() {
        let long = open_error(Errno::NAMETOOLONG);
        assert_eq!(long, name_length_error(NAME_BYTES_MAX));
        assert_eq!(long.errno, Some(Errno::NAMETOOLONG));
        assert_ne!(open_error(Errno::ACCESS).why, long.why);
    }

    #[test]
    fn path_with_a_long_directory_is_too_long() {
        let path = Path::new("/tmp").join("n".repeat(300)).join("a.json");
        let error = match diskproof_device::TrustedPath::walk(&path) {
            Ok(_) => panic!("no filesystem has such a name"),
            Err(error) => walk_error(&path, &error),
        };
        assert_eq!(error, name_length_error(NAME_BYTES_MAX));
    }

    #[test]
    fn path_without_a_directory_names_it_and_how_to_make_it() {
        let path = Path::new("/no such directory/run.json");
        let error = match diskproof_device::TrustedPath::walk(path) {
            Ok(_) => panic!("it does not exist"),
            Err(error) => walk_error(path, &error),
        };
        assert_eq!(error.errno, Some(Errno::NOENT));
        let command = "mkdir -p '/no such directory'";
        assert!(error.why.contains(command), "{}", error.why);
    }

    #[test]
    fn file_that_a_rule_of_ours_refuses_has_no_number() {
        let same = OutputError::same_file(Path::new("/data/run.json"));
        assert_eq!(same.errno, None);
        assert!(same.why.contains("/data/run.json"), "{}", same.why);
        assert_eq!(OutputError::is_directory().errno, Some(Errno::ISDIR));
    }
}
