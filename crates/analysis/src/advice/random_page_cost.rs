//! Advises on PostgreSQL's random_page_cost, which follows from the time of a random page over that
//! of a sequential one, as far as the pages are not found in the cache.

use super::reasons_against::{
    find_operations, half_width_or_max, leave_alone, mean_latency_text, reason_against_workloads,
};
use crate::checked::PAGE_BYTES;
use crate::whole_disk::{WholeDisk, whole_disk};
use diskproof_model::advice::Advice;
use diskproof_model::digits::{figure_text, rounded, rounded_number, rounded_ungrouped};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;
use diskproof_model::row::OpRow;
use diskproof_model::units::format_bytes;

const SETTING: &str = "random_page_cost";
/// PostgreSQL's default (documentation of random_page_cost).
const DEFAULT: &str = "4.0";
const RANDOM_READS: &str = "random-read-d1";
const SEQUENTIAL_READS: &str = "sequential-read";

/// Share of pages found in the cache. PostgreSQL's default of 4.0 assumes 90 %, and that a random
/// page costs 40 times as much as a sequential one (documentation of random_page_cost).
const HIT_SHARE: f64 = 0.90;
/// The share at the lower end of the range of random_page_cost: half as many misses.
const HIT_SHARE_HIGH: f64 = 0.95;
/// The share at the upper end of the range: twice as many misses.
const HIT_SHARE_LOW: f64 = 0.80;
/// Below 1 a random page would be cheaper than a sequential one; the documentation advises against
/// it.
const COST_MIN: f64 = 1.0;
/// Finer steps do not change a plan.
const COST_STEP: f64 = 0.1;
/// The value that guides advise for SSDs.
const COST_OF_SSDS: f64 = 1.1;
/// From this many times [`COST_OF_SSDS`] on, the text explains why the value is so much larger.
/// Chosen, not measured.
const EXPLAINED_FACTOR: f64 = 1.5;
/// No disk head moves and settles faster (docs/verdict.md).
const SEEK_NS_MIN: f64 = 2e6;

/// The advice; `None` where one of the two workloads was not measured.
pub(super) fn advise_random_page_cost(record: &Record) -> Option<Advice> {
    let from = [RANDOM_READS, SEQUENTIAL_READS];
    let random = find_operations(record, RANDOM_READS, OpKind::Read)?;
    let sequential = find_operations(record, SEQUENTIAL_READS, OpKind::Read)?;
    if let Some(reason) = reason_against_workloads(record, &from) {
        return Some(leave_alone(SETTING, reason, &from));
    }
    if random.data.count == 0 || sequential.figures.throughput.value <= 0.0 {
        return None;
    }
    let whole = find_whole_disk(record);
    let slowdown = match &whole {
        Some(WholeDisk {
            known: Some(known), ..
        }) => known.slowdown,
        _ => 1.0,
    };
    let span = match &whole {
        Some(whole) => span_text(whole),
        None => String::new(),
    };
    let sequential_ns = f64::from(PAGE_BYTES) * 1e9 / sequential.figures.throughput.value;
    let time_ratio = PageTimeRatio {
        value: random.figures.latency.mean * slowdown / sequential_ns,
        relative_half_width: half_width_or_max(&random.figures.iops)
            .hypot(half_width_or_max(&sequential.figures.throughput)),
    };
    let recommended = time_ratio.cost(HIT_SHARE);
    let few_misses = time_ratio.cost(HIT_SHARE_HIGH);
    let many_misses = time_ratio.cost(HIT_SHARE_LOW);
    let percent = HIT_SHARE * 100.0;
    let why = format!(
        "A random 8 kB page takes {}, {} times as long as a sequential one ({}). {} is right if \
         {percent:.0} % of the pages are cached, as PostgreSQL's documentation assumes. With \
         {:.0} % use {}, with {:.0} % {}.{}{span}",
        mean_latency_text(random, slowdown),
        rounded(time_ratio.value, Some(time_ratio.half_width())),
        figure_text(
            sequential_ns,
            Some(sequential_ns * time_ratio.relative_half_width),
            "ns"
        ),
        recommended.text,
        HIT_SHARE_HIGH * 100.0,
        few_misses.text,
        HIT_SHARE_LOW * 100.0,
        many_misses.text,
        large_cost_text(random, time_ratio.value),
    );
    Some(Advice {
        range: Some([few_misses.value, many_misses.value]),
        value: Some(recommended.text),
        default: Some(DEFAULT.to_owned()),
        condition: Some(format!("if {percent:.0} % of the pages are cached")),
        ..leave_alone(SETTING, why, &from)
    })
}

/// The relation of the random reads to their disk; `None` unless they cover a small part of a
/// rotating one.
fn find_whole_disk(record: &Record) -> Option<WholeDisk<'_>> {
    let index = record
        .measurements
        .iter()
        .position(|row| row.data.workload.name == RANDOM_READS)?;
    whole_disk(record, index)
}

/// The time of a random page over that of a sequential one.
struct PageTimeRatio {
    value: f64,
    relative_half_width: f64,
}

impl PageTimeRatio {
    fn half_width(&self) -> f64 {
        self.value * self.relative_half_width
    }

    /// The random_page_cost that is right where this share of the pages is found in the cache.
    fn cost(&self, hit_share: f64) -> PageCost {
        let cost = (self.value * (1.0 - hit_share)).max(COST_MIN);
        let half_width = (cost * self.relative_half_width).max(COST_STEP);
        PageCost {
            value: rounded_number(cost, Some(half_width)),
            text: rounded_ungrouped(cost, Some(half_width)),
        }
    }
}

/// A value of random_page_cost with the digits that are known of it.
struct PageCost {
    value: f64,
    /// As it stands in postgresql.conf.
    text: String,
}

/// A sentence on why the cost is larger than the one that is often advised for SSDs; empty where it
/// is about the same, and for a rotating disk. The kernel calls every virtio disk rotating, so the
/// time of a page decides whether it is one.
fn large_cost_text(random: OpRow<'_>, time_ratio: f64) -> String {
    let rotates = random.figures.latency.mean >= SEEK_NS_MIN;
    let is_much_larger = time_ratio * (1.0 - HIT_SHARE) >= EXPLAINED_FACTOR * COST_OF_SSDS;
    if rotates || !is_much_larger {
        return String::new();
    }
    let uncached_percent = COST_OF_SSDS / time_ratio * 100.0;
    let percent = 100.0 - uncached_percent;
    // 99.5 % are not 100 %.
    let digits = (-uncached_percent.log10().floor()).clamp(0.0, 9.0) as usize;
    format!(
        " The {COST_OF_SSDS} often advised for SSDs assumes that both cost nearly the same. Here \
         that is right if {percent:.digits$} % are cached."
    )
}

/// The part of a rotating disk that the figure holds for.
fn span_text(whole: &WholeDisk<'_>) -> String {
    let span = format_bytes(whole.span_bytes);
    match whole.known {
        Some(known) => format!(
            " Measured in a file of {span} and scaled by {:.1} to the whole disk with the access \
             time of run {}.",
            known.slowdown,
            known.disk.run_id.get(..8).unwrap_or(&known.disk.run_id)
        ),
        None => format!(
            " This applies to {span} of the rotating disk of {}; a larger database needs a higher \
             value.",
            format_bytes(whole.disk_bytes)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::advised_settings;
    use crate::fixture::{self, find_advice, states};

    #[test]
    fn random_page_cost_states_its_span_and_scales_where_the_disk_is_known() {
        let of = |is_known| {
            let advice = find_advice(&fixture::on_rotating_disk(is_known), "random_page_cost");
            (advice.range.unwrap()[1], advice.why)
        };
        let ((unknown, part), (known, whole)) = (of(false), of(true));
        assert!((known / unknown - 4.0).abs() < 0.2, "{known} {unknown}");
        states(&part, &["rotating disk"]);
        states(&whole, &["scaled by 4.0"]);
    }

    #[test]
    fn random_page_cost_has_one_value_and_a_range_over_cache_hit_shares() {
        // 500 µs a page at random, 8192 / (400 MiB/s) = 19.5 µs in sequence: a ratio of 25.6.
        let advice = find_advice(&fixture::record(), "random_page_cost");
        assert_eq!(
            (advice.value.as_deref(), advice.range),
            (Some("2.6"), Some([1.3, 5.1]))
        );
        let parts = [
            "25.6 times",
            "19.5 µs",
            "90 %",
            "With 95 % use 1.3, with 80 % 5.1",
            "1.1",
            "96 %",
        ];
        states(&advice.why, &parts);
        let mut rotating = fixture::record();
        let reads = rotating.measurements.iter_mut();
        for op in reads.filter_map(|m| m.figures.ops.get_mut(&OpKind::Read)) {
            op.latency.mean = 8e6;
        }
        rotating.advice = advised_settings(&rotating);
        assert!(
            !find_advice(&rotating, "random_page_cost")
                .why
                .contains("SSDs")
        );
    }

    #[test]
    fn cost_in_postgresql_conf_has_no_commas() {
        let slow = PageTimeRatio {
            value: 123_456.0,
            relative_half_width: 0.01,
        };
        let cost = slow.cost(HIT_SHARE);
        assert_eq!((cost.text.as_str(), cost.value), ("12300", 12_300.0));
    }
}
