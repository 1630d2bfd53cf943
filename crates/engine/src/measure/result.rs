//! What a worker returns, and why it ended.

use crate::io::clock::ProcessorWait;
use crate::measure::read_check::ReadVerdict;
use diskproof_model::measurement::{
    ByteCount, Interruption, OpMeasurement, PerOp, SteadyOutcome, ZeroSample,
};
use diskproof_model::window::Window;

/// Why a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum EndReason {
    /// Its time was over.
    #[default]
    Time,
    /// The supervisor told it to stop.
    Stopped,
    /// Its operations or bytes were used up.
    Budget,
    /// The target failed too often; the last errno.
    Errors(i32),
    /// A request took longer than allowed.
    TooSlow,
    /// The rate fell below its least.
    BelowFloor,
    /// The rate was steady.
    Steady,
}

/// What a worker measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkerResult {
    /// Per kind of operation.
    pub ops: PerOp<OpMeasurement>,
    /// Bytes moved, warm-up included.
    pub asked: ByteCount,
    /// End of its measured time: it started no request after it.
    pub stop_ns: u64,
    /// Requests in flight, integrated over the measured time: their number times nanoseconds.
    pub busy_ns: u128,
    /// When its last request completed.
    pub last_ns: u64,
    /// Sampled blocks, and how many of them were all zero.
    pub zero_blocks: ZeroSample,
    /// Open-loop operations that started late.
    pub late: u64,
    /// [`crate::io::Backend::done_before_wait`].
    pub done_before_wait: Option<f64>,
    /// From the end of the warm-up to [`WorkerResult::stop_ns`].
    pub processor_wait: ProcessorWait,
    /// When the process did not run; their starts on CLOCK_MONOTONIC.
    pub interruptions: Vec<Interruption>,
    /// The measured time in windows, the last one up to [`WorkerResult::stop_ns`]; empty where it
    /// timed out.
    pub windows: Vec<Window>,
    /// Whether its measured time ended with a completion after its planned end.
    pub overtime: bool,
    /// Whether its rate was steady, where that ends it.
    pub steady: Option<SteadyOutcome>,
    /// What its reads found, where they are checked.
    pub read_verdict: Option<ReadVerdict>,
    /// Why it ended.
    pub ending: EndReason,
}
