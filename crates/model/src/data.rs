//! The data that a run measured, before any judgement.

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
    /// The bytes that other sides of a comparison moved on the disk of the only target.
    pub beside: Vec<MovedBeside>,
    /// The survey.
    pub surface: Option<SurfaceMeasurement>,
    /// The rates that were offered.
    pub trials: Vec<RateTrial>,
    /// The figures of a temporary PostgreSQL server on the first target.
    pub postgres: Option<PostgresMeasurement>,
    /// An acceptance test.
    pub accept: Option<AcceptMeasurement>,
    /// Operations on many small files.
    pub files: Option<FilesMeasurement>,
    /// The place at which each layer of the target is read.
    pub layer_places: Vec<LayerPlace>,
    /// The counts that the disks have of their load, where that was asked for.
    pub counted: Vec<CountedDisk>,
    /// The part of the run that it shares with other hosts.
    pub together: Option<TogetherRecord>,
    /// The load of others, which was watched.
    pub observed: Option<ObservedRecord>,
}

impl RunData {
    /// The data of a run that only had workloads.
    pub fn from_measurements(measurements: Vec<Measurement>) -> Self {
        Self {
            measurements,
            ..Self::default()
        }
    }

    /// True if anything was measured or watched, in a workload or otherwise.
    pub fn has_results(&self) -> bool {
        !self.measurements.is_empty() || self.has_more_than_workloads()
    }

    /// True if anything else than workloads was measured or watched.
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
