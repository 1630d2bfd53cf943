//! Keeps the silences of targets that no measured time contains: those that begin in the warm-up of
//! a workload, and those that last beyond the end of its measured time.

use crate::measure::worker::WorkerSchedule;
use diskproof_device::{OpenTarget, Pulse};
use diskproof_model::measurement::SILENCE_NS_MIN;

/// From this length on the counters of the disks are read, too. Chosen, not measured: shorter than
/// what is kept, and longer than most requests take.
const LOOK_NS_MIN: u64 = SILENCE_NS_MIN / 5;

/// What a target may do after the end of its measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drain {
    /// Its queue was full: all of its requests wait in a silence.
    Full,
    /// Its requests start at a pace. A single slow one may be all that is left in flight.
    Paced,
}

/// The silence of a target at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SilenceNow {
    /// Its length so far; 0 where no request is in flight.
    pub length_ns: u64,
    /// True if the workers have had an answer.
    pub is_answered: bool,
    /// The time, on the clock.
    pub now_ns: u64,
    /// The schedule of the workload that ends last, as far as it is decided.
    pub schedule: WorkerSchedule,
    /// True once the target has the order to end.
    pub is_ending: bool,
    pub drain: Drain,
}

/// The silences of a target while its workers run.
#[derive(Debug)]
pub(crate) struct SilenceLog<P> {
    /// Index of the target.
    pub target: usize,
    /// Whether its disks have completed a request since the last look.
    pulse: P,
    /// The last time at which they had.
    beat_ns: u64,
    /// When the workers got the order to end.
    ending_ns: Option<u64>,
    /// True if the target has answered before its workers, or one of them.
    is_awake: bool,
    around_ns: u64,
    first_answer_ns: u64,
}

/// The beat of the disks below a target.
pub(crate) trait Beat {
    /// True if the disks have completed a request since the last call. Always false where they are
    /// unknown.
    fn beats(&mut self) -> bool;
}

impl Beat for Pulse {
    fn beats(&mut self) -> bool {
        Pulse::beats(self)
    }
}

impl SilenceLog<Pulse> {
    /// The log of a target whose workers begin.
    pub(crate) fn of_target(target: usize, open: &OpenTarget) -> Self {
        let pulse = Pulse::start(open.identity());
        Self::new(target, pulse, open.has_answered())
    }

    /// The longest silence that is usual for its disks by what they have completed meanwhile, in
    /// nanoseconds; 0 where that is unknown.
    pub(crate) fn usual_silence_ns(&self) -> u64 {
        self.pulse.usual_silence_ns()
    }

    /// Notes on the target that it has answered, and how long its very first answer took.
    pub(crate) fn note_answers(&self, open: &OpenTarget) {
        if self.first_answer_ns >= SILENCE_NS_MIN {
            open.note_silence(self.first_answer_ns);
        } else if self.is_awake {
            open.note_answer(0);
        }
    }
}

impl<P: Beat> SilenceLog<P> {
    fn new(target: usize, pulse: P, is_awake: bool) -> Self {
        Self {
            target,
            pulse,
            beat_ns: 0,
            ending_ns: None,
            is_awake,
            around_ns: 0,
            first_answer_ns: 0,
        }
    }

    /// Looks at the target. A worker that waits for a processor is not told from one that waits for
    /// the disk: while the disks complete requests, the target is not silent.
    pub(crate) fn look(&mut self, seen: SilenceNow) {
        if seen.is_ending {
            self.ending_ns.get_or_insert(seen.now_ns);
        }
        if seen.length_ns < LOOK_NS_MIN {
            self.is_awake |= seen.is_answered;
            return;
        }
        if self.pulse.beats() {
            self.beat_ns = seen.now_ns;
        }
        if self.is_awake || seen.is_answered {
            self.around_ns = self.around_ns.max(self.length_outside(seen));
        } else {
            let since_ns = (seen.now_ns - seen.length_ns).max(self.beat_ns);
            self.first_answer_ns = self.first_answer_ns.max(seen.now_ns - since_ns);
        }
    }

    /// The length of a silence that a measured time does not contain; 0 where one does.
    fn length_outside(&self, seen: SilenceNow) -> u64 {
        let WorkerSchedule {
            measure_ns, end_ns, ..
        } = seen.schedule;
        let last_sent_ns = end_ns.min(self.ending_ns.unwrap_or(end_ns));
        let until_ns = match seen.drain {
            Drain::Full => seen.now_ns,
            Drain::Paced => seen.now_ns.min(last_sent_ns),
        };
        let since_ns = seen.now_ns - seen.length_ns;
        let is_over_the_end = since_ns < last_sent_ns && until_ns > last_sent_ns;
        if since_ns < measure_ns || is_over_the_end {
            until_ns.saturating_sub(since_ns.max(self.beat_ns))
        } else {
            0
        }
    }

    /// The longest silence around the measured time, in nanoseconds; 0 below [`SILENCE_NS_MIN`].
    pub(crate) fn around_ns(&self) -> u64 {
        if self.around_ns >= SILENCE_NS_MIN {
            self.around_ns
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// The workers of a slice begin, measure from here, and end here.
    const SCHEDULE: WorkerSchedule = WorkerSchedule {
        start_ns: 1000 * MS,
        measure_ns: 1016 * MS,
        end_ns: 1216 * MS,
    };

    /// Disks that complete something at these times.
    struct Beats {
        now_ns: u64,
        at_ns: Vec<u64>,
    }

    impl Beat for &std::cell::RefCell<Beats> {
        fn beats(&mut self) -> bool {
            let mut beats = self.borrow_mut();
            let now_ns = beats.now_ns;
            let before = beats.at_ns.len();
            beats.at_ns.retain(|at_ns| *at_ns > now_ns);
            beats.at_ns.len() < before
        }
    }

    /// The target is silent from one millisecond to another; returns the two times that are kept,
    /// in milliseconds.
    fn log(
        from_ms: u64,
        until_ms: u64,
        change: impl Fn(&mut SilenceNow),
        beats: &[u64],
    ) -> [u64; 2] {
        let beats = std::cell::RefCell::new(Beats {
            now_ns: 0,
            at_ns: beats.iter().map(|ms| ms * MS).collect(),
        });
        let mut log = SilenceLog::new(0, &beats, false);
        for now_ms in (from_ms..until_ms).step_by(50) {
            beats.borrow_mut().now_ns = now_ms * MS;
            let mut seen = SilenceNow {
                length_ns: (now_ms - from_ms) * MS,
                is_answered: true,
                now_ns: now_ms * MS,
                schedule: SCHEDULE,
                is_ending: false,
                drain: Drain::Full,
            };
            change(&mut seen);
            log.look(seen);
        }
        [log.around_ns() / MS, log.first_answer_ns / MS]
    }

    #[test]
    fn silences_of_the_warm_up_and_over_the_end_are_kept() {
        assert_eq!(log(1010, 4020, |_| {}, &[]), [3000, 0]);
        assert_eq!(log(1100, 4110, |_| {}, &[]), [3000, 0]);
        // The series has what began and ended in the measured time.
        let long = |seen: &mut SilenceNow| seen.schedule.end_ns = 9000 * MS;
        assert_eq!(log(1100, 4110, long, &[]), [0, 0]);
        // After the last request, and too short.
        assert_eq!(log(1300, 4310, |_| {}, &[]), [0, 0]);
        assert_eq!(log(1010, 1500, |_| {}, &[]), [0, 0]);
        // The order to end came first.
        let ended = |seen: &mut SilenceNow| {
            seen.schedule.end_ns = 9000 * MS;
            seen.is_ending = seen.now_ns >= 1200 * MS;
        };
        assert_eq!(log(1100, 4110, ended, &[]), [3000, 0]);
    }

    /// One slow request is all that a paced workload may have in flight at its end.
    #[test]
    fn paced_requests_are_silent_only_until_the_last_start() {
        let paced = |seen: &mut SilenceNow| seen.drain = Drain::Paced;
        assert_eq!(log(1100, 4110, paced, &[]), [0, 0]);
        let long = |seen: &mut SilenceNow| {
            seen.drain = Drain::Paced;
            seen.schedule.measure_ns = 3000 * MS;
            seen.schedule.end_ns = 9000 * MS;
        };
        assert_eq!(log(1100, 4110, long, &[]), [3000, 0]);
    }

    #[test]
    fn workers_that_starve_beside_a_busy_disk_are_not_silent() {
        let beats: Vec<u64> = (1100..4100).step_by(100).collect();
        assert_eq!(log(1010, 4110, |_| {}, &beats), [0, 0]);
        // Another program was answered once.
        assert_eq!(log(1010, 4110, |_| {}, &[2010]), [2050, 0]);
    }

    #[test]
    fn silence_before_the_first_answer_is_kept_by_itself() {
        let asleep = |seen: &mut SilenceNow| seen.is_answered = false;
        assert_eq!(log(1000, 9010, asleep, &[]), [0, 8000]);
    }
}
