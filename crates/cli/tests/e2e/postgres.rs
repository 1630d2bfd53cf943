//! `diskproof commit --postgres` and settings for postgresql.conf, with a real server.

use crate::program::{argv, eventually, names, program, run, with_enough_time};
use diskproof_model::advice::Advice;
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{can_run, place};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Only what must happen within it: on a slow machine initdb takes many seconds.
const WITHIN: Duration = Duration::from_secs(120);

/// The programs of a server that Debian installed; diskproof finds them, too.
pub(crate) fn server(test: &str) -> Option<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql");
    let mut folders = installed.into_iter().flatten().flatten();
    let found = folders.find_map(|version| {
        let bin = version.path().join("bin");
        bin.join("initdb").exists().then_some(bin)
    });
    // Without root only the message is of use.
    let can_run = can_run(test, if found.is_some() { &[] } else { &["initdb"] });
    found.filter(|_| can_run)
}

fn flags(time: &str) -> Vec<String> {
    let flags = argv("--postgres --only fdatasync --quick --size 16M");
    let common = ["--time", time, "--json", "-q", "--no-history"];
    flags
        .iter()
        .chain(&common)
        .map(|flag| (*flag).to_owned())
        .collect()
}

#[test]
fn inserts_of_a_real_server_stand_beside_own_commits_and_nothing_stays() {
    if server("inserts_of_a_real_server_stand_beside_own_commits_and_nothing_stays").is_none() {
        return;
    }
    let here = place();
    // Deeper than the path of a socket may be.
    let target = here.path().join("d".repeat(120));
    std::fs::create_dir(&target).unwrap();
    let record = complete_record(&target);
    assert!(names(&target).is_empty(), "{:?}", names(&target));
    let plan = &record.plan.inserts().unwrap().server;
    let postgres = record.postgres().unwrap();
    assert_eq!(postgres.version, plan.version);
    let measured: Vec<_> = postgres.loads.iter().map(|load| &load.data.load).collect();
    assert_eq!(measured, plan.loads.iter().collect::<Vec<_>>());
    for load in &postgres.loads {
        let name = &load.data.load.name;
        assert_eq!(load.data.slices.len(), 4, "{name}");
        assert!(
            load.figures.iops.value > 0.0 && load.figures.latency_max_ns > Some(0),
            "{name}"
        );
        let cpu_ns = load.figures.client_cpu_ns;
        assert_eq!(
            cpu_ns.is_some_and(|ns| ns > 0.0),
            !load.data.load.pgbench,
            "{name}"
        );
        // A row with its header and the commit need more than 60 bytes.
        assert!(load.figures.wal_bytes_per_commit > 60.0, "{name}");
        let is_own = load.data.load.synchronous_commit && load.data.load.name == "fdatasync-c1";
        assert_eq!(
            (load.figures.own.is_some(), load.figures.parts.is_some()),
            (is_own, is_own),
            "{name}"
        );
    }
    // A second is enough to try some settings at most; each has its answer all the same.
    let planned = &plan.trial.as_ref().unwrap().trials;
    let of_plan: Vec<&str> = planned.iter().map(|t| t.setting.as_str()).collect();
    let tried = postgres
        .trials
        .iter()
        .map(|t| t.data.trial.setting.as_str());
    assert_eq!(tried.collect::<Vec<_>>(), of_plan);
    let advised = |name: &str| record.advice.iter().any(|advice| advice.setting == name);
    assert!(
        of_plan.iter().all(|name| advised(name)),
        "{:?}",
        record.advice
    );
}

/// Of a run that its announced time did not end: on a busy machine initdb alone may take longer.
fn complete_record(target: &Path) -> Record {
    let words = ["commit".to_owned(), target.display().to_string()];
    let more = ["--try-settings".to_owned()];
    let run_for = |time| run(words.iter().cloned().chain(flags(time)).chain(more.clone()));
    let mut ran = run_for("1s");
    for time in ["20s", "90s"] {
        if ran.code == Some(0) {
            break;
        }
        assert!(ran.record().partial, "{}", ran.err);
        assert!(eventually(|| names(target).is_empty()));
        ran = run_for(time);
    }
    ran.exits(0);
    ran.record()
}

#[test]
fn inserts_alone_are_an_answer() {
    if server("inserts_alone_are_an_answer").is_none() {
        return;
    }
    let here = place();
    let target = here.path().display().to_string();
    let line = "--postgres --only insert-fdatasync-c1 --quick --size 16M --no-history -q --time";
    let words = ["commit", &target].into_iter().chain(argv(line));
    let ran = run(words.clone().chain(["20s", "--json"]));
    ran.exits(0);
    let record = ran.record();
    assert!(record.measurements.is_empty());
    assert_eq!(record.postgres().unwrap().loads.len(), 1);
    assert!(record.verdict.unwrap().headline.contains("INSERTs/s"));
    let nothing = run(words.chain(["20s", "--skip", "insert-fdatasync-c1"]));
    nothing.exits(2);
    assert!(names(here.path()).is_empty());
}

#[test]
fn server_and_its_directory_vanish_when_diskproof_is_killed() {
    if server("server_and_its_directory_vanish_when_diskproof_is_killed").is_none() {
        return;
    }
    let here = place();
    let mut child = program(["commit"])
        .arg(here.path())
        .args(flags("60s"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The server is about to listen, or listens.
    let log = here.path().join("diskproof-postgres/data/postmaster.pid");
    wait_until(|| log.exists());
    let pid = std::fs::read_to_string(&log).unwrap_or_default();
    let server = pid.lines().next().unwrap_or_default().to_owned();
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    wait_until(|| names(here.path()).is_empty());
    // The command line of a process that has ended is empty until its parent has seen it.
    let command_line = Path::new("/proc").join(&server).join("cmdline");
    wait_until(|| server.is_empty() || std::fs::read(&command_line).unwrap_or_default().is_empty());
}

#[test]
fn files_of_another_program_in_the_cluster_stay_and_change_no_exit_code() {
    if server("files_of_another_program_in_the_cluster_stay_and_change_no_exit_code").is_none() {
        return;
    }
    let here = place();
    let mut child = program(["commit"])
        .arg(here.path())
        .args(flags("60s"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let cluster = here.path().join("diskproof-postgres");
    wait_until(|| cluster.join("data/postmaster.pid").exists());
    let theirs = ["notes", "data/base/notes", "data/pg_wal/5.sql"].map(|name| cluster.join(name));
    for path in &theirs {
        std::fs::write(path, "data").unwrap();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let err = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{err}");
    assert!(err.contains(cluster.to_str().unwrap()), "{err}");
    assert_eq!(names(&cluster), ["claim", "data", "notes"]);
    assert_eq!(names(&cluster.join("data")), ["base", "pg_wal"]);
    for path in &theirs {
        assert_eq!(std::fs::read(path).unwrap(), b"data");
        std::fs::remove_file(path).unwrap();
    }
    // Once they are gone, the next run removes the rest.
    with_enough_time(&["3s", "60s"], |time| {
        let mut next = program(["commit"]);
        let next = next.arg(here.path()).args(flags(time)).output().unwrap();
        assert!(names(here.path()).is_empty(), "{next:?}");
        match next.status.code() {
            Some(0) => Ok(()),
            _ => Err(format!("{next:?}")),
        }
    });
}

/// As when diskproof was killed while a disk held the making of the directory.
#[test]
fn guard_without_a_server_removes_what_there_is_of_the_directory() {
    let here = place();
    let directory = here.path().join("diskproof-postgres");
    let guard = || {
        program(["postgres-guard", "/nowhere", "-"])
            .current_dir(here.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let claim = "This directory belongs to diskproof, which removes it.\n";
    for (has_directory, claim) in [(false, None), (true, None), (true, Some(claim))] {
        if has_directory {
            std::fs::create_dir(&directory).unwrap();
        }
        if let Some(claim) = claim {
            std::fs::write(directory.join("claim"), claim).unwrap();
            std::fs::create_dir(directory.join("data")).unwrap();
        }
        assert_eq!(String::from_utf8(guard().stdout).unwrap(), "removed\n");
        assert!(names(here.path()).is_empty());
    }
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("mine"), "").unwrap();
    guard();
    assert_eq!(names(&directory), ["mine"]);
}

/// A program of the server, as a user without rights: it refuses to run as root.
pub(crate) fn as_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(program)
        .env("LC_ALL", "C")
        .current_dir("/");
    command
}

pub(crate) fn output(command: &mut Command) -> String {
    let ran = command.output().unwrap();
    let text = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert!(ran.status.success(), "{text}");
    text
}

/// Advice on settings that every version has, on settings of some versions, and from a stranger.
fn settings() -> Vec<Advice> {
    let advice = |setting: &str, value: &str| Advice {
        setting: setting.to_owned(),
        value: Some(value.to_owned()),
        range: None,
        why: format!("A reason with 20 µs\nand {setting} = broken on a line of its own."),
        from: vec!["random-read-d1".to_owned()],
        default: Some("0".to_owned()),
        condition: Some("for a test".to_owned()),
    };
    vec![
        advice("random_page_cost", "2.6"),
        advice("effective_io_concurrency", "64"),
        advice("maintenance_io_concurrency", "32"),
        advice("wal_sync_method", "open_datasync"),
        advice("commit_delay", "0"),
        // Each is a comment: no version has both, and no value has a quote.
        advice("io_workers", "8"),
        advice("io_max_workers", "8"),
        advice("port", "5432' # hostile"),
    ]
}

/// What a server in single-user mode says of its configuration.
fn answer(bin: &Path, data: &Path) -> String {
    let (query, mut writer) = std::io::pipe().unwrap();
    let names = "'random_page_cost', 'effective_io_concurrency', 'wal_sync_method'";
    let question = format!(
        "SELECT 'broken: ' || error FROM pg_file_settings WHERE error IS NOT NULL\n\
         SELECT 'set: ' || name || '=' || setting FROM pg_settings WHERE name IN ({names})\n"
    );
    writer.write_all(question.as_bytes()).unwrap();
    drop(writer);
    let mut single = as_user(&bin.join("postgres"));
    output(
        single
            .args(["--single", "-D"])
            .arg(data)
            .arg("postgres")
            .stdin(query),
    )
}

#[test]
fn real_server_accepts_every_line_of_the_settings() {
    let Some(bin) = server("real_server_accepts_every_line_of_the_settings") else {
        return;
    };
    let version: u32 = {
        let name = bin.parent().unwrap().file_name().unwrap();
        name.to_str().unwrap().parse().unwrap()
    };
    let here = place();
    let short = argv("--quick --only fdatasync --time 1s --size 16M");
    let words = ["commit", here.path().to_str().unwrap(), "--json", "-q"];
    let measured = run(words.into_iter().chain(short)).record();
    // Without its data it says what it stores.
    let mut record = measured.figures_only();
    record.plan.questions.postgres_version = Some(version);
    record.advice = settings();
    let (saved, data) = (here.path().join("run.json"), here.path().join("data"));
    std::fs::write(&saved, serde_json::to_string(&record).unwrap()).unwrap();
    let ran = run([
        OsStr::new("show"),
        saved.as_os_str(),
        "--format=postgresql.conf".as_ref(),
    ]);
    ran.exits(0);
    std::fs::create_dir(&data).unwrap();
    std::os::unix::fs::chown(&data, Some(65534), Some(65534)).unwrap();
    output(
        as_user(&bin.join("initdb"))
            .args(["-N", "-A", "trust", "-D"])
            .arg(&data),
    );
    let mut conf = std::fs::read_to_string(data.join("postgresql.conf")).unwrap();
    conf.push_str(&ran.out);
    std::fs::write(data.join("postgresql.conf"), conf).unwrap();
    let answer = answer(&bin, &data);
    assert!(!answer.contains("broken: "), "{answer}\n{}", ran.out);
    for set in [
        "set: random_page_cost=2.6",
        "set: effective_io_concurrency=64",
        "set: wal_sync_method=open_datasync",
    ] {
        assert!(answer.contains(set), "{answer}");
    }
}

pub(crate) fn wait_until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < WITHIN, "it takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}
