//! Says whether a workload waited for processors so long that its figures say little about its
//! disk.

use diskproof_model::finding::{Finding, Meaning, SharedResource};
use diskproof_model::record::Record;
use diskproof_model::row::Row;

/// From this share of its time on, waiting explains any figure: what answers for the disk waits for
/// the same processors, in the kernel or the host, and that is counted nowhere. On two processors
/// with twelve busy programs, a row that waited for 72 % showed 306/s of 12,600/s, and 40 to 57 ms
/// instead of 0.3 ms.
const SHARE_THAT_EXPLAINS_ALL: f64 = 0.2;

/// True if the waits of a workload explain whatever it showed below what its disk can do.
pub(crate) fn explains_all(row: &Row) -> bool {
    row.data.starved.share >= SHARE_THAT_EXPLAINS_ALL
}

/// The finding that a measurement waited for a processor; `None` where it did not, and where the
/// program itself used the processors up.
pub(crate) fn finding(record: &Record, measurement: usize) -> Option<&Finding> {
    record.findings.iter().find(|finding| {
        let is_waiting = match finding.says {
            Meaning::OtherLoad { used } => used == SharedResource::Processors,
            _ => false,
        };
        is_waiting && finding.is_serious() && finding.concerns(measurement)
    })
}
