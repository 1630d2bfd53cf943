//! The verdict of a run as blocks: its grades, how the methods of committing compare, what limits
//! the disk, and whether the figures can be trusted.

use super::findings::{limit_facts, severity_tone};
use crate::labels;
use diskproof_model::block::{Block, Cell, Column, Place, Table, TableRow, Tone};
use diskproof_model::digits::{figure_text, rounded};
use diskproof_model::finding::{Cause, Finding, Meaning};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::OFF_SUFFIX;
use diskproof_model::record::{Estimate, Record};
use diskproof_model::row::OpRow;
use diskproof_model::units::format_latency;
use diskproof_model::verdict::{Grade, RunVerdict, TrustLevel, UseGrade};
use std::cmp::Ordering;

/// Describes the verdict. A run on one target has a row for each grade. Without grades, or where
/// each of several targets shows its own, the headline stands in place of the rows. With `--for`
/// the headline always comes first. Empty for a run without a verdict.
pub(crate) fn verdict_blocks(record: &Record) -> Vec<Block> {
    let Some(verdict) = &record.verdict else {
        return Vec::new();
    };
    let has_rows = !verdict.grades.is_empty() && record.targets.len() <= 1;
    let mut blocks = Vec::new();
    if !has_rows || record.plan.questions.fit_for.is_some() {
        blocks.push(Block::text(Tone::Bold, &verdict.headline));
    }
    if has_rows {
        blocks.extend(grades_table(record, |_| true));
    }
    for (label, text) in commit_summary(record) {
        blocks.push(Block::toned_fact(Tone::Bold, label, text));
    }
    blocks.extend(limit_facts(&record.findings));
    blocks.extend(weakness_fact(verdict));
    blocks.push(trust_fact(verdict));
    blocks
}

/// Describes the verdict without figures, for pages whose tables have them. Empty for a run without
/// a verdict.
pub(crate) fn headline_blocks(record: &Record) -> Vec<Block> {
    let Some(verdict) = &record.verdict else {
        return Vec::new();
    };
    let mut blocks = vec![Block::text(Tone::Bold, &verdict.headline)];
    blocks.extend(limit_facts(&record.findings));
    blocks.push(trust_fact(verdict));
    blocks
}

/// Names the weakness of the disk that the figures show, if any.
fn weakness_fact(verdict: &RunVerdict) -> Option<Block> {
    let finding = verdict.weakness.as_ref()?;
    let text = format!("{} ({})", finding.title, finding.code);
    Some(Block::toned_fact(
        severity_tone(finding.severity),
        "disk",
        text,
    ))
}

/// Returns the table of the selected targets' grades; `None` where they have none.
pub(crate) fn grades_table(record: &Record, is_selected: impl Fn(usize) -> bool) -> Option<Block> {
    let verdict = record.verdict.as_ref()?;
    let mut rows = Vec::new();
    for grade in &verdict.grades {
        let is_own = match record.measurements.get(grade.measurement) {
            Some(measurement) => is_selected(measurement.data.target),
            None => true,
        };
        if is_own {
            rows.push(grade_row(grade));
        }
    }
    if rows.is_empty() {
        return None;
    }
    let mut columns = Column::words([""; 5]);
    columns[1] = Column::number("", Place::Always);
    columns[4].place = Place::Roomy(1);
    Some(Block::Table(Table::new("", columns, rows)))
}

fn grade_row(grade: &UseGrade) -> TableRow {
    let tone = match worse_grade(grade) {
        Some(Grade::Good) => Tone::Good,
        Some(Grade::Limited) | None => Tone::Warning,
        Some(Grade::Poor) => Tone::Error,
    };
    TableRow::from(vec![
        // As wide as the labels of facts.
        format!("{:9}", grade.name).into(),
        grade.figure.value_text().into(),
        labels::interval(&grade.figure).into(),
        Cell::toned(tone, grade.words()),
        Cell::toned(Tone::Dim, threshold_text(grade)),
    ])
}

/// Returns the worse grade where the interval leaves two open; it decides the colour. `None` for a
/// figure without a grade.
pub(crate) fn worse_grade(grade: &UseGrade) -> Option<Grade> {
    let first = grade.grade?;
    match grade.or {
        Some(other) => Some(first.min(other)),
        None => Some(first),
    }
}

/// A threshold is exact. This relative half-width makes it print with three to four digits.
const THRESHOLD_WIDTH: f64 = 1e-3;

/// `(good from 500 MB/s)`: the limit of the next better grade, or that of limited for a poor
/// figure. Empty for a good figure and for one without a grade.
fn threshold_text(grade: &UseGrade) -> String {
    let thresholds = &grade.thresholds;
    let (word, threshold) = match (grade.grade, grade.or) {
        (Some(Grade::Poor), None) => ("poor below", thresholds.limited_from),
        (Some(Grade::Good), None) | (None, _) => return String::new(),
        _ => ("good from", thresholds.good_from),
    };
    let text = figure_text(
        threshold,
        Some(threshold * THRESHOLD_WIDTH),
        &grade.figure.unit,
    );
    format!("({word} {text})")
}

/// Says whether the figures can be relied on, and why.
fn trust_fact(verdict: &RunVerdict) -> Block {
    let tone = match verdict.trust.level {
        TrustLevel::Reliable => Tone::Good,
        TrustLevel::Doubtful => Tone::Warning,
        TrustLevel::Unreliable => Tone::Error,
    };
    Block::toned_fact(tone, "trust", &verdict.trust.why)
}

/// PostgreSQL's default of wal_sync_method on Linux.
pub(super) const DEFAULT_METHOD: &str = "fdatasync";
/// The other values of wal_sync_method on Linux.
const OTHER_METHODS: [&str; 3] = ["fsync", "open_datasync", "open_sync"];
/// Workloads in which sessions share syncs are named with this and the number of sessions.
const GROUP_PREFIX: &str = "group-c";

/// Compares the commits by the default method with all others that were measured, as labels and
/// texts. Empty where the default or anything to compare it with was not measured.
fn commit_summary(record: &Record) -> Vec<(&'static str, String)> {
    let Some(default) = measured_commits(record, DEFAULT_METHOD) else {
        return Vec::new();
    };
    if !has_other_commits(record) {
        return Vec::new();
    }
    let mut lines = Vec::new();
    if let Some(text) = fastest_text(record, default) {
        lines.push(("fastest", text));
    }
    lines.push(("default", default_text(record, default)));
    if let Some(text) = group_text(record, default) {
        lines.push(("shared", text));
    }
    lines.extend(write_cache_fact(record, default));
    lines
}

/// Whether anything was measured that the default method can be compared with.
fn has_other_commits(record: &Record) -> bool {
    for measurement in &record.measurements {
        let workload = &measurement.data.workload;
        let name = workload.name.as_str();
        let is_other_method = OTHER_METHODS.contains(&name);
        let is_group = name.starts_with(GROUP_PREFIX);
        if is_other_method || is_group || workload.write_cache.is_some() {
            return true;
        }
    }
    false
}

fn default_text(record: &Record, default: OpRow<'_>) -> String {
    let text = format!("{DEFAULT_METHOD}: {}", commits_text(default));
    match durability_doubt(record, DEFAULT_METHOD) {
        Some(finding) => format!("{text} (in doubt: {})", finding.code),
        None => text,
    }
}

/// Names the fastest method if it is significantly faster than the default, or if the default is in
/// doubt. `None` where no trusted method was measured and the default is not in doubt either.
fn fastest_text(record: &Record, default: OpRow<'_>) -> Option<String> {
    let doubt = durability_doubt(record, DEFAULT_METHOD);
    let Some(fastest) = fastest_trusted(record) else {
        let code = &doubt?.code;
        return Some(format!("none is proven to keep data; see {code}"));
    };
    let is_faster = low_end(&fastest.op.figures.iops) > high_end(&default.figures.iops);
    if doubt.is_some() || is_faster {
        let text = commits_text(fastest.op);
        Some(format!("{}: {text}", fastest.method))
    } else {
        Some(format!(
            "no method is significantly faster than {DEFAULT_METHOD}"
        ))
    }
}

/// The commits by one value of wal_sync_method.
struct MethodCommits<'r> {
    method: &'static str,
    op: OpRow<'r>,
}

/// Returns the commits of the method with the highest rate among those without a doubt.
fn fastest_trusted(record: &Record) -> Option<MethodCommits<'_>> {
    let mut fastest: Option<MethodCommits<'_>> = None;
    for method in std::iter::once(DEFAULT_METHOD).chain(OTHER_METHODS) {
        let Some(op) = measured_commits(record, method) else {
            continue;
        };
        if durability_doubt(record, method).is_some() {
            continue;
        }
        let is_faster = match &fastest {
            Some(best) => op.figures.iops.value > best.op.figures.iops.value,
            None => true,
        };
        if is_faster {
            fastest = Some(MethodCommits { method, op });
        }
    }
    fastest
}

/// Returns the finding that commits of the method may return before their data is durable.
fn durability_doubt<'a>(record: &'a Record, method: &str) -> Option<&'a Finding> {
    let lost = Meaning::NotTheDisk {
        cause: Cause::NotDurable,
    };
    let index = record
        .measurements
        .iter()
        .position(|row| row.data.workload.name == method)?;
    record
        .findings
        .iter()
        .find(|finding| finding.says == lost && finding.concerns(index))
}

/// Returns the commits of a workload; `None` where there were none.
fn measured_commits<'a>(record: &'a Record, workload: &str) -> Option<OpRow<'a>> {
    let measurement = record
        .measurements
        .iter()
        .find(|row| row.data.workload.name == workload)?;
    let commits = measurement.op(OpKind::Commit)?;
    if commits.data.count == 0 {
        return None;
    }
    Some(commits)
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

/// Compares the highest rate of sessions that share syncs with the rate of one session. `None`
/// where no such sessions were measured.
fn group_text(record: &Record, single: OpRow<'_>) -> Option<String> {
    let best = fastest_group(record)?;
    let rate = commits_text(best.op);
    let gain = ratio_text(&best.op.figures.iops, &single.figures.iops);
    Some(format!(
        "{} sessions share syncs (group commit): {rate}, {gain} times one session",
        best.sessions
    ))
}

fn fastest_group(record: &Record) -> Option<GroupCommits<'_>> {
    let mut groups = Vec::new();
    for measurement in &record.measurements {
        let name = &measurement.data.workload.name;
        if let Some(sessions) = session_count(name)
            && let Some(op) = measured_commits(record, name)
        {
            groups.push(GroupCommits { sessions, op });
        }
    }
    groups
        .into_iter()
        .max_by(|one, other| by_rate(&one.op, &other.op))
}

fn session_count(workload: &str) -> Option<u32> {
    workload.strip_prefix(GROUP_PREFIX)?.parse().ok()
}

fn by_rate(one: &OpRow<'_>, other: &OpRow<'_>) -> Ordering {
    one.figures.iops.value.total_cmp(&other.figures.iops.value)
}

/// Compares the default method with the disk's write cache off and on, where both were measured.
/// Otherwise states what the cache was switched to; `None` where it was not switched.
fn write_cache_fact(record: &Record, on: OpRow<'_>) -> Option<(&'static str, String)> {
    if let Some(off) = measured_commits(record, &format!("{DEFAULT_METHOD}{OFF_SUFFIX}")) {
        let rate = commits_text(off);
        let gain = ratio_text(&off.figures.iops, &on.figures.iops);
        let text =
            format!("{DEFAULT_METHOD}: {rate}, {gain} times the rate with the write cache on");
        return Some(("cache off", text));
    }
    let state = record
        .measurements
        .iter()
        .find_map(|row| row.data.workload.write_cache)?;
    let switched = labels::switched_write_cache(state);
    Some(("cache", format!("{switched} for this run, then restored")))
}

/// Says how many times one rate is the other, with the digits that both intervals support.
fn ratio_text(rate: &Estimate, base: &Estimate) -> String {
    let ratio = rate.value / base.value.max(f64::MIN_POSITIVE);
    let width = relative_width(rate).hypot(relative_width(base));
    rounded(ratio, Some(ratio * width))
}

fn relative_width(rate: &Estimate) -> f64 {
    rate.relative_half_width().unwrap_or(1.0)
}

fn low_end(rate: &Estimate) -> f64 {
    rate.value - rate.half_width_95.unwrap_or(rate.value)
}

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

    #[test]
    fn summary_names_the_fastest_method_the_default_and_shared_syncs() {
        let rates = [
            ("fdatasync", 500.0),
            ("open_datasync", 900.0),
            ("group-c16", 4000.0),
            ("fdatasync-off", 50.0),
        ];
        let mut faster = record(&rates);
        let lines = commit_summary(&faster);
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
        let fastest = &commit_summary(&faster)[0].1;
        assert!(!fastest.contains("open_datasync"), "{fastest}");
        assert_eq!(commit_summary(&record(&rates[1..])), []);
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
        let lines = commit_summary(&doubtful);
        lines[0].1.split(':').next().unwrap().to_owned()
    }

    #[test]
    fn method_in_doubt_is_not_the_fastest() {
        assert_eq!(fastest_beside(&[]), "open_sync");
        assert_eq!(fastest_beside(&[2]), "fsync");
        assert_eq!(fastest_beside(&[0, 2]), "fsync");
    }
}
