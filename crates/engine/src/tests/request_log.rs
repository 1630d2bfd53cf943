//! The log of single requests, in virtual time.

use crate::testing::loads::order_of_two_files;
use crate::testing::simulate::{FakeDisk, simulate};
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::Workload;
use diskproof_model::progress::{Control, Progress, Watch};
use diskproof_model::request_log::LoggedCall;

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
        size_bytes: 65_536,
    };
    simulate(workload, disk, 7, &mut Patient).unwrap()
}

#[test]
fn each_request_is_logged_when_it_is_sent() {
    let mut workload = Workload::named("logged");
    workload.stop.ops = Some(20);
    assert_eq!(measured(&workload).request_log, None);
    workload.shape.logs_requests = true;
    let logged = measured(&workload);
    let log = logged.request_log.unwrap();
    assert_eq!((log.requests.len(), log.left_out), (20, 0));
    assert_eq!(logged.ops[&OpKind::Read].count, 20);
    for (index, request) in (0..).zip(&log.requests) {
        assert_eq!(
            (request.call, request.len),
            (LoggedCall::Read, workload.block_bytes)
        );
        assert_eq!(
            request.sent_ns,
            log.requests[0].sent_ns + index * MILLISECOND_NS
        );
    }
}

#[test]
fn syncs_are_logged_between_the_writes() {
    let mut workload = Workload::named("logged");
    let mut order = order_of_two_files();
    order.kinds.remove(0);
    workload.streams = diskproof_model::stream::Streams::with_reads(0);
    workload.shape.order.fio = Some(Box::new(order));
    workload.shape.logs_requests = true;
    workload.stop.ops = Some(8);
    let log = measured(&workload).request_log.unwrap();
    let calls: Vec<LoggedCall> = log.requests.iter().map(|request| request.call).collect();
    let group = [
        LoggedCall::Write,
        LoggedCall::Write,
        LoggedCall::Write,
        LoggedCall::Fsync,
    ];
    assert_eq!(calls, [group, group].concat());
    // The files take turns.
    let offsets: Vec<u64> = log.requests[..3]
        .iter()
        .map(|request| request.offset)
        .collect();
    assert_eq!(offsets, [0, 32_768, 4096]);
}
