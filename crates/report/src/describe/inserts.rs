//! INSERTs of a PostgreSQL server in words: the table's cells, and what the server adds to the
//! disk's own commits.

use super::commits::METHODS;
use super::figures::{self, too_noisy};
use super::trials;
use crate::labels;
use diskproof_model::block::{Block, Tone};
use diskproof_model::digits::{figure_text, rounded};
use diskproof_model::postgres::{LoadRecord, PostgresPlan, PostgresRecord};
use diskproof_model::record::Estimate;
use diskproof_model::units::{counted, format_duration, format_latency, format_percent};

/// Columns of the table.
const COLUMNS: [&str; 8] = [
    "load",
    "per s",
    "± 95 %",
    "p50",
    "p99",
    "max",
    "disk alone",
    "per sync",
];
/// Rates that are known worse explain nothing.
const WIDTH_MAX: f64 = 0.25;
/// CPU time varies so much with what else the processor does.
const CPU_WIDTH: f64 = 0.1;
/// Two parts that explain less or more than this do not explain the whole.
const EXPLAINED: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// The tables of the INSERTs and of the settings that were tried, and what they mean.
pub(crate) fn blocks(postgres: &PostgresRecord) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(title(postgres))];
    if postgres.loads.is_empty() {
        blocks.push(Block::text(Tone::Error, "nothing was measured"));
    } else {
        let rows = postgres.loads.iter().map(row).collect();
        blocks.push(Block::table("INSERTs", COLUMNS, rows));
        let texts = explanations(postgres).into_iter();
        blocks.extend(texts.map(|text| Block::Text(Tone::Plain, text)));
        blocks.push(Block::text(Tone::Dim, LEGEND));
    }
    blocks.extend(trials::blocks(&postgres.trials));
    blocks
}

/// The same on a short page: all loads of the default method, of the others those with the most
/// sessions.
pub(crate) fn digest(postgres: &PostgresRecord) -> Vec<Block> {
    let loads = &postgres.loads;
    if loads.is_empty() {
        return blocks(postgres);
    }
    let most = loads.iter().map(|load| load.load.clients).max();
    let is_default = |load: &LoadRecord| {
        let load = &load.load;
        load.wal_sync_method == METHODS[0] && load.synchronous_commit && !load.pgbench
    };
    let (first, others): (Vec<_>, Vec<_>) = loads
        .iter()
        .partition(|load| is_default(load) || Some(load.load.clients) == most);
    let rows_max = first.len();
    let rows = first.into_iter().chain(others).map(row).collect();
    let mut blocks = vec![Block::Heading(title(postgres))];
    match too_noisy(loads.iter().map(|load| &load.iops), "INSERTs") {
        Some(noise) => blocks.push(noise),
        None => {
            if let Block::Table(table) = Block::table("INSERTs", COLUMNS, rows) {
                blocks.extend(figures::digest(table, rows_max));
            }
            let text = explanations(postgres).into_iter().next();
            blocks.extend(text.map(|text| Block::Text(Tone::Plain, text)));
        }
    }
    blocks.extend(trials::blocks(&postgres.trials));
    blocks
}

/// The title of the table.
fn title(postgres: &PostgresRecord) -> String {
    format!(
        "PostgreSQL {}: INSERTs of single rows, each committed",
        postgres.version
    )
}

/// What the columns mean.
const LEGEND: &str = "c4: 4 sessions. async: synchronous_commit off, so a crash may \
                                 lose the last commits. disk alone: commits per second in this run \
                                 without a server. per sync: INSERTs that share a sync of the WAL \
                                 (group commit).";

/// A row of the table.
fn row(load: &LoadRecord) -> Vec<String> {
    let latency = |ns: Option<u64>| ns.map_or(labels::UNKNOWN.to_owned(), format_latency);
    let own = load.own.as_ref();
    let own = own.map(|own| rounded(own.iops.value, own.iops.half_width_95));
    let shared = load
        .commits_per_sync
        .map(|count| rounded(count, Some(count * 0.02)));
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| labels::UNKNOWN.to_owned());
    vec![
        load.load.name.clone(),
        rounded(load.iops.value, load.iops.half_width_95),
        labels::interval(&load.iops),
        latency(load.latency_p50_ns),
        latency(load.latency_p99_ns),
        latency(load.latency_max_ns),
        or_unknown(own),
        or_unknown(shared),
    ]
}

/// What the server adds to the disk: a sentence for one session, and one for the most sessions,
/// both of the default method.
fn explanations(postgres: &PostgresRecord) -> Vec<String> {
    let of_default = || {
        let loads = postgres.loads.iter();
        loads.filter(|load| load.load.wal_sync_method == METHODS[0] && !load.load.pgbench)
    };
    let alone = of_default().find(|load| load.parts.is_some());
    let shared = of_default()
        .filter(|load| load.load.clients > 1 && load.commits_per_sync.is_some())
        .filter(|load| {
            let width = load.iops.relative_half_width();
            width.is_some_and(|width| width <= WIDTH_MAX)
        })
        .max_by_key(|load| load.load.clients);
    let disk_iops = alone.and_then(|load| load.own.as_ref());
    let mut texts: Vec<String> = alone.and_then(alone_text).into_iter().collect();
    texts.extend(shared.and_then(|load| {
        let per_sync = load.commits_per_sync?;
        let syncs = figure_text(load.iops.value / per_sync, load.iops.half_width_95, "1/s");
        let disk = disk_iops.map_or(String::new(), |own| {
            format!(
                " One session without a server makes {} commits on this disk ({}).",
                own.iops.value_text(),
                own.workload
            )
        });
        Some(format!(
            "{}: {} INSERTs share a sync, so {} need {syncs} syncs.{disk}",
            load.load.name,
            rounded(per_sync, Some(per_sync * 0.02)),
            load.iops.value_text(),
        ))
    }));
    texts
}

fn alone_text(load: &LoadRecord) -> Option<String> {
    let (parts, own) = load.parts.as_ref().zip(load.own.as_ref())?;
    let width = |rate: &Estimate| rate.relative_half_width().unwrap_or(1.0);
    let width = width(&load.iops).max(width(&own.iops));
    if width > WIDTH_MAX {
        return Some(format!(
            "{}: the rates are known only to ±{}, so they cannot be compared. Measure longer \
             (--time), or when the machine is quieter.",
            load.load.name,
            format_percent(width)
        ));
    }
    let time = |ns: f64| figure_text(ns, Some(ns * width), "ns");
    let conclusion = if EXPLAINED.contains(&parts.explained) {
        format!("Together that is {} of it", format_percent(parts.explained))
    } else {
        format!(
            "Together that is {} of it, so the two figures do not match; measure again when the \
             machine is quieter",
            format_percent(parts.explained)
        )
    };
    let client = load.client_cpu_ns.map_or(String::new(), |ns| {
        let time = figure_text(ns, Some(ns * CPU_WIDTH), "ns");
        format!(" diskproof itself uses {time} of CPU time for each.")
    });
    Some(format!(
        "{}: an INSERT takes {}. A commit on this disk takes {} ({}), and the server \
         without the disk {} (synchronous_commit off). {conclusion}. Each INSERT adds {:.0} bytes \
         of WAL.{client}",
        load.load.name,
        time(parts.insert_ns),
        time(parts.disk_ns),
        own.workload,
        time(parts.server_ns),
        load.wal_bytes_per_commit,
    ))
}

/// What a plan does with a server.
pub(crate) fn plan_text(plan: &PostgresPlan) -> String {
    format!(
        "PostgreSQL {} from {}: {} of INSERTs, {} each, in {}",
        plan.version,
        plan.programs,
        counted(plan.loads.len() as u64, "load"),
        format_duration(plan.slice_ns),
        counted(u64::from(2 * plan.rounds), "round"),
    )
}
