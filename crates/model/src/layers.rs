//! The layers between a file and its disk, each measured on the same blocks, and what each of them
//! costs.

use crate::target::LayerKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The layers that a run measures, and those that it cannot read; from the file down to the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayersPlan {
    /// The layers, the highest first.
    pub layers: Vec<PlannedLayer>,
    /// The reason why they end above the disk; absent where they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unresolved: Option<String>,
}

impl LayersPlan {
    /// The layers that are measured: the targets.
    pub fn measured(&self) -> impl Iterator<Item = &PlannedLayer> {
        self.layers.iter().filter(|layer| layer.target.is_some())
    }
}

/// One of the layers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedLayer {
    /// The layer in words: `file on ext4`, `nvme0n1p2`, `dm-0 (crypt data)`.
    pub name: String,
    /// The directory of the scratch file, the file, or the node of the device.
    pub path: String,
    /// The kind of device; absent of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_kind: Option<LayerKind>,
    /// Index of its target; absent where it is not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<usize>,
    /// The reason why it is not measured; absent where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<SkippedLayer>,
    /// The number of devices that the layer above spreads its blocks over. This is the first of
    /// them, and the only one that is measured.
    pub one_of: u32,
}

/// The reason why a layer is not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedLayer {
    /// The reason, one clause.
    pub why: String,
    /// The command that measures it all the same, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// The blocks at which a layer was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerPlace {
    /// Index of its target.
    pub target: usize,
    /// Start of the span, in bytes.
    pub start_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u64,
    /// The relation of these blocks to those that the layers above read.
    pub blocks: BlockMatch,
    /// Blocks that were read through the layer above and through this one, to compare their
    /// content.
    pub compared: u32,
    /// The reason why they are not known to be the same; absent where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The relation of the blocks of a layer to those that the layers above read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BlockMatch {
    /// The highest layer, which says where to read.
    Top,
    /// The kernel says where they lie, and sampled blocks hold the same data.
    Same,
    /// The kernel says where they lie. Their data cannot be compared: the layer above encrypts it.
    Mapped,
    /// Nothing says where they lie: a span of the same length was read.
    Unknown,
}

/// The layers of a run, and what each costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayersRecord {
    /// The blocks at which each measured layer was read, the highest first.
    pub places: Vec<LayerPlace>,
    /// Per workload and measured layer, the highest first; empty where nothing was measured.
    pub costs: Vec<LayerCost>,
}

/// The cost of a layer in a workload: its own figures without those of the layer below.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerCost {
    /// Name of the workload.
    pub workload: String,
    /// Index of the layer's target.
    pub target: usize,
    /// Index of the target that is the next measured layer below; absent of the lowest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<usize>,
    /// Median latency of the layer minus that of the layer below, from slices that followed each
    /// other, in nanoseconds; of the lowest layer, its own median latency.
    pub own_time: LayerDifference,
    /// The difference as a share of the median latency of the highest layer.
    pub share: LayerDifference,
    /// Rate of the layer over the rate of the layer below, minus one; absent of the lowest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_change: Option<LayerDifference>,
    /// The meaning of the difference.
    pub meaning: CostMeaning,
}

impl LayerCost {
    /// The own time as a part of the latency of the highest layer, from 0 to 1. `None` where the
    /// layers are surely no parts of a whole: a layer that answers from a cache is faster than the
    /// one below it, whose own time is then more than the whole. `None` also where the interval
    /// of the share is wider than the whole, so that every part is possible.
    pub fn part_of_whole(&self) -> Option<f64> {
        let slack = self.share.half_width_95.unwrap_or(0.0);
        let share = self.share.difference;
        let is_unknown = 2.0 * slack > 1.0;
        if is_unknown || self.exceeds_whole() || share + slack < 0.0 {
            return None;
        }
        Some(share.clamp(0.0, 1.0))
    }

    /// Returns `true` if the own time is surely more than the latency of the highest layer, which
    /// then answers from a cache and does not wait for this one.
    pub fn exceeds_whole(&self) -> bool {
        let slack = self.share.half_width_95.unwrap_or(0.0);
        self.share.difference - slack > 1.0
    }
}

/// A difference between two layers, which may be negative, and its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerDifference {
    /// Pairs of slices behind it.
    pub n: u64,
    /// The layer's figure minus that of the layer below.
    pub difference: f64,
    /// Half-width of the 95 % interval; `null` when there was too little to tell.
    pub half_width_95: Option<f64>,
}

impl LayerDifference {
    /// The largest difference, up or down, that the interval holds; `None` without an interval.
    pub fn bound(&self) -> Option<f64> {
        Some(self.difference.abs() + self.half_width_95?)
    }
}

/// The meaning of a difference between a layer and the one below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostMeaning {
    /// The lowest layer: there is no difference.
    Lowest,
    /// The cost is real: both layers read the same blocks, and the 95 % interval excludes zero.
    Real,
    /// The 95 % interval holds zero: no difference larger than it.
    Noise,
    /// The two do not read the same blocks, or the layer below is one of several devices.
    OtherBlocks,
    /// Too few slices to tell.
    Unknown,
}
