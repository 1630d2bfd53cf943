//! Reads the value of a figure from each kind of field that a record has for one.

use super::key::Metric;
use crate::estimate::Estimate;
use crate::layers::LayerDifference;
use crate::postgres::TrialGain;
use crate::rate::PromisedRate;

/// A row of a table: a metric, and where a part of a record holds it.
pub(crate) struct CatalogueRow<T> {
    pub(crate) metric: Metric,
    pub(crate) value: fn(&T) -> Option<Known>,
}

/// The value of a figure as far as a record knows it.
pub(crate) struct Known {
    pub(crate) value: f64,
    /// Half the width of its 95 % interval; `None` where it has none.
    pub(crate) half_width_95: Option<f64>,
    /// The number of events behind it; `None` where the field does not count them.
    pub(crate) n: Option<u64>,
}

/// A [`Known`] in the form that a [`Field`] returns.
fn known(value: f64, half_width_95: Option<f64>, n: Option<u64>) -> Option<Known> {
    Some(Known {
        value,
        half_width_95,
        n,
    })
}

/// A field of a record that holds a figure.
pub(crate) trait Field {
    /// Its value; `None` where the record leaves it open.
    fn known(self) -> Option<Known>;
}

impl Field for f64 {
    fn known(self) -> Option<Known> {
        known(self, None, None)
    }
}

impl Field for u64 {
    fn known(self) -> Option<Known> {
        known(self as f64, None, None)
    }
}

impl Field for u32 {
    fn known(self) -> Option<Known> {
        known(f64::from(self), None, None)
    }
}

/// A figure with the number of events behind it.
impl Field for (f64, u64) {
    fn known(self) -> Option<Known> {
        known(self.0, None, Some(self.1))
    }
}

impl Field for PromisedRate {
    /// Its interval need not be symmetrical; the half width is that of the wider side.
    fn known(self) -> Option<Known> {
        let half_width = (self.high - self.rate).max(self.rate - self.low);
        known(self.rate, Some(half_width), None)
    }
}

impl Field for &Estimate {
    fn known(self) -> Option<Known> {
        known(self.value, self.half_width_95, Some(self.n))
    }
}

impl Field for &LayerDifference {
    fn known(self) -> Option<Known> {
        known(self.difference, self.half_width_95, Some(self.n))
    }
}

impl Field for &TrialGain {
    fn known(self) -> Option<Known> {
        known(self.value, Some((self.high_95 - self.low_95) / 2.0), None)
    }
}

impl<T: Field> Field for Option<T> {
    fn known(self) -> Option<Known> {
        self?.known()
    }
}
