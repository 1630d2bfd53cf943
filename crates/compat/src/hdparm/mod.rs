//! hdparm: its two timings.

mod args;
mod print;
#[cfg(test)]
mod tests;

pub(crate) use args::DROP_IN;
