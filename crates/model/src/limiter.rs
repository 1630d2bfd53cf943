//! A limiter with a burst credit, as cloud volumes have, with what a run showed of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A token bucket whose credit the run saw end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstCredit {
    /// The target that it limits.
    pub target: usize,
    /// The unit of rate and credit: `1/s` for requests, `B/s` for their bytes.
    pub unit: String,
    /// The rate that it allows for ever.
    pub base: f64,
    /// The highest rate that was seen while there was credit.
    pub burst: f64,
    /// The credit that was used beyond its refill until it ended: requests or bytes.
    pub credit: f64,
    /// True if the bucket may hold more: nothing shows that it was full when it began to empty.
    /// False if it was seen to end again at the same amount, after a pause that gave more.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub credit_is_lower_bound: bool,
    /// Nanoseconds for which the highest rate lasts with this credit.
    pub burst_ns: u64,
    /// Nanoseconds that this credit takes to refill in a pause.
    pub refill_ns: u64,
    /// The measurements that ran at the base rate.
    pub at_base: Vec<usize>,
    /// The measurements whose figures are above the base rate: they were measured wholly or partly
    /// in a burst.
    pub in_burst: Vec<usize>,
    /// True if one of those at the base rate only reads. Where none does, a full write cache looks
    /// the same, unless the refill was seen.
    pub has_reads: bool,
    /// True if it was used up again at the moment that its refill predicts.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub has_refilled: bool,
}
