//! What a run measured, before any judgement.

use crate::accept::AcceptMeasurement;
use crate::campaign::{DroppedSlice, MovedBeside};
use crate::files::FilesMeasurement;
use crate::health::CountedDisk;
use crate::layers::LayerPlace;
use crate::measurement::Measurement;
use crate::observed::ObservedRecord;
use crate::postgres::PostgresMeasurement;
use crate::rate::RateTrial;
use crate::surface::SurfaceMeasurement;
use crate::together::TogetherRecord;

/// Everything that a run measured; a record is derived from it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunData {
    /// Workloads that have ended.
    pub measurements: Vec<Measurement>,
    /// Slices of a campaign that no row covers, because they were measured again: a burst credit
    /// ended after them.
    pub dropped: Vec<DroppedSlice>,
    /// What other sides of a comparison moved on the disk of the only target.
    pub beside: Vec<MovedBeside>,
    /// The survey.
    pub surface: Option<SurfaceMeasurement>,
    /// The rates that were offered.
    pub trials: Vec<RateTrial>,
    /// What a temporary PostgreSQL server measured on the first target.
    pub postgres: Option<PostgresMeasurement>,
    /// An acceptance test.
    pub accept: Option<AcceptMeasurement>,
    /// Operations on many small files.
    pub files: Option<FilesMeasurement>,
    /// Where each layer of the target is read.
    pub layer_places: Vec<LayerPlace>,
    /// What the disks counted of their load, where that was asked for.
    pub counted: Vec<CountedDisk>,
    /// What the run did together with others.
    pub together: Option<TogetherRecord>,
    /// The load of others, which was watched.
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
    /// Whether something else than workloads was measured, or watched.
    pub fn has_more_than_workloads(&self) -> bool {
        // Every field is named, so that a new one cannot be forgotten.
        let Self {
            surface,
            postgres,
            accept,
            files,
            observed,
            // These are about workloads, or about other runs.
            measurements: _,
            dropped: _,
            beside: _,
            trials: _,
            layer_places: _,
            counted: _,
            together: _,
        } = self;
        surface.is_some()
            || postgres.is_some()
            || accept.is_some()
            || files.is_some()
            || observed.is_some()
    }
}
