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

/// A row for each use and one for trust. Without grades, or where several targets have grades of
/// their own, the headline takes the place of those rows. The answer of `--for` always comes first.
pub(crate) fn verdict(record: &Record) -> Vec<Block> {
    let Some(verdict) = &record.verdict else {
        return Vec::new();
    };
    let graded = !verdict.grades.is_empty() && record.targets.len() <= 1;
    let mut blocks = Vec::new();
    let has_headline = !graded || record.plan.questions.fit_for.is_some();
    blocks.extend(has_headline.then(|| Block::text(Tone::Bold, &verdict.headline)));
    blocks.extend(grades(record, |_| true).filter(|_| graded));
    let summary = commit_summary(record).into_iter();
    blocks.extend(summary.map(|(label, text)| Block::toned_fact(Tone::Bold, label, text)));
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
    let grades = record.verdict.iter().flat_map(|verdict| &verdict.grades);
    let is_own = |grade: &&UseGrade| {
        let measurement = record.measurements.get(grade.measurement);
        measurement.is_none_or(|m| is_selected(m.data.target))
    };
    let rows: Vec<TableRow> = grades.filter(is_own).map(row).collect();
    let mut columns = Column::words([""; 5]);
    columns[1] = Column::number("", Place::Always);
    columns[4].place = Place::Roomy(1);
    (!rows.is_empty()).then(|| Block::Table(Table::new("", columns, rows)))
}

fn row(grade: &UseGrade) -> TableRow {
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
pub(crate) fn worse(of: &UseGrade) -> Option<Grade> {
    let grade = of.grade?;
    Some(of.or.map_or(grade, |or| grade.min(or)))
}

/// The figure that decides about the next better grade; empty for a good one.
fn threshold_text(grade: &UseGrade) -> String {
    let thresholds = &grade.thresholds;
    let (word, from) = match (grade.grade, grade.or) {
        (Some(Grade::Poor), None) => ("poor below", thresholds.limited_from),
        (Some(Grade::Good), None) | (None, _) => return String::new(),
        _ => ("good from", thresholds.good_from),
    };
    let from = figure_text(from, Some(from * 1e-3), &grade.figure.unit);
    format!("({word} {from})")
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

/// The lines; none where the default was not measured, or nothing that it stands against.
fn commit_summary(record: &Record) -> Vec<(&'static str, String)> {
    let has_choice = record.measurements.iter().any(|m| {
        let name = m.data.workload.name.as_str();
        METHODS[1..].contains(&name)
            || name.starts_with(GROUP)
            || m.data.workload.write_cache.is_some()
    });
    let method = METHODS[0];
    let Some(default) = commits(record, method).filter(|_| has_choice) else {
        return Vec::new();
    };
    let doubt = doubt_of(record, method);
    let mut of_default = format!("{method}: {}", text(default));
    if let Some(finding) = doubt {
        of_default += &format!(" (in doubt: {})", finding.code);
    }
    let fastest = match (fastest_trusted(record), doubt) {
        (Some((name, commits)), _)
            if doubt.is_some() || low(&commits.figures.iops) > high(&default.figures.iops) =>
        {
            Some(format!("{name}: {}", text(commits)))
        }
        (Some(_), _) => Some(format!("no method is significantly faster than {method}")),
        (None, Some(finding)) => Some(format!("none is proven to keep data; see {}", finding.code)),
        (None, None) => None,
    };
    let lines = [
        ("fastest", fastest),
        ("default", Some(of_default)),
        ("shared", group(record, default)),
    ];
    let lines = lines.into_iter();
    let lines = lines.filter_map(|(label, text)| Some((label, text?)));
    lines.chain(write_cache(record, default)).collect()
}

/// The fastest method whose commits are not in doubt.
fn fastest_trusted(record: &Record) -> Option<(&'static str, OpRow<'_>)> {
    let mut fastest: Option<(&'static str, OpRow<'_>)> = None;
    for method in METHODS {
        let Some(measured) = commits(record, method) else {
            continue;
        };
        let is_faster =
            fastest.is_none_or(|best| measured.figures.iops.value > best.1.figures.iops.value);
        if is_faster && doubt_of(record, method).is_none() {
            fastest = Some((method, measured));
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
        .position(|m| m.data.workload.name == method)?;
    record
        .findings
        .iter()
        .find(|finding| finding.says == lost && finding.concerns(index))
}

fn commits<'a>(record: &'a Record, workload: &str) -> Option<OpRow<'a>> {
    let mut measured = record.measurements.iter();
    let found = measured.find(|m| m.data.workload.name == workload)?;
    found.op(OpKind::Commit).filter(|op| op.data.count > 0)
}

/// `1,200/s ±3 %, p99.9 8.01 ms`.
fn text(commits: OpRow<'_>) -> String {
    let latency = match (commits.figures.latency.p99_9, commits.figures.latency.p99) {
        (Some(ns), _) => format!(", p99.9 {}", format_latency(ns)),
        (None, Some(ns)) => format!(", p99 {}", format_latency(ns)),
        (None, None) => String::new(),
    };
    let rate = &commits.figures.iops;
    format!("{} {}{latency}", rate.value_text(), labels::interval(rate))
}

/// The most sessions that share syncs, alongside one.
fn group(record: &Record, one: OpRow<'_>) -> Option<String> {
    let sessions = |name: &str| name.strip_prefix(GROUP)?.parse::<u32>().ok();
    let names = record
        .measurements
        .iter()
        .map(|m| m.data.workload.name.as_str());
    let shared = names.filter_map(|name| Some((sessions(name)?, commits(record, name)?)));
    let best = shared.max_by(|a, b| a.1.figures.iops.value.total_cmp(&b.1.figures.iops.value));
    let (sessions, shared) = best?;
    let (rate, gain) = (text(shared), ratio(&shared.figures.iops, &one.figures.iops));
    Some(format!(
        "{sessions} sessions share syncs (group commit): {rate}, {gain} times one session"
    ))
}

/// The default with the write cache of the disk off, alongside the same with it on; else the state
/// that the cache was switched to.
fn write_cache(record: &Record, on: OpRow<'_>) -> Option<(&'static str, String)> {
    let fdatasync = METHODS[0];
    if let Some(off) = commits(record, &format!("{fdatasync}{OFF_SUFFIX}")) {
        let (rate, gain) = (text(off), ratio(&off.figures.iops, &on.figures.iops));
        let text = format!("{fdatasync}: {rate}, {gain} times the rate with the write cache on");
        return Some(("cache off", text));
    }
    let mut measured = record.measurements.iter();
    let state = measured.find_map(|m| m.data.workload.write_cache)?;
    let state = labels::switched_write_cache(state);
    Some(("cache", format!("{state} for this run, then restored")))
}

/// How many times one rate is the other, with the digits that both intervals support.
fn ratio(rate: &Estimate, base: &Estimate) -> String {
    let value = rate.value / base.value.max(f64::MIN_POSITIVE);
    let width = |rate: &Estimate| rate.relative_half_width().unwrap_or(1.0);
    rounded(value, Some(value * width(rate).hypot(width(base))))
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
