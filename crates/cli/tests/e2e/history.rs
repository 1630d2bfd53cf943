//! Every run is saved, can be shown again exactly, and no trouble with that ever costs a
//! measurement.

use crate::program;
use crate::program::{Ran, SHORT, names, program};
use diskproof_simdisk::testbed::{TempDir, place};
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

    fn run(&self, words: &[&str]) -> Ran {
        program(words)
            .env("DISKPROOF_HISTORY", self.history())
            .current_dir(self.place.path())
            .output()
            .unwrap()
            .into()
    }

    /// A short measurement.
    fn measure(&self, flags: &[&str]) -> Ran {
        self.run(&[&["check", "--read-only"], &SHORT[..], flags].concat())
    }
}

/// The id that a run was saved as, in short.
fn saved_id(ran: &Ran) -> String {
    let (_, rest) = ran
        .err
        .split_once("saved as ")
        .unwrap_or_else(|| panic!("not saved: {}", ran.err));
    rest[..8].to_owned()
}

/// Ids in the history, the newest first.
fn listed(here: &Here, flags: &[&str]) -> Vec<String> {
    let ran = here.run(&[&["history", "--json"], flags].concat());
    let runs: serde_json::Value = serde_json::from_str(&ran.out)
        .unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err));
    runs.as_array()
        .unwrap()
        .iter()
        .map(|run| run["run_id"].as_str().unwrap()[..8].to_owned())
        .collect()
}

#[test]
fn a_run_is_shown_again_as_it_was_printed() {
    let here = Here::new();
    let ran = here.measure(&["--label", "first", "--note", "before", "--color", "always"]);
    ran.exits(0);
    let id = saved_id(&ran);
    for word in [id.as_str(), "latest", "first", "latest~0"] {
        let shown = here.run(&["show", word, "--color", "always"]);
        assert_eq!(
            (shown.code, shown.out.as_str(), shown.err.as_str()),
            (Some(0), ran.out.as_str(), ""),
            "{word}"
        );
    }
    let plain = here.run(&["show"]);
    assert!(ran.out.contains('\u{1b}') && !plain.out.contains('\u{1b}'));
    assert_eq!(plain.out.lines().count(), ran.out.lines().count());
    let record = here.run(&["show", &id, "--json"]).record();
    assert!(record.run_id.starts_with(&id));
    assert_eq!(record.note.as_deref(), Some("before"));
    let list = here.run(&["history"]);
    list.shows(&id).shows("[first]").shows("note: before");
    list.fits_80_columns();
    // The most telling figures come first.
    let runs: serde_json::Value =
        serde_json::from_str(&here.run(&["history", "--json"]).out).unwrap();
    let figures: Vec<&str> = runs[0]["figures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|figure| figure["workload"].as_str().unwrap())
        .collect();
    // On a busy machine a workload may come to nothing.
    let order = ["random-read-d32", "sequential-read", "random-read-d1"]
        .into_iter()
        .filter(|name| figures.contains(name));
    assert_eq!(figures, order.collect::<Vec<_>>());
    // With --commands what was printed holds them already.
    let with = here.measure(&["--commands"]);
    assert_eq!(here.run(&["show"]).out, with.out);
    assert_eq!(here.run(&["show", "--commands"]).out, with.out);
    let without = here.run(&["show", "latest~1", "--commands"]);
    without.shows_first(&plain.out).shows("fio --name=");
}

#[test]
fn a_record_from_a_file_is_shown_exported_and_imported() {
    let (here, there) = (Here::new(), Here::new());
    let ran = there.measure(&["-o", "run.json", "-o", "run.html", "--json"]);
    ran.exits(0);
    let record = ran.record();
    let name = |file: &str| there.place.path().join(file).to_str().unwrap().to_owned();
    let shown = here.run(&["show", &name("run.json")]);
    shown.exits(0).shows(&record.run_id[..8]);
    assert_eq!(here.run(&["show", &name("run.html")]).out, shown.out);
    assert_eq!(
        here.run(&["show", &name("run.html"), "--json"]).record(),
        record
    );
    assert!(
        !here.history().exists(),
        "looking at files needs no history"
    );
    let imported = here.run(&[
        "history",
        "import",
        &name("run.html"),
        &name("run.json"),
        "--label",
        "db2",
    ]);
    imported
        .exits(0)
        .tells("added 1 run, 1 already in the history");
    assert_eq!(here.run(&["show", "db2", "--json"]).record(), record);
    assert_eq!(
        here.run(&["show", "db2"]).out,
        shown.out,
        "no page came with it, so it is made now"
    );
    let exported = here.run(&["export", "latest", "copy.json", "-o", "copy.html"]);
    exported.exits(0).shows_nothing();
    let content = |file: &str| std::fs::read(here.place.path().join(file)).unwrap();
    assert!(content("copy.json") == std::fs::read(name("run.json")).unwrap());
    assert!(content("copy.html") == std::fs::read(name("run.html")).unwrap());
    assert_mistakes_are_named(&here);
}

/// A mistake in a command of the history: exit 2, nothing on stdout, the reason on stderr.
fn assert_mistakes_are_named(here: &Here) {
    for (words, sentence) in [
        (&["show", "nosuch.json"][..], "cannot read nosuch.json"),
        (&["show", "nosuch"], "no run has this label"),
        (&["show", "latest~5"], "the history has fewer runs"),
        (&["export", "latest", "x.odd"], "unknown format"),
        (&["history", "prune"], "--older-than"),
        (
            &["history", "label", "latest", "latest"],
            "already names the newest run",
        ),
        (&["history", "--since", "yesterday"], "is not a time"),
    ] {
        let ran = here.run(words);
        ran.exits(2).shows_nothing().tells(sentence);
    }
}

#[test]
fn trend_without_enough_runs_is_undecided() {
    let here = Here::new();
    let trend = |flags: &[&str]| here.run(&[&["history", "--trend"], flags].concat());
    let limit = ["--fail-on", "randread-8k.iops<-10%"];
    trend(&[]).exits(0);
    let ran = trend(&[&limit[..], &["--json"]].concat());
    assert_eq!((ran.code, ran.out.trim()), (Some(5), "[]"));
    for _ in 0..2 {
        here.run(&["run", "--time", "50ms", "--size", "1M"]);
    }
    let ran = trend(&["--json"]);
    let trends: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let subject = trends[0]["subject"].as_str().unwrap();
    assert_eq!(trends[0]["points"].as_array().unwrap().len(), 2);
    let limit = format!("{subject}.iops<-1%");
    let of_other_targets = ["--target", "/nowhere", "--fail-on", &limit];
    trend(&of_other_targets).exits(5);
    let of_others = format!("{subject}.nothing<-1%");
    trend(&["--fail-on", &of_others]).exits(2);
    let ran = trend(&["--fail-on", &format!("{subject}.iops>=-100%")]);
    ran.exits(5);
}

#[test]
fn runs_are_named_removed_and_pruned() {
    let here = Here::new();
    assert!(
        here.run(&["history"])
            .err
            .contains("start with 'diskproof check'")
    );
    assert_eq!(
        (
            here.run(&["history", "--json"]).out.as_str(),
            here.history().exists()
        ),
        ("[]\n", false)
    );
    let run = |_| {
        let ran = here.run(&["run", "--time", "50ms", "--size", "1M"]);
        saved_id(&ran)
    };
    let ids: Vec<String> = (0..4).map(run).collect();
    assert_eq!(
        listed(&here, &[]),
        [&ids[3], &ids[2], &ids[1], &ids[0]].map(String::as_str)
    );
    assert_eq!(
        listed(&here, &["--limit", "1", "--target", "."]),
        [ids[3].as_str()]
    );
    assert_eq!(listed(&here, &["--verb", "check"]), [""; 0]);
    assert_eq!(listed(&here, &["--since", "1h"]).len(), 4);
    here.run(&["history", "label", &ids[0], "base"]);
    assert_eq!(listed(&here, &["--label", "base"]), [ids[0].as_str()]);
    // A word that means nothing keeps the others from being removed.
    here.run(&["history", "delete", &ids[1], "nosuch"]).exits(2);
    here.run(&["history", "delete", &ids[1]]).exits(0);
    let dry = here.run(&["history", "prune", "--keep", "1", "--dry-run"]);
    dry.tells("would delete 1 run").shows(&ids[2]);
    assert_eq!(listed(&here, &[]).len(), 3);
    assert!(
        here.run(&["history", "prune", "--keep", "1"])
            .err
            .contains("deleted 1 run")
    );
    assert_eq!(
        listed(&here, &[]),
        [&ids[3], &ids[0]].map(String::as_str),
        "the one with a label stays"
    );
    assert!(
        here.run(&["history", "prune", "--older-than", "1h"])
            .err
            .contains("deleted 0 runs")
    );
}

#[test]
fn who_wants_no_history_gets_none() {
    let here = Here::new();
    let home = here.place.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let run = |flags: &[&str], variables: &[(&str, &str)]| -> Ran {
        let words = ["run", "--time", "50ms", "--size", "1M"];
        let mut command = program(words.iter().chain(flags));
        command
            .env_remove("DISKPROOF_HISTORY")
            .env_remove("XDG_STATE_HOME")
            .env("HOME", &home)
            .envs(variables.iter().copied());
        command
            .current_dir(here.place.path())
            .output()
            .unwrap()
            .into()
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
    for (flags, said) in [(&[][..], true), (&["--quiet"], false)] {
        let ran = run(flags, &[("HOME", "")]);
        assert_eq!(
            (
                ran.code,
                ran.err.contains("neither HOME nor XDG_STATE_HOME is set")
            ),
            (Some(0), said),
            "{}",
            ran.err
        );
    }
    run(&["--no-history", "--label", "x"], &[]).exits(2);
    let ran = run(&[], &[]);
    ran.tells("saved as ");
    assert!(home.join(".local/state/diskproof/history.db").exists());
}

#[test]
fn trouble_with_the_history_is_a_warning_and_costs_nothing() {
    let here = Here::new();
    let run = || here.run(&["run", "--time", "50ms", "--size", "1M", "--quiet"]);
    let warned = |ran: &Ran, sentence: &str| {
        ran.exits(0).shows("randread");
        ran.tells("warning: ").tells(sentence);
    };
    std::fs::create_dir(here.history()).unwrap();
    warned(&run(), "is not a regular file");
    here.run(&["history"]).exits(4);
    std::fs::remove_dir(here.history()).unwrap();
    assert_eq!(run().err, "");
    std::fs::write(here.history(), "rubbish ".repeat(1000)).unwrap();
    assert!(here.run(&["show"]).err.contains("is damaged"));
    warned(&run(), "was damaged (file is not a database) and is now");
    assert_eq!((run().err.as_str(), listed(&here, &[]).len()), ("", 2));
    let renamed: Vec<String> = program::names(here.place.path())
        .into_iter()
        .filter(|name| name.contains(".corrupt-"))
        .collect();
    assert_eq!(
        std::fs::read_to_string(here.place.path().join(&renamed[0])).unwrap(),
        "rubbish ".repeat(1000)
    );
}

#[test]
fn foreign_file_beside_a_named_history_is_refused_before_the_run() {
    let here = Here::new();
    let text = "[[package]]\nname = \"x\"\n".repeat(100);
    for file in ["flake.lock", "flake-journal"] {
        let path = here.place.path().join(file);
        std::fs::write(&path, &text).unwrap();
        for words in [
            &["run", "--time", "50ms", "--size", "1M"][..],
            &["run", "--dry-run"],
        ] {
            let ran = here.run(&[words, &["--history", "flake"]].concat());
            ran.exits(3).shows_nothing().tells(file);
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(program::names(here.place.path()), [""; 0]);
    }
}

#[test]
fn a_history_that_may_not_be_written_to_is_a_warning() {
    if !diskproof_simdisk::testbed::can_run(
        "a_history_that_may_not_be_written_to_is_a_warning",
        &["setpriv"],
    ) {
        return;
    }
    let here = Here::new();
    here.run(&["run", "--time", "50ms", "--size", "1M"]);
    let copy = here.place.path().join("diskproof");
    program::copy_program(&copy);
    let data = here.place.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::os::unix::fs::chown(&data, Some(65534), Some(65534)).unwrap();
    // The folder may be looked into, not written to; the file may not even be read.
    let ran: Ran = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args(["run", "--time", "50ms", "--size", "1M"])
        .env("DISKPROOF_HISTORY", here.history())
        .current_dir(&data)
        .output()
        .unwrap()
        .into();
    ran.exits(0).shows("randread");
    ran.tells("warning: the run was not saved")
        .tells("--history FILE");
    assert_eq!(listed(&here, &[]).len(), 1);
}

/// The limit is not the disk's fault, and a history that could not be made leaves nothing.
#[test]
fn limit_on_file_sizes_is_named_and_costs_no_history() {
    let here = Here::new();
    std::fs::write(here.place.path().join("data"), [1; 1 << 20]).unwrap();
    let run = ["run", "data", "--ops", "10", "-q"];
    for limit_bytes in [0, 1 << 10, 8 << 10, 40 << 10] {
        let mut command = Command::new("prlimit");
        let limited = command
            .arg(format!("--fsize={limit_bytes}"))
            .arg(program::program_path())
            .args(run)
            .env("DISKPROOF_HISTORY", here.history())
            .current_dir(here.place.path());
        let ran = Ran::of(limited);
        ran.exits(0).tells("EFBIG");
        if limit_bytes == 0 {
            assert_eq!(names(here.place.path()), ["data"]);
        }
        ran.tells_not("dmesg");
    }
    let ran = here.run(&run);
    ran.exits(0);
    assert_eq!(listed(&here, &[]).len(), 1);
}

#[test]
fn an_interrupted_run_is_saved_and_marked() {
    let here = Here::new();
    let mut command = program(["run", "--rw", "randread", "--time", "60s", "--size", "16M"]);
    command
        .env("DISKPROOF_HISTORY", here.history())
        .current_dir(here.place.path());
    let running = program::PipedRun::of(&mut command);
    running.wait_for_run();
    let ran = running.interrupt();
    ran.exits(130);
    let id = saved_id(&ran);
    assert!(here.run(&["history"]).out.contains("PARTIAL"));
    assert_eq!(here.run(&["show", &id]).out, ran.out);
}

#[test]
fn two_runs_at_once_are_both_saved() {
    let here = Here::new();
    let start = || {
        let mut command = program(["run", "--time", "50ms", "--size", "1M"]);
        command
            .env("DISKPROOF_HISTORY", here.history())
            .current_dir(here.place.path());
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let runs: Vec<_> = (0..6).map(|_| start()).collect();
    let mut ids: Vec<String> = runs
        .into_iter()
        .map(|run| saved_id(&run.wait_with_output().unwrap().into()))
        .collect();
    let mut saved = listed(&here, &[]);
    ids.sort();
    saved.sort();
    assert_eq!(saved, ids);
}

#[test]
fn import_of_pipe_without_writer_ends_by_itself() {
    let here = Here::new();
    let pipe = here.place.path().join("pipe.json");
    diskproof_simdisk::testbed::run("mkfifo", &[pipe.to_str().unwrap()]);
    for verb in [&["history", "import"][..], &["show"]] {
        let ran = here.run(&[verb, &[pipe.to_str().unwrap()]].concat());
        ran.exits(2).tells("no answer within 5 s");
    }
}

#[test]
fn history_behind_dangling_symlink_is_a_warning_and_an_error() {
    let here = Here::new();
    std::os::unix::fs::symlink("nowhere.db", here.history()).unwrap();
    let listed = here.run(&["history"]);
    listed.exits(4).tells("symbolic link");
}
