//! Reads the options that end a job once its rate is steady.

use super::JobReader;
use crate::job_file::error::JobFileError;
use crate::job_file::numbers;
use diskproof_model::shape::{SteadyEnd, SteadyFigure, SteadyTest};

/// fio's default (`steadystate`).
const STEADY_DEFAULT: &str = "iops_slope:0.01%";
const SECOND: u64 = 1_000_000_000;

impl JobReader<'_, '_> {
    /// `steadystate` and its durations. Without `steadystate_duration` fio ignores it.
    pub(super) fn steady(&self) -> Result<Option<SteadyEnd>, JobFileError> {
        let over_ns = self.time("steadystate_duration")?;
        if over_ns == 0 {
            return Ok(None);
        }
        let (setting, value) = match self.value("steadystate")? {
            Some((setting, value)) => (Some(setting), value),
            None => (self.setting("steadystate_duration"), STEADY_DEFAULT),
        };
        let wrong = |why: &str| {
            setting
                .map_or(&self.section.source, |setting| &setting.source)
                .error(why)
        };
        let form = "write iops:, bw:, lat:, iops_slope:, bw_slope: or lat_slope: and a limit, such \
                    as iops:2%";
        let (word, limit) = value.split_once(':').ok_or_else(|| wrong(form))?;
        let (figure, test) = match word.trim() {
            "iops" => (SteadyFigure::Ops, SteadyTest::Deviation),
            "iops_slope" => (SteadyFigure::Ops, SteadyTest::Slope),
            "bw" => (SteadyFigure::Bytes, SteadyTest::Deviation),
            "bw_slope" => (SteadyFigure::Bytes, SteadyTest::Slope),
            "lat" => (SteadyFigure::Latency, SteadyTest::Deviation),
            "lat_slope" => (SteadyFigure::Latency, SteadyTest::Slope),
            _ => return Err(wrong(form)),
        };
        let limit = limit.trim();
        let (limit, is_percent) = match (limit.strip_suffix('%'), figure) {
            (Some(percent), _) => (percent.trim().parse().ok(), true),
            (None, SteadyFigure::Ops) => (limit.parse().ok(), false),
            (None, SteadyFigure::Latency) => {
                let ns = numbers::short_time_ns(limit).map_err(|why| wrong(&why))?;
                (Some(ns as f64), false)
            }
            (None, SteadyFigure::Bytes) => {
                let bytes = numbers::bytes(limit, self.base).map_err(|why| wrong(&why))?;
                (Some(bytes as f64), false)
            }
        };
        let limit: f64 = limit
            .filter(|limit: &f64| limit.is_finite() && *limit >= 0.0)
            .ok_or_else(|| wrong(form))?;
        let every_ns = match self.time("steadystate_check_interval")? {
            0 => SECOND,
            ns => ns,
        };
        let end = SteadyEnd {
            figure,
            test,
            limit,
            is_percent,
            over_ns,
            settle_ns: self.time("steadystate_ramp_time")?,
            every_ns,
        };
        match end.samples() {
            2.. => Ok(Some(end)),
            _ => Err(wrong(
                "steadystate_duration is less than two check intervals",
            )),
        }
    }
}
