//! Writes the outcome of `--verify` over all workloads, which is the first sentence of the verdict.

use crate::words::uncapitalised;
use diskproof_model::finding::Cause;
use diskproof_model::measurement::{OpKind, VerifyResult};
use diskproof_model::proof::{FigureSource, Objection};
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::target::TargetKind;
use diskproof_model::units::{counted, format_bytes, format_percent};

/// The outcome of `--verify` over all workloads.
struct Verification<'a> {
    results: Vec<&'a VerifyResult>,
    /// Bytes of the intact blocks that came from the disk.
    proven_bytes: u64,
    /// Writes that succeeded.
    writes: u64,
    /// Writes that failed: their blocks are not read back.
    failed_writes: u64,
    /// The reason why intact blocks prove nothing about the disk.
    objection: Option<Objection<'a>>,
    /// The real size of a counterfeit device; `None` of another.
    counterfeit: Option<CounterfeitSize>,
}

/// The size of a counterfeit device.
#[derive(Clone, Copy)]
struct CounterfeitSize {
    held_bytes: u64,
    claimed_bytes: u64,
}

impl CounterfeitSize {
    /// The size that a verified row shows; `None` where the device is no counterfeit.
    fn from_row(record: &Record, row: &Row, verify: &VerifyResult) -> Option<Self> {
        let target = record.targets.get(row.data.target)?;
        if target.kind != TargetKind::BlockDevice {
            return None;
        }
        Some(Self {
            held_bytes: verify.real_size(target.size_bytes)?.bytes(),
            claimed_bytes: target.size_bytes,
        })
    }
}

impl<'a> Verification<'a> {
    /// Adds up the results of all rows with `--verify`.
    fn from_record(record: &'a Record) -> Self {
        let mut all = Self {
            results: Vec::new(),
            proven_bytes: 0,
            writes: 0,
            failed_writes: 0,
            objection: None,
            counterfeit: None,
        };
        for (index, row) in record.measurements.iter().enumerate() {
            let Some(verify) = &row.data.verify else {
                continue;
            };
            all.results.push(verify);
            all.counterfeit = all
                .counterfeit
                .or(CounterfeitSize::from_row(record, row, verify));
            if let Some(writes) = row.data.ops.get(&OpKind::Write) {
                // Errors are those of the whole time, and so is the series.
                all.writes = all.writes.saturating_add(writes.series.total().ops);
                for errors in writes.errors.values() {
                    all.failed_writes = all.failed_writes.saturating_add(*errors);
                }
            }
            let block_bytes = u64::from(row.data.workload.block_bytes);
            all.proven_bytes += verify.proven_blocks() * block_bytes;
            match record.objection(FigureSource::Measurement(index)) {
                // The result already counts blocks that failed or came back wrong.
                Some(objection) if objection.cause == Cause::Failed => {}
                objection => all.objection = all.objection.or(objection),
            }
        }
        all
    }

    /// True if every check read nearly all of its blocks from the disk.
    fn proves_disk(&self) -> bool {
        self.results.iter().all(|verify| verify.proves_disk())
    }

    fn sum(&self, count: fn(&VerifyResult) -> u64) -> u64 {
        self.results.iter().map(|one| count(one)).sum()
    }
}

/// The headline of a run with `--verify`; `None` where nothing was verified.
pub(crate) fn verification_headline(record: &Record) -> Option<String> {
    let all = Verification::from_record(record);
    let wrong = all.sum(VerifyResult::wrong_blocks);
    let good = all.sum(VerifyResult::good_blocks);
    let unknown = all.sum(|verify| verify.bad_blocks) - wrong;
    let unchecked = all.sum(VerifyResult::unchecked);
    let proven = all.sum(VerifyResult::proven_blocks);
    let judged = counted(wrong + good, "block");
    let share = share_of_target(record, all.proven_bytes);
    let mut text = match (wrong, good, all.objection) {
        (0, 0, _) if unknown == 0 => return None,
        (0, 0, _) => "Nothing was verified".to_owned(),
        (0, _, Some(objection)) => format!(
            "Nothing is proved: {judged} read back intact, but {} ({})",
            uncapitalised(objection.finding.heading()),
            objection.finding.code
        ),
        (0, _, None) if all.failed_writes > 0 => format!(
            "Not verified: {} of {} failed; {judged} read back intact",
            all.failed_writes,
            counted(all.writes + all.failed_writes, "write")
        ),
        (0, _, None) if proven == 0 => format!(
            "Nothing is proved: {judged} read back intact, but the page cache may still have held \
             all of them"
        ),
        (0, _, None) if !all.proves_disk() => format!(
            "Only {proven} of {judged} are proved: all read back intact, but the page cache may \
             still have held the others"
        ),
        (0, _, None) if unchecked > 0 => format!("{judged} intact so far"),
        (0, _, None) if proven < good => format!(
            "Verified: {} are intact, {share}, and the page cache may still have held {} more",
            counted(proven, "block"),
            good - proven
        ),
        (0, 1, None) => format!("Verified: the block is intact, {share}"),
        (0, _, None) => format!("Verified: all {judged} are intact, {share}"),
        (wrong, _, _) => {
            let holds = match all.counterfeit {
                Some(real) => format!(
                    "{} of {} are real, ",
                    format_bytes(real.held_bytes),
                    format_bytes(real.claimed_bytes)
                ),
                None => String::new(),
            };
            format!("DAMAGED: {holds}{wrong} of {judged} read back wrong")
        }
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

/// `4 GiB, 0.8 % of /dev/sdb`; of a directory only how much.
fn share_of_target(record: &Record, bytes: u64) -> String {
    let amount = format_bytes(bytes);
    let [target] = record.targets.as_slice() else {
        return amount;
    };
    match target.kind {
        TargetKind::BlockDevice | TargetKind::File if target.size_bytes > 0 => {
            let share = (bytes as f64 / target.size_bytes as f64).min(1.0);
            format!("{amount}, {} of {}", format_percent(share), target.path)
        }
        _ => amount,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};

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
            (text(1000, 0, None, None), "all 1000 blocks"),
            (text(1000, 3, None, None), "DAMAGED: 3 of 1000 blocks"),
            (
                text(1000, 900, Some(900), None),
                "all 100 blocks are intact, 800 KiB, 900 blocks",
            ),
            (text(1000, 1000, Some(1000), None), "Nothing was verified"),
            (text(1000, 0, None, Some(1500)), "500 blocks"),
        ] {
            states(&shown, &[part]);
        }
        assert_eq!(verification_headline(&fixture::record()), None);
    }

    #[test]
    fn writes_that_failed_come_before_the_blocks_that_are_intact() {
        let record = fixture::faulty("random-write-d32", |m| {
            let writes = m.ops.get_mut(&OpKind::Write).unwrap();
            writes.errors.insert("EIO".to_owned(), 169);
            m.verify = Some(VerifyResult {
                blocks: 87,
                blocks_written: Some(87),
                ..VerifyResult::default()
            });
        });
        let headline = crate::verdict::verdict(&record).headline;
        states(&headline, &["Not verified: 169 of ", "87 blocks"]);
    }

    #[test]
    fn blocks_from_the_page_cache_prove_nothing() {
        for (blocks, cached_blocks, part) in [
            (
                8,
                Some(8),
                "Nothing is proved: 8 blocks read back intact, but the page cache",
            ),
            (8, Some(3), "Only 5 of 8 blocks are proved"),
            (
                1000,
                Some(10),
                "Verified: 990 blocks are intact, 7.7 MiB, and the page cache may still have held \
                 10 more",
            ),
            (1000, Some(11), "Only 989 of 1000 blocks are proved"),
            (8, Some(0), "Verified: all 8 blocks are intact"),
            (8, None, "Verified: all 8 blocks are intact"),
        ] {
            let record = fixture::faulty("random-write-d32", |m| {
                m.verify = Some(VerifyResult {
                    blocks,
                    blocks_written: Some(blocks),
                    cached_blocks,
                    ..VerifyResult::default()
                });
            });
            states(&crate::verdict::verdict(&record).headline, &[part]);
        }
    }
}
