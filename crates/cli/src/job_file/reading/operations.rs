//! Reads the options about operations: direction, order, sizes, distribution and rate. Their number
//! and their target are read elsewhere.

use super::{JobReader, OptionValue};
use crate::job_file::error::JobFileError;
use crate::job_file::jobs::{JobBlocks, JobDistribution, WalkOrder};
use crate::job_file::notes::TranslationNote;
use crate::job_file::numbers;
use crate::job_file::sections::Setting;
use crate::workload::{BlockSize, BlockSplit, Order, Rw, RwDirection, ValueError};
use diskproof_model::plan::BlockShare;

/// fio's default.
const BLOCK_BYTES_DEFAULT: u64 = 4096;
/// The largest size of a block.
const BLOCK_BYTES_MAX: u64 = 64 << 20;
/// A range of sizes has at most so many of them.
const RANGE_SIZES_MAX: u64 = 4096;
/// fio's default exponent (`FIO_DEF_ZIPF`).
const ZIPF_DEFAULT: &str = "1.1";
/// fio's default (`FIO_DEF_PARETO`).
const PARETO_DEFAULT: &str = "0.2";
/// fio's default.
const NORMAL_DEFAULT: &str = "0";

impl<'a> JobReader<'a, '_> {
    pub(super) fn rw(&self) -> Result<(Rw, Option<OptionValue<'a>>), JobFileError> {
        let Some((setting, value)) = self.value("rw")? else {
            return Ok((
                Rw {
                    order: Order::Sequential,
                    direction: RwDirection::Read,
                },
                None,
            ));
        };
        let (word, postfix) = value
            .split_once(':')
            .map_or((value, None), |(word, postfix)| {
                (word.trim(), Some((setting, postfix.trim())))
            });
        let word = if word == "randreadwrite" {
            "randrw"
        } else {
            word
        };
        Ok((
            word.parse::<Rw>()
                .map_err(|why| setting.error(why.to_string()))?,
            postfix,
        ))
    }

    pub(super) fn walk_order(
        &self,
        rw: Rw,
        postfix: Option<OptionValue<'_>>,
        blocks: &JobBlocks,
    ) -> Result<WalkOrder, JobFileError> {
        let Some((setting, postfix)) = postfix else {
            return Ok(WalkOrder::Plain);
        };
        let (is_back, size) = postfix
            .strip_prefix('-')
            .map_or((false, postfix), |size| (true, size));
        let bytes = numbers::bytes(size, self.base).map_err(|why| setting.error(why))?;
        if rw.order == Order::Random {
            // The number of operations for each offset: see `random_run`.
            return match is_back {
                false => Ok(WalkOrder::Plain),
                true => Err(setting.error("the number of blocks at each offset must be positive")),
            };
        }
        match (is_back, blocks) {
            (_, _) if bytes == 0 => Ok(WalkOrder::Plain),
            (_, JobBlocks::Mix(..)) => {
                Err(setting.error("gaps need a single block size; use bs instead of bssplit"))
            }
            (false, JobBlocks::One(block)) => Ok(WalkOrder::Stride(block + bytes)),
            (true, JobBlocks::One(block)) if bytes == 2 * block => Ok(WalkOrder::Backward),
            (true, JobBlocks::One(block)) => Err(setting.error(format!(
                "backward jobs visit every block, which needs a step of two blocks; write -{} for \
                 this bs, or remove the number",
                2 * block
            ))),
        }
    }

    /// From a list `reads,writes,trims`: the only value, or the one for this job's direction.
    pub(super) fn of_direction<'v>(
        &self,
        setting: &Setting,
        value: &'v str,
        rw: Rw,
    ) -> Result<&'v str, JobFileError> {
        match (
            of_list(value, RwDirection::Read),
            of_list(value, RwDirection::Write),
        ) {
            (first, _) if rw.direction == RwDirection::Read && !first.is_empty() => Ok(first),
            (_, second) if rw.direction == RwDirection::Write && !second.is_empty() => Ok(second),
            (first, second) if rw.direction == RwDirection::Mixed && first == second => Ok(first),
            (_, second)
                if rw.direction == RwDirection::TrimWrite
                    && second == of_list(value, RwDirection::Trim) =>
            {
                Ok(second)
            }
            _ if rw.direction == RwDirection::Trim => Ok(of_list(value, RwDirection::Trim)),
            _ => Err(setting.error(
                "reads and writes of a job share one value; write one value, or two concurrent \
                 sections",
            )),
        }
    }

    /// The sizes of the reads, or of the only direction; and those of the writes, where they
    /// differ.
    pub(super) fn blocks(&self, rw: Rw) -> Result<(JobBlocks, Vec<BlockShare>), JobFileError> {
        match rw.direction {
            RwDirection::Mixed => {
                let reads = self.blocks_of(RwDirection::Read)?;
                let writes = self.blocks_of(RwDirection::Write)?;
                if let (JobBlocks::One(bytes), Some((setting, _))) = (&writes, self.value("bs")?) {
                    let checked: Result<BlockSize, ValueError> = bytes.to_string().parse();
                    checked.map_err(|why| setting.error(why.to_string()))?;
                }
                let own = match reads == writes {
                    true => Vec::new(),
                    false => writes.shares(),
                };
                Ok((reads, own))
            }
            RwDirection::TrimWrite => {
                let trims = self.blocks_of(RwDirection::Trim)?;
                match (
                    self.blocks_of(RwDirection::Write)? == trims,
                    self.value("bs")?,
                ) {
                    (false, Some((setting, _))) => Err(setting.error(
                        "a block is written as it was trimmed; use one size for writes and trims",
                    )),
                    _ => Ok((trims, Vec::new())),
                }
            }
            direction => Ok((self.blocks_of(direction)?, Vec::new())),
        }
    }

    fn blocks_of(&self, direction: RwDirection) -> Result<JobBlocks, JobFileError> {
        self.split(direction)?
            .map_or_else(|| self.plain_blocks(direction), Ok)
    }

    /// The multiple of random offsets, where it is not the smallest block.
    pub(super) fn alignment(
        &self,
        rw: Rw,
        blocks: &JobBlocks,
    ) -> Result<Option<u32>, JobFileError> {
        let Some((setting, value)) = self.value("blockalign")? else {
            return Ok(None);
        };
        let align = numbers::bytes(self.of_direction(setting, value, rw)?, self.base)
            .map_err(|why| setting.error(why))?;
        // fio ignores it for sequential operations.
        if rw.order == Order::Sequential || align == 0 || align == blocks.smallest() {
            return Ok(None);
        }
        u32::try_from(align)
            .map(Some)
            .map_err(|_| setting.error("use less than 4g"))
    }

    fn plain_blocks(&self, direction: RwDirection) -> Result<JobBlocks, JobFileError> {
        // Of the two, fio takes the range.
        if let Some((setting, value)) = self.value("bsrange")? {
            let range = of_list(value, direction);
            let (low, high) = range.split_once(['-', ':']).unwrap_or((range, range));
            let size = |text: &str| {
                numbers::bytes(text.trim(), self.base).map_err(|why| setting.error(why))
            };
            let (low, high) = (size(low)?, size(high)?);
            let most = RANGE_SIZES_MAX;
            return ranged(low, high).ok_or_else(|| {
                setting.error(format!(
                    "write a smaller and a larger size, at most {most} times as large and 64M"
                ))
            });
        }
        let Some((setting, value)) = self.value("bs")? else {
            return Ok(JobBlocks::One(BLOCK_BYTES_DEFAULT));
        };
        let own = match of_list(value, direction) {
            // `4k,` sets the size of reads; writes keep the default.
            "" => return Ok(JobBlocks::One(BLOCK_BYTES_DEFAULT)),
            own => own,
        };
        match numbers::bytes(own, self.base) {
            Ok(0) => Err(setting.error("a block of 0 bytes transfers nothing; use at least 512")),
            // A block has the range of --bs, before any code narrows it.
            Ok(bytes) => match bytes.to_string().parse::<BlockSize>() {
                Ok(block) => Ok(JobBlocks::One(u64::from(block.0))),
                Err(why) => Err(setting.error(why.to_string())),
            },
            Err(why) => Err(setting.error(why)),
        }
    }

    fn split(&self, direction: RwDirection) -> Result<Option<JobBlocks>, JobFileError> {
        let Some((setting, value)) = self.value("bssplit")? else {
            return Ok(None);
        };
        let mut entries = Vec::new();
        for entry in of_list(value, direction)
            .split(':')
            .filter(|entry| !entry.is_empty())
        {
            let (size, share) = entry.split_once('/').unwrap_or((entry, ""));
            let bytes = numbers::bytes(size.trim(), self.base).map_err(|why| setting.error(why))?;
            // fio never draws a size with a share of 0, but aligns to it.
            if bytes == 0 || share.trim() == "0" {
                return Err(setting.error("a size of 0 bytes, or with a share of 0; remove it"));
            }
            entries.push(format!("{bytes}/{}", share.trim()));
        }
        if entries.is_empty() {
            return Err(setting.error("write size/percent pairs, such as 4k/60:64k/40"));
        }
        let mix: BlockSplit = match entries.as_slice() {
            [one] => one.split('/').next().unwrap_or_default().parse(),
            several => several.join(":").parse(),
        }
        .map_err(|why: ValueError| setting.error(why.to_string()))?;
        Ok(Some(match mix.0.as_slice() {
            [one] => JobBlocks::One(u64::from(one.block_bytes)),
            _ => JobBlocks::Mix(mix.0),
        }))
    }

    pub(super) fn distribution(&self, rw: Rw) -> Result<JobDistribution, JobFileError> {
        if rw.order == Order::Sequential {
            return Ok(JobDistribution::Uniform);
        }
        let Some((setting, value)) = self
            .value("random_distribution")?
            .filter(|(_, value)| *value != "random")
        else {
            return Ok(JobDistribution::Uniform);
        };
        match value.split_once(':').unwrap_or((value, "")) {
            (law @ ("zipf" | "pareto" | "normal"), number) if !number.contains(':') => {
                let number = match (law, number) {
                    ("zipf", "") => ZIPF_DEFAULT,
                    ("pareto", "") => PARETO_DEFAULT,
                    ("normal", "") => NORMAL_DEFAULT,
                    (_, number) => number,
                };
                Ok(JobDistribution::Skewed(format!("{law}:{number}")))
            }
            ("zoned", zones) => {
                let zones = self.of_direction(setting, zones, rw)?;
                filled_zones(zones)
                    .map(JobDistribution::Zones)
                    .ok_or_else(|| {
                        setting.error(
                            "write access/size pairs in percent, such as zoned:60/10:30/20:10/70",
                        )
                    })
            }
            _ => Err(setting.error(
                "this distribution is not supported; use random, zipf:THETA, pareto:POWER, \
                 normal:DEVIATION, or zoned:60/10:30/20:10/70",
            )),
        }
    }

    /// Whether fio keeps a map of visited blocks: only with uniform random offsets.
    pub(super) fn is_mapped(&self, rw: Rw) -> Result<bool, JobFileError> {
        let is_uniform = self
            .value("random_distribution")?
            .is_none_or(|(_, value)| value == "random");
        Ok(rw.order == Order::Random && is_uniform && !self.flag("norandommap")?)
    }

    pub(super) fn read_share(&self, rw: Rw) -> Result<Option<u64>, JobFileError> {
        if rw.direction != RwDirection::Mixed {
            return Ok(None);
        }

        let (reads, writes) = (self.count("rwmixread", 50)?, self.count("rwmixwrite", 50)?);
        // Of the two, the later one counts.
        let (share, name) = if self.position("rwmixwrite") > self.position("rwmixread") {
            (100_u64.checked_sub(writes), "rwmixwrite")
        } else {
            (Some(reads), "rwmixread")
        };
        match share.filter(|share| *share <= 100) {
            Some(share) => Ok(Some(share)),
            None => Err(self
                .setting(name)
                .map_or(&self.section.source, |setting| &setting.source)
                .error(format!("{name} is a percentage from 0 to 100"))),
        }
    }

    /// Operations per second of one copy.
    pub(super) fn rate(
        &mut self,
        rw: Rw,
        blocks: &JobBlocks,
        write_mix: &[BlockShare],
    ) -> Result<Option<f64>, JobFileError> {
        let (setting, value, unit) = match (self.value("rate")?, self.value("rate_iops")?) {
            (None, None) => return Ok(None),
            (Some(_), Some((setting, _))) => {
                return Err(setting.error("rate and rate_iops exclude each other; use one of them"));
            }
            (None, Some((setting, value))) => (setting, value, 1),
            (Some((setting, value)), None) => match blocks {
                JobBlocks::One(block) if write_mix.is_empty() => (setting, value, *block),
                _ => {
                    return Err(
                        setting.error("a rate in bytes needs a single block size; use rate_iops")
                    );
                }
            },
        };
        let number = |text: &str| {
            numbers::bytes(text, self.base)
                .map(|rate| rate as f64 / unit as f64)
                .map_err(|why| setting.error(why))
        };
        let mut parts = value.split(',').map(str::trim);
        let reads = parts
            .next()
            .filter(|text| !text.is_empty())
            .map(number)
            .transpose()?;
        let mut next = |before: Option<f64>| match parts.next() {
            None => Ok(before),
            Some("") => Ok(None),
            Some(text) => number(text).map(Some),
        };
        let writes = next(reads)?;
        let trims = next(writes)?;
        let rate = match (rw.direction, reads, writes) {
            (RwDirection::Read, rate, _) | (RwDirection::Write, _, rate) => {
                rate.filter(|rate| *rate > 0.0)
            }
            (RwDirection::Trim | RwDirection::TrimWrite, ..) => trims.filter(|rate| *rate > 0.0),
            (RwDirection::Mixed, Some(reads), Some(writes)) => {
                // fio applies the rate of each direction, whatever the mix is.
                let share = self.read_share(rw)?.unwrap_or(50) as f64 / 100.0;
                if (reads - (reads + writes) * share).abs() > 1e-6 * (reads + writes) {
                    return Err(setting.error(format!(
                        "the rates of reads and writes contradict the mix of {:.0} % reads; change \
                         them, or write two concurrent sections",
                        share * 100.0
                    )));
                }
                Some(reads + writes)
            }
            (RwDirection::Mixed, ..) => {
                return Err(setting.error(
                    "a rate for only one direction is not supported; write two concurrent sections",
                ));
            }
        };
        if rate.is_some() {
            self.notes.add(TranslationNote::Rate, &self.section.name);
        }
        Ok(rate)
    }
}

/// From a list `reads,writes,trims`, the part of a direction: without one of its own, the first.
pub(super) fn of_list(value: &str, direction: RwDirection) -> &str {
    let mut parts = value.split(',').map(str::trim);
    let first = parts.next().unwrap_or_default();
    match direction {
        RwDirection::Read | RwDirection::Mixed => first,
        RwDirection::Write => parts.next().unwrap_or(first),
        RwDirection::Trim | RwDirection::TrimWrite => {
            let second = parts.next().unwrap_or(first);
            parts.next().unwrap_or(second)
        }
    }
}

/// The sizes of `bsrange`: multiples of the smaller size, where the larger one is a multiple all
/// with the same share. fio draws from `low` to `low + high`, cuts that to a multiple of `low`, and
/// then to `high`.
fn ranged(low: u64, high: u64) -> Option<JobBlocks> {
    if low == 0 || low > high || high > BLOCK_BYTES_MAX || high / low > RANGE_SIZES_MAX {
        return None;
    }
    if low == high {
        return Some(JobBlocks::One(low));
    }
    let mut shares: Vec<BlockShare> = Vec::new();
    for multiple in 1..=high / low + 1 {
        // The part of the draw that becomes this multiple.
        let until = (multiple * low).min(high);
        let weight = (until - ((multiple - 1) * low).min(high)) as u32;
        let block_bytes = (multiple * low).min(high) as u32;
        match shares.last_mut() {
            Some(last) if last.block_bytes == block_bytes => last.weight += weight,
            _ if weight > 0 => shares.push(BlockShare {
                block_bytes,
                weight,
            }),
            _ => {}
        }
    }
    // All equal: small weights are easier to read.
    let first = shares[0].weight;
    if shares.iter().all(|share| share.weight == first) {
        shares.iter_mut().for_each(|share| share.weight = 1);
    }
    Some(JobBlocks::Mix(shares))
}

/// Fills in missing sizes of zones with equal shares of the rest, as fio does.
fn filled_zones(text: &str) -> Option<String> {
    let zones: Vec<(f64, Option<f64>)> = text
        .split(':')
        .map(|zone| {
            let (access, size) = zone.split_once('/')?;
            let size = if size.is_empty() {
                None
            } else {
                Some(size.parse().ok()?)
            };
            Some((access.parse().ok()?, size))
        })
        .collect::<Option<_>>()?;
    let open = zones.iter().filter(|(_, size)| size.is_none()).count();
    let rest =
        (100.0 - zones.iter().filter_map(|(_, size)| *size).sum::<f64>()) / open.max(1) as f64;
    Some(
        zones
            .iter()
            .map(|(access, size)| format!("{access}/{}", size.unwrap_or(rest)))
            .collect::<Vec<_>>()
            .join(":"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bsrange_has_the_shares_of_fio() {
        let sizes = |low, high| {
            let blocks = ranged(low, high)?;
            let shares = blocks.shares().into_iter();
            Some(
                shares
                    .map(|s| (s.block_bytes, s.weight))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            sizes(4096, 12288),
            Some(vec![(4096, 1), (8192, 1), (12288, 1)])
        );
        // 4096..14096: 4k up to 8192, 8k up to 12288, the rest is 12288, cut to 10000.
        assert_eq!(
            sizes(4096, 10_000),
            Some(vec![(4096, 4096), (8192, 4096), (10_000, 1808)])
        );
        assert_eq!(sizes(4096, 4096), Some(vec![(4096, 1)]));
        assert_eq!(
            (sizes(0, 4096), sizes(8192, 4096), sizes(1, 4097)),
            (None, None, None)
        );
    }
}
