//! Offsets of operations: the span, zones of unequal use, and the distribution of random offsets.
//! Independent of the target's size.

use super::syntax::{ValueError, number, percent, wrong_form};
use diskproof_model::plan::{Distribution, Zone};
use diskproof_model::units::parse_size;
use std::str::FromStr;

/// A position in the target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Position {
    /// Bytes.
    Bytes(u64),
    /// Percent of the target.
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

/// The largest physical sector that disks have.
const PAGE_BYTES: u64 = 4096;
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
        let start = match (position(start)?, end, number(start)) {
            (Position::Bytes(0), _, _) => Position::Bytes(0),
            // `10-20%`: the unit applies to both numbers.
            (Position::Bytes(_), Position::Percent(_), Some(share)) => Position::Percent(share),
            (Position::Bytes(bytes), Position::Bytes(_), Some(_)) if number(last).is_none() => {
                return Err(ValueError::Value(format!(
                    "'{text}': the start could be {bytes} bytes, or have the unit of the end; \
                     write the unit after both numbers"
                )));
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
            return Err(ValueError::Value(format!(
                "'{text}' is an empty span; its end must be greater than its start"
            )));
        }
        Ok(Self { start, end })
    }
}

fn position(text: &str) -> Result<Position, ValueError> {
    match text.strip_suffix('%') {
        Some(share) => match number(share.trim_end()) {
            None => Err(wrong_form(text, SPAN)),
            Some(share) if share > 100.0 => Err(ValueError::Value(format!(
                "'{text}' is more than the whole target; use at most 100%"
            ))),
            Some(share) => Ok(Position::Percent(share)),
        },
        None => {
            let bytes = parse_size(text).map_err(|_| wrong_form(text, SPAN))?;
            Ok(Position::Bytes(whole_pages(text, bytes)))
        }
    }
}

/// Rounds decimal sizes down to pages; sizes in bytes or binary units stay exact. Sectors do not
/// begin at decimal sizes: on a disk with 4096-byte sectors, every block counted from 1 MB would
/// touch one sector more, or direct I/O would fail.
fn whole_pages(text: &str, bytes: u64) -> u64 {
    let text = text.to_ascii_lowercase();
    let mut units = ["kb", "mb", "gb", "tb"].iter();
    if units.any(|unit| text.ends_with(unit)) {
        bytes / PAGE_BYTES * PAGE_BYTES
    } else {
        bytes
    }
}

/// Zones as access/size pairs in percent: `60/10:30/20:10/70`.
#[derive(Debug, Clone, PartialEq)]
pub struct Zones(pub Vec<Zone>);

/// Every random draw searches the zones.
const ZONES_MAX: usize = 64;

impl FromStr for Zones {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let what = "a list of zones; write access%/size% pairs in order of position, such as \
                    60/10:30/20:10/70";
        let zone = |pair: &str| {
            let (access, size) = pair.split_once('/')?;
            Some(Zone {
                access_percent: percent(access)?,
                size_percent: percent(size)?,
            })
        };
        let zones: Option<Vec<Zone>> = text.split(':').map(zone).collect();
        let zones = zones.ok_or_else(|| wrong_form(text, what))?;
        if zones.len() > ZONES_MAX {
            return Err(ValueError::Value(format!(
                "{} zones are too many; use at most {ZONES_MAX}",
                zones.len()
            )));
        }
        let is_empty = |zone: &Zone| zone.access_percent <= 0.0 || zone.size_percent <= 0.0;
        if zones.iter().any(is_empty) {
            return Err(ValueError::Value(format!(
                "'{text}': every zone needs a share of accesses and of size above 0"
            )));
        }
        let sums = [
            zones.iter().map(|z| z.access_percent).sum::<f64>(),
            zones.iter().map(|z| z.size_percent).sum(),
        ];
        for (sum, name) in sums.into_iter().zip(["accesses", "sizes"]) {
            // Accepts 33.33 for a third.
            if (sum - 100.0).abs() > 0.1 {
                return Err(ValueError::Value(format!(
                    "'{text}': the {name} add up to {} %; they must add up to 100 %",
                    (sum * 1e4).round() / 1e4
                )));
            }
        }
        Ok(Self(zones))
    }
}

/// Distribution of random offsets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OffsetDistribution(pub Distribution);

/// A steeper distribution visits only one block.
const THETA_MAX: f64 = 10.0;

impl FromStr for OffsetDistribution {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let error = || {
            wrong_form(
                text,
                "a distribution; write uniform, zipf:THETA such as zipf:1.1, pareto:SHARE such \
                 as pareto:0.2, normal:PERCENT such as normal:10, or hot:ACCESS/SIZE such as \
                 hot:80/20",
            )
        };
        let within = |value: &str, fits: fn(f64) -> bool, why: &str| {
            let value = number(value).ok_or_else(error)?;
            let wrong = || ValueError::Value(format!("'{text}': {why}"));
            Some(value).filter(|value| fits(*value)).ok_or_else(wrong)
        };
        Ok(Self(match text.split_once(':') {
            // `random` is fio's name.
            None if text == "uniform" || text == "random" => Distribution::Uniform,
            Some(("zipf", theta)) => Distribution::Zipf {
                theta: within(
                    theta,
                    |theta| theta > 0.0 && theta <= THETA_MAX && theta != 1.0,
                    "theta must be above 0, at most 10, and not 1; use such as zipf:1.1 or \
                     zipf:0.99",
                )?,
            },
            Some(("pareto", share)) => Distribution::Pareto {
                share: within(
                    share,
                    |share| share > 0.0 && share < 1.0,
                    "the share must be between 0 and 1; with 0.2, 80 % of the operations go to \
                     20 % of the blocks",
                )?,
            },
            Some(("normal", spread)) => Distribution::Normal {
                spread_percent: within(
                    spread,
                    |spread| spread < 100.0,
                    "the spread must be at least 0 and below 100 percent",
                )?,
            },
            Some(("hot", shares)) => {
                let (access, size) = shares.split_once('/').ok_or_else(error)?;
                let share = |share: &str| {
                    within(
                        share.strip_suffix('%').unwrap_or(share).trim_end(),
                        |share| share > 0.0 && share < 100.0,
                        "both shares must be between 0 and 100; to confine all accesses to a part \
                         of the target, use a span",
                    )
                };
                Distribution::HotCold {
                    access_percent: share(access)?,
                    size_percent: share(size)?,
                }
            }
            _ => return Err(error()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::parsers::tests::{assert_rejected, parse};

    #[test]
    fn spans_take_bytes_and_percent() {
        use Position::{Bytes, Percent};
        let bounds = |text| parse::<SpanBounds>(text).map(|span| (span.start, span.end));
        assert_eq!(bounds("10%"), Ok((Bytes(0), Percent(10.0))));
        assert_eq!(bounds("0-50%"), Ok((Bytes(0), Percent(50.0))));
        assert_eq!(bounds("10-20%"), Ok((Percent(10.0), Percent(20.0))));
        assert_eq!(bounds("25% - 75.5%"), Ok((Percent(25.0), Percent(75.5))));
        // Decimal sizes are rounded down to pages.
        assert_eq!(bounds("0-100GB"), Ok((Bytes(0), Bytes(99_999_997_952))));
        assert_eq!(
            bounds("1MB-100000000"),
            Ok((Bytes(999_424), Bytes(100_000_000)))
        );
        assert_eq!(bounds("1G-2G"), Ok((Bytes(1 << 30), Bytes(2 << 30))));
        assert_eq!(bounds("4096-8192"), Ok((Bytes(4096), Bytes(8192))));
        assert_eq!(bounds("100MB-50%"), Ok((Bytes(99_999_744), Percent(50.0))));
        assert_rejected::<SpanBounds>(&[
            ("1-2G", "unit after both"),
            ("50-10%", "empty span"),
            ("0%", "empty span"),
            ("0", "empty span"),
            ("2G-1G", "empty span"),
        ]);
        assert_rejected::<SpanBounds>(&[
            ("101%", "at most 100%"),
            ("half", "0-50%"),
            ("", "0-50%"),
            ("1-2-3", "0-50%"),
            ("10%-", "0-50%"),
            ("NaN%", "0-50%"),
        ]);
    }

    #[test]
    fn zones_must_add_up_to_100_percent() {
        let zone = |access_percent, size_percent| Zone {
            access_percent,
            size_percent,
        };
        assert_eq!(
            parse::<Zones>("60/10:30/20:10/70").map(|z| z.0),
            Ok(vec![zone(60.0, 10.0), zone(30.0, 20.0), zone(10.0, 70.0)])
        );
        assert!(parse::<Zones>("33.3/33.3:33.3/33.3:33.4/33.4").is_ok());
        assert_rejected::<Zones>(&[
            ("60/10:30/20", "accesses add up to 90"),
            ("60/10:40/20", "sizes add up to 30"),
            ("100/0:0/100", "above 0"),
            ("60-10", "60/10:30/20"),
        ]);
        assert_rejected::<Zones>(&[(&["1/1"; 100].join(":"), "at most 64")]);
    }

    #[test]
    fn distributions_parse() {
        assert_eq!(
            parse::<OffsetDistribution>("zipf:1.1").map(|l| l.0),
            Ok(Distribution::Zipf { theta: 1.1 })
        );
        assert_eq!(
            parse::<OffsetDistribution>("pareto:0.2").map(|l| l.0),
            Ok(Distribution::Pareto { share: 0.2 })
        );
        assert_eq!(
            parse::<OffsetDistribution>("normal:10").map(|l| l.0),
            Ok(Distribution::Normal {
                spread_percent: 10.0
            })
        );
        assert_rejected::<OffsetDistribution>(&[
            ("pareto:1", "between 0 and 1"),
            ("pareto", "pareto:0.2"),
            ("normal:100", "below 100"),
        ]);
        assert_eq!(
            parse::<OffsetDistribution>("hot:80/20").map(|l| l.0),
            Ok(Distribution::HotCold {
                access_percent: 80.0,
                size_percent: 20.0
            })
        );
        assert_eq!(
            parse::<OffsetDistribution>("uniform").map(|l| l.0),
            Ok(Distribution::Uniform)
        );
        assert_rejected::<OffsetDistribution>(&[
            ("zipf:0", "above 0"),
            ("zipf:-1", "zipf:1.1"),
            ("zipf:1", "not 1"),
            ("zipf:11", "at most 10"),
            ("zipf", "zipf:1.1"),
        ]);
        assert_rejected::<OffsetDistribution>(&[
            ("hot:100/20", "use a span"),
            ("hot:80", "hot:80/20"),
            ("hot:80/0", "between"),
            ("cauchy:0.5", "uniform"),
        ]);
    }
}
