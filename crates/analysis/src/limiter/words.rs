//! Writes what is known of a limiter with a burst credit in words, and the command that tests for
//! one.

use super::{Unit, rate_of, waits_for_disk};
use crate::volume_types::base_of_burst;
use diskproof_model::digits::{figure_text, rounded};
use diskproof_model::limiter::BurstCredit;
use diskproof_model::record::Record;
use diskproof_model::shell::quoted;
use diskproof_model::units::{format_bytes, format_duration};

/// The uncertainty to which rates of a limiter are rounded, as a share of them: plateaus of one
/// limiter may differ by this much.
const RATE_ERROR: f64 = 0.01;

/// `1500/s`: the rate of a limiter, rounded to its uncertainty. `unit` is `1/s` or `B/s`.
pub(crate) fn limit_text(rate: f64, unit: &str) -> String {
    figure_text(rate, Some(rate * RATE_ERROR), unit)
}

/// The base rate of a credit in the other unit, where the run cannot tell which of the two the
/// limiter counts: all requests that met it had one size.
pub(crate) struct OtherUnit {
    /// The size of all requests, in bytes.
    pub(crate) request_bytes: u32,
    /// The base rate in the other unit, such as `15.0 MB/s`.
    pub(crate) base: String,
}

/// The only size of the requests that met a limiter, in bytes; `None` where they had several, and
/// where another row shows that the limiter does not count in the other unit: it passed more.
fn only_bytes_at_base(record: &Record, credit: &BurstCredit) -> Option<u32> {
    let mut only = None;
    for index in &credit.at_base {
        let workload = &record.measurements.get(*index)?.data.workload;
        let is_other = only.is_some_and(|bytes| bytes != workload.block_bytes);
        if is_other || !workload.block_mix.is_empty() || workload.transaction.is_some() {
            return None;
        }
        only = Some(workload.block_bytes);
    }
    let request_bytes = only?;
    let unit = Unit::of_credit(credit);
    let base = base_in_other_unit(credit, request_bytes);
    let is_exceeded = record.measurements.iter().enumerate().any(|(index, row)| {
        row.data.target == credit.target
            && !credit.at_base.contains(&index)
            && !credit.in_burst.contains(&index)
            && waits_for_disk(&row.data)
            && rate_of(row, unit.other()) > (1.0 + RATE_ERROR) * base
    });
    if is_exceeded {
        None
    } else {
        Some(request_bytes)
    }
}

/// The base rate of a credit in the unit that is not its own, in requests of this size.
fn base_in_other_unit(credit: &BurstCredit, request_bytes: u32) -> f64 {
    match Unit::of_credit(credit) {
        Unit::Requests => credit.base * f64::from(request_bytes),
        Unit::Bytes => credit.base / f64::from(request_bytes),
    }
}

/// The other unit in which a limiter may count; `None` where requests of several sizes decide.
/// Larger requests that are slower than the limiter do not.
pub(crate) fn other_unit(record: &Record, credit: &BurstCredit) -> Option<OtherUnit> {
    let request_bytes = record
        .only_request_bytes(credit.target)
        .or_else(|| only_bytes_at_base(record, credit))?;
    let unit = Unit::of_credit(credit);
    Some(OtherUnit {
        request_bytes,
        base: limit_text(
            base_in_other_unit(credit, request_bytes),
            unit.other().per_second(),
        ),
    })
}

/// `458/s (15.0 MB/s in requests of 32 KiB)`: the base rate of a credit, in both units where the
/// run cannot tell which one the limiter counts.
pub(crate) fn base_text(record: &Record, credit: &BurstCredit) -> String {
    let base = limit_text(credit.base, &credit.unit);
    match other_unit(record, credit) {
        Some(other) => format!(
            "{base} ({} in requests of {})",
            other.base,
            format_bytes(u64::from(other.request_bytes))
        ),
        None => base,
    }
}

/// `1500/s for ever; 3000/s for 13 s after a pause of 13 s`, with the base in both units where the
/// run cannot tell which one the limiter counts.
pub(crate) fn credit_text(record: &Record, credit: &BurstCredit) -> String {
    format!(
        "{} for ever; {} for {} after a pause of {}",
        base_text(record, credit),
        limit_text(credit.burst, &credit.unit),
        format_duration(credit.burst_ns),
        format_duration(credit.refill_ns)
    )
}

/// `The disk of /data allows 1500/s for ever; …`: a sentence for each credit. It names the target
/// where the run had several.
pub(crate) fn allowed_text(record: &Record, credits: &[&BurstCredit]) -> String {
    let mut sentences = Vec::new();
    for credit in credits {
        let disk = match record.targets.get(credit.target) {
            Some(target) if record.targets.len() > 1 => format!("The disk of {}", target.path),
            Some(_) | None => "The disk".to_owned(),
        };
        sentences.push(format!("{disk} allows {}.", credit_text(record, credit)));
    }
    sentences.join(" ")
}

/// `at least 20,000 requests` or `about 1.3 GB`: the size of the credit. Requests have their size
/// where the limiter may as well count their bytes.
pub(crate) fn amount_text(record: &Record, credit: &BurstCredit) -> String {
    let amount = match Unit::of_credit(credit) {
        Unit::Bytes => format!("{} GB", rounded(credit.credit / 1e9, None)),
        Unit::Requests => {
            let size = match other_unit(record, credit) {
                Some(other) => format!(" of {}", format_bytes(u64::from(other.request_bytes))),
                None => String::new(),
            };
            format!("{} requests{size}", rounded(credit.credit, None))
        }
    };
    if credit.credit_is_lower_bound {
        format!("at least {amount}")
    } else {
        format!("about {amount}")
    }
}

/// A run that is long enough to use up the largest documented credit.
pub(crate) struct CreditTest {
    /// A complete command line of diskproof.
    pub(crate) command: String,
    /// The measured time of that run.
    pub(crate) ns: u64,
}

/// The largest documented credit of a volume, in requests: that of EBS gp2 (AWS, "Amazon EBS volume
/// types").
const CREDIT_MAX: f64 = 5_400_000.0;
/// Providers document credits in requests. One in bytes is assumed to be the same number of
/// requests of 16 KiB.
const CREDIT_REQUEST_BYTES: f64 = 16_384.0;
/// The bucket refills while the test runs. The test is long enough for a refill of this share of
/// the rate, where the volume does not document its own.
const BASE_SHARE: f64 = 0.5;
/// Test times are whole steps of ten minutes.
const STEP_MINUTES: f64 = 10.0;
/// The shortest test: the credit of Azure's disks lasts half an hour. There is no longest one: a
/// shorter test would call a volume free of credit that spends its own for hours, as EBS gp2 does
/// below some 900 GiB.
const MINUTES_MIN: f64 = 30.0;
/// Longer tests are whole hours: a day.
const HOURS_FROM_MINUTES: f64 = 1440.0;

impl CreditTest {
    /// A test for a target that reaches `rate` in `unit` per second. It only reads.
    pub(crate) fn new(record: &Record, target: usize, unit: Unit, rate: f64) -> Self {
        let (credit, load) = match unit {
            Unit::Requests => (CREDIT_MAX, "--rw randread --bs 8k --depth 32"),
            Unit::Bytes => (
                CREDIT_MAX * CREDIT_REQUEST_BYTES,
                "--rw read --bs 1M --depth 8",
            ),
        };
        let identity = record.targets.get(target);
        let documented_base = match identity {
            Some(identity) => base_of_burst(identity, rate, unit.per_second()),
            None => None,
        };
        let base = documented_base.unwrap_or(BASE_SHARE * rate);
        let credit_minutes = credit / (rate - base).max(1.0) / 60.0;
        let step = if credit_minutes > HOURS_FROM_MINUTES {
            60.0
        } else {
            STEP_MINUTES
        };
        let minutes = ((credit_minutes / step).ceil() * step).max(MINUTES_MIN) as u64;
        let time = if minutes as f64 > HOURS_FROM_MINUTES {
            format!("{}h", minutes / 60)
        } else {
            format!("{minutes}m")
        };
        let path = match identity {
            Some(identity) => identity.path.as_str(),
            None => "TARGET",
        };
        Self {
            command: format!("diskproof run {} {load} --time {time}", quoted(path)),
            ns: minutes.saturating_mul(60_000_000_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};

    /// One size of requests cannot tell the unit of a limiter, so each sentence on its rate has
    /// both.
    #[test]
    fn sentences_have_both_units_where_one_size_met_the_limiter() {
        let credit = crate::rules::test_credit();
        let mut record = fixture::record();
        assert!(credit_text(&record, &credit).starts_with("1500/s for ever"));
        assert_eq!(amount_text(&record, &credit), "at least 20,000 requests");
        record
            .measurements
            .retain(|row| row.data.workload.block_bytes == 8192);
        let texts = [
            credit_text(&record, &credit),
            allowed_text(&record, &[&credit]),
            base_text(&record, &credit),
        ];
        for text in texts {
            states(&text, &["1500/s (12.3 MB/s in requests of 8 KiB)"]);
        }
        states(
            &amount_text(&record, &credit),
            &["20,000 requests of 8 KiB"],
        );
    }

    /// Small requests met a limiter of 158 MB/s, and streams are slower than it.
    #[test]
    fn limit_that_only_small_requests_met_has_both_units() {
        let mut record = fixture::record();
        let small = record
            .measurements
            .iter()
            .position(|row| row.data.workload.block_bytes == 8192);
        let credit = BurstCredit {
            base: 19_283.0,
            burst: 40_000.0,
            at_base: vec![small.unwrap()],
            in_burst: Vec::new(),
            ..crate::rules::test_credit()
        };
        // 400 MiB/s are more than a limiter of bytes allows.
        assert!(other_unit(&record, &credit).is_none());
        for row in &mut record.measurements {
            for op in row.figures.ops.values_mut() {
                op.throughput.value = op.throughput.value.min(60e6);
            }
        }
        states(
            &base_text(&record, &credit),
            &["19,300/s (158 MB/s in requests of 8 KiB)"],
        );
    }

    /// The test of a burst of 3000/s on an EBS volume of this size.
    fn test_of(gib: u64) -> CreditTest {
        let mut record = fixture::record();
        for layer in &mut record.targets[0].layers {
            layer.model = Some("Amazon Elastic Block Store".to_owned());
            layer.size_bytes = gib << 30;
        }
        CreditTest::new(&record, 0, Unit::Requests, 3000.0)
    }

    /// 5.4 million requests: at 300/s in 2000 s, at 2700/s in five hours. A larger volume hardly
    /// falls: it has the test of one whose base is not documented.
    #[test]
    fn test_is_as_long_as_the_credit_lasts() {
        for (gib, minutes, time) in [
            (100, 40, "40m"),
            (900, 300, "300m"),
            (950, 60, "60m"),
            (997, 60, "60m"),
        ] {
            let test = test_of(gib);
            assert_eq!(test.ns, minutes * 60_000_000_000, "{gib} GiB");
            assert!(test.command.ends_with(&format!("--time {time}")), "{gib}");
        }
    }
}
