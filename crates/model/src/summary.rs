//! Every number that more than one printer shows, computed once.

use crate::histogram::LatencyHistogram;
use crate::measurement::OpKind;
use crate::record::{LatencySummary, MeasurementRecord, OpRecord};

impl LatencySummary {
    /// The short form of a distribution.
    pub fn of(histogram: &LatencyHistogram) -> Self {
        Self {
            unit: "ns".to_owned(),
            mean: histogram.mean_ns(),
            min: histogram.min_ns(),
            p50: histogram.percentile(0.50),
            p90: histogram.percentile(0.90),
            p99: histogram.percentile(0.99),
            p99_9: histogram.percentile(0.999),
            p99_99: histogram.percentile(0.9999),
            max: histogram.max_ns(),
            hdr: histogram.to_hdr_base64(),
        }
    }
}

impl MeasurementRecord {
    /// CPU time of this program over wall time; 1.0 is one CPU fully used.
    pub fn cpu_share(&self) -> f64 {
        if self.wall_ns == 0 { 0.0 } else { (self.cpu.user_ns + self.cpu.system_ns) as f64 / self.wall_ns as f64 }
    }

    /// Failed operations of all kinds.
    pub fn errors_total(&self) -> u64 {
        self.ops.values().flat_map(|op| op.errors.values()).sum()
    }

    /// The kinds that a reader looks at: commits where every write is synced, else reads and writes.
    pub fn headline_ops(&self) -> Vec<(OpKind, &OpRecord)> {
        if let Some(commit) = self.ops.get(&OpKind::Commit) {
            return vec![(OpKind::Commit, commit)];
        }
        self.ops.iter().filter(|(kind, _)| matches!(kind, OpKind::Read | OpKind::Write)).map(|(kind, op)| (*kind, op)).collect()
    }

    /// The widest relative half-width among the headline figures' rates; `None` when one of them has none.
    pub fn precision(&self) -> Option<f64> {
        let widths: Option<Vec<f64>> = self.headline_ops().iter().map(|(_, op)| op.iops.relative_half_width()).collect();
        widths?.into_iter().reduce(f64::max)
    }
}
