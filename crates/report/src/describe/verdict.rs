//! The verdict as blocks: a row for each use, the decision that `commit` allows (the fastest method
//! of the server, its default alongside it, what several sessions gain), and trust.

use super::findings::{limits, tone};
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

/// A row for each use and one for trust. Without grades, or where several targets have grades of
/// their own, the headline takes the place of those rows. The answer of `--for` always comes first.
pub(crate) fn verdict(record: &Record) -> Vec<Block> {
    let Some(verdict) = &record.verdict else {
        return Vec::new();
    };
    let has_rows = !verdict.grades.is_empty() && record.targets.len() <= 1;
    let mut blocks = Vec::new();
    if !has_rows || record.plan.questions.fit_for.is_some() {
        blocks.push(Block::text(Tone::Bold, &verdict.headline));
    }
    if has_rows {
        blocks.extend(grades(record, |_| true));
    }
    for (label, text) in commit_summary(record) {
        blocks.push(Block::toned_fact(Tone::Bold, label, text));
    }
    blocks.extend(limits(&record.findings));
    blocks.extend(weakness(verdict));
    blocks.push(trust(verdict));
    blocks
}

/// The headline and the trust, for pages whose tables have the figures.
pub(crate) fn answer(record: &Record) -> Vec<Block> {
    let Some(verdict) = &record.verdict else {
        return Vec::new();
    };
    let mut blocks = vec![Block::text(Tone::Bold, &verdict.headline)];
    blocks.extend(limits(&record.findings));
    blocks.push(trust(verdict));
    blocks
}

/// What the figures show of the disk, where that is bad.
fn weakness(verdict: &RunVerdict) -> Option<Block> {
    let finding = verdict.weakness.as_ref()?;
    let text = format!("{} ({})", finding.title, finding.code);
    Some(Block::toned_fact(tone(finding.severity), "disk", text))
}

/// The grades of the selected targets.
pub(crate) fn grades(record: &Record, is_selected: impl Fn(usize) -> bool) -> Option<Block> {
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
    let tone = match worse(grade) {
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

/// The worse of two grades, which decides the colour.
pub(crate) fn worse(grade: &UseGrade) -> Option<Grade> {
    let first = grade.grade?;
    match grade.or {
        Some(other) => Some(first.min(other)),
        None => Some(first),
    }
}

/// The figure that decides about the next better grade; empty for a good one.
fn threshold_text(grade: &UseGrade) -> String {
    let thresholds = &grade.thresholds;
    let (word, threshold) = match (grade.grade, grade.or) {
        (Some(Grade::Poor), None) => ("poor below", thresholds.limited_from),
        (Some(Grade::Good), None) | (None, _) => return String::new(),
        _ => ("good from", thresholds.good_from),
    };
    let text = figure_text(threshold, Some(threshold * 1e-3), &grade.figure.unit);
    format!("({word} {text})")
}

/// Whether the figures can be relied on.
fn trust(verdict: &RunVerdict) -> Block {
    let tone = match verdict.trust.level {
        TrustLevel::Reliable => Tone::Good,
        TrustLevel::Doubtful => Tone::Warning,
        TrustLevel::Unreliable => Tone::Error,
    };
    Block::toned_fact(tone, "trust", &verdict.trust.why)
}

/// PostgreSQL's values of wal_sync_method on Linux, its default first.
pub(super) const METHODS: [&str; 4] = ["fdatasync", "fsync", "open_datasync", "open_sync"];
/// Rows of sessions that share syncs, and how their names go on.
const GROUP: &str = "group-c";

/// The lines on commits, each with its label; none where the default was not measured, or nothing
/// that it stands against.
fn commit_summary(record: &Record) -> Vec<(&'static str, String)> {
    let Some(default) = commits(record, METHODS[0]) else {
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
    lines.extend(write_cache_line(record, default));
    lines
}

/// Whether anything was measured that the default method stands against.
fn has_other_commits(record: &Record) -> bool {
    for measurement in &record.measurements {
        let workload = &measurement.data.workload;
        let name = workload.name.as_str();
        if METHODS[1..].contains(&name) || name.starts_with(GROUP) || workload.write_cache.is_some()
        {
            return true;
        }
    }
    false
}

fn default_text(record: &Record, default: OpRow<'_>) -> String {
    let method = METHODS[0];
    let text = format!("{method}: {}", commits_text(default));
    match doubt_of(record, method) {
        Some(finding) => format!("{text} (in doubt: {})", finding.code),
        None => text,
    }
}

/// The fastest method, where it is another one than the default.
fn fastest_text(record: &Record, default: OpRow<'_>) -> Option<String> {
    let method = METHODS[0];
    let doubt = doubt_of(record, method);
    let Some(fastest) = fastest_trusted(record) else {
        let code = &doubt?.code;
        return Some(format!("none is proven to keep data; see {code}"));
    };
    let is_faster = low(&fastest.op.figures.iops) > high(&default.figures.iops);
    if doubt.is_some() || is_faster {
        let text = commits_text(fastest.op);
        Some(format!("{}: {text}", fastest.method))
    } else {
        Some(format!("no method is significantly faster than {method}"))
    }
}

/// The commits by one of [`METHODS`].
struct MethodCommits<'r> {
    method: &'static str,
    op: OpRow<'r>,
}

/// The fastest method whose commits are not in doubt.
fn fastest_trusted(record: &Record) -> Option<MethodCommits<'_>> {
    let mut fastest: Option<MethodCommits<'_>> = None;
    for method in METHODS {
        let Some(op) = commits(record, method) else {
            continue;
        };
        if doubt_of(record, method).is_some() {
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

/// The finding by which commits of the method may return before their data is durable.
fn doubt_of<'a>(record: &'a Record, method: &str) -> Option<&'a Finding> {
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

/// The commits of a workload, where any were measured.
fn commits<'a>(record: &'a Record, workload: &str) -> Option<OpRow<'a>> {
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

/// The most commits of sessions that share syncs, alongside those of one session.
fn group_text(record: &Record, single: OpRow<'_>) -> Option<String> {
    let best = best_group(record)?;
    let rate = commits_text(best.op);
    let gain = ratio_text(&best.op.figures.iops, &single.figures.iops);
    Some(format!(
        "{} sessions share syncs (group commit): {rate}, {gain} times one session",
        best.sessions
    ))
}

fn best_group(record: &Record) -> Option<GroupCommits<'_>> {
    let mut groups = Vec::new();
    for measurement in &record.measurements {
        let name = &measurement.data.workload.name;
        if let Some(sessions) = sessions_of(name)
            && let Some(op) = commits(record, name)
        {
            groups.push(GroupCommits { sessions, op });
        }
    }
    groups
        .into_iter()
        .max_by(|one, other| by_rate(&one.op, &other.op))
}

fn sessions_of(workload: &str) -> Option<u32> {
    workload.strip_prefix(GROUP)?.parse().ok()
}

fn by_rate(one: &OpRow<'_>, other: &OpRow<'_>) -> Ordering {
    one.figures.iops.value.total_cmp(&other.figures.iops.value)
}

/// The default with the write cache of the disk off, alongside the same with it on; else the state
/// that the cache was switched to.
fn write_cache_line(record: &Record, on: OpRow<'_>) -> Option<(&'static str, String)> {
    let method = METHODS[0];
    if let Some(off) = commits(record, &format!("{method}{OFF_SUFFIX}")) {
        let rate = commits_text(off);
        let gain = ratio_text(&off.figures.iops, &on.figures.iops);
        let text = format!("{method}: {rate}, {gain} times the rate with the write cache on");
        return Some(("cache off", text));
    }
    let state = record
        .measurements
        .iter()
        .find_map(|row| row.data.workload.write_cache)?;
    let switched = labels::switched_write_cache(state);
    Some(("cache", format!("{switched} for this run, then restored")))
}

/// How many times one rate is the other, with the digits that both intervals support.
fn ratio_text(rate: &Estimate, base: &Estimate) -> String {
    let ratio = rate.value / base.value.max(f64::MIN_POSITIVE);
    let width = relative_width(rate).hypot(relative_width(base));
    rounded(ratio, Some(ratio * width))
}

fn relative_width(rate: &Estimate) -> f64 {
    rate.relative_half_width().unwrap_or(1.0)
}

fn low(rate: &Estimate) -> f64 {
    rate.value - rate.half_width_95.unwrap_or(rate.value)
}

fn high(rate: &Estimate) -> f64 {
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
        let mut like = record.measurements.iter().rev();
        let like = like.find(|m| m.data.ops.contains_key(&OpKind::Commit));
        let like = like.cloned().unwrap();
        record.measurements = rates
            .iter()
            .map(|(name, rate)| {
                let mut m = like.clone();
                m.data.workload.name = (*name).to_owned();
                let op = m.figures.ops.get_mut(&OpKind::Commit).unwrap();
                (op.iops.value, op.iops.half_width_95) = (*rate, Some(rate * 0.02));
                m
            })
            .collect();
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

    #[test]
    fn method_in_doubt_is_not_the_fastest() {
        let first = |doubted: &[usize]| {
            let rates = [
                ("fdatasync", 159.0),
                ("fsync", 170.0),
                ("open_sync", 4500.0),
            ];
            let mut record = record(&rates);
            let evidence = doubted.iter().map(|index| Evidence {
                path: format!("/measurements/{index}/figures/ops/commit/iops/value"),
                observed: 1.0,
                threshold: 0.0,
                unit: "1/s".to_owned(),
            });
            record.findings = vec![Finding {
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
            let lines = commit_summary(&record);
            lines[0].1.split(':').next().unwrap().to_owned()
        };
        assert_eq!(first(&[]), "open_sync");
        assert_eq!(first(&[2]), "fsync");
        assert_eq!(first(&[0, 2]), "fsync");
    }
}
