//! How the model's enums and numbers are said in words. Knows nothing of pages.

use crate::text::list;
use diskproof_model::plan::{Access, BlockShare, CachePolicy, Distribution, SyncCall, SyncPolicy};
use diskproof_model::target::{Layer, LayerKind, TargetKind, WriteCache};
use diskproof_model::units::{format_bytes, format_rate};

/// How the page cache was treated, for people: `cached` alone would sound as if nothing had reached
/// the disk.
pub(crate) fn cache(policy: CachePolicy) -> &'static str {
    match policy {
        CachePolicy::Direct => "direct",
        CachePolicy::Buffered => "buffered",
        CachePolicy::Cached => "via page cache",
    }
}

/// What ran at the same time, if anything did: a figure beside others is another figure.
pub(crate) fn together(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| format!("together with {}", list(names)))
}

/// A kind of block device.
pub(crate) fn layer_kind(kind: LayerKind) -> &'static str {
    match kind {
        LayerKind::Disk => "disk",
        LayerKind::Partition => "partition",
        LayerKind::DeviceMapper => "device mapper",
        LayerKind::Md => "software RAID",
        LayerKind::Loop => "loop device",
        LayerKind::Zram => "compressed RAM",
        LayerKind::RamDisk => "RAM disk",
        LayerKind::Network => "network block device",
    }
}

/// A kind of target.
pub(crate) fn target_kind(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Directory => "directory",
        TargetKind::File => "file",
        TargetKind::BlockDevice => "block device",
    }
}

/// The write cache, in the kernel's words; that it is not known matters.
pub(crate) fn write_cache(cache: Option<WriteCache>) -> &'static str {
    match cache {
        Some(WriteCache::WriteBack) => "write back",
        Some(WriteCache::WriteThrough) => "write through",
        None => "unknown",
    }
}

/// What the kernel says of rotation. Virtio says yes for everything, so there it says nothing.
pub(crate) fn rotation(layer: &Layer) -> Option<&'static str> {
    let is_virtio = layer
        .link
        .as_ref()
        .is_some_and(|link| link.bus.eq_ignore_ascii_case("virtio"));
    match layer.rotational? {
        true if is_virtio => None,
        true => Some("rotating"),
        false => Some("not rotating"),
    }
}

/// Where operations go.
pub(crate) fn access(access: &Access) -> String {
    match access {
        Access::Sequential => "sequential".to_owned(),
        Access::Backward => "backward".to_owned(),
        Access::Stride { stride_bytes } => format!("every {}", format_bytes(*stride_bytes)),
        Access::Random {
            distribution: Distribution::Uniform,
        } => "random".to_owned(),
        Access::Random {
            distribution: Distribution::Zipf { theta },
        } => format!("random (Zipf {theta})"),
        Access::Random {
            distribution:
                Distribution::HotCold {
                    access_percent,
                    size_percent,
                },
        } => {
            format!("random ({access_percent} % in {size_percent} %)")
        }
        Access::Zoned { zones } => {
            let shares: Vec<String> = zones
                .iter()
                .map(|z| format!("{} % in {} %", z.access_percent, z.size_percent))
                .collect();
            format!("random (zones: {})", shares.join(", "))
        }
    }
}

/// The part of the target that is used.
pub(crate) fn span(start_bytes: u64, length_bytes: u64) -> String {
    let over = format!("over {}", format_bytes(length_bytes));
    if start_bytes == 0 {
        over
    } else {
        format!("{over} from {}", format_bytes(start_bytes))
    }
}

/// Block size, or sizes.
pub(crate) fn block(block_bytes: u32, mix: &[BlockShare]) -> String {
    if mix.is_empty() {
        return format_bytes(u64::from(block_bytes));
    }
    let total: u64 = mix.iter().map(|share| u64::from(share.weight)).sum();
    let percent = |weight: u32| 100.0 * f64::from(weight) / total.max(1) as f64;
    list(mix.iter().map(|share| {
        format!(
            "{:.0} % {}",
            percent(share.weight),
            format_bytes(u64::from(share.block_bytes))
        )
    }))
}

/// Requests in flight.
pub(crate) fn depth(depth: u32, workers: u32) -> String {
    if workers == 1 {
        depth.to_string()
    } else {
        format!("{depth} × {workers}")
    }
}

/// How writes are made durable; nothing to say where they are not.
pub(crate) fn sync(policy: SyncPolicy) -> Option<String> {
    match policy {
        SyncPolicy::None => None,
        SyncPolicy::AtEnd => Some("final sync".to_owned()),
        SyncPolicy::Every { writes: 1, call } => Some(format!("write+{}", call_name(call))),
        SyncPolicy::Every { writes, call } => {
            Some(format!("{} every {writes} writes", call_name(call)))
        }
    }
}

/// Which operations there are, and what makes them durable: `write, final sync`, `50 % reads`,
/// `write+fdatasync`.
pub(crate) fn operation(read_permille: u16, policy: SyncPolicy) -> String {
    let kind = mix(read_permille)
        .unwrap_or_else(|| if read_permille == 0 { "write" } else { "read" }.to_owned());
    match (sync(policy), policy) {
        (Some(sync), SyncPolicy::Every { writes: 1, .. }) if read_permille == 0 => sync,
        (Some(sync), _) => format!("{kind}, {sync}"),
        (None, _) => kind,
    }
}

fn call_name(call: SyncCall) -> &'static str {
    match call {
        SyncCall::Fsync => "fsync",
        SyncCall::Fdatasync => "fdatasync",
    }
}

/// Share of reads, where both are done.
pub(crate) fn mix(read_permille: u16) -> Option<String> {
    (1..1000)
        .contains(&read_permille)
        .then(|| format!("{} reads", percent(f64::from(read_permille) / 1000.0)))
}

/// Offered load, where there is one.
pub(crate) fn offered(rate: Option<f64>) -> Option<String> {
    rate.map(|rate| format!("offered {}/s", format_rate(rate)))
}

/// A share as percent, two digits below 10 %: `0.4 %`, `12 %`, `<0.1 %`.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 0.05 => "<0.1 %".to_owned(),
        p if p < 9.95 && (p * 10.0).round() % 10.0 != 0.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_print_short() {
        let cases = [
            (0.0, "0 %"),
            (0.0001, "<0.1 %"),
            (0.012, "1.2 %"),
            (0.02, "2 %"),
            (0.123, "12 %"),
            (0.0999, "10 %"),
            (1.5, "150 %"),
        ];
        for (share, text) in cases {
            assert_eq!(percent(share), text);
        }
    }

    #[test]
    fn operations_say_how_they_become_durable() {
        let every = |writes| SyncPolicy::Every {
            writes,
            call: SyncCall::Fsync,
        };
        let cases = [
            (1000, SyncPolicy::None, "read"),
            (0, SyncPolicy::AtEnd, "write, final sync"),
            (0, every(1), "write+fsync"),
            (700, every(1), "70 % reads, write+fsync"),
            (0, every(9), "write, fsync every 9 writes"),
        ];
        for (read_permille, policy, text) in cases {
            assert_eq!(operation(read_permille, policy), text);
        }
    }

    #[test]
    fn a_mix_of_blocks_names_every_size() {
        let mix = [
            BlockShare {
                block_bytes: 4096,
                weight: 3,
            },
            BlockShare {
                block_bytes: 65536,
                weight: 1,
            },
        ];
        assert_eq!(
            block(65536, &mix).replace('\u{a0}', " "),
            "75 % 4 KiB, 25 % 64 KiB"
        );
        assert_eq!(block(8192, &[]), "8 KiB");
    }
}
