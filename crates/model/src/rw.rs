//! fio's words for the order and direction of a workload, as flags, files and commands have them.

use crate::plan::Access;
use crate::shape::TrimMode;
use std::str::FromStr;

/// Order and direction, under fio's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rw {
    /// Sequential or random.
    pub order: Order,
    /// Reads, writes, both, or trims.
    pub direction: RwDirection,
}

/// Order of the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Block after block.
    Sequential,
    /// Random offsets.
    Random,
}

/// Reads, writes, both, or trims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RwDirection {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Both.
    Mixed,
    /// Trims only.
    Trim,
    /// Each block is trimmed, and then written.
    TrimWrite,
}

const WORDS: [(RwDirection, &str, &str); 5] = [
    (RwDirection::Read, "read", "randread"),
    (RwDirection::Write, "write", "randwrite"),
    (RwDirection::Mixed, "rw", "randrw"),
    (RwDirection::Trim, "trim", "randtrim"),
    (RwDirection::TrimWrite, "trimwrite", "randtrimwrite"),
];

impl Rw {
    /// Random reads.
    pub const RANDREAD: Self = Self {
        order: Order::Random,
        direction: RwDirection::Read,
    };

    /// What a workload with this access, share of reads and trims does.
    pub fn of(access: &Access, read_permille: u16, trims: Option<TrimMode>) -> Self {
        let order = match access {
            Access::Random { .. } | Access::Zoned { .. } => Order::Random,
            _ => Order::Sequential,
        };
        let direction = match (read_permille, trims) {
            (1000.., _) => RwDirection::Read,
            (1.., _) => RwDirection::Mixed,
            (0, None) => RwDirection::Write,
            (0, Some(TrimMode::Only)) => RwDirection::Trim,
            (0, Some(TrimMode::BeforeWrite)) => RwDirection::TrimWrite,
        };
        Self { order, direction }
    }

    /// fio's name.
    pub fn as_str(self) -> &'static str {
        let mut words = WORDS.iter();
        let found = words.find(|(direction, ..)| *direction == self.direction);
        let (_, sequential, random) = found.unwrap_or(&WORDS[0]);
        match self.order {
            Order::Sequential => sequential,
            Order::Random => random,
        }
    }

    /// Which of its writes are trims.
    pub fn trims(self) -> Option<TrimMode> {
        match self.direction {
            RwDirection::Read | RwDirection::Write | RwDirection::Mixed => None,
            RwDirection::Trim => Some(TrimMode::Only),
            RwDirection::TrimWrite => Some(TrimMode::BeforeWrite),
        }
    }

    /// Whether it writes data.
    pub fn writes_data(self) -> bool {
        !matches!(self.direction, RwDirection::Read | RwDirection::Trim)
    }
}

/// A word that is none of fio's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not one of read, write, randread, randwrite, rw (or readwrite), randrw, trim, \
     randtrim, trimwrite, randtrimwrite"
)]
pub struct RwError(String);

impl FromStr for Rw {
    type Err = RwError;

    fn from_str(text: &str) -> Result<Self, RwError> {
        let word = text.replace("readwrite", "rw");
        let found = WORDS.iter().find_map(|(direction, sequential, random)| {
            let order = match word.as_str() {
                word if word == *sequential => Order::Sequential,
                word if word == *random => Order::Random,
                _ => return None,
            };
            let direction = *direction;
            Some(Self { order, direction })
        });
        found.ok_or_else(|| RwError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rw_takes_the_names_of_fio() {
        for (direction, sequential, random) in WORDS {
            for (order, word) in [(Order::Sequential, sequential), (Order::Random, random)] {
                let rw = Rw { order, direction };
                assert_eq!((word.parse(), rw.as_str()), (Ok(rw), word));
                assert_eq!(rw.trims().is_some(), word.contains("trim"), "{word}");
            }
        }
        let both = ["readwrite", "randreadwrite"].map(|word| word.parse().map(Rw::as_str));
        assert_eq!(both, [Ok("rw"), Ok("randrw")]);
        for word in ["", "trimread", "rand", "READ"] {
            assert!(word.parse::<Rw>().is_err(), "{word}");
        }
    }
}
