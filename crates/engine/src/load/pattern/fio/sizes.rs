//! Chooses the size of the next request, as fio does.

use super::tausworthe::Tausworthe;
use diskproof_model::shape::FioSizes;

/// Percentages of all.
const PERCENT_ALL: u64 = 100;
/// After so many draws that do not fit, the smallest size is taken. In fio they go on, up to
/// billions where only the smallest of many sizes fits.
const DRAWS_MAX: u32 = 1 << 20;

/// The size of a request for which `room_bytes` are left; `None` where not even the smallest fits.
/// A kind with one size has it, whether there is room or not.
pub(super) fn draw_size(
    sizes: &FioSizes,
    room_bytes: u64,
    generator: &mut Tausworthe,
) -> Option<u32> {
    let least = sizes.least_bytes;
    if least == sizes.most_bytes {
        return Some(least);
    }
    let smallest = smallest_drawn(sizes);
    if room_bytes < u64::from(smallest) {
        return None;
    }
    for _ in 0..DRAWS_MAX {
        let mut bytes = if sizes.split.is_empty() {
            u64::from(least) + generator.below(u64::from(sizes.most_bytes))
        } else {
            u64::from(size_of_split(sizes, room_bytes, generator))
        };
        if !sizes.is_unaligned {
            bytes -= bytes % u64::from(least);
        }
        bytes = bytes.min(u64::from(sizes.most_bytes));
        if bytes <= room_bytes {
            return Some(bytes as u32);
        }
    }
    Some(smallest)
}

/// The smallest size that is ever drawn.
fn smallest_drawn(sizes: &FioSizes) -> u32 {
    sizes
        .split
        .iter()
        .filter(|share| share.percent > 0)
        .map(|share| share.bytes)
        .min()
        .unwrap_or(sizes.least_bytes)
}

/// A size of a mix by its percentage, and if that is too large, the next one that fits.
fn size_of_split(sizes: &FioSizes, room_bytes: u64, generator: &mut Tausworthe) -> u32 {
    let percent_numbers = generator.largest() / PERCENT_ALL;
    let drawn = generator.bits();
    let mut percent = 0;
    let mut bytes = 0;
    for share in &sizes.split {
        if share.percent == 0 {
            continue;
        }
        bytes = share.bytes;
        percent += u64::from(share.percent);
        if drawn / percent <= percent_numbers && u64::from(bytes) <= room_bytes {
            break;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::shape::FioSizeShare;

    /// The real fio 3.33 draws for ever here.
    #[test]
    fn size_that_is_never_drawn_makes_no_room() {
        let share = |bytes, percent| FioSizeShare { bytes, percent };
        let sizes = FioSizes {
            least_bytes: 4096,
            most_bytes: 65_536,
            split: vec![share(4096, 0), share(65_536, 100)],
            is_unaligned: false,
        };
        let mut generator = Tausworthe::new(1);
        assert_eq!(draw_size(&sizes, 61_440, &mut generator), None);
        assert_eq!(draw_size(&sizes, 65_536, &mut generator), Some(65_536));
        let any = FioSizes {
            most_bytes: 1 << 30,
            split: Vec::new(),
            is_unaligned: true,
            ..sizes
        };
        assert_eq!(draw_size(&any, 4096, &mut generator), Some(4096));
        assert_eq!(draw_size(&any, 4095, &mut generator), None);
    }
}
