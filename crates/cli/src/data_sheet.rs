//! Parses the figures of a data sheet: `rpm=7200,seek=11ms,rate=92MB/s`, `rate=3500MB/s,iops=600k`.

use diskproof_analysis::expect::scaled_number as parse_number;
use diskproof_model::surface::DataSheet;
use diskproof_model::units::{parse_latency, parse_size};

/// The slowest disk ever built had 1200 rpm, the fastest has 15,000; the range leaves room for
/// others.
const RPM: std::ops::RangeInclusive<u32> = 300..=100_000;
/// 10 µs to 1 s: every real seek is in between.
const SEEK_NS: std::ops::RangeInclusive<u64> = 10_000..=1_000_000_000;

const RPM_FORM: &str = "a rotation speed in rpm; write a number such as 7200";
const SEEK_FORM: &str = "a seek time; write it with ms or us, such as 11ms";
const RATE_FORM: &str = "a transfer rate; write it per second, such as 92MB/s";
const SIZE_FORM: &str = "a size; write it with its unit, such as 4TB or 960GB";
const IOPS_FORM: &str = "a number of operations per second, such as 90000 or 90k";

/// Reads the value of `--spec`. Fails for an unknown, repeated or implausible figure.
pub(crate) fn parse_data_sheet(text: &str) -> Result<DataSheet, String> {
    let mut sheet = DataSheet::default();
    for part in text.split(',').map(str::trim) {
        let (key, value) = part.split_once('=').ok_or_else(|| {
            format!("'{part}' is not key=value; use one or more of rpm=7200,seek=11ms,rate=92MB/s")
        })?;
        let figure = FigureText(value.trim());
        let is_repeated = match key.trim() {
            "rpm" => sheet.rpm.replace(figure.rpm()?).is_some(),
            "seek" => sheet.seek_ns.replace(figure.seek_ns()?).is_some(),
            "rate" => sheet
                .bytes_per_second
                .replace(figure.bytes_per_second()?)
                .is_some(),
            "write-rate" => sheet
                .write_bytes_per_second
                .replace(figure.bytes_per_second()?)
                .is_some(),
            "iops" => sheet.read_iops.replace(figure.iops()?).is_some(),
            "write-iops" => sheet.write_iops.replace(figure.iops()?).is_some(),
            "size" => sheet.size_bytes.replace(figure.size_bytes()?).is_some(),
            other => {
                return Err(format!(
                    "unknown figure '{other}'; use rpm, seek (average), rate (highest sustained), \
                     write-rate, iops (random reads), write-iops and size"
                ));
            }
        };
        if is_repeated {
            let name = key.trim();
            return Err(format!("'{name}' appears twice; write it once"));
        }
    }
    if sheet.seek_ns.is_some() && sheet.rpm.is_none() {
        let why = "seek needs rpm, because an access takes a seek and half a turn; write \
                   rpm=7200,seek=11ms";
        return Err(why.to_owned());
    }
    Ok(sheet)
}

/// The text of a figure, as the user wrote it.
struct FigureText<'a>(&'a str);

impl FigureText<'_> {
    fn rpm(&self) -> Result<u32, String> {
        match self.0.parse() {
            Ok(rpm) if RPM.contains(&rpm) => Ok(rpm),
            _ => Err(self.wrong_form(RPM_FORM)),
        }
    }

    fn seek_ns(&self) -> Result<u64, String> {
        match parse_latency(self.0) {
            Ok(ns) if SEEK_NS.contains(&ns) => Ok(ns),
            _ => Err(self.wrong_form(SEEK_FORM)),
        }
    }

    fn iops(&self) -> Result<f64, String> {
        match parse_number(self.0) {
            Some(iops) if iops > 0.0 => Ok(iops),
            _ => Err(self.wrong_form(IOPS_FORM)),
        }
    }

    fn bytes_per_second(&self) -> Result<f64, String> {
        // Many data sheets omit "per second".
        let size = self.0.strip_suffix("/s").unwrap_or(self.0);
        // Without a `B`, a number would mean bytes, and an M MiB.
        match parse_size(size) {
            Ok(bytes) if size.ends_with('B') && bytes > 0 => Ok(bytes as f64),
            _ => Err(self.wrong_form(RATE_FORM)),
        }
    }

    /// A number without a `B` would mean TiB where every seller means TB.
    fn size_bytes(&self) -> Result<u64, String> {
        match parse_size(self.0) {
            Ok(bytes) if self.0.ends_with('B') && bytes > 0 => Ok(bytes),
            _ => Err(self.wrong_form(SIZE_FORM)),
        }
    }

    fn wrong_form(&self, form: &str) -> String {
        format!("'{}' is not {form}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_sheet_is_parsed() {
        let all = DataSheet {
            rpm: Some(7200),
            seek_ns: Some(11_000_000),
            bytes_per_second: Some(92e6),
            ..DataSheet::default()
        };
        for text in [
            "rpm=7200,seek=11ms,rate=92MB/s",
            " rate=92MB , rpm = 7200,seek=11000us",
        ] {
            assert_eq!(parse_data_sheet(text), Ok(all), "{text}");
        }
        let fraction = parse_data_sheet("rpm=5400,seek=8.5ms").unwrap();
        assert_eq!(fraction.seek_ns, Some(8_500_000));
        let solid = DataSheet {
            bytes_per_second: Some(3.5e9),
            write_bytes_per_second: Some(3e9),
            read_iops: Some(600e3),
            write_iops: Some(3000.0),
            ..DataSheet::default()
        };
        let text = "rate=3500MB/s,write-rate=3GB/s,iops=600k,write-iops=3000";
        assert_eq!(parse_data_sheet(text), Ok(solid));
        for (text, bytes) in [
            ("size=4TB", 4_000_000_000_000),
            ("size=1.92TB", 1_920_000_000_000),
            ("size=7.68TB", 7_680_000_000_000),
            ("size=15.36TB", 15_360_000_000_000),
            ("size=100GiB", 100 << 30),
        ] {
            let sized = parse_data_sheet(text).unwrap();
            assert_eq!(sized.size_bytes, Some(bytes), "{text}");
        }
    }

    #[test]
    fn data_sheet_error_names_the_right_form() {
        for (text, part) in [
            ("", "rpm=7200,seek=11ms"),
            ("7200", "rpm=7200"),
            ("rpm=fast", " 7200"),
            ("rpm=0", " 7200"),
            ("seek=11", " 11ms"),
            ("seek=5m", " 11ms"),
            ("rate=92", " 92MB/s"),
            ("rate=92/s", " 92MB/s"),
            ("rate=3500M/s", " 92MB/s"),
            ("rate=0MB/s", " 92MB/s"),
            ("cache=8MB", "'cache'"),
            ("rpm=7200,rpm=5400", "twice"),
            ("iops=many", " 90000"),
            ("write-iops=0", " 90000"),
            ("seek=11ms", "rpm"),
            ("size=4T", " 4TB"),
            ("size=4000000000000", " 4TB"),
            ("size=0TB", " 4TB"),
            ("size=big", " 4TB"),
        ] {
            let error = parse_data_sheet(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
