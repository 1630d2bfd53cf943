//! What goes wrong while it runs: signals, kills, full and failing disks. What was measured is kept
//! and marked, and nothing is left behind.

use crate::program::{
    Ran, argv, check, eventually, free_bytes, names, needs, program, saved_record, sim_disk,
};
use diskproof_model::finding::Severity;
use diskproof_model::measurement::{OpKind, StopReason};
use diskproof_model::plan::EngineKind;
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{Disk, Mount, TempDir, place, run};
use diskproof_simdisk::{Direct, LoopDevice, SimDisk};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A check under way, with everything that it prints.
struct Running {
    child: Child,
    err: BufReader<std::process::ChildStderr>,
    heard: String,
}

impl Running {
    fn start(target: &Path, flags: &[&str]) -> Self {
        let words = ["check".as_ref(), target.as_os_str()]
            .into_iter()
            .chain(flags.iter().map(AsRef::as_ref));
        let mut child = program(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        Self {
            child,
            err,
            heard: String::new(),
        }
    }

    /// Waits for a line of progress.
    fn until(&mut self, part: &str) {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(
                self.err.read_line(&mut line).unwrap() > 0,
                "it ended before '{part}': {}",
                self.heard
            );
            self.heard.push_str(&line);
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn end(mut self) -> Ran {
        let mut out = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        self.err.read_to_string(&mut self.heard).unwrap();
        Ran {
            asked: String::new(),
            code: self.child.wait().unwrap().code(),
            out,
            err: self.heard,
        }
    }
}

/// A simulated disk as a file; fields are dropped in this order.
struct Simulated {
    disk: SimDisk,
    _place: TempDir,
}

impl Simulated {
    fn new(model: &str, size_bytes: u64) -> Self {
        let place = place();
        let disk = sim_disk(&place, model, size_bytes);
        Self {
            disk,
            _place: place,
        }
    }
}

#[test]
fn signals_end_a_run_with_what_was_measured() {
    let place = place();
    let work = place.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let signals = [
        (Signal::INT, 130, "SIGINT"),
        (Signal::TERM, 143, "SIGTERM"),
        (Signal::HUP, 129, "SIGHUP"),
        (Signal::QUIT, 131, "SIGQUIT"),
    ];
    for (signal, code, name) in signals {
        let saved = place.path().join("saved.json");
        let mut running = Running::start(
            &work,
            &argv(&format!("--time 10s --size 64M -o {}", saved.display())),
        );
        running.until("2/8 ");
        // As GNU timeout does, which signals its child and then the group.
        running.signal(signal);
        std::thread::sleep(Duration::from_millis(50));
        running.signal(signal);
        let ran = running.end();
        ran.exits(code);
        ran.shows("sequential-read").shows(name);
        let record = saved_record(&saved);
        let why = record.ended_early.unwrap();
        assert!(record.partial && why.contains(name), "{why}");
        assert!(
            (2..8).contains(&record.measurements.len())
                && record.measurements[1].data.stopped != StopReason::Interrupted
        );
        assert_eq!(
            (names(&work), names(place.path())),
            (vec![], vec!["saved.json".to_owned(), "work".to_owned()])
        );
        std::fs::remove_file(saved).unwrap();
    }
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    needs!("fusermount3");
    // The disk does not answer for half a minute, so that the first signal alone would have to
    // wait.
    let simulated = Simulated::new("latency=100us,stall=300ms+30s", 64 * MIB);
    let saved = simulated._place.path().join("saved.json");
    let mut running = Running::start(
        simulated.disk.path(),
        &["--time", "20s", "-o", saved.to_str().unwrap()],
    );
    running.until("takes about");
    std::thread::sleep(Duration::from_secs(1));
    running.signal(Signal::INT);
    // Within a second it would be the same request.
    std::thread::sleep(Duration::from_millis(1500));
    // The first one waits for the disk.
    assert!(running.child.try_wait().unwrap().is_none());
    running.signal(Signal::INT);
    let ran = running.end();
    ran.exits(130).shows_nothing();
    // Nothing beside -o.
    assert_eq!(names(simulated._place.path()), ["disk"]);
}

/// A run of a second on a simulated disk.
fn run_of_a_second(model: &str, flags: &[&str]) -> (Ran, Record) {
    let simulated = Simulated::new(model, 64 * MIB);
    let saved = simulated._place.path().join("saved.json");
    let path = simulated.disk.path().to_str().unwrap();
    let words = ["run", path, "--rw", "read", "--time", "1s", "-o"];
    let words = [&words[..], &[saved.to_str().unwrap()], flags].concat();
    let ran = Ran::of(program(words));
    let record = serde_json::from_str(&std::fs::read_to_string(saved).unwrap()).unwrap();
    (ran, record)
}

#[test]
fn request_longer_than_the_measured_time_gives_a_rate() {
    needs!("fusermount3");
    // 7 s for one request: longer than the announced time and what a late run gets.
    let (ran, record) = run_of_a_second("bandwidth=150kB", &["--bs", "1M"]);
    let read = record.measurements[0].op(OpKind::Read).unwrap();
    assert_eq!((ran.code, read.data.count), (Some(0), 1), "{}", ran.err);
    let rate = read.figures.throughput.value;
    assert!((rate / 150e3 - 1.0).abs() < 0.1, "{rate}");
}

#[test]
fn run_without_an_answer_ends_undecided() {
    needs!("fusermount3");
    let (ran, record) = run_of_a_second("latency=15s", &["--bs", "4k"]);
    let ops = record.measurements.iter().flat_map(|m| m.data.ops.values());
    assert_eq!((ran.code, ops.map(|op| op.count).sum()), (Some(4), 0u64));
    assert!(record.partial);
    ran.shows("undecided").shows_not(" 0/s");
}

#[test]
fn nothing_survives_a_kill() {
    needs!("losetup", "mkfs.ext4");
    let disk = Disk::new("ext4", 4 * GIB, "rw");
    let outputs = place();
    let saved = outputs.path().join("saved.json");
    let before = free_bytes(disk.path());
    for round in 0..10 {
        let mut running = Running::start(
            disk.path(),
            &argv(&format!("--time 2s --size 64M -o {}", saved.display())),
        );
        // Spread over start, layout, and the first workloads; where exactly is left to chance.
        std::thread::sleep(Duration::from_millis(round * 97));
        let pid = Pid::from_child(&running.child);
        running.child.kill().unwrap();
        running.child.wait().unwrap();
        assert!(test_kill_process(pid).is_err());
        assert_eq!(names(disk.path()), ["lost+found"], "round {round}");
        assert_eq!(names(outputs.path()), [""; 0], "round {round}");
    }
    assert!(
        eventually(|| free_bytes(disk.path()) + MIB >= before),
        "{before} free before, {} after",
        free_bytes(disk.path())
    );
}

#[test]
fn disk_that_fills_up_during_a_run_is_reported() {
    needs!("losetup", "mkfs.ext4", "fallocate", "fusermount3");
    // Slow enough that another process is faster.
    let simulated = Simulated::new("write-bandwidth=60MB", 3 * GIB);
    let device = LoopDevice::attach(simulated.disk.path(), Direct::On, 4096).unwrap();
    run(
        "mkfs.ext4",
        &[
            "-q",
            "-m",
            "0",
            "-E",
            "lazy_itable_init=1,nodiscard",
            device.path().to_str().unwrap(),
        ],
    );
    let place = place();
    let mount = Mount::new(
        "ext4",
        device.path().to_str().unwrap(),
        &place.path().join("mnt"),
        "rw",
    );
    let mut running = Running::start(&mount.point, &["--time", "30s", "--size", "256M", "--json"]);
    running.until("takes about");
    let space = rustix::fs::statvfs(&mount.point).unwrap();
    let filler = mount.point.join("filler");
    run(
        "fallocate",
        &[
            "-l",
            &(space.f_bfree * space.f_frsize - 48 * MIB).to_string(),
            filler.to_str().unwrap(),
        ],
    );
    let ran = running.end();
    let record = ran.record();
    // It fills up during the first write of the scratch file, before any workload.
    assert_eq!(
        (ran.code, record.partial, record.measurements.len()),
        (Some(4), true, 0),
        "{}",
        ran.err
    );
    let why = record.ended_early.unwrap();
    assert!(
        why.contains("scratch file") && why.contains("ENOSPC") && why.contains("free space"),
        "{why}"
    );
    assert_eq!(names(&mount.point), ["filler", "lost+found"]);
}

#[test]
fn read_errors_are_counted_and_end_a_hopeless_run() {
    needs!("losetup", "fusermount3");
    let assert_marked = |ran: &Ran| {
        let record = ran.record();
        ran.exits(4);
        assert!(
            record
                .measurements
                .iter()
                .any(|m| m.errors_by_name().contains_key("EIO")),
            "{}",
            ran.err
        );
        let finding = record
            .findings
            .iter()
            .find(|finding| finding.code == "io-errors")
            .unwrap();
        assert!(
            finding.severity == Severity::Failure && finding.claim.contains("EIO"),
            "{finding:?}"
        );
        record
    };
    // A bad spot of 64 KiB in 64 MiB: most reads succeed, and the record reports both.
    let spot = Simulated::new("latency=50us,eio-read=8MiB-8256KiB", 64 * MIB);
    let record = assert_marked(&check(spot.disk.path(), &["--time", "3s", "--json"]));
    assert!(
        record
            .measurements
            .iter()
            .all(|m| m.data.ops.values().all(|op| op.count > 0))
    );
    {
        let device = LoopDevice::attach(spot.disk.path(), Direct::On, 512).unwrap();
        assert_marked(&check(device.path(), &["--time", "3s", "--json"]));
    }
    // Dead from some point on: what was measured before stands.
    let dying = Simulated::new(
        "latency=50us,read-bandwidth=200MB,eio-after=300MB",
        64 * MIB,
    );
    let record = assert_marked(&check(dying.disk.path(), &["--time", "10s", "--json"]));
    let why = record.ended_early.as_ref().unwrap();
    assert!(
        record.partial && why.contains("EIO") && why.contains("dmesg") && why.contains("smartctl"),
        "{why}"
    );
    assert!(
        record.measurements[0]
            .data
            .ops
            .values()
            .all(|op| op.count > 0)
    );
    let page = check(dying.disk.path(), &["--time", "3s"]);
    page.exits(4).shows("EIO");
}

#[test]
fn read_error_in_the_warm_up_is_reported() {
    needs!("fusermount3");
    // In order, 200 reads/s: the bad block is read once, in the first second.
    let model = "latency=5ms,eio-read=1MiB-1088KiB";
    let flags = ["--bs", "64k", "--depth", "1", "--warmup", "1s"];
    let (ran, record) = run_of_a_second(model, &flags);
    let read = record.measurements[0].op(OpKind::Read).unwrap();
    assert_eq!(read.data.errors["EIO"], 1, "{}", ran.err);
    assert_eq!(read.data.series.total().errors, 0, "it came in the warm-up");
    ran.exits(4).shows("EIO");
}

/// The request that proves direct I/O reads the first block, and nothing else here does.
#[test]
fn read_error_before_the_run_is_reported() {
    needs!("fusermount3");
    for flags in [
        "--depth 1",
        "--depth 4 --engine uring",
        "--depth 4 --engine aio",
    ] {
        let simulated = Simulated::new("latency=50us,eio-read=0-65536", 64 * MIB);
        let path = simulated.disk.path().to_str().unwrap();
        let words = format!("run {path} --rw randread --bs 4k --ops 8 --span 32M-48M {flags}");
        let ran = Ran::of(program(argv(&words)).args(["--warmup", "0s", "--json"]));
        let record = ran.exits(4).record();
        let read = record.measurements[0].op(OpKind::Read).unwrap();
        assert_eq!(read.data.count, 8, "{flags}: {}", ran.err);
        assert!(read.data.errors["EIO"] >= 1, "{flags}");
        assert!(ran.findings().contains(&"io-errors".to_owned()), "{flags}");
    }
    let survey = Simulated::new("latency=50us,eio-read=0-4096", 64 * MIB);
    let path = survey.disk.path().to_str().unwrap();
    let ran = Ran::of(program([
        "curve", path, "--points", "0", "--reads", "10", "--json",
    ]));
    let record = ran.exits(4).record();
    assert!(record.surface().unwrap().data.access_errors["EIO"] >= 1);
}

#[test]
fn a_stall_is_seen_in_full() {
    needs!("fusermount3");
    // Several, since on a busy machine the first may pass before the measuring begins.
    let simulated = Simulated::new(
        "latency=200us,stall=400ms+3s,stall=800ms+3s,stall=1200ms+3s",
        64 * MIB,
    );
    let ran = check(simulated.disk.path(), &["--time", "12s", "--json"]);
    ran.exits(0);
    let longest = ran
        .record()
        .measurements
        .iter()
        .flat_map(|m| m.data.ops.values())
        .map(|op| op.latency.max_ns())
        .max()
        .unwrap();
    assert!(
        (2_500_000_000..60_000_000_000).contains(&longest),
        "{longest}"
    );
}

#[test]
fn short_reads_are_continued_and_counted() {
    needs!("fusermount3");
    let simulated = Simulated::new("latency=50us,short-read=0-64MiB/4096", 64 * MIB);
    let ran = check(simulated.disk.path(), &["--time", "2s", "--json"]);
    ran.exits(0);
    for m in ran.record().measurements {
        let read = &m.data.ops[&OpKind::Read];
        assert!(
            read.errors.is_empty()
                && read.bytes == read.count * u64::from(m.data.workload.block_bytes),
            "{}",
            m.data.workload.name
        );
        // A synchronous direct read that comes back short is completed by the kernel, through the
        // page cache (generic_file_read_iter).
        assert!(
            read.short > 0 || m.data.engine.used == EngineKind::Sync,
            "{}",
            m.data.workload.name
        );
    }
}
