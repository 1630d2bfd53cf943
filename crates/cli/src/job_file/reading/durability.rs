//! Reads how writes become durable, and how long their data is expected to live.

use super::reader::JobReader;
use crate::job_file::jobs::FioJob;
use crate::job_file::translation::Translated;
use crate::workload::SyncedWrites;
use diskproof_model::op::OpKind;
use diskproof_model::plan::{RangeSync, WriteFlag};
use diskproof_model::shape::{FioSync, FioSyncCall, WriteLife};

/// The values of `sync`, with the flag of the open file.
const SYNCS: [(&str, Option<WriteFlag>); 5] = [
    ("none", None),
    ("sync", Some(WriteFlag::OpenSync)),
    ("dsync", Some(WriteFlag::OpenDsync)),
    ("0", None),
    ("1", Some(WriteFlag::OpenSync)),
];

/// The values of `write_hint`.
const LIVES: [(&str, Option<WriteLife>); 5] = [
    ("none", None),
    ("short", Some(WriteLife::Short)),
    ("medium", Some(WriteLife::Medium)),
    ("long", Some(WriteLife::Long)),
    ("extreme", Some(WriteLife::Extreme)),
];

impl JobReader<'_> {
    /// `sync_file_range`, such as `wait_before,write:8`: after every eighth write, or after each
    /// without a number.
    pub(super) fn range_sync(&self) -> Translated<Option<FioSync>> {
        let Some(given) = self.value("sync_file_range")? else {
            return Ok(None);
        };
        let mut steps = RangeSync::NOTHING;
        for part in given.text.split(',') {
            let (word, _) = part.split_once(':').unwrap_or((part, ""));
            match word.trim() {
                "wait_before" => steps.wait_before = true,
                "write" => steps.write = true,
                "wait_after" => steps.wait_after = true,
                _ => {
                    return Err(given.error(
                        "use wait_before, write and wait_after, with commas between them, and a \
                         number of writes behind a colon",
                    ));
                }
            }
        }
        let writes = match given.text.split_once(':') {
            Some((_, number)) => leading_number(number),
            None => 1,
        };
        // As in fio.
        if writes == 0 {
            return Ok(None);
        }
        if self.text("ioengine") == Some("posixaio") {
            return Err(given.error("with posixaio fio syncs the whole file; use fsync"));
        }
        Ok(Some(FioSync {
            call: FioSyncCall::FileRange(steps),
            writes,
        }))
    }
}

/// The number with which a text begins, as C's atoi reads it; 0 without one.
fn leading_number(text: &str) -> u32 {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit());
    text[..end.unwrap_or(text.len())].parse().unwrap_or(0)
}

/// `write_hint`, of jobs that write.
pub(super) fn set_write_life(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let life = reader.choice("write_hint", &LIVES)?.flatten();
    if job.rw().makes(OpKind::Write) {
        job.flags.shape.threads.write_life = life;
    } else if life.is_some() {
        let why = "no effect in this job";
        reader.translation.ignore_option("write_hint", why);
    }
    Ok(())
}

/// Why `sync_file_range` is refused in a job whose requests are not in the order of fio.
const WITHOUT_RANGES: &str = "syncs of a range follow writes only with `diskproof as fio`, in jobs \
                              whose requests have the order of fio; use fsync, fdatasync or \
                              end-fsync";

/// Why it is refused together with a sync at the end, whose time could not be distinguished from
/// those of the ranges.
const BESIDE_SYNC_AT_END: &str = "end_fsync and fsync_on_close are not supported beside it; remove \
                                  one of the two, or use fsync";

/// `sync`, `fsync`, `fdatasync`, `sync_file_range`, `end_fsync` and `fsync_on_close`, of jobs that
/// write.
pub(super) fn set_syncs(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let opened_with = reader.choice("sync", &SYNCS)?.flatten();
    let fsync = reader.count("fsync")?;
    let fdatasync = reader.count("fdatasync")?;
    let at_end = reader.flag("end_fsync")? || reader.flag("fsync_on_close")?;
    if !job.rw().makes(OpKind::Write) {
        if reader.is_set("sync_file_range") {
            let why = "no effect in this job";
            reader.translation.ignore_option("sync_file_range", why);
        }
        return Ok(());
    }
    let mut calls_often = fsync.is_some() || fdatasync.is_some();
    if reader.range_sync()?.is_some() {
        if !reader.has_fio_order()? {
            return Err(reader.error("sync_file_range", WITHOUT_RANGES));
        }
        if at_end && !calls_often {
            return Err(reader.error("sync_file_range", BESIDE_SYNC_AT_END));
        }
        calls_often = true;
    }
    let flags = &mut job.flags;
    flags.fsync = fsync;
    flags.fdatasync = fdatasync;
    if calls_often {
        flags.shape.threads.opened_with = opened_with;
    } else {
        flags.sync = opened_with.map(SyncedWrites);
    }
    // With other syncs, one at the end would add at most one, which a plan cannot express.
    if at_end && !calls_often && opened_with.is_none() {
        flags.end_fsync = Some(true);
    }
    Ok(())
}
