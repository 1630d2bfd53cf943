//! Calls that may never return, and how long a target may show no progress. A disk that hangs holds
//! a thread in the kernel for good: the call runs in a separate thread, and the caller stops
//! waiting at a deadline. Does not know what is called.

use crate::io::clock::ActiveClock;
use crate::io::interruptions::read;
use crate::lock::lock;
use crate::run::thread::own_descriptors;
use diskproof_device::Pulse;
use diskproof_model::measurement::Hang;
use diskproof_model::target::TargetIdentity;
use rustix::time::ClockId;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A target that does not answer for this long after everything was told to end counts as hung.
/// Longer than the kernel's own timeout for SCSI commands (30 s), so that its error arrives first.
pub const STALL_NS: u64 = 45_000_000_000;

/// Once the user or the end of the announced time has ended a run, it waits at most this long for
/// what is in flight. What is missing then stays unknown.
const ENDED_NS: u64 = 4_000_000_000;

/// How often a supervisor checks for progress, and calls the watcher.
pub(crate) const CHECK_EVERY: Duration = Duration::from_millis(50);

/// Work without a deadline of its own may be silent this many times longer. A disk that retries a
/// bad sector is not hung: Linux sends the command to a SCSI disk six times and waits 30 s each
/// time (SD_TIMEOUT and SD_MAX_RETRIES in drivers/scsi/sd.h).
const WITHOUT_DEADLINE_FACTOR: u64 = 5;

/// A sync may take many minutes where other programs have much to write back. While the disk
/// completes requests, the sync may take this many times longer; those requests may belong to
/// others, and the sync may be lost.
const ACTIVE_DISK_FACTOR: u64 = 20;

/// How long a target may show no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StallTimeout {
    ns: u64,
    hung_ns: u64,
}

impl StallTimeout {
    /// Counts from the time at which the work was told to end.
    pub(crate) fn from_ns(ns: u64) -> Self {
        Self { ns, hung_ns: ns }
    }

    /// In a run that was ended before its plan was.
    pub(crate) fn ended(self) -> Self {
        Self {
            ns: self.ns.min(ENDED_NS),
            ..self
        }
    }

    /// Whether a target that was silent for so long, when the wait ended, may only be slow.
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

    /// After the work was told to end, in nanoseconds.
    pub(crate) fn ns(self) -> u64 {
        self.ns
    }

    /// For work that was told to end, or that only its last byte or operation ends, in nanoseconds.
    pub(crate) fn limit_ns(self, is_ending: bool) -> u64 {
        if is_ending {
            self.ns
        } else {
            self.without_deadline_ns()
        }
    }

    /// For work that only its last byte or operation ends, in nanoseconds.
    pub(crate) fn without_deadline_ns(self) -> u64 {
        self.ns.saturating_mul(WITHOUT_DEADLINE_FACTOR)
    }

    /// For a sync while the disk completes requests, in nanoseconds.
    pub(crate) fn with_active_disk_ns(self) -> u64 {
        self.ns.saturating_mul(ACTIVE_DISK_FACTOR)
    }
}

/// Whether a call that has not returned yet has made progress since the last check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// It has.
    Progress,
    /// It has not, as far as anyone can tell.
    Silence,
    /// The run was ended, so that the wait for it is short.
    Unwanted,
}

/// How waiting for a call ended.
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
        look: impl FnMut(Duration) -> Sign,
    ) -> Waited<T> {
        let ended = stall.min(Duration::from_nanos(ENDED_NS));
        self.supervise_for(every, (stall, ended), look)
    }

    /// The same, but waits for an unwanted call as long as `ended`.
    pub(crate) fn supervise_for(
        &self,
        every: Duration,
        (stall, ended): (Duration, Duration),
        mut look: impl FnMut(Duration) -> Sign,
    ) -> Waited<T> {
        let (mut seen, mut unwanted) = (self.clock.uptime(), None);
        loop {
            match self.poll(every) {
                Waited::TimedOut(_) => {}
                ended => return ended,
            }
            let now = self.clock.uptime();
            match look(now - seen) {
                Sign::Progress => seen = now,
                Sign::Silence => {}
                Sign::Unwanted => _ = unwanted.get_or_insert(now),
            }
            if now - seen > stall || unwanted.is_some_and(|since| now - since > ended) {
                return Waited::TimedOut(self.elapsed());
            }
        }
    }
}

/// Starts a thread that nobody joins.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(work).map(drop)
}

/// Calls `work` in a separate thread, with its own descriptor for the file behind `fd`, which stays
/// open as long as the thread. Calls `look` every 50 ms with the length of the present silence, in
/// nanoseconds; stops waiting after `stall_ns` without progress, and returns then how long the call
/// had taken as the error of the inner result.
pub(crate) fn call_with_timeout<T: Send + 'static>(
    fd: BorrowedFd<'_>,
    stall_ns: u64,
    mut look: impl FnMut(u64) -> Sign,
    work: impl FnOnce(OwnedFd) -> T + Send + 'static,
) -> io::Result<Result<T, Duration>> {
    let (fd, (owned, is_owned)) = (fd.as_raw_fd(), channel());
    let call = move || {
        let fd = own_descriptors(fd, None);
        // The receiver is gone when the caller has failed.
        let _ = owned.send(());
        fd.map(|(fd, _)| work(fd))
    };
    let deferred = Deferred::start("diskproof-call", call)?;
    let lost = || io::Error::other("a helper thread ended unexpectedly");
    // Until then the thread needs the caller's descriptor.
    is_owned.recv().map_err(|_| lost())?;
    let stall = Duration::from_nanos(stall_ns);
    match deferred.supervise(
        CHECK_EVERY,
        stall,
        |silence| look(silence.as_nanos() as u64),
    ) {
        Waited::Done(done) => done.map(Ok),
        Waited::TimedOut(lasted) => Ok(Err(lasted)),
        Waited::Lost => Err(lost()),
    }
}

/// When the workers of a target should have ended, once that is longer ago than `timeout` allows.
/// `stopping_since` is when they were told to end. Where only the last byte or operation ends them,
/// `silence_ns` is how long the target has completed nothing.
pub(crate) fn overdue_since(
    stopping_since: &mut Option<u64>,
    now: u64,
    silence_ns: Option<u64>,
    timeout: StallTimeout,
) -> Option<u64> {
    match *stopping_since {
        Some(since_ns) => (now - since_ns > timeout.ns()).then_some(since_ns),
        None if silence_ns? > timeout.without_deadline_ns() => Some(*stopping_since.insert(now)),
        None => None,
    }
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

/// The engine beats twenty times a second. Only after this long without a beat other signs count.
const QUIET: Duration = Duration::from_secs(1);
/// A process that uses this share of a processor is working, such as filling buffers, and does not
/// wait for a disk.
const BUSY_SHARE: f64 = 0.2;

/// Signs of life of a whole run: its heartbeat, what the disks complete, and the processor time
/// that this process uses.
#[derive(Debug)]
pub struct SignsOfLife {
    heartbeat: Heartbeat,
    beats: u64,
    pulses: Vec<Pulse>,
    clock: ActiveClock,
    seen: Duration,
    checked: Duration,
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
            pulses: identities.iter().map(Pulse::of).collect(),
            seen: now,
            checked: now,
            processor_time: processor_time(),
        }
    }

    /// For how long there has been no sign.
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

    /// Whether there was a sign since the last look; for [`Deferred::supervise`].
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
        let mut completed = false;
        for pulse in &mut self.pulses {
            // Every pulse notes its present count.
            completed |= pulse.beats();
        }
        (self.checked, self.processor_time) = (now, used);
        is_busy || completed
    }
}

/// Of all threads of this process so far.
fn processor_time() -> Duration {
    Duration::from_nanos(read(ClockId::ProcessCPUTime))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    fn null() -> std::fs::File {
        std::fs::File::open("/dev/null").unwrap()
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
        let slow = |_| {
            std::thread::sleep(Duration::from_millis(400));
            7
        };
        let waited = call_with_timeout(null().as_fd(), 1, |_| Sign::Progress, slow).unwrap();
        assert_eq!(waited, Ok(7));
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
        let work = move |_| held.recv().is_err();
        let waited = call_with_timeout(null().as_fd(), TIMEOUT_NS, look, work).unwrap();
        let timeout = Duration::from_nanos(TIMEOUT_NS);
        assert!(waited.is_err_and(|lasted| lasted >= timeout));
        assert!(!silences.is_empty() && silences.is_sorted(), "{silences:?}");
        drop(release);
    }

    #[test]
    fn unwanted_call_times_out_in_spite_of_a_long_timeout() {
        assert_eq!(StallTimeout::from_ns(STALL_NS).ended().ns(), ENDED_NS);
        assert_eq!(StallTimeout::from_ns(7).ended().ns(), 7);
        let ended = StallTimeout::from_ns(STALL_NS).ended();
        assert!(ended.is_late(ENDED_NS + 1) && !ended.is_late(STALL_NS));
        let (release, held) = channel::<()>();
        let work = move |_| held.recv().is_err();
        let waited = call_with_timeout(null().as_fd(), 300_000_000, |_| Sign::Unwanted, work);
        assert!(matches!(waited, Ok(Err(_))));
        drop(release);
    }

    #[test]
    fn deadline_counts_from_the_order_to_end_or_from_a_long_silence() {
        let timeout = StallTimeout::from_ns(10);
        assert_eq!(overdue_since(&mut None, 90, None, timeout), None);
        let mut stopping = Some(100);
        assert_eq!(overdue_since(&mut stopping, 110, None, timeout), None);
        assert_eq!(overdue_since(&mut stopping, 111, None, timeout), Some(100));
        let mut endless = None;
        assert_eq!(overdue_since(&mut endless, 100, Some(50), timeout), None);
        let since = overdue_since(&mut endless, 101, Some(51), timeout);
        assert_eq!(since, Some(101));
        assert_eq!(endless, Some(101));
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
