//! Finds the INSERTs of a temporary PostgreSQL server whose rate is known too badly to be graded.
//! Slices differ by several percent on a quiet machine already, so a narrower limit would report
//! every run.

use super::super::rule::*;
use diskproof_model::postgres::LoadRow;
use diskproof_model::record::TaskResult;

/// The fewest slices that give an interval.
const SLICES_MIN: usize = 2;

/// A load of INSERTs, and its place in the record.
struct RoughLoad<'a> {
    path: String,
    load: &'a LoadRow,
    /// Relative half-width; infinite of a single slice.
    width: f64,
}

/// Reports INSERTs whose rate is known too roughly.
pub(super) fn check(record: &Record) -> Option<Diagnosis> {
    let rough = rough_loads(record);
    let worst = largest_by(&rough, |load| load.width)?;
    let names: Vec<&str> = rough.iter().map(RoughLoad::name).collect();
    let precision = if worst.width.is_finite() {
        format!("to ±{} in {}", format_percent(worst.width), worst.name())
    } else {
        format!("too short for an interval in {}", worst.name())
    };
    let claim = format!(
        "The rate of INSERTs is only approximate in {}: {precision}. A choice between disks or \
         settings based on it may be wrong.",
        names.join(", ")
    );
    let observations = rough.iter().map(RoughLoad::evidence);
    Some(
        Diagnosis::new(Severity::Warning, claim, observations).with_remedy(
            "Repeat diskproof commit --postgres with more time (--time) while nothing else uses \
             the disk.",
        ),
    )
}

/// The loads whose rate is known too roughly, of those that inserted anything.
fn rough_loads(record: &Record) -> Vec<RoughLoad<'_>> {
    let mut rough = Vec::new();
    for (result, task_result) in record.results.iter().enumerate() {
        let TaskResult::Inserts(postgres) = task_result else {
            continue;
        };
        for (index, load) in postgres.loads.iter().enumerate() {
            let rate = &load.figures.iops;
            let width = rate.relative_half_width().unwrap_or(f64::INFINITY);
            if !load.data.slices.is_empty() && width > HALF_WIDTH_MAX {
                rough.push(RoughLoad {
                    path: format!("/results/{result}/loads/{index}"),
                    load,
                    width,
                });
            }
        }
    }
    rough
}

impl RoughLoad<'_> {
    fn name(&self) -> &str {
        &self.load.data.load.name
    }

    /// The half-width; without one the number of slices, which gave none.
    fn evidence(&self) -> Evidence {
        let rate = &self.load.figures.iops;
        match rate.half_width_95 {
            Some(half_width) => evidence_at(
                format!("{}/figures/iops/half_width_95", self.path),
                half_width,
                HALF_WIDTH_MAX * rate.value,
                "1/s",
            ),
            None => evidence_at(
                format!("{}/figures/iops/n", self.path),
                rate.n as f64,
                SLICES_MIN as f64,
                "1",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use crate::fixture::inserted::inserted;

    #[test]
    fn rough_inserts_are_reported() {
        let quiet = inserted("quiet", &[400.0, 404.0, 396.0]);
        assert_eq!(super::check(&quiet), None);
        let rough = inserted("rough", &[100.0, 400.0, 700.0]);
        let finding = check(&rough).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        let path = "/results/0/loads/0/figures/iops/half_width_95";
        assert_eq!(finding.evidence[0].path, path);
        // The trust in the figures follows from the finding.
        let trust = rough.verdict.unwrap().trust;
        assert_eq!(trust.finding.as_deref(), Some("imprecise"));
    }

    #[test]
    fn single_slice_gives_no_interval() {
        let finding = check(&inserted("single", &[400.0])).unwrap();
        assert_eq!(
            finding.evidence[0].path,
            "/results/0/loads/0/figures/iops/n"
        );
    }
}
