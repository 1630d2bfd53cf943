//! Reads how the blocks of a job are verified.

use super::content::{PATTERN_FORM, block_pattern};
use super::reader::JobReader;
use super::values::GivenValue;
use crate::job_file::jobs::FioJob;
use crate::job_file::translation::Translated;
use diskproof_model::rw::Rw;
use diskproof_model::shape::BlockPattern;

/// The names of fio's checksums begin with one of these.
const CHECKSUMS: [&str; 4] = ["md5", "crc", "sha", "xxhash"];

impl<'a> JobReader<'a> {
    /// The kind of `verify`. fio writes null, but does not check it.
    fn verified_kind(&self) -> Translated<Option<GivenValue<'a>>> {
        match self.value("verify")? {
            Some(given) if matches!(given.text, "0" | "none" | "null") => Ok(None),
            given => Ok(given),
        }
    }

    /// `verify_pattern`, which may contain the offset of the block (`%o`).
    fn verify_pattern(&self) -> Translated<Option<BlockPattern>> {
        self.parsed("verify_pattern", |text| {
            block_pattern(text).ok_or(PATTERN_FORM)
        })
    }

    /// Notes how diskproof's own checksums differ from what fio would write and check.
    fn note_checksums(&self, kind: &str) -> Translated<()> {
        if is_pattern(kind) || self.is_set("verify_pattern") {
            self.note(
                "verify uses diskproof's own checksums, checked after all writes; the blocks \
                 contain random data instead of the pattern",
            );
        } else {
            self.note(
                "verify uses diskproof's own checksums, checked after all writes; fio cannot read \
                 them",
            );
        }
        if self.bytes("verify_backlog", 0)? > 0 {
            self.note(
                "verify_backlog: everything is read back after all writes; fio reads back while \
                 it writes",
            );
        }
        Ok(())
    }
}

/// Whether fio verifies with a pattern, and not only with a checksum.
fn is_pattern(kind: &str) -> bool {
    matches!(kind, "meta" | "pattern" | "pattern_hdr")
}

fn is_checksum(kind: &str) -> bool {
    CHECKSUMS.iter().any(|checksum| kind.starts_with(checksum))
}

/// `verify`, `verify_only`, `do_verify`, `verify_backlog` and `verify_pattern`.
pub(super) fn set_verify(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let only_checks = reader.flag("verify_only")?;
    let Some(given) = reader.verified_kind()? else {
        if only_checks {
            return Err(reader.error("verify_only", "it needs verify, such as crc32c"));
        }
        return Ok(());
    };
    if given.text == "pattern" {
        let Some(pattern) = reader.verify_pattern()? else {
            return Err(given.error("it needs the pattern; add one such as verify_pattern=0x55"));
        };
        job.flags.shape.content.known = Some(pattern);
    }
    if !is_pattern(given.text) && !is_checksum(given.text) {
        return Err(given.error(
            "diskproof verifies with checksums; use one, such as crc32c, or remove the option",
        ));
    }
    let rw = job.rw();
    if rw.leaves_no_content() {
        return Err(given.error("trims leave nothing to verify; remove the option"));
    }
    if only_checks && rw.is_mix() {
        return Err(reader.error(
            "verify_only",
            "the blocks that a mix wrote are unknown; use rw=read over the written blocks",
        ));
    }
    let is_checked = reader.switch("do_verify")?.unwrap_or(true) || only_checks;
    let writes = rw.changes_blocks() && !only_checks;
    if is_checked {
        job.flags.verify = Some(true);
    }
    job.flags.signs_only = writes && !is_checked;
    if is_checked && writes && job.flags.shape.content.known.is_none() {
        reader.note_checksums(given.text)?;
    }
    if only_checks {
        job.flags.rw = Some(Rw {
            chains: Rw::READ.chains,
            ..rw
        });
    }
    Ok(())
}
