//! The survey in virtual time, on simulated disks with known properties.

use super::log::SurveyLog;
use super::queue::RequestQueue;
use super::sample::STREAM_DEPTH;
use super::target::SurveyTarget;
use crate::io::clock::Clock as _;
use crate::measure::sampler::Sampler;
use crate::random::Random;
use crate::testing::loads::extent;
use crate::testing::sim_backend::SimBackend;
use crate::testing::simulate::FakeClock;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{CachePolicy, EngineKind};
use diskproof_model::surface::{
    AccessPlan, AccessPoint, BurstPlan, Coverage, CurvePlan, CurvePoint, Scan, ScanPlan,
    SeekPattern,
};
use diskproof_simdisk::models::{self, DiskMachine, Mechanism};
use diskproof_simdisk::{Model, spec};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const SECOND_NS: u64 = 1_000_000_000;
/// The size of the Momentus.
const DISK: u64 = 320_000_000_000;
/// A disk of eight zones.
const ZONED: &str = "rpm=7200,seek=1ms/10ms/22ms,rate=92MB/49MB,zones=8";
const BURST: BurstPlan = BurstPlan {
    bytes: 512 << 10,
    time_ns: SECOND_NS / 2,
};

struct Bench {
    model: Model,
    size_bytes: u64,
    target: SurveyTarget,
    clock: FakeClock,
    pauses: Vec<(u64, u64)>,
}

impl Bench {
    fn new(text: &str, size_bytes: u64) -> Self {
        let target = SurveyTarget {
            extent: extent(0, size_bytes / 4096 * 4096),
            depth: STREAM_DEPTH,
            stream: EngineKind::Uring,
            read_one: EngineKind::Sync,
            alignment_bytes: 512,
            sector_bytes: 512,
            lba_bytes: 512,
            cache: CachePolicy::Direct,
            operation: OpKind::Read,
            seed: 7,
        };
        Self {
            model: spec::parse(text).unwrap(),
            size_bytes,
            target,
            clock: FakeClock::default(),
            pauses: Vec::new(),
        }
    }

    fn queue<'a>(
        &self,
        depth: u32,
        request_bytes: u64,
        log: &'a SurveyLog,
    ) -> RequestQueue<'a, SimBackend, FakeClock> {
        let machine = Box::new(DiskMachine::start(&self.model, self.size_bytes));
        self.queue_on(machine, depth, request_bytes, log)
    }

    fn queue_on<'a>(
        &self,
        machine: Box<dyn models::TimingModel>,
        depth: u32,
        request_bytes: u64,
        log: &'a SurveyLog,
    ) -> RequestQueue<'a, SimBackend, FakeClock> {
        let mut backend = SimBackend::new(&self.model, self.size_bytes, depth, request_bytes);
        backend.clock = self.clock.clone();
        backend.machine = machine;
        backend.pauses = self.pauses.clone();
        let sampler = Sampler::new(backend, self.clock.clone(), depth, 1);
        RequestQueue::new(sampler, self.target, log)
    }

    /// The curve with a time limit or without.
    fn curve_in(&self, points: u32, coverage: Coverage, time_ns: Option<u64>) -> Vec<CurvePoint> {
        let log = SurveyLog::default();
        let plan = curve_plan(points, coverage, time_ns);
        self.queue(8, MIB, &log).measure_curve(&plan).unwrap();
        std::mem::take(&mut log.results().curve)
    }

    fn curve(&self, points: u32, coverage: Coverage) -> Vec<CurvePoint> {
        self.curve_in(points, coverage, None)
    }

    fn access_in(&self, random_reads: u32, pattern_reads: u32, time_ns: u64, log: &SurveyLog) {
        let plan = AccessPlan {
            random_reads,
            pattern_reads,
            block_bytes: 512,
            time_ns,
        };
        self.queue(1, 512, log).measure_access(&plan).unwrap();
    }

    fn access(&self, random_reads: u32, pattern_reads: u32) -> Vec<AccessPoint> {
        let log = SurveyLog::default();
        self.access_in(random_reads, pattern_reads, 60 * SECOND_NS, &log);
        std::mem::take(&mut log.results().access)
    }

    fn scan(&self, resume_bytes: u64) -> Scan {
        let log = SurveyLog::default();
        let plan = ScanPlan {
            block_bytes: MIB as u32,
            resume_bytes,
        };
        self.queue(1, MIB, &log).measure_scan(&plan).unwrap();
        log.results().scan.take().unwrap().scan()
    }

    /// The true rate of a rotating disk by place.
    fn truth(&self) -> impl Fn(u64) -> f64 {
        let Mechanism::Rotating(disk) = &self.model.mechanism else {
            panic!("not rotating")
        };
        let surface = disk.geometry.lay_out(self.size_bytes);
        move |offset| surface.rate_at(offset) as f64
    }
}

const SAMPLED: Coverage = Coverage::Sampled { sample_bytes: None };

#[track_caller]
fn near(value: f64, truth: f64, share: f64) {
    assert!(
        (value / truth - 1.0).abs() < share,
        "{value} is not {truth} ± {share}"
    );
}

fn curve_plan(points: u32, coverage: Coverage, time_ns: Option<u64>) -> CurvePlan {
    CurvePlan {
        points,
        coverage,
        time_ns,
    }
}

fn read_again(curve: &[CurvePoint]) -> Vec<&CurvePoint> {
    curve.iter().filter(|p| !p.readings.is_empty()).collect()
}

fn average(curve: &[CurvePoint]) -> f64 {
    curve.len() as f64 / curve.iter().map(|p| 1.0 / p.bytes_per_second).sum::<f64>()
}

#[test]
fn curve_of_rotating_disk_matches_its_zones() {
    let disks = [
        ("momentus-7200.4", DISK),
        ("laptop-5400", 500_000_000_000),
        (
            "rpm=5900,seek=1200us/13ms/26ms,rate=187MB/81MB,zones=30,queue=32,buffer=64MiB,\
             overhead=90us",
            8_000_000_000_000,
        ),
        (
            "rpm=4200,seek=3ms/15ms/30ms,rate=23MB/11MB,zones=12,queue=1,buffer=2MiB,\
             overhead=400us",
            80_000_000_000,
        ),
    ];
    for (text, size) in disks {
        let bench = Bench::new(text, size);
        let (curve, truth) = (bench.curve(200, SAMPLED), bench.truth());
        assert_eq!(curve.len(), 200, "{text}");
        let last = curve.last().unwrap();
        // Behind the last sample lie the requests that keep the queue full.
        assert!(
            curve[0].offset_bytes <= 16 * MIB && last.offset_bytes + last.bytes + 9 * MIB > size,
            "{text}: {last:?}"
        );
        let smooth = curve
            .iter()
            .filter(|p| truth(p.offset_bytes) == truth(p.offset_bytes + p.bytes - 1));
        smooth.for_each(|p| near(p.bytes_per_second, truth(p.offset_bytes), 0.01));
        let share = curve.iter().map(|p| p.bytes).sum::<u64>() as f64 / size as f64;
        assert!(share < 0.021, "{text}: {share}");
        let fiftieth_s = size as f64 / average(&curve) / 50.0;
        let taken_s = bench.clock.now() as f64 / 1e9;
        assert!(taken_s < fiftieth_s, "{text}: {taken_s} s");
    }
}

#[test]
fn sampled_curve_agrees_with_full_curve() {
    let bench = Bench::new(&format!("{ZONED},ragged=16MiB+3ms"), 20_000_000_000);
    let (whole, sampled) = (bench.curve(200, Coverage::Full), bench.curve(200, SAMPLED));
    assert!(whole.iter().map(|p| p.bytes).sum::<u64>() > 19_990_000_000 && whole.len() == 200);
    near(average(&sampled), average(&whole), 0.02);
}

/// Every second block, the last one at the end of the span. What is timed lies inside the block.
#[test]
fn blocks_of_a_curve_lie_where_they_begin() {
    for block_bytes in [MIB, 5 * MIB, 64 * MIB, 512 * MIB] {
        for model in ["ssd-sata", "cloud-3000-iops", ZONED] {
            let bench = Bench::new(model, 31 * block_bytes);
            let curve = bench.curve(16, Coverage::Blocks { block_bytes });
            let case = format!("{model} {block_bytes}");
            assert_eq!(curve.len(), 16, "{case}");
            for (index, point) in curve.iter().enumerate() {
                let start = 2 * index as u64 * block_bytes;
                let end = point.offset_bytes + point.bytes;
                assert!(point.offset_bytes >= start, "{case} {index}");
                assert!(end <= start + block_bytes, "{case} {index}");
                assert!(point.bytes >= block_bytes / 2, "{case} {index}");
            }
        }
    }
}

#[test]
fn blocks_without_room_for_a_lead_have_no_curve() {
    let bench = Bench::new("ssd-sata", 1_000_000_000);
    let block_bytes = 8192;
    let curve = bench.curve(16, Coverage::Blocks { block_bytes });
    assert_eq!(curve, []);
}

#[test]
fn curve_meets_link_limit_and_fixed_rate() {
    for (text, rate) in [
        ("momentus-7200.4-capped", 78e6),
        ("cloud-3000-iops", 125e6),
        ("ssd-sata", 550e6),
        ("cloud-credits", 128e6),
    ] {
        let bench = Bench::new(text, 100_000_000_000);
        near(bench.curve(50, SAMPLED)[0].bytes_per_second, rate, 0.01);
    }
    // Latency on parallel channels limits the rate: the best that eight requests in flight can do.
    let bench = Bench::new("nvme-slc-cliff", 1_000_000_000_000);
    near(average(&bench.curve(50, SAMPLED)), 3.5e9, 0.02);
}

#[test]
fn curve_ignores_pauses_of_the_host() {
    for (seed, spec) in [
        (1, "momentus-7200.4"),
        (
            2,
            "rpm=7200,seek=1ms/9ms/20ms,rate=180MB/90MB,zones=18,queue=32,buffer=64MiB,\
             overhead=100us",
        ),
        (3, "momentus-7200.4-capped"),
    ] {
        let mut bench = Bench::new(spec, DISK);
        let quiet = bench.curve(200, SAMPLED);
        assert!(read_again(&quiet).is_empty(), "{spec}: on a quiet machine");
        // Twelve pauses somewhere in the minute that the curve takes.
        let (mut random, quiet_ns) = (Random::new(seed, 1), bench.clock.now());
        let mut pause = || {
            let at_ns = quiet_ns + random.below(quiet_ns);
            (at_ns, 60_000_000 + random.below(150_000_000))
        };
        bench.pauses = (0..12).map(|_| pause()).collect();
        let curve = bench.curve(200, SAMPLED);
        let taken_ns = bench.clock.now() - quiet_ns;
        assert_eq!(curve.len(), 200);
        assert!(
            read_again(&curve).iter().all(|p| p.readings.len() == 3),
            "{spec}"
        );
        let mut off = 0;
        for (point, truth) in curve.iter().zip(&quiet) {
            near(point.bytes_per_second, truth.bytes_per_second, 0.03);
            let first = point.readings.first().unwrap_or(&truth.bytes_per_second);
            off += usize::from((first / truth.bytes_per_second - 1.0).abs() > 0.1);
        }
        assert!(off >= 4, "{spec}: the pauses did something: {off}");
        assert!(
            taken_ns < quiet_ns / 3 * 4 + 8 * SECOND_NS,
            "{spec}: {taken_ns}"
        );
    }
}

#[test]
fn resample_keeps_places_that_are_slow_themselves() {
    let bench = Bench::new(
        "momentus-7200.4,slow=100GB-101GB+10ms,slow=200GB-201GB+10ms",
        DISK,
    );
    let curve = bench.curve(320, SAMPLED);
    let slow = read_again(&curve);
    assert_eq!(slow.len(), 2, "{slow:?}");
    for (point, gb) in slow.into_iter().zip([100, 200]) {
        assert_eq!(point.offset_bytes / 1_000_000_000, gb);
        assert!(point.bytes_per_second < 60e6, "{point:?}");
        let readings = point.readings.iter();
        readings.for_each(|rate| near(*rate, point.bytes_per_second, 0.02));
    }
}

#[test]
fn curve_point_has_standard_error() {
    let errors = |spec: &str| {
        let curve = Bench::new(spec, DISK).curve(50, SAMPLED);
        let mut errors: Vec<f64> = curve.iter().filter_map(|p| p.standard_error).collect();
        assert_eq!(errors.len(), 50, "{spec}");
        errors.sort_by(f64::total_cmp);
        errors[25]
    };
    let (even, ragged) = (
        errors("momentus-7200.4"),
        errors("momentus-7200.4,ragged=1MiB+6ms"),
    );
    assert!(even < 0.004 && ragged > 0.01, "{even} {ragged}");
}

#[test]
fn curve_reads_small_disk_in_one_stream() {
    let bench = Bench::new(ZONED, GIB);
    let curve = bench.curve(200, SAMPLED);
    // Of 8 MiB: four times what is in flight.
    assert_eq!(curve.len(), 128);
    let mut pairs = curve.windows(2);
    assert!(pairs.all(|pair| pair[0].offset_bytes + pair[0].bytes == pair[1].offset_bytes));
    near(curve[0].bytes_per_second, 92e6, 0.02);
    near(curve[127].bytes_per_second, 49e6, 0.02);
}

#[test]
fn curve_is_sane_for_every_target_size() {
    for size in [MIB, MIB + 4096, 3 * MIB, 17 * MIB, 100 * MIB, GIB] {
        for points in [1, 2, 7, 200, 1000] {
            for sample_bytes in [None, Some(1), Some(65_536), Some(10 * MIB)] {
                let bench = Bench::new("bandwidth=500MB,latency=50us", size);
                let curve = bench.curve(points, Coverage::Sampled { sample_bytes });
                let case = format!("{size} {points} {sample_bytes:?}");
                assert!((1..=points as usize).contains(&curve.len()), "{case}");
                let mut behind = None;
                for p in &curve {
                    assert!(p.bytes > 0 && p.bytes_per_second.is_finite(), "{case}");
                    assert!(p.offset_bytes + p.bytes <= size, "{case}");
                    assert!(behind < Some(p.offset_bytes), "{case}");
                    behind = Some(p.offset_bytes);
                }
            }
        }
    }
}

/// 20,000 requests a second are 80 MB/s in requests of 4 KiB.
#[test]
fn small_samples_are_not_read_in_small_requests() {
    for sample_bytes in [4096, 64 << 10, 256 << 10, MIB, 4 * MIB] {
        let bench = Bench::new("bandwidth=2GB,iops=20000", 4 * GIB);
        let coverage = Coverage::Sampled {
            sample_bytes: Some(sample_bytes),
        };
        for point in bench.curve(8, coverage) {
            near(point.bytes_per_second, 2e9, 0.03);
            assert!(point.bytes >= 4 * MIB);
        }
    }
}

#[test]
fn curve_time_limit_shrinks_samples_then_points() {
    let bench = Bench::new("momentus-7200.4", DISK);
    for seconds in [20, 6, 2] {
        let start_ns = bench.clock.now();
        let found = bench.curve_in(64, SAMPLED, Some(seconds * SECOND_NS)).len();
        let taken_ms = (bench.clock.now() - start_ns) / 1_000_000;
        assert!(
            taken_ms < seconds * 1000 + 1000,
            "{taken_ms} ms for {seconds} s"
        );
        assert!(found >= 8, "{found} points for {seconds} s");
    }
}

#[test]
fn curve_counts_errors_outside_the_rate() {
    let spec = format!("{ZONED},eio=500MB-502MB,short=0-10MiB/4096");
    let curve = Bench::new(&spec, GIB).curve(100, SAMPLED);
    assert!(curve.iter().all(|p| p.bytes_per_second.is_finite()));
    let failed: Vec<_> = curve.iter().filter(|p| p.errors > 0).collect();
    near(failed[0].bytes_per_second, 72e6, 0.2);
    assert!(
        failed
            .iter()
            .all(|p| p.errnos.get("EIO") == Some(&p.errors))
    );
    // Everything fails.
    let dead = Bench::new("bandwidth=100MB,eio=0-4GiB", GIB).curve(10, SAMPLED);
    assert_eq!(dead.len(), 10);
    for p in dead {
        assert_eq!((p.bytes, p.bytes_per_second), (0, 0.0));
        assert!(p.errors > 0);
    }
}

#[test]
fn errors_outside_of_points_are_counted() {
    // The first request of the trial, and that of the burst, lie in the middle.
    let spec = "bandwidth=800MB,latency=100us,channels=8,eio=32768MiB-32769MiB";
    let bench = Bench::new(spec, 64 * GIB);
    let log = SurveyLog::default();
    let queue = &mut bench.queue(8, MIB, &log);
    queue.measure_curve(&curve_plan(8, SAMPLED, None)).unwrap();
    queue.measure_burst(&BURST).unwrap();
    let results = log.results();
    assert!(results.burst.is_none() && results.curve.iter().all(|p| p.errors == 0));
    assert_eq!(results.errors_elsewhere()["EIO"], 2);
    near(average(&results.curve), 800e6, 0.01);
}

#[test]
fn every_error_is_in_a_point_or_elsewhere() {
    let dead = Bench::new("bandwidth=100MB,eio=0-4GiB", GIB);
    for coverage in [SAMPLED, Coverage::Full] {
        let log = SurveyLog::default();
        let plan = curve_plan(10, coverage, None);
        dead.queue(8, MIB, &log).measure_curve(&plan).unwrap();
        let results = log.results();
        let in_points: u64 = results.curve.iter().map(|p| p.errors).sum();
        assert!(in_points > 0);
        assert_eq!(results.errors_elsewhere()["EIO"] + in_points, log.ops());
    }
    let log = SurveyLog::default();
    let bench = Bench::new("bandwidth=500MB,eio=10MiB-11MiB", 256 * MIB);
    let plan = curve_plan(8, SAMPLED, None);
    bench.queue(8, MIB, &log).measure_curve(&plan).unwrap();
    // All of them are timed requests of the pass.
    assert!(log.results().errors["EIO"] > 0);
    assert!(log.results().errors_elsewhere().is_empty());
}

#[test]
fn access_times_match_arm_and_platter() {
    let bench = Bench::new("momentus-7200.4", DISK);
    let access = bench.access(1000, 150);
    let of = |seek| access.iter().filter(move |p| p.seek == seek);
    let mean = |seek: SeekPattern| {
        let count = if seek == SeekPattern::Random {
            1000
        } else {
            150
        };
        assert_eq!(of(seek).count(), count, "{seek:?}");
        of(seek).map(|p| p.latency_ns).sum::<u64>() as f64 / count as f64
    };
    near(mean(SeekPattern::Random), 14.9e6, 0.02);
    // Seek of one track, half a turn of 8.33 ms, electronics.
    near(mean(SeekPattern::TrackToTrack), 5.3e6, 0.1);
    near(mean(SeekPattern::FullStroke), 26.3e6, 0.03);
    assert!(mean(SeekPattern::ThirdStroke) > 10e6);
    assert!(mean(SeekPattern::Butterfly) > mean(SeekPattern::TrackToTrack));
    assert!(bench.clock.now() < 30 * SECOND_NS, "{}", bench.clock.now());
    for point in of(SeekPattern::ThirdStroke) {
        near(point.distance_bytes as f64, 320e9 / 3.0, 0.01);
    }
    let mut offsets: Vec<u64> = access.iter().map(|p| p.offset_bytes).collect();
    offsets.sort_unstable();
    offsets.dedup();
    assert_eq!(offsets.len(), access.len(), "no block is read twice");
}

#[test]
fn survey_of_slow_or_small_target_ends_in_time() {
    let bench = Bench::new("latency=200ms", GIB);
    let access = bench.access(1000, 150);
    assert!(bench.clock.now() < 62_000_000_000 && access.len() > 200);
    assert_eq!(Bench::new("latency=100us", MIB).access(100, 20).len(), 180);
    let broken = Bench::new("latency=100us,eio=0-1GiB", GIB);
    let log = SurveyLog::default();
    broken.access_in(50, 5, SECOND_NS, &log);
    let results = log.results();
    assert_eq!((results.access.len(), results.errors["EIO"]), (0, 75));
}

/// Seconds that a curve and a burst take, and the points.
fn quick_curve(model: &str) -> (f64, Vec<CurvePoint>) {
    let bench = Bench::new(model, 4 * GIB);
    let log = SurveyLog::default();
    let queue = &mut bench.queue(8, MIB, &log);
    let plan = curve_plan(24, SAMPLED, Some(6 * SECOND_NS));
    queue.measure_curve(&plan).unwrap();
    queue.measure_burst(&BURST).unwrap();
    let points = std::mem::take(&mut log.results().curve);
    (bench.clock.now() as f64 / 1e9, points)
}

#[test]
fn survey_of_slow_disk_begins_with_few_bytes_in_flight() {
    for (model, rate, points_min) in [("bandwidth=300kB", 300e3, 5), ("bandwidth=2MB", 2e6, 8)] {
        let (taken_s, points) = quick_curve(model);
        assert!(
            taken_s < 10.0 && points.len() >= points_min,
            "{taken_s} s, {points:?}"
        );
        near(average(&points), rate, 0.01);
    }
    let (taken_s, points) = quick_curve("iops=1");
    assert!(
        taken_s < 5.0 && points.is_empty(),
        "{taken_s} s, {points:?}"
    );
}

/// As zcav reads it: all of it, however long that takes.
#[test]
fn curve_without_limit_moves_as_much_with_each_request_on_a_slow_disk() {
    let curve = Bench::new("iops=1", 16 * MIB).curve(4, Coverage::Full);
    near(average(&curve), 65_536.0, 0.05);
}

#[test]
fn burst_reports_link_rate() {
    let bench = Bench::new("momentus-7200.4", DISK);
    let log = SurveyLog::default();
    bench.queue(8, MIB, &log).measure_burst(&BURST).unwrap();
    let burst = log.results().burst.take().unwrap();
    near(burst.throughput.value, 285e6, 0.03);
    assert!(burst.first_bytes_per_second < 100e6 && burst.throughput.half_width_95.is_some());
}

#[test]
fn scan_finds_exactly_slow_and_unreadable_blocks() {
    let faults = "slow=100MiB-102MiB+40ms,slow=700000000-700000512+25ms,eio=300MiB-308736KiB,\
                  eio=500000256-500000512,stall=3s+200ms";
    let bench = Bench::new(&format!("{ZONED},{faults}"), GIB);
    let scan = bench.scan(0);
    assert!(scan.finished, "{scan:?}");
    assert_eq!((scan.to_bytes, scan.blocks), (GIB, 1024));
    // The stall is not the disk's.
    let slow: Vec<u64> = scan
        .slow
        .iter()
        .map(|block| block.offset_bytes / MIB)
        .collect();
    assert_eq!((slow, scan.slow_blocks), (vec![100, 101, 667], 3));
    let bad = scan
        .unreadable
        .iter()
        .map(|bad| (bad.lba, bad.length_bytes));
    let expected = [(300 * MIB / 512, 1_572_864), (500_000_256 / 512, 512)];
    assert!(bad.eq(expected), "{:?}", scan.unreadable);
    assert_eq!(scan.unreadable_bytes, 1_572_864 + 512);
    assert!(scan.map.len() > 500 && scan.map.iter().map(|cell| cell.blocks).sum::<u64>() == 1024);
    // It continued behind the first ones.
    let rest = bench.scan(400 * MIB);
    assert_eq!(rest.from_bytes, 400 * MIB);
    assert_eq!(rest.blocks, 624);
    assert_eq!(rest.unreadable.len(), 1);
    assert_eq!(rest.slow.len(), 1);
}

#[test]
fn scan_ends_on_disk_where_everything_fails() {
    let bench = Bench::new("bandwidth=500MB,eio=100MiB-900MiB", GIB);
    let scan = bench.scan(0);
    assert_eq!((scan.finished, scan.to_bytes), (false, 356 * MIB));
    assert_eq!(scan.unreadable.len(), 1);
    assert_eq!(scan.unreadable_bytes, 256 * MIB);
}

#[test]
fn written_curve_includes_the_flush() {
    let mut bench = Bench::new("momentus-7200.4", DISK);
    bench.target.operation = OpKind::Write;
    let (curve, truth) = (bench.curve(20, SAMPLED), bench.truth());
    for p in &curve {
        near(p.bytes_per_second, truth(p.offset_bytes), 0.03);
    }
}

/// A link that all requests in flight share evenly, each with work of its own: what a controller
/// with many channels, or a host that copies, looks like.
struct SharedLink {
    bytes_per_second: f64,
    now_ns: f64,
    /// Ticket and bytes that are left.
    left: Vec<(u64, f64)>,
    done: std::collections::VecDeque<models::DiskCompletion>,
    /// Draws the work of each request, from half to one and a half; `None` where all work is equal.
    uneven_work: Option<Random>,
}

impl SharedLink {
    /// When the next request ends, and its place.
    fn next_end(&self) -> Option<(usize, f64)> {
        let shortest = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
        let left = self.left.iter().map(|(_, bytes)| *bytes).enumerate();
        let (index, bytes) = left.min_by(shortest)?;
        let share = self.bytes_per_second / self.left.len() as f64;
        Some((index, self.now_ns + bytes / share * 1e9))
    }

    fn advance(&mut self, to_ns: f64) {
        loop {
            let next = self.next_end().filter(|(_, end_ns)| *end_ns <= to_ns);
            let until_ns = next.map_or(to_ns.max(self.now_ns), |(_, end_ns)| end_ns);
            let share = self.bytes_per_second / self.left.len().max(1) as f64;
            let moved = (until_ns - self.now_ns) / 1e9 * share;
            self.left.iter_mut().for_each(|(_, bytes)| *bytes -= moved);
            self.now_ns = until_ns;
            let Some((index, end_ns)) = next else {
                return;
            };
            let (ticket, _) = self.left.swap_remove(index);
            self.done.push_back(models::DiskCompletion {
                at_ns: end_ns.ceil() as u64,
                ticket,
            });
        }
    }
}

impl models::TimingModel for SharedLink {
    fn submit(&mut self, request: models::DiskRequest) {
        self.advance(request.arrival_ns as f64);
        let work_per_byte = match &mut self.uneven_work {
            Some(random) => 0.5 + random.below(1000) as f64 / 1000.0,
            None => 1.0,
        };
        let work = request.length_bytes as f64 * work_per_byte;
        self.left.push((request.ticket, work));
    }

    fn take_done(&mut self, now_ns: u64) -> Option<models::DiskCompletion> {
        self.advance(now_ns as f64);
        self.done.pop_front()
    }

    fn next_ns(&self) -> Option<u64> {
        let end_ns = self.next_end().map(|(_, end_ns)| end_ns.ceil() as u64);
        self.done.front().map(|done| done.at_ns).or(end_ns)
    }
}

/// The curve of a target of 2.46 GB/s everywhere, behind a link that all requests share.
fn curve_behind_shared_link(
    size_bytes: u64,
    points: u32,
    time_ns: Option<u64>,
    uneven_work: Option<Random>,
) -> Vec<CurvePoint> {
    let bench = Bench::new("bandwidth=1GB", size_bytes);
    let link = SharedLink {
        bytes_per_second: 2.46e9,
        now_ns: 0.0,
        left: Vec::new(),
        done: std::collections::VecDeque::new(),
        uneven_work,
    };
    let log = SurveyLog::default();
    let queue = &mut bench.queue_on(Box::new(link), 8, MIB, &log);
    queue
        .measure_curve(&curve_plan(points, SAMPLED, time_ns))
        .unwrap();
    std::mem::take(&mut log.results().curve)
}

/// With equal work, all requests in flight complete together.
#[test]
fn parts_of_small_target_are_longer_than_waits_for_a_queue() {
    for mib in [256, 300, 420, 700, 1500, 2400] {
        for points in [30, 31, 200] {
            let curve = curve_behind_shared_link(mib * MIB, points, None, None);
            let case = format!("{mib} MiB, {points} points");
            assert!(curve.len() >= 8, "{case}: {}", curve.len());
            for point in &curve {
                let ratio = point.bytes_per_second / 2.46e9;
                assert!((0.7..1.5).contains(&ratio), "{case}: {point:?}");
            }
            near(average(&curve), 2.46e9, 0.03);
        }
    }
}

#[test]
fn last_point_of_fast_disk_is_as_fast_as_the_others() {
    let (mut lasts, mut others) = (0.0, 0.0);
    for seed in 0..20 {
        // One stream over everything, and samples.
        for (size, points) in [(4 * GIB, 60), (400 * GIB, 40)] {
            let uneven_work = Some(Random::new(seed, 1));
            let curve = curve_behind_shared_link(size, points, Some(4 * SECOND_NS), uneven_work);
            assert!(curve.len() >= 8, "{}", curve.len());
            let rates: Vec<f64> = curve.iter().map(|p| p.bytes_per_second).collect();
            let [_, middle @ .., last] = &rates[..] else {
                unreachable!("eight points")
            };
            lasts += last / 40.0;
            others += middle.iter().sum::<f64>() / middle.len() as f64 / 40.0;
        }
    }
    near(others, 2.46e9, 0.01);
    near(lasts, others, 0.01);
}

#[test]
fn long_pause_in_a_sample_is_read_again() {
    // A sample takes 0.2 s; with the pause, longer than any that is read again.
    let bench = Bench::new("bandwidth=150MB,stall=10s+2600ms", DISK);
    let (log, plan) = (SurveyLog::default(), curve_plan(200, SAMPLED, None));
    bench.queue(8, MIB, &log).measure_curve(&plan).unwrap();
    let stalls = std::mem::take(&mut log.results().stalls);
    assert!(stalls.len() == 1 && stalls[0].requests >= 4, "{stalls:?}");
    near(stalls[0].since_ns as f64, 10e9, 0.01);
    near(stalls[0].lasted_ns as f64, 2.6e9, 0.02);
    let curve = std::mem::take(&mut log.results().curve);
    let again = read_again(&curve);
    assert_eq!((again.len(), again[0].readings.len()), (1, 3), "{again:?}");
    assert!(again[0].readings[0] < 20e6, "{again:?}");
    for point in &curve {
        near(point.bytes_per_second, 150e6, 0.01);
    }
}

#[test]
fn second_reading_is_slow_where_the_place_is_and_fast_where_the_host_paused() {
    let bench = Bench::new("momentus-7200.4,slow=100GB-110GB+3ms", DISK);
    let (log, plan) = (SurveyLog::default(), curve_plan(200, SAMPLED, None));
    let queue = &mut bench.queue(8, MIB, &log);
    let mut measured = queue.measure_curve(&plan).unwrap().unwrap();
    // 62 to 68 are the slow ones.
    log.results().curve[20].bytes_per_second /= 2.0;
    let points = vec![19, 20, 61, 64, 70];
    queue.confirm(&mut measured, points.clone(), None).unwrap();
    let curve = std::mem::take(&mut log.results().curve);
    let later: Vec<usize> = (0..200)
        .filter(|i| curve[*i].later_bytes_per_second.is_some())
        .collect();
    assert_eq!(later, points);
    let ratio = |i: usize| curve[i].later_bytes_per_second.unwrap() / curve[i].bytes_per_second;
    near(ratio(20), 2.0, 0.02);
    for index in [19, 61, 64, 70] {
        near(ratio(index), 1.0, 0.02);
    }
    assert!(curve[64].bytes_per_second < 0.9 * curve[61].bytes_per_second);
}
