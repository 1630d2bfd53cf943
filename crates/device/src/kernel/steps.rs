//! Marks the points at which another process can exchange what the gate looks at. Tests exchange it
//! at each of them; in the program a point compiles to nothing. A test can also shorten the gate's
//! pauses, and hide all processes but its own.

#[cfg(not(test))]
use std::time::Duration;

/// A step of the gate before which a test can exchange what it looks at.
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

/// Marks the point before a step.
#[cfg(not(test))]
pub(crate) const fn before(_next: GateStep) {}

/// Waits for processes that use a target only for a moment. A test may shorten that.
#[cfg(not(test))]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// True of every process. A test may restrict it to the processes that it started.
#[cfg(not(test))]
pub(crate) const fn is_seen(_pid: u32) -> bool {
    true
}

#[cfg(test)]
pub(crate) use hook::{Hook, OwnProcesses, SeenProcess, ShortPauses, before, is_seen, pause};

#[cfg(test)]
mod hook {
    use crate::kernel::steps::GateStep;
    use std::cell::{Cell, RefCell};
    use std::time::Duration;

    type Act = Box<dyn FnMut(GateStep)>;

    thread_local! {
        static ACT: RefCell<Option<Act>> = const { RefCell::new(None) };
        static PAUSE_MAX: Cell<Duration> = const { Cell::new(Duration::MAX) };
        /// `None`: all processes of the machine.
        static SEEN: RefCell<Option<Vec<u32>>> = const { RefCell::new(None) };
    }

    pub(crate) fn is_seen(pid: u32) -> bool {
        SEEN.with_borrow(|seen| match seen {
            Some(pids) => pids.contains(&pid),
            None => true,
        })
    }

    /// While it lives, there are no other processes for this thread than those of
    /// [`SeenProcess`]: thousands of looks at all processes of the machine would take minutes, and
    /// one that passes by would end the gate early.
    pub(crate) struct OwnProcesses;

    impl OwnProcesses {
        pub(crate) fn begin() -> Self {
            SEEN.set(Some(Vec::new()));
            Self
        }
    }

    impl Drop for OwnProcesses {
        fn drop(&mut self) {
            SEEN.set(None);
        }
    }

    /// A process that this thread sees until it is dropped.
    pub(crate) struct SeenProcess {
        pid: u32,
    }

    impl SeenProcess {
        /// `OwnProcesses` have begun.
        pub(crate) fn begin(pid: u32) -> Self {
            SEEN.with_borrow_mut(|seen| seen.as_mut().unwrap().push(pid));
            Self { pid }
        }
    }

    impl Drop for SeenProcess {
        fn drop(&mut self) {
            SEEN.with_borrow_mut(|seen| {
                if let Some(pids) = seen {
                    pids.retain(|pid| *pid != self.pid);
                }
            });
        }
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
