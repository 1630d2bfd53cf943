//! The live view of `watch`: what it can see, and for each step a line for each device and one for
//! the busy processes. The same lines appear one below the other or on a screen that is redrawn.

use super::grid::Columns;
use crate::describe::observed::capacity_text;
use crate::describe::server::{explained_text, processes_table, rates_text};
use crate::page::Page;
use crate::style::Style;
use crate::text::{glue, joined};
use diskproof_model::block::{Table, Tone};
use diskproof_model::observed::MeasuredCapacity;
use diskproof_model::postgres::{ServerStep, ServerView};
use diskproof_model::units::{format_duration, format_throughput};
use diskproof_model::watch::{
    BusyProcess, DeviceStep, DirectionStep, SeekMethod, SeekShare, WatchStep,
};
use std::io::{self, Write};

/// A line names at most this many processes, the busiest; with more it would not fit 80 columns.
const PROCESSES_MAX: usize = 3;
/// A thread with a smaller share of a device's requests is not named: it would print as `0 %` or
/// `1 %`, and explains nothing.
const PROCESS_SHARE_MIN: f64 = 0.01;
/// Columns of the name of a device. A longer name moves the rest of its line to the right.
const NAME_COLUMNS: usize = 8;
/// The times of shorter steps have a digit after the point. Steps of a second may be a little
/// shorter.
const WHOLE_SECONDS_FROM_NS: u64 = 950_000_000;
/// Stands before the further lines of a step.
const INDENT: &str = "      ";
/// A step has at most this many rows of the server's processes, those that moved most bytes.
const SERVER_ROWS_MAX: usize = 4;

/// What `watch` can see, stated before its first step.
#[derive(Debug, Clone, Default)]
pub struct WatchFacts {
    /// Why requests are not traced; `None` where they are.
    pub untraced: Option<String>,
    /// The devices, and what they can do where a run measured it.
    pub capacities: Vec<(String, Option<MeasuredCapacity>)>,
    /// Processes that this user may not look at.
    pub hidden_processes: u32,
    /// The PostgreSQL server, and what cannot be seen of it.
    pub server: Vec<String>,
}

/// Says how the share of seeks is known.
pub fn seek_method_text(untraced: Option<&str>) -> String {
    match untraced {
        None => "traced: the position of each request, from a private tracefs instance".to_owned(),
        Some(why) => format!(
            "estimated (~) from request sizes and merges: up to 16 KiB counts as a seek, 256 KiB \
             and more as sequential; {why}"
        ),
    }
}

/// Says what is hidden from this user; `None` where nothing is.
pub fn hidden_processes_text(count: u32) -> Option<String> {
    let noun = match count {
        0 => return None,
        1 => "process",
        _ => "processes",
    };
    Some(format!(
        "the bytes of {count} {noun}, which are not visible to this user (EACCES)"
    ))
}

/// Writes what the view can see, before the first step.
pub fn write_watch_facts(facts: &WatchFacts, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    page.fact("seeks", &seek_method_text(facts.untraced.as_deref()));
    for (name, capacity) in &facts.capacities {
        let text = match capacity {
            Some(capacity) => capacity_text(capacity),
            None => "no limits in the history; 'diskproof check' measures them".to_owned(),
        };
        page.fact("load", &format!("{name}: {text}"));
    }
    if let Some(text) = hidden_processes_text(facts.hidden_processes) {
        page.fact("hidden", &text);
    }
    for text in &facts.server {
        page.fact("server", text);
    }
    page.blank();
    page.finish()
}

/// Writes the names of the columns.
pub fn write_watch_heading(style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    let names = [
        "time", "device", "read/s", "MB/s", "ms", "write/s", "MB/s", "ms", "queue", "seeks", "load",
    ];
    page.unbroken(Tone::Dim.span(step_line(&names.map(str::to_owned))));
    page.finish()
}

/// Writes a step: a line for each device, then its busy processes and those of all disks. Idle
/// devices have a line only where `named` contains them.
pub fn write_watch_step(
    step: &WatchStep,
    named: &[String],
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    for name in &step.vanished {
        page.text(Tone::Warning.span(format!("{name} has vanished")));
    }
    let shown: Vec<&DeviceStep> = step
        .devices
        .iter()
        .filter(|device| !device.is_idle() || named.contains(&device.name))
        .collect();
    let digits = usize::from(step.length_ns < WHOLE_SECONDS_FROM_NS);
    let mut time = format!("{:.digits$}s", step.elapsed_ns as f64 / 1e9);
    if shown.is_empty() {
        page.unbroken(Tone::Dim.span(format!("{time:>5} no requests")));
    }
    for device in shown {
        let line = step_line(&device_cells(&time, device));
        page.unbroken(Tone::Plain.span(line));
        time.clear();
        if let Some(text) = threads_text(device) {
            page.unbroken(Tone::Dim.span(format!("{INDENT}by {text}")));
        }
    }
    if let Some(text) = processes_text(&step.processes, step.length_ns) {
        let line = format!("{INDENT}all disks: {text}");
        page.unbroken(Tone::Dim.span(line));
    }
    if let Some(server) = &step.server {
        write_server_step(page, server);
    }
    page.finish()
}

/// The cells of a device's line, in the order of the heading.
fn device_cells(time: &str, device: &DeviceStep) -> [String; 11] {
    let load = match device.load_share {
        Some(share) => format!("{:.0}%", share * 100.0),
        None => String::new(),
    };
    let [reads, read_rate, read_ms] = direction_cells(&device.read);
    let [writes, write_rate, write_ms] = direction_cells(&device.write);
    [
        time.to_owned(),
        device.name.clone(),
        reads,
        read_rate,
        read_ms,
        writes,
        write_rate,
        write_ms,
        short_number(device.depth),
        seeks_text(device.seeks),
        load,
    ]
}

fn seeks_text(seeks: Option<SeekShare>) -> String {
    let Some(seeks) = seeks else {
        return String::new();
    };
    let percent = seeks.share * 100.0;
    match seeks.method {
        SeekMethod::Traced => format!("{percent:.0}%"),
        SeekMethod::Estimated => format!("~{percent:.0}%"),
    }
}

/// Rate, throughput in MB/s and mean latency in ms of a direction.
fn direction_cells(step: &DirectionStep) -> [String; 3] {
    if step.ops == 0 {
        return ["0".to_owned(), "0".to_owned(), String::new()];
    }
    [
        short_number(step.iops),
        short_number(step.bytes_per_second / 1e6),
        milliseconds_text(step.latency_ns),
    ]
}

fn milliseconds_text(ns: Option<f64>) -> String {
    match ns {
        Some(ns) if ns / 1e6 < 10.0 => format!("{:.2}", ns / 1e6),
        Some(ns) => short_number(ns / 1e6),
        None => String::new(),
    }
}

/// At most six characters: `0.4`, `12.3`, `1234`, `123k`.
fn short_number(value: f64) -> String {
    match value {
        value if value < 99.95 => format!("{value:.1}"),
        value if value < 99_999.5 => format!("{value:.0}"),
        value if value < 9_999_500.0 => format!("{:.0}k", value / 1e3),
        value => format!("{:.0}M", value / 1e6),
    }
}

/// The line of these cells: 77 columns with the shortest gaps.
fn step_line(cells: &[String; 11]) -> String {
    let [time, device, reads, read_rate, read_ms, rest @ ..] = cells;
    let [writes, write_rate, write_ms, queue, seeks, load] = rest;
    let line = format!(
        "{time:>5} {device:<NAME_COLUMNS$} {reads:>7} {read_rate:>6} {read_ms:>6} {writes:>7} \
         {write_rate:>6} {write_ms:>6} {queue:>6} {seeks:>6} {load:>5}"
    );
    line.trim_end().to_owned()
}

/// `postgres (1234) 80 %, checkpointer (99) 15 %`.
fn threads_text(device: &DeviceStep) -> Option<String> {
    let busiest_requests: u64 = device
        .processes
        .iter()
        .flat_map(|thread| thread.requests)
        .sum();
    // Only the busiest are known by name; the shares are of all requests.
    // They are traced, while the device counts, so that either sum may be a few requests larger.
    let sum = busiest_requests.max(device.read.ops + device.write.ops);
    let mut texts = Vec::new();
    for thread in &device.processes {
        let share = thread.requests.unwrap_or(0) as f64 / sum.max(1) as f64;
        if share >= PROCESS_SHARE_MIN && texts.len() < PROCESSES_MAX {
            let percent = share * 100.0;
            texts.push(format!("{} ({}) {percent:.0} %", thread.name, thread.pid));
        }
    }
    joined(texts, ", ")
}

/// `postgres (1234) reads 12.0 MB/s, writes 3.1 MB/s; …`.
fn processes_text(processes: &[BusyProcess], length_ns: u64) -> Option<String> {
    let mut texts = Vec::new();
    for process in processes.iter().take(PROCESSES_MAX) {
        let mut rates = Vec::new();
        for (direction, bytes) in [
            ("reads", process.read_bytes),
            ("writes", process.write_bytes),
        ] {
            if bytes > 0 {
                let rate = bytes as f64 * 1e9 / length_ns.max(1) as f64;
                rates.push(format!("{direction} {}", format_throughput(rate)));
            }
        }
        let rates_text = rates.join(", ");
        texts.push(format!("{} ({}) {rates_text}", process.name, process.pid));
    }
    joined(texts, "; ")
}

/// Writes the server's lines of a step.
fn write_server_step(page: &mut Page<'_>, view: &ServerView) {
    match view {
        ServerView::Waiting => {
            let text = format!("{INDENT}PostgreSQL: connected; rates follow with the next step");
            page.unbroken(Tone::Dim.span(text));
        }
        ServerView::Lost { why, is_retried } => {
            let next = if *is_retried {
                "retrying"
            } else {
                "not retried"
            };
            // The server's own errors begin with its name.
            let reason = why.strip_prefix("PostgreSQL: ").unwrap_or(why);
            let text = format!("PostgreSQL: {next}: {reason}");
            write_indented(page, Tone::Warning, &text);
        }
        ServerView::Step(step) => write_server_rates(page, step),
    }
}

/// Wraps the text, because its end names the device or the remedy.
fn write_indented(page: &mut Page<'_>, tone: Tone, text: &str) {
    page.entry(tone.span(""), INDENT.len(), tone.span(text));
}

fn write_server_rates(page: &mut Page<'_>, step: &ServerStep) {
    if let Some(load) = &step.explained {
        let time = glue(&format_duration(load.wall_ns));
        let text = format!("{} ({time})", explained_text(load));
        write_indented(page, Tone::Bold, &text);
    }
    let rates = rates_text(&step.counters, step.length_ns);
    page.unbroken(Tone::Dim.span(format!("{INDENT}server {rates}")));
    let busiest = step.counters.io.iter().filter(|io| io.bytes() > 0);
    let rows = processes_table(busiest.take(SERVER_ROWS_MAX), step.length_ns);
    let width = page.width().saturating_sub(INDENT.len());
    for line in table_lines(&rows, width) {
        page.unbroken(Tone::Dim.span(format!("{INDENT}{line}")));
    }
}

/// The lines of a table: the names of its columns, then its rows. Empty where it is too wide, or
/// has no rows.
fn table_lines(table: &Table, width: usize) -> Vec<String> {
    if table.rows.is_empty() {
        return Vec::new();
    }
    let mut aligns = Vec::new();
    let mut names = Vec::new();
    for column in &table.columns {
        aligns.push(column.align);
        names.push(column.name.clone());
    }
    let mut lines = vec![names];
    for row in &table.rows {
        lines.push(row.cells.iter().map(|cell| cell.text.clone()).collect());
    }
    match Columns::fit(&aligns, &lines, width) {
        Some(fitted) => lines.iter().map(|line| fitted.padded_line(line)).collect(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{assert_shows, plain, written};
    use crate::style::Style;
    use diskproof_model::postgres::{ExplainedLoad, ServerCounters, ServerIo};

    const STYLE: Style = plain(80);

    fn busy() -> DeviceStep {
        DeviceStep {
            name: "nvme0n1".to_owned(),
            read: DirectionStep {
                ops: 12_345,
                iops: 12_345.0,
                bytes_per_second: 101.1e6,
                latency_ns: Some(230_000.0),
                ..DirectionStep::default()
            },
            depth: 2.84,
            seeks: Some(SeekShare {
                share: 0.912,
                method: SeekMethod::Traced,
            }),
            processes: vec![BusyProcess {
                pid: 1234,
                name: "postgres\u{1b}[2J".to_owned(),
                requests: Some(12_345),
                read_bytes: 1,
                write_bytes: 0,
            }],
            load_share: Some(0.187),
            ..DeviceStep::default()
        }
    }

    #[test]
    fn lines_of_a_step_are_whole_and_hide_escapes() {
        let step = WatchStep {
            elapsed_ns: 3_000_000_000,
            length_ns: 1_000_000_000,
            devices: vec![busy(), DeviceStep::default()],
            processes: vec![BusyProcess {
                pid: 77,
                name: "x".repeat(90),
                requests: None,
                read_bytes: 5_000_000,
                write_bytes: 0,
            }],
            ..WatchStep::default()
        };
        let page = written(|out| {
            write_watch_heading(&STYLE, out)?;
            write_watch_step(&step, &[], &STYLE, out)
        });
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(
            lines[..3],
            [
                " time device    read/s   MB/s     ms write/s   MB/s     ms  queue  seeks  load",
                "   3s nvme0n1    12345    101   0.23       0      0           2.8    91%   19%",
                "      by postgres\\u{1b}[2J (1234) 100 %",
            ]
        );
        // A file keeps whole lines; the full screen cuts them by itself.
        assert_shows(lines[3], &[&"x".repeat(90), "(77)"]);
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn idle_step_has_one_line_and_named_devices_stay() {
        let idle = DeviceStep {
            name: "sda".to_owned(),
            ..DeviceStep::default()
        };
        let step = WatchStep {
            elapsed_ns: 1_000_000_000,
            length_ns: 1_000_000_000,
            devices: vec![idle],
            vanished: vec!["loop7".to_owned()],
            ..WatchStep::default()
        };
        let page = written(|out| write_watch_step(&step, &[], &STYLE, out));
        assert_eq!(page, "loop7 has vanished\n   1s no requests\n");
        let page = written(|out| write_watch_step(&step, &["sda".to_owned()], &STYLE, out));
        assert!(page.contains("1s sda"), "{page}");
    }

    #[test]
    fn method_and_missing_capacity_are_stated() {
        let facts = WatchFacts {
            untraced: Some("reading traced requests needs root".to_owned()),
            capacities: vec![("sda".to_owned(), None)],
            hidden_processes: 12,
            ..WatchFacts::default()
        };
        let page = written(|out| write_watch_facts(&facts, &STYLE, out));
        assert_shows(
            &page,
            &["(~)", "needs root", "sda: no limits", "12 processes"],
        );
    }

    const SECOND_NS: u64 = 1_000_000_000;

    fn server_text(view: &ServerView, width: usize) -> String {
        written(|out| {
            let mut page = Page::new(&plain(width), out);
            write_server_step(&mut page, view);
            page.finish()
        })
    }

    fn busy_io(backend: &str, context: &str) -> ServerIo {
        ServerIo {
            backend: backend.to_owned(),
            object: "relation".to_owned(),
            context: context.to_owned(),
            read_ops: 12_345,
            read_bytes: 12_345 * 8192,
            read_ns: Some(12_345_000_000),
            write_ops: 6789,
            write_bytes: 6789 * 8192,
            write_ns: Some(6_789_000_000),
            extend_ops: 1234,
            extend_bytes: 1234 * 8192,
            fsyncs: Some(120),
            hits: Some(5_000_000),
            evictions: Some(9999),
        }
    }

    fn busy_step() -> ServerStep {
        ServerStep {
            length_ns: SECOND_NS,
            counters: ServerCounters {
                io: vec![
                    busy_io("client backend", "bulkread"),
                    busy_io("autovacuum worker", "vacuum"),
                    busy_io("evil\u{1b}[2J", "normal"),
                ],
                page_bytes: Some(8192),
                ..ServerCounters::default()
            },
            explained: Some(ExplainedLoad {
                devices: vec!["nvme0n1p3".to_owned()],
                wall_ns: 30 * SECOND_NS,
                read_bytes: 30_000_000,
                device_read_bytes: 40_000_000,
                write_bytes: 30_000_000,
                device_write_bytes: 90_000_000,
            }),
        }
    }

    #[test]
    fn lines_of_the_server_fit_eighty_columns_and_hide_escapes() {
        let page = server_text(&ServerView::Step(busy_step()), 80);
        assert!(
            page.lines().all(|line| line.chars().count() <= 80),
            "{page}"
        );
        assert!(!page.contains('\u{1b}'), "{page}");
        assert_shows(
            &page,
            &[
                "75 % of the reads",
                "33 % of the writes of nvme0n1p3 (30 s)",
            ],
        );
        let wide = server_text(&ServerView::Step(busy_step()), 120);
        assert_shows(&wide, &["client bulkread"]);
    }

    #[test]
    fn lost_server_is_named_with_the_reason() {
        for why in [
            "the server did not answer in time",
            "FATAL: terminating connection due to unexpected postmaster exit",
        ] {
            let lost = ServerView::Lost {
                why: format!("PostgreSQL: {why}"),
                is_retried: true,
            };
            let text = server_text(&lost, 80);
            assert_shows(&text, &[&format!("PostgreSQL: retrying: {why}")]);
            assert!(
                text.lines().all(|line| line.starts_with("      ")),
                "{text}"
            );
        }
        assert_shows(&server_text(&ServerView::Waiting, 80), &["connected"]);
    }
}
