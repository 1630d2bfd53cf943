//! A record or a fleet as metrics for Prometheus, valid in its own format (0.0.4, which
//! node_exporter's textfile collector reads) and in OpenMetrics 1.0. Names and labels are stable.
//! Collectors reject a whole file for one duplicate series, so every series is written once.

use crate::labels;
use crate::percentiles::{EXPORTED_PERCENTILES, latency_at};
use crate::text::clean;
use diskproof_model::expectation::ExpectationOutcome;
use diskproof_model::figure::{Figure, figures};
use diskproof_model::finding::Severity;
use diskproof_model::fleet::{FleetOutcome, FleetRecord, RowState};
use diskproof_model::fleet_sum::{FleetSum, WorkloadSum};
use diskproof_model::record::Record;
use diskproof_model::verdict::{RunVerdict, TrustLevel};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Writes all metrics.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let mut samples = Samples::default();
    add_run(record, &mut samples);
    add_findings(record, &mut samples);
    if let Some(verdict) = &record.verdict {
        add_verdict(verdict, &mut samples);
    }
    let mut exported = figures(record);
    exported.retain(|figure| !figure.metric.family.is_empty() && !figure.key.labels.is_empty());
    exported.sort_by_key(|figure| (figure.group, figure.metric.rank()));
    for figure in &exported {
        add_figure(figure, &mut samples);
    }
    label_run(record, &mut samples);
    write_samples(&samples, out)?;
    writeln!(out, "# EOF")
}

/// Writes how many disks of a fleet are in which state, and what its hosts gave together.
pub fn write_fleet(fleet: &FleetRecord, out: &mut dyn Write) -> io::Result<()> {
    let mut samples = Samples::default();
    add_fleet(fleet, &mut samples);
    if let Some(sum) = &fleet.sum {
        add_sum(sum, &mut samples);
    }
    for sample in samples.values_mut().flatten() {
        add_label(&mut sample.labels, "verb", "merge");
    }
    write_samples(&samples, out)?;
    writeln!(out, "# EOF")
}

/// Adds the verdict on a fleet, and the number of disks in each state.
fn add_fleet(fleet: &FleetRecord, samples: &mut Samples) {
    let alike = match fleet.outcome {
        FleetOutcome::Alike => 1.0,
        FleetOutcome::TooFew | FleetOutcome::Undecided => 0.5,
        FleetOutcome::Differs => 0.0,
    };
    add_sample(samples, "fleet_alike", Vec::new(), alike);
    for state in RowState::ALL {
        let count = fleet.rows.iter().filter(|row| row.state == state).count();
        let labels = vec![("state", state.as_str().to_owned())];
        add_sample(samples, "fleet_rows", labels, count as f64);
    }
    let missing = fleet.missing_count() as f64;
    add_sample(samples, "fleet_missing", Vec::new(), missing);
}

/// Adds what the hosts gave together.
fn add_sum(sum: &FleetSum, samples: &mut Samples) {
    let hosts = sum.members.len() as f64;
    let left_out = sum.left_out.len() as f64;
    add_sample(samples, "together_hosts", Vec::new(), hosts);
    add_sample(samples, "together_hosts_left_out", Vec::new(), left_out);
    let undecided = sum.undecided.len() as f64;
    add_sample(samples, "together_undecided", Vec::new(), undecided);
    for workload in &sum.workloads {
        add_workload_sum(workload, samples);
    }
}

/// The quantile of a percentile as a label: `0.999` of 99.9 %.
fn quantile_label(percent: f64) -> String {
    // The division leaves errors in the last digits; percentiles have two decimals at most.
    let quantile = format!("{:.4}", percent / 100.0);
    quantile.trim_end_matches('0').to_owned()
}

fn add_workload_sum(workload: &WorkloadSum, samples: &mut Samples) {
    let labels = vec![
        ("workload", workload.workload.clone()),
        ("op", workload.op.as_str().to_owned()),
    ];
    let throughput = workload.throughput.value;
    let slots = workload.slots as f64;
    for (family, value) in [
        ("together_iops", Some(workload.iops.value)),
        ("together_iops_half_width", workload.iops.half_width_95),
        ("together_throughput_bytes_per_second", Some(throughput)),
        ("together_slots", Some(slots)),
        ("together_overlap_ratio", Some(workload.overlap)),
    ] {
        if let Some(value) = value {
            add_sample(samples, family, labels.clone(), value);
        }
    }
    let Some(latencies) = &workload.latencies else {
        return;
    };
    let family = "together_latency_seconds";
    for percent in EXPORTED_PERCENTILES {
        if let Some(latency_ns) = latency_at(&latencies.percentiles, percent) {
            let mut labels = labels.clone();
            labels.push(("quantile", quantile_label(percent)));
            add_sample(samples, family, labels, latency_ns as f64 / 1e9);
        }
    }
    let count = latencies.count as f64;
    add_suffixed_sample(samples, family, "_count", labels, count);
}

/// Samples by the name of their family without the prefix `diskproof_`. Both formats require all
/// samples of a metric in one place.
type Samples = BTreeMap<String, Vec<Sample>>;

/// One value of a family.
struct Sample {
    /// What follows the name of the family: `_sum`, `_count` or nothing.
    suffix: &'static str,
    labels: Labels,
    value: f64,
}

/// The labels of a sample: names and values, in the order of writing.
type Labels = Vec<(&'static str, String)>;

/// Adds a sample of a family whose name has no suffix.
fn add_sample(samples: &mut Samples, family: &str, labels: Labels, value: f64) {
    add_suffixed_sample(samples, family, "", labels, value);
}

fn add_suffixed_sample(
    samples: &mut Samples,
    family: &str,
    suffix: &'static str,
    labels: Labels,
    value: f64,
) {
    let family_samples = samples.entry(family.to_owned()).or_default();
    family_samples.push(Sample {
        suffix,
        labels,
        value,
    });
}

/// Adds the samples of the run.
fn add_run(record: &Record, samples: &mut Samples) {
    let start_s = match record.started.parse::<jiff::Timestamp>() {
        Ok(start) => start.as_second() as f64,
        Err(_) => f64::NAN,
    };
    let partial = if record.partial { 1.0 } else { 0.0 };
    let missed = expectations_with(record, ExpectationOutcome::Missed);
    let undecided = expectations_with(record, ExpectationOutcome::Undecided);
    add_sample(samples, "run_timestamp_seconds", Vec::new(), start_s);
    add_sample(samples, "run_partial", Vec::new(), partial);
    add_sample(samples, "expectations_missed", Vec::new(), missed);
    add_sample(samples, "expectations_undecided", Vec::new(), undecided);
    let identity = vec![
        ("run_id", record.run_id.clone()),
        ("version", record.tool.version.clone()),
        ("verb", record.plan.origin.verb.clone()),
        ("host", record.host.name.clone()),
    ];
    add_sample(samples, "run_info", identity, 1.0);
}

/// Counts the expectations with this outcome, as the value of a metric.
fn expectations_with(record: &Record, outcome: ExpectationOutcome) -> f64 {
    record
        .expectations
        .iter()
        .filter(|expectation| expectation.outcome() == outcome)
        .count() as f64
}

fn add_findings(record: &Record, samples: &mut Samples) {
    for severity in [Severity::Failure, Severity::Warning, Severity::Note] {
        let count = record
            .findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count();
        let labels = vec![("severity", labels::severity(severity).to_owned())];
        add_sample(samples, "findings", labels, count as f64);
    }
    for finding in &record.findings {
        let labels = vec![("code", finding.code.clone())];
        add_sample(samples, "finding", labels, 1.0);
    }
}

fn add_verdict(verdict: &RunVerdict, samples: &mut Samples) {
    let mut labels = vec![("headline", verdict.headline.clone())];
    if let Some(worst) = &verdict.worst {
        labels.push(("worst", worst.code.clone()));
        labels.push(("title", worst.title.clone()));
    }
    add_sample(samples, "verdict_info", labels, 1.0);
    let reliable = match verdict.trust.level {
        TrustLevel::Reliable => 1.0,
        TrustLevel::Doubtful => 0.5,
        TrustLevel::Unreliable => 0.0,
    };
    add_sample(samples, "reliable", Vec::new(), reliable);
}

fn add_figure(figure: &Figure<'_>, samples: &mut Samples) {
    let family = figure.metric.family;
    if figure.is_undecided_rate() {
        return;
    }
    match family {
        "iops" => add_iops(figure, samples),
        "latency_seconds" | "latency_intended_seconds" => add_latency(figure, samples),
        _ => {
            let name = family.replace('*', unit_suffix(figure.unit));
            // Product and quotient may differ in the last digit. Each family keeps its own, so that
            // series stay as they are.
            let value = match figure.unit {
                "ns" if family.ends_with('*') => figure.value * 1e-9,
                "ns" => figure.value / 1e9,
                _ => figure.value,
            };
            add_sample(samples, &name, figure_labels(figure), value);
        }
    }
}

fn add_iops(figure: &Figure<'_>, samples: &mut Samples) {
    let labels = figure_labels(figure);
    if let Some(half_width) = figure.half_width_95 {
        add_sample(samples, "iops_half_width", labels.clone(), half_width);
    }
    add_sample(samples, "iops", labels, figure.value);
}

/// Adds a quantile of a summary. For the mean, which a summary does not have, adds sum and count.
fn add_latency(figure: &Figure<'_>, samples: &mut Samples) {
    let family = figure.metric.family;
    let mut labels = figure_labels(figure);
    match figure.metric.quantile() {
        Some(quantile) => {
            labels.push(("quantile", quantile.to_string()));
            add_sample(samples, family, labels, figure.value / 1e9);
        }
        None => {
            let count = figure.n.unwrap_or(0) as f64;
            let sum = figure.value * count / 1e9;
            add_suffixed_sample(samples, family, "_sum", labels.clone(), sum);
            add_suffixed_sample(samples, family, "_count", labels, count);
        }
    }
}

/// Families of rates by position, with several figures of one subject.
const BY_POSITION: [&str; 2] = ["curve_bytes_per_second", "accept_bytes_per_second"];

/// The labels of the subject, then those of the figure.
fn figure_labels(figure: &Figure<'_>) -> Labels {
    let key = &figure.key;
    let mut labels = key.labels.clone();
    if let Some(phase) = key.phase {
        labels.push(("phase", phase.as_str().to_owned()));
    }
    labels.push(("op", key.op.to_owned()));
    labels.extend(key.label.clone());
    if BY_POSITION.contains(&figure.metric.family) {
        labels.push(("figure", figure.metric.threshold.to_owned()));
    }
    labels
}

/// Adds the target and the verb to every series: collectors reject a series that the files of two
/// runs have.
fn label_run(record: &Record, samples: &mut Samples) {
    let paths: Vec<&str> = record
        .targets
        .iter()
        .map(|target| target.path.as_str())
        .collect();
    let target = paths.join("; ");
    for sample in samples.values_mut().flatten() {
        add_label(&mut sample.labels, "target", &target);
        add_label(&mut sample.labels, "verb", &record.plan.origin.verb);
    }
}

/// Adds a label unless the sample has one of this name.
fn add_label(labels: &mut Labels, name: &'static str, value: &str) {
    if labels.iter().all(|label| label.0 != name) {
        labels.push((name, value.to_owned()));
    }
}

/// The families in the order of writing: name without `diskproof_`, kind, help. A `*` stands for
/// the unit of the samples.
const FAMILIES: &str = include_str!("openmetrics.txt");

/// The unit of a family and the end of its name, in the order of writing.
const UNITS: [(&str, &str); 6] = [
    ("B/s", "_bytes_per_second"),
    ("1/s", "_iops"),
    ("ns", "_seconds"),
    ("rpm", "_rpm"),
    ("B", "_bytes"),
    ("1", ""),
];

/// The end of the names of families in this unit.
fn unit_suffix(unit: &str) -> &'static str {
    for (known, suffix) in UNITS {
        if known == unit {
            return suffix;
        }
    }
    ""
}

/// Writes the families that have samples, in the order of their help.
fn write_samples(samples: &Samples, out: &mut dyn Write) -> io::Result<()> {
    let mut helped = BTreeSet::new();
    for line in FAMILIES.lines() {
        let mut words = line.splitn(3, ' ');
        let family = words.next().unwrap_or_default();
        let kind = words.next().unwrap_or_default();
        let help = words.next().unwrap_or_default();
        for name in family_names(family) {
            if let Some(own_samples) = samples.get(&name) {
                write_family(&name, kind, help, own_samples, out)?;
            }
            helped.insert(name);
        }
    }
    let is_helped = samples.keys().all(|name| helped.contains(name));
    debug_assert!(is_helped, "every family has its line of help");
    Ok(())
}

/// The names of a family, one for each unit where a `*` stands for it.
fn family_names(family: &str) -> Vec<String> {
    match family.strip_suffix('*') {
        Some(start) => UNITS
            .iter()
            .map(|(_, suffix)| format!("{start}{suffix}"))
            .collect(),
        None => vec![family.to_owned()],
    }
}

fn write_family(
    name: &str,
    kind: &str,
    help: &str,
    samples: &[Sample],
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "# HELP diskproof_{name} {help}")?;
    writeln!(out, "# TYPE diskproof_{name} {kind}")?;
    let mut written = BTreeSet::new();
    for sample in samples {
        if !sample.value.is_finite() {
            continue;
        }
        let labels = label_text(&sample.labels);
        let series = format!("diskproof_{name}{}{labels}", sample.suffix);
        if written.insert(series.clone()) {
            writeln!(out, "{series} {}", sample.value)?;
        }
    }
    Ok(())
}

/// `{target="/data",verb="check"}`: labels as both formats write them. A label with an empty value
/// is the same as none, and is skipped.
fn label_text(labels: &Labels) -> String {
    let mut pairs = Vec::new();
    for (name, value) in labels {
        if !value.is_empty() {
            pairs.push(format!("{name}=\"{}\"", escaped_value(value)));
        }
    }
    if pairs.is_empty() {
        String::new()
    } else {
        format!("{{{}}}", pairs.join(","))
    }
}

/// Escapes control characters, then backslashes and quotes as the formats require.
fn escaped_value(value: &str) -> String {
    clean(value).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::written;
    use diskproof_model::comparison::PercentilePoint;
    use diskproof_model::expectation::Expectation;
    use diskproof_model::fleet_sum::FleetLatencies;
    use diskproof_model::op::OpKind;
    use diskproof_model::record::Record;
    use std::collections::BTreeSet;

    fn series(record: &Record) -> BTreeSet<String> {
        let text = written(|out| write_record(record, out));
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()))
            .collect()
    }

    fn record(verb: &str) -> Record {
        let mut record = crate::fixture::record();
        record.plan.origin.verb = verb.to_owned();
        record.expectations = [
            "a.iops>=5",
            "a.read.p99.9<=5ms",
            "a.throughput>=1MB/s",
            "findings=0",
        ]
        .map(|expression| Expectation {
            expression: expression.to_owned(),
            observed: Some(5e6),
            interval: None,
            observed_at_least: None,
            met: true,
            undecided: false,
            decided_by_ns: None,
            objection: None,
            threshold: None,
            promise: None,
        })
        .into();
        record
    }

    #[test]
    fn quantiles_have_no_rounding_errors() {
        let labels = EXPORTED_PERCENTILES.map(quantile_label);
        assert_eq!(labels, ["0.5", "0.9", "0.99", "0.999", "0.9999"]);
    }

    #[test]
    fn series_of_two_verbs_on_one_target_differ() {
        let (check, ping) = (series(&record("check")), series(&record("ping")));
        assert!(!check.is_empty() && check.is_disjoint(&ping));
        for labels in &check {
            assert!(
                labels.contains("target=") && labels.contains("verb=\"check\""),
                "{labels}"
            );
        }
    }

    #[test]
    fn fleet_has_its_states_and_the_sum_of_its_hosts() {
        let mut fleet = crate::fixture::fleet(8);
        let mut sum = crate::fixture::fleet_sum();
        sum.workloads[0].latencies = Some(FleetLatencies {
            op: OpKind::Read,
            count: 40,
            percentiles: vec![PercentilePoint {
                percent: 99.9,
                latency_ns: 2_500_000,
            }],
        });
        fleet.sum = Some(sum);
        let text = written(|out| write_fleet(&fleet, out));
        let of_sum = r#"workload="random-read-d32",op="read",verb="merge""#;
        for line in [
            r#"diskproof_fleet_alike{verb="merge"} 0"#.to_owned(),
            r#"diskproof_fleet_rows{state="slower",verb="merge"} 1"#.to_owned(),
            r#"diskproof_fleet_rows{state="alike",verb="merge"} 7"#.to_owned(),
            r#"diskproof_fleet_rows{state="errors",verb="merge"} 0"#.to_owned(),
            r#"diskproof_together_hosts_left_out{verb="merge"} 0"#.to_owned(),
            r#"diskproof_together_undecided{verb="merge"} 0"#.to_owned(),
            format!("diskproof_together_iops{{{of_sum}}} 9000"),
            format!("diskproof_together_iops_half_width{{{of_sum}}} 12.5"),
            format!("diskproof_together_throughput_bytes_per_second{{{of_sum}}} 36864000"),
            format!("diskproof_together_latency_seconds_count{{{of_sum}}} 40"),
        ] {
            assert!(text.lines().any(|own| own == line), "{line}: {text}");
        }
        let quantile = r#"op="read",quantile="0.999",verb="merge"} 0.0025"#;
        assert!(text.contains(quantile), "{text}");
        // Beyond the last percentile that is known.
        assert!(!text.contains("0.9999"), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
        fleet.sum = None;
        let text = written(|out| write_fleet(&fleet, out));
        assert!(!text.contains("together"), "{text}");
    }

    #[test]
    fn the_unit_of_an_observed_figure_is_in_its_name() {
        let all = series(&record("check"));
        for (name, condition) in [
            ("_iops", "a.iops"),
            ("_seconds", "a.read.p99.9"),
            ("_bytes_per_second", "a.throughput"),
            ("", "findings"),
        ] {
            let start = format!("diskproof_expectation_observed{name}{{condition=\"{condition}");
            assert!(
                all.iter().any(|labels| labels.starts_with(&start)),
                "{start}: {all:?}"
            );
        }
    }

    #[test]
    fn labels_are_escaped_and_never_empty() {
        let labels = vec![
            ("target", "a\\b\"c\nd".to_owned()),
            ("serial", String::new()),
        ];
        assert_eq!(label_text(&labels), "{target=\"a\\\\b\\\"c\\\\nd\"}");
        assert_eq!(label_text(&Vec::new()), "");
    }

    #[test]
    fn every_series_is_finite_and_written_once() {
        let mut samples = Samples::default();
        add_sample(&mut samples, "iops", Vec::new(), 1.0);
        add_sample(&mut samples, "iops", Vec::new(), 2.0);
        add_sample(
            &mut samples,
            "iops",
            vec![("a", "b".to_owned())],
            f64::INFINITY,
        );
        let text = written(|out| write_samples(&samples, out));
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with("# HELP "))
            .collect();
        assert_eq!(lines, ["# TYPE diskproof_iops gauge", "diskproof_iops 1"]);
    }
}
