//! Workloads measured by the engine on a simulated disk in virtual time: each kind of durability,
//! load and end.

use diskproof_analysis::fixture::{self, FixtureRun};
use diskproof_engine::{FakeDisk, simulate};
use diskproof_model::measurement::Measurement;
use diskproof_model::op::OpKind;
use diskproof_model::plan::*;
use diskproof_model::progress::{Control, Progress, Watch};
use diskproof_model::stream::Streams;

/// Four requests at a time, 500 to 600 µs each.
const DISK: FakeDisk = FakeDisk {
    service_ns: 500_000,
    jitter_ns: 100_000,
    channels: 4,
    size_bytes: 1 << 30,
};

struct Patient;

impl Watch for Patient {
    fn tick(&mut self, _: &Progress<'_>) -> Control {
        Control::Continue
    }
}

/// A workload of two seconds.
fn workload(name: &str, change: impl FnOnce(&mut Workload)) -> Workload {
    let mut workload = Workload {
        stop: Stop {
            time_ns: Some(2_000_000_000),
            ..Stop::default()
        },
        warmup_ns: 100_000_000,
        ..Workload::named(name)
    };
    change(&mut workload);
    workload
}

fn measured(workload: &Workload) -> Measurement {
    simulate(workload, DISK, 7, &mut Patient).unwrap()
}

/// A run of these workloads.
fn run(workloads: Vec<Workload>) -> FixtureRun {
    let mut facts = fixture::run().facts;
    let argv = vec!["diskproof".to_owned(), "run".to_owned()];
    facts.plan.origin = Origin::new("run", argv);
    let measurements = workloads.iter().map(measured).collect();
    *facts.plan.workloads_mut() = workloads;
    FixtureRun {
        facts,
        measurements,
    }
}

fn loads() -> Vec<Workload> {
    let mut all = Vec::new();
    for (direction, read_permille) in [("read", 1000), ("write", 0), ("mix", 700)] {
        for depth in [1, 16] {
            all.push(workload(&format!("rand{direction}-d{depth}"), |w| {
                (w.streams, w.depth) = (Streams::with_reads(read_permille), depth);
            }));
        }
        all.push(workload(&format!("sequential-{direction}"), |w| {
            (w.streams, w.depth) = (Streams::with_reads(read_permille), 8);
            (w.access, w.block_bytes) = (Access::Sequential, 1 << 20);
        }));
        all.push(workload(&format!("paced-{direction}"), |w| {
            (w.streams, w.depth, w.rate) = (Streams::with_reads(read_permille), 4, Some(1000.0));
        }));
    }
    all
}

fn commits() -> Vec<Workload> {
    let every = |writes| SyncPolicy::Every {
        writes,
        call: SyncCall::Fdatasync,
    };
    let with = |flag| SyncPolicy::WithWrite { flag };
    let policies = [
        ("none", SyncPolicy::None),
        ("at-end", SyncPolicy::AtEnd),
        ("every-1", every(1)),
        ("every-8", every(8)),
        ("dsync", with(WriteFlag::OpenDsync)),
        ("sync", with(WriteFlag::OpenSync)),
    ];
    let mut all = Vec::new();
    for (name, sync) in policies {
        for (load, read_permille) in [("write", 0), ("mix", 500)] {
            all.push(workload(&format!("{load}-{name}"), |w| {
                (w.streams, w.sync) = (Streams::with_reads(read_permille), sync);
            }));
        }
    }
    all
}

fn trims() -> Vec<Workload> {
    let pair = [OpKind::Trim, OpKind::Write];
    let modes = [("only", &pair[..1]), ("pairs", &pair[..])];
    modes
        .into_iter()
        .map(|(name, does)| {
            workload(&format!("trims-{name}"), |w| {
                (w.streams, w.depth) = (Streams::doing(does), 4);
            })
        })
        .collect()
}

fn ends() -> Vec<Workload> {
    let end = |name: &str, stop: Stop| workload(name, |w| w.stop = stop);
    vec![
        end(
            "bytes",
            Stop {
                bytes: Some(8 << 20),
                ..Stop::default()
            },
        ),
        end(
            "operations",
            Stop {
                ops: Some(999),
                ..Stop::default()
            },
        ),
    ]
}

/// Each run with its name.
pub(crate) fn runs() -> [(&'static str, FixtureRun); 4] {
    [
        ("loads", run(loads())),
        ("commits", run(commits())),
        ("trims", run(trims())),
        ("ends", run(ends())),
    ]
}
