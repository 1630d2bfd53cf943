//! Parses the figures of a data sheet: `rpm=7200,seek=11ms,rate=92MB/s`.

use diskproof_model::surface::DataSheet;
use diskproof_model::units::{parse_duration, parse_size};
use std::str::FromStr;

/// A data sheet as given with `--spec`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SheetValue(pub DataSheet);

/// A data sheet that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SheetError {
    /// No `key=value`.
    #[error("'{0}' is not key=value; write rpm=7200,seek=11ms,rate=92MB/s, or some of these")]
    Form(String),
    /// No such key.
    #[error("unknown figure '{0}'; use rpm, seek (average) and rate (highest sustained)")]
    Key(String),
    /// The same key again.
    #[error("'{0}' appears twice; write it once")]
    Twice(String),
    /// A value that does not fit.
    #[error("'{value}' is not {what}")]
    Value {
        /// As given.
        value: String,
        /// What it should have been, with an example.
        what: &'static str,
    },
}

/// The slowest disk ever built had 1200 rpm, the fastest has 15,000; the range leaves room for
/// others.
const RPM: std::ops::RangeInclusive<u32> = 300..=100_000;
/// 10 µs to 1 s: every real seek is in between.
const SEEK_NS: std::ops::RangeInclusive<u64> = 10_000..=1_000_000_000;

impl FromStr for SheetValue {
    type Err = SheetError;

    fn from_str(text: &str) -> Result<Self, SheetError> {
        let mut sheet = DataSheet::default();
        for part in text.split(',').map(str::trim) {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| SheetError::Form(part.to_owned()))?;
            let (key, value) = (key.trim(), value.trim());
            let wrong = |what: &'static str| SheetError::Value {
                value: value.to_owned(),
                what,
            };
            let is_set = match key {
                "rpm" => {
                    let rpm = value.parse().ok().filter(|rpm| RPM.contains(rpm));
                    sheet
                        .rpm
                        .replace(rpm.ok_or_else(|| {
                            wrong("a rotation speed in rpm; write a number such as 7200")
                        })?)
                        .is_some()
                }
                "seek" => {
                    // A number without a unit would mean seconds.
                    let ns = Some(value)
                        .filter(|v| v.ends_with(char::is_alphabetic))
                        .and_then(|v| parse_duration(v).ok());
                    let ns = ns.filter(|ns| SEEK_NS.contains(ns)).ok_or_else(|| {
                        wrong("a seek time; write it with ms or us, such as 11ms")
                    })?;
                    sheet.seek_ns.replace(ns).is_some()
                }
                "rate" => {
                    // Many data sheets omit "per second".
                    let bytes = parse_size(value.strip_suffix("/s").unwrap_or(value))
                        .ok()
                        .filter(|_| value.ends_with(['B', 's']));
                    let bytes = bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
                        wrong("a transfer rate; write it per second, such as 92MB/s")
                    })?;
                    sheet.bytes_per_second.replace(bytes as f64).is_some()
                }
                other => return Err(SheetError::Key(other.to_owned())),
            };
            if is_set {
                return Err(SheetError::Twice(key.to_owned()));
            }
        }
        Ok(Self(sheet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_sheet_is_parsed() {
        let sheet = |text: &str| text.parse::<SheetValue>().map(|sheet| sheet.0);
        let all = DataSheet {
            rpm: Some(7200),
            seek_ns: Some(11_000_000),
            bytes_per_second: Some(92e6),
        };
        assert_eq!(sheet("rpm=7200,seek=11ms,rate=92MB/s"), Ok(all));
        assert_eq!(sheet(" rate=92MB , rpm = 7200,seek=11000us"), Ok(all));
        assert_eq!(sheet("seek=8.5ms").map(|s| s.seek_ns), Ok(Some(8_500_000)));
    }

    #[test]
    fn data_sheet_error_names_the_right_form() {
        let error = |text: &str| text.parse::<SheetValue>().unwrap_err().to_string();
        for (text, part) in [
            ("", "rpm=7200,seek=11ms"),
            ("7200", "write rpm=7200"),
            ("rpm=fast", "such as 7200"),
            ("rpm=0", "such as 7200"),
            ("seek=11", "such as 11ms"),
            ("seek=5m", "such as 11ms"),
            ("rate=92", "such as 92MB/s"),
            ("rate=0MB/s", "such as 92MB/s"),
            ("cache=8MB", "unknown figure 'cache'"),
            ("rpm=7200,rpm=5400", "twice"),
        ] {
            assert!(error(text).contains(part), "{text}: {}", error(text));
        }
    }
}
