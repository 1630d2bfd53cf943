//! Reads the options about the data of writes: patterns, compressible and repeated data.

use super::JobReader;
use crate::job_file::error::JobFileError;
use crate::job_file::jobs::JobBlocks;
use crate::job_file::numbers::Amount;
use crate::job_file::sections::Setting;
use diskproof_model::plan::BlockShare;
use diskproof_model::shape::WriteContent;

/// fio's default (`buffer_compress_chunk`).
const CHUNK_BYTES_DEFAULT: u64 = 512;
/// fio's default (`dedupe_working_set_percentage`).
const WORKING_SET_PERCENT: u64 = 5;
/// fio's limit (`MAX_PATTERN_SIZE`).
const PATTERN_BYTES_MAX: usize = 512;

impl JobReader<'_, '_> {
    /// What a job writes; `None` for new random data each time. With verify, fio ignores all of it.
    pub(super) fn content(
        &self,
        blocks: &JobBlocks,
        write_mix: &[BlockShare],
    ) -> Result<Option<WriteContent>, JobFileError> {
        let pattern = self.pattern()?;
        let (compressed, repeated) = (
            self.percent("buffer_compress_percentage")?,
            self.percent("dedupe_percentage")?,
        );
        let sizes = write_mix.iter().map(|share| u64::from(share.block_bytes));
        let smallest = sizes.min().unwrap_or_else(|| blocks.smallest());
        let is_chosen = compressed > 0 || repeated > 0;
        let content = WriteContent {
            filler_percent: match (&pattern, compressed) {
                _ if is_chosen => compressed,
                (Some(_), _) => 100,
                (None, _) if self.flag("zero_buffers")? => 100,
                (None, _) => 0,
            },
            chunk_bytes: match self.count("buffer_compress_chunk", CHUNK_BYTES_DEFAULT)? {
                0 => smallest,
                chunk => chunk.min(smallest),
            } as u32,
            filler: pattern.unwrap_or_default(),
            repeat_percent: repeated,
            ..self.repeated(smallest, repeated)?
        };
        if content.filler_percent > 0 || repeated > 0 {
            if let Some(setting) = self.setting("scramble_buffers")
                && content.filler_percent == 100
                && !content.filler.is_empty()
                && self.flag("scramble_buffers")?
            {
                return Err(setting.error(
                    "changes the pattern of each write, which is not supported; remove it",
                ));
            }
            return Ok(Some(content));
        }
        // Without either, each buffer keeps its first data.
        let is_scrambled = self.switch("scramble_buffers")?.unwrap_or(true);
        let keeps_buffers = !is_scrambled && !self.flag("refill_buffers")?;
        Ok(keeps_buffers.then_some(WriteContent {
            keeps_buffers,
            ..content
        }))
    }

    /// Which blocks are repeated.
    fn repeated(&self, smallest: u64, percent: u8) -> Result<WriteContent, JobFileError> {
        let is_set = match self.value("dedupe_mode")? {
            None | Some((_, "repeat")) => false,
            Some((_, "working_set")) => percent > 0,
            Some((setting, _)) => return Err(setting.error("use repeat or working_set")),
        };
        if !is_set {
            return Ok(WriteContent::default());
        }
        let Some(Amount::Bytes(size)) = self.amount("size")? else {
            return Err(self
                .setting("dedupe_mode")
                .map_or(&self.section.source, |setting| &setting.source)
                .error("a working set is a percentage of the size; set size in bytes"));
        };
        let share = self.count("dedupe_working_set_percentage", WORKING_SET_PERCENT)?;
        let blocks = (size / 100).saturating_mul(share.min(100)) / smallest.max(1);
        Ok(WriteContent {
            repeated_blocks: blocks.max(1),
            shares_repeated: self.flag("dedupe_global")?,
            ..WriteContent::default()
        })
    }

    fn percent(&self, name: &str) -> Result<u8, JobFileError> {
        match self.count(name, 0)? {
            percent @ 0..=100 => Ok(percent as u8),
            _ => Err(self
                .setting(name)
                .map_or(&self.section.source, |setting| &setting.source)
                .error("write a percentage from 0 to 100")),
        }
    }

    fn pattern(&self) -> Result<Option<Vec<u8>>, JobFileError> {
        let Some((setting, value)) = self.value("buffer_pattern")? else {
            return Ok(None);
        };
        pattern_bytes(value)
            .filter(|bytes| (1..=PATTERN_BYTES_MAX).contains(&bytes.len()))
            .map(Some)
            .ok_or_else(|| wrong_pattern(setting))
    }
}

fn wrong_pattern(setting: &Setting) -> JobFileError {
    setting.error(
        "write up to 512 bytes as hexadecimal digits (0xabcd), numbers (-12), text in double \
         quotes, or several of them; files are not supported",
    )
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
            let end = digits
                .find(|c: char| !c.is_ascii_hexdigit())
                .unwrap_or(digits.len());
            // The 0 of another number, as in 0xff0x14.
            let end = match digits[end..].starts_with(['x', 'X']) {
                true => end.checked_sub(1)?,
                false => end,
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
            let used = all
                .iter()
                .rposition(|byte| *byte != 0)
                .map_or(1, |at| at + 1);
            bytes.extend(&all[..used]);
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
