//! Reads which data a job writes.

use super::reader::JobReader;
use crate::job_file::jobs::FioJob;
use crate::job_file::translation::Translated;
use crate::workload::WorkloadFlags;
use diskproof_compat::fio_values::Amount;
use diskproof_model::op::OpKind;
use diskproof_model::shape::{BlockPattern, PATTERN_BYTES_MAX, WriteContent};

/// The bytes of a `buffer_compress_chunk` without the option, as in fio.
const CHUNK_BYTES_DEFAULT: u64 = 512;
/// The `dedupe_working_set_percentage` without the option, as in fio.
const WORKING_SET_PERCENT: u64 = 5;
/// The percentage of a block that is all filler.
const ALL_PERCENT: u8 = 100;
/// An offset in a pattern (`%o`) takes this many bytes.
const OFFSET_BYTES: usize = 8;
/// The values of `dedupe_mode`; true where the repeated blocks are a set.
const DEDUPE_MODES: [(&str, bool); 2] = [("repeat", false), ("working_set", true)];
/// The form of a pattern, as errors describe it.
pub(super) const PATTERN_FORM: &str = "write up to 512 bytes as hexadecimal digits (0xabcd), \
                                       numbers (-12), text in double quotes, or several of them, \
                                       and %o for the offset in verify_pattern; files are not \
                                       supported";

/// Sets the data that a job writes; new random data each time without any of the options. With
/// verify, fio ignores all of them.
pub(super) fn set_content(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    if reader.translation.is_as_fio() {
        // As in fio, also the file of a job that only reads, or verifies.
        let content = reader.content(smallest_write(&job.flags));
        job.flags.shape.content.laid_out = content.unwrap_or_default();
    }
    let is_verified = job.flags.verify.is_some() || job.flags.signs_only;
    if job.rw().makes(OpKind::Write) && !is_verified {
        job.flags.shape.content.written = reader.content(smallest_write(&job.flags))?;
    }
    Ok(())
}

/// The smallest size of a write, in bytes.
fn smallest_write(flags: &WorkloadFlags) -> u64 {
    let writes = flags.other_sizes.iter().map(|share| share.block_bytes);
    let smallest = match writes.min() {
        Some(smallest) => smallest,
        None => flags.sizes().min().unwrap_or(1),
    };
    u64::from(smallest)
}

impl JobReader<'_> {
    /// The data of writes; `None` for new random data each time.
    fn content(&self, smallest_write: u64) -> Translated<Option<WriteContent>> {
        let pattern = self.buffer_pattern()?;
        let compressed = self.percent("buffer_compress_percentage")?;
        let repeat_percent = self.percent("dedupe_percentage")?;
        let is_filled = pattern.is_some() || self.flag("zero_buffers")?;
        let filler_percent = if is_filled && compressed == 0 && repeat_percent == 0 {
            ALL_PERCENT
        } else {
            compressed
        };
        let chunk_bytes = match self.bytes("buffer_compress_chunk", CHUNK_BYTES_DEFAULT)? {
            0 => smallest_write,
            chunk => chunk.min(smallest_write),
        };
        let content = WriteContent {
            filler_percent,
            chunk_bytes: chunk_bytes as u32,
            filler: pattern.unwrap_or_default(),
            repeat_percent,
            ..self.repeated_blocks(smallest_write, repeat_percent)?
        };
        let scrambles = self.optional_flag("scramble_buffers")?;
        if filler_percent == ALL_PERCENT && !content.filler.is_empty() && scrambles == Some(true) {
            return Err(self.error(
                "scramble_buffers",
                "changes the pattern of each write, which is not supported; remove it",
            ));
        }
        if filler_percent > 0 || repeat_percent > 0 {
            return Ok(Some(content));
        }
        // Without either, each buffer keeps its first data.
        if scrambles == Some(false) && !self.flag("refill_buffers")? {
            return Ok(Some(WriteContent {
                keeps_buffers: true,
                ..content
            }));
        }
        Ok(None)
    }

    /// The content in which blocks of a working set are repeated; without such a set the default.
    fn repeated_blocks(&self, smallest_write: u64, percent: u8) -> Translated<WriteContent> {
        let is_set = self.choice("dedupe_mode", &DEDUPE_MODES)? == Some(true);
        if !is_set || percent == 0 {
            return Ok(WriteContent::default());
        }
        let Some(Amount::Bytes(size)) = self.amount("size")? else {
            return Err(self.error(
                "dedupe_mode",
                "a working set is a percentage of the size; set size in bytes",
            ));
        };
        let share = self.bytes("dedupe_working_set_percentage", WORKING_SET_PERCENT)?;
        if self.bytes("nrfiles", 1)? != 1 {
            return Err(self.error(
                "dedupe_mode",
                "fio has a working set only for a single file",
            ));
        }
        if share.saturating_add(u64::from(percent)) > u64::from(ALL_PERCENT) {
            return Err(self.error(
                "dedupe_percentage",
                "the blocks of the working set are unique, so fio cannot repeat so many; both \
                 percentages together are at most 100",
            ));
        }
        let blocks = (size / 100).saturating_mul(share.min(100)) / smallest_write.max(1);
        Ok(WriteContent {
            repeated_blocks: blocks.max(1),
            shares_repeated: self.flag("dedupe_global")?,
            ..WriteContent::default()
        })
    }

    /// `buffer_pattern`, which is the same at all offsets.
    fn buffer_pattern(&self) -> Translated<Option<Vec<u8>>> {
        self.parsed("buffer_pattern", |text| match block_pattern(text) {
            Some(pattern) if pattern.offset_places.is_empty() => Ok(pattern.bytes),
            _ => Err(PATTERN_FORM),
        })
    }
}

/// Reads a pattern; `None` for one of another form, or longer than fio allows.
pub(super) fn block_pattern(text: &str) -> Option<BlockPattern> {
    let pattern = parse_pattern(text)?;
    if pattern.bytes.is_empty() || pattern.bytes.len() > PATTERN_BYTES_MAX {
        return None;
    }
    Some(pattern)
}

/// The bytes of a pattern: hexadecimal digits in their order, decimal numbers with the lowest byte
/// first and without leading zeros, text, and the place of the offset (`%o`).
fn parse_pattern(text: &str) -> Option<BlockPattern> {
    let mut pattern = BlockPattern::default();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix("%o") {
            pattern.offset_places.push(pattern.bytes.len());
            pattern.bytes.extend([0; OFFSET_BYTES]);
            rest = behind;
        } else if let Some(quoted) = rest.strip_prefix('"') {
            let (inside, behind) = quoted.split_once('"')?;
            pattern.bytes.extend(inside.as_bytes());
            rest = behind;
        } else if let Some(digits) = rest.strip_prefix("0x").or(rest.strip_prefix("0X")) {
            rest = take_hexadecimal(digits, &mut pattern.bytes)?;
        } else {
            rest = take_decimal(rest, &mut pattern.bytes)?;
        }
    }
    Some(pattern)
}

/// The length of the digits at the start of a text. The 0 of another number behind them, as in
/// `0xff0x14`, is none of them.
fn digits_end(text: &str, is_digit: fn(char) -> bool) -> Option<usize> {
    let end = text.find(|c| !is_digit(c)).unwrap_or(text.len());
    if text[end..].starts_with(['x', 'X']) {
        end.checked_sub(1)
    } else {
        Some(end)
    }
}

/// Adds the bytes of hexadecimal digits, and returns the text behind them.
fn take_hexadecimal<'t>(text: &'t str, bytes: &mut Vec<u8>) -> Option<&'t str> {
    let end = digits_end(text, |c| c.is_ascii_hexdigit())?;
    let (digits, behind) = text.split_at(end);
    if digits.is_empty() {
        return None;
    }
    let mut pairs = String::new();
    if digits.len() % 2 == 1 {
        pairs.push('0');
    }
    pairs.push_str(digits);
    for pair in pairs.as_bytes().chunks(2) {
        let pair = std::str::from_utf8(pair).ok()?;
        bytes.push(u8::from_str_radix(pair, 16).ok()?);
    }
    Some(behind)
}

/// Adds the bytes of a decimal number, and returns the text behind it.
fn take_decimal<'t>(text: &'t str, bytes: &mut Vec<u8>) -> Option<&'t str> {
    let sign = usize::from(text.starts_with(['-', '+']));
    let end = sign + digits_end(&text[sign..], |c| c.is_ascii_digit())?;
    let number: i32 = text[..end].parse().ok()?;
    let number_bytes = number.to_le_bytes();
    let last = number_bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .unwrap_or(0);
    bytes.extend(&number_bytes[..=last]);
    Some(&text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_the_bytes_of_fio() {
        for (text, bytes) in [
            ("0xabcdef01", Some(&[0xab, 0xcd, 0xef, 1][..])),
            ("0xabc", Some(&[0x0a, 0xbc])),
            ("\"hello\"-12", Some(b"hello\xf4\xff\xff\xff")),
            ("\"ab\"0xff0x1412", Some(b"ab\xff\x14\x12")),
            ("255", Some(&[255])),
            ("256", Some(&[0, 1])),
            ("0", Some(&[0])),
            ("12\"é\"", Some("\x0cé".as_bytes())),
            ("'file'", None),
            ("\"open", None),
            ("0x", None),
            ("5x", None),
            ("-", None),
            ("99999999999", None),
            ("%", None),
        ] {
            let pattern = parse_pattern(text);
            let found = pattern.as_ref().map(|pattern| pattern.bytes.as_slice());
            assert_eq!(found, bytes, "{text}");
        }
        let pattern = parse_pattern("\"ab\"%o0xff").unwrap();
        let mut block = [9; 14];
        pattern.fill(&mut block, 0x1000);
        // As fio 3.33 writes it.
        assert_eq!(block, *b"ab\0\x10\0\0\0\0\0\0\xffab\0");
        assert_eq!(pattern.difference(&block, 0x1000), None);
        assert!(pattern.difference(&block, 0x2000).is_some());
    }
}
