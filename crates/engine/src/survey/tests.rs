//! The survey in virtual time, on simulated disks with known properties.

use super::log::{SurveyLog, SurveyTarget};
use super::queue::RequestQueue;
use super::sample::STREAM_DEPTH;
use crate::io::Extent;
use crate::io::buffers::Buffers;
use crate::io::clock::Clock as _;
use crate::measure::sampler::Sampler;
use crate::random::Random;
use crate::tests::sim_backend::{HOST_NS, SimBackend};
use crate::tests::simulate::FakeClock;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::{CachePolicy, EngineKind};
use diskproof_model::surface::{
    AccessPlan, AccessPoint, BurstPlan, Coverage, CurvePlan, CurvePoint, ScanPlan, SeekPattern,
};
use diskproof_simdisk::models::faults::Faults;
use diskproof_simdisk::models::{self, DiskMachine, Mechanism};
use diskproof_simdisk::{Model, spec};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

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
            extent: Extent {
                start: 0,
                length: size_bytes / 4096 * 4096,
            },
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
        let backend = SimBackend {
            clock: self.clock.clone(),
            machine,
            faults: Faults::new(self.model.faults.clone()),
            buffers: Buffers::new(depth as usize, request_bytes as usize).unwrap(),
            size_bytes: self.size_bytes,
            results: vec![0; depth as usize],
            done: Vec::new(),
            host_ns: HOST_NS,
            pauses: self.pauses.clone(),
        };
        let sampler = Sampler::new(backend, self.clock.clone(), depth, 1);
        RequestQueue::new(sampler, self.target, log)
    }

    fn curve(&self, points: u32, coverage: Coverage) -> Vec<CurvePoint> {
        let (log, plan) = (
            SurveyLog::default(),
            CurvePlan {
                points,
                coverage,
                time_ns: None,
            },
        );
        self.queue(8, MIB, &log).measure_curve(&plan).unwrap();
        std::mem::take(&mut log.seen().curve)
    }

    fn access(&self, random_reads: u32, pattern_reads: u32) -> Vec<AccessPoint> {
        let plan = AccessPlan {
            random_reads,
            pattern_reads,
            block_bytes: 512,
            time_ns: 60_000_000_000,
        };
        let log = SurveyLog::default();
        self.queue(1, 512, &log).measure_access(&plan).unwrap();
        std::mem::take(&mut log.seen().access)
    }

    fn scan(&self, resume_bytes: u64) -> diskproof_model::surface::Scan {
        let (log, plan) = (
            SurveyLog::default(),
            ScanPlan {
                block_bytes: MIB as u32,
                resume_bytes,
            },
        );
        self.queue(1, MIB, &log).measure_scan(&plan).unwrap();
        log.seen().scan.take().unwrap().scan()
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

fn near(value: f64, truth: f64, share: f64) {
    assert!(
        (value / truth - 1.0).abs() < share,
        "{value} is not {truth} ± {share}"
    );
}

fn average(curve: &[CurvePoint]) -> f64 {
    curve.len() as f64 / curve.iter().map(|p| 1.0 / p.bytes_per_second).sum::<f64>()
}

#[test]
fn curve_of_rotating_disk_matches_its_zones() {
    let disks = [
        ("momentus-7200.4", 320_000_000_000),
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
        assert!(
            (bench.clock.now() as f64) < fiftieth_s * 1e9,
            "{text}: {} s",
            bench.clock.now() / 1_000_000_000
        );
    }
}

#[test]
fn sampled_curve_agrees_with_full_curve() {
    let spec = "rpm=7200,seek=1ms/10ms/22ms,rate=92MB/49MB,zones=8,ragged=16MiB+3ms";
    let bench = Bench::new(spec, 20_000_000_000);
    let (whole, sampled) = (bench.curve(200, Coverage::Full), bench.curve(200, SAMPLED));
    assert!(whole.iter().map(|p| p.bytes).sum::<u64>() > 19_990_000_000 && whole.len() == 200);
    near(average(&sampled), average(&whole), 0.02);
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
        let mut bench = Bench::new(spec, 320_000_000_000);
        let quiet = bench.curve(200, SAMPLED);
        assert!(
            quiet.iter().all(|p| p.readings.is_empty()),
            "{spec}: nothing stands out on a quiet machine"
        );
        // Twelve pauses somewhere in the minute that the curve takes.
        let (mut random, start) = (Random::new(seed, 1), bench.clock.now());
        let span_ns = start;
        bench.pauses = (0..12)
            .map(|_| {
                (
                    start + random.below(span_ns),
                    60_000_000 + random.below(150_000_000),
                )
            })
            .collect();
        let curve = bench.curve(200, SAMPLED);
        let taken_ns = bench.clock.now() - start;
        assert_eq!(curve.len(), 200);
        let repeated: Vec<_> = curve.iter().filter(|p| !p.readings.is_empty()).collect();
        assert!(
            repeated.iter().all(|p| p.readings.len() == 3),
            "{spec}: {repeated:?}"
        );
        let was_off = |p: &CurvePoint, i: usize| {
            (p.readings[0] / quiet[i].bytes_per_second - 1.0).abs() > 0.1
        };
        let off = curve
            .iter()
            .enumerate()
            .filter(|(i, p)| !p.readings.is_empty() && was_off(p, *i))
            .count();
        assert!(off >= 4, "{spec}: the pauses did something: {off}");
        for (point, truth) in curve.iter().zip(&quiet) {
            assert!(
                (point.bytes_per_second / truth.bytes_per_second - 1.0).abs() < 0.03,
                "{spec}: {point:?} instead of {truth:?}"
            );
        }
        assert!(
            taken_ns < span_ns / 3 * 4 + 8_000_000_000,
            "{spec}: {} s instead of {} s",
            taken_ns / 1_000_000_000,
            span_ns / 1_000_000_000
        );
    }
}

#[test]
fn resample_keeps_places_that_are_slow_themselves() {
    let bench = Bench::new(
        "momentus-7200.4,slow=100GB-101GB+10ms,slow=200GB-201GB+10ms",
        320_000_000_000,
    );
    let curve = bench.curve(320, SAMPLED);
    let slow: Vec<_> = curve.iter().filter(|p| !p.readings.is_empty()).collect();
    assert_eq!(slow.len(), 2, "{slow:?}");
    for point in slow {
        assert!(
            [100, 200].contains(&(point.offset_bytes / 1_000_000_000))
                && point.bytes_per_second < 60e6,
            "{point:?}"
        );
        point
            .readings
            .iter()
            .for_each(|rate| near(*rate, point.bytes_per_second, 0.02));
    }
}

#[test]
fn curve_point_has_standard_error() {
    let errors = |spec: &str| {
        let curve = Bench::new(spec, 320_000_000_000).curve(50, SAMPLED);
        let mut errors: Vec<f64> = curve.iter().filter_map(|p| p.standard_error).collect();
        assert_eq!(errors.len(), 50, "{spec}");
        errors.sort_by(f64::total_cmp);
        errors[25]
    };
    assert!(
        errors("momentus-7200.4") < 0.004,
        "{}",
        errors("momentus-7200.4")
    );
    assert!(
        errors("momentus-7200.4,ragged=1MiB+6ms") > 0.01,
        "{}",
        errors("momentus-7200.4,ragged=1MiB+6ms")
    );
}

#[test]
fn curve_reads_small_disk_in_one_stream() {
    let bench = Bench::new("rpm=7200,seek=1ms/10ms/22ms,rate=92MB/49MB,zones=8", GIB);
    let curve = bench.curve(200, SAMPLED);
    assert_eq!(curve.len(), 200);
    assert!(
        curve
            .windows(2)
            .all(|pair| pair[0].offset_bytes + pair[0].bytes == pair[1].offset_bytes)
    );
    near(curve[0].bytes_per_second, 92e6, 0.02);
    near(curve[199].bytes_per_second, 49e6, 0.02);
}

#[test]
fn curve_is_sane_for_every_target_size() {
    for size in [MIB, MIB + 4096, 3 * MIB, 17 * MIB, 100 * MIB, GIB] {
        for points in [1, 2, 7, 200, 1000] {
            for sample_bytes in [None, Some(1), Some(65_536), Some(10 * MIB)] {
                let bench = Bench::new("bandwidth=500MB,latency=50us", size);
                let curve = bench.curve(points, Coverage::Sampled { sample_bytes });
                assert!(
                    !curve.is_empty() && curve.len() <= points as usize,
                    "{size} {points} {sample_bytes:?}"
                );
                assert!(curve.iter().all(|p| p.bytes > 0
                    && p.bytes_per_second.is_finite()
                    && p.offset_bytes + p.bytes <= size));
                assert!(
                    curve
                        .windows(2)
                        .all(|pair| pair[0].offset_bytes < pair[1].offset_bytes)
                );
            }
        }
    }
}

#[test]
fn curve_time_limit_shrinks_samples_then_points() {
    let bench = Bench::new("momentus-7200.4", 320_000_000_000);
    for (seconds, points) in [(20, 64), (6, 64), (2, 64)] {
        let start = bench.clock.now();
        let plan = CurvePlan {
            points,
            coverage: SAMPLED,
            time_ns: Some(seconds * 1_000_000_000),
        };
        let log = SurveyLog::default();
        bench.queue(8, MIB, &log).measure_curve(&plan).unwrap();
        let taken = (bench.clock.now() - start) / 1_000_000;
        let found = log.seen().curve.len();
        assert!(
            taken < seconds * 1000 + 1000 && found >= 8,
            "{taken} ms for {seconds} s, {found} points"
        );
    }
}

#[test]
fn curve_counts_errors_outside_the_rate() {
    let spec =
        "rpm=7200,seek=1ms/10ms/22ms,rate=92MB/49MB,zones=8,eio=500MB-502MB,short=0-10MiB/4096";
    let curve = Bench::new(spec, GIB).curve(100, SAMPLED);
    let errors: u64 = curve.iter().map(|p| p.errors).sum();
    assert!(errors > 0 && curve.iter().all(|p| p.bytes_per_second.is_finite()));
    near(
        curve
            .iter()
            .find(|p| p.errors > 0)
            .unwrap()
            .bytes_per_second,
        72e6,
        0.2,
    );
    let failed = curve.iter().filter(|p| p.errors > 0);
    assert!(
        failed
            .clone()
            .all(|p| p.errnos.get("EIO") == Some(&p.errors))
    );
    // Everything fails.
    let dead = Bench::new("bandwidth=100MB,eio=0-4GiB", GIB).curve(10, SAMPLED);
    assert!(
        dead.len() == 10
            && dead
                .iter()
                .all(|p| p.bytes == 0 && p.bytes_per_second == 0.0 && p.errors > 0)
    );
}

#[test]
fn access_times_match_arm_and_platter() {
    let bench = Bench::new("momentus-7200.4", 320_000_000_000);
    let access = bench.access(1000, 150);
    let mean = |seek: SeekPattern| {
        let latencies: Vec<u64> = access
            .iter()
            .filter(|p| p.seek == seek)
            .map(|p| p.latency_ns)
            .collect();
        assert_eq!(
            latencies.len(),
            if seek == SeekPattern::Random {
                1000
            } else {
                150
            },
            "{seek:?}"
        );
        latencies.iter().sum::<u64>() as f64 / latencies.len() as f64
    };
    near(mean(SeekPattern::Random), 14.9e6, 0.02);
    // Seek of one track, half a turn of 8.33 ms, electronics.
    near(mean(SeekPattern::TrackToTrack), 5.3e6, 0.1);
    near(mean(SeekPattern::FullStroke), 26.3e6, 0.03);
    assert!(
        mean(SeekPattern::ThirdStroke) > 10e6
            && mean(SeekPattern::Butterfly) > mean(SeekPattern::TrackToTrack)
    );
    assert!(bench.clock.now() < 30_000_000_000, "{}", bench.clock.now());
    for point in access.iter().filter(|p| p.seek == SeekPattern::ThirdStroke) {
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
    let plan = AccessPlan {
        random_reads: 50,
        pattern_reads: 5,
        block_bytes: 512,
        time_ns: 1_000_000_000,
    };
    broken.queue(1, 512, &log).measure_access(&plan).unwrap();
    let seen = log.seen();
    assert_eq!((seen.access.len(), seen.access_errors["EIO"]), (0, 75));
}

/// Seconds that a curve and a burst take, and the points.
fn quick_curve(model: &str, seconds: u64) -> (f64, Vec<CurvePoint>) {
    let bench = Bench::new(model, 4 * GIB);
    let log = SurveyLog::default();
    let queue = &mut bench.queue(8, MIB, &log);
    let plan = CurvePlan {
        points: 24,
        coverage: SAMPLED,
        time_ns: Some(seconds * 1_000_000_000),
    };
    queue.measure_curve(&plan).unwrap();
    let plan = BurstPlan {
        bytes: 512 << 10,
        time_ns: 500_000_000,
    };
    queue.measure_burst(&plan).unwrap();
    let points = std::mem::take(&mut log.seen().curve);
    (bench.clock.now() as f64 / 1e9, points)
}

#[test]
fn survey_of_slow_disk_begins_with_few_bytes_in_flight() {
    let (taken_s, points) = quick_curve("bandwidth=300kB", 6);
    assert!(
        taken_s < 10.0 && points.len() >= 5,
        "{taken_s} s, {points:?}"
    );
    near(average(&points), 300e3, 0.01);
    let (taken_s, points) = quick_curve("bandwidth=2MB", 6);
    assert!(
        taken_s < 10.0 && points.len() >= 8,
        "{taken_s} s, {points:?}"
    );
    near(average(&points), 2e6, 0.01);
    let (taken_s, points) = quick_curve("iops=1", 6);
    assert!(
        taken_s < 5.0 && points.is_empty(),
        "{taken_s} s, {points:?}"
    );
}

/// As zcav reads it: all of it, however long that takes.
#[test]
fn curve_without_limit_moves_as_much_with_each_request_on_a_slow_disk() {
    let bench = Bench::new("iops=1", 16 * MIB);
    let log = SurveyLog::default();
    let queue = &mut bench.queue(8, MIB, &log);
    let plan = CurvePlan {
        points: 4,
        coverage: Coverage::Full,
        time_ns: None,
    };
    queue.measure_curve(&plan).unwrap();
    near(average(&log.seen().curve), 65_536.0, 0.05);
}

#[test]
fn burst_reports_link_rate() {
    let bench = Bench::new("momentus-7200.4", 320_000_000_000);
    let log = SurveyLog::default();
    bench
        .queue(8, MIB, &log)
        .measure_burst(&BurstPlan {
            bytes: 512 << 10,
            time_ns: 500_000_000,
        })
        .unwrap();
    let burst = log.seen().burst.take().unwrap();
    near(burst.throughput.value, 285e6, 0.03);
    assert!(burst.first_bytes_per_second < 100e6 && burst.throughput.half_width_95.is_some());
}

#[test]
fn scan_finds_exactly_slow_and_unreadable_blocks() {
    let faults = "slow=100MiB-102MiB+40ms,slow=700000000-700000512+25ms,eio=300MiB-308736KiB,\
                  eio=500000256-500000512,stall=3s+200ms";
    let spec = format!("rpm=7200,seek=1ms/10ms/22ms,rate=92MB/49MB,zones=8,{faults}");
    let bench = Bench::new(&spec, GIB);
    let scan = bench.scan(0);
    assert!(
        scan.finished && scan.to_bytes == GIB && scan.blocks == 1024,
        "{scan:?}"
    );
    let slow: Vec<u64> = scan
        .slow
        .iter()
        .map(|block| block.offset_bytes / MIB)
        .collect();
    assert_eq!(
        (slow, scan.slow_blocks),
        (vec![100, 101, 667], 3),
        "the stall is not the disk's"
    );
    let bad: Vec<(u64, u64)> = scan
        .unreadable
        .iter()
        .map(|bad| (bad.lba, bad.length_bytes))
        .collect();
    assert_eq!(
        bad,
        [(300 * MIB / 512, 1_572_864), (500_000_256 / 512, 512)]
    );
    assert_eq!(scan.unreadable_bytes, 1_572_864 + 512);
    assert!(scan.map.len() > 500 && scan.map.iter().map(|cell| cell.blocks).sum::<u64>() == 1024);
    // It continued behind the first ones.
    let rest = bench.scan(400 * MIB);
    assert_eq!(
        (
            rest.from_bytes,
            rest.blocks,
            rest.unreadable.len(),
            rest.slow.len()
        ),
        (400 * MIB, 624, 1, 1)
    );
}

#[test]
fn scan_ends_on_disk_where_everything_fails() {
    let bench = Bench::new("bandwidth=500MB,eio=100MiB-900MiB", GIB);
    let scan = bench.scan(0);
    assert!(
        !scan.finished && scan.to_bytes == 356 * MIB,
        "{}",
        scan.to_bytes
    );
    assert_eq!(
        (scan.unreadable.len(), scan.unreadable_bytes),
        (1, 256 * MIB)
    );
}

#[test]
fn written_curve_includes_the_flush() {
    let mut bench = Bench::new("momentus-7200.4", 320_000_000_000);
    bench.target.operation = OpKind::Write;
    let (curve, truth) = (bench.curve(20, SAMPLED), bench.truth());
    curve
        .iter()
        .for_each(|p| near(p.bytes_per_second, truth(p.offset_bytes), 0.03));
}

/// A link that all requests in flight share evenly, each with work of its own: what a controller
/// with many channels, or a host that copies, looks like.
struct SharedLink {
    bytes_per_second: f64,
    now_ns: f64,
    /// Ticket and bytes that are left.
    left: Vec<(u64, f64)>,
    done: std::collections::VecDeque<models::DiskCompletion>,
    random: Random,
}

impl SharedLink {
    /// When the next request ends, and its place.
    fn next_end(&self) -> Option<(usize, f64)> {
        let least = self
            .left
            .iter()
            .enumerate()
            .min_by(|a, b| a.1.1.total_cmp(&b.1.1));
        least.map(|(index, (_, bytes))| {
            let share = self.bytes_per_second / self.left.len() as f64;
            (index, self.now_ns + bytes / share * 1e9)
        })
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
        let work = request.length_bytes as f64 * (0.5 + self.random.below(1000) as f64 / 1000.0);
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

#[test]
fn last_point_of_fast_disk_is_as_fast_as_the_others() {
    let (mut lasts, mut others) = (0.0, 0.0);
    for seed in 0..20 {
        // One stream over everything, and samples.
        for (size, points) in [(4 * GIB, 60), (400 * GIB, 40)] {
            let bench = Bench::new("bandwidth=1GB", size);
            let link = SharedLink {
                bytes_per_second: 2.46e9,
                now_ns: 0.0,
                left: Vec::new(),
                done: std::collections::VecDeque::new(),
                random: Random::new(seed, 1),
            };
            let plan = CurvePlan {
                points,
                coverage: SAMPLED,
                time_ns: Some(4_000_000_000),
            };
            let log = SurveyLog::default();
            let queue = &mut bench.queue_on(Box::new(link), 8, MIB, &log);
            queue.measure_curve(&plan).unwrap();
            let curve = std::mem::take(&mut log.seen().curve);
            assert!(curve.len() >= 8, "{}", curve.len());
            let rates: Vec<f64> = curve.iter().map(|p| p.bytes_per_second).collect();
            lasts += rates[rates.len() - 1] / 40.0;
            others +=
                rates[1..rates.len() - 1].iter().sum::<f64>() / (rates.len() - 2) as f64 / 40.0;
        }
    }
    near(others, 2.46e9, 0.01);
    near(lasts, others, 0.01);
}

#[test]
fn long_pause_in_a_sample_is_read_again() {
    // A sample takes 0.2 s; with the pause, longer than any that is read again.
    let bench = Bench::new("bandwidth=150MB,stall=10s+2600ms", 320_000_000_000);
    let (log, plan) = (
        SurveyLog::default(),
        CurvePlan {
            points: 200,
            coverage: SAMPLED,
            time_ns: None,
        },
    );
    bench.queue(8, MIB, &log).measure_curve(&plan).unwrap();
    let stalls = std::mem::take(&mut log.seen().stalls);
    assert!(stalls.len() == 1 && stalls[0].requests >= 4, "{stalls:?}");
    near(stalls[0].since_ns as f64, 10e9, 0.01);
    near(stalls[0].lasted_ns as f64, 2.6e9, 0.02);
    let curve = std::mem::take(&mut log.seen().curve);
    let again: Vec<_> = curve.iter().filter(|p| !p.readings.is_empty()).collect();
    assert!(
        again.len() == 1 && again[0].readings.len() == 3 && again[0].readings[0] < 20e6,
        "{again:?}"
    );
    for point in &curve {
        near(point.bytes_per_second, 150e6, 0.01);
    }
}

#[test]
fn second_reading_is_slow_where_the_place_is_and_fast_where_the_host_paused() {
    let bench = Bench::new("momentus-7200.4,slow=100GB-110GB+3ms", 320_000_000_000);
    let (log, plan) = (
        SurveyLog::default(),
        CurvePlan {
            points: 200,
            coverage: SAMPLED,
            time_ns: None,
        },
    );
    let queue = &mut bench.queue(8, MIB, &log);
    let mut measured = queue.measure_curve(&plan).unwrap().unwrap();
    // 62 to 68 are the slow ones.
    log.seen().curve[20].bytes_per_second /= 2.0;
    let points = vec![19, 20, 61, 64, 70];
    queue.confirm(&mut measured, points.clone(), None).unwrap();
    let curve = std::mem::take(&mut log.seen().curve);
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
