//! Reads the CPU time of this process with all its threads, and of the calling thread alone
//! (getrusage(2)).
#![allow(unsafe_code)]

use diskproof_model::measurement::CpuTime;

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

/// User and system time of the calling thread so far.
pub(crate) fn thread() -> CpuTime {
    resource_usage(libc::RUSAGE_THREAD)
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
