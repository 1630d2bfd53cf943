//! Signals that were ignored at the start, as under nohup(1), and readers of stdout that go away.

use crate::program::{argv, eventually, program, program_path, random_file};
use diskproof_simdisk::testbed::{TempDir, place};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// 128 + SIGPIPE, as a shell reports a tool that this signal has killed.
const UNREAD: i32 = 141;

fn place_with_file() -> TempDir {
    let place = place();
    random_file(&place.path().join("data.bin"), 4 << 20);
    place
}

/// The program, started by a shell that ignores these signals.
fn started_ignoring(place: &Path, signals: &str, line: &str) -> Child {
    let binary = program_path();
    let script = format!("trap '' {signals}; exec {binary} {line}");
    Command::new("sh")
        .args(["-c", &script])
        .env("DISKPROOF_NO_HISTORY", "1")
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the process has the thread of a run.
fn wait_for_run(child: &Child) {
    let tasks = format!("/proc/{}/task", child.id());
    let runs = || {
        let mut tasks = std::fs::read_dir(&tasks).unwrap().flatten();
        tasks.any(|task| {
            let name = std::fs::read_to_string(task.path().join("comm"));
            name.is_ok_and(|name| name.trim_end() == "diskproof-run")
        })
    };
    assert!(eventually(runs));
}

#[test]
fn signal_that_was_ignored_at_the_start_ends_no_run() {
    let place = place_with_file();
    for line in [
        "run data.bin --rw randread --time 2s",
        "ping data.bin --time 2s -i 100ms",
        "as fio --name=a --filename=data.bin --rw=randread --size=4m --time_based --runtime=2",
        "as ioping -w 2 -i 0.1 data.bin",
    ] {
        let child = started_ignoring(place.path(), "HUP INT QUIT", line);
        wait_for_run(&child);
        for signal in [Signal::HUP, Signal::INT, Signal::QUIT] {
            kill_process(Pid::from_child(&child), signal).unwrap();
        }
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {err}");
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(!out.contains("PARTIAL"), "{line}: {out}");
        // Another one still ends it.
        let child = started_ignoring(place.path(), "HUP", &line.replace('2', "600"));
        wait_for_run(&child);
        kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let output = child.wait_with_output().unwrap();
        let partial = [Some(128), Some(143), Some(0)];
        assert!(partial.contains(&output.status.code()), "{line}");
    }
}

/// The exit code of a command line whose reader leaves after so many lines.
fn code_without_reader(place: &Path, lines: usize, line: &str) -> Option<i32> {
    let mut child = program(argv(line))
        .env("DISKPROOF_NO_HISTORY", "1")
        .current_dir(place)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    for _ in 0..lines {
        assert!(stdout.read_line(&mut text).unwrap() > 0, "{line}: {text}");
    }
    drop(stdout);
    let mut code = None;
    let has_ended = eventually(|| {
        let ended = child.try_wait().unwrap();
        code = ended.and_then(|status| status.code());
        ended.is_some()
    });
    if !has_ended {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(has_ended, "{line}");
    code
}

#[test]
fn tool_ends_when_its_reader_has_gone() {
    let place = place_with_file();
    let fio = "as fio --name=a --filename=data.bin --size=4m --rw=read --time_based";
    for (lines, line) in [
        (3, format!("{fio} --runtime=600 --status-interval=1")),
        (1, format!("{fio} --runtime=1")),
        (1, "as ioping -c 100000 -i 0.05 data.bin".to_owned()),
        (2, "as pg_test_fsync -s 8 -f new.out".to_owned()),
        (
            1,
            "as sysbench --time=600 --report-interval=1 --cpu-max-prime=1000 cpu run".to_owned(),
        ),
        (0, "as hdparm -t data.bin".to_owned()),
    ] {
        let code = code_without_reader(place.path(), lines, &line);
        assert_eq!(code, Some(UNREAD), "{line}");
    }
}

#[test]
fn streaming_verb_ends_when_its_reader_has_gone() {
    let place = place_with_file();
    for line in [
        "ping data.bin -i 50ms --time 600s",
        "watch -i 100ms --time 600s",
    ] {
        assert_eq!(
            code_without_reader(place.path(), 1, line),
            Some(0),
            "{line}"
        );
    }
}

#[test]
fn usage_error_spells_hidden_characters_out() {
    for argument in ["--a\u{202e}b", "--a\u{9b}2J", "check\u{1b}[31m", "\u{202e}"] {
        let mut child = program([argument])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut text = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2));
        assert!(!text.contains(['\u{202e}', '\u{9b}', '\u{1b}']), "{text:?}");
        let is_spelled_out = text.contains("\\u{") || argument.contains('\u{1b}');
        assert!(is_spelled_out, "{text}");
    }
    // Also where only the value of a flag is wrong.
    let words = ["check", "/", "--label", "a\u{202e}b\u{1b}c"];
    let output = program(words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(!text.contains(['\u{202e}', '\u{1b}']), "{text:?}");
}
