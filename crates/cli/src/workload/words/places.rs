//! Words for where in the target operations go: the part that is used, zones of unequal use, and
//! how likely each block is. Knows no target's size.

use super::{WordError, form, number, percent};
use diskproof_model::plan::{Distribution, Zone};
use diskproof_model::units::parse_size;
use std::str::FromStr;

/// A position in the target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Position {
    /// In bytes.
    Bytes(u64),
    /// In percent of the target.
    Percent(f64),
}

/// The part of the target that is used, before the target's size is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// First byte.
    pub start: Position,
    /// First byte behind it.
    pub end: Position,
}

/// The largest physical sector that disks have.
const PAGE_BYTES: u64 = 4096;
const PART: &str = "a span; write where it ends, or from-to, in bytes or percent, such as 10%, \
                    0-50% or 100GB-200GB";

impl FromStr for Part {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        let (start, last) = match text.split_once('-') {
            Some((start, last)) => (start.trim(), last.trim()),
            None => ("0", text.trim()),
        };
        let end = position(last)?;
        let start = match (position(start)?, end, number(start)) {
            (Position::Bytes(0), _, _) => Position::Bytes(0),
            // `10-20%`: the unit behind the second number is meant for both.
            (Position::Bytes(_), Position::Percent(_), Some(share)) => Position::Percent(share),
            (Position::Bytes(bytes), Position::Bytes(_), Some(_)) if number(last).is_none() => {
                let told = format!(
                    "'{text}': is the start {bytes} bytes, or has it the unit of the end? Write \
                     the unit behind both"
                );
                return Err(WordError::Value(told));
            }
            (start, _, _) => start,
        };
        let is_empty = match (start, end) {
            (Position::Bytes(start), Position::Bytes(end)) => start >= end,
            (Position::Percent(start), Position::Percent(end)) => start >= end,
            (Position::Bytes(0), Position::Percent(end)) => end <= 0.0,
            _ => false,
        };
        if is_empty {
            return Err(WordError::Value(format!(
                "'{text}' holds nothing: its end must lie behind its start"
            )));
        }
        Ok(Self { start, end })
    }
}

fn position(text: &str) -> Result<Position, WordError> {
    match text.strip_suffix('%') {
        Some(share) => {
            let share = number(share.trim_end()).ok_or_else(|| form(text, PART))?;
            if share > 100.0 {
                Err(WordError::Value(format!(
                    "'{text}' is more than all of the target; use at most 100%"
                )))
            } else {
                Ok(Position::Percent(share))
            }
        }
        None => Ok(Position::Bytes(whole_pages(
            text,
            parse_size(text).map_err(|_| form(text, PART))?,
        ))),
    }
}

/// No disk has its sectors at decimal sizes: on one with 4096-byte sectors beneath, each block
/// counted from 1 MB would cost two of them, and direct I/O may refuse it. So these are rounded
/// down, and what is written to the byte or in binary units stays as it is.
fn whole_pages(text: &str, bytes: u64) -> u64 {
    let text = text.to_ascii_lowercase();
    let is_decimal = ["kb", "mb", "gb", "tb"]
        .iter()
        .any(|unit| text.ends_with(unit));
    if is_decimal {
        bytes / PAGE_BYTES * PAGE_BYTES
    } else {
        bytes
    }
}

/// Zones with their shares: `60/10:30/20:10/70`, access over size, in percent.
#[derive(Debug, Clone, PartialEq)]
pub struct Zones(pub Vec<Zone>);

/// As many as anybody can tell apart; every draw looks through them.
const ZONES_MAX: usize = 64;

impl FromStr for Zones {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        let what = "a list of zones; write access%/size% pairs in order of position, such as \
                    60/10:30/20:10/70";
        let zone = |pair: &str| {
            let (access, size) = pair.split_once('/')?;
            Some(Zone {
                access_percent: percent(access)?,
                size_percent: percent(size)?,
            })
        };
        let zones: Vec<Zone> = text
            .split(':')
            .map(zone)
            .collect::<Option<_>>()
            .ok_or_else(|| form(text, what))?;
        if zones.len() > ZONES_MAX {
            return Err(WordError::Value(format!(
                "{} zones are too many; use at most {ZONES_MAX}",
                zones.len()
            )));
        }
        if zones
            .iter()
            .any(|zone| zone.access_percent <= 0.0 || zone.size_percent <= 0.0)
        {
            return Err(WordError::Value(format!(
                "'{text}': a zone without accesses or without size is no zone; use shares above 0"
            )));
        }
        let sums = [
            zones.iter().map(|z| z.access_percent).sum::<f64>(),
            zones.iter().map(|z| z.size_percent).sum(),
        ];
        for (sum, name) in sums.into_iter().zip(["accesses", "sizes"]) {
            // Thirds of 33.33 are meant as thirds.
            if (sum - 100.0).abs() > 0.1 {
                return Err(WordError::Value(format!(
                    "'{text}': the {name} add up to {} %; make it 100",
                    (sum * 1e4).round() / 1e4
                )));
            }
        }
        Ok(Self(zones))
    }
}

/// How likely each block is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Likelihood(pub Distribution);

/// A steeper law leaves a single block.
const THETA_MAX: f64 = 10.0;

impl FromStr for Likelihood {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, WordError> {
        let error = || {
            form(
                text,
                "a distribution; write uniform, zipf:THETA such as zipf:1.1, or hot:ACCESS/SIZE \
                 such as hot:80/20",
            )
        };
        let distribution = match text.split_once(':') {
            // fio's word.
            None if text == "uniform" || text == "random" => Distribution::Uniform,
            Some(("zipf", theta)) => match number(theta).ok_or_else(error)? {
                theta if theta > 0.0 && theta <= THETA_MAX && theta != 1.0 => {
                    Distribution::Zipf { theta }
                }
                _ => {
                    return Err(WordError::Value(format!(
                        "'{text}': theta must be above 0, at most 10, and not 1; use such as \
                         zipf:1.1 or zipf:0.99"
                    )));
                }
            },
            Some(("hot", shares)) => {
                let (access, size) = shares.split_once('/').ok_or_else(error)?;
                let (access_percent, size_percent) = (
                    percent(access).ok_or_else(error)?,
                    percent(size).ok_or_else(error)?,
                );
                if [access_percent, size_percent]
                    .iter()
                    .any(|share| *share <= 0.0 || *share >= 100.0)
                {
                    return Err(WordError::Value(format!(
                        "'{text}': both shares must lie between 0 and 100; for all accesses in a \
                         part of the target use a span"
                    )));
                }
                Distribution::HotCold {
                    access_percent,
                    size_percent,
                }
            }
            _ => return Err(error()),
        };
        Ok(Self(distribution))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::words::tests::{read, wrong};
    use proptest::prelude::*;

    #[test]
    fn spans_take_bytes_and_percent() {
        use Position::{Bytes, Percent};
        let part = |text| read::<Part>(text).map(|part| (part.start, part.end));
        assert_eq!(part("10%"), Ok((Bytes(0), Percent(10.0))));
        assert_eq!(part("0-50%"), Ok((Bytes(0), Percent(50.0))));
        assert_eq!(part("10-20%"), Ok((Percent(10.0), Percent(20.0))));
        assert_eq!(part("25% - 75.5%"), Ok((Percent(25.0), Percent(75.5))));
        // Decimal sizes come to lie on pages.
        assert_eq!(part("0-100GB"), Ok((Bytes(0), Bytes(99_999_997_952))));
        assert_eq!(
            part("1MB-100000000"),
            Ok((Bytes(999_424), Bytes(100_000_000)))
        );
        assert_eq!(part("1G-2G"), Ok((Bytes(1 << 30), Bytes(2 << 30))));
        assert_eq!(part("4096-8192"), Ok((Bytes(4096), Bytes(8192))));
        assert_eq!(part("100MB-50%"), Ok((Bytes(99_999_744), Percent(50.0))));
        wrong::<Part>(&[
            ("1-2G", "unit behind both"),
            ("50-10%", "holds nothing"),
            ("0%", "holds nothing"),
            ("0", "holds nothing"),
            ("2G-1G", "holds nothing"),
        ]);
        wrong::<Part>(&[
            ("101%", "at most 100%"),
            ("half", "0-50%"),
            ("", "0-50%"),
            ("1-2-3", "0-50%"),
            ("10%-", "0-50%"),
            ("NaN%", "0-50%"),
        ]);
    }

    #[test]
    fn zones_add_up() {
        let zone = |access_percent, size_percent| Zone {
            access_percent,
            size_percent,
        };
        assert_eq!(
            read::<Zones>("60/10:30/20:10/70").map(|z| z.0),
            Ok(vec![zone(60.0, 10.0), zone(30.0, 20.0), zone(10.0, 70.0)])
        );
        assert!(read::<Zones>("33.3/33.3:33.3/33.3:33.4/33.4").is_ok());
        wrong::<Zones>(&[
            ("60/10:30/20", "accesses add up to 90"),
            ("60/10:40/20", "sizes add up to 30"),
            ("100/0:0/100", "above 0"),
            ("60-10", "60/10:30/20"),
        ]);
        wrong::<Zones>(&[(&["1/1"; 100].join(":"), "at most 64")]);
    }

    #[test]
    fn distributions_read() {
        assert_eq!(
            read::<Likelihood>("zipf:1.1").map(|l| l.0),
            Ok(Distribution::Zipf { theta: 1.1 })
        );
        assert_eq!(
            read::<Likelihood>("hot:80/20").map(|l| l.0),
            Ok(Distribution::HotCold {
                access_percent: 80.0,
                size_percent: 20.0
            })
        );
        assert_eq!(
            read::<Likelihood>("uniform").map(|l| l.0),
            Ok(Distribution::Uniform)
        );
        wrong::<Likelihood>(&[
            ("zipf:0", "above 0"),
            ("zipf:-1", "zipf:1.1"),
            ("zipf:1", "not 1"),
            ("zipf:11", "at most 10"),
            ("zipf", "zipf:1.1"),
        ]);
        wrong::<Likelihood>(&[
            ("hot:100/20", "use a span"),
            ("hot:80", "hot:80/20"),
            ("hot:80/0", "between"),
            ("pareto:0.5", "uniform"),
        ]);
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "\\PC*", shares in "[0-9kMG%./:a-z-]{0,40}") {
            for text in [text, shares] {
                let _ = (read::<Part>(&text), read::<Zones>(&text), read::<Likelihood>(&text));
            }
        }
    }
}
