//! The rarely used settings of a workload beyond its blocks, depth and rate: order, start times,
//! early ends, content and threads. A plain workload has none of them.

mod content;
mod ends;
mod fio_check;
mod fio_order;
mod latency_target;
mod order;
mod random_run;
mod starts;
mod threads;

pub use content::{BlockContent, BlockPattern, PATTERN_BYTES_MAX, PatternFiles, WriteContent};
pub use ends::{EarlyEnds, FloorUnit, RateFloor, SteadyEnd, SteadyFigure, SteadyTest};
pub use fio_check::{FIO_FILES_MAX, FIO_UNITS_MAX};
pub use fio_order::{
    FileService, FioDraws, FioFiles, FioGenerator, FioKind, FioLaw, FioLawKind, FioOrder,
    FioPlaceLaw, FioPlaceZone, FioPlaces, FioSeed, FioSizeShare, FioSizes, FioSync, FioSyncCall,
    FioZoneSize, FioZones,
};
pub use latency_target::LatencyTarget;
pub use order::{RequestOrder, ZoneStride};
pub use random_run::{RandomRun, RunFollow};
pub use starts::{Arrivals, FlowShare, KindRate, StartTimes, ThinkCount, ThinkTime};
pub use threads::{AccessAdvice, IoPriority, ThreadScheduling, ThreadSetup, WriteLife};

use crate::units::format_latency;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rarely used part of a workload.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LoadShape {
    /// The choice of the next operation and of its place.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub order: RequestOrder,
    /// The starts of operations.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub starts: StartTimes,
    /// Conditions that end it early.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub ends: EarlyEnds,
    /// The content that is written and compared; new random data each time where nothing is set.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub content: BlockContent,
    /// The set-up of the threads that carry the operations out.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub threads: ThreadSetup,
    /// True if each request is kept with its time, for the log of a tool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub logs_requests: bool,
    /// True if what the syncs in between have left is synced at the end. The time of that counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub final_sync: bool,
    /// The latency to keep to, where the workload has one of the depths of a search for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_target: Option<LatencyTarget>,
}

impl LoadShape {
    /// True if nothing is set that changes which operations are done.
    pub fn is_plain(&self) -> bool {
        let plain = Self {
            threads: ThreadSetup {
                ordinary_pages: self.threads.ordinary_pages,
                ..ThreadSetup::default()
            },
            logs_requests: self.logs_requests,
            ..Self::default()
        };
        *self == plain
    }

    /// The settings in words: conditions of every figure.
    pub fn facts(&self) -> Vec<String> {
        let mut facts = self.order.facts();
        facts.extend(self.starts.facts());
        facts.extend(self.ends.facts());
        facts.extend(self.content.facts());
        facts.extend(self.threads.facts());
        if self.logs_requests {
            facts.push("each request logged".to_owned());
        }
        if self.final_sync {
            facts.push("final sync".to_owned());
        }
        if let Some(target) = self.latency_target {
            let latency = format_latency(target.latency_ns);
            facts.push(format!("target: {} % within {latency}", target.percent));
        }
        facts
    }
}
