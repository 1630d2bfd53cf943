//! Finds the size of the blocks of a verified workload that get a signature each.

use crate::divisor::greatest_common_divisor;
use crate::op::OpKind;
use crate::shape::FioOrder;
use crate::workload::Workload;

/// The smallest block that has a signature: its header has 5 words of 8 bytes, and there must be
/// something that it signs.
pub const SIGNED_BYTES_MIN: u32 = 64;
/// Signed blocks are whole words.
pub const SIGNED_BYTES_UNIT: u32 = 8;
/// Of two writes to a place at the same time a disk may store parts, but no part of a page.
const SHARED_BYTES: u64 = 4096;

impl Workload {
    /// Bytes of each block that has a signature, or a pattern, of its own: the greatest of which
    /// all its writes, and the places where they begin, are multiples; of its reads, where it only
    /// checks. Only the order of fio has several sizes; without it that is the block size.
    pub fn signed_bytes(&self) -> u32 {
        let common = match &self.shape.order.fio {
            Some(order) => signed_bytes_in(order, self.checks_reads()),
            None => self.block_bytes,
        };
        if self.shape.content.shares_verified {
            greatest_common_divisor(u64::from(common), SHARED_BYTES) as u32
        } else {
            common
        }
    }
}

/// True if blocks of this size have room for a signature.
pub fn can_be_signed(block_bytes: u32) -> bool {
    block_bytes >= SIGNED_BYTES_MIN && block_bytes.is_multiple_of(SIGNED_BYTES_UNIT)
}

/// [`Workload::signed_bytes`] in an order of fio: the greatest common divisor of the sizes of its
/// signed operations and of every distance by which the order moves.
fn signed_bytes_in(order: &FioOrder, checks_reads: bool) -> u32 {
    let files = &order.files;
    let mut common = greatest_common_divisor(files.first_start, files.start);
    if files.count > 1 {
        common = greatest_common_divisor(common, files.part_bytes);
    }
    if order.places.gap_bytes < 0 {
        // A lap backward begins at the end.
        common = greatest_common_divisor(common, files.lap_bytes.min(files.file_bytes));
    }
    common = greatest_common_divisor(common, order.places.gap_bytes.unsigned_abs());
    if let Some(zones) = order.places.zones {
        for bytes in [zones.moved_bytes, zones.range_bytes, zones.skip_bytes] {
            common = greatest_common_divisor(common, bytes);
        }
    }
    for kind in &order.kinds {
        let is_signed = kind.does == OpKind::Write || (checks_reads && kind.does == OpKind::Read);
        if !is_signed {
            continue;
        }
        if kind.sizes.is_unaligned && kind.sizes.least_bytes != kind.sizes.most_bytes {
            return 1;
        }
        // Sizes are multiples of the smallest, and so is what is left of them in a visited block;
        // only the largest need not be.
        for bytes in [kind.sizes.least_bytes, kind.sizes.most_bytes] {
            common = greatest_common_divisor(common, u64::from(bytes));
        }
        common = greatest_common_divisor(common, kind.align_bytes);
    }
    u32::try_from(common).unwrap_or(0).max(1)
}
