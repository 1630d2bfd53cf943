//! The type of a rule, which is the entry of one finding in the registry, and the functions that
//! rules share: to choose the measurements that they examine, to point into the record, and to name
//! the workloads that a finding concerns.

use crate::estimate;
use crate::limiter::Unit;
use diskproof_model::finding::Finding;
use diskproof_model::health::DiskHealth;
use diskproof_model::series::TimeSeries;
use diskproof_model::shell::quoted;

// What nearly every rule uses.
pub(super) use crate::estimate::{HALF_WIDTH_MAX, largest_by, smallest_by};
pub(super) use diskproof_model::finding::{
    Cause, Evidence, Meaning, RateLimit, Severity, SharedResource,
};
pub(super) use diskproof_model::measurement::OpKind;
pub(super) use diskproof_model::plan::{Access, CachePolicy, EngineKind, SyncPolicy};
pub(super) use diskproof_model::record::Record;
pub(super) use diskproof_model::row::{OpRow, Row};
pub(super) use diskproof_model::surface::{SeekPattern, SurfaceRecord};
pub(super) use diskproof_model::target::{
    Layer, LayerKind, TargetIdentity, TargetKind, WriteCache,
};
pub(super) use diskproof_model::units::{
    counted, format_bytes, format_duration, format_latency, format_percent, format_rate,
    format_throughput,
};

/// A rule: how one finding is found, and what is always said of it.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stable code of its finding, after which its file is named.
    pub code: &'static str,
    /// Title of the finding, in at most eight words and without a period.
    pub title: &'static str,
    /// One or two sentences for the reference on what the finding means.
    pub summary: &'static str,
    /// The remedy.
    pub remedy: Remedy,
    /// The check, and what it examines.
    pub check: Check,
    /// The meaning of the finding for the figures that it concerns.
    pub says: Meaning,
    /// The cases that its test uses.
    #[cfg(test)]
    pub(crate) examples: Examples,
}

/// The remedy of a finding.
#[derive(Debug, Clone, Copy)]
pub enum Remedy {
    /// The same in every case, in the imperative.
    Always(&'static str),
    /// It depends on the case, so the check adds it to its diagnosis.
    ByCase,
}

/// The check of a rule, by the part of a run that it examines.
#[derive(Debug, Clone, Copy)]
pub enum Check {
    /// The workloads of a run.
    Workloads(fn(&Record) -> Option<Diagnosis>),
    /// The survey of a disk.
    Survey(fn(&Record) -> Option<Diagnosis>),
    /// Workloads and survey.
    Run(fn(&Record) -> Option<Diagnosis>),
    /// The acceptance test of a disk.
    Acceptance(fn(&Record) -> Option<Diagnosis>),
    /// The reports of the disks about themselves, with or without a measurement.
    Health {
        /// Finds the issue in the report of one disk. The claim is what follows the disk's name
        /// (`has 8 pending sectors`), and the paths of the evidence begin at the disk.
        examine: fn(&DiskHealth) -> Option<Diagnosis>,
        /// One sentence that follows the claims on all disks: what the issue means for a database.
        consequence: &'static str,
    },
}

impl Check {
    /// The reference names what the check examines by these words.
    pub fn scope(self) -> &'static str {
        match self {
            Self::Workloads(_) => "workloads",
            Self::Survey(_) => "survey",
            Self::Run(_) => "workloads, survey",
            Self::Acceptance(_) => "acceptance test",
            Self::Health { .. } => "disk health",
        }
    }
}

/// The result of a check; the rule adds code, title and remedy.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The severity of the finding. One rule may give findings of several.
    pub severity: Severity,
    /// One sentence with the figures that decide, one with the consequence for a database.
    pub claim: String,
    /// The observations; never empty.
    pub evidence: Vec<Evidence>,
    /// The remedy, in the imperative; empty where that of the rule is always the same.
    pub remedy: String,
    /// A command that shows the same thing, where there is one.
    pub reproduce: Option<String>,
}

impl Diagnosis {
    /// A diagnosis with the remedy of its rule, and without a command that shows the same thing.
    pub fn new(
        severity: Severity,
        claim: String,
        evidence: impl IntoIterator<Item = Evidence>,
    ) -> Self {
        Self {
            severity,
            claim,
            evidence: evidence.into_iter().collect(),
            remedy: String::new(),
            reproduce: None,
        }
    }

    /// The same with a remedy that depends on what was found.
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: remedy.into(),
            ..self
        }
    }

    /// The same with the command that shows it; an empty one does not count.
    pub fn with_command(self, command: &str) -> Self {
        if command.is_empty() {
            return self;
        }
        Self {
            reproduce: Some(command.to_owned()),
            ..self
        }
    }
}

/// The cause of what a check found, as a part of its claim, and the remedy that follows from it.
pub(super) struct Explanation {
    pub(super) cause: String,
    pub(super) remedy: String,
}

impl Explanation {
    pub(super) fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            remedy: remedy.into(),
        }
    }
}

/// A record on which a rule fires, and one on which it must not.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Examples {
    pub(crate) fires: fn() -> Record,
    pub(crate) silent: fn() -> Record,
    /// More records on which it fires, with another claim.
    pub(crate) also_fires: &'static [fn() -> Record],
}

#[cfg(test)]
impl Examples {
    pub(crate) const fn new(fires: fn() -> Record, silent: fn() -> Record) -> Self {
        Self {
            fires,
            silent,
            also_fires: &[],
        }
    }

    pub(crate) const fn and_fires_on(self, also_fires: &'static [fn() -> Record]) -> Self {
        Self { also_fires, ..self }
    }
}

impl Rule {
    /// The finding on a record.
    pub fn find(&self, record: &Record) -> Option<Finding> {
        match self.check {
            Check::Workloads(check)
            | Check::Survey(check)
            | Check::Run(check)
            | Check::Acceptance(check) => {
                let diagnosis = check(record)?;
                Some(self.finding(diagnosis))
            }
            Check::Health { .. } => self.find_in_health(&record.health),
        }
    }

    /// The finding on the health of disks, for all of them that have the issue; `None` from a rule
    /// that examines anything else.
    pub fn find_in_health(&self, health: &[DiskHealth]) -> Option<Finding> {
        let Check::Health {
            examine,
            consequence,
        } = self.check
        else {
            return None;
        };
        let mut severity = None;
        let mut claims = Vec::new();
        let mut evidence = Vec::new();
        for (index, disk) in health.iter().enumerate() {
            let Some(issue) = examine(disk) else {
                continue;
            };
            severity = severity.max(Some(issue.severity));
            claims.push(format!("{} {}", disk_label(disk), issue.claim));
            for observation in issue.evidence {
                let path = format!("/health/{index}/{}", observation.path);
                evidence.push(Evidence {
                    path,
                    ..observation
                });
            }
        }
        let claim = format!("{}. {consequence}", claims.join("; "));
        Some(self.finding(Diagnosis::new(severity?, claim, evidence)))
    }

    fn finding(&self, diagnosis: Diagnosis) -> Finding {
        let remedy = match self.remedy {
            Remedy::Always(remedy) => remedy.to_owned(),
            Remedy::ByCase => diagnosis.remedy,
        };
        Finding {
            code: self.code.to_owned(),
            title: Some(self.title.to_owned()),
            severity: diagnosis.severity,
            says: self.says,
            claim: diagnosis.claim,
            evidence: diagnosis.evidence,
            remedy,
            reproduce: diagnosis.reproduce,
        }
    }
}

/// `sda (Hitachi HDS721050DLE630)`: the label on the disk, for the person who pulls it out.
pub(super) fn disk_label(disk: &DiskHealth) -> String {
    let mut label: Vec<&str> = Vec::new();
    label.extend(disk.model.as_deref());
    label.extend(disk.serial.as_deref());
    if label.is_empty() {
        disk.disk.clone()
    } else {
        format!("{} ({})", disk.disk, label.join(", "))
    }
}

/// The name of the survey in a list of workloads.
pub(super) const SURVEY: &str = "the survey";
/// The name of an acceptance test in such a list.
pub(super) const ACCEPTANCE_TEST: &str = "the acceptance test";

/// A measurement and its place in the record.
#[derive(Clone, Copy)]
pub(super) struct Measured<'a> {
    pub(super) index: usize,
    pub(super) row: &'a Row,
}

impl Measured<'_> {
    /// An observation at this place of the measurement.
    pub(super) fn evidence(
        self,
        place: &str,
        observed: f64,
        threshold: f64,
        unit: &str,
    ) -> Evidence {
        evidence(self.index, place, observed, threshold, unit)
    }
}

/// The measurement with this index.
pub(super) fn measured_at(record: &Record, index: usize) -> Measured<'_> {
    Measured {
        index,
        row: &record.measurements[index],
    }
}

/// Every measurement, with its place.
pub(super) fn measured_rows(record: &Record) -> impl Iterator<Item = Measured<'_>> {
    record
        .measurements
        .iter()
        .enumerate()
        .map(|(index, row)| Measured { index, row })
}

/// Every measurement that did real I/O.
pub(super) fn real_rows(record: &Record) -> impl Iterator<Item = Measured<'_>> {
    measured_rows(record).filter(|measured| measured.row.data.engine.used != EngineKind::Null)
}

/// The places of these measurements in the record, for [`workload_names`].
pub(super) fn indices(hits: &[Measured<'_>]) -> Vec<usize> {
    hits.iter().map(|hit| hit.index).collect()
}

/// The measurement and those of the workloads that ran at the same time on the same target, which
/// share its device counters.
pub(super) fn concurrent_rows<'a>(record: &'a Record, row: &'a Row) -> Vec<&'a Row> {
    let names = &row.figures.together_with;
    let mut rows = vec![row];
    for other in &record.measurements {
        if other.data.target == row.data.target && names.contains(&other.data.workload.name) {
            rows.push(other);
        }
    }
    rows
}

/// An observation at `/measurements/INDEX/PLACE`.
pub(crate) fn evidence(
    index: usize,
    place: &str,
    observed: f64,
    threshold: f64,
    unit: &str,
) -> Evidence {
    let path = format!("/measurements/{index}/{place}");
    evidence_at(path, observed, threshold, unit)
}

/// An observation anywhere in the record.
pub(super) fn evidence_at(
    path: impl Into<String>,
    observed: f64,
    threshold: f64,
    unit: &str,
) -> Evidence {
    Evidence {
        path: path.into(),
        observed,
        threshold,
        unit: unit.to_owned(),
    }
}

/// The JSON pointer to `place` in the first result of a record. A survey, an acceptance test and
/// the operations on files always stand there, as [`TaskResult`] documents.
///
/// [`TaskResult`]: diskproof_model::record::TaskResult
pub(super) fn first_result_path(place: &str) -> String {
    format!("/results/0/{place}")
}

/// A finding on more workloads than these names only the first few: a sweep has a hundred. Chosen,
/// not measured.
const NAMES_MAX: usize = 20;
/// The number of workloads that such a finding names: enough to recognise them, and the sentence
/// stays short.
const NAMES_SHOWN: usize = 4;

/// The names of the workloads that a finding concerns: `all 8 workloads`, `2 of 8 workloads
/// (random-read-d1, random-read-d32)`. A rule with several observations of one workload lists its
/// index as often, one after the other; the name appears once.
pub(super) fn workload_names(record: &Record, indices: impl IntoIterator<Item = usize>) -> String {
    let mut indices: Vec<usize> = indices.into_iter().collect();
    indices.dedup();
    let names: Vec<String> = indices
        .iter()
        .map(|i| workload_name(record, &record.measurements[*i]))
        .collect();
    match (names.len(), record.measurements.len()) {
        (1, 1) => names[0].clone(),
        (hit, all) if hit == all => format!("all {all} workloads"),
        (hit, all) if hit > NAMES_MAX => {
            let (first, more) = (names[..NAMES_SHOWN].join(", "), hit - NAMES_SHOWN);
            format!("{hit} of {all} workloads ({first} and {more} more)")
        }
        (hit, all) => format!("{hit} of {all} workloads ({})", names.join(", ")),
    }
}

/// The name of a workload; with its layer or target where it ran on several.
pub(super) fn workload_name(record: &Record, row: &Row) -> String {
    let name = &row.data.workload.name;
    let is_elsewhere = record
        .measurements
        .iter()
        .any(|other| other.data.workload.name == *name && other.data.target != row.data.target);
    match layer_or_target(record, row.data.target) {
        Some(place) if is_elsewhere => format!("{name} on {place}"),
        _ => name.clone(),
    }
}

/// The name of the planned layer that is this target, or else the target's path.
fn layer_or_target(record: &Record, target: usize) -> Option<&str> {
    if let Some(plan) = record.plan.layers() {
        for layer in &plan.layers {
            if layer.target == Some(target) {
                return Some(&layer.name);
            }
        }
    }
    Some(&record.targets.get(target)?.path)
}

/// Like [`workload_names`], with the survey among them, which has no index: `all 8 workloads and
/// the survey`.
pub(super) fn places(record: &Record, indices: impl IntoIterator<Item = Option<usize>>) -> String {
    let indices: Vec<Option<usize>> = indices.into_iter().collect();
    let workloads: Vec<usize> = indices.iter().copied().flatten().collect();
    match (workloads.is_empty(), indices.contains(&None)) {
        (false, false) => workload_names(record, workloads),
        (false, true) => format!("{} and {SURVEY}", workload_names(record, workloads)),
        (true, _) => SURVEY.to_owned(),
    }
}

/// A place or a size on a surface, in the units of disk makers: `41.2 GB`. MB and GB end
/// where they would be rounded to four digits; a terabyte is written in GB up to 9,995.
pub(super) fn gigabytes(bytes: u64) -> String {
    match bytes as f64 / 1e9 {
        gb if gb >= 9_995.0 => format!("{:.1} TB", gb / 1e3),
        gb if gb >= 99.95 => format!("{gb:.0} GB"),
        gb if gb >= 0.9995 => format!("{gb:.1} GB"),
        gb => format!("{:.0} MB", gb * 1e3),
    }
}

/// The rate of a point of the curve, compared with what it should be.
pub(super) fn point_evidence(index: usize, record: &Record, expected: f64) -> Evidence {
    let path = first_result_path(&format!("data/curve/{index}/bytes_per_second"));
    evidence_at(
        path,
        record.curve()[index].bytes_per_second,
        expected,
        "B/s",
    )
}

/// The rate of an operation that a limiter with this unit limits.
pub(super) struct RateFigure {
    /// The name of the figure in the record: `iops` or `throughput`.
    pub(super) name: &'static str,
    /// Per second.
    pub(super) value: f64,
}

impl RateFigure {
    pub(super) fn new(op: OpRow<'_>, unit: Unit) -> Self {
        match unit {
            Unit::Requests => Self {
                name: "iops",
                value: op.figures.iops.value,
            },
            Unit::Bytes => Self {
                name: "throughput",
                value: op.figures.throughput.value,
            },
        }
    }
}

/// True if the figures of a measurement are those of a burst, wholly or partly.
pub(super) fn is_in_burst(record: &Record, index: usize) -> bool {
    record
        .burst_credits
        .iter()
        .any(|credit| credit.in_burst.contains(&index))
}

/// The operations that a reader looks at, over time.
pub(super) fn headline_series(row: &Row) -> Option<TimeSeries> {
    estimate::summed(
        row.headline_ops()
            .iter()
            .map(|(_, op)| op.data.shown_series()),
    )
}

/// Where the record has what was measured of a workload, or of the survey, which has no index.
pub(super) fn data_path(index: Option<usize>) -> String {
    match index {
        Some(index) => format!("/measurements/{index}/data"),
        None => first_result_path("data"),
    }
}

/// A warning if it is serious, else a note.
pub(super) fn warning_if(is_serious: bool) -> Severity {
    if is_serious {
        Severity::Warning
    } else {
        Severity::Note
    }
}

/// A failure if it is serious, else a warning.
pub(super) fn failure_if(is_serious: bool) -> Severity {
    if is_serious {
        Severity::Failure
    } else {
        Severity::Warning
    }
}

/// The path of a target within a sentence, as its user wrote it.
pub(super) fn target_path(record: &Record, target: usize) -> &str {
    match record.targets.get(target) {
        Some(target) => &target.path,
        None => "the target",
    }
}

/// The path of a target as an argument of a command, quoted for a shell; a placeholder where the
/// record lacks the target.
pub(super) fn target_argument(record: &Record, target: usize) -> String {
    match record.targets.get(target) {
        Some(target) => quoted(&target.path),
        None => "TARGET".to_owned(),
    }
}

/// A layer, and its path in the record.
pub(super) struct PlacedLayer<'a> {
    pub(super) path: String,
    pub(super) layer: &'a Layer,
}

/// Every layer of every target.
pub(super) fn layers(record: &Record) -> Vec<PlacedLayer<'_>> {
    let mut placed = Vec::new();
    for (target_index, target) in record.targets.iter().enumerate() {
        for (layer_index, layer) in target.layers.iter().enumerate() {
            let path = format!("/targets/{target_index}/layers/{layer_index}");
            placed.push(PlacedLayer { path, layer });
        }
    }
    placed
}

/// True if a workload addresses its span at random.
pub(super) fn is_random(row: &Row) -> bool {
    matches!(
        row.data.workload.access,
        Access::Random { .. } | Access::Zoned { .. }
    )
}

/// Requests that this workload wants in flight.
pub(crate) fn wanted_depth(row: &Row) -> f64 {
    row.data.workload.total_depth() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::layers::{LayersPlan, PlannedLayer};
    use diskproof_model::plan::{Decide, LivePlan, Sides};

    #[test]
    fn empty_command_is_no_command() {
        let diagnosis = Diagnosis::new(Severity::Note, String::new(), []);
        assert_eq!(diagnosis.clone().with_command("").reproduce, None);
        let command = diagnosis.with_command("fio --name=read").reproduce;
        assert_eq!(command.as_deref(), Some("fio --name=read"));
    }

    #[test]
    fn scope_names_the_workloads() {
        let record = fixture::record();
        assert_eq!(workload_names(&record, 0..8), "all 8 workloads");
        let some = "2 of 8 workloads (random-read-d1, random-read-d32)";
        assert_eq!(workload_names(&record, [2, 2, 3]), some);
    }

    fn planned_layer(target: usize, name: &str) -> PlannedLayer {
        PlannedLayer {
            name: name.to_owned(),
            path: name.to_owned(),
            device_kind: None,
            target: Some(target),
            skipped: None,
            one_of: 1,
        }
    }

    #[test]
    fn scope_tells_layers_and_targets_apart() {
        let mut record = fixture::record();
        let mut second = record.measurements[2].clone();
        second.data.target = 1;
        record.measurements.push(second);
        let mut target = record.targets[0].clone();
        target.path = "/dev/dm-0".to_owned();
        record.targets.push(target);
        let names = "random-read-d1 on /data, random-read-d32, random-read-d1 on /dev/dm-0";
        assert_eq!(
            workload_names(&record, [2, 3, 8]),
            format!("3 of 9 workloads ({names})")
        );
        let layers = LayersPlan {
            layers: vec![
                planned_layer(0, "file on ext4"),
                planned_layer(1, "dm-0 (crypt data)"),
            ],
            unresolved: None,
        };
        record.plan.workload_task_mut().unwrap().decide = Decide::Compare(LivePlan {
            sides: Sides::Layers(layers),
            margin: 0.01,
            cells_ns: 0,
        });
        let names = "random-read-d1 on file on ext4, random-read-d1 on dm-0 (crypt data)";
        assert_eq!(
            workload_names(&record, [2, 8]),
            format!("2 of 9 workloads ({names})")
        );
    }
}
