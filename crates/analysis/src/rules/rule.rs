//! What a rule is: the entry of one finding in the registry; and what the rules share: which
//! measurements they examine, how they point into the record, and how they name what a finding
//! concerns.

use crate::estimate;
use diskproof_model::finding::Finding;
use diskproof_model::health::DiskHealth;
use diskproof_model::series::TimeSeries;

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

/// What is always said of each finding, below its code: the title in at most eight words; what it
/// means, for the reference, in one or two sentences; what to do, where that is always the same; of
/// the health of disks what it means for a database.
const TEXTS: &str = include_str!("../findings.txt");

/// A rule: the code of its finding, and how it is found.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stable code of its finding.
    pub code: &'static str,
    /// The rule itself, and what it examines.
    pub check: Check,
    /// What the finding says of the figures that it concerns.
    pub says: Meaning,
    /// The cases that its test uses.
    #[cfg(test)]
    pub(crate) examples: Examples,
}

/// What a rule examines.
#[derive(Debug, Clone, Copy)]
pub enum Check {
    /// The workloads of a run.
    Workloads(fn(&Record) -> Option<Diagnosis>),
    /// The survey of a disk.
    Survey(fn(&Record) -> Option<Diagnosis>),
    /// Workloads and survey.
    Run(fn(&Record) -> Option<Diagnosis>),
    /// What the disks report about themselves, with or without a measurement: what it finds in the
    /// report of one disk. The claim is what follows the disk's name (`has 8 pending sectors`), and
    /// the paths of the evidence begin at the disk.
    Health(fn(&DiskHealth) -> Option<Diagnosis>),
}

impl Check {
    /// What it examines, for the reference.
    pub fn scope(self) -> &'static str {
        match self {
            Self::Workloads(_) => "workloads",
            Self::Survey(_) => "survey",
            Self::Run(_) => "workloads, survey",
            Self::Health(_) => "disk health",
        }
    }
}

/// What a rule found; the registry adds code and texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// Its weight.
    pub severity: Severity,
    /// One sentence with the figures that decide, one with the consequence for a database.
    pub claim: String,
    /// What was observed; never empty.
    pub evidence: Vec<Evidence>,
    /// What to do, in the imperative; empty where it is what the texts say.
    pub remedy: String,
    /// A command that shows the same thing, where there is one.
    pub reproduce: Option<String>,
}

impl Diagnosis {
    /// With the remedy that the finding always has; without a command that shows the same thing.
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

    /// With a remedy that depends on what was found.
    pub fn with_remedy(
        severity: Severity,
        claim: String,
        evidence: impl IntoIterator<Item = Evidence>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            remedy: remedy.into(),
            ..Self::new(severity, claim, evidence)
        }
    }
}

/// A record on which a rule fires, and one on which it must not.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Examples {
    pub(crate) fires: fn() -> Record,
    pub(crate) silent: fn() -> Record,
    /// More on which it fires, in other words.
    pub(crate) told: &'static [fn() -> Record],
}

#[cfg(test)]
impl Examples {
    pub(crate) const fn of(fires: fn() -> Record, silent: fn() -> Record) -> Self {
        let told = &[];
        Self {
            fires,
            silent,
            told,
        }
    }

    pub(crate) const fn with(self, told: &'static [fn() -> Record]) -> Self {
        Self { told, ..self }
    }
}

impl Rule {
    /// The finding on a record.
    pub fn find(&self, record: &Record) -> Option<Finding> {
        match self.check {
            Check::Workloads(check) | Check::Survey(check) | Check::Run(check) => {
                check(record).map(|diagnosis| self.finding(diagnosis))
            }
            Check::Health(_) => self.find_in_health(&record.health),
        }
    }

    /// The finding on the health of disks, for all of them that have the issue; `None` from a rule
    /// that examines anything else.
    pub fn find_in_health(&self, health: &[DiskHealth]) -> Option<Finding> {
        let Check::Health(issue_of) = self.check else {
            return None;
        };
        let (mut severity, mut claims, mut evidence) = (None, Vec::new(), Vec::new());
        for (index, disk) in health.iter().enumerate() {
            if let Some(issue) = issue_of(disk) {
                severity = severity.max(Some(issue.severity));
                claims.push(format!("{} {}", disk_label(disk), issue.claim));
                evidence.extend(issue.evidence.into_iter().map(|one| Evidence {
                    path: format!("/health/{index}/{}", one.path),
                    ..one
                }));
            }
        }
        let claim = format!("{}. {}", claims.join("; "), self.text("consequence"));
        Some(self.finding(Diagnosis::new(severity?, claim, evidence)))
    }

    fn finding(&self, diagnosis: Diagnosis) -> Finding {
        let remedy = match diagnosis.remedy {
            remedy if remedy.is_empty() => self.text("remedy").to_owned(),
            remedy => remedy,
        };
        Finding {
            code: self.code.to_owned(),
            title: Some(self.text("title").to_owned()),
            severity: diagnosis.severity,
            says: self.says,
            claim: diagnosis.claim,
            evidence: diagnosis.evidence,
            remedy,
            reproduce: diagnosis.reproduce,
        }
    }

    /// What is always said of the finding by this word: `title`, `meaning`, `remedy`; empty where
    /// nothing is.
    pub fn text(&self, word: &str) -> &'static str {
        let lines = TEXTS.lines().skip_while(|line| *line != self.code);
        let mut own = lines.skip(1).take_while(|line| line.starts_with(' '));
        let text = own.find_map(|line| line.trim_start().strip_prefix(word)?.strip_prefix(": "));
        text.unwrap_or_default()
    }
}

/// `sda (Hitachi HDS721050DLE630)`: the label on the disk, for the person who pulls it out.
pub(super) fn disk_label(disk: &DiskHealth) -> String {
    let label = [&disk.model, &disk.serial].into_iter().flatten();
    let label: Vec<&str> = label.map(String::as_str).collect();
    if label.is_empty() {
        disk.disk.clone()
    } else {
        format!("{} ({})", disk.disk, label.join(", "))
    }
}

/// The name of the survey in a list of workloads.
pub(super) const SURVEY: &str = "the survey";

/// A measurement and its place in the record.
pub(super) type Measured<'a> = (usize, &'a Row);

/// Every measurement that did real I/O.
pub(super) fn real(record: &Record) -> impl Iterator<Item = Measured<'_>> {
    record
        .measurements
        .iter()
        .enumerate()
        .filter(|(_, m)| m.data.engine.used != EngineKind::Null)
}

/// The measurement and those of the workloads that ran at the same time on the same target, which
/// share its device counters.
pub(super) fn together<'a>(record: &'a Record, m: &'a Row) -> impl Iterator<Item = &'a Row> {
    let is_concurrent = |other: &Row| {
        other.data.target == m.data.target
            && m.figures.together_with.contains(&other.data.workload.name)
    };
    std::iter::once(m).chain(
        record
            .measurements
            .iter()
            .filter(move |other| is_concurrent(other)),
    )
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

/// With more workloads than these, a finding names the first few: those of a sweep are a hundred.
const NAMES_MAX: usize = 20;
const NAMES_SHOWN: usize = 4;

/// The workloads that a finding concerns: `all 8 workloads`, `2 of 8 workloads (random-read-d1,
/// random-read-d32)`.
pub(super) fn scope(record: &Record, indices: impl IntoIterator<Item = usize>) -> String {
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
pub(super) fn workload_name(record: &Record, m: &Row) -> String {
    let name = &m.data.workload.name;
    let is_elsewhere =
        |other: &Row| &other.data.workload.name == name && other.data.target != m.data.target;
    if !record.measurements.iter().any(is_elsewhere) {
        return name.clone();
    }
    let mut layers = record
        .plan
        .layers()
        .into_iter()
        .flat_map(|plan| &plan.layers);
    let layer = layers.find(|layer| layer.target == Some(m.data.target));
    let target = record.targets.get(m.data.target);
    let place = layer
        .map(|layer| &layer.name)
        .or(target.map(|target| &target.path));
    place.map_or_else(|| name.clone(), |place| format!("{name} on {place}"))
}

/// The same with the survey among them, which has no index: `all 8 workloads and the survey`.
pub(super) fn places(record: &Record, indices: impl IntoIterator<Item = Option<usize>>) -> String {
    let indices: Vec<Option<usize>> = indices.into_iter().collect();
    let workloads: Vec<usize> = indices.iter().copied().flatten().collect();
    match (workloads.is_empty(), indices.contains(&None)) {
        (false, false) => scope(record, workloads),
        (false, true) => format!("{} and {SURVEY}", scope(record, workloads)),
        (true, _) => SURVEY.to_owned(),
    }
}

/// A place or a size on a surface, in the units of disk makers: `41.2 GB`.
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
    let path = format!("/results/0/data/curve/{index}/bytes_per_second");
    evidence_at(
        path,
        record.curve()[index].bytes_per_second,
        expected,
        "B/s",
    )
}

/// Whether the figures of a measurement are those of a burst, wholly or partly.
pub(super) fn is_in_burst(record: &Record, index: usize) -> bool {
    let mut credits = record.burst_credits.iter();
    credits.any(|credit| credit.in_burst.contains(&index))
}

/// The operations that a reader looks at, over time.
pub(super) fn headline_series(m: &Row) -> Option<TimeSeries> {
    estimate::summed(
        m.headline_ops()
            .iter()
            .map(|(_, op)| op.data.shown_series()),
    )
}

/// Where the record has what was measured of a workload, or of the survey, which has no index.
pub(super) fn data_path(index: Option<usize>) -> String {
    index.map_or("/results/0/data".to_owned(), |index| {
        format!("/measurements/{index}/data")
    })
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

/// The path of a target, as its user wrote it.
pub(super) fn target_path(record: &Record, target: usize) -> &str {
    let target = record.targets.get(target);
    target.map_or("the target", |target| &target.path)
}

/// Every layer of every target, with its path in the record.
pub(super) fn layers(record: &Record) -> impl Iterator<Item = (String, &Layer)> {
    let targets = record.targets.iter().enumerate();
    targets.flat_map(|(t, target)| {
        let layers = target.layers.iter().enumerate();
        layers.map(move |(l, layer)| (format!("/targets/{t}/layers/{l}"), layer))
    })
}

/// Requests that this workload wants in flight.
pub(crate) fn wanted_depth(m: &Row) -> f64 {
    f64::from(m.data.workload.depth) * f64::from(m.data.workload.workers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::layers::{LayersPlan, PlannedLayer};
    use diskproof_model::plan::{Decide, LivePlan, Sides};

    #[test]
    fn scope_names_the_workloads() {
        let record = fixture::record();
        assert_eq!(scope(&record, 0..8), "all 8 workloads");
        let some = "2 of 8 workloads (random-read-d1, random-read-d32)";
        assert_eq!(scope(&record, [2, 2, 3]), some);
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
            scope(&record, [2, 3, 8]),
            format!("3 of 9 workloads ({names})")
        );
        let layer = |target: usize, name: &str| PlannedLayer {
            name: name.to_owned(),
            path: name.to_owned(),
            device_kind: None,
            target: Some(target),
            skipped: None,
            one_of: 1,
        };
        let layers = LayersPlan {
            layers: vec![layer(0, "file on ext4"), layer(1, "dm-0 (crypt data)")],
            unresolved: None,
        };
        record.plan.workload_task_mut().unwrap().decide = Decide::Compare(LivePlan {
            sides: Sides::Layers(layers),
            margin: 0.01,
            cells_ns: 0,
        });
        let names = "random-read-d1 on file on ext4, random-read-d1 on dm-0 (crypt data)";
        assert_eq!(
            scope(&record, [2, 8]),
            format!("2 of 9 workloads ({names})")
        );
    }
}
