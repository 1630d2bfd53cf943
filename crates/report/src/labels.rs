//! The words of all pages for the model's enums, for parts of a workload, and for unknown figures.

use crate::text::list;
use diskproof_model::finding::Severity;
use diskproof_model::op::OpKind;
use diskproof_model::plan::{Access, BlockShare, CachePolicy, Distribution, SyncPolicy, Zone};
use diskproof_model::record::Estimate;
use diskproof_model::stream::Streams;
use diskproof_model::target::{Layer, LayerKind, TargetKind, WriteCache};
use diskproof_model::units::{format_bytes, format_latency, format_percent, format_rate};

/// The cache mode. `cached` alone would read as if nothing had reached the disk.
pub(crate) fn cache(policy: CachePolicy) -> &'static str {
    match policy {
        CachePolicy::Direct => "direct",
        CachePolicy::Buffered => "buffered",
        CachePolicy::Cached => "via page cache",
    }
}

/// `together with wal, checkpoint`: the workloads that ran at the same time; `None` without any.
pub(crate) fn together(names: &[String]) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    Some(format!("together with {}", list(names)))
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

/// The write cache in the kernel's words.
pub(crate) fn write_cache(cache: Option<WriteCache>) -> &'static str {
    match cache {
        Some(WriteCache::WriteBack) => "write back",
        Some(WriteCache::WriteThrough) => "write through",
        None => "unknown",
    }
}

/// Says what the disk itself reports of its write cache, as the end of a clause.
pub(crate) fn reported_write_cache(disk: &Layer) -> &'static str {
    match disk.reported_write_cache {
        Some(WriteCache::WriteBack) => " (the disk reports: on)",
        Some(WriteCache::WriteThrough) => " (the disk reports: off)",
        None => "",
    }
}

/// The state to which the write cache was switched.
pub(crate) fn switched_write_cache(state: WriteCache) -> &'static str {
    match state {
        WriteCache::WriteBack => "write cache on",
        WriteCache::WriteThrough => "write cache off",
    }
}

/// Says whether the medium rotates; `None` if that is unknown.
pub(crate) fn rotation(layer: &Layer) -> Option<&'static str> {
    if layer.rotates()? {
        Some("rotating")
    } else {
        Some("solid state")
    }
}

/// The order of offsets: `sequential`, `random (Zipf 1.1)`.
pub(crate) fn access(access: &Access) -> String {
    match access {
        Access::Sequential => "sequential".to_owned(),
        Access::Backward => "backward".to_owned(),
        Access::Stride { stride_bytes } => format!("every {}", format_bytes(*stride_bytes)),
        Access::Random { distribution } => match distribution {
            Distribution::Uniform => "random".to_owned(),
            Distribution::Zipf { theta } => format!("random (Zipf {theta})"),
            Distribution::Pareto { share } => format!("random (Pareto {share})"),
            Distribution::Normal { spread_percent } => {
                format!("random (normal {spread_percent} %)")
            }
            Distribution::HotCold {
                access_percent,
                size_percent,
            } => format!("random ({access_percent} % in {size_percent} %)"),
        },
        Access::Zoned { zones } => {
            let shares: Vec<String> = zones.iter().map(zone_share).collect();
            format!("random (zones: {})", shares.join(", "))
        }
    }
}

fn zone_share(zone: &Zone) -> String {
    format!("{} % in {} %", zone.access_percent, zone.size_percent)
}

/// `over 8 GiB from 1 GiB`: the used part of the target.
pub(crate) fn span(start_bytes: u64, length_bytes: u64) -> String {
    let over = format!("over {}", format_bytes(length_bytes));
    match start_bytes {
        0 => over,
        start => format!("{over} from {}", format_bytes(start)),
    }
}

/// `8 KiB`, or for several sizes their shares: `70 % 4 KiB, 30 % 64 KiB`.
pub(crate) fn block(block_bytes: u32, mix: &[BlockShare]) -> String {
    if mix.is_empty() {
        return format_bytes(u64::from(block_bytes));
    }
    let total: u64 = mix.iter().map(|share| u64::from(share.weight)).sum();
    list(mix.iter().map(|share| {
        let percent = 100.0 * f64::from(share.weight) / total.max(1) as f64;
        format!("{percent:.0} % {}", format_bytes(share.block_bytes.into()))
    }))
}

/// `32`, or with several workers `8 × 4`: requests in flight for each worker, times workers.
pub(crate) fn depth(depth: u32, workers: u32) -> String {
    match workers {
        1 => depth.to_string(),
        workers => format!("{depth} × {workers}"),
    }
}

/// Says how writes are made durable; `None` if they are not.
pub(crate) fn sync(policy: SyncPolicy) -> Option<String> {
    match policy {
        SyncPolicy::None => None,
        SyncPolicy::AtEnd => Some("final sync".to_owned()),
        SyncPolicy::Every { writes: 1, call } => Some(format!("write+{}", call.as_str())),
        SyncPolicy::Every { writes, call } => {
            Some(format!("{} every {writes} writes", call.as_str()))
        }
        SyncPolicy::WithWrite { flag } => Some(format!("{} write", flag.as_str())),
        SyncPolicy::Shared { call } => Some(format!("write+group {}", call.as_str())),
        SyncPolicy::OtherDescriptor { call } => Some(format!("write+{} elsewhere", call.as_str())),
    }
}

/// The operations and how they are made durable: `write, final sync`, `50 % reads`,
/// `write+fdatasync`.
pub(crate) fn operation(streams: &Streams, policy: SyncPolicy) -> String {
    let mut words: Vec<String> = match mix(streams) {
        Some(mix) => vec![mix],
        None => streams
            .iter()
            .flat_map(|stream| &stream.does)
            .map(|kind| kind.as_str().to_owned())
            .collect(),
    };
    if streams.makes(OpKind::Write) {
        // The words of such a sync begin with its write.
        words.pop_if(|word| policy.is_per_write() && word == OpKind::Write.as_str());
        words.extend(sync(policy));
    }
    words.join(", ")
}

/// `70 % reads`: the share of reads of a mixed workload; `None` for others.
pub(crate) fn mix(streams: &Streams) -> Option<String> {
    if !streams.is_mix() {
        return None;
    }
    let share = f64::from(streams.permille(OpKind::Read)) / 1000.0;
    Some(format!("{} reads", format_percent(share)))
}

/// `offered 500/s`: the load of an open loop; `None` for a closed one.
pub(crate) fn offered(rate: Option<f64>) -> Option<String> {
    Some(format!("offered {}/s", format_rate(rate?)))
}

/// Block size in fio's words, for tables: `8k`, `1M`, `512`; `mix` for several sizes.
pub(crate) fn short_block(block_bytes: u32, mix: &[BlockShare]) -> String {
    const KIB: u32 = 1 << 10;
    const MIB: u32 = 1 << 20;
    match block_bytes {
        _ if !mix.is_empty() => "mix".to_owned(),
        bytes if bytes.is_multiple_of(MIB) && bytes > 0 => format!("{}M", bytes / MIB),
        bytes if bytes.is_multiple_of(KIB) && bytes > 0 => format!("{}k", bytes / KIB),
        bytes => bytes.to_string(),
    }
}

/// The sign for an unknown figure.
pub(crate) const UNKNOWN: &str = "–";

/// A figure, or the sign for an unknown one.
pub(crate) fn or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNKNOWN.to_owned())
}

/// A latency, or the sign for an unknown one.
pub(crate) fn latency(ns: Option<u64>) -> String {
    or_unknown(ns.map(format_latency))
}

/// The interval of an estimate: `±1.2 %`, `±?`.
pub(crate) fn interval(estimate: &Estimate) -> String {
    estimate.width_text().unwrap_or_else(|| "±?".to_owned())
}

/// A rate in MB/s without its unit, for columns that name it.
pub(crate) fn megabytes(estimate: &Estimate) -> String {
    if estimate.is_unknown() {
        return UNKNOWN.to_owned();
    }
    estimate.value_text().replace(" MB/s", "")
}

/// The severity of a finding.
pub(crate) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Failure => "failure",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// A number from 0 on with three digits, at most three of them decimals: `0.051`, `8.21`, `5120`.
pub(crate) fn three_digits(value: f64) -> String {
    // Each limit is the least value that would round to a fourth digit.
    let decimals = match value {
        v if v == 0.0 || v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// Returns one unit of the third digit of a value. Used as the half-width of a figure, it makes
/// three digits print.
pub(crate) fn third_digit_unit(value: f64) -> f64 {
    match value {
        0.0 => 0.0,
        _ => 10.0_f64.powf(value.abs().log10().floor() - 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::plan::SyncCall;

    #[test]
    fn short_blocks_equal_those_of_fio() {
        let cases = [
            (512, "512"),
            (8192, "8k"),
            (1 << 20, "1M"),
            (1536, "1536"),
            (0, "0"),
        ];
        for (bytes, text) in cases {
            assert_eq!(short_block(bytes, &[]), text);
        }
    }

    fn every(writes: u32) -> SyncPolicy {
        SyncPolicy::Every {
            writes,
            call: SyncCall::Fsync,
        }
    }

    #[test]
    fn operation_names_its_sync() {
        let cases = [
            (1000, SyncPolicy::None, "read"),
            (0, SyncPolicy::AtEnd, "write, final sync"),
            (0, every(1), "write+fsync"),
            (700, every(1), "70 % reads, write+fsync"),
            (0, every(9), "write, fsync every 9 writes"),
        ];
        for (read_permille, policy, text) in cases {
            assert_eq!(operation(&Streams::with_reads(read_permille), policy), text);
        }
        let pair = &[OpKind::Trim, OpKind::Write];
        let trims = [
            (&[OpKind::Trim][..], SyncPolicy::None, "trim"),
            (pair, SyncPolicy::None, "trim, write"),
            (pair, every(1), "trim, write+fsync"),
        ];
        for (does, policy, text) in trims {
            assert_eq!(operation(&Streams::doing(does), policy), text);
        }
    }

    #[test]
    fn block_mix_names_every_size() {
        let mix = [(4096, 3), (65536, 1)].map(|(block_bytes, weight)| BlockShare {
            block_bytes,
            weight,
        });
        assert_eq!(
            block(65536, &mix).replace('\u{a0}', " "),
            "75 % 4 KiB, 25 % 64 KiB"
        );
        assert_eq!(block(8192, &[]), "8 KiB");
    }

    #[test]
    fn number_has_three_digits_also_where_it_is_rounded_up() {
        let cases = [
            (0.0, "0"),
            (0.0512, "0.051"),
            (0.9994, "0.999"),
            (0.9996, "1.00"),
            (8.214, "8.21"),
            (9.996, "10.0"),
            (99.96, "100"),
            (5120.0, "5120"),
        ];
        for (value, text) in cases {
            assert_eq!(three_digits(value), text);
        }
        assert_eq!(third_digit_unit(1234.0), 10.0);
        assert_eq!(third_digit_unit(-5.0), 0.01);
        assert_eq!(third_digit_unit(0.0), 0.0);
    }
}
