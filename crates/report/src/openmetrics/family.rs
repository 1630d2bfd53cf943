//! The samples of metrics by family, and how both formats write them.

use super::help::{FAMILIES, UNITS};
use crate::text::{clean, joined};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Samples by the name of their family without the prefix `diskproof_`. Both formats require all
/// samples of a metric in one place.
#[derive(Default)]
pub(super) struct Samples(pub(super) BTreeMap<String, Vec<Sample>>);

/// A sample of a family.
pub(super) struct Sample {
    /// What is added to the name of the family.
    pub(super) suffix: &'static str,
    pub(super) labels: Labels,
    pub(super) value: f64,
}

/// Names and values, in the order of writing.
pub(super) type Labels = Vec<(&'static str, String)>;

impl Samples {
    pub(super) fn add(&mut self, family: &str, labels: Labels, value: f64) {
        self.add_part(family, "", labels, value);
    }

    pub(super) fn add_part(
        &mut self,
        family: &str,
        suffix: &'static str,
        labels: Labels,
        value: f64,
    ) {
        let sample = Sample {
            suffix,
            labels,
            value,
        };
        self.0.entry(family.to_owned()).or_default().push(sample);
    }

    /// Writes the families that have samples, in the order of their help.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut helped = BTreeSet::new();
        for line in FAMILIES.lines() {
            let mut words = line.splitn(3, ' ');
            let mut word = || words.next().unwrap_or_default();
            let (family, kind, help) = (word(), word(), word());
            let names = match family.strip_suffix('*') {
                Some(name) => UNITS.map(|(_, suffix)| format!("{name}{suffix}")).to_vec(),
                None => vec![family.to_owned()],
            };
            helped.extend(names.iter().cloned());
            for name in names {
                if let Some(samples) = self.0.get(&name) {
                    write_family(&name, kind, help, samples, out)?;
                }
            }
        }
        let is_helped = self.0.keys().all(|name| helped.contains(name));
        debug_assert!(is_helped, "every family has its line of help");
        Ok(())
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
    for sample in samples.iter().filter(|sample| sample.value.is_finite()) {
        let (suffix, labels) = (sample.suffix, label_text(&sample.labels));
        let series = format!("diskproof_{name}{suffix}{labels}");
        if written.insert(series.clone()) {
            writeln!(out, "{series} {}", sample.value)?;
        }
    }
    Ok(())
}

/// Empty labels are the same as none.
fn label_text(labels: &Labels) -> String {
    let known = labels.iter().filter(|(_, value)| !value.is_empty());
    let pairs = known.map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    joined(pairs, ",").map_or(String::new(), |pairs| format!("{{{pairs}}}"))
}

/// Escapes control characters, then backslashes and quotes as the formats require.
fn escaped(value: &str) -> String {
    clean(value).replace('\\', "\\\\").replace('"', "\\\"")
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
        let mut samples = Samples::default();
        samples.add("iops", Vec::new(), 1.0);
        samples.add("iops", Vec::new(), 2.0);
        samples.add("iops", vec![("a", "b".to_owned())], f64::INFINITY);
        let mut out = Vec::new();
        samples.write(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "# HELP diskproof_iops Operations per second.\n# TYPE diskproof_iops gauge\n\
             diskproof_iops 1\n"
        );
    }
}
