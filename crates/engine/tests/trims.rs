//! Trims of a device and of a file, on a simulated disk that counts the bytes it dropped.
#![allow(clippy::unwrap_used)] // a failed step fails the test

mod support;

use diskproof_device::{Consent, Intent, OpenTarget, Overwriting, admit, probe};
use diskproof_engine::RunError;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Access, EngineChoice, EngineKind, Workload};
use diskproof_model::stream::Streams;
use diskproof_simdisk::testbed::{can_run, place};
use diskproof_simdisk::{Direct, LoopDevice, SimDisk, Stats, spec};
use std::path::Path;
use support::{MIB, after_bytes, refused, run, scratch_in};

const DISK_BYTES: u64 = 16 * MIB;
const BLOCK_BYTES: u32 = 64 << 10;

fn disk(place: &Path) -> SimDisk {
    let model = spec::parse("write-latency=100us,channels=64").unwrap();
    SimDisk::serve(model, DISK_BYTES, &place.join("disk")).unwrap()
}

fn load(bytes: u64, does: &[OpKind]) -> Workload {
    Workload {
        streams: Streams::doing(does),
        access: Access::Sequential,
        block_bytes: BLOCK_BYTES,
        depth: 4,
        stop: after_bytes(bytes),
        ..Workload::named("load")
    }
}

fn with(engine: EngineKind, workload: Workload) -> Workload {
    Workload {
        engine: EngineChoice::Fixed(engine),
        ..workload
    }
}

/// A file or a device, released.
fn released(path: &Path) -> OpenTarget {
    let identity = probe(path).unwrap();
    let consent = Consent {
        overwriting: Overwriting::Allowed,
        destroy: identity.layers.iter().map(|one| one.name.clone()).collect(),
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
        run(&load(DISK_BYTES, &[OpKind::Write]), &mut target);
        let before = disk.stats();
        let trims = with(engine, load(DISK_BYTES / 2, &[OpKind::Trim]));
        let seen = run(&trims, &mut target);
        let op = &seen.ops[&OpKind::Trim];
        let count = DISK_BYTES / 2 / u64::from(BLOCK_BYTES);
        assert_eq!(op.count, count);
        assert_eq!(op.bytes, DISK_BYTES / 2);
        assert_eq!(op.errors.len(), 0);
        assert_eq!(trimmed(&disk, before), (DISK_BYTES / 2, 0), "{engine:?}");
        assert_eq!(seen.device.trim_bytes, Some(DISK_BYTES / 2), "{engine:?}");
        assert_eq!(seen.engine.used, engine);
        let reads = load(DISK_BYTES / 2, &[OpKind::Read]);
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
        let pairs = load(DISK_BYTES, &[OpKind::Trim, OpKind::Write]);
        let seen = run(&with(engine, pairs), &mut released(disk.path()));
        let count = DISK_BYTES / u64::from(BLOCK_BYTES);
        let counts = [OpKind::Trim, OpKind::Write].map(|kind| seen.ops[&kind].count);
        assert_eq!(counts, [count; 2]);
        // What was read by the first requests, which find out how fast the disk is, is put back.
        let (trimmed, written) = trimmed(&disk, before);
        assert_eq!(trimmed, DISK_BYTES, "{engine:?}");
        let most = DISK_BYTES + 2 * MIB;
        assert!(
            (DISK_BYTES..most).contains(&written),
            "{engine:?} {written}"
        );
        let blocks = std::fs::read(disk.path()).unwrap();
        let mut blocks = blocks.chunks(BLOCK_BYTES as usize);
        let is_written = blocks.all(|block| block.iter().any(|byte| *byte != 0));
        assert!(is_written, "{engine:?}");
    }
}

#[test]
fn scratch_file_is_written_again_after_a_trim() {
    let place = place();
    let mut target = scratch_in(place.path(), DISK_BYTES);
    let seen = run(&load(DISK_BYTES, &[OpKind::Trim]), &mut target);
    assert_eq!(seen.ops[&OpKind::Trim].bytes, DISK_BYTES);
    assert_eq!((seen.device.trim_bytes, target.usable_bytes()), (None, 0));
    let zeros = run(&load(DISK_BYTES, &[OpKind::Read]), &mut target).zero_blocks;
    assert_eq!((zeros.zero, target.usable_bytes()), (0, DISK_BYTES));
}

#[test]
fn engines_without_trims_are_refused() {
    let place = place();
    let mut target = scratch_in(place.path(), DISK_BYTES);
    for engine in [EngineKind::Aio, EngineKind::Mmap] {
        let trims = with(engine, load(DISK_BYTES, &[OpKind::Trim]));
        let error = refused(&trims, &mut target);
        assert!(
            matches!(error, RunError::Engine { kind, .. } if kind == engine),
            "{error}"
        );
    }
}
