//! The points at which another process can exchange what the gate looks at. Tests exchange it at
//! each of them; in the program a point compiles to nothing.

#[cfg(not(test))]
use std::time::Duration;

/// What the gate does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GateStep {
    /// Looks at a path for the identity.
    Probe,
    /// Follows a path to a descriptor.
    Resolve,
    /// Looks at what the path led to.
    Compare,
    /// Looks for the name of a file in its directory.
    FindName,
    /// Goes up to a directory, from one that it holds.
    Climb,
    /// Judges owners, names and users.
    Judge,
    /// Opens what it holds.
    Open,
    /// Checks what is open now.
    Check,
}

#[cfg(not(test))]
pub(crate) const fn before(_next: GateStep) {}

/// Waits for a process that passes by. A test in which one stays may shorten that.
#[cfg(not(test))]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
pub(crate) use hook::{Hook, ShortPauses, before, pause};

#[cfg(test)]
mod hook {
    use crate::steps::GateStep;
    use std::cell::{Cell, RefCell};
    use std::time::Duration;

    type Act = Box<dyn FnMut(GateStep)>;

    thread_local! {
        static ACT: RefCell<Option<Act>> = const { RefCell::new(None) };
        static PAUSE_MAX: Cell<Duration> = const { Cell::new(Duration::MAX) };
    }

    pub(crate) fn pause(time: Duration) {
        std::thread::sleep(time.min(PAUSE_MAX.get()));
    }

    /// While it lives, no pause of this thread is longer than `SHORT`.
    pub(crate) struct ShortPauses;

    const SHORT: Duration = Duration::from_millis(5);

    impl ShortPauses {
        pub(crate) fn begin() -> Self {
            PAUSE_MAX.set(SHORT);
            Self
        }
    }

    impl Drop for ShortPauses {
        fn drop(&mut self) {
            PAUSE_MAX.set(Duration::MAX);
        }
    }

    pub(crate) fn before(next: GateStep) {
        ACT.with_borrow_mut(|act| {
            if let Some(act) = act {
                act(next);
            }
        });
    }

    /// What happens at each point of this thread, until it is dropped.
    pub(crate) struct Hook;

    impl Hook {
        pub(crate) fn set(act: impl FnMut(GateStep) + 'static) -> Self {
            ACT.set(Some(Box::new(act)));
            Self
        }
    }

    impl Drop for Hook {
        fn drop(&mut self) {
            ACT.set(None);
        }
    }
}
