//! Advises on PostgreSQL's wal_sync_method: the fastest of the methods that were measured, where it
//! is faster by a margin that decides.

use super::reasons_against::{half_width_or_max, leave_alone, reason_against_row};
use crate::checked::{PAGE_BYTES, has_usual_write_cache};
use crate::estimate::largest_by;
use diskproof_model::advice::Advice;
use diskproof_model::digits::rounded;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{Access, CachePolicy, EngineKind, SyncCall, SyncPolicy, WriteFlag};
use diskproof_model::postgres::DEFAULT_SYNC_METHOD;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::row::Row;

pub(super) const SETTING: &str = "wal_sync_method";
/// A smaller gain does not outweigh that the default is the method that most servers run with.
/// Chosen, not measured.
const GAIN_MIN: f64 = 1.10;
/// Pages of a large commit. A method that loses there what it gains on small ones is no gain.
const PAGES_LARGE: u32 = 8;
/// At large commits a method may be slower than the default by this factor. Chosen: it is half of
/// the gain that a change needs.
const LARGE_MIN: f64 = 0.95;

/// The rate of commits of this many pages by a method.
struct MethodRate<'a> {
    method: &'static str,
    pages: u32,
    workload: &'a str,
    iops: &'a Estimate,
    /// The reason why it must not become a setting, where there is one.
    reason_against: Option<String>,
}

impl MethodRate<'_> {
    /// The low end of its 95 % interval.
    fn low(&self) -> f64 {
        self.iops.value * (1.0 - half_width_or_max(self.iops))
    }
}

/// The advice; `None` unless the default and at least one other method were measured.
pub(super) fn advise_wal_sync_method(record: &Record) -> Option<Advice> {
    let rates = MethodRates::collect(record);
    let default = rates.find(DEFAULT_SYNC_METHOD, 1)?;
    let best = rates.best_other()?;
    let from = [default.workload, best.workload];
    let large = rates.find(best.method, PAGES_LARGE);
    let large_default = rates.find(DEFAULT_SYNC_METHOD, PAGES_LARGE);
    for rate in [Some(default), Some(best), large_default, large] {
        if let Some(reason) = rate.and_then(|rate| rate.reason_against.clone()) {
            return Some(leave_alone(SETTING, reason, &from));
        }
    }
    let gain = RateRatio::between(best, default);
    let large_gain = match (large, large_default) {
        (Some(large), Some(large_default)) => Some(RateRatio::between(large, large_default)),
        _ => None,
    };
    let large_clause = match &large_gain {
        Some(large_gain) => format!(", and {} times with {PAGES_LARGE} pages", large_gain.text()),
        None => String::new(),
    };
    let mut why = format!(
        "With one page per commit, {} makes {} times as many commits as {DEFAULT_SYNC_METHOD} ({} \
         and {}){large_clause}.",
        best.method,
        gain.text(),
        best.iops.value_text(),
        default.iops.value_text(),
    );
    let value = match reason_to_keep_default(&gain, large_gain.as_ref()) {
        None => best.method,
        Some(reason) => {
            why.push_str(&format!(" {reason}"));
            DEFAULT_SYNC_METHOD
        }
    };
    Some(Advice {
        value: Some(value.to_owned()),
        default: Some(DEFAULT_SYNC_METHOD.to_owned()),
        ..leave_alone(SETTING, why, &from)
    })
}

/// The reason not to change to a method with these gains over the default; `None` where the change
/// pays.
fn reason_to_keep_default(gain: &RateRatio, large_gain: Option<&RateRatio>) -> Option<String> {
    let percent = (GAIN_MIN - 1.0) * 100.0;
    if gain.value <= GAIN_MIN {
        return Some(format!(
            "This is less than the {percent:.0} % that would justify a change."
        ));
    }
    if gain.low() <= GAIN_MIN {
        return Some(format!(
            "Its interval reaches below the {percent:.0} % that would justify a change."
        ));
    }
    match large_gain {
        Some(large_gain) if large_gain.value <= LARGE_MIN => {
            Some("Large commits would lose what small ones gain.".to_owned())
        }
        _ => None,
    }
}

/// The rates of all methods that a record measured.
#[derive(Default)]
struct MethodRates<'a> {
    rates: Vec<MethodRate<'a>>,
}

impl<'a> MethodRates<'a> {
    /// The rates of the commits that a record measured as a server makes them.
    fn collect(record: &'a Record) -> Self {
        let mut found = Self::default();
        for (index, row) in record.measurements.iter().enumerate() {
            let Some((method, pages)) = method_and_pages(row) else {
                continue;
            };
            let Some(commits) = row.op(OpKind::Commit) else {
                continue;
            };
            if commits.data.count == 0 || !has_usual_write_cache(record, row) {
                continue;
            }
            found.rates.push(MethodRate {
                method,
                pages,
                workload: &row.data.workload.name,
                iops: &commits.figures.iops,
                reason_against: reason_against_row(record, index),
            });
        }
        found
    }

    /// The rate of a method with so many pages for each commit; `None` where it was not measured.
    fn find(&self, method: &str, pages: u32) -> Option<&MethodRate<'a>> {
        self.rates
            .iter()
            .find(|rate| rate.method == method && rate.pages == pages)
    }

    /// The method of one-page commits, except the default, that is certainly the fastest: the
    /// interval of its rate has the highest low end. A rate that must not become a setting counts
    /// only where all others must not either.
    fn best_other(&self) -> Option<&MethodRate<'a>> {
        let others = self
            .rates
            .iter()
            .filter(|rate| rate.pages == 1 && rate.method != DEFAULT_SYNC_METHOD);
        let usable = others.clone().filter(|rate| rate.reason_against.is_none());
        match largest_by(usable, |rate| rate.low()) {
            None => largest_by(others, |rate| rate.low()),
            best => best,
        }
    }
}

/// How many times as fast one rate is as another.
struct RateRatio {
    value: f64,
    /// Half of the 95 % interval.
    half_width: f64,
}

impl RateRatio {
    /// The ratio of a rate to that of the base.
    fn between(rate: &MethodRate<'_>, base: &MethodRate<'_>) -> Self {
        let value = rate.iops.value / base.iops.value.max(f64::MIN_POSITIVE);
        Self {
            value,
            half_width: value * half_width_or_max(rate.iops).hypot(half_width_or_max(base.iops)),
        }
    }

    /// The low end of its 95 % interval.
    fn low(&self) -> f64 {
        self.value - self.half_width
    }

    fn text(&self) -> String {
        rounded(self.value, Some(self.half_width))
    }
}

/// The method and the pages of each commit; `None` unless one session writes its log as a server
/// does.
fn method_and_pages(row: &Row) -> Option<(&'static str, u32)> {
    let workload = &row.data.workload;
    let writes_log = workload.streams.is_only(OpKind::Write)
        && workload.access == Access::Sequential
        && row.data.cache.used == CachePolicy::Cached
        && workload.block_mix.is_empty()
        && !workload.is_paced()
        && workload.total_depth() == 1
        && row.figures.together_with.is_empty()
        && row.data.engine.used == EngineKind::Sync
        && workload.block_bytes.is_multiple_of(PAGE_BYTES);
    if !writes_log {
        return None;
    }
    let method = match workload.sync {
        SyncPolicy::Every { writes: 1, call } => match call {
            SyncCall::Fdatasync => DEFAULT_SYNC_METHOD,
            SyncCall::Fsync => "fsync",
        },
        SyncPolicy::WithWrite { flag } => match flag {
            WriteFlag::OpenDsync => "open_datasync",
            WriteFlag::OpenSync => "open_sync",
            WriteFlag::RwfDsync => return None,
        },
        _ => return None,
    };
    Some((method, workload.block_bytes / PAGE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};

    /// A record with commits at these rates, each known to 1 %.
    fn record(rates: &[(&str, SyncPolicy, u32, f64)]) -> Record {
        let mut record = fixture::record();
        let commits = fixture::measured(&mut record, "commit-fdatasync").clone();
        record.measurements = rates
            .iter()
            .map(|(name, sync, pages, rate)| {
                let mut m = commits.clone();
                m.data.workload.name = (*name).to_owned();
                m.data.workload.sync = *sync;
                m.data.workload.block_bytes = pages * PAGE_BYTES;
                m.data.cache.used = CachePolicy::Cached;
                let op = m.figures.ops.get_mut(&OpKind::Commit).unwrap();
                op.iops.value = *rate;
                op.iops.half_width_95 = Some(rate / 100.0);
                m
            })
            .collect();
        record.findings.clear();
        record
    }

    /// One page by fdatasync at 1000/s and by open_datasync at this rate.
    fn pair(rate: f64) -> Record {
        record(&[
            ("fdatasync", FDATASYNC, 1, 1000.0),
            ("open_datasync", OPEN_DATASYNC, 1, rate),
        ])
    }

    const FDATASYNC: SyncPolicy = SyncPolicy::Every {
        writes: 1,
        call: SyncCall::Fdatasync,
    };
    const OPEN_SYNC: SyncPolicy = SyncPolicy::WithWrite {
        flag: WriteFlag::OpenSync,
    };
    const OPEN_DATASYNC: SyncPolicy = SyncPolicy::WithWrite {
        flag: WriteFlag::OpenDsync,
    };

    #[test]
    fn faster_method_is_advised_where_large_commits_do_not_lose() {
        let advice = advise_wal_sync_method(&pair(1500.0)).unwrap();
        assert_eq!(advice.value.as_deref(), Some("open_datasync"));
        states(&advice.why, &["open_datasync makes 1.50 times"]);
        for (rate, value) in [(790.0, "open_datasync"), (500.0, "fdatasync")] {
            let advice = advise_wal_sync_method(&record(&[
                ("fdatasync", FDATASYNC, 1, 1000.0),
                ("open_datasync", OPEN_DATASYNC, 1, 1500.0),
                ("fdatasync-x8", FDATASYNC, 8, 800.0),
                ("open_datasync-x8", OPEN_DATASYNC, 8, rate),
            ]));
            assert_eq!(advice.unwrap().value.as_deref(), Some(value), "{rate}");
        }
    }

    #[test]
    fn small_gain_changes_nothing() {
        for (rate, value) in [
            (1090.0, "fdatasync"),
            // The interval of the ratio reaches below the margin.
            (1110.0, "fdatasync"),
            (1200.0, "open_datasync"),
        ] {
            let advice = advise_wal_sync_method(&pair(rate)).unwrap();
            assert_eq!(
                advice.value.as_deref(),
                Some(value),
                "{rate}: {}",
                advice.why
            );
        }
        states(
            &advise_wal_sync_method(&pair(1090.0)).unwrap().why,
            &["10 %"],
        );
    }

    #[test]
    fn nothing_is_advised_from_one_method_or_an_uncertain_rate() {
        let alone = record(&[("fdatasync", FDATASYNC, 1, 1000.0)]);
        assert!(advise_wal_sync_method(&alone).is_none());
        let mut uncertain = pair(2000.0);
        let op = uncertain.measurements[1]
            .figures
            .ops
            .get_mut(&OpKind::Commit);
        op.unwrap().iops.half_width_95 = Some(800.0);
        let advice = advise_wal_sync_method(&uncertain).unwrap();
        assert_eq!(advice.value, None);
        states(&advice.why, &["±40 %"]);
    }

    /// One that is hardly known, and one that is known better but less fast for certain.
    #[test]
    fn noisy_method_hides_no_proven_one() {
        for half_width in [500.0, 216.0] {
            let mut noisy = record(&[
                ("fdatasync", FDATASYNC, 1, 500.0),
                ("open_sync", OPEN_SYNC, 1, 900.0),
                ("open_datasync", OPEN_DATASYNC, 1, 800.0),
                ("open_sync-x8", OPEN_SYNC, 8, 900.0),
            ]);
            for row in [1, 3] {
                let ops = &mut noisy.measurements[row].figures.ops;
                ops.get_mut(&OpKind::Commit).unwrap().iops.half_width_95 = Some(half_width);
            }
            let advice = advise_wal_sync_method(&noisy).unwrap();
            assert_eq!(advice.value.as_deref(), Some("open_datasync"));
            states(&advice.why, &["open_datasync makes 1.60 times"]);
        }
    }

    #[test]
    fn other_shapes_are_no_log() {
        let of = |change: fn(&mut Row)| {
            let mut record = pair(2000.0);
            change(&mut record.measurements[1]);
            advise_wal_sync_method(&record)
        };
        let changes: [fn(&mut Row); 5] = [
            |m| m.data.workload.depth = 4,
            |m| m.data.cache.used = CachePolicy::Direct,
            |m| m.data.workload.block_bytes = 4096,
            |m| m.figures.together_with = vec!["reads".to_owned()],
            |m| {
                m.data.workload.sync = SyncPolicy::WithWrite {
                    flag: WriteFlag::RwfDsync,
                }
            },
        ];
        assert!(changes.into_iter().all(|change| of(change).is_none()));
    }
}
