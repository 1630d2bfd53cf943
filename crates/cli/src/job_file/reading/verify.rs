//! Reads how the blocks of a job are verified.

use super::content::{PATTERN_FORM, block_pattern};
use super::order::has_queue;
use super::reader::JobReader;
use super::values::GivenValue;
use crate::job_file::jobs::FioJob;
use crate::job_file::translation::Translated;
use diskproof_model::rw::Rw;
use diskproof_model::shape::BlockPattern;

/// The names of fio's checksums begin with one of these.
const CHECKSUMS: [&str; 4] = ["md5", "crc", "sha", "xxhash"];

/// The bytes of a block that fio's header takes before the checksum.
const HEADER_BYTES: u64 = 40;
/// The bytes behind it that the checksum of a kind of `verify` takes in fio 3.33.
const CHECKSUM_BYTES: [(&str, u64); 15] = [
    ("crc7", 1),
    ("crc16", 2),
    ("crc32", 4),
    ("crc32c", 4),
    ("crc32c-intel", 4),
    ("crc64", 8),
    ("xxhash", 4),
    ("md5", 16),
    ("sha1", 20),
    ("sha256", 64),
    ("sha512", 128),
    ("sha3-224", 28),
    ("sha3-256", 32),
    ("sha3-384", 48),
    ("sha3-512", 64),
];

/// The passes of a job with `verify`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VerifyPasses {
    /// The job writes signed blocks, then reads them back and checks them.
    WriteThenCheck,
    /// The job writes signed blocks, which a later job may check (`do_verify=0`).
    WriteSigned,
    /// The job reads, and checks what it reads.
    CheckReads,
    /// The job reads and checks the blocks that it would have written (`verify_only`).
    CheckInsteadOfWriting,
}

impl VerifyPasses {
    fn check(self) -> bool {
        match self {
            Self::WriteThenCheck | Self::CheckReads | Self::CheckInsteadOfWriting => true,
            Self::WriteSigned => false,
        }
    }
}

/// Sets the verification that `verify`, `verify_only`, `do_verify` and `verify_pattern` describe.
/// Everything is checked before the job changes.
pub(super) fn set_verify(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let only_checks = reader.flag("verify_only")?;
    let Some(kind) = reader.verify_kind(job.rw())? else {
        if only_checks {
            return Err(reader.error("verify_only", "it needs verify, such as crc32c"));
        }
        return Ok(());
    };
    let pattern = reader.checked_pattern(&kind)?;
    let rw = job.rw();
    refuse_unverifiable(reader, &kind, only_checks, rw)?;
    let passes = reader.verify_passes(only_checks, rw)?;
    if passes.check() {
        reader.check_header_place(&kind)?;
    }
    if passes == VerifyPasses::WriteThenCheck {
        reader.note_unread_laps()?;
        if pattern.is_none() {
            reader.note_checksums(kind.text)?;
        }
    }

    // As in fio, which reads nothing back after the time of the job.
    job.flags.shape.content.is_checked_in_time = reader.translation.is_as_fio();
    job.flags.shape.content.known = pattern;
    job.flags.signs_only = passes == VerifyPasses::WriteSigned;
    if passes.check() {
        job.flags.verify = Some(true);
        job.flags.shape.ends.at_bad_block = reader.ends_at_bad_block();
    }
    if passes == VerifyPasses::CheckInsteadOfWriting {
        job.flags.rw = Some(Rw {
            chains: Rw::READ.chains,
            ..rw
        });
    }
    Ok(())
}

fn refuse_unverifiable(
    reader: &JobReader<'_>,
    kind: &GivenValue<'_>,
    only_checks: bool,
    rw: Rw,
) -> Translated<()> {
    if !has_pattern(kind.text) && !is_checksum(kind.text) && kind.text != "null" {
        return Err(kind.error(
            "diskproof verifies with checksums; use one, such as crc32c, or remove the option",
        ));
    }
    if rw.leaves_no_content() {
        return Err(kind.error("trims leave nothing to verify; remove the option"));
    }
    if only_checks && rw.is_mix() {
        return Err(reader.error(
            "verify_only",
            "the blocks that a mix wrote are unknown; use rw=read over the written blocks",
        ));
    }
    Ok(())
}

/// True for the kinds of `verify` that write a pattern, alone or with a header.
fn has_pattern(kind: &str) -> bool {
    matches!(kind, "meta" | "pattern" | "pattern_hdr")
}

fn is_checksum(kind: &str) -> bool {
    CHECKSUMS.iter().any(|checksum| kind.starts_with(checksum))
}

impl<'a> JobReader<'a> {
    /// The value of `verify`; `None` where fio checks nothing. It does not check null.
    fn verify_kind(&self, rw: Rw) -> Translated<Option<GivenValue<'a>>> {
        match self.value("verify")? {
            Some(given) if given.text == "0" => Ok(None),
            Some(given) if given.text == "null" && !self.reads_null_back(rw)? => Ok(None),
            None => self.pattern_alone(),
            given => Ok(given),
        }
    }

    /// As in fio, `verify_pattern` alone means `verify=pattern_hdr`, a header before the pattern.
    fn pattern_alone(&self) -> Translated<Option<GivenValue<'a>>> {
        let given = self.value("verify_pattern")?;
        Ok(given.map(|given| GivenValue {
            text: "pattern_hdr",
            ..given
        }))
    }

    /// True if a job with `verify=null` reads back what it wrote. It does so with checksums here;
    /// where they are impossible, the read-back is left out.
    fn reads_null_back(&self, rw: Rw) -> Translated<bool> {
        let mut has_one_size = true;
        for kind in rw.kinds() {
            has_one_size &= self.only_size(kind)? == self.only_size(rw.first())?;
        }
        let is_checked = self.optional_flag("do_verify")?.unwrap_or(true);
        Ok(self.translation.is_as_fio()
            && rw.changes_blocks()
            && !rw.leaves_no_content()
            && is_checked
            && has_one_size
            && !self.flag("verify_only")?)
    }

    /// The pattern of `verify=pattern`, with which every block is compared. It may contain the
    /// offset of the block (`%o`). `None` for the other kinds: diskproof's checksums replace them.
    fn checked_pattern(&self, kind: &GivenValue<'_>) -> Translated<Option<BlockPattern>> {
        if kind.text != "pattern" {
            return Ok(None);
        }
        let pattern = self.parsed("verify_pattern", |text| {
            block_pattern(text).ok_or(PATTERN_FORM)
        })?;
        match pattern {
            Some(pattern) => Ok(Some(pattern)),
            None => Err(kind.error("it needs the pattern; add one such as verify_pattern=0x55")),
        }
    }

    /// Refuses a `verify_offset` with which fio finds its own blocks bad: it exchanges the header
    /// with the bytes at the offset, and the two must not overlap.
    fn check_header_place(&self, kind: &GivenValue<'_>) -> Translated<()> {
        let offset = self.bytes("verify_offset", 0)?;
        let checksum = CHECKSUM_BYTES.iter().find(|(name, _)| *name == kind.text);
        let Some((_, bytes)) = checksum else {
            return Ok(());
        };
        if !self.translation.is_as_fio() || offset == 0 || offset >= HEADER_BYTES + bytes {
            return Ok(());
        }
        let least = HEADER_BYTES + bytes;
        let why = format!(
            "fio's header with {} has {least} bytes, and one that overlaps its new place fails in \
             fio with error 84; write {least} or more, or remove the option",
            kind.text
        );
        Err(self.error("verify_offset", why))
    }

    fn verify_passes(&self, only_checks: bool, rw: Rw) -> Translated<VerifyPasses> {
        // Read even with verify_only, which overrides it: an invalid value is an error.
        let is_checked = self.optional_flag("do_verify")?.unwrap_or(true);
        if only_checks {
            return Ok(VerifyPasses::CheckInsteadOfWriting);
        }
        // As in fio, do_verify is only about the blocks that the job itself wrote.
        Ok(if !rw.changes_blocks() {
            VerifyPasses::CheckReads
        } else if is_checked {
            VerifyPasses::WriteThenCheck
        } else {
            VerifyPasses::WriteSigned
        })
    }

    /// True if a bad block ends the job. As in fio, all do without `continue_on_error`.
    fn ends_at_bad_block(&self) -> bool {
        let goes_on = matches!(self.text("continue_on_error"), Some("verify" | "all" | "1"));
        self.translation.is_as_fio() && !goes_on
    }

    /// Notes that nothing is read back where only time ends a job with a queue.
    fn note_unread_laps(&self) -> Translated<()> {
        let has_queue = self.text("ioengine").is_some_and(has_queue);
        let is_timed = self.flag("time_based")? && self.time("runtime")? > 0;
        if self.translation.is_as_fio() && has_queue && is_timed {
            self.note(
                "verify with time_based reads nothing back, because the time is over then; fio \
                 reads each lap back before the next one",
            );
        }
        Ok(())
    }

    /// Notes how diskproof's own checksums differ from what fio would write and check.
    fn note_checksums(&self, kind: &str) -> Translated<()> {
        if has_pattern(kind) || self.is_set("verify_pattern") {
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
