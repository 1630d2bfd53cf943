//! What every command line promises: exit codes, what goes to which stream, what is written and
//! what is not.

use crate::program;
use crate::program::{Ran, SHORT, argv, names, program, program_path, run, saved_record};
use diskproof_simdisk::testbed::{Loop, TempDir, can_run, place};
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program, standing in its own directory.
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

    fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn command<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Command {
        let mut command = program(words);
        command.current_dir(self.path());
        command
    }

    /// Runs a command line whose words have no spaces.
    fn run(&self, line: &str) -> Ran {
        Ran::of(self.command(argv(line)))
    }

    /// A short check of this directory.
    fn check(&self, flags: &str) -> Ran {
        self.run(&format!("check --time 1s --size 16M {flags}"))
    }

    /// Refused as a mistake, with nothing on stdout and these parts on stderr.
    fn refuses(&self, line: &str, parts: &[&str]) {
        let ran = self.run(line);
        ran.exits(2).shows_nothing().tells_all(parts);
    }
}

/// With both outputs in pipes.
fn piped(command: &mut Command) -> std::process::Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn help_is_no_error_and_fits_80_columns() {
    for line in [
        "--help",
        "check --help",
        "check -h",
        "info --help",
        "show --help",
        "history --help",
        "export --help",
        "--version",
    ] {
        let ran = run(argv(line));
        ran.exits(0).tells_nothing();
        let is_wide = |line: &&str| line.chars().count() > 80;
        assert_eq!(ran.out.lines().find(is_wide), None, "{line}");
    }
    run(["check", "--help"])
        .shows("Exit codes")
        .shows("--dry-run");
}

#[test]
fn usage_errors_exit_with_2_on_stderr_and_touch_nothing() {
    let here = Here::new();
    std::fs::write(here.at("file"), vec![1; 2 << 20]).unwrap();
    for (line, part) in [
        ("", "diskproof --help"),
        ("chekc", "'chekc'"),
        ("check --nosuch", "'--nosuch'"),
        ("check . and more", "'and'"),
        ("check --quick --thorough", "'--thorough'"),
        ("check --quick --time 5s", "'--time"),
        ("check --engine posix", "possible values: auto"),
        ("check --seed -1", "-1"),
        ("check --size 12q", "'12q'"),
        ("check --size -5M", "-5"),
        ("check --size 1k", "8 MiB"),
        ("check --time soon", "'soon'"),
        ("check --time 0", "at least 1s"),
        ("check --time 999ms", "at least 1s"),
        ("check --layers --time 999ms", "at least 1s"),
        ("check --for sqlite --time 999ms", "at least 1s"),
        ("check --expect fast", ">="),
        (
            "check --expect random-read-d1.speed>=5",
            "'random-read-d1.speed'",
        ),
        ("check --expect random-read-d1.p50<=5", "200us"),
        (
            "check --expect random-read-d2.iops>=5",
            "random-read-d1, random-read-d32",
        ),
        (
            "check --expect random-read-d1.write.iops>=5",
            "random-read-d1",
        ),
        (
            "check --read-only --expect commit-fdatasync.iops>=5",
            "commit-fdatasync: --read-only",
        ),
        ("check file --size 16M", "--size"),
        ("check -o record.txt", ".json"),
        ("check -o .", ".json"),
        ("check -o nosuch/record.json", "nosuch"),
    ] {
        here.refuses(line, &[part]);
    }
    assert_eq!(names(here.path()), ["file"]);
}

#[test]
fn a_warm_up_leaves_most_of_the_bytes_to_measure_on_the_fastest_disk() {
    let dry = Here::new().run("check --dry-run --quick --size 64M --json");
    let document = dry.exits(0).json();
    let workloads = document["plan"]["tasks"][0]["list"]
        .as_array()
        .unwrap()
        .iter();
    let limited: Vec<(u64, u64)> = workloads
        .filter_map(|w| Some((w["warmup_ns"].as_u64()?, w["stop"]["bytes"].as_u64()?)))
        .collect();
    // Of 128 MiB, 16 GB/s leave half after 4.2 ms.
    let leaves_most = |(warmup_ns, bytes): &(u64, u64)| *warmup_ns <= bytes / 2 / 16;
    assert!(
        limited.len() >= 4 && limited.iter().all(leaves_most),
        "{limited:?}"
    );
}

#[test]
fn a_dry_run_shows_the_plan_and_writes_nothing() {
    let here = Here::new();
    let dry = here.run("check --dry-run -o never.json");
    dry.exits(0).tells_nothing();
    dry.shows_all(&["sequential-write", "random-read-d32", "iB"]);
    let dry = here.run("check --dry-run --json");
    let document = dry.exits(0).tells_nothing().json();
    assert_eq!(
        document["plan"]["tasks"][0]["list"]
            .as_array()
            .unwrap()
            .len(),
        8
    );
    assert_eq!(document["targets"][0]["kind"], "directory");
    // What a run would refuse, the dry run refuses.
    let large = here.run("check --dry-run --size 900T");
    large.exits(3).shows_nothing().tells("900 TiB");
    assert_eq!(names(here.path()), [""; 0]);
}

#[test]
fn json_is_one_document_and_quiet_is_quiet() {
    let here = Here::new();
    let quiet = here.check("--json --quiet --commands");
    let record = quiet.exits(0).tells_nothing().record();
    assert_eq!((record.partial, record.measurements.len()), (false, 8));
    let told = here.check("--json --read-only");
    told.exits(0).tells("1/3 sequential-read: ");
    assert_eq!(told.record().measurements.len(), 3);
    let info = here.run("info --json");
    let document = info.exits(0).tells_nothing().json();
    assert_eq!(document["target"]["path"], here.path().to_str().unwrap());
    assert_eq!(names(here.path()), [""; 0]);
}

#[test]
fn info_goes_to_a_file_too() {
    let here = Here::new();
    here.run("info -o info.json")
        .exits(0)
        .shows("disk")
        .tells("wrote info.json (");
    let text = std::fs::read_to_string(here.at("info.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["target"]["path"], here.path().to_str().unwrap());
    here.refuses("info -o info.html", &[".json"]);
    here.refuses("info info.json -o info.json", &["-o info.json"]);
    assert_eq!(names(here.path()), ["info.json"]);
    assert_eq!(std::fs::read_to_string(here.at("info.json")).unwrap(), text);
}

#[test]
fn a_flag_of_another_verb_is_named_as_such() {
    let here = Here::new();
    for (line, part) in [
        // A scan has a time limit, a curve has not.
        ("curve --time 5s", "--scan"),
        // Of all that measure; the list of verbs is the program's.
        (
            "info --no-history",
            "'--no-history' is a flag of check, commit, ",
        ),
        ("compare -o", "-o"),
        ("history -o x.json", "'-o' is a flag of check, commit, "),
        ("check --fail-on x", "'--fail-on' is a flag of compare"),
        ("check --nonsense", "argument '--nonsense'"),
    ] {
        here.refuses(line, &[part]);
    }
}

#[test]
fn pasted_fio_command_gets_a_hint_for_every_option() {
    let here = Here::new();
    for (line, parts) in [
        (
            "run --bs=4k --offset=1g --direct=1 --iodepth=32 --loops=2",
            &["fio's 'offset'", "fio's 'direct'", "fio's 'loops'"][..],
        ),
        (
            "run -rw=randread -direct=1",
            &["two dashes: --rw", "fio's 'direct'"],
        ),
        ("run -direct=1", &["two dashes: --direct", "fio's 'direct'"]),
        ("run --nonsense --direct=1", &["argument '--nonsense'"]),
        ("run --verify=crc32c", &["'--verify'"]),
        ("run . job.fio", &["job.fio looks like a fio job file"]),
        ("run job.fio", &["job.fio: No such file"]),
        ("run --time=1s --rate=10m", &["'10m'", "block size"]),
    ] {
        here.refuses(line, parts);
    }
    let pasted = "run --readwrite=read --blocksize=64k --ioengine=psync --dry-run";
    here.run(pasted).exits(0);
}

#[test]
fn unreadable_plan_file_is_refused() {
    let here = Here::new();
    let file = here.at("x.toml");
    here.refuses("run x.toml", &["x.toml: No such file"]);
    std::fs::create_dir(&file).unwrap();
    here.refuses("run x.toml", &["regular file"]);
    std::fs::remove_dir(&file).unwrap();
    std::fs::write(&file, "#".repeat((1 << 20) + 1)).unwrap();
    here.refuses("run x.toml", &["at most 1 MiB"]);
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    here.refuses("run x.toml", &["UTF-8"]);
}

#[test]
fn progress_is_a_line_per_workload_with_the_budget_first() {
    let ran = Here::new().check("");
    ran.exits(0);
    let lines: Vec<&str> = ran.err.lines().collect();
    assert_eq!(lines.len(), 10, "{ran}");
    for (line, part) in [
        (0, "1.0 s; writes at most"),
        (1, "1/8 sequential-write"),
        (8, "8/8"),
        (9, "saved as "),
    ] {
        assert!(lines[line].contains(part), "{part}: {ran}");
    }
    assert!(!lines[1].contains(": 0 writes/s"), "{ran}");
    ran.tells_not("\r").tells_not("\u{1b}");
    assert!(
        lines.iter().all(|line| line.starts_with("diskproof: ")),
        "{ran}"
    );
}

#[test]
fn the_page_has_no_colour_without_a_terminal_and_fits_80_columns() {
    let ran = Here::new().check("--read-only");
    ran.exits(0).fits_80_columns().shows_not("\u{1b}");
}

#[test]
fn colour_follows_the_flag_then_the_environment() {
    let here = Here::new();
    for (line, environment, coloured) in [
        ("info", &[][..], false),
        // CLICOLOR speaks of terminals.
        ("info", &[("CLICOLOR", "1")], false),
        ("info", &[("CLICOLOR_FORCE", "1")], true),
        ("info", &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        ("info --color always", &[("NO_COLOR", "1")], true),
        ("info --color never", &[("CLICOLOR_FORCE", "1")], false),
    ] {
        let mut command = here.command(argv(line));
        let ran = Ran::of(command.envs(environment.iter().copied()));
        ran.exits(0);
        assert_eq!(
            ran.out.contains('\u{1b}'),
            coloured,
            "{environment:?} {ran}"
        );
    }
}

#[test]
fn a_saved_record_is_that_of_stdout_and_replaces_an_older_file_only_when_whole() {
    let here = Here::new();
    let saved = here.at("run.json");
    std::fs::write(&saved, "older").unwrap();
    // Usage, a refusal, and a second output that cannot be written: the older file stays.
    here.check("-o run.json --expect x.iops>=1").exits(2);
    here.run("check -o run.json --size 900T").exits(3);
    here.check("-o run.json -o nosuch/other.json").exits(2);
    assert_eq!(std::fs::read_to_string(&saved).unwrap(), "older");

    let ran = here.check("-o run.json -o copy.json --json --read-only");
    ran.exits(0);
    for file in ["run.json", "copy.json"] {
        assert!(
            std::fs::read_to_string(here.at(file)).unwrap() == ran.out,
            "{file}"
        );
    }
    assert_eq!(names(here.path()), ["copy.json", "run.json"]);
    let mode = std::fs::metadata(&saved).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
}

#[test]
fn a_page_for_a_browser_holds_the_record_of_stdout() {
    let here = Here::new();
    let ran = here.check("-o run.html --json --read-only");
    ran.exits(0);
    let page = std::fs::read_to_string(here.at("run.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"));
    let record = diskproof_report::html::read_record(&page).unwrap();
    assert_eq!(serde_json::to_value(record).unwrap(), ran.json());
}

#[test]
fn a_record_that_cannot_be_saved_after_all_is_still_printed() {
    let here = Here::new();
    let folder = here.at("folder");
    std::fs::create_dir(&folder).unwrap();
    let line = "check --time 2s --size 16M --json -o folder/a.json -o b.json";
    let mut child = piped(&mut here.command(argv(line)));
    // The first note comes after the check of the outputs and before the load.
    let mut notes = BufReader::new(child.stderr.take().unwrap());
    let mut err = String::new();
    notes.read_line(&mut err).unwrap();
    std::fs::remove_dir(&folder).unwrap();
    let mut ran = Ran::from(child.wait_with_output().unwrap());
    notes.read_to_string(&mut err).unwrap();
    ran.err = err;
    ran.exits(4).tells("-o folder/a.json: ");
    assert_eq!(ran.record(), saved_record(here.at("b.json")));
}

#[test]
fn expectations_decide_the_exit_code() {
    let here = Here::new();
    let met = "--expect random-read-d1.iops>=1 --expect commit-fdatasync.max<=100s \
               --expect random-read-d32.throughput>=1kB/s";
    here.check(met).exits(0).shows("met").shows_not("MISSED");
    let missed = "random-read-d1.iops>=1000000000";
    let ran = here.check(&format!(
        "--expect random-read-d1.iops>=1 --expect {missed}"
    ));
    ran.exits(1).shows(&format!("MISSED  {missed}"));
}

#[test]
fn spec_judges_every_promised_figure_in_every_format() {
    let here = Here::new();
    let outputs = "-o a.md -o a.prom -o a.csv -o a.html -o a.json";
    let ran = here.check(&format!("--spec rate=1MB/s,iops=100 {outputs}"));
    ran.exits(0).shows_all(&[
        "\nmet ",
        "8 KiB random reads 100/s, −5 %",
        "sequential reads 1.00 MB/s, −5 %",
    ]);
    let condition = "diskproof_expectation{condition=\"random-read-d32.iops>=95\",";
    for (name, part) in [
        ("a.md", "| met | sequential reads"),
        ("a.prom", condition),
        ("a.csv", ",promised,"),
        ("a.html", "Promised"),
        ("a.json", "\"promised\""),
    ] {
        let text = std::fs::read_to_string(here.at(name)).unwrap();
        assert!(text.contains(part), "{name}: {text:.2000}");
    }
    // More than a disk makes here. Where the machine is so busy that waits explain the miss, the
    // promise is undecided.
    let boastful = here.check("--spec iops=500k --expect random-read-d1.iops>=1");
    match boastful.code {
        Some(5) => boastful
            .shows("UNDECIDED  8 KiB random reads")
            .tells("starved"),
        _ => boastful.exits(1).shows("MISSED  8 KiB random reads"),
    };
    let other = here.check("--spec rpm=7200,seek=9ms");
    other.exits(2).tells("'access.mean<=");
}

#[test]
fn spec_compares_the_size_of_a_device_with_the_promised_one() {
    const NAME: &str = "spec_compares_the_size_of_a_device_with_the_promised_one";
    if !can_run(NAME, &["losetup"]) {
        return;
    }
    let here = Here::new();
    let device = Loop::sparse(&here.at("image"), 64 << 20, &[]);
    let path = device.node.display();
    for (size, code, text) in [
        ("67MB", 0, "size 67.0 MB, −1 %"),
        ("67.7MB", 0, "67.1 MB"),
        ("1TB", 1, "size 1.00 TB, −1 %"),
        ("67M", 2, ""),
    ] {
        let line = format!("check {path} --spec size={size} --only random-read-d1 --time 1s");
        let ran = Ran::of(here.command(argv(&line)));
        ran.exits(code).shows(text);
    }
}

#[test]
fn commands_and_note_and_seed_are_kept() {
    let here = Here::new();
    let words = [
        &argv("check --json --read-only --seed 7 --note")[..],
        &["a b"],
        &SHORT,
    ]
    .concat();
    let record = Ran::of(here.command(words)).exits(0).record();
    assert_eq!((record.note.as_deref(), record.plan.seed), (Some("a b"), 7));
    let ran = here.check("--commands");
    ran.exits(0).shows("fio --name=random-read-d32 ");
    ran.shows("--rw=randread --bs=8192");
}

#[test]
fn a_reader_that_goes_away_costs_neither_the_file_nor_the_verdict() {
    for (expectation, code) in [("random-read-d1.iops>=1", 0), ("random-read-d1.iops<=1", 1)] {
        let here = Here::new();
        let line = format!("check --json -o run.json --expect {expectation} --time 1s --size 16M");
        let mut child = piped(&mut here.command(argv(&line)));
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        drop(out);
        let ran = Ran::from(child.wait_with_output().unwrap());
        ran.exits(code).tells_not("panicked").tells_not("pipe");
        assert_eq!(line, "{\n");
        saved_record(here.at("run.json"));
    }
    // Gone before the first byte.
    for line in ["--help", "info", "info --json", "check --dry-run"] {
        let mut child = piped(&mut program(argv(line)));
        drop(child.stdout.take());
        let ran = Ran::from(child.wait_with_output().unwrap());
        ran.exits(0).tells_nothing();
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
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(here.path());
        let ran = Ran::of(shell.env("DISKPROOF_HISTORY", program::HISTORY));
        ran.exits(0).tells_not("panicked");
        saved_record(here.at(file));
    }
    assert_eq!(names(here.path()), ["a.json", "b.json", "c.json", "d.json"]);
}

#[test]
fn a_full_stdout_is_an_error() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = Here::new().command(["info"]).stdout(full).output();
    let ran = Ran::from(output.unwrap());
    ran.exits(4).tells("stdout: No space left on device");
}

#[test]
fn words_that_are_no_utf8_are_taken_or_refused_in_a_sentence() {
    use std::os::unix::ffi::OsStrExt as _;
    let here = Here::new();
    let odd = here.at("").join(OsStr::from_bytes(b"odd\xff.json"));
    let mut command = here.command(argv("check --read-only --time 1s --size 16M -o"));
    Ran::of(command.arg(&odd)).exits(0);
    assert!(odd.exists());
    let ran = run([OsStr::new("check"), odd.as_os_str()]);
    ran.exits(2).tells("UTF-8");
}

#[test]
fn words_that_are_no_verbs_lead_to_one() {
    let here = Here::new();
    for (line, step) in [
        ("benchmark", "diskproof check"),
        ("/data", "diskproof check /data"),
        ("health", "diskproof info"),
        ("badblocks", "diskproof accept DEVICE"),
        ("capacity", "diskproof accept DEVICE"),
        ("monitor", "diskproof watch"),
        ("postgres", "--for postgresql"),
        ("mysql", "check TARGET --for"),
        ("throughput", "diskproof check"),
        ("temperature", "diskproof info"),
        ("trend", "diskproof history --trend"),
        ("wipe", "--rw trim --destroy NAME"),
        ("version", "diskproof --version"),
        ("ioping", "diskproof as ioping"),
        ("check . .", "diskproof compare A B"),
        ("", "diskproof check"),
    ] {
        here.refuses(line, &[step]);
    }
    let text = here.run("").err;
    let is_short = text.lines().count() <= 8 && text.lines().all(|line| line.len() <= 80);
    assert!(is_short, "{text}");
}

#[test]
fn missed_threshold_is_told_without_a_page() {
    let here = Here::new();
    for quiet in ["--json", "--quiet"] {
        let never = "--only commit-fdatasync --expect commit-fdatasync.iops>=1000000000";
        let ran = here.check(&format!("{never} {quiet}"));
        ran.exits(1).tells("commit-fdatasync.iops");
    }
}

/// Sums of nanoseconds beyond centuries wrap.
#[test]
fn times_of_more_than_a_year_are_refused() {
    let here = Here::new();
    for line in [
        "check . --dry-run --time 18446744073s",
        "check . --dry-run --for sqlite --time 367d",
        "commit . --dry-run --time 18446744073s",
        "sweep . --dry-run --time 367d",
        "files . --dry-run --time 367d",
        "curve . --dry-run --scan --time 367d",
        "ping . --dry-run -w 367d",
        "ping . --dry-run -i 367d",
        "powercut write . --dry-run --server localhost --time 367d",
        "watch --count 1 --time 367d",
    ] {
        here.run(line).exits(2).tells("longer than a year");
    }
}
