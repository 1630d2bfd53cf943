//! The tests of fileio, and the settings of both tests.

use ModeKind::{Create, Mix, Read, Write};

/// What a test does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TestMode {
    /// Its name.
    pub(super) name: &'static str,
    /// As the report names it.
    pub(super) text: &'static str,
    /// Whether the offsets are random.
    pub(super) is_random: bool,
    /// Which way the data goes.
    pub(super) kind: ModeKind,
}

/// Which way the data of a test goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModeKind {
    Create,
    Write,
    Read,
    Mix,
}

const fn mode(name: &'static str, text: &'static str, is_random: bool, kind: ModeKind) -> TestMode {
    TestMode {
        name,
        text,
        is_random,
        kind,
    }
}

/// The tests.
pub(super) const MODES: [TestMode; 6] = [
    mode("seqwr", "sequential write (creation)", false, Create),
    mode("seqrewr", "sequential rewrite", false, Write),
    mode("seqrd", "sequential read", false, Read),
    mode("rndrd", "random read", true, Read),
    mode("rndwr", "random write", true, Write),
    mode("rndrw", "random r/w", true, Mix),
];

/// The settings of both tests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RunSettings {
    pub(super) threads: u64,
    pub(super) seed: Option<u64>,
    /// No event starts after this time.
    pub(super) time_ns: Option<u64>,
    /// Events of all threads together.
    pub(super) events: Option<u64>,
    /// Events per second.
    pub(super) rate: Option<u64>,
    /// Time between two intermediate figures.
    pub(super) interval_ns: Option<u64>,
    pub(super) percentile: u64,
    pub(super) histogram: bool,
}
