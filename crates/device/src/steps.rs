//! The points at which another process can exchange what the gate looks at. Tests exchange it at
//! each of them; in the program a point compiles to nothing.

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

#[cfg(test)]
pub(crate) use hook::{Hook, before};

#[cfg(test)]
mod hook {
    use crate::steps::GateStep;
    use std::cell::RefCell;

    type Act = Box<dyn FnMut(GateStep)>;

    thread_local! {
        static ACT: RefCell<Option<Act>> = const { RefCell::new(None) };
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
