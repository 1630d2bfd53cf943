//! A load of processors that a command line asks for: it touches no disk.

use diskproof_model::primes::{PrimeInterval, PrimeLoad, PrimeResult};

/// Turns figures of processors into a tool's text. Each step returns text for stdout.
pub trait PrimePrinter {
    /// Before the first event.
    fn begin(&self) -> String;

    /// An interval is over.
    fn interval(&self, interval: &PrimeInterval) -> String;

    /// The run is over.
    fn end(&self, result: &PrimeResult) -> String;
}

/// A command line that loads processors.
pub struct PrimeRequest {
    /// What is computed.
    pub load: PrimeLoad,
    /// Its output.
    pub printer: Box<dyn PrimePrinter>,
    /// Where the load differs from the tool's, a sentence each.
    pub notes: Vec<String>,
}
