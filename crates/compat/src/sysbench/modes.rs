//! The tests of fileio.

pub(super) const NAME: &str = "sysbench";
pub(super) const EMULATES: &str = "sysbench 1.0.20";

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
    mode(
        "seqwr",
        "sequential write (creation)",
        false,
        ModeKind::Create,
    ),
    mode("seqrewr", "sequential rewrite", false, ModeKind::Write),
    mode("seqrd", "sequential read", false, ModeKind::Read),
    mode("rndrd", "random read", true, ModeKind::Read),
    mode("rndwr", "random write", true, ModeKind::Write),
    mode("rndrw", "random r/w", true, ModeKind::Mix),
];
