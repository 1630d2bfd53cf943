//! Measures points of the curve again that stand out from their neighbours, so that a brief
//! disturbance does not count as a property of the disk. A curve of writes is written again there.
//!
//! A pause of this program or of the host makes a sample too slow where it falls into the timed
//! part. Where it falls before, the sample is too fast, because the disk reads ahead into its cache
//! meanwhile. A property of the disk repeats itself. The median of three readings favours neither.
//!
//! At the end of the survey, chosen stretches of the curve are read a second time, with the places
//! next to them. A program that used the disk for a while makes a stretch as slow as a fault does;
//! at another time only the fault is left. The caller chooses the places.

use super::queue::{RequestQueue, block_at};
use super::sample::{MeasuredCurve, STREAM_REQUEST_MAX, Sample};
use super::target::{SurveyTarget, UNIT_BYTES};
use crate::io::clock::Clock;
use crate::io::{Backend, Extent};
use diskproof_model::measurement::OpKind;
use diskproof_model::surface::CurvePoint;
use std::collections::BTreeMap;
use std::io;

/// Chooses the points of a curve that are read a second time, by index.
pub type ChoosePoints = fn(&[CurvePoint]) -> Vec<usize>;

/// Neighbours on each side; three make a median that one outlier does not move.
const NEIGHBOURS: usize = 3;
/// A shorter curve has no outliers: its points have too few neighbours to compare with.
const POINTS_MIN: usize = 5;
/// A smaller deviation does not matter; as a logarithm, about 2 %. Chosen, not measured.
const DISTANCE_MIN: f64 = 0.02;
/// Nor does a deviation of less than this many times the usual scatter of the points. Chosen: of
/// normally distributed points one in 16 000 is read again for nothing.
const SCATTERS: f64 = 4.0;
/// The upper quartile of the distances from the median of neighbours, of normally distributed
/// points of standard deviation 1. By simulation, as in `shape/parts.rs` of the analysis.
const DISTANCE_QUARTILE: f64 = 0.934;
/// At most this part of the points is read again, but at least [`PLACES_MIN`]: where more stand
/// out, they are the surface. Chosen, not measured.
const SHARE_MAX: f64 = 0.2;
/// Points that may be read again on any curve, however short. Chosen, not measured.
const PLACES_MIN: usize = 4;
/// Readings after the first one: three have a median.
const ROUNDS: usize = 2;
/// Reading elsewhere for this long displaces a sample from the disk's cache: caches grew with the
/// rates.
const AWAY_S: f64 = 1.0;
/// The least and the most that is read elsewhere, whatever the rate: the caches of rotating disks.
const AWAY_BYTES: std::ops::RangeInclusive<u64> = 64 << 20..=512 << 20;
/// A span smaller than this many times that amount may fit into the cache. Chosen, not measured.
const AWAY_TIMES_MIN: u64 = 4;
/// Longest sample that is read again, by the rate of the disk: in a longer one a pause does not
/// matter. The measured time would not do, because a pause makes it long.
const BUSY_NS_MAX: f64 = 2e9;
// The limits of time are chosen, not measured: what a user does not mind beside the survey.
/// The second readings take at most this long.
const SECOND_NS: u64 = 8_000_000_000;
/// In a survey of limited time they take at most one part in so many of the time of the curve.
const SECOND_PARTS: u64 = 6;
/// In a survey without a limit of time, reading outliers again takes at most one part in so many of
/// the time that the curve took, or [`OUTLIER_NS`], if that is more.
const OUTLIER_PARTS: u64 = 3;
/// See [`OUTLIER_PARTS`].
const OUTLIER_NS: u64 = 5_000_000_000;

impl<B: Backend, C: Clock> RequestQueue<'_, B, C> {
    /// Reads again what stands out, and corrects the points in the log.
    pub(super) fn resample(
        &mut self,
        measured: &mut MeasuredCurve,
        time_ns: Option<u64>,
    ) -> io::Result<()> {
        if !has_room(&self.target, measured.rate) {
            return Ok(());
        }
        let start_ns = self.log.results().curve_start.ns;
        let taken_ns = self.sampler.now() - start_ns;
        let with_outliers_ns = taken_ns + (taken_ns / OUTLIER_PARTS).max(OUTLIER_NS);
        let end_ns = start_ns + time_ns.unwrap_or(with_outliers_ns);
        let places_max =
            ((SHARE_MAX * measured.places.len() as f64).ceil() as usize).max(PLACES_MIN);
        // All readings of the points that were read again.
        let mut readings: BTreeMap<usize, Vec<CurvePoint>> = BTreeMap::new();
        loop {
            // With some points corrected, others may stand out that they hid.
            let mut candidates = outliers(&self.log.results().curve);
            candidates.retain(|index| !readings.contains_key(index));
            candidates.truncate(places_max - readings.len());
            // From the end: the requests behind a sample reach into the next place of a whole pass.
            candidates.sort_unstable_by(|a, b| b.cmp(a));
            for index in candidates.iter().cycle().take(candidates.len() * ROUNDS) {
                let point = match self.read_again(measured, *index, end_ns)? {
                    Some(Sample::Done(point)) => point,
                    Some(Sample::Interrupted) => continue,
                    Some(Sample::Stopped) | None => return Ok(()),
                };
                if let Some(known) = self.log.results().curve.get_mut(*index) {
                    let readings = readings
                        .entry(*index)
                        .or_insert_with(|| vec![known.clone()]);
                    readings.push(point);
                    *known = median_reading(readings).unwrap_or_else(|| known.clone());
                }
                self.log.report_curve(self.sampler.now(), 1.0);
            }
            if candidates.is_empty() {
                return Ok(());
            }
        }
    }

    /// Reads the chosen points again and puts the rates into the log.
    pub(super) fn confirm(
        &mut self,
        measured: &mut MeasuredCurve,
        mut points: Vec<usize>,
        time_ns: Option<u64>,
    ) -> io::Result<()> {
        let log = self.log;
        if points.is_empty() || !has_room(&self.target, measured.rate) {
            return Ok(());
        }
        log.begin_step("second reading");
        let limit_ns = match time_ns {
            Some(time_ns) => (time_ns / SECOND_PARTS).min(SECOND_NS),
            None => SECOND_NS,
        };
        let end_ns = self.sampler.now() + limit_ns;
        // From the end: the requests behind a sample reach into the next place of a whole pass.
        points.sort_unstable_by(|a, b| b.cmp(a));
        measured.elsewhere_bytes = 0;
        let count = points.len();
        for (done, index) in points.into_iter().enumerate() {
            match self.read_again(measured, index, end_ns)? {
                Some(Sample::Done(point)) => {
                    if let Some(known) = log.results().curve.get_mut(index)
                        && point.errors == 0
                    {
                        known.later_bytes_per_second = Some(point.bytes_per_second);
                    }
                }
                Some(Sample::Interrupted) => {}
                Some(Sample::Stopped) | None => return Ok(()),
            }
            log.report_share((done + 1) as f64 / count as f64);
        }
        Ok(())
    }

    /// Reads a point of the curve again once the disk's cache has lost it; `None` where that would
    /// end after `end_ns`.
    fn read_again(
        &mut self,
        measured: &mut MeasuredCurve,
        index: usize,
        end_ns: u64,
    ) -> io::Result<Option<Sample>> {
        let log = self.log;
        let Some(place) = measured.places.get(index).copied() else {
            return Ok(None);
        };
        let moved_since = log.bytes() - place.moved_bytes;
        let missing_bytes = away_bytes(&self.target, measured.rate).saturating_sub(moved_since);
        let cost_ns = (missing_bytes + place.extent.length) as f64 / measured.rate * 1e9;
        if self.sampler.now() + cost_ns as u64 > end_ns {
            return Ok(None);
        }
        measured.elsewhere_bytes =
            self.read_elsewhere(place.extent.start, measured.elsewhere_bytes, missing_bytes)?;
        let sample = self.sample(measured.sizing, place.extent)?;
        if matches!(sample, Sample::Done(_)) {
            measured.places[index].moved_bytes = log.bytes();
        }
        Ok(Some(sample))
    }

    /// Reads `missing_bytes` elsewhere, untimed, behind the `elsewhere_bytes` that were read there
    /// before; returns the total.
    fn read_elsewhere(
        &mut self,
        from: u64,
        elsewhere_bytes: u64,
        missing_bytes: u64,
    ) -> io::Result<u64> {
        let log = self.log;
        let Extent { start, length } = self.target.extent;
        let step_bytes = u64::from(STREAM_REQUEST_MAX);
        let request_bytes = step_bytes.min(length / 2);
        // Half the span further on, around its end.
        let opposite = (from - start + length / 2) % length;
        let mut left_bytes = missing_bytes;
        let mut total_bytes = elsewhere_bytes;
        self.run_unwatched(
            || {
                if left_bytes == 0 || log.is_stopped() {
                    return None;
                }
                let offset = (opposite + total_bytes) % (length - request_bytes);
                total_bytes += step_bytes;
                left_bytes = left_bytes.saturating_sub(step_bytes);
                let aligned = offset / UNIT_BYTES * UNIT_BYTES;
                Some(block_at(start + aligned, request_bytes))
            },
            |_| (),
        )?;
        Ok(total_bytes)
    }
}

/// Bytes that must be read elsewhere between two readings of a place, so that the disk's cache does
/// not serve the second one.
fn away_bytes(target: &SurveyTarget, rate: f64) -> u64 {
    if target.operation == OpKind::Write {
        0
    } else {
        ((rate * AWAY_S) as u64).clamp(*AWAY_BYTES.start(), *AWAY_BYTES.end())
    }
}

/// True if a target of about this rate is so large that its cache does not serve second readings.
fn has_room(target: &SurveyTarget, rate: f64) -> bool {
    target.extent.length >= AWAY_TIMES_MIN * away_bytes(target, rate)
}

/// The median of all readings of a point; of two the slower.
fn median_reading(readings: &[CurvePoint]) -> Option<CurvePoint> {
    let mut sorted: Vec<&CurvePoint> = readings.iter().collect();
    sorted.sort_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second));
    let median = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(CurvePoint {
        readings: readings
            .iter()
            .map(|point| point.bytes_per_second)
            .collect(),
        ..median.clone()
    })
}

/// Points that deviate from their neighbours by more than the usual scatter, and those with a
/// larger error of their own than elsewhere; the largest deviation first. A zone boundary is not a
/// deviation.
fn outliers(curve: &[CurvePoint]) -> Vec<usize> {
    // Of the points without an error: their place in the curve, logarithms of the rates, errors.
    let mut indices = Vec::new();
    let mut rates = Vec::new();
    let mut errors = Vec::new();
    for (index, point) in curve.iter().enumerate() {
        if point.errors == 0 && point.bytes_per_second > 0.0 {
            indices.push(index);
            rates.push(point.bytes_per_second.ln());
            errors.push(point.standard_error.unwrap_or(0.0));
        }
    }
    if indices.len() < POINTS_MIN {
        return Vec::new();
    }
    let distances: Vec<f64> = (0..rates.len()).map(|i| distance(&rates, i)).collect();
    let usual_rate = quartile(&rates, 2).exp();
    let scatter = quartile(&distances, 3) / DISTANCE_QUARTILE;
    let distance_max = DISTANCE_MIN.max(SCATTERS * scatter);
    let error_max = DISTANCE_MIN.max(SCATTERS * quartile(&errors, 2));
    let mut outliers: Vec<Outlier> = Vec::new();
    for (i, index) in indices.into_iter().enumerate() {
        let stands_out = distances[i] > distance_max || errors[i] > error_max;
        let usual_ns = curve[index].bytes as f64 / usual_rate * 1e9;
        if stands_out && usual_ns <= BUSY_NS_MAX {
            outliers.push(Outlier {
                index,
                deviation: distances[i].max(errors[i]),
            });
        }
    }
    outliers.sort_by(|a, b| b.deviation.total_cmp(&a.deviation));
    outliers.iter().map(|outlier| outlier.index).collect()
}

/// A point that stands out.
struct Outlier {
    /// The place in the curve.
    index: usize,
    deviation: f64,
}

/// The quartile with this number, 1 to 3, of some values; 0 without any.
fn quartile(values: &[f64], number: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get(sorted.len() * number / 4)
        .copied()
        .unwrap_or(0.0)
}

/// Distance of a value from the interval between the medians on its left and on its right; at an
/// end, from the extrapolation of the others.
fn distance(values: &[f64], i: usize) -> f64 {
    let before = &values[i.saturating_sub(NEIGHBOURS)..i];
    let after = &values[i + 1..(i + 1 + NEIGHBOURS).min(values.len())];
    let (left, right) = match (median(before), median(after)) {
        (Some(left), Some(right)) => (left, right),
        (Some(only), None) => (only, 2.0 * before[before.len() - 1] - before[0]),
        (None, Some(only)) => (only, 2.0 * after[0] - after[after.len() - 1]),
        (None, None) => return 0.0,
    };
    let above = values[i] - left.max(right);
    let below = left.min(right) - values[i];
    above.max(below).max(0.0)
}

fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some(quartile(values, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(rates: &[f64]) -> Vec<CurvePoint> {
        let point = |(i, rate): (usize, &f64)| {
            CurvePoint::read_once(i as u64 * 1_000_000_000, 20_000_000, (20e15 / rate) as u64)
        };
        rates.iter().enumerate().map(point).collect()
    }

    #[test]
    fn median_reading_counts_and_of_two_the_slower() {
        let median = |rates: &[f64]| median_reading(&curve(rates)).unwrap();
        let rate = |rates: &[f64]| median(rates).bytes_per_second.round();
        assert_eq!((rate(&[10e6, 20e6]), rate(&[20e6, 10e6])), (10e6, 10e6));
        assert_eq!(rate(&[10e6, 20e6, 21e6]), 20e6);
        assert_eq!(rate(&[154e6, 92e6, 91e6]), 92e6);
        assert_eq!(rate(&[60e6, 61e6, 92e6]), 61e6);
        let readings = median(&[154e6, 92e6, 91e6]).readings;
        assert_eq!((readings.len(), (readings[0] / 1e6).round()), (3, 154.0));
    }

    fn candidates(rates: &[f64]) -> Vec<usize> {
        let mut candidates = outliers(&curve(rates));
        candidates.sort_unstable();
        candidates
    }

    #[test]
    fn outliers_are_detected_and_zone_steps_ignored() {
        let steps = [[90e6; 4], [70e6; 4], [60e6; 4]].concat();
        assert_eq!(candidates(&steps), [0usize; 0]);
        let mut faulty = steps.clone();
        (faulty[1], faulty[6]) = (154e6, 76e6);
        assert_eq!(candidates(&faulty), [1, 6]);
        faulty = steps;
        faulty[0] = 80e6;
        assert_eq!(candidates(&faulty), [0], "a disk that wakes up");
        let ragged = (0..100).map(|i| 90e6 - 10e6 * f64::from((i * 7) % 5));
        let ragged: Vec<f64> = ragged.collect();
        assert_eq!(candidates(&ragged), [0usize; 0], "they are the surface");
        let falling: Vec<f64> = (0..8).map(|i| 90e6 - 5e6 * f64::from(i)).collect();
        assert_eq!(candidates(&falling), [0usize; 0]);
        assert_eq!(candidates(&[1e6, 9e6, 3e6]), [0usize; 0]);
    }

    #[test]
    fn uneven_sample_is_an_outlier_unless_all_are() {
        let mut points = curve(&[90e6; 12]);
        points[4].standard_error = Some(0.1);
        assert_eq!(outliers(&points), [4]);
        points.iter_mut().for_each(|p| p.standard_error = Some(0.1));
        assert_eq!(outliers(&points), [0usize; 0]);
    }
}
