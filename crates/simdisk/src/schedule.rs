//! Drives a `Timing` in real time: answers leave when the model says so. Must not know FUSE, nor
//! what an answer is.

use crate::models::{Request, Timing};
use crate::precedence::take_precedence;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The last stretch of a sleep is spent awake, because a thread on a virtual machine comes back
/// late by about as much.
const SPIN_MAX_NS: u64 = 50_000;
/// And it is no more than this share of the sleep, because the program under test needs the
/// processors too.
const SPIN_SHARE: u64 = 2;

/// Answers of type `A` waiting for their time.
pub struct Schedule<A> {
    switched_on: Instant,
    state: Mutex<State<A>>,
    changed: Condvar,
}

struct State<A> {
    timing: Box<dyn Timing>,
    waiting: HashMap<u64, A>,
    waiting_max: usize,
    /// When the timer thread will look again by itself.
    wakes_ns: u64,
    stopping: bool,
}

impl<A: Send> Schedule<A> {
    /// Switches the machine on now.
    pub fn new(timing: Box<dyn Timing>) -> Self {
        let state = State {
            timing,
            waiting: HashMap::new(),
            waiting_max: 0,
            wakes_ns: 0,
            stopping: false,
        };
        Self {
            switched_on: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Virtual time now.
    pub fn now_ns(&self) -> u64 {
        self.switched_on.elapsed().as_nanos() as u64
    }

    /// The most requests that were under way at once.
    pub fn waiting_max(&self) -> usize {
        self.lock().waiting_max
    }

    /// Hands a request over, and calls `send` for each answer that is due by now (perhaps this
    /// one).
    pub fn submit(&self, request: Request, answer: A, send: impl FnMut(A)) {
        let mut state = self.lock();
        state.waiting.insert(request.ticket, answer);
        state.waiting_max = state.waiting_max.max(state.waiting.len());
        state.timing.submit(request);
        let due = state.take_due(self.now_ns());
        if state.timing.next_ns().is_some_and(|ns| ns < state.wakes_ns) {
            self.changed.notify_one();
        }
        drop(state);
        due.into_iter().for_each(send);
    }

    /// The timer thread: sends each answer in time, until `stop`.
    pub fn run_timer(&self, mut send: impl FnMut(A)) {
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
            let left_ns = next_ns.saturating_sub(now_ns).min(3_600_000_000_000);
            state.wakes_ns = next_ns;
            let sleep = Duration::from_nanos(left_ns - SPIN_MAX_NS.min(left_ns / SPIN_SHARE));
            let (woken, outcome) = self
                .changed
                .wait_timeout(state, sleep)
                .expect("no holder of the lock panics");
            state = woken;
            state.wakes_ns = 0;
            if outcome.timed_out() && state.timing.next_ns() == Some(next_ns) {
                drop(state);
                while self.now_ns() < next_ns {
                    std::hint::spin_loop();
                }
                state = self.lock();
            }
        }
    }

    /// Ends `run_timer`. Answers still waiting are never sent.
    pub fn stop(&self) {
        self.lock().stopping = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<A>> {
        self.state.lock().expect("no holder of the lock panics")
    }
}

impl<A> State<A> {
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
    use crate::models::{Operation, Request};
    use std::sync::mpsc;

    fn request(ticket: u64, arrival_ns: u64) -> Request {
        Request {
            ticket,
            arrival_ns,
            operation: Operation::Read,
            offset_bytes: 0,
            length_bytes: 512,
            extra_ns: 0,
        }
    }

    #[test]
    fn what_takes_no_time_is_answered_at_once() {
        let schedule = Schedule::new(Box::new(Flash::default().start()));
        let mut sent = Vec::new();
        schedule.submit(request(1, schedule.now_ns()), "a", |a| sent.push(a));
        assert_eq!(sent, ["a"]);
        assert_eq!(schedule.waiting_max(), 1);
    }

    #[test]
    fn answers_leave_in_order_and_never_early() {
        let disk = Flash {
            read_latency_ns: 2_000_000,
            channels: Some(1),
            ..Flash::default()
        };
        let schedule = Schedule::new(Box::new(disk.start()));
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
