//! Properties of every pattern: inside the extent, aligned, complete, reproducible.

use super::*;
use crate::testing::loads::{UNIFORM, extent, order_of_two_files};
use diskproof_model::plan::{Access, BlockShare, Distribution, Zone};
use diskproof_model::shape::{FileService, FioFiles, FioZones, RandomRun, RunFollow, ZoneStride};
use diskproof_model::stream::Streams;
use proptest::prelude::*;

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![
        Just(Access::Sequential),
        Just(Access::Backward),
        (1u64..40).prop_map(|n| Access::Stride {
            stride_bytes: n * 3000
        }),
        Just(UNIFORM),
        (0.1f64..2.0).prop_map(|theta| Access::Random {
            distribution: Distribution::Zipf { theta }
        }),
        (1.0f64..99.0, 1.0f64..99.0).prop_map(|(access_percent, size_percent)| Access::Random {
            distribution: Distribution::HotCold {
                access_percent,
                size_percent
            }
        }),
        Just(Access::Zoned {
            zones: [(60.0, 10.0), (40.0, 90.0)]
                .map(|(access_percent, size_percent)| Zone {
                    access_percent,
                    size_percent
                })
                .to_vec()
        }),
    ]
}

proptest! {
    #[test]
    fn pattern_steps_stay_inside_and_aligned(
        access in access(),
        start in 0u64..10,
        blocks in 12u64..200,
        permille in 0u16..=1000,
        mixed in any::<bool>(),
    ) {
        let mut w = Workload::named("any");
        w.access = access;
        w.block_bytes = 8192;
        w.streams = Streams::with_reads(permille);
        if mixed {
            w.block_mix = vec![
                BlockShare { block_bytes: 4096, weight: 3 },
                BlockShare { block_bytes: 8192, weight: 1 },
            ];
        }
        let extent = Extent { start: start * 4096, length: blocks * 4096 + 100 };
        let mut pattern = Pattern::new(&w, extent, 1, 2);
        let mut again = Pattern::new(&w, extent, 1, 2);
        for _ in 0..500 {
            let step = pattern.step();
            prop_assert_eq!(step, again.step());
            let end = step.offset + u64::from(step.len);
            let is_inside = step.offset >= extent.start && end <= extent.start + extent.length;
            prop_assert!(is_inside, "{:?}", step);
            prop_assert_eq!((step.offset - extent.start) % 4096, 0);
        }
    }

    #[test]
    fn ordered_pattern_covers_the_span_once_a_lap(
        backward in any::<bool>(),
        blocks in 1u64..100,
        workers in 1u64..5,
    ) {
        let mut w = Workload::named("any");
        w.access = if backward { Access::Backward } else { Access::Sequential };
        w.block_bytes = 4096;
        let whole = Extent { start: 4096, length: blocks * 4096 };
        let mut seen = vec![0; blocks as usize];
        for worker in 0..workers {
            let part = whole.share(&w.access, worker, workers, 4096);
            let mut pattern = Pattern::new(&w, part, 1, worker);
            for _ in 0..part.length / 4096 {
                seen[((pattern.step().offset - 4096) / 4096) as usize] += 1;
            }
        }
        prop_assert!(seen.iter().all(|n| *n == 1), "{:?}", seen);
    }

    #[test]
    fn stride_pattern_reaches_every_block(blocks in 2u64..60, stride in 2u64..9) {
        let mut w = Workload::named("any");
        w.access = Access::Stride { stride_bytes: stride * 4096 };
        w.block_bytes = 4096;
        let mut pattern = Pattern::new(&w, Extent { start: 0, length: blocks * 4096 }, 1, 0);
        let mut seen = vec![false; blocks as usize];
        for _ in 0..blocks * (stride + 1) {
            seen[(pattern.step().offset / 4096) as usize] = true;
        }
        prop_assert!(seen.iter().all(|s| *s), "{:?}", seen);
    }
}

#[test]
fn pattern_mix_keeps_its_shares() {
    let distribution = Distribution::HotCold {
        access_percent: 80.0,
        size_percent: 20.0,
    };
    let w = pages(Access::Random { distribution }, 300);
    let steps = steps_of(&w, 1000 * 4096, 100_000);
    let reads = steps.iter().filter(|s| s.kind == OpKind::Read).count();
    let hot = steps.iter().filter(|s| s.offset < 200 * 4096).count();
    assert!((29_000..31_000).contains(&reads), "{reads}");
    assert!((79_000..81_000).contains(&hot), "{hot}");
}

fn share(block_bytes: u32) -> BlockShare {
    let weight = 1;
    BlockShare {
        block_bytes,
        weight,
    }
}

fn pages(access: Access, read_permille: u16) -> Workload {
    Workload {
        access,
        streams: Streams::with_reads(read_permille),
        block_bytes: 4096,
        ..Workload::named("pages")
    }
}

/// A walk over ten pages.
fn walk(access: Access, read_permille: u16) -> Pattern {
    Pattern::new(&pages(access, read_permille), extent(8192, 40_960), 1, 0)
}

fn steps(pattern: &mut Pattern, n: u32) {
    for _ in 0..n {
        pattern.step();
    }
}

/// What was passed, of reads and of writes: where it starts, and its length.
fn passed(pattern: &mut Pattern) -> Option<[(u64, u64); 2]> {
    let [reads, writes, ..] = pattern.take_passed()?;
    Some([reads, writes].map(|part| (part.start, part.length)))
}

#[test]
fn ascending_walks_report_passed_extents() {
    let mut reads = walk(Access::Sequential, 1000);
    // After ten a lap is over. Requests in flight at the last report may have left data anywhere,
    // so the whole extent is reported.
    for (count, expected) in [
        (0, (8192, 0)),
        (3, (8192, 12_288)),
        (2, (20_480, 8192)),
        (10, (8192, 40_960)),
        (1, (28_672, 4096)),
    ] {
        steps(&mut reads, count);
        assert_eq!(passed(&mut reads), Some([expected, (0, 0)]));
    }

    let mut mix = walk(Access::Sequential, 500);
    steps(&mut mix, 6);
    let [read, written] = passed(&mut mix).unwrap();
    assert_eq!((read.0, written.0), (8192, 8192));
    assert_eq!(read.1 + written.1, 6 * 4096);

    for access in [Access::Backward, UNIFORM] {
        assert_eq!(walk(access, 500).take_passed(), None);
    }
}

#[test]
fn walks_with_shared_cursors_report_what_all_passed() {
    let extent = extent(8192, 40_960);
    let cursors = SharedCursors::default();
    let [mut one, mut other] =
        [0, 1].map(|_| walk(Access::Sequential, 0).with_cursors(&cursors, extent, 0));
    steps(&mut one, 2);
    steps(&mut other, 2);
    for pattern in [&mut one, &mut other] {
        assert_eq!(passed(pattern), Some([(8192, 16_384), (0, 0)]));
    }
    steps(&mut one, 8);
    assert_eq!(passed(&mut other), Some([(8192, 40_960), (0, 0)]));
}

#[test]
fn verified_random_writes_reach_every_block_once_across_workers() {
    let workload = pages(UNIFORM, 300);
    let extent = extent(8192, 1000 * 4096);
    let cursors = SharedCursors::default();
    let mut workers: Vec<Pattern> = (0..3)
        .map(|i| Pattern::new(&workload, extent, 5, i).with_each_write_once(&cursors, 5))
        .collect();
    let mut written = Vec::new();
    while written.len() < 1000 {
        for worker in &mut workers {
            let step = worker.step();
            if step.kind == OpKind::Write && written.len() < 1000 {
                written.push(step.offset);
            }
        }
    }
    written.sort_unstable();
    let all: Vec<u64> = (0..1000).map(|block| 8192 + block * 4096).collect();
    assert_eq!(written, all);
}

#[test]
fn zones_in_turn_skip_what_is_between_them() {
    let mut w = pages(Access::Sequential, 1000);
    w.shape.order.zone_stride = Some(ZoneStride {
        zone_bytes: 2 * 4096,
        skip_bytes: 3 * 4096,
    });
    let mut pattern = Pattern::new(&w, extent(8192, 11 * 4096), 1, 0);
    let blocks: Vec<u64> = (0..8)
        .map(|_| (pattern.step().offset - 8192) / 4096)
        .collect();
    // As in fio: the end of the file cuts the third zone short.
    assert_eq!(blocks, [0, 1, 5, 6, 10, 0, 1, 5]);
    assert_eq!(pattern.lap(), 1);
}

#[test]
fn mapped_random_offsets_visit_every_block_once_per_lap() {
    let mut w = pages(UNIFORM, 500);
    w.shape.order.each_block_once = true;
    let extent = extent(8192, 500 * 4096 + 100);
    let mut pattern = Pattern::new(&w, extent, 5, 0);
    let mut orders = Vec::new();
    for lap in 0..3 {
        let mut order = Vec::new();
        for _ in 0..500 {
            order.push(pattern.step().offset);
            // Both directions share the lap.
            assert_eq!(pattern.lap(), 2 * lap);
        }
        orders.push(order.clone());
        order.sort_unstable();
        assert!(
            order
                .into_iter()
                .eq((0..500).map(|block| 8192 + block * 4096))
        );
    }
    assert!(orders[0] != orders[1] && orders[1] != orders[2]);
    // An order for each worker.
    let first = |worker| Pattern::new(&w, extent, 5, worker).step().offset;
    assert!(first(1) != orders[0][0] || first(2) != orders[0][0]);
}

/// A later part of the workload goes on with the blocks that are left, and its workers with those
/// of each other.
#[test]
fn workers_that_share_a_map_visit_every_block_once_in_several_parts() {
    let w = pages(UNIFORM, 0);
    let extent = extent(0, 500 * 4096);
    let mut visited = Vec::new();
    for part_blocks in [120, 280, 100] {
        let cursors = SharedCursors::after(visited.len() as u64);
        let mut workers = [0, 1, 2].map(|worker| {
            Pattern::new(&w, extent, 7 + part_blocks, worker).with_each_block_once(&cursors, 5)
        });
        for step in 0..part_blocks {
            visited.push(workers[step as usize % 3].step().offset);
        }
    }
    visited.sort_unstable();
    assert!(visited.into_iter().eq((0..500).map(|block| block * 4096)));
}

#[test]
fn mapped_blocks_of_several_sizes_are_shortened_at_visited_ones() {
    let mut w = Workload::named("w");
    w.block_bytes = 16384;
    w.block_mix = vec![share(4096), share(16384)];
    w.shape.order.each_block_once = true;
    let extent = extent(0, 1 << 20);
    let mut pattern = Pattern::new(&w, extent, 5, 0);
    let mut visited = 0;
    while visited < 1 << 20 {
        visited += u64::from(pattern.step().len);
        assert_eq!(pattern.lap(), 0);
    }
    assert_eq!(visited, 1 << 20);
    assert!(pattern.step().len > 0);
    assert_eq!(pattern.lap(), 1);
}

fn steps_of(w: &Workload, bytes: u64, count: usize) -> Vec<Step> {
    let mut pattern = Pattern::new(w, extent(0, bytes), 5, 0);
    (0..count).map(|_| pattern.step()).collect()
}

#[test]
fn random_runs_draw_every_nth_offset() {
    let mut w = pages(UNIFORM, 1000);
    for follow in [RunFollow::Sequential, RunFollow::Identical] {
        w.shape.order.random_run = Some(RandomRun { run_ops: 4, follow });
        let steps = steps_of(&w, 1 << 30, 400);
        // As in fio, the first operations go on from the start, and the fourth is drawn.
        assert_eq!(steps[0].offset, 0);
        for (index, pair) in steps.windows(2).enumerate() {
            let expected = match follow {
                RunFollow::Sequential => pair[0].offset + 4096,
                RunFollow::Identical => pair[0].offset,
            };
            let is_drawn = (index + 2) % 4 == 0;
            assert_eq!(pair[1].offset == expected, !is_drawn, "{index} {follow:?}");
        }
    }
}

#[test]
fn lap_of_random_runs_is_as_many_bytes_as_the_extent_has() {
    let mut w = pages(UNIFORM, 1000);
    w.shape.order.random_run = Some(RandomRun {
        run_ops: 4,
        follow: RunFollow::Sequential,
    });
    // After how many steps a lap ends.
    let laps = |mut pattern: Pattern| -> Vec<u64> {
        let mut lap = pattern.lap();
        let mut changes = || {
            pattern.step();
            std::mem::replace(&mut lap, pattern.lap()) != pattern.lap()
        };
        (0..35).filter(|_| changes()).collect()
    };
    let repeating = || Pattern::new(&w, extent(0, 10 * 4096), 5, 0);
    assert_eq!(laps(repeating()), [10, 20, 30]);
    let mapped = repeating().with_each_block_once(&SharedCursors::default(), 5);
    assert_eq!(laps(mapped), [10, 20, 30]);
}

#[test]
fn writes_have_sizes_of_their_own_and_offsets_an_alignment() {
    let mut w = Workload::named("mixed");
    w.block_bytes = 65536;
    w.block_mix = vec![share(512)];
    let chains: [&[OpKind]; 2] = [&[OpKind::Read], &[OpKind::Write]];
    w.streams = Streams::from_chains(&chains, 500, &[share(4096), share(65536)]);
    w.shape.order.align_bytes = Some(8192);
    assert_eq!(block_range(&w), (512, 65536));
    let steps = steps_of(&w, 1 << 30, 3000);
    let of = |direction: OpKind, len: u32| {
        let same = |step: &&Step| step.kind == direction && step.len == len;
        steps.iter().filter(same).count()
    };
    let (reads, large) = (of(OpKind::Read, 512), of(OpKind::Write, 65536));
    assert_eq!(reads + of(OpKind::Write, 4096) + large, 3000);
    assert!((1300..1700).contains(&reads) && (600..900).contains(&large));
    for step in &steps {
        let largest = if step.kind == OpKind::Read {
            512
        } else {
            65536
        };
        let is_inside = step.offset <= (1 << 30) - largest;
        assert!(step.offset % 8192 == 0 && is_inside, "{step:?}");
    }
}

/// The threads of a worker, in turn, until they have made so many steps together.
fn steps_together(workload: &Workload, extent: Extent, count: usize) -> Vec<Step> {
    let cursors = SharedCursors::default();
    let mut threads: Vec<Pattern> = (0..3)
        .map(|thread| Pattern::new(workload, extent, 5, thread).with_cursors(&cursors, extent, 9))
        .collect();
    let mut steps = Vec::new();
    for turn in 0..count {
        steps.push(threads[turn % 3].step());
    }
    steps
}

#[test]
fn threads_of_a_worker_visit_each_block_once_together() {
    let extent = extent(8192, 240 * 4096);
    let mut mixed = pages(UNIFORM, 1000);
    mixed.block_mix = vec![share(4096), share(8192)];
    mixed.shape.order.each_block_once = true;
    let mut sequential = pages(Access::Sequential, 1000);
    sequential.block_mix = vec![share(4096), share(8192)];
    for workload in [&mixed, &sequential] {
        let steps = steps_together(workload, extent, 400);
        let mut visits = vec![0; 240];
        let mut bytes = 0;
        for step in steps {
            if bytes + u64::from(step.len) > 240 * 4096 - 4096 {
                break;
            }
            bytes += u64::from(step.len);
            for page in 0..u64::from(step.len) / 4096 {
                visits[((step.offset - 8192) / 4096 + page) as usize] += 1;
            }
        }
        assert!(visits.iter().all(|visits| *visits <= 1), "{workload:?}");
        assert!(visits.iter().filter(|visits| **visits == 1).count() > 200);
    }
}

#[test]
fn threads_of_a_worker_share_runs_of_random_offsets() {
    let mut w = pages(UNIFORM, 1000);
    w.shape.order.each_block_once = true;
    w.shape.order.random_run = Some(RandomRun {
        run_ops: 4,
        follow: RunFollow::Sequential,
    });
    let extent = extent(0, 1 << 30);
    let mut alone = Pattern::new(&w, extent, 5, 0);
    for step in steps_together(&w, extent, 100) {
        assert_eq!(step, alone.step());
    }
}

/// As a log of fio 3.33 has it (`write_iolog`).
#[test]
fn order_of_fio_has_its_files_sizes_and_syncs() {
    let mut w = Workload::named("fio");
    w.shape.order.fio = Some(Box::new(order_of_two_files()));
    let mut pattern = Pattern::new(&w, extent(0, 65536), 1, 0);
    let mut made = Vec::new();
    while made.len() < 20 {
        let PatternAction::Step(Step { kind, offset, .. }) = pattern.next_action() else {
            made.push("sync".to_owned());
            continue;
        };
        made.push(format!(
            "{} {kind:?} {}",
            offset / 32768,
            offset % 32768 / 4096
        ));
    }
    let logged = [
        "0 Read 0",
        "1 Read 0",
        "0 Read 1",
        "1 Write 0",
        "0 Read 2",
        "1 Read 1",
        "0 Write 0",
        "1 Write 1",
        "sync",
        "1 Write 2",
        "0 Read 3",
        "1 Write 3",
        "0 Read 4",
        "1 Write 4",
        "sync",
        "1 Read 2",
        "sync",
        "1 Read 3",
        "sync",
        "1 Read 4",
    ];
    assert_eq!(made, logged);
}

/// No step ends such a job, and no time: they were looked for in lap after lap.
#[test]
fn order_of_fio_ends_where_laps_have_no_request() {
    let mut no_block = order_of_two_files();
    no_block.files.file_bytes = 0;
    let mut second_lap_has_none = order_of_two_files();
    second_lap_has_none.files.start = 32768;
    let mut smaller_zones = order_of_two_files();
    smaller_zones.places.is_random = true;
    smaller_zones.is_time_based = true;
    smaller_zones.places.zones = Some(FioZones {
        moved_bytes: 2048,
        range_bytes: 2048,
        skip_bytes: 0,
    });
    for (order, steps) in [(no_block, 0), (second_lap_has_none, 30), (smaller_zones, 0)] {
        assert!(!fio::has_requests(&order), "{order:?}");
        let mut w = Workload::named("fio");
        w.shape.order.fio = Some(Box::new(order));
        let mut pattern = Pattern::new(&w, extent(0, 65536), 1, 0);
        let mut made = 0;
        loop {
            match pattern.next_action() {
                PatternAction::Step(_) => made += 1,
                PatternAction::Sync(_) => {}
                PatternAction::End => break,
            }
        }
        assert_eq!(made, steps);
        assert!(pattern.step().offset < 65536);
    }
    assert!(fio::has_requests(&order_of_two_files()));
}

/// A law may never draw a file: neither one that is open, nor one that has a request.
#[test]
fn steep_law_of_files_always_finds_one() {
    let mut steep = order_of_two_files();
    steep.files.open_max = 1;
    steep.files.service = FileService::Zipf {
        theta: 90.0,
        centre: Some(0.5),
    };
    let mut no_block = steep.clone();
    no_block.files.file_bytes = 0;
    assert!(!fio::has_requests(&no_block));
    let mut w = Workload::named("fio");
    w.shape.order.fio = Some(Box::new(steep));
    let mut pattern = Pattern::new(&w, extent(0, 65536), 1, 0);
    // No file is done, so there is no end, and all requests are in the second file.
    for _ in 0..1000 {
        let step = pattern.step();
        assert!((32768..65536).contains(&step.offset), "{step:?}");
    }
}

/// A record may say anything about the files.
#[test]
fn order_of_fio_stays_in_its_extent() {
    let changes: [fn(&mut FioFiles); 4] = [
        |files| files.part_bytes = 1 << 40,
        |files| (files.file_bytes, files.lap_bytes) = (1 << 40, 1 << 40),
        |files| files.part_start = 4096,
        |files| (files.first_start, files.file_bytes) = (1 << 30, 1 << 40),
    ];
    let span = extent(1 << 20, 65536);
    for (number, change) in changes.into_iter().enumerate() {
        let mut order = order_of_two_files();
        change(&mut order.files);
        let mut w = Workload::named("fio");
        w.shape.order.fio = Some(Box::new(order));
        let mut pattern = Pattern::new(&w, span, 1, 0);
        for _ in 0..1000 {
            if let PatternAction::Step(Step { offset, len, .. }) = pattern.next_action() {
                let end = offset + u64::from(len);
                assert!(
                    offset >= span.start && end <= span.end(),
                    "{number}: {offset}"
                );
            }
        }
    }
}
