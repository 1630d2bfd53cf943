//! Finds the rates that a run kept for too short a time to exclude a burst credit, and the commands
//! that test for one.

use crate::limiter::words::CreditTest;
use crate::limiter::{Unit, held_rate_of_rows, joins_commits, rate_of, waits_for_disk};
use crate::mechanics::is_real_disk;
use crate::rules::ended_units;
use crate::volume_types::is_hardly_a_burst;
use diskproof_model::digits::figure_text;
use diskproof_model::finding::{Cause, Finding};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Access, CachePolicy};
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::format_duration;
use std::collections::BTreeSet;

/// Findings of a burst or a cache that ended: the rates of their workloads are explained.
const ENDED_BURSTS: [&str; 4] = [
    "burst-exhausted",
    "burst-figure",
    "cache-cliff",
    "reads-fell",
];

/// No volume with a credit has a lower burst: one of EBS gp2 has 100 requests per second for ever,
/// and the smallest of EBS sc1 bursts to 10 MB/s (AWS, "Amazon EBS volume types"). Of a slower disk
/// the test would take days.
const BURST_REQUESTS_MIN: f64 = 100.0;
const BURST_BYTES_MIN: f64 = 10e6;

/// A stream whose rate is known to this share is as even as that of a limiter. Chosen: streams at
/// the base of a simulated volume were known to 0.8 to 4 %.
const EVEN_HALF_WIDTH_MAX: f64 = 0.05;
/// An even rate of at most this share of another one may be the base of its burst. Chosen: readers
/// and writers of one link differ by less.
const BASE_SHARE_MAX: f64 = 0.75;

/// Rates of a target that a run kept for too short a time to exclude a burst credit.
pub(crate) struct Untested {
    /// `3000/s for 1.2 s and 128 MB/s for 1.2 s`
    pub(crate) kept: String,
    /// A sentence with the commands that test for a credit, one in each unit.
    pub(crate) tests: String,
    /// The units of these commands.
    pub(crate) units: Vec<Unit>,
}

/// The highest rates of each target, with the time for which the run kept them without a pause.
/// Skips those that it kept long enough to exhaust every documented credit, and the units in which
/// it saw a credit end.
pub(crate) fn untested(record: &Record) -> Vec<Untested> {
    let targets: BTreeSet<usize> = record
        .measurements
        .iter()
        .map(|row| row.data.target)
        .collect();
    let mut all_untested = Vec::new();
    for target in &targets {
        let Some(mut untested) = untested_target(record, *target) else {
            continue;
        };
        if targets.len() > 1
            && let Some(identity) = record.targets.get(*target)
        {
            untested.kept.push_str(&format!(" on {}", identity.path));
        }
        all_untested.push(untested);
    }
    all_untested
}

/// The rates of one target; `None` where none is untested.
fn untested_target(record: &Record, target: usize) -> Option<Untested> {
    let ended = ended_units(record, target);
    let mut kept = Vec::new();
    let mut commands = Vec::new();
    let mut units = Vec::new();
    for unit in Unit::ALL {
        let rows = rows_of_unit(record, target, unit);
        let Some(held) = held_rate_of_rows(&rows, unit) else {
            continue;
        };
        if let Some(identity) = record.targets.get(target)
            && is_hardly_a_burst(identity, held.rate, unit.per_second())
        {
            continue;
        }
        if held.rate < burst_min(unit) {
            continue;
        }
        let test = CreditTest::new(record, target, unit, held.rate);
        if held.held_ns < test.ns as f64 && !ended.contains(&unit) {
            let rate = figure_text(held.rate, None, unit.per_second());
            kept.push(format!(
                "{rate} for {}",
                format_duration(held.held_ns as u64)
            ));
            commands.push(test.command);
            units.push(unit);
        }
    }
    let tests = match &commands[..] {
        [] => return None,
        [command] => format!("'{command}' tests for one."),
        // One for each unit, in their order.
        [requests, bytes, ..] => {
            format!("'{requests}' tests for one in requests, and '{bytes}' for one in bytes.")
        }
    };
    Some(Untested {
        kept: kept.join(" and "),
        tests,
        units,
    })
}

/// The lowest rate of a burst that a volume has.
fn burst_min(unit: Unit) -> f64 {
    match unit {
        Unit::Requests => BURST_REQUESTS_MIN,
        Unit::Bytes => BURST_BYTES_MIN,
    }
}

/// True if a stream ran at an even rate, and another of its target well above it for too short a
/// time to exclude a burst: a limiter of reads and writes alike shows the same. A disk that is
/// attached to this very machine has none.
pub(crate) fn exceeds_even_rate(record: &Record) -> bool {
    record.targets.iter().enumerate().any(|(target, identity)| {
        !is_real_disk(record, identity) && has_stream_above_even(record, target)
    })
}

fn has_stream_above_even(record: &Record, target: usize) -> bool {
    let unit = Unit::Bytes;
    let rows = rows_of_unit(record, target, unit);
    let Some(held) = held_rate_of_rows(&rows, unit) else {
        return false;
    };
    let test = CreditTest::new(record, target, unit, held.rate);
    if held.held_ns >= test.ns as f64 || ended_units(record, target).contains(&unit) {
        return false;
    }
    rows.iter().any(|row| {
        let ops = row.headline_ops();
        !ops.is_empty()
            && rate_of(row, unit) <= BASE_SHARE_MAX * held.rate
            && ops.iter().all(|(_, op)| {
                let half_width = op.figures.iops.relative_half_width();
                half_width.is_some_and(|width| width <= EVEN_HALF_WIDTH_MAX)
            })
    })
}

/// The rows of a target that show what it allows in a unit: those with the block sizes that volumes
/// usually limit in it, as the test has them.
fn rows_of_unit(record: &Record, target: usize, unit: Unit) -> Vec<&Row> {
    let mut rows = Vec::new();
    for (index, row) in record.measurements.iter().enumerate() {
        let largest = row.data.workload.block_sizes().fold(0, u32::max);
        if row.data.target == target
            && Unit::usual(f64::from(largest)) == unit
            && shows_disk(row, unit)
            && !record
                .findings
                .iter()
                .any(|finding| finding.concerns(index) && is_explanation(finding))
        {
            rows.push(row);
        }
    }
    rows
}

/// True if a row shows what the disk allows in a unit. Bytes reach it in any case; requests only
/// where nothing joins them.
fn shows_disk(row: &Row, unit: Unit) -> bool {
    let is_whole = match unit {
        Unit::Bytes => true,
        Unit::Requests => !joins_requests(row),
    };
    !row.data.workload.is_paced()
        && row.figures.ping.is_none()
        && waits_for_disk(&row.data)
        && !joins_commits(&row.data)
        && is_whole
}

/// A disk that counted fewer requests than this share of the operations got some of them joined.
/// Chosen, not measured: its counters include the warm-up, and requests that the kernel splits.
const JOINED_SHARE_MAX: f64 = 0.5;

/// True if the disk got fewer requests than the row counts: the kernel reads ahead of sequential
/// reads through the page cache (1.3 MB at once for blocks of 8 KiB, as measured), and joins
/// adjacent requests. Without counters such reads may be joined.
fn joins_requests(row: &Row) -> bool {
    let device = &row.data.device;
    let disk_requests = device.read_ops.saturating_add(device.write_ops);
    if device.unresolved.is_some() || device.accounted.is_none() || disk_requests == 0 {
        return row.data.cache.used != CachePolicy::Direct
            && row.data.workload.access == Access::Sequential;
    }
    let mut operations: u64 = 0;
    for kind in OpKind::TRANSFERS {
        if let Some(op) = row.data.ops.get(&kind) {
            operations = operations.saturating_add(op.count);
        }
    }
    (disk_requests as f64) < JOINED_SHARE_MAX * operations as f64
}

/// True if, by this finding, a rate is not that of a disk that could have a credit, or is explained
/// by the end of one. Operations that failed need not have reached the disk.
fn is_explanation(finding: &Finding) -> bool {
    let is_not_the_disk = matches!(
        finding.says.objection(),
        Some(Cause::Cache | Cause::PageCache | Cause::EmptyBlocks | Cause::Failed)
    );
    is_not_the_disk || ENDED_BURSTS.contains(&finding.code.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::finding::{Meaning, Severity};
    use diskproof_model::plan::{SyncCall, SyncPolicy};

    /// What the run kept on its only target, in both units.
    fn kept(record: &Record) -> String {
        match &untested(record)[..] {
            [] => String::new(),
            [one] => one.kept.clone(),
            [_, _, ..] => panic!("one target"),
        }
    }

    #[test]
    fn each_unit_is_tested_by_the_block_sizes_that_volumes_limit_in_it() {
        let mut record = fixture::record();
        record
            .measurements
            .retain(|row| row.data.workload.block_bytes < 1 << 18);
        let [small] = &untested(&record)[..] else {
            panic!("requests");
        };
        assert!(
            small.kept.contains("/s for") && !small.kept.contains("B/s"),
            "{}",
            small.kept
        );
        assert!(small.tests.contains("--bs 8k") && !small.tests.contains("--bs 1M"));
    }

    /// A memory card of 10 commits/s would be tested for 304 hours.
    #[test]
    fn slower_rates_than_any_burst_are_not_tested() {
        let mut record = fixture::record();
        assert!(kept(&record).contains("/s for"));
        for row in &mut record.measurements {
            for op in row.figures.ops.values_mut() {
                op.iops.value /= 2000.0;
                op.throughput.value /= 2000.0;
            }
        }
        assert_eq!(kept(&record), "");
    }

    /// As measured on a volume of 25 MB/s whose credit the small blocks let refill: 78 MB/s.
    #[test]
    fn stream_above_an_even_one_may_be_a_burst() {
        let found = |ratio: f64, width: f64| {
            let mut record = fixture::record();
            for row in &mut record.measurements {
                let is_stream = row.data.workload.block_bytes >= 1 << 18;
                if !is_stream {
                    continue;
                }
                let is_write = row.data.ops.contains_key(&OpKind::Write);
                let kinds = row.figures.ops.len() as f64;
                for op in row.figures.ops.values_mut() {
                    let (share, width) = if is_write { (ratio, width) } else { (1.0, 0.3) };
                    op.throughput.value = 78e6 * share / kinds;
                    op.iops.half_width_95 = Some(width * op.iops.value);
                }
            }
            has_stream_above_even(&record, 0)
        };
        assert!(found(0.2, 0.04));
        assert!(!found(0.2, 0.3), "no limiter is so uneven");
        assert!(!found(0.9, 0.01), "a link");
    }

    /// Commits of many sessions through the page cache share their syncs, and reads of empty blocks
    /// need not reach the disk: the rest of the run counts.
    #[test]
    fn rows_that_do_not_show_the_disk_are_left_out_alone() {
        let mut record = fixture::record();
        assert!(kept(&record).starts_with("10,000/s"), "{}", kept(&record));
        for row in &mut record.measurements {
            let op_is_write = row.data.ops.contains_key(&OpKind::Write);
            if op_is_write && row.data.workload.depth > 1 {
                row.data.cache.used = CachePolicy::Buffered;
                row.data.workload.sync = SyncPolicy::Every {
                    writes: 1,
                    call: SyncCall::Fdatasync,
                };
            }
        }
        assert!(
            kept(&record).starts_with("10,000/s"),
            "the reads: {}",
            kept(&record)
        );
        let deep_reads = record
            .measurements
            .iter()
            .position(|row| row.data.workload.name == "random-read-d32")
            .unwrap();
        let path = format!("/measurements/{deep_reads}/data");
        let mut finding = fixture::finding("unwritten-blocks", Severity::Warning, &path);
        finding.says = Meaning::NotTheDisk {
            cause: Cause::EmptyBlocks,
        };
        record.findings = vec![finding];
        let rest = kept(&record);
        assert!(!rest.starts_with("10,000/s"), "{rest}");
        assert!(rest.contains("MB/s for"), "the streams of reads: {rest}");
        record.findings[0] = fixture::finding("io-errors", Severity::Failure, &path);
        record.findings[0].says = Meaning::NotTheDisk {
            cause: Cause::Failed,
        };
        assert_eq!(kept(&record), rest, "failed operations");
    }

    /// The kernel joined 155 reads of 8 KiB to one request of the disk, as measured.
    #[test]
    fn requests_that_the_kernel_joins_do_not_show_the_disk() {
        let mut record = fixture::record();
        // The deep writes reach the same rate.
        for row in &mut record.measurements {
            if row.data.ops.contains_key(&OpKind::Write) {
                (row.data.device.read_ops, row.data.device.write_ops) = (1, 1);
            }
        }
        let highest = kept(&record);
        assert!(highest.starts_with("10,000/s"), "{highest}");
        let deep_reads = record
            .measurements
            .iter()
            .position(|row| row.data.workload.name == "random-read-d32")
            .unwrap();
        let data = &mut record.measurements[deep_reads].data;
        let reads = data.ops[&OpKind::Read].count;
        data.cache.used = CachePolicy::Buffered;
        (data.device.read_ops, data.device.write_ops) = (reads, 0);
        assert_eq!(kept(&record), highest, "single requests");
        record.measurements[deep_reads].data.device.read_ops = reads / 155;
        let rest = kept(&record);
        assert!(!rest.starts_with("10,000/s"), "{rest}");
        // A filesystem without counters.
        let data = &mut record.measurements[deep_reads].data;
        data.device.unresolved = Some("nfs".to_owned());
        assert_eq!(kept(&record), highest, "random reads");
        record.measurements[deep_reads].data.workload.access = Access::Sequential;
        assert_eq!(kept(&record), rest, "sequential reads");
    }
}
