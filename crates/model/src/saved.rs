//! A saved run in short: what a list of runs shows without opening the records. Made once from a
//! record, so that every list says the same.

use crate::estimate::Estimate;
use crate::files::FileOperation;
use crate::finding::Severity;
use crate::op::OpKind;
use crate::record::{FileStepRecord, MeasurementRecord, Record};
use crate::surface::SeekPattern;
use crate::workload::Access;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A saved run in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedRun {
    /// Unique among all runs on all machines.
    pub run_id: String,
    /// Start in UTC, RFC 3339.
    pub started: String,
    /// What was asked, such as `check`.
    pub verb: String,
    /// Paths that were measured.
    pub targets: Vec<String>,
    /// The disks below them, each once.
    pub disks: Vec<SavedDisk>,
    /// Name of the machine.
    pub host: String,
    /// The name that the user gave to the run.
    pub label: Option<String>,
    /// The user's own words.
    pub note: Option<String>,
    /// Whether the run ended before its plan did.
    pub partial: bool,
    /// Version of the measuring method.
    pub method: u32,
    /// The heaviest finding.
    pub worst: Option<WorstFinding>,
    /// The most telling figures first.
    pub figures: Vec<Headline>,
}

/// A disk as it is recognised across paths and machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedDisk {
    /// Kernel name on the machine of the run.
    pub name: String,
    /// Model as the device reports it.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
}

impl SavedDisk {
    /// The word that tells it best: serial, else model, else kernel name.
    pub fn best_name(&self) -> &str {
        self.serial
            .as_deref()
            .or(self.model.as_deref())
            .unwrap_or(&self.name)
    }
}

/// The heaviest finding of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorstFinding {
    /// Its weight.
    pub severity: Severity,
    /// Its stable name.
    pub code: String,
}

/// A figure that stands for a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// Name of the workload; `curve` and `access` for a survey.
    pub workload: String,
    /// What was done.
    pub operation: OpKind,
    /// Rate in operations or bytes per second, or a time.
    pub value: f64,
    /// Half-width of the 95 % interval; `null` when there was too little to tell.
    pub half_width_95: Option<f64>,
    /// `1/s`, `B/s` or `ns`.
    pub unit: String,
}

impl Headline {
    fn of(workload: &str, operation: OpKind, figure: &Estimate) -> Self {
        let (value, half_width_95, unit) =
            (figure.value, figure.half_width_95, figure.unit.clone());
        Self {
            workload: workload.to_owned(),
            operation,
            value,
            half_width_95,
            unit,
        }
    }
}

impl SavedRun {
    /// The short form of a record.
    pub fn of(record: &Record, label: Option<&str>) -> Self {
        Self {
            run_id: record.run_id.clone(),
            started: record.started.clone(),
            verb: record.plan.origin.verb.clone(),
            targets: record
                .targets
                .iter()
                .map(|target| target.path.clone())
                .collect(),
            disks: disks(record),
            host: record.host.name.clone(),
            label: label.map(str::to_owned),
            note: record.note.clone(),
            partial: record.partial,
            method: record.method,
            worst: worst(record),
            figures: headlines(record),
        }
    }
}

fn disks(record: &Record) -> Vec<SavedDisk> {
    let mut disks: Vec<SavedDisk> = Vec::new();
    for layer in record.targets.iter().flat_map(|target| target.disks()) {
        let disk = SavedDisk {
            name: layer.name.clone(),
            model: layer.model.clone(),
            serial: layer.serial.clone(),
        };
        if !disks.contains(&disk) {
            disks.push(disk);
        }
    }
    disks
}

fn worst(record: &Record) -> Option<WorstFinding> {
    let worst = record.findings.iter().reduce(|worst, finding| {
        if finding.severity > worst.severity {
            finding
        } else {
            worst
        }
    })?;
    Some(WorstFinding {
        severity: worst.severity,
        code: worst.code.clone(),
    })
}

/// Kinds of figures, in the order in which a database cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Commit,
    RandomRead,
    Curve,
    Access,
    LargeRead,
    LargeWrite,
    SmallWrite,
    SmallRead,
    Trim,
    Mixed,
}

impl Kind {
    fn of(measurement: &MeasurementRecord, operation: OpKind) -> Self {
        let workload = &measurement.workload;
        let is_large = measurement.is_rated_in_bytes();
        match operation {
            OpKind::Commit | OpKind::Sync => Self::Commit,
            _ if measurement.headline_ops().len() > 1 => Self::Mixed,
            OpKind::Read if is_large => Self::LargeRead,
            OpKind::Read if matches!(workload.access, Access::Random { .. }) => Self::RandomRead,
            OpKind::Read => Self::SmallRead,
            OpKind::Write if is_large => Self::LargeWrite,
            OpKind::Write => Self::SmallWrite,
            OpKind::Trim => Self::Trim,
        }
    }
}

/// One figure of each kind, then the second of each, and so on: the first few of them tell the
/// most. Of one kind, more requests in flight come first.
fn headlines(record: &Record) -> Vec<Headline> {
    let mut figures: Vec<(Kind, Headline)> = survey_headlines(record);
    figures.extend(file_headlines(record));
    figures.extend(observed_headlines(record));
    let mut measurements: Vec<&MeasurementRecord> = record.measurements.iter().collect();
    measurements.sort_by_key(|m| {
        std::cmp::Reverse(u64::from(m.workload.depth) * u64::from(m.workload.workers))
    });
    for measurement in measurements {
        for (operation, op) in measurement.headline_ops() {
            let kind = Kind::of(measurement, operation);
            let figure = if measurement.is_rated_in_bytes() {
                &op.throughput
            } else {
                &op.iops
            };
            figures.push((
                kind,
                Headline::of(&measurement.workload.name, operation, figure),
            ));
        }
    }
    let mut seen = BTreeMap::new();
    let mut ranked: Vec<((u32, Kind), Headline)> = Vec::with_capacity(figures.len());
    for (kind, figure) in figures {
        let round = seen.entry(kind).or_insert(0);
        ranked.push(((*round, kind), figure));
        *round += 1;
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, figure)| figure).collect()
}

/// Creates count as small writes, and so on: what they are to the disk.
fn file_headlines(record: &Record) -> Vec<(Kind, Headline)> {
    let steps = record.files.iter().flat_map(|files| &files.steps);
    let headline = |of: &FileStepRecord| {
        let (kind, operation) = match of.step.operation {
            FileOperation::Create => (Kind::SmallWrite, OpKind::Write),
            FileOperation::Stat | FileOperation::Read => (Kind::SmallRead, OpKind::Read),
            FileOperation::Rename | FileOperation::Delete => (Kind::Mixed, OpKind::Write),
        };
        (
            kind,
            Headline::of(&of.step.name(), operation, &of.figures.iops),
        )
    };
    steps.map(headline).collect()
}

fn observed_headlines(record: &Record) -> Vec<(Kind, Headline)> {
    let devices = record
        .observed
        .iter()
        .flat_map(|observed| &observed.devices);
    let mut headlines = Vec::new();
    for device in devices {
        for (operation, op) in &device.ops {
            let kind = match operation {
                OpKind::Read => Kind::SmallRead,
                _ => Kind::SmallWrite,
            };
            let name = format!("observed-{}", device.name);
            headlines.push((kind, Headline::of(&name, *operation, &op.iops)));
        }
    }
    headlines
}

fn survey_headlines(record: &Record) -> Vec<(Kind, Headline)> {
    let Some(surface) = &record.surface else {
        return Vec::new();
    };
    let curve = surface.rate.as_ref().map(|rate| {
        (
            Kind::Curve,
            Headline::of("curve", surface.operation, &rate.average),
        )
    });
    let access = surface.seeks.get(&SeekPattern::Random).map(|seek| {
        (
            Kind::Access,
            Headline::of("access", surface.operation, &seek.mean),
        )
    });
    curve.into_iter().chain(access).collect()
}
