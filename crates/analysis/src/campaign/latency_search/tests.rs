//! The decisions of searches on disks with known properties.

use super::super::volume::{Volume, Volumes, rates};
use super::*;
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::measurement::{OpKind, PerOp};
use diskproof_model::plan::Stop;
use diskproof_model::series::TimeSeries;
use diskproof_model::window::{SliceOp, TimeSlice};
use std::collections::BTreeMap;

const SECOND: u64 = 1_000_000_000;

fn campaign(depth_max: u32, percent: f64, time_ns: Option<u64>) -> LatencySearchCampaign {
    let target = LatencyTarget {
        latency_ns: 1_000_000,
        percent,
        window_ns: SECOND,
    };
    let at_depth = |depth| Workload {
        depth,
        stop: Stop {
            time_ns: Some(SECOND),
            ..Stop::default()
        },
        ..Workload::named(&format!("w-d{depth}"))
    };
    let workloads = search_depths(depth_max).into_iter().map(at_depth).collect();
    LatencySearchCampaign::new(target, workloads, time_ns)
}

/// The depths in the order in which they are measured, with what the disk says of each: requests
/// and late ones, by depth and the number of its window.
fn carried_out(
    mut campaign: LatencySearchCampaign,
    disk: impl Fn(u32, usize) -> (u64, u64),
) -> (Vec<u32>, Option<u32>) {
    let mut done: Vec<MeasuredCell> = Vec::new();
    while let Some(cell) = campaign.next(&done).cell {
        let depth = cell.workload.depth;
        let earlier = done.iter().filter(|one| one.cell.workload.depth == depth);
        let (requests, late) = disk(depth, earlier.count());
        let op = SliceOp {
            late: Some(LateRequests { requests, late }),
            ..SliceOp::from_counts(requests, requests * 8192, SECOND)
        };
        let ops = BTreeMap::from([(OpKind::Read, op)]);
        done.push(measured_window(cell, done.len(), ops));
        assert!(done.len() < 200, "it never ends");
    }
    let holds = |depth: u32| {
        let index = campaign.workloads.iter().position(|one| one.depth == depth);
        index.is_some_and(|index| campaign.state(index, &done) == DepthState::Holds)
    };
    let depths: Vec<u32> = done.iter().map(|one| one.cell.workload.depth).collect();
    let found = depths.iter().copied().filter(|depth| holds(*depth)).max();
    (depths, found)
}

/// A window of a second, as the search sees it, after `earlier` others.
fn measured_window(cell: CampaignCell, earlier: usize, ops: PerOp<SliceOp>) -> MeasuredCell {
    let asked_bytes = ops.values().map(|op| op.bytes).sum();
    let slice = TimeSlice {
        start_ns: earlier as u64 * SECOND,
        wall_ns: SECOND,
        ops,
        slot: None,
    };
    MeasuredCell {
        cell,
        slice,
        trial: None,
        pause: None,
        moved: TimeSeries::new(1),
        asked_bytes,
        span_bytes: 0,
    }
}

/// A disk that meets the latency limit up to a depth, and beyond it never.
fn cliff(last: u32) -> impl Fn(u32, usize) -> (u64, u64) {
    move |depth, _| (10_000, if depth > last { 10_000 } else { 0 })
}

#[test]
fn depths_are_close_together() {
    assert_eq!(search_depths(1), [1]);
    assert_eq!(search_depths(5), [1, 2, 3, 4, 5]);
    let depths = search_depths(100);
    assert_eq!(
        depths[..17],
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18]
    );
    assert_eq!(
        depths[23..],
        [32, 36, 40, 44, 48, 52, 56, 60, 64, 72, 80, 88, 96, 100]
    );
    let largest = search_depths(4096);
    assert_eq!(largest.last(), Some(&4096));
    let steps = largest.windows(2).filter(|pair| pair[0] >= 16);
    assert!(
        steps
            .clone()
            .all(|pair| f64::from(pair[1]) <= f64::from(pair[0]) * 1.126)
    );
}

#[test]
fn every_cliff_is_found() {
    for depth_max in [1, 2, 7, 32, 128] {
        let depths = search_depths(depth_max);
        for (index, last) in depths.iter().enumerate() {
            let (measured, found) = carried_out(campaign(depth_max, 99.0, None), cliff(*last));
            assert_eq!(found, Some(*last), "of {depth_max}: {measured:?}");
            let of = |depth: u32| measured.iter().filter(|one| **one == depth).count();
            assert!(of(*last) >= WINDOWS_MIN, "{measured:?}");
            // The promise was kept for as long as the search before it took.
            let kept = measured.iter().rev().take_while(|one| *one == last);
            assert!(2 * kept.count() >= measured.len(), "{measured:?}");
            let next = depths.get(index + 1);
            assert!(next.is_none_or(|next| of(*next) == 1), "{measured:?}");
            assert!(measured.len() <= 30, "{measured:?}");
        }
    }
}

#[test]
fn a_disk_that_is_too_slow_is_tried_once() {
    assert_eq!(
        carried_out(campaign(64, 99.0, None), cliff(0)),
        (vec![1], None)
    );
}

/// It stands still once, in the first window at a depth: all that is in flight is late.
#[test]
fn one_disturbance_does_not_decide() {
    for disturbed in search_depths(32) {
        let disk = |depth: u32, window: usize| match depth {
            ..=20 if depth == disturbed && window == 0 => (5000, 51 + u64::from(depth)),
            ..=20 => (5000, 20),
            _ => (5000, 4000),
        };
        let (measured, found) = carried_out(campaign(32, 99.0, None), disk);
        assert_eq!(found, Some(20), "disturbed at {disturbed}: {measured:?}");
    }
}

/// What seemed to hold in one window and does not in three is dropped.
#[test]
fn the_depth_that_is_found_is_confirmed() {
    let disk = |depth: u32, window: usize| match depth {
        ..=8 => (10_000, 50),
        9 if window == 0 => (10_000, 90),
        9 => (10_000, 140),
        _ => (10_000, 5000),
    };
    let (measured, found) = carried_out(campaign(32, 99.0, None), disk);
    assert_eq!(found, Some(8), "{measured:?}");
    let kept = measured.iter().rev().take_while(|depth| **depth == 8);
    assert!(2 * kept.count() >= measured.len(), "{measured:?}");
}

#[test]
fn no_window_begins_that_would_end_too_late() {
    let search = || campaign(64, 100.0, Some(4 * SECOND));
    let (measured, found) = carried_out(search(), cliff(64));
    assert_eq!((measured, found), (vec![1, 2, 4, 8], Some(8)));
    let (measured, _) = carried_out(campaign(64, 100.0, Some(SECOND)), cliff(64));
    assert_eq!(measured, [1], "the first window always fits");
}

/// Each kind of request has a rate, and the promise is that of the one that lasts.
#[test]
fn fall_of_any_kind_of_request_drops_the_faster_windows() {
    for kind in OpKind::REQUESTS {
        let mut search = campaign(1, 99.0, None);
        let workload = search.workloads[0].clone();
        let mut done = Vec::new();
        for requests in [10_000].into_iter().chain([1000; FALL_WINDOWS]) {
            let op = SliceOp::from_counts(requests, requests * 8192, SECOND);
            let cell = CampaignCell::row(0, workload.clone());
            done.push(measured_window(cell, done.len(), PerOp::from([(kind, op)])));
        }
        search.drop_after_fall(0, &done);
        assert_eq!(search.drops, [1], "{kind:?}");
    }
}

/// With 100 % a single late request is too many.
#[test]
fn all_requests_are_all() {
    let disk = |depth: u32, _| (1_000_000, u64::from(depth > 6));
    let (_, found) = carried_out(campaign(32, 100.0, None), disk);
    assert_eq!(found, Some(6));
}

#[test]
fn the_record_tells_what_was_found() {
    let target = campaign(8, 99.0, None).target;
    let measured = |depth: u32, late: u64| {
        let mut measurement = crate::fixture::run().measurements.remove(0);
        measurement.workload.depth = depth;
        measurement.ops.retain(|kind, _| *kind == OpKind::Read);
        let op = measurement.ops.entry(OpKind::Read).or_default();
        op.latency = diskproof_model::histogram::LatencyHistogram::new();
        op.latency.record_many(500_000, 1000 - late);
        op.latency.record_many(3_000_000, late);
        measurement
    };
    let depths = [1, 2, 3, 4, 5];
    let of = |trials: &[(u32, u64)]| {
        let all: Vec<_> = trials
            .iter()
            .map(|(depth, late)| measured(*depth, *late))
            .collect();
        let search = LatencySearch::judge(target, &depths, &all);
        (search.depth, search.is_settled)
    };
    assert_eq!(of(&[(1, 0), (4, 11), (2, 10), (3, 11)]), (Some(2), true));
    assert_eq!(of(&[(1, 0), (4, 11), (2, 10)]), (Some(2), false));
    assert_eq!(of(&[(1, 0), (5, 10)]), (Some(5), true));
    assert_eq!(of(&[(1, 11)]), (None, true));
    assert_eq!(of(&[]), (None, false));
}

/// Volumes of many sizes, whose credit ends within the search or not: the depth that is promised is
/// that of the rate that lasts, or the rate was kept for as long as the search took.
#[test]
fn promised_depth_is_that_of_the_rate_that_lasts() {
    for base in [500.0, 1500.0, 3000.0, 16_000.0] {
        for times in [1.5, 2.0, 4.0] {
            for credit in [1000.0, 20_000.0, 60_000.0, 5_400_000.0] {
                let volume = Volume {
                    service_ns: 340_000.0,
                    base,
                    burst: base * times,
                    credit,
                };
                assert_promise(volume);
            }
        }
    }
}

fn assert_promise(volume: Volume) {
    let late_ns = 5e6;
    let mut search = campaign(64, 99.0, None);
    for workload in &mut search.workloads {
        workload.stop.time_ns = Some(5 * SECOND);
    }
    let mut volumes = Volumes::new(&[volume], late_ns);
    let ns = volumes.carry_out(&mut search);
    let kept = volumes.kept;
    // What was dropped is not there any more.
    search.counted_from.fill(0);
    let promised = search.promised_index(&kept);
    let own: Vec<f64> = rates(&kept)
        .into_iter()
        .filter(|kept| promised.is_some_and(|p| search.workloads[p].depth == kept.depth))
        .map(|kept| kept.iops)
        .collect();
    // How long the burst lasts without a pause.
    let burst_ns = volume.credit / (volume.burst - volume.base) * 1e9;
    for rate in own {
        let lasts = rate <= 1.02 * volume.base || 2.0 * burst_ns > ns as f64;
        assert!(lasts, "{volume:?}: {rate}/s after {ns} ns, {promised:?}");
    }
    if promised.is_none() {
        let alone = (1e9 / volume.service_ns).min(volume.base);
        assert!(alone * late_ns < 1.05e9, "{volume:?}");
    }
}
