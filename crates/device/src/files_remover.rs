//! Removes the files that a killed test of many small files left behind; and those of a test whose
//! process the disk holds, by a process of its own, which outlives it. That is the program itself
//! with a hidden verb, and works in the directory under test.

use crate::claimed::{CLAIM, ClaimedDirectory, not_ours};
use crate::failure::OpenError;
use crate::file_names::{is_file_name, is_folder_name};
use crate::tree::{Entry, count_ours, open_folder};
use diskproof_model::files::FILES_DIRECTORY;
use rustix::fs::FileType;
use std::os::fd::{AsFd as _, BorrowedFd, IntoRawFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// The hidden verb.
pub const FILES_REMOVER_VERB: &str = "files-remover";
/// How often it looks whether the test has ended.
const POLL: Duration = Duration::from_millis(200);

/// Starts the process that removes the files in this directory. Its own group keeps Ctrl-C of the
/// terminal away from it.
pub fn start_files_remover(directory: &str) -> Result<(), OpenError> {
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

/// Waits until its input is closed and no process uses the files of the present directory, and
/// removes them.
pub fn remove_files() -> ExitCode {
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    let Ok(parent) = open_folder(rustix::fs::CWD, ".") else {
        return ExitCode::FAILURE;
    };
    loop {
        match remove_leftover(parent.as_fd(), FILES_DIRECTORY, FILES_DIRECTORY) {
            Err(OpenError::InUse { .. }) => std::thread::sleep(POLL),
            Err(_) => return ExitCode::FAILURE,
            Ok(_) => return ExitCode::SUCCESS,
        }
    }
}

/// Removes the directory `name`, shown as `path`, if a killed test left it. Returns how many files
/// it held; `None` where there is no such directory, or one without a file.
///
/// Everything in it is checked to be of that test before anything is removed; one strange entry
/// keeps all of it. Every step goes through a descriptor, so that no exchange of a name leads out
/// of the directory.
pub(crate) fn remove_leftover(
    parent: BorrowedFd<'_>,
    name: &str,
    path: &str,
) -> Result<Option<u64>, OpenError> {
    let Some(claimed) = ClaimedDirectory::claim_in(parent, name, path)? else {
        return Ok(None);
    };
    let made = claimed.files();
    let is_ours = |entry: &Entry<'_>| match entry.kind() {
        FileType::Directory => entry.depth == 0 && is_folder_name(entry.name_bytes()),
        _ => entry.depth == 1 && is_file_name(entry.name_bytes()) && made.accept(entry.stat()),
    };
    let (files, foreign) = count_ours(claimed.directory(), CLAIM, &is_ours).map_err(|errno| {
        OpenError::from_errno(path, "list the remains of an earlier run", errno)
    })?;
    match foreign.text() {
        Some(what) => Err(not_ours(path, &what)),
        None => claimed.remove(&is_ours).map(|()| Some(files)),
    }
}
