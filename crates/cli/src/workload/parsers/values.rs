//! Names, directions, counts, sizes, times, shares and rates.

use super::syntax::{ValueError, number, percent, wrong_form};
use diskproof_model::plan::{BlockShare, WriteFlag};
use diskproof_model::units::{parse_duration, parse_size};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Name of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadName(pub String);

/// A longer name does not fit into a line with figures.
const NAME_CHARS_MAX: usize = 40;

impl FromStr for WorkloadName {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        // In the commands of other tools a slash would make it a path, and a blank two arguments.
        let fits = (1..=NAME_CHARS_MAX).contains(&text.chars().count()) && !text.starts_with('-');
        let is_plain = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
        if fits && text.chars().all(is_plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(wrong_form(
                text,
                "a name; use up to 40 letters, digits, - _ . +",
            ))
        }
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        Ok(Self(parse_size(text)?))
    }
}

/// A whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let what = "a whole number; write it in plain digits, such as 32";
        match text.parse() {
            Ok(count) if text.bytes().all(|b| b.is_ascii_digit()) => Ok(Self(count)),
            _ => Err(wrong_form(text, what)),
        }
    }
}

/// A duration in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub u64);

/// A year: longer than any run, and far from an overflow in sums of nanoseconds.
const TIME_NS_MAX: u64 = 366 * 24 * 3600 * 1_000_000_000;

impl FromStr for Time {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match parse_duration(text)? {
            ns if ns > TIME_NS_MAX => Err(ValueError::Value(format!(
                "'{text}' is longer than a year; use a shorter time"
            ))),
            ns => Ok(Self(ns)),
        }
    }
}

/// Bytes per operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSize(pub u32);

/// Every request in flight needs a buffer of its size.
pub(crate) const BLOCK_BYTES_MAX: u64 = 1 << 30;

impl FromStr for BlockSize {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match parse_size(text)? {
            bytes @ 1..=BLOCK_BYTES_MAX => Ok(Self(bytes as u32)),
            bytes => Err(ValueError::Value(match bytes {
                0 => "a block of 0 bytes transfers nothing; use at least 512".to_owned(),
                _ => format!("a block of {text} is too large; use at most 1G"),
            })),
        }
    }
}

/// Block sizes with their shares, in fio's syntax: `4k/60:64k/40`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockSplit(pub Vec<BlockShare>);

const SPLIT: &str =
    "a mix of block sizes; write size/percent pairs that add up to 100, such as 4k/60:64k/40";
/// The limit of fio.
const SPLIT_ENTRIES_MAX: usize = 64;

impl FromStr for BlockSplit {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let entries: Vec<&str> = text.split(':').collect();
        if entries.len() > SPLIT_ENTRIES_MAX {
            return Err(ValueError::Value(format!(
                "{} block sizes are too many; use at most {SPLIT_ENTRIES_MAX}",
                entries.len()
            )));
        }
        let mut shares = Vec::new();
        for entry in entries {
            let (size, share) = entry.split_once('/').unwrap_or((entry, ""));
            let BlockSize(block_bytes) = size.parse()?;
            let percent = match (share, share.parse::<u32>()) {
                ("", _) => None,
                (_, Ok(percent @ 1..=100)) => Some(percent),
                _ => return Err(wrong_form(text, SPLIT)),
            };
            shares.push((block_bytes, percent));
        }
        let named: u32 = shares.iter().filter_map(|(_, percent)| *percent).sum();
        let open = shares.iter().filter(|(_, percent)| percent.is_none());
        let open = open.count() as u32;
        // As in fio, sizes without a share divide the rest equally.
        if named > 100
            || (open == 0 && named < 100)
            || (open > 0 && !(100 - named).is_multiple_of(open))
            || (open > 0 && named == 100)
        {
            return Err(wrong_form(text, SPLIT));
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
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let what =
            "a share of reads; write percent from 0 to 100 in steps of 0.1, such as 50 or 33.3";
        let permille = percent(text).filter(|p| *p <= 100.0).map(|p| p * 10.0);
        // In binary, 33.3 × 10 is not exactly a whole number.
        let is_whole = |permille: &f64| (permille - permille.round()).abs() <= 1e-6;
        let permille = permille.filter(is_whole);
        let permille = permille.ok_or_else(|| wrong_form(text, what))?;
        Ok(Self(permille.round() as u16))
    }
}

/// How the target is opened so that writes are durable when they end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncedWrites(pub WriteFlag);

impl FromStr for SyncedWrites {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text {
            "sync" => Ok(Self(WriteFlag::OpenSync)),
            "dsync" => Ok(Self(WriteFlag::OpenDsync)),
            _ => Err(wrong_form(text, "sync (O_SYNC) or dsync (O_DSYNC)")),
        }
    }
}

/// Operations to start per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate(pub f64);

/// One nanosecond between two starts, the resolution of clocks.
const RATE_MAX: f64 = 1e9;
/// One operation per quarter of an hour.
const RATE_MIN: f64 = 0.001;

impl FromStr for Rate {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let what = "a rate; write operations per second over all jobs, such as 1000 (for fio's \
                    rate in bytes, divide by the block size)";
        let rate = number(text).ok_or_else(|| wrong_form(text, what))?;
        within(rate, RATE_MIN..=RATE_MAX, || {
            format!("a rate of {text} is out of range; use 0.001 to 1000000000")
        })
        .map(Self)
    }
}

/// The value, if it is in the range.
fn within(
    value: f64,
    range: RangeInclusive<f64>,
    wrong: impl Fn() -> String,
) -> Result<f64, ValueError> {
    let value = Some(value).filter(|value| range.contains(value));
    value.ok_or_else(|| ValueError::Value(wrong()))
}

/// Relative half-width of the 95 % interval that ends a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision(pub f64);

impl FromStr for Precision {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let what = "a precision; write it in percent, such as 2%";
        let percent = text
            .strip_suffix('%')
            .and_then(|text| number(text.trim_end()));
        let percent = percent.ok_or_else(|| wrong_form(text, what))?;
        let percent = within(percent, 0.01..=50.0, || {
            format!("a precision of {text} is out of range; use 0.01% to 50%")
        })?;
        Ok(Self(percent / 100.0))
    }
}

/// Share of the requests that meet a latency limit, in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyPercentile(pub f64);

impl FromStr for LatencyPercentile {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let share = percent(text)
            .ok_or_else(|| wrong_form(text, "a share in percent; write a number such as 99.9"))?;
        within(share, 1.0..=100.0, || {
            format!("a latency percentile of {text} is out of range; use 1 to 100")
        })
        .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::parsers::tests::{assert_rejected, parse};

    #[test]
    fn block_sizes_and_mixes_parse_as_in_fio() {
        let mix = |text| {
            parse::<BlockSplit>(text).map(|mix| {
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
        assert_rejected::<BlockSplit>(&[
            ("4k/60:64k/50", "add up to 100"),
            ("4k/60:64k/30", "add up to 100"),
            ("4k/100:8k", "add up to 100"),
        ]);
        assert_rejected::<BlockSplit>(&[
            ("4k/0:8k/100", "add up to 100"),
            ("x/100", "not a size"),
            ("", "not a size"),
            ("0/100", "0 bytes"),
        ]);
        assert_rejected::<BlockSplit>(&[
            ("4k/50,64k/50", "4k/60:64k/40"),
            (&["4k/1"; 65].join(":"), "at most 64"),
        ]);
        assert_eq!(parse::<BlockSize>("1G").map(|b| b.0), Ok(1 << 30));
        assert_rejected::<BlockSize>(&[
            ("0", "at least 512"),
            ("1025M", "at most 1G"),
            ("8x", "not a size"),
        ]);
    }

    #[test]
    fn shares_rates_and_precisions_parse() {
        let reads = |text| parse::<ReadShare>(text).map(|share| share.0);
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
        assert_rejected::<ReadShare>(&[
            ("100.1", "0 to 100"),
            ("-1", "0 to 100"),
            ("33.33", "steps of 0.1"),
            ("half", "0 to 100"),
            ("", "0 to 100"),
        ]);
        assert_eq!(parse::<Rate>("1000").map(|r| r.0), Ok(1000.0));
        assert_rejected::<Rate>(&[
            ("0", "out of range"),
            ("1e3", "such as 1000"),
            ("-5", "such as 1000"),
            ("inf", "such as 1000"),
            ("99999999999", "out of range"),
        ]);
        assert_eq!(parse::<Precision>("2%").map(|p| p.0), Ok(0.02));
        assert_rejected::<Precision>(&[
            ("2", "2%"),
            ("0%", "out of range"),
            ("60%", "out of range"),
            ("%", "2%"),
            ("0.02", "2%"),
        ]);
    }

    #[test]
    fn workload_name_is_one_argument_in_every_shell() {
        assert!(
            parse::<WorkloadName>("wal-8k.d32+fsync").is_ok()
                && parse::<WorkloadName>("größe").is_ok()
        );
        assert_rejected::<WorkloadName>(&[
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
        assert_eq!(parse::<Count>("32").map(|c| c.0), Ok(32));
        assert_rejected::<Count>(&[
            ("-1", "such as 32"),
            ("+1", "such as 32"),
            ("1.5", "such as 32"),
            ("1k", "such as 32"),
            ("99999999999999999999", "such as 32"),
        ]);
    }

    #[test]
    fn time_is_at_most_a_year() {
        assert_eq!(parse::<Time>("500ms").map(|t| t.0), Ok(500_000_000));
        assert_rejected::<Time>(&[("9000h", "year"), ("soon", "not a duration")]);
    }
}
