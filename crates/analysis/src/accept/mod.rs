//! Decides whether a disk is what its label says: chooses the pieces to write and read next
//! ([`AcceptTest`]), and judges what came back (`accept_record`). The engine moves the pieces;
//! docs/accept.md describes the test.

mod accepted_bytes;
mod cells;
mod failed_writes;
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
