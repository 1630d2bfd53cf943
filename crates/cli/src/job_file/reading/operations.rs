//! Reads the options about operations: direction, order, sizes, distribution and rate. Their number
//! and their target are read elsewhere.

use super::{JobReader, OptionValue};
use crate::job_file::error::JobFileError;
use crate::job_file::jobs::{JobBlocks, JobDistribution, WalkOrder};
use crate::job_file::notes::TranslationNote;
use crate::job_file::numbers;
use crate::job_file::sections::Setting;
use crate::workload::{Order, Rw, RwDirection};

/// fio's default.
const BLOCK_BYTES_DEFAULT: u64 = 4096;
/// fio's default exponent (`FIO_DEF_ZIPF`).
const ZIPF_DEFAULT: &str = "1.1";

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
        if word.contains("trim") {
            return Err(setting.error("trims are not supported; remove this job"));
        }
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
            return match bytes {
                1 if !is_back => Ok(WalkOrder::Plain),
                _ => Err(setting.error(
                    "several consecutive blocks at each random offset are not supported; use a \
                     larger bs, or remove the number",
                )),
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
                "backward jobs visit every block, which takes a step of two blocks; write -{} for \
                 this bs, or remove the number",
                2 * block
            ))),
        }
    }

    /// From a list `reads,writes,trims`: the only value, or the one for this job's direction.
    fn of_direction<'v>(
        &self,
        setting: &Setting,
        value: &'v str,
        rw: Rw,
    ) -> Result<&'v str, JobFileError> {
        let mut parts = value.split(',').map(str::trim);
        let first = parts.next().unwrap_or_default();
        // In fio `4k,` leaves writes at the default, which hardly any author intends.
        let second = parts.next().unwrap_or(first);
        match rw.direction {
            RwDirection::Read if !first.is_empty() => Ok(first),
            RwDirection::Write if !second.is_empty() => Ok(second),
            RwDirection::Mixed if first == second => Ok(first),
            _ => Err(setting.error(
                "reads and writes of one job share one value; write one value, or two sections \
                 that run together",
            )),
        }
    }

    pub(super) fn blocks(&self, rw: Rw) -> Result<JobBlocks, JobFileError> {
        let blocks = self
            .split(rw)?
            .map_or_else(|| self.one_block(rw).map(JobBlocks::One), Ok)?;
        if let Some((setting, value)) = self.value("blockalign")? {
            let align = numbers::bytes(self.of_direction(setting, value, rw)?, self.base)
                .map_err(|why| setting.error(why))?;
            // fio ignores it for sequential operations.
            if align != blocks.smallest() && align != 0 && rw.order == Order::Random {
                return Err(setting.error(format!(
                    "offsets are multiples of the smallest block, {}; remove the option, or change \
                     bs",
                    blocks.smallest()
                )));
            }
        }
        Ok(blocks)
    }

    fn one_block(&self, rw: Rw) -> Result<u64, JobFileError> {
        if let Some((setting, value)) = self.value("bsrange")? {
            let range = self.of_direction(setting, value, rw)?;
            let (low, high) = range.split_once(['-', ':']).unwrap_or((range, range));
            return match (
                numbers::bytes(low.trim(), self.base),
                numbers::bytes(high.trim(), self.base),
            ) {
                (Ok(low), Ok(high)) if low == high && low > 0 => Ok(low),
                (Ok(_), Ok(_)) => Err(setting.error(
                    "fio's 'bsrange' is a mix of block sizes; use bssplit, such as 4k/50:8k/50",
                )),
                (Err(why), _) | (_, Err(why)) => Err(setting.error(why)),
            };
        }
        let Some((setting, value)) = self.value("bs")? else {
            return Ok(BLOCK_BYTES_DEFAULT);
        };
        match numbers::bytes(self.of_direction(setting, value, rw)?, self.base) {
            Ok(0) => Err(setting.error("a block of 0 bytes transfers nothing; use at least 512")),
            Ok(bytes) => Ok(bytes),
            Err(why) => Err(setting.error(why)),
        }
    }

    fn split(&self, rw: Rw) -> Result<Option<JobBlocks>, JobFileError> {
        let Some((setting, value)) = self.value("bssplit")? else {
            return Ok(None);
        };
        let (mut entries, mut smallest) = (Vec::new(), u64::MAX);
        for entry in self
            .of_direction(setting, value, rw)?
            .split(':')
            .filter(|entry| !entry.is_empty())
        {
            let (size, share) = entry.split_once('/').unwrap_or((entry, ""));
            let bytes = numbers::bytes(size.trim(), self.base).map_err(|why| setting.error(why))?;
            // fio never draws a size with a share of 0, but aligns to it.
            if bytes == 0 || share.trim() == "0" {
                return Err(setting.error("a size of 0 bytes, or with a share of 0; remove it"));
            }
            smallest = smallest.min(bytes);
            entries.push(format!("{bytes}/{}", share.trim()));
        }
        match entries.as_slice() {
            [] => Err(setting.error("write size/percent pairs, such as 4k/60:64k/40")),
            [_] => Ok(Some(JobBlocks::One(smallest))),
            _ => Ok(Some(JobBlocks::Mix(entries.join(":"), smallest))),
        }
    }

    pub(super) fn distribution(
        &mut self,
        rw: Rw,
        blocks: &JobBlocks,
    ) -> Result<JobDistribution, JobFileError> {
        if rw.order == Order::Sequential {
            return Ok(JobDistribution::Uniform);
        }
        let Some((setting, value)) = self
            .value("random_distribution")?
            .filter(|(_, value)| *value != "random")
        else {
            if self.is_mapped(rw)? {
                let remark = if matches!(blocks, JobBlocks::Mix(..)) {
                    TranslationNote::NoMapForMix
                } else {
                    TranslationNote::NoMap
                };
                self.notes.add(remark, &self.section.name);
            }
            return Ok(JobDistribution::Uniform);
        };
        match value.split_once(':').unwrap_or((value, "")) {
            ("zipf", "") => Ok(JobDistribution::Zipf(ZIPF_DEFAULT.to_owned())),
            ("zipf", theta) if !theta.contains(':') => Ok(JobDistribution::Zipf(theta.to_owned())),
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
                "this distribution is not supported; use random, zipf:THETA, or \
                 zoned:60/10:30/20:10/70",
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
                .error(format!("{name} is a share in percent, 0 to 100"))),
        }
    }

    /// Operations per second of one copy.
    pub(super) fn rate(&mut self, rw: Rw, blocks: &JobBlocks) -> Result<Option<f64>, JobFileError> {
        let (setting, value, unit) = match (self.value("rate")?, self.value("rate_iops")?) {
            (None, None) => return Ok(None),
            (Some(_), Some((setting, _))) => {
                return Err(setting.error("rate and rate_iops exclude each other; use one of them"));
            }
            (None, Some((setting, value))) => (setting, value, 1),
            (Some((setting, value)), None) => match blocks {
                JobBlocks::One(block) => (setting, value, *block),
                JobBlocks::Mix(..) => {
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
        let writes = parts.next().map_or(Ok(reads), |text| {
            if text.is_empty() {
                Ok(None)
            } else {
                number(text).map(Some)
            }
        })?;
        let rate = match (rw.direction, reads, writes) {
            (RwDirection::Read, rate, _) | (RwDirection::Write, _, rate) => {
                rate.filter(|rate| *rate > 0.0)
            }
            (RwDirection::Mixed, Some(reads), Some(writes)) => {
                // fio applies the rate of each direction, whatever the mix is.
                let share = self.read_share(rw)?.unwrap_or(50) as f64 / 100.0;
                if (reads - (reads + writes) * share).abs() > 1e-6 * (reads + writes) {
                    return Err(setting.error(format!(
                        "the rates of reads and writes contradict the mix of {:.0} % reads; adapt \
                         them, or write two sections that run together",
                        share * 100.0
                    )));
                }
                Some(reads + writes)
            }
            (RwDirection::Mixed, ..) => {
                return Err(setting.error(
                    "a rate for only one direction is not supported; write two sections that run \
                     together",
                ));
            }
        };
        if rate.is_some() {
            self.notes.add(TranslationNote::Rate, &self.section.name);
        }
        Ok(rate)
    }
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
