//! Access time by seek distance: one small request after the other, in patterns that send the heads
//! far or near.

use super::queue::{RequestQueue, block_at};
use super::target::SurveyTarget;
use crate::io::clock::Clock;
use crate::io::{Backend, Extent, errno_name};
use crate::random::Random;
use diskproof_model::surface::{AccessPlan, AccessPoint, SeekPattern};
use std::collections::HashSet;
use std::io;

/// A disk may cache the surroundings of a block that it has read. No second access goes to the same
/// range of this size, where there is room enough.
const NEIGHBOURHOOD_BYTES: u64 = 64 << 10;
/// After so many tries an offset is taken though it was read before.
const TRIES: usize = 16;
/// Spans with fewer neighbourhoods are read block by block: the offsets of a survey would use up
/// their neighbourhoods.
const NEIGHBOURHOODS_MIN: u64 = 16_384;
/// Tenths of the time for the random accesses; each of the four other patterns gets one tenth.
const RANDOM_TENTHS: u64 = 6;
/// Fixed places spread over at most one part of the span in so many.
const SPREAD_PARTS: u64 = 64;
/// The stream of random numbers for the accesses: any number that no other user of the seed takes.
const ACCESS_STREAM: u64 = 0x00AC_CE55;
/// A track of today's disks holds about 0.5 to 2 MiB. A step of one to four times this size leads
/// to a neighbouring track, at any angle.
const TRACK_BYTES: u64 = 1 << 20;
/// Largest distance of random offsets around a fixed one, so that the platter stands at any angle.
const SPREAD_BYTES: u64 = 16 << 20;

const PATTERNS: [SeekPattern; 5] = [
    SeekPattern::Random,
    SeekPattern::TrackToTrack,
    SeekPattern::ThirdStroke,
    SeekPattern::FullStroke,
    SeekPattern::Butterfly,
];

impl<B: Backend, C: Clock> RequestQueue<'_, B, C> {
    /// Measures all patterns and puts the accesses into the log.
    pub(crate) fn measure_access(&mut self, plan: &AccessPlan) -> io::Result<()> {
        let (target, log) = (self.target, self.log);
        log.begin_step("access times");
        let block = target.rounded_request_bytes(u64::from(plan.block_bytes));
        let mut places = Places::new(&target, block);
        let start_ns = self.sampler.now();
        let total = f64::from(plan.random_reads)
            + f64::from(SeekPattern::OTHERS) * f64::from(plan.pattern_reads);
        let mut done = 0u32;
        for seek in PATTERNS {
            let (count, tenths) = if seek == SeekPattern::Random {
                (plan.random_reads, RANDOM_TENTHS)
            } else {
                (plan.pattern_reads, 1)
            };
            let end_ns = self.sampler.now() + plan.time_ns / 10 * tenths;
            let mut before = None;
            // The first access only sets the start of the pattern.
            for index in 0..=u64::from(count) {
                if count == 0 || log.is_stopped() || (self.sampler.now() >= end_ns && index > 1) {
                    break;
                }
                let offset = places.next(seek, index, u64::from(count) + 1, before);
                let completion = self.move_one(block_at(offset, block))?;
                if completion.interrupted {
                    before = Some(offset);
                    continue;
                }
                match (completion.errno, before) {
                    (0, Some(from)) => {
                        let point = AccessPoint {
                            seek,
                            offset_bytes: offset,
                            distance_bytes: offset.abs_diff(from),
                            latency_ns: completion.latency_ns,
                        };
                        log.results().access.push(point);
                    }
                    (0, None) => {}
                    (errno, _) => {
                        *log.results()
                            .access_errors
                            .entry(errno_name(errno))
                            .or_default() += 1
                    }
                }
                before = Some(offset);
                done += u32::from(index > 0);
                let in_time =
                    self.sampler.now().saturating_sub(start_ns) as f64 / plan.time_ns.max(1) as f64;
                log.report_share((f64::from(done) / total).max(in_time));
            }
        }
        Ok(())
    }
}

/// Draws the offsets of the accesses.
struct Places {
    extent: Extent,
    block: u64,
    /// Two offsets in the same range of so many bytes count as read from the disk's cache.
    detector: u64,
    /// The ranges that were read, by number.
    used: HashSet<u64>,
    random: Random,
}

impl Places {
    fn new(target: &SurveyTarget, block: u64) -> Self {
        // A small span has only room for single blocks.
        let is_roomy = target.extent.length / NEIGHBOURHOOD_BYTES >= NEIGHBOURHOODS_MIN;
        let detector = if is_roomy {
            NEIGHBOURHOOD_BYTES.max(block)
        } else {
            block
        };
        Self {
            extent: target.extent,
            block,
            detector,
            used: HashSet::new(),
            random: Random::new(target.seed, ACCESS_STREAM),
        }
    }

    /// Access number `index` of `count`, after one at `before`.
    fn next(&mut self, seek: SeekPattern, index: u64, count: u64, before: Option<u64>) -> u64 {
        let mut place = 0;
        for _ in 0..TRIES {
            place = self.draw(seek, index, count, before);
            if self.used.insert(place / self.detector) {
                break;
            }
        }
        place
    }

    fn draw(&mut self, seek: SeekPattern, index: u64, count: u64, before: Option<u64>) -> u64 {
        let Extent { start, length } = self.extent;
        // From here on relative to the span.
        let last = length - self.block;
        let spread = SPREAD_BYTES.min(length / SPREAD_PARTS).max(self.block);
        let before = match before {
            Some(offset) => offset.saturating_sub(start),
            None => 0,
        };
        let place = match seek {
            SeekPattern::Random => self.random.below(last + 1),
            SeekPattern::TrackToTrack if index == 0 => last / 4,
            SeekPattern::TrackToTrack => {
                // Small spans have room for small steps only.
                let step = TRACK_BYTES.min(length / 2 / (4 * count)).max(self.block);
                before + step + self.random.below(3 * step + 1)
            }
            SeekPattern::ThirdStroke => {
                let third = length / 3;
                let deviation = self.random.below(2 * spread) as i64 - spread as i64;
                let anchor = match index {
                    0 => last / 6,
                    // Up while there is room, then down, so that the offsets do not alternate
                    // between two places.
                    _ if before < third || (before < 2 * third && self.random.below(2) == 0) => {
                        before + third
                    }
                    _ => before - third,
                };
                anchor.saturating_add_signed(deviation)
            }
            SeekPattern::FullStroke if index.is_multiple_of(2) => self.random.below(spread),
            SeekPattern::FullStroke => last.saturating_sub(self.random.below(spread)),
            SeekPattern::Butterfly => {
                let pairs = count.div_ceil(2).max(1);
                let inward = (u128::from(length / 2) * u128::from(index / 2) / u128::from(pairs))
                    as u64
                    + self.random.below(length / 2 / pairs + 1);
                if index.is_multiple_of(2) {
                    inward
                } else {
                    last.saturating_sub(inward)
                }
            }
        };
        start + place.min(last) / self.block * self.block
    }
}
