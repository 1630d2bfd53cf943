//! fio's JSON output, laid out as fio does it: keys in order, floats with six digits.

use super::frame::{EMULATES, RunFrame};
use super::job_options::fio_option;
use super::stats::{DirectionStats, JobEntry, SteadyEntry, figures, percentiles};
use crate::jobs::JobOption;
use diskproof_model::fio_bins::{bins, depth_shares, range_shares};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::shape::{SteadyFigure, SteadyTest};

/// A value.
#[derive(Debug, Clone, PartialEq)]
enum Json {
    Whole(u64),
    Float(f64),
    Text(String),
    Object(JsonObject),
    Array(Vec<Json>),
}

/// Keys and values in order.
type JsonObject = Vec<(String, Json)>;

impl From<u64> for Json {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<f64> for Json {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

/// An object of these pairs.
fn object<'a>(pairs: impl IntoIterator<Item = (&'a str, Json)>) -> Json {
    let owned = |(key, value): (&str, Json)| (key.to_owned(), value);
    Json::Object(pairs.into_iter().map(owned).collect())
}

impl Json {
    /// The text, without a line break at its end.
    fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, 0);
        out
    }

    fn write(&self, out: &mut String, depth: usize) {
        let inner = "  ".repeat(depth + 1);
        let outer = "  ".repeat(depth);
        match self {
            Self::Whole(value) => out.push_str(&value.to_string()),
            Self::Float(value) => {
                let value = if value.is_finite() { *value } else { 0.0 };
                out.push_str(&format!("{value:.6}"));
            }
            Self::Text(text) => out.push_str(&quoted(text)),
            Self::Object(pairs) => {
                out.push_str("{\n");
                for (index, (key, value)) in pairs.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ",\n" };
                    out.push_str(&format!("{comma}{inner}{} : ", quoted(key)));
                    value.write(out, depth + 1);
                }
                out.push_str(&format!("\n{outer}}}"));
            }
            Self::Array(values) => {
                out.push_str("[\n");
                for (index, value) in values.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { ",\n" });
                    out.push_str(&inner);
                    value.write(out, depth + 1);
                }
                out.push_str(&format!("\n{outer}]"));
            }
        }
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            letter if u32::from(letter) < 32 => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// The whole document. `has_bins` for the form json+.
pub(super) fn document(frame: &RunFrame<'_>, entries: &[JobEntry], has_bins: bool) -> String {
    let mut pairs: JsonObject = Vec::new();
    let mut add = |key: &str, value: Json| pairs.push((key.to_owned(), value));
    add("fio version", EMULATES.into());
    add("timestamp", (frame.unix_ns / 1_000_000_000).into());
    add("timestamp_ms", (frame.unix_ns / 1_000_000).into());
    add("time", frame.time.as_str().into());
    if !frame.global.is_empty() {
        add("global options", options(frame.global, None));
    }
    let jobs = entries.iter().map(|entry| job(entry, frame, has_bins));
    add("jobs", Json::Array(jobs.collect()));
    let disks = frame.disks.iter().map(|disk| {
        let mut pairs: Vec<(&str, Json)> = vec![
            ("name", disk.name.as_str().into()),
            ("read_ios", disk.read_ops.into()),
            ("write_ios", disk.write_ops.into()),
        ];
        if let Some(([_, _, times @ ..], busy)) = disk.figures() {
            let names = [
                "read_merges",
                "write_merges",
                "read_ticks",
                "write_ticks",
                "in_queue",
            ];
            pairs.extend(names.into_iter().zip(times.map(Json::from)));
            pairs.push(("util", busy.into()));
        }
        object(pairs)
    });
    add("disk_util", Json::Array(disks.collect()));
    Json::Object(pairs).text() + "\n"
}

fn options(options: &[JobOption], name: Option<&str>) -> Json {
    let mut pairs: JsonObject = Vec::new();
    if let Some(name) = name {
        pairs.push(("name".to_owned(), name.into()));
    }
    // As in fio, without options that have no value, and under their first names.
    for option in options {
        let Some(value) = option.value.as_deref() else {
            continue;
        };
        let key = fio_option(&option.key).map_or(option.key.as_str(), |known| known.names[0]);
        pairs.retain(|(other, _)| other != key);
        pairs.push((key.to_owned(), value.into()));
    }
    Json::Object(pairs)
}

fn job(entry: &JobEntry, frame: &RunFrame<'_>, has_bins: bool) -> Json {
    let shares = range_shares(entry.directions.iter().map(|stats| &stats.latency));
    let ranges = |ranges: &[(&str, f64)]| {
        object(
            ranges
                .iter()
                .map(|(label, share)| (*label, (*share).into())),
        )
    };
    let depths = depth_shares(entry.in_flight);
    let levels = ["0", "4", "8", "16", "32", "64", ">=64"];
    let one = levels.map(|level| (level, if level == "4" { 100.0 } else { 0.0 }));
    let (latency_ns, window_us, percent) = entry.searched_for();
    let error = entry.error.as_ref().map_or(0, |(number, _)| *number as u64);
    let directions = frame.directions(entry).zip(["read", "write", "trim"]);
    let directions = directions
        .map(|((stats, all_bytes), name)| (name, direction(stats, all_bytes, entry, has_bins)));
    let head = [
        ("jobname", entry.name.as_str().into()),
        ("groupid", (entry.group as u64).into()),
        ("error", error.into()),
        ("eta", 0.into()),
        ("elapsed", frame.elapsed_s.into()),
        ("job options", options(&entry.options, Some(&entry.name))),
    ];
    let all = entry.both.iter();
    let all = all.map(|both| ("mixed", direction(both, both.rate(), entry, has_bins)));
    let all = std::iter::once(("sync", sync(&entry.sync, entry, has_bins))).chain(all);
    let rest = [
        ("job_runtime", entry.runtime_ms.into()),
        ("usr_cpu", entry.user_percent.into()),
        ("sys_cpu", entry.system_percent.into()),
        ("ctx", 0.into()),
        ("majf", 0.into()),
        ("minf", 0.into()),
        ("iodepth_level", ranges(&depths)),
        ("iodepth_submit", ranges(&one)),
        ("iodepth_complete", ranges(&one)),
        ("latency_ns", ranges(&shares.ns)),
        ("latency_us", ranges(&shares.us)),
        ("latency_ms", ranges(&shares.ms)),
        ("latency_depth", u64::from(entry.depth).into()),
        ("latency_target", latency_ns.into()),
        ("latency_percentile", percent.into()),
        ("latency_window", window_us.into()),
    ];
    let steady = entry
        .steady
        .iter()
        .map(|found| ("steadystate", steady(found)));
    let pairs = head.into_iter().chain(directions).chain(all);
    let pairs = pairs.chain(rest).chain(steady);
    object(pairs.filter_map(|pair| {
        if entry.is_mixed {
            as_mixed(pair)
        } else {
            Some(pair)
        }
    }))
}

fn steady(found: &SteadyEntry) -> Json {
    let (end, outcome) = (&found.end, &found.outcome);
    let slope = match end.test {
        SteadyTest::Deviation => "",
        SteadyTest::Slope => "_slope",
    };
    let unit = found.unit();
    let criterion = outcome.criterion.unwrap_or(0.0);
    // fio shows the deviation and the slope without regard to the unit.
    let samples = match end.figure {
        SteadyFigure::Ops => &outcome.iops_samples,
        SteadyFigure::Bytes => &outcome.rate_samples,
        SteadyFigure::Latency => &outcome.latency_samples,
    };
    let whole = if end.is_percent {
        criterion * found.mean(samples) as f64 / 100.0
    } else {
        criterion
    };
    let (deviation, of_slope) = match end.test {
        SteadyTest::Deviation => (whole, 0.0),
        SteadyTest::Slope => (0.0, whole),
    };
    let list =
        |samples: &[u64]| Json::Array(found.padded(samples).into_iter().map(Json::from).collect());
    let mut data = vec![
        ("bw_mean", found.mean(&outcome.rate_samples).into()),
        ("iops_mean", found.mean(&outcome.iops_samples).into()),
    ];
    if end.figure == SteadyFigure::Latency {
        data.push(("lat_mean", found.mean(&outcome.latency_samples).into()));
        data.push(("lat_ns", list(&outcome.latency_samples)));
    }
    data.push(("iops", list(&outcome.iops_samples)));
    data.push(("bw", list(&outcome.rate_samples)));
    let limit = format!("{}{slope}:{:.6}{unit}", found.figure(), end.limit);
    object([
        ("ss", limit.as_str().into()),
        ("duration", (end.over_ns / 1_000_000_000).into()),
        ("attained", u64::from(outcome.is_attained).into()),
        ("criterion", format!("{criterion:.6}{unit}").as_str().into()),
        ("max_deviation", deviation.into()),
        ("slope", of_slope.into()),
        ("data", object(data)),
    ])
}

/// Reads and writes in one are called mixed.
fn as_mixed((key, value): (&str, Json)) -> Option<(&str, Json)> {
    match key {
        "read" => Some(("mixed", value)),
        "write" | "trim" | "sync" => None,
        _ => Some((key, value)),
    }
}

fn sync(histogram: &LatencyHistogram, entry: &JobEntry, has_bins: bool) -> Json {
    let latency = latency(histogram, Some(&entry.percentiles), has_bins);
    object([("total_ios", histogram.count().into()), ("lat_ns", latency)])
}

fn direction(stats: &DirectionStats, all_bytes: u64, entry: &JobEntry, has_bins: bool) -> Json {
    let list = Some(&entry.percentiles);
    let clat = list.filter(|_| entry.shows_clat);
    let lat = list.filter(|_| entry.shows_lat);
    let (kib, iops) = (stats.kib_per_second, stats.iops);
    let whole = |value: f64| Json::from(value as u64);
    object([
        ("io_bytes", stats.bytes.into()),
        ("io_kbytes", (stats.bytes >> 10).into()),
        ("bw_bytes", stats.rate().into()),
        ("bw", (stats.rate() >> 10).into()),
        ("iops", stats.iops().into()),
        ("runtime", stats.runtime_ms.into()),
        ("total_ios", stats.count.into()),
        ("short_ios", stats.short.into()),
        ("drop_ios", 0.into()),
        ("slat_ns", latency(&LatencyHistogram::new(), None, false)),
        ("clat_ns", latency(&stats.latency, clat, has_bins)),
        ("lat_ns", latency(&stats.latency, lat, has_bins)),
        ("bw_min", whole(kib.min)),
        ("bw_max", whole(kib.max)),
        ("bw_agg", kib.share_of(all_bytes.max(1) as f64).into()),
        ("bw_mean", kib.mean.into()),
        ("bw_dev", kib.deviation.into()),
        ("bw_samples", kib.count.into()),
        ("iops_min", whole(iops.min)),
        ("iops_max", whole(iops.max)),
        ("iops_mean", iops.mean.into()),
        ("iops_stddev", iops.deviation.into()),
        ("iops_samples", iops.count.into()),
    ])
}

fn latency(histogram: &LatencyHistogram, list: Option<&Vec<f64>>, has_bins: bool) -> Json {
    let own = figures(histogram);
    let mut pairs = vec![
        ("min", own.min.into()),
        ("max", own.max.into()),
        ("mean", own.mean.into()),
        ("stddev", own.deviation.into()),
        ("N", histogram.count().into()),
    ];
    if let Some(list) = list.filter(|_| histogram.count() > 0) {
        let values = percentiles(histogram, list).into_iter();
        let values = values.map(|(percent, ns)| (format!("{percent:.6}"), ns.into()));
        pairs.push(("percentile", Json::Object(values.collect())));
        if has_bins {
            let bins = bins(histogram).into_iter();
            let bins = bins.map(|(ns, n)| (ns.to_string(), n.into()));
            pairs.push(("bins", Json::Object(bins.collect())));
        }
    }
    object(pairs)
}
