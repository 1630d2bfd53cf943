//! Tests of the parsers, and what they share.

use super::*;
use std::fmt::{Debug, Display};

/// Parses a value; errors are text.
pub(super) fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse::<T>().map_err(|error| error.to_string())
}

/// Each value is rejected with an error that contains the second text.
pub(super) fn assert_rejected<T: FromStr<Err: Display> + Debug>(cases: &[(&str, &str)]) {
    for (text, part) in cases {
        let error = parse::<T>(text).expect_err(text);
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn block_sizes_and_mixes_parse_as_in_fio() {
    for (text, expected) in [
        ("4k/60:64k/40", &[(4096, 60), (65536, 40)][..]),
        ("4k/50:1k:32k/", &[(4096, 50), (1024, 25), (32768, 25)]),
        ("8k", &[(8192, 100)]),
    ] {
        let mix = parse::<BlockSplit>(text).unwrap().0.into_iter();
        let mix: Vec<_> = mix.map(|share| (share.block_bytes, share.weight)).collect();
        assert_eq!(mix, expected, "{text}");
    }
    assert_rejected::<BlockSplit>(&[
        ("4k/60:64k/50", "4k/60:64k/40"),
        ("4k/60:64k/30", "4k/60:64k/40"),
        ("4k/100:8k", "4k/60:64k/40"),
        ("4k/0:8k/100", "4k/60:64k/40"),
        ("4k/50,64k/50", "4k/60:64k/40"),
        ("x/100", "'x'"),
        ("", "''"),
        ("0/100", "0 bytes"),
        (&["4k/1"; 65].join(":"), "at most 64"),
    ]);
    assert_eq!(parse::<BlockSize>("1G").map(|b| b.0), Ok(1 << 30));
    assert_rejected::<BlockSize>(&[("0", "512"), ("1025M", "at most 1G"), ("8x", "'8x'")]);
}

#[test]
fn shares_rates_and_precisions_parse() {
    for (text, permille) in [
        ("0", 0),
        ("50", 500),
        ("33.3", 333),
        ("70%", 700),
        ("100", 1000),
    ] {
        assert_eq!(
            parse::<ReadShare>(text).map(|share| share.0),
            Ok(permille),
            "{text}"
        );
    }
    assert_rejected::<ReadShare>(
        &["100.1", "-1", "33.33", "half", ""].map(|text| (text, "0 to 100 in steps of 0.1")),
    );
    assert_eq!(parse::<Rate>("1000").map(|r| r.0), Ok(1000.0));
    assert_rejected::<Rate>(&[
        ("0", "0.001 to 1000000000"),
        ("1e3", "such as 1000"),
        ("-5", "such as 1000"),
        ("inf", "such as 1000"),
        ("99999999999", "0.001 to 1000000000"),
    ]);
    assert_eq!(parse::<Precision>("2%").map(|p| p.0), Ok(0.02));
    assert_rejected::<Precision>(&[
        ("2", "2%"),
        ("0%", "0.01% to 50%"),
        ("60%", "0.01% to 50%"),
        ("%", "2%"),
        ("0.02", "2%"),
    ]);
}

#[test]
fn workload_name_is_one_argument_in_every_shell() {
    for name in ["wal-8k.d32+fsync", "größe"] {
        parse::<WorkloadName>(name).unwrap();
    }
    let long = "x".repeat(41);
    let wrong = ["", "a b", "a/b", "a\nb", "-a", &long];
    assert_rejected::<WorkloadName>(&wrong.map(|name| (name, "up to 40")));
    // `--expect burst.throughput>=1M` would judge the survey.
    assert_rejected::<WorkloadName>(&["curve", "access", "burst"].map(|name| (name, "survey")));
}

#[test]
fn counts_are_plain_digits() {
    assert_eq!(parse::<Count>("32").map(|c| c.0), Ok(32));
    let wrong = ["-1", "+1", "1.5", "1k", "99999999999999999999"];
    assert_rejected::<Count>(&wrong.map(|text| (text, "such as 32")));
}

#[test]
fn time_is_at_most_a_year() {
    assert_eq!(parse::<Time>("500ms").map(|t| t.0), Ok(500_000_000));
    let leap_year_ns = 366 * 24 * 3600 * 1_000_000_000;
    assert_eq!(parse::<Time>("366d").map(|t| t.0), Ok(leap_year_ns));
    assert_rejected::<Time>(&[("8785h", "year"), ("367d", "year"), ("soon", "'soon'")]);
}

#[test]
fn spans_take_bytes_and_percent() {
    use Position::{Bytes, Percent};
    for (text, start, end) in [
        ("10%", Bytes(0), Percent(10.0)),
        ("0-50%", Bytes(0), Percent(50.0)),
        ("10-20%", Percent(10.0), Percent(20.0)),
        ("10.5-20%", Percent(10.5), Percent(20.0)),
        ("25% - 75.5%", Percent(25.0), Percent(75.5)),
        // Decimal sizes are rounded down to pages.
        ("0-100GB", Bytes(0), Bytes(99_999_997_952)),
        ("1MB-100000000", Bytes(999_424), Bytes(100_000_000)),
        ("1G-2G", Bytes(1 << 30), Bytes(2 << 30)),
        ("4096-8192", Bytes(4096), Bytes(8192)),
        ("100MB-50%", Bytes(99_999_744), Percent(50.0)),
    ] {
        let span = parse::<SpanBounds>(text).unwrap();
        assert_eq!((span.start, span.end), (start, end), "{text}");
    }
    assert_rejected::<SpanBounds>(&[
        ("1-2G", "'1-2G': "),
        ("50-10%", "empty span"),
        ("0%", "empty span"),
        ("0", "empty span"),
        ("2G-1G", "empty span"),
        ("0-4kB", "4KiB"),
        ("4kB", "4KiB"),
        ("1MB-1001kB", "4096 bytes"),
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
    let Zones(zones) = parse("60/10:30/20:10/70").unwrap();
    let percents: Vec<[f64; 2]> = zones
        .iter()
        .map(|zone| [zone.access_percent, zone.size_percent])
        .collect();
    assert_eq!(percents, [[60.0, 10.0], [30.0, 20.0], [10.0, 70.0]]);
    assert!(parse::<Zones>("33.3/33.3:33.3/33.3:33.4/33.4").is_ok());
    assert_rejected::<Zones>(&[
        ("60/10:30/20", "accesses add up to 90"),
        ("60/10:40/20", "sizes add up to 30"),
        ("100/0:0/100", "above 0"),
        ("60-10", "60/10:30/20"),
        (&["1/1"; 100].join(":"), "at most 64"),
    ]);
}

#[test]
fn distributions_parse() {
    use Distribution::{HotCold, Normal, Pareto, Uniform, Zipf};
    let (access_percent, size_percent) = (80.0, 20.0);
    let hot = HotCold {
        access_percent,
        size_percent,
    };
    let spread_percent = 10.0;
    for (text, law) in [
        ("zipf:1.1", Zipf { theta: 1.1 }),
        ("pareto:0.2", Pareto { share: 0.2 }),
        ("normal:10", Normal { spread_percent }),
        ("hot:80/20", hot),
        ("uniform", Uniform),
    ] {
        assert_eq!(
            parse::<OffsetDistribution>(text).map(|l| l.0),
            Ok(law),
            "{text}"
        );
    }
    assert_rejected::<OffsetDistribution>(&[
        ("pareto:1", "between 0 and 1"),
        ("pareto", "pareto:0.2"),
        ("normal:100", "below 100"),
        ("zipf:0", "above 0"),
        ("zipf:-1", "zipf:1.1"),
        ("zipf:1", "not 1"),
        ("zipf:11", "at most 10"),
        ("zipf", "zipf:1.1"),
        ("hot:100/20", "between 0 and 100"),
        ("hot:80", "hot:80/20"),
        ("hot:80/0", "between 0 and 100"),
        ("cauchy:0.5", "uniform"),
    ]);
}

/// The list in the error for a range, each of whose values is one that the parser takes.
fn advised<T: FromStr>(error: &ValueError) -> String {
    let text = error.to_string();
    let (_, list) = text.rsplit_once(": ").unwrap();
    for value in list.split(',') {
        assert!(value.parse::<T>().is_ok(), "{text}");
    }
    list.to_owned()
}

#[test]
fn error_for_a_range_lists_its_values() {
    for (range, list) in [
        ("4k-32k", "4k,8k,16k,32k"),
        ("128k-1M", "128k,256k,512k,1M"),
        ("64k..4k", "4k,8k,16k,32k,64k"),
        ("4kB-16kB", "4kB,8kB,16kB"),
        ("512-4k", "512,1k,2k,4k"),
        ("1M:3M", "1M,2M,3M"),
    ] {
        let error = parse_listed_size(range).unwrap_err();
        assert_eq!(advised::<BlockSize>(&error), list, "{range}");
    }
    for (range, list) in [
        ("1-8", "1,2,4,8"),
        ("1..6", "1,2,4,6"),
        ("32-8", "8,16,32"),
        ("0:2", "1,2"),
    ] {
        let error = parse_listed_count(range).unwrap_err();
        assert_eq!(advised::<Count>(&error), list, "{range}");
    }
    assert!(parse_listed_count("8").is_ok() && parse_listed_size("8k").is_ok());
}
