//! Surveys of disks whose truth is known, computed without any disk, for tests of what is made of
//! them: zones, noise, limits, slow places, access times.

use crate::dice::Dice;
use crate::healthy;
use crate::judge::RunFacts;
use diskproof_model::measurement::{ByteCount, CacheUse, CpuTime, DeviceUse, OpKind};
use diskproof_model::plan::{CachePolicy, EngineChoice, EngineKind, Span};
use diskproof_model::record::{Estimate, Record};
use diskproof_model::surface::{
    AccessPlan, AccessPoint, Burst, Coverage, CurvePlan, CurvePoint, Scan, SeekPattern,
    SurfaceMeasurement, Survey,
};
use diskproof_model::target::TargetKind;
use std::collections::BTreeMap;

/// A disk, and how it is surveyed.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    pub size_bytes: u64,
    /// Zones, from the outermost in; equally many tracks each, so an outer zone holds more.
    pub zones: u32,
    pub outer: f64,
    pub inner: f64,
    /// Bytes per second that something else lets through.
    pub cap: Option<f64>,
    /// Cells of so many bytes lose up to this share of their rate, each its own.
    pub ragged: Option<(u64, f64)>,
    /// Ranges, as shares of the surface, and what is left of the rate there.
    pub slow: Vec<(std::ops::Range<f64>, f64)>,
    /// Standard deviation of a point's rate, as a share.
    pub noise: f64,
    /// Chance of a point to be halved by what goes on inside the disk at that moment.
    pub hiccups: f64,
    /// Revolutions per minute; 0 for a disk without moving parts.
    pub rpm: u32,
    /// Mean seek of random accesses, in nanoseconds.
    pub seek_ns: f64,
    pub points: u32,
    /// The part that is surveyed, as shares.
    pub span: std::ops::Range<f64>,
    /// Random accesses; a quarter as many of each other pattern.
    pub accesses: u32,
}

impl Disk {
    /// A 7200 rpm disk for laptops.
    pub fn rotating() -> Self {
        Self {
            size_bytes: 320_000_000_000,
            zones: 24,
            outer: 92e6,
            inner: 49e6,
            cap: None,
            ragged: None,
            slow: Vec::new(),
            noise: 0.002,
            hiccups: 0.0,
            rpm: 7200,
            seek_ns: 10.6e6,
            points: 200,
            span: 0.0..1.0,
            accesses: 400,
        }
    }

    /// A SATA SSD.
    pub fn solid() -> Self {
        Self {
            zones: 1,
            outer: 550e6,
            inner: 550e6,
            rpm: 0,
            seek_ns: 0.0,
            noise: 0.01,
            ..Self::rotating()
        }
    }

    /// The true rate at a share of the surface, without noise.
    pub fn rate_at(&self, at: f64) -> f64 {
        let rate_of = |zone: u32| {
            self.outer
                + (self.inner - self.outer) * f64::from(zone) / f64::from((self.zones - 1).max(1))
        };
        let total = if self.zones == 1 {
            self.outer
        } else {
            f64::from(self.zones) * (self.outer + self.inner) / 2.0
        };
        let mut end = 0.0;
        let zone = (0..self.zones).find(|zone| {
            end += rate_of(*zone) / total;
            at < end
        });
        let rate = rate_of(zone.unwrap_or(self.zones - 1));
        let loss = self.ragged.map_or(0.0, |(cell, loss)| {
            loss * Dice((at * self.size_bytes as f64) as u64 / cell).share()
        });
        let left: f64 = self
            .slow
            .iter()
            .filter(|(range, _)| range.contains(&at))
            .map(|(_, left)| left)
            .product();
        (rate * (1.0 - loss) * left).min(self.cap.unwrap_or(f64::INFINITY))
    }

    /// What the engine would see of it.
    pub fn survey(&self, seed: u64) -> SurfaceMeasurement {
        let mut dice = Dice(seed.wrapping_mul(0x1234_5678_9ABC_DEF1));
        let start = (self.span.start * self.size_bytes as f64) as u64;
        let length = ((self.span.end - self.span.start) * self.size_bytes as f64) as u64;
        let curve: Vec<CurvePoint> = (0..self.points)
            .map(|i| {
                self.point(
                    start + length / u64::from(self.points) * u64::from(i),
                    &mut dice,
                )
            })
            .collect();
        let bytes = curve.iter().map(|p| p.bytes).sum();
        let access = self.accesses(start, length, &mut dice);
        SurfaceMeasurement {
            target: 0,
            survey: Survey {
                operation: OpKind::Read,
                span: Span::default(),
                curve: Some(CurvePlan {
                    points: self.points,
                    coverage: Coverage::Sampled { sample_bytes: None },
                    time_ns: None,
                }),
                burst: None,
                access: Some(AccessPlan {
                    random_reads: self.accesses,
                    pattern_reads: self.accesses / 4,
                    block_bytes: 512,
                    time_ns: 60_000_000_000,
                }),
                scan: None,
                engine: EngineChoice::Auto,
            },
            span_start_bytes: start,
            span_bytes: length,
            start_ns: 0,
            wall_ns: 60_000_000_000,
            curve_ns: 40_000_000_000,
            curve_cpu: CpuTime {
                user_ns: 100_000_000,
                system_ns: 300_000_000,
            },
            engine: EngineKind::Uring,
            cache: CacheUse {
                asked: CachePolicy::Direct,
                used: CachePolicy::Direct,
                why: None,
            },
            curve,
            burst: Some(burst(self.cap.unwrap_or(285e6))),
            access,
            access_errors: BTreeMap::new(),
            scan: None,
            starved_ns: 0,
            asked: ByteCount {
                read_bytes: bytes,
                write_bytes: 0,
            },
            device: DeviceUse {
                disks: vec!["sda".to_owned()],
                read_bytes: bytes,
                accounted: Some(1.0),
                ..DeviceUse::default()
            },
            interrupted: false,
            hang: None,
        }
    }

    fn point(&self, offset_bytes: u64, dice: &mut Dice) -> CurvePoint {
        const REQUEST_BYTES: u64 = 1 << 20;
        let bytes = 32 * REQUEST_BYTES;
        let hiccup = if dice.share() < self.hiccups {
            0.5
        } else {
            1.0
        };
        let rate = self.rate_at(offset_bytes as f64 / self.size_bytes as f64)
            * (1.0 + self.noise * dice.normal()).max(0.2)
            * hiccup;
        let busy_ns = (bytes as f64 / rate * 1e9) as u64;
        let latency_max_ns = busy_ns / 16;
        // Six parts know their error to a third.
        let mut own = Dice(dice.0.rotate_left(17));
        let parts: f64 = (0..5).map(|_| own.normal().powi(2)).sum();
        let standard_error = Some(self.noise * (parts / 5.0).sqrt());
        CurvePoint {
            bytes_per_second: rate,
            latency_max_ns,
            standard_error,
            ..CurvePoint::read_once(offset_bytes, bytes, busy_ns)
        }
    }

    fn accesses(&self, start: u64, length: u64, dice: &mut Dice) -> Vec<AccessPoint> {
        let few = u64::from(self.accesses / 4);
        let patterns = [
            (SeekPattern::Random, u64::from(self.accesses)),
            (SeekPattern::TrackToTrack, few),
            (SeekPattern::ThirdStroke, few),
            (SeekPattern::FullStroke, few),
        ];
        let mut access = Vec::new();
        for (seek, count) in patterns {
            let mut at = start;
            for i in 0..count {
                let offset_bytes = match seek {
                    SeekPattern::Random => start + (dice.share() * length as f64) as u64,
                    SeekPattern::TrackToTrack => (at + 2_000_000) % length.max(1) + start,
                    SeekPattern::ThirdStroke => start + (at - start + length / 3) % length.max(1),
                    _ => start + (i % 2) * (length - length / 100),
                };
                let distance_bytes = offset_bytes.abs_diff(at);
                access.push(AccessPoint {
                    seek,
                    offset_bytes,
                    distance_bytes,
                    latency_ns: self.latency_ns(distance_bytes, dice),
                });
                at = offset_bytes;
            }
        }
        access
    }

    fn latency_ns(&self, distance_bytes: u64, dice: &mut Dice) -> u64 {
        if self.rpm == 0 {
            return (90_000.0 * (0.15 * dice.normal()).exp()) as u64;
        }
        // From 1 ms along the square root of the distance; its mean over random pairs is 0.533.
        let share = (distance_bytes as f64 / self.size_bytes as f64).min(1.0);
        let seek_ns = if distance_bytes == 0 {
            0.0
        } else {
            1e6 + (self.seek_ns - 1e6) / 0.533 * share.sqrt()
        };
        let turn_ns = 60e9 / f64::from(self.rpm);
        (130_000.0 + seek_ns + turn_ns * dice.share()) as u64
    }

    /// The record of a survey alone.
    pub fn record(&self, seed: u64) -> Record {
        judge((facts(self), self.survey(seed)))
    }

    /// What was asked and seen, to be spoilt before the judgement.
    pub fn run(&self, seed: u64) -> (RunFacts, SurfaceMeasurement) {
        (facts(self), self.survey(seed))
    }
}

/// The judgement on a survey.
pub(crate) fn judge(run: (RunFacts, SurfaceMeasurement)) -> Record {
    crate::judge::judge(run.0, &[], Some(&run.1), &[])
}

fn facts(disk: &Disk) -> RunFacts {
    let mut facts = healthy::run().0;
    facts.plan.workloads.clear();
    let target = &mut facts.targets[0];
    (
        target.path,
        target.kind,
        target.size_bytes,
        target.free_bytes,
        target.filesystem,
    ) = (
        "/dev/sda".to_owned(),
        TargetKind::BlockDevice,
        disk.size_bytes,
        None,
        None,
    );
    target.layers.remove(0);
    let layer = &mut target.layers[0];
    (layer.size_bytes, layer.rotational) = (disk.size_bytes, Some(disk.rpm > 0));
    facts
}

/// The device's buffer, read again and again.
pub(crate) fn burst(rate: f64) -> Burst {
    let throughput = Estimate {
        n: 100,
        value: rate,
        half_width_95: Some(rate / 1000.0),
        unit: "B/s".to_owned(),
    };
    Burst {
        bytes: 1 << 20,
        rounds: 100,
        first_bytes_per_second: rate / 3.0,
        throughput,
    }
}

/// The codes of the findings on a record.
pub(crate) fn codes(record: &Record) -> Vec<&str> {
    record.findings.iter().map(|f| f.code.as_str()).collect()
}

/// A scan that found nothing wrong.
pub(crate) fn scan() -> Scan {
    Scan {
        block_bytes: 1 << 20,
        from_bytes: 0,
        to_bytes: 320_000_000_000,
        finished: true,
        blocks: 305_175,
        latency_p50_ns: 12_000_000,
        slow_from_ns: 200_000_000,
        slow_blocks: 0,
        slow: Vec::new(),
        unreadable_bytes: 0,
        unreadable: Vec::new(),
        map: Vec::new(),
    }
}
