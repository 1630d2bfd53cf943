//! `not-direct`: the plan wanted direct I/O, but the target refused it.

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    code: "not-direct",
    title: "The page cache was not bypassed",
    summary: "The filesystem refused direct I/O, so the kernel's page cache was between diskproof \
              and the disk.",
    remedy: Remedy::Always(
        "Measure a directory on a filesystem that supports O_DIRECT (ext4, xfs, btrfs on a disk), \
         or the block device itself.",
    ),
    check: Check::Run(check),
    says: Meaning::NotTheDisk {
        cause: Cause::PageCache,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// A workload or survey that went through the page cache against its plan.
struct BufferedInstead<'a> {
    /// The index of the workload; `None` for the survey.
    index: Option<usize>,
    target: usize,
    /// The call that refused direct I/O, and its error.
    why: Option<&'a str>,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let hits = buffered_instead(record);
    let first = hits.first()?;
    let filesystem = match record.targets.get(first.target) {
        Some(target) => target.filesystem.as_ref(),
        None => None,
    };
    let refusing: &str = match filesystem {
        Some(filesystem) => &filesystem.kind,
        None => "the target",
    };
    let why = match first.why {
        Some(why) => format!(" ({why})"),
        None => String::new(),
    };
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "{refusing} refused direct I/O{why}, so {} went through the page cache, which was \
             emptied during the run. Figures may include the speed of memory.",
            places(record, hits.iter().map(|hit| hit.index))
        ),
        hits.iter().map(|hit| {
            let path = data_path(hit.index) + "/cache/used";
            evidence_at(path, 0.0, 1.0, "direct I/O")
        }),
    ))
}

fn buffered_instead(record: &Record) -> Vec<BufferedInstead<'_>> {
    let mut hits = Vec::new();
    for measured in real_rows(record) {
        let cache = &measured.row.data.cache;
        if cache.asked == CachePolicy::Direct && cache.used != CachePolicy::Direct {
            hits.push(BufferedInstead {
                index: Some(measured.index),
                target: measured.row.data.target,
                why: cache.why.as_deref(),
            });
        }
    }
    // A survey always asks for direct I/O.
    if let Some(surface) = record.surface()
        && surface.data.cache.used != CachePolicy::Direct
        && surface.data.engine != EngineKind::Null
    {
        hits.push(BufferedInstead {
            index: None,
            target: surface.data.target,
            why: surface.data.cache.why.as_deref(),
        });
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states, surveyed};
    use diskproof_model::measurement::CacheUse;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || fixture::all_faulty(|measurement| refuse(&mut measurement.cache)),
        || {
            fixture::all_faulty(|measurement| {
                (measurement.cache.asked, measurement.cache.used) =
                    (CachePolicy::Buffered, CachePolicy::Buffered)
            })
        },
    );

    fn refuse(cache: &mut CacheUse) {
        (cache.used, cache.why) = (CachePolicy::Buffered, Some("open: EINVAL".to_owned()));
    }

    #[test]
    fn a_refusal_is_reported_with_its_reason() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        states(&finding.claim, &["ext4", "open: EINVAL", "all 8 workloads"]);
        assert_eq!(finding.evidence.len(), 8);
        let survey = surveyed::faulty(|survey| refuse(&mut survey.cache));
        let finding = check(&survey).unwrap();
        states(&finding.claim, &["open: EINVAL", "the survey"]);
        assert_eq!(finding.evidence[0].path, "/results/0/data/cache/used");
    }
}
