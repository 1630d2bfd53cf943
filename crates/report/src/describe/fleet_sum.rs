//! The sum of hosts that measured at the same instants, as a part of the fleet's page: their rates
//! together, which hosts are not in the sum, and how well their clocks are known.

use crate::labels;
use crate::percentiles::latency_at;
use crate::text::list;
use diskproof_model::block::{Align, Block, Column, Place, Table, TableRow, Tone};
use diskproof_model::digits::figure_text;
use diskproof_model::fleet_sum::{ClockBasis, FleetSum, SumMember, SumStorage, WorkloadSum};
use diskproof_model::record::Estimate;
use diskproof_model::units::{counted, format_latency, format_percent};
use std::collections::BTreeMap;

/// A sentence has at most this many names of hosts or disks, and counts the others. Eight names of
/// ten letters fill a line of a terminal.
pub(super) const NAMES_MAX: usize = 8;
/// A host is named if its disks moved more or less than it requested by more than this share. With
/// a smaller value, a filesystem's own writes would name hosts without other traffic. Chosen, not
/// measured.
const TRAFFIC_DIFFERENCE_MAX: f64 = 0.02;
/// Percentiles of all members' latencies, in the order of the last columns of the table.
const PERCENTILES: [f64; 2] = [50.0, 99.0];

/// Describes the sum: the sentence, what is not in it, the table, and the clocks.
pub(crate) fn blocks(sum: &FleetSum) -> Vec<Block> {
    let mut blocks = vec![Block::text(Tone::Bold, sum.summary.clone())];
    let mut names_by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for host in &sum.left_out {
        let names = names_by_reason.entry(&host.reason.why).or_default();
        names.push(&host.name);
    }
    for (why, names) in names_by_reason {
        let text = format!("{}: {why}", names_text(&names));
        blocks.push(Block::toned_fact(Tone::Warning, "not in the sum", text));
    }
    for undecided in &sum.undecided {
        let text = format!(
            "{}: {}: {} ({}), so there is no sum",
            undecided.workload, undecided.name, undecided.reason.why, undecided.reason.code
        );
        blocks.push(Block::toned_fact(Tone::Warning, "no sum", text));
    }
    for launch in &sum.earlier_launches {
        let text = format!(
            "{} of the launch of {}, of which this is no sum; merge each launch by itself",
            counted(launch.runs as u64, "run"),
            launch.started
        );
        blocks.push(Block::toned_fact(Tone::Note, "earlier", text));
    }
    blocks.extend(skipped_fact(sum));
    blocks.extend(other_traffic_facts(sum));
    if sum.storage == SumStorage::Shared {
        let text = "all hosts use the same storage: the sum is what it gives, and rows below are \
                    hosts, not disks (--separate decides otherwise)";
        blocks.push(Block::toned_fact(Tone::Note, "shared", text.to_owned()));
    }
    blocks.extend(sum_table(sum));
    blocks.extend(clock_facts(sum));
    blocks
}

/// Counts the slots that are in no sum, and names the members that did not measure them; `None`
/// where all did.
fn skipped_fact(sum: &FleetSum) -> Option<Block> {
    let members: Vec<&SumMember> = sum
        .members
        .iter()
        .filter(|member| !member.skipped.is_empty())
        .collect();
    if members.is_empty() {
        return None;
    }
    let mut slots: Vec<u32> = Vec::new();
    let mut names = Vec::new();
    for member in members {
        slots.extend(&member.skipped);
        names.push(if member.skipped_targets.is_empty() {
            member.name.clone()
        } else {
            format!("{} ({})", member.name, member.skipped_targets.join(", "))
        });
    }
    slots.sort_unstable();
    slots.dedup();
    let (are, them) = match slots.len() {
        1 => ("is", "it"),
        _ => ("are", "them"),
    };
    let name_list: Vec<&str> = names.iter().map(String::as_str).collect();
    let text = format!(
        "{} of {} {are} not in the sum: {} did not measure {them}",
        counted(slots.len() as u64, "slot"),
        sum.slots,
        names_text(&name_list)
    );
    Some(Block::toned_fact(Tone::Note, "skipped", text))
}

/// Names the members whose disks moved more or less than they requested. Empty for shared disks,
/// which count the requests of all members.
fn other_traffic_facts(sum: &FleetSum) -> Vec<Block> {
    let mut blocks = Vec::new();
    if sum.storage == SumStorage::Shared {
        return blocks;
    }
    for member in &sum.members {
        if let Some(share) = member.accounted
            && (share - 1.0).abs() > TRAFFIC_DIFFERENCE_MAX
        {
            let text = format!(
                "the disks of {} moved {} of what it asked for",
                member.name,
                format_percent(share)
            );
            blocks.push(Block::toned_fact(Tone::Warning, "other traffic", text));
        }
    }
    blocks
}

fn sum_table(sum: &FleetSum) -> Option<Block> {
    if sum.workloads.is_empty() {
        return None;
    }
    let mut rows = Vec::new();
    for workload in &sum.workloads {
        rows.push(TableRow::from(sum_cells(workload)));
    }
    let columns = vec![
        Column::new("together", Align::Left),
        Column::new("operation", Align::Left),
        Column::number("rate", Place::Always),
        Column::number("±", Place::Always),
        Column::number("throughput", Place::Always),
        Column::number("slots", Place::Roomy(1)),
        Column::number("overlap", Place::Roomy(1)),
        Column::number("median", Place::Roomy(2)),
        Column::number("99 %", Place::Roomy(2)),
    ];
    let title = format!("Sum of {}", counted(sum.members.len() as u64, "host"));
    Some(Block::Table(Table::new(&title, columns, rows)))
}

fn sum_cells(workload: &WorkloadSum) -> Vec<String> {
    let mut cells = vec![
        workload.workload.clone(),
        workload.op.as_str().to_owned(),
        estimate_text(&workload.iops),
        labels::or_unknown(workload.iops.relative_half_width().map(format_percent)),
        estimate_text(&workload.throughput),
        workload.slots.to_string(),
        format_percent(workload.overlap),
    ];
    let percentiles = match &workload.latencies {
        Some(latencies) => latencies.percentiles.as_slice(),
        None => &[],
    };
    for percent in PERCENTILES {
        cells.push(labels::latency(latency_at(percentiles, percent)));
    }
    cells
}

fn estimate_text(estimate: &Estimate) -> String {
    figure_text(estimate.value, estimate.half_width_95, &estimate.unit)
}

/// Says how well the clocks are known, by the member with the worst one, and how far apart slots
/// began.
fn clock_facts(sum: &FleetSum) -> Vec<Block> {
    let mut blocks = Vec::new();
    let Some(worst) = sum.members.iter().max_by_key(|member| member.bound_ns) else {
        return blocks;
    };
    let basis = match worst.clock {
        ClockBasis::SameClock => "all hosts read the same clock".to_owned(),
        ClockBasis::Fences => format!(
            "known to ± {} by the fences of the launcher",
            format_latency(worst.bound_ns)
        ),
        ClockBasis::WallClocks => format!(
            "known to ± {} by the hosts' own time services",
            format_latency(worst.bound_ns)
        ),
    };
    blocks.push(Block::toned_fact(Tone::Dim, "clocks", basis));
    if let Some(starts) = sum.starts {
        let text = format!(
            "slots began within {} (median), {} at most",
            format_latency(starts.median_ns),
            format_latency(starts.longest_ns)
        );
        blocks.push(Block::toned_fact(Tone::Dim, "starts", text));
    }
    blocks
}

/// Names for a sentence: `db1, db2`, or the first [`NAMES_MAX`] and how many more there are.
pub(super) fn names_text(names: &[&str]) -> String {
    if names.len() <= NAMES_MAX {
        return list(names);
    }
    let shown = names[..NAMES_MAX].join(", ");
    format!("{shown} and {} more", names.len() - NAMES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(accounted: f64) -> SumMember {
        SumMember {
            name: "db1".to_owned(),
            run_id: String::new(),
            bound_ns: 0,
            clock: ClockBasis::SameClock,
            skipped: Vec::new(),
            skipped_targets: Vec::new(),
            accounted: Some(accounted),
        }
    }

    #[test]
    fn host_with_other_traffic_is_named_unless_the_disks_are_shared() {
        let mut sum = crate::fixture::fleet_sum();
        sum.members = vec![member(1.019), member(0.981)];
        assert!(other_traffic_facts(&sum).is_empty());
        sum.members = vec![member(1.021), member(0.979)];
        assert_eq!(other_traffic_facts(&sum).len(), 2);
        sum.storage = SumStorage::Shared;
        assert!(other_traffic_facts(&sum).is_empty());
    }

    #[test]
    fn names_beyond_eight_are_counted() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        assert_eq!(names_text(&names[..8]), "a, b, c, d, e, f, g, h");
        assert_eq!(names_text(&names), "a, b, c, d, e, f, g, h and 2 more");
    }
}
