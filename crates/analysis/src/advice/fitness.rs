//! Whether a figure may become a setting, and what to say where it may not.

use crate::checked::name_in_check;
use crate::estimate::HALF_WIDTH_MAX;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::CachePolicy;
use diskproof_model::proof::FigureSource;
use diskproof_model::record::{Advice, Estimate, Record};
use diskproof_model::row::{OpRow, Row};

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
pub(super) fn measured<'a>(record: &'a Record, workload: &str) -> Option<(usize, &'a Row)> {
    let mut measured = record.measurements.iter().enumerate();
    measured.find(|(_, m)| name_in_check(m) == Some(workload))
}

/// Its operations of this kind.
pub(super) fn op<'a>(record: &'a Record, workload: &str, kind: OpKind) -> Option<OpRow<'a>> {
    measured(record, workload)?.1.op(kind)
}

/// Why a rate of a measurement, whose relative half-width is this, must not become a setting.
pub(super) fn unfit_rate(record: &Record, index: usize, precision: Option<f64>) -> Option<String> {
    let m = &record.measurements[index];
    let workload = &m.data.workload.name;
    // A commit goes through the page cache, as the server's own do; what is synced has reached the
    // disk all the same.
    let is_direct = match m.data.cache.used {
        CachePolicy::Direct => true,
        CachePolicy::Cached => m.data.ops.contains_key(&OpKind::Commit),
        CachePolicy::Buffered => false,
    };
    let objection = record.objection(FigureSource::Measurement(index));
    let why = match objection {
        Some(objection) => Some(objection.finding.code.as_str()),
        None if is_direct => None,
        None => Some("page cache"),
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
