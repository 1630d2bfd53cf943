//! `engine-limited`: the load generator itself limited the rate. The evidence is the rate that its
//! workers reach without any I/O.

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    code: "engine-limited",
    title: "The load generator limited the rate",
    summary: "The load generator was close to its own limit, which was measured without I/O. The \
              disk may be faster than the figure.",
    remedy: Remedy::Always(
        "Use more workers (--jobs) on more CPUs, or larger blocks. The figure is a lower bound.",
    ),
    check: Check::Workloads(check),
    says: Meaning::Limit {
        limit: RateLimit::Program,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Above this share of the ceiling the program takes as long for an operation as the kernel and the
/// disk together.
const SHARE_MAX: f64 = 0.5;

/// A workload near the ceiling of its workers.
struct LimitedWorkload<'a> {
    measured: Measured<'a>,
    iops: f64,
    ceiling_iops: f64,
}

impl LimitedWorkload<'_> {
    fn share(&self) -> f64 {
        self.iops / self.ceiling_iops
    }
}

/// True if a workload is near the ceiling of its workers.
pub(super) fn is_near_ceiling(row: &Row) -> bool {
    row.data
        .ceiling_iops
        .is_some_and(|ceiling_iops| row.total_iops() > SHARE_MAX * ceiling_iops)
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits: Vec<LimitedWorkload<'_>> = Vec::new();
    for measured in measured_rows(record) {
        let Some(ceiling_iops) = measured.row.data.ceiling_iops else {
            continue;
        };
        if is_near_ceiling(measured.row) {
            hits.push(LimitedWorkload {
                measured,
                iops: measured.row.total_iops(),
                ceiling_iops,
            });
        }
    }
    let worst = largest_by(&hits, |hit| hit.share())?;
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "The program itself limits {}: {} operations/s are {} of the {} that its workers reach \
             without I/O.",
            workload_names(record, hits.iter().map(|hit| hit.measured.index)),
            format_rate(worst.iops),
            format_percent(worst.share()),
            format_rate(worst.ceiling_iops)
        ),
        hits.iter().map(|hit| {
            let threshold = hit.iops / SHARE_MAX;
            hit.measured
                .evidence("data/ceiling_iops", hit.ceiling_iops, threshold, "1/s")
        }),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};

    pub(super) const EXAMPLES: Examples = Examples::new(
        || {
            fixture::faulty("random-read-d32", |measurement| {
                measurement.ceiling_iops = Some(12_000.0)
            })
        },
        || {
            fixture::faulty("random-read-d32", |measurement| {
                measurement.ceiling_iops = Some(90_000_000.0)
            })
        },
    );

    #[test]
    fn a_figure_near_the_ceiling_is_a_lower_bound() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        states(&finding.claim, &["random-read-d32", "83 %"]);
        assert_eq!(check(&fixture::record()), None, "unknown");
    }
}
