//! Tells which operations of a measurement fio's output counts: the kinds of each direction, and
//! whether their latencies and rates count with them.

use diskproof_model::measurement::{Measurement, OpKind, OpMeasurement};
use diskproof_model::rw::FIO_DIRECTIONS;

// Requests of another kind would be in no entry.
const _: () = assert!(
    OpKind::REQUESTS.len() == FIO_DIRECTIONS.len(),
    "a kind of request has no place in fio's output"
);

/// The kind of the operations that fio counts as writes: commits in a measurement that has no other
/// writes.
pub(super) fn write_kind(measurement: &Measurement) -> OpKind {
    if measurement.ops.contains_key(&OpKind::Write) {
        OpKind::Write
    } else {
        OpKind::Commit
    }
}

/// The kinds of operations that an entry counts, in the order of its directions: reads, writes,
/// trims. A write with a sync of its own is both a write and a commit, and counts once.
pub(super) fn counted_kinds(measurement: &Measurement) -> [OpKind; FIO_DIRECTIONS.len()] {
    [OpKind::Read, write_kind(measurement), OpKind::Trim]
}

/// The measured operations of these kinds.
pub(super) fn ops_of_kinds<'m>(
    measurement: &'m Measurement,
    kinds: &[OpKind],
) -> Vec<&'m OpMeasurement> {
    let mut ops = Vec::new();
    for kind in kinds {
        ops.extend(measurement.ops.get(kind));
    }
    ops
}

/// True of a job that was done before its warm-up ended. As in fio, its operations count, and have
/// no latencies and no rates over time.
pub(super) fn is_done_in_warmup(measurement: &Measurement) -> bool {
    let warmup_ns = measurement.workload.warmup_ns;
    let Some(began_ns) = measurement.began_ns else {
        return false;
    };
    // Its measured time begins either at once or after the warm-up, give or take the start of a
    // thread. Half of the warm-up lies between the two.
    warmup_ns > 0 && measurement.start_ns < began_ns + warmup_ns / 2
}
