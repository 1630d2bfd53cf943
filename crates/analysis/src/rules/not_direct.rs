//! `not-direct`: direct I/O was asked for, and refused.

use super::{Rule, evidence, real, scope};
use diskproof_model::finding::{Finding, Severity};
use diskproof_model::plan::CachePolicy;
use diskproof_model::record::Record;

pub(super) const RULE: Rule = Rule {
    code: "not-direct",
    meaning: "The filesystem refused direct I/O, so the kernel's page cache lay between the program and the disk.",
    check,
};

fn check(record: &Record) -> Option<Finding> {
    let hits: Vec<_> = real(record).filter(|(_, m)| m.cache.asked == CachePolicy::Direct && m.cache.used != CachePolicy::Direct).collect();
    let (_, first) = hits.first()?;
    let filesystem = record.targets.get(first.target).and_then(|t| t.filesystem.as_ref()).map_or("the target", |f| &f.kind);
    let why = first.cache.why.as_ref().map_or(String::new(), |why| format!(" ({why})"));
    Some(Finding {
        code: RULE.code.to_owned(),
        severity: Severity::Warning,
        claim: format!(
            "{filesystem} refused direct I/O{why}, so {} went through the page cache, emptied as they went. Memory speed may be mixed in.",
            scope(record, hits.iter().map(|h| h.0))
        ),
        evidence: hits.iter().map(|(index, _)| evidence(*index, "cache/used", 0.0, 1.0, "direct I/O")).collect(),
        remedy: "Measure a directory on a filesystem that takes O_DIRECT (ext4, xfs, btrfs on a disk), or the block device itself."
            .to_owned(),
        reproduce: None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::healthy;

    pub(in crate::rules) fn spoilt() -> Record {
        healthy::all_spoilt(|m| (m.cache.used, m.cache.why) = (CachePolicy::Buffered, Some("open: EINVAL".to_owned())))
    }

    #[test]
    fn a_refusal_is_told_with_its_reason() {
        let finding = check(&spoilt()).unwrap();
        assert!(finding.claim.starts_with("ext4 refused direct I/O (open: EINVAL), so all 8 workloads"), "{}", finding.claim);
        assert_eq!(finding.evidence.len(), 8);
    }

    #[test]
    fn buffered_by_wish_is_no_finding() {
        let wished = healthy::all_spoilt(|m| (m.cache.asked, m.cache.used) = (CachePolicy::Buffered, CachePolicy::Buffered));
        assert_eq!(check(&wished), None);
    }
}
