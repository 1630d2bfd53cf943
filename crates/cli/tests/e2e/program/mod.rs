//! Starts the program, and other helpers of the tests.

pub(crate) mod hanging_disk;

use diskproof_model::measurement::OpKind;
use diskproof_model::progress::{Control, Progress, Watch};
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_simdisk::testbed::TempDir;
use diskproof_simdisk::{SimDisk, spec};
use rustix::process::{Pid, Signal, kill_process};
use std::borrow::BorrowMut;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

/// A short run: each workload takes one or two tenths of a second.
pub(crate) const SHORT: [&str; 4] = ["--time", "1s", "--size", "16M"];

/// The history of all tests, so that the history of the user who runs them stays unchanged. The
/// tests share it, as programs on one machine do.
pub(crate) const HISTORY: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/history.db");

/// The program under test. `DISKPROOF_TESTED` names another build of it, such as one of dist/build.
pub(crate) fn program_path() -> String {
    let built = || env!("CARGO_BIN_EXE_diskproof").to_owned();
    std::env::var("DISKPROOF_TESTED").unwrap_or_else(|_| built())
}

/// The program, without the environment variables that it reads.
pub(crate) fn program<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    in_clean_environment(Command::new(program_path()), arguments)
}

/// The program with real-time priority, where the system permits it, so that a busy machine does
/// not hide the effect under test.
pub(crate) fn undisturbed<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
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
    command.args(fifo).arg(program_path());
    in_clean_environment(command, arguments)
}

/// The program with at most this much memory, without its stacks and what it maps from files.
pub(crate) fn within_memory<S: AsRef<OsStr>>(
    bytes: u64,
    arguments: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = Command::new("prlimit");
    command.arg(format!("--data={bytes}")).arg(program_path());
    in_clean_environment(command, arguments)
}

/// The program with this soft limit on open files, which it may raise.
pub(crate) fn within_files<S: AsRef<OsStr>>(
    soft_limit: u32,
    arguments: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = Command::new("prlimit");
    command
        .arg(format!("--nofile={soft_limit}:"))
        .arg(program_path());
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

/// The words of a command line, or of any other list, without quotes.
pub(crate) fn argv(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Runs the program with a command line, which is a format whose words have no spaces.
macro_rules! diskproof {
    ($($line:tt)*) => {
        $crate::program::run(format!($($line)*).split_whitespace())
    };
}
pub(crate) use diskproof;

/// Ends a test that cannot run here: without root or one of these programs.
macro_rules! needs {
    ($($program:literal),*) => {{
        fn here() {}
        if !diskproof_simdisk::testbed::can_run($crate::program::test_of(here), &[$($program),*]) {
            return;
        }
    }};
}
pub(crate) use needs;

/// The name of the function around `inner`.
pub(crate) fn test_of<F>(_: F) -> &'static str {
    let mut path = std::any::type_name::<F>().rsplit("::");
    path.nth(1).unwrap()
}

/// The exit code and the output of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The command line.
    pub asked: String,
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { asked, code, .. } = self;
        write!(
            f,
            "{asked}\nexit {code:?}\n{:.9000}\n{:.9000}",
            self.out, self.err
        )
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("everything printed is UTF-8");
        // A busy machine decides whether there is this note.
        let is_note = |line: &&str| line.contains(": the target is inspected before the run");
        let err = text(output.stderr);
        let err = err.split_inclusive('\n').filter(|line| !is_note(line));
        Self {
            asked: String::new(),
            code: output.status.code(),
            out: text(output.stdout),
            err: err.collect(),
        }
    }
}

impl Ran {
    /// Runs the command to its end.
    pub(crate) fn of(mut command: impl BorrowMut<Command>) -> Self {
        let command = command.borrow_mut();
        let ran = Self::from(command.output().unwrap());
        let asked = format!("{command:?}");
        Self { asked, ..ran }
    }

    /// Fails the test unless the exit code is this.
    #[track_caller]
    pub(crate) fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Fails the test unless stderr has this part.
    #[track_caller]
    pub(crate) fn tells(&self, part: &str) -> &Self {
        assert!(self.err.contains(part), "no '{part}' in stderr: {self}");
        self
    }

    #[track_caller]
    pub(crate) fn tells_all(&self, parts: &[&str]) -> &Self {
        parts.iter().for_each(|part| _ = self.tells(part));
        self
    }

    #[track_caller]
    pub(crate) fn tells_first(&self, part: &str) -> &Self {
        assert!(self.err.starts_with(part), "{self}");
        self
    }

    #[track_caller]
    pub(crate) fn tells_not(&self, part: &str) -> &Self {
        assert!(!self.err.contains(part), "'{part}' in stderr: {self}");
        self
    }

    #[track_caller]
    pub(crate) fn tells_nothing(&self) -> &Self {
        assert_eq!(self.err, "", "{self}");
        self
    }

    /// Fails the test unless stdout has this part.
    #[track_caller]
    pub(crate) fn shows(&self, part: &str) -> &Self {
        assert!(self.out.contains(part), "no '{part}' in stdout: {self}");
        self
    }

    #[track_caller]
    pub(crate) fn shows_all(&self, parts: &[&str]) -> &Self {
        parts.iter().for_each(|part| _ = self.shows(part));
        self
    }

    #[track_caller]
    pub(crate) fn shows_not(&self, part: &str) -> &Self {
        assert!(!self.out.contains(part), "'{part}' in stdout: {self}");
        self
    }

    #[track_caller]
    pub(crate) fn shows_first(&self, part: &str) -> &Self {
        assert!(self.out.starts_with(part), "{self}");
        self
    }

    #[track_caller]
    pub(crate) fn shows_nothing(&self) -> &Self {
        assert_eq!(self.out, "", "{self}");
        self
    }

    /// Fails the test where a line of stdout is wider than a terminal of 80 columns.
    #[track_caller]
    pub(crate) fn fits_80_columns(&self) -> &Self {
        let is_narrow = |line: &str| line.chars().count() <= 80;
        assert!(self.out.lines().all(is_narrow), "{self}");
        self
    }

    /// The JSON document that is all of stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// The record, which must be all that is on stdout.
    #[track_caller]
    pub(crate) fn record(&self) -> Record {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Codes of the findings of the record on stdout.
    pub(crate) fn findings(&self) -> Vec<String> {
        self.record()
            .findings
            .into_iter()
            .map(|finding| finding.code)
            .collect()
    }
}

/// Runs the program to its end.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    Ran::of(program(arguments))
}

/// Operations and bytes of a whole workload. A stall of the machine can split it into phases; the
/// figures of the last one are those of the workload.
pub(crate) fn counts(m: &Row, kind: OpKind) -> (u64, u64) {
    let phases = m
        .figures
        .phases
        .iter()
        .filter_map(|phase| phase.ops.get(&kind));
    let (count, bytes) = phases.fold((0, 0), |(count, bytes), op| {
        (count + op.count, bytes + op.bytes)
    });
    if m.figures.phases.is_empty() {
        return m
            .op(kind)
            .map_or((0, 0), |op| (op.data.count, op.data.bytes));
    }
    (count, bytes)
}

/// `check TARGET` with these flags.
pub(crate) fn check(target: &Path, flags: &[&str]) -> Ran {
    run([OsStr::new("check"), target.as_os_str()]
        .into_iter()
        .chain(flags.iter().map(OsStr::new)))
}

/// Copies the program with cp. If this process opened the copy for writing, a child that another
/// test forks at that moment would inherit the descriptor until its exec, and running the copy
/// would fail (ETXTBSY).
pub(crate) fn copy_program(to: &Path) {
    diskproof_simdisk::testbed::run("cp", &[&program_path(), to.to_str().unwrap()]);
}

/// `check TARGET` as user 65534, without groups.
pub(crate) fn check_unprivileged(target: &Path, flags: &[&str]) -> Ran {
    // That user cannot enter the folder of the program.
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

/// A run with pipes for stdout and stderr.
pub(crate) struct PipedRun {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl PipedRun {
    pub(crate) fn start<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Self {
        Self::of(&mut program(arguments))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    /// Waits for a line on stderr that contains `part`.
    pub(crate) fn wait_for_line(&mut self, part: &str) {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            let bytes = self.stderr.read_line(&mut line).unwrap();
            assert!(bytes > 0, "the run ended before '{part}'");
        }
    }

    /// Waits until the run has begun: from then on a signal ends the run, and not the program.
    pub(crate) fn wait_for_run(&self) {
        self.wait_for_thread("diskproof-run");
    }

    /// Waits until the program has a thread whose name is this, as far as the kernel keeps it: 15
    /// bytes.
    pub(crate) fn wait_for_thread(&self, wanted: &str) {
        let tasks = format!("/proc/{}/task", self.child.id());
        let is_there = || {
            let mut tasks = std::fs::read_dir(&tasks).unwrap().flatten();
            tasks.any(|task| {
                let name = std::fs::read_to_string(task.path().join("comm"));
                name.is_ok_and(|name| name.trim_end() == wanted)
            })
        };
        assert!(eventually(is_there), "no thread {wanted}");
    }

    /// Sends Ctrl-C, and waits for the end; `err` is the rest of stderr.
    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn interrupt(self) -> Ran {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.wait()
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end; `err` is the rest of stderr.
    pub(crate) fn wait(mut self) -> Ran {
        let (mut out, mut err) = (String::new(), String::new());
        let stdout = self.child.stdout.as_mut().unwrap();
        stdout.read_to_string(&mut out).unwrap();
        let code = self.child.wait().unwrap().code();
        self.stderr.read_to_string(&mut err).unwrap();
        let asked = String::new();
        Ran {
            asked,
            code,
            out,
            err,
        }
    }
}

/// A record that was saved as JSON.
#[track_caller]
pub(crate) fn saved_record(path: impl AsRef<Path>) -> Record {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// A simulated disk, the file `disk` in this directory.
pub(crate) fn sim_disk(place: &TempDir, model: &str, size_bytes: u64) -> SimDisk {
    let model = spec::parse(model).unwrap();
    SimDisk::serve(model, size_bytes, &place.path().join("disk")).unwrap()
}

/// Lets a simulated workload run to its end.
pub(crate) struct Unwatched;

impl Watch for Unwatched {
    fn tick(&mut self, _: &Progress<'_>) -> Control {
        Control::Continue
    }
}

/// Names in a directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Free bytes of a filesystem, after a sync.
pub(crate) fn free_bytes(directory: &Path) -> u64 {
    diskproof_simdisk::testbed::run("sync", &["-f", directory.to_str().unwrap()]);
    let space = rustix::fs::statvfs(directory).unwrap();
    space.f_bfree * space.f_frsize
}

/// Whether the condition becomes true within half a minute: the kernel releases the io_uring of a
/// process some time after its end.
pub(crate) fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    (0..300).any(|_| {
        is_so() || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            false
        }
    })
}

/// Tries with the first of these times, and with the next one where a busy machine left too little:
/// the attempt then returns why. The last one must succeed.
pub(crate) fn with_enough_time<T>(
    times: &[&str],
    mut attempt: impl FnMut(&str) -> Result<T, String>,
) -> T {
    let mut why = String::new();
    for time in times {
        match attempt(time) {
            Ok(done) => return done,
            Err(failed) => why = failed,
        }
    }
    panic!("{why}")
}

/// Whether the main thread of a process has ended.
pub(crate) fn has_ended(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/status"))
        .is_ok_and(|status| status.lines().any(|line| line.starts_with("State:\tZ")))
}

/// Writes a simulated disk whole: blocks that were never written are not read from the disk.
pub(crate) fn write_disk(path: &Path, size_bytes: usize) {
    let mut disk = std::fs::File::options().write(true).open(path).unwrap();
    std::io::Write::write_all(&mut disk, &vec![1; size_bytes]).unwrap();
}

/// Writes a file of incompressible data.
pub(crate) fn random_file(path: &Path, size_bytes: u64) {
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

/// A hash of the content of a file.
pub(crate) fn content_hash(path: &Path) -> String {
    diskproof_simdisk::testbed::run("sha256sum", &[path.to_str().unwrap()])
}
