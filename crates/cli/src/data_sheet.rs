//! Parses the figures of a data sheet: `rpm=7200,seek=11ms,rate=92MB/s`, `rate=3500MB/s,iops=600k`.

use diskproof_analysis::expect::scaled_number as parse_number;
use diskproof_model::surface::DataSheet;
use diskproof_model::units::{parse_duration, parse_size};

/// The slowest disk ever built had 1200 rpm, the fastest has 15,000; the range leaves room for
/// others.
const RPM: std::ops::RangeInclusive<u32> = 300..=100_000;
/// 10 µs to 1 s: every real seek is in between.
const SEEK_NS: std::ops::RangeInclusive<u64> = 10_000..=1_000_000_000;

const RPM_FORM: &str = "a rotation speed in rpm; write a number such as 7200";
const SEEK_FORM: &str = "a seek time; write it with ms or us, such as 11ms";
const RATE_FORM: &str = "a transfer rate; write it per second, such as 92MB/s";
const IOPS_FORM: &str = "a number of operations per second, such as 90000 or 90k";

/// Reads the value of `--spec`.
pub(crate) fn parse_data_sheet(text: &str) -> Result<DataSheet, String> {
    let mut sheet = DataSheet::default();
    for part in text.split(',').map(str::trim) {
        let (key, value) = part.split_once('=').ok_or_else(|| {
            format!("'{part}' is not key=value; use one or more of rpm=7200,seek=11ms,rate=92MB/s")
        })?;
        let (key, value) = (key.trim(), value.trim());
        let wrong = |form| format!("'{value}' is not {form}");
        let rate = || rate(value).ok_or_else(|| wrong(RATE_FORM));
        let iops = || iops(value).ok_or_else(|| wrong(IOPS_FORM));
        let is_set = match key {
            "rpm" => {
                let rpm = value.parse().ok().filter(|rpm| RPM.contains(rpm));
                let rpm = rpm.ok_or_else(|| wrong(RPM_FORM))?;
                sheet.rpm.replace(rpm).is_some()
            }
            "seek" => {
                let seek_ns = seek_ns(value).ok_or_else(|| wrong(SEEK_FORM))?;
                sheet.seek_ns.replace(seek_ns).is_some()
            }
            "rate" => sheet.bytes_per_second.replace(rate()?).is_some(),
            "write-rate" => sheet.write_bytes_per_second.replace(rate()?).is_some(),
            "iops" => sheet.read_iops.replace(iops()?).is_some(),
            "write-iops" => sheet.write_iops.replace(iops()?).is_some(),
            other => {
                return Err(format!(
                    "unknown figure '{other}'; use rpm, seek (average), rate (highest sustained), \
                     write-rate, iops (random reads) and write-iops"
                ));
            }
        };
        if is_set {
            return Err(format!("'{key}' appears twice; write it once"));
        }
    }
    if sheet.seek_ns.is_some() && sheet.rpm.is_none() {
        let why = "seek needs rpm, because an access takes a seek and half a turn; write \
                   rpm=7200,seek=11ms";
        return Err(why.to_owned());
    }
    Ok(sheet)
}

fn seek_ns(value: &str) -> Option<u64> {
    // A number without a unit would mean seconds.
    let with_unit = Some(value).filter(|value| value.ends_with(char::is_alphabetic));
    let ns = with_unit.and_then(|value| parse_duration(value).ok());
    ns.filter(|ns| SEEK_NS.contains(ns))
}

fn iops(value: &str) -> Option<f64> {
    parse_number(value).filter(|iops| *iops > 0.0)
}

fn rate(value: &str) -> Option<f64> {
    // Many data sheets omit "per second".
    let bytes = parse_size(value.strip_suffix("/s").unwrap_or(value)).ok()?;
    (value.ends_with(['B', 's']) && bytes > 0).then_some(bytes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_sheet_is_parsed() {
        let sheet = |text: &str| parse_data_sheet(text);
        let all = DataSheet {
            rpm: Some(7200),
            seek_ns: Some(11_000_000),
            bytes_per_second: Some(92e6),
            ..DataSheet::default()
        };
        assert_eq!(sheet("rpm=7200,seek=11ms,rate=92MB/s"), Ok(all));
        assert_eq!(sheet(" rate=92MB , rpm = 7200,seek=11000us"), Ok(all));
        let seek = sheet("rpm=5400,seek=8.5ms").map(|s| s.seek_ns);
        assert_eq!(seek, Ok(Some(8_500_000)));
        let solid = DataSheet {
            bytes_per_second: Some(3.5e9),
            write_bytes_per_second: Some(3e9),
            read_iops: Some(600e3),
            write_iops: Some(3000.0),
            ..DataSheet::default()
        };
        let text = "rate=3500MB/s,write-rate=3GB/s,iops=600k,write-iops=3000";
        assert_eq!(sheet(text), Ok(solid));
    }

    #[test]
    fn data_sheet_error_names_the_right_form() {
        let error = |text: &str| parse_data_sheet(text).unwrap_err();
        for (text, part) in [
            ("", "rpm=7200,seek=11ms"),
            ("7200", "rpm=7200"),
            ("rpm=fast", " 7200"),
            ("rpm=0", " 7200"),
            ("seek=11", " 11ms"),
            ("seek=5m", " 11ms"),
            ("rate=92", " 92MB/s"),
            ("rate=0MB/s", " 92MB/s"),
            ("cache=8MB", "'cache'"),
            ("rpm=7200,rpm=5400", "twice"),
            ("iops=many", " 90000"),
            ("write-iops=0", " 90000"),
            ("seek=11ms", "rpm"),
        ] {
            assert!(error(text).contains(part), "{text}: {}", error(text));
        }
    }
}
