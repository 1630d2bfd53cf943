//! What a PostgreSQL server of a run's own did, in words: its INSERTs, what it adds to the disk's
//! own commits, and the settings that it tried.

use super::figures::{self, too_noisy};
use super::verdict::METHODS;
use crate::labels;
use diskproof_model::block::{Block, Column, Table, TableRow, Tone};
use diskproof_model::digits::{figure_text, rounded};
use diskproof_model::postgres::{
    LoadRow, PostgresPlan, PostgresRecord, TrialGain, TrialOutcome, TrialPlan, TrialRow,
};
use diskproof_model::record::Estimate;
use diskproof_model::units::{counted, format_bytes, format_duration, format_percent};

/// Columns of the table.
const COLUMNS: &str = "load | per s | ± 95 % | p50 | p99 | max | disk alone | per sync";
/// Rates that are known worse explain nothing.
const WIDTH_MAX: f64 = 0.25;
/// CPU time varies so much with what else the processor does.
const CPU_WIDTH: f64 = 0.1;
/// Two parts that explain less or more than this do not explain the whole.
const EXPLAINED: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// The tables of the INSERTs and of the settings that were tried, and what they mean.
pub(crate) fn blocks(postgres: &PostgresRecord) -> Vec<Block> {
    let mut blocks = vec![title(postgres)];
    if postgres.loads.is_empty() {
        blocks.push(Block::text(Tone::Error, "nothing was measured"));
    } else {
        let rows = postgres.loads.iter().map(row).collect();
        blocks.push(Block::table("INSERTs", COLUMNS.split(" | "), rows));
        blocks.extend(explanations(postgres));
        blocks.push(Block::text(Tone::Dim, LEGEND));
    }
    blocks.extend(trials(&postgres.trials));
    blocks
}

/// The same on a short page: all loads of the default method, of the others those with the most
/// sessions.
pub(crate) fn digest(postgres: &PostgresRecord) -> Vec<Block> {
    let loads = &postgres.loads;
    if loads.is_empty() {
        return blocks(postgres);
    }
    let most = loads.iter().map(|load| load.data.load.clients).max();
    let is_default = |load: &LoadRow| {
        let load = &load.data.load;
        load.wal_sync_method == METHODS[0] && load.synchronous_commit && !load.pgbench
    };
    let is_first = |load: &&LoadRow| is_default(load) || Some(load.data.load.clients) == most;
    let (first, others): (Vec<_>, Vec<_>) = loads.iter().partition(is_first);
    let rows_max = first.len();
    let rows = first.into_iter().chain(others).map(|load| row(load).into());
    let mut blocks = vec![title(postgres)];
    match too_noisy(loads.iter().map(|load| &load.figures.iops), "INSERTs") {
        Some(noise) => blocks.push(noise),
        None => {
            let columns = Column::numbers(COLUMNS.split(" | "));
            let table = Table::new("INSERTs", columns, rows.collect());
            blocks.extend(figures::digest(table, rows_max));
            blocks.extend(explanations(postgres).into_iter().take(1));
        }
    }
    blocks.extend(trials(&postgres.trials));
    blocks
}

/// The title of the table.
fn title(postgres: &PostgresRecord) -> Block {
    let version = &postgres.version;
    Block::Heading(format!(
        "PostgreSQL {version}: INSERTs of single rows, each committed"
    ))
}

/// What the columns mean.
const LEGEND: &str = "c4: 4 sessions. async: synchronous_commit off, so a crash may \
                                 lose the last commits. disk alone: commits per second in this run \
                                 without a server. per sync: INSERTs that share a sync of the WAL \
                                 (group commit).";

/// A row of the table.
fn row(load: &LoadRow) -> Vec<String> {
    let own = load.figures.own.as_ref();
    let own = own.map(|own| rounded(own.iops.value, own.iops.half_width_95));
    let shared = load.figures.commits_per_sync;
    let shared = shared.map(|count| rounded(count, Some(count * 0.02)));
    vec![
        load.data.load.name.clone(),
        rounded(load.figures.iops.value, load.figures.iops.half_width_95),
        labels::interval(&load.figures.iops),
        labels::latency(load.figures.latency_p50_ns),
        labels::latency(load.figures.latency_p99_ns),
        labels::latency(load.figures.latency_max_ns),
        labels::or_unknown(own),
        labels::or_unknown(shared),
    ]
}

/// What the server adds to the disk: a sentence for one session, and one for the most sessions,
/// both of the default method.
fn explanations(postgres: &PostgresRecord) -> Vec<Block> {
    let of_default = || {
        let loads = postgres.loads.iter();
        loads.filter(|load| load.data.load.wal_sync_method == METHODS[0] && !load.data.load.pgbench)
    };
    let alone = of_default().find(|load| load.figures.parts.is_some());
    let is_shared = |load: &&LoadRow| {
        let width = load.figures.iops.relative_half_width();
        load.data.load.clients > 1
            && load.figures.commits_per_sync.is_some()
            && width.is_some_and(|width| width <= WIDTH_MAX)
    };
    let shared = of_default().filter(is_shared);
    let shared = shared.max_by_key(|load| load.data.load.clients);
    let disk_iops = alone.and_then(|load| load.figures.own.as_ref());
    let shared = shared.and_then(|load| {
        let per_sync = load.figures.commits_per_sync?;
        let syncs = figure_text(
            load.figures.iops.value / per_sync,
            load.figures.iops.half_width_95,
            "1/s",
        );
        let disk = disk_iops.map_or(String::new(), |own| {
            let (rate, workload) = (own.iops.value_text(), &own.workload);
            format!(" One session without a server makes {rate} commits on this disk ({workload}).")
        });
        let (name, rate) = (&load.data.load.name, load.figures.iops.value_text());
        let shared = rounded(per_sync, Some(per_sync * 0.02));
        let text = format!("{name}: {shared} INSERTs share a sync, so {rate} need {syncs} syncs.");
        Some(text + &disk)
    });
    let texts = alone.and_then(alone_text).into_iter().chain(shared);
    texts.map(|text| Block::text(Tone::Plain, text)).collect()
}

fn alone_text(load: &LoadRow) -> Option<String> {
    let (parts, own) = load.figures.parts.as_ref().zip(load.figures.own.as_ref())?;
    let width = |rate: &Estimate| rate.relative_half_width().unwrap_or(1.0);
    let width = width(&load.figures.iops).max(width(&own.iops));
    if width > WIDTH_MAX {
        return Some(format!(
            "{}: the rates are known only to ±{}, so they cannot be compared. Measure longer \
             (--time), or when the machine is quieter.",
            load.data.load.name,
            format_percent(width)
        ));
    }
    let time = |ns: f64| figure_text(ns, Some(ns * width), "ns");
    let doubt = if EXPLAINED.contains(&parts.explained) {
        ""
    } else {
        ", so the two figures do not match; measure again when the machine is quieter"
    };
    let client = load.figures.client_cpu_ns.map_or(String::new(), |ns| {
        let time = figure_text(ns, Some(ns * CPU_WIDTH), "ns");
        format!(" diskproof itself uses {time} of CPU time for each.")
    });
    Some(format!(
        "{}: an INSERT takes {}. A commit on this disk takes {} ({}), and the server \
         without the disk {} (synchronous_commit off). Together that is {} of it{doubt}. Each \
         INSERT adds {:.0} bytes of WAL.{client}",
        load.data.load.name,
        time(parts.insert_ns),
        time(parts.disk_ns),
        own.workload,
        time(parts.server_ns),
        format_percent(parts.explained),
        load.figures.wal_bytes_per_commit
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

/// What the columns of tried settings mean.
const TRIALS_LEGEND: &str = "gain: rate with the tried value over rate with the default, and \
                                 its 95 % interval. Default and tried value alternate in random \
                                 order. Scans read a table larger than the server's cache, without \
                                 the page cache, and the disk's counters confirm their reads.";

/// The table of settings under its title; nothing where nothing was tried.
fn trials(trials: &[TrialRow]) -> Vec<Block> {
    if trials.is_empty() {
        return Vec::new();
    }
    let mut blocks = tried_settings(trials);
    blocks.push(Block::text(Tone::Dim, TRIALS_LEGEND));
    blocks
}

/// The table alone; nothing where nothing was tried.
pub(crate) fn tried_settings(trials: &[TrialRow]) -> Vec<Block> {
    if trials.is_empty() {
        return Vec::new();
    }
    let names = ["setting", "default", "tried", "gain", "95 %", "result"];
    let rows = trials.iter().map(trial_row).collect();
    vec![
        Block::Heading("Server settings, each compared with its default".to_owned()),
        Block::words("Settings that were tried", names, rows),
    ]
}

fn trial_row(tried: &TrialRow) -> TableRow {
    let trial = &tried.data.trial;
    let gain = tried.figures.gain.as_ref();
    let half = |gain: &TrialGain| (gain.high_95 - gain.low_95) / 2.0;
    let ratio = gain.map(|gain| format!("{}×", rounded(gain.value, Some(half(gain)))));
    let interval = gain.map(|gain| format!("{:.2}–{:.2}", gain.low_95, gain.high_95));
    let outcome = match tried.figures.outcome {
        TrialOutcome::Faster => "faster",
        TrialOutcome::Same => "no effect",
        TrialOutcome::Slower => "slower",
        TrialOutcome::Undecided => "not decided",
        TrialOutcome::Unproven => "not proven",
        TrialOutcome::Untested => "not tried",
    };
    TableRow::from(vec![
        trial.setting.clone(),
        trial.default.clone(),
        labels::or_unknown(trial.candidate.clone()),
        labels::or_unknown(ratio),
        labels::or_unknown(interval),
        outcome.to_owned(),
    ])
}

/// What a plan tries.
pub(crate) fn trial_plan_text(plan: &TrialPlan) -> String {
    let names: Vec<&str> = plan.trials.iter().map(|t| t.setting.as_str()).collect();
    format!(
        "tries {} within {}, up to {} each, with scans of a table of {}",
        names.join(", "),
        format_duration(plan.time_ns),
        counted(u64::from(plan.pairs_max), "pair"),
        format_bytes(plan.table_bytes),
    )
}
