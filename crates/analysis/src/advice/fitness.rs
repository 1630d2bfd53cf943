//! Whether a figure may become a setting, and what to say where it may not.

use crate::checked::name_in_check;
use crate::estimate::HALF_WIDTH_MAX;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::CachePolicy;
use diskproof_model::record::{Advice, Estimate, MeasurementRecord, OpRecord, Record};

/// Findings after which a figure must not become a setting.
const MISLEADING: [&str; 7] = [
    "served-from-cache",
    UNWRITTEN,
    "not-direct",
    "io-errors",
    "flush-not-sent",
    "implausible-flush",
    "sync-method-differs",
];
const UNWRITTEN: &str = "unwritten-blocks";
/// A layer that makes up zeros for unwritten blocks, and a cache, answer in less: only an arm that
/// moves takes as long.
const SEEK_NS_MIN: f64 = 4e6;

/// Whether single random reads take as long as an arm that moves: then the disk read the blocks,
/// whether or not they were ever written.
fn has_obvious_seeks(record: &Record) -> bool {
    let random = op(record, "random-read-d1", OpKind::Read);
    random.is_some_and(|op| op.latency.p50.is_some_and(|ns| ns as f64 >= SEEK_NS_MIN))
}

/// Relative half-width of a rate; the widest that may become a setting where it is unknown.
pub(super) fn width(rate: &Estimate) -> f64 {
    rate.relative_half_width().unwrap_or(HALF_WIDTH_MAX)
}

/// Advice not to change a setting.
pub(super) fn leave_alone(setting: &str, why: String, from: &[&str]) -> Advice {
    Advice {
        setting: setting.to_owned(),
        value: None,
        range: None,
        why,
        from: from.iter().map(|f| (*f).to_owned()).collect(),
        default: None,
        condition: None,
    }
}

/// The measurement of a workload that `check` or `commit` knows by this name, and its place.
pub(super) fn measured<'a>(
    record: &'a Record,
    workload: &str,
) -> Option<(usize, &'a MeasurementRecord)> {
    let mut measured = record.measurements.iter().enumerate();
    measured.find(|(_, m)| name_in_check(&m.workload) == Some(workload))
}

/// Its operations of this kind.
pub(super) fn op<'a>(record: &'a Record, workload: &str, kind: OpKind) -> Option<&'a OpRecord> {
    measured(record, workload)?.1.ops.get(&kind)
}

/// Why a rate of a measurement, whose relative half-width is this, must not become a setting.
pub(super) fn unfit_rate(
    record: &Record,
    (index, m): (usize, &MeasurementRecord),
    precision: Option<f64>,
) -> Option<String> {
    let workload = &m.workload.name;
    let misleading = record.findings.iter().find(|finding| {
        let code = finding.code.as_str();
        let is_harmless = code == UNWRITTEN && has_obvious_seeks(record);
        MISLEADING.contains(&code) && finding.concerns(index) && !is_harmless
    });
    // A commit goes through the page cache, as the server's own do; what is synced has reached the
    // disk all the same.
    let is_direct = match m.workload.cache {
        CachePolicy::Direct => true,
        CachePolicy::Cached => m.ops.contains_key(&OpKind::Commit),
        CachePolicy::Buffered => false,
    };
    let why = match misleading {
        Some(finding) => Some(finding.code.as_str()),
        None => (!is_direct).then_some("page cache"),
    };
    if let Some(why) = why {
        return Some(format!(
            "Leave it unchanged, because the figure of {workload} is not the disk's ({why})."
        ));
    }
    let known = match precision {
        Some(width) if width <= HALF_WIDTH_MAX => return None,
        Some(width) => format!("known only to ±{:.0} %", width * 100.0),
        None => "unknown".to_owned(),
    };
    Some(format!(
        "Leave it unchanged, because the rate of {workload} is {known}. Measure longer (--time), \
         or when the machine is quieter."
    ))
}
