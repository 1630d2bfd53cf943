//! Flags to workload, exactly; and every contradiction with what to do about it.

use super::*;
use clap::Parser;
use proptest::prelude::*;

const GIB: u64 = 1 << 30;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    flags: WorkloadFlags,
}

fn ground() -> Ground {
    let memory = Memory {
        installed_bytes: Some(8 * GIB),
        free_bytes: None,
    };
    Ground {
        target_bytes: vec![GIB],
        memory,
        content: Content::Nothing,
        engine: None,
    }
}

fn flags(line: &str) -> WorkloadFlags {
    Line::try_parse_from(["x"].into_iter().chain(line.split_whitespace()))
        .unwrap_or_else(|error| panic!("{line}: {error}"))
        .flags
}

fn on(line: &str, ground: &Ground) -> Result<Workload, String> {
    resolve(&flags(line), ground, Wording::Flags).map_err(|error| error.to_string())
}

fn made(line: &str) -> Workload {
    on(line, &ground()).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn default_workload() -> Workload {
    Workload {
        name: "randread".to_owned(),
        start: Start::AfterPrevious,
        read_permille: 1000,
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
    }
}

#[test]
fn without_flags_it_reads_at_random() {
    assert_eq!(made(""), default_workload());
}

#[test]
fn every_flag_arrives() {
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
        read_permille: 333,
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
    // The same in fio's spelling.
    let fio = "--name x --rw randrw --bssplit 4k/60:64k/40 --iodepth 32 --numjobs 4 --rwmixread \
               33.3 --rate_iops 1000 --precision 5% --runtime 10 --io_size 1G --number_ios 99 \
               --ramp_time 250ms --span 512M-1G --zones 60/10:40/90 --fdatasync 3 --buffered";
    assert_eq!(made(fio), expected);
}

#[test]
fn walks_and_laws_arrive() {
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
fn a_workload_ends_where_the_user_said_and_else_when_it_is_known() {
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
fn the_first_sequential_write_lays_the_file_out() {
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
    let mmap = Ground {
        engine: Some(EngineChoice::Fixed(EngineKind::Mmap)),
        ..ground()
    };
    assert_eq!(
        on("--rw write", &mmap).map(|w| w.layout),
        Ok(Layout::Needed)
    );
    let later = Ground {
        content: Content::Data,
        ..ground()
    };
    assert_eq!(
        on("--rw write", &later).map(|w| w.layout),
        Ok(Layout::Needed)
    );
}

#[test]
fn spans_in_percent_follow_the_target() {
    let span = |line: &str, sizes: &[u64]| {
        let ground = Ground {
            target_bytes: sizes.to_vec(),
            ..ground()
        };
        on(line, &ground).map(|w| (w.span.start_bytes, w.span.length_bytes.unwrap_or(0)))
    };
    assert_eq!(span("--span 25-50%", &[GIB]), Ok((GIB / 4, GIB / 4)));
    // Down to whole blocks and pages, and to the very end.
    assert_eq!(span("--span 10%", &[1_000_000]), Ok((0, 98_304)));
    assert_eq!(span("--span 10% --bs 512", &[1_000_000]), Ok((0, 98_304)));
    assert_eq!(span("--span 50-100%", &[1_000_500]), Ok((499_712, 500_788)));
    assert_eq!(span("--span 0-8k", &[GIB, GIB / 2]), Ok((0, 8192)));
    // Decimal sizes come to lie on sectors, others stay.
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

#[test]
fn contradictions_say_what_to_do() {
    let cases = [
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
            "make one of them smaller",
        ),
        ("--rw write --fsync 1 --fdatasync 1", "exclude each other"),
        ("--rw write --fsync 1 --end-fsync", "use one of them"),
        ("--rw write --fsync 0", "use 1 to sync after each write"),
        ("--fsync 1", "use a writing --rw"),
        ("--end-fsync", "use a writing --rw"),
        ("--rw randrw --rwmixread 100 --verify", "use a writing --rw"),
        ("--verify", "use a writing --rw"),
        (
            "--rw write --verify --bssplit 4k/50:8k/50",
            "use such as --bs 4k",
        ),
        (
            "--rw write --verify --buffered --bs 100",
            "use such as --bs 4k",
        ),
        ("--buffered --cached", "use one of them"),
        ("--time 0", "use such as 10s"),
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
            "use a larger span or less of --jobs and --depth",
        ),
        ("--zones 1/0.0001:99/99.9999", "use larger zones"),
        ("--distribution hot:80/0.0001", "use larger zones"),
    ];
    for (line, remedy) in cases {
        let error = on(line, &ground()).expect_err(line);
        assert!(
            error.contains(remedy) && !error.ends_with('.'),
            "{line}: {error}"
        );
        // A plan file hears its own words.
        let told = resolve(&flags(line), &ground(), Wording::Keys)
            .expect_err(line)
            .to_string();
        assert!(!told.replace("--size", "").contains("--"), "{line}: {told}");
    }
}

#[test]
fn what_is_no_contradiction_passes() {
    let mmap = Ground {
        engine: Some(EngineChoice::Fixed(EngineKind::Mmap)),
        ..ground()
    };
    // A memory mapping goes through the page cache, said or not.
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
    // Each target has a schedule of its own.
    assert!(
        on(
            "--rate 5",
            &Ground {
                target_bytes: vec![GIB; 2],
                ..ground()
            }
        )
        .is_ok()
    );
    assert!(
        on(
            "--depth 4096 --jobs 64 --bs 8k",
            &Ground {
                memory: Memory::default(),
                ..ground()
            }
        )
        .is_ok()
    );
}

#[test]
fn what_others_have_taken_of_the_memory_is_not_there() {
    let free = |free_bytes| Ground {
        memory: Memory {
            free_bytes,
            ..ground().memory
        },
        ..ground()
    };
    let load = "--depth 1024 --bs 1M";
    assert!(on(load, &free(Some(2 * GIB))).is_ok() && on(load, &free(None)).is_ok());
    let told = on(load, &free(Some(GIB))).unwrap_err();
    assert!(
        told.contains("needs 1 GiB of buffers, and half of the memory that is free now is 512 MiB"),
        "{told}"
    );
    // 2^28 blocks are noted in a GiB.
    let large = Ground {
        target_bytes: vec![128 * GIB],
        ..free(Some(GIB))
    };
    let verified = "--rw write --verify --bs 512 --buffered";
    assert!(on(&format!("{verified} --span 0-32G"), &large).is_ok());
    let told = on(verified, &large).unwrap_err();
    assert!(
        told.contains("and --verify needs 1 GiB")
            && told.ends_with("make one of them or the --span smaller"),
        "{told}"
    );
}

#[test]
fn blocks_smaller_than_a_sector_are_told() {
    assert_eq!(misfit(&made("--bs 512"), 512), None);
    assert!(
        misfit(&made("--bs 512"), 4096)
            .unwrap()
            .contains("4096 bytes")
    );
    assert!(
        misfit(&made("--bssplit 512/50:8k/50"), 4096)
            .unwrap()
            .contains("blocks of 512")
    );
    assert_eq!(misfit(&made("--bs 512 --buffered"), 4096), None);
    assert!(
        misfit(&made("--span 512-1000000"), 4096)
            .unwrap()
            .contains("from 512 bytes on")
    );
    assert_eq!(misfit(&made("--span 512-1000000"), 512), None);
    assert_eq!(misfit(&made("--span 100-1000000 --buffered"), 512), None);
}

proptest! {
    /// Whatever is accepted can be run: the span lies in the target and holds what is asked of it.
    #[test]
    fn accepted_workloads_fit_their_target(
        size in 1u64..1 << 32, bs in 1u32..1 << 26, depth in 0u64..5000, jobs in 0u64..1100, from in 0u64..110, to in 0u64..110, rw in 0usize..6,
    ) {
        let rw = ["read", "write", "rw", "randread", "randwrite", "randrw"][rw];
        let line = format!("--rw {rw} --bs {bs} --depth {depth} --jobs {jobs} --buffered --span {from}-{to}%");
        let Ok(Line { flags }) = Line::try_parse_from(["x"].into_iter().chain(line.split_whitespace())) else { return Ok(()) };
        let ground = Ground { target_bytes: vec![size], ..ground() };
        if let Ok(workload) = resolve(&flags, &ground, Wording::Keys) {
            let length = workload.span.length_bytes.unwrap();
            prop_assert!(workload.span.start_bytes + length <= size && length >= u64::from(workload.block_bytes));
            prop_assert!(u64::from(workload.depth * workload.workers) * u64::from(workload.block_bytes) <= 2 * GIB);
        }
    }
}
