//! The live view of `watch`: what it can see, a line per device and step, who is busy. The same
//! lines appear one below the other or on a screen that is redrawn.

use super::server::write_server_step;
use crate::describe::observed::capacity_text;
use crate::page::{Page, TextStyle};
use crate::style::Style;
use crate::text::{clean, joined};
use diskproof_model::observed::MeasuredCapacity;
use diskproof_model::units::format_throughput;
use diskproof_model::watch::{BusyProcess, DeviceStep, DirectionStep, SeekMethod, WatchStep};
use std::io::{self, Write};

/// Processes on one line.
const PROCESSES_MAX: usize = 3;
/// Most requests of a step come from a thread with this share; others are not named.
const PROCESS_SHARE_MIN: f64 = 0.01;
const NAME_COLUMNS: usize = 8;
/// Shorter steps need a digit after the point.
const WHOLE_SECONDS_FROM_NS: u64 = 950_000_000;

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

/// How the share of seeks is known.
pub fn seek_method_text(untraced: Option<&str>) -> String {
    match untraced {
        None => "traced: the position of each request, from a private tracefs instance".to_owned(),
        Some(why) => format!(
            "estimated (~) from request sizes and merges: up to 16 KiB counts as a seek, 256 KiB \
             and more as sequential; {why}"
        ),
    }
}

/// What is hidden from this user.
pub fn hidden_processes_text(count: u32) -> Option<String> {
    let who = if count == 1 { "process" } else { "processes" };
    (count > 0)
        .then(|| format!("the bytes of {count} {who}, which are not visible to this user (EACCES)"))
}

/// Writes what the view rests on.
pub fn write_watch_facts(facts: &WatchFacts, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    page.fact("seeks", &seek_method_text(facts.untraced.as_deref()))?;
    for (name, capacity) in &facts.capacities {
        let text = match capacity {
            Some(capacity) => capacity_text(capacity),
            None => "no limits in the history; 'diskproof check' measures them".to_owned(),
        };
        page.fact("load", &format!("{name}: {text}"))?;
    }
    let hidden = hidden_processes_text(facts.hidden_processes);
    hidden
        .iter()
        .try_for_each(|text| page.fact("hidden", text))?;
    facts
        .server
        .iter()
        .try_for_each(|text| page.fact("server", text))?;
    page.blank()
}

/// Writes the names of the columns.
pub fn write_watch_heading(style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    let names = [
        "time", "device", "read/s", "MB/s", "ms", "write/s", "MB/s", "ms", "queue", "seeks", "load",
    ];
    page.unbroken(TextStyle::Dim.of(row(&names.map(str::to_owned))))
}

/// Writes a step: a line per device, and who is busy. Idle devices have a line only where `named`
/// names them.
pub fn write_watch_step(
    step: &WatchStep,
    named: &[String],
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    for name in &step.vanished {
        page.text(TextStyle::Warning.of(format!("{name} has vanished")))?;
    }
    let shown = |device: &&DeviceStep| !device.is_idle() || named.contains(&device.name);
    let digits = usize::from(step.length_ns < WHOLE_SECONDS_FROM_NS);
    let mut time = format!("{:.digits$}s", step.elapsed_ns as f64 / 1e9);
    if !step.devices.iter().any(|device| shown(&device)) {
        page.unbroken(TextStyle::Dim.of(format!("{time:>5} no requests")))?;
    }
    for device in step.devices.iter().filter(shown) {
        page.unbroken(TextStyle::Plain.of(row(&cells(&time, device))))?;
        time = String::new();
        if let Some(text) = threads_text(device) {
            page.unbroken(TextStyle::Dim.of(clean(&format!("      by {text}"))))?;
        }
    }
    if let Some(text) = processes_text(&step.processes, step.length_ns) {
        let line = format!("      all disks: {text}");
        page.unbroken(TextStyle::Dim.of(clean(&line)))?;
    }
    match &step.server {
        Some(server) => write_server_step(page, server),
        None => Ok(()),
    }
}

fn cells(time: &str, device: &DeviceStep) -> [String; 11] {
    let seeks = device.seeks.map_or(String::new(), |seeks| {
        let estimated = match seeks.method {
            SeekMethod::Traced => "",
            SeekMethod::Estimated => "~",
        };
        format!("{estimated}{:.0}%", seeks.share * 100.0)
    });
    let load = device
        .load_share
        .map(|share| format!("{:.0}%", share * 100.0));
    let [reads, read_rate, read_ms] = direction(&device.read);
    let [writes, write_rate, write_ms] = direction(&device.write);
    [
        time.to_owned(),
        device.name.clone(),
        reads,
        read_rate,
        read_ms,
        writes,
        write_rate,
        write_ms,
        short(device.depth),
        seeks,
        load.unwrap_or_default(),
    ]
}

fn direction(step: &DirectionStep) -> [String; 3] {
    if step.ops == 0 {
        return ["0".to_owned(), "0".to_owned(), String::new()];
    }
    let ms = step.latency_ns.map(|ns| ns / 1e6);
    [
        short(step.iops),
        short(step.bytes_per_second / 1e6),
        ms.map_or(String::new(), |ms| match ms {
            ms if ms < 10.0 => format!("{ms:.2}"),
            ms => short(ms),
        }),
    ]
}

/// At most six characters: `0.4`, `12.3`, `1234`, `123k`.
fn short(value: f64) -> String {
    match value {
        value if value < 99.95 => format!("{value:.1}"),
        value if value < 99_999.5 => format!("{value:.0}"),
        value if value < 9_999_500.0 => format!("{:.0}k", value / 1e3),
        value => format!("{:.0}M", value / 1e6),
    }
}

/// 77 columns with the shortest gaps.
fn row(cells: &[String; 11]) -> String {
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
    let sum: u64 = device.processes.iter().filter_map(|one| one.requests).sum();
    let share = |one: &BusyProcess| one.requests.unwrap_or(0) as f64 / sum.max(1) as f64;
    let busy = device
        .processes
        .iter()
        .filter(|one| share(one) >= PROCESS_SHARE_MIN);
    let known = busy
        .take(PROCESSES_MAX)
        .map(|one| format!("{} ({}) {:.0} %", one.name, one.pid, share(one) * 100.0));
    joined(known, ", ")
}

/// `postgres (1234) reads 12.0 MB/s, writes 3.1 MB/s; …`.
fn processes_text(processes: &[BusyProcess], length_ns: u64) -> Option<String> {
    let moved = |what: &str, bytes: u64| {
        let rate = bytes as f64 * 1e9 / length_ns.max(1) as f64;
        (bytes > 0).then(|| format!("{what} {}", format_throughput(rate)))
    };
    let known = processes.iter().take(PROCESSES_MAX).map(|one| {
        let both = [
            moved("reads", one.read_bytes),
            moved("writes", one.write_bytes),
        ];
        let both = joined(both.into_iter().flatten(), ", ").unwrap_or_default();
        format!("{} ({}) {both}", one.name, one.pid)
    });
    joined(known, "; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Color;
    use diskproof_model::watch::SeekShare;

    const STYLE: Style = Style {
        width: 80,
        color: Color::Plain,
    };

    fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

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
                requests: Some(10),
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
        let page = text(|out| {
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
        assert!(
            lines[3].contains(&"x".repeat(90)) && lines[3].contains("(77)"),
            "{page}"
        );
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
        let page = text(|out| write_watch_step(&step, &[], &STYLE, out));
        assert_eq!(page, "loop7 has vanished\n   1s no requests\n");
        let page = text(|out| write_watch_step(&step, &["sda".to_owned()], &STYLE, out));
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
        let page = text(|out| write_watch_facts(&facts, &STYLE, out));
        for phrase in [
            "estimated (~)",
            "needs root",
            "sda: no limits",
            "bytes of 12 processes",
        ] {
            assert!(
                page.replace("\n           ", " ").contains(phrase),
                "{phrase}: {page}"
            );
        }
    }
}
