//! The one iteration over the figures of a record: which table belongs to which part of it, and the
//! keys of the parts.

use super::field::CatalogueRow;
use super::key::{Figure, Key, Labels, Metric, Part};
use super::names::unit_of;
use super::tables::*;
use crate::accept::AcceptRecord;
use crate::digits::to_a_percent;
use crate::estimate::Estimate;
use crate::layers::LayersRecord;
use crate::observed::ObservedRecord;
use crate::op::OpKind;
use crate::ping::PingFigures;
use crate::postgres::PostgresRecord;
use crate::rate::LoadRecord;
use crate::rays::RaysRecord;
use crate::record::{Expectation, FilesRecord, Record, TaskResult};
use crate::row::{OpRow, Row};
use crate::surface::SurfaceRecord;
use crate::sustain::SustainRecord;
use crate::sweep::{CellState, SweepMatrix};
use crate::verdict::UseGrade;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// All figures except single points, in the order of the record.
pub fn figures(record: &Record) -> Vec<Figure<'_>> {
    let mut walk = Walk::default();
    walk.workloads(record);
    for result in &record.results {
        walk.result(record, result);
    }
    for expectation in &record.expectations {
        walk.expectation(expectation);
    }
    for grade in record.verdict.iter().flat_map(|verdict| &verdict.grades) {
        walk.grade(record, grade);
    }
    walk.health(record);
    walk.figures
}

/// Single points: requests of pings, then points of curves, accesses, scans, and of workloads over
/// time.
pub fn points(record: &Record) -> Vec<Figure<'_>> {
    let mut walk = Walk::default();
    for m in &record.measurements {
        if let Some(ping) = &m.figures.ping {
            walk.ping(m, ping);
        }
    }
    walk.positions(record);
    for (index, m) in record.measurements.iter().enumerate() {
        for (kind, op) in m.headline_ops() {
            for cell in m.cells_over_time(op) {
                let key = workload_key(index, m).op(kind.as_str()).time(cell.middle_s);
                walk.table(&key, CELL, &cell);
            }
        }
    }
    walk.figures
}

/// The figure of a part of a survey, or of a search, that a threshold names with this word.
pub fn part_figure<'r>(record: &'r Record, part: Part, threshold: &str) -> Option<Figure<'r>> {
    let mut walk = Walk::default();
    if let Some(surface) = record.surface() {
        walk.surface(surface, Labels::new());
    }
    if let Some(load) = record.load() {
        walk.load(record, load);
    }
    let mut figures = walk.figures.into_iter();
    figures.find(|figure| figure.key.part == part && figure.metric.threshold == threshold)
}

impl Metric {
    /// The figure of one kind of operation; `None` where it is unknown.
    pub fn of_operation(&self, op: OpRow<'_>) -> Option<Estimate> {
        let mut walk = Walk::default();
        walk.operation(Key::default(), op);
        let own = walk.figures.iter().find(|figure| figure.metric == self)?;
        Some(own.estimate())
    }
}

/// The labels of a target.
fn target_labels(record: &Record, target: usize) -> Labels {
    let (mut path, mut serial) = (String::new(), None);
    if let Some(identity) = record.targets.get(target) {
        path.clone_from(&identity.path);
        if let Some(disk) = identity.disks().next() {
            serial = disk.serial.clone();
        }
    }
    vec![("target", path), ("serial", serial.unwrap_or_default())]
}

fn workload_key(index: usize, m: &Row) -> Key<'_> {
    Key {
        measurement: Some(index),
        together_with: &m.figures.together_with,
        ..Key::of(Part::Workload, m.data.workload.name.as_str()).target(m.data.target)
    }
}

#[derive(Default)]
struct Walk<'r> {
    figures: Vec<Figure<'r>>,
    group: usize,
}

impl<'r> Walk<'r> {
    /// Adds the figures of a table that a part of the record holds.
    fn table<T>(&mut self, key: &Key<'r>, table: &'static [CatalogueRow<T>], part: &T) {
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
                key: key.clone(),
                metric: &row.metric,
                value: known.value,
                half_width_95: known.half_width_95,
                n: known.n.or(key.n),
                unit,
                group: self.group,
            });
        }
    }

    fn workloads(&mut self, record: &'r Record) {
        let mut seen: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        for (index, m) in record.measurements.iter().enumerate() {
            let mut whole = workload_key(index, m);
            let count = seen
                .entry((m.data.target, &m.data.workload.name))
                .or_insert(0);
            *count += 1;
            // Labels tell workloads of the same name apart.
            let name = match *count {
                1 => m.data.workload.name.clone(),
                count => format!("{} ({count})", m.data.workload.name),
            };
            whole.labels = target_labels(record, m.data.target);
            whole.labels.push(("workload", name));
            let together = m.figures.together_with.join("; ");
            whole.labels.push(("together_with", together));
            self.table(&whole, WORKLOAD, m);
            for (kind, op) in m.ops() {
                self.operation(whole.clone().op(kind.as_str()), op);
            }
            self.phases(&whole, m);
            if let Some(limited) = &m.figures.limited_by {
                let key = whole.label("limit", limited.limit.as_str());
                self.table(&key, LIMITED_BY, limited);
            }
        }
    }

    fn operation(&mut self, key: Key<'r>, op: OpRow<'_>) {
        self.table(&key, OPERATION_COUNTS, op.data);
        self.add_to_group(&key, OPERATION, op.figures);
        if op.data.count > 0 {
            let timed = key.sample_count(op.data.count);
            self.table(&timed, LATENCY, &op.figures.latency);
            if let Some(intended) = &op.figures.latency_intended {
                self.table(&timed, LATENCY_INTENDED, intended);
            }
        }
    }

    /// The figures of what came of a task beyond its workloads.
    fn result(&mut self, record: &'r Record, result: &'r TaskResult) {
        match result {
            TaskResult::Survey(surface) => {
                self.surface(surface, target_labels(record, surface.data.target));
            }
            TaskResult::Files(files) => self.file_steps(files),
            TaskResult::Load(load) => self.load(record, load),
            TaskResult::Sustain(found) => self.sustained(record, found),
            TaskResult::Accept(test) => self.accepted(record, test),
            TaskResult::Rays(rays) => self.rays(record, rays),
            TaskResult::Layers(layers) => self.layers(layers),
            TaskResult::Observed(observed) => self.observed(observed),
            TaskResult::Sweep(sweep) => {
                for matrix in &sweep.matrices {
                    self.matrix(matrix);
                }
            }
            TaskResult::Inserts(server) => self.server(server),
            // Its depths are workloads, whose figures stand with the others.
            TaskResult::Depth(_) => {}
            // They say what the run was a part of.
            TaskResult::Compared(_) | TaskResult::Together(_) => {}
        }
    }

    fn file_steps(&mut self, files: &'r FilesRecord) {
        for step in &files.steps {
            let planned = &step.data.step;
            let key = Key::of(Part::FileStep, planned.name()).op(planned.operation.as_str());
            self.table(&key, FILE_STEP, step);
            self.operation(key, step.op());
        }
    }

    fn layers(&mut self, layers: &'r LayersRecord) {
        for cost in &layers.costs {
            let key = Key::of(Part::Other, cost.workload.as_str()).op("read");
            self.table(&key.target(cost.target), LAYER, cost);
        }
    }

    fn observed(&mut self, observed: &'r ObservedRecord) {
        for device in &observed.devices {
            let name = format!("observed-{}", device.name);
            let key = Key::of(Part::Observed, name).target(device.target);
            self.table(&key, OBSERVED, device);
            for (kind, op) in &device.ops {
                self.table(&key.clone().op(kind.as_str()), OBSERVED_OPERATION, op);
            }
        }
    }

    /// The INSERTs of a temporary server, and the settings that it tried.
    fn server(&mut self, server: &'r PostgresRecord) {
        for load in &server.loads {
            let name = format!("postgres-{}", load.data.load.name);
            self.table(&Key::of(Part::Other, name).op("insert"), SERVER_LOAD, load);
        }
        for trial in &server.trials {
            let name = format!("postgres-tried-{}", trial.data.trial.setting);
            let key = Key::of(Part::Other, name).sample_count(trial.data.pairs.len() as u64);
            self.table(&key, TRIAL, trial);
        }
    }

    fn health(&mut self, record: &'r Record) {
        for disk in &record.health {
            let mut key = Key::of(Part::Other, "");
            key.labels = vec![
                ("disk", disk.disk.clone()),
                ("serial", disk.serial.clone().unwrap_or_default()),
                ("model", disk.model.clone().unwrap_or_default()),
            ];
            self.table(&key, HEALTH, disk);
        }
    }

    /// The figures of each phase, at the time of its start.
    fn phases(&mut self, whole: &Key<'r>, m: &Row) {
        for phase in &m.figures.phases {
            let start_s = (phase.start_ns as f64 - m.data.start_ns as f64) / 1e9;
            let mut key = whole.clone().time(start_s);
            key.phase = Some(phase.name);
            self.table(&key, PHASE, phase);
            for (kind, op) in &phase.ops {
                self.table(&key.clone().op(kind.as_str()), PHASE_OPERATION, op);
            }
        }
    }

    fn surface(&mut self, s: &'r SurfaceRecord, labels: Labels) {
        let whole = Key {
            labels,
            ..surface_key(s, "")
        };
        if let Some(rate) = &s.figures.rate {
            let key = whole.clone().part(Part::Curve, "curve");
            self.table(&key, CURVE, rate);
            self.table(&key, CURVE_COST, s);
        }
        if let Some(burst) = &s.data.burst {
            let key = whole.clone().part(Part::Burst, "burst");
            self.table(&key, BURST, burst);
        }
        for (seek, summary) in &s.figures.seeks {
            let key = whole.clone().part(Part::Access(*seek), seek.subject());
            self.table(&key.label("seek", seek.as_str()), ACCESS, summary);
        }
        for stroke in &s.figures.short_strokes {
            let percent = stroke.percent.to_string();
            let name = format!("short-stroke-{percent}");
            let key = whole.clone().part(Part::Other, name);
            self.table(&key.label("percent", &percent), SHORT_STROKE, stroke);
        }
        if let Some(scan) = &s.data.scan {
            self.table(&whole.part(Part::Other, "scan"), SCAN, scan);
        }
    }

    /// The rate that keeps a promise, on the first target.
    fn load(&mut self, record: &Record, load: &'r LoadRecord) {
        let mut key = Key::of(Part::Load, "load");
        key.labels = target_labels(record, 0);
        self.table(&key, LOAD, &load.figures);
    }

    /// What a load that goes on and on found, on the first target.
    fn sustained(&mut self, record: &Record, found: &'r SustainRecord) {
        let mut key = Key::of(Part::Other, found.workload.as_str());
        key.labels = target_labels(record, 0);
        self.table(&key, SUSTAINED, found);
        if let Some(bucket) = &found.bucket {
            key.unit = &bucket.base.unit;
            self.table(&key, BUCKET, bucket);
        }
    }

    /// What an acceptance test found, and its rates by position.
    fn accepted(&mut self, record: &Record, test: &'r AcceptRecord) {
        let mut key = Key::of(Part::Other, "accept").target(test.data.target);
        key.labels = target_labels(record, test.data.target);
        self.table(&key, ACCEPTED, test);
        let rates = [
            (OpKind::Write, &test.figures.write_rate),
            (OpKind::Read, &test.figures.read_rate),
        ];
        for (kind, rate) in rates {
            if let Some(rate) = rate {
                self.table(&key.clone().op(kind.as_str()), ACCEPTED_RATE, rate);
            }
        }
    }

    /// The rates of several shares of reads on the first target, and their boundary.
    fn rays(&mut self, record: &Record, rays: &'r RaysRecord) {
        for ray in &rays.figures.rays {
            let percent = to_a_percent(ray.read_share * 100.0);
            let mut key = Key::of(Part::Other, format!("load-reads-{percent}"));
            key.labels = target_labels(record, 0);
            self.table(&key.label("reads_percent", &percent), LOAD, &ray.load);
        }
        if let Some(boundary) = &rays.figures.boundary {
            self.table(&Key::of(Part::Other, "boundary"), BOUNDARY, boundary);
        }
    }

    /// What follows from the matrix of a sweep, and what its cost model predicts.
    fn matrix(&mut self, matrix: &'r SweepMatrix) {
        let name = format!("sweep-{}", matrix.operation.as_str());
        self.table(&Key::of(Part::Other, name), MATRIX, matrix);
        for cell in &matrix.cells {
            if cell.state == CellState::Predicted {
                let name = matrix.operation.cell_name(cell.block_bytes, cell.depth);
                self.table(&Key::of(Part::Other, name), PREDICTED_CELL, cell);
            }
        }
    }

    /// What was promised, and the result.
    fn expectation(&mut self, expectation: &'r Expectation) {
        let promised_unit = expectation
            .promise
            .as_ref()
            .map(|promise| promise.unit.as_str());
        let mut key = Key::of(Part::Other, expectation.expression.as_str());
        key.labels = vec![("condition", expectation.expression.clone())];
        key.unit = promised_unit
            .or(unit_of(&expectation.expression))
            .unwrap_or("1");
        if let Some(promise) = &expectation.promise {
            self.table(&key.clone().label("name", &promise.name), PROMISE, promise);
        }
        self.table(&key, EXPECTATION, expectation);
    }

    fn grade(&mut self, record: &'r Record, grade: &'r UseGrade) {
        let m = record.measurements.get(grade.measurement);
        let mut key = match m {
            Some(m) => workload_key(grade.measurement, m),
            None => Key::of(Part::Other, ""),
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
    fn ping(&mut self, m: &'r Row, ping: &'r PingFigures) {
        let workload = m.data.workload.name.as_str();
        for point in &ping.after_idle {
            let name = format!("{workload}-after-{}", idle_word(point.idle_ns));
            let key = Key::of(Part::Other, name)
                .target(m.data.target)
                .sample_count(point.mean.n);
            self.table(&key, AFTER_IDLE, point);
        }
        for request in &m.data.requests {
            let key = Key::of(Part::Other, workload)
                .target(m.data.target)
                .op(request.op.as_str());
            let sent_s = (request.at_ns as f64 - m.data.start_ns as f64) / 1e9;
            let sent = key.time(sent_s).offset(request.offset_bytes);
            self.table(&sent, REQUEST, request);
        }
    }

    /// Points of the curve, of accesses and of a scan.
    fn positions(&mut self, record: &'r Record) {
        let Some(surface) = record.surface() else {
            return;
        };
        let curve = surface_key(surface, "curve");
        for point in record.curve() {
            let key = curve.clone().offset(point.offset_bytes);
            self.table(&key, CURVE_POINT, point);
        }
        for point in record.curve() {
            let key = curve.clone().offset(point.offset_bytes);
            self.table(&key, CURVE_POINT_ERRORS, point);
        }
        for point in record.access() {
            let mut key = surface_key(surface, point.seek.subject()).offset(point.offset_bytes);
            key.distance_bytes = Some(point.distance_bytes);
            self.table(&key, ACCESS_POINT, point);
        }
        let Some(scan) = &surface.data.scan else {
            return;
        };
        let place = surface_key(surface, "scan");
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

/// The key of a part of a survey that has points.
fn surface_key<'r>(surface: &'r SurfaceRecord, subject: impl Into<Cow<'r, str>>) -> Key<'r> {
    Key::of(Part::Other, subject)
        .target(surface.data.target)
        .op(surface.data.survey.operation.as_str())
}

/// `20ms`, `5s`
fn idle_word(ns: u64) -> String {
    match ns {
        0 => "0".to_owned(),
        ns if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        ns => format!("{}ms", ns as f64 / 1e6),
    }
}
