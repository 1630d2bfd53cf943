//! Plans the times of a run's commits. A sync empties the whole cache of a disk, so control pages
//! can only vanish in a cut while no sync follows them: short bursts of commits alternate with
//! pauses in which only control pages are written.

use crate::random::Splitmix;
use std::time::Duration;

/// The length of a burst. It holds several commits on any disk with a cache, and at least one on
/// other disks. This time and the next two are chosen, not measured.
const BURST: Duration = Duration::from_millis(20);
/// The shortest pause. A pause lasts this long to twice as long, so that no period of a disk can
/// keep step with it. The log hears of a control page within some milliseconds, so most cuts fall
/// where control pages are at risk (`report_pace`).
const PAUSE: Duration = Duration::from_millis(100);
/// The time between two control pages. With a longer one, a rotating disk could write all of them
/// to its platter within the pause, and none would be at risk. A much shorter one would make the
/// next sync slow.
pub(crate) const CONTROL_INTERVAL: Duration = Duration::from_millis(5);

/// Bursts and pauses, the same for all streams of a run.
#[derive(Debug, Clone)]
pub(crate) struct CommitSchedule {
    random: Splitmix,
    burst_start: Duration,
    burst_end: Duration,
}

impl CommitSchedule {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Splitmix(seed),
            burst_start: Duration::ZERO,
            burst_end: BURST,
        }
    }

    /// Returns the time until the next commit; zero inside of a burst. `now` is the time since the
    /// start of the run, and must not go back between calls.
    pub(crate) fn time_until_commit(&mut self, now: Duration) -> Duration {
        while now >= self.burst_end {
            let extra = self.random.below(PAUSE.as_micros() as u64);
            self.burst_start = self.burst_end + PAUSE + Duration::from_micros(extra);
            self.burst_end = self.burst_start + BURST;
        }
        self.burst_start.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_the_same_for_every_stream_and_take_a_tenth_of_the_time() {
        let (mut one, mut other) = (CommitSchedule::new(5), CommitSchedule::new(5));
        let mut busy = 0;
        for ms in 0..100_000 {
            let now = Duration::from_millis(ms);
            let wait = one.time_until_commit(now);
            assert_eq!(wait, other.time_until_commit(now));
            assert!(wait <= 2 * PAUSE);
            busy += u64::from(wait.is_zero());
        }
        assert!((8_000..16_000).contains(&busy), "{busy}");
    }
}
