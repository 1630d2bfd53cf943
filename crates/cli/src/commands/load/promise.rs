//! A promise about latency, as `--slo` states it.

use crate::flags::SECOND_NS;
use diskproof_model::units::{format_latency, parse_latency};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Shares that can be promised, in percent: some minutes have too few requests for a larger one.
const PERCENTS: RangeInclusive<f64> = 50.0..=99.99;
/// The shortest limit: below it, delays of timers and processors are a part of every latency.
const LIMIT_NS_MIN: u64 = 50_000;
/// The longest limit: the warm-up of each cell is ten times as long.
pub(super) const LIMIT_NS_MAX: u64 = 2 * SECOND_NS;

/// A promise about latency, such as `p99<=5ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Promise {
    /// The share of requests that keep to the limit, in percent.
    pub(super) percent: f64,
    /// The limit in nanoseconds.
    pub(super) limit_ns: u64,
}

impl FromStr for Promise {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((percentile, limit)) = text.split_once("<=") else {
            return Err(no_promise_text(text));
        };
        let Some(digits) = percentile.trim().strip_prefix('p') else {
            return Err(no_promise_text(text));
        };
        let Ok(percent) = digits.parse::<f64>() else {
            return Err(no_promise_text(text));
        };
        if !PERCENTS.contains(&percent) {
            return Err(format!(
                "p{percent} cannot be promised after some minutes; use p50 to p99.99"
            ));
        }
        let limit_ns = parse_latency(limit.trim()).map_err(|error| error.to_string())?;
        if !(LIMIT_NS_MIN..=LIMIT_NS_MAX).contains(&limit_ns) {
            return Err(format!(
                "a limit of {} is out of range; use {} to {}",
                format_latency(limit_ns),
                format_latency(LIMIT_NS_MIN),
                format_latency(LIMIT_NS_MAX)
            ));
        }
        Ok(Self { percent, limit_ns })
    }
}

/// The error of a text that does not have the form of a promise.
fn no_promise_text(text: &str) -> String {
    format!("'{text}' is no promise; write one such as 'p99<=5ms'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promise_is_a_percentile_and_a_limit() {
        let promise: Promise = "p99.9<=20ms".parse().unwrap();
        assert_eq!((promise.percent, promise.limit_ns), (99.9, 20_000_000));
        let spaced: Promise = "p99 <= 500us".parse().unwrap();
        assert_eq!(spaced.limit_ns, 500_000);
        for wrong in [
            "p99<5ms",
            "99<=5ms",
            "p100<=5ms",
            "p99<=5",
            "p99<=1us",
            "p10<=5ms",
        ] {
            assert!(wrong.parse::<Promise>().is_err(), "{wrong}");
        }
        let refusal = "p99<=1us".parse::<Promise>().unwrap_err();
        assert!(refusal.contains(&format_latency(LIMIT_NS_MIN)), "{refusal}");
    }
}
