//! Holds back the operations of a worker, as fio does: by pauses between them (`thinktime`), and by
//! the shares that several workloads have of their operations together (`flow`).

use diskproof_model::shape::{FlowShare, ThinkCount, ThinkTime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The pauses of a worker.
#[derive(Debug)]
pub(crate) struct Pauses {
    think: ThinkTime,
    started: u64,
    /// The count of operations that made the last pause due.
    paused_count: u64,
    /// The end of the last pause; before the first one, the start of the worker.
    pause_end_ns: u64,
    hold: Hold,
}

/// The reason for holding back operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// Nothing: they may start.
    Working,
    /// A pause that begins once nothing is in flight.
    Draining,
    /// A pause until this time.
    Until(u64),
}

impl Hold {
    /// The end of the pause, if one is under way.
    fn until_ns(self) -> Option<u64> {
        match self {
            Self::Until(until_ns) => Some(until_ns),
            Self::Working | Self::Draining => None,
        }
    }
}

impl Pauses {
    /// No operation has started yet.
    pub(crate) fn new(think: ThinkTime, start_ns: u64) -> Self {
        Self {
            think,
            started: 0,
            paused_count: 0,
            pause_end_ns: start_ns,
            hold: Hold::Working,
        }
    }

    /// The pauses of a worker that has started so many operations before, in so much time.
    pub(crate) fn after(mut self, started: u64, ran_ns: u64) -> Self {
        if self.think.pause_ops > 0 {
            self.started = started % self.think.pause_ops;
        }
        if let Some(busy_ns) = self.think.busy_ns {
            let turn_ns = busy_ns.saturating_add(self.think.pause_ns).max(1);
            let worked_ns = (ran_ns % turn_ns).min(busy_ns);
            self.pause_end_ns = self.pause_end_ns.saturating_sub(worked_ns);
        }
        self
    }

    /// The same, where the first pause comes before the first operation and ends at this time.
    pub(crate) fn held_until(mut self, until_ns: u64) -> Self {
        self.hold = Hold::Until(until_ns);
        self
    }

    /// Counts an operation that has started.
    pub(crate) fn count_start(&mut self) {
        self.started += 1;
    }

    /// True if no operation may start at `now`, with so many in flight. To be called before each
    /// start: it also begins and ends the pauses.
    pub(crate) fn must_wait(&mut self, now: u64, in_flight: u64) -> bool {
        if self.hold == Hold::Working
            && let Some(count) = self.due_count(now, in_flight)
        {
            (self.hold, self.paused_count) = (Hold::Draining, count);
        }
        match self.hold {
            Hold::Draining if in_flight == 0 => {
                self.hold = Hold::Until(now.saturating_add(self.think.pause_ns));
            }
            Hold::Until(until_ns) if now >= until_ns => {
                (self.hold, self.pause_end_ns) = (Hold::Working, now);
                return false;
            }
            _ => {}
        }
        self.hold != Hold::Working
    }

    /// The count of operations that makes a pause due now; `None` where none is due.
    fn due_count(&self, now: u64, in_flight: u64) -> Option<u64> {
        let count = match self.think.counted {
            ThinkCount::Started => self.started,
            ThinkCount::Completed => self.started - in_flight,
        };
        let by_count =
            self.think.pause_ops > 0 && count >= self.paused_count + self.think.pause_ops;
        let by_time = self
            .think
            .busy_ns
            .is_some_and(|busy_ns| now >= self.pause_end_ns.saturating_add(busy_ns));
        if by_count || by_time {
            Some(count)
        } else {
            None
        }
    }

    /// The end of the pause, if one is under way.
    pub(crate) fn until_ns(&self) -> Option<u64> {
        self.hold.until_ns()
    }

    /// True while the next start waits for completions, or for the end of a pause.
    pub(crate) fn is_waiting(&self) -> bool {
        self.hold != Hold::Working
    }
}

/// A part that has its share tries again after this time, where it has no pause of its own. Chosen,
/// not measured: shorter than the requests of most disks.
const RETRY_NS: u64 = 20_000;

/// The operations that the parts of a flow have started together.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    started: AtomicU64,
    weight: AtomicU64,
}

/// A workload on a target, with all its workers. While it lives, it counts in its flow.
#[derive(Debug)]
pub(crate) struct FlowPart {
    flow: Arc<Flow>,
    started: AtomicU64,
    weight: u64,
    pause_ns: u64,
}

impl FlowPart {
    /// A part with so many workers, each with this share.
    pub(crate) fn new(flow: &Arc<Flow>, share: FlowShare, workers: u32) -> Self {
        let weight = u64::from(share.weight) * u64::from(workers);
        flow.weight.fetch_add(weight, Ordering::Relaxed);
        Self {
            flow: Arc::clone(flow),
            started: AtomicU64::new(0),
            weight,
            pause_ns: share.pause_ns,
        }
    }

    /// True if the part has started more than its share of the operations.
    fn is_ahead(&self) -> bool {
        let started = self.started.load(Ordering::Relaxed);
        let started_by_all = self.flow.started.load(Ordering::Relaxed) + 1;
        let weight_of_all = self.flow.weight.load(Ordering::Relaxed);
        u128::from(started) * u128::from(weight_of_all)
            > u128::from(self.weight) * u128::from(started_by_all)
    }
}

impl Drop for FlowPart {
    fn drop(&mut self) {
        let started = *self.started.get_mut();
        self.flow.started.fetch_sub(started, Ordering::Relaxed);
        self.flow.weight.fetch_sub(self.weight, Ordering::Relaxed);
    }
}

/// A worker of a part.
#[derive(Debug)]
pub(crate) struct FlowMember {
    part: Arc<FlowPart>,
    hold: Hold,
}

impl FlowMember {
    /// Nothing has started yet.
    pub(crate) fn new(part: Arc<FlowPart>) -> Self {
        Self {
            part,
            hold: Hold::Working,
        }
    }

    /// Counts an operation that has started.
    pub(crate) fn count_start(&mut self) {
        self.part.started.fetch_add(1, Ordering::Relaxed);
        self.part.flow.started.fetch_add(1, Ordering::Relaxed);
    }

    /// True if no operation may start at `now`, with so many in flight.
    pub(crate) fn must_wait(&mut self, now: u64, in_flight: u64) -> bool {
        let pause_ns = self.part.pause_ns;
        self.hold = match self.hold {
            Hold::Until(until_ns) if now < until_ns => self.hold,
            Hold::Draining if in_flight > 0 => self.hold,
            Hold::Draining => Hold::Until(now.saturating_add(pause_ns)),
            _ if !self.part.is_ahead() => Hold::Working,
            _ if pause_ns == 0 => Hold::Until(now.saturating_add(RETRY_NS)),
            _ if in_flight > 0 => Hold::Draining,
            _ => Hold::Until(now.saturating_add(pause_ns)),
        };
        self.hold != Hold::Working
    }

    /// When the worker may go on, where it waits for a time.
    pub(crate) fn until_ns(&self) -> Option<u64> {
        self.hold.until_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(pause_ops: u64, counted: ThinkCount, busy_ns: Option<u64>) -> Pauses {
        let think = ThinkTime {
            pause_ns: 100,
            pause_ops,
            counted,
            busy_ns,
        };
        Pauses::new(think, 1000)
    }

    #[test]
    fn pause_follows_so_many_operations_and_waits_for_those_in_flight() {
        let mut one = pauses(2, ThinkCount::Completed, None);
        assert!(!one.must_wait(1000, 0));
        one.count_start();
        one.count_start();
        // Two have started, and one of them has completed.
        assert!(!one.must_wait(1010, 1));
        one.count_start();
        assert!(one.must_wait(1020, 1) && one.is_waiting() && one.until_ns().is_none());
        assert!(one.must_wait(1030, 0));
        assert_eq!(one.until_ns(), Some(1130));
        assert!(one.must_wait(1129, 0) && !one.must_wait(1130, 0));
        // The third completed before the pause, but counts for the next one.
        one.count_start();
        assert!(one.must_wait(1140, 0));

        let mut started = pauses(2, ThinkCount::Started, None);
        started.count_start();
        started.count_start();
        assert!(started.must_wait(1010, 2));
    }

    #[test]
    fn pause_follows_a_time_of_work() {
        let mut one = pauses(0, ThinkCount::Completed, Some(50));
        one.count_start();
        assert!(!one.must_wait(1049, 0) && one.must_wait(1050, 0) && one.must_wait(1149, 0));
        assert!(!one.must_wait(1150, 0) && !one.must_wait(1199, 0) && one.must_wait(1200, 0));
    }

    #[test]
    fn pauses_go_on_counting_where_earlier_slices_ended() {
        let mut counted = pauses(4, ThinkCount::Completed, None).after(7, 0);
        assert!(!counted.must_wait(1000, 0));
        counted.count_start();
        assert!(counted.must_wait(1010, 0));
        // 20 of the 50 ns of work are over; in the last one the pause itself was.
        let mut timed = pauses(0, ThinkCount::Completed, Some(50)).after(0, 2 * 150 + 20);
        assert!(!timed.must_wait(1029, 0) && timed.must_wait(1030, 0));
        let mut in_pause = pauses(0, ThinkCount::Completed, Some(50)).after(0, 140);
        assert!(in_pause.must_wait(1000, 0));
    }

    fn members(shares: &[(u32, u64, u32)]) -> Vec<FlowMember> {
        let flow = Arc::<Flow>::default();
        let part = |(weight, pause_ns, workers): &(u32, u64, u32)| {
            let share = FlowShare {
                number: 0,
                weight: *weight,
                pause_ns: *pause_ns,
            };
            FlowMember::new(Arc::new(FlowPart::new(&flow, share, *workers)))
        };
        shares.iter().map(part).collect()
    }

    /// How often each member starts when all try in turn.
    fn starts(members: &mut [FlowMember], turns: std::ops::Range<u64>) -> Vec<u64> {
        let mut starts = vec![0; members.len()];
        for turn in turns {
            for (member, starts) in members.iter_mut().zip(&mut starts) {
                if !member.must_wait(turn * 1_000_000, 0) {
                    member.count_start();
                    *starts += 1;
                }
            }
        }
        starts
    }

    #[test]
    fn parts_keep_to_their_shares() {
        let found = starts(&mut members(&[(1, 0, 1), (8, 0, 1)]), 0..9000);
        assert!(found[1].abs_diff(found[0] * 8) <= 16, "{found:?}");
        // Two workers have twice the share of one.
        let found = starts(&mut members(&[(3, 0, 2), (2, 0, 1)]), 0..9000);
        assert!((found[0]).abs_diff(found[1] * 3) <= 16, "{found:?}");
    }

    #[test]
    fn part_goes_on_alone_once_the_others_have_ended() {
        let mut all = members(&[(1, 0, 1), (8, 0, 1)]);
        starts(&mut all, 0..900);
        all.pop();
        assert_eq!(starts(&mut all, 900..1800), [900]);
    }

    #[test]
    fn pause_begins_once_nothing_is_in_flight() {
        let mut all = members(&[(1, 5000, 1), (1, 5000, 1)]);
        for _ in 0..2 {
            assert!(!all[0].must_wait(0, 0));
            all[0].count_start();
        }
        assert!(all[0].must_wait(10, 2));
        assert_eq!(all[0].until_ns(), None);
        assert!(all[0].must_wait(20, 0));
        assert_eq!(all[0].until_ns(), Some(5020));
        for _ in 0..2 {
            all[1].count_start();
        }
        assert!(all[0].must_wait(5019, 0));
        assert!(!all[0].must_wait(5020, 0));
    }
}
