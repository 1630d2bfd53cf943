//! Prime numbers as a load of processors, as the test cpu of sysbench counts them.

use crate::histogram::LatencyHistogram;

/// The size of an event of computation, and the end of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrimeLoad {
    /// Threads that compute at the same time.
    pub threads: u32,
    /// An event counts the primes below this number.
    pub max_prime: u64,
    /// No event starts after this time.
    pub time_ns: Option<u64>,
    /// Events of all threads together.
    pub events: Option<u64>,
    /// Time between two intermediate figures.
    pub interval_ns: Option<u64>,
}

/// Figures of a part of the time.
#[derive(Debug, Clone, PartialEq)]
pub struct PrimeInterval {
    /// Start, in nanoseconds after the start of the run.
    pub start_ns: u64,
    /// End, in nanoseconds after the start of the run.
    pub end_ns: u64,
    /// Durations of the events that ended in it.
    pub latency: LatencyHistogram,
}

/// Events of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrimeThread {
    /// Events that it completed.
    pub events: u64,
    /// The sum of their durations.
    pub busy_ns: u64,
}

/// The figures of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct PrimeResult {
    /// Time until the last event of the last thread.
    pub wall_ns: u64,
    /// One for each thread.
    pub threads: Vec<PrimeThread>,
    /// Durations of all events.
    pub latency: LatencyHistogram,
}
