//! Plays a load against a machine in virtual time, exactly.

use super::geometry::Geometry;
use super::timing::{DiskRequest, Operation, TimingModel};

/// Bytes that `DISK` claims.
pub(crate) const SIZE: u64 = 320_000_000_000;
/// A laptop disk of 7200 rpm.
pub(crate) const DISK: Geometry = Geometry {
    rpm: 7200,
    outer_bytes_per_s: 92_000_000,
    inner_bytes_per_s: 49_000_000,
    zones: 24,
    seek_track_ns: 1_000_000,
    seek_average_ns: 10_600_000,
    seek_full_ns: 22_000_000,
};

/// A request without its times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestRequest {
    pub operation: Operation,
    pub offset_bytes: u64,
    pub length_bytes: u64,
}

pub(crate) fn read(offset_bytes: u64, length_bytes: u64) -> TestRequest {
    TestRequest {
        operation: Operation::Read,
        offset_bytes,
        length_bytes,
    }
}

pub(crate) fn write(offset_bytes: u64, length_bytes: u64) -> TestRequest {
    TestRequest {
        operation: Operation::Write,
        offset_bytes,
        length_bytes,
    }
}

pub(crate) const FLUSH: TestRequest = TestRequest {
    operation: Operation::Flush,
    offset_bytes: 0,
    length_bytes: 0,
};

/// A read of one byte at this time.
pub(crate) fn arrival(ticket: u64, arrival_ns: u64) -> DiskRequest {
    DiskRequest {
        ticket,
        arrival_ns,
        operation: Operation::Read,
        offset_bytes: 0,
        length_bytes: 1,
        extra_ns: 0,
    }
}

/// Reads at random places.
pub(crate) fn random_reads(count: usize) -> Vec<TestRequest> {
    let offsets = random_offsets(count, 512, SIZE).into_iter();
    offsets.map(|offset| read(offset, 512)).collect()
}

/// Keeps `depth` requests in flight from time 0; each one's arrival and end, in order of
/// arrival.
pub(crate) fn closed_loop(
    timing: &mut dyn TimingModel,
    depth: usize,
    loads: &[TestRequest],
) -> Vec<(u64, u64)> {
    let mut times = vec![(0, 0); loads.len()];
    let mut next = 0;
    let mut now_ns = 0;
    let mut in_flight = 0;
    let mut done = 0;
    while done < loads.len() {
        while in_flight < depth && next < loads.len() {
            let TestRequest {
                operation,
                offset_bytes,
                length_bytes,
            } = loads[next];
            times[next].0 = now_ns;
            timing.submit(DiskRequest {
                ticket: next as u64,
                arrival_ns: now_ns,
                operation,
                offset_bytes,
                length_bytes,
                extra_ns: 0,
            });
            next += 1;
            in_flight += 1;
        }
        if let Some(completion) = timing.take_done(now_ns) {
            assert!(completion.at_ns <= now_ns, "ended in the future");
            times[completion.ticket as usize].1 = completion.at_ns;
            in_flight -= 1;
            done += 1;
        } else {
            let next_ns = timing.next_ns().expect("requests are under way");
            assert!(next_ns > now_ns, "no progress at {now_ns}");
            now_ns = next_ns;
        }
    }
    assert_eq!(timing.next_ns(), None, "nothing is left");
    times
}

/// Returns the time at which each of `loads` ended.
pub(crate) fn ends(timing: &mut dyn TimingModel, depth: usize, loads: &[TestRequest]) -> Vec<u64> {
    let times = closed_loop(timing, depth, loads);
    times.iter().map(|(_, end_ns)| *end_ns).collect()
}

/// Returns the time at which the last of `loads` ended.
pub(crate) fn total_ns(timing: &mut dyn TimingModel, depth: usize, loads: &[TestRequest]) -> u64 {
    ends(timing, depth, loads).into_iter().max().unwrap_or(0)
}

/// Repeatable random offsets, aligned to `block_bytes`, below `size_bytes` (splitmix64).
pub(crate) fn random_offsets(count: usize, block_bytes: u64, size_bytes: u64) -> Vec<u64> {
    let mut state = 1u64;
    (0..count)
        .map(|_| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (z ^ (z >> 31)) % (size_bytes / block_bytes) * block_bytes
        })
        .collect()
}
