//! The part of `imprecise` on single requests: their mean time is known less well than figures must
//! be to be called precise.

use super::super::rule::*;
use diskproof_model::record::Estimate;

/// The mean of fewer single requests says little about the disk. `ping -c 10` counts nine: the
/// first one, which may wake the disk up, does not count.
const PINGS_MIN: u64 = 9;

/// Reports mean latencies of single requests that are known too roughly.
pub(super) fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits: Vec<RoughMean> = Vec::new();
    for measured in real_rows(record) {
        let Some(ping) = &measured.row.figures.ping else {
            continue;
        };
        for (kind, latency) in &ping.latency {
            hits.extend(rough_mean(record, measured, *kind, &latency.mean));
        }
    }
    if hits.is_empty() {
        return None;
    }
    let claims: Vec<&str> = hits.iter().map(|hit| hit.claim.as_str()).collect();
    let claim = format!(
        "The mean time is only approximate: {}. The next requests may take several times as long.",
        claims.join("; ")
    );
    let observations = hits.iter().map(|hit| hit.evidence.clone());
    Some(
        Diagnosis::new(Severity::Warning, claim, observations)
            .with_remedy("Send more requests (--count 100)."),
    )
}

/// A mean time that is only approximate.
struct RoughMean {
    /// The requests and how well their mean is known, such as `of only 3 reads in ping`. The claim
    /// of the finding lists these fragments.
    claim: String,
    evidence: Evidence,
}

/// The mean latency of one kind of requests, if it is known too roughly.
fn rough_mean(
    record: &Record,
    measured: Measured<'_>,
    kind: OpKind,
    mean: &Estimate,
) -> Option<RoughMean> {
    // The estimate counts the means of requests that follow each other, which may be fewer.
    let count = measured.row.op(kind)?.data.count;
    let kind_name = kind.as_str();
    let mean_path = format!("figures/ping/latency/{kind_name}/mean");
    let requests = counted(count, kind_name);
    let name = workload_name(record, measured.row);
    if count < PINGS_MIN {
        let count_path = format!("data/ops/{kind_name}/count");
        return Some(RoughMean {
            claim: format!("of only {requests} in {name}"),
            evidence: measured.evidence(&count_path, count as f64, PINGS_MIN as f64, "1"),
        });
    }
    let width = mean.relative_half_width()?;
    if width <= HALF_WIDTH_MAX {
        return None;
    }
    let width_path = format!("{mean_path}/half_width_95");
    let half_width_ns = mean.half_width_95.unwrap_or(0.0);
    let half_width_max_ns = HALF_WIDTH_MAX * mean.value;
    Some(RoughMean {
        claim: format!("of {requests} in {name} to ±{}", format_percent(width)),
        evidence: measured.evidence(&width_path, half_width_ns, half_width_max_ns, "ns"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::ping::ping_run;
    use crate::fixture::{self, states};

    /// So many reads one after another that take nearly the same time.
    fn pinged(count: u64) -> Record {
        let mut samples = Vec::new();
        for number in 0..count {
            samples.push((0, 100_000 + number % 3));
        }
        fixture::judge(ping_run(&samples))
    }

    /// Reads whose mean is known to this share of itself.
    fn known_to(share: f64) -> Record {
        let mut record = pinged(20);
        let ping = record.measurements[0].figures.ping.as_mut().unwrap();
        for latency in ping.latency.values_mut() {
            latency.mean.half_width_95 = Some(share * latency.mean.value);
        }
        record
    }

    #[test]
    fn fewer_than_nine_requests_have_an_approximate_mean() {
        let diagnosis = check(&pinged(8)).unwrap();
        assert_eq!(diagnosis.severity, Severity::Warning);
        states(&diagnosis.claim, &["8 reads in ping"]);
        let evidence = &diagnosis.evidence[0];
        assert_eq!(evidence.path, "/measurements/0/data/ops/read/count");
        assert_eq!((evidence.observed, evidence.threshold), (8.0, 9.0));
        assert_eq!(check(&pinged(9)), None);
    }

    #[test]
    fn mean_that_is_known_to_a_quarter_is_precise() {
        assert_eq!(check(&known_to(0.25)), None);
        let record = known_to(0.3);
        let diagnosis = check(&record).unwrap();
        states(&diagnosis.claim, &["20 reads in ping to ±30 %"]);
        let evidence = &diagnosis.evidence[0];
        let place = "/measurements/0/figures/ping/latency/read/mean/half_width_95";
        assert_eq!(evidence.path, place);
        let ping = record.measurements[0].figures.ping.as_ref().unwrap();
        let mean = &ping.latency[&OpKind::Read].mean;
        assert_eq!(Some(evidence.observed), mean.half_width_95);
        assert_eq!(evidence.threshold, 0.25 * mean.value);
    }

    /// A mean of one request has no interval, and its count says why.
    #[test]
    fn workload_without_single_requests_is_no_ping() {
        assert_eq!(check(&fixture::record()), None);
        states(&check(&pinged(1)).unwrap().claim, &["1 read in ping"]);
    }
}
