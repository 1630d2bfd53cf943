//! Finds the workloads that ran at the rate of a limiter, but for what the machine or other
//! programs cost them. Reads, writes and a mix at one rate are evidence of a limiter even where
//! only one of them is exactly as even.

use super::super::cpu_limited::is_cpu_limited;
use super::super::engine_limited::is_near_ceiling;
use super::super::rule::*;
use super::super::starved::is_workload_starved;
use super::even::{EvenWorkload, usual_unit};
use crate::limiter::Unit;
use crate::mechanics::is_real_disk;

/// Rates of one limiter differ by at most this share where interruptions cost some of them a
/// little. Chosen, not measured: half of the usual interval.
const ALIKE_SHARE_MAX: f64 = 0.01;
/// A rate that is known less exactly than this share may be any. Chosen, not measured.
const HALF_WIDTH_SHARE_MAX: f64 = 0.05;
/// If each of many requests in flight gets more than this share of the rate of a single one, the
/// requests in flight set the rate, not a limiter. Chosen, not measured: that of the limit of a
/// row.
const WAITING_SHARE_MAX: f64 = 0.5;

/// The workloads at about the rate of an even one, in the order of the record, without those that
/// have exactly this rate: `even`.
pub(super) fn alike_workloads<'a>(
    record: &'a Record,
    one: &EvenWorkload<'_>,
    even: &[EvenWorkload<'_>],
) -> Vec<Measured<'a>> {
    let mut alike = Vec::new();
    for measured in comparable_rows(record, one) {
        let is_even = even.iter().any(|row| row.measured.index == measured.index);
        if !is_even && is_alike(measured.row, one) {
            alike.push(measured);
        }
    }
    alike
}

/// True if reads, writes and a mix all ran at the rate of an even workload, and none of the kind
/// ran faster. Not where another cause makes them alike: a disk of this machine, which nobody
/// limits, the requests in flight, the program or the processors.
pub(super) fn are_of_limiter(record: &Record, one: &EvenWorkload<'_>) -> bool {
    let row = one.measured.row;
    let target = &record.targets[one.target()];
    let is_bound_elsewhere = is_real_disk(record, target)
        || is_cpu_limited(record, row)
        || is_near_ceiling(row)
        || is_workload_starved(record, row)
        || !waits_for_others(record, one);
    if is_bound_elsewhere {
        return false;
    }
    let mut has_reads = false;
    let mut has_writes = false;
    let mut has_mix = false;
    for measured in comparable_rows(record, one) {
        let other = measured.row;
        if total_rate(other, one.unit) > (1.0 + ALIKE_SHARE_MAX) * one.rate {
            return false;
        }
        if measured.index == one.measured.index || is_alike(other, one) {
            let streams = &other.data.workload.streams;
            has_reads |= streams.is_only(OpKind::Read);
            has_writes |= streams.is_only(OpKind::Write);
            has_mix |= streams.is_mix();
        }
    }
    has_reads && has_writes && has_mix
}

/// The workloads of the same target with several requests in flight that volumes limit in the same
/// unit.
fn comparable_rows<'a>(record: &'a Record, one: &EvenWorkload<'_>) -> Vec<Measured<'a>> {
    let mut rows = Vec::new();
    for measured in real_rows(record) {
        let row = measured.row;
        let workload = &row.data.workload;
        let syncs = matches!(workload.sync, SyncPolicy::Every { .. });
        if row.data.target == one.target()
            && !workload.is_paced()
            && !syncs
            && wanted_depth(row) >= 2.0
            && row.figures.together_with.is_empty()
            && usual_unit(row) == one.unit
        {
            rows.push(measured);
        }
    }
    rows
}

fn is_alike(row: &Row, one: &EvenWorkload<'_>) -> bool {
    let is_known = row
        .precision()
        .is_some_and(|width| width <= HALF_WIDTH_SHARE_MAX);
    is_known && (total_rate(row, one.unit) / one.rate - 1.0).abs() <= ALIKE_SHARE_MAX
}

/// The rate of all operations of a row together, per second.
fn total_rate(row: &Row, unit: Unit) -> f64 {
    row.headline_ops()
        .into_iter()
        .map(|(_, op)| RateFigure::new(op, unit).value)
        .sum()
}

/// True if the same workload with fewer requests in flight shows that most of the many wait for
/// each other. A disk that answers each in the same time gives all kinds one rate, too.
fn waits_for_others(record: &Record, one: &EvenWorkload<'_>) -> bool {
    let row = one.measured.row;
    let own = &row.data.workload;
    let rate_each = one.rate / wanted_depth(row);
    for measured in real_rows(record) {
        let other = measured.row;
        let theirs = &other.data.workload;
        let is_shallower = other.data.target == one.target()
            && wanted_depth(other) < wanted_depth(row)
            && (&theirs.access, &theirs.streams) == (&own.access, &own.streams)
            && theirs.block_sizes().eq(own.block_sizes())
            && !theirs.is_paced();
        if is_shallower {
            let other_each = total_rate(other, one.unit) / wanted_depth(other);
            if rate_each <= WAITING_SHARE_MAX * other_each {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::tests::{capped, set};
    use super::super::{check, plateaus_without_known_credit};
    use crate::fixture::{self, states};
    use diskproof_model::record::Record;

    /// Requests above the least of a cell of 10 ms, of one kind, and of each of two.
    const NOISE: [u64; 5] = [0, 3, 6, 9, 12];
    const NOISE_OF_EACH: [u64; 5] = [0, 2, 3, 5, 7];

    /// A volume that allows 14,000 requests a second: the deep reads are as even as its limiter,
    /// and the others vary by some percent around a rate that is lower by `lost` in a thousand.
    /// Single reads reach `single` a second.
    fn volume(lost: u64, single: u64) -> Record {
        fixture::changed(|run| {
            run.facts.host.hypervisor = Some("kvm".to_owned());
            for measurement in &mut run.measurements {
                let workload = &measurement.workload;
                let is_deep = workload.depth > 1 && workload.block_bytes < 256 << 10;
                match workload.name.as_str() {
                    "random-read-d1" => set(measurement, single, |_| 0),
                    "random-read-d32" => set(measurement, 14_000, |_| 0),
                    _ if is_deep => {
                        let noise = if measurement.ops.len() == 1 {
                            NOISE
                        } else {
                            NOISE_OF_EACH
                        };
                        let least = 14_000 * (957 - lost) / 1000;
                        set(measurement, least, |cell| noise[cell * 7919 % 5]);
                    }
                    _ => {}
                }
            }
        })
    }

    #[test]
    fn kinds_at_one_rate_show_a_limiter_though_only_one_is_even() {
        let limited = volume(0, 2000);
        let diagnosis = check(&limited).unwrap();
        states(&diagnosis.claim, &["14,000/s", "within 1 % of it"]);
        assert_eq!(diagnosis.evidence.len(), 3, "{:?}", diagnosis.evidence);
        assert_eq!(plateaus_without_known_credit(&limited)[0].rows, [3, 4, 6]);
        let codes: Vec<&str> = limited
            .findings
            .iter()
            .map(|one| one.code.as_str())
            .collect();
        assert!(codes.contains(&"burst-untested"), "{codes:?}");
    }

    /// Healthy disks: one that answers each request in the same time, however many there are; one
    /// whose writes are slower than its reads; one of this machine; one that the processor limits.
    #[test]
    fn other_causes_of_one_rate_are_no_limiter() {
        assert_eq!(check(&volume(0, 437)), None, "32 × 437 = 14,000");
        assert_eq!(check(&volume(60, 2000)), None);
        let mut own = volume(0, 2000);
        own.host.hypervisor = None;
        assert_eq!(check(&own), None);
        let mut busy = volume(0, 2000);
        for row in &mut busy.measurements {
            row.data.cpu.user_ns = 40 * row.data.wall_ns;
        }
        assert_eq!(check(&busy), None);
        assert!(check(&capped(|_| 0)).is_some());
    }
}
