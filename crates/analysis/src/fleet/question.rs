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
    /// The number of hosts or ranks beyond those expected.
    pub surplus: u64,
    /// Inputs that are not usable records.
    pub refused: Vec<RefusedInput>,
}
