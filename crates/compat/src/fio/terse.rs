//! fio's terse output: one line per entry, fields separated by semicolons. Times are in
//! microseconds.

use super::frame::{EMULATES, RunFrame};
use super::stats::{DirectionStats, JobEntry, figures, percentiles};
use diskproof_model::fio_bins::{depth_shares, range_shares};
use diskproof_model::histogram::LatencyHistogram;

/// Percentiles of a line, whatever their list has.
const PERCENTILES_SHOWN: usize = 20;

/// The line of an entry.
pub(super) fn line(entry: &JobEntry, frame: &RunFrame<'_>, version: u32) -> String {
    let error = entry.error.as_ref().map_or(0, |(number, _)| *number);
    let mut fields = vec![
        version.to_string(),
        EMULATES.to_owned(),
        entry.name.clone(),
        entry.group.to_string(),
        error.to_string(),
    ];
    let shown = if version > 3 { 3 } else { 2 };
    for (stats, all_bytes) in frame.directions(entry).take(shown) {
        direction(&mut fields, stats, all_bytes, (version, entry));
    }
    fields.push(format!("{:.6}%", entry.user_percent));
    fields.push(format!("{:.6}%", entry.system_percent));
    fields.extend(["0", "0", "0"].map(str::to_owned));
    let depths = depth_shares(entry.in_flight);
    fields.extend(depths.iter().map(|(_, share)| format!("{share:3.1}%")));
    let shares = range_shares(entry.directions.iter().map(|stats| &stats.latency));
    let ranges = shares.us.iter().chain(&shares.ms);
    fields.extend(ranges.map(|(_, share)| format!("{share:3.2}%")));
    for disk in &frame.disks {
        let Some((counts, busy)) = disk.figures() else {
            continue;
        };
        fields.push(disk.name.clone());
        fields.extend(counts.map(|count| count.to_string()));
        fields.push(format!("{busy:.2}%"));
    }
    fields.extend(entry.description.clone());
    fields.join(";") + "\n"
}

fn direction(
    fields: &mut Vec<String>,
    stats: &DirectionStats,
    all_bytes: u64,
    (version, entry): (u32, &JobEntry),
) {
    fields.push((stats.bytes >> 10).to_string());
    fields.push((stats.rate() >> 10).to_string());
    fields.push((stats.iops() as u64).to_string());
    fields.push(stats.runtime_ms.to_string());
    fields.push("0;0;0.000000;0.000000".to_owned());
    fields.push(times(&stats.latency));
    let found = percentiles(&stats.latency, &entry.percentiles);
    for index in 0..PERCENTILES_SHOWN {
        let percent = entry.percentiles.get(index);
        let us = found.get(index).map_or(0, |(_, ns)| ns / 1000);
        fields.push(match percent {
            Some(percent) => format!("{percent:.6}%={us}"),
            None => "0%=0".to_owned(),
        });
    }
    fields.push(times(&stats.latency));
    let (kib, iops) = (stats.kib_per_second, stats.iops);
    let share = kib.share_of(all_bytes.max(1) as f64);
    fields.push(format!(
        "{:.0};{:.0};{share:.6}%;{:.6};{:.6}",
        kib.min, kib.max, kib.mean, kib.deviation
    ));
    if version == 5 {
        fields.push(format!(
            "{};{:.0};{:.0};{:.6};{:.6};{}",
            kib.count, iops.min, iops.max, iops.mean, iops.deviation, iops.count
        ));
    }
}

fn times(histogram: &LatencyHistogram) -> String {
    let own = figures(histogram);
    format!(
        "{};{};{:.6};{:.6}",
        own.min / 1000,
        own.max / 1000,
        own.mean / 1000.0,
        own.deviation / 1000.0
    )
}
