//! An output format: its file name extension, its description for help and docs, and its writers.

use crate::capacity::{self, swept_objection};
use crate::chart;
use crate::tracked;
use diskproof_model::comparison::Comparison;
use diskproof_model::finding::Finding;
use diskproof_model::fleet::FleetRecord;
use diskproof_model::health::DiskHealth;
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::target::{HostFacts, TargetIdentity};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes the content of a file.
pub type WriteContent<'a> = Box<dyn Fn(&mut dyn Write) -> io::Result<()> + 'a>;

/// Writes a record, a comparison or a fleet.
pub type WriteOne<T> = fn(&T, &mut dyn Write) -> io::Result<()>;

/// Writes the result of `info`.
pub type WriteIdentity = fn(&Examined<'_>, &mut dyn Write) -> io::Result<()>;

/// The writer of a record.
#[derive(Debug, Clone, Copy)]
pub enum RecordWriter {
    /// To one file.
    File(WriteOne<Record>),
    /// To files that depend on the path.
    Files(for<'a> fn(&'a Record, &Path) -> Vec<OutputFile<'a>>),
}

/// A format of saved results.
#[derive(Debug)]
pub struct Format {
    /// The end of its file names, such as `.csv`.
    pub extension: &'static str,
    /// One line for help and docs.
    pub description: &'static str,
    /// What a record must contain.
    pub requires: Requires,
    /// The files of a record.
    pub record: RecordWriter,
    /// Counts the figures of a record that the format leaves out because they are not the disk's.
    pub count_left_out: Option<fn(&Record) -> usize>,
    /// Writes a comparison, if the format supports it.
    pub comparison: Option<WriteOne<Comparison>>,
    /// Writes a fleet, if the format supports it.
    pub fleet: Option<WriteOne<FleetRecord>>,
    /// Writes the result of `info`, if the format supports it.
    pub identity: Option<WriteIdentity>,
}

/// What `info` knows of a target without measuring it.
#[derive(Debug, Clone, Copy)]
pub struct Examined<'a> {
    /// The machine.
    pub host: &'a HostFacts,
    /// The target.
    pub identity: &'a TargetIdentity,
    /// The health that its disks report.
    pub health: &'a [DiskHealth],
    /// Findings, the most severe first.
    pub findings: &'a [Finding],
}

/// A file to be written.
pub struct OutputFile<'a> {
    /// Its path.
    pub path: PathBuf,
    /// Its content.
    pub write: WriteContent<'a>,
}

impl<'a> OutputFile<'a> {
    /// The single file of most formats.
    pub fn new(path: &Path, write: impl Fn(&mut dyn Write) -> io::Result<()> + 'a) -> Self {
        Self {
            path: path.to_owned(),
            write: Box::new(write),
        }
    }
}

/// The content that a format needs of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requires {
    /// Nothing.
    Nothing,
    /// At least one workload.
    Workloads,
    /// At least one figure that can have a threshold, also one that is not the disk's.
    Figures,
    /// Enough data for a chart.
    Charts,
    /// A sweep that reads a disk, or saturated rays of 4 KiB.
    Reads,
    /// A sweep that reads and writes, or decided rays of 4 KiB.
    ReadsAndWrites,
    /// Decided rays of 4 KiB (`load --rays`), in each direction of which more was offered than the
    /// disk serves.
    SaturatedRays,
    /// Decided rays.
    Rays,
}

impl Requires {
    /// True if a record has this content.
    pub fn is_met_by(self, record: &Record) -> bool {
        match self {
            Self::Nothing => true,
            Self::Workloads => !record.measurements.is_empty(),
            Self::Figures => tracked::has_figures(record),
            Self::Charts => !chart::charts(record).is_empty(),
            Self::Reads => {
                capacity::reads(record).is_some()
                    || capacity::saturated_rays_of_pages(record).is_some()
            }
            Self::ReadsAndWrites => {
                (capacity::reads(record).is_some() && capacity::writes(record).is_some())
                    || capacity::rays_of_pages(record).is_some()
            }
            Self::SaturatedRays => capacity::saturated_rays_of_pages(record).is_some(),
            Self::Rays => capacity::rays(record).is_some(),
        }
    }

    /// True if a run of this plan measures this content, unless it ends early or decides nothing.
    pub fn is_planned_by(self, plan: &Plan) -> bool {
        match self {
            Self::Nothing | Self::Figures | Self::Charts => true,
            Self::Workloads => !plan.workloads().is_empty() || plan.ping().is_some(),
            Self::Reads | Self::ReadsAndWrites => {
                plan.sweep().is_some() || capacity::plans_rays_of_pages(plan)
            }
            Self::SaturatedRays => capacity::plans_rays_of_pages(plan),
            Self::Rays => capacity::plans_rays(plan),
        }
    }

    /// True if the run of a record measured this content, but has no answer: its rays decide
    /// nothing, or the figures of its sweep are not the disk's.
    pub fn is_undecided_by(self, record: &Record) -> bool {
        let has_no_answer = record.rays().is_some() || swept_objection(record).is_some();
        has_no_answer && self.is_planned_by(&record.plan) && !self.is_met_by(record)
    }

    /// The error for a plan that does not measure this content: says what does.
    pub fn unplanned_text(self) -> &'static str {
        match self {
            Self::Nothing | Self::Figures | Self::Charts => "nothing to write",
            Self::Workloads => {
                "this format contains only workloads, and this run has none ('diskproof curve' has \
                 some with --short-stroke); use a .json or .csv file"
            }
            Self::Reads | Self::ReadsAndWrites => {
                "this format needs the figures of 'diskproof sweep', or of 'diskproof load --rays' \
                 with 4 KiB"
            }
            Self::SaturatedRays => {
                "this format needs the figures of 'diskproof load --rays' with 4 KiB"
            }
            Self::Rays => "this format needs the figures of 'diskproof load --rays'",
        }
    }

    /// The error for a record without this content.
    pub fn missing_text(self, record: &Record) -> String {
        if let Some(objection) = swept_objection(record)
            && self.is_undecided_by(record)
        {
            return format!(
                "the figures of the sweep are not the disk's ({}); no file was written",
                objection.finding.code
            );
        }
        let text = match self {
            Self::Nothing => "nothing to write",
            Self::Workloads => {
                "this format contains only workloads, but none was measured; no file was written"
            }
            Self::Figures => {
                "this format contains only figures of a disk, but none was measured; no file was \
                 written"
            }
            Self::Charts => "too little was measured for a chart; no file was written",
            Self::Reads => {
                "io.cost.model needs the random reads of a sweep of one disk, or decided rays of \
                 4 KiB which also saw how much is served when more is offered, but there are \
                 none; no file was written"
            }
            Self::ReadsAndWrites => {
                "io-properties.yaml needs the reads and writes of a sweep, or decided rays of \
                 4 KiB, but at least one is missing; no file was written"
            }
            Self::SaturatedRays => {
                "the export needs decided rays of 4 KiB, with reads and writes alone, which also \
                 saw how much is served when more is offered, but there are none; no file was \
                 written"
            }
            Self::Rays => {
                "the export needs decided rays, with reads and writes alone, but there are none; \
                 no file was written"
            }
        };
        text.to_owned()
    }
}

impl Format {
    /// A format of any record, in one file.
    pub(crate) const fn new(
        extension: &'static str,
        description: &'static str,
        write: WriteOne<Record>,
    ) -> Self {
        Self {
            extension,
            description,
            requires: Requires::Nothing,
            count_left_out: None,
            record: RecordWriter::File(write),
            comparison: None,
            fleet: None,
            identity: None,
        }
    }

    /// The files of a record; empty if it lacks what the format requires.
    pub fn files<'a>(&self, record: &'a Record, path: &Path) -> Vec<OutputFile<'a>> {
        if !self.requires.is_met_by(record) {
            return Vec::new();
        }
        match self.record {
            RecordWriter::File(write) => {
                vec![OutputFile::new(path, move |out| write(record, out))]
            }
            RecordWriter::Files(files) => files(record, path),
        }
    }

    /// The file of a comparison; `None` if the format does not support it.
    pub fn comparison_file<'a>(
        &self,
        comparison: &'a Comparison,
        path: &Path,
    ) -> Option<OutputFile<'a>> {
        let write = self.comparison?;
        Some(OutputFile::new(path, move |out| write(comparison, out)))
    }

    /// The file of a fleet; `None` if the format does not support it.
    pub fn fleet_file<'a>(&self, fleet: &'a FleetRecord, path: &Path) -> Option<OutputFile<'a>> {
        let write = self.fleet?;
        Some(OutputFile::new(path, move |out| write(fleet, out)))
    }
}
