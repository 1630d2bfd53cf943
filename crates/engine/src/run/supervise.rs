//! Waits for threads that may hang: for their reports, for a silence that is too long, for the
//! order to end, and for the deadline after it. Workers, files, pings, surveys, single calls and
//! primes all wait here; what a report means, and what becomes of a hang, each of them decides.

use crate::io::clock::ActiveClock;
use diskproof_model::measurement::Hang;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// A target that does not answer for this long after the order to end counts as hung. Longer than
/// the kernel's own timeout for SCSI commands (30 s), so that its error arrives first.
pub const STALL_NS: u64 = 45_000_000_000;

/// Once the user or the end of the announced time has ended a run, it waits at most this long for
/// what is in flight. What is missing then stays unknown. Chosen, not measured: a user waits as
/// long as that, and a disk answers unless it hangs or retries.
pub const ENDED_NS: u64 = 4_000_000_000;

/// The interval at which a supervisor checks for progress and calls the watcher: a display that
/// changes twenty times a second looks smooth.
pub(crate) const CHECK_EVERY: Duration = Duration::from_millis(50);

/// Work without a deadline of its own may be silent this many times longer. A disk that retries a
/// bad sector is not hung: Linux sends the command to a SCSI disk six times and waits 30 s each
/// time (SD_TIMEOUT and SD_MAX_RETRIES in drivers/scsi/sd.h).
const WITHOUT_DEADLINE_FACTOR: u64 = 5;

/// A sync may take many minutes where other programs have much to write back. While the disk
/// completes requests, the sync may take this many times longer; those requests may belong to
/// others, and the sync may be lost. Chosen, not measured: a quarter of an hour.
const ACTIVE_DISK_FACTOR: u64 = 20;

/// The longest time for which a target may show no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StallTimeout {
    /// The limit from the order to end on.
    ns: u64,
    /// A target that was silent for less may only be slow.
    hung_ns: u64,
}

impl StallTimeout {
    /// A timeout that counts from the order to end on.
    pub(crate) fn from_ns(ns: u64) -> Self {
        Self { ns, hung_ns: ns }
    }

    /// The timeout of a run that was ended before its plan was.
    pub(crate) fn ended(self) -> Self {
        Self {
            ns: self.ns.min(ENDED_NS),
            ..self
        }
    }

    /// True if a target that was silent for so long, when the wait ended, may only be slow.
    pub(crate) fn is_late(self, silence_ns: u64) -> bool {
        silence_ns < self.hung_ns
    }

    /// The hang of a target whose only request has had no answer for so long.
    pub(crate) fn hang(self, since_ns: u64, lasted_ns: u64) -> Hang {
        Hang {
            since_ns,
            lasted_ns,
            requests: 1,
            late: self.is_late(lasted_ns),
        }
    }

    /// The limit from the order to end on, in nanoseconds.
    pub(crate) fn ns(self) -> u64 {
        self.ns
    }

    /// The limit for work that only its last byte or operation ends, in nanoseconds.
    pub(crate) fn without_deadline_ns(self) -> u64 {
        self.ns.saturating_mul(WITHOUT_DEADLINE_FACTOR)
    }

    /// The limit for a sync while the disk completes requests, in nanoseconds.
    pub(crate) fn with_active_disk_ns(self) -> u64 {
        self.ns.saturating_mul(ACTIVE_DISK_FACTOR)
    }

    /// The limits of work that does one operation after another on a target: the present one may
    /// take so long, less after the order to end.
    pub(crate) fn limits_of_each_operation(self) -> WaitLimits {
        WaitLimits {
            silence_ns: Some(self.without_deadline_ns()),
            silence_at_end_ns: Some(self.ns),
            end_ns: None,
        }
    }
}

/// The limits of a supervisor's wait for a target, in nanoseconds; `None` is for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WaitLimits {
    /// The longest silence of a target without an order to end.
    pub silence_ns: Option<u64>,
    /// The longest silence of a target that has the order to end.
    pub silence_at_end_ns: Option<u64>,
    /// The longest time from the order to end on, whatever the target still answers.
    pub end_ns: Option<u64>,
}

/// The queue in which the reports of threads arrive, and the clock by which they are waited for.
pub(crate) trait Inbox<R> {
    /// The time now, in nanoseconds.
    fn now(&self) -> u64;

    /// Waits for a report, at most this long. `Disconnected`: no thread is left that could send
    /// one.
    fn receive(&self, at_most: Duration) -> Result<R, RecvTimeoutError>;
}

/// A channel. Its clock stands still while this process does not run: a report may have arrived
/// unseen.
pub(crate) struct ChannelInbox<'a, R> {
    pub reports: &'a Receiver<R>,
    pub clock: &'a ActiveClock,
}

impl<R> Inbox<R> for ChannelInbox<'_, R> {
    fn now(&self) -> u64 {
        self.clock.now()
    }

    fn receive(&self, at_most: Duration) -> Result<R, RecvTimeoutError> {
        self.reports.recv_timeout(at_most)
    }
}

/// The end of a supervisor's wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event<R> {
    /// A thread has reported.
    Report(R),
    /// It is time to look for progress and to call the watcher. Holds the time.
    Check(u64),
    /// A target has used up its time. The supervisor waits no longer for it.
    Overdue(Overdue),
    /// Every thread has ended, and none has reported: one has panicked.
    Lost,
}

/// A target whose time is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overdue {
    /// Index of the target.
    pub target: usize,
    /// When it got the order to end; the present time where it has none.
    pub ending_since_ns: u64,
    /// The time since its last progress.
    pub silence_ns: u64,
}

/// Waits for the threads of a number of targets.
#[derive(Debug)]
pub(crate) struct Supervisor {
    limits: WaitLimits,
    targets: Vec<SupervisedTarget>,
    every_ns: u64,
    /// The last check.
    checked_ns: u64,
    /// The next check.
    due_ns: u64,
    /// A late check comes before the next report, but no two checks come before it: neither keeps
    /// the other waiting.
    has_received: bool,
    /// When the targets get the order to end, at the latest.
    deadline_ns: Option<u64>,
    is_cut_short: bool,
}

#[derive(Debug, Clone, Copy)]
struct SupervisedTarget {
    /// The time of its last sign of progress.
    heard_ns: u64,
    /// When it got the order to end.
    ending_since_ns: Option<u64>,
    /// True once its supervisor no longer waits for it.
    is_left: bool,
}

impl Supervisor {
    /// Waits from `now` on for so many targets, and checks every 50 ms.
    pub(crate) fn new(now: u64, targets: usize, limits: WaitLimits) -> Self {
        Self::checking_every(CHECK_EVERY, now, targets, limits)
    }

    /// As [`Self::new`], with another time between two checks.
    pub(crate) fn checking_every(
        every: Duration,
        now: u64,
        targets: usize,
        limits: WaitLimits,
    ) -> Self {
        let target = SupervisedTarget {
            heard_ns: now,
            ending_since_ns: None,
            is_left: false,
        };
        let every_ns = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
        Self {
            limits,
            targets: vec![target; targets],
            every_ns,
            checked_ns: now,
            due_ns: now.saturating_add(every_ns),
            has_received: false,
            deadline_ns: None,
            is_cut_short: false,
        }
    }

    /// Waits for the next event. After a check come the targets that are overdue by what the
    /// caller has found in it.
    pub(crate) fn next<R>(&mut self, inbox: &impl Inbox<R>) -> Event<R> {
        if let Some(overdue) = self.take_overdue() {
            return Event::Overdue(overdue);
        }
        loop {
            let now = inbox.now();
            if self.has_received && now >= self.due_ns {
                return self.check(now);
            }
            let at_most = Duration::from_nanos(self.due_ns.saturating_sub(now));
            match inbox.receive(at_most) {
                Ok(report) => {
                    self.has_received = true;
                    return Event::Report(report);
                }
                Err(RecvTimeoutError::Disconnected) => return Event::Lost,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = inbox.now();
            if now >= self.due_ns {
                return self.check(now);
            }
        }
    }

    fn check<R>(&mut self, now: u64) -> Event<R> {
        self.checked_ns = now;
        self.due_ns = now.saturating_add(self.every_ns);
        self.has_received = false;
        if self
            .deadline_ns
            .is_some_and(|deadline_ns| now >= deadline_ns)
        {
            self.end_all(now);
        }
        Event::Check(now)
    }

    /// The first target whose time is used up, as of the last check.
    fn take_overdue(&mut self) -> Option<Overdue> {
        let (now, limits) = (self.checked_ns, self.limits);
        for (number, target) in self.targets.iter_mut().enumerate() {
            if !target.is_left && target.is_overdue(limits, now) {
                target.is_left = true;
                return Some(Overdue {
                    target: number,
                    ending_since_ns: *target.ending_since_ns.get_or_insert(now),
                    silence_ns: now.saturating_sub(target.heard_ns),
                });
            }
        }
        None
    }

    /// Makes the next check come at this time at the latest.
    pub(crate) fn check_at(&mut self, at_ns: u64) {
        self.due_ns = self.due_ns.min(at_ns);
    }

    /// Notes that a target has shown progress at this time. Like all methods, panics on the index
    /// of a target that [`Self::new`] does not know.
    pub(crate) fn heard(&mut self, target: usize, at_ns: u64) {
        self.targets[target].heard_ns = at_ns;
    }

    /// The time since a target's last progress, as of the last check, in nanoseconds.
    pub(crate) fn silence_ns(&self, target: usize) -> u64 {
        self.checked_ns
            .saturating_sub(self.targets[target].heard_ns)
    }

    /// Orders a target to end now, unless it has that order.
    pub(crate) fn end(&mut self, target: usize, now: u64) {
        self.targets[target].ending_since_ns.get_or_insert(now);
    }

    /// Orders all targets to end now.
    pub(crate) fn end_all(&mut self, now: u64) {
        for target in 0..self.targets.len() {
            self.end(target, now);
        }
    }

    /// Orders all targets to end by the first check from this time on.
    pub(crate) fn end_at(&mut self, deadline_ns: u64) {
        self.deadline_ns = Some(deadline_ns);
    }

    /// The run was ended before its plan was: from now on the targets have these limits, also those
    /// that got the order to end long ago. Only the first call counts.
    pub(crate) fn cut_short(&mut self, limits: WaitLimits, now: u64) {
        if self.is_cut_short {
            return;
        }
        self.is_cut_short = true;
        self.limits = limits;
        for target in &mut self.targets {
            target.ending_since_ns = Some(now);
        }
    }

    /// True if a target has the order to end.
    pub(crate) fn is_ending(&self, target: usize) -> bool {
        self.targets[target].ending_since_ns.is_some()
    }

    /// Stops waiting for this target.
    pub(crate) fn leave(&mut self, target: usize) {
        self.targets[target].is_left = true;
    }
}

impl SupervisedTarget {
    fn is_overdue(&self, limits: WaitLimits, now: u64) -> bool {
        let silence_ns = now.saturating_sub(self.heard_ns);
        let Some(since_ns) = self.ending_since_ns else {
            return is_beyond(silence_ns, limits.silence_ns);
        };
        is_beyond(silence_ns, limits.silence_at_end_ns)
            || is_beyond(now.saturating_sub(since_ns), limits.end_ns)
    }
}

fn is_beyond(ns: u64, limit_ns: Option<u64>) -> bool {
    match limit_ns {
        Some(limit_ns) => ns > limit_ns,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;

    const MS: u64 = 1_000_000;
    const EVERY_NS: u64 = CHECK_EVERY.as_nanos() as u64;

    /// Reports at given times, on a clock that only waiting advances.
    struct FakeInbox {
        now_ns: Cell<u64>,
        reports: RefCell<VecDeque<(u64, &'static str)>>,
        /// When the last thread is gone.
        gone_ns: u64,
    }

    impl FakeInbox {
        fn with_reports(reports: &[(u64, &'static str)]) -> Self {
            Self {
                now_ns: Cell::new(0),
                reports: RefCell::new(reports.iter().copied().collect()),
                gone_ns: u64::MAX,
            }
        }
    }

    impl Inbox<&'static str> for FakeInbox {
        fn now(&self) -> u64 {
            self.now_ns.get()
        }

        fn receive(&self, at_most: Duration) -> Result<&'static str, RecvTimeoutError> {
            let until_ns = self.now() + at_most.as_nanos() as u64;
            let next = self.reports.borrow().front().copied();
            if let Some((at_ns, report)) = next
                && at_ns <= until_ns
            {
                self.reports.borrow_mut().pop_front();
                self.now_ns.set(at_ns.max(self.now()));
                return Ok(report);
            }
            self.now_ns.set(until_ns.min(self.gone_ns).max(self.now()));
            if self.now() >= self.gone_ns {
                return Err(RecvTimeoutError::Disconnected);
            }
            Err(RecvTimeoutError::Timeout)
        }
    }

    /// The next event that is no check.
    fn next_but_checks(supervisor: &mut Supervisor, inbox: &FakeInbox) -> Event<&'static str> {
        for _ in 0..10_000 {
            match supervisor.next(inbox) {
                Event::Check(_) => {}
                event => return event,
            }
        }
        panic!("only checks until {} ns", inbox.now());
    }

    fn overdue(target: usize, ending_since_ns: u64, silence_ns: u64) -> Event<&'static str> {
        Event::Overdue(Overdue {
            target,
            ending_since_ns,
            silence_ns,
        })
    }

    #[test]
    fn reports_come_at_once_and_checks_in_between() {
        let inbox = FakeInbox::with_reports(&[(10 * MS, "one"), (70 * MS, "two")]);
        let mut supervisor = Supervisor::new(0, 1, WaitLimits::default());
        assert_eq!(supervisor.next(&inbox), Event::Report("one"));
        assert_eq!(supervisor.next(&inbox), Event::Check(EVERY_NS));
        assert_eq!(supervisor.next(&inbox), Event::Report("two"));
        supervisor.check_at(80 * MS);
        assert_eq!(supervisor.next(&inbox), Event::Check(80 * MS));
        assert_eq!(supervisor.next(&inbox), Event::Check(130 * MS));
    }

    #[test]
    fn flood_of_reports_does_not_delay_checks_nor_checks_that_are_due_reports() {
        let inbox = FakeInbox::with_reports(&[(0, "one"), (60 * MS, "two"), (60 * MS, "three")]);
        let mut supervisor = Supervisor::new(0, 1, WaitLimits::default());
        assert_eq!(supervisor.next(&inbox), Event::Report("one"));
        inbox.now_ns.set(60 * MS);
        assert_eq!(supervisor.next(&inbox), Event::Check(60 * MS));
        supervisor.check_at(0);
        assert_eq!(supervisor.next(&inbox), Event::Report("two"));
        assert_eq!(supervisor.next(&inbox), Event::Check(60 * MS));
        supervisor.check_at(0);
        assert_eq!(supervisor.next(&inbox), Event::Report("three"));
    }

    #[test]
    fn silence_beyond_the_limit_ends_the_wait_for_its_target_once() {
        let inbox = FakeInbox::with_reports(&[]);
        let limits = StallTimeout::from_ns(100 * MS).limits_of_each_operation();
        let mut supervisor = Supervisor::new(0, 2, limits);
        for _ in 0..10 {
            assert!(matches!(supervisor.next(&inbox), Event::Check(_)));
            supervisor.heard(1, inbox.now());
        }
        // Five times the timeout have passed, but no more.
        assert_eq!(supervisor.silence_ns(0), 500 * MS);
        assert_eq!(supervisor.next(&inbox), Event::Check(550 * MS));
        supervisor.heard(1, inbox.now());
        assert_eq!(supervisor.next(&inbox), overdue(0, 550 * MS, 550 * MS));
        assert_eq!(supervisor.next(&inbox), Event::Check(600 * MS));
        assert_eq!(
            next_but_checks(&mut supervisor, &inbox),
            overdue(1, 1100 * MS, 550 * MS)
        );
    }

    #[test]
    fn order_to_end_shortens_a_silence_or_starts_a_time_of_its_own() {
        let timeout = StallTimeout::from_ns(100 * MS);
        let inbox = FakeInbox::with_reports(&[]);
        let mut supervisor = Supervisor::new(0, 1, timeout.limits_of_each_operation());
        for _ in 0..5 {
            supervisor.next(&inbox);
        }
        supervisor.end_all(inbox.now());
        assert!(supervisor.is_ending(0));
        assert_eq!(supervisor.next(&inbox), overdue(0, 250 * MS, 250 * MS));
        let inbox = FakeInbox::with_reports(&[]);
        let limits = WaitLimits {
            end_ns: Some(timeout.ns()),
            ..WaitLimits::default()
        };
        // The first check told it to end, and 150 ms are not beyond the limit yet.
        let mut supervisor = Supervisor::new(0, 1, limits);
        assert_eq!(supervisor.next(&inbox), Event::Check(50 * MS));
        supervisor.end(0, inbox.now());
        assert_eq!(supervisor.next(&inbox), Event::Check(100 * MS));
        assert_eq!(supervisor.next(&inbox), Event::Check(150 * MS));
        assert_eq!(supervisor.next(&inbox), Event::Check(200 * MS));
        // Signs of progress do not prolong it.
        supervisor.heard(0, inbox.now());
        assert_eq!(supervisor.next(&inbox), overdue(0, 50 * MS, 0));
    }

    #[test]
    fn deadline_tells_all_targets_to_end() {
        let inbox = FakeInbox::with_reports(&[]);
        let limits = WaitLimits {
            end_ns: Some(100 * MS),
            ..WaitLimits::default()
        };
        let mut supervisor = Supervisor::new(0, 2, limits);
        supervisor.end_at(120 * MS);
        supervisor.leave(1);
        for _ in 0..2 {
            supervisor.next(&inbox);
        }
        assert!(!supervisor.is_ending(0));
        let ended = next_but_checks(&mut supervisor, &inbox);
        assert_eq!(ended, overdue(0, 150 * MS, 300 * MS));
    }

    #[test]
    fn run_that_is_cut_short_counts_from_then_on() {
        let inbox = FakeInbox::with_reports(&[]);
        let limits = WaitLimits {
            end_ns: Some(10_000 * MS),
            ..WaitLimits::default()
        };
        let mut supervisor = Supervisor::new(0, 1, limits);
        supervisor.end(0, inbox.now());
        for _ in 0..20 {
            supervisor.next(&inbox);
        }
        let short = WaitLimits {
            end_ns: Some(100 * MS),
            ..limits
        };
        supervisor.cut_short(short, inbox.now());
        assert!(matches!(supervisor.next(&inbox), Event::Check(_)));
        // A second Ctrl-C does not prolong it.
        supervisor.cut_short(limits, inbox.now());
        let ended = next_but_checks(&mut supervisor, &inbox);
        assert_eq!(ended, overdue(0, 1000 * MS, 1150 * MS));
    }

    #[test]
    fn threads_that_panic_are_lost() {
        let inbox = FakeInbox {
            gone_ns: 70 * MS,
            ..FakeInbox::with_reports(&[])
        };
        let mut supervisor = Supervisor::new(0, 1, WaitLimits::default());
        assert_eq!(supervisor.next(&inbox), Event::Check(EVERY_NS));
        assert_eq!(supervisor.next(&inbox), Event::Lost);
        let (sender, reports) = std::sync::mpsc::channel::<u8>();
        let thread = std::thread::spawn(move || {
            let _held = sender;
            panic!("on purpose");
        });
        let clock = ActiveClock::new();
        let inbox = ChannelInbox {
            reports: &reports,
            clock: &clock,
        };
        let mut supervisor = Supervisor::new(clock.now(), 1, WaitLimits::default());
        let event = loop {
            match supervisor.next(&inbox) {
                Event::Check(_) => {}
                event => break event,
            }
        };
        assert_eq!(event, Event::Lost);
        assert!(thread.join().is_err());
    }

    #[test]
    fn ended_run_waits_less_and_calls_a_target_late() {
        let ended = StallTimeout::from_ns(STALL_NS).ended();
        assert_eq!(ended.ns(), ENDED_NS);
        assert_eq!(StallTimeout::from_ns(7).ended().ns(), 7);
        assert!(ended.is_late(ENDED_NS + 1) && !ended.is_late(STALL_NS));
    }
}
