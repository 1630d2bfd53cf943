//! Finds the times in which this process did not run: it was stopped (SIGSTOP, Ctrl-Z), frozen (a
//! paused container or virtual machine), or suspended with the whole machine.
//!
//! A thread wakes up every 10 ms. A long gap between two wake-ups is an interruption where a
//! SIGCONT arrived in it. Without that signal it is one only if the process used no processor and
//! the thread did not wait for one: the kernel counts the time on a run queue in schedstat.

// The mask of a thread's signals is set by system calls.
#![allow(unsafe_code)]

use crate::lock::lock;
use diskproof_model::measurement::{Interruption, InterruptionKind};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

/// The thread wakes up after this time; an interruption begins up to this long after its last
/// wake-up.
const TICK: Duration = Duration::from_millis(10);
/// The shortest gap that counts where a SIGCONT shows that the process was stopped: a thread of an
/// idle machine is seldom this late. Chosen, not measured.
const STOPPED_NS_MIN: u64 = 30_000_000;
/// The shortest gap that counts without SIGCONT. A limit of CPU time (`cpu.max` of a cgroup)
/// withholds processors for some 100 ms at a time. A stalling disk can hold this thread up for
/// longer, through a page fault, and such a stall must stay in the figures.
const FROZEN_NS_MIN: u64 = 5_000_000_000;
/// The least that CLOCK_BOOTTIME gains on CLOCK_MONOTONIC while a machine is suspended. Both clocks
/// are otherwise the same, so only the time between the two readings must be less (`Look::take`).
const SUSPENDED_NS_MIN: u64 = 20_000_000;
/// Without SIGCONT, a gap does not count if more than one part in so many was spent on a run queue
/// or on processors. Chosen, not measured.
const RUN_PART: u64 = 4;
/// The thread has not looked for this long: it is stopped, or waits for a processor.
const SILENT_NS: u64 = 50_000_000;
/// A look that is at most this late cannot have waited long for a processor.
const LATE_NS: u64 = 300_000;
/// The kernel's count of the waiting is read at least this often.
const COUNT_AGE_NS: u64 = 1_000_000_000;
/// The signal is looked for so many times, a millisecond apart: another thread may run the handler
/// of SIGCONT a little later than this one wakes up.
const HANDLER_TRIES: u32 = 20;
/// Another thread waits for this one to look for so many pauses of [`LOOK_PAUSE`]: one second.
const LOOK_TRIES: u32 = 5_000;
/// The pause of a thread that waits for this one to look.
const LOOK_PAUSE: Duration = Duration::from_micros(200);

/// An interruption on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gap {
    /// Longer than from its start to `to_ns` where that clock stood still.
    interruption: Interruption,
    to_ns: u64,
}

/// When the thread looked last; 0 while there is none.
static LOOKED_NS: AtomicU64 = AtomicU64::new(0);
/// Length of [`GAPS`].
static FOUND: AtomicUsize = AtomicUsize::new(0);
static GAPS: Mutex<Vec<Gap>> = Mutex::new(Vec::new());

/// Starts the thread, once per process. Without it no interruption is ever found.
pub(crate) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let continued = Arc::new(AtomicBool::new(false));
        // Without the handler a short stop is not found.
        let _ = signal_hook::flag::register(libc::SIGCONT, Arc::clone(&continued));
        let thread = std::thread::Builder::new().name("diskproof-awake".to_owned());
        let _ = thread.spawn(move || {
            // A program that was started with SIGCONT blocked passes that on to all its threads.
            unblock(libc::SIGCONT);
            watch(&continued);
        });
    });
}

/// The loop of the thread: judges the gap between each two wake-ups.
fn watch(continued: &AtomicBool) {
    // This thread's own: resolved when it is opened.
    let schedstat = File::open("/proc/thread-self/schedstat").ok();
    let mut before = Look::take(None, schedstat.as_ref());
    loop {
        LOOKED_NS.store(before.monotonic_ns, Ordering::Release);
        std::thread::sleep(TICK);
        let after = Look::take(Some(&before), schedstat.as_ref());
        let gap = judge(&before, &after, || was_continued(continued));
        continued.store(false, Ordering::Relaxed);
        if let Some(gap) = gap {
            let mut gaps = lock(&GAPS);
            gaps.push(gap);
            FOUND.store(gaps.len(), Ordering::Release);
        }
        before = after;
    }
}

/// True if a SIGCONT arrived. Another thread may have to run its handler, and wait for a processor
/// first; until then the kernel lists the signal as pending.
fn was_continued(continued: &AtomicBool) -> bool {
    for _ in 0..HANDLER_TRIES {
        if is_pending(libc::SIGCONT) || continued.load(Ordering::Relaxed) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

/// True if a signal to the process is pending (proc_pid_status(5)).
fn is_pending(signal: i32) -> bool {
    match pending_signals() {
        Some(mask) => mask & (1 << (signal - 1)) != 0,
        None => false,
    }
}

fn pending_signals() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    for line in status.lines() {
        if let Some(mask) = line.strip_prefix("ShdPnd:") {
            return u64::from_str_radix(mask.trim(), 16).ok();
        }
    }
    None
}

/// Lets the calling thread receive a signal.
fn unblock(signal: i32) {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set that the other two calls use; a null pointer asks for
    // no previous mask. With a valid signal none of them can fail.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Readings of the thread when it wakes up.
#[derive(Debug, Clone, Copy)]
struct Look {
    monotonic_ns: u64,
    /// CLOCK_BOOTTIME, which goes on while the machine is suspended.
    boot_ns: u64,
    /// CPU time of the process.
    process_ns: u64,
    /// Nanoseconds that this thread has waited on run queues; `None` where the kernel does not
    /// count it.
    waited_ns: Option<u64>,
    /// When that was read.
    counted_ns: u64,
}

impl Look {
    /// Keeps the last look's count of the waiting while the looks are in time: reading it every
    /// time keeps the kernel's way of reading files in the processor's caches, so that a slow
    /// `ping` would see shorter requests than another program.
    fn take(last: Option<&Self>, schedstat: Option<&File>) -> Self {
        loop {
            let monotonic_ns = read_clock(ClockId::Monotonic);
            let boot_ns = read_clock(ClockId::Boottime);
            // A stop between the two readings would look like a suspended machine.
            if read_clock(ClockId::Monotonic) < monotonic_ns + SUSPENDED_NS_MIN / 4 {
                let process_ns = read_clock(ClockId::ProcessCPUTime);
                let (waited_ns, counted_ns) = match (last, schedstat) {
                    (Some(last), _) if last.covers(monotonic_ns) => {
                        (last.waited_ns, last.counted_ns)
                    }
                    (_, Some(file)) => (read_waited_ns(file), monotonic_ns),
                    (_, None) => (None, monotonic_ns),
                };
                return Self {
                    monotonic_ns,
                    boot_ns,
                    process_ns,
                    waited_ns,
                    counted_ns,
                };
            }
        }
    }

    fn interruption(&self, kind: InterruptionKind, length_ns: u64) -> Interruption {
        Interruption {
            start_ns: self.monotonic_ns,
            length_ns,
            kind,
            requests: 0,
        }
    }

    /// True if the count of the waiting still holds at the next look.
    fn covers(&self, next_ns: u64) -> bool {
        next_ns < self.monotonic_ns + TICK.as_nanos() as u64 + LATE_NS
            && next_ns < self.counted_ns + COUNT_AGE_NS
    }
}

/// The time of a clock of the kernel, in nanoseconds.
pub(crate) fn read_clock(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The second figure of schedstat (Linux, Documentation/scheduler/sched-stats.rst).
fn read_waited_ns(schedstat: &File) -> Option<u64> {
    let mut bytes = [0; 96];
    let length = schedstat.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(&bytes[..length]).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The interruption between two looks, if there was one. `was_continued` says whether a SIGCONT
/// arrived meanwhile; it may take a while, and is called only for a gap.
fn judge(before: &Look, after: &Look, was_continued: impl FnOnce() -> bool) -> Option<Gap> {
    let elapsed_ns = after.monotonic_ns - before.monotonic_ns;
    let boot_ns = after.boot_ns.saturating_sub(before.boot_ns);
    let to_ns = after.monotonic_ns;
    if boot_ns.saturating_sub(elapsed_ns) >= SUSPENDED_NS_MIN {
        let interruption = before.interruption(InterruptionKind::Suspended, boot_ns);
        return Some(Gap {
            interruption,
            to_ns,
        });
    }
    let gap_ns = elapsed_ns.saturating_sub(TICK.as_nanos() as u64);
    if gap_ns < STOPPED_NS_MIN {
        return None;
    }
    let used_ns = after.process_ns.saturating_sub(before.process_ns);
    let waited_ns = match (after.waited_ns, before.waited_ns) {
        (Some(after_ns), Some(before_ns)) => Some(after_ns.saturating_sub(before_ns)),
        _ => None,
    };
    // A busy machine lets a process wait both before it is stopped and after it is continued.
    let unexplained_ns = gap_ns.saturating_sub(used_ns.max(waited_ns.unwrap_or(0)));
    if unexplained_ns >= STOPPED_NS_MIN && was_continued() {
        let interruption = before.interruption(InterruptionKind::Stopped, elapsed_ns);
        return Some(Gap {
            interruption,
            to_ns,
        });
    }
    // Where the kernel does not count the waiting, the gap may have been that.
    let waited_ns = waited_ns?;
    let is_idle = used_ns <= gap_ns / RUN_PART && waited_ns <= gap_ns / RUN_PART;
    if !is_idle || gap_ns < FROZEN_NS_MIN {
        return None;
    }
    let interruption = before.interruption(InterruptionKind::Frozen, elapsed_ns);
    Some(Gap {
        interruption,
        to_ns,
    })
}

/// Time that a clock skips: the interruptions since it was made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SkippedTime {
    /// The number of interruptions that are skipped or lie before the clock's start.
    known: usize,
    /// Their part in its time, in nanoseconds.
    pub ns: u64,
}

impl SkippedTime {
    /// Skips the interruptions from now on.
    pub(crate) fn from_now() -> Self {
        Self {
            known: FOUND.load(Ordering::Acquire),
            ns: 0,
        }
    }

    /// The interruptions since the last call. Skips the part of them between `since_ns()` and
    /// `now_ns` on CLOCK_MONOTONIC. Where the thread has not looked for long it waits for that.
    #[inline]
    pub(crate) fn update(
        &mut self,
        now_ns: u64,
        since_ns: impl FnOnce() -> u64,
    ) -> Vec<Interruption> {
        let looked_ns = LOOKED_NS.load(Ordering::Acquire);
        let is_silent = looked_ns != 0 && now_ns > looked_ns + SILENT_NS;
        if !is_silent && FOUND.load(Ordering::Acquire) == self.known {
            return Vec::new();
        }
        self.find(now_ns, since_ns())
    }

    #[cold]
    fn find(&mut self, now_ns: u64, since_ns: u64) -> Vec<Interruption> {
        for _ in 0..LOOK_TRIES {
            if now_ns <= LOOKED_NS.load(Ordering::Acquire) + SILENT_NS {
                break;
            }
            std::thread::sleep(LOOK_PAUSE);
        }
        let gaps = lock(&GAPS);
        let new = &gaps[self.known..];
        self.known = gaps.len();
        self.skip(new, now_ns, since_ns)
    }

    fn skip(&mut self, gaps: &[Gap], now_ns: u64, since_ns: u64) -> Vec<Interruption> {
        let mut interruptions = Vec::new();
        for gap in gaps {
            if gap.to_ns <= since_ns {
                continue;
            }
            let from_ns = gap.interruption.start_ns.max(since_ns);
            self.ns += gap.to_ns.min(now_ns).saturating_sub(from_ns);
            interruptions.push(gap.interruption);
        }
        interruptions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND_NS: u64 = 1_000_000;

    fn look(monotonic_ns: u64) -> Look {
        Look {
            monotonic_ns,
            boot_ns: monotonic_ns + 7,
            process_ns: 0,
            waited_ns: Some(0),
            counted_ns: monotonic_ns,
        }
    }

    fn stopped(start_ns: u64, to_ns: u64) -> Gap {
        Gap {
            interruption: Interruption {
                start_ns,
                length_ns: to_ns - start_ns,
                kind: InterruptionKind::Stopped,
                requests: 0,
            },
            to_ns,
        }
    }

    #[test]
    fn waiting_is_counted_again_after_a_late_look_and_every_second() {
        let last = look(1000 * MILLISECOND_NS);
        assert!(last.covers(1010 * MILLISECOND_NS) && !last.covers(1011 * MILLISECOND_NS));
        let stale = Look {
            counted_ns: 9 * MILLISECOND_NS,
            ..last
        };
        assert!(!stale.covers(1010 * MILLISECOND_NS));
    }

    fn kind(after: Look, was_continued: bool) -> Option<InterruptionKind> {
        judge(&look(1000 * MILLISECOND_NS), &after, || was_continued)
            .map(|gap| gap.interruption.kind)
    }

    #[test]
    fn stopped_process_is_found_by_its_gap_and_sigcont() {
        let gap = judge(
            &look(1000 * MILLISECOND_NS),
            &look(3000 * MILLISECOND_NS),
            || true,
        )
        .unwrap();
        let expected = stopped(1000 * MILLISECOND_NS, 3000 * MILLISECOND_NS);
        assert_eq!(gap, expected);
        assert_eq!(
            kind(look(1050 * MILLISECOND_NS), true),
            Some(InterruptionKind::Stopped)
        );
    }

    #[test]
    fn late_wake_up_is_no_interruption() {
        assert_eq!(kind(look(1030 * MILLISECOND_NS), true), None);
        assert_eq!(
            kind(look(1300 * MILLISECOND_NS), false),
            None,
            "a limit of CPU time"
        );
    }

    #[test]
    fn frozen_process_needs_no_signal_but_the_kernels_count() {
        assert_eq!(
            kind(look(7000 * MILLISECOND_NS), false),
            Some(InterruptionKind::Frozen)
        );
        let uncounted = Look {
            waited_ns: None,
            ..look(7000 * MILLISECOND_NS)
        };
        assert_eq!(kind(uncounted, false), None);
    }

    #[test]
    fn starved_or_running_process_is_not_interrupted() {
        let starved = Look {
            waited_ns: Some(5990 * MILLISECOND_NS),
            ..look(7000 * MILLISECOND_NS)
        };
        let running = Look {
            process_ns: 5990 * MILLISECOND_NS,
            ..look(7000 * MILLISECOND_NS)
        };
        for continued in [false, true] {
            assert_eq!(kind(starved, continued), None);
            assert_eq!(kind(running, continued), None);
        }
        let partly_starved = Look {
            waited_ns: Some(2000 * MILLISECOND_NS),
            ..look(7000 * MILLISECOND_NS)
        };
        assert_eq!(kind(partly_starved, false), None);
    }

    #[test]
    fn starved_process_that_was_stopped_is_found_by_sigcont() {
        let stopped = Look {
            waited_ns: Some(900 * MILLISECOND_NS),
            process_ns: 700 * MILLISECOND_NS,
            ..look(4000 * MILLISECOND_NS)
        };
        assert_eq!(kind(stopped, true), Some(InterruptionKind::Stopped));
    }

    #[test]
    fn suspended_machine_is_found_by_its_boot_time() {
        let woken = Look {
            boot_ns: 61_000 * MILLISECOND_NS + 7,
            ..look(1012 * MILLISECOND_NS)
        };
        let gap = judge(&look(1000 * MILLISECOND_NS), &woken, || false).unwrap();
        assert_eq!(gap.interruption.kind, InterruptionKind::Suspended);
        assert_eq!(gap.interruption.length_ns, 60_000 * MILLISECOND_NS);
        assert_eq!(gap.to_ns - gap.interruption.start_ns, 12 * MILLISECOND_NS);
    }

    #[test]
    fn clock_skips_only_its_own_part_of_a_gap() {
        let mut skipped = SkippedTime { known: 0, ns: 0 };
        // The caller was busy until 105, and read its clock before the thread did.
        let found = skipped.skip(&[stopped(10, 20), stopped(100, 300)], 299, 105);
        assert_eq!((skipped.ns, found.len(), found[0].start_ns), (194, 1, 100));
    }
}
