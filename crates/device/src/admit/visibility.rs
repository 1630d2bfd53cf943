//! What a check of all processes could not see. Holds no rule.

/// What could not be seen, though it does not speak against the target by itself.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VisibilityGaps {
    /// Processes whose open files this user may not look at.
    pub(crate) processes: u32,
    /// Why there may be processes that are not even listed.
    pub(crate) hidden_by: Option<HiddenBy>,
}

/// What keeps processes out of /proc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HiddenBy {
    /// A PID namespace of our own: a container.
    Namespace,
    /// The mount option `hidepid`, for all but root.
    MountOption,
}
