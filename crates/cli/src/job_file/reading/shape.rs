//! Reads the options that shape the load: spacing of starts, pauses, delays, limits, a steady end,
//! zones, scheduling, and the data of writes.

use super::JobReader;
use super::operations::of_list;
use crate::job_file::translation::Translated;
use crate::workload::{LatencyPercentile, Time, WorkloadFlags};
use diskproof_compat::fio_values::{self as numbers, Amount, Base};
use diskproof_model::rw::{Order, Rw};
use diskproof_model::shape::{
    Arrivals, BlockPattern, FloorUnit, FlowShare, IoPriority, LoadShape, PATTERN_BYTES_MAX,
    RateFloor, SteadyEnd, SteadyFigure, SteadyTest, ThinkCount, ThinkTime, ThreadScheduling,
    WriteContent, ZoneStride,
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

/// fio's default (`buffer_compress_chunk`).
const CHUNK_BYTES_DEFAULT: u64 = 512;
/// fio's default (`dedupe_working_set_percentage`).
const WORKING_SET_PERCENT: u64 = 5;
const PATTERN_FORM: &str = "write up to 512 bytes as hexadecimal digits (0xabcd), numbers (-12), \
                            text in double quotes, or several of them, and %o for the offset in \
                            verify_pattern; files are not supported";

impl JobReader<'_> {
    /// Completes the shape, which already has its sizes and its runs at random offsets.
    pub(super) fn shape(&self, rw: Rw, flags: &mut WorkloadFlags) -> Translated<()> {
        let align_bytes = self.alignment(rw, u64::from(flags.sizes().min().unwrap_or(1)))?;
        flags.shape = LoadShape {
            align_bytes,
            // fio's map of visited blocks never fills where offsets have another alignment.
            each_block_once: align_bytes.is_none()
                && flags.shape.in_order.is_empty()
                && self.is_mapped(rw)?,
            ops_after_warmup: self.time("ramp_time")? > 0 && self.bytes("number_ios", 0)? > 0,
            arrivals: self.arrivals()?,
            think: self.think()?,
            start_delay_ns: self.time("startdelay")?,
            latency_limit_ns: self.latency_limit(rw)?,
            rate_floors: self.rate_floors(rw)?,
            steady: self.steady()?,
            flow: self.flow()?,
            scheduling: self.scheduling()?,
            zone_stride: self.zone_stride(rw)?.or(flags.shape.zone_stride),
            ordinary_pages: self.text("mem").is_none_or(|kind| !kind.contains("huge")),
            ..std::mem::take(&mut flags.shape)
        };
        Ok(())
    }

    /// `latency_target`, `latency_window` and `latency_percentile`. In fio no request may be late
    /// by default.
    pub(super) fn latency_target(&self, flags: &mut WorkloadFlags) -> Translated<()> {
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
    fn flow(&self) -> Translated<Option<FlowShare>> {
        let number = |name| Ok(self.number(name, u64::from(u32::MAX))?.unwrap_or(0) as u32);
        let share = FlowShare {
            number: number("flow_id")?,
            weight: number("flow")?,
            pause_ns: u64::from(number("flow_sleep")?) * 1000,
        };
        Ok((share.weight > 0).then_some(share))
    }

    fn arrivals(&self) -> Translated<Arrivals> {
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

    fn think(&self) -> Translated<Option<ThinkTime>> {
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

    fn latency_limit(&self, rw: Rw) -> Translated<Option<u64>> {
        let Some((setting, value)) = self.value("max_latency")? else {
            return Ok(None);
        };
        let limit = self.of_direction(setting, value, rw)?;
        let limit_ns = numbers::short_time_ns(limit).map_err(|why| setting.error(why))?;
        Ok(Some(limit_ns).filter(|ns| *ns > 0))
    }

    /// `rate_min` and `rate_iops_min`. With both, fio checks the former.
    fn rate_floors(&self, rw: Rw) -> Translated<Vec<RateFloor>> {
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
    fn steady(&self) -> Translated<Option<SteadyEnd>> {
        let over_ns = self.time("steadystate_duration")?;
        if over_ns == 0 {
            return Ok(None);
        }
        let (base, value) = match self.value("steadystate")? {
            Some((setting, value)) => (self.base(setting), value),
            None => (Base::Binary, STEADY_DEFAULT),
        };
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
            (None, SteadyFigure::Bytes) => numbers::bytes(limit, base).map(|n| n as f64),
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
        match end.samples() {
            0 => Err(self.error("steadystate_duration", "it is less than a check interval")),
            _ => Ok(Some(end)),
        }
    }

    /// `zonemode=strided`. As in fio, `zonesize` alone means strided zones.
    pub(super) fn zone_stride(&self, rw: Rw) -> Translated<Option<ZoneStride>> {
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
    fn scheduling(&self) -> Translated<Option<ThreadScheduling>> {
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

    fn cpus(&self) -> Translated<Vec<u16>> {
        let list = self.parsed("cpus_allowed", |text| {
            cpu_list(text).ok_or("write numbers and ranges, such as 0-3,6")
        })?;
        let mask = self.number("cpumask", u64::from(u32::MAX))?;
        let of_mask = |mask: u64| (0..32).filter(|cpu| mask >> cpu & 1 == 1).collect();
        let Some(cpus) = list.or(mask.map(of_mask)) else {
            return Ok(Vec::new());
        };
        match self.value("cpus_allowed_policy")? {
            None | Some((_, "shared" | "split")) => Ok(cpus),
            Some((setting, _)) => Err(setting.error("write shared or split")),
        }
    }

    /// What a job writes; `None` for new random data each time. With verify, fio ignores all of it.
    pub(super) fn content(&self, flags: &WorkloadFlags) -> Translated<Option<WriteContent>> {
        let pattern = self.pattern()?;
        let compressed = self.percent("buffer_compress_percentage")?;
        let repeat_percent = self.percent("dedupe_percentage")?;
        let writes = flags.other_sizes.iter().map(|share| share.block_bytes);
        let smallest = u64::from(writes.min().or(flags.sizes().min()).unwrap_or(1));
        let is_filled = pattern.is_some() || self.flag("zero_buffers")?;
        let content = WriteContent {
            filler_percent: if !(compressed > 0 || repeat_percent > 0) && is_filled {
                100
            } else {
                compressed
            },
            chunk_bytes: match self.bytes("buffer_compress_chunk", CHUNK_BYTES_DEFAULT)? {
                0 => smallest,
                chunk => chunk.min(smallest),
            } as u32,
            filler: pattern.unwrap_or_default(),
            repeat_percent,
            ..self.repeated(smallest, repeat_percent)?
        };
        let scrambles = self.switch("scramble_buffers")?;
        if content.filler_percent == 100 && !content.filler.is_empty() && scrambles == Some(true) {
            return Err(self.error(
                "scramble_buffers",
                "changes the pattern of each write, which is not supported; remove it",
            ));
        }
        if content.filler_percent > 0 || repeat_percent > 0 {
            return Ok(Some(content));
        }
        // Without either, each buffer keeps its first data.
        let keeps_buffers = scrambles == Some(false) && !self.flag("refill_buffers")?;
        Ok(keeps_buffers.then_some(WriteContent {
            keeps_buffers,
            ..content
        }))
    }

    /// Which blocks are repeated.
    fn repeated(&self, smallest: u64, percent: u8) -> Translated<WriteContent> {
        let modes = [("repeat", false), ("working_set", true)];
        if self.choice("dedupe_mode", &modes)? != Some(true) || percent == 0 {
            return Ok(WriteContent::default());
        }
        let Some(Amount::Bytes(size)) = self.amount("size")? else {
            return Err(self.error(
                "dedupe_mode",
                "a working set is a percentage of the size; set size in bytes",
            ));
        };
        let share = self.bytes("dedupe_working_set_percentage", WORKING_SET_PERCENT)?;
        let blocks = (size / 100).saturating_mul(share.min(100)) / smallest.max(1);
        Ok(WriteContent {
            repeated_blocks: blocks.max(1),
            shares_repeated: self.flag("dedupe_global")?,
            ..WriteContent::default()
        })
    }

    fn pattern(&self) -> Translated<Option<Vec<u8>>> {
        self.parsed("buffer_pattern", |text| {
            let pattern = pattern_of(text).filter(|pattern| pattern.offset_places.is_empty());
            pattern.map(|pattern| pattern.bytes).ok_or(PATTERN_FORM)
        })
    }

    /// `verify_pattern`, which may contain the offset of the block (`%o`).
    pub(super) fn verify_pattern(&self) -> Translated<Option<BlockPattern>> {
        self.parsed("verify_pattern", |text| {
            pattern_of(text).ok_or(PATTERN_FORM)
        })
    }
}

/// A pattern of an allowed length.
fn pattern_of(text: &str) -> Option<BlockPattern> {
    pattern_bytes(text).filter(|pattern| (1..=PATTERN_BYTES_MAX).contains(&pattern.bytes.len()))
}

/// The bytes of a pattern: hexadecimal digits in their order, decimal numbers with the lowest byte
/// first and without leading zeros, text, and the place of the offset (`%o`).
fn pattern_bytes(text: &str) -> Option<BlockPattern> {
    let (mut bytes, mut rest) = (Vec::new(), text.trim());
    let mut offset_places = Vec::new();
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix("%o") {
            offset_places.push(bytes.len());
            bytes.extend([0; 8]);
            rest = behind;
        } else if let Some(quoted) = rest.strip_prefix('"') {
            let (inside, behind) = quoted.split_once('"')?;
            bytes.extend(inside.as_bytes());
            rest = behind;
        } else if let Some(digits) = rest.strip_prefix("0x").or(rest.strip_prefix("0X")) {
            let end = digits.find(|c: char| !c.is_ascii_hexdigit());
            let end = end.unwrap_or(digits.len());
            // The 0 of another number, as in 0xff0x14.
            let end = if digits[end..].starts_with(['x', 'X']) {
                end.checked_sub(1)?
            } else {
                end
            };
            let (hex, behind) = digits.split_at(end);
            let even = format!("{}{hex}", if hex.len() % 2 == 1 { "0" } else { "" });
            if even.is_empty() {
                return None;
            }
            for pair in even.as_bytes().chunks(2) {
                bytes.push(u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?);
            }
            rest = behind;
        } else {
            let sign = usize::from(rest.starts_with(['-', '+']));
            let digits = rest[sign..].find(|c: char| !c.is_ascii_digit());
            let mut end = digits.map_or(rest.len(), |digits| sign + digits);
            if rest[end..].starts_with(['x', 'X']) {
                end = end.checked_sub(1)?;
            }
            let number: i32 = rest[..end].parse().ok()?;
            let all = number.to_le_bytes();
            let last = all.iter().rposition(|byte| *byte != 0).unwrap_or(0);
            bytes.extend(&all[..=last]);
            rest = &rest[end..];
        }
    }
    Some(BlockPattern {
        bytes,
        offset_places,
    })
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

    #[test]
    fn patterns_have_the_bytes_of_fio() {
        for (text, bytes) in [
            ("0xabcdef01", Some(&[0xab, 0xcd, 0xef, 1][..])),
            ("0xabc", Some(&[0x0a, 0xbc])),
            ("\"hello\"-12", Some(b"hello\xf4\xff\xff\xff")),
            ("\"ab\"0xff0x1412", Some(b"ab\xff\x14\x12")),
            ("255", Some(&[255])),
            ("256", Some(&[0, 1])),
            ("0", Some(&[0])),
            ("12\"é\"", Some("\x0cé".as_bytes())),
            ("'file'", None),
            ("\"open", None),
            ("0x", None),
            ("5x", None),
            ("-", None),
            ("99999999999", None),
            ("%", None),
        ] {
            let pattern = pattern_bytes(text);
            let found = pattern.as_ref().map(|pattern| pattern.bytes.as_slice());
            assert_eq!(found, bytes, "{text}");
        }
        let pattern = pattern_bytes("\"ab\"%o0xff").unwrap();
        let mut block = [9; 14];
        pattern.fill(&mut block, 0x1000);
        // As fio 3.33 writes it.
        assert_eq!(block, *b"ab\0\x10\0\0\0\0\0\0\xffab\0");
        assert_eq!(pattern.difference(&block, 0x1000), None);
        assert!(pattern.difference(&block, 0x2000).is_some());
    }
}
