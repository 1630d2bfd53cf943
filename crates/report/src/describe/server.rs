//! A PostgreSQL server that was observed, in words: the share of the disk's load that it explains,
//! its rates, and a row for each kind of process.

use crate::text::{glue, list};
use diskproof_model::block::{Block, Column, Table, TableRow};
use diskproof_model::postgres::{
    ExplainedLoad, MeasuredTimes, ObservedServer, ServerCounters, ServerIo,
};
use diskproof_model::units::{
    format_duration, format_latency, format_percent, format_rate, format_throughput,
};

/// A device that moves less is almost idle, and no share of its load is stated. With a smaller
/// value, single requests of other programs would be reported as large shares. Chosen: a dozen
/// requests of 4 KiB per second.
const IDLE_BYTES_PER_SECOND: f64 = 50e3;
/// The table has at most this many rows: the kinds of processes that moved most. The record has
/// all.
const ROWS_MAX: usize = 12;

/// Columns of the table. Those that are empty in all rows are not shown.
const COLUMNS: [&str; 10] = [
    "server", "read/s", "MB/s", "mean", "write/s", "extend/s", "MB/s", "mean", "fsync/s", "evict/s",
];

/// The mean rate of a counter over an observation; finite for one of no length.
fn per_second(count: u64, wall_ns: u64) -> f64 {
    count as f64 * 1e9 / wall_ns.max(1) as f64
}

/// Bytes per second in one direction.
struct DirectionLoad {
    /// `reads` or `writes`.
    name: &'static str,
    /// As many were moved by the server.
    server: f64,
    /// As many were moved by the devices, for whichever program.
    device: f64,
}

fn direction_loads(load: &ExplainedLoad) -> [DirectionLoad; 2] {
    [
        DirectionLoad {
            name: "reads",
            server: per_second(load.read_bytes, load.wall_ns),
            device: per_second(load.device_read_bytes, load.wall_ns),
        },
        DirectionLoad {
            name: "writes",
            server: per_second(load.write_bytes, load.wall_ns),
            device: per_second(load.device_write_bytes, load.wall_ns),
        },
    ]
}

/// `PostgreSQL explains up to 12 % of the reads, up to 97 % of the writes of vda`.
pub(crate) fn explained_text(load: &ExplainedLoad) -> String {
    let devices = load.devices.join(" and ");
    let mut shares = Vec::new();
    for direction in direction_loads(load) {
        if direction.device >= IDLE_BYTES_PER_SECOND {
            let share = format_percent((direction.server / direction.device).min(1.0));
            shares.push(format!("up to {share} of the {}", direction.name));
        }
    }
    if shares.is_empty() {
        return format!("{devices} is almost idle");
    }
    format!("PostgreSQL explains {} of {devices}", list(shares))
}

/// The rates from which [`explained_text`] follows.
fn explained_bytes_text(load: &ExplainedLoad) -> String {
    let [reads, writes] = direction_loads(load).map(|direction| direction_text(&direction));
    let time = glue(&format_duration(load.wall_ns));
    format!("{reads}; {writes}, in {time}")
}

fn direction_text(direction: &DirectionLoad) -> String {
    let server = glue(&format_throughput(direction.server));
    let device = glue(&format_throughput(direction.device));
    let name = direction.name;
    format!("{name}: the server {server}, the disk {device}")
}

/// `reads 12.0 MB/s, writes 3.10 MB/s, WAL 2.00 MB/s, 120 syncs/s, hits 99 %`.
pub(crate) fn rates_text(counters: &ServerCounters, wall_ns: u64) -> String {
    let wal = &counters.wal;
    let mut parts = vec![
        throughput_text("reads", counters.read_bytes(), wall_ns),
        throughput_text("writes", counters.write_bytes(), wall_ns),
        throughput_text("WAL", wal.write_bytes, wall_ns),
    ];
    if let Some(syncs) = wal.syncs {
        let rate = format_rate(per_second(syncs, wall_ns));
        parts.push(format!("{rate} syncs/s"));
    }
    if let Some(share) = counters.hit_share() {
        parts.push(format!("hits {}", format_percent(share)));
    }
    if counters.temp_bytes > 0 {
        let bytes = counters.temp_bytes;
        parts.push(throughput_text("temporary files", bytes, wall_ns));
    }
    list(&parts)
}

fn throughput_text(name: &str, bytes: u64, wall_ns: u64) -> String {
    let rate = format_throughput(per_second(bytes, wall_ns));
    format!("{name} {rate}")
}

/// A row for each kind of process, without the columns that are empty.
pub(crate) fn processes_table<'a>(
    io: impl IntoIterator<Item = &'a ServerIo>,
    wall_ns: u64,
) -> Table {
    let rows = io
        .into_iter()
        .map(|io| TableRow::from(process_cells(io, wall_ns).to_vec()))
        .collect();
    let mut table = Table::new("PostgreSQL server", Column::numbers(COLUMNS), rows);
    for index in (1..COLUMNS.len()).rev() {
        if is_empty_column(&table, index) {
            table.columns.remove(index);
            for row in &mut table.rows {
                row.cells.remove(index);
            }
        }
    }
    table
}

fn is_empty_column(table: &Table, index: usize) -> bool {
    table
        .rows
        .iter()
        .all(|row| row.cells[index].text.is_empty())
}

/// The cells of [`COLUMNS`].
fn process_cells(io: &ServerIo, wall_ns: u64) -> [String; COLUMNS.len()] {
    [
        process_name(io),
        rate_cell(io.read_ops, wall_ns),
        megabytes_cell(io.read_bytes, wall_ns),
        mean_time_cell(io.read_ns, io.read_ops),
        rate_cell(io.write_ops, wall_ns),
        rate_cell(io.extend_ops, wall_ns),
        megabytes_cell(io.written_bytes(), wall_ns),
        mean_time_cell(io.write_ns, io.write_ops),
        rate_cell(io.fsyncs.unwrap_or(0), wall_ns),
        rate_cell(io.evictions.unwrap_or(0), wall_ns),
    ]
}

/// Operations per second; empty without any.
fn rate_cell(count: u64, wall_ns: u64) -> String {
    match count {
        0 => String::new(),
        count => format_rate(per_second(count, wall_ns)),
    }
}

/// MB/s without the unit, which the column names; empty without bytes.
fn megabytes_cell(bytes: u64, wall_ns: u64) -> String {
    match bytes {
        0 => String::new(),
        bytes => format_throughput(per_second(bytes, wall_ns)).replace(" MB/s", ""),
    }
}

/// The mean time of an operation. Empty where the server did not measure times, and without any.
fn mean_time_cell(ns: Option<u64>, count: u64) -> String {
    match (ns, count) {
        (Some(ns), 1..) => format_latency(ns / count),
        _ => String::new(),
    }
}

/// A short name for a row of pg_stat_io: `client`, `client bulkread`, `autovacuum vacuum`,
/// `walwriter WAL`.
fn process_name(io: &ServerIo) -> String {
    let backend = match io.backend.as_str() {
        "client backend" => "client",
        "autovacuum worker" => "autovacuum",
        "background worker" => "worker",
        "background writer" => "bgwriter",
        other => other,
    };
    let object = match io.object.as_str() {
        "relation" => "",
        "temp relation" => " temp",
        "wal" => " WAL",
        other => &format!(" {other}"),
    };
    let context = match io.context.as_str() {
        "normal" => "",
        other => &format!(" {other}"),
    };
    format!("{backend}{object}{context}")
}

/// Describes what the server did while its disks were watched: the processes that moved most bytes,
/// then the facts.
pub(crate) fn blocks(server: &ObservedServer) -> Vec<Block> {
    let mut blocks = Vec::new();
    if !server.io.is_empty() {
        let io = server.io.iter().take(ROWS_MAX);
        blocks.push(Block::Table(processes_table(io, server.wall_ns)));
    }
    if let Some(load) = &server.explained {
        let text = format!("{}; {}", explained_text(load), explained_bytes_text(load));
        blocks.push(Block::fact("explains", text));
    }
    blocks.push(Block::fact("server", server_text(server)));
    if let Some(ns) = server.wal.sync_ns
        && let Some(syncs @ 1..) = server.wal.syncs
    {
        let text = format!("a sync takes {}", format_latency(ns / syncs));
        blocks.push(Block::fact("WAL", text));
    }
    for what in &server.missing {
        blocks.push(Block::fact("missing", what));
    }
    blocks
}

fn server_text(server: &ObservedServer) -> String {
    let counters = ServerCounters {
        io: server.io.clone(),
        wal: server.wal,
        temp_bytes: server.temp_bytes,
        page_bytes: server.page_bytes,
        timed: MeasuredTimes::default(),
    };
    format!(
        "PostgreSQL {} at {}: {}, in {}",
        server.version,
        server.address,
        rates_text(&counters, server.wall_ns),
        glue(&format_duration(server.wall_ns))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::assert_shows;

    const SECOND_NS: u64 = 1_000_000_000;

    fn load(server: [u64; 2], device: [u64; 2]) -> ExplainedLoad {
        ExplainedLoad {
            devices: vec!["vda".to_owned()],
            wall_ns: SECOND_NS,
            read_bytes: server[0],
            write_bytes: server[1],
            device_read_bytes: device[0],
            device_write_bytes: device[1],
        }
    }

    #[test]
    fn shares_name_both_directions_and_skip_idle_ones() {
        let both = load([1_000_000, 9_000_000], [10_000_000, 10_000_000]);
        assert_shows(
            &explained_text(&both),
            &["10 % of the reads", "90 % of the writes", "vda"],
        );
        // The page cache answered most reads: never more than all.
        let cached = load([90_000_000, 0], [3_000_000, 10_000]);
        let text = explained_text(&cached);
        assert_shows(&text, &["100 % of the reads"]);
        assert!(!text.contains("writes"), "{text}");
        assert_shows(&explained_text(&load([9, 9], [0, 0])), &["vda", "idle"]);
        assert_shows(
            &explained_bytes_text(&cached),
            &["server 90.0 MB/s", "disk 3.00 MB/s"],
        );
    }

    /// Since PostgreSQL 18 a read can be of many pages, and the log has rows, too.
    #[test]
    fn share_of_hits_is_one_of_pages_of_tables() {
        let table = ServerIo {
            object: "relation".to_owned(),
            read_ops: 100,
            read_bytes: 1600 * 8192,
            hits: Some(1000),
            ..ServerIo::default()
        };
        let log = ServerIo {
            object: "wal".to_owned(),
            read_ops: 500,
            read_bytes: 500 * 8192,
            ..ServerIo::default()
        };
        let mut counters = ServerCounters {
            io: vec![table, log],
            page_bytes: Some(8192),
            ..ServerCounters::default()
        };
        // 1000 of 2600 pages.
        assert_shows(&rates_text(&counters, SECOND_NS), &["hits 38 %"]);
        counters.page_bytes = None;
        assert_eq!(counters.hit_share(), None);
    }

    #[test]
    fn row_has_rates_and_times_where_they_are_known() {
        let io = ServerIo {
            backend: "client backend".to_owned(),
            object: "temp relation".to_owned(),
            context: "bulkread".to_owned(),
            read_ops: 100,
            read_bytes: 819_200,
            read_ns: Some(200_000_000),
            evictions: Some(7),
            ..ServerIo::default()
        };
        let cells = process_cells(&io, 2 * SECOND_NS);
        let first = ["client temp bulkread", "50.0", "0.41", "2.00 ms"];
        assert_eq!(cells[..4], first.map(str::to_owned));
        assert_eq!((cells[4].as_str(), cells[9].as_str()), ("", "3.50"));
    }
}
