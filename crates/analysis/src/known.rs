//! When a rate counts as known. What grades a disk, advises a setting or accuses a disk uses it.

/// The widest relative half-width of the 95 % interval. Beyond it two measurements of the same disk
/// may differ by more than half.
pub(crate) const HALF_WIDTH_MAX: f64 = 0.25;
