//! What `-o` accepts and refuses, what a closed stdout costs, which limit of the shell an error
//! names, and that Ctrl-C ends every wait.

use crate::program::{
    Ran, SHORT, argv, check_unprivileged, eventually, names, needs, program, program_path,
};
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{TempDir, can_run, place, run};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A check that takes a second, with these further arguments, in this directory.
fn short_check(place: &Path, arguments: &[&str]) -> Command {
    let words = [&["check", "--read-only"][..], &SHORT, arguments].concat();
    let mut command = program(words);
    command.current_dir(place);
    command
}

fn assert_refused(place: &Path, arguments: &[&str], part: &str) {
    let before = names(place);
    let ran = Ran::of(short_check(place, arguments));
    let told = (ran.code, ran.out.as_str(), ran.err.contains(part));
    assert_eq!(told, (Some(2), "", true), "{arguments:?}: {}", ran.err);
    // Refused before the run: its first line of progress is missing.
    ran.tells_not("takes about");
    assert_eq!(names(place), before, "{arguments:?}");
}

fn read_record(path: &Path) -> Record {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn output_named_twice_is_refused_before_the_run() {
    let place = place();
    std::fs::create_dir(place.path().join("folder")).unwrap();
    symlink("a.json", place.path().join("link.json")).unwrap();
    let absolute = place.path().join("a.json");
    for other in [
        "a.json",
        "./a.json",
        "folder/../a.json",
        "link.json",
        absolute.to_str().unwrap(),
    ] {
        assert_refused(place.path(), &["-o", "a.json", "-o", other], "as a.json");
    }
    run(
        "mkfifo",
        &[place.path().join("pipe.json").to_str().unwrap()],
    );
    let twice = ["-o", "pipe.json", "-o", "./pipe.json"];
    assert_refused(place.path(), &twice, "same file");
}

#[test]
fn output_that_cannot_be_replaced_is_refused_before_the_run() {
    let place = place();
    let long = format!("{}.json", "n".repeat(251));
    assert_refused(place.path(), &["-o", &long], "longer than 255 bytes");
    symlink("/dev/loop0", place.path().join("disk.json")).unwrap();
    if Path::new("/dev/loop0").exists() {
        assert_refused(place.path(), &["-o", "disk.json"], "block device");
    }
    symlink("/dev/kmsg", place.path().join("device.json")).unwrap();
    if Path::new("/dev/kmsg").exists() {
        assert_refused(place.path(), &["-o", "device.json"], "character device");
    }
    if can_run(
        "output_that_cannot_be_replaced_is_refused_before_the_run",
        &["chattr"],
    ) {
        let file = place.path().join("fixed.json");
        std::fs::write(&file, "kept").unwrap();
        for (letter, undo) in [("+i", "-i"), ("+a", "-a")] {
            run("chattr", &[letter, file.to_str().unwrap()]);
            assert_refused(
                place.path(),
                &["-o", "fixed.json"],
                &format!("chattr {undo}"),
            );
            run("chattr", &[undo, file.to_str().unwrap()]);
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
    }
}

#[test]
fn output_in_a_read_only_directory_is_refused_before_the_run() {
    needs!("setpriv");
    let place = place();
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let output = place.path().join("a.json");
    let ran = check_unprivileged(
        Path::new("/var/tmp"),
        &["--quick", "-o", output.to_str().unwrap()],
    );
    ran.exits(2).tells("a.json").tells_not("takes about");
}

#[test]
fn output_goes_through_symlinks_and_into_pipes() {
    let place = place();
    std::fs::create_dir(place.path().join("real")).unwrap();
    std::fs::write(place.path().join("real/old.json"), "old").unwrap();
    symlink("real/old.json", place.path().join("old.json")).unwrap();
    symlink("real/new.json", place.path().join("new.json")).unwrap();
    symlink("/dev/null", place.path().join("null.json")).unwrap();
    symlink("/dev/stdout", place.path().join("stdout.json")).unwrap();
    let pipe = place.path().join("pipe.json");
    run("mkfifo", &[pipe.to_str().unwrap()]);
    let reader = std::thread::spawn(move || read_record(&pipe));
    let longest = format!("{}.json", "n".repeat(250));
    let outputs = format!("old.json new.json null.json stdout.json pipe.json {longest}");
    let outputs = argv(&outputs);
    let flags: Vec<&str> = outputs.iter().flat_map(|name| ["-o", name]).collect();
    let quiet = [&flags[..], &["--quiet", "--no-history"]].concat();
    let ran = Ran::of(short_check(place.path(), &quiet));
    ran.exits(0).tells_nothing();
    let id = read_record(&place.path().join(&longest)).run_id;
    assert_eq!(reader.join().unwrap().run_id, id);
    for name in ["old.json", "new.json"] {
        assert!(place.path().join(name).is_symlink());
        assert_eq!(
            read_record(&place.path().join("real").join(name)).run_id,
            id
        );
    }
    assert_eq!(names(&place.path().join("real")), ["new.json", "old.json"]);
    // The record as JSON, and the page after it.
    let printed = serde_json::Deserializer::from_str(&ran.out)
        .into_iter::<Record>()
        .next();
    assert_eq!(printed.unwrap().unwrap().run_id, id);
    ran.shows("random-read-d32");
}

/// A check with `--json` whose stdout is closed before anything is printed.
fn run_with_closed_stdout(place: &Path, arguments: &[&str]) -> Ran {
    let words = [&["--json"][..], arguments].concat();
    let mut child = short_check(place, &words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    Ran::from(child.wait_with_output().unwrap())
}

#[test]
fn json_into_a_closed_pipe_fails_only_where_the_record_is_lost() {
    let place = place();
    let lost = run_with_closed_stdout(place.path(), &["--no-history"]);
    lost.exits(4).tells("not saved");
    for saved in [
        &["-o", "a.json", "--no-history"][..],
        &["--history", "own.db"],
    ] {
        let ran = run_with_closed_stdout(place.path(), saved);
        ran.exits(0).tells("stdout").tells("is saved");
    }
}

/// A check under a limit of the shell, as this user.
fn check_under_limit(place: &Path, limit: &str) -> Ran {
    let binary = program_path();
    let line = format!("ulimit {limit}; exec {binary} check --time 1s --size 16M --no-history");
    let mut command = Command::new("sh");
    command
        .args(["-c", &line])
        .current_dir(place)
        .stdin(Stdio::null());
    Ran::of(command)
}

#[test]
fn small_stack_limit_does_not_matter() {
    let place = place();
    let ran = check_under_limit(place.path(), "-s 64");
    ran.exits(0);
}

/// What glibc itself says, with an abort, where it has no memory to note that a thread-local value
/// is to be dropped (`__cxa_thread_atexit_impl`). The program cannot answer for it, and what is
/// shipped is built with musl, which does not do so.
fn is_abort_of_glibc(ran: &Ran) -> bool {
    ran.code.is_none() && ran.err.contains("Fatal glibc error")
}

/// Somewhere between the size of the program and that of a run, an allocation fails.
#[test]
fn a_memory_limit_is_an_error_and_no_abort() {
    let place = place();
    let limited = |kib: u64| check_under_limit(place.path(), &format!("-v {kib}"));
    let starts_at = (30_000..200_000)
        .step_by(1_000)
        .find(|kib| matches!(limited(*kib).code, Some(0 | 4)))
        .expect("a program of under 200 MB");
    let mut failed = 0;
    for kib in (starts_at..starts_at + 30_000).step_by(3_000) {
        let ran = limited(kib);
        assert!(
            matches!(ran.code, Some(0 | 4)) || is_abort_of_glibc(&ran),
            "{kib}: {:?} {}",
            ran.code,
            ran.err
        );
        failed += u32::from(ran.code == Some(4) && ran.err.contains("ulimit"));
    }
    assert!(failed > 0, "from {starts_at} kB on");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn file_size_limit_is_named() {
    let place = place();
    let ran = check_under_limit(place.path(), "-f 1000");
    ran.exits(4).tells("ulimit -f");
}

#[test]
fn process_limit_is_named() {
    needs!("setpriv", "prlimit");
    let place = place();
    let copy = place.path().join("diskproof");
    crate::program::copy_program(&copy);
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o777)).unwrap();
    for threads in ["0", "1", "2", "3"] {
        let user = "--reuid=61234";
        let output = Command::new("setpriv")
            .args([user, "--regid=61234", "--clear-groups", "prlimit"])
            .arg(format!("--nproc={threads}"))
            .arg(&copy)
            .args(argv("run . --time 1s --size 16M --jobs 4 --no-history"))
            .current_dir(place.path())
            .output()
            .unwrap();
        let ran = Ran::from(output);
        ran.exits(4).tells("ulimit -u");
    }
}

/// A run that waits for something for ever, unless Ctrl-C ends it.
struct Waiting {
    child: Child,
    place: TempDir,
}

impl Waiting {
    fn start(place: TempDir, prepare: impl FnOnce(&mut Command)) -> Self {
        let mut command = short_check(place.path(), &[]);
        command.env("DISKPROOF_GIVE_UP_AFTER", "1000s");
        prepare(&mut command);
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self { child, place }
    }

    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Ends by the one signal that was sent, long before the time that it would wait.
    fn assert_ends(mut self) -> String {
        assert!(eventually(|| self.child.try_wait().unwrap().is_some()));
        let mut err = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(130), "{err}");
        err
    }
}

#[test]
fn ctrl_c_ends_the_wait_for_smartctl() {
    let place = place();
    let asked = place.path().join("asked");
    let program = place.path().join("smartctl");
    std::fs::write(
        &program,
        format!("#!/bin/sh\n: >{}\nsleep 60\n", asked.display()),
    )
    .unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", place.path().display());
    let mut waiting = Waiting::start(place, |command| {
        command.env("PATH", path);
    });
    let mut has_ended = false;
    assert!(eventually(|| {
        has_ended = waiting.child.try_wait().unwrap().is_some();
        asked.exists() || has_ended
    }));
    if has_ended {
        eprintln!("SKIPPED: ctrl_c_ends_the_wait_for_smartctl: a disk with a node in /dev");
        return;
    }
    waiting.interrupt();
    waiting.assert_ends();
}

#[test]
fn ctrl_c_ends_the_wait_for_the_reader_of_a_pipe() {
    let place = place();
    run(
        "mkfifo",
        &[place.path().join("pipe.json").to_str().unwrap()],
    );
    let waiting = Waiting::start(place, |command| {
        command.args(["-o", "pipe.json", "-o", "done.json", "--no-history"]);
    });
    let done = waiting.place.path().join("done.json");
    assert!(eventually(|| done.exists()));
    waiting.interrupt();
    let err = waiting.assert_ends();
    assert!(
        err.contains("-o pipe.json: the record was not written to this pipe"),
        "{err}"
    );
}

#[test]
fn ctrl_c_ends_the_wait_for_the_lock_of_the_history() {
    let place = place();
    let lock = File::create(place.path().join("own.db.lock")).unwrap();
    lock.lock().unwrap();
    let waiting = Waiting::start(place, |command| {
        command.args(["--history", "own.db", "-o", "done.json"]);
    });
    let done = waiting.place.path().join("done.json");
    assert!(eventually(|| done.exists()));
    waiting.interrupt();
    let err = waiting.assert_ends();
    assert!(err.contains("the run was not saved"), "{err}");
}

#[test]
fn verdict_follows_a_page_that_is_longer_than_the_screen() {
    needs!("script");
    let place = place();
    let ran = Ran::from(
        short_check(place.path(), &["-o", "run.json"])
            .output()
            .unwrap(),
    );
    ran.exits(0);
    let verdict = read_record(&place.path().join("run.json")).verdict.unwrap();
    let first_words: String = verdict.trust.why.chars().take(40).collect();
    let show = program(["show", "run.json"]);
    let show = format!("'{}' show run.json", show.get_program().to_str().unwrap());
    for (rows, shown) in [(10, 2), (900, 1)] {
        let line = format!("stty rows {rows} cols 80; {show}");
        let screen = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env("SHELL", "/bin/sh")
            .current_dir(place.path())
            .output()
            .unwrap();
        let screen = String::from_utf8_lossy(&screen.stdout).into_owned();
        assert_eq!(screen.matches(&first_words).count(), shown, "{screen}");
    }
}
