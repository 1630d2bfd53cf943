//! What is counted many times a second: latency histograms, time series, and the text that they are
//! saved as. Apart from the records that hold them, so that tests can have it optimised without
//! optimising a hundred record types.
#![forbid(unsafe_code)]

pub mod histogram;
pub mod packed;
pub mod series;
