//! Writes long lists of numbers as short texts: distributions and cells over time as columns of
//! LEB128 numbers, deflated, in base64. What is read back equals what was written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::io::Read as _;

/// Most bytes after inflating: a series of 8192 cells with five numbers of ten bytes each.
const INFLATED_BYTES_MAX: u64 = 1 << 19;
/// Largest number of a cell or a bucket, so that sums fit into 64 bits.
pub const NUMBER_MAX: u128 = 1 << 60;

/// Numbers to be packed.
#[derive(Default)]
pub struct Packer(Vec<u8>);

impl Packer {
    /// Adds a number behind the ones before.
    pub fn push(&mut self, number: impl Into<u128>) {
        // Seven bits a byte, the lowest first; the eighth says that more follow (LEB128).
        let mut left = number.into();
        while left >= 0x80 {
            self.0.push(left as u8 | 0x80);
            left >>= 7;
        }
        self.0.push(left as u8);
    }

    /// The numbers, as [`Unpacker::from_bytes`] reads them.
    pub fn bytes(self) -> Vec<u8> {
        self.0
    }

    /// The text of all numbers, in order.
    fn text(self) -> String {
        let mut packed = Vec::new();
        // Reading from memory cannot fail.
        let _ = DeflateEncoder::new(&self.0[..], Compression::default()).read_to_end(&mut packed);
        BASE64.encode(packed)
    }
}

/// Packed numbers, which are read one after the other.
pub struct Unpacker {
    bytes: Vec<u8>,
    /// The place of the next number.
    next: usize,
}

impl Unpacker {
    /// The numbers of bytes that were packed.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            next: 0,
        }
    }

    /// The numbers of a text.
    pub fn decode(text: &str) -> Result<Self, &'static str> {
        let packed = BASE64.decode(text).map_err(|_| "this is no base64")?;
        let mut bytes = Vec::new();
        let inflated = DeflateDecoder::new(&packed[..])
            .take(INFLATED_BYTES_MAX + 1)
            .read_to_end(&mut bytes);
        match inflated {
            Err(_) => Err("its deflated content is damaged"),
            Ok(length) if length as u64 > INFLATED_BYTES_MAX => Err("it inflates to too much"),
            Ok(_) => Ok(Self { bytes, next: 0 }),
        }
    }

    /// The next number; an error where the text ends or is damaged.
    pub fn wide(&mut self) -> Result<u128, &'static str> {
        let mut number = 0;
        // 128 bits are 18 bytes of seven bits and the lowest two bits of another one.
        for place in 0..19 {
            let byte = *self.bytes.get(self.next).ok_or("it is truncated")?;
            self.next += 1;
            if place == 18 && byte > 3 {
                break;
            }
            number |= u128::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("a number in it has more than 128 bits")
    }

    /// The next number of 64 bits.
    pub fn number(&mut self) -> Result<u64, &'static str> {
        u64::try_from(self.wide()?).map_err(|_| "a number in it has more than 64 bits")
    }

    /// The next number, where it is one of a cell or a bucket: at most [`NUMBER_MAX`].
    pub fn amount(&mut self) -> Result<u64, &'static str> {
        let number = self.wide()?;
        match number {
            0..=NUMBER_MAX => Ok(number as u64),
            _ => Err("a number in it is beyond every measurement"),
        }
    }

    /// True if all numbers were read.
    pub fn is_done(&self) -> bool {
        self.next == self.bytes.len()
    }
}

/// A value that has an exact short text.
pub trait Packed: Sized {
    /// Adds its numbers, which [`Self::unpack`] reads in the same order.
    fn pack(&self, packer: &mut Packer);
    /// Reads the numbers that [`Self::pack`] added.
    fn unpack(numbers: &mut Unpacker) -> Result<Self, &'static str>;
}

/// Writes a value as its text.
pub fn serialize<T: Packed, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    let mut packer = Packer::default();
    value.pack(&mut packer);
    packer.text().serialize(to)
}

/// Reads a value from its text.
pub fn deserialize<'de, T: Packed, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let text = String::deserialize(from)?;
    Unpacker::decode(&text)
        .and_then(|mut numbers| {
            let value = T::unpack(&mut numbers)?;
            numbers.is_done().then_some(value).ok_or("it is too long")
        })
        .map_err(|why| D::Error::custom(format!("packed numbers cannot be read: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::{LatencyHistogram, LatencyPart};
    use crate::series::{Cell, TimeSeries};
    use proptest::prelude::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Both {
        latency: LatencyHistogram,
        #[serde(with = "crate::packed")]
        series: TimeSeries,
        #[serde(with = "crate::packed")]
        part: LatencyPart,
    }

    fn cells() -> impl Strategy<Value = Vec<Cell>> {
        let number = || prop_oneof![Just(0u64), 0..1_000u64, 0..=1u64 << 60];
        let cell = (number(), number(), number(), number(), number());
        let cell = cell.prop_map(
            |(ops, bytes, errors, latency_max_ns, latency_sum_ns)| Cell {
                ops,
                bytes,
                errors,
                latency_max_ns,
                latency_sum_ns,
            },
        );
        proptest::collection::vec(cell, 0..50)
    }

    proptest! {
        #[test]
        fn what_is_read_back_equals_what_was_written(
            values in proptest::collection::vec((0..1u64 << 40, 1..1000u64), 0..50),
            cells in cells(),
        ) {
            let mut latency = LatencyHistogram::new();
            values.iter().for_each(|(ns, times)| latency.record_many(*ns, *times));
            let part = latency.to_part();
            let series = TimeSeries { start_ns: 7, interval_ns: 10, cells };
            let both = Both { latency, series, part };
            let text = serde_json::to_string(&both).unwrap();
            let read: Both = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(read, both);
        }
    }

    #[test]
    fn damaged_texts_are_refused() {
        let mut latency = LatencyHistogram::new();
        (0..100).for_each(|ns| latency.record(ns * 977));
        let mut packer = Packer::default();
        latency.to_part().pack(&mut packer);
        let whole = packer.0.clone();
        let read = |bytes: &[u8]| {
            let text = Packer(bytes.to_vec()).text();
            let json = format!("\"{text}\"");
            let mut from = serde_json::Deserializer::from_str(&json);
            deserialize::<LatencyPart, _>(&mut from).is_ok()
        };
        assert!(read(&whole));
        assert!((0..whole.len()).all(|length| !read(&whole[..length])));
        assert!(!read(&[&whole[..], &[1]].concat()));
        let claims = |numbers: &[u128]| {
            let mut packer = Packer::default();
            numbers.iter().for_each(|number| packer.push(*number));
            read(&packer.0)
        };
        assert!(claims(&[1, 5, 5, 5, 5, 1]));
        assert!(!claims(&[1, 5, 5, 5, 1 << 30, 1]), "no such bucket");
        assert!(!claims(&[1, 5, 5, 5, 5, 1 << 61]), "too many");
        assert!(!claims(&[1 << 40, 5, 5, 5, 5, 1]), "too many buckets");
    }
}
