//! The table of workloads: every figure with its interval, its conditions and the remarks on it. Of
//! a search by latency, the table of depths.

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
use diskproof_model::row::{LatencySummary, OpRow, Row};
use diskproof_model::target::WriteCache;
use diskproof_model::units::{counted, format_latency, format_percent};

/// Methods whose rates are known no better than this cannot be compared.
const NOISY_WIDTH: f64 = 0.4;
/// Fewer rows compare no methods.
const NOISY_ROWS_MIN: usize = 5;

/// Block size, depth, span and cache mode: a figure has no meaning without them.
pub(crate) fn conditions(row: &Row) -> String {
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
    let switched = workload.write_cache.map(labels::switched_write_cache);
    facts.extend(switched.map(str::to_owned));
    facts.extend(labels::together(&row.figures.together_with));
    list(facts)
}

/// Span and cache mode if all measurements share them, so that a table need not repeat them.
fn common_conditions(measurements: &[&Row]) -> Option<String> {
    let first = span_and_cache(measurements.first()?);
    for row in measurements {
        if span_and_cache(row) != first {
            return None;
        }
    }
    Some(first)
}

fn span_and_cache(row: &Row) -> String {
    let span = labels::span(row.data.span_start_bytes, row.data.span_bytes);
    format!("{span}, {}", labels::cache(row.data.cache.used))
}

/// Block size and requests in flight of a row, in fio's words: `8k`, `1M×8`.
fn request(kind: OpKind, workload: &Workload) -> String {
    let block = labels::short_block(workload.block_bytes, &workload.block_mix);
    let in_flight = u64::from(workload.depth) * u64::from(workload.workers);
    match (kind, in_flight) {
        (OpKind::Sync, _) => String::new(),
        (_, 1) => block,
        (_, n) => format!("{block}×{n}"),
    }
}

/// The headline operations, and the syncs if one follows several writes: then neither the writes
/// nor a commit contain its time.
pub(crate) fn shown_ops(measurement: &Row) -> Vec<(OpKind, OpRow<'_>)> {
    let mut ops = measurement.headline_ops();
    let sync = measurement.op(OpKind::Sync);
    if let (SyncPolicy::Every { writes: 2.., .. }, Some(sync)) =
        (measurement.data.workload.sync, sync)
    {
        ops.push((OpKind::Sync, sync));
    }
    ops
}

/// Under an offered load the latency of a request begins at its intended start, not when a free
/// slot admitted it (coordinated omission).
pub(crate) fn shown_latency(op: OpRow<'_>) -> &LatencySummary {
    op.figures
        .latency_intended
        .as_ref()
        .unwrap_or(&op.figures.latency)
}

/// The table of workloads of one target.
pub(crate) struct Figures<'r> {
    measurements: Vec<&'r Row>,
    unit: LatencyUnit,
    table: Table,
}

/// The first rows of a table, and how many more there are.
pub(crate) fn digest(mut table: Table, rows_max: usize) -> Vec<Block> {
    let more = table.rows.len().saturating_sub(rows_max) as u64;
    table.rows.truncate(rows_max);
    let more = (more > 0).then(|| format!("{}: -v", counted(more, "more row")));
    let more = more.map(|text| Block::text(Tone::Dim, text));
    [Block::Table(table)].into_iter().chain(more).collect()
}

/// In place of rows that compare methods: that most of their rates are too uncertain for that.
pub(crate) fn too_noisy<'e>(
    rates: impl Iterator<Item = &'e Estimate>,
    what: &str,
) -> Option<Block> {
    let widths = rates.map(|rate| rate.relative_half_width().unwrap_or(f64::INFINITY));
    let widths: Vec<f64> = widths.collect();
    let noisy = widths.iter().filter(|width| **width > NOISY_WIDTH).count();
    (widths.len() >= NOISY_ROWS_MIN && 2 * noisy > widths.len()).then(|| {
        let text = format!(
            "Too noisy to compare methods: {noisy} of {} rates of {what} are known to ±{} or \
             worse. Measure longer (--time), or when the machine is quieter. All rows: -v",
            widths.len(),
            format_percent(NOISY_WIDTH)
        );
        Block::text(Tone::Warning, text)
    })
}

impl<'r> Figures<'r> {
    /// Of a target, without what has another form; nothing where nothing else was measured.
    pub(crate) fn of(
        record: &'r Record,
        target: usize,
        is_listed: fn(&Row) -> bool,
    ) -> Option<Self> {
        let all = record.measurements.iter().enumerate();
        let own = all.filter(|(_, m)| m.data.target == target && is_listed(m));
        let (mut measurements, mut rows) = (Vec::new(), Vec::new());
        let unit = latency_unit(record);
        for (index, m) in own {
            measurements.push(m);
            let mut group = Some(group(record, index, m));
            let words = remarks::words(m);
            let ops = shown_ops(m);
            if ops.is_empty() {
                let mut cells = vec![Cell::default(); COLUMNS.len()];
                cells[COLUMNS.len() - 2] = "not measured".to_owned().into();
                let (group, tone) = (group.take(), Tone::Error);
                rows.push(TableRow { group, cells, tone });
            }
            for (kind, op) in ops {
                let is_first = group.is_some();
                let mut cells = figure_cells(kind, op, m, unit);
                let of_all = |text: String| Cell::from(if is_first { text } else { String::new() });
                cells.push(of_all(format!("{:.1}", m.data.achieved_depth)));
                cells.push(of_all(format_percent(m.cpu_share())));
                cells.push(of_all(words.clone()));
                let rates = m.cells_over_time(op);
                let rates = rates.iter().map(|of| of.cell.ops as f64 / of.length_s);
                cells.push(Cell::drawn(Mark::Course(rates.collect())));
                let group = group.take();
                rows.push(TableRow {
                    group,
                    ..TableRow::from(cells)
                });
            }
        }
        let column = |(name, align, place)| Column {
            place,
            ..Column::new(name, align)
        };
        let table = Table {
            titles: Titles::Beside("workload".to_owned()),
            ..Table::new("Figures", COLUMNS.map(column).to_vec(), rows)
        };
        (!measurements.is_empty()).then_some(Self {
            measurements,
            unit,
            table,
        })
    }

    /// The rows, the remarks on them, and the meaning of the signs.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = vec![Block::Table(self.table.clone())];
        blocks.extend(remarks::notes(&self.measurements, |_| true));
        let all = common_conditions(&self.measurements).map(|all| format!("All {all}. "));
        let (all, unit) = (all.unwrap_or_default(), self.unit.0);
        let legend = format!("{all}Latencies in {unit}. {}", legend(&self.measurements));
        blocks.push(Block::text(Tone::Dim, legend));
        blocks
    }

    /// At most so many remarks on what failed, and on what was verified.
    pub(crate) fn urgent_notes(&self, notes_max: usize) -> Vec<Block> {
        let is_urgent = |kind| matches!(kind, RemarkKind::Failed | RemarkKind::Verified);
        let mut notes = remarks::notes(&self.measurements, is_urgent);
        notes.truncate(notes_max);
        notes
    }

    /// So many rows and the notes. Rows of methods that the noise hides are left out.
    pub(crate) fn digest(self, rows_max: usize, notes: Vec<Block>) -> Vec<Block> {
        let own = self.measurements.iter();
        let commits = own.filter_map(|m| m.op(OpKind::Commit));
        let noise = too_noisy(commits.map(|op| &op.figures.iops), "commits");
        let mut blocks = noise.map_or_else(|| digest(self.table, rows_max), |noise| vec![noise]);
        blocks.extend(notes);
        blocks
    }
}

fn group(record: &Record, index: usize, m: &Row) -> Group {
    let limited = m.figures.limited_by.as_ref().map(limited_by_text);
    let doubts = record.findings.iter();
    let doubts = doubts.filter(|f| f.severity >= Severity::Warning && f.concerns(index));
    Group {
        title: m.data.workload.name.clone(),
        note: list([conditions(m)].into_iter().chain(limited)),
        codes: doubts.map(|finding| finding.code.clone()).collect(),
        anchor: Some(format!("figure-{index}")),
        ..Group::default()
    }
}

/// Columns of the table.
const COLUMNS: [(&str, Align, Place); 17] = [
    ("op", Align::Left, Always),
    ("block", Align::Left, Roomy(9)),
    ("per s", Align::Right, Always),
    ("± 95 %", Align::Right, Always),
    ("95 % interval", Align::Left, Drawn),
    ("MB/s", Align::Right, Roomy(4)),
    ("mean", Align::Right, Page),
    ("p50", Align::Right, Roomy(5)),
    ("p90", Align::Right, Page),
    ("p99", Align::Right, Always),
    ("p99.9", Align::Right, Roomy(8)),
    ("p99.99", Align::Right, Page),
    ("max", Align::Right, Roomy(7)),
    ("in flight", Align::Right, Page),
    ("CPU", Align::Right, Page),
    ("remarks", Align::Left, Always),
    ("rate over time, from zero", Align::Left, Drawn),
];

/// The cells from the operation to the longest latency.
fn figure_cells(kind: OpKind, op: OpRow<'_>, m: &Row, unit: LatencyUnit) -> Vec<Cell> {
    let latency = shown_latency(op);
    let interval = op.figures.iops.relative_half_width();
    let rate = op.figures.iops.value_text();
    let any = |ns: u64| (op.data.count > 0).then_some(ns);
    let mut cells: Vec<Cell> = vec![
        kind.as_str().to_owned().into(),
        request(kind, &m.data.workload).into(),
        rate.trim_end_matches("/s").replace(" M", "M").into(),
        labels::interval(&op.figures.iops).into(),
        Cell::drawn(Mark::Interval(interval.unwrap_or(f64::INFINITY))),
        labels::megabytes(&op.figures.throughput).into(),
    ];
    let times = [
        any(latency.mean.round() as u64),
        latency.p50,
        latency.p90,
        latency.p99,
        latency.p99_9,
        latency.p99_99,
        any(latency.max),
    ];
    let text = |ns: u64| labels::three_digits(ns as f64 / unit.1);
    cells.extend(times.map(|ns| Cell::from(labels::or_unknown(ns.map(text)))));
    cells
}

/// All latencies of a page have one unit: µs if the longest median is shorter than this, else ms.
const MICROSECONDS_BELOW_NS: u64 = 100_000;

/// What the rows of all tables share, and the meaning of their columns.
pub(crate) fn shared_conditions(record: &Record) -> Option<String> {
    let rows = record
        .measurements
        .iter()
        .filter(|m| m.figures.ping.is_none());
    let rows: Vec<&Row> = rows.collect();
    let shared = common_conditions(&rows).map(|shared| format!("{shared} · "));
    let (shared, unit) = (shared.unwrap_or_default(), latency_unit(record).0);
    (!rows.is_empty())
        .then(|| format!("{shared}latencies in {unit} · ±: half of the 95 % interval"))
}

/// The unit of all latencies of a page, and its nanoseconds.
type LatencyUnit = (&'static str, f64);

fn latency_unit(record: &Record) -> LatencyUnit {
    let rows = record
        .measurements
        .iter()
        .filter(|m| m.figures.ping.is_none());
    let ops = rows.flat_map(shown_ops);
    let longest = ops.filter_map(|(_, op)| shown_latency(op).p50).max();
    match longest {
        Some(ns) if ns < MICROSECONDS_BELOW_NS => ("µs", 1e3),
        _ => ("ms", 1e6),
    }
}

/// What the intervals of a table know of: a single run cannot know how the next one differs.
fn basis(measurements: &[&Row]) -> String {
    let runs = measurements.iter().filter_map(|m| m.run_to_run);
    let earlier = runs.map(|runs| runs.earlier_runs).max();
    let is_sliced = measurements.iter().any(|m| m.data.slices.len() > 1);
    match earlier {
        Some(earlier) => format!("from run to run ({earlier} earlier runs)"),
        None if is_sliced => "from slices of this run; from run to run unknown".to_owned(),
        None => "within this run; from run to run unknown".to_owned(),
    }
}

/// The meaning of the signs that occur in a table.
fn legend(measurements: &[&Row]) -> String {
    let all = measurements.iter().flat_map(|m| shown_ops(m));
    let ops: Vec<OpRow<'_>> = all.map(|(_, op)| op).collect();
    let basis = basis(measurements);
    let mut legend = format!("±: half of the 95 % interval of the rate, {basis}.");
    if ops
        .iter()
        .any(|op| op.figures.iops.relative_half_width().is_none())
    {
        legend.push_str(" ±?: measured too briefly for an interval.");
    }
    let has_unknown = |op: &OpRow<'_>| {
        let latency = shown_latency(*op);
        [latency.p50, latency.p99, latency.p99_9].contains(&None)
    };
    if ops.iter().any(has_unknown) {
        legend.push_str(" –:\u{a0}fewer than ten samples beyond it.");
    }
    let names = |state| {
        let workloads = measurements.iter().map(|m| &m.data.workload);
        let of_state = workloads.filter(move |workload| workload.write_cache == Some(state));
        of_state.map(|workload| workload.name.as_str())
    };
    let with_cache: Vec<&str> = names(WriteCache::WriteBack).collect();
    let is_off = |name: &str| {
        name.strip_suffix(OFF_SUFFIX)
            .is_some_and(|on| with_cache.contains(&on))
    };
    if names(WriteCache::WriteThrough).any(is_off) {
        legend.push_str(" -off: with the disk's write cache off.");
    }
    if ops.iter().any(|op| op.figures.latency_intended.is_some()) {
        legend.push_str(" Latencies under an offered load count from the intended start.");
    }
    legend
}

/// `limited by queue depth: 32 in flight reach 5.0 times the rate of 1`.
pub(crate) fn limited_by_text(limited: &LimitedBy) -> String {
    match limited.limit {
        RateLimit::Unknown => format!("limit unknown: {}", limited.why),
        known => format!("limited by {}: {}", known.as_str(), limited.why),
    }
}

/// A row for each depth that was measured, under its heading.
pub(crate) fn depth_trials(record: &Record, search: &LatencySearch) -> Vec<Block> {
    let rows = search.trials.iter().map(|trial| depth_row(record, trial));
    let (percent, depth_max) = (search.target.percent, search.depth_max);
    let limit = format_latency(search.target.latency_ns);
    let names = ["depth", "rate", "requests", "late", "latency"];
    vec![
        Block::Heading(format!(
            "latency target: {percent} % within {limit}, up to depth {depth_max}"
        )),
        Block::table("Depths that were tried", names, rows.collect()),
    ]
}

fn depth_row(record: &Record, trial: &DepthTrial) -> Vec<String> {
    let mut measurements = record.measurements.iter();
    let own = measurements.find(|m| m.data.workload.name == trial.workload);
    let rates = own.map(|m| m.headline_ops()).unwrap_or_default();
    let rates: Vec<String> = rates
        .iter()
        .map(|(_, op)| op.figures.iops.value_text())
        .collect();
    let share = trial.late as f64 / trial.requests.max(1) as f64;
    let late = match trial.late {
        0 => "0".to_owned(),
        late => format!("{late} ({})", format_percent(share)),
    };
    let outcome = if trial.holds { "kept" } else { "missed" };
    vec![
        trial.depth.to_string(),
        rates.join(" + "),
        trial.requests.to_string(),
        late,
        outcome.to_owned(),
    ]
}
