//! Parses the values of a workload's flags and keys: one parser per type, for flags and keys alike,
//! independent of targets and of other values.

use diskproof_model::figure::names_part_of_survey;
use diskproof_model::plan::{BlockShare, Distribution, WriteFlag, Zone};
use diskproof_model::units::{UnitError, parse_duration, parse_latency, parse_size};
use serde::de::{Deserializer, Error, Visitor};
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

/// Why a value cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The form is wrong.
    #[error("'{text}' is not {what}")]
    Form {
        /// The value, as given.
        text: String,
        /// The expected form, with an example.
        what: &'static str,
    },
    /// The form is right, and the value is out of range.
    #[error("{0}")]
    Value(String),
    /// A quantity in it is wrong.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

/// The error for a value that is not `what`.
fn wrong_form(text: &str, what: &'static str) -> ValueError {
    ValueError::Form {
        text: text.to_owned(),
        what,
    }
}

/// A finite number that is not negative, in plain digits.
fn number(text: &str) -> Option<f64> {
    if !text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    if value.is_finite() { Some(value) } else { None }
}

/// A number with an optional % sign.
fn percent(text: &str) -> Option<f64> {
    number(text.strip_suffix('%').unwrap_or(text).trim_end())
}

/// Name of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadName(pub String);

/// A longer name does not fit into a line with figures.
const NAME_CHARS_MAX: usize = 40;

impl FromStr for WorkloadName {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if names_part_of_survey(text) {
            return Err(ValueError::Value(format!(
                "'{text}' names a part of a survey in thresholds (--expect); give the workload \
                 another name"
            )));
        }
        let length = text.chars().count();
        if (1..=NAME_CHARS_MAX).contains(&length)
            && !text.starts_with('-')
            && text.chars().all(is_name_char)
        {
            Ok(Self(text.to_owned()))
        } else {
            Err(wrong_form(
                text,
                "a name; use up to 40 letters, digits, - _ . +",
            ))
        }
    }
}

/// True if a name may have this character. In the commands of other tools a slash would make the
/// name a path, and a blank two arguments.
fn is_name_char(character: char) -> bool {
    character.is_alphanumeric() || "-_.+".contains(character)
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
            Ok(count) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Self(count)),
            _ => Err(wrong_form(text, what)),
        }
    }
}

/// A number in a list such as `--depth 1,4,16`. A range is an error that shows the list.
pub(crate) fn parse_listed_count(text: &str) -> Result<Count, ValueError> {
    if let Some((from, to)) = range_bounds(text)
        && let (Ok(from), Ok(to)) = (from.parse(), to.parse())
    {
        let mut list = Vec::new();
        for value in doublings(from, to) {
            list.push(value.to_string());
        }
        return Err(range_error(text, "values", &list));
    }
    text.parse()
}

/// A size in a list such as `--bs 4k,64k`. A range is an error that shows the list.
pub(crate) fn parse_listed_size(text: &str) -> Result<BlockSize, ValueError> {
    if let Some((from, to)) = range_bounds(text)
        && let (Ok(from_bytes), Ok(to_bytes)) = (parse_size(from), parse_size(to))
    {
        let units = if is_decimal(from) || is_decimal(to) {
            &DECIMAL_UNITS
        } else {
            &BINARY_UNITS
        };
        let mut list = Vec::new();
        for bytes in doublings(from_bytes, to_bytes) {
            list.push(units.text(bytes));
        }
        return Err(range_error(text, "sizes", &list));
    }
    text.parse()
}

/// The two bounds of a text that looks like a range: `1-32`, `1..32`, `1:32`.
fn range_bounds(text: &str) -> Option<(&str, &str)> {
    for separator in ["..=", "..", "-", ":"] {
        if let Some((from, to)) = text.split_once(separator) {
            return Some((from.trim(), to.trim()));
        }
    }
    None
}

fn range_error(text: &str, what: &str, list: &[String]) -> ValueError {
    ValueError::Value(format!(
        "'{text}' is a range; list the {what}: {}",
        list.join(",")
    ))
}

/// The smaller of two numbers, each doubled one below the larger, and the larger.
fn doublings(one: u64, other: u64) -> Vec<u64> {
    let last = one.max(other);
    let mut value = one.min(other).max(1);
    let mut values = Vec::new();
    while value < last {
        values.push(value);
        value = value.saturating_mul(2);
    }
    values.push(last);
    values
}

/// Units in which sizes are written.
struct SizeUnits {
    step: u64,
    /// The names of bytes, and of each further step.
    names: [&'static str; 4],
}

const BINARY_UNITS: SizeUnits = SizeUnits {
    step: 1024,
    names: ["", "k", "M", "G"],
};
const DECIMAL_UNITS: SizeUnits = SizeUnits {
    step: 1000,
    names: ["", "kB", "MB", "GB"],
};

impl SizeUnits {
    /// The size in the largest unit that needs no fraction.
    fn text(&self, bytes: u64) -> String {
        let mut value = bytes;
        let mut unit = 0;
        while value > 0 && value.is_multiple_of(self.step) && unit + 1 < self.names.len() {
            value /= self.step;
            unit += 1;
        }
        format!("{value}{}", self.names[unit])
    }
}

/// True of a size in kB, MB, GB or TB.
fn is_decimal(size: &str) -> bool {
    let lowercase = size.to_ascii_lowercase();
    ["kb", "mb", "gb", "tb"]
        .iter()
        .any(|unit| lowercase.ends_with(unit))
}

/// A duration in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub u64);

/// A year: longer than any run, and far from an overflow in sums of nanoseconds.
const TIME_NS_MAX: u64 = 366 * 24 * 3600 * 1_000_000_000;

impl FromStr for Time {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        parse_time(text).map(Self)
    }
}

/// Reads a duration of at most a year, in nanoseconds.
pub(crate) fn parse_time(text: &str) -> Result<u64, ValueError> {
    match parse_duration(text)? {
        ns if ns > TIME_NS_MAX => Err(ValueError::Value(format!(
            "'{text}' is longer than a year; use a shorter time"
        ))),
        ns => Ok(ns),
    }
}

/// A latency in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency(pub u64);

impl FromStr for Latency {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        Ok(Self(parse_latency(text)?))
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
            0 => Err(ValueError::Value(
                "a block of 0 bytes transfers nothing; use at least 512".to_owned(),
            )),
            bytes @ 1..=BLOCK_BYTES_MAX => Ok(Self(bytes as u32)),
            _ => Err(ValueError::Value(format!(
                "a block of {text} is too large; use at most 1G"
            ))),
        }
    }
}

/// Block sizes with their shares, in fio's syntax: `4k/60:64k/40`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockSplit(pub Vec<BlockShare>);

/// The expected form of a mix of block sizes.
const SPLIT: &str =
    "a mix of block sizes; write size/percent pairs that add up to 100, such as 4k/60:64k/40";
/// The limit of fio.
const SPLIT_ENTRIES_MAX: usize = 64;
/// Stands for the share of a size that names none. As in fio, such sizes divide the rest equally.
const SHARE_OF_REST: u32 = 0;

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
        let mut sum_percent: u32 = 0;
        let mut sizes_without_share = 0;
        for entry in entries {
            let (size, share) = entry.split_once('/').unwrap_or((entry, ""));
            let BlockSize(block_bytes) = size.parse()?;
            let percent = match share.parse() {
                Ok(percent @ 1..=100) => percent,
                _ if share.is_empty() => {
                    sizes_without_share += 1;
                    SHARE_OF_REST
                }
                _ => return Err(wrong_form(text, SPLIT)),
            };
            sum_percent += percent;
            shares.push(BlockShare::new(block_bytes, percent));
        }
        let is_complete = match (100_u32.checked_sub(sum_percent), sizes_without_share) {
            (Some(rest), 0) => rest == 0,
            (Some(rest), sizes) => rest > 0 && rest.is_multiple_of(sizes),
            (None, _) => false,
        };
        if !is_complete {
            return Err(wrong_form(text, SPLIT));
        }
        for share in &mut shares {
            if share.weight == SHARE_OF_REST {
                share.weight = (100 - sum_percent) / sizes_without_share;
            }
        }
        Ok(Self(shares))
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
        let share = percent(text).ok_or_else(|| wrong_form(text, what))?;
        let permille = share * 10.0;
        let whole = permille.round();
        // In binary, 33.3 × 10 is not exactly a whole number.
        if share > 100.0 || (permille - whole).abs() > 1e-6 {
            return Err(wrong_form(text, what));
        }
        Ok(Self(whole as u16))
    }
}

/// The flag with which a target is opened, so that writes are durable when they end.
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

/// At this rate, one nanosecond is between two starts: the resolution of clocks.
const RATE_MAX: f64 = 1e9;
/// At this rate, an operation starts every quarter of an hour.
const RATE_MIN: f64 = 0.001;

impl FromStr for Rate {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let what = "a rate; write operations per second over all jobs, such as 1000 (for fio's \
                    rate in bytes, divide by the block size)";
        let rate = number(text).ok_or_else(|| wrong_form(text, what))?;
        if !(RATE_MIN..=RATE_MAX).contains(&rate) {
            return Err(ValueError::Value(format!(
                "a rate of {text} is out of range; use 0.001 to 1000000000"
            )));
        }
        Ok(Self(rate))
    }
}

/// Relative half-width of the 95 % interval that ends a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precision(pub f64);

impl FromStr for Precision {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let what = "a precision; write it in percent, such as 2%";
        let digits = text
            .strip_suffix('%')
            .ok_or_else(|| wrong_form(text, what))?;
        let percent = number(digits.trim_end()).ok_or_else(|| wrong_form(text, what))?;
        if !(0.01..=50.0).contains(&percent) {
            return Err(ValueError::Value(format!(
                "a precision of {text} is out of range; use 0.01% to 50%"
            )));
        }
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
        if !(1.0..=100.0).contains(&share) {
            return Err(ValueError::Value(format!(
                "a latency percentile of {text} is out of range; use 1 to 100"
            )));
        }
        Ok(Self(share))
    }
}

/// A position in the target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Position {
    /// In bytes from its start.
    Bytes(u64),
    /// In percent of the target.
    Percent(f64),
}

/// A span, before the target's size is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpanBounds {
    /// First byte.
    pub start: Position,
    /// First byte after the span.
    pub end: Position,
}

impl SpanBounds {
    /// True if the bytes of the span depend on the size of the target.
    pub(super) fn has_percent(&self) -> bool {
        matches!(self.start, Position::Percent(_)) || matches!(self.end, Position::Percent(_))
    }
}

/// The largest physical sector that disks have.
const PAGE_BYTES: u64 = 4096;
/// The expected form of a span.
const SPAN: &str =
    "a span; write its end, or from-to, in bytes or percent, such as 10%, 0-50% or 100GB-200GB";

impl FromStr for SpanBounds {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let (start, last) = match text.split_once('-') {
            Some((start, last)) => (start.trim(), last.trim()),
            None => ("0", text.trim()),
        };
        let end = position(last)?;
        let start = span_start(text, start, last, end)?;
        let is_empty = match (start, end) {
            (Position::Bytes(start), Position::Bytes(end)) => start >= end,
            (Position::Percent(start), Position::Percent(end)) => start >= end,
            (Position::Bytes(0), Position::Percent(end)) => end <= 0.0,
            _ => false,
        };
        if is_empty {
            return Err(empty_span(text));
        }
        Ok(Self { start, end })
    }
}

/// Says why a span is empty: because of its bounds, or because they are rounded to the same page.
fn empty_span(text: &str) -> ValueError {
    let (start, end) = text.split_once('-').unwrap_or(("0", text));
    if let (Ok(start_bytes), Ok(end_bytes)) = (parse_size(start), parse_size(end))
        && start_bytes < end_bytes
    {
        return ValueError::Value(format!(
            "'{text}' is an empty span: kB, MB, GB and TB are decimal, and rounded down to pages \
             of 4096 bytes. Write binary units, such as 4k or 4KiB, or a larger end"
        ));
    }
    ValueError::Value(format!(
        "'{text}' is an empty span; its end must be greater than its start"
    ))
}

/// The start of a span that ends at `last`, which is `end`.
fn span_start(text: &str, start: &str, last: &str, end: Position) -> Result<Position, ValueError> {
    let Some(bare_number) = number(start) else {
        return position(start);
    };
    if bare_number == 0.0 {
        return Ok(Position::Bytes(0));
    }
    match end {
        // `10-20%`: the unit applies to both numbers.
        Position::Percent(_) => Ok(Position::Percent(bare_number)),
        Position::Bytes(_) if number(last).is_none() => Err(ValueError::Value(format!(
            "'{text}': the start could be {start} bytes, or have the unit of the end; write the \
             unit after both numbers"
        ))),
        Position::Bytes(_) => position(start),
    }
}

fn position(text: &str) -> Result<Position, ValueError> {
    let Some(digits) = text.strip_suffix('%') else {
        let bytes = parse_size(text).map_err(|_| wrong_form(text, SPAN))?;
        return Ok(Position::Bytes(whole_pages(text, bytes)));
    };
    let percent = number(digits.trim_end()).ok_or_else(|| wrong_form(text, SPAN))?;
    if percent > 100.0 {
        return Err(ValueError::Value(format!(
            "'{text}' is more than the whole target; use at most 100%"
        )));
    }
    Ok(Position::Percent(percent))
}

/// Rounds decimal sizes down to pages; sizes in bytes or binary units stay exact. Sectors do not
/// begin at decimal sizes: on a disk with 4096-byte sectors, every block counted from 1 MB would
/// touch one sector more, or direct I/O would fail.
fn whole_pages(text: &str, bytes: u64) -> u64 {
    if is_decimal(text) {
        bytes / PAGE_BYTES * PAGE_BYTES
    } else {
        bytes
    }
}

/// Zones as access/size pairs in percent: `60/10:30/20:10/70`.
#[derive(Debug, Clone, PartialEq)]
pub struct Zones(pub Vec<Zone>);

/// Every random draw searches the zones, so their number is limited.
const ZONES_MAX: usize = 64;

impl FromStr for Zones {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let what = "a list of zones; write access%/size% pairs in order of position, such as \
                    60/10:30/20:10/70";
        let mut zones = Vec::new();
        for pair in text.split(':') {
            zones.push(zone(pair).ok_or_else(|| wrong_form(text, what))?);
        }
        if zones.len() > ZONES_MAX {
            return Err(ValueError::Value(format!(
                "{} zones are too many; use at most {ZONES_MAX}",
                zones.len()
            )));
        }
        let mut access_percent = 0.0;
        let mut size_percent = 0.0;
        for zone in &zones {
            if zone.access_percent <= 0.0 || zone.size_percent <= 0.0 {
                return Err(ValueError::Value(format!(
                    "'{text}': every zone needs a share of accesses and of size above 0"
                )));
            }
            access_percent += zone.access_percent;
            size_percent += zone.size_percent;
        }
        check_sum(text, "accesses", access_percent)?;
        check_sum(text, "sizes", size_percent)?;
        Ok(Self(zones))
    }
}

fn zone(pair: &str) -> Option<Zone> {
    let (access, size) = pair.split_once('/')?;
    Some(Zone {
        access_percent: percent(access)?,
        size_percent: percent(size)?,
    })
}

/// The shares of zones may differ from 100 % by this sum: 33.33 passes for a third.
const SUM_TOLERANCE_PERCENT: f64 = 0.1;

/// Checks that the shares of all zones are the whole.
fn check_sum(text: &str, name: &str, percent: f64) -> Result<(), ValueError> {
    if (percent - 100.0).abs() > SUM_TOLERANCE_PERCENT {
        return Err(ValueError::Value(format!(
            "'{text}': the {name} add up to {} %; they must add up to 100 %",
            (percent * 1e4).round() / 1e4
        )));
    }
    Ok(())
}

/// Distribution of random offsets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OffsetDistribution(pub Distribution);

/// The expected form of a distribution.
const DISTRIBUTION: &str = "a distribution; write uniform, zipf:THETA such as zipf:1.1, \
                            pareto:SHARE such as pareto:0.2, normal:PERCENT such as normal:10, or \
                            hot:ACCESS/SIZE such as hot:80/20";
/// The values that the parameter of `zipf` may have.
const THETA_RANGE: &str =
    "theta must be above 0, at most 10, and not 1; use such as zipf:1.1 or zipf:0.99";
/// The values that the parameter of `pareto` may have.
const PARETO_RANGE: &str = "the share must be between 0 and 1; with 0.2, 80 % of the operations \
                            go to 20 % of the blocks";
/// The values that the parameter of `normal` may have.
const SPREAD_RANGE: &str = "the spread must be at least 0 and below 100 percent";
/// The values that the parameters of `hot` may have.
const HOT_RANGE: &str = "both shares must be between 0 and 100; to confine all accesses to a part \
                         of the target, use a span";

impl FromStr for OffsetDistribution {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let distribution = match text.split_once(':') {
            // `random` is fio's name.
            None if text == "uniform" || text == "random" => Distribution::Uniform,
            Some(("zipf", parameter)) => zipf(text, parameter)?,
            Some(("pareto", parameter)) => pareto(text, parameter)?,
            Some(("normal", parameter)) => normal(text, parameter)?,
            Some(("hot", parameter)) => hot_cold(text, parameter)?,
            _ => return Err(wrong_form(text, DISTRIBUTION)),
        };
        Ok(Self(distribution))
    }
}

fn zipf(text: &str, parameter: &str) -> Result<Distribution, ValueError> {
    let theta = number(parameter).ok_or_else(|| wrong_form(text, DISTRIBUTION))?;
    within_range(Distribution::Zipf { theta }, text, THETA_RANGE)
}

fn pareto(text: &str, parameter: &str) -> Result<Distribution, ValueError> {
    let share = number(parameter).ok_or_else(|| wrong_form(text, DISTRIBUTION))?;
    within_range(Distribution::Pareto { share }, text, PARETO_RANGE)
}

fn normal(text: &str, parameter: &str) -> Result<Distribution, ValueError> {
    let spread_percent = number(parameter).ok_or_else(|| wrong_form(text, DISTRIBUTION))?;
    within_range(Distribution::Normal { spread_percent }, text, SPREAD_RANGE)
}

fn hot_cold(text: &str, parameter: &str) -> Result<Distribution, ValueError> {
    let (access, size) = parameter
        .split_once('/')
        .ok_or_else(|| wrong_form(text, DISTRIBUTION))?;
    let hot_cold = Distribution::HotCold {
        access_percent: percent(access).ok_or_else(|| wrong_form(text, DISTRIBUTION))?,
        size_percent: percent(size).ok_or_else(|| wrong_form(text, DISTRIBUTION))?,
    };
    within_range(hot_cold, text, HOT_RANGE)
}

/// The distribution, unless one of its numbers is out of its range, which `range` describes.
fn within_range(
    distribution: Distribution,
    text: &str,
    range: &str,
) -> Result<Distribution, ValueError> {
    if distribution.can_be_drawn() {
        Ok(distribution)
    } else {
        Err(ValueError::Value(format!("'{text}': {range}")))
    }
}

/// Reads the value of a key, which is text or a number, with the parser of its flag: `"8k"`,
/// `8192`, `50.5`.
pub(crate) fn parse_key<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_any(KeyVisitor(PhantomData))
}

struct KeyVisitor<T>(PhantomData<T>);

impl<T: FromStr<Err: Display>> Visitor<'_> for KeyVisitor<T> {
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

#[cfg(test)]
mod tests;
