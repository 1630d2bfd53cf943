//! A sweep in words: its best figures, the knee, the limit of bandwidth, the cost model, and the
//! cells that are not measured.

use super::sweep_view;
use crate::labels;
use crate::text::{distinct, grouped, joined, list};
use diskproof_model::block::{Block, Cell, Column, Mark, Narrow, Table, TableRow, Tone};
use diskproof_model::digits::{figure_text, rounded};
use diskproof_model::record::{Estimate, Record};
use diskproof_model::sweep::{
    BandwidthLimit, CellState, CostModel, DepthKnee, SpanGain, SpanRate, SpanStep, SweepCell,
    SweepMatrix, SweepRecord, size_word,
};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::{format_bytes, format_latency, format_percent};

/// From this relative half-width on, a cell is known only roughly.
const ROUGH: f64 = 0.1;
/// A span whose rate is this many times that of the longest one is faster by more than chance.
const FAST_GAIN: f64 = 2.0;
/// No disk whose platters turn answers in less, on average.
const ARM_MIN_NS: f64 = 2e6;

/// Latencies of a table are in microseconds if the median is below this, else in milliseconds.
const MICROSECONDS_BELOW_NS: f64 = 1e6;
/// What the figures of a matrix show.
const LEGEND: &str = "Shades run from the lowest (blank) to the highest measured rate. ?: known \
                      only to ±10 % or worse. ~, without a shade: predicted by the cost model. ×: \
                      impossible. –: not measured, or fewer than ten samples beyond it. Every \
                      cell with its interval: -o FILE.csv";

/// The answers of a sweep, then its matrices.
pub(crate) fn blocks(record: &Record, sweep: &SweepRecord) -> Vec<Block> {
    let view = record.plan.sweep().and_then(|plan| plan.view);
    let own = view.map(|view| sweep_view::blocks(record, sweep, view));
    let mut blocks: Vec<Block> = own.into_iter().flatten().collect();
    blocks.extend(sweep.matrices.iter().flat_map(answers));
    // A view has the figures of a single depth already.
    let is_shown = |matrix: &&SweepMatrix| view.is_none() || axes(matrix).1.len() > 1;
    let shown: Vec<&SweepMatrix> = sweep.matrices.iter().filter(is_shown).collect();
    blocks.extend(shown.iter().flat_map(|matrix| map(matrix)));
    blocks.extend(shown.iter().flat_map(|matrix| latencies(matrix)));
    if !sweep.spans.is_empty() {
        blocks.extend(spans(record, sweep));
    }
    blocks.extend(intervals_text(sweep).map(|text| Block::fact("± 95 %", text)));
    let missing = missing_texts(sweep).into_iter();
    blocks.extend(missing.map(|text| Block::text(Tone::Plain, text)));
    blocks.extend((!shown.is_empty()).then(|| Block::text(Tone::Dim, LEGEND)));
    blocks
}

/// What a reader decides by.
fn answers(matrix: &SweepMatrix) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading(matrix.operation.words().to_owned()),
        Block::fact("best", best_text(matrix)),
    ];
    let unknown = || "not found with these sizes, depths and intervals".to_owned();
    let (sizes, depths) = axes(matrix);
    if depths.len() > 1 {
        let knee = matrix.knee.as_ref().map_or_else(unknown, knee_text);
        blocks.push(Block::fact("knee", knee));
    }
    if sizes.len() > 1 {
        let limit = matrix.bandwidth_limit.as_ref();
        blocks.push(Block::fact("rate", limit.map_or_else(unknown, limit_text)));
    }
    let model = matrix.cost_model.as_ref().map(model_text);
    blocks.extend(model.map(|text| Block::fact("cost", text)));
    blocks
}

/// The sizes and depths of a matrix, in order.
fn axes(matrix: &SweepMatrix) -> (Vec<u32>, Vec<u32>) {
    let sizes = matrix.cells.iter().map(|cell| cell.block_bytes);
    let depths = matrix.cells.iter().map(|cell| cell.depth);
    (distinct(sizes), distinct(depths))
}

/// A table of sizes and depths under its title.
fn by_size_and_depth(
    matrix: &SweepMatrix,
    what: &str,
    of: impl Fn(&SweepCell) -> Cell,
) -> [Block; 2] {
    let (sizes, depths) = axes(matrix);
    let names: Vec<String> = depths.iter().map(|depth| format!("d{depth}")).collect();
    let columns = Column::numbers([""].into_iter().chain(names.iter().map(String::as_str)));
    let row = |size: &u32| {
        let mut cells = vec![Cell::from(size_word(u64::from(*size)))];
        let found = depths.iter().map(|depth| matrix.cell(*size, *depth));
        cells.extend(found.map(|cell| cell.map_or_else(Cell::default, &of)));
        TableRow::from(cells)
    };
    let title = format!("{}: {what}", matrix.operation.words());
    let table = Table {
        narrow: Narrow::Split,
        ..Table::new(what, columns, sizes.iter().map(row).collect())
    };
    [Block::Heading(title), Block::Table(table)]
}

/// The heat map of the rate.
fn map(matrix: &SweepMatrix) -> [Block; 2] {
    let cells = matrix.cells.iter();
    let measured = cells.filter(|cell| cell.state == CellState::Measured);
    let rates = measured.filter_map(|cell| Some(cell.iops.as_ref()?.value));
    let logs = rates.filter(|rate| *rate > 0.0).map(f64::ln);
    let (low, high) = logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| {
        (low.min(log), high.max(log))
    });
    let what = "operations per second by block size and depth";
    by_size_and_depth(matrix, what, |cell| {
        let why = cell.why.clone().unwrap_or_default();
        let Some(rate) = cell.iops.as_ref().filter(|rate| rate.value > 0.0) else {
            return Cell {
                note: why,
                mark: Mark::Heat(None),
                ..Cell::toned(Tone::Dim, format!("{} ", no_figure(cell)))
            };
        };
        let p99 = cell.latency_p99_ns;
        let p99 = p99.map_or(String::new(), |ns| format!(", p99 {}", format_latency(ns)));
        let notes = [labels::interval(rate) + &p99, why];
        let share = (rate.value.ln() - low) / (high - low).max(f64::MIN_POSITIVE);
        let (tone, share) = match cell.state {
            CellState::Measured => (Tone::Plain, Some(share)),
            _ => (Tone::Dim, None),
        };
        let text = short_rate(rate.value, rate.half_width_95);
        Cell {
            text: format!("{text}{}", sign(cell)),
            tone,
            mark: Mark::Heat(share),
            note: list(notes.iter().filter(|one| !one.is_empty())),
        }
    })
}

/// A rate in at most six columns: `83`, `8.31k`, `66.4k`, `1.23M`.
fn short_rate(value: f64, half_width: Option<f64>) -> String {
    let (scale, unit) = match value {
        v if v >= 999_500.0 => (1e6, "M"),
        v if v >= 999.5 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let text = rounded(value / scale, half_width.map(|half| half / scale));
    format!("{text}{unit}")
}

/// The 99th percentiles of the latency.
fn latencies(matrix: &SweepMatrix) -> Vec<Block> {
    let means = matrix.cells.iter().filter_map(|cell| cell.latency_mean_ns);
    let mut means: Vec<f64> = means.collect();
    means.sort_by(f64::total_cmp);
    let Some(median) = means.get(means.len() / 2) else {
        return Vec::new();
    };
    let (scale, unit) = if *median < MICROSECONDS_BELOW_NS {
        (1e3, "µs")
    } else {
        (1e6, "ms")
    };
    let mut cells = matrix.cells.iter();
    if cells.all(|cell| cell.latency_p99_ns.is_none()) {
        let words = matrix.operation.words();
        let why = format!("{words}: no cell has enough requests for a 99th percentile");
        return vec![Block::text(Tone::Dim, why)];
    }
    let what = format!("99th percentile of the latency in {unit}");
    let table = by_size_and_depth(matrix, &what, |cell| match cell.latency_p99_ns {
        Some(ns) => labels::three_digits(ns as f64 / scale).into(),
        None => no_figure(cell).to_owned().into(),
    });
    table.into()
}

/// Single random reads by span: which part a cache answers, and the gain of a short stroke.
fn spans(record: &Record, sweep: &SweepRecord) -> [Block; 3] {
    let row = |span: &SpanRate| {
        let iops = span.iops.as_ref();
        let mean = span.latency_mean_ns.map(|ns| ns.max(0.0).round() as u64);
        let rate = iops.map(|iops| rounded(iops.value, iops.half_width_95));
        let gain = span.gain.map(|gain| format!("× {gain:.2}"));
        vec![
            format_bytes(span.span_bytes),
            rate.unwrap_or_else(|| "not measured".to_owned()),
            iops.map(labels::interval).unwrap_or_default(),
            mean.map(format_latency).unwrap_or_default(),
            gain.unwrap_or_default(),
        ]
    };
    let title = "single random reads by span, from the start of the target";
    let names = ["span", "reads/s", "± 95 %", "mean", "gain"];
    let disks = record.targets.iter().flat_map(TargetIdentity::disks);
    let rotational: Vec<Option<bool>> = disks.map(|disk| disk.rotational).collect();
    [
        Block::Heading(title.to_owned()),
        Block::text(Tone::Plain, spans_on(&rotational, sweep)),
        Block::table(title, names, sweep.spans.iter().map(row).collect()),
    ]
}

/// A share of a figure that is one unit of its third digit, so that three digits print.
fn three_digits(value: f64, unit: &str) -> String {
    figure_text(value, Some(value * 1e-3), unit)
}

/// What the reads over spans show: up to which span a cache answers, what a short stroke gains. On
/// disks that rotate, that do not, and of an unknown kind.
fn spans_on(rotational: &[Option<bool>], sweep: &SweepRecord) -> String {
    let step = sweep.span_step().map(|step| step_text(&step));
    let stroke = sweep.short_stroke().and_then(|stroke| {
        let rotates = match rotational {
            [] | [None, ..] => {
                let whole = sweep.spans.last().and_then(|span| span.latency_mean_ns);
                whole.is_some_and(|ns| ns >= ARM_MIN_NS)
            }
            known => known.contains(&Some(true)),
        };
        rotates.then(|| stroke_text(&stroke))
    });
    if let Some(known) = joined(step.into_iter().chain(stroke), " ") {
        return known;
    }
    let spans = sweep.spans.iter();
    let fast = spans.filter(|span| span.gain.is_some_and(|gain| gain >= FAST_GAIN));
    match fast.max_by_key(|span| span.span_bytes) {
        Some(span) => format!(
            "Up to {} the rate is at least twice that of the longest span, but there is no clear \
             step between two spans.",
            format_bytes(span.span_bytes)
        ),
        None => NO_STEP.to_owned(),
    }
}

const NO_STEP: &str = "No span reaches twice the rate of the longest one, so neither a cache nor a \
                       short stroke is visible.";

fn step_text(step: &SpanStep) -> String {
    let latency = |ns: f64| format_latency(ns.round() as u64);
    let fast = format_bytes(step.fast_bytes);
    let claim = if step.fast_ns >= ARM_MIN_NS {
        format!("Up to about {fast} a cache answers or the arm moves less")
    } else {
        format!("A cache answers up to about {fast}")
    };
    format!(
        "{claim}: a read there takes {}. Over {} it takes {}, {:.1} times as long.",
        latency(step.fast_ns),
        format_bytes(step.slow_bytes),
        latency(step.slow_ns),
        step.times()
    )
}

fn stroke_text(stroke: &SpanGain) -> String {
    let share = stroke.span_bytes as f64 / stroke.whole_bytes as f64;
    format!(
        "Within the first {} ({} of the target) the rate is {:.1} times that of the whole, because \
         the arm moves less.",
        format_bytes(stroke.span_bytes),
        format_percent(share),
        stroke.gain
    )
}

/// The best figures: `66,400/s ±0.3 % (4 KiB, depth 32), 3070 MB/s ±1 % (1 MiB, depth 8)`.
fn best_text(matrix: &SweepMatrix) -> String {
    let text = |cell: Option<&SweepCell>, of: fn(&SweepCell) -> Option<&Estimate>| {
        let cell = cell?;
        let (size, depth) = (format_bytes(u64::from(cell.block_bytes)), cell.depth);
        Some(format!("{} ({size}, depth {depth})", of(cell)?.text()))
    };
    let iops = text(matrix.best_iops(), |cell| cell.iops.as_ref());
    let throughput = text(matrix.best_throughput(), |cell| cell.throughput.as_ref());
    let known = joined(iops.into_iter().chain(throughput), ", ");
    known.unwrap_or_else(|| "nothing was measured".to_owned())
}

/// The knee: `depth 8 (4 to 16) at 8 KiB: 61,000/s, 7.4 times the rate of one request`.
fn knee_text(knee: &DepthKnee) -> String {
    let range = range_text(knee.depth_low, knee.depth_high, |depth| depth.to_string());
    let single = knee.iops_single.as_ref();
    let single = single.filter(|single| single.value > 0.0 && knee.depth > 1);
    let gain = single.map_or(String::new(), |single| {
        let gain = knee.iops.value / single.value;
        format!(", {gain:.1} times the rate of one request")
    });
    let (depth, rate) = (knee.depth, knee.iops.text());
    let size = format_bytes(u64::from(knee.block_bytes));
    format!("depth {depth}{range} at {size}: {rate}{gain}")
}

/// ` (4 to 16)`, ` (4 or more)`; empty where both are the same.
fn range_text(low: u32, high: Option<u32>, text: impl Fn(u32) -> String) -> String {
    match high {
        Some(high) if high == low => String::new(),
        Some(high) => format!(" ({} to {})", text(low), text(high)),
        None => format!(" ({} or more)", text(low)),
    }
}

/// Where bandwidth is the limit: `from 128 KiB on (32 KiB to 256 KiB), 3070 MB/s ±1 %`.
fn limit_text(limit: &BandwidthLimit) -> String {
    let size = |bytes: u32| format_bytes(u64::from(bytes));
    let range = range_text(limit.block_bytes_low, limit.block_bytes_high, size);
    let (from, rate) = (size(limit.block_bytes), limit.throughput.text());
    format!("the limit from {from}{range} on: {rate}")
}

/// The cost model as a formula: `the larger of 80 µs + size / (3000 MB/s) and depth × (…)`.
fn model_text(model: &CostModel) -> String {
    let rate = three_digits(model.bytes_per_second, "B/s");
    format!(
        "latency = max({} + size/rate, depth × ({} + size/rate)), rate {rate}; typical error {}",
        three_digits(model.base_ns, "ns"),
        three_digits(model.request_ns, "ns"),
        format_percent(model.model_error)
    )
}

/// The sign of a cell behind its figure: predicted, rough, or none.
fn sign(cell: &SweepCell) -> char {
    match cell.state {
        CellState::Predicted => '~',
        CellState::Measured if is_rough(cell) => '?',
        _ => ' ',
    }
}

/// Whether the rate of a measured cell is known only roughly.
fn is_rough(cell: &SweepCell) -> bool {
    let width = cell.iops.as_ref().and_then(Estimate::relative_half_width);
    cell.state == CellState::Measured && width.is_none_or(|width| width > ROUGH)
}

/// The sign of a cell without a figure.
fn no_figure(cell: &SweepCell) -> &'static str {
    match cell.state {
        CellState::Impossible => "×",
        _ => "–",
    }
}

/// How well the cells of all matrices are known: `half of the intervals are below ±1.2 %, the
/// widest is ±34 % (randread-4M-d64)`.
fn intervals_text(sweep: &SweepRecord) -> Option<String> {
    let mut widths = Vec::new();
    for matrix in &sweep.matrices {
        let cells = matrix.cells.iter();
        for cell in cells.filter(|cell| cell.state == CellState::Measured) {
            let width = cell.iops.as_ref()?.relative_half_width();
            let name = matrix.operation.cell_name(cell.block_bytes, cell.depth);
            widths.push((width.unwrap_or(f64::INFINITY), name));
        }
    }
    widths.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((median, _), (widest, name)) = (widths.get(widths.len() / 2)?, widths.last()?);
    let [median, widest] = [median, widest].map(|width| {
        if width.is_finite() {
            format!("±{}", format_percent(*width))
        } else {
            "unknown".to_owned()
        }
    });
    Some(format!("median {median}, widest {widest} ({name})"))
}

/// How many cells were not measured, and the reasons.
fn missing_texts(sweep: &SweepRecord) -> Vec<String> {
    let cells = sweep.matrices.iter().flat_map(|matrix| {
        matrix.cells.iter().filter_map(|cell| {
            let name = matrix.operation.cell_name(cell.block_bytes, cell.depth);
            Some(((cell.why.as_ref()?, cell.state), name))
        })
    });
    let text = |((why, state), names): ((&String, CellState), Vec<String>)| {
        let sign = match state {
            CellState::Impossible => "×",
            CellState::Predicted => "~",
            CellState::Measured | CellState::Unknown => "–",
        };
        let which = match names.len() {
            1..=3 => list(names),
            many => format!("{many} cells such as {}", names[0]),
        };
        format!("{sign} {which}: {why}")
    };
    grouped(cells).into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::assert_shows;
    use diskproof_model::sweep::SweepOperation;

    /// Spans of 1, 4, 16 … MiB with these latencies in microseconds.
    fn over(latencies_us: &[f64]) -> SweepRecord {
        let whole = latencies_us[latencies_us.len() - 1];
        let spans = latencies_us.iter().enumerate().map(|(index, us)| SpanRate {
            span_bytes: 1 << (20 + 2 * index),
            iops: Some(Estimate {
                n: 10,
                value: 1e6 / us,
                half_width_95: Some(0.05e6 / us),
                unit: "1/s".to_owned(),
            }),
            latency_mean_ns: Some(us * 1e3),
            gain: Some(whole / us),
        });
        SweepRecord {
            matrices: Vec::new(),
            spans: spans.collect(),
        }
    }

    #[test]
    fn spans_name_the_cache_and_the_short_stroke() {
        let sweep = over(&[25.0, 26.0, 6000.0, 9000.0, 13_000.0]);
        let cache = [
            "cache",
            "4 MiB",
            "26.0 µs",
            "16 MiB",
            "6.00 ms",
            "230.8 times",
        ];
        let stroke = ["first 16 MiB (6.2 %", "2.2 times", "arm"];
        // A disk of an unknown kind takes as long as an arm and a turn.
        for kinds in [&[Some(true)][..], &[]] {
            assert_shows(&spans_on(kinds, &sweep), &cache);
            assert_shows(&spans_on(kinds, &sweep), &stroke);
        }
        let flash = spans_on(&[Some(false)], &sweep);
        assert_shows(&flash, &cache);
        assert!(!flash.contains("arm"), "{flash}");
    }

    #[test]
    fn even_spans_show_neither() {
        let text = spans_on(&[None], &over(&[90.0, 91.0, 90.0]));
        assert!(!text.contains("MiB"), "{text}");
        let slow = over(&[80.0, 140.0, 180.0, 230.0, 250.0]);
        let text = spans_on(&[Some(false)], &slow);
        assert_shows(&text, &["1 MiB"]);
        assert!(!text.contains("cache"), "{text}");
    }

    #[test]
    fn latencies_without_any_percentile_are_one_line() {
        let blocks = |latency_p99_ns| {
            let matrix = SweepMatrix {
                operation: SweepOperation::RandRead,
                cells: vec![SweepCell {
                    block_bytes: 4096,
                    depth: 1,
                    state: CellState::Measured,
                    why: None,
                    iops: None,
                    throughput: None,
                    latency_mean_ns: Some(1e7),
                    latency_p50_ns: None,
                    latency_p99_ns,
                    latency_max_ns: None,
                }],
                knee: None,
                bandwidth_limit: None,
                cost_model: None,
            };
            latencies(&matrix)
        };
        assert!(matches!(blocks(None)[..], [Block::Text(..)]));
        let some = blocks(Some(10_000_000));
        let [_, Block::Table(table)] = &some[..] else {
            panic!("{some:?}");
        };
        assert_eq!(table.rows[0].cells[1].text, "10.0");
    }

    #[test]
    fn figures_fit_their_columns() {
        let cases = [
            (82.7, Some(1.0), "83"),
            (8312.0, Some(20.0), "8.31k"),
            (66_412.0, Some(200.0), "66.4k"),
            (999_400.0, Some(1000.0), "999k"),
            (1_234_567.0, Some(2000.0), "1.23M"),
            (0.5, None, "0.50"),
        ];
        for (value, half_width, text) in cases {
            let short = short_rate(value, half_width);
            assert_eq!(short, text);
            assert!(short.len() <= 6);
        }
        let digits = [0.0512, 8.214, 5120.4].map(labels::three_digits);
        assert_eq!(digits, ["0.051", "8.21", "5120"]);
    }
}
