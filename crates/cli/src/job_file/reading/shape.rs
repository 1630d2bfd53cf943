//! Reads the options that shape the load: spacing of starts, pauses, delays, limits, a steady end,
//! zones, scheduling.

use super::JobReader;
use super::operations::of_list;
use crate::job_file::translation::JobFileError;
use crate::workload::{LatencyPercentile, Time, WorkloadFlags};
use diskproof_compat::fio_values as numbers;
use diskproof_model::rw::{Order, Rw};
use diskproof_model::shape::{
    Arrivals, FloorUnit, FlowShare, IoPriority, LoadShape, RateFloor, SteadyEnd, SteadyFigure,
    SteadyTest, ThinkCount, ThinkTime, ThreadScheduling, ZoneStride,
};

/// fio's default (`rate_cycle`).
const RATE_CYCLE_MS: u64 = 1000;
/// fio's default (`steadystate`).
const STEADY_DEFAULT: &str = "iops_slope:0.01%";
const STEADY_FORM: &str = "write iops:, bw:, lat:, iops_slope:, bw_slope: or lat_slope: and a \
                           limit, such as iops:2%";
/// fio judges whenever it looks without `latency_window`; so short a time still shows a rate.
const WINDOW_NS_DEFAULT: u64 = 1_000_000_000;
const SECOND: u64 = 1_000_000_000;
/// The kernel's set of processors holds no more in this program.
const CPU_MAX: u16 = 1023;
/// The class of a priority without one (IOPRIO_CLASS_BE).
const BEST_EFFORT: u8 = 2;

impl JobReader<'_> {
    /// Completes the shape, which already has its sizes and its runs at random offsets.
    pub(super) fn shape(&self, rw: Rw, flags: &mut WorkloadFlags) -> Result<(), JobFileError> {
        let align_bytes = self.alignment(rw, u64::from(flags.sizes().min().unwrap_or(1)))?;
        flags.shape = LoadShape {
            align_bytes,
            // fio's map of visited blocks never fills where offsets have another alignment.
            each_block_once: align_bytes.is_none() && self.is_mapped(rw)?,
            arrivals: self.arrivals()?,
            think: self.think()?,
            start_delay_ns: self.time("startdelay")?,
            latency_limit_ns: self.latency_limit(rw)?,
            rate_floors: self.rate_floors(rw)?,
            steady: self.steady()?,
            flow: self.flow()?,
            scheduling: self.scheduling()?,
            zone_stride: self.zone_stride(rw)?,
            ordinary_pages: self.text("mem").is_none_or(|kind| !kind.contains("huge")),
            ..std::mem::take(&mut flags.shape)
        };
        Ok(())
    }

    /// `latency_target`, `latency_window` and `latency_percentile`. In fio no request may be late
    /// by default.
    pub(super) fn latency_target(&self, flags: &mut WorkloadFlags) -> Result<(), JobFileError> {
        let latency_ns = self.short_time("latency_target")?;
        if latency_ns == 0 {
            return Ok(());
        }
        self.note(
            "a depth that narrowly misses latency_target, and the depth found, are measured up to \
             three times; fio decides from single windows",
        );
        let percent = self.parsed("latency_percentile", str::parse::<LatencyPercentile>)?;
        let window_ns = match self.short_time("latency_window")? {
            0 => WINDOW_NS_DEFAULT,
            ns => ns,
        };
        flags.latency_target = Some(Time(latency_ns));
        flags.latency_percentile = Some(percent.unwrap_or(LatencyPercentile(100.0)));
        flags.latency_window = Some(Time(window_ns));
        Ok(())
    }

    /// `flow`, `flow_id` and `flow_sleep`, which is in microseconds.
    fn flow(&self) -> Result<Option<FlowShare>, JobFileError> {
        let number = |name| Ok(self.number(name, u64::from(u32::MAX))?.unwrap_or(0) as u32);
        let share = FlowShare {
            number: number("flow_id")?,
            weight: number("flow")?,
            pause_ns: u64::from(number("flow_sleep")?) * 1000,
        };
        Ok((share.weight > 0).then_some(share))
    }

    fn arrivals(&self) -> Result<Arrivals, JobFileError> {
        let kinds = [("linear", Arrivals::Even), ("poisson", Arrivals::Poisson)];
        let arrivals = self.choice("rate_process", &kinds)?;
        let has_rate = self.setting("rate").or(self.setting("rate_iops")).is_some();
        match arrivals.unwrap_or(Arrivals::Even) {
            Arrivals::Poisson if !has_rate => {
                let why = "it needs a rate; add rate_iops, or remove it";
                Err(self.error("rate_process", why))
            }
            arrivals => Ok(arrivals),
        }
    }

    fn think(&self) -> Result<Option<ThinkTime>, JobFileError> {
        let pause_ns = self.short_time("thinktime")?;
        if pause_ns == 0 {
            return Ok(None);
        }
        if self.flag("rate_ignore_thinktime")? {
            return Err(self.error(
                "rate_ignore_thinktime",
                "requests that are due during a pause always start after it; remove the option",
            ));
        }
        let kinds = [
            ("complete", ThinkCount::Completed),
            ("issue", ThinkCount::Started),
        ];
        let counted = self.choice("thinktime_blocks_type", &kinds)?;
        let busy_ns = Some(self.time("thinktime_iotime")?).filter(|ns| *ns > 0);
        let pause_ops = match (self.setting("thinktime_blocks"), busy_ns) {
            (None, Some(_)) => 0,
            _ => self.bytes("thinktime_blocks", 1)?.max(1),
        };
        Ok(Some(ThinkTime {
            pause_ns,
            pause_ops,
            counted: counted.unwrap_or(ThinkCount::Completed),
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
        let cycle_ms = self.bytes("rate_cycle", RATE_CYCLE_MS)?.max(1);
        let bytes = self
            .value("rate_min")?
            .map(|given| (FloorUnit::Bytes, given));
        let ops = self.value("rate_iops_min")?;
        let ops = ops.map(|given| (FloorUnit::Ops, given));
        let Some((unit, (setting, value))) = bytes.or(ops) else {
            return Ok(Vec::new());
        };
        let mut floors = Vec::new();
        for kind in rw.chains.iter().filter_map(|chain| chain.last()) {
            let floor = match of_list(value, *kind) {
                "" => 0,
                own => self.size(setting, own)?,
            };
            if floor > 0 {
                floors.push(RateFloor {
                    of_writes: kind.changes_blocks(),
                    floor: floor as f64,
                    unit,
                    over_ns: cycle_ms.saturating_mul(1_000_000),
                });
            }
        }
        Ok(floors)
    }

    /// `steadystate` and its durations. Without `steadystate_duration` fio ignores it.
    fn steady(&self) -> Result<Option<SteadyEnd>, JobFileError> {
        let over_ns = self.time("steadystate_duration")?;
        if over_ns == 0 {
            return Ok(None);
        }
        let value = self.value("steadystate")?;
        let value = value.map_or(STEADY_DEFAULT, |(_, value)| value);
        let wrong = |why: &str| self.error("steadystate", why);
        let (word, limit) = value.split_once(':').ok_or_else(|| wrong(STEADY_FORM))?;
        let limit = limit.trim();
        let (word, test) = match word.trim().strip_suffix("_slope") {
            Some(word) => (word, SteadyTest::Slope),
            None => (word.trim(), SteadyTest::Deviation),
        };
        let figure = match word {
            "iops" => SteadyFigure::Ops,
            "bw" => SteadyFigure::Bytes,
            "lat" => SteadyFigure::Latency,
            _ => return Err(wrong(STEADY_FORM)),
        };
        let percent = limit.strip_suffix('%');
        let number = |text: &str| text.parse().map_err(|_| STEADY_FORM.to_owned());
        let limit: Result<f64, String> = match (percent, figure) {
            (Some(percent), _) => number(percent.trim()),
            (None, SteadyFigure::Ops) => number(limit),
            (None, SteadyFigure::Latency) => numbers::short_time_ns(limit).map(|ns| ns as f64),
            (None, SteadyFigure::Bytes) => numbers::bytes(limit, self.base).map(|n| n as f64),
        };
        let limit = limit.map_err(|why| wrong(&why))?;
        if !limit.is_finite() || limit < 0.0 {
            return Err(wrong(STEADY_FORM));
        }
        let end = SteadyEnd {
            figure,
            test,
            limit,
            is_percent: percent.is_some(),
            over_ns,
            settle_ns: self.time("steadystate_ramp_time")?,
            every_ns: match self.time("steadystate_check_interval")? {
                0 => SECOND,
                ns => ns,
            },
        };
        let why = "it is less than two check intervals";
        match end.samples() {
            2.. => Ok(Some(end)),
            _ => Err(self.error("steadystate_duration", why)),
        }
    }

    /// `zonemode=strided`. As in fio, `zonesize` alone means strided zones.
    fn zone_stride(&self, rw: Rw) -> Result<Option<ZoneStride>, JobFileError> {
        let zone_bytes = self.bytes("zonesize", 0)?;
        if self.text("zonemode") == Some("zbd") {
            return Err(self.error(
                "zonemode",
                "zoned disks (ZBC, ZNS) are not supported; use strided, or the real fio",
            ));
        }
        let modes = [("none", false), ("strided", true)];
        let mode = self.choice("zonemode", &modes)?;
        if !mode.unwrap_or(zone_bytes > 0) {
            return Ok(None);
        }
        let range_bytes = self.bytes("zonerange", zone_bytes)?;
        let is_plain = rw.order == Order::Sequential && !rw.is_mix();
        let wrong = if zone_bytes == 0 {
            "it needs a zonesize"
        } else if range_bytes != zone_bytes && range_bytes != 0 {
            "a zonerange other than zonesize is not supported; remove it"
        } else if !is_plain {
            "strided zones are supported only with read and write; for random requests use offset \
             and size"
        } else {
            let skip_bytes = self.bytes("zoneskip", 0)?;
            return Ok(Some(ZoneStride {
                zone_bytes,
                skip_bytes,
            }));
        };
        Err(self.error(mode.map_or("zonesize", |_| "zonemode"), wrong))
    }

    /// `cpus_allowed`, `cpumask`, `prio`, `prioclass` and `nice`.
    fn scheduling(&self) -> Result<Option<ThreadScheduling>, JobFileError> {
        let nice = self.parsed("nice", |text| match text.parse::<i8>() {
            Ok(nice @ -20..=19) => Ok(nice),
            _ => Err("write -20 to 19"),
        })?;
        let (class, level) = (self.number("prioclass", 3)?, self.number("prio", 7)?);
        let given_class = class.filter(|class| *class > 0);
        let io_priority = class.or(level).map(|_| IoPriority {
            class: given_class.map_or(BEST_EFFORT, |class| class as u8),
            level: level.unwrap_or(0) as u8,
        });
        let scheduling = ThreadScheduling {
            cpus: self.cpus()?,
            io_priority,
            nice: nice.unwrap_or(0),
        };
        Ok(Some(scheduling).filter(|given| *given != ThreadScheduling::default()))
    }

    fn cpus(&self) -> Result<Vec<u16>, JobFileError> {
        let list = self.parsed("cpus_allowed", |text| {
            cpu_list(text).ok_or("write numbers and ranges, such as 0-3,6")
        })?;
        let mask = self.number("cpumask", u64::from(u32::MAX))?;
        let of_mask = |mask: u64| (0..32).filter(|cpu| mask >> cpu & 1 == 1).collect();
        let Some(cpus) = list.or(mask.map(of_mask)) else {
            return Ok(Vec::new());
        };
        match self.value("cpus_allowed_policy")? {
            None | Some((_, "shared")) => Ok(cpus),
            Some((setting, _)) => Err(setting.error(
                "a processor per copy is not supported; write a section with cpus_allowed for each \
                 copy",
            )),
        }
    }
}

/// `0-3,6`
fn cpu_list(text: &str) -> Option<Vec<u16>> {
    let mut cpus = Vec::new();
    for part in text.split([',', ' ']).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once(['-', ':']).unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u16>().ok();
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last > CPU_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    (!cpus.is_empty()).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_numbers_and_ranges() {
        assert_eq!(cpu_list("0-2,6"), Some(vec![0, 1, 2, 6]));
        assert_eq!(cpu_list("3,1,3"), Some(vec![1, 3]));
        for text in ["", "a", "3-1", "1024", "-1"] {
            assert_eq!(cpu_list(text), None, "{text}");
        }
    }
}
