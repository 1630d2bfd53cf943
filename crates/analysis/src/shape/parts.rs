//! What a shape is made of: points, dips, levels, points that stray.

/// A point, or a group of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ShapePoint {
    /// Its index in the curve.
    pub index: usize,
    /// Where the sample begins.
    pub offset_bytes: u64,
    /// Natural logarithm of its rate in bytes per second.
    pub ln_rate: f64,
}

/// A stretch that is slower than what lies on both sides of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dip {
    /// First of its points, as an index into `points`.
    pub first: usize,
    /// Last of its points.
    pub last: usize,
    /// Its rate, in bytes per second.
    pub rate: f64,
    /// The rate of its neighbourhood, in bytes per second.
    pub beside: f64,
}

/// A stretch of one rate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    /// Indices into `points`.
    pub members: Vec<usize>,
    /// Mean logarithm of the rate.
    pub ln_rate: f64,
}

impl Level {
    /// Its rate, in bytes per second.
    pub(crate) fn rate(&self) -> f64 {
        self.ln_rate.exp()
    }
}

/// A point and what its neighbours suggest for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stray {
    /// Index into `points`.
    pub point: usize,
    /// Its rate, in bytes per second.
    pub rate: f64,
    /// The nearest rate that would fit between its neighbours.
    pub expected: f64,
}

impl Stray {
    /// How far it is off, as a share of what is expected.
    pub(crate) fn distance(&self) -> f64 {
        (self.rate / self.expected - 1.0).abs()
    }
}

/// How much of the surface a curve covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All of it, or nearly.
    Whole,
    /// A part.
    Part,
}
