//! Writes fio's JSON output, laid out as fio does it: keys in order, floats with six digits.
//! Programs read the keys by name, so each must be one of fio's.

use super::frame::{DiskFigures, EMULATES, RunFrame};
use super::job_options::fio_option;
use super::latency_figures::{figures, percentiles};
use super::normal::direction_names;
use super::stats::{DirectionStats, JobEntry, SteadyEntry};
use crate::jobs::JobOption;
use diskproof_model::fio_bins::{bins, range_shares};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::DiskTotals;
use diskproof_model::shape::{SteadyFigure, SteadyTest};

/// A value as text, without a line break at its end.
type Json = String;

/// An object with these pairs in their order.
fn object<K: AsRef<str>>(pairs: impl IntoIterator<Item = (K, Json)>) -> Json {
    let mut lines = Vec::new();
    for (key, value) in pairs {
        lines.push(format!("{} : {value}", quoted(key.as_ref())));
    }
    nested('{', lines, '}')
}

fn array(values: impl IntoIterator<Item = Json>) -> Json {
    nested('[', values.into_iter().collect(), ']')
}

/// Values between brackets, indented. Strings have no line breaks.
fn nested(open: char, values: Vec<Json>, close: char) -> Json {
    let lines = values.join(",\n").replace('\n', "\n  ");
    let indent = if values.is_empty() { "" } else { "  " };
    format!(
        "{open}\n{indent}{}\n{close}",
        lines.replace("\n  \n", "\n\n")
    )
}

/// A number with six digits; 0 for one that JSON has no word for.
fn float(value: f64) -> Json {
    let value = if value.is_finite() { value } else { 0.0 };
    format!("{value:.6}")
}

/// A string of JSON.
fn quoted(text: &str) -> Json {
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

/// The form of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonForm {
    /// The form `json`.
    Plain,
    /// The form `json+`: latencies have the counts of their bins.
    WithBins,
}

/// The whole document.
pub(super) fn document(frame: &RunFrame<'_>, form: JsonForm) -> String {
    let mut pairs = vec![
        ("fio version", quoted(EMULATES)),
        ("timestamp", (frame.unix_ns / 1_000_000_000).to_string()),
        ("timestamp_ms", (frame.unix_ns / 1_000_000).to_string()),
        ("time", quoted(&frame.time)),
    ];
    if !frame.global.is_empty() {
        pairs.push(("global options", options_object(frame.global)));
    }
    let mut jobs = Vec::new();
    for entry in frame.entries {
        jobs.push(job_object(entry, frame, form));
    }
    pairs.push(("jobs", array(jobs)));
    if !frame.disks.is_empty() {
        let disks = frame
            .disks
            .iter()
            .map(|disk| disk_object(disk, frame.disks));
        pairs.push(("disk_util", array(disks)));
    }
    object(pairs) + "\n"
}

/// Keys of a disk's figures: the counts in the order of [`DiskFigures`], then the utilisation.
const DISK_KEYS: [&str; 8] = [
    "read_ios",
    "write_ios",
    "read_merges",
    "write_merges",
    "read_ticks",
    "write_ticks",
    "in_queue",
    "util",
];
/// Keys of the means over the members of a volume. `aggr_write_merge` is fio's spelling.
const MEMBER_KEYS: [&str; 8] = [
    "aggr_read_ios",
    "aggr_write_ios",
    "aggr_read_merges",
    "aggr_write_merge",
    "aggr_read_ticks",
    "aggr_write_ticks",
    "aggr_in_queue",
    "aggr_util",
];

/// The object of a disk, with the means over its members if it is a volume.
fn disk_object(disk: &DiskTotals, disks: &[DiskTotals]) -> Json {
    let mut pairs = vec![("name", quoted(&disk.name))];
    add_figures(&mut pairs, DISK_KEYS, &DiskFigures::of_disk(disk));
    if let Some(members) = DiskFigures::of_members(disk, disks) {
        add_figures(&mut pairs, MEMBER_KEYS, &members);
    }
    object(pairs)
}

fn add_figures(pairs: &mut Vec<(&str, Json)>, keys: [&'static str; 8], figures: &DiskFigures) {
    for (index, count) in figures.counts.into_iter().enumerate() {
        pairs.push((keys[index], count.to_string()));
    }
    pairs.push((keys[7], float(figures.busy_percent)));
}

/// The object of options: as in fio, those with a value, under their first names. Of several values
/// of one option the last counts.
fn options_object(options: &[JobOption]) -> Json {
    let mut pairs: Vec<(&str, Json)> = Vec::new();
    for option in options {
        let Some(value) = option.value.as_deref() else {
            continue;
        };
        let key = match fio_option(&option.key) {
            Some(known) => known.name(),
            None => &option.key,
        };
        pairs.retain(|(other, _)| *other != key);
        pairs.push((key, quoted(value)));
    }
    object(pairs)
}

/// The shares of the numbers of requests that a call submits or completes: each has one, which fio
/// counts among those up to 4.
const ONE_AT_ONCE: [(&str, f64); 7] = [
    ("0", 0.0),
    ("4", 100.0),
    ("8", 0.0),
    ("16", 0.0),
    ("32", 0.0),
    ("64", 0.0),
    (">=64", 0.0),
];

/// The object of shares in percent, each under the label of its range.
fn shares_object(shares: &[(&str, f64)]) -> Json {
    object(shares.iter().map(|(label, share)| (label, float(*share))))
}

/// The object of an entry.
fn job_object(entry: &JobEntry, frame: &RunFrame<'_>, form: JsonForm) -> Json {
    let mut pairs = Vec::new();
    if entry.is_blank {
        pairs.push(("groupid", u32::MAX.to_string()));
    } else {
        pairs.push(("jobname", quoted(&entry.name)));
        pairs.push(("groupid", entry.group.to_string()));
    }
    pairs.extend([
        ("error", entry.error_number().to_string()),
        ("eta", 0.to_string()),
        ("elapsed", frame.elapsed_s.to_string()),
    ]);
    if !entry.options.is_empty() {
        pairs.push(("job options", options_object(&entry.options)));
    }
    pairs.extend(direction_pairs(entry, frame, form));
    pairs.extend(load_pairs(entry));
    if let Some(continued) = &entry.continued {
        pairs.push(("total_err", continued.errors.to_string()));
        pairs.push(("first_error", continued.first_number().to_string()));
    }
    // A job that did not run has no depth.
    if entry.depth > 0 {
        pairs.extend(latency_search_pairs(entry));
    }
    if let Some(description) = &entry.description {
        pairs.push(("desc", quoted(description)));
    }
    if let Some(found) = &entry.steady {
        pairs.push(("steadystate", steady_object(found)));
    }
    object(pairs)
}

/// The objects of the directions, of their syncs, and of their sum where the job asks for it.
fn direction_pairs(
    entry: &JobEntry,
    frame: &RunFrame<'_>,
    form: JsonForm,
) -> Vec<(&'static str, Json)> {
    let mut pairs = Vec::new();
    for (shown, name) in frame.directions(entry).zip(direction_names(entry)) {
        // Mixed reads have all others as well.
        if name == "mixed" || !entry.is_mixed {
            let direction = direction_object(shown.stats, shown.group_rate, entry, form);
            pairs.push((name, direction));
        }
    }
    if !entry.is_mixed {
        pairs.push(("sync", sync_object(&entry.sync, entry, form)));
    }
    if let Some(both) = &entry.both {
        let mixed = direction_object(both, both.rate(), entry, form);
        pairs.push(("mixed", mixed));
    }
    pairs
}

/// The time, the load of the processors, and the shares of depths and latencies. Context switches
/// and page faults are not counted.
fn load_pairs(entry: &JobEntry) -> [(&'static str, Json); 12] {
    let mut at_once = ONE_AT_ONCE;
    if entry.depth == 0 {
        at_once = ONE_AT_ONCE.map(|(label, _)| (label, 0.0));
    }
    let latencies = range_shares(entry.directions.iter().map(|stats| &stats.latency));
    [
        ("job_runtime", entry.runtime_ms.to_string()),
        ("usr_cpu", float(entry.user_percent)),
        ("sys_cpu", float(entry.system_percent)),
        ("ctx", 0.to_string()),
        ("majf", 0.to_string()),
        ("minf", 0.to_string()),
        ("iodepth_level", shares_object(&entry.depth_shares())),
        ("iodepth_submit", shares_object(&at_once)),
        ("iodepth_complete", shares_object(&at_once)),
        ("latency_ns", shares_object(&latencies.ns)),
        ("latency_us", shares_object(&latencies.us)),
        ("latency_ms", shares_object(&latencies.ms)),
    ]
}

/// The latency that the depth is searched for, or what fio prints without one.
fn latency_search_pairs(entry: &JobEntry) -> [(&'static str, Json); 4] {
    let searched = entry.searched_latency();
    [
        ("latency_depth", entry.depth.to_string()),
        ("latency_target", searched.latency_ns.to_string()),
        ("latency_percentile", float(searched.percent)),
        ("latency_window", searched.window_us.to_string()),
    ]
}

/// The object of `steadystate`: the condition, whether it was met, and the rates that decided it.
fn steady_object(found: &SteadyEntry) -> Json {
    let (end, outcome) = (&found.end, &found.outcome);
    let unit = found.unit();
    let criterion = outcome.criterion.unwrap_or(0.0);
    // fio shows the deviation and the slope without regard to the unit.
    let samples = match end.figure {
        SteadyFigure::Ops => &outcome.iops_samples,
        SteadyFigure::Bytes => &outcome.rate_samples,
        SteadyFigure::Latency => &outcome.latency_samples,
    };
    let absolute = if end.is_percent {
        criterion * found.mean(samples) as f64 / 100.0
    } else {
        criterion
    };
    let (test, deviation, slope) = match end.test {
        SteadyTest::Deviation => ("", absolute, 0.0),
        SteadyTest::Slope => ("_slope", 0.0, absolute),
    };
    let mut data = vec![
        ("bw_mean", found.mean(&outcome.rate_samples).to_string()),
        ("iops_mean", found.mean(&outcome.iops_samples).to_string()),
    ];
    if end.figure == SteadyFigure::Latency {
        let latencies = &outcome.latency_samples;
        data.push(("lat_mean", found.mean(latencies).to_string()));
        data.push(("lat_ns", sample_list(found, latencies)));
    }
    data.push(("iops", sample_list(found, &outcome.iops_samples)));
    data.push(("bw", sample_list(found, &outcome.rate_samples)));
    let limit = format!("{}{test}:{:.6}{unit}", found.figure(), end.limit);
    object([
        ("ss", quoted(&limit)),
        ("duration", (end.over_ns / 1_000_000_000).to_string()),
        ("attained", u8::from(outcome.is_attained).to_string()),
        ("criterion", quoted(&format!("{criterion:.6}{unit}"))),
        ("max_deviation", float(deviation)),
        ("slope", float(slope)),
        ("data", object(data)),
    ])
}

fn sample_list(found: &SteadyEntry, samples: &[u64]) -> Json {
    array(found.padded(samples).iter().map(u64::to_string))
}

/// The object of the syncs. Its count is that of fsync only, its latencies are those of all calls.
fn sync_object(histogram: &LatencyHistogram, entry: &JobEntry, form: JsonForm) -> Json {
    let list = (entry.shows_clat || entry.shows_lat).then_some(&entry.percentiles);
    object([
        ("total_ios", entry.syncs.to_string()),
        ("lat_ns", latency_object(histogram, list, form)),
    ])
}

/// The object of a direction. `group_rate` is that of the whole group, in bytes per second.
fn direction_object(
    stats: &DirectionStats,
    group_rate: u64,
    entry: &JobEntry,
    form: JsonForm,
) -> Json {
    let clat = entry.shows_clat.then_some(&entry.percentiles);
    let lat = entry.shows_lat.then_some(&entry.percentiles);
    let kib = stats.kib_per_second;
    let iops = stats.iops;
    let mut pairs = vec![
        ("io_bytes", stats.bytes.to_string()),
        ("io_kbytes", (stats.bytes >> 10).to_string()),
        ("bw_bytes", stats.rate().to_string()),
        ("bw", (stats.rate() >> 10).to_string()),
        ("iops", float(stats.iops())),
        ("runtime", stats.runtime_ms.to_string()),
        ("total_ios", stats.count.to_string()),
        ("short_ios", stats.short.to_string()),
        ("drop_ios", 0.to_string()),
        (
            "slat_ns",
            latency_object(&LatencyHistogram::new(), None, form),
        ),
        ("clat_ns", latency_object(&entry.clat(stats), clat, form)),
        ("lat_ns", latency_object(&entry.lat(stats), lat, form)),
    ];
    if let Some(priorities) = priority_list(stats, entry, form) {
        pairs.push(("prios", priorities));
    }
    pairs.extend([
        ("bw_min", without_fraction(kib.min)),
        ("bw_max", without_fraction(kib.max)),
        ("bw_agg", float(kib.share_of(group_rate.max(1) as f64))),
        ("bw_mean", float(kib.mean)),
        ("bw_dev", float(kib.deviation)),
        ("bw_samples", kib.count.to_string()),
        ("iops_min", without_fraction(iops.min)),
        ("iops_max", without_fraction(iops.max)),
        ("iops_mean", float(iops.mean)),
        ("iops_stddev", float(iops.deviation)),
        ("iops_samples", iops.count.to_string()),
    ]);
    object(pairs)
}

/// The list of latencies by priority; `None` where all requests have one.
fn priority_list(stats: &DirectionStats, entry: &JobEntry, form: JsonForm) -> Option<Json> {
    let list = (entry.shows_clat || entry.shows_lat).then_some(&entry.percentiles);
    let (name, priorities) = entry.by_priority(stats);
    if priorities.is_empty() {
        return None;
    }
    let mut objects = Vec::new();
    for summary in priorities {
        objects.push(object([
            ("prioclass".to_owned(), summary.priority.class.to_string()),
            ("prio".to_owned(), summary.priority.level.to_string()),
            (
                format!("{name}_ns"),
                latency_object(&summary.latency, list, form),
            ),
        ]));
    }
    Some(array(objects))
}

/// A number without its fraction.
fn without_fraction(value: f64) -> Json {
    (value as u64).to_string()
}

/// The object of latencies in nanoseconds. Those of `list` are its percentiles; `None`: it has
/// none.
fn latency_object(histogram: &LatencyHistogram, list: Option<&Vec<f64>>, form: JsonForm) -> Json {
    let summary = figures(histogram);
    let mut pairs = vec![
        ("min", summary.min.to_string()),
        ("max", summary.max.to_string()),
        ("mean", float(summary.mean)),
        ("stddev", float(summary.deviation)),
        ("N", histogram.count().to_string()),
    ];
    if let Some(list) = list
        && histogram.count() > 0
    {
        let mut values = Vec::new();
        for value in percentiles(histogram, list) {
            values.push((format!("{:.6}", value.percent), value.ns.to_string()));
        }
        pairs.push(("percentile", object(values)));
        if form == JsonForm::WithBins {
            let mut counts = Vec::new();
            for (ns, count) in bins(histogram) {
                counts.push((ns.to_string(), count.to_string()));
            }
            pairs.push(("bins", object(counts)));
        }
    }
    object(pairs)
}
