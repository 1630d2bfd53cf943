//! How the tests start the program, and what else they share.

pub mod patient;

use diskproof_model::record::Record;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A short run: each workload gets a tenth of a second or two.
pub const SHORT: [&str; 4] = ["--time", "1s", "--size", "16M"];

/// Where runs are saved: never in the history of whoever runs the tests. All tests share it, as
/// programs on a machine do.
pub const HISTORY: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/history.db");

const PROGRAM: &str = env!("CARGO_BIN_EXE_diskproof");

/// The program, in an environment without the variables that it looks at.
pub fn program<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    in_clean_environment(Command::new(PROGRAM), arguments)
}

/// The program ahead of all else that the machine does, where the system permits it: for what a
/// busy machine would hide.
pub fn undisturbed<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let fifo = ["--fifo", "1"];
    if !Command::new("chrt")
        .args(fifo)
        .arg("true")
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        return program(arguments);
    }
    let mut command = Command::new("chrt");
    command.args(fifo).arg(PROGRAM);
    in_clean_environment(command, arguments)
}

fn in_clean_environment<S: AsRef<OsStr>>(
    mut command: Command,
    arguments: impl IntoIterator<Item = S>,
) -> Command {
    for name in [
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "TERM",
        "CI",
        "DISKPROOF_NO_HISTORY",
        "DISKPROOF_GIVE_UP_AFTER",
    ] {
        command.env_remove(name);
    }
    command.env("DISKPROOF_HISTORY", HISTORY);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// How a run went.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("everything printed is UTF-8");
        Self {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

impl Ran {
    /// The record on stdout, and nothing but it.
    pub fn record(&self) -> Record {
        serde_json::from_str(&self.out).unwrap_or_else(|error| {
            panic!("no record on stdout: {error}\n{}\n{}", self.out, self.err)
        })
    }

    /// Codes of the findings of the record on stdout.
    pub fn findings(&self) -> Vec<String> {
        self.record()
            .findings
            .into_iter()
            .map(|finding| finding.code)
            .collect()
    }
}

/// Runs the program to its end.
pub fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    program(arguments).output().unwrap().into()
}

/// `check TARGET` with these flags.
pub fn check(target: &Path, flags: &[&str]) -> Ran {
    run([OsStr::new("check"), target.as_os_str()]
        .into_iter()
        .chain(flags.iter().map(OsStr::new)))
}

/// Copies the program. Another process does it: while this one has the copy open for writing, a
/// child that another test starts holds it open, too, until it has become another program, and
/// meanwhile the copy cannot be run (ETXTBSY).
pub fn copy_program(to: &Path) {
    diskproof_simdisk::testbed::run(
        "cp",
        &[env!("CARGO_BIN_EXE_diskproof"), to.to_str().unwrap()],
    );
}

/// `check TARGET` by user nobody, who belongs to no group.
pub fn check_as_nobody(target: &Path, flags: &[&str]) -> Ran {
    // Where the program lies, nobody may not go.
    let place = diskproof_simdisk::testbed::place();
    let copy = place.path().join("diskproof");
    copy_program(&copy);
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(copy)
        .arg("check")
        .arg(target)
        .args(flags);
    let own = place.path().join("own");
    std::fs::create_dir(&own).unwrap();
    std::os::unix::fs::chown(&own, Some(65534), Some(65534)).unwrap();
    command.env("DISKPROOF_HISTORY", own.join("history.db"));
    command
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .unwrap()
        .into()
}

/// Names in a directory.
pub fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Free bytes of a filesystem, once it has settled.
pub fn free_bytes(directory: &Path) -> u64 {
    diskproof_simdisk::testbed::run("sync", &["-f", directory.to_str().unwrap()]);
    let space = rustix::fs::statvfs(directory).unwrap();
    space.f_bfree * space.f_frsize
}

/// Whether it becomes true within half a minute: the kernel ends a process's io_uring, and what it
/// holds, some time after the process.
pub fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    (0..300).any(|_| {
        is_so() || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            false
        }
    })
}

/// A file full of bytes that no cache or compression makes less of.
pub fn random_file(path: &Path, size_bytes: u64) {
    let mut source = std::io::Read::take(std::fs::File::open("/dev/urandom").unwrap(), size_bytes);
    let mut file = std::fs::File::create(path).unwrap();
    let mut block = vec![0; 1 << 20];
    loop {
        let length = std::io::Read::read(&mut source, &mut block).unwrap();
        if length == 0 {
            break;
        }
        diskproof_model::own_data::mark_sectors(&mut block[..length]);
        std::io::Write::write_all(&mut file, &block[..length]).unwrap();
    }
    file.sync_all().unwrap();
}

/// The content of a file in short.
pub fn content_hash(path: &Path) -> String {
    diskproof_simdisk::testbed::run("sha256sum", &[path.to_str().unwrap()])
}
