//! What is asked of a fleet.

use diskproof_model::fleet::{MissingRow, RefusedInput};
use diskproof_model::record::Tool;

/// What is asked of a fleet.
#[derive(Debug, Clone)]
pub struct FleetQuestion {
    /// The program that asks.
    pub tool: Tool,
    /// Rows that differ by less than this share are alike.
    pub margin: f64,
    /// Hosts and ranks without a record.
    pub missing: Vec<MissingRow>,
    /// Inputs that are no usable record.
    pub refused: Vec<RefusedInput>,
}
