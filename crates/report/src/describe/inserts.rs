//! The PostgreSQL server that a run started, in words: its INSERTs, what it adds to the disk's own
//! commits, and the settings that were tried on it.

use super::figures::{self, noise_warning};
use crate::labels;
use diskproof_model::block::{Block, Column, Table, TableRow, Tone};
use diskproof_model::digits::{figure_text, rounded};
use diskproof_model::postgres::{
    DEFAULT_SYNC_METHOD, LoadRow, PostgresPlan, PostgresRecord, TrialGain, TrialOutcome, TrialPlan,
    TrialRow,
};
use diskproof_model::record::Estimate;
use diskproof_model::units::{counted, format_bytes, format_duration, format_percent};

/// Columns of the table of INSERTs.
const COLUMNS: &str = "load | per s | ± 95 % | p50 | p99 | max | disk alone | per sync";
/// Rates with a wider relative half-width are not explained. With a larger value, the sentences
/// would split times whose differences are mostly chance. Chosen, not measured.
const WIDTH_MAX: f64 = 0.25;
/// CPU times print with the digits of this relative half-width: they vary with the other load of
/// the processor.
const CPU_WIDTH: f64 = 0.1;
/// The number of INSERTs that share a sync prints with the digits of this relative half-width,
/// because it has no interval of its own.
const PER_SYNC_WIDTH: f64 = 0.02;
/// The disk's part and the server's part explain the time of an INSERT if their sum is within this
/// range of it. Outside of it, the sentence says that the figures do not match. The ends are 1 +
/// [`WIDTH_MAX`], by which the rates may be wrong, and its inverse.
const EXPLAINED: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// Describes the INSERTs and the settings that were tried.
pub(crate) fn blocks(postgres: &PostgresRecord) -> Vec<Block> {
    let mut blocks = vec![title_block(postgres)];
    if postgres.loads.is_empty() {
        blocks.push(Block::text(Tone::Error, "nothing was measured"));
    } else {
        let rows = postgres.loads.iter().map(load_row).collect();
        blocks.push(Block::table("INSERTs", COLUMNS.split(" | "), rows));
        blocks.extend(explanation_blocks(postgres));
        blocks.push(Block::text(Tone::Dim, LEGEND));
    }
    blocks.extend(trial_blocks(&postgres.trials));
    blocks
}

/// Describes the same on a short page: all loads of the default method, of the others those with
/// the most sessions.
pub(crate) fn short_blocks(postgres: &PostgresRecord) -> Vec<Block> {
    if postgres.loads.is_empty() {
        return blocks(postgres);
    }
    let mut blocks = vec![title_block(postgres)];
    let rates = postgres.loads.iter().map(|load| &load.figures.iops);
    match noise_warning(rates, "INSERTs") {
        Some(noise) => blocks.push(noise),
        None => {
            blocks.extend(short_loads_blocks(&postgres.loads));
            blocks.extend(explanation_blocks(postgres).into_iter().take(1));
        }
    }
    blocks.extend(trial_blocks(&postgres.trials));
    blocks
}

/// The table of INSERTs with the rows that a short page shows, and a line that counts the others.
fn short_loads_blocks(loads: &[LoadRow]) -> Vec<Block> {
    let most_clients = loads.iter().map(|load| load.data.load.clients).max();
    let mut rows = Vec::new();
    let mut other_rows = Vec::new();
    for load in loads {
        let has_most_clients = Some(load.data.load.clients) == most_clients;
        let is_durable_default = is_default_method(load) && load.data.load.synchronous_commit;
        if has_most_clients || is_durable_default {
            rows.push(TableRow::from(load_row(load)));
        } else {
            other_rows.push(TableRow::from(load_row(load)));
        }
    }
    let rows_max = rows.len();
    rows.extend(other_rows);
    let columns = Column::numbers(COLUMNS.split(" | "));
    figures::first_rows_blocks(Table::new("INSERTs", columns, rows), rows_max)
}

/// True if a load commits by PostgreSQL's default method, and is not pgbench's.
fn is_default_method(load: &LoadRow) -> bool {
    load.data.load.wal_sync_method == DEFAULT_SYNC_METHOD && !load.data.load.pgbench
}

fn title_block(postgres: &PostgresRecord) -> Block {
    let version = &postgres.version;
    Block::Heading(format!(
        "PostgreSQL {version}: INSERTs of single rows, each committed"
    ))
}

/// Explains the columns of the table of INSERTs.
const LEGEND: &str = "c4: 4 sessions. async: synchronous_commit off, so a crash may \
                                 lose the last commits. disk alone: commits per second in this run \
                                 without a server. per sync: INSERTs that share a sync of the WAL \
                                 (group commit).";

fn load_row(load: &LoadRow) -> Vec<String> {
    let figures = &load.figures;
    let disk_alone = match &figures.own {
        Some(own) => rounded(own.iops.value, own.iops.half_width_95),
        None => labels::UNKNOWN.to_owned(),
    };
    vec![
        load.data.load.name.clone(),
        rounded(figures.iops.value, figures.iops.half_width_95),
        labels::interval(&figures.iops),
        labels::latency(figures.latency_p50_ns),
        labels::latency(figures.latency_p99_ns),
        labels::latency(figures.latency_max_ns),
        disk_alone,
        labels::or_unknown(figures.commits_per_sync.map(per_sync_text)),
    ]
}

fn per_sync_text(commits: f64) -> String {
    rounded(commits, Some(commits * PER_SYNC_WIDTH))
}

/// Explains what the server adds to the disk by the default method: a sentence for one session, and
/// one for the most sessions that share syncs.
fn explanation_blocks(postgres: &PostgresRecord) -> Vec<Block> {
    let loads: Vec<&LoadRow> = postgres
        .loads
        .iter()
        .filter(|load| is_default_method(load))
        .collect();
    let mut texts = Vec::new();
    let alone = loads.iter().find(|load| load.figures.parts.is_some());
    if let Some(alone) = alone {
        texts.extend(single_session_text(alone));
    }
    let most_shared = loads
        .iter()
        .filter(|load| shares_syncs(load))
        .max_by_key(|load| load.data.load.clients);
    if let Some(load) = most_shared
        && let Some(per_sync) = load.figures.commits_per_sync
    {
        let mut text = shared_syncs_text(load, per_sync);
        if let Some(alone) = alone {
            text.push_str(&own_commits_text(alone));
        }
        texts.push(text);
    }
    texts
        .into_iter()
        .map(|text| Block::text(Tone::Plain, text))
        .collect()
}

/// True if several sessions shared syncs, at a rate that is known well enough.
fn shares_syncs(load: &LoadRow) -> bool {
    load.data.load.clients > 1
        && load.figures.commits_per_sync.is_some()
        && relative_width(&load.figures.iops) <= WIDTH_MAX
}

/// The relative half-width of a rate; 1 for a rate without an interval, which is not known at all.
fn relative_width(rate: &Estimate) -> f64 {
    rate.relative_half_width().unwrap_or(1.0)
}

fn shared_syncs_text(load: &LoadRow, per_sync: f64) -> String {
    let iops = &load.figures.iops;
    let syncs = figure_text(iops.value / per_sync, iops.half_width_95, "1/s");
    format!(
        "{}: {} INSERTs share a sync, so {} need {syncs} syncs.",
        load.data.load.name,
        per_sync_text(per_sync),
        iops.value_text()
    )
}

/// Says how fast one session commits without a server, as a further sentence. Empty where that was
/// not measured.
fn own_commits_text(alone: &LoadRow) -> String {
    let Some(own) = &alone.figures.own else {
        return String::new();
    };
    format!(
        " One session without a server makes {} commits on this disk ({}).",
        own.iops.value_text(),
        own.workload
    )
}

/// Says how long an INSERT of one session takes, and which part of it is the disk's. `None` where
/// the parts were not measured.
fn single_session_text(load: &LoadRow) -> Option<String> {
    let parts = load.figures.parts.as_ref()?;
    let own = load.figures.own.as_ref()?;
    let width = relative_width(&load.figures.iops).max(relative_width(&own.iops));
    if width > WIDTH_MAX {
        return Some(format!(
            "{}: the rates are known only to ±{}, so they cannot be compared. Measure longer \
             (--time), or when the machine is quieter.",
            load.data.load.name,
            format_percent(width)
        ));
    }
    let doubt = if EXPLAINED.contains(&parts.explained) {
        ""
    } else {
        ", so the two figures do not match; measure again when the machine is quieter"
    };
    let mut text = format!(
        "{}: an INSERT takes {}. A commit on this disk takes {} ({}), and the server \
         without the disk {} (synchronous_commit off). Together that is {} of it{doubt}. Each \
         INSERT adds {:.0} bytes of WAL.",
        load.data.load.name,
        time_text(parts.insert_ns, width),
        time_text(parts.disk_ns, width),
        own.workload,
        time_text(parts.server_ns, width),
        format_percent(parts.explained),
        load.figures.wal_bytes_per_commit
    );
    if let Some(ns) = load.figures.client_cpu_ns {
        let time = time_text(ns, CPU_WIDTH);
        text.push_str(&format!(
            " diskproof itself uses {time} of CPU time for each."
        ));
    }
    Some(text)
}

fn time_text(ns: f64, relative_width: f64) -> String {
    figure_text(ns, Some(ns * relative_width), "ns")
}

/// Says what a plan does with a server.
pub(crate) fn plan_text(plan: &PostgresPlan) -> String {
    format!(
        "PostgreSQL {} from {}: {} of INSERTs, {} each, in {}",
        plan.version,
        plan.programs,
        counted(plan.loads.len() as u64, "load"),
        format_duration(plan.slice_ns),
        // As many before the workloads of the plan as after them.
        counted(u64::from(2 * plan.rounds), "round"),
    )
}

/// Explains the columns of the table of settings.
const TRIALS_LEGEND: &str = "gain: rate with the tried value over rate with the default, and \
                                 its 95 % interval. Default and tried value alternate in random \
                                 order. Scans read a table larger than the server's cache, without \
                                 the page cache, and the disk's counters confirm their reads.";

/// The settings that were tried, with the legend; empty where none was.
fn trial_blocks(trials: &[TrialRow]) -> Vec<Block> {
    if trials.is_empty() {
        return Vec::new();
    }
    let mut blocks = tried_settings_blocks(trials);
    blocks.push(Block::text(Tone::Dim, TRIALS_LEGEND));
    blocks
}

/// The settings that were tried, as a table under its heading; empty where none was.
pub(crate) fn tried_settings_blocks(trials: &[TrialRow]) -> Vec<Block> {
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

fn trial_row(row: &TrialRow) -> TableRow {
    let trial = &row.data.trial;
    let outcome = match row.figures.outcome {
        TrialOutcome::Faster => "faster",
        TrialOutcome::Same => "no effect",
        TrialOutcome::Slower => "slower",
        TrialOutcome::Undecided => "not decided",
        TrialOutcome::Unproven => "not proven",
        TrialOutcome::Untested => "not tried",
    };
    let gain = row.figures.gain.as_ref();
    TableRow::from(vec![
        trial.setting.clone(),
        trial.default.clone(),
        labels::or_unknown(trial.candidate.clone()),
        labels::or_unknown(gain.map(gain_text)),
        labels::or_unknown(gain.map(gain_interval_text)),
        outcome.to_owned(),
    ])
}

fn gain_text(gain: &TrialGain) -> String {
    let half_width = (gain.high_95 - gain.low_95) / 2.0;
    format!("{}×", rounded(gain.value, Some(half_width)))
}

fn gain_interval_text(gain: &TrialGain) -> String {
    format!("{:.2}–{:.2}", gain.low_95, gain.high_95)
}

/// Names the settings that a plan tries, and the time that it takes for them.
pub(crate) fn trial_plan_text(plan: &TrialPlan) -> String {
    let settings: Vec<&str> = plan
        .trials
        .iter()
        .map(|trial| trial.setting.as_str())
        .collect();
    format!(
        "tries {} within {}, up to {} each, with scans of a table of {}",
        settings.join(", "),
        format_duration(plan.time_ns),
        counted(u64::from(plan.pairs_max), "pair"),
        format_bytes(plan.table_bytes),
    )
}
