//! Joins the run with those of other hosts: takes part in the launcher's fences, and finds the
//! instant of the first slot on the own clock.

use crate::flags::{StartAt, TogetherFlags};
use crate::interrupt;
use crate::launchers;
use diskproof_cluster::pmi::{ANSWER_TIMEOUT, FenceClock, Fences, take_part};
use diskproof_cluster::wall::{chrony_bound_ns, wall_bound};
use diskproof_device::spawn_with_limit_of_user;
use diskproof_engine::{Session, inherited_descriptor, kernel_clock};
use diskproof_model::plan::{Order, Plan};
use diskproof_model::together::{FenceFailure, SlotOrigin, TogetherRecord};
use diskproof_model::wall_clock::WallClock;
use std::os::unix::net::UnixStream;
use std::time::SystemTime;

/// The kernel's id of this boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Takes part in the fences, and returns the record of a run together with others before its first
/// slot; `None` of a run by itself.
pub(super) fn join(
    plan: &Plan,
    flags: &TogetherFlags,
    session: &Session,
) -> Option<TogetherRecord> {
    let Order::InSlots(slots) = plan.order() else {
        return None;
    };
    let launcher_fences = take_fences(session);
    let (origin, first_slot_ns) = if let Some(StartAt::Time(time)) = flags.start_at {
        let first_slot_ns = ns_between(session.started(), SystemTime::from(time));
        (SlotOrigin::GivenTime, first_slot_ns)
    } else if let Some(last) = launcher_fences.fences.last()
        && launcher_fences.failure.is_none()
    {
        let first_slot_ns = last.left_ns.saturating_add(slots.lead_ns);
        (SlotOrigin::Fence, first_slot_ns as i64)
    } else {
        let first_slot_ns = session.elapsed_ns().saturating_add(slots.lead_ns);
        (SlotOrigin::OwnClock, first_slot_ns as i64)
    };
    Some(TogetherRecord {
        slots: plan.timetable().map_or(0, |slots| slots.len() as u32),
        first_slot_ns,
        origin,
        ready_ns: None,
        fences: launcher_fences.fences,
        fence_failure: launcher_fences.failure,
        skipped: Vec::new(),
    })
}

/// The bound of the wall clock's error at the start of a run that measures together with others.
pub(super) fn wall_clock(flags: &TogetherFlags, session: &Session) -> WallClock {
    let bound = wall_bound(flags.clock_bound, kernel_clock(), || {
        chrony_bound_ns(spawn_with_limit_of_user)
    });
    WallClock {
        bound_ns: bound.bound_ns,
        source: bound.source,
        paired_within_ns: session.paired_within_ns(),
        gained_ns: None,
        apart_ns: bound.apart_ns,
        boot_id: match std::fs::read_to_string(BOOT_ID) {
            Ok(text) => Some(text.trim().to_owned()),
            Err(_) => None,
        },
    }
}

/// Takes part in the fences of the launcher; none where it offers none.
fn take_fences(session: &Session) -> Fences {
    let Some(number) = launchers::pmi_socket() else {
        return Fences::default();
    };
    match inherited_descriptor(number) {
        Ok(socket) => take_part(
            UnixStream::from(socket),
            ANSWER_TIMEOUT,
            &SessionClock(session),
        ),
        Err(_) => Fences {
            fences: Vec::new(),
            failure: Some(FenceFailure::Closed),
        },
    }
}

/// The clock of the engine, by which fences are timed.
struct SessionClock<'a>(&'a Session);

impl FenceClock for SessionClock<'_> {
    fn elapsed_ns(&self) -> u64 {
        self.0.elapsed_ns()
    }

    fn is_over(&self) -> bool {
        interrupt::signal().is_some()
    }
}

/// The time from `start` to `end` in nanoseconds; negative where the end is earlier.
fn ns_between(start: SystemTime, end: SystemTime) -> i64 {
    match end.duration_since(start) {
        Ok(later) => i64::try_from(later.as_nanos()).unwrap_or(i64::MAX),
        Err(error) => -i64::try_from(error.duration().as_nanos()).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A slot that lies before the start of the run was missed by that much.
    #[test]
    fn time_to_an_earlier_instant_is_negative() {
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(10);
        let earlier = start - Duration::from_nanos(5);
        assert_eq!(ns_between(start, start + Duration::from_nanos(7)), 7);
        assert_eq!(ns_between(start, earlier), -5);
        assert_eq!(ns_between(start, start), 0);
    }
}
