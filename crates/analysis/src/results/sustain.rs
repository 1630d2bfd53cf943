//! Writes the clause of the headline on a sustained load: its lasting rate, its fall, and what
//! explains it.

use crate::limiter::words::{amount_text, base_text, limit_text};
use diskproof_model::digits::rounded;
use diskproof_model::record::Record;
use diskproof_model::sustain::{RateDrop, SustainRecord};
use diskproof_model::units::{format_bytes, format_duration};

/// The factor of a fall is shown as if known to this share: with two or three digits.
const FACTOR_KNOWN: f64 = 0.02;

/// `sustains 3000/s; 16,000/s for 3 min after a pause of 15 min (bucket of at least 2.3 M
/// requests)`, `fell by 4 × after 38 GB (write cache), back after 30 s without load: no, 5 min:
/// yes`, or `no fall in 2 h and 1.4 TB …`.
pub(super) fn sustain_clause(record: &Record, found: &SustainRecord) -> String {
    let lasting = found.lasting.value_text();
    if let Some(doubtful) = &found.doubtful_drop {
        let fall = match doubtful.factor() {
            Some(_) => format!("{} to {lasting}", fall_text(doubtful)),
            None => fall_text(doubtful),
        };
        return format!(
            "undecided: {fall} after {}, while the machine, other \
             programs or slower places of the disk may explain it",
            format_bytes(doubtful.moved.bytes)
        );
    }
    let Some(drop) = &found.drop else {
        return format!(
            "sustains {lasting}: no fall in {} and {}; a credit of more than that would not have \
             shown",
            format_duration(found.time_ns),
            format_bytes(found.tested_credit().bytes)
        );
    };
    if let Some(bucket) = &found.bucket
        && let Some(credit) = record
            .burst_credits
            .iter()
            .find(|credit| credit.base == bucket.base.value)
    {
        return format!(
            "sustains {}; {} for {} after a pause of {} (bucket of {})",
            base_text(record, credit),
            limit_text(credit.burst, &credit.unit),
            format_duration(credit.burst_ns),
            format_duration(credit.refill_ns),
            amount_text(record, credit),
        );
    }
    let mut recovered = Vec::new();
    for recovery in &found.recoveries {
        let answer = if recovery.is_back { "yes" } else { "no" };
        recovered.push(format!("{}: {answer}", format_duration(recovery.pause_ns)));
    }
    let back = if recovered.is_empty() {
        String::new()
    } else {
        format!("; back after a pause of {}", recovered.join(", "))
    };
    format!(
        "sustains {lasting}; {} after {} ({}){back}",
        fall_text(drop),
        format_bytes(drop.moved.bytes),
        drop.cause.as_str(),
    )
}

/// `fell by 4 ×`, or `stopped` of a load that moved nothing any more.
fn fall_text(drop: &RateDrop) -> String {
    match drop.factor() {
        Some(factor) => format!("fell by {} ×", rounded(factor, Some(factor * FACTOR_KNOWN))),
        None => "stopped".to_owned(),
    }
}
