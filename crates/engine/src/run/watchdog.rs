//! Makes calls that may never return. A disk that hangs holds a thread in the kernel for good: the
//! call runs in a separate thread, and the caller stops waiting at a deadline.

use crate::io::clock::ActiveClock;
use crate::io::interruptions::read_clock;
use crate::lock::lock;
use crate::run::supervise::{CHECK_EVERY, ENDED_NS, Event, Inbox, Supervisor, WaitLimits};
use crate::run::thread::own_descriptors;
use diskproof_device::Pulse;
use diskproof_model::target::TargetIdentity;
use rustix::time::ClockId;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A caller's view of a call that has not returned yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The call has made progress since the last check.
    Progress,
    /// No progress is visible since the last check.
    Silence,
    /// The run ends and needs no result of the call: the wait for it becomes short.
    EndRequested,
}

/// The end of waiting for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited<T> {
    /// The call returned.
    Done(T),
    /// The caller stopped waiting, this long after the start. The call may still return some day.
    TimedOut(Duration),
    /// The thread ended without a result: it panicked.
    Lost,
}

/// A call in a separate thread, so that the caller can stop waiting for it.
#[derive(Debug)]
pub struct Deferred<T> {
    result: Receiver<T>,
    /// While this process does not run, the call may return unseen.
    clock: ActiveClock,
    started: Duration,
}

impl<T: Send + 'static> Deferred<T> {
    /// Starts `work` in a new thread of this name.
    pub fn start(thread_name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        let (sender, result) = channel();
        // The receiver is gone when the caller has stopped waiting.
        spawn(thread_name, move || drop(sender.send(work())))?;
        Ok(Self::new(result))
    }

    /// Starts `work` in a new thread; runs it at once, in this thread, where no thread can be
    /// started.
    pub fn start_or_run(thread_name: &str, work: impl FnOnce() -> T + Send + 'static) -> Self {
        let (sender, result) = channel();
        let slot = Arc::new(Mutex::new(Some(work)));
        let run = move || {
            let taken = lock(&slot).take();
            if let Some(work) = taken {
                drop(sender.send(work()));
            }
        };
        if spawn(thread_name, run.clone()).is_err() {
            run();
        }
        Self::new(result)
    }

    fn new(result: Receiver<T>) -> Self {
        let clock = ActiveClock::new();
        Self {
            result,
            started: clock.uptime(),
            clock,
        }
    }

    /// Waits for at most this long. [`Waited::TimedOut`] leaves the call running; the caller may
    /// poll again.
    pub fn poll(&self, at_most: Duration) -> Waited<T> {
        match self.result.recv_timeout(at_most) {
            Ok(done) => Waited::Done(done),
            Err(RecvTimeoutError::Timeout) => Waited::TimedOut(self.elapsed()),
            Err(RecvTimeoutError::Disconnected) => Waited::Lost,
        }
    }

    /// Waits until `limit` after the start.
    pub fn wait(&self, limit: Duration) -> Waited<T> {
        loop {
            match self.poll(limit.saturating_sub(self.elapsed())) {
                Waited::TimedOut(after) if after < limit => {}
                ended => return ended,
            }
        }
    }

    fn elapsed(&self) -> Duration {
        self.clock.uptime() - self.started
    }

    /// Waits until the call returns, or until it has shown no progress for `stall`. Calls `look`
    /// every `every`, with the length of the present silence.
    pub fn supervise(
        &self,
        every: Duration,
        stall: Duration,
        mut look: impl FnMut(Duration) -> Sign,
    ) -> Waited<T> {
        let limits = limits_of_call(stall);
        let mut supervisor = Supervisor::checking_every(every, self.clock.now(), 1, limits);
        loop {
            match supervisor.next(self) {
                Event::Report(done) => return Waited::Done(done),
                Event::Lost => return Waited::Lost,
                Event::Overdue(_) => return Waited::TimedOut(self.elapsed()),
                Event::Check(now) => match look(Duration::from_nanos(supervisor.silence_ns(0))) {
                    Sign::Progress => supervisor.heard(0, now),
                    Sign::Silence => {}
                    Sign::EndRequested => supervisor.end(0, now),
                },
            }
        }
    }
}

impl<T> Inbox<T> for Deferred<T> {
    fn now(&self) -> u64 {
        self.clock.now()
    }

    fn receive(&self, at_most: Duration) -> Result<T, RecvTimeoutError> {
        self.result.recv_timeout(at_most)
    }
}

/// The limits of a call that may be silent for `stall`. After [`Sign::EndRequested`] the wait is
/// short.
fn limits_of_call(stall: Duration) -> WaitLimits {
    let stall_ns = u64::try_from(stall.as_nanos()).unwrap_or(u64::MAX);
    WaitLimits {
        silence_ns: Some(stall_ns),
        silence_at_end_ns: Some(stall_ns),
        end_ns: Some(stall_ns.min(ENDED_NS)),
    }
}

/// Starts a thread that is not joined.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(work).map(drop)
}

/// A call that the caller waited for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallEnd<T, S> {
    /// The call returned.
    Returned(T),
    /// The caller stopped waiting, since the call showed no progress.
    Silent(S),
}

/// Calls `work` in a separate thread, with its own descriptors for these files, which stay open as
/// long as the thread. Calls `look` every 50 ms with the length of the present silence, in
/// nanoseconds; stops waiting after `stall_ns` without progress. Of a silent call this returns the
/// time since its start.
pub(crate) fn call_with_timeout<'a, T: Send + 'static>(
    files: impl Iterator<Item = BorrowedFd<'a>>,
    stall_ns: u64,
    mut look: impl FnMut(u64) -> Sign,
    work: impl FnOnce(Vec<OwnedFd>) -> T + Send + 'static,
) -> io::Result<CallEnd<T, Duration>> {
    let numbers: Vec<RawFd> = files.map(|file| file.as_raw_fd()).collect();
    let (owned, is_owned) = channel();
    let deferred = Deferred::start("diskproof-call", move || {
        let own = own_descriptors(&numbers);
        // The receiver is gone when the caller has failed.
        let _ = owned.send(());
        own.map(work)
    })?;
    // Until then the thread needs the caller's descriptors.
    is_owned.recv().map_err(|_| lost_thread())?;
    let stall = Duration::from_nanos(stall_ns);
    match deferred.supervise(
        CHECK_EVERY,
        stall,
        |silence| look(silence.as_nanos() as u64),
    ) {
        Waited::Done(done) => done.map(CallEnd::Returned),
        Waited::TimedOut(lasted) => Ok(CallEnd::Silent(lasted)),
        Waited::Lost => Err(lost_thread()),
    }
}

fn lost_thread() -> io::Error {
    io::Error::other("a helper thread ended unexpectedly")
}

/// Counts signs of life of a thread; clones share the count.
#[derive(Debug, Clone, Default)]
pub struct Heartbeat {
    beats: Arc<AtomicU64>,
}

impl Heartbeat {
    /// Shows that the thread is alive.
    pub fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }
}

/// Only after this long without a beat other signs of life count: the engine beats twenty times a
/// second.
const QUIET: Duration = Duration::from_secs(1);
/// A process that uses this share of a processor is working, such as filling buffers, and does not
/// wait for a disk. Chosen, not measured.
const BUSY_SHARE: f64 = 0.2;

/// Signs of life of a whole run: its heartbeat, what the disks complete, and the processor time
/// that this process uses.
#[derive(Debug)]
pub struct SignsOfLife {
    heartbeat: Heartbeat,
    beats: u64,
    pulses: Vec<Pulse>,
    /// The index of the only target whose disks count.
    only: Option<usize>,
    clock: ActiveClock,
    /// When the last sign was seen.
    seen: Duration,
    /// When [`Self::is_working`] looked last.
    checked: Duration,
    /// The processor time until then.
    processor_time: Duration,
}

impl SignsOfLife {
    /// Counts from now on.
    pub fn new(heartbeat: Heartbeat, identities: &[TargetIdentity]) -> Self {
        let clock = ActiveClock::new();
        let now = clock.uptime();
        Self {
            clock,
            beats: heartbeat.count(),
            heartbeat,
            pulses: identities.iter().map(Pulse::start).collect(),
            only: None,
            seen: now,
            checked: now,
            processor_time: processor_time(),
        }
    }

    /// Counts what the disks of this target complete, and of no other one: a step that is about one
    /// target does not go on because others do. `None` for all of them.
    pub fn count_only(&mut self, target: Option<usize>) {
        self.only = target;
    }

    /// The time since the last sign of life; zero where this call finds one.
    pub fn silence(&mut self) -> Duration {
        let now = self.clock.uptime();
        let beats = self.heartbeat.count();
        if std::mem::replace(&mut self.beats, beats) != beats {
            self.seen = now;
        }
        if now - self.seen > QUIET && now - self.checked > QUIET && self.is_working(now) {
            self.seen = now;
        }
        now - self.seen
    }

    /// True if all disks of this target, or of all, have read or written since the start: none of
    /// them slept then.
    pub fn has_answered(&mut self, target: Option<usize>) -> bool {
        let mut answered = Vec::new();
        for pulse in &mut self.pulses {
            pulse.beats();
            answered.push(pulse.has_answered());
        }
        match target {
            Some(target) => answered.get(target).copied().unwrap_or(false),
            None => !answered.is_empty() && !answered.contains(&false),
        }
    }

    /// The longest silence that is usual for the disks of this target, or of all, by what they have
    /// completed since the start.
    pub fn usual_silence(&self, target: Option<usize>) -> Duration {
        let mut usual_ns = 0;
        for (index, pulse) in self.pulses.iter().enumerate() {
            if target.is_none_or(|only| only == index) {
                usual_ns = usual_ns.max(pulse.usual_silence_ns());
            }
        }
        Duration::from_nanos(usual_ns)
    }

    /// As [`Self::silence`], in the form that [`Deferred::supervise`] takes.
    pub fn look(&mut self) -> Sign {
        if self.silence().is_zero() {
            Sign::Progress
        } else {
            Sign::Silence
        }
    }

    fn is_working(&mut self, now: Duration) -> bool {
        let used = processor_time();
        let busy_from = (now - self.checked).mul_f64(BUSY_SHARE);
        let is_busy = used - self.processor_time >= busy_from;
        // Every pulse notes its present count.
        let beats: Vec<bool> = self.pulses.iter_mut().map(Pulse::beats).collect();
        (self.checked, self.processor_time) = (now, used);
        is_busy || has_beat(&beats, self.only)
    }
}

/// The processor time of all threads of this process so far.
fn processor_time() -> Duration {
    Duration::from_nanos(read_clock(ClockId::ProcessCPUTime))
}

/// True if one of these targets has completed something, or the only one that counts.
fn has_beat(beats: &[bool], only: Option<usize>) -> bool {
    match only {
        Some(target) => beats.get(target).copied().unwrap_or(false),
        None => beats.contains(&true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter;
    use std::os::fd::AsFd as _;

    fn null() -> std::fs::File {
        std::fs::File::open("/dev/null").unwrap()
    }

    #[test]
    fn life_of_other_targets_does_not_hide_the_silence_of_one() {
        let beats = [true, false];
        assert!(has_beat(&beats, None));
        assert!(has_beat(&beats, Some(0)));
        assert!(!has_beat(&beats, Some(1)));
    }

    #[test]
    fn deferred_returns_the_result_and_times_out_on_a_hang() {
        let minutes = Duration::from_secs(600);
        let waited = Deferred::start("test", || 7).unwrap().wait(minutes);
        assert_eq!(waited, Waited::Done(7));
        let waited = Deferred::start_or_run("test", || 7).wait(minutes);
        assert_eq!(waited, Waited::Done(7));
        let (release, held) = channel::<()>();
        let hung = Deferred::start("test", move || held.recv().is_err()).unwrap();
        let slice = Duration::from_millis(10);
        assert!(matches!(hung.poll(slice), Waited::TimedOut(_)));
        assert!(matches!(hung.wait(slice), Waited::TimedOut(_)));
        drop(release);
        assert_eq!(hung.poll(minutes), Waited::Done(true));
        let panics = Deferred::start("test", || -> u32 { panic!("on purpose") }).unwrap();
        assert_eq!(panics.wait(minutes), Waited::Lost);
    }

    #[test]
    fn call_that_shows_progress_may_take_longer_than_the_timeout() {
        let slow = |_: Vec<OwnedFd>| {
            std::thread::sleep(Duration::from_millis(400));
            7
        };
        let waited =
            call_with_timeout(iter::once(null().as_fd()), 1, |_| Sign::Progress, slow).unwrap();
        assert_eq!(waited, CallEnd::Returned(7));
    }

    #[test]
    fn call_without_progress_times_out() {
        const TIMEOUT_NS: u64 = 200_000_000;
        let (release, held) = channel::<()>();
        let mut silences = Vec::new();
        let look = |silent_ns| {
            silences.push(silent_ns);
            Sign::Silence
        };
        let work = move |_: Vec<OwnedFd>| held.recv().is_err();
        let waited = call_with_timeout(iter::once(null().as_fd()), TIMEOUT_NS, look, work).unwrap();
        let timeout = Duration::from_nanos(TIMEOUT_NS);
        assert!(matches!(waited, CallEnd::Silent(lasted) if lasted >= timeout));
        assert!(!silences.is_empty() && silences.is_sorted(), "{silences:?}");
        drop(release);
    }

    #[test]
    fn call_after_end_request_times_out_in_spite_of_a_long_timeout() {
        let (release, held) = channel::<()>();
        let work = move |_: Vec<OwnedFd>| held.recv().is_err();
        let waited = call_with_timeout(
            iter::once(null().as_fd()),
            300_000_000,
            |_| Sign::EndRequested,
            work,
        );
        assert!(matches!(waited, Ok(CallEnd::Silent(_))));
        drop(release);
    }

    #[test]
    fn heartbeat_is_a_sign_of_life() {
        let heartbeat = Heartbeat::default();
        let mut signs = SignsOfLife::new(heartbeat.clone(), &[]);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(signs.look(), Sign::Silence);
        heartbeat.beat();
        assert_eq!(signs.look(), Sign::Progress);
    }
}
