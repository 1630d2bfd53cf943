//! Reads stretches of the curve a second time at the end of the survey, with the places next to
//! them. A program that used the disk for a while makes a stretch as slow as a fault does; at
//! another time only the fault is left. The caller chooses the places.

use super::log::SurveyLog;
use super::queue::RequestQueue;
use super::resample::{Reading, away_bytes, has_room};
use super::sample::{MeasuredCurve, Sample};
use super::target::SurveyTarget;
use crate::io::Backend;
use crate::io::clock::Clock;
use diskproof_model::surface::CurvePoint;
use std::io;

/// Chooses the points of a curve that are read a second time, by index.
pub type ChoosePoints = fn(&[CurvePoint]) -> Vec<usize>;

/// The second readings take at most this long.
const TIME_NS: u64 = 8_000_000_000;
/// In a survey of limited time, at most this part of the time of the curve.
const TIME_PARTS: u64 = 6;

/// Reads the chosen points again and puts the rates into the log.
pub(super) fn measure<B: Backend, C: Clock>(
    queue: &mut RequestQueue<B, C>,
    target: &SurveyTarget,
    measured: &mut MeasuredCurve,
    (mut points, time_ns): (Vec<usize>, Option<u64>),
    log: &SurveyLog,
) -> io::Result<()> {
    let away_bytes = away_bytes(target, measured.rate);
    if points.is_empty() || !has_room(target, away_bytes) {
        return Ok(());
    }
    log.begin("second reading");
    let limit_ns = time_ns.map_or(TIME_NS, |time_ns| (time_ns / TIME_PARTS).min(TIME_NS));
    let end_ns = queue.now() + limit_ns;
    // From the end: the requests behind a sample reach into the next place of a whole pass.
    points.sort_unstable_by(|a, b| b.cmp(a));
    let mut washed_bytes = 0;
    let count = points.len();
    for (done, index) in points.into_iter().enumerate() {
        let reading = Reading {
            index,
            away_bytes,
            end_ns,
        };
        match reading.take(queue, target, measured, &mut washed_bytes, log)? {
            Some(Sample::Done(point)) => {
                if let Some(known) = log.seen().curve.get_mut(index)
                    && point.errors == 0
                {
                    known.later_bytes_per_second = Some(point.bytes_per_second);
                }
            }
            Some(Sample::Interrupted) => {}
            Some(Sample::Stopped) | None => return Ok(()),
        }
        log.done((done + 1) as f64 / count as f64);
    }
    Ok(())
}
