//! Makes the short form of a saved run: what a list of runs shows without opening the records. Made
//! once from a record, so that every list says the same.

use crate::figure::{Figure, Part, figures};
use crate::finding::Severity;
use crate::op::OpKind;
use crate::record::Record;
use crate::row::Row;
use crate::surface::SeekPattern;
use crate::target::TargetIdentity;
use crate::workload::Access;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A saved run in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedRun {
    /// Unique among all runs on all machines.
    pub run_id: String,
    /// Start in UTC, RFC 3339.
    pub started: String,
    /// The verb of the command line, such as `check`.
    pub verb: String,
    /// Paths that were measured.
    pub targets: Vec<String>,
    /// The disks below them, each once.
    pub disks: Vec<SavedDisk>,
    /// Name of the machine.
    pub host: String,
    /// Identifies the installation of the machine, as [`crate::target::HostFacts::machine`] does;
    /// absent in containers, and in what older versions saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// True of a record that was imported: another machine may have measured it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// Identifies the command line, where it saved several runs, of which this is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The name that the user gave to the run.
    pub label: Option<String>,
    /// The user's own words.
    pub note: Option<String>,
    /// True if the run ended before its plan did.
    pub partial: bool,
    /// True of a run that could not answer its question, such as an acceptance test or a search
    /// that decided nothing: [`Record::is_undecided`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    /// True of a run that says nothing of a disk: a watched load, which shows what other programs
    /// did, and a run whose requests all went to the page cache, without a sync.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_observed: bool,
    /// Version of the measuring method.
    pub method: u32,
    /// The heaviest finding; absent where there is none.
    pub worst: Option<SavedFinding>,
    /// Findings that are no notes, in their order. Empty in what older versions saved.
    #[serde(default)]
    pub findings: Vec<SavedFinding>,
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

/// A finding of a run in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFinding {
    /// The weight of the finding.
    pub severity: Severity,
    /// The code of the finding, which never changes.
    pub code: String,
}

/// A figure that stands for a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// Name of the workload; `curve` and `access` for a survey, `load` for a promised rate.
    pub workload: String,
    /// The operation, such as `read`, or `create` of files.
    pub operation: String,
    /// The path of its target; absent in what older versions saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Rate in operations or bytes per second, or a time.
    pub value: f64,
    /// Half-width of the 95 % interval; `null` when there was too little to tell.
    pub half_width_95: Option<f64>,
    /// `1/s`, `B/s` or `ns`.
    pub unit: String,
    /// The finding by which the figure is not the disk's, so that it decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objection: Option<String>,
}

impl SavedRun {
    /// The short form of a record.
    pub fn from_record(record: &Record, label: Option<&str>) -> Self {
        let paths = record.targets.iter().map(|target| target.path.clone());
        Self {
            run_id: record.run_id.clone(),
            started: record.started.clone(),
            verb: record.plan.origin.verb.clone(),
            targets: paths.collect(),
            disks: disks_below(&record.targets),
            host: record.host.name.clone(),
            machine: record.host.machine.clone(),
            imported: false,
            command: None,
            label: label.map(str::to_owned),
            note: record.note.clone(),
            partial: record.partial,
            undecided: record.is_undecided(),
            only_observed: record.plan.tasks.is_empty() || record.is_of_page_cache(),
            method: record.method,
            worst: worst(record),
            findings: serious_findings(record),
            figures: headlines(record),
        }
    }

    /// Returns `true` if the run says something of its disks. Older versions saved only the verb of
    /// a watched load.
    pub fn has_measured(&self) -> bool {
        !self.only_observed && self.verb != "watch"
    }

    /// Returns `true` if this machine made the run: one of its name, and where both are known of
    /// its digest. Clones, pods and containers share names, so an imported run without a digest
    /// may be another machine's.
    pub fn is_of_machine(&self, host: &str, machine: Option<&str>) -> bool {
        let is_same_machine = match (self.machine.as_deref(), machine) {
            (Some(saved), Some(own)) => saved == own,
            (None, _) | (_, None) => !self.imported,
        };
        self.host == host && is_same_machine
    }

    /// Returns `true` if the same machine made both runs, as [`Self::is_of_machine`] decides. Of
    /// two imported runs without a digest the name decides.
    pub fn is_of_machine_of(&self, other: &Self) -> bool {
        let is_same_machine = match (&self.machine, &other.machine) {
            (Some(machine), Some(other)) => machine == other,
            (None, _) | (_, None) => self.imported == other.imported,
        };
        self.host == other.host && is_same_machine
    }

    /// The path of the target of one of its figures; `None` where an older version saved the
    /// figures of several targets.
    pub fn target_of<'a>(&'a self, figure: &'a Headline) -> Option<&'a str> {
        match (&figure.target, self.targets.as_slice()) {
            (Some(target), _) => Some(target),
            (None, [only]) => Some(only),
            (None, _) => None,
        }
    }
}

/// The disks below targets, each once.
fn disks_below(targets: &[TargetIdentity]) -> Vec<SavedDisk> {
    let mut disks: Vec<SavedDisk> = Vec::new();
    for layer in targets.iter().flat_map(|target| target.disks()) {
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

/// The heaviest finding, of several the first.
fn worst(record: &Record) -> Option<SavedFinding> {
    // `max_by_key` returns the last of several.
    let from_last = record.findings.iter().rev();
    let worst = from_last.max_by_key(|finding| finding.severity)?;
    Some(SavedFinding {
        severity: worst.severity,
        code: worst.code.clone(),
    })
}

/// The findings that are no notes.
fn serious_findings(record: &Record) -> Vec<SavedFinding> {
    let mut serious = Vec::new();
    for finding in record
        .findings
        .iter()
        .filter(|finding| finding.is_serious())
    {
        serious.push(SavedFinding {
            severity: finding.severity,
            code: finding.code.clone(),
        });
    }
    serious
}

/// Kinds of figures, in the order in which a database cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The answer of a search, which its trials follow.
    PromisedRate,
    Commit,
    RandomRead,
    Curve,
    Access,
    LargeRead,
    LargeWrite,
    SmallWrite,
    SmallRead,
    Call,
    Mixed,
}

impl Kind {
    /// The kind of a figure that stands for its part of a record; `None` of all others. Creates of
    /// files count as small writes, and so on: what they are to the disk.
    fn of_figure(record: &Record, figure: &Figure<'_>) -> Option<Self> {
        let is_rate = figure.metric.name == "iops";
        Some(match figure.key.part {
            Part::Workload => {
                let row = record.measurements.get(figure.key.measurement?)?;
                if record.is_offered_by_search(row) {
                    return None;
                }
                let mut ops = row.headline_ops().into_iter();
                let (operation, op) = ops.find(|(kind, _)| kind.as_str() == figure.key.op)?;
                let is_told = figure.key.phase.is_none() && figure.unit == row.rate(op).unit;
                is_told.then(|| Self::of_workload(row, operation))?
            }
            Part::Curve if figure.metric.threshold == "average" => Self::Curve,
            Part::Access(SeekPattern::Random) if figure.metric.threshold == "mean" => Self::Access,
            Part::FileStep if is_rate => match figure.key.op {
                "create" => Self::SmallWrite,
                "stat" | "read" => Self::SmallRead,
                _ => Self::Mixed,
            },
            Part::Observed if is_rate && figure.key.op == "read" => Self::SmallRead,
            Part::Observed if is_rate => Self::SmallWrite,
            Part::Load if figure.metric.threshold == "rate" => Self::PromisedRate,
            // Others of these parts.
            Part::Curve | Part::Access(_) | Part::FileStep | Part::Observed | Part::Load => {
                return None;
            }
            Part::Burst | Part::Other => return None,
        })
    }

    /// The kind of the rate of one operation of a workload.
    fn of_workload(row: &Row, operation: OpKind) -> Self {
        let is_large = row.is_rated_in_bytes();
        match operation {
            OpKind::Commit | OpKind::Sync | OpKind::Transaction => Self::Commit,
            OpKind::Read | OpKind::Write | OpKind::Trim if row.headline_ops().len() > 1 => {
                Self::Mixed
            }
            OpKind::Read if is_large => Self::LargeRead,
            OpKind::Read if matches!(row.data.workload.access, Access::Random { .. }) => {
                Self::RandomRead
            }
            OpKind::Read => Self::SmallRead,
            OpKind::Write if is_large => Self::LargeWrite,
            OpKind::Write => Self::SmallWrite,
            // It moves no data.
            OpKind::Trim => Self::Call,
        }
    }
}

/// One figure of each kind, then the second of each, and so on: the first few of them tell the
/// most. Of one kind, more requests in flight come first.
fn headlines(record: &Record) -> Vec<Headline> {
    let figures = figures(record).into_iter();
    let mut by_depth = Vec::new();
    for figure in figures {
        if let Some(kind) = Kind::of_figure(record, &figure) {
            by_depth.push((kind, figure));
        }
    }
    by_depth.sort_by_key(|(_, figure)| {
        let index = figure.key.measurement;
        let workload = index.map(|index| &record.measurements[index].data.workload);
        workload.map(|workload| Reverse(workload.total_depth()))
    });
    let mut figures_by_kind = BTreeMap::new();
    let mut ranked = Vec::with_capacity(by_depth.len());
    for (kind, figure) in by_depth {
        let round = figures_by_kind.entry(kind).or_insert(0);
        ranked.push(((*round, kind), headline(record, &figure)));
        *round += 1;
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, figure)| figure).collect()
}

/// The name of a figure in lists: of the workload, and what was done where that does not say it.
pub fn named(workload: &str, operation: &str) -> String {
    match operation {
        "read" | "write" if !workload.contains(operation) => format!("{workload} {operation}"),
        _ => workload.to_owned(),
    }
}

/// A figure as a list of runs shows it.
fn headline(record: &Record, figure: &Figure<'_>) -> Headline {
    let objection = record.objection_to(figure);
    Headline {
        workload: match figure.key.part {
            Part::Access(_) => "access".to_owned(),
            _ => figure.key.subject.to_string(),
        },
        operation: figure.key.op.to_owned(),
        target: record
            .targets
            .get(figure.key.target)
            .map(|target| target.path.clone()),
        value: figure.value,
        half_width_95: figure.half_width_95,
        unit: figure.unit.to_owned(),
        objection: objection.map(|objection| objection.finding.code.clone()),
    }
}
