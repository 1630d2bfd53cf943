//! What a PostgreSQL server did, in words: the share of the disk's load that it explains, its
//! rates, a row for each kind of process.

use crate::text::{glue, list};
use diskproof_model::block::{Block, Column, Table, TableRow};
use diskproof_model::postgres::{ExplainedLoad, ObservedServer, ServerCounters, ServerIo};
use diskproof_model::units::{
    format_duration, format_latency, format_percent, format_rate, format_throughput,
};

/// A device that moves less is idle: the shares of so little mean nothing.
const IDLE_BYTES_PER_SECOND: f64 = 50e3;
/// Rows that are shown.
const ROWS_MAX: usize = 12;

/// Columns of the table.
const COLUMNS: [&str; 10] = [
    "server", "read/s", "MB/s", "mean", "write/s", "extend/s", "MB/s", "mean", "fsync/s", "evict/s",
];

fn per_second(count: u64, wall_ns: u64) -> f64 {
    count as f64 * 1e9 / wall_ns.max(1) as f64
}

/// Bytes per second of the reads and of the writes: what the server moved, and what the device did.
fn directions(load: &ExplainedLoad) -> [(&'static str, [f64; 2]); 2] {
    let rates = |bytes: [u64; 2]| bytes.map(|bytes| per_second(bytes, load.wall_ns));
    [
        ("reads", rates([load.read_bytes, load.device_read_bytes])),
        ("writes", rates([load.write_bytes, load.device_write_bytes])),
    ]
}

/// `PostgreSQL explains up to 12 % of the reads, up to 97 % of the writes of vda`.
pub(crate) fn explained_text(load: &ExplainedLoad) -> String {
    let devices = load.devices.join(" and ");
    let busy = directions(load).into_iter();
    let busy = busy.filter(|(_, [_, device])| *device >= IDLE_BYTES_PER_SECOND);
    let shares = list(busy.map(|(name, [server, device])| {
        let share = format_percent((server / device).min(1.0));
        format!("up to {share} of the {name}")
    }));
    match shares.as_str() {
        "" => format!("{devices} is almost idle"),
        shares => format!("PostgreSQL explains {shares} of {devices}"),
    }
}

/// The bytes behind [`explained_text`].
fn explained_bytes(load: &ExplainedLoad) -> String {
    let [reads, writes] = directions(load).map(|(name, rates)| {
        let [server, device] = rates.map(|rate| glue(&format_throughput(rate)));
        format!("{name}: the server {server}, the disk {device}")
    });
    let time = glue(&format_duration(load.wall_ns));
    format!("{reads}; {writes}, in {time}")
}

/// `reads 12.0 MB/s, writes 3.10 MB/s, WAL 2.00 MB/s, 120 syncs/s, hits 99 %`.
pub(crate) fn rates_text(counters: &ServerCounters, wall_ns: u64) -> String {
    let rate = |bytes: u64| format_throughput(per_second(bytes, wall_ns));
    let mut parts = vec![
        format!("reads {}", rate(counters.read_bytes())),
        format!("writes {}", rate(counters.write_bytes())),
        format!("WAL {}", rate(counters.wal.write_bytes)),
    ];
    let syncs = counters.wal.syncs.map(|syncs| per_second(syncs, wall_ns));
    parts.extend(syncs.map(|rate| format!("{} syncs/s", format_rate(rate))));
    let hits: u64 = counters.io.iter().filter_map(|io| io.hits).sum();
    let reads: u64 = counters.io.iter().map(|io| io.read_ops).sum();
    if hits > 0 {
        let share = hits as f64 / (hits + reads) as f64;
        parts.push(format!("hits {}", format_percent(share)));
    }
    let temporary = Some(counters.temp_bytes).filter(|bytes| *bytes > 0);
    parts.extend(temporary.map(|bytes| format!("temporary files {}", rate(bytes))));
    list(&parts)
}

/// A row for each kind of process, without the columns that are empty.
pub(crate) fn table<'a>(io: impl IntoIterator<Item = &'a ServerIo>, wall_ns: u64) -> Table {
    let io = io.into_iter();
    let rows = io
        .map(|io| TableRow::from(row(io, wall_ns).to_vec()))
        .collect();
    let mut table = Table::new("PostgreSQL server", Column::numbers(COLUMNS), rows);
    for index in (1..COLUMNS.len()).rev() {
        let mut cells = table.rows.iter().map(|row| &row.cells[index]);
        if cells.all(|cell| cell.text.is_empty()) {
            table.columns.remove(index);
            for row in &mut table.rows {
                row.cells.remove(index);
            }
        }
    }
    table
}

/// The cells of [`COLUMNS`].
fn row(io: &ServerIo, wall_ns: u64) -> [String; COLUMNS.len()] {
    let known = |count: u64, text: fn(f64) -> String| {
        let rate = (count > 0).then(|| text(per_second(count, wall_ns)));
        rate.unwrap_or_default()
    };
    let rate = |count: u64| known(count, format_rate);
    let megabytes = |bytes: u64| known(bytes, |rate| format_throughput(rate).replace(" MB/s", ""));
    let mean = |ns: Option<u64>, count: u64| match (ns, count) {
        (Some(ns), 1..) => format_latency(ns / count),
        _ => String::new(),
    };
    [
        process_name(io),
        rate(io.read_ops),
        megabytes(io.read_bytes),
        mean(io.read_ns, io.read_ops),
        rate(io.write_ops),
        rate(io.extend_ops),
        megabytes(io.written_bytes()),
        mean(io.write_ns, io.write_ops),
        rate(io.fsyncs.unwrap_or(0)),
        rate(io.evictions.unwrap_or(0)),
    ]
}

/// `client`, `client bulkread`, `autovacuum vacuum`, `walwriter WAL`.
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

/// The processes with most bytes, and what the server did while its disks were watched.
pub(crate) fn blocks(server: &ObservedServer) -> Vec<Block> {
    let table = table(server.io.iter().take(ROWS_MAX), server.wall_ns);
    let table = Some(table).filter(|table| !table.rows.is_empty());
    let mut blocks: Vec<Block> = table.into_iter().map(Block::Table).collect();
    blocks.extend(server.explained.iter().map(|load| {
        let text = format!("{}; {}", explained_text(load), explained_bytes(load));
        Block::fact("explains", text)
    }));
    let counters = ServerCounters {
        io: server.io.clone(),
        wal: server.wal,
        temp_bytes: server.temp_bytes,
    };
    let (version, address) = (&server.version, &server.address);
    let rates = rates_text(&counters, server.wall_ns);
    let time = glue(&format_duration(server.wall_ns));
    let text = format!("PostgreSQL {version} at {address}: {rates}, in {time}");
    blocks.push(Block::fact("server", text));
    if let (Some(ns), Some(syncs @ 1..)) = (server.wal.sync_ns, server.wal.syncs) {
        let text = format!("a sync takes {}", format_latency(ns / syncs));
        blocks.push(Block::fact("WAL", text));
    }
    let missing = server.missing.iter();
    blocks.extend(missing.map(|what| Block::fact("missing", what)));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::assert_shows;

    const SECOND: u64 = 1_000_000_000;

    fn load(server: [u64; 2], device: [u64; 2]) -> ExplainedLoad {
        ExplainedLoad {
            devices: vec!["vda".to_owned()],
            wall_ns: SECOND,
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
            &explained_bytes(&cached),
            &["server 90.0 MB/s", "disk 3.00 MB/s"],
        );
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
        let cells = row(&io, 2 * SECOND);
        let first = ["client temp bulkread", "50.0", "0.41", "2.00 ms"];
        assert_eq!(cells[..4], first.map(str::to_owned));
        assert_eq!((cells[4].as_str(), cells[9].as_str()), ("", "3.50"));
    }
}
