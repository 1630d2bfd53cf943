//! Answers the questions that every result answers for a survey: transfer rate, access time and
//! scan of one target.

use super::{OwnError, OwnRequests, ResultAnswer, ResultOfTask};
use crate::data::RunData;
use crate::document::{DocumentError, index_below, target_of};
use crate::figure::tables::{ACCESS, BURST, CURVE, CURVE_COST, SCAN, SHORT_STROKE};
use crate::figure::{FigureList, Key, Part, survey_key, target_labels};
use crate::record::Record;
use crate::surface::SurfaceRecord;

impl ResultOfTask for SurfaceRecord {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        let (mut has_blocks, mut has_unreadable) = (false, false);
        if let Some(scan) = &self.data.scan {
            has_blocks = scan.blocks > 0;
            has_unreadable = scan.unreadable_bytes > 0;
        }
        let has_failed = has_unreadable
            || !self.data.access_errors.is_empty()
            || self.data.curve.iter().any(|point| point.errors > 0);
        let curve_errnos = self.data.curve.iter().flat_map(|point| point.errnos.keys());
        let mut errnos = self.data.access_errors.keys().chain(curve_errnos);
        let error = OwnError {
            doing: self.data.survey.operation.doing(),
            errno: errnos.next().map(String::as_str),
        };
        Some(OwnRequests {
            target: self.data.target,
            end_ns: self.data.start_ns.saturating_add(self.data.wall_ns),
            has_figures: has_blocks
                || self.figures.rate.is_some()
                || self.data.burst.is_some()
                || !self.figures.seeks.is_empty(),
            error: has_failed.then_some(error),
        })
    }

    fn answer(&self) -> ResultAnswer {
        ResultAnswer::Given
    }

    fn restore(&self, data: &mut RunData) {
        data.surface = Some(self.data.clone());
    }

    fn add_figures<'r>(&'r self, record: &'r Record, list: &mut FigureList<'r>) {
        let whole = Key {
            labels: target_labels(record, self.data.target),
            ..survey_key(self, "")
        };
        if let Some(rate) = &self.figures.rate {
            let key = whole.clone().part(Part::Curve, "curve");
            list.table(&key, CURVE, rate);
            list.table(&key, CURVE_COST, self);
        }
        if let Some(burst) = &self.data.burst {
            let key = whole.clone().part(Part::Burst, "burst");
            list.table(&key, BURST, burst);
        }
        for (seek, summary) in &self.figures.seeks {
            let key = whole.clone().part(Part::Access(*seek), seek.subject());
            list.table(&key.label("seek", seek.as_str()), ACCESS, summary);
        }
        for stroke in &self.figures.short_strokes {
            let percent = stroke.percent.to_string();
            let name = format!("short-stroke-{percent}");
            let key = whole.clone().part(Part::Other, name);
            list.table(&key.label("percent", &percent), SHORT_STROKE, stroke);
        }
        if let Some(scan) = &self.data.scan {
            list.table(&whole.part(Part::Other, "scan"), SCAN, scan);
        }
    }

    fn check(&self, record: &Record, path: &str) -> Result<(), DocumentError> {
        target_of(record, format!("{path}/data/target"), self.data.target)?;
        for (place, stroke) in self.figures.short_strokes.iter().enumerate() {
            index_below(
                format!("{path}/figures/short_strokes/{place}/measurement"),
                stroke.measurement,
                record.measurements.len(),
                "measurements",
            )?;
        }
        Ok(())
    }
}
