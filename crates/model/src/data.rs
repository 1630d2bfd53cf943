//! What a run measured, before any judgement.

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
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunData {
    /// Workloads that have ended.
    pub measurements: Vec<Measurement>,
    /// Slices of a campaign that no row covers, because they were measured again: a burst credit
    /// ended after them.
    pub dropped: Vec<DroppedSlice>,
    /// The survey.
    pub surface: Option<SurfaceMeasurement>,
    /// What a temporary PostgreSQL server measured on the first target.
    pub postgres: Option<PostgresMeasurement>,
    /// Operations on many small files.
    pub files: Option<FilesMeasurement>,
    /// Where each layer of the target is read.
    pub layer_places: Vec<LayerPlace>,
    /// The load of others, which was watched.
    pub observed: Option<ObservedRecord>,
}

/// What was measured and stands in no row and no result of a record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FurtherData {
    /// Slices of a campaign that no row covers, because they were measured again: a burst credit
    /// ended after them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedSlice>,
    /// The survey, without its points and its scan, which stand in its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<SurfaceMeasurement>,
    /// What a temporary PostgreSQL server measured on the first target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postgres: Option<PostgresMeasurement>,
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
