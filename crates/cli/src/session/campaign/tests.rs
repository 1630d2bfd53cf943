//! Campaigns in virtual time: the same runner and the same decisions on simulated disks.

use super::*;
use crate::session::run_facts;
use crate::session::sink::INTERRUPTED;
use diskproof_analysis::campaign::{
    LiveComparison, LiveSetup, RateCampaign, SideDisks, Sweep, SweepCellSetup, SweepPass,
    SweepSetup,
};
use diskproof_analysis::judge::judge;
use diskproof_engine::{FakeDisk, simulate};
use diskproof_model::campaign::{CampaignDecision, CampaignEnd};
use diskproof_model::capacity_workloads;
use diskproof_model::data::RunData;
use diskproof_model::plan::{Access, Decide, Plan, Task, Workloads};
use diskproof_model::progress::{Control, Progress, Watch};
use diskproof_model::rate::{BreakLimit, LoadOutcome, RatePlan, RateTrial};
use diskproof_model::record::{Record, TaskResult};
use diskproof_model::stream::Streams;
use diskproof_model::sweep::{CellState, SweepOperation, SweepPlan};
use std::time::SystemTime;

const SECOND_NS: u64 = 1_000_000_000;

/// Carries the campaign out to its end, and returns it.
fn carry_out(
    campaign: impl Campaign + 'static,
    bench: &mut impl CampaignBench,
) -> Result<Box<dyn Campaign>, EarlyEnd> {
    let mut progress = CampaignProgress::new(Box::new(campaign));
    while progress.step(bench)? == Stepped::More {}
    Ok(progress.campaign)
}

struct Unwatched;

impl Watch for Unwatched {
    fn tick(&mut self, _: &Progress<'_>) -> Control {
        Control::Continue
    }
}

/// Disks, one for each side, on one virtual clock.
struct SimulatedCells {
    disks: Vec<FakeDisk>,
    now_ns: u64,
    measured: u64,
    /// The cell that ends the campaign.
    last: Option<u64>,
}

impl SimulatedCells {
    fn with_speeds(speeds: &[f64]) -> Self {
        let mut disks = Vec::new();
        for speed in speeds {
            let service_ns = (1_000_000.0 / speed) as u64;
            disks.push(FakeDisk {
                service_ns,
                jitter_ns: service_ns,
                channels: 4,
                size_bytes: 1 << 30,
            });
        }
        Self {
            disks,
            now_ns: 0,
            measured: 0,
            last: None,
        }
    }
}

impl CampaignBench for SimulatedCells {
    fn measure(&mut self, cell: &CampaignCell) -> Result<MeasuredCell, EarlyEnd> {
        if self.last == Some(self.measured) {
            return Err(EarlyEnd::interrupted());
        }
        self.measured += 1;
        let disk = self.disks[cell.side];
        let mut measurement =
            simulate(&cell.workload, disk, self.measured, &mut Unwatched).unwrap();
        measurement.start_ns += self.now_ns;
        self.now_ns = measurement.start_ns + measurement.wall_ns;
        Ok(MeasuredCell::new(cell.clone(), &measurement))
    }

    fn pause(&mut self, pause_ns: u64) -> Result<(), EarlyEnd> {
        self.now_ns += pause_ns;
        Ok(())
    }

    fn drop_row(&mut self, row: &CampaignRow, _: Vec<DroppedSlice>) {
        panic!("a healthy disk has no credit: {row:?}");
    }
}

fn workload(name: &str, depth: u32) -> Workload {
    Workload {
        depth,
        warmup_ns: SECOND_NS / 2,
        ..Workload::named(name)
    }
}

fn campaign(sides: usize, seconds: u64) -> LiveComparison {
    LiveComparison::new(LiveSetup {
        workloads: vec![workload("d1", 1), workload("d32", 32)],
        sides,
        disks: SideDisks::Several((0..sides).collect()),
        margin: 0.02,
        time_ns: seconds * SECOND_NS,
        seed: 1,
    })
}

fn decisions(speeds: &[f64], seconds: u64) -> (Vec<CampaignDecision>, u64) {
    let mut cells = SimulatedCells::with_speeds(speeds);
    let over = carry_out(campaign(speeds.len(), seconds), &mut cells).unwrap();
    (over.decisions(), cells.now_ns)
}

#[test]
fn campaign_decides_a_tenth_and_equality_in_virtual_time() {
    for speeds in [[1.0, 1.1], [1.0, 1.0]] {
        let (decisions, ns) = decisions(&speeds, 60);
        assert!(
            decisions
                .iter()
                .all(|one| one.ended == CampaignEnd::Decided),
            "{decisions:?}"
        );
        assert!(ns < 60 * SECOND_NS, "{ns}");
    }
}

#[test]
fn campaign_ends_with_its_time() {
    let (decisions, ns) = decisions(&[1.0, 1.019, 0.982], 10);
    assert!(
        decisions.iter().any(|one| one.ended == CampaignEnd::Time),
        "{decisions:?}"
    );
    assert!(ns <= 10 * SECOND_NS, "{ns}");
}

#[test]
fn campaign_that_ends_early_has_no_answer() {
    let mut cells = SimulatedCells::with_speeds(&[1.0, 1.1]);
    cells.last = Some(3);
    let ended = carry_out(campaign(2, 60), &mut cells).err().unwrap();
    assert_eq!(ended.to_string(), INTERRUPTED);
    assert_eq!(cells.measured, 3);
}

/// A disk of this many channels, each of which serves a request in its own time and that of its
/// transfer. Its matrix is known.
#[derive(Clone, Copy)]
struct KnownDisk {
    service_ns: u64,
    channels: usize,
    channel_bytes_per_second: f64,
    /// Share of the service time that varies, evenly.
    jitter: f64,
}

impl KnownDisk {
    fn fake(self, block_bytes: u32) -> FakeDisk {
        let transfer_ns = f64::from(block_bytes) * 1e9 / self.channel_bytes_per_second;
        let service_ns = self.service_ns + transfer_ns as u64;
        let jitter_ns = (service_ns as f64 * self.jitter) as u64;
        FakeDisk {
            service_ns: service_ns - jitter_ns / 2,
            jitter_ns,
            channels: self.channels,
            size_bytes: 4 << 30,
        }
    }

    fn iops(self, block_bytes: u32, depth: u32) -> f64 {
        let disk = self.fake(block_bytes);
        let mean_ns = disk.service_ns as f64 + disk.jitter_ns as f64 / 2.0;
        f64::from(depth).min(self.channels as f64) * 1e9 / mean_ns
    }
}

/// Cells of a sweep on one virtual clock, with 25 ms between two.
struct SimulatedSweep {
    disk: KnownDisk,
    now_ns: u64,
    measurements: Vec<Measurement>,
    slices: u64,
}

impl CampaignBench for SimulatedSweep {
    fn measure(&mut self, cell: &CampaignCell) -> Result<MeasuredCell, EarlyEnd> {
        self.slices += 1;
        let disk = self.disk.fake(cell.workload.block_bytes);
        let mut measured = simulate(&cell.workload, disk, self.slices, &mut Unwatched).unwrap();
        measured.start_ns += self.now_ns;
        let slice = MeasuredCell::new(cell.clone(), &measured);
        let latency_ns = measured
            .ops
            .values()
            .next()
            .map_or(0, |op| op.latency.max_ns());
        self.now_ns = measured.start_ns + measured.wall_ns + latency_ns + 25_000_000;
        match self
            .measurements
            .iter_mut()
            .find(|known| known.workload.name == measured.workload.name)
        {
            Some(known) => known.append(measured),
            None => self.measurements.push(measured),
        }
        Ok(slice)
    }

    fn pause(&mut self, _: u64) -> Result<(), EarlyEnd> {
        Ok(())
    }

    fn drop_row(&mut self, row: &CampaignRow, _: Vec<DroppedSlice>) {
        panic!("a healthy disk has no credit: {row:?}");
    }
}

const SIZES: [u32; 7] = [
    4 << 10,
    8 << 10,
    32 << 10,
    128 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
];
const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

fn swept(disk: KnownDisk) -> (Record, u64) {
    let operations = vec![SweepOperation::RandRead, SweepOperation::Read];
    let mut workloads = Vec::new();
    for operation in &operations {
        for block_bytes in SIZES {
            for depth in DEPTHS {
                let named = Workload::named(&operation.cell_name(block_bytes, depth));
                let access = match operation {
                    SweepOperation::Read => Access::Sequential,
                    _ => named.access.clone(),
                };
                workloads.push(Workload {
                    block_bytes,
                    depth,
                    access,
                    ..named
                });
            }
        }
    }
    let mut cell_setups = Vec::new();
    for (index, workload) in workloads.iter().enumerate() {
        cell_setups.push(SweepCellSetup {
            workload: workload.clone(),
            pass: if (index / 7 % 7) % 2 == 1 && index % 2 == 0 {
                SweepPass::Coarse
            } else {
                SweepPass::Fine
            },
        });
    }
    let sweep = Sweep::new(&SweepSetup {
        cells: cell_setups,
        time_ns: 176 * SECOND_NS,
        precision: 0.02,
        seed: 1,
    });
    let mut cells = SimulatedSweep {
        disk,
        now_ns: 0,
        measurements: Vec::new(),
        slices: 0,
    };
    carry_out(sweep, &mut cells).unwrap();
    let plan = Plan {
        seed: 1,
        targets: vec!["/disk".to_owned()],
        tasks: vec![Task::Workloads(Workloads {
            decide: Decide::Sweep(SweepPlan {
                operations,
                block_bytes: SIZES.to_vec(),
                depths: DEPTHS.to_vec(),
                span_bytes: Vec::new(),
                view: None,
            }),
            ..Workloads::as_planned(workloads)
        })],
        ..Plan::new("sweep", Vec::new())
    };
    let measurements = std::mem::take(&mut cells.measurements);
    let facts = run_facts(SystemTime::UNIX_EPOCH, plan, Vec::new());
    (
        judge(facts, &RunData::from_measurements(measurements), &[]),
        cells.now_ns,
    )
}

/// Every cell is within 2 % of the truth, or the truth within its interval; an interval holds it
/// in 95 of 100 cells.
fn assert_matrix(record: &Record, disk: KnownDisk) {
    let sweep = record.sweep().unwrap();
    let mut cells = 0;
    let mut outside = Vec::new();
    for matrix in &sweep.matrices {
        for cell in &matrix.cells {
            let name = matrix.operation.cell_name(cell.block_bytes, cell.depth);
            assert_eq!(cell.state, CellState::Measured, "{name}");
            let iops = cell.iops.as_ref().unwrap();
            let truth = disk.iops(cell.block_bytes, cell.depth);
            let half_width = iops
                .half_width_95
                .unwrap_or_else(|| panic!("{name}: {iops:?}"));
            let error = (iops.value - truth).abs();
            cells += 1;
            if error > half_width.max(0.02 * truth) {
                outside.push(format!("{name}: {} ± {half_width} of {truth}", iops.value));
            }
        }
    }
    assert_eq!(cells, 98);
    assert!(outside.len() <= 5, "{outside:#?}");
}

/// The knees of both operations, in steps of the axis from the truth.
fn assert_knee(record: &Record, truth: u32) {
    for matrix in &record.sweep().unwrap().matrices {
        let knee = matrix.knee.as_ref().unwrap();
        let steps_off = axis_step(knee.depth).abs_diff(axis_step(truth));
        assert!(steps_off <= 1, "{knee:?}");
        let high = knee.depth_high.unwrap_or(u32::MAX);
        assert!((knee.depth_low..=high).contains(&truth), "{knee:?}");
    }
}

fn axis_step(depth: u32) -> usize {
    DEPTHS.iter().position(|one| *one == depth).unwrap()
}

#[test]
fn sweep_of_a_parallel_disk_finds_its_matrix_and_its_knee_in_three_minutes() {
    // 8000 IOPS, and a block of 200 kB takes as long as everything else.
    let disk = KnownDisk {
        service_ns: 2_000_000,
        channels: 16,
        channel_bytes_per_second: 1e8,
        jitter: 0.2,
    };
    let (record, ns) = swept(disk);
    assert!(ns <= 180 * SECOND_NS, "{ns}");
    assert_matrix(&record, disk);
    assert_knee(&record, 16);
    let matrix = &record.sweep().unwrap().matrices[0];
    let limit = matrix.bandwidth_limit.as_ref().unwrap();
    assert!(
        [128 << 10, 256 << 10].contains(&limit.block_bytes),
        "{limit:?}"
    );
    // One request of this disk has a sixteenth of its bandwidth, which three parameters cannot say.
    let model = matrix.cost_model.unwrap();
    assert!((0.3..0.7).contains(&model.model_error), "{model:?}");
}

#[test]
fn sweep_of_a_slow_disk_states_intervals_in_three_minutes() {
    // 100 IOPS.
    let disk = KnownDisk {
        service_ns: 10_000_000,
        channels: 1,
        channel_bytes_per_second: 150e6,
        jitter: 1.0,
    };
    let (record, ns) = swept(disk);
    assert!(ns <= 180 * SECOND_NS, "{ns}");
    assert_matrix(&record, disk);
    assert_knee(&record, 1);
}

/// Rates offered to a disk in virtual time, with 25 ms between two cells.
struct SimulatedRates {
    disk: FakeDisk,
    now_ns: u64,
    measurements: Vec<Measurement>,
    trials: Vec<RateTrial>,
}

impl CampaignBench for SimulatedRates {
    fn measure(&mut self, cell: &CampaignCell) -> Result<MeasuredCell, EarlyEnd> {
        let seed = self.trials.len() as u64;
        let mut measured = simulate(&cell.workload, self.disk, seed, &mut Unwatched).unwrap();
        measured.start_ns += self.now_ns;
        let measured_cell = MeasuredCell::new(cell.clone(), &measured);
        self.now_ns = measured.start_ns + measured.wall_ns + 25_000_000;
        self.trials.extend(measured_cell.trial.clone());
        let makes_a_row = match cell.purpose {
            CellPurpose::Row => true,
            CellPurpose::Trial(_, kind) => kind.makes_a_row(),
        };
        if makes_a_row {
            let name = &measured.workload.name;
            self.measurements.retain(|row| row.workload.name != *name);
            self.measurements.push(measured);
        }
        Ok(measured_cell)
    }

    fn pause(&mut self, _: u64) -> Result<(), EarlyEnd> {
        Ok(())
    }

    fn drop_row(&mut self, row: &CampaignRow, _: Vec<DroppedSlice>) {
        panic!("a search drops no row: {row:?}");
    }
}

const RATE_PLAN: RatePlan = RatePlan {
    percent: 90.0,
    limit_ns: 30_000_000,
    time_ns: 84 * SECOND_NS,
    hold_ns: 12 * SECOND_NS,
};

/// A disk that serves one request at a time, in ten milliseconds each.
fn searched_rate() -> Record {
    let cells = SimulatedRates {
        disk: FakeDisk {
            service_ns: 10_000_000,
            jitter_ns: 0,
            channels: 1,
            size_bytes: 1 << 30,
        },
        now_ns: 3 * SECOND_NS,
        measurements: Vec::new(),
        trials: Vec::new(),
    };
    let offered = workload("reads", 32);
    searched(vec![offered], cells)
}

/// The record of the searches of these workloads.
fn searched(list: Vec<Workload>, mut cells: SimulatedRates) -> Record {
    let task = Workloads {
        decide: Decide::Rate(RATE_PLAN),
        ..Workloads::as_planned(list)
    };
    carry_out(RateCampaign::new(&task, RATE_PLAN, 5), &mut cells).unwrap();
    let plan = Plan {
        seed: 5,
        targets: vec!["/disk".to_owned()],
        tasks: vec![Task::Workloads(task)],
        ..Plan::new("load", Vec::new())
    };
    let data = RunData {
        trials: cells.trials,
        ..RunData::from_measurements(cells.measurements)
    };
    judge(
        run_facts(SystemTime::UNIX_EPOCH, plan, Vec::new()),
        &data,
        &[],
    )
}

/// The rate at which one of ten requests waits and is served for longer than the limit, of a
/// disk that serves one at a time in constant time (Lindley's recursion).
fn md1_rate(service_s: f64, limit_s: f64) -> f64 {
    let (mut low, mut high) = (0.1 / service_s, 1.0 / service_s);
    for _ in 0..14 {
        let rate = f64::midpoint(low, high);
        let mut random = 0x9E37_79B9_7F4A_7C15_u64;
        let (mut wait_s, mut late) = (0.0_f64, 0);
        for _ in 0..40_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let share = (random >> 11) as f64 / (1_u64 << 53) as f64;
            let next_s = -(1.0 - share).ln() / rate;
            late += u32::from(wait_s + service_s > limit_s);
            wait_s = (wait_s + service_s - next_s).max(0.0);
        }
        if late > 4000 {
            high = rate;
        } else {
            low = rate;
        }
    }
    low
}

#[test]
fn search_holds_the_rate_of_a_disk_and_the_control_breaks_the_promise() {
    let record = searched_rate();
    let load = record.load().unwrap();
    let figures = &load.figures;
    let truth = md1_rate(10e-3, 30e-3);
    assert_eq!(figures.outcome, LoadOutcome::Sustained, "{figures:?}");
    assert!(figures.low <= 1.01 * truth, "{truth}: {figures:?}");
    assert!(figures.high >= 0.99 * truth, "{truth}: {figures:?}");
    assert!(figures.control.unwrap().failed);
    assert_eq!(figures.cause.limit, BreakLimit::Reads, "{figures:?}");
    assert!((figures.saturated - 100.0).abs() < 2.0, "{figures:?}");
    let names: Vec<&str> = record
        .measurements
        .iter()
        .map(|row| row.data.workload.name.as_str())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let last = load.data.trials.last().unwrap();
    let first = load.data.trials.first().unwrap();
    let took_ns = last.start_ns + last.wall_ns - first.start_ns;
    assert!(took_ns <= RATE_PLAN.time_ns, "{took_ns}");
    derives_again(&record);
}

/// Whoever reads the record finds the same answer from its trials.
fn derives_again(record: &Record) {
    let text = serde_json::to_string(record).unwrap();
    let stored: Record = serde_json::from_str(&text).unwrap();
    let (derived, outcome) = diskproof_analysis::again::judged_again(stored);
    assert!(
        matches!(outcome, diskproof_analysis::again::Rejudged::Same),
        "{outcome:?}"
    );
    assert_eq!(derived.load(), record.load());
}

/// Three mixes on a disk that serves reads and writes alike, after the sequential workloads.
fn searched_rays() -> Record {
    let cells = SimulatedRates {
        disk: FakeDisk {
            service_ns: 10_000_000,
            jitter_ns: 0,
            channels: 1,
            size_bytes: 1 << 30,
        },
        now_ns: 3 * SECOND_NS,
        measurements: Vec::new(),
        trials: Vec::new(),
    };
    let mut list = Vec::new();
    for (name, permille) in [
        (capacity_workloads::SEQUENTIAL_READ, 1000),
        (capacity_workloads::SEQUENTIAL_WRITE, 0),
        (capacity_workloads::SEQUENTIAL_MIXED, 500),
        (capacity_workloads::SEQUENTIAL_READ_PAGES, 1000),
        (capacity_workloads::SEQUENTIAL_WRITE_PAGES, 0),
    ] {
        let mut timed = Workload {
            streams: Streams::with_reads(permille),
            access: Access::Sequential,
            block_bytes: 1 << 20,
            ..workload(name, 4)
        };
        timed.stop.time_ns = Some(4 * SECOND_NS);
        list.push(timed);
    }
    for (name, permille) in [("reads-0", 0), ("reads-50", 500), ("reads-100", 1000)] {
        list.push(Workload {
            streams: Streams::with_reads(permille),
            block_bytes: 4096,
            ..workload(name, 32)
        });
    }
    searched(list, cells)
}

/// Writes a record in the format of this name.
fn exported(record: &Record, name: &str) -> Option<String> {
    let path = Path::new(name);
    let format = diskproof_report::formats::format_of(path).unwrap();
    let files = format.files(record, path);
    let file = files.first()?;
    let mut text = Vec::new();
    (file.write)(&mut text).unwrap();
    Some(String::from_utf8(text).unwrap())
}

#[test]
fn rays_hold_the_rates_of_a_disk_and_their_exports_what_was_measured() {
    let mut record = searched_rays();
    let found = &record.rays().unwrap().figures;
    let truth = md1_rate(10e-3, 30e-3);
    for ray in &found.rays {
        let load = &ray.load;
        assert_eq!(load.outcome, LoadOutcome::Sustained, "{ray:?}");
        assert!(load.low <= 1.01 * truth, "{truth}: {ray:?}");
        assert!(load.high >= 0.99 * truth, "{truth}: {ray:?}");
    }
    let boundary = found.boundary.as_ref().unwrap();
    assert_eq!((boundary.rays, found.rays.len()), (3, 3));
    for (estimate, expected) in [
        (&boundary.reads, truth),
        (&boundary.writes, truth),
        (&boundary.write_cost, 1.0),
    ] {
        let distance = (estimate.value - expected).abs();
        assert!(
            distance <= 1.3 * estimate.half_width_95.unwrap(),
            "{boundary:?}"
        );
    }
    assert_eq!(record.measurements.len(), 5 + 2 * 3);
    derives_again(&record);
    exports_hold_what_was_measured(&record);
    // A search that never offered more than is served says nothing of the most.
    let mut unsaturated = record.clone();
    for result in &mut unsaturated.results {
        if let TaskResult::Rays(rays) = result {
            rays.figures.rays[0].load.saturated = 0.0;
        }
    }
    for (name, is_written) in [
        ("x.iocost", false),
        ("x.ceph", false),
        ("x.yaml", true),
        ("x.cockroach", true),
    ] {
        assert_eq!(exported(&unsaturated, name).is_some(), is_written, "{name}");
    }
    // Where one of both ends is undecided, nothing is exported.
    for result in &mut record.results {
        if let TaskResult::Rays(rays) = result {
            rays.figures.rays[0].load.outcome = LoadOutcome::FewEpisodes;
        }
    }
    for name in ["x.iocost", "x.yaml", "x.ceph", "x.cockroach"] {
        assert_eq!(exported(&record, name), None);
    }
}

/// 100 requests/s, whatever they are; the sequential ones move 1 MiB each.
fn exports_hold_what_was_measured(record: &Record) {
    let number = |text: &str, key: &str| {
        let rest = text.split_once(key).unwrap().1;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap();
        digits.parse::<f64>().unwrap()
    };
    let mut bytes = 104_857_600.0;
    let iocost = exported(record, "x.iocost").unwrap();
    let yaml = exported(record, "x.yaml").unwrap();
    let low = record.rays().unwrap().figures.rays[0].load.low;
    for (text, key, expected) in [
        (&iocost, "rbps=", bytes),
        (&iocost, "rseqiops=", 100.0),
        (&iocost, "rrandiops=", 100.0),
        (&iocost, "wbps=", bytes),
        (&iocost, "wseqiops=", 100.0),
        (&iocost, "wrandiops=", 100.0),
        (&iocost, "rlat=", 30_000.0),
        (&yaml, "read_bandwidth: ", bytes),
        (&yaml, "write_bandwidth: ", bytes),
        (&yaml, "write_iops: ", low),
    ] {
        let stated = number(text, key);
        assert!(
            (stated / expected - 1.0).abs() < 0.02,
            "{key}{stated}: {text}"
        );
    }
    assert!(iocost.contains("rpct=90.00"), "{iocost}");
    let ceph = exported(record, "x.ceph").unwrap();
    let capacity = number(&ceph, "osd_mclock_max_capacity_iops_ssd ");
    assert!((capacity - 100.0).abs() < 2.0, "{ceph}");
    let cockroach = exported(record, "x.cockroach").unwrap();
    bytes /= number(&cockroach, "provisioned_bandwidth = '");
    assert!((bytes - 1.0).abs() < 0.02, "{cockroach}");
}

/// A search that ends before its answer leaves the boundary to the others.
#[test]
fn rays_without_their_last_trials_are_undecided() {
    let mut record = searched_rays();
    for result in &mut record.results {
        if let TaskResult::Rays(rays) = result {
            for ray in &mut rays.data.rays[..2] {
                ray.trials.pop();
            }
        }
    }
    let (derived, _) = diskproof_analysis::again::judged_again(record);
    let figures = &derived.rays().unwrap().figures;
    let outcomes: Vec<LoadOutcome> = figures.rays.iter().map(|ray| ray.load.outcome).collect();
    let expected = [
        LoadOutcome::Unfinished,
        LoadOutcome::Unfinished,
        LoadOutcome::Sustained,
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(figures.boundary, None);
}

#[test]
fn health_is_read_of_the_disks_that_a_command_brings() {
    let start = diskproof_analysis::fixture::record().targets[0].clone();
    let disk = start.disks().next().unwrap().clone();
    assert_eq!(brought_disks(&start, &start), Vec::<String>::new());

    let mut cached = start.clone();
    let cache = diskproof_model::target::Layer {
        name: "cache0".to_owned(),
        serial: Some("CACHE".to_owned()),
        ..disk.clone()
    };
    cached.layers.push(cache);
    assert!(start.lies_on_same_storage(&cached));
    assert_eq!(brought_disks(&start, &cached), ["cache0"]);

    // The kernel may give the name of a disk that is gone to another one.
    let mut other = start.clone();
    for layer in &mut other.layers {
        if layer.name == disk.name {
            layer.serial = Some("OTHER".to_owned());
        }
    }
    assert!(!start.lies_on_same_storage(&other));
    let brought = brought_disks(&start, &other);
    assert!(brought.contains(&disk.name), "{brought:?}");
}
