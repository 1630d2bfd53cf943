//! The decisions of live comparisons of disks with known properties.

use super::super::volume::{KeptRate, Volume, Volumes, rates};
use super::*;
use crate::fixture::test_rng::TestRng;
use diskproof_model::plan::Stop;
use diskproof_model::series::TimeSeries;
use diskproof_model::window::{SliceLatency, TimeSlice};
use std::collections::BTreeMap;

const SECOND: u64 = 1_000_000_000;

/// Disks of these rates, whose slices vary by a share; both share a drift.
struct Disks {
    rates: Vec<f64>,
    noise: f64,
    /// Loss of both from the beginning to the end of a minute.
    drift: f64,
    latency_ns: f64,
    /// The time from the end of a slice until its last requests are answered.
    drain_ns: u64,
    /// Another program that uses the disk of both; `None` without one.
    neighbour: Option<Neighbour>,
    rng: TestRng,
    now_ns: u64,
}

/// A program that takes a share of a disk, and comes and goes by chance.
struct Neighbour {
    /// The share of the rate that it takes.
    share: f64,
    /// The times at which it comes, goes, comes and so on, ascending.
    changes_ns: Vec<f64>,
}

impl Neighbour {
    /// A neighbour that stays for a time and away for a time, both by chance around their means.
    fn new(share: f64, mean_on_s: f64, mean_off_s: f64, seed: u64) -> Self {
        let mut rng = TestRng(1000 + seed);
        let mut changes_ns = Vec::new();
        let mut now_s = 0.0;
        for change in 0..400 {
            let mean_s = if change % 2 == 0 {
                mean_off_s
            } else {
                mean_on_s
            };
            now_s -= mean_s * (1.0 - rng.share()).ln();
            changes_ns.push(now_s * 1e9);
        }
        Self { share, changes_ns }
    }

    /// The part of the rate that it leaves in a slice.
    fn left(&self, start_ns: u64, wall_ns: u64) -> f64 {
        let end_ns = (start_ns + wall_ns) as f64;
        let mut on_ns = 0.0;
        for on in self.changes_ns.chunks_exact(2) {
            on_ns += (on[1].min(end_ns) - on[0].max(start_ns as f64)).max(0.0);
        }
        1.0 - self.share * on_ns / wall_ns as f64
    }
}

impl Disks {
    fn new(rates: &[f64], noise: f64, seed: u64) -> Self {
        Self {
            rates: rates.to_vec(),
            noise,
            drift: 0.0,
            latency_ns: 1e6,
            drain_ns: 0,
            neighbour: None,
            rng: TestRng(seed + 1),
            now_ns: 0,
        }
    }

    fn measure(&mut self, cell: &CampaignCell) -> MeasuredCell {
        let wall_ns = cell.workload.stop.time_ns.unwrap();
        let start_ns = self.now_ns + cell.workload.warmup_ns;
        let minutes = start_ns as f64 / (60 * SECOND) as f64;
        // The sum of twelve shares has the variance 1.
        let normal: f64 = (0..12).map(|_| self.rng.share()).sum::<f64>() - 6.0;
        let log = self.noise * normal + self.drift * minutes;
        let left = match &self.neighbour {
            Some(neighbour) => neighbour.left(start_ns, wall_ns),
            None => 1.0,
        };
        let rate = self.rates[cell.side] * log.exp() * left;
        let count = (rate * wall_ns as f64 / 1e9).round() as u64;
        self.now_ns = start_ns + wall_ns + self.drain_ns;
        let op = SliceOp {
            latency: Some(SliceLatency {
                mean_ns: self.latency_ns,
                p50_ns: None,
                p99_ns: None,
                p99_9_ns: None,
            }),
            ..SliceOp::from_counts(count, count * 8192, wall_ns)
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
            asked_bytes: count * 8192,
            span_bytes: 0,
        }
    }
}

fn setup(workloads: usize, sides: usize, seconds: u64) -> LiveSetup {
    let workload = |index: usize| Workload {
        warmup_ns: SECOND,
        ..Workload::named(&format!("w{index}"))
    };
    LiveSetup {
        workloads: (0..workloads).map(workload).collect(),
        sides,
        disks: SideDisks::Several((0..sides).collect()),
        margin: 0.02,
        time_ns: seconds * SECOND,
        seed: 1,
    }
}

#[test]
fn targets_that_were_filled_slowly_leave_less_time() {
    let mut campaign = LiveComparison::new(setup(4, 2, 47));
    campaign.limit_time(20 * SECOND);
    let mut disks = Disks::new(&[100.0, 100.0], 0.05, 1);
    disks.drain_ns = SECOND;
    let mut done = Vec::new();
    while let Some(cell) = campaign.next(&done).cell {
        done.push(disks.measure(&cell));
    }
    assert!(done.len() > 8 && elapsed_ns(&done) <= 20 * SECOND);
    // A campaign never takes more than was planned.
    let mut campaign = LiveComparison::new(setup(4, 2, 47));
    campaign.limit_time(u64::MAX);
    assert_eq!(campaign.setup.time_ns, 47 * SECOND);
}

#[test]
fn slices_that_drain_for_long_leave_no_block_to_the_deadline() {
    for drain_ns in [0, SECOND, 3 * SECOND, 6 * SECOND] {
        for seed in 0..20 {
            let mut setup = setup(4, 2, 47);
            setup.seed = seed;
            let mut disks = Disks::new(&[100.0, 100.0], 0.05, seed);
            disks.drain_ns = drain_ns;
            let (done, decisions) = carry_out(setup, &mut disks);
            // Each workload has one block, whatever it takes.
            assert!(decisions.iter().all(|decision| decision.blocks > 0));
            assert_eq!(done.len() % 2, 0);
            let first_blocks_ns = elapsed_ns(&done[..8]);
            let limit_ns = first_blocks_ns.max(47 * SECOND);
            assert!(elapsed_ns(&done) <= limit_ns, "{drain_ns} {seed}");
        }
    }
}

fn carry_out(setup: LiveSetup, disks: &mut Disks) -> (Vec<MeasuredCell>, Vec<CampaignDecision>) {
    let mut campaign = LiveComparison::new(setup);
    let mut done = Vec::new();
    while let Some(cell) = campaign.next(&done).cell {
        done.push(disks.measure(&cell));
    }
    (done, campaign.decisions())
}

#[test]
fn each_block_holds_every_side_once_in_changing_order() {
    let mut disks = Disks::new(&[1000.0, 1000.0, 1000.0], 0.2, 1);
    let (done, decisions) = carry_out(setup(4, 3, 60), &mut disks);
    let mut orders = BTreeMap::new();
    for block in done.chunks(3) {
        let sides: Vec<usize> = block.iter().map(|measured| measured.cell.side).collect();
        let mut sorted = sides.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2]);
        assert!(
            block
                .iter()
                .all(|measured| measured.cell.workload == block[0].cell.workload)
        );
        *orders.entry(sides).or_insert(0) += 1;
    }
    assert_eq!(orders.len(), 6, "{orders:?}");
    // A round holds one block of each workload.
    for round in done.chunks(12).filter(|round| round.len() == 12) {
        let mut names: Vec<&str> = round
            .iter()
            .map(|measured| measured.cell.workload.name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names, ["w0", "w1", "w2", "w3"]);
    }
    assert!(decisions.iter().all(|one| one.ended == CampaignEnd::Time));
    let blocks: u64 = decisions.iter().map(|one| one.blocks).sum();
    assert_eq!(blocks as usize, done.len() / 3);
    assert!(disks.now_ns <= 60 * SECOND, "{}", disks.now_ns);
}

#[test]
fn decided_workload_ends_early_and_leaves_its_time() {
    let mut disks = Disks::new(&[1000.0, 2000.0], 0.05, 1);
    let (done, decisions) = carry_out(setup(1, 2, 60), &mut disks);
    assert_eq!(decisions[0].ended, CampaignEnd::Decided);
    assert!((4..=6).contains(&decisions[0].blocks), "{decisions:?}");
    assert_eq!(done.len() as u64, 2 * decisions[0].blocks);
    // Slices that do not vary show equal disks after three.
    let mut disks = Disks::new(&[1000.0, 1000.0], 0.0, 1);
    let (_, decisions) = carry_out(setup(1, 2, 60), &mut disks);
    assert_eq!(
        (decisions[0].ended, decisions[0].blocks),
        (CampaignEnd::Decided, 3)
    );
}

/// 400 comparisons of each kind; a share of 5 % has a standard deviation of 1.1 %.
#[test]
fn equal_disks_are_rarely_different_and_a_tenth_is_found() {
    let count = |faster: f64, drift: f64| {
        let (mut different, mut wrong) = (0, 0);
        for seed in 0..400 {
            let mut disks = Disks::new(&[1000.0, 1000.0 * faster], 0.05, seed);
            disks.drift = drift;
            let setup = LiveSetup {
                seed,
                ..setup(1, 2, 60)
            };
            let (done, _) = carry_out(setup, &mut disks);
            let cells: Vec<&MeasuredCell> = done.iter().collect();
            let ratio = log_ratio(&cells, 1).unwrap();
            let is_different = ratio.mean.abs() > ratio.half_width(0.95);
            different += u32::from(is_different);
            wrong += u32::from(is_different && ratio.mean < 0.0);
        }
        (different, wrong)
    };
    // Every look at 5 % would give about 80.
    let (different, _) = count(1.0, 0.0);
    assert!(different <= 32, "{different}");
    // Both lose half of their rate meanwhile.
    let (different, _) = count(1.0, -0.7);
    assert!(different <= 32, "{different}");
    let (found, wrong) = count(1.1, 0.0);
    assert!(found >= 380 && wrong == 0, "{found} {wrong}");
}

/// Returns `true` if any workload of a comparison of equal sides is called different, by the cells
/// that were not dropped.
fn is_wrongly_decided(setup: LiveSetup, disks: &mut Disks) -> bool {
    let margin = (1.0 + setup.margin).ln();
    let level_of_first = 0.05 / setup.workloads.len() as f64;
    let mut counted_from = vec![0; setup.workloads.len()];
    let names: Vec<String> = setup
        .workloads
        .iter()
        .map(|workload| workload.name.clone())
        .collect();
    let mut campaign = LiveComparison::new(setup);
    let mut done: Vec<MeasuredCell> = Vec::new();
    loop {
        let step = campaign.next(&done);
        for dropped in &step.dropped {
            let index = names.iter().position(|name| *name == dropped.workload);
            counted_from[index.unwrap()] = done.len();
        }
        let Some(cell) = step.cell else {
            break;
        };
        done.push(disks.measure(&cell));
    }
    for (name, from) in std::iter::zip(&names, counted_from) {
        let mut cells: Vec<&MeasuredCell> = done[from..].iter().collect();
        cells.retain(|measured| measured.cell.workload.name == *name);
        if let Some(ratio) = log_ratio(&cells, 1)
            && ratio.mean.abs() > margin
            && ratio.mean.abs() > ratio.half_width(1.0 - level_of_first)
        {
            return true;
        }
    }
    false
}

/// 200 comparisons of four workloads on equal sides, beside a neighbour that comes and goes. One in
/// twenty may name a difference in any workload (Holm 1979); the first of four tests has a quarter
/// of that level. Changes within a block widen its interval, and random order favours no side.
#[test]
fn neighbour_that_comes_and_goes_makes_equal_sides_rarely_different() {
    const COMPARISONS: u64 = 200;
    for (mean_on_s, mean_off_s, share) in [
        (2.0, 2.0, 0.6),
        (10.0, 10.0, 0.3),
        (0.5, 5.0, 0.9),
        (0.5, 0.5, 0.6),
    ] {
        for disks_of_sides in [vec![0, 1], vec![0, 0]] {
            let mut wrong = 0;
            for seed in 0..COMPARISONS {
                let mut disks = Disks::new(&[1000.0, 1000.0], 0.01, seed);
                disks.neighbour = Some(Neighbour::new(share, mean_on_s, mean_off_s, seed));
                let setup = LiveSetup {
                    seed,
                    disks: SideDisks::Several(disks_of_sides.clone()),
                    ..setup(4, 2, 60)
                };
                wrong += u64::from(is_wrongly_decided(setup, &mut disks));
            }
            // 5 % and two standard deviations of it.
            assert!(
                wrong <= 16,
                "{wrong}: {mean_on_s} {mean_off_s} {share} {disks_of_sides:?}"
            );
        }
    }
}

#[test]
fn slices_follow_the_time_and_the_latency() {
    let slice_ns = |workloads, sides, seconds| {
        LiveComparison::new(setup(workloads, sides, seconds)).progress[0].slice_ns
    };
    assert_eq!(slice_ns(4, 2, 64), SECOND);
    assert_eq!(slice_ns(4, 2, 6), SLICE_NS_MIN);
    assert_eq!(slice_ns(1, 2, 600), SLICE_NS_MAX);
    // 100 ms a request: 20 of them, as the time allows.
    let mut disks = Disks::new(&[320.0, 320.0], 0.05, 1);
    disks.latency_ns = 1e8;
    let (done, _) = carry_out(setup(2, 2, 32), &mut disks);
    let last = &done[done.len() - 1].cell.workload;
    assert_eq!(
        last.stop.time_ns.unwrap() + last.warmup_ns,
        2 * SECOND,
        "a quarter of its time"
    );
}

#[test]
fn bytes_end_a_workload() {
    let mut limited = setup(1, 2, 60);
    limited.workloads[0].stop = Stop {
        bytes: Some(100 << 20),
        ..Stop::default()
    };
    let mut campaign = LiveComparison::new(limited);
    let mut done = Vec::new();
    while let Some(cell) = campaign.next(&done).cell {
        let bytes = cell.workload.stop.bytes.unwrap();
        let wall_ns = SECOND / (2 + done.len() as u64 % 3);
        let op = SliceOp::from_counts(bytes / 8192, bytes, wall_ns);
        done.push(MeasuredCell {
            slice: TimeSlice {
                start_ns: done.len() as u64 * SECOND,
                wall_ns,
                ops: BTreeMap::from([(OpKind::Read, op)]),
                slot: None,
            },
            trial: None,
            pause: None,
            moved: TimeSeries::new(1),
            asked_bytes: bytes,
            span_bytes: 0,
            cell,
        });
    }
    let decisions = campaign.decisions();
    assert_eq!(
        (decisions[0].blocks, decisions[0].ended),
        (8, CampaignEnd::Bytes)
    );
    let moved: u64 = done
        .iter()
        .map(|measured| measured.slice.ops[&OpKind::Read].bytes)
        .sum();
    assert_eq!(moved, 200 << 20);
}

#[test]
fn same_seed_gives_the_same_cells() {
    let cells = |seed| {
        let setup = LiveSetup {
            seed,
            ..setup(3, 2, 30)
        };
        let (done, _) = carry_out(setup, &mut Disks::new(&[1000.0, 1000.0], 0.1, 1));
        let cells: Vec<(usize, String)> = done
            .into_iter()
            .map(|measured| (measured.cell.side, measured.cell.workload.name))
            .collect();
        cells
    };
    assert_eq!(cells(1), cells(1));
    assert_ne!(cells(1), cells(2));
}

/// Two settings of one volume spend its credit together; each alone seems to have half of it.
#[test]
fn sides_on_one_volume_show_its_whole_credit() {
    let mut asked = setup(1, 2, 30);
    asked.workloads[0].depth = 32;
    asked.disks = SideDisks::One;
    let mut campaign = LiveComparison::new(asked);
    let mut volumes = Volumes::new(
        &[Volume {
            service_ns: 200_000.0,
            base: 1000.0,
            burst: 4000.0,
            credit: 12_000.0,
        }],
        1e9,
    );
    volumes.carry_out(&mut campaign);
    for credit in campaign.credits {
        let credit = credit.unwrap().bucket.credit;
        assert!((credit / 12_000.0 - 1.0).abs() < 0.15, "{credit}");
    }
}

/// 4000/s until the credit is spent, then 1000/s, beside a volume that always allows 1500/s.
#[test]
fn blocks_of_a_burst_are_measured_again() {
    let credit = Volume {
        service_ns: 340_000.0,
        base: 1000.0,
        burst: 4000.0,
        credit: 5000.0,
    };
    let constant = Volume {
        base: 1500.0,
        burst: 1500.0,
        ..credit
    };
    let mut asked = setup(1, 2, 120);
    asked.workloads[0].depth = 32;
    let mut campaign = LiveComparison::new(asked);
    let mut volumes = Volumes::new(&[credit, constant], 1e9);
    volumes.carry_out(&mut campaign);
    let kept = rates(&volumes.kept);
    assert!(kept.len() >= 2 * BLOCKS_MIN as usize, "{kept:?}");
    for KeptRate { side, iops, .. } in kept {
        let lasting = [1000.0, 1500.0][side];
        assert!((iops / lasting - 1.0).abs() < 0.05, "side {side}: {iops}");
    }
}
