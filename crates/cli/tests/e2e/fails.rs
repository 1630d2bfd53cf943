//! A disk that fails during a run: what failed is a fact of the record, wherever it happens.

use crate::program::hanging_disk::{HangingDisk, Running};
use crate::program::{Ran, argv, needs, program};
use diskproof_model::finding::Severity;
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{Disk, run};

/// More requests than any preparation needs.
const REQUESTS: u64 = 300;

fn assert_io_errors(record: &Record) {
    let finding = record
        .findings
        .iter()
        .find(|finding| finding.code == "io-errors")
        .unwrap_or_else(|| panic!("{:?} {:?}", record.ended_early, record.findings));
    assert_eq!(finding.severity, Severity::Failure);
    assert!(record.partial);
}

/// The operations on files fail, and later the filesystem is read-only: both are the disk's doing.
#[test]
fn disk_that_fails_under_files_is_reported_now_and_by_each_later_run() {
    needs!("losetup", "mkfs.ext4", "fusermount3");
    let patient = HangingDisk::filesystem();
    let directory = patient.directory().display().to_string();
    let words = format!("files {directory} --fsync both --time 30s");
    let mut running = Running::start(patient.place.path(), &argv(&words), "60s");
    patient.after(REQUESTS);
    patient.disk.vanish();
    let (_, record) = running.results();
    assert_io_errors(&record);
    let why = record.ended_early.clone().unwrap();
    let stays = patient.directory().join(".diskproof-files").exists();
    assert_eq!(!stays, why.contains("are removed"), "{why}");
    running.exit_after_answer(&patient, 4);
    for verb in ["run --rw randwrite --bs 8k", "ping -c 3", "files"] {
        let (name, flags) = verb.split_once(' ').unwrap_or((verb, ""));
        let words = format!("{name} {directory} {flags} --json");
        let ran = Ran::of(program(argv(&words)));
        let record = ran.exits(4).record();
        assert!(record.failed.is_some(), "{words}: {}", ran.err);
        assert_io_errors(&record);
    }
}

/// An administrator has made it read-only: nothing has failed, and there is no record.
#[test]
fn filesystem_that_is_mounted_read_only_has_not_failed() {
    needs!("losetup", "mkfs.ext4");
    let disk = Disk::in_memory("ext4", 256 << 20);
    let directory = disk.path().to_str().unwrap();
    run("mount", &["-o", "remount,ro", directory]);
    let words = format!("run {directory} --rw randread --size 16M --time 1s --json");
    let ran = Ran::of(program(argv(&words)));
    ran.exits(3).shows_nothing();
}
