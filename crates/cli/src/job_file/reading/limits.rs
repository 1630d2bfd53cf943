//! Reads the amount of a job's work and what ends it: the part of its file, bytes, operations,
//! laps, times, latencies, rates.

use super::operations::number_part;
use super::reader::JobReader;
use super::values::GivenValue;
use crate::flags::SECOND_NS;
use crate::job_file::environment::PathKind;
use crate::job_file::file_names::all_paths;
use crate::job_file::jobs::FioJob;
use crate::job_file::translation::{Translated, Translation};
use crate::workload::{Latency, LatencyPercentile, Time};
use diskproof_compat::fio_values::{self as numbers, Amount, Base};
use diskproof_engine::pattern::fio::drawn_file_bytes;
use diskproof_model::op::OpKind;
use diskproof_model::plan::EngineKind;
use diskproof_model::rw::FIO_DIRECTIONS;
use diskproof_model::shape::{FloorUnit, RateFloor, SteadyEnd, SteadyFigure, SteadyTest};

/// The `rate_cycle` without the option, as in fio.
const RATE_CYCLE_MS: u64 = 1000;
/// The `steadystate` without the option, as in fio.
const STEADY_DEFAULT: &str = "iops_slope:0.01%";
/// The form of `steadystate`, as errors describe it.
const STEADY_FORM: &str = "write iops:, bw:, lat:, iops_slope:, bw_slope: or lat_slope: and a \
                           limit, such as iops:2%";
/// The window of a job without `latency_window`. fio then judges whenever it looks; a second still
/// shows a rate.
const WINDOW_NS_DEFAULT: u64 = SECOND_NS;
/// `rate_cycle` is in milliseconds.
const MILLISECOND_NS: u64 = 1_000_000;
/// In fio no request may be late without `latency_percentile`.
const PERCENTILE_DEFAULT: LatencyPercentile = LatencyPercentile(100.0);

/// `runtime`.
pub(super) fn set_time(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let time_ns = reader.time("runtime")?;
    if time_ns > 0 {
        job.flags.time = Some(Time(time_ns));
    }
    Ok(())
}

/// `ramp_time`.
pub(super) fn set_warmup(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.flags.warmup = Some(Time(reader.time("ramp_time")?));
    Ok(())
}

impl JobReader<'_> {
    /// True if the job searches for a depth. As in fio, a job with one request in flight has no
    /// other depth to search for.
    pub(super) fn searches_depth(&self) -> Translated<bool> {
        if self.short_time("latency_target")? == 0 {
            return Ok(false);
        }
        let engine = self.engine(self.written_rw()?.rw)?;
        Ok(!self.translation.is_as_fio() || self.depth(engine)? > 1)
    }

    fn latency_percentile(&self) -> Translated<LatencyPercentile> {
        let percent = self.parsed("latency_percentile", str::parse::<LatencyPercentile>)?;
        Ok(percent.unwrap_or(PERCENTILE_DEFAULT))
    }

    fn latency_window_ns(&self) -> Translated<u64> {
        Ok(match self.short_time("latency_window")? {
            0 => WINDOW_NS_DEFAULT,
            ns => ns,
        })
    }
}

/// `latency_target`, `latency_window` and `latency_percentile` of a job that searches for a depth.
pub(super) fn set_latency_target(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    if !reader.searches_depth()? {
        return Ok(());
    }
    if reader.flag("latency_run")? {
        return Err(reader.error(
            "latency_run",
            "fio's search goes on after the depth is found, which is not supported; run the job at \
             the depth that latency_target finds",
        ));
    }
    reader.note(
        "a depth that narrowly misses latency_target, and the depth found, are measured up to \
         three times; fio decides from single windows",
    );
    job.flags.latency_target = Some(Latency(reader.short_time("latency_target")?));
    job.flags.latency_percentile = Some(reader.latency_percentile()?);
    job.flags.latency_window = Some(Time(reader.latency_window_ns()?));
    Ok(())
}

/// `latency_target` of a job with one request in flight. As in fio, a longer latency ends it with
/// the error of `max_latency`; otherwise it ends after the window that confirms the depth. Where
/// some requests may be late, it goes on to its end; fio ends it once two windows met the target.
pub(super) fn set_latency_of_one_request(
    reader: &JobReader<'_>,
    job: &mut FioJob,
) -> Translated<()> {
    let latency_ns = reader.short_time("latency_target")?;
    if latency_ns == 0 || reader.searches_depth()? {
        return Ok(());
    }
    let window_ns = reader.latency_window_ns()?;
    if reader.latency_percentile()? != PERCENTILE_DEFAULT {
        return Ok(());
    }
    let ends = &mut job.flags.shape.ends;
    let limit_ns = ends.latency_limit_ns.unwrap_or(u64::MAX);
    ends.latency_limit_ns = Some(limit_ns.min(latency_ns));
    if !reader.flag("latency_run")? {
        let both_windows_ns = window_ns.saturating_mul(2);
        let time_ns = job.flags.time.map_or(u64::MAX, |time| time.0);
        job.flags.time = Some(Time(time_ns.min(both_windows_ns)));
    }
    Ok(())
}

/// `max_latency`.
pub(super) fn set_latency_limit(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let Some(given) = reader.value("max_latency")? else {
        return Ok(());
    };
    let text = given.only_part(given.text, job.rw())?;
    let limit_ns = numbers::short_time_ns(text).map_err(|why| given.error(why))?;
    if limit_ns > 0 {
        job.flags.shape.ends.latency_limit_ns = Some(limit_ns);
    }
    Ok(())
}

/// `rate_min` and `rate_iops_min`. With both, fio checks the former.
pub(super) fn set_rate_floors(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let cycle_ms = reader.bytes("rate_cycle", RATE_CYCLE_MS)?.max(1);
    let bytes = reader.value("rate_min")?;
    let ops = reader.value("rate_iops_min")?;
    let (given, unit) = if let Some(bytes) = bytes {
        (bytes, FloorUnit::Bytes)
    } else if let Some(ops) = ops {
        (ops, FloorUnit::Ops)
    } else {
        return Ok(());
    };
    reader.check_floors("rate_min", "rate")?;
    reader.check_floors("rate_iops_min", "rate_iops")?;
    for chain in job.rw().chains {
        let Some(kind) = chain.last() else {
            continue;
        };
        let floor = number_of_kind(given, *kind)?;
        if floor > 0 {
            job.flags.shape.ends.rate_floors.push(RateFloor {
                of_writes: kind.changes_blocks(),
                floor: floor as f64,
                unit,
                over_ns: cycle_ms.saturating_mul(MILLISECOND_NS),
            });
        }
    }
    Ok(())
}

impl JobReader<'_> {
    /// Refuses a floor above the rate of its direction, as fio does, also in directions that the
    /// job does not have.
    fn check_floors(&self, floor_name: &str, rate_name: &str) -> Translated<()> {
        let (Some(floors), Some(rates)) = (self.value(floor_name)?, self.value(rate_name)?) else {
            return Ok(());
        };
        for kind in FIO_DIRECTIONS {
            let rate = number_of_kind(rates, kind)?;
            if rate > 0 && rate < number_of_kind(floors, kind)? {
                return Err(floors.error(format!(
                    "it exceeds {rate_name}={}; use a smaller one",
                    rates.text
                )));
            }
        }
        Ok(())
    }
}

/// The number of a kind of operation in a list; 0 without one.
fn number_of_kind(given: GivenValue<'_>, kind: OpKind) -> Translated<u64> {
    match number_part(given.text, kind) {
        "" => Ok(0),
        part => given.size(part),
    }
}

/// `steadystate` and its durations. Without `steadystate_duration` fio ignores it.
pub(super) fn set_steady_end(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let over_ns = reader.time("steadystate_duration")?;
    if over_ns == 0 {
        return Ok(());
    }
    let parsed = match reader.value("steadystate")? {
        Some(given) => SteadyCriterion::parse(given.text, given.base),
        None => SteadyCriterion::parse(STEADY_DEFAULT, Base::Binary),
    };
    let criterion = match parsed {
        Ok(criterion) => criterion,
        Err(why) => return Err(reader.error("steadystate", why)),
    };
    let end = SteadyEnd {
        figure: criterion.figure,
        test: criterion.test,
        limit: criterion.limit,
        is_percent: criterion.is_percent,
        over_ns,
        settle_ns: reader.time("steadystate_ramp_time")?,
        every_ns: match reader.time("steadystate_check_interval")? {
            0 => SECOND_NS,
            ns => ns,
        },
    };
    if end.samples() == 0 {
        let why = "it is less than a check interval";
        return Err(reader.error("steadystate_duration", why));
    }
    job.flags.shape.ends.steady = Some(end);
    Ok(())
}

/// The criterion of `steadystate`, such as `iops_slope:0.3%`.
struct SteadyCriterion {
    figure: SteadyFigure,
    test: SteadyTest,
    limit: f64,
    is_percent: bool,
}

impl SteadyCriterion {
    fn parse(text: &str, base: Base) -> Result<Self, String> {
        let Some((word, limit)) = text.split_once(':') else {
            return Err(STEADY_FORM.to_owned());
        };
        let (word, test) = match word.trim().strip_suffix("_slope") {
            Some(word) => (word, SteadyTest::Slope),
            None => (word.trim(), SteadyTest::Deviation),
        };
        let figure = match word {
            "iops" => SteadyFigure::Ops,
            "bw" => SteadyFigure::Bytes,
            "lat" => SteadyFigure::Latency,
            _ => return Err(STEADY_FORM.to_owned()),
        };
        let percent = limit.trim().strip_suffix('%');
        let limit = match percent {
            Some(percent) => plain_number(percent.trim())?,
            None => steady_limit(figure, limit.trim(), base)?,
        };
        if !limit.is_finite() || limit < 0.0 {
            return Err(STEADY_FORM.to_owned());
        }
        Ok(Self {
            figure,
            test,
            limit,
            is_percent: percent.is_some(),
        })
    }
}

/// Reads a limit that is no percentage, in the unit of the figure.
fn steady_limit(figure: SteadyFigure, text: &str, base: Base) -> Result<f64, String> {
    match figure {
        SteadyFigure::Ops => plain_number(text),
        SteadyFigure::Latency => Ok(numbers::short_time_ns(text)? as f64),
        SteadyFigure::Bytes => Ok(numbers::bytes(text, base)? as f64),
    }
}

fn plain_number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| STEADY_FORM.to_owned())
}

/// `filesize`. As in fio, each name is a file of this size; the files of a job are one here.
pub(super) fn set_file_size(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let Some(given) = reader.value("filesize")? else {
        return Ok(());
    };
    if given.text.contains(['-', ':']) {
        return set_drawn_file_size(reader, given, job);
    }
    let each_bytes = reader.bytes("filesize", 0)?;
    set_each_file_size(given, each_bytes, job)
}

/// Gives each file of the job this size.
fn set_each_file_size(given: GivenValue<'_>, bytes: u64, job: &mut FioJob) -> Translated<()> {
    if bytes == 0 {
        return Err(given.error("a file has at least one byte"));
    }
    let names = match &job.file_set.filename {
        Some(filename) => filename.names.len() as u64,
        None => 1,
    };
    job.extent.file_bytes = Some(bytes.saturating_mul(job.file_set.count.max(names)));
    Ok(())
}

/// `filesize=1m-2m`: as in fio, the one file of a job has a random size in this range, which is the
/// same in each run.
fn set_drawn_file_size(
    reader: &JobReader<'_>,
    given: GivenValue<'_>,
    job: &mut FioJob,
) -> Translated<()> {
    let (low, high) = given.text.split_once(['-', ':']).unwrap_or_default();
    let range = given.size(low.trim())?..given.size(high.trim())?;
    // As in fio, nothing is drawn from a single size.
    if range.start == range.end {
        return set_each_file_size(given, range.start, job);
    }
    if range.is_empty() || range.start == 0 {
        return Err(given.error("write a smaller and a larger size, such as 1m-2m"));
    }
    let is_repeated = reader.optional_flag("randrepeat")? != Some(false);
    let has_one_file =
        job.file_set.count <= 1 && job.file_set.filename.is_none() && job.copies.count == 1;
    if !reader.translation.is_as_fio() || !has_one_file || !is_repeated {
        return Err(given.error(
            "random sizes are supported only with 'as fio', for one file of one copy, and without \
             randrepeat=0; for many small files use diskproof files DIR --count N --file-size \
             BYTES, for large ones a single filesize",
        ));
    }
    let mut draws = reader.fio_draws(job)?;
    draws.job = u32::try_from(reader.copies_before + 1).unwrap_or(u32::MAX);
    let bytes = drawn_file_bytes(draws, range, reader.smallest_size()?);
    if bytes == 0 {
        return Err(given.error("a block is larger than a file of a size in this range"));
    }
    job.extent.file_bytes = Some(bytes);
    Ok(())
}

/// `size` and `fill_device`. No size, and all of the file, are the size of the file.
pub(super) fn set_size(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let size = reader.amount("size")?;
    let extent = &mut job.extent;
    extent.fills = reader.flag("fill_device")?;
    if extent.fills {
        return Ok(());
    }
    extent.size = match size {
        None | Some(Amount::Bytes(0) | Amount::Percent(100)) => {
            extent.file_bytes.map(Amount::Bytes)
        }
        Some(part) => Some(part),
    };
    Ok(())
}

/// `offset`, `offset_increment` and `offset_align`.
pub(super) fn set_offset(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.extent.offset = reader.amount("offset")?.unwrap_or(Amount::ZERO);
    job.extent.increment = reader.amount("offset_increment")?.unwrap_or(Amount::ZERO);
    job.extent.align_bytes = reader.count("offset_align")?.map(|bytes| bytes.0);
    Ok(())
}

/// `file_append`: the job begins where its file ends. As in fio it has one lap then: a further one
/// would begin at the end of the file that the first one has made longer.
pub(super) fn set_append(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    if !reader.flag("file_append")? {
        return Ok(());
    }
    if !reader.translation.is_as_fio() {
        return Err(reader.error(
            "file_append",
            "only `diskproof as fio` appends to files; remove it",
        ));
    }
    // As in fio, whose message this is: a mapping is no longer than its file.
    if reader.named_engine()? == EngineKind::Mmap {
        let why = "can't append/extent with IO engine mmap";
        return Err(reader.error("file_append", why));
    }
    let Some(found_bytes) = end_of_files(job, reader.translation) else {
        return Err(reader.error(
            "file_append",
            "the files of the job have different sizes; write a section for each",
        ));
    };
    let is_set_otherwise = job.extent.io_size.is_some()
        || job.extent.is_time_based
        || (found_bytes > 0 && job.extent.file_bytes.is_some());
    if is_set_otherwise {
        return Err(reader.error(
            "file_append",
            "it is supported without io_size and time_based, and with filesize in new files only; \
             remove one of the two",
        ));
    }
    job.file_set.appends = true;
    job.extent.offset = Amount::Bytes(found_bytes);
    job.extent.increment = Amount::ZERO;
    job.extent.loops = 1;
    Ok(())
}

/// The bytes of each file of a job, 0 of new ones; `None` where they differ.
fn end_of_files(job: &FioJob, translation: &Translation<'_>) -> Option<u64> {
    let mut found = None;
    for path in all_paths(job, translation) {
        let bytes = match translation.path_kind(&path) {
            PathKind::File(bytes) => bytes,
            _ => 0,
        };
        if found.is_some_and(|other| other != bytes) {
            return None;
        }
        found = Some(bytes);
    }
    found
}

/// `io_size`.
pub(super) fn set_io_size(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.extent.io_size = match reader.amount("io_size")? {
        Some(Amount::ZERO) => None,
        given => given,
    };
    Ok(())
}

/// `loops` and `time_based`, which needs a time.
pub(super) fn set_laps(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    job.extent.loops = reader.bytes("loops", 1)?.max(1);
    job.extent.is_time_based = reader.flag("time_based")? && job.flags.time.is_some();
    Ok(())
}

/// `number_ios`. fio starts to count anew in each lap of a job that only time ends.
pub(super) fn set_ops(reader: &JobReader<'_>, job: &mut FioJob) -> Translated<()> {
    let ops = reader.bytes("number_ios", 0)?;
    if ops == 0 {
        return Ok(());
    }
    job.flags.shape.ends.ops_after_warmup = reader.time("ramp_time")? > 0;
    if !job.extent.is_time_based {
        let of_lap = match reader.backlog(job)? {
            Some(backlog) => writes_until(ops, backlog),
            None => ops,
        };
        job.extent.ops = Some(of_lap.saturating_mul(job.extent.loops));
    }
    Ok(())
}

impl JobReader<'_> {
    /// The writes after which fio reads as many back, in a job that does so while it writes; `None`
    /// for another job.
    fn backlog(&self, job: &FioJob) -> Translated<Option<u64>> {
        let backlog = self.bytes("verify_backlog", 0)?;
        let is_whole_batch = self.bytes("verify_backlog_batch", backlog)? == backlog;
        let is_read_back = self.translation.is_as_fio() && job.reads_back() && !job.rw().is_mix();
        if is_read_back && is_whole_batch && backlog > 0 {
            Ok(Some(backlog))
        } else {
            Ok(None)
        }
    }
}

/// The writes of a job that ends after so many requests, where the blocks of each `backlog` writes
/// are read back before the next one: as in fio, those reads count.
fn writes_until(ops: u64, backlog: u64) -> u64 {
    let turn = backlog.saturating_mul(2);
    ops / turn * backlog + (ops % turn).min(backlog)
}
