//! Reads the wire format HdrHistogram V2, plain or deflated (`HistogramEncoding` in the README of
//! HdrHistogram_c). Our own reader, because the crate `hdrhistogram` allocates what the text
//! claims: 4 GiB for a text of 60 bytes.

use super::buckets::COUNT_MAX;
use flate2::read::ZlibDecoder;
use std::io::Read as _;

/// Begins a plain histogram of format V2; 0x10 marks its encoding of the counts (ZigZag LEB128).
const COOKIE: u32 = 0x1c84_9303 | 0x10;
/// Begins a deflated histogram of format V2.
const COOKIE_DEFLATED: u32 = 0x1c84_9304 | 0x10;
/// Cookie, payload length, normalising offset, digits, lowest, highest, ratio.
const HEADER_BYTES: usize = 40;
/// Most bytes after inflating: an own histogram with every bucket filled has 330 kB.
const INFLATED_BYTES_MAX: u64 = 1 << 20;
/// The most that the format allows.
const DIGITS_MAX: u32 = 5;
/// Calls `each` with the highest value of every filled bucket and its count, ascending.
pub(super) fn read(bytes: &[u8], mut each: impl FnMut(u64, u64)) -> Result<(), &'static str> {
    let inflated;
    let plain = match number(bytes, 0)? {
        COOKIE => bytes,
        COOKIE_DEFLATED => {
            inflated = inflate(bytes.get(8..).unwrap_or_default())?;
            &inflated
        }
        _ => return Err("it does not start like an HdrHistogram V2"),
    };
    if number(plain, 0)? != COOKIE {
        return Err("its content is not an HdrHistogram V2");
    }
    let layout = BucketLayout::read(plain)?;
    let payload = plain.get(HEADER_BYTES..).unwrap_or_default();
    if number(plain, 4)? as usize != payload.len() {
        return Err("it is truncated, or longer than its header says");
    }
    let (mut rest, mut index, mut total) = (payload, 0u64, 0u64);
    while !rest.is_empty() {
        let number = signed(&mut rest)?;
        let Ok(count) = u64::try_from(number) else {
            index = index.saturating_add(number.unsigned_abs());
            continue;
        };
        if count > 0 {
            total = total.saturating_add(count);
            if total > COUNT_MAX {
                return Err("it counts more operations than a run can have");
            }
            each(layout.highest_value(index)?, count);
        }
        index += 1;
    }
    Ok(())
}

/// Inflates a zlib stream (RFC 1950), as far as it is no larger than a histogram.
fn inflate(deflated: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut plain = Vec::new();
    let read = ZlibDecoder::new(deflated)
        .take(INFLATED_BYTES_MAX + 1)
        .read_to_end(&mut plain);
    match read {
        Err(_) => Err("its deflated content is damaged"),
        Ok(_) if plain.len() as u64 > INFLATED_BYTES_MAX => Err("it inflates to more than 1 MiB"),
        Ok(_) => Ok(plain),
    }
}

/// The number of 32 bits that begins at a byte, the highest byte first.
fn number(bytes: &[u8], at: usize) -> Result<u32, &'static str> {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map(u32::from_be_bytes).ok_or("it is truncated")
}

/// As [`number`], of 64 bits.
fn long_number(bytes: &[u8], at: usize) -> Result<u64, &'static str> {
    Ok(u64::from(number(bytes, at)?) << 32 | u64::from(number(bytes, at + 4)?))
}

/// A ZigZag number of LEB128 with at most nine bytes, the ninth of which carries eight bits.
fn signed(rest: &mut &[u8]) -> Result<i64, &'static str> {
    let mut bits = 0;
    for place in 0..9 {
        let (byte, after) = rest.split_first().ok_or("it is truncated")?;
        *rest = after;
        let payload = if place == 8 { *byte } else { byte & 0x7f };
        bits |= u64::from(payload) << (7 * place);
        if place == 8 || byte & 0x80 == 0 {
            break;
        }
    }
    Ok((bits >> 1) as i64 ^ -((bits & 1) as i64))
}

/// The values that each bucket holds.
struct BucketLayout {
    /// Bits of the number of sub-buckets: half of them in each octave but the first.
    sub_bucket_bits: u32,
    /// Bits below the smallest value that has its own bucket.
    unit_bits: u32,
}

impl BucketLayout {
    /// Reads the header of a plain histogram.
    fn read(plain: &[u8]) -> Result<Self, &'static str> {
        let (offset, digits) = (number(plain, 8)?, number(plain, 12)?);
        let (lowest, ratio) = (long_number(plain, 16)?, long_number(plain, 32)?);
        if offset != 0 || f64::from_bits(ratio) != 1.0 {
            return Err("it is shifted or scaled, which diskproof does not read");
        }
        if digits > DIGITS_MAX || lowest == 0 {
            return Err("its precision or its lowest value is out of range");
        }
        let distinct = 2 * 10u64.pow(digits);
        Ok(Self {
            sub_bucket_bits: distinct.next_power_of_two().trailing_zeros(),
            unit_bits: lowest.ilog2(),
        })
    }

    /// The highest value of the bucket at `index`.
    fn highest_value(&self, index: u64) -> Result<u64, &'static str> {
        let half_bits = self.sub_bucket_bits - 1;
        let octave = (index >> half_bits).saturating_sub(1);
        let sub_bucket = index - (octave << half_bits);
        let shift = octave + u64::from(self.unit_bits);
        if shift + u64::from(self.sub_bucket_bits) > 63 {
            return Err("a value in it is beyond 2^63 ns");
        }
        Ok(((sub_bucket + 1) << shift) - 1)
    }
}
