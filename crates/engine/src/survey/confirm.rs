//! Reads stretches of the curve a second time at the end of the survey, with the places next to
//! them. A program that used the disk for a while makes a stretch as slow as a fault does; at
//! another time only the fault is left. The caller chooses the places.

use super::queue::RequestQueue;
use super::resample::has_room;
use super::sample::{MeasuredCurve, Sample};
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

impl<B: Backend, C: Clock> RequestQueue<'_, B, C> {
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
        log.begin("second reading");
        let limit_ns = time_ns.map_or(TIME_NS, |time_ns| (time_ns / TIME_PARTS).min(TIME_NS));
        let end_ns = self.now() + limit_ns;
        // From the end: the requests behind a sample reach into the next place of a whole pass.
        points.sort_unstable_by(|a, b| b.cmp(a));
        measured.washed_bytes = 0;
        let count = points.len();
        for (done, index) in points.into_iter().enumerate() {
            match self.read_again(measured, index, end_ns)? {
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
}
