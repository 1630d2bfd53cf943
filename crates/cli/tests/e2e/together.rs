//! Workloads of a plan that run at the same time, from the outside.

use crate::program::{
    PipedRun, Ran, argv, content_hash, counts, names, needs, random_file, run, saved_record,
    sim_disk,
};
use diskproof_model::measurement::{OpKind, StopReason};
use diskproof_model::plan::CachePolicy;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_simdisk::testbed::{Loop, place};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

const MIB: u64 = 1 << 20;

const COMMITS: &str = "[[workload]]\nname = \"commits\"\nrw = \"write\"\ncached = true\nfdatasync \
                       = 1\nspan = \"0-25%\"\n";
const READS: &str =
    "[[workload]]\nname = \"reads\"\ntogether = true\ndepth = 4\nspan = \"25%-100%\"\n";

fn run_plan(plan: &str, target: &Path, flags: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    std::fs::write(&path, plan).unwrap();
    run([OsStr::new("run"), path.as_os_str(), target.as_os_str()]
        .into_iter()
        .chain(flags.iter().map(OsStr::new)))
}

fn count(m: &Row, kind: OpKind) -> u64 {
    counts(m, kind).0
}

/// The members in order, all of one window.
fn members(record: &Record, of: usize) -> &[Row] {
    let members = &record.measurements[..of];
    for m in members {
        assert_eq!(
            (m.data.start_ns, m.data.asked, &m.data.device),
            (
                members[0].data.start_ns,
                members[0].data.asked,
                &members[0].data.device
            ),
            "{}",
            m.data.workload.name
        );
        let others: Vec<&str> = members
            .iter()
            .map(|m| m.data.workload.name.as_str())
            .filter(|name| *name != m.data.workload.name)
            .collect();
        assert_eq!(m.figures.together_with, others);
    }
    members
}

#[test]
fn commits_and_reads_run_at_the_same_time() {
    let here = place();
    let plan = format!(
        "size = \"16MiB\"\n{COMMITS}ops = 50\n{READS}[[workload]]\nname = \"alone\"\nops = 10\n"
    );
    let dry = run_plan(&plan, here.path(), &["--dry-run"]);
    let squeezed = dry.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        dry.out.contains("\n+ reads") && squeezed.contains("+ runs"),
        "{}",
        dry.out
    );
    assert!(names(here.path()).is_empty());

    // Of the reads nothing is sure but that they ran alongside: the commits may be done within a
    // moment.
    let ran = run_plan(
        &plan,
        here.path(),
        &argv("--json --expect commits.iops>=0 --expect commits.commit.p50<=3600s"),
    );
    ran.exits(0);
    ran.tells("1/3 commits: ")
        .tells("2/3 reads: ")
        .tells("3/3 alone: ");
    let record = ran.record();
    let [commits, reads] = members(&record, 2) else {
        unreachable!()
    };
    assert_eq!(
        (
            count(commits, OpKind::Commit),
            commits.data.stopped,
            reads.data.stopped
        ),
        (50, StopReason::Ops, StopReason::Companion)
    );
    assert_eq!(
        (commits.data.cache.used, reads.data.cache.used),
        (CachePolicy::Cached, CachePolicy::Direct)
    );
    assert!(record.measurements[2].figures.together_with.is_empty());
    assert_eq!(commits.figures.reproduce, reads.figures.reproduce);
    assert!(names(here.path()).is_empty());

    assert_one_command_for_both(&plan, here.path());
    let missed = run_plan(
        &plan,
        here.path(),
        &["--quiet", "--expect", "commits.iops>=1000000000"],
    );
    missed.exits(1);
}

/// The page of commands names both workloads, and one command of fio runs them.
fn assert_one_command_for_both(plan: &str, target: &Path) {
    let page = run_plan(plan, target, &["-v"]);
    page.shows("with reads").shows("with commits");
    assert_eq!(
        page.out
            .lines()
            .filter(|line| line.starts_with("fio "))
            .count(),
        2,
        "one command for both: {}",
        page.out
    );
}

#[test]
fn what_cannot_run_together_is_refused_before_anything_is_opened() {
    let here = place();
    let wrong = |plan: &str, parts: &[&str]| {
        let ran = run_plan(plan, here.path(), &[]);
        ran.exits(2).shows_nothing();
        ran.tells_all(parts);
    };
    wrong(
        "[[workload]]\nname = \"a\"\ntogether = true\n",
        &["plan.toml: line 1: 'a' "],
    );
    let verified = "[[workload]]\nname = \"a\"\nrw = \"randwrite\"\nverify = \
                    true\n[[workload]]\nname = \"b\"\ntogether = true\nrw = \"write\"\n";
    wrong(verified, &["line 5: workload 'b': 'a' "]);
    let cached = "[[workload]]\nname = \"a\"\ncached = true\n[[workload]]\nname = \"b\"\ntogether \
                  = true\nbuffered = true\n";
    wrong(cached, &["workload 'b': 'a' "]);
    assert!(names(here.path()).is_empty());
}

#[test]
fn on_a_device_it_takes_the_same_leave_as_ever() {
    needs!("losetup");
    let here = place();
    let image = here.path().join("image");
    random_file(&image, 32 * MIB);
    let before = content_hash(&image);
    let device = Loop::over(&image, &["--direct-io=on"]);
    let reads = "[[workload]]\nname = \"direct\"\nops = 200\n[[workload]]\nname = \
                 \"scan\"\ntogether = true\nrw = \"read\"\nbuffered = true\n";
    let ran = run_plan(reads, &device.node, &["--json"]);
    ran.exits(0);
    assert_eq!(count(&members(&ran.record(), 2)[0], OpKind::Read), 200);

    let writes = format!("{COMMITS}ops = 30\n{READS}");
    let refused = run_plan(&writes, &device.node, &[]);
    refused.exits(3).shows_nothing().tells("--destroy");
    program_flush(&device.node);
    assert_eq!(content_hash(&image), before, "nothing was written");

    let ran = run_plan(
        &writes,
        &device.node,
        &["--json", "--destroy", device.name()],
    );
    ran.exits(0);
    let record = ran.record();
    let [commits, reads] = members(&record, 2) else {
        unreachable!()
    };
    assert_eq!(
        (commits.data.cache.used, reads.data.cache.used),
        (CachePolicy::Cached, CachePolicy::Direct)
    );
    assert_eq!(count(commits, OpKind::Commit), 30);
    assert_ne!(content_hash(&image), before);
    // The claim is gone with the run.
    assert_eq!(
        run_plan(
            &writes,
            &device.node,
            &["--quiet", "--destroy", device.name()]
        )
        .code,
        Some(0)
    );
}

fn program_flush(node: &Path) {
    diskproof_simdisk::testbed::run("blockdev", &["--flushbufs", node.to_str().unwrap()]);
}

/// A disk of 2000 operations per second, shared by an offered load of 500 and a closed loop: never
/// more than there is, and never more than was offered.
#[test]
fn the_figures_add_up_to_what_the_disk_has() {
    needs!("fusermount3");
    let here = place();
    let disk = sim_disk(&here, "iops=2000", 64 * MIB);
    let plan = "[[workload]]\nname = \"paced\"\ndepth = 16\nrate = 500\ntime = \"2s\"\nwarmup = \
                \"500ms\"\n[[workload]]\nname = \"closed\"\ntogether = true\ndepth = 4\n";
    let ran = run_plan(plan, disk.path(), &["--json"]);
    ran.exits(0);
    let record = ran.record();
    let [paced, closed] = members(&record, 2) else {
        unreachable!()
    };
    assert_eq!(
        (paced.data.wall_ns, closed.data.wall_ns),
        (2_000_000_000, 2_000_000_000)
    );
    let (offered, taken) = (count(paced, OpKind::Read), count(closed, OpKind::Read));
    // What was held up before may come late; what was in flight at the start of the measured time
    // is done within it.
    assert!(offered <= 1000 + 250 + 16, "{offered}");
    assert!(
        offered + taken <= 4000 * 101 / 100 + 20,
        "{offered} + {taken}"
    );
    assert!(taken > 0 && offered > 0, "{offered}, {taken}");
    assert!(paced.data.missed_starts.is_some() && closed.data.missed_starts.is_none());
}

#[test]
fn a_member_that_only_fails_ends_the_others() {
    needs!("fusermount3");
    let here = place();
    let disk = sim_disk(&here, "latency=50us,eio-read=0-8MiB", 64 * MIB);
    let plan = "[[workload]]\nname = \"good\"\nspan = \"50%-100%\"\ntime = \"10m\"\nwarmup = \
                \"0s\"\n[[workload]]\nname = \"bad\"\ntogether = true\nspan = \"0-8MiB\"\n";
    let ran = run_plan(plan, disk.path(), &["--json"]);
    ran.exits(4);
    let record = ran.record();
    let [good, bad] = members(&record, 2) else {
        unreachable!()
    };
    assert_eq!(
        (good.data.stopped, bad.data.stopped),
        (StopReason::Companion, StopReason::Errors)
    );
    assert!(
        record.partial
            && record
                .ended_early
                .as_ref()
                .is_some_and(|why| why.contains("during 'bad'")),
        "{:?}",
        record.ended_early
    );
}

#[test]
fn ctrl_c_ends_all_of_them_with_what_was_measured() {
    let here = place();
    let work = here.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let plan = here.path().join("plan.toml");
    let first = "[[workload]]\nname = \"first\"\nops = 10\n";
    std::fs::write(
        &plan,
        format!("size = \"16MiB\"\n{first}{COMMITS}time = \"10m\"\n{READS}"),
    )
    .unwrap();
    let saved = here.path().join("saved.json");
    let words = format!(
        "run {} {} -o {}",
        plan.display(),
        work.display(),
        saved.display()
    );
    let words = argv(&words);
    let mut running = PipedRun::start(words);
    running.wait_for_line("1/3 first");
    let ran = running.interrupt();
    ran.exits(130);
    let record = saved_record(&saved);
    assert!(record.partial && record.measurements[0].data.workload.name == "first");
    // Where the signal came while the two were being made ready, they were not measured at all.
    assert!(
        record.measurements[1..]
            .iter()
            .all(|m| m.data.stopped == StopReason::Interrupted),
        "{record:?}"
    );
    assert!(names(&work).is_empty());
}

/// fio takes the command, runs both at the same time, and ends both when the first is done.
#[test]
fn the_command_runs_under_fio() {
    if Command::new("fio").arg("--version").output().is_err() {
        eprintln!("SKIPPED: the_command_runs_under_fio: fio is not installed");
        return;
    }
    let here = place();
    // The time is for the case that fio's commits are done before its reads begin.
    let plan = format!("size = \"16MiB\"\n{COMMITS}ops = 50\n{READS}time = \"60s\"\n");
    let ran = run_plan(&plan, here.path(), &["--json", "--quiet"]);
    ran.exits(0);
    let command = ran.record().measurements[0].figures.reproduce.replacen(
        "fio ",
        "fio --output-format=terse --terse-version=3 ",
        1,
    );
    let fio = Command::new("sh").arg("-c").arg(&command).output().unwrap();
    let out = String::from_utf8_lossy(&fio.stdout);
    assert!(
        fio.status.success(),
        "{command}\n{}",
        String::from_utf8_lossy(&fio.stderr)
    );
    let groups: Vec<Vec<&str>> = out
        .lines()
        .filter(|line| line.starts_with("3;"))
        .map(|line| line.split(';').collect())
        .collect();
    let jobs: Vec<(&str, &str)> = groups.iter().map(|fields| (fields[2], fields[3])).collect();
    assert_eq!(jobs, [("commits", "0"), ("reads", "1")], "{out}");
    // Fio takes its file away again.
    assert!(names(here.path()).is_empty());
}
