//! The result of searches for the highest rate at several shares of reads. Each search is a ray
//! from the origin of the plane of reads and writes per second. The ends of the rays are the
//! boundary within which the target keeps its promise.

use crate::digits::to_a_percent;
use crate::estimate::Estimate;
use crate::rate::{LoadData, LoadFigures};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fewer rays than this, or not more than half of them, show no boundary.
pub const BOUNDARY_RAYS_MIN: usize = 3;

/// The searches of a plan that has several, and what they say together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RaysRecord {
    /// The searches, each along a ray.
    pub data: RaysData,
    /// The answers, which follow from the searches.
    pub figures: RaysFigures,
}

/// The trials of each search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RaysData {
    /// One for each searched workload, in the order of the plan.
    pub rays: Vec<LoadData>,
}

/// The answers of all searches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RaysFigures {
    /// One for each searched workload, in the order of the plan.
    pub rays: Vec<RayFigures>,
    /// The boundary; absent where too few searches are decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boundary: Option<RayBoundary>,
}

/// A ray: a share of reads, and the highest rate at it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RayFigures {
    /// Reads among all requests, from 0 to 1.
    pub read_share: f64,
    /// The answer of the search along the ray.
    pub load: LoadFigures,
}

impl RayFigures {
    /// The name of its figures in tables and thresholds, such as `load-reads-50`.
    pub fn subject(&self) -> String {
        format!("load-reads-{}", self.read_percent())
    }

    /// Its share of reads in percent, as pages print it.
    pub fn read_percent(&self) -> String {
        to_a_percent(self.read_share * 100.0)
    }

    /// True if the ray ends at a known place: its promise holds below, and breaks above.
    pub fn is_decided(&self) -> bool {
        self.load.outcome.has_both_ends()
    }
}

/// The straight line through the ends of the decided rays: a request of each kind takes its share
/// of the target's time, whatever the others are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RayBoundary {
    /// The number of rays that end at a known place.
    pub rays: usize,
    /// Reads per second without writes.
    pub reads: Estimate,
    /// Writes per second without reads.
    pub writes: Estimate,
    /// Reads that one write takes the place of.
    pub write_cost: Estimate,
    /// The farthest place at which the rays leave the line by more than chance explains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bend: Option<RayBend>,
}

/// A ray that ends beyond the straight line, or before it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RayBend {
    /// Reads among its requests, from 0 to 1.
    pub read_share: f64,
    /// The rate of the ray over that of the line, minus 1.
    pub deviation: f64,
}
