//! Acceptance tests of disks: the pieces to write and read next, and the conclusions from the
//! results. Pure; the engine moves the pieces.

mod cells;
mod filler;
mod fraud;
mod lowest;
mod probe;
mod progress;
mod rates;
mod slow_end;
mod stopped;
mod test_run;
#[cfg(test)]
mod tests;
mod verdict;
mod whole;
pub(crate) mod words;

pub use progress::TestProgress;
pub use test_run::AcceptTest;
pub(crate) use verdict::accept_record;
