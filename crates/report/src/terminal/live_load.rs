//! A sustained load while it runs, as a page that is redrawn: the phase, the time left, rate,
//! latency and temperature now, and the rate over time.

use super::graph::write_graph;
use crate::chart::{Axis, Chart, Series, SeriesMark};
use crate::page::Page;
use crate::style::Style;
use diskproof_model::block::Tone;
use diskproof_model::units::{
    format_bytes, format_duration, format_latency, format_rate, format_throughput,
};
use std::io::{self, Write};

const SECOND_NS: f64 = 1e9;
const MINUTE_S: f64 = 60.0;
const HOUR_S: f64 = 3600.0;
/// After more than this many minutes, the axis of time is in minutes, and likewise in hours. With a
/// smaller value its first labels would be fractions.
const UNITS_MIN: f64 = 3.0;

/// The state of a load at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveLoad {
    /// The command and its target, such as `sustain /data`.
    pub title: String,
    /// The current step: `load`, `pause`, or the name of a workload.
    pub phase: String,
    /// Time since the start, in nanoseconds.
    pub elapsed_ns: u64,
    /// The most time left, in nanoseconds; `None` where nothing limits it.
    pub left_ns: Option<u64>,
    /// Bytes that were read and written so far.
    pub moved_bytes: u64,
    /// Operations per second now; `None` where none were measured yet.
    pub iops: Option<f64>,
    /// Bytes per second now.
    pub bytes_per_second: f64,
    /// The longest latency of the last moments, in nanoseconds; `None` where no request completed.
    pub latency_max_ns: Option<u64>,
    /// The temperature of the disk in °C; `None` where it is unknown.
    pub temperature_celsius: Option<f64>,
    /// Sentences on what needs attention, such as a disk that has stopped answering.
    pub remarks: Vec<String>,
    /// Operations per second over time.
    pub rates: Vec<RateAt>,
}

/// The rate at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateAt {
    /// Time since the start, in nanoseconds.
    pub at_ns: u64,
    /// Operations per second.
    pub iops: f64,
}

/// Writes the page. It is redrawn as a whole.
pub fn write_live_load(load: &LiveLoad, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    page.text(Tone::Bold.span(load.title.clone()));
    page.fact("phase", &phase_text(load));
    page.fact("rate", &rate_text(load));
    page.fact("moved", &format_bytes(load.moved_bytes));
    let temperature = match load.temperature_celsius {
        Some(celsius) => format!("{celsius:.0} °C"),
        None => "temperature unknown".to_owned(),
    };
    page.fact("disk", &temperature);
    for remark in &load.remarks {
        page.fact("note", remark);
    }
    if load.rates.len() > 1 {
        page.blank();
        write_graph(page, &rate_chart(&load.rates));
    }
    page.finish()
}

/// `load, 12 min; at most 1 h 42 min left`.
fn phase_text(load: &LiveLoad) -> String {
    let elapsed = format_duration(whole_seconds(load.elapsed_ns));
    let mut text = format!("{}, {elapsed}", load.phase);
    if let Some(left_ns) = load.left_ns {
        let left = format_duration(whole_seconds(left_ns));
        text.push_str(&format!("; at most {left} left"));
    }
    text
}

/// Drops the part of a second, which would flicker on a page that is redrawn.
fn whole_seconds(ns: u64) -> u64 {
    ns / SECOND_NS as u64 * SECOND_NS as u64
}

/// `16,230/s, 133 MB/s, longest latency 1.9 ms`.
fn rate_text(load: &LiveLoad) -> String {
    let mut text = format_throughput(load.bytes_per_second);
    if let Some(iops) = load.iops {
        text = format!("{}/s, {text}", format_rate(iops));
    }
    if let Some(ns) = load.latency_max_ns {
        text.push_str(&format!(", longest latency {}", format_latency(ns)));
    }
    text
}

/// The rate over time from zero, so that a fall has its true size.
fn rate_chart(rates: &[RateAt]) -> Chart {
    let last_s = match rates.last() {
        Some(last) => last.at_ns as f64 / SECOND_NS,
        None => 0.0,
    };
    let (unit, unit_s) = if last_s > UNITS_MIN * HOUR_S {
        ("h", HOUR_S)
    } else if last_s > UNITS_MIN * MINUTE_S {
        ("min", MINUTE_S)
    } else {
        ("s", 1.0)
    };
    let mut points = Vec::new();
    for rate in rates {
        points.push((rate.at_ns as f64 / SECOND_NS / unit_s, rate.iops));
    }
    Chart {
        x: Axis::new("time", unit).starting_at_zero(),
        y: Axis::new("rate", "/s").starting_at_zero(),
        series: vec![Series::new("rate", SeriesMark::Line, points)],
        ..Chart::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Color;

    fn page(width: usize) -> String {
        let mut rates = Vec::new();
        for second in 0..7000 {
            rates.push(RateAt {
                at_ns: second * 1_000_000_000,
                iops: if second < 2000 { 16_000.0 } else { 4000.0 },
            });
        }
        let load = LiveLoad {
            title: "sustain /data".to_owned(),
            phase: "load".to_owned(),
            elapsed_ns: 7_000_400_000_000,
            left_ns: Some(200_900_000_000),
            moved_bytes: 300 << 30,
            iops: Some(4000.0),
            bytes_per_second: 32.8e6,
            latency_max_ns: Some(12_000_000),
            temperature_celsius: Some(61.2),
            remarks: Vec::new(),
            rates,
        };
        let style = Style {
            width,
            color: Color::Plain,
        };
        let mut out = Vec::new();
        write_live_load(&load, &style, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn page_fits_a_terminal_of_80_columns_and_24_rows() {
        let page = page(80);
        // The last row has the key that ends the load.
        assert!(page.trim_end().lines().count() < 24, "{page}");
        for line in page.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        for part in [
            "1 h 56 min",
            "3 min 20 s left",
            "4000/s",
            "61 °C",
            "12.0 ms",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
