//! What an output format is: a file name extension, a description for help and docs, and how it is
//! written. [`crate::formats`] lists all of them.

use crate::chart;
use crate::examined::Examined;
use diskproof_model::comparison::Comparison;
use diskproof_model::record::Record;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes the content of a file.
pub type WriteContent<'a> = Box<dyn Fn(&mut dyn Write) -> io::Result<()> + 'a>;

/// Makes the files of a record.
pub type RecordFiles = for<'a> fn(&'a Record, &Path) -> Vec<OutputFile<'a>>;

/// Writes a comparison.
pub type WriteComparison = fn(&Comparison, &mut dyn Write) -> io::Result<()>;

/// Writes what `info` knows.
pub type WriteIdentity = fn(&Examined<'_>, &mut dyn Write) -> io::Result<()>;

/// A format of saved results.
#[derive(Debug)]
pub struct Format {
    /// The end of its file names, such as `.csv`.
    pub extension: &'static str,
    /// What it is, in one line, for help and docs.
    pub description: &'static str,
    /// What a record must hold.
    pub requires: Requires,
    /// The files of a record; none where it lacks what the format requires.
    pub record: RecordFiles,
    /// Writes a comparison, where the format has comparisons.
    pub comparison: Option<WriteComparison>,
    /// Writes what `info` knows, where the format has it.
    pub identity: Option<WriteIdentity>,
}

/// A file to be written.
pub struct OutputFile<'a> {
    /// Where.
    pub path: PathBuf,
    /// Its content.
    pub write: WriteContent<'a>,
}

impl<'a> OutputFile<'a> {
    /// The one file that most formats make.
    pub fn new(path: &Path, write: impl Fn(&mut dyn Write) -> io::Result<()> + 'a) -> Self {
        Self {
            path: path.to_owned(),
            write: Box::new(write),
        }
    }
}

/// What a record must hold so that a format makes a file of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requires {
    /// Any record will do.
    Nothing,
    /// At least one workload.
    Workloads,
    /// Enough data for a chart.
    Charts,
}

impl Requires {
    /// Whether a record has it.
    pub fn is_met_by(self, record: &Record) -> bool {
        match self {
            Self::Nothing => true,
            Self::Workloads => !record.measurements.is_empty(),
            Self::Charts => !chart::charts(record).is_empty(),
        }
    }

    /// The message where a record lacks it.
    pub fn missing_text(self) -> &'static str {
        match self {
            Self::Nothing => "nothing to write",
            Self::Workloads => {
                "fio's JSON holds workloads only, and none was measured; no file was written"
            }
            Self::Charts => "too little was measured for a chart; no file was written",
        }
    }
}

impl Format {
    /// The files of a record; empty where it lacks what the format requires.
    pub fn files<'a>(&self, record: &'a Record, path: &Path) -> Vec<OutputFile<'a>> {
        if self.requires.is_met_by(record) {
            (self.record)(record, path)
        } else {
            Vec::new()
        }
    }

    /// The file of a comparison; `None` where the format has none.
    pub fn comparison_file<'a>(
        &self,
        comparison: &'a Comparison,
        path: &Path,
    ) -> Option<OutputFile<'a>> {
        let write = self.comparison?;
        Some(OutputFile::new(path, move |out| write(comparison, out)))
    }
}
