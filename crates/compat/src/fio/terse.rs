//! Writes fio's terse output: one line per entry, fields separated by semicolons, in the order of
//! fio's show_thread_status_terse_all. Programs read the fields by their position, so none may be
//! missing. Times are in microseconds.

use super::frame::{DiskFigures, EMULATES, GroupDirection, RunFrame};
use super::latency_figures::{figures, percentiles};
use super::stats::JobEntry;
use diskproof_model::fio_bins::range_shares;
use diskproof_model::histogram::LatencyHistogram;

/// The version of the line's format (`--terse-version`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerseVersion {
    /// Without the name of the program and without disks. The description is a line of its own.
    V2,
    /// Without trims. fio's default.
    V3,
    /// All directions.
    V4,
    /// As version 4, with the rates of operations and the numbers of samples.
    V5,
}

impl TerseVersion {
    /// The version of this number; `None` where fio has none.
    pub(super) fn from_number(text: &str) -> Option<Self> {
        match text.parse() {
            Ok(2) => Some(Self::V2),
            Ok(3) => Some(Self::V3),
            Ok(4) => Some(Self::V4),
            Ok(5) => Some(Self::V5),
            _ => None,
        }
    }

    /// The first field of a line.
    fn number(self) -> &'static str {
        match self {
            Self::V2 => "2",
            Self::V3 => "3",
            Self::V4 => "4",
            Self::V5 => "5",
        }
    }

    /// The number of directions of a line: reads, writes, and in most versions trims.
    fn directions(self) -> usize {
        match self {
            Self::V3 => 2,
            Self::V2 | Self::V4 | Self::V5 => 3,
        }
    }
}

/// The percentiles of a direction: fio has fields for as many, whatever the length of the job's
/// list.
const PERCENTILE_FIELDS: usize = 20;
/// The fields of the time to submission: minimum, maximum, mean and deviation. They are 0, since it
/// is not measured.
const SUBMISSION_FIELDS: &str = "0;0;0.000000;0.000000";
/// The context switches and the major and minor page faults, which are not counted.
const UNCOUNTED_FIELDS: &str = "0;0;0";

/// The line of an entry, with its line break.
pub(super) fn entry_line(entry: &JobEntry, frame: &RunFrame<'_>, version: TerseVersion) -> String {
    let mut fields = vec![version.number().to_owned()];
    if version != TerseVersion::V2 {
        fields.push(EMULATES.to_owned());
    }
    fields.push(entry.name.clone());
    fields.push(if entry.is_blank {
        "-1".to_owned()
    } else {
        entry.group.to_string()
    });
    fields.push(entry.error_number().to_string());
    add_directions(&mut fields, entry, frame, version);
    fields.push(format!("{:.6}%", entry.user_percent));
    fields.push(format!("{:.6}%", entry.system_percent));
    fields.push(UNCOUNTED_FIELDS.to_owned());
    add_shares(&mut fields, entry);
    if version != TerseVersion::V2 {
        add_disks(&mut fields, frame);
    }
    if let Some(continued) = &entry.continued {
        fields.push(continued.errors.to_string());
        fields.push(continued.first_number().to_string());
    }
    let mut line = fields.join(";");
    if let Some(description) = &entry.description {
        if version == TerseVersion::V2 {
            line.push('\n');
        }
        line.push(';');
        line.push_str(description);
    }
    line + "\n"
}

/// The fields of each direction that the version has, and of their sum where the job asks for it.
/// Mixed reads have all others as well.
fn add_directions(
    fields: &mut Vec<String>,
    entry: &JobEntry,
    frame: &RunFrame<'_>,
    version: TerseVersion,
) {
    let shown = if entry.is_mixed {
        1
    } else {
        version.directions()
    };
    for direction in frame.directions(entry).take(shown) {
        add_direction(fields, entry, &direction, version);
    }
    if let Some(both) = &entry.both {
        let mixed = GroupDirection {
            stats: both,
            group_rate: both.rate(),
        };
        add_direction(fields, entry, &mixed, version);
    }
}

/// The shares of the depths, then those of the latencies in microseconds and in milliseconds.
fn add_shares(fields: &mut Vec<String>, entry: &JobEntry) {
    for (_, share) in entry.depth_shares() {
        fields.push(format!("{share:3.1}%"));
    }
    let shares = range_shares(entry.directions.iter().map(|stats| &stats.latency));
    for (_, share) in shares.us.iter().chain(&shares.ms) {
        fields.push(format!("{share:3.2}%"));
    }
}

/// The fields of each disk, each followed by those of its members where it has some.
fn add_disks(fields: &mut Vec<String>, frame: &RunFrame<'_>) {
    for disk in frame.disks {
        add_disk(fields, &disk.name, &DiskFigures::of_disk(disk));
        if let Some(members) = DiskFigures::of_members(disk, frame.disks) {
            add_disk(fields, "slaves", &members);
        }
    }
}

/// The name of a disk, its counts in the order of [`DiskFigures`], and its utilisation.
fn add_disk(fields: &mut Vec<String>, name: &str, figures: &DiskFigures) {
    fields.push(name.to_owned());
    fields.extend(figures.counts.map(|count| count.to_string()));
    fields.push(format!("{:3.2}%", figures.busy_percent));
}

/// The fields of a direction, in fio's order: KiB, KiB per second, operations per second, run time
/// in milliseconds; the times to submission and to completion; the percentiles; the whole
/// latencies; the rates in KiB per second; in version 5 those in operations, and the numbers of
/// samples.
fn add_direction(
    fields: &mut Vec<String>,
    entry: &JobEntry,
    direction: &GroupDirection<'_>,
    version: TerseVersion,
) {
    let stats = direction.stats;
    fields.push((stats.bytes >> 10).to_string());
    fields.push((stats.rate() >> 10).to_string());
    fields.push((stats.iops() as u64).to_string());
    fields.push(stats.runtime_ms.to_string());
    fields.push(SUBMISSION_FIELDS.to_owned());
    fields.push(latency_fields(&entry.clat(stats)));
    let shown = if entry.shows_lat {
        entry.lat(stats)
    } else {
        entry.clat(stats)
    };
    add_percentiles(fields, entry, &shown);
    fields.push(latency_fields(&entry.lat(stats)));
    let (kib, iops) = (stats.kib_per_second, stats.iops);
    let share = kib.share_of(direction.group_rate.max(1) as f64);
    fields.push(format!(
        "{:.0};{:.0};{share:.6}%;{:.6};{:.6}",
        kib.min, kib.max, kib.mean, kib.deviation
    ));
    if version == TerseVersion::V5 {
        fields.push(format!(
            "{};{:.0};{:.0};{:.6};{:.6};{}",
            kib.count, iops.min, iops.max, iops.mean, iops.deviation, iops.count
        ));
    }
}

/// The percentiles of a job's list as `99.000000%=123`. A field without a percentile is `0%=0`; one
/// whose latencies are unknown has 0 microseconds.
fn add_percentiles(fields: &mut Vec<String>, entry: &JobEntry, latency: &LatencyHistogram) {
    let list: &[f64] = if entry.shows_clat || entry.shows_lat {
        &entry.percentiles
    } else {
        &[]
    };
    let values = percentiles(latency, list);
    for index in 0..PERCENTILE_FIELDS {
        let us = match values.get(index) {
            Some(percentile) => percentile.ns / 1000,
            None => 0,
        };
        fields.push(match list.get(index) {
            Some(percent) => format!("{percent:.6}%={us}"),
            None => "0%=0".to_owned(),
        });
    }
}

/// Minimum, maximum, mean and deviation of latencies, in microseconds.
fn latency_fields(histogram: &LatencyHistogram) -> String {
    let summary = figures(histogram);
    format!(
        "{};{};{:.6};{:.6}",
        summary.min / 1000,
        summary.max / 1000,
        summary.mean / 1000.0,
        summary.deviation / 1000.0
    )
}
