//! Removes the files of a test whose process the disk holds: a process of its own, which outlives
//! it. It is the program itself with a hidden verb, and works in the directory under test.

use crate::failure::OpenError;

use crate::leftover;
use crate::tree::open_folder;
use diskproof_model::files::FILES_DIRECTORY;
use std::os::fd::{AsFd as _, IntoRawFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// The hidden verb.
pub const FILES_REMOVER_VERB: &str = "files-remover";
/// How often it looks whether the test has ended.
const POLL: Duration = Duration::from_millis(200);

/// Starts the process that removes the files.
#[derive(Debug)]
pub struct FilesRemover;

impl FilesRemover {
    /// For the files in this directory. Its own group keeps Ctrl-C of the terminal away from it.
    pub fn start(directory: &str) -> Result<(), OpenError> {
        let path = Path::new(directory).join(FILES_DIRECTORY);
        let path = path.display().to_string();
        let started = Command::new("/proc/self/exe")
            .arg(FILES_REMOVER_VERB)
            .current_dir(directory)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match started {
            Ok(mut child) => {
                // Closes with the last thread of this process, which may be making the directory.
                let _ = child.stdin.take().map(IntoRawFd::into_raw_fd);
                Ok(())
            }
            Err(error) => {
                let errno = crate::errno::of(&error);
                Err(OpenError::from_errno(&path, "start its removal", errno))
            }
        }
    }
}

/// Waits until its input is closed and no process uses the files of the present directory, and
/// removes them.
pub fn remove_files() -> ExitCode {
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    let Ok(parent) = open_folder(rustix::fs::CWD, ".") else {
        return ExitCode::FAILURE;
    };
    loop {
        match leftover::remove(parent.as_fd(), FILES_DIRECTORY, FILES_DIRECTORY) {
            Err(OpenError::InUse { .. }) => std::thread::sleep(POLL),
            Err(_) => return ExitCode::FAILURE,
            Ok(_) => return ExitCode::SUCCESS,
        }
    }
}
