//! Sustained loads on disks whose truth is known: the limiter and the cache that end their rate,
//! and what a killed, full or healthy disk leaves behind.

use crate::program::{
    PipedRun, Ran, diskproof, eventually, names, needs, program, program_path, random_file, run,
    write_disk,
};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;
use diskproof_model::sustain::DropCause;
use diskproof_simdisk::SimDisk;
use diskproof_simdisk::spec::parse;
use diskproof_simdisk::testbed::{Disk, Loop, TempDir, place};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// 100/s for ever, 700/s for five seconds after a pause.
const CREDIT: &str = "latency=2500us,channels=64,credits=3000@700/100";
const SAVED: f64 = 3000.0;
/// 144 MB at 24 MB/s, then 6 MB/s; slow enough for a busy machine.
const CLIFF: &str = "latency=100us,write-bandwidth=24MB,cliff=144MB@6MB";
/// A disk without limits that any machine reaches.
const HEALTHY: &str = "iops=400,channels=8";

/// Whether the machine was too busy to accuse a disk.
fn is_busy(record: &Record) -> bool {
    record
        .findings
        .iter()
        .any(|finding| ["starved", "disturbed", "cpu-stolen"].contains(&finding.code.as_str()))
}

#[test]
fn credit_of_a_limiter_is_found_within_five_percent() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(CREDIT).unwrap(), 64 << 20, &disk).unwrap();
    let target = disk.to_str().unwrap();
    let ran = diskproof!("sustain {target} --time 30s --json");
    ran.exits(0);
    let record = ran.record();
    let found = record.sustain().unwrap();
    let Some(drop) = &found.drop else {
        assert!(is_busy(&record), "{found:?}");
        return;
    };
    assert_eq!(drop.cause, DropCause::BurstCredit, "{drop:?}");
    let bucket = found.bucket.as_ref().unwrap();
    assert!((bucket.base.value / 100.0 - 1.0).abs() < 0.05, "{bucket:?}");
    assert!(
        (bucket.credit.value / SAVED - 1.0).abs() < 0.05,
        "{bucket:?}"
    );
    assert!(
        (found.lasting.value / 100.0 - 1.0).abs() < 0.05,
        "{found:?}"
    );
    let backs: Vec<bool> = found.recoveries.iter().map(|one| one.is_back).collect();
    assert_eq!(backs.len(), 2, "{found:?}");
}

#[test]
fn end_of_a_cache_is_found_within_five_percent_and_its_cause_is_unknown() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(CLIFF).unwrap(), 64 << 20, &disk).unwrap();
    let target = disk.to_str().unwrap();
    let ran = diskproof!(
        "sustain {target} --overwrite --rw randwrite --bs 64k --depth 4 --time 30s --json"
    );
    ran.exits(0);
    let record = ran.record();
    let found = record.sustain().unwrap();
    let drop = found.drop.as_ref().unwrap();
    assert!(
        (drop.moved.bytes as f64 / 144e6 - 1.0).abs() < 0.05,
        "{drop:?}"
    );
    // It never recovers, so nothing proves a cache.
    assert!(found.recoveries.iter().all(|one| !one.is_back), "{found:?}");
    assert_ne!(drop.cause, DropCause::WriteCache);
}

#[test]
fn healthy_disk_is_not_accused() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(HEALTHY).unwrap(), 64 << 20, &disk).unwrap();
    let target = disk.to_str().unwrap();
    let ran = diskproof!("sustain {target} --time 12s --stop-at-drop 90% --json");
    ran.exits(0);
    let record = ran.record();
    let found = record.sustain().unwrap();
    assert_eq!((&found.drop, found.recoveries.len()), (&None, 0));
    assert_eq!(record.expectations.len(), 1);
    assert!(record.expectations[0].met, "{:?}", record.expectations);
}

#[test]
fn gate_ends_the_load_at_a_fall_with_code_1() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(CREDIT).unwrap(), 64 << 20, &disk).unwrap();
    let target = disk.to_str().unwrap();
    let ran = diskproof!("sustain {target} --time 60s --stop-at-drop 20% --json");
    let record = ran.record();
    let found = record.sustain().unwrap();
    if found.drop.is_none() {
        assert!(is_busy(&record), "{found:?}");
        return;
    }
    ran.exits(1);
    assert!(found.time_ns < 40_000_000_000, "{found:?}");
    assert_eq!(record.expectations[0].expression, "sustain.drop<=20%");
}

#[test]
fn budget_limits_what_is_written() {
    let here = place();
    let target = here.path().to_str().unwrap();
    let ran = diskproof!(
        "sustain {target} --size 16MiB --time 10s --budget-bytes 4MiB --rate 100 --json"
    );
    let record = ran.record();
    let written: u64 = record
        .measurements
        .iter()
        .flat_map(|row| row.data.ops.values())
        .map(|op| op.series.total().bytes)
        .sum();
    assert!(written <= 4 << 20, "{written}");
}

#[test]
fn contradictions_are_usage_errors() {
    let here = place();
    let target = here.path().to_str().unwrap();
    for flags in [
        "--time 1s",
        "--bs 4k,8k",
        "--precision 2%",
        "--bytes 1G",
        "--precondition",
        "--stop-at-drop 0%",
        "--stop-at-drop x",
        "--every 1h",
        "--every 10s --rate 100",
        "--every 1h --rate 100 --no-history",
        "--for 7d",
        "--time 367d",
        "--every 1h --for 367d --rate 100",
        "--budget-bytes 0",
    ] {
        diskproof!("sustain {target} {flags}").exits(2);
    }
    let series =
        diskproof!("sustain {target} --size 16MiB --every 1h --for 7d --rate 200 --dry-run");
    // 169 times 28.5 s of 200 blocks of 8 KiB, and the scratch file each time.
    for part in [
        "169 measurements of 30 s, one every 1 h for 7 d",
        "24 min",
        "44.5 MiB",
        "2.6 GiB",
    ] {
        series.shows(part);
    }
    // The plan of one measurement has the same limits.
    series
        .shows_not("as the disk accepts")
        .shows_not("no limit");
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
}

/// A series of three measurements of ten seconds that is killed in its second one goes on at the
/// time of the first one, and ends with an answer.
#[test]
fn series_that_was_killed_goes_on_and_ends() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(HEALTHY).unwrap(), 64 << 20, &disk).unwrap();
    write_disk(&disk, 64 << 20);
    let history = here.path().join("history.db");
    let command = format!(
        "sustain {} --every 20s --for 40s --time 10s --rate 50 --history {} --json",
        disk.display(),
        history.display()
    );
    let mut killed = PipedRun::start(command.split(' '));
    killed.wait_for_line("saved as");
    killed.wait_for_run();
    killed.kill();
    let ran = PipedRun::start(command.split(' ')).wait();
    ran.exits(0).tells("the series continues");
    let answer: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let points = answer["points"].as_array().unwrap();
    assert_eq!(points.len(), 3, "{answer}");
    let started_s = |number: usize| points[number]["at_s"].as_i64().unwrap();
    for number in 1..3 {
        let after_s = started_s(number) - started_s(0);
        assert!((after_s - 20 * number as i64).abs() <= 3, "{answer}");
    }
    let other_load = command.replace("--rate 50", "--rate 60");
    run(other_load.split(' ')).exits(2).tells("another load");
    for (edit, difference) in [
        (
            measured_by_method_1 as fn(&mut Value),
            "measures in another way",
        ),
        (measured_on_another_disk, "on another disk or volume"),
    ] {
        let edited_history = edited_copy(&history, here.path(), edit);
        let again = command.replace("/history.db", &format!("/{edited_history}"));
        run(again.split(' ')).exits(2).tells(difference);
    }
    // The default label is the same for every target. This series is not over.
    let other_target = format!(
        "sustain {} --size 16MiB --every 20s --for 40s --time 10s --rate 50 --history {}",
        here.path().display(),
        history.display()
    );
    let other = PipedRun::start(other_target.split(' '));
    other.wait_for_run();
    other.kill();
}

fn measured_by_method_1(record: &mut Value) {
    record["method"] = 1.into();
    record["plan"]["method"] = 1.into();
}

fn measured_on_another_disk(record: &mut Value) {
    record["targets"][0]["layers"] = serde_json::json!([{
        "name": "sdz", "kind": "disk", "device": "8:0", "below": [], "size_bytes": 64 << 20,
        "serial": "ANOTHER", "read_only": false
    }]);
}

/// The name of a history with the newest run of this one, edited, under the label of its series.
fn edited_copy(history: &Path, folder: &Path, edit: fn(&mut Value)) -> String {
    let name = "edited.db";
    let edited_history = folder.join(name);
    let _ = std::fs::remove_file(&edited_history);
    let shown = diskproof!("show latest --json --history {}", history.display());
    let mut record: Value = serde_json::from_str(&shown.out).unwrap();
    edit(&mut record);
    let file = folder.join("edited.json");
    std::fs::write(&file, record.to_string()).unwrap();
    let place = edited_history.display();
    diskproof!("history import {} --history {place}", file.display()).exits(0);
    diskproof!("history label latest sustain-every-20s --history {place}").exits(0);
    take_for_own(&edited_history);
    name.to_owned()
}

/// Takes the mark of an import from the runs of a history: a machine without an id, such as a
/// container, takes imported runs for those of another.
fn take_for_own(history: &Path) {
    let (mark, no_field) = (b"\"imported\":true", b"\"no_field\":true");
    let mut bytes = std::fs::read(history).unwrap();
    let mut from = 0;
    while let Some(at) = bytes[from..]
        .windows(mark.len())
        .position(|part| part == mark)
    {
        bytes[from + at..from + at + mark.len()].copy_from_slice(no_field);
        from += at;
    }
    std::fs::write(history, bytes).unwrap();
}

/// Days of measurements are not begun where none of them could be saved.
#[test]
fn series_without_a_writable_history_is_refused() {
    let here = place();
    let file = here.path().join("file");
    std::fs::write(&file, "").unwrap();
    diskproof!(
        "sustain {} --size 16MiB --every 20s --for 20s --time 10s --rate 50 --history {}/h.db",
        here.path().display(),
        file.display()
    )
    .exits(4);
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 1);
}

/// The consent of the start is about the file of the start, and not about what has its name later.
#[test]
fn series_does_not_write_to_a_file_that_replaced_its_own() {
    let here = place();
    let [file, precious] = ["file", "precious"].map(|name| here.path().join(name));
    random_file(&file, 8 << 20);
    random_file(&precious, 8 << 20);
    let content = std::fs::read(&precious).unwrap();
    let command = format!(
        "sustain {} --overwrite --rw randwrite --bs 4k --rate 50 --every 20s --for 20s --time 10s \
         --history {}",
        file.display(),
        here.path().join("history.db").display()
    );
    let mut running = PipedRun::start(command.split(' '));
    running.wait_for_line("saved as");
    std::fs::rename(&precious, &file).unwrap();
    running.wait().exits(3).shows("1 measurement");
    assert!(std::fs::read(&file).unwrap() == content, "written to");
}

/// Two measurements of blocks that were never written, whose latency is not that of the disk.
#[test]
fn undecided_threshold_of_a_measurement_is_the_exit_code_of_the_series() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(HEALTHY).unwrap(), 64 << 20, &disk).unwrap();
    let target = disk.display();
    let history = here.path().join("history.db");
    let series = || {
        diskproof!(
            "sustain {target} --every 20s --for 20s --time 10s --rate 50 --history {} --expect \
             sustained.mean<=1us",
            history.display()
        )
    };
    series().exits(5).shows("too few for a trend");
    // Once more after its end: nothing is measured, and what was undecided stays so.
    series().exits(5).tells("the series is over");
}

/// Where a sustained load is, by the line on stderr that begins it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoadPhase {
    Precondition,
    Load,
    Pause,
}

impl LoadPhase {
    const ALL: [Self; 3] = [Self::Precondition, Self::Load, Self::Pause];

    fn line(self) -> &'static str {
        match self {
            Self::Precondition => "precondition: ",
            Self::Load => "sustained: ",
            Self::Pause => "pause of ",
        }
    }
}

/// A sustained load of a simulated device, which has a phase of each kind.
struct DeviceLoad {
    run: PipedRun,
    device: Loop,
    disk: SimDisk,
    place: TempDir,
}

impl DeviceLoad {
    /// Runs until the phase has begun.
    fn reach(phase: LoadPhase) -> Self {
        let place = place();
        let model = match phase {
            // Five seconds for a round, of which a pass needs several.
            LoadPhase::Precondition => "write-bandwidth=8MB,channels=32",
            LoadPhase::Load | LoadPhase::Pause => "latency=2500us,channels=64,credits=1500@700/100",
        };
        let served = place.path().join("drive");
        let disk = SimDisk::serve(parse(model).unwrap(), 64 << 20, &served).unwrap();
        let device = Loop::over(disk.path(), &["--direct-io=on"]);
        let mut command = program(["sustain", device.node.to_str().unwrap()]);
        command.args([
            "--destroy",
            device.name(),
            "--time",
            "24s",
            "--no-health",
            "--json",
        ]);
        if phase == LoadPhase::Precondition {
            command.arg("--precondition");
        } else {
            // Reads: what passes is not changed by a write cache.
            command.args(["--rw", "randread"]);
        }
        command
            .arg("--history")
            .arg(place.path().join("history.db"));
        let mut run = PipedRun::of(&mut command);
        run.wait_for_line(phase.line());
        Self {
            run,
            device,
            disk,
            place,
        }
    }

    fn ended(self) -> (Ran, Vec<String>) {
        let ran = self.run.wait();
        drop(self.device);
        let left = names(self.place.path())
            .into_iter()
            .filter(|name| name.contains(".run-"))
            .collect();
        (ran, left)
    }
}

#[test]
fn disk_that_vanishes_in_any_phase_of_a_load_fails_the_run_and_keeps_what_is_known() {
    needs!("losetup", "fusermount3");
    for phase in LoadPhase::ALL {
        let load = DeviceLoad::reach(phase);
        load.disk.vanish();
        let (ran, left) = load.ended();
        ran.exits(4);
        assert_eq!(left, [""; 0], "{phase:?}");
        let record = ran.record();
        let errors: u64 = record
            .measurements
            .iter()
            .flat_map(|row| row.data.ops.values())
            .flat_map(|op| op.errors.values())
            .sum();
        assert!(errors > 0 || record.partial, "{phase:?}");
        // A disk that is gone did not become slower.
        if let Some(found) = record.sustain() {
            let is_fall_to_nothing = found.drop.as_ref().is_some_and(|fall| fall.after < 1.0);
            assert!(!is_fall_to_nothing, "{phase:?}: {found:?}");
        }
    }
}

#[test]
fn interrupt_in_any_phase_of_a_load_keeps_what_is_known() {
    needs!("losetup", "fusermount3");
    for phase in LoadPhase::ALL {
        let load = DeviceLoad::reach(phase);
        let before = names(load.place.path());
        assert!(
            before.iter().any(|name| name.contains(".run-")),
            "{before:?}"
        );
        let ran = load.run.interrupt();
        let record = ran.exits(130).record();
        assert!(record.partial, "{phase:?}");
        let first = &record.measurements[0];
        assert!(first.data.wall_ns > 0, "{phase:?}");
        assert_eq!(record.sustain().is_some(), phase != LoadPhase::Precondition);
        let history = load.place.path().join("history.db");
        let shown = run([
            "show",
            "latest",
            "--json",
            "--history",
            history.to_str().unwrap(),
        ]);
        assert_eq!(shown.record().run_id, record.run_id, "{phase:?}");
    }
}

/// Bytes that a process has had read from disks.
fn read_bytes(id: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/io")).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("read_bytes: "));
    line.unwrap().parse().unwrap()
}

/// A round of the usual time takes a minute.
#[test]
fn interrupt_in_the_first_round_keeps_what_it_has_measured() {
    let place = place();
    let file = place.path().join("data");
    random_file(&file, 32 << 20);
    let mut command = program(["sustain", file.to_str().unwrap(), "--rw", "randread"]);
    command.args(["--time", "2h", "--no-health", "--no-history", "--json"]);
    let run = PipedRun::of(&mut command);
    let id = run.id();
    assert!(eventually(|| read_bytes(id) > 32 << 20));
    let record = run.interrupt().exits(130).record();
    let reads = &record.measurements[0].data.ops[&OpKind::Read];
    assert!(reads.bytes > 0 && record.partial);
    let sustained = record.sustain().unwrap();
    assert!(sustained.drop.is_none(), "{sustained:?}");
}

#[test]
fn precondition_writes_a_device_and_its_spare_flash_before_the_load() {
    needs!("losetup", "fusermount3");
    let here = place();
    let served = here.path().join("drive");
    let model = parse("iops=4000,channels=32").unwrap();
    let disk = SimDisk::serve(model, 32 << 20, &served).unwrap();
    let device = Loop::over(disk.path(), &["--direct-io=on"]);
    let (node, name) = (device.node.to_str().unwrap(), device.name());
    // Reads, so that the load writes none of what the precondition leaves out.
    let load = "--rw randread --jobs 2 --depth 16 --time 10s --no-health --no-history --json";
    let ran = diskproof!("sustain {node} --destroy {name} --precondition {load}");
    let record = ran.exits(0).record();
    let found = record.sustain().unwrap();
    let precondition = found.precondition.as_ref().unwrap();
    assert_eq!(
        precondition.needed_bytes,
        (32 << 20) / 100 * 128 / 8192 * 8192
    );
    assert!(precondition.is_complete(), "{precondition:?}");
    assert!(disk.stats().written_bytes >= precondition.needed_bytes);
    let content = std::fs::read(disk.path()).unwrap();
    assert_eq!(content.len(), 32 << 20);
    let unwritten = content
        .chunks(8192)
        .filter(|block| block.iter().all(|byte| *byte == 0))
        .count();
    assert_eq!(unwritten, 0);
    diskproof!("sustain {node} --precondition --time 10s").exits(2);
}

#[test]
fn full_disk_is_refused_before_a_load_and_ends_none_that_has_its_file() {
    needs!("losetup", "mkfs.ext4");
    let disk = Disk::in_memory("ext4", 128 << 20);
    let point = disk.mount.point.to_str().unwrap();
    let filling = disk.mount.point.join("filling");
    std::fs::write(&filling, vec![1; 64 << 20]).unwrap();
    let before = names(&disk.mount.point);
    diskproof!("sustain {point} --size 96MiB --time 10s --no-history").exits(3);
    assert_eq!(names(&disk.mount.point), before);
    let command = format!("sustain {point} --size 16MiB --time 12s --rate 200 --no-history --json");
    let mut run = PipedRun::start(command.split(' '));
    run.wait_for_line("sustained: ");
    // The scratch file has its blocks.
    let _ = std::fs::write(disk.mount.point.join("more"), vec![1; 96 << 20]);
    let ran = run.wait();
    let record = ran.exits(0).record();
    assert!(record.sustain().is_some());
}

#[test]
fn disk_that_has_no_room_for_a_write_fails_the_load() {
    needs!("fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let model = parse("iops=400,channels=8,enospc-after=4MiB").unwrap();
    let _served = SimDisk::serve(model, 64 << 20, &disk).unwrap();
    let target = disk.to_str().unwrap();
    let ran = diskproof!("sustain {target} --overwrite --time 12s --no-history --json");
    let record = ran.exits(4).record();
    let errors = &record.measurements[0]
        .data
        .ops
        .values()
        .next()
        .unwrap()
        .errors;
    assert!(errors.contains_key("ENOSPC"), "{errors:?}");
}

/// What enters and leaves the alternate screen of a terminal.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

#[test]
fn load_fills_a_terminal_and_leaves_it_as_it_was() {
    needs!("script", "fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(HEALTHY).unwrap(), 64 << 20, &disk).unwrap();
    let (before, after) = (here.path().join("before"), here.path().join("after"));
    // The shell gets the Ctrl-C too, and without a trap it ends before its last command.
    let shell = format!(
        "trap : INT; stty rows 24 cols 80; stty -g >{}; \
         {} sustain {} --time 60s --no-history; stty -g >{}",
        before.display(),
        program_path(),
        disk.display(),
        after.display()
    );
    let mut terminal = Command::new("script")
        .args(["-qec", &shell, "/dev/null"])
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut keys = terminal.stdin.take().unwrap();
    let mut shown = terminal.stdout.take().unwrap();
    let mut text = String::new();
    let mut part = [0; 4096];
    // Some seconds of rates make the graph.
    while text.matches("rate ").count() < 12 {
        let count = shown.read(&mut part).unwrap();
        assert!(count > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&part[..count]));
    }
    keys.write_all(&[3]).unwrap();
    let mut rest = Vec::new();
    shown.read_to_end(&mut rest).unwrap();
    terminal.wait().unwrap();
    text.push_str(&String::from_utf8_lossy(&rest));
    let (_, behind) = text.split_once(ENTER).unwrap();
    let (frames, page) = behind.split_once(LEAVE).unwrap();
    for frame in frames.split("\x1b[H").skip(1) {
        assert!(frame.matches("\r\n").count() < 24, "{frame}");
        for part in ["sustained", "left", "Ctrl-C ends the load"] {
            assert!(frame.contains(part), "{part}: {frame}");
        }
    }
    assert!(page.contains("PARTIAL"), "{page}");
    let state = |path| std::fs::read_to_string(path).unwrap();
    assert_eq!(state(&before), state(&after));
}

#[test]
fn plain_load_on_a_terminal_stays_on_its_line() {
    needs!("script", "fusermount3");
    let here = place();
    let disk = here.path().join("disk");
    let _served = SimDisk::serve(parse(HEALTHY).unwrap(), 64 << 20, &disk).unwrap();
    let shell = format!(
        "{} sustain {} --plain --time 10s --no-history",
        program_path(),
        disk.display()
    );
    let terminal = Command::new("script")
        .args(["-qec", &shell, "/dev/null"])
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&terminal.stdout);
    assert!(!text.contains(ENTER), "{text}");
    assert!(text.contains("steady"), "{text}");
}
