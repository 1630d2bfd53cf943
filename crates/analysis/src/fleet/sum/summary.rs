//! Writes the sentence on what the hosts of a sum gave together.

use diskproof_model::comparison::Reason;
use diskproof_model::digits::figure_text;
use diskproof_model::fleet_sum::{FleetSum, SumStorage, WorkloadSum};
use diskproof_model::units::{counted, format_percent};

/// The summary names this many workloads; the table has all.
const NAMED_MAX: usize = 3;

/// `3 hosts together: random-read-d32 9,000/s ± 0.4 %; …`. `total` is the number of hosts that were
/// started.
pub(super) fn sum_sentence(sum: &FleetSum, total: usize) -> String {
    if sum.workloads.is_empty() {
        return match (sum.left_out.first(), sum.undecided.first()) {
            (Some(out), _) => no_sum_text(total, &out.name, &out.reason),
            (None, Some(first)) => no_sum_text(total, &first.name, &first.reason),
            (None, None) => format!(
                "No sum of {}: no slot was measured by all at the same time",
                counted(total as u64, "host")
            ),
        };
    }
    let mut texts = Vec::new();
    for workload in &sum.workloads {
        texts.push(format!("{} {}", workload.workload, rate_text(workload)));
    }
    for undecided in &sum.undecided {
        texts.push(format!("{} undecided", undecided.workload));
    }
    let more = texts.len().saturating_sub(NAMED_MAX);
    texts.truncate(NAMED_MAX);
    if more > 0 {
        texts.push(format!("{more} more"));
    }
    let hosts = if sum.members.len() == total {
        counted(total as u64, "host")
    } else {
        format!("{} of {}", sum.members.len(), counted(total as u64, "host"))
    };
    let storage = match sum.storage {
        SumStorage::Separate => "",
        SumStorage::Shared => " on one storage",
    };
    format!("{hosts} together{storage}: {}", texts.join("; "))
}

/// `No sum of 3 hosts. db2: a cache answered instead of the disk`.
fn no_sum_text(total: usize, name: &str, reason: &Reason) -> String {
    let hosts = counted(total as u64, "host");
    format!("No sum of {hosts}. {name}: {}", reason.why)
}

/// `9,000/s ± 0.4 %`.
fn rate_text(workload: &WorkloadSum) -> String {
    let iops = &workload.iops;
    let rate = figure_text(iops.value, iops.half_width_95, &iops.unit);
    match iops.relative_half_width() {
        Some(half_width) => format!("{rate} ± {}", format_percent(half_width)),
        None => rate,
    }
}
