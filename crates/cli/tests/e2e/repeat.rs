//! `diskproof run RECORD`: a saved run of every kind measures the same again.

use crate::program::{argv, content_hash, names, needs, random_file, run, saved_record};
use diskproof_model::plan::{Decide, Plan, Sides, Task};
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{TempDir, place};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A directory for targets, and one for records.
struct Here {
    targets: TempDir,
    records: TempDir,
}

impl Here {
    fn new() -> Self {
        Self {
            targets: place(),
            records: place(),
        }
    }

    fn directory(&self, name: &str) -> String {
        let path = self.targets.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn record_path(&self, name: &str) -> PathBuf {
        self.records.path().join(name)
    }

    /// The record of a command line, in which `DIR` is a directory.
    fn measured(&self, line: &str) -> (String, Record) {
        let path = self.record_path("first.json").to_str().unwrap().to_owned();
        let directory = self.directory("first");
        let words = argv(line).into_iter().map(|word| {
            if word == "DIR" {
                directory.as_str()
            } else {
                word
            }
        });
        run(words.chain(["-q", "--no-history", "-o", &path])).exits(0);
        let record = saved_record(&path);
        (path, record)
    }

    /// The record of what repeats a record on another directory.
    fn repeated(&self, record: &str, flags: &[&str]) -> Record {
        let path = self.record_path("again.json").to_str().unwrap().to_owned();
        let other = self.directory("other");
        let words = ["run", record, &other, "-q", "--no-history", "-o", &path];
        run(words.iter().chain(flags)).exits(0);
        assert!(names(other.as_ref()).is_empty());
        saved_record(&path)
    }
}

/// The same tasks, on a directory of another name.
fn assert_same_tasks(again: &Plan, first: &Plan) {
    assert_eq!(again.tasks, first.tasks);
    assert_eq!((again.seed, &again.scratch), (first.seed, &first.scratch));
    assert_eq!(again.time_limit_ns, first.time_limit_ns);
}

#[test]
fn run_of_each_kind_is_repeated_with_its_tasks() {
    let here = Here::new();
    for line in [
        "check DIR --time 2s --size 16M --read-only",
        "ping DIR -c 3 -i 1ms",
        "ping DIR -c 3 -i 0",
        "files DIR --count 50 --time 2s --rounds 1",
        "sweep DIR --time 2s --size 16M --bs 4k,64k --depth 1,4 --rw randread",
        "curve DIR --size 16M --points 4 --no-access",
        "run DIR --size 16M --depth 1 --latency-target 1s --latency-window 100ms --time 2s",
        "commit DIR --time 2s --size 32M --only fdatasync",
    ] {
        let (path, first) = here.measured(line);
        let again = here.repeated(&path, &[]);
        assert_same_tasks(&again.plan, &first.plan);
        assert_eq!(again.plan.origin.verb, first.plan.origin.verb, "{line}");
        assert_eq!(again.measurements.len(), first.measurements.len(), "{line}");
        assert_eq!(again.files().is_some(), first.files().is_some(), "{line}");
        assert_eq!(again.sweep().is_some(), first.sweep().is_some(), "{line}");
        assert_eq!(
            again.surface().is_some(),
            first.surface().is_some(),
            "{line}"
        );
        assert_eq!(
            again.latency_search().is_some(),
            first.latency_search().is_some(),
            "{line}"
        );
    }
}

/// Jobs of another tool may have several files in one directory.
#[test]
fn files_of_one_directory_are_repeated() {
    let here = Here::new();
    let directory = here.directory("files");
    let job = here.record_path("two.fio");
    let text = format!(
        "[a]\nfilename={directory}/a\nsize=1m\nrw=write\n[b]\nfilename={directory}/b\nsize=1m\n\
         rw=write\n"
    );
    std::fs::write(&job, text).unwrap();
    let path = here.record_path("first.json");
    let [job, record] = [&job, &path].map(|path| path.to_str().unwrap());
    run(["as", "-o", record, "fio", job]).exits(0);
    assert_eq!(saved_record(record).targets.len(), 2);
    run(["run", record, "--dry-run"]).exits(0);
}

/// A record is a file like any other: its plan is looked at before anything is opened.
#[test]
fn plan_without_a_request_or_an_end_is_refused() {
    let here = Here::new();
    let (path, _) = here.measured("run DIR --rw randread --size 16M --time 1s");
    let saved: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let load = "/plan/tasks/0/list/0";
    for (pointer, value) in [
        (format!("{load}/workers"), json!(0)),
        (format!("{load}/block_bytes"), json!(0)),
        (format!("{load}/depth"), json!(0)),
        (format!("{load}/stop"), json!({})),
        ("/plan/tasks/0/list".to_owned(), json!([])),
    ] {
        let mut changed = saved.clone();
        *changed.pointer_mut(&pointer).unwrap() = value;
        std::fs::write(&path, changed.to_string()).unwrap();
        run(["run", &path, "-q", "--no-history", "--dry-run"]).exits(2);
    }
    // A size beyond all targets is a size.
    let mut changed = saved;
    *changed.pointer_mut("/plan/scratch/size_bytes").unwrap() = json!(1_u64 << 60);
    std::fs::write(&path, changed.to_string()).unwrap();
    run(["run", &path, "-q", "--no-history"]).exits(3);
}

/// A record comes from anywhere, and the file that it names is not given up.
#[test]
fn overwrite_releases_no_file_that_only_the_record_names() {
    let here = Here::new();
    let recorded = here.targets.path().join("recorded");
    let given = here.targets.path().join("given");
    random_file(&recorded, 4 << 20);
    let path = here.record_path("first.json").to_str().unwrap().to_owned();
    let words = [
        "run",
        recorded.to_str().unwrap(),
        "--overwrite",
        "-o",
        &path,
    ];
    let flags = "--rw randwrite --ops 8 -q --no-history";
    run(words.into_iter().chain(argv(flags))).exits(0);
    random_file(&recorded, 4 << 20);
    random_file(&given, 4 << 20);
    let before = content_hash(&recorded);

    let again = ["run", &path, "-q", "--no-history", "--overwrite"];
    run(again).exits(2).tells("recorded");
    let filename = format!("--filename={}", given.display());
    run(again.into_iter().chain([filename.as_str()])).exits(0);
    assert_eq!(content_hash(&recorded), before);
    random_file(&recorded, 4 << 20);
    assert!(std::fs::read(&given).unwrap() != std::fs::read(&recorded).unwrap());
}

/// What a saved run cannot follow is refused instead of forgotten.
#[test]
fn flags_that_a_record_cannot_follow_are_refused() {
    let here = Here::new();
    let (path, _) = here.measured("run DIR --rw randread --size 16M --time 1s");
    for flags in [
        "--engine psync",
        "--section foo",
        "--like latest",
        "--size 32M",
    ] {
        let words = ["run", path.as_str(), "-q", "--no-history", "--dry-run"];
        run(words.into_iter().chain(argv(flags))).exits(2);
    }
}

/// The history has a record for each side, from which the whole comparison is repeated.
#[test]
fn live_comparison_of_targets_is_repeated_on_both() {
    let here = Here::new();
    let history = here.record_path("history.db").to_str().unwrap().to_owned();
    let (one, other) = (here.directory("one"), here.directory("other"));
    let compare = "--time 4s --size 16M --only random-read-d1 -q";
    let words = ["compare", &one, &other, "--history", &history];
    run(words.into_iter().chain(argv(compare))).exits(0);
    let side = here.record_path("side.json").to_str().unwrap().to_owned();
    run(["export", "latest", &side, "--history", &history]).exits(0);
    let record = saved_record(&side);
    let Task::Workloads(workloads) = &record.plan.tasks[0] else {
        panic!("{:?}", record.plan.tasks);
    };
    let Decide::Compare(live) = &workloads.decide else {
        panic!("{:?}", workloads.decide);
    };
    let paths = vec![one.clone(), other.clone()];
    assert_eq!(live.sides, Sides::Targets { paths });
    let json = run(["run", &side, "--json", "-q", "--no-history"])
        .exits(0)
        .json();
    assert_eq!(json["schema"], "diskproof.comparison/1");
    assert_eq!(json["baseline"]["label"], one.as_str());
    run(["run", &side, &one, "-q"]).exits(2);
    for flags in [
        "--expect random-read-d1.p99<=1ns",
        "--commands",
        "--label x",
    ] {
        let words = ["run", side.as_str(), "-q", "--dry-run"];
        run(words.into_iter().chain(argv(flags))).exits(2);
    }
}

/// A record may be another one's: its commands are shown, and nothing runs before the user agrees.
#[test]
fn commands_of_a_record_run_only_after_the_word_of_the_user() {
    let here = Here::new();
    let history = here.record_path("history.db").to_str().unwrap().to_owned();
    let target = here.directory("target");
    let log = here.record_path("log").to_str().unwrap().to_owned();
    let (a, b) = (format!("echo a >> {log}"), format!("echo b >> {log}"));
    let words = ["compare", &target, "--prepare", &a, "--prepare", &b];
    let flags = "--time 4s --size 16M --only random-read-d1 -q --history";
    run(words
        .into_iter()
        .chain(argv(flags))
        .chain([history.as_str()]))
    .exits(0);
    let side = here.record_path("side.json").to_str().unwrap().to_owned();
    run(["export", "latest", &side, "--history", &history]).exits(0);
    std::fs::remove_file(&log).unwrap();
    for flags in [&["-q"][..], &["--dry-run"]] {
        let words = ["run", side.as_str(), "--no-history"];
        let ran = run(words.iter().chain(flags));
        let code = if flags == ["-q"] { 3 } else { 0 };
        ran.exits(code).tells(&a).tells(&b);
        assert!(!std::path::Path::new(&log).exists());
    }
    run(["run", &side, "--yes", "-q", "--no-history"]).exits(0);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains('a') && text.contains('b'), "{text}");
}

/// The programs of the server are looked for anew, whatever the record names. On a busy machine the
/// INSERTs may be cut short, which is not what this is about.
#[test]
fn inserts_are_repeated_with_the_programs_of_this_machine() {
    needs!("losetup");
    let here = Here::new();
    let directory = here.directory("target");
    let path = here.record_path("first.json").to_str().unwrap().to_owned();
    let again = here.record_path("again.json").to_str().unwrap().to_owned();
    let line = "--postgres --only fdatasync --size 16M --time 5s -q --no-history -o";
    let words = ["commit", &directory].into_iter().chain(argv(line));
    let ran = run(words.chain([path.as_str()]));
    assert!(matches!(ran.code, Some(0 | 4)), "{}", ran.err);
    let first = saved_record(&path);
    let programs = &first.plan.inserts().unwrap().server.programs;
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace(programs.as_str(), "/nonexistent/bin")).unwrap();
    run(["run", &path, "-q", "--no-history"])
        .exits(3)
        .tells(programs);
    let words = ["run", &path, "--yes", "-q", "--no-history", "-o", &again];
    let ran = run(words);
    assert!(matches!(ran.code, Some(0 | 4)), "{}", ran.err);
    let again = saved_record(&again);
    assert_eq!(&again.plan.inserts().unwrap().server.programs, programs);
    assert_eq!(
        again.plan.inserts().unwrap().server.loads,
        first.plan.inserts().unwrap().server.loads
    );
    assert!(names(directory.as_ref()).is_empty());
}
