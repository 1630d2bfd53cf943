//! The order of the operations and of their places.

use super::fio_order::{FioOrder, FioSyncCall};
use super::random_run::{RandomRun, RunFollow};
use crate::op::OpKind;
use crate::units::format_bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The order of the operations over the span.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RequestOrder {
    /// Random offsets are multiples of this; without it of the smallest block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align_bytes: Option<u32>,
    /// Operations that share a random offset; absent where each has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random_run: Option<RandomRun>,
    /// Each worker visits every block once before it visits one again, where offsets are uniformly
    /// random. With several block sizes it shortens those that reach a visited block.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each_block_once: bool,
    /// With `each_block_once`: all workers together visit every block once, instead of each of them
    /// by itself, and later parts of the workload go on with the blocks that are left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub workers_share_map: bool,
    /// Kinds of operation that go upwards, block after block, where the others of the mix are
    /// random.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_order: Vec<OpKind>,
    /// Operations of a mix alternate in proportion to their shares, instead of at random.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub even_mix: bool,
    /// Sequential operations go through parts of the span, and skip what is between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_stride: Option<ZoneStride>,
    /// The order of fio, in place of all of the above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fio: Option<Box<FioOrder>>,
}

impl RequestOrder {
    /// The settings in words: conditions of every figure.
    pub(super) fn facts(&self) -> Vec<String> {
        let Self {
            align_bytes,
            random_run,
            each_block_once,
            // The blocks of a pass are the same either way.
            workers_share_map: _,
            in_order,
            // The mix has the same shares either way, and these are named with its operations.
            even_mix: _,
            zone_stride,
            fio,
        } = self;
        let mut facts = Vec::new();
        if fio.is_some() {
            facts.push("each request as fio orders it".to_owned());
        }
        for sync in fio.iter().flat_map(|order| &order.syncs) {
            if let FioSyncCall::FileRange(_) = sync.call {
                facts.push(format!(
                    "sync_file_range(2) after every {} writes, counted as a sync; it makes nothing \
                     durable",
                    sync.writes
                ));
            }
        }
        if let Some(bytes) = *align_bytes {
            let alignment = format_bytes(u64::from(bytes));
            facts.push(format!("offsets at multiples of {alignment}"));
        }
        if let Some(RandomRun { run_ops, follow }) = *random_run {
            facts.push(match follow {
                RunFollow::Sequential => format!("runs of {run_ops} sequential operations"),
                RunFollow::Identical => format!("{run_ops} operations at each offset"),
            });
        }
        if *each_block_once {
            facts.push("each block once per pass".to_owned());
        }
        for kind in in_order {
            facts.push(format!("{} in the order of the blocks", kind.plural()));
        }
        if let Some(zones) = *zone_stride {
            let zone = format_bytes(zones.zone_bytes);
            let skip = format_bytes(zones.skip_bytes);
            facts.push(format!("zones of {zone}, {skip} between them"));
        }
        facts
    }
}

/// Parts of a span in turn, with gaps between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZoneStride {
    /// Bytes of a part.
    pub zone_bytes: u64,
    /// Bytes between two parts.
    pub skip_bytes: u64,
}
