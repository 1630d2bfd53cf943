//! The zones of a rotating disk: its inner tracks hold less, so a load that goes along the surface
//! becomes slower, and each further lap begins at the fast end again.

use crate::estimate::LastingFall;
use crate::mechanics::{ZONES_FACTOR_MAX, are_reported_to_rotate};
use diskproof_model::health::DiskHealth;
use diskproof_model::plan::{Access, Workload};
use diskproof_model::target::{HostFacts, TargetIdentity};

/// A rotating disk has some thirty zones: one step between two of them is at most this factor.
const ZONE_FACTOR: f64 = 1.1;

/// A load that goes along the surface of rotating disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoadAlongZones {
    /// The size of the disks together, in bytes.
    disk_bytes: u64,
}

impl LoadAlongZones {
    /// A load on disks that surely rotate; `None` where it jumps over the surface.
    pub(crate) fn on_platters(workload: &Workload, target: &TargetIdentity) -> Option<Self> {
        match workload.access {
            Access::Sequential | Access::Backward | Access::Stride { .. } => Some(Self {
                disk_bytes: target.disks().map(|disk| disk.size_bytes).sum(),
            }),
            Access::Random { .. } | Access::Zoned { .. } => None,
        }
    }

    /// The same before anything is measured: only the health reports and the kernel show whether
    /// the disks rotate.
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

    /// True if slower zones explain a fall: the further the load went until it, the more they
    /// explain. A load that turns over its span goes no further than that.
    pub(crate) fn explain(&self, fall: &LastingFall, moved_bytes: u64, span_bytes: u64) -> bool {
        let reach_bytes = moved_bytes.min(span_bytes);
        let reach = (reach_bytes as f64 / self.disk_bytes.max(1) as f64).min(1.0);
        fall.before <= (ZONE_FACTOR + (ZONES_FACTOR_MAX - 1.0) * reach) * fall.after
    }
}
