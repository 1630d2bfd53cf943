//! Reads the CPU time of this process with all its threads, and of the calling thread alone
//! (getrusage(2) and clock_gettime(2)).
#![allow(unsafe_code)]

use crate::io::interruptions::read_clock;
use diskproof_model::measurement::CpuTime;
use rustix::time::ClockId;

/// User and system time of the process so far. The kernel's worker threads for io_uring are among
/// its threads.
pub(crate) fn process() -> CpuTime {
    resource_usage(libc::RUSAGE_SELF)
}

/// User and system time of the process since `before`.
pub(crate) fn process_since(before: CpuTime) -> CpuTime {
    since(process(), before)
}

/// The increase from `before` to `now`.
pub(crate) fn since(now: CpuTime, before: CpuTime) -> CpuTime {
    CpuTime {
        user_ns: now.user_ns.saturating_sub(before.user_ns),
        system_ns: now.system_ns.saturating_sub(before.system_ns),
    }
}

/// The CPU time of a thread so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadTime {
    /// By the thread's own clock.
    total_ns: u64,
    /// Its parts, which the kernel brings up to date with its ticks only, a few milliseconds apart.
    parts: CpuTime,
}

/// The CPU time of the calling thread so far.
pub(crate) fn thread() -> ThreadTime {
    ThreadTime {
        total_ns: read_clock(ClockId::ThreadCPUTime),
        parts: resource_usage(libc::RUSAGE_THREAD),
    }
}

/// User and system time of the calling thread since `before`.
pub(crate) fn thread_since(before: ThreadTime) -> CpuTime {
    let now = thread();
    split_in_proportion(
        now.total_ns.saturating_sub(before.total_ns),
        since(now.parts, before.parts),
    )
}

/// A time as user and system time, in the proportion of these parts. Without parts it counts as the
/// kernel's: a thread that has done little has made system calls.
fn split_in_proportion(total_ns: u64, parts: CpuTime) -> CpuTime {
    let sum_ns = parts.user_ns + parts.system_ns;
    let user_ns = match sum_ns {
        0 => 0,
        _ => (u128::from(total_ns) * u128::from(parts.user_ns) / u128::from(sum_ns)) as u64,
    };
    CpuTime {
        user_ns,
        system_ns: total_ns - user_ns,
    }
}

fn resource_usage(whom: libc::c_int) -> CpuTime {
    // SAFETY: rusage is plain numbers, for which all zeros is valid; the call fills it in.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer leads to a live rusage.
    unsafe { libc::getrusage(whom, &raw mut usage) };
    CpuTime {
        user_ns: nanoseconds(usage.ru_utime),
        system_ns: nanoseconds(usage.ru_stime),
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_a_thread_is_seen_between_two_ticks() {
        // With ticks of 4 ms most of these would have none.
        for _ in 0..20 {
            let before = thread();
            let start_ns = read_clock(ClockId::ThreadCPUTime);
            while read_clock(ClockId::ThreadCPUTime) < start_ns + 100_000 {
                std::hint::spin_loop();
            }
            let used = thread_since(before);
            assert!(used.user_ns + used.system_ns >= 100_000, "{used:?}");
        }
    }

    #[test]
    fn time_is_divided_as_its_parts_are() {
        let parts = CpuTime {
            user_ns: 1000,
            system_ns: 3000,
        };
        let divided_time = split_in_proportion(8000, parts);
        assert_eq!((divided_time.user_ns, divided_time.system_ns), (2000, 6000));
        let undivided = split_in_proportion(8000, CpuTime::default());
        assert_eq!((undivided.user_ns, undivided.system_ns), (0, 8000));
    }
}
