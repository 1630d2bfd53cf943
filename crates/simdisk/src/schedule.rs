//! Drives a `TimingModel` in real time: replies leave when the model says so.

use crate::models::{DiskRequest, TimingModel};
use crate::precedence::take_precedence;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The end of a sleep is spun, because a thread on a virtual machine wakes up late by about this
/// much.
const SPIN_MAX_NS: u64 = 50_000;
/// Spinning takes at most one part in so many of a sleep: the program under test needs the
/// processors too.
const SPIN_SHARE: u64 = 2;

/// The longest sleep of the timer, an hour. Without a pending reply it would be infinite; the timer
/// then only looks again.
const SLEEP_MAX_NS: u64 = 3_600_000_000_000;

/// Replies of type `A` that wait for their time.
pub(crate) struct ReplySchedule<A> {
    /// The longest that the timer spins.
    spin_max_ns: u64,
    switched_on: Instant,
    state: Mutex<ScheduleState<A>>,
    changed: Condvar,
    /// True if a reply came to be due before the one that the timer waits for.
    has_earlier: AtomicBool,
}

struct ScheduleState<A> {
    timing: Box<dyn TimingModel>,
    /// The replies, by the tickets of their requests.
    waiting: HashMap<u64, A>,
    /// The most that waited at once.
    waiting_max: usize,
    /// The time at which the timer thread sends the next reply by itself.
    wakes_ns: u64,
    stopping: bool,
}

impl<A: Send> ReplySchedule<A> {
    /// Starts at virtual time 0.
    pub(crate) fn new(timing: Box<dyn TimingModel>) -> Self {
        let state = ScheduleState {
            timing,
            waiting: HashMap::new(),
            waiting_max: 0,
            wakes_ns: 0,
            stopping: false,
        };
        Self {
            spin_max_ns: SPIN_MAX_NS,
            switched_on: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            has_earlier: AtomicBool::new(false),
        }
    }

    /// The present in virtual time.
    pub(crate) fn now_ns(&self) -> u64 {
        self.switched_on.elapsed().as_nanos() as u64
    }

    /// The most requests that were in flight at once.
    pub(crate) fn waiting_max(&self) -> usize {
        self.lock().waiting_max
    }

    /// Submits a request, and calls `send` for each reply that is due, this one included.
    pub(crate) fn submit(&self, request: DiskRequest, answer: A, send: impl FnMut(A)) {
        let mut state = self.lock();
        state.waiting.insert(request.ticket, answer);
        state.waiting_max = state.waiting_max.max(state.waiting.len());
        state.timing.submit(request);
        let due = state.take_due(self.now_ns());
        if state.timing.next_ns().is_some_and(|ns| ns < state.wakes_ns) {
            self.has_earlier.store(true, Ordering::Relaxed);
            self.changed.notify_one();
        }
        drop(state);
        due.into_iter().for_each(send);
    }

    /// The timer thread: sends each reply in time, until `stop`.
    pub(crate) fn run_timer(&self, mut send: impl FnMut(A)) {
        take_precedence();
        // Sleeps end up to 50 µs late by default (prctl(2), PR_SET_TIMERSLACK). A refusal only
        // costs precision.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut state = self.lock();
        while !state.stopping {
            let now_ns = self.now_ns();
            let due = state.take_due(now_ns);
            if !due.is_empty() {
                drop(state);
                due.into_iter().for_each(&mut send);
                state = self.lock();
                continue;
            }
            let next_ns = state.timing.next_ns().unwrap_or(u64::MAX);
            let left_ns = next_ns.saturating_sub(now_ns).min(SLEEP_MAX_NS);
            state.wakes_ns = next_ns;
            let sleep = Duration::from_nanos(left_ns - self.spin_max_ns.min(left_ns / SPIN_SHARE));
            let (woken, outcome) = self
                .changed
                .wait_timeout(state, sleep)
                .expect("no holder of the lock panics");
            state = woken;
            if outcome.timed_out() && state.timing.next_ns() == Some(next_ns) {
                drop(state);
                while self.now_ns() < next_ns && !self.has_earlier.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                state = self.lock();
            }
            state.wakes_ns = 0;
            self.has_earlier.store(false, Ordering::Relaxed);
        }
    }

    /// Ends `run_timer`. Pending replies are never sent.
    pub(crate) fn stop(&self) {
        self.lock().stopping = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ScheduleState<A>> {
        self.state.lock().expect("no holder of the lock panics")
    }
}

impl<A> ScheduleState<A> {
    /// Takes the replies whose time has come, in the order of their ends.
    fn take_due(&mut self, now_ns: u64) -> Vec<A> {
        std::iter::from_fn(|| self.timing.take_done(now_ns))
            .filter_map(|c| self.waiting.remove(&c.ticket))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::flash::Flash;
    use crate::models::{DiskRequest, Operation};
    use std::sync::mpsc;

    fn request(ticket: u64, arrival_ns: u64) -> DiskRequest {
        DiskRequest {
            ticket,
            arrival_ns,
            operation: Operation::Read,
            offset_bytes: 0,
            length_bytes: 512,
            extra_ns: 0,
        }
    }

    #[test]
    fn schedule_sends_immediate_reply_at_submit() {
        let schedule = ReplySchedule::new(Box::new(Flash::default().start()));
        let mut sent = Vec::new();
        schedule.submit(request(1, schedule.now_ns()), "a", |a| sent.push(a));
        assert_eq!(sent, ["a"]);
        assert_eq!(schedule.waiting_max(), 1);
    }

    /// The timer of this test spins for seconds, and is at it when the second request arrives.
    #[test]
    fn spinning_timer_sends_a_reply_that_is_due_earlier() {
        let disk = Flash {
            read_latency_ns: 3_000_000_000,
            write_latency_ns: 1_000_000,
            ..Flash::default()
        };
        let mut schedule = ReplySchedule::new(Box::new(disk.start()));
        schedule.spin_max_ns = u64::MAX;
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            let timer = scope.spawn(|| schedule.run_timer(|n| sender.send(n).unwrap()));
            let start_ns = schedule.now_ns();
            schedule.submit(request(1, start_ns), 1, |_| panic!("not due yet"));
            // Half of the time it sleeps.
            std::thread::sleep(Duration::from_millis(1700));
            let write = DiskRequest {
                operation: Operation::Write,
                ..request(2, schedule.now_ns())
            };
            schedule.submit(write, 2, |_| {});
            let first = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
            let is_early = schedule.now_ns() < start_ns + 3_000_000_000;
            schedule.stop();
            timer.join().unwrap();
            assert_eq!((first, is_early), (2, true));
        });
    }

    #[test]
    fn schedule_sends_replies_in_order_and_never_early() {
        let disk = Flash {
            read_latency_ns: 2_000_000,
            channels: Some(1),
            ..Flash::default()
        };
        let schedule = ReplySchedule::new(Box::new(disk.start()));
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            let timer = scope
                .spawn(|| schedule.run_timer(|n| sender.send((n, schedule.now_ns())).unwrap()));
            let start_ns = schedule.now_ns();
            for n in 0..5 {
                schedule.submit(request(n, start_ns), n, |_| panic!("not due yet"));
            }
            for n in 0..5 {
                let (sent, at_ns) = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
                assert_eq!(sent, n);
                assert!(at_ns >= start_ns + (n + 1) * 2_000_000, "early: {at_ns}");
            }
            schedule.stop();
            timer.join().unwrap();
        });
    }
}
