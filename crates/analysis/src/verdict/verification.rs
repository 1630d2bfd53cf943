//! The answer of a run that verified blocks: they are intact, damaged, or cannot be judged.

use diskproof_model::measurement::VerifyResult;
use diskproof_model::record::Record;
use diskproof_model::units::counted;

/// The answer; `None` where nothing was verified with `--verify`.
pub(super) fn headline(record: &Record) -> Option<String> {
    let measurements = record.measurements.iter();
    let verified: Vec<&VerifyResult> = measurements.filter_map(|m| m.verify.as_ref()).collect();
    let sum = |of: fn(&VerifyResult) -> u64| verified.iter().map(|one| of(one)).sum::<u64>();
    let wrong = sum(VerifyResult::wrong_blocks);
    let good = sum(VerifyResult::good_blocks);
    let (unknown, unchecked) = (sum(|v| v.bad_blocks) - wrong, sum(VerifyResult::unchecked));
    let judged = counted(wrong + good, "block");
    let mut text = match (wrong, good, unknown) {
        (0, 0, 0) => return None,
        (0, 0, _) => "Nothing was verified".to_owned(),
        (0, _, _) if unchecked > 0 => format!("{judged} intact so far"),
        (0, 1, _) => "Verified: the block is intact".to_owned(),
        (0, _, _) => format!("Verified: all {judged} are intact"),
        (wrong, _, _) => format!("DAMAGED: {wrong} of {judged} read back wrong"),
    };
    if unknown > 0 {
        let unknown = counted(unknown, "block");
        text.push_str(&format!(", {unknown} without a signature"));
    }
    if unchecked > 0 {
        text.push_str(&format!(", {} not read back", counted(unchecked, "block")));
    }
    Some(text + ".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_outcome_of_a_verification_comes_first() {
        let text = |blocks, bad_blocks, unsigned: Option<u64>, written| {
            let record = fixture::faulty("random-write-d32", |m| {
                m.verify = Some(VerifyResult {
                    blocks,
                    bad_blocks,
                    unsigned_blocks: unsigned,
                    blocks_written: written,
                    ..VerifyResult::default()
                });
            });
            crate::verdict::verdict(&record).headline
        };
        for (shown, part) in [
            (text(1000, 0, None, None), "all 1000 blocks are intact"),
            (
                text(1000, 3, None, None),
                "3 of 1000 blocks read back wrong",
            ),
            (
                text(1000, 900, Some(900), None),
                "all 100 blocks are intact, 900 blocks without",
            ),
            (text(1000, 1000, Some(1000), None), "Nothing was verified"),
            (text(1000, 0, None, Some(1500)), "500 blocks not read back"),
        ] {
            assert!(shown.contains(part), "{shown}");
        }
        assert_eq!(headline(&fixture::record()), None);
    }
}
