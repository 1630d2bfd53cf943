//! A figure and its interval. Public as part of `record`; surveys and the verdict need it too.

use serde::{Deserialize, Serialize};

/// A value with its uncertainty. There is no bare mean anywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Independent batches behind it.
    pub n: u64,
    /// The value.
    pub value: f64,
    /// Half-width of the 95 % interval, same unit; `null` when there was too little to tell.
    pub half_width_95: Option<f64>,
    /// `1/s` or `B/s`.
    pub unit: String,
}

impl Estimate {
    /// Half-width over value; `None` when unknown or the value is zero.
    pub fn relative_half_width(&self) -> Option<f64> {
        self.half_width_95
            .filter(|_| self.value > 0.0)
            .map(|h| h / self.value)
    }
}
