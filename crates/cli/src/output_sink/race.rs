//! The points at which another process can exchange the path. Tests exchange it at each of them.

#[cfg(test)]
pub(super) use simulated::{act_before, exchange_point, was_reached};

/// Another process can exchange the path here.
#[cfg(not(test))]
pub(super) const fn exchange_point() {}

#[cfg(test)]
mod simulated {
    use std::cell::{Cell, RefCell};

    type Act = Box<dyn FnMut()>;

    thread_local! {
        static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
        static ACT: RefCell<Option<Act>> = const { RefCell::new(None) };
    }

    pub(in crate::output_sink) fn exchange_point() {
        LEFT.set(LEFT.get().wrapping_sub(1));
        if LEFT.get() == 0 {
            ACT.with_borrow_mut(|act| act.as_mut().map(|act| act()));
        }
    }

    /// Acts once, at the point of this number, which counts from 1.
    pub(in crate::output_sink) fn act_before(number: usize, act: impl FnMut() + 'static) {
        LEFT.set(number);
        ACT.set(Some(Box::new(act)));
    }

    /// True if the point of [`act_before`] was reached.
    pub(in crate::output_sink) fn was_reached() -> bool {
        LEFT.get() == 0 || LEFT.get() > usize::MAX / 2
    }
}
