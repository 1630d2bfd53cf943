//! `load` that does not come to its end, in each phase of its search: killed, interrupted, on a
//! disk that vanishes, that is full or that cannot read. What was measured is in the record, and
//! nothing is left behind.

use crate::program::{PipedRun, diskproof, names, needs, run, saved_record};
use diskproof_model::rate::RateCellKind;
use diskproof_model::record::Record;
use diskproof_simdisk::SimDisk;
use diskproof_simdisk::spec::parse;
use diskproof_simdisk::testbed::{Disk, TempDir, place};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Two requests at a time, of 5 ms each: 400/s.
const DISK: &str = "latency=5ms,channels=2";
/// No search takes longer on a busy machine.
const SEARCH_WITHIN: Duration = Duration::from_secs(90);
/// The trials after whose first one a search is ended, in the order in which it makes them.
const PHASES: [RateCellKind; 5] = [
    RateCellKind::Doubling,
    RateCellKind::Saturation,
    RateCellKind::Curve,
    RateCellKind::Near,
    // The control follows.
    RateCellKind::Hold,
];

/// A search on a simulated disk, with a history of its own.
struct DiskSearch {
    run: PipedRun,
    disk: SimDisk,
    place: TempDir,
}

impl DiskSearch {
    fn start(model: &str, flags: &str) -> Self {
        let place = place();
        let file = place.path().join("disk");
        let disk = SimDisk::serve(parse(model).unwrap(), 64 << 20, &file).unwrap();
        let command = format!(
            "load {} {flags} --bs 4k --depth 16 --slo p90<=100ms --time 40s --no-health --history \
             {} --json",
            file.display(),
            place.path().join("history.db").display()
        );
        Self {
            run: PipedRun::start(command.split(' ')),
            disk,
            place,
        }
    }

    /// The record so far; `None` before the first trial has ended.
    fn record_so_far(&self) -> Option<Record> {
        let journal: Vec<PathBuf> = std::fs::read_dir(self.place.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .collect();
        // It goes when the run has ended.
        if !journal.first()?.exists() {
            return None;
        }
        Some(saved_record(journal.first()?))
    }

    /// Waits until a trial of this kind has ended.
    fn reach(&self, kind: RateCellKind) {
        let begin = Instant::now();
        loop {
            match self.record_so_far() {
                Some(record) if kinds(&record).contains(&kind) => return,
                _ => assert!(begin.elapsed() < SEARCH_WITHIN, "no {kind:?}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Names that a run leaves beside its history only if it was killed.
    fn left(place: &TempDir) -> Vec<String> {
        names(place.path())
            .into_iter()
            .filter(|name| name.contains(".run-"))
            .collect()
    }
}

fn kinds(record: &Record) -> Vec<RateCellKind> {
    match record.load() {
        Some(load) => load.data.trials.iter().map(|trial| trial.kind).collect(),
        None => Vec::new(),
    }
}

fn errors_named(record: &Record, name: &str) -> u64 {
    record
        .measurements
        .iter()
        .flat_map(|row| row.data.ops.values())
        .filter_map(|op| op.errors.get(name))
        .sum()
}

/// Ends a search of its own in each phase, all at the same time.
fn in_each_phase(end: fn(RateCellKind, DiskSearch)) {
    std::thread::scope(|scope| {
        for phase in PHASES {
            scope.spawn(move || {
                let search = DiskSearch::start(DISK, "--rw randread");
                search.reach(phase);
                end(phase, search);
            });
        }
    });
}

#[test]
fn search_that_is_killed_in_any_phase_leaves_its_trials() {
    needs!("fusermount3");
    in_each_phase(|phase, search| {
        search.run.kill();
        let history = search.place.path().join("history.db");
        let history = history.to_str().unwrap();
        // It takes in what the run had measured.
        run(["history", "--history", history]).exits(0);
        let shown = run(["show", "latest", "--json", "--history", history]);
        let record = shown.record();
        assert!(record.partial, "{phase:?}");
        assert!(kinds(&record).contains(&phase), "{phase:?}: {record:?}");
        assert!(record.elapsed_ns() > 0, "{phase:?}");
        assert!(!record.load().unwrap().figures.outcome.is_promise());
        assert_eq!(DiskSearch::left(&search.place), [""; 0], "{phase:?}");
    });
}

#[test]
fn search_that_is_interrupted_in_any_phase_keeps_its_trials() {
    needs!("fusermount3");
    in_each_phase(|phase, search| {
        let ran = search.run.interrupt();
        let record = ran.exits(130).record();
        assert!(record.partial, "{phase:?}");
        assert!(kinds(&record).contains(&phase), "{phase:?}: {record:?}");
        let trials = &record.load().unwrap().data.trials;
        let last = trials.last().unwrap();
        // The page says how long it ran.
        assert!(record.elapsed_ns() >= last.end_ns(), "{phase:?}");
        let trust = &record.verdict.as_ref().unwrap().trust.why;
        assert!(!trust.contains("before anything"), "{phase:?}: {trust}");
        assert_eq!(DiskSearch::left(&search.place), [""; 0], "{phase:?}");
    });
}

#[test]
fn disk_that_vanishes_in_any_phase_of_a_search_fails_it() {
    needs!("fusermount3");
    in_each_phase(|phase, search| {
        search.disk.vanish();
        let ran = search.run.wait();
        let record = ran.exits(4).record();
        let errors: u64 = record
            .measurements
            .iter()
            .map(|row| row.errors_total())
            .sum();
        assert!(errors > 0 || record.partial, "{phase:?}");
        assert!(kinds(&record).contains(&phase), "{phase:?}");
        assert_eq!(DiskSearch::left(&search.place), [""; 0], "{phase:?}");
    });
}

/// Errors of cells that are in no row: those before the first hold.
#[test]
fn errors_of_the_trials_are_in_the_record_and_the_exit_code() {
    needs!("fusermount3");
    let bad = format!("{DISK},eio-read=0-8MiB");
    let search = DiskSearch::start(&bad, "--rw randread");
    let whole = DiskSearch::start(&bad, "--rw randread");
    search.reach(RateCellKind::Curve);
    let record = search.run.interrupt().exits(130).record();
    assert!(!kinds(&record).contains(&RateCellKind::Hold));
    assert!(errors_named(&record, "EIO") > 0, "{record:?}");
    let record = whole.run.wait().exits(4).record();
    assert!(errors_named(&record, "EIO") > 0, "{record:?}");
}

#[test]
fn disk_that_becomes_full_fails_a_search() {
    needs!("fusermount3");
    let full = format!("{DISK},enospc-after=2MiB");
    let search = DiskSearch::start(&full, "--overwrite --rw randwrite");
    let record = search.run.wait().exits(4).record();
    assert!(errors_named(&record, "ENOSPC") > 0, "{record:?}");
    assert_eq!(DiskSearch::left(&search.place), [""; 0]);
}

#[test]
fn full_filesystem_is_refused_before_a_search_and_left_as_it_was() {
    needs!("losetup", "mkfs.ext4");
    let disk = Disk::in_memory("ext4", 128 << 20);
    let point = disk.mount.point.to_str().unwrap();
    std::fs::write(disk.mount.point.join("filling"), vec![1; 64 << 20]).unwrap();
    let before = names(&disk.mount.point);
    diskproof!("load {point} --size 96MiB --time 20s --no-history").exits(3);
    assert_eq!(names(&disk.mount.point), before);
}
