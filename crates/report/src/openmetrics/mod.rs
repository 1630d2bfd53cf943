//! A record as metrics for Prometheus, valid in its own format (0.0.4, which node_exporter's
//! textfile collector reads) and in OpenMetrics 1.0. Names and labels are stable. Collectors reject
//! a whole file for one duplicate series, so every series is written once.

mod family;
mod health;
mod run;
mod surface;
mod workloads;

use crate::format::{Format, OutputFile, Requires};
use diskproof_model::record::Record;
use family::{MetricFamily, write_family};
use health::of_health;
use run::of_run;
use std::io::{self, Write};
use surface::of_surface;
use workloads::of_workloads;

/// The format.
pub const FORMAT: Format = Format {
    extension: ".prom",
    description: "metrics for node_exporter's textfile collector",
    requires: Requires::Nothing,
    record: |record, path| vec![OutputFile::new(path, move |out| write_record(record, out))],
    comparison: None,
    identity: None,
};

/// Adds the target and the verb to every series: collectors reject a series that the files of two
/// runs have.
fn label_run(record: &Record, families: &mut [MetricFamily]) {
    let verb = &record.plan.origin.verb;
    let targets: Vec<&str> = record
        .targets
        .iter()
        .map(|target| target.path.as_str())
        .collect();
    let of_run = [("target", targets.join("; ")), ("verb", verb.clone())];
    for (_, labels, _) in families.iter_mut().flat_map(|family| &mut family.samples) {
        for (name, value) in &of_run {
            if labels.iter().all(|(known, _)| known != name) {
                labels.push((name, value.clone()));
            }
        }
    }
}

/// Writes all metrics.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let mut families = of_run(record);
    families.extend(of_workloads(record));
    families.extend(of_surface(record));
    families.extend(of_health(record));
    label_run(record, &mut families);
    families
        .iter()
        .filter(|family| !family.samples.is_empty())
        .try_for_each(|family| write_family(family, out))?;
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
