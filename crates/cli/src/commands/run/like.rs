//! `run --like`: the workloads that repeat an observed load.

use crate::failure::Failure;
use crate::saved::load;
use crate::workload::{WorkloadAxes, WorkloadFlags};
use diskproof_analysis::watch::{LikeTarget, like_plan, like_workloads};
use diskproof_model::observed::{LikePlan, ObservedDevice};
use diskproof_model::plan::Workload;
use std::path::Path;

/// As long as a workload of `run` takes at most.
const TIME_NS: u64 = 30_000_000_000;

/// The load of one device, and how long it is repeated.
#[derive(Debug)]
pub(super) struct LikeSource {
    run_id: String,
    device: ObservedDevice,
    time_ns: u64,
    /// That one device of several was chosen.
    pub note: Option<String>,
}

impl LikeSource {
    /// The load that `--like` names, of this device, else of the busiest. Of the flags of the
    /// workload only the time may be set.
    pub(super) fn of(
        reference: &str,
        wanted: Option<&str>,
        (workload, axes): (&WorkloadFlags, &WorkloadAxes),
        history: Option<&Path>,
    ) -> Result<Self, Failure> {
        let time = workload.time;
        let others = WorkloadFlags {
            time: None,
            ..workload.clone()
        };
        if !others.is_empty() || !axes.is_empty() {
            let why = "--like sets sizes, order, depth and rate; the only workload flag allowed \
                       with it is --time";
            return Err(Failure::Usage(why.to_owned()));
        }
        let record = load(reference, history)?;
        let Some(observed) = record.observed else {
            return Err(Failure::Usage(format!(
                "--like {reference}: this run contains no observed load; use 'diskproof watch \
                 --record' to save one"
            )));
        };
        let mut devices = observed.devices;
        devices.retain(|device| device.requests() > 0);
        devices.sort_by(|one, other| other.rate().total_cmp(&one.rate()));
        let names: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
        let is_wanted = |one: &ObservedDevice| wanted.is_none_or(|wanted| wanted == one.name);
        let Some(device) = devices.into_iter().find(is_wanted) else {
            let (wanted, observed) = (wanted.unwrap_or_default(), names.join(", "));
            return Err(Failure::Usage(if names.is_empty() {
                format!("--like {reference}: no device received requests during the recording")
            } else {
                format!("--like-device {wanted}: the run observed {observed}")
            }));
        };
        let is_chosen = names.len() > 1 && wanted.is_none();
        let note = is_chosen.then(|| {
            format!(
                "repeating the load of {}, the busiest of {}; --like-device NAME chooses another",
                device.name,
                names.join(", ")
            )
        });
        Ok(Self {
            run_id: record.run_id,
            device,
            time_ns: time.map_or(TIME_NS, |time| time.0),
            note,
        })
    }

    pub(super) fn plan(&self) -> LikePlan {
        like_plan(&self.run_id, &self.device)
    }

    pub(super) fn workloads(&self, unit_bytes: u32) -> Result<Vec<Workload>, Failure> {
        let target = LikeTarget {
            unit_bytes,
            time_ns: self.time_ns,
        };
        like_workloads(&self.device, target)
            .map_err(|error| Failure::Usage(format!("--like: {error}")))
    }
}
