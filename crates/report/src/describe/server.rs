//! What a PostgreSQL server did, in words: the share of the disk's load that it explains, its
//! rates, a row for each kind of process.

use crate::text::{glue, list};
use diskproof_model::block::{Block, Column, Row, Table};
use diskproof_model::server_load::{ExplainedLoad, ObservedServer, ServerCounters, ServerIo};
use diskproof_model::units::{
    format_duration, format_latency, format_percent, format_rate, format_throughput,
};

/// A device that moves less is idle: the shares of so little mean nothing.
const IDLE_BYTES_PER_SECOND: f64 = 50e3;
/// Rows that are shown.
const ROWS_MAX: usize = 12;

/// Columns of the table, behind the kind of process.
const COLUMNS: [&str; 9] = [
    "read/s", "MB/s", "mean", "write/s", "extend/s", "MB/s", "mean", "fsync/s", "evict/s",
];

fn per_second(count: u64, wall_ns: u64) -> f64 {
    count as f64 * 1e9 / wall_ns.max(1) as f64
}

/// One direction of a device: what the server moved, what the device did.
struct ExplainedDirection {
    name: &'static str,
    server: f64,
    device: f64,
}

impl ExplainedDirection {
    fn both(load: &ExplainedLoad) -> [Self; 2] {
        let of = |name, server: u64, device: u64| Self {
            name,
            server: per_second(server, load.wall_ns),
            device: per_second(device, load.wall_ns),
        };
        [
            of("reads", load.read_bytes, load.device_read_bytes),
            of("writes", load.write_bytes, load.device_write_bytes),
        ]
    }

    fn is_idle(&self) -> bool {
        self.device < IDLE_BYTES_PER_SECOND
    }

    /// `up to 84 % of the reads`.
    fn share(&self) -> String {
        let share = (self.server / self.device).min(1.0);
        glue(&format!(
            "up to {} of the {}",
            format_percent(share),
            self.name
        ))
    }

    /// The bytes that the share comes from.
    fn bytes(&self) -> String {
        format!(
            "{}: the server {}, the disk {}",
            self.name,
            glue(&format_throughput(self.server)),
            glue(&format_throughput(self.device))
        )
    }
}

/// `PostgreSQL explains up to 12 % of the reads, up to 97 % of the writes of vda`.
pub(crate) fn explained_text(load: &ExplainedLoad) -> String {
    let devices = load.devices.join(" and ");
    let both = ExplainedDirection::both(load);
    let busy: Vec<&ExplainedDirection> = both.iter().filter(|one| !one.is_idle()).collect();
    match busy.as_slice() {
        [] => format!("{devices} is almost idle"),
        [one] => format!("PostgreSQL explains {} of {devices}", one.share()),
        all => {
            let shares = list(all.iter().map(|one| one.share()));
            format!("PostgreSQL explains {shares} of {devices}")
        }
    }
}

/// The bytes behind [`explained_text`].
fn explained_bytes(load: &ExplainedLoad) -> String {
    let [reads, writes] = ExplainedDirection::both(load).map(|one| one.bytes());
    format!(
        "{reads}; {writes}, in {}",
        glue(&format_duration(load.wall_ns))
    )
}

/// `reads 12.0 MB/s, writes 3.10 MB/s, WAL 2.00 MB/s, 120 syncs/s, hits 99 %`.
pub(crate) fn rates_text(counters: &ServerCounters, wall_ns: u64) -> String {
    let rate = |bytes: u64| format_throughput(per_second(bytes, wall_ns));
    let mut parts = vec![
        format!("reads {}", rate(counters.read_bytes())),
        format!("writes {}", rate(counters.write_bytes())),
        format!("WAL {}", rate(counters.wal.write_bytes)),
    ];
    if let Some(syncs) = counters.wal.syncs {
        parts.push(format!(
            "{} syncs/s",
            format_rate(per_second(syncs, wall_ns))
        ));
    }
    let hits: u64 = counters.io.iter().filter_map(|io| io.hits).sum();
    let reads: u64 = counters.io.iter().map(|io| io.read_ops).sum();
    if hits > 0 {
        let share = hits as f64 / (hits + reads) as f64;
        parts.push(format!("hits {}", format_percent(share)));
    }
    if counters.temp_bytes > 0 {
        parts.push(format!("temporary files {}", rate(counters.temp_bytes)));
    }
    list(&parts)
}

/// A row for each kind of process, without the columns that are empty.
pub(crate) fn table<'a>(io: impl IntoIterator<Item = &'a ServerIo>, wall_ns: u64) -> Table {
    let all: Vec<_> = io.into_iter().map(|io| row(io, wall_ns)).collect();
    let is_used = |column: &usize| all.iter().any(|(_, cells)| !cells[*column].is_empty());
    let used: Vec<usize> = (0..COLUMNS.len()).filter(is_used).collect();
    let columns = used.iter().map(|column| COLUMNS[*column]);
    let line = |(name, cells): &(String, [String; COLUMNS.len()])| {
        let cells = used.iter().map(|column| cells[*column].clone());
        Row::from(
            std::iter::once(name.clone())
                .chain(cells)
                .collect::<Vec<_>>(),
        )
    };
    Table {
        caption: "PostgreSQL server".to_owned(),
        columns: Column::numbers(std::iter::once("server").chain(columns)),
        rows: all.iter().map(line).collect(),
        ..Table::default()
    }
}

/// The name of a kind of process, and the cells of [`COLUMNS`].
fn row(io: &ServerIo, wall_ns: u64) -> (String, [String; COLUMNS.len()]) {
    let rate = |count: u64| match count {
        0 => String::new(),
        count => format_rate(per_second(count, wall_ns)),
    };
    let megabytes = |bytes: u64| match bytes {
        0 => String::new(),
        bytes => format_throughput(per_second(bytes, wall_ns))
            .trim_end_matches(" MB/s")
            .to_owned(),
    };
    let mean = |ns: Option<u64>, count: u64| match (ns, count) {
        (Some(ns), 1..) => format_latency(ns / count),
        _ => String::new(),
    };
    let cells = [
        rate(io.read_ops),
        megabytes(io.read_bytes),
        mean(io.read_ns, io.read_ops),
        rate(io.write_ops),
        rate(io.extend_ops),
        megabytes(io.written_bytes()),
        mean(io.write_ns, io.write_ops),
        rate(io.fsyncs.unwrap_or(0)),
        rate(io.evictions.unwrap_or(0)),
    ];
    (process_name(io), cells)
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
    let table = (!table.rows.is_empty()).then_some(Block::Table(table));
    table
        .into_iter()
        .chain(Block::facts(facts(server)))
        .collect()
}

/// Label and text of each fact.
fn facts(server: &ObservedServer) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(load) = &server.explained {
        facts.push((
            "explains",
            format!("{}; {}", explained_text(load), explained_bytes(load)),
        ));
    }
    let counters = ServerCounters {
        io: server.io.clone(),
        wal: server.wal,
        temp_bytes: server.temp_bytes,
    };
    facts.push((
        "server",
        format!(
            "PostgreSQL {} at {}: {}, in {}",
            server.version,
            server.address,
            rates_text(&counters, server.wall_ns),
            glue(&format_duration(server.wall_ns)),
        ),
    ));
    if let (Some(ns), Some(syncs @ 1..)) = (server.wal.sync_ns, server.wal.syncs) {
        facts.push((
            "WAL",
            format!("a sync takes {}", format_latency(ns / syncs)),
        ));
    }
    facts.extend(server.missing.iter().map(|what| ("missing", what.clone())));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn text(load: &ExplainedLoad) -> String {
        explained_text(load).replace('\u{a0}', " ")
    }

    #[test]
    fn shares_name_both_directions_and_skip_idle_ones() {
        let both = load([1_000_000, 9_000_000], [10_000_000, 10_000_000]);
        assert_eq!(
            text(&both),
            "PostgreSQL explains up to 10 % of the reads, up to 90 % of the writes of vda"
        );
        // The page cache answered most reads: never more than all.
        let cached = load([90_000_000, 0], [3_000_000, 10_000]);
        assert_eq!(
            text(&cached),
            "PostgreSQL explains up to 100 % of the reads of vda"
        );
        assert_eq!(text(&load([9, 9], [0, 0])), "vda is almost idle");
        let bytes = explained_bytes(&cached).replace('\u{a0}', " ");
        assert!(
            bytes.contains("the server 90.0 MB/s, the disk 3.00 MB/s"),
            "{bytes}"
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
        let (name, cells) = row(&io, 2 * SECOND);
        assert_eq!(name, "client temp bulkread");
        assert_eq!(cells[..3], ["50.0", "0.41", "2.00 ms"].map(str::to_owned));
        assert_eq!((cells[3].as_str(), cells[8].as_str()), ("", "3.50"));
    }
}
