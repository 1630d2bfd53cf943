//! `diskproof ping` from the outside.

use crate::program::{Ran, argv, content_hash, names, needs, program, random_file, run, sim_disk};
use diskproof_model::finding::Severity;
use diskproof_model::measurement::{OpKind, StopReason};
use diskproof_model::ping::IgnoredBecause;
use diskproof_simdisk::testbed::{Loop, Mount, place};
use diskproof_simdisk::{SimDisk, spec};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

const MIB: u64 = 1 << 20;
const MILLISECOND_NS: u64 = 1_000_000;

fn ping(target: &Path, flags: &[&str]) -> Ran {
    let verb = [OsStr::new("ping"), target.as_os_str()];
    run(verb.into_iter().chain(flags.iter().map(OsStr::new)))
}

/// Lines of requests.
fn lines(out: &str) -> Vec<&str> {
    out.lines().filter(|line| line.contains(" #")).collect()
}

#[test]
fn every_request_has_a_line_and_nothing_stays() {
    let here = place();
    let ran = ping(
        here.path(),
        &["-c", "5", "-i", "20ms", "--size", "1M", "-v"],
    );
    ran.exits(0);
    let lines = lines(&ran.out);
    assert_eq!(lines.len(), 5, "{}", ran.out);
    for (index, line) in lines.iter().enumerate() {
        assert!(line.starts_with("4 KiB <<< "), "{line}");
        assert!(line.contains(&format!(" #{} ", index + 1)), "{line}");
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(lines[0].contains("warm-up"), "{}", lines[0]);
    ran.tells("50.0 requests/s of 4 KiB").tells("reads only");
    ran.shows("reads of 4 KiB: 4 requests");
    ran.shows("1 warm-up");
    assert!(names(here.path()).is_empty());
}

#[test]
fn record_holds_every_request_and_is_shown_again() {
    let here = place();
    let flags = ["-c", "4", "-i", "20ms", "--size", "1M", "--json", "-q"];
    let ran = ping(here.path(), &flags);
    ran.exits(0).tells_nothing();
    let record = ran.record();
    let m = &record.measurements[0];
    let requests = &m.data.requests;
    assert_eq!((requests.len(), m.data.stopped), (4, StopReason::Ops));
    assert_eq!(requests[0].ignored, Some(IgnoredBecause::Warmup));
    assert_eq!(
        (m.data.ops[&OpKind::Read].count, m.data.asked.read_bytes),
        (3, 4 * 4096)
    );
    for pair in requests.windows(2) {
        assert!(
            pair[1].at_ns - pair[0].at_ns >= 20 * MILLISECOND_NS,
            "{pair:?}"
        );
    }
    assert!(
        m.figures.reproduce.starts_with("ioping -c 4 -i 20000us "),
        "{}",
        m.figures.reproduce
    );
    let file = here.path().join("record.json");
    std::fs::write(&file, &ran.out).unwrap();
    let shown = run([OsStr::new("show"), file.as_os_str()]);
    shown.shows("reads of 4 KiB: 3 requests");
    let page = here.path().join("page.html");
    let out = format!("show {} -o {}", file.display(), page.display());
    let out = argv(&out);
    run(out).exits(0);
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("chart-requests-ping"));
}

#[test]
fn writes_go_only_to_what_the_user_released() {
    let here = place();
    let file = here.path().join("file");
    random_file(&file, MIB);
    let before = content_hash(&file);
    let refused = ping(&file, &["-W", "-c", "2", "-i", "1ms"]);
    refused.exits(3).shows_nothing().tells("--overwrite");
    assert_eq!(content_hash(&file), before);
    let read = ping(&file, &["-c", "2", "-i", "1ms", "-q"]);
    read.exits(0);
    assert_eq!(content_hash(&file), before);
    let flags = ["-W", "-c", "3", "-i", "1ms", "--overwrite", "--json", "-q"];
    let written = ping(&file, &flags);
    written.exits(0);
    let m = &written.record().measurements[0];
    assert_eq!(
        (m.data.ops[&OpKind::Commit].count, m.data.asked.write_bytes),
        (2, 3 * 4096)
    );
    assert_ne!(content_hash(&file), before);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), MIB);
}

#[test]
fn several_targets_are_requested_at_the_same_time() {
    let (one, two) = (place(), place());
    let mut words: Vec<&OsStr> = vec![OsStr::new("ping")];
    words.extend([one.path().as_os_str(), two.path().as_os_str()]);
    words.extend(["-c", "3", "-i", "30ms", "--size", "1M", "-G"].map(OsStr::new));
    let ran = run(words);
    ran.exits(0);
    assert_eq!(lines(&ran.out).len(), 6, "{}", ran.out);
    ran.tells("2 targets").tells("alternating");
    ran.shows("target 2 of 2").shows("writes of 4 KiB");
}

/// A filesystem on a disk that takes 5 ms for each request: what the disk answers cannot be faster.
#[test]
fn cached_ping_of_a_scratch_file_is_answered_by_the_page_cache() {
    needs!("fusermount3", "losetup", "mkfs.ext4");
    let here = place();
    let disk = sim_disk(&here, "latency=5ms,channels=64", 3 << 30);
    let device = Loop::over(disk.path(), &[]);
    let made = Command::new("mkfs.ext4")
        .arg("-qF")
        .arg(&device.node)
        .status();
    assert!(made.unwrap().success());
    let point = here.path().join("mounted");
    std::fs::create_dir(&point).unwrap();
    let _mount = Mount::new("ext4", device.node.to_str().unwrap(), &point, "rw");
    let flags = argv("-C -c 64 -i 1ms --size 4M --json -q");
    let ran = ping(&point, &flags);
    ran.exits(0);
    let record = ran.record();
    let requests = &record.measurements[0].data.requests;
    let slow = requests
        .iter()
        .filter(|one| one.latency_ns > 5 * MILLISECOND_NS);
    // A busy machine delays some of them.
    assert!(slow.count() < 32, "{requests:?}");
}

#[test]
fn slow_request_ends_the_ping_with_exit_code_1() {
    needs!("fusermount3");
    let here = place();
    let model = spec::parse("latency=20ms").unwrap();
    let disk = SimDisk::serve(model, 64 * MIB, &here.path().join("disk")).unwrap();
    let flags = ["-c", "50", "-i", "1ms", "--abort-above", "5ms"];
    let ran = ping(disk.path(), &flags);
    ran.exits(1).tells("request 2 took");
    ran.tells("exceeds --abort-above 5.00 ms");
    ran.shows("MISSED  ping.read.max<=5ms");
    assert!(lines(&ran.out).len() < 5, "{}", ran.out);
    let patient = ping(
        disk.path(),
        &["-c", "3", "-i", "1ms", "--abort-above", "30s"],
    );
    patient.exits(0);
}

#[test]
fn ping_without_a_limit_ends_with_the_summary_at_ctrl_c_and_quietly_without_a_reader() {
    let here = place();
    for reads_all in [true, false] {
        let mut words = vec![OsStr::new("ping"), here.path().as_os_str()];
        words.extend(["-i", "10ms", "--size", "1M"].map(OsStr::new));
        let mut child = program(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains(" #3 ") {
            line.clear();
            assert!(out.read_line(&mut line).unwrap() > 0);
        }
        let mut rest = String::new();
        if reads_all {
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
            out.read_to_string(&mut rest).unwrap();
        }
        drop(out);
        let ended = child.wait_with_output().unwrap();
        let err = String::from_utf8(ended.stderr).unwrap();
        let code = if reads_all { 130 } else { 0 };
        assert_eq!(ended.status.code(), Some(code), "{err}");
        assert!(!err.contains("error"), "{err}");
        if reads_all {
            assert!(rest.contains("reads of 4 KiB: "), "{rest}");
        }
    }
}

#[test]
fn impossible_pings_are_refused_before_they_start() {
    let here = place();
    for (flags, part) in [
        (&["--gaps", "-w", "5s"][..], "--gaps needs"),
        (&["--gaps", "-i", "1s"], "'--gaps'"),
        (&["--bs", "0"], "--bs"),
        (&["--size", "1k", "--bs", "4k"], "--size"),
        (&["--rate", "0"], "above 0"),
        (&["--speed", "0"], "0 bytes"),
        (&["-W", "-G"], "cannot be used"),
        (&["-c", "3", "-a", "3"], "3 requests"),
    ] {
        let ran = ping(here.path(), flags);
        ran.exits(2).shows_nothing().tells(part);
    }
    let one = ping(here.path(), &["-c", "1", "--size", "1M", "--json"]).record();
    assert_eq!(one.measurements[0].data.ops[&OpKind::Read].count, 1);
    let dry = ping(here.path(), &["--gaps", "--dry-run"]);
    dry.exits(0);
    let words: Vec<&str> = dry.out.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("up to 10 s"), "{text}");
    assert!(text.contains("takes about 1 min 53 s"), "{text}");
}

/// Takes a minute, nearly all of it asleep.
#[test]
fn disk_that_is_slow_to_wake_up_is_found() {
    needs!("fusermount3");
    let here = place();
    let model = spec::parse("latency=200us,sleep=1500ms+300ms").unwrap();
    let disk = SimDisk::serve(model, 64 * MIB, &here.path().join("disk")).unwrap();
    let ran = ping(disk.path(), &["--gaps", "-c", "3", "--json", "-q"]);
    ran.exits(0);
    let record = ran.record();
    let found = record
        .findings
        .iter()
        .find(|one| one.code == "slow-after-idle");
    let found = found.unwrap_or_else(|| panic!("{:?}", record.findings));
    assert_eq!(found.severity, Severity::Warning);
    let late = record.measurements[0]
        .data
        .requests
        .iter()
        .filter(|one| one.ignored == Some(IgnoredBecause::Late))
        .count();
    // A busy machine can make idle times longer than planned; those do not count.
    let claim = &found.claim;
    assert!(claim.contains("2.0 s or more") || late > 0, "{claim}");
    for point in &record.measurements[0]
        .figures
        .ping
        .as_ref()
        .unwrap()
        .after_idle
    {
        let sleeps = point.idle_ns >= 2_000 * MILLISECOND_NS;
        assert_eq!(point.min_ns >= 300 * MILLISECOND_NS, sleeps, "{point:?}");
        let requests = if point.idle_ns == 0 { 39 } else { 3 };
        assert!(point.mean.n + late as u64 >= requests, "{point:?}");
    }
}
