//! `engine-limited`: this program, not the disk, sets the pace. The evidence is what its workers
//! reach with no I/O at all.

use super::evidence::{evidence, scope};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule, Taint};
use crate::estimate::largest_by;
use diskproof_model::finding::Severity;
use diskproof_model::record::Record;
use diskproof_model::units::{format_percent, format_rate};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "engine-limited",
    title: "The load generator limited the rate",
    meaning: "The load generator was close to its own limit, which was measured without I/O. The \
              disk may be faster than the figure.",
    taints: Some(Taint {
        from: Severity::Warning,
        why: "the load generator, not the disk, limited the rate in",
    }),
    check: Check::Workloads(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// Above this share of the ceiling the program takes as long for an operation as the kernel and the
/// disk together.
const SHARE_MAX: f64 = 0.5;

fn check(record: &Record) -> Option<Diagnosis> {
    let measured = record.measurements.iter().enumerate();
    let hits: Vec<(usize, f64, f64)> = measured
        .filter_map(|(index, m)| Some((index, m.total_iops(), m.ceiling_iops?)))
        .filter(|(_, seen, ceiling)| *seen > SHARE_MAX * ceiling)
        .collect();
    let &(_, seen, ceiling) = largest_by(&hits, |(_, seen, ceiling)| seen / ceiling)?;
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "The program itself limits {}: {} operations/s are {} of the {} that its workers reach \
             without I/O.",
            scope(record, hits.iter().map(|h| h.0)),
            format_rate(seen),
            format_percent(seen / ceiling),
            format_rate(ceiling)
        ),
        hits.iter().map(|(index, seen, ceiling)| {
            evidence(*index, "ceiling_iops", *ceiling, seen / SHARE_MAX, "1/s")
        }),
        "Use more workers (--jobs) on more CPUs, or larger blocks. The figure is a lower \
         bound.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    pub(super) fn fires() -> Record {
        fixture::faulty("random-read-d32", |m| m.ceiling_iops = Some(12_000.0))
    }

    pub(super) fn silent() -> Record {
        fixture::faulty("random-read-d32", |m| m.ceiling_iops = Some(90_000_000.0))
    }

    #[test]
    fn a_figure_near_the_ceiling_is_a_lower_bound() {
        let finding = check(&fires()).unwrap();
        assert!(
            finding.claim.contains("random-read-d32") && finding.claim.contains("83 %"),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn a_ceiling_far_above_or_unknown_is_no_finding() {
        assert_eq!(
            check(&fixture::faulty("random-read-d32", |m| m.ceiling_iops = Some(90_000_000.0))),
            None
        );
        assert_eq!(check(&fixture::record()), None);
    }
}
