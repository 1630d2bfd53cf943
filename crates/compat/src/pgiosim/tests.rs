use super::*;
use crate::fixture::{directory, file, load, measurement, plan, words};
use crate::load::PlanContext;
use crate::printer::{DropInError, ResultsSoFar, ToolResult};
use diskproof_model::measurement::{OpKind, OpMeasurement};
use diskproof_model::plan::{Access, CachePolicy, SyncCall, SyncPolicy};
use diskproof_model::series::Cell;
use std::path::PathBuf;

#[test]
fn published_command_line_reads_random_blocks_through_the_cache() {
    let load = load(&DROP_IN, "-b 10G -t 4 -c a b");
    assert_eq!(load.head().target.path(), &PathBuf::from("a"));
    assert_eq!(load.head().further_targets, [PathBuf::from("b")]);
    assert!(!load.head().writes);
    let plan = plan(load.as_ref(), &file(1 << 30));
    let workload = &plan.workloads[0];
    assert_eq!(
        (
            workload.block_bytes,
            workload.streams.permille(OpKind::Read)
        ),
        (8192, 1000)
    );
    assert_eq!((workload.workers, workload.stop.ops), (2, Some(655_360)));
    assert!(matches!(workload.access, Access::Random { .. }));
    assert_eq!(workload.cache, CachePolicy::Cached);
    assert!(workload.drops_cache_first);
}

#[test]
fn rewritten_blocks_are_additional_requests_that_need_a_release() {
    let load = load(&DROP_IN, "-s -y -w 25 -o 16k -b 1000 a");
    assert!(load.head().writes);
    let plan = plan(load.as_ref(), &file(1 << 30));
    let workload = &plan.workloads[0];
    assert_eq!(
        (workload.streams.permille(OpKind::Read), workload.stop.ops),
        (800, Some(1250))
    );
    let call = SyncCall::Fsync;
    assert_eq!(workload.sync, SyncPolicy::Every { writes: 1, call });
    assert_eq!(workload.access, Access::Sequential);
    assert_eq!(workload.span.start_bytes, 2 * 8192);
}

#[test]
fn lines_have_the_layout_of_the_tool() {
    let load = load(&DROP_IN, "-w 50 -a 0.5 -b 1500 a");
    let target = file(1 << 30);
    let plan = plan(load.as_ref(), &target);
    let second = 1_000_000_000;
    let mut one = measurement(&plan.workloads[0], OpKind::Read, 1500, 15 * second);
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
        measurements: &[first],
        elapsed_ns: 10 * second,
        unix_ns: 0,
    });
    assert_eq!(
        line,
        "66.67%,   1000 read,    500 written,  800.00kB/sec  100.00 iops\n"
    );
    let end = printer.end(&ToolResult {
        measurements: &[one],
        surface: None,
        interrupted: false,
        error: None,
        unix_ns: 0,
        host_name: "vm",
    });
    assert_eq!(
        end.stdout,
        "**WRITE STALL: a 0.7000\n\
         100.00%,    500 read,    250 written,  800.00kB/sec  100.00 iops\n"
    );
}

#[test]
fn usage_errors_name_the_option() {
    for (line, text) in [
        ("-b 10", "name a file"),
        ("a", "-b is missing"),
        ("-b 1x a", "-b: use a number of blocks"),
        ("-w 101 -b 1 a", "-w 101: use a number from 0 to 100"),
        ("-a never -b 1 a", "-a never: not a number of seconds"),
        ("-z a", "invalid option -- 'z'"),
    ] {
        match (DROP_IN.start)(&words(line)) {
            Err(DropInError::Usage(error)) => assert!(error.contains(text), "{line}: {error}"),
            _ => panic!("{line}: no usage error"),
        }
    }
    let load = load(&DROP_IN, "-b 1 a");
    let context = PlanContext {
        target: &directory(),
        seed: 1,
        argv: &[],
    };
    assert!(load.plan(&context).is_err());
}
