//! Runs a program that reports about disks and waits for what it prints, but never longer than a
//! deadline: a disk that hangs keeps its caller in the kernel, where no signal reaches it. Does not
//! know what the text means.

use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Where distributions put it; users who are not root often lack these in PATH.
const PLACES: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/sbin"];
/// A report has some tens of KiB; longer output is not a report.
const REPORT_BYTES_MAX: u64 = 4 << 20;
/// A program that was killed is looked after this often, this long.
const REAP_EVERY: Duration = Duration::from_millis(2);
const REAP_FOR: Duration = Duration::from_millis(200);

/// Why there is no text.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// Nothing came in time; the program was ended.
    Late,
    /// It could not be started or read.
    Failed(io::Error),
}

/// The program, in the directories of `search_path` (relative ones skipped), then where
/// distributions put it.
pub(crate) fn find_program(name: &str, search_path: Option<&OsStr>) -> Option<PathBuf> {
    let listed = search_path
        .map(|path| std::env::split_paths(path).collect::<Vec<_>>())
        .unwrap_or_default();
    let places = listed
        .into_iter()
        .filter(|place| place.is_absolute())
        .chain(PLACES.map(PathBuf::from));
    let is_program = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    places.map(|place| place.join(name)).find(is_program)
}

/// What a program prints on stdout, whatever its exit status.
pub(crate) fn output_of(mut command: Command, limit: Duration) -> Result<String, NoAnswer> {
    let deadline = Instant::now() + limit;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // Its own group, so that Ctrl-C does not cut it short, and so that what it may have started
    // ends with it.
    let mut child = command.process_group(0).spawn().map_err(NoAnswer::Failed)?;
    let Some(stdout) = child.stdout.take() else {
        return Err(NoAnswer::Failed(io::ErrorKind::BrokenPipe.into()));
    };
    let (sender, receiver) = mpsc::channel();
    // Reads on its own, and is left to itself when nothing comes: it ends with the program.
    let reader = std::thread::Builder::new().name("diskproof-report".to_owned());
    let started = reader.spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout
            .take(REPORT_BYTES_MAX)
            .read_to_end(&mut bytes)
            .map(|_| bytes);
        // No caller waits any more when it is late.
        let _ = sender.send(read);
    });
    let read = match started {
        Ok(_) => receiver.recv_timeout(limit),
        Err(error) => Ok(Err(error)),
    };
    let ends_in = deadline.saturating_duration_since(Instant::now());
    if !reaped(
        &mut child,
        if read.is_ok() {
            ends_in
        } else {
            Duration::ZERO
        },
    ) {
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        reaped(&mut child, REAP_FOR);
    }
    match read {
        Ok(Ok(bytes)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Ok(Err(error)) => Err(NoAnswer::Failed(error)),
        Err(_) => Err(NoAnswer::Late),
    }
}

/// Whether the child has ended by then. One in the kernel's hands may never end; it is left behind,
/// and init reaps it some day.
fn reaped(child: &mut Child, within: Duration) -> bool {
    let deadline = Instant::now() + within;
    loop {
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(REAP_EVERY);
    }
}
