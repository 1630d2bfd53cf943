//! Trims of a device and of a file, on a simulated disk that counts the bytes it dropped.
#![allow(clippy::unwrap_used)] // a failed step fails the test

use diskproof_device::{Consent, Intent, OpenTarget, Overwriting, admit, probe};
use diskproof_engine::Session;
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::{Access, EngineChoice, EngineKind, Stop, Workload};
use diskproof_model::progress::{Control, Progress, Watch};
use diskproof_model::stream::Streams;
use diskproof_simdisk::testbed::{can_run, place};
use diskproof_simdisk::{Direct, LoopDevice, SimDisk, Stats, spec};
use std::path::Path;

const MIB: u64 = 1 << 20;
const DISK_BYTES: u64 = 16 * MIB;
const BLOCK_BYTES: u32 = 64 << 10;

struct Patient;

impl Watch for Patient {
    fn tick(&mut self, _: &Progress<'_>) -> Control {
        Control::Continue
    }
}

fn disk(place: &Path) -> SimDisk {
    let model = spec::parse("write-latency=100us,channels=64").unwrap();
    SimDisk::serve(model, DISK_BYTES, &place.join("disk")).unwrap()
}

fn load(name: &str, bytes: u64, does: &[OpKind]) -> Workload {
    Workload {
        streams: Streams::doing(does),
        access: Access::Sequential,
        block_bytes: BLOCK_BYTES,
        depth: 4,
        stop: Stop {
            bytes: Some(bytes),
            ..Stop::default()
        },
        ..Workload::named(name)
    }
}

fn run(workload: &Workload, target: &mut OpenTarget) -> Measurement {
    let targets = std::slice::from_mut(target);
    Session::new(7)
        .run(workload, targets, &mut Patient)
        .unwrap()
        .remove(0)
}

/// A file or a device, released.
fn released(path: &Path) -> OpenTarget {
    let identity = probe(path).unwrap();
    let consent = Consent {
        overwriting: Overwriting::Allowed,
        destroy: identity
            .layers
            .iter()
            .map(|layer| layer.name.clone())
            .collect(),
        ..Consent::default()
    };
    OpenTarget::open(admit(identity, Intent::Overwrite(&consent)).unwrap()).unwrap()
}

fn trimmed(disk: &SimDisk, before: Stats) -> (u64, u64) {
    let after = disk.stats();
    (
        after.trimmed_bytes - before.trimmed_bytes,
        after.written_bytes - before.written_bytes,
    )
}

/// The discards of a loop device become holes in the file below, which the disk counts.
#[test]
fn device_drops_what_was_trimmed() {
    if !can_run("device_drops_what_was_trimmed", &["fusermount3", "losetup"]) {
        return;
    }
    let place = place();
    let disk = disk(place.path());
    let device = LoopDevice::attach(disk.path(), Direct::On, 512).unwrap();
    let mut target = released(device.path());
    for engine in [EngineKind::Sync, EngineKind::Uring] {
        run(&load("fill", DISK_BYTES, &[OpKind::Write]), &mut target);
        let before = disk.stats();
        let trims = Workload {
            engine: EngineChoice::Fixed(engine),
            ..load("trim", DISK_BYTES / 2, &[OpKind::Trim])
        };
        let seen = run(&trims, &mut target);
        let op = &seen.ops[&OpKind::Trim];
        let count = DISK_BYTES / 2 / u64::from(BLOCK_BYTES);
        assert_eq!(
            (op.count, op.bytes, op.errors.len()),
            (count, DISK_BYTES / 2, 0)
        );
        assert_eq!(trimmed(&disk, before), (DISK_BYTES / 2, 0), "{engine:?}");
        assert_eq!(seen.device.trim_bytes, Some(DISK_BYTES / 2), "{engine:?}");
        assert_eq!(seen.engine.used, engine);
        let reads = Workload {
            streams: Streams::with_reads(1000),
            ..load("read", DISK_BYTES / 2, &[OpKind::Write])
        };
        let zeros = run(&reads, &mut target).zero_blocks;
        assert_eq!(zeros.zero, zeros.sampled);
    }
}

#[test]
fn each_trimmed_block_is_written_again() {
    if !can_run("each_trimmed_block_is_written_again", &["fusermount3"]) {
        return;
    }
    let place = place();
    let disk = disk(place.path());
    for engine in [EngineKind::Sync, EngineKind::Uring] {
        let before = disk.stats();
        let pairs = Workload {
            engine: EngineChoice::Fixed(engine),
            ..load("trimwrite", DISK_BYTES, &[OpKind::Trim, OpKind::Write])
        };
        let seen = run(&pairs, &mut released(disk.path()));
        let count = DISK_BYTES / u64::from(BLOCK_BYTES);
        let counts = [OpKind::Trim, OpKind::Write].map(|kind| seen.ops[&kind].count);
        assert_eq!(counts, [count; 2]);
        // What was read by the first requests, which find out how fast the disk is, is put back.
        let (trimmed, written) = trimmed(&disk, before);
        assert_eq!(trimmed, DISK_BYTES, "{engine:?}");
        assert!(
            (DISK_BYTES..DISK_BYTES + (2 << 20)).contains(&written),
            "{engine:?} {written}"
        );
        let blocks = std::fs::read(disk.path()).unwrap();
        let mut blocks = blocks.chunks(BLOCK_BYTES as usize);
        assert!(
            blocks.all(|block| block.iter().any(|byte| *byte != 0)),
            "{engine:?}"
        );
    }
}

#[test]
fn scratch_file_is_written_again_after_a_trim() {
    let place = place();
    let intent = Intent::Scratch {
        size_bytes: DISK_BYTES,
    };
    let mut target =
        OpenTarget::open(admit(probe(place.path()).unwrap(), intent).unwrap()).unwrap();
    let seen = run(&load("trim", DISK_BYTES, &[OpKind::Trim]), &mut target);
    assert_eq!(seen.ops[&OpKind::Trim].bytes, DISK_BYTES);
    assert_eq!((seen.device.trim_bytes, target.usable_bytes()), (None, 0));
    let reads = Workload {
        streams: Streams::with_reads(1000),
        ..load("read", DISK_BYTES, &[OpKind::Write])
    };
    let zeros = run(&reads, &mut target).zero_blocks;
    assert_eq!((zeros.zero, target.usable_bytes()), (0, DISK_BYTES));
}

#[test]
fn engines_without_trims_are_refused() {
    let place = place();
    let intent = Intent::Scratch {
        size_bytes: DISK_BYTES,
    };
    let mut target =
        OpenTarget::open(admit(probe(place.path()).unwrap(), intent).unwrap()).unwrap();
    for engine in [EngineKind::Aio, EngineKind::Mmap] {
        let trims = Workload {
            engine: EngineChoice::Fixed(engine),
            ..load("trim", DISK_BYTES, &[OpKind::Trim])
        };
        let targets = std::slice::from_mut(&mut target);
        let error = Session::new(7)
            .run(&trims, targets, &mut Patient)
            .unwrap_err();
        assert!(error.to_string().contains("cannot trim"), "{error}");
    }
}
