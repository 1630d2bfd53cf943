//! Writes fio's normal output: the lines of each entry, of each group, and of the disks.

use super::frame::{DiskFigures, GroupDirection, GroupTotal, RunFrame};
use super::latency_figures::{Percentile, figures, percentiles};
use super::stats::{DirectionStats, JobEntry, JobError, PriorityLatency, SteadyEntry};
use super::values::{Base, NumberForm};
use diskproof_model::fio_bins::{RangeShares, RateSamples, range_shares};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::DiskTotals;
use diskproof_model::shape::{SteadyFigure, SteadyTest};
use std::fmt::Write as _;

/// Prefixes of units, each a step above the one before.
const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

/// A number with at most so many digits, then its prefix and its unit: `95.5MiB`. Shortens and
/// rounds as fio does (num2str in its lib/num2str.c).
pub(super) fn shortened(number: u64, digits: usize, base: Base, unit: &str) -> String {
    let step = match base {
        Base::Decimal => 1000,
        Base::Binary => 1024,
    };
    let mut whole = number;
    // What the last division left, as a part of `step`; `None` while nothing was divided.
    let mut remainder = None;
    let mut prefix = 0;
    while digits_of(whole) > digits && prefix + 1 < PREFIXES.len() {
        remainder = Some(whole % step);
        whole /= step;
        prefix += 1;
    }
    let unit = format!("{}{unit}", prefix_text(PREFIXES[prefix], base));
    let Some(remainder) = remainder else {
        return format!("{whole}{unit}");
    };
    let decimals = digits.saturating_sub(digits_of(whole) + 1);
    if decimals == 0 {
        let rounded = whole + u64::from(remainder * 2 >= step);
        return format!("{rounded}{unit}");
    }
    let value = whole as f64 + remainder as f64 / step as f64;
    format!("{value:.decimals$}{unit}")
}

/// The prefix as fio spells it with this base: `Ki` and `Mi`, or `k` and `M`.
fn prefix_text(prefix: &str, base: Base) -> String {
    match (base, prefix) {
        (_, "") => String::new(),
        (Base::Decimal, _) => prefix.to_owned(),
        (Base::Binary, "k") => "Ki".to_owned(),
        (Base::Binary, _) => format!("{prefix}i"),
    }
}

/// The number of decimal digits.
fn digits_of(number: u64) -> usize {
    number.to_string().len()
}

/// A number of bytes in both spellings: `95.5MiB` and `100MB`, or the other way round with
/// `kb_base=1000`.
struct BytesText {
    first: String,
    second: String,
}

impl NumberForm {
    /// Bytes in units of both bases, first in the job's. `per` follows each unit: `/s` for a rate.
    fn bytes_text(self, bytes: u64, per: &str) -> BytesText {
        let unit = format!("B{per}");
        let other = match self.base {
            Base::Binary => Base::Decimal,
            Base::Decimal => Base::Binary,
        };
        BytesText {
            first: shortened(bytes, self.digits, self.base, &unit),
            second: shortened(bytes, self.digits, other, &unit),
        }
    }

    /// A number without a unit, such as a rate of operations.
    fn number_text(self, number: u64) -> String {
        shortened(number, self.digits, Base::Decimal, "")
    }
}

/// The lines of a job, or of its copies that report together.
pub(super) fn entry_text(entry: &JobEntry, frame: &RunFrame<'_>, pid: u32) -> String {
    let error = match &entry.error {
        None => "err= 0".to_owned(),
        Some(JobError { number, name }) => format!("err={number:2} ({name})"),
    };
    let mut text = format!(
        "{}: (groupid={}, jobs={}): {error}: pid={pid}: {}\n",
        entry.name, entry.group, entry.jobs, frame.time
    );
    if let Some(description) = &entry.description {
        let _ = writeln!(text, "  Description  : [{description}]");
    }
    for (direction, name) in frame.directions(entry).zip(direction_names(entry)) {
        text.push_str(&direction_text(name, &direction, entry));
    }
    if let Some(both) = &entry.both {
        let mixed = GroupDirection {
            stats: both,
            group_rate: both.rate(),
        };
        text.push_str(&direction_text("mixed", &mixed, entry));
    }
    let latencies = entry.directions.iter().map(|stats| &stats.latency);
    text.push_str(&latency_range_lines(&range_shares(latencies)));
    if entry.sync.count() > 0 {
        text.push_str("  fsync/fdatasync/sync_file_range:\n");
        text.push_str(&latency_line("sync", &entry.sync));
        text.push_str(&percentile_lines("sync", &entry.sync, &entry.percentiles));
    }
    text.push_str(&footer_text(entry));
    if let Some(steady) = &entry.steady {
        text.push_str(&steady_text(steady, entry.form));
    }
    text
}

fn steady_text(steady: &SteadyEntry, form: NumberForm) -> String {
    let outcome = &steady.outcome;
    let rate = form.bytes_text(steady.mean(&outcome.rate_samples), "/s");
    let latency = match steady.end.figure {
        SteadyFigure::Latency => {
            let mean = steady.mean(&outcome.latency_samples);
            format!(", lat={}nsec", form.number_text(mean))
        }
        SteadyFigure::Ops | SteadyFigure::Bytes => String::new(),
    };
    format!(
        "  steadystate  : attained={}, bw={} ({}), iops={}{latency}, {} {}={:.3}{}\n",
        if outcome.is_attained { "yes" } else { "no" },
        rate.first,
        rate.second,
        form.number_text(steady.mean(&outcome.iops_samples)),
        steady.figure(),
        match steady.end.test {
            SteadyTest::Deviation => "mean dev",
            SteadyTest::Slope => "slope",
        },
        outcome.criterion.unwrap_or(0.0),
        steady.unit()
    )
}

/// The names of an entry's directions, in their order.
pub(super) fn direction_names(entry: &JobEntry) -> [&'static str; 3] {
    let first = if entry.is_mixed { "mixed" } else { "read" };
    [first, "write", "trim"]
}

/// The lines of a direction; empty where it had no requests.
fn direction_text(name: &str, direction: &GroupDirection<'_>, entry: &JobEntry) -> String {
    let stats = direction.stats;
    if stats.count == 0 {
        return String::new();
    }
    let resets = match name {
        "write" => "; 0 zone resets",
        _ => "",
    };
    let rate = entry.form.bytes_text(stats.rate(), "/s");
    let mut text = format!(
        "  {name}: IOPS={}, BW={} ({})({}/{}msec){resets}\n",
        entry.form.number_text(stats.iops() as u64),
        rate.first,
        rate.second,
        entry.form.bytes_text(stats.bytes, "").first,
        stats.runtime_ms
    );
    let (clat, lat) = (entry.clat(stats), entry.lat(stats));
    for (label, latency) in [("clat", &clat), (" lat", &lat)] {
        if latency.count() > 0 {
            text.push_str(&latency_line(label, latency));
        }
    }
    let (kind, priorities) = entry.by_priority(stats);
    for latencies in priorities {
        let label = priority_label(kind, latencies);
        text.push_str(&latency_line(&label, &latencies.latency));
    }
    if entry.shows_clat {
        text.push_str(&percentile_lines("clat", &clat, &entry.percentiles));
    }
    if entry.shows_lat {
        text.push_str(&percentile_lines("lat", &lat, &entry.percentiles));
    }
    if entry.shows_clat || entry.shows_lat {
        for latencies in priorities {
            let share = latencies.latency.count() as f64 * 100.0 / stats.latency.count() as f64;
            let label = format!("{} ({share:.2}% of IOs)", priority_label(kind, latencies));
            text.push_str(&percentile_lines(
                &label,
                &latencies.latency,
                &entry.percentiles,
            ));
        }
    }
    text.push_str(&sampled_rates_text(
        stats,
        direction.group_rate,
        entry.form.base,
    ));
    text
}

fn priority_label(kind: &str, latencies: &PriorityLatency) -> String {
    format!(
        "{kind} prio {}/{}",
        latencies.priority.class, latencies.priority.level
    )
}

fn latency_line(label: &str, histogram: &LatencyHistogram) -> String {
    let scaled = figures(histogram).scaled();
    let figures = scaled.figures;
    format!(
        "    {label} ({}): min={}, max={}, avg={:5.2}, stdev={:5.2}\n",
        scaled.unit,
        shortened(figures.min, 6, Base::Decimal, ""),
        shortened(figures.max, 6, Base::Decimal, ""),
        figures.mean,
        figures.deviation
    )
}

fn percentile_lines(label: &str, histogram: &LatencyHistogram, percents: &[f64]) -> String {
    /// The columns of a line that percentiles may take, as in fio.
    const LINE_COLUMNS: usize = 73;
    /// The columns of a percentile besides its time: ` 99.00th=[],` and a space.
    const OTHER_COLUMNS: usize = 12;
    let values = percentiles(histogram, percents);
    let (Some(shortest), Some(longest)) = (values.first(), values.last()) else {
        return String::new();
    };
    // The unit follows from both ends (`calc_clat_percentiles` of fio's stat.c).
    let (unit, unit_ns) = match (shortest.ns, longest.ns) {
        (2_000_001.., 100_000_000..) => ("msec", 1_000_000),
        (2_001.., 100_000..) => ("usec", 1_000),
        _ => ("nsec", 1),
    };
    let width = digits_of(longest.ns / unit_ns).max(5);
    let mut lines = Vec::new();
    for values_of_line in values.chunks(LINE_COLUMNS / (OTHER_COLUMNS + width)) {
        let texts: Vec<String> = values_of_line
            .iter()
            .map(|value| percentile_text(value, unit_ns, width))
            .collect();
        lines.push(format!("     |{}", texts.join(",")));
    }
    format!("    {label} percentiles ({unit}):\n{}\n", lines.join(",\n"))
}

/// ` 99.00th=[  123]`, in units of so many nanoseconds and so many columns.
fn percentile_text(value: &Percentile, unit_ns: u64, width: usize) -> String {
    let time = value.ns.div_ceil(unit_ns);
    format!("{:6.2}th=[{time:width$}]", value.percent)
}

/// The rates of each half second. They are in KiB with either base, of which fio changes only the
/// name of the smaller unit, and what makes the larger one.
fn sampled_rates_text(stats: &DirectionStats, group_rate: u64, base: Base) -> String {
    let kib = &stats.kib_per_second;
    if kib.count == 0 {
        return String::new();
    }
    let share = kib.share_of(group_rate.max(1) as f64);
    let (small_unit, thousand) = match base {
        Base::Binary => ("KiB", 1024.0),
        Base::Decimal => ("kB", 1000.0),
    };
    let (unit, divisor) = if kib.mean > thousand * thousand {
        ("MiB", thousand)
    } else {
        (small_unit, 1.0)
    };
    format!(
        "   bw ({unit:>5}/s): {}   iops        : {}",
        rate_samples_text(kib, divisor, &format!(", per={share:3.2}%")),
        rate_samples_text(&stats.iops, 1.0, "")
    )
}

/// The figures of sampled rates, each divided by `divisor`.
fn rate_samples_text(samples: &RateSamples, divisor: f64, share: &str) -> String {
    format!(
        "min={:5.0}, max={:5.0}{share}, avg={:5.2}, stdev={:5.2}, samples={}\n",
        (samples.min / divisor).floor(),
        (samples.max / divisor).floor(),
        samples.mean / divisor,
        samples.deviation / divisor,
        samples.count
    )
}

/// The shares of latencies in fio's ranges; ranges without any are skipped.
fn latency_range_lines(shares: &RangeShares) -> String {
    /// Shares on one line, as fio's output has them.
    const PER_LINE: usize = 5;
    let mut text = String::new();
    let units = [
        ("nsec", &shares.ns),
        ("usec", &shares.us),
        ("msec", &shares.ms),
    ];
    for (unit, ranges) in units {
        let mut shown = Vec::new();
        for (label, share) in ranges {
            if *share > 0.0 {
                shown.push(format!("{label}={:3.2}%", share.max(0.01)));
            }
        }
        for line in shown.chunks(PER_LINE) {
            let _ = writeln!(text, "  lat ({unit})   : {}", line.join(", "));
        }
    }
    text
}

fn footer_text(entry: &JobEntry) -> String {
    // Constant: the requests of a call are not counted here.
    let one_by_one = "0=0.0%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%";
    let depths: Vec<String> = entry
        .depth_shares()
        .iter()
        .map(|(label, share)| format!("{label}={share:3.1}%"))
        .collect();
    let [read, write, trim] = &entry.directions;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "  cpu          : usr={:3.2}%, sys={:3.2}%, ctx=0, majf=0, minf=0",
        entry.user_percent, entry.system_percent
    );
    let _ = writeln!(text, "  IO depths    : {}", depths.join(", "));
    let _ = writeln!(text, "     submit    : {one_by_one}");
    let _ = writeln!(text, "     complete  : {one_by_one}");
    let _ = writeln!(
        text,
        "     issued rwts: total={},{},{},{} short={},{},0,0 dropped=0,0,0,0",
        read.count, write.count, trim.count, entry.syncs, read.short, write.short
    );
    if let Some(continued) = &entry.continued {
        let _ = writeln!(
            text,
            "     errors    : total={}, first_error={}/<{}>",
            continued.errors,
            continued.first_number(),
            continued.first_name()
        );
    }
    let searched = entry.searched_latency();
    let _ = writeln!(
        text,
        "     latency   : target={}, window={}, percentile={:.2}%, depth={}",
        searched.latency_ns, searched.window_us, searched.percent, entry.depth
    );
    text
}

/// The lines of a group; `entries` are its members, at least one.
pub(super) fn group_text(number: usize, entries: &[&JobEntry]) -> String {
    // As in fio, that of the last entry.
    let form = entries.last().map(|entry| entry.form).unwrap_or_default();
    let mut text = format!("\nRun status group {number} (all jobs):\n");
    let mut totals = Vec::new();
    let names = match entries.first() {
        Some(first) => direction_names(first),
        None => direction_names(&JobEntry::default()),
    };
    for (index, name) in names.into_iter().enumerate() {
        let members = entries.iter().map(|entry| &entry.directions[index]);
        totals.push((name, GroupTotal::sum(members)));
    }
    let mixed = entries.iter().filter_map(|entry| entry.both.as_ref());
    totals.push(("mixed", GroupTotal::sum(mixed)));
    for (name, total) in totals {
        let Some(total) = total else {
            continue;
        };
        let name = name.to_uppercase();
        let rate = form.bytes_text(total.rate(), "/s");
        let lowest_rate = form.bytes_text(total.rate_min, "/s");
        let highest_rate = form.bytes_text(total.rate_max, "/s");
        let bytes = form.bytes_text(total.bytes, "");
        let _ = writeln!(
            text,
            "{name:>7}: bw={} ({}), {}-{} ({}-{}), io={} ({}), run={}-{}msec",
            rate.first,
            rate.second,
            lowest_rate.first,
            highest_rate.first,
            lowest_rate.second,
            highest_rate.second,
            bytes.first,
            bytes.second,
            total.ms_min,
            total.ms_max
        );
    }
    text
}

/// The lines of the disks in the normal output; none without disks.
pub(super) fn disk_lines(disks: &[DiskTotals]) -> String {
    let mut text = String::new();
    if !disks.is_empty() {
        text.push_str("\nDisk stats (read/write):\n");
    }
    for disk in disks {
        let name = &disk.name;
        let figures = disk_text(&DiskFigures::of_disk(disk), "");
        text.push_str(&match DiskFigures::of_members(disk, disks) {
            None => format!("  {name}: {figures}\n"),
            Some(members) => format!("    {name}: {figures}, {}\n", disk_text(&members, "aggr")),
        });
    }
    text
}

/// The figures of a disk's line, each with this prefix before its name.
fn disk_text(figures: &DiskFigures, prefix: &str) -> String {
    let [
        reads,
        writes,
        read_merges,
        write_merges,
        read_ms,
        write_ms,
        queued_ms,
    ] = figures.counts;
    let busy_percent = figures.busy_percent;
    format!(
        "{prefix}ios={reads}/{writes}, {prefix}merge={read_merges}/{write_merges}, \
         {prefix}ticks={read_ms}/{write_ms}, {prefix}in_queue={queued_ms}, \
         {prefix}util={busy_percent:3.2}%"
    )
}
