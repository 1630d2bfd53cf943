//! The answer of a disk's filesystem to O_DIRECT.

/// The treatment of O_DIRECT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DirectAccess {
    /// The filesystem accepts it, as most do.
    #[default]
    Accepted,
    /// `open(2)` says EINVAL, and so does every transfer after F_SETFL. As on the other file
    /// systems that refuse it, a file named with O_CREAT has been made by then.
    RefusedAtOpen,
    /// `open(2)` succeeds and the first transfer says EINVAL, as on some network file systems.
    RefusedAtTransfer,
}

impl DirectAccess {
    /// True if an open with O_DIRECT is refused.
    pub fn refuses_open(self) -> bool {
        self == Self::RefusedAtOpen
    }

    /// True if a transfer on a file with O_DIRECT is refused.
    pub fn refuses_transfer(self) -> bool {
        self != Self::Accepted
    }
}
