//! Lists in what the sides differ besides the workload: the disk, its firmware, the machine, the
//! kernel. Such a difference is often the reason for the comparison, so it keeps no figures from
//! being compared.

use super::facts::{Absence, FACTS, Fact, RecordPart, Role, model_text};
use super::sides::Run;
use diskproof_model::comparison::Difference;
use diskproof_model::record::Record;
use diskproof_model::target::Layer;
use std::collections::BTreeSet;

/// At most this many values are shown where the runs of a side differ among themselves. More would
/// not fit a line of the page; the number of the others is named.
const VALUES_MAX: usize = 3;

/// The facts in which two sides differ. Where the runs of a side differ among themselves, all their
/// values are shown.
pub(super) fn differences(side_a: &[Run<'_>], side_b: &[Run<'_>]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for fact in &FACTS {
        let values_a = values_of_side(side_a, fact);
        let values_b = values_of_side(side_b, fact);
        if values_a != values_b {
            differences.push(Difference {
                what: fact.name.to_owned(),
                a: values_text(&values_a, fact.absence),
                b: values_text(&values_b, fact.absence),
            });
        }
    }
    differences
}

/// The values that a fact has in the runs of a side, each once.
fn values_of_side(side: &[Run<'_>], fact: &Fact) -> BTreeSet<String> {
    side.iter()
        .map(|run| fact.text(RecordPart::whole(run.record)))
        .collect()
}

/// `ext4 / xfs`. An empty value is worded as what its absence means.
fn values_text(values: &BTreeSet<String>, absence: Absence) -> String {
    let mut texts = Vec::new();
    for value in values.iter().take(VALUES_MAX) {
        texts.push(if value.is_empty() {
            absence.as_str().to_owned()
        } else {
            value.clone()
        });
    }
    if values.len() > VALUES_MAX {
        texts.push(format!("{} more", values.len() - VALUES_MAX));
    }
    texts.join(" / ")
}

/// The texts of all facts of a record, in their order; empty ones are absent. Two runs with equal
/// texts ran on the same disk under the same conditions.
pub(super) fn fact_texts(record: &Record) -> Vec<String> {
    let part = RecordPart::whole(record);
    FACTS.iter().map(|fact| fact.text(part)).collect()
}

/// The facts of one target, by its index, that may be a reason for its figures: each with its name
/// and its text, which is empty where the fact is absent.
pub(crate) fn conditions_of_target(record: &Record, target: usize) -> Vec<(&'static str, String)> {
    let part = RecordPart::of_target(record, target);
    FACTS
        .iter()
        .filter(|fact| fact.role == Role::Condition)
        .map(|fact| (fact.name, fact.text(part)))
        .collect()
}

/// The disks of a record by model and serial number. An unknown model is replaced by the kernel's
/// name of the disk.
pub(super) fn disk_names(record: &Record) -> Vec<String> {
    RecordPart::whole(record).disks().map(disk_name).collect()
}

/// `ST4000NM0035 (ZC1234)`: the model, and the serial number where it is known.
fn disk_name(disk: &Layer) -> String {
    match &disk.serial {
        Some(serial) => format!("{} ({serial})", model_text(disk)),
        None => model_text(disk),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::target::WriteCache;

    fn run(record: &Record) -> Run<'_> {
        Run {
            name: String::new(),
            record,
        }
    }

    #[test]
    fn fact_that_a_side_lacks_is_none_or_unknown() {
        let a = fixture::record();
        let mut b = a.clone();
        b.measurements[0].data.workload.write_cache = Some(WriteCache::WriteThrough);
        for layer in &mut b.targets[0].layers {
            layer.scheduler = Some("bfq".to_owned());
        }
        let mut without = a.clone();
        for layer in &mut without.targets[0].layers {
            layer.scheduler = None;
        }
        without.targets[0].filesystem = None;
        let texts: Vec<(String, String, String)> = differences(&[run(&without)], &[run(&b)])
            .into_iter()
            .map(|difference| (difference.what, difference.a, difference.b))
            .collect();
        let text_of_a = |what: &str| {
            let found = texts.iter().find(|(name, ..)| name == what);
            found.map(|(_, text, _)| text.as_str())
        };
        assert_eq!(text_of_a("switched write cache"), Some("none"));
        assert_eq!(text_of_a("filesystem"), Some("none"));
        assert_eq!(text_of_a("scheduler"), Some("unknown"));
        assert_eq!(text_of_a("kernel"), None);
    }

    #[test]
    fn conditions_of_a_target_are_not_those_of_another_one() {
        let mut record = fixture::record();
        record.targets.push(record.targets[0].clone());
        let mut switched = record.measurements[0].clone();
        switched.data.target = 1;
        switched.data.workload.write_cache = Some(WriteCache::WriteThrough);
        record.measurements.push(switched);
        let texts = [0, 1].map(|target| {
            conditions_of_target(&record, target)
                .into_iter()
                .find(|(name, _)| *name == "switched write cache")
                .unwrap()
                .1
        });
        assert_eq!(texts, ["", "write through"]);
    }

    #[test]
    fn runs_of_a_side_that_differ_are_listed_up_to_three() {
        let values = |count: usize| -> BTreeSet<String> {
            (0..count).map(|number| format!("v{number}")).collect()
        };
        assert_eq!(values_text(&values(2), Absence::Unknown), "v0 / v1");
        assert_eq!(
            values_text(&values(5), Absence::Unknown),
            "v0 / v1 / v2 / 2 more"
        );
    }
}
