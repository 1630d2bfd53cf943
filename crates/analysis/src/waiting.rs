//! Says whether a workload waited for processors so long that its figures say little about its
//! disk, and what they may be without these waits. Thresholds, trends and grades ask this.

use diskproof_model::figure::Metric;
use diskproof_model::finding::{Finding, Meaning, SharedResource};
use diskproof_model::record::Record;

/// From this share of its time on, waiting explains any figure: what answers for the disk waits for
/// the same processors, in the kernel or the host, and that is counted nowhere. On two processors
/// with twelve busy programs, a row that waited for 72 % showed 306/s of 12,600/s, and 40 to 57 ms
/// instead of 0.3 ms.
const SHARE_THAT_EXPLAINS_ALL: f64 = 0.2;
/// The longest wait in means, as far as it counts: of waits that are exponential one in 20,000 is
/// longer.
const LONGEST_WAIT_IN_MEANS: f64 = 10.0;
/// Waiting explains no figure by more than this factor: it was seen to lengthen latencies by 180. A
/// higher one than 1,000 leaves misses open that no machine explains.
const EXPLAINED_TIMES_MAX: f64 = 1000.0;

/// The finding that a measurement waited for a processor; `None` where it did not, and where the
/// program itself used the processors up.
pub(crate) fn finding(record: &Record, measurement: usize) -> Option<&Finding> {
    record.findings.iter().find(|finding| {
        let is_waiting = match finding.says {
            Meaning::OtherLoad { used } => used == SharedResource::Processors,
            _ => false,
        };
        is_waiting && finding.is_serious() && finding.concerns(measurement)
    })
}

/// The best value that a figure of a measurement may have without its waits for processors: they
/// make rates lower and latencies longer, never the reverse. `ends` are those of its interval.
/// `None` where it did not wait, and of a figure that waiting does not change.
pub(crate) fn figure_without_waits(
    record: &Record,
    measurement: usize,
    metric: &Metric,
    ends: [f64; 2],
) -> Option<f64> {
    let [low, high] = ends;
    match metric.unit {
        "ns" => latency_without_waits(record, measurement, metric, low),
        "1/s" | "B/s" => rate_without_waits(record, measurement, high),
        _ => None,
    }
}

/// The highest rate that the disk may have had where a measurement waited for processors; `None`
/// where it did not.
pub(crate) fn rate_without_waits(record: &Record, measurement: usize, rate: f64) -> Option<f64> {
    finding(record, measurement)?;
    let waits = &record.measurements.get(measurement)?.data.starved;
    let most = EXPLAINED_TIMES_MAX * rate;
    if waits.share >= SHARE_THAT_EXPLAINS_ALL {
        return Some(most);
    }
    Some((rate / (1.0 - waits.share)).min(most))
}

fn latency_without_waits(
    record: &Record,
    measurement: usize,
    metric: &Metric,
    latency_ns: f64,
) -> Option<f64> {
    finding(record, measurement)?;
    let waits = &record.measurements.get(measurement)?.data.starved;
    let least_ns = latency_ns / EXPLAINED_TIMES_MAX;
    if waits.share >= SHARE_THAT_EXPLAINS_ALL {
        return Some(least_ns);
    }
    let waited_ns = match metric.threshold {
        // The usual request waits as long as all of them do on average.
        "mean" | "p50" => waits.share * latency_ns,
        _ => LONGEST_WAIT_IN_MEANS * waits.mean_wait_ns,
    };
    Some((latency_ns - waited_ns).max(least_ns))
}
