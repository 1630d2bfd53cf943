//! What the tests of the engine on real files share.
#![allow(dead_code)] // no binary of tests needs all of it

use diskproof_device::{Intent, OpenTarget, admit, probe};
use diskproof_engine::{RunError, Session};
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::{
    Access, Distribution, EngineChoice, EngineKind, Span, Stop, SyncCall, SyncPolicy, Workload,
};
use diskproof_model::progress::{Control, Progress, Watch};
use std::path::Path;

pub(crate) struct Patient;

impl Watch for Patient {
    fn tick(&mut self, _: &Progress<'_>) -> Control {
        Control::Continue
    }
}

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) const ENGINES: [EngineKind; 5] = [
    EngineKind::Uring,
    EngineKind::Aio,
    EngineKind::Sync,
    EngineKind::Mmap,
    EngineKind::Null,
];

/// Those that submit requests by system calls.
pub(crate) const CALLING: [EngineKind; 3] = [EngineKind::Uring, EngineKind::Aio, EngineKind::Sync];

/// Ways to share a total between threads: queue depth and jobs.
pub(crate) const SHARED: [(u32, u32); 3] = [(1, 3), (4, 3), (3, 5)];

pub(crate) const UNIFORM: Access = Access::Random {
    distribution: Distribution::Uniform,
};

pub(crate) fn after_ops(count: u64) -> Stop {
    Stop {
        ops: Some(count),
        ..Stop::default()
    }
}

pub(crate) fn after_bytes(bytes: u64) -> Stop {
    Stop {
        bytes: Some(bytes),
        ..Stop::default()
    }
}

pub(crate) fn after_ns(ns: u64) -> Stop {
    Stop {
        time_ns: Some(ns),
        ..Stop::default()
    }
}

pub(crate) fn span(start_bytes: u64, length_bytes: u64) -> Span {
    Span {
        start_bytes,
        length_bytes: Some(length_bytes),
    }
}

pub(crate) fn every(writes: u32, call: SyncCall) -> SyncPolicy {
    SyncPolicy::Every { writes, call }
}

pub(crate) fn workload(engine: EngineKind) -> Workload {
    Workload {
        depth: 4,
        stop: after_ops(500),
        engine: EngineChoice::Fixed(engine),
        ..Workload::named("test")
    }
}

/// A scratch file in this directory.
pub(crate) fn scratch_in(place: &Path, size_bytes: u64) -> OpenTarget {
    let admission = admit(probe(place).unwrap(), Intent::Scratch { size_bytes }).unwrap();
    OpenTarget::open(admission).unwrap()
}

/// A scratch file and its directory.
pub(crate) fn scratch(size_bytes: u64) -> (tempfile::TempDir, OpenTarget) {
    // Not /tmp, which may be a tmpfs: the target directory of the build is on a disk.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let target = scratch_in(dir.path(), size_bytes);
    (dir, target)
}

/// Runs a workload, watched.
pub(crate) fn watched(
    workload: &Workload,
    target: &mut OpenTarget,
    watch: &mut dyn Watch,
) -> Result<Measurement, RunError> {
    let measured = Session::new(7).run(workload, std::slice::from_mut(target), watch)?;
    Ok(measured.into_iter().next().expect("one target"))
}

pub(crate) fn run(workload: &Workload, target: &mut OpenTarget) -> Measurement {
    watched(workload, target, &mut Patient).unwrap_or_else(|error| panic!("{error}"))
}

/// Why a workload is not run.
pub(crate) fn refused(workload: &Workload, target: &mut OpenTarget) -> RunError {
    watched(workload, target, &mut Patient).unwrap_err()
}
