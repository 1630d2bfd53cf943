//! What every verb that measures does with its plan: prepare, run under a watchdog, conclude.

mod campaign;
mod carry_out;
mod conclude;
mod files;
mod inserts;
mod measure;
mod ping;
mod prepare;
mod prepare_command;
mod run;
mod slices;
mod time_left;
mod trials;
mod watchdog;

pub(crate) use campaign::{CampaignOutcome, measure_campaign};
pub(crate) use carry_out::{Means, Page, ToolRun};
pub(crate) use conclude::{has_errors, process_may_stay};
pub(crate) use measure::{dry_run, measure};
#[cfg(test)]
pub(crate) use prepare::admit_all;
pub(crate) use prepare::{MeasuringJob, facts_now, refuse_targets_as_outputs};
pub(crate) use run::{EarlyEnd, Filling};
