//! Single requests on a terminal: a line for each as it ends, and what they add up to.

use super::grid::Columns;
use super::sparkline::{LogScale, bar};
use crate::describe::ping::{errors_text, mean_text, percentiles_text, shown_ops, title_text};
use crate::labels;
use crate::page::Page;
use crate::style::Style;
use crate::text::{clean, columns, list, shortened};
use diskproof_model::block::{Align, Tone};
use diskproof_model::digits::figure_text;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::OpKind;
use diskproof_model::ping::{IdlePoint, IgnoredBecause, PingFigures, SingleRequest};
use diskproof_model::record::Estimate;
use diskproof_model::row::{OpRow, Row};
use diskproof_model::target::{TargetIdentity, TargetKind};
use diskproof_model::units::{
    counted, format_bytes, format_duration, format_latency, format_rate, format_throughput,
};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A request that took less than this share of the mean so far is fast, as in ioping.
const FAST_SHARE: f64 = 0.5;
/// A request that took more than this multiple of the mean so far is slow, as in ioping.
const SLOW_FACTOR: f64 = 2.0;
/// The scale of the bars, in nanoseconds: from 1 µs to 10 s.
const BAR_SCALE: LogScale = LogScale {
    low: 1e3,
    high: 1e10,
};
/// Latencies in nanoseconds that have a label above the bars.
const BAR_LABELS: [(f64, &str); 3] = [(1e3, "1 µs"), (1e6, "1 ms"), (1e9, "1 s")];
/// The columns of the longest bar. Where fewer are free, lines have no bars.
const BAR_COLUMNS: std::ops::RangeInclusive<usize> = 12..=56;
/// The name of a target is cut to no fewer columns than this, even if lines then exceed the page.
const NAME_COLUMNS_MIN: usize = 8;
/// Columns of the number of a request: `#12345`.
const NUMBER_COLUMNS: usize = 6;
/// Columns of a latency: `12.3 ms`.
const TIME_COLUMNS: usize = 7;
/// Columns of a remark: `warm-up`.
const REMARK_COLUMNS: usize = 7;
/// Columns of a line that are neither size nor name nor one of the above: the arrow of three
/// characters, a colon, and three blanks.
const FIXED_COLUMNS: usize = 7;

/// Lays out the lines of a ping: the names as wide as the longest, the bars as wide as fits.
#[derive(Debug, Clone)]
pub struct RequestLines {
    style: Style,
    size: String,
    /// For each target, its name and a colon, as wide as the longest.
    names: Vec<String>,
    /// Columns before the bars.
    bar_start: usize,
    bar_columns: usize,
}

impl RequestLines {
    /// Lays out lines for requests of this many bytes to these targets.
    pub fn new(block_bytes: u32, targets: &[TargetIdentity], style: Style) -> Self {
        let size = format_bytes(u64::from(block_bytes));
        // A blank follows each of the three fields.
        let fields = NUMBER_COLUMNS + 1 + TIME_COLUMNS + 1 + REMARK_COLUMNS + 1;
        let fixed = columns(&size) + FIXED_COLUMNS + fields;
        let room = style.width.saturating_sub(fixed);
        let names: Vec<TargetName> = targets.iter().map(TargetName::new).collect();
        let longest = names.iter().map(TargetName::columns).max().unwrap_or(0);
        let bars_min = *BAR_COLUMNS.start();
        let name_columns = longest.min(room.saturating_sub(bars_min).max(NAME_COLUMNS_MIN));
        let mut bar_columns = room.saturating_sub(name_columns).min(*BAR_COLUMNS.end());
        if bar_columns < bars_min {
            bar_columns = 0;
        }
        Self {
            style,
            size,
            names: names.iter().map(|name| name.padded(name_columns)).collect(),
            bar_start: fixed + name_columns,
            bar_columns,
        }
    }

    /// Writes the scale above the bars.
    pub fn write_scale(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.bar_columns == 0 {
            return Ok(());
        }
        let mut line = String::new();
        for (ns, label) in BAR_LABELS {
            let place = (BAR_SCALE.share(ns) * self.bar_columns as f64).round() as usize;
            // The last label ends with the bars.
            let last_start = self.bar_columns.saturating_sub(columns(label));
            let start = place.min(last_start);
            if line.is_empty() || start > columns(&line) {
                line.push_str(&" ".repeat(start - columns(&line)));
                line.push_str(label);
            }
        }
        let page = &mut Page::new(&self.style, out);
        let indent = " ".repeat(self.bar_start);
        page.unbroken(Tone::Dim.span(format!("{indent}{line}")));
        page.finish()
    }

    /// Writes the line of a request to the target with this index; `mean_ns` is the mean of those
    /// before it on its target.
    pub fn write(
        &self,
        target: usize,
        request: &SingleRequest,
        mean_ns: Option<f64>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let arrow = match request.op {
            OpKind::Read => "<<<",
            _ => ">>>",
        };
        let name = match self.names.get(target) {
            Some(name) => name,
            None => ":",
        };
        let number = format!("#{}", request.number);
        let time = format_latency(request.latency_ns);
        let remark = remark_on(request, mean_ns);
        let size = &self.size;
        let start = format!("{size} {arrow} {name} {number:>NUMBER_COLUMNS$} ");
        let pad = " ".repeat(TIME_COLUMNS.saturating_sub(columns(&time)));
        let mut spans = vec![
            Tone::Plain.span(start),
            remark.tone.span(format!("{pad}{time} ")),
            remark
                .tone
                .span(format!("{:<REMARK_COLUMNS$} ", remark.text)),
        ];
        if request.error.is_none() {
            let share = BAR_SCALE.share(request.latency_ns as f64);
            spans.push(remark.tone.span(bar(share, self.bar_columns)));
        }
        let page = &mut Page::new(&self.style, out);
        page.spans(&spans);
        page.finish()
    }
}

/// A remark on a request; empty where nothing stands out.
struct Remark<'a> {
    text: &'a str,
    tone: Tone,
}

/// The mean of the requests before it decides whether a request is slow or fast.
fn remark_on(request: &SingleRequest, mean_ns: Option<f64>) -> Remark<'_> {
    if let Some(error) = &request.error {
        return Remark {
            text: error,
            tone: Tone::Error,
        };
    }
    if let Some(why) = request.ignored {
        let text = match why {
            IgnoredBecause::Warmup => "warm-up",
            IgnoredBecause::Interrupted => "stopped",
            IgnoredBecause::Late => "late",
        };
        return Remark {
            text,
            tone: Tone::Dim,
        };
    }
    let latency_ns = request.latency_ns as f64;
    let (text, tone) = match mean_ns {
        Some(mean_ns) if latency_ns > SLOW_FACTOR * mean_ns => ("slow", Tone::Warning),
        Some(mean_ns) if latency_ns < FAST_SHARE * mean_ns => ("fast", Tone::Plain),
        _ => ("", Tone::Plain),
    };
    Remark { text, tone }
}

/// The path of a target, and what is below it: `/data` and ` (ext4 sda 252 GiB)`.
struct TargetName {
    path: String,
    facts: String,
}

impl TargetName {
    fn new(target: &TargetIdentity) -> Self {
        let disk = target.disks().next();
        let size = match disk {
            Some(disk) if disk.size_bytes > 0 => disk.size_bytes,
            _ => target.size_bytes,
        };
        let mut facts = Vec::new();
        match &target.filesystem {
            Some(filesystem) if target.kind != TargetKind::BlockDevice => {
                facts.push(filesystem.kind.as_str());
                if let Some(disk) = disk {
                    facts.push(disk.name.as_str());
                }
            }
            _ => facts.push(labels::target_kind(target.kind)),
        }
        let facts_text = format!(" ({} {})", facts.join(" "), format_bytes(size));
        Self {
            path: clean(&target.path),
            facts: clean(&facts_text),
        }
    }

    fn whole(&self) -> String {
        format!("{}{}", self.path, self.facts)
    }

    fn columns(&self) -> usize {
        columns(&self.whole())
    }

    /// The name in at most this many columns. Of a long path the end is kept, which distinguishes
    /// targets best.
    fn within(&self, most: usize) -> String {
        let room = most.saturating_sub(columns(&self.facts));
        if room < NAME_COLUMNS_MIN || self.columns() <= most {
            return shortened(&self.whole(), most);
        }
        for (start, _) in self.path.char_indices() {
            let end = &self.path[start..];
            if columns(end) < room {
                return format!("…{end}{}", self.facts);
            }
        }
        format!("…{}", self.facts)
    }

    /// The name and a colon, followed by blanks up to so many columns.
    fn padded(&self, name_columns: usize) -> String {
        let name = self.within(name_columns);
        let pad = " ".repeat(name_columns.saturating_sub(columns(&name)));
        format!("{name}:{pad}")
    }
}

/// Writes the figures of the requests to a target: for each operation its mean, percentiles, load
/// and histogram, then the requests that do not count.
pub(super) fn write_ping(page: &mut Page<'_>, measurement: &Row, ping: &PingFigures) {
    for (kind, op) in shown_ops(measurement) {
        page.text(Tone::Bold.span(title_text(measurement, kind, op)));
        let failures = errors_text(measurement, kind, op);
        if !failures.is_empty() {
            write_indented(page, Tone::Error, &format!("failed: {failures}"));
        }
        if let Some(latency) = ping.latency.get(&kind)
            && op.data.count > 0
        {
            write_indented(page, Tone::Plain, &mean_text(op.data.count, latency));
            write_indented(page, Tone::Plain, &percentiles_text(&op.figures.latency));
            let alone = match ping.awake() {
                Some(point) => &point.mean,
                None => &latency.mean,
            };
            write_indented(page, Tone::Plain, &load_text(measurement, op, alone));
            write_histogram(page, &op.data.latency);
        }
    }
    let notes = ignored_notes(&measurement.data.requests);
    if !notes.is_empty() {
        page.text(Tone::Dim.span(list(notes)));
    }
    write_after_idle(page, ping);
}

fn write_indented(page: &mut Page<'_>, tone: Tone, text: &str) {
    page.entry(Tone::Plain.span(""), INDENT, tone.span(text));
}

/// Says how much load the requests were, and how much they would be without pauses, if each took
/// the time `alone`.
fn load_text(measurement: &Row, op: OpRow<'_>, alone: &Estimate) -> String {
    let seconds = measurement.data.wall_ns.max(1) as f64 / 1e9;
    let block_bytes = f64::from(measurement.data.workload.block_bytes);
    let width = alone.relative_half_width();
    let rate = 1e9 / alone.value.max(1.0);
    format!(
        "load {}/s, {}, {} in all; without pauses {}, {}",
        format_rate(op.data.count as f64 / seconds),
        format_throughput(op.data.bytes as f64 / seconds),
        format_bytes(op.data.bytes),
        rate_text(rate, width, "1/s"),
        rate_text(rate * block_bytes, width, "B/s"),
    )
}

fn rate_text(rate: f64, relative_width: Option<f64>, unit: &str) -> String {
    let half_width = relative_width.map(|width| width * rate);
    figure_text(rate, half_width, unit)
}

/// Counts the requests that do not count, by the reason.
fn ignored_notes(requests: &[SingleRequest]) -> Vec<String> {
    let mut notes = Vec::new();
    for (why, noun) in [
        (IgnoredBecause::Warmup, "warm-up request"),
        (IgnoredBecause::Interrupted, "interrupted request"),
        (IgnoredBecause::Late, "late request"),
    ] {
        let count = requests
            .iter()
            .filter(|request| request.ignored == Some(why))
            .count();
        if count > 0 {
            notes.push(format!("{} not counted", counted(count as u64, noun)));
        }
    }
    notes
}

/// Columns before the figures of an operation.
const INDENT: usize = 2;
/// The histogram has as many lines for each factor of ten of the latency.
const BINS_PER_DECADE: f64 = 10.0;
/// Bars of tables are at most this long: longer ones are hard to compare at a glance.
const TABLE_BAR_COLUMNS_MAX: usize = 40;

/// Writes the latencies by size, a line for each tenth of a decade that holds any.
fn write_histogram(page: &mut Page<'_>, histogram: &LatencyHistogram) {
    let counts = counts_by_bin(histogram);
    let mut rows = Vec::new();
    let mut count_max = 1;
    for (bin, count) in &counts {
        rows.push(vec![
            bin_edge(*bin),
            "to".to_owned(),
            bin_edge(bin + 1),
            count.to_string(),
        ]);
        count_max = count_max.max(*count);
    }
    let aligns = [Align::Right, Align::Left, Align::Right, Align::Right];
    let Some(table) = Columns::fit(&aligns, &rows, page.width().saturating_sub(INDENT)) else {
        return;
    };
    let room = page.width().saturating_sub(INDENT + table.total() + 2);
    let bar_columns = room.min(TABLE_BAR_COLUMNS_MAX);
    let indent = " ".repeat(INDENT);
    let mut next_bin = None;
    for ((bin, count), row) in counts.iter().zip(&rows) {
        if matches!(next_bin, Some(next) if next < *bin) {
            page.unbroken(Tone::Dim.span(format!("{indent}…")));
        }
        next_bin = Some(bin + 1);
        let share = *count as f64 / count_max as f64;
        page.spans(&[
            Tone::Plain.span(format!("{indent}{}  ", table.padded_line(row))),
            Tone::Note.span(bar(share, bar_columns)),
        ]);
    }
}

/// The counts of a histogram by tenths of a decade.
fn counts_by_bin(histogram: &LatencyHistogram) -> BTreeMap<i64, u64> {
    let mut bins = BTreeMap::new();
    for bucket in histogram.buckets() {
        let middle = bucket.low_ns as f64 + bucket.width_ns as f64 / 2.0;
        let bin = (middle.max(1.0).log10() * BINS_PER_DECADE).floor() as i64;
        *bins.entry(bin).or_default() += bucket.count;
    }
    bins
}

fn bin_edge(bin: i64) -> String {
    let ns = 10f64.powf(bin as f64 / BINS_PER_DECADE);
    format_latency(ns.round() as u64)
}

/// The scale of latencies after idle times reaches at least to this, so that fast disks have short
/// bars.
const IDLE_SCALE_NS_MIN: u64 = 1_000_000;

/// Writes a table of the latencies of the first request after each idle time. Writes nothing where
/// none was measured.
fn write_after_idle(page: &mut Page<'_>, ping: &PingFigures) {
    if ping.after_idle.is_empty() {
        return;
    }
    page.blank();
    page.text(Tone::Bold.span("first request after an idle time"));
    let heading = ["idle", "n", "mean", "± 95 %", "p50", "min", "max", "slow"];
    let mut lines = vec![heading.map(str::to_owned).to_vec()];
    let mut longest_ns = IDLE_SCALE_NS_MIN;
    for point in &ping.after_idle {
        lines.push(idle_row(point));
        longest_ns = longest_ns.max(point.p50_ns);
    }
    let aligns = [Align::Right; 8];
    let Some(table) = Columns::fit(&aligns, &lines, page.width()) else {
        return;
    };
    let scale = LogScale {
        low: BAR_SCALE.low,
        high: longest_ns as f64,
    };
    let room = page.width().saturating_sub(table.total() + 2);
    let bar_columns = room.min(TABLE_BAR_COLUMNS_MAX);
    page.unbroken(Tone::Dim.span(table.padded_line(&lines[0])));
    for (point, row) in ping.after_idle.iter().zip(&lines[1..]) {
        let line = table.padded_line(row);
        let pad = " ".repeat((table.total() + 2).saturating_sub(columns(&line)));
        let tone = match point.slow {
            0 => Tone::Plain,
            _ => Tone::Warning,
        };
        let share = scale.share(point.p50_ns as f64);
        page.spans(&[
            tone.span(line),
            Tone::Plain.span(pad),
            Tone::Note.span(bar(share, bar_columns)),
        ]);
    }
    let mut legend =
        "idle 0: right after another request. Bars: p50 on a logarithmic scale from 1 µs."
            .to_owned();
    if let Some(ns) = ping.slow_from_ns {
        legend.push_str(&format!(" slow: longer than {}.", format_latency(ns)));
    }
    page.text(Tone::Dim.span(legend));
}

fn idle_row(point: &IdlePoint) -> Vec<String> {
    let idle = match point.idle_ns {
        0 => "0".to_owned(),
        ns => format_duration(ns),
    };
    let width = point.mean.half_width_95.map(|ns| ns.round() as u64);
    vec![
        idle,
        point.mean.n.to_string(),
        format_latency(point.mean.value.round() as u64),
        labels::latency(width),
        format_latency(point.p50_ns),
        format_latency(point.min_ns),
        format_latency(point.max_ns),
        point.slow.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, plain, written};
    use diskproof_model::ping::PingLatency;

    fn target(path: &str) -> TargetIdentity {
        TargetIdentity {
            path: path.to_owned(),
            ..fixture::record().targets.remove(0)
        }
    }

    fn request(number: u64, latency_ns: u64) -> SingleRequest {
        SingleRequest {
            number,
            at_ns: 0,
            op: OpKind::Read,
            offset_bytes: 0,
            latency_ns,
            idle_ns: None,
            error: None,
            ignored: None,
        }
    }

    fn line(width: usize, request: &SingleRequest, mean_ns: Option<f64>) -> String {
        let lines = RequestLines::new(4096, &[target("/data")], plain(width));
        written(|out| lines.write(0, request, mean_ns, out))
    }

    #[test]
    fn request_line_fits_every_width_and_names_all() {
        for width in [40, 60, 80, 132] {
            for latency_ns in [850, 96_300, 300_000_000, 20_000_000_000] {
                let line = line(width, &request(1234, latency_ns), Some(1e6));
                assert!(columns(line.trim_end()) <= width.max(48), "{width}: {line}");
                assert!(line.contains("4 KiB <<< /data"), "{line}");
                assert!(line.contains("#1234"), "{line}");
                assert!(line.contains(&format_latency(latency_ns)), "{line}");
            }
        }
    }

    #[test]
    fn scale_fits_every_width_and_stands_above_the_bars() {
        for (width, path) in [
            (52, "/d"),
            (60, "/data"),
            (80, "/tmp/ffm/0"),
            (132, "/data"),
        ] {
            let lines = RequestLines::new(4096, &[target(path)], plain(width));
            let scale = written(|out| lines.write_scale(out));
            let scale = scale.trim_end();
            assert!(columns(scale) <= width, "{width}: {scale}");
            let line = written(|out| lines.write(0, &request(1, 1_000_000), None, out));
            if let Some((before, bar)) = line.trim_end().split_once('█') {
                let end = columns(before) + 1 + columns(bar);
                let label = scale.find("1 ms").unwrap() - "µ".len() + 1;
                assert_eq!(columns(before), scale.find("1 µs").unwrap(), "{width}");
                assert!(label.abs_diff(end) <= 1, "{width}\n{scale}\n{line}");
            }
        }
    }

    fn latency(half_width_95: Option<f64>) -> PingLatency {
        PingLatency {
            mean: Estimate {
                n: 1,
                value: 154_200.0,
                half_width_95,
                unit: "ns".to_owned(),
            },
            deviation_ns: 12_100.0,
        }
    }

    #[test]
    fn mean_of_one_request_is_that_request() {
        assert_eq!(mean_text(1, &latency(None)), "mean 154 µs");
        let many = mean_text(40, &latency(Some(6_000.0)));
        assert_eq!(many, "mean 154 µs ±4 %, deviation 12.1 µs");
    }

    /// The mark behind the time of a request, where the mean was 100 µs.
    fn mark(latency_ns: u64) -> String {
        let text = line(80, &request(7, latency_ns), Some(100_000.0));
        let words: Vec<&str> = text.split_whitespace().collect();
        let place = words.iter().position(|word| *word == "#7").unwrap();
        words[place + 3].to_owned()
    }

    #[test]
    fn marks_are_those_of_ioping() {
        assert_eq!([mark(49_000), mark(201_000)], ["fast", "slow"]);
        assert!(!["fast", "slow"].contains(&mark(100_000).as_str()));
        let failed = SingleRequest {
            error: Some("EIO".to_owned()),
            ..request(8, 5_000)
        };
        assert!(line(80, &failed, None).trim_end().ends_with("EIO"));
        let first = SingleRequest {
            ignored: Some(IgnoredBecause::Warmup),
            ..request(1, 500_000)
        };
        assert!(line(80, &first, None).contains("warm-up"));
    }

    fn bar_length(latency_ns: u64) -> usize {
        let text = line(80, &request(1, latency_ns), None);
        text.matches('█').count()
    }

    #[test]
    fn bars_grow_with_the_logarithm() {
        let short = bar_length(10_000);
        let middle = bar_length(1_000_000);
        let long = bar_length(100_000_000);
        assert!(short < middle && middle < long, "{short} {middle} {long}");
        assert!((middle - short).abs_diff(long - middle) <= 1);
    }
}
