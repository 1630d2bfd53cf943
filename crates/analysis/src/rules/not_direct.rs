//! `not-direct`: direct I/O was asked for, and refused.

use super::evidence::{evidence_at, part_path, places, real};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::plan::{CachePolicy, EngineKind};
use diskproof_model::record::Record;

pub(super) const RULES: &[Rule] = &[Rule {
    code: "not-direct",
    title: "The page cache was not bypassed",
    meaning: "The filesystem refused direct I/O, so the kernel's page cache was between diskproof \
              and the disk.",
    taints: None,
    check: Check::Run(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

fn check(record: &Record) -> Option<Diagnosis> {
    let workloads = real(record)
        .filter(|(_, m)| {
            m.cache.asked == CachePolicy::Direct && m.cache.used != CachePolicy::Direct
        })
        .map(|(index, m)| (Some(index), m.target, m.cache.why.as_ref()));
    // A survey always asks for direct I/O.
    let surveys = record.surface.iter();
    let survey = surveys
        .filter(|s| s.cache != CachePolicy::Direct && s.engine != EngineKind::Null)
        .map(|s| (None, s.target, s.cache_why.as_ref()));
    let hits: Vec<_> = workloads.chain(survey).collect();
    let &(_, target, why) = hits.first()?;
    let target = record.targets.get(target);
    let filesystem = target
        .and_then(|target| target.filesystem.as_ref())
        .map_or("the target", |f| &f.kind);
    let why = why.map_or(String::new(), |why| format!(" ({why})"));
    let indices = || hits.iter().map(|(index, ..)| *index);
    let evidence = indices().map(|index| {
        let place = if index.is_some() {
            "cache/used"
        } else {
            "cache"
        };
        let path = format!("{}/{place}", part_path(index));
        evidence_at(path, 0.0, 1.0, "direct I/O")
    });
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "{filesystem} refused direct I/O{why}, so {} went through the page cache, which was \
             emptied during the run. Figures may include the speed of memory.",
            places(record, indices())
        ),
        evidence,
        "Measure a directory on a filesystem that supports O_DIRECT (ext4, xfs, btrfs on a \
         disk), or the block device itself.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    pub(super) fn fires() -> Record {
        fixture::all_faulty(|m| {
            (m.cache.used, m.cache.why) = (CachePolicy::Buffered, Some("open: EINVAL".to_owned()))
        })
    }

    pub(super) fn silent() -> Record {
        fixture::all_faulty(|m| {
            (m.cache.asked, m.cache.used) = (CachePolicy::Buffered, CachePolicy::Buffered)
        })
    }

    #[test]
    fn a_refusal_is_reported_with_its_reason() {
        let finding = check(&fires()).unwrap();
        assert!(
            finding
                .claim
                .starts_with("ext4 refused direct I/O (open: EINVAL), so all 8 workloads"),
            "{}",
            finding.claim
        );
        assert_eq!(finding.evidence.len(), 8);
    }

    #[test]
    fn a_survey_through_the_page_cache_is_reported() {
        let mut run = crate::fixture::surveyed::SurveyedDisk::rotating().run(1);
        (run.1.cache.used, run.1.cache.why) =
            (CachePolicy::Buffered, Some("open: EINVAL".to_owned()));
        let finding = check(&crate::fixture::surveyed::judge(run)).unwrap();
        assert!(
            finding
                .claim
                .contains("refused direct I/O (open: EINVAL), so the survey went through"),
            "{}",
            finding.claim
        );
        assert_eq!(finding.evidence[0].path, "/surface/cache");
    }

    #[test]
    fn buffered_by_wish_is_no_finding() {
        let wished = fixture::all_faulty(|m| {
            (m.cache.asked, m.cache.used) = (CachePolicy::Buffered, CachePolicy::Buffered)
        });
        assert_eq!(check(&wished), None);
    }
}
