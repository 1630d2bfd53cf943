//! Collects the figures of a record, one table after the other, and makes the keys that several
//! parts of a record share.

use super::field::CatalogueRow;
use super::key::{Figure, Key, Labels, Part};
use super::tables::{LATENCY, LATENCY_INTENDED, OPERATION, OPERATION_COUNTS};
use crate::record::Record;
use crate::row::{LatencySummary, OpRow};
use crate::surface::SurfaceRecord;
use std::borrow::Cow;

/// Figures in the order of the record. Each part of it adds its own.
#[derive(Default)]
pub struct FigureList<'r> {
    pub(super) figures: Vec<Figure<'r>>,
    /// Index of the result whose figures are added; `None` of those of workloads.
    pub(super) result: Option<usize>,
    /// The number of tables that were added: figures of one table belong together.
    group: usize,
}

impl<'r> FigureList<'r> {
    /// Adds the figures of a table that a part of the record holds.
    pub(crate) fn table<T>(&mut self, key: &Key<'r>, table: &'static [CatalogueRow<T>], part: &T) {
        self.group += 1;
        self.add_to_group(key, table, part);
    }

    /// Adds the figures of another table to those of the one before.
    fn add_to_group<T>(&mut self, key: &Key<'r>, table: &'static [CatalogueRow<T>], part: &T) {
        for row in table {
            let Some(known) = (row.value)(part) else {
                continue;
            };
            let unit = match row.metric.unit {
                "" => key.unit,
                own => own,
            };
            self.figures.push(Figure {
                key: Key {
                    result: self.result,
                    ..key.clone()
                },
                metric: &row.metric,
                value: known.value,
                half_width_95: known.half_width_95,
                n: known.n.or(key.n),
                unit,
                group: self.group,
            });
        }
    }

    /// Adds the figures of one kind of operation.
    pub(crate) fn operation(&mut self, key: Key<'r>, op: OpRow<'_>) {
        self.table(&key, OPERATION_COUNTS, op.data);
        self.add_to_group(&key, OPERATION, op.figures);
        if op.data.count > 0 {
            let timed = key.sample_count(op.data.count);
            self.table(&timed, LATENCY, &op.figures.latency);
            if let Some(intended) = &op.figures.latency_intended {
                self.table(&timed, LATENCY_INTENDED, intended);
            }
        } else if op.figures.latency.max > 0 {
            // Nothing was answered: the wait is all that is known.
            self.table(&key, longest_latency(), &op.figures.latency);
        }
    }
}

/// The longest latency alone: the last row of its table.
fn longest_latency() -> &'static [CatalogueRow<LatencySummary>] {
    &LATENCY[LATENCY.len() - 1..]
}

/// The labels of a target.
pub(crate) fn target_labels(record: &Record, target: usize) -> Labels {
    let (mut path, mut serial) = (String::new(), None);
    if let Some(identity) = record.targets.get(target) {
        path.clone_from(&identity.path);
        if let Some(disk) = identity.disks().next() {
            serial = disk.serial.clone();
        }
    }
    vec![("target", path), ("serial", serial.unwrap_or_default())]
}

/// The key of a part of a survey.
pub(crate) fn survey_key<'r>(
    survey: &'r SurfaceRecord,
    subject: impl Into<Cow<'r, str>>,
) -> Key<'r> {
    Key::new(Part::Other, subject)
        .target(survey.data.target)
        .op(survey.data.survey.operation.as_str())
}
