//! Compares the methods of committing: the fastest one, PostgreSQL's default, sessions that share
//! syncs, and the disk's write cache on and off.

use crate::labels;
use diskproof_model::block::{Block, Tone};
use diskproof_model::digits::rounded;
use diskproof_model::finding::{Cause, Finding, Meaning};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{OFF_SUFFIX, sessions_of_group};
use diskproof_model::postgres::DEFAULT_SYNC_METHOD;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::row::{OpRow, Row};
use diskproof_model::units::format_latency;
use std::cmp::Ordering;

/// The other values of wal_sync_method on Linux, which are names of workloads, too.
/// PostgreSQL has `fsync_writethrough` only on macOS and Windows.
const OTHER_METHODS: [&str; 3] = ["fsync", "open_datasync", "open_sync"];

/// Compares the commits by the default method with all others that were measured on this target.
/// Empty where the default or anything to compare it with was not measured.
pub(super) fn commit_facts(record: &Record, target: usize) -> Vec<Block> {
    let commits = TargetCommits { record, target };
    let Some(default) = commits.measured(DEFAULT_SYNC_METHOD) else {
        return Vec::new();
    };
    if !commits.has_other_than_default() {
        return Vec::new();
    }
    let mut facts = Vec::new();
    if let Some(text) = fastest_text(commits, default) {
        facts.push(commit_fact("fastest", text));
    }
    facts.push(commit_fact("default", default_text(commits, default)));
    if let Some(text) = group_text(commits, default) {
        facts.push(commit_fact("shared", text));
    }
    facts.extend(write_cache_fact(commits, default));
    facts
}

fn commit_fact(label: &str, text: String) -> Block {
    Block::toned_fact(Tone::Bold, label, text)
}

/// The commits that a run measured on one target.
#[derive(Clone, Copy)]
struct TargetCommits<'r> {
    record: &'r Record,
    target: usize,
}

impl<'r> TargetCommits<'r> {
    /// The rows of the target, with their indices in the record.
    fn rows(self) -> impl Iterator<Item = (usize, &'r Row)> {
        let rows = self.record.measurements.iter().enumerate();
        rows.filter(move |(_, row)| row.data.target == self.target)
    }

    /// Returns the commits of a workload; `None` where there were none.
    fn measured(self, workload: &str) -> Option<OpRow<'r>> {
        let (_, row) = self
            .rows()
            .find(|(_, row)| row.data.workload.name == workload)?;
        let commits = row.op(OpKind::Commit)?;
        if commits.data.count == 0 {
            return None;
        }
        Some(commits)
    }

    /// True if anything was measured that the default method can be compared with.
    fn has_other_than_default(self) -> bool {
        for (_, row) in self.rows() {
            let workload = &row.data.workload;
            let name = workload.name.as_str();
            let is_other_method = OTHER_METHODS.contains(&name);
            let is_group = sessions_of_group(name).is_some();
            if is_other_method || is_group || workload.write_cache.is_some() {
                return true;
            }
        }
        false
    }

    /// Returns the finding that commits of the method may return before their data is durable.
    fn durability_doubt(self, method: &str) -> Option<&'r Finding> {
        let lost = Meaning::NotTheDisk {
            cause: Cause::NotDurable,
        };
        let (index, _) = self
            .rows()
            .find(|(_, row)| row.data.workload.name == method)?;
        self.record
            .findings
            .iter()
            .find(|finding| finding.says == lost && finding.concerns(index))
    }
}

fn default_text(commits: TargetCommits<'_>, default: OpRow<'_>) -> String {
    let text = format!("{DEFAULT_SYNC_METHOD}: {}", commits_text(default));
    match commits.durability_doubt(DEFAULT_SYNC_METHOD) {
        Some(finding) => format!("{text} (in doubt: {})", finding.code),
        None => text,
    }
}

/// Names the fastest method if it is significantly faster than the default, or if the default is in
/// doubt. `None` where no trusted method was measured and the default is not in doubt either.
fn fastest_text(commits: TargetCommits<'_>, default: OpRow<'_>) -> Option<String> {
    let doubt = commits.durability_doubt(DEFAULT_SYNC_METHOD);
    let Some(fastest) = fastest_trusted(commits) else {
        let code = &doubt?.code;
        return Some(format!("none is proven to keep data; see {code}"));
    };
    let is_faster = low_end(&fastest.op.figures.iops) > high_end(&default.figures.iops);
    if doubt.is_some() || is_faster {
        let text = commits_text(fastest.op);
        Some(format!("{}: {text}", fastest.method))
    } else {
        Some(format!(
            "no method is significantly faster than {DEFAULT_SYNC_METHOD}"
        ))
    }
}

/// The commits by one value of wal_sync_method.
struct MethodCommits<'r> {
    method: &'static str,
    op: OpRow<'r>,
}

/// Returns the commits of the method that is certainly the fastest of those without a doubt: the
/// interval of its rate has the highest low end. A high rate that is hardly known proves nothing.
fn fastest_trusted(commits: TargetCommits<'_>) -> Option<MethodCommits<'_>> {
    let mut fastest: Option<MethodCommits<'_>> = None;
    for method in std::iter::once(DEFAULT_SYNC_METHOD).chain(OTHER_METHODS) {
        let Some(op) = commits.measured(method) else {
            continue;
        };
        if commits.durability_doubt(method).is_some() {
            continue;
        }
        let is_faster = match &fastest {
            Some(best) => low_end(&op.figures.iops) > low_end(&best.op.figures.iops),
            None => true,
        };
        if is_faster {
            fastest = Some(MethodCommits { method, op });
        }
    }
    fastest
}

/// `1,200/s ±3 %, p99.9 8.01 ms`.
fn commits_text(commits: OpRow<'_>) -> String {
    let latency = match (commits.figures.latency.p99_9, commits.figures.latency.p99) {
        (Some(ns), _) => format!(", p99.9 {}", format_latency(ns)),
        (None, Some(ns)) => format!(", p99 {}", format_latency(ns)),
        (None, None) => String::new(),
    };
    let rate = &commits.figures.iops;
    format!("{} {}{latency}", rate.value_text(), labels::interval(rate))
}

/// The commits of several sessions that share syncs.
struct GroupCommits<'r> {
    sessions: u32,
    op: OpRow<'r>,
}

/// A rate that is known to worse than this share of it makes no factor.
const GAIN_WIDTH_MAX: f64 = 0.5;

/// Compares the highest rate of sessions that share syncs with the rate of one session. `None`
/// where no such sessions were measured.
fn group_text(commits: TargetCommits<'_>, single: OpRow<'_>) -> Option<String> {
    let best = fastest_group(commits)?;
    let rate = commits_text(best.op);
    let (group, one) = (&best.op.figures.iops, &single.figures.iops);
    let is_known = relative_width(group).max(relative_width(one)) <= GAIN_WIDTH_MAX;
    let gain = if is_known {
        format!(", {} times one session", ratio_text(group, one))
    } else {
        String::new()
    };
    Some(format!(
        "{} sessions share syncs (group commit): {rate}{gain}",
        best.sessions
    ))
}

fn fastest_group(commits: TargetCommits<'_>) -> Option<GroupCommits<'_>> {
    let mut groups = Vec::new();
    for (_, row) in commits.rows() {
        let name = &row.data.workload.name;
        if let Some(sessions) = sessions_of_group(name)
            && let Some(op) = commits.measured(name)
        {
            groups.push(GroupCommits { sessions, op });
        }
    }
    groups
        .into_iter()
        .max_by(|one, other| compare_low_ends(&one.op, &other.op))
}

fn compare_low_ends(one: &OpRow<'_>, other: &OpRow<'_>) -> Ordering {
    low_end(&one.figures.iops).total_cmp(&low_end(&other.figures.iops))
}

/// Compares the default method with the disk's write cache off and on, where both were measured.
/// Otherwise states what the cache was switched to; `None` where it was not switched.
fn write_cache_fact(commits: TargetCommits<'_>, on: OpRow<'_>) -> Option<Block> {
    if let Some(off) = commits.measured(&format!("{DEFAULT_SYNC_METHOD}{OFF_SUFFIX}")) {
        let rate = commits_text(off);
        let gain = ratio_text(&off.figures.iops, &on.figures.iops);
        let text =
            format!("{DEFAULT_SYNC_METHOD}: {rate}, {gain} times the rate with the write cache on");
        return Some(commit_fact("cache off", text));
    }
    let state = commits
        .rows()
        .find_map(|(_, row)| row.data.workload.write_cache)?;
    let switched = labels::switched_write_cache(state);
    let text = format!("{switched} for this run, then restored");
    Some(commit_fact("cache", text))
}

/// Says how many times one rate is the other, with the digits that both intervals support.
fn ratio_text(rate: &Estimate, base: &Estimate) -> String {
    let ratio = rate.value / base.value.max(f64::MIN_POSITIVE);
    let width = relative_width(rate).hypot(relative_width(base));
    rounded(ratio, Some(ratio * width))
}

/// The relative half-width of a rate; 1 for a rate without an interval, which is not known at all.
fn relative_width(rate: &Estimate) -> f64 {
    rate.relative_half_width().unwrap_or(1.0)
}

/// The lowest rate that the interval allows; 0 where the interval is unknown.
fn low_end(rate: &Estimate) -> f64 {
    rate.value - rate.half_width_95.unwrap_or(rate.value)
}

/// The highest rate that the interval allows; infinite where the interval is unknown.
fn high_end(rate: &Estimate) -> f64 {
    rate.value + rate.half_width_95.unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::assert_shows;
    use diskproof_model::finding::{Evidence, Severity};

    fn record(rates: &[(&str, f64)]) -> Record {
        let mut record = crate::fixture::record();
        record.findings.clear();
        let last_commits = record
            .measurements
            .iter()
            .rfind(|row| row.data.ops.contains_key(&OpKind::Commit))
            .cloned()
            .unwrap();
        record.measurements.clear();
        for (name, rate) in rates {
            let mut row = last_commits.clone();
            row.data.workload.name = (*name).to_owned();
            let commits = row.figures.ops.get_mut(&OpKind::Commit).unwrap();
            commits.iops.value = *rate;
            commits.iops.half_width_95 = Some(rate * 0.02);
            record.measurements.push(row);
        }
        record
    }

    /// The facts about the commits on a target, as labels and texts.
    fn labelled_texts(record: &Record, target: usize) -> Vec<(String, String)> {
        let mut texts = Vec::new();
        for block in commit_facts(record, target) {
            let Block::Fact(fact) = block else {
                panic!("{block:?}");
            };
            texts.push((fact.label, fact.text));
        }
        texts
    }

    #[test]
    fn each_target_has_a_summary_of_its_own() {
        let mut both = record(&[("fdatasync", 500.0), ("open_datasync", 900.0)]);
        let second = record(&[("fdatasync", 70.0), ("open_sync", 80.0)]);
        for mut row in second.measurements {
            row.data.target = 1;
            both.measurements.push(row);
        }
        let first = labelled_texts(&both, 0);
        assert_shows(&first[0].1, &["open_datasync: 900/s"]);
        assert_shows(&first[1].1, &["fdatasync: 500/s"]);
        let second = labelled_texts(&both, 1);
        assert_shows(&second[0].1, &["open_sync: 80"]);
        assert_shows(&second[1].1, &["fdatasync: 70"]);
    }

    #[test]
    fn summary_names_the_fastest_method_the_default_and_shared_syncs() {
        let rates = [
            ("fdatasync", 500.0),
            ("open_datasync", 900.0),
            ("group-c16", 4000.0),
            ("fdatasync-off", 50.0),
        ];
        let mut faster = record(&rates);
        let lines = labelled_texts(&faster, 0);
        for (line, part) in lines.iter().zip([
            "open_datasync: 900/s",
            "fdatasync: 500/s",
            "8.0 times",
            "0.100 times",
        ]) {
            assert_shows(&line.1, &[part]);
        }
        assert_eq!(lines[3].0, "cache off");
        let commits = faster.measurements[1].figures.ops.get_mut(&OpKind::Commit);
        commits.unwrap().iops.value = 510.0;
        let fastest = &labelled_texts(&faster, 0)[0].1;
        assert!(!fastest.contains("open_datasync"), "{fastest}");
        assert_eq!(labelled_texts(&record(&rates[1..]), 0), []);
    }

    #[test]
    fn rate_that_is_hardly_known_hides_no_faster_method() {
        let mut noisy = record(&[
            ("fdatasync", 500.0),
            ("open_sync", 900.0),
            ("open_datasync", 800.0),
        ]);
        let commits = noisy.measurements[1].figures.ops.get_mut(&OpKind::Commit);
        commits.unwrap().iops.half_width_95 = Some(500.0);
        let fastest = &labelled_texts(&noisy, 0)[0].1;
        assert_shows(fastest, &["open_datasync: 800/s"]);
    }

    /// The method that is named as the fastest where these measurements are in doubt.
    fn fastest_beside(doubted: &[usize]) -> String {
        let rates = [
            ("fdatasync", 159.0),
            ("fsync", 170.0),
            ("open_sync", 4500.0),
        ];
        let mut doubtful = record(&rates);
        let evidence = doubted.iter().map(|index| Evidence {
            path: format!("/measurements/{index}/figures/ops/commit/iops/value"),
            observed: 1.0,
            threshold: 0.0,
            unit: "1/s".to_owned(),
        });
        doubtful.findings = vec![Finding {
            code: "sync-method-differs".to_owned(),
            title: None,
            severity: Severity::Warning,
            says: Meaning::NotTheDisk {
                cause: Cause::NotDurable,
            },
            claim: String::new(),
            evidence: evidence.collect(),
            remedy: String::new(),
            reproduce: None,
        }];
        let lines = labelled_texts(&doubtful, 0);
        lines[0].1.split(':').next().unwrap().to_owned()
    }

    #[test]
    fn method_in_doubt_is_not_the_fastest() {
        assert_eq!(fastest_beside(&[]), "open_sync");
        assert_eq!(fastest_beside(&[2]), "fsync");
        assert_eq!(fastest_beside(&[0, 2]), "fsync");
    }
}
