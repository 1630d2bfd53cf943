//! Tables of signatures: fixed bytes at a fixed offset are one row. Knows no format.

use super::image::View;
use diskproof_model::units::SECTOR_BYTES;

/// How a signature is removed once its content is not needed any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clearing {
    /// `wipefs -a` knows it.
    Wipefs,
    /// `zpool labelclear` knows all copies.
    ZpoolLabelclear,
    /// No tool knows it: the block has to be overwritten with zeros.
    Zeros,
}

/// What a signature means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The disk is divided: each partition then speaks for itself.
    PartitionTable,
    /// The whole disk or partition is one thing: a filesystem, a member of an array, a database.
    Content,
}

/// A signature within a disk or partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FormatMark {
    pub(super) what: &'static str,
    /// Bytes from the start of the disk or partition.
    pub(super) offset: u64,
    pub(super) clearing: Clearing,
    pub(super) role: Role,
}

impl FormatMark {
    pub(super) const fn new(
        what: &'static str,
        offset: u64,
        clearing: Clearing,
        role: Role,
    ) -> Self {
        Self {
            what,
            offset,
            clearing,
            role,
        }
    }
}

/// Where a text stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum At {
    /// So many bytes from the start.
    Start(u64),
    /// So many bytes before the end, after the size was rounded down to a multiple.
    End { unit: u64, back: u64, plus: u64 },
}

impl At {
    fn offset(self, size: u64) -> Option<u64> {
        match self {
            Self::Start(offset) => Some(offset),
            Self::End { unit, back, plus } => {
                (size / unit * unit).checked_sub(back)?.checked_add(plus)
            }
        }
    }
}

/// A place that is counted back from the end in whole sectors.
pub(super) const fn end(back: u64, plus: u64) -> At {
    end_of(SECTOR_BYTES, back, plus)
}

/// A place that is counted back from the end in whole units.
pub(super) const fn end_of(unit: u64, back: u64, plus: u64) -> At {
    At::End { unit, back, plus }
}

/// Name, place and bytes of a signature.
pub(super) type Row = (&'static str, At, &'static [u8]);

/// Rows whose signatures are removed in the same way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    rows: &'static [Row],
    clearing: Clearing,
    role: Role,
}

impl Table {
    pub(super) const fn new(rows: &'static [Row], clearing: Clearing, role: Role) -> Self {
        Self {
            rows,
            clearing,
            role,
        }
    }

    /// Every row whose text is there.
    pub(super) fn find(&self, view: &View<'_, '_>) -> Vec<FormatMark> {
        let mark = |(what, at, text): &Row| {
            let offset = at
                .offset(view.length())
                .filter(|at| view.holds(*at, text))?;
            Some(FormatMark::new(what, offset, self.clearing, self.role))
        };
        self.rows.iter().filter_map(mark).collect()
    }

    /// For tests: every row with its place on a disk of this size.
    #[cfg(test)]
    pub(super) fn planted(&self, size: u64) -> Vec<(&'static str, u64, &'static [u8])> {
        let place = |(what, at, text): &Row| Some((*what, at.offset(size)?, *text));
        self.rows.iter().filter_map(place).collect()
    }
}

/// A structure that needs a second look: its name, its offset if present, and how to remove it.
pub(super) type Check = (&'static str, fn(&View<'_, '_>) -> Option<u64>, Clearing);

/// Every structure that is there.
pub(super) fn find_structures(
    view: &View<'_, '_>,
    checks: &[Check],
    role: Role,
) -> Vec<FormatMark> {
    let mark = |(what, check, clearing): &Check| {
        Some(FormatMark::new(what, check(view)?, *clearing, role))
    };
    checks.iter().filter_map(mark).collect()
}

/// The first of some offsets at which a check says yes.
pub(super) fn first(
    offsets: impl IntoIterator<Item = u64>,
    is_there: impl Fn(u64) -> Option<bool>,
) -> Option<u64> {
    offsets
        .into_iter()
        .find(|offset| is_there(*offset) == Some(true))
}
