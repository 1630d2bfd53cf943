//! Decides whether the zones of a rotating disk explain the fall of a load. Inner tracks hold less,
//! so a load that goes along the surface becomes slower, and each lap begins at the fast end again.

use crate::estimate::LastingFall;
use crate::mechanics::{ZONES_FACTOR_MAX, are_reported_to_rotate};
use diskproof_model::health::DiskHealth;
use diskproof_model::plan::{Access, Workload};
use diskproof_model::target::{HostFacts, TargetIdentity};

/// The rate of one zone of a rotating disk is at most this many times that of the next one: of some
/// thirty zones over a factor of 2.5, a step of average size is 3 %.
const ZONE_FACTOR: f64 = 1.1;

/// A load that goes along the surface of rotating disks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoadAlongZones {
    /// The size of the disks together, in bytes.
    disk_bytes: u64,
    /// The way along the surface for each byte that one of its workers moves.
    way_per_byte: f64,
    /// Workers, each in a part of the span.
    workers: u32,
    /// True if each lap begins at the slow, inner end.
    is_backward: bool,
}

impl LoadAlongZones {
    /// A load on disks that surely rotate; `None` where it jumps over the surface.
    pub(crate) fn on_platters(workload: &Workload, target: &TargetIdentity) -> Option<Self> {
        let way_per_byte = match workload.access {
            Access::Sequential | Access::Backward => 1.0,
            Access::Stride { stride_bytes } => {
                let block_bytes = workload.block_sizes().max().unwrap_or(1);
                stride_bytes as f64 / f64::from(block_bytes.max(1))
            }
            Access::Random { .. } | Access::Zoned { .. } => return None,
        };
        Some(Self {
            disk_bytes: target.disks().map(|disk| disk.size_bytes).sum(),
            way_per_byte,
            workers: workload.workers.max(1),
            is_backward: workload.access == Access::Backward,
        })
    }

    /// A planned load, before anything is measured; `None` also where neither the health reports
    /// nor the kernel show that the disks rotate.
    pub(crate) fn planned(
        workload: &Workload,
        target: &TargetIdentity,
        host: &HostFacts,
        health: &[DiskHealth],
    ) -> Option<Self> {
        if are_reported_to_rotate(target, host, health) {
            Self::on_platters(workload, target)
        } else {
            None
        }
    }

    /// True if slower zones explain a fall after so many bytes: the further the load went before
    /// it, the more they explain. A load that begins its span again goes no further than that.
    pub(crate) fn explain(&self, fall: &LastingFall, moved_bytes: u64, span_bytes: u64) -> bool {
        let workers = f64::from(self.workers);
        let way_bytes = moved_bytes as f64 * self.way_per_byte / workers;
        let lap_bytes = span_bytes as f64 / workers;
        let reach_bytes = if self.is_backward && way_bytes < lap_bytes {
            // It only became faster so far.
            0.0
        } else {
            way_bytes.min(lap_bytes)
        };
        let reach = (reach_bytes / self.disk_bytes.max(1) as f64).min(1.0);
        fall.before <= (ZONE_FACTOR + (ZONES_FACTOR_MAX - 1.0) * reach) * fall.after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    const TB: u64 = 1_000_000_000_000;

    /// True if zones explain a fall to half after so many bytes of a load over 2 TB.
    fn explains(access: Access, workers: u32, moved_bytes: u64) -> bool {
        let record = fixture::record();
        let mut target = record.targets[0].clone();
        for layer in &mut target.layers {
            layer.size_bytes = 2 * TB / record.targets[0].disks().count() as u64;
        }
        let mut workload = record.measurements[0].data.workload.clone();
        workload.access = access;
        workload.workers = workers;
        workload.block_bytes = 65_536;
        let fall = LastingFall {
            at_ns: 0,
            before: 200e6,
            after: 100e6,
        };
        LoadAlongZones::on_platters(&workload, &target)
            .unwrap()
            .explain(&fall, moved_bytes, 2 * TB)
    }

    #[test]
    fn zones_explain_what_a_load_went_along() {
        let stride = Access::Stride {
            stride_bytes: 1 << 20,
        };
        assert!(!explains(Access::Sequential, 1, TB / 8));
        assert!(explains(Access::Sequential, 1, 2 * TB));
        // Each sixteenth block: over the whole surface.
        assert!(explains(stride, 1, TB / 8));
        // Each of four workers went along a quarter.
        assert!(!explains(Access::Sequential, 4, 2 * TB));
        // The first lap goes from the slow end to the fast one.
        assert!(!explains(Access::Backward, 1, 19 * TB / 10));
        assert!(explains(Access::Backward, 1, 21 * TB / 10));
    }
}
