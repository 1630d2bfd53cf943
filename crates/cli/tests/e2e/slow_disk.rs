//! Disks that are slow and not faulty: runs on them end in time, with figures or "undecided".

use crate::program::hanging_disk::{HangingDisk, Running};
use crate::program::{argv, eventually, needs, program, sim_disk, undisturbed, with_enough_time};
use diskproof_model::measurement::{OpKind, StopReason};
use diskproof_model::record::Record;
use diskproof_model::surface::SeekPattern;
use diskproof_simdisk::testbed::{self, Mount, TempDir, can_run, place};
use diskproof_simdisk::{Direct, Hanging, LoopDevice, Medium, SimDisk, spec};
use std::path::Path;
use std::process::{Output, Stdio};

const GIB: u64 = 1 << 30;

/// Runs `words` on a device of this model; a word `DEVICE` stands for it. Returns exit code and
/// record.
fn on_device(model: &str, words: &[&str]) -> (Option<i32>, Record) {
    let place = place();
    let disk = sim_disk(&place, model, 4 * GIB);
    let device = LoopDevice::attach(disk.path(), Direct::On, 512).unwrap();
    let saved = place.path().join("saved.json");
    let path = device.path().to_str().unwrap();
    let words = words.iter().map(|word| match *word {
        "DEVICE" => Path::new(path),
        word => Path::new(word),
    });
    let output = undisturbed(words.chain([Path::new("-o"), &saved]))
        .output()
        .unwrap();
    let record = std::fs::read(&saved).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    (
        output.status.code(),
        serde_json::from_slice(&record).unwrap(),
    )
}

fn codes(record: &Record) -> Vec<&str> {
    let findings = record.findings.iter();
    findings.map(|finding| finding.code.as_str()).collect()
}

#[test]
fn check_of_slow_disk_has_curve_and_access_time() {
    needs!("fusermount3", "losetup");
    with_enough_time(&["14s", "28s", "56s", "112s"], |time| {
        let words = ["check", "DEVICE", "--time", time];
        let (code, record) = on_device("bandwidth=300kB", &words);
        let mut reads = record.measurements.iter();
        let scan = reads.find(|m| m.data.workload.name == "sequential-read");
        let scan = scan.and_then(|m| m.op(OpKind::Read));
        let surface = record.surface();
        let rate = surface.and_then(|surface| surface.figures.rate.as_ref());
        let accesses = surface.and_then(|surface| surface.figures.seeks.get(&SeekPattern::Random));
        let (Some(scan), Some(rate), Some(accesses), false) =
            (scan, rate, accesses, record.partial)
        else {
            return Err(format!("{time}: {:?}", record.ended_early));
        };
        for rate in [scan.figures.throughput.value, rate.average.value] {
            assert!((rate / 300e3 - 1.0).abs() < 0.25, "{rate}");
        }
        assert!(accesses.n > 1 && code == Some(0), "{code:?}");
        let codes = codes(&record);
        assert!(
            codes.contains(&"depth-not-held") && !codes.contains(&"hung"),
            "{codes:?}"
        );
        Ok(())
    });
}

/// Each request takes as long, and none is a silence.
#[test]
fn slow_requests_before_a_survey_are_no_pause() {
    needs!("fusermount3", "losetup");
    let words = argv("curve DEVICE --points 2 --no-access");
    let (_, record) = on_device("latency=2500ms", &words);
    let found = codes(&record);
    for code in ["stalled", "hung", "slow-after-idle"] {
        assert!(!found.contains(&code), "{found:?}");
    }
}

#[test]
fn requests_longer_than_the_run_are_late_and_no_errors() {
    needs!("fusermount3", "losetup");
    let words = argv("run DEVICE --rw randread --bs 8M --depth 4 --time 5s");
    let (code, record) = on_device("bandwidth=300kB", &words);
    let m = &record.measurements[0];
    let hang = m.data.hang.unwrap();
    assert!(hang.late && hang.requests >= 1, "{hang:?}");
    assert_eq!((m.errors_total(), code), (0, Some(4)));
    assert_ne!(m.data.stopped, StopReason::Hung);
    assert!(!codes(&record).contains(&"hung"), "{:?}", codes(&record));
}

#[test]
fn live_comparison_on_slow_disk_ends() {
    needs!("fusermount3", "losetup");
    let place = place();
    let disk = sim_disk(&place, "iops=1", GIB);
    let device = LoopDevice::attach(disk.path(), Direct::On, 512).unwrap();
    let path = device.path().to_str().unwrap();
    let compared = program(["compare", path, path, "--time", "8s"])
        .output()
        .unwrap();
    assert_eq!(compared.status.code(), Some(4), "{compared:?}");
}

/// Its answers take less than the timeout. Those that a run needs before its first workload take
/// longer together, and no counter of a file shows them.
#[test]
fn slow_answers_before_the_first_workload_are_no_hang() {
    needs!("fusermount3");
    let place = place();
    let file = place.path().join("disk");
    let _disk = SimDisk::serve(spec::parse("latency=3s").unwrap(), GIB, &file).unwrap();
    let words = "run --rw read --bs 1M --depth 8 --time 6s --json -q";
    let output = program(words.split(' ').map(Path::new).chain([file.as_path()]))
        .env("DISKPROOF_GIVE_UP_AFTER", "5s")
        .output()
        .unwrap();
    let record: Record = serde_json::from_slice(&output.stdout).unwrap();
    let read = &record.measurements[0];
    assert!(read.data.ops[&OpKind::Read].count >= 1 && record.stalled.is_none());
    assert_eq!(read.data.engine.depth, Some(1));
    assert!(!codes(&record).contains(&"hung"), "{:?}", codes(&record));
}

#[test]
fn zeros_of_a_tool_are_undecided_in_exit_code_and_stderr() {
    needs!("fusermount3");
    let place = place();
    let file = place.path().join("disk");
    let _disk = SimDisk::serve(spec::parse("latency=13s").unwrap(), GIB, &file).unwrap();
    let words = format!(
        "as fio --name=j --rw=randread --iodepth=8 --ioengine=libaio --direct=1 --runtime=1 \
         --time_based --output-format=json --filename={}",
        file.display()
    );
    let output = program(words.split_whitespace()).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["jobs"][0]["read"]["total_ios"], 0);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("no request completed"), "{stderr}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn depth_follows_the_direction_that_is_slow() {
    needs!("fusermount3");
    let place = place();
    let file = place.path().join("disk");
    let slow_to_write = spec::parse("write-bandwidth=300kB").unwrap();
    let _disk = SimDisk::serve(slow_to_write, GIB, &file).unwrap();
    let depth = |words: &str| {
        let words = format!("run --bs 1M --depth 8 --time 2s --json -q --no-history {words}");
        let output = program(words.split(' ').map(Path::new).chain([file.as_path()]))
            .output()
            .unwrap();
        let record: Record = serde_json::from_slice(&output.stdout).unwrap();
        record.measurements[0].data.engine.depth
    };
    assert_eq!(depth("--rw read"), None);
    assert_eq!(depth("--rw write --overwrite"), Some(1));
}

#[test]
fn scan_with_a_time_limit_ends_with_the_command_that_resumes() {
    needs!("fusermount3");
    let place = place();
    let file = place.path().join("disk");
    let _disk = SimDisk::serve(spec::parse("latency=1s,channels=1").unwrap(), GIB, &file).unwrap();
    let words = "curve --scan --points 0 --no-access --time 3s --json -q --no-history";
    let output = program(words.split(' ').map(Path::new).chain([file.as_path()]))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4));
    let record: Record = serde_json::from_slice(&output.stdout).unwrap();
    let scan = record.surface().unwrap().data.scan.as_ref().unwrap();
    assert!(!scan.finished && record.partial);
    assert!(record.ended_early.unwrap().contains("--resume"));
    assert!(record.stalled.is_none());
}

/// Each ends with the code of a failed run: its own, or the tool's.
#[test]
fn inspection_of_a_disk_that_hangs_ends() {
    needs!("fusermount3", "losetup");
    let disk = HangingDisk::spare_device();
    disk.disk.hang_at(Hanging::Everything);
    let device = disk.path().to_str().unwrap();
    let own = ["run", device, "--rw", "randwrite", "--destroy", disk.name()];
    let job = ["--name=j", "--rw=randwrite", "--size=1m", "--filename"];
    let tool = ["as", "--destroy", disk.name(), "fio"];
    let tool = [&tool[..], &job, &[device]].concat();
    let folders = [place(), place()];
    let start = |(folder, words): (&TempDir, &[&str])| Running::start(folder.path(), words, "1ms");
    let mut running = [&own[..], &tool].into_iter();
    let mut running: Vec<Running> = folders.iter().zip(&mut running).map(start).collect();
    let is_over = |one: &Running| one.stderr().contains("every figure is undecided");
    assert!(eventually(|| running.iter().all(is_over)));
    for (one, code) in running.iter_mut().zip([4, 1]) {
        one.exit_after_answer(&disk, code);
    }
    assert_eq!(disk.disk.stats().writes, 0);
}

/// What a command line gives on a filesystem.
fn ran_on(mount: &Mount, words: &str) -> Output {
    let words = words.split_whitespace().map(Path::new);
    let words = words.chain([mount.point.as_path()]);
    program(words).output().unwrap()
}

/// A filesystem on a disk of this model.
fn slow_filesystem(place: &Path, model: &str) -> (SimDisk, LoopDevice, Mount) {
    let backing = place.join("backing");
    std::fs::File::create(&backing)
        .unwrap()
        .set_len(4 * GIB)
        .unwrap();
    let new = ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
    testbed::run(
        "mkfs.ext4",
        &[&new[..], &[backing.to_str().unwrap()]].concat(),
    );
    let model = spec::parse(model).unwrap();
    let disk =
        SimDisk::serve_on(model, 4 * GIB, &place.join("disk"), &Medium::File(backing)).unwrap();
    let device = LoopDevice::attach(disk.path(), Direct::On, 512).unwrap();
    let node = device.path().to_str().unwrap().to_owned();
    let mount = Mount::new("ext4", &node, &place.join("point"), "defaults");
    (disk, device, mount)
}

#[test]
fn commit_without_time_for_a_server_has_rows_and_leaves_no_cluster() {
    let name = "commit_without_time_for_a_server_has_rows_and_leaves_no_cluster";
    if crate::postgres::server(name).is_none() || !can_run(name, &["losetup", "mkfs.ext4"]) {
        return;
    }
    let place = place();
    let (_disk, _device, mount) = slow_filesystem(place.path(), "write-bandwidth=300kB");
    let words = "commit --postgres --time 3s --only fdatasync --json -q --no-history";
    let output = ran_on(&mount, words);
    let record: Record = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(!record.measurements.is_empty() && record.postgres().is_none());
    assert!(record.ended_early.unwrap().contains("PostgreSQL"));
    assert!(!mount.point.join("diskproof-postgres").exists());
}

/// The log of transactions is laid out however long it takes: 84 MB, for which a tenth of the time
/// is too short.
#[test]
fn load_lays_out_the_log_of_its_transactions() {
    needs!("losetup", "mkfs.ext4");
    let place = place();
    let (_disk, _device, mount) = slow_filesystem(place.path(), "bandwidth=20MB");
    let words = "load --time 20s --slo p90<=200ms --json -q --no-history";
    let output = ran_on(&mount, words);
    let record: Record = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!record.load().unwrap().data.trials.is_empty());
}

/// Each write-back takes longer than the grace of a run that is late.
#[test]
fn files_whose_write_back_takes_longer_than_their_steps_are_complete() {
    needs!("losetup", "mkfs.ext4");
    let place = place();
    let (_disk, _device, mount) = slow_filesystem(place.path(), "write-bandwidth=300kB");
    let words = "files --time 1s --count 125 --file-size 16k --order sequential --rounds 1 --json \
                 -q --no-history";
    let output = ran_on(&mount, words);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let record: Record = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!record.partial && record.ended_early.is_none());
    assert_eq!(record.files().unwrap().steps.len(), 5);
}

#[test]
fn files_are_removed_though_the_disk_holds_their_writes() {
    needs!("losetup", "mkfs.ext4");
    let place = place();
    let (_disk, _device, mount) = slow_filesystem(place.path(), "write-bandwidth=300kB");
    let words = "files --time 2s --count 2000 --file-size 16k --json -q --no-history";
    let output = ran_on(&mount, words);
    // Whole, where the files that it had no time to write are removed in time.
    let record: Record = serde_json::from_slice(&output.stdout).unwrap();
    let code = if record.partial { 4 } else { 0 };
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    // One request of the kernel may take longer than four seconds here, which is the disk's rate.
    assert_eq!(record.stalled, None);
    for code in ["hung", "late", "stalled"] {
        assert!(!codes(&record).contains(&code), "{:?}", codes(&record));
    }
    // What it had no time to write has left the set: nothing fails.
    let steps = &record.files().unwrap().steps;
    assert!(!steps.is_empty());
    for step in steps {
        assert!(step.data.op.errors.is_empty(), "{step:?}");
    }
    let left = mount.point.join(".diskproof-files");
    // As soon as the disk has answered, which takes minutes where other tests use its cache.
    let mut waits = 0..10;
    assert!(waits.any(|_| crate::program::eventually(|| !left.exists())));
}

/// As when the disk holds the process that makes the directory.
#[test]
fn remover_waits_for_the_end_of_the_process_that_makes_the_files() {
    let here = place();
    let directory = here.path().join(".diskproof-files");
    let mut remover = program(["files-remover"])
        .current_dir(here.path())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    std::fs::create_dir(&directory).unwrap();
    drop(remover.stdin.take());
    assert!(remover.wait().unwrap().success());
    assert!(!directory.exists());
}
