//! Figures that are counted many times a second: latency histograms, time series, and the text that
//! they are saved as. They stand apart from the records that hold them, so that tests can have this
//! crate optimised without optimising a hundred record types.
#![forbid(unsafe_code)]

pub mod histogram;
pub mod packed;
pub mod series;
