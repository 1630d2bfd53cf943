//! fio's terse output: one line per entry, fields separated by semicolons. Times are in
//! microseconds.

use super::frame::{DiskFigures, EMULATES, GroupDirection, RunFrame};
use super::stats::{JobEntry, figures, percentiles};
use diskproof_model::fio_bins::{depth_shares, range_shares};
use diskproof_model::histogram::LatencyHistogram;

/// Percentiles of a line, whatever their list has.
const PERCENTILES_SHOWN: usize = 20;

/// The line of an entry.
pub(super) fn line(entry: &JobEntry, frame: &RunFrame<'_>, version: u32) -> String {
    let error = entry.error.as_ref().map_or(0, |(number, _)| *number);
    let mut fields = vec![version.to_string()];
    if version > 2 {
        fields.push(EMULATES.to_owned());
    }
    fields.extend([
        entry.name.clone(),
        entry.group.to_string(),
        error.to_string(),
    ]);
    // Version 3 knows reads and writes only, the others trims, too.
    let shown = if entry.is_mixed {
        1
    } else if version == 3 {
        2
    } else {
        3
    };
    for direction in frame.directions(entry).take(shown) {
        add_direction(&mut fields, entry, &direction, version);
    }
    if let Some(both) = &entry.both {
        let mixed = GroupDirection {
            stats: both,
            group_rate: both.rate(),
        };
        add_direction(&mut fields, entry, &mixed, version);
    }
    fields.push(format!("{:.6}%", entry.user_percent));
    fields.push(format!("{:.6}%", entry.system_percent));
    fields.extend(["0", "0", "0"].map(str::to_owned));
    let depths = depth_shares(entry.in_flight);
    fields.extend(depths.iter().map(|(_, share)| format!("{share:3.1}%")));
    let shares = range_shares(entry.directions.iter().map(|stats| &stats.latency));
    let ranges = shares.us.iter().chain(&shares.ms);
    fields.extend(ranges.map(|(_, share)| format!("{share:3.2}%")));
    if version > 2 {
        for disk in frame.disks {
            disk_fields(&mut fields, &disk.name, &DiskFigures::of_disk(disk));
            if let Some(members) = DiskFigures::of_members(disk, frame.disks) {
                disk_fields(&mut fields, "slaves", &members);
            }
        }
    }
    if let Some(continued) = &entry.continued {
        fields.push(continued.errors.to_string());
        fields.push(continued.first_number().to_string());
    }
    let mut line = fields.join(";");
    if let Some(description) = &entry.description {
        let end = if version == 2 { "\n" } else { "" };
        line.push_str(&format!("{end};{description}"));
    }
    line + "\n"
}

fn disk_fields(fields: &mut Vec<String>, name: &str, figures: &DiskFigures) {
    fields.push(name.to_owned());
    fields.extend(figures.counts.map(|count| count.to_string()));
    fields.push(format!("{:3.2}%", figures.busy_percent));
}

fn add_direction(
    fields: &mut Vec<String>,
    entry: &JobEntry,
    direction: &GroupDirection<'_>,
    version: u32,
) {
    let stats = direction.stats;
    fields.push((stats.bytes >> 10).to_string());
    fields.push((stats.rate() >> 10).to_string());
    fields.push((stats.iops() as u64).to_string());
    fields.push(stats.runtime_ms.to_string());
    fields.push("0;0;0.000000;0.000000".to_owned());
    fields.push(times(&entry.clat(stats)));
    let list: &[f64] = if entry.shows_clat || entry.shows_lat {
        &entry.percentiles
    } else {
        &[]
    };
    let shown = if entry.shows_lat {
        entry.lat(stats)
    } else {
        entry.clat(stats)
    };
    let values = percentiles(&shown, list);
    for index in 0..PERCENTILES_SHOWN {
        let percent = list.get(index);
        let us = match values.get(index) {
            Some(percentile) => percentile.ns / 1000,
            None => 0,
        };
        fields.push(match percent {
            Some(percent) => format!("{percent:.6}%={us}"),
            None => "0%=0".to_owned(),
        });
    }
    fields.push(times(&entry.lat(stats)));
    let (kib, iops) = (stats.kib_per_second, stats.iops);
    let share = kib.share_of(direction.group_rate.max(1) as f64);
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
