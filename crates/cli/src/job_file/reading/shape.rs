//! Reads the options that shape the load: runs at random offsets, spacing of starts, pauses,
//! delays, limits.

use super::operations::of_list;
use super::{JobReader, OptionValue};
use crate::job_file::error::JobFileError;
use crate::job_file::jobs::JobBlocks;
use crate::job_file::numbers;
use crate::workload::{Order, Rw, RwDirection};
use diskproof_model::plan::BlockShare;
use diskproof_model::shape::{
    Arrivals, FloorUnit, FlowShare, LoadShape, RandomRun, RateFloor, RunFollow, ThinkCount,
    ThinkTime,
};

/// fio's default (`rate_cycle`).
const RATE_CYCLE_MS: u64 = 1000;

impl JobReader<'_, '_> {
    pub(super) fn shape(
        &self,
        rw: Rw,
        postfix: Option<OptionValue<'_>>,
        blocks: &JobBlocks,
        write_mix: Vec<BlockShare>,
    ) -> Result<LoadShape, JobFileError> {
        let (align_bytes, random_run) =
            (self.alignment(rw, blocks)?, self.random_run(rw, postfix)?);
        // fio's map of visited blocks never fills where offsets have another alignment.
        let each_block_once = align_bytes.is_none() && self.is_mapped(rw)?;
        Ok(LoadShape {
            write_mix,
            align_bytes,
            each_block_once,
            random_run,
            arrivals: self.arrivals()?,
            think: self.think()?,
            start_delay_ns: self.time("startdelay")?,
            latency_limit_ns: self.latency_limit(rw)?,
            rate_floors: self.rate_floors(rw)?,
            ..LoadShape::default()
        })
    }

    /// `flow`, `flow_id` and `flow_sleep`, which is in microseconds.
    pub(super) fn flow(&self) -> Result<Option<FlowShare>, JobFileError> {
        let number = |name: &str| -> Result<u32, JobFileError> {
            u32::try_from(self.count(name, 0)?).map_err(|_| {
                self.setting(name)
                    .map_or(&self.section.source, |setting| &setting.source)
                    .error("the number is too large")
            })
        };
        let share = FlowShare {
            number: number("flow_id")?,
            weight: number("flow")?,
            pause_ns: u64::from(number("flow_sleep")?) * 1000,
        };
        Ok((share.weight > 0).then_some(share))
    }

    /// `randread:8` and `rw_sequencer`.
    fn random_run(
        &self,
        rw: Rw,
        postfix: Option<OptionValue<'_>>,
    ) -> Result<Option<RandomRun>, JobFileError> {
        let follow = match self.value("rw_sequencer")? {
            None | Some((_, "sequential")) => RunFollow::Sequential,
            Some((_, "identical")) => RunFollow::Identical,
            Some((setting, _)) => return Err(setting.error("use sequential or identical")),
        };
        let Some((setting, number)) = postfix.filter(|_| rw.order == Order::Random) else {
            return Ok(None);
        };
        let count = numbers::bytes(number, self.base).map_err(|why| setting.error(why))?;
        match u32::try_from(count) {
            Ok(0 | 1) => Ok(None),
            Ok(run_ops) => Ok(Some(RandomRun { run_ops, follow })),
            Err(_) => Err(setting.error("use a smaller number of blocks at each offset")),
        }
    }

    fn arrivals(&self) -> Result<Arrivals, JobFileError> {
        match self.value("rate_process")? {
            None | Some((_, "linear")) => Ok(Arrivals::Even),
            Some((setting, "poisson")) => match self.value("rate")?.or(self.value("rate_iops")?) {
                Some(_) => Ok(Arrivals::Poisson),
                None => Err(setting.error("it needs a rate; add rate_iops, or remove it")),
            },
            Some((setting, _)) => Err(setting.error("use linear or poisson")),
        }
    }

    fn think(&self) -> Result<Option<ThinkTime>, JobFileError> {
        let pause_ns = self.short_time("thinktime")?;
        if pause_ns == 0 {
            return Ok(None);
        }
        if let Some(setting) = self.setting("rate_ignore_thinktime")
            && self.flag("rate_ignore_thinktime")?
        {
            return Err(setting.error(
                "requests that are due during a pause always start after it; remove the option",
            ));
        }
        let counted = match self.value("thinktime_blocks_type")? {
            None | Some((_, "complete")) => ThinkCount::Completed,
            Some((_, "issue")) => ThinkCount::Started,
            Some((setting, _)) => return Err(setting.error("use complete or issue")),
        };
        let busy_ns = Some(self.time("thinktime_iotime")?).filter(|ns| *ns > 0);
        let pause_ops = match (self.setting("thinktime_blocks"), busy_ns) {
            (None, Some(_)) => 0,
            _ => self.count("thinktime_blocks", 1)?.max(1),
        };
        Ok(Some(ThinkTime {
            pause_ns,
            pause_ops,
            counted,
            busy_ns,
        }))
    }

    fn latency_limit(&self, rw: Rw) -> Result<Option<u64>, JobFileError> {
        let Some((setting, value)) = self.value("max_latency")? else {
            return Ok(None);
        };
        let limit = self.of_direction(setting, value, rw)?;
        let limit_ns = numbers::short_time_ns(limit).map_err(|why| setting.error(why))?;
        Ok(Some(limit_ns).filter(|ns| *ns > 0))
    }

    /// `rate_min` and `rate_iops_min`. With both, fio checks the former.
    fn rate_floors(&self, rw: Rw) -> Result<Vec<RateFloor>, JobFileError> {
        let over_ns = self
            .count("rate_cycle", RATE_CYCLE_MS)?
            .max(1)
            .saturating_mul(1_000_000);
        let (setting, value, unit) = match (self.value("rate_min")?, self.value("rate_iops_min")?) {
            (Some((setting, value)), _) => (setting, value, FloorUnit::Bytes),
            (None, Some((setting, value))) => (setting, value, FloorUnit::Ops),
            (None, None) => return Ok(Vec::new()),
        };
        let mut floors = Vec::new();
        let directions: &[RwDirection] = match rw.direction {
            RwDirection::Mixed => &[RwDirection::Read, RwDirection::Write],
            RwDirection::TrimWrite => &[RwDirection::Write],
            direction => &[direction],
        };
        for direction in directions {
            let of_writes = *direction != RwDirection::Read;
            let own = of_list(value, *direction);
            if own.is_empty() {
                continue;
            }
            let floor = numbers::bytes(own, self.base).map_err(|why| setting.error(why))? as f64;
            if floor > 0.0 {
                floors.push(RateFloor {
                    of_writes,
                    floor,
                    unit,
                    over_ns,
                });
            }
        }
        Ok(floors)
    }

    /// A time whose bare number is microseconds.
    pub(super) fn short_time(&self, name: &str) -> Result<u64, JobFileError> {
        Ok(self.parsed(name, numbers::short_time_ns)?.unwrap_or(0))
    }
}
