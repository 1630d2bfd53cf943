//! Measures access times by seek distance: one small request after the other, in patterns that send
//! the heads far or near.

use super::queue::{BlockCompletion, RequestQueue, block_at};
use super::target::SurveyTarget;
use crate::io::clock::Clock;
use crate::io::{Backend, Extent};
use crate::random::Random;
use diskproof_model::surface::{AccessPlan, AccessPoint, SeekPattern};
use std::collections::HashSet;
use std::io;

/// A disk may cache the surroundings of a block that it has read. No second access goes to the same
/// range of this size, where there is room enough.
const NEIGHBOURHOOD_BYTES: u64 = 64 << 10;
/// Draws of one offset. The last one is taken even where its neighbourhood was read before. A
/// thousand random accesses read at most one in 16 neighbourhoods, so that all draws of one offset
/// fail with a probability of 16^-16.
const TRIES: usize = 16;
/// In a span with fewer neighbourhoods only the block itself counts as read before: a survey could
/// read every neighbourhood, and then no offset would be free.
const NEIGHBOURHOODS_MIN: u64 = 16_384;
/// Tenths of the time for the random accesses, which decide the access time that is reported. Each
/// of the four other patterns gets one tenth. Chosen, not measured.
const RANDOM_TENTHS: u64 = 6;
/// Random offsets around a fixed one spread over at most this fraction of the span, so that the
/// distance between two fixed offsets stays what the pattern says. Chosen: within 3 %.
const SPREAD_PARTS: u64 = 64;
/// The stream of random numbers for the accesses: any number that no other user of the seed takes.
const ACCESS_STREAM: u64 = 0x00AC_CE55;
/// A track of today's disks holds about 0.5 to 2 MiB. A step of one to four times this size leads
/// to a neighbouring track, at any angle.
const TRACK_BYTES: u64 = 1 << 20;
/// Largest distance of random offsets around a fixed one: several tracks ([`TRACK_BYTES`]), so that
/// the platter stands at any angle.
const SPREAD_BYTES: u64 = 16 << 20;

impl<B: Backend, C: Clock> RequestQueue<'_, B, C> {
    /// Measures all patterns and puts the accesses into the log.
    pub(crate) fn measure_access(&mut self, plan: &AccessPlan) -> io::Result<()> {
        self.log.begin_step("access times");
        let block_bytes = self
            .target
            .rounded_request_bytes(u64::from(plan.block_bytes));
        let mut offsets = AccessOffsets::new(&self.target, block_bytes);
        let mut progress = AccessProgress::new(plan, self.sampler.now());
        for seek in SeekPattern::ALL {
            self.measure_pattern(plan, seek, &mut offsets, &mut progress)?;
        }
        Ok(())
    }

    /// Measures one pattern until its accesses or its part of the time are used up. One access is
    /// measured even where the time is too short.
    fn measure_pattern(
        &mut self,
        plan: &AccessPlan,
        seek: SeekPattern,
        offsets: &mut AccessOffsets,
        progress: &mut AccessProgress,
    ) -> io::Result<()> {
        let (measured, tenths) = if seek == SeekPattern::Random {
            (plan.random_reads, RANDOM_TENTHS)
        } else {
            (plan.pattern_reads, 1)
        };
        if measured == 0 {
            return Ok(());
        }
        let end_ns = self.sampler.now() + plan.time_ns / 10 * tenths;
        // The first access only sets the start of the pattern.
        let count = u64::from(measured) + 1;
        let mut previous = None;
        for index in 0..count {
            let is_late = self.sampler.now() >= end_ns && index > 1;
            if self.log.is_stopped() || is_late {
                break;
            }
            let offset = offsets.next(AccessPosition {
                seek,
                index,
                count,
                previous,
            });
            let completion = self.move_one(block_at(offset, offsets.block_bytes))?;
            if !completion.interrupted {
                self.record_access(seek, previous, &completion);
                progress.done += u32::from(index > 0);
                let share = progress.share(self.sampler.now());
                self.log.report_share(share);
            }
            previous = Some(offset);
        }
        Ok(())
    }

    /// Puts an access into the log, unless it failed. The first access of a pattern has no
    /// distance.
    fn record_access(
        &self,
        seek: SeekPattern,
        previous: Option<u64>,
        completion: &BlockCompletion,
    ) {
        let offset_bytes = completion.request.offset;
        if completion.errno == 0
            && let Some(from) = previous
        {
            self.log.results().access.push(AccessPoint {
                seek,
                offset_bytes,
                distance_bytes: offset_bytes.abs_diff(from),
                latency_ns: completion.latency_ns,
            });
        }
    }
}

/// The share of the access times that is done, by accesses or by time.
struct AccessProgress {
    start_ns: u64,
    time_ns: u64,
    planned: f64,
    done: u32,
}

impl AccessProgress {
    fn new(plan: &AccessPlan, start_ns: u64) -> Self {
        Self {
            start_ns,
            time_ns: plan.time_ns.max(1),
            planned: f64::from(plan.random_reads)
                + f64::from(SeekPattern::OTHERS) * f64::from(plan.pattern_reads),
            done: 0,
        }
    }

    /// The larger share: patterns end with their accesses or with their time.
    fn share(&self, now_ns: u64) -> f64 {
        let by_time = now_ns.saturating_sub(self.start_ns) as f64 / self.time_ns as f64;
        (f64::from(self.done) / self.planned).max(by_time)
    }
}

/// The place of an access in its pattern.
#[derive(Debug, Clone, Copy)]
struct AccessPosition {
    seek: SeekPattern,
    /// Number of the access in the pattern, from 0.
    index: u64,
    /// Accesses of the pattern.
    count: u64,
    /// Offset of the access before, in the target.
    previous: Option<u64>,
}

/// Draws the offsets of the accesses: aligned blocks of the span, as far as possible in
/// neighbourhoods that were not read before.
struct AccessOffsets {
    extent: Extent,
    block_bytes: u64,
    /// The second of two accesses in one range of this size may come from the disk's cache.
    neighbourhood_bytes: u64,
    /// The neighbourhoods that were read, by number.
    used: HashSet<u64>,
    random: Random,
}

impl AccessOffsets {
    fn new(target: &SurveyTarget, block_bytes: u64) -> Self {
        debug_assert!(block_bytes > 0 && block_bytes <= target.extent.length);
        let has_many = target.extent.length / NEIGHBOURHOOD_BYTES >= NEIGHBOURHOODS_MIN;
        let neighbourhood_bytes = if has_many {
            NEIGHBOURHOOD_BYTES.max(block_bytes)
        } else {
            block_bytes
        };
        Self {
            extent: target.extent,
            block_bytes,
            neighbourhood_bytes,
            used: HashSet::new(),
            random: Random::new(target.seed, ACCESS_STREAM),
        }
    }

    /// The offset of an access in the target, whose block lies inside the span.
    fn next(&mut self, position: AccessPosition) -> u64 {
        let mut offset = 0;
        for _ in 0..TRIES {
            offset = self.draw(position);
            if self.used.insert(offset / self.neighbourhood_bytes) {
                break;
            }
        }
        offset
    }

    fn draw(&mut self, position: AccessPosition) -> u64 {
        let previous = match position.previous {
            Some(offset) => {
                debug_assert!(offset >= self.extent.start);
                offset.saturating_sub(self.extent.start)
            }
            None => 0,
        };
        let AccessPosition { index, count, .. } = position;
        let relative = match position.seek {
            SeekPattern::Random => self.random.below(self.last() + 1),
            SeekPattern::TrackToTrack => self.draw_track_to_track(index, count, previous),
            SeekPattern::ThirdStroke => self.draw_third_stroke(index, previous),
            SeekPattern::FullStroke => self.draw_full_stroke(index),
            SeekPattern::Butterfly => self.draw_butterfly(index, count),
        };
        self.extent.start + relative.min(self.last()) / self.block_bytes * self.block_bytes
    }

    // The offsets below count from the start of the span. Where one lies behind the last block,
    // `draw` takes that block.

    /// The offset of the last block.
    fn last(&self) -> u64 {
        self.extent.length - self.block_bytes
    }

    /// The range of random offsets around a fixed one, in bytes.
    fn spread_bytes(&self) -> u64 {
        SPREAD_BYTES
            .min(self.extent.length / SPREAD_PARTS)
            .max(self.block_bytes)
    }

    /// Walks outwards from a quarter of the span, by one to four steps an access. Of a small span a
    /// step is at most an eighth of its length by the count: the walk then covers at most half of
    /// the span, and ends before three quarters of it.
    fn draw_track_to_track(&mut self, index: u64, count: u64, previous: u64) -> u64 {
        if index == 0 {
            return self.last() / 4;
        }
        let step = TRACK_BYTES
            .min(self.extent.length / 2 / (4 * count))
            .max(self.block_bytes);
        previous + step + self.random.below(3 * step + 1)
    }

    /// Goes up by a third while there is room, then down, with the direction drawn where both have
    /// room, so that the offsets do not alternate between two places.
    fn draw_third_stroke(&mut self, index: u64, previous: u64) -> u64 {
        let third = self.extent.length / 3;
        let spread = self.spread_bytes();
        let deviation = self.random.below(2 * spread) as i64 - spread as i64;
        let anchor = if index == 0 {
            self.last() / 6
        } else if previous < third || (previous < 2 * third && self.random.below(2) == 0) {
            previous + third
        } else {
            previous - third
        };
        anchor.saturating_add_signed(deviation)
    }

    /// Alternates between both ends of the span.
    fn draw_full_stroke(&mut self, index: u64) -> u64 {
        let from_end = self.random.below(self.spread_bytes());
        if index.is_multiple_of(2) {
            from_end
        } else {
            self.last().saturating_sub(from_end)
        }
    }

    /// Alternates between two places that move from the ends to the middle, a step for each pair of
    /// accesses.
    fn draw_butterfly(&mut self, index: u64, count: u64) -> u64 {
        let half = self.extent.length / 2;
        let pairs = count.div_ceil(2).max(1);
        let reached = u128::from(half) * u128::from(index / 2) / u128::from(pairs);
        let inward = reached as u64 + self.random.below(half / pairs + 1);
        if index.is_multiple_of(2) {
            inward
        } else {
            self.last().saturating_sub(inward)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::measurement::OpKind;
    use diskproof_model::plan::{CachePolicy, EngineKind};

    const BLOCK_BYTES: u64 = 4096;
    const START: u64 = 1 << 30;

    fn offsets(length: u64) -> AccessOffsets {
        let target = SurveyTarget {
            extent: Extent::new(START, length),
            depth: 1,
            stream: EngineKind::Sync,
            read_one: EngineKind::Sync,
            alignment_bytes: 512,
            sector_bytes: 512,
            lba_bytes: 512,
            cache: CachePolicy::Direct,
            operation: OpKind::Read,
            seed: 7,
        };
        AccessOffsets::new(&target, BLOCK_BYTES)
    }

    /// All accesses of a pattern, as `measure_pattern` draws them.
    fn drawn(offsets: &mut AccessOffsets, seek: SeekPattern, count: u64) -> Vec<u64> {
        let mut drawn = Vec::new();
        for index in 0..count {
            drawn.push(offsets.next(AccessPosition {
                seek,
                index,
                count,
                previous: drawn.last().copied(),
            }));
        }
        drawn
    }

    #[test]
    fn every_block_is_aligned_and_inside_the_span() {
        for length in [
            BLOCK_BYTES,
            3 * BLOCK_BYTES,
            1 << 20,
            (1 << 30) + BLOCK_BYTES,
            1 << 41,
        ] {
            for seek in SeekPattern::ALL {
                for offset in drawn(&mut offsets(length), seek, 151) {
                    let case = format!("{seek:?} at {offset} of {length}");
                    assert_eq!((offset - START) % BLOCK_BYTES, 0, "{case}");
                    assert!(offset >= START, "{case}");
                    assert!(offset + BLOCK_BYTES <= START + length, "{case}");
                }
            }
        }
    }

    #[test]
    fn walk_from_track_to_track_goes_outwards_and_ends_within_three_quarters() {
        for length in [1 << 24, 1 << 30, 1 << 41] {
            let drawn = drawn(&mut offsets(length), SeekPattern::TrackToTrack, 151);
            assert!(drawn.is_sorted(), "{length}");
            let last = drawn.last().unwrap() - START;
            assert!(last <= length / 4 * 3, "{last} of {length}");
        }
    }

    #[test]
    fn large_span_has_one_access_in_a_neighbourhood() {
        let mut offsets = offsets(1 << 41);
        let mut used: Vec<u64> = drawn(&mut offsets, SeekPattern::Random, 1001)
            .iter()
            .map(|offset| offset / NEIGHBOURHOOD_BYTES)
            .collect();
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), 1001);
    }
}
