//! The decisions of sweeps of disks with known properties.

use super::super::volume::{Volume, Volumes, rates};
use super::cell::SLICES_MAX;
use super::*;
use crate::fixture::test_rng::TestRng;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::Stop;
use diskproof_model::series::TimeSeries;
use diskproof_model::stream::Streams;
use diskproof_model::window::{SliceLatency, SliceOp, TimeSlice};
use std::collections::{BTreeMap, BTreeSet};

const SECOND: u64 = 1_000_000_000;
const SIZES: [u32; 7] = [4, 8, 32, 128, 256, 1024, 4096];
const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Between two slices of a real run.
const OVERHEAD_NS: u64 = 25_000_000;

/// A disk that serves this many requests at a time, each in its own time and that of its transfer.
struct Disk {
    service_ns: f64,
    channels: f64,
    bytes_per_second: f64,
    /// Of the rate of a slice.
    noise: f64,
    rng: TestRng,
    now_ns: u64,
}

impl Disk {
    fn new(service_ns: f64, channels: u32, noise: f64) -> Self {
        Self {
            service_ns,
            channels: f64::from(channels),
            bytes_per_second: 150e6 * f64::from(channels),
            noise,
            rng: TestRng(5),
            now_ns: 10 * SECOND,
        }
    }

    fn rate(&self, workload: &Workload) -> f64 {
        let transfer_ns = f64::from(workload.block_bytes) * 1e9 / self.bytes_per_second;
        let alone_ns = self.service_ns + transfer_ns * self.channels;
        f64::from(workload.depth).min(self.channels) * 1e9 / alone_ns
    }

    fn measure(&mut self, cell: &CampaignCell) -> MeasuredCell {
        let workload = &cell.workload;
        let true_rate = self.rate(workload);
        let rate = true_rate * (1.0 + self.noise * self.rng.normal());
        let latency_ns = f64::from(workload.depth) * 1e9 / true_rate;
        let (wall_ns, start_ns) = (
            workload.stop.time_ns.unwrap(),
            self.now_ns + workload.warmup_ns,
        );
        let count = (rate * wall_ns as f64 / 1e9) as u64;
        // What is in flight at the end completes.
        self.now_ns = start_ns + wall_ns + latency_ns as u64 + OVERHEAD_NS;
        let op = SliceOp {
            latency: (count > 0).then_some(SliceLatency {
                mean_ns: latency_ns,
                p50_ns: None,
                p99_ns: None,
                p99_9_ns: None,
            }),
            ..SliceOp::from_counts(count, count * u64::from(workload.block_bytes), wall_ns)
        };
        MeasuredCell {
            cell: cell.clone(),
            slice: TimeSlice {
                start_ns,
                wall_ns,
                ops: BTreeMap::from([(OpKind::Read, op)]),
                slot: None,
            },
            trial: None,
            pause: None,
            moved: TimeSeries::new(1),
            asked_bytes: count * u64::from(cell.workload.block_bytes),
            span_bytes: 0,
        }
    }
}

fn setup(seconds: u64, bytes: Option<u64>) -> SweepSetup {
    let mut cells = Vec::new();
    for operation in ["a", "b"] {
        for (size, kib) in SIZES.into_iter().enumerate() {
            for (place, depth) in DEPTHS.into_iter().enumerate() {
                let workload = Workload {
                    block_bytes: kib << 10,
                    depth,
                    stop: Stop {
                        bytes,
                        ..Stop::default()
                    },
                    ..Workload::named(&format!("{operation}-{kib}k-d{depth}"))
                };
                let pass = match size % 2 == 1 && place % 2 == 0 {
                    true => SweepPass::Coarse,
                    false => SweepPass::Fine,
                };
                cells.push(SweepCellSetup { workload, pass });
            }
        }
    }
    SweepSetup {
        cells,
        time_ns: seconds * SECOND,
        precision: 0.02,
        seed: 1,
    }
}

fn carry_out(setup: &SweepSetup, disk: &mut Disk) -> Vec<MeasuredCell> {
    let mut sweep = Sweep::new(setup);
    let mut done = Vec::new();
    while let Some(cell) = sweep.next(&done).cell {
        done.push(disk.measure(&cell));
    }
    done
}

#[test]
fn cells_with_huge_queues_come_last_in_their_pass() {
    let mut setup = setup(60, None);
    for cell in &mut setup.cells {
        if cell.workload.block_bytes == 4096 << 10 {
            cell.workload.block_bytes = 64 << 20;
            cell.pass = SweepPass::Coarse;
        }
    }
    let mut sweep = Sweep::new(&setup);
    let coarse: Vec<u64> = std::mem::take(&mut sweep.coarse)
        .into_iter()
        .map(|index| in_flight_bytes(&setup.cells[index].workload))
        .collect();
    let first_huge = coarse
        .iter()
        .position(|bytes| *bytes > IN_FLIGHT_BYTES_MAX)
        .unwrap();
    assert!(first_huge > 0 && first_huge < coarse.len());
    assert!(
        coarse[first_huge..]
            .iter()
            .all(|bytes| *bytes > IN_FLIGHT_BYTES_MAX)
    );
}

fn slices(done: &[MeasuredCell]) -> BTreeMap<&str, usize> {
    let mut slices = BTreeMap::new();
    for measured in done {
        *slices
            .entry(measured.cell.workload.name.as_str())
            .or_insert(0) += 1;
    }
    slices
}

#[test]
fn default_matrix_fits_three_minutes_on_slow_and_fast_disks() {
    // 100 IOPS, 500,000 IOPS, and one that varies too much to be known to 2 %.
    for (service_ns, channels, noise) in [(10e6, 1, 0.05), (100e3, 50, 0.005), (1e6, 4, 0.2)] {
        let mut disk = Disk::new(service_ns, channels, noise);
        let done = carry_out(&setup(176, None), &mut disk);
        let seconds = disk.now_ns / SECOND;
        println!(
            "{service_ns} ns × {channels}: {seconds} s, {} slices",
            done.len()
        );
        assert!(disk.now_ns <= 180 * SECOND, "{seconds} s");
        assert_eq!(slices(&done).len(), 98, "every cell is measured");
    }
}

#[test]
fn even_disk_ends_each_cell_after_three_slices() {
    let mut disk = Disk::new(100e3, 8, 0.001);
    disk.bytes_per_second = 1e12;
    let done = carry_out(&setup(176, None), &mut disk);
    assert!(slices(&done).values().all(|count| *count == 3));
    assert!(disk.now_ns < 160 * SECOND, "{}", disk.now_ns);
}

#[test]
fn coarse_matrix_comes_first_and_soon() {
    let mut disk = Disk::new(10e6, 1, 0.05);
    let done = carry_out(&setup(176, None), &mut disk);
    let is_coarse = |measured: &MeasuredCell| {
        let (bytes, depth) = (
            measured.cell.workload.block_bytes,
            measured.cell.workload.depth,
        );
        [8, 128, 1024].contains(&(bytes >> 10)) && [1, 4, 16, 64].contains(&depth)
    };
    assert!(done[..24].iter().all(is_coarse));
    assert_eq!(slices(&done[..24]).len(), 24);
    let end_ns = done[23].slice.start_ns + done[23].slice.wall_ns;
    assert!(end_ns < 60 * SECOND, "{end_ns}");
    assert_eq!(slices(&done[..98]).len(), 98);
    let order: Vec<&str> = done[24..98]
        .iter()
        .map(|measured| measured.cell.workload.name.as_str())
        .collect();
    assert!(!order.is_sorted(), "random order");
}

#[test]
fn extra_time_goes_to_the_largest_error() {
    let mut sweep_setup = setup(60, None);
    sweep_setup.cells.truncate(4);
    let noisy = sweep_setup.cells[2].workload.name.clone();
    let mut disk = Disk::new(100e3, 4, 0.0);
    let mut sweep = Sweep::new(&sweep_setup);
    let mut done = Vec::new();
    while let Some(cell) = sweep.next(&done).cell {
        disk.noise = if cell.workload.name == noisy {
            0.2
        } else {
            0.001
        };
        done.push(disk.measure(&cell));
    }
    let slices = slices(&done);
    assert_eq!(slices[noisy.as_str()], SLICES_MAX, "{slices:?}");
    assert_eq!(slices.values().filter(|count| **count == 3).count(), 3);
}

/// Sixteen requests in parallel, so the knee is at depth 16. The time ends before the second pass.
#[test]
fn knees_get_three_slices_of_a_short_time() {
    let mut disk = Disk::new(1e6, 16, 0.02);
    let mut setup = setup(24, None);
    let writes = setup
        .cells
        .iter_mut()
        .filter(|cell| cell.workload.name.starts_with('b'));
    writes.for_each(|cell| cell.workload.streams = Streams::with_reads(0));
    let done = carry_out(&setup, &mut disk);
    let slices = slices(&done);
    assert!((50..98).contains(&slices.len()), "{slices:?}");
    for name in ["a-8k-d16", "b-8k-d16"] {
        assert!(slices[name] >= 3, "{name}: {slices:?}");
    }
}

#[test]
fn cell_moves_no_more_than_its_bytes() {
    let limit = 64 << 20;
    let done = carry_out(&setup(176, Some(limit)), &mut Disk::new(100e3, 8, 0.05));
    let mut asked: BTreeMap<&str, u64> = BTreeMap::new();
    for measured in &done {
        let workload = &measured.cell.workload;
        let moved = measured.slice.ops[&OpKind::Read].bytes;
        let asked = asked.entry(workload.name.as_str()).or_default();
        assert!(workload.stop.bytes.unwrap() <= limit, "{}", workload.name);
        assert!(*asked < limit, "{} goes on", workload.name);
        *asked += moved;
    }
}

#[test]
fn short_time_measures_what_fits() {
    for seconds in [1, 12, 30] {
        let mut disk = Disk::new(10e6, 1, 0.05);
        let done = carry_out(&setup(seconds, None), &mut disk);
        let names: BTreeSet<&str> = slices(&done).into_keys().collect();
        assert!(!names.is_empty());
        let end_ns = done.last().unwrap().slice.start_ns + done.last().unwrap().slice.wall_ns;
        assert!(
            done.len() == 1 || end_ns <= seconds * SECOND,
            "{seconds}: {end_ns}"
        );
    }
}

/// 3000/s until the credit is spent, then 1000/s: all cells want more.
#[test]
fn cells_of_a_burst_are_measured_again() {
    let volume = Volume {
        service_ns: 340_000.0,
        base: 1000.0,
        burst: 3000.0,
        credit: 20_000.0,
    };
    let mut sweep = Sweep::new(&setup(180, None));
    let mut volumes = Volumes::new(&[volume], 1e9);
    volumes.carry_out(&mut sweep);
    let kept = rates(&volumes.kept);
    let lasting = kept
        .iter()
        .filter(|kept| (kept.iops / 1000.0 - 1.0).abs() < 0.05)
        .count();
    assert!(
        lasting == kept.len(),
        "{lasting} of {}: {kept:?}",
        kept.len()
    );
}
