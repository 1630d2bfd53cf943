//! CPU time of this process with all its threads, and of the calling thread alone (getrusage(2)).
#![allow(unsafe_code)]

use diskproof_model::measurement::CpuTime;

/// User and system time of the process so far. The kernel's worker threads for io_uring are among
/// its threads.
pub(crate) fn process() -> CpuTime {
    of(libc::RUSAGE_SELF)
}

/// User and system time of the process since `before`.
pub(crate) fn process_since(before: CpuTime) -> CpuTime {
    since(process(), before)
}

/// The increase from `before` to `now`.
pub(crate) fn since(now: CpuTime, before: CpuTime) -> CpuTime {
    each(|of| of(&now).saturating_sub(of(&before)))
}

/// User and system time, each by `time` from its own figure.
pub(crate) fn each(time: impl Fn(fn(&CpuTime) -> u64) -> u64) -> CpuTime {
    CpuTime {
        user_ns: time(|cpu| cpu.user_ns),
        system_ns: time(|cpu| cpu.system_ns),
    }
}

/// User and system time of the calling thread so far.
pub(crate) fn thread() -> CpuTime {
    of(libc::RUSAGE_THREAD)
}

fn of(whom: libc::c_int) -> CpuTime {
    // SAFETY: rusage is plain numbers, for which all zeros is valid; the call fills it in.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer leads to a live rusage.
    unsafe { libc::getrusage(whom, &raw mut usage) };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    CpuTime {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
    }
}
