//! CPU time of this process, all threads (getrusage(2)).
#![allow(unsafe_code)]

use diskproof_model::measurement::CpuTime;

/// User and system time so far.
pub fn process() -> CpuTime {
    // SAFETY: rusage is plain numbers, for which all zeros is valid; the call fills it in.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer leads to a live rusage.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    CpuTime { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) }
}
