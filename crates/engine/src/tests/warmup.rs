//! Workloads that are used up in their warm-up, and limits that count after it; in virtual time.

use crate::testing::simulate::{FakeDisk, simulate};
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::Workload;
use diskproof_model::progress::{Control, Progress, Watch};
use diskproof_model::stream::Streams;

const MILLISECOND_NS: u64 = 1_000_000;

struct Patient;

impl Watch for Patient {
    fn tick(&mut self, _progress: &Progress<'_>) -> Control {
        Control::Continue
    }
}

/// A request takes a millisecond.
fn measured(workload: &Workload) -> Measurement {
    let disk = FakeDisk {
        service_ns: MILLISECOND_NS,
        jitter_ns: 0,
        channels: 1,
        size_bytes: 64 << 20,
    };
    simulate(workload, disk, 7, &mut Patient).unwrap()
}

fn reads(ops: u64, warmup_ns: u64) -> Workload {
    let mut workload = Workload::named("reads");
    workload.stop.ops = Some(ops);
    workload.warmup_ns = warmup_ns;
    workload
}

#[test]
fn workload_that_ends_in_its_warm_up_reports_everything() {
    let all = measured(&reads(200, 0));
    let warm = measured(&reads(200, 1000 * MILLISECOND_NS));
    for found in [&all, &warm] {
        let read = &found.ops[&OpKind::Read];
        assert_eq!((read.count, read.latency.count()), (200, 200));
        assert_eq!(read.series.total().ops, 200);
        assert_eq!(found.wall_ns, 200 * MILLISECOND_NS);
    }
    // One that goes on measures the rest.
    let rest = measured(&reads(1500, 1000 * MILLISECOND_NS));
    let count = rest.ops[&OpKind::Read].count;
    assert!((450..=520).contains(&count), "{count}");
}

#[test]
fn limit_of_operations_may_count_after_the_warm_up() {
    let mut workload = reads(150, 100 * MILLISECOND_NS);
    workload.shape.ends.ops_after_warmup = true;
    let found = measured(&workload);
    let count = found.ops[&OpKind::Read].count;
    assert!((149..=151).contains(&count), "{count}");
    // It is over before.
    let mut workload = reads(50, 100 * MILLISECOND_NS);
    workload.shape.ends.ops_after_warmup = true;
    assert_eq!(measured(&workload).ops[&OpKind::Read].count, 50);
}

#[test]
fn even_mix_has_the_exact_shares() {
    let mut workload = reads(256, 0);
    workload.streams = Streams::with_reads(625);
    workload.shape.order.even_mix = true;
    let found = measured(&workload);
    let counts = [OpKind::Read, OpKind::Write].map(|kind| found.ops[&kind].count);
    assert_eq!(counts, [160, 96]);
}
