//! A metric with its samples, and how both formats write it.

use crate::text::clean;
use diskproof_model::record::Record;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// A metric with all its samples, which both formats require in one place.
pub(super) struct MetricFamily {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) help: &'static str,
    pub(super) samples: Vec<MetricSample>,
}

/// Suffix of the name, labels, value.
pub(super) type MetricSample = (&'static str, Labels, f64);

/// Names and values, in the order of writing.
pub(super) type Labels = Vec<(&'static str, String)>;

pub(super) fn write_family(family: &MetricFamily, out: &mut dyn Write) -> io::Result<()> {
    let name = &family.name;
    writeln!(out, "# HELP {name} {}", family.help)?;
    writeln!(out, "# TYPE {name} {}", family.kind)?;
    let mut written = BTreeSet::new();
    for (suffix, labels, value) in family
        .samples
        .iter()
        .filter(|(_, _, value)| value.is_finite())
    {
        let series = format!("{name}{suffix}{}", label_text(labels));
        if written.insert(series.clone()) {
            writeln!(out, "{series} {value}")?;
        }
    }
    Ok(())
}

/// Empty labels are the same as none.
pub(super) fn label_text(labels: &Labels) -> String {
    let pairs: Vec<String> = labels
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .collect();
    if pairs.is_empty() {
        String::new()
    } else {
        format!("{{{}}}", pairs.join(","))
    }
}

/// Escapes control characters, then backslashes and quotes as the formats require.
pub(super) fn escaped(value: &str) -> String {
    clean(value).replace('\\', "\\\\").replace('"', "\\\"")
}

pub(super) fn gauge(name: &str, help: &'static str, samples: Vec<(Labels, f64)>) -> MetricFamily {
    MetricFamily {
        name: name.to_owned(),
        kind: "gauge",
        help,
        samples: samples
            .into_iter()
            .map(|(labels, value)| ("", labels, value))
            .collect(),
    }
}

pub(super) fn with(labels: &Labels, name: &'static str, value: &str) -> Labels {
    labels
        .iter()
        .cloned()
        .chain([(name, value.to_owned())])
        .collect()
}

/// A metric whose samples have units, such as `B/s`: one for each unit, which is in its name.
pub(super) fn gauges_by_unit(
    name: &str,
    help: &'static str,
    samples: &[(Labels, f64, &str)],
) -> Vec<MetricFamily> {
    let units = [
        ("B/s", "_bytes_per_second", 1.0),
        ("1/s", "_iops", 1.0),
        ("ns", "_seconds", 1e-9),
        ("rpm", "_rpm", 1.0),
        ("1", "", 1.0),
    ];
    units
        .into_iter()
        .map(|(unit, suffix, factor)| {
            let own = samples.iter().filter(|(_, _, known)| *known == unit);
            let own = own.map(|(labels, value, _)| (labels.clone(), value * factor));
            gauge(&format!("{name}{suffix}"), help, own.collect())
        })
        .collect()
}

/// The labels of a target.
pub(super) fn target_labels(record: &Record, target: usize) -> Labels {
    let identity = record.targets.get(target);
    let serial = identity.and_then(|identity| identity.disks().next()?.serial.clone());
    vec![
        (
            "target",
            identity
                .map(|identity| identity.path.clone())
                .unwrap_or_default(),
        ),
        ("serial", serial.unwrap_or_default()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let family = gauge(
            "m",
            "Help.",
            vec![
                (Vec::new(), 1.0),
                (Vec::new(), 2.0),
                (vec![("a", "b".to_owned())], f64::INFINITY),
            ],
        );
        let mut out = Vec::new();
        write_family(&family, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "# HELP m Help.\n# TYPE m gauge\nm 1\n"
        );
    }
}
