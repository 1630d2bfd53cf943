//! Every run is saved, can be shown again exactly, and no trouble with that ever costs a
//! measurement.

use crate::program;
use crate::program::{Ran, argv, names, needs, program, sim_disk};
use diskproof_model::record::{Record, TaskResult};
use diskproof_simdisk::testbed::{TempDir, place};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A place with its own history.
struct Here {
    place: TempDir,
}

impl Here {
    fn new() -> Self {
        Self { place: place() }
    }

    fn history(&self) -> PathBuf {
        self.place.path().join("history.db")
    }

    /// The command, standing in this place.
    fn with_history<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let command = command.env("DISKPROOF_HISTORY", self.history());
        command.current_dir(self.place.path())
    }

    /// Runs a command line whose words have no spaces.
    fn line(&self, line: &str) -> Ran {
        Ran::of(self.with_history(&mut program(argv(line))))
    }

    /// A short measurement.
    fn measure(&self, flags: &str) -> Ran {
        self.line(&format!("check --read-only --time 1s --size 16M {flags}"))
    }
}

/// Enough reads for a median, however slow they are.
const READS: &str = "run --ops 200 --size 1M";
/// A run of a moment.
const MOMENT: &str = "run --time 50ms --size 1M";

/// The id that a run was saved as, in short.
fn saved_id(ran: &Ran) -> String {
    let (_, rest) = ran
        .err
        .split_once("saved as ")
        .unwrap_or_else(|| panic!("{ran}"));
    rest[..8].to_owned()
}

/// Ids in the history, the newest first.
fn listed(here: &Here, flags: &str) -> Vec<String> {
    let runs = here.line(&format!("history --json {flags}")).json();
    let ids = runs.as_array().unwrap().iter().map(|run| &run["run_id"]);
    ids.map(|id| id.as_str().unwrap()[..8].to_owned()).collect()
}

#[test]
fn a_run_is_shown_again_as_it_was_printed() {
    let here = Here::new();
    let ran = here.measure("--label first --note before --color always");
    ran.exits(0);
    let id = saved_id(&ran);
    for word in [&id, "latest", "first", "latest~0"] {
        let shown = here.line(&format!("show {word} --color always"));
        shown.exits(0).tells_nothing();
        assert_eq!(shown.out, ran.out, "{word}");
    }
    let plain = here.line("show");
    ran.shows("\u{1b}");
    plain.shows_not("\u{1b}");
    assert_eq!(plain.out.lines().count(), ran.out.lines().count());
    let record = here.line(&format!("show {id} --json")).record();
    assert!(record.run_id.starts_with(&id));
    assert_eq!(record.note.as_deref(), Some("before"));
    let list = here.line("history");
    list.shows_all(&[&id, "[first]", "note: before"]);
    list.fits_80_columns();
    // The most telling figures come first.
    let runs = here.line("history --json").json();
    let figures = runs[0]["figures"].as_array().unwrap().iter();
    let figures: Vec<_> = figures
        .map(|one| one["workload"].as_str().unwrap())
        .collect();
    // On a busy machine a workload may come to nothing.
    let mut order = vec!["random-read-d32", "sequential-read", "random-read-d1"];
    order.retain(|name| figures.contains(name));
    assert_eq!(figures, order);
    // With --commands what was printed holds them already.
    let with = here.measure("--commands");
    assert_eq!(here.line("show").out, with.out);
    assert_eq!(here.line("show --commands").out, with.out);
    let without = here.line("show latest~1 --commands");
    without.shows_first(&plain.out).shows("fio --name=");
}

#[test]
fn a_record_from_a_file_is_shown_exported_and_imported() {
    let (here, there) = (Here::new(), Here::new());
    let ran = there.measure("-o run.json -o run.html --json");
    let record = ran.exits(0).record();
    let [json, page] = ["run.json", "run.html"].map(|name| there.place.path().join(name));
    let (json, page) = (json.display(), page.display());
    let shown = here.line(&format!("show {json}"));
    shown.exits(0).shows(&record.run_id[..8]);
    assert_eq!(here.line(&format!("show {page}")).out, shown.out);
    assert_eq!(here.line(&format!("show {page} --json")).record(), record);
    // Looking at files needs no history.
    assert!(!here.history().exists());
    let imported = here.line(&format!("history import {page} {json} --label db2"));
    imported.exits(0).tells("added 1 run, 1 already");
    assert_eq!(here.line("show db2 --json").record(), record);
    // No page came with it, so it is made now.
    assert_eq!(here.line("show db2").out, shown.out);
    let exported = here.line("export latest copy.json -o copy.html");
    exported.exits(0).shows_nothing();
    for (copy, original) in [("copy.json", json), ("copy.html", page)] {
        let copied = std::fs::read(here.place.path().join(copy)).unwrap();
        assert!(
            copied == std::fs::read(original.to_string()).unwrap(),
            "{copy}"
        );
    }
    assert_mistakes_are_named(&here);
}

/// A mistake in a command of the history: exit 2, nothing on stdout, the reason on stderr.
fn assert_mistakes_are_named(here: &Here) {
    for (line, part) in [
        ("show nosuch.json", "nosuch.json"),
        ("show nosuch", "nosuch"),
        ("show latest~5", "latest~5"),
        ("export latest x.odd", "x.odd"),
        ("history prune", "--older-than"),
        ("history label latest latest", "latest"),
        ("history --since yesterday", "yesterday"),
    ] {
        here.line(line).exits(2).shows_nothing().tells(part);
    }
}

#[test]
fn trend_without_enough_runs_is_undecided() {
    let here = Here::new();
    let trend = |flags: &str| here.line(&format!("history --trend {flags}"));
    trend("").exits(0);
    let ran = trend("--fail-on randread-8k.iops<-10% --json");
    assert_eq!(ran.exits(5).out.trim(), "[]");
    for _ in 0..2 {
        here.line(READS);
    }
    let trends = trend("--json").json();
    let subject = trends[0]["subject"].as_str().unwrap();
    assert_eq!(trends[0]["points"].as_array().unwrap().len(), 2);
    trend(&format!("--target /nowhere --fail-on {subject}.iops<-1%")).exits(5);
    trend(&format!("--fail-on {subject}.nothing<-1%")).exits(2);
    // Two runs show no spread.
    trend(&format!("--fail-on {subject}.iops>=-100%")).exits(5);
    trend(&format!("--fail-on {subject}.p50>=-100%")).exits(5);
    trend(&format!("--fail-on {subject}.iops>1000000%")).exits(if_no_run_waited(&trends, 0));
}

/// This exit code, or that of an undecided condition where a run waited for processors for so long
/// that it compares with nothing: the tests share two of them.
fn if_no_run_waited(trends: &serde_json::Value, code: i32) -> i32 {
    let points = trends[0]["points"].as_array().unwrap();
    if points.iter().any(|point| !point["without_waits"].is_null()) {
        5
    } else {
        code
    }
}

#[test]
fn trend_of_a_percentile_that_no_run_has_is_undecided() {
    let here = Here::new();
    here.line("run --ops 20 --size 1M").exits(0);
    let condition = "--fail-on randread.p99<-10%";
    let ran = here.line(&format!("history --trend --json {condition}"));
    let trends = ran.exits(5).json();
    let has_points = |trend: &serde_json::Value| trend["points"].as_array().unwrap().len() == 1;
    assert!(trends.as_array().unwrap().iter().all(has_points));
}

/// As docs/history.md has it: a timer's condition is about the nightly check, whatever ran since.
#[test]
fn trend_condition_skips_runs_without_its_figure() {
    let here = Here::new();
    for _ in 0..2 {
        here.line(READS);
    }
    let shown = here.line("history --trend --json").json();
    let subject = shown[0]["subject"].as_str().unwrap().to_owned();
    let run = shown[0]["points"][1]["run_id"].as_str().unwrap()[..8].to_owned();
    here.line("ping . -c 2 -i 1ms").exits(0);
    for (condition, code) in [
        ("iops>1000000%", if_no_run_waited(&shown, 0)),
        ("p50>1000000%", if_no_run_waited(&shown, 0)),
        ("iops>=-100%", 5),
    ] {
        let line = format!("history --trend --fail-on {subject}.{condition}");
        here.line(&line).exits(code).tells(&run).shows(&subject);
    }
    here.line("history --trend --fail-on nothing.iops<-1%")
        .exits(2)
        .tells(&subject);
}

#[test]
fn runs_are_named_removed_and_pruned() {
    let here = Here::new();
    here.line("history").tells("'diskproof check'");
    assert_eq!(here.line("history --json").out, "[]\n");
    assert!(!here.history().exists());
    let [first, second, third, last] = [(); 4].map(|()| saved_id(&here.line(MOMENT)));
    for (flags, ids) in [
        ("", &[&last, &third, &second, &first][..]),
        ("--limit 1 --target .", &[&last]),
        ("--verb check", &[]),
        ("--since 1h", &[&last, &third, &second, &first]),
    ] {
        assert_eq!(
            listed(&here, flags).iter().collect::<Vec<_>>(),
            ids,
            "{flags}"
        );
    }
    here.line(&format!("history label {first} base"));
    assert_eq!(listed(&here, "--label base"), [first.as_str()]);
    // A word that means nothing keeps the others from being removed.
    here.line(&format!("history delete {second} nosuch"))
        .exits(2);
    here.line(&format!("history delete {second}")).exits(0);
    let dry = here.line("history prune --keep 1 --dry-run");
    dry.tells(" 1 run").shows(&third);
    assert_eq!(listed(&here, "").len(), 3);
    here.line("history prune --keep 1").tells("deleted 1 run");
    // The one with a label stays.
    assert_eq!(listed(&here, ""), [last, first]);
    let old = here.line("history prune --older-than 1h");
    old.tells("deleted 0 runs");
}

#[test]
fn who_wants_no_history_gets_none() {
    let here = Here::new();
    let home = here.place.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let run = |flags: &[&str], variables: &[(&str, &str)]| -> Ran {
        let mut command = program(argv(MOMENT).iter().chain(flags));
        command.env_remove("DISKPROOF_HISTORY");
        command.env_remove("XDG_STATE_HOME").env("HOME", &home);
        command.envs(variables.iter().copied());
        Ran::of(command.current_dir(here.place.path()))
    };
    for (flags, variables) in [
        (&["--no-history"][..], &[][..]),
        (&[], &[("DISKPROOF_NO_HISTORY", "1")]),
        (&["--dry-run"], &[]),
    ] {
        let ran = run(flags, variables);
        ran.exits(0).tells_not("saved").tells_not("history");
        assert_eq!(program::names(&home), [""; 0], "{flags:?}");
    }
    // Nowhere to save it: a note, which --quiet silences.
    let nowhere = &[("HOME", "")];
    run(&[], nowhere).exits(0).tells("HOME nor XDG_STATE_HOME");
    run(&["--quiet"], nowhere).exits(0).tells_not("HOME");
    // Who names the run looks for it later.
    run(&["--quiet", "--label", "x"], nowhere)
        .exits(0)
        .tells("HOME nor XDG_STATE_HOME");
    run(&["--no-history", "--label", "x"], &[]).exits(2);
    run(&[], &[]).tells("saved as ");
    assert!(home.join(".local/state/diskproof/history.db").exists());
}

#[test]
fn trouble_with_the_history_is_a_warning_and_costs_nothing() {
    let here = Here::new();
    let run = || here.line(&format!("{MOMENT} --quiet"));
    let warns = |part: &str| {
        let ran = run();
        ran.exits(0)
            .shows("randread")
            .tells("warning: ")
            .tells(part);
    };
    run().tells_nothing();
    let rubbish = "rubbish ".repeat(1000);
    std::fs::write(here.history(), &rubbish).unwrap();
    here.line("show").tells("is damaged");
    warns("was damaged");
    run().tells_nothing();
    assert_eq!(listed(&here, "").len(), 2);
    let mut names = program::names(here.place.path());
    names.retain(|name| name.contains(".corrupt-"));
    let renamed = here.place.path().join(&names[0]);
    assert_eq!(std::fs::read_to_string(renamed).unwrap(), rubbish);
}

#[test]
fn named_history_that_is_no_file_is_refused_before_the_run() {
    let here = Here::new();
    let path = here.place.path().join("own.db");
    let pipe = || {
        std::process::Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap();
    };
    let put: [&dyn Fn(); 4] = [
        &|| std::fs::create_dir(&path).unwrap(),
        &|| std::os::unix::fs::symlink("/dev/null", &path).unwrap(),
        &|| std::os::unix::fs::symlink("nowhere", &path).unwrap(),
        &pipe,
    ];
    // A mistyped folder costs no run either.
    let ran = here.line(&format!("{MOMENT} --history nowhere/own.db"));
    ran.exits(2).shows_nothing().tells("nowhere/own.db");
    for put in put {
        put();
        for line in [MOMENT, "run --dry-run"] {
            let ran = here.line(&format!("{line} --history own.db"));
            ran.exits(3).shows_nothing().tells("the history");
        }
        let ran = here.line("history --history own.db");
        ran.exits(3).shows_nothing().tells("the history");
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_dir(&path);
        assert_eq!(program::names(here.place.path()), [""; 0]);
    }
}

#[test]
fn foreign_file_beside_a_named_history_is_refused_before_the_run() {
    let here = Here::new();
    let text = "[[package]]\nname = \"x\"\n".repeat(100);
    for file in ["flake.lock", "flake-journal"] {
        let path = here.place.path().join(file);
        std::fs::write(&path, &text).unwrap();
        for line in [MOMENT, "run --dry-run"] {
            let ran = here.line(&format!("{line} --history flake"));
            ran.exits(3).shows_nothing().tells(file);
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(program::names(here.place.path()), [""; 0]);
    }
}

#[test]
fn a_history_that_may_not_be_written_to_is_a_warning() {
    needs!("setpriv");
    let here = Here::new();
    here.line(MOMENT);
    let copy = here.place.path().join("diskproof");
    program::copy_program(&copy);
    let data = here.place.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::os::unix::fs::chown(&data, Some(65534), Some(65534)).unwrap();
    // The folder may be looked into, not written to; the file may not even be read.
    let mut command = Command::new("setpriv");
    command.args(argv("--reuid=65534 --regid=65534 --clear-groups"));
    command.arg(&copy).args(argv(MOMENT));
    let ran = Ran::of(
        command
            .env("DISKPROOF_HISTORY", here.history())
            .current_dir(&data),
    );
    ran.exits(0).shows("randread").tells("warning: ");
    ran.tells("--history FILE");
    assert_eq!(listed(&here, "").len(), 1);
}

/// The limit is not the disk's fault, and a history that could not be made leaves nothing.
#[test]
fn limit_on_file_sizes_is_named_and_costs_no_history() {
    let here = Here::new();
    std::fs::write(here.place.path().join("data"), [1; 1 << 20]).unwrap();
    let run = "run data --ops 10 -q";
    for limit_bytes in [0, 1 << 10, 8 << 10, 40 << 10] {
        let mut command = Command::new("prlimit");
        command.arg(format!("--fsize={limit_bytes}"));
        command.arg(program::program_path()).args(argv(run));
        let ran = Ran::of(here.with_history(&mut command));
        ran.exits(0).tells("EFBIG").tells_not("dmesg");
        if limit_bytes == 0 {
            assert_eq!(names(here.place.path()), ["data"]);
        }
    }
    here.line(run).exits(0);
    // The records that fitted the limit stayed in journals, from which the list takes them.
    assert!(!listed(&here, "").is_empty());
    let names = names(here.place.path());
    assert!(
        names.iter().all(|name| !name.contains(".run-")),
        "{names:?}"
    );
}

#[test]
fn an_interrupted_run_is_saved_and_marked() {
    let here = Here::new();
    let mut command = program(argv("run --rw randread --time 60s --size 16M"));
    let running = program::PipedRun::of(here.with_history(&mut command));
    running.wait_for_run();
    let ran = running.interrupt();
    ran.exits(130);
    let id = saved_id(&ran);
    here.line("history").shows("PARTIAL");
    assert_eq!(here.line(&format!("show {id}")).out, ran.out);
}

#[test]
fn two_runs_at_once_are_both_saved() {
    let here = Here::new();
    let runs = [(); 6].map(|()| {
        let mut command = program(argv(MOMENT));
        let command = here.with_history(&mut command);
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        piped.spawn().unwrap()
    });
    let mut ids = runs.map(|run| saved_id(&run.wait_with_output().unwrap().into()));
    let mut saved = listed(&here, "");
    ids.sort();
    saved.sort();
    assert_eq!(saved, ids);
}

#[test]
fn import_of_pipe_without_writer_ends_by_itself() {
    let here = Here::new();
    let pipe = here.place.path().join("pipe.json");
    diskproof_simdisk::testbed::run("mkfifo", &[pipe.to_str().unwrap()]);
    for verb in ["history import", "show"] {
        let ran = here.line(&format!("{verb} {}", pipe.display()));
        ran.exits(2).tells("5 s");
    }
}

#[test]
fn history_behind_dangling_symlink_is_refused() {
    let here = Here::new();
    std::os::unix::fs::symlink("nowhere.db", here.history()).unwrap();
    here.line("history").exits(3).tells("symbolic link");
}

/// A kill is no power cut: what had ended is in the journal, and the next list of the history has
/// it as a partial run.
#[test]
fn killed_run_is_in_the_history_up_to_its_last_slice() {
    let here = Here::new();
    let run = "run --rw randread --time 60s --size 1M --json --label nightly";
    let record = killed_once_kept(&here, run);
    assert_eq!(here.line("history --json").json()[0]["label"], "nightly");
    let read = &record.measurements[0];
    assert!(read.data.wall_ns >= 1_000_000_000 && read.errors_total() == 0);
}

#[test]
fn killed_sustained_load_is_in_the_history_up_to_its_last_round() {
    let here = Here::new();
    let record = killed_once_kept(&here, "sustain --time 60s --size 8M --rate 200 --json");
    let load = &record.measurements[0];
    assert!(load.data.wall_ns >= 5_000_000_000 && load.errors_total() == 0);
    assert!(record.partial && record.sustain().is_some());
}

/// A ping has no slices: a tenth of its time may be lost, or ten seconds.
#[test]
fn killed_ping_is_in_the_history_with_most_of_its_requests() {
    let here = Here::new();
    let record = killed_once_kept(&here, "ping --interval 50ms --time 90s --size 1M --json");
    let read = &record.measurements[0];
    assert!(read.data.wall_ns >= 8_000_000_000 && read.errors_total() == 0);
    assert!(
        read.data.requests.len() > 50,
        "{}",
        read.data.requests.len()
    );
}

/// One record holds one setting, so each side has a journal of its own.
#[test]
fn killed_comparison_of_settings_is_in_the_history_with_both_sides() {
    let here = Here::new();
    let line = "compare --prepare true --prepare /bin/true --time 60s --size 8M \
                --only random-read-d1";
    let runs = runs_after_a_kill(&here, line, 2);
    let mut sides = Vec::new();
    for run in runs.as_array().unwrap() {
        assert_eq!(run["partial"], true);
        let id = run["run_id"].as_str().unwrap();
        let record = here.line(&format!("show {id} --json")).exits(0).record();
        assert_eq!(record.measurements.len(), 1);
        assert!(record.measurements[0].errors_total() == 0);
        sides.extend(record.results.iter().filter_map(|result| match result {
            TaskResult::Compared(part) => part.prepare.clone(),
            _ => None,
        }));
    }
    sides.sort();
    assert_eq!(sides, ["/bin/true", "true"]);
}

/// The plan of the run has the time of all sides: repeated, it would be multiplied once more.
#[test]
fn killed_comparison_of_targets_is_in_the_history_as_its_sides() {
    let here = Here::new();
    for side in ["one", "two"] {
        std::fs::create_dir(here.place.path().join(side)).unwrap();
    }
    let line = "compare ./one ./two --time 60s --size 8M --only random-read-d1";
    let runs = runs_after_a_kill(&here, line, 2);
    let mut sides = Vec::new();
    for run in runs.as_array().unwrap() {
        let id = run["run_id"].as_str().unwrap();
        let record = here.line(&format!("show {id} --json")).exits(0).record();
        let time_ns = record.plan.workloads()[0].stop.time_ns.unwrap();
        assert!(record.plan.targets.len() == 1 && time_ns < 30_000_000_000);
        sides.push(record.campaign().unwrap().side.clone());
    }
    sides.sort();
    assert_eq!(sides, ["A", "B"]);
}

#[test]
fn killed_watch_is_in_the_history_up_to_one_of_its_last_steps() {
    let here = Here::new();
    let line = "watch --record --interval 100ms --time 60s --plain --label nightly";
    let runs = runs_after_a_kill(&here, line, 1);
    assert_eq!(runs[0]["label"], "nightly");
    let record = here.line("show latest --json").exits(0).record();
    assert!(record.partial && record.observed().is_some());
}

/// A scan takes hours; what it found until it was killed is the user's. It hangs in nothing.
#[test]
fn scan_that_is_killed_while_nothing_hangs_is_in_the_history_with_what_it_found() {
    needs!("fusermount3");
    let here = Here::new();
    // 25 s, of which some ten pass before anything is kept.
    let disk = sim_disk(
        &here.place,
        "bandwidth=80MB,eio-read=4194816-4195840",
        2000 << 20,
    );
    let path = disk.path().to_str().unwrap();
    let line = format!("curve {path} --points 0 --no-access --scan --json");
    let record = killed_once_kept(&here, &line);
    assert!(record.partial);
    let scan = record.surface().unwrap().data.scan.clone().unwrap();
    assert!(!scan.finished && scan.blocks > 4, "{scan:?}");
    let unreadable: Vec<u64> = scan
        .unreadable
        .iter()
        .map(|range| range.offset_bytes)
        .collect();
    assert_eq!(unreadable, [4_194_816]);
    let codes: Vec<&str> = record
        .findings
        .iter()
        .map(|finding| finding.code.as_str())
        .collect();
    assert!(codes.contains(&"unreadable-blocks"), "{codes:?}");
}

/// Kills a run when its journal has results, and returns what the history has of it.
fn killed_once_kept(here: &Here, line: &str) -> Record {
    let runs = runs_after_a_kill(here, line, 1);
    let record = here.line("show latest --json").exits(0).record();
    assert_eq!(here.line("history --json").json(), runs);
    record
}

/// Whoever kills a run and asks for `latest` means that run, not the one before it.
#[test]
fn latest_is_a_run_that_was_killed() {
    let here = Here::new();
    here.line("run --rw randread --time 1s --size 1M").exits(0);
    let whole = here.line("show latest --json").exits(0).record();
    kill_with_results(&here, "run --rw randread --time 60s --size 1M", 1);
    let killed = here.line("show latest --json").exits(0).record();
    assert!(killed.partial && killed.run_id != whole.run_id);
    let before = here.line("show latest~1 --json").exits(0).record();
    assert_eq!(before.run_id, whole.run_id);
}

/// Kills a run when so many of its journals have results.
fn kill_with_results(here: &Here, line: &str, records: usize) {
    let mut child = here
        .with_history(&mut program(argv(line)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let saved_before = here.line("history --json").json();
    while journals_with_results(here) < records {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // A run that goes on is no run that was killed.
    assert_eq!(here.line("history --json").json(), saved_before);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Kills a run when so many of its journals have results, and returns the runs of the history.
fn runs_after_a_kill(here: &Here, line: &str, records: usize) -> Value {
    kill_with_results(here, line, records);
    let runs = here.line("history --json").exits(0).json();
    assert_eq!(runs.as_array().unwrap().len(), records);
    assert_eq!(runs[0]["partial"], true);
    assert!(journals(here).is_empty(), "{:?}", journals(here));
    runs
}

/// The files of journals beside the history.
fn journals(here: &Here) -> Vec<String> {
    names(here.place.path())
        .into_iter()
        .filter(|name| name.starts_with("history.db.run-"))
        .collect()
}

fn journals_with_results(here: &Here) -> usize {
    journals(here)
        .iter()
        .filter(|name| name.ends_with(".json"))
        .count()
}

#[test]
fn run_that_cannot_be_saved_stays_whole_in_its_journal() {
    let here = Here::new();
    let child = here
        .with_history(&mut program(argv(
            "run --rw randread --time 4s --size 1M --label nightly",
        )))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let has_journal = || {
        names(here.place.path())
            .iter()
            .any(|name| name.starts_with("history.db.run-"))
    };
    while !has_journal() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let history = here.place.path().join("history.db");
    std::fs::write(&history, "a file of another program").unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    let stderr = String::from_utf8(ended.stderr).unwrap();
    for part in ["was not saved", "history.db.run-"] {
        assert!(stderr.contains(part), "{stderr}");
    }
    std::fs::remove_file(&history).unwrap();
    let runs = here.line("history --json").exits(0).json();
    assert_eq!(runs.as_array().unwrap().len(), 1);
    assert_eq!(runs[0]["partial"], false);
    assert_eq!(runs[0]["label"], "nightly");
    assert!(!has_journal());
}

#[test]
fn run_that_ends_leaves_no_journal() {
    let here = Here::new();
    here.line("run --rw randread --time 2s --size 1M").exits(0);
    let names = names(here.place.path());
    assert!(
        names.iter().all(|name| !name.contains(".run-")),
        "{names:?}"
    );
}
