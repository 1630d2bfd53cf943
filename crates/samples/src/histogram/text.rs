//! Writes and reads a distribution as JSON that programs in other languages can read: its buckets
//! as HdrHistogram, and beside them the sum, the shortest and the longest, which buckets know only
//! to 3 digits.

use super::LatencyHistogram;
use crate::packed::NUMBER_MAX;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// A latency distribution in nanoseconds.
#[derive(Serialize, Deserialize, JsonSchema)]
struct HistogramText {
    /// Sum of all latencies in nanoseconds, exact.
    sum_ns: u64,
    /// The shortest in nanoseconds, exact; 0 where there is none.
    min_ns: u64,
    /// The longest in nanoseconds, exact.
    max_ns: u64,
    /// The number of latencies by length: HdrHistogram V2 (lowest 1, highest 2^42 - 1 or more,
    /// three significant digits), deflated, in base64. The libraries of HdrHistogram decode it.
    hdr: String,
}

impl Serialize for LatencyHistogram {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let text = HistogramText {
            sum_ns: self.sum_ns.min(NUMBER_MAX) as u64,
            min_ns: if self.count == 0 { 0 } else { self.min_ns },
            max_ns: self.max_ns,
            hdr: self.to_hdr_base64(),
        };
        text.serialize(to)
    }
}

impl<'de> Deserialize<'de> for LatencyHistogram {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = HistogramText::deserialize(from)?;
        let mut histogram = Self::from_hdr_base64(&text.hdr).map_err(D::Error::custom)?;
        if histogram.count > 0 {
            histogram.sum_ns = text.sum_ns.into();
            histogram.min_ns = text.min_ns;
            histogram.max_ns = text.max_ns;
        }
        Ok(histogram)
    }
}

impl JsonSchema for LatencyHistogram {
    fn schema_name() -> Cow<'static, str> {
        "LatencyHistogram".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        HistogramText::json_schema(generator)
    }
}
