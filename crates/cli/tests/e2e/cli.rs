//! What every command line promises: exit codes, what goes to which stream, what is written and
//! what is not.

use crate::program;
use crate::program::{SHORT, names, program, program_path, run};
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{TempDir, place};
use predicates::prelude::*;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

/// The program under assert_cmd, standing in its own directory.
struct Here {
    place: TempDir,
}

impl Here {
    fn new() -> Self {
        Self { place: place() }
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    fn command(&self, words: &[&str]) -> assert_cmd::Command {
        let mut command = program(words);
        command.current_dir(self.path());
        assert_cmd::Command::from_std(command)
    }

    /// A short check of this directory.
    fn check(&self, flags: &[&str]) -> assert_cmd::Command {
        self.command(&[&["check"], &SHORT[..], flags].concat())
    }
}

fn contains(text: &str) -> predicates::str::ContainsPredicate {
    predicate::str::contains(text)
}

#[test]
fn help_is_no_error_and_fits_80_columns() {
    for words in [
        &["--help"][..],
        &["check", "--help"],
        &["check", "-h"],
        &["info", "--help"],
        &["show", "--help"],
        &["history", "--help"],
        &["export", "--help"],
        &["--version"],
    ] {
        let ran = run(words);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{words:?}");
        for line in ran
            .out
            .lines()
            .filter(|line| !line.starts_with("  diskproof check . --expect"))
        {
            assert!(
                line.chars().count() <= 80,
                "{words:?}: {} columns: {line}",
                line.chars().count()
            );
        }
    }
    Here::new()
        .command(&["check", "--help"])
        .assert()
        .stdout(contains("Exit codes").and(contains("--dry-run")));
}

#[test]
fn usage_errors_exit_with_2_on_stderr_and_touch_nothing() {
    let here = Here::new();
    std::fs::write(here.path().join("file"), vec![1; 2 << 20]).unwrap();
    let cases: [(&[&str], &str); 23] = [
        (&[], "diskproof --help"),
        (&["chekc"], "unrecognized subcommand"),
        (&["check", "--nosuch"], "unexpected argument"),
        (&["check", ".", "and", "more"], "unexpected argument"),
        (&["check", "--quick", "--thorough"], "cannot be used with"),
        (&["check", "--quick", "--time", "5s"], "cannot be used with"),
        (&["check", "--engine", "posix"], "possible values: auto"),
        (&["check", "--seed", "-1"], "-1"),
        (&["check", "--size", "12q"], "not a size"),
        (&["check", "--size", "-5M"], "-5"),
        (&["check", "--size", "1k"], "at least 8 MiB"),
        (&["check", "--time", "soon"], "not a duration"),
        (&["check", "--time", "0"], "at least 1s"),
        (&["check", "--time", "999ms"], "at least 1s"),
        (&["check", "--expect", "fast"], ">="),
        (
            &["check", "--expect", "random-read-d1.speed>=5"],
            "has no metric",
        ),
        (&["check", "--expect", "random-read-d1.p50<=5"], "200us"),
        (
            &["check", "--expect", "random-read-d2.iops>=5"],
            "random-read-d1, random-read-d32",
        ),
        (
            &["check", "--expect", "random-read-d1.write.iops>=5"],
            "no such operations",
        ),
        (
            &[
                "check",
                "--read-only",
                "--expect",
                "commit-fdatasync.iops>=5",
            ],
            "this run skips commit-fdatasync: --read-only",
        ),
        (
            &["check", "file", "--size", "16M"],
            "--size is the size of a scratch file",
        ),
        (&["check", "-o", "record.txt"], "use one of .json"),
        (
            &["check", "-o", "nosuch/record.json"],
            "cannot create a file in nosuch",
        ),
    ];
    for (words, sentence) in cases {
        let ran = program::Ran::from(program(words).current_dir(here.path()).output().unwrap());
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(2), ""),
            "{words:?}: {}",
            ran.err
        );
        assert!(ran.err.contains(sentence), "{words:?}: {}", ran.err);
    }
    here.command(&["check", "-o", "."])
        .assert()
        .code(2)
        .stderr(contains("use one of .json"));
    assert_eq!(names(here.path()), ["file"]);
}

#[test]
fn a_warm_up_leaves_most_of_the_bytes_to_measure_on_the_fastest_disk() {
    let here = Here::new();
    let dry = here
        .command(&["check", "--dry-run", "--quick", "--size", "64M", "--json"])
        .assert()
        .code(0);
    let document: serde_json::Value = serde_json::from_slice(&dry.get_output().stdout).unwrap();
    let workloads = document["plan"]["workloads"].as_array().unwrap();
    let limited = workloads
        .iter()
        .filter_map(|w| Some((w["warmup_ns"].as_u64()?, w["stop"]["bytes"].as_u64()?)));
    let limited: Vec<(u64, u64)> = limited.collect();
    // Of 128 MiB, 16 GB/s leave half after 4.2 ms.
    assert!(
        limited.len() >= 4
            && limited
                .iter()
                .all(|(warmup_ns, bytes)| *warmup_ns <= bytes / 2 / 16),
        "{limited:?}"
    );
}

#[test]
fn a_dry_run_shows_the_plan_and_writes_nothing() {
    let here = Here::new();
    let shown = contains("sequential-write")
        .and(contains("random-read-d32"))
        .and(contains("nothing was"));
    here.command(&["check", "--dry-run", "-o", "never.json"])
        .assert()
        .code(0)
        .stderr("")
        .stdout(shown.and(contains("MiB").or(contains("GiB"))));
    let document = here
        .command(&["check", "--dry-run", "--json"])
        .assert()
        .code(0)
        .stderr("")
        .get_output()
        .stdout
        .clone();
    let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
    assert_eq!(document["plan"]["workloads"].as_array().unwrap().len(), 8);
    assert_eq!(document["targets"][0]["kind"], "directory");
    // What a run would refuse, the dry run refuses.
    here.command(&["check", "--dry-run", "--size", "900T"])
        .assert()
        .code(3)
        .stdout("")
        .stderr(contains("not enough free space"));
    assert_eq!(names(here.path()), [""; 0]);
}

#[test]
fn json_is_one_document_and_quiet_is_quiet() {
    let here = Here::new();
    let output = here
        .check(&["--json", "--quiet", "--commands"])
        .assert()
        .code(0)
        .stderr("")
        .get_output()
        .stdout
        .clone();
    let record: Record = serde_json::from_slice(&output).unwrap();
    assert_eq!((record.partial, record.measurements.len()), (false, 8));
    let output = here
        .check(&["--json", "--read-only"])
        .assert()
        .code(0)
        .stderr(contains("1/3 sequential-read: "))
        .get_output()
        .stdout
        .clone();
    assert_eq!(
        serde_json::from_slice::<Record>(&output)
            .unwrap()
            .measurements
            .len(),
        3
    );
    let output = here
        .command(&["info", "--json"])
        .assert()
        .code(0)
        .stderr("")
        .get_output()
        .stdout
        .clone();
    let document: serde_json::Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(document["target"]["path"], here.path().to_str().unwrap());
    assert_eq!(names(here.path()), [""; 0]);
}

#[test]
fn info_goes_to_a_file_too() {
    let here = Here::new();
    here.command(&["info", "-o", "info.json"])
        .assert()
        .code(0)
        .stdout(contains("disk"))
        .stderr("");
    let document: serde_json::Value =
        serde_json::from_slice(&std::fs::read(here.path().join("info.json")).unwrap()).unwrap();
    assert_eq!(document["target"]["path"], here.path().to_str().unwrap());
    here.command(&["info", "-o", "info.html"])
        .assert()
        .code(2)
        .stdout("")
        .stderr(contains("info can be written only as .json"));
    here.command(&["info", "info.json", "-o", "info.json"])
        .assert()
        .code(2)
        .stdout("")
        .stderr(contains("is the target itself"));
    assert_eq!(names(here.path()), ["info.json"]);
}

#[test]
fn a_flag_of_another_verb_is_named_as_such() {
    let here = Here::new();
    let told = |words: &[&str], text: &str| {
        _ = here
            .command(words)
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(text))
    };
    // A scan has a time limit, a curve has not.
    told(&["curve", "--time", "5s"], "--scan");
    told(
        &["info", "--no-history"],
        "'--no-history' is a flag of check, commit, sweep, run, curve, ping, files, watch, compare \
         and as",
    );
    told(&["compare", "-o"], "a value is required");
    told(
        &["history", "-o", "x.json"],
        "'-o' is a flag of check, commit, sweep, run, curve, ping, files, watch, info, show, \
         compare, export and as",
    );
    told(
        &["check", "--fail-on", "x"],
        "'--fail-on' is a flag of compare",
    );
    told(&["check", "--nonsense"], "unexpected argument '--nonsense'");
}

#[test]
fn pasted_fio_command_gets_a_hint_for_every_option() {
    let here = Here::new();
    let told = |words: &[&str], texts: &[&str]| {
        let assert = here.command(words).assert().code(2).stdout("");
        texts
            .iter()
            .fold(assert, |assert, text| assert.stderr(contains(text)));
    };
    told(
        &[
            "run",
            "--bs=4k",
            "--offset=1g",
            "--direct=1",
            "--iodepth=32",
            "--loops=2",
        ],
        &[
            "fio's 'offset' is the start of the span",
            "fio's 'direct' is the default",
            "fio's 'loops' becomes",
        ],
    );
    told(
        &["run", "-rw=randread", "-direct=1"],
        &["flags take two dashes: --rw", "fio's 'direct'"],
    );
    told(
        &["run", "-direct=1"],
        &["flags take two dashes: --direct", "fio's 'direct'"],
    );
    told(
        &["run", "--nonsense", "--direct=1"],
        &["unexpected argument '--nonsense'"],
    );
    told(&["run", "--verify=crc32c"], &["'--verify' takes no value"]);
    told(
        &["run", ".", "job.fio"],
        &["job.fio looks like a fio job file. Write a single job file"],
    );
    told(
        &["run", "job.fio"],
        &["cannot read the job file job.fio: No such file"],
    );
    told(
        &["run", "--time=1s", "--rate=10m"],
        &["divide by the block size"],
    );
    here.command(&[
        "run",
        "--readwrite=read",
        "--blocksize=64k",
        "--ioengine=psync",
        "--dry-run",
    ])
    .assert()
    .code(0);
}

#[test]
fn unreadable_plan_file_is_refused() {
    let here = Here::new();
    let told = |text: &str| {
        _ = here
            .command(&["run", "x.toml"])
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(text))
    };
    let file = here.path().join("x.toml");
    told("cannot read the plan file x.toml: No such file");
    std::fs::create_dir(&file).unwrap();
    told("not a regular file");
    std::fs::remove_dir(&file).unwrap();
    std::fs::write(&file, "#".repeat((1 << 20) + 1)).unwrap();
    told("but a plan has at most 1 MiB");
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    told("not UTF-8 text");
}

#[test]
fn progress_is_a_line_per_workload_with_the_budget_first() {
    let here = Here::new();
    let output = here.check(&[]).assert().code(0).get_output().clone();
    let err = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines.len(), 10, "{err}");
    assert!(
        lines[0].contains("takes about 1.0 s; writes at most")
            && lines[1].contains("1/8 sequential-write")
            && !lines[1].contains(": 0 writes/s")
            && lines[8].contains("8/8")
    );
    assert!(lines[9].contains("saved as "), "{err}");
    assert!(
        lines.iter().all(|line| line.starts_with("diskproof: ")) && !err.contains(['\r', '\u{1b}']),
        "{err}"
    );
}

#[test]
fn the_page_has_no_colour_without_a_terminal_and_fits_80_columns() {
    let here = Here::new();
    let page = String::from_utf8(
        here.check(&["--read-only"])
            .assert()
            .code(0)
            .get_output()
            .stdout
            .clone(),
    )
    .unwrap();
    assert!(!page.contains('\u{1b}'));
    for line in page.lines() {
        assert!(
            line.chars().count() <= 80,
            "{} columns: {line}",
            line.chars().count()
        );
    }
}

#[test]
fn colour_follows_the_flag_then_the_environment() {
    let here = Here::new();
    let coloured = |flags: &[&str], environment: &[(&str, &str)]| {
        let mut command = here.command(&[&["info"], flags].concat());
        let output = command
            .envs(environment.iter().copied())
            .assert()
            .code(0)
            .get_output()
            .clone();
        String::from_utf8(output.stdout).unwrap().contains('\u{1b}')
    };
    assert!(!coloured(&[], &[]));
    assert!(
        !coloured(&[], &[("CLICOLOR", "1")]),
        "CLICOLOR speaks of terminals"
    );
    assert!(coloured(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(
        &[],
        &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]
    ));
    assert!(coloured(&["--color", "always"], &[("NO_COLOR", "1")]));
    assert!(!coloured(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]));
}

#[test]
fn a_saved_record_is_that_of_stdout_and_replaces_an_older_file_only_when_whole() {
    let here = Here::new();
    let saved = here.path().join("run.json");
    std::fs::write(&saved, "older").unwrap();
    // Usage, a refusal, and a second output that cannot be written: the older file stays.
    here.check(&["-o", "run.json", "--expect", "x.iops>=1"])
        .assert()
        .code(2);
    here.command(&["check", "-o", "run.json", "--size", "900T"])
        .assert()
        .code(3);
    here.check(&["-o", "run.json", "-o", "nosuch/other.json"])
        .assert()
        .code(2);
    assert_eq!(std::fs::read_to_string(&saved).unwrap(), "older");

    let output = here
        .check(&["-o", "run.json", "-o", "copy.json", "--json", "--read-only"])
        .assert()
        .code(0)
        .get_output()
        .stdout
        .clone();
    assert_eq!(std::fs::read(&saved).unwrap(), output);
    assert_eq!(
        std::fs::read(here.path().join("copy.json")).unwrap(),
        output
    );
    assert_eq!(names(here.path()), ["copy.json", "run.json"]);
    assert_eq!(
        std::fs::metadata(&saved).unwrap().permissions().mode() & 0o777,
        0o644
    );
}

#[test]
fn a_page_for_a_browser_holds_the_record_of_stdout() {
    let here = Here::new();
    let output = here
        .check(&["-o", "run.html", "--json", "--read-only"])
        .assert()
        .code(0)
        .get_output()
        .stdout
        .clone();
    let page = std::fs::read_to_string(here.path().join("run.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"));
    let record = diskproof_report::html::read_record(&page).unwrap();
    assert_eq!(
        serde_json::to_value(record).unwrap(),
        serde_json::from_slice::<serde_json::Value>(&output).unwrap()
    );
}

#[test]
fn a_record_that_cannot_be_saved_after_all_is_still_printed() {
    let here = Here::new();
    let folder = here.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let arguments = [
        "check",
        "--time",
        "2s",
        "--size",
        "16M",
        "--json",
        "-o",
        "folder/a.json",
        "-o",
        "b.json",
    ];
    let mut child = program(arguments)
        .current_dir(here.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first note comes after the check of the outputs and before the load.
    let mut notes = BufReader::new(child.stderr.take().unwrap());
    let mut err = String::new();
    notes.read_line(&mut err).unwrap();
    std::fs::remove_dir(&folder).unwrap();
    let mut ran = program::Ran::from(child.wait_with_output().unwrap());
    notes.read_to_string(&mut err).unwrap();
    ran.err = err;
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert!(
        ran.err
            .contains("-o folder/a.json: cannot save the record: cannot create a file in folder"),
        "{}",
        ran.err
    );
    assert_eq!(
        ran.record(),
        serde_json::from_str(&std::fs::read_to_string(here.path().join("b.json")).unwrap())
            .unwrap()
    );
}

#[test]
fn expectations_decide_the_exit_code() {
    let here = Here::new();
    let met = [
        "--expect",
        "random-read-d1.iops>=1",
        "--expect",
        "commit-fdatasync.max<=100s",
        "--expect",
        "random-read-d32.throughput>=1kB/s",
    ];
    here.check(&met)
        .assert()
        .code(0)
        .stdout(contains("met").and(contains("MISSED").not()));
    let missed = [
        "--expect",
        "random-read-d1.iops>=1",
        "--expect",
        "random-read-d1.iops>=1000000000",
    ];
    here.check(&missed)
        .assert()
        .code(1)
        .stdout(contains("MISSED  random-read-d1.iops>=1000000000"));
}

#[test]
fn spec_judges_every_promised_figure_in_every_format() {
    let here = Here::new();
    let modest = [
        "--spec",
        "rate=1MB/s,iops=100",
        "-o",
        "a.md",
        "-o",
        "a.prom",
    ];
    let modest = [
        &modest[..],
        &["-o", "a.csv", "-o", "a.html", "-o", "a.json"],
    ]
    .concat();
    let rows = [
        "8 KiB random reads 100/s, −5 %",
        "sequential reads 1.00 MB/s, −5 %",
    ];
    let table = contains("promised, allowance").and(contains("\nmet "));
    here.check(&modest)
        .assert()
        .code(0)
        .stdout(table.and(contains(rows[0])).and(contains(rows[1])));
    let read = |name: &str| std::fs::read_to_string(here.path().join(name)).unwrap();
    for (name, part) in [
        ("a.md", "| met | sequential reads"),
        (
            "a.prom",
            "diskproof_expectation{condition=\"random-read-d32.iops>=95\",",
        ),
        ("a.csv", ",promised,"),
        ("a.html", "Promised and measured"),
        ("a.json", "\"promised\""),
    ] {
        assert!(read(name).contains(part), "{name}: {}", read(name));
    }
    let boastful = ["--spec", "iops=1000M", "--expect", "random-read-d1.iops>=1"];
    let missed = contains("MISSED  8 KiB random reads");
    here.check(&boastful).assert().code(1).stdout(missed);
    let other = ["--spec", "rpm=7200,seek=9ms"];
    let why = contains("--spec, which means 'access.mean<=");
    here.check(&other).assert().code(2).stderr(why);
}

#[test]
fn commands_and_note_and_seed_are_kept() {
    let here = Here::new();
    let output = here
        .check(&[
            "--json",
            "--read-only",
            "--note",
            "before the move",
            "--seed",
            "7",
        ])
        .assert()
        .code(0)
        .get_output()
        .stdout
        .clone();
    let record: Record = serde_json::from_slice(&output).unwrap();
    assert_eq!(
        (record.note.as_deref(), record.plan.seed),
        (Some("before the move"), 7)
    );
    here.check(&["--commands"])
        .assert()
        .code(0)
        .stdout(contains("fio --name=random-read-d32 ").and(contains("--rw=randread --bs=8192")));
}

#[test]
fn a_reader_that_goes_away_costs_neither_the_file_nor_the_verdict() {
    for (expectation, code) in [("random-read-d1.iops>=1", 0), ("random-read-d1.iops<=1", 1)] {
        let here = Here::new();
        let words = [
            &["check", "--json", "-o", "run.json", "--expect", expectation][..],
            &SHORT,
        ]
        .concat();
        let mut child = program(words)
            .current_dir(here.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let ran = program::Ran::from(child.wait_with_output().unwrap());
        assert_eq!(
            (ran.code, line.as_str()),
            (Some(code), "{\n"),
            "{}",
            ran.err
        );
        assert!(
            !ran.err.contains("panicked") && !ran.err.contains("pipe"),
            "{}",
            ran.err
        );
        serde_json::from_slice::<Record>(&std::fs::read(here.path().join("run.json")).unwrap())
            .unwrap();
    }
    // Gone before the first byte.
    for words in [
        &["--help"][..],
        &["info"],
        &["info", "--json"],
        &["check", "--dry-run"],
    ] {
        let mut child = program(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ran = program::Ran::from(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{words:?}");
    }
}

#[test]
fn closed_streams_do_no_harm() {
    let here = Here::new();
    let binary = program_path();
    for (redirection, file) in [
        (">&-", "a.json"),
        ("2>&-", "b.json"),
        (">&- 2>&-", "c.json"),
        ("<&- >&- 2>&-", "d.json"),
    ] {
        let line =
            format!("{binary} check --read-only --time 1s --size 16M -o {file} {redirection}");
        let output = std::process::Command::new("sh")
            .args(["-c", &line])
            .env("DISKPROOF_HISTORY", program::HISTORY)
            .current_dir(here.path())
            .output()
            .unwrap();
        let ran = program::Ran::from(output);
        assert_eq!(ran.code, Some(0), "{redirection}: {}", ran.err);
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
        serde_json::from_slice::<Record>(&std::fs::read(here.path().join(file)).unwrap()).unwrap();
    }
    assert_eq!(names(here.path()), ["a.json", "b.json", "c.json", "d.json"]);
}

#[test]
fn a_full_stdout_is_an_error() {
    let here = Here::new();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = program(["info"])
        .current_dir(here.path())
        .stdout(full)
        .output()
        .unwrap();
    let ran = program::Ran::from(output);
    assert_eq!(ran.code, Some(4));
    assert!(
        ran.err
            .contains("cannot write the result to stdout: No space left on device"),
        "{}",
        ran.err
    );
}

#[test]
fn words_that_are_no_utf8_are_taken_or_refused_in_a_sentence() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let here = Here::new();
    let odd = here.path().join(OsStr::from_bytes(b"odd\xff.json"));
    let mut command = program([
        "check",
        "--read-only",
        "--time",
        "1s",
        "--size",
        "16M",
        "-o",
    ]);
    let ran = program::Ran::from(command.arg(&odd).current_dir(here.path()).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(odd.exists());
    let ran = run([OsStr::new("check"), odd.as_os_str()]);
    assert!(
        ran.code == Some(2) && ran.err.contains("not valid UTF-8"),
        "{}",
        ran.err
    );
}

#[test]
fn words_that_are_no_verbs_lead_to_one() {
    let here = Here::new();
    for (words, step) in [
        (&["benchmark"][..], "diskproof check"),
        (&["/data"], "diskproof check /data"),
        (&["health"], "diskproof info"),
        (&["badblocks"], "diskproof curve DEVICE --scan"),
        (&["capacity"], "--verify"),
        (&["monitor"], "diskproof watch"),
        (&["postgres"], "--for postgresql"),
        (&["mysql"], "check TARGET --for"),
        (&["throughput"], "diskproof check"),
        (&["temperature"], "diskproof info"),
        (&["trend"], "diskproof history --trend"),
        (&["wipe"], "--rw trim --destroy NAME"),
        (&["version"], "diskproof --version"),
        (&["ioping"], "diskproof as ioping"),
        (&["check", ".", "."], "diskproof compare A B"),
        (&[], "diskproof check"),
    ] {
        let ran = here.command(words).assert().code(2).stdout("");
        ran.stderr(contains(step));
    }
    let bare = here.command(&[]).output().unwrap().stderr;
    let text = String::from_utf8(bare).unwrap();
    assert!(
        text.lines().count() <= 8 && text.lines().all(|line| line.len() <= 80),
        "{text}"
    );
}

#[test]
fn missed_threshold_is_told_without_a_page() {
    let here = Here::new();
    let never = "commit-fdatasync.iops>=1000000000";
    for quiet in [&["--json"][..], &["--quiet"]] {
        let flags = [&["--only", "commit-fdatasync", "--expect", never], quiet].concat();
        here.check(&flags)
            .assert()
            .code(1)
            .stderr(contains("commit-fdatasync.iops"));
    }
}
