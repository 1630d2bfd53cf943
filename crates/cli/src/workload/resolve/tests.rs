//! Exact workloads from flags, and every contradiction with its remedy.

use super::*;
use crate::workload::WorkloadAxes;
use crate::workload::limits::Memory;
use crate::workload::limits::sector_mismatch;
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

fn flags(line: &str) -> WorkloadFlags {
    let line = Line::try_parse_from(["x"].into_iter().chain(line.split_whitespace()))
        .unwrap_or_else(|error| panic!("{line}: {error}"));
    line.axes.expand(&line.flags).unwrap().remove(0)
}

fn on(line: &str, context: &ResolveContext) -> Result<Workload, String> {
    resolve(&flags(line), context, Wording::Flags).map_err(|error| error.to_string())
}

fn made(line: &str) -> Workload {
    on(line, &context()).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn default_workload() -> Workload {
    Workload {
        name: "randread".to_owned(),
        start: Start::AfterPrevious,
        streams: Streams::with_reads(1000),
        access: Access::Random {
            distribution: Distribution::Uniform,
        },
        block_bytes: 8192,
        block_mix: Vec::new(),
        depth: 1,
        workers: 1,
        span: Span::default(),
        stop: Stop {
            precision: Some(0.02),
            time_ns: Some(30 * SECOND),
            bytes: None,
            ops: None,
        },
        warmup_ns: SECOND,
        rate: None,
        sync: SyncPolicy::None,
        cache: CachePolicy::Direct,
        engine: EngineChoice::Auto,
        layout: Layout::Needed,
        verify: Verify::Off,
        ends_alone: false,
        drops_cache_first: false,
        shape: Default::default(),
        write_cache: None,
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
    let share = |block_bytes, weight| BlockShare {
        block_bytes,
        weight,
    };
    let zone = |access_percent, size_percent| Zone {
        access_percent,
        size_percent,
    };
    let expected = Workload {
        name: "x".to_owned(),
        streams: Streams::with_reads(333),
        access: Access::Zoned {
            zones: vec![zone(60.0, 10.0), zone(40.0, 90.0)],
        },
        block_bytes: 65536,
        block_mix: vec![share(4096, 60), share(65536, 40)],
        depth: 32,
        workers: 4,
        span: Span {
            start_bytes: GIB / 2,
            length_bytes: Some(GIB / 2),
        },
        stop: Stop {
            precision: Some(0.05),
            time_ns: Some(10 * SECOND),
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
    let access = |line: &str| made(line).access;
    assert_eq!(
        (made("--rw write --verify").verify, made("--cached").cache),
        (Verify::Checksum, CachePolicy::Cached)
    );
    assert_eq!(access("--rw read"), Access::Sequential);
    assert_eq!(access("--rw read --backward"), Access::Backward);
    assert_eq!(
        access("--rw read --stride 64k"),
        Access::Stride {
            stride_bytes: 65536
        }
    );
    assert_eq!(
        access("--distribution zipf:1.1"),
        Access::Random {
            distribution: Distribution::Zipf { theta: 1.1 }
        }
    );
    let hot = Distribution::HotCold {
        access_percent: 80.0,
        size_percent: 20.0,
    };
    assert_eq!(
        access("--random_distribution hot:80/20"),
        Access::Random { distribution: hot }
    );
}

#[test]
fn workload_ends_at_its_limit_or_when_its_rate_is_known() {
    let ends = |line: &str| {
        let workload = made(line);
        (
            workload.stop.precision,
            workload.stop.time_ns,
            workload.stop.bytes,
            workload.stop.ops,
            workload.warmup_ns,
        )
    };
    assert_eq!(
        ends("--time 2s"),
        (None, Some(2 * SECOND), None, None, SECOND / 10)
    );
    assert_eq!(
        ends("--precision 1%"),
        (Some(0.01), Some(30 * SECOND), None, None, SECOND)
    );
    assert_eq!(ends("--bytes 1M"), (None, None, Some(1 << 20), None, 0));
    assert_eq!(ends("--ops 5"), (None, None, None, Some(5), 0));
    assert_eq!(
        ends("--ops 5 --warmup 1s --time 1m"),
        (None, Some(60 * SECOND), None, Some(5), SECOND)
    );
}

#[test]
fn first_sequential_write_lays_the_file_out() {
    let layout = |line: &str| (made(line).layout, made(line).warmup_ns);
    assert_eq!(layout("--rw write"), (Layout::Provides, 0));
    assert_eq!(
        layout("--rw write --end-fsync --depth 8"),
        (Layout::Provides, 0)
    );
    for other in [
        "--rw randwrite",
        "--rw rw",
        "--rw write --backward",
        "--rw write --fsync 1",
        "--rw write --span 50%",
        "--rw write --jobs 2",
    ] {
        assert_eq!(layout(other), (Layout::Needed, SECOND), "{other}");
    }
    let mmap = ResolveContext {
        engine: Some(EngineChoice::Fixed(EngineKind::Mmap)),
        ..context()
    };
    assert_eq!(
        on("--rw write", &mmap).map(|w| w.layout),
        Ok(Layout::Needed)
    );
    let later = ResolveContext {
        content: Content::Data,
        ..context()
    };
    assert_eq!(
        on("--rw write", &later).map(|w| w.layout),
        Ok(Layout::Needed)
    );
}

#[test]
fn reads_that_check_earlier_data_cover_the_span_once() {
    let later = ResolveContext {
        content: Content::Data,
        ..context()
    };
    let stop = |line: &str| on(line, &later).map(|w| (w.verify, w.stop.bytes, w.stop.time_ns));
    let whole = later.target_bytes[0] / 8192 * 8192;
    assert_eq!(
        stop("--rw read --verify --bs 8k"),
        Ok((Verify::Checksum, Some(whole), None))
    );
    assert_eq!(
        stop("--rw randread --verify --span 0-1M --bs 8k"),
        Ok((Verify::Checksum, Some(1 << 20), None))
    );
    assert_eq!(
        stop("--verify --time 5s"),
        Ok((Verify::Checksum, None, Some(5 * SECOND)))
    );
    let mapped = ResolveContext {
        engine: Some(EngineChoice::Fixed(EngineKind::Mmap)),
        ..later
    };
    let error = on("--verify --cached", &mapped).unwrap_err();
    assert!(error.contains("makes no reads"), "{error}");
}

#[test]
fn spans_in_percent_follow_the_target() {
    let span = |line: &str, sizes: &[u64]| {
        let context = ResolveContext {
            target_bytes: sizes.to_vec(),
            ..context()
        };
        on(line, &context).map(|w| (w.span.start_bytes, w.span.length_bytes.unwrap_or(0)))
    };
    assert_eq!(span("--span 25-50%", &[GIB]), Ok((GIB / 4, GIB / 4)));
    // Down to whole blocks and pages, and to the very end.
    assert_eq!(span("--span 10%", &[1_000_000]), Ok((0, 98_304)));
    assert_eq!(span("--span 10% --bs 512", &[1_000_000]), Ok((0, 98_304)));
    assert_eq!(span("--span 50-100%", &[1_000_500]), Ok((499_712, 500_788)));
    assert_eq!(span("--span 0-8k", &[GIB, GIB / 2]), Ok((0, 8192)));
    // Decimal sizes are rounded down to sectors.
    assert_eq!(span("--span 1MB-100MB", &[GIB]), Ok((999_424, 99_000_320)));
    assert_eq!(span("--span 512-99328", &[GIB]), Ok((512, 98_816)));
    assert_eq!(
        span("--span 10%", &[GIB, GIB]),
        Ok((0, GIB / 10 / 8192 * 8192))
    );
    assert!(
        span("--span 10%", &[GIB, GIB / 2])
            .unwrap_err()
            .contains("use bytes")
    );
    assert!(
        span("--span 0-1G", &[GIB, GIB / 2])
            .unwrap_err()
            .contains("only 512 MiB")
    );
}

/// Contradicting flags, and the remedy that their error names.
const CONTRADICTIONS: &[(&str, &str)] = &[
    ("--backward", "use --rw read, write or rw"),
    ("--stride 64k", "use --rw read, write or rw"),
    (
        "--rw read --zones 50/50:50/50",
        "use --rw randread, randwrite or randrw",
    ),
    (
        "--rw write --distribution uniform",
        "use --rw randread, randwrite or randrw",
    ),
    (
        "--zones 50/50:50/50 --distribution uniform",
        "--zones and --distribution exclude each other",
    ),
    (
        "--rw read --backward --stride 64k",
        "--backward and --stride exclude each other",
    ),
    (
        "--rw read --backward --bssplit 4k/50:8k/50",
        "use --bs instead of --bssplit",
    ),
    ("--rw read --stride 12k", "use a multiple"),
    ("--rw read --stride 0", "use a multiple"),
    ("--rw read --stride 2G", "use a smaller step"),
    ("--bs 4k --bssplit 4k/50:8k/50", "use one of them"),
    ("--bs 1000", "use a multiple, or --buffered"),
    ("--bssplit 4k/50:1000/50", "use a multiple, or --buffered"),
    ("--rwmixread 50", "use --rw rw or randrw"),
    ("--rw write --rwmixread 50", "use --rw rw or randrw"),
    ("--depth 0", "use 1 to 4096"),
    ("--depth 4097", "use 1 to 4096"),
    ("--jobs 0", "use 1 to 1024"),
    ("--jobs 1025", "use 1 to 1024"),
    (
        "--depth 4096 --jobs 64 --bs 8k --rw randrw",
        "reduce one of them",
    ),
    ("--rw write --fsync 1 --fdatasync 1", "exclude each other"),
    ("--rw write --fsync 1 --end-fsync", "use one of them"),
    ("--rw write --fsync 0", "use 1 to sync after each write"),
    ("--fsync 1", "use --rw write, rw, randwrite or randrw"),
    ("--end-fsync", "use --rw write, rw, randwrite or randrw"),
    (
        "--rw randrw --rwmixread 100 --verify",
        "use --rw write, rw, randwrite or randrw",
    ),
    ("--verify", "a scratch file is new; name the file or device"),
    (
        "--rw write --verify --bssplit 4k/50:8k/50",
        "use a size such as --bs 4k",
    ),
    (
        "--rw write --verify --buffered --bs 100",
        "use a size such as --bs 4k",
    ),
    ("--buffered --cached", "use one of them"),
    ("--time 0", "use a duration such as 10s"),
    ("--ops 0", "use at least 1"),
    ("--bytes 4k", "use more bytes or smaller blocks"),
    (
        "--bytes 64k --bssplit 4k/99:128k/1",
        "use more bytes or smaller blocks",
    ),
    ("--span 0-2G", "use a smaller span"),
    ("--span 0.0001%", "use a larger part"),
    ("--span 0-4k", "use a smaller block or a larger span"),
    (
        "--rw read --jobs 64 --span 0-64k",
        "use a larger span, or reduce --jobs or --depth",
    ),
    ("--zones 1/0.0001:99/99.9999", "use larger zones"),
    ("--distribution hot:80/0.0001", "use larger zones"),
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
        let error = resolve(&flags(line), &context(), Wording::Keys)
            .expect_err(line)
            .to_string();
        assert!(
            !error.replace("--size", "").contains("--"),
            "{line}: {error}"
        );
    }
}

#[test]
fn mmap_equal_targets_and_unknown_memory_are_accepted() {
    let mmap = ResolveContext {
        engine: Some(EngineChoice::Fixed(EngineKind::Mmap)),
        ..context()
    };
    // A memory mapping always uses the page cache.
    let caches =
        ["", "--buffered", "--bs 1000", "--cached"].map(|line| on(line, &mmap).unwrap().cache);
    assert_eq!(
        caches,
        [
            CachePolicy::Buffered,
            CachePolicy::Buffered,
            CachePolicy::Buffered,
            CachePolicy::Cached
        ]
    );
    // A rate applies to each target.
    assert!(
        on(
            "--rate 5",
            &ResolveContext {
                target_bytes: vec![GIB; 2],
                ..context()
            }
        )
        .is_ok()
    );
    assert!(
        on(
            "--depth 4096 --jobs 64 --bs 8k",
            &ResolveContext {
                memory: Memory::default(),
                ..context()
            }
        )
        .is_ok()
    );
}

#[test]
fn buffers_fit_into_the_free_memory() {
    let free = |free_bytes| ResolveContext {
        memory: Memory {
            free_bytes,
            ..context().memory
        },
        ..context()
    };
    let load = "--depth 1024 --bs 1M";
    assert!(on(load, &free(Some(2 * GIB))).is_ok() && on(load, &free(None)).is_ok());
    let error = on(load, &free(Some(GIB))).unwrap_err();
    assert!(
        error.contains("needs 1 GiB of buffers, but half of the free memory is 512 MiB"),
        "{error}"
    );
    // The journal of 2^28 blocks takes 1 GiB.
    let large = ResolveContext {
        target_bytes: vec![128 * GIB],
        ..free(Some(GIB))
    };
    let verified = "--rw write --verify --bs 512 --buffered";
    assert!(on(&format!("{verified} --span 0-32G"), &large).is_ok());
    let error = on(verified, &large).unwrap_err();
    assert!(
        error.contains("and --verify needs 1 GiB")
            && error.ends_with("reduce one of them or the --span"),
        "{error}"
    );
}

#[test]
fn sector_mismatch_names_the_block_or_the_start() {
    assert_eq!(sector_mismatch(&made("--bs 512"), 512), None);
    assert!(
        sector_mismatch(&made("--bs 512"), 4096)
            .unwrap()
            .contains("4096 bytes")
    );
    assert!(
        sector_mismatch(&made("--bssplit 512/50:8k/50"), 4096)
            .unwrap()
            .contains("blocks of 512")
    );
    assert_eq!(sector_mismatch(&made("--bs 512 --buffered"), 4096), None);
    assert!(
        sector_mismatch(&made("--span 512-1000000"), 4096)
            .unwrap()
            .contains("start at byte 512")
    );
    assert_eq!(sector_mismatch(&made("--span 512-1000000"), 512), None);
    assert_eq!(
        sector_mismatch(&made("--span 100-1000000 --buffered"), 512),
        None
    );
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
        if let Ok(workload) = resolve(&flags, &context, Wording::Keys) {
            let length = workload.span.length_bytes.unwrap();
            let block = u64::from(workload.block_bytes);
            prop_assert!(workload.span.start_bytes + length <= size && length >= block);
            let in_flight = u64::from(workload.depth * workload.workers);
            prop_assert!(in_flight * block <= 2 * GIB);
        }
    }
}
