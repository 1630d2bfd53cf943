//! The size of the next request.

use super::tausworthe::Tausworthe;
use diskproof_model::shape::FioSizes;

/// A hundredth of the numbers that a generator draws.
const PERCENT: u32 = u32::MAX / 100;

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
    if room_bytes < u64::from(least) {
        return None;
    }
    loop {
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
}

/// A size of a mix by its percentage, and if that is too large, the next one that fits.
fn size_of_split(sizes: &FioSizes, room_bytes: u64, generator: &mut Tausworthe) -> u32 {
    let drawn = generator.bits();
    let mut percent = 0;
    let mut bytes = 0;
    for share in &sizes.split {
        if share.percent == 0 {
            continue;
        }
        bytes = share.bytes;
        percent += share.percent;
        if drawn / percent <= PERCENT && u64::from(bytes) <= room_bytes {
            break;
        }
    }
    bytes
}
