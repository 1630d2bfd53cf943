//! Pauses of a worker between operations (think time). Knows counts and times, no requests.

use diskproof_model::shape::{ThinkCount, ThinkTime};

/// When a worker pauses.
#[derive(Debug)]
pub(crate) struct Pauses {
    think: ThinkTime,
    started: u64,
    /// The count at the last pause.
    at_last: u64,
    /// The end of the last pause.
    last_ns: u64,
    state: PauseState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PauseState {
    /// Operations may start.
    Working,
    /// A pause begins once nothing is in flight; the count that made it due.
    Draining(u64),
    /// Until this time.
    Pausing(u64),
}

impl Pauses {
    /// No operation has started yet.
    pub(crate) fn new(think: ThinkTime, start_ns: u64) -> Self {
        Self {
            think,
            started: 0,
            at_last: 0,
            last_ns: start_ns,
            state: PauseState::Working,
        }
    }

    /// An operation has started.
    pub(crate) fn count_start(&mut self) {
        self.started += 1;
    }

    /// Whether no operation may start at `now`, with so many in flight.
    pub(crate) fn holds(&mut self, now: u64, in_flight: u64) -> bool {
        if self.state == PauseState::Working
            && let Some(count) = self.due(now, in_flight)
        {
            self.state = PauseState::Draining(count);
        }
        match self.state {
            PauseState::Working => false,
            PauseState::Draining(_) if in_flight > 0 => true,
            PauseState::Draining(count) => {
                self.at_last = count;
                self.state = PauseState::Pausing(now.saturating_add(self.think.pause_ns));
                true
            }
            PauseState::Pausing(until_ns) if now < until_ns => true,
            PauseState::Pausing(_) => {
                (self.state, self.last_ns) = (PauseState::Working, now);
                false
            }
        }
    }

    /// The count, if a pause is due.
    fn due(&self, now: u64, in_flight: u64) -> Option<u64> {
        let count = match self.think.counted {
            ThinkCount::Started => self.started,
            ThinkCount::Completed => self.started - in_flight,
        };
        let by_count = self.think.pause_ops > 0 && count >= self.at_last + self.think.pause_ops;
        let by_time = self
            .think
            .busy_ns
            .is_some_and(|busy_ns| now >= self.last_ns.saturating_add(busy_ns));
        (by_count || by_time).then_some(count)
    }

    /// The end of the pause, if one is under way.
    pub(crate) fn until_ns(&self) -> Option<u64> {
        match self.state {
            PauseState::Pausing(until_ns) => Some(until_ns),
            PauseState::Working | PauseState::Draining(_) => None,
        }
    }

    /// Whether the next start waits for completions, or for the end of a pause.
    pub(crate) fn is_due(&self) -> bool {
        self.state != PauseState::Working
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
        assert!(!one.holds(1000, 0));
        one.count_start();
        one.count_start();
        // Two have started, and one of them has completed.
        assert!(!one.holds(1010, 1));
        one.count_start();
        assert!(one.holds(1020, 1) && one.is_due() && one.until_ns().is_none());
        assert!(one.holds(1030, 0));
        assert_eq!(one.until_ns(), Some(1130));
        assert!(one.holds(1129, 0) && !one.holds(1130, 0));
        // The third completed before the pause, but counts for the next one.
        one.count_start();
        assert!(one.holds(1140, 0));

        let mut started = pauses(2, ThinkCount::Started, None);
        started.count_start();
        started.count_start();
        assert!(started.holds(1010, 2));
    }

    #[test]
    fn pause_follows_a_time_of_work() {
        let mut one = pauses(0, ThinkCount::Completed, Some(50));
        one.count_start();
        assert!(!one.holds(1049, 0) && one.holds(1050, 0) && one.holds(1149, 0));
        assert!(!one.holds(1150, 0) && !one.holds(1199, 0) && one.holds(1200, 0));
    }
}
