//! Exact workloads from flags, and every contradiction with its remedy.

use super::*;
use crate::workload::WorkloadAxes;
use crate::workload::limits::{Memory, Wording, sector_mismatch};
use clap::Parser;
use diskproof_model::plan::Zone;
use diskproof_model::stream::Streams;
use proptest::prelude::*;

const GIB: u64 = 1 << 30;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    flags: WorkloadFlags,
    #[command(flatten)]
    axes: WorkloadAxes,
}

fn context() -> ResolveContext {
    let memory = Memory {
        installed_bytes: Some(8 * GIB),
        free_bytes: None,
    };
    ResolveContext {
        target_bytes: vec![GIB],
        memory,
        content: Content::Nothing,
        engine: None,
    }
}

/// With a target that has content.
fn later() -> ResolveContext {
    ResolveContext {
        content: Content::Data,
        ..context()
    }
}

fn by_mmap() -> ResolveContext {
    ResolveContext {
        engine: Some(EngineChoice::Fixed(EngineKind::Mmap)),
        ..context()
    }
}

fn flags(line: &str) -> WorkloadFlags {
    let line = Line::try_parse_from(["x"].into_iter().chain(line.split_whitespace()))
        .unwrap_or_else(|error| panic!("{line}: {error}"));
    line.axes.expand(&line.flags).unwrap().remove(0)
}

fn on(line: &str, context: &ResolveContext) -> Result<Workload, String> {
    resolve(&flags(line), context).map_err(|error| error.text(Wording::Flags))
}

fn made(line: &str) -> Workload {
    on(line, &context()).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn default_workload() -> Workload {
    Workload {
        streams: Streams::with_reads(1000),
        access: Access::Random {
            distribution: Distribution::Uniform,
        },
        block_bytes: 8192,
        depth: 1,
        workers: 1,
        stop: Stop {
            precision: Some(0.02),
            time_ns: Some(30 * SECOND_NS),
            bytes: None,
            ops: None,
        },
        warmup_ns: SECOND_NS,
        cache: CachePolicy::Direct,
        engine: EngineChoice::Auto,
        layout: Layout::Needed,
        ..Workload::named("randread")
    }
}

#[test]
fn workload_without_flags_reads_at_random() {
    assert_eq!(made(""), default_workload());
}

#[test]
fn workload_takes_every_flag() {
    let line = "--name x --rw randrw --bssplit 4k/60:64k/40 --depth 32 --jobs 4 --rwmixread 33.3 \
                --rate 1000 --precision 5% --time 10s --bytes 1G --ops 99 --warmup 250ms --span \
                512M-1G --zones 60/10:40/90 --fdatasync 3 --buffered";
    let expected = Workload {
        name: "x".to_owned(),
        streams: Streams::with_reads(333),
        access: Access::Zoned {
            zones: vec![
                Zone {
                    access_percent: 60.0,
                    size_percent: 10.0,
                },
                Zone {
                    access_percent: 40.0,
                    size_percent: 90.0,
                },
            ],
        },
        block_bytes: 65536,
        block_mix: vec![BlockShare::new(4096, 60), BlockShare::new(65536, 40)],
        depth: 32,
        workers: 4,
        span: Span {
            start_bytes: GIB / 2,
            length_bytes: Some(GIB / 2),
        },
        stop: Stop {
            precision: Some(0.05),
            time_ns: Some(10 * SECOND_NS),
            bytes: Some(GIB),
            ops: Some(99),
        },
        warmup_ns: 250_000_000,
        rate: Some(1000.0),
        sync: SyncPolicy::Every {
            writes: 3,
            call: SyncCall::Fdatasync,
        },
        cache: CachePolicy::Buffered,
        ..default_workload()
    };
    assert_eq!(made(line), expected);
    // The same with the names of fio.
    let fio = "--name x --rw randrw --bssplit 4k/60:64k/40 --iodepth 32 --numjobs 4 --rwmixread \
               33.3 --rate_iops 1000 --precision 5% --runtime 10 --io_size 1G --number_ios 99 \
               --ramp_time 250ms --span 512M-1G --zones 60/10:40/90 --fdatasync 3 --buffered";
    assert_eq!(made(fio), expected);
}

#[test]
fn workload_takes_orders_and_distributions() {
    assert_eq!(made("--rw write --verify").verify, Verify::Checksum);
    assert_eq!(made("--cached").cache, CachePolicy::Cached);
    let zipf = Distribution::Zipf { theta: 1.1 };
    let hot = Distribution::HotCold {
        access_percent: 80.0,
        size_percent: 20.0,
    };
    let stride_bytes = 65536;
    for (line, access) in [
        ("--rw read", Access::Sequential),
        ("--rw read --backward", Access::Backward),
        ("--rw read --stride 64k", Access::Stride { stride_bytes }),
        (
            "--distribution zipf:1.1",
            Access::Random { distribution: zipf },
        ),
        (
            "--random_distribution hot:80/20",
            Access::Random { distribution: hot },
        ),
    ] {
        assert_eq!(made(line).access, access, "{line}");
    }
}

#[test]
fn workload_ends_at_its_limit_or_when_its_rate_is_known() {
    let two_seconds = Stop {
        time_ns: Some(2 * SECOND_NS),
        ..Stop::default()
    };
    let precise = Stop {
        precision: Some(0.01),
        time_ns: Some(30 * SECOND_NS),
        ..Stop::default()
    };
    let one_mib = Stop {
        bytes: Some(1 << 20),
        ..Stop::default()
    };
    let five = Stop {
        ops: Some(5),
        ..Stop::default()
    };
    let five_in_a_minute = Stop {
        time_ns: Some(60 * SECOND_NS),
        ..five
    };
    for (line, stop, warmup_ns) in [
        ("--time 2s", two_seconds, SECOND_NS / 10),
        ("--precision 1%", precise, SECOND_NS),
        ("--bytes 1M", one_mib, 0),
        ("--ops 5", five, 0),
        ("--ops 5 --warmup 1s --time 1m", five_in_a_minute, SECOND_NS),
    ] {
        let workload = made(line);
        assert_eq!(workload.stop, stop, "{line}");
        assert_eq!(workload.warmup_ns, warmup_ns, "{line}");
    }
}

#[test]
fn first_sequential_write_lays_the_file_out() {
    for line in ["--rw write", "--rw write --end-fsync --depth 8"] {
        let workload = made(line);
        assert_eq!(workload.layout, Layout::Provides, "{line}");
        assert_eq!(workload.warmup_ns, 0, "{line}");
    }
    for other in [
        "--rw randwrite",
        "--rw rw",
        "--rw write --backward",
        "--rw write --fsync 1",
        "--rw write --span 50%",
        "--rw write --jobs 2",
    ] {
        let workload = made(other);
        assert_eq!(workload.layout, Layout::Needed, "{other}");
        assert_eq!(workload.warmup_ns, SECOND_NS, "{other}");
    }
    for trims in ["--rw trim", "--rw trimwrite"] {
        assert_eq!(made(trims).layout, Layout::Needed, "{trims}");
    }
    for context in [by_mmap(), later()] {
        let workload = on("--rw write", &context).unwrap();
        assert_eq!(workload.layout, Layout::Needed);
    }
}

#[test]
fn check_covers_the_span_once_whatever_its_size() {
    let later = later();
    let whole = later.target_bytes[0] / 8192 * 8192;
    for (line, bytes, time_ns) in [
        ("--rw read --verify --bs 8k", Some(whole), None),
        (
            "--rw randread --verify --span 0-1M --bs 8k",
            Some(1 << 20),
            None,
        ),
        ("--verify --time 5s", None, Some(5 * SECOND_NS)),
        ("--rw write --verify --bs 8k", Some(whole), None),
        (
            "--rw write --verify --bs 8k --time 5s",
            None,
            Some(5 * SECOND_NS),
        ),
    ] {
        let found = on(line, &later).unwrap();
        assert_eq!(found.verify, Verify::Checksum, "{line}");
        assert_eq!(
            (found.stop.bytes, found.stop.time_ns),
            (bytes, time_ns),
            "{line}"
        );
    }
    let mapped = ResolveContext {
        content: Content::Data,
        ..by_mmap()
    };
    let error = on("--verify --cached", &mapped).unwrap_err();
    assert!(error.contains("--verify"), "{error}");
}

fn span_on(line: &str, target_bytes: &[u64]) -> Result<Span, String> {
    let context = ResolveContext {
        target_bytes: target_bytes.to_vec(),
        ..context()
    };
    on(line, &context).map(|workload| workload.span)
}

#[test]
fn spans_in_percent_follow_the_target() {
    for (line, target_bytes, start, length) in [
        ("--span 25-50%", &[GIB][..], GIB / 4, GIB / 4),
        // Down to whole blocks and pages, and to the very end.
        ("--span 10%", &[1_000_000], 0, 98_304),
        ("--span 10% --bs 512", &[1_000_000], 0, 98_304),
        ("--span 50-100%", &[1_000_500], 499_712, 500_788),
        ("--span 0-8k", &[GIB, GIB / 2], 0, 8192),
        // Decimal sizes are rounded down to sectors.
        ("--span 1MB-100MB", &[GIB], 999_424, 99_000_320),
        ("--span 512-99328", &[GIB], 512, 98_816),
        ("--span 10%", &[GIB, GIB], 0, GIB / 10 / 8192 * 8192),
    ] {
        let span = span_on(line, target_bytes);
        assert_eq!(span, Ok(Span::new(start, Some(length))), "{line}");
    }
    for (line, part) in [("--span 10%", "bytes"), ("--span 0-1G", "only 512 MiB")] {
        let error = span_on(line, &[GIB, GIB / 2]).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

/// Contradicting flags, and flags or figures of the remedy that their error names.
const CONTRADICTIONS: &[(&str, &str)] = &[
    ("--backward", "--rw read, write or rw"),
    ("--stride 64k", "--rw read, write or rw"),
    (
        "--rw read --zones 50/50:50/50",
        "--rw randread, randwrite or randrw",
    ),
    (
        "--rw write --distribution uniform",
        "--rw randread, randwrite or randrw",
    ),
    (
        "--zones 50/50:50/50 --distribution uniform",
        "--zones and --distribution",
    ),
    (
        "--rw read --backward --stride 64k",
        "--backward and --stride",
    ),
    (
        "--rw read --backward --bssplit 4k/50:8k/50",
        "--bs instead of --bssplit",
    ),
    ("--rw read --stride 12k", "8192"),
    ("--rw read --stride 0", "8192"),
    ("--rw read --stride 2G", "1 GiB"),
    ("--bs 4k --bssplit 4k/50:8k/50", "--bs and --bssplit"),
    ("--bs 1000", "512, which direct"),
    ("--bssplit 4k/50:1000/50", "512, which direct"),
    ("--rwmixread 50", "--rw rw or randrw"),
    ("--rw write --rwmixread 50", "--rw rw or randrw"),
    ("--depth 0", "1 to 4096"),
    ("--depth 4097", "1 to 4096"),
    ("--jobs 0", "1 to 1024"),
    ("--jobs 1025", "1 to 1024"),
    (
        "--depth 4096 --jobs 64 --bs 8k --rw randrw",
        "memory is 2 GiB",
    ),
    (
        "--rw write --fsync 1 --fdatasync 1",
        "--fsync and --fdatasync",
    ),
    (
        "--rw write --fsync 1 --end-fsync",
        "--fsync and --end-fsync",
    ),
    ("--rw write --fsync 0", "--fsync"),
    ("--fsync 1", "--rw write, rw, randwrite or randrw"),
    ("--end-fsync", "--rw write, rw, randwrite or randrw"),
    (
        "--rw randrw --rwmixread 100 --verify",
        "--rw write, rw, randwrite or randrw",
    ),
    ("--verify", "--rw write, rw, randwrite or randrw"),
    ("--rw write --verify --bssplit 4k/50:8k/50", "--bs 4k"),
    ("--rw write --verify --buffered --bs 100", "--bs 4k"),
    ("--buffered --cached", "--buffered and --cached"),
    ("--time 0", "10s"),
    ("--ops 0", "at least 1"),
    ("--bytes 4k", "block of 8 KiB"),
    ("--bytes 64k --bssplit 4k/99:128k/1", "block of 128 KiB"),
    ("--span 0-2G", "only 1 GiB"),
    ("--span 0.0001%", "--span"),
    ("--span 0-4k", "block of 8 KiB"),
    ("--rw read --jobs 64 --span 0-64k", "64 blocks of 8 KiB"),
    ("--zones 1/0.0001:99/99.9999", "0.0001 % of 1 GiB"),
    ("--distribution hot:80/0.0001", "0.0001 % of 1 GiB"),
];

#[test]
fn contradiction_names_its_remedy() {
    for (line, remedy) in CONTRADICTIONS {
        let error = on(line, &context()).expect_err(line);
        assert!(
            error.contains(remedy) && !error.ends_with('.'),
            "{line}: {error}"
        );
        // For a plan file, the error names keys.
        let error = resolve(&flags(line), &context())
            .expect_err(line)
            .text(Wording::Keys)
            .replace("--size", "");
        assert!(!error.contains("--"), "{line}: {error}");
    }
}

#[test]
fn mmap_equal_targets_and_unknown_memory_are_accepted() {
    // A memory mapping always uses the page cache.
    for (line, cache) in [
        ("", CachePolicy::Buffered),
        ("--buffered", CachePolicy::Buffered),
        ("--bs 1000", CachePolicy::Buffered),
        ("--cached", CachePolicy::Cached),
    ] {
        assert_eq!(on(line, &by_mmap()).unwrap().cache, cache, "{line}");
    }
    // A rate applies to each target.
    let two = ResolveContext {
        target_bytes: vec![GIB; 2],
        ..context()
    };
    on("--rate 5", &two).unwrap();
    let unknown = ResolveContext {
        memory: Memory::default(),
        ..context()
    };
    on("--depth 4096 --jobs 64 --bs 8k", &unknown).unwrap();
}

fn with_free_memory(free_bytes: Option<u64>) -> ResolveContext {
    ResolveContext {
        memory: Memory {
            free_bytes,
            ..context().memory
        },
        ..context()
    }
}

#[test]
fn buffers_fit_into_the_free_memory() {
    let load = "--depth 1024 --bs 1M";
    for enough in [Some(2 * GIB), None] {
        assert!(on(load, &with_free_memory(enough)).is_ok(), "{enough:?}");
    }
    let error = on(load, &with_free_memory(Some(GIB))).unwrap_err();
    assert!(
        error.contains("1 GiB of buffers") && error.contains("512 MiB"),
        "{error}"
    );
    // The journal of 2^28 blocks takes 1 GiB.
    let large = ResolveContext {
        target_bytes: vec![128 * GIB],
        ..with_free_memory(Some(GIB))
    };
    let verified = "--rw write --verify --bs 512 --buffered";
    assert!(on(&format!("{verified} --span 0-32G"), &large).is_ok());
    let error = on(verified, &large).unwrap_err();
    assert!(
        error.contains("--verify needs 1 GiB") && error.ends_with("--span"),
        "{error}"
    );
}

#[test]
fn sector_mismatch_names_the_block_or_the_start() {
    for (line, sector_bytes, part) in [
        ("--bs 512", 512, None),
        ("--bs 512", 4096, Some("4096 bytes")),
        ("--bssplit 512/50:8k/50", 4096, Some("blocks of 512")),
        ("--bs 512 --buffered", 4096, None),
        ("--span 512-1000000", 4096, Some("byte 512")),
        ("--span 512-1000000", 512, None),
        ("--span 100-1000000 --buffered", 512, None),
    ] {
        let found = sector_mismatch(&made(line), sector_bytes);
        assert_eq!(found.is_some(), part.is_some(), "{line}");
        assert!(
            found.unwrap_or_default().contains(part.unwrap_or_default()),
            "{line}"
        );
    }
}

proptest! {
    /// An accepted workload can run: its span lies within the target and holds its blocks.
    #[test]
    fn accepted_workload_fits_its_target(
        size in 1u64..1 << 32, bs in 1u32..1 << 26, depth in 0u64..5000, jobs in 0u64..1100,
        from in 0u64..110, to in 0u64..110, rw in 0usize..6,
    ) {
        let rw = ["read", "write", "rw", "randread", "randwrite", "randrw"][rw];
        let line = format!(
            "--rw {rw} --bs {bs} --depth {depth} --jobs {jobs} --buffered --span {from}-{to}%"
        );
        let arguments = ["x"].into_iter().chain(line.split_whitespace());
        let Ok(Line { flags, axes }) = Line::try_parse_from(arguments) else {
            return Ok(());
        };
        let flags = axes.expand(&flags).unwrap().remove(0);
        let context = ResolveContext { target_bytes: vec![size], ..context() };
        if let Ok(workload) = resolve(&flags, &context) {
            let length = workload.span.length_bytes.unwrap();
            let block = u64::from(workload.block_bytes);
            prop_assert!(workload.span.start_bytes + length <= size && length >= block);
            let in_flight = u64::from(workload.depth * workload.workers);
            prop_assert!(in_flight * block <= 2 * GIB);
        }
    }
}

/// A block has content for one trim only, whichever worker makes it.
#[test]
fn workers_of_random_trims_share_the_blocks() {
    for (line, is_shared) in [
        ("--rw randtrim", false),
        ("--rw randtrim --jobs 4", true),
        ("--rw randwrite --jobs 4", false),
    ] {
        let order = on(line, &later()).unwrap().shape.order;
        assert_eq!(order.workers_share_map, is_shared, "{line}");
        assert!(order.each_block_once || !is_shared);
    }
}
