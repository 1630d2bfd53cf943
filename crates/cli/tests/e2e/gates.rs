//! A figure that is not the disk's decides nothing, whoever asks; and a disk that holds less than
//! it claims is named with its size.

use crate::program::{Ran, diskproof, needs, program_path, random_file};
use diskproof_model::expectation::{Expectation, ExpectationOutcome};
use diskproof_simdisk::testbed::{Loop, place, run};
use diskproof_simdisk::{SimDisk, spec};
use std::process::Command;

const MIB: u64 = 1 << 20;

#[track_caller]
fn assert_undecided(expectation: &Expectation, code: &str) {
    assert_eq!(expectation.outcome(), ExpectationOutcome::Undecided);
    let objection = expectation.objection.as_ref().unwrap();
    assert!(objection.contains(code), "{objection}");
    assert!(expectation.observed.is_some());
}

/// The run on a device whose blocks the page cache holds. Another test may empty the caches of the
/// machine meanwhile, so it is tried three times.
fn undecided(node: &str, measure: impl Fn() -> Ran) -> Ran {
    let mut ran = None;
    for _ in 0..3 {
        run("sha256sum", &[node]);
        let latest = measure();
        let is_undecided = latest.code == Some(5);
        ran = Some(latest);
        if is_undecided {
            break;
        }
    }
    ran.expect("it ran three times")
}

#[test]
fn figure_of_a_cache_decides_no_threshold() {
    needs!("losetup", "sha256sum");
    let place = place();
    let image = place.path().join("image");
    random_file(&image, 64 * MIB);
    let device = Loop::over(&image, &["--direct-io=off"]);
    let node = device.node.to_str().unwrap();
    let reads = "--rw read --bs 1M --depth 4 --time 1s --json";
    for threshold in ["read.throughput>=125MB/s", "read.throughput<=1kB/s"] {
        let ran = undecided(node, || {
            diskproof!("run {node} {reads} --expect {threshold}")
        });
        assert_undecided(&ran.exits(5).record().expectations[0], "served-from-cache");
    }
    let quick = "--only sequential-read --time 2s --json";
    let ran = undecided(node, || {
        diskproof!("check {node} {quick} --spec rate=125MB/s")
    });
    assert_undecided(&ran.exits(5).record().expectations[0], "served-from-cache");
    let name = device.name();
    let written = "--rw write --bs 1M --bytes 32m --verify --json";
    let ran = undecided(node, || {
        diskproof!("run {node} {written} --destroy {name} --wipe-unknown")
    });
    let headline = ran.exits(5).record().verdict.unwrap().headline;
    assert!(headline.starts_with("Nothing is proved"), "{headline}");
    assert!(headline.contains("served-from-cache"), "{headline}");
}

#[test]
fn counterfeit_disk_is_named_with_its_real_size() {
    needs!("losetup", "fusermount3");
    for kind in ["wrap", "drop"] {
        let place = place();
        let model = spec::parse(&format!("{kind}=24MiB")).unwrap();
        let disk = SimDisk::serve(model, 96 * MIB, &place.path().join("drive")).unwrap();
        let device = Loop::over(disk.path(), &["--direct-io=on"]);
        let (node, name) = (device.node.to_str().unwrap(), device.name());
        let written = "--rw write --bs 1M --bytes 96m --verify --json";
        let ran = diskproof!("run {node} {written} --destroy {name} --wipe-unknown");
        let record = ran.exits(4).record();
        let verified = record.measurements[0].data.verify.as_ref().unwrap();
        let size = verified.real_size(96 * MIB).unwrap();
        assert_eq!(size.bytes(), 24 * MIB, "{kind}: {verified:?}");
        let finding = &record.findings[0];
        assert_eq!(finding.code, "bad-blocks");
        assert!(finding.claim.contains("claims 96 MiB, but holds 24 MiB"));
        let headline = record.verdict.unwrap().headline;
        assert!(headline.contains("24 MiB of 96 MiB"), "{headline}");
    }
}

#[test]
fn verified_headline_states_its_share_of_the_disk() {
    needs!("losetup", "fusermount3");
    let place = place();
    let model = spec::parse("").unwrap();
    let disk = SimDisk::serve(model, 64 * MIB, &place.path().join("drive")).unwrap();
    let device = Loop::over(disk.path(), &["--direct-io=on"]);
    let (node, name) = (device.node.to_str().unwrap(), device.name());
    let written = "--rw write --bs 1M --bytes 16m --verify --json";
    let ran = diskproof!("run {node} {written} --destroy {name} --wipe-unknown");
    let headline = ran.exits(0).record().verdict.unwrap().headline;
    assert!(headline.starts_with("Verified"), "{headline}");
    assert!(headline.contains("16 MiB, 25 % of"), "{headline}");
}

#[test]
fn plugin_reads_devices_and_files_and_needs_a_path() {
    needs!("losetup");
    let place = place();
    let link = place.path().join("check_diskproof");
    std::os::unix::fs::symlink(program_path(), &link).unwrap();
    let image = place.path().join("image");
    random_file(&image, 32 * MIB);
    let device = Loop::over(&image, &["--direct-io=on"]);
    let before = std::fs::read(&image).unwrap();
    let plugin = |arguments: &[&str]| Ran::of(Command::new(&link).args(arguments));
    for path in [device.node.to_str().unwrap(), image.to_str().unwrap()] {
        plugin(&["-p", path, "-w", "20s", "-c", "50s"]).exits(0);
        plugin(&["-p", path, "-w", "1ns", "-c", "50s", "-v"]).exits(1);
        plugin(&["-p", path, "-w", "1ns", "-c", "2ns", "-H", "db1"])
            .exits(2)
            .shows("db1");
    }
    assert!(std::fs::read(&image).unwrap() == before);
    plugin(&["-w", "20ms"]).exits(3);
    // As Nagios users write milliseconds: 20 s would pass any disk.
    plugin(&["-p", image.to_str().unwrap(), "-w", "20", "-c", "100"]).exits(3);
    plugin(&["-p", image.to_str().unwrap(), "-w", "100ms", "-c", "20ms"]).exits(3);
    plugin(&["-p", "/nonexistent"]).exits(3);
}
