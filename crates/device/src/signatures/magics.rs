//! Finds signatures that are fixed bytes at fixed places, as the rows of magics.txt list them.
//! Signatures that need arithmetic or a second look are in structures.rs.
//!
//! libblkid adds conditions that a damaged copy may miss; the table does not. A false alarm costs a
//! `wipefs`, a missed signature costs the data.

use super::image::{Slice, View};
use std::sync::LazyLock;

/// The way to remove a signature once its content is not needed any more. The refusal names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clearing {
    /// `wipefs -a` knows it.
    Wipefs,
    /// `zpool labelclear` knows all copies.
    ZpoolLabelclear,
    /// No tool knows it: the block has to be overwritten with zeros.
    Zeros,
    /// A label of ZFS where `zpool labelclear` does not look: all of it has to be overwritten with
    /// zeros.
    ZeroedLabel,
}

/// The meaning of a signature for the disk that it stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The disk is divided: each partition then speaks for itself.
    PartitionTable,
    /// The whole disk or partition is one thing: a filesystem, a member of an array, a database.
    Content,
}

/// A mark that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signature {
    /// Completes "the disk has a ...": `ext2/3/4 filesystem`, say.
    pub(crate) what: &'static str,
    /// Bytes from the start of the disk to the mark.
    pub(crate) offset: u64,
    /// The way to remove it.
    pub(crate) clearing: Clearing,
    pub(super) role: Role,
    /// The partition that it stands in; `None` for the disk itself.
    pub(crate) slice: Option<Slice>,
}

impl Signature {
    /// One in no partition, at an offset from the start of what was looked at.
    pub(crate) fn new(what: &'static str, offset: u64, clearing: Clearing, role: Role) -> Self {
        Self {
            what,
            offset,
            clearing,
            role,
            slice: None,
        }
    }
}

/// The place of a text on a disk of any size; magics.txt says how a row writes it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// So many bytes from the start.
    Start(u64),
    /// `back` bytes before the end of a disk whose size is rounded down to a multiple of `unit`,
    /// and `plus` bytes on from there.
    End { unit: u64, back: u64, plus: u64 },
    /// So many bytes from the start of a sector, whichever it is.
    Sector(u64),
}

/// One text at one place: a row of the table has one for each pair of its places and texts.
#[derive(Debug)]
pub(super) struct Magic {
    pub(super) what: &'static str,
    pub(super) place: Place,
    pub(super) text: Vec<u8>,
    clearing: Clearing,
    pub(super) role: Role,
}

/// The rows of magics.txt, with one entry for each pair of a place and a text.
pub(super) static MAGICS: LazyLock<Vec<Magic>> = LazyLock::new(|| {
    read_table(include_str!("magics.txt")).expect("tests read every row of the table")
});

impl Magic {
    /// The signature, where the disk or partition has its text.
    pub(super) fn find(&self, view: &View<'_, '_>) -> Option<Signature> {
        let offset = self.place.offset(view.length())?;
        if !view.holds(offset, &self.text) {
            return None;
        }
        Some(Signature::new(self.what, offset, self.clearing, self.role))
    }

    /// For tests: its name, place and text on a disk of this size.
    #[cfg(test)]
    pub(super) fn planted(&self, size: u64) -> Option<(&'static str, u64, &[u8])> {
        Some((self.what, self.place.offset(size)?, &self.text))
    }
}

impl Place {
    /// The byte of a disk of this size; `None` where it is too small, or any sector may be meant.
    fn offset(self, size: u64) -> Option<u64> {
        match self {
            Self::Start(offset) => Some(offset),
            Self::End { unit, back, plus } => {
                (size / unit * unit).checked_sub(back)?.checked_add(plus)
            }
            Self::Sector(_) => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(place) = text.strip_prefix('*') {
            return sum(place).map(Self::Sector);
        }
        let (place, unit) = text.split_once('@').unwrap_or((text, "1s"));
        let Some(end) = place.strip_prefix('-') else {
            return sum(place).map(Self::Start);
        };
        let (back, plus) = end.split_once('+').unwrap_or((end, "0"));
        Some(Self::End {
            unit: number(unit)?,
            back: number(back)?,
            plus: number(plus)?,
        })
    }
}

/// The rows of a table; `None` where one is not as the first lines of magics.txt describe it.
pub(super) fn read_table(table: &'static str) -> Option<Vec<Magic>> {
    let mut magics = Vec::new();
    let (mut clearing, mut role) = (Clearing::Zeros, Role::Content);
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        if let Some(heading) = line.strip_prefix('[') {
            (clearing, role) = match heading.split_once(']')?.0 {
                "wipefs content" => (Clearing::Wipefs, Role::Content),
                "zeros content" => (Clearing::Zeros, Role::Content),
                "wipefs table" => (Clearing::Wipefs, Role::PartitionTable),
                "zeros table" => (Clearing::Zeros, Role::PartitionTable),
                _ => return None,
            };
            continue;
        }
        let (what, rest) = line.split_once(" | ")?;
        let (places, texts) = rest.split_once(" | ")?;
        for place in places.split(' ') {
            for text in texts.split('"').skip(1).step_by(2) {
                magics.push(Magic {
                    what,
                    place: Place::parse(place)?,
                    text: bytes(text)?,
                    clearing,
                    role,
                });
            }
        }
    }
    Some(magics)
}

/// The sum of numbers with plus signs between them.
fn sum(text: &str) -> Option<u64> {
    text.split('+').map(number).sum()
}

/// A decimal or hexadecimal number, which may have one of the units of the table: a sector (`s`) or
/// a power of 1024.
fn number(text: &str) -> Option<u64> {
    const UNITS: [(char, u64); 5] = [
        ('s', 512),
        ('K', 1 << 10),
        ('M', 1 << 20),
        ('G', 1 << 30),
        ('T', 1 << 40),
    ];
    let (mut digits, mut unit) = (text, 1);
    for (letter, bytes) in UNITS {
        if let Some(number) = text.strip_suffix(letter) {
            (digits, unit) = (number, bytes);
            break;
        }
    }
    let number = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    number.ok()?.checked_mul(unit)
}

/// The bytes of a text, in which `\xNN` stands for one byte.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.as_bytes());
    }
    Some(bytes)
}
