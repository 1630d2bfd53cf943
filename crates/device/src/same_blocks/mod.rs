//! Finds where the blocks of a file or device lie on each layer below it: by FIEMAP, the start of a
//! partition, the offset of a loop device, the table of device mapper. Reads some of them on both
//! layers and compares their content, because with a wrong map different blocks would be measured.

mod block_map;

use crate::admit::inspect::read_block;
use crate::identity::disk::size_bytes;
use crate::kernel::syscalls::{DirtyPages, extents_in};
use crate::kernel::sysroot::{SysRoot, read_number, read_text};
use crate::open::target::OpenTarget;
use block_map::{BlockMap, Segment, UNIT_BYTES, compose, device_mapper_map, longest};
use diskproof_model::layers::{BlockMatch, LayerPlace, PlannedLayer};
use diskproof_model::target::LayerKind;
use diskproof_model::units::SECTOR_BYTES;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// A shorter span fits into any cache, and its reads queue up at one place of the disk.
const SPAN_BYTES_MIN: u64 = 1 << 20;
/// Blocks of the span whose content is compared, evenly spread over it. Chosen, not measured: a
/// wrong map moves all blocks, so that the first one with content of its own differs.
const COMPARED_BLOCKS: u64 = 8;
/// Bytes compared of each: a sector of any disk at least.
const COMPARED_BYTES: usize = 4096;
/// More extents than this are not looked at: the longest of this many is long enough. Chosen, not
/// measured.
const EXTENTS_MAX: usize = 4096;
/// Flags of linux/fiemap.h that say that the data is not, or not as it reads, at the place given:
/// `UNKNOWN`, `DELALLOC`, `ENCODED`, `DATA_ENCRYPTED`, `NOT_ALIGNED`, `DATA_INLINE`, `DATA_TAIL`,
/// `UNWRITTEN`.
const NOT_IN_PLACE: u32 = 0x2 | 0x4 | 0x8 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800;
/// FIEMAP of btrfs gives addresses of its own space, not of a device (btrfs-fiemap in
/// Documentation/filesystems); that of ZFS and bcachefs may name any device of several.
const OWN_ADDRESSES: [&str; 3] = ["btrfs", "zfs", "bcachefs"];

/// Chooses the place of each measured layer that is read: the longest span that lies in one piece
/// on every layer whose place is known, and a span of the same length on the others.
pub fn same_blocks(layers: &[PlannedLayer], targets: &[OpenTarget]) -> Vec<LayerPlace> {
    locate(&SysRoot::default(), layers, targets)
}

fn locate(root: &SysRoot, layers: &[PlannedLayer], targets: &[OpenTarget]) -> Vec<LayerPlace> {
    let Some(top) = layers.first() else {
        return Vec::new();
    };
    let top_bytes = match open_target(top, targets) {
        Some(target) => target.usable_bytes(),
        None => 0,
    };
    let whole = Segment {
        upper_start: 0,
        lower_start: 0,
        length: top_bytes / UNIT_BYTES * UNIT_BYTES,
    };
    let mapped = MappedLayers::find(root, layers, targets, whole);
    let span = match mapped.levels.last() {
        Some(lowest) => longest(lowest).unwrap_or(whole),
        None => whole,
    };
    let mut comparison = BlockComparison {
        targets,
        upper: None,
        unknown_reason: mapped.unmapped_reason,
    };
    let mut places = Vec::new();
    // Where the span would lie on a layer whose map is not known: where it lay last.
    let mut assumed_bytes = span.upper_start;
    for (index, layer) in layers.iter().enumerate() {
        let start_bytes = match mapped.levels.get(index) {
            Some(level) => position(level, &span),
            None => None,
        };
        assumed_bytes = start_bytes.unwrap_or(assumed_bytes);
        let Some(target) = layer.target else {
            continue;
        };
        let is_encrypted = index >= mapped.encrypted_from;
        let place = comparison.place(target, start_bytes, &span, is_encrypted);
        places.push(match place.blocks {
            BlockMatch::Unknown => within_target(place, assumed_bytes, targets.get(target)),
            _ => place,
        });
    }
    places
}

/// The maps from the highest layer to those below, as far down as the kernel reports them.
struct MappedLayers {
    /// For each layer, from the highest on, the pieces of the highest one that lie on it.
    levels: Vec<Vec<Segment>>,
    /// The first layer that holds ciphertext; the number of layers where none does.
    encrypted_from: usize,
    /// The reason why the layers below are not mapped; `None` where all are.
    unmapped_reason: Option<String>,
}

impl MappedLayers {
    /// Maps layer by layer. `whole` is the highest one.
    fn find(
        root: &SysRoot,
        layers: &[PlannedLayer],
        targets: &[OpenTarget],
        whole: Segment,
    ) -> Self {
        let mut mapped = Self {
            levels: vec![vec![whole]],
            encrypted_from: layers.len(),
            unmapped_reason: None,
        };
        for (index, pair) in layers.windows(2).enumerate() {
            let [upper, lower] = pair else { break };
            let map = match map_below(root, upper, lower, open_target(upper, targets)) {
                Ok(map) => map,
                Err(why) => {
                    mapped.unmapped_reason = Some(why);
                    break;
                }
            };
            if map.is_encrypted {
                mapped.encrypted_from = mapped.encrypted_from.min(index + 1);
            }
            let below = compose(&mapped.levels[index], &map.segments);
            match longest(&below) {
                Some(span) if span.length >= SPAN_BYTES_MIN => mapped.levels.push(below),
                _ => {
                    let name = &lower.name;
                    let why = format!("no MiB of its blocks is contiguous on {name}");
                    mapped.unmapped_reason = Some(why);
                    break;
                }
            }
        }
        mapped
    }
}

fn open_target<'a>(layer: &PlannedLayer, targets: &'a [OpenTarget]) -> Option<&'a OpenTarget> {
    targets.get(layer.target?)
}

/// The byte of a layer at which the span begins; `None` where no one segment holds all of it.
fn position(level: &[Segment], span: &Segment) -> Option<u64> {
    let around = level
        .iter()
        .find(|segment| segment.upper_start <= span.upper_start && span.end() <= segment.end())?;
    Some(around.lower_start + (span.upper_start - around.upper_start))
}

/// A span of the same length, as near as possible to where it would lie.
fn within_target(place: LayerPlace, start_bytes: u64, target: Option<&OpenTarget>) -> LayerPlace {
    let size_bytes = match target {
        Some(target) => target.usable_bytes(),
        None => 0,
    };
    let length_bytes = place.length_bytes.min(size_bytes / UNIT_BYTES * UNIT_BYTES);
    let last_bytes = size_bytes - length_bytes;
    LayerPlace {
        start_bytes: start_bytes.min(last_bytes) / UNIT_BYTES * UNIT_BYTES,
        length_bytes,
        ..place
    }
}

/// The beginning of the span on a measured layer.
#[derive(Debug, Clone, Copy)]
struct SpanStart {
    /// The index of the layer's target.
    target: usize,
    start_bytes: u64,
    /// An encryption lies between the top and this layer, which holds the same blocks as
    /// ciphertext.
    is_encrypted: bool,
}

/// Goes down the layers and compares what they hold.
struct BlockComparison<'a> {
    targets: &'a [OpenTarget],
    /// The span on the measured layer above; `None` above the first one.
    upper: Option<SpanStart>,
    /// The reason why nothing is known of the layers from here on.
    unknown_reason: Option<String>,
}

impl BlockComparison<'_> {
    /// The place of the span on the next measured layer, and whether its blocks are those of the
    /// measured layer above. `start_bytes` is `None` where the map does not reach that layer.
    fn place(
        &mut self,
        target: usize,
        start_bytes: Option<u64>,
        span: &Segment,
        is_encrypted: bool,
    ) -> LayerPlace {
        let mut place = LayerPlace {
            target,
            start_bytes: start_bytes.unwrap_or(0),
            length_bytes: span.length,
            blocks: BlockMatch::Unknown,
            compared: 0,
            why: None,
        };
        let Some(start_bytes) = start_bytes else {
            place.why.clone_from(&self.unknown_reason);
            return place;
        };
        let lower = SpanStart {
            target,
            start_bytes,
            is_encrypted,
        };
        place.blocks = match self.upper.replace(lower) {
            None => BlockMatch::Top,
            Some(upper) if upper.is_encrypted != is_encrypted => BlockMatch::Mapped,
            Some(upper) => {
                match self.compare(upper, lower, span.length) {
                    Ok(compared) => place.compared = compared,
                    Err(why) => {
                        self.unknown_reason = Some(why.clone());
                        place.why = Some(why);
                        return place;
                    }
                }
                if is_encrypted {
                    BlockMatch::Mapped
                } else {
                    BlockMatch::Same
                }
            }
        };
        place
    }

    /// Reads blocks of two layers and returns their number; an error as soon as two differ.
    fn compare(&self, upper: SpanStart, lower: SpanStart, length: u64) -> Result<u32, String> {
        let mut compared = 0;
        for number in 0..COMPARED_BLOCKS {
            let offset = length / COMPARED_BLOCKS * number / UNIT_BYTES * UNIT_BYTES;
            // A live file may change between the two reads.
            let is_equal = self.read(upper, offset)? == self.read(lower, offset)?
                || self.read(upper, offset)? == self.read(lower, offset)?;
            if !is_equal {
                return Err(
                    "the blocks at the offset that the kernel reports contain other data"
                        .to_owned(),
                );
            }
            compared += 1;
        }
        Ok(compared)
    }

    /// The block at this offset in the span.
    fn read(&self, layer: SpanStart, offset: u64) -> Result<Vec<u8>, String> {
        let Some(target) = self.targets.get(layer.target) else {
            return Err("the layer is not open".to_owned());
        };
        read_block(target.fd(), layer.start_bytes + offset, COMPARED_BYTES)
            .map_err(|errno| format!("{} cannot be read: {errno}", target.identity().path))
    }
}

/// Maps the blocks of a layer to the one right below.
fn map_below(
    root: &SysRoot,
    upper: &PlannedLayer,
    lower: &PlannedLayer,
    open: Option<&OpenTarget>,
) -> Result<BlockMap, String> {
    let sysfs = sysfs_directory(root, upper);
    match upper.device_kind {
        None => match open {
            Some(target) => file_extents(target),
            None => Err(format!(
                "{} cannot be read, so its extents are unknown",
                upper.path
            )),
        },
        Some(LayerKind::Partition) => Ok(one_piece(
            &sysfs,
            start_bytes(&sysfs.join("start"), "the partition")?,
        )),
        Some(LayerKind::Loop) => Ok(one_piece(
            &sysfs,
            read_number(&sysfs.join("loop/offset")).unwrap_or(0),
        )),
        Some(LayerKind::DeviceMapper) => {
            let number = read_text(&sysfs_directory(root, lower).join("dev"));
            device_mapper_map(read_text(&sysfs.join("dm/name")), number)
        }
        Some(LayerKind::Md) if read_text(&sysfs.join("md/level")).as_deref() == Some("raid1") => {
            let member = sysfs.join(format!("md/dev-{}", kernel_name(lower)));
            let state = read_text(&member.join("state")).unwrap_or_default();
            // A spare, or one that failed, holds no or old data.
            if !state.split(',').any(|word| word.trim() == "in_sync") {
                let name = &lower.name;
                let why = format!("{name} is not an in-sync member of the array ({state})");
                return Err(why);
            }
            let offset = start_bytes(&member.join("offset"), "the array's data")?;
            Ok(one_piece(&sysfs, offset))
        }
        Some(LayerKind::Md) => Err("the array spreads its blocks over several devices".to_owned()),
        Some(_) => Err("the device does not report the position of its blocks below".to_owned()),
    }
}

/// Maps all of the device with this sysfs directory to one piece of the device below, which begins
/// at its byte `lower_start`, without encryption.
fn one_piece(sysfs: &Path, lower_start: u64) -> BlockMap {
    let length = size_bytes(sysfs).unwrap_or(0);
    BlockMap::plain(vec![Segment {
        upper_start: 0,
        lower_start,
        length,
    }])
}

/// The number of sectors that a file of sysfs holds, in bytes. The error says that the start of
/// `what` is unknown.
fn start_bytes(path: &Path, what: &str) -> Result<u64, String> {
    match read_number::<u64>(path) {
        Some(start) => Ok(start * SECTOR_BYTES),
        None => Err(format!("sysfs does not show the start of {what}")),
    }
}

fn kernel_name(layer: &PlannedLayer) -> String {
    let name = layer.path.strip_prefix("/dev/").unwrap_or(&layer.path);
    name.replace('/', "!")
}

fn sysfs_directory(root: &SysRoot, layer: &PlannedLayer) -> PathBuf {
    root.sys.join("class/block").join(kernel_name(layer))
}

/// The written parts of a file on its device.
fn file_extents(target: &OpenTarget) -> Result<BlockMap, String> {
    let kind = match &target.identity().filesystem {
        Some(filesystem) => filesystem.kind.as_str(),
        None => "",
    };
    if !OWN_ADDRESSES.contains(&kind)
        && let Some(segments) = extents(target.fd(), target.usable_bytes())
    {
        return Ok(BlockMap::plain(segments));
    }
    Err(format!(
        "{kind} does not report the position of a file on its device"
    ))
}

fn extents(fd: BorrowedFd<'_>, end: u64) -> Option<Vec<Segment>> {
    let mut segments = Vec::new();
    for part in extents_in(fd, 0, end, DirtyPages::WrittenBack) {
        for extent in part.ok()?.extents {
            if extent.flags & NOT_IN_PLACE == 0 {
                segments.push(Segment {
                    upper_start: extent.logical,
                    lower_start: extent.physical,
                    length: extent.length.min(end.saturating_sub(extent.logical)),
                });
            }
        }
        if segments.len() >= EXTENTS_MAX {
            break;
        }
    }
    Some(segments)
}

#[cfg(test)]
mod tests;
