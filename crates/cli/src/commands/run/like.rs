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

/// What the user asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct LikeRequest<'a> {
    /// The run that observed the load.
    pub reference: &'a str,
    /// The device; the busiest where none is named.
    pub device: Option<&'a str>,
    /// The flags of the workload, of which only the time may be set.
    pub workload: &'a WorkloadFlags,
    /// Flags that take several values.
    pub axes: &'a WorkloadAxes,
    /// The history file.
    pub history: Option<&'a Path>,
}

/// The load of one device, and how long it is repeated.
#[derive(Debug)]
pub(super) struct LikeSource {
    run_id: String,
    device: ObservedDevice,
    time_ns: u64,
}

impl LikeSource {
    /// The load that `--like` names; a note where one device of several was chosen.
    pub(super) fn of(request: LikeRequest<'_>) -> Result<(Self, Option<String>), Failure> {
        let reference = request.reference;
        let time = request.workload.time;
        let others = WorkloadFlags {
            time: None,
            ..request.workload.clone()
        };
        if !others.is_empty() || !request.axes.is_empty() {
            return Err(Failure::Usage(
                "--like sets sizes, order, depth and rate; the only workload flag allowed with it \
                 is --time"
                    .to_owned(),
            ));
        }
        let record = load(reference, request.history)?;
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
        let wanted = request.device;
        let found = devices
            .into_iter()
            .find(|device| wanted.is_none_or(|wanted| wanted == device.name));
        let Some(device) = found else {
            return Err(Failure::Usage(match names.is_empty() {
                true => format!(
                    "--like {reference}: no device received requests during the \
                                 recording"
                ),
                false => format!(
                    "--like-device {}: the run observed {}",
                    wanted.unwrap_or_default(),
                    names.join(", ")
                ),
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
        let source = Self {
            run_id: record.run_id,
            device,
            time_ns: time.map_or(TIME_NS, |time| time.0),
        };
        Ok((source, note))
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
