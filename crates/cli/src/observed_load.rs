//! Finds the load of a device that `watch` recorded, as `--like` names it.

use crate::failure::Failure;
use crate::saved::load;
use diskproof_model::observed::ObservedDevice;
use std::path::Path;

/// The load of a device while it was watched.
#[derive(Debug)]
pub(crate) struct ObservedLoad {
    /// The id of the run of `watch` that recorded it.
    pub run_id: String,
    /// The device and its load; it received requests.
    pub device: ObservedDevice,
    /// A sentence that says which device was chosen; `None` where there was no choice.
    pub note: Option<String>,
}

impl ObservedLoad {
    /// Finds the load of this device in a saved run, or that of the busiest one. Fails where the
    /// run has no load of it.
    pub(crate) fn find(
        reference: &str,
        device: Option<&str>,
        history: Option<&Path>,
    ) -> Result<Self, Failure> {
        let record = load(reference, history)?;
        let Some(observed) = record.observed() else {
            return Err(Failure::Usage(format!(
                "--like {reference}: this run contains no observed load; use 'diskproof watch \
                 --record' to save one"
            )));
        };
        let devices = busiest_first(&observed.devices);
        let Some(busiest) = devices.first() else {
            return Err(Failure::Usage(format!(
                "--like {reference}: no device received requests during the recording"
            )));
        };
        let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
        let mut chosen = Self {
            run_id: record.run_id.clone(),
            device: (*busiest).clone(),
            note: None,
        };
        if let Some(wanted) = device {
            let Some(named) = devices.iter().find(|device| device.name == wanted) else {
                return Err(Failure::Usage(format!(
                    "--like-device {wanted}: the run observed {}",
                    names.join(", ")
                )));
            };
            chosen.device = (*named).clone();
        } else if names.len() > 1 {
            chosen.note = Some(format!(
                "repeating the load of {}, the busiest of {}; --like-device NAME chooses another",
                busiest.name,
                names.join(", ")
            ));
        }
        Ok(chosen)
    }
}

/// The devices that received requests, the highest rate first.
fn busiest_first(devices: &[ObservedDevice]) -> Vec<&ObservedDevice> {
    let mut used: Vec<&ObservedDevice> = devices
        .iter()
        .filter(|device| device.requests() > 0)
        .collect();
    used.sort_by(|before, after| after.rate().total_cmp(&before.rate()));
    used
}
