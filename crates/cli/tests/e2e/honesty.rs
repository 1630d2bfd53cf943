//! Findings on real devices: each fires where its cause is made to be, and keeps silent where it is
//! not.

use crate::program;
use crate::program::{
    Ran, SHORT, argv, check, diskproof, names, needs, program, random_file, undisturbed,
};
use diskproof_model::measurement::{FallbackCause, OpKind};
use diskproof_model::plan::EngineKind;
use diskproof_model::record::Record;
use diskproof_simdisk::seccomp::forbid;
use diskproof_simdisk::testbed::{Disk, Loop, TempDir, Zram, place, run};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The claim of a finding.
fn claim(record: &Record, code: &str) -> Option<String> {
    record
        .findings
        .iter()
        .find(|finding| finding.code == code)
        .map(|finding| finding.claim.clone())
}

fn record(target: &Path, flags: &[&str]) -> Record {
    let ran = check(target, &[flags, &["--json"]].concat());
    ran.exits(0);
    ran.record()
}

/// A loop device that no other process uses, on memory that no other test counts.
fn private_loop(size_bytes: u64) -> (Loop, TempDir) {
    let memory = tempfile::Builder::new()
        .prefix("diskproof-test-")
        .tempdir_in("/dev/shm")
        .unwrap();
    let image = memory.path().join("image");
    random_file(&image, size_bytes);
    (Loop::over(&image, &["--direct-io=on"]), memory)
}

#[test]
fn a_loop_device_through_the_page_cache_is_found_out() {
    needs!("losetup", "cat");
    let place = place();
    let image = place.path().join("image");
    random_file(&image, 128 * MIB);
    run("sha256sum", &[image.to_str().unwrap()]);
    let code = "served-from-cache";
    {
        let device = Loop::over(&image, &["--direct-io=off"]);
        let findings = record(&device.node, &["--time", "2s"]).findings;
        let finding = findings.iter().find(|one| one.code == code).unwrap();
        assert!(finding.claim.contains(device.name()), "{finding:?}");
        let remedy = format!("losetup --direct-io=on /dev/{}", device.name());
        assert!(finding.remedy.contains(&remedy), "{finding:?}");
    }
    let device = Loop::over(&image, &["--direct-io=on"]);
    assert_eq!(claim(&record(&device.node, &["--time", "2s"]), code), None);
}

/// Sectors that a loop device was asked to read.
/// A number of the kernel's line on a device: 1 is reads merged, 2 sectors read.
fn counted(device: &Loop, place: usize) -> u64 {
    let stat = std::fs::read_to_string(format!("/sys/block/{}/stat", device.name())).unwrap();
    stat.split_ascii_whitespace()
        .nth(place)
        .unwrap()
        .parse()
        .unwrap()
}

/// The page cache is emptied behind sequential reads, not before them: what the kernel has read
/// ahead is used. With all of it dropped every 10 ms the disk read up to four times what it was
/// asked for, and half to a quarter of its speed was reported. Workers that share a description
/// spoil each other's read-ahead, too.
#[test]
fn what_was_read_ahead_is_not_read_again() {
    needs!("losetup");
    let place = place();
    let device = Loop::sparse(&place.path().join("image"), 4 * GIB, &[]);
    std::fs::write(
        format!("/sys/block/{}/queue/read_ahead_kb", device.name()),
        "8192",
    )
    .unwrap();
    let device_path = device.node.to_str().unwrap();
    for (engine, jobs) in [("sync", 1), ("uring", 1), ("sync", 4), ("uring", 4)] {
        let before = counted(&device, 2);
        let flags = format!(
            "--rw read --bs 8k --buffered --warmup 0 --engine {engine} --jobs {} --time 1s --json",
            jobs
        );
        let flags = argv(&flags);
        let ran = program::run(["run", device_path].iter().chain(&flags));
        ran.exits(0);
        let read = (counted(&device, 2) - before) * 512;
        // The row may cover a part of the time; the series covers all of it.
        let row = ran.record().measurements.swap_remove(0);
        let asked = row.data.ops[&OpKind::Read].series.total().bytes;
        // At the end each worker has one window before it and the next on its way, both doubled by
        // the advice. Less would be wrong, too: what was read once must not answer the next
        // lap from memory.
        let ahead = jobs * 4 * 8 * MIB;
        assert!(
            read > asked / 10 * 9 && read < asked / 10 * 12 + ahead,
            "{engine}, {jobs} jobs: {read} bytes read for {asked} asked"
        );
    }
}

/// The kernel makes one request of neighbours that come in one call, and the rate would be a
/// multiple of what the disk does.
#[test]
fn neighbours_reach_the_disk_one_by_one() {
    needs!("losetup");
    let (device, _memory) = private_loop(64 * MIB);
    // A scheduler may merge what it has to hold back; that is its own matter, and fio's, too.
    std::fs::write(
        format!("/sys/block/{}/queue/scheduler", device.name()),
        "none",
    )
    .unwrap();
    for (engine, walk) in [
        ("uring", &["--depth", "32"][..]),
        ("aio", &["--depth", "32"]),
        ("uring", &["--depth", "32", "--backward"]),
    ] {
        let before = counted(&device, 1);
        let flags = format!("--rw read --bs 4k --engine {engine} --ops 4000 --json --quiet");
        let flags = argv(&flags);
        let ran = program::run(
            ["run", device.node.to_str().unwrap()]
                .iter()
                .chain(&flags)
                .chain(walk),
        );
        assert_eq!(
            (ran.code, ran.record().measurements[0].data.asked.read_bytes),
            (Some(0), 4000 * 4096),
            "{}",
            ran.err
        );
        let merged = counted(&device, 1) - before;
        assert!(
            merged < 40,
            "{engine} {walk:?}: {merged} of 4000 reads were merged"
        );
    }
}

#[test]
fn random_reads_of_a_mapping_move_what_was_asked_for_and_no_more() {
    needs!("losetup");
    let (device, _memory) = private_loop(64 * MIB);
    let ran = diskproof!(
        "run {} --engine mmap --ops 500 --json --quiet",
        device.node.display()
    );
    ran.exits(0);
    let record = ran.record();
    let (m, asked) = (&record.measurements[0], 500 * 8192);
    // Without advice on random access, the kernel would read 128 KiB around each missing page. An
    // offset that repeats may still be in the page cache.
    let read = m.data.device.read_bytes;
    assert!(
        (asked * 9 / 10..asked * 11 / 10).contains(&read),
        "{read} bytes instead of {asked}"
    );
}

#[test]
fn unwritten_blocks_are_detected() {
    needs!("losetup");
    let place = place();
    let said = |target: &Path, flags: &[&str]| claim(&record(target, flags), "unwritten-blocks");
    let (file, device) = (["--time", "1s"], ["--time", "4s"]);
    let sparse = place.path().join("sparse");
    let image = std::fs::File::create(&sparse).unwrap();
    image.set_len(128 * MIB).unwrap();
    let seen = said(&sparse, &file).unwrap();
    assert!(seen.contains("128 MiB of 128 MiB (100 %)"), "{seen}");
    {
        let zeros = Loop::over(&sparse, &["--direct-io=on"]);
        assert!(said(&zeros.node, &device).unwrap().contains("zeros"));
        let node = zeros.node.to_str().unwrap();
        for flags in [
            "curve NODE --points 10 --no-access --expect curve.min>=1MB/s",
            "curve NODE --points 0 --expect access.mean<=1s",
            "ping NODE -c 50 -i 1ms --expect ping.mean<=1s",
        ] {
            let words = flags.replace("NODE", node) + " --no-history --json -q";
            let ran = program::run(argv(&words));
            ran.exits(5);
            let seen = claim(&ran.record(), "unwritten-blocks");
            assert!(seen.unwrap().contains("zeros"), "{flags}");
        }
    }
    match Zram::new(128 * MIB) {
        Some(zram) => assert!(said(&zram.node, &device).unwrap().contains("zeros")),
        None => eprintln!("SKIPPED: unwritten_blocks_are_detected: zram"),
    }

    let written = place.path().join("written");
    random_file(&written, 64 * MIB);
    assert_eq!(said(&written, &file), None);
    let full = Loop::over(&written, &["--direct-io=on"]);
    assert_eq!(said(&full.node, &device), None);
    // Our own scratch file is written first.
    assert_eq!(said(place.path(), &SHORT), None);
}

/// A process that ends with the test.
struct Busy(Child);

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn who_else_uses_the_disk_is_named() {
    needs!("losetup", "mkfs.ext4", "fio");
    // Small: while the kernel initialises an ext4 of another test, a 64th of it proves nothing.
    let disk = Disk::new("ext4", 256 * MIB, "rw");
    let (file, target) = (disk.path().join("junk"), disk.path().join("target"));
    random_file(&target, 64 * MIB);
    let writer = Command::new("fio")
        .args(argv(
            "--name=writer --thread --size=64M --rw=randwrite --bs=1M --direct=1 --ioengine=psync",
        ))
        .args(["--time_based", "--runtime=120s", "--output=/dev/null"])
        .arg(format!("--filename={}", file.display()))
        .current_dir(disk.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let writer = Busy(writer);
    // It writes once its file is laid out.
    assert!(program::eventually(
        || std::fs::metadata(&file).is_ok_and(|file| file.len() == 64 * MIB)
    ));
    let record = record(&target, &["--read-only", "--time", "3s"]);
    let seen = claim(&record, "disturbed").unwrap();
    assert!(seen.contains("Busiest on"), "{seen}");
    // The sentence has room for three processes of the whole machine, where other tests are at work
    // too; the record has more.
    let mut others = record
        .measurements
        .iter()
        .flat_map(|m| &m.data.device.others);
    assert!(
        others.any(|other| other.pid == writer.0.id()
            && other.name == "fio"
            && other.write_bytes > 0),
        "{record:#?}"
    );
    assert_eq!(names(disk.path()), ["junk", "lost+found", "target"]);
}

#[test]
fn undisturbed_run_has_no_disturbed_finding() {
    needs!("losetup");
    let (device, _memory) = private_loop(64 * MIB);
    let record = record(&device.node, &["--time", "3s"]);
    assert_eq!(claim(&record, "disturbed"), None);
    // Its counters are exact.
    assert!(
        record
            .measurements
            .iter()
            .all(|m| m.data.device.accounted == Some(1.0))
    );
    assert_eq!(claim(&record, "served-from-cache"), None);
}

#[test]
fn a_refused_kernel_interface_is_replaced_and_said() {
    let place = place();
    let (uring, aio) = (libc::SYS_io_uring_setup, libc::SYS_io_setup);
    for (forbidden, used, named) in [
        (&[uring][..], EngineKind::Aio, "Linux AIO"),
        (&[uring, aio], EngineKind::Sync, "pread and pwrite"),
    ] {
        let limited = |line: &str| {
            let mut command = program(argv(line));
            forbid(&mut command, forbidden);
            Ran::of(command.current_dir(place.path()))
        };
        let record = limited("check --json --time 1s --size 16M")
            .exits(0)
            .record();
        let mut all = record.measurements.iter();
        let deep = all
            .find(|m| m.data.workload.name == "random-read-d32")
            .unwrap();
        assert_eq!(
            (deep.data.engine.used, deep.data.workload.depth),
            (used, 32)
        );
        let fallbacks = &deep.data.engine.fallbacks;
        assert!(fallbacks[0].why.contains("io_uring"), "{fallbacks:?}");
        let mut causes = fallbacks.iter().map(|one| one.cause);
        assert!(
            causes.all(|cause| cause == FallbackCause::Refused),
            "{fallbacks:?}"
        );
        let seen = claim(&record, "engine-fallback").unwrap();
        assert!(seen.contains("io_uring ") && seen.contains(named), "{seen}");
        // Who insists on it gets no other.
        let insisting = limited("check --engine uring --time 1s --size 16M");
        insisting.exits(4).tells("io_uring").tells("--engine auto");
    }
    assert_eq!(
        claim(&record(place.path(), &SHORT), "engine-fallback"),
        None
    );
}

#[test]
fn a_virtual_disk_is_called_one() {
    let place = place();
    let record = record(place.path(), &SHORT);
    let virtio = record.targets[0]
        .disks()
        .any(|disk| disk.link.as_ref().is_some_and(|link| link.bus == "virtio"));
    match record.host.hypervisor {
        Some(_) if virtio => assert!(
            claim(&record, "virtual-disk")
                .unwrap()
                .contains("virtual disk")
        ),
        _ => {
            eprintln!("SKIPPED: a_virtual_disk_is_called_one: a virtual machine with a virtio disk")
        }
    }
}

#[test]
fn a_disk_faster_than_the_processor_is_called_one() {
    needs!("cp");
    let Some(zram) = Zram::new(64 * MIB) else {
        eprintln!("SKIPPED: a_disk_faster_than_the_processor_is_called_one: zram");
        return;
    };
    let place = place();
    random_file(&place.path().join("content"), 64 * MIB);
    run(
        "cp",
        &[
            place.path().join("content").to_str().unwrap(),
            zram.node.to_str().unwrap(),
        ],
    );
    run("blockdev", &["--flushbufs", zram.node.to_str().unwrap()]);
    // The processor must be ours for a while, which on a busy machine takes more than one try.
    let check = || {
        Ran::from(
            undisturbed([
                "check",
                zram.node.to_str().unwrap(),
                "--time",
                "1s",
                "--json",
            ])
            .output()
            .unwrap(),
        )
    };
    let found = (0..20).any(|_| claim(&check().record(), "cpu-limited").is_some());
    assert!(found, "never told");
    let simulated = diskproof_simdisk::spec::parse("latency=2ms").unwrap();
    let slow =
        diskproof_simdisk::SimDisk::serve(simulated, 64 * MIB, &place.path().join("slow")).unwrap();
    assert_eq!(
        claim(&record(slow.path(), &["--time", "2s"]), "cpu-limited"),
        None
    );
}

#[test]
fn requests_that_were_carried_out_one_by_one_are_found_out() {
    needs!("cp");
    let place = place();
    let simulated = diskproof_simdisk::spec::parse("latency=10ms").unwrap();
    let slow =
        diskproof_simdisk::SimDisk::serve(simulated, 64 * MIB, &place.path().join("slow")).unwrap();
    let disk = slow.path().to_str().unwrap();
    let told = |flags: &[&str]| {
        let common = format!("run {disk} --json --no-history --bs 4k --depth 8 --ops 200");
        let common = argv(&common);
        claim(
            &Ran::of(program(common.iter().chain(flags))).record(),
            "depth-not-held",
        )
    };
    // Through the page cache Linux AIO reads while it submits.
    let one_by_one =
        |flags: &[&str]| told(flags).is_some_and(|claim| claim.contains("1.0 instead of 8"));
    assert!(one_by_one(&["--engine", "aio", "--buffered"]));
    assert!(!one_by_one(&["--engine", "aio"]) && !one_by_one(&["--engine", "sync", "--buffered"]));
}

#[test]
fn disk_doing_much_more_than_requested_is_reported() {
    needs!("losetup");
    let (device, _memory) = private_loop(64 * MIB);
    let node = device.node.to_str().unwrap();
    let told = |flags: &[&str]| {
        let common = format!(
            "run {node} --destroy {} --json --no-history --rw randwrite --buffered --ops 3000",
            device.name()
        );
        let common = argv(&common);
        claim(
            &Ran::of(program(common.iter().chain(flags))).record(),
            "amplified",
        )
    };
    // Each block of 512 bytes makes the kernel read a page of eight, and write it. Where other
    // tests move as much at the same time, they may be the cause.
    let claim = (0..5).find_map(|_| told(&["--bs", "512"])).unwrap();
    assert!(claim.contains("whole page"), "{claim}");
    assert_eq!(told(&["--bs", "4k"]), None);
}
