//! Acceptance tests of simulated disks: every kind of counterfeit is found and sized, an honest
//! disk is accepted, and a test that was killed goes on.

use crate::program::{PipedRun, Ran, diskproof, eventually, needs, program};
use diskproof_model::accept::{AcceptRecord, AcceptVerdict, Fraud, SectorContent};
use diskproof_model::record::Record;
use diskproof_simdisk::testbed::{Loop, place};
use diskproof_simdisk::{SimDisk, spec};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// A simulated disk as a block device, in whose folder a history lies.
struct Drive {
    device: Loop,
    disk: SimDisk,
    place: TempDir,
}

impl Drive {
    fn new(model: &str, size_bytes: u64) -> Self {
        let place = place();
        let model = spec::parse(model).unwrap();
        let disk = SimDisk::serve(model, size_bytes, &place.path().join("drive")).unwrap();
        let device = Loop::over(disk.path(), &["--direct-io=on"]);
        Self {
            device,
            disk,
            place,
        }
    }

    fn command(&self, flags: &[&str]) -> Command {
        let node = self.device.node.to_str().unwrap();
        let history = self.history();
        let mut words = vec!["accept", node, "--destroy", self.device.name()];
        words.extend(["--no-health", "--history", history.to_str().unwrap()]);
        words.extend(flags);
        program(words)
    }

    fn accept(&self, flags: &[&str]) -> Ran {
        Ran::of(self.command(flags))
    }

    fn history(&self) -> PathBuf {
        self.place.path().join("history.db")
    }

    /// Journals of tests that were stopped.
    fn journals(&self) -> usize {
        let names = std::fs::read_dir(self.place.path()).unwrap();
        names
            .filter(|name| {
                let name = name.as_ref().unwrap().file_name();
                name.to_string_lossy().contains(".accept-")
            })
            .count()
    }
}

fn accepted(record: &Record) -> &AcceptRecord {
    record.accept().unwrap()
}

#[test]
fn each_counterfeit_is_rejected_and_sized() {
    needs!("losetup", "fusermount3");
    let claimed = 96 * MIB;
    let real = 38 * MIB + 12 * 4096;
    for (model, fraud) in [
        (format!("wrap={real}"), Fraud::Wraps),
        (format!("drop={real}"), Fraud::Drops),
        (format!("fail={real}"), Fraud::Fails),
        (format!("cached={real}/2MiB"), Fraud::Cached),
        (format!("flip={real}"), Fraud::Flips),
        (format!("thin={real}"), Fraud::Thin),
        (format!("slow={real}-{claimed}+40ms"), Fraud::Slow),
    ] {
        let drive = Drive::new(&model, claimed);
        let ran = drive.accept(&["--json"]);
        let record = ran.exits(1).record();
        let figures = &accepted(&record).figures;
        assert_eq!(figures.verdict, AcceptVerdict::Reject, "{model}");
        assert_eq!(figures.fraud, Some(fraud), "{model}: {figures:?}");
        let error = figures.real_bytes.unwrap().abs_diff(real);
        assert!(error <= MIB, "{model}: {error}");
        assert_eq!(record.findings[0].code, "counterfeit-capacity", "{model}");
        assert_eq!(drive.journals(), 0);
    }
}

#[test]
fn probe_rejects_and_sizes_counterfeits_and_accepts_nothing() {
    needs!("losetup", "fusermount3");
    let claimed = 128 * MIB;
    let real = 50 * MIB + 8192;
    for kind in ["wrap", "drop", "fail", "flip"] {
        let drive = Drive::new(&format!("{kind}={real}"), claimed);
        let record = drive.accept(&["--probe", "--json"]).exits(1).record();
        let figures = &accepted(&record).figures;
        assert_eq!(figures.verdict, AcceptVerdict::Reject, "{kind}");
        let error = figures.real_bytes.unwrap().abs_diff(real);
        assert!(error <= MIB, "{kind}: {error} {figures:?}");
    }
    let drive = Drive::new("thin=100MiB", claimed);
    let record = drive.accept(&["--probe", "--json"]).record();
    let figures = &accepted(&record).figures;
    assert_ne!(figures.verdict, AcceptVerdict::Accept);
    let caveats = record.verdict.unwrap().caveats;
    assert!(
        caveats[0].contains("until its flash is full"),
        "{caveats:?}"
    );
}

#[test]
fn honest_disk_is_accepted_and_its_reads_are_proved_by_counters() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("", 64 * MIB);
    let record = drive.accept(&["--json"]).exits(0).record();
    let accept = accepted(&record);
    assert_eq!(accept.figures.verdict, AcceptVerdict::Accept);
    assert_eq!(accept.data.reads.bytes, 64 * MIB);
    assert!(accept.data.device.read_bytes >= 64 * MIB);
    let ran = drive.accept(&["--probe"]);
    assert!([Some(0), Some(5)].contains(&ran.code), "{ran:?}");
}

#[test]
fn disk_with_a_block_that_cannot_be_written_is_rejected_without_a_size() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("eio-write=22581248-22585344", 64 * MIB);
    let record = drive.accept(&["--json"]).exits(1).record();
    let accept = accepted(&record);
    assert_eq!(accept.figures.fraud, None);
    assert_eq!(accept.data.failed_writes_bytes, 4096);
    assert_eq!(record.findings[0].code, "wrong-content");
}

#[test]
fn pass_that_was_killed_goes_on_where_it_was() {
    needs!("losetup", "fusermount3");
    // Some seconds of writes, and as many of reads.
    let drive = Drive::new("bandwidth=16MB,wrap=60MiB", 160 * MIB);
    let mut child = drive.command(&["--quiet"]).spawn().unwrap();
    let is_kept = eventually(|| drive.journals() > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_kept);
    let written = drive.disk.stats().written_bytes;
    assert!(written < 170 * MIB, "{written}");
    let ran = drive.accept(&[]);
    ran.exits(1);
    let first = ran.err.lines().next().unwrap_or_default();
    assert!(first.contains("going on with a test"), "{ran}");
    let all = drive.disk.stats().written_bytes;
    assert!(all - written < 150 * MIB, "{written} {all}");
    let shown = Ran::of(program([
        "show",
        "latest",
        "--json",
        "--history",
        drive.history().to_str().unwrap(),
    ]));
    let record = shown.record();
    let accept = accepted(&record);
    assert_eq!(accept.data.earlier_runs, 1);
    assert_eq!(accept.figures.real_bytes, Some(60 * MIB));
    assert_eq!(drive.journals(), 0);
}

#[test]
fn test_goes_on_only_on_the_disk_that_it_wrote() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("bandwidth=16MB", 160 * MIB);
    drive.accept(&["--resume"]).exits(2);
    let mut child = drive.command(&["--quiet"]).spawn().unwrap();
    assert!(eventually(|| drive.journals() > 0));
    child.kill().unwrap();
    child.wait().unwrap();
    overwrite(&drive.device.node);
    drive.accept(&["--resume"]).exits(3).tells("--restart");
    assert_eq!(drive.journals(), 1);
}

/// Puts data of diskproof on the device that is of another run.
fn overwrite(node: &Path) {
    let mut block = vec![0; MIB as usize];
    let content = SectorContent::new(12345);
    let file = std::fs::File::options().write(true).open(node).unwrap();
    for number in 0..160 {
        content.fill(number * MIB, 0, &mut block);
        file.write_all_at(&block, number * MIB).unwrap();
    }
    file.sync_all().unwrap();
}

#[test]
fn interrupted_test_ends_at_once_and_names_the_way_on() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("bandwidth=8MB", 160 * MIB);
    let mut command = drive.command(&["-v"]);
    let child = PipedRun::of(&mut command);
    child.wait_for_run();
    assert!(eventually(|| {
        drive.disk.stats().written_bytes > 8 * MIB
    }));
    child.interrupt().exits(130).shows("goes on from here");
}

#[test]
fn accept_needs_a_released_block_device() {
    needs!("losetup", "fusermount3");
    let drive = Drive::new("", 32 * MIB);
    let node = drive.device.node.to_str().unwrap();
    diskproof!("accept {node} --no-history").exits(3);
    assert_eq!(drive.disk.stats().written_bytes, 0);
    let directory = drive.place.path().to_str().unwrap();
    diskproof!("accept {directory}")
        .exits(2)
        .tells("whole device");
    let file = drive.place.path().join("file");
    std::fs::write(&file, vec![1; 1 << 20]).unwrap();
    let file = file.to_str().unwrap();
    diskproof!("accept {file} --overwrite")
        .exits(2)
        .tells("whole device");
    drive.accept(&["--dry-run"]).exits(0);
    assert_eq!(drive.disk.stats().written_bytes, 0);
}

#[test]
fn words_of_other_testers_lead_to_accept() {
    for word in ["capacity", "burnin", "f3", "h2testw", "badblocks"] {
        diskproof!("{word}").exits(2).tells("diskproof accept");
    }
}
