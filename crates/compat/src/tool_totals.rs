//! Sums over all workloads of a run, for the status lines of tools.

use crate::figures::{ops_of_kind, timed_requests};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{Measurement, OpKind};

/// The operations of all workloads from the start of the measured time to a moment of it. A status
/// line about an interval prints the difference of two such sums.
#[derive(Debug, Default)]
pub(crate) struct OpsSoFar {
    /// The time of the sums, in nanoseconds of measured time.
    pub at_ns: u64,
    pub reads: u64,
    pub writes: u64,
    pub syncs: u64,
    /// Latencies of reads and writes together, each with the sync that follows it, and with the
    /// time for which it waited for its turn where a rate is given.
    pub latency: LatencyHistogram,
}

impl OpsSoFar {
    /// Reads and writes together.
    pub(crate) fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    /// The sum over all workloads, whose measurements end at this moment.
    pub(crate) fn up_to(measurements: &[Measurement], at_ns: u64) -> Self {
        let mut sum = Self {
            at_ns,
            ..Self::default()
        };
        for measurement in measurements {
            sum.reads += ops_of_kind(measurement, OpKind::Read);
            sum.writes += ops_of_kind(measurement, OpKind::Write);
            sum.syncs += ops_of_kind(measurement, OpKind::Sync);
            for op in timed_requests(measurement) {
                let latency = op.seen_latencies();
                sum.latency.merge(latency);
            }
        }
        sum
    }
}
