//! `sync-method-differs`: of two methods with the same guarantee one is many times as fast, so it
//! may return before the data is durable.

use super::commits::*;
use super::disturbed::is_disturbed;
use super::rule::*;
use diskproof_model::plan::{SyncCall, WriteFlag};
use diskproof_model::record::positive_interval;

pub(super) const RULE: Rule = Rule {
    code: "sync-method-differs",
    title: "Equivalent commit methods differ widely",
    summary: "Two methods give the same guarantee, but one is many times as fast. The fast one may \
              return before the data is durable.",
    remedy: Remedy::Always(
        "Use the slower method until a power-cut test (diskproof powercut) has shown that the \
         faster one is durable.",
    ),
    check: Check::Workloads(check),
    says: Meaning::NotTheDisk {
        cause: Cause::NotDurable,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// One of two equal methods may use FUA writes and the other flushes, which differ by less.
const METHODS_RATIO_MIN: f64 = 4.0;

/// A row of commits, and the interval of its rate.
#[derive(Clone, Copy)]
struct CommitMethod<'a> {
    session: SessionCommits<'a>,
    low: f64,
    high: f64,
}

impl CommitMethod<'_> {
    fn rate(&self) -> f64 {
        self.session.commits.figures.iops.value
    }

    fn clause(&self, record: &Record) -> String {
        let name = workload_name(record, self.session.measured.row);
        format!("{name} makes {}", self.session.commits.figures.iops.text())
    }
}

/// A method and one that gives the same guarantee, but is far slower.
struct MethodPair<'a> {
    fast: CommitMethod<'a>,
    slow: CommitMethod<'a>,
    /// The least factor between them that their intervals allow.
    ratio: f64,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let pairs = far_apart(&commit_methods(record));
    let widest = largest_by(&pairs, |pair| pair.ratio)?;
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "{} and {}, a factor of {:.0} or more. Both guarantee the same, so the faster one may \
             return before the data is durable.",
            widest.fast.clause(record),
            widest.slow.clause(record),
            widest.ratio,
        ),
        pairs.iter().map(|pair| {
            let threshold = pair.slow.rate() * METHODS_RATIO_MIN;
            pair.fast.session.measured.evidence(
                "figures/ops/commit/iops/value",
                pair.fast.rate(),
                threshold,
                "1/s",
            )
        }),
    ))
}

/// Every row whose rate is known. One during which others used the disk is slow for another reason.
fn commit_methods(record: &Record) -> Vec<CommitMethod<'_>> {
    let mut methods = Vec::new();
    for session in single_sessions(record) {
        let rate = &session.commits.figures.iops;
        let Some(half_width) = rate.half_width_95 else {
            continue;
        };
        if is_disturbed(record, session.measured) {
            continue;
        }
        let [low, high] = positive_interval(rate.value, half_width);
        methods.push(CommitMethod { session, low, high });
    }
    methods
}

/// Each method that is far faster than another, with the slowest of those.
fn far_apart<'a>(methods: &[CommitMethod<'a>]) -> Vec<MethodPair<'a>> {
    let mut widest_pairs = Vec::new();
    for fast in methods {
        let mut pairs = Vec::new();
        for slow in methods {
            let ratio = fast.low / slow.high.max(f64::MIN_POSITIVE);
            if ratio >= METHODS_RATIO_MIN && differ_in_method_alone(fast, slow) {
                pairs.push(MethodPair {
                    fast: *fast,
                    slow: *slow,
                    ratio,
                });
            }
        }
        widest_pairs.extend(largest_by(pairs, |pair| pair.ratio));
    }
    widest_pairs
}

fn differ_in_method_alone(one: &CommitMethod<'_>, other: &CommitMethod<'_>) -> bool {
    let data = &one.session.measured.row.data;
    let other_data = &other.session.measured.row.data;
    let (workload, other_workload) = (&data.workload, &other_data.workload);
    let promised = guarantee(workload.sync);
    promised.is_some()
        && promised == guarantee(other_workload.sync)
        && workload.sync != other_workload.sync
        && workload.access == other_workload.access
        && workload.block_bytes == other_workload.block_bytes
        && workload.block_mix == other_workload.block_mix
        && workload.shape.order == other_workload.shape.order
        && workload.shape.content == other_workload.shape.content
        && workload.shape.threads.opened_with == other_workload.shape.threads.opened_with
        && workload.write_cache == other_workload.write_cache
        && data.target == other_data.target
        && data.cache.used == other_data.cache.used
        && data.span_start_bytes == other_data.span_start_bytes
        && data.span_bytes == other_data.span_bytes
}

/// The call whose guarantee a policy gives after each write.
fn guarantee(sync: SyncPolicy) -> Option<SyncCall> {
    match sync {
        SyncPolicy::Every {
            writes: 0 | 1,
            call,
        }
        | SyncPolicy::OtherDescriptor { call } => Some(call),
        SyncPolicy::WithWrite { flag } => Some(match flag {
            WriteFlag::OpenDsync | WriteFlag::RwfDsync => SyncCall::Fdatasync,
            WriteFlag::OpenSync => SyncCall::Fsync,
        }),
        SyncPolicy::None
        | SyncPolicy::AtEnd
        | SyncPolicy::Every { writes: 2.., .. }
        | SyncPolicy::Shared { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, measured, process, states};
    use crate::rules::commits::tests::set_rate;

    pub(super) const EXAMPLES: Examples = Examples::new(|| methods(9000.0), || methods(900.0));

    /// fdatasync at 300/s, and O_DSYNC at this rate.
    fn methods(rate: f64) -> Record {
        let mut record = fixture::record();
        let mut other = measured(&mut record, "commit-fdatasync").clone();
        other.data.workload.name = "open_datasync".to_owned();
        other.data.workload.sync = SyncPolicy::WithWrite {
            flag: WriteFlag::OpenDsync,
        };
        record.measurements.push(other);
        set_rate(&mut record, "commit-fdatasync", 300.0);
        set_rate(&mut record, "open_datasync", rate);
        record
    }

    #[test]
    fn methods_during_which_others_used_the_disk_are_not_compared() {
        let mut record = methods(9000.0);
        let slow = measured(&mut record, "commit-fdatasync");
        slow.data.device.read_bytes = slow.data.asked.read_bytes + (1 << 30);
        slow.data.device.others = vec![process("pg_dump", 1 << 30, 0)];
        assert_eq!(check(&record), None);
    }

    fn changed_method(change: &dyn Fn(&mut Row)) -> Option<Diagnosis> {
        let mut record = methods(9000.0);
        change(record.measurements.last_mut().unwrap());
        check(&record)
    }

    #[test]
    fn only_methods_with_the_same_promise_are_compared() {
        let finding = changed_method(&|_| ()).unwrap();
        states(&finding.claim, &["open_datasync makes 9000/s", "29"]);
        let changes: [fn(&mut Row); 7] = [
            // The same method twice.
            |measurement| {
                measurement.data.workload.sync = SyncPolicy::Every {
                    writes: 1,
                    call: SyncCall::Fdatasync,
                }
            },
            |measurement| measurement.data.workload.access = Access::Backward,
            |measurement| {
                measurement.data.workload.shape.order.align_bytes = Some(1 << 20);
            },
            |measurement| {
                measurement.data.workload.sync = SyncPolicy::WithWrite {
                    flag: WriteFlag::OpenSync,
                }
            },
            |measurement| measurement.data.workload.block_bytes = 65536,
            |measurement| measurement.data.cache.used = CachePolicy::Cached,
            |measurement| measurement.data.workload.depth = 16,
        ];
        for (row, change) in changes.iter().enumerate() {
            assert_eq!(changed_method(change), None, "{row}");
        }
        // 9000/s against 300/s ± 1 %: the ends of the intervals decide.
        for (half_width, expected) in [(4500.0, true), (90_000.0, false)] {
            let diagnosis = changed_method(&|measurement| {
                let commits = measurement.figures.ops.get_mut(&OpKind::Commit).unwrap();
                commits.iops.half_width_95 = Some(half_width);
            });
            assert_eq!(diagnosis.is_some(), expected, "{half_width}");
        }
    }
}
