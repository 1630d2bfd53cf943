//! A record as metrics for Prometheus, valid in its own format (0.0.4, which node_exporter's
//! textfile collector reads) and in OpenMetrics 1.0. Names and labels are stable. Collectors reject
//! a whole file for one duplicate series, so every series is written once.

mod family;
mod help;
mod run;

use crate::format::Format;
use diskproof_model::figure::{Figure, figures};
use diskproof_model::record::Record;
use family::{Labels, Samples};
use help::UNITS;
use run::add_run;
use std::io::{self, Write};

/// The format.
pub const FORMAT: Format = Format::new(
    ".prom",
    "metrics for node_exporter's textfile collector",
    write_record,
);

/// Adds the target and the verb to every series: collectors reject a series that the files of two
/// runs have.
fn label_run(record: &Record, samples: &mut Samples) {
    let verb = &record.plan.origin.verb;
    let targets = record.targets.iter().map(|target| target.path.as_str());
    let targets: Vec<&str> = targets.collect();
    let of_run = [("target", targets.join("; ")), ("verb", verb.clone())];
    for sample in samples.0.values_mut().flatten() {
        for (name, value) in &of_run {
            if sample.labels.iter().all(|(known, _)| known != name) {
                sample.labels.push((name, value.clone()));
            }
        }
    }
}

fn add_figure(figure: &Figure<'_>, samples: &mut Samples) {
    let (metric, value) = (figure.metric, figure.value);
    let mut labels = labels(figure);
    match metric.family {
        "iops" => {
            if let Some(half) = figure.half_width_95 {
                samples.add("iops_half_width", labels.clone(), half);
            }
            if !figure.estimate().is_unknown() {
                samples.add("iops", labels, value);
            }
        }
        family @ ("latency_seconds" | "latency_intended_seconds") => match metric.quantile() {
            Some(quantile) => {
                labels.push(("quantile", quantile.to_string()));
                samples.add(family, labels, value / 1e9);
            }
            None => {
                let count = figure.n.unwrap_or(0) as f64;
                samples.add_part(family, "_sum", labels.clone(), value * count / 1e9);
                samples.add_part(family, "_count", labels, count);
            }
        },
        family => {
            let unit = UNITS.iter().find(|(unit, _)| *unit == figure.unit);
            let suffix = unit.map_or("", |(_, suffix)| suffix);
            // The two differ in the last digit; each family keeps the one that it had.
            let value = match figure.unit {
                "ns" if family.ends_with('*') => value * 1e-9,
                "ns" => value / 1e9,
                _ => value,
            };
            samples.add(&family.replace('*', suffix), labels, value);
        }
    }
}

/// The labels of the subject, then those of the figure.
fn labels(figure: &Figure<'_>) -> Labels {
    let key = &figure.key;
    let mut labels = key.labels.clone();
    labels.extend(key.phase.map(|phase| ("phase", phase.as_str().to_owned())));
    labels.push(("op", key.op.to_owned()));
    labels.extend(key.label.clone());
    if figure.metric.family == "curve_bytes_per_second" {
        labels.push(("figure", figure.metric.threshold.to_owned()));
    }
    labels
}

/// Writes all metrics.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let mut samples = Samples::default();
    add_run(record, &mut samples);
    let mut figures = figures(record);
    figures.retain(|figure| !figure.metric.family.is_empty() && !figure.key.labels.is_empty());
    figures.sort_by_key(|figure| (figure.group, figure.metric.rank()));
    for figure in &figures {
        add_figure(figure, &mut samples);
    }
    label_run(record, &mut samples);
    samples.write(out)?;
    writeln!(out, "# EOF")
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::record::{Expectation, Record};
    use std::collections::BTreeSet;

    fn series(record: &Record) -> BTreeSet<String> {
        let mut out = Vec::new();
        write_record(record, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()))
            .collect()
    }

    fn record(verb: &str) -> Record {
        let mut record = crate::html::tests::record();
        let own = &mut record.plan.origin.verb;
        *own = verb.to_owned();
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
            threshold: None,
            promise: None,
        })
        .into();
        record
    }

    #[test]
    fn series_of_two_verbs_on_one_target_differ() {
        let (check, ping) = (series(&record("check")), series(&record("ping")));
        assert!(!check.is_empty() && check.is_disjoint(&ping));
        for one in &check {
            assert!(
                one.contains("target=") && one.contains("verb=\"check\""),
                "{one}"
            );
        }
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
                all.iter().any(|one| one.starts_with(&start)),
                "{start}: {all:?}"
            );
        }
    }
}
