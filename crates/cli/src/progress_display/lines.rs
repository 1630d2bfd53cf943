//! Composes the texts of progress lines. The state of a display is not known here.

use super::recent_rates::RecentRates;
use crate::flags::SECOND_NS;
use diskproof_analysis::estimate;
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::progress::{Found, Progress};
use diskproof_model::surface::{SeekPattern, SurfaceMeasurement};
use diskproof_model::units::{
    counted, format_bytes, format_duration, format_latency, format_rate, format_throughput,
};
use diskproof_model::window::TimeSlice;

/// Columns of the bar in a progress line.
const BAR_COLUMNS: usize = 16;
/// Columns of the name in a progress line, which most names need at most.
pub(super) const NAME_COLUMNS: usize = 18;
/// The rate of a survey is that of its last four cells. Chosen, not measured.
const SURVEY_CELLS: usize = 4;
/// The first estimates of a survey's time vary too much: they wait for this share of a step.
const ESTIMATE_FROM: f64 = 0.01;
/// A step of a survey that is so slow has an estimate before [`ESTIMATE_FROM`].
const ESTIMATE_FROM_NS: u64 = 10 * SECOND_NS;
/// The step of a survey whose rate is shown in requests, not in bytes.
const ACCESS_STEP: &str = "access times";

/// The step, a bar and the figures, in a terminal of `columns`. A narrow line has no bar. `done` is
/// a share from 0 to 1.
pub(super) fn progress_text(step: &str, done: f64, figures: &str, columns: usize) -> String {
    let filled = (done * BAR_COLUMNS as f64) as usize;
    let bar = format!("{:-<BAR_COLUMNS$} ", "#".repeat(filled));
    let with_bar = format!("{step}{bar}{figures}");
    if with_bar.chars().count() > columns {
        format!("{step}{figures}")
    } else {
        with_bar
    }
}

/// The progress line of a survey: step, bar, time left, rate. `silence` says for how long nothing
/// completed.
pub(super) fn survey_line(
    progress: &Progress<'_>,
    silence: Option<String>,
    columns: usize,
) -> String {
    let done = progress.done.unwrap_or(0.0).clamp(0.0, 1.0);
    let mut figures = vec![format!("{:3.0} %", done * 100.0)];
    figures.extend(silence);
    if let Some(left_ns) = survey_left_ns(progress) {
        figures.push(format!("{} left", format_duration(left_ns)));
    }
    let rates = RecentRates::in_newest(progress, SURVEY_CELLS);
    figures.push(match progress.name {
        ACCESS_STEP => format!("{}/s", format_rate(rates.iops)),
        _ => format_throughput(rates.bytes_per_second),
    });
    let step = format!("{:<NAME_COLUMNS$} ", progress.name);
    progress_text(&step, done, &figures.join(", "), columns)
}

/// The time that a step of a survey still takes at its rate so far, in nanoseconds; `None` too
/// early to say.
pub(super) fn survey_left_ns(progress: &Progress<'_>) -> Option<u64> {
    let done = progress.done?.clamp(0.0, 1.0);
    let is_late_enough = progress.elapsed_ns > ESTIMATE_FROM_NS && done > 0.0;
    if done > ESTIMATE_FROM || is_late_enough {
        Some((progress.elapsed_ns as f64 * (1.0 - done) / done) as u64)
    } else {
        None
    }
}

/// The headline figures of a survey that is over, joined by `; `; `None` where it has none.
pub(super) fn survey_figures(measurement: &SurfaceMeasurement) -> Option<String> {
    let record = diskproof_analysis::surface::surface_record(measurement, &[]);
    let mut figures = Vec::new();
    if let Some(rate) = &record.figures.rate {
        figures.push(format!(
            "curve of {}: {} to {}, {} on average",
            counted(measurement.curve.len() as u64, "point"),
            format_throughput(rate.max),
            format_throughput(rate.min),
            format_throughput(rate.average.value)
        ));
    }
    if let Some(seek) = record.figures.seeks.get(&SeekPattern::Random) {
        let mean_ns = seek.mean.value.round() as u64;
        figures.push(format!("access {}", format_latency(mean_ns)));
    }
    if let Some(scan) = &record.data.scan {
        figures.push(format!(
            "scan: {}, {} unreadable",
            counted(scan.slow_blocks, "slow block"),
            format_bytes(scan.unreadable_bytes)
        ));
    }
    if figures.is_empty() {
        None
    } else {
        Some(figures.join("; "))
    }
}

/// The figures of each kind of operation in a round of a sustained load.
pub(super) fn round_figures(round: &TimeSlice) -> Vec<String> {
    let mut figures = Vec::new();
    for (kind, op) in &round.ops {
        let mut text = format!(
            "{} {}/s, {}",
            kind.as_str(),
            format_rate(op.iops),
            format_throughput(op.bytes_per_second)
        );
        if let Some(latency) = &op.latency {
            text.push_str(&format!(
                ", {} on average",
                format_latency(latency.mean_ns as u64)
            ));
        }
        figures.push(text);
    }
    figures
}

/// `12,300 reads/s, 100.8 MB/s`, for each kind of operation.
pub(super) fn headline_rates(measurement: &Measurement) -> String {
    let mut rates = Vec::new();
    for (kind, op) in OpKind::headline(&measurement.ops) {
        let rate = estimate::rate(&op.series, measurement.wall_ns);
        rates.push(if rate.ops.is_unknown() {
            format!("no {} completed", kind.as_str())
        } else {
            format!(
                "{} {}/s, {}",
                format_rate(rate.ops.value),
                kind.plural(),
                format_throughput(rate.bytes.value)
            )
        });
    }
    rates.join("; ")
}

/// A slow or unreadable place that a scan found.
pub(super) fn found_line(place: &Found) -> String {
    match place {
        Found::Slow(block) => format!(
            "slow: the block at byte {} (LBA {}) took {}",
            block.offset_bytes,
            block.lba,
            format_latency(block.latency_ns)
        ),
        Found::Unreadable(range) => format!(
            "unreadable: {} at byte {} (LBA {}), {}",
            format_bytes(range.length_bytes),
            range.offset_bytes,
            range.lba,
            range.errno
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_makes_room_for_figures() {
        let step = "1/9 random-read-d32 ";
        let figures = "47 s left, 12,300/s, 95.2 MB/s";
        assert_eq!(
            progress_text(step, 0.5, figures, 67),
            format!("{step}########-------- {figures}")
        );
        assert_eq!(
            progress_text(step, 0.5, figures, 66),
            format!("{step}{figures}")
        );
    }
}
