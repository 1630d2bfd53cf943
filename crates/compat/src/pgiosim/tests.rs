use super::*;
use crate::fixture::{file, load, measurement, plan, result};
use crate::printer::ResultsSoFar;
use diskproof_model::measurement::{OpKind, OpMeasurement};
use diskproof_model::series::Cell;

#[test]
fn lines_have_the_layout_of_the_tool() {
    let load = load(&DROP_IN, "-w 50 -a 0.5 -b 1500 a");
    let target = file(1 << 30);
    let plan = plan(load.as_ref(), &target);
    let second = 1_000_000_000;
    let mut one = measurement(&plan.workloads()[0], OpKind::Read, 1500, 15 * second);
    let mut written = OpMeasurement {
        count: 750,
        ..OpMeasurement::default()
    };
    let cell = |ops, latency_max_ns| Cell {
        ops,
        latency_max_ns,
        ..Cell::default()
    };
    for at in 0..15 {
        let slow_ns = if at == 3 { 700_000_000 } else { 1_000_000 };
        let reads = &mut one.ops.get_mut(&OpKind::Read).unwrap().series;
        reads.add(at * second, &cell(100, 1_000_000), 8192);
        written.series.add(at * second, &cell(50, slow_ns), 8192);
    }
    one.ops.insert(OpKind::Write, written);
    let mut printer = load.printer(&plan, &target);
    assert_eq!(
        printer.begin(),
        "Write Mode: 50%\nStallcheck at 0.500000\nArg: 1\nRead 1500 blocks\nAdded a\n"
    );
    let mut first = one.clone();
    first.ops.get_mut(&OpKind::Read).unwrap().count = 1000;
    first.ops.get_mut(&OpKind::Write).unwrap().count = 500;
    let line = printer.so_far(&ResultsSoFar {
        disks: &[],
        measurements: &[first],
        elapsed_ns: 10 * second,
        unix_ns: 0,
    });
    let so_far = "66.67%,   1000 read,    500 written,  800.00kB/sec  100.00 iops\n";
    assert_eq!(line, so_far);
    let end = "**WRITE STALL: a 0.7000\n\
               100.00%,    500 read,    250 written,  800.00kB/sec  100.00 iops\n";
    assert_eq!(printer.end(&result(&[one])).stdout, end);
}

/// As in pgiosim, whose two readings of the clock are around both calls.
#[test]
fn stall_includes_the_fsync_after_the_write() {
    let load = load(&DROP_IN, "-w 50 -y -a 0.5 -b 1500 a");
    let target = file(1 << 30);
    let plan = plan(load.as_ref(), &target);
    let second = 1_000_000_000;
    let mut one = measurement(&plan.workloads()[0], OpKind::Write, 750, 15 * second);
    let mut committed = one.ops[&OpKind::Write].clone();
    let cell = |latency_max_ns| Cell {
        ops: 50,
        latency_max_ns,
        ..Cell::default()
    };
    let written = &mut one.ops.get_mut(&OpKind::Write).unwrap().series;
    written.add(0, &cell(1_000_000), 8192);
    committed.series.add(0, &cell(700_000_000), 8192);
    one.ops.insert(OpKind::Commit, committed);
    let end = load.printer(&plan, &target).end(&result(&[one])).stdout;
    assert!(end.starts_with("**WRITE STALL: a 0.7000\n"), "{end}");
}
