//! The points at which another process can exchange the path. Tests exchange it at each of them.

#[cfg(test)]
use std::cell::{Cell, RefCell};

/// Another process can exchange the path here.
#[cfg(not(test))]
pub(super) const fn exchange_point() {}

/// Another process can exchange the path here, and does at the point of [`act_before`].
#[cfg(test)]
pub(super) fn exchange_point() {
    LEFT.set(LEFT.get().wrapping_sub(1));
    if LEFT.get() == 0 {
        ACT.with_borrow_mut(|act| act.as_mut().map(|act| act()));
    }
}

#[cfg(test)]
type Act = Box<dyn FnMut()>;

#[cfg(test)]
thread_local! {
    /// Points before the one at which [`ACT`] is called.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    static ACT: RefCell<Option<Act>> = const { RefCell::new(None) };
}

/// Acts once, at the point of this number, which counts from 1.
#[cfg(test)]
pub(super) fn act_before(number: usize, act: impl FnMut() + 'static) {
    LEFT.set(number);
    ACT.set(Some(Box::new(act)));
}

/// True if the point of [`act_before`] was reached.
#[cfg(test)]
pub(super) fn was_reached() -> bool {
    LEFT.get() == 0 || LEFT.get() > usize::MAX / 2
}
