//! Decides which rows are compared with each other. Disks of one kind form a group: kind of target,
//! rotation, model, size. Within a group, each metric belongs to the rows that measured it under
//! the same conditions. Neither uses a hash of the plan: seeds, paths and free space differ on
//! every host.

use super::launch::Launch;
use super::machines::separate_machines;
use super::row::{FindingOfRow, Row, RowScope, RunOfRow, Value};
use super::spread::Sample;
use crate::compare::{
    PartOfRun, RepresentativeFigure, conditions_of_target, representative_figures,
};
use crate::words::uncapitalised;
use diskproof_model::accept::AcceptVerdict;
use diskproof_model::comparison::{Direction, Figure, Reason};
use diskproof_model::files::FileStep;
use diskproof_model::finding::Finding;
use diskproof_model::fleet::{FleetMetric, FleetReason, FleetRecord, FleetRun};
use diskproof_model::histogram::StoredLatencies;
use diskproof_model::measurement::Hang;
use diskproof_model::op::OpKind;
use diskproof_model::record::Record;
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{counted, format_duration};
use std::collections::{BTreeMap, BTreeSet};

/// Disks are of one kind if their sizes differ by at most this share: disks that are sold as one
/// size differ by less. Chosen, not measured.
const SIZE_TOLERANCE: f64 = 0.01;
/// One metric is compared under at most this many sets of conditions. Rows beyond them each have a
/// plan of their own, which is no fleet.
const CONDITIONS_MAX: usize = 50;

/// Codes of faults that mean that the disk failed, as `PartOfRun::faults` gives them.
const FAILURES: [&str; 2] = ["io-errors", "hung"];

/// All rows, and the groups that they form.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub kinds: Vec<Kind>,
    pub rows: Vec<Row>,
    /// Records whose workloads define the conditions of metrics, reduced to their figures.
    pub examples: Vec<Record>,
    /// The index in `rows` of each key.
    row_indices: BTreeMap<RowKey, usize>,
    likeness: Likeness,
}

/// The rule by which targets are compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Likeness {
    /// Disks of one kind.
    #[default]
    SameKind,
    /// The mounts of one storage, whatever path and part of it each host has.
    SameStorage,
    /// Any targets that the user compares.
    Everything,
}

/// The identity of a row. Sides that the user compares are identified by their names alone: their
/// runs are repetitions, wherever they ran.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
struct RowKey {
    host: String,
    rank: Option<u32>,
    target: String,
    serials: Vec<String>,
    kind: usize,
}

/// Disks of one kind.
#[derive(Debug)]
pub(super) struct Kind {
    pub kind: TargetKind,
    pub rotational: Option<bool>,
    pub model: String,
    pub disk_bytes: u64,
    pub metrics: Vec<Metric>,
}

/// A figure, and the rows that measured it under the same conditions.
#[derive(Debug)]
pub(super) struct Metric {
    pub part: PartOfRun,
    pub metric: String,
    pub subject: String,
    pub figure: Figure,
    pub better: Direction,
    pub unit: String,
    /// Index of the record that defines its conditions; `None`: it comes from a reference that
    /// keeps no examples.
    pub example: Option<usize>,
    /// Index of the target in that record.
    pub target: usize,
}

/// The identity of a row that has all targets of a host.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RowOfHost {
    host: String,
    rank: Option<u32>,
    scope: RowScope,
    kind: usize,
}

impl Groups {
    /// Groups without a row.
    pub(super) fn new(likeness: Likeness) -> Self {
        Self {
            likeness,
            ..Self::default()
        }
    }

    /// Takes the kinds of a saved fleet, without its rows.
    pub(super) fn take_kinds(&mut self, reference: &FleetRecord) {
        for group in &reference.groups {
            let mut metrics = Vec::new();
            for metric in &group.metrics {
                metrics.push(metric_of_reference(metric, &reference.examples));
            }
            self.kinds.push(Kind {
                kind: group.kind,
                rotational: group.rotational,
                model: group.model.clone(),
                disk_bytes: group.disk_bytes,
                metrics,
            });
        }
        self.examples.clone_from(&reference.examples);
    }

    /// Makes one row of the runs of several launches on one machine, and several rows of the
    /// machines that share a name.
    pub(super) fn join_launches(&mut self) {
        let mut rows_by_names: BTreeMap<RowKey, Vec<Row>> = BTreeMap::new();
        for row in std::mem::take(&mut self.rows) {
            rows_by_names
                .entry(row.key_without_rank())
                .or_default()
                .push(row);
        }
        for rows in rows_by_names.into_values() {
            self.rows.extend(separate_machines(rows));
        }
    }

    /// Makes one row of all targets of a host's rank, and averages their figures. The disks of such
    /// rows are dropped: they lie on one storage, and identify nothing.
    pub(super) fn join_targets(&mut self) {
        let mut joined: Vec<Row> = Vec::new();
        let mut indices: BTreeMap<RowOfHost, usize> = BTreeMap::new();
        for row in std::mem::take(&mut self.rows) {
            let key = RowOfHost {
                host: row.host.clone(),
                rank: row.rank,
                scope: row.scope.clone(),
                kind: row.kind,
            };
            match indices.get(&key) {
                Some(index) => joined[*index].runs.extend(row.runs),
                None => {
                    indices.insert(key, joined.len());
                    joined.push(Row {
                        disks: Vec::new(),
                        serials: Vec::new(),
                        ..row
                    });
                }
            }
        }
        self.rows = joined;
    }

    /// Adds each target of a record that has a figure, was scanned, or failed, as a row of this
    /// name. Returns these targets.
    pub(super) fn add(&mut self, host: &str, record: &Record) -> Vec<usize> {
        let figures = representative_figures(record);
        let mut is_example = false;
        let mut added = Vec::new();
        for (index, target) in record.targets.iter().enumerate() {
            let figures_of_target: Vec<&RepresentativeFigure> = figures
                .iter()
                .filter(|figure| figure.target == index)
                .collect();
            let findings = findings_of_target(record, index);
            let has_scanned = is_scanned(record, index);
            let has_failed =
                !is_rejected(record) && findings.iter().any(|finding| finding.is_failure);
            if figures_of_target.is_empty() && !has_scanned && !has_failed {
                continue;
            }
            added.push(index);
            let kind = self.kind_of(target);
            let mut values = Vec::new();
            for figure in figures_of_target {
                let matched = self.metric_of(kind, figure, record, &mut is_example);
                values.push(value(figure, matched.index, matched.symptoms, record));
            }
            let run = RunOfRow {
                run: FleetRun {
                    run_id: record.run_id.clone(),
                    started: record.started.clone(),
                    partial: record.partial,
                },
                launch: Launch::of_record(record, target),
                values,
                has_scanned,
                facts: conditions_of_target(record, index),
                findings,
                silence: silence_of_target(record, index),
            };
            self.row_of(host, record, target, kind).runs.push(run);
        }
        if is_example {
            self.examples.push(record.clone().figures_only());
        }
        added
    }

    /// The index of the target's kind, which is added where it is new.
    fn kind_of(&mut self, target: &TargetIdentity) -> usize {
        let (rotational, model, disk_bytes) = match self.likeness {
            Likeness::SameKind => {
                let sizes = target.disks().map(|disk| disk.size_bytes);
                (target.rotational(), model_text(target), sizes.sum())
            }
            Likeness::SameStorage | Likeness::Everything => (None, String::new(), 0),
        };
        let known = self.kinds.iter().position(|kind| {
            kind.kind == target.kind
                && (self.likeness == Likeness::SameStorage
                    || may_be_alike(kind.rotational, rotational)
                        && kind.model == model
                        && are_sizes_alike(kind.disk_bytes, disk_bytes))
        });
        if let Some(index) = known {
            return index;
        }
        self.kinds.push(Kind {
            kind: target.kind,
            rotational,
            model,
            disk_bytes,
            metrics: Vec::new(),
        });
        self.kinds.len() - 1
    }

    /// Finds the metric with the conditions of a figure. A metric is added where none has these
    /// conditions. `is_example` is then set: the caller keeps the record as the example of the new
    /// metric, whose index already points to it.
    fn metric_of(
        &mut self,
        kind: usize,
        figure: &RepresentativeFigure,
        record: &Record,
        is_example: &mut bool,
    ) -> MatchedMetric {
        let mut known_conditions = 0;
        for (index, metric) in self.kinds[kind].metrics.iter().enumerate() {
            if metric.part != figure.part || metric.metric != figure.metric {
                continue;
            }
            known_conditions += 1;
            // If the record has two targets of one kind, it is itself an example that is not kept
            // yet.
            let Some(example_index) = metric.example else {
                continue;
            };
            let example = self.examples.get(example_index).unwrap_or(record);
            let differences =
                figure
                    .part
                    .differences(record, figure.target, example, metric.target);
            if differences
                .iter()
                .all(|difference| figure.part.is_symptom(difference, record, example))
            {
                return MatchedMetric {
                    index: Some(index),
                    symptoms: differences,
                };
            }
        }
        if known_conditions >= CONDITIONS_MAX {
            return MatchedMetric {
                index: None,
                symptoms: Vec::new(),
            };
        }
        *is_example = true;
        let metrics = &mut self.kinds[kind].metrics;
        metrics.push(Metric {
            part: figure.part.clone(),
            metric: figure.metric.clone(),
            subject: figure.subject.clone(),
            figure: figure.figure,
            better: figure.better,
            unit: figure.unit.clone(),
            example: Some(self.examples.len()),
            target: figure.target,
        });
        MatchedMetric {
            index: Some(metrics.len() - 1),
            symptoms: Vec::new(),
        }
    }

    /// The row of a target. The name of a host does not identify it: pods and clones share names.
    fn row_of(
        &mut self,
        host: &str,
        record: &Record,
        target: &TargetIdentity,
        kind: usize,
    ) -> &mut Row {
        let mut key = RowKey {
            host: host.to_owned(),
            kind,
            ..RowKey::default()
        };
        if self.likeness != Likeness::Everything || record.targets.len() > 1 {
            key.target.clone_from(&target.path);
        }
        if self.likeness != Likeness::Everything {
            key.rank = record.host.rank.map(|rank| rank.rank);
            key.serials = target
                .disks()
                .flat_map(|disk| disk.serial.clone())
                .collect();
        }
        let index = *self
            .row_indices
            .entry(key.clone())
            .or_insert(self.rows.len());
        if index == self.rows.len() {
            self.rows.push(Row {
                host: key.host,
                rank: key.rank,
                target: key.target,
                disks: target.disks().map(|disk| disk.name.clone()).collect(),
                serials: key.serials,
                kind,
                scope: RowScope::AllRuns,
                identity: None,
                runs: Vec::new(),
            });
        }
        &mut self.rows[index]
    }

    /// The rows of a kind, with their indices.
    pub(super) fn rows_of(&self, kind: usize) -> impl Iterator<Item = (usize, &Row)> {
        let rows = self.rows.iter().enumerate();
        rows.filter(move |(_, row)| row.kind == kind)
    }

    /// The samples of all rows of a kind, one column for each of its metrics.
    pub(super) fn samples_by_metric(&self, kind: usize) -> Vec<Vec<Sample>> {
        let mut columns = vec![Vec::new(); self.kinds[kind].metrics.len()];
        for (index, row) in self.rows_of(kind) {
            for (metric, column) in columns.iter_mut().enumerate() {
                column.extend(row.sample(index, metric));
            }
        }
        columns
    }

    /// The standard deviation of the runs of one row, over all rows of a kind that have several
    /// runs; `None` where none has.
    pub(super) fn deviation_between_runs(&self, kind: usize) -> Option<f64> {
        let (mut squares, mut freedom) = (0.0, 0);
        for (_, row) in self.rows_of(kind) {
            for metric in 0..self.kinds[kind].metrics.len() {
                let speeds: Vec<f64> = row
                    .faultless_values(metric)
                    .map(|value| value.log_speed)
                    .collect();
                if speeds.len() < 2 {
                    continue;
                }
                let mean = speeds.iter().sum::<f64>() / speeds.len() as f64;
                squares += speeds
                    .iter()
                    .map(|speed| (speed - mean).powi(2))
                    .sum::<f64>();
                freedom += speeds.len() - 1;
            }
        }
        if freedom == 0 {
            return None;
        }
        Some((squares / freedom as f64).sqrt())
    }
}

/// The metric that a figure belongs to.
struct MatchedMetric {
    /// Its index in the kind; `None` where the kind has too many conditions already.
    index: Option<usize>,
    /// The differences from its example that the disk caused.
    symptoms: Vec<Reason>,
}

impl Row {
    fn key_without_rank(&self) -> RowKey {
        RowKey {
            host: self.host.clone(),
            rank: None,
            target: self.target.clone(),
            serials: self.serials.clone(),
            kind: self.kind,
        }
    }

    /// The values of a metric without a fault, run by run.
    pub(super) fn faultless_values(&self, metric: usize) -> impl Iterator<Item = &Value> {
        let values = self.runs.iter().flat_map(|run| &run.values);
        values.filter(move |value| value.metric == Some(metric) && value.fault.is_none())
    }

    /// The mean of the runs in a metric, for the row with this index; `None` where no value can be
    /// judged. The errors of the runs are independent.
    pub(super) fn sample(&self, index: usize, metric: usize) -> Option<Sample> {
        let (mut count, mut speed_sum, mut error_squares) = (0.0, 0.0, 0.0);
        for value in self.faultless_values(metric) {
            count += 1.0;
            speed_sum += value.log_speed;
            error_squares += value.error.powi(2);
        }
        if count == 0.0 {
            return None;
        }
        Some(Sample {
            row: index,
            log_speed: speed_sum / count,
            error: error_squares.sqrt() / count,
        })
    }

    /// The machine of all its runs; `None` where the record of one does not have it, or has another
    /// one.
    pub(super) fn machine(&self) -> Option<String> {
        let machine = self.runs.first()?.launch.machine.clone()?;
        for run in &self.runs {
            if run.launch.machine.as_ref() != Some(&machine) {
                return None;
            }
        }
        Some(machine)
    }

    /// Returns `true` if all runs of the row ended before their plans did.
    pub(super) fn is_partial(&self) -> bool {
        self.runs.iter().all(|run| run.run.partial)
    }

    /// The reason why a disk counts as failed; `None` where it does not.
    pub(super) fn failure(&self) -> Option<Reason> {
        for run in &self.runs {
            for value in &run.values {
                if let Some(fault) = &value.fault
                    && FAILURES.contains(&fault.code.as_str())
                    && !run.is_only_a_warning(&fault.code)
                {
                    return Some(fault.clone());
                }
            }
            for finding in &run.findings {
                if finding.is_failure {
                    return Some(Reason {
                        code: finding.code.clone(),
                        why: uncapitalised(&finding.title),
                    });
                }
            }
        }
        self.runs.iter().find_map(|run| run.silence.clone())
    }

    /// The failures and warnings of its runs about the disk itself, each once, failures first.
    pub(super) fn troubles(&self) -> Vec<FleetReason> {
        let mut troubles: Vec<&FindingOfRow> = self
            .runs
            .iter()
            .flat_map(|run| &run.findings)
            .filter(|finding| finding.is_trouble)
            .collect();
        troubles.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let mut reasons: Vec<FleetReason> = Vec::new();
        for finding in troubles {
            if reasons.iter().all(|known| known.code != finding.code) {
                reasons.push(FleetReason {
                    code: finding.code.clone(),
                    text: uncapitalised(&finding.title),
                });
            }
        }
        reasons
    }

    /// Returns `true` if a run of it has a figure.
    pub(super) fn has_figures(&self) -> bool {
        self.runs.iter().any(|run| !run.values.is_empty())
    }
}

/// A metric as a saved fleet has it.
fn metric_of_reference(metric: &FleetMetric, examples: &[Record]) -> Metric {
    Metric {
        part: part_of_reference(metric, examples),
        metric: metric.metric.clone(),
        subject: metric.subject.clone(),
        figure: metric.figure,
        better: metric.better,
        unit: metric.unit.clone(),
        example: metric.example,
        target: metric.target,
    }
}

/// The part of a run that a saved metric is about. The document has no field for it: it follows
/// from the example, or from the figure.
fn part_of_reference(metric: &FleetMetric, examples: &[Record]) -> PartOfRun {
    let step: Option<FileStep> = metric
        .example
        .and_then(|index| examples.get(index)?.files())
        .and_then(|files| {
            let mut steps = files.steps.iter().map(|row| row.data.step);
            steps.find(|step| step.name() == metric.subject)
        });
    if let Some(step) = step {
        return PartOfRun::Step(step);
    }
    let example = metric.example.and_then(|index| examples.get(index));
    if let Some(load) = example.and_then(|example| load_of_subject(example, &metric.subject)) {
        return PartOfRun::Inserts(load);
    }
    match metric.figure {
        Figure::CurveAverage | Figure::CurveMin | Figure::CurveMax => PartOfRun::Curve,
        Figure::AccessTime => PartOfRun::Access,
        Figure::PromisedRate => PartOfRun::Search(metric.subject.clone()),
        Figure::Iops
        | Figure::Throughput
        | Figure::Mean
        | Figure::P50
        | Figure::P99
        | Figure::P99_9 => PartOfRun::Workload(metric.subject.clone()),
    }
}

/// The load of INSERTs that a subject is about; `None` where it is about anything else.
fn load_of_subject(example: &Record, subject: &str) -> Option<String> {
    let row = example.postgres()?.load_named(subject)?;
    Some(row.data.load.name.clone())
}

/// The value of one run, with the fault that makes it unfit for a comparison.
fn value(
    figure: &RepresentativeFigure,
    metric: Option<usize>,
    symptoms: Vec<Reason>,
    record: &Record,
) -> Value {
    let log_speed = match figure.better {
        Direction::Higher => figure.value.ln(),
        Direction::Lower => -figure.value.ln(),
    };
    let faults = figure.part.faults(record, figure.target);
    let fault = match (faults.into_iter().next(), figure.error) {
        (Some(fault), _) => Some(fault),
        (None, Some(_)) => None,
        (None, None) => Some(unknown_error_reason()),
    };
    Value {
        metric,
        value: figure.value,
        log_speed,
        error: figure.error.unwrap_or(0.0),
        symptoms,
        fault,
        latencies: latencies(figure, record),
    }
}

/// The fault of a figure without an interval.
fn unknown_error_reason() -> Reason {
    Reason {
        code: "imprecise".to_owned(),
        why: "too few operations for an interval; measure it for longer".to_owned(),
    }
}

/// The latencies of a workload, for each kind of operation.
fn latencies(figure: &RepresentativeFigure, record: &Record) -> Vec<(OpKind, StoredLatencies)> {
    let PartOfRun::Workload(name) = &figure.part else {
        return Vec::new();
    };
    let row = record
        .measurements
        .iter()
        .find(|row| row.data.target == figure.target && row.data.workload.name == *name);
    let mut parts = Vec::new();
    for (kind, op) in row.iter().flat_map(|row| row.ops()) {
        let part = op.seen_latencies().to_part();
        if !part.is_empty() {
            parts.push((kind, StoredLatencies::new(&part)));
        }
    }
    parts
}

/// The findings of a target: those that do not concern other targets alone.
fn findings_of_target(record: &Record, target: usize) -> Vec<FindingOfRow> {
    let mut findings = Vec::new();
    for finding in &record.findings {
        if concerns_target(record, finding, target) {
            findings.push(FindingOfRow {
                code: finding.code.clone(),
                title: finding.heading().to_owned(),
                severity: finding.severity,
                is_failure: finding.is_failure_of_disk(),
                is_trouble: finding.is_trouble_of_disk(),
            });
        }
    }
    findings
}

/// The silence of a target that a run did not see the end of; `None` where all requests were
/// answered, or where a disk may have slept before the first one.
fn silence_of_target(record: &Record, target: usize) -> Option<Reason> {
    let mut longest: Option<Hang> = None;
    for hang in hangs_of_target(record, target) {
        if longest.is_none_or(|other| hang.lasted_ns > other.lasted_ns) {
            longest = Some(hang);
        }
    }
    let hang = longest?;
    Some(Reason {
        code: if hang.late { "late" } else { "hung" }.to_owned(),
        why: format!(
            "it had not answered {} for {} when its run ended",
            counted(hang.requests, "request"),
            format_duration(hang.lasted_ns)
        ),
    })
}

/// The silences of a target that its run did not see the end of.
fn hangs_of_target(record: &Record, target: usize) -> Vec<Hang> {
    let mut hangs = Vec::new();
    for row in &record.measurements {
        if row.data.target == target {
            hangs.extend(row.data.hang);
        }
    }
    if let Some(surface) = record.surface()
        && surface.data.target == target
    {
        hangs.extend(surface.data.hang);
    }
    let is_late_serious = record
        .findings
        .iter()
        .any(|finding| finding.code == "late" && finding.is_serious());
    if let Some(stalled) = &record.stalled
        && stalled.target == Some(target)
        && (!stalled.late || is_late_serious)
    {
        hangs.push(Hang {
            since_ns: 0,
            lasted_ns: stalled.lasted_ns,
            requests: 1,
            late: stalled.late,
        });
    }
    hangs
}

/// Returns `true` if a finding concerns a workload, a disk or the survey of this target, or none of
/// any target.
fn concerns_target(record: &Record, finding: &Finding, target: usize) -> bool {
    let mut concerned = BTreeSet::new();
    for (index, row) in record.measurements.iter().enumerate() {
        if finding.concerns(index) {
            concerned.insert(row.data.target);
        }
    }
    for (index, health) in record.health.iter().enumerate() {
        if finding.rests_on(&format!("/health/{index}")) {
            concerned.extend(targets_on_disk(record, &health.disk));
        }
    }
    for (index, result) in record.results.iter().enumerate() {
        if let Some(own) = result.inner().own_requests()
            && finding.rests_on(&format!("/results/{index}"))
        {
            concerned.insert(own.target);
        }
    }
    for (index, silence) in record.silences.iter().enumerate() {
        if finding.rests_on(&format!("/silences/{index}")) {
            concerned.insert(silence.target);
        }
    }
    for (index, answer) in record.first_answers.iter().enumerate() {
        if finding.rests_on(&format!("/first_answers/{index}")) {
            concerned.insert(answer.target);
        }
    }
    if finding.rests_on("/stalled")
        && let Some(stalled) = &record.stalled
    {
        concerned.extend(stalled.target);
    }
    for (index, slice) in record.dropped.iter().enumerate() {
        if finding.rests_on(&format!("/dropped/{index}")) {
            concerned.insert(slice.target);
        }
    }
    concerned.is_empty() || concerned.contains(&target)
}

/// The targets that lie on the disk of this kernel name.
fn targets_on_disk(record: &Record, disk: &str) -> Vec<usize> {
    let mut targets = Vec::new();
    for (index, target) in record.targets.iter().enumerate() {
        if target.disks().any(|layer| layer.name == disk) {
            targets.push(index);
        }
    }
    targets
}

/// Returns `true` if the run looked for unreadable blocks of this target.
fn is_scanned(record: &Record, target: usize) -> bool {
    match record.surface() {
        Some(surface) => surface.data.target == target && surface.data.scan.is_some(),
        None => false,
    }
}

/// Returns `true` if an acceptance test of this run rejected its disk, which the table of tests
/// then says.
fn is_rejected(record: &Record) -> bool {
    match record.accept() {
        Some(accept) => match accept.figures.verdict {
            AcceptVerdict::Reject => true,
            AcceptVerdict::Accept | AcceptVerdict::NoFraudFound | AcceptVerdict::Undecided => false,
        },
        None => false,
    }
}

/// True unless one rotates and the other does not. A fleet that was saved earlier has what the
/// kernel says of virtio disks, of which it knows nothing.
fn may_be_alike(one: Option<bool>, other: Option<bool>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one == other,
        (None, _) | (_, None) => true,
    }
}

/// Returns `true` if two disks of these sizes may be of one kind.
pub(super) fn are_sizes_alike(bytes: u64, other_bytes: u64) -> bool {
    bytes.abs_diff(other_bytes) as f64 <= SIZE_TOLERANCE * bytes.max(other_bytes) as f64
}

/// Vendor and model of the disks, each once. A target without disks has the type of its filesystem.
fn model_text(target: &TargetIdentity) -> String {
    let mut models: Vec<String> = Vec::new();
    for disk in target.disks() {
        let words = [disk.vendor.as_deref(), disk.model.as_deref()];
        let text = words.into_iter().flatten().collect::<Vec<&str>>().join(" ");
        if !text.is_empty() && !models.contains(&text) {
            models.push(text);
        }
    }
    match &target.filesystem {
        Some(filesystem) if target.layers.is_empty() => filesystem.kind.clone(),
        _ => models.join(" + "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::finding::Severity;
    use diskproof_model::record::TargetSilence;

    #[test]
    fn silence_of_one_target_is_a_finding_of_that_one_alone() {
        let mut record = fixture::record();
        let mut other = fixture::target();
        other.path = "/other".to_owned();
        record.targets.push(other);
        let silence = TargetSilence {
            target: 1,
            length_ns: 3_000_000_000,
        };
        record.silences = vec![silence];
        record.first_answers = vec![silence];
        for path in ["/silences/0/length_ns", "/first_answers/0/length_ns"] {
            let finding = fixture::finding("stalled", Severity::Warning, path);
            let concerned = [0, 1].map(|target| concerns_target(&record, &finding, target));
            assert_eq!(concerned, [false, true], "{path}");
        }
    }

    #[test]
    fn sizes_within_a_hundredth_of_the_larger_one_are_alike() {
        assert!(are_sizes_alike(990, 1000));
        assert!(!are_sizes_alike(989, 1000));
        assert!(are_sizes_alike(1000, 990));
        assert!(are_sizes_alike(0, 0));
    }
}
