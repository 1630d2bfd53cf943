//! Properties of every pattern: inside the extent, aligned, complete, reproducible.

use super::*;
use diskproof_model::plan::{Access, BlockShare, Distribution, Zone};
use diskproof_model::shape::{RandomRun, RunFollow};
use diskproof_model::stream::Streams;
use proptest::prelude::*;

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![
        Just(Access::Sequential),
        Just(Access::Backward),
        (1u64..40).prop_map(|n| Access::Stride {
            stride_bytes: n * 3000
        }),
        Just(Access::Random {
            distribution: Distribution::Uniform
        }),
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
            zones: vec![
                Zone {
                    access_percent: 60.0,
                    size_percent: 10.0
                },
                Zone {
                    access_percent: 40.0,
                    size_percent: 90.0
                }
            ]
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
    let mut w = Workload::named("any");
    w.streams = Streams::with_reads(300);
    w.access = Access::Random {
        distribution: Distribution::HotCold {
            access_percent: 80.0,
            size_percent: 20.0,
        },
    };
    w.block_bytes = 4096;
    let mut pattern = Pattern::new(
        &w,
        Extent {
            start: 0,
            length: 1000 * 4096,
        },
        1,
        0,
    );
    let steps: Vec<Step> = (0..100_000).map(|_| pattern.step()).collect();
    let share = |n: usize| n as f64 / steps.len() as f64;
    let reads = share(steps.iter().filter(|s| s.kind == OpKind::Read).count());
    let hot = share(steps.iter().filter(|s| s.offset < 200 * 4096).count());
    assert!(
        (reads - 0.3).abs() < 0.01 && (hot - 0.8).abs() < 0.01,
        "{reads} {hot}"
    );
}

/// A walk over ten pages.
fn walk(access: Access, read_permille: u16) -> Pattern {
    let workload = Workload {
        access,
        streams: Streams::with_reads(read_permille),
        block_bytes: 4096,
        ..Workload::named("walk")
    };
    Pattern::new(&workload, extent_at(8192, 40_960), 1, 0)
}

fn extent_at(start: u64, length: u64) -> Extent {
    Extent { start, length }
}

fn steps(pattern: &mut Pattern, n: u32) {
    for _ in 0..n {
        pattern.step();
    }
}

fn first_two(pattern: &mut Pattern) -> Option<[Extent; 2]> {
    let [one, other, ..] = pattern.take_passed()?;
    Some([one, other])
}

#[test]
fn ascending_walks_report_passed_extents() {
    let nothing = Extent::default();
    let mut reads = walk(Access::Sequential, 1000);
    assert_eq!(first_two(&mut reads), Some([extent_at(8192, 0), nothing]));
    steps(&mut reads, 3);
    assert_eq!(
        first_two(&mut reads),
        Some([extent_at(8192, 12_288), nothing])
    );
    steps(&mut reads, 2);
    assert_eq!(
        first_two(&mut reads),
        Some([extent_at(20_480, 8192), nothing])
    );
    // A lap is over. Requests in flight at the last report may have left data anywhere, so the
    // whole extent is reported.
    steps(&mut reads, 10);
    assert_eq!(
        first_two(&mut reads),
        Some([extent_at(8192, 40_960), nothing])
    );
    steps(&mut reads, 1);
    assert_eq!(
        first_two(&mut reads),
        Some([extent_at(28_672, 4096), nothing])
    );

    let mut mix = walk(Access::Sequential, 500);
    steps(&mut mix, 6);
    let [read, written] = first_two(&mut mix).unwrap();
    assert_eq!(
        (read.start, written.start, read.length + written.length),
        (8192, 8192, 6 * 4096)
    );

    let random = Access::Random {
        distribution: Distribution::Uniform,
    };
    for access in [Access::Backward, random] {
        assert_eq!(walk(access, 500).take_passed(), None);
    }
}

#[test]
fn walks_with_shared_cursors_report_what_all_passed() {
    let nothing = Extent::default();
    let extent = extent_at(8192, 40_960);
    let cursors = SharedCursors::default();
    let [mut one, mut other] =
        [0, 1].map(|_| walk(Access::Sequential, 0).with_cursors(&cursors, extent, 0));
    steps(&mut one, 2);
    steps(&mut other, 2);
    for pattern in [&mut one, &mut other] {
        assert_eq!(first_two(pattern), Some([extent_at(8192, 16_384), nothing]));
    }
    steps(&mut one, 8);
    assert_eq!(
        first_two(&mut other),
        Some([extent_at(8192, 40_960), nothing])
    );
}

#[test]
fn verified_random_writes_reach_every_block_once_across_workers() {
    let workload = Workload {
        access: Access::Random {
            distribution: Distribution::Uniform,
        },
        streams: Streams::with_reads(300),
        block_bytes: 4096,
        ..Workload::named("w")
    };
    let extent = Extent {
        start: 8192,
        length: 1000 * 4096,
    };
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
    let mut w = Workload::named("w");
    (w.block_bytes, w.access) = (4096, Access::Sequential);
    w.shape.zone_stride = Some(diskproof_model::shape::ZoneStride {
        zone_bytes: 2 * 4096,
        skip_bytes: 3 * 4096,
    });
    let mut pattern = Pattern::new(&w, extent_at(8192, 11 * 4096), 1, 0);
    let blocks: Vec<u64> = (0..8)
        .map(|_| (pattern.step().offset - 8192) / 4096)
        .collect();
    // As in fio: the end of the file cuts the third zone short.
    assert_eq!(blocks, [0, 1, 5, 6, 10, 0, 1, 5]);
    assert_eq!(pattern.lap(), 1);
}

#[test]
fn mapped_random_offsets_visit_every_block_once_per_lap() {
    let mut w = Workload::named("w");
    (w.block_bytes, w.streams) = (4096, Streams::with_reads(500));
    w.access = Access::Random {
        distribution: Distribution::Uniform,
    };
    w.shape.each_block_once = true;
    let extent = Extent {
        start: 8192,
        length: 500 * 4096 + 100,
    };
    let mut pattern = Pattern::new(&w, extent, 5, 0);
    let mut orders = Vec::new();
    for lap in 0..3 {
        let order: Vec<u64> = (0..500)
            .map(|_| {
                let offset = pattern.step().offset;
                // Both directions share the lap.
                assert_eq!(pattern.lap(), 2 * lap);
                offset
            })
            .collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(
            sorted
                .into_iter()
                .eq((0..500).map(|block| 8192 + block * 4096))
        );
        orders.push(order);
    }
    assert!(orders[0] != orders[1] && orders[1] != orders[2]);
    let other = Pattern::new(&w, extent, 5, 1).step().offset;
    let third = Pattern::new(&w, extent, 5, 2).step().offset;
    assert!(
        other != orders[0][0] || third != orders[0][0],
        "an order for each worker"
    );
}

#[test]
fn mapped_blocks_of_several_sizes_are_shortened_at_visited_ones() {
    let mut w = Workload::named("w");
    w.block_bytes = 16384;
    let share = |block_bytes| BlockShare {
        block_bytes,
        weight: 1,
    };
    w.block_mix = vec![share(4096), share(16384)];
    w.shape.each_block_once = true;
    let extent = Extent {
        start: 0,
        length: 1 << 20,
    };
    let mut pattern = Pattern::new(&w, extent, 5, 0);
    let mut visited = 0;
    while visited < 1 << 20 {
        visited += u64::from(pattern.step().len);
        assert_eq!(pattern.lap(), 0);
    }
    assert_eq!(
        (visited, pattern.step().len > 0, pattern.lap()),
        (1 << 20, true, 1)
    );
}

fn offsets(w: &Workload, bytes: u64, count: usize) -> Vec<Step> {
    let extent = Extent {
        start: 0,
        length: bytes,
    };
    let mut pattern = Pattern::new(w, extent, 5, 0);
    (0..count).map(|_| pattern.step()).collect()
}

#[test]
fn random_runs_draw_every_nth_offset() {
    let mut w = Workload::named("runs");
    w.block_bytes = 4096;
    for follow in [RunFollow::Sequential, RunFollow::Identical] {
        w.shape.random_run = Some(RandomRun { run_ops: 4, follow });
        let steps = offsets(&w, 1 << 30, 400);
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
    let extent = Extent {
        start: 0,
        length: 10 * 4096,
    };
    let mut w = Workload::named("laps");
    w.block_bytes = 4096;
    w.shape.random_run = Some(RandomRun {
        run_ops: 4,
        follow: RunFollow::Sequential,
    });
    let laps = |mut pattern: Pattern| {
        let mut changes = Vec::new();
        let mut lap = pattern.lap();
        for number in 0..35 {
            pattern.step();
            if pattern.lap() != lap {
                changes.push(number);
                lap = pattern.lap();
            }
        }
        changes
    };
    let repeating = Pattern::new(&w, extent, 5, 0);
    assert_eq!(laps(repeating.clone()), [10, 20, 30]);
    let repeating = Pattern::new(&w, extent, 5, 0);
    let cursors = SharedCursors::default();
    assert_eq!(
        laps(repeating.with_each_block_once(&cursors, 5)),
        [10, 20, 30]
    );
}

#[test]
fn writes_have_sizes_of_their_own_and_offsets_an_alignment() {
    let mut w = Workload::named("mixed");
    (w.streams, w.block_bytes) = (Streams::with_reads(500), 65536);
    let share = |block_bytes| BlockShare {
        block_bytes,
        weight: 1,
    };
    w.block_mix = vec![share(512)];
    let chains: [&[OpKind]; 2] = [&[OpKind::Read], &[OpKind::Write]];
    w.streams = Streams::of(&chains, 500, &[share(4096), share(65536)]);
    w.shape.align_bytes = Some(8192);
    assert_eq!(block_range(&w), (512, 65536));
    let steps = offsets(&w, 1 << 30, 3000);
    let of = |direction: OpKind, len: u32| {
        let same = |step: &&Step| step.kind == direction && step.len == len;
        steps.iter().filter(same).count()
    };
    assert_eq!(
        of(OpKind::Read, 512) + of(OpKind::Write, 4096) + of(OpKind::Write, 65536),
        3000
    );
    assert!((1300..1700).contains(&of(OpKind::Read, 512)));
    assert!((600..900).contains(&of(OpKind::Write, 65536)));
    let last_end = (1 << 30) - 65536;
    for step in &steps {
        let most = if step.kind == OpKind::Read {
            (1 << 30) - 512
        } else {
            last_end
        };
        assert!(step.offset % 8192 == 0 && step.offset <= most, "{step:?}");
    }
}
