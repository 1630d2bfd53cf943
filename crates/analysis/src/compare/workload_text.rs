//! Writes the conditions of a workload in words, for the reasons that state the value of each side.

use super::reasons::MeasuredSpan;
use diskproof_model::op::OpKind;
use diskproof_model::plan::{Access, Distribution, SyncPolicy, Workload, Zone};
use diskproof_model::shape::LoadShape;
use diskproof_model::stream::Streams;
use diskproof_model::transaction::Transaction;
use diskproof_model::units::{counted, format_bytes, format_rate};

/// `it ran together with scan, load`.
pub(super) fn concurrent_text(names: &[String]) -> String {
    if names.is_empty() {
        return "it ran alone".to_owned();
    }
    format!("it ran together with {}", names.join(", "))
}

/// `70 % reads, each block read before it is written`.
pub(super) fn streams_text(streams: &Streams) -> String {
    let reads = f64::from(streams.permille(OpKind::Read)) / 10.0;
    let mut facts = vec![format!("{reads} % reads")];
    facts.extend(streams.facts());
    facts.join(", ")
}

/// `4 reads, a log record of 8 KiB, 1 write`.
pub(super) fn transaction_text(transaction: Option<&Transaction>) -> String {
    let Some(transaction) = transaction else {
        return "no transactions".to_owned();
    };
    format!(
        "{}, a log record of {}, {}",
        counted(u64::from(transaction.reads), "read"),
        format_bytes(u64::from(transaction.log_bytes)),
        counted(u64::from(transaction.writes), "write")
    )
}

/// The order of offsets: `sequential`, or `random, Zipf 1.1`.
pub(super) fn access_text(access: &Access) -> String {
    match access {
        Access::Sequential => "sequential".to_owned(),
        Access::Backward => "backwards".to_owned(),
        Access::Stride { stride_bytes } => format!("in strides of {}", format_bytes(*stride_bytes)),
        Access::Random { distribution } => distribution_text(distribution),
        Access::Zoned { zones } => {
            format!("random in {} zones ({})", zones.len(), zones_text(zones))
        }
    }
}

/// The distribution of random offsets: `random, Zipf 1.1`.
fn distribution_text(distribution: &Distribution) -> String {
    match distribution {
        Distribution::Uniform => "random".to_owned(),
        Distribution::Zipf { theta } => format!("random, Zipf {theta}"),
        Distribution::Pareto { share } => format!("random, Pareto {share}"),
        Distribution::Normal { spread_percent } => format!("random, normal {spread_percent} %"),
        Distribution::HotCold {
            access_percent,
            size_percent,
        } => {
            format!("random, {access_percent} % of the operations on {size_percent} % of the span")
        }
    }
}

/// `60 % of the operations on 10 % of the span, 40 % on 90 %`: the first one says what the numbers
/// are.
fn zones_text(zones: &[Zone]) -> String {
    let mut texts = Vec::new();
    for zone in zones {
        let (accesses, size) = (zone.access_percent, zone.size_percent);
        texts.push(if texts.is_empty() {
            format!("{accesses} % of the operations on {size} % of the span")
        } else {
            format!("{accesses} % on {size} %")
        });
    }
    texts.join(", ")
}

/// The block sizes of a workload.
#[derive(PartialEq)]
pub(super) struct BlockSizes {
    /// The largest one.
    largest_bytes: u32,
    /// The share of each size; empty where there is one size only.
    mix: Vec<SizeShare>,
}

/// A block size, and the share of the operations that have it.
#[derive(Clone, PartialEq)]
struct SizeShare {
    block_bytes: u32,
    share: f64,
}

impl BlockSizes {
    /// Takes shares in place of weights: 6 to 4 is the same mix as 60 to 40.
    pub(super) fn of_workload(workload: &Workload) -> Self {
        let weights = workload.block_mix.iter().map(|size| u64::from(size.weight));
        let total = weights.sum::<u64>().max(1);
        let mut mix = Vec::new();
        for size in &workload.block_mix {
            mix.push(SizeShare {
                block_bytes: size.block_bytes,
                share: f64::from(size.weight) / total as f64,
            });
        }
        Self {
            largest_bytes: workload.block_bytes,
            mix,
        }
    }
}

/// `8 KiB`, or for several sizes their shares: `75 % 4 KiB, 25 % 8 KiB`.
pub(super) fn block_sizes_text(sizes: BlockSizes) -> String {
    if sizes.mix.is_empty() {
        return format_bytes(u64::from(sizes.largest_bytes));
    }
    let mut texts = Vec::new();
    for size in &sizes.mix {
        let bytes = format_bytes(u64::from(size.block_bytes));
        texts.push(format!("{} {bytes}", percent_text(size.share)));
    }
    texts.join(", ")
}

/// What else shapes the load: `no other conditions` where nothing does.
pub(super) fn shape_text(shape: &LoadShape) -> String {
    let facts = shape.facts();
    if facts.is_empty() {
        return "no other conditions".to_owned();
    }
    facts.join(", ")
}

/// The offered load in operations per second; `None`: the next one starts when one ends.
pub(super) fn offered_rate_text(rate: Option<f64>) -> String {
    match rate {
        Some(rate) => format!("{}/s offered", format_rate(rate)),
        None => "as fast as it goes".to_owned(),
    }
}

/// When data is made durable: `fdatasync after each write`.
pub(super) fn sync_text(sync: SyncPolicy) -> String {
    match sync {
        SyncPolicy::None => "no sync".to_owned(),
        SyncPolicy::AtEnd => "a sync at the end".to_owned(),
        SyncPolicy::Every {
            writes: 0 | 1,
            call,
        } => format!("{} after each write", call.as_str()),
        SyncPolicy::Every { writes, call } => format!("{} after {writes} writes", call.as_str()),
        SyncPolicy::WithWrite { flag } => format!("{} writes", flag.as_str()),
        SyncPolicy::Shared { call } => format!("{} shared by all writers", call.as_str()),
        SyncPolicy::OtherDescriptor { call } => {
            format!("{} through another descriptor", call.as_str())
        }
    }
}

/// `span of 8 GiB from 1 GiB`.
pub(super) fn span_text(span: MeasuredSpan) -> String {
    let length = format_bytes(span.length_bytes);
    match span.start_bytes {
        0 => format!("span of {length}"),
        start_bytes => format!("span of {length} from {}", format_bytes(start_bytes)),
    }
}

/// `40 %`.
pub(super) fn percent_text(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::plan::SyncCall;
    use diskproof_model::sync::WriteFlag;

    #[test]
    fn first_zone_says_what_the_numbers_are() {
        let zones = [(60.0, 10.0), (40.0, 90.0)].map(|(access_percent, size_percent)| Zone {
            access_percent,
            size_percent,
        });
        assert_eq!(
            zones_text(&zones),
            "60 % of the operations on 10 % of the span, 40 % on 90 %"
        );
    }

    #[test]
    fn block_sizes_are_shares_where_there_are_several() {
        let single = BlockSizes {
            largest_bytes: 8192,
            mix: Vec::new(),
        };
        assert_eq!(block_sizes_text(single), "8 KiB");
        let mixed = BlockSizes {
            largest_bytes: 8192,
            mix: [(4096, 0.75), (8192, 0.25)]
                .map(|(block_bytes, share)| SizeShare { block_bytes, share })
                .to_vec(),
        };
        assert_eq!(block_sizes_text(mixed), "75 % 4 KiB, 25 % 8 KiB");
    }

    #[test]
    fn span_from_the_start_names_its_length_alone() {
        let mut span = MeasuredSpan {
            start_bytes: 0,
            length_bytes: 8 << 30,
        };
        assert_eq!(span_text(span), "span of 8 GiB");
        span.start_bytes = 1 << 30;
        assert_eq!(span_text(span), "span of 8 GiB from 1 GiB");
    }

    /// Each value of a condition has words of its own, so that a reason shows what differs.
    #[track_caller]
    fn assert_all_differ(texts: &[String]) {
        for (index, text) in texts.iter().enumerate() {
            assert!(!text.is_empty());
            assert!(!texts[..index].contains(text), "{text} stands twice");
        }
    }

    #[test]
    fn each_order_of_offsets_has_words_of_its_own() {
        let mut orders = vec![
            Access::Sequential,
            Access::Backward,
            Access::Stride { stride_bytes: 8192 },
            Access::Zoned { zones: Vec::new() },
        ];
        for distribution in [
            Distribution::Uniform,
            Distribution::Zipf { theta: 1.1 },
            Distribution::Pareto { share: 0.2 },
            Distribution::Normal {
                spread_percent: 10.0,
            },
            Distribution::HotCold {
                access_percent: 90.0,
                size_percent: 10.0,
            },
        ] {
            orders.push(Access::Random { distribution });
        }
        let texts: Vec<String> = orders.iter().map(access_text).collect();
        assert_all_differ(&texts);
    }

    #[test]
    fn each_sync_has_words_of_its_own() {
        let call = SyncCall::Fdatasync;
        let every = |writes: u32| SyncPolicy::Every { writes, call };
        let policies = [
            SyncPolicy::None,
            SyncPolicy::AtEnd,
            every(1),
            every(8),
            SyncPolicy::Every {
                writes: 1,
                call: SyncCall::Fsync,
            },
            SyncPolicy::Shared { call },
            SyncPolicy::OtherDescriptor { call },
            SyncPolicy::WithWrite {
                flag: WriteFlag::OpenDsync,
            },
        ];
        assert_all_differ(&policies.map(sync_text));
        assert_eq!(sync_text(every(0)), sync_text(every(1)));
    }

    #[test]
    fn operations_begin_with_the_share_of_reads() {
        assert_eq!(streams_text(&Streams::with_reads(700)), "70 % reads");
        assert_eq!(streams_text(&Streams::with_reads(0)), "0 % reads");
        assert_eq!(streams_text(&Streams::with_reads(995)), "99.5 % reads");
    }

    #[test]
    fn absent_condition_has_words_too() {
        assert_all_differ(&[
            offered_rate_text(None),
            offered_rate_text(Some(100.0)),
            transaction_text(None),
            concurrent_text(&[]),
            concurrent_text(&["scan".to_owned()]),
            shape_text(&LoadShape::default()),
        ]);
    }

    #[test]
    fn transaction_states_its_reads_its_log_and_its_writes() {
        let transaction = Transaction {
            reads: 4,
            log_bytes: 8192,
            log_span_bytes: 1 << 20,
            writes: 1,
        };
        assert_eq!(
            transaction_text(Some(&transaction)),
            "4 reads, a log record of 8 KiB, 1 write"
        );
    }
}
