//! What every verb that measures does with its plan: prepare, run under a watchdog, conclude.

mod campaign;
mod conclude;
mod files;
mod inserts;
mod layers;
mod measure;
mod ping;
mod prepare;
mod prepare_command;
mod run;
mod slices;
mod time_left;
mod tool;
mod trials;
mod watchdog;
mod write_cache;

pub(crate) use campaign::{
    CampaignJob, CampaignOutcome, CampaignSide, Reopening, measure_by_campaign, measure_campaign,
};
pub(crate) use conclude::{has_errors, process_may_stay};
pub(crate) use inserts::measure_with_server;
pub(crate) use measure::{
    dry_run, measure, measure_files, measure_pings, measure_quietly, measure_then,
};
pub(crate) use ping::PingLines;
#[cfg(test)]
pub(crate) use prepare::admit_all;
pub(crate) use prepare::{MeasuringJob, refuse_target_as_output};
pub(crate) use run::{Filling, LayoutLimits};
pub(crate) use tool::{ToolRun, measure_tool};
pub(crate) use write_cache::measure_with_write_cache;
