//! Finds the steps on many small files whose rate is known too badly to be graded. Rounds differ by
//! several percent on a quiet machine already, so a narrower limit than that of grades would report
//! every run.

use super::super::rule::*;
use super::workloads::WALL_NS_MIN;
use diskproof_model::files_record::FileStepRow;

/// A step, and its place in the record.
struct RoughStep<'a> {
    index: usize,
    step: &'a FileStepRow,
    /// Relative half-width; infinite where there was too little to tell.
    width: f64,
}

/// Reports steps on files whose rate is known too roughly.
pub(super) fn check(record: &Record) -> Option<Diagnosis> {
    let steps = &record.files()?.steps;
    let rough = rough_steps(steps);
    let worst = largest_by(&rough, |row| row.width)?;
    let names: Vec<String> = rough.iter().map(|row| row.step.data.step.name()).collect();
    let name = worst.step.data.step.name();
    let precision = if worst.width.is_finite() {
        format!("to ±{} in {name}", format_percent(worst.width))
    } else {
        format!("too short for an interval in {name}")
    };
    let claim = format!(
        "The rate is only approximate in {} of {} steps ({}): {precision}. A choice between \
         filesystems or settings based on it may be wrong.",
        rough.len(),
        steps.len(),
        names.join(", ")
    );
    let observations = rough.iter().map(RoughStep::evidence);
    Some(
        Diagnosis::new(Severity::Warning, claim, observations).with_remedy(
            "Repeat diskproof files with more rounds (--rounds 10) and more time (--time 2m) \
             while nothing else uses the disk.",
        ),
    )
}

/// The steps whose rate is known too roughly.
fn rough_steps(steps: &[FileStepRow]) -> Vec<RoughStep<'_>> {
    let mut rough = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let width = step
            .figures
            .iops
            .relative_half_width()
            .unwrap_or(f64::INFINITY);
        if step.data.op.count > 0 && width > HALF_WIDTH_MAX {
            rough.push(RoughStep { index, step, width });
        }
    }
    rough
}

impl RoughStep<'_> {
    /// The half-width; without one the measured time that gave none.
    fn evidence(&self) -> Evidence {
        let path = first_result_path(&format!("steps/{}", self.index));
        let rate = &self.step.figures.iops;
        match rate.half_width_95 {
            Some(half_width) => evidence_at(
                format!("{path}/figures/iops/half_width_95"),
                half_width,
                HALF_WIDTH_MAX * rate.value,
                "1/s",
            ),
            None => evidence_at(
                format!("{path}/data/wall_ns"),
                self.step.data.wall_ns as f64,
                WALL_NS_MIN as f64,
                "ns",
            ),
        }
    }
}
