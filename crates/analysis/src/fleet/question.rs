//! Holds what the caller adds to the records of a fleet: the margin, and what is known to be
//! missing.

use diskproof_model::fleet::{MissingRow, RefusedInput};
use diskproof_model::record::Tool;

/// The margin by which a fleet is judged, and the inputs that gave no record.
#[derive(Debug, Clone)]
pub struct FleetQuestion {
    /// The program that judges, for the document.
    pub tool: Tool,
    /// Rows that differ by less than this share are alike.
    pub margin: f64,
    /// Hosts and ranks without a record.
    pub missing: Vec<MissingRow>,
    /// Hosts or ranks beyond those expected.
    pub surplus: Surplus,
    /// Inputs that are not usable records.
    pub refused: Vec<RefusedInput>,
}

/// Hosts or ranks that came and are not expected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surplus {
    /// The number of them.
    pub count: u64,
    /// Their names; empty where only the number is known.
    pub names: Vec<String>,
}

impl Surplus {
    /// Those of these names.
    pub fn named(names: Vec<String>) -> Self {
        Self {
            count: names.len() as u64,
            names,
        }
    }

    /// This many, nobody knows which.
    pub fn unnamed(count: u64) -> Self {
        Self {
            count,
            names: Vec::new(),
        }
    }
}
