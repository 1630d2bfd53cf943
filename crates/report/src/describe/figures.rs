//! The table of workloads: every figure with its interval, its conditions and remarks. A search by
//! latency has a table of depths.

use super::remarks::{self, RemarkKind};
use crate::labels;
use crate::text::list;
use diskproof_model::block::Place::{self, Always, Drawn, Page, Roomy};
use diskproof_model::block::{
    Align, Block, Cell, Column, Group, Mark, Table, TableRow, Titles, Tone,
};
use diskproof_model::finding::{LimitedBy, RateLimit, Severity};
use diskproof_model::latency_search::{DepthTrial, LatencySearch};
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::Workload;
use diskproof_model::plan::{OFF_SUFFIX, SyncPolicy};
use diskproof_model::record::{Estimate, Record};
use diskproof_model::row::{OpRow, Row};
use diskproof_model::target::WriteCache;
use diskproof_model::units::{counted, format_latency, format_percent};

/// A rate with a wider relative half-width is too uncertain to compare methods by it. With a larger
/// value, short pages show tables whose order is chance; with a smaller one, they hide real
/// differences. Chosen, not measured.
const NOISY_WIDTH: f64 = 0.4;
/// A table with fewer rates does not compare methods, and is shown however noisy it is. The page of
/// `commit` compares the four values of wal_sync_method and sessions that share syncs.
const NOISY_RATES_MIN: usize = 5;

/// Block size, depth, span and cache mode: a figure has no meaning without them.
pub(crate) fn conditions_text(row: &Row) -> String {
    let workload = &row.data.workload;
    let mut facts = vec![labels::block(workload.block_bytes, &workload.block_mix)];
    facts.extend(labels::mix(&workload.streams));
    facts.extend(labels::sync(workload.sync));
    let depth = labels::depth(workload.depth, workload.workers);
    facts.push(format!("depth {depth}"));
    let span = labels::span(row.data.span_start_bytes, row.data.span_bytes);
    facts.push(format!("{} {span}", labels::access(&workload.access)));
    facts.extend(labels::offered(workload.rate));
    facts.extend(workload.streams.facts());
    facts.extend(workload.shape.facts());
    facts.push(labels::cache(row.data.cache.used).to_owned());
    if let Some(state) = workload.write_cache {
        facts.push(labels::switched_write_cache(state).to_owned());
    }
    facts.extend(labels::together(&row.figures.together_with));
    list(facts)
}

/// Span and cache mode if all measurements share them, so that a table need not repeat them; `None`
/// if they differ.
fn common_conditions_text(measurements: &[&Row]) -> Option<String> {
    let first = span_and_cache_text(measurements.first()?);
    for row in measurements {
        if span_and_cache_text(row) != first {
            return None;
        }
    }
    Some(first)
}

fn span_and_cache_text(row: &Row) -> String {
    let span = labels::span(row.data.span_start_bytes, row.data.span_bytes);
    format!("{span}, {}", labels::cache(row.data.cache.used))
}

/// Block size and requests in flight of a row, in fio's words: `8k`, `1M×8`. Empty for syncs, which
/// have no size.
fn request_size_text(kind: OpKind, workload: &Workload) -> String {
    if kind == OpKind::Sync {
        return String::new();
    }
    let block = labels::short_block(workload.block_bytes, &workload.block_mix);
    match workload.total_depth() {
        1 => block,
        in_flight => format!("{block}×{in_flight}"),
    }
}

/// The operations that a page shows of a measurement: the headline ones, and the syncs if one
/// follows several writes. Then neither the writes nor a commit contain the time of the sync.
pub(crate) fn shown_ops(measurement: &Row) -> Vec<(OpKind, OpRow<'_>)> {
    let mut ops = measurement.headline_ops();
    if let SyncPolicy::Every { writes: 2.., .. } = measurement.data.workload.sync
        && let Some(sync) = measurement.op(OpKind::Sync)
    {
        ops.push((OpKind::Sync, sync));
    }
    ops
}

/// A table cut to its first rows, and a line that counts the hidden ones.
pub(crate) fn first_rows_blocks(mut table: Table, rows_max: usize) -> Vec<Block> {
    let hidden = table.rows.len().saturating_sub(rows_max) as u64;
    table.rows.truncate(rows_max);
    let mut blocks = vec![Block::Table(table)];
    if hidden > 0 {
        let text = format!("{}: -v", counted(hidden, "more row"));
        blocks.push(Block::text(Tone::Dim, text));
    }
    blocks
}

/// Warns that most of these rates are too uncertain to compare methods, in place of the table that
/// would compare them; `None` where they are certain enough. `what` names the operations.
pub(crate) fn noise_warning<'e>(
    rates: impl Iterator<Item = &'e Estimate>,
    what: &str,
) -> Option<Block> {
    let (mut count, mut noisy) = (0, 0);
    for rate in rates {
        count += 1;
        if rate.relative_half_width().unwrap_or(f64::INFINITY) > NOISY_WIDTH {
            noisy += 1;
        }
    }
    if count < NOISY_RATES_MIN || 2 * noisy <= count {
        return None;
    }
    let text = format!(
        "Too noisy to compare methods: {noisy} of {count} rates of {what} are known to ±{} or \
         worse. Measure longer (--time), or when the machine is quieter. All rows: -v",
        format_percent(NOISY_WIDTH)
    );
    Some(Block::text(Tone::Warning, text))
}

/// The table of the workloads of one target, with its remarks and its legend.
pub(crate) struct Figures<'r> {
    measurements: Vec<&'r Row>,
    unit: LatencyUnit,
    table: Table,
}

impl<'r> Figures<'r> {
    /// Builds the table from those measurements of a target that `is_listed` selects; `None`
    /// without any.
    pub(crate) fn for_target(
        record: &'r Record,
        target: usize,
        is_listed: fn(&Row) -> bool,
    ) -> Option<Self> {
        let unit = LatencyUnit::from_record(record);
        let mut measurements = Vec::new();
        let mut rows = Vec::new();
        for (index, measurement) in record.measurements.iter().enumerate() {
            if measurement.data.target != target || !is_listed(measurement) {
                continue;
            }
            measurements.push(measurement);
            let mut own_rows = measurement_rows(measurement, unit);
            own_rows[0].group = Some(workload_group(record, index, measurement));
            rows.extend(own_rows);
        }
        if measurements.is_empty() {
            return None;
        }
        let mut table = Table::new("Figures", Vec::new(), rows);
        table.titles = Titles::Beside("workload".to_owned());
        for column in COLUMNS {
            table.columns.push(Column {
                place: column.place,
                ..Column::new(column.name, column.align)
            });
        }
        Some(Self {
            measurements,
            unit,
            table,
        })
    }

    /// The table, the remarks on its rows, and the legend of its signs.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = vec![Block::Table(self.table.clone())];
        blocks.extend(remarks::remark_blocks(&self.measurements, |_| true));
        let mut text = String::new();
        if let Some(common) = common_conditions_text(&self.measurements) {
            text.push_str(&format!("All {common}. "));
        }
        text.push_str(&format!("Latencies in {}. ", self.unit.name));
        text.push_str(&legend_text(&self.measurements));
        blocks.push(Block::text(Tone::Dim, text));
        blocks
    }

    /// The first remarks on failures and verification.
    pub(crate) fn urgent_notes(&self, notes_max: usize) -> Vec<Block> {
        let mut notes = remarks::remark_blocks(&self.measurements, RemarkKind::is_urgent);
        notes.truncate(notes_max);
        notes
    }

    /// The first rows and the notes. Rows that compare methods are replaced by a warning where
    /// noise hides the differences.
    pub(crate) fn first_rows_blocks(self, rows_max: usize, notes: Vec<Block>) -> Vec<Block> {
        let mut commit_rates = Vec::new();
        for measurement in &self.measurements {
            if let Some(commits) = measurement.op(OpKind::Commit) {
                commit_rates.push(&commits.figures.iops);
            }
        }
        let mut blocks = match noise_warning(commit_rates.into_iter(), "commits") {
            Some(noise) => vec![noise],
            None => first_rows_blocks(self.table, rows_max),
        };
        blocks.extend(notes);
        blocks
    }
}

fn workload_group(record: &Record, index: usize, measurement: &Row) -> Group {
    let mut note = vec![conditions_text(measurement)];
    if let Some(limited) = &measurement.figures.limited_by {
        note.push(limited_by_text(limited));
    }
    let mut codes = Vec::new();
    for finding in &record.findings {
        if finding.severity >= Severity::Warning && finding.concerns(index) {
            codes.push(finding.code.clone());
        }
    }
    Group {
        title: measurement.data.workload.name.clone(),
        note: list(note),
        codes,
        anchor: Some(format!("figure-{index}")),
        ..Group::default()
    }
}

/// A column of the table.
struct FigureColumn {
    name: &'static str,
    align: Align,
    place: Place,
}

impl FigureColumn {
    const fn words(name: &'static str, place: Place) -> Self {
        let align = Align::Left;
        Self { name, align, place }
    }

    const fn number(name: &'static str, place: Place) -> Self {
        let align = Align::Right;
        Self { name, align, place }
    }
}

/// The columns of the table, in the order of the cells of [`measurement_rows`]. Where not all fit,
/// those with the highest `Roomy` are dropped first.
const COLUMNS: [FigureColumn; 17] = [
    FigureColumn::words("op", Always),
    FigureColumn::words("block", Roomy(9)),
    FigureColumn::number("per s", Always),
    FigureColumn::number("± 95 %", Always),
    FigureColumn::words("95 % interval", Drawn),
    FigureColumn::number("MB/s", Roomy(4)),
    FigureColumn::number("mean", Page),
    FigureColumn::number("p50", Roomy(5)),
    FigureColumn::number("p90", Page),
    FigureColumn::number("p99", Always),
    FigureColumn::number("p99.9", Roomy(8)),
    FigureColumn::number("p99.99", Page),
    FigureColumn::number("max", Roomy(7)),
    FigureColumn::number("in flight", Page),
    FigureColumn::number("CPU", Page),
    FigureColumn::words("remarks", Always),
    FigureColumn::words("rate over time, from zero", Drawn),
];
/// The position of `remarks` in [`COLUMNS`].
const REMARKS_COLUMN: usize = COLUMNS.len() - 2;

/// A row for each operation of a measurement, or one that says that it was not measured. Never
/// empty. Values that all operations share are in the first row.
fn measurement_rows(measurement: &Row, unit: LatencyUnit) -> Vec<TableRow> {
    let mut rows = Vec::new();
    for (kind, op) in shown_ops(measurement) {
        let mut cells = figure_cells(kind, op, &measurement.data.workload, unit);
        if rows.is_empty() {
            cells.push(format!("{:.1}", measurement.data.achieved_depth).into());
            cells.push(format_percent(measurement.cpu_share()).into());
            cells.push(remarks::remark_words(measurement).into());
        } else {
            cells.extend([Cell::default(), Cell::default(), Cell::default()]);
        }
        let rates = measurement
            .cells_over_time(op)
            .iter()
            .map(|part| part.counts.ops as f64 / part.length_s)
            .collect();
        cells.push(Cell::drawn(Mark::Course(rates)));
        debug_assert_eq!(cells.len(), COLUMNS.len(), "a cell for each column");
        rows.push(TableRow::from(cells));
    }
    if rows.is_empty() {
        let mut cells = vec![Cell::default(); COLUMNS.len()];
        cells[REMARKS_COLUMN].text = "not measured".to_owned();
        rows.push(TableRow {
            tone: Tone::Error,
            ..TableRow::from(cells)
        });
    }
    rows
}

/// The cells from the operation to the longest latency.
fn figure_cells(kind: OpKind, op: OpRow<'_>, workload: &Workload, unit: LatencyUnit) -> Vec<Cell> {
    let iops = &op.figures.iops;
    let rate = iops.value_text();
    let width = iops.relative_half_width().unwrap_or(f64::INFINITY);
    let mut cells: Vec<Cell> = vec![
        kind.as_str().to_owned().into(),
        request_size_text(kind, workload).into(),
        rate.trim_end_matches("/s").replace(" M", "M").into(),
        labels::interval(iops).into(),
        Cell::drawn(Mark::Interval(width)),
        labels::megabytes(&op.figures.throughput).into(),
    ];
    let latency = op.figures.seen_latency();
    let (mut mean, mut max) = (None, None);
    if op.data.count > 0 {
        mean = Some(latency.mean.round() as u64);
    }
    // Requests without an answer waited, too.
    if op.data.count > 0 || latency.max > 0 {
        max = Some(latency.max);
    }
    for time in [
        mean,
        latency.p50,
        latency.p90,
        latency.p99,
        latency.p99_9,
        latency.p99_99,
        max,
    ] {
        cells.push(unit.number(time).into());
    }
    cells
}

/// The latencies of a page are in µs if the longest median is below this, else in ms. From here on,
/// the three decimals of a latency in ms are three digits.
const MICROSECONDS_BELOW_NS: u64 = 100_000;

/// States the conditions that the rows of all tables share, and the meaning of their columns.
pub(crate) fn shared_conditions_text(record: &Record) -> Option<String> {
    let rows: Vec<&Row> = record
        .measurements
        .iter()
        .filter(|row| row.figures.ping.is_none())
        .collect();
    if rows.is_empty() {
        return None;
    }
    let mut text = String::new();
    if let Some(common) = common_conditions_text(&rows) {
        text.push_str(&format!("{common} · "));
    }
    let unit = LatencyUnit::from_record(record).name;
    text.push_str(&format!(
        "latencies in {unit} · ±: half of the 95 % interval"
    ));
    Some(text)
}

/// The unit of all latencies of a page, and its length in nanoseconds.
#[derive(Clone, Copy)]
struct LatencyUnit {
    name: &'static str,
    ns: f64,
}

impl LatencyUnit {
    fn from_record(record: &Record) -> Self {
        let mut longest = None;
        for row in &record.measurements {
            if row.figures.ping.is_some() {
                continue;
            }
            for (_, op) in shown_ops(row) {
                longest = longest.max(op.figures.seen_latency().p50);
            }
        }
        match longest {
            Some(ns) if ns < MICROSECONDS_BELOW_NS => Self {
                name: "µs",
                ns: 1e3,
            },
            _ => Self {
                name: "ms",
                ns: 1e6,
            },
        }
    }

    /// A latency without its unit, or the sign for an unknown one.
    fn number(self, ns: Option<u64>) -> String {
        match ns {
            Some(ns) => labels::three_digits(ns as f64 / self.ns),
            None => labels::UNKNOWN.to_owned(),
        }
    }
}

/// Says where a table's intervals come from: `from run to run (4 earlier runs)`. A single run
/// cannot know how the next one differs.
fn interval_source_text(measurements: &[&Row]) -> String {
    let mut earlier_runs = None;
    let mut is_sliced = false;
    for row in measurements {
        earlier_runs = earlier_runs.max(row.run_to_run.map(|runs| runs.earlier_runs));
        is_sliced |= row.data.slices.len() > 1;
    }
    match earlier_runs {
        Some(count) => format!("from run to run ({count} earlier runs)"),
        None if is_sliced => "from slices of this run; from run to run unknown".to_owned(),
        None => "within this run; from run to run unknown".to_owned(),
    }
}

/// The signs that occur in a table and need an explanation.
#[derive(Default)]
struct Signs {
    no_interval: bool,
    no_percentile: bool,
    intended_start: bool,
}

impl Signs {
    fn from_rows(measurements: &[&Row]) -> Self {
        let mut signs = Self::default();
        for row in measurements {
            for (_, op) in shown_ops(row) {
                let latency = op.figures.seen_latency();
                let percentiles = [latency.p50, latency.p99, latency.p99_9];
                signs.no_interval |= op.figures.iops.relative_half_width().is_none();
                signs.no_percentile |= percentiles.contains(&None);
                signs.intended_start |= op.figures.latency_intended.is_some();
            }
        }
        signs
    }
}

/// Explains the signs that occur in a table.
fn legend_text(measurements: &[&Row]) -> String {
    let signs = Signs::from_rows(measurements);
    let basis_text = interval_source_text(measurements);
    let mut legend = format!("±: half of the 95 % interval of the rate, {basis_text}.");
    if signs.no_interval {
        legend.push_str(" ±?: measured too briefly for an interval.");
    }
    if signs.no_percentile {
        legend.push_str(" –:\u{a0}fewer than ten samples beyond it.");
    }
    if has_pair_without_cache(measurements) {
        legend.push_str(" -off: with the disk's write cache off.");
    }
    if signs.intended_start {
        legend.push_str(" Latencies under an offered load count from the intended start.");
    }
    legend
}

/// True if a workload was measured with the disk's write cache on, and again with it off.
fn has_pair_without_cache(measurements: &[&Row]) -> bool {
    let names_with_cache = names_by_cache(measurements, WriteCache::WriteBack);
    for name in names_by_cache(measurements, WriteCache::WriteThrough) {
        if let Some(name_with_cache) = name.strip_suffix(OFF_SUFFIX)
            && names_with_cache.contains(&name_with_cache)
        {
            return true;
        }
    }
    false
}

/// Names the workloads that were measured with the write cache in this state.
fn names_by_cache<'r>(measurements: &[&'r Row], state: WriteCache) -> Vec<&'r str> {
    let mut names = Vec::new();
    for row in measurements {
        let workload = &row.data.workload;
        if workload.write_cache == Some(state) {
            names.push(workload.name.as_str());
        }
    }
    names
}

/// `limited by queue depth: 32 in flight reach 5.0 times the rate of 1`.
pub(crate) fn limited_by_text(limited: &LimitedBy) -> String {
    match limited.limit {
        RateLimit::Unknown => format!("limit unknown: {}", limited.why),
        known => format!("limited by {}: {}", known.as_str(), limited.why),
    }
}

/// A table of the depths that a search by latency measured, under a heading.
pub(crate) fn depth_trial_blocks(record: &Record, search: &LatencySearch) -> Vec<Block> {
    let heading = format!(
        "latency target: {} % within {}, up to depth {}",
        search.target.percent,
        format_latency(search.target.latency_ns),
        search.depth_max
    );
    let names = ["depth", "rate", "requests", "late", "latency"];
    let rows = search
        .trials
        .iter()
        .map(|trial| depth_row(record, trial))
        .collect();
    vec![
        Block::Heading(heading),
        Block::table("Depths that were tried", names, rows),
    ]
}

fn depth_row(record: &Record, trial: &DepthTrial) -> Vec<String> {
    let late = match trial.late {
        0 => "0".to_owned(),
        late => {
            let share = late as f64 / trial.requests.max(1) as f64;
            format!("{late} ({})", format_percent(share))
        }
    };
    let outcome = if trial.holds { "kept" } else { "missed" };
    vec![
        trial.depth.to_string(),
        rates_text(record, &trial.workload),
        trial.requests.to_string(),
        late,
        outcome.to_owned(),
    ]
}

/// The rates of the operations of a workload; empty if it was not measured.
fn rates_text(record: &Record, workload: &str) -> String {
    let measurement = record
        .measurements
        .iter()
        .find(|row| row.data.workload.name == workload);
    let Some(measurement) = measurement else {
        return String::new();
    };
    let rates: Vec<String> = measurement
        .headline_ops()
        .iter()
        .map(|(_, op)| op.figures.iops.value_text())
        .collect();
    rates.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True if rates of 100/s with these half-widths are too noisy to compare.
    fn is_too_noisy(half_widths: &[f64]) -> bool {
        let rates: Vec<Estimate> = half_widths
            .iter()
            .map(|half_width| Estimate::new(10, 100.0, Some(*half_width), "1/s"))
            .collect();
        noise_warning(rates.iter(), "commits").is_some()
    }

    #[test]
    fn most_of_five_rates_or_more_are_noisy_beyond_their_limit() {
        assert!(is_too_noisy(&[41.0, 41.0, 41.0, 40.0, 40.0]));
        assert!(!is_too_noisy(&[41.0, 41.0, 40.0, 40.0, 40.0]));
        assert!(!is_too_noisy(&[41.0; 4]));
    }
}
