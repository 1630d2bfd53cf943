//! `run` from the outside: what is asked for is what happens, exactly where it can be counted.

use crate::program;
use crate::program::{Ran, argv, counts, names, needs, program_path, random_file, run};
use diskproof_model::measurement::{OpKind, StopReason};
use diskproof_model::plan::{Layout, SyncCall, SyncPolicy};
use diskproof_model::record::Record;
use diskproof_simdisk::seccomp::forbid;
use diskproof_simdisk::testbed::{Disk, place};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run_on(targets: &[&Path], flags: &[&str]) -> Ran {
    run([OsStr::new("run")]
        .into_iter()
        .chain(targets.iter().map(|t| t.as_os_str()))
        .chain(flags.iter().map(OsStr::new)))
}

/// The record of a run that must succeed, on 16 MiB of scratch file.
fn record(targets: &[&Path], flags: &[&str]) -> Record {
    let ran = run_on(
        targets,
        &[&["--json", "--quiet", "--size", "16M"], flags].concat(),
    );
    ran.exits(0).tells_nothing();
    ran.record()
}

fn docs_plans() -> Vec<PathBuf> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plans"));
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut plans: Vec<PathBuf> = files
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    plans.sort();
    assert!(plans.len() >= 12, "{plans:?}");
    plans
}

#[test]
fn help_fits_80_columns_and_has_examples() {
    for flag in ["-h", "--help"] {
        let ran = run(["run", flag]);
        ran.exits(0).tells_nothing().fits_80_columns();
        ran.shows("Examples:")
            .shows("--iodepth")
            .shows("diskproof help plans");
    }
}

#[test]
fn operations_and_bytes_are_counted_exactly() {
    let here = place();
    let done = |flags: &str, kind| {
        let record = record(&[here.path()], &argv(flags));
        counts(&record.measurements[0], kind)
    };
    for engine in ["auto", "uring", "aio", "sync", "mmap"] {
        let reads = format!("--engine {engine} --ops 101 --depth 4 --jobs 3");
        assert_eq!(done(&reads, OpKind::Read), (101, 101 * 8192), "{engine}");
        let writes = format!("--engine {engine} --rw randwrite --bytes 1M --bs 16k --depth 4");
        assert_eq!(done(&writes, OpKind::Write), (64, 1 << 20), "{engine}");
    }
    let flags = argv("--rw randrw --rwmixread 70 --ops 1000");
    let mixed = record(&[here.path()], &flags);
    let [reads, writes] =
        [OpKind::Read, OpKind::Write].map(|kind| counts(&mixed.measurements[0], kind).0);
    assert_eq!(reads + writes, 1000);
    assert!((600..800).contains(&reads), "{reads} reads");
    assert!(names(here.path()).is_empty());
}

#[test]
fn more_aio_requests_than_the_machine_gives_are_refused_with_their_sysctl() {
    let here = place();
    let most = std::fs::read_to_string("/proc/sys/fs/aio-max-nr").unwrap();
    let jobs = most.trim().parse::<u64>().unwrap() / 4096 + 1;
    if jobs > 64 {
        eprintln!(
            "SKIPPED: more_aio_requests_than_the_machine_gives_are_refused_with_their_sysctl: \
             fs.aio-max-nr below 262144"
        );
        return;
    }
    let load = "--bs 512 --depth 4096 --size 64M --ops 1000 --engine aio";
    let ran = run_on(&[here.path()], &argv(&format!("{load} --jobs {jobs}")));
    ran.exits(4).tells("fs.aio-max-nr").tells("--engine auto");
    assert_eq!(names(here.path()), [""; 0]);
}

#[test]
fn syncs_follow_the_writes_they_should() {
    let here = place();
    let run = |flags: &str| record(&[here.path()], &argv(flags));
    let count = |record: &Record, kind| counts(&record.measurements[0], kind).0;
    let commits = run("--rw write --fdatasync 1 --ops 20");
    for kind in [OpKind::Write, OpKind::Sync, OpKind::Commit] {
        assert_eq!(count(&commits, kind), 20, "{kind:?}");
    }
    let every = SyncPolicy::Every {
        writes: 1,
        call: SyncCall::Fdatasync,
    };
    assert_eq!(commits.measurements[0].data.workload.sync, every);
    let some = count(&run("--rw randwrite --fsync 4 --ops 20"), OpKind::Sync);
    assert!((4..=5).contains(&some), "{some}");
    let end = run("--rw write --end-fsync --bytes 16M --bs 1M");
    assert_eq!(
        [OpKind::Write, OpKind::Sync].map(|kind| count(&end, kind)),
        [16, 1]
    );
    assert_eq!(end.plan.workloads()[0].layout, Layout::Provides);
}

#[test]
fn spans_walks_and_mixes_run() {
    let here = place();
    for flags in [
        "--span 25-75% --distribution zipf:1.1",
        "--zones 60/10:30/20:10/70 --bssplit 4k/60:64k/40",
        "--distribution hot:80/20 --rw randwrite",
        "--rw read --backward --jobs 2",
        "--rw read --stride 64k --depth 4",
        "--rw rw --buffered",
        "--cached --engine mmap",
        "--rw write --bssplit 4k/50:16k/50 --fsync 2",
    ] {
        let record = record(&[here.path()], &argv(&format!("{flags} --ops 64")));
        let (m, asked) = (&record.measurements[0], &record.plan.workloads()[0]);
        let done = [OpKind::Read, OpKind::Write].map(|kind| counts(m, kind).0);
        assert_eq!(done.iter().sum::<u64>(), 64, "{flags}");
        assert_eq!(m.data.workload.access, asked.access, "{flags}");
        assert_eq!(m.data.workload.block_bytes, asked.block_bytes, "{flags}");
        assert_eq!(record.advice, [], "{flags}");
    }
    let short = record(&[here.path()], &["--span", "25-75%", "--ops", "8"]);
    let m = &short.measurements[0].data;
    assert_eq!((m.span_start_bytes, m.span_bytes), (4 << 20, 8 << 20));
}

#[test]
fn decimal_spans_run_and_unaligned_starts_are_refused() {
    let here = place();
    for flags in [
        &["--rw", "randread"][..],
        &["--rw", "randwrite"],
        &["--rw", "randwrite", "--buffered"],
    ] {
        let made = record(
            &[here.path()],
            &[flags, &["--span", "1MB-10MB", "--ops", "20"]].concat(),
        );
        let m = &made.measurements[0].data;
        assert_eq!(
            (m.span_start_bytes, m.span_bytes),
            (999_424, 8_998_912),
            "{flags:?}"
        );
    }
    // Through the page cache a span may end anywhere, and what follows finds the file written up to
    // there.
    let plan = here.path().join("odd.toml");
    let odd = "name = \"odd\"\nrw = \"write\"\nbs = 1000\nops = 999\nbuffered = true\n";
    std::fs::write(
        &plan,
        format!(
            "[[workload]]\n{odd}[[workload]]\nname = \"even\"\nops = 20\nspan = \"0-9000001\"\n"
        ),
    )
    .unwrap();
    assert_eq!(record(&[&plan, here.path()], &[]).measurements.len(), 2);
    let ran = run_on(&[here.path()], &["--span", "100-1000000", "--size", "16M"]);
    ran.exits(2);
    ran.tells("byte 100; use a multiple of 512 for --bs and --span");
}

#[test]
fn two_targets_are_measured_at_once() {
    let (a, b) = (place(), place());
    let both = record(
        &[a.path(), b.path()],
        &["--rw", "randrw", "--time", "500ms"],
    );
    assert_eq!(both.targets.len(), 2);
    // Without --precision nothing ends before its time.
    assert!(
        both.measurements
            .iter()
            .all(|m| m.data.stopped == StopReason::Time)
    );
    let [one, other] = &both.measurements[..] else {
        panic!("{} measurements", both.measurements.len())
    };
    assert_eq!((one.data.target, other.data.target), (0, 1));
    assert!(
        one.data.start_ns < other.data.start_ns + other.data.wall_ns
            && other.data.start_ns < one.data.start_ns + one.data.wall_ns
    );
    let counted = record(&[a.path(), b.path()], &["--ops", "50"]);
    // Each target has the whole limit.
    assert!(
        counted
            .measurements
            .iter()
            .all(|m| counts(m, OpKind::Read).0 == 50)
    );
    let page = run_on(&[a.path(), b.path()], &["--size", "16M", "--ops", "50"]);
    for text in ["target 1 of 2", "target 2 of 2"] {
        page.shows(text);
    }
    page.tells(&format!("randread on {}", b.path().display()));
}

#[test]
fn an_offered_rate_is_never_exceeded() {
    let here = place();
    let paced = record(
        &[here.path()],
        &argv("--rate 200 --depth 16 --time 1s --warmup 0s"),
    );
    let m = &paced.measurements[0];
    let read = &m.data.ops[&OpKind::Read];
    // The first one starts at once.
    assert!(read.count <= 201, "{}", read.count);
    assert!(read.latency_intended.is_some() && m.data.missed_starts.is_some());
    assert_eq!(m.data.workload.rate, Some(200.0));
}

#[test]
fn what_was_written_is_verified() {
    let here = place();
    for flags in [
        "--rw randwrite --depth 8 --ops 200 --verify",
        "--rw write --bs 64k --ops 200 --verify",
        "--rw randrw --engine sync --ops 200 --verify",
    ] {
        let record = record(&[here.path()], &argv(flags));
        let verify = record.measurements[0].data.verify.as_ref().unwrap();
        assert!(
            verify.blocks > 0 && verify.bad_blocks == 0,
            "{flags}: {verify:?}"
        );
        assert_eq!(verify.blocks_written, Some(verify.blocks));
    }
}

/// What comes back from the page cache may be right while the disk has lost it.
#[test]
fn blocks_that_the_page_cache_keeps_are_not_verified() {
    let here = place();
    let written = "--rw write --bs 64k --ops 16 --size 4M --buffered --verify --json";
    let path = here.path().to_str().unwrap();
    let words = [&["run", path], &argv(written)[..]].concat();
    let verified = run(&words);
    let result = |ran: &Ran| {
        let record = ran.record();
        let verify = record.measurements[0].data.verify.as_ref().unwrap();
        (verify.blocks, verify.bad_blocks, verify.cached_blocks)
    };
    verified.exits(0);
    assert_eq!(result(&verified), (16, 0, Some(0)));
    // Pages that cannot be dropped: mapped or locked ones, say.
    let mut command = program::program(&words);
    forbid(&mut command, &[libc::SYS_fadvise64]);
    let cached = Ran::of(command);
    cached.exits(5);
    assert_eq!(result(&cached), (16, 0, Some(16)));
    let headline = cached.record().verdict.unwrap().headline;
    assert!(headline.starts_with("Nothing is proved"), "{headline}");
}

#[test]
fn earlier_data_is_verified_by_a_later_run() {
    use std::os::unix::fs::FileExt as _;
    let here = place();
    let file = here.path().join("data");
    std::fs::write(&file, vec![7; 4 << 20]).unwrap();
    let path = file.to_str().unwrap();
    let check = |rw: &str| run(["run", path, "--rw", rw, "--bs", "64k", "--verify", "--json"]);
    let never = check("read");
    never.exits(5);
    let found = never.record().measurements[0].data.verify.clone().unwrap();
    assert_eq!(
        (found.blocks, found.bad_blocks, found.runs),
        (64, 64, Some(0))
    );
    let write = argv("--rw write --bs 64k --verify --bytes 4m --overwrite");
    let wrote = run(["run", path].iter().chain(&write));
    wrote.exits(0);
    let before = std::fs::read(&file).unwrap();
    for rw in ["read", "randread"] {
        let ran = check(rw);
        ran.exits(0);
        let found = ran.record().measurements[0].data.verify.clone().unwrap();
        assert_eq!(
            (found.blocks, found.bad_blocks, found.runs),
            (64, 0, Some(1))
        );
    }
    assert!(std::fs::read(&file).unwrap() == before, "it only reads");
    let damaged = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    // Another byte, whatever was there: the content is random.
    damaged.write_all_at(&[!before[200_000]], 200_000).unwrap();
    let ran = check("randread");
    ran.exits(4);
    let found = ran.record().measurements[0].data.verify.clone().unwrap();
    assert_eq!((found.bad_blocks, found.bad[0].offset_bytes), (1, 196_608));
}

#[test]
fn a_plan_file_runs_in_order() {
    let here = place();
    let plan = here.path().join("mine.toml");
    let text = "note = \"planned\"\nsize = \"16M\"\nseed = 3\n[defaults]\nops = \
                32\n[[workload]]\nname = \"fill\"\nrw = \"write\"\nbs = \"1M\"\nops = \
                16\n[[workload]]\nname = \"look\"\ndepth = 4\n";
    std::fs::write(&plan, text).unwrap();
    let run = |expected: &str| {
        let flags = format!("--json --quiet --expect {expected}");
        run_on(&[&plan, here.path()], &argv(&flags))
    };
    let ran = run("look.iops>=1");
    let record = ran.exits(0).tells_nothing().record();
    let (note, seed) = (record.note.as_deref(), record.plan.seed);
    assert_eq!((note, seed), (Some("planned"), 3));
    assert_eq!(record.plan.scratch_bytes(), Some(16 << 20));
    let seen = record.measurements.iter().map(|m| {
        let [writes, reads] = [OpKind::Write, OpKind::Read].map(|kind| counts(m, kind).0);
        (m.data.workload.name.as_str(), writes, reads)
    });
    assert!(seen.eq([("fill", 16, 0), ("look", 0, 32)]), "{record:?}");
    assert_eq!(names(here.path()), ["mine.toml"]);
    run("look.iops>=1000000000").exits(1);
    run("see.iops>=1").exits(2).tells("fill, look");
}

#[test]
fn what_exists_is_read_and_never_written() {
    let here = place();
    let file = here.path().join("data");
    random_file(&file, 4 << 20);
    let before = program::content_hash(&file);
    for flags in [
        "--rw randwrite",
        "--rw randrw --verify",
        "--rw write --fsync 1",
    ] {
        let ran = run_on(&[&file], &argv(flags));
        ran.exits(3).tells("--overwrite").shows_nothing();
    }
    let ran = run_on(&[&file], &["--json", "--quiet", "--ops", "100"]);
    let record = ran.exits(0).record();
    assert_eq!(counts(&record.measurements[0], OpKind::Read).0, 100);
    assert_eq!(program::content_hash(&file), before);
}

#[test]
fn contradictions_exit_with_2_and_touch_nothing() {
    let here = place();
    let here = here.path();
    for flags in [
        "--backward",
        "--depth 0",
        "--bs 0",
        "--precision 2",
        "--rate 0",
        "--zones 50/50:50/50 --rw read",
        "--verify",
        "--span 0-1T",
    ] {
        let ran = run_on(&[here], &flags.split(' ').collect::<Vec<_>>());
        assert!(
            ran.code == Some(2) && ran.out.is_empty() && !ran.err.is_empty(),
            "{flags}: {}",
            ran.err
        );
    }
    assert!(names(here).is_empty());
}

#[test]
fn every_example_shows_its_plan() {
    needs!("losetup", "mkfs.xfs");
    // The largest example needs 4 GiB, which the machine's own disk may not have to spare.
    let here = Disk::new("xfs", 16 << 30, "");
    for plan in docs_plans() {
        let ran = run_on(&[&plan, here.path()], &["--dry-run"]);
        ran.exits(0).tells_nothing().shows_first("plan: run");
    }
    assert!(names(here.path()).is_empty());
}

/// Every command that stands next to a figure of an example is one that fio takes.
#[test]
fn fio_understands_the_command_of_every_example() {
    if Command::new("fio").arg("--version").output().is_err() {
        eprintln!("SKIPPED: fio_understands_the_command_of_every_example: fio is not installed");
        return;
    }
    let here = place();
    for plan in docs_plans() {
        // The same workloads, ended after a moment.
        let text = std::fs::read_to_string(&plan).unwrap();
        let kept = text.lines().filter(|line| {
            !["time =", "bytes =", "precision =", "size ="]
                .iter()
                .any(|key| line.starts_with(key))
        });
        let short =
            kept.collect::<Vec<_>>()
                .join("\n")
                .replacen("[defaults]", "[defaults]\nops = 4", 1);
        let copy = here.path().join("short.toml");
        std::fs::write(&copy, short).unwrap();
        let ran = run_on(
            &[&copy, here.path()],
            &["--quiet", "--commands", "--size", "32M"],
        );
        ran.exits(0);
        let commands: Vec<&str> = ran
            .out
            .lines()
            .filter(|line| line.starts_with("fio "))
            .collect();
        assert!(!commands.is_empty(), "{}", ran.out);
        for command in commands {
            let parsed = Command::new("sh")
                .arg("-c")
                .arg(command.replacen("fio ", "fio --parse-only ", 1))
                .output()
                .unwrap();
            assert!(
                parsed.status.success(),
                "{command}\n{}",
                String::from_utf8_lossy(&parsed.stderr)
            );
        }
    }
}

#[test]
fn jobs_beyond_the_soft_descriptor_limit_run_and_beyond_the_hard_one_fail() {
    let here = place();
    let limited = |limits: &str| -> Ran {
        let script = format!(
            "ulimit {limits} && exec {} run {} --size 16M --ops 600 --jobs 60 --engine sync \
             --json --quiet --no-history --no-health",
            program_path(),
            here.path().display()
        );
        Command::new("sh")
            .args(["-c", &script])
            .output()
            .unwrap()
            .into()
    };
    let ran = limited("-S -n 40");
    assert_eq!(
        (
            ran.code,
            counts(&ran.record().measurements[0], OpKind::Read).0
        ),
        (Some(0), 600),
        "{}",
        ran.err
    );
    let ran = limited("-n 40");
    ran.exits(4).tells("ulimit -n");
}

#[test]
fn saved_run_is_repeated_with_its_plan_and_compared() {
    let place = diskproof_simdisk::testbed::place();
    let path = |name: &str| place.path().join(name).display().to_string();
    let (first, page, again) = (path("first.json"), path("first.html"), path("again.json"));
    let target = path("target");
    std::fs::create_dir(&target).unwrap();
    let words = format!("run {} --rw randrw --rwmixread 70", place.path().display());
    let words = argv(&words);
    let short = ["--time", "1s", "--size", "16M", "-o", &first, "-o", &page];
    crate::program::run(words.into_iter().chain(short)).exits(0);
    for source in [&first, &page] {
        let ran = crate::program::run(["run", source, &target, "-o", &again]);
        ran.exits(0).shows("(A) and");
        let record = |path: &str| -> diskproof_model::record::Record {
            serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
        };
        let (first, again) = (record(&first), record(&again));
        assert_eq!(again.plan.seed, first.plan.seed);
        assert_eq!(again.plan.workloads(), first.plan.workloads());
        assert_eq!(again.plan.targets, [target.as_str()]);
    }
    let other = crate::program::run(["run", &first, "--depth", "4"]);
    other.exits(2).shows_nothing();
}
