//! `curve` against simulated disks with known properties: rates by position, access times, slow and
//! unreadable places, and what interrupts it.

use crate::program;
use crate::program::{
    PipedRun, Ran, argv, content_hash, needs, program, random_file, saved_record, sim_disk,
    undisturbed,
};
use diskproof_model::record::Record;
use diskproof_model::surface::{Scan, SeekPattern};
use diskproof_simdisk::testbed::{Loop, TempDir, place};
use diskproof_simdisk::{Direct, LoopDevice, SimDisk, spec};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A simulated disk as a block device; fields are dropped in this order.
struct Simulated {
    device: LoopDevice,
    disk: SimDisk,
    _place: TempDir,
}

impl Simulated {
    fn new(model: &str, size_bytes: u64) -> Self {
        let place = place();
        let disk = sim_disk(&place, model, size_bytes);
        let device = LoopDevice::attach(disk.path(), Direct::On, 512).unwrap();
        Self {
            device,
            disk,
            _place: place,
        }
    }

    fn path(&self) -> &Path {
        self.device.path()
    }
}

fn curve(target: &Path, flags: &[&str]) -> Ran {
    undisturbed(
        [OsStr::new("curve"), target.as_os_str()]
            .into_iter()
            .chain(flags.iter().map(OsStr::new)),
    )
    .output()
    .unwrap()
    .into()
}

/// What a busy machine may add to a figure: simulated disks answer late then. How exact the figures
/// are is proven in virtual time, in the engine's own tests; here they show that nothing is lost on
/// the way to the device and back.
const BUSY: f64 = 0.25;

/// One good run of several is enough.
fn eventually_true(mut attempt: impl FnMut() -> Result<(), String>) {
    const ATTEMPTS: usize = 4;
    let failures: Vec<String> = (0..ATTEMPTS).map_while(|_| attempt().err()).collect();
    assert!(failures.len() < ATTEMPTS, "{failures:#?}");
}

/// Simulated disks share the processors: those whose figures count do not run alongside others of
/// this file.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn near(what: &str, value: f64, truth: f64, share: f64) -> Result<(), String> {
    if (value / truth - 1.0).abs() < share {
        Ok(())
    } else {
        Err(format!("{what}: {value} is not {truth}"))
    }
}

fn average(record: &Record) -> f64 {
    record
        .surface()
        .unwrap()
        .figures
        .rate
        .as_ref()
        .unwrap()
        .average
        .value
}

/// Slow enough that the machine's own noise is small alongside it.
const SMALL: &str =
    "rpm=4200,seek=4ms/18ms/36ms,rate=48MB/24MB,zones=8,queue=32,buffer=2MiB,overhead=300us";

#[test]
fn the_figures_are_those_of_the_disk() {
    let _alone = alone();
    needs!("fusermount3", "losetup");
    let disk = Simulated::new(SMALL, 4 * GIB);
    eventually_true(|| {
        let ran = curve(
            disk.path(),
            &argv("--json --points 4 --sample-size 48M --reads 250 --seed 5"),
        );
        ran.exits(0);
        let record = ran.record();
        let surface = record.surface().unwrap();
        assert_eq!(
            (record.curve().len(), surface.data.span_bytes),
            (4, 4 * GIB)
        );
        let (first, last) = (&record.curve()[0], &record.curve()[3]);
        assert!(
            last.offset_bytes + last.bytes >= 4 * GIB - 8 * MIB && first.offset_bytes <= 8 * MIB
        );
        near("first", first.bytes_per_second, 48e6, BUSY)?;
        near("last", last.bytes_per_second, 24e6, BUSY)?;
        // Electronics, mean seek, half a turn.
        let random = &surface.figures.seeks[&SeekPattern::Random];
        near(
            "access",
            random.mean.value,
            0.3e6 + 18e6 + 60e9 / 4200.0 / 2.0,
            BUSY,
        )?;
        assert!(
            random.n == 250 && surface.figures.seeks.len() == 5 && surface.data.burst.is_some()
        );
        assert!(
            surface.figures.seeks[&SeekPattern::FullStroke].mean.value > 1.3 * random.mean.value
        );
        assert!(
            surface.figures.reproduce.starts_with("zcav -b ")
                && surface.figures.curve_cpu_share > 0.0
        );
        // The loop device counts what it carried: only what we asked for.
        near(
            "bytes",
            surface.data.device.read_bytes as f64,
            surface.data.asked.read_bytes as f64,
            0.01,
        )
    });
}

#[test]
fn sampling_agrees_with_full_reading() {
    let _alone = alone();
    needs!("fusermount3", "losetup");
    let disk = Simulated::new("rpm=7200,seek=1ms/9ms/20ms,rate=220MB/110MB,zones=10", GIB);
    eventually_true(|| {
        let full = curve(
            disk.path(),
            &["--json", "--no-access", "--full", "--points", "50"],
        )
        .record();
        let sampled = curve(disk.path(), &["--json", "--no-access", "--points", "12"]).record();
        let share = |record: &Record| record.surface().unwrap().figures.curve_share;
        assert!(share(&full) > 0.98 && share(&sampled) < 0.5 && full.curve().len() == 50);
        near("average", average(&sampled), average(&full), BUSY)
    });
}

#[test]
fn a_scan_finds_places_by_lba_and_goes_on_after_ctrl_c() {
    let _alone = alone();
    needs!("fusermount3", "losetup");
    let faults = "slow=20MiB-20481KiB+60ms,eio-read=41943552-41944576,eio-read=150MiB-151MiB";
    let disk = Simulated::new(&format!("bandwidth=60MB,latency=100us,{faults}"), 256 * MIB);
    let scan = ["--scan", "--points", "0", "--no-access", "--json"];
    eventually_true(|| {
        let ran = curve(disk.path(), &scan);
        ran.exits(4);
        let scan = ran.record().surface().unwrap().data.scan.clone().unwrap();
        assert!(scan.finished && scan.blocks == 256);
        let bad: Vec<(u64, u64)> = scan
            .unreadable
            .iter()
            .map(|range| (range.lba, range.length_bytes))
            .collect();
        assert_eq!(
            (bad, scan.unreadable_bytes),
            (vec![(81_921, 1024), (307_200, MIB)], MIB + 1024)
        );
        let slow: Vec<u64> = scan.slow.iter().map(|block| block.lba).collect();
        if slow == [40_960] {
            Ok(())
        } else {
            Err(format!("slow: {slow:?}"))
        }
    });

    let saved = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    let saved = saved.path().to_str().unwrap();
    let mut running = PipedRun::start([
        "curve",
        disk.path().to_str().unwrap(),
        "--scan",
        "--points",
        "0",
        "--no-access",
        "-o",
        saved,
    ]);
    running.wait_for_line("survey: scan");
    assert!(program::eventually(
        || disk.disk.stats().read_bytes > 8 * MIB
    ));
    let ran = running.interrupt();
    ran.exits(130);
    let record = saved_record(saved);
    let first = record.surface().unwrap().data.scan.clone().unwrap();
    assert!(
        record.partial && !first.finished && first.to_bytes < 256 * MIB,
        "{}",
        first.to_bytes
    );
    assert!(
        record
            .ended_early
            .unwrap()
            .contains(&format!("--scan --resume {}", first.to_bytes))
    );

    let rest = curve(disk.path(), &["--scan", "--resume", saved, "--json"]).record();
    assert!(rest.curve().is_empty() && rest.access().is_empty());
    let scan = rest.surface().unwrap().data.scan.clone().unwrap();
    assert!(scan.finished && scan.from_bytes == first.to_bytes && scan.to_bytes == 256 * MIB);
    assert_eq!(scan.blocks, (256 * MIB - scan.from_bytes).div_ceil(MIB));
    let found: u64 = first.unreadable_bytes + scan.unreadable_bytes;
    assert_eq!(found, MIB + 1024, "together they found everything");
}

/// What `--scan` says on stderr of what could not be read: offset and LBA of each range.
fn reported_unreadable(err: &str) -> BTreeSet<(u64, u64)> {
    let lines = err.lines().filter(|line| line.contains("unreadable: "));
    let after = |line: &str, word: &str| {
        line.split(word)
            .nth(1)
            .unwrap()
            .split([' ', ')'])
            .next()
            .unwrap()
            .parse()
            .unwrap()
    };
    lines
        .map(|line| (after(line, "at byte "), after(line, "(LBA ")))
        .collect()
}

fn listed_unreadable(scan: &Scan) -> BTreeSet<(u64, u64)> {
    scan.unreadable
        .iter()
        .map(|range| (range.offset_bytes, range.lba))
        .collect()
}

#[test]
fn a_scan_that_was_killed_goes_on_with_the_command_it_said() {
    needs!("fusermount3", "losetup");
    // 18 s, of which the first 10 pass before the line is said; one place is bad before that, one
    // behind what is read by then.
    const SIZE: u64 = 144 * MIB;
    let faults = "eio-read=4194816-4195840,eio-read=140MiB-141MiB";
    let scan = ["--scan", "--points", "0", "--no-access"];
    let swift = Simulated::new(&format!("bandwidth=200MB,{faults}"), SIZE);
    let undisturbed = curve(swift.path(), &[&scan[..], &["--json"]].concat());
    let record = undisturbed.record();
    let undisturbed = record.surface().unwrap().data.scan.clone().unwrap();
    let all = listed_unreadable(&undisturbed);
    assert_eq!((all.len(), undisturbed.finished), (2, true));

    let disk = Simulated::new(&format!("bandwidth=8MB,{faults}"), SIZE);
    let mut child = program([&["curve", disk.path().to_str().unwrap()], &scan[..]].concat())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let (mut said, mut command) = (String::new(), None);
    while command.is_none() {
        let start = said.len();
        assert!(
            err.read_line(&mut said).unwrap() > 0,
            "it ended before it printed how to resume: {said}"
        );
        command = said[start..]
            .split_once("killed: diskproof ")
            .map(|(_, command)| command.trim().to_owned());
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    // Where this test got no processor for seconds the scan was faster; to go on must give the
    // same.
    assert!(
        status.signal() == Some(9) || status.code() == Some(4),
        "{status}"
    );
    err.read_to_string(&mut said).unwrap();

    let command = command.unwrap();
    let rest: Ran = program(command.split(' ').chain(["--json"]))
        .output()
        .unwrap()
        .into();
    let rest = rest.record().surface().unwrap().data.scan.clone().unwrap();
    assert!(
        command.ends_with(&format!(" --scan --resume {}", rest.from_bytes)),
        "{command}: {}",
        rest.from_bytes
    );
    assert!(rest.finished && rest.from_bytes < SIZE && rest.to_bytes == SIZE);
    assert_eq!(rest.blocks, (SIZE - rest.from_bytes) / MIB);
    // What was said and what the second run found are together what an undisturbed one finds.
    let (said, found) = (reported_unreadable(&said), listed_unreadable(&rest));
    assert!(
        !found.is_empty()
            && all
                .iter()
                .filter(|(offset, _)| *offset < rest.from_bytes)
                .all(|place| said.contains(place)),
        "{said:?}"
    );
    assert_eq!(said.union(&found).copied().collect::<BTreeSet<_>>(), all);
    // The page states that it covers only part of the disk.
    let page = curve(swift.path(), &["--scan", "--resume", "16M"]).out;
    assert!(
        page.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains("(byte 16777216) to the end"),
        "{page}"
    );
}

#[test]
fn ctrl_c_keeps_the_points_that_were_measured() {
    let _alone = alone();
    needs!("fusermount3");
    let place = place();
    let disk = sim_disk(&place, "bandwidth=50MB", 4 * GIB);
    let mut child = program([
        OsStr::new("curve"),
        disk.path().as_os_str(),
        OsStr::new("--json"),
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::null())
    .spawn()
    .unwrap();
    // Some points take a tenth of it.
    assert!(program::eventually(|| disk.stats().read_bytes > 200 * MIB));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut out = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let record: Record = serde_json::from_str(&out).unwrap();
    assert!(
        record.partial && !record.curve().is_empty() && record.curve().len() < 200,
        "{}",
        record.curve().len()
    );
}

/// The disk stops answering for good, as far as anybody is willing to wait.
const HANGS: &str = "bandwidth=50MB,stall=2s+100000s";

#[test]
fn a_disk_that_hangs_is_given_up_after_ctrl_c_with_what_it_said() {
    needs!("fusermount3");
    let place = place();
    let disk = sim_disk(&place, HANGS, 4 * GIB);
    let saved = place.path().join("saved.json");
    let words = format!("curve {} -o {}", disk.path().display(), saved.display());
    let words = argv(&words);
    let mut running = PipedRun::start(words);
    running.wait_for_line("survey: curve");
    std::thread::sleep(std::time::Duration::from_secs(8));
    // Without a limit this would not come back; with one it does after 45 s, or at once should the
    // machine be so slow that the disk does not hang yet.
    let ran = running.interrupt();
    ran.exits(130);
    let out = ran.out;
    assert!(
        out.contains("PARTIAL") && out.contains("interrupted"),
        "{out}"
    );
    let record = saved_record(&saved);
    assert!(
        record.partial && record.surface().is_some() && record.curve().len() < 200,
        "{}",
        record.curve().len()
    );
    assert_eq!(program::names(place.path()), ["disk", "saved.json"]);
}

#[test]
fn curve_exits_for_errors_before_thresholds() {
    let _alone = alone();
    needs!("fusermount3");
    let place = place();
    let model = spec::parse("bandwidth=200MB,latency=1ms,eio-read=300MiB-301MiB").unwrap();
    let disk = SimDisk::serve(model, GIB, &place.path().join("disk")).unwrap();
    let flags = "--full --points 20 --no-access --expect curve.average>=1MB/s --expect \
                 curve.min>=900MB/s --json";
    let flags = argv(flags);
    let ran = curve(disk.path(), &flags);
    let record = ran.record();
    ran.exits(4);
    assert_eq!(
        record
            .curve()
            .iter()
            .filter(|point| point.errors > 0)
            .count(),
        1
    );
    assert_eq!(
        record
            .expectations
            .iter()
            .map(|e| e.met)
            .collect::<Vec<_>>(),
        [false, false]
    );
}

#[test]
fn short_strokes_are_parts_of_the_span() {
    let _alone = alone();
    needs!("fusermount3");
    let place = place();
    let disk = sim_disk(&place, "bandwidth=200MB,latency=1ms", GIB);
    let ran = curve(
        disk.path(),
        &argv("--points 0 --no-access --short-stroke --span 0-50% --json"),
    );
    let strokes = ran
        .record()
        .surface()
        .unwrap()
        .figures
        .short_strokes
        .clone();
    let spans: Vec<(f64, u64)> = strokes
        .iter()
        .map(|stroke| (stroke.percent, stroke.span_bytes / MIB))
        .collect();
    assert_eq!(
        spans,
        [
            (100.0, 512),
            (75.0, 384),
            (50.0, 256),
            (25.0, 128),
            (10.0, 51)
        ],
        "{}",
        ran.err
    );
}

#[test]
fn nothing_that_exists_is_written() {
    let _alone = alone();
    needs!("losetup");
    let place = place();
    let image = place.path().join("image");
    random_file(&image, 64 * MIB);
    let hash = content_hash(&image);
    let device = Loop::over(&image, &["--direct-io=on"]);
    for target in [image.as_path(), &device.node] {
        let ran = curve(target, &["--write"]);
        ran.exits(3).shows_nothing();
        let ran = curve(target, &["--reads", "50", "--scan", "--json"]);
        ran.exits(0);
        let record = ran.record();
        assert!(
            record.surface().unwrap().data.asked.write_bytes == 0 && !record.curve().is_empty()
        );
        assert_eq!(
            record.surface().unwrap().data.scan.clone().unwrap().blocks,
            64
        );
    }
    drop(device);
    assert_eq!(content_hash(&image), hash);
    // With --destroy and its name it is written.
    let device = Loop::over(&image, &["--direct-io=on"]);
    let ran = curve(
        &device.node,
        &argv(&format!(
            "--write --no-access --points 20 --destroy {} --json",
            device.name()
        )),
    );
    ran.exits(0).tells("device").tells("its content is lost");
    assert!(ran.record().surface().unwrap().data.asked.write_bytes > 0);
    drop(device);
    assert_ne!(content_hash(&image), hash);
}

#[test]
fn what_is_given_up_is_written() {
    let _alone = alone();
    needs!("losetup");
    let place = place();
    let device = Loop::sparse(&place.path().join("image"), 64 * MIB, &["--direct-io=on"]);
    let ran = curve(
        &device.node,
        &argv(&format!(
            "--write --destroy {} --points 5 --reads 20 --json",
            device.name()
        )),
    );
    ran.exits(0);
    let record = ran.record();
    let surface = record.surface().unwrap();
    assert!(
        surface.data.asked.write_bytes > 20 * MIB
            && surface.data.asked.read_bytes == 0
            && surface.figures.rate.is_some()
    );
    ran.tells("content is lost");
}

#[test]
fn a_directory_is_surveyed_through_a_scratch_file() {
    let _alone = alone();
    let place = place();
    for flags in [
        &["--size", "64M", "--reads", "20", "--json"][..],
        &["--size", "64M", "--write", "--no-access", "--json"],
    ] {
        let ran = curve(place.path(), flags);
        ran.exits(0).tells("scratch file");
        let record = ran.record();
        let surface = record.surface().unwrap();
        assert_eq!(
            (surface.data.span_bytes, surface.data.asked.write_bytes > 0),
            (64 * MIB, flags.contains(&"--write"))
        );
    }
    assert!(program::names(place.path()).is_empty());
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let place = place();
    let file = place.path().join("file");
    random_file(&file, 4 * MIB);
    let record = place.path().join("record.json");
    std::fs::write(&record, "{}").unwrap();
    let cases: [(&[&str], &str); 12] = [
        (&["--spec", "rpm=fast"], "such as 7200"),
        (&["--span", "0-1G"], "has only 4 MiB"),
        (&["--span", "0-10%"], "smaller than 1 MiB"),
        (&["--resume", "5"], "--scan"),
        (&["--scan", "--resume", "1G"], "has only 4 MiB"),
        (&["--scan", "--span", "0-1M", "--resume", "2M"], "span"),
        (&["--scan", "--span", "2M-4M", "--resume", "1M"], "span"),
        (
            &["--scan", "--resume", record.to_str().unwrap()],
            "diskproof record",
        ),
        (&["--points", "0", "--no-access"], "nothing"),
        (&["--size", "1G"], "use --span"),
        (&["--no-access", "--expect", "access.mean<=5ms"], "access"),
        (&["--expect", "curve.throughput>=5GB/s"], "curve.average"),
    ];
    for (flags, part) in cases {
        let ran = curve(&file, flags);
        ran.exits(2).shows_nothing().tells(part);
    }
    let ran = curve(place.path(), &["--scan", "--resume", "5"]);
    ran.exits(2).tells("block device");
    let ran = curve(&file, &["--dry-run", "--points", "1"]);
    ran.exits(0).shows("curve of 1 point,");
    let ran = curve(&file, &["--dry-run"]);
    ran.exits(0)
        .shows("curve of 200 points")
        .shows("takes about");
}

/// Without a serial number the path tells a file from another one of its size.
#[test]
fn scan_of_another_file_of_the_same_size_is_not_resumed() {
    let place = place();
    let (file, other) = (place.path().join("file"), place.path().join("other"));
    random_file(&file, 4 * MIB);
    random_file(&other, 4 * MIB);
    let saved = place.path().join("scan.json");
    let saved = saved.to_str().unwrap();
    let only_scan = ["--scan", "--points", "0", "--no-access"];
    curve(&file, &[&only_scan[..], &["-o", saved]].concat()).exits(0);
    let mut record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(saved).unwrap()).unwrap();
    let scan = &mut record["results"][0]["data"]["scan"];
    assert_eq!(scan["finished"], true, "{scan}");
    scan["finished"] = false.into();
    scan["to_bytes"] = MIB.into();
    std::fs::write(saved, record.to_string()).unwrap();
    curve(&other, &["--scan", "--resume", saved])
        .exits(2)
        .tells("another disk");
    curve(&file, &["--scan", "--resume", saved]).exits(0);
}

#[test]
fn check_on_a_device_shows_its_surface() {
    let _alone = alone();
    needs!("fusermount3", "losetup");
    let disk = Simulated::new(SMALL, 64 * GIB);
    let ran = program::check(disk.path(), &["--quick", "--json"]);
    let record = ran.record();
    ran.exits(0);
    // How many points and seeks the time allows depends on the machine.
    let surface = record.surface().unwrap();
    assert!(
        !record.curve().is_empty()
            && surface.data.burst.is_some()
            && surface.figures.seeks[&SeekPattern::Random].n > 0,
        "{surface:?}"
    );
    assert_eq!(record.measurements.len(), 3);
}
