//! The places of bytes on a rotating disk: zones of tracks from the outer edge inwards, and the
//! time that the head takes between them.
//!
//! The model: tracks are equally wide, the speed is constant, so a zone's rate is proportional to
//! its track's length; zones are bands of equally many tracks, so an outer zone holds more bytes.
//! The sustained rate already contains head switches (track skew), so the tracks form one spiral:
//! sequential access never waits for the disk to turn.

use super::timing::transfer_ns;

/// The numbers of the surface and the arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Geometry {
    /// Revolutions per minute.
    pub rpm: u32,
    /// Sustained bytes per second in the outermost zone (offset 0).
    pub outer_bytes_per_s: u64,
    /// Sustained bytes per second in the innermost zone (the end).
    pub inner_bytes_per_s: u64,
    /// Zones; the rate falls in equal steps from one to the next. 1 has the outer rate everywhere.
    pub zones: u32,
    /// Seek to the next track.
    pub seek_track_ns: u64,
    /// Mean seek between two places chosen evenly at random among all bytes, as data sheets have
    /// it.
    pub seek_average_ns: u64,
    /// Seek from edge to edge.
    pub seek_full_ns: u64,
}

/// A band of tracks with one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RecordingZone {
    /// The offset of its first byte.
    start_bytes: f64,
    /// Its length.
    bytes: f64,
    bytes_per_s: u64,
}

/// The place of a byte under the head.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadPosition {
    /// 0 at the outer edge, 1 at the inner.
    pub radius: f64,
    /// Share of a turn, 0 to 1, at which it passes the head.
    pub angle: f64,
}

/// The zone of a byte.
struct ZoneAt {
    /// The number of the zone, from 0 at the outer edge.
    index: usize,
    zone: RecordingZone,
}

/// A surface of a given size.
#[derive(Debug, Clone)]
pub struct Surface {
    geometry: Geometry,
    zones: Vec<RecordingZone>,
    /// The width of a track, as a share of the way from the outer edge to the inner.
    track_radius: f64,
    /// The power of the distance in the time of a seek ([`Surface::seek_ns`]).
    exponent: f64,
}

impl Geometry {
    /// Time of one revolution.
    pub fn revolution_ns(&self) -> u64 {
        60_000_000_000 / u64::from(self.rpm.max(1))
    }

    /// Lays `size_bytes` out on the surface.
    pub fn lay_out(&self, size_bytes: u64) -> Surface {
        let count = self.zones.max(1);
        let rates: Vec<u64> = (0..count).map(|k| self.zone_rate(k, count)).collect();
        let total: f64 = rates.iter().map(|r| *r as f64).sum();
        let mut start_bytes = 0.0;
        let zones: Vec<RecordingZone> = rates
            .iter()
            .map(|rate| {
                let bytes = size_bytes as f64 * *rate as f64 / total;
                let zone = RecordingZone {
                    start_bytes,
                    bytes,
                    bytes_per_s: *rate,
                };
                start_bytes += bytes;
                zone
            })
            .collect();
        let mean_track_bytes = total / f64::from(count) * self.revolution_ns() as f64 / 1e9;
        let mut surface = Surface {
            geometry: *self,
            zones,
            track_radius: (mean_track_bytes / size_bytes.max(1) as f64).min(1.0),
            exponent: 1.0,
        };
        surface.fit_exponent(size_bytes);
        surface
    }

    fn zone_rate(&self, zone: u32, count: u32) -> u64 {
        let share = f64::from(zone) / f64::from((count - 1).max(1));
        (self.outer_bytes_per_s as f64
            + (self.inner_bytes_per_s as f64 - self.outer_bytes_per_s as f64) * share)
            .round() as u64
    }
}

impl Surface {
    /// The place of the byte at `offset_bytes`.
    pub fn place(&self, offset_bytes: u64) -> HeadPosition {
        let ZoneAt { index, zone } = self.zone_at(offset_bytes);
        let within = offset_bytes as f64 - zone.start_bytes;
        let track_bytes = zone.bytes_per_s as f64 * self.geometry.revolution_ns() as f64 / 1e9;
        HeadPosition {
            radius: (index as f64 + within / zone.bytes) / self.zones.len() as f64,
            angle: (within / track_bytes).rem_euclid(1.0),
        }
    }

    /// The sustained rate at `offset_bytes`, in bytes per second: the truth for a curve.
    pub fn rate_at(&self, offset_bytes: u64) -> u64 {
        self.zone_at(offset_bytes).zone.bytes_per_s
    }

    /// The time in which `length_bytes` from `offset_bytes` on pass the head.
    pub fn pass_ns(&self, offset_bytes: u64, length_bytes: u64) -> u64 {
        let mut position = offset_bytes;
        let end = offset_bytes + length_bytes;
        let mut total_ns = 0;
        while position < end {
            let ZoneAt { index, zone } = self.zone_at(position);
            let is_last = index + 1 == self.zones.len();
            let zone_end = if is_last {
                end
            } else {
                (zone.start_bytes + zone.bytes).ceil() as u64
            };
            let until = zone_end.clamp(position + 1, end);
            total_ns += transfer_ns(until - position, zone.bytes_per_s);
            position = until;
        }
        total_ns
    }

    /// The time of the arm over a distance of `radius` (0 to 1). It is 0 on the same track. Beyond
    /// that it grows from `seek_track_ns` to `seek_full_ns` with a power of the distance, which is
    /// chosen so that the mean is `seek_average_ns`.
    pub fn seek_ns(&self, radius: f64) -> u64 {
        if radius < self.track_radius {
            0
        } else {
            self.travel_ns(radius).round() as u64
        }
    }

    /// Nanoseconds after `at_ns` until the place passes the head again.
    pub fn turn_ns(&self, at_ns: u64, angle: f64) -> u64 {
        let revolution_ns = self.geometry.revolution_ns();
        let now = (at_ns % revolution_ns) as f64 / revolution_ns as f64;
        ((angle - now).rem_euclid(1.0) * revolution_ns as f64).round() as u64
    }

    fn zone_at(&self, offset_bytes: u64) -> ZoneAt {
        let index = self
            .zones
            .partition_point(|z| z.start_bytes <= offset_bytes as f64)
            .max(1)
            - 1;
        ZoneAt {
            index,
            zone: self.zones[index],
        }
    }

    fn travel_ns(&self, radius: f64) -> f64 {
        let geometry = &self.geometry;
        let range = geometry.seek_full_ns.saturating_sub(geometry.seek_track_ns) as f64;
        geometry.seek_track_ns as f64 + range * radius.powf(self.exponent)
    }

    /// Finds the power by bisection: the mean seek falls as the power grows.
    fn fit_exponent(&mut self, size_bytes: u64) {
        /// The number of evenly spaced points of the surface between which the mean seek is taken.
        const POINTS: u64 = 64;
        /// The lowest and the highest power that is tried.
        const EXPONENTS: (f64, f64) = (0.02, 8.0);
        /// The number of bisections: each halves the error of the power.
        const BISECTIONS: u32 = 40;
        let radii: Vec<f64> = (0..POINTS)
            .map(|k| {
                self.place(size_bytes / POINTS * k + size_bytes / POINTS / 2)
                    .radius
            })
            .collect();
        // All pairs of different points: the diagonal stands for short seeks, whose mean distance
        // is a third of a step.
        let step = 1.0 / POINTS as f64 / 3.0;
        let (mut low, mut high) = EXPONENTS;
        for _ in 0..BISECTIONS {
            self.exponent = (low + high) / 2.0;
            let sum: f64 = radii
                .iter()
                .flat_map(|a| radii.iter().map(move |b| (a - b).abs().max(step)))
                .map(|d| self.travel_ns(d))
                .sum();
            let mean_ns = sum / (POINTS * POINTS) as f64;
            if mean_ns > self.geometry.seek_average_ns as f64 {
                low = self.exponent
            } else {
                high = self.exponent
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::drive::{DISK, SIZE, random_offsets};

    #[test]
    fn transfer_rate_falls_from_outer_to_inner_zone() {
        let surface = DISK.lay_out(SIZE);
        assert_eq!(surface.rate_at(0), 92_000_000);
        assert_eq!(surface.rate_at(SIZE - 1), 49_000_000);
        let rates: Vec<u64> = (0..100).map(|k| surface.rate_at(SIZE / 100 * k)).collect();
        assert!(rates.is_sorted_by(|a, b| a >= b));
        // The outer half of the tracks holds more than half of the bytes.
        assert!(rates.iter().filter(|r| **r > 70_500_000).count() > 50);
    }

    #[test]
    fn transfer_across_zone_border_uses_both_rates() {
        let two = Geometry {
            zones: 2,
            outer_bytes_per_s: 100_000_000,
            inner_bytes_per_s: 50_000_000,
            ..DISK
        };
        let surface = two.lay_out(3_000_000_000);
        assert_eq!(surface.pass_ns(1_990_000_000, 20_000_000), 300_000_000);
        assert_eq!(surface.pass_ns(0, 3_000_000_000), 40_000_000_000);
    }

    #[test]
    fn mean_random_seek_matches_data_sheet() {
        let surface = DISK.lay_out(SIZE);
        let offsets = random_offsets(40_001, 512, SIZE);
        let radii: Vec<f64> = offsets.iter().map(|o| surface.place(*o).radius).collect();
        let mean_ns = radii
            .windows(2)
            .map(|w| surface.seek_ns((w[0] - w[1]).abs()))
            .sum::<u64>()
            / 40_000;
        assert!(mean_ns.abs_diff(10_600_000) < 60_000, "{mean_ns}");
    }

    #[test]
    fn seek_curve_spans_zero_to_full_stroke() {
        let surface = DISK.lay_out(SIZE);
        assert_eq!(surface.seek_ns(0.0), 0);
        assert_eq!(surface.seek_ns(1.0), 22_000_000);
        let track_ns = surface.seek_ns(surface.track_radius * 1.01);
        assert!((1_000_000..1_100_000).contains(&track_ns), "{track_ns}");
    }

    #[test]
    fn sector_returns_once_per_rotation() {
        let surface = DISK.lay_out(SIZE);
        assert_eq!(DISK.revolution_ns(), 8_333_333);
        assert_eq!(surface.turn_ns(0, 0.5), 4_166_667);
        let turn_ns = surface.turn_ns(8_333_333 * 3 + 2_083_333, 0.0);
        assert_eq!(turn_ns.div_ceil(1000), 6_250);
        let track_bytes = 92_000_000u64 * 8_333_333 / 1_000_000_000;
        let turned = surface.place(track_bytes).angle;
        // A track later the angle is the same.
        assert!(!(0.001..0.999).contains(&turned), "{turned}");
    }
}
