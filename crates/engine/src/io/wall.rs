//! Reads how well the kernel knows the wall clock, for runs on several hosts.
#![allow(unsafe_code)]

use diskproof_model::wall_clock::KernelClock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Two readings of one clock differ by less than this, however busy the machine is. adjtimex(2)
/// reads the clock to the microsecond only.
const READING_TIME_MAX: Duration = Duration::from_millis(1);

/// The kernel's judgement of its wall clock; `None` where a sandbox forbids the call. Changes
/// nothing.
pub fn kernel_clock() -> Option<KernelClock> {
    // SAFETY: every field is a number, for which zeros are valid; `modes` 0 only reads.
    let mut read: libc::timex = unsafe { std::mem::zeroed() };
    let before = SystemTime::now();
    // SAFETY: the pointer is to a valid structure, which lives until the call returns.
    let state = unsafe { libc::adjtimex(&raw mut read) };
    let after = SystemTime::now();
    if state < 0 {
        return None;
    }
    let is_synchronised = state != libc::TIME_ERROR && read.status & libc::STA_UNSYNC == 0;
    let fraction = u64::try_from(read.time.tv_usec).unwrap_or(0);
    let fraction_ns = if read.status & libc::STA_NANO != 0 {
        fraction
    } else {
        fraction * 1000
    };
    let seconds = u64::try_from(read.time.tv_sec).unwrap_or(0);
    let kernel = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(fraction_ns);
    Some(KernelClock {
        is_synchronised,
        error_max_ns: u64::try_from(read.maxerror)
            .unwrap_or(0)
            .saturating_mul(1000),
        apart_ns: distance_from_range(kernel, before - READING_TIME_MAX, after + READING_TIME_MAX)
            .as_nanos() as u64,
    })
}

/// The time between an instant and the nearer end of a range; zero inside it.
fn distance_from_range(instant: SystemTime, from: SystemTime, until: SystemTime) -> Duration {
    if instant < from {
        from.duration_since(instant).unwrap_or_default()
    } else {
        instant.duration_since(until).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instant_outside_of_a_time_is_apart() {
        let at = |ms: u64| UNIX_EPOCH + Duration::from_millis(ms);
        assert_eq!(distance_from_range(at(5), at(4), at(6)), Duration::ZERO);
        assert_eq!(
            distance_from_range(at(1), at(4), at(6)),
            Duration::from_millis(3)
        );
        assert_eq!(
            distance_from_range(at(9), at(4), at(6)),
            Duration::from_millis(3)
        );
    }

    #[test]
    fn kernel_and_process_have_the_same_time() {
        if let Some(clock) = kernel_clock() {
            assert_eq!(clock.apart_ns, 0);
        }
    }
}
