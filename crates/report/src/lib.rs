//! Pages and documents: one `Record` (or identity, or plan) in, bytes out through `&mut dyn Write`.
//! Knows the model only: nothing of the terminal's size, of files, of how a figure was measured or
//! a finding came about.
#![forbid(unsafe_code)]

pub mod ascii;
pub mod chart;
pub mod csv;
mod figures;
pub mod fio_json;
pub mod gnuplot;
pub mod hlog;
pub mod html;
pub mod json;
pub mod openmetrics;
mod page;
pub mod style;
pub mod svg;
pub mod terminal;
mod text;
pub mod verdict;

use diskproof_model::finding::Finding;
use diskproof_model::health::DiskHealth;
use diskproof_model::target::{HostFacts, TargetIdentity};

/// Everything that is known of a target without measuring it.
#[derive(Debug, Clone, Copy)]
pub struct Examined<'a> {
    /// The machine.
    pub host: &'a HostFacts,
    /// The target.
    pub identity: &'a TargetIdentity,
    /// What its disks say of their health.
    pub health: &'a [DiskHealth],
    /// What that means, heaviest first.
    pub findings: &'a [Finding],
}
