//! Settings of PostgreSQL that follow from the figures of `check`, and those to leave alone.

use super::fitness::{leave_alone, measured, op, unfit_rate, width};
use super::io_concurrency::{BITMAP_SCANS, GAIN_MIN, effective_setting, from_knee};
use super::tried::add_tried;
use super::wal_sync_method::wal_sync_method;
use crate::checked::PAGE_BYTES;
use crate::trials::{COMMIT_DELAY_MAX_US, COMMIT_DELAY_USEFUL_US};
use crate::whole_disk::{WholeDisk, whole_disk};
use diskproof_model::digits::{figure_text, rounded};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::{Advice, Record};
use diskproof_model::row::OpRow;
use diskproof_model::units::format_bytes;

/// Share of pages found in the cache. PostgreSQL's default of 4.0 assumes 90 %, and that a random
/// page costs 40 times as much as a sequential one (documentation of random_page_cost).
const HIT_SHARE: f64 = 0.90;
/// Shares that the range of random_page_cost spans.
const HIT_SHARES: [f64; 2] = [0.95, 0.80];
/// Below 1 a random page would be cheaper than a sequential one; the documentation advises against
/// it.
const COST_MIN: f64 = 1.0;
/// What guides advise for SSDs.
const COST_OF_SSDS: f64 = 1.1;
/// No disk head moves and settles faster (docs/verdict.md).
const SEEK_NS_MIN: f64 = 2e6;
/// From this many times as much on, a value needs an explanation.
const USUAL_FACTOR: f64 = 1.5;
/// Finer steps do not change a plan.
const COST_STEP: f64 = 0.1;

/// The advice that a record allows: for PostgreSQL, unless the profile of the run is that of
/// another server. With several targets none: a server has one setting, and which disk it uses is
/// unknown.
pub fn advice(record: &Record) -> Vec<Advice> {
    if record.targets.len() != 1 {
        return Vec::new();
    }
    if let Some(advice) = super::mysql::advice(record) {
        return vec![advice];
    }
    let mut advice = Vec::new();
    advice.extend(random_page_cost(record));
    advice.extend(effective_io_concurrency(record));
    advice.extend(wal_sync_method(record));
    advice.extend(commit_delay(record));
    advice.extend(from_knee(record));
    let was_tried = match record.postgres() {
        Some(postgres) => !postgres.trials.is_empty(),
        None => false,
    };
    if !advice.is_empty() || was_tried {
        let why =
            "Leave it on: no measurement proves that a disk never tears a page in a power failure.";
        advice.push(leave_alone("full_page_writes", why.to_owned(), &[]));
    }
    add_tried(record, &mut advice);
    advice
}

fn random_page_cost(record: &Record) -> Option<Advice> {
    let from = ["random-read-d1", "sequential-read"];
    let random = op(record, from[0], OpKind::Read)?;
    let sequential = op(record, from[1], OpKind::Read)?;
    if let Some(reason) = unfit(record, &from) {
        return Some(leave_alone("random_page_cost", reason, &from));
    }
    if random.data.count == 0 || sequential.figures.throughput.value <= 0.0 {
        return None;
    }
    let sequential_ns = f64::from(PAGE_BYTES) * 1e9 / sequential.figures.throughput.value;
    let whole = record
        .measurements
        .iter()
        .position(|m| m.data.workload.name == from[0])
        .and_then(|index| whole_disk(record, index));
    let slowdown = match &whole {
        Some(WholeDisk {
            known: Some(known), ..
        }) => known.slowdown,
        _ => 1.0,
    };
    let page = PageCost {
        ratio: random.figures.latency.mean * slowdown / sequential_ns,
        width: width(&random.figures.iops).hypot(width(&sequential.figures.throughput)),
    };
    let [few_misses, many_misses] = HIT_SHARES.map(|share| page.cost(share));
    let recommended = page.cost(HIT_SHARE);
    let percent = HIT_SHARE * 100.0;
    let span = match &whole {
        Some(whole) => span_text(whole),
        None => String::new(),
    };
    let why = format!(
        "A random 8 kB page takes {}, {} times as long as a sequential one ({}). {recommended} is \
         right if {percent:.0} % of the pages are cached, as PostgreSQL's documentation assumes. \
         With {:.0} % use {few_misses}, with {:.0} % {many_misses}.{}{span}",
        latency_text(random, slowdown),
        rounded(page.ratio, Some(page.ratio * page.width)),
        figure_text(sequential_ns, Some(sequential_ns * page.width), "ns"),
        HIT_SHARES[0] * 100.0,
        HIT_SHARES[1] * 100.0,
        usual_text(random, page.ratio).unwrap_or_default(),
    );
    let range = match (parse_cost(&few_misses), parse_cost(&many_misses)) {
        (Some(low), Some(high)) => Some([low, high]),
        _ => None,
    };
    Some(Advice {
        range,
        value: Some(recommended),
        default: Some("4.0".to_owned()),
        condition: Some(format!("if {percent:.0} % of the pages are cached")),
        ..leave_alone("random_page_cost", why, &from)
    })
}

/// What a random page costs.
struct PageCost {
    /// Its time over that of a sequential one.
    ratio: f64,
    /// The relative half-width of that.
    width: f64,
}

impl PageCost {
    /// random_page_cost, where this share of the pages is found in the cache.
    fn cost(&self, hit_share: f64) -> String {
        let cost = (self.ratio * (1.0 - hit_share)).max(COST_MIN);
        rounded(cost, Some((cost * self.width).max(COST_STEP)))
    }
}

fn parse_cost(text: &str) -> Option<f64> {
    text.replace(',', "").parse().ok()
}

/// Why the value differs from the one that is usual for SSDs. The kernel calls every virtio disk
/// rotating, so the time of a page decides what it is.
fn usual_text(random: OpRow<'_>, ratio: f64) -> Option<String> {
    let rotates = random.figures.latency.mean >= SEEK_NS_MIN;
    let differs = ratio * (1.0 - HIT_SHARE) >= USUAL_FACTOR * COST_OF_SSDS;
    if rotates || !differs {
        return None;
    }
    let percent = (1.0 - COST_OF_SSDS / ratio) * 100.0;
    Some(format!(
        " The {COST_OF_SSDS} often advised for SSDs assumes that both cost nearly the same. Here \
         that is right if {percent:.0} % are cached."
    ))
}

/// Which part of a rotating disk the figure holds for.
fn span_text(whole: &WholeDisk<'_>) -> String {
    let (span, disk) = (
        format_bytes(whole.span_bytes),
        format_bytes(whole.disk_bytes),
    );
    match whole.known {
        Some(known) => format!(
            " Measured in a file of {span} and scaled by {:.1} to the whole disk with the access \
             time of run {}.",
            known.slowdown,
            known.disk.run_id.get(..8).unwrap_or(&known.disk.run_id)
        ),
        None => format!(
            " This applies to {span} of the rotating disk of {disk}; a larger database needs a \
             higher value."
        ),
    }
}

/// As many reads in flight as the disk works on at a time: the rate at depth 32 over that at depth
/// 1, as a power of two, since the rate is known at two depths only.
fn effective_io_concurrency(record: &Record) -> Option<Advice> {
    let from = ["random-read-d1", "random-read-d32"];
    let one = op(record, from[0], OpKind::Read)?;
    let many = op(record, from[1], OpKind::Read)?;
    if let Some(reason) = unfit(record, &from) {
        return Some(leave_alone("effective_io_concurrency", reason, &from));
    }
    if one.figures.iops.value <= 0.0 {
        return None;
    }
    let gain = many.figures.iops.value / one.figures.iops.value;
    let width = width(&one.figures.iops).hypot(width(&many.figures.iops));
    let version = record.plan.questions.postgres_version;
    let pays = gain >= GAIN_MIN;
    let wanted = if pays {
        (gain.ceil() as u32).next_power_of_two()
    } else {
        1
    };
    let setting = effective_setting(version, wanted);
    let effect = if pays { "pays" } else { "gains little" };
    let why = format!(
        "32 reads in flight reach {} times the rate of one ({} and {}), so prefetching {effect}.{}",
        rounded(gain, Some(gain * width)),
        many.figures.iops.value_text(),
        one.figures.iops.value_text(),
        setting.default_text,
    );
    let condition = if pays { Some(BITMAP_SCANS) } else { None };
    Some(setting.advice("effective_io_concurrency", why, &from, condition))
}

/// Half the time of a flush after one 8 kB write (documentation of commit_delay); it helps only
/// sessions that commit at the same time.
fn commit_delay(record: &Record) -> Option<Advice> {
    let (index, m) = measured(record, "commit-fdatasync")?;
    let commit = m.op(OpKind::Commit)?;
    if commit.data.count == 0 {
        return None;
    }
    let from = m.data.workload.name.as_str();
    if let Some(reason) = unfit_rate(record, index, m.precision()) {
        return Some(leave_alone("commit_delay", reason, &[from]));
    }
    let mean = latency_text(commit, 1.0);
    let delay_us = (commit.figures.latency.mean / 2000.0).min(COMMIT_DELAY_MAX_US);
    if delay_us < COMMIT_DELAY_USEFUL_US {
        let why = format!("A durable 8 kB write takes {mean}, too short for a delay to help.");
        return Some(commit_delay_of_zero(None, why, from));
    }
    let delay = rounded(delay_us, Some(delay_us * width(&commit.figures.iops))).replace(',', "");
    let why = format!(
        "A durable 8 kB write takes {mean}. Leave the delay at 0. If many sessions commit at once \
         and wait for the disk, try half of that time, {delay} (microseconds), and keep it if \
         throughput rises."
    );
    Some(commit_delay_of_zero(delay.parse().ok(), why, from))
}

fn commit_delay_of_zero(experiment_us: Option<f64>, why: String, from: &str) -> Advice {
    Advice {
        value: Some("0".to_owned()),
        range: experiment_us.map(|delay_us| [0.0, delay_us]),
        default: Some("0".to_owned()),
        ..leave_alone("commit_delay", why, &[from])
    }
}

/// The mean latency of one request at a time, which is known as well as its rate; times `slowdown`,
/// as it is across the whole disk.
fn latency_text(op: OpRow<'_>, slowdown: f64) -> String {
    let mean_ns = op.figures.latency.mean * slowdown;
    figure_text(mean_ns, Some(mean_ns * width(&op.figures.iops)), "ns")
}

/// Why the figures of these workloads must not become a setting.
fn unfit(record: &Record, workloads: &[&str]) -> Option<String> {
    for workload in workloads {
        if let Some((index, m)) = measured(record, workload)
            && let Some(why) = unfit_rate(record, index, m.precision())
        {
            return Some(why);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, measured, states};
    use diskproof_model::plan::Workload;
    use diskproof_model::plan::{Access, CachePolicy, SyncPolicy};
    use diskproof_model::stream::Streams;

    fn find(record: &Record, setting: &str) -> Advice {
        record
            .advice
            .iter()
            .find(|a| a.setting == setting)
            .cloned()
            .unwrap_or_else(|| panic!("no {setting}: {:?}", record.advice))
    }

    #[test]
    fn random_page_cost_states_its_span_and_scales_where_the_disk_is_known() {
        let of = |is_known| {
            let advice = find(&fixture::on_rotating_disk(is_known), "random_page_cost");
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
        let advice = find(&fixture::record(), "random_page_cost");
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
        rotating.advice = super::advice(&rotating);
        assert!(!find(&rotating, "random_page_cost").why.contains("SSDs"));
    }

    #[test]
    fn commit_delay_stays_zero_and_names_the_experiment() {
        let advice = find(&fixture::record(), "commit_delay");
        assert_eq!(
            (advice.value.as_deref(), advice.range),
            (Some("0"), Some([0.0, 1000.0]))
        );
        states(&advice.why, &["2.00 ms", "1000 (microseconds)"]);
    }

    #[test]
    fn effective_io_concurrency_is_one_value_for_the_version() {
        // 10,000/s against 2000/s: the disk works on five reads at a time.
        let of = |version: Option<u32>| {
            let mut record = fixture::record();
            record.plan.questions.postgres_version = version;
            record.advice = advice(&record);
            find(&record, "effective_io_concurrency")
        };
        let cases = [
            (Some(18), "16", Some("16"), false),
            (Some(17), "8", Some("1"), true),
            (Some(13), "8", Some("1"), true),
            // 4 × (1 + 1/2 + 1/3 + 1/4) = 8.3
            (Some(12), "4", Some("1"), true),
            (None, "16", None, true),
        ];
        for (version, value, default, changes) in cases {
            let advice = of(version);
            let found = (
                advice.value.as_deref(),
                advice.default.as_deref(),
                advice.changes(),
            );
            assert_eq!(found, (Some(value), default, changes), "{version:?}");
        }
        states(&of(Some(18)).why, &["5.00 times", "(10,000/s and 2000/s)"]);
        states(&of(None).why, &["--pg-version"]);
    }

    /// What gets no grade becomes no setting either.
    #[test]
    fn unwritten_blocks_give_no_setting_however_slow_they_are() {
        let slow = |latency_ns: u64| {
            let mut record = fixture::faulty("random-read-d1", |m| {
                m.unwritten_bytes = Some(m.span_bytes);
            });
            let op = measured(&mut record, "random-read-d1")
                .figures
                .ops
                .get_mut(&OpKind::Read);
            op.unwrap().latency.p50 = Some(latency_ns);
            record.advice = advice(&record);
            find(&record, "random_page_cost")
        };
        assert_eq!(slow(500_000).value, None);
        assert_eq!(slow(15_000_000).value, None);
    }

    #[test]
    fn advice_skips_figures_that_are_hardly_known() {
        let shaky = fixture::faulty("random-read-d1", |m| {
            let cells = &mut m.ops.get_mut(&OpKind::Read).unwrap().series.cells;
            for (i, cell) in cells.iter_mut().enumerate() {
                cell.ops *= if i % 100 < 50 { 3 } else { 0 };
            }
        });
        let advice = find(&shaky, "random_page_cost");
        assert_eq!((advice.value, advice.range), (None, None));
        states(&advice.why, &["random-read-d1"]);
    }

    #[test]
    fn advice_skips_figures_of_a_cache() {
        let cached = fixture::faulty("sequential-read", |m| m.device.read_bytes = 0);
        let advice = find(&cached, "random_page_cost");
        assert_eq!((advice.value, advice.range), (None, None));
        states(&advice.why, &["sequential-read", "(served-from-cache)"]);
        assert!(find(&cached, "commit_delay").range.is_some());
        let buffered = fixture::all_faulty(|m| {
            (m.cache.asked, m.cache.used) = (CachePolicy::Buffered, CachePolicy::Buffered)
        });
        for advice in buffered.advice {
            assert_eq!(
                (advice.value, advice.range),
                (None, None),
                "{}",
                advice.setting
            );
        }
    }

    #[test]
    fn advice_needs_more_than_the_name_of_a_workload() {
        const ALL: [&str; 4] = [
            "random_page_cost",
            "effective_io_concurrency",
            "commit_delay",
            "full_page_writes",
        ];
        /// A workload, its change, and the settings that are not advised then.
        type Case<'a> = (&'a str, fn(&mut Workload), &'a [&'a str]);
        let cases: [Case<'_>; 10] = [
            ("commit-fdatasync", |_| {}, &[]),
            (
                "commit-fdatasync",
                |w| w.block_bytes = 65536,
                &["commit_delay"],
            ),
            (
                "commit-fdatasync",
                |w| w.sync = SyncPolicy::None,
                &["commit_delay"],
            ),
            ("commit-fdatasync", |w| w.depth = 2, &["commit_delay"]),
            (
                "commit-fdatasync",
                |w| w.rate = Some(10.0),
                &["commit_delay"],
            ),
            ("random-read-d1", |w| w.workers = 2, &ALL[..2]),
            (
                "random-read-d1",
                |w| w.access = Access::Sequential,
                &ALL[..2],
            ),
            (
                "random-read-d1",
                |w| w.streams = Streams::with_reads(500),
                &ALL[..2],
            ),
            (
                "sequential-read",
                |w| w.access = Access::Backward,
                &ALL[..1],
            ),
            ("random-read-d32", |w| w.depth = 4, &ALL[1..2]),
        ];
        for (row, (name, change, without)) in cases.into_iter().enumerate() {
            let mut record = fixture::record();
            change(&mut measured(&mut record, name).data.workload);
            let settings: Vec<String> = advice(&record).into_iter().map(|a| a.setting).collect();
            for setting in ALL {
                let expected = !without.contains(&setting);
                let found = settings.iter().any(|s| s == setting);
                assert_eq!(found, expected, "{row}: {name}, {setting}");
            }
        }
    }

    #[test]
    fn advice_is_empty_without_the_workloads() {
        assert_eq!(fixture::changed(|run| run.1.truncate(1)).advice, []);
    }
}
