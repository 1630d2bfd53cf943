//! Lists the figures of a record, for all of its readers: those of its workloads, of its results,
//! which add their own, and of what was judged.

use super::key::{Figure, Key, Metric, Part};
use super::list::{FigureList, survey_key, target_labels};
use super::names::unit_of;
use super::tables::*;
use crate::estimate::Estimate;
use crate::expectation::Expectation;
use crate::ping::PingFigures;
use crate::record::Record;
use crate::row::{OpRow, Row};
use crate::verdict::UseGrade;
use std::collections::BTreeMap;

/// All figures except single points, in the order of the record.
pub fn figures(record: &Record) -> Vec<Figure<'_>> {
    let mut list = FigureList::default();
    list.workloads(record);
    list.results(record);
    for expectation in &record.expectations {
        list.expectation(expectation);
    }
    for grade in record.verdict.iter().flat_map(|verdict| &verdict.grades) {
        list.grade(record, grade);
    }
    list.health(record);
    list.figures
}

/// Single points: requests of pings, then points of curves, accesses, scans, and of workloads over
/// time.
pub fn points(record: &Record) -> Vec<Figure<'_>> {
    let mut list = FigureList::default();
    for row in &record.measurements {
        if let Some(ping) = &row.figures.ping {
            list.ping(row, ping);
        }
    }
    list.positions(record);
    for (index, row) in record.measurements.iter().enumerate() {
        for (kind, op) in row.headline_ops() {
            for cell in row.cells_over_time(op) {
                let key = workload_key(index, row)
                    .op(kind.as_str())
                    .time(cell.middle_s);
                list.table(&key, CELL, &cell);
            }
        }
    }
    list.figures
}

/// The figure of a part of a survey, or of a search, that a threshold names with this word.
pub fn part_figure<'r>(record: &'r Record, part: Part, threshold: &str) -> Option<Figure<'r>> {
    let mut list = FigureList::default();
    list.results(record);
    let mut figures = list.figures.into_iter();
    figures.find(|figure| figure.key.part == part && figure.metric.threshold == threshold)
}

impl Metric {
    /// The figure of one kind of operation; `None` where it is unknown.
    pub fn of_operation(&self, op: OpRow<'_>) -> Option<Estimate> {
        let mut list = FigureList::default();
        list.operation(Key::default(), op);
        let mut figures = list.figures.iter();
        Some(figures.find(|figure| figure.metric == self)?.estimate())
    }
}

/// The key of the figures of a workload; `index` is that of its row in the record.
fn workload_key(index: usize, row: &Row) -> Key<'_> {
    Key {
        measurement: Some(index),
        together_with: &row.figures.together_with,
        ..Key::new(Part::Workload, row.data.workload.name.as_str()).target(row.data.target)
    }
}

impl<'r> FigureList<'r> {
    /// The figures of each workload: of all of it, of each kind of operation, of its phases, and of
    /// what limited it.
    fn workloads(&mut self, record: &'r Record) {
        let mut rows_by_name: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        for (index, row) in record.measurements.iter().enumerate() {
            let mut whole = workload_key(index, row);
            let count = rows_by_name
                .entry((row.data.target, &row.data.workload.name))
                .or_insert(0);
            *count += 1;
            // Labels are unique, also those of workloads of the same name.
            let name = match *count {
                1 => row.data.workload.name.clone(),
                count => format!("{} ({count})", row.data.workload.name),
            };
            whole.labels = target_labels(record, row.data.target);
            whole.labels.push(("workload", name));
            let together = row.figures.together_with.join("; ");
            whole.labels.push(("together_with", together));
            self.table(&whole, WORKLOAD, row);
            for (kind, op) in row.ops() {
                self.operation(whole.clone().op(kind.as_str()), op);
            }
            self.phases(&whole, row);
            if let Some(limited) = &row.figures.limited_by {
                let key = whole.label("limit", limited.limit.as_str());
                self.table(&key, LIMITED_BY, limited);
            }
        }
    }

    /// The figures of what came of each task beyond its workloads.
    fn results(&mut self, record: &'r Record) {
        for (index, result) in record.results.iter().enumerate() {
            self.result = Some(index);
            result.inner().add_figures(record, self);
        }
        self.result = None;
    }

    /// What each disk counts about itself.
    fn health(&mut self, record: &'r Record) {
        for disk in &record.health {
            let mut key = Key::new(Part::Other, "");
            key.labels = vec![
                ("disk", disk.disk.clone()),
                ("serial", disk.serial.clone().unwrap_or_default()),
                ("model", disk.model.clone().unwrap_or_default()),
            ];
            self.table(&key, HEALTH, disk);
        }
    }

    /// The figures of each phase, at the time of its start.
    fn phases(&mut self, whole: &Key<'r>, row: &Row) {
        for phase in &row.figures.phases {
            let start_s = (phase.start_ns as f64 - row.data.start_ns as f64) / 1e9;
            let mut key = whole.clone().time(start_s);
            key.phase = Some(phase.name);
            self.table(&key, PHASE, phase);
            for (kind, op) in &phase.ops {
                self.table(&key.clone().op(kind.as_str()), PHASE_OPERATION, op);
            }
        }
    }

    /// Adds the promised value of an expectation, and the result.
    fn expectation(&mut self, expectation: &'r Expectation) {
        let promised_unit = expectation
            .promise
            .as_ref()
            .map(|promise| promise.unit.as_str());
        let mut key = Key::new(Part::Other, expectation.expression.as_str());
        key.labels = vec![("condition", expectation.expression.clone())];
        key.unit = promised_unit
            .or(unit_of(&expectation.expression))
            .unwrap_or("1");
        if let Some(promise) = &expectation.promise {
            self.table(&key.clone().label("name", &promise.name), PROMISE, promise);
        }
        self.table(&key, EXPECTATION, expectation);
    }

    /// The figure that decided the grade of a use, and the thresholds that it was graded by.
    fn grade(&mut self, record: &'r Record, grade: &'r UseGrade) {
        let mut key = match record.measurements.get(grade.measurement) {
            Some(row) => workload_key(grade.measurement, row),
            None => Key::new(Part::Other, ""),
        };
        key.part = Part::Other;
        key.unit = &grade.figure.unit;
        key.labels = target_labels(record, key.target);
        key.labels.push(("use", grade.name.clone()));
        self.table(&key, GRADE, grade);
        key.labels.push(("source", grade.thresholds.source.clone()));
        for (name, table) in [("limited", LIMITED_FROM), ("good", GOOD_FROM)] {
            let threshold_key = key.clone().label("grade", name);
            self.table(&threshold_key, table, &grade.thresholds);
        }
    }

    /// The latencies after each idle time, and single requests.
    fn ping(&mut self, row: &'r Row, ping: &'r PingFigures) {
        let workload = row.data.workload.name.as_str();
        for point in &ping.after_idle {
            let name = format!("{workload}-after-{}", idle_word(point.idle_ns));
            let key = Key::new(Part::Other, name)
                .target(row.data.target)
                .sample_count(point.mean.n);
            self.table(&key, AFTER_IDLE, point);
        }
        for request in &row.data.requests {
            let key = Key::new(Part::Other, workload)
                .target(row.data.target)
                .op(request.op.as_str());
            let sent_s = (request.at_ns as f64 - row.data.start_ns as f64) / 1e9;
            let sent = key.time(sent_s).offset(request.offset_bytes);
            self.table(&sent, REQUEST, request);
        }
    }

    /// Points of the curve, of accesses and of a scan.
    fn positions(&mut self, record: &'r Record) {
        let Some(surface) = record.surface() else {
            return;
        };
        let curve = survey_key(surface, "curve");
        for point in record.curve() {
            let key = curve.clone().offset(point.offset_bytes);
            self.table(&key, CURVE_POINT, point);
        }
        for point in record.curve() {
            let key = curve.clone().offset(point.offset_bytes);
            self.table(&key, CURVE_POINT_ERRORS, point);
        }
        for point in record.access() {
            let mut key = survey_key(surface, point.seek.subject()).offset(point.offset_bytes);
            key.distance_bytes = Some(point.distance_bytes);
            self.table(&key, ACCESS_POINT, point);
        }
        let Some(scan) = &surface.data.scan else {
            return;
        };
        let place = survey_key(surface, "scan");
        for cell in &scan.map {
            let key = place.clone().offset(cell.offset_bytes);
            self.table(&key, SCAN_CELL, cell);
        }
        for block in &scan.slow {
            let key = place.clone().offset(block.offset_bytes);
            self.table(&key, SLOW_BLOCK, block);
        }
        for range in &scan.unreadable {
            let key = place.clone().offset(range.offset_bytes);
            self.table(&key, UNREADABLE, range);
        }
    }
}

/// The word for an idle time in the name of its figure: `20ms`, `5s`.
fn idle_word(ns: u64) -> String {
    match ns {
        0 => "0".to_owned(),
        ns if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        ns => format!("{}ms", ns as f64 / 1e6),
    }
}
