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
        parse::<WorkloadName>("wal-8k.d32+fsync").is_ok() && parse::<WorkloadName>("größe").is_ok()
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
