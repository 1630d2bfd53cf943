//! Settings of PostgreSQL, as far as they follow from the figures of `check`; where they do not,
//! that they are better left alone. Knows the names of `check`'s workloads and the documented
//! relations, nothing of a server.

use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Access, CachePolicy, Distribution, EngineKind, SyncCall, SyncPolicy};
use diskproof_model::record::{Advice, MeasurementRecord, OpRecord, Record, WorkloadRecord};
use diskproof_model::units::{format_latency, format_rate};

/// Bytes of a page (BLCKSZ), unless the server was built otherwise.
const PAGE_BYTES: u32 = 8192;
/// Cache hit rates that the range of random_page_cost spans. PostgreSQL's default of 4.0 stands for
/// 40 × the cost of a sequential page and 90 % found in the cache (documentation of
/// random_page_cost).
const HIT_RATES: [f64; 3] = [0.95, 0.90, 0.80];
/// Largest value of commit_delay in microseconds (documentation of commit_delay).
const COMMIT_DELAY_MAX_US: f64 = 100_000.0;
/// Shorter than this, a delay is lost in the scheduling of processes.
const COMMIT_DELAY_USEFUL_US: f64 = 10.0;
/// Relative half-width of a rate beyond which it must not become a setting.
const HALF_WIDTH_MAX: f64 = 0.25;
/// Findings after which a figure must not become a setting.
const MISLEADING: [&str; 4] = [
    "served-from-cache",
    "unwritten-blocks",
    "not-direct",
    "io-errors",
];

/// The advice that a record allows. With several targets none: a server has one setting, and which
/// disk is its is not known.
pub fn advice(record: &Record) -> Vec<Advice> {
    if record.targets.len() != 1 {
        return Vec::new();
    }
    let mut advice: Vec<Advice> = [random_page_cost, effective_io_concurrency, commit_delay]
        .into_iter()
        .filter_map(|f| f(record))
        .collect();
    if !advice.is_empty() {
        advice.push(leave_alone(
            "full_page_writes",
            "Leave it on: no measurement shows that a disk never tears a page when the power \
             fails."
                .to_owned(),
            &[],
        ));
    }
    advice
}

fn random_page_cost(record: &Record) -> Option<Advice> {
    let from = ["random-read-d1", "sequential-read"];
    let (random, sequential) = (
        op(record, from[0], OpKind::Read)?,
        op(record, from[1], OpKind::Read)?,
    );
    if let Some(reason) = unfit(record, &from) {
        return Some(leave_alone("random_page_cost", reason, &from));
    }
    if random.count == 0 || sequential.throughput.value <= 0.0 {
        return None;
    }
    let sequential_ns = f64::from(PAGE_BYTES) * 1e9 / sequential.throughput.value;
    let ratio = random.latency.mean / sequential_ns;
    // Below 1 a random page would be cheaper than a sequential one; the documentation advises
    // against it.
    let cost = |hit_rate: f64| (ratio * (1.0 - hit_rate) * 10.0).round().max(10.0) / 10.0;
    let costs: Vec<String> = HIT_RATES
        .iter()
        .map(|h| format!("{:.1} at {:.0} %", cost(*h), h * 100.0))
        .collect();
    Some(Advice {
        setting: "random_page_cost".to_owned(),
        value: None,
        range: Some([cost(HIT_RATES[0]), cost(HIT_RATES[2])]),
        why: format!(
            "A random 8 kB page takes {}, a sequential one {}: {ratio:.0} times as long. What of \
             that a query pays depends on the share of pages found in the cache: {}.",
            format_latency(random.latency.mean as u64),
            format_latency(sequential_ns as u64),
            costs.join(", ")
        ),
        from: from.map(str::to_owned).to_vec(),
    })
}

fn effective_io_concurrency(record: &Record) -> Option<Advice> {
    let from = ["random-read-d1", "random-read-d32"];
    let (one, many) = (
        op(record, from[0], OpKind::Read)?,
        op(record, from[1], OpKind::Read)?,
    );
    if let Some(reason) = unfit(record, &from) {
        return Some(leave_alone("effective_io_concurrency", reason, &from));
    }
    if one.iops.value <= 0.0 {
        return None;
    }
    let why = format!(
        "Keep the default (16 since PostgreSQL 18). 32 reads in flight give {:.1} times the IOPS \
         of one ({} against {}), so prefetching {}; two depths do not show where the gain ends.",
        many.iops.value / one.iops.value,
        format_rate(many.iops.value),
        format_rate(one.iops.value),
        if many.iops.value >= 2.0 * one.iops.value {
            "pays"
        } else {
            "gains little"
        },
    );
    Some(leave_alone("effective_io_concurrency", why, &from))
}

/// Half the time of a flush after one 8 kB write (documentation of commit_delay); helps only
/// sessions that commit at the same time.
fn commit_delay(record: &Record) -> Option<Advice> {
    let from = ["commit-fdatasync"];
    let commit = op(record, from[0], OpKind::Commit).filter(|op| op.count > 0)?;
    if let Some(reason) = unfit(record, &from) {
        return Some(leave_alone("commit_delay", reason, &from));
    }
    let mean = format_latency(commit.latency.mean as u64);
    let delay_us = (commit.latency.mean / 2000.0)
        .min(COMMIT_DELAY_MAX_US)
        .round();
    let why = if delay_us < COMMIT_DELAY_USEFUL_US {
        format!("A durable 8 kB write takes {mean}: too short for waiting to gain anything.")
    } else {
        format!(
            "A durable 8 kB write takes {mean}. Leave it at 0; only where many sessions commit at \
             once and wait for the disk, try half of that, {delay_us:.0} (microseconds), and keep \
             it if throughput rises."
        )
    };
    let range = (delay_us >= COMMIT_DELAY_USEFUL_US).then_some([0.0, delay_us]);
    Some(Advice {
        setting: "commit_delay".to_owned(),
        value: Some("0".to_owned()),
        range,
        why,
        from: from.map(str::to_owned).to_vec(),
    })
}

fn leave_alone(setting: &str, why: String, from: &[&str]) -> Advice {
    Advice {
        setting: setting.to_owned(),
        value: None,
        range: None,
        why,
        from: from.iter().map(|f| (*f).to_owned()).collect(),
    }
}

fn measured<'a>(record: &'a Record, workload: &str) -> Option<(usize, &'a MeasurementRecord)> {
    let is_wanted =
        |w: &WorkloadRecord| w.name == workload && w.engine != EngineKind::Null && is_check_s(w);
    record
        .measurements
        .iter()
        .enumerate()
        .find(|(_, m)| is_wanted(&m.workload))
}

/// Whether a workload is what `check` means by its name: `run` lets users give any name to
/// anything.
fn is_check_s(w: &WorkloadRecord) -> bool {
    let plain =
        w.block_mix.is_empty() && w.rate.is_none() && w.workers == 1 && w.together_with.is_empty();
    let pages = w.block_bytes == PAGE_BYTES;
    let uniform = w.access
        == Access::Random {
            distribution: Distribution::Uniform,
        };
    let commits = w.sync
        == SyncPolicy::Every {
            writes: 1,
            call: SyncCall::Fdatasync,
        };
    plain
        && match w.name.as_str() {
            "sequential-read" => w.read_permille == 1000 && w.access == Access::Sequential,
            "random-read-d1" => w.read_permille == 1000 && uniform && pages && w.depth == 1,
            "random-read-d32" => w.read_permille == 1000 && uniform && pages && w.depth == 32,
            "commit-fdatasync" => w.read_permille == 0 && commits && pages && w.depth == 1,
            _ => false,
        }
}

fn op<'a>(record: &'a Record, workload: &str, kind: OpKind) -> Option<&'a OpRecord> {
    measured(record, workload)?.1.ops.get(&kind)
}

/// Why the figures of these workloads must not become a setting.
fn unfit(record: &Record, workloads: &[&str]) -> Option<String> {
    let reason = |workload: &&str| {
        let (index, m) = measured(record, workload)?;
        let place = format!("/measurements/{index}/");
        let findings = record
            .findings
            .iter()
            .filter(|f| MISLEADING.contains(&f.code.as_str()));
        let code = findings
            .into_iter()
            .find(|f| f.evidence.iter().any(|e| e.path.starts_with(&place)))
            .map(|f| f.code.as_str());
        // A commit goes through the page cache, as the server's own do; what is synced has reached
        // the disk all the same.
        let direct = match m.workload.cache {
            CachePolicy::Direct => true,
            CachePolicy::Cached => m.ops.contains_key(&OpKind::Commit),
            CachePolicy::Buffered => false,
        };
        if let Some(code) = code.or_else(|| (!direct).then_some("page cache")) {
            return Some(format!(
                "Leave it as it is: the figure of {workload} is not the disk's ({code})."
            ));
        }
        let width = m.precision().filter(|width| *width <= HALF_WIDTH_MAX);
        let known = m.precision().map_or("hardly at all".to_owned(), |width| {
            format!("to ±{:.0} % only", width * 100.0)
        });
        width.is_none().then(|| {
            format!(
                "Leave it as it is: the figure of {workload} is known {known}; measure longer, or \
                 at a quieter time."
            )
        })
    };
    workloads.iter().find_map(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::healthy;

    fn find(record: &Record, setting: &str) -> Advice {
        record
            .advice
            .iter()
            .find(|a| a.setting == setting)
            .cloned()
            .unwrap_or_else(|| panic!("no {setting}: {:?}", record.advice))
    }

    #[test]
    fn random_page_cost_is_a_range_over_hit_rates() {
        // 500 µs a page at random, 8192 / (400 MiB/s) = 19.5 µs in sequence: a ratio of 25.6.
        let advice = find(&healthy::record(), "random_page_cost");
        assert_eq!((advice.value, advice.range), (None, Some([1.3, 5.1])));
        assert!(
            advice.why.contains("26 times as long")
                && advice.why.contains("1.3 at 95 %, 2.6 at 90 %, 5.1 at 80 %"),
            "{}",
            advice.why
        );
    }

    #[test]
    fn commit_delay_stays_zero_and_names_the_experiment() {
        let advice = find(&healthy::record(), "commit_delay");
        assert_eq!(
            (advice.value.as_deref(), advice.range),
            (Some("0"), Some([0.0, 1000.0]))
        );
        assert!(
            advice.why.contains("takes 2.00 ms") && advice.why.contains("1000 (microseconds)"),
            "{}",
            advice.why
        );
    }

    #[test]
    fn two_depths_do_not_make_a_concurrency() {
        let advice = find(&healthy::record(), "effective_io_concurrency");
        assert_eq!((advice.value, advice.range), (None, None));
        assert!(
            advice
                .why
                .contains("5.0 times the IOPS of one (10000 against 2000)"),
            "{}",
            advice.why
        );
    }

    #[test]
    fn a_figure_hardly_known_gives_no_setting() {
        let shaky = healthy::spoilt("random-read-d1", |m| {
            let cells = &mut m.ops.get_mut(&OpKind::Read).unwrap().series.cells;
            cells
                .iter_mut()
                .enumerate()
                .for_each(|(i, cell)| cell.ops *= if i % 100 < 50 { 3 } else { 0 });
        });
        let advice = find(&shaky, "random_page_cost");
        assert_eq!((advice.value, advice.range), (None, None));
        assert!(
            advice.why.contains("random-read-d1 is known to ±") || advice.why.contains("hardly"),
            "{}",
            advice.why
        );
    }

    #[test]
    fn figures_of_a_cache_give_no_setting() {
        let cached = healthy::spoilt("sequential-read", |m| m.device.read_bytes = 0);
        let advice = find(&cached, "random_page_cost");
        assert_eq!((advice.value, advice.range), (None, None));
        assert!(
            advice
                .why
                .contains("sequential-read is not the disk's (served-from-cache)"),
            "{}",
            advice.why
        );
        assert!(find(&cached, "commit_delay").range.is_some());
        let buffered = healthy::all_spoilt(|m| {
            (m.cache.asked, m.cache.used) = (CachePolicy::Buffered, CachePolicy::Buffered)
        });
        assert!(
            buffered
                .advice
                .iter()
                .all(|a| a.range.is_none() && a.value.is_none()),
            "{:?}",
            buffered.advice
        );
    }

    #[test]
    fn a_name_alone_gives_no_setting() {
        let of = |name: &str, spoil: fn(&mut WorkloadRecord)| {
            let mut record = healthy::record();
            spoil(
                &mut record
                    .measurements
                    .iter_mut()
                    .find(|m| m.workload.name == name)
                    .unwrap()
                    .workload,
            );
            advice(&record)
                .into_iter()
                .map(|a| a.setting)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of("commit-fdatasync", |_| {}),
            [
                "random_page_cost",
                "effective_io_concurrency",
                "commit_delay",
                "full_page_writes"
            ]
        );
        let of_commit: [fn(&mut WorkloadRecord); 4] = [
            |w| w.block_bytes = 65536,
            |w| w.sync = SyncPolicy::None,
            |w| w.depth = 2,
            |w| w.rate = Some(10.0),
        ];
        for spoil in of_commit {
            assert!(!of("commit-fdatasync", spoil).contains(&"commit_delay".to_owned()));
        }
        let of_read: [fn(&mut WorkloadRecord); 3] = [
            |w| w.workers = 2,
            |w| w.access = Access::Sequential,
            |w| w.read_permille = 500,
        ];
        for spoil in of_read {
            assert_eq!(
                of("random-read-d1", spoil),
                ["commit_delay", "full_page_writes"]
            );
        }
        assert!(
            !of("sequential-read", |w| w.access = Access::Backward)
                .contains(&"random_page_cost".to_owned())
        );
        assert!(
            !of("random-read-d32", |w| w.depth = 4)
                .contains(&"effective_io_concurrency".to_owned())
        );
    }

    #[test]
    fn nothing_to_say_without_the_workloads() {
        let mut run = healthy::run();
        run.1.truncate(1);
        assert_eq!(healthy::judge(run).advice, []);
    }
}
