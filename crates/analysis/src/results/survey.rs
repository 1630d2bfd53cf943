//! Makes the result of a survey from the curve, accesses and scan that were measured, and its
//! clauses of the headline.

use crate::reproduce;
use crate::surface::surface_record;
use diskproof_model::digits::figure_text;
use diskproof_model::measurement::OpKind;
use diskproof_model::record::Record;
use diskproof_model::surface::Scan;
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
        clauses.push(scan_clause(scan));
    }
    clauses
}

/// The outcome of a scan, the worst of it first.
fn scan_clause(scan: &Scan) -> String {
    let blocks = counted(scan.blocks, "block");
    let (failed, slow) = (scan.failed_blocks(), scan.slow_blocks);
    let loss = if scan.unreadable_bytes > 0 {
        format!("{} could not be read", format_bytes(scan.unreadable_bytes))
    } else if failed > 0 {
        // A second try read their parts, or the scan ended before it.
        format!("{failed} of {blocks} failed at the first try")
    } else if slow > 0 {
        return format!("{slow} of {blocks} read slowly");
    } else {
        return format!("the scan read {blocks} without an error");
    };
    if slow > 0 {
        format!("{loss}, and {slow} of {blocks} read slowly")
    } else {
        loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::fixture::surveyed::{rotating, scan};
    use diskproof_model::surface::ScanCell;

    /// The parts of a block that failed were read at the second try.
    #[test]
    fn scan_with_an_error_that_did_not_come_back_is_not_without_an_error() {
        let mut run = rotating(|_| {}).run(1);
        let cell = |errors| ScanCell {
            offset_bytes: 0,
            blocks: 128,
            latency_mean_ns: 1000,
            latency_max_ns: 1000,
            errors,
        };
        run.surface.scan = Some(Scan {
            ended_at: None,
            block_bytes: 1 << 20,
            from_bytes: 0,
            to_bytes: 256 << 20,
            finished: true,
            blocks: 256,
            latency_p50_ns: Some(1000),
            slow_from_ns: 100_000,
            slow_blocks: 0,
            slow: Vec::new(),
            unreadable_bytes: 0,
            unreadable: Vec::new(),
            map: vec![cell(0), cell(1)],
        });
        let record = crate::fixture::surveyed::judge(run);
        let clauses = survey_clauses(record.surface().unwrap()).join(", ");
        states(&clauses, &["1 of 256 blocks failed"]);
        assert!(!clauses.contains("without an error"), "{clauses}");
    }

    #[test]
    fn lost_sectors_come_first_in_the_outcome_of_a_scan() {
        let clause = |unreadable_bytes: u64, slow_blocks: u64| {
            scan_clause(&Scan {
                unreadable_bytes,
                slow_blocks,
                ..scan()
            })
        };
        states(&clause(4096, 0), &["4 KiB could not be read"]);
        let both = clause(4096, 7);
        assert!(both.starts_with("4 KiB") && both.contains("7 of"), "{both}");
        states(&clause(0, 7), &["7 of 305175 blocks read slowly"]);
        states(&clause(0, 0), &["without an error"]);
    }
}
