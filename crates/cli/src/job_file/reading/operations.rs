//! Reads the options about operations: direction, order, sizes, distribution and rate. Their number
//! and their target are read elsewhere.

use super::JobReader;
use crate::job_file::sections::Setting;
use crate::job_file::translation::Translated;
use crate::workload::{
    BLOCK_BYTES_MAX, BlockSize, BlockSplit, Bytes, Rate, ReadShare, ValueError, WorkloadFlags,
};
use diskproof_model::op::OpKind;
use diskproof_model::plan::BlockShare;
use diskproof_model::rw::{Order, Rw};
use diskproof_model::shape::{RandomRun, RunFollow, ZoneStride};

/// fio's default.
const BLOCK_BYTES_DEFAULT: u64 = 4096;
/// A range of sizes has at most so many of them.
const RANGE_SIZES_MAX: u64 = 4096;
/// The form of `bssplit`.
const SPLIT_FORM: &str = "write size/percent pairs, such as 4k/60:64k/40";
/// Shares of reads are whole permille. A rate may differ from that of the job by this part of it.
const RATE_DEVIATION_MAX: f64 = 0.01;
/// fio's defaults (`FIO_DEF_ZIPF` and others).
const DISTRIBUTIONS: [(&str, &str); 3] = [("zipf", "1.1"), ("pareto", "0.2"), ("normal", "0")];

impl JobReader<'_> {
    /// Order and direction, and the number behind them; 0 without one. A mix without reads or
    /// without writes is none.
    pub(super) fn rw(&self) -> Translated<(Rw, i64)> {
        let (mut rw, mut step) = self.written_rw()?;
        if rw.is_mix() {
            match self.read_share(rw)? {
                Some(ReadShare(0)) => rw.chains = Rw::RANDWRITE.chains,
                Some(ReadShare(1000)) => rw.chains = Rw::RANDREAD.chains,
                _ => {}
            }
        }
        let mut has_random = false;
        for kind in rw.kinds() {
            has_random |= self.random_percent(kind)? > 0;
        }
        // Where fio counts down from a negative number, the next random offset never comes.
        if rw.order == Order::Random && (step < 0 || !has_random) {
            rw.order = Order::Sequential;
            step = 0;
        }
        Ok((rw, step))
    }

    /// The percentage of a kind of operation that has random offsets: 0 or 100.
    pub(super) fn random_percent(&self, kind: OpKind) -> Translated<u64> {
        let Some((setting, value)) = self.value("percentage_random")? else {
            return Ok(100);
        };
        match self.size(setting, of_list(value, kind))? {
            percent @ (0 | 100) => Ok(percent),
            _ => Err(setting.error(
                "a direction is random or sequential here: write 0 or 100 for each, or two \
                 concurrent sections",
            )),
        }
    }

    fn written_rw(&self) -> Translated<(Rw, i64)> {
        let Some((setting, value)) = self.value("rw")? else {
            return Ok((Rw::READ, 0));
        };
        let (word, step) = value.split_once(':').unwrap_or((value, "0"));
        let rw = word.trim().parse::<Rw>();
        let rw = rw.map_err(|why| setting.error(why))?;
        let number = |text| self.size(setting, text);
        let step = match step.trim().strip_prefix('-') {
            Some(back) => -(number(back)? as i64),
            None => number(step.trim())? as i64,
        };
        Ok((rw, step))
    }

    /// `read:8k`, `read:-8k`, `randread:8` and `rw_sequencer`.
    pub(super) fn walk(&self, rw: Rw, step: i64, flags: &mut WorkloadFlags) -> Translated<()> {
        let follows = [
            ("sequential", RunFollow::Sequential),
            ("identical", RunFollow::Identical),
        ];
        let follow = self.choice("rw_sequencer", &follows)?;
        let follow = follow.unwrap_or(RunFollow::Sequential);
        match (rw.order, flags.bs.map(|block| i64::from(block.0))) {
            (_, _) if step == 0 => {}
            (Order::Random, _) => {
                let why = || format!("write 1 to {} blocks at each offset", u32::MAX);
                let run_ops = u32::try_from(step).map_err(|_| self.error("rw", why()))?;
                flags.shape.random_run = (run_ops > 1).then_some(RandomRun { run_ops, follow });
            }
            (_, None) => {
                return Err(self.error("rw", "gaps need a single block size; use bs instead"));
            }
            (_, Some(block)) if step > 0 && (step % block == 0 || rw.is_mix()) => {
                flags.stride = Some(Bytes((block + step) as u64));
            }
            // A stride is a multiple of the block; zones of one block are not.
            (_, Some(block)) if step > 0 => {
                flags.shape.zone_stride = Some(ZoneStride {
                    zone_bytes: block as u64,
                    skip_bytes: step as u64,
                });
            }
            (_, Some(block)) if step == -2 * block => flags.backward = Some(true),
            (_, Some(block)) => {
                let why = format!(
                    "backward jobs visit every block, which needs a step of two blocks; write -{} \
                     for this bs, or remove the number",
                    2 * block
                );
                return Err(self.error("rw", why));
            }
        }
        Ok(())
    }

    /// The distance between the starts of requests with gaps that are zones.
    pub(super) fn gap_step(&self, flags: &WorkloadFlags) -> Translated<Option<u64>> {
        if self.zone_stride(flags.rw.unwrap_or(Rw::READ))?.is_some() {
            return Ok(None);
        }
        let zones = flags.shape.zone_stride;
        Ok(zones.map(|zones| zones.zone_bytes.saturating_add(zones.skip_bytes)))
    }

    /// From a list `reads,writes,trims`: the only value, or the one for this job's direction.
    pub(super) fn of_direction<'v>(
        &self,
        setting: &Setting,
        value: &'v str,
        rw: Rw,
    ) -> Translated<&'v str> {
        let mut all = rw.kinds().map(|kind| of_list(value, kind));
        let first = all.next().filter(|first| all.all(|other| other == *first));
        first.filter(|own| !own.is_empty()).ok_or_else(|| {
            setting.error(
                "reads and writes of a job share one value; write one value, or two concurrent \
                 sections",
            )
        })
    }

    /// The sizes of the reads, or of the only direction; and those of the writes, where they
    /// differ.
    pub(super) fn blocks(&self, rw: Rw, flags: &mut WorkloadFlags) -> Translated<()> {
        let own = self.blocks_of(rw.first())?;
        let other = match rw.kinds().last() {
            Some(kind) if kind != rw.first() => self.blocks_of(kind)?,
            _ => own.clone(),
        };
        if own != other && !rw.is_mix() {
            return Err(self.error(
                "bs",
                "a block is written as it was trimmed; use one size for writes and trims",
            ));
        }
        if own != other {
            flags.other_sizes = other;
        }
        match own.as_slice() {
            [one] => flags.bs = Some(BlockSize(one.block_bytes)),
            _ => flags.bssplit = Some(BlockSplit(own)),
        }
        Ok(())
    }

    fn blocks_of(&self, kind: OpKind) -> Translated<Vec<BlockShare>> {
        if let Some((setting, value)) = self.value("bssplit")? {
            return self.split(setting, of_list(value, kind));
        }
        // Of the two, fio takes the range.
        if let Some((setting, value)) = self.value("bsrange")? {
            let range = of_list(value, kind);
            let (low, high) = range.split_once(['-', ':']).unwrap_or((range, range));
            let size = |text: &str| self.size(setting, text.trim());
            let (low, high) = (size(low)?, size(high)?);
            let sizes = if kind.drops_blocks() {
                ranged_trims(low, high)
            } else {
                ranged(low, high)
            };
            let has_room = kind.drops_blocks() || high <= BLOCK_BYTES_MAX;
            return sizes.filter(|_| has_room).ok_or_else(|| {
                setting.error(format!(
                    "write a smaller and a larger size, at most {RANGE_SIZES_MAX} times as large \
                     and 1G"
                ))
            });
        }
        let given = self.value("bs")?;
        let given = given.map(|(setting, value)| (setting, of_list(value, kind)));
        // `4k,` sets the size of reads; writes keep the default.
        let Some((setting, own)) = given.filter(|(_, own)| !own.is_empty()) else {
            return Ok(one_size(BLOCK_BYTES_DEFAULT as u32));
        };
        // A block has the range of --bs, before any code narrows it.
        let block = self.size(setting, own)?.to_string().parse::<BlockSize>();
        let block = block.map_err(|why| setting.error(why))?;
        Ok(one_size(block.0))
    }

    fn split(&self, setting: &Setting, value: &str) -> Translated<Vec<BlockShare>> {
        let mut entries: Vec<(u64, Option<u32>)> = Vec::new();
        for entry in value.split(':').filter(|entry| !entry.is_empty()) {
            let (size, share) = entry.split_once('/').unwrap_or((entry, ""));
            let bytes = self.size(setting, size.trim())?;
            let share = match share.trim() {
                "" => None,
                share => Some(share.parse().map_err(|_| setting.error(SPLIT_FORM))?),
            };
            entries.push((bytes, share));
        }
        let shares = match entries.as_slice() {
            [] => return Err(setting.error(SPLIT_FORM)),
            // The only size has all operations, whatever its share is.
            [_] => vec![100],
            several => shares(several.iter().map(|(_, share)| *share)),
        };
        // fio never draws a size with a share of 0, but aligns to it.
        if entries.iter().any(|(bytes, _)| *bytes == 0) || shares.contains(&0) {
            return Err(setting.error("a size of 0 bytes, or with a share of 0; remove it"));
        }
        let pairs = entries.iter().zip(&shares);
        let pairs = pairs.map(|((bytes, _), share)| format!("{bytes}/{share}"));
        let mix = pairs.collect::<Vec<_>>().join(":").parse::<BlockSplit>();
        let mix = mix.map_err(|why| setting.error(why))?;
        Ok(match mix.0.as_slice() {
            [one] => one_size(one.block_bytes),
            _ => mix.0,
        })
    }

    /// The multiple of random offsets, where it is not the smallest block.
    pub(super) fn alignment(&self, rw: Rw, smallest: u64) -> Translated<Option<u32>> {
        let Some((setting, value)) = self.value("ba")? else {
            return Ok(None);
        };
        let align = self.size(setting, self.of_direction(setting, value, rw)?)?;
        // fio ignores it for sequential operations.
        if rw.order == Order::Sequential || align == 0 || align == smallest {
            return Ok(None);
        }
        let align = u32::try_from(align).map(Some);
        align.map_err(|_| setting.error("use less than 4g"))
    }

    /// The law of random offsets that are not all alike.
    pub(super) fn distribution(&self, rw: Rw, flags: &mut WorkloadFlags) -> Translated<()> {
        let given = self.value("random_distribution")?;
        let Some((setting, value)) = given.filter(|(_, value)| *value != "random") else {
            return Ok(());
        };
        if rw.order == Order::Sequential {
            return Ok(());
        }
        let (law, number) = value.split_once(':').unwrap_or((value, ""));
        let wrong = |why: ValueError| setting.error(why);
        if law == "zoned" {
            let zones = filled_zones(self.of_direction(setting, number, rw)?).ok_or_else(|| {
                let pairs = "such as zoned:60/10:30/20:10/70";
                setting.error(format!("write access/size pairs in percent, {pairs}"))
            })?;
            flags.zones = Some(zones.parse().map_err(wrong)?);
            return Ok(());
        }
        let known = DISTRIBUTIONS.iter().find(|(name, _)| *name == law);
        let Some((_, default)) = known.filter(|_| !number.contains(':')) else {
            return Err(setting.error(
                "this distribution is not supported; use random, zipf:THETA, pareto:POWER, \
                 normal:DEVIATION, or zoned:60/10:30/20:10/70",
            ));
        };
        let number = if number.is_empty() { default } else { number };
        flags.distribution = Some(format!("{law}:{number}").parse().map_err(wrong)?);
        Ok(())
    }

    /// Whether random offsets would be all alike.
    pub(super) fn is_uniform(&self) -> Translated<bool> {
        let given = self.value("random_distribution")?;
        Ok(given.is_none_or(|(_, value)| value == "random"))
    }

    /// Whether fio keeps a map of visited blocks: only with uniform random offsets.
    pub(super) fn is_mapped(&self, rw: Rw) -> Translated<bool> {
        Ok(rw.order == Order::Random && self.is_uniform()? && !self.flag("norandommap")?)
    }

    pub(super) fn read_share(&self, rw: Rw) -> Translated<Option<ReadShare>> {
        if !rw.is_mix() {
            return Ok(None);
        }
        let reads = self.number("rwmixread", 100)?;
        let writes = self.number("rwmixwrite", 100)?;
        // Of the two, the later one counts.
        let reads = if self.is_later("rwmixwrite", "rwmixread") {
            writes.map(|writes| 100 - writes)
        } else {
            reads
        };
        Ok(Some(ReadShare(reads.unwrap_or(50) as u16 * 10)))
    }

    /// Sets the operations per second of one copy. As in fio, each direction has its rate whatever
    /// the mix is, so the share of the reads follows from the rates.
    pub(super) fn rate(&self, rw: Rw, flags: &mut WorkloadFlags) -> Translated<()> {
        let (setting, value, is_bytes) = match (self.value("rate")?, self.value("rate_iops")?) {
            (None, None) => return Ok(()),
            (Some(_), Some((setting, _))) => {
                return Err(setting.error("rate and rate_iops exclude each other; use one of them"));
            }
            (None, Some((setting, value))) => (setting, value, false),
            (Some((setting, value)), None) => (setting, value, true),
        };
        // Also the rate of a direction that the job does not have.
        let all = value.split(',').map(str::trim);
        for text in all.filter(|text| !text.is_empty()) {
            self.size(setting, text)?;
        }
        let number = |kind: OpKind| {
            let rate = match of_list(value, kind) {
                "" => 0.0,
                text => self.size(setting, text)? as f64,
            };
            if !is_bytes || rate == 0.0 {
                return Ok(rate);
            }
            let block = match (kind, flags.other_sizes.as_slice()) {
                (OpKind::Write, [one]) => Some(one.block_bytes),
                (OpKind::Write, [_, ..]) => None,
                _ => flags.bs.map(|block| block.0),
            };
            let block = block.ok_or_else(|| {
                setting.error("a rate in bytes needs a single block size; use rate_iops")
            })?;
            Ok(rate / f64::from(block))
        };
        let rate = if !rw.is_mix() {
            number(rw.first())?
        } else {
            let (reads, writes) = (number(OpKind::Read)?, number(OpKind::Write)?);
            if (reads == 0.0) != (writes == 0.0) {
                return Err(setting.error(
                    "a rate for only one direction is not supported; write two concurrent \
                     sections",
                ));
            }
            if reads > 0.0 {
                flags.rwmixread = Some(share_of_rates(reads, writes).ok_or_else(|| {
                    setting.error(
                        "the rates of reads and writes differ too much for one workload; \
                         write two concurrent sections",
                    )
                })?);
                // Each direction has a schedule of its own; the two have a common multiple.
                flags.shape.even_mix = self.text("rate_process") != Some("poisson");
            }
            reads + writes
        };
        flags.rate = (rate > 0.0).then_some(Rate(rate));
        Ok(())
    }
}

/// The share of the reads with which both rates are kept.
fn share_of_rates(reads: f64, writes: f64) -> Option<ReadShare> {
    let permille = (reads / (reads + writes) * 1000.0).round();
    let kept = |rate: f64, permille: f64| {
        let kept = (reads + writes) * permille / 1000.0;
        (kept - rate).abs() <= RATE_DEVIATION_MAX * rate
    };
    (kept(reads, permille) && kept(writes, 1000.0 - permille)).then_some(ReadShare(permille as u16))
}

fn one_size(block_bytes: u32) -> Vec<BlockShare> {
    vec![BlockShare::new(block_bytes, 1)]
}

/// From a list `reads,writes,trims`, the part of a kind of operation: without one of its own, the
/// last before it.
pub(super) fn of_list(value: &str, kind: OpKind) -> &str {
    let before = OpKind::REQUESTS.iter().take_while(|of| **of != kind);
    let parts = value.split(',').map(str::trim);
    parts.take(before.count() + 1).last().unwrap_or_default()
}

/// The sizes of `bsrange`: multiples of the smaller size, where the larger one is a multiple all
/// with the same share. fio draws from `low` to `low + high`, cuts that to a multiple of `low`, and
/// then to `high`.
fn ranged(low: u64, high: u64) -> Option<Vec<BlockShare>> {
    if low == 0 || low > high || high > u64::from(u32::MAX) || high / low > RANGE_SIZES_MAX {
        return None;
    }
    if low == high {
        return Some(one_size(low as u32));
    }
    let mut shares: Vec<BlockShare> = Vec::new();
    for multiple in 1..=high / low + 1 {
        // The part of the draw that becomes this multiple.
        let until = (multiple * low).min(high);
        let weight = (until - ((multiple - 1) * low).min(high)) as u32;
        let block_bytes = (multiple * low).min(high) as u32;
        match shares.last_mut() {
            Some(last) if last.block_bytes == block_bytes => last.weight += weight,
            _ if weight > 0 => shares.push(BlockShare::new(block_bytes, weight)),
            _ => {}
        }
    }
    // All equal: small weights are easier to read.
    let first = shares[0].weight;
    if shares.iter().all(|share| share.weight == first) {
        shares.iter_mut().for_each(|share| share.weight = 1);
    }
    Some(shares)
}

/// The same for trims, which need no memory: of more sizes than a mix holds, some at equal
/// distances stand for all.
fn ranged_trims(low: u64, high: u64) -> Option<Vec<BlockShare>> {
    let most = u64::from(u32::MAX) / low.max(1) * low;
    let high = high.min(most);
    if low > 0 && low < high && high / low > RANGE_SIZES_MAX {
        let step = (high / RANGE_SIZES_MAX).next_multiple_of(low);
        let sizes = (0..RANGE_SIZES_MAX).map(|number| low + number * step);
        let sizes = sizes.take_while(|size| *size <= high);
        return Some(sizes.map(|size| BlockShare::new(size as u32, 1)).collect());
    }
    ranged(low, high)
}

/// The percent of each size of `bssplit`. As in fio, sizes without one divide what the others
/// leave, all behind 100 % is cut off, and the last size has the rest.
fn shares(given: impl Iterator<Item = Option<u32>> + Clone) -> Vec<u32> {
    let named: u32 = given.clone().flatten().fold(0, u32::saturating_add);
    let open = given.clone().filter(Option::is_none).count().max(1) as u32;
    let equal = 100_u32.saturating_sub(named) / open;
    let mut left = 100;
    let shares = given.map(|share| {
        let share = share.unwrap_or(equal).min(left);
        left -= share;
        share
    });
    let mut shares: Vec<u32> = shares.collect();
    if let Some(last) = shares.last_mut() {
        *last += left;
    }
    shares
}

/// Fills in missing sizes of zones with equal shares of the rest, as fio does.
fn filled_zones(text: &str) -> Option<String> {
    let zone = |zone: &str| -> Option<(f64, Option<f64>)> {
        let (access, size) = zone.split_once('/')?;
        let size = match size {
            "" => None,
            size => Some(size.parse().ok()?),
        };
        Some((access.parse().ok()?, size))
    };
    let zones: Vec<_> = text.split(':').map(zone).collect::<Option<_>>()?;
    let open = zones.iter().filter(|(_, size)| size.is_none()).count();
    let named: f64 = zones.iter().filter_map(|(_, size)| *size).sum();
    let rest = (100.0 - named) / open.max(1) as f64;
    let zones = zones.iter();
    let filled = zones.map(|(access, size)| format!("{access}/{}", size.unwrap_or(rest)));
    Some(filled.collect::<Vec<_>>().join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bsrange_has_the_shares_of_fio() {
        let sizes = |low, high| {
            let shares = ranged(low, high)?.into_iter();
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
