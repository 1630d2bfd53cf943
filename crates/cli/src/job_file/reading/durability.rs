//! Reads how writes become durable.

use super::reader::JobReader;
use crate::job_file::jobs::FioJob;
use crate::job_file::translation::Translated;
use crate::workload::SyncedWrites;
use diskproof_model::op::OpKind;
use diskproof_model::plan::WriteFlag;
use diskproof_model::shape::WriteLife;

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

/// `sync`, `fsync`, `fdatasync`, `end_fsync` and `fsync_on_close`, of jobs that write.
pub(super) fn set_syncs(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let opened_with = reader.choice("sync", &SYNCS)?.flatten();
    let fsync = reader.count("fsync")?;
    let fdatasync = reader.count("fdatasync")?;
    let at_end = reader.flag("end_fsync")? || reader.flag("fsync_on_close")?;
    if !job.rw().makes(OpKind::Write) {
        return Ok(());
    }
    let flags = &mut job.flags;
    flags.fsync = fsync;
    flags.fdatasync = fdatasync;
    let calls_often = fsync.is_some() || fdatasync.is_some();
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
