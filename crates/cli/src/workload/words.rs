//! The words of a workload's flags and keys, each read by one parser wherever it is written. Knows
//! nothing of targets, and nothing of how the words of one workload fit together.

use diskproof_model::plan::BlockShare;
use diskproof_model::units::{UnitError, parse_duration, parse_size};
use serde::de::{Deserializer, Error, Visitor};
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

mod places;

pub use places::{Likelihood, Part, Position, Zones};

/// Reads the value of a key with the parser of the flag's value: `"8k"`, `8192` and `50.5` alike.
pub fn written<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_any(Written(PhantomData))
}

struct Written<T>(PhantomData<T>);

impl<T: FromStr<Err: Display>> Visitor<'_> for Written<T> {
    type Value = Option<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text in quotes or a number")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        text.parse().map(Some).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }
}

/// A word that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WordError {
    /// Not of the form expected.
    #[error("'{text}' is not {what}")]
    Form {
        /// As given.
        text: String,
        /// What it should have been, with an example.
        what: &'static str,
    },
    /// Of the right form, with a value that makes no sense.
    #[error("{0}")]
    Value(String),
    /// A quantity in it.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

fn form(text: &str, what: &'static str) -> WordError {
    WordError::Form {
        text: text.to_owned(),
        what,
    }
}

/// A finite number that is not negative, in plain digits.
fn number(text: &str) -> Option<f64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse()
        .ok()
        .filter(|value: &f64| plain && value.is_finite())
}

/// A number that may have a % behind it.
fn percent(text: &str) -> Option<f64> {
    number(text.strip_suffix('%').unwrap_or(text).trim_end())
}

/// Name of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(pub String);

/// The longest name that still fits beside a figure.
const NAME_CHARS_MAX: usize = 40;

impl FromStr for Name {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        // A slash would be a path and a blank a second word in the commands of other tools.
        let fits = (1..=NAME_CHARS_MAX).contains(&text.chars().count()) && !text.starts_with('-');
        let plain = text
            .chars()
            .all(|c| c.is_alphanumeric() || "-_.+".contains(c));
        (fits && plain)
            .then(|| Self(text.to_owned()))
            .ok_or_else(|| form(text, "a name; use up to 40 letters, digits, - _ . +"))
    }
}

/// Order and direction, in fio's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rw {
    /// Block after block, or anywhere.
    pub order: Order,
    /// Reads, writes or both.
    pub direction: Direction,
}

/// Block after block, or anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One after the other.
    Sequential,
    /// Anywhere.
    Random,
}

/// Reads, writes or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Both.
    Mixed,
}

impl Rw {
    /// The default.
    pub const RANDREAD: Self = Self {
        order: Order::Random,
        direction: Direction::Read,
    };

    /// fio's word.
    pub fn as_str(self) -> &'static str {
        match (self.order, self.direction) {
            (Order::Sequential, Direction::Read) => "read",
            (Order::Sequential, Direction::Write) => "write",
            (Order::Sequential, Direction::Mixed) => "rw",
            (Order::Random, Direction::Read) => "randread",
            (Order::Random, Direction::Write) => "randwrite",
            (Order::Random, Direction::Mixed) => "randrw",
        }
    }
}

impl FromStr for Rw {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        let (order, direction) = match text.strip_prefix("rand") {
            Some(direction) => (Order::Random, direction),
            None => (Order::Sequential, text),
        };
        let direction = match direction {
            "read" => Direction::Read,
            "write" => Direction::Write,
            "rw" => Direction::Mixed,
            "readwrite" if order == Order::Sequential => Direction::Mixed,
            _ => {
                return Err(form(
                    text,
                    "one of read, write, randread, randwrite, rw (or readwrite), randrw",
                ));
            }
        };
        Ok(Self { order, direction })
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        Ok(Self(parse_size(text)?))
    }
}

/// A whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        let plain = text.bytes().all(|b| b.is_ascii_digit());
        text.parse()
            .ok()
            .filter(|_| plain)
            .map(Self)
            .ok_or_else(|| form(text, "a whole number; write it in plain digits, such as 32"))
    }
}

/// A duration in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub u64);

/// A century would overflow sums of nanoseconds; a year is longer than any run.
const TIME_NS_MAX: u64 = 366 * 24 * 3600 * 1_000_000_000;

impl FromStr for Time {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match parse_duration(text)? {
            ns if ns > TIME_NS_MAX => Err(WordError::Value(format!(
                "'{text}' is longer than a year; use less"
            ))),
            ns => Ok(Self(ns)),
        }
    }
}

/// Bytes per operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSize(pub u32);

/// The largest block: more does not make any disk faster, and every request in flight needs that
/// much memory.
pub const BLOCK_BYTES_MAX: u64 = 64 << 20;

impl FromStr for BlockSize {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        match parse_size(text)? {
            0 => Err(WordError::Value(
                "a block of 0 bytes moves nothing; use at least 512".to_owned(),
            )),
            bytes @ 1..=BLOCK_BYTES_MAX => Ok(Self(bytes as u32)),
            _ => Err(WordError::Value(format!(
                "a block of {text} is too large; use at most 64M"
            ))),
        }
    }
}

/// Block sizes with their shares, in fio's syntax: `4k/60:64k/40`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockSplit(pub Vec<BlockShare>);

const SPLIT: &str =
    "a mix of block sizes; write size/percent pairs that add up to 100, such as 4k/60:64k/40";
/// As many sizes as fio takes.
const SPLIT_ENTRIES_MAX: usize = 64;

impl FromStr for BlockSplit {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        let entries: Vec<&str> = text.split(':').collect();
        if entries.len() > SPLIT_ENTRIES_MAX {
            return Err(WordError::Value(format!(
                "{} block sizes are too many; use at most {SPLIT_ENTRIES_MAX}",
                entries.len()
            )));
        }
        let mut shares = Vec::new();
        for entry in entries {
            let (size, share) = entry.split_once('/').unwrap_or((entry, ""));
            let BlockSize(block_bytes) = size.parse()?;
            let percent = match share {
                "" => None,
                share => Some(
                    share
                        .parse::<u32>()
                        .ok()
                        .filter(|p| (1..=100).contains(p))
                        .ok_or_else(|| form(text, SPLIT))?,
                ),
            };
            shares.push((block_bytes, percent));
        }
        let named: u32 = shares.iter().filter_map(|(_, percent)| *percent).sum();
        let open = shares
            .iter()
            .filter(|(_, percent)| percent.is_none())
            .count() as u32;
        // As in fio, sizes without a share take what is left in equal parts.
        if named > 100
            || (open == 0 && named < 100)
            || (open > 0 && !(100 - named).is_multiple_of(open))
            || (open > 0 && named == 100)
        {
            return Err(form(text, SPLIT));
        }
        let rest = (100 - named) / open.max(1);
        let share = |(block_bytes, percent): (u32, Option<u32>)| BlockShare {
            block_bytes,
            weight: percent.unwrap_or(rest),
        };
        Ok(Self(shares.into_iter().map(share).collect()))
    }
}

/// Share of reads in permille.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadShare(pub u16);

impl FromStr for ReadShare {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        let what =
            "a share of reads; write percent from 0 to 100 in steps of 0.1, such as 50 or 33.3";
        let permille = percent(text)
            .filter(|p| *p <= 100.0)
            .map(|p| p * 10.0)
            .ok_or_else(|| form(text, what))?;
        // 33.3 × 10 is not a whole number in binary.
        if (permille - permille.round()).abs() > 1e-6 {
            Err(form(text, what))
        } else {
            Ok(Self(permille.round() as u16))
        }
    }
}

/// Operations per second that are offered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate(pub f64);

/// A nanosecond between two starts: no clock is finer.
const RATE_MAX: f64 = 1e9;
/// One operation in a quarter of an hour.
const RATE_MIN: f64 = 0.001;

impl FromStr for Rate {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        let rate = number(text).ok_or_else(|| {
            form(
                text,
                "a number of operations per second over all jobs; write it plainly, such as 1000 \
                 (fio's rate in bytes: divide it by the block size)",
            )
        })?;
        match rate {
            RATE_MIN..=RATE_MAX => Ok(Self(rate)),
            _ => Err(WordError::Value(format!(
                "a rate of {text} starts nothing that could be measured; use 0.001 to 1000000000"
            ))),
        }
    }
}

/// Relative half-width of the 95 % interval at which a rate is known well enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision(pub f64);

impl FromStr for Precision {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        let percent = text
            .strip_suffix('%')
            .and_then(|number_text| number(number_text.trim_end()));
        match percent.ok_or_else(|| form(text, "a precision; write it in percent, such as 2%"))? {
            p if (0.01..=50.0).contains(&p) => Ok(Self(p / 100.0)),
            _ => Err(WordError::Value(format!(
                "a precision of {text} makes no sense; use 0.01% to 50%"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::{Debug, Display};

    pub(in crate::workload) fn read<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
        text.parse::<T>().map_err(|error| error.to_string())
    }

    pub(in crate::workload) fn wrong<T: FromStr<Err: Display> + Debug>(cases: &[(&str, &str)]) {
        for (text, part) in cases {
            let error = read::<T>(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn directions_are_fios_words() {
        for word in ["read", "write", "rw", "randread", "randwrite", "randrw"] {
            assert_eq!(read::<Rw>(word).unwrap().as_str(), word);
        }
        assert_eq!(read::<Rw>("readwrite").unwrap().as_str(), "rw");
        wrong::<Rw>(&[
            ("randreadwrite", "randrw"),
            ("", "randrw"),
            ("trim", "randrw"),
            ("rand", "randrw"),
            ("READ", "randrw"),
        ]);
    }

    #[test]
    fn block_sizes_and_their_mixes_read_as_in_fio() {
        let mix = |text| {
            read::<BlockSplit>(text).map(|mix| {
                mix.0
                    .iter()
                    .map(|s| (s.block_bytes, s.weight))
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(mix("4k/60:64k/40"), Ok(vec![(4096, 60), (65536, 40)]));
        assert_eq!(
            mix("4k/50:1k:32k/"),
            Ok(vec![(4096, 50), (1024, 25), (32768, 25)])
        );
        assert_eq!(mix("8k"), Ok(vec![(8192, 100)]));
        wrong::<BlockSplit>(&[
            ("4k/60:64k/50", "add up to 100"),
            ("4k/60:64k/30", "add up to 100"),
            ("4k/100:8k", "add up to 100"),
        ]);
        wrong::<BlockSplit>(&[
            ("4k/0:8k/100", "add up to 100"),
            ("x/100", "not a size"),
            ("", "not a size"),
            ("0/100", "0 bytes"),
        ]);
        wrong::<BlockSplit>(&[
            ("4k/50,64k/50", "4k/60:64k/40"),
            (&["4k/1"; 65].join(":"), "at most 64"),
        ]);
        assert_eq!(read::<BlockSize>("64M").map(|b| b.0), Ok(64 << 20));
        wrong::<BlockSize>(&[
            ("0", "at least 512"),
            ("65M", "at most 64M"),
            ("8x", "not a size"),
        ]);
    }

    #[test]
    fn shares_rates_and_precisions_read() {
        let reads = |text| read::<ReadShare>(text).map(|share| share.0);
        assert_eq!(
            [
                reads("0"),
                reads("50"),
                reads("33.3"),
                reads("70%"),
                reads("100")
            ],
            [Ok(0), Ok(500), Ok(333), Ok(700), Ok(1000)]
        );
        wrong::<ReadShare>(&[
            ("100.1", "0 to 100"),
            ("-1", "0 to 100"),
            ("33.33", "steps of 0.1"),
            ("half", "0 to 100"),
            ("", "0 to 100"),
        ]);
        assert_eq!(read::<Rate>("1000").map(|r| r.0), Ok(1000.0));
        wrong::<Rate>(&[
            ("0", "starts nothing"),
            ("1e3", "such as 1000"),
            ("-5", "such as 1000"),
            ("inf", "such as 1000"),
            ("99999999999", "starts nothing"),
        ]);
        assert_eq!(read::<Precision>("2%").map(|p| p.0), Ok(0.02));
        wrong::<Precision>(&[
            ("2", "2%"),
            ("0%", "makes no sense"),
            ("60%", "makes no sense"),
            ("%", "2%"),
            ("0.02", "2%"),
        ]);
    }

    #[test]
    fn names_stay_one_word_in_every_shell() {
        assert!(read::<Name>("wal-8k.d32+fsync").is_ok() && read::<Name>("größe").is_ok());
        wrong::<Name>(&[
            ("", "a name"),
            ("a b", "a name"),
            ("a/b", "a name"),
            ("a\nb", "a name"),
            ("-a", "a name"),
            (&"x".repeat(41), "up to 40"),
        ]);
    }

    #[test]
    fn counts_are_plain_digits() {
        assert_eq!(read::<Count>("32").map(|c| c.0), Ok(32));
        wrong::<Count>(&[
            ("-1", "such as 32"),
            ("+1", "such as 32"),
            ("1.5", "such as 32"),
            ("1k", "such as 32"),
            ("99999999999999999999", "such as 32"),
        ]);
    }

    #[test]
    fn times_stay_below_a_year() {
        assert_eq!(read::<Time>("500ms").map(|t| t.0), Ok(500_000_000));
        wrong::<Time>(&[("9000h", "year"), ("soon", "not a duration")]);
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "\\PC*", shares in "[0-9kMG%./:a-z-]{0,40}") {
            for text in [text, shares] {
                let _ = (read::<Name>(&text), read::<Rw>(&text), read::<Bytes>(&text), read::<Count>(&text), read::<Time>(&text), read::<BlockSize>(&text));
                let _ = (read::<BlockSplit>(&text), read::<ReadShare>(&text), read::<Rate>(&text), read::<Precision>(&text));
            }
        }
    }
}
