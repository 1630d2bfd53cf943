//! Finds the rates that a run kept for too short a time to exclude a burst credit, and the commands
//! that test for one.

use crate::limiter::words::CreditTest;
use crate::limiter::{Unit, held_rate_of_rows, waits_for_disk};
use crate::rules::ended_units;
use crate::volume_types::is_hardly_a_burst;
use diskproof_model::digits::figure_text;
use diskproof_model::finding::{Cause, Finding};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::CachePolicy;
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

/// Rates of a target that a run kept for too short a time to exclude a burst credit.
pub(crate) struct Untested {
    /// `3000/s for 1.2 s and 128 MB/s for 1.2 s`
    pub(crate) kept: String,
    /// A sentence with the commands that test for a credit, one in each unit.
    pub(crate) tests: String,
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
        let test = CreditTest::new(record, target, unit, held.rate);
        if held.held_ns < test.ns as f64 && !ended.contains(&unit) {
            let rate = figure_text(held.rate, None, unit.per_second());
            kept.push(format!(
                "{rate} for {}",
                format_duration(held.held_ns as u64)
            ));
            commands.push(test.command);
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
            && shows_disk(row)
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

/// True if the requests of a row reach the disk as they are. The kernel joins what several sessions
/// write through the page cache, so their commits may be one request of the disk.
fn shows_disk(row: &Row) -> bool {
    let workload = &row.data.workload;
    let may_join = row.data.cache.used != CachePolicy::Direct
        && !workload.streams.is_only(OpKind::Read)
        && workload.depth * workload.workers > 1;
    !workload.is_paced() && row.figures.ping.is_none() && waits_for_disk(&row.data) && !may_join
}

/// True if, by this finding, a rate is not that of a disk that could have a credit, or is explained
/// by the end of one.
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
        // Also where the reads failed: what failed never reached the medium.
        for (code, cause) in [
            ("unwritten-blocks", Cause::EmptyBlocks),
            ("io-errors", Cause::Failed),
        ] {
            let mut finding = fixture::finding(code, Severity::Warning, &path);
            finding.says = Meaning::NotTheDisk { cause };
            record.findings = vec![finding];
            let rest = kept(&record);
            assert!(!rest.starts_with("10,000/s"), "{rest}");
            assert!(rest.contains("MB/s for"), "the streams of reads: {rest}");
        }
    }
}
