//! A sweep in words: its best figures, the knee, the limit of bandwidth, the cost model, and the
//! cells that are not measured.

use super::sweep_view;
use crate::labels;
use crate::text::{distinct, grouped, list};
use diskproof_model::block::{Block, Cell, Column, Mark, Narrow, Table, TableRow, Tone};
use diskproof_model::digits::{figure_text, rounded};
use diskproof_model::record::{Estimate, Record};
use diskproof_model::sweep::{
    BandwidthLimit, CellState, CostModel, DepthKnee, SpanGain, SpanRate, SpanStep, SweepCell,
    SweepMatrix, SweepRecord, size_word,
};
use diskproof_model::target::{Layer, TargetIdentity};
use diskproof_model::units::{format_bytes, format_latency, format_percent};

/// A cell whose rate has a wider relative half-width is marked as known only roughly; [`LEGEND`]
/// states this limit.
const ROUGH_WIDTH: f64 = 0.1;
/// A span counts as fast if its rate is at least this many times that of the longest one; the texts
/// below state this limit.
const FAST_GAIN: f64 = 2.0;
/// If random reads take longer on average, the disk may have an arm. Half a turn of the fastest
/// platters, at 15,000 rpm, takes 2 ms; a read of an SSD takes far less.
const ARM_MIN_NS: f64 = 2e6;

/// Latencies of a table are in µs if the median is below this, else in ms. Below a millisecond,
/// whole microseconds are easier to compare than fractions.
const MICROSECONDS_BELOW_NS: f64 = 1e6;
/// Explains the figures and signs of a matrix.
const LEGEND: &str = "Shades run from the lowest (blank) to the highest measured rate. ?: known \
                      only to ±10 % or worse. ~, without a shade: predicted by the cost model. \
                      ^, without a shade: in a burst that ended. ×: impossible. !: every \
                      request failed or had no answer. –: not measured, or fewer than ten \
                      samples beyond it. Every cell with its interval: -o FILE.csv";
/// In place of an answer that the measured cells do not give.
const NOT_FOUND: &str = "not found with these sizes, depths and intervals";

/// Describes a sweep: first as the older tool whose view was requested, then its answers, then its
/// matrices.
pub(crate) fn blocks(record: &Record, sweep: &SweepRecord) -> Vec<Block> {
    let mut blocks = Vec::new();
    let view = match record.plan.sweep() {
        Some(plan) => plan.view,
        None => None,
    };
    if let Some(view) = view {
        blocks.extend(sweep_view::blocks(record, sweep, view));
    }
    blocks.extend(sweep.matrices.iter().flat_map(answer_blocks));
    // A view has the figures of a single depth already.
    let shown: Vec<&SweepMatrix> = sweep
        .matrices
        .iter()
        .filter(|matrix| view.is_none() || distinct_depths(matrix).len() > 1)
        .collect();
    for matrix in &shown {
        blocks.extend(rate_map_blocks(matrix));
    }
    for matrix in &shown {
        blocks.extend(latency_blocks(matrix));
    }
    if !sweep.spans.is_empty() {
        blocks.extend(span_blocks(record, sweep));
    }
    if let Some(text) = intervals_text(sweep) {
        blocks.push(Block::fact("± 95 %", text));
    }
    for text in unmeasured_texts(sweep) {
        blocks.push(Block::text(Tone::Plain, text));
    }
    if !shown.is_empty() {
        blocks.push(Block::text(Tone::Dim, LEGEND));
    }
    blocks
}

/// Describes the best figures, the knee, the limit of bandwidth and the cost model of a matrix. A
/// matrix with a single depth has no knee, one with a single size no limit.
fn answer_blocks(matrix: &SweepMatrix) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading(matrix.operation.words().to_owned()),
        Block::fact("best", best_text(matrix)),
    ];
    if distinct_depths(matrix).len() > 1 {
        let knee = match &matrix.knee {
            Some(knee) => knee_text(knee),
            None => NOT_FOUND.to_owned(),
        };
        blocks.push(Block::fact("knee", knee));
    }
    if distinct_sizes(matrix).len() > 1 {
        let limit = match &matrix.bandwidth_limit {
            Some(limit) => limit_text(limit),
            None => NOT_FOUND.to_owned(),
        };
        blocks.push(Block::fact("rate", limit));
    }
    if let Some(model) = &matrix.cost_model {
        blocks.push(Block::fact("cost", model_text(model)));
    }
    blocks
}

/// The block sizes of a matrix, in order.
fn distinct_sizes(matrix: &SweepMatrix) -> Vec<u32> {
    distinct(matrix.cells.iter().map(|cell| cell.block_bytes))
}

/// The depths of a matrix, in order.
fn distinct_depths(matrix: &SweepMatrix) -> Vec<u32> {
    distinct(matrix.cells.iter().map(|cell| cell.depth))
}

/// A table with a row for each size and a column for each depth, under its heading. `table_cell`
/// prints a cell of the matrix.
fn table_by_size_and_depth(
    matrix: &SweepMatrix,
    what: &str,
    table_cell: impl Fn(&SweepCell) -> Cell,
) -> [Block; 2] {
    let column_depths = distinct_depths(matrix);
    let mut names = vec![String::new()];
    for depth in &column_depths {
        names.push(format!("d{depth}"));
    }
    let mut rows = Vec::new();
    for size in distinct_sizes(matrix) {
        let mut cells = vec![Cell::from(size_word(u64::from(size)))];
        for depth in &column_depths {
            cells.push(match matrix.cell(size, *depth) {
                Some(cell) => table_cell(cell),
                None => Cell::default(),
            });
        }
        rows.push(TableRow::from(cells));
    }
    let columns = Column::numbers(names.iter().map(String::as_str));
    let table = Table {
        narrow: Narrow::Split,
        ..Table::new(what, columns, rows)
    };
    let title = format!("{}: {what}", matrix.operation.words());
    [Block::Heading(title), Block::Table(table)]
}

/// The rates of a matrix as a heat map.
fn rate_map_blocks(matrix: &SweepMatrix) -> [Block; 2] {
    let scale = HeatScale::from_matrix(matrix);
    let what = "operations per second by block size and depth";
    table_by_size_and_depth(matrix, what, |cell| rate_cell(cell, &scale))
}

/// The logarithms of the lowest and the highest measured rate.
struct HeatScale {
    low: f64,
    high: f64,
}

impl HeatScale {
    fn from_matrix(matrix: &SweepMatrix) -> Self {
        let mut scale = Self {
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
        };
        for cell in &matrix.cells {
            if cell.state != CellState::Measured {
                continue;
            }
            if let Some(rate) = known_rate(cell) {
                scale.low = scale.low.min(rate.value.ln());
                scale.high = scale.high.max(rate.value.ln());
            }
        }
        scale
    }

    /// The shade of a rate, from 0 at the lowest to 1 at the highest one.
    fn heat(&self, rate: f64) -> f64 {
        (rate.ln() - self.low) / (self.high - self.low).max(f64::MIN_POSITIVE)
    }
}

/// The rate of a cell, unless it is zero.
fn known_rate(cell: &SweepCell) -> Option<&Estimate> {
    match &cell.iops {
        Some(rate) if rate.value > 0.0 => Some(rate),
        _ => None,
    }
}

fn rate_cell(cell: &SweepCell, scale: &HeatScale) -> Cell {
    let why = cell.why.clone().unwrap_or_default();
    let Some(rate) = known_rate(cell) else {
        return Cell {
            note: why,
            mark: Mark::Heat(None),
            ..Cell::toned(Tone::Dim, format!("{} ", no_figure_sign(cell)))
        };
    };
    let mut note = labels::interval(rate);
    if let Some(ns) = cell.latency_p99_ns {
        note.push_str(&format!(", p99 {}", format_latency(ns)));
    }
    let mut notes = vec![note];
    if !why.is_empty() {
        notes.push(why);
    }
    let text = short_rate_text(rate.value, rate.half_width_95);
    let mut table_cell = Cell::from(format!("{text}{}", state_sign(cell)));
    if cell.state == CellState::Measured {
        table_cell.mark = Mark::Heat(Some(scale.heat(rate.value)));
    } else {
        table_cell.mark = Mark::Heat(None);
        table_cell.tone = Tone::Dim;
    }
    table_cell.note = list(notes);
    table_cell
}

/// A rate in at most six columns: `83`, `8.31k`, `66.4k`, `1.23M`.
fn short_rate_text(value: f64, half_width: Option<f64>) -> String {
    let (scale, unit) = match value {
        v if v >= 999_500.0 => (1e6, "M"),
        v if v >= 999.5 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let text = rounded(value / scale, half_width.map(|half| half / scale));
    format!("{text}{unit}")
}

/// The 99th percentiles of the latency as a table, or why there are none. Empty where no cell has a
/// latency.
fn latency_blocks(matrix: &SweepMatrix) -> Vec<Block> {
    let mut means: Vec<f64> = matrix
        .cells
        .iter()
        .flat_map(|cell| cell.latency_mean_ns)
        .collect();
    means.sort_by(f64::total_cmp);
    let Some(median) = means.get(means.len() / 2) else {
        return Vec::new();
    };
    if matrix
        .cells
        .iter()
        .all(|cell| cell.latency_p99_ns.is_none())
    {
        let words = matrix.operation.words();
        let why = format!("{words}: no cell has enough requests for a 99th percentile");
        return vec![Block::text(Tone::Dim, why)];
    }
    let (scale, unit) = if *median < MICROSECONDS_BELOW_NS {
        (1e3, "µs")
    } else {
        (1e6, "ms")
    };
    let what = format!("99th percentile of the latency in {unit}");
    let table = table_by_size_and_depth(matrix, &what, |cell| match cell.latency_p99_ns {
        Some(ns) if cell.state == CellState::InBurst => {
            format!("{}^", labels::three_digits(ns as f64 / scale)).into()
        }
        Some(ns) => labels::three_digits(ns as f64 / scale).into(),
        None => no_figure_sign(cell).to_owned().into(),
    });
    table.into()
}

/// Describes single random reads by span: which part a cache answers, and the gain of a short
/// stroke.
fn span_blocks(record: &Record, sweep: &SweepRecord) -> [Block; 3] {
    let title = "single random reads by span, from the start of the target";
    let names = ["span", "reads/s", "± 95 %", "mean", "gain"];
    let rotational: Vec<Option<bool>> = record
        .targets
        .iter()
        .flat_map(TargetIdentity::disks)
        .map(Layer::rotates)
        .collect();
    let rows = sweep.spans.iter().map(span_row).collect();
    [
        Block::Heading(title.to_owned()),
        Block::text(Tone::Plain, spans_text(&rotational, sweep)),
        Block::table(title, names, rows),
    ]
}

fn span_row(span: &SpanRate) -> Vec<String> {
    let (rate, interval) = match &span.iops {
        Some(iops) => (
            rounded(iops.value, iops.half_width_95),
            labels::interval(iops),
        ),
        None => ("not measured".to_owned(), String::new()),
    };
    let mean = match span.latency_mean_ns {
        Some(ns) => format_latency(ns.max(0.0).round() as u64),
        None => String::new(),
    };
    let gain = match span.gain {
        Some(gain) => format!("× {gain:.2}"),
        None => String::new(),
    };
    let size = format_bytes(span.span_bytes);
    vec![size, rate, interval, mean, gain]
}

/// A figure of the cost model, which has no interval, with three to four digits.
fn three_digits_text(value: f64, unit: &str) -> String {
    figure_text(value, Some(value * 1e-3), unit)
}

/// Says what the reads over spans show: up to which span a cache answers, and what a short stroke
/// gains. `rotational` holds for each disk whether it rotates, as far as the kernel knows.
fn spans_text(rotational: &[Option<bool>], sweep: &SweepRecord) -> String {
    let mut sentences = Vec::new();
    if let Some(step) = sweep.span_step() {
        sentences.push(step_text(&step));
    }
    if let Some(stroke) = sweep.short_stroke()
        && has_arm(rotational, sweep)
    {
        sentences.push(stroke_text(&stroke));
    }
    if !sentences.is_empty() {
        return sentences.join(" ");
    }
    match longest_fast_span(sweep) {
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

/// True if one of the disks rotates. If the kernel does not know that of the first one, the time of
/// an access decides.
fn has_arm(rotational: &[Option<bool>], sweep: &SweepRecord) -> bool {
    if let [Some(_), ..] = rotational {
        return rotational.contains(&Some(true));
    }
    let Some(whole) = sweep.spans.last() else {
        return false;
    };
    matches!(whole.latency_mean_ns, Some(ns) if ns >= ARM_MIN_NS)
}

/// The longest span whose rate is at least [`FAST_GAIN`] times that of the whole.
fn longest_fast_span(sweep: &SweepRecord) -> Option<&SpanRate> {
    sweep
        .spans
        .iter()
        .filter(|span| matches!(span.gain, Some(gain) if gain >= FAST_GAIN))
        .max_by_key(|span| span.span_bytes)
}

fn step_text(step: &SpanStep) -> String {
    let fast = format_bytes(step.fast_bytes);
    let claim = if step.fast_ns >= ARM_MIN_NS {
        format!("Up to about {fast} a cache answers or the arm moves less")
    } else {
        format!("A cache answers up to about {fast}")
    };
    format!(
        "{claim}: a read there takes {}. Over {} it takes {}, {:.1} times as long.",
        format_latency(step.fast_ns.round() as u64),
        format_bytes(step.slow_bytes),
        format_latency(step.slow_ns.round() as u64),
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

/// The best figures of a matrix: `66,400/s ±0.3 % (4 KiB, depth 32), 3070 MB/s ±1 % (1 MiB, depth
/// 8)`.
fn best_text(matrix: &SweepMatrix) -> String {
    let mut texts = Vec::new();
    if let Some(cell) = matrix.best_iops()
        && let Some(rate) = &cell.iops
    {
        texts.push(figure_of_cell(rate, cell));
    }
    if let Some(cell) = matrix.best_throughput()
        && let Some(rate) = &cell.throughput
    {
        texts.push(figure_of_cell(rate, cell));
    }
    let has_burst = matrix
        .cells
        .iter()
        .any(|cell| cell.state == CellState::InBurst);
    if texts.is_empty() && has_burst {
        return "measured only in a burst that ended".to_owned();
    }
    if texts.is_empty() {
        return "nothing was measured".to_owned();
    }
    texts.join(", ")
}

fn figure_of_cell(figure: &Estimate, cell: &SweepCell) -> String {
    let size = size_text(cell.block_bytes);
    format!("{} ({size}, depth {})", figure.text(), cell.depth)
}

/// The knee: `depth 8 (4 to 16) at 8 KiB: 61,000/s, 7.4 times the rate of one request`.
fn knee_text(knee: &DepthKnee) -> String {
    let range = range_text(knee.depth_low, knee.depth_high, |depth| depth.to_string());
    let size = size_text(knee.block_bytes);
    let rate = knee.iops.text();
    let mut text = format!("depth {}{range} at {size}: {rate}", knee.depth);
    if let Some(single) = &knee.iops_single
        && single.value > 0.0
        && knee.depth > 1
    {
        let gain = knee.iops.value / single.value;
        text.push_str(&format!(", {gain:.1} times the rate of one request"));
    }
    text
}

/// ` (4 to 16)`, ` (4 or more)`; empty where both are the same.
fn range_text(low: u32, high: Option<u32>, text: fn(u32) -> String) -> String {
    match high {
        Some(high) if high == low => String::new(),
        Some(high) => format!(" ({} to {})", text(low), text(high)),
        None => format!(" ({} or more)", text(low)),
    }
}

fn size_text(bytes: u32) -> String {
    format_bytes(u64::from(bytes))
}

/// Says from which size on bandwidth is the limit: `the limit from 128 KiB (32 KiB to 256 KiB) on:
/// 3070 MB/s ±1 %`.
fn limit_text(limit: &BandwidthLimit) -> String {
    let range = range_text(limit.block_bytes_low, limit.block_bytes_high, size_text);
    let size = size_text(limit.block_bytes);
    let rate = limit.throughput.text();
    format!("the limit from {size}{range} on: {rate}")
}

/// The cost model as a formula: `latency = max(80 µs + size/rate, depth × (…)), rate 3000 MB/s; …`.
fn model_text(model: &CostModel) -> String {
    let rate = three_digits_text(model.bytes_per_second, "B/s");
    format!(
        "latency = max({} + size/rate, depth × ({} + size/rate)), rate {rate}; typical error {}",
        three_digits_text(model.base_ns, "ns"),
        three_digits_text(model.request_ns, "ns"),
        format_percent(model.model_error)
    )
}

/// The sign behind the figure of a cell: `~` for a predicted one, `^` for one of a burst, `?` for a
/// rough one, else a blank.
fn state_sign(cell: &SweepCell) -> char {
    match cell.state {
        CellState::Predicted => '~',
        CellState::InBurst => '^',
        CellState::Measured if is_rough(cell) => '?',
        CellState::Measured | CellState::Impossible | CellState::Failed | CellState::Unknown => ' ',
    }
}

/// True if the rate of a measured cell is known only roughly.
fn is_rough(cell: &SweepCell) -> bool {
    let Some(rate) = &cell.iops else {
        return true;
    };
    match rate.relative_half_width() {
        Some(width) => width > ROUGH_WIDTH,
        None => true,
    }
}

/// In place of the figure of a cell without one: `×` where none is possible, `!` where all requests
/// failed, else `–`.
fn no_figure_sign(cell: &SweepCell) -> &'static str {
    match cell.state {
        CellState::Impossible => "×",
        CellState::Failed => "!",
        CellState::Measured | CellState::InBurst | CellState::Predicted | CellState::Unknown => "–",
    }
}

/// How well the rate of a cell is known.
struct CellWidth {
    /// The relative half-width of the rate; infinite where the interval is unknown.
    relative: f64,
    /// The name of the cell, such as `randread-4M-d64`.
    name: String,
}

impl CellWidth {
    fn text(&self) -> String {
        if self.relative.is_finite() {
            format!("±{}", format_percent(self.relative))
        } else {
            "unknown".to_owned()
        }
    }
}

/// Says how well the cells of all matrices are known: `median ±1.2 %, widest ±34 %
/// (randread-4M-d64)`. `None` where a measured cell has no rate, and without measured cells.
fn intervals_text(sweep: &SweepRecord) -> Option<String> {
    let mut widths = Vec::new();
    for matrix in &sweep.matrices {
        for cell in &matrix.cells {
            if cell.state != CellState::Measured {
                continue;
            }
            let width = cell.iops.as_ref()?.relative_half_width();
            widths.push(CellWidth {
                relative: width.unwrap_or(f64::INFINITY),
                name: matrix.operation.cell_name(cell.block_bytes, cell.depth),
            });
        }
    }
    widths.sort_by(|one, other| one.relative.total_cmp(&other.relative));
    let median = widths.get(widths.len() / 2)?.text();
    let widest = widths.last()?;
    Some(format!(
        "median {median}, widest {} ({})",
        widest.text(),
        widest.name
    ))
}

/// Lists the cells whose rates do not count, by the reason.
fn unmeasured_texts(sweep: &SweepRecord) -> Vec<String> {
    let mut reasons = Vec::new();
    for matrix in &sweep.matrices {
        for cell in &matrix.cells {
            if let Some(why) = &cell.why {
                let name = matrix.operation.cell_name(cell.block_bytes, cell.depth);
                reasons.push(((cell.state, why), name));
            }
        }
    }
    let mut texts = Vec::new();
    for ((state, why), names) in grouped(reasons) {
        let sign = match state {
            CellState::Impossible => "×",
            CellState::Failed => "!",
            CellState::Predicted => "~",
            CellState::InBurst => "^",
            CellState::Measured | CellState::Unknown => "–",
        };
        let cells = match names.len() {
            1..=3 => list(names),
            many => format!("{many} cells such as {}", names[0]),
        };
        texts.push(format!("{sign} {cells}: {why}"));
    }
    texts
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
            assert_shows(&spans_text(kinds, &sweep), &cache);
            assert_shows(&spans_text(kinds, &sweep), &stroke);
        }
        let flash = spans_text(&[Some(false)], &sweep);
        assert_shows(&flash, &cache);
        assert!(!flash.contains("arm"), "{flash}");
    }

    #[test]
    fn even_spans_show_neither() {
        let text = spans_text(&[None], &over(&[90.0, 91.0, 90.0]));
        assert!(!text.contains("MiB"), "{text}");
        let slow = over(&[80.0, 140.0, 180.0, 230.0, 250.0]);
        let text = spans_text(&[Some(false)], &slow);
        assert_shows(&text, &["1 MiB"]);
        assert!(!text.contains("cache"), "{text}");
    }

    fn matrix_of_one_cell(latency_p99_ns: Option<u64>) -> SweepMatrix {
        SweepMatrix {
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
        }
    }

    #[test]
    fn latencies_without_any_percentile_are_one_line() {
        let without = latency_blocks(&matrix_of_one_cell(None));
        assert!(matches!(without[..], [Block::Text(..)]));
        let with_percentile = latency_blocks(&matrix_of_one_cell(Some(10_000_000)));
        let [_, Block::Table(table)] = &with_percentile[..] else {
            panic!("{with_percentile:?}");
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
            let short = short_rate_text(value, half_width);
            assert_eq!(short, text);
            assert!(short.len() <= 6);
        }
        let digits = [0.0512, 8.214, 5120.4].map(labels::three_digits);
        assert_eq!(digits, ["0.051", "8.21", "5120"]);
    }

    #[test]
    fn sign_of_a_cell_says_how_well_it_is_known() {
        let mut cell = matrix_of_one_cell(None).cells.remove(0);
        assert_eq!(state_sign(&cell), '?');
        cell.iops = Some(Estimate::new(30, 100.0, Some(10.0), "1/s"));
        assert_eq!(state_sign(&cell), ' ');
        cell.iops = Some(Estimate::new(30, 100.0, Some(10.1), "1/s"));
        assert_eq!(state_sign(&cell), '?');
        cell.state = CellState::Predicted;
        assert_eq!(state_sign(&cell), '~');
    }
}
