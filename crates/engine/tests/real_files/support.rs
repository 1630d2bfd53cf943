//! What the tests of this binary share.

use diskproof_device::{Intent, OpenTarget, admit, probe};
use diskproof_engine::Session;
use diskproof_model::measurement::Measurement;
use diskproof_model::plan::{EngineChoice, EngineKind, Stop, Workload};
use diskproof_model::progress::{Control, Progress, Watch};

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

/// Ways to share a total between threads: queue depth and jobs.
pub(crate) const SHARED: [(u32, u32); 3] = [(1, 3), (4, 3), (3, 5)];

pub(crate) fn workload(engine: EngineKind) -> Workload {
    Workload {
        depth: 4,
        stop: Stop {
            ops: Some(500),
            ..Stop::default()
        },
        engine: EngineChoice::Fixed(engine),
        ..Workload::named("test")
    }
}

pub(crate) fn scratch(size_bytes: u64) -> (tempfile::TempDir, OpenTarget) {
    // Not /tmp, which may be a tmpfs: the target directory of the build is on a disk.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let admission = admit(probe(dir.path()).unwrap(), Intent::Scratch { size_bytes }).unwrap();
    (dir, OpenTarget::open(admission).unwrap())
}

pub(crate) fn run(workload: &Workload, target: &mut OpenTarget) -> Measurement {
    let measured = Session::new(7).run(workload, std::slice::from_mut(target), &mut Patient);
    measured.unwrap_or_else(|e| panic!("{e}")).remove(0)
}
