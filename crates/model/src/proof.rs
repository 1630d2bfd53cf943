//! Whether a figure may decide anything. Grades, thresholds, promises of a data sheet, settings,
//! limits, trends, "Verified" and the monitoring plugin all ask this one question first.

use crate::figure::Figure;
use crate::finding::{Cause, Finding};
use crate::record::{FIRST_RESULT, Record};

/// The place of a record from which a figure comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureSource {
    /// The measurement with this index.
    Measurement(usize),
    /// The survey: its curve, its accesses, its scan.
    Survey,
    /// The steps on files.
    Files,
}

impl FigureSource {
    /// The source of a figure of a record.
    pub fn new(record: &Record, figure: &Figure<'_>) -> Self {
        match (figure.key.measurement, record.files()) {
            (Some(index), _) => Self::Measurement(index),
            (None, Some(_)) => Self::Files,
            (None, None) => Self::Survey,
        }
    }
}

/// The reason why a figure may not decide anything.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objection<'a> {
    /// The finding that shows it.
    pub finding: &'a Finding,
    /// The thing that the figure shows instead of the disk.
    pub cause: Cause,
}

impl Objection<'_> {
    /// `A cache answered instead of the disk (served-from-cache)`.
    pub fn text(&self) -> String {
        format!("{} ({})", self.finding.heading(), self.finding.code)
    }
}

impl Record {
    /// The reason against a decision on a figure of this source; `None` where there is none.
    pub fn objection(&self, source: FigureSource) -> Option<Objection<'_>> {
        for finding in self.findings.iter().filter(|finding| finding.is_serious()) {
            if let Some(cause) = finding.says.objection()
                && self.is_about(finding, source)
            {
                return Some(Objection { finding, cause });
            }
        }
        None
    }

    /// True if a finding rests on the source of a figure, or on the target that was measured.
    fn is_about(&self, finding: &Finding, source: FigureSource) -> bool {
        let (own_places, target) = match source {
            FigureSource::Measurement(index) => (
                vec![format!("/measurements/{index}")],
                self.measurements.get(index).map(|m| m.data.target),
            ),
            FigureSource::Survey => (
                vec![FIRST_RESULT.to_owned()],
                self.surface().map(|surface| surface.data.target),
            ),
            FigureSource::Files => (vec![FIRST_RESULT.to_owned()], Some(0)),
        };
        let on_target = match target {
            Some(target) => finding.rests_on(&format!("/targets/{target}")),
            None => false,
        };
        on_target || own_places.iter().any(|place| finding.rests_on(place))
    }
}
