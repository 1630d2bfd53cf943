//! What every verb that measures does with its plan: prepare, run under a watchdog, conclude.

mod campaign;
mod carry_out;
mod conclude;
mod files;
mod inserts;
mod layers;
mod measure;
mod ping;
mod prepare;
mod prepare_command;
mod ready;
mod run;
mod slices;
mod time_left;
mod trials;
mod watchdog;

pub(crate) use campaign::{
    CampaignJob, CampaignOutcome, CampaignSide, Reopening, measure_campaign,
};
pub(crate) use carry_out::Means;
pub(crate) use conclude::{Page, has_errors, process_may_stay};
pub(crate) use measure::{Presentation, ToolRun, dry_run, measure, measure_by};
#[cfg(test)]
pub(crate) use prepare::admit_all;
pub(crate) use prepare::{MeasuringJob, refuse_target_as_output};
pub(crate) use run::{Filling, LayoutLimits};
