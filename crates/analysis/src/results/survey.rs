//! Makes the result of a survey from the curve, accesses and scan that were measured, and its
//! clauses of the headline.

use crate::reproduce;
use crate::surface::surface_record;
use diskproof_model::digits::figure_text;
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;
use diskproof_model::surface::{SeekPattern, SurfaceMeasurement, SurfaceRecord};
use diskproof_model::units::{counted, format_bytes};

/// The survey with its figures and the command that repeats its curve.
pub(super) fn survey_result(record: &Record, measured: &SurfaceMeasurement) -> SurfaceRecord {
    let mut survey = surface_record(measured, &record.measurements);
    if let Some(target) = record.targets.get(measured.target) {
        survey.figures.reproduce = reproduce::curve_command(measured, target);
    }
    survey
}

/// The mean rate, the mean access time and the outcome of a scan, as far as each was measured.
pub(super) fn survey_clauses(surface: &SurfaceRecord) -> Vec<String> {
    let mut clauses = Vec::new();
    if let Some(rate) = &surface.figures.rate {
        let verb = match surface.data.survey.operation {
            OpKind::Write => "writes",
            _ => "reads",
        };
        let half_width = rate.average.half_width_95;
        clauses.push(format!(
            "{verb} {} on average, between {} and {} by position",
            rate.average.value_text(),
            figure_text(rate.min, half_width, "B/s"),
            figure_text(rate.max, half_width, "B/s"),
        ));
    }
    if let Some(seek) = surface.figures.seeks.get(&SeekPattern::Random) {
        let mean = seek.mean.value_text();
        clauses.push(format!("a random access takes {mean} on average"));
    }
    if let Some(scan) = &surface.data.scan {
        let blocks = counted(scan.blocks, "block");
        clauses.push(match (scan.unreadable_bytes, scan.slow_blocks) {
            (0, 0) => format!("the scan read {blocks} without an error"),
            (0, slow) => format!("{slow} of {blocks} read slowly"),
            (bytes, slow) => format!(
                "{} could not be read, and {slow} of {blocks} read slowly",
                format_bytes(bytes),
            ),
        });
    }
    clauses
}
