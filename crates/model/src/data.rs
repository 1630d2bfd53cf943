//! What a run measured, before any judgement. It can be saved exactly: what is read back is judged
//! the same.

use crate::campaign::DroppedSlice;
use crate::files::FilesMeasurement;
use crate::layers::LayerPlace;
use crate::measurement::Measurement;
use crate::observed::ObservedRecord;
use crate::postgres::PostgresMeasurement;
use crate::surface::SurfaceMeasurement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything that a run measured; a record is derived from it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunData {
    /// Whether latency distributions, longest latencies over time and counters of devices have
    /// only what the rows of the record do not show.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub completes_rows: bool,
    /// Workloads that have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measurements: Vec<Measurement>,
    /// Slices of a campaign that no row covers, because they were measured again: a burst credit
    /// ended after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedSlice>,
    /// The survey.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<SurfaceMeasurement>,
    /// What a temporary PostgreSQL server measured on the first target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postgres: Option<PostgresMeasurement>,
    /// Operations on many small files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FilesMeasurement>,
    /// Where each layer of the target is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layer_places: Vec<LayerPlace>,
    /// The load of others, which was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<ObservedRecord>,
}

impl RunData {
    /// Of workloads alone.
    pub fn of(measurements: Vec<Measurement>) -> Self {
        Self {
            measurements,
            ..Self::default()
        }
    }
}
