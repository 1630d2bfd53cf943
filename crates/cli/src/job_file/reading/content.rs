//! Reads the options about the data of writes: patterns, compressible and repeated data.

use super::JobReader;
use crate::job_file::translation::JobFileError;
use crate::workload::WorkloadFlags;
use diskproof_compat::fio_values::Amount;
use diskproof_model::shape::WriteContent;

/// fio's default (`buffer_compress_chunk`).
const CHUNK_BYTES_DEFAULT: u64 = 512;
/// fio's default (`dedupe_working_set_percentage`).
const WORKING_SET_PERCENT: u64 = 5;
/// fio's limit (`MAX_PATTERN_SIZE`).
const PATTERN_BYTES_MAX: usize = 512;

impl JobReader<'_> {
    /// What a job writes; `None` for new random data each time. With verify, fio ignores all of it.
    pub(super) fn content(
        &self,
        flags: &WorkloadFlags,
    ) -> Result<Option<WriteContent>, JobFileError> {
        let pattern = self.pattern()?;
        let compressed = self.percent("buffer_compress_percentage")?;
        let repeat_percent = self.percent("dedupe_percentage")?;
        let writes = flags.other_sizes.iter().map(|share| share.block_bytes);
        let smallest = u64::from(writes.min().or(flags.sizes().min()).unwrap_or(1));
        let is_filled = pattern.is_some() || self.flag("zero_buffers")?;
        let content = WriteContent {
            filler_percent: if !(compressed > 0 || repeat_percent > 0) && is_filled {
                100
            } else {
                compressed
            },
            chunk_bytes: match self.bytes("buffer_compress_chunk", CHUNK_BYTES_DEFAULT)? {
                0 => smallest,
                chunk => chunk.min(smallest),
            } as u32,
            filler: pattern.unwrap_or_default(),
            repeat_percent,
            ..self.repeated(smallest, repeat_percent)?
        };
        let scrambles = self.switch("scramble_buffers")?;
        if content.filler_percent == 100 && !content.filler.is_empty() && scrambles == Some(true) {
            return Err(self.error(
                "scramble_buffers",
                "changes the pattern of each write, which is not supported; remove it",
            ));
        }
        if content.filler_percent > 0 || repeat_percent > 0 {
            return Ok(Some(content));
        }
        // Without either, each buffer keeps its first data.
        let keeps_buffers = scrambles == Some(false) && !self.flag("refill_buffers")?;
        Ok(keeps_buffers.then_some(WriteContent {
            keeps_buffers,
            ..content
        }))
    }

    /// Which blocks are repeated.
    fn repeated(&self, smallest: u64, percent: u8) -> Result<WriteContent, JobFileError> {
        let modes = [("repeat", false), ("working_set", true)];
        if self.choice("dedupe_mode", &modes)? != Some(true) || percent == 0 {
            return Ok(WriteContent::default());
        }
        let Some(Amount::Bytes(size)) = self.amount("size")? else {
            return Err(self.error(
                "dedupe_mode",
                "a working set is a percentage of the size; set size in bytes",
            ));
        };
        let share = self.bytes("dedupe_working_set_percentage", WORKING_SET_PERCENT)?;
        let blocks = (size / 100).saturating_mul(share.min(100)) / smallest.max(1);
        Ok(WriteContent {
            repeated_blocks: blocks.max(1),
            shares_repeated: self.flag("dedupe_global")?,
            ..WriteContent::default()
        })
    }

    fn pattern(&self) -> Result<Option<Vec<u8>>, JobFileError> {
        self.parsed("buffer_pattern", |text| {
            let fits = |bytes: &Vec<u8>| (1..=PATTERN_BYTES_MAX).contains(&bytes.len());
            pattern_bytes(text).filter(fits).ok_or(
                "write up to 512 bytes as hexadecimal digits (0xabcd), numbers (-12), text in \
                 double quotes, or several of them; files are not supported",
            )
        })
    }
}

/// The bytes of a pattern: hexadecimal digits in their order, decimal numbers with the lowest byte
/// first and without leading zeros, and text.
fn pattern_bytes(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (inside, behind) = quoted.split_once('"')?;
            bytes.extend(inside.as_bytes());
            rest = behind;
        } else if let Some(digits) = rest.strip_prefix("0x").or(rest.strip_prefix("0X")) {
            let end = digits.find(|c: char| !c.is_ascii_hexdigit());
            let end = end.unwrap_or(digits.len());
            // The 0 of another number, as in 0xff0x14.
            let end = if digits[end..].starts_with(['x', 'X']) {
                end.checked_sub(1)?
            } else {
                end
            };
            let (hex, behind) = digits.split_at(end);
            let even = format!("{}{hex}", if hex.len() % 2 == 1 { "0" } else { "" });
            if even.is_empty() {
                return None;
            }
            for pair in even.as_bytes().chunks(2) {
                bytes.push(u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?);
            }
            rest = behind;
        } else {
            let sign = usize::from(rest.starts_with(['-', '+']));
            let digits = rest[sign..].find(|c: char| !c.is_ascii_digit());
            let mut end = digits.map_or(rest.len(), |digits| sign + digits);
            if rest[end..].starts_with(['x', 'X']) {
                end = end.checked_sub(1)?;
            }
            let number: i32 = rest[..end].parse().ok()?;
            let all = number.to_le_bytes();
            let last = all.iter().rposition(|byte| *byte != 0).unwrap_or(0);
            bytes.extend(&all[..=last]);
            rest = &rest[end..];
        }
    }
    Some(bytes)
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
            ("%o", None),
        ] {
            assert_eq!(pattern_bytes(text).as_deref(), bytes, "{text}");
        }
    }
}
