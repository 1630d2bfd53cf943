//! Reads the sizes of requests, and the multiple of their offsets.

use super::operations::{list_part, number_part};
use super::reader::JobReader;
use super::values::GivenValue;
use crate::job_file::jobs::{BLOCK_BYTES_DEFAULT, FioJob};
use crate::job_file::translation::Translated;
use crate::workload::{BLOCK_BYTES_MAX, BlockSize, BlockSplit, ValueError};
use diskproof_compat::SizeRange;
use diskproof_model::op::OpKind;
use diskproof_model::plan::BlockShare;
use diskproof_model::rw::{FIO_DIRECTIONS, Order};
use diskproof_model::shape::FioSizeShare;

/// The most sizes that a range of sizes has.
const RANGE_SIZES_MAX: u64 = 4096;
/// A percentage of all.
const PERCENT_ALL: u32 = 100;
/// The form of `bssplit`.
const SPLIT_FORM: &str = "write size/percent pairs, such as 4k/60:64k/40";

/// The part of `bssplit` or `bsrange` that is about a kind of operation.
#[derive(Clone, Copy)]
pub(super) struct SizesPart<'a> {
    /// The whole value, for errors.
    pub given: GivenValue<'a>,
    pub text: &'a str,
}

impl<'a> JobReader<'a> {
    /// The part of `bssplit` or `bsrange` about a kind of operation. `None` without the option, and
    /// where that part is empty, as that of the writes in `4k-8k,`: as in fio, `bs` decides then.
    pub(super) fn sizes_part(&self, name: &str, kind: OpKind) -> Translated<Option<SizesPart<'a>>> {
        let Some(given) = self.value(name)? else {
            return Ok(None);
        };
        match list_part(given.text, kind) {
            "" => Ok(None),
            text => Ok(Some(SizesPart { given, text })),
        }
    }

    /// The kind of operation whose sizes the requests of this kind have: with `bs_is_seq_rand` the
    /// sizes of reads are those of sequential requests, as in fio, and the sizes of writes those of
    /// random ones.
    pub(super) fn kind_of_sizes(&self, kind: OpKind) -> Translated<OpKind> {
        if !self.flag("bs_is_seq_rand")? {
            return Ok(kind);
        }
        Ok(match self.written_rw()?.rw.order {
            Order::Sequential => OpKind::Read,
            Order::Random => kind,
        })
    }

    /// Refuses random requests with `bs_is_seq_rand`, unless all of them write: fio aligns those of
    /// another kind to the sizes of that kind, and gives them the sizes of writes.
    fn check_sizes_by_order(&self) -> Translated<()> {
        let rw = self.written_rw()?.rw;
        let is_plain = !self.flag("bs_is_seq_rand")?
            || rw.order == Order::Sequential
            || (rw.is_only(OpKind::Write)
                && self.written_rw()?.step == 0
                && matches!(self.text("percentage_random"), None | Some("100")));
        if is_plain {
            return Ok(());
        }
        Err(self.error(
            "bs_is_seq_rand",
            "it is supported with sequential requests, and with random ones that all write; \
             use bs=READ,WRITE",
        ))
    }

    /// The sizes of a kind of operation, with their shares.
    fn blocks(&self, wanted: OpKind) -> Translated<Vec<BlockShare>> {
        let kind = self.kind_of_sizes(wanted)?;
        if let Some(split) = self.sizes_part("bssplit", kind)? {
            if self.has_fio_order()? {
                return shares_of_split(split.given, split.text);
            }
            return split_sizes(split.given, split.text);
        }
        // Of the two, fio takes the range.
        if let Some(range) = self.sizes_part("bsrange", kind)? {
            return range_sizes(range, kind);
        }
        Ok(one_size(self.only_size(kind)?))
    }

    /// The size of a kind of operation in `bs`.
    pub(super) fn only_size(&self, kind: OpKind) -> Translated<u32> {
        let Some(given) = self.value("bs")? else {
            return Ok(BLOCK_BYTES_DEFAULT);
        };
        match number_part(given.text, kind) {
            // `4k,` sets the size of reads; writes keep the default.
            "" => Ok(BLOCK_BYTES_DEFAULT),
            part => {
                // A block has the range of --bs, before any code narrows it.
                let text = given.size(part)?.to_string();
                let block: BlockSize = text.parse().map_err(|why: ValueError| given.error(why))?;
                Ok(block.0)
            }
        }
    }

    /// The smallest and the largest size that fio's output shows for a kind of operation, whether
    /// the job makes it or not.
    fn size_range(&self, kind: OpKind) -> Translated<SizeRange> {
        // Of the two that set both ends, the later one counts.
        let names = if self.is_later("bssplit", "bsrange") {
            ["bssplit", "bsrange"]
        } else {
            ["bsrange", "bssplit"]
        };
        for name in names {
            let Some(part) = self.sizes_part(name, kind)? else {
                continue;
            };
            let mut sizes = Vec::new();
            for entry in part.text.split([':', '-']) {
                let (size, _) = entry.split_once('/').unwrap_or((entry, ""));
                if !size.trim().is_empty() {
                    sizes.push(part.given.size(size.trim())?);
                }
            }
            if let (Some(least), Some(most)) = (sizes.iter().min(), sizes.iter().max()) {
                return Ok(SizeRange {
                    least: *least,
                    most: *most,
                });
            }
        }
        let Some(given) = self.value("bs")? else {
            return Ok(SizeRange::default());
        };
        match number_part(given.text, kind) {
            "" => Ok(SizeRange::default()),
            only => {
                let bytes = given.size(only)?;
                Ok(SizeRange {
                    least: bytes,
                    most: bytes,
                })
            }
        }
    }
}

impl JobReader<'_> {
    /// Refuses a `bsrange` behind a `bssplit` whose sizes fio would cut to the range, or would not
    /// make: with a range it gives none to a size without a percentage.
    fn check_range_of_split(&self, job: &FioJob) -> Translated<()> {
        if !self.translation.is_as_fio() || !self.is_later("bsrange", "bssplit") {
            return Ok(());
        }
        for kind in job.rw().kinds() {
            let Some(split) = self.sizes_part("bssplit", kind)? else {
                continue;
            };
            let range = self.size_range(kind)?;
            let mut fits = range.least == range.most || split.text.contains('/');
            for share in split_shares(split.given, split.text)? {
                let bytes = u64::from(share.bytes);
                fits &= bytes.is_multiple_of(range.least.max(1)) && bytes <= range.most;
            }
            if !fits {
                return Err(self.error(
                    "bsrange",
                    "fio cuts the sizes of the bssplit before it to this range, and moves nothing \
                     where one does not fit; write one of the two",
                ));
            }
        }
        Ok(())
    }
}

/// `bs`, `bsrange` and `bssplit`, as the load and the output have them.
pub(super) fn set_sizes(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    reader.check_range_of_split(job)?;
    reader.check_sizes_by_order()?;
    if reader.flag("bs_unaligned")? && reader.is_set("bsrange") && !reader.has_fio_order()? {
        return Err(reader.error(
            "bs_unaligned",
            "sizes of any number of bytes are made only by 'diskproof as fio'; use bssplit, such \
             as 4k/50:8k/50",
        ));
    }
    set_blocks(reader, job)?;
    for (index, kind) in FIO_DIRECTIONS.into_iter().enumerate() {
        job.shown.sizes[index] = reader.size_range(kind)?;
    }
    Ok(())
}

/// Sets the sizes of the reads, or of the only direction; and those of the writes, where they
/// differ.
fn set_blocks(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let rw = job.rw();
    let first_sizes = reader.blocks(rw.first())?;
    for kind in rw.kinds().skip(1) {
        let other_sizes = reader.blocks(kind)?;
        if other_sizes == first_sizes {
            continue;
        }
        if !rw.is_mix() {
            return Err(reader.error(
                "bs",
                "a block is written as it was trimmed; use one size for writes and trims",
            ));
        }
        job.flags.other_sizes = other_sizes;
    }
    if let [only] = first_sizes.as_slice() {
        job.flags.bs = Some(BlockSize(only.block_bytes));
    } else {
        job.flags.bs = None;
        job.flags.bssplit = Some(BlockSplit(first_sizes));
    }
    Ok(())
}

/// `ba`: the multiple of random offsets, where it is not the smallest block. fio ignores it for
/// sequential operations.
pub(super) fn set_alignment(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let Some(given) = reader.value("ba")? else {
        return Ok(());
    };
    if reader.has_fio_order()? {
        return Ok(());
    }
    let align = given.size(given.only_part(given.text, job.rw())?)?;
    let smallest = u64::from(job.flags.sizes().min().unwrap_or(1));
    if !job.is_random() || align == 0 || align == smallest {
        return Ok(());
    }
    let Ok(align_bytes) = u32::try_from(align) else {
        return Err(given.error("use less than 4g"));
    };
    job.flags.shape.order.align_bytes = Some(align_bytes);
    Ok(())
}

fn one_size(block_bytes: u32) -> Vec<BlockShare> {
    vec![BlockShare::new(block_bytes, 1)]
}

/// A size of `bssplit` with its percentage, if it has one.
struct SplitEntry {
    bytes: u64,
    percent: Option<u32>,
}

impl SplitEntry {
    fn parse(given: GivenValue<'_>, text: &str) -> Translated<Self> {
        let (size, percent) = text.split_once('/').unwrap_or((text, ""));
        Ok(Self {
            bytes: given.size(size.trim())?,
            percent: match percent.trim() {
                "" => None,
                percent => {
                    let percent: u32 = percent.parse().map_err(|_| given.error(SPLIT_FORM))?;
                    // As in fio, 0 is no percentage, and more than all is all.
                    (percent > 0).then_some(percent.min(PERCENT_ALL))
                }
            },
        })
    }
}

/// The sizes of a mix with their percentages, the rarest first, as fio draws them. fio aligns
/// offsets to a size without a share, too, and hangs where only that one fits.
pub(super) fn split_shares(given: GivenValue<'_>, text: &str) -> Translated<Vec<FioSizeShare>> {
    let entries = split_entries(given, text)?;
    let percents = fio_percents(given, &entries)?;
    refuse_undrawn(given, &entries, &percents)?;
    let mut shares = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        match u32::try_from(entry.bytes) {
            Ok(bytes @ 1..) => shares.push(FioSizeShare {
                bytes,
                percent: percents[index],
            }),
            _ => return Err(given.error("write sizes from 1 byte to less than 4 GiB")),
        }
    }
    // As in fio, which takes the rest of too much for a negative number.
    shares.sort_by_key(|share| (share.percent <= PERCENT_ALL, share.percent));
    let mut before: u32 = 0;
    let mut smallest = u32::MAX;
    let mut drawn = Vec::new();
    for share in shares {
        let percent = share.percent.min(PERCENT_ALL);
        // Behind all is only what fits where nothing before it does.
        if before >= PERCENT_ALL && share.bytes >= smallest {
            continue;
        }
        before += percent;
        if before >= PERCENT_ALL {
            smallest = smallest.min(share.bytes);
        }
        drawn.push(FioSizeShare { percent, ..share });
    }
    Ok(drawn)
}

/// The sizes that fio draws, with their shares as weights.
fn shares_of_split(given: GivenValue<'_>, text: &str) -> Translated<Vec<BlockShare>> {
    let mut shares = Vec::new();
    let split = split_shares(given, text)?;
    for share in drawn_shares(&split) {
        // Also of a size that only ends a file.
        shares.push(BlockShare::new(share.block_bytes, share.weight.max(1)));
    }
    match shares.as_slice() {
        [only] => Ok(one_size(only.block_bytes)),
        _ => Ok(shares),
    }
}

/// The entries of a mix, of which there is one at least.
fn split_entries(given: GivenValue<'_>, text: &str) -> Translated<Vec<SplitEntry>> {
    let mut entries = Vec::new();
    for entry in text.split(':') {
        if !entry.is_empty() {
            entries.push(SplitEntry::parse(given, entry)?);
        }
    }
    if entries.is_empty() {
        return Err(given.error(SPLIT_FORM));
    }
    Ok(entries)
}

/// Refuses sizes of 0 bytes, and those that are never drawn.
fn refuse_undrawn(
    given: GivenValue<'_>,
    entries: &[SplitEntry],
    percents: &[u32],
) -> Translated<()> {
    if entries.iter().any(|entry| entry.bytes == 0) || percents.contains(&0) {
        return Err(given.error("a size of 0 bytes, or with a share of 0; remove it"));
    }
    Ok(())
}

/// The sizes of a mix such as `4k/60:64k/40`.
fn split_sizes(given: GivenValue<'_>, text: &str) -> Translated<Vec<BlockShare>> {
    let entries = split_entries(given, text)?;
    let mut pairs = Vec::new();
    if let [only] = entries.as_slice() {
        // It has all operations, whatever its share is.
        pairs.push(format!("{}/{PERCENT_ALL}", only.bytes));
    } else {
        let mut shares = drawn_shares(&split_shares(given, text)?);
        // As the author wrote them.
        shares.sort_by_key(|share| {
            entries
                .iter()
                .position(|entry| entry.bytes == u64::from(share.block_bytes))
        });
        for share in shares {
            if share.weight > 0 {
                pairs.push(format!("{}/{}", share.block_bytes, share.weight));
            }
        }
    }
    let mix: BlockSplit = pairs
        .join(":")
        .parse()
        .map_err(|why: ValueError| given.error(why))?;
    match mix.0.as_slice() {
        [only] => Ok(one_size(only.block_bytes)),
        _ => Ok(mix.0),
    }
}

/// The percentage of each size of `bssplit`, as fio reads it (`bssplit_ddir` of its options.c):
/// sizes without one divide what the others leave. The only one of those has the rest, also where
/// the others are more than all.
fn fio_percents(given: GivenValue<'_>, entries: &[SplitEntry]) -> Translated<Vec<u32>> {
    let mut named_percent: u32 = 0;
    let mut unnamed = 0;
    for entry in entries {
        match entry.percent {
            Some(percent) => named_percent = named_percent.saturating_add(percent),
            None => unnamed += 1,
        }
    }
    if named_percent > PERCENT_ALL && unnamed > 1 {
        // The words of fio 3.33.
        return Err(given.error("bssplit percentages add to more than 100%"));
    }
    let equal = match (entries, PERCENT_ALL.checked_sub(named_percent)) {
        ([_], _) => PERCENT_ALL,
        (_, Some(left)) => left / unnamed.max(1),
        (_, None) => u32::MAX,
    };
    Ok(entries
        .iter()
        .map(|entry| entry.percent.unwrap_or(equal))
        .collect())
}

/// The percentages of the operations that sizes have: fio takes the rarest first, up to 100, and
/// gives the rest to the last one. One has none where it only ends a file.
fn drawn_shares(shares: &[FioSizeShare]) -> Vec<BlockShare> {
    let mut left = PERCENT_ALL;
    let mut drawn = Vec::new();
    for (index, share) in shares.iter().enumerate() {
        let is_last = index + 1 == shares.len();
        let percent = if is_last {
            left
        } else {
            share.percent.min(left)
        };
        left -= percent;
        drawn.push(BlockShare::new(share.bytes, percent));
    }
    drawn
}

/// The sizes of `bsrange`, such as `4k-64k`, for a kind of operation.
fn range_sizes(range: SizesPart<'_>, kind: OpKind) -> Translated<Vec<BlockShare>> {
    let SizesPart { given, text } = range;
    let (low, high) = text.split_once(['-', ':']).unwrap_or((text, text));
    let low = given.size(low.trim())?;
    let high = given.size(high.trim())?;
    let sizes = if kind.drops_blocks() {
        trim_multiples(low, high)
    } else if high <= BLOCK_BYTES_MAX {
        multiples(low, high)
    } else {
        None
    };
    sizes.ok_or_else(|| {
        given.error(format!(
            "write a smaller and a larger size, at most {RANGE_SIZES_MAX} times as large and 1G"
        ))
    })
}

/// The multiples of the smaller size up to the larger one, where that is a multiple all with the
/// same share. fio draws from `low` to `low + high`, cuts that to a multiple of `low`, and then to
/// `high`.
fn multiples(low: u64, high: u64) -> Option<Vec<BlockShare>> {
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
        let block_bytes = until as u32;
        match shares.last_mut() {
            Some(last) if last.block_bytes == block_bytes => last.weight += weight,
            _ if weight > 0 => shares.push(BlockShare::new(block_bytes, weight)),
            _ => {}
        }
    }
    // All equal: small weights are easier to read.
    let first = shares[0].weight;
    if shares.iter().all(|share| share.weight == first) {
        for share in &mut shares {
            share.weight = 1;
        }
    }
    Some(shares)
}

/// The multiples of [`multiples`] for trims, which need no memory: of more sizes than a mix holds,
/// some at equal distances stand for all.
fn trim_multiples(low: u64, high: u64) -> Option<Vec<BlockShare>> {
    // Sizes of blocks have 32 bits.
    let largest = high.min(u64::from(u32::MAX) / low.max(1) * low);
    if low == 0 || low >= largest || largest / low <= RANGE_SIZES_MAX {
        return multiples(low, largest);
    }
    let step = (largest / RANGE_SIZES_MAX).next_multiple_of(low);
    let mut shares = Vec::new();
    let mut size = low;
    while size <= largest && (shares.len() as u64) < RANGE_SIZES_MAX {
        shares.push(BlockShare::new(size as u32, 1));
        size += step;
    }
    Some(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bsrange_has_the_shares_of_fio() {
        let share = BlockShare::new;
        let equal = vec![share(4096, 1), share(8192, 1), share(12288, 1)];
        assert_eq!(multiples(4096, 12288), Some(equal));
        // 4096..14096: 4k up to 8192, 8k up to 12288, the rest is 12288, cut to 10000.
        let cut = vec![share(4096, 4096), share(8192, 4096), share(10_000, 1808)];
        assert_eq!(multiples(4096, 10_000), Some(cut));
        assert_eq!(multiples(4096, 4096), Some(vec![share(4096, 1)]));
        for (low, high) in [(0, 4096), (8192, 4096), (1, 4097)] {
            assert_eq!(multiples(low, high), None, "{low} to {high}");
        }
    }
}
